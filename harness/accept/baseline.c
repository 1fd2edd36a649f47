/* Making baselines, and looking at them.  Samples of every figure and node are compressed to BASELINE_QUANTILES values,
 * those of results and those of older baselines alike, and the rest is a function of them. */
#include "harness/accept/baseline.h"

#include "harness/accept/fingerprint.h"
#include "harness/accept/result.h"
#include "harness/accept/spread.h"
#include "harness/analyze/statistics.h"
#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BASELINE_BYTES_MAX = 512 << 20, REASONS_MOST = 8, ROUNDS_MOST = 1000 };

/* So many of a node's repetitions must be on the good side of a limit for `accept` to show that its median is, by the
 * sign test with the repetitions that it takes at most; and how far below the others' median that node may be. */
static const double GOOD_REPETITIONS = 0.9, BELOW_OTHERS = 3;
static const double OUTLIER_RATE = 0.01; /* of healthy fleets that lose a node by chance */
static const double NOISE_ALLOWED =
	3.5; /* errors of the difference of two means: the largest area that repetitions explain */

/* --- similarity ------------------------------------------------------------------------------- */

/* Area between the distributions of sorted samples. */
static double area_between(const double *a, size_t a_count, const double *b, size_t b_count,
	bool one_sided, bool more_is_better)
{
	double area = 0;
	double before = 0;
	size_t i = 0;
	size_t j = 0;
	while (i < a_count || j < b_count) {
		const double at = j == b_count || (i < a_count && a[i] <= b[j]) ? a[i] : b[j];
		/* b has more of its values below: it is worse where more is better */
		const double more = (double)j / (double)b_count - (double)i / (double)a_count;
		const double counts =
			!one_sided ? fabs(more) : fmax(0, more_is_better ? more : -more);
		if (i + j > 0)
			area += counts * (at - before);
		before = at;
		while (i < a_count && a[i] == at)
			i++;
		while (j < b_count && b[j] == at)
			j++;
	}
	return area;
}

static double magnitude(const double *sorted, size_t count)
{
	return fmax(fabs(sorted[0]), fabs(sorted[count - 1]));
}

static double similarity_of_sorted(const double *a, size_t a_count, const double *b, size_t b_count,
	bool one_sided, bool more_is_better)
{
	const double largest = fmax(magnitude(a, a_count), magnitude(b, b_count));
	const double area = area_between(a, a_count, b, b_count, one_sided, more_is_better);
	return largest > 0 ? fmax(0, 1 - area / largest) : 1;
}

double baseline_similarity(const double *a, size_t a_count, const double *b, size_t b_count,
	bool one_sided, bool more_is_better)
{
	double *copy = malloc((a_count + b_count + 1) * sizeof *copy);
	double similarity = NAN;
	bool finite = true;
	for (size_t i = 0; i < a_count; i++)
		finite = finite && isfinite(a[i]);
	for (size_t i = 0; i < b_count; i++)
		finite = finite && isfinite(b[i]);
	if (copy && finite && a_count > 0 && b_count > 0) {
		memcpy(copy, a, a_count * sizeof *copy);
		memcpy(copy + a_count, b, b_count * sizeof *copy);
		sort_doubles(copy, a_count);
		sort_doubles(copy + a_count, b_count);
		similarity = similarity_of_sorted(
			copy, a_count, copy + a_count, b_count, one_sided, more_is_better);
	}
	free(copy);
	return similarity;
}

/* --- looking at a baseline -------------------------------------------------------------------- */

const json_t *baseline_figure(
	const json_t *baseline, const char *check, const char *figure, const char *place)
{
	size_t i;
	const json_t *entry;
	const json_t *pooled = NULL;
	json_array_foreach(json_object_get(baseline, "figures"), i, entry)
	{
		if (strcmp(fields_text_of(entry, "check"), check) != 0 ||
			strcmp(fields_text_of(entry, "figure"), figure) != 0)
			continue;
		if (strcmp(fields_text_of(entry, "place"), place) == 0)
			return entry;
		if (strcmp(fields_text_of(entry, "place"), PLACE_ALL) == 0)
			pooled = entry;
	}
	return pooled;
}

bool baseline_fits(const json_t *baseline, const json_t *fingerprint, char *why, size_t room)
{
	struct buffer text = {0};
	const bool same =
		fingerprint_same(fingerprint, json_object_get(baseline, "fingerprint"), &text);
	if (room > 0)
		(void)snprintf(why, room, "%s", text.data ? text.data : "");
	buffer_release(&text);
	return same;
}

/* A limit that nothing reaches would pass everything. */
static int refuse_limits(const json_t *document, struct error *err)
{
	static const char *const members[] = {"median", "low", "high"};
	size_t i;
	const json_t *figure;
	json_array_foreach(json_object_get(document, "figures"), i, figure)
	{
		for (size_t k = 0; k < COUNT(members); k++) {
			const json_t *value = json_object_get(figure, members[k]);
			if (json_is_null(value) ||
				(json_is_number(value) &&
					figure_value_is_possible(json_number_value(value))))
				continue;
			return error_set(err, -EINVAL,
				"a damaged baseline: '%s' of %.64s of '%.64s' is no number that can be measured",
				members[k], fields_text_of(figure, "figure"),
				fields_text_of(figure, "check"));
		}
	}
	return 0;
}

static int refuse_baseline(const json_t *document, struct error *err)
{
	static const char stem[] = "mlbench.baseline/";
	const char *schema = fields_text_of(document, "schema");
	if (strncmp(schema, stem, sizeof stem - 1) != 0)
		return error_set(err, -EINVAL,
			"not a baseline: its schema is '%.40s' (mlbench baseline makes one)",
			schema);
	if (strcmp(schema, BASELINE_SCHEMA) != 0)
		return error_set(err, -EINVAL,
			"written as '%.40s', and this program knows '%s': use a newer mlbench",
			schema, BASELINE_SCHEMA);
	if (!json_is_array(json_object_get(document, "figures")) ||
		!json_is_array(json_object_get(document, "nodes")) ||
		!json_is_object(json_object_get(document, "fingerprint")))
		return error_set(
			err, -EINVAL, "a baseline without 'figures', 'nodes' or 'fingerprint'");
	return refuse_limits(document, err);
}

int baseline_read(const char *path, json_t **baseline, struct error *err)
{
	char *text = NULL;
	size_t size = 0;
	json_error_t wrong;
	*baseline = NULL;
	int code = files_read(path, BASELINE_BYTES_MAX, &text, &size, err);
	if (code)
		return code;
	*baseline = json_loadb(text, size, JSON_REJECT_DUPLICATES, &wrong);
	free(text);
	code = *baseline ? refuse_baseline(*baseline, err)
			 : error_set(err, -EINVAL, "no JSON (line %d): %s", wrong.line, wrong.text);
	if (!code)
		return 0;
	json_decref(*baseline);
	*baseline = NULL;
	return error_prefix(err, code, "'%.300s'", path);
}

/* --- samples ---------------------------------------------------------------------------------- */

/* A node's repetitions of a figure, few enough to be kept: all of them, or quantiles.  Sorted. */
struct sample {
	size_t node; /* of the candidates */
	size_t repetitions, count, place_count;
	double values[BASELINE_QUANTILES];
	double places
		[BASELINE_QUANTILES]; /* medians of places that are alike, or quantiles of them */
};

struct figure_samples {
	const char *check, *place; /* borrowed from the results and older baselines */
	const struct figure *figure;
	struct sample *list; /* owned */
	size_t count, room;
};

/* A node that may stand in the baseline. */
struct candidate {
	const char *name, *started, *result; /* borrowed */
	const json_t *fingerprint;           /* borrowed; NULL: it is the baseline's */
	const struct node_result *node;      /* NULL: of an older baseline */
	const json_t *older;
	size_t older_index; /* in its nodes */
	const char *why;    /* it was left out; NULL: it stands */
	json_t *reasons;    /* owned: the figures */
	char *words;        /* owned: what why points to where it is made */
};

struct making {
	const struct baseline_request *request;
	struct candidate *candidates; /* owned */
	size_t count;
	struct figure_samples *figures; /* owned */
	size_t figure_count, figure_room;
	const json_t *fingerprint; /* borrowed */
	size_t asked;              /* candidates that were fit, before they were compared */
	bool failed;
};

/* At most BASELINE_QUANTILES of sorted values. */
static size_t compress(const double *sorted, size_t count, double out[BASELINE_QUANTILES])
{
	if (count <= BASELINE_QUANTILES) {
		memcpy(out, sorted, count * sizeof *out);
		return count;
	}
	for (size_t i = 0; i < BASELINE_QUANTILES; i++)
		out[i] = statistics_quantile(sorted, count, (double)i / (BASELINE_QUANTILES - 1));
	return BASELINE_QUANTILES;
}

static struct figure_samples *samples_of(
	struct making *making, const char *check, const struct figure *figure, const char *place)
{
	for (size_t i = 0; i < making->figure_count; i++) {
		struct figure_samples *at = &making->figures[i];
		if (at->figure == figure && strcmp(at->check, check) == 0 &&
			strcmp(at->place, place) == 0)
			return at;
	}
	if (making->figure_count == making->figure_room) {
		const size_t room = making->figure_room ? 2 * making->figure_room : 64;
		struct figure_samples *list = realloc(making->figures, room * sizeof *list);
		if (!list)
			return NULL;
		making->figures = list;
		making->figure_room = room;
	}
	struct figure_samples *fresh = &making->figures[making->figure_count++];
	*fresh = (struct figure_samples){.check = check, .place = place, .figure = figure};
	return fresh;
}

static struct sample *sample_add(struct figure_samples *samples, size_t node)
{
	if (samples->count == samples->room) {
		const size_t room = samples->room ? 2 * samples->room : 16;
		struct sample *list = realloc(samples->list, room * sizeof *list);
		if (!list)
			return NULL;
		samples->list = list;
		samples->room = room;
	}
	struct sample *fresh = &samples->list[samples->count++];
	*fresh = (struct sample){.node = node};
	return fresh;
}

static int sample_series(struct making *making, size_t node, const struct node_series *series)
{
	struct figure_samples *samples =
		samples_of(making, series->figures->check, series->figures->figure, series->place);
	struct sample *sample = samples ? sample_add(samples, node) : NULL;
	double *values = calloc(series->repetitions + series->count, sizeof *values);
	double *medians = values ? values + series->repetitions : NULL;
	if (!sample || !values) {
		free(values);
		return -ENOMEM;
	}
	node_series_values(series, values);
	for (size_t i = 0; i < series->count; i++)
		medians[i] = statistics_median(series->figures[i].values, series->figures[i].count);
	sort_doubles(values, series->repetitions);
	sort_doubles(medians, series->count);
	sample->repetitions = series->repetitions;
	sample->count = compress(values, series->repetitions, sample->values);
	if (strcmp(series->place, PLACE_ALL) == 0)
		sample->place_count = compress(medians, series->count, sample->places);
	free(values);
	return 0;
}

static int sample_result(struct making *making, size_t node)
{
	struct node_series series;
	size_t at = 0;
	int code = 0;
	while (!code && node_series_next(making->candidates[node].node, &at, &series))
		code = sample_series(making, node, &series);
	return code;
}

static size_t numbers_of(const json_t *array, double out[BASELINE_QUANTILES])
{
	size_t i;
	size_t count = 0;
	const json_t *value;
	json_array_foreach(array, i, value)
	{
		if (json_is_number(value) && count < BASELINE_QUANTILES)
			out[count++] = json_number_value(value);
	}
	sort_doubles(out, count);
	return count;
}

static const struct figure *figure_of_entry(const json_t *entry)
{
	for (int kind = 0; kind < ACCEPT_KINDS; kind++)
		if (strcmp(fields_text_of(entry, "kind"),
			    accept_kind_name((enum accept_kind)kind)) == 0)
			return figure_find((enum accept_kind)kind, fields_text_of(entry, "figure"));
	return NULL;
}

/* What an older baseline has of one of its nodes. */
static int sample_older(struct making *making, size_t node)
{
	size_t i;
	size_t j;
	const json_t *entry;
	const json_t *kept;
	const struct candidate *const candidate = &making->candidates[node];
	json_array_foreach(json_object_get(candidate->older, "figures"), i, entry)
	{
		const struct figure *figure = figure_of_entry(entry);
		json_array_foreach(json_object_get(entry, "samples"), j, kept)
		{
			const json_t *index = json_object_get(kept, "node");
			if (!figure || !json_is_integer(index) ||
				json_integer_value(index) != (json_int_t)candidate->older_index)
				continue;
			struct figure_samples *samples =
				samples_of(making, fields_text_of(entry, "check"), figure,
					fields_text_of(entry, "place"));
			struct sample *sample = samples ? sample_add(samples, node) : NULL;
			if (!sample)
				return -ENOMEM;
			sample->count = numbers_of(json_object_get(kept, "values"), sample->values);
			sample->place_count =
				numbers_of(json_object_get(kept, "places"), sample->places);
			const double repetitions =
				json_number_value(json_object_get(kept, "repetitions"));
			sample->repetitions = repetitions >= 1 && repetitions < 1e9
						      ? (size_t)repetitions
						      : sample->count;
			samples->count -= sample->count == 0;
		}
	}
	return 0;
}

/* --- candidates ------------------------------------------------------------------------------- */

static int order_candidates(const void *left, const void *right)
{
	const struct candidate *const a = left;
	const struct candidate *const b = right;
	const int names = strcmp(a->name, b->name);
	const int times = strcmp(b->started, a->started);
	return names ? names : times ? times : (a->node == NULL) - (b->node == NULL);
}

static int collect_candidates(struct making *making, const struct node_results *results)
{
	const struct baseline_request *const request = making->request;
	size_t most = results->count;
	for (size_t i = 0; i < request->older_count; i++)
		most += json_array_size(json_object_get(request->older[i], "nodes"));
	making->candidates = calloc(most + 1, sizeof *making->candidates);
	if (!making->candidates)
		return -ENOMEM;
	for (size_t i = 0; i < results->count; i++) {
		const struct node_result *node = &results->list[i];
		making->candidates[making->count++] = (struct candidate){.name = node->name,
			.started = node->started,
			.result = node->path,
			.fingerprint = node->fingerprint,
			.node = node};
	}
	for (size_t i = 0; i < request->older_count; i++) {
		size_t index;
		const json_t *node;
		json_array_foreach(json_object_get(request->older[i], "nodes"), index, node)
		{
			making->candidates[making->count++] =
				(struct candidate){.name = fields_text_of(node, "name"),
					.started = fields_text_of(node, "started"),
					.result = fields_text_of(node, "result"),
					.older = request->older[i],
					.older_index = index};
		}
	}
	qsort(making->candidates, making->count, sizeof *making->candidates, order_candidates);
	return 0;
}

static void leave_out_candidate(struct candidate *candidate, char *words)
{
	candidate->words = words;
	candidate->why = words ? words : "out of memory";
}

static bool is_too_old(const struct candidate *candidate, const struct baseline_request *request)
{
	return request->since_s > 0 && !(node_result_time(candidate->started) >= request->since_s);
}

static void leave_out_unfit(struct making *making)
{
	for (size_t i = 0; i < making->count; i++) {
		struct candidate *const at = &making->candidates[i];
		char *words = NULL;
		if (i > 0 && strcmp(at->name, making->candidates[i - 1].name) == 0)
			at->why = "the node has a newer result";
		else if (is_too_old(at, making->request))
			leave_out_candidate(at, asprintf(&words, "older than --since %s",
							making->request->since) < 0
							? NULL
							: words);
		else if (at->node && at->node->unfit)
			at->why = at->node->unfit;
	}
}

/* Of the nodes that stand, the hardware that most have; the first of equals. */
static const json_t *most_common_fingerprint(const struct making *making)
{
	const json_t *best = NULL;
	size_t most = 0;
	for (size_t i = 0; i < making->count; i++) {
		const struct candidate *const a = &making->candidates[i];
		size_t same = 0;
		/* a fingerprint that was counted already need not be again */
		if (a->why || !a->fingerprint ||
			(best && fingerprint_same(a->fingerprint, best, NULL)))
			continue;
		for (size_t j = 0; j < making->count; j++)
			same += !making->candidates[j].why && making->candidates[j].fingerprint &&
				fingerprint_same(
					making->candidates[j].fingerprint, a->fingerprint, NULL);
		if (same > most) {
			most = same;
			best = a->fingerprint;
		}
	}
	return best;
}

static void leave_out_strangers(struct making *making)
{
	for (size_t i = 0; i < making->count; i++) {
		struct candidate *const at = &making->candidates[i];
		struct buffer why = {0};
		if (at->why || !at->fingerprint ||
			fingerprint_same(at->fingerprint, making->fingerprint, &why)) {
			buffer_release(&why);
			continue;
		}
		char *words = NULL;
		if (asprintf(&words, "other hardware: %s", why.data ? why.data : "") < 0)
			words = NULL;
		leave_out_candidate(at, words);
		buffer_release(&why);
	}
}

static int find_fingerprint(struct making *making, struct error *err)
{
	const struct baseline_request *const request = making->request;
	for (size_t i = 0; i < request->older_count; i++) {
		const json_t *its = json_object_get(request->older[i], "fingerprint");
		struct buffer why = {0};
		const bool same =
			!making->fingerprint || fingerprint_same(its, making->fingerprint, &why);
		if (!same)
			(void)error_set(err, -EINVAL, "the baselines are of different hardware: %s",
				why.data ? why.data : "");
		buffer_release(&why);
		if (!same)
			return -EINVAL;
		making->fingerprint = its;
	}
	if (!making->fingerprint)
		making->fingerprint = most_common_fingerprint(making);
	return making->fingerprint
		       ? 0
		       : error_set(err, -ENODATA,
				 "no baseline: of %zu results none is of a healthy node (%s: %s)",
				 making->count, making->count ? making->candidates[0].name : "none",
				 making->count ? making->candidates[0].why : "no results");
}

/* --- who is healthy --------------------------------------------------------------------------- */

static bool stands(const struct making *making, const struct sample *sample)
{
	return !making->candidates[sample->node].why;
}

static bool more_is_better(const struct figure_samples *samples)
{
	return samples->figure->sense == FIGURE_MORE_IS_BETTER;
}

/* Samples at the same ranks, so that they compare fast. */
static void to_ranks(const struct sample *sample, double out[BASELINE_QUANTILES])
{
	for (size_t i = 0; i < BASELINE_QUANTILES; i++) {
		const double at =
			(double)i / (BASELINE_QUANTILES - 1) * (double)(sample->count - 1);
		const size_t below = (size_t)at;
		const size_t above = below + (below + 1 < sample->count);
		out[i] = sample->values[below] +
			 (at - (double)below) * (sample->values[above] - sample->values[below]);
	}
}

/* The node that is most like all others: the sum of the areas to them is least. */
static const struct sample *centre_of(
	const struct making *making, const struct figure_samples *samples)
{
	const struct sample **of = calloc(samples->count + 1, sizeof(struct sample *));
	double(*ranks)[BASELINE_QUANTILES] = calloc(samples->count + 1, sizeof *ranks);
	double *sums = calloc(samples->count + 1, sizeof *sums);
	size_t count = 0;
	size_t best = 0;
	for (size_t i = 0; of && ranks && sums && i < samples->count; i++)
		if (stands(making, &samples->list[i])) {
			of[count] = &samples->list[i];
			to_ranks(of[count], ranks[count]);
			count++;
		}
	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++) {
			double area = 0;
			for (size_t k = 0; k < BASELINE_QUANTILES; k++)
				area += fabs(ranks[i][k] - ranks[j][k]);
			sums[i] += area;
			sums[j] += area;
		}
	for (size_t i = 1; i < count; i++)
		if (sums[i] < sums[best])
			best = i;
	const struct sample *centre = count > 0 ? of[best] : NULL;
	free(of);
	free(ranks);
	free(sums);
	return centre;
}

static double sample_deviation(const struct sample *sample)
{
	return sample->count > 1 ? statistics_deviation(sample->values, sample->count)
				 : (double)NAN;
}

/* What the deviation of a node's values is, typically; 0: not known. */
static double typical_deviation(const struct making *making, const struct figure_samples *samples)
{
	double *list = calloc(samples->count + 1, sizeof *list);
	size_t count = 0;
	for (size_t i = 0; list && i < samples->count; i++) {
		const double deviation = sample_deviation(&samples->list[i]);
		if (stands(making, &samples->list[i]) && isfinite(deviation))
			list[count++] = deviation;
	}
	const double typical = count > 0 ? statistics_median(list, count) : 0;
	free(list);
	return typical;
}

static double sample_similarity(const struct sample *centre, const struct sample *sample)
{
	return similarity_of_sorted(
		centre->values, centre->count, sample->values, sample->count, false, false);
}

/* Below the least, by more than repetitions that vary so much explain. */
static bool is_unlike(const struct sample *centre, const struct sample *sample, double deviation)
{
	const double area = area_between(
		centre->values, centre->count, sample->values, sample->count, false, false);
	return sample_similarity(centre, sample) < BASELINE_SIMILARITY &&
	       area > NOISE_ALLOWED * deviation *
			       sqrt(1 / (double)centre->repetitions +
				       1 / (double)sample->repetitions);
}

/* what: of the node's values; takes it. */
static void blame(
	struct making *making, size_t node, const struct figure_samples *samples, char *what)
{
	struct candidate *const at = &making->candidates[node];
	struct buffer text = {.failed = !what};
	if (!at->reasons)
		at->reasons = json_array();
	buffer_format(&text, "%s of '%s'%s%s: %s", samples->figure->name, samples->check,
		*samples->place ? " at " : "",
		strcmp(samples->place, PLACE_ALL) == 0 ? "all places" : samples->place,
		what ? what : "");
	if (json_array_size(at->reasons) < REASONS_MOST)
		making->failed = making->failed || text.failed ||
				 json_array_append_new(at->reasons, fields_text(text.data)) != 0;
	buffer_release(&text);
	free(what);
}

static char *unlike_words(const char *centre, double similarity)
{
	char *words = NULL;
	return asprintf(&words, "similarity %.3f to '%s'", similarity, centre) < 0 ? NULL : words;
}

static char *outlier_words(bool worst, double z)
{
	char *words = NULL;
	return asprintf(&words, "%s%.1f deviations of the nodes from their median",
		       worst ? "its worst place is " : "", fabs(z)) < 0
		       ? NULL
		       : words;
}

static void leave_unlike(struct making *making, const struct figure_samples *samples, bool *leaves)
{
	const struct sample *const centre = centre_of(making, samples);
	const double deviation = typical_deviation(making, samples);
	for (size_t i = 0; centre && i < samples->count; i++) {
		const struct sample *const sample = &samples->list[i];
		if (!stands(making, sample) || !is_unlike(centre, sample, deviation))
			continue;
		leaves[sample->node] = true;
		blame(making, sample->node, samples,
			unlike_words(making->candidates[centre->node].name,
				sample_similarity(centre, sample)));
	}
}

/* The values that stand for the nodes: their medians, or of alike places the worst one's. */
static size_t values_of_nodes(const struct making *making, const struct figure_samples *samples,
	bool worst, struct spread_value *values, size_t *nodes)
{
	size_t count = 0;
	for (size_t i = 0; i < samples->count; i++) {
		const struct sample *const sample = &samples->list[i];
		double copy[BASELINE_QUANTILES];
		if (!stands(making, sample) || (worst && sample->place_count == 0))
			continue;
		memcpy(copy, sample->values, sample->count * sizeof *copy);
		values[count] = spread_value_of(copy, sample->count);
		if (worst)
			values[count].value = more_is_better(samples)
						      ? sample->places[0]
						      : sample->places[sample->place_count - 1];
		nodes[count++] = sample->node;
	}
	return count;
}

static void leave_outliers(struct making *making, const struct figure_samples *samples, bool worst,
	size_t tests, bool *leaves)
{
	struct spread_value *values = calloc(samples->count + 1, sizeof *values);
	size_t *nodes = calloc(samples->count + 1, sizeof *nodes);
	struct spread spread;
	if (values && nodes) {
		const size_t count = values_of_nodes(making, samples, worst, values, nodes);
		spread_fit(&spread, values, count, samples->figure->unit);
		for (size_t i = 0; i < count; i++) {
			const double z = spread_z(&spread, &values[i]);
			const bool good = samples->figure->sense != FIGURE_NEITHER &&
					  (z > 0) == more_is_better(samples);
			if (good || !spread_is_outlier(&spread, &values[i], samples->figure->unit,
					    OUTLIER_RATE, tests))
				continue;
			leaves[nodes[i]] = true;
			blame(making, nodes[i], samples, outlier_words(worst, z));
		}
	}
	making->failed = making->failed || !values || !nodes;
	free(values);
	free(nodes);
}

static size_t standing(const struct making *making)
{
	size_t count = 0;
	for (size_t i = 0; i < making->count; i++)
		count += !making->candidates[i].why;
	return count;
}

/* Rounds, until nobody leaves. */
static int keep_the_healthy(struct making *making)
{
	bool *leaves = calloc(making->count + 1, sizeof *leaves);
	bool left = leaves != NULL;
	making->asked = standing(making);
	for (int round = 0; left && round < ROUNDS_MOST && !making->failed; round++) {
		memset(leaves, 0, making->count * sizeof *leaves);
		const size_t tests = making->figure_count * standing(making);
		for (size_t f = 0; f < making->figure_count; f++) {
			leave_unlike(making, &making->figures[f], leaves);
			leave_outliers(making, &making->figures[f], false, tests, leaves);
			leave_outliers(making, &making->figures[f], true, tests, leaves);
		}
		left = false;
		for (size_t i = 0; i < making->count; i++)
			if (leaves[i]) {
				making->candidates[i].why = "not like the other nodes";
				left = true;
			}
	}
	const int code = leaves && !making->failed ? 0 : -ENOMEM;
	free(leaves);
	return code;
}

/* --- the document ----------------------------------------------------------------------------- */

/* Six digits tell more than a repetition does. */
static json_t *short_number(double value)
{
	char text[32];
	if (!isfinite(value))
		return json_null();
	(void)snprintf(text, sizeof text, "%.6g", value);
	return json_real(strtod(text, NULL));
}

static json_t *short_numbers(const double *values, size_t count)
{
	json_t *array = json_array();
	int bad = !array;
	for (size_t i = 0; i < count && !bad; i++)
		bad = json_array_append_new(array, short_number(values[i]));
	return fields_whole(array, bad);
}

static json_t *sample_json(const struct sample *sample, size_t index)
{
	json_t *object = json_pack("{s:I, s:I, s:o}", "node", (json_int_t)index, "repetitions",
		(json_int_t)sample->repetitions, "values",
		short_numbers(sample->values, sample->count));
	const int bad = object && sample->place_count > 0 &&
			json_object_set_new(object, "places",
				short_numbers(sample->places, sample->place_count));
	return fields_whole(object, bad);
}

/* What the figures of nodes that stand add up to. */
struct figure_sums {
	double *pool;                 /* BASELINE_QUANTILES of each node; owned */
	struct spread_value *centres; /* of each node, or of each place; owned */
	double *below,
		*above; /* of each node: from its median to where GOOD_REPETITIONS end; owned */
	size_t nodes, pooled, centre_count, repetitions;
	double similarity; /* the least */
	json_t *samples;
};

static int sum_figure(const struct making *making, const struct figure_samples *samples,
	const size_t *index, struct figure_sums *sums)
{
	const struct sample *const centre = centre_of(making, samples);
	const size_t most = samples->count * BASELINE_QUANTILES + 1;
	int bad = 0;
	*sums = (struct figure_sums){.pool = calloc(most, sizeof *sums->pool),
		.centres = calloc(most, sizeof *sums->centres),
		.below = calloc(samples->count + 1, sizeof *sums->below),
		.above = calloc(samples->count + 1, sizeof *sums->above),
		.similarity = 1,
		.samples = json_array()};
	if (!sums->pool || !sums->centres || !sums->below || !sums->above || !sums->samples)
		return -ENOMEM;
	for (size_t i = 0; i < samples->count && centre; i++) {
		const struct sample *const sample = &samples->list[i];
		double copy[BASELINE_QUANTILES];
		if (!stands(making, sample))
			continue;
		to_ranks(sample, &sums->pool[sums->pooled]);
		sums->pooled += BASELINE_QUANTILES;
		const double median = statistics_median(sample->values, sample->count);
		sums->below[sums->nodes] = median - statistics_quantile(sample->values,
							    sample->count, 1 - GOOD_REPETITIONS);
		sums->above[sums->nodes] =
			statistics_quantile(sample->values, sample->count, GOOD_REPETITIONS) -
			median;
		sums->nodes++;
		sums->repetitions += sample->repetitions;
		sums->similarity = fmin(sums->similarity, sample_similarity(centre, sample));
		memcpy(copy, sample->values, sample->count * sizeof *copy);
		if (sample->place_count == 0)
			sums->centres[sums->centre_count++] = spread_value_of(copy, sample->count);
		for (size_t k = 0; k < sample->place_count; k++)
			sums->centres[sums->centre_count++] = (struct spread_value){
				.value = sample->places[k], .error = NAN, .reach = NAN};
		bad |= json_array_append_new(
			sums->samples, sample_json(sample, index[sample->node]));
	}
	return bad ? -ENOMEM : 0;
}

/* A limit at or below nothing is none. */
static json_t *limit_json(const struct figure *figure, double limit)
{
	const bool may_be_negative = figure->unit == FIGURE_CELSIUS;
	return !may_be_negative && limit <= 0 ? json_null() : short_number(limit);
}

static json_t *figure_json(const struct figure_samples *samples, struct figure_sums *sums)
{
	static const char *const senses[] = {"more", "less", "neither"};
	double quantiles[BASELINE_QUANTILES];
	struct spread spread;
	double low;
	double high;
	sort_doubles(sums->pool, sums->pooled);
	(void)compress(sums->pool, sums->pooled, quantiles);
	spread_fit(&spread, sums->centres, sums->centre_count, samples->figure->unit);
	spread_range(&spread, BASELINE_RATE, &low, &high);
	low = fmin(low, spread.centre - BELOW_OTHERS * spread.scale -
				statistics_median(sums->below, sums->nodes));
	high = fmax(high, spread.centre + BELOW_OTHERS * spread.scale +
				  statistics_median(sums->above, sums->nodes));
	return json_pack("{s:o, s:s, s:s, s:o, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:O}",
		"check", fields_text(samples->check), "kind",
		accept_kind_name(samples->figure->kind), "figure", samples->figure->name, "place",
		fields_text(samples->place), "unit", figure_unit_name(samples->figure->unit),
		"sense", senses[samples->figure->sense], "nodes", (json_int_t)sums->nodes,
		"repetitions", (json_int_t)sums->repetitions, "median", short_number(spread.centre),
		"low", limit_json(samples->figure, low), "high", limit_json(samples->figure, high),
		"quantiles", short_numbers(quantiles, BASELINE_QUANTILES), "similarity",
		short_number(sums->similarity), "samples", sums->samples);
}

static json_t *figures_json(const struct making *making, const size_t *index)
{
	json_t *array = json_array();
	int bad = !array;
	for (size_t f = 0; f < making->figure_count && !bad; f++) {
		struct figure_sums sums;
		bad = sum_figure(making, &making->figures[f], index, &sums);
		if (!bad && sums.nodes > 0)
			bad = json_array_append_new(array, figure_json(&making->figures[f], &sums));
		free(sums.pool);
		free(sums.centres);
		free(sums.below);
		free(sums.above);
		json_decref(sums.samples);
	}
	return fields_whole(array, bad);
}

static json_t *candidate_json(const struct candidate *at)
{
	json_t *object = json_pack(
		"{s:o, s:o}", "name", fields_text(at->name), "started", fields_text(at->started));
	int bad = !object;
	if (object && at->why) {
		bad |= json_object_set_new(object, "why", fields_text(at->why));
		bad |= json_object_set_new(
			object, "figures", at->reasons ? json_incref(at->reasons) : json_array());
	} else if (object) {
		bad |= json_object_set_new(object, "result", fields_text(at->result));
	}
	return fields_whole(object, bad);
}

static json_t *notes_json(const struct making *making)
{
	const size_t nodes = standing(making);
	json_t *notes = json_array();
	int bad = !notes;
	if (nodes == 1)
		bad |= json_array_append_new(notes,
			json_string(
				"One node alone: it says nothing about how much healthy nodes differ, so there are "
				"no limits, and whether this node is healthy itself was not compared."));
	else if (nodes < BASELINE_FEW)
		bad |= json_array_append_new(notes,
			json_sprintf(
				"%zu nodes only: the limits are wide, and a node that is slow in all its results "
				"cannot be told from the others. Ten or more are better.",
				nodes));
	return fields_whole(notes, bad);
}

static json_t *making_json(const struct making *making)
{
	size_t *index = calloc(making->count + 1, sizeof *index);
	json_t *nodes = json_array();
	json_t *left_out = json_array();
	size_t count = 0;
	int bad = !index || !nodes || !left_out;
	for (size_t i = 0; i < making->count && !bad; i++) {
		const struct candidate *const at = &making->candidates[i];
		index[i] = count;
		count += !at->why;
		bad |= json_array_append_new(at->why ? left_out : nodes, candidate_json(at));
	}
	json_t *document = json_pack("{s:s, s:s, s:s, s:O, s:f, s:f, s:o, s:o, s:o}", "schema",
		BASELINE_SCHEMA, "made", making->request->made, "program", MLBENCH_VERSION,
		"fingerprint", making->fingerprint, "similarity_least", BASELINE_SIMILARITY, "rate",
		BASELINE_RATE, "notes", notes_json(making), "nodes", nodes, "left_out", left_out);
	if (document && !bad)
		bad = json_object_set_new(document, "figures", figures_json(making, index));
	free(index);
	return fields_whole(document, bad || !document);
}

/* --- all of it -------------------------------------------------------------------------------- */

static int check_majority(const struct making *making, struct error *err)
{
	const size_t left = standing(making);
	if (2 * left <= making->asked && making->asked > 1) {
		const char *reason = "";
		for (size_t i = 0; i < making->count; i++)
			if (json_array_size(making->candidates[i].reasons) > 0)
				reason = json_string_value(
					json_array_get(making->candidates[i].reasons, 0));
		return error_set(err, -ENODATA,
			"no baseline: the largest group of nodes that agree is %zu of %zu, no majority (%.200s)",
			left, making->asked, reason);
	}
	return making->figure_count > 0
		       ? 0
		       : error_set(err, -ENODATA, "no baseline: the results have no figures");
}

static int fill_samples(struct making *making)
{
	int code = 0;
	for (size_t i = 0; i < making->count && !code; i++)
		if (!making->candidates[i].why)
			code = making->candidates[i].node ? sample_result(making, i)
							  : sample_older(making, i);
	return code;
}

static void making_release(struct making *making)
{
	for (size_t i = 0; i < making->count; i++) {
		json_decref(making->candidates[i].reasons);
		free(making->candidates[i].words);
	}
	for (size_t f = 0; f < making->figure_count; f++)
		free(making->figures[f].list);
	free(making->candidates);
	free(making->figures);
}

int baseline_make(const struct node_results *results, const struct baseline_request *request,
	json_t **baseline, struct error *err)
{
	struct making making = {.request = request};
	*baseline = NULL;
	int code = collect_candidates(&making, results);
	if (code)
		(void)error_set(err, code, "out of memory for the baseline");
	if (!code) {
		leave_out_unfit(&making);
		code = find_fingerprint(&making, err);
	}
	if (!code) {
		leave_out_strangers(&making);
		code = fill_samples(&making);
		code = code ? code : keep_the_healthy(&making);
		code = code ? error_set(err, code, "out of memory for the baseline")
			    : check_majority(&making, err);
	}
	if (!code) {
		*baseline = making_json(&making);
		code = *baseline ? 0 : error_set(err, -ENOMEM, "out of memory for the baseline");
	}
	making_release(&making);
	return code;
}
