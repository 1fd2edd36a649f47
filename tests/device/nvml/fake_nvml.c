/* A libnvidia-ml.so.1 for tests: devices that follow a script instead of a driver.
 *
 * MLBENCH_FAKE_NVML is read at every nvmlInit: words "key=value", separated by spaces.
 *   devices=2 bus=0000:3B:00.0   so many, from this address on (bus number + 1 each)
 *   name=Fake_GPU                underscores are shown as spaces
 *   span=1000                    ms from nvmlInit on over which things change
 *   clock=1980:1400              MHz, falling (or rising) over the span
 *   throttle=0x4                 reasons, in the middle third of the span; idle (0x1) before and after; always=1: all the time
 *   power=300000:690000 temperature=40:80 corrected=0:3 uncorrected=0:1
 *   to=12000000 from=1000        PCIe, KB/s       width=8 generation=4 persistence=0
 *   links=4 down=2 replays=3     NVLinks, which one of the last device's is down, replays of link 0
 *   rows=1 pending=1 failed=1    memory rows remapped after uncorrected errors, and what is wrong with that
 *   serial=none                  the board has no serial number
 *   init=9                       nvmlInit's code
 *   deny=power:4                 a question's code; may be repeated
 *   hang=power:1500              a question (or "init", "shutdown") takes so many ms longer; may be repeated
 *   late=power:500               a question hangs or fails only after so many ms; one
 * Questions: clock clock_max power limit limits temperature throttle ecc eccmode memory resident pcie link
 * persistence mig name bus count rows.
 * With FAKE_NVML_OLD it is a driver of long ago: no function with a version in its name but the first
 * ones, and reasons under their former name. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	OK = 0,
	UNINITIALIZED = 1,
	INVALID = 2,
	NOT_FOUND = 6,
	DEVICES_MAX = 16,
	SCRIPT_BYTES = 1024,
	VERSION_SHIFT = 24,
	CLOCK_SM = 1,
	GIB_SHIFT = 30,
};

struct device {
	unsigned index;
};

static struct device devices[DEVICES_MAX];
static char script[SCRIPT_BYTES];
static atomic_int users;
static double begun;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double now_ms(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* The next word with this key at or after `from`; its value, or NULL. */
static const char *word(const char *from, const char *key)
{
	const size_t length = strlen(key);
	for (const char *at = from; at && *at; at = strchr(at, ' ')) {
		at += strspn(at, " ");
		if (strncmp(at, key, length) == 0 && at[length] == '=')
			return at + length + 1;
	}
	return NULL;
}

static double number(const char *key, double usual)
{
	const char *text = word(script, key);
	return text ? (double)strtoull(text, NULL, 0) : usual;
}

static double elapsed_ms(void)
{
	return now_ms() - begun;
}

/* "a:b" over the span, "a" for ever. */
static double changing(const char *key, double usual)
{
	const char *text = word(script, key);
	char *end;
	if (!text)
		return usual;
	const double first = strtod(text, &end);
	if (*end != ':')
		return first;
	const double last = strtod(end + 1, NULL);
	const double span = number("span", 1000);
	const double part = elapsed_ms() / span;
	return first + (last - first) * (part > 1 ? 1 : part);
}

/* The value of "key=question:value"; usual: there is none. */
static double scripted(const char *key, const char *question, double usual)
{
	const size_t length = strlen(question);
	for (const char *at = word(script, key); at; at = word(at, key))
		if (strncmp(at, question, length) == 0 && at[length] == ':')
			return strtod(at + length + 1, NULL);
	return usual;
}

/* What a question comes to, before it is answered. */
static int ask(const char *question, const struct device *device)
{
	if (atomic_load(&users) == 0)
		return UNINITIALIZED;
	if (!device || device < devices || device >= devices + DEVICES_MAX)
		return INVALID;
	if (elapsed_ms() < scripted("late", question, 0))
		return OK;
	const double hang = scripted("hang", question, 0);
	if (hang > 0)
		(void)usleep((useconds_t)(hang * 1e3));
	return (int)scripted("deny", question, OK);
}

static int answer(const char *question, const struct device *device, unsigned *out, double value)
{
	const int code = ask(question, device);
	if (code == OK)
		*out = (unsigned)value;
	return code;
}

/* --- the library ------------------------------------------------------------------------------------ */

int nvmlInit_v2(void);
int nvmlInit(void);
int nvmlShutdown(void);
int nvmlSystemGetDriverVersion(char *text, unsigned room);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device);
int nvmlDeviceGetHandleByIndex(unsigned index, struct device **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, struct device **device);
int nvmlDeviceGetName(struct device *device, char *text, unsigned room);
struct pci_info {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};
int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci_info *info);
int nvmlDeviceGetClockInfo(struct device *device, int type, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(struct device *device, int type, unsigned *mhz);
int nvmlDeviceGetPowerUsage(struct device *device, unsigned *milliwatt);
int nvmlDeviceGetEnforcedPowerLimit(struct device *device, unsigned *milliwatt);
int nvmlDeviceGetPowerManagementLimitConstraints(
	struct device *device, unsigned *least, unsigned *most);
int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius);
int nvmlDeviceGetCurrentClocksEventReasons(struct device *device, unsigned long long *bits);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *device, unsigned long long *bits);
int nvmlDeviceGetTotalEccErrors(
	struct device *device, int type, int counter, unsigned long long *count);
int nvmlDeviceGetEccMode(struct device *device, int *current, int *pending);
struct memory {
	unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *memory);
struct memory_2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
int nvmlDeviceGetMemoryInfo_v2(struct device *device, struct memory_2 *memory);
struct utilization {
	unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(struct device *device, struct utilization *share);
int nvmlDeviceGetPcieThroughput(struct device *device, int counter, unsigned *rate);
int nvmlDeviceGetCurrPcieLinkGeneration(struct device *device, unsigned *generation);
int nvmlDeviceGetMaxPcieLinkGeneration(struct device *device, unsigned *generation);
int nvmlDeviceGetCurrPcieLinkWidth(struct device *device, unsigned *lanes);
int nvmlDeviceGetMaxPcieLinkWidth(struct device *device, unsigned *lanes);
int nvmlDeviceGetPersistenceMode(struct device *device, int *mode);
int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending);

int nvmlDeviceGetSerial(struct device *device, char *text, unsigned room);
int nvmlDeviceGetVbiosVersion(struct device *device, char *text, unsigned room);
int nvmlDeviceGetNvLinkState(struct device *device, unsigned link, int *active);
int nvmlDeviceGetNvLinkErrorCounter(
	struct device *device, unsigned link, int kind, unsigned long long *count);
int nvmlDeviceGetRemappedRows(struct device *device, unsigned *corrected, unsigned *uncorrected,
	unsigned *pending, unsigned *failed);

static int begin(void)
{
	const char *text = getenv("MLBENCH_FAKE_NVML");
	(void)pthread_mutex_lock(&lock);
	if (atomic_load(&users) == 0) {
		(void)snprintf(script, sizeof script, "%s", text ? text : "");
		begun = now_ms();
	}
	const double hang = scripted("hang", "init", 0);
	const int code = (int)number("init", OK);
	(void)pthread_mutex_unlock(&lock);
	if (hang > 0)
		(void)usleep((useconds_t)(hang * 1e3));
	if (code == OK)
		atomic_fetch_add(&users, 1);
	return code;
}

int nvmlShutdown(void)
{
	const double hang = scripted("hang", "shutdown", 0);
	if (hang > 0)
		(void)usleep((useconds_t)(hang * 1e3));
	if (atomic_load(&users) == 0)
		return UNINITIALIZED;
	atomic_fetch_sub(&users, 1);
	return OK;
}

static int count_devices(unsigned *count)
{
	*count = (unsigned)number("devices", 1);
	return atomic_load(&users) ? (int)scripted("deny", "count", OK) : UNINITIALIZED;
}

static int handle_of(unsigned index, struct device **device)
{
	if (index >= (unsigned)number("devices", 1) || index >= DEVICES_MAX)
		return INVALID;
	devices[index].index = index;
	*device = &devices[index];
	return OK;
}

static void address(unsigned index, unsigned parts[3])
{
	const char *text = word(script, "bus");
	parts[0] = 0;
	parts[1] = 1;
	parts[2] = 0;
	if (text)
		(void)sscanf(text, "%x:%x:%x", &parts[0], &parts[1], &parts[2]);
	parts[1] += index;
}

#ifdef FAKE_NVML_OLD
int nvmlInit(void)
{
	return begin();
}

int nvmlDeviceGetCount(unsigned *count)
{
	return count_devices(count);
}

int nvmlDeviceGetHandleByIndex(unsigned index, struct device **device)
{
	return handle_of(index, device);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *device, unsigned long long *bits)
#else
int nvmlInit_v2(void)
{
	return begin();
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	return count_devices(count);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device)
{
	return handle_of(index, device);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, struct device **device)
{
	unsigned wanted[3];
	if (sscanf(bus, "%x:%x:%x", &wanted[0], &wanted[1], &wanted[2]) != 3)
		return INVALID;
	for (unsigned i = 0; i < (unsigned)number("devices", 1) && i < DEVICES_MAX; i++) {
		unsigned parts[3];
		address(i, parts);
		if (memcmp(parts, wanted, sizeof parts) == 0) {
			const int code = (int)scripted("deny", "bus", OK);
			return code ? code : handle_of(i, device);
		}
	}
	return NOT_FOUND;
}

int nvmlDeviceGetMemoryInfo_v2(struct device *device, struct memory_2 *memory)
{
	enum { MISMATCH = 25 };
	const int code = ask("memory", device);
	if (code)
		return code;
	if (memory->version != ((unsigned)sizeof *memory | 2U << VERSION_SHIFT))
		return MISMATCH;
	memory->total = 80ULL << GIB_SHIFT;
	memory->reserved = 1ULL << GIB_SHIFT;
	memory->used = 10ULL << GIB_SHIFT;
	memory->free = 69ULL << GIB_SHIFT;
	return OK;
}

int nvmlDeviceGetCurrentClocksEventReasons(struct device *device, unsigned long long *bits)
#endif
{
	const int code = ask("throttle", device);
	const double part = elapsed_ms() / number("span", 1000);
	const bool middle = (part >= 1.0 / 3 && part < 2.0 / 3) || number("always", 0) > 0;
	if (code == OK)
		*bits = middle ? (unsigned long long)number("throttle", 0) : 1;
	return code;
}

int nvmlSystemGetDriverVersion(char *text, unsigned room)
{
	(void)snprintf(text, room, "999.0 (fake)");
	return OK;
}

int nvmlDeviceGetName(struct device *device, char *text, unsigned room)
{
	const int code = ask("name", device);
	const char *name = word(script, "name");
	if (code)
		return code;
	(void)snprintf(text, room, "%.*s", name ? (int)strcspn(name, " ") : (int)room,
		name ? name : "Fake GPU");
	for (char *c = text; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	return OK;
}

int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci_info *info)
{
	const int code = ask("bus", device);
	unsigned parts[3];
	if (code)
		return code;
	address(device->index, parts);
	*info = (struct pci_info){.domain = parts[0], .bus = parts[1], .device = parts[2]};
	(void)snprintf(
		info->text, sizeof info->text, "%08X:%02X:%02X.0", parts[0], parts[1], parts[2]);
	return OK;
}

int nvmlDeviceGetClockInfo(struct device *device, int type, unsigned *mhz)
{
	return answer("clock", device, mhz, type == CLOCK_SM ? changing("clock", 1980) : 2619);
}

int nvmlDeviceGetMaxClockInfo(struct device *device, int type, unsigned *mhz)
{
	return answer("clock_max", device, mhz, type == CLOCK_SM ? 1980 : 2619);
}

int nvmlDeviceGetPowerUsage(struct device *device, unsigned *milliwatt)
{
	return answer("power", device, milliwatt, changing("power", 400000));
}

int nvmlDeviceGetEnforcedPowerLimit(struct device *device, unsigned *milliwatt)
{
	return answer("limit", device, milliwatt, 700000);
}

int nvmlDeviceGetPowerManagementLimitConstraints(
	struct device *device, unsigned *least, unsigned *most)
{
	*least = 200000;
	return answer("limits", device, most, 700000);
}

int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius)
{
	return sensor ? INVALID
		      : answer("temperature", device, celsius, changing("temperature", 50));
}

int nvmlDeviceGetTotalEccErrors(
	struct device *device, int type, int counter, unsigned long long *count)
{
	const int code = counter ? INVALID : ask("ecc", device);
	if (code == OK)
		*count = (unsigned long long)changing(type ? "uncorrected" : "corrected", 0);
	return code;
}

int nvmlDeviceGetEccMode(struct device *device, int *current, int *pending)
{
	const int code = ask("eccmode", device);
	*current = *pending = 1;
	return code;
}

int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *memory)
{
	const int code = ask("memory", device);
	if (code == OK)
		*memory = (struct memory){.total = 80ULL << GIB_SHIFT,
			.used = 11ULL << GIB_SHIFT,
			.free = 69ULL << GIB_SHIFT};
	return code;
}

int nvmlDeviceGetUtilizationRates(struct device *device, struct utilization *share)
{
	const int code = ask("resident", device);
	*share = (struct utilization){.gpu = 97, .memory = 30};
	return code;
}

int nvmlDeviceGetPcieThroughput(struct device *device, int counter, unsigned *rate)
{
	return answer(
		"pcie", device, rate, counter ? number("to", 12000000) : number("from", 1000));
}

int nvmlDeviceGetCurrPcieLinkGeneration(struct device *device, unsigned *generation)
{
	return answer("link", device, generation, number("generation", 5));
}

int nvmlDeviceGetMaxPcieLinkGeneration(struct device *device, unsigned *generation)
{
	return answer("link", device, generation, 5);
}

int nvmlDeviceGetCurrPcieLinkWidth(struct device *device, unsigned *lanes)
{
	return answer("link", device, lanes, number("width", 16));
}

int nvmlDeviceGetMaxPcieLinkWidth(struct device *device, unsigned *lanes)
{
	return answer("link", device, lanes, 16);
}

int nvmlDeviceGetPersistenceMode(struct device *device, int *mode)
{
	unsigned value = 0;
	const int code = answer("persistence", device, &value, number("persistence", 1));
	*mode = (int)value;
	return code;
}

int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending)
{
	*pending = 0;
	return answer("mig", device, current, 0);
}

int nvmlDeviceGetSerial(struct device *device, char *text, unsigned room)
{
	enum { NOT_SUPPORTED = 3 };
	const char *serial = word(script, "serial");
	if (serial && strncmp(serial, "none", 4) == 0)
		return NOT_SUPPORTED;
	(void)snprintf(text, room, "165402100%u", device->index);
	return OK;
}

int nvmlDeviceGetVbiosVersion(struct device *device, char *text, unsigned room)
{
	(void)device;
	(void)snprintf(text, room, "96.00.5E.00.01");
	return OK;
}

int nvmlDeviceGetNvLinkState(struct device *device, unsigned link, int *active)
{
	enum { NOT_SUPPORTED = 3 };
	if (number("links", 0) == 0)
		return NOT_SUPPORTED;
	if (!device || link >= (unsigned)number("links", 0))
		return INVALID;
	const bool last = device->index + 1 == (unsigned)number("devices", 1);
	*active = !last || link != (unsigned)number("down", 99);
	return OK;
}

int nvmlDeviceGetNvLinkErrorCounter(
	struct device *device, unsigned link, int kind, unsigned long long *count)
{
	if (!device || link >= (unsigned)number("links", 0))
		return INVALID;
	*count = link == 0 && kind == 0 ? (unsigned long long)changing("replays", 0) : 0;
	return OK;
}

int nvmlDeviceGetRemappedRows(struct device *device, unsigned *corrected, unsigned *uncorrected,
	unsigned *pending, unsigned *failed)
{
	*corrected = 0;
	*uncorrected = (unsigned)number("rows", 0);
	*pending = (unsigned)number("pending", 0);
	*failed = (unsigned)number("failed", 0);
	return ask("rows", device);
}
