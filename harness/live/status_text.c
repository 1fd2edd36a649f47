/* A run in progress, in lines for people.  All that came from configurations or from the kernel loses its control
 * characters. */
#include "harness/live/status.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/base/utf8.h"
#include "harness/report/table.h"

#include <math.h>
#include <string.h>

enum { LABEL_COLUMNS = 9, INDENT = 2, LINES_MOST = 64, EVIDENCE_SHOWN = 2 };

static const char *state_name(unsigned state)
{
	static const char *const names[THREAD_STATES] = {"starved", "working", "blocked"};
	return state < THREAD_STATES ? names[state] : "unknown";
}

static enum ink state_ink(unsigned state)
{
	return state == THREAD_WORKING ? INK_GOOD : state == THREAD_BLOCKED ? INK_WARN : INK_DIM;
}

static double age_s(const struct status *s, uint64_t then_ns)
{
	return then_ns > 0 && s->now_ns > then_ns ? (double)(s->now_ns - then_ns) / (double)NS_PER_S
						  : 0;
}

static const char *duration(double seconds, char out[UNITS_BYTES])
{
	return units_format_duration(seconds * (double)NS_PER_S, out);
}

/* --- one run ------------------------------------------------------------------------------------ */

static void line(
	const struct style *style, const char *label, const struct buffer *text, struct buffer *out)
{
	struct buffer plain = {0};
	utf8_add_plain(&plain, text->data ? text->data : "", "?");
	buffer_repeat(out, " ", INDENT);
	style_field(style, INK_DIM, label, LABEL_COLUMNS, out);
	style_wrap(style, plain.data ? plain.data : "", INDENT + LABEL_COLUMNS,
		INDENT + LABEL_COLUMNS, out);
	buffer_release(&plain);
}

#define LINE(style, label, out, ...)                \
	do {                                        \
		struct buffer text_ = {0};          \
		buffer_format(&text_, __VA_ARGS__); \
		line(style, label, &text_, out);    \
		buffer_release(&text_);             \
	} while (0)

static void add_head(const struct status *s, const struct style *style, struct buffer *out)
{
	struct buffer head = {0};
	buffer_format(&head, "mlbench %s  %s", s->view.command, s->view.name);
	struct buffer plain = {0};
	utf8_add_plain(&plain, head.data ? head.data : "", "?");
	style_field(style, INK_BOLD, plain.data ? plain.data : "",
		style_columns(plain.data ? plain.data : ""), out);
	buffer_release(&plain);
	utf8_add_plain(&plain, s->view.node, "?");
	buffer_format(out, "  (process %d%s%s, mlbench %s)\n", s->pid,
		s->view.node[0] ? " on " : "", plain.data ? plain.data : "", s->view.version);
	buffer_release(&head);
	buffer_release(&plain);
}

static bool runs(const struct live_view *v)
{
	return !isnan(v->period_s);
}

static void add_phase(const struct status *s, const struct style *style, struct buffer *out)
{
	const struct live_view *v = &s->view;
	char since[UNITS_BYTES];
	char total[UNITS_BYTES];
	char rest[UNITS_BYTES];
	struct buffer text = {0};
	buffer_format(&text, "%s for %s", live_phase_name(v->phase),
		duration(age_s(s, v->phase_ns), since));
	if (runs(v) && v->planned_s > 0)
		buffer_format(&text, "; %s of %s of this repetition", duration(v->elapsed_s, since),
			duration(v->planned_s, total));
	if (!isnan(v->rest_s) && v->total > 0)
		buffer_format(&text, "; about %s to go", duration(v->rest_s, rest));
	line(style, "phase", &text, out);
	buffer_release(&text);
	if (v->total > 0)
		LINE(style, v->limit ? "limit" : "point", out, "%u of %u: %s",
			v->done < v->total ? v->done + 1 : v->total, v->total, v->label);
	if (v->folder[0])
		LINE(style, "results", out, "%s", v->folder);
}

static void add_rates(const struct status *s, const struct style *style, struct buffer *out)
{
	const struct live_view *v = &s->view;
	char now[UNITS_BYTES];
	char all[UNITS_BYTES];
	char samples[UNITS_BYTES];
	struct buffer text = {0};
	buffer_format(&text,
		"%s samples/s over the last %.1f s, %s since the warm-up; %s samples in %llu batches",
		units_or_dash(units_format_count, v->throughput_window, now), v->window_s,
		units_or_dash(units_format_count, v->throughput, all),
		units_or_dash(units_format_count, (double)v->samples, samples),
		(unsigned long long)v->batches);
	if (v->bad_samples > 0)
		buffer_format(&text, ", %llu of them bad", (unsigned long long)v->bad_samples);
	if (v->step_emulated)
		buffer_text(&text, " (the step is emulated)");
	line(style, "through", &text, out);
	buffer_release(&text);
	if (!isnan(v->bytes_read_per_s))
		LINE(style, "read", out, "%s, %u files in flight",
			units_format_rate(v->bytes_read_per_s, now), v->files_in_flight);
	LINE(style, "memory", out, "%s resident, pools of %s",
		units_format_size((double)v->resident_bytes, now),
		units_format_size((double)v->pool_bytes, all));
	if (!isnan(v->device_clock_mhz))
		LINE(style, "device", out, "%.0f MHz, %.0f W, %.0f C", v->device_clock_mhz,
			v->device_power_w, v->device_temperature_c);
}

static void add_queues(const struct status *s, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	for (uint32_t i = 0; i < s->view.queue_count; i++)
		buffer_format(&text, "%s%s %u of %u", i ? ", " : "", s->view.queues[i].name,
			s->view.queues[i].depth, s->view.queues[i].capacity);
	line(style, "queues", &text, out);
	buffer_release(&text);
}

static void add_health(const struct status *s, const struct style *style, struct buffer *out)
{
	struct buffer words = {0};
	const bool stuck = status_is_stuck(s);
	utf8_add_plain(&words, s->stall.words, "?");
	buffer_repeat(out, " ", INDENT);
	style_field(style, INK_DIM, "health", LABEL_COLUMNS, out);
	buffer_text(out, style_ink(style, stuck ? INK_BAD : INK_GOOD));
	buffer_text(out, stall_kind_name(s->stall.kind));
	buffer_text(out, style_end(style));
	const int used = INDENT + LABEL_COLUMNS + style_columns(stall_kind_name(s->stall.kind)) + 2;
	buffer_text(out, ": ");
	style_wrap(style, words.data ? words.data : "", INDENT + LABEL_COLUMNS, used, out);
	buffer_release(&words);
}

static void add_verdict(const struct status *s, const struct style *style, struct buffer *out)
{
	LINE(style, "verdict", out, "%s", s->verdict.words);
	for (size_t i = 0; i < s->verdict.verdict.evidence_count && i < EVIDENCE_SHOWN; i++)
		if (s->verdict.told)
			LINE(style, "", out, "%s", s->verdict.verdict.evidence[i]);
}

/* --- threads ------------------------------------------------------------------------------------ */

static const struct table_column staged[] = {
	{"stage", true, 0, false, false},
	{"thread", false, 0, false, false},
	{"does", true, 0, false, false},
	{"since", false, 1, false, false},
	{"items", false, 2, false, false},
	{"last one", false, 3, false, false},
	{"the kernel says", true, 0, true, false},
};

static const struct table_column plain_threads[] = {
	{"thread", false, 0, false, false},
	{"name", true, 0, false, false},
	{"the kernel says", true, 0, true, false},
};

static void add_cell(struct table *table, enum ink ink, const char *text)
{
	struct buffer plain = {0};
	utf8_add_plain(&plain, text, "?");
	table_add(table, ink, "%s", plain.data ? plain.data : "");
	buffer_release(&plain);
}

static void add_staged(const struct status *s, size_t i, struct table *table)
{
	const struct live_thread *t = &s->view.threads[i];
	char words[LOOK_WORDS_BYTES];
	char text[UNITS_BYTES];
	add_cell(table, INK_PLAIN, s->view.stages[t->stage].name);
	if (t->tid > 0)
		table_add(table, INK_PLAIN, "%d", t->tid);
	else
		table_add(table, INK_DIM, "-");
	table_add(table, state_ink(t->state), "%s", state_name(t->state));
	table_add(table, INK_PLAIN, "%s", duration(age_s(s, t->since_ns), text));
	table_add(table, INK_PLAIN, "%s", units_format_count((double)t->items, text));
	table_add(table, INK_PLAIN, "%s ago", duration(age_s(s, t->moved_ns), text));
	add_cell(table, INK_PLAIN,
		t->tid > 0 ? look_words(&s->threads[i], words) : "no thread of its own");
}

static void add_plain(const struct status *s, size_t i, struct table *table)
{
	char words[LOOK_WORDS_BYTES];
	table_add(table, INK_PLAIN, "%d", s->threads[i].tid);
	add_cell(table, INK_PLAIN, s->threads[i].name);
	add_cell(table, INK_PLAIN, look_words(&s->threads[i], words));
}

static void add_threads(const struct status *s, const struct style *style, struct buffer *out)
{
	const size_t shown = s->thread_count < LINES_MOST ? s->thread_count : LINES_MOST;
	struct table table;
	if (shown == 0)
		return;
	if (s->by_stage)
		table_open(&table, staged, sizeof staged / sizeof staged[0]);
	else
		table_open(&table, plain_threads, sizeof plain_threads / sizeof plain_threads[0]);
	for (size_t i = 0; i < shown; i++)
		(s->by_stage ? add_staged : add_plain)(s, i, &table);
	buffer_text(out, "\n");
	table_render(&table, style, INDENT, true, out);
	table_close(&table);
	if (s->thread_count > shown)
		buffer_format(out, "  and %zu more\n", s->thread_count - shown);
	if (!s->by_stage && s->whole && runs(&s->view))
		buffer_text(out,
			"  which stage they are of, and what they do there, is not known: measure.profiler = off\n");
}

void status_text(const struct status *s, const struct style *style, struct buffer *out)
{
	add_head(s, style, out);
	if (s->whole)
		add_phase(s, style, out);
	if (s->seen)
		add_health(s, style, out);
	else
		LINE(style, "health", out, "%s", s->why);
	if (s->whole && runs(&s->view)) {
		add_rates(s, style, out);
		if (s->view.timed)
			add_queues(s, style, out);
		add_verdict(s, style, out);
	}
	add_threads(s, style, out);
}

/* --- a list ------------------------------------------------------------------------------------- */

static const struct table_column listed[] = {
	{"process", false, 0, false, false},
	{"command", true, 3, false, false},
	{"name", true, 0, false, false},
	{"phase", true, 0, false, false},
	{"done", false, 1, false, false},
	{"samples/s", false, 0, false, false},
	{"to go", false, 2, false, false},
	{"health", true, 0, true, false},
};

static void add_run(const struct status *s, struct table *table)
{
	const struct live_view *v = &s->view;
	char text[UNITS_BYTES];
	table_add(table, INK_PLAIN, "%d", s->pid);
	add_cell(table, INK_PLAIN, v->command);
	add_cell(table, INK_BOLD, v->name);
	table_add(table, INK_PLAIN, "%s", s->whole ? live_phase_name(v->phase) : "unknown");
	table_add(table, INK_PLAIN, "%u/%u", v->done, v->total);
	table_add(table, INK_PLAIN, "%s",
		units_or_dash(units_format_count, v->throughput_window, text));
	table_add(table, INK_PLAIN, "%s",
		isnan(v->rest_s) || v->total == 0 ? "-" : duration(v->rest_s, text));
	table_add(table, status_is_stuck(s) ? INK_BAD : INK_GOOD, "%s",
		s->seen ? stall_kind_name(s->stall.kind) : "starting");
}

void status_list_text(
	const struct status *list, size_t count, const struct style *style, struct buffer *out)
{
	struct table table;
	if (count == 0) {
		buffer_text(out, "no run of yours shows itself\n");
		return;
	}
	table_open(&table, listed, sizeof listed / sizeof listed[0]);
	for (size_t i = 0; i < count; i++)
		add_run(&list[i], &table);
	table_render(&table, style, 0, true, out);
	table_close(&table);
}
