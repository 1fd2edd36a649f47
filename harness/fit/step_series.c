/* What a long series of step times is told by: itself while it is short, else few quantiles of it.
 *
 * A quantile at share (i + 1/2) / n is the i-th smallest of n times, so that straight lines between all
 * of them, level at both ends, have the mean of the times.  Of these the fewest are kept whose lines stay
 * near: the stretch that errs most is divided where it errs most, again and again. */
#include "harness/fit/step_series.h"

#include "harness/base/buffer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KNOTS_MAX = 48,
	DIGITS_MOST = 4,
	DIGITS_LEAST = 3,
	SHARE_DIGITS_LEAST = 3,
	SHARE_DIGITS_MOST = 10,
	CORRELATED_LEAST = 16, /* times */
};
static const double ENOUGH = 0.002;      /* mean error over the mean time */
static const double CHANCE_ERRORS = 2.5; /* of a correlation of nothing: standard errors */
static const double MOVED_MOST = 0.1;    /* of the places between two quantiles, by rounding */

static int series_compare_times(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;
	return (x > y) - (x < y);
}

/* --- the text of a time ----------------------------------------------------------------------- */

struct time_unit {
	const char *name;
	double ns;
};

/* The one in which the times are numbers of few digits. */
static struct time_unit series_unit(double ns)
{
	static const struct time_unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	size_t i = 0;
	while (i < 3 && ns >= units[i + 1].ns)
		i++;
	return units[i];
}

/* A number of so many significant digits without an exponent, and without zeros behind its point. */
static void series_write_number(double value, int digits, struct buffer *out)
{
	char text[32];
	const int whole = (int)floor(log10(value)) + 1;
	const int decimals = digits > whole ? digits - whole : 0;
	(void)snprintf(text, sizeof text, "%.*f", decimals, value);
	size_t length = strlen(text);
	while (decimals > 0 && text[length - 1] == '0')
		text[--length] = '\0';
	if (decimals > 0 && text[length - 1] == '.')
		text[--length] = '\0';
	buffer_text(out, text);
}

/* --- the series itself ------------------------------------------------------------------------ */

static void series_write(
	const double *ns, size_t count, double usual_ns, int digits, struct buffer *out)
{
	const struct time_unit unit = series_unit(usual_ns);
	for (size_t i = 0; i < count; i++) {
		buffer_text(out, i ? " " : "");
		series_write_number(ns[i] / unit.ns, digits, out);
		buffer_text(out, i ? "" : unit.name);
	}
}

/* False: it is too long, or memory is short (out->failed). */
static bool series_fits(const double *ns, size_t count, double usual_ns, struct buffer *out)
{
	for (int digits = DIGITS_MOST; count <= STEP_TIMES_MAX && digits >= DIGITS_LEAST;
		digits--) {
		out->size = 0;
		series_write(ns, count, usual_ns, digits, out);
		if (out->failed || out->size <= STEP_TIMES_BYTES_MAX)
			return !out->failed;
	}
	out->size = 0;
	return false;
}

/* --- quantiles -------------------------------------------------------------------------------- */

/* Between two kept times, the sum of how far lines are from those between them, and the place of the farthest. */
struct stretch {
	size_t from, to, farthest;
	double error;
};

static void stretch_measure(const double *sorted, struct stretch *s)
{
	double most = 0;
	s->error = 0;
	s->farthest = s->from;
	for (size_t i = s->from + 1; i < s->to; i++) {
		const double part = (double)(i - s->from) / (double)(s->to - s->from);
		const double line = sorted[s->from] + part * (sorted[s->to] - sorted[s->from]);
		const double off = fabs(line - sorted[i]);
		s->error += off;
		if (off > most) {
			most = off;
			s->farthest = i;
		}
	}
}

/* The stretches in their order; how many. */
static size_t series_divide(const double *sorted, size_t count, struct stretch stretches[KNOTS_MAX])
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += sorted[i];
	size_t n = 1;
	stretches[0] = (struct stretch){.to = count - 1};
	stretch_measure(sorted, &stretches[0]);
	while (n < KNOTS_MAX - 1) {
		size_t worst = 0;
		double error = 0;
		for (size_t i = 0; i < n; i++) {
			error += stretches[i].error;
			worst = stretches[i].error > stretches[worst].error ? i : worst;
		}
		struct stretch *const left = &stretches[worst];
		if (error <= ENOUGH * sum || left->farthest == left->from)
			break;
		memmove(left + 1, left, (n - worst) * sizeof *left);
		left[0].to = left[1].from = left->farthest;
		stretch_measure(sorted, &left[0]);
		stretch_measure(sorted, &left[1]);
		n++;
	}
	return n;
}

/* The time at a share, on the lines between all of them. */
static double series_at(const double *sorted, size_t count, double share)
{
	const double at = fmin(fmax(share * (double)count - 0.5, 0), (double)count - 1);
	const size_t below = (size_t)at;
	const size_t above = below + 1 < count ? below + 1 : below;
	return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

/* A kept time, at a share in as few digits as move it little between its neighbours (gap: places to the nearer one). */
static void series_write_quantile(const double *sorted, size_t count, size_t at, size_t gap,
	struct time_unit unit, struct buffer *out)
{
	char text[32];
	const double share = ((double)at + 0.5) / (double)count;
	double written = share;
	for (int digits = SHARE_DIGITS_LEAST; digits <= SHARE_DIGITS_MOST; digits++) {
		(void)snprintf(text, sizeof text, "%.*g", digits, 100 * share);
		written = strtod(text, NULL) / 100;
		if (fabs(written - share) * (double)count <= MOVED_MOST * (double)gap)
			break;
	}
	buffer_format(out, " %s%%=", text);
	series_write_number(series_at(sorted, count, written) / unit.ns, DIGITS_MOST, out);
	buffer_text(out, at == 0 ? unit.name : "");
}

static void series_write_quantiles(const double *sorted, size_t count, struct buffer *out)
{
	struct stretch stretches[KNOTS_MAX];
	const size_t n = series_divide(sorted, count, stretches);
	const struct time_unit unit = series_unit(sorted[count / 2]);
	size_t before = count;
	buffer_text(out, "quantiles");
	for (size_t i = 0; i < n; i++) {
		const size_t gap = stretches[i].to - stretches[i].from;
		series_write_quantile(
			sorted, count, stretches[i].from, gap < before ? gap : before, unit, out);
		before = gap;
	}
	series_write_quantile(sorted, count, count - 1, before, unit, out);
}

/* --- correlation ------------------------------------------------------------------------------ */

struct ranked {
	double ns, rank;
	size_t place; /* in time */
};

static int series_compare_ranked(const void *a, const void *b)
{
	return series_compare_times(
		&((const struct ranked *)a)->ns, &((const struct ranked *)b)->ns);
}

/* Around 0; times that are alike share the mean of their ranks. */
static void series_rank(struct ranked *sorted, size_t count, double *ranks)
{
	for (size_t i = 0; i < count;) {
		size_t end = i;
		while (end < count && !(sorted[end].ns > sorted[i].ns))
			end++;
		for (size_t k = i; k < end; k++)
			ranks[sorted[k].place] =
				(double)(i + end - 1) / 2 - (double)(count - 1) / 2;
		i = end;
	}
}

double step_series_correlation(const double *ns, size_t count)
{
	if (count < CORRELATED_LEAST)
		return 0;
	struct ranked *const sorted = calloc(count, sizeof *sorted);
	double *const ranks = calloc(count, sizeof *ranks);
	double product = NAN;
	double square = 1;
	if (sorted && ranks) {
		for (size_t i = 0; i < count; i++)
			sorted[i] = (struct ranked){.ns = ns[i], .place = i};
		qsort(sorted, count, sizeof *sorted, series_compare_ranked);
		series_rank(sorted, count, ranks);
		product = square = 0;
		for (size_t i = 0; i < count; i++)
			square += ranks[i] * ranks[i];
		for (size_t i = 0; i + 1 < count; i++)
			product += ranks[i] * ranks[i + 1];
	}
	free(sorted);
	free(ranks);
	const double r = square > 0 ? product / square : 0;
	const double most = STEP_CORRELATION_MOST;
	if (fabs(r) * sqrt((double)count) < CHANCE_ERRORS)
		return 0;
	return fmax(fmin(2 * sin(r * M_PI / 6), most), -most); /* NAN stays NAN */
}

/* --- all of it -------------------------------------------------------------------------------- */

static size_t series_keep_times(const double *ns, size_t count, double *kept)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		if (ns[i] >= 1 && ns[i] <= config_keys[KEY_STEP_TIME].max)
			kept[n++] = ns[i];
	return n;
}

static void series_write_any(
	const double *kept, double *sorted, size_t n, bool in_order, struct buffer *out)
{
	memcpy(sorted, kept, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, series_compare_times);
	/* Of one time there are no two quantiles. */
	if ((in_order || n == 1) && (series_fits(kept, n, sorted[n / 2], out) || out->failed))
		return;
	series_write_quantiles(sorted, n, out);
	const double correlation = in_order ? step_series_correlation(kept, n) : 0;
	if (isnan(correlation))
		out->failed = true;
	else if (fabs(correlation) > 0)
		buffer_format(out, " correlation=%.3g", correlation);
}

int step_series_text(const double *ns, size_t count, bool in_order, char out[STEP_SERIES_BYTES],
	struct error *err)
{
	double *const kept = calloc(count + 1, sizeof *kept);
	double *const sorted = calloc(count + 1, sizeof *sorted);
	struct buffer text = {0};
	int code = kept && sorted ? 0 : -ENOMEM;
	const size_t n = code ? 0 : series_keep_times(ns, count, kept);
	if (!code && n == 0)
		code = -ENODATA;
	if (!code) {
		series_write_any(kept, sorted, n, in_order, &text);
		code = text.failed ? -ENOMEM : 0;
	}
	if (!code)
		(void)snprintf(out, STEP_SERIES_BYTES, "%s", text.data);
	buffer_release(&text);
	free(kept);
	free(sorted);
	if (code == -ENODATA)
		return error_set(err, code, "none of %zu step times is one", count);
	return code ? error_set(err, code, "out of memory") : 0;
}
