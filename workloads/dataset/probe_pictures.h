/* Pictures for the decode probe: some of the configured data set, or generated ones. */
#ifndef MLBENCH_WORKLOADS_DATASET_PROBE_PICTURES_H
#define MLBENCH_WORKLOADS_DATASET_PROBE_PICTURES_H

#include "workloads/dataset/dataset.h"
#include "workloads/image/probe_decode.h"

/* Files spread evenly over the data set, at most `most` and some 64 MiB together; what cannot be read
 * is left out.  -ENODATA: none could be; -EINTR: stopped. */
int pictures_load(const struct dataset *dataset, size_t most, const struct probe_control *control,
	struct picture_set *set, struct error *err);

/* `count` pictures of config's recipe (or of its defaults where it has none), made in memory. */
int pictures_make(const struct config *config, size_t count, const struct probe_control *control,
	struct picture_set *set, struct error *err);

#endif
