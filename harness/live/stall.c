/* Who waits for whom. */
#include "harness/live/stall.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double SILENT_PERIODS = 5, SILENT_MORE_S = 1; /* that a picture may be old */
static const double STILL_LEAST_S = 3;                     /* nothing done for so long, ... */
static const double STILL_STEPS = 5; /* ... and for so many of the usual times between steps */

const char *stall_kind_name(enum stall_kind kind)
{
	static const char *const names[STALL_KINDS] = {
		[STALL_NONE] = "moving",
		[STALL_IDLE] = "idle",
		[STALL_WAITING] = "waiting",
		[STALL_SILENT] = "silent",
		[STALL_TORN] = "torn",
		[STALL_STOPPED] = "stopped",
		[STALL_ENDED] = "ended",
	};
	return kind < STALL_KINDS ? names[kind] : "unknown";
}

static double since(uint64_t now_ns, uint64_t then_ns)
{
	return then_ns > 0 && now_ns > then_ns ? (double)(now_ns - then_ns) / (double)NS_PER_S : 0;
}

static const char *stall_format_seconds(double seconds, char out[UNITS_BYTES])
{
	return units_format_duration(seconds * (double)NS_PER_S, out);
}

static void say(struct stall *out, enum stall_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void say(struct stall *out, enum stall_kind kind, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	out->kind = kind;
	(void)vsnprintf(out->words, sizeof out->words, format, args);
	va_end(args);
}

/* --- a stage ------------------------------------------------------------------------------------ */

struct stage_state {
	unsigned threads[THREAD_STATES], all;
	double least_s; /* that the one which changed last is in its state */
};

static struct stage_state state_of(const struct stall_input *in, size_t stage)
{
	struct stage_state s = {.least_s = HUGE_VAL};
	for (uint32_t i = 0; i < in->view->thread_count; i++) {
		const struct live_thread *t = &in->view->threads[i];
		if (t->stage != stage)
			continue;
		s.threads[t->state]++;
		s.all++;
		s.least_s = fmin(s.least_s, since(in->now_ns, t->since_ns));
	}
	return s;
}

static void add_link(struct stall *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void add_link(struct stall *out, const char *format, ...)
{
	va_list args;
	if (out->chain_count == STALL_CHAIN_MAX)
		return;
	va_start(args, format);
	(void)vsnprintf(out->chain[out->chain_count++], STALL_LINK_BYTES, format, args);
	va_end(args);
}

/* The thread that has been at one item for longest, of those at work. */
static uint32_t longest_at_work(const struct stall_input *in, size_t stage)
{
	uint32_t longest = in->view->thread_count;
	for (uint32_t i = 0; i < in->view->thread_count; i++) {
		const struct live_thread *t = &in->view->threads[i];
		if (t->stage == stage && t->state == THREAD_WORKING &&
			(longest == in->view->thread_count ||
				t->moved_ns < in->view->threads[longest].moved_ns))
			longest = i;
	}
	return longest;
}

/* The stage that has work: what its threads do. */
static void add_culprit(const struct stall_input *in, size_t stage, struct stall *out)
{
	const struct live_stage *s = &in->view->stages[stage];
	const struct stage_state state = state_of(in, stage);
	const uint32_t i = longest_at_work(in, stage);
	char words[LOOK_WORDS_BYTES] = "the kernel does not say what it does";
	char time[UNITS_BYTES];
	char files[64] = "";
	if (stage_is(s->name, STAGE_READ))
		(void)snprintf(files, sizeof files, "%u file%s in flight, ",
			in->view->files_in_flight, in->view->files_in_flight == 1 ? "" : "s");
	if (i < in->thread_count && in->threads[i].tid > 0)
		(void)look_words(&in->threads[i], words);
	add_link(out, "%s: %s%u of %u thread%s working, %s %d has finished nothing for %s: %.200s",
		s->name, files, state.threads[THREAD_WORKING], s->workers,
		s->workers == 1 ? "" : "s",
		state.threads[THREAD_WORKING] == 1 ? "thread" : "longest thread",
		i < in->view->thread_count ? in->view->threads[i].tid : 0,
		stall_format_seconds(i < in->view->thread_count
					     ? since(in->now_ns, in->view->threads[i].moved_ns)
					     : NAN,
			time),
		words);
}

static void add_waiting(
	const struct stall_input *in, size_t stage, const char *how, struct stall *out)
{
	char time[UNITS_BYTES];
	add_link(out, "%s %s %s", in->view->stages[stage].name, how,
		stall_format_seconds(state_of(in, stage).least_s, time));
}

/* "sync", "checkpoint" and "evaluate" come after the step, the last that moves batches. */
static size_t last_stage(const struct live_view *view)
{
	size_t last = view->stage_count;
	while (last > 0 && (stage_is(view->stages[last - 1].name, STAGE_SYNC) ||
				   stage_is(view->stages[last - 1].name, STAGE_CHECKPOINT) ||
				   stage_is(view->stages[last - 1].name, STAGE_EVALUATE)))
		last--;
	return last > 0 ? last - 1 : 0;
}

/* From the last stage up, as long as all of a stage wait for what the one above gives. */
static void follow_chain(const struct stall_input *in, struct stall *out)
{
	const size_t last = last_stage(in->view);
	for (size_t stage = last + 1; stage-- > 0;) {
		const struct stage_state s = state_of(in, stage);
		if (s.threads[THREAD_WORKING] > 0) {
			add_culprit(in, stage, out);
			return;
		}
		if (s.all > 0 && s.threads[THREAD_BLOCKED] > 0) {
			add_waiting(in, stage, "blocked", out);
			add_link(out,
				stage == last
					? "a checkpoint, an evaluation, or the other devices of its round"
					: "the stage below, which waits for this one: a bug in mlbench, if it persists");
			return;
		}
		add_waiting(in, stage, "starved", out);
	}
	add_link(out, "no file is requested: a bug in mlbench, if it persists");
}

static void say_chain(struct stall *out)
{
	char time[UNITS_BYTES];
	char text[STALL_WORDS_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < out->chain_count && used < sizeof text; i++)
		used += (size_t)snprintf(
			text + used, sizeof text - used, "%s%s", i ? " <- " : "", out->chain[i]);
	say(out, STALL_WAITING, "no progress for %s: %.440s",
		stall_format_seconds(out->still_s, time), text);
}

/* --- the whole ---------------------------------------------------------------------------------- */

static bool process_is_off(const struct process_look *p, struct stall *out)
{
	if (!p->there || p->state == 'X')
		say(out, STALL_ENDED, "the process has ended");
	else if (p->state == 'Z')
		say(out, STALL_ENDED,
			"the process has ended, and its parent has not reaped it (Z)");
	else if (p->state == 'T')
		say(out, STALL_STOPPED,
			"the process is stopped by a signal (T): 'kill -CONT' or 'fg' continues it");
	else if (p->state == 't')
		say(out, STALL_STOPPED, "the process is stopped by a debugger (t)");
	else
		return false;
	return true;
}

static bool is_silent(const struct stall_input *in, struct stall *out)
{
	const struct live_view *view = in->view;
	const double age_s = since(in->now_ns, view->updated_ns);
	char time[UNITS_BYTES];
	if (isnan(view->period_s) || age_s < SILENT_PERIODS * view->period_s + SILENT_MORE_S)
		return false;
	say(out, STALL_SILENT,
		"its control thread does not run: the last update is %s old, and one is due "
		"every %s s",
		stall_format_seconds(age_s, time), UNITS_PLAIN(view->period_s, 2));
	return true;
}

bool stall_is_stuck(const struct stall *stall)
{
	return stall->kind != STALL_NONE && stall->kind != STALL_IDLE;
}

bool stall_wants_still(const struct live_view *view, uint64_t now_ns)
{
	return isnan(view->period_s) && since(now_ns, view->phase_ns) >= STILL_LEAST_S;
}

/* Of a thread that is no stage's, what the kernel calls it. */
static const char *name_of(const struct live_view *view, const struct thread_look *thread)
{
	for (uint32_t i = 0; i < view->thread_count; i++)
		if (view->threads[i].tid == thread->tid)
			return view->stages[view->threads[i].stage].name;
	return thread->name;
}

/* Between pictures only the kernel knows whether it goes on. */
static bool is_idle(const struct stall_input *in, struct stall *out)
{
	const struct live_view *view = in->view;
	char words[LOOK_WORDS_BYTES];
	char time[UNITS_BYTES];
	if (!isnan(view->period_s))
		return false;
	if (!in->still || !stall_wants_still(view, in->now_ns)) {
		say(out, STALL_IDLE, "no repetition runs: %s", live_phase_name(view->phase));
		return true;
	}
	out->still_s = since(in->now_ns, view->phase_ns);
	add_link(out, "%s thread %d: %s", name_of(view, in->still), in->still->tid,
		look_words(in->still, words));
	say(out, STALL_WAITING, "%s for %s, and no thread of it runs: %s",
		live_phase_name(view->phase), stall_format_seconds(out->still_s, time),
		out->chain[0]);
	return true;
}

/* A step may take long: what is usual for this run is no hang. */
static bool is_still(const struct live_view *view, double still_s)
{
	const double usual_s = view->batches > 0 ? view->elapsed_s / (double)view->batches : 0;
	return still_s >= fmax(STILL_LEAST_S, STILL_STEPS * usual_s);
}

void stall_find(const struct stall_input *in, struct stall *out)
{
	char time[UNITS_BYTES];
	*out = (struct stall){.still_s = NAN};
	if (process_is_off(in->process, out))
		return;
	if (!in->view) {
		say(out, STALL_TORN,
			"an update has been half written for long: its control thread does not run");
		return;
	}
	if (is_idle(in, out) || is_silent(in, out))
		return;
	out->still_s = since(in->now_ns, in->view->moved_ns);
	if (!is_still(in->view, out->still_s)) {
		say(out, STALL_NONE, "a file or a step finished within the last %s",
			stall_format_seconds(fmax(out->still_s, in->view->period_s), time));
	} else if (!in->view->timed) {
		say(out, STALL_WAITING,
			"no progress for %s; measure.profiler is off, so the waiting stage is unknown",
			stall_format_seconds(out->still_s, time));
	} else {
		follow_chain(in, out);
		say_chain(out);
	}
}

void stall_look(int32_t pid, const struct live_view *view, const struct thread_look *threads,
	size_t count, uint64_t now_ns, struct stall *out)
{
	struct process_look process;
	struct thread_look waits;
	look_at_process(pid, &process);
	const bool still =
		view && stall_wants_still(view, now_ns) && look_stands_still(pid, &waits);
	const struct stall_input input = {.view = view,
		.process = &process,
		.threads = threads,
		.thread_count = count,
		.still = still ? &waits : NULL,
		.now_ns = now_ns};
	stall_find(&input, out);
}
