/* The parts of a device's probe and what they share.  Each part adds quantities; the rounds of device_probe.c visit every quantity
 * once, again and again, so that what disturbs the device for a while disturbs them alike.  Internal to it. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_PROBE_PARTS_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_PROBE_PARTS_H

#include "workloads/backend/cuda/device_probe.h"
#include "workloads/backend/cuda/fail.h"

#include <cuda_runtime_api.h>

enum { PROBING_QUANTITIES_MAX = 128, PROBING_NAME_BYTES = 64 };

struct probing;
struct probing_products;

struct quantity {
	/* One visit, of about slot_ns: the value, or NAN when it could not be had this time. */
	int (*visit)(struct probing *probing, const struct quantity *quantity, double *value,
		struct error *err);
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

	void *device
		[2]; /* device_bytes each: the host's copies go to the first, the device's own to the second */
	size_t device_bytes, memory_bytes; /* of the latter, that are copied */
	void *pinned, *pageable;           /* host_bytes each */
	size_t host_bytes;

	struct cuda_probe_series memory_by_kernel, memory_by_engine; /* the better one is kept */
	cudaGraphExec_t graph;
	struct probing_products *products;

	struct quantity quantities[PROBING_QUANTITIES_MAX];
	size_t quantity_count;
};

/* A place for one more; NULL, with a line of missing, when all are taken. */
struct quantity *probing_add(struct probing *probing, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A line of out->missing; dropped when full. */
void probing_lack(struct probing *probing, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

bool probing_stopped(const struct probing *probing);

/* Something that is put on the stream: a copy, a launch, a product. */
typedef int probing_work(struct probing *probing, const void *what, struct error *err);

/* Device time of one of `count` put on the stream one after the other, ns: between two events. */
int probing_device_ns(struct probing *probing, probing_work *work, const void *what, unsigned count,
	double *ns, struct error *err);

/* The host's time for one of them, the wait for the last included. */
int probing_host_ns(struct probing *probing, probing_work *work, const void *what, unsigned count,
	double *ns, struct error *err);

typedef int probing_clock(struct probing *probing, probing_work *work, const void *what,
	unsigned count, double *ns, struct error *err);
/* As many as fill a slot, after one that warms up, by either clock. */
int probing_slot_ns(struct probing *probing, probing_clock *clock, probing_work *work,
	const void *what, double *ns, struct error *err);

/* A part: adds its quantities, or lines of missing; an error ends the probe. */
int probing_add_copies(struct probing *probing, struct error *err);
void probing_keep_memory(struct probing *probing);
int probing_add_launches(struct probing *probing, struct error *err);
void probing_close_launches(struct probing *probing);
int probing_add_products(struct probing *probing, struct error *err);
/* What was not right: products are checked against sums in double. */
int probing_check_products(struct probing *probing, struct error *err);
void probing_close_products(struct probing *probing);

#endif
