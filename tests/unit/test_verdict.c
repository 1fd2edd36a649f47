/* The verdict on hand-made measurements: stage, resource and words, and contradictory measurements refused. */
#include "harness/analyze/reads_alone.h"
#include "harness/analyze/verdict.h"
#include "harness/base/rng.h"
#include "tests/unit/verdict_fixture.h"

enum { SEED = 90125 };

static void decode_on_the_cpu(void **state)
{
	(void)state;
	static struct measurement m;
	decode_bound(&m);
	struct point_facts facts = hand_facts();
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "cpu");
	assert_string_equal(v.evidence[0],
		"Decode is busy 98.7 % of its 2 threads' time; read is blocked 71.0 %, "
		"step is starved 34.0 %.");
	assert_true(v.confidence >= 0.8);
	assert_true(says(&v, "all 2 cores are in use by 2 decode workers: "));
	facts.step_threads = 1;
	v = judge(&m, &facts);
	assert_true(says(&v, "all 2 cores are in use by 2 decode workers and 1 step thread: "));
	facts.step_threads = 0;
	assert_true(says(&v, "99 % of the lowest capacity (decode: "));
	facts.cores = 8;
	v = judge(&m, &facts);
	expect(&v, "decode", "cpu");
	assert_true(says(&v, "decode.workers = 4: decode could feed up to ~2,4"));
	assert_true(says(&v, "then step is the bottleneck"));
}

static void too_few_cores(void **state)
{
	(void)state;
	static struct measurement m;
	decode_bound(&m);
	m.stages[1].cpu_seconds = 0.55 * m.stages[1].seconds[THREAD_WORKING];
	m.stages[1].run_queue_seconds = 0.43 * m.stages[1].seconds[THREAD_WORKING];
	struct point_facts facts = hand_facts();
	facts.decode_workers = m.stages[1].workers = 4;
	m.cores_busy_outside = 0.05;
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "cores");
	m.cores_busy_outside = 0.97;
	v = judge(&m, &facts);
	expect(&v, "decode", "external");
	assert_true(says(&v, "1.0 of 2 cores busy"));
}

static void a_lock(void **state)
{
	(void)state;
	static struct measurement m;
	decode_bound(&m);
	m.stages[1].cpu_seconds = 0.6 * m.stages[1].seconds[THREAD_WORKING];
	const struct point_facts facts = hand_facts();
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "lock");
	assert_true(says(&v, "sleeps 39 %"));
	/* Some waiting for cores beside it does not hide it. */
	m.stages[1].cpu_seconds = 0.3 * m.stages[1].seconds[THREAD_WORKING];
	m.stages[1].run_queue_seconds = 0.2 * m.stages[1].seconds[THREAD_WORKING];
	v = judge(&m, &facts);
	expect(&v, "decode", "lock");
}

static void no_schedstat_is_no_guess(void **state)
{
	(void)state;
	static struct measurement m;
	decode_bound(&m);
	m.stages[1].cpu_seconds = m.stages[1].run_queue_seconds = NAN;
	const struct point_facts facts = hand_facts();
	const struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "unknown");
	assert_true(v.confidence <= 0.5);
	assert_true(says(&v, "schedstat"));
}

static void add_point(struct measurement *m, unsigned depth, double files_per_s)
{
	m->read_points[m->read_point_count++] = (struct read_point){.depth = depth,
		.seconds = 1,
		.files = (uint64_t)files_per_s,
		.latency_mean_ns = depth / files_per_s * 1e9,
		.rate_error = 0.03,
		.blocked_share = 0};
}

static void reads_are_told_apart_by_other_points(void **state)
{
	(void)state;
	static struct measurement m;
	read_bound(&m);
	struct point_facts facts = hand_facts();
	struct verdict v = judge(&m, &facts);
	expect(&v, "read", "unknown");
	assert_true(v.confidence < 0.6);
	assert_true(says(&v, "look alike at a single queue depth"));
	assert_true(says(&v, "sweep read.depth=16,32"));
	add_point(&m, 8, 1190 / 2);
	add_point(&m, 32, 1190 * 1.95);
	v = judge(&m, &facts);
	expect(&v, "read", "latency");
	assert_true(v.confidence >= 0.9);
	assert_true(says(&v, "read.depth = 32"));
	m.read_point_count = 0;
	add_point(&m, 8, 1190 * 1.02);
	add_point(&m, 32, 1190 * 0.99);
	v = judge(&m, &facts);
	expect(&v, "read",
		"full"); /* no sizes were recorded, so that nothing says that all are alike */
	assert_true(says(&v, "do not tell"));
	assert_true(says(&v, "no setting helps"));
	m.read_point_count = 0;
	facts.storage_bytes_per_s = 1190 * 1e5 / 0.95;
	v = judge(&m, &facts);
	expect(&v, "read", "bandwidth");
	facts.storage_bytes_per_s = 1190 * 1e5 / 0.3;
	v = judge(&m, &facts);
	expect(&v, "read", "latency");
	assert_true(v.confidence < 0.7);
	facts.reads_memory = true;
	m.stages[0].cpu_seconds = 0.97 * m.stages[0].seconds[THREAD_WORKING];
	v = judge(&m, &facts);
	expect(&v, "read", "cpu");
}

static void a_busy_step_is_no_fault(void **state)
{
	(void)state;
	static struct measurement m;
	hand_made(&m, (struct shares){0.2, 0, 0.8}, (struct shares){0.5, 0.01, 0.49},
		(struct shares){0.995, 0.005, 0});
	struct point_facts facts = hand_facts();
	struct verdict v = judge(&m, &facts);
	expect(&v, "step", "compute");
	assert_true(v.confidence >= 0.9);
	assert_true(says(&v, "emulated device"));
	assert_true(says(&v, "with capacity to spare"));
	facts.step_emulated = false;
	m.stages[2].device = false;
	m.stages[2].cpu_seconds = 0.97 * m.stages[2].seconds[THREAD_WORKING];
	v = judge(&m, &facts);
	expect(&v, "step", "compute");
	assert_false(says(&v, "emulated"));
}

/* Of 10 s the step computes for `busy` and stands still for the rest, 20 checkpoints long. */
static void saves(struct measurement *m, double busy, bool async)
{
	const double stalled = (1 - busy) * 10;
	hand_made(m, (struct shares){0.1, 0, 0.9}, (struct shares){0.1, 0, 0.9},
		(struct shares){busy, 0, 1 - busy});
	struct stage_measurement *const stage = &m->stages[m->stage_count++];
	*stage = m->stages[2];
	(void)snprintf(stage->name, sizeof stage->name, "checkpoint");
	stage->device = false;
	stage->capacity = NAN;
	stage->seconds[THREAD_WORKING] = async ? 9.9 : stalled;
	stage->seconds[THREAD_STARVED] = 10 - stage->seconds[THREAD_WORKING];
	stage->seconds[THREAD_BLOCKED] = 0;
	m->checkpoint_count = 1;
	m->checkpoint[0] = (struct checkpoint_measurement){.every = 9,
		.async = async,
		.count = 20,
		.bytes = 1 << 20,
		.stall_seconds = stalled,
		.stall_max_ns = stalled / 20 * 1e9,
		.wait_seconds = async ? stalled : 0,
		.write_seconds = async ? 9 : stalled,
		.copy_bytes_per_s = 1e10};
}

static void a_step_that_stands_still_for_checkpoints(void **state)
{
	(void)state;
	static struct measurement m;
	const struct point_facts facts = hand_facts();
	saves(&m, 0.7, false);
	struct verdict v = judge(&m, &facts);
	expect(&v, "checkpoint", "storage");
	assert_true(says(&v, "30.0 % of the time while checkpoints of 1.00 MiB are written"));
	assert_true(says(&v, "checkpoint.mode = async"));
	/* So little is no bottleneck, and is told. */
	saves(&m, 0.96, false);
	v = judge(&m, &facts);
	expect(&v, "step", "compute");
	assert_true(says(&v, "heckpoints stop the step for 4.0 % of the time"));
	saves(&m, 0.7, true);
	v = judge(&m, &facts);
	expect(&v, "checkpoint", "storage");
	assert_true(says(&v, "until the writer has done"));
	m.checkpoint[0].copy_seconds = m.checkpoint[0].wait_seconds;
	m.checkpoint[0].wait_seconds = 0;
	m.stages[3].seconds[THREAD_WORKING] = 4;
	m.stages[3].seconds[THREAD_STARVED] = 6;
	v = judge(&m, &facts);
	expect(&v, "checkpoint", "copy");
}

/* Of 10 s the step computes for `busy` and stands still for the rest: evaluations, for `starved` of it without input. */
static void evaluates(struct measurement *m, double busy, double starved)
{
	const double stalled = (1 - busy) * 10;
	saves(m, busy, false);
	m->checkpoint_count = 0;
	(void)snprintf(m->stages[3].name, sizeof m->stages[3].name, "evaluate");
	m->evaluation_count = 1;
	m->evaluation[0] = (struct evaluation_measurement){.every = 9,
		.workers = 3,
		.count = 20,
		.samples_each = 500,
		.samples = 10000,
		.stall_seconds = stalled,
		.stall_max_ns = stalled / 20 * 1e9,
		.starved_seconds = starved * stalled,
		.working_seconds = (1 - starved) * stalled};
}

static void a_step_that_stands_still_for_evaluations(void **state)
{
	(void)state;
	static struct measurement m;
	const struct point_facts facts = hand_facts();
	evaluates(&m, 0.7, 0.9);
	struct verdict v = judge(&m, &facts);
	expect(&v, "evaluate", "input");
	const double sure = v.confidence;
	assert_true(says(
		&v, "30.0 % of the time for evaluations of 500 samples, 150 ms every 9 steps"));
	assert_true(says(&v, "wait for input 90 % of that"));
	assert_true(says(&v, "evaluate.workers"));
	evaluates(&m, 0.7, 0.1);
	v = judge(&m, &facts);
	expect(&v, "evaluate", "step");
	assert_true(says(&v, "more evaluate.workers will not help"));
	/* It could be either. */
	evaluates(&m, 0.7, 0.52);
	v = judge(&m, &facts);
	expect(&v, "evaluate", "input");
	assert_true(v.confidence < sure);
	/* So little is no bottleneck, and is told. */
	evaluates(&m, 0.96, 0.9);
	v = judge(&m, &facts);
	expect(&v, "step", "compute");
	assert_true(says(&v, "valuations stop the step for 4.0 % of the time"));
}

/* Where the step starves for something else most of the time, that is what is named. */
static void workers_that_start_anew(void **state)
{
	(void)state;
	static struct measurement m;
	const struct point_facts facts = hand_facts();
	hand_made(&m, (struct shares){0.1, 0.2, 0.7}, (struct shares){0.1, 0.2, 0.7},
		(struct shares){0.8, 0.2, 0});
	m.restarts = 10;
	m.restart_seconds = 1.8;
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "startup");
	assert_true(says(&v, "180 ms for its first batch, 18.0 % of the time"));
	assert_true(says(&v, "decode.persistent = on"));
	decode_bound(&m);
	m.restarts = 10;
	m.restart_seconds = 1;
	v = judge(&m, &facts);
	expect(&v, "decode", "cpu");
}

static void two_that_bind(void **state)
{
	(void)state;
	static struct measurement m;
	hand_made(&m, (struct shares){0.2, 0, 0.8}, (struct shares){0.97, 0.005, 0.025},
		(struct shares){0.955, 0.045, 0});
	const struct point_facts facts = hand_facts();
	const struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "cpu");
	assert_string_equal(v.also, "step");
	assert_true(says(&v,
		"The capacity of step is within 1.5 % of that of decode: both are bottlenecks."));
	assert_true(v.confidence < 0.6);
}

/* Decode and step alone, forth and back, each block slower by a share of the first. */
static void alone_blocks(
	double decode, double step, double slower, const char *first, struct read_block out[4])
{
	for (size_t i = 0; i < 4; i++) {
		const bool is_first = i == 0 || i == 3;
		const bool decodes = is_first == (strcmp(first, "decode") == 0);
		const double rate = (decodes ? decode : step) * pow(1 - slower, (double)i);
		out[i] = (struct read_block){
			.read = {.seconds = 1000 / rate, .files = 1000, .rate_error = 0.002}};
		(void)snprintf(
			out[i].stage, sizeof out[i].stage, "%s", decodes ? "decode" : "step");
	}
}

/* Of a run whose decode and step are that busy, with that capacity of each alone; 0: they did not run alone.  named: what
 * becomes of a binding that names decode, as a replay may; NULL: not asked. */
static struct verdict judge_alone_as(
	double decode_busy, double step_busy, double decode, double step, struct binding *named)
{
	static struct measurement m;
	static struct point_summary point;
	const struct measurement *repeats[] = {&m, &m, &m};
	struct read_block blocks[4];
	struct error err;
	struct verdict v;
	hand_made(&m, (struct shares){0.2, 0, 0.8},
		(struct shares){decode_busy, 0.005, 0.995 - decode_busy},
		(struct shares){step_busy, 1 - step_busy, 0});
	if (decode > 0)
		alone_blocks(decode, step, 0, "decode", blocks);
	const struct point_facts facts = hand_facts();
	assert_int_equal(summary_of_point(repeats, 3, &facts, &point, &err), 0);
	const struct model_source source = {
		.read_blocks = blocks, .read_block_count = decode > 0 ? 4 : 0};
	const struct evidence_base base = {.point = &point,
		.repeats = repeats,
		.count = 3,
		.facts = &facts,
		.source = &source};
	verdict_judge(&base, &v);
	if (named) {
		*named = binding_find(&base);
		named->stage = 1;
		named->second = 2;
		binding_weigh_alone(&base, named);
	}
	point_summary_release(&point);
	return v;
}

static struct verdict judge_alone(double decode_busy, double step_busy, double decode, double step)
{
	return judge_alone_as(decode_busy, step_busy, decode, step, NULL);
}

static void stages_alone_tell_a_pair_from_one(void **state)
{
	(void)state;
	/* Open, and what would tell. */
	struct verdict v = judge_alone(0.97, 0.955, 0, 0);
	expect(&v, "decode", "cpu");
	assert_string_equal(v.also, "step");
	assert_string_equal(v.against, "step");
	assert_true(v.confidence < 0.6);
	/* Within 5 %: both, and it is known. */
	v = judge_alone(0.97, 0.955, 1192, 1210);
	expect(&v, "decode", "cpu");
	assert_string_equal(v.also, "step");
	assert_string_equal(v.against, "");
	assert_true(v.confidence > 0.8);
	assert_true(says(&v, "Alone, decode gives 1,192 samples/s and step 1,210"));
	/* Further apart than the run could tell. */
	v = judge_alone(0.98, 0.93, 0, 0);
	assert_string_equal(v.also, "step");
	v = judge_alone(0.98, 0.93, 1192, 1281);
	expect(&v, "decode", "cpu");
	assert_string_equal(v.also, "");
	assert_true(v.confidence > 0.8);
	/* Decode was named, and the step is the slower one. */
	struct binding named;
	(void)judge_alone_as(0.94, 1, 1270, 1192, &named);
	assert_true(named.stage == 2 && named.second == HAND_STAGES && named.shown > 0.9);
	/* Of a pair either may be named. */
	(void)judge_alone_as(0.97, 1, 1229, 1192, &named);
	assert_true(named.stage == 1 && named.second == 2);
	/* A clear verdict asks for nothing. */
	v = judge_alone(0.98, 0.7, 0, 0);
	assert_string_equal(v.against, "");
}

static void stages_alone_that_the_run_contradicts_count_for_nothing(void **state)
{
	(void)state;
	/* Two that share cores are faster alone, both, or one of them. */
	const struct verdict before = judge_alone(0.97, 0.955, 0, 0);
	struct verdict v = judge_alone(0.97, 0.955, 1.5 * 1192, 1.5 * 1210);
	assert_string_equal(v.also, "step");
	assert_true(v.confidence == before.confidence);
	assert_true(says(&v, "more than the run: cores that both share, or a queue, limit it"));
	v = judge_alone(0.97, 0.955, 1.5 * 1192, 1192);
	expect(&v, "decode", "cpu");
	assert_string_equal(v.also, "step");
	assert_true(v.confidence == before.confidence);
	assert_true(says(&v, "which the run does not agree with"));
	/* Rates that a disturbed block leaves unknown, even if their mean is that of the run. */
	struct read_block blocks[4];
	double error;
	double least;
	alone_blocks(1192, 1210, 0, "decode", blocks);
	blocks[1].read.seconds *= 1.2;
	blocks[2].read.seconds /= 1.2;
	(void)stages_alone_ratio(blocks, 4, "decode", "step", &error, &least);
	assert_true(error > ALONE_ERROR_MOST);
}

static void what_changes_meanwhile_is_none_of_a_stage(void **state)
{
	(void)state;
	struct read_block blocks[4];
	struct alone_arm arms[ALONE_ARMS_MAX];
	double error;
	double least;
	alone_blocks(1000, 1100, 0.1, "decode", blocks);
	const double ratio = stages_alone_ratio(blocks, 4, "decode", "step", &error, &least);
	assert_true(fabs(ratio - log(1.1)) < 1e-9 && error > 0.005 && error < 0.05);
	assert_true(fabs(stages_alone_ratio(blocks, 4, "step", "decode", &error, &least) + ratio) <
		    1e-9);
	assert_true(isnan(stages_alone_ratio(blocks, 3, "decode", "step", &error, &least)));
	assert_true(isnan(stages_alone_ratio(blocks, 4, "decode", "upload", &error, &least)));
	/* Of two rounds the later one counts. */
	struct read_block rounds[8];
	alone_blocks(1000, 2000, 0, "decode", rounds);
	alone_blocks(1000, 1100, 0.1, "decode", rounds + 4);
	for (size_t i = 4; i < 8; i++)
		rounds[i].round = 1;
	assert_true(fabs(stages_alone_ratio(rounds, 8, "decode", "step", &error, &least) - ratio) <
		    1e-9);
	/* They are no reads at other depths. */
	assert_int_equal(reads_alone_arms(blocks, 4, arms), 0);
}

static void nobody_busy_is_the_queue(void **state)
{
	(void)state;
	static struct measurement m;
	hand_made(&m, (struct shares){0.3, 0, 0.7}, (struct shares){0.62, 0.02, 0.36},
		(struct shares){0.6, 0.4, 0});
	const struct point_facts facts = hand_facts();
	const struct verdict v = judge(&m, &facts);
	expect(&v, "prefetch", "depth");
	assert_string_equal(v.also, "decode");
	assert_true(v.confidence <= 0.5);
	assert_true(says(&v, "prefetch.depth = 4"));
}

static void refuse(struct measurement *m, const char *why)
{
	const struct point_facts facts = hand_facts();
	const struct verdict v = judge(m, &facts);
	expect(&v, "none", "unknown");
	assert_true(v.confidence <= 0.2);
	if (!says(&v, why))
		fail_msg("'%s' does not say '%s'", v.evidence[0], why);
	assert_true(v.advice[0]); /* the way out */
}

static void contradictions_are_refused(void **state)
{
	(void)state;
	static struct measurement m;
	decode_bound(&m);
	m.accounted = 0.95;
	refuse(&m, "95.0 %");
	decode_bound(&m);
	m.accounted = NAN;
	refuse(&m, "unknown");
	decode_bound(&m);
	m.status = MEASUREMENT_UNSTEADY;
	refuse(&m, "the throughput was not steady");
	measurement_note(&m, "unsteady: it drifts");
	refuse(&m, "unsteady: it drifts");
	decode_bound(&m);
	m.status = MEASUREMENT_FAILED;
	refuse(&m, "no repetition succeeded");
	decode_bound(&m);
	m.stage_count = 0;
	refuse(&m, "profiler");
	decode_bound(&m);
	m.stages[0].items = 13000;
	refuse(&m, "flow is not conserved");
	decode_bound(&m);
	set_read_latency(&m, 0.020);
	refuse(&m, "Little's law fails at read");
	decode_bound(&m);
	memset(&m.stages[1].service, 0, sizeof m.stages[1].service);
	histogram_add(&m.stages[1].service, 2500000, 11900);
	refuse(&m, "Little's law fails at decode");
}

/* Nothing a file may hold makes it crash or say nothing. */
static void garbage_is_survived(void **state)
{
	(void)state;
	static struct measurement m;
	struct rng rng;
	rng_init(&rng, SEED, 3);
	static const double odd[] = {0, -1, 1e300, 1e-300, NAN, INFINITY, 0.5, 1};
	for (int i = 0; i < 2000; i++) {
		decode_bound(&m);
		m.stage_count = rng_below(&rng, HAND_STAGES + 1);
		for (size_t s = 0; s < HAND_STAGES; s++) {
			m.stages[s].seconds[rng_below(&rng, THREAD_STATES)] =
				odd[rng_below(&rng, 8)];
			m.stages[s].capacity = odd[rng_below(&rng, 8)];
			m.stages[s].cpu_seconds = odd[rng_below(&rng, 8)];
		}
		m.accounted = odd[rng_below(&rng, 8)];
		const struct point_facts facts = {.cores = (unsigned)rng_below(&rng, 2)};
		const struct verdict v = judge(&m, &facts);
		assert_true(v.stage[0] && v.resource[0] && v.evidence_count > 0);
		assert_non_null(limit_kind_find(v.stage, v.resource));
		assert_true(v.confidence >= 0 && v.confidence <= 1);
	}
}

/* A thread that wakes up late is no busy device: what the device computes follows from its nominal time. */
static void a_late_thread_is_no_busy_device(void **state)
{
	(void)state;
	struct measurement m;
	hand_made(&m, (struct shares){0.05, 0, 0.95}, (struct shares){0.1, 0, 0.9},
		(struct shares){0.97, 0.03, 0});
	const struct point_facts facts = hand_facts();
	struct verdict v = judge(&m, &facts);
	expect(&v, "step", "compute");
	assert_true(says(&v, "computes 97.0 %") && says(&v, "97.0 % of its thread's time"));
	assert_false(says(&v, "was late"));
	const double sure = v.confidence;
	m.stages[2].capacity = 1190 / 0.7;
	v = judge(&m, &facts);
	expect(&v, "step", "compute");
	assert_true(says(&v, "computes 70.0 %") && says(&v, "for another 27.0 %"));
	assert_true(says(&v, "leave it a core") && !says(&v, "full rate"));
	assert_true(v.confidence < sure);
	/* Late for most of its time, while others have the cores: they limit it, not the device. */
	m.stages[2].capacity = 1190 / 0.1;
	m.stages[2].cpu_seconds = 0.02 * m.stages[2].seconds[THREAD_WORKING];
	m.stages[2].run_queue_seconds = 0.8 * m.stages[2].seconds[THREAD_WORKING];
	v = judge(&m, &facts);
	expect(&v, "step", "compute"); /* nobody else is busy */
	m.cores_busy_outside = facts.cores;
	v = judge(&m, &facts);
	expect(&v, "step", "external");
	assert_true(says(&v, "waits for a core 80 % of its working time"));
	m.cores_busy_outside = 0;
	m.step_utilisation =
		NAN; /* of a run in progress nothing but its threads' states is known */
	v = judge(&m, &facts);
	assert_true(says(&v, "97.0 % of the time, late wake-ups included"));
}

static bool says_overhead(
	const struct measurement *m, const struct point_facts *facts, const char *text)
{
	const struct verdict v = judge(m, facts);
	return says(&v, text);
}

/* What is declared for somebody's loader is told apart from the rest of the stage's time: 11,900 samples in 10 s of two
 * workers take 1.66 ms each. */
static void declared_overhead_is_told(void **state)
{
	(void)state;
	struct measurement m;
	struct point_facts facts = hand_facts();
	decode_bound(&m);
	assert_false(says_overhead(&m, &facts, "declared overhead"));
	facts.overhead_sample_ns = 0.6e6;
	facts.overhead_batch_ns = 6.4e6;
	assert_true(says_overhead(&m, &facts,
		"700 us of the 1.66 ms that a sample takes a worker are the declared overhead of the loader"));
	/* Of a step that is the bottleneck, only what its own thread spends. */
	hand_made(&m, (struct shares){0.29, 0, 0.71}, (struct shares){0.4, 0, 0.6},
		(struct shares){0.99, 0.01, 0});
	assert_false(says_overhead(&m, &facts, "declared overhead"));
	facts.overhead_step_ns = 8e6;
	assert_true(says_overhead(&m, &facts,
		"8.00 ms of the 53.2 ms that a batch takes the step's thread are the declared overhead"));
	/* In what an emulated step could take, that is its thread's time between two steps: 8 ms of each 64 samples. */
	const struct measurement *repeats[] = {&m, &m, &m};
	struct point_summary point;
	struct error err;
	for (int emulated = 0; emulated < 2; emulated++) {
		m.facts.step_emulated = emulated != 0;
		assert_int_equal(summary_of_point(repeats, 3, &facts, &point, &err), 0);
		const struct stage_summary *step = summary_stage(&point, "step");
		const double ms = 1e3 / step->capacity + (emulated ? 8.0 / 64 : 0);
		assert_true(fabs(summary_step_takes(&point, step) * ms / 1e3 - 1) < 1e-9);
		point_summary_release(&point);
	}
}

/* Service times and what is spent once for each batch together are the workers' time. */
static void littles_law_counts_the_batches(void **state)
{
	(void)state;
	struct measurement m;
	struct point_facts facts = hand_facts();
	decode_bound(&m);
	m.stages[1].service = (struct histogram){0};
	histogram_add(&m.stages[1].service, 1000000, 11900);
	struct verdict v = judge(&m, &facts);
	assert_true(says(&v, "Little's law fails at decode"));
	m.stages[1].overhead_seconds = 19.74 - 11.9;
	v = judge(&m, &facts);
	expect(&v, "decode", "cpu");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declared_overhead_is_told),
		cmocka_unit_test(littles_law_counts_the_batches),
		cmocka_unit_test(decode_on_the_cpu),
		cmocka_unit_test(too_few_cores),
		cmocka_unit_test(a_lock),
		cmocka_unit_test(no_schedstat_is_no_guess),
		cmocka_unit_test(reads_are_told_apart_by_other_points),
		cmocka_unit_test(a_busy_step_is_no_fault),
		cmocka_unit_test(a_step_that_stands_still_for_checkpoints),
		cmocka_unit_test(a_step_that_stands_still_for_evaluations),
		cmocka_unit_test(workers_that_start_anew),
		cmocka_unit_test(two_that_bind),
		cmocka_unit_test(stages_alone_tell_a_pair_from_one),
		cmocka_unit_test(stages_alone_that_the_run_contradicts_count_for_nothing),
		cmocka_unit_test(what_changes_meanwhile_is_none_of_a_stage),
		cmocka_unit_test(nobody_busy_is_the_queue),
		cmocka_unit_test(contradictions_are_refused),
		cmocka_unit_test(garbage_is_survived),
		cmocka_unit_test(a_late_thread_is_no_busy_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
