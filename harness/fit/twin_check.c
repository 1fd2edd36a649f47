#include "harness/fit/twin_check.h"

#include "harness/analyze/limit_kinds.h"
#include "harness/analyze/reproduction.h"
#include "harness/base/units.h"
#include "harness/fit/amount.h"
#include "harness/fit/twin.h"
#include "harness/record/config_json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double TWIN_NS_PER_S = 1e9;
static const double TWIN_NEAR = 0.03; /* of the job's time between batches: nothing to correct */
static const double TWIN_WAIT_NEAR = 0.1; /* of the time, that the trainer waits: alike */
static const double TWIN_WAIT_FAR = 0.4;  /* that two jobs differ by which are limited otherwise */
static const double TWIN_CPU_NEAR = 0.25; /* of the loader's CPU time */
static const double TWIN_STALLS_NEAR = 0.3; /* of their distance: few are in a short run */
static const double TWIN_MISSING =
	0.25; /* of a loader's time for a sample that is made up at most */
static const double TWIN_OTHERS = 0.25; /* cores: fewer take none from a job */
enum { TWIN_LINE_BYTES = 240 };

const char *twin_cannot_check(const struct case_file *file, double cores_here)
{
	if (config_integer(&file->twin, KEY_RUN_RANKS) > 1)
		return "it is a job of several processes, which fit does not start";
	if (file->observed.known[FINDING_THROUGHPUT].how == FINDING_UNKNOWN)
		return "nothing tells the job's throughput";
	if (twin_step_is_of_rate(file))
		return "nothing tells how much of the time between batches is waiting, so that the twin has the job's "
		       "throughput whatever the job is like";
	if (file->reported_cores > cores_here)
		return "the job had more cores than there are here";
	return NULL;
}

/* --- what is known of the job ------------------------------------------------------------------- */

struct twin_facts {
	double rate;    /* samples/s */
	double period;  /* ns from batch to batch of a rank */
	double wait;    /* share; NAN */
	double workers; /* of the twin */
	double batch;   /* samples of all devices */
	bool turns;     /* the trainer loads by itself */
};

static struct twin_facts twin_facts_of(const struct case_file *file)
{
	const struct finding *rate = &file->observed.known[FINDING_THROUGHPUT];
	const double batch = config_real(&file->twin, KEY_BATCH_SIZE) *
			     fmax(1, config_real(&file->twin, KEY_STEP_DEVICES));
	return (struct twin_facts){.rate = rate->value,
		.period = batch / rate->value * TWIN_NS_PER_S,
		.wait = twin_wait_share(file),
		.workers = config_real(&file->twin, KEY_DECODE_WORKERS),
		.batch = batch,
		.turns = config_integer(&file->twin, KEY_PREFETCH_DEPTH) == 0};
}

double twin_stalls_from(const struct case_file *file)
{
	const struct finding *step = &file->observed.known[FINDING_STEP_TIME];
	const struct finding *stall = &file->observed.known[FINDING_STALL];
	return step->how != FINDING_UNKNOWN && stall->how != FINDING_UNKNOWN
		       ? step->value + stall->value / 2
		       : NAN;
}

/* --- corrections -------------------------------------------------------------------------------- */

/* Adds ns to a time of the twin, which stays at 0 or above; why: that it is a guess now. */
static int twin_add_time(struct case_file *file, enum key_id key, double ns, const char *why,
	bool *changed, struct error *err)
{
	char name[CONFIG_NAME_BYTES];
	char text[UNITS_BYTES];
	const double was = config_real(&file->twin, key);
	const double now = fmax(0, round((was + ns) / 1e3) * 1e3);
	if (fabs(now - was) < 1e3)
		return 0;
	(void)config_key_name(key, name);
	(void)units_print_duration((uint64_t)now, text);
	int code = case_set(file, name, text, err);
	if (!code)
		code = case_assume(file, name, why, err);
	*changed = true;
	return code;
}

/* What the step takes in the twin beyond what it takes in the job, where waits tell both; ns, above 0: the job's is longer. */
static double twin_step_lacks(const struct twin_facts *job, const struct twin_run *run)
{
	const double period = job->batch / run->rate * TWIN_NS_PER_S;
	const double lacks = job->period * (1 - job->wait) - period * (1 - run->wait);
	return fabs(lacks) > TWIN_NEAR * job->period ? lacks : 0;
}

static int twin_correct_step(struct case_file *file, const struct twin_facts *job,
	const struct twin_run *run, struct twin_corrections *to, struct error *err)
{
	const bool *fixed = to->fixed;
	const double lacks = twin_step_lacks(job, run);
	if (isnan(lacks) || fabs(lacks) <= 0 || fixed[KEY_STEP_TIME] || fixed[KEY_STEP_TIMES])
		return 0;
	if (file->twin.is_set[KEY_STEP_TIMES]) {
		to->changed = true;
		to->step_shift += lacks;
		return twin_shift_step_times(file, to->step_shift, err);
	}
	return file->twin.is_set[KEY_STEP_TIME]
		       ? twin_add_time(file, KEY_STEP_TIME,
				 fmax(lacks, 1e3 - config_real(&file->twin, KEY_STEP_TIME)),
				 "corrected by a run of the twin, so that its time between batches without waiting is the job's",
				 &to->changed, err)
		       : 0;
}

/* What a worker takes for a sample in the job beyond what it takes in the twin, where the loader limits either; ns; NAN: it does not,
 * or it is not known. */
static double twin_loader_lacks(const struct twin_facts *job, const struct twin_run *run)
{
	const double period = job->batch / run->rate * TWIN_NS_PER_S;
	if (isnan(job->wait) || isnan(run->wait))
		return NAN;
	if (job->turns)
		return (job->wait * job->period - run->wait * period) / job->batch * job->workers;
	if (job->wait < TWIN_WAIT_NEAR && run->wait < TWIN_WAIT_NEAR)
		return NAN;
	return job->workers * (1 / job->rate - 1 / run->rate) * TWIN_NS_PER_S;
}

/* Workers that take turns: how long each holds the lock is a guess, ns more of it. */
static int twin_correct_lock(struct case_file *file, double ns, bool *changed, struct error *err)
{
	const double sample = config_real(&file->twin, KEY_OVERHEAD_SAMPLE);
	const double share = config_real(&file->twin, KEY_OVERHEAD_LOCK);
	const double now = fmin(1, fmax(0.01, share + ns / sample));
	char text[UNITS_BYTES];
	if (!(fabs(now - share) > 0.005))
		return 0;
	(void)snprintf(text, sizeof text, "%.3f", now);
	const int code = case_set(file, "overhead.lock", text, err);
	*changed = true;
	return code ? code
		    : case_assume(file, "overhead.lock",
			      "one lock of all workers, held for as long as a run of the twin needs to load as fast as the job",
			      err);
}

static int twin_correct_loader(struct case_file *file, const struct twin_facts *job,
	const struct twin_run *run, struct twin_corrections *to, struct error *err)
{
	const bool *fixed = to->fixed;
	bool *changed = &to->changed;
	static const char guessed[] =
		"a guess that a run of the twin corrected: with it, the twin loads as fast as the job did";
	static const char waits[] =
		"what loading a sample took the job beyond what is known: with it, the twin loads as fast as the job did";
	const struct finding *cpu = &file->observed.known[FINDING_CPU_SAMPLE];
	const double lacks = twin_loader_lacks(job, run);
	const double slot = job->workers / job->rate * TWIN_NS_PER_S;
	const bool known = cpu->how >= FINDING_DERIVED;
	if (isnan(lacks) || fabs(lacks) <= TWIN_NEAR * slot)
		return 0;
	/* Where the loader starts anew with each epoch, how long that takes is what is known least. */
	if (config_integer(&file->twin, KEY_DECODE_PERSISTENT) == 0 && !fixed[KEY_DECODE_STARTUP])
		return twin_add_time(file, KEY_DECODE_STARTUP,
			lacks / job->workers * config_real(&file->twin, KEY_DATASET_SAMPLES),
			guessed, changed, err);
	if (config_real(&file->twin, KEY_OVERHEAD_LOCK) > 0 && !fixed[KEY_OVERHEAD_LOCK])
		return twin_correct_lock(file, lacks / job->workers, changed, err);
	if (config_real(&file->twin, KEY_INJECT_LOCK_SHARE) > 0 && !fixed[KEY_OVERHEAD_SAMPLE] &&
		fabs(lacks) <= TWIN_MISSING * slot)
		return twin_add_time(
			file, KEY_OVERHEAD_SAMPLE, lacks / job->workers, guessed, changed, err);
	/* More than that is something of the job that the twin does not have. */
	if (known && fabs(lacks) > TWIN_MISSING * slot)
		return 0;
	if (lacks > 0 && known && !fixed[KEY_INJECT_DECODE_WAIT])
		return twin_add_time(file, KEY_INJECT_DECODE_WAIT, lacks, waits, changed, err);
	if (lacks < 0 && !fixed[KEY_INJECT_DECODE_WAIT] &&
		config_real(&file->twin, KEY_INJECT_DECODE_WAIT) >= -lacks)
		return twin_add_time(file, KEY_INJECT_DECODE_WAIT, lacks, waits, changed, err);
	return fixed[KEY_OVERHEAD_SAMPLE]
		       ? 0
		       : twin_add_time(file, KEY_OVERHEAD_SAMPLE, lacks, guessed, changed, err);
}

int twin_correct(struct case_file *file, const struct twin_run *run, struct twin_corrections *to,
	struct error *err)
{
	const struct twin_facts job = twin_facts_of(file);
	to->changed = false;
	/* Other processes make a twin slower, and not faster. */
	if (!(run->rate > 0) || (run->disturbed[0] && run->rate < job.rate))
		return 0;
	const int code = twin_correct_step(file, &job, run, to, err);
	return code ? code : twin_correct_loader(file, &job, run, to, err);
}

/* --- judging ------------------------------------------------------------------------------------ */

static int twin_say_line(struct case_file *file, const char *what, const char *job,
	const char *twin, bool agrees, struct error *err)
{
	char line[2 * TWIN_LINE_BYTES];
	(void)snprintf(line, sizeof line, "%s: %s of the job, %s of the twin: %s", what, job, twin,
		agrees ? "agrees" : "differs");
	return case_compare(file, line, err);
}

static int twin_compare_amounts(struct case_file *file, const char *what, enum amount_unit unit,
	double job, double twin, bool agrees, struct error *err)
{
	char of_job[AMOUNT_BYTES_OUT];
	char of_twin[AMOUNT_BYTES_OUT];
	(void)amount_words(unit, job, of_job);
	(void)amount_words(unit, twin, of_twin);
	return twin_say_line(file, what, of_job, of_twin, agrees, err);
}

enum twin_cause {
	TWIN_CAUSE_UNKNOWN,
	TWIN_CAUSE_SAME,
	TWIN_CAUSE_OTHER_RESOURCE,
	TWIN_CAUSE_OTHER_STAGE
};

/* "possible", as an observation says, is not enough to call a twin unlike its job. */
static bool twin_is_sure(double confidence)
{
	return isnan(confidence) || confidence > REPRODUCTION_SURE;
}

static enum twin_cause twin_cause_of(const struct case_file *file, const struct twin_run *run)
{
	const struct findings *job = &file->observed;
	if (!job->stage[0] || !run->stage[0] || strcmp(run->stage, "none") == 0 ||
		!twin_is_sure(job->confidence) || !twin_is_sure(run->confidence))
		return TWIN_CAUSE_UNKNOWN;
	if (!limit_stage_is_of(job->stage, run->stage))
		return TWIN_CAUSE_OTHER_STAGE;
	return !job->resource[0] || strcmp(job->resource, "unknown") == 0 ||
			       reproduction_allows(job->resource, run->resource)
		       ? TWIN_CAUSE_SAME
		       : TWIN_CAUSE_OTHER_RESOURCE;
}

static int twin_compare_all(struct case_file *file, const struct twin_run *run, double wait,
	enum twin_cause cause, struct error *err)
{
	const struct finding *rate = &file->observed.known[FINDING_THROUGHPUT];
	const struct finding *cpu = &file->observed.known[FINDING_CPU_SAMPLE];
	char job[TWIN_LINE_BYTES / 2];
	char twin[TWIN_LINE_BYTES / 2];
	int code = twin_compare_amounts(file, "throughput", AMOUNT_PER_S, rate->value, run->rate,
		fabs(run->rate / rate->value - 1) <= TWIN_OFF, err);
	if (!code && isfinite(wait) && isfinite(run->wait))
		code = twin_compare_amounts(file, "the trainer's wait for data", AMOUNT_SHARE, wait,
			run->wait, fabs(run->wait - wait) <= TWIN_WAIT_NEAR, err);
	if (!code && cpu->how >= FINDING_DERIVED && run->cpu > 0)
		code = twin_compare_amounts(file, "CPU time of loading a sample", AMOUNT_NS,
			cpu->value, run->cpu,
			fabs(run->cpu - cpu->value) <= TWIN_CPU_NEAR * cpu->value, err);
	const struct finding *stalls = &file->observed.known[FINDING_STALL_TIME];
	const double every = stalls->value / twin_facts_of(file).period;
	if (!code && stalls->how != FINDING_UNKNOWN && isfinite(run->stall_every))
		code = twin_compare_amounts(file, "steps from one that stalls to the next",
			AMOUNT_COUNT, every, run->stall_every,
			fabs(run->stall_every / every - 1) <= TWIN_STALLS_NEAR, err);
	if (code || cause == TWIN_CAUSE_UNKNOWN)
		return code;
	(void)snprintf(job, sizeof job, "%s%s%s", file->observed.stage,
		file->observed.resource[0] ? "/" : "", file->observed.resource);
	(void)snprintf(twin, sizeof twin, "%s/%s", run->stage, run->resource);
	return twin_say_line(file, "bottleneck", job, twin, cause == TWIN_CAUSE_SAME, err);
}

int twin_judge(struct case_file *file, const struct twin_run *run, struct error *err)
{
	const struct finding *rate = &file->observed.known[FINDING_THROUGHPUT];
	const struct finding *others = &file->observed.known[FINDING_OTHERS];
	const double wait = twin_wait_share(file);
	const double factor = run->rate / rate->value;
	const enum twin_cause cause = twin_cause_of(file, run);
	const bool off = !(fabs(factor - 1) <= TWIN_OFF);
	const bool waits = fabs(run->wait - wait) > TWIN_WAIT_FAR;
	enum case_check check = CASE_CHECK_FAITHFUL;
	char why[2 * TWIN_LINE_BYTES];
	free(file->compared);
	file->compared = NULL;
	const int code = twin_compare_all(file, run, wait, cause, err);
	if (code)
		return code;
	if (off)
		(void)snprintf(why, sizeof why, "the twin gave %s times the job's throughput here",
			UNITS_PLAIN(factor, 3));
	else if (waits)
		(void)snprintf(why, sizeof why,
			"the twin's trainer waits for data %.0f %% of the time, and the job's did %.0f %%",
			100 * run->wait, 100 * wait);
	else if (cause == TWIN_CAUSE_OTHER_STAGE)
		(void)snprintf(why, sizeof why, "%s limits the twin, and %s limited the job",
			run->stage, file->observed.stage);
	else
		(void)snprintf(why, sizeof why,
			"the twin gave %s times the job's throughput here%s%s",
			UNITS_PLAIN(factor, 3), run->disturbed[0] ? ", although " : "",
			run->disturbed);
	if (off || waits || cause == TWIN_CAUSE_OTHER_STAGE) {
		const size_t used = strlen(why);
		/* Others make no twin faster; but the job may have been slowed down by others when it was observed. */
		const bool faster = off && factor > 1 && others->how != FINDING_UNKNOWN &&
				    others->value < TWIN_OTHERS;
		const bool excused = run->disturbed[0] && !faster;
		check = excused ? CASE_CHECK_UNCHECKED : CASE_CHECK_UNFAITHFUL;
		if (excused)
			(void)snprintf(why + used, sizeof why - used,
				"; but %s: fit it again on a quiet node", run->disturbed);
	}
	return case_say_check(file, check, why, err);
}
