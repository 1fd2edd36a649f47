/* Least squares over the blocks of an experiment: see reads_alone.h. */
#include "harness/analyze/reads_alone.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Of a block's ln(rate), besides what was counted: a pipeline was opened and closed for it. */
static const double BLOCK_ERROR = 0.01;
static const double UNCOUNTED_ERROR =
	0.5; /* times 1 / sqrt(files), where the rate's own error is unknown */
static const double SIZES_DIFFER = 0.03; /* deviation of ln(mean bytes) within arms */
static const double BY_BYTES_ANY = 0.5;  /* error of what lies between -1 and 0 */
static const double BYTES_APART =
	1.15; /* mean sizes of the two halves, for their times to tell anything */

static double block_rate(const struct read_block *t)
{
	return t->read.seconds > 0 ? (double)t->read.files / t->read.seconds : 0;
}

/* ln of the mean; 0: not known. */
static double block_bytes(const struct read_block *t)
{
	if (t->read.bytes == 0 || t->stage[0])
		return 0;
	return log((double)t->read.bytes / fmax((double)t->read.files, 1));
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
	double n, y, t, x, variance, in_flight, files, bytes, spread;
};

enum blocks_of { OF_READS, OF_STAGES, OF_RANKS };

static enum blocks_of blocks_of(const struct read_block *t)
{
	return t->stage[0]                              ? OF_STAGES
	       : strcmp(t->part, READ_BLOCK_RANKS) == 0 ? OF_RANKS
							: OF_READS;
}

struct blocks {
	const struct read_block *all;
	size_t count;
	enum blocks_of of; /* those of stages are of this round */
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
		if (!(rate > 0) || at == ALONE_ARMS_MAX || blocks_of(t) != b->of ||
			(b->of == OF_STAGES ? t->round != b->round
					    : !(t->read.latency_mean_ns > 0)))
			continue;
		if (at == *count)
			arms[(*count)++] = (struct alone_arm){.first = t};
		struct arm_sums *s = &b->sums[at];
		b->arm[i] = at;
		s->n++;
		s->y += log(rate);
		s->t += (double)i;
		s->x += block_bytes(t);
		s->variance += block_error(t) * block_error(t);
		s->in_flight += log(rate * t->read.latency_mean_ns * 1e-9);
		s->spread += t->read.latency_deviation_ns / t->read.latency_mean_ns;
		s->files += (double)t->read.files;
		s->bytes += (double)t->read.bytes;
	}
}

/* What ln(rate) follows within arms: the block's number, and ln of its files' mean bytes. */
struct trend {
	double slope, by_bytes;
	double rest, degrees; /* squares that are left of the blocks, and of how many */
	double bytes_squares; /* that by_bytes was told from; 0: none */
};

/* Sums of products within arms: of the number, of the bytes, and of the rate. */
struct within {
	double tt, tx, xx, ty, xy, yy, n;
};

static struct within sum_within(const struct blocks *b)
{
	struct within w = {0};
	for (size_t i = 0; i < b->count; i++) {
		if (b->arm[i] == ALONE_ARMS_MAX)
			continue;
		const struct arm_sums *s = &b->sums[b->arm[i]];
		const double t = (double)i - s->t / s->n;
		const double x = block_bytes(&b->all[i]) - s->x / s->n;
		const double y = log(block_rate(&b->all[i])) - s->y / s->n;
		w.tt += t * t;
		w.tx += t * x;
		w.xx += x * x;
		w.ty += t * y;
		w.xy += x * y;
		w.yy += y * y;
		w.n++;
	}
	return w;
}

/* Where bytes limit, a block of files twice as large has half the rate, and elsewhere the same: by_bytes is between -1 and 0.  With
 * sizes that hardly differ there is nothing to fit. */
static struct trend trend_of(const struct blocks *b, size_t arms)
{
	const struct within w = sum_within(b);
	const double xx = w.tt > 0 ? w.xx - w.tx * w.tx / w.tt : w.xx;
	const double xy = w.tt > 0 ? w.xy - w.tx * w.ty / w.tt : w.xy;
	const bool differ = xx > w.n * SIZES_DIFFER * SIZES_DIFFER;
	struct trend trend = {.by_bytes = differ ? fmin(fmax(xy / xx, -1), 0) : 0,
		.bytes_squares = differ ? xx : 0};
	const double ty = w.ty - trend.by_bytes * w.tx;
	trend.slope = w.tt > 0 ? ty / w.tt : 0;
	trend.rest = fmax(w.yy - 2 * trend.by_bytes * w.xy +
				  trend.by_bytes * trend.by_bytes * w.xx - trend.slope * ty,
		0);
	trend.degrees = w.n - (double)arms - (w.tt > 0) - differ;
	return trend;
}

static size_t blocks_arms(const struct read_block *all, size_t count, enum blocks_of of,
	struct alone_arm arms[ALONE_ARMS_MAX])
{
	struct blocks b = {.all = all, .of = of};
	size_t arm_count = 0;
	double middle = 0;
	double bytes = 0;
	double blocks = 0;
	double whole = 0; /* blocks of all files */
	for (size_t i = 0; i < count; i++)
		b.round = all[i].stage[0] ? all[i].round : b.round;
	b.count = count < sizeof b.arm / sizeof *b.arm ? count : sizeof b.arm / sizeof *b.arm;
	sum_blocks(&b, arms, &arm_count);
	const struct trend trend = trend_of(&b, arm_count);
	if (trend.degrees < 1)
		return 0;
	for (size_t i = 0; i < arm_count; i++) {
		middle += b.sums[i].t;
		bytes += arms[i].first->part[0] ? 0 : b.sums[i].x;
		whole += arms[i].first->part[0] ? 0 : b.sums[i].n;
		blocks += b.sums[i].n;
	}
	for (size_t i = 0; i < arm_count; i++) {
		const struct arm_sums *s = &b.sums[i];
		const double variance = fmax(trend.rest / trend.degrees, s->variance / s->n);
		const double larger = arms[i].first->part[0] ? 0 : s->x / s->n - bytes / whole;
		arms[i].blocks = (unsigned)s->n;
		arms[i].in_flight = exp(s->in_flight / s->n);
		arms[i].log_rate = s->y / s->n - trend.slope * (s->t / s->n - middle / blocks) -
				   trend.by_bytes * larger;
		const double by_bytes_error = trend.bytes_squares > 0
						      ? sqrt(variance / trend.bytes_squares)
						      : BY_BYTES_ANY;
		arms[i].error =
			hypot(sqrt(variance / s->n), larger * fmin(by_bytes_error, BY_BYTES_ANY));
		arms[i].bytes = s->files > 0 ? s->bytes / s->files : 0;
		arms[i].spread = s->spread / s->n;
	}
	return arm_count;
}

size_t reads_alone_arms(
	const struct read_block *all, size_t count, struct alone_arm arms[ALONE_ARMS_MAX])
{
	return blocks_arms(all, count, OF_READS, arms);
}

const struct alone_arm *reads_alone_as_set(const struct alone_arm *arms, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (arms[i].first->as_set && !arms[i].first->part[0])
			return &arms[i];
	return NULL;
}

static const struct alone_arm *arm_of(
	const struct alone_arm *arms, size_t count, const char *stage, const char *part)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(arms[i].first->stage, stage) == 0 &&
			strcmp(arms[i].first->part, part) == 0)
			return &arms[i];
	return NULL;
}

double reads_alone_bytes_share(const struct alone_arm *arms, size_t count, double *error)
{
	const struct alone_arm *larger = arm_of(arms, count, "", "larger");
	const struct alone_arm *smaller = arm_of(arms, count, "", "smaller");
	*error = NAN;
	if (!larger || !smaller || !(larger->bytes > BYTES_APART * smaller->bytes))
		return NAN;
	const double apart = log(larger->bytes / smaller->bytes);
	*error = hypot(larger->error, smaller->error) / apart;
	return (smaller->log_rate - larger->log_rate) / apart;
}

double stages_alone_ratio(const struct read_block *all, size_t count, const char *stage,
	const char *other, double *error, double *least)
{
	struct alone_arm arms[ALONE_ARMS_MAX];
	const size_t known = blocks_arms(all, count, OF_STAGES, arms);
	const struct alone_arm *a = arm_of(arms, known, stage, "");
	const struct alone_arm *b = arm_of(arms, known, other, "");
	*error = *least = NAN;
	if (!a || !b)
		return NAN;
	*error = hypot(a->error, b->error);
	*least = exp(fmin(a->log_rate, b->log_rate));
	return b->log_rate - a->log_rate;
}

double reads_alone_ranks(const struct read_block *all, size_t count, double *error, double *one)
{
	struct alone_arm arms[ALONE_ARMS_MAX];
	const size_t known = blocks_arms(all, count, OF_RANKS, arms);
	const struct alone_arm *alone = NULL;
	const struct alone_arm *together = NULL;
	for (size_t i = 0; i < known; i++) {
		if (arms[i].first->value == 1)
			alone = &arms[i];
		else
			together = &arms[i];
	}
	*error = *one = NAN;
	if (!alone || !together)
		return NAN;
	*error = hypot(alone->error, together->error);
	*one = exp(alone->log_rate);
	return together->log_rate - alone->log_rate;
}
