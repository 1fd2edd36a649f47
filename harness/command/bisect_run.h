/* One bisection: its questions run as pairs, its predictions, its documents. */
#ifndef MLBENCH_COMMAND_BISECT_RUN_H
#define MLBENCH_COMMAND_BISECT_RUN_H

#include "harness/command/bisect_sides.h"
#include "harness/command/paired.h"

#include <jansson.h>

enum { BISECT_PAIRS_MOST = 40, BISECT_TESTS_MAX = 1024 };
#define BISECT_FILE "bisect.json"
#define BISECT_SCHEMA "mlbench.bisect/1"

/* A question that was put: the path taken. */
struct bisect_test {
	enum delta_purpose purpose;
	struct delta_set mix, reference;
	enum delta_answer answer;
	struct paired_estimate estimate;
	char why[BISECT_NOTE_BYTES]; /* of an invalid mixture; "" */
};

struct bisect_run {
	const struct invocation *invocation;
	const char *folder;
	struct bisect_sides sides;
	struct paired *paired;
	size_t good_arm, bad_arm;
	double margin, budget_s;
	struct delta_result result;
	struct bisect_test *tests; /* (test_count); owned */
	size_t test_count;
	/* Of each difference, as shares of GOOD's throughput that it costs by the replay: in GOOD, and in BAD; NAN: no prediction. */
	double *predicted_added, *predicted_removed;
	double *suspicion;
	double predicted_loss;
	bool predictions_known;          /* of an earlier call */
	char why_not[BISECT_NOTE_BYTES]; /* there are no predictions at all; "" */
	char stuck[BISECT_NOTE_BYTES];   /* why a side cannot be measured; "" */
	bool unsaved;                    /* its file could not be written the last time */
	int code;                        /* what ended it beside the time; 0 */
	struct error trouble;
};

/* All that was found; after run->sides and run->paired are open.  0, also where the time was over. */
int bisect_run_all(struct bisect_run *run, struct error *err);
void bisect_run_release(struct bisect_run *run); /* safe on {0}; closes sides and paired */

/* mlbench.bisect/1.  done: false while it goes on. */
json_t *bisect_to_json(const struct bisect_run *run, bool done);

#endif
