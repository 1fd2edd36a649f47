/* What decoding and augmenting gives on this node: samples/s on one core, on all, and between. */
#ifndef MLBENCH_WORKLOADS_DATASET_PROBE_DECODE_H
#define MLBENCH_WORKLOADS_DATASET_PROBE_DECODE_H

#include "harness/config/config.h"
#include "harness/measure/node_probes.h"
#include "workloads/dataset/dataset.h"
#include "workloads/image/formats.h"

#include <stddef.h>
#include <stdint.h>

/* Encoded pictures in memory. */
struct picture_set {
	struct picture_bytes {
		uint8_t *bytes; /* owned */
		size_t size;
	} * pictures; /* (count), owned */
	size_t count;
	struct image_extents extents;
	char what
		[NOTE_BYTES]; /* "32 files of data/photos: jpeg, 500 x 375 pixels, 95.1 KiB (means)" */
};

void picture_set_release(struct picture_set *set); /* safe on {0} */

/* Files spread evenly over the data set, at most `most` and some 64 MiB together; what cannot be read
 * is left out.  -ENODATA: none could be; -EINTR: stopped. */
int pictures_load(const struct dataset *dataset, size_t most, const struct probe_control *control,
	struct picture_set *set, struct error *err);

/* `count` pictures of config's recipe (or of its defaults where it has none), made in memory. */
int pictures_make(const struct config *config, size_t count, const struct probe_control *control,
	struct picture_set *set, struct error *err);

/* Decodes and augments the pictures as config says, over and over, on 1, 2, 4 ... and all cores; fills
 * decode, decode_one_core, decode_all_cores, decode_what and cpu_scaling.  cores: 0 as many as the
 * process may use. */
int probe_decode(const struct config *config, const struct picture_set *set, unsigned cores,
	const struct probe_control *control, struct ceilings *out, struct error *err);

#endif
