/* A cause in a student's words: STAGE/RESOURCE as verdicts have them (harness/analyze/verdict.h), or what people call these. */
#ifndef MLBENCH_LAB_CAUSE_WORDS_H
#define MLBENCH_LAB_CAUSE_WORDS_H

#include "harness/base/error.h"

#include <stdbool.h>

enum { CAUSE_BYTES = 64 };

/* "a/b | c/d" of a lab's file.  -EINVAL: a pair that no verdict can give. */
int cause_check(const char *choices, struct error *err);

struct cause_right {
	bool stage, resource; /* resource: of the right stage, or of one of the choices at all */
};
/* named: "storage/rtt".  -EINVAL: no STAGE/RESOURCE, or words that mean nothing here, with the nearest. */
int cause_judge(
	const char *choices, const char *named, struct cause_right *right, struct error *err);

/* One word of a prediction.  -EINVAL: it means nothing here. */
int cause_word_judge(
	const char *choices, bool stage, const char *word, bool *right, struct error *err);
/* What it is called in verdicts; NULL: it means nothing. */
const char *cause_word(bool stage, const char *word);
/* Of the first of the choices: a stage, or a resource. */
void cause_first(const char *choices, bool stage, char out[CAUSE_BYTES]);

#endif
