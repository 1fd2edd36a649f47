/* What a student's seed makes of a lab's file: the variant, the planted values, and settings with their expressions computed.
 * Pure functions of the file, the calibration and the seed. */
#ifndef MLBENCH_LAB_LAB_DRAW_H
#define MLBENCH_LAB_LAB_DRAW_H

#include "harness/base/buffer.h"
#include "harness/config/config.h"
#include "harness/lab/expression.h"
#include "harness/lab/lab_file.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAB_SETTING_MAX = 24 };

/* What was measured of this laptop. */
struct lab_laptop {
	double cores;    /* that this process may use, at least 1 */
	double decode_s; /* one sample of this lab on one core; NAN: not measured */
	double sleep_s;  /* how much later than asked a sleep of 1 ms ends, p90 */
};

/* Keys with values that config_set takes. */
struct lab_setting {
	struct lab_pair of[LAB_SETTING_MAX];
	size_t count;
};

struct lab_drawn {
	size_t variant;
	struct lab_setting scales, plants;
	struct expression_scope scope; /* the laptop's figures, and both of these */
};

/* Whether an expression of the lab needs struct lab_laptop.decode_s. */
bool lab_needs_decode(const struct lab *lab);

int lab_draw(const struct lab *lab, const struct lab_laptop *laptop, uint64_t seed,
	struct lab_drawn *drawn, struct error *err);

/* {"variant": "", "scales": {KEY: VALUE}, "plants": {...}, "cores": 4, ...}, and back.  -EINVAL: it is none of this lab. */
json_t *lab_drawn_to_json(const struct lab *lab, const struct lab_drawn *drawn);
int lab_drawn_from_json(
	const struct lab *lab, const json_t *json, struct lab_drawn *drawn, struct error *err);

json_t *lab_setting_to_json(const struct lab_setting *setting);
/* "read.depth=8 decode.workers=2"; "as it stands" of an empty one. */
void lab_setting_words(const json_t *setting, struct buffer *out);

/* Settings of the file: a line's pairs, or all lines `best`. */
int lab_setting_of_line(const struct lab_drawn *drawn, const struct lab_line *line,
	struct lab_setting *setting, struct error *err);
int lab_setting_best(const struct lab *lab, const struct lab_drawn *drawn,
	struct lab_setting *setting, struct error *err);
/* Adds a student's "KEY=VALUE": a knob, within its bounds.  -EINVAL: it is not. */
int lab_setting_take(const struct lab *lab, const struct lab_drawn *drawn, const char *word,
	struct lab_setting *setting, struct error *err);
/* In one order, without what the file says anyway: equal settings are equal texts. */
int lab_setting_normalise(const struct lab *lab, const struct lab_drawn *drawn,
	struct lab_setting *setting, struct error *err);

/* A configuration to measure, and what is planted beside keys. */
struct lab_run {
	struct config config; /* owned */
	unsigned node_cores;  /* 0: all */
};
/* planted: with the plants; without them it is what results may show. */
int lab_configure(const struct lab *lab, const struct lab_drawn *drawn,
	const struct lab_setting *setting, bool planted, struct lab_run *run, struct error *err);

/* Storage forms that are knobs (config_is_storage) become folders of their own below dataset.path, as in a sweep: config is then one
 * point of it. */
int lab_settle_storage(const struct lab *lab, struct config *config, struct error *err);

/* The bounds of a knob in words: "1..8", "shuffle | sequential". */
void lab_knob_words(const struct lab_drawn *drawn, const struct lab_pair *knob, struct buffer *out);

/* text with {NAME} of planted values in their units, and {EXPRESSION} of the scope as a number: for explanations. */
void lab_fill_in(const struct lab_drawn *drawn, const char *text, struct buffer *out);

#endif
