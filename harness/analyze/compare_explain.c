/* Shapley values of stages, by replays that share their random numbers. */
#include "harness/analyze/compare_explain.h"

#include "harness/analyze/point_model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SUBSETS_MAX = 1 << EXPLAIN_PARTS_MAX,
	SAMPLES_PER_REPLAY = 4000,
	PART_SHAPE = REPLAY_STAGES, /* the parts beyond the stages */
	PART_CORES,
};

/* A smaller effect is rounding of a sum. */
static const double EFFECT_LEAST = 1e-6;

/* --- the game: players, and ln of what each subset of them is worth --------------------------- */

static unsigned members(unsigned subset)
{
	return (unsigned)__builtin_popcount(subset);
}

static double factorial(unsigned n)
{
	return tgamma(n + 1.0);
}

/* worth: (1 << players). */
static double shapley(const double *worth, unsigned players, unsigned player)
{
	double sum = 0;
	for (unsigned subset = 0; subset < 1U << players; subset++) {
		if (subset & (1U << player))
			continue;
		const unsigned before = members(subset);
		const double weight =
			factorial(before) * factorial(players - before - 1) / factorial(players);
		sum += weight * (worth[subset | (1U << player)] - worth[subset]);
	}
	return sum;
}

static int order_parts(const void *left, const void *right)
{
	const double a = fabs(((const struct explain_part *)left)->effect);
	const double b = fabs(((const struct explain_part *)right)->effect);
	return (a < b) - (a > b);
}

static void divide(struct explanation *out, const double *worth, unsigned players,
	const char (*names)[NAME_BYTES])
{
	out->explained = worth[(1U << players) - 1] - worth[0];
	out->part_count = 0;
	for (unsigned i = 0; i < players; i++) {
		const double effect = shapley(worth, players, i);
		if (fabs(effect) < EFFECT_LEAST)
			continue;
		struct explain_part *part = &out->parts[out->part_count++];
		part->effect = effect;
		memcpy(part->name, names[i], NAME_BYTES);
	}
	qsort(out->parts, out->part_count, sizeof *out->parts, order_parts);
}

/* --- by replay -------------------------------------------------------------------------------- */

/* Worker factors as long as the larger side's, so that either shape finds its own. */
struct side_factors {
	float *a, *b; /* NULL: alike; owned */
};

static float *widened(const struct replay_model *replay, unsigned workers)
{
	float *factor = replay->worker_factor ? malloc(workers * sizeof *factor) : NULL;
	for (unsigned i = 0; factor && i < workers; i++)
		factor[i] = i < replay->shape.decode_workers ? replay->worker_factor[i] : 1;
	return factor;
}

static int side_factors_open(
	struct side_factors *factors, const struct model *a, const struct model *b)
{
	const unsigned left = a->replay.shape.decode_workers;
	const unsigned right = b->replay.shape.decode_workers;
	const unsigned most = left > right ? left : right;
	*factors = (struct side_factors){widened(&a->replay, most), widened(&b->replay, most)};
	const bool bad = (a->replay.worker_factor && !factors->a) ||
			 (b->replay.worker_factor && !factors->b);
	return bad ? -ENOMEM : 0;
}

static void side_factors_close(struct side_factors *factors)
{
	free(factors->a);
	free(factors->b);
}

static void give_stage(struct replay_model *to, const struct replay_model *from,
	enum replay_stage stage, const float *factor)
{
	for (int c = 0; c < COSTS; c++) {
		if (model_cost_stage((enum replay_cost)c) != stage)
			continue;
		to->series[c] = from->series[c];
		to->scale[c] = from->scale[c];
	}
	if (stage == REPLAY_DECODE) {
		to->worker_factor = factor;
		to->visit_ns = from->visit_ns;
		to->lock_off_cores = from->lock_off_cores;
	}
	if (stage == REPLAY_UPLOAD)
		to->copies_off_cores = from->copies_off_cores;
	if (stage == REPLAY_STEP)
		to->device_factor = from->device_factor;
}

static void give_cores(struct replay_model *to, const struct replay_model *from)
{
	to->cores = from->cores;
	to->quota = from->quota;
	to->outside = from->outside;
	to->slice_ns = from->slice_ns;
	to->contention = from->contention;
	to->wake_ns = from->wake_ns;
}

static void give(struct replay_model *to, const struct replay_model *from, unsigned part,
	const struct side_factors *factors)
{
	if (part == PART_SHAPE)
		to->shape = from->shape;
	else if (part == PART_CORES)
		give_cores(to, from);
	else
		give_stage(to, from, (enum replay_stage)part, factors->b);
}

static bool same_series(const struct replay_model *a, const struct replay_model *b, unsigned stage)
{
	for (int c = 0; c < COSTS; c++)
		if ((unsigned)model_cost_stage((enum replay_cost)c) == stage &&
			(a->series[c].count > 0 || b->series[c].count > 0))
			return false;
	return true;
}

static bool same_pipeline_shape(const struct pipeline_shape *a, const struct pipeline_shape *b)
{
	return a->reader_threads == b->reader_threads && a->read_depth == b->read_depth &&
	       a->blobs == b->blobs && a->decode_workers == b->decode_workers &&
	       a->batch_size == b->batch_size && a->prefetch_depth == b->prefetch_depth &&
	       a->slots == b->slots && a->staging_slots == b->staging_slots &&
	       a->devices == b->devices && a->in_order == b->in_order &&
	       a->step_threads == b->step_threads;
}

/* Parts that are the same in both need no replays. */
static bool plays(const struct replay_model *a, const struct replay_model *b, unsigned part)
{
	if (part == PART_SHAPE)
		return !same_pipeline_shape(&a->shape, &b->shape);
	if (part == PART_CORES)
		return a->cores != b->cores || a->quota != b->quota || a->outside != b->outside ||
		       a->contention != b->contention || a->slice_ns != b->slice_ns;
	return !same_series(a, b, part);
}

static void name_part(unsigned part, char name[NAME_BYTES])
{
	static const char *const names[EXPLAIN_PARTS_MAX] = {STAGE_READ_NAME, STAGE_DECODE_NAME,
		STAGE_UPLOAD_NAME, STAGE_STEP_NAME, STAGE_SYNC_NAME, "threads and buffers",
		"cores"};
	(void)snprintf(name, NAME_BYTES, "%s", names[part]);
}

static int worth_of(const struct model *model, const struct replay_model *replay, double *worth,
	struct error *err)
{
	struct model like = *model; /* borrowed: options look at its shape */
	struct replay_result result;
	like.replay = *replay;
	const struct replay_options options = model_options(&like, SAMPLES_PER_REPLAY);
	const int code = replay_run(replay, &options, &result, err);
	*worth = code ? NAN : log(result.throughput);
	return code;
}

/* Replays of A with the parts of each subset taken from B. */
static int play(const struct model *a, const struct model *b, const unsigned *parts,
	unsigned players, double *worth, struct error *err)
{
	struct side_factors factors;
	int code = side_factors_open(&factors, a, b);
	for (unsigned subset = 0; subset < 1U << players && !code; subset++) {
		struct replay_model replay = a->replay;
		replay.worker_factor = factors.a;
		for (unsigned i = 0; i < players; i++)
			if (subset & (1U << i))
				give(&replay, &b->replay, parts[i], &factors);
		code = worth_of(a, &replay, &worth[subset], err);
	}
	side_factors_close(&factors);
	return code;
}

int explain_by_replay(const struct model *a, const struct model *b, double measured,
	struct explanation *out, struct error *err)
{
	unsigned parts[EXPLAIN_PARTS_MAX];
	char names[EXPLAIN_PARTS_MAX][NAME_BYTES];
	unsigned players = 0;
	double *worth = calloc(SUBSETS_MAX, sizeof *worth);
	if (!worth)
		return error_set(err, -ENOMEM, "out of memory for an explanation");
	*out = (struct explanation){.replayed = true, .measured = measured};
	for (unsigned part = 0; part < EXPLAIN_PARTS_MAX; part++)
		if (plays(&a->replay, &b->replay, part)) {
			name_part(part, names[players]);
			parts[players++] = part;
		}
	const int code = play(a, b, parts, players, worth, err);
	if (!code)
		divide(out, worth, players, (const char(*)[NAME_BYTES])names);
	free(worth);
	return code;
}

/* --- by capacities ---------------------------------------------------------------------------- */

static double least_capacity(const struct explain_capacity *stages, size_t count, unsigned subset)
{
	double least = NAN; /* fmin passes over it */
	for (size_t i = 0; i < count; i++)
		least = fmin(least, subset & (1U << i) ? stages[i].b : stages[i].a);
	return least;
}

void explain_by_capacities(const struct explain_capacity *stages, size_t count, double measured,
	struct explanation *out)
{
	double worth[SUBSETS_MAX];
	char names[EXPLAIN_PARTS_MAX][NAME_BYTES];
	const size_t used = count < EXPLAIN_PARTS_MAX ? count : EXPLAIN_PARTS_MAX;
	for (size_t i = 0; i < used; i++)
		memcpy(names[i], stages[i].stage, NAME_BYTES);
	bool known = true;
	for (unsigned subset = 0; subset < 1U << used; subset++) {
		worth[subset] = log(least_capacity(stages, used, subset));
		known = known && isfinite(worth[subset]);
	}
	out->replayed = false;
	out->measured = measured;
	out->explained = known ? 0 : (double)NAN;
	out->part_count = 0;
	if (known)
		divide(out, worth, (unsigned)used, (const char(*)[NAME_BYTES])names);
}
