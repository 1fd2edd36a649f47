/* The first epoch's account. */
#include "pipelines/first_epoch.h"

#include "harness/base/hash.h"

#include <errno.h>
#include <stdlib.h>

int first_epoch_open(struct first_epoch *first, uint64_t batches, size_t sample_bytes, bool verify)
{
	*first = (struct first_epoch){.batches = batches, .sample_bytes = sample_bytes};
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

/* Of what was decoded, wherever it lies in the slot. */
static uint64_t hash_pictures(const struct slot *slot)
{
	uint64_t hash = slot->size;
	for (uint32_t i = 0; i < slot->size; i++) {
		struct batch_picture picture = slot->pictures[i];
		const uint8_t *const pixels = slot->data + picture.offset;
		picture.offset = 0;
		hash = hash_bytes(&picture, sizeof picture, hash);
		if (!picture.bad)
			hash = hash_bytes(pixels, 3ULL * picture.width * picture.height, hash);
	}
	return hash;
}

void first_epoch_hash(struct first_epoch *first, const struct slot *slot)
{
	if (!first->hashes || slot->batch >= first->batches)
		return;
	const uint64_t pixels =
		slot->pictures
			? hash_pictures(slot)
			: hash_bytes(slot->data, slot->size * first->sample_bytes, slot->size);
	first->hashes[slot->batch] =
		hash_bytes(slot->labels, slot->size * sizeof *slot->labels, pixels);
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
