/* Within harness/command: a question to a saved result, and its answers. */
#ifndef MLBENCH_COMMAND_WHAT_IF_H
#define MLBENCH_COMMAND_WHAT_IF_H

#include "harness/analyze/scale_out.h"
#include "harness/analyze/summary.h"
#include "harness/command/command.h"
#include "harness/command/forecaster.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	WHAT_IF_POINTS_MAX = 1000,
	WHAT_IF_SECONDS_MAX = 10, /* of computing, on one core */
	WHAT_IF_SOURCES_MAX = 12, /* measured points that are calibrated from, the nearest */
	WHAT_IF_NOTES_MAX = 8,
	FLEET_NOTES_MAX = 16,
};

/* One setting that was asked for. */
struct alternative {
	size_t item; /* of the forecaster; forecast.from are items, too */
	struct forecast forecast;
	char stage[NAME_BYTES], resource[NAME_BYTES]; /* what binds then; "": not known */
	char notes[WHAT_IF_NOTES_MAX][NOTE_BYTES];    /* what it extrapolates */
	size_t note_count;
	bool done;
};

/* With the batch of all nodes together kept as it is for the fewest nodes. */
struct fleet_strong {
	double batch; /* of each device; 0: less than one sample */
	double samples_per_s,
		efficiency; /* over the throughput of a node among the fewest; NAN: not known */
};

struct fleet_answer {
	struct fleet fleet;
	struct fleet_spread spread;
	unsigned counts[FLEET_COUNTS_MAX]; /* ascending */
	struct fleet_point points[FLEET_COUNTS_MAX];
	struct interval intervals[FLEET_COUNTS_MAX]; /* 90 %, samples/s */
	struct fleet_round rounds[FLEET_COUNTS_MAX];
	struct fleet_strong strong[FLEET_COUNTS_MAX];
	size_t count;
	struct interval node;           /* 90 %, samples/s: of a node alone */
	struct fleet_measured measured; /* ranks 0: the result is of one process */
	double *own_seconds, *factors;  /* its; owned */
	double unmended; /* samples/s that were predicted of them before they mended the model */
	double together; /* fleet_replay_mend's */
	unsigned storage_binds, network_binds, slowest_binds; /* nodes; 0: never */
	char notes[FLEET_NOTES_MAX][NOTE_BYTES];
	size_t note_count;
};

struct what_if {
	const struct invocation *invocation;
	struct record record;
	struct config asked; /* the base point's settings, and an axis for each key that was set */
	struct config_grid grid;
	size_t base;          /* point of the record that changes are made to */
	size_t base_item;     /* of the forecaster */
	double *base_repeats; /* samples/s of each repetition, ascending; owned */
	size_t base_repeat_count;
	double base_measured;
	/* Of the points that are calibrated from: how many were measured beside others' load, and how the first
	 * of them, or the base, was. */
	size_t contaminated;
	char contamination[FOREIGN_LOAD_BYTES];
	bool one_source; /* --point: nothing but that point is calibrated from */

	struct forecaster forecaster; /* measured points, then alternatives */
	size_t *points;               /* of the record, by item; owned */
	size_t point_count;
	size_t sources[WHAT_IF_SOURCES_MAX]; /* items that are calibrated */
	size_t source_count;
	struct forecast_errors errors;
	struct alternative *alternatives; /* (grid.points), owned */
	size_t done;
	struct fleet_answer *fleet; /* NULL: not asked; owned */
};

/* The question: everything that can be refused is refused here.  Then the answer. */
int what_if_ask(struct what_if *what_if, struct error *err);
int what_if_answer(struct what_if *what_if, struct error *err);
/* Refuses options of --fleet that make no sense. */
int what_if_fleet_check(const struct what_if *what_if, struct error *err);
/* Of --fleet, after the answer. */
int what_if_fleet(struct what_if *what_if, struct error *err);
void what_if_fleet_close(struct fleet_answer *answer); /* NULL: nothing */

/* The measured point that an alternative is the same as: an item; point_count: none. */
size_t what_if_measured_item(const struct what_if *what_if, const struct alternative *alternative);

#endif
