/* The verdict: the validity gate, the sentences of evidence, how sure it is, and all of it
 * together. */
#include "harness/analyze/verdict.h"

#include "harness/analyze/diagnose.h"
#include "harness/analyze/statistics.h"
#include "harness/analyze/summary.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- how sure a verdict is -------------------------------------------------------------------- */

enum { REPEATS_WANTED = 3 };

static const double MOST = 0.97;
static const double MOST_FEW_REPEATS = 0.90;
static const double DISAGREE_FACTOR = 0.65;
static const double BUSY_FULL = 0.90, BUSY_SLOPE = 1.5, BUSY_LEAST = 0.5;
static const double PAIR_FACTOR = 0.60;
static const double CO_BINDING_RATIO =
	1.05;                           /* of capacities; a stage that is nearer binds as much */
static const double ALONE_LEAST = 0.90; /* to name one of the two only */
static const double UNMODELLED_FREE = 0.05, UNMODELLED_SLOPE = 2, UNMODELLED_LEAST = 0.3;

double confidence_stage(double arrows, double replay, bool agree)
{
	if (isnan(replay))
		return arrows;
	return agree ? 1 - (1 - arrows) * (1 - replay) : DISAGREE_FACTOR * replay;
}

double confidence_busy(double busy)
{
	return fmax(1 - BUSY_SLOPE * fmax(BUSY_FULL - busy, 0), BUSY_LEAST);
}

double confidence_pair(bool pair, double alone)
{
	return pair ? PAIR_FACTOR : alone;
}

double confidence_alone(double ratio, double deviation)
{
	return statistics_normal(log(ratio / CO_BINDING_RATIO) / deviation);
}

bool confidence_is_pair(double alone)
{
	return alone < ALONE_LEAST;
}

double confidence_balanced(double log_ratio, double deviation)
{
	const double within = log(CO_BINDING_RATIO);
	return statistics_normal((within - log_ratio) / deviation) -
	       statistics_normal((-within - log_ratio) / deviation);
}

double confidence_shown_pair(double balanced)
{
	return fmax(balanced, PAIR_FACTOR);
}

double confidence_completeness(double unmodelled)
{
	if (isnan(unmodelled))
		return 1;
	const double beyond = fmax(fabs(unmodelled) - UNMODELLED_FREE, 0);
	return fmax(1 - UNMODELLED_SLOPE * beyond, UNMODELLED_LEAST);
}

double confidence_most(size_t repeats)
{
	return repeats < REPEATS_WANTED ? MOST_FEW_REPEATS : MOST;
}

double confidence_failed(double confidence, double divisor)
{
	static const double CERTAIN = 1 - 1e-9;
	const double odds = confidence / (1 - fmin(confidence, CERTAIN)) / divisor;
	return odds / (1 + odds);
}

/* --- the validity gate ------------------------------------------------------------------------ */

/* Figures that contradict each other are not diagnosed.  Checked are steadiness, the accounting of
 * thread time, flow conservation, and Little's law where both of its sides were measured. */

static const double ACCOUNTED_MIN = 0.97;
static const double LITTLE_TOLERANCE = 0.02;
static const double UTILISATION_TOLERANCE =
	0.10; /* histograms know a value to 3 %, and clip at the edges */
static const double FLOW_TOLERANCE = 0.02;

static bool gate_steady(const struct evidence_base *base, struct refusal *refusal)
{
	if (base->point->status == POINT_UNSTEADY) {
		(void)snprintf(
			refusal->reason, sizeof refusal->reason, "the throughput was not steady");
		for (size_t i = 0; i < base->point->note_count; i++)
			if (strncmp(base->point->notes[i], "unsteady: ", strlen("unsteady: ")) == 0)
				(void)snprintf(refusal->reason, sizeof refusal->reason, "%.200s",
					base->point->notes[i]);
		(void)way_out_steadier(refusal->reason, base->facts, refusal->way_out);
		return false;
	}
	if (base->count == 0 || base->point->status != POINT_OK) {
		(void)snprintf(refusal->reason, sizeof refusal->reason, "no repetition succeeded");
		(void)snprintf(refusal->way_out, sizeof refusal->way_out,
			"mlbench show --verbose says why each failed; fix that, and measure again");
		return false;
	}
	return true;
}

static bool is_a_share(double value)
{
	return value >= 0 && value <= 1; /* not NAN either */
}

static bool gate_has_states(const struct evidence_base *base, struct refusal *refusal)
{
	const struct point_summary *point = base->point;
	bool known = point->stage_count >= 2;
	for (size_t i = 0; i < point->stage_count; i++)
		known = known && is_a_share(point->stages[i].busy) &&
			is_a_share(point->stages[i].starved) &&
			is_a_share(point->stages[i].blocked);
	if (!known) {
		(void)snprintf(refusal->reason, sizeof refusal->reason,
			"thread states were not recorded (measure.profiler = off, or the run was "
			"too short)");
		(void)way_out_states(base->facts, refusal->way_out);
	}
	return known;
}

static bool gate_accounts(const struct evidence_base *base, struct refusal *refusal)
{
	const double accounted = base->point->accounted;
	if (accounted >= ACCOUNTED_MIN)
		return true;
	if (isnan(accounted))
		(void)snprintf(refusal->reason, sizeof refusal->reason,
			"how much of the threads' time is accounted for is unknown");
	else
		(void)snprintf(refusal->reason, sizeof refusal->reason,
			"only %.1f %% of the threads' time is accounted for; a verdict needs %.0f "
			"%%",
			accounted * 100, ACCOUNTED_MIN * 100);
	return false;
}

/* What entered the decode stage left through the step, except for what waited at either end.
 * Samples are counted between completions of steps, stages between edges of windows, which adds two
 * batches. */
static bool flow_conserved(
	const struct evidence_base *base, const struct measurement *m, struct refusal *refusal)
{
	const struct stage_measurement *read = measurement_stage(m, STAGE_READ);
	const struct stage_measurement *decode = measurement_stage(m, STAGE_DECODE);
	if (!read || !decode || read->items == 0 || decode->items == 0)
		return true;
	double out = (double)(m->samples + m->bad_samples);
	const struct stage_measurement *step = measurement_stage(m, STAGE_STEP);
	const double devices = step && step->workers > 1 ? step->workers : 1;
	double waiting =
		(double)base->facts->batch_size * (base->facts->prefetch_depth + 4 * devices) +
		(double)base->facts->read_threads * base->facts->read_depth * 2.0 +
		2.0 * base->facts->decode_workers;
	/* With checkpoints, evaluations, or epochs that are kept apart, samples are those of whole periods, and stages may
	 * be counted with one stall more of each. */
	const double stall_ns = (m->checkpoint_count > 0 ? m->checkpoint[0].stall_max_ns : 0) +
				(m->evaluation_count > 0 ? m->evaluation[0].stall_max_ns : 0);
	if ((stall_ns > 0 || m->restarts > 0) && m->measured_seconds > 0) {
		out *= measurement_counted_seconds(m) / m->measured_seconds;
		waiting +=
			m->throughput *
			(stall_ns > 0 ? stall_ns / 1e9 : m->restart_seconds / (double)m->restarts);
	}
	const double tolerance = FLOW_TOLERANCE * out + waiting + (double)m->bad_samples;
	const double worst = fmax(fabs((double)read->items - (double)decode->items),
		fabs((double)decode->items - out));
	if (worst <= tolerance)
		return true;
	(void)snprintf(refusal->reason, sizeof refusal->reason,
		"flow is not conserved: %llu samples were read, %llu decoded, and %.0f passed the "
		"step",
		(unsigned long long)read->items, (unsigned long long)decode->items, out);
	return false;
}

/* Files in flight = rate x latency, which cannot exceed the allowed number. Files in flight at the
 * beginning bring along the time they had already waited. */
static bool little_of_reads(
	const struct evidence_base *base, const struct measurement *m, struct refusal *refusal)
{
	const struct stage_measurement *read = measurement_stage(m, STAGE_READ);
	if (!read || read->service.count == 0 || base->facts->reads_memory ||
		base->facts->read_depth == 0)
		return true;
	const double seconds = measurement_counted_seconds(m);
	if (seconds <= 0)
		return true;
	const double in_flight =
		measurement_reads(m) / seconds * histogram_mean(&read->service) * 1e-9;
	const double allowed = (double)base->facts->read_threads * base->facts->read_depth;
	const double before = fmin((double)read->service.max_ns * 1e-9 / seconds, 1);
	if (in_flight <= allowed * (1 + LITTLE_TOLERANCE + before) + 1)
		return true;
	(void)snprintf(refusal->reason, sizeof refusal->reason,
		"Little's law fails at read: rate x latency gives %.1f %s in flight, but at most "
		"%.0f are allowed",
		in_flight, m->facts.reads_large ? "requests" : "files", allowed);
	return false;
}

/* Utilisation law (Little's law on the workers): rate x service time = busy workers, by two
 * clocks, over all repetitions: what an edge of one cuts off falls on either side. */
static bool little_of_decode(const struct evidence_base *base, struct refusal *refusal)
{
	double by_histogram = 0;
	double by_states = 0;
	double edges =
		0; /* items cut in two by those of the measured part, any of them the longest */
	double workers = 0;
	double seconds = 0;
	for (size_t i = 0; i < base->count; i++) {
		const struct measurement *m = base->repeats[i];
		const struct stage_measurement *decode = measurement_stage(m, STAGE_DECODE);
		const double counted = measurement_counted_seconds(m);
		if (!decode || decode->service.count == 0 || decode->per_batch || counted <= 0)
			continue;
		by_histogram += (double)decode->items * histogram_mean(&decode->service) * 1e-9 +
				(isnan(decode->overhead_seconds) ? 0 : decode->overhead_seconds);
		by_states += decode->seconds[THREAD_WORKING];
		edges += (double)decode->service.max_ns * 1e-9 +
			 decode->workers * histogram_mean(&decode->service) * 1e-9;
		workers = decode->workers;
		seconds += counted;
	}
	const double slack = UTILISATION_TOLERANCE * fmax(by_histogram, by_states) +
			     0.01 * workers * seconds + edges;
	if (fabs(by_histogram - by_states) <= slack)
		return true;
	(void)snprintf(refusal->reason, sizeof refusal->reason,
		"Little's law fails at decode: rate x service time gives %.2f busy workers, the "
		"state clocks %.2f",
		by_histogram / seconds, by_states / seconds);
	return false;
}

bool gate_passes(const struct evidence_base *base, struct refusal *refusal)
{
	*refusal = (struct refusal){0};
	if (!gate_steady(base, refusal) || !gate_has_states(base, refusal))
		return false;
	bool agrees = gate_accounts(base, refusal);
	for (size_t i = 0; i < base->count && agrees; i++)
		agrees = flow_conserved(base, base->repeats[i], refusal) &&
			 little_of_reads(base, base->repeats[i], refusal);
	agrees = agrees && little_of_decode(base, refusal);
	if (!agrees)
		(void)way_out_again(base->facts, refusal->way_out);
	return agrees;
}

/* --- evidence: sentences with figures --------------------------------------------------------- */

static const double NINETY = 1.645; /* half-width of a 90 % interval, in deviations */

void evidence_add(struct verdict *out, const char *format, ...)
{
	if (out->evidence_count == EVIDENCE_MAX)
		return;
	char *line = out->evidence[out->evidence_count++];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(line, EVIDENCE_BYTES, format, args);
	va_end(args);
	/* A name such as memory.max keeps its small letter. */
	const char *dot = memchr(line, '.', strcspn(line, " "));
	if (!dot || !islower((unsigned char)dot[1]))
		line[0] = (char)toupper((unsigned char)line[0]);
	const size_t length = strlen(line);
	if (length + 1 < EVIDENCE_BYTES)
		(void)snprintf(line + length, EVIDENCE_BYTES - length, ".");
}

/* "its 2 threads' time", "the device's time"; an emulated device has only its thread's time. */
static void whose_time(const struct evidence_base *base, const struct stage_summary *stage,
	char *text, size_t room)
{
	if (stage->device && !base->facts->step_emulated)
		(void)snprintf(text, room, "the device's time");
	else if (stage_is(stage->name, STAGE_CHECKPOINT) || stage_is(stage->name, STAGE_EVALUATE))
		(void)snprintf(text, room, "the time");
	else if (stage->workers == 1)
		(void)snprintf(text, room, "its thread's time");
	else
		(void)snprintf(text, room, "its %u threads' time", stage->workers);
}

/* "Decode is busy 98.7 % of its 2 threads' time; read is blocked 71.0 %, step is starved 34.0
 * %." */
static void evidence_add_states(const struct evidence_base *base, size_t at, struct verdict *out)
{
	const struct point_summary *point = base->point;
	const struct stage_summary *stage = &point->stages[at];
	char time[48];
	char above[96] = "";
	char below[96] = "";
	whose_time(base, stage, time, sizeof time);
	if (at > 0)
		(void)snprintf(above, sizeof above, "; %s is blocked %.1f %%",
			point->stages[at - 1].name, point->stages[at - 1].blocked * 100);
	if (at + 1 < point->stage_count)
		(void)snprintf(below, sizeof below, "%s %s is starved %.1f %%", at > 0 ? "," : ";",
			point->stages[at + 1].name, point->stages[at + 1].starved * 100);
	evidence_add(out, "%s is busy %.1f %% of %s%s%s", stage->name, stage->busy * 100, time,
		above, below);
}

static void evidence_add_depth(
	const struct point_summary *point, const struct binding *binding, struct verdict *out)
{
	const struct stage_summary *above = &point->stages[binding->queue_above];
	const struct stage_summary *below = above + 1;
	evidence_add(out,
		"no stage is saturated (%s %.0f %% busy, %s %.0f %%): in turns %s is blocked %.0f "
		"%% and %s is starved %.0f %% of the time",
		above->name, above->busy * 100, below->name, below->busy * 100, above->name,
		above->blocked * 100, below->name, below->starved * 100);
}

/* "Model: making decode 1 % faster raises throughput by 0.97 %; queue waits agree." */
static void evidence_add_replayed(
	const struct evidence_base *base, const struct binding *binding, struct verdict *out)
{
	if (!base->findings)
		return;
	double deviation;
	const char *name = base->point->stages[binding->stage].name;
	const double share = findings_stage(base->findings, name, &deviation);
	if (isnan(binding->replayed))
		return;
	if (binding->depth)
		evidence_add(out, "model: a queue four times as deep would gain %.0f %%",
			binding->depth_gain * 100);
	else
		evidence_add(out, "model: making %s 1 %% faster raises throughput by %.2f %%; %s",
			name, share,
			binding->agree ? "queue waits agree" : "the queue waits point elsewhere");
}

/* "3 devices spend 33.1 % of the time exchanging gradients and 4.0 % waiting for one another." */
static void evidence_add_devices(const struct point_summary *point, size_t at, struct verdict *out)
{
	const struct stage_summary *sync = summary_stage(point, STAGE_SYNC_NAME);
	/* What ranks spend is told of all of them (ranks.h). */
	if (!sync || sync->workers < 2 || sync == &point->stages[at])
		return;
	evidence_add(out,
		"%u devices spend %.1f %% of the time exchanging gradients and %.1f %% waiting for "
		"one another",
		sync->workers, sync->busy * 100, devices_waiting(point) * 100);
}

static void evidence_add_second(
	const struct point_summary *point, const struct binding *binding, struct verdict *out)
{
	if (binding->second >= point->stage_count || binding->depth || binding->stalls ||
		binding->tail)
		return;
	const char *first = point->stages[binding->stage].name;
	const char *second = point->stages[binding->second].name;
	if (!confidence_is_pair(binding->alone))
		evidence_add(out,
			"throughput depends on the costs of %s nearly as much as on those of %s: "
			"both are bottlenecks",
			second, first);
	else if (binding->alone < 0.5)
		evidence_add(out,
			"the capacity of %s is within %.1f %% of that of %s: both are bottlenecks",
			second, binding->second_gap * 100, first);
	else
		evidence_add(out,
			"the capacity of %s is %.1f %% (+/- %.1f %%) from that of %s: both may be bottlenecks",
			second, binding->second_gap * 100, NINETY * binding->second_noise * 100,
			first);
}

static void evidence_add_alone(
	const struct point_summary *point, const struct binding *binding, struct verdict *out)
{
	if (isnan(binding->alone_ratio) || binding->alone_stage == point->stage_count)
		return;
	char first[UNITS_BYTES];
	char other[UNITS_BYTES];
	const double ratio = exp(binding->alone_ratio);
	(void)units_format_count(binding->alone_least * fmax(1 / ratio, 1), first);
	(void)units_format_count(binding->alone_least * fmax(ratio, 1), other);
	evidence_add(out, "alone, %s gives %s samples/s and %s %s (ratio %.3f +/- %.3f)%s",
		point->stages[binding->stage].name, first, point->stages[binding->alone_stage].name,
		other, ratio, NINETY * binding->alone_error * ratio,
		!isnan(binding->shown)                    ? ""
		: binding->alone_error > ALONE_ERROR_MOST ? ": too uneven to tell"
		: binding->alone_least > ALONE_FASTER * point->median
			? ", more than the run: cores that both share, or a queue, limit it"
			: ", which the run does not agree with");
}

static const double STALLS_TOLD = 0.01; /* of the time */

/* Where they are not what is named. */
static void evidence_add_stopping(
	const struct point_summary *point, size_t stage, struct verdict *out)
{
	const char *const named = point->stages[stage].name;
	if (point->checkpoint_share >= STALLS_TOLD && !stage_is(named, STAGE_CHECKPOINT))
		evidence_add(out, "checkpoints stop the step for %.1f %% of the time",
			point->checkpoint_share * 100);
	if (point->evaluation_share >= STALLS_TOLD && !stage_is(named, STAGE_EVALUATE))
		evidence_add(out, "evaluations stop the step for %.1f %% of the time",
			point->evaluation_share * 100);
}

/* A throughput above a stage's capacity by more than rounding and edges explain: one of the two
 * figures is off. */
static const double CAPACITY_EXCEEDED = 1.10;

static const char *capacity_caveat(const struct point_summary *point, size_t least, size_t stage)
{
	if (point->median > CAPACITY_EXCEEDED * point->stages[least].capacity)
		return "; there are too few samples to know either exactly: measure longer";
	return least == stage ? "" : ", but the queue waits point elsewhere";
}

/* The throughput against the lowest capacity, as a sanity check, and the next bottleneck. */
static void evidence_add_capacities(
	const struct point_summary *point, size_t stage, struct verdict *out)
{
	const size_t least = binding_next_capacity(point, point->stage_count);
	/* What the step's thread does besides has no rate that others could be held against. */
	const char *const name = point->stages[stage].name;
	const bool stops = (stage_is(name, STAGE_CHECKPOINT) || stage_is(name, STAGE_EVALUATE)) &&
			   isnan(point->stages[stage].capacity);
	if (least == point->stage_count || stops)
		return;
	char rate[UNITS_BYTES];
	char capacity[UNITS_BYTES];
	(void)units_format_count(point->median, rate);
	(void)units_format_count(point->stages[least].capacity, capacity);
	evidence_add(out,
		"the throughput, %s samples/s, is %.0f %% of the lowest capacity (%s: %s)%s", rate,
		point->median / point->stages[least].capacity * 100, point->stages[least].name,
		capacity, capacity_caveat(point, least, stage));
	const size_t next = binding_next_capacity(point, stage);
	if (next == point->stage_count || next == least)
		return;
	(void)units_format_count(point->stages[next].capacity, capacity);
	evidence_add(out, "the next bottleneck is %s, at %s%s samples/s", point->stages[next].name,
		point->stages[next].capacity_is_lower_bound ? "or above " : "", capacity);
}

static void evidence_add_others(
	const struct evidence_base *base, const struct cause *cause, struct verdict *out)
{
	const double outside = base->point->cores_busy_outside;
	if (base->point->contaminated[0] && strcmp(cause->resource, "external") != 0)
		evidence_add(out, "during the measurement %s", base->point->contaminated);
	else if (outside >= 0.1 * base->point->cores_allowed &&
		 strcmp(cause->resource, "external") != 0)
		evidence_add(out,
			"during the measurement other processes kept %.1f of %u cores busy",
			outside, base->point->cores_allowed);
	if (base->count < 3)
		evidence_add(out, "only %zu repetition%s: the confidence interval is unreliable",
			base->count, base->count == 1 ? "" : "s");
}

/* What of a stage's time is declared for somebody's loader. */
static void evidence_add_overhead(
	const struct evidence_base *base, const struct stage_summary *stage, struct verdict *out)
{
	const struct point_facts *const facts = base->facts;
	const bool decodes = stage_is(stage->name, STAGE_DECODE);
	const double batch = fmax(facts->batch_size, 1);
	const double declared_ns =
		decodes ? facts->overhead_sample_ns + facts->overhead_batch_ns / batch
		: stage_is(stage->name, STAGE_STEP) ? facts->overhead_step_ns
						    : 0;
	/* Of a thread's working time. */
	const double ns =
		stage->busy * stage->workers * 1e9 / base->point->median * (decodes ? 1 : batch);
	char part[UNITS_BYTES];
	char whole[UNITS_BYTES];
	if (!(declared_ns > 0) || !isfinite(ns))
		return;
	evidence_add(out,
		"%s of the %s that a %s are the declared overhead of the loader (overhead.*)",
		units_format_duration(declared_ns, part), units_format_duration(ns, whole),
		decodes ? "sample takes a worker" : "batch takes the step's thread");
}

/* ns of a sample in a stage. */
static double evidence_mean(const struct stage_summary *stage)
{
	return stage && stage->capacity > 0 ? 1e9 * stage->workers / stage->capacity : NAN;
}

/* How this loader differs from one that reads ahead and whose stages overlap. */
static void evidence_add_loader(const struct evidence_base *base, struct verdict *out)
{
	const struct point_summary *const point = base->point;
	const struct stage_summary *const step = summary_stage(point, STAGE_STEP_NAME);
	const double read = evidence_mean(summary_stage(point, STAGE_READ_NAME));
	const double decode = evidence_mean(summary_stage(point, STAGE_DECODE_NAME));
	if (base->facts->by_workers && read > 0 && decode > 0)
		evidence_add(out,
			"each worker reads a file in %s ms and then decodes it in %s ms: it does one or the other",
			UNITS_PLAIN(read * 1e-6, 3), UNITS_PLAIN(decode * 1e-6, 3));
	if (base->facts->turns && step)
		evidence_add(out,
			"loading and steps take turns: the step is starved %.0f %% of the time while a batch is loaded, and nothing is loaded in the rest",
			step->starved * 100);
}

static void evidence_write(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out)
{
	if (!binding->depth)
		evidence_add_states(base, binding->stage, out);
	else if (!base->facts->turns)
		evidence_add_depth(base->point, binding, out);
	evidence_add_loader(base, out);
	if (binding->conflict && !binding->depth && !base->findings)
		evidence_add(out,
			"the queue waits point elsewhere, but no other stage is nearly as busy");
	evidence_add_replayed(base, binding, out);
	evidence_add_second(base->point, binding, out);
	evidence_add_alone(base->point, binding, out);
	if (!binding->depth)
		evidence_add(out, "%s", cause->words);
	if (!binding->depth && stage_is(base->point->stages[binding->stage].name, STAGE_READ))
		evidence_add_store(base, cause->resource, out);
	if (!binding->restarts)
		evidence_add_stalls(base, cause->resource, out);
	if (!binding->depth)
		evidence_add_overhead(base, &base->point->stages[binding->stage], out);
	if (strcmp(cause->resource, "stalls") != 0 && strcmp(cause->resource, "outage") != 0)
		evidence_add_tail(base, base->point->stages[binding->stage].name,
			binding->depth ? "depth" : cause->resource, out);
	evidence_add_devices(base->point, binding->stage, out);
	evidence_add_stopping(base->point, binding->stage, out);
	evidence_add_capacities(base->point, binding->stage, out);
	evidence_add_others(base, cause, out);
}

/* --- the whole -------------------------------------------------------------------------------- */

static const double CONFIDENCE_DEPTH = 0.50;  /* without a replay */
static const double CONFIDENCE_MISFIT = 0.80; /* a replay that fits too badly to be asked */
static const double CONFIDENCE_NONE = 0.10;
static const double DEPTH_GAIN_LEAST = 0.05;

static double confidence_of_verdict(
	const struct evidence_base *base, const struct binding *binding, const struct cause *cause)
{
	const bool replayed = !isnan(binding->replayed);
	const double complete =
		!base->findings ? 1
		: replayed      ? confidence_completeness(base->findings->elasticities.unmodelled)
				: CONFIDENCE_MISFIT;
	const double most = confidence_most(base->count);
	if (binding->stalls || binding->tail)
		return fmin(
			cause->certainty *
				(binding->tail && base->findings
						? confidence_completeness(
							  base->findings->elasticities.unmodelled)
						: 1),
			most);
	if (binding->depth)
		return fmin(
			replayed ? certainty_above(binding->depth_gain, DEPTH_GAIN_LEAST) * complete
				 : CONFIDENCE_DEPTH,
			most);
	/* Of two that bind, either witness may name either. */
	const bool agree = binding->agree || binding->pointed == binding->second;
	/* Threads that a quota stops, or that others keep from the cores, wait wherever they are: arrows against the replay
	 * tell nothing then. */
	const bool kept =
		strcmp(cause->resource, "quota") == 0 || strcmp(cause->resource, "external") == 0 ||
		strcmp(cause->resource, "affinity") == 0 || strcmp(cause->resource, "threads") == 0;
	const bool stopped = kept && replayed && !agree;
	const double stage =
		stopped ? binding->replayed
			: confidence_stage(binding->certainty, binding->replayed, agree);
	const double busy =
		replayed ? 1 : confidence_busy(binding_taken(base->point, binding->stage));
	const double pair =
		confidence_pair(binding->second < base->point->stage_count, binding->alone);
	const double of_stage = isnan(binding->shown) ? stage * busy * pair : binding->shown;
	return fmin(of_stage * cause->certainty * complete, most);
}

static const double AGAINST_BELOW = 0.8; /* confidence: a verdict that leaves nothing open */

/* Only if an answer would leave a verdict that is sure enough. */
static void name_against(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out)
{
	struct binding answered = *binding;
	const size_t against = binding_against(base, binding);
	answered.shown = 1;
	if (against < base->point->stage_count && out->confidence < AGAINST_BELOW &&
		confidence_of_verdict(base, &answered, cause) >= AGAINST_BELOW)
		(void)snprintf(
			out->against, sizeof out->against, "%s", base->point->stages[against].name);
}

void verdict_abstain(struct verdict *out, const char *reason, const char *way_out)
{
	*out = (struct verdict){.confidence = CONFIDENCE_NONE};
	(void)snprintf(out->stage, sizeof out->stage, "none");
	(void)snprintf(out->resource, sizeof out->resource, "unknown");
	(void)snprintf(out->advice, sizeof out->advice, "%s", way_out);
	(void)snprintf(out->evidence[out->evidence_count++], EVIDENCE_BYTES, "%s", reason);
}

/* The queue in front of the step is the prefetch queue; the one above it is the read stage's
 * depth. */
static void name_binding(const struct point_summary *point, const struct binding *binding,
	const struct cause *cause, struct verdict *out)
{
	const char *stage = point->stages[binding->stage].name;
	if (binding->depth)
		stage = stage_is(point->stages[binding->queue_above].name, STAGE_READ)
				? STAGE_READ_NAME
				: STAGE_PREFETCH_NAME;
	(void)snprintf(out->stage, sizeof out->stage, "%s", stage);
	(void)snprintf(out->resource, sizeof out->resource, "%s",
		binding->depth ? "depth" : cause->resource);
	if (binding->depth && strcmp(point->stages[binding->stage].name, stage) != 0)
		(void)snprintf(
			out->also, sizeof out->also, "%s", point->stages[binding->stage].name);
	else if (!binding->depth && binding->second < point->stage_count)
		(void)snprintf(
			out->also, sizeof out->also, "%s", point->stages[binding->second].name);
}

struct point_facts point_facts_measured(
	const struct point_summary *point, const struct point_facts *facts)
{
	struct point_facts measured = *facts;
	for (size_t i = 0; i < point->stage_count; i++) {
		if (stage_is(point->stages[i].name, STAGE_READ))
			measured.read_threads = point->stages[i].workers;
		if (stage_is(point->stages[i].name, STAGE_DECODE))
			measured.decode_workers = point->stages[i].workers;
	}
	const struct declared_batch *const declared = &facts->declared;
	measured.handover_ns = declared->objects_ns + declared->ns_of_byte * point->batch_bytes;
	measured.overhead_batch_ns += measured.handover_ns;
	measured.overhead_step_ns += declared->ns_of_sample * point->data_samples +
				     (point->facts.step_null ? 0 : measured.handover_ns);
	/* A ceiling of reads into other pages is none of this run's. */
	if (memory_pages_differ(facts->storage_pages, point->read_pages))
		measured.storage_bytes_per_s = 0;
	return measured;
}

/* --- advice ----------------------------------------------------------------------------------- */

/* What to change, and what may be expected of it: words tied to the keys of the configuration. */

static const double FED_WAIT_MOST = 0.03; /* a step that waits less is fed */

__attribute__((format(printf, 2, 3))) static void advise(
	struct verdict *out, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)vsnprintf(out->advice, sizeof out->advice, format, args);
	va_end(args);
}

static const char *plural(unsigned count)
{
	return count == 1 ? "" : "s";
}

/* Twice the workers, if there are cores for them; the current count if there are none. */
static unsigned more_workers(const struct point_facts *facts)
{
	const unsigned busy = facts->step_threads;
	const unsigned room = facts->cores > busy ? facts->cores - busy : 1;
	const unsigned wanted = facts->decode_workers * 2;
	return wanted < room ? wanted : room > facts->decode_workers ? room : facts->decode_workers;
}

bool advice_after_load(const struct point_summary *point, char *out, size_t room)
{
	if (!point->contaminated[0])
		return false;
	(void)snprintf(out, room,
		"cannot tell what would help while others use the cores (%.80s): stop them, or "
		"keep cores for this job (run.affinity, cgroup cpuset), and measure again",
		point->contaminated);
	return true;
}

const char *advice_cheaper_decode(const struct point_facts *facts, char out[CHEAPER_BYTES])
{
	(void)snprintf(out, CHEAPER_BYTES, "%s%ssmaller %s",
		facts->may_be_jpeg ? "codec.jpeg_scaled = on for JPEG, " : "",
		facts->may_be_png ? "codec.png = fast for PNG, " : "",
		facts->pictures ? "pictures" : "samples");
	return out;
}

unsigned advice_fewer_workers(const struct point_facts *facts)
{
	const unsigned left =
		facts->cores > facts->step_threads ? facts->cores - facts->step_threads : 1;
	return facts->cores > 0 && facts->decode_workers > left ? left : 0;
}

static void advise_decode_cpu(
	const struct evidence_base *base, const struct binding *binding, struct verdict *out)
{
	const struct point_facts *facts = base->facts;
	const struct stage_summary *decode = &base->point->stages[binding->stage];
	const unsigned workers = more_workers(facts);
	char fed[UNITS_BYTES];
	char limit[UNITS_BYTES];
	(void)units_format_count(decode->capacity * workers / fmax(facts->decode_workers, 1), fed);
	if (workers == facts->decode_workers &&
		advice_after_load(base->point, out->advice, sizeof out->advice))
		return;
	if (workers == facts->decode_workers) {
		char steps[UNITS_BYTES] = "";
		char cheaper[CHEAPER_BYTES];
		if (facts->step_threads > 0)
			(void)snprintf(steps, sizeof steps, " and %u step thread%s",
				facts->step_threads, plural(facts->step_threads));
		advise(out,
			"all %u cores are in use by %u decode worker%s%s: more workers will not "
			"help. Make decoding cheaper (%s) or add cores",
			facts->cores, facts->decode_workers, plural(facts->decode_workers), steps,
			advice_cheaper_decode(facts, cheaper));
		return;
	}
	const size_t next = binding_next_capacity(base->point, binding->stage);
	if (next == base->point->stage_count) {
		advise(out, "decode.workers = %u: decode could feed up to ~%s samples/s", workers,
			fed);
		return;
	}
	(void)units_format_count(base->point->stages[next].capacity, limit);
	advise(out,
		"decode.workers = %u: decode could feed up to ~%s samples/s if the cores allow; "
		"then %s is the bottleneck, at %s%s",
		workers, fed, base->point->stages[next].name,
		base->point->stages[next].capacity_is_lower_bound ? "or above " : "", limit);
}

static void advise_cores(const struct evidence_base *base, struct verdict *out)
{
	const struct point_facts *facts = base->facts;
	const unsigned fewer = advice_fewer_workers(facts);
	const unsigned readers = facts->by_workers ? 0 : facts->read_threads;
	if (advice_after_load(base->point, out->advice, sizeof out->advice))
		return;
	advise(out,
		"%u core%s for %u decode worker%s, %u read thread%s and %u computing step "
		"thread%s: %s = %u will not be slower; more cores will be faster",
		facts->cores, plural(facts->cores), facts->decode_workers,
		plural(facts->decode_workers), readers, plural(readers), facts->step_threads,
		plural(facts->step_threads),
		fewer > 0 || facts->step_threads < 2 ? "decode.workers" : "step.threads",
		fewer > 0                 ? fewer
		: facts->step_threads < 2 ? (facts->decode_workers + 1) / 2
					  : facts->step_threads / 2);
}

/* Cores that all stages except the step use. */
static double cores_of_input(const struct point_summary *point)
{
	double used = 0;
	for (size_t i = 0; i < point->stage_count; i++) {
		const struct stage_summary *s = &point->stages[i];
		if (!stage_is(s->name, STAGE_STEP) && !isnan(s->cpu))
			used += s->busy * s->workers * s->cpu;
	}
	return used;
}

/* Step threads that leave the data loader the cores that it uses, and decode workers that are
 * enough to use them. */
static void advise_step_cores(const struct evidence_base *base, struct verdict *out)
{
	const struct point_facts *facts = base->facts;
	const double input = cores_of_input(base->point);
	const unsigned fit = (unsigned)fmax(round(facts->cores - input), 1);
	const unsigned enough = (unsigned)fmax(ceil(input), 1);
	char threads[48] = "";
	char workers[48] = "";
	if (fit < facts->step_threads)
		(void)snprintf(threads, sizeof threads, "step.threads = %u", fit);
	if (enough < facts->decode_workers)
		(void)snprintf(workers, sizeof workers, "%sdecode.workers = %u",
			threads[0] ? " and " : "", enough);
	advise(out,
		"%u step thread%s and %u decode worker%s share %u core%s, and the data loader uses "
		"%.1f of them: %s%s%s",
		facts->step_threads, plural(facts->step_threads), facts->decode_workers,
		plural(facts->decode_workers), facts->cores, plural(facts->cores), input, threads,
		workers, threads[0] || workers[0] ? "" : "more cores will help");
}

static const double GAIN_WORTH_SAYING = 0.01;

/* Recommends as many cores as the threads want, with what others of the group use, up to those that the job may use; and
 * what to run where nobody may raise the quota. */
static void advise_quota(const struct evidence_base *base, struct verdict *out)
{
	const struct point_summary *point = base->point;
	const struct model_findings *f = base->findings;
	/* fmax passes over NAN: nobody else was seen. */
	const double wanted = ceil(cause_cores_wanted(point) + fmax(point->quota_others, 0));
	const double most = fmin(fmax(wanted, floor(point->quota_cores) + 1), point->cores_allowed);
	const unsigned fit = (unsigned)fmax(ceil(point->quota_cores), 1);
	char quota[QUOTA_NAME_BYTES];
	char gain[64] = "";
	char fewer[80] = "";
	if (f && f->unthrottled >= GAIN_WORTH_SAYING)
		(void)snprintf(gain, sizeof gain, ": up to %s times the throughput (predicted)",
			UNITS_PLAIN(1 + f->unthrottled, 3));
	if (base->facts->decode_workers > fit)
		(void)snprintf(
			fewer, sizeof fewer, "; within it decode.workers = %u is enough", fit);
	(void)cause_quota_name(point, quota);
	if (most > point->quota_cores)
		advise(out, "raise %s to %.0f core%s%s%s", quota, most, most == 1 ? "" : "s", gain,
			fewer);
	else
		advise(out,
			"lift %s, which throttles although it is as large as the cores that this job may use%s%s",
			quota, gain, fewer);
}

void advice_try_depths(const struct point_facts *facts, char *out, size_t room)
{
	const struct flight flight = point_facts_flight(facts);
	(void)snprintf(out, room,
		"sweep %s=%u,%u: if throughput rises, reading is latency-bound; if not, storage is "
		"saturated",
		flight.key, flight.value, flight.value * 2);
}

static void advise_storage(
	const struct evidence_base *base, const struct cause *cause, struct verdict *out)
{
	const struct flight flight = point_facts_flight(base->facts);
	if (advice_of_limits(
		    base->point, base->facts, cause->resource, out->advice, sizeof out->advice))
		return;
	const unsigned wanted = network_depth_wanted(base);
	const char *const unit = cause_read_unit(base);
	if (strcmp(cause->resource, "latency") == 0 && wanted > flight.value * flight.readers)
		advise(out, "%s = %u: %u %ss in flight would do for this round trip (Little's law)",
			flight.key, (wanted + flight.readers - 1) / flight.readers, wanted, unit);
	else if (strcmp(cause->resource, "latency") == 0)
		advise(out, "%s = %u: storage throughput still rises with the %ss in flight",
			flight.key, flight.value * 2, unit);
	else if (strcmp(cause->resource, "unknown") == 0)
		advice_try_depths(base->facts, out->advice, sizeof out->advice);
	else if (!recommend_without_keys(base->point, STAGE_READ_NAME, cause->resource, out->advice,
			 sizeof out->advice))
		advise(out, "not enough was measured to name the resource that read lacks");
}

/* Advice for a real device; false: there is none. */
static bool advise_device(
	const struct evidence_base *base, const struct cause *cause, struct verdict *out)
{
	const struct device_view view = device_view_of(base->repeats, base->count);
	if (!view.any)
		return false;
	if (strcmp(cause->resource, "throttled") == 0)
		advise(out,
			"cool the device or raise its power limit: nothing in the input pipeline "
			"will help");
	else if (strcmp(cause->resource, "copy") == 0)
		advise(out, "upload.mode = copy: a stage of its own copies while the previous step "
			    "computes; of pictures, augment.type = uint8 copies a quarter of the "
			    "bytes");
	else if (strcmp(cause->resource, "launch") == 0)
		advise(out,
			"step.graph = on launches a whole step at once; a larger batch.size makes "
			"fewer, larger kernels");
	else
		return false;
	return true;
}

static void advise_step(
	const struct evidence_base *base, const struct cause *cause, struct verdict *out)
{
	if (strcmp(cause->resource, "imbalance") == 0) {
		advise(out,
			"find what slows that device (its clocks and temperature, another process "
			"on it, its place on the bus): all devices wait for it in every step");
		return;
	}
	if (advise_device(base, cause, out))
		return;
	const struct headroom headroom = headroom_of_input(base->point, out);
	const double waits = headroom.waits;
	if (strcmp(cause->resource, "compute") == 0 && step_is_late(base))
		advise(out, "the data loader keeps up, but the device's thread is late: leave it a "
			    "core (fewer decode.workers, no other processes), and measure again");
	else if (strcmp(cause->resource, "compute") == 0 && waits > FED_WAIT_MOST)
		advise(out,
			"the step still starves %.1f %% of the time, although the data loader is "
			"faster on average: prefetch.depth = %u evens that out; beyond that only a "
			"faster step raises throughput",
			waits * 100, base->facts->prefetch_depth * 2);
	else if (headroom.tight && strcmp(cause->resource, "compute") == 0)
		advise(out,
			"the %s stage is %.0f %% busy too: a faster step also needs a faster %s "
			"stage",
			headroom.tight->name, headroom.tight->busy * 100, headroom.tight->name);
	else if (base->facts->step_emulated)
		advise(out,
			"the data loader keeps the emulated device busy, with capacity to spare; a "
			"faster step.device shows how much further it reaches");
	else if (strcmp(cause->resource, "compute") == 0)
		advise(out,
			"the data loader keeps the step busy, with capacity to spare; %s may help "
			"the step",
			device_view_of(base->repeats, base->count).any
				? "a lower step.precision or a larger batch.size"
				: "a larger batch.size or more step.threads");
	else
		advise(out, "the step does not get enough CPU time: set step.threads and "
			    "decode.workers so that both fit the cores");
}

static void advise_depth(
	const struct evidence_base *base, const struct binding *binding, struct verdict *out)
{
	if (base->facts->turns)
		advise(out,
			"prefetch.depth = 2 loads the next batches while a step computes (PyTorch: num_workers above 0)");
	else if (stage_is(out->stage, STAGE_PREFETCH))
		advise(out,
			"prefetch.depth = %u: uneven %s and %s times cancel out over more batches "
			"(or batch.order = as-completed)",
			base->facts->prefetch_depth * 2,
			base->point->stages[binding->queue_above].name,
			base->point->stages[binding->queue_above + 1].name);
	else
		advise(out,
			"read.depth = %u: uneven read and decode times cancel out over more files",
			base->facts->read_depth * 2);
}

static void advise_resource(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out)
{
	const char *stage = base->point->stages[binding->stage].name;
	if (strcmp(cause->resource, "quota") == 0)
		advise_quota(base, out);
	else if (strcmp(cause->resource, "affinity") == 0 ||
		 strcmp(cause->resource, "threads") == 0)
		(void)recommend_without_keys(
			base->point, stage, cause->resource, out->advice, sizeof out->advice);
	else if (strcmp(cause->resource, "steal") == 0)
		advise(out,
			"the host gives this machine's CPUs to others, and no setting helps: ask "
			"for dedicated cores, or move to a host that is not overcommitted");
	else if (strcmp(cause->resource, "external") == 0)
		advise(out, "stop the other processes, or keep cores for this job (run.affinity, "
			    "cgroup cpuset)");
	else if (strcmp(cause->resource, "lock") == 0 &&
		 advice_after_load(base->point, out->advice, sizeof out->advice))
		return;
	else if (strcmp(cause->resource, "lock") == 0)
		advise(out,
			"more %s workers will not help while they wait for one lock: do less under "
			"it",
			stage);
	else if (strcmp(cause->resource, "hand-over") == 0)
		(void)recommend_without_keys(
			base->point, stage, cause->resource, out->advice, sizeof out->advice);
	else if (stage_is(stage, STAGE_STEP) && strcmp(cause->resource, "cores") == 0)
		advise_step_cores(base, out);
	else if (stage_is(stage, STAGE_STEP))
		advise_step(base, cause, out);
	else if (stage_is(stage, STAGE_CHECKPOINT) || stage_is(stage, STAGE_EVALUATE) ||
		 binding->restarts)
		(void)recommend_without_keys(
			base->point, stage, cause->resource, out->advice, sizeof out->advice);
	else if (stage_is(stage, STAGE_SYNC))
		advise(out,
			"a larger batch.size exchanges the same gradients for more samples; a "
			"faster link between the devices helps too; a faster data loader does not");
	else if (strcmp(cause->resource, "cores") == 0)
		advise_cores(base, out);
	else if (strcmp(cause->resource, "cpu") == 0 && stage_is(stage, STAGE_DECODE))
		advise_decode_cpu(base, binding, out);
	else if (strcmp(cause->resource, "cpu") == 0 && base->facts->by_workers)
		advise(out, "reading takes the workers' CPU time: raise decode.workers, or read "
			    "larger files");
	else if (strcmp(cause->resource, "cpu") == 0)
		advise(out, "the reader threads are CPU-bound: raise read.threads, or read larger "
			    "files");
	else if (stage_is(stage, STAGE_READ))
		advise_storage(base, cause, out);
	else if (strcmp(cause->resource, "copy") == 0 &&
		 device_view_of(base->repeats, base->count).any)
		advise(out,
			"copying to the device is the bottleneck: upload.memory = pinned where it "
			"is not; of pictures, augment.type = uint8 for a quarter of the bytes, "
			"augment.device = gpu where crops are small");
	else if (strcmp(cause->resource, "copy") == 0)
		advise(out,
			"copying batches is the bottleneck: upload.mode = none, or, of pictures, "
			"augment.type = uint8 for a quarter of the bytes");
	else
		advise(out, "not enough was measured to name the resource that %s lacks", stage);
}

static void advice_write(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out)
{
	if (binding->depth)
		advise_depth(base, binding, out);
	else
		advise_resource(base, binding, cause, out);
}

/* --- all of it together ---------------------------------------------------------------------- */

static const double BUSY_BESIDE = 0.90; /* beside a tail, which takes no time of its own */

/* Reads that make the step starve although no stage is busy all the time.  A stage that is busy the rest
 * of the time limits as well. */
static void name_reads(const struct point_summary *point, bool *why, struct binding *binding)
{
	const size_t busy = binding->stage;
	size_t read = 0;
	while (read < point->stage_count && !stage_is(point->stages[read].name, STAGE_READ))
		read++;
	if (read == point->stage_count)
		return;
	*why = true;
	binding->depth = false;
	binding->replayed = binding->shown = binding->alone_ratio = NAN;
	binding->stage = read;
	const bool limits = binding->stalls || binding_taken(point, busy) >= BUSY_BESIDE;
	binding->second = busy != read && limits ? busy : point->stage_count;
}

void verdict_judge_trusted(const struct evidence_base *base, struct verdict *out)
{
	*out = (struct verdict){0};
	struct binding binding = binding_find(base);
	if (base->findings)
		binding_weigh(base, &binding);
	binding_weigh_stopping(base, &binding);
	binding_weigh_restarts(base, &binding);
	binding_weigh_alone(base, &binding);
	/* Between epochs nothing is read: that is no stall of storage. */
	/* A cache that holds a part makes the others slow, too. */
	const bool cached = cache_binds(base);
	const bool tail = !cached && tail_binds(base, true);
	if (!binding.restarts && !tail && stalls_bind(base))
		name_reads(base->point, &binding.stalls, &binding);
	else if (!binding.restarts && !cached && (tail || tail_binds(base, false)))
		name_reads(base->point, &binding.tail, &binding);
	const struct cause cause =
		binding.restarts ? cause_of_restarts(base->point)
		: binding.tail   ? cause_of_tail(base, &base->point->stages[binding.stage])
				 : cause_of_stage(base, &base->point->stages[binding.stage]);
	name_binding(base->point, &binding, &cause, out);
	out->confidence = confidence_of_verdict(base, &binding, &cause);
	if (!cached)
		name_against(base, &binding, &cause, out);
	evidence_write(base, &binding, &cause, out);
	advice_write(base, &binding, &cause, out);
}

void verdict_judge(const struct evidence_base *base, struct verdict *out)
{
	struct refusal refusal;
	/* They are why it was unsteady. */
	const bool explained = base->point->status == POINT_UNSTEADY &&
			       (stalls_bind(base) || cache_binds(base) || tail_binds(base, false));
	if (explained || gate_passes(base, &refusal))
		verdict_judge_trusted(base, out);
	else
		verdict_abstain(out, refusal.reason, refusal.way_out);
}
