/* From two records to their differences: figures of every repetition, points matched, tests, what else differs, and
 * what makes the figures doubtful. */
#include "harness/report/compare.h"

#include "harness/base/units.h"
#include "harness/config/conditions.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Quantiles of a histogram are known to 3 % (histogram.h). */
static const double QUANTILE_DEVIATION = 0.012;
/* Repetitions of one process share its peak: they tell nothing of the next process's. */
static const double MEMORY_DEVIATION = 0.1;
static const double CORES_DEVIATION = 0.05;
static const double CELSIUS_DEVIATION = 1;
static const double RESOLUTION = 0.05;

/* --- figures of a record ---------------------------------------------------------------------------------- */

struct figures {
	double *y;     /* (rows, metrics): NAN where there is none; owned */
	size_t *first; /* (points + 1): rows of a point; owned */
	size_t rows;
};

struct place {
	size_t entry;
	uint32_t point, repeat;
};

static int compare_order_places(const void *left, const void *right)
{
	const struct place *a = left;
	const struct place *b = right;
	if (a->point != b->point)
		return a->point < b->point ? -1 : 1;
	return (a->repeat > b->repeat) - (a->repeat < b->repeat);
}

static size_t compare_places_of(const struct report *report, struct place *places)
{
	const struct record *record = report->record;
	size_t count = 0;
	for (size_t e = 0; e < record->entry_count; e++) {
		const struct record_entry *entry = &record->entries[e];
		const struct point_summary *summary = report->points[entry->point];
		if (summary && point_counts(summary->status, entry->status))
			places[count++] = (struct place){e, entry->point, entry->repeat};
	}
	qsort(places, count, sizeof *places, compare_order_places);
	return count;
}

static int load_rows(struct figures *figures, const struct record *record,
	const struct place *places, const struct metric *metrics, size_t metric_count,
	struct error *err)
{
	struct measurement *m = calloc(1, sizeof *m);
	int code = m ? 0 : error_set(err, -ENOMEM, "out of memory for a repetition");
	for (size_t row = 0; row < figures->rows && !code; row++) {
		code = record_load(record, places[row].entry, m, err);
		for (size_t i = 0; i < metric_count && !code; i++)
			figures->y[row * metric_count + i] =
				metric_scaled(&metrics[i], metric_value(&metrics[i], m));
		measurement_release(m);
		*m = (struct measurement){0};
	}
	free(m);
	return code;
}

static int figures_open(struct figures *figures, const struct report *report,
	const struct metric *metrics, size_t metric_count, struct error *err)
{
	const size_t points = report->record->grid.points;
	struct place *places = calloc(report->record->entry_count + 1, sizeof *places);
	*figures = (struct figures){.first = calloc(points + 1, sizeof *figures->first)};
	int code = -ENOMEM;
	if (places && figures->first) {
		figures->rows = compare_places_of(report, places);
		figures->y = calloc(figures->rows * metric_count + 1, sizeof *figures->y);
		for (size_t row = 0; row < figures->rows; row++)
			figures->first[places[row].point + 1]++;
		for (size_t i = 0; i < points; i++)
			figures->first[i + 1] += figures->first[i];
	}
	code = figures->y ? load_rows(figures, report->record, places, metrics, metric_count, err)
			  : error_set(err, -ENOMEM, "out of memory for the figures");
	free(places);
	return code;
}

static void figures_close(struct figures *figures)
{
	free(figures->y);
	free(figures->first);
}

/* The metric's values at a point that are there, behind each other in out; returns how many. */
static size_t values_at(const struct figures *figures, size_t point, size_t metric,
	size_t metric_count, double *out)
{
	size_t count = 0;
	for (size_t row = figures->first[point]; row < figures->first[point + 1]; row++) {
		const double y = figures->y[row * metric_count + metric];
		if (!isnan(y))
			out[count++] = y;
	}
	return count;
}

/* --- metrics and pairs ---------------------------------------------------------------------------------------- */

static void compare_add_stages(
	const struct report *report, char (*names)[NAME_BYTES], size_t *count)
{
	for (size_t p = 0; p < report->record->grid.points; p++) {
		const struct point_summary *point = report->points[p];
		for (size_t s = 0; point && s < point->stage_count; s++) {
			bool known = false;
			for (size_t i = 0; i < *count; i++)
				known = known || strcmp(names[i], point->stages[s].name) == 0;
			if (!known && *count < STAGES_MAX)
				memcpy(names[(*count)++], point->stages[s].name, NAME_BYTES);
		}
	}
}

static bool has_figures(const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	return p && p->repeat_count > 0;
}

static int split_pairs(struct comparison *c, struct error *err)
{
	const struct point_match *match = &c->match;
	c->pairs = calloc(match->pair_count + 1, sizeof *c->pairs);
	c->unmeasured = calloc(match->pair_count + 1, sizeof *c->unmeasured);
	if (!c->pairs || !c->unmeasured)
		return error_set(err, -ENOMEM, "out of memory for the points");
	for (size_t i = 0; i < match->pair_count; i++) {
		const struct point_pair *pair = &match->pairs[i];
		if (has_figures(c->a.report, pair->a) && has_figures(c->b.report, pair->b))
			c->pairs[c->pair_count++] = *pair;
		else
			c->unmeasured[c->unmeasured_count++] = *pair;
	}
	return 0;
}

static enum stall_sense compare_stalls_of(const struct metric *metric)
{
	switch (metric->kind->sense) {
	case METRIC_MORE_IS_BETTER:
		return STALLS_LESSEN;
	case METRIC_LESS_IS_BETTER:
		return STALLS_RAISE;
	case METRIC_NEITHER:
		break;
	}
	return STALLS_UNKNOWN;
}

static struct difference_rules rules_of(
	const struct comparison *c, const struct metric *metric, uint64_t seed)
{
	struct difference_rules rules = {.significance = c->significance,
		.run_share = c->interleaved ? 0 : COMPARE_RUN_SHARE,
		.run_deviation = COMPARE_RUN_DEVIATION,
		.resolution = RESOLUTION,
		.bootstrap = strcmp(metric->name, "throughput") == 0,
		.stalls = compare_stalls_of(metric),
		.seed = seed};
	if (strcmp(metric->kind->name, "p50") == 0 || strcmp(metric->kind->name, "p99") == 0)
		rules.run_deviation = QUANTILE_DEVIATION;
	if (metric->kind->unit == METRIC_BYTES)
		rules.run_deviation = MEMORY_DEVIATION;
	if (metric->kind->unit == METRIC_CORES)
		rules.run_deviation = CORES_DEVIATION;
	if (metric->kind->unit == METRIC_CELSIUS)
		rules.run_deviation = rules.resolution = CELSIUS_DEVIATION;
	return rules;
}

struct work {
	struct figures a, b;
	struct metric metrics[METRICS_MAX]; /* all there can be */
	size_t metric_count;
	double *values;                     /* of one metric, both sides */
	struct difference_samples *samples; /* (pair_count) */
};

static void compare_work_close(struct work *work)
{
	figures_close(&work->a);
	figures_close(&work->b);
	free(work->values);
	free(work->samples);
}

static int compare_work_open(struct work *work, const struct comparison *c, struct error *err)
{
	char stages[STAGES_MAX][NAME_BYTES];
	size_t stage_count = 0;
	compare_add_stages(c->a.report, stages, &stage_count);
	compare_add_stages(c->b.report, stages, &stage_count);
	work->metric_count =
		metrics_of_stages((const char(*)[NAME_BYTES])stages, stage_count, work->metrics);
	int code = figures_open(&work->a, c->a.report, work->metrics, work->metric_count, err);
	if (!code)
		code = figures_open(&work->b, c->b.report, work->metrics, work->metric_count, err);
	if (code)
		return code;
	work->values = calloc(work->a.rows + work->b.rows + 1, sizeof *work->values);
	work->samples = calloc(c->pair_count + 1, sizeof *work->samples);
	return work->values && work->samples
		       ? 0
		       : error_set(err, -ENOMEM, "out of memory for the figures");
}

/* Whether either side has any of it. */
static bool compare_gather(struct work *work, const struct comparison *c, size_t metric)
{
	double *at = work->values;
	bool any = false;
	for (size_t i = 0; i < c->pair_count; i++) {
		struct difference_samples *s = &work->samples[i];
		s->a = at;
		s->a_count = values_at(&work->a, c->pairs[i].a, metric, work->metric_count, at);
		at += s->a_count;
		s->b = at;
		s->b_count = values_at(&work->b, c->pairs[i].b, metric, work->metric_count, at);
		at += s->b_count;
		any = any || s->a_count + s->b_count > 0;
	}
	return any;
}

static int compare_metrics(struct comparison *c, struct error *err)
{
	struct work *work = calloc(1, sizeof *work);
	if (!work)
		return error_set(err, -ENOMEM, "out of memory for the figures");
	int code = compare_work_open(work, c, err);
	if (!code) {
		c->differences =
			calloc(work->metric_count * c->pair_count + 1, sizeof *c->differences);
		code = c->differences ? 0
				      : error_set(err, -ENOMEM, "out of memory for differences");
	}
	const uint64_t seed = (uint64_t)config_integer(&c->a.report->record->config, KEY_RUN_SEED);
	for (size_t m = 0; m < work->metric_count && !code; m++) {
		if (!compare_gather(work, c, m))
			continue;
		const size_t to = c->metric_count;
		const struct difference_rules rules = rules_of(c, &work->metrics[m], seed);
		code = compare_differences(work->samples, c->pair_count, &rules,
			&c->differences[to * c->pair_count], &c->overall[to]);
		if (code)
			(void)error_set(err, code, "out of memory for differences");
		c->metrics[c->metric_count++] = work->metrics[m];
	}
	compare_work_close(work);
	free(work);
	return code;
}

/* --- what cannot be compared ----------------------------------------------------------------------------- */

static int compare_refuse(const struct comparison *c, struct error *err)
{
	const size_t count = compare_facts_count(&c->facts, COMPARE_REFUSED);
	const struct compare_fact *fact = c->facts.list; /* the heaviest is first */
	char others[UNITS_BYTES] = "";
	if (count > 1)
		(void)snprintf(others, sizeof others, ", and %zu more", count - 1);
	return error_set(err, -EINVAL,
		"cannot compare '%.100s' with '%.100s': they measure different work: %s is "
		"'%.60s' and '%.60s'%s",
		c->b.report->record->folder, c->a.report->record->folder, fact->name, fact->a,
		fact->b, others);
}

static int refuse_points(const struct comparison *c, struct error *err)
{
	const char *const a = c->a.report->record->folder;
	const char *const b = c->b.report->record->folder;
	if (c->match.pair_count == 0)
		return error_set(err, -EINVAL,
			"cannot compare '%.150s' with '%.150s': they have no point with the same "
			"settings",
			b, a);
	return error_set(err, -EINVAL,
		"cannot compare '%.150s' with '%.150s': no point was measured in both", b, a);
}

/* --- what else differs ------------------------------------------------------------------------ */

static size_t metric_index(const struct comparison *c, const char *name)
{
	for (size_t i = 0; i < c->metric_count; i++)
		if (strcmp(c->metrics[i].name, name) == 0)
			return i;
	return c->metric_count;
}

static const struct difference *compare_overall_of(
	const struct comparison *comparison, const char *name)
{
	const size_t i = metric_index(comparison, name);
	return i < comparison->metric_count ? &comparison->overall[i] : NULL;
}

/* More cores that others kept busy in one result than in the other are worth a remark. */
static const double OTHERS_DIFFER = 0.25;

__attribute__((format(printf, 2, 3))) static void remark(
	struct comparison *c, const char *format, ...)
{
	if (c->remark_count == COMPARE_REMARKS_MAX)
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(c->remarks[c->remark_count++], NOTE_BYTES, format, args);
	va_end(args);
}

static void compare_subjects(struct comparison *c)
{
	const struct record *a = c->a.report->record;
	const struct record *b = c->b.report->record;
	char left[UNITS_BYTES];
	char right[UNITS_BYTES];
	compare_keys(&c->facts, &a->config, &b->config, c->match.swept);
	compare_environments(&c->facts, &a->environment, &b->environment);
	if (strcmp(a->step.backend, b->step.backend) != 0 || a->step.emulated != b->step.emulated)
		compare_fact_add(&c->facts, COMPARE_REFUSED, "step on",
			a->step.emulated ? "an emulated device" : a->step.backend,
			b->step.emulated ? "an emulated device" : b->step.backend);
	if (a->cores != b->cores) {
		(void)snprintf(left, sizeof left, "%u", a->cores);
		(void)snprintf(right, sizeof right, "%u", b->cores);
		compare_fact_add(&c->facts, COMPARE_STRONG, "usable cores", left, right);
	}
	compare_facts_sort(&c->facts);
}

static void remark_state(
	struct comparison *c, const struct report *report, const char *side, bool is_a)
{
	size_t unsteady = 0;
	for (size_t i = 0; i < c->pair_count; i++) {
		const size_t point = is_a ? c->pairs[i].a : c->pairs[i].b;
		unsteady += report->points[point]->status == POINT_UNSTEADY;
	}
	if (unsteady > 0)
		remark(c,
			"%s: %zu of %zu points never became steady; their figures come from runs that "
			"were still changing",
			side, unsteady, c->pair_count);
	if (report->record->interrupted)
		remark(c, "%s was interrupted: repetitions are missing", side);
	if (report->failed > 0)
		remark(c, "%s: %zu point%s failed", side, report->failed,
			report->failed == 1 ? "" : "s");
}

static void remark_injected(struct comparison *c, const struct report *report, const char *side)
{
	struct buffer all = {0};
	conditions_injected(&report->record->config, ", ", &all);
	if (all.data)
		remark(c, "%s ran with planted conditions: %s", side, all.data);
	buffer_release(&all);
}

static void remark_contaminated(struct comparison *c, const struct report *report, const char *side)
{
	struct buffer text = {0};
	report_contaminated_text(report, &text);
	if (text.data)
		remark(c, "%s: %s", side, text.data);
	buffer_release(&text);
}

static void remark_load(struct comparison *c)
{
	const struct difference *d = compare_overall_of(c, "other_load");
	if (d && fabs(d->value) > OTHERS_DIFFER)
		remark(c, "other processes kept %.1f cores busy in A and %.1f in B", fmax(0, d->a),
			fmax(0, d->b));
}

/* Another storage form is what is compared, and no fault of the comparison. */
static void remark_storage(struct comparison *c)
{
	struct buffer text = {0};
	for (size_t i = 0; i < c->facts.count; i++) {
		const struct compare_fact *const fact = &c->facts.list[i];
		if (fact->is_key && config_is_storage(config_find_key(fact->name)))
			buffer_format(&text, "%s%s is %s in A and %s in B", text.size ? ", " : "",
				fact->name, fact->a, fact->b);
	}
	if (text.size > 0)
		remark(c, "the storage form differs, of the same samples: %s", text.data);
	buffer_release(&text);
}

static void compare_remarks(struct comparison *c)
{
	const struct record *a = c->a.report->record;
	const struct record *b = c->b.report->record;
	if (strcmp(a->folder, b->folder) == 0 ||
		(a->started == b->started && strcmp(a->name, b->name) == 0 &&
			strcmp(a->config_hash, b->config_hash) == 0))
		remark(c, "A and B are the same result");
	remark_storage(c);
	if (c->checksum_check.differ)
		remark(c, "%s", c->checksum_check.words);
	if (c->interleaved)
		remark(c,
			"A and B were measured in turn, repetition by repetition: drift of the node "
			"affects both alike");
	remark_state(c, c->a.report, "A", true);
	remark_state(c, c->b.report, "B", false);
	remark_injected(c, c->a.report, "A");
	remark_injected(c, c->b.report, "B");
	remark_contaminated(c, c->a.report, "A");
	remark_contaminated(c, c->b.report, "B");
	remark_load(c);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* The surest difference of throughput, else the baseline's best setting; if that has no partner, the pair in which the
 * baseline is fastest. */
static size_t choose_focus(const struct comparison *c)
{
	size_t best = 0;
	size_t surest = c->pair_count;
	for (size_t i = 0; i < c->pair_count; i++) {
		const struct difference *d = &c->differences[i];
		const bool differs = d->verdict == DIFFERENCE_LESS || d->verdict == DIFFERENCE_MORE;
		if (differs && (surest == c->pair_count ||
				       fabs(d->value) > fabs(c->differences[surest].value)))
			surest = i;
		const bool is_best = c->pairs[best].a == c->a.report->best;
		if (!is_best &&
			(c->pairs[i].a == c->a.report->best || d->a > c->differences[best].a ||
				isnan(c->differences[best].a)))
			best = i;
	}
	return surest < c->pair_count ? surest : best;
}

/* Both say that they were measured in turn with each other. */
static bool is_interleaved(const struct record *a, const struct record *b)
{
	const struct fact *left = fact_find(&a->environment, "mlbench", "in_turn");
	const struct fact *right = fact_find(&b->environment, "mlbench", "in_turn");
	return left && right && left->kind == FACT_TEXT && right->kind == FACT_TEXT &&
	       strcmp(left->text, right->text) == 0;
}

static int compare_build(struct comparison *c, struct error *err)
{
	const struct record *a = c->a.report->record;
	const struct record *b = c->b.report->record;
	c->interleaved = is_interleaved(a, b);
	int code = point_match(&a->config, &a->grid, &b->config, &b->grid, &c->match);
	if (code)
		return error_set(err, code, "out of memory for the points");
	compare_subjects(c);
	if (compare_facts_count(&c->facts, COMPARE_REFUSED) > 0)
		return compare_refuse(c, err);
	code = split_pairs(c, err);
	if (!code && c->pair_count == 0)
		code = refuse_points(c, err);
	if (!code)
		code = compare_metrics(c, err);
	if (!code && c->facts.failed)
		code = error_set(err, -ENOMEM, "out of memory for what differs");
	if (code)
		return code;
	if (checksums_check(&c->a.report->checksums, &c->b.report->checksums, &c->checksum_check))
		return error_set(err, -ENOMEM, "out of memory for the checksums");
	compare_remarks(c);
	c->focus = choose_focus(c);
	return 0;
}

int compare_open(struct comparison *comparison, const struct report *a, const struct report *b,
	double significance, struct error *err)
{
	*comparison = (struct comparison){
		.a = {.report = a}, .b = {.report = b}, .significance = significance};
	const int code = compare_build(comparison, err);
	if (code)
		compare_close(comparison);
	return code;
}

void compare_close(struct comparison *comparison)
{
	point_match_release(&comparison->match);
	compare_facts_release(&comparison->facts);
	free(comparison->pairs);
	free(comparison->unmeasured);
	free(comparison->differences);
	free(comparison->gates);
	*comparison = (struct comparison){0};
}

const struct difference *compare_differences_of(
	const struct comparison *comparison, const char *name)
{
	const size_t i = metric_index(comparison, name);
	return i < comparison->metric_count ? &comparison->differences[i * comparison->pair_count]
					    : NULL;
}

int compare_judge(
	struct comparison *comparison, const struct gate *gates, size_t count, struct error *err)
{
	comparison->gates = calloc(count + 1, sizeof *comparison->gates);
	if (!comparison->gates)
		return error_set(err, -ENOMEM, "out of memory for the conditions");
	for (size_t i = 0; i < count; i++) {
		const char *name = gates[i].metric.name;
		const struct difference *differences = compare_differences_of(comparison, name);
		gate_judge(&gates[i], differences, differences ? comparison->pair_count : 0,
			compare_overall_of(comparison, name), comparison->significance,
			&comparison->gates[i]);
	}
	return 0;
}

size_t compare_capacities(
	const struct comparison *comparison, struct explain_capacity stages[STAGES_MAX])
{
	const struct point_pair *pair = &comparison->pairs[comparison->focus];
	const struct point_summary *a = comparison->a.report->points[pair->a];
	const struct point_summary *b = comparison->b.report->points[pair->b];
	size_t count = 0;
	for (size_t i = 0; i < a->stage_count; i++) {
		const struct stage_summary *left = &a->stages[i];
		struct explain_capacity *stage = &stages[count++];
		memcpy(stage->stage, left->name, NAME_BYTES);
		stage->a = left->capacity_is_lower_bound ? (double)NAN : left->capacity;
		stage->b = NAN;
		for (size_t j = 0; j < b->stage_count; j++)
			if (strcmp(b->stages[j].name, left->name) == 0 &&
				!b->stages[j].capacity_is_lower_bound)
				stage->b = b->stages[j].capacity;
	}
	return count;
}
