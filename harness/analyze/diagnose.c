/* The whole diagnosis: whether there are enough samples, memory, the verdict with what a replay
 * finds, phases, and what to change. Whatever is missing is left out with a reason; only lack of
 * memory makes it fail. */
#include "harness/analyze/diagnose.h"

#include "harness/analyze/limit_kinds.h"
#include "harness/analyze/point_model.h"
#include "harness/analyze/rates.h"
#include "harness/analyze/storage_capacity.h"
#include "harness/analyze/summary.h"
#include "harness/analyze/verdict.h"
#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the growth of memory --------------------------------------------------------------------- */

/* A memory series is reduced to medians of blocks of windows, through which the
 * Theil-Sen slope goes; resampled residuals of the blocks give its interval. */

enum {
	WINDOWS_MIN = 16, /* for anything to be said */
	BLOCKS = 12,
	BLOCK_WINDOWS_MIN = 3,
	RESAMPLES = 200,
	THIRD = 3,
	TROUGHS_MIN = 3,
	SMOOTHED = 5,
};

static const double SECONDS_MIN = 2;
static const double GROWTH_LEAST = 2 << 20; /* bytes in all: less is an allocator's breath */
static const double SLOPE_LEAST = 16 << 10; /* bytes/s */
/* Growth of the troughs over the depth of the falls: windows meet a trough at different moments. */
static const double TROUGHS_OF_FALL = 0.1;
static const double JUMP_OF_GROWTH = 0.6;
static const double LAST_OF_FIRST = 0.4;  /* rise of the last third over that of the first */
static const double FALL_OF_GROWTH = 0.3; /* a fall so large makes it a saw-tooth */
/* Median size of y - 2 y' + y'' of normal values of deviation 1: 0.6745 x sqrt(6). */
static const double SECOND_DIFFERENCE = 1.652;
static const double NOISE_TIMES = 4; /* that growth must exceed it */
static const double LEVEL = 0.90, SLOPE_QUANTILE = 0.05;

struct blocks {
	double t[BLOCKS], y[BLOCKS];
	size_t count;
};

/* Each of `least` windows or more. */
static struct blocks blocks_of(const double *t, const double *y, size_t n, size_t least)
{
	struct blocks b = {0};
	b.count = n / least < BLOCKS ? n / least : BLOCKS;
	for (size_t i = 0; i < b.count; i++) {
		const size_t first = i * n / b.count;
		const size_t last = (i + 1) * n / b.count;
		b.t[i] = statistics_median(t + first, last - first);
		b.y[i] = statistics_median(y + first, last - first);
	}
	return b;
}

/* Slopes of the line through resampled residuals. */
static struct interval slope_interval(const struct blocks *b, double slope, uint64_t seed)
{
	double residual[BLOCKS];
	double resampled[BLOCKS];
	double slopes[RESAMPLES];
	struct rng rng;
	rng_init(&rng, seed, b->count);
	for (size_t i = 0; i < b->count; i++)
		residual[i] = b->y[i] - slope * b->t[i];
	const double base = statistics_median(residual, b->count);
	for (size_t r = 0; r < RESAMPLES; r++) {
		for (size_t i = 0; i < b->count; i++)
			resampled[i] = slope * b->t[i] + base +
				       (residual[rng_below(&rng, b->count)] - base);
		slopes[r] = statistics_robust_slope(b->t, resampled, b->count);
	}
	return (struct interval){statistics_quantile(slopes, RESAMPLES, SLOPE_QUANTILE),
		statistics_quantile(slopes, RESAMPLES, LEVEL + SLOPE_QUANTILE)};
}

/* Rise over a third of the series: between the medians of the edges of that third. */
static double rise_of_third(const double *y, size_t n, size_t third)
{
	const size_t first = third * n / THIRD;
	const size_t last = (third + 1) * n / THIRD;
	const size_t edge = (last - first) / 8 + 1;
	return statistics_median(y + last - edge, edge) - statistics_median(y + first, edge);
}

/* Deviation of a block's level, from second differences, so that neither a slope nor a bend counts
 * as noise. */
static double noise_of_blocks(const struct blocks *b)
{
	double seconds[BLOCKS];
	size_t n = 0;
	for (size_t i = 1; i + 1 < b->count; i++)
		seconds[n++] = fabs(b->y[i - 1] - 2 * b->y[i] + b->y[i + 1]);
	return n > 0 ? statistics_median(seconds, n) / SECOND_DIFFERENCE : 0;
}

/* The largest fall from the highest level before it; single windows do not count. */
static double largest_fall(const struct blocks *fine)
{
	double most = 0;
	double top = -INFINITY;
	for (size_t i = 0; i < fine->count; i++) {
		top = fmax(top, fine->y[i]);
		most = fmax(most, top - fine->y[i]);
	}
	return most;
}

/* Troughs: where the series has fallen by `fall` from the top before, at its least until it has
 * risen by as much again.  Writes their places; returns how many. */
static size_t find_troughs(const double *y, size_t n, double fall, size_t *places, size_t room)
{
	size_t count = 0;
	size_t low = 0;
	double top = y[0];
	bool falling = false;
	for (size_t i = 1; i < n; i++) {
		if (falling && y[i] < y[low])
			low = i;
		if (falling && y[i] >= y[low] + fall / 2) {
			if (count < room)
				places[count++] = low;
			falling = false;
			top = y[i];
		}
		if (!falling && y[i] <= top - fall / 2) {
			falling = true;
			low = i;
		}
		top = fmax(top, y[i]);
	}
	if (falling && count < room)
		places[count++] = low;
	return count;
}

/* All in one jump: allocated once and kept. */
static bool is_one_jump(const struct blocks *b)
{
	double most = 0;
	for (size_t i = 1; i < b->count; i++)
		most = fmax(most, b->y[i] - b->y[i - 1]);
	return most > JUMP_OF_GROWTH * (b->y[b->count - 1] - b->y[0]);
}

static bool significant(const struct growth *g, double seconds, double noise)
{
	return g->interval.low > 0 && g->slope >= SLOPE_LEAST &&
	       g->slope * seconds >= fmax(GROWTH_LEAST, NOISE_TIMES * noise);
}

enum { TROUGHS_MAX = 256 };

/* Running medians of SMOOTHED windows, so that a passing allocation makes no trough; NULL without
 * memory. */
static double *smoothed(const double *y, size_t n)
{
	double *out = malloc(n * sizeof *out);
	for (size_t i = 0; out && i < n; i++) {
		const size_t first = i < SMOOTHED / 2 ? 0 : i - SMOOTHED / 2;
		const size_t last = first + SMOOTHED < n ? first + SMOOTHED : n;
		out[i] = statistics_median(y + first, last - first);
	}
	return out;
}

/* Memory that is given back: a leak only if the troughs rise. */
static struct growth growth_of_troughs(
	const double *t, const double *y, size_t n, double fall, uint64_t seed)
{
	struct growth g = {.shape = GROWTH_RETURNS, .interval = {0, 0}};
	size_t places[TROUGHS_MAX];
	double lt[TROUGHS_MAX];
	double ly[TROUGHS_MAX];
	const size_t count = find_troughs(y, n, fall, places, TROUGHS_MAX);
	if (count < TROUGHS_MIN)
		return g;
	for (size_t i = 0; i < count; i++) {
		lt[i] = t[places[i]];
		ly[i] = y[places[i]];
	}
	const struct blocks b = blocks_of(lt, ly, count, 1);
	g.slope = statistics_robust_slope(b.t, b.y, b.count);
	g.interval = slope_interval(&b, g.slope, seed);
	const double seconds = lt[count - 1] - lt[0];
	if (significant(&g, seconds, noise_of_blocks(&b)) &&
		g.slope * seconds >= TROUGHS_OF_FALL * fall)
		g.shape = GROWTH_ENDLESS;
	return g;
}

static struct growth growth_that_returns(
	const double *t, const double *bytes, size_t count, double fall, uint64_t seed)
{
	struct growth g = {.shape = GROWTH_RETURNS, .interval = {0, 0}};
	double *smooth = smoothed(bytes, count);
	if (smooth)
		g = growth_of_troughs(t, smooth, count, fall, seed);
	free(smooth);
	return g;
}

struct growth growth_of(const double *t, const double *bytes, size_t count, uint64_t seed)
{
	struct growth g = {.shape = GROWTH_TOO_SHORT, .slope = NAN, .interval = {NAN, NAN}};
	if (count < WINDOWS_MIN || t[count - 1] - t[0] < SECONDS_MIN)
		return g;
	const struct blocks b = blocks_of(t, bytes, count, BLOCK_WINDOWS_MIN);
	const double seconds = t[count - 1] - t[0];
	const double fall = largest_fall(&b);
	g.slope = statistics_robust_slope(b.t, b.y, b.count);
	if (fall > GROWTH_LEAST / 2 && fall > FALL_OF_GROWTH * fabs(g.slope) * seconds)
		return growth_that_returns(t, bytes, count, fall, seed);
	g.interval = slope_interval(&b, g.slope, seed);
	const double first = rise_of_third(bytes, count, 0);
	const double last = rise_of_third(bytes, count, THIRD - 1);
	const double usual = fmax(first, g.slope * seconds / THIRD);
	const bool grew = b.y[b.count - 1] - b.y[0] >= GROWTH_LEAST;
	if (is_one_jump(&b) || last < LAST_OF_FIRST * usual)
		g.shape = grew ? GROWTH_LEVELS_OFF : GROWTH_NONE;
	else
		g.shape = significant(&g, seconds, noise_of_blocks(&b)) ? GROWTH_ENDLESS
									: GROWTH_NONE;
	return g;
}

/* --- the memory of a point -------------------------------------------------------------------- */

static const double STAGE_SHARE = 0.30;  /* of the growth, for a stage to be named */
static const double ARENAS_SHARE = 0.70; /* of the growth, free inside the arenas */

enum { REPEATS_MAX = 64 };

/* One quantity over the windows after the warm-up. */
struct memory_series {
	double *t, *value; /* (count), one block; owned */
	size_t count;
};

typedef double of_window(const struct window *w, size_t stage);

static double anonymous(const struct window *w, size_t stage)
{
	(void)stage;
	return w->resident_bytes > w->file_bytes ? (double)(w->resident_bytes - w->file_bytes) : 0;
}

static double allocated(const struct window *w, size_t stage)
{
	return (double)w->stage_allocated[stage];
}

static double heap_free(const struct window *w, size_t stage)
{
	(void)stage;
	return w->heap_free_bytes;
}

static struct memory_series memory_series_of(
	const struct measurement *m, of_window *value, size_t stage)
{
	struct memory_series s = {.t = calloc(2 * m->window_count + 2, sizeof(double))};
	if (!s.t)
		return s;
	s.value = s.t + m->window_count + 1;
	for (size_t i = 0; i < m->window_count; i++) {
		const struct window *w = &m->windows[i];
		const double v = value(w, stage);
		if (w->t < m->cut_seconds || w->resident_bytes == 0 || !isfinite(v))
			continue;
		s.t[s.count] = w->t;
		s.value[s.count++] = v;
	}
	return s;
}

static double memory_slope(const struct measurement *m, of_window *value, size_t stage)
{
	struct memory_series s = memory_series_of(m, value, stage);
	const double slope = statistics_robust_slope(s.t, s.value, s.count);
	free(s.t);
	return slope;
}

static struct growth growth_of_repeat(const struct measurement *m, uint64_t seed)
{
	struct memory_series s = memory_series_of(m, anonymous, 0);
	const struct growth g = growth_of(s.t, s.value, s.count, seed);
	free(s.t);
	return g;
}

/* What the repetitions say together. */
struct tally {
	size_t shapes[GROWTH_ENDLESS + 1], told;
	double slopes[REPEATS_MAX], lows[REPEATS_MAX], highs[REPEATS_MAX];
	const struct measurement *example; /* the last one that shows what the majority does */
};

static enum growth_shape majority(const struct tally *tally)
{
	if (2 * tally->shapes[GROWTH_ENDLESS] > tally->told)
		return GROWTH_ENDLESS;
	if (tally->told == 0)
		return GROWTH_TOO_SHORT;
	enum growth_shape most = GROWTH_NONE;
	for (int shape = GROWTH_NONE; shape < GROWTH_ENDLESS; shape++)
		if (tally->shapes[shape] > tally->shapes[most])
			most = (enum growth_shape)shape;
	return most;
}

static struct tally tally_repeats(
	const struct measurement *const *repeats, size_t count, uint64_t seed)
{
	struct tally tally = {0};
	for (size_t i = 0; i < count && tally.told < REPEATS_MAX; i++) {
		const struct growth g = growth_of_repeat(repeats[i], seed + i);
		tally.shapes[g.shape]++;
		if (g.shape == GROWTH_TOO_SHORT)
			continue;
		tally.slopes[tally.told] = g.slope;
		tally.lows[tally.told] = g.interval.low;
		tally.highs[tally.told++] = g.interval.high;
		if (g.shape == GROWTH_ENDLESS || !tally.example)
			tally.example = repeats[i];
	}
	return tally;
}

/* The stage whose own allocations make up most of the growth; "" when none does. */
static void name_stage(const struct measurement *m, struct memory_finding *out)
{
	double most = STAGE_SHARE * out->bytes_per_s;
	for (size_t i = 0; i < m->stage_count; i++) {
		const double slope = memory_slope(m, allocated, i);
		if (!(slope > most))
			continue;
		most = slope;
		memcpy(out->stage, m->stages[i].name, sizeof out->stage);
	}
}

static double bytes_at_end(const struct measurement *m)
{
	return m->window_count > 0 ? anonymous(&m->windows[m->window_count - 1], 0) : NAN;
}

static void describe_leak(struct memory_finding *out)
{
	char rate[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	char left[UNITS_BYTES];
	char full[64] = "";
	if (isfinite(out->seconds_to_full))
		(void)snprintf(full, sizeof full, "; memory is full in %s",
			units_format_duration(out->seconds_to_full * (double)NS_PER_S, left));
	(void)snprintf(out->words, sizeof out->words,
		"memory grows by %s (90 %% CI %s to %s) after the warm-up and does not level "
		"off%s%s%s",
		units_format_rate(out->bytes_per_s, rate),
		units_format_rate(out->interval.low, low),
		units_format_rate(out->interval.high, high),
		out->stage[0] ? ": allocations of " : "", out->stage, full);
}

static void judge_endless(
	const struct measurement *m, const struct point_facts *facts, struct memory_finding *out)
{
	const double in_arenas = memory_slope(m, heap_free, 0);
	char rate[UNITS_BYTES];
	if (in_arenas >= ARENAS_SHARE * out->bytes_per_s) {
		(void)snprintf(out->words, sizeof out->words,
			"memory grows by %s, but most of it is free inside the allocator's arenas: "
			"fragmentation, not a leak",
			units_format_rate(out->bytes_per_s, rate));
		return;
	}
	out->leaks = true;
	name_stage(m, out);
	if (facts->memory_limit_bytes > 0)
		out->seconds_to_full =
			fmax(facts->memory_limit_bytes - bytes_at_end(m), 0) / out->bytes_per_s;
	else
		out->seconds_to_full = NAN;
	describe_leak(out);
}

void memory_find(const struct measurement *const *repeats, size_t count,
	const struct point_facts *facts, struct memory_finding *out)
{
	static const char *const words[] = {
		[GROWTH_TOO_SHORT] = "unknown: the run was too short, or memory was not sampled",
		[GROWTH_NONE] = "memory does not grow after the warm-up",
		[GROWTH_LEVELS_OFF] =
			"memory grows after the warm-up and levels off: pools and arenas fill up",
		[GROWTH_RETURNS] = "memory grows and is given back",
		[GROWTH_ENDLESS] = "",
	};
	*out = (struct memory_finding){
		.bytes_per_s = NAN, .interval = {NAN, NAN}, .seconds_to_full = NAN};
	const struct tally tally = tally_repeats(repeats, count, facts->seed);
	const enum growth_shape shape = majority(&tally);
	(void)snprintf(out->words, sizeof out->words, "%s", words[shape]);
	if (shape == GROWTH_TOO_SHORT)
		return;
	out->bytes_per_s = statistics_median(tally.slopes, tally.told);
	out->interval = (struct interval){statistics_median(tally.lows, tally.told),
		statistics_median(tally.highs, tally.told)};
	out->seconds_to_full = HUGE_VAL;
	if (shape == GROWTH_ENDLESS && tally.example)
		judge_endless(tally.example, facts, out);
}

enum { THOROUGH = FINDINGS_THOROUGH, KNEE_CORES = 4, KNEE_WORKERS_MAX = 256, LOOSE_EFFORT = 1 };

static const double PHASES_CONFIDENCE =
	0.8; /* of the costliest phase's, as the verdict of the run */

/* --- the model of what was measured ----------------------------------------------------------- */

struct replayed {
	struct model model;
	struct model_findings findings;
	double untailed; /* see evidence_base */
	bool open;
};

/* Too few samples for a prediction: a tail shows in them. */
static double replay_without_tail(const struct model_source *source)
{
	struct model_source few = *source;
	struct model model;
	struct error unused;
	double gain = 0;
	few.any_number = true;
	few.lack = NULL;
	if (model_open(&model, &few, &unused))
		return 0;
	if (findings_of_tail(&model, &gain, &unused))
		gain = 0;
	model_close(&model);
	return gain;
}

/* False, with the reason, when there is no replay of it. */
static bool replay_point(
	const struct diagnose_input *input, unsigned effort, struct replayed *out, char *why_not)
{
	struct error reason = {0};
	struct model_lack lack = {0};
	struct model_source with = input->source;
	const struct model_source *source = &with;
	with.lack = &lack;
	with.let_through = cause_let_through(input->facts);
	*out = (struct replayed){0};
	if (effort == 0) {
		(void)snprintf(why_not, EVIDENCE_BYTES, "no prediction: no replay was asked for");
		return false;
	}
	if (!source->traces || source->count == 0) {
		(void)snprintf(why_not, EVIDENCE_BYTES,
			"no prediction: no service times were recorded (measure.profiler = off, or "
			"an older result); set measure.profiler=on");
		return false;
	}
	int code = model_open(&out->model, source, &reason);
	out->open = !code;
	if (!code)
		code = findings_of(&out->model, effort, &out->findings, &reason);
	if (!code)
		return true;
	const int used = snprintf(why_not, EVIDENCE_BYTES, "no prediction: %.200s", reason.text);
	if (lack.needed > 0) { /* too few items were recorded: how much longer is enough */
		const struct sufficiency s = {.samples = lack.recorded, .needed = lack.needed};
		char way_out[WAY_OUT_BYTES];
		(void)snprintf(why_not + used, EVIDENCE_BYTES - (size_t)used, "; %s",
			way_out_longer(&s, input->facts, input->source.repeats, input->source.count,
				way_out));
	}
	if (out->open)
		model_close(&out->model);
	*out = (struct replayed){.untailed = lack.needed > 0 ? replay_without_tail(source) : 0};
	return false;
}

static void replayed_close(struct replayed *replayed)
{
	if (replayed->open)
		model_close(&replayed->model);
	*replayed = (struct replayed){0};
}

/* --- the verdict of the whole ----------------------------------------------------------------- */

static void say_too_short(
	const struct diagnose_input *input, const struct sufficiency *s, struct diagnosis *out)
{
	char way_out[WAY_OUT_BYTES];
	char reason[EVIDENCE_BYTES - 16];
	out->samples_needed = s->needed;
	(void)snprintf(reason, sizeof reason, "%llu samples, %llu needed",
		(unsigned long long)s->samples, (unsigned long long)s->needed);
	verdict_abstain(&out->verdict, reason,
		way_out_longer(
			s, input->facts, input->source.repeats, input->source.count, way_out));
	if (!isnan(s->width))
		evidence_add(&out->verdict,
			"the throughput is known to +/- %.0f %%; a verdict needs +/- 20 %%",
			s->width * 100);
}

static void add_completeness(const struct model_findings *findings, struct verdict *verdict)
{
	static const double worth_saying = 0.10;
	const double unmodelled = findings->elasticities.unmodelled;
	if (fabs(unmodelled) < worth_saying)
		return;
	evidence_add(verdict,
		unmodelled > 0
			? "%.0f %% of batch time is unexplained: something that the model does not "
			  "know limits the throughput"
			: "the model is %.0f %% slower than what was measured: its costs are too "
			  "high, or overlap in reality",
		fabs(unmodelled) * 100);
}

/* --- phases ----------------------------------------------------------------------------------- */

static void judge_part(const struct diagnose_input *input, const struct measurement *const *repeats,
	const struct traces *const *traces, size_t count, unsigned effort, struct verdict *verdict)
{
	struct diagnose_input part_input = *input;
	struct model_source *source = &part_input.source;
	struct point_summary *summary = calloc(1, sizeof *summary);
	struct replayed replayed = {0};
	char why_not[EVIDENCE_BYTES];
	source->repeats = repeats;
	source->traces = traces;
	source->count = count;
	if (summary && summary_of_point(repeats, count, input->facts, summary, NULL) == 0) {
		const struct point_facts facts = point_facts_measured(summary, input->facts);
		const bool has =
			replay_point(&part_input, effort ? LOOSE_EFFORT : 0, &replayed, why_not);
		const struct evidence_base base = {.point = summary,
			.repeats = repeats,
			.count = count,
			.facts = &facts,
			.source = traces ? source : NULL,
			.findings = has ? &replayed.findings : NULL,
			.untailed = replayed.untailed};
		verdict_judge_trusted(&base, verdict);
		replayed_close(&replayed);
		point_summary_release(summary);
	}
	free(summary);
}

static void judge_phase(const struct diagnose_input *input, const struct phase_cut *cut, size_t i,
	unsigned effort, struct phase *phase, struct verdict *verdict)
{
	const struct measurement *m = input->source.repeats[cut->repeat];
	const struct traces *traces =
		input->source.traces ? input->source.traces[cut->repeat] : NULL;
	struct measurement *slice = calloc(1, sizeof *slice);
	struct traces *part = calloc(1, sizeof *part);
	const bool on = cut->after > 0 && i + 1 == cut->count;
	*phase = (struct phase){.begin_s = cut->edges[i],
		.end_s = cut->edges[i + 1],
		.first_repetition = m->repeat,
		.last_repetition = m->repeat};
	if (on)
		phase->last_repetition = input->source.repeats[cut->repeat + cut->after]->repeat;
	verdict_abstain(
		verdict, "out of memory", "free some memory, and diagnose the result again");
	if (slice && part) {
		phase_slice(m, traces, phase->begin_s, phase->end_s, slice);
		if (traces)
			phase_slice_traces(traces, phase->begin_s, phase->end_s, part);
		phase->throughput = slice->throughput;
		const struct measurement *one = slice;
		const struct traces *one_traces = part;
		if (on)
			/* Of a lasting change, whole repetitions like the last phase say more: the
			 * other depths of their warm-ups and their first files belong to it. */
			judge_part(input, input->source.repeats + cut->repeat + 1,
				input->source.traces ? input->source.traces + cut->repeat + 1
						     : NULL,
				cut->after, effort, verdict);
		else
			judge_part(input, &one, traces ? &one_traces : NULL, 1, effort, verdict);
	}
	memcpy(phase->stage, verdict->stage, sizeof phase->stage);
	memcpy(phase->resource, verdict->resource, sizeof phase->resource);
	phase->confidence = verdict->confidence;
	free(part);
	free(slice);
}

/* The same bottleneck at nearly the same throughput, or only for a moment. */
static bool are_alike(const struct phase *a, const struct phase *b, double run_s)
{
	static const double moment = 0.12; /* of the run */
	if (strcmp(a->stage, b->stage) != 0 || strcmp(a->resource, b->resource) != 0)
		return false;
	return phases_rates_alike(a->throughput, b->throughput) ||
	       fmin(a->end_s - a->begin_s, b->end_s - b->begin_s) < moment * run_s;
}

/* Merges two consecutive phases: the throughput is samples over time. */
static void join_phases(struct phase *into, const struct phase *next)
{
	const double first = into->end_s - into->begin_s;
	const double second = next->end_s - next->begin_s;
	into->throughput =
		(into->throughput * first + next->throughput * second) / (first + second);
	into->end_s = next->end_s;
	into->last_repetition = next->last_repetition;
	into->confidence = fmin(into->confidence, next->confidence);
}

static void join_alike(struct diagnosis *out, struct verdict *verdicts)
{
	const double run_s = out->phases[out->phase_count - 1].end_s - out->phases[0].begin_s;
	size_t kept = 0;
	for (size_t i = 1; i < out->phase_count; i++) {
		if (are_alike(&out->phases[kept], &out->phases[i], run_s)) {
			join_phases(&out->phases[kept], &out->phases[i]);
			continue;
		}
		out->phases[++kept] = out->phases[i];
		verdicts[kept] = verdicts[i];
	}
	out->phase_count = kept + 1;
}

/* The phase that loses the most samples against the fastest. */
static size_t costliest_phase(const struct diagnosis *out)
{
	double fastest = 0;
	double most = -1;
	size_t worst = 0;
	for (size_t i = 0; i < out->phase_count; i++)
		fastest = fmax(fastest, out->phases[i].throughput);
	for (size_t i = 0; i < out->phase_count; i++) {
		const struct phase *p = &out->phases[i];
		const double lost = (fastest - p->throughput) * (p->end_s - p->begin_s);
		if (lost > most) {
			most = lost;
			worst = i;
		}
	}
	return worst;
}

/* Makes room in front of what it says. */
static char *evidence_first(struct verdict *v)
{
	const size_t kept = v->evidence_count < EVIDENCE_MAX ? v->evidence_count : EVIDENCE_MAX - 1;
	memmove(v->evidence[1], v->evidence[0], kept * sizeof v->evidence[0]);
	v->evidence_count = kept + 1;
	return v->evidence[0];
}

/* Put first, because everything after it is about that part only and its figures are not the
 * run's. */
static void say_which_phase(
	struct diagnosis *out, const struct phase *p, const char *which, size_t after)
{
	struct verdict *v = &out->verdict;
	char rate[UNITS_BYTES];
	char like[80] = "";
	if (after > 0)
		(void)snprintf(like, sizeof like, ", and %zu repetition%s after it that %s like it",
			after, after == 1 ? "" : "s", after == 1 ? "is" : "are");
	(void)snprintf(evidence_first(v), EVIDENCE_BYTES,
		"The bottleneck changes during the run (%zu parts); what follows covers %.2f to %.2f "
		"s (%s samples/s), the part %s%s.",
		out->phase_count, p->begin_s, p->end_s, units_format_count(p->throughput, rate),
		which, like);
}

static void say_quota_changes(
	struct verdict *verdict, const struct measurement *m, const struct phase_cut *cut)
{
	for (size_t edge = cut->known ? cut->count - 1 : 0; edge > 0; edge--) {
		size_t i = 1;
		while (i + 1 < m->window_count && m->windows[i - 1].t < cut->edges[edge])
			i++;
		(void)snprintf(evidence_first(verdict), EVIDENCE_BYTES,
			"The CPU quota changed from %s to %s cores %.2f s after the start.",
			m->windows[i - 1].quota_cores > 0
				? UNITS_PLAIN(m->windows[i - 1].quota_cores, 3)
				: "unlimited",
			m->windows[i].quota_cores > 0 ? UNITS_PLAIN(m->windows[i].quota_cores, 3)
						      : "unlimited",
			cut->edges[edge]);
	}
}

static void add_phases(struct diagnosis *out, const struct measurement *m,
	const struct phase_cut *cut, const struct verdict *verdicts)
{
	/* A quota that is no longer in force is nobody's to raise. */
	const bool lasts = cut->known && cut->after > 0;
	const size_t worst = lasts ? out->phase_count - 1 : costliest_phase(out);
	const bool is_last = worst + 1 == out->phase_count;
	out->phases[worst].judged = true;
	out->verdict = verdicts[worst];
	out->verdict.confidence *= PHASES_CONFIDENCE;
	say_quota_changes(&out->verdict, m, cut);
	say_which_phase(out, &out->phases[worst], lasts ? "that lasts" : "that costs most",
		is_last ? cut->after : 0);
}

static void judge_phases(const struct diagnose_input *input, const struct phase_cut *cut,
	unsigned effort, struct diagnosis *out)
{
	struct verdict verdicts[PHASES_MAX];
	for (size_t i = 0; i < cut->count; i++)
		judge_phase(input, cut, i, effort, &out->phases[i], &verdicts[i]);
	out->phase_count = cut->count;
	join_alike(out, verdicts);
	if (out->phase_count > 1)
		add_phases(out, input->source.repeats[cut->repeat], cut, verdicts);
}

static void whole_is_one_phase(const struct diagnose_input *input, struct diagnosis *out)
{
	const struct measurement *m = input->source.count > 0 ? input->source.repeats[0] : NULL;
	struct phase *phase = &out->phases[0];
	out->phase_count = 1;
	*phase = (struct phase){.begin_s = m ? m->cut_seconds : 0,
		.end_s = m ? m->cut_seconds + m->measured_seconds : 0,
		.throughput = input->point->median,
		.confidence = out->verdict.confidence,
		.first_repetition = m ? m->repeat : 0,
		.last_repetition = m ? m->repeat : 0,
		.judged = true};
	memcpy(phase->stage, out->verdict.stage, sizeof phase->stage);
	memcpy(phase->resource, out->verdict.resource, sizeof phase->resource);
}

/* --- what follows from the model -------------------------------------------------------------- */

static unsigned knee_workers(const struct diagnose_input *input)
{
	const unsigned most = KNEE_CORES * (input->facts->cores > 0 ? input->facts->cores : 1);
	const unsigned now = 2 * input->facts->decode_workers;
	const unsigned wanted = most > now ? most : now;
	return wanted < KNEE_WORKERS_MAX ? wanted : KNEE_WORKERS_MAX;
}

/* Nothing to change, but the step is not at its full rate either: the verdict's own advice says
 * why. */
static bool is_late(const struct diagnose_input *input, const struct diagnosis *found)
{
	const struct evidence_base base = {.point = input->point,
		.repeats = input->source.repeats,
		.count = input->source.count,
		.facts = input->facts,
		.source = input->source.traces ? &input->source : NULL};
	return found->recommendation_count == 0 && stage_is(found->verdict.stage, STAGE_STEP) &&
	       strcmp(found->verdict.resource, "compute") == 0 && step_is_late(&base);
}

/* Reads are slow, and at no other depth were they seen: the model has nothing to say of more files in flight, so that "no
 * setting helps" would be no prediction. */
static bool is_depth_untold(const struct model *model, const struct diagnosis *found)
{
	static const double LEAST = 0.35, MOST = 0.65;
	return found->recommendation_count == 0 && stage_is(found->verdict.stage, STAGE_READ) &&
	       strcmp(found->verdict.resource, "latency") == 0 && model->read_full >= LEAST &&
	       model->read_full <= MOST;
}

static int follow_model(const struct diagnose_input *input, const struct model *model,
	unsigned effort, struct diagnosis *out, struct error *err)
{
	const struct recommend_start start = {.model = model,
		.config = input->source.config,
		.stage = out->verdict.stage,
		.resource = out->verdict.resource,
		.cores = input->facts->cores,
		.effort = effort,
		.tried = input->tried};
	const struct point_facts measured = point_facts_measured(input->point, input->facts);
	int code = recommend(&start, out, err);
	if (!code && effort >= THOROUGH)
		code = model_ladder(model, &out->ladder, err);
	if (!code && effort >= THOROUGH)
		code = model_knee(model, knee_workers(input), &out->knee, err);
	if (!code && is_depth_untold(model, out))
		advice_try_depths(&measured, out->verdict.advice, sizeof out->verdict.advice);
	else if (!code && !is_late(input, out))
		recommend_advise(out, input->point, &measured, out->verdict.advice,
			sizeof out->verdict.advice);
	return code;
}

/* A model that cannot be followed further is reported; the diagnosis does not fail. */
static void use_model(const struct diagnose_input *input, const struct replayed *replayed,
	unsigned effort, struct diagnosis *out)
{
	struct error reason = {0};
	out->modelled = true;
	out->replayed = replayed->findings.replayed;
	out->elasticities = replayed->findings.elasticities;
	out->handover_share = model_handover_share(&replayed->model);
	add_completeness(&replayed->findings, &out->verdict);
	if (strcmp(out->verdict.stage, "none") == 0)
		return;
	if (follow_model(input, &replayed->model, effort, out, &reason))
		(void)snprintf(
			out->why_not, sizeof out->why_not, "no prediction: %.200s", reason.text);
}

/* Figures and the model come from `input`, the verdict from `judged`, the phases from `parts`. */
static void judge_whole(const struct diagnose_input *input, const struct diagnose_input *judged,
	const struct diagnose_input *parts, const struct phase_cut *cut, unsigned effort,
	struct diagnosis *out)
{
	struct replayed replayed;
	const struct point_facts facts = point_facts_measured(input->point, input->facts);
	const bool has = replay_point(input, effort, &replayed, out->why_not);
	const struct evidence_base base = {.point = input->point,
		.repeats = judged->source.repeats,
		.count = judged->source.count,
		.facts = &facts,
		.source = judged->source.traces ? &judged->source : NULL,
		.findings = has ? &replayed.findings : NULL,
		.untailed = replayed.untailed};
	verdict_judge(&base, &out->verdict);
	/* A limit that comes and goes is one limit, not several phases. */
	const bool stalls = strcmp(out->verdict.resource, "stalls") == 0 ||
			    strcmp(out->verdict.resource, "outage") == 0 ||
			    strcmp(out->verdict.resource, "tail") == 0;
	if (cut->count > 1 && !stalls)
		judge_phases(parts, cut, effort, out);
	if (out->phase_count <= 1)
		whole_is_one_phase(input, out);
	if (has)
		use_model(input, &replayed, effort, out);
	replayed_close(&replayed);
}

/* A prediction that failed when it was tried lowers the confidence as a failed experiment does. */
static void weigh_failures(const struct tried *tried, struct diagnosis *out)
{
	const size_t failed = tried_failed(tried);
	const double before = out->verdict.confidence;
	if (failed == 0 || strcmp(out->verdict.stage, "none") == 0)
		return;
	for (size_t i = 0; i < failed; i++)
		out->verdict.confidence =
			confidence_failed(out->verdict.confidence, CONFIDENCE_ODDS_OWN);
	out->phases[0].confidence =
		out->phase_count == 1 ? out->verdict.confidence : out->phases[0].confidence;
	evidence_add(&out->verdict,
		"%zu of its predictions did not come true when tried: the confidence falls from "
		"%.2f to %.2f",
		failed, before, out->verdict.confidence);
}

static struct evidence_base base_of(const struct diagnose_input *input)
{
	return (struct evidence_base){.point = input->point,
		.repeats = input->source.repeats,
		.count = input->source.count,
		.facts = input->facts,
		.source = input->source.traces ? &input->source : NULL};
}

static void take_all(struct diagnose_input *input)
{
	struct model_source *source = &input->source;
	source->repeats = input->all;
	source->traces = input->all_traces;
	source->count = input->all_count;
}

/* A store that did not answer makes a repetition unsteady. If that repetition were left out, nobody
 * would hear of it. */
static bool take_stalled(struct diagnose_input *input)
{
	struct diagnose_input with = *input;
	if (input->all_count <= input->source.count)
		return false;
	take_all(&with);
	const struct evidence_base steady = base_of(input);
	const struct evidence_base all = base_of(&with);
	if (stalls_bind(&steady) || !stalls_bind(&all))
		return false;
	*input = with;
	return true;
}

/* Cuts the repetitions into parts; if an unsteady one of `all` has a change that lasted, or whose reason is
 * known, parts->source becomes all of them. */
static void cut_in_parts(struct diagnose_input *parts, struct phase_cut *cut)
{
	struct model_source *source = &parts->source;
	phases_cut(source->repeats, source->count, cut);
	if (cut->known || parts->all_count <= source->count)
		return;
	struct phase_cut all;
	phases_cut(parts->all, parts->all_count, &all);
	if (!all.known && (cut->count > 1 || all.after == 0))
		return;
	*cut = all;
	take_all(parts);
}

static void diagnose_state(
	const struct diagnose_input *input, unsigned effort, struct diagnosis *out)
{
	*out = (struct diagnosis){.replayed = NAN, .verdict = input->point->verdict};
	struct diagnose_input judged = *input;
	const bool stalled = take_stalled(&judged);
	const struct model_source *source = &input->source;
	memory_find(source->repeats, source->count, input->facts, &out->memory);
	struct phase_cut cut;
	struct diagnose_input parts = *input;
	cut_in_parts(&parts, &cut);
	const struct sufficiency enough = sufficiency_of(source->repeats, source->count);
	const struct evidence_base judged_base = base_of(&judged);
	out->width = enough.width;
	/* Stalls, a cache that holds a part and a tail are the finding, and why the rates are uneven. */
	if (source->count > 0 && enough.needed > 0 && cut.count == 1 &&
		!stalls_bind(&judged_base) && !cache_binds(&judged_base) &&
		!tail_binds(&judged_base, false)) {
		say_too_short(input, &enough, out);
		(void)snprintf(out->why_not, sizeof out->why_not,
			"no prediction: too little was measured");
		whole_is_one_phase(input, out);
		return;
	}
	judge_whole(input, &judged, &parts, &cut, effort, out);
	if (stalled)
		evidence_add(&out->verdict,
			"the stall was in a repetition that the figures leave out as unsteady");
	weigh_failures(input->tried, out);
	if (stage_is(out->verdict.stage, STAGE_READ) && out->recommendation_count == 0) {
		struct storage storage;
		const struct point_facts facts = point_facts_measured(input->point, input->facts);
		model_storage(&input->source, source->repeats, source->count,
			cause_let_through(&facts), &storage);
		recommend_qualify(
			&storage, &facts, out->verdict.advice, sizeof out->verdict.advice);
	}
}

/* --- regimes ---------------------------------------------------------------------------------- */

/* All repetitions that count by their status, in their order. */
struct counted {
	const struct measurement **repeats; /* owned, as is the next */
	const struct traces **traces;       /* NULL: there are none */
	size_t count;
	struct regimes regimes;
};

static void counted_close(struct counted *counted)
{
	free(counted->repeats);
	free(counted->traces);
}

static int counted_open(const struct diagnose_input *input, struct counted *out)
{
	const bool wide = input->all_count > 0;
	const size_t count = wide ? input->all_count : input->source.count;
	const struct measurement *const *repeats = wide ? input->all : input->source.repeats;
	const struct traces *const *traces = !input->source.traces ? NULL
					     : wide                ? input->all_traces
								   : input->source.traces;
	size_t with_status[MEASUREMENT_STATUSES] = {0};
	*out = (struct counted){.repeats = calloc(count + 1, sizeof(const struct measurement *)),
		.traces = traces ? calloc(count + 1, sizeof(const struct traces *)) : NULL};
	if (!out->repeats || (traces && !out->traces)) {
		counted_close(out);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		with_status[repeats[i]->status]++;
	for (size_t i = 0; i < count; i++)
		if (!wide || point_counts(point_status_of(with_status), repeats[i]->status)) {
			out->repeats[out->count] = repeats[i];
			if (traces)
				out->traces[out->count] = traces[i];
			out->count++;
		}
	regimes_find(out->repeats, out->count, &out->regimes);
	return 0;
}

/* What was measured of a state that lasts; borrows from `lasting`, which has room for as many. */
static struct diagnose_input lasting_input(
	const struct diagnose_input *input, const struct counted *counted, struct counted *lasting)
{
	struct diagnose_input out = *input;
	lasting->count = 0;
	for (size_t i = 0; i < counted->count; i++)
		if (regimes_last(&counted->regimes, i)) {
			lasting->repeats[lasting->count] = counted->repeats[i];
			if (counted->traces)
				lasting->traces[lasting->count] = counted->traces[i];
			lasting->count++;
		}
	out.source.repeats = lasting->repeats;
	out.source.traces = counted->traces ? lasting->traces : NULL;
	out.source.count = lasting->count;
	out.all = NULL;
	out.all_traces = NULL;
	out.all_count = 0;
	return out;
}

/* Seconds from the beginning of the first repetition to that of another one; older results know only how long each took. */
static double repetition_begins(const struct measurement *const *repeats, size_t i)
{
	double sum = 0;
	if (repeats[0]->started > 0 && repeats[i]->started >= repeats[0]->started)
		return repeats[i]->started - repeats[0]->started;
	for (size_t k = 0; k < i; k++)
		sum += fmax(repeats[k]->wall_seconds,
			repeats[k]->cut_seconds + repeats[k]->measured_seconds);
	return sum;
}

/* A repetition between two regimes that is left out as unsteady may show when it changed; false: none does. */
static bool change_between(const struct diagnose_input *input, const struct measurement *before,
	const struct measurement *after, double rate, double rate_after, double *begin_s)
{
	bool between = false;
	for (size_t i = 0; i < input->all_count && input->all[i] != after; i++) {
		const struct measurement *m = input->all[i];
		struct phase_cut cut;
		between |= i > 0 && input->all[i - 1] == before;
		if (!between)
			continue;
		phases_cut(&m, 1, &cut);
		const double edge = cut.edges[1];
		const double at = rate_samples_at(m, edge);
		if (cut.count == 2 &&
			phases_rates_alike(
				(at - rate_samples_at(m, cut.edges[0])) / (edge - cut.edges[0]),
				rate) &&
			phases_rates_alike(
				(rate_samples_at(m, cut.edges[2]) - at) / (cut.edges[2] - edge),
				rate_after)) {
			*begin_s = m->started - before->started + edge;
			return before->started > 0 && m->started >= before->started;
		}
	}
	return false;
}

/* A state that did not last, by its whole repetitions or, if it has none, by the part of one. */
static void judge_regime(const struct diagnose_input *input, const struct counted *counted,
	const struct regime *regime, unsigned effort, struct phase *phase)
{
	struct verdict verdict;
	struct measurement *slice = calloc(1, sizeof *slice);
	struct traces part;
	const struct measurement *one = slice;
	const struct traces *one_traces = &part;
	verdict_abstain(
		&verdict, "out of memory", "free some memory, and diagnose the result again");
	if (regime->whole < regime->whole_end)
		judge_part(input, counted->repeats + regime->whole,
			counted->traces ? counted->traces + regime->whole : NULL,
			regime->whole_end - regime->whole, effort, &verdict);
	else if (slice) {
		const struct traces *traces =
			counted->traces ? counted->traces[regime->first] : NULL;
		phase_slice(counted->repeats[regime->first], traces, regime->begin_s, regime->end_s,
			slice);
		if (traces)
			phase_slice_traces(traces, regime->begin_s, regime->end_s, &part);
		judge_part(input, &one, traces ? &one_traces : NULL, 1, effort, &verdict);
	}
	free(slice);
	memcpy(phase->stage, verdict.stage, sizeof phase->stage);
	memcpy(phase->resource, verdict.resource, sizeof phase->resource);
	phase->confidence = verdict.confidence;
}

/* "read, latency-bound" */
static const char *phase_bound(const struct phase *phase, char out[NAME_BYTES + BOUND_BYTES])
{
	char bound[BOUND_BYTES];
	const bool none = !phase->stage[0] || strcmp(phase->stage, "none") == 0;
	(void)snprintf(out, NAME_BYTES + BOUND_BYTES, "%s%s%s", none ? "unknown" : phase->stage,
		none ? "" : ", ",
		none ? "" : limit_kind_bound(phase->stage, phase->resource, bound));
	return out;
}

/* Where one phase ends and another begins: "in repetition 2, 4.21 s after the start" */
enum { CHANGE_PLACE_BYTES = 80 };
static const char *change_place(
	const struct phase *before, const struct phase *after, char out[CHANGE_PLACE_BYTES])
{
	const uint32_t last = before->last_repetition;
	const uint32_t next = after->first_repetition;
	if (last == next)
		(void)snprintf(out, CHANGE_PLACE_BYTES, "in repetition %u, %.2f s after the start",
			next, after->begin_s);
	else if (after->begin_s > before->end_s)
		(void)snprintf(out, CHANGE_PLACE_BYTES,
			"between repetitions %u and %u, %.1f to %.1f s after the start", last, next,
			before->end_s, after->begin_s);
	else
		(void)snprintf(out, CHANGE_PLACE_BYTES,
			"between repetitions %u and %u, %.2f s after the start", last, next,
			after->begin_s);
	return out;
}

static const char *regime_words(const struct diagnosis *d, char out[EVIDENCE_BYTES])
{
	const struct phase *last = &d->phases[d->phase_count - 1];
	const struct phase *other = last - 1;
	char place[CHANGE_PLACE_BYTES];
	char bound[NAME_BYTES + BOUND_BYTES];
	char from[UNITS_BYTES];
	char to[UNITS_BYTES];
	(void)units_format_count(other->throughput, from);
	(void)units_format_count(last->throughput, to);
	(void)change_place(other, last, place);
	if (!last->judged)
		(void)snprintf(out, EVIDENCE_BYTES,
			"The throughput changed from %.12s to %.12s samples/s %.66s (then: %.56s): too late to know "
			"whether that lasts.",
			from, to, place, phase_bound(last, bound));
	else if (d->phase_count == 3 && d->phases[0].judged)
		(void)snprintf(out, EVIDENCE_BYTES,
			"The throughput was %.12s samples/s for a while (%.60s), from %.1f to %.1f s after the "
			"start, and came back to %.12s.",
			from, phase_bound(other, bound), other->begin_s, other->end_s, to);
	else
		(void)snprintf(out, EVIDENCE_BYTES,
			"The throughput changed%s from %.12s to %.12s samples/s %.64s (before: %.52s), and stayed "
			"there.",
			d->phase_count > 2 ? " more than once, at last" : "", from, to, place,
			phase_bound(other, bound));
	return out;
}

const char *diagnosis_change_words(const struct diagnosis *d, char out[EVIDENCE_BYTES])
{
	const struct phase *first = &d->phases[0];
	const struct phase *last = &d->phases[d->phase_count > 0 ? d->phase_count - 1 : 0];
	char before[NAME_BYTES + BOUND_BYTES];
	char after[NAME_BYTES + BOUND_BYTES];
	char from[UNITS_BYTES];
	char to[UNITS_BYTES];
	out[0] = '\0';
	if (d->phase_count < 2)
		return out;
	if (first->first_repetition != last->first_repetition)
		return regime_words(d, out);
	if (d->phase_count == 2)
		(void)snprintf(out, EVIDENCE_BYTES,
			"The bottleneck changes during a repetition: %.60s until %.2f s (%.12s samples/s), then "
			"%.60s (%.12s).",
			phase_bound(first, before), first->end_s,
			units_format_count(first->throughput, from), phase_bound(last, after),
			units_format_count(last->throughput, to));
	else
		(void)snprintf(out, EVIDENCE_BYTES,
			"The bottleneck changes %zu times during a repetition, the first time at %.2f s.",
			d->phase_count - 1, first->end_s);
	return out;
}

/* The regimes are the phases; the verdict is of the state that lasts. */
static void add_regimes(const struct diagnose_input *input, const struct counted *counted,
	unsigned effort, struct diagnosis *out)
{
	struct verdict *v = &out->verdict;
	char words[EVIDENCE_BYTES];
	out->phase_count = counted->regimes.count;
	for (size_t i = 0; i < out->phase_count; i++) {
		const struct regime *r = &counted->regimes.of[i];
		struct phase *phase = &out->phases[i];
		*phase = (struct phase){
			.begin_s = repetition_begins(counted->repeats, r->first) + r->begin_s,
			.end_s = repetition_begins(counted->repeats, r->last) + r->end_s,
			.throughput = r->rate,
			.confidence = v->confidence,
			.first_repetition = counted->repeats[r->first]->repeat,
			.last_repetition = counted->repeats[r->last]->repeat,
			.judged = r->lasts};
		memcpy(phase->stage, v->stage, sizeof phase->stage);
		memcpy(phase->resource, v->resource, sizeof phase->resource);
		if (!r->lasts)
			judge_regime(input, counted, r, effort, phase);
		double at = 0;
		if (i > 0 && change_between(input, counted->repeats[r[-1].last],
				     counted->repeats[r->first], r[-1].rate, r->rate, &at)) {
			at += repetition_begins(counted->repeats, r[-1].last);
			out->phases[i - 1].end_s = phase->begin_s = at;
		}
	}
	const size_t kept = v->evidence_count < EVIDENCE_MAX ? v->evidence_count : EVIDENCE_MAX - 1;
	memmove(v->evidence[1], v->evidence[0], kept * sizeof v->evidence[0]);
	(void)snprintf(v->evidence[0], sizeof v->evidence[0], "%s", regime_words(out, words));
	v->evidence_count = kept + 1;
}

/* --- when everything stood still -------------------------------------------------------------- */

/* Put first, because every stage seems to have been late then, and none was. */
static void say_standstill(const struct diagnose_input *input, struct verdict *v)
{
	const bool wide = input->all_count > 0;
	const size_t count = wide ? input->all_count : input->source.count;
	const struct measurement *const *repeats = wide ? input->all : input->source.repeats;
	const struct measurement *longest = NULL;
	double seconds = 0;
	size_t in = 0;
	for (size_t i = 0; i < count; i++) {
		const struct measurement *m = repeats[i];
		if (!(m->stood_still_seconds > 0))
			continue;
		seconds += m->stood_still_seconds;
		longest = !longest || m->stood_still_seconds > longest->stood_still_seconds
				  ? m
				  : longest;
		in++;
	}
	if (!longest)
		return;
	char time[UNITS_BYTES];
	char others[48] = "";
	if (in > 1)
		(void)snprintf(others, sizeof others, " (and in %zu more)", in - 1);
	const size_t kept = v->evidence_count < EVIDENCE_MAX ? v->evidence_count : EVIDENCE_MAX - 1;
	memmove(v->evidence[1], v->evidence[0], kept * sizeof v->evidence[0]);
	(void)snprintf(v->evidence[0], sizeof v->evidence[0],
		"Everything stood still at once for %s, %.1f s after the start of repetition %u%s: %s. That time is "
		"not counted.",
		units_format_duration(seconds * (double)NS_PER_S, time), longest->stood_still_at,
		longest->repeat, others,
		longest->machine_stood_still
			? "the machine did not run"
			: "mlbench was stopped (SIGSTOP, Ctrl-Z), or frozen with its container");
	v->evidence_count = kept + 1;
}

int diagnose_point(const struct diagnose_input *input, unsigned effort, struct diagnosis *out,
	struct error *err)
{
	struct counted counted;
	struct counted lasting;
	if (counted_open(input, &counted))
		return error_set(err, -ENOMEM, "out of memory for a diagnosis");
	if (counted.regimes.count == 1) {
		diagnose_state(input, effort, out);
		say_standstill(input, &out->verdict);
		counted_close(&counted);
		return 0;
	}
	const int code = counted_open(input, &lasting);
	if (!code) {
		const struct diagnose_input state = lasting_input(input, &counted, &lasting);
		diagnose_state(&state, effort, out);
		add_regimes(input, &counted, effort, out);
		say_standstill(input, &out->verdict);
		counted_close(&lasting);
	}
	counted_close(&counted);
	return code ? error_set(err, code, "out of memory for a diagnosis") : 0;
}
