/* The bar stands within each block: broken + pass * (best - broken) of that block itself, so that what changes over minutes
 * (other jobs, clocks, heat) moves the bar, too.  What is judged is ln(yours / bar), block by block. */
#include "harness/lab/lab_judge.h"

#include "harness/analyze/paired_test.h"

#include <math.h>

/* The least that the best setting must gain over the broken one: below it, a share of it means nothing. */
static const double LAB_GAIN_LEAST = 0.05;

/* ln(yours / bar) and ln(best / broken) of the blocks that count; returns how many. */
static size_t lab_blocks_take(const struct lab_block *blocks, size_t count, double pass,
	double above[LAB_BLOCKS_MOST], double gain[LAB_BLOCKS_MOST],
	double rates[3][LAB_BLOCKS_MOST])
{
	size_t kept = 0;
	for (size_t i = 0; i < count && kept < LAB_BLOCKS_MOST; i++) {
		const struct lab_block *b = &blocks[i];
		const double bar = b->broken + pass * (b->best - b->broken);
		if (!(b->broken > 0 && b->yours > 0 && b->best > 0) || !(bar > 0))
			continue;
		above[kept] = log(b->yours / bar);
		gain[kept] = log(b->best / b->broken);
		rates[0][kept] = b->broken;
		rates[1][kept] = b->yours;
		rates[2][kept++] = b->best;
	}
	return kept;
}

struct lab_judgement lab_judge(
	const struct lab_block *blocks, size_t count, double pass, double rate)
{
	double above[LAB_BLOCKS_MOST];
	double gain[LAB_BLOCKS_MOST];
	double rates[3][LAB_BLOCKS_MOST];
	struct lab_judgement j = {.gain = LAB_GAIN_OPEN,
		.median = {NAN, NAN, NAN},
		.share = NAN,
		.interval = {-INFINITY, INFINITY}};
	j.blocks = lab_blocks_take(blocks, count, pass, above, gain, rates);
	if (j.blocks == 0)
		return j;
	const struct paired_estimate of_gain = paired_estimate_of(gain, j.blocks, NULL, rate);
	const struct paired_estimate of_bar = paired_estimate_of(above, j.blocks, NULL, rate);
	j.median = (struct lab_block){statistics_median(rates[0], j.blocks),
		statistics_median(rates[1], j.blocks), statistics_median(rates[2], j.blocks)};
	const double room = j.median.best - j.median.broken;
	const double bar = j.median.broken + pass * room;
	if (room > 0) {
		j.share = (bar * exp(of_bar.value) - j.median.broken) / room;
		j.interval.low = (bar * exp(of_bar.interval.low) - j.median.broken) / room;
		j.interval.high = (bar * exp(of_bar.interval.high) - j.median.broken) / room;
	}
	if (j.blocks < LAB_BLOCKS_LEAST)
		return j;
	const int shows = paired_side(&of_gain, LAB_GAIN_LEAST);
	const int side = paired_side(&of_bar, 0);
	if (shows < 0)
		j.gain = LAB_GAIN_NONE;
	else if (shows > 0 && side != 0)
		j.gain = side > 0 ? LAB_GAIN_YES : LAB_GAIN_NO;
	return j;
}

const char *lab_gain_name(enum lab_gain gain)
{
	static const char *const names[] = {"unclear", "yes", "no", "none"};
	return names[gain];
}

double lab_factor(double predicted, double measured, double floor)
{
	return exp(fabs(log(fmax(predicted, floor) / fmax(measured, floor))));
}

double lab_brier(double confidence, int hit)
{
	const double distance = confidence - (hit ? 1 : 0);
	return distance * distance;
}
