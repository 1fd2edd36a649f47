/* Variants of a configuration in which one suspected cost is taken away, so that an experiment shows
 * whether it limits: each stage replaced by one that takes no time (limits.h), and more workers, which
 * relieve no stage but are what an owner would try first. */
#ifndef MLBENCH_COMMAND_RELIEF_H
#define MLBENCH_COMMAND_RELIEF_H

#include "harness/config/config.h"
#include "harness/record/measurement.h"
#include "workloads/dataset/dataset.h"

#include <stdbool.h>
#include <stddef.h>

enum { RELIEFS_MAX = 10, RELIEF_TEXT_BYTES = 96, RELIEF_WHY_BYTES = 200 };

struct relief {
	char label[RELIEF_TEXT_BYTES]; /* of its results' folder: "without-read" */
	char stage[NAME_BYTES];        /* "": none */
	char what[RELIEF_TEXT_BYTES];  /* "read: files from memory" */
	char why[RELIEF_WHY_BYTES];    /* why it cannot be; "": it can */
	struct config config;          /* owned */
};

/* Of every stage that the pipeline has; prefetch: of the prefetch depth, too.  *count of at most
 * RELIEFS_MAX; on failure there are those before it to close. */
int relief_list(const struct config *twin, const struct dataset *dataset, bool prefetch,
	struct relief reliefs[RELIEFS_MAX], size_t *count, struct error *err);
void relief_close(struct relief *reliefs, size_t count);

#endif
