/* mlbench status: runs in progress, seen from outside. */
#include "harness/command/command.h"
#include "harness/live/front.h"
#include "harness/live/status.h"
#include "harness/live/watch.h"
#include "harness/report/style.h"

#include <errno.h>
#include <stdlib.h>

enum { RUNS_MOST = 64 };

static int status_print(const struct invocation *invocation, struct status *list, size_t count,
	bool one, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].whole)
			live_verdict_of(&list[i].view.warm, &list[i].view, &list[i].verdict);
	if (command_wants_json(invocation))
		return command_print_json(invocation, status_json(list, count), err);
	const struct style style = command_style(invocation);
	struct buffer text = {0};
	if (one)
		status_text(list, &style, &text);
	else
		status_list_text(list, count, &style, &text);
	return command_print(&text, err);
}

/* Runs that end between the list and the look are left out. */
static int list_runs(const struct invocation *invocation, struct error *err)
{
	int32_t pids[RUNS_MOST];
	const size_t found = live_board_list(pids, RUNS_MOST);
	struct status *list = calloc(found > 0 ? found : 1, sizeof *list);
	size_t count = 0;
	if (!list)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	for (size_t i = 0; i < found; i++)
		if (!status_look(pids[i], false, &list[count], NULL))
			count++;
	const int status = status_print(invocation, list, count, false, err);
	free(list);
	return status;
}

/* The view of --watch on another's run. */
static int watch_run(const struct invocation *invocation, int32_t pid, struct error *err)
{
	struct live_board *board;
	struct watch *watch;
	int code = live_board_attach(&board, pid, err);
	if (code)
		return EXIT_STATUS_BAD_INPUT;
	const struct watch_options how = {.board = board,
		.pid = pid,
		.colour = !options_given(&invocation->options, OPTION_NO_COLOR),
		.stop = invocation->stop};
	code = watch_open(&watch, &how, err);
	if (!code) {
		watch_wait(watch);
		watch_close(watch);
	}
	live_board_close(board);
	return code ? EXIT_STATUS_CANNOT : EXIT_STATUS_DONE;
}

/* Of a front (front.h), which shows nothing itself: its worker. */
static int32_t status_find_run(int32_t pid)
{
	const int32_t both[] = {pid, front_find_worker(pid)};
	for (size_t i = 0; i < 2; i++) {
		struct live_board *board;
		if (live_board_attach(&board, both[i], NULL))
			continue;
		live_board_close(board);
		return both[i];
	}
	return pid;
}

static int parse_pid(const char *text, int32_t *pid, struct error *err)
{
	char *end;
	errno = 0;
	const long number = strtol(text, &end, 10);
	if (errno || *end || end == text || number <= 0 || number > INT32_MAX)
		return error_set(err, -EINVAL,
			"'%.100s' is not a process ID; 'mlbench status' lists the runs", text);
	*pid = (int32_t)number;
	return 0;
}

static int status_show_run(const struct invocation *invocation, int32_t pid, struct error *err)
{
	struct status *one = calloc(1, sizeof *one);
	if (!one)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	int status = EXIT_STATUS_BAD_INPUT;
	if (!status_look(pid, true, one, err)) {
		status = status_print(invocation, one, 1, true, err);
		if (!status && status_is_stuck(one))
			status = EXIT_STATUS_FAILED;
	}
	free(one);
	return status;
}

static int status_run(const struct invocation *invocation, struct error *err)
{
	int32_t pid = 0;
	if (invocation->options.argument_count == 0 &&
		options_given(&invocation->options, OPTION_WATCH))
		return command_status(error_set(
			err, -EINVAL, "'mlbench status --watch' needs the process ID of the run"));
	if (invocation->options.argument_count == 0)
		return list_runs(invocation, err);
	const int code = parse_pid(invocation->options.arguments[0], &pid, err);
	if (code)
		return command_status(code);
	pid = status_find_run(pid);
	return options_given(&invocation->options, OPTION_WATCH)
		       ? watch_run(invocation, pid, err)
		       : status_show_run(invocation, pid, err);
}

const struct command command_status_of_run = {
	.name = "status",
	.summary = "show what a run in progress is doing and waiting for",
	.arguments = "[PID]",
	.description =
		"Without PID, lists this user's runs in progress: what they measure, how far "
		"they are, how fast, and whether they make progress.\n\n"
		"With PID, prints what each thread of that run does now (its stage; whether it "
		"is working, starved or blocked, and for how long; where in the kernel it "
		"sleeps), the queues, and the verdict so far; --watch shows this on the whole "
		"screen. For a run that is stuck, it says what everything waits for, from the "
		"step up to the thread that does not finish.\n\n"
		"It only reads, and does not disturb the run. Exit status: 0 if the run makes "
		"progress, 1 if it is stuck.",
	.example = "mlbench status 4711",
	.options = OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_WATCH),
	.arguments_max = 1,
	.run = status_run,
};
