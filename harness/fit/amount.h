/* Numbers of findings as a case has them: written with six digits and a unit that people use, and read back the same, so that a
 * case that was read is written as the same bytes. */
#ifndef MLBENCH_FIT_AMOUNT_H
#define MLBENCH_FIT_AMOUNT_H

#include "harness/base/error.h"
#include "harness/fit/finding.h"

enum amount_unit {
	AMOUNT_COUNT,
	AMOUNT_PER_S,
	AMOUNT_NS,
	AMOUNT_SHARE,
	AMOUNT_BYTES,
	AMOUNT_BYTES_PER_S
};

enum { AMOUNT_BYTES_OUT = 64 };

/* "600 samples/s", "4.125 ms", "95 %", "12.5 MiB/s", "2"; "none" for INFINITY.  Returns out. */
const char *amount_format(enum amount_unit unit, double value, char out[AMOUNT_BYTES_OUT]);

/* The same in three digits, but for whole ones: what people read, and nobody reads back. */
const char *amount_words(enum amount_unit unit, double value, char out[AMOUNT_BYTES_OUT]);
const char *amount_words_range(
	enum amount_unit unit, double value, double low, double high, char out[AMOUNT_BYTES_OUT]);

/* Reads one from the beginning of text, where a unit may be missing if `scale` (may be NULL) is not 0: then the number is in that
 * unit; sets it to the unit's.  *rest is what follows.  -EINVAL with what is wrong. */
int amount_parse(enum amount_unit unit, const char *text, double *scale, double *value,
	const char **rest, struct error *err);

enum amount_unit finding_unit(enum finding_id id);
const char *finding_key(enum finding_id id); /* the configuration's key that it fills, "" */

/* The whole of a line of [observed]: "600 samples/s (580 to 620), measured by trace", "2, assumed by user: why".  Appends. */
struct buffer;
void finding_print(enum finding_id id, const struct finding *finding, struct buffer *out);
/* -EINVAL: nothing but the growth of memory is below zero. */
int finding_check_value(enum finding_id id, double value, struct error *err);
/* Reads it back; *why points into text, or is NULL. */
int finding_parse(enum finding_id id, const char *text, struct finding *out, const char **why,
	struct error *err);

#endif
