/* Copies between host and device, and inside the device's memory.
 *
 * From pinned memory a copy is asynchronous, and two events time it.  A pageable one goes through a staging buffer of the
 * driver and partly happens inside the call, where no event sees it: the host's clock is read around the calls and the wait
 * for their end.  The host's pages are written before: untouched ones would all be the same page of zeros. */
#include "workloads/backend/cuda/kernels.h"
#include "workloads/backend/cuda/probe_parts.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	SIZE_FACTOR = 4,
	CACHES = 8,           /* a copy inside the device is so many times its L2 */
	CACHES_LEAST = 4,     /* below it, a line says that the L2 may have helped */
	COPIES_OF_MEMORY = 4, /* ... and at most so many times copy_most */
	SHARE_OF_FREE = 4,    /* of what is free on the device, one part */
	PAGE_BYTES = 4096,
	COPY_ALIGN = 256,
};

static const size_t MEMORY_LEAST = (size_t)1 << 16;

/* --- host and device ------------------------------------------------------------------------------- */

static int probe_copies_enqueue(struct probing *probing, const void *what, struct error *err)
{
	const struct cuda_probe_copy *copy = what;
	void *host = copy->pinned ? probing->pinned : probing->pageable;
	if (copy->direction == CUDA_COPY_TO_DEVICE)
		return CUDA_TRY(err, cudaMemcpyAsync(probing->device[0], host, copy->bytes,
					     cudaMemcpyHostToDevice, probing->stream));
	return CUDA_TRY(err, cudaMemcpyAsync(host, probing->device[0], copy->bytes,
				     cudaMemcpyDeviceToHost, probing->stream));
}

static int visit_copy(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	const struct cuda_probe_copy *copy = quantity->what;
	probing_clock *clock = copy->pinned ? probing_device_ns : probing_host_ns;
	double ns = NAN;
	const int code = probing_slot_ns(probing, clock, probe_copies_enqueue, copy, &ns, err);
	*value = ns > 0 ? (double)copy->bytes * (double)NS_PER_S / ns : NAN;
	return code;
}

static void add_copy(struct probing *probing, size_t bytes, enum cuda_copy direction, bool pinned)
{
	struct cuda_probe *out = probing->out;
	if (out->copy_count == CUDA_PROBE_COPIES_MAX || (pinned && !probing->pinned))
		return;
	struct quantity *quantity = probing_add(probing, "copy of %zu bytes %s, %s", bytes,
		direction == CUDA_COPY_TO_DEVICE ? "to the device" : "from the device",
		pinned ? "pinned" : "pageable");
	if (!quantity)
		return;
	struct cuda_probe_copy *copy = &out->copies[out->copy_count++];
	*copy = (struct cuda_probe_copy){.direction = direction, .pinned = pinned, .bytes = bytes};
	quantity->visit = visit_copy;
	quantity->what = copy;
	quantity->series = &copy->bytes_per_s;
}

static void add_host_copies(struct probing *probing)
{
	const struct cuda_probe_plan *plan = probing->plan;
	size_t bytes = plan->copy_least ? plan->copy_least : 1;
	for (; bytes <= probing->host_bytes; bytes *= SIZE_FACTOR) {
		add_copy(probing, bytes, CUDA_COPY_TO_DEVICE, true);
		add_copy(probing, bytes, CUDA_COPY_TO_DEVICE, false);
		add_copy(probing, bytes, CUDA_COPY_FROM_DEVICE, true);
		add_copy(probing, bytes, CUDA_COPY_FROM_DEVICE, false);
		if (bytes > SIZE_MAX / SIZE_FACTOR)
			break;
	}
	if (bytes <= plan->copy_most)
		probing_lack(probing, "copies of more than %zu bytes: too little memory is free",
			probing->host_bytes);
}

/* --- inside the device ------------------------------------------------------------------------------- */

static int enqueue_by_engine(struct probing *probing, const void *what, struct error *err)
{
	(void)what;
	return CUDA_TRY(
		err, cudaMemcpyAsync(probing->device[1], probing->device[0], probing->memory_bytes,
			     cudaMemcpyDeviceToDevice, probing->stream));
}

static int enqueue_by_kernel(struct probing *probing, const void *what, struct error *err)
{
	(void)what;
	return CUDA_TRY(err, kernel_memory_copy(probing->stream, probing->device[0],
				     probing->device[1], probing->memory_bytes));
}

static int visit_memory(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	const bool by_kernel = quantity->series == &probing->memory_by_kernel;
	double ns = NAN;
	const int code = probing_slot_ns(probing, probing_device_ns,
		by_kernel ? enqueue_by_kernel : enqueue_by_engine, NULL, &ns, err);
	/* Read once and written once. */
	*value = ns > 0 ? 2.0 * (double)probing->memory_bytes * (double)NS_PER_S / ns : NAN;
	return code;
}

static void add_memory(struct probing *probing, size_t cache)
{
	struct cuda_probe_series *const series[] = {
		&probing->memory_by_kernel, &probing->memory_by_engine};
	for (size_t i = 0; i < 2; i++) {
		struct quantity *quantity = probing_add(probing, "memory of the device, by %s",
			i == 0 ? "a kernel" : "cudaMemcpyAsync");
		if (!quantity)
			return;
		quantity->visit = visit_memory;
		quantity->series = series[i];
	}
	if (probing->memory_bytes < CACHES_LEAST * cache)
		probing_lack(probing,
			"memory of the device: copies of %zu bytes may have been helped by its L2 of %zu",
			probing->memory_bytes, cache);
}

static int order(const void *a, const void *b)
{
	const double left = *(const double *)a;
	const double right = *(const double *)b;
	return (left > right) - (left < right);
}

static double median(const struct cuda_probe_series *series)
{
	struct cuda_probe_series sorted = *series;
	if (sorted.count == 0)
		return 0;
	qsort(sorted.values, sorted.count, sizeof sorted.values[0], order);
	return (sorted.values[(sorted.count - 1) / 2] + sorted.values[sorted.count / 2]) / 2;
}

void probing_keep_memory(struct probing *probing)
{
	const struct cuda_probe_series *kernel = &probing->memory_by_kernel;
	const struct cuda_probe_series *engine = &probing->memory_by_engine;
	probing->out->memory_bytes_per_s = median(kernel) >= median(engine) ? *kernel : *engine;
}

/* --- buffers ----------------------------------------------------------------------------------------- */

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int choose_sizes(struct probing *probing, size_t *cache, struct error *err)
{
	const size_t most = probing->plan->copy_most;
	size_t is_free = 0;
	size_t total = 0;
	int l2 = 0;
	int code = CUDA_TRY(err, cudaMemGetInfo(&is_free, &total));
	if (code == 0)
		code = CUDA_TRY(err, cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize,
					     (int)probing->plan->device));
	if (code)
		return code;
	*cache = l2 > 0 ? (size_t)l2 : 0;
	const size_t fits = is_free / SHARE_OF_FREE / 2 / COPY_ALIGN * COPY_ALIGN;
	const size_t wanted = *cache ? CACHES * *cache : COPIES_OF_MEMORY * most;
	probing->host_bytes = smaller(most, fits);
	probing->memory_bytes =
		smaller(smaller(wanted, COPIES_OF_MEMORY * most), fits) / COPY_ALIGN * COPY_ALIGN;
	if (probing->memory_bytes < MEMORY_LEAST)
		probing->memory_bytes = smaller(MEMORY_LEAST, fits);
	probing->device_bytes = probing->memory_bytes > probing->host_bytes ? probing->memory_bytes
									    : probing->host_bytes;
	return probing->device_bytes > 0
		       ? 0
		       : error_set(err, -ENOMEM, "cuda: only %zu bytes are free on the device",
				 is_free);
}

static void probe_copies_fill(uint64_t *words, size_t count)
{
	struct rng rng;
	rng_init(&rng, count, 0);
	for (size_t i = 0; i < count; i++)
		words[i] = rng_next(&rng);
}

static int allocate_host(struct probing *probing, struct error *err)
{
	const size_t bytes = probing->host_bytes;
	struct error why = {0};
	if (posix_memalign(&probing->pageable, PAGE_BYTES, bytes) != 0) {
		probing->pageable = NULL;
		return error_set(
			err, -ENOMEM, "cuda: out of memory for copies of %zu bytes", bytes);
	}
	probe_copies_fill(probing->pageable, bytes / sizeof(uint64_t));
	if (CUDA_TRY(&why, cudaMallocHost(&probing->pinned, bytes))) {
		probing->pinned = NULL;
		probing_lack(probing, "copies from pinned memory: %.180s", why.text);
	}
	return 0;
}

/* Once around: pinned (or pageable) host memory, the device, its other half, pageable host memory. */
static int check_ways(struct probing *probing, struct error *err)
{
	const size_t bytes = smaller(probing->host_bytes, probing->memory_bytes);
	const struct cuda_probe_copy there = {.pinned = probing->pinned != NULL, .bytes = bytes};
	unsigned char *kept = malloc(bytes);
	if (!kept)
		return error_set(err, -ENOMEM, "cuda: out of memory to check copies");
	memcpy(kept, probing->pageable, bytes);
	if (probing->pinned)
		memcpy(probing->pinned, kept, bytes);
	int code = probe_copies_enqueue(probing, &there, err);
	if (code == 0)
		code = enqueue_by_kernel(probing, NULL, err);
	if (code == 0)
		code = CUDA_TRY(err, cudaStreamSynchronize(probing->stream));
	memset(probing->pageable, 0, bytes);
	if (code == 0)
		code = CUDA_TRY(err, cudaMemcpyAsync(probing->pageable, probing->device[1], bytes,
					     cudaMemcpyDeviceToHost, probing->stream));
	if (code == 0)
		code = CUDA_TRY(err, cudaStreamSynchronize(probing->stream));
	if (code == 0 && memcmp(kept, probing->pageable, bytes) != 0)
		code = error_set(err, -EIO,
			"cuda: a copy of %zu bytes to the device and back gave other bytes", bytes);
	free(kept);
	return code;
}

int probing_add_copies(struct probing *probing, struct error *err)
{
	size_t cache = 0;
	int code = choose_sizes(probing, &cache, err);
	for (int i = 0; i < 2 && code == 0; i++) {
		code = CUDA_TRY(err, cudaMalloc(&probing->device[i], probing->device_bytes));
		if (code == 0)
			code = CUDA_TRY(err, cudaMemsetAsync(probing->device[i], 1,
						     probing->device_bytes, probing->stream));
	}
	if (code == 0)
		code = allocate_host(probing, err);
	if (code == 0)
		code = check_ways(probing, err);
	if (code)
		return code;
	add_host_copies(probing);
	add_memory(probing, cache);
	return 0;
}
