/* What a burn runs at the same time, on threads of its own with memory that is bounded before they start: on each core one
 * that decodes and one that multiplies, which share it; one that keeps each device multiplying; direct reads of a file; and a file that is written, read back past
 * the cache and judged, again and again.  Every result is compared. */
#ifndef MLBENCH_CHECKS_BURN_LOADS_H
#define MLBENCH_CHECKS_BURN_LOADS_H

#include "harness/base/error.h"
#include "harness/checks/checked_file.h"
#include "harness/checks/core_list.h"
#include "harness/checks/corruption.h"
#include "harness/checks/fixed_work.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum burn_load {
	BURN_DECODE,
	BURN_GEMM,
	BURN_READ,
	BURN_WRITE,
	BURN_LOADS, /* that a plan names; and the part of gemm that devices compute: */
	BURN_DEVICE = BURN_LOADS,
	BURN_KINDS
};
const char *burn_load_name(enum burn_load load); /* "decode" */
#define BURN_BIT(load) (1U << (load))

enum { BURN_READERS = 4, BURN_REQUEST_BYTES = 256 << 10, BURN_FINDINGS_MAX = 16 };

struct cuda_found;

struct burn_loads_plan {
	unsigned loads; /* BURN_BITs */
	const struct core_list *cores;
	const struct fixed_work *work; /* with the items of the loads that compute */
	/* (items) What results must be equal to; NULL: it is not known, and they are not compared. */
	const void *const *right;
	const char *scratch;
	uint64_t read_bytes, write_bytes; /* of the files */
	const atomic_bool *stop;          /* the user's: preparing ends, too */
	const struct corruptions *corruptions;
	const struct cuda_found *found; /* whose devices multiply; NULL: none */
};

struct burn_finding {
	enum burn_load load;
	unsigned core; /* of loads that compute; a device */
	uint64_t at_ns;
	char text[FIXED_WHERE_BYTES + FIXED_NAME_BYTES];
};

struct burn_loads;

/* Makes the files; then burn_loads_go starts the threads.  A load that cannot run has its reason in burn_loads_why, and the
 * others run.  0; -ENOMEM, -EAGAIN: not enough threads.  After a failure there is nothing to release. */
int burn_loads_open(struct burn_loads **out, const struct burn_loads_plan *plan, struct error *err);
int burn_loads_go(struct burn_loads *loads, struct error *err);

/* --- while they run ------------------------------------------------------------------------------ */

/* So far: pictures, FLOP, bytes; core: index into plan->cores, of loads that compute; a device. */
uint64_t burn_loads_done(const struct burn_loads *loads, enum burn_load load);
uint64_t burn_loads_done_on(const struct burn_loads *loads, enum burn_load load, size_t core);
/* The clock of a core by a loop of dependent additions, MHz; 0: it was not measured yet. */
double burn_loads_clock(const struct burn_loads *loads, size_t core);
/* Why a load does not run (any more); "" : it does. */
void burn_loads_why(const struct burn_loads *loads, enum burn_load load, char *out, size_t room);

/* --- at the end ---------------------------------------------------------------------------------- */

/* Ends them; waits for 10 s at most, after the user's stop for less than one.  False: a thread still waits for the storage; it
 * is left alone, with all its memory, until the process ends, and burn_loads_why says so. */
bool burn_loads_stop(struct burn_loads *loads);

uint64_t burn_loads_wrong_on(const struct burn_loads *loads, size_t core); /* results */
/* Of a device, against what most results of all devices of its name are; a finding says where they were wrong.  checked: of so many. */
uint64_t burn_loads_wrong_on_device(struct burn_loads *loads, unsigned device, uint64_t *checked);
/* Blocks that came back wrong, of the read load or the write load. */
uint64_t burn_loads_wrong_blocks(const struct burn_loads *loads, enum burn_load load);
uint64_t burn_loads_checked(const struct burn_loads *loads, enum burn_load load);
/* The first few; returns how many. */
size_t burn_loads_findings(
	const struct burn_loads *loads, struct burn_finding out[BURN_FINDINGS_MAX]);

void burn_loads_close(struct burn_loads *loads); /* after burn_loads_stop was true; NULL is fine */

#endif
