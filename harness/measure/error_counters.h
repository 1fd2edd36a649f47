/* What the hardware counts of its own errors, read once: memory (EDAC), machine checks, PCIe (AER), disks, network links,
 * GPUs with their NVLinks (NVML), and lines of the kernel's log that speak of hardware.  A class that this node does not
 * count has the reason in words: nothing counted is not the same as no error.
 *
 * Over a time: read before and after, and error_counter_growth of each counter of the second reading. */
#ifndef MLBENCH_MEASURE_ERROR_COUNTERS_H
#define MLBENCH_MEASURE_ERROR_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum error_class {
	ERRORS_MEMORY,        /* EDAC: memory controllers and their modules */
	ERRORS_MACHINE_CHECK, /* interrupts of machine checks */
	ERRORS_PCIE,          /* Advanced Error Reporting of each PCI device */
	ERRORS_DISK,       /* SCSI requests, ext4, md; NVMe's media errors, over the disk's life */
	ERRORS_LINK,       /* RDMA ports and network adapters */
	ERRORS_GPU,        /* memory and NVLinks; asks NVML, which takes up to NVML_PATIENCE_S */
	ERRORS_KERNEL_LOG, /* lines of the kernel's log */
	ERROR_CLASSES
};
const char *error_class_name(enum error_class class); /* "memory (EDAC)" */
#define ERROR_CLASS_BIT(class) (1U << (class))
#define ERRORS_ALL ((1U << ERROR_CLASSES) - 1U)
/* What costs a few ms and never asks a driver: for reading every few seconds. */
#define ERRORS_QUICK (ERRORS_ALL & ~ERROR_CLASS_BIT(ERRORS_GPU))

enum {
	ERROR_NAME_BYTES = 48,
	ERROR_PLACE_BYTES = 64,
	ERROR_EVIDENCE_BYTES = 160,
	ERROR_COUNTERS_MAX = 8192,
	ERROR_WHY_BYTES = 160,
};

struct error_counter {
	enum error_class class;
	char name[ERROR_NAME_BYTES]; /* "corrected memory errors", "RxErr", "Xid" */
	char place
		[ERROR_PLACE_BYTES]; /* "DIMM_A1 (mc0)", "PCI 0000:3b:00.0", "device 0 NVLink 3"; "" */
	bool corrected;              /* no data were lost: retried, or mended by a code */
	uint64_t count;              /* since the node started, if not said otherwise above */
	char evidence[ERROR_EVIDENCE_BYTES]; /* KERNEL_LOG: the latest such line; else "" */
};

struct error_counters {
	struct error_counter
		*list; /* owned; counters that stand at 0 are summed up, place by place */
	size_t count, room;
	unsigned read; /* ERROR_CLASS_BITs of what was asked for */
	/* Why a class that was asked for is not counted here, "no EDAC: ..."; "": it is. */
	char why[ERROR_CLASSES][ERROR_WHY_BYTES];
	uint64_t log_next; /* of the log: the sequence number behind its latest record */
	bool log_lost; /* the log has dropped records since `before` (NULL: since the start), or has more than are looked at */
	bool cut;      /* there are more than ERROR_COUNTERS_MAX */
};

/* Reads the classes of a set of ERROR_CLASS_BITs into *out, which need not be initialised.  root: in front of /sys, /proc
 * and /dev, "" but in tests.  before: NULL, or an earlier reading: of the log only later records are counted.  -ENOMEM
 * only, nothing is to be released then.  Any thread; files are read, so that a dead disk's driver may hold it up. */
int error_counters_read(const char *root, unsigned classes, const struct error_counters *before,
	struct error_counters *out);
void error_counters_release(struct error_counters *counters); /* safe on {0} */

/* By how much a counter of a later reading has risen since `before`; one that was reset meanwhile: by what it shows now;
 * one of a class that could not be read before: 0. */
uint64_t error_counter_growth(
	const struct error_counters *before, const struct error_counter *counter);

#endif
