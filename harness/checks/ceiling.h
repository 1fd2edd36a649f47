/* Inside the `ceiling` kind: what its subjects (cores, memory, timing, storage, devices) give to its rounds.  A subject lists
 * cells: one quantity at one place, measured in one slot.  A round visits every cell once, in an order of its own, so that
 * what disturbs the node for a while disturbs all places alike and none is always the first. */
#ifndef MLBENCH_CHECKS_CEILING_H
#define MLBENCH_CHECKS_CEILING_H

#include "harness/checks/check.h"
#include "harness/checks/other_work.h"
#include "harness/measure/node_probes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CEILING_PLACE_BYTES = 48,
	CEILING_ACTIVITY_BYTES = 96,
	CEILING_FIGURES_MAX = 12, /* of one cell */
	CEILING_CELLS_MAX = 16384,
	CEILING_PARTS = 3, /* of a visit to cores and memory */
};

struct ceiling;
struct ceiling_cell;

/* Measures once in a slot of ceiling->control, and hands over what it found by ceiling_value. */
typedef int ceiling_visit(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err);

struct ceiling_cell {
	const char *figures[CEILING_FIGURES_MAX]; /* that it gives values of; ends with NULL */
	char place[CEILING_PLACE_BYTES];
	char activity[CEILING_ACTIVITY_BYTES]; /* "decoding on core 3" */
	ceiling_visit *visit;
	void *state;           /* the subject's */
	unsigned index, other; /* the subject's own: a core, a node */
	uint64_t slot_ns;      /* as long as there is time for it */
	unsigned visits;       /* at most; 0: one in every round */
	/* A visit is so many short slots, of which the best is its value, as what a part gives at best is asked: what disturbs
	 * the node for some ms is then no noise, and what lasts shows in all of them.  0: one. */
	unsigned parts;
	bool warms;               /* its first visit is a short one that counts for nothing */
	struct other_work others; /* on its core, or on all */
	bool over;                /* given up, or visited often enough */
	unsigned visited;
};

struct ceiling {
	const struct check_context *context;
	struct probe_control control; /* of the slot that goes on */
	struct ceiling_cell *cells;
	size_t cell_count, cell_room;
	unsigned *cores; /* that this process may use, by the kernel's numbers */
	unsigned core_count;
	uint64_t slot_ns; /* of a core's slot in this tier */
	bool warming;     /* values count for nothing */
	/* The best of each figure of the visit that goes on, NAN: none yet. */
	double best[CEILING_FIGURES_MAX];
	const struct ceiling_cell *visited;
	struct other_work *idle; /* on each core while this process rests */
	int code;                /* the first failure that is no lack of the node's */
	struct error failure;
};

/* Part of the check: it lists cells for what is wanted.  A failure is about all its figures. */
struct ceiling_subject {
	const char *const *figures; /* NULL-terminated: it is opened where one of them is wanted */
	int (*open)(struct ceiling *ceiling, void **state, struct error *err);
	void (*close)(void *state); /* also after a failed open; NULL is fine */
};
extern const struct ceiling_subject ceiling_decode, ceiling_gemm, ceiling_memory, ceiling_timing,
	ceiling_storage, ceiling_devices;

/* Whether a figure is to be measured at a place (NULL: at any).  All places of a figure are where it is compared
 * between places: what they are held to has to be measured beside them. */
bool ceiling_wants(const struct ceiling *ceiling, const char *figure, const char *place);
/* Whether a criterion on it needs a peak. */
bool ceiling_needs_peak(const struct ceiling *ceiling, const char *figure);

/* Adds a copy of *cell where a figure of it is wanted at its place.  -ENOMEM, -E2BIG. */
int ceiling_add(struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err);

/* A value of a figure of the cell that is visited: handed over where it is wanted, a number, and no warm-up; of a cell
 * of several parts, the best when all are done. */
void ceiling_value(struct ceiling *ceiling, const char *figure, const char *place, double value);

/* Says of all of the figures that are wanted at a place (NULL: anywhere) why the node has no such thing; why it could not
 * be had though the node may have it. */
void ceiling_lack(
	struct ceiling *ceiling, const char *const *figures, const char *place, const char *why);
void ceiling_miss(
	struct ceiling *ceiling, const char *const *figures, const char *place, const char *why);

/* Whether a failure means that the node lacks what the measurement needs, and not that the measurement failed. */
bool ceiling_is_lack(int code);

/* Of the scratch file, by the plan and the tier. */
uint64_t ceiling_scratch_bytes(const struct check_context *context);

/* Pure, for tests.  FLOP per cycle of a core in single precision, by the texts of /proc/cpuinfo; 0: unknown, why says
 * what is not known. */
unsigned ceiling_flop_per_cycle(const char *cpuinfo, char *why, size_t room);
/* Whether a list as "0-3,8" of /sys has a number. */
bool ceiling_list_has(const char *list, unsigned number);

#endif
