/* The whole diagnosis on points made by the replay, whose limit is known: the pair, the recommendation and
 * what it predicts, abstention, phases, and points without service times. */
#include "harness/analyze/diagnose.h"
#include "harness/analyze/summary.h"
#include "harness/analyze/verdict.h"
#include "tests/unit/diagnose_fixture.h"

enum { THOROUGH = 16, SKETCH = 2 };

static void diagnose(struct made_point *p, unsigned effort, struct diagnosis *d)
{
	struct error err;
	assert_int_equal(diagnose_point(&p->input, effort, d, &err), 0);
	assert_non_null(limit_kind_find(d->verdict.stage, d->verdict.resource));
	assert_true(d->verdict.confidence >= 0 && d->verdict.confidence <= 1);
}

static void expect_pair(const struct diagnosis *d, const char *stage, const char *resource)
{
	if (strcmp(d->verdict.stage, stage) != 0 || strcmp(d->verdict.resource, resource) != 0)
		fail_msg("got %s/%s (%s), expected %s/%s", d->verdict.stage, d->verdict.resource,
			d->verdict.evidence_count > 1 ? d->verdict.evidence[1] : "", stage,
			resource);
}

static bool says(const struct diagnosis *d, const char *text)
{
	for (size_t i = 0; i < d->verdict.evidence_count; i++)
		if (strstr(d->verdict.evidence[i], text))
			return true;
	return strstr(d->verdict.advice, text) != NULL;
}

static const struct made_plan decode_bound = {
	.set = {"decode.workers=2", "batch.size=8", "prefetch.depth=4", "step.time=4ms"},
	.ns = {[COST_READ_CPU] = 20 * 1e3,
		[COST_DECODE_CPU] = 4 * 1e6,
		[COST_STEP_DEVICE] = 4 * 1e6},
	.variation = 0.3,
	.cores = 8};

static void workers_are_recommended_as_far_as_they_gain(void **state)
{
	(void)state;
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &decode_bound);
	diagnose(&p, THOROUGH, &d);
	expect_pair(&d, "decode", "cpu");
	assert_true(d.modelled && d.why_not[0] == '\0');
	assert_true(d.verdict.confidence >= 0.9);
	assert_true(fabs(d.replayed / p.summary.median - 1) < 0.03);
	assert_true(fabs(d.elasticities.sum - 1) < 0.05);
	/* 500 samples/s of two; the step takes 2000. */
	assert_true(d.recommendation_count >= 1);
	const struct recommendation *best = &d.recommendations[0];
	assert_int_equal(best->setting_count, 1);
	assert_string_equal(best->settings[0], "decode.workers=8");
	assert_true(best->predicted > 1700 && best->predicted <= 2050);
	assert_true(best->interval.low < best->predicted && best->predicted < best->interval.high);
	assert_true(says(&d, "set decode.workers=8: predicted "));
	assert_true(d.ladder.count >= 2);
	assert_string_equal(d.ladder.rungs[0].stage, "decode");
	assert_string_equal(d.ladder.rungs[1].stage, "step");
	assert_true(d.knee.workers >= 6 && d.knee.workers <= 10);
	assert_int_equal(d.phase_count, 1);
	assert_false(d.memory.leaks);
	made_close(&p);
}

static void a_chain_of_settings_goes_on_to_the_next_limit(void **state)
{
	(void)state;
	static const struct made_plan plan = {
		.set = {"decode.workers=2", "batch.size=8", "prefetch.depth=4", "read.depth=1",
			"step.time=1ms"},
		.ns = {[COST_READ_CPU] = 10 * 1e3,
			[COST_READ_LATENCY] = 1.2 * 1e6,
			[COST_DECODE_WAIT] = 2 * 1e6,
			[COST_STEP_DEVICE] = 1e6},
		.variation = 0.1,
		.reads_twice = true,
		.cores = 4};
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &plan);
	diagnose(&p, THOROUGH, &d);
	expect_pair(&d, "read", "latency");
	assert_true(d.recommendation_count >= 2);
	const struct recommendation *best = &d.recommendations[0];
	assert_true(best->setting_count >= 2);
	bool workers = false;
	bool depth = false;
	for (size_t i = 0; i < best->setting_count; i++) {
		workers = workers || strncmp(best->settings[i], "decode.workers=", 15) == 0;
		depth = depth || strncmp(best->settings[i], "read.depth=", 11) == 0;
	}
	assert_true(workers && depth);
	for (size_t i = 1; i < d.recommendation_count; i++)
		assert_true(d.recommendations[i - 1].predicted >= d.recommendations[i].predicted);
	made_close(&p);
}

/* Workers that read 4 ms and decode 1 ms: more of them, whatever they take at once; never a depth of reads. */
static void workers_that_read_want_more_of_them(void **state)
{
	(void)state;
	static const char *const shares[] = {"decode.share=samples", "decode.share=batches"};
	for (int i = 0; i < 2; i++) {
		const struct made_plan plan = {
			.set = {"read.by=workers", shares[i], "decode.workers=2", "batch.size=8",
				"prefetch.depth=8", "step.time=1ms"},
			.ns = {[COST_READ_CPU] = 20 * 1e3,
				[COST_READ_LATENCY] = 4 * 1e6,
				[COST_DECODE_CPU] = 1e6,
				[COST_STEP_DEVICE] = 1e6},
			.variation = 0.1,
			.reads_twice = true,
			.cores = 8};
		struct made_point p;
		struct diagnosis d;
		made_open(&p, &plan);
		assert_true(fabs(p.summary.median * 5.02e-3 / 2 - 1) < 0.03);
		diagnose(&p, THOROUGH, &d);
		expect_pair(&d, "read", "latency");
		if (d.verdict.confidence < 0.7)
			fail_msg("confidence %g", d.verdict.confidence);
		assert_true(fabs(d.replayed / p.summary.median - 1) < 0.03);
		assert_true(fabs(d.elasticities.sum - 1) < 0.05);
		assert_true(says(&d, "Each worker reads a file in 4.0"));
		assert_true(d.recommendation_count >= 1);
		assert_int_equal(
			strncmp(d.recommendations[0].settings[0], "decode.workers=", 15), 0);
		for (size_t k = 0; k < d.recommendations[0].setting_count; k++)
			assert_null(strstr(d.recommendations[0].settings[k], "read."));
		made_close(&p);
	}
}

static void workers_that_mostly_decode_are_bound_by_that(void **state)
{
	(void)state;
	static const struct made_plan plan = {
		.set = {"read.by=workers", "decode.share=batches", "decode.workers=2",
			"batch.size=8", "prefetch.depth=4", "step.time=1ms"},
		.ns = {[COST_READ_CPU] = 40 * 1e3,
			[COST_READ_LATENCY] = 0.5 * 1e6,
			[COST_DECODE_CPU] = 4 * 1e6,
			[COST_STEP_DEVICE] = 1e6},
		.variation = 0.3,
		.cores = 8};
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &plan);
	diagnose(&p, THOROUGH, &d);
	expect_pair(&d, "decode", "cpu");
	assert_true(d.verdict.confidence >= 0.8);
	assert_true(says(&d, "set decode.workers="));
	made_close(&p);
}

/* In turns with the step: what takes longer is the limit; where that is the step, it is that nothing is loaded meanwhile. */
static void turns_are_told(void **state)
{
	(void)state;
	static const char *const step_times[] = {"step.time=4ms", "step.time=24ms"};
	static const double step_ns[] = {4e6, 24e6};
	for (int i = 0; i < 2; i++) {
		const struct made_plan plan = {
			.set = {"read.by=workers", "decode.share=batches", "decode.workers=1",
				"batch.size=8", "prefetch.depth=0", step_times[i]},
			.ns = {[COST_READ_CPU] = 50 * 1e3,
				[COST_DECODE_CPU] = 1.5 * 1e6,
				[COST_STEP_DEVICE] = step_ns[i]},
			.variation = 0.1,
			.cores = 4};
		struct made_point p;
		struct diagnosis d;
		made_open(&p, &plan);
		assert_true(fabs(p.summary.median * (8 * 1.55e6 + step_ns[i]) / 8e9 - 1) < 0.03);
		diagnose(&p, THOROUGH, &d);
		expect_pair(&d, i == 0 ? "decode" : "prefetch", i == 0 ? "cpu" : "depth");
		assert_true(fabs(d.elasticities.sum - 1) < 0.05);
		assert_true(says(&d, "Loading and steps take turns"));
		assert_true(d.recommendation_count >= 1);
		const struct recommendation *last = &d.recommendations[d.recommendation_count - 1];
		assert_string_equal(last->settings[0], "prefetch.depth=2");
		/* One overlaps the other. */
		assert_true(fabs(last->predicted * fmax(8 * 1.55e6, step_ns[i]) / 8e9 - 1) < 0.05);
		made_close(&p);
	}
}

static void a_busy_step_has_nothing_to_turn(void **state)
{
	(void)state;
	static const struct made_plan plan = {
		.set = {"decode.workers=2", "batch.size=8", "prefetch.depth=4", "step.time=8ms"},
		.ns = {[COST_READ_CPU] = 20 * 1e3,
			[COST_DECODE_CPU] = 0.5 * 1e6,
			[COST_STEP_DEVICE] = 8 * 1e6},
		.variation = 0.3,
		.cores = 4};
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &plan);
	diagnose(&p, THOROUGH, &d);
	expect_pair(&d, "step", "compute");
	assert_int_equal(d.recommendation_count, 0);
	assert_true(says(&d, "Healthy: the data loader keeps the step busy"));
	assert_int_equal(d.ladder.count, 1);
	made_close(&p);
}

static void launching_is_told_from_computing(void **state)
{
	(void)state;
	static const struct made_plan plan = {
		.set = {"decode.workers=2", "batch.size=4", "prefetch.depth=4", "step.time=1ms"},
		.ns = {[COST_READ_CPU] = 20 * 1e3,
			[COST_DECODE_CPU] = 0.2 * 1e6,
			[COST_STEP_HOST] = 4 * 1e6,
			[COST_STEP_DEVICE] = 1e6},
		.cores = 4};
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &plan);
	diagnose(&p, SKETCH, &d);
	expect_pair(&d, "step", "launch");
	made_close(&p);
}

static void a_slow_worker_is_named(void **state)
{
	(void)state;
	static const struct made_plan plan = {
		.set = {"decode.workers=8", "batch.size=1", "prefetch.depth=1", "step.time=100us"},
		.ns = {[COST_READ_CPU] = 5 * 1e3,
			[COST_DECODE_WAIT] = 4 * 1e6,
			[COST_STEP_DEVICE] = 0.1 * 1e6},
		.variation = 0.05,
		.worker_0 = 5,
		.cores = 4};
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &plan);
	diagnose(&p, THOROUGH, &d);
	expect_pair(&d, "decode", "imbalance");
	assert_true(
		says(&d, "worker 0 is a straggler: it takes 20.0 ms per sample, the others 4.0"));
	made_close(&p);
}

static void rare_slow_items_are_the_queues_matter(void **state)
{
	(void)state;
	static const struct made_plan plan = {
		.set = {"decode.workers=16", "batch.size=4", "prefetch.depth=2", "step.time=2ms"},
		.ns = {[COST_READ_CPU] = 5 * 1e3,
			[COST_DECODE_WAIT] = 2 * 1e6,
			[COST_STEP_DEVICE] = 2 * 1e6},
		.slow_share = 0.01,
		.slow_factor = 20,
		.cores = 4};
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &plan);
	diagnose(&p, THOROUGH, &d);
	expect_pair(&d, "prefetch", "depth");
	if (d.recommendation_count == 0)
		fail_msg("%.0f measured, %s / %s / %s", p.summary.median, d.why_not,
			d.verdict.evidence[0], d.verdict.evidence[1]);
	assert_true(d.recommendation_count >= 1);
	assert_non_null(strstr(d.recommendations[0].settings[0], "prefetch.depth="));
	made_close(&p);
}

static void two_alike_are_a_pair(void **state)
{
	(void)state;
	static const struct made_plan plan = {
		.set = {"decode.workers=2", "batch.size=8", "prefetch.depth=4", "step.time=8ms"},
		.ns = {[COST_READ_CPU] = 20 * 1e3,
			[COST_DECODE_CPU] = 2 * 1e6,
			[COST_STEP_DEVICE] = 8.1 * 1e6},
		.variation = 0.2,
		.cores = 4};
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &plan);
	diagnose(&p, THOROUGH, &d);
	const struct verdict *v = &d.verdict;
	const bool both = (strcmp(v->stage, "step") == 0 && strcmp(v->also, "decode") == 0) ||
			  (strcmp(v->stage, "decode") == 0 && strcmp(v->also, "step") == 0);
	if (!both)
		fail_msg("got %s and '%s'", v->stage, v->also);
	assert_true(v->confidence <= 0.65);
	made_close(&p);
}

/* A step of 8 ms and workers that could do `margin` more than it, as `repeats` repetitions show it, in which the
 * work of the workers varies by `noise` from window to window; the step starves for a share, if that is not 0. */
static struct diagnosis judge_balance(double margin, size_t repeats, double noise, double starved)
{
	const struct made_plan plan = {
		.set = {"decode.workers=2", "batch.size=8", "prefetch.depth=4", "step.time=8ms"},
		.ns = {[COST_READ_CPU] = 20 * 1e3,
			[COST_DECODE_WAIT] = 2 * 1e6 / (1 + margin),
			[COST_STEP_DEVICE] = 8 * 1e6},
		.cores = 4};
	struct made_point p;
	struct diagnosis d;
	struct rng rng;
	rng_init(&rng, MADE_SEED, 77);
	made_open(&p, &plan);
	for (size_t r = 0; r < repeats; r++) {
		struct measurement *m = &p.repeats[r];
		const double usual = m->stages[1].seconds[THREAD_WORKING] / m->measured_seconds;
		double more = 0;
		double before = 0;
		for (size_t w = 0; w < m->window_count; w++) {
			struct window *window = &m->windows[w];
			more += noise * rng_normal(&rng) * usual * (window->t - before);
			window->stage_seconds[1][THREAD_WORKING] += more;
			before = window->t;
		}
	}
	struct error err;
	point_summary_release(&p.summary);
	assert_int_equal(summary_of_point(p.repeat_list, repeats, &p.facts, &p.summary, &err), 0);
	if (starved > 0) {
		p.summary.stages[1].blocked = 0;
		p.summary.stages[2].starved = starved;
	}
	p.input.source.count = repeats;
	diagnose(&p, THOROUGH, &d);
	made_close(&p);
	return d;
}

static struct diagnosis near_balance(double margin, size_t repeats, double noise)
{
	return judge_balance(margin, repeats, noise, 0);
}

static void expect_both(const struct diagnosis *d, const char *words)
{
	const struct verdict *v = &d->verdict;
	if (strcmp(v->stage, "step") != 0 || strcmp(v->also, "decode") != 0 || !says(d, words))
		fail_msg("got %s and '%s', %.2f: %s", v->stage, v->also, v->confidence,
			v->evidence[2]);
	assert_true(v->confidence <= 0.65);
}

static void expect_alone(const struct diagnosis *d, double confidence)
{
	const struct verdict *v = &d->verdict;
	if (strcmp(v->stage, "step") != 0 || v->also[0] || v->confidence < confidence)
		fail_msg("got %s and %s, %.4f, wanted %.2f", v->stage, v->also, v->confidence,
			confidence);
}

/* One of two is named alone only where the measurement tells them apart: 5 %, and what the rates are known to. */
static void a_pair_is_a_question_of_noise(void **state)
{
	(void)state;
	static const char sure[] = "both are bottlenecks";
	static const char unsure[] = "both may be bottlenecks";
	struct diagnosis d;
	for (size_t repeats = 1; repeats <= 3; repeats += 2) {
		d = near_balance(0.02, repeats, 0);
		expect_both(&d, sure);
		d = near_balance(0.055, repeats, 0);
		expect_both(&d, unsure);
		d = near_balance(0.15, repeats, 0);
		expect_alone(&d, 0.89);
		d = near_balance(0.5, repeats, 0.1);
		expect_alone(&d, 0.89);
	}
	/* What three repetitions tell apart, one does not; nor do three whose rate varies. */
	d = near_balance(0.065, 3, 0);
	expect_alone(&d, 0.89);
	d = near_balance(0.065, 1, 0);
	expect_both(&d, unsure);
	d = near_balance(0.08, 3, 0);
	expect_alone(&d, 0.93);
	d = near_balance(0.08, 3, 0.4);
	expect_both(&d, unsure);
}

/* Of a pair the waits may name one and the replay the other: that is no doubt about the two. */
static void witnesses_of_a_pair_agree(void **state)
{
	(void)state;
	const struct diagnosis alike = judge_balance(0.02, 1, 0, 0);
	const struct diagnosis other = judge_balance(0.02, 1, 0, 0.02);
	expect_both(&alike, "both are bottlenecks");
	expect_both(&other, "both are bottlenecks");
	assert_true(says(&other, "the queue waits point elsewhere"));
	if (other.verdict.confidence < 0.4)
		fail_msg("%.2f, %.2f where both name the step", other.verdict.confidence,
			alike.verdict.confidence);
	/* Where one binds alone, it is. */
	const struct diagnosis alone = judge_balance(0.09, 1, 0, 0.02);
	assert_true(alone.verdict.confidence < 0.7 && !alone.verdict.also[0]);
}

/* Between a pair and a clear limit the confidence rises with the margin. */
static void confidence_falls_near_balance(void **state)
{
	(void)state;
	static const double margins[] = {0.02, 0.069, 0.08, 0.15};
	double before = 0;
	for (size_t i = 0; i < sizeof margins / sizeof margins[0]; i++) {
		const struct diagnosis d = near_balance(margins[i], 1, 0);
		const double confidence = d.verdict.confidence;
		if (confidence < before)
			fail_msg("%.2f at a margin of %g, %.2f before", confidence, margins[i],
				before);
		before = confidence;
	}
}

static void without_service_times_the_first_verdict_stands(void **state)
{
	(void)state;
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &decode_bound);
	p.input.source.traces = NULL;
	diagnose(&p, THOROUGH, &d);
	expect_pair(&d, "decode", "cpu");
	assert_false(d.modelled);
	assert_non_null(strstr(d.why_not, "no service times"));
	assert_int_equal(d.recommendation_count, 0);
	assert_string_equal(d.verdict.advice, p.summary.verdict.advice);
	p.input.source.traces = p.traces_list;
	diagnose(&p, 0, &d);
	assert_false(d.modelled);
	expect_pair(&d, "decode", "cpu");
	made_close(&p);
}

static void too_few_samples_are_said(void **state)
{
	(void)state;
	struct made_plan plan = decode_bound;
	struct made_point p;
	struct diagnosis d;
	plan.seconds = 0.02;
	made_open(&p, &plan);
	diagnose(&p, THOROUGH, &d);
	expect_pair(&d, "none", "unknown");
	assert_true(d.samples_needed >= 64 && d.samples_needed < 1000);
	assert_true(says(&d, " samples, "));
	assert_true(d.verdict.confidence <= 0.2);
	made_close(&p);
}

/* The rate of one repetition falls in these windows, and the reader is what waits then. */
static void slow_between(struct measurement *m, size_t first, size_t end)
{
	double samples = 0;
	double before = 0;
	for (size_t i = 0; i < m->window_count; i++) {
		struct window *w = &m->windows[i];
		const bool slow = i >= first && i < end;
		const double dt = w->t - before;
		const double share[2][THREAD_STATES] = {{0, 0.05, 0.95}, {0, 1, 0}};
		samples += m->throughput * dt * (slow ? 0.4 : 1);
		for (int state = 0; state < THREAD_STATES; state++) {
			const struct window *last = i > 0 ? w - 1 : NULL;
			double *read = &w->stage_seconds[0][state];
			double *decode = &w->stage_seconds[1][state];
			*read = (last ? last->stage_seconds[0][state] : 0) +
				share[slow][state] * dt;
			if (state == THREAD_STARVED)
				*decode = (last ? last->stage_seconds[1][state] : 0) +
					  (slow ? 2 * dt * 0.6 : 0);
			if (state == THREAD_WORKING)
				*decode = (last ? last->stage_seconds[1][state] : 0) +
					  2 * dt * (slow ? 0.4 : 0.99);
		}
		w->samples = (uint64_t)samples;
		before = w->t;
	}
	m->status = MEASUREMENT_UNSTEADY;
	m->samples = (uint64_t)samples;
	m->throughput = samples / m->measured_seconds;
}

static void slow_in_the_middle(struct measurement *m)
{
	slow_between(m, m->window_count / 3, 2 * m->window_count / 3);
}

static void a_changing_limit_is_cut_into_phases(void **state)
{
	(void)state;
	struct made_point p;
	struct diagnosis d;
	struct error err;
	made_open(&p, &decode_bound);
	for (size_t r = 0; r < MADE_REPEATS; r++)
		slow_in_the_middle(&p.repeats[r]);
	point_summary_release(&p.summary);
	assert_int_equal(
		summary_of_point(p.repeat_list, MADE_REPEATS, &p.facts, &p.summary, &err), 0);
	assert_int_equal(p.summary.status, POINT_UNSTEADY);
	diagnose(&p, SKETCH, &d);
	assert_int_equal(d.phase_count, 3);
	assert_string_equal(d.phases[0].stage, "decode");
	assert_string_equal(d.phases[1].stage, "read");
	assert_string_equal(d.phases[2].stage, "decode");
	const double whole = p.repeats[0].cut_seconds + p.repeats[0].measured_seconds;
	assert_true(fabs(d.phases[1].begin_s - whole / 3) < 0.06 * whole);
	assert_true(fabs(d.phases[1].end_s - 2 * whole / 3) < 0.06 * whole);
	assert_string_equal(d.verdict.stage, "read");
	/* Figures of a part stand behind the words that they are. */
	assert_non_null(strstr(d.verdict.evidence[0],
		"The bottleneck changes during the run (3 parts); what follows covers "));
	assert_true(d.verdict.evidence_count > 1);
	made_close(&p);
}

/* A warm-up that reads at other depths made longer is no phase, however early the configured one ended; what follows it is,
 * though the cut be later. */
static void phases_begin_after_the_warm_up(void **state)
{
	(void)state;
	static const double ends[] = {0.1, 0.5, NAN};
	static const size_t phases[] = {3, 2, 1};
	struct made_point p;
	struct phase_cut cut;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		made_open(&p, &decode_bound);
		for (size_t r = 0; r < MADE_REPEATS; r++) {
			struct measurement *m = &p.repeats[r];
			const double whole = m->cut_seconds + m->measured_seconds;
			slow_in_the_middle(m);
			m->cut_seconds = 0.7 * whole;
			m->measured_seconds = 0.3 * whole;
			m->warmup_seconds = ends[i] * whole;
		}
		phases_cut(p.repeat_list, MADE_REPEATS, &cut);
		assert_int_equal(cut.count, phases[i]);
		const double whole = p.repeats[0].cut_seconds + p.repeats[0].measured_seconds;
		assert_true(fabs(cut.edges[0] - fmin(ends[i], 0.7) * whole) < 1e-9);
		made_close(&p);
	}
}

/* Fast, then slow from its middle on, then slow. */
static void make_a_lasting_change(struct made_point *p)
{
	made_open(p, &decode_bound);
	slow_between(&p->repeats[1], MADE_WINDOWS / 2, MADE_WINDOWS);
	slow_between(&p->repeats[2], 0, MADE_WINDOWS);
	p->repeats[2].status = MEASUREMENT_OK;
}

static void a_change_that_lasts_is_one_of_the_whole(void **state)
{
	(void)state;
	struct made_point p;
	struct phase_cut cut;
	make_a_lasting_change(&p);
	phases_cut(p.repeat_list, MADE_REPEATS, &cut);
	assert_int_equal(cut.count, 2);
	assert_int_equal(cut.repeat, 1);
	assert_int_equal(cut.after, 1);
	/* What came back did not last, and most repetitions know nothing of it. */
	p.repeats[2].throughput = p.repeats[0].throughput;
	slow_between(&p.repeats[2], 0, 0);
	p.repeats[2].status = MEASUREMENT_OK;
	phases_cut(p.repeat_list, MADE_REPEATS, &cut);
	assert_int_equal(cut.count, 1);
	assert_int_equal(cut.after, 0);
	made_close(&p);
}

static const struct made_plan slow_reads = {
	.set = {"decode.workers=2", "batch.size=8", "prefetch.depth=4", "step.time=4ms",
		"read.depth=1"},
	.ns = {[COST_READ_LATENCY] = 5 * 1e6,
		[COST_DECODE_CPU] = 4 * 1e6,
		[COST_STEP_DEVICE] = 4 * 1e6},
	.reads_twice = true,
	.cores = 8};

/* Later repetitions are slow throughout and good; the one with the change is not, and left out of the figures. */
static void a_repetition_left_out_shows_the_change(void **state)
{
	(void)state;
	struct made_point changed;
	struct made_point p;
	struct diagnosis d;
	make_a_lasting_change(&changed);
	made_open(&p, &slow_reads);
	const struct measurement *const all[] = {&changed.repeats[1], &p.repeats[0], &p.repeats[1]};
	const struct traces *const traces[] = {&changed.traces[1], &p.traces[0], &p.traces[1]};
	p.input.all = all;
	p.input.all_traces = traces;
	p.input.all_count = sizeof all / sizeof *all;
	p.input.source.count = 2;
	diagnose(&p, SKETCH, &d);
	assert_int_equal(d.phase_count, 2);
	assert_string_equal(d.phases[0].stage, "decode");
	assert_string_equal(d.phases[1].stage, "read");
	assert_string_equal(d.verdict.stage, "read");
	assert_string_equal(d.verdict.resource, "latency");
	assert_non_null(
		strstr(d.verdict.evidence[0], "and 2 repetitions after it that are like it"));
	made_close(&p);
	made_close(&changed);
}

/* A quota was raised in the midst of a repetition that is left out, and the rate with it: what lasts is judged, not what cost
 * most, and the quota is said. */
static void what_lasts_under_a_changed_quota_is_judged(void **state)
{
	(void)state;
	struct made_point changed;
	struct made_point p;
	struct diagnosis d;
	made_open(&changed, &decode_bound);
	made_open(&p, &decode_bound);
	struct measurement *const m = &changed.repeats[0];
	slow_between(m, 0, MADE_WINDOWS / 2);
	m->status = MEASUREMENT_UNSTEADY;
	for (size_t i = 0; i < m->window_count; i++)
		m->windows[i].quota_cores = i < MADE_WINDOWS / 2 ? 0.5 : 16;
	const struct measurement *const all[] = {m, &p.repeats[0], &p.repeats[1]};
	const struct traces *const traces[] = {&changed.traces[0], &p.traces[0], &p.traces[1]};
	p.input.all = all;
	p.input.all_traces = traces;
	p.input.all_count = sizeof all / sizeof *all;
	p.input.source.count = 2;
	diagnose(&p, SKETCH, &d);
	assert_int_equal(d.phase_count, 2);
	assert_true(d.phases[0].throughput < d.phases[1].throughput);
	assert_true(d.phases[1].judged && !d.phases[0].judged);
	assert_non_null(strstr(d.verdict.evidence[0], "the part that lasts, and 2 repetitions"));
	assert_non_null(
		strstr(d.verdict.evidence[1], "The CPU quota changed from 0.5 to 16 cores"));
	made_close(&p);
	made_close(&changed);
}

/* A store that serves at once what a credit pays for, and 20 ms a file after that. */
static const struct made_plan without_credit = {
	.set = {"decode.workers=2", "batch.size=8", "prefetch.depth=4", "step.time=4ms",
		"read.depth=1"},
	.ns = {[COST_READ_LATENCY] = 20 * 1e6,
		[COST_DECODE_CPU] = 4 * 1e6,
		[COST_STEP_DEVICE] = 4 * 1e6},
	.reads_twice = true,
	.cores = 8};

/* Repetitions of two states in this order, each 1 s after the one before has ended; letters of `order`: f is of the
 * fast one, s of the slow one. */
struct two_states {
	struct made_point fast, slow;
	const struct measurement *repeats[8];
	const struct traces *traces[8];
	struct measurement copies[8];
	struct point_summary summary;
	struct diagnose_input input;
};

static void states_open(struct two_states *p, const char *order)
{
	const size_t count = strlen(order);
	double started = 1000;
	struct error err;
	made_open(&p->fast, &decode_bound);
	made_open(&p->slow, &without_credit);
	for (size_t i = 0; i < count; i++) {
		struct made_point *of = order[i] == 'f' ? &p->fast : &p->slow;
		p->copies[i] = of->repeats[i % MADE_REPEATS];
		p->copies[i].repeat = (uint32_t)i;
		p->copies[i].started = started;
		started += p->copies[i].cut_seconds + p->copies[i].measured_seconds + 1;
		p->repeats[i] = &p->copies[i];
		p->traces[i] = &of->traces[i % MADE_REPEATS];
	}
	assert_int_equal(summary_of_point(p->repeats, count, &p->slow.facts, &p->summary, &err), 0);
	p->input = p->slow.input;
	p->input.point = &p->summary;
	p->input.source.repeats = p->repeats;
	p->input.source.traces = p->traces;
	p->input.source.count = count;
}

static void states_close(struct two_states *p)
{
	point_summary_release(&p->summary);
	made_close(&p->fast);
	made_close(&p->slow);
}

static void a_change_between_repetitions_is_two_verdicts(void **state)
{
	(void)state;
	static struct two_states p;
	struct diagnosis d;
	struct error err;
	states_open(&p, "fss");
	const double fast = p.copies[0].throughput;
	const double slow = p.copies[1].throughput;
	assert_true(fast > 3 * slow);
	/* The figures are those of what lasts. */
	assert_int_equal(p.summary.repeat_count, 2);
	assert_int_equal(p.summary.left_out, 1);
	assert_true(fabs(p.summary.median / slow - 1) < 0.1);
	assert_string_equal(p.summary.verdict.stage, "read");
	assert_int_equal(diagnose_point(&p.input, SKETCH, &d, &err), 0);
	expect_pair(&d, "read", "latency");
	assert_true(d.verdict.confidence >= 0.7);
	assert_int_equal(d.phase_count, 2);
	assert_string_equal(d.phases[0].stage, "decode");
	assert_string_equal(d.phases[0].resource, "cpu");
	assert_false(d.phases[0].judged);
	assert_true(d.phases[1].judged);
	assert_int_equal(d.phases[0].last_repetition, 0);
	assert_int_equal(d.phases[1].first_repetition, 1);
	assert_int_equal(d.phases[1].last_repetition, 2);
	/* When: after the end of the first, and when the second one is measured. */
	const double end = p.copies[0].cut_seconds + p.copies[0].measured_seconds;
	assert_true(fabs(d.phases[0].end_s - end) < 1e-6);
	assert_true(fabs(d.phases[1].begin_s - (end + 1 + p.copies[1].cut_seconds)) < 1e-6);
	assert_true(strncmp(d.verdict.evidence[0], "The throughput changed from ", 28) == 0);
	assert_non_null(strstr(d.verdict.evidence[0], " between repetitions 0 and 1, "));
	assert_non_null(strstr(d.verdict.evidence[0], "(before: decode, CPU-bound), and stayed"));
	assert_true(d.modelled);
	assert_true(fabs(d.replayed / slow - 1) < 0.1);
	states_close(&p);
}

static void a_state_that_came_back_lasts(void **state)
{
	(void)state;
	static struct two_states p;
	struct diagnosis d;
	struct error err;
	states_open(&p, "ffssfff");
	assert_int_equal(p.summary.repeat_count, 5);
	assert_int_equal(diagnose_point(&p.input, SKETCH, &d, &err), 0);
	expect_pair(&d, "decode", "cpu");
	assert_int_equal(d.phase_count, 3);
	assert_true(d.phases[0].judged && !d.phases[1].judged && d.phases[2].judged);
	assert_string_equal(d.phases[1].stage, "read");
	assert_non_null(strstr(d.verdict.evidence[0], "for a while (read, latency-bound), from "));
	states_close(&p);
}

/* The last one alone may be a disturbance. */
static void a_change_at_the_very_end_is_open(void **state)
{
	(void)state;
	static struct two_states p;
	struct diagnosis d;
	struct error err;
	states_open(&p, "fffffs");
	assert_int_equal(p.summary.repeat_count, 5);
	assert_int_equal(diagnose_point(&p.input, SKETCH, &d, &err), 0);
	expect_pair(&d, "decode", "cpu");
	assert_non_null(strstr(d.verdict.evidence[0], "too late to know whether that lasts"));
	/* So that one more tells, and two where it is the first of its kind. */
	assert_int_equal(way_out_repetitions(p.repeats, 6, 10), 1);
	assert_int_equal(way_out_repetitions(p.repeats, 6, 6), 0);
	states_close(&p);
}

/* Inside of the second one: half of it belongs to each state. */
static void a_change_inside_a_repetition_has_its_moment(void **state)
{
	(void)state;
	struct made_point p;
	struct diagnosis d;
	struct error err;
	made_open(&p, &decode_bound);
	slow_between(&p.repeats[1], MADE_WINDOWS / 2, MADE_WINDOWS);
	slow_between(&p.repeats[2], 0, MADE_WINDOWS);
	for (size_t i = 0; i < MADE_REPEATS; i++) {
		p.repeats[i].repeat = (uint32_t)i;
		p.repeats[i].status = MEASUREMENT_OK;
		p.repeats[i].warmup_seconds = p.repeats[i].cut_seconds;
		p.repeats[i].started = 1000 + (double)i * (p.repeats[0].cut_seconds +
								  p.repeats[0].measured_seconds);
	}
	point_summary_release(&p.summary);
	assert_int_equal(
		summary_of_point(p.repeat_list, MADE_REPEATS, &p.facts, &p.summary, &err), 0);
	assert_int_equal(p.summary.repeat_count, 1);
	diagnose(&p, SKETCH, &d);
	assert_int_equal(d.phase_count, 2);
	assert_int_equal(d.phases[0].last_repetition, 1);
	assert_int_equal(d.phases[1].first_repetition, 1);
	const double whole = p.repeats[0].cut_seconds + p.repeats[0].measured_seconds;
	assert_true(fabs(d.phases[1].begin_s - 1.5 * whole) < 0.06 * whole);
	assert_non_null(strstr(d.verdict.evidence[0], " in repetition 1, "));
	made_close(&p);
}

static void a_standstill_is_told_first(void **state)
{
	(void)state;
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &decode_bound);
	p.repeats[1].repeat = 1;
	p.repeats[1].stood_still_seconds = 1.04;
	p.repeats[1].stood_still_at = 2.31;
	diagnose(&p, SKETCH, &d);
	expect_pair(&d, "decode", "cpu");
	assert_string_equal(d.verdict.evidence[0],
		"Everything stood still at once for 1.04 s, 2.3 s after the start of repetition 1: mlbench was "
		"stopped (SIGSTOP, Ctrl-Z), or frozen with its container. That time is not counted.");
	p.repeats[0].stood_still_seconds = 0.5;
	p.repeats[1].machine_stood_still = true;
	diagnose(&p, SKETCH, &d);
	assert_string_equal(d.verdict.evidence[0],
		"Everything stood still at once for 1.54 s, 2.3 s after the start of repetition 1 (and in 1 more): "
		"the machine did not run. That time is not counted.");
	made_close(&p);
}

/* Nothing comes in for a third of it, and the step starves. */
static void storage_goes_away(struct measurement *m)
{
	uint64_t bytes = 0;
	double starved = 0;
	double before = 0;
	for (size_t i = 0; i < m->window_count; i++) {
		struct window *w = &m->windows[i];
		const bool away = 3 * i >= m->window_count && 3 * i < 2 * m->window_count;
		bytes += away ? 0 : 1000000;
		starved += away ? w->t - before : 0;
		w->bytes_read = bytes;
		w->stage_seconds[0][THREAD_BLOCKED] = 0;
		w->stage_seconds[2][THREAD_STARVED] = starved;
		before = w->t;
	}
	m->status = MEASUREMENT_UNSTEADY;
}

/* Unsteady for it, and left out for that beside steady ones: it is told all the same. */
static void an_outage_is_not_left_out(void **state)
{
	(void)state;
	struct made_point p;
	struct diagnosis d;
	const struct made_plan steps = {
		.set = {"decode.workers=2", "batch.size=8", "prefetch.depth=4", "step.time=80ms"},
		.ns = {[COST_READ_CPU] = 20 * 1e3,
			[COST_DECODE_CPU] = 0.5 * 1e6,
			[COST_STEP_DEVICE] = 80 * 1e6},
		.cores = 4};
	made_open(&p, &steps);
	storage_goes_away(&p.repeats[0]);
	assert_int_equal(way_out_repetitions(p.repeat_list, 1, MADE_REPEATS), 0);
	p.input.all = p.repeat_list;
	p.input.all_traces = p.traces_list;
	p.input.all_count = MADE_REPEATS;
	p.input.source.repeats = p.repeat_list + 1;
	p.input.source.traces = p.traces_list + 1;
	p.input.source.count = MADE_REPEATS - 1;
	diagnose(&p, SKETCH, &d);
	assert_string_equal(d.verdict.stage, "read");
	assert_string_equal(d.verdict.resource, "outage");
	p.input.all_count = 0;
	diagnose(&p, SKETCH, &d);
	assert_string_equal(d.verdict.stage, "step");
	made_close(&p);
}

static void the_same_input_gives_the_same_diagnosis(void **state)
{
	(void)state;
	struct made_point p;
	static struct diagnosis a;
	static struct diagnosis b;
	made_open(&p, &decode_bound);
	diagnose(&p, THOROUGH, &a);
	diagnose(&p, THOROUGH, &b);
	assert_true(a.replayed == b.replayed && a.verdict.confidence == b.verdict.confidence);
	assert_int_equal(a.recommendation_count, b.recommendation_count);
	assert_true(a.recommendations[0].predicted == b.recommendations[0].predicted);
	made_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_are_recommended_as_far_as_they_gain),
		cmocka_unit_test(a_chain_of_settings_goes_on_to_the_next_limit),
		cmocka_unit_test(workers_that_read_want_more_of_them),
		cmocka_unit_test(workers_that_mostly_decode_are_bound_by_that),
		cmocka_unit_test(turns_are_told),
		cmocka_unit_test(a_busy_step_has_nothing_to_turn),
		cmocka_unit_test(launching_is_told_from_computing),
		cmocka_unit_test(a_slow_worker_is_named),
		cmocka_unit_test(rare_slow_items_are_the_queues_matter),
		cmocka_unit_test(two_alike_are_a_pair),
		cmocka_unit_test(a_pair_is_a_question_of_noise),
		cmocka_unit_test(witnesses_of_a_pair_agree),
		cmocka_unit_test(confidence_falls_near_balance),
		cmocka_unit_test(without_service_times_the_first_verdict_stands),
		cmocka_unit_test(too_few_samples_are_said),
		cmocka_unit_test(a_changing_limit_is_cut_into_phases),
		cmocka_unit_test(a_change_that_lasts_is_one_of_the_whole),
		cmocka_unit_test(a_repetition_left_out_shows_the_change),
		cmocka_unit_test(what_lasts_under_a_changed_quota_is_judged),
		cmocka_unit_test(an_outage_is_not_left_out),
		cmocka_unit_test(phases_begin_after_the_warm_up),
		cmocka_unit_test(a_change_between_repetitions_is_two_verdicts),
		cmocka_unit_test(a_state_that_came_back_lasts),
		cmocka_unit_test(a_change_at_the_very_end_is_open),
		cmocka_unit_test(a_change_inside_a_repetition_has_its_moment),
		cmocka_unit_test(a_standstill_is_told_first),
		cmocka_unit_test(the_same_input_gives_the_same_diagnosis),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
