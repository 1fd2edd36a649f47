/* The kind bytes: any file as it is.  Nothing is decoded; of each file, all of whose bytes are read, its
 * checksum becomes the sample, (8) uint8, so that run.verify proves what was read; and the class of its
 * file.  With codec.name = null not even that is computed. */
#include "harness/base/hash.h"
#include "workloads/sample/sample.h"

#include <string.h>

static void sample_bytes_shape(const struct config *config, struct sample_shape *out)
{
	(void)config;
	*out = (struct sample_shape){
		.type = BATCH_UINT8, .dimensions = 1, .of = {sizeof(uint64_t)}};
}

static size_t sample_bytes_labels(const struct config *config)
{
	(void)config;
	return sizeof(uint32_t);
}

static int sample_bytes_make(void *worker, const struct sample_task *task, struct error *err)
{
	(void)worker;
	(void)err;
	const uint64_t sum = hash_bytes(task->bytes, task->size, 0);
	sample_put_class(task);
	memcpy(task->out, &sum, sizeof sum);
	return 0;
}

const struct sample_ops sample_bytes = {
	.name = "bytes",
	.summary = "any file as it is, to measure reading alone: its checksum; its class",
	.shape = sample_bytes_shape,
	.label_bytes = sample_bytes_labels,
	.make = sample_bytes_make,
};
