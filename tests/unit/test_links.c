/* Links between ranks over a network that delays and cuts off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_mpi.h"

#include "workloads/ranks/links.h"

static const uint64_t NEVER_NS = 600 * NS_PER_S; /* a guard: no rank of the test is lost */
static const uint64_t SOON_NS = 300 * NS_PER_MS;

static struct fake_part parts[FAKE_RANKS];

static struct links *open_links(struct fake_part *part)
{
	struct links *links = NULL;
	part->code = links_open(&links,
		&(struct links_options){.ranks = part->ranks,
			.stream_ns = NS_PER_MS,
			.pings_ns = NS_PER_MS,
			.crowded = true},
		&part->err);
	return links;
}

/* The others: until they are told something else. */
static void follow(struct fake_part *part)
{
	struct buffer text = {0};
	struct links *const links = open_links(part);
	if (!part->code)
		part->code = links_hear(links, 0, &text, &part->err);
	if (!part->code && (text.size != 3 || memcmp(text.data, "end", 3) != 0))
		part->code = -EPROTO;
	links_close(links);
	buffer_release(&text);
}

struct trial {
	enum links_mode mode;
	size_t count;
	struct links_pair pairs[FAKE_RANKS];
	struct links_seen seen[FAKE_RANKS];
	int code;
};
static struct trial *trials;
static size_t trial_count;

static void try_all(struct fake_part *part)
{
	struct links *const links = open_links(part);
	for (size_t i = 0; i < trial_count && !part->code; i++) {
		struct trial *const trial = &trials[i];
		trial->code = part->code = links_try(
			links, trial->mode, trial->pairs, trial->count, trial->seen, &part->err);
	}
	/* The others wait for it for as long as the leader is there, also where the user has stopped it. */
	struct error why;
	const int told =
		part->ranks->lost ? 0 : ranks_tell(part->ranks, FAKE_RANKS, "end", 3, &why);
	if (!part->code && told) {
		part->code = told;
		part->err = why;
	}
	/* Whoever has given up ends all when it exits (MPI_Abort). */
	if (part->ranks->lost)
		FAKE_LOCKED(fake.gone[0] = true);
	links_close(links);
}

static void play(struct trial *some, size_t count, uint64_t silence_ns)
{
	trials = some;
	trial_count = count;
	fake_play(parts, silence_ns, try_all, follow);
}

static void expect_well(void)
{
	for (unsigned rank = 0; rank < FAKE_RANKS; rank++) {
		assert_string_equal("", parts[rank].err.text);
		assert_int_equal(0, parts[rank].code);
	}
}

static void expect_rate(double rate)
{
	assert_true(isfinite(rate) && rate > 0);
}

/* Each mode gives what it is there for, between the leader and others, and between others; any number of times. */
static void each_mode_has_its_values(void **state)
{
	(void)state;
	struct trial all[] = {
		{.mode = LINKS_IN_TURN, .count = 1, .pairs = {{0, 1}}},
		{.mode = LINKS_IN_TURN, .count = 1, .pairs = {{1, 2}}},
		{.mode = LINKS_AT_ONCE, .count = 1, .pairs = {{0, 2}}},
		{.mode = LINKS_AT_ONCE, .count = 1, .pairs = {{1, 2}}},
		{.mode = LINKS_RING, .count = 3, .pairs = {{0, 1}, {1, 2}, {2, 0}}},
		{.mode = LINKS_RING, .count = 2, .pairs = {{0, 1}, {1, 0}}},
		{.mode = LINKS_IN_TURN, .count = 1, .pairs = {{2, 0}}},
	};
	play(all, sizeof all / sizeof *all, NEVER_NS);
	expect_well();
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (size_t at = 0; at < all[i].count; at++) {
			const struct links_seen *const seen = &all[i].seen[at];
			expect_rate(seen->there);
			if (all[i].mode == LINKS_RING)
				assert_true(isnan(seen->back));
			else
				expect_rate(seen->back);
			if (all[i].mode != LINKS_IN_TURN) {
				assert_true(isnan(seen->latency_ns) && isnan(seen->tail_ns));
				continue;
			}
			expect_rate(seen->latency_ns);
			assert_true(seen->tail_ns >= seen->latency_ns);
		}
}

static uint64_t delayed_ns;

static void delay_and_try(struct fake_part *part)
{
	(void)pthread_mutex_lock(&fake.lock);
	fake.delay_ns[1] = delayed_ns;
	(void)pthread_mutex_unlock(&fake.lock);
	try_all(part);
}

/* A rank whose messages come late: half of the round trip has half of that, and it takes so long for each of its streams. */
static void late_messages_are_latency(void **state)
{
	(void)state;
	struct trial one = {.mode = LINKS_IN_TURN, .count = 1, .pairs = {{0, 1}}};
	delayed_ns = 20 * NS_PER_MS;
	trials = &one;
	trial_count = 1;
	fake_play(parts, NEVER_NS, delay_and_try, follow);
	expect_well();
	assert_true(one.seen[0].latency_ns >= (double)delayed_ns / 2);
	assert_true(one.seen[0].tail_ns >= one.seen[0].latency_ns);
}

static void cut_and_try(struct fake_part *part)
{
	(void)pthread_mutex_lock(&fake.lock);
	fake.cut[2] = true;
	(void)pthread_mutex_unlock(&fake.lock);
	try_all(part);
}

/* Who does not answer has a name, whether the leader is its partner or not. */
static void a_rank_that_is_cut_off_is_named(void **state)
{
	(void)state;
	static const struct links_pair pairs[] = {{0, 2}, {1, 2}};
	for (size_t i = 0; i < 2; i++) {
		struct trial one = {.mode = LINKS_IN_TURN, .count = 1, .pairs = {pairs[i]}};
		trials = &one;
		trial_count = 1;
		fake_play(parts, SOON_NS, cut_and_try, follow);
		assert_int_equal(-ETIMEDOUT, one.code);
		assert_non_null(strstr(parts[0].err.text, "rank 2 on node-2 has not answered"));
		assert_true(
			parts[1].code == 0 || parts[1].code == -ETIMEDOUT || parts[1].code == -EIO);
	}
}

/* The user's stop ends it, whoever is waited for. */
static void stop_and_try(struct fake_part *part)
{
	part->stop = true;
	try_all(part);
}

static void a_stop_ends_it(void **state)
{
	(void)state;
	struct trial one = {.mode = LINKS_IN_TURN, .count = 1, .pairs = {{0, 2}}};
	trials = &one;
	trial_count = 1;
	fake_play(parts, SOON_NS, stop_and_try, follow);
	assert_true(one.code == -EINTR || one.code == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mode_has_its_values),
		cmocka_unit_test(late_messages_are_latency),
		cmocka_unit_test(a_rank_that_is_cut_off_is_named),
		cmocka_unit_test(a_stop_ends_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
