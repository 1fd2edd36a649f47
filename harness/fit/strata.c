/* Kinds of files: clusters of a sample of files, divided where it tells the most. */
#include "harness/fit/strata.h"

#include "harness/base/array.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a picture: ln(width / height), ln of its edge length (of the square with its pixels), ln(bytes of a pixel). */
enum strata_axis { STRATA_SHAPE, STRATA_EDGE, STRATA_DENSITY, STRATA_AXES };

enum {
	STRATA_LEAST = 8,    /* files on either side of a cut */
	STRATA_GRAIN = 200,  /* and at least one in so many of all */
	STRATA_SIZES = 12,   /* sizes of pictures with a stratum of their own */
	STRATA_KINDS = 32,   /* of formats, layouts and scans; there are not so many */
	STRATA_FREQUENT = 20 /* such a size has one file in so many */
};
/* A cut that lowers the mean square by less, over all files, tells nothing: deviations of a few per cent. */
static const double STRATA_GAIN = 0.002;
/* A cut takes 0.64 of the square of a normal heap away, 0.75 of an even spread, and more of two heaps. */
static const double STRATA_HEAPS = 0.8;

struct strata_cluster {
	size_t first, count;
	double gain; /* of its best cut; 0: none */
	enum strata_axis axis;
	size_t left; /* files in front of the cut, sorted by the axis */
};

struct strata_finding {
	struct strata_file *files;
	size_t count;
	double weight;   /* of all files */
	double *squares; /* scratch (count) */
	struct strata_cluster clusters[LIKE_STRATA_MAX];
	size_t cluster_count;
};

static double strata_pixels(const struct strata_file *file)
{
	return (double)file->width * file->height;
}

static double strata_picture_bytes(const struct strata_file *file)
{
	return file->bytes > file->front ? (double)(file->bytes - file->front) : 1;
}

static double strata_value(const struct strata_file *file, enum strata_axis axis)
{
	switch (axis) {
	case STRATA_SHAPE:
		return log((double)file->width / file->height);
	case STRATA_EDGE:
		return log(strata_pixels(file)) / 2;
	case STRATA_DENSITY:
	default:
		return log(strata_picture_bytes(file) / strata_pixels(file));
	}
}

/* ---- orders --------------------------------------------------------------------------------- */

static int strata_order(double a, double b)
{
	return a < b ? -1 : a > b;
}

static int strata_compare_kinds(const struct strata_file *a, const struct strata_file *b)
{
	int order = strcmp(a->format, b->format);
	if (!order)
		order = strcmp(a->layout, b->layout);
	return order ? order : (int)a->progressive - (int)b->progressive;
}

static int strata_compare_sizes(const struct strata_file *a, const struct strata_file *b)
{
	const int order = strata_order(a->width, b->width);
	return order ? order : strata_order(a->height, b->height);
}

/* All that is looked at counts, so that the result does not depend on the order of the files. */
static int strata_by_kind(const void *a, const void *b)
{
	const struct strata_file *const x = a, *const y = b;
	int order = strata_compare_kinds(x, y);
	if (!order)
		order = strata_compare_sizes(x, y);
	if (!order)
		order = strata_order((double)x->bytes, (double)y->bytes);
	if (!order)
		order = strata_order(x->front, y->front);
	return order ? order : strata_order(x->quality, y->quality);
}

static int strata_by_axis(const void *a, const void *b, void *axis)
{
	const enum strata_axis by = *(const enum strata_axis *)axis;
	const int order = strata_order(strata_value(a, by), strata_value(b, by));
	return order ? order : strata_by_kind(a, b);
}

/* ---- cuts ----------------------------------------------------------------------------------- */

struct strata_moments {
	double weight, mean, square; /* square: sum of weighted squares about the mean */
};

static void strata_add(struct strata_moments *m, double weight, double value)
{
	const double away = value - m->mean;
	m->weight += weight;
	m->mean += away * weight / m->weight;
	m->square += weight * away * (value - m->mean);
}

static struct strata_moments strata_moments_of(
	const struct strata_file *files, size_t count, enum strata_axis axis)
{
	struct strata_moments all = {0};
	for (size_t i = 0; i < count; i++)
		strata_add(&all, files[i].weight, strata_value(&files[i], axis));
	return all;
}

/* Part of the square of the density that a line over the edge explains. */
static double strata_explained(const struct strata_file *files, size_t count)
{
	const struct strata_moments edge = strata_moments_of(files, count, STRATA_EDGE);
	const struct strata_moments density = strata_moments_of(files, count, STRATA_DENSITY);
	double both = 0;
	for (size_t i = 0; i < count; i++)
		both += files[i].weight * (strata_value(&files[i], STRATA_EDGE) - edge.mean) *
			(strata_value(&files[i], STRATA_DENSITY) - density.mean);
	return edge.square > 0 ? both * both / edge.square : 0;
}

/* The best cut of files sorted by the axis: what it takes of the square. */
static double strata_best_cut(struct strata_finding *finding, const struct strata_file *files,
	size_t count, enum strata_axis axis, size_t least, size_t *left)
{
	double best = 0;
	struct strata_moments up = {0}, down = {0};
	const double all = strata_moments_of(files, count, axis).square;
	for (size_t i = 0; i < count; i++) {
		strata_add(&up, files[i].weight, strata_value(&files[i], axis));
		finding->squares[i] = up.square;
	}
	for (size_t i = count - 1; i > 0; i--) {
		strata_add(&down, files[i].weight, strata_value(&files[i], axis));
		const double gain = all - finding->squares[i - 1] - down.square;
		if (i >= least && count - i >= least && gain > best &&
			strata_value(&files[i - 1], axis) < strata_value(&files[i], axis)) {
			best = gain;
			*left = i;
		}
	}
	return best;
}

static void strata_consider(struct strata_finding *finding, struct strata_cluster *cluster)
{
	const size_t grain = finding->count / STRATA_GRAIN;
	const size_t least = grain > STRATA_LEAST ? grain : STRATA_LEAST;
	struct strata_file *const files = finding->files + cluster->first;
	cluster->gain = 0;
	for (enum strata_axis axis = 0; axis < STRATA_AXES && cluster->count >= 2 * least; axis++) {
		size_t left = 0;
		enum strata_axis by = axis;
		qsort_r(files, cluster->count, sizeof *files, strata_by_axis, &by);
		double gain = strata_best_cut(finding, files, cluster->count, axis, least, &left);
		const double square = strata_moments_of(files, cluster->count, axis).square;
		const double explained =
			axis == STRATA_EDGE ? strata_explained(files, cluster->count) : 0;
		if (axis != STRATA_SHAPE && gain < STRATA_HEAPS * square)
			gain = left > 0 ? explained : 0; /* one heap, which deviations describe */
		if (gain > cluster->gain) {
			cluster->gain = gain;
			cluster->axis = axis;
			cluster->left = left;
		}
	}
}

/* Divides the cluster whose best cut tells the most; false: none tells enough. */
static bool strata_divide(struct strata_finding *finding)
{
	struct strata_cluster *best = &finding->clusters[0];
	for (size_t i = 1; i < finding->cluster_count; i++)
		if (finding->clusters[i].gain > best->gain)
			best = &finding->clusters[i];
	if (finding->cluster_count >= LIKE_STRATA_MAX ||
		!(best->gain > STRATA_GAIN * finding->weight))
		return false;
	enum strata_axis by = best->axis;
	qsort_r(finding->files + best->first, best->count, sizeof *finding->files, strata_by_axis,
		&by);
	struct strata_cluster *const other = &finding->clusters[finding->cluster_count++];
	*other = (struct strata_cluster){
		.first = best->first + best->left, .count = best->count - best->left};
	best->count = best->left;
	strata_consider(finding, best);
	strata_consider(finding, other);
	return true;
}

/* ---- what is never put together ------------------------------------------------------------- */

static double strata_weigh(const struct strata_file *files, size_t count)
{
	double weight = 0;
	for (size_t i = 0; i < count; i++)
		weight += files[i].weight;
	return weight;
}

/* Of sorted files, those from the first that are like it. */
static size_t strata_alike(const struct strata_file *files, size_t count, bool sizes)
{
	size_t i = 1;
	while (i < count && strata_compare_kinds(&files[0], &files[i]) == 0 &&
		(!sizes || strata_compare_sizes(&files[0], &files[i]) == 0))
		i++;
	return i;
}

static void strata_open_cluster(struct strata_finding *finding, size_t first, size_t count)
{
	if (count > 0)
		finding->clusters[finding->cluster_count++] =
			(struct strata_cluster){.first = first, .count = count};
}

static void strata_exchange(struct strata_file *a, struct strata_file *b)
{
	const struct strata_file kept = *a;
	*a = *b;
	*b = kept;
}

/* Frequent sizes of one kind become clusters, and what is left behind them another one. */
static void strata_take_kind(
	struct strata_finding *finding, size_t first, size_t count, size_t *sizes)
{
	struct strata_file *const files = finding->files + first;
	size_t rest = 0; /* files of no frequent size, moved to the front */
	size_t kept = count;
	for (size_t at = 0; at < kept;) {
		const size_t alike = strata_alike(files + at, kept - at, true);
		const double weight = strata_weigh(files + at, alike);
		if (alike < STRATA_LEAST || *sizes == 0 ||
			weight * STRATA_FREQUENT < finding->weight) {
			at += alike;
			rest += alike;
			continue;
		}
		/* To the end, in front of the sizes that are there already. */
		for (size_t i = 0; i < alike; i++)
			strata_exchange(&files[at + alike - 1 - i], &files[kept - 1 - i]);
		kept -= alike;
		(*sizes)--;
		strata_open_cluster(finding, first + kept, alike);
		qsort(files + at, kept - at, sizeof *files, strata_by_kind);
	}
	strata_open_cluster(finding, first, rest);
}

static void strata_take_kinds(struct strata_finding *finding)
{
	size_t sizes = STRATA_SIZES;
	qsort(finding->files, finding->count, sizeof *finding->files, strata_by_kind);
	size_t kinds = 0;
	for (size_t at = 0; at < finding->count && kinds < STRATA_KINDS; kinds++) {
		const size_t alike = strata_alike(finding->files + at, finding->count - at, false);
		strata_take_kind(finding, at, alike, &sizes);
		at += alike;
	}
}

/* ---- what a stratum is like ------------------------------------------------------------------ */

static double strata_deviation(const struct strata_moments *m)
{
	const double square = m->square / m->weight;
	return square > 1e-12 ? sqrt(square) : 0; /* what is all the same leaves rounding */
}

static unsigned strata_edge(double edge)
{
	return edge < 1 ? 1 : edge > 65500 ? 65500 : (unsigned)lround(edge);
}

static struct like_stratum strata_describe(
	const struct strata_file *files, size_t count, double weight)
{
	const struct strata_moments edge = strata_moments_of(files, count, STRATA_EDGE);
	const struct strata_moments density = strata_moments_of(files, count, STRATA_DENSITY);
	const struct strata_moments shape = strata_moments_of(files, count, STRATA_SHAPE);
	struct like_stratum out = {.progressive = files[0].progressive};
	double pixels = 0, qualities = 0, with_quality = 0;
	(void)snprintf(out.format, sizeof out.format, "%s", files[0].format);
	(void)snprintf(out.subsampling, sizeof out.subsampling, "%s", files[0].layout);
	for (size_t i = 0; i < count; i++) {
		const double share = files[i].weight / edge.weight;
		pixels += share * strata_pixels(&files[i]);
		out.bytes += share * (double)files[i].bytes;
		out.header += share * files[i].front;
		qualities += files[i].quality ? share * files[i].quality : 0;
		with_quality += files[i].quality ? share : 0;
	}
	out.share = edge.weight / weight;
	out.edge_sigma = fmin(strata_deviation(&edge), 1);
	out.bytes_sigma = fmin(strata_deviation(&density), 2);
	out.quality = with_quality > 0 ? (unsigned)lround(qualities / with_quality) : 0;
	/* Edges such that pictures drawn with the deviation have as many pixels in the mean. */
	const double square = sqrt(pixels / like_mean_exp(2 * out.edge_sigma));
	out.width = strata_edge(square * exp(shape.mean / 2));
	out.height = strata_edge(square * exp(-shape.mean / 2));
	return out;
}

static int strata_by_share(const void *a, const void *b)
{
	const struct like_stratum *const x = a, *const y = b;
	return strata_order(y->share, x->share);
}

int strata_find(struct strata_file *files, size_t count, struct like_stratum out[LIKE_STRATA_MAX],
	size_t *strata, struct error *err)
{
	struct strata_finding finding = {
		.files = files, .count = count, .weight = strata_weigh(files, count)};
	*strata = 0;
	if (count == 0)
		return 0;
	finding.squares = calloc(count, sizeof *finding.squares);
	if (!finding.squares)
		return error_set(err, -ENOMEM, "no memory to sort %zu files", count);
	strata_take_kinds(&finding);
	for (size_t i = 0; i < finding.cluster_count; i++)
		strata_consider(&finding, &finding.clusters[i]);
	while (strata_divide(&finding))
		;
	for (size_t i = 0; i < finding.cluster_count; i++)
		out[(*strata)++] = strata_describe(files + finding.clusters[i].first,
			finding.clusters[i].count, finding.weight);
	qsort(out, *strata, sizeof *out, strata_by_share);
	free(finding.squares);
	return 0;
}
