/* Buffers that only grow. */
#include "harness/base/log.h"
#include "harness/base/memory.h"
#include "workloads/image/decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SCRATCH_ALIGN_BYTES = 64 };

int scratch_reserve(struct scratch *scratch, size_t size, struct error *err)
{
	const size_t needed = (size + SCRATCH_SLACK_BYTES + SCRATCH_ALIGN_BYTES - 1) /
			      SCRATCH_ALIGN_BYTES * SCRATCH_ALIGN_BYTES;
	if (needed <= scratch->size)
		return 0;
	uint8_t *const data = aligned_alloc(SCRATCH_ALIGN_BYTES, needed);
	if (!data)
		return error_set(err, -ENOMEM, "no memory for %zu bytes of pixels", needed);
	memset(data, 0, needed); /* touched now, so that page faults stay out of what is measured */
	if (scratch->data)
		log_detail("a picture larger than expected: scratch grows from %zu to %zu bytes",
			scratch->size, needed);
	memory_account_add((int64_t)(needed - scratch->size));
	free(scratch->data);
	*scratch = (struct scratch){.data = data, .size = needed};
	return 0;
}

void scratch_release(struct scratch *scratch)
{
	free(scratch->data);
	*scratch = (struct scratch){0};
}
