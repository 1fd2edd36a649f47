/* What NVML says now: opening it, its codes in words, one quantity at a time, and a whole node.  Functions with a version
 * in their name are looked up first, the older ones second. */
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
#define AT(member) offsetof(struct nvml_library, member)

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
	{AT(clock), false, "nvmlDeviceGetClockInfo", NULL},
	{AT(clock_max), false, "nvmlDeviceGetMaxClockInfo", NULL},
	{AT(power), false, "nvmlDeviceGetPowerUsage", NULL},
	{AT(power_limit), false, "nvmlDeviceGetEnforcedPowerLimit",
		"nvmlDeviceGetPowerManagementLimit"},
	{AT(power_limits), false, "nvmlDeviceGetPowerManagementLimitConstraints", NULL},
	{AT(temperature), false, "nvmlDeviceGetTemperature", NULL},
	{AT(throttles), false, "nvmlDeviceGetCurrentClocksEventReasons",
		"nvmlDeviceGetCurrentClocksThrottleReasons"},
	{AT(ecc_errors), false, "nvmlDeviceGetTotalEccErrors", NULL},
	{AT(ecc_mode), false, "nvmlDeviceGetEccMode", NULL},
	{AT(memory), false, "nvmlDeviceGetMemoryInfo", NULL},
	{AT(memory_2), false, "nvmlDeviceGetMemoryInfo_v2", NULL},
	{AT(utilization), false, "nvmlDeviceGetUtilizationRates", NULL},
	{AT(pcie_throughput), false, "nvmlDeviceGetPcieThroughput", NULL},
	{AT(pcie_generation), false, "nvmlDeviceGetCurrPcieLinkGeneration", NULL},
	{AT(pcie_generation_max), false, "nvmlDeviceGetMaxPcieLinkGeneration", NULL},
	{AT(pcie_width), false, "nvmlDeviceGetCurrPcieLinkWidth", NULL},
	{AT(pcie_width_max), false, "nvmlDeviceGetMaxPcieLinkWidth", NULL},
	{AT(persistence), false, "nvmlDeviceGetPersistenceMode", NULL},
	{AT(mig_mode), false, "nvmlDeviceGetMigMode", NULL},
};

static struct nvml_library loaded;
static bool is_loaded;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static bool resolve_nvml(void *library, char *why, size_t room)
{
	for (size_t i = 0; i < COUNT(symbols); i++) {
		void *address = dlsym(library, symbols[i].name);
		if (!address && symbols[i].older)
			address = dlsym(library, symbols[i].older);
		if (!address && symbols[i].needed) {
			(void)snprintf(why, room, "%s has no %s", NVML_FILE, symbols[i].name);
			return false;
		}
		/* All pointers are of one size here, to data and to functions. */
		memcpy((char *)&loaded + symbols[i].offset, &address, sizeof address);
	}
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

const struct nvml_library *nvml_library_open(char *why, size_t room)
{
	(void)pthread_mutex_lock(&loading);
	is_loaded = is_loaded || load_nvml(why, room);
	const bool there = is_loaded;
	(void)pthread_mutex_unlock(&loading);
	return there ? &loaded : NULL;
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

static atomic_int abandoned;

void nvml_abandon(void)
{
	atomic_fetch_add(&abandoned, 1);
}

void nvml_come_back(void)
{
	atomic_fetch_sub(&abandoned, 1);
}

bool nvml_hangs(void)
{
	return atomic_load(&abandoned) > 0;
}

/* --- one quantity of a device ----------------------------------------------------------------- */

typedef struct nvml_handle handle;
typedef const struct nvml_library library;

/* Values of NVML's enumerations. */
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };
enum { SENSOR_GPU = 0 };
enum { ERRORS_CORRECTED = 0, ERRORS_UNCORRECTED = 1 };
enum { ECC_SINCE_LOADED = 0 };             /* NVML_VOLATILE_ECC */
enum { PCIE_SENT = 0, PCIE_RECEIVED = 1 }; /* by the device */

/* A function's arguments behind the device, and which of its answers is meant. */
enum answer { ANSWER_ONE, ANSWER_OF_TYPE, ANSWER_FIRST_OF_2, ANSWER_SECOND_OF_2, ANSWER_OTHER };

static int ask_throttles(library *l, handle *device, double *bits)
{
	unsigned long long value = 0;
	const int code = l->throttles ? l->throttles(device, &value) : NVML_FUNCTION_NOT_FOUND;
	*bits = (double)value;
	return code;
}

static int ask_ecc_errors(library *l, handle *device, int type, double *count)
{
	unsigned long long value = 0;
	const int code = l->ecc_errors ? l->ecc_errors(device, type, ECC_SINCE_LOADED, &value)
				       : NVML_FUNCTION_NOT_FOUND;
	*count = (double)value;
	return code;
}

static int ask_ecc_corrected(library *l, handle *device, double *count)
{
	return ask_ecc_errors(l, device, ERRORS_CORRECTED, count);
}

static int ask_ecc_uncorrected(library *l, handle *device, double *count)
{
	return ask_ecc_errors(l, device, ERRORS_UNCORRECTED, count);
}

/* The newer question counts what the driver keeps for itself apart from what is used. */
static int ask_memory(library *l, handle *device, double *used, double *total)
{
	enum { VERSION = 2, VERSION_SHIFT = 24 };
	struct nvml_memory_2 now = {
		.version = (unsigned)sizeof now | (unsigned)VERSION << VERSION_SHIFT};
	struct nvml_memory old = {0};
	int code = l->memory_2 ? l->memory_2(device, &now) : NVML_FUNCTION_NOT_FOUND;
	*used = (double)now.used;
	*total = (double)now.total;
	if (code != NVML_FUNCTION_NOT_FOUND && code != NVML_ARGUMENT_VERSION_MISMATCH)
		return code;
	code = l->memory ? l->memory(device, &old) : NVML_FUNCTION_NOT_FOUND;
	*used = (double)old.used;
	*total = (double)old.total;
	return code;
}

static int ask_memory_used(library *l, handle *device, double *bytes)
{
	double total;
	return ask_memory(l, device, bytes, &total);
}

static int ask_memory_total(library *l, handle *device, double *bytes)
{
	double used;
	return ask_memory(l, device, &used, bytes);
}

static int ask_kernel_resident(library *l, handle *device, double *percent)
{
	struct nvml_utilization value = {0};
	const int code = l->utilization ? l->utilization(device, &value) : NVML_FUNCTION_NOT_FOUND;
	*percent = value.gpu;
	return code;
}

/* The questions: a function of the library, and how its answer gets into nvml.h's unit. */
static const struct question {
	const char *name, *unit;
	enum answer answer;
	size_t function;   /* its offset in struct nvml_library */
	int type;          /* ANSWER_OF_TYPE */
	double times, per; /* what the answer is multiplied with and divided by; 0: not */
	int (*ask)(library *l, handle *device, double *number); /* ANSWER_OTHER */
} questions[NVML_QUANTITIES] = {
	[NVML_SM_CLOCK] = {"SM clock", "MHz", ANSWER_OF_TYPE, AT(clock), CLOCK_SM},
	[NVML_MEMORY_CLOCK] = {"memory clock", "MHz", ANSWER_OF_TYPE, AT(clock), CLOCK_MEMORY},
	[NVML_POWER] = {"power", "W", ANSWER_ONE, AT(power), .per = 1000},
	[NVML_TEMPERATURE] = {"temperature", "C", ANSWER_OF_TYPE, AT(temperature), SENSOR_GPU},
	[NVML_THROTTLES] = {"throttle reasons", "", ANSWER_OTHER, .ask = ask_throttles},
	[NVML_ECC_CORRECTED] = {"corrected memory errors", "", ANSWER_OTHER,
		.ask = ask_ecc_corrected},
	[NVML_ECC_UNCORRECTED] = {"uncorrected memory errors", "", ANSWER_OTHER,
		.ask = ask_ecc_uncorrected},
	[NVML_MEMORY_USED] = {"memory used", "B", ANSWER_OTHER, .ask = ask_memory_used},
	[NVML_KERNEL_RESIDENT] = {"share with a kernel resident", "", ANSWER_OTHER, .per = 100,
		.ask = ask_kernel_resident},
	/* "KB/s" of the reference: 1000 */
	[NVML_PCIE_TO_DEVICE] = {"PCIe to device", "B/s", ANSWER_OF_TYPE, AT(pcie_throughput),
		PCIE_RECEIVED, .times = 1000},
	[NVML_PCIE_FROM_DEVICE] = {"PCIe from device", "B/s", ANSWER_OF_TYPE, AT(pcie_throughput),
		PCIE_SENT, .times = 1000},
	[NVML_SM_CLOCK_MAX] = {"highest SM clock", "MHz", ANSWER_OF_TYPE, AT(clock_max), CLOCK_SM},
	[NVML_MEMORY_CLOCK_MAX] = {"highest memory clock", "MHz", ANSWER_OF_TYPE, AT(clock_max),
		CLOCK_MEMORY},
	[NVML_POWER_LIMIT] = {"power limit", "W", ANSWER_ONE, AT(power_limit), .per = 1000},
	[NVML_POWER_LIMIT_MAX] = {"highest power limit", "W", ANSWER_SECOND_OF_2, AT(power_limits),
		.per = 1000},
	[NVML_MEMORY_TOTAL] = {"memory", "B", ANSWER_OTHER, .ask = ask_memory_total},
	[NVML_PCIE_GENERATION] = {"PCIe generation", "", ANSWER_ONE, AT(pcie_generation)},
	[NVML_PCIE_GENERATION_MAX] = {"highest PCIe generation", "", ANSWER_ONE,
		AT(pcie_generation_max)},
	[NVML_PCIE_WIDTH] = {"PCIe lanes", "", ANSWER_ONE, AT(pcie_width)},
	[NVML_PCIE_WIDTH_MAX] = {"most PCIe lanes", "", ANSWER_ONE, AT(pcie_width_max)},
	[NVML_PERSISTENCE] = {"persistence mode", "", ANSWER_ONE, AT(persistence)},
	[NVML_ECC_MODE] = {"ECC mode", "", ANSWER_FIRST_OF_2, AT(ecc_mode)},
	[NVML_MIG_MODE] = {"MIG mode", "", ANSWER_FIRST_OF_2, AT(mig_mode)},
};

const char *nvml_quantity_name(enum nvml_quantity quantity)
{
	return questions[quantity].name;
}

const char *nvml_quantity_unit(enum nvml_quantity quantity)
{
	return questions[quantity].unit;
}

static int ask_numbers(library *l, handle *device, const struct question *q, double *number)
{
	union {
		void *address;
		int (*one)(handle *, unsigned *);
		int (*of_type)(handle *, int, unsigned *);
		int (*two)(handle *, unsigned *, unsigned *);
	} function;
	unsigned values[2] = {0};
	memcpy(&function.address, (const char *)l + q->function, sizeof function.address);
	if (!function.address)
		return NVML_FUNCTION_NOT_FOUND;
	const int code = q->answer == ANSWER_ONE ? function.one(device, &values[0])
			 : q->answer == ANSWER_OF_TYPE
				 ? function.of_type(device, q->type, &values[0])
				 : function.two(device, &values[0], &values[1]);
	*number = values[q->answer == ANSWER_SECOND_OF_2];
	return code;
}

int nvml_ask(library *l, handle *device, enum nvml_quantity quantity, double *number)
{
	const struct question *q = &questions[quantity];
	const int code = q->answer == ANSWER_OTHER ? q->ask(l, device, number)
						   : ask_numbers(l, device, q, number);
	if (code)
		*number = NAN;
	else if (q->times > 0)
		*number *= q->times;
	else if (q->per > 0)
		*number /= q->per;
	return code;
}

/* Device by device: the address may be written in a way that the library does not take. */
static int find_among_all(library *l, const char *bus, handle **device)
{
	unsigned count = 0;
	int code = l->count(&count);
	for (unsigned i = 0; i < count && !code && l->pci_info; i++) {
		struct nvml_pci_info info = {0};
		/* One that may not be looked at is another's. */
		if (l->handle(i, device) || l->pci_info(*device, &info))
			continue;
		info.text[sizeof info.text - 1] = '\0';
		if (nvml_same_bus(info.text, bus))
			return NVML_OK;
	}
	*device = NULL;
	return code ? code : NVML_NOT_FOUND;
}

int nvml_find(library *l, const char *bus, handle **device)
{
	const int code = l->handle_of_bus ? l->handle_of_bus(bus, device) : NVML_NOT_FOUND;
	/* Of a device that is known but may not be used, this is the reason. */
	if (code == NVML_OK || code == NVML_NO_PERMISSION || code == NVML_GPU_IS_LOST)
		return code;
	return find_among_all(l, bus, device);
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

static void read_node_device(
	const struct nvml_library *l, unsigned index, struct nvml_device_facts *facts)
{
	struct nvml_handle *device = NULL;
	struct nvml_pci_info info = {0};
	const int code = l->handle(index, &device);
	if (code == NVML_OK && l->pci_info && l->pci_info(device, &info) == NVML_OK)
		(void)snprintf(facts->bus, sizeof facts->bus, "%.*s", (int)sizeof info.text - 1,
			info.text);
	if (code || !l->name || l->name(device, facts->name, sizeof facts->name))
		(void)snprintf(facts->name, sizeof facts->name, "unknown device");
	facts->name[sizeof facts->name - 1] = '\0';
	for (int i = 0; i < NVML_QUANTITIES; i++) {
		struct nvml_value *value = &facts->values[i];
		const bool slow = i == NVML_PCIE_TO_DEVICE || i == NVML_PCIE_FROM_DEVICE;
		*value = (struct nvml_value){.number = NAN, .code = slow ? NVML_NOT_ASKED : code};
		if (!code && !slow)
			value->code = nvml_ask(l, device, (enum nvml_quantity)i, &value->number);
	}
}

static int read_nvml_node(const struct nvml_library *l, struct nvml_node *node, struct error *err)
{
	unsigned count = 0;
	int code = l->init();
	if (code)
		return error_set(err, -ENODEV, "NVML does not start: %s", nvml_code_words(code));
	if (l->driver_version && l->driver_version(node->driver, sizeof node->driver))
		node->driver[0] = '\0';
	code = l->count(&count);
	node->count = count < DEVICES_MAX ? count : DEVICES_MAX;
	for (unsigned i = 0; i < node->count && !code; i++)
		read_node_device(l, i, &node->devices[i]);
	(void)l->shutdown();
	if (code)
		return error_set(
			err, -ENODEV, "NVML cannot count devices: %s", nvml_code_words(code));
	return count > 0 ? 0 : error_set(err, -ENODEV, "NVML sees no device");
}

static void *inquire(void *context)
{
	struct inquiry *q = context;
	struct error err = {0};
	char why[ERROR_TEXT_BYTES / 2];
	struct nvml_node node = {0};
	const struct nvml_library *l = nvml_library_open(why, sizeof why);
	const int code = l ? read_nvml_node(l, &node, &err) : error_set(&err, -ENODEV, "%s", why);
	(void)pthread_mutex_lock(&q->lock);
	q->node = node;
	q->err = err;
	q->code = code;
	q->done = true;
	const bool left = q->left;
	(void)pthread_cond_broadcast(&q->changed);
	(void)pthread_mutex_unlock(&q->lock);
	if (left)
		nvml_come_back();
	release_inquiry(q);
	return NULL;
}

static struct inquiry *open_inquiry(void)
{
	struct inquiry *q = calloc(1, sizeof *q);
	pthread_condattr_t attributes;
	if (!q || pthread_mutex_init(&q->lock, NULL) || pthread_condattr_init(&attributes)) {
		free(q);
		return NULL;
	}
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&q->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	q->holders = 2;
	return q;
}

static int await_inquiry(
	struct inquiry *q, uint64_t patience_ns, struct nvml_node *out, struct error *err)
{
	const uint64_t until = clock_now_ns() + patience_ns;
	const struct timespec at = {
		.tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S)};
	int late = 0;
	(void)pthread_mutex_lock(&q->lock);
	while (!q->done && !late)
		late = pthread_cond_timedwait(&q->changed, &q->lock, &at);
	q->left = !q->done;
	if (q->left)
		nvml_abandon();
	int code = q->code;
	if (!q->left) {
		*out = q->node;
		if (code)
			(void)error_set(err, code, "%s", q->err.text);
	}
	const bool left = q->left;
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
	struct inquiry *q = open_inquiry();
	if (!q)
		return error_set(err, -ENOMEM, "out of memory");
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
