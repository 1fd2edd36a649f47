/* Tickets and permutations. */
#include "pipelines/sampler.h"

#include <errno.h>

uint32_t sampler_used(const struct sampler_options *options)
{
	const uint64_t size = options->batch_size;
	const uint64_t round = options->devices > 1 ? options->devices : 1;
	const uint64_t samples =
		options->drop_last ? options->count - options->count % size : options->count;
	const uint64_t batches = (samples + size - 1) / size;
	const uint64_t in_rounds = (batches - batches % round) * size;
	return (uint32_t)(in_rounds < samples ? in_rounds : samples);
}

uint64_t sampler_bytes(uint32_t count)
{
	return 2 * (uint64_t)count * sizeof(uint32_t);
}

/* One step of the Fisher-Yates shuffle that rng_permutation does in one go (inside-out form). */
static inline void build_step(struct sampler *s)
{
	const uint32_t i = s->built++;
	if (!s->options.shuffle) {
		s->coming[i] = i;
		return;
	}
	const uint32_t j = (uint32_t)rng_below(&s->rng, (uint64_t)i + 1);
	s->coming[i] = s->coming[j];
	s->coming[j] = i;
}

/* The order that was being built becomes this epoch's; begins the one after it. */
static void enter_epoch(struct sampler *s, uint64_t epoch)
{
	while (s->built < s->options.count)
		build_step(s);
	uint32_t *const old = s->order;
	s->order = s->coming;
	s->coming = old;
	s->built = 0;
	s->epoch = epoch;
	s->epoch_seed = rng_mix(s->options.seed, epoch);
	s->position = 0;
	rng_init(&s->rng, s->options.seed, epoch + 1);
}

int sampler_open(struct sampler *s, const struct sampler_options *options)
{
	*s = (struct sampler){.options = *options, .used = sampler_used(options)};
	if (s->used == 0)
		return -EINVAL;
	if (memory_map(&s->block, sampler_bytes(options->count), false))
		return -ENOMEM;
	s->coming = s->block.data;
	s->order = s->coming + options->count;
	rng_init(&s->rng, options->seed, 0);
	enter_epoch(s, 0);
	return 0;
}

void sampler_close(struct sampler *s)
{
	memory_unmap(&s->block);
}

uint32_t sampler_peek(struct sampler *s)
{
	if (s->position == s->used)
		enter_epoch(s, s->epoch + 1);
	return s->order[s->position];
}

struct ticket sampler_take(struct sampler *s, struct flow_ticket place)
{
	const uint32_t sample = sampler_peek(s);
	s->position++;
	if (s->built < s->options.count)
		build_step(s);
	return (struct ticket){
		.number = place.number,
		.batch = place.batch,
		.seed = rng_mix(s->epoch_seed, sample),
		.sample = sample,
		.place = place.place,
	};
}
