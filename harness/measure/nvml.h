/* What the NVIDIA driver knows of a device beside our own event times: clocks, power, temperature, why the
 * clocks were held down, memory errors, PCIe.  NVML (libnvidia-ml.so.1) is opened at run time, and each
 * quantity is optional: what cannot be had has a reason in words.
 *
 * Any call of NVML may block, some do by design.  None is made on a caller's thread: readers here wait
 * for a stated time and no longer. */
#ifndef MLBENCH_MEASURE_NVML_H
#define MLBENCH_MEASURE_NVML_H

#include "harness/base/error.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nvml_quantity {
	/* sampled over a run */
	NVML_SM_CLOCK,      /* MHz */
	NVML_MEMORY_CLOCK,  /* MHz */
	NVML_POWER,         /* W; since Ampere (but for GA100) the driver's mean over a second */
	NVML_TEMPERATURE,   /* of the die, C */
	NVML_THROTTLES,     /* why the clocks are held down: a set of bits, nvml_throttle_name */
	NVML_ECC_CORRECTED, /* memory errors since the driver was loaded */
	NVML_ECC_UNCORRECTED,
	NVML_MEMORY_USED,     /* bytes, by all processes */
	NVML_KERNEL_RESIDENT, /* share of the driver's last sample period that a kernel was resident */
	NVML_PCIE_TO_DEVICE, /* bytes/s, over 20 ms that the call takes */
	NVML_PCIE_FROM_DEVICE,
	/* facts */
	NVML_SM_CLOCK_MAX,        /* MHz */
	NVML_MEMORY_CLOCK_MAX,    /* MHz */
	NVML_POWER_LIMIT,         /* W, enforced */
	NVML_POWER_LIMIT_MAX,     /* W, that may be set */
	NVML_MEMORY_TOTAL,        /* bytes */
	NVML_PCIE_GENERATION,     /* of the link now: it may be lower while the device is idle */
	NVML_PCIE_GENERATION_MAX, /* of device and slot together */
	NVML_PCIE_WIDTH,          /* lanes now */
	NVML_PCIE_WIDTH_MAX,
	NVML_PERSISTENCE, /* 1: the driver stays loaded without a client */
	NVML_ECC_MODE,    /* 1: on */
	NVML_MIG_MODE,    /* 1: the device is split */
	/* rows of memory that were put in the place of bad ones, over the device's life; since Ampere */
	NVML_ROWS_CORRECTED,
	NVML_ROWS_UNCORRECTED,
	NVML_ROWS_PENDING, /* 1: a reset is needed for one */
	NVML_ROWS_FAILED,  /* 1: no row is left for one */
	NVML_QUANTITIES,
	NVML_FACTS_FIRST = NVML_SM_CLOCK_MAX,
};

/* Codes are of enum nvml_code; 0: known. */
struct nvml_value {
	double number; /* NAN: not known */
	int code;
};

enum nvml_link_error { NVML_LINK_REPLAYS, NVML_LINK_RECOVERIES, NVML_LINK_CRC, NVML_LINK_ERRORS };
const char *nvml_link_error_name(enum nvml_link_error kind); /* "replays" */

struct nvml_link {
	bool active;
	double errors[NVML_LINK_ERRORS]; /* since the driver was loaded; NAN: not known */
};
enum { NVML_LINKS_MAX = 18 };

struct nvml_device_facts {
	char name[64], bus[32];
	char serial[32],
		vbios[32]; /* ""; not known: a board of a consumer's has no serial number */
	struct nvml_value values[NVML_QUANTITIES];
	struct nvml_link links[NVML_LINKS_MAX]; /* its NVLinks, whether active or not */
	size_t link_count;
	int link_code; /* why there are none; NVML_OK: there are */
};

struct nvml_node {
	char driver[80]; /* version; "" */
	size_t count;
	struct nvml_device_facts devices[DEVICES_MAX];
};

enum { NVML_PATIENCE_S = 10 }; /* a driver that is not loaded yet takes seconds */

/* Everything that NVML says at this moment of all devices, PCIe throughput apart (NAN).  -ENODEV: NVML is
 * not there, or has no device; -ETIMEDOUT: it does not answer. */
int nvml_node_read(struct nvml_node *out, uint64_t patience_ns, struct error *err);

/* "SM clock", "MHz" ("" where it has none). */
const char *nvml_quantity_name(enum nvml_quantity quantity);
const char *nvml_quantity_unit(enum nvml_quantity quantity);
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
/* What a code says: "not supported by this device". */
const char *nvml_code_words(int code);
/* Why the clocks are held down, by bit: "power cap"; NULL: none of the reasons that count ("idle" is no
 * throttling). */
const char *nvml_throttle_name(unsigned bit);
enum { NVML_THROTTLE_BITS = 64 };
/* Adds the names of a set's reasons, "power cap, thermal"; "" where there is none. */
void nvml_throttle_names(double bits, char *out, size_t room);

/* Whether two PCI addresses are one: CUDA writes "0000:3b:00.0", NVML "00000000:3B:00.0". */
bool nvml_same_bus(const char *one, const char *other);

/* Whether calls that somebody gave up waiting for have not come back: while there are, nothing new
 * is begun. */
bool nvml_hangs(void);

#endif
