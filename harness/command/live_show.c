/* The line of progress; the board, and who reads it in this process. */
#include "harness/command/live_show.h"

#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/live/listen.h"
#include "harness/live/watch.h"
#include "harness/report/style.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the line of progress --------------------------------------------------------------------- */

enum { BAR_COLUMNS = 16, SILENCE_SECONDS = 30 };

void progress_begin(struct progress *progress, const char *label)
{
	(void)snprintf(progress->label, sizeof progress->label, "%s", label);
	progress->begun_ns = clock_now_ns();
	if (progress->done >= progress->total) /* one more than was to be foreseen */
		progress->total = progress->done + 1;
	progress_tell(progress, 0, progress->each_seconds, (double)NAN);
}

void progress_end(struct progress *progress)
{
	progress->spent_seconds += (double)(clock_now_ns() - progress->begun_ns) / (double)NS_PER_S;
	progress->done++;
}

/* What one takes, as far as that is known; 0: it is not. */
static double each_seconds(const struct progress *progress)
{
	return progress->done > 0 ? progress->spent_seconds / (double)progress->done
				  : progress->each_seconds;
}

void progress_expect_within(struct progress *progress, double seconds, size_t together)
{
	const double each = each_seconds(progress) * (double)together;
	const double fit = each > 0 && seconds > each ? floor(seconds / each) : 1;
	progress->at_most = true;
	progress->total = progress->done + (size_t)fit * together;
}

static double rest_seconds(const struct progress *progress, double elapsed)
{
	const double rest =
		each_seconds(progress) * (double)(progress->total - progress->done) - elapsed;
	return rest > 0 ? rest : 0;
}

double progress_rest_seconds(const struct progress *progress)
{
	return each_seconds(progress) > 0 ? rest_seconds(progress, 0) : NAN;
}

/* Into a pipe goes what says something: how fast it is, or, after a while, that it is not known. */
static bool progress_is_worth_a_line(struct progress *progress, bool rated)
{
	const uint64_t now = clock_now_ns();
	if (!rated && progress->told_ns > 0 &&
		now - progress->told_ns < (uint64_t)SILENCE_SECONDS * NS_PER_S)
		return false;
	progress->told_ns = now;
	return true;
}

/* The label has what the rest leaves of the width. */
static void progress_add_words(const struct progress *progress, const struct style *style,
	int columns, double seconds, double samples_per_s, struct buffer *line)
{
	char head[64];
	char tail[64 + 2 * UNITS_BYTES];
	char rate[UNITS_BYTES];
	char eta[UNITS_BYTES];
	const bool known = each_seconds(progress) > 0;
	(void)snprintf(head, sizeof head, "%zu%s%zu  ", progress->done + 1,
		progress->at_most ? " of at most " : "/", progress->total);
	(void)snprintf(tail, sizeof tail, " %10s samples/s%s  %s %s",
		isnan(samples_per_s) ? "-" : units_format_count(samples_per_s, rate),
		progress->ranks > 1 ? " a rank" : "", progress->at_most ? "at most" : "ETA",
		known ? clock_format_span(rest_seconds(progress, seconds), eta, sizeof eta) : "-");
	const int room = columns - style_columns(head) - style_columns(tail);
	buffer_text(line, head);
	style_field(style, INK_PLAIN, progress->label, room > 0 ? room : 0, line);
	buffer_text(line, tail);
}

void progress_tell(void *context, double seconds, double planned_seconds, double samples_per_s)
{
	struct progress *progress = context;
	const bool terminal = log_is_terminal();
	if (progress->hidden ||
		(!terminal && !progress_is_worth_a_line(progress, !isnan(samples_per_s))))
		return;
	const struct style style = style_for(STDERR_FILENO, true);
	const struct style uncoloured = {.width = style.width, .utf8 = style.utf8};
	struct buffer bar = {0};
	struct buffer words = {0};
	const double part = planned_seconds > 0 ? seconds / planned_seconds : 0;
	const double share =
		((double)progress->done + (part < 1 ? part : 1)) / (double)progress->total;
	style_bar(&uncoloured, INK_PLAIN, share, terminal ? BAR_COLUMNS : 0, &bar);
	buffer_text(&bar, terminal ? " " : "");
	progress_add_words(progress, &uncoloured, style.width - (terminal ? BAR_COLUMNS + 1 : 0),
		seconds, samples_per_s, &words);
	const struct log_piece pieces[] = {
		{style.colour ? LOG_INK_ACCENT : LOG_INK_PLAIN, bar.data ? bar.data : ""},
		{LOG_INK_PLAIN, words.data ? words.data : ""}};
	log_progress_pieces(pieces, COUNT(pieces));
	buffer_release(&bar);
	buffer_release(&words);
}

void progress_choosing(void *context, unsigned chosen, unsigned products)
{
	struct progress *progress = context;
	struct progress now = *progress;
	(void)snprintf(now.label, sizeof now.label, "choosing kernels: %u of %u", chosen, products);
	progress_tell(&now, 0, now.each_seconds, (double)NAN);
	progress->told_ns = now.told_ns;
}

/* --- the board -------------------------------------------------------------------------------- */

static void describe_process(const struct invocation *invocation, struct live_view *view)
{
	*view = (struct live_view){.pid = (int32_t)getpid(),
		.process_start = live_process_start((int32_t)getpid()),
		.started = clock_utc_seconds(),
		.throughput = NAN,
		.throughput_window = NAN,
		.step_utilisation_window = NAN,
		.bytes_read_per_s = NAN,
		.rest_s = NAN,
		.period_s = NAN,
		.device_clock_mhz = NAN,
		.device_power_w = NAN,
		.device_temperature_c = NAN,
		.timed = true};
	(void)snprintf(view->version, sizeof view->version, "%s", MLBENCH_VERSION);
	(void)snprintf(view->command, sizeof view->command, "%s", invocation->command->name);
}

static int begin_listening(struct live_show *show, struct error *err)
{
	const struct options *options = &show->invocation->options;
	uint16_t port;
	if (!options_given(options, OPTION_LISTEN))
		return 0;
	int code = listener_parse_port(options->values[OPTION_LISTEN], &port, err);
	if (!code)
		code = listener_open(&show->listener, show->feed.board, port, err);
	if (!code)
		log_info("metrics: http://127.0.0.1:%u/metrics", listener_port(show->listener));
	return code;
}

int live_show_open(struct live_show **out, const struct invocation *invocation, struct error *err)
{
	struct live_show *show = calloc(1, sizeof *show);
	*out = NULL;
	if (!show)
		return error_set(err, -ENOMEM, "out of memory");
	show->invocation = invocation;
	show->feed.rest_at_begin_s = NAN;
	describe_process(invocation, &show->feed.view);
	int code = live_board_create(&show->feed.board, err);
	if (!code && live_board_hidden(show->feed.board))
		log_detail("'mlbench status' cannot see this run: %s",
			live_board_hidden(show->feed.board));
	if (!code)
		live_feed_phase(&show->feed, LIVE_SETTING_UP);
	if (!code)
		code = begin_listening(show, err);
	if (code) {
		live_show_close(show);
		return code;
	}
	*out = show;
	return 0;
}

void live_show_close(struct live_show *show)
{
	if (!show)
		return;
	live_show_end_view(show);
	listener_close(show->listener);
	live_board_close(show->feed.board);
	free(show);
}

void live_show_begin_view(struct live_show *show)
{
	const struct options *options = &show->invocation->options;
	const struct watch_options how = {.board = show->feed.board,
		.pid = (int32_t)getpid(),
		.own = true,
		.keyless = show->invocation->party && !isatty(STDIN_FILENO),
		.stop = show->invocation->stop,
		.colour = !options_given(options, OPTION_NO_COLOR)};
	struct error why = {0};
	const struct watch_calls *const view = show->invocation->view;
	if (options_given(options, OPTION_WATCH) && view && view->open(&show->watch, &how, &why))
		log_warn("no live view: %s; the run continues without it", why.text);
}

void live_show_end_view(struct live_show *show)
{
	if (show->watch)
		show->invocation->view->close(show->watch);
	show->watch = NULL;
}

void live_show_plan(struct live_show *show, const char *name, const char *folder)
{
	struct live_view *view = &show->feed.view;
	(void)snprintf(view->name, sizeof view->name, "%s", name);
	(void)snprintf(view->folder, sizeof view->folder, "%s", folder ? folder : "");
	(void)node_name_here(view->node, NULL);
	live_feed_phase(&show->feed, LIVE_SETTING_UP);
}

void live_show_run(struct live_show *show, const struct live_begin *begin)
{
	struct live_view *view = &show->feed.view;
	(void)snprintf(view->label, sizeof view->label, "%s", begin->label);
	view->limit = begin->limit;
	view->done = (uint32_t)begin->done;
	view->total = (uint32_t)begin->total;
	view->rest_s = show->feed.rest_at_begin_s = begin->rest_s;
	live_feed_phase(&show->feed, LIVE_BETWEEN);
}

void live_show_result(struct live_show *show, double throughput, bool steady)
{
	struct live_view *view = &show->feed.view;
	if (view->result_count == LIVE_RESULTS_MAX)
		memmove(view->results, view->results + 1,
			--view->result_count * sizeof view->results[0]);
	struct live_result *result = &view->results[view->result_count++];
	*result = (struct live_result){.throughput = throughput, .steady = steady};
	memcpy(result->label, view->label, sizeof result->label);
	view->done++;
	live_feed_phase(&show->feed, LIVE_BETWEEN);
}
