/* A leader and its followers over a network that delays, holds and fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_mpi.h"

#include "harness/base/buffer.h"
#include "workloads/ranks/pulse.h"

#include <sys/wait.h>

enum { LONG_BYTES = 100000 };
static const uint64_t NEVER_NS = 600 * NS_PER_S; /* a guard: no rank of the test is lost */
static const uint64_t SOON_NS = 300 * NS_PER_MS;

static struct fake_part parts[FAKE_RANKS];

/* --- messages --------------------------------------------------------------------------------- */

static char long_text[LONG_BYTES];

static void tell_all(struct fake_part *part)
{
	struct buffer text = {0};
	struct ranks *const ranks = part->ranks;
	part->code = ranks_tell(ranks, FAKE_RANKS, "do", 2, &part->err);
	for (unsigned rank = 1; rank < FAKE_RANKS && !part->code; rank++) {
		part->code = ranks_take(ranks, rank, &text, &part->err);
		if (!part->code && (text.size != LONG_BYTES || text.data[0] != (char)rank))
			part->code = -EPROTO;
		if (!part->code)
			part->code = ranks_take(ranks, rank, &text, &part->err);
		if (!part->code && text.size != 0)
			part->code = -EPROTO;
	}
	buffer_release(&text);
}

/* What it hears, and an empty message. */
static void answer_two(struct fake_part *part)
{
	struct buffer text = {0};
	char *const answer = malloc(LONG_BYTES);
	memcpy(answer, long_text, LONG_BYTES);
	answer[0] = (char)part->rank;
	part->code = ranks_hear(part->ranks, 0, &text, &part->err);
	if (!part->code && (text.size != 2 || memcmp(text.data, "do", 2) != 0))
		part->code = -EPROTO;
	if (!part->code)
		part->code = ranks_answer(part->ranks, answer, LONG_BYTES, &part->err);
	if (!part->code)
		part->code = ranks_answer(part->ranks, "", 0, &part->err);
	buffer_release(&text);
	free(answer);
}

static void messages_arrive(void **state)
{
	(void)state;
	fake_play(parts, NEVER_NS, tell_all, answer_two);
	for (unsigned i = 0; i < FAKE_RANKS; i++)
		assert_int_equal(parts[i].code, 0);
	assert_int_equal(fake.closed, FAKE_RANKS);
	assert_int_equal(fake.forgotten, 0);
	assert_null(fake.messages);
}

static void hear_the_end(struct fake_part *part)
{
	struct buffer text = {0};
	part->code = ranks_hear(part->ranks, 0, &text, &part->err);
	if (!part->code && text.size != 3)
		part->code = -EPROTO;
	buffer_release(&text);
}

/* It is refused before anybody waits for it. */
static void tell_too_much(struct fake_part *part)
{
	const size_t bytes = (size_t)RANKS_MESSAGE_MAX + 1;
	char *const text = calloc(bytes, 1);
	assert_non_null(text);
	part->code = ranks_tell(part->ranks, FAKE_RANKS, text, bytes, &part->err);
	free(text);
	assert_int_equal(ranks_tell(part->ranks, FAKE_RANKS, "end", 3, &(struct error){""}), 0);
}

static void long_messages_are_refused(void **state)
{
	(void)state;
	fake_play(parts, NEVER_NS, tell_too_much, hear_the_end);
	assert_int_equal(parts[0].code, -EMSGSIZE);
	for (unsigned i = 1; i < FAKE_RANKS; i++)
		assert_int_equal(parts[i].code, 0);
	assert_int_equal(fake.closed, FAKE_RANKS);
}

static void tell_to_late_ranks(struct fake_part *part)
{
	for (unsigned rank = 1; rank < FAKE_RANKS; rank++)
		FAKE_LOCKED(fake.delay_ns[rank] = rank * 60 * NS_PER_MS);
	tell_all(part);
}

static void late_answers_are_taken(void **state)
{
	(void)state;
	fake_play(parts, NEVER_NS, tell_to_late_ranks, answer_two);
	assert_int_equal(parts[0].code, 0);
	assert_int_equal(fake.forgotten, 0);
}

/* --- who is gone ------------------------------------------------------------------------------ */

/* Each has said that it is there. */
static void take_all(struct fake_part *part, struct buffer *text)
{
	for (unsigned rank = 1; rank < FAKE_RANKS; rank++)
		(void)ranks_take(part->ranks, rank, text, &part->err);
}

/* Rank 1 is waited for; rank 2 is the one that is cut off. */
static void wait_for_another(struct fake_part *part)
{
	struct buffer text = {0};
	take_all(part, &text);
	FAKE_LOCKED(fake.cut[2] = true);
	part->code = ranks_take(part->ranks, 1, &text, &part->err);
	FAKE_LOCKED(fake.cut[2] = false);
	buffer_release(&text);
}

static void hear(struct fake_part *part)
{
	struct buffer text = {0};
	part->code = ranks_hear(part->ranks, 0, &text, &part->err);
	buffer_release(&text);
}

static void answer_and_hear(struct fake_part *part)
{
	part->code = ranks_answer(part->ranks, "here", 4, &part->err);
	if (!part->code)
		hear(part);
}

static void a_rank_that_is_cut_off_is_named(void **state)
{
	(void)state;
	fake_play(parts, NS_PER_S, wait_for_another, answer_and_hear);
	assert_int_equal(parts[0].code, -ETIMEDOUT);
	assert_non_null(strstr(parts[0].err.text, "rank 2 on node-2 has not answered for"));
	/* Each of the others, to which nothing comes any more, finds that out of the leader. */
	for (unsigned i = 1; i < FAKE_RANKS; i++) {
		assert_int_equal(parts[i].code, -ETIMEDOUT);
		assert_non_null(strstr(parts[i].err.text, "rank 0 on node-0 has not answered"));
	}
	assert_int_equal(fake.closed, 0);
}

/* Rank 2 is lost, and rank 1 goes on with the leader for longer than it may be silent. */
static void lose_and_spare(struct fake_part *part)
{
	struct buffer text = {0};
	struct error gone;
	take_all(part, &text);
	pulse_spare(part->ranks->pulse);
	FAKE_LOCKED(fake.cut[2] = true);
	while (!ranks_missing(part->ranks, &gone))
		clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
	part->ranks->spares = true;
	clock_sleep_until_ns(clock_now_ns() + 2 * part->silence_ns);
	part->code = ranks_tell_one(part->ranks, 1, "go", 2, &part->err);
	if (!part->code)
		part->code = ranks_take(part->ranks, 1, &text, &part->err);
	assert_int_equal(ranks_take(part->ranks, 2, &text, &gone), -ETIMEDOUT);
	/* And then the other one: that is known as soon, and not when patience ends. */
	FAKE_LOCKED(fake.cut[1] = true);
	while (!pulse_lost_rank(part->ranks->pulse, 1))
		clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
	part->ranks->patience_ns = NEVER_NS;
	assert_int_equal(ranks_take(part->ranks, 1, &text, &gone), -ETIMEDOUT);
	assert_non_null(strstr(gone.text, "rank 1 on node-1"));
	buffer_release(&text);
}

static void answer_hear_and_answer(struct fake_part *part)
{
	answer_and_hear(part);
	if (!part->code)
		part->code = ranks_answer(part->ranks, "went", 4, &part->err);
}

static void the_others_are_spared(void **state)
{
	(void)state;
	fake_play(parts, NS_PER_S, lose_and_spare, answer_hear_and_answer);
	assert_int_equal(parts[0].code, 0);
	assert_int_equal(parts[1].code, 0);
	assert_int_equal(parts[2].code, -ETIMEDOUT);
}

static void lose_a_connection(struct fake_part *part)
{
	struct buffer text = {0};
	take_all(part, &text);
	FAKE_LOCKED(fake.cut[1] = fake.gone[1] = true);
	part->code = ranks_take(part->ranks, 2, &text, &part->err);
	FAKE_LOCKED(fake.cut[1] = false);
	buffer_release(&text);
}

static void so_is_one_that_mpi_has_lost(void **state)
{
	(void)state;
	fake_play(parts, 2 * NS_PER_S, lose_a_connection, answer_and_hear);
	assert_int_equal(parts[0].code, -ETIMEDOUT);
	assert_non_null(strstr(parts[0].err.text, "rank 1 on node-1"));
}

/* It computes for longer than the silence, and its pulse goes on. */
static void wait_for_long(struct fake_part *part)
{
	struct buffer text = {0};
	part->code = ranks_take(part->ranks, 1, &text, &part->err);
	buffer_release(&text);
}

static void answer_after_long(struct fake_part *part)
{
	if (part->rank != 1)
		return;
	clock_sleep_until_ns(clock_now_ns() + 3 * SOON_NS);
	part->code = ranks_answer(part->ranks, "x", 1, &part->err);
}

static void one_that_computes_for_long_is_waited_for(void **state)
{
	(void)state;
	/* A machine that does not run us for a while may lose one: then it says so, and is asked again. */
	for (uint64_t times = 1; times <= 64; times *= 2) {
		fake_play(parts, times * SOON_NS, wait_for_long, answer_after_long);
		if (parts[0].code == 0)
			break;
	}
	assert_int_equal(parts[0].code, 0);
	assert_int_equal(fake.forgotten, 0);
}

static void take_impatiently(struct fake_part *part)
{
	struct buffer text = {0};
	part->ranks->patience_ns = 50 * NS_PER_MS;
	part->code = ranks_take(part->ranks, 2, &text, &part->err);
	buffer_release(&text);
}

static void say_nothing(struct fake_part *part)
{
	(void)part;
}

static void patience_ends(void **state)
{
	(void)state;
	fake_play(parts, NS_PER_S, take_impatiently, say_nothing);
	assert_int_equal(parts[0].code, -ETIMEDOUT);
	assert_non_null(strstr(parts[0].err.text, "rank 2 on node-2 has not answered for 0 s"));
	assert_int_equal(fake.forgotten, 1);
}

/* The leader is told to stop, and does not wait; the others wait for it, told or not. */
static void stop_and_take(struct fake_part *part)
{
	struct buffer text = {0};
	atomic_store(&parts[1].stop, true);
	atomic_store(&part->stop, true);
	part->code = ranks_take(part->ranks, 1, &text, &part->err);
	buffer_release(&text);
}

static void only_the_leader_stops_waiting(void **state)
{
	(void)state;
	const uint64_t began_ns = clock_now_ns();
	fake_play(parts, NS_PER_S, stop_and_take, hear);
	assert_true(clock_now_ns() - began_ns < 300 * NS_PER_S);
	assert_int_equal(parts[0].code, -EINTR);
	for (unsigned i = 1; i < FAKE_RANKS; i++)
		assert_int_equal(parts[i].code, -ETIMEDOUT);
}

/* --- agreeing --------------------------------------------------------------------------------- */

static int reasons[FAKE_RANKS];

static void agree(struct fake_part *part)
{
	if (reasons[part->rank])
		(void)error_set(&part->err, reasons[part->rank], "reason %u", part->rank);
	part->code = ranks_agree(part->ranks, FAKE_RANKS, reasons[part->rank], &part->err);
}

static void all_agree_or_hear_why_not(void **state)
{
	(void)state;
	memset(reasons, 0, sizeof reasons);
	fake_play(parts, NEVER_NS, agree, agree);
	for (unsigned i = 0; i < FAKE_RANKS; i++)
		assert_int_equal(parts[i].code, 0);
	reasons[1] = -ENOENT;
	reasons[2] = -EACCES;
	fake_play(parts, NEVER_NS, agree, agree);
	assert_int_equal(parts[0].code, -ECANCELED);
	assert_string_equal(parts[0].err.text, "rank 1 on node-1: reason 1");
	assert_int_equal(parts[1].code, -ENOENT);
	assert_string_equal(parts[2].err.text, "reason 2");
	assert_int_equal(parts[2].code, -EACCES);
	memset(reasons, 0, sizeof reasons);
	reasons[0] = -ENOSPC;
	fake_play(parts, NEVER_NS, agree, agree);
	assert_int_equal(parts[0].code, -ENOSPC);
	assert_int_equal(parts[2].code, -ECANCELED);
	assert_string_equal(parts[2].err.text, "rank 0 on node-0: reason 0");
}

static void share(struct fake_part *part)
{
	char name[] = "none";
	const bool leads = ranks_leads(part->ranks);
	if (leads)
		(void)strcpy(name, "ours");
	part->code = ranks_share(part->ranks, FAKE_RANKS, name, sizeof name, &part->err);
	if (!part->code && strcmp(name, "ours") != 0)
		part->code = error_set(&part->err, -EBADMSG, "%s", name);
	/* Another length is no answer to what was asked. */
	if (!part->code)
		part->code = ranks_share(
			part->ranks, FAKE_RANKS, name, leads ? 2 : sizeof name, &part->err);
}

static void the_leader_shares_what_it_has(void **state)
{
	(void)state;
	fake_play(parts, NEVER_NS, share, share);
	assert_int_equal(parts[0].code, 0);
	for (unsigned i = 1; i < FAKE_RANKS; i++) {
		assert_int_equal(parts[i].code, -EPROTO);
		assert_string_equal(parts[i].err.text, "rank 0 sent 2 bytes for 5");
	}
}

/* --- clocks ----------------------------------------------------------------------------------- */

static void map_clocks(struct fake_part *part)
{
	FAKE_LOCKED(fake.ahead_ns[1] = 100000 * (int64_t)NS_PER_S);
	FAKE_LOCKED(fake.ahead_ns[2] = -3 * (int64_t)NS_PER_S);
	FAKE_LOCKED(fake.delay_ns[1] = 2 * NS_PER_MS); /* one way only: the worst case */
	for (unsigned i = 1; i < FAKE_RANKS; i++)
		(void)snprintf(part->ranks->places[i].clock, RANKS_CLOCK_BYTES, "another %u", i);
	part->code = ranks_map_clocks(part->ranks, FAKE_RANKS, &part->err);
	if (!part->code)
		part->code = ranks_tell(part->ranks, FAKE_RANKS, "end", 3, &part->err);
	for (unsigned i = 1; i < FAKE_RANKS && !part->code; i++) {
		const struct rank_place *const place = &part->ranks->places[i];
		const int64_t wrong_ns = place->offset_ns + fake.ahead_ns[i];
		if (place->error_ns == 0 || place->error_ns == UINT64_MAX ||
			(uint64_t)(wrong_ns < 0 ? -wrong_ns : wrong_ns) > place->error_ns)
			part->code = error_set(&part->err, -ERANGE, "rank %u: %lld ns off, of %llu",
				i, (long long)wrong_ns, (unsigned long long)place->error_ns);
	}
}

static void clocks_are_known_within_their_error(void **state)
{
	(void)state;
	fake_play(parts, NEVER_NS, map_clocks, hear);
	if (parts[0].code)
		fail_msg("%s", parts[0].err.text);
}

/* In one process all have one clock, and nobody is asked. */
static void one_clock_needs_no_map(struct fake_part *part)
{
	part->code = ranks_map_clocks(part->ranks, FAKE_RANKS, &part->err);
	for (unsigned i = 1; i < FAKE_RANKS && !part->code; i++)
		if (part->ranks->places[i].offset_ns != 0 || part->ranks->places[i].error_ns != 0)
			part->code = -ERANGE;
}

static void ranks_of_a_node_have_one_clock(void **state)
{
	(void)state;
	fake_play(parts, NEVER_NS, one_clock_needs_no_map, say_nothing);
	assert_int_equal(parts[0].code, 0);
}

/* --- ending ----------------------------------------------------------------------------------- */

/* Who has lost somebody ends all ranks, at its exit, with its status. */
static void what_is_lost_is_ended_at_exit(void **state)
{
	(void)state;
	const pid_t child = fork();
	if (child == 0) {
		struct ranks *const ranks = calloc(1, sizeof *ranks);
		fake.abort_ends = true;
		ranks->plugin = &fake_plugins[0];
		ranks->world.count = FAKE_RANKS;
		ranks->lost = true;
		ranks_close(ranks, 42);
		exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_lost_is_ended_at_exit), /* before there are threads */
		cmocka_unit_test(messages_arrive),
		cmocka_unit_test(long_messages_are_refused),
		cmocka_unit_test(late_answers_are_taken),
		cmocka_unit_test(a_rank_that_is_cut_off_is_named),
		cmocka_unit_test(the_others_are_spared),
		cmocka_unit_test(so_is_one_that_mpi_has_lost),
		cmocka_unit_test(one_that_computes_for_long_is_waited_for),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(only_the_leader_stops_waiting),
		cmocka_unit_test(all_agree_or_hear_why_not),
		cmocka_unit_test(the_leader_shares_what_it_has),
		cmocka_unit_test(clocks_are_known_within_their_error),
		cmocka_unit_test(ranks_of_a_node_have_one_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
