/* The ranks of a session: this process and those that the launcher started beside it.  One leads: it has the plan, the record and
 * every decision, and hands the configuration round.  The others follow: each opens the same data set, runs what it is told to, and
 * answers its measurement, which the leader keeps in the result's folder ranks/NNNN, a result of its own.
 *
 *   leader                        followers
 *   plan, data set                hear
 *   "job": configuration     ->   plan; on a node of their own make the data set, then all open it
 *   compares build, data     <-   build, configuration and data set as hashes, cores
 *   "header"                 ->   what their node is like
 *   "run": configuration     ->   pipeline_run, together with all others
 *   keeps                    <-   measurement, traces, what its timeline holds
 *   "timeline", one by one   ->
 *   writes trace.json        <-   its events
 *   "end"                    ->   end
 *
 * A command that measures again and again (diagnose --verify, --follow) hands a new "job" round for each plan.
 *
 * No shared file system is assumed, nor that there is none: who leads writes all that is kept.  One thread. */
#ifndef MLBENCH_COMMAND_PARTY_H
#define MLBENCH_COMMAND_PARTY_H

#include "harness/command/run_plan.h"
#include "harness/record/measurement.h"
#include "harness/report/timeline_report.h"
#include "pipelines/pipeline.h"
#include "workloads/ranks/binding.h"
#include "workloads/ranks/ranks.h"

#include <stdbool.h>
#include <stdint.h>

struct diagnosed;
struct party;
struct party_job;
struct report;
struct verify_ranks;

/* The calls below, which main hands to a command where a launcher started it: alone, it links nothing of ranks. */
struct party_calls {
	int (*settle)(struct config *config, struct error *err);
	int (*open)(struct party *party, const atomic_bool *stop, struct error *err);
	void (*close)(struct party *party, int status);
	int (*follow)(struct party *party, const struct invocation *invocation, struct error *err);
	int (*begin)(struct party *party, const struct plan *plan, struct error *err);
	int (*begin_records)(struct party *party, const struct record *record, struct error *err);
	int (*end_records)(struct party *party, const struct record *record, struct error *err);
	int (*start)(struct party *party, const struct party_job *job, struct ranks **ranks,
		struct error *err);
	int (*finish)(struct party *party, const struct party_job *job, int code,
		struct measurement *m, struct error *err);
	void (*describe)(const struct party *party, struct buffer *out);
	/* Those of verify_ranks.h. */
	int (*verify_open)(struct verify_ranks *ranks, const struct report *report,
		const struct diagnosed *diagnosed, struct error *err);
	void (*verify_close)(struct verify_ranks *ranks);
};
extern const struct party_calls party_of_ranks;

struct party {
	const struct party_calls *calls;
	struct ranks *ranks;     /* NULL: this process is alone */
	const struct plan *plan; /* of the leader */
	const char *folder;      /* of the leader's result; NULL: nothing is kept */
	struct ranks_binding binding;
	char warning[BINDING_WARNING_BYTES]; /* of its cores; "": none */
	unsigned judged;                     /* the rank whose measurements experiments are about */
	bool traces_lost;                    /* said once */
	int cannot_save;                     /* what others measured; 0: it is saved */
	double least; /* samples/s of the slowest rank in the last job, which was not kept */
	/* The leader's: what the others recorded of the last job. */
	struct timeline_others timelines;
};

/* run.ranks of a configuration: as many ranks as the launcher started, where nothing else is said.  -EINVAL: they are more. */
static inline int party_settle(
	const struct invocation *invocation, struct config *config, struct error *err)
{
	return invocation->party->settle(config, err);
}

/* Finds the others.  -ENOTSUP: they cannot be reached. */
static inline int party_open(
	struct party *party, const struct invocation *invocation, struct error *err)
{
	*party = (struct party){.calls = invocation->party};
	return party->calls ? party->calls->open(party, invocation->stop, err) : 0;
}

/* Ends them, with the leader's status.  Safe on {0}. */
static inline void party_close(struct party *party, int status)
{
	if (party->ranks)
		party->calls->close(party, status);
}

static inline bool party_follows(const struct party *party)
{
	return party->ranks && !ranks_leads(party->ranks);
}

/* Finds the others, for the leader to go on with.  False: this process is done, with *status: it could not, or it followed. */
static inline bool party_join(
	struct party *party, const struct invocation *invocation, int *status, struct error *err)
{
	*status = command_status(party_open(party, invocation, err));
	if (!*status && !party_follows(party))
		return true;
	if (!*status)
		*status = party->calls->follow(party, invocation, err);
	party_close(party, *status);
	return false;
}

/* The leader, and alone without any effect, from here on: hands the plan round, whose data set is open.  -EDOM: a rank has another
 * build or other data; it is named. */
static inline int party_begin(struct party *party, const struct plan *plan, struct error *err)
{
	return party->ranks ? party->calls->begin(party, plan, err) : 0;
}

/* Which ranks there are, on which nodes, with how many cores, as a line of the plan. */
static inline void party_describe(const struct party *party, struct buffer *out)
{
	if (party->ranks)
		party->calls->describe(party, out);
}

/* The others' folders in that of a record that was made or is continued. */
static inline int party_begin_records(
	struct party *party, const struct record *record, struct error *err)
{
	return party->ranks ? party->calls->begin_records(party, record, err) : 0;
}

/* They end as that record did. */
static inline int party_end_records(
	struct party *party, const struct record *record, struct error *err)
{
	return party->ranks ? party->calls->end_records(party, record, err) : 0;
}

/* A pipeline that all run at the same time: beside the leader's own pipeline_run.  kept: a repetition, whose measurements and
 * traces are kept as those of this point and repeat. */
struct party_job {
	const struct config *config;
	const struct dataset *dataset; /* the plan's, or some samples of it */
	uint32_t point, repeat;
	bool kept;
	bool whole;       /* not kept, and measured for as long as is set all the same */
	unsigned without; /* a rank that takes no part, of one more than run.ranks; 0: none */
};

/* The ranks to hand to pipeline_run into *ranks, NULL where each runs for itself: without a step there is nothing to meet for. */
static inline int party_start(
	struct party *party, const struct party_job *job, struct ranks **ranks, struct error *err)
{
	return party->ranks ? party->calls->start(party, job, ranks, err) : 0;
}

/* After it, with its code and measurement: takes the others'.  Fails, and m with it, when one of them did.  Of what is not kept m
 * becomes that of the judged rank. */
static inline int party_finish(struct party *party, const struct party_job *job, int code,
	struct measurement *m, struct error *err)
{
	return party->ranks ? party->calls->finish(party, job, code, m, err) : code;
}

/* A pipeline on all ranks, from beginning to end. */
static inline int party_run(struct party *party, const struct party_job *job,
	struct pipeline_control *control, struct measurement *m, struct error *err)
{
	int code = party_start(party, job, &control->ranks, err);
	if (!code)
		code = pipeline_run(job->config, job->dataset, control, m, err);
	else
		m->status = MEASUREMENT_FAILED;
	return party_finish(party, job, code, m, err);
}

/* Between that and the next job: what the others recorded in it; NULL where they did not. */
static inline const struct timeline_others *party_timelines(const struct party *party)
{
	return party->timelines.parts ? &party->timelines : NULL;
}

#endif
