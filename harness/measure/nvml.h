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
 * that precision (harness/analyze/device_summary.c, each with its source), within a step
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

/* A quantity of the quick group, of the device whose bus is the index-th of the options, between two moments: seconds since
 * from_ns, and values.  Where it was not known there is nothing; of more than room, evenly many.  Returns how many. */
size_t nvml_watch_series(struct nvml_watch *watch, size_t index, enum nvml_quantity quantity,
	uint64_t from_ns, uint64_t to_ns, double *t_s, double *values, size_t room);

/* After the stop.  The first device's latest sample before t_ns, as far as it is not too old. */
void nvml_watch_window(struct nvml_watch *watch, uint64_t t_ns, struct window *window);

/* Whether calls that somebody gave up waiting for have not come back: while there are, nothing new
 * is begun. */
bool nvml_hangs(void);

void nvml_watch_free(struct nvml_watch *watch); /* NULL is fine */

/* NVML's part of a device, all unknown. */
void nvml_forget(struct device_measurement *device);

/* --- within measure: samples ------------------------------------------------------------------ */

/* Samples of one group of quantities of one device, in bounded memory: when all places are used, every
 * second sample is dropped. */

enum { NVML_SAMPLES_MAX = 1024, NVML_GROUP_MAX = 9 };

/* Quantities that are asked together. */
struct nvml_group {
	enum nvml_quantity list[NVML_GROUP_MAX];
	size_t count;
};
extern const struct nvml_group nvml_quick, nvml_slow; /* slow: PCIe throughput */

struct nvml_sample {
	uint64_t t_ns;
	double values[NVML_GROUP_MAX]; /* in the group's order; NAN: not known */
};

struct nvml_series {
	const struct nvml_group *group;
	struct nvml_sample *samples; /* (NVML_SAMPLES_MAX); owned */
	size_t count;
	int codes[NVML_GROUP_MAX]; /* the latest that was not OK, or OK */
};

int nvml_series_open(struct nvml_series *series, const struct nvml_group *group); /* 0 or -ENOMEM */
void nvml_series_close(struct nvml_series *series);                               /* safe on {0} */
/* True: every second one was dropped to make room. */
bool nvml_series_add(
	struct nvml_series *series, const struct nvml_sample *sample, const int *codes);

/* Those between two moments. */
struct nvml_span {
	const struct nvml_sample *first;
	size_t count;
};
struct nvml_span nvml_series_span(
	const struct nvml_series *series, uint64_t from_ns, uint64_t to_ns);

/* Where a quantity is in a group; the group's count: nowhere. */
size_t nvml_group_place(const struct nvml_group *group, enum nvml_quantity quantity);

struct device_range nvml_span_range(const struct nvml_span *span, size_t place);
/* Share of the known samples that have a bit set; NAN: none is known. */
double nvml_span_share(const struct nvml_span *span, size_t place, unsigned bit);
/* What a count grew by from the last sample before from_ns (or the first there is) to the last before
 * to_ns; NAN: not known, or it went backwards. */
double nvml_series_growth(
	const struct nvml_series *series, size_t place, uint64_t from_ns, uint64_t to_ns);

#endif
