/* One quantity at a time: each is a short function from a handle to a number, in the units of nvml.h. */
#include "harness/measure/nvml_library.h"

#include <math.h>
#include <stdio.h>

static const double KBYTES = 1000; /* "KB/s" of the reference */
static const double PERCENT = 100;
static const double MILLIWATTS = 1000;

/* Values of NVML's enumerations. */
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };
enum { SENSOR_GPU = 0 };
enum { ERRORS_CORRECTED = 0, ERRORS_UNCORRECTED = 1 };
enum { ECC_SINCE_LOADED = 0 };             /* NVML_VOLATILE_ECC */
enum { PCIE_SENT = 0, PCIE_RECEIVED = 1 }; /* by the device */

typedef struct nvml_handle handle;
typedef const struct nvml_library library;

/* The two shapes that most questions have. */
static int ask_unsigned(int (*function)(handle *, unsigned *), handle *device, double *number)
{
	unsigned value = 0;
	const int code = function ? function(device, &value) : NVML_FUNCTION_NOT_FOUND;
	*number = value;
	return code;
}

static int ask_clock(
	int (*function)(handle *, int, unsigned *), handle *device, int type, double *mhz)
{
	unsigned value = 0;
	const int code = function ? function(device, type, &value) : NVML_FUNCTION_NOT_FOUND;
	*mhz = value;
	return code;
}

static int sm_clock(library *l, handle *device, double *mhz)
{
	return ask_clock(l->clock, device, CLOCK_SM, mhz);
}

static int memory_clock(library *l, handle *device, double *mhz)
{
	return ask_clock(l->clock, device, CLOCK_MEMORY, mhz);
}

static int sm_clock_max(library *l, handle *device, double *mhz)
{
	return ask_clock(l->clock_max, device, CLOCK_SM, mhz);
}

static int memory_clock_max(library *l, handle *device, double *mhz)
{
	return ask_clock(l->clock_max, device, CLOCK_MEMORY, mhz);
}

static int power(library *l, handle *device, double *watts)
{
	const int code = ask_unsigned(l->power, device, watts);
	*watts /= MILLIWATTS;
	return code;
}

static int power_limit(library *l, handle *device, double *watts)
{
	const int code = ask_unsigned(l->power_limit, device, watts);
	*watts /= MILLIWATTS;
	return code;
}

static int power_limit_max(library *l, handle *device, double *watts)
{
	unsigned least = 0;
	unsigned most = 0;
	const int code =
		l->power_limits ? l->power_limits(device, &least, &most) : NVML_FUNCTION_NOT_FOUND;
	*watts = most / MILLIWATTS;
	return code;
}

static int temperature(library *l, handle *device, double *celsius)
{
	return ask_clock(l->temperature, device, SENSOR_GPU, celsius);
}

static int throttles(library *l, handle *device, double *bits)
{
	unsigned long long value = 0;
	const int code = l->throttles ? l->throttles(device, &value) : NVML_FUNCTION_NOT_FOUND;
	*bits = (double)value;
	return code;
}

static int ecc_errors(library *l, handle *device, int type, double *count)
{
	unsigned long long value = 0;
	const int code = l->ecc_errors ? l->ecc_errors(device, type, ECC_SINCE_LOADED, &value)
				       : NVML_FUNCTION_NOT_FOUND;
	*count = (double)value;
	return code;
}

static int ecc_corrected(library *l, handle *device, double *count)
{
	return ecc_errors(l, device, ERRORS_CORRECTED, count);
}

static int ecc_uncorrected(library *l, handle *device, double *count)
{
	return ecc_errors(l, device, ERRORS_UNCORRECTED, count);
}

/* The newer question counts what the driver keeps for itself apart from what is used. */
static int memory(library *l, handle *device, double *used, double *total)
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

static int memory_used(library *l, handle *device, double *bytes)
{
	double total;
	return memory(l, device, bytes, &total);
}

static int memory_total(library *l, handle *device, double *bytes)
{
	double used;
	return memory(l, device, &used, bytes);
}

static int kernel_resident(library *l, handle *device, double *share)
{
	struct nvml_utilization value = {0};
	const int code = l->utilization ? l->utilization(device, &value) : NVML_FUNCTION_NOT_FOUND;
	*share = value.gpu / PERCENT;
	return code;
}

static int pcie_throughput(library *l, handle *device, int counter, double *bytes_per_s)
{
	const int code = ask_clock(l->pcie_throughput, device, counter, bytes_per_s);
	*bytes_per_s *= KBYTES;
	return code;
}

static int pcie_to_device(library *l, handle *device, double *bytes_per_s)
{
	return pcie_throughput(l, device, PCIE_RECEIVED, bytes_per_s);
}

static int pcie_from_device(library *l, handle *device, double *bytes_per_s)
{
	return pcie_throughput(l, device, PCIE_SENT, bytes_per_s);
}

static int pcie_generation(library *l, handle *device, double *generation)
{
	return ask_unsigned(l->pcie_generation, device, generation);
}

static int pcie_generation_max(library *l, handle *device, double *generation)
{
	return ask_unsigned(l->pcie_generation_max, device, generation);
}

static int pcie_width(library *l, handle *device, double *lanes)
{
	return ask_unsigned(l->pcie_width, device, lanes);
}

static int pcie_width_max(library *l, handle *device, double *lanes)
{
	return ask_unsigned(l->pcie_width_max, device, lanes);
}

static int persistence(library *l, handle *device, double *on)
{
	int mode = 0;
	const int code = l->persistence ? l->persistence(device, &mode) : NVML_FUNCTION_NOT_FOUND;
	*on = mode;
	return code;
}

static int ecc_mode(library *l, handle *device, double *on)
{
	int current = 0;
	int pending = 0;
	const int code =
		l->ecc_mode ? l->ecc_mode(device, &current, &pending) : NVML_FUNCTION_NOT_FOUND;
	*on = current;
	return code;
}

static int mig_mode(library *l, handle *device, double *on)
{
	unsigned current = 0;
	unsigned pending = 0;
	const int code =
		l->mig_mode ? l->mig_mode(device, &current, &pending) : NVML_FUNCTION_NOT_FOUND;
	*on = current;
	return code;
}

static const struct question {
	const char *name, *unit;
	int (*ask)(library *l, handle *device, double *number);
} questions[NVML_QUANTITIES] = {
	[NVML_SM_CLOCK] = {"SM clock", "MHz", sm_clock},
	[NVML_MEMORY_CLOCK] = {"memory clock", "MHz", memory_clock},
	[NVML_POWER] = {"power", "W", power},
	[NVML_TEMPERATURE] = {"temperature", "C", temperature},
	[NVML_THROTTLES] = {"throttle reasons", "", throttles},
	[NVML_ECC_CORRECTED] = {"corrected memory errors", "", ecc_corrected},
	[NVML_ECC_UNCORRECTED] = {"uncorrected memory errors", "", ecc_uncorrected},
	[NVML_MEMORY_USED] = {"memory used", "B", memory_used},
	[NVML_KERNEL_RESIDENT] = {"share with a kernel resident", "", kernel_resident},
	[NVML_PCIE_TO_DEVICE] = {"PCIe to device", "B/s", pcie_to_device},
	[NVML_PCIE_FROM_DEVICE] = {"PCIe from device", "B/s", pcie_from_device},
	[NVML_SM_CLOCK_MAX] = {"highest SM clock", "MHz", sm_clock_max},
	[NVML_MEMORY_CLOCK_MAX] = {"highest memory clock", "MHz", memory_clock_max},
	[NVML_POWER_LIMIT] = {"power limit", "W", power_limit},
	[NVML_POWER_LIMIT_MAX] = {"highest power limit", "W", power_limit_max},
	[NVML_MEMORY_TOTAL] = {"memory", "B", memory_total},
	[NVML_PCIE_GENERATION] = {"PCIe generation", "", pcie_generation},
	[NVML_PCIE_GENERATION_MAX] = {"highest PCIe generation", "", pcie_generation_max},
	[NVML_PCIE_WIDTH] = {"PCIe lanes", "", pcie_width},
	[NVML_PCIE_WIDTH_MAX] = {"most PCIe lanes", "", pcie_width_max},
	[NVML_PERSISTENCE] = {"persistence mode", "", persistence},
	[NVML_ECC_MODE] = {"ECC mode", "", ecc_mode},
	[NVML_MIG_MODE] = {"MIG mode", "", mig_mode},
};

const char *nvml_quantity_name(enum nvml_quantity quantity)
{
	return questions[quantity].name;
}

const char *nvml_quantity_unit(enum nvml_quantity quantity)
{
	return questions[quantity].unit;
}

int nvml_ask(library *l, handle *device, enum nvml_quantity quantity, double *number)
{
	const int code = questions[quantity].ask(l, device, number);
	if (code)
		*number = NAN;
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
