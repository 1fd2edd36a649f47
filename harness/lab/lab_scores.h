/* A class: the folders of many students in one document, mlbench.lab_scores/1 (docs/workshop/LABS.md). */
#ifndef MLBENCH_LAB_LAB_SCORES_H
#define MLBENCH_LAB_LAB_SCORES_H

#include "harness/base/error.h"

#include <jansson.h>
#include <stddef.h>

#define LAB_SCORES_SCHEMA "mlbench.lab_scores/1"
#define LAB_UNVERIFIED \
	"unverified" /* the state of a lab that is not what the program wrote last, or cannot be checked */

/* Each folder is a student's (it holds student.json), or holds such folders.  What cannot be read is left out, and stands in
 * "skipped" with the reason.  key: a teacher's secret key, for folders of other accounts; NULL: none.  -ENOENT: there is not one
 * student in all of them. */
int lab_scores(const char *const *folders, size_t count, const char *key, json_t **document,
	struct error *err);

#endif
