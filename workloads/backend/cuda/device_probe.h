/* What one device gives at best, as series of repeats: the plug-in's side of `mlbench probe`.
 *
 * The probe has parts: copies and launches (device_probe.c), products (probe_products.c).  Each part adds quantities; rounds
 * visit every quantity once, again and again, so that what disturbs the device for a while disturbs all of them. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_PROBE_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_PROBE_H

#include "workloads/backend/cuda/kernels.h"
#include "workloads/backend/cuda/plugin.h"
#include "workloads/backend/cuda/runtime.h"

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

/* The function `probe` of the plug-in's table.  -EINTR: stopped, what was measured is in out; another error: nothing
 * could be had.  A quantity that cannot be had, or whose time was over, is a line of out->missing. */
int probing_run(const struct cuda_probe_plan *plan, struct cuda_probe *out, struct error *err);

/* The function `repeat`. */
int probing_repeat(const struct cuda_repeat_plan *plan, struct error *err);

/* --- for the two files ------------------------------------------------------------------------ */

enum { PROBING_QUANTITIES_MAX = 128, PROBING_NAME_BYTES = 64 };

struct probing;
struct probing_products;

struct quantity;

/* One visit, of about slot_ns: the value, or NAN when it could not be had this time. */
typedef int probing_visitor(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err);

struct quantity {
	probing_visitor *visit;
	const void *what; /* the part's own */
	struct cuda_probe_series *series;
	char name[PROBING_NAME_BYTES];
	bool dead; /* failed; a line of missing says how */
};

struct probing {
	const struct cuda_probe_plan *plan;
	struct cuda_probe *out;
	double slot_ns;
	uint64_t deadline_ns;
	cudaStream_t stream;
	cudaEvent_t begin, end;

	/* device_bytes each: the host's copies go to the first, the device's own to the second */
	void *device[2];
	size_t device_bytes, memory_bytes; /* of the latter, that are copied */
	void *pinned, *pageable;           /* host_bytes each */
	size_t host_bytes;

	struct cuda_probe_series memory_by_kernel, memory_by_engine; /* the better one is kept */
	cudaGraphExec_t graph;
	struct probing_products *products;

	struct quantity quantities[PROBING_QUANTITIES_MAX];
	size_t quantity_count;
};

/* One more, by its name; false, with a line of missing: there is no room. */
bool probing_add(struct probing *probing, probing_visitor *visit, const void *what,
	struct cuda_probe_series *series, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* A line of out->missing; dropped when full. */
void probing_lack(struct probing *probing, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

bool probing_stopped(const struct probing *probing);

/* Something that is put on the stream: a copy, a launch, a product. */
typedef int probing_work(struct probing *probing, const void *what, struct error *err);

/* Device time of one of `count` put on the stream one after the other, ns: between two events. */
int probing_device_ns(struct probing *probing, probing_work *work, const void *what, unsigned count,
	double *ns, struct error *err);

typedef int probing_clock(struct probing *probing, probing_work *work, const void *what,
	unsigned count, double *ns, struct error *err);
/* As many as fill a slot, after one that warms up, by either clock. */
int probing_slot_ns(struct probing *probing, probing_clock *clock, probing_work *work,
	const void *what, double *ns, struct error *err);

/* The part of products: adds its quantities, or lines of missing; an error ends the probe. */
int probing_add_products(struct probing *probing, struct error *err);
/* Takes the speed of those that compute wrongly, and says so in missing; it overwrites the operands. */
int probing_check_products(struct probing *probing, struct error *err);
void probing_close_products(struct probing *probing);
/* Squares of one precision, each of whose results is taken; 0 where the library has no such product. */
int probing_repeat_product(struct probing *probing, const struct cuda_repeat_plan *plan,
	enum step_precision precision, struct error *err);

/* Element types as bits, on the host: random operands, and the value of an element that came back.
 *
 * Fills (count) elements with random signs and fractions and magnitudes of 2^-4 to 1: bits that change as those of real data
 * do.  A function of the type and the count. */
void formats_fill(enum element type, void *elements, size_t count);
/* The same of -1, 0 and 1, each as often. */
void formats_fill_whole(enum element type, void *elements, size_t count);

/* The value of one; NAN and infinities as they are. */
double formats_value(enum element type, const void *elements, size_t index);

#endif
