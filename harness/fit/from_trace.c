/* Findings from a trace of torch.profiler.
 *
 * What it recognises (harness/fit/kineto.h reads the file):
 *
 * - Steps: the annotations "ProfilerStep#N" of a profiler with a schedule.  Where they are missing, or hold several batches
 *   each, one step is what lies between two requests for a batch; where no loader is in the trace, either, what lies between two
 *   calls of Optimizer.step().
 * - Waits: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", and "#_SingleProcessDataLoaderIter", which says that
 *   there are no workers: the trainer loads for itself then.
 * - The device: events of the categories kernel, gpu_memcpy and gpu_memset.  It computes while any of them runs on any of its
 *   streams, but for copies from and to the host and for kernels of NCCL, which wait for other devices.
 * - Batches: the first size of the input of convolutions, else of embeddings, else of linear layers (record_shapes=True).
 * - Ranks: distributedInfo.
 *
 * A trainer launches work and goes on, so a GPU may still compute while the loader is waited for.
 * Of such a wait, only what the GPU idles costs time, and only that is taken as the step's wait;
 * the rest belongs to the step.  Without workers the whole wait is loading and counts as such.
 *
 * What is incomplete is unknown.  Where events are missing (a torn end, text that is no JSON, times
 * that are none or zero), nothing is said of the device and of copies, and of steps only those
 * count that have as many requests for batches as any.  A step during most of which nothing was
 * recorded is a gap between two recordings.
 *
 * Events come in no order.  Marks of steps and waits are kept (TRACE_MARKS_MAX of each), kernels
 * only as the time that they cover (harness/fit/busy_spans.h), copies as sums over stretches that
 * become longer when there are too many.  Together that is less than 400 MiB whatever the file
 * holds, and a few in ordinary traces. */
#include "harness/analyze/statistics.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/fit/busy_spans.h"
#include "harness/fit/finding.h"
#include "harness/fit/kineto.h"
#include "harness/fit/step_means.h"
#include "harness/fit/trace_marks.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	TRACE_SPANS_MAX = 1 << 21,
	TRACE_COPIES_MAX = 1 << 16,
	TRACE_DEVICES_MAX = 8,
	TRACE_SIZES_MAX = 64,
	TRACE_FIRST_LEFT_FROM = 4,  /* with so many steps the first one is left out */
	TRACE_OPERATORS_LEAST = 50, /* that tell the unit of time */
	TRACE_LOST_LEAST = 1000,    /* of so many events, one that is lost changes nothing */
};

/* --- what is gathered ------------------------------------------------------------------------- */

/* Copies to a device, or several of them that came after each other. */
struct trace_copy {
	int64_t begin_ns;
	double bytes, ns;
};

struct trace_copies {
	struct trace_copy *of; /* owned */
	size_t count, room;
	bool sized; /* bytes are known of one at least */
};

struct trace_device {
	int64_t id;
	uint64_t kernels; /* of those that only copy, nothing is said */
	struct busy_spans computing;
};

/* How often the inputs of a kind of layer have a first size. */
enum trace_layer { TRACE_CONVOLUTION, TRACE_EMBEDDING, TRACE_LINEAR, TRACE_LAYERS };

struct trace_size {
	enum trace_layer layer;
	int64_t size;
	uint64_t count;
};

struct trace {
	struct findings *out;
	struct error *err;
	struct trace_marks steps, loads, optimizers;
	uint64_t loads_alone;      /* by a loader without workers */
	struct busy_spans work;    /* any device does anything */
	struct busy_spans seen;    /* anything was recorded */
	int64_t first_ns, last_ns; /* beginnings, but for zero */
	uint64_t at_zero;          /* events that begin at 0 */
	uint64_t empty_at_zero;    /* and end there */
	bool zeros;                /* which is no time then */
	size_t processes;          /* with steps */
	bool several;              /* threads or processes have steps */
	bool lost;                 /* too many events are missing */
	struct trace_device devices[TRACE_DEVICES_MAX];
	size_t device_count;
	uint64_t devices_lost; /* events of more devices */
	struct trace_copies copies;
	struct trace_size sizes[TRACE_SIZES_MAX];
	size_t size_count;
	uint64_t operator_ns[64]; /* how many operators took a power of two */
	uint64_t operators;
};

static bool trace_begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

static int trace_no_memory(struct trace *trace)
{
	return error_set_errno(trace->err, ENOMEM, "cannot keep what the trace says");
}

static int trace_mark_add(
	struct trace *trace, struct trace_marks *marks, const struct kineto_event *e)
{
	return trace_marks_add(marks, e) ? trace_no_memory(trace) : 0;
}

static int trace_copy_order(const void *a, const void *b)
{
	const struct trace_copy *left = a;
	const struct trace_copy *right = b;

	return (left->begin_ns > right->begin_ns) - (left->begin_ns < right->begin_ns);
}

/* Makes one of two neighbours. */
static void trace_copies_halve(struct trace_copies *copies)
{
	size_t kept = 0;

	qsort(copies->of, copies->count, sizeof *copies->of, trace_copy_order);
	for (size_t i = 0; i + 1 < copies->count; i += 2) {
		struct trace_copy *both = &copies->of[kept++];
		const struct trace_copy *second = &copies->of[i + 1];
		*both = copies->of[i];
		both->bytes += second->bytes;
		both->ns += second->ns;
	}
	copies->count = kept;
}

static int trace_copy_add(struct trace *trace, const struct kineto_event *e)
{
	struct trace_copies *copies = &trace->copies;

	if (copies->count == TRACE_COPIES_MAX)
		trace_copies_halve(copies);
	if (copies->count == copies->room) {
		const size_t room = copies->room ? 2 * copies->room : 64;
		struct trace_copy *of = realloc(copies->of, room * sizeof *of);
		if (!of)
			return trace_no_memory(trace);
		copies->of = of;
		copies->room = room;
	}
	copies->sized = copies->sized || isfinite(e->bytes);
	copies->of[copies->count++] = (struct trace_copy){
		e->begin_ns, isfinite(e->bytes) ? e->bytes : 0, (double)(e->end_ns - e->begin_ns)};
	return 0;
}

static void trace_size_add(struct trace *trace, enum trace_layer layer, int64_t size)
{
	if (size < 1)
		return;
	for (size_t i = 0; i < trace->size_count; i++)
		if (trace->sizes[i].layer == layer && trace->sizes[i].size == size) {
			trace->sizes[i].count++;
			return;
		}
	if (trace->size_count < TRACE_SIZES_MAX)
		trace->sizes[trace->size_count++] = (struct trace_size){layer, size, 1};
}

static void trace_take_operator(struct trace *trace, const struct kineto_event *e)
{
	const char *name = e->name + strlen("aten::");
	const uint64_t ns = (uint64_t)(e->end_ns - e->begin_ns);

	trace->operators++;
	trace->operator_ns[ns ? 63 - __builtin_clzll(ns) : 0]++;
	if (trace_begins(name, "conv") && !strchr(name, '_'))
		trace_size_add(trace, TRACE_CONVOLUTION, e->dims[0]);
	else if (strcmp(name, "embedding") == 0)
		trace_size_add(trace, TRACE_EMBEDDING, e->dims[1]);
	else if (strcmp(name, "linear") == 0 && e->whole[0])
		trace_size_add(trace, TRACE_LINEAR, e->dims[0]);
}

static int trace_take_host(struct trace *trace, const struct kineto_event *e)
{
	if (trace_begins(e->name, "aten::")) {
		trace_take_operator(trace, e);
		return 0;
	}
	if (trace_begins(e->name, "ProfilerStep"))
		return trace_mark_add(trace, &trace->steps, e);
	if (trace_begins(e->name, "enumerate(DataLoader)#")) {
		trace->loads_alone += strstr(e->name, "SingleProcess") != NULL;
		return trace_mark_add(trace, &trace->loads, e);
	}
	if (trace_begins(e->name, "Optimizer.step#"))
		return trace_mark_add(trace, &trace->optimizers, e);
	return 0;
}

static struct trace_device *trace_device_of(struct trace *trace, int64_t id)
{
	for (size_t i = 0; i < trace->device_count; i++)
		if (trace->devices[i].id == id)
			return &trace->devices[i];
	if (trace->device_count == TRACE_DEVICES_MAX)
		return NULL;
	struct trace_device *device = &trace->devices[trace->device_count++];
	device->id = id;
	busy_spans_open(&device->computing, TRACE_SPANS_MAX);
	return device;
}

static int trace_take_device(struct trace *trace, const struct kineto_event *e)
{
	const bool copies = e->kind == KINETO_COPY;
	const bool upload = copies && (strstr(e->name, "HtoD") || strstr(e->name, "HostToDevice"));
	const bool download =
		copies && (strstr(e->name, "DtoH") || strstr(e->name, "DeviceToHost"));
	struct trace_device *device = trace_device_of(trace, e->device);
	int code = busy_spans_add(&trace->work, e->begin_ns, e->end_ns);

	if (device)
		device->kernels += e->kind == KINETO_KERNEL;
	if (!device)
		trace->devices_lost++;
	else if (!code && !upload && !download && !trace_begins(e->name, "nccl"))
		code = busy_spans_add(&device->computing, e->begin_ns, e->end_ns);
	if (code)
		return trace_no_memory(trace);
	return upload ? trace_copy_add(trace, e) : 0;
}

static int trace_take(void *context, const struct kineto_event *e)
{
	struct trace *trace = context;

	if (e->begin_ns == 0) {
		trace->at_zero++;
		trace->empty_at_zero += e->end_ns == 0;
	} else {
		const bool first = trace->last_ns == 0 && trace->first_ns == 0;
		trace->first_ns =
			first || e->begin_ns < trace->first_ns ? e->begin_ns : trace->first_ns;
		trace->last_ns =
			first || e->begin_ns > trace->last_ns ? e->begin_ns : trace->last_ns;
	}
	if (busy_spans_add(&trace->seen, e->begin_ns, e->end_ns))
		return trace_no_memory(trace);
	return e->kind == KINETO_HOST ? trace_take_host(trace, e) : trace_take_device(trace, e);
}

static void trace_close(struct trace *trace)
{
	free(trace->steps.of);
	free(trace->loads.of);
	free(trace->optimizers.of);
	free(trace->copies.of);
	busy_spans_close(&trace->work);
	busy_spans_close(&trace->seen);
	for (size_t i = 0; i < trace->device_count; i++)
		busy_spans_close(&trace->devices[i].computing);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* By what they are told apart. */
enum trace_steps_by { TRACE_BY_PROFILER, TRACE_BY_LOADER, TRACE_BY_OPTIMIZER };

struct trace_steps {
	enum trace_steps_by by;
	struct busy_span *of; /* in their order; owned */
	size_t count;
	int64_t first_ns; /* how long the one took that was left out; 0: none was */
	bool last_left;   /* the last one had no batch, and was left out */
	size_t gaps;      /* left out: nothing was recorded in them */
	size_t partial;   /* left out: their requests for batches are missing */
};

/* A step lasts until the next one begins.  The last annotation, and one before a pause, says itself when it ends. */
static int trace_steps_between(
	struct trace *trace, const struct trace_marks *marks, struct trace_steps *steps)
{
	const bool ends = steps->by == TRACE_BY_PROFILER;

	steps->of = malloc((marks->count + 1) * sizeof *steps->of);
	if (!steps->of)
		return trace_no_memory(trace);
	for (size_t i = 0; i < marks->count; i++) {
		const struct trace_mark *mark = &marks->of[i];
		const bool last = i + 1 == marks->count;
		if (last && !ends)
			break;
		const int64_t next = last ? mark->end_ns : marks->of[i + 1].begin_ns;
		const int64_t pause = next - mark->end_ns;
		const bool paused = ends && pause > (mark->end_ns - mark->begin_ns) / 10;
		steps->of[steps->count++] =
			(struct busy_span){mark->begin_ns, paused ? mark->end_ns : next};
	}
	return 0;
}

/* Leaves out the step in which profiling began, and the one in which the loader had no more. */
static void trace_steps_trim(const struct trace *trace, struct trace_steps *steps)
{
	const struct busy_span *last = &steps->of[steps->count - 1];

	if (steps->by == TRACE_BY_PROFILER && steps->count > TRACE_STEPS_LEAST &&
		2 * trace->loads.count > steps->count &&
		trace_marks_within(&trace->loads, last->begin_ns, last->end_ns) == 0) {
		steps->count--;
		steps->last_left = true;
	}
	if (steps->count < TRACE_FIRST_LEFT_FROM)
		return;
	steps->first_ns = steps->of[0].end_ns - steps->of[0].begin_ns;
	steps->count--;
	memmove(steps->of, steps->of + 1, steps->count * sizeof *steps->of);
}

/* Leaves out gaps between recordings: steps much longer than most, in most of which nothing was
 * recorded.  Where events are missing, leaves out those with fewer requests for batches than others
 * have, too. */
static int trace_steps_check(struct trace *trace, struct trace_steps *steps)
{
	double *lengths = malloc((steps->count + 1) * sizeof *lengths);
	size_t most_loads = 0;
	size_t kept = 0;

	if (!lengths)
		return trace_no_memory(trace);
	for (size_t i = 0; i < steps->count; i++) {
		const struct busy_span *step = &steps->of[i];
		const size_t loads =
			trace_marks_within(&trace->loads, step->begin_ns, step->end_ns);
		lengths[i] = (double)(step->end_ns - step->begin_ns);
		most_loads = loads > most_loads ? loads : most_loads;
	}
	const double usual_ns = statistics_median(lengths, steps->count);
	free(lengths);
	for (size_t i = 0; i < steps->count; i++) {
		const struct busy_span step = steps->of[i];
		const double length = (double)(step.end_ns - step.begin_ns);
		const int64_t seen = busy_spans_within(&trace->seen, step.begin_ns, step.end_ns);
		const bool gap = length > 3 * usual_ns && 2 * (double)seen < length;
		const bool partial =
			!gap && trace->lost &&
			trace_marks_within(&trace->loads, step.begin_ns, step.end_ns) < most_loads;
		steps->gaps += gap;
		steps->partial += partial;
		if (!gap && !partial)
			steps->of[kept++] = step;
	}
	steps->count = kept;
	return 0;
}

/* How many batches each annotated step takes. */
static double trace_batches_each(const struct trace *trace)
{
	const struct trace_marks *steps = &trace->steps;
	const size_t loads = trace_marks_within(
		&trace->loads, steps->of[0].begin_ns, steps->of[steps->count - 1].end_ns);

	return (double)loads / (double)steps->count;
}

static int trace_refuse_steps(struct trace *trace, const char *path, const struct kineto_file *file)
{
	if (trace->zeros)
		return error_set(trace->err, -EINVAL,
			"'%s' has %" PRIu64 " events at time zero, and too few training steps "
			"with a time: record it again",
			path, trace->at_zero);
	if (file->of_mlbench)
		return error_set(trace->err, -EINVAL,
			"'%s' is a timeline of mlbench: give the folder of its result instead",
			path);
	return error_set(trace->err, -EINVAL,
		"'%s' has %" PRIu64 " events, but no training steps%s: it needs two at least, as "
		"annotations ProfilerStep# (a profiler with a schedule, and its step()), requests "
		"to a DataLoader, or calls of Optimizer.step()",
		path, file->events, file->torn ? ", and its end is missing" : "");
}

/* Decides which marks are the steps. */
static int trace_find_steps(struct trace *trace, const char *path, const struct kineto_file *file,
	struct trace_steps *steps)
{
	const bool annotated = trace->steps.count >= TRACE_STEPS_LEAST;
	const bool loaded = trace->loads.count > TRACE_STEPS_LEAST;
	const struct trace_marks *by = annotated ? &trace->steps
				       : loaded  ? &trace->loads
						 : &trace->optimizers;
	const uint64_t thread = trace_marks_thread(by);

	const bool twice = annotated && trace_marks_twice(&trace->steps, thread);

	trace->processes = trace_marks_processes(by);
	trace->several = trace_marks_settle(&trace->steps, thread) > 0 || trace->processes > 1;
	if (trace->several)
		findings_note(trace->out,
			"the trace has steps of several threads or processes: those of the one "
			"with most of them count; give one trace per rank");
	(void)trace_marks_settle(&trace->optimizers, thread);
	if (trace_marks_settle(&trace->loads, thread) > 0)
		findings_note(trace->out,
			"some requests for batches come from other threads than the steps: they "
			"are not waits of the step, and were left out");
	if (by->count <= TRACE_STEPS_LEAST - (size_t)annotated)
		return trace_refuse_steps(trace, path, file);
	if (twice)
		return error_set(trace->err, -EINVAL,
			"'%s' has the steps of several ranks, whose processes have the same number: "
			"give one trace per rank",
			path);
	steps->by = annotated ? TRACE_BY_PROFILER : loaded ? TRACE_BY_LOADER : TRACE_BY_OPTIMIZER;
	const double each = annotated ? trace_batches_each(trace) : 1;
	if (each > 1.5 && trace->loads.count > TRACE_STEPS_LEAST) {
		findings_note(trace->out,
			"each ProfilerStep requests %s batches: here a step is the time from one "
			"request to the next",
			UNITS_PLAIN(each, 3));
		steps->by = TRACE_BY_LOADER;
		by = &trace->loads;
	}
	int code = trace_steps_between(trace, by, steps);
	if (code)
		return code;
	trace_steps_trim(trace, steps);
	busy_spans_sort(&trace->seen);
	code = trace_steps_check(trace, steps);
	return !code && steps->count == 0 ? trace_refuse_steps(trace, path, file) : code;
}

/* --- units ------------------------------------------------------------------------------------ */

/* The power of two below which a share of the operators is. */
static double trace_operators_ns(const struct trace *trace, double share)
{
	uint64_t sum = 0;
	int power = 0;

	while (power < 62 &&
		(double)(sum += trace->operator_ns[power]) < share * (double)trace->operators)
		power++;
	return ldexp(1, power + 1);
}

/* Times that cannot be microseconds: half of the operators of any job take microseconds. */
static int trace_check_units(struct trace *trace, const char *path, double period_ns)
{
	char took[UNITS_BYTES];
	const bool enough = trace->operators >= TRACE_OPERATORS_LEAST;
	const bool slow = enough && trace_operators_ns(trace, 0.5) > 2 * (double)NS_PER_MS;
	const bool fast = enough && trace_operators_ns(trace, 0.9) < 128;

	if (period_ns > 3600.0 * (double)NS_PER_S || period_ns < 20.0 * (double)NS_PER_US)
		return error_set(trace->err, -EINVAL,
			"'%s' has steps of %s: its times are not in microseconds, as a trace's are",
			path, units_format_duration(period_ns, took));
	if (slow || fast)
		return error_set(trace->err, -EINVAL,
			"'%s' has operators of %s: its times are not in microseconds, as a "
			"trace's are",
			path,
			units_format_duration(trace_operators_ns(trace, slow ? 0.5 : 0.9), took));
	return 0;
}

/* --- findings --------------------------------------------------------------------------------- */

/* Times of each step, in ns. */
struct trace_times {
	double *period, *wait, *step; /* count each; owned: one allocation */
	double work, exposed;         /* means: the device does anything; it idles in a wait */
	bool overlap;                 /* the device works during waits */
};

/* Whether events of the device are missing, or are those of several ranks. */
static bool trace_device_unknown(const struct trace *trace)
{
	return trace->lost || trace->several;
}

static int trace_take_times(
	struct trace *trace, const struct trace_steps *steps, struct trace_times *times)
{
	struct busy_spans waits;
	const bool alone = trace->loads_alone > 0;
	int code = 0;

	times->period = malloc(3 * steps->count * sizeof *times->period);
	if (!times->period)
		return trace_no_memory(trace);
	times->wait = times->period + steps->count;
	times->step = times->wait + steps->count;
	busy_spans_open(&waits, TRACE_MARKS_MAX);
	for (size_t i = 0; i < trace->loads.count && !code; i++)
		code = busy_spans_add(
			&waits, trace->loads.of[i].begin_ns, trace->loads.of[i].end_ns);
	busy_spans_sort(&waits);
	for (size_t i = 0; i < steps->count; i++) {
		const int64_t begin = steps->of[i].begin_ns;
		const int64_t end = steps->of[i].end_ns;
		const int64_t wait = busy_spans_within(&waits, begin, end);
		const int64_t both = trace_device_unknown(trace)
					     ? 0
					     : busy_spans_both(&waits, &trace->work, begin, end);
		times->period[i] = (double)(end - begin);
		times->wait[i] = (double)(wait - (alone ? 0 : both));
		times->step[i] = times->period[i] - times->wait[i];
		times->overlap = times->overlap || (!alone && both > 0);
		times->work += (double)busy_spans_within(&trace->work, begin, end);
		times->exposed += (double)(wait - both);
	}
	times->work /= (double)steps->count;
	times->exposed /= (double)steps->count;
	busy_spans_close(&waits);
	return code ? trace_no_memory(trace) : 0;
}

static int trace_add_times(
	struct trace *trace, const struct trace_steps *steps, const struct trace_times *times)
{
	static const char *const why[] = {
		[TRACE_BY_PROFILER] = NULL,
		[TRACE_BY_LOADER] = "from one request for a batch to the next",
		[TRACE_BY_OPTIMIZER] = "from one call of Optimizer.step() to the next",
	};
	const bool waits = steps->by != TRACE_BY_OPTIMIZER && trace->loads.count > 0;
	const bool in_order = steps->gaps == 0 && steps->partial == 0;
	struct findings *out = trace->out;

	step_mean_find(out, FINDING_STEP_PERIOD, SOURCE_TRACE,
		why[steps->by] ? FINDING_DERIVED : FINDING_MEASURED, times->period, NULL,
		steps->count, why[steps->by]);
	if (!waits) {
		findings_note(out, "the trace has no waits for a DataLoader: how much of a step is "
				   "waiting for its batch is not known");
		return step_mean_keep(out, FINDING_STEP_PERIOD, in_order, times->period,
			steps->count, trace->err);
	}
	const char *wait =
		times->overlap ? "the wait for the DataLoader while the device idled"
		: trace_device_unknown(trace) && trace->loads_alone == 0
			? "the wait for the DataLoader, whatever the device did meanwhile"
			: NULL;
	step_mean_find(out, FINDING_STEP_WAIT, SOURCE_TRACE,
		wait ? FINDING_DERIVED : FINDING_MEASURED, times->wait, NULL, steps->count, wait);
	step_mean_find(out, FINDING_STEP_TIME, SOURCE_TRACE, FINDING_DERIVED, times->step, NULL,
		steps->count, "the period without the wait for the batch");
	if (trace->loads_alone > 0)
		findings_add(
			out, FINDING_WORKERS, SOURCE_TRACE, FINDING_MEASURED, 0, NAN, NAN, NULL);
	else
		findings_add(out, FINDING_WORKERS, SOURCE_TRACE, FINDING_ASSUMED, 1, 1, NAN,
			"the loader has workers, but a trace does not say how many");
	return step_mean_keep(
		out, FINDING_STEP_TIME, in_order, times->step, steps->count, trace->err);
}

static double trace_steps_ns(const struct trace_steps *steps)
{
	double sum = 0;

	for (size_t i = 0; i < steps->count; i++)
		sum += (double)(steps->of[i].end_ns - steps->of[i].begin_ns);
	return sum;
}

static double trace_busy_share(const struct busy_spans *spans, const struct trace_steps *steps)
{
	double sum = 0;

	for (size_t i = 0; i < steps->count; i++)
		sum += (double)busy_spans_within(spans, steps->of[i].begin_ns, steps->of[i].end_ns);
	return sum / trace_steps_ns(steps);
}

/* Of the devices that compute. */
static void trace_add_busy(struct trace *trace, const struct trace_steps *steps)
{
	double least = 1;
	double most = 0;
	double sum = 0;
	double count = 0;

	for (size_t i = 0; i < trace->device_count; i++) {
		if (trace->devices[i].kernels == 0)
			continue;
		const double busy = trace_busy_share(&trace->devices[i].computing, steps);
		least = fmin(least, busy);
		most = fmax(most, busy);
		sum += busy;
		count++;
	}
	if (count > 0)
		findings_add(trace->out, FINDING_DEVICE_BUSY, SOURCE_TRACE, FINDING_MEASURED,
			sum / count, count > 1 ? least : (double)NAN,
			count > 1 ? most : (double)NAN, NULL);
	else
		findings_note(trace->out,
			"the trace has copies to a device, but no kernels: how busy the device is "
			"is not known");
}

static void trace_add_device(
	struct trace *trace, const struct trace_steps *steps, const struct trace_times *times)
{
	const double period = trace->out->known[FINDING_STEP_PERIOD].value;
	char part[4][UNITS_BYTES];

	if (trace_device_unknown(trace)) {
		findings_note(trace->out,
			"%s: how busy the device is, and what is copied to it, "
			"is not known",
			trace->lost ? "events of the trace are missing"
				    : "the trace holds events of several ranks");
		return;
	}
	if (trace->device_count == 0) {
		findings_note(trace->out, "the trace has no events of a device");
		return;
	}
	trace_add_busy(trace, steps);
	if (trace->loads.count > 0 && steps->by != TRACE_BY_OPTIMIZER)
		findings_note(trace->out,
			"of a step of %s the device worked %s, idled %s during waits for a batch "
			"and %s otherwise",
			units_format_duration(period, part[0]),
			units_format_duration(times->work, part[1]),
			units_format_duration(times->exposed, part[2]),
			units_format_duration(
				fmax(period - times->work - times->exposed, 0), part[3]));
}

/* Of copies that begin in a step; both are in order. */
static void trace_add_copies(struct trace *trace, const struct trace_steps *steps)
{
	struct trace_copies *copies = &trace->copies;
	const double count = (double)steps->count;
	double bytes = 0;
	double ns = 0;
	size_t step = 0;

	if (copies->count > 0)
		qsort(copies->of, copies->count, sizeof *copies->of, trace_copy_order);
	for (size_t i = 0; i < copies->count; i++) {
		const struct trace_copy *copy = &copies->of[i];
		while (step < steps->count && steps->of[step].end_ns <= copy->begin_ns)
			step++;
		if (step < steps->count && copy->begin_ns >= steps->of[step].begin_ns) {
			bytes += copy->bytes;
			ns += copy->ns;
		}
	}
	if (ns <= 0 || trace_device_unknown(trace))
		return;
	if (copies->sized)
		findings_add(trace->out, FINDING_UPLOAD_BYTES, SOURCE_TRACE, FINDING_MEASURED,
			bytes / count, NAN, NAN, NULL);
	findings_add(trace->out, FINDING_UPLOAD_TIME, SOURCE_TRACE, FINDING_MEASURED, ns / count,
		NAN, NAN, NULL);
}

static void trace_add_batch(struct trace *trace)
{
	static const char *const why[TRACE_LAYERS] = {
		"the first size of what most convolutions take",
		"the first size of what most embeddings take",
		"the first size of what most linear layers take",
	};
	const struct trace_size *best = NULL;

	for (size_t i = 0; i < trace->size_count; i++) {
		const struct trace_size *size = &trace->sizes[i];
		if (!best || size->layer < best->layer ||
			(size->layer == best->layer && size->count > best->count))
			best = size;
	}
	if (best)
		findings_add(trace->out, FINDING_BATCH_SIZE, SOURCE_TRACE, FINDING_DERIVED,
			(double)best->size, NAN, NAN, why[best->layer]);
	else
		findings_note(trace->out, "the trace does not say how large a batch is: "
					  "record_shapes=True has it in (never without Kineto)");
}

/* The trace knows all ranks of the job, and the devices of this node that its process sees.  A
 * launcher may give each rank its own. */
static void trace_add_ranks(struct trace *trace, const struct kineto_file *file)
{
	const double world = file->world_size > 0 ? (double)file->world_size : 1;
	const bool merged = trace->processes > 1;
	const bool beyond = !merged && file->devices > 0 && world > file->devices;
	const bool one_of = beyond && file->devices == 1;

	if (file->rank >= 0 && file->rank < FINDINGS_RANKS_MAX && !merged)
		trace->out->ranks = UINT64_C(1) << file->rank;
	findings_add(trace->out, FINDING_RANKS, SOURCE_TRACE,
		merged || (file->world_size > 0 && !one_of) ? FINDING_DERIVED : FINDING_ASSUMED,
		merged   ? (double)trace->processes
		: beyond ? (double)file->devices
			 : world,
		NAN, NAN,
		merged                 ? "processes with training steps in the trace"
		: one_of               ? finding_one_rank
		: beyond               ? "one for each device that the process sees"
		: file->world_size > 0 ? "world_size, all of them on this node"
				       : "the trace tells of no other process");
	if (one_of)
		findings_note(trace->out,
			"a trace of one rank of %.0f, whose process sees one device, tells nothing of "
			"the others: where more of them run on the node than traces are given, --set "
			"job.ranks and job.throughput",
			world);
}

static void trace_add_throughput(struct trace *trace)
{
	const struct finding *period = &trace->out->known[FINDING_STEP_PERIOD];
	const struct finding *batch = &trace->out->known[FINDING_BATCH_SIZE];
	const double samples =
		batch->value * trace->out->known[FINDING_RANKS].value * (double)NS_PER_S;

	if (batch->how != FINDING_UNKNOWN)
		findings_add(trace->out, FINDING_THROUGHPUT, SOURCE_TRACE, FINDING_DERIVED,
			samples / period->value, samples / period->high,
			period->low > 0 ? samples / period->low : (double)NAN,
			"batch size times ranks over the period of the steps");
}

/* --- what is to be said of it ----------------------------------------------------------------- */

static void trace_note_steps(
	struct trace *trace, const struct trace_steps *steps, const struct trace_times *times)
{
	static const char *const what[] = {
		[TRACE_BY_PROFILER] = "annotated by the profiler",
		[TRACE_BY_LOADER] = "told apart by requests for batches",
		[TRACE_BY_OPTIMIZER] = "told apart by calls of Optimizer.step()",
	};
	char first[UNITS_BYTES];
	char median[UNITS_BYTES];

	findings_note(trace->out,
		"%zu step%s of the trace count%s, %s; a profiler slows what it "
		"records, so a log of step times without one would be better",
		steps->count, steps->count == 1 ? "" : "s", steps->count == 1 ? "s" : "",
		what[steps->by]);
	const struct finding *period = &trace->out->known[FINDING_STEP_PERIOD];
	if (!(period->high - period->low < 0.5 * period->value))
		findings_note(trace->out,
			"these steps tell little of the job's period: record 50 or more, or give a "
			"log of step times");
	if (steps->first_ns > 0)
		findings_note(trace->out,
			"the first step, in which profiling began, was left out: it took %s, the "
			"others %s in the median",
			units_format_duration((double)steps->first_ns, first),
			units_format_duration(
				statistics_median(times->period, steps->count), median));
	if (steps->last_left)
		findings_note(trace->out, "the last step was left out: it had no batch");
	if (steps->gaps > 0)
		findings_note(trace->out,
			"%zu gap%s between recordings %s left out: nothing was recorded in %s",
			steps->gaps, steps->gaps == 1 ? "" : "s", steps->gaps == 1 ? "was" : "were",
			steps->gaps == 1 ? "it" : "them");
	if (steps->partial > 0)
		findings_note(trace->out,
			"%zu step%s left out: requests for batches are missing in the trace",
			steps->partial, steps->partial == 1 ? " was" : "s were");
}

static void trace_note_bounds(struct trace *trace, const struct trace_steps *steps)
{
	const double window = (double)(steps->of[steps->count - 1].end_ns - steps->of[0].begin_ns);
	struct busy_spans *worst = &trace->work;
	char gap[UNITS_BYTES];

	for (size_t i = 0; i < trace->device_count; i++)
		if (trace->devices[i].computing.filled_ns > worst->filled_ns)
			worst = &trace->devices[i].computing;
	if (worst->filled_ns > 0)
		findings_note(trace->out,
			"there are too many kernels to keep: idle gaps of up to %s count as busy, "
			"at most %s %% of the time",
			units_format_duration((double)worst->longest_filled_ns, gap),
			UNITS_PLAIN(100 * (double)worst->filled_ns / window, 2));
	if (trace->steps.lost || trace->loads.lost || trace->optimizers.lost)
		findings_note(trace->out, "only the first %d steps and requests of the file count",
			TRACE_MARKS_MAX);
	if (trace->devices_lost > 0)
		findings_note(trace->out, "only the first %d devices of the trace count",
			TRACE_DEVICES_MAX);
}

static void trace_note_file(struct trace *trace, const struct kineto_file *file)
{
	if (file->torn)
		findings_note(trace->out,
			"the end of the trace is missing: the %" PRIu64 " events before it count",
			file->events);
	if (file->breaks > 0)
		findings_note(trace->out,
			"the trace is no JSON in %zu place%s: what could be read around them "
			"counts",
			file->breaks, file->breaks == 1 ? "" : "s");
	if (file->more)
		findings_note(trace->out,
			"the file has more behind the end of its trace: the first recording counts");
	if (file->cut)
		findings_note(trace->out,
			"reading stopped after %" PRIu64 " events: the trace is too long, or "
			"broken in too many places",
			file->events);
	const uint64_t unusable = file->unusable + (trace->zeros ? trace->at_zero : 0);
	if (unusable > 0)
		findings_note(trace->out, "%" PRIu64 " event%s without a usable time %s left out",
			unusable, unusable == 1 ? "" : "s", unusable == 1 ? "was" : "were");
}

/* Times of zero are none where all others lie far from it.  Counts what is missing. */
static void trace_find_damage(struct trace *trace, const struct kineto_file *file)
{
	trace->zeros = trace->empty_at_zero > 1 ||
		       (trace->at_zero > 1 && trace->first_ns > trace->last_ns - trace->first_ns);
	if (trace->zeros) {
		trace_marks_drop_zeros(&trace->steps);
		trace_marks_drop_zeros(&trace->loads);
		trace_marks_drop_zeros(&trace->optimizers);
	}
	const uint64_t missing =
		file->breaks + file->unusable + (trace->zeros ? trace->at_zero : 0);
	trace->lost = file->torn || file->cut || missing * TRACE_LOST_LEAST > file->events;
}

static int trace_conclude(struct trace *trace, const char *path, const struct kineto_file *file,
	struct trace_steps *steps, struct trace_times *times)
{
	trace_find_damage(trace, file);
	int code = trace_find_steps(trace, path, file, steps);

	busy_spans_sort(&trace->work);
	for (size_t i = 0; i < trace->device_count; i++)
		busy_spans_sort(&trace->devices[i].computing);
	if (!code)
		code = trace_take_times(trace, steps, times);
	if (!code)
		code = trace_check_units(
			trace, path, statistics_median(times->period, steps->count));
	if (!code)
		code = trace_add_times(trace, steps, times);
	if (code)
		return code;
	trace_add_device(trace, steps, times);
	trace_add_copies(trace, steps);
	trace_add_batch(trace);
	trace_add_ranks(trace, file);
	trace_add_throughput(trace);
	trace_note_steps(trace, steps, times);
	trace_note_bounds(trace, steps);
	trace_note_file(trace, file);
	return 0;
}

int findings_from_trace(struct findings *out, const char *path, struct error *err)
{
	struct trace trace = {.out = out, .err = err};
	struct trace_steps steps = {0};
	struct trace_times times = {0};
	struct kineto_file file;

	busy_spans_open(&trace.work, TRACE_SPANS_MAX);
	busy_spans_open(&trace.seen, TRACE_SPANS_MAX);
	int code = kineto_read(path, trace_take, &trace, &file, err);
	if (!code)
		code = trace_conclude(&trace, path, &file, &steps, &times);
	free(times.period);
	free(steps.of);
	trace_close(&trace);
	return code;
}
