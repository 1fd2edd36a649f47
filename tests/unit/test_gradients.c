/* Rounds of ranks that come at different times, leave, fail, or are gone; and when buckets are begun. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_mpi.h"

#include "workloads/ranks/gradients.h"

enum { BYTES = 4000, BUCKET_BYTES = 1000, BUCKETS = 4, ROUNDS = 5 };
static const uint64_t NEVER_NS = 600 * NS_PER_S; /* a guard: no rank of the test is lost */

static struct fake_part parts[FAKE_RANKS];
static struct gradients_round rounds[FAKE_RANKS][ROUNDS + 1];
static size_t round_count[FAKE_RANKS];

static struct gradients *open_gradients(struct fake_part *part, bool overlap)
{
	struct gradients *g = NULL;
	part->code = gradients_open(&g,
		&(const struct gradients_options){.ranks = part->ranks,
			.count = FAKE_RANKS - (part->ranks->without > 0),
			.bytes = BYTES,
			.bucket_bytes = BUCKET_BYTES,
			.overlap = overlap},
		&part->err);
	return g;
}

/* A step that was computed now. */
static int do_round(struct fake_part *part, struct gradients *g)
{
	const uint64_t now_ns = clock_now_ns();
	gradients_begin(g, now_ns, now_ns);
	struct gradients_round *const out = &rounds[part->rank][round_count[part->rank]];
	part->code = gradients_finish(g, clock_now_ns(), out, &part->err);
	round_count[part->rank] += !part->code;
	return part->code;
}

static void reset_rounds(void)
{
	memset(rounds, 0, sizeof rounds);
	memset(round_count, 0, sizeof round_count);
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Rank 2 comes last. */
static void train_on(struct fake_part *part)
{
	struct gradients *const g = open_gradients(part, false);
	for (int i = 0; i < ROUNDS && !part->code; i++) {
		if (part->rank == 2)
			clock_sleep_until_ns(clock_now_ns() + 20 * NS_PER_MS);
		(void)do_round(part, g);
	}
	if (!part->code)
		part->code = gradients_leave(g, GRADIENTS_ENDED, &part->err);
	gradients_close(g);
}

static void each_round_says_who_was_last(void **state)
{
	(void)state;
	reset_rounds();
	fake_play(parts, NEVER_NS, train_on, train_on);
	for (unsigned rank = 0; rank < FAKE_RANKS; rank++) {
		assert_int_equal(parts[rank].code, 0);
		assert_int_equal(round_count[rank], ROUNDS);
	}
	for (int i = 0; i < ROUNDS; i++)
		for (unsigned rank = 0; rank < FAKE_RANKS; rank++) {
			const struct gradients_round *const r = &rounds[rank][i];
			assert_int_equal(r->leaves, GRADIENTS_STAY);
			/* All are told the same. */
			assert_int_equal(r->last, rounds[0][i].last);
			assert_int_equal(r->late_ns, rounds[0][i].late_ns);
			assert_true(r->first_ns <= r->met_ns && r->met_ns <= r->ended_ns);
		}
	/* The others wait for it from the round before on. */
	unsigned last = 0;
	for (int i = 1; i < ROUNDS; i++)
		last += rounds[0][i].last == 2;
	assert_true(last >= 1);
}

/* Ranks 0 and 2, of which the latter is the last: they agree, sum, and meet by themselves. */
static void train_without_one(struct fake_part *part)
{
	part->ranks->without = 1;
	if (part->rank == 1)
		return;
	part->code = ranks_agree(part->ranks, 2, 0, &part->err);
	if (!part->code)
		part->code = ranks_train(part->ranks, 2, &part->err);
	if (!part->code)
		train_on(part);
	part->ranks->without = 0;
}

static void others_train_without_one(void **state)
{
	(void)state;
	reset_rounds();
	fake_play(parts, NEVER_NS, train_without_one, train_without_one);
	for (unsigned rank = 0; rank < FAKE_RANKS; rank += 2) {
		if (parts[rank].code)
			fail_msg("rank %u: %s", rank, parts[rank].err.text);
		assert_int_equal(round_count[rank], ROUNDS);
	}
	assert_int_equal(round_count[1], 0);
	assert_int_equal(fake.without, 1);
	unsigned last = 0;
	for (int i = 1; i < ROUNDS; i++) {
		assert_true(rounds[0][i].last != 1);
		last += rounds[0][i].last == 2;
	}
	assert_true(last >= 1);
}

/* Rank 1 ends after two rounds, between them; the others would go on. */
static void leave_after_two(struct fake_part *part)
{
	struct gradients *const g = open_gradients(part, false);
	const int most = part->rank == 1 ? 2 : ROUNDS;
	for (int i = 0; i < most && !part->code; i++)
		if (!do_round(part, g) &&
			rounds[part->rank][round_count[part->rank] - 1].leaves != GRADIENTS_STAY)
			break;
	if (!part->code)
		part->code = gradients_leave(g, GRADIENTS_ENDED, &part->err);
	gradients_close(g);
}

static void all_end_after_the_round_that_one_leaves(void **state)
{
	(void)state;
	reset_rounds();
	fake_play(parts, NEVER_NS, leave_after_two, leave_after_two);
	for (unsigned rank = 0; rank < FAKE_RANKS; rank++)
		assert_int_equal(parts[rank].code, 0);
	assert_int_equal(round_count[1], 2);
	/* One more, which rank 1 takes part in by leaving. */
	assert_int_equal(round_count[0], 3);
	assert_int_equal(round_count[2], 3);
	assert_int_equal(rounds[0][2].leaves, GRADIENTS_ENDED);
	assert_int_equal(rounds[2][2].leaves, GRADIENTS_ENDED);
	assert_int_equal(fake.closed, FAKE_RANKS);
}

/* Rank 1 fails in the middle of its second step, rank 2 ends with it: the worse counts. */
static void fail_in_a_round(struct fake_part *part)
{
	struct gradients *const g = open_gradients(part, true);
	uint64_t due_ns;
	if (!part->code)
		(void)do_round(part, g);
	if (!part->code && part->rank == 1) {
		const uint64_t now_ns = clock_now_ns();
		gradients_begin(g, now_ns - NS_PER_S / 2, now_ns + NS_PER_S / 2);
		part->code = gradients_further(g, now_ns, &due_ns, &part->err);
		if (!part->code)
			part->code = gradients_leave(g, GRADIENTS_FAILED, &part->err);
	} else if (!part->code && part->rank == 2) {
		part->code = gradients_leave(g, GRADIENTS_ENDED, &part->err);
	} else if (!part->code) {
		(void)do_round(part, g);
	}
	if (!part->code)
		part->code = gradients_leave(g, GRADIENTS_ENDED, &part->err);
	gradients_close(g);
}

static void a_failure_in_a_round_is_told_to_all(void **state)
{
	(void)state;
	reset_rounds();
	fake_play(parts, NEVER_NS, fail_in_a_round, fail_in_a_round);
	for (unsigned rank = 0; rank < FAKE_RANKS; rank++)
		assert_int_equal(parts[rank].code, 0);
	assert_int_equal(round_count[0], 2);
	assert_int_equal(rounds[0][0].leaves, GRADIENTS_STAY);
	assert_int_equal(rounds[0][1].leaves, GRADIENTS_FAILED);
	assert_int_equal(fake.closed, FAKE_RANKS);
}

/* --- what goes wrong -------------------------------------------------------------------------- */

static void train_corrupted(struct fake_part *part)
{
	struct gradients *const g = open_gradients(part, false);
	if (part->rank == 0)
		fake.corrupts = true;
	if (!part->code)
		(void)do_round(part, g);
	gradients_close(g);
}

static void a_wrong_sum_fails(void **state)
{
	(void)state;
	reset_rounds();
	fake_play(parts, NS_PER_S, train_corrupted, train_corrupted);
	assert_int_equal(parts[0].code, -EIO);
	assert_string_equal(
		parts[0].err.text, "the exchange of gradients gave a wrong sum: 7 for 6");
	assert_int_equal(round_count[0], 0);
}

/* Rank 2 does not come, and is cut off. */
static void wait_in_a_round(struct fake_part *part)
{
	struct gradients *const g = open_gradients(part, false);
	(void)pthread_mutex_lock(&fake.lock);
	fake.cut[2] = fake.cut[2] || part->rank == 2;
	(void)pthread_mutex_unlock(&fake.lock);
	if (!part->code && part->rank != 2)
		(void)do_round(part, g);
	gradients_close(g);
}

static void a_rank_that_is_gone_is_named(void **state)
{
	(void)state;
	reset_rounds();
	fake_play(parts, NS_PER_S, wait_in_a_round, wait_in_a_round);
	assert_int_equal(parts[0].code, -ETIMEDOUT);
	assert_non_null(strstr(parts[0].err.text, "rank 2 on node-2 has not answered for"));
	assert_int_equal(round_count[0], 0);
}

/* It waits, and is no fault of its own; told to stop, the leader has soon waited enough. */
static void *stop_when_it_waits(void *context)
{
	struct gradients *const g = context;
	while (!atomic_load(&g->waits))
		clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
	atomic_store(&parts[0].stop, true);
	return NULL;
}

static atomic_bool leader_is_over;

static void wait_until_stopped(struct fake_part *part)
{
	struct gradients *const g = open_gradients(part, false);
	pthread_t thread;
	if (part->rank > 0) {
		while (!atomic_load(&leader_is_over))
			clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
	} else if (!part->code) {
		(void)pthread_create(&thread, NULL, stop_when_it_waits, g);
		(void)do_round(part, g);
		(void)pthread_join(thread, NULL);
		atomic_store(&leader_is_over, true);
	}
	gradients_close(g);
}

static void a_leader_that_is_stopped_waits_no_longer(void **state)
{
	(void)state;
	reset_rounds();
	atomic_store(&leader_is_over, false);
	const uint64_t began_ns = clock_now_ns();
	fake_play(parts, 3 * NS_PER_S, wait_until_stopped, wait_until_stopped);
	assert_int_equal(parts[0].code, -EINTR);
	/* Not for as long as for a rank that is late: three minutes. */
	assert_true(clock_now_ns() - began_ns < 150 * NS_PER_S);
}

/* --- overlap ---------------------------------------------------------------------------------- */

/* A step of 900 ms, of which the backward pass is the last 600: each of four buckets is there 150 ms after the one before. */
static void look_at_due_times(struct fake_part *part)
{
	struct gradients *const g = open_gradients(part, true);
	const uint64_t ms = NS_PER_MS;
	const uint64_t began_ns = clock_now_ns() - 900 * ms; /* all of it is past */
	const struct {
		uint64_t at_ms, due_ms;
		size_t begun;
	} looks[] = {{0, 450, 0}, {449, 450, 0}, {450, 600, 1}, {599, 600, 1}, {751, 900, 3},
		{900, UINT64_MAX, 4}};
	gradients_begin(g, began_ns, began_ns + 900 * ms);
	const size_t from = fake.turn[part->rank];
	for (size_t i = 0; i < sizeof looks / sizeof *looks && !part->code; i++) {
		uint64_t due_ns;
		part->code =
			gradients_further(g, began_ns + looks[i].at_ms * ms, &due_ns, &part->err);
		const size_t begun = fake.turn[part->rank] - from;
		if (!part->code && begun != looks[i].begun)
			part->code =
				error_set(&part->err, -ERANGE, "%zu begun, not %zu, at %llu ms",
					begun, looks[i].begun, (unsigned long long)looks[i].at_ms);
		/* Sooner where a bucket is under way, which goes on only in here. */
		if (!part->code && due_ns > began_ns + looks[i].due_ms * ms &&
			looks[i].begun < BUCKETS)
			part->code = error_set(&part->err, -ERANGE, "due too late");
		if (!part->code && looks[i].begun == 0 && due_ns != began_ns + looks[i].due_ms * ms)
			part->code = error_set(&part->err, -ERANGE, "not due when it is made");
	}
	struct gradients_round out;
	if (!part->code)
		part->code = gradients_finish(g, began_ns + 900 * ms, &out, &part->err);
	if (!part->code && out.first_ns != began_ns + 450 * ms)
		part->code = error_set(&part->err, -ERANGE, "the first bucket was begun elsewhere");
	if (!part->code)
		part->code = gradients_leave(g, GRADIENTS_ENDED, &part->err);
	gradients_close(g);
}

static void buckets_are_begun_as_the_backward_pass_makes_them(void **state)
{
	(void)state;
	fake_play(parts, NEVER_NS, look_at_due_times, look_at_due_times);
	for (unsigned rank = 0; rank < FAKE_RANKS; rank++)
		if (parts[rank].code)
			fail_msg("rank %u: %s", rank, parts[rank].err.text);
}

/* Without overlap nothing is begun before the step was computed. */
static void look_without_overlap(struct fake_part *part)
{
	struct gradients *const g = open_gradients(part, false);
	const uint64_t began_ns = clock_now_ns() - 900 * NS_PER_MS;
	const uint64_t computed_ns = began_ns + 900 * NS_PER_MS;
	uint64_t due_ns = 0;
	gradients_begin(g, began_ns, computed_ns);
	const size_t from = fake.turn[part->rank];
	part->code = gradients_further(g, computed_ns - 1, &due_ns, &part->err);
	if (!part->code && (fake.turn[part->rank] != from || due_ns != computed_ns))
		part->code = error_set(&part->err, -ERANGE, "begun before the step was computed");
	if (!part->code)
		part->code = gradients_further(g, computed_ns, &due_ns, &part->err);
	if (!part->code && fake.turn[part->rank] != from + BUCKETS)
		part->code = error_set(&part->err, -ERANGE, "not all are begun");
	if (!part->code)
		part->code = gradients_leave(g, GRADIENTS_ENDED, &part->err);
	gradients_close(g);
}

static void without_overlap_all_are_begun_at_the_end(void **state)
{
	(void)state;
	fake_play(parts, NEVER_NS, look_without_overlap, look_without_overlap);
	for (unsigned rank = 0; rank < FAKE_RANKS; rank++)
		if (parts[rank].code)
			fail_msg("rank %u: %s", rank, parts[rank].err.text);
}

/* A float has whole numbers up to 2^24: the sum is exact for as many ranks as there can be, in whatever order it is built. */
static void a_million_ranks_are_counted(void **state)
{
	(void)state;
	float up = 0;
	for (unsigned rank = 0; rank < 1000000; rank++) {
		up += gradients_mark(rank);
		if (rank < 100 || rank % 9973 == 0 || rank == 999999)
			assert_true(up == gradients_mark_sum(rank + 1));
	}
	assert_true(gradients_mark(0) != gradients_mark(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_million_ranks_are_counted),
		cmocka_unit_test(each_round_says_who_was_last),
		cmocka_unit_test(others_train_without_one),
		cmocka_unit_test(all_end_after_the_round_that_one_leaves),
		cmocka_unit_test(a_failure_in_a_round_is_told_to_all),
		cmocka_unit_test(a_wrong_sum_fails),
		cmocka_unit_test(a_rank_that_is_gone_is_named),
		cmocka_unit_test(a_leader_that_is_stopped_waits_no_longer),
		cmocka_unit_test(buckets_are_begun_as_the_backward_pass_makes_them),
		cmocka_unit_test(without_overlap_all_are_begun_at_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
