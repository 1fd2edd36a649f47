/* The steps of a verdict, shared by the files that make it: gate -> arrow -> cause -> words.
 * Internal to analyze; summary.h and diagnose.h are the ways in. */
#ifndef MLBENCH_ANALYZE_VERDICT_PARTS_H
#define MLBENCH_ANALYZE_VERDICT_PARTS_H

#include "harness/analyze/point_model.h"
#include "harness/analyze/summary.h"
#include "harness/analyze/way_out.h"

#include <stdbool.h>
#include <stddef.h>

/* What is judged: the summary, the repeats it was made of, and what else there is. */
struct evidence_base {
	const struct point_summary *point;
	const struct measurement *const *repeats;
	size_t count;
	const struct point_facts *facts;
	/* NULL: no service times, no ceilings.  Its repeats need not be those above. */
	const struct model_source *source;
	const struct findings *findings; /* NULL: no replay */
};

/* gate.c: whether the measurements may be judged at all; false with the reason and the way out. */
struct refusal {
	char reason[EVIDENCE_BYTES - 16];
	char way_out[WAY_OUT_BYTES];
};
bool gate_passes(const struct evidence_base *base, struct refusal *refusal);

/* arrow.c: which stage binds. */
struct binding {
	size_t stage;      /* index into point->stages */
	size_t second;     /* the stage that binds as much; stage_count: none */
	double second_gap; /* second's spare utilisation over the first's: 0.03 is "within 3 %" */
	/* Deviation of ln of the ratio of their capacities; and, given that, that the second binds less. */
	double second_noise, alone;
	double certainty;   /* that the arrows at the stage point the right way, 0..1 */
	bool conflict;      /* the busiest stage is not where the arrows point */
	bool depth;         /* no stage is busy: the queue between two of them is what binds */
	size_t queue_above; /* depth: the stage above that queue */
	/* With a replay: that its elasticities are highest at the stage (NAN: no replay), and whether
	 * the arrows say so too. */
	double replayed;
	bool agree;
	size_t pointed;    /* the stage that the arrows and the busy shares alone would name */
	double depth_gain; /* by replay, of a deeper queue; NAN: no replay */
	bool stalls; /* the step starves while storage stalls: the stage is read, whoever is busiest */
};
struct binding binding_find(const struct evidence_base *base);
/* Share of the time that the stage's workers are taken: at work, and, of devices that train together, exchanging gradients
 * or waiting for one another: step and exchange take turns, so that either is taken as long as both are. */
double binding_taken(const struct point_summary *point, size_t stage);
/* Deviation of ln of the ratio of two stages' capacities (margin.h). */
double binding_margin_noise(const struct evidence_base *base, size_t stage, size_t other);
/* Whether the two are step and exchange of the same devices. */
bool binding_takes_turns(const struct point_summary *point, size_t stage, size_t other);
/* binding_replay.c: the same with what the replay found, which decides. */
void binding_weigh(const struct evidence_base *base, struct binding *binding);
/* The stage with the next least capacity after `but`; stage_count when none shows one. */
size_t binding_next_capacity(const struct point_summary *point, size_t but);

/* cause.c: which resource the stage lacks.  The rules of a stage are asked in their order; the first
 * that holds is the cause. */
struct cause {
	const char *resource;
	double certainty;           /* 0..1, given that the stage is right */
	char words[EVIDENCE_BYTES]; /* the figures behind it */
};
typedef bool cause_rule(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out);
struct cause cause_of_stage(const struct evidence_base *base, const struct stage_summary *stage);

/* Fills out and returns true: the last line of a rule that holds. */
bool cause_is(struct cause *out, const char *resource, double certainty, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* 0.5 at the threshold, 0.95 from a tenth of the whole above it. */
double certainty_above(double value, double threshold);
/* Of the stage's working time, what is neither on a core, nor waiting for one, nor for its lock or the
 * disk as far as those are known; NAN: not known. */
double cause_asleep(const struct stage_summary *stage);
/* Elasticity of a cost; NAN without a replay. */
double cause_elasticity(const struct evidence_base *base, enum replay_cost cost);

/* Rules of one stage each, ended by NULL: cause_read.c, cause_decode.c, cause_step.c; those that several
 * share are in cause_cores.c. */
extern cause_rule *const cause_rules_read[],
	*const cause_rules_decode[], *const cause_rules_upload[], *const cause_rules_step[],
									  *const cause_rules_sync[];
cause_rule cause_stalls, cause_read_limit, cause_slow_device, cause_unknown_split, cause_quota,
	cause_stolen, cause_external, cause_cores, cause_slowed, cause_unexplained;

/* A CPU quota of the process throttled, so often that it may be a cause; how certain it is where threads wait for it; and its
 * name: "the quota of cgroup /a/b (1.5 cores)". */
enum { QUOTA_WORDS_BYTES = 64, QUOTA_NAME_BYTES = 112 };
bool cause_quota_throttles(const struct point_summary *point);
double cause_quota_certainty(const struct point_summary *point);
const char *cause_quota_name(const struct point_summary *point, char out[QUOTA_NAME_BYTES]);
/* A group's path, of which a sentence has room for the end only. */
const char *cause_short_group(const char *group, char out[QUOTA_WORDS_BYTES]);
/* Cores that the stages' threads are on or wait for. */
double cause_cores_wanted(const struct point_summary *point);

/* cause_read.c: whether reading is the limit because a cache holds a part of the data, which comes and goes with what it holds;
 * what all operating points tell of the store. */
bool cache_binds(const struct evidence_base *base);
struct storage;
void storage_of_point(const struct evidence_base *base, struct storage *out);
/* Buffered reads that the kernel lets through to a FUSE server at once, unless that asks for more
 * (FUSE_DEFAULT_MAX_BACKGROUND in Linux's fs/fuse/inode.c); 0: no FUSE. */
double cause_let_through(const struct point_facts *facts);

/* cause_store.c: a control group's memory limit leaves the page cache too small for data that is read again. */
bool cause_cache_limited(const struct point_summary *point, const struct point_facts *facts);
/* A line on the mount and the disk, where reads wait for them, and one on a memory limit that the page cache
 * is too small under.  The advice to raise a limit of a control group; false: none is the cause. */
void evidence_add_store(
	const struct evidence_base *base, const char *resource, struct verdict *out);
bool advice_of_limits(const struct point_summary *point, const struct point_facts *facts,
	const char *resource, char *out, size_t room);

/* cause_stalls.c: whether the step starves because storage answers nothing for a while, now and then. */
bool stalls_bind(const struct evidence_base *base);

/* An emulated step's thread is busy well beyond what its device computes: it hands steps over late, or wakes up late
 * after them, so that the device is not at its rate.  Work before each step, known by its service times, is no lateness.
 * False of any other step. */
bool step_is_late(const struct evidence_base *base);

/* Share of the time that devices wait for one another, before they exchange; NAN: there is one. */
double devices_waiting(const struct point_summary *point);

/* evidence.c: sentences with figures. */
void evidence_write(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out);
void evidence_add(struct verdict *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* advice.c: what to turn, with what may be expected of it. */
void advice_write(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out);

/* "a cheaper decode (codec.jpeg_scaled = on, smaller pictures)": of the formats that the data may hold, what is not set
 * yet. */
enum { CHEAPER_BYTES = 120 };
const char *advice_cheaper_decode(const struct point_facts *facts, char out[CHEAPER_BYTES]);
/* Fewer decode workers that keep all cores busy as well; 0: there are no more than that. */
unsigned advice_fewer_workers(const struct point_facts *facts);

/* verdict.c: all of it, on whatever of the evidence there is. */
void verdict_judge(const struct evidence_base *base, struct verdict *out);
/* Without the gate: for a part of what has passed it, or of what is unsteady only as a whole. */
void verdict_judge_trusted(const struct evidence_base *base, struct verdict *out);
/* The facts with what was measured (threads) before what was configured. */
struct point_facts point_facts_measured(
	const struct point_summary *point, const struct point_facts *facts);
/* No verdict, why, and what to set for one: that is the advice. */
void verdict_abstain(struct verdict *out, const char *reason, const char *way_out);

#endif
