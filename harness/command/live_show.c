/* The board, and who reads it in this process. */
#include "harness/command/live_show.h"

#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/live/listen.h"
#include "harness/live/watch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct live_show {
	const struct invocation *invocation;
	struct live_feed feed;
	struct listener *listener; /* NULL: --listen was not given */
	struct watch *watch;       /* NULL: no view */
};

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
	int code = listener_parse_port(options_value(options, OPTION_LISTEN), &port, err);
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
		.stop = show->invocation->stop,
		.colour = !options_given(options, OPTION_NO_COLOR)};
	struct error why = {0};
	if (options_given(options, OPTION_WATCH) && watch_open(&show->watch, &how, &why))
		log_warn("no live view: %s; the run continues without it", why.text);
}

void live_show_end_view(struct live_show *show)
{
	watch_close(show->watch);
	show->watch = NULL;
}

bool live_show_has_view(const struct live_show *show)
{
	return show->watch != NULL;
}

void live_show_plan(struct live_show *show, const char *name, const char *folder)
{
	struct live_view *view = &show->feed.view;
	(void)snprintf(view->name, sizeof view->name, "%s", name);
	(void)snprintf(view->folder, sizeof view->folder, "%s", folder ? folder : "");
	(void)node_name_here(view->node, NULL);
	live_feed_phase(&show->feed, LIVE_SETTING_UP);
}

void live_show_phase(struct live_show *show, enum live_phase phase)
{
	live_feed_phase(&show->feed, phase);
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

struct live_feed *live_show_feed(struct live_show *show)
{
	return &show->feed;
}
