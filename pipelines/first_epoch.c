/* The first epoch's account. */
#include "pipelines/first_epoch.h"

#include "harness/base/hash.h"

#include <errno.h>
#include <stdlib.h>

int first_epoch_open(struct first_epoch *first, uint64_t batches, const struct sample_ops *kind,
	const struct sample_sizes *sizes, bool verify)
{
	*first = (struct first_epoch){.batches = batches, .kind = kind, .sizes = *sizes};
	if (!verify)
		return 0;
	first->hashes = calloc(batches, sizeof *first->hashes);
	return first->hashes ? 0 : -ENOMEM;
}

void first_epoch_close(struct first_epoch *first)
{
	free(first->hashes);
	first->hashes = NULL;
}

void first_epoch_hash(struct first_epoch *first, const struct slot *slot)
{
	if (!first->hashes || slot->batch >= first->batches)
		return;
	const uint64_t samples =
		slot->notes ? first->kind->device->hash(slot->notes, slot->data, slot->size)
			    : hash_bytes(slot->data, slot->size * first->sizes.bytes, slot->size);
	first->hashes[slot->batch] =
		hash_bytes(slot->labels, slot->size * first->sizes.label_bytes, samples);
}

bool first_epoch_step(struct first_epoch *first, const struct slot *slot)
{
	if (slot->batch >= first->batches)
		return true;
	/* The last one to count must see the good samples of all. */
	(void)atomic_fetch_add(&first->good, slot->size - slot->bad);
	const uint64_t stepped = atomic_fetch_add(&first->stepped, 1) + 1;
	return stepped < first->batches || atomic_load(&first->good) > 0;
}

bool first_epoch_checksum(const struct first_epoch *first, uint64_t *out)
{
	if (!first->hashes || atomic_load(&first->stepped) < first->batches)
		return false;
	*out = hash_bytes(first->hashes, first->batches * sizeof *first->hashes, 0);
	return true;
}
