/* A run from plan to report: what `run`, `sweep` and `diagnose` share. */
#ifndef MLBENCH_COMMAND_SESSION_H
#define MLBENCH_COMMAND_SESSION_H

#include "harness/command/command.h"
#include "harness/command/limits.h"
#include "harness/command/live_show.h"
#include "harness/command/party.h"
#include "harness/command/run_plan.h"
#include "harness/measure/flame.h"
#include "harness/report/report.h"

/* What a run leaves, while it is still open. */
struct session_result {
	const struct record *record; /* finished and saved */
	const struct report *report;
	int status; /* the run's own: of a point that failed, an interruption, ... */
};

/* What follows the measuring in place of printing the report; returns an exit status. */
typedef int session_sequel(void *context, const struct session_result *result, struct error *err);

struct session {
	const struct invocation *invocation;
	session_sequel *sequel; /* NULL: print the report */
	void *context;          /* its */
	struct plan plan;
	struct record record;
	struct limit_list limits;
	struct schedule_item *items; /* still to be measured; of a sequential sweep, all */
	size_t item_count;
	struct progress progress;
	uint64_t begun_ns; /* to measure */
	uint64_t ended_ns; /* the last pipeline; 0: there was none */
	struct live_show *live;
	struct pipeline_pools pools;
	struct party *party;   /* of ranks; {0}: this process is alone; never NULL */
	struct record *judged; /* of the rank that experiments are about; NULL: this one */
	struct flame *flame;   /* NULL: no --flame */
	struct flame_profile flame_profile;
	bool flame_finished;
	bool sequential, complete; /* complete: a sequential sweep ended by itself */
	struct error trouble;      /* why results cannot be saved */
	int trouble_code;          /* 0: they can */
	bool traces_lost, timeline_lost, told_interrupted; /* each said once */
	bool data_failed; /* a repetition had too few good samples */
	char *page;       /* report.html, once it is written; owned */
};

/* By the user, or because results cannot be saved. */
bool session_stopped(const struct session *session);

/* A pipeline that is no repetition: nothing of it is saved. The caller releases m in any case. */
int session_run_alone(struct session *session, const struct config *config,
	const struct dataset *dataset, const char *label, struct measurement *m, struct error *err);

/* One repetition, saved as it ends. */
void session_measure_item(struct session *session, const struct schedule_item *item);

/* one_point: refuses a configuration that sweeps.  sequel: NULL, or what follows one point that was
 * measured on until there can be a verdict.  Returns an exit status. */
int session_run(const struct invocation *invocation, bool one_point, session_sequel *sequel,
	void *context, struct error *err);

#endif
