/* The page of a class: who is where in the labs, which lab is hard, how predictions became better.  Made of the
 * document of `mlbench lab scores --json` (mlbench.lab_scores/1) alone. */
#ifndef MLBENCH_REPORT_CLASS_PAGE_H
#define MLBENCH_REPORT_CLASS_PAGE_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"

#include <jansson.h>

/* The whole page into *out; names of students are somebody's text and are escaped.  0, or -ENOMEM with err filled. */
int class_page(const json_t *document, struct buffer *out, struct error *err);

#endif
