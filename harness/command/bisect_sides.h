/* The two sides of a bisection, and in what they differ: configurations, cases or saved results, their nodes where these can be
 * emulated, in units that can be changed one by one. */
#ifndef MLBENCH_COMMAND_BISECT_SIDES_H
#define MLBENCH_COMMAND_BISECT_SIDES_H

#include "harness/analyze/delta_debug.h"
#include "harness/base/buffer.h"
#include "harness/command/command.h"
#include "harness/command/node_emulation.h"

enum { BISECT_NAME_BYTES = 64, BISECT_NOTES_MAX = 16, BISECT_NOTE_BYTES = 200 };

struct bisect_side {
	const char *name; /* as it was given */
	const char *kind; /* "configuration", "case", "result" */
	struct config config;
	struct node_limits node; /* of --env: to be emulated; 0: this node as it is */
};

/* What changes as one: a key, keys that only make sense together, or a limit of the node. */
struct bisect_item {
	char name
		[BISECT_NAME_BYTES]; /* of the key, "dataset", "node.cores", "node.cpu_quota", "node.memory" */
	enum key_id keys[KEY_COUNT]; /* (key_count); none: of the node */
	size_t key_count;
	bool cores, quota, memory;
};

struct bisect_sides {
	struct bisect_side good, bad;
	struct bisect_item *items; /* (count), in the order of keys.def; owned */
	size_t count;
	/* What differs and is not looked at, and why; what was changed so that it can be. */
	char notes[BISECT_NOTES_MAX][BISECT_NOTE_BYTES];
	size_t note_count;
};

/* Reads both and lists their differences.  folder: where data sets go that both sides want at the same place.  -EINVAL: they
 * cannot be compared; no difference at all is none of that (count 0). */
int bisect_sides_open(struct bisect_sides *sides, const struct invocation *invocation,
	const char *folder, struct error *err);
void bisect_sides_close(struct bisect_sides *sides); /* safe on {0} */

/* GOOD with the bad values of a set.  out is written over; -EINVAL: the keys contradict each other. */
int bisect_mix(const struct bisect_sides *sides, const struct delta_set *set, struct config *out,
	struct node_limits *node, struct error *err);

/* A value of an item on one side, for people: "4", "2 keys", "all of this node"; cut to fit. */
const char *bisect_value(const struct bisect_sides *sides, const struct bisect_item *item, bool bad,
	char *out, size_t room);

#endif
