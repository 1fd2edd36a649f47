/* From top to bottom: what runs, how it goes, stages, queues, graphs, what is done, messages. */
#include "harness/live/draw.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- what is kept of the last seconds --------------------------------------------------------------- */

enum { SPACING_NS = 240000000 }; /* between two pictures that are kept */

static const double VERDICT_S = 10, STATES_S = 2;

static void keep_sums(struct recent *h, const struct live_view *view)
{
	if (h->begun_ns != view->begun_ns)
		h->sum_count = 0;
	h->begun_ns = view->begun_ns;
	if (h->sum_count == RECENT_SUMS)
		memmove(h->sums, h->sums + 1, --h->sum_count * sizeof h->sums[0]);
	live_sums_of(view, &h->sums[h->sum_count++]);
}

static void keep_values(struct recent *h, const double values[RECENT_SERIES])
{
	if (h->value_count == RECENT_VALUES) {
		for (size_t s = 0; s < RECENT_SERIES; s++)
			memmove(h->values[s], h->values[s] + 1,
				(RECENT_VALUES - 1) * sizeof h->values[s][0]);
		h->value_count--;
	}
	for (size_t s = 0; s < RECENT_SERIES; s++) {
		h->values[s][h->value_count] = (float)values[s];
		if (isfinite(values[s]) && values[s] > h->most[s])
			h->most[s] = values[s];
	}
	h->value_count++;
}

void recent_add(struct recent *h, const struct live_view *view)
{
	static const double gap[RECENT_SERIES] = {NAN, NAN, NAN, NAN};
	if (view->updated_ns < h->last_ns + SPACING_NS)
		return;
	h->last_ns = view->updated_ns;
	if (isnan(view->period_s)) {
		/* One gap stands for a pause, however long. */
		if (h->value_count > 0 && !isnan(h->values[RECENT_MEMORY][h->value_count - 1]))
			keep_values(h, gap);
		return;
	}
	const double values[RECENT_SERIES] = {
		[RECENT_THROUGHPUT] = view->throughput_window,
		[RECENT_STEP] = view->step_utilisation_window,
		[RECENT_READ] = view->bytes_read_per_s,
		[RECENT_MEMORY] = (double)view->resident_bytes,
	};
	keep_sums(h, view);
	keep_values(h, values);
}

const struct live_sums *recent_before(
	const struct recent *h, const struct live_view *view, double seconds, uint64_t least_ns)
{
	const uint64_t back_ns = (uint64_t)(seconds * (double)NS_PER_S);
	const uint64_t until_ns = view->updated_ns > back_ns ? view->updated_ns - back_ns : 0;
	const struct live_sums *found = NULL;
	if (h->begun_ns != view->begun_ns)
		return NULL;
	for (size_t i = 0; i < h->sum_count; i++)
		if (h->sums[i].t_ns >= least_ns && (!found || h->sums[i].t_ns <= until_ns))
			found = &h->sums[i];
	return found;
}

void recent_verdict(const struct recent *h, const struct live_view *view, struct live_verdict *out)
{
	const struct live_sums *from =
		view->warm.t_ns > 0 ? recent_before(h, view, VERDICT_S, view->warm.t_ns) : NULL;
	const bool long_ago = view->updated_ns > view->warm.t_ns + (uint64_t)(VERDICT_S * NS_PER_S);
	live_verdict_of(from && long_ago ? from : &view->warm, view, out);
}

bool recent_states(const struct recent *h, const struct live_view *view, size_t stage,
	double shares[THREAD_STATES], double *items_per_s)
{
	const struct live_sums *from = recent_before(h, view, STATES_S, 0);
	const struct live_stage *now = &view->stages[stage];
	double total = 0;
	if (!view->timed || !from || from->t_ns >= view->updated_ns)
		return false;
	for (size_t k = 0; k < THREAD_STATES; k++) {
		shares[k] = fmax(now->seconds[k] - from->stages[stage].seconds[k], 0);
		total += shares[k];
	}
	for (size_t k = 0; k < THREAD_STATES; k++)
		shares[k] = total > 0 ? shares[k] / total : 0;
	*items_per_s = (double)(now->items - from->stages[stage].items) * (double)NS_PER_S /
		       (double)(view->updated_ns - from->t_ns);
	return total > 0;
}

/* --- drawing --------------------------------------------------------------------------------------- */

enum {
	NAME_COLUMNS = 12,  /* of a row's name */
	VALUE_COLUMNS = 18, /* of the figure beside a graph */
	TAIL_COLUMNS = 22,  /* of the figures behind a bar */
	BAR_LEAST = 8,
	ROOMY_ROWS = 28,  /* from here on there are blank lines and heads */
	GRAPH_ROOMY = 36, /* from here on graphs are three rows high */
	LOG_LINES = 64,
	DONE_SHARE = 2, /* of the rest of the screen, the half at most is for what is done */
	MINUTE = 60,
	HOUR = 3600,
};

static const double EXACT_BELOW_S = 10;

/* Where the next row goes, and how many are left. */
struct pen {
	struct canvas *canvas;
	const struct scene *scene;
	int row, left;
	bool roomy;
};

static bool has_room(const struct pen *pen, int rows)
{
	return pen->left >= rows;
}

static void advance(struct pen *pen, int rows)
{
	pen->row += rows;
	pen->left -= rows;
}

static void skip_line(struct pen *pen)
{
	if (pen->roomy && has_room(pen, 1))
		advance(pen, 1);
}

/* --- figures ------------------------------------------------------------------------------------ */

static const char *format_time(double seconds, char out[UNITS_BYTES])
{
	if (isnan(seconds))
		(void)snprintf(out, UNITS_BYTES, "?");
	else if (seconds < EXACT_BELOW_S)
		(void)snprintf(out, UNITS_BYTES, "%.1f s", seconds);
	else if (seconds < 2 * MINUTE)
		(void)snprintf(out, UNITS_BYTES, "%.0f s", seconds);
	else if (seconds < HOUR)
		(void)snprintf(out, UNITS_BYTES, "%ld min %02ld s", (long)seconds / MINUTE,
			(long)seconds % MINUTE);
	else
		(void)snprintf(out, UNITS_BYTES, "%ld h %02ld min", (long)seconds / HOUR,
			(long)seconds % HOUR / MINUTE);
	return out;
}

static bool draw_runs(const struct live_view *v)
{
	return v && !isnan(v->period_s);
}

/* --- the head ----------------------------------------------------------------------------------- */

static const char *phase_of(const struct scene *s, char out[UNITS_BYTES])
{
	const char *name = s->over       ? "ended"
			   : s->stopping ? "stopping"
					 : live_phase_name(s->view->phase);
	(void)snprintf(out, UNITS_BYTES, "%s%s", name, s->paused ? ", view paused" : "");
	return out;
}

static void draw_title(struct pen *pen)
{
	const struct scene *s = pen->scene;
	struct canvas *c = pen->canvas;
	char left[LIVE_LABEL_BYTES + 64];
	char right[96];
	char phase[UNITS_BYTES];
	char rest[UNITS_BYTES];
	if (!s->view) {
		(void)canvas_text(
			c, pen->row, 0, c->columns, INK_BOLD, "mlbench: nothing was shown yet");
		advance(pen, 1);
		return;
	}
	(void)snprintf(left, sizeof left, "mlbench %s  %s", s->view->command, s->view->name);
	(void)snprintf(right, sizeof right, "%s%s%s", phase_of(s, phase),
		isnan(s->view->rest_s) ? "" : "  ETA ",
		isnan(s->view->rest_s) ? "" : format_time(s->view->rest_s, rest));
	const int half = (int)strlen(right) < c->columns / 2 ? c->columns - (int)strlen(right) - 2
							     : c->columns / 2;
	(void)canvas_text(c, pen->row, 0, half, INK_BOLD, left);
	canvas_right(c, pen->row, c->columns, c->columns - half - 1,
		s->paused || s->stopping ? INK_WARN : INK_ACCENT, right);
	advance(pen, 1);
}

static double share_done(const struct live_view *v)
{
	const double part =
		draw_runs(v) && v->planned_s > 0 ? fmin(v->elapsed_s / v->planned_s, 1) : 0;
	return v->total > 0 ? fmin((v->done + part) / v->total, 1) : 0;
}

static void draw_point(struct pen *pen)
{
	const struct live_view *v = pen->scene->view;
	struct canvas *c = pen->canvas;
	char time[2 * UNITS_BYTES] = "";
	char elapsed[UNITS_BYTES];
	char planned[UNITS_BYTES];
	if (!v || !has_room(pen, 1))
		return;
	if (draw_runs(v))
		(void)snprintf(time, sizeof time, "%s%s%s", format_time(v->elapsed_s, elapsed),
			v->planned_s > 0 ? " of " : "",
			v->planned_s > 0 ? format_time(v->planned_s, planned) : "");
	const int tail = (int)strlen(time);
	const int used = canvas_format(c, pen->row, 0, c->columns - tail - 1, INK_PLAIN,
		"%u/%u  %s%s", v->done < v->total ? v->done + 1 : v->total, v->total, v->label,
		v->folder[0] && v->total == 0 ? v->folder : "");
	canvas_right(c, pen->row, c->columns, tail, INK_DIM, time);
	const int bar = c->columns - used - tail - 4;
	const double share = share_done(v);
	const struct canvas_part parts[] = {
		{share, INK_ACCENT, L'\u2501', L'='}, {1 - share, INK_DIM, L'\u2500', L'-'}};
	if (bar >= BAR_LEAST)
		canvas_bar(c, pen->row, used + 2, bar, parts, 2);
	advance(pen, 1);
}

/* --- how it goes -------------------------------------------------------------------------------- */

/* Text over several rows, broken at blanks; returns the rows. */
static int draw_wrapped(
	const struct pen *pen, int row, int column, int most_rows, enum ink ink, const char *text)
{
	const int width = pen->canvas->columns - column;
	int rows = 0;
	while (*text && rows < most_rows && width > 0) {
		size_t bytes = strlen(text);
		if (rows + 1 < most_rows && bytes > (size_t)width) {
			bytes = (size_t)width;
			while (bytes > 0 && text[bytes] != ' ')
				bytes--;
			bytes = bytes > 0 ? bytes : (size_t)width;
		}
		char line[STALL_WORDS_BYTES];
		(void)snprintf(line, sizeof line, "%.*s", (int)bytes, text);
		(void)canvas_text(pen->canvas, row + rows, column, width, ink, line);
		rows++;
		text += bytes;
		text += strspn(text, " ");
	}
	return rows;
}

static bool draw_is_stuck(const struct stall *stall)
{
	return stall && stall->kind != STALL_NONE && stall->kind != STALL_IDLE;
}

static void draw_words(struct pen *pen)
{
	const struct scene *s = pen->scene;
	const int most = pen->roomy ? 3 : pen->left > 12 ? 2 : 1;
	if (!has_room(pen, 1))
		return;
	const bool stuck = draw_is_stuck(s->stall);
	const char *words = stuck ? s->stall->words : s->verdict ? s->verdict->words : "";
	(void)canvas_text(pen->canvas, pen->row, 0, NAME_COLUMNS, INK_DIM,
		stuck ? "stands still" : "verdict");
	const int rows =
		draw_wrapped(pen, pen->row, NAME_COLUMNS + 1, most < pen->left ? most : pen->left,
			stuck                            ? INK_BAD
			: s->verdict && s->verdict->told ? INK_BOLD
							 : INK_DIM,
			words);
	advance(pen, rows > 0 ? rows : 1);
}

/* What is shown is of one of them. */
static void draw_ranks(struct pen *pen)
{
	const struct live_view *v = pen->scene->view;
	char rate[UNITS_BYTES];
	if (!v || v->ranks == 0 || !has_room(pen, 1))
		return;
	(void)canvas_text(pen->canvas, pen->row, 0, NAME_COLUMNS, INK_DIM, "ranks");
	(void)canvas_format(pen->canvas, pen->row, NAME_COLUMNS + 1,
		pen->canvas->columns - NAME_COLUMNS - 1, INK_BOLD,
		"%u: %s samples/s together; the rest is of rank 0", v->ranks,
		units_or_dash(units_format_count,
			draw_runs(v) ? v->ranks * v->throughput_window : (double)NAN, rate));
	advance(pen, 1);
}

/* --- stages and queues --------------------------------------------------------------------------- */

static const struct canvas_part state_parts[THREAD_STATES] = {
	[THREAD_WORKING] = {0, INK_GOOD, L'\u2588', L'#'},
	[THREAD_STARVED] = {0, INK_DIM, L'\u00b7', L'.'},
	[THREAD_BLOCKED] = {0, INK_WARN, L'\u2592', L'x'},
};
static const char *const state_names[THREAD_STATES] = {
	[THREAD_WORKING] = "working", [THREAD_STARVED] = "starved", [THREAD_BLOCKED] = "blocked"};
static const enum thread_state bar_order[THREAD_STATES] = {
	THREAD_WORKING, THREAD_STARVED, THREAD_BLOCKED};

static int tail_columns(const struct canvas *c)
{
	return c->columns >= NAME_COLUMNS + 2 * TAIL_COLUMNS ? TAIL_COLUMNS : TAIL_COLUMNS / 3;
}

static void draw_legend(struct pen *pen)
{
	struct canvas *c = pen->canvas;
	int column = NAME_COLUMNS + 1;
	(void)canvas_text(c, pen->row, 0, NAME_COLUMNS, INK_BOLD, "stages");
	for (size_t i = 0; i < THREAD_STATES; i++) {
		const struct canvas_part *part = &state_parts[bar_order[i]];
		canvas_fill(c, pen->row, column, 2, part->ink, c->utf8 ? part->glyph : part->ascii);
		column += 3 +
			  canvas_text(c, pen->row, column + 3, c->columns - column - 3, INK_DIM,
				  state_names[bar_order[i]]) +
			  2;
	}
	advance(pen, 1);
}

static void draw_stage(struct pen *pen, size_t stage)
{
	const struct scene *s = pen->scene;
	const struct live_stage *live = &s->view->stages[stage];
	struct canvas *c = pen->canvas;
	double shares[THREAD_STATES];
	double items = 0;
	char text[UNITS_BYTES];
	char tail[2 * UNITS_BYTES] = "";
	const int width = c->columns - NAME_COLUMNS - 1 - tail_columns(c);
	(void)canvas_format(c, pen->row, 0, NAME_COLUMNS, INK_PLAIN, "%.7s x%u%s", live->name,
		live->workers, live->emulated ? " e" : "");
	const bool known = recent_states(s->history, s->view, stage, shares, &items);
	if (!known) {
		(void)canvas_text(c, pen->row, NAME_COLUMNS + 1, width, INK_DIM,
			s->view->timed ? "unknown so far" : "unknown: measure.profiler is off");
		advance(pen, 1);
		return;
	}
	struct canvas_part parts[THREAD_STATES];
	for (size_t i = 0; i < THREAD_STATES; i++) {
		parts[i] = state_parts[bar_order[i]];
		parts[i].share = shares[bar_order[i]];
	}
	canvas_bar(c, pen->row, NAME_COLUMNS + 1, width, parts, THREAD_STATES);
	const bool wide = tail_columns(c) == TAIL_COLUMNS;
	(void)snprintf(tail, sizeof tail, "%3.0f %%%s%s%s", shares[THREAD_WORKING] * 100,
		wide ? "  " : "", wide ? units_or_dash(units_format_count, items, text) : "",
		wide ? live->per_batch ? " batch/s" : " /s" : "");
	canvas_right(c, pen->row, c->columns, tail_columns(c) - 1, INK_PLAIN, tail);
	advance(pen, 1);
}

static void draw_queue(struct pen *pen, const struct live_queue *queue)
{
	struct canvas *c = pen->canvas;
	char tail[2 * UNITS_BYTES];
	const int width = c->columns - NAME_COLUMNS - 1 - tail_columns(c);
	const double share = queue->capacity > 0 ? (double)queue->depth / queue->capacity : 0;
	const struct canvas_part parts[] = {{fmin(share, 1), INK_ACCENT, L'\u25a0', L'o'},
		{fmax(1 - share, 0), INK_DIM, L'\u2500', L'-'}};
	(void)canvas_text(c, pen->row, 0, NAME_COLUMNS, INK_PLAIN, queue->name);
	canvas_bar(c, pen->row, NAME_COLUMNS + 1, width, parts, 2);
	(void)snprintf(tail, sizeof tail, "%u/%u", queue->depth, queue->capacity);
	canvas_right(c, pen->row, c->columns, tail_columns(c) - 1, INK_PLAIN, tail);
	advance(pen, 1);
}

static void draw_stages(struct pen *pen)
{
	const struct live_view *v = pen->scene->view;
	if (!v || v->stage_count == 0)
		return;
	skip_line(pen);
	if (has_room(pen, (int)v->stage_count + 2))
		draw_legend(pen);
	for (size_t i = 0; i < v->stage_count && has_room(pen, 1); i++)
		draw_stage(pen, i);
}

static void draw_queues(struct pen *pen)
{
	const struct live_view *v = pen->scene->view;
	if (!v || !v->timed || !draw_runs(v))
		return;
	skip_line(pen);
	if (pen->roomy && has_room(pen, (int)v->queue_count + 1)) {
		(void)canvas_text(
			pen->canvas, pen->row, 0, pen->canvas->columns, INK_BOLD, "queues");
		advance(pen, 1);
	}
	for (uint32_t i = 0; i < v->queue_count && has_room(pen, 1); i++)
		draw_queue(pen, &v->queues[i]);
}

/* --- over time ---------------------------------------------------------------------------------- */

static void draw_graph(struct pen *pen, int rows, const char *name, const char *value,
	enum recent_series series, double most)
{
	const struct recent *h = pen->scene->history;
	struct canvas *c = pen->canvas;
	if (!has_room(pen, rows))
		return;
	const int column = NAME_COLUMNS + 1 + VALUE_COLUMNS + 1;
	(void)canvas_text(c, pen->row, 0, NAME_COLUMNS, INK_PLAIN, name);
	canvas_right(c, pen->row, column - 1, VALUE_COLUMNS, INK_BOLD, value);
	canvas_graph(c, pen->row + rows - 1, rows, column, c->columns - column, INK_ACCENT,
		h->values[series], h->value_count, most);
	advance(pen, rows);
}

static void draw_graphs(struct pen *pen)
{
	const struct scene *s = pen->scene;
	const struct live_view *v = s->view;
	char value[UNITS_BYTES];
	if (!v || s->history->value_count == 0)
		return;
	const double *most = s->history->most;
	const int high = pen->canvas->rows >= GRAPH_ROOMY ? 3 : 1;
	skip_line(pen);
	draw_graph(pen, high, "samples/s",
		units_or_dash(units_format_count, draw_runs(v) ? v->throughput_window : (double)NAN,
			value),
		RECENT_THROUGHPUT, most[RECENT_THROUGHPUT]);
	if (v->timed && draw_runs(v) && !isnan(v->step_utilisation_window)) {
		(void)snprintf(value, sizeof value, "%.0f %%", v->step_utilisation_window * 100);
		draw_graph(pen, high, v->step_emulated ? "step (emul.)" : "step busy", value,
			RECENT_STEP, 1);
	}
	if (draw_runs(v) && !isnan(v->bytes_read_per_s))
		draw_graph(pen, 1, "read", units_format_rate(v->bytes_read_per_s, value),
			RECENT_READ, most[RECENT_READ]);
	if (draw_runs(v) && v->resident_bytes > 0)
		draw_graph(pen, 1, "memory", units_format_size((double)v->resident_bytes, value),
			RECENT_MEMORY, most[RECENT_MEMORY]);
}

static void draw_facts(struct pen *pen)
{
	const struct live_view *v = pen->scene->view;
	char pools[UNITS_BYTES];
	char since[UNITS_BYTES];
	struct buffer text = {0};
	if (!draw_runs(v) || !has_room(pen, 1))
		return;
	buffer_format(&text, "%s samples/s since the warm-up, %u in flight, pools %s",
		units_or_dash(units_format_count, v->throughput, since), v->files_in_flight,
		units_format_size((double)v->pool_bytes, pools));
	if (!isnan(v->device_clock_mhz))
		buffer_format(&text, ", device %.0f MHz %.0f W %.0f C", v->device_clock_mhz,
			v->device_power_w, v->device_temperature_c);
	if (v->bad_samples > 0)
		buffer_format(&text, ", %llu bad samples", (unsigned long long)v->bad_samples);
	if (text.data)
		(void)canvas_text(
			pen->canvas, pen->row, 0, pen->canvas->columns, INK_DIM, text.data);
	buffer_release(&text);
	advance(pen, 1);
}

/* --- what is done, and messages ------------------------------------------------------------------ */

static void draw_result(struct pen *pen, const struct live_result *result)
{
	struct canvas *c = pen->canvas;
	char rate[UNITS_BYTES];
	const bool failed = isnan(result->throughput);
	(void)canvas_text(c, pen->row, 2, c->columns - TAIL_COLUMNS - 3, INK_PLAIN, result->label);
	canvas_right(c, pen->row, c->columns, TAIL_COLUMNS - 1, failed ? INK_BAD : INK_PLAIN,
		failed ? "failed" : units_or_dash(units_format_count, result->throughput, rate));
	if (!failed && !result->steady)
		canvas_fill(c, pen->row, 0, 1, INK_WARN, L'~');
	advance(pen, 1);
}

/* The newest on top. */
static void draw_results(struct pen *pen)
{
	const struct live_view *v = pen->scene->view;
	if (!v || v->result_count == 0 || !has_room(pen, 3))
		return;
	skip_line(pen);
	(void)canvas_text(pen->canvas, pen->row, 0, pen->canvas->columns, INK_BOLD,
		"done, samples/s (~ unsteady)");
	advance(pen, 1);
	const int most = pen->left / DONE_SHARE;
	for (int i = 0; i < most && (uint32_t)i < v->result_count; i++)
		draw_result(pen, &v->results[v->result_count - 1 - (uint32_t)i]);
}

static void draw_log(struct pen *pen)
{
	const char *lines[LOG_LINES];
	size_t count = 0;
	const char *log = pen->scene->log;
	for (const char *at = log; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (*at != '\n')
			lines[count++ % LOG_LINES] = at;
	if (count == 0 || !has_room(pen, 2))
		return;
	skip_line(pen);
	(void)canvas_text(pen->canvas, pen->row, 0, pen->canvas->columns, INK_BOLD, "messages");
	advance(pen, 1);
	size_t shown = count < LOG_LINES ? count : LOG_LINES;
	shown = shown < (size_t)pen->left ? shown : (size_t)pen->left;
	for (size_t i = count - shown; i < count; i++) {
		const char *line = lines[i % LOG_LINES];
		(void)canvas_format(pen->canvas, pen->row, 2, pen->canvas->columns - 2, INK_PLAIN,
			"%.*s", (int)strcspn(line, "\n"), line);
		advance(pen, 1);
	}
}

/* --- the whole ---------------------------------------------------------------------------------- */

static void draw_keys(const struct canvas *c, const struct scene *s)
{
	char keys[96];
	if (s->keyless)
		(void)snprintf(keys, sizeof keys,
			"Ctrl-C stop the run   other keys, elsewhere: mlbench status --watch %d",
			s->view ? s->view->pid : 0);
	else
		(void)snprintf(keys, sizeof keys, "q %s   p %s   ? %s",
			s->own ? "stop the run" : "leave",
			s->paused ? "continue" : "pause the view", s->help ? "back" : "help");
	(void)canvas_text((struct canvas *)(uintptr_t)c, c->rows - 1, 0, c->columns, INK_DIM, keys);
}

static void draw_help(struct pen *pen)
{
	static const char *const lines[] = {
		"q, Ctrl-C  stop the run and keep what was measured; twice: at once",
		"p          pause the view; the run continues",
		"Ctrl-Z     suspend the run and the view; 'fg' resumes both",
		"?          this page",
		"",
		"working    processing an item (a reader: files in flight)",
		"starved    waiting for input from the stage above",
		"blocked    waiting for room downstream",
		"",
		"Bars: the last two seconds. Graphs: a quarter of a second per column.",
		"The verdict is preliminary, from wait states alone; the report says more.",
		"'e' and 'emul.' mark an emulated step; its time includes late wake-ups.",
	};
	advance(pen, 1);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0] && has_room(pen, 1); i++) {
		(void)canvas_text(
			pen->canvas, pen->row, 0, pen->canvas->columns, INK_PLAIN, lines[i]);
		advance(pen, 1);
	}
}

void draw_scene(struct canvas *c, const struct scene *s)
{
	struct pen pen = {
		.canvas = c, .scene = s, .left = c->rows - 1, .roomy = c->rows >= ROOMY_ROWS};
	if (c->rows < 1 || c->columns < 1)
		return;
	draw_keys(c, s);
	draw_title(&pen);
	if (s->help) {
		draw_help(&pen);
		return;
	}
	draw_point(&pen);
	draw_words(&pen);
	draw_ranks(&pen);
	draw_stages(&pen);
	draw_queues(&pen);
	draw_graphs(&pen);
	draw_facts(&pen);
	draw_results(&pen);
	draw_log(&pen);
}
