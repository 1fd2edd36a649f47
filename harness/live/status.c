/* Looking once, without a trace. */
#include "harness/live/status.h"

#include "harness/base/clock.h"

#include <errno.h>
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

static void judge(struct status *out)
{
	struct thread_look waits;
	const bool still = out->whole && stall_wants_still(&out->view, out->now_ns) &&
			   look_stands_still(out->pid, &waits);
	const struct stall_input input = {.view = out->whole ? &out->view : NULL,
		.process = &out->process,
		.threads = out->threads,
		.thread_count = out->by_stage ? out->thread_count : 0,
		.still = still ? &waits : NULL,
		.now_ns = out->now_ns};
	stall_find(&input, &out->stall);
	if (out->whole)
		live_verdict_of(&out->view.warm, &out->view, &out->verdict);
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
		return error_set(err, code, "process %d: its picture was cut short", pid);
	out->whole = code == 0;
	out->seen = code != -EAGAIN;
	if (!out->seen)
		(void)snprintf(out->why, sizeof out->why, "it has shown nothing yet");
	look_at_process(pid, &out->process);
	if (threads && out->whole && out->view.thread_count > 0)
		look_at_stages(out);
	else if (threads)
		look_at_all(out);
	out->now_ns = clock_now_ns();
	out->now = clock_utc_seconds();
	judge(out);
	return 0;
}

bool status_is_stuck(const struct status *status)
{
	return status->seen && stall_is_stuck(&status->stall);
}
