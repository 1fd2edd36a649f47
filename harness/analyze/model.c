/* Calibration of a replay from one point: the structure from its configuration, the costs from its
 * traces, cores and load from its measurements. */
#include "harness/analyze/model.h"

#include "harness/analyze/model_parts.h"
#include "harness/analyze/model_read.h"
#include "harness/analyze/storage.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From a wake-up to going on, where nothing measured it: Linux on common hardware takes 10 to 30 us. */
static const double WAKE_NS = 20000;
static const double CONTENTION_MOST = 4;
/* So busy, a device always has a queue. */
static const double DEVICE_HIDES = 0.97;
/* Times a quota: what a group uses at most, over some periods. */
static const double QUOTA_SLACK = 1.15;
static const double OUTSIDE_LEAST = 0.02;

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

/* --- structure and cores ------------------------------------------------------------------------------ */

/* 0: there is none, or it is not known, or it is more than there are cores, or more was used than it allows: it was set for a
 * part of the time only. */
static double quota_of(const struct model_source *source)
{
	for (size_t i = 0; i < source->count; i++) {
		const struct measurement *m = source->repeats[i];
		const double used = m->cpu_seconds / measurement_counted_seconds(m);
		if (m->quota_cores > 0)
			return m->quota_cores < source->cores &&
					       used <= QUOTA_SLACK * m->quota_cores
				       ? m->quota_cores
				       : 0;
	}
	return 0;
}

void model_shape(
	const struct model *model, const struct config *config, struct pipeline_shape *shape)
{
	const struct shape_facts facts = {.samples = model->samples, .workload = model->facts};
	pipeline_shape_of(config, &facts, shape);
}

static void take_facts(struct model *model, const struct model_source *source)
{
	const struct measurement *m = source->repeats[0];
	/* Results that do not say how many samples there were: enough for any batch. */
	model->samples = m->dataset_samples > 0 ? m->dataset_samples : UINT32_MAX;
	model->facts = m->facts;
	model->step_time = m->facts.step_emulated ? source->step_time : NULL;
	model->exchange_time = m->facts.step_emulated ? source->exchange_time : NULL;
	model_shape(model, source->config, &model->replay.shape);
	model->samples_per_batch = model->replay.shape.batch_size;
	model->replay.cores = source->cores > 0 ? source->cores : 1;
	model->replay.quota = quota_of(source);
	model->replay.wake_ns = WAKE_NS;
	model->replay.copies_off_cores = model->facts.step_has_memory;
	for (int c = 0; c < COSTS; c++)
		model->replay.scale[c] = 1;
}

static void take_contention(struct model *model, const struct model_source *source)
{
	const struct ceilings *ceilings = source->ceilings;
	double contention = source->contention;
	model->contention_known = true;
	if (isnan(contention) && ceilings && ceilings->cpu_scaling > 0 && ceilings->cores > 1) {
		contention = (1 / ceilings->cpu_scaling - 1) / (ceilings->cores - 1);
		model_note(model,
			"cores slow each other down as this node's probe found: %.2f of alone with "
			"all %u busy",
			ceilings->cpu_scaling, ceilings->cores);
	} else if (isnan(contention)) {
		contention = 0;
		model->contention_known = false;
		if (model->replay.cores > 1)
			model_note(model, "how cores slow each other down is not known (one "
					  "number of busy cores, no probe): taken as not at all");
	}
	model->replay.contention = fmin(fmax(contention, 0), CONTENTION_MOST);
}

/* 0: not of one emulated device's thread. */
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
	return batches > 0 ? seconds / batches * 1e9 : 0;
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

/* --- costs --------------------------------------------------------------------------------------------- */

static double slowed_in(const struct model *model, const struct measurement *m)
{
	return 1 + model->replay.contention * (busy_beside_decode(m, model->replay.cores) - 1);
}

/* CPU time of a reader's thread a file, of a core alone: a mean over the repetitions. */
static double read_cpu(const struct model *model, const struct model_source *source)
{
	double sum = 0;
	for (size_t i = 0; i < source->count; i++) {
		const struct measurement *m = source->repeats[i];
		const struct stage_measurement *read = measurement_stage(m, STAGE_READ);
		if (read && read->items > 0 && !isnan(read->cpu_seconds))
			sum += read->cpu_seconds * 1e9 / (double)read->items / slowed_in(model, m);
	}
	return sum / (double)source->count;
}

static void note_read(struct model *model, const struct read_split *split)
{
	const struct pipeline_shape *shape = &model->replay.shape;
	if (split->device_ns > 0)
		model_note(model,
			"reading: a serial device takes %.3g us a file%s and was %.0f %% busy%s; "
			"latency %.3g us%s",
			split->device_ns / 1e3, split->by_bytes ? ", in proportion to bytes" : "",
			100 * split->device_share,
			split->hit_share > 0 ? "; some files came from a cache" : "",
			split->latency_ns / 1e3,
			split->device_share > DEVICE_HIDES
				? " (more would not show behind its queue)"
				: "");
	else if (!split->identified && shape->reader_threads * shape->read_depth > 1)
		model_note(model,
			"reading: latency and device could not be told apart: taken as latency, "
			"%.3g us a file, which overlaps at any depth",
			split->latency_ns / 1e3);
}

/* Of all repetitions, behind each other; NULL without memory. */
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

/* values: (2 count). */
static int split_reads(struct model *model, struct cost_series series[COSTS], double cpu_ns,
	const struct storage *storage, const struct trace_item *items, size_t count, float *values)
{
	const struct pipeline_shape *shape = &model->replay.shape;
	const struct read_facts facts = {
		.cpu_ns = cpu_ns,
		.blocking = model->facts.reads_block,
		.threads = shape->reader_threads,
		.depth = shape->read_depth,
		.storage = storage->known ? storage : NULL,
	};
	/* What others have of it is not ours to promise. */
	model->read_full = storage->others > 0 ? 1 : storage->full;
	struct read_split split;
	int code = read_split(items, count, &facts, values, values + count, &split);
	if (code)
		return code;
	note_read(model, &split);
	model->hidden_device_ns = split.hidden_ns;
	const unsigned allowed = shape->reader_threads * shape->read_depth;
	const unsigned seen = (unsigned)fmin(ceil(storage->most_in_flight), UINT32_MAX);
	model->measured_in_flight = seen > allowed ? seen : allowed;
	code = series_append(&series[COST_READ_LATENCY], values, count);
	return code ? code : series_append(&series[COST_READ_DEVICE], values + count, count);
}

static int series_of_read(
	struct model *model, struct cost_series series[COSTS], const struct model_source *source)
{
	const double cpu_ns = read_cpu(model, source);
	const float cpu = (float)cpu_ns;
	int code = series_append(&series[COST_READ_CPU], &cpu, 1);
	/* In memory a file is a pointer: what it takes is the reader's CPU time. */
	if (code || model->facts.reads_memory)
		return code;
	size_t count = 0;
	struct trace_item *items = all_reads(source, &count);
	float *values = calloc(2 * count + 1, sizeof *values);
	const struct storage_evidence evidence = {.repeats = source->repeats,
		.traces = source->traces,
		.count = source->count,
		.others = source->others,
		.other_count = source->other_count,
		.ceilings = source->ceilings};
	struct storage storage;
	storage_fit(&evidence, &storage);
	code = items && values ? split_reads(model, series, cpu_ns, &storage, items, count, values)
			       : -ENOMEM;
	free(items);
	free(values);
	return code;
}

/* Of what a decode worker does, the part that it sleeps, with the lock or without. */
static double asleep_share(const struct measurement *m, double slowed)
{
	const struct stage_measurement *decode = measurement_stage(m, STAGE_DECODE);
	if (!decode)
		return 0;
	const struct time_split split = time_split_of(decode);
	const double all = split.cpu / slowed + split.sleep;
	return all > 0 ? split.sleep / all : 0;
}

static int series_of_repeat(struct model *model, struct cost_series series[COSTS],
	const struct measurement *m, const struct traces *traces, size_t repeats)
{
	const double slowed = slowed_in(model, m);
	const struct trace *decode = traces_find(traces, stage_name(STAGE_DECODE));
	const struct trace *upload = traces_find(traces, stage_name(STAGE_UPLOAD));
	const struct trace *step = traces_find(traces, stage_name(STAGE_STEP));
	const struct trace *sync = traces_find(traces, stage_name(STAGE_SYNC));
	double late_ns = 0;
	int code = 0;
	if (decode)
		code = series_of_decode(series, m, decode, model->worker_factor, slowed);
	if (!code && upload && model->replay.shape.staging_slots > 0)
		code = series_of_upload(series, m, upload, &model->facts, slowed);
	if (!code && step)
		code = series_of_step(
			series, m, step, model->device_factor, &model->facts, slowed, &late_ns);
	if (!code && sync && model->replay.shape.devices > 1)
		code = series_of_sync(series, sync);
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
			"no CPU accounting here (schedstat): all working time is taken as CPU time");
	if (isnan(m->cores_busy_outside))
		model_note(model, "load from outside the job is not known: taken as none");
}

static bool is_nothing(const struct cost_series *series)
{
	for (size_t i = 0; i < series->count; i++)
		if (series->ns[i] > 0)
			return false;
	return true;
}

static void keep_series(struct model *model, struct cost_series series[COSTS])
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

static int take_workers(struct model *model, const struct model_source *source)
{
	const unsigned workers = model->replay.shape.decode_workers;
	model->worker_factor = calloc(workers, sizeof *model->worker_factor);
	if (!model->worker_factor)
		return -ENOMEM;
	if (worker_factors(source->traces, source->count, STAGE_DECODE_NAME, workers,
		    model->worker_factor)) {
		for (unsigned w = 0; w < workers; w++)
			if (model->worker_factor[w] > 1)
				model_note(model,
					"decode worker %u takes %.2f times as long as the others",
					w, (double)model->worker_factor[w]);
		model->replay.worker_factor = model->worker_factor;
	}
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
		(void)worker_factors(source->traces, source->count, STAGE_STEP_NAME, devices,
			model->device_factor);
	for (unsigned d = 0; d < devices; d++)
		if (model->device_factor[d] > 1)
			model_note(model,
				"device %u takes %.2f times as long to compute as the others", d,
				(double)model->device_factor[d]);
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
	keep_series(model, series);
	note_accounting(model, source->repeats[0]);
	return code;
}

/* --- opening ------------------------------------------------------------------------------------------ */

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

static int calibrate(struct model *model, const struct model_source *source, struct error *err)
{
	int code = config_copy(&model->config, source->config, err);
	if (code)
		return code;
	take_facts(model, source);
	take_contention(model, source);
	model->step_working_ns = step_working(model, source);
	const struct outside outside = take_outside(model, source);
	if (take_costs(model, source))
		return error_set(err, -ENOMEM, "out of memory");
	code = model_measured(model, source, err);
	return code ? code : model_baseline(model, &outside, err);
}

int model_open(struct model *model, const struct model_source *source, struct error *err)
{
	*model = (struct model){.read_full = 0.5};
	if (!has_traces(source))
		return error_set(err, -ENODATA,
			"no service times were recorded (measure.profiler off, or an older result)");
	const int code = calibrate(model, source, err);
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
