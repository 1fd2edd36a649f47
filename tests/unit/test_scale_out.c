/* Nodes that wait for the slowest: closed forms for the largest of N, and pipelines that meet at a simulated barrier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/analyze/scale_out.h"
#include "harness/base/array.h"
#include "tests/measuring.h"
#include "tests/unit/replay_fixture.h"

#include <errno.h>
#include <string.h>

enum { RECORDED = 4096, SAMPLES = 40000 };
static const double EULER = 0.5772156649;

/* --- the largest of many ---------------------------------------------------------------------- */

static double harmonic(unsigned n)
{
	double sum = 0;
	for (unsigned i = 1; i <= n; i++)
		sum += 1.0 / i;
	return sum;
}

/* Means of the maximum of 2, 4, 8 and 1,024 standard normal variables (by quadrature). */
static const struct {
	unsigned nodes;
	double maximum;
} normal_maxima[] = {{2, 0.564190}, {4, 1.029375}, {8, 1.423600}, {1024, 3.248240}};

/* Of 1, 2 ... n, without putting back: N (n + 1) / (N + 1). */
static void the_largest_of_a_few(void **state)
{
	(void)state;
	double values[1000];
	for (int i = 0; i < 1000; i++)
		values[i] = i + 1;
	for (unsigned draws = 1; draws <= 1000; draws = 3 * draws + 1)
		assert_close(
			fleet_maximum(values, 1000, draws), draws * 1001.0 / (draws + 1), 1e-9);
	assert_close(fleet_maximum(values, 1000, 1000), 1000, 1e-12);
	assert_close(fleet_maximum(values, 1000, 65536), 1000, 1e-12);
	assert_close(fleet_maximum(values, 1, 8), 1, 1e-12);
	assert_true(isnan(fleet_maximum(values, 0, 8)));
	assert_true(isnan(fleet_maximum(values, 10, 0)));
}

/* Of values that lie as the law has them. */
static void the_largest_of_a_law(void **state)
{
	(void)state;
	enum { MANY = 1 << 18 };
	double *const values = malloc(MANY * sizeof *values);
	assert_non_null(values);
	for (int i = 0; i < MANY; i++)
		values[i] = -log1p(-(i + 0.5) / MANY);
	for (unsigned n = 1; n <= 1024; n *= 4)
		assert_close(fleet_maximum(values, MANY, n), harmonic(n), 1e-3);
	struct rng rng;
	rng_init(&rng, 3, 0);
	for (int i = 0; i < MANY; i++)
		values[i] = rng_normal(&rng);
	sort_doubles(values, MANY);
	for (size_t i = 0; i < COUNT(normal_maxima); i++)
		assert_close(fleet_maximum(values, MANY, normal_maxima[i].nodes),
			normal_maxima[i].maximum, 0.01);
	free(values);
}

/* --- rounds of fleets ------------------------------------------------------------------------- */

/* A node that was recorded for RECORDED batches of one sample. */
struct node {
	struct model model;
	float input[RECORDED], step[RECORDED];
};

typedef double drawn(struct rng *rng);

static double constant_one(struct rng *rng)
{
	(void)rng;
	return 1;
}

static double uniform_one(struct rng *rng)
{
	return rng_uniform(rng);
}

static double normal_one(struct rng *rng)
{
	return 1 + 0.1 * rng_normal(rng);
}

static double nearly_one(struct rng *rng)
{
	return 0.9 + 0.2 * rng_uniform(rng);
}

static double lognormal_fifth(struct rng *rng)
{
	return exp(0.2 * rng_normal(rng));
}

static double lognormal_whole(struct rng *rng)
{
	return exp(rng_normal(rng));
}

/* P(X > x) = x^-3. */
static double pareto_three(struct rng *rng)
{
	return pow(1 - rng_uniform(rng), -1.0 / 3);
}

static double gumbel_tenth(struct rng *rng)
{
	return 1 - 0.1 * log(-log1p(-rng_uniform(rng)));
}

static struct node *node_of(drawn *input, double input_ms, drawn *step, double step_ms,
	uint32_t prefetch, uint64_t seed)
{
	struct node *const node = calloc(1, sizeof *node);
	struct rng rng;
	assert_non_null(node);
	rng_init(&rng, seed, 0);
	node->model.recorded = RECORDED;
	node->model.replay = case_plain().model;
	node->model.replay.shape.prefetch_depth = prefetch;
	node->model.replay.shape.slots = prefetch + 2;
	for (int i = 0; i < RECORDED; i++) {
		node->input[i] = (float)(MS * input_ms * input(&rng));
		node->step[i] = (float)(MS * step_ms * step(&rng));
	}
	struct replay_series *const series = node->model.replay.series;
	series[COST_DECODE_CPU] = (struct replay_series){node->input, input_ms > 0 ? RECORDED : 0};
	series[COST_STEP_DEVICE] = (struct replay_series){node->step, step_ms > 0 ? RECORDED : 0};
	return node;
}

static struct fleet_round round_of(
	struct node *node, const struct fleet_spread *spread, unsigned nodes, double pause_seconds)
{
	struct fleet_replay *replay;
	struct fleet_round round = {0};
	struct error err = {""};
	if (fleet_replay_open(&replay, &node->model, spread, SAMPLES, &err) ||
		fleet_replay_at(replay, nodes, pause_seconds, &round, &err))
		fail_msg("%s", err.text);
	fleet_replay_close(replay);
	return round;
}

static void assert_within(
	const struct fleet_round *round, double truth, const char *what, unsigned nodes)
{
	if (!(truth >= round->interval.low && truth <= round->interval.high))
		fail_msg("%s, %u nodes: %.4f is not within %.4f to %.4f (%.4f)", what, nodes, truth,
			round->interval.low, round->interval.high, round->ratio);
}

static const struct fleet_spread alike = {0};

static void equal_steps_lose_nothing(void **state)
{
	(void)state;
	struct node *const node = node_of(constant_one, 0.2, constant_one, 1, 4, 1);
	for (unsigned nodes = 1; nodes <= 8192; nodes *= 8) {
		const struct fleet_round round = round_of(node, &alike, nodes, 0);
		assert_close(round.ratio, 1, 1e-9);
		assert_close(round.interval.low, 1, 1e-6);
		assert_close(round.interval.high, 1, 1e-6);
		assert_close(round.bound, 1, 1e-6);
	}
	/* The exchange is added, where the input does not need the time. */
	assert_close(round_of(node, &alike, 4, 0.5e-3).ratio, 1.5, 1e-6);
	assert_close(round_of(node, &alike, 64, 0.5e-3).ratio, 1.5, 1e-6);
	free(node);
}

/* Without an input, a round is the largest of N steps. */
static void the_largest_step_is_waited_for(void **state)
{
	(void)state;
	struct node *const exponential = node_of(constant_one, 0, rng_exponential, 1, 4, 2);
	struct node *const uniform = node_of(constant_one, 0, uniform_one, 1, 4, 3);
	struct node *const normal = node_of(constant_one, 0, normal_one, 1, 4, 4);
	struct node *const gumbel = node_of(constant_one, 0, gumbel_tenth, 1, 4, 13);
	for (size_t i = 0; i < COUNT(normal_maxima); i++) {
		const unsigned nodes = normal_maxima[i].nodes;
		struct fleet_round round = round_of(exponential, &alike, nodes, 0);
		assert_within(&round, harmonic(nodes), "exponential", nodes);
		assert_close(round.ratio, harmonic(nodes), 0.12);
		round = round_of(uniform, &alike, nodes, 0);
		assert_within(&round, 2.0 * nodes / (nodes + 1), "uniform", nodes);
		assert_close(round.ratio, 2.0 * nodes / (nodes + 1), 0.03);
		round = round_of(normal, &alike, nodes, 0);
		assert_within(&round, 1 + 0.1 * normal_maxima[i].maximum, "normal", nodes);
		assert_close(round.ratio, 1 + 0.1 * normal_maxima[i].maximum, 0.02);
		round = round_of(gumbel, &alike, nodes, 0);
		const double largest = 1 + 0.1 * log(nodes) / (1 + 0.1 * EULER);
		assert_within(&round, largest, "Gumbel", nodes);
		assert_close(round.ratio, largest, 0.06);
		/* Without a heavy tail it is narrow. */
		assert_true(round.interval.high < 1.25 * round.interval.low);
	}
	free(exponential);
	free(uniform);
	free(normal);
	free(gumbel);
}

/* Nodes keep their speed: all wait for the one that is the slowest of the fleet. */
static void the_slowest_node_is_waited_for(void **state)
{
	(void)state;
	struct node *const node = node_of(constant_one, 0.2, constant_one, 1, 4, 5);
	const struct fleet_spread given = {.deviation = 0.03};
	for (size_t i = 0; i < COUNT(normal_maxima); i++) {
		const struct fleet_round round = round_of(node, &given, normal_maxima[i].nodes, 0);
		assert_within(&round, exp(0.03 * normal_maxima[i].maximum), "log-normal",
			normal_maxima[i].nodes);
		assert_close(round.ratio, exp(0.03 * normal_maxima[i].maximum), 0.03);
		/* The modelled node may be a slow one itself. */
		assert_true(round.interval.low < round.ratio * exp(-1.6 * 0.03));
		assert_true(isnan(round.bound));
	}
	/* Measured nodes are as fast as they were measured; of more nodes their spread is in doubt. */
	const double factors[] = {1, 1.02, 0.99, 1.2};
	const struct fleet_spread measured = {
		.deviation = 0.09, .measured = COUNT(factors), .factors = factors};
	const struct fleet_round four = round_of(node, &measured, 4, 0);
	assert_close(four.ratio, 1.2, 1e-6);
	assert_close(four.interval.high, 1.2, 1e-6);
	const struct fleet_round many = round_of(node, &measured, 64, 0);
	assert_true(many.ratio > 1.15 && many.interval.high > 1.1 * many.ratio);
	free(node);
}

/* How the recorded steps vary is known less well than how much slower the slow node is: no more than that is in doubt. */
static void a_slow_node_is_no_doubt_of_the_recording(void **state)
{
	(void)state;
	const double factors[] = {1, 1, 1, 4};
	const struct fleet_spread measured = {
		.deviation = 0.7, .measured = COUNT(factors), .factors = factors};
	struct node *const node = node_of(constant_one, 0, normal_one, 1, 4, 15);
	const struct fleet_round round = round_of(node, &measured, 4, 0);
	assert_close(round.ratio, 4, 0.01);
	assert_true(round.interval.high < 1.03 * round.interval.low);
	free(node);
}

/* --- a simulated barrier ---------------------------------------------------------------------- */

/* Rounds of `nodes` pipelines, one worker each, that meet after each step, with draws of their own: in ms. */
static double barrier(drawn *input, double input_ms, drawn *step, double step_ms, unsigned prefetch,
	unsigned nodes, unsigned rounds)
{
	const unsigned slots = prefetch + 2;
	double *const made = calloc(nodes, sizeof *made);
	double *const ends = calloc(rounds, sizeof *ends);
	struct rng rng;
	assert_true(made && ends);
	rng_init(&rng, 20261129, nodes);
	for (unsigned r = 0; r < rounds; r++) {
		const double before = r > 0 ? ends[r - 1] : 0;
		ends[r] = before;
		for (unsigned i = 0; i < nodes; i++) {
			made[i] = fmax(made[i], r >= slots ? ends[r - slots] : 0) +
				  input_ms * input(&rng);
			ends[r] = fmax(ends[r], fmax(made[i], before) + step_ms * step(&rng));
		}
	}
	const double mean = (ends[rounds - 1] - ends[rounds / 4]) / (rounds - 1 - rounds / 4);
	free(made);
	free(ends);
	return mean;
}

static const struct {
	const char *name;
	drawn *input;
	double input_ms;
	drawn *step;
	double step_ms;
	uint32_t prefetch;
} pipelines[] = {
	{"slow batches, shallow queue", rng_exponential, 1, nearly_one, 0.5, 1},
	{"slow batches, deep queue", rng_exponential, 1, nearly_one, 0.5, 16},
	{"balanced", rng_exponential, 1, nearly_one, 1, 4},
	{"step-bound, single slow batches", rng_exponential, 0.4, nearly_one, 1, 2},
	{"step-bound, uneven steps", nearly_one, 0.5, uniform_one, 2, 4},
};

/* How often the interval has the truth; a ratio is never far from it. */
struct coverage {
	unsigned within, of;
	unsigned above; /* the truth is more */
};

static void cover(
	struct coverage *coverage, const struct fleet_round *round, double truth, double tolerance)
{
	coverage->within += truth >= round->interval.low && truth <= round->interval.high;
	coverage->above += truth > round->interval.high;
	coverage->of++;
	assert_close(round->ratio, truth, tolerance);
}

static double truth_of(size_t p, unsigned nodes, unsigned rounds)
{
	return barrier(pipelines[p].input, pipelines[p].input_ms, pipelines[p].step,
		pipelines[p].step_ms, pipelines[p].prefetch, nodes, rounds);
}

/* Up to 8 nodes are replayed, more are simulated by rounds.  Each recording is another sample of the same laws. */
static void a_simulated_barrier_is_predicted(void **state)
{
	(void)state;
	enum { RECORDINGS = 4 };
	struct coverage few = {0};
	struct coverage many = {0};
	for (size_t p = 0; p < COUNT(pipelines); p++) {
		const double alone = truth_of(p, 1, 100000);
		for (unsigned nodes = 2; nodes <= 128; nodes *= nodes < 8 ? 2 : 4) {
			const double truth = truth_of(p, nodes, 100000 / nodes + 2000) / alone;
			for (uint64_t recording = 0; recording < RECORDINGS; recording++) {
				struct node *const node = node_of(pipelines[p].input,
					pipelines[p].input_ms, pipelines[p].step,
					pipelines[p].step_ms, pipelines[p].prefetch, recording);
				const struct fleet_round round = round_of(node, &alike, nodes, 0);
				if (nodes <= FLEET_MEMBERS)
					cover(&few, &round, truth, 0.06);
				else
					cover(&many, &round, truth, 0.12);
				assert_true(round.ratio <= round.bound);
				free(node);
			}
		}
	}
	assert_int_equal(few.of, 60);
	assert_in_range(few.within, 54, few.of);
	assert_int_equal(many.of, 40);
	assert_in_range(many.within, 32, many.of);
}

/* Batches that are slow enough to make nodes wait are so rare that a recording may have hardly any: the interval has that, too. */
static void rare_slow_rounds_may_be_missing(void **state)
{
	(void)state;
	enum { NODES = 64 };
	struct coverage coverage = {0};
	double less = 0;
	double more = 0;
	const double truth = barrier(rng_exponential, 0.4, nearly_one, 1, 2, NODES, 40000) /
			     barrier(rng_exponential, 0.4, nearly_one, 1, 2, 1, 1000000);
	for (uint64_t recording = 0; recording < 10; recording++) {
		struct node *const node =
			node_of(rng_exponential, 0.4, nearly_one, 1, 2, 100 + recording);
		const struct fleet_round round = round_of(node, &alike, NODES, 0);
		cover(&coverage, &round, truth, 0.05);
		less += log(round.ratio / round.interval.low);
		more += log(round.interval.high / round.ratio);
		free(node);
	}
	assert_in_range(coverage.within, 6, coverage.of);
	assert_true(more > 2 * less);
}

/* Too few samples for replays together: rounds alone are simulated. */
static void rounds_alone_will_do(void **state)
{
	(void)state;
	struct node *const node = node_of(constant_one, 0.3, uniform_one, 1, 4, 11);
	struct fleet_replay *replay;
	struct fleet_round round;
	struct error err = {""};
	assert_int_equal(fleet_replay_open(&replay, &node->model, &alike, 1, &err), 0);
	for (unsigned nodes = 2; nodes <= 128; nodes *= 4) {
		assert_int_equal(fleet_replay_at(replay, nodes, 0, &round, &err), 0);
		assert_close(round.ratio, 2.0 * nodes / (nodes + 1), 0.03);
		assert_true(isnan(round.bound));
	}
	fleet_replay_close(replay);
	free(node);
}

static void more_nodes_than_rounds_is_told(void **state)
{
	(void)state;
	struct node *const node = node_of(nearly_one, 0.5, nearly_one, 1, 4, 7);
	assert_false(round_of(node, &alike, 1024, 0).beyond);
	assert_true(round_of(node, &alike, 8192, 0).beyond);
	free(node);
}

/* A round of several devices ends with the slowest of them, and with their own exchange. */
static void nodes_of_several_devices(void **state)
{
	(void)state;
	static const float exchange = (float)(0.5 * 1e6);
	struct coverage coverage = {0};
	for (unsigned nodes = 2; nodes <= 32; nodes *= 4)
		for (uint64_t recording = 0; recording < 8; recording++) {
			struct node *const node =
				node_of(constant_one, 0, rng_exponential, 1, 8, recording);
			node->model.replay.shape.devices = 4;
			node->model.replay.shape.slots = 16;
			node->model.replay.series[COST_SYNC] = (struct replay_series){&exchange, 1};
			const struct fleet_round round = round_of(node, &alike, nodes, 0);
			cover(&coverage, &round, (harmonic(4 * nodes) + 0.5) / (harmonic(4) + 0.5),
				0.12);
			free(node);
		}
	assert_int_equal(coverage.of, 24);
	assert_in_range(coverage.within, 20, coverage.of);
}

/* --- what was measured ------------------------------------------------------------------------ */

/* Ranks that take 1, 1.1, 0.9 and 1.2 times as long, in three repetitions that are slow and fast for all of them. */
static void ranks_tell_how_they_differ(void **state)
{
	(void)state;
	static const double takes[] = {1, 1.1, 0.9, 1.2};
	static const double level[] = {0.02, 0.03, 0.015};
	double own[4][3];
	double factors[4];
	for (int i = 0; i < 4; i++)
		for (int r = 0; r < 3; r++)
			own[i][r] = takes[i] * level[r];
	struct fleet_measured measured = {.ranks = 4,
		.repeats = 3,
		.own_seconds = own[0],
		.round_seconds = 0.033,
		.exposed_seconds = 0.003};
	struct fleet_spread spread = fleet_spread_of(&measured, factors);
	double mean = 0;
	double squares = 0;
	for (int i = 0; i < 4; i++) {
		assert_close(factors[i], takes[i], 1e-9);
		mean += log(takes[i]) / 4;
	}
	for (int i = 0; i < 4; i++)
		squares += pow(log(takes[i]) - mean, 2) / 3;
	assert_close(spread.deviation, sqrt(squares), 1e-9);
	assert_int_equal(spread.measured, 4);
	assert_ptr_equal(spread.factors, factors);
	/* The slowest is done after 30 ms, of which a rank takes 22.75 on average. */
	assert_close(fleet_waiting_of(&measured), 0.03 / (0.065 / 3 * 1.05), 1e-9);
	/* With one repetition, all of it may be noise. */
	measured.repeats = 1;
	spread = fleet_spread_of(&measured, factors);
	assert_true(spread.deviation <= 0);
	for (int i = 0; i < 4; i++)
		assert_close(factors[i], 1, 1e-9);
}

/* Of equal ranks whose repetitions scatter by 5 %, next to nothing is left; of ones that differ by 10 %, most of it. */
static void noise_is_no_difference(void **state)
{
	(void)state;
	enum { RANKS = 8, REPEATS = 5, DRAWS = 200 };
	double none = 0;
	double some = 0;
	for (int draw = 0; draw < DRAWS; draw++) {
		struct rng rng;
		double own[RANKS][REPEATS];
		double factors[RANKS];
		const struct fleet_measured measured = {
			.ranks = RANKS, .repeats = REPEATS, .own_seconds = own[0]};
		rng_init(&rng, 41, (uint64_t)draw);
		for (int differ = 0; differ < 2; differ++) {
			for (int i = 0; i < RANKS; i++) {
				const double speed = differ * 0.1 * rng_normal(&rng);
				for (int r = 0; r < REPEATS; r++)
					own[i][r] = exp(speed + 0.05 * rng_normal(&rng));
			}
			*(differ ? &some : &none) +=
				pow(fleet_spread_of(&measured, factors).deviation, 2) / DRAWS;
		}
	}
	assert_true(sqrt(none) < 0.015);
	assert_close(sqrt(some), 0.1, 0.1);
}

/* The network is the one over which as much is exposed. */
static void a_network_follows_from_what_is_exposed(void **state)
{
	(void)state;
	struct fleet fleet = {.node_samples_per_s = 1000,
		.input_samples_per_s = HUGE_VAL,
		.step_seconds = 0.1,
		.batch = 100,
		.storage_bytes_per_s = HUGE_VAL,
		.gradient_bytes = 1e8,
		.network_latency_s = 1e-4,
		.exchange = FLEET_EXCHANGE_RING};
	for (fleet.overlap = 0; fleet.overlap < 1; fleet.overlap += 0.3)
		for (fleet.bucket_bytes = 5e6; fleet.bucket_bytes < 2e8; fleet.bucket_bytes *= 5)
			for (double exposed = 0.02; exposed < 1; exposed *= 3) {
				fleet.network_bytes_per_s = fleet_bandwidth_of(&fleet, 4, exposed);
				assert_close(fleet_at(&fleet, 4).exposed_seconds, exposed, 1e-9);
			}
	assert_true(isinf(fleet_bandwidth_of(&fleet, 4, 0)));
	fleet.gradient_bytes = 0;
	assert_true(isinf(fleet_bandwidth_of(&fleet, 4, 0.1)));
}

/* Ranks whose steps vary together do not wait for each other, and then more of them do not, either. */
static void waiting_is_as_measured(void **state)
{
	(void)state;
	struct node *const node = node_of(constant_one, 0, nearly_one, 1, 4, 9);
	struct fleet_replay *replay;
	struct fleet_round four;
	struct fleet_round many;
	struct fleet_round mended;
	struct error err = {""};
	assert_int_equal(fleet_replay_open(&replay, &node->model, &alike, SAMPLES, &err), 0);
	assert_int_equal(fleet_replay_at(replay, 4, 0.5e-3, &four, &err), 0);
	assert_int_equal(fleet_replay_at(replay, 256, 0.5e-3, &many, &err), 0);
	assert_close(four.waiting, 1.06, 0.01); /* 0.9 + 0.2 x 4 / 5 */
	assert_close(fleet_replay_mend(replay, &four, 1), 0, 1e-9);
	assert_int_equal(fleet_replay_at(replay, 256, 0.5e-3, &mended, &err), 0);
	assert_close(mended.ratio, 1.5, 0.02);
	/* As predicted, half of it, and more than can be believed. */
	assert_close(fleet_replay_mend(replay, &four, four.waiting), 1, 1e-9);
	assert_int_equal(fleet_replay_at(replay, 256, 0.5e-3, &mended, &err), 0);
	assert_close(mended.ratio, many.ratio, 1e-9);
	assert_close(fleet_replay_mend(replay, &four, sqrt(four.waiting)), 0.5, 1e-9);
	assert_close(fleet_replay_mend(replay, &four, 100), 2, 1e-9);
	assert_close(fleet_replay_mend(replay, &four, NAN), 2, 1e-9);
	fleet_replay_close(replay);
	free(node);
}

/* --- within a fleet --------------------------------------------------------------------------- */

static void waiting_slows_the_fleet(void **state)
{
	(void)state;
	struct node *const node = node_of(constant_one, 0.2, constant_one, 1, 4, 5);
	const double factors[] = {1, 1.2};
	const struct fleet_spread measured = {
		.deviation = 0.09, .measured = COUNT(factors), .factors = factors};
	struct fleet fleet = {.node_samples_per_s = 1000,
		.input_samples_per_s = 5000,
		.step_seconds = 1e-3,
		.batch = 1,
		.storage_bytes_per_s = HUGE_VAL};
	struct fleet_replay *replay;
	struct fleet_round rounds[2];
	struct error err = {""};
	const unsigned nodes[] = {1, 2};
	assert_int_equal(fleet_replay_open(&replay, &node->model, &measured, SAMPLES, &err), 0);
	assert_int_equal(fleet_wait_for_slowest(&fleet, replay, nodes, 2, rounds, &err), 0);
	const struct fleet_point one = fleet_at(&fleet, 1);
	const struct fleet_point two = fleet_at(&fleet, 2);
	assert_close(one.samples_per_s, 1000, 1e-9);
	assert_int_equal(one.limit, FLEET_LIMIT_STEP);
	assert_close(two.samples_per_s, 2000 / 1.2, 1e-4);
	assert_close(two.waiting_share, 1 - 1 / 1.2, 1e-3);
	assert_int_equal(two.limit, FLEET_LIMIT_SLOWEST);
	assert_int_equal(fleet_first(&fleet, FLEET_LIMIT_SLOWEST), 2);
	/* An exchange of 2 ms costs more than the slower node; a file server can hide both. */
	fleet.gradient_bytes = 1e6;
	fleet.network_bytes_per_s = 5e8;
	assert_int_equal(fleet_wait_for_slowest(&fleet, replay, nodes, 2, rounds, &err), 0);
	assert_int_equal(fleet_at(&fleet, 2).limit, FLEET_LIMIT_NETWORK);
	assert_close(fleet_at(&fleet, 2).samples_per_s, 2 / 3.2e-3, 1e-4);
	fleet.bytes_per_sample = 1e5;
	fleet.storage_bytes_per_s = 4e7;
	assert_int_equal(fleet_at(&fleet, 2).limit, FLEET_LIMIT_STORAGE);
	assert_close(fleet_at(&fleet, 2).samples_per_s, 400, 1e-9);
	fleet_replay_close(replay);
	free(node);
}

/* Between the numbers that were asked for, and beyond them. */
static void waits_are_interpolated(void **state)
{
	(void)state;
	struct fleet fleet = {.node_samples_per_s = 1000,
		.input_samples_per_s = HUGE_VAL,
		.step_seconds = 1e-3,
		.batch = 1,
		.storage_bytes_per_s = HUGE_VAL,
		.waits = {{1, 1}, {4, 1.2}, {64, 1.4}},
		.wait_count = 3};
	const struct {
		unsigned nodes;
		double factor;
	} cases[] = {{1, 1}, {2, 1.1}, {4, 1.2}, {16, 1.3}, {64, 1.4}, {1000, 1.4}};
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_close(
			fleet_at(&fleet, cases[i].nodes).efficiency, 1 / cases[i].factor, 1e-9);
}

static void a_node_that_takes_no_time_is_refused(void **state)
{
	(void)state;
	struct node *const node = node_of(constant_one, 0, constant_one, 0, 4, 1);
	struct fleet_replay *replay;
	struct error err = {""};
	assert_int_equal(fleet_replay_open(&replay, &node->model, &alike, SAMPLES, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no time"));
	fleet_replay_close(replay);
	fleet_replay_close(NULL);
	free(node);
}

/* --- how often intervals hold, and how wide they are (docs/ACCURACY.md) ------------------------ */

static const struct {
	const char *name;
	drawn *input;
	double input_ms;
	drawn *step;
	double step_ms;
	uint32_t prefetch;
} covered[] = {
	{"steps normal, 10 %", constant_one, 0, normal_one, 1, 4},
	{"steps Gumbel, 10 %", constant_one, 0, gumbel_tenth, 1, 4},
	{"steps exponential", constant_one, 0, rng_exponential, 1, 4},
	{"exponential, step 0.5, 1", rng_exponential, 1, nearly_one, 0.5, 1},
	{"exponential, step 0.5, 16", rng_exponential, 1, nearly_one, 0.5, 16},
	{"exponential, step 1, 4", rng_exponential, 1, nearly_one, 1, 4},
	{"exponential, step 2.5, 2", rng_exponential, 0.4, nearly_one, 1, 2},
	{"log-normal 20 %, step 2.5, 2", lognormal_fifth, 0.4, nearly_one, 1, 2},
	{"log-normal 20 %, step 0.7, 2", lognormal_fifth, 1, nearly_one, 0.7, 2},
	{"log-normal 100 %, step 2.5, 4", lognormal_whole, 0.25, nearly_one, 1, 4},
	{"Pareto 3, step 3, 4", pareto_three, 0.22, nearly_one, 1, 4},
};

static void intervals_are_measured(void **state)
{
	(void)state;
	enum { RECORDINGS = 20 };
	static const unsigned of[] = {8, 64, 1024};
	struct coverage all[COUNT(of)] = {{0}};
	for (size_t p = 0; p < COUNT(covered); p++) {
		const double alone = barrier(covered[p].input, covered[p].input_ms, covered[p].step,
			covered[p].step_ms, covered[p].prefetch, 1, 1000000);
		print_message("%-30s", covered[p].name);
		for (size_t n = 0; n < COUNT(of); n++) {
			const double truth =
				barrier(covered[p].input, covered[p].input_ms, covered[p].step,
					covered[p].step_ms, covered[p].prefetch, of[n],
					1000000 / of[n] + 4000) /
				alone;
			struct coverage here = {0};
			double off = 0;
			double less = 0;
			double more = 0;
			for (uint64_t recording = 0; recording < RECORDINGS; recording++) {
				struct node *const node = node_of(covered[p].input,
					covered[p].input_ms, covered[p].step, covered[p].step_ms,
					covered[p].prefetch, 52000 + recording);
				const struct fleet_round round = round_of(node, &alike, of[n], 0);
				cover(&here, &round, truth, HUGE_VAL);
				off += fabs(log(round.ratio / truth)) / RECORDINGS;
				less += (1 - round.interval.low / round.ratio) / RECORDINGS;
				more += (round.interval.high / round.ratio - 1) / RECORDINGS;
				free(node);
			}
			print_message(" | %5.2f %2u/%u (%u above) %4.1f %% -%.1f +%.1f", truth,
				here.within, here.of, here.above, 100 * off, 100 * less,
				100 * more);
			all[n].within += here.within;
			all[n].of += here.of;
		}
		print_message("\n");
	}
	for (size_t n = 0; n < COUNT(of); n++)
		print_message("%u nodes: %u of %u\n", of[n], all[n].within, all[n].of);
}

int main(void)
{
	const struct CMUnitTest measured[] = {cmocka_unit_test(intervals_are_measured)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_of_a_few),
		cmocka_unit_test(the_largest_of_a_law),
		cmocka_unit_test(equal_steps_lose_nothing),
		cmocka_unit_test(the_largest_step_is_waited_for),
		cmocka_unit_test(the_slowest_node_is_waited_for),
		cmocka_unit_test(a_slow_node_is_no_doubt_of_the_recording),
		cmocka_unit_test(a_simulated_barrier_is_predicted),
		cmocka_unit_test(rare_slow_rounds_may_be_missing),
		cmocka_unit_test(rounds_alone_will_do),
		cmocka_unit_test(more_nodes_than_rounds_is_told),
		cmocka_unit_test(nodes_of_several_devices),
		cmocka_unit_test(ranks_tell_how_they_differ),
		cmocka_unit_test(noise_is_no_difference),
		cmocka_unit_test(a_network_follows_from_what_is_exposed),
		cmocka_unit_test(waiting_is_as_measured),
		cmocka_unit_test(waiting_slows_the_fleet),
		cmocka_unit_test(waits_are_interpolated),
		cmocka_unit_test(a_node_that_takes_no_time_is_refused),
	};
	return run_tests_and_measured(tests, measured);
}
