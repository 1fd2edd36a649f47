/* The steps of a verdict, shared by the files that make it: the gate, which stage is the bottleneck
 * (bottleneck.c), which resource it lacks (cause.c, cause_read.c), and the words (verdict.c).
 * Internal to analyze; summary.h and diagnose.h are the ways in.
 *
 * Gate: a measurement that contradicts itself (steadiness, flow conservation, Little's law,
 * accounting) is not diagnosed. Each refusal says which key to set to what.
 *
 * Stage: wait states and elasticities must agree. Two stages whose capacities cannot be told apart
 * are named as a pair: one is named alone only if the other's capacity is more than 5 % higher with
 * a probability of 0.9, given how their busy shares vary within and between repetitions
 * (margin_noise) and what the replay leaves unexplained. That probability is a factor of the
 * confidence.
 *
 * Resource: rules on the time split, the operating points of reading, the traces and the node's
 * ceilings (mlbench probe).
 *
 * A run whose bottleneck changes is cut into phases, each with a verdict. If the change lasted,
 * repetitions before it belong to its first phase and those after it to its last, whose verdict
 * rests on these whole repetitions. A repetition that an outage or stalls made unsteady counts for
 * the verdict, but not for the figures.
 *
 * run and diagnose repeat as long as that can lead to a verdict (harness/command/session.c), and run the experiment that
 * parts what is left open: reads alone, or two stages alone (harness/command/decide.h).
 *
 * An emulated device computes for its nominal time (step_utilisation). Its thread counts as working
 * until it wakes up, which may be late if the cores are busy. Lateness and launch time (step/launch
 * from a fifth of a step) are separate evidence, lower the confidence and change the advice
 * (step_is_late). While a run is in progress only the thread's state is known, and the words say
 * so. */
#ifndef MLBENCH_ANALYZE_VERDICT_H
#define MLBENCH_ANALYZE_VERDICT_H

#include "harness/analyze/limit_kinds.h"
#include "harness/analyze/point_model.h"
#include "harness/analyze/summary.h"
#include "harness/measure/live.h"
#include "harness/record/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* --- verdicts --------------------------------------------------------------------------------- */

/* What is judged: the summary, the repetitions that it was made of, and what else there is. */
struct evidence_base {
	const struct point_summary *point;
	const struct measurement *const *repeats;
	size_t count;
	const struct point_facts *facts;
	/* NULL: no service times, no ceilings.  Its repetitions need not be those above. */
	const struct model_source *source;
	const struct model_findings *findings; /* NULL: no replay */
	/* Without findings, for want of samples: what reading gains without its tail, as in findings; 0: not known. */
	double untailed;
};

/* --- verdict.c -------------------------------------------------------------------------------- */

/* The gate: whether the measurements may be judged at all; false with the reason and the way
 * out. */
struct refusal {
	char reason[EVIDENCE_BYTES - 16];
	char way_out[WAY_OUT_BYTES];
};
bool gate_passes(const struct evidence_base *base, struct refusal *refusal);
void verdict_judge(const struct evidence_base *base, struct verdict *out);
/* Without the gate: for a part of a measurement that has passed it, or one that is unsteady only as
 * a whole. */
void verdict_judge_trusted(const struct evidence_base *base, struct verdict *out);
/* No verdict: the reason is the evidence, what to set to get one is the advice. */
void verdict_abstain(struct verdict *out, const char *reason, const char *way_out);
/* The facts with the threads that were measured in place of those that were configured. */
struct point_facts point_facts_measured(
	const struct point_summary *point, const struct point_facts *facts);
/* Adds one sentence, given without a capital and a full stop. */
void evidence_add(struct verdict *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* --- bottleneck.c: which stage is the bottleneck ---------------------------------------------- */

struct binding {
	size_t stage;      /* index into point->stages */
	size_t second;     /* the stage that limits as much; stage_count: none */
	double second_gap; /* second's spare utilisation over the first's: 0.03 is "within 3 %" */
	/* Deviation of ln of the ratio of their capacities; and the probability that the first
	 * limits alone, given that deviation. */
	double second_noise, alone;
	double certainty;   /* that the arrows at the stage point the right way, 0..1 */
	bool conflict;      /* the busiest stage is not where the arrows point */
	bool depth;         /* no stage is busy: the queue between two of them is the bottleneck */
	size_t queue_above; /* depth: the stage above that queue */
	/* With a replay: the probability that its elasticities are highest at the stage (NAN: no
	 * replay), and whether the arrows agree. */
	double replayed;
	bool agree;
	size_t pointed;    /* the stage that the arrows and the busy shares alone would name */
	double depth_gain; /* by replay, of a deeper queue; NAN: no replay */
	/* the step starves while storage stalls: the stage is read, whichever is busiest */
	bool stalls;
	bool tail;     /* likewise, while a few files take many times as long as the others */
	bool restarts; /* workers start anew with each epoch, and the step waits for that */
	/* Both stages ran alone: the probability that the one or the pair that is named limits; NAN: they did not, or it
	 * counts for nothing. */
	double shown;
	double alone_ratio, alone_error; /* stages_alone_ratio of what is named; NAN: not run */
	double alone_least;              /* samples/s */
	size_t alone_stage;              /* the other one */
};
struct binding binding_find(const struct evidence_base *base);
/* The same with what the replay found, which decides. */
void binding_weigh(const struct evidence_base *base, struct binding *binding);
/* Names checkpoints or evaluations in place of a step that never starves but stands still for them; after the two above. */
void binding_weigh_stopping(const struct evidence_base *base, struct binding *binding);
/* The stage that may limit instead of the named one or as much as it, and can be run alone as that one can; stage_count: none. */
size_t binding_against(const struct evidence_base *base, const struct binding *binding);
/* Takes what the two stages gave alone, where the run agrees with it. */
void binding_weigh_alone(const struct evidence_base *base, struct binding *binding);
/* Names workers that start anew where that is most of what the step starves for. */
void binding_weigh_restarts(const struct evidence_base *base, struct binding *binding);
/* Share of the time that the stage's workers are taken: working and, for devices that train
 * together, exchanging gradients or waiting for one another.  Step and exchange take turns on a
 * device, so each is taken as long as both are. */
double binding_taken(const struct point_summary *point, size_t stage);
/* The stage with the next least capacity after `but`; stage_count when none shows one. */
size_t binding_next_capacity(const struct point_summary *point, size_t but);

/* Standard error of ln(capacity of one stage / capacity of the other).  By the utilisation law busy
 * shares relate as capacities do, inverted, and what slows the whole node down cancels in their
 * ratio.  The error is that of the ratio's spread over the repetitions, moderated by what
 * capacities usually vary by, or that of its spread over parts of each repetition, whichever is
 * larger: a stall that only one of the two stages feels shows in the parts. */
double margin_noise(const struct measurement *const *repeats, size_t count, const char *stage,
	const char *other);

/* --- cause.c, cause_read.c, cause_network.c: which resource the stage lacks ------------------------------------ */

/* What one read is called: "file", or "request" where samples are cut out of large ones. */
const char *cause_read_unit(const struct evidence_base *base);

struct cause {
	const char *resource;
	double certainty;           /* 0..1, given that the stage is right */
	char words[EVIDENCE_BYTES]; /* the figures behind it */
};
typedef bool cause_rule(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out);
struct cause cause_of_stage(const struct evidence_base *base, const struct stage_summary *stage);
struct cause cause_of_restarts(const struct point_summary *point);

/* Fills out and returns true: the last line of a rule that holds. */
bool cause_is(struct cause *out, const char *resource, double certainty, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* 0.5 at the threshold, 0.95 from a tenth of the whole above it. */
double certainty_above(double value, double threshold);

/* Rules, asked in order, ended by NULL. */
extern cause_rule *const cause_rules_read[];
cause_rule cause_no_core, cause_on_cpu, cause_unexplained;
/* cause_network.c: the link, the server, or calls that are not READ, where other depths tell that
 * a network file system is saturated. */
cause_rule cause_network;
/* The data is on a network file system that the client knows (network_measurement). */
bool cause_is_network(const struct evidence_base *base);
/* Of a verdict that its latency limits: at most 0.9 unless the calls agree. */
double cause_network_latency(const struct evidence_base *base, double certainty);
/* Files in flight that would keep up with the next stage, at what each takes now; 0: not known. */
unsigned network_depth_wanted(const struct evidence_base *base);
/* Lines on its calls, and on the depth that is wanted where latency limits. */
void evidence_add_network(
	const struct evidence_base *base, const char *resource, struct verdict *out);

/* "the quota of cgroup /a/b (1.5 cores)" */
enum { QUOTA_WORDS_BYTES = 64, QUOTA_NAME_BYTES = 112 };
const char *cause_quota_name(const struct point_summary *point, char out[QUOTA_NAME_BYTES]);
/* A group's path; a sentence has room only for its end. */
const char *cause_short_group(const char *group, char out[QUOTA_WORDS_BYTES]);
/* Cores that the stages' threads are on or wait for. */
double cause_cores_wanted(const struct point_summary *point);

/* An emulated step's thread is busy well beyond what its device computes: it hands steps over late,
 * or wakes up late after them, so that the device is not at its rate.  Work before each step, known
 * by its service times, is no lateness.  False for any other step. */
bool step_is_late(const struct evidence_base *base);
/* Share of the time that devices wait for one another before they exchange; NAN: there is one
 * device. */
double devices_waiting(const struct point_summary *point);

/* Whether reading is the bottleneck because a cache holds a part of the data; its rate changes with
 * what the cache holds. */
bool cache_binds(const struct evidence_base *base);
/* cause_stalls.c: storage answers nothing for a while, now and then. */
cause_rule cause_stalls;
/* Whether the step starves because of that. */
bool stalls_bind(const struct evidence_base *base);
/* cause_tail.c: a few files that take many times as long as the others; no_stall: only if a stall does not
 * look like that. */
cause_rule cause_tail, cause_tail_no_stall;
/* Whether reading is the bottleneck because of them, whatever else is named. */
bool tail_binds(const struct evidence_base *base, bool no_stall);
/* Where it is. */
struct cause cause_of_tail(const struct evidence_base *base, const struct stage_summary *read);
/* Lines on slow files and slow samples: which they are, and the share of the time that they take where
 * the verdict on that stage and resource does not say so. */
void evidence_add_tail(const struct evidence_base *base, const char *stage, const char *resource,
	struct verdict *out);
/* A line on opening files, if that is most of their time. */
void evidence_add_open(const struct evidence_base *base, struct verdict *out);
/* A line on stalls where something else is the bottleneck. */
void evidence_add_stalls(
	const struct evidence_base *base, const char *resource, struct verdict *out);
/* How many buffered reads the kernel lets through to a FUSE server at once, unless the server asks
 * for more (FUSE_DEFAULT_MAX_BACKGROUND in Linux's fs/fuse/inode.c); 0: no FUSE. */
double cause_let_through(const struct point_facts *facts);
/* A line on the mount and the disk, where reads wait for them, and one on a memory limit that the
 * page cache is too small under. */
void evidence_add_store(
	const struct evidence_base *base, const char *resource, struct verdict *out);
/* The advice to raise a limit of a control group; false: none is the cause. */
bool advice_of_limits(const struct point_summary *point, const struct point_facts *facts,
	const char *resource, char *out, size_t room);

/* --- cause.c: what recorded service times show by themselves ---------------------------------- */

/* What recorded service times show by themselves, without a model: two populations (hits and
 * misses), or a straggler worker. Pure functions on the traces of one stage over the
 * repetitions of a point. */

enum { TRACE_SET_MAX = 16 };

/* One stage's traces, of the first TRACE_SET_MAX repeats that have any. */
struct trace_set {
	const struct trace *of[TRACE_SET_MAX];
	size_t count, items;
};

/* Of what is judged; empty without service times. */
struct trace_set cause_traces(const struct evidence_base *base, const char *stage);

/* Two populations of service times: a split of their logarithms (Otsu) that explains most of the
 * variance, with the means far apart and neither side rare. Only of what file sizes do not explain:
 * two sizes of files are not two populations. */
struct trace_modes {
	bool two;
	double fast_share;       /* of the items */
	double fast_ns, slow_ns; /* geometric means */
	double explained;        /* share of the variance between the two */
};
struct trace_modes trace_modes_of(const struct trace_set *set);

/* Of a stage's time, waiting for a core: no queue is why it is idle. */
static const double QUEUED_MUCH = 0.25;

/* The slowest worker against the median of the others, by medians of service times. */
struct trace_workers {
	unsigned seen;  /* workers with enough items */
	unsigned worst; /* the slowest */
	double ratio;   /* its median over that of the others; NAN: fewer than two */
	double worst_ns, others_ns;
};
struct trace_workers trace_workers_of(const struct trace_set *set);

/* Host time over the whole time of steps; NAN: not recorded. apart: the service time is the
 * device's alone (emulated); otherwise the host's time is part of it. */
double trace_host_share(const struct trace_set *set, bool apart);

/* --- verdict.c: what to change ---------------------------------------------------------------- */

/* The sweep that tells slow storage from saturated storage. */
void advice_try_depths(const struct point_facts *facts, char *out, size_t room);

/* In place of advice that is negative ("no setting helps") or cannot be undone ("add cores"): true, with why it cannot be
 * given, where others used the cores meanwhile. */
bool advice_after_load(const struct point_summary *point, char *out, size_t room);
/* What makes decoding cheaper: "codec.jpeg_scaled = on for JPEG, smaller pictures", only what the
 * data's formats allow and what is not set yet. */
enum { CHEAPER_BYTES = 120 };
const char *advice_cheaper_decode(const struct point_facts *facts, char out[CHEAPER_BYTES]);
/* Fewer decode workers that keep all cores as busy; 0: there are no more workers than that. */
unsigned advice_fewer_workers(const struct point_facts *facts);

/* --- verdict.c: how sure a verdict is --------------------------------------------------------- */

/* The probability that (stage, resource) is right, as a product of what may be wrong with it:
 *
 *   confidence = stage x resource x busy x pair x completeness
 *
 * and at most 0.97 (0.90 below 3 repetitions).
 *
 *   stage         by the arrows beside it alone, or by arrows and replay together.  Two witnesses
 *                 that agree are wrong together only if both are wrong (1 - (1-a)(1-r)); where they
 *                 disagree the replay is believed, at 0.65 of what it claims; two that name one
 *                 stage each of a pair agree.  Where a quota stops the threads only the replay is
 *                 asked, because stopped threads wait anywhere.
 *   resource      how far the time split is from the threshold that names it (cause.c)
 *   busy          without a replay: 1 for a stage that is busy 90 % of the time, 0.7 at 70 %: its
 *                 own waiting is not its own limit, and the queues' share is not known
 *   pair          0.6 when another stage limits as much, as far as can be told; else the
 *                 probability that none does (the next capacity is 5 % above the first), at least
 *                 0.9
 *                 Two stages that were run alone (harness/command/decide.h) replace stage, busy and pair by
 *                 the probability that what is named is true of their capacities: one is more than
 *                 5 % below the other, or they are a pair.  They count where the run's busy shares
 *                 agree with them and one of them alone is no faster than the run
 *   completeness  1 while the replay explains the time between batches to within 5 %, 0.5 at 30 %;
 *                 0.8 where it misses more than a fifth and disagrees, so that only the arrows count
 *
 * Without a replay a queue's depth as the verdict has 0.5: only a replay or an experiment can
 * prove it. */
double confidence_stage(double arrows, double replay, bool agree); /* replay NAN: none */
double confidence_busy(double busy);
double confidence_pair(bool pair, double alone);
double confidence_completeness(double unmodelled); /* NAN: no replay */
double confidence_most(size_t repeats);
/* The probability that a stage limits alone: that the next capacity is more than 5 % above its own,
 * given their ratio and the deviation of its ln. */
double confidence_alone(double ratio, double deviation);
/* Whether that is too little to name only one of the two. */
bool confidence_is_pair(double alone);
/* The probability that their capacities are within 5 % of each other, given ln of their ratio and its deviation. */
double confidence_balanced(double log_ratio, double deviation);
#define ALONE_FASTER \
	1.10 /* times the run: both stages alone are faster than it, so that neither limits it by itself */
#define ALONE_ERROR_MOST 0.025 /* of ln of their ratio: more does not tell 5 % */
/* What a pair counts for where both stages ran alone: never less than without. */
double confidence_shown_pair(double balanced);
/* After a prediction that failed: its odds over the divisor. */
#define CONFIDENCE_ODDS_OWN 4 /* of the stage that the verdict names, or of what it recommends */
double confidence_failed(double confidence, double divisor);

/* --- while a run is in progress --------------------------------------------------------------- */

/* The verdict while a run is in progress: what the run shows of itself (harness/measure/live.h)
 * between two moments, judged by the rules for a finished run, from wait states and times alone,
 * without a replay. A pure function; it says so when it is too early. */

struct live_verdict {
	bool told;     /* else words say why there is none yet */
	double over_s; /* seconds that it is over */
	struct verdict verdict;
	char words
		[EVIDENCE_BYTES]; /* "forming: decode / cpu, so far (likely, 72 % sure, over 8.1 s)" */
};

/* from: at an earlier moment of the same repetition, after its warm-up (to->warm is one). */
void live_verdict_of(
	const struct live_sums *from, const struct live_view *to, struct live_verdict *out);

#endif
