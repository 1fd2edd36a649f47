/* What the NVIDIA driver knows of a device beside our own event times: clocks, power, temperature, why the
 * clocks were held down, memory errors, PCIe.  NVML (libnvidia-ml.so.1) is opened at run time, and each
 * quantity is optional: what cannot be had has a reason in words.
 *
 * Any call of NVML may block, some do by design.  None is made on a caller's thread: readers here wait
 * for a stated time and no longer.
 *
 * NVML knows clocks, power, temperature, memory,
 * PCIe traffic, why the clocks were held down, and memory errors. It is opened at run time and
 * asked by two threads of its own, ten times a second and, for PCIe (a call that takes 20 ms by
 * design), once a second; where the calls take more than a tenth of the time, less often. What
 * they cost is measured and noted. A run never waits for them: what has not come back one second
 * after the end is given up, said, and nothing more is asked while it hangs. Samples are cut to
 * the measured part like everything else; memory errors are counted as what came in during it.
 * Each quantity may be missing, with the driver's reason. NVML's utilisation says in what share of
 * the driver's own sample period some kernel was resident, one thread of one block being enough:
 * a device can show 100 % at a twentieth of its speed. It is kept as kernel_resident_share, and
 * no verdict looks at it. How busy a device is, is said by FLOPs: those of the model's products
 * are known exactly, and their rate is compared with the published dense peak of that device at
 * that precision (harness/analyze/device_summary.h, each with its source), within a step
 * (peak_share) and over all time (model_utilisation). A device that is not in the table has no
 * peak, and no share is printed. */
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
	NVML_QUANTITIES,
	NVML_FACTS_FIRST = NVML_SM_CLOCK_MAX,
};

/* Codes are nvmlReturn_t's; 0: known. */
struct nvml_value {
	double number; /* NAN: not known */
	int code;
};

struct nvml_device_facts {
	char name[64], bus[32];
	struct nvml_value values[NVML_QUANTITIES];
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

/* --- over a run ------------------------------------------------------------------------------- */

enum {
	NVML_PERIOD_MS = 100,       /* of a sample, at least */
	NVML_PCIE_PERIOD_MS = 1000, /* of PCIe throughput, which takes 40 ms a device */
	NVML_STOP_PATIENCE_MS = 1000,
};

struct nvml_watch_options {
	char buses[DEVICES_MAX][32]; /* PCI addresses of the devices to watch */
	size_t count;                /* at most DEVICES_MAX */
	uint64_t period_ns, pcie_period_ns;
};

struct nvml_watch;

/* Begins to sample, on threads of its own; returns at once: that NVML is not there is found out there, and
 * said by nvml_watch_fill.  -ENOMEM, -EAGAIN (no thread); *out is NULL then. */
int nvml_watch_start(
	struct nvml_watch **out, const struct nvml_watch_options *options, struct error *err);

/* Ends the sampling; at the latest after patience_ns, whatever a call does.  Once, by the thread that
 * started. */
void nvml_watch_stop(struct nvml_watch *watch, uint64_t patience_ns);

/* After the stop.  Fills NVML's part of each device of m whose bus is watched, from the samples between
 * two moments; what is missing becomes NAN, and a note says why.  Also notes what the sampling cost. */
void nvml_watch_fill(
	struct nvml_watch *watch, uint64_t from_ns, uint64_t to_ns, struct measurement *m);

/* After the stop.  The first device's latest sample before t_ns, as far as it is not too old. */
void nvml_watch_window(struct nvml_watch *watch, uint64_t t_ns, struct window *window);

void nvml_watch_free(struct nvml_watch *watch); /* NULL is fine */

/* NVML's part of a device, all unknown. */
void nvml_forget(struct device_measurement *device);

#endif
