/* Parts that the program does without where their library was missing when it was built.  Whoever asks for one is told which
 * library that is; `mlbench list parts` lists them all. */
#ifndef MLBENCH_BASE_PARTS_H
#define MLBENCH_BASE_PARTS_H

#include "harness/base/error.h"

enum part {
	PART_LIVE_VIEW,
	PART_METRICS_SERVER,
	PART_FLAME,
	PART_TENSORBOARD,
	PARTS,
};

const char *part_name(enum part part);
const char *part_summary(enum part part);
/* Why this program does not have it, with Debian's name of the library's package; NULL: it has it. */
const char *part_missing(enum part part);
/* -ENOTSUP with that reason; 0: the program has it. */
int part_require(enum part part, struct error *err);

#endif
