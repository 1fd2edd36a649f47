/* Least squares over the blocks of an experiment: see reads_alone.h. */
#include "harness/analyze/reads_alone.h"

#include <math.h>
#include <string.h>

/* Of a block's ln(rate), besides what was counted: a pipeline was opened and closed for it. */
static const double BLOCK_ERROR = 0.01;
static const double UNCOUNTED_ERROR =
	0.5; /* times 1 / sqrt(files), where the rate's own error is unknown */
static const double BYTES_APART =
	1.15; /* mean sizes of the two halves, for their times to tell anything */

static double block_rate(const struct read_block *t)
{
	return t->read.seconds > 0 ? (double)t->read.files / t->read.seconds : 0;
}

static double block_error(const struct read_block *t)
{
	const double counted = UNCOUNTED_ERROR / sqrt((double)t->read.files);
	return hypot(isnan(t->read.rate_error) ? counted : t->read.rate_error, BLOCK_ERROR);
}

static bool same_arm(const struct read_block *a, const struct read_block *b)
{
	return a->value == b->value && strcmp(a->key, b->key) == 0 &&
	       strcmp(a->part, b->part) == 0 && strcmp(a->stage, b->stage) == 0;
}

/* Sums over the blocks of an arm. */
struct arm_sums {
	double n, y, t, variance, in_flight, files, bytes;
};

struct blocks {
	const struct read_block *all;
	size_t count;
	bool stages; /* those of stages, of this round; else of reads */
	uint32_t round;
	size_t arm[64]; /* of each block; ALONE_ARMS_MAX: it counts nowhere */
	struct arm_sums sums[ALONE_ARMS_MAX];
};

static void sum_blocks(struct blocks *b, struct alone_arm *arms, size_t *count)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct read_block *t = &b->all[i];
		const double rate = block_rate(t);
		size_t at = 0;
		b->arm[i] = ALONE_ARMS_MAX;
		while (at < *count && !same_arm(arms[at].first, t))
			at++;
		if (!(rate > 0) || at == ALONE_ARMS_MAX || (t->stage[0] != '\0') != b->stages ||
			(b->stages ? t->round != b->round : !(t->read.latency_mean_ns > 0)))
			continue;
		if (at == *count)
			arms[(*count)++] = (struct alone_arm){.first = t};
		struct arm_sums *s = &b->sums[at];
		b->arm[i] = at;
		s->n++;
		s->y += log(rate);
		s->t += (double)i;
		s->variance += block_error(t) * block_error(t);
		s->in_flight += log(rate * t->read.latency_mean_ns * 1e-9);
		s->files += (double)t->read.files;
		s->bytes += (double)t->read.bytes;
	}
}

/* The slope over time within arms, and what is left of each block beside it. */
static double slope_of(const struct blocks *b, double *rest, double *degrees, size_t arms)
{
	double tt = 0;
	double ty = 0;
	double yy = 0;
	double n = 0;
	for (size_t i = 0; i < b->count; i++) {
		if (b->arm[i] == ALONE_ARMS_MAX)
			continue;
		const struct arm_sums *s = &b->sums[b->arm[i]];
		const double t = (double)i - s->t / s->n;
		const double y = log(block_rate(&b->all[i])) - s->y / s->n;
		tt += t * t;
		ty += t * y;
		yy += y * y;
		n++;
	}
	const double slope = tt > 0 ? ty / tt : 0;
	*rest = fmax(yy - slope * ty, 0);
	*degrees = n - (double)arms - (tt > 0);
	return slope;
}

static size_t blocks_arms(const struct read_block *all, size_t count, bool stages,
	struct alone_arm arms[ALONE_ARMS_MAX])
{
	struct blocks b = {.all = all, .stages = stages};
	size_t arm_count = 0;
	double rest;
	double degrees;
	double middle = 0;
	double blocks = 0;
	for (size_t i = 0; i < count; i++)
		b.round = all[i].stage[0] ? all[i].round : b.round;
	b.count = count < sizeof b.arm / sizeof *b.arm ? count : sizeof b.arm / sizeof *b.arm;
	sum_blocks(&b, arms, &arm_count);
	const double slope = slope_of(&b, &rest, &degrees, arm_count);
	if (degrees < 1)
		return 0;
	for (size_t i = 0; i < arm_count; i++) {
		middle += b.sums[i].t;
		blocks += b.sums[i].n;
	}
	for (size_t i = 0; i < arm_count; i++) {
		const struct arm_sums *s = &b.sums[i];
		const double variance = fmax(rest / degrees, s->variance / s->n);
		arms[i].blocks = (unsigned)s->n;
		arms[i].in_flight = exp(s->in_flight / s->n);
		arms[i].log_rate = s->y / s->n - slope * (s->t / s->n - middle / blocks);
		arms[i].error = sqrt(variance / s->n);
		arms[i].bytes = s->files > 0 ? s->bytes / s->files : 0;
	}
	return arm_count;
}

size_t reads_alone_arms(
	const struct read_block *all, size_t count, struct alone_arm arms[ALONE_ARMS_MAX])
{
	return blocks_arms(all, count, false, arms);
}

const struct alone_arm *reads_alone_as_set(const struct alone_arm *arms, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (arms[i].first->as_set && !arms[i].first->part[0])
			return &arms[i];
	return NULL;
}

static const struct alone_arm *arm_of_part(
	const struct alone_arm *arms, size_t count, const char *part)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(arms[i].first->part, part) == 0)
			return &arms[i];
	return NULL;
}

double reads_alone_bytes_share(const struct alone_arm *arms, size_t count, double *error)
{
	const struct alone_arm *larger = arm_of_part(arms, count, "larger");
	const struct alone_arm *smaller = arm_of_part(arms, count, "smaller");
	*error = NAN;
	if (!larger || !smaller || !(larger->bytes > BYTES_APART * smaller->bytes))
		return NAN;
	const double apart = log(larger->bytes / smaller->bytes);
	*error = hypot(larger->error, smaller->error) / apart;
	return (smaller->log_rate - larger->log_rate) / apart;
}

static const struct alone_arm *arm_of_stage(
	const struct alone_arm *arms, size_t count, const char *stage)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(arms[i].first->stage, stage) == 0)
			return &arms[i];
	return NULL;
}

double stages_alone_ratio(const struct read_block *all, size_t count, const char *stage,
	const char *other, double *error, double *least)
{
	struct alone_arm arms[ALONE_ARMS_MAX];
	const size_t known = blocks_arms(all, count, true, arms);
	const struct alone_arm *a = arm_of_stage(arms, known, stage);
	const struct alone_arm *b = arm_of_stage(arms, known, other);
	*error = *least = NAN;
	if (!a || !b)
		return NAN;
	*error = hypot(a->error, b->error);
	*least = exp(fmin(a->log_rate, b->log_rate));
	return b->log_rate - a->log_rate;
}
