/* Where batches arrive in the device's memory, and the copies to there.  A place is a batch's data and its labels (and the
 * descriptors of its pictures); copies run on a stream of their own, beside the steps.  The order of everything that touches a
 * place is kept on the device: a copy waits for the step that used the place last, a step for the copy. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_STAGING_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_STAGING_H

#include "harness/base/error.h"
#include "workloads/backend/cuda/device_clock.h"
#include "workloads/backend/cuda/plugin.h"

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

struct staging_place {
	void *data;                  /* on the device: what the host's batch holds */
	uint8_t *words;              /* on the device: labels, then descriptors of pictures */
	uint8_t *host_words;         /* the same, pinned: copied from there in one piece */
	cudaEvent_t begin, end;      /* of the copy */
	cudaEvent_t used;            /* after the step that took it */
	uint64_t stamp, expected_ns; /* of the copy that is under way */
	uint64_t batch;              /* that it holds; UINT64_MAX: none yet */
	size_t bytes;                /* of it */
	uint32_t size;               /* samples of it */
};

struct staging {
	const struct cuda_options *options;
	struct device_clock *clock;
	cudaStream_t stream;
	struct staging_place *places; /* (count); owned */
	unsigned count; /* at least one: where there is no upload, launches copy to them in turn */
	size_t pictures_at; /* in words */
	uint64_t last_ns;   /* time that the copy finished last took; 0: none yet */
	size_t last_bytes;
};

/* options and clock live as long as it. */
int staging_open(struct staging *staging, const struct cuda_options *options,
	struct device_clock *clock, struct error *err);
void staging_close(struct staging *staging); /* safe on {0}; nothing runs on the device any more */

unsigned staging_count(const struct cuda_options *options);
uint64_t staging_bytes(const struct cuda_options *options); /* of device memory that open takes */
size_t staging_sample_bytes(const struct cuda_options *options); /* of a finished sample */

/* -EINVAL: this session cannot take the batch (size, type, bytes, a picture outside of them). */
int staging_check(const struct staging *staging, const struct batch_view *batch, struct error *err);

/* Enqueues the copy of a checked batch to a place. */
int staging_copy(struct staging *staging, struct staging_place *place,
	const struct batch_view *batch, cudaStream_t stream, struct error *err);

static inline const uint32_t *staging_labels(const struct staging_place *place)
{
	return (const uint32_t *)(const void *)place->words;
}
static inline const struct batch_picture *staging_pictures(
	const struct staging *staging, const struct staging_place *place)
{
	return (const struct batch_picture *)(const void *)(place->words + staging->pictures_at);
}

/* The uploader's: plugin.h. */
int staging_upload(
	struct staging *staging, unsigned place, const struct batch_view *batch, struct error *err);
int staging_upload_finish(
	struct staging *staging, unsigned place, struct upload_result *out, struct error *err);
bool staging_upload_finished(struct staging *staging, unsigned place);

/* Host memory that devices copy from directly.  Several sessions share the pipeline's pools, and memory can be registered once in
 * a process: the first to ask registers, the last to leave gives it up. */
struct pin; /* one session's hold on one piece of memory */

/* Any thread.  *list: what a session holds; the new one is put in front.  A refusal (a limit on locked memory, memory that
 * cannot be pinned) changes nothing: copies from there work all the same, only slower. */
int pins_add(struct pin **list, void *memory, size_t bytes, struct error *err);
/* Ends all of the list's holds. */
void pins_release(struct pin **list);

#endif
