/* The sampler: exactly once an epoch, a new order each, a function of the seed, batches in step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipelines/sample_account.h"
#include "pipelines/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The tickets that samplers are asked for. */
static struct flow flow;
static void *flow_memory;

static void open_tickets(const struct sampler_options *o)
{
	const struct flow_options options = {
		.epoch_samples = sampler_used(o),
		.epochs = o->epochs,
		.batch_size = o->batch_size,
		.blobs = 1024,
		.slots = 1,
		.lanes = 1,
		.workers = 1,
	};
	flow_memory = calloc(1, flow_bytes(&options));
	assert_non_null(flow_memory);
	flow_open(&flow, &options, flow_memory);
}

static struct ticket take(struct sampler *sampler)
{
	assert_true(flow_has_room(&flow));
	return sampler_take(sampler, flow_take_ticket(&flow));
}

static void close_sampler(struct sampler *sampler)
{
	sampler_close(sampler);
	free(flow_memory);
	flow_memory = NULL;
}

static struct sampler open_sampler(
	uint32_t count, uint32_t batch, bool drop_last, bool shuffle, uint64_t seed)
{
	struct sampler sampler;
	const struct sampler_options options = {
		.seed = seed,
		.count = count,
		.batch_size = batch,
		.shuffle = shuffle,
		.drop_last = drop_last,
	};
	assert_int_equal(sampler_open(&sampler, &options), 0);
	open_tickets(&options);
	return sampler;
}

static void each_sample_comes_once_an_epoch(void **state)
{
	(void)state;
	enum { COUNT = 103, EPOCHS = 5 };
	struct sampler sampler = open_sampler(COUNT, 10, false, true, 1);
	uint32_t previous[COUNT] = {0};
	for (int epoch = 0; epoch < EPOCHS; epoch++) {
		unsigned seen[COUNT] = {0};
		uint32_t order[COUNT];
		for (uint32_t i = 0; i < COUNT; i++) {
			const struct ticket ticket = take(&sampler);
			assert_int_equal(ticket.number, (uint64_t)epoch * COUNT + i);
			assert_int_equal(ticket.batch, (uint64_t)epoch * 11 + i / 10);
			assert_int_equal(ticket.place, i % 10);
			seen[ticket.sample]++;
			order[i] = ticket.sample;
		}
		for (uint32_t i = 0; i < COUNT; i++)
			assert_int_equal(seen[i], 1);
		assert_memory_not_equal(order, previous, sizeof order);
		memcpy(previous, order, sizeof order);
	}
	close_sampler(&sampler);
}

static void its_steps_give_the_permutation_of_the_base(void **state)
{
	(void)state;
	enum { COUNT = 64 };
	struct sampler sampler = open_sampler(COUNT, 7, false, true, 99);
	for (uint64_t epoch = 0; epoch < 4; epoch++) {
		struct rng rng;
		uint32_t order[COUNT];
		rng_init(&rng, 99, epoch);
		rng_permutation(&rng, order, COUNT);
		for (uint32_t i = 0; i < COUNT; i++) {
			const struct ticket ticket = take(&sampler);
			assert_int_equal(ticket.sample, order[i]);
			assert_int_equal(ticket.seed, rng_mix(rng_mix(99, epoch), ticket.sample));
		}
	}
	close_sampler(&sampler);
}

static void drop_last_leaves_out_the_incomplete_batch(void **state)
{
	(void)state;
	enum { COUNT = 25, BATCH = 10 };
	struct sampler sampler = open_sampler(COUNT, BATCH, true, true, 3);
	assert_int_equal(sampler.used, 20);
	assert_int_equal(flow.batches_per_epoch, 2);
	for (uint64_t i = 0; i < 200; i++) {
		const struct ticket ticket = take(&sampler);
		assert_int_equal(ticket.batch, i / BATCH);
		assert_int_equal(ticket.place, i % BATCH);
		assert_int_equal(flow_batch_size(&flow, ticket.batch), BATCH);
		struct rng rng;
		uint32_t order[COUNT];
		rng_init(&rng, 3, i / 20);
		rng_permutation(&rng, order, COUNT);
		assert_int_equal(ticket.sample, order[i % 20]);
	}
	close_sampler(&sampler);
}

static void the_last_batch_may_be_smaller(void **state)
{
	(void)state;
	struct sampler sampler = open_sampler(25, 10, false, false, 3);
	assert_int_equal(flow.batches_per_epoch, 3);
	assert_int_equal(flow_batch_size(&flow, 1), 10);
	assert_int_equal(flow_batch_size(&flow, 2), 5);
	assert_int_equal(flow_batch_size(&flow, 5), 5);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(take(&sampler).sample, i % 25);
	close_sampler(&sampler);
}

static void a_batch_may_be_larger_than_the_set(void **state)
{
	(void)state;
	struct sampler sampler = open_sampler(5, 8, false, true, 3);
	assert_int_equal(flow.batches_per_epoch, 1);
	assert_int_equal(flow_batch_size(&flow, 7), 5);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(take(&sampler).batch, i / 5);
	close_sampler(&sampler);
	const struct sampler_options nothing = {.count = 5, .batch_size = 8, .drop_last = true};
	assert_int_equal(sampler_open(&sampler, &nothing), -EINVAL);
}

static void it_ends_after_its_epochs(void **state)
{
	(void)state;
	const struct sampler_options options = {
		.count = 6, .batch_size = 4, .shuffle = true, .epochs = 3};
	struct sampler sampler;
	assert_int_equal(sampler_open(&sampler, &options), 0);
	open_tickets(&options);
	uint32_t taken = 0;
	for (; !flow_exhausted(&flow); taken++)
		(void)take(&sampler);
	assert_int_equal(taken, 18);
	close_sampler(&sampler);
}

/* 7 batches of 10 (the last of 3) for 3 devices: 6 of them, and the next epoch begins with device 0 again. */
static void incomplete_rounds_are_left_out(void **state)
{
	(void)state;
	struct sampler_options options = {.count = 63, .batch_size = 10, .devices = 3, .epochs = 2};
	struct sampler sampler;
	assert_int_equal(sampler_used(&options), 60);
	assert_int_equal(sampler_open(&sampler, &options), 0);
	open_tickets(&options);
	assert_int_equal(flow.batches_per_epoch, 6);
	assert_int_equal(flow.total, 120);
	for (uint64_t i = 0; !flow_exhausted(&flow); i++)
		assert_int_equal(take(&sampler).batch, i / 10);
	close_sampler(&sampler);
	/* The smaller last batch stays where it fills its round. */
	options.count = 85;
	assert_int_equal(sampler_used(&options), 85);
	options.drop_last = true;
	assert_int_equal(sampler_used(&options), 60);
	options.devices = 1;
	assert_int_equal(sampler_used(&options), 80);
	options = (struct sampler_options){.count = 20, .batch_size = 10, .devices = 3};
	assert_int_equal(sampler_used(&options), 0);
	assert_int_equal(sampler_open(&sampler, &options), -EINVAL);
}

/* Files of 10 samples, the last one of 3; the same order for a seed, another for the next epoch. */
static void shards_come_whole(void **state)
{
	(void)state;
	enum { COUNT = 93, EACH = 10, SHARDS = 10, EPOCHS = 3, AHEAD = 5 };
	static const char *const names[SHARDS] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
	struct sample samples[COUNT];
	const uint64_t offsets[COUNT] = {0};
	for (uint32_t i = 0; i < COUNT; i++)
		samples[i] = (struct sample){.path = names[i / EACH]};
	const struct dataset dataset = {.samples = samples, .offsets = offsets, .count = COUNT};
	struct sampler_options options = {.seed = 4,
		.count = COUNT,
		.batch_size = 7,
		.shuffle = true,
		.by_shards = &dataset,
		.epochs = EPOCHS};
	uint32_t orders[EPOCHS][COUNT];
	uint32_t expected[AHEAD];
	for (uint32_t window = 0; window <= 25; window += 25) {
		struct sampler sampler;
		options.window = window;
		assert_int_equal(sampler_open(&sampler, &options), 0);
		assert_true(sampler_bytes(&options) > 2 * COUNT * sizeof(uint32_t));
		open_tickets(&options);
		for (int epoch = 0; epoch < EPOCHS; epoch++) {
			bool seen[COUNT] = {false};
			for (uint32_t i = 0; i < COUNT; i++) {
				const uint32_t soon = sampler_ahead(&sampler, AHEAD);
				orders[epoch][i] = take(&sampler).sample;
				assert_false(seen[orders[epoch][i]]);
				seen[orders[epoch][i]] = true;
				/* What was ahead is what comes, in the next epoch, too; none is after the last. */
				const uint32_t t = (uint32_t)epoch * COUNT + i;
				if (t >= AHEAD)
					assert_int_equal(expected[t % AHEAD], orders[epoch][i]);
				expected[t % AHEAD] = soon;
				assert_true((soon == UINT32_MAX) ==
					    (epoch == EPOCHS - 1 && i + AHEAD >= COUNT));
			}
		}
		assert_memory_not_equal(orders[0], orders[1], sizeof orders[0]);
		for (uint32_t i = 1; i < COUNT && window == 0; i++)
			assert_true(orders[1][i] == orders[1][i - 1] + 1 ||
				    (orders[1][i] % EACH == 0 &&
					    (orders[1][i - 1] % EACH == EACH - 1 ||
						    orders[1][i - 1] == COUNT - 1)));
		/* Windows of the same stream have the same samples, in another order. */
		uint32_t steps = 0;
		for (uint32_t i = 1; i < COUNT; i++)
			steps += orders[1][i] == orders[1][i - 1] + 1;
		assert_true(window == 0 ? steps > 80 : steps < 20);
		close_sampler(&sampler);
	}
}

/* Batch b of each rank together has the samples of batch b of one process with ranks times the batch size, in its places. */
static void ranks_share_the_batches_of_one(void **state)
{
	(void)state;
	enum { COUNT = 50, SIZE = 4, RANKS = 3, EPOCHS = 3, USED = 48 };
	struct sampler_options options = {.seed = 9,
		.count = COUNT,
		.batch_size = RANKS * SIZE,
		.shuffle = true,
		.drop_last = true,
		.epochs = EPOCHS};
	struct ticket one[EPOCHS * USED];
	struct sampler sampler;
	assert_int_equal(sampler_open(&sampler, &options), 0);
	open_tickets(&options);
	for (uint32_t i = 0; i < EPOCHS * USED; i++)
		one[i] = take(&sampler);
	close_sampler(&sampler);
	options.batch_size = SIZE;
	options.ranks = RANKS;
	for (options.rank = 0; options.rank < RANKS; options.rank++) {
		assert_int_equal(sampler_used(&options), USED / RANKS);
		assert_int_equal(sampler_open(&sampler, &options), 0);
		open_tickets(&options);
		for (uint32_t i = 0; i < EPOCHS * USED / RANKS; i++) {
			const uint32_t there = i * RANKS + options.rank;
			const uint32_t place = i % (USED / RANKS);
			/* An epoch begins when it is taken from. */
			if (place > 0 && place + 1 < USED / RANKS)
				assert_int_equal(
					sampler_ahead(&sampler, 1), one[there + RANKS].sample);
			const struct ticket ticket = take(&sampler);
			assert_int_equal(ticket.sample, one[there].sample);
			assert_int_equal(ticket.seed, one[there].seed);
			assert_int_equal(ticket.batch, one[there].batch);
		}
		close_sampler(&sampler);
	}
}

/* By shards each has its own piece of one order, and all of them together each sample once. */
static void ranks_share_shards(void **state)
{
	(void)state;
	enum { COUNT = 60, EACH = 10, RANKS = 2 };
	static const char *const names[] = {"0", "1", "2", "3", "4", "5"};
	struct sample samples[COUNT];
	const uint64_t offsets[COUNT] = {0};
	for (uint32_t i = 0; i < COUNT; i++)
		samples[i] = (struct sample){.path = names[i / EACH]};
	const struct dataset dataset = {.samples = samples, .offsets = offsets, .count = COUNT};
	struct sampler_options options = {.seed = 4,
		.count = COUNT,
		.batch_size = 5,
		.shuffle = true,
		.by_shards = &dataset,
		.window = 4,
		.ranks = RANKS};
	unsigned seen[COUNT] = {0};
	uint32_t shards[RANKS] = {0}; /* as bits */
	for (options.rank = 0; options.rank < RANKS; options.rank++) {
		struct sampler sampler;
		assert_int_equal(sampler_open(&sampler, &options), 0);
		open_tickets(&options);
		for (uint32_t i = 0; i < 2 * COUNT / RANKS; i++) {
			const uint32_t sample = take(&sampler).sample;
			seen[sample]++;
			if (i < COUNT / RANKS)
				shards[options.rank] |= 1U << sample / EACH;
		}
		close_sampler(&sampler);
	}
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(seen[i], 2);
	/* A window that lies across two pieces is shared, and no other shard. */
	assert_true(__builtin_popcount(shards[0] & shards[1]) <= 2);
}

/* --- the checksum of the first epoch ---------------------------------------------------------- */

enum { SUM_COUNT = 48, SUM_BATCH_MOST = 16, SUM_FORGED = 5 };

/* The job's, of which each rank hashes what its sampler says; with two devices the second one's batch comes first.  forged: at
 * that place of rank 0 is the sample of the place after it. */
static struct measurement job_checksum(struct sampler_options options, bool forged)
{
	const uint32_t ranks = options.ranks > 1 ? options.ranks : 1;
	const struct sample_sizes sizes = {.bytes = sizeof(uint64_t), .label_bytes = 4};
	static struct measurement job, m;
	job = (struct measurement){.has_checksum = true};
	for (options.rank = 0; options.rank < ranks; options.rank++) {
		struct first_epoch first = first_epoch_of(&options, NULL, &sizes, true);
		struct sampler sampler;
		static struct ticket tickets[SUM_COUNT];
		assert_int_equal(sampler_open(&sampler, &options), 0);
		open_tickets(&options);
		for (uint32_t i = 0; i < sampler.used; i++)
			tickets[i] = take(&sampler);
		close_sampler(&sampler);
		if (forged && options.rank == 0)
			tickets[SUM_FORGED] = tickets[SUM_FORGED + 1];
		for (uint32_t b = 0; b < first.batches; b++) {
			const uint32_t batch = options.devices > 1 ? b ^ 1 : b;
			const uint32_t begin = batch * options.batch_size;
			const uint32_t left = sampler.used - begin;
			uint64_t data[SUM_BATCH_MOST];
			uint32_t labels[SUM_BATCH_MOST];
			struct slot slot = {.data = (uint8_t *)data,
				.labels = (uint8_t *)labels,
				.batch = batch,
				.size = left < options.batch_size ? left : options.batch_size};
			for (uint32_t i = 0; i < slot.size; i++) {
				data[i] = tickets[begin + i].seed;
				labels[i] = tickets[begin + i].sample % 3;
			}
			first_epoch_checksum(&first, &m);
			assert_false(m.has_checksum);
			first_epoch_hash(&first, &slot);
			assert_true(first_epoch_step(&first, &slot));
		}
		first_epoch_checksum(&first, &m);
		assert_true(m.has_checksum);
		job.checksum += m.checksum;
		job.checksum_samples += m.checksum_samples;
		job.checksum_ranks += m.checksum_ranks;
	}
	return job;
}

/* However samples are dealt to ranks, devices and batches, as long as none is left out: in order, shuffled, and by shards. */
static void ranks_have_the_checksum_of_one(void **state)
{
	(void)state;
	static const char *const names[] = {"0", "1", "2", "3", "4", "5"};
	static struct sample samples[SUM_COUNT];
	static const uint64_t offsets[SUM_COUNT];
	uint64_t before = 0;
	for (uint32_t i = 0; i < SUM_COUNT; i++)
		samples[i] = (struct sample){.path = names[i / 8]};
	const struct dataset dataset = {.samples = samples, .offsets = offsets, .count = SUM_COUNT};
	for (int way = 0; way < 3; way++) {
		struct sampler_options options = {.seed = 3,
			.count = SUM_COUNT,
			.batch_size = SUM_BATCH_MOST,
			.shuffle = way > 0,
			.by_shards = way == 2 ? &dataset : NULL,
			.window = 4};
		const uint64_t one = job_checksum(options, false).checksum;
		assert_true(one != before); /* another order */
		before = one;
		for (options.ranks = 1; options.ranks <= 3; options.ranks++)
			for (options.devices = 1; options.devices <= 2; options.devices++)
				for (int large = 0; large < 2; large++) {
					options.batch_size = large == 0           ? 4
							     : options.ranks == 3 ? 8
										  : 12;
					const struct measurement job = job_checksum(options, false);
					assert_true(job.checksum == one);
					assert_int_equal(job.checksum_samples, SUM_COUNT);
					assert_int_equal(job.checksum_ranks, options.ranks);
					assert_true(job_checksum(options, true).checksum != one);
				}
		/* With an incomplete last batch, too; what is left out is missing from the sum. */
		options.ranks = 2;
		options.devices = 1;
		options.batch_size = 5;
		assert_true(job_checksum(options, false).checksum == one);
		options.drop_last = true;
		assert_int_equal(job_checksum(options, false).checksum_samples, 40);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_comes_once_an_epoch),
		cmocka_unit_test(its_steps_give_the_permutation_of_the_base),
		cmocka_unit_test(drop_last_leaves_out_the_incomplete_batch),
		cmocka_unit_test(the_last_batch_may_be_smaller),
		cmocka_unit_test(a_batch_may_be_larger_than_the_set),
		cmocka_unit_test(it_ends_after_its_epochs),
		cmocka_unit_test(incomplete_rounds_are_left_out),
		cmocka_unit_test(shards_come_whole),
		cmocka_unit_test(ranks_share_the_batches_of_one),
		cmocka_unit_test(ranks_share_shards),
		cmocka_unit_test(ranks_have_the_checksum_of_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
