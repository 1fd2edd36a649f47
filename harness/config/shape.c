/* What follows from a configuration by one formula that the pipeline and its model share. */
#include "harness/config/shape.h"

/* --- structure -------------------------------------------------------------------------------- */

/* In memory a blob is a pointer: more of them cost nothing and let readers hand over many at once. */
enum {
	BLOBS_LEAST = 16,
	BLOBS_LEAST_IN_MEMORY = 256,
	BLOBS_OF_REQUESTS_MOST = 1024,
	READER_TAKES_MOST = 256,
};

/* Samples of a large request are all there at once: as few as are in flight elsewhere would have the reader and the workers
 * wait for each other at every visit.  Those of two: the reader cuts one up while the workers take the other. */
static uint64_t blobs_of_requests(const struct config *config, const struct shape_facts *facts)
{
	const double samples =
		facts->workload.reads_large && facts->sample_bytes > 0
			? 2 * config_real(config, KEY_READ_REQUEST) / facts->sample_bytes
			: 0;
	if (!(samples > BLOBS_LEAST))
		return BLOBS_LEAST;
	return samples < BLOBS_OF_REQUESTS_MOST ? (uint64_t)samples : BLOBS_OF_REQUESTS_MOST;
}

static unsigned reader_takes(const struct shape_facts *facts, const struct pipeline_shape *shape)
{
	const uint32_t half = shape->blobs / 2;
	if (!facts->workload.reads_large || half < shape->read_depth)
		return shape->read_depth;
	return half < READER_TAKES_MOST ? half : READER_TAKES_MOST;
}

static uint32_t blobs_of(const struct config *config, const struct shape_facts *facts,
	const struct pipeline_shape *shape)
{
	const uint64_t asked = (uint64_t)config_integer(config, KEY_DECODE_QUEUE);
	if (shape->by_workers)
		return shape->decode_workers;
	if (asked > 0)
		return (uint32_t)asked;
	/* Reads may complete all at once, and what is read waits for a worker: as many can be in flight again meanwhile.  A reader
	 * that blocks has one in flight. */
	const uint64_t flights = facts->workload.reads_block ? 1 : 2;
	const uint64_t blobs = flights * shape->reader_threads * shape_read_depth(config) +
			       2ULL * shape->decode_workers;
	const uint64_t least = facts->workload.reads_memory ? BLOBS_LEAST_IN_MEMORY
							    : blobs_of_requests(config, facts);
	return (uint32_t)(blobs > least ? blobs : least);
}

bool shape_uploads(const struct config *config, const struct workload_facts *facts)
{
	const int64_t mode = config_integer(config, KEY_UPLOAD_MODE);
	const bool ahead = config_integer(config, KEY_PREFETCH_DEPTH) > 0;
	return mode == UPLOAD_MODE_COPY ||
	       (mode == UPLOAD_MODE_AUTO && facts->step_has_memory && ahead);
}

unsigned shape_readers(const struct config *config)
{
	return (unsigned)config_integer(
		config, shape_by_workers(config) ? KEY_DECODE_WORKERS : KEY_READ_THREADS);
}

unsigned shape_read_depth(const struct config *config)
{
	return shape_by_workers(config) ? 1 : (unsigned)config_integer(config, KEY_READ_DEPTH);
}

/* A slot for every batch that so many workers fill at once.  A worker that is done with its part of one begins the next in a
 * slot of the queue, if the queue is not full. */
void shape_set_prefetch(struct pipeline_shape *shape, uint32_t depth)
{
	const uint32_t workers = shape->decode_workers;
	const uint32_t filling = (workers + shape->batch_size - 1) / shape->batch_size;
	shape->turns = depth == 0;
	shape->prefetch_depth =
		shape->whole_batches && depth > 0 && depth < workers ? workers : depth;
	shape->slots =
		shape->prefetch_depth + (shape->whole_batches ? 0 : filling) + shape->devices;
	if (shape->turns)
		shape->slots = shape->devices;
}

void pipeline_shape_of(
	const struct config *config, const struct shape_facts *facts, struct pipeline_shape *shape)
{
	const uint64_t batch = (uint64_t)config_integer(config, KEY_BATCH_SIZE);
	*shape = (struct pipeline_shape){
		.reader_threads = shape_readers(config),
		.read_depth = facts->workload.reads_block ? 1 : shape_read_depth(config),
		.decode_workers = (unsigned)config_integer(config, KEY_DECODE_WORKERS),
		.batch_size = (uint32_t)(batch < facts->samples ? batch : facts->samples),
		.in_order = config_integer(config, KEY_BATCH_ORDER) == BATCH_ORDER_IN_ORDER,
		.by_workers = shape_by_workers(config),
		.whole_batches = config_integer(config, KEY_DECODE_SHARE) == DECODE_SHARE_BATCHES,
		.step_threads = facts->workload.step_on_cores
					? (unsigned)config_integer(config, KEY_STEP_THREADS)
					: 0,
		.devices = (unsigned)config_integer(config, KEY_STEP_DEVICES),
		.ranks = (unsigned)config_integer(config, KEY_RUN_RANKS),
		.checkpoint_every = (uint32_t)config_integer(config, KEY_CHECKPOINT_EVERY),
		.checkpoint_async =
			config_integer(config, KEY_CHECKPOINT_MODE) == CHECKPOINT_MODE_ASYNC,
		.evaluate_every = (uint32_t)config_integer(config, KEY_EVALUATE_EVERY),
		.epochs_apart = !config_on(config, KEY_DECODE_PERSISTENT),
		.startup_ns = (uint64_t)config_integer(config, KEY_DECODE_STARTUP),
	};
	const uint64_t samples = shape->ranks > 1 ? facts->samples / shape->ranks : facts->samples;
	shape->epoch_samples = config_on(config, KEY_BATCH_DROP_LAST)
				       ? samples - samples % shape->batch_size
				       : samples;
	shape->blobs = blobs_of(config, facts, shape);
	shape->reader_takes = reader_takes(facts, shape);
	shape_set_prefetch(shape, (uint32_t)config_integer(config, KEY_PREFETCH_DEPTH));
	if (shape_uploads(config, &facts->workload))
		shape->staging_slots = (uint32_t)config_integer(config, KEY_UPLOAD_DEPTH) + 1;
}

/* --- what is declared for a batch ------------------------------------------------------------- */

struct declared_batch declared_batch_of(const struct config *config)
{
	const double bytes_per_s = config_real(config, KEY_OVERHEAD_BANDWIDTH);
	return (struct declared_batch){
		.objects_ns = (double)config_integer(config, KEY_BATCH_SIZE) *
			      config_real(config, KEY_OVERHEAD_OBJECTS) *
			      config_real(config, KEY_OVERHEAD_OBJECT),
		.ns_of_byte = bytes_per_s > 0 ? 1e9 / bytes_per_s : 0,
		.ns_of_sample = config_real(config, KEY_OVERHEAD_INDEX),
	};
}

/* --- when planted slow-downs act -------------------------------------------------------------- */

struct active_span active_span_of(const struct config *config)
{
	const double begin = config_real(config, KEY_INJECT_BEGIN);
	const double end = config_real(config, KEY_INJECT_END);
	if (config_integer(config, KEY_MEASURE_EPOCHS) > 0 || (begin <= 0 && end >= 1))
		return (struct active_span){0};
	const double planned_ns =
		config_real(config, KEY_MEASURE_WARMUP) + config_real(config, KEY_MEASURE_DURATION);
	return (struct active_span){
		.begin_ns = (uint64_t)(begin * planned_ns),
		.end_ns = end >= 1 ? UINT64_MAX : (uint64_t)(end * planned_ns),
	};
}

/* --- the time of an all-reduce ---------------------------------------------------------------- */

/* The formulas of shape.h. */

double all_reduce_ring_seconds(
	double bytes, unsigned participants, double bytes_per_s, double latency_s)
{
	if (participants < 2)
		return 0;
	const double p = participants;
	return 2 * (p - 1) * latency_s + 2 * (p - 1) / p * bytes / bytes_per_s;
}

/* ceil(log2 participants), without rounding. */
static unsigned rounds_of(unsigned participants)
{
	unsigned rounds = 0;
	for (unsigned reached = 1; reached < participants; reached *= 2)
		rounds++;
	return rounds;
}

double all_reduce_tree_seconds(
	double bytes, unsigned participants, double bytes_per_s, double latency_s)
{
	if (participants < 2)
		return 0;
	return 2 * (double)rounds_of(participants) * (latency_s + bytes / bytes_per_s);
}
