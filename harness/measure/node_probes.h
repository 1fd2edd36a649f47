/* What all probes of a node's ceilings share: their bounds, repeats that become a median with its
 * range, and a crew of threads on cores of their own.
 *
 * A probe measures in rounds: each round visits every quantity once, so that what disturbs the node
 * for a while disturbs them alike.  A probe returns 0, -EINTR when it was stopped (what it has
 * measured is kept), or another negative errno when nothing could be had; single quantities that
 * could not are lines of ceilings.missing. */
#ifndef MLBENCH_MEASURE_NODE_PROBES_H
#define MLBENCH_MEASURE_NODE_PROBES_H

#include "harness/base/error.h"
#include "harness/record/ceilings.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* --- probes ----------------------------------------------------------------------------------- */

enum { PROBE_ROUNDS = 5, PROBE_ROUNDS_MAX = 16, PROBE_WHY_BYTES = 160 };

struct probe_control {
	const atomic_bool *stop; /* may be NULL; true: end within half a second */
	unsigned rounds;         /* 1 .. PROBE_ROUNDS_MAX */
	uint64_t slot_ns;        /* of one quantity in one round */
	uint64_t
		deadline_ns; /* of the whole probe, clock_now_ns; 0: none.  Time over: fewer rounds */
};

bool probe_stopped(const struct probe_control *control);   /* by the user */
bool probe_time_over(const struct probe_control *control); /* or at the deadline */

/* When a slot that begins now ends: after slot_ns, at the latest at the deadline. */
uint64_t probe_slot_end(const struct probe_control *control, uint64_t now);

struct probe_values {
	double at[PROBE_ROUNDS_MAX];
	unsigned count;
};
void probe_add(struct probe_values *values, double value); /* NAN is not added */
/* Their median, NAN without any; range may be NULL. */
double probe_median(const struct probe_values *values, struct ceiling_range *range);

/* Cores that this process may use now. */
unsigned probe_cores(void);

/* Bytes of memory that may still be taken: of the node, less where a cgroup has less; 0: not known. */
double probe_free_memory(void);

/* Runs work(context, index) for index 0 .. threads-1, each on a thread of its own, begun together.
 * pinned: thread i on the i-th core that the process may use (left to the kernel where it refuses).
 * Signals are left to the calling thread.  -EAGAIN: not all threads could be had; none then works. */
typedef void probe_work(void *context, unsigned index);
int probe_crew(unsigned threads, bool pinned, probe_work *work, void *context, struct error *err);

/* The kernel's numbers of the cores that this process may use, ascending; free *cores.  Returns how many; 0: not
 * known. */
unsigned probe_core_list(unsigned **cores);
/* The same with thread i on core cores[i] and nowhere else.  -EPERM: a core refuses, or is offline; err names it. */
int probe_crew_on(const unsigned *cores, unsigned threads, probe_work *work, void *context,
	struct error *err);

/* --- probes that need no workload ------------------------------------------------------------- */

/* Lock hand-off, reading the clocks, oversleep; each in rounds of slot_ns at most. */
int probe_timing(const struct probe_control *control, struct ceilings *out, struct error *err);

/* Its parts, each a slot.  The median time to hand a lock over; NAN: none was in the time allowed. */
int probe_handoff_ns(const struct probe_control *control, double *out, struct error *err);
double probe_clock_read_ns(void);
/* Sleeps of half a millisecond, and how far each went beyond its end, ns: fills beyond (count); returns how many there
 * was time for. */
unsigned probe_oversleep(const struct probe_control *control, double *beyond, unsigned count);
/* Sorts values; NAN without any. */
double probe_quantile(double *values, size_t count, size_t per_mille);

/* Triad on one core and on all, memcpy on one.  array_bytes: of each of three arrays; 0: 4 x the
 * last-level caches of the node, at most a quarter of the free memory for all three (probe_memory.h has the slots). */
int probe_memory(const struct probe_control *control, uint64_t array_bytes, struct ceilings *out,
	struct error *err);

/* --- which node it is ------------------------------------------------------------------------- */

/* Which node a data sheet is of: the parts that make two nodes different, and the key made of them. */

struct node_identity {
	char machine[CEILINGS_NAME_BYTES]; /* /etc/machine-id, else the host's name */
	char host[CEILINGS_NAME_BYTES], cpu[CEILINGS_NAME_BYTES], kernel[CEILINGS_NAME_BYTES];
	unsigned cores;           /* that this process may use */
	char storage[NOTE_BYTES]; /* "ext4 on /dev/vda1" of the file system that the data lies on */
	/* "NVIDIA H200, driver 580.65.06", "8 x NVIDIA H200, ..."; "": none. A plug-in that was asked for by name is part
	 * of it: another one may see other devices. */
	char gpu[CEILINGS_NAME_BYTES];
	bool is_virtual; /* a hypervisor runs it */
};

/* data_path, or its nearest parent that is there, says which storage is meant.  -errno when that
 * cannot be found. */
int node_identify(const char *data_path, struct node_identity *node, struct error *err);

/* Fills the member gpu of an identity. */
void node_gpus(char gpu[CEILINGS_NAME_BYTES]);

/* "HARDWARE-STATE", 16 hex digits each: machine, CPU and storage; cores, kernel and GPUs.  A data sheet of
 * the same hardware in another state may be used with a warning. */
void node_key(const struct node_identity *node, char out[CEILINGS_NODE_BYTES]);
enum { NODE_HARDWARE_DIGITS = 16 };

/* Puts the node's names and key into a data sheet. */
void node_describe(const struct node_identity *node, struct ceilings *ceilings);

#endif
