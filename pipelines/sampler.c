/* Tickets and permutations. */
#include "pipelines/sampler.h"

#include <errno.h>

static uint32_t sampler_ranks(const struct sampler_options *options)
{
	return options->ranks > 1 ? options->ranks : 1;
}

uint32_t sampler_used(const struct sampler_options *options)
{
	const uint64_t size = options->batch_size;
	const uint64_t round = options->devices > 1 ? options->devices : 1;
	const uint64_t share = options->count / sampler_ranks(options);
	const uint64_t samples = options->drop_last ? share - share % size : share;
	const uint64_t batches = (samples + size - 1) / size;
	const uint64_t in_rounds = (batches - batches % round) * size;
	return (uint32_t)(in_rounds < samples ? in_rounds : samples);
}

static uint32_t sampler_shards(const struct sampler_options *options)
{
	uint32_t shards = 0;
	for (uint32_t i = 0; options->by_shards && i < options->count; i++)
		shards += dataset_begins_file(options->by_shards, i);
	return shards;
}

uint64_t sampler_bytes(const struct sampler_options *options)
{
	const uint64_t shards = sampler_shards(options);
	return (2 * (uint64_t)options->count + (shards > 0 ? 2 * shards + 1 : 0)) *
	       sizeof(uint32_t);
}

/* Puts a value at i, mixed with those from `base` on: one step of the Fisher-Yates shuffle that
 * rng_permutation does in one go (inside-out form). */
static inline void mix_in(
	struct sampler *s, uint32_t *order, uint32_t base, uint32_t i, uint32_t value)
{
	const uint32_t j = base + (uint32_t)rng_below(&s->rng, (uint64_t)(i - base) + 1);
	order[i] = order[j];
	order[j] = value;
}

/* The next sample of the shards in their order. */
static uint32_t pass_shards(struct sampler *s)
{
	if (s->turn < s->shards && s->next == s->begins[s->turns[s->turn] + 1]) {
		s->turn++;
		s->next = s->begins[s->turns[s->turn]];
	}
	return s->next++;
}

static void begin_shards(struct sampler *s)
{
	for (uint32_t i = 0; i < s->shards; i++)
		mix_in(s, s->turns, 0, i, i);
	s->turn = 0;
	s->next = s->shards > 0 ? s->begins[s->turns[0]] : 0;
}

static uint32_t sampler_window(const struct sampler *s)
{
	return s->options.window > 0 ? s->options.window : 1;
}

static inline void build_step(struct sampler *s)
{
	const uint32_t i = s->built++;
	if (s->shards > 0) {
		const uint32_t window = sampler_window(s);
		mix_in(s, s->coming, i - i % window, i, pass_shards(s));
	} else if (s->options.shuffle) {
		mix_in(s, s->coming, 0, i, i);
	} else {
		s->coming[i] = i;
	}
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
	s->epoch_seed = rng_mix(s->options.seed, s->options.alike ? 0 : epoch);
	s->position = 0;
	rng_init(&s->rng, s->options.seed, epoch + 1);
	begin_shards(s);
}

static void find_shards(struct sampler *s)
{
	uint32_t shards = 0;
	s->begins = s->order + s->options.count;
	s->turns = s->begins + s->shards + 1;
	for (uint32_t i = 0; i < s->options.count; i++)
		if (dataset_begins_file(s->options.by_shards, i))
			s->begins[shards++] = i;
	s->begins[shards] = s->options.count;
}

int sampler_open(struct sampler *s, const struct sampler_options *options)
{
	*s = (struct sampler){.options = *options, .used = sampler_used(options)};
	if (s->used == 0)
		return -EINVAL;
	if (memory_map(&s->block, sampler_bytes(options), false))
		return -ENOMEM;
	s->coming = s->block.data;
	s->order = s->coming + options->count;
	s->shards = sampler_shards(options);
	if (s->shards > 0)
		find_shards(s);
	rng_init(&s->rng, options->seed, 0);
	begin_shards(s);
	enter_epoch(s, 0);
	return 0;
}

void sampler_close(struct sampler *s)
{
	memory_unmap(&s->block);
}

uint32_t sampler_position(const struct sampler_options *options, uint32_t place)
{
	const uint32_t ranks = sampler_ranks(options);
	return options->by_shards ? options->rank * (options->count / ranks) + place
				  : place * ranks + options->rank;
}

uint32_t sampler_peek(struct sampler *s)
{
	if (s->position == s->used)
		enter_epoch(s, s->epoch + 1);
	return s->order[sampler_position(&s->options, s->position)];
}

/* Of the next epoch, which is built as far as it takes: samples are mixed within their window alone. */
static uint32_t sampler_coming(struct sampler *s, uint32_t place)
{
	const uint32_t at = sampler_position(&s->options, place);
	const bool last = s->options.epochs > 0 && s->epoch + 1 >= s->options.epochs;
	const bool mixed = s->shards == 0 && s->options.shuffle;
	if (place >= s->used || last || mixed)
		return UINT32_MAX;
	const uint32_t window = s->shards > 0 ? sampler_window(s) : 1;
	while (s->built < s->options.count && s->built / window <= at / window)
		build_step(s);
	return s->coming[at];
}

uint32_t sampler_ahead(struct sampler *s, uint32_t ahead)
{
	const uint32_t left = s->used - s->position;
	return ahead < left ? s->order[sampler_position(&s->options, s->position + ahead)]
			    : sampler_coming(s, ahead - left);
}

struct ticket sampler_take(struct sampler *s, struct flow_ticket place)
{
	const uint32_t sample = sampler_peek(s);
	s->position++;
	for (uint32_t i = 0; i < sampler_ranks(&s->options) && s->built < s->options.count; i++)
		build_step(s);
	return (struct ticket){
		.number = place.number,
		.batch = place.batch,
		.seed = rng_mix(s->epoch_seed, sample),
		.sample = sample,
		.place = place.place,
	};
}
