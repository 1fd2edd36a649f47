/* What NVML says: opening it, its codes in words, one quantity at a time, a whole node, and samples
 * over a run in bounded memory.  Only threads of this file call NVML.  Whoever started them waits for
 * a stated time and then leaves them what they hold: a call that hangs costs the memory of its watch,
 * never the run. */
#include "harness/measure/nvml.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVML_FILE "libnvidia-ml.so.1"

/* --- the library ------------------------------------------------------------------------------ */

/* NVML's functions as far as they are asked, from its public reference: declared here, since the
 * header comes with neither the driver nor every toolkit. */

/* nvmlDevice_t points to one. */
typedef struct nvml_handle handle;

/* nvmlPciInfo_t, as of nvmlDeviceGetPciInfo_v3. */
struct nvml_pci_info {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};
/* nvmlMemory_t */
struct nvml_memory {
	unsigned long long total, free, used;
};
/* nvmlMemory_v2_t: version is its size with 2 in the top byte */
struct nvml_memory_2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

/* A function that the library lacks is NULL, but for the ones that all the rest needs. */
static struct nvml_library {
	int (*init)(void);
	int (*shutdown)(void);
	int (*driver_version)(char *text, unsigned room);
	int (*count)(unsigned *count);
	int (*handle)(unsigned index, handle **device);
	int (*handle_of_bus)(const char *bus, handle **device);
	int (*name)(handle *device, char *text, unsigned room);
	int (*pci_info)(handle *device, struct nvml_pci_info *info);
	int (*memory)(handle *device, struct nvml_memory *memory);
	int (*memory_2)(handle *device, struct nvml_memory_2 *memory);
	int (*serial)(handle *device, char *text, unsigned room);
	int (*vbios)(handle *device, char *text, unsigned room);
	int (*link_state)(handle *device, unsigned link, int *active);
	int (*link_errors)(handle *device, unsigned link, int kind, unsigned long long *count);
} nvml;

#define AT(member) offsetof(struct nvml_library, member)

/* Those with a version in their name are looked up first, the older ones second. */
static const struct symbol {
	size_t offset;
	bool needed;
	const char *name, *older; /* older: the same arguments; may be NULL */
} symbols[] = {
	{AT(init), true, "nvmlInit_v2", "nvmlInit"},
	{AT(shutdown), true, "nvmlShutdown", NULL},
	{AT(driver_version), false, "nvmlSystemGetDriverVersion", NULL},
	{AT(count), true, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
	{AT(handle), true, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
	{AT(handle_of_bus), false, "nvmlDeviceGetHandleByPciBusId_v2",
		"nvmlDeviceGetHandleByPciBusId"},
	{AT(name), false, "nvmlDeviceGetName", NULL},
	{AT(pci_info), false, "nvmlDeviceGetPciInfo_v3", NULL},
	{AT(memory), false, "nvmlDeviceGetMemoryInfo", NULL},
	{AT(memory_2), false, "nvmlDeviceGetMemoryInfo_v2", NULL},
	{AT(serial), false, "nvmlDeviceGetSerial", NULL},
	{AT(vbios), false, "nvmlDeviceGetVbiosVersion", NULL},
	{AT(link_state), false, "nvmlDeviceGetNvLinkState", NULL},
	{AT(link_errors), false, "nvmlDeviceGetNvLinkErrorCounter", NULL},
};

/* Values of NVML's enumerations. */
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };
enum { SENSOR_GPU = 0 };
enum { ERRORS_CORRECTED = 0, ERRORS_UNCORRECTED = 1 };
enum { ECC_SINCE_LOADED = 0 };             /* NVML_VOLATILE_ECC */
enum { PCIE_SENT = 0, PCIE_RECEIVED = 1 }; /* by the device */

/* A function's arguments behind the device, and which of its answers is meant. */
enum answer {
	ANSWER_ONE, /* an unsigned; of nvmlUtilization_t, which is two, the first */
	ANSWER_OF_TYPE,
	ANSWER_FIRST_OF_2,
	ANSWER_SECOND_OF_2,
	ANSWER_BITS,   /* an unsigned long long */
	ANSWER_ERRORS, /* likewise, of a type and a counter */
	ANSWER_MEMORY_USED,
	ANSWER_MEMORY_TOTAL,
	ANSWER_OF_4, /* of four unsigned the one that `type` says */
};

/* The questions: a function of the library, and how its answer gets into nvml.h's unit. */
static const struct question {
	const char *name, *unit;
	enum answer answer;
	const char *function; /* NULL: of the memory */
	int type;             /* OF_TYPE, ERRORS, OF_4 */
	double times, per;    /* what the answer is multiplied with and divided by; 0: not */
	const char *older;    /* the function's earlier name, or NULL */
} questions[NVML_QUANTITIES] = {
	[NVML_SM_CLOCK] = {"SM clock", "MHz", ANSWER_OF_TYPE, "nvmlDeviceGetClockInfo", CLOCK_SM},
	[NVML_MEMORY_CLOCK] = {"memory clock", "MHz", ANSWER_OF_TYPE, "nvmlDeviceGetClockInfo",
		CLOCK_MEMORY},
	[NVML_POWER] = {"power", "W", ANSWER_ONE, "nvmlDeviceGetPowerUsage", .per = 1000},
	[NVML_TEMPERATURE] = {"temperature", "C", ANSWER_OF_TYPE, "nvmlDeviceGetTemperature",
		SENSOR_GPU},
	[NVML_THROTTLES] = {"throttle reasons", "", ANSWER_BITS,
		"nvmlDeviceGetCurrentClocksEventReasons",
		.older = "nvmlDeviceGetCurrentClocksThrottleReasons"},
	[NVML_ECC_CORRECTED] = {"corrected memory errors", "", ANSWER_ERRORS,
		"nvmlDeviceGetTotalEccErrors", ERRORS_CORRECTED},
	[NVML_ECC_UNCORRECTED] = {"uncorrected memory errors", "", ANSWER_ERRORS,
		"nvmlDeviceGetTotalEccErrors", ERRORS_UNCORRECTED},
	[NVML_MEMORY_USED] = {"memory used", "B", ANSWER_MEMORY_USED},
	[NVML_KERNEL_RESIDENT] = {"share with a kernel resident", "", ANSWER_ONE,
		"nvmlDeviceGetUtilizationRates", .per = 100},
	/* "KB/s" of the reference: 1000 */
	[NVML_PCIE_TO_DEVICE] = {"PCIe to device", "B/s", ANSWER_OF_TYPE,
		"nvmlDeviceGetPcieThroughput", PCIE_RECEIVED, .times = 1000},
	[NVML_PCIE_FROM_DEVICE] = {"PCIe from device", "B/s", ANSWER_OF_TYPE,
		"nvmlDeviceGetPcieThroughput", PCIE_SENT, .times = 1000},
	[NVML_SM_CLOCK_MAX] = {"highest SM clock", "MHz", ANSWER_OF_TYPE,
		"nvmlDeviceGetMaxClockInfo", CLOCK_SM},
	[NVML_MEMORY_CLOCK_MAX] = {"highest memory clock", "MHz", ANSWER_OF_TYPE,
		"nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY},
	[NVML_POWER_LIMIT] = {"power limit", "W", ANSWER_ONE, "nvmlDeviceGetEnforcedPowerLimit",
		.per = 1000, .older = "nvmlDeviceGetPowerManagementLimit"},
	[NVML_POWER_LIMIT_MAX] = {"highest power limit", "W", ANSWER_SECOND_OF_2,
		"nvmlDeviceGetPowerManagementLimitConstraints", .per = 1000},
	[NVML_MEMORY_TOTAL] = {"memory", "B", ANSWER_MEMORY_TOTAL},
	[NVML_PCIE_GENERATION] = {"PCIe generation", "", ANSWER_ONE,
		"nvmlDeviceGetCurrPcieLinkGeneration"},
	[NVML_PCIE_GENERATION_MAX] = {"highest PCIe generation", "", ANSWER_ONE,
		"nvmlDeviceGetMaxPcieLinkGeneration"},
	[NVML_PCIE_WIDTH] = {"PCIe lanes", "", ANSWER_ONE, "nvmlDeviceGetCurrPcieLinkWidth"},
	[NVML_PCIE_WIDTH_MAX] = {"most PCIe lanes", "", ANSWER_ONE,
		"nvmlDeviceGetMaxPcieLinkWidth"},
	[NVML_PERSISTENCE] = {"persistence mode", "", ANSWER_ONE, "nvmlDeviceGetPersistenceMode"},
	[NVML_ECC_MODE] = {"ECC mode", "", ANSWER_FIRST_OF_2, "nvmlDeviceGetEccMode"},
	[NVML_MIG_MODE] = {"MIG mode", "", ANSWER_FIRST_OF_2, "nvmlDeviceGetMigMode"},
	[NVML_ROWS_CORRECTED] = {"memory rows remapped after corrected errors", "", ANSWER_OF_4,
		"nvmlDeviceGetRemappedRows", 0},
	[NVML_ROWS_UNCORRECTED] = {"memory rows remapped after uncorrected errors", "", ANSWER_OF_4,
		"nvmlDeviceGetRemappedRows", 1},
	[NVML_ROWS_PENDING] = {"a remapping waits for a reset", "", ANSWER_OF_4,
		"nvmlDeviceGetRemappedRows", 2},
	[NVML_ROWS_FAILED] = {"a remapping failed", "", ANSWER_OF_4, "nvmlDeviceGetRemappedRows",
		3},
};

static void *functions[NVML_QUANTITIES]; /* of the questions; NULL: the library lacks it */
static bool is_loaded;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static void *find_symbol(void *library, const char *name, const char *older)
{
	void *address = name ? dlsym(library, name) : NULL;
	return address || !older ? address : dlsym(library, older);
}

static bool resolve_nvml(void *library, char *why, size_t room)
{
	for (size_t i = 0; i < COUNT(symbols); i++) {
		void *address = find_symbol(library, symbols[i].name, symbols[i].older);
		if (!address && symbols[i].needed) {
			(void)snprintf(why, room, "%s has no %s", NVML_FILE, symbols[i].name);
			return false;
		}
		/* All pointers are of one size here, to data and to functions. */
		memcpy((char *)&nvml + symbols[i].offset, &address, sizeof address);
	}
	for (size_t i = 0; i < NVML_QUANTITIES; i++)
		functions[i] = find_symbol(library, questions[i].function, questions[i].older);
	return true;
}

static bool load_nvml(char *why, size_t room)
{
	void *library = dlopen(NVML_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *reason = dlerror();
		(void)snprintf(why, room, "no NVML: %s", reason ? reason : NVML_FILE);
		return false;
	}
	if (resolve_nvml(library, why, room))
		return true;
	(void)dlclose(library);
	return false;
}

/* Opens the library, once in a process and for good, and NVML in it; false with the reason. */
static bool begin_nvml(char *why, size_t room)
{
	(void)pthread_mutex_lock(&loading);
	is_loaded = is_loaded || load_nvml(why, room);
	const bool there = is_loaded;
	(void)pthread_mutex_unlock(&loading);
	const int code = there ? nvml.init() : NVML_OK;
	if (code)
		(void)snprintf(why, room, "NVML does not start: %s", nvml_code_words(code));
	return there && !code;
}

/* --- words ------------------------------------------------------------------------------------ */

const char *nvml_code_words(int code)
{
	static const struct {
		int code;
		const char *words;
	} list[] = {
		{NVML_NOT_ASKED, "never asked"},
		{NVML_OK, "known"},
		{NVML_UNINITIALIZED, "NVML is not initialised"},
		{NVML_INVALID_ARGUMENT, "NVML refuses the question"},
		{NVML_NOT_SUPPORTED, "not supported by this device"},
		{NVML_NO_PERMISSION, "no permission"},
		{NVML_NOT_FOUND, "no such device"},
		{NVML_DRIVER_NOT_LOADED, "the NVIDIA driver is not loaded"},
		{NVML_TIMEOUT, "the driver did not answer in time"},
		{NVML_IRQ_ISSUE, "the driver has trouble with the device's interrupts"},
		{NVML_LIBRARY_NOT_FOUND, "a library of the driver is missing"},
		{NVML_FUNCTION_NOT_FOUND, "this driver's NVML cannot tell"},
		{NVML_CORRUPTED_INFOROM, "the device's infoROM is corrupted"},
		{NVML_GPU_IS_LOST, "the device fell off the bus"},
		{NVML_RESET_REQUIRED, "the device needs a reset"},
		{NVML_OPERATING_SYSTEM, "the operating system blocks the device"},
		{NVML_VERSION_MISMATCH,
			"the driver's kernel module and its libraries are of different versions"},
		{NVML_IN_USE, "the device is in use"},
		{NVML_MEMORY, "NVML is out of memory"},
		{NVML_NO_DATA, "no data yet"},
		{NVML_ARGUMENT_VERSION_MISMATCH, "this driver's NVML asks another way"},
	};
	for (size_t i = 0; i < COUNT(list); i++)
		if (list[i].code == code)
			return list[i].words;
	return "an unknown error of the driver";
}

/* Whether asking again can give nothing else. */
static bool is_final_code(int code)
{
	return code == NVML_NOT_SUPPORTED || code == NVML_NO_PERMISSION ||
	       code == NVML_FUNCTION_NOT_FOUND || code == NVML_INVALID_ARGUMENT ||
	       code == NVML_ARGUMENT_VERSION_MISMATCH;
}

/* nvmlClocksEventReasons, from bit 0 on.  Idle clocks are no throttling. */
const char *nvml_throttle_name(unsigned bit)
{
	static const char *const names[] = {
		NULL,
		"application clocks",
		"power cap",
		"hardware slowdown",
		"sync boost",
		"thermal",
		"thermal by hardware",
		"power brake",
		"display clocks",
	};
	return bit < COUNT(names) ? names[bit] : NULL;
}

void nvml_throttle_names(double bits, char *out, size_t room)
{
	size_t used = 0;
	out[0] = '\0';
	for (unsigned bit = 0; bit < NVML_THROTTLE_BITS && bits >= 0; bit++) {
		const char *name = nvml_throttle_name(bit);
		if (name && ((uint64_t)bits >> bit & 1) && used < room)
			used += (size_t)snprintf(
				out + used, room - used, "%s%s", used ? ", " : "", name);
	}
}

/* --- addresses -------------------------------------------------------------------------------- */

/* domain:bus:device.function, hexadecimal; without a function it is 0. */
static bool parse_bus(const char *text, unsigned long parts[4])
{
	static const char ends[] = {':', ':', '.', '\0'};
	parts[3] = 0;
	for (int i = 0; i < 4; i++) {
		char *end;
		if (!isxdigit((unsigned char)*text))
			return false;
		parts[i] = strtoul(text, &end, 16);
		if (*end != ends[i])
			return i == 2 && *end == '\0';
		text = end + 1;
	}
	return true;
}

bool nvml_same_bus(const char *one, const char *other)
{
	unsigned long a[4];
	unsigned long b[4];
	return parse_bus(one, a) && parse_bus(other, b) && memcmp(a, b, sizeof a) == 0;
}

/* --- calls that do not come back -------------------------------------------------------------- */

#define NVML_HANGS "an earlier call of NVML has not come back: the driver hangs"

static atomic_int abandoned; /* that somebody gave up waiting for */

bool nvml_hangs(void)
{
	return atomic_load(&abandoned) > 0;
}

/* A lock, and a condition of the monotonic clock; false without memory. */
static bool open_nvml_lock(pthread_mutex_t *lock, pthread_cond_t *changed)
{
	pthread_condattr_t attributes;
	if (pthread_mutex_init(lock, NULL) || pthread_condattr_init(&attributes))
		return false;
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	return true;
}

/* Waits for a change until a moment; false: it is there. */
static bool wait_until(pthread_cond_t *changed, pthread_mutex_t *lock, uint64_t t_ns)
{
	const struct timespec at = {
		.tv_sec = (time_t)(t_ns / NS_PER_S), .tv_nsec = (long)(t_ns % NS_PER_S)};
	return pthread_cond_timedwait(changed, lock, &at) != ETIMEDOUT;
}

/* --- one quantity of a device ----------------------------------------------------------------- */

const char *nvml_quantity_name(enum nvml_quantity quantity)
{
	return questions[quantity].name;
}

const char *nvml_quantity_unit(enum nvml_quantity quantity)
{
	return questions[quantity].unit;
}

/* The newer question counts what the driver keeps for itself apart from what is used. */
static int ask_memory(handle *device, bool all, double *bytes)
{
	enum { VERSION = 2, VERSION_SHIFT = 24 };
	struct nvml_memory_2 now = {
		.version = (unsigned)sizeof now | (unsigned)VERSION << VERSION_SHIFT};
	struct nvml_memory old = {0};
	int code = nvml.memory_2 ? nvml.memory_2(device, &now) : NVML_FUNCTION_NOT_FOUND;
	*bytes = (double)(all ? now.total : now.used);
	if (code != NVML_FUNCTION_NOT_FOUND && code != NVML_ARGUMENT_VERSION_MISMATCH)
		return code;
	code = nvml.memory ? nvml.memory(device, &old) : NVML_FUNCTION_NOT_FOUND;
	*bytes = (double)(all ? old.total : old.used);
	return code;
}

static int ask_function(handle *device, const struct question *q, void *address, double *number)
{
	union {
		void *address;
		int (*one)(handle *, unsigned *);
		int (*of_type)(handle *, int, unsigned *);
		int (*two)(handle *, unsigned *, unsigned *);
		int (*four)(handle *, unsigned *, unsigned *, unsigned *, unsigned *);
		int (*bits)(handle *, unsigned long long *);
		int (*errors)(handle *, int, int, unsigned long long *);
	} function = {.address = address};
	unsigned values[4] = {0};
	unsigned long long wide = 0;
	int code = NVML_FUNCTION_NOT_FOUND;
	if (!address)
		return code;
	if (q->answer == ANSWER_ONE)
		code = function.one(device, values);
	else if (q->answer == ANSWER_OF_TYPE)
		code = function.of_type(device, q->type, values);
	else if (q->answer == ANSWER_BITS)
		code = function.bits(device, &wide);
	else if (q->answer == ANSWER_ERRORS)
		code = function.errors(device, q->type, ECC_SINCE_LOADED, &wide);
	else if (q->answer == ANSWER_OF_4)
		code = function.four(device, &values[0], &values[1], &values[2], &values[3]);
	else
		code = function.two(device, &values[0], &values[1]);
	const bool is_wide = q->answer == ANSWER_BITS || q->answer == ANSWER_ERRORS;
	const int which = q->answer == ANSWER_OF_4 ? q->type : q->answer == ANSWER_SECOND_OF_2;
	*number = is_wide ? (double)wide : values[which];
	return code;
}

/* In the unit of nvml.h.  A code, and NAN unless it is 0. */
static int ask_quantity(handle *device, enum nvml_quantity quantity, double *number)
{
	const struct question *q = &questions[quantity];
	const int code = q->function ? ask_function(device, q, functions[quantity], number)
				     : ask_memory(device, q->answer == ANSWER_MEMORY_TOTAL, number);
	if (code)
		*number = NAN;
	else if (q->times > 0)
		*number *= q->times;
	else if (q->per > 0)
		*number /= q->per;
	return code;
}

/* Device by device: the address may be written in a way that the library does not take. */
static int find_among_all(const char *bus, handle **device)
{
	unsigned count = 0;
	int code = nvml.count(&count);
	for (unsigned i = 0; i < count && !code && nvml.pci_info; i++) {
		struct nvml_pci_info info = {0};
		/* One that may not be looked at is another's. */
		if (nvml.handle(i, device) || nvml.pci_info(*device, &info))
			continue;
		info.text[sizeof info.text - 1] = '\0';
		if (nvml_same_bus(info.text, bus))
			return NVML_OK;
	}
	*device = NULL;
	return code ? code : NVML_NOT_FOUND;
}

/* The handle of a PCI address.  A code. */
static int find_device(const char *bus, handle **device)
{
	const int code = nvml.handle_of_bus ? nvml.handle_of_bus(bus, device) : NVML_NOT_FOUND;
	/* Of a device that is known but may not be used, this is the reason. */
	if (code == NVML_OK || code == NVML_NO_PERMISSION || code == NVML_GPU_IS_LOST)
		return code;
	return find_among_all(bus, device);
}

/* --- a node ----------------------------------------------------------------------------------- */

/* Asked on a thread of its own, which is waited for so long and no longer.  What it writes to belongs to both sides, and
 * goes with the last of them. */
struct inquiry {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned holders;
	bool done, left; /* left: nobody waits any more */
	int code;        /* as nvml_node_read returns */
	struct error err;
	struct nvml_node node;
};

static void release_inquiry(struct inquiry *q)
{
	(void)pthread_mutex_lock(&q->lock);
	const bool last = --q->holders == 0;
	(void)pthread_mutex_unlock(&q->lock);
	if (!last)
		return;
	(void)pthread_cond_destroy(&q->changed);
	(void)pthread_mutex_destroy(&q->lock);
	free(q);
}

const char *nvml_link_error_name(enum nvml_link_error kind)
{
	static const char *const names[NVML_LINK_ERRORS] = {
		"NVLink replays", "NVLink recoveries", "NVLink CRC errors"};
	return names[kind];
}

/* A device without NVLinks refuses the first. */
static void read_device_links(handle *device, struct nvml_device_facts *facts)
{
	/* of nvmlNvLinkErrorCounter_t */
	static const int kinds[NVML_LINK_ERRORS] = {0, 1, 2};
	facts->link_code = nvml.link_state ? NVML_OK : NVML_FUNCTION_NOT_FOUND;
	while (facts->link_count < NVML_LINKS_MAX && facts->link_code == NVML_OK) {
		const unsigned at = (unsigned)facts->link_count;
		struct nvml_link *link = &facts->links[at];
		int active = 0;
		const int code = nvml.link_state(device, at, &active);
		if (code) {
			facts->link_code = at == 0 ? code : NVML_OK;
			return;
		}
		link->active = active > 0;
		for (int kind = 0; kind < NVML_LINK_ERRORS; kind++) {
			unsigned long long count = 0;
			const bool known =
				nvml.link_errors &&
				nvml.link_errors(device, at, kinds[kind], &count) == NVML_OK;
			link->errors[kind] = known ? (double)count : (double)NAN;
		}
		facts->link_count++;
	}
}

static void read_device_texts(handle *device, struct nvml_device_facts *facts)
{
	if (!nvml.serial || nvml.serial(device, facts->serial, sizeof facts->serial))
		facts->serial[0] = '\0';
	if (!nvml.vbios || nvml.vbios(device, facts->vbios, sizeof facts->vbios))
		facts->vbios[0] = '\0';
	facts->serial[sizeof facts->serial - 1] = facts->vbios[sizeof facts->vbios - 1] = '\0';
}

static void read_node_device(unsigned index, struct nvml_device_facts *facts)
{
	handle *device = NULL;
	struct nvml_pci_info info = {0};
	const int code = nvml.handle(index, &device);
	if (code == NVML_OK && nvml.pci_info && nvml.pci_info(device, &info) == NVML_OK)
		(void)snprintf(facts->bus, sizeof facts->bus, "%.*s", (int)sizeof info.text - 1,
			info.text);
	if (code || !nvml.name || nvml.name(device, facts->name, sizeof facts->name))
		(void)snprintf(facts->name, sizeof facts->name, "unknown device");
	facts->name[sizeof facts->name - 1] = '\0';
	facts->link_code = code;
	if (!code) {
		read_device_texts(device, facts);
		read_device_links(device, facts);
	}
	for (int i = 0; i < NVML_QUANTITIES; i++) {
		struct nvml_value *value = &facts->values[i];
		const bool slow = i == NVML_PCIE_TO_DEVICE || i == NVML_PCIE_FROM_DEVICE;
		*value = (struct nvml_value){.number = NAN, .code = slow ? NVML_NOT_ASKED : code};
		if (!code && !slow)
			value->code = ask_quantity(device, (enum nvml_quantity)i, &value->number);
	}
}

static int read_nvml_node(struct nvml_node *node, struct error *err)
{
	unsigned count = 0;
	char why[ERROR_TEXT_BYTES / 2];
	if (!begin_nvml(why, sizeof why))
		return error_set(err, -ENODEV, "%s", why);
	if (nvml.driver_version && nvml.driver_version(node->driver, sizeof node->driver))
		node->driver[0] = '\0';
	int code = nvml.count(&count);
	node->count = count < DEVICES_MAX ? count : DEVICES_MAX;
	for (unsigned i = 0; i < node->count && !code; i++)
		read_node_device(i, &node->devices[i]);
	(void)nvml.shutdown();
	if (code)
		return error_set(
			err, -ENODEV, "NVML cannot count devices: %s", nvml_code_words(code));
	return count > 0 ? 0 : error_set(err, -ENODEV, "NVML sees no device");
}

static void *inquire(void *context)
{
	struct inquiry *q = context;
	struct error err = {0};
	struct nvml_node node = {0};
	const int code = read_nvml_node(&node, &err);
	(void)pthread_mutex_lock(&q->lock);
	q->node = node;
	q->err = err;
	q->code = code;
	q->done = true;
	const bool left = q->left;
	(void)pthread_cond_broadcast(&q->changed);
	(void)pthread_mutex_unlock(&q->lock);
	if (left)
		atomic_fetch_sub(&abandoned, 1);
	release_inquiry(q);
	return NULL;
}

static int await_inquiry(
	struct inquiry *q, uint64_t patience_ns, struct nvml_node *out, struct error *err)
{
	const uint64_t until_ns = clock_now_ns() + patience_ns;
	bool late = false;
	(void)pthread_mutex_lock(&q->lock);
	while (!q->done && !late)
		late = !wait_until(&q->changed, &q->lock, until_ns);
	q->left = !q->done;
	if (q->left)
		atomic_fetch_add(&abandoned, 1);
	const bool left = q->left;
	int code = q->code;
	if (!left)
		*out = q->node;
	if (!left && code)
		(void)error_set(err, code, "%s", q->err.text);
	(void)pthread_mutex_unlock(&q->lock);
	if (left)
		code = error_set(err, -ETIMEDOUT, "NVML does not answer within %.3g s",
			(double)patience_ns / (double)NS_PER_S);
	return code;
}

int nvml_node_read(struct nvml_node *out, uint64_t patience_ns, struct error *err)
{
	pthread_t thread;
	*out = (struct nvml_node){0};
	if (nvml_hangs())
		return error_set(err, -ETIMEDOUT, NVML_HANGS);
	struct inquiry *q = calloc(1, sizeof *q);
	if (!q || !open_nvml_lock(&q->lock, &q->changed)) {
		free(q);
		return error_set(err, -ENOMEM, "out of memory");
	}
	q->holders = 2;
	const int code = pthread_create(&thread, NULL, inquire, q);
	if (code) {
		q->holders = 1;
		release_inquiry(q);
		return error_set_errno(err, code, "cannot start a thread to ask NVML");
	}
	(void)pthread_detach(thread);
	const int result = await_inquiry(q, patience_ns, out, err);
	release_inquiry(q);
	return result;
}

/* --- samples over time ------------------------------------------------------------------------ */

const struct nvml_group nvml_quick = {
	.list = {NVML_SM_CLOCK, NVML_MEMORY_CLOCK, NVML_POWER, NVML_TEMPERATURE, NVML_THROTTLES,
		NVML_ECC_CORRECTED, NVML_ECC_UNCORRECTED, NVML_MEMORY_USED, NVML_KERNEL_RESIDENT},
	.count = 9,
};
const struct nvml_group nvml_slow = {
	.list = {NVML_PCIE_TO_DEVICE, NVML_PCIE_FROM_DEVICE},
	.count = 2,
};

int nvml_series_open(struct nvml_series *series, const struct nvml_group *group)
{
	*series = (struct nvml_series){
		.group = group, .samples = calloc(NVML_SAMPLES_MAX, sizeof *series->samples)};
	for (size_t i = 0; i < group->count; i++)
		series->codes[i] = NVML_NOT_ASKED;
	return series->samples ? 0 : -ENOMEM;
}

void nvml_series_close(struct nvml_series *series)
{
	free(series->samples);
	series->samples = NULL;
}

bool nvml_series_add(struct nvml_series *series, const struct nvml_sample *sample, const int *codes)
{
	const bool full = series->count == NVML_SAMPLES_MAX;
	if (full) {
		for (size_t i = 0; i < NVML_SAMPLES_MAX / 2; i++)
			series->samples[i] = series->samples[2 * i];
		series->count = NVML_SAMPLES_MAX / 2;
	}
	series->samples[series->count++] = *sample;
	for (size_t i = 0; i < series->group->count; i++)
		if (codes[i] != NVML_OK || series->codes[i] == NVML_NOT_ASKED)
			series->codes[i] = codes[i];
	return full;
}

struct nvml_span nvml_series_span(
	const struct nvml_series *series, uint64_t from_ns, uint64_t to_ns)
{
	size_t first = 0;
	size_t end = series->count;
	while (first < end && series->samples[first].t_ns < from_ns)
		first++;
	while (end > first && series->samples[end - 1].t_ns > to_ns)
		end--;
	return (struct nvml_span){.first = series->samples + first, .count = end - first};
}

size_t nvml_group_place(const struct nvml_group *group, enum nvml_quantity quantity)
{
	size_t i = 0;
	while (i < group->count && group->list[i] != quantity)
		i++;
	return i;
}

struct device_range nvml_span_range(const struct nvml_span *span, size_t place)
{
	struct device_range range = {NAN, NAN, NAN};
	double sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < span->count; i++) {
		const double value = span->first[i].values[place];
		if (isnan(value))
			continue;
		range.low = fmin(range.low, value); /* of a NAN and a number: the number */
		range.high = fmax(range.high, value);
		sum += value;
		known++;
	}
	range.mean = known > 0 ? sum / (double)known : NAN;
	return range;
}

double nvml_span_share(const struct nvml_span *span, size_t place, unsigned bit)
{
	size_t known = 0;
	size_t set = 0;
	for (size_t i = 0; i < span->count; i++) {
		const double value = span->first[i].values[place];
		if (isnan(value))
			continue;
		known++;
		set += (uint64_t)value >> bit & 1;
	}
	return known > 0 ? (double)set / (double)known : NAN;
}

double nvml_series_growth(
	const struct nvml_series *series, size_t place, uint64_t from_ns, uint64_t to_ns)
{
	double before = NAN;
	double after = NAN;
	for (size_t i = 0; i < series->count && series->samples[i].t_ns <= to_ns; i++) {
		const double value = series->samples[i].values[place];
		if (isnan(value))
			continue;
		if (isnan(before) || series->samples[i].t_ns <= from_ns)
			before = value;
		after = value;
	}
	return after >= before ? after - before : NAN;
}

/* --- the threads ------------------------------------------------------------------------------ */

enum nvml_pace { NVML_PACE_QUICK, NVML_PACE_SLOW, NVML_PACES };

/* One of the two threads: the quick one has NVML opened, the slow one waits for that. */
struct nvml_sampler {
	struct nvml_watch *watch;
	const struct nvml_group *group;
	uint64_t period_ns; /* grows where samples take much of it, or are thinned out */
	uint64_t cpu_ns;    /* what it has cost; under the lock */
	bool running;       /* under the lock */
	struct nvml_series series[DEVICES_MAX]; /* of each watched device; under the lock */
};

enum nvml_phase { NVML_PHASE_OPENING, NVML_PHASE_READY, NVML_PHASE_ABSENT };

struct nvml_watch {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Who still holds it: the starter and the threads; the last one frees it. */
	unsigned holders;
	enum nvml_phase phase;
	bool stopping;
	bool given_up;                  /* the starter waited no longer */
	char why[ERROR_TEXT_BYTES / 2]; /* ABSENT */
	char buses[DEVICES_MAX][32];
	size_t count;
	handle *devices[DEVICES_MAX]; /* NULL: not found, codes says why */
	int codes[DEVICES_MAX];
	double clock_max[DEVICES_MAX]; /* MHz; NAN */
	struct nvml_sampler samplers[NVML_PACES];
	uint64_t started_ns, stopped_ns;
};

/* --- under the lock --------------------------------------------------------------------------- */

static void lock_watch(struct nvml_watch *w)
{
	(void)pthread_mutex_lock(&w->lock);
}

static void unlock_watch(struct nvml_watch *w)
{
	(void)pthread_mutex_unlock(&w->lock);
}

static void release_watch(struct nvml_watch *w)
{
	lock_watch(w);
	const bool last = --w->holders == 0;
	unlock_watch(w);
	if (!last)
		return;
	for (size_t pace = 0; pace < NVML_PACES; pace++)
		for (size_t i = 0; i < w->count; i++)
			nvml_series_close(&w->samplers[pace].series[i]);
	(void)pthread_cond_destroy(&w->changed);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

static bool is_stopping(struct nvml_watch *w)
{
	lock_watch(w);
	const bool stopping = w->stopping;
	unlock_watch(w);
	return stopping;
}

/* --- sampling --------------------------------------------------------------------------------- */

/* Of the time, in calls; above it a sampler slows down. */
static const double SHARE_IN_CALLS_MOST = 0.1;
static const uint64_t PERIOD_MOST_NS = 60 * NS_PER_S;

static void ask_device(struct nvml_sampler *s, size_t device)
{
	struct nvml_watch *w = s->watch;
	const struct nvml_group *group = s->group;
	struct nvml_sample sample = {.t_ns = clock_now_ns()};
	int codes[NVML_GROUP_MAX] = {0};
	for (size_t i = 0; i < group->count; i++) {
		/* Only this thread writes codes. */
		codes[i] = s->series[device].codes[i];
		sample.values[i] = NAN;
		if (!is_final_code(codes[i]))
			codes[i] =
				ask_quantity(w->devices[device], group->list[i], &sample.values[i]);
	}
	lock_watch(w);
	if (nvml_series_add(&s->series[device], &sample, codes) && device == 0)
		s->period_ns = s->period_ns < PERIOD_MOST_NS ? 2 * s->period_ns : s->period_ns;
	s->cpu_ns = clock_thread_cpu_ns();
	unlock_watch(w);
}

/* Samples on a grid; one that was missed is left out. */
static void sample_all(struct nvml_sampler *s)
{
	struct nvml_watch *w = s->watch;
	uint64_t due_ns = clock_now_ns();
	while (!is_stopping(w)) {
		const uint64_t began_ns = clock_now_ns();
		for (size_t i = 0; i < w->count && !is_stopping(w); i++)
			if (w->devices[i])
				ask_device(s, i);
		const uint64_t now_ns = clock_now_ns();
		lock_watch(w);
		if ((double)(now_ns - began_ns) > SHARE_IN_CALLS_MOST * (double)s->period_ns &&
			s->period_ns < PERIOD_MOST_NS)
			s->period_ns *= 2;
		due_ns += (now_ns - due_ns) / s->period_ns * s->period_ns + s->period_ns;
		while (!w->stopping && wait_until(&w->changed, &w->lock, due_ns))
			continue;
		unlock_watch(w);
	}
}

/* --- opening, on the quick thread ------------------------------------------------------------- */

static void enter_nvml_phase(struct nvml_watch *w, enum nvml_phase phase, const char *why)
{
	lock_watch(w);
	w->phase = phase;
	(void)snprintf(w->why, sizeof w->why, "%s", why);
	(void)pthread_cond_broadcast(&w->changed);
	unlock_watch(w);
}

static bool open_nvml(struct nvml_watch *w)
{
	char why[sizeof w->why];
	if (!begin_nvml(why, sizeof why)) {
		enter_nvml_phase(w, NVML_PHASE_ABSENT, why);
		return false;
	}
	for (size_t i = 0; i < w->count; i++) {
		w->codes[i] = find_device(w->buses[i], &w->devices[i]);
		w->clock_max[i] = NAN;
		if (w->codes[i])
			w->devices[i] = NULL;
		else
			(void)ask_quantity(w->devices[i], NVML_SM_CLOCK_MAX, &w->clock_max[i]);
	}
	enter_nvml_phase(w, NVML_PHASE_READY, "");
	return true;
}

static bool await_nvml(struct nvml_watch *w)
{
	lock_watch(w);
	while (w->phase == NVML_PHASE_OPENING && !w->stopping)
		(void)pthread_cond_wait(&w->changed, &w->lock);
	const bool ready = w->phase == NVML_PHASE_READY;
	unlock_watch(w);
	return ready;
}

static bool is_last_sampler(const struct nvml_watch *w)
{
	unsigned running = 0;
	for (size_t i = 0; i < NVML_PACES; i++)
		running += w->samplers[i].running;
	return running == 1;
}

/* The last of the threads has NVML closed.  One that nobody waits for any more says that it is back. */
static void end_sampler(struct nvml_sampler *s)
{
	struct nvml_watch *w = s->watch;
	lock_watch(w);
	if (is_last_sampler(w) && w->phase == NVML_PHASE_READY) {
		unlock_watch(w);
		(void)nvml.shutdown();
		lock_watch(w);
	}
	s->running = false;
	const bool back = w->given_up;
	(void)pthread_cond_broadcast(&w->changed);
	unlock_watch(w);
	if (back)
		atomic_fetch_sub(&abandoned, 1);
}

static void *run_sampler(void *context)
{
	struct nvml_sampler *s = context;
	struct nvml_watch *w = s->watch;
	if (s->group == &nvml_quick ? open_nvml(w) : await_nvml(w))
		sample_all(s);
	end_sampler(s);
	release_watch(w);
	return NULL;
}

/* --- from outside ----------------------------------------------------------------------------- */

static int open_watch(struct nvml_watch **out, const struct nvml_watch_options *o)
{
	struct nvml_watch *w = calloc(1, sizeof *w);
	if (!w || !open_nvml_lock(&w->lock, &w->changed)) {
		free(w);
		return -ENOMEM;
	}
	w->holders = 1;
	w->count = o->count < DEVICES_MAX ? o->count : DEVICES_MAX;
	int code = 0;
	for (size_t pace = 0; pace < NVML_PACES; pace++) {
		struct nvml_sampler *s = &w->samplers[pace];
		s->watch = w;
		s->group = pace == NVML_PACE_QUICK ? &nvml_quick : &nvml_slow;
		s->period_ns = pace == NVML_PACE_QUICK ? o->period_ns : o->pcie_period_ns;
		for (size_t i = 0; i < w->count && !code; i++)
			code = nvml_series_open(&s->series[i], s->group);
	}
	for (size_t i = 0; i < w->count; i++) {
		(void)snprintf(w->buses[i], sizeof w->buses[i], "%s", o->buses[i]);
		w->codes[i] = NVML_NOT_ASKED;
	}
	if (code)
		release_watch(w);
	*out = code ? NULL : w;
	return code;
}

/* Who starts a sampler holds the lock, so that it sees all that was started. */
static int start_sampler(struct nvml_sampler *s)
{
	pthread_t thread;
	s->running = true;
	s->watch->holders++;
	const int code = pthread_create(&thread, NULL, run_sampler, s);
	if (code) {
		s->running = false;
		s->watch->holders--;
		return -code;
	}
	(void)pthread_setname_np(thread, "mlb-nvml");
	(void)pthread_detach(thread);
	return 0;
}

int nvml_watch_start(
	struct nvml_watch **out, const struct nvml_watch_options *options, struct error *err)
{
	int code = open_watch(out, options);
	if (code)
		return error_set(err, code, "out of memory for the samples of NVML");
	struct nvml_watch *w = *out;
	w->started_ns = clock_now_ns();
	if (nvml_hangs()) {
		enter_nvml_phase(w, NVML_PHASE_ABSENT, NVML_HANGS);
		return 0;
	}
	lock_watch(w);
	for (size_t i = 0; i < NVML_PACES && !code; i++)
		code = start_sampler(&w->samplers[i]);
	w->stopping = code;
	(void)pthread_cond_broadcast(&w->changed);
	unlock_watch(w);
	if (!code)
		return 0;
	release_watch(w);
	*out = NULL;
	return error_set_errno(err, -code, "cannot start a thread to ask NVML");
}

void nvml_watch_stop(struct nvml_watch *w, uint64_t patience_ns)
{
	const uint64_t until_ns = clock_now_ns() + patience_ns;
	lock_watch(w);
	w->stopping = true;
	w->stopped_ns = clock_now_ns();
	(void)pthread_cond_broadcast(&w->changed);
	for (size_t i = 0; i < NVML_PACES; i++) {
		while (w->samplers[i].running &&
			(wait_until(&w->changed, &w->lock, until_ns) || clock_now_ns() < until_ns))
			continue;
		w->given_up = w->given_up || w->samplers[i].running;
	}
	for (size_t i = 0; w->given_up && i < NVML_PACES; i++)
		if (w->samplers[i].running)
			atomic_fetch_add(&abandoned, 1);
	unlock_watch(w);
}

void nvml_watch_free(struct nvml_watch *w)
{
	if (w)
		release_watch(w);
}

/* --- from samples to a measurement ------------------------------------------------------------ */

/* A window's value is no older than so many periods. */
enum { STALE_PERIODS = 3, NAMES_BYTES = 160 };

/* What the ranges of a device (device_ranges) are of. */
static const enum nvml_quantity range_quantities[DEVICE_RANGES] = {NVML_SM_CLOCK, NVML_MEMORY_CLOCK,
	NVML_POWER, NVML_TEMPERATURE, NVML_MEMORY_USED, NVML_PCIE_TO_DEVICE, NVML_PCIE_FROM_DEVICE};

static struct device_range *device_range_at(struct device_measurement *d, size_t i)
{
	return (void *)((char *)d + device_ranges[i].offset);
}

void nvml_forget(struct device_measurement *d)
{
	for (size_t i = 0; i < DEVICE_RANGES; i++)
		*device_range_at(d, i) = (struct device_range){NAN, NAN, NAN};
	d->sm_clock_max_mhz = NAN;
	d->busy_share = NAN;
	d->ecc_corrected = d->ecc_uncorrected = NAN;
	d->throttle_count = 0;
	d->samples = 0;
}

static int by_falling_share(const void *a, const void *b)
{
	const double one = ((const struct device_throttle *)a)->share;
	const double other = ((const struct device_throttle *)b)->share;
	return one < other ? 1 : one > other ? -1 : 0;
}

static void fill_throttles(const struct nvml_span *span, struct device_measurement *d)
{
	struct device_throttle found[NVML_THROTTLE_BITS];
	const size_t place = nvml_group_place(&nvml_quick, NVML_THROTTLES);
	size_t count = 0;
	for (unsigned bit = 0; bit < NVML_THROTTLE_BITS; bit++) {
		const char *name = nvml_throttle_name(bit);
		const double share = nvml_span_share(span, place, bit);
		if (!name || !(share > 0))
			continue;
		(void)snprintf(found[count].reason, sizeof found[count].reason, "%s", name);
		found[count++].share = share;
	}
	qsort(found, count, sizeof *found, by_falling_share);
	d->throttle_count = count < THROTTLES_MAX ? count : THROTTLES_MAX;
	memcpy(d->throttles, found, d->throttle_count * sizeof *found);
}

static void fill_watched(struct nvml_watch *w, size_t i, uint64_t from_ns, uint64_t to_ns,
	struct device_measurement *d)
{
	const struct nvml_series *quick = &w->samplers[NVML_PACE_QUICK].series[i];
	const struct nvml_span span = nvml_series_span(quick, from_ns, to_ns);
	const struct nvml_span copies =
		nvml_series_span(&w->samplers[NVML_PACE_SLOW].series[i], from_ns, to_ns);
	const size_t resident = nvml_group_place(&nvml_quick, NVML_KERNEL_RESIDENT);
	for (size_t k = 0; k < DEVICE_RANGES; k++) {
		const size_t place = nvml_group_place(&nvml_quick, range_quantities[k]);
		*device_range_at(d, k) =
			place < nvml_quick.count
				? nvml_span_range(&span, place)
				: nvml_span_range(&copies,
					  nvml_group_place(&nvml_slow, range_quantities[k]));
	}
	d->samples = (double)span.count;
	d->sm_clock_max_mhz = w->clock_max[i];
	d->busy_share = nvml_span_range(&span, resident).mean;
	d->ecc_corrected = nvml_series_growth(
		quick, nvml_group_place(&nvml_quick, NVML_ECC_CORRECTED), from_ns, to_ns);
	d->ecc_uncorrected = nvml_series_growth(
		quick, nvml_group_place(&nvml_quick, NVML_ECC_UNCORRECTED), from_ns, to_ns);
	fill_throttles(&span, d);
}

/* --- what is missing -------------------------------------------------------------------------- */

/* Of one quantity: no sample of the span has it. */
static bool lacks_quantity(const struct nvml_span *span, size_t place)
{
	return isnan(nvml_span_range(span, place).mean);
}

static int reason_code(const struct nvml_series *series, size_t place)
{
	return series->codes[place] == NVML_OK ? NVML_NOT_ASKED : series->codes[place];
}

/* The quantities from `place` on that are missing for the same reason, marked as told. */
static void gather_missing(const struct nvml_series *series, const struct nvml_span *span,
	size_t place, bool told[NVML_GROUP_MAX], char *names, size_t room)
{
	size_t used = 0;
	for (size_t k = place; k < series->group->count; k++) {
		if (told[k] || reason_code(series, k) != reason_code(series, place) ||
			!lacks_quantity(span, k))
			continue;
		told[k] = true;
		if (used < room)
			used += (size_t)snprintf(names + used, room - used, "%s%s",
				used ? ", " : "", nvml_quantity_name(series->group->list[k]));
	}
}

static void note_missing(const struct nvml_series *series, uint64_t from_ns, uint64_t to_ns,
	unsigned index, struct measurement *m)
{
	bool told[NVML_GROUP_MAX] = {false};
	char names[NAMES_BYTES];
	const struct nvml_span span = nvml_series_span(series, from_ns, to_ns);
	for (size_t place = 0; place < series->group->count; place++) {
		if (told[place] || !lacks_quantity(&span, place))
			continue;
		const int code = reason_code(series, place);
		gather_missing(series, &span, place, told, names, sizeof names);
		measurement_note(m, "device %u: %s unknown: %s", index, names,
			code == NVML_NOT_ASKED ? "no sample fell into the measured part"
					       : nvml_code_words(code));
	}
}

/* In decades, so that repetitions say the same: the next of 0.01, 0.1, 1, 10 and 100 %. */
static double cost_percent(const struct nvml_watch *w)
{
	const double wall = (double)(w->stopped_ns - w->started_ns);
	double cpu = 0;
	double bound = 0.01;
	for (size_t i = 0; i < NVML_PACES; i++)
		cpu += (double)w->samplers[i].cpu_ns;
	while (wall > 0 && 100 * cpu / wall > bound)
		bound *= 10;
	return bound;
}

static void note_cost(const struct nvml_watch *w, struct measurement *m)
{
	measurement_note(m, "NVML: sampled every %.3g s%s; it took at most %.3g %% of a core",
		(double)w->samplers[NVML_PACE_QUICK].period_ns / (double)NS_PER_S,
		w->given_up ? " until a call did not come back" : "", cost_percent(w));
}

static size_t find_watched(const struct nvml_watch *w, const char *bus)
{
	size_t i = 0;
	while (i < w->count && !nvml_same_bus(w->buses[i], bus))
		i++;
	return i;
}

static void fill_ready(
	struct nvml_watch *w, uint64_t from_ns, uint64_t to_ns, struct measurement *m)
{
	for (size_t i = 0; i < m->device_count; i++) {
		struct device_measurement *d = &m->devices[i];
		const size_t at = find_watched(w, d->bus);
		if (at == w->count)
			continue;
		if (!w->devices[at]) {
			measurement_note(m, "device %u: NVML does not show '%s': %s", d->index,
				d->bus, nvml_code_words(w->codes[at]));
			continue;
		}
		fill_watched(w, at, from_ns, to_ns, d);
		for (size_t pace = 0; pace < NVML_PACES; pace++)
			note_missing(&w->samplers[pace].series[at], from_ns, to_ns, d->index, m);
	}
	note_cost(w, m);
}

void nvml_watch_fill(struct nvml_watch *w, uint64_t from_ns, uint64_t to_ns, struct measurement *m)
{
	for (size_t i = 0; i < m->device_count; i++)
		nvml_forget(&m->devices[i]);
	(void)pthread_mutex_lock(&w->lock);
	if (w->phase == NVML_PHASE_READY)
		fill_ready(w, from_ns, to_ns, m);
	else
		measurement_note(m,
			"clocks, power, temperature and throttling of the device unknown: %s",
			w->phase == NVML_PHASE_ABSENT ? w->why
						      : "NVML did not start within the run");
	(void)pthread_mutex_unlock(&w->lock);
}

void nvml_watch_window(struct nvml_watch *w, uint64_t t_ns, struct window *window)
{
	const struct nvml_sampler *quick = &w->samplers[NVML_PACE_QUICK];
	const struct nvml_sample *latest = NULL;
	window->device_clock_mhz = window->device_power_w = window->device_temperature_c = NAN;
	(void)pthread_mutex_lock(&w->lock);
	const uint64_t oldest_ns = STALE_PERIODS * quick->period_ns;
	const struct nvml_span span =
		nvml_series_span(&quick->series[0], t_ns > oldest_ns ? t_ns - oldest_ns : 0, t_ns);
	if (w->count > 0 && span.count > 0)
		latest = &span.first[span.count - 1];
	if (latest) {
		const struct nvml_group *group = &nvml_quick;
		window->device_clock_mhz =
			(float)latest->values[nvml_group_place(group, NVML_SM_CLOCK)];
		window->device_power_w = (float)latest->values[nvml_group_place(group, NVML_POWER)];
		window->device_temperature_c =
			(float)latest->values[nvml_group_place(group, NVML_TEMPERATURE)];
	}
	(void)pthread_mutex_unlock(&w->lock);
}

size_t nvml_watch_series(struct nvml_watch *w, size_t index, enum nvml_quantity quantity,
	uint64_t from_ns, uint64_t to_ns, double *t_s, double *values, size_t room)
{
	const size_t place = nvml_group_place(&nvml_quick, quantity);
	size_t count = 0;
	if (index >= w->count || place == nvml_quick.count || room == 0)
		return 0;
	(void)pthread_mutex_lock(&w->lock);
	const struct nvml_span span =
		nvml_series_span(&w->samplers[NVML_PACE_QUICK].series[index], from_ns, to_ns);
	const size_t stride = (span.count + room - 1) / room;
	for (size_t i = 0; i < span.count; i += stride) {
		if (isnan(span.first[i].values[place]))
			continue;
		t_s[count] = (double)(span.first[i].t_ns - from_ns) / (double)NS_PER_S;
		values[count++] = span.first[i].values[place];
	}
	(void)pthread_mutex_unlock(&w->lock);
	return count;
}
