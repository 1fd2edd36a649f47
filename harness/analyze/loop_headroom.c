/* Blocks of the log, rounds of blocks, and what their rates say. */
#include "harness/analyze/loop_headroom.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static const double LEVEL = 0.95, DRIFT_ERROR_RATE = 0.01;
static const double WORTH = 0.03;     /* a gain below it is none */
static const double DRIFT = 0.05;     /* ln, between the halves of a block */
static const double CHANGE = 0.1;     /* ln, of the gain from one half of the rounds to the other */
static const double WIDE = 0.4;       /* ln, an interval */
static const double DISTURBED = 0.25; /* ln, below the median of its side */
enum { BLOCK_STEPS_LEAST = 4, CHANGE_ROUNDS_LEAST = 6 };

const char *loop_side_name(enum loop_side side)
{
	static const char *const names[LOOP_SIDES] = {
		[LOOP_NOT_COUNTED] = "-",
		[LOOP_LOADER] = "loader",
		[LOOP_CACHED] = "cached",
		[LOOP_BUSY] = "busy",
	};
	return names[side];
}

struct loop_part {
	double samples, seconds;
};

/* One block: steps of one side with none but marks between them. */
struct loop_block {
	enum loop_side side;
	size_t first, end; /* of the log */
	size_t steps;
	struct loop_part whole, halves[2];
	double waits_s;
};

struct loop_work {
	const struct loop_step *steps;
	size_t count;
	struct loop_block blocks[LOOP_SIDES * LOOP_ROUNDS_MAX];
	size_t block_count;
	/* Of each round; NAN: it has no block of that side.  drifts: ln of the rate of a block's second half over its first. */
	double rates[LOOP_SIDES][LOOP_ROUNDS_MAX];
	double drifts[LOOP_SIDES][LOOP_ROUNDS_MAX];
	size_t rounds;
};

static bool loop_is_mark(const struct loop_step *step)
{
	return step->side == LOOP_NOT_COUNTED && isnan(step->samples);
}

/* Where nobody knows the samples of a batch, steps are counted. */
static double loop_samples(const struct loop_step *step)
{
	return step->samples > 0 ? step->samples : 1;
}

static double loop_rate_of(const struct loop_part *part)
{
	return part->seconds > 0 ? part->samples / part->seconds : (double)NAN;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static double loop_step_s(const struct loop_work *work, size_t i)
{
	return fmax(0, work->steps[i].end_s - work->steps[i - 1].end_s);
}

static void loop_add_up(const struct loop_work *work, struct loop_block *block)
{
	double total = 0;
	for (size_t i = block->first; i < block->end; i++)
		total += loop_is_mark(&work->steps[i]) ? 0 : loop_step_s(work, i);
	for (size_t i = block->first; i < block->end; i++) {
		const struct loop_step *step = &work->steps[i];
		if (loop_is_mark(step))
			continue;
		struct loop_part *half = &block->halves[2 * block->whole.seconds >= total];
		half->samples += loop_samples(step);
		half->seconds += loop_step_s(work, i);
		block->whole.samples += loop_samples(step);
		block->whole.seconds += loop_step_s(work, i);
		block->waits_s += isnan(step->wait_s) ? 0 : step->wait_s;
		block->steps++;
	}
}

/* The first step of a log has no step before it that tells when it began. */
static void loop_find_blocks(struct loop_work *work)
{
	size_t i = 1;
	while (i < work->count && work->block_count < sizeof work->blocks / sizeof *work->blocks) {
		const enum loop_side side = work->steps[i].side;
		struct loop_block block = {.side = side, .first = i};
		if (side == LOOP_NOT_COUNTED) {
			i++;
			continue;
		}
		while (i < work->count &&
			(work->steps[i].side == side || loop_is_mark(&work->steps[i])))
			i++;
		block.end = i;
		loop_add_up(work, &block);
		work->blocks[work->block_count++] = block;
	}
}

/* Blocks that are much shorter than the others of their side: the job ended in them. */
static void loop_drop_torn(struct loop_work *work, struct loop_headroom *out)
{
	double least[LOOP_SIDES];
	size_t kept = 0;
	for (int side = 0; side < LOOP_SIDES; side++) {
		double steps[LOOP_SIDES * LOOP_ROUNDS_MAX];
		size_t count = 0;
		for (size_t i = 0; i < work->block_count; i++)
			if (work->blocks[i].side == (enum loop_side)side)
				steps[count++] = (double)work->blocks[i].steps;
		least[side] = fmax(
			BLOCK_STEPS_LEAST, count > 0 ? statistics_median(steps, count) / 2 : 0);
	}
	for (size_t i = 0; i < work->block_count; i++)
		if ((double)work->blocks[i].steps >= least[work->blocks[i].side])
			work->blocks[kept++] = work->blocks[i];
	out->torn = work->block_count - kept;
	work->block_count = kept;
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* A round ends where a side comes again. */
static void loop_find_rounds(struct loop_work *work)
{
	unsigned seen = 0;
	for (int side = 0; side < LOOP_SIDES; side++)
		for (size_t r = 0; r < LOOP_ROUNDS_MAX; r++)
			work->rates[side][r] = work->drifts[side][r] = NAN;
	for (size_t i = 0; i < work->block_count; i++) {
		const struct loop_block *block = &work->blocks[i];
		if (work->rounds == 0 || seen & 1U << block->side) {
			if (work->rounds == LOOP_ROUNDS_MAX)
				break;
			work->rounds++;
			seen = 0;
		}
		seen |= 1U << block->side;
		work->rates[block->side][work->rounds - 1] = loop_rate_of(&block->whole);
		work->drifts[block->side][work->rounds - 1] =
			log(loop_rate_of(&block->halves[1]) / loop_rate_of(&block->halves[0]));
	}
}

/* The finite ones. */
static size_t loop_known(const double *values, size_t count, double *out)
{
	size_t known = 0;
	for (size_t i = 0; i < count; i++)
		if (isfinite(values[i]))
			out[known++] = values[i];
	return known;
}

/* ln(over / under) of each round that has both. */
static size_t loop_ratios(
	const struct loop_work *work, enum loop_side over, enum loop_side under, double *out)
{
	double all[LOOP_ROUNDS_MAX];
	for (size_t r = 0; r < work->rounds; r++)
		all[r] = log(work->rates[over][r] / work->rates[under][r]);
	return loop_known(all, work->rounds, out);
}

static struct loop_gain loop_gain_of(
	const struct loop_work *work, enum loop_side over, enum loop_side under)
{
	double ratios[LOOP_ROUNDS_MAX];
	const size_t count = loop_ratios(work, over, under, ratios);
	const struct interval d = statistics_bootstrap_median(ratios, count, LEVEL, 1);
	return (struct loop_gain){.value = expm1(statistics_median(ratios, count)),
		.interval = {expm1(d.low), expm1(d.high)},
		.rounds = count};
}

static void loop_find_side(const struct loop_work *work, enum loop_side side, struct loop_rate *out)
{
	double known[LOOP_ROUNDS_MAX];
	double seconds = 0;
	double waits_s = 0;
	const size_t count = loop_known(work->rates[side], work->rounds, known);
	out->samples_per_s = statistics_median(known, count);
	for (size_t i = 0; i < work->block_count; i++) {
		const struct loop_block *block = &work->blocks[i];
		if (block->side != side)
			continue;
		out->blocks++;
		out->steps += block->steps;
		seconds += block->whole.seconds;
		waits_s += block->waits_s;
	}
	out->waits = seconds > 0 ? waits_s / seconds : (double)NAN;
}

static void loop_find_disturbed(const struct loop_work *work, struct loop_headroom *out)
{
	for (int side = LOOP_LOADER; side < LOOP_SIDES; side++) {
		size_t slow = 0;
		for (size_t r = 0; r < work->rounds; r++)
			slow += log(work->rates[side][r] / out->sides[side].samples_per_s) <
				-DISTURBED;
		if (slow > out->disturbed) {
			out->disturbed = slow;
			out->disturbed_side = (enum loop_side)side;
		}
	}
}

/* --- the verdict ------------------------------------------------------------------------------ */

/* A side of which the blocks become faster or slower from their first half to their second; NOT_COUNTED: none. */
static enum loop_side loop_drifts(const struct loop_work *work, double *drift)
{
	for (int side = LOOP_LOADER; side < LOOP_SIDES; side++) {
		double known[LOOP_ROUNDS_MAX];
		const size_t count = loop_known(work->drifts[side], work->rounds, known);
		const struct paired_estimate d =
			paired_estimate_of(known, count, NULL, DRIFT_ERROR_RATE);
		*drift = d.value;
		if (fabs(d.value) > DRIFT && (d.interval.low > 0 || d.interval.high < 0))
			return (enum loop_side)side;
	}
	return LOOP_NOT_COUNTED;
}

/* Whether the gain of the first half of the rounds and that of the others exclude each other. */
static bool loop_changes(const struct loop_work *work, double gains[2])
{
	double d[LOOP_ROUNDS_MAX];
	const size_t count = loop_ratios(work, LOOP_CACHED, LOOP_LOADER, d);
	const size_t half = count / 2;
	if (count < CHANGE_ROUNDS_LEAST)
		return false;
	const struct paired_estimate a = paired_estimate_of(d, half, NULL, 1 - LEVEL);
	const struct paired_estimate b =
		paired_estimate_of(d + half, count - half, NULL, 1 - LEVEL);
	gains[0] = expm1(a.value);
	gains[1] = expm1(b.value);
	return fabs(a.value - b.value) > CHANGE &&
	       (a.interval.high < b.interval.low || b.interval.high < a.interval.low);
}

/* Rounds until the interval excludes 0, or what is worth anything; it narrows as their square root grows. */
static double loop_rounds_needed(const struct loop_gain *gain)
{
	const double half = (gain->interval.high - gain->interval.low) / 2;
	const double margin = fmax(fabs(gain->value), fabs(WORTH - gain->value));
	const double factor = half / fmax(margin, WORTH / 2);
	return (double)statistics_round_up(
		(double)gain->rounds * fmax(factor * factor, 1.0 + 1.0 / (double)gain->rounds));
}

/* So many blocks of a side are disturbed that the interval is of the disturbance. */
static bool loop_is_disturbed(const struct loop_headroom *out)
{
	return 3 * out->disturbed >= out->sides[out->disturbed_side].blocks &&
	       log((1 + out->gain.interval.high) / (1 + out->gain.interval.low)) > WIDE;
}

#define LOOP_SAY(...) ((void)snprintf(out->why, sizeof out->why, __VA_ARGS__))

static void loop_judge(const struct loop_work *work, struct loop_headroom *out)
{
	const struct loop_gain *gain = &out->gain;
	double gains[2];
	double drift;
	const enum loop_side drifts = loop_drifts(work, &drift);
	if (gain->rounds < LOOP_ROUNDS_LEAST) {
		LOOP_SAY(
			"The log has %zu complete round%s, and the interval takes %d at least: let the job go on.",
			gain->rounds, gain->rounds == 1 ? "" : "s", LOOP_ROUNDS_LEAST);
	} else if (drifts != LOOP_NOT_COUNTED) {
		LOOP_SAY(
			"The loop is not steady: blocks of side '%s' become %.0f %% %s from their first half "
			"to their second. Use longer blocks (block_s), of at least one period of what "
			"recurs in the job.",
			loop_side_name(drifts), 100 * fabs(expm1(drift)),
			drift > 0 ? "faster" : "slower");
	} else if (loop_changes(work, gains)) {
		LOOP_SAY(
			"The loop is not steady: the gain is %.0f %% in the first half of the rounds and "
			"%.0f %% in the second. Something changed meanwhile; look at each half alone, or "
			"measure again on a quiet node.",
			100 * gains[0], 100 * gains[1]);
	} else if (loop_is_disturbed(out)) {
		LOOP_SAY(
			"Side '%s' was disturbed: %zu of its %zu blocks are more than 22 %% slower than the "
			"median. Measure again on a quiet node.",
			loop_side_name(out->disturbed_side), out->disturbed,
			out->sides[out->disturbed_side].blocks);
	} else if (gain->interval.low > 0) {
		out->verdict = LOOP_HEADROOM_SOME;
	} else if (gain->interval.high < WORTH) {
		out->verdict = LOOP_HEADROOM_NONE;
	} else {
		LOOP_SAY("The rounds show neither a gain nor that there is none: about %.0f rounds "
			 "would decide.",
			loop_rounds_needed(gain));
	}
}

void loop_headroom_find(const struct loop_step *steps, size_t count, struct loop_headroom *out)
{
	struct loop_work work = {.steps = steps, .count = count};
	*out = (struct loop_headroom){0};
	loop_find_blocks(&work);
	loop_drop_torn(&work, out);
	loop_find_rounds(&work);
	for (int side = LOOP_LOADER; side < LOOP_SIDES; side++)
		loop_find_side(&work, (enum loop_side)side, &out->sides[side]);
	loop_find_disturbed(&work, out);
	out->gain = loop_gain_of(&work, LOOP_CACHED, LOOP_LOADER);
	out->waiting = loop_gain_of(&work, LOOP_BUSY, LOOP_LOADER);
	out->cores = loop_gain_of(&work, LOOP_CACHED, LOOP_BUSY);
	loop_judge(&work, out);
}
