/* Opening NVML, and its codes in words.  Names with a version are asked for first, the older ones second. */
#include "harness/measure/nvml_library.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVML_FILE "libnvidia-ml.so.1"
#define COUNT(array) (sizeof(array) / sizeof(array)[0])
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

static bool resolve(void *library, char *why, size_t room)
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

static bool load(char *why, size_t room)
{
	void *library = dlopen(NVML_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *reason = dlerror();
		(void)snprintf(why, room, "no NVML: %s", reason ? reason : NVML_FILE);
		return false;
	}
	if (resolve(library, why, room))
		return true;
	(void)dlclose(library);
	return false;
}

const struct nvml_library *nvml_library_open(char *why, size_t room)
{
	(void)pthread_mutex_lock(&loading);
	is_loaded = is_loaded || load(why, room);
	const bool there = is_loaded;
	(void)pthread_mutex_unlock(&loading);
	return there ? &loaded : NULL;
}

/* --- words --------------------------------------------------------------------------------------- */

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

/* --- addresses ----------------------------------------------------------------------------------- */

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

/* --- calls that do not come back ------------------------------------------------------------------- */

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
