/* What two results differ in besides their figures, and what makes their figures doubtful. */
#include "harness/report/compare.h"

#include "harness/base/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

void compare_subjects(struct comparison *c)
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
			"%s: %zu of %zu points never were steady; their figures are of a run that was still changing",
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
	report_injected_text(&report->record->config, ", ", &all);
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

void compare_remarks(struct comparison *c)
{
	const struct record *a = c->a.report->record;
	const struct record *b = c->b.report->record;
	if (strcmp(a->folder, b->folder) == 0 ||
		(a->started == b->started && strcmp(a->name, b->name) == 0 &&
			strcmp(a->config_hash, b->config_hash) == 0))
		remark(c, "A and B are the same result: nothing can differ");
	if (c->checksum_check.differ)
		remark(c, "%s", c->checksum_check.words);
	if (c->interleaved)
		remark(c,
			"A and B were measured in turn, repetition by repetition: what changes from run to run falls on both alike");
	remark_state(c, c->a.report, "A", true);
	remark_state(c, c->b.report, "B", false);
	remark_injected(c, c->a.report, "A");
	remark_injected(c, c->b.report, "B");
	remark_contaminated(c, c->a.report, "A");
	remark_contaminated(c, c->b.report, "B");
	remark_load(c);
}
