/* Calibrates a replay from one point: its structure comes from the configuration, its costs from
 * the recorded service times, its cores and their load from the measurements.  The last part
 * replays the point as it was measured, which tells how far the model can be trusted. */
#include "harness/analyze/point_model.h"

#include "harness/analyze/model_costs.h"
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time from a wake-up until the thread runs, where it was not measured: Linux on common hardware
 * takes 10 to 30 us. */
static const double WAKE_NS = 20000;
static const double CONTENTION_MOST = 4;
/* A device that is this busy always has a queue. */
static const double DEVICE_HIDES = 0.97;
/* A group uses at most so many times its quota, averaged over some periods. */
static const double QUOTA_SLACK = 1.15;
static const double OUTSIDE_LEAST = 0.02;

enum { MODEL_BLOCK = 64 };

void model_note(struct model *model, const char *format, ...)
{
	if (model->note_count == MODEL_NOTES_MAX)
		return;
	char *note = model->notes[model->note_count];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(note, NOTE_BYTES, format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < model->note_count; i++)
		if (strcmp(model->notes[i], note) == 0)
			return;
	model->note_count++;
}

/* --- structure and cores ---------------------------------------------------------------------- */

/* The CPU quota in cores. 0: there is none, it is unknown, it exceeds the cores, or more was used
 * than it allows (it was set for a part of the time only). */
static double quota_of(const struct model_source *source)
{
	for (size_t i = 0; i < source->count; i++) {
		const struct measurement *m = source->repeats[i];
		const double used = m->cpu_seconds / measurement_counted_seconds(m);
		/* What others of its group were seen to use of it is not ours. */
		const double others = m->quota_used > used ? m->quota_used - used : 0;
		if (m->quota_cores > 0)
			return m->quota_cores < source->cores &&
					       used <= QUOTA_SLACK * m->quota_cores
				       ? fmax(m->quota_cores - others, fmin(used, m->quota_cores))
				       : 0;
	}
	return 0;
}

void model_shape(
	const struct model *model, const struct config *config, struct pipeline_shape *shape)
{
	const struct shape_facts facts = {.samples = model->samples,
		.sample_bytes = model->sample_bytes,
		.workload = model->facts};
	pipeline_shape_of(config, &facts, shape);
}

double model_cores(const struct model *model, const struct config *config)
{
	const double held = config_real(config, KEY_INJECT_CPUS);
	const double beside =
		model->facts.step_on_cores ? config_real(config, KEY_STEP_THREADS) : 0;
	return held > 0 ? fmin(held + beside, model->cores) : model->cores;
}

double model_declared(const struct model *model, const struct config *config, bool by_step)
{
	const struct declared_batch declared = declared_batch_of(config);
	const double bytes = model->made_bytes * config_real(config, KEY_BATCH_SIZE);
	const double handover_ns = declared.objects_ns + declared.ns_of_byte * bytes;
	if (!by_step)
		return config_real(config, KEY_OVERHEAD_BATCH) + handover_ns;
	return config_real(config, KEY_OVERHEAD_STEP) +
	       declared.ns_of_sample * (double)model->samples +
	       (model->facts.step_null ? 0 : handover_ns);
}

static void take_facts(struct model *model, const struct model_source *source)
{
	const struct measurement *m = source->repeats[0];
	/* Results that do not say how many samples there were: enough for any batch. */
	model->samples = m->dataset_samples > 0 ? m->dataset_samples : UINT32_MAX;
	model->sample_bytes = m->file_bytes_mean;
	model->made_bytes = (double)m->batch_bytes / config_real(source->config, KEY_BATCH_SIZE);
	model->facts = m->facts;
	model->step_time = m->facts.step_emulated ? source->step_time : NULL;
	model->exchange_time = m->facts.step_emulated ? source->exchange_time : NULL;
	model_shape(model, source->config, &model->replay.shape);
	model->samples_per_batch = model->replay.shape.batch_size;
	model->cores = source->cores > 0 ? source->cores : 1;
	model->replay.cores = model_cores(model, source->config);
	const struct stage_measurement *const decode = measurement_stage(m, STAGE_DECODE);
	/* A mask that the configuration does not know of. */
	if (decode && decode->cores > 0 && decode->cores < decode->workers)
		model->replay.cores = fmin(model->replay.cores,
			decode->cores + (model->facts.step_on_cores ? config_real(source->config,
									      KEY_STEP_THREADS)
								    : 0));
	model->replay.quota = quota_of(source);
	model->replay.wake_ns = WAKE_NS;
	model->replay.copies_off_cores = model->facts.step_has_memory;
	for (int c = 0; c < COSTS; c++)
		model->replay.scale[c] = 1;
}

/* Deviations for each doubling of busy cores.  A probe's cores did other work at another time, so that most of what it says is in
 * doubt: one node's probes said 0.78 and 1.01 within an hour, and its pipelines 0.98.  The share is such that their intervals
 * would have held both (docs/ACCURACY.md), and no less is in doubt than without a probe. */
static const double CONTENTION_UNKNOWN = 0.04;
static const double CONTENTION_OF_PROBE = 0.6;

static void model_take_contention(struct model *model, const struct model_source *source)
{
	const struct ceilings *ceilings = source->ceilings;
	double contention = source->contention;
	if (isnan(contention) && ceilings && ceilings->cpu_scaling > 0 && ceilings->cores > 1) {
		contention = (1 / ceilings->cpu_scaling - 1) / (ceilings->cores - 1);
		model_note(model,
			"cores slow each other down as this node's probe measured: to %.2f of "
			"their speed alone with all %u busy",
			ceilings->cpu_scaling, ceilings->cores);
		model->contention_doubt =
			fmax(CONTENTION_OF_PROBE * log1p(fmax(contention, 0)), CONTENTION_UNKNOWN);
	} else if (isnan(contention)) {
		contention = 0;
		model->contention_doubt = CONTENTION_UNKNOWN;
		if (model->replay.cores > 1)
			model_note(model,
				"how much busy cores slow each other down is unknown (one number of busy cores, no probe): assumed not at all");
	}
	model->replay.contention = fmin(fmax(contention, 0), CONTENTION_MOST);
}

/* ns per batch, at most: of each repetition, counting may have cut one batch off. 0: not an emulated step with one device. */
static double step_working(const struct model *model, const struct model_source *source)
{
	double seconds = 0;
	double batches = 0;
	if (!model->facts.step_emulated || model->replay.shape.devices > 1)
		return 0;
	for (size_t i = 0; i < source->count; i++) {
		const struct stage_measurement *step =
			measurement_stage(source->repeats[i], STAGE_STEP);
		seconds += step ? step->seconds[THREAD_WORKING] : 0;
		batches += step ? (double)step->items : 0;
	}
	return batches > 0 ? seconds / fmax(batches - (double)source->count, 1) * 1e9 : 0;
}

static struct outside take_outside(const struct model *model, const struct model_source *source)
{
	struct outside mean = {0, 0};
	for (size_t i = 0; i < source->count; i++) {
		const struct outside one = outside_threads(
			source->repeats[i], model->replay.cores, model->facts.step_on_cores);
		mean.got += one.got / (double)source->count;
		mean.wanted += one.wanted / (double)source->count;
	}
	return mean.got > OUTSIDE_LEAST ? mean : (struct outside){0, 0};
}

/* --- costs ------------------------------------------------------------------------------------ */

/* How many times as long a thread of that stage took because other cores were busy. */
static double slowed_in(const struct model *model, const struct measurement *m, enum stage_id stage)
{
	return 1 + model->replay.contention * (busy_beside(m, stage, model->replay.cores) - 1);
}

/* Mean CPU time of a reader's thread per file, as on a core alone. */
static double read_cpu_of_file(const struct model *model, const struct model_source *source)
{
	double sum = 0;
	for (size_t i = 0; i < source->count; i++) {
		const struct measurement *m = source->repeats[i];
		const struct stage_measurement *read = measurement_stage(m, STAGE_READ);
		if (read && read->items > 0 && !isnan(read->cpu_seconds))
			sum += read->cpu_seconds * 1e9 / (double)read->items /
			       slowed_in(model, m, STAGE_READ);
	}
	return sum / (double)source->count;
}

/* Samples that one read gives, over the repetitions; 0: each is read by itself. */
static double samples_of_read(const struct model *model, const struct model_source *source)
{
	double samples = 0;
	double reads = 0;
	for (size_t i = 0; i < source->count; i++) {
		const struct stage_measurement *read =
			measurement_stage(source->repeats[i], STAGE_READ);
		samples += read ? (double)read->items : 0;
		reads += measurement_reads(source->repeats[i]);
	}
	return model->facts.reads_large && samples > reads && reads > 0 ? samples / reads : 0;
}

static void note_read(struct model *model, const struct read_split *split)
{
	const struct pipeline_shape *shape = &model->replay.shape;
	const char *const each = model->facts.reads_large ? "request" : "file";
	if (split->device_ns > 0)
		model_note(model,
			"reading: a serial device takes %s us per %s%s and was %.0f %% busy%s; "
			"latency %s us%s",
			UNITS_PLAIN(split->device_ns / 1e3, 3), each,
			split->by_bytes ? ", in proportion to bytes" : "",
			100 * split->device_share,
			split->hit_share > 0 ? "; some came from a cache" : "",
			UNITS_PLAIN(split->latency_ns / 1e3, 3),
			split->device_share > DEVICE_HIDES
				? " (a higher one would be hidden by its queue)"
				: "");
	else if (!split->identified && shape->reader_threads * shape->read_depth > 1)
		model_note(model,
			"reading: latency and device time could not be told apart: assumed to be "
			"latency, %s us per %s, which overlaps at any depth",
			UNITS_PLAIN(split->latency_ns / 1e3, 3), each);
}

/* The reads of all repetitions in sequence; NULL without memory. */
static struct trace_item *all_reads(const struct model_source *source, size_t *count)
{
	*count = 0;
	for (size_t i = 0; i < source->count; i++) {
		const struct trace *trace = traces_find(source->traces[i], stage_name(STAGE_READ));
		*count += trace ? trace->count : 0;
	}
	struct trace_item *items = calloc(*count + 1, sizeof *items);
	size_t at = 0;
	for (size_t i = 0; items && i < source->count; i++) {
		const struct trace *trace = traces_find(source->traces[i], stage_name(STAGE_READ));
		for (size_t k = 0; trace && k < trace->count; k++)
			items[at++] = trace->items[k];
	}
	return items;
}

static int split_reads(struct model *model, struct cost_series series[COSTS], double cpu_ns,
	const struct storage *storage, const struct trace_item *items, size_t count)
{
	const struct pipeline_shape *shape = &model->replay.shape;
	/* Samples are cut out of a request after it was read, but where the thread reads it itself. */
	const double samples = model->replay.request_samples;
	const double read_cpu_ns = samples > 0 ? samples * cpu_ns : cpu_ns;
	const struct read_facts facts = {
		.cpu_ns = read_cpu_ns,
		.within_ns = samples > 0 && !model->facts.reads_block ? 0 : read_cpu_ns,
		.blocking = model->facts.reads_block || shape->by_workers,
		.threads = shape->reader_threads,
		.depth = shape->read_depth,
		.storage = storage->known ? storage : NULL,
	};
	/* What others have of it is not ours to promise. */
	model->read_full = storage->others > 0 ? 1 : storage->full;
	float *const latency_ns = series_extend(&series[COST_READ_LATENCY], count);
	float *const device_ns = series_extend(&series[COST_READ_DEVICE], count);
	struct read_split split;
	if (!latency_ns || !device_ns ||
		read_split(items, count, &facts, latency_ns, device_ns, &split))
		return -ENOMEM;
	note_read(model, &split);
	model->hidden_device_ns = split.hidden_ns;
	const unsigned allowed = shape->reader_threads * shape->read_depth;
	const unsigned seen = (unsigned)fmin(ceil(storage->most_in_flight), UINT32_MAX);
	model->measured_in_flight = seen > allowed ? seen : allowed;
	model->read_most = storage->compared > 0 && !storage->reads_large ? storage->best_rate : 0;
	return 0;
}

void model_storage(const struct model_source *source, const struct measurement *const *repeats,
	size_t count, double let_through, struct storage *out)
{
	const bool traced = source && (source->repeats == repeats || source->count == count);
	const struct storage_evidence evidence = {.repeats = repeats,
		.traces = traced ? source->traces : NULL,
		.count = count,
		.others = source ? source->others : NULL,
		.other_count = source ? source->other_count : 0,
		.read_blocks = source ? source->read_blocks : NULL,
		.read_block_count = source ? source->read_block_count : 0,
		.ceilings = source ? source->ceilings : NULL,
		.let_through = let_through};
	storage_fit(&evidence, out);
}

static int series_of_read(
	struct model *model, struct cost_series series[COSTS], const struct model_source *source)
{
	const double cpu_ns = read_cpu_of_file(model, source);
	float *const cpu = series_extend(&series[COST_READ_CPU], 1);
	if (!cpu)
		return -ENOMEM;
	*cpu = (float)cpu_ns;
	model->replay.request_samples = samples_of_read(model, source);
	model->replay.requests_block = model->facts.reads_block;
	/* In memory a file is a pointer: what it takes is the reader's CPU time. */
	if (model->facts.reads_memory)
		return 0;
	size_t count = 0;
	struct trace_item *items = all_reads(source, &count);
	struct storage storage;
	model_storage(source, source->repeats, source->count, source->let_through, &storage);
	const int code =
		items ? split_reads(model, series, cpu_ns, &storage, items, count) : -ENOMEM;
	free(items);
	return code;
}

/* The share of a decode worker's time that it sleeps, with the lock or without. */
static double asleep_share(const struct measurement *m, double slowed)
{
	const struct stage_measurement *decode = measurement_stage(m, STAGE_DECODE);
	if (!decode)
		return 0;
	const struct time_split split = time_split_of(m, decode);
	const double all = split.cpu / slowed + split.sleep;
	return all > 0 ? split.sleep / all : 0;
}

static int series_of_repeat(struct model *model, struct cost_series series[COSTS],
	const struct measurement *m, const struct traces *traces, size_t repeats)
{
	const double slowed = slowed_in(model, m, STAGE_DECODE);
	const struct trace *decode = traces_find(traces, stage_name(STAGE_DECODE));
	const struct trace *upload = traces_find(traces, stage_name(STAGE_UPLOAD));
	const struct trace *step = traces_find(traces, stage_name(STAGE_STEP));
	const struct trace *sync = traces_find(traces, stage_name(STAGE_SYNC));
	double late_ns = 0;
	int code = 0;
	if (decode)
		code = series_of_decode(series, m, decode, model->worker_factor, slowed);
	if (!code && upload && model->replay.shape.staging_slots > 0)
		code = series_of_upload(
			series, m, upload, &model->facts, slowed_in(model, m, STAGE_UPLOAD));
	if (!code && step)
		code = series_of_step(series, m, step, model->device_factor, &model->facts,
			slowed_in(model, m, STAGE_STEP), &late_ns);
	if (!code && sync && (model->replay.shape.devices > 1 || model->replay.shape.ranks > 1))
		code = series_of_sync(series, sync, &model->waits);
	if (!code)
		code = series_of_checkpoint(series, m);
	if (!code)
		code = series_of_evaluation(series, m);
	model->late_ns += late_ns / (double)repeats;
	model->replay.lock_off_cores += asleep_share(m, slowed) / (double)repeats;
	model->recorded += decode ? decode->count : 0;
	return code;
}

static void note_accounting(struct model *model, const struct measurement *m)
{
	const struct stage_measurement *decode = measurement_stage(m, STAGE_DECODE);
	if (decode && isnan(decode->cpu_seconds))
		model_note(model,
			"no CPU accounting here (schedstat): all working time is assumed to be CPU "
			"time");
	if (isnan(m->cores_busy_outside))
		model_note(model, "load from other processes is unknown: assumed to be none");
}

static void note_checkpoints(struct model *model, const struct measurement *m)
{
	if (m->checkpoint_count > 0 && !m->checkpoint[0].async)
		model_note(model,
			"what checkpoint.mode = async would stand still for is the copy of the state, at %.1f GB/s as tried in memory before the run; a copy from a device is slower",
			m->checkpoint[0].copy_bytes_per_s / 1e9);
}

static void note_evaluations(struct model *model, const struct measurement *m)
{
	if (m->evaluation_count > 0 && m->evaluation[0].count > 0)
		model_note(model,
			"an evaluation is assumed to wait as long for its input as it did, whatever training's settings are");
}

static bool is_nothing(const struct cost_series *series)
{
	for (size_t i = 0; i < series->count; i++)
		if (series->ns[i] > 0)
			return false;
	return true;
}

static void model_keep_series(struct model *model, struct cost_series series[COSTS])
{
	for (int c = 0; c < COSTS; c++) {
		if (is_nothing(&series[c])) {
			free(series[c].ns);
			continue;
		}
		model->storage[c] = series[c].ns;
		model->replay.series[c] =
			(struct replay_series){.ns = series[c].ns, .count = series[c].count};
	}
}

static void note_stragglers(struct model *model, const char *what, const float *factor,
	unsigned count, const char *at_what)
{
	for (unsigned i = 0; i < count; i++)
		if (factor[i] > 1)
			model_note(model,
				"%s %u is a straggler: it takes %.2f times as long as the others%s",
				what, i, (double)factor[i], at_what);
}

static int take_workers(struct model *model, const struct model_source *source)
{
	const unsigned workers = model->replay.shape.decode_workers;
	model->worker_factor = calloc(workers, sizeof *model->worker_factor);
	if (!model->worker_factor)
		return -ENOMEM;
	if (worker_factors(source->repeats, source->traces, source->count, STAGE_DECODE_NAME,
		    workers, model->worker_factor))
		model->replay.worker_factor = model->worker_factor;
	note_stragglers(model, "decode worker", model->worker_factor, workers, "");
	return 0;
}

static int take_devices(struct model *model, const struct model_source *source)
{
	const unsigned devices = model->replay.shape.devices;
	model->device_factor = calloc(DEVICES_MAX, sizeof *model->device_factor);
	if (!model->device_factor)
		return -ENOMEM;
	for (unsigned d = 0; d < DEVICES_MAX; d++)
		model->device_factor[d] = 1;
	if (devices > 1)
		(void)worker_factors(source->repeats, source->traces, source->count,
			STAGE_STEP_NAME, devices, model->device_factor);
	note_stragglers(model, "device", model->device_factor, devices, " to compute");
	model_use_devices(model);
	return 0;
}

static int take_costs(struct model *model, const struct model_source *source)
{
	struct cost_series series[COSTS] = {0};
	int code = take_workers(model, source);
	if (!code)
		code = take_devices(model, source);
	if (!code)
		code = series_of_read(model, series, source);
	for (size_t i = 0; i < source->count && !code; i++)
		code = series_of_repeat(
			model, series, source->repeats[i], source->traces[i], source->count);
	if (!code && model->replay.shape.epochs_apart) {
		float *const startup = series_extend(&series[COST_DECODE_STARTUP], 1);
		if (startup)
			*startup = (float)model->replay.shape.startup_ns;
		code = startup ? 0 : -ENOMEM;
	}
	const double declared_ns = model_declared(model, source->config, false);
	if (!code && declared_ns > 0) {
		/* As of a core alone: CPU time that is declared is the same on a core that others slow down. */
		float *const batch = series_extend(&series[COST_DECODE_BATCH], 1);
		if (batch)
			*batch = (float)(declared_ns /
					 slowed_in(model, source->repeats[0], STAGE_DECODE));
		code = batch ? 0 : -ENOMEM;
	}
	model_keep_series(model, series);
	note_accounting(model, source->repeats[0]);
	note_checkpoints(model, source->repeats[0]);
	note_evaluations(model, source->repeats[0]);
	return code;
}

/* --- how cores slow each other down ----------------------------------------------------------- */

static const double SPREAD_LEAST = 0.5; /* cores */

bool model_keeps_decode_cost(enum key_id key)
{
	static const char *const sections[] = {
		"decode", "batch", "prefetch", "step", "sync", "upload", "checkpoint", "evaluate"};
	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
		if (strcmp(config_keys[key].section, sections[i]) == 0)
			return key != KEY_DECODE_THREADS;
	return key == KEY_READ_DEPTH || key == KEY_READ_THREADS || key == KEY_READ_BY;
}

bool model_contention_point(
	const struct measurement *measurement, unsigned cores, double *busy, double *cpu_ns)
{
	const struct stage_measurement *decode = measurement_stage(measurement, STAGE_DECODE);
	if (!decode || decode->items == 0 || isnan(decode->cpu_seconds))
		return false;
	*busy = busy_beside(measurement, STAGE_DECODE, cores);
	/* That of a batch is not in proportion to the items of points with other batches. */
	const double apart = isnan(decode->overhead_seconds) ? 0 : decode->overhead_seconds;
	*cpu_ns = (decode->cpu_seconds - apart) * 1e9 / (double)decode->items;
	return *cpu_ns > 0;
}

/* Fits a line by least squares; contention is its slope over its value at one core. */
double model_fit_contention(const double *busy, const double *cpu_ns, size_t count)
{
	double low = HUGE_VAL;
	double high = -HUGE_VAL;
	double x = 0;
	double y = 0;
	for (size_t i = 0; i < count; i++) {
		low = fmin(low, busy[i]);
		high = fmax(high, busy[i]);
		x += (busy[i] - 1) / (double)count;
		y += cpu_ns[i] / (double)count;
	}
	if (count < 2 || high - low < SPREAD_LEAST)
		return NAN;
	double xx = 0;
	double xy = 0;
	for (size_t i = 0; i < count; i++) {
		xx += (busy[i] - 1 - x) * (busy[i] - 1 - x);
		xy += (busy[i] - 1 - x) * (cpu_ns[i] - y);
	}
	const double slope = xy / xx;
	const double alone = y - slope * x;
	return alone > 0 ? fmax(slope / alone, 0) : NAN;
}

enum {
	SAMPLES_LEAST = 64, /* recorded, for anything */
	/* In a replay: fewer of large batches, whose samples average out within each. */
	BATCHES_LEAST = 8,
	BATCHES_USUAL = 24,
	BATCHES_SAMPLES = 24 << 10,
	WARMUP_BATCHES = 4,
	RESAMPLES = 8,
	FIT_ROUNDS = 3,
	REPLAY_SAMPLES_LEAST = 2000,
	REPLAY_SAMPLES_MOST = 12000,
};

/* A prediction is worth making when the recorded items alone pin the throughput down to this (half
 * of the 90 % interval). */
static const double WIDTH_MOST = 0.1;
static const double Z90 = 1.645;
static const double FIT_WITHIN = 0.005, FIT_LEAST = 0.1;
/* Two readings of the outside load that differ by less count as one. */
static const double WORTH_A_LOOK = 1.05;
/* How much a repetition varies where nothing is known; weighted like two repetitions. */
static const double NOISE_USUAL = 0.01;
static const double NOISE_USUAL_WEIGHT = 2;

/* --- replays ---------------------------------------------------------------------------------- */

struct replay_options model_options(const struct model *model, size_t samples)
{
	const struct pipeline_shape *shape = &model->replay.shape;
	const uint64_t batch = shape->batch_size > 0 ? shape->batch_size : 1;
	const uint64_t batches = (samples + batch - 1) / batch;
	const uint64_t fitting = BATCHES_SAMPLES / batch;
	const uint64_t few = fitting < BATCHES_LEAST   ? BATCHES_LEAST
			     : fitting < BATCHES_USUAL ? fitting
						       : BATCHES_USUAL;
	const uint64_t least = few * (shape->devices > 1 ? shape->devices : 1ULL);
	return (struct replay_options){
		.batches = batches > least ? batches : least,
		/* Until what is in flight at the start has been filled up and used. */
		.warmup_batches = WARMUP_BATCHES + shape->slots +
				  shape->staging_slots * (shape->devices > 1 ? shape->devices : 1) +
				  2 * shape->blobs / batch,
	};
}

struct replay_options model_resample(const struct model *model, size_t samples, uint64_t seed)
{
	struct replay_options options = model_options(model, samples);
	/* Few items: still several blocks to draw from. */
	const size_t eighth = model->recorded / 8;
	options.block = eighth < 1 ? 1 : eighth < MODEL_BLOCK ? eighth : MODEL_BLOCK;
	options.seed = seed;
	return options;
}

size_t model_whole_length(const struct model *model)
{
	const size_t samples =
		model->recorded < REPLAY_SAMPLES_LEAST ? REPLAY_SAMPLES_LEAST : model->recorded;
	return samples < REPLAY_SAMPLES_MOST ? samples : REPLAY_SAMPLES_MOST;
}

double replay_busy(const struct replay_result *result, enum replay_stage stage)
{
	/* A reader is at work all the time that it is not blocked; that need not bind. */
	if (stage != REPLAY_STEP)
		return result->share[stage][THREAD_WORKING];
	/* A device that exchanges, or waits for others, is as much taken as one that computes. */
	const double taken =
		result->share[stage][THREAD_WORKING] + result->share[stage][THREAD_BLOCKED];
	return fmax(result->step_utilisation, taken);
}

/* --- what was measured ------------------------------------------------------------------------ */

static void model_take_rates(
	struct model *model, const struct model_source *source, double *throughputs)
{
	size_t n = 0;
	for (size_t i = 0; i < source->count; i++)
		if (source->repeats[i]->throughput > 0)
			throughputs[n++] = source->repeats[i]->throughput;
	model->measured = statistics_median(throughputs, n);
	double squares = NOISE_USUAL_WEIGHT * NOISE_USUAL * NOISE_USUAL;
	for (size_t i = 0; i < n; i++) {
		throughputs[i] = log(throughputs[i]);
	}
	const double deviation = statistics_deviation(throughputs, n);
	if (n >= 2)
		squares += (double)(n - 1) * deviation * deviation;
	else
		model_note(model, "only one repetition: its noise is assumed to be %.1f %%",
			100 * NOISE_USUAL);
	model->noise = sqrt(squares / (NOISE_USUAL_WEIGHT + (n >= 2 ? (double)(n - 1) : 0)));
}

/* How many recorded samples would pin the throughput down to WIDTH_MOST, from how much it varies
 * over replays of resampled blocks. */
static int samples_needed(
	const struct model *model, size_t samples, size_t *needed, struct error *err)
{
	double logs[RESAMPLES];
	double through = 0;
	for (uint64_t r = 0; r < RESAMPLES; r++) {
		const struct replay_options options = model_resample(model, samples, r + 1);
		struct replay_result result;
		const int code = replay_run(&model->replay, &options, &result, err);
		if (code)
			return error_prefix(err, code, "replay as measured");
		logs[r] = log(result.throughput);
		through = (double)result.samples;
	}
	const double shortfall = Z90 * statistics_deviation(logs, RESAMPLES) / WIDTH_MOST;
	const double enough = through * shortfall * shortfall;
	*needed = enough > SAMPLES_LEAST ? statistics_round_up(enough) : SAMPLES_LEAST;
	return 0;
}

static double cpu_of_sample(const struct model *model, const struct model_source *source)
{
	double sum = 0;
	for (size_t i = 0; i < source->count; i++) {
		const struct measurement *m = source->repeats[i];
		const double samples = m->throughput * measurement_counted_seconds(m);
		sum += samples > 0 ? 1e9 * m->cpu_seconds / samples / (double)source->count : NAN;
	}
	return isfinite(sum) && !model->facts.step_on_cores ? sum : 0;
}

static int model_measured(struct model *model, const struct model_source *source, struct error *err)
{
	double *throughputs = calloc(source->count, sizeof *throughputs);
	if (!throughputs)
		return error_set(err, -ENOMEM, "out of memory");
	model_take_rates(model, source, throughputs);
	free(throughputs);
	model->cpu_ns = cpu_of_sample(model, source);
	if (!(model->measured > 0))
		return error_set(err, -ENODATA, "no throughput was measured");
	return 0;
}

static int replay_as_measured(
	const struct model *model, size_t samples, struct replay_result *result, struct error *err)
{
	const struct replay_options options = model_options(model, samples);
	const int code = replay_run(&model->replay, &options, result, err);
	return code ? error_prefix(err, code, "replay as measured") : 0;
}

static int choose_outside(struct model *model, const struct outside *outside, size_t samples,
	struct replay_result *result, struct error *err)
{
	model->replay.outside = outside->got;
	int code = replay_as_measured(model, samples, result, err);
	if (code || outside->wanted < WORTH_A_LOOK * outside->got)
		return code;
	struct replay_result other;
	model->replay.outside = outside->wanted;
	code = replay_as_measured(model, samples, &other, err);
	const double miss_got = fabs(log(result->throughput / model->measured));
	const double miss_wanted = fabs(log(other.throughput / model->measured));
	if (!code && miss_wanted < miss_got)
		*result = other;
	else
		model->replay.outside = outside->got;
	return code;
}

/* Fits the step of an emulated device to how long its thread was measured to work per batch. A
 * replay shares cores in equal parts, where a scheduler lets a thread that mostly sleeps go first,
 * so the replay keeps it longer; the device's time is shortened for that, batch by batch. A replay
 * that keeps it too short has another reason (a quota that stops the thread, or a step cut off when
 * counting ended) and is left alone. */
static int fit_step(
	struct model *model, size_t samples, struct replay_result *result, struct error *err)
{
	const struct replay_series *device = &model->replay.series[COST_STEP_DEVICE];
	float *const ns = model->storage[COST_STEP_DEVICE];
	int code = 0;
	for (int round = 0; round < FIT_ROUNDS && !code && model->step_working_ns > 0; round++) {
		/* ns per batch that the step's thread is at work in the replay, of one device. */
		const double replayed = result->share[REPLAY_STEP][THREAD_WORKING] *
					model->samples_per_batch / result->throughput * 1e9;
		const double excess = replayed - model->step_working_ns;
		if (excess < FIT_WITHIN * model->step_working_ns)
			break;
		model->step_excess_ns += excess;
		for (size_t i = 0; i < device->count; i++)
			ns[i] = (float)fmax((double)ns[i] - excess, FIT_LEAST * (double)ns[i]);
		code = replay_as_measured(model, samples, result, err);
	}
	return code;
}

static int model_baseline(
	struct model *model, const struct outside *outside, bool any_number, struct error *err)
{
	const size_t samples = model_whole_length(model);
	size_t needed = 0;
	int code = samples_needed(model, samples, &needed, err);
	if (code)
		return code;
	model->needed = model->recorded < needed ? needed : 0;
	if (model->needed > 0 && !any_number) {
		char have[UNITS_BYTES];
		char want[UNITS_BYTES];
		return error_set(err, -ENODATA,
			"%s samples recorded, %s needed: measure %s times as long "
			"(measure.duration)",
			units_format_count((double)model->recorded, have),
			units_format_count((double)needed, want),
			UNITS_PLAIN((double)needed / fmax((double)model->recorded, 1), 2));
	}
	struct replay_result result;
	code = choose_outside(model, outside, samples, &result, err);
	if (!code)
		code = fit_step(model, samples, &result, err);
	if (code)
		return code;
	model->calibrated = result.throughput;
	model->calibrated_step = result.share[REPLAY_STEP][THREAD_WORKING];
	model->calibrated_cores = result.core_utilisation * model->replay.cores;
	model->calibrated_cpu_ns = model_sample_cpu(&model->replay);
	model->unmodelled = log(result.throughput / model->measured);
	for (int s = 0; s < REPLAY_STAGES; s++)
		model->calibrated_busy[s] = replay_busy(&result, (enum replay_stage)s);
	model->waits.times = 1;
	return model->waits.waited_ns > 0 ? model_round_alone(model, &model->waits.alone_s, err)
					  : 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static bool has_traces(const struct model_source *source)
{
	for (size_t i = 0; i < source->count; i++) {
		const struct trace *decode =
			source->traces[i] ? traces_find(source->traces[i], stage_name(STAGE_DECODE))
					  : NULL;
		if (!decode || decode->count == 0)
			return false;
	}
	return source->count > 0;
}

static int model_calibrate(
	struct model *model, const struct model_source *source, struct error *err)
{
	int code = config_copy(&model->config, source->config, err);
	if (code)
		return code;
	take_facts(model, source);
	model_take_contention(model, source);
	model->step_working_ns = step_working(model, source);
	const struct outside outside = take_outside(model, source);
	if (take_costs(model, source))
		return error_set(err, -ENOMEM, "out of memory");
	code = model_measured(model, source, err);
	return code ? code : model_baseline(model, &outside, source->any_number, err);
}

int model_open(struct model *model, const struct model_source *source, struct error *err)
{
	*model = (struct model){.read_full = 0.5};
	if (!has_traces(source))
		return error_set(err, -ENODATA,
			"no service times were recorded (measure.profiler off, or an older "
			"result)");
	const int code = model_calibrate(model, source, err);
	if (source->lack)
		*source->lack = (struct model_lack){model->recorded, model->needed};
	if (code)
		model_close(model);
	return code;
}

void model_use_devices(struct model *model)
{
	model->replay.device_factor = NULL;
	for (unsigned d = 0; d < model->replay.shape.devices && d < DEVICES_MAX; d++)
		if (model->device_factor[d] > 1)
			model->replay.device_factor = model->device_factor;
}

void model_close(struct model *model)
{
	for (int c = 0; c < COSTS; c++)
		free(model->storage[c]);
	free(model->worker_factor);
	free(model->device_factor);
	config_release(&model->config);
	*model = (struct model){0};
}

static float *copy_floats(const float *from, size_t count)
{
	float *to = from && count > 0 ? malloc(count * sizeof *to) : NULL;
	if (to)
		memcpy(to, from, count * sizeof *to);
	return to;
}

int model_copy(struct model *to, const struct model *from, struct error *err)
{
	*to = *from;
	to->config = (struct config){0};
	bool ok = true;
	for (int c = 0; c < COSTS; c++) {
		const size_t count = from->replay.series[c].count;
		to->storage[c] = copy_floats(from->storage[c], count);
		to->replay.series[c].ns = to->storage[c];
		ok = ok && (to->storage[c] || count == 0);
	}
	const unsigned workers = from->replay.shape.decode_workers;
	to->worker_factor = copy_floats(from->worker_factor, workers);
	to->replay.worker_factor = from->replay.worker_factor ? to->worker_factor : NULL;
	ok = ok && (to->worker_factor || !from->worker_factor);
	to->device_factor = copy_floats(from->device_factor, DEVICES_MAX);
	to->replay.device_factor = from->replay.device_factor ? to->device_factor : NULL;
	ok = ok && to->device_factor;
	const int code = ok ? config_copy(&to->config, &from->config, err)
			    : error_set(err, -ENOMEM, "out of memory");
	if (code)
		model_close(to);
	return code;
}
