/* What decoding and augmenting gives on this node: samples/s on one core, on all, and between.  A sample is
 * made as its kind's table says (workloads/sample/sample.h), as the workers of a run do. */
#ifndef MLBENCH_WORKLOADS_DATASET_PROBE_DECODE_H
#define MLBENCH_WORKLOADS_DATASET_PROBE_DECODE_H

#include "harness/config/config.h"
#include "harness/measure/node_probes.h"
#include "workloads/dataset/dataset.h"

#include <stddef.h>
#include <stdint.h>

struct arena;

/* Encoded samples in memory. */
struct probe_samples {
	struct dataset
		set; /* its samples are of its own; what else it names is the data set's, or the arena's */
	uint64_t *offsets;
	uint8_t **bytes; /* (set.count) */
	struct arena *arena;
	char what
		[NOTE_BYTES]; /* "32 samples of data/photos: jpeg, 500 x 375 pixels, 95.1 KiB (means)" */
};

void probe_samples_release(struct probe_samples *samples); /* safe on {0}, and after a failure */

/* Samples spread evenly over the data set, which stays: at most `most`, and some 64 MiB together; what
 * cannot be read is left out.  -ENODATA: none could be; -EINTR: stopped. */
int probe_samples_load(const struct config *config, const struct dataset *dataset, size_t most,
	const struct probe_control *control, struct probe_samples *out, struct error *err);

/* Samples of `count` files of config's recipe (of photographs where it has none), made in memory.
 * -EINVAL: the kind has no such files; -ENODATA: only real files tell where its samples lie. */
int probe_samples_make(const struct config *config, size_t count,
	const struct probe_control *control, struct probe_samples *out, struct error *err);

/* Workers that make the samples as config says, over and over; config, samples and control stay. */
struct probe_decoding;
int probe_decoding_open(struct probe_decoding **out, const struct config *config,
	const struct probe_samples *samples, unsigned workers, const struct probe_control *control,
	struct error *err);
void probe_decoding_close(struct probe_decoding *decoding); /* NULL is fine */
/* One slot of workers first .. first + threads - 1 at once, each on the core that cores (threads) names, or where the
 * kernel puts them (NULL).  NAN: stopped.  A worker's buffers are near the core where it worked first. */
int probe_decoding_slot(struct probe_decoding *decoding, const unsigned *cores, unsigned first,
	unsigned threads, double *samples_per_s, struct error *err);

/* Makes the samples as config says, over and over, on 1, 2, 4 ... and all cores; fills decode,
 * decode_one_core, decode_all_cores, decode_what and cpu_scaling.  cores: 0 as many as the process may
 * use. */
int probe_decode(const struct config *config, const struct probe_samples *samples, unsigned cores,
	const struct probe_control *control, struct ceilings *out, struct error *err);

#endif
