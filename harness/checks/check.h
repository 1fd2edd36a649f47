/* The kinds of checks of `mlbench accept`, and what each is given.  A check runs in a process of its own
 * (harness/checks/runner.h), which may die or hang: what it has found out it hands over at once, through its sink, and the
 * parent judges.  A check measures and never judges: limits are looked at only for what need not be measured.
 *
 * To add a kind: harness/checks/check_NAME.c with a const struct check_ops, its figures in harness/accept/figures.def, its
 * keys in harness/accept/plan_keys.def. */
#ifndef MLBENCH_CHECKS_CHECK_H
#define MLBENCH_CHECKS_CHECK_H

#include "harness/accept/plan.h"
#include "harness/base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_sink;

struct check_context {
	const struct accept_plan *plan;
	const struct accept_check *check;
	enum accept_tier tier;
	const char *folder; /* on the storage that is judged; exists */
	double free_bytes;  /* in it, when the checks began; NAN: not known */
	const char *
		scratch; /* a folder of this check's own in it, there if it estimates disk_bytes; removed by the
			      * parent */
	const char *
		root; /* in front of /proc and /sys and /etc: "" but in tests (MLBENCH_ACCEPT_ROOT) */
	const char *program;  /* this program, to be run again (pipeline) */
	uint64_t deadline_ns; /* clock_now_ns; end before it */
	uint64_t for_ns;      /* --for; 0: not given */
	/* Repetitions of each figure to take in this call: 1 or more, and `round` is the number of the call, from 0.  Where
	 * the repetitions so far could not tell, the check is called again for what is still open alone. */
	unsigned repeats, round;
	const char *const *open; /* "figure" or "figure @ place" of what is open; NULL: all */
	size_t open_count;
	const atomic_bool *stop;
	struct check_sink *sink;
};

/* Whether a figure is asked about by the plan and open, and at that place ("" or e.g. "core 3"). */
bool check_wants(const struct check_context *context, const char *figure, const char *place);
bool check_stopped(const struct check_context *context); /* by the user, or the time is over */

struct check_cost {
	double seconds;      /* that it takes, about */
	double disk_bytes;   /* of scratch files */
	double memory_bytes; /* beyond the program */
};

struct check_ops {
	enum accept_kind kind;
	/* What is wrong with a check of a plan beyond what its keys say: -EINVAL.  May be NULL. */
	int (*validate)(const struct accept_plan *plan, const struct accept_check *check,
		struct error *err);
	/* Whether the storage answers that it reads beside its folder, as paths_answer does; NULL: it reads none. */
	int (*ask_storage)(const struct check_context *context, struct error *err);
	/* Fills *cost; context without sink, scratch.  The parent calls it: it touches no path, but those that have answered
	 * just now, and no device. */
	void (*estimate)(const struct check_context *context, struct check_cost *cost);
	/* 0: all that could be had was handed over (what could not: sink_missing); -EINTR; or a negative errno with err: the
	 * check could not be made, which is an ERROR. */
	int (*run)(const struct check_context *context, struct error *err);
};
extern const struct check_ops check_expect, check_ceiling, check_pipeline, check_burn,
	check_repeatable, check_network;
extern const struct check_ops *const check_list[ACCEPT_KINDS + 1]; /* NULL-terminated */

/* --- what a check hands over: each is on its way to the parent when the call returns ----------------------------- */

/* What it is about to do, as "reading '/data/x'": named where it hangs or dies. */
void sink_activity(struct check_sink *sink, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* One repetition's value of a figure, in the figure's base unit, at a place ("core 3"; "": the node).  NAN is an error
 * of the check's, not a value. */
void sink_value(struct check_sink *sink, const char *figure, const char *place, double value);
/* A fact: text, or a number that is not a repetition (a count, a size): the last one holds. */
void sink_text(struct check_sink *sink, const char *figure, const char *place, const char *text);
void sink_number(struct check_sink *sink, const char *figure, const char *place, double value);
/* Why a figure could not be had, though the node may have it (no time was left, a read failed): an ERROR, whatever the plan
 * allows. */
void sink_missing(struct check_sink *sink, const char *figure, const char *place, const char *why,
	...) __attribute__((format(printf, 4, 5)));
/* Why the node has no such figure (no GPU, no sensor, no counter): SKIP, where the plan allows it. */
void sink_lack(struct check_sink *sink, const char *figure, const char *place, const char *why, ...)
	__attribute__((format(printf, 4, 5)));
/* The peak of a figure by data sheet or computation; source: "data sheet of the H100 SXM", "2.6 GHz x 32 FLOP". */
void sink_peak(struct check_sink *sink, const char *figure, const char *place, double peak,
	const char *source);
/* Something that happened, at_s seconds into the check (NAN: at no moment of it): evidence for a figure ("burn.throttled") that is handed over
 * besides. */
void sink_event(struct check_sink *sink, const char *figure, const char *place, double at_s,
	const char *format, ...) __attribute__((format(printf, 5, 6)));
/* A point of a series over the time of the check. */
void sink_point(struct check_sink *sink, const char *series, const char *place,
	enum figure_unit unit, double at_s, double value);
/* Under what a figure was measured at a place ("" and "": all of the check), harness/accept/result.h; text: in words. */
void sink_condition(struct check_sink *sink, const char *figure, const char *place, const char *is,
	const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Something worth reading beside the check's result: how it was measured, a bottleneck that was named. */
void sink_note(struct check_sink *sink, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
