/* The list of bad samples, and the first epoch's account. */
#include "pipelines/sample_account.h"

#include "harness/base/clock.h"
#include "harness/base/hash.h"
#include "harness/base/units.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- bad samples ------------------------------------------------------------------------------ */

/* Shares beyond which a rate is that of failing: storage either works or it does not, while a folder may
 * well have many files that are no good. */
static const double UNREAD_MOST = 0.1;
static const double BAD_MOST = 0.5;

int bad_samples_open(struct bad_samples *bad)
{
	*bad = (struct bad_samples){0};
	return -pthread_mutex_init(&bad->lock, NULL);
}

void bad_samples_close(struct bad_samples *bad)
{
	(void)pthread_mutex_destroy(&bad->lock);
}

static bool is_listed(const struct bad_samples *bad, uint32_t sample)
{
	for (uint32_t i = 0; i < bad->listed; i++)
		if (bad->list[i].sample == sample)
			return true;
	return false;
}

static void bad_samples_note(
	struct bad_samples *bad, uint32_t sample, const char *reason, bool unread)
{
	(void)pthread_mutex_lock(&bad->lock);
	bad->count++;
	bad->unread += unread;
	if (bad->listed < BAD_LISTED && !is_listed(bad, sample)) {
		if (unread && bad->unread == 1)
			bad->first_unread = bad->listed;
		bad->list[bad->listed].sample = sample;
		(void)snprintf(bad->list[bad->listed].reason, BAD_REASON_BYTES, "%s", reason);
		bad->listed++;
	}
	(void)pthread_mutex_unlock(&bad->lock);
}

void bad_samples_add(struct bad_samples *bad, uint32_t sample, const char *reason)
{
	bad_samples_note(bad, sample, reason, false);
}

void bad_samples_add_unread(struct bad_samples *bad, uint32_t sample, int code)
{
	char text[ERROR_REASON_BYTES];
	bad_samples_note(bad, sample, source_status_text(-code, text), true);
}

int bad_samples_name_first(
	const struct bad_samples *bad, const struct dataset *dataset, struct error *err)
{
	const struct error what = *err;
	const uint32_t at = bad->first_unread; /* 0: the first of any kind */
	char name[DATASET_NAME_BYTES];
	return error_set(err, -EBADMSG, "%.150s; the first is %s: %s", what.text,
		dataset_name_sample(dataset, bad->list[at].sample, name), bad->list[at].reason);
}

int bad_samples_judge(const struct bad_samples *bad, const struct dataset *dataset,
	uint64_t stepped, const struct measurement *m, struct error *err)
{
	if (bad->count == 0 || m->status == MEASUREMENT_INTERRUPTED)
		return 0;
	const double unread = (double)bad->unread / (double)(stepped > 0 ? stepped : bad->count);
	if (m->samples == 0)
		(void)error_set(err, -EBADMSG, "not one sample that was measured was good");
	else if (unread > UNREAD_MOST)
		(void)error_set(err, -EBADMSG, "%.0f %% of the samples could not be read",
			fmin(unread, 1) * 100);
	else if (m->bad_share > BAD_MOST)
		(void)error_set(err, -EBADMSG, "%.0f %% of the samples that were measured were bad",
			m->bad_share * 100);
	else
		return 0;
	return bad_samples_name_first(bad, dataset, err);
}

void bad_samples_broken_off(struct bad_samples *bad, uint32_t sample, uint64_t took_ns)
{
	(void)pthread_mutex_lock(&bad->lock);
	if (took_ns >= NS_PER_S && took_ns > bad->slow_ns) {
		bad->slow_ns = took_ns;
		bad->slow = sample;
	}
	(void)pthread_mutex_unlock(&bad->lock);
}

uint64_t bad_samples_count(struct bad_samples *bad)
{
	(void)pthread_mutex_lock(&bad->lock);
	const uint64_t count = bad->count;
	(void)pthread_mutex_unlock(&bad->lock);
	return count;
}

void bad_samples_report(
	const struct bad_samples *bad, const struct dataset *dataset, struct measurement *m)
{
	char name[DATASET_NAME_BYTES];
	m->bad_samples = bad->count;
	if (m->bad_share > 0)
		measurement_note(m,
			"bad samples: %s %% of those measured could not be read or decoded; the rate is of the others",
			UNITS_PLAIN(m->bad_share * 100, 2));
	for (uint32_t i = 0; i < bad->listed; i++)
		measurement_note(m, "bad sample %s: %s",
			dataset_name_sample(dataset, bad->list[i].sample, name),
			bad->list[i].reason);
	if (bad->slow_ns > 0)
		measurement_note(m,
			"slow sample %s: decoding it had taken %.1f s when the run ended, and all of its batch waited for it",
			dataset_name_sample(dataset, bad->slow, name),
			(double)bad->slow_ns / (double)NS_PER_S);
}

uint64_t slot_checksum(
	const struct sample_ops *kind, const struct sample_sizes *sizes, const struct slot *slot)
{
	const uint64_t samples =
		slot->notes ? kind->device->hash(slot->notes, slot->data, slot->size)
			    : hash_bytes(slot->data, slot->size * sizes->bytes, slot->size);
	return hash_bytes(slot->labels, slot->size * sizes->label_bytes, samples);
}

/* --- the first epoch -------------------------------------------------------------------------- */

struct first_epoch first_epoch_of(const struct sampler_options *sampler,
	const struct sample_ops *kind, const struct sample_sizes *sizes, bool verify)
{
	const uint64_t size = sampler->batch_size;
	return (struct first_epoch){
		.batches = (sampler_used(sampler) + size - 1) / size,
		.kind = kind,
		.sizes = *sizes,
		.sampler = *sampler,
		.verify = verify,
	};
}

static uint64_t first_epoch_sum(const struct first_epoch *first, const struct slot *slot)
{
	const size_t bytes = first->sizes.bytes;
	const size_t label_bytes = first->sizes.label_bytes;
	const uint32_t place = (uint32_t)slot->batch * first->sampler.batch_size;
	uint64_t sum = 0;
	for (uint32_t i = 0; i < slot->size; i++) {
		const uint64_t position = sampler_position(&first->sampler, place + i);
		const uint64_t sample = hash_bytes(slot->data + i * bytes, bytes, position);
		sum += hash_bytes(slot->labels + i * label_bytes, label_bytes, sample);
	}
	return sum;
}

void first_epoch_hash(struct first_epoch *first, const struct slot *slot)
{
	if (!first->verify || slot->batch >= first->batches)
		return;
	const uint64_t batch[] = {
		slot->batch, slot->notes ? slot_checksum(first->kind, &first->sizes, slot) : 0};
	(void)atomic_fetch_add(&first->sum,
		slot->notes ? hash_bytes(batch, sizeof batch, 0) : first_epoch_sum(first, slot));
	(void)atomic_fetch_add(&first->summed, slot->size);
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

void first_epoch_checksum(const struct first_epoch *first, struct measurement *m)
{
	m->has_checksum = first->verify && atomic_load(&first->stepped) >= first->batches;
	if (!m->has_checksum)
		return;
	m->checksum = atomic_load(&first->sum);
	m->checksum_samples = atomic_load(&first->summed);
	m->checksum_ranks = 1;
}
