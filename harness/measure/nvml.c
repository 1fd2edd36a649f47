/* What NVML says: opening it, its codes in words, one quantity at a time, and a whole node.  Only threads of this file and of
 * nvml_watch.c call NVML.  Whoever started them waits for a stated time and then leaves them what they hold. */
#include "harness/measure/nvml.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/measure/nvml_calls.h"

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

bool nvml_begin(char *why, size_t room)
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

void nvml_end(void)
{
	(void)nvml.shutdown();
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

bool nvml_code_is_final(int code)
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

static atomic_int abandoned; /* that somebody gave up waiting for */

bool nvml_hangs(void)
{
	return atomic_load(&abandoned) > 0;
}

void nvml_give_up(void)
{
	atomic_fetch_add(&abandoned, 1);
}

void nvml_came_back(void)
{
	atomic_fetch_sub(&abandoned, 1);
}

bool nvml_lock_open(pthread_mutex_t *lock, pthread_cond_t *changed)
{
	pthread_condattr_t attributes;
	if (pthread_mutex_init(lock, NULL) || pthread_condattr_init(&attributes))
		return false;
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	return true;
}

bool nvml_wait_until(pthread_cond_t *changed, pthread_mutex_t *lock, uint64_t t_ns)
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

int nvml_ask(handle *device, enum nvml_quantity quantity, double *number)
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

int nvml_find_device(const char *bus, handle **device)
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
			value->code = nvml_ask(device, (enum nvml_quantity)i, &value->number);
	}
}

static int read_nvml_node(struct nvml_node *node, struct error *err)
{
	unsigned count = 0;
	char why[ERROR_TEXT_BYTES / 2];
	if (!nvml_begin(why, sizeof why))
		return error_set(err, -ENODEV, "%s", why);
	if (nvml.driver_version && nvml.driver_version(node->driver, sizeof node->driver))
		node->driver[0] = '\0';
	int code = nvml.count(&count);
	node->count = count < DEVICES_MAX ? count : DEVICES_MAX;
	for (unsigned i = 0; i < node->count && !code; i++)
		read_node_device(i, &node->devices[i]);
	nvml_end();
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
		nvml_came_back();
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
		late = !nvml_wait_until(&q->changed, &q->lock, until_ns);
	q->left = !q->done;
	if (q->left)
		nvml_give_up();
	const bool left = q->left;
	int code = q->code;
	if (!left)
		*out = q->node;
	if (!left && code)
		(void)error_set(err, code, "%s", q->err.text);
	(void)pthread_mutex_unlock(&q->lock);
	if (left)
		code = error_set(err, -ETIMEDOUT, "NVML does not answer within %s s",
			UNITS_PLAIN((double)patience_ns / (double)NS_PER_S, 3));
	return code;
}

int nvml_node_read(struct nvml_node *out, uint64_t patience_ns, struct error *err)
{
	pthread_t thread;
	*out = (struct nvml_node){0};
	if (nvml_hangs())
		return error_set(err, -ETIMEDOUT, NVML_HANGS);
	struct inquiry *q = calloc(1, sizeof *q);
	if (!q || !nvml_lock_open(&q->lock, &q->changed)) {
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
