/* The figures that a plan of `mlbench accept` may ask about: one table, figures.def, drives criteria, help keys, units
 * in files and in sentences, and what to do about a value that is wrong. */
#ifndef MLBENCH_ACCEPT_FIGURES_H
#define MLBENCH_ACCEPT_FIGURES_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* What a check is; check_list (harness/checks/check.h) has them in this order. */
enum accept_kind {
	ACCEPT_EXPECT,
	ACCEPT_CEILING,
	ACCEPT_PIPELINE,
	ACCEPT_BURN,
	ACCEPT_REPEATABLE,
	ACCEPT_NETWORK,
	ACCEPT_KINDS
};
#define ACCEPT_KIND_NAMES "expect|ceiling|pipeline|burn|repeatable|network"
const char *accept_kind_name(enum accept_kind kind); /* "expect" */

/* In saved files values are in these: base units, never scaled. */
enum figure_unit {
	FIGURE_TEXT,     /* no number: compared as text */
	FIGURE_COUNT,    /* plain number */
	FIGURE_PER_S,    /* samples/s */
	FIGURE_REQUESTS, /* requests/s */
	FIGURE_BYTES,
	FIGURE_BYTES_PER_S,
	FIGURE_FLOPS, /* per second */
	FIGURE_NS,
	FIGURE_SHARE, /* 0..1 */
	FIGURE_MHZ,
	FIGURE_CELSIUS,
	FIGURE_WATTS,
};
const char *figure_unit_name(
	enum figure_unit unit); /* "samples/s", as criteria write it; "" of text and counts */
/* "1,786 samples/s", "1.20 GiB/s", "41.2 GFLOP/s", "97.1%". Returns out. */
enum { FIGURE_VALUE_BYTES = 64 };
const char *figure_value_text(enum figure_unit unit, double value, char out[FIGURE_VALUE_BYTES]);
/* Whether that can have been measured, in whatever unit: the fastest machine and the largest store are far below. */
#define FIGURE_VALUE_MAX 1e24
static inline bool figure_value_is_possible(double value)
{
	return value >= -FIGURE_VALUE_MAX && value <= FIGURE_VALUE_MAX;
}

/* A number with its unit as a person writes it: "2,000 samples/s", "1.5 GiB/s", "30 GFLOP/s", "5 ms", "90 %", "85 C".
 * -EINVAL with what is wrong; a unit of another kind is named. */
int figure_value_parse(enum figure_unit unit, const char *text, double *value, struct error *err);

enum figure_sense { FIGURE_MORE_IS_BETTER, FIGURE_LESS_IS_BETTER, FIGURE_NEITHER };

/* What to do about a finding, in the order of effort; the worst finding's class is the node's. */
enum accept_action {
	ACTION_NONE,      /* of a figure: it says whether the node can be judged at all */
	ACTION_CONFIGURE, /* change a setting of the system */
	ACTION_MONITOR,   /* use it, and look again */
	ACTION_RESET,     /* reset the device or reboot, and test again */
	ACTION_ISOLATE,   /* take it out of service until it is understood */
	ACTION_RETURN,    /* hand it back to the vendor */
};
const char *accept_action_name(enum accept_action action); /* "return to vendor" */
enum accept_action accept_action_of(const char *name);     /* ACTION_NONE of anything else */

struct figure {
	enum accept_kind kind;
	const char *name; /* "decode.core" */
	enum figure_unit unit;
	enum figure_sense sense;
	const char *
		place; /* what it is measured on one by one: "core", "NUMA node", "device"; "": the node */
	enum accept_action action;
	const char *doc;    /* one sentence: what it is */
	const char *remedy; /* what to do where it is wrong, or to tell the vendor */
};

/* The texts that it can be, "on|off"; NULL: any text, or it is a number. */
const char *figure_texts(const struct figure *figure);

/* Of that kind by its name; pipeline checks also know every metric of `compare` (comparison.h).  NULL: there is none. */
const struct figure *figure_find(enum accept_kind kind, const char *name);
/* -EINVAL: "unknown figure 'x' of a ceiling check; did you mean 'y'?" */
int figure_refuse(enum accept_kind kind, const char *name, struct error *err);

/* All of figures.def, NULL-name terminated, for help. */
extern const struct figure figure_list[];

#endif
