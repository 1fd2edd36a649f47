/* A run in progress: looking once, the document, and the lines for people. */
#include "harness/live/status.h"

#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/layout.h"
#include "harness/report/medium.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void look_at_stages(struct status *out)
{
	out->by_stage = true;
	out->thread_count = out->view.thread_count;
	for (size_t i = 0; i < out->thread_count; i++)
		if (out->view.threads[i].tid > 0)
			look_at_thread(out->pid, out->view.threads[i].tid, &out->threads[i]);
}

/* Which stage they are of is not known. */
static void look_at_all(struct status *out)
{
	int32_t tids[LIVE_THREADS_MAX];
	const size_t count = look_list_threads(out->pid, tids, LIVE_THREADS_MAX);
	out->thread_count = count < LIVE_THREADS_MAX ? count : LIVE_THREADS_MAX;
	for (size_t i = 0; i < out->thread_count; i++)
		look_at_thread(out->pid, tids[i], &out->threads[i]);
}

int status_look(int32_t pid, bool threads, struct status *out, struct error *err)
{
	struct live_board *board = NULL;
	int code = live_board_attach(&board, pid, err);
	*out = (struct status){.pid = pid};
	if (code)
		return code;
	code = live_board_read(board, &out->view);
	live_board_close(board);
	if (code == -EPROTO)
		return error_set(err, code, "process %d: its update is incomplete", pid);
	out->whole = code == 0;
	out->seen = code != -EAGAIN;
	if (!out->seen)
		(void)snprintf(out->why, sizeof out->why, "it has published nothing yet");
	if (threads && out->whole && out->view.thread_count > 0)
		look_at_stages(out);
	else if (threads)
		look_at_all(out);
	out->now_ns = clock_now_ns();
	out->now = clock_utc_seconds();
	stall_look(pid, out->whole ? &out->view : NULL, out->threads,
		out->by_stage ? out->thread_count : 0, out->now_ns, &out->stall);
	return 0;
}

bool status_is_stuck(const struct status *status)
{
	return status->seen && stall_is_stuck(&status->stall);
}

/* --- the document mlbench.status/1 ------------------------------------------------------------ */

static const char *status_state_name(unsigned state)
{
	static const char *const names[THREAD_STATES] = {"starved", "working", "blocked"};
	return state < THREAD_STATES ? names[state] : "unknown";
}

static json_t *status_text_or_null(const char *text)
{
	return text[0] ? fields_text(text) : json_null();
}

static json_t *age(const struct status *s, uint64_t then_ns)
{
	return then_ns > 0 && s->now_ns >= then_ns
		       ? json_real((double)(s->now_ns - then_ns) / (double)NS_PER_S)
		       : json_null();
}

static json_t *states_json(const double seconds[THREAD_STATES])
{
	json_t *out = json_object();
	for (unsigned k = 0; k < THREAD_STATES; k++)
		(void)json_object_set_new(out, status_state_name(k), fields_number(seconds[k]));
	return out;
}

static json_t *stages_json(const struct live_view *v)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < v->stage_count; i++) {
		const struct live_stage *stage = &v->stages[i];
		(void)json_array_append_new(list,
			json_pack("{s:o, s:i, s:b, s:b, s:I, s:o, s:o}", "name",
				fields_text(stage->name), "workers", (int)stage->workers,
				"per_batch", stage->per_batch, "emulated", stage->emulated, "items",
				(json_int_t)stage->items, "seconds", states_json(stage->seconds),
				"cpu_seconds", fields_number(stage->cpu_seconds)));
	}
	return list;
}

static json_t *queues_json(const struct live_view *v)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < v->queue_count; i++)
		(void)json_array_append_new(
			list, json_pack("{s:o, s:i, s:i}", "name", fields_text(v->queues[i].name),
				      "depth", (int)v->queues[i].depth, "capacity",
				      (int)v->queues[i].capacity));
	return list;
}

static json_t *kernel_json(const struct thread_look *look)
{
	char words[LOOK_WORDS_BYTES];
	char state[2] = {look->state, '\0'};
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "state", status_text_or_null(state),
		"name", status_text_or_null(look->name), "call", status_text_or_null(look->call),
		"file", status_text_or_null(look->file), "place", status_text_or_null(look->place),
		"not_told", status_text_or_null(look->unknown), "words",
		fields_text(look_words(look, words)));
}

static json_t *thread_json(const struct status *s, size_t i)
{
	const struct live_thread *t = s->by_stage ? &s->view.threads[i] : NULL;
	const int32_t tid = t ? t->tid : s->threads[i].tid;
	json_t *out = json_object();
	(void)json_object_set_new(
		out, "stage", t ? fields_text(s->view.stages[t->stage].name) : json_null());
	(void)json_object_set_new(out, "index", t ? json_integer(t->index) : json_null());
	(void)json_object_set_new(out, "thread", tid > 0 ? json_integer(tid) : json_null());
	(void)json_object_set_new(
		out, "state", t ? json_string(status_state_name(t->state)) : json_null());
	(void)json_object_set_new(out, "state_seconds", t ? age(s, t->since_ns) : json_null());
	(void)json_object_set_new(
		out, "items", t ? json_integer((json_int_t)t->items) : json_null());
	(void)json_object_set_new(out, "seconds_since_item", t ? age(s, t->moved_ns) : json_null());
	(void)json_object_set_new(
		out, "kernel", tid > 0 ? kernel_json(&s->threads[i]) : json_null());
	return out;
}

static json_t *threads_json(const struct status *s)
{
	json_t *list = json_array();
	for (size_t i = 0; i < s->thread_count; i++)
		(void)json_array_append_new(list, thread_json(s, i));
	return list;
}

static json_t *health_json(const struct status *s)
{
	json_t *chain = json_array();
	for (size_t i = 0; i < s->stall.chain_count; i++)
		(void)json_array_append_new(chain, fields_text(s->stall.chain[i]));
	return json_pack("{s:s, s:b, s:o, s:o, s:o}", "kind",
		s->seen ? stall_kind_name(s->stall.kind) : "starting", "stuck", status_is_stuck(s),
		"still_seconds", fields_number(s->stall.still_s), "words",
		fields_text(s->seen ? s->stall.words : s->why), "chain", chain);
}

static json_t *verdict_json(const struct live_verdict *v)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "words", status_text_or_null(v->words),
		"stage", v->told ? fields_text(v->verdict.stage) : json_null(), "resource",
		v->told ? fields_text(v->verdict.resource) : json_null(), "confidence",
		v->told ? json_real(v->verdict.confidence) : json_null(), "over_seconds",
		fields_number(v->over_s));
}

static json_t *device_json(const struct live_view *v)
{
	return json_pack("{s:o, s:o, s:o}", "clock_mhz", fields_number(v->device_clock_mhz),
		"power_w", fields_number(v->device_power_w), "temperature_c",
		fields_number(v->device_temperature_c));
}

static void add_view(json_t *out, const struct status *s)
{
	const struct live_view *v = &s->view;
	char started[CLOCK_UTC_BYTES];
#define SET(name, value) (void)json_object_set_new(out, name, value)
	SET("phase", json_string(live_phase_name(v->phase)));
	SET("phase_seconds", age(s, v->phase_ns));
	SET("picture_seconds", age(s, v->updated_ns));
	SET("label", status_text_or_null(v->label));
	SET("limit", json_boolean(v->limit));
	SET("folder", status_text_or_null(v->folder));
	clock_format_utc(v->started, started);
	SET("started", status_text_or_null(started));
	SET("done", json_integer(v->done));
	SET("total", json_integer(v->total));
	SET("elapsed_seconds", fields_number(v->elapsed_s));
	SET("planned_seconds", v->planned_s > 0 ? json_real(v->planned_s) : json_null());
	SET("rest_seconds", v->total > 0 ? fields_number(v->rest_s) : json_null());
	SET("ranks", v->ranks > 0 ? json_integer(v->ranks) : json_null());
	SET("profiler", json_boolean(v->timed));
	SET("samples", json_integer((json_int_t)v->samples));
	SET("batches", json_integer((json_int_t)v->batches));
	SET("epochs", json_integer((json_int_t)v->epochs));
	SET("bad_samples", json_integer((json_int_t)v->bad_samples));
	SET("throughput_window", fields_number(v->throughput_window));
	SET("throughput", fields_number(v->throughput));
	SET("window_seconds", fields_number(v->window_s));
	SET("step_utilisation_window", fields_number(v->step_utilisation_window));
	SET("step_emulated", json_boolean(v->step_emulated));
	SET("bytes_read_per_s", fields_number(v->bytes_read_per_s));
	SET("files_in_flight", json_integer(v->files_in_flight));
	SET("resident_bytes", json_integer((json_int_t)v->resident_bytes));
	SET("pool_bytes", json_integer((json_int_t)v->pool_bytes));
	SET("device", device_json(v));
	SET("stages", stages_json(v));
	SET("queues", queues_json(v));
#undef SET
}

static json_t *run_json(const struct status *s)
{
	json_t *out = json_object();
	(void)json_object_set_new(out, "pid", json_integer(s->pid));
	(void)json_object_set_new(out, "command", status_text_or_null(s->view.command));
	(void)json_object_set_new(out, "name", status_text_or_null(s->view.name));
	(void)json_object_set_new(out, "node", status_text_or_null(s->view.node));
	(void)json_object_set_new(out, "version", status_text_or_null(s->view.version));
	(void)json_object_set_new(out, "health", health_json(s));
	json_t *picture = s->whole ? json_object() : json_null();
	if (s->whole)
		add_view(picture, s);
	(void)json_object_set_new(out, "picture", picture);
	(void)json_object_set_new(out, "verdict", verdict_json(&s->verdict));
	(void)json_object_set_new(out, "threads", threads_json(s));
	return out;
}

json_t *status_json(const struct status *list, size_t count)
{
	json_t *runs = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(runs, run_json(&list[i]));
	return json_pack("{s:s, s:o}", "schema", "mlbench.status/1", "runs", runs);
}

/* --- lines for people: whatever came from configurations or from the kernel loses its control characters ---- */

enum { THREADS_SHOWN = 64, EVIDENCE_SHOWN = 2 };

static double age_s(const struct status *s, uint64_t then_ns)
{
	return then_ns > 0 && s->now_ns > then_ns ? (double)(s->now_ns - then_ns) / (double)NS_PER_S
						  : 0;
}

static const char *duration(double seconds, char out[UNITS_BYTES])
{
	return units_format_duration(seconds * (double)NS_PER_S, out);
}

/* --- one run ---------------------------------------------------------------------------------- */

/* Releases text. */
static void status_line(const struct style *style, enum ink ink, const char *label,
	struct buffer *text, struct buffer *out)
{
	struct buffer plain = {0};
	utf8_add_plain(&plain, text->data ? text->data : "", "?");
	layout_labelled_buffer(style, ink, label, &plain, out);
	buffer_release(text);
}

static void status_add_head(const struct status *s, const struct style *style, struct buffer *out)
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
	struct buffer text = {0};
	buffer_format(&text, "%s for %s", live_phase_name(v->phase),
		duration(age_s(s, v->phase_ns), since));
	if (runs(v) && v->planned_s > 0)
		buffer_format(&text, "; %s of %s of this repetition", duration(v->elapsed_s, since),
			duration(v->planned_s, total));
	if (!isnan(v->rest_s) && v->total > 0)
		buffer_format(&text, "; about %s left", duration(v->rest_s, since));
	status_line(style, INK_DIM, "phase", &text, out);
	if (v->total > 0)
		buffer_format(&text, "%u of %u: %s", v->done < v->total ? v->done + 1 : v->total,
			v->total, v->label);
	status_line(style, INK_DIM, v->limit ? "limit" : "point", &text, out);
	buffer_text(&text, v->folder);
	status_line(style, INK_DIM, "results", &text, out);
}

static void add_rates(const struct status *s, const struct style *style, struct buffer *out)
{
	const struct live_view *v = &s->view;
	char now[UNITS_BYTES];
	char all[UNITS_BYTES];
	char samples[UNITS_BYTES];
	char batches[UNITS_BYTES];
	struct buffer text = {0};
	buffer_format(&text,
		"%s samples/s over the last %.1f s, %s since the warm-up; %s samples in %s batch%s",
		units_or_dash(units_format_count, v->throughput_window, now), v->window_s,
		units_or_dash(units_format_count, v->throughput, all),
		units_or_dash(units_format_count, (double)v->samples, samples),
		units_or_dash(units_format_count, (double)v->batches, batches),
		v->batches == 1 ? "" : "es");
	if (v->bad_samples > 0)
		buffer_format(&text, ", %llu of them bad", (unsigned long long)v->bad_samples);
	buffer_text(&text, v->step_emulated ? " (the step is emulated)" : "");
	status_line(style, INK_DIM, "rate", &text, out);
	if (v->ranks > 0)
		buffer_format(&text,
			"%u train together: %s samples/s, %s since the warm-up; all else here is of rank 0",
			v->ranks,
			units_or_dash(units_format_count, v->ranks * v->throughput_window, now),
			units_or_dash(units_format_count, v->ranks * v->throughput, all));
	status_line(style, INK_DIM, "ranks", &text, out);
	if (!isnan(v->bytes_read_per_s))
		buffer_format(&text, "%s, %u file%s in flight",
			units_format_rate(v->bytes_read_per_s, now), v->files_in_flight,
			v->files_in_flight == 1 ? "" : "s");
	status_line(style, INK_DIM, "read", &text, out);
	buffer_format(&text, "%s resident, %s in pools",
		units_format_size((double)v->resident_bytes, now),
		units_format_size((double)v->pool_bytes, all));
	status_line(style, INK_DIM, "memory", &text, out);
	if (!isnan(v->device_clock_mhz))
		buffer_format(&text, "%.0f MHz, %.0f W, %.0f C", v->device_clock_mhz,
			v->device_power_w, v->device_temperature_c);
	status_line(style, INK_DIM, "device", &text, out);
	for (uint32_t i = 0; v->timed && i < v->queue_count; i++)
		buffer_format(&text, "%s%s %u of %u", i ? ", " : "", v->queues[i].name,
			v->queues[i].depth, v->queues[i].capacity);
	status_line(style, INK_DIM, "queues", &text, out);
}

static void add_health(const struct status *s, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	if (s->seen)
		buffer_format(&text, "%s: %s", stall_kind_name(s->stall.kind), s->stall.words);
	else
		buffer_text(&text, s->why);
	status_line(style, status_is_stuck(s) ? INK_BAD : INK_GOOD, "health", &text, out);
}

static void add_verdict(const struct status *s, const struct style *style, struct buffer *out)
{
	const size_t known = s->verdict.told ? s->verdict.verdict.evidence_count : 0;
	struct buffer text = {0};
	buffer_text(&text, s->verdict.words);
	status_line(style, INK_DIM, "verdict", &text, out);
	for (size_t i = 0; i < known && i < EVIDENCE_SHOWN; i++) {
		buffer_text(&text, s->verdict.verdict.evidence[i]);
		status_line(style, INK_DIM, "", &text, out);
	}
}

/* --- tables, of the document --------------------------------------------------------------------- */

static void plain_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	utf8_add_plain(out, column_text(row, column->path), "?");
}

/* With ranks, which of them the row is of. */
static void name_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double ranks = column_number(row, "picture.ranks");
	plain_cell(column, row, out);
	if (ranks > 0)
		buffer_format(out, ", rank 0 of %.0f", ranks);
}

static void kernel_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	if (json_is_object(json_object_get(row, "kernel")))
		plain_cell(column, row, out);
	else
		buffer_text(out, "no thread of its own");
}

static enum ink state_ink(const struct table_column *column, const json_t *row)
{
	const char *state = column_text(row, column->path);
	return strcmp(state, status_state_name(THREAD_WORKING)) == 0   ? INK_GOOD
	       : strcmp(state, status_state_name(THREAD_BLOCKED)) == 0 ? INK_WARN
								       : INK_DIM;
}

static void status_add_threads(const struct status *s, const json_t *threads,
	const struct style *style, struct buffer *out)
{
	static const struct table_column staged[] = {
		{.head = "stage", .left = true, .path = "stage", .text_of = plain_cell},
		{.head = "thread", .path = "thread"},
		{.head = "state", .left = true, .path = "state", .ink_of = state_ink},
		{.head = "for", .path = "state_seconds", .unit = COLUMN_SECONDS, .keep = 1},
		{.head = "items", .path = "items", .unit = COLUMN_COUNT, .keep = 2},
		{.head = "last item",
			.path = "seconds_since_item",
			.unit = COLUMN_SECONDS,
			.after = " ago",
			.keep = 3},
		{.head = "in the kernel",
			.left = true,
			.wraps = true,
			.path = "kernel.words",
			.text_of = kernel_cell},
	};
	static const struct table_column unstaged[] = {
		{.head = "thread", .path = "thread"},
		{.head = "name", .left = true, .path = "kernel.name", .text_of = plain_cell},
		{.head = "in the kernel",
			.left = true,
			.wraps = true,
			.path = "kernel.words",
			.text_of = kernel_cell},
	};
	json_t *shown = json_array();
	struct medium medium = medium_terminal(style, out);
	for (size_t i = 0; i < s->thread_count && i < THREADS_SHOWN; i++)
		(void)json_array_append(shown, json_array_get(threads, i));
	if (s->thread_count > 0)
		medium_space(&medium);
	medium_table(&medium, s->by_stage ? staged : unstaged,
		s->by_stage ? sizeof staged / sizeof *staged : sizeof unstaged / sizeof *unstaged,
		shown, "threads");
	json_decref(shown);
	if (s->thread_count > THREADS_SHOWN)
		buffer_format(out, "  and %zu more\n", s->thread_count - THREADS_SHOWN);
	if (s->thread_count > 0 && !s->by_stage && s->whole && runs(&s->view))
		buffer_text(out,
			"  which stage they belong to and what they do is unknown: measure.profiler = "
			"off\n");
}

void status_text(const struct status *s, const struct style *style, struct buffer *out)
{
	json_t *threads = threads_json(s);
	status_add_head(s, style, out);
	if (s->whole)
		add_phase(s, style, out);
	add_health(s, style, out);
	if (s->whole && runs(&s->view)) {
		add_rates(s, style, out);
		add_verdict(s, style, out);
	}
	status_add_threads(s, threads, style, out);
	json_decref(threads);
}

/* --- a list ----------------------------------------------------------------------------------- */

static void done_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	if (json_is_object(json_object_get(row, "picture")))
		buffer_format(out, "%.0f/%.0f", column_number(row, "picture.done"),
			column_number(row, "picture.total"));
}

static enum ink health_ink(const struct table_column *column, const json_t *row)
{
	(void)column;
	return json_is_true(column_value(row, "health.stuck")) ? INK_BAD : INK_GOOD;
}

void status_list_text(
	const struct status *list, size_t count, const struct style *style, struct buffer *out)
{
	static const struct table_column columns[] = {
		{.head = "process", .path = "pid"},
		{.head = "command",
			.left = true,
			.path = "command",
			.text_of = plain_cell,
			.keep = 3},
		{.head = "name",
			.left = true,
			.path = "name",
			.text_of = name_cell,
			.ink = INK_BOLD},
		{.head = "phase", .left = true, .path = "picture.phase"},
		{.head = "done", .text_of = done_cell, .keep = 1},
		{.head = "samples/s", .path = "picture.throughput_window", .unit = COLUMN_COUNT},
		{.head = "left", .path = "picture.rest_seconds", .unit = COLUMN_SECONDS, .keep = 2},
		{.head = "health",
			.left = true,
			.wraps = true,
			.path = "health.kind",
			.ink_of = health_ink},
	};
	json_t *document = status_json(list, count);
	struct table table;
	if (count == 0)
		buffer_text(out, "no runs of yours in progress\n");
	columns_table(columns, sizeof columns / sizeof *columns, json_object_get(document, "runs"),
		&table);
	if (count > 0)
		table_render(&table, style, 0, true, out);
	out->failed = out->failed || !document;
	table_close(&table);
	json_decref(document);
}
