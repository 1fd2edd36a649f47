/* What a follower does with messages that it cannot heed, and a leader with answers that it does not want: nobody is left waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_mpi.h"

#include "harness/command/party.h"

static const uint64_t NEVER_NS = 600 * NS_PER_S; /* a guard: no rank of the test is lost */

static struct fake_part parts[FAKE_RANKS];
static struct party party_of(struct fake_part *part)
{
	return (struct party){.calls = &party_of_ranks, .ranks = part->ranks};
}

/* --- following -------------------------------------------------------------------------------- */

static const char *told;

/* The end is for those that go on. */
static void tell_it(struct fake_part *part)
{
	static const char end[] = "{\"do\":\"end\"}";
	part->code = ranks_tell(part->ranks, FAKE_RANKS, told, strlen(told), &part->err);
	if (!part->code)
		part->code = ranks_tell(part->ranks, FAKE_RANKS, end, strlen(end), &part->err);
}

static void follow(struct fake_part *part)
{
	const struct invocation invocation = {.stop = &part->stop};
	struct party party = party_of(part);
	part->code = party.calls->follow(&party, &invocation, &part->err);
}

static void expect_end(const char *message, const char *why)
{
	told = message;
	fake_play(parts, NEVER_NS, tell_it, follow);
	assert_int_equal(parts[0].code, 0);
	for (unsigned i = 1; i < FAKE_RANKS; i++) {
		assert_int_not_equal(parts[i].code, 0);
		assert_non_null(strstr(parts[i].err.text, why));
	}
}

/* The leader waits for an answer to each of them: a follower that has none ends, with its reason, and so ends all. */
static void a_follower_that_cannot_answer_ends(void **state)
{
	(void)state;
	expect_end("no JSON", "a message of another rank is not JSON");
	expect_end("{\"do\":\"run\",\"config\":\"[nonsense]\\n\"}", "nonsense");
	expect_end("{\"do\":\"run\",\"config\":\"\",\"files\":[5]}", "a sample that is not there");
}

static void a_follower_ends_when_it_is_told_to(void **state)
{
	(void)state;
	told = "{\"do\":\"end\"}";
	fake_play(parts, NEVER_NS, tell_it, follow);
	for (unsigned i = 0; i < FAKE_RANKS; i++)
		assert_int_equal(parts[i].code, 0);
}

/* --- leading ---------------------------------------------------------------------------------- */

static int hear(struct fake_part *part)
{
	struct buffer text = {0};
	const int code = ranks_hear(part->ranks, 0, &text, &part->err);
	buffer_release(&text);
	return code;
}

static void begin(struct fake_part *part)
{
	struct plan plan = {0};
	struct party party = party_of(part);
	config_init(&plan.config);
	part->code = party_begin(&party, &plan, &part->err);
	plan_close(&plan);
}

/* Both are of another program. */
static void answer_another_version(struct fake_part *part)
{
	static const char identity[] = "{\"version\":\"0.0.1\"}";
	part->code = hear(part);
	for (int turn = 0; turn < 2 && !part->code; turn++)
		part->code = ranks_agree(part->ranks, FAKE_RANKS, 0, &part->err);
	if (!part->code)
		part->code = ranks_answer(part->ranks, identity, strlen(identity), &part->err);
}

static void the_first_that_differs_is_named(void **state)
{
	(void)state;
	fake_play(parts, NEVER_NS, begin, answer_another_version);
	assert_int_equal(parts[0].code, -EDOM);
	assert_non_null(strstr(
		parts[0].err.text, "rank 1 on node-1 has another version of mlbench than rank 0"));
	assert_null(fake.messages);
}

static void begin_records(struct fake_part *part)
{
	char nowhere[] = "/dev/null/job";
	struct party party = party_of(part);
	part->code = party_begin_records(&party, &(struct record){.folder = nowhere}, &part->err);
}

static void answer_a_header(struct fake_part *part)
{
	part->code = hear(part);
	if (!part->code)
		part->code = ranks_answer(part->ranks, "{}", 2, &part->err);
}

/* Real messages of that length wait until they are taken. */
static void all_headers_are_taken_where_one_cannot_be_kept(void **state)
{
	(void)state;
	fake_play(parts, NEVER_NS, begin_records, answer_a_header);
	assert_int_not_equal(parts[0].code, 0);
	assert_non_null(strstr(parts[0].err.text, "/dev/null"));
	assert_null(fake.messages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_follower_ends_when_it_is_told_to),
		cmocka_unit_test(a_follower_that_cannot_answer_ends),
		cmocka_unit_test(the_first_that_differs_is_named),
		cmocka_unit_test(all_headers_are_taken_where_one_cannot_be_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
