/* From files that were looked at to the kinds of files that a data set consists of. */
#ifndef MLBENCH_FIT_STRATA_H
#define MLBENCH_FIT_STRATA_H

#include "harness/base/error.h"
#include "harness/config/like.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One picture, by its header. */
struct strata_file {
	double weight;               /* files of the data set that it stands for */
	const char *format, *layout; /* as in like.h; static; layout "": none */
	uint32_t width, height;
	uint64_t bytes;
	uint32_t front; /* of them, in front of the picture */
	uint8_t quality;
	bool progressive;
};

/* Finds at most LIKE_STRATA_MAX strata, the most frequent first, and sorts files on the way.
 *
 * Files of other formats, layouts or numbers of scans are never put together, and a size of picture that one file in twenty has
 * is a stratum of its own.  The rest is divided while that tells more: where shapes of pictures differ, where sizes or bytes
 * have two or more heaps, and where large pictures have more or fewer bytes a pixel than small ones.  Within a stratum, mean
 * bytes and mean pixels are those of its files.  -ENOMEM. */
int strata_find(struct strata_file *files, size_t count, struct like_stratum out[LIKE_STRATA_MAX],
	size_t *strata, struct error *err);

#endif
