/* The thread of the view. */
#include "harness/live/watch.h"

#include "harness/base/clock.h"
#include "harness/base/program.h"
#include "harness/live/draw.h"
#include "harness/live/screen.h"
#include "harness/live/terminal_guard.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(MLBENCH_WITH_ncursesw)

enum {
	FRAME_MS = 200,
	JUDGED_NS = 1000000000, /* between two verdicts */
	PATIENCE_NS =
		2000000000, /* for the view to end, before its terminal is let go, and again after */
	LOG_BYTES = 8192,
};

static const double LOOKED_AT_AFTER_S = 2; /* standing still: then threads are looked at */

enum watch_phase { WATCH_OPENING, WATCH_SHOWING, WATCH_ENDED };

struct watch {
	struct watch_options options;
	struct terminal *terminal;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum watch_phase phase; /* under the lock */
	int code;               /* why it could not be opened, and in words */
	struct error error;
	atomic_bool stop;     /* the view is to end */
	atomic_bool given_up; /* nobody waits for it any more: it must not touch the terminal */
	/* The thread's own. */
	struct canvas canvas;
	struct live_view view;
	struct recent history;
	struct live_verdict verdict;
	struct stall stall;
	struct thread_look looks[LIVE_THREADS_MAX];
	char log[LOG_BYTES];
	uint64_t judged_ns;
	bool seen, paused, help, over;
};

/* --- a frame ---------------------------------------------------------------------------------- */

/* Only of a run that seems to stand still. */
static size_t watch_look_at_threads(struct watch *w, uint64_t now_ns)
{
	const struct live_view *v = &w->view;
	const double still_s =
		now_ns > v->moved_ns ? (double)(now_ns - v->moved_ns) / (double)NS_PER_S : 0;
	if (isnan(v->period_s) || still_s < LOOKED_AT_AFTER_S)
		return 0;
	for (uint32_t i = 0; i < v->thread_count; i++)
		if (v->threads[i].tid > 0)
			look_at_thread(w->options.pid, v->threads[i].tid, &w->looks[i]);
	return v->thread_count;
}

static void watch_judge(struct watch *w, uint64_t now_ns)
{
	if (now_ns < w->judged_ns + JUDGED_NS)
		return;
	w->judged_ns = now_ns;
	stall_look(w->options.pid, &w->view, w->looks, watch_look_at_threads(w, now_ns), now_ns,
		&w->stall);
	recent_verdict(&w->history, &w->view, &w->verdict);
	const bool other_now = !w->options.own && w->seen &&
			       live_process_start(w->options.pid) != w->view.process_start;
	w->over = w->stall.kind == STALL_ENDED || other_now;
}

static void watch_look(struct watch *w, uint64_t now_ns)
{
	if (w->paused)
		return;
	if (!live_board_read(w->options.board, &w->view)) {
		w->seen = true;
		recent_add(&w->history, &w->view);
	}
	if (w->seen)
		watch_judge(w, now_ns);
	if (w->options.own)
		(void)chatter_tail(w->log, sizeof w->log);
}

static bool is_asked_to_stop(const struct watch *w)
{
	return w->options.stop && atomic_load(w->options.stop);
}

static void watch_draw(struct watch *w, uint64_t now_ns)
{
	int rows;
	int columns;
	const struct scene scene = {.view = w->seen ? &w->view : NULL,
		.history = &w->history,
		.verdict = w->seen ? &w->verdict : NULL,
		.stall = w->seen ? &w->stall : NULL,
		.log = w->log,
		.own = w->options.own,
		.keyless = w->options.keyless,
		.paused = w->paused,
		.help = w->help,
		.stopping = w->options.own && is_asked_to_stop(w),
		.over = w->over,
		.now_ns = now_ns};
	terminal_size(w->terminal, &rows, &columns);
	w->canvas.utf8 = terminal_is_utf8(w->terminal);
	if (canvas_clear(&w->canvas, rows, columns))
		return;
	draw_scene(&w->canvas, &scene);
	terminal_show(w->terminal, &w->canvas);
}

/* q does what Ctrl-C does. */
static void quit(struct watch *w)
{
	if (!w->options.own) {
		atomic_store(&w->stop, true);
		return;
	}
	(void)kill(getpid(), SIGINT);
}

static void react(struct watch *w, enum terminal_event event)
{
	switch (event) {
	case TERMINAL_QUIT:
		quit(w);
		break;
	case TERMINAL_GONE:
		atomic_store(&w->stop, true);
		if (w->options.own) /* the kernel has told only who is of the terminal's session */
			(void)kill(getpid(), SIGHUP);
		break;
	case TERMINAL_PAUSE:
		w->paused = !w->paused;
		break;
	case TERMINAL_HELP:
		w->help = !w->help;
		break;
	case TERMINAL_SUSPEND:
		terminal_suspend(w->terminal);
		break;
	case TERMINAL_NOTHING:
	case TERMINAL_REDRAW:
	case TERMINAL_WOKEN:
		break;
	}
}

static void watch_enter(struct watch *w, enum watch_phase phase)
{
	(void)pthread_mutex_lock(&w->lock);
	w->phase = phase;
	(void)pthread_cond_broadcast(&w->changed);
	(void)pthread_mutex_unlock(&w->lock);
}

/* This process's own run has to end first. */
static bool is_told_to_end(const struct watch *w)
{
	return atomic_load(&w->stop) || (!w->options.own && is_asked_to_stop(w));
}

static void watch_show(struct watch *w)
{
	while (!is_told_to_end(w)) {
		const uint64_t now_ns = clock_now_ns();
		watch_look(w, now_ns);
		if (terminal_is_ours(w->terminal))
			watch_draw(w, now_ns);
		if (w->over && !w->options.own)
			break;
		if (!atomic_load(&w->stop))
			react(w, terminal_wait(w->terminal, FRAME_MS));
	}
}

/* The terminal is opened here, too: one that takes nothing would hold up whoever opens it. */
static void *run_view(void *context)
{
	struct watch *w = context;
	(void)pthread_setname_np(pthread_self(), "mlbench-view");
	w->code = terminal_open(&w->terminal, w->options.colour, &w->error);
	if (w->code) {
		watch_enter(w, WATCH_ENDED);
		return NULL;
	}
	if (atomic_load(&w->given_up)) {
		terminal_close(w->terminal); /* it takes something after all: as it was, then */
		return NULL;
	}
	watch_enter(w, WATCH_SHOWING);
	watch_show(w);
	if (!atomic_load(&w->given_up)) {
		terminal_close(w->terminal);
		watch_enter(w, WATCH_ENDED);
	}
	return NULL;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int start_thread(struct watch *w, struct error *err)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	sigset_t most;
	sigset_t before;
	(void)sigfillset(&most);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		(void)sigdelset(&most, faults[i]);
	(void)pthread_sigmask(SIG_SETMASK, &most, &before);
	const int code = pthread_create(&w->thread, NULL, run_view, w);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code ? error_set_errno(err, code, "cannot start a thread for the view") : 0;
}

static int open_lock(struct watch *w)
{
	pthread_condattr_t attributes;
	if (pthread_condattr_init(&attributes))
		return -ENOMEM;
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	const int code = pthread_cond_init(&w->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	return code ? -code : -pthread_mutex_init(&w->lock, NULL);
}

/* Until it is there, so long at most. */
static enum watch_phase wait_for(struct watch *w, enum watch_phase phase, uint64_t patience_ns)
{
	const uint64_t deadline_ns = clock_now_ns() + patience_ns;
	const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
		.tv_nsec = (long)(deadline_ns % NS_PER_S)};
	int code = 0;
	(void)pthread_mutex_lock(&w->lock);
	while (w->phase < phase && code != ETIMEDOUT)
		code = pthread_cond_timedwait(&w->changed, &w->lock, &deadline);
	const enum watch_phase now = w->phase;
	(void)pthread_mutex_unlock(&w->lock);
	return now;
}

static void free_watch(struct watch *w)
{
	(void)pthread_join(w->thread, NULL);
	canvas_release(&w->canvas);
	(void)pthread_cond_destroy(&w->changed);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

/* It sleeps in a write to a terminal that takes nothing: it is left behind, with all that it holds. */
static void watch_give_up(struct watch *w)
{
	atomic_store(&w->given_up, true);
	atomic_store(&w->stop, true);
	(void)pthread_detach(w->thread);
	terminal_guard_restore();
}

static int wait_until_open(struct watch *w, struct error *err)
{
	enum watch_phase phase = wait_for(w, WATCH_SHOWING, PATIENCE_NS);
	int code = 0;
	if (phase == WATCH_OPENING) {
		terminal_guard_let_go();
		phase = wait_for(w, WATCH_SHOWING, PATIENCE_NS);
	}
	if (phase == WATCH_SHOWING) {
		/* Where stderr goes elsewhere, nothing of it garbles the screen. */
		if (w->options.own && isatty(STDERR_FILENO))
			(void)chatter_begin();
	} else if (phase == WATCH_OPENING) {
		watch_give_up(w);
		code = error_set(err, -ENOTTY, "the terminal accepts no output");
	} else {
		*err = w->error;
		code = w->code;
		free_watch(w);
	}
	return code;
}

int watch_open(struct watch **out, const struct watch_options *options, struct error *err)
{
	struct watch *w = calloc(1, sizeof *w);
	*out = NULL;
	if (!w || open_lock(w)) {
		free(w);
		return error_set(err, -ENOMEM, "out of memory");
	}
	w->options = *options;
	int code = start_thread(w, err);
	if (code) {
		free(w);
		return code;
	}
	code = wait_until_open(w, err);
	*out = code ? NULL : w;
	return code;
}

void watch_close(struct watch *w)
{
	if (!w)
		return;
	atomic_store(&w->stop, true);
	terminal_wake();
	enum watch_phase phase = wait_for(w, WATCH_ENDED, PATIENCE_NS);
	if (phase != WATCH_ENDED) {
		terminal_guard_let_go();
		phase = wait_for(w, WATCH_ENDED, PATIENCE_NS);
	}
	if (phase == WATCH_ENDED)
		free_watch(w);
	else
		watch_give_up(w);
	chatter_end();
}

void watch_wait(struct watch *w)
{
	(void)pthread_mutex_lock(&w->lock);
	while (w->phase != WATCH_ENDED)
		(void)pthread_cond_wait(&w->changed, &w->lock);
	(void)pthread_mutex_unlock(&w->lock);
}

#else

int watch_open(struct watch **out, const struct watch_options *options, struct error *err)
{
	(void)options;
	*out = NULL;
	return part_require(PART_LIVE_VIEW, err);
}

void watch_close(struct watch *w)
{
	(void)w;
}

void watch_wait(struct watch *w)
{
	(void)w;
}

#endif

const struct watch_calls watch_calls = {.open = watch_open, .close = watch_close};
