/* Sums that the files of labs hold: numbers with units, + - * /, brackets, min(a,b), max(a,b), and names whose values the
 * caller knows ("cores", "inject.read_latency").  Durations are seconds, sizes bytes, rates bytes per second, shares 0..1. */
#ifndef MLBENCH_LAB_EXPRESSION_H
#define MLBENCH_LAB_EXPRESSION_H

#include "harness/base/error.h"

#include <stddef.h>

enum { EXPRESSION_NAME_BYTES = 64, EXPRESSION_NAMES_MAX = 32 };

/* Names and their values; NAN: a value that is not known yet, which is refused where it is used. */
struct expression_scope {
	struct {
		char name[EXPRESSION_NAME_BYTES];
		double value;
	} of[EXPRESSION_NAMES_MAX];
	size_t count;
};

/* Adds a name, or gives it another value.  -E2BIG: there are too many. */
int expression_define(struct expression_scope *scope, const char *name, double value);

/* -EINVAL: text is no expression, or names what scope has not; err quotes it. */
int expression_evaluate(
	const char *text, const struct expression_scope *scope, double *value, struct error *err);

#endif
