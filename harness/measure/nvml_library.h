/* NVML's functions as far as they are asked, from its public reference: declared here, since the header
 * comes with neither the driver nor every toolkit.  Internal to measure. */
#ifndef MLBENCH_MEASURE_NVML_LIBRARY_H
#define MLBENCH_MEASURE_NVML_LIBRARY_H

#include "harness/measure/nvml.h"

/* nvmlReturn_t: the ones that are told apart.  The negative one is ours. */
enum nvml_code {
	NVML_NOT_ASKED = -1,
	NVML_OK = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_IRQ_ISSUE = 11,
	NVML_LIBRARY_NOT_FOUND = 12,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_CORRUPTED_INFOROM = 14,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_OPERATING_SYSTEM = 17,
	NVML_VERSION_MISMATCH = 18,
	NVML_IN_USE = 19,
	NVML_MEMORY = 20,
	NVML_NO_DATA = 21,
	NVML_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_UNKNOWN = 999,
};

struct nvml_handle; /* nvmlDevice_t points to one */

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
/* nvmlUtilization_t, percent */
struct nvml_utilization {
	unsigned gpu, memory;
};

/* A function that the library lacks is NULL, but for the ones that all the rest needs. */
struct nvml_library {
	int (*init)(void);
	int (*shutdown)(void);
	int (*driver_version)(char *text, unsigned room);
	int (*count)(unsigned *count);
	int (*handle)(unsigned index, struct nvml_handle **device);
	int (*handle_of_bus)(const char *bus, struct nvml_handle **device);
	int (*name)(struct nvml_handle *device, char *text, unsigned room);
	int (*pci_info)(struct nvml_handle *device, struct nvml_pci_info *info);
	int (*clock)(struct nvml_handle *device, int type, unsigned *mhz);
	int (*clock_max)(struct nvml_handle *device, int type, unsigned *mhz);
	int (*power)(struct nvml_handle *device, unsigned *milliwatt);
	int (*power_limit)(struct nvml_handle *device, unsigned *milliwatt);
	int (*power_limits)(struct nvml_handle *device, unsigned *least, unsigned *most);
	int (*temperature)(struct nvml_handle *device, int sensor, unsigned *celsius);
	int (*throttles)(struct nvml_handle *device, unsigned long long *bits);
	int (*ecc_errors)(
		struct nvml_handle *device, int type, int counter, unsigned long long *count);
	int (*ecc_mode)(struct nvml_handle *device, unsigned *current, unsigned *pending);
	int (*memory)(struct nvml_handle *device, struct nvml_memory *memory);
	int (*memory_2)(struct nvml_handle *device, struct nvml_memory_2 *memory);
	int (*utilization)(struct nvml_handle *device, struct nvml_utilization *share);
	int (*pcie_throughput)(struct nvml_handle *device, int counter, unsigned *kbytes_per_s);
	int (*pcie_generation)(struct nvml_handle *device, unsigned *generation);
	int (*pcie_generation_max)(struct nvml_handle *device, unsigned *generation);
	int (*pcie_width)(struct nvml_handle *device, unsigned *lanes);
	int (*pcie_width_max)(struct nvml_handle *device, unsigned *lanes);
	int (*persistence)(struct nvml_handle *device, unsigned *mode);
	int (*mig_mode)(struct nvml_handle *device, unsigned *current, unsigned *pending);
};

/* Opens the library, once in a process and for good; NULL with the reason. */
const struct nvml_library *nvml_library_open(char *why, size_t room);

/* The handle of a PCI address.  A code. */
int nvml_find(const struct nvml_library *library, const char *bus, struct nvml_handle **device);

/* One quantity of a device, in the unit of nvml.h.  A code, and NAN unless it is 0. */
int nvml_ask(const struct nvml_library *library, struct nvml_handle *device,
	enum nvml_quantity quantity, double *number);

/* Whether asking again can give nothing else. */
bool nvml_code_is_final(int code);

/* Calls of NVML that somebody gave up waiting for and that have not come back: while there are, nothing
 * new is begun. */
void nvml_abandon(void);
void nvml_come_back(void);
bool nvml_hangs(void);
/* The reason then. */
#define NVML_HANGS "an earlier call of NVML has not come back: the driver hangs"

#endif
