/* Rounds over all quantities, within bounds of time and memory: copies between host and device and inside the device's memory,
 * launches of kernels, and the products of probe_products.c. */
#include "workloads/backend/cuda/device_probe.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "workloads/backend/cuda/kernels.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS_LEAST = 3, RUNS_MOST = 2000 };

static const double SLOT_LEAST_NS = 5e5;
static const double SLOT_MOST_NS = 5e7;
static const double PATIENCE = 2.5; /* rounds end after this multiple of plan->seconds */

/* --- for all parts ---------------------------------------------------------------------------- */

void probing_lack(struct probing *probing, const char *format, ...)
{
	struct cuda_probe *out = probing->out;
	const size_t room = sizeof out->missing / sizeof out->missing[0];
	if (out->missing_count == room)
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(out->missing[out->missing_count++], sizeof out->missing[0], format, args);
	va_end(args);
}

bool probing_add(struct probing *probing, probing_visitor *visit, const void *what,
	struct cuda_probe_series *series, const char *format, ...)
{
	if (probing->quantity_count == PROBING_QUANTITIES_MAX) {
		probing_lack(
			probing, "quantities beyond the first %d: no room", PROBING_QUANTITIES_MAX);
		return false;
	}
	struct quantity *quantity = &probing->quantities[probing->quantity_count++];
	*quantity = (struct quantity){.visit = visit, .what = what, .series = series};
	va_list args;
	va_start(args, format);
	(void)vsnprintf(quantity->name, sizeof quantity->name, format, args);
	va_end(args);
	return true;
}

bool probing_stopped(const struct probing *probing)
{
	const atomic_bool *stop = probing->plan->stop;
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static int probing_put(struct probing *probing, probing_work *work, const void *what,
	unsigned count, struct error *err)
{
	for (unsigned i = 0; i < count; i++)
		OR_RETURN(work(probing, what, err));
	return 0;
}

int probing_device_ns(struct probing *probing, probing_work *work, const void *what, unsigned count,
	double *ns, struct error *err)
{
	float ms = 0;
	CUDA_OR_RETURN(err, cudaEventRecord(probing->begin, probing->stream));
	OR_RETURN(probing_put(probing, work, what, count, err));
	CUDA_OR_RETURN(err, cudaEventRecord(probing->end, probing->stream));
	CUDA_OR_RETURN(err, cudaEventSynchronize(probing->end));
	CUDA_OR_RETURN(err, cudaEventElapsedTime(&ms, probing->begin, probing->end));
	*ns = (double)ms * (double)NS_PER_MS / count;
	return 0;
}

/* The host's time for one of them, the wait for the last included. */
static int probing_host_ns(struct probing *probing, probing_work *work, const void *what,
	unsigned count, double *ns, struct error *err)
{
	const uint64_t begin = clock_now_ns();
	OR_RETURN(probing_put(probing, work, what, count, err));
	CUDA_OR_RETURN(err, cudaStreamSynchronize(probing->stream));
	*ns = (double)(clock_now_ns() - begin) / count;
	return 0;
}

int probing_slot_ns(struct probing *probing, probing_clock *clock, probing_work *work,
	const void *what, double *ns, struct error *err)
{
	OR_RETURN(clock(probing, work, what, 1, ns, err));
	const double fit = probing->slot_ns / fmax(*ns, 1);
	const unsigned count = fit < 1 ? 1 : fit > RUNS_MOST ? RUNS_MOST : (unsigned)fit;
	return clock(probing, work, what, count, ns, err);
}

/* --- copies between host and device --------------------------------------------------------------
 *
 * From pinned memory a copy is asynchronous, and two events time it.  A pageable one goes through a staging buffer of the
 * driver and partly happens inside the call, where no event sees it: the host's clock is read around the calls and the wait
 * for their end.  The host's pages are written before: untouched ones would all be the same page of zeros. */

enum {
	SIZE_FACTOR = 4,
	CACHES = 8,           /* size of a copy inside the device, in multiples of its L2 */
	CACHES_LEAST = 4,     /* below this multiple, a line says that the L2 may have helped */
	COPIES_OF_MEMORY = 4, /* ... and at most, in multiples of copy_most */
	SHARE_OF_FREE = 4,    /* of what is free on the device, one part */
	PAGE_BYTES = 4096,
	COPY_ALIGN = 256,
};

static const size_t MEMORY_LEAST = (size_t)1 << 16;

static int probing_copy(struct probing *probing, const void *what, struct error *err)
{
	const struct cuda_probe_copy *copy = what;
	void *host = copy->pinned ? probing->pinned : probing->pageable;
	if (copy->direction == CUDA_COPY_TO_DEVICE)
		return CUDA_TRY(err, cudaMemcpyAsync(probing->device[0], host, copy->bytes,
					     cudaMemcpyHostToDevice, probing->stream));
	return CUDA_TRY(err, cudaMemcpyAsync(host, probing->device[0], copy->bytes,
				     cudaMemcpyDeviceToHost, probing->stream));
}

static int probing_visit_copy(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	const struct cuda_probe_copy *copy = quantity->what;
	probing_clock *clock = copy->pinned ? probing_device_ns : probing_host_ns;
	double ns;
	OR_RETURN(probing_slot_ns(probing, clock, probing_copy, copy, &ns, err));
	*value = ns > 0 ? (double)copy->bytes * (double)NS_PER_S / ns : NAN;
	return 0;
}

static void probing_add_copy(
	struct probing *probing, size_t bytes, enum cuda_copy direction, bool pinned)
{
	struct cuda_probe *out = probing->out;
	if (out->copy_count == CUDA_PROBE_COPIES_MAX || (pinned && !probing->pinned))
		return;
	struct cuda_probe_copy *copy = &out->copies[out->copy_count];
	*copy = (struct cuda_probe_copy){.direction = direction, .pinned = pinned, .bytes = bytes};
	if (probing_add(probing, probing_visit_copy, copy, &copy->bytes_per_s,
		    "copy of %zu bytes %s, %s", bytes,
		    direction == CUDA_COPY_TO_DEVICE ? "to the device" : "from the device",
		    pinned ? "pinned" : "pageable"))
		out->copy_count++;
}

static void probing_add_host_copies(struct probing *probing)
{
	const struct cuda_probe_plan *plan = probing->plan;
	size_t bytes = plan->copy_least ? plan->copy_least : 1;
	for (; bytes <= probing->host_bytes; bytes *= SIZE_FACTOR) {
		probing_add_copy(probing, bytes, CUDA_COPY_TO_DEVICE, true);
		probing_add_copy(probing, bytes, CUDA_COPY_TO_DEVICE, false);
		probing_add_copy(probing, bytes, CUDA_COPY_FROM_DEVICE, true);
		probing_add_copy(probing, bytes, CUDA_COPY_FROM_DEVICE, false);
		if (bytes > SIZE_MAX / SIZE_FACTOR)
			break;
	}
	if (bytes <= plan->copy_most)
		probing_lack(probing, "copies of more than %zu bytes: not enough free memory",
			probing->host_bytes);
}

/* --- copies inside the device ----------------------------------------------------------------- */

static int probing_copy_by_engine(struct probing *probing, const void *what, struct error *err)
{
	(void)what;
	return CUDA_TRY(
		err, cudaMemcpyAsync(probing->device[1], probing->device[0], probing->memory_bytes,
			     cudaMemcpyDeviceToDevice, probing->stream));
}

static int probing_copy_by_kernel(struct probing *probing, const void *what, struct error *err)
{
	(void)what;
	return CUDA_TRY(err, kernel_memory_copy(probing->stream, probing->device[0],
				     probing->device[1], probing->memory_bytes));
}

static int probing_visit_memory(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	probing_work *copy = quantity->series == &probing->memory_by_kernel
				     ? probing_copy_by_kernel
				     : probing_copy_by_engine;
	double ns;
	OR_RETURN(probing_slot_ns(probing, probing_device_ns, copy, NULL, &ns, err));
	/* Read once and written once. */
	*value = ns > 0 ? 2.0 * (double)probing->memory_bytes * (double)NS_PER_S / ns : NAN;
	return 0;
}

static void probing_add_memory(struct probing *probing, size_t cache)
{
	(void)probing_add(probing, probing_visit_memory, NULL, &probing->memory_by_kernel,
		"device memory, by a kernel");
	(void)probing_add(probing, probing_visit_memory, NULL, &probing->memory_by_engine,
		"device memory, by cudaMemcpyAsync");
	if (probing->memory_bytes < CACHES_LEAST * cache)
		probing_lack(probing,
			"device memory: copies of %zu bytes may have hit in its L2 cache of %zu bytes",
			probing->memory_bytes, cache);
}

static int probing_order(const void *a, const void *b)
{
	const double left = *(const double *)a;
	const double right = *(const double *)b;
	return (left > right) - (left < right);
}

static double probing_median(const struct cuda_probe_series *series)
{
	struct cuda_probe_series sorted = *series;
	if (sorted.count == 0)
		return 0;
	qsort(sorted.values, sorted.count, sizeof sorted.values[0], probing_order);
	return (sorted.values[(sorted.count - 1) / 2] + sorted.values[sorted.count / 2]) / 2;
}

static void probing_keep_memory(struct probing *probing)
{
	const struct cuda_probe_series *kernel = &probing->memory_by_kernel;
	const struct cuda_probe_series *engine = &probing->memory_by_engine;
	probing->out->memory_bytes_per_s =
		probing_median(kernel) >= probing_median(engine) ? *kernel : *engine;
}

/* --- buffers of the copies -------------------------------------------------------------------- */

static size_t probing_smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int probing_choose_sizes(struct probing *probing, size_t *cache, struct error *err)
{
	const size_t most = probing->plan->copy_most;
	size_t is_free = 0;
	size_t total = 0;
	int l2 = 0;
	CUDA_OR_RETURN(err, cudaMemGetInfo(&is_free, &total));
	CUDA_OR_RETURN(err,
		cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, (int)probing->plan->device));
	*cache = l2 > 0 ? (size_t)l2 : 0;
	const size_t fits = is_free / SHARE_OF_FREE / 2 / COPY_ALIGN * COPY_ALIGN;
	const size_t wanted = *cache ? CACHES * *cache : COPIES_OF_MEMORY * most;
	probing->host_bytes = probing_smaller(most, fits);
	probing->memory_bytes =
		probing_smaller(probing_smaller(wanted, COPIES_OF_MEMORY * most), fits) /
		COPY_ALIGN * COPY_ALIGN;
	if (probing->memory_bytes < MEMORY_LEAST)
		probing->memory_bytes = probing_smaller(MEMORY_LEAST, fits);
	probing->device_bytes = probing->memory_bytes > probing->host_bytes ? probing->memory_bytes
									    : probing->host_bytes;
	return probing->device_bytes > 0
		       ? 0
		       : error_set(err, -ENOMEM, "cuda: only %zu bytes are free on the device",
				 is_free);
}

static int probing_allocate_host(struct probing *probing, struct error *err)
{
	const size_t bytes = probing->host_bytes;
	struct error why = {0};
	if (posix_memalign(&probing->pageable, PAGE_BYTES, bytes) != 0) {
		probing->pageable = NULL;
		return error_set(
			err, -ENOMEM, "cuda: out of memory for copies of %zu bytes", bytes);
	}
	struct rng rng;
	rng_init(&rng, bytes / sizeof(uint64_t), 0);
	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
		((uint64_t *)probing->pageable)[i] = rng_next(&rng);
	if (CUDA_TRY(&why, cudaMallocHost(&probing->pinned, bytes))) {
		probing->pinned = NULL;
		probing_lack(probing, "copies from pinned memory: %.180s", why.text);
	}
	return 0;
}

/* Pinned (or pageable) host memory, the device, its other half, pageable host memory, which is cleared before. */
static int probing_go_around(struct probing *probing, size_t bytes, struct error *err)
{
	const struct cuda_probe_copy there = {.pinned = probing->pinned != NULL, .bytes = bytes};
	OR_RETURN(probing_copy(probing, &there, err));
	OR_RETURN(probing_copy_by_kernel(probing, NULL, err));
	CUDA_OR_RETURN(err, cudaStreamSynchronize(probing->stream));
	memset(probing->pageable, 0, bytes);
	CUDA_OR_RETURN(err, cudaMemcpyAsync(probing->pageable, probing->device[1], bytes,
				    cudaMemcpyDeviceToHost, probing->stream));
	return CUDA_TRY(err, cudaStreamSynchronize(probing->stream));
}

static int probing_check_ways(struct probing *probing, struct error *err)
{
	const size_t bytes = probing_smaller(probing->host_bytes, probing->memory_bytes);
	unsigned char *kept = malloc(bytes);
	if (!kept)
		return error_set(err, -ENOMEM, "cuda: out of memory to check copies");
	memcpy(kept, probing->pageable, bytes);
	if (probing->pinned)
		memcpy(probing->pinned, kept, bytes);
	int code = probing_go_around(probing, bytes, err);
	if (code == 0 && memcmp(kept, probing->pageable, bytes) != 0)
		code = error_set(err, -EIO,
			"cuda: a copy of %zu bytes to the device and back changed the data", bytes);
	free(kept);
	return code;
}

static int probing_add_copies(struct probing *probing, struct error *err)
{
	size_t cache = 0;
	OR_RETURN(probing_choose_sizes(probing, &cache, err));
	for (int i = 0; i < 2; i++) {
		CUDA_OR_RETURN(err, cudaMalloc(&probing->device[i], probing->device_bytes));
		CUDA_OR_RETURN(err, cudaMemsetAsync(probing->device[i], 1, probing->device_bytes,
					    probing->stream));
	}
	OR_RETURN(probing_allocate_host(probing, err));
	OR_RETURN(probing_check_ways(probing, err));
	probing_add_host_copies(probing);
	probing_add_memory(probing, cache);
	return 0;
}

/* --- what it costs to start a kernel, for the host and for the device ----------------------------
 *
 * The device's own time between two kernels can only be seen when all of them were launched before the first began: else it
 * waits for the host.  So a plug goes first, copies inside its memory that keep it at work, and a measurement counts only if
 * the event behind the plug has not come when the last launch is done. */

enum {
	BACK_TO_BACK =
		256, /* launches: fewer than a stream's queue holds, so that none has to wait */
	BEHIND_PLUG = 100,
	GRAPH_KERNELS = 100,
	PLUGS_MOST = 1024, /* copies */
	ROUND_TRIPS_MOST = 20000,
};

static const double PLUG_MOST_NS = 2e8;

static int probing_launch(struct probing *probing, const void *what, struct error *err)
{
	(void)what;
	return CUDA_TRY(err, kernel_nothing(probing->stream));
}

static int probing_launch_graph(struct probing *probing, const void *what, struct error *err)
{
	(void)what;
	return CUDA_TRY(err, cudaGraphLaunch(probing->graph, probing->stream));
}

/* The calls alone, on an idle stream. */
static int probing_burst_ns(struct probing *probing, double *ns, struct error *err)
{
	CUDA_OR_RETURN(err, cudaStreamSynchronize(probing->stream));
	const uint64_t begin = clock_now_ns();
	OR_RETURN(probing_put(probing, probing_launch, NULL, BACK_TO_BACK, err));
	*ns = (double)(clock_now_ns() - begin) / BACK_TO_BACK;
	return CUDA_TRY(err, cudaStreamSynchronize(probing->stream));
}

static int probing_visit_launch(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	(void)quantity;
	const uint64_t end = clock_now_ns() + (uint64_t)probing->slot_ns;
	double sum = 0;
	double ns;
	unsigned bursts = 0;
	OR_RETURN(probing_burst_ns(probing, &ns, err)); /* warms up */
	do {
		OR_RETURN(probing_burst_ns(probing, &ns, err));
		sum += ns;
		bursts++;
	} while (clock_now_ns() < end);
	*value = sum / bursts;
	return 0;
}

/* valid: the device was still behind the plug when the host had launched everything. */
static int probing_behind_plug_ns(struct probing *probing, unsigned copies, probing_work *work,
	unsigned count, bool *valid, double *ns, struct error *err)
{
	float ms = 0;
	OR_RETURN(probing_put(probing, probing_copy_by_engine, NULL, copies, err));
	CUDA_OR_RETURN(err, cudaEventRecord(probing->begin, probing->stream));
	OR_RETURN(probing_put(probing, work, NULL, count, err));
	CUDA_OR_RETURN(err, cudaEventRecord(probing->end, probing->stream));
	const cudaError_t begun = wait_look(probing->begin);
	*valid = begun == cudaErrorNotReady;
	if (begun != cudaSuccess && !*valid)
		return fail_cuda(err, (int)begun, "cudaEventQuery");
	CUDA_OR_RETURN(err, cudaEventSynchronize(probing->end));
	CUDA_OR_RETURN(err, cudaEventElapsedTime(&ms, probing->begin, probing->end));
	*ns = (double)ms * (double)NS_PER_MS / count;
	return 0;
}

static int probing_on_device_ns(struct probing *probing, probing_work *work, unsigned count,
	double *value, struct error *err)
{
	double ns;
	bool valid = false;
	OR_RETURN(probing_host_ns(probing, work, NULL, 1, &ns, err)); /* warms up */
	const uint64_t begun = clock_now_ns();
	for (unsigned copies = 1; !valid && copies <= PLUGS_MOST; copies *= 2) {
		OR_RETURN(probing_behind_plug_ns(probing, copies, work, count, &valid, &ns, err));
		if ((double)(clock_now_ns() - begun) > PLUG_MOST_NS || probing_stopped(probing))
			break;
	}
	if (!valid && !probing_stopped(probing))
		return error_set(err, -EAGAIN,
			"the device had done the copies in front before the host had launched all");
	*value = valid ? ns : NAN;
	return 0;
}

static int probing_visit_kernel(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	(void)quantity;
	return probing_on_device_ns(probing, probing_launch, BEHIND_PLUG, value, err);
}

static int probing_visit_graph(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	(void)quantity;
	const int code = probing_on_device_ns(probing, probing_launch_graph, 1, value, err);
	*value /= GRAPH_KERNELS;
	return code;
}

static int probing_visit_round_trip(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	(void)quantity;
	double ns;
	OR_RETURN(probing_host_ns(probing, probing_launch, NULL, 1, &ns, err)); /* warms up */
	const uint64_t begin = clock_now_ns();
	uint64_t now;
	unsigned trips = 0;
	do {
		OR_RETURN(probing_host_ns(probing, probing_launch, NULL, 1, &ns, err));
		now = clock_now_ns();
		trips++;
	} while (trips < ROUND_TRIPS_MOST && (double)(now - begin) < probing->slot_ns);
	*value = (double)(now - begin) / trips;
	return 0;
}

static int probing_record_graph(struct probing *probing, struct error *err)
{
	cudaGraph_t graph = NULL;
	int code = CUDA_TRY(
		err, cudaStreamBeginCapture(probing->stream, cudaStreamCaptureModeThreadLocal));
	if (code)
		return code;
	code = probing_put(probing, probing_launch, NULL, GRAPH_KERNELS, err);
	struct error other = {0};
	const int ended = CUDA_TRY(&other, cudaStreamEndCapture(probing->stream, &graph));
	if (code == 0 && ended)
		code = error_set(err, ended, "%s", other.text);
	if (code == 0)
		code = CUDA_TRY(err, cudaGraphInstantiate(&probing->graph, graph, 0));
	if (graph)
		(void)cudaGraphDestroy(graph);
	return code;
}

static void probing_add_launches(struct probing *probing)
{
	struct error why = {0};
	const bool recorded = probing_record_graph(probing, &why) == 0;
	const struct {
		const char *name;
		probing_visitor *visit;
		struct cuda_probe_series *series;
		bool wanted;
	} all[] = {
		{"launch", probing_visit_launch, &probing->out->launch_ns, true},
		{"kernel", probing_visit_kernel, &probing->out->kernel_ns, true},
		{"kernel in a graph", probing_visit_graph, &probing->out->graph_launch_ns,
			recorded},
		{"round trip", probing_visit_round_trip, &probing->out->round_trip_ns, true},
	};
	if (!recorded)
		probing_lack(probing, "kernel in a graph: %.180s", why.text);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (all[i].wanted)
			probing_add(probing, all[i].visit, NULL, all[i].series, "%s", all[i].name);
}

/* --- rounds ----------------------------------------------------------------------------------- */

static bool probing_time_over(const struct probing *probing)
{
	return probing_stopped(probing) || clock_now_ns() >= probing->deadline_ns;
}

/* A quantity that fails is left out from then on: the others may still work. */
static void probing_visit(struct probing *probing, struct quantity *quantity)
{
	struct cuda_probe_series *series = quantity->series;
	struct error err = {0};
	double value = NAN;
	if (quantity->dead || series->count == CUDA_PROBE_REPEATS_MAX)
		return;
	if (quantity->visit(probing, quantity, &value, &err)) {
		quantity->dead = true;
		probing_lack(probing, "%s: %.180s", quantity->name, err.text);
	} else if (isfinite(value)) {
		series->values[series->count++] = value;
	}
}

static void probing_measure(struct probing *probing, unsigned repeats)
{
	for (unsigned round = 0; round < repeats; round++)
		for (size_t i = 0; i < probing->quantity_count; i++) {
			if (probing_time_over(probing))
				return;
			probing_visit(probing, &probing->quantities[i]);
		}
}

static void probing_say_unseen(struct probing *probing)
{
	size_t unseen = 0;
	const char *first = "";
	for (size_t i = probing->quantity_count; i-- > 0;) {
		const struct quantity *quantity = &probing->quantities[i];
		if (quantity->dead || quantity->series->count > 0)
			continue;
		unseen++;
		first = quantity->name;
	}
	if (unseen > 0 && !probing_stopped(probing))
		probing_lack(probing, "%zu of %zu quantities: out of time: %s%s", unseen,
			probing->quantity_count, first, unseen > 1 ? " ..." : "");
}

/* --- open and close --------------------------------------------------------------------------- */

static unsigned probing_repeats(const struct cuda_probe_plan *plan)
{
	return plan->repeats < REPEATS_LEAST            ? REPEATS_LEAST
	       : plan->repeats > CUDA_PROBE_REPEATS_MAX ? CUDA_PROBE_REPEATS_MAX
							: plan->repeats;
}

/* Before any part allocates: the probe's own marks on the device. */
static int probing_open_stream(struct probing *probing, struct error *err)
{
	const int device = (int)probing->plan->device;
	CUDA_OR_RETURN(err, cudaSetDevice(device));
	CUDA_OR_RETURN(err, cudaStreamCreateWithFlags(&probing->stream, cudaStreamNonBlocking));
	CUDA_OR_RETURN(err, cudaEventCreate(&probing->begin));
	return CUDA_TRY(err, cudaEventCreate(&probing->end));
}

static void probing_release(struct probing *probing)
{
	probing_close_products(probing);
	if (probing->graph)
		(void)cudaGraphExecDestroy(probing->graph);
	for (int i = 0; i < 2; i++)
		release_device(probing->device[i]);
	release_host(probing->pinned);
	free(probing->pageable);
	release_event(probing->begin);
	release_event(probing->end);
	release_stream(probing->stream);
	(void)cudaGetLastError();
}

static int probing_open_parts(struct probing *probing, struct error *err)
{
	OR_RETURN(probing_open_stream(probing, err));
	OR_RETURN(probing_add_copies(probing, err));
	if (!probing_stopped(probing))
		probing_add_launches(probing);
	if (!probing_stopped(probing))
		OR_RETURN(probing_add_products(probing, err));
	return 0;
}

static int probing_run_parts(struct probing *probing, struct error *err)
{
	const struct cuda_probe_plan *plan = probing->plan;
	const unsigned repeats = probing_repeats(plan);
	int code = probing_open_parts(probing, err);
	if (code)
		return code;
	const double ns = plan->seconds * (double)NS_PER_S;
	const double each = ns / repeats / (double)(probing->quantity_count + 1);
	probing->slot_ns = fmin(fmax(each, SLOT_LEAST_NS), SLOT_MOST_NS);
	probing->deadline_ns = clock_now_ns() + (uint64_t)(PATIENCE * fmax(ns, SLOT_LEAST_NS));
	probing_measure(probing, repeats);
	probing_say_unseen(probing);
	probing_keep_memory(probing);
	if (!probing_stopped(probing))
		code = probing_check_products(probing, err);
	return code;
}

int probing_run(const struct cuda_probe_plan *plan, struct cuda_probe *out, struct error *err)
{
	memset(out, 0, sizeof *out);
	struct probing *probing = calloc(1, sizeof *probing);
	if (!probing)
		return error_set(err, -ENOMEM, "cuda: out of memory for a probe");
	probing->plan = plan;
	probing->out = out;
	int code = probing_run_parts(probing, err);
	if (code == 0 && probing_stopped(probing))
		code = error_set(err, -EINTR, "cuda: the probe was stopped");
	probing_release(probing);
	free(probing);
	return code;
}

/* --- the same products again and again -------------------------------------------------------- */

static int probing_repeat_all(
	struct probing *probing, const struct cuda_repeat_plan *plan, struct error *err)
{
	OR_RETURN(probing_open_stream(probing, err));
	for (int precision = STEP_PRECISION_FP32; precision <= STEP_PRECISION_FP8; precision++)
		if (plan->precisions & (1U << precision) && !probing_stopped(probing))
			OR_RETURN(probing_repeat_product(
				probing, plan, (enum step_precision)precision, err));
	return 0;
}

int probing_repeat(const struct cuda_repeat_plan *plan, struct error *err)
{
	const struct cuda_probe_plan bounds = {.device = plan->device, .stop = plan->stop};
	struct probing *probing = calloc(1, sizeof *probing);
	if (!probing)
		return error_set(err, -ENOMEM, "cuda: out of memory for products");
	probing->plan = &bounds;
	const int code = probing_repeat_all(probing, plan, err);
	probing_release(probing);
	free(probing);
	return code;
}
