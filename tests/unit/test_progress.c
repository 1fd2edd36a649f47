/* What the answers to reads mean, step by step. */
#include "tests/unit/source_fixture.h"
#include "workloads/source/engines.h"

static struct source_counter counter;

static void reset(void)
{
	memset(&counter, 0, sizeof counter);
}

/* The first read asks for more than is expected wherever there is room, in whole blocks. */
static void test_first_want(void **state)
{
	(void)state;
	static const struct {
		uint64_t expected;
		size_t room, want;
	} cases[] = {
		{0, 0, 0},
		{0, 4096, 4096},
		{1, 4096, 4096},
		{4095, 4096, 4096},
		{4096, 4096, 4096},
		{4096, 8192, 8192},
		{4097, 8192, 8192},
		{100, 1 << 20, 4096},
		{10000, 4096, 4096},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct read_progress progress;
		read_progress_start(&progress, cases[i].expected, cases[i].room, true);
		assert_int_equal(progress.want, cases[i].want);
		assert_int_equal(progress.got, 0);
	}
}

static void test_whole_file(void **state)
{
	(void)state;
	reset();
	struct read_progress progress;
	read_progress_start(&progress, 5000, 8192, true);
	assert_int_equal(read_progress_answer(&progress, 5000, &counter), READ_STEP_DONE);
	assert_int_equal(progress.got, 5000);
	read_progress_start(&progress, 8192, 8192, true); /* fills its room: may be larger */
	assert_int_equal(read_progress_answer(&progress, 8192, &counter), READ_STEP_SIZE);
	assert_int_equal(read_progress_size(&progress, 8192), READ_STEP_DONE);
	assert_int_equal(read_progress_size(&progress, 8193), READ_STEP_FAILED);
	assert_int_equal(progress.status, -EFBIG);
	read_progress_start(&progress, 0, 0, false);
	assert_int_equal(read_progress_answer(&progress, 0, &counter), READ_STEP_SIZE);
	assert_int_equal(read_progress_size(&progress, 0), READ_STEP_DONE);
	assert_int_equal(atomic_load(&counter.short_reads), 0);
}

static void test_short_reads(void **state)
{
	(void)state;
	reset();
	struct read_progress progress;
	read_progress_start(&progress, 10000, 12288, true);
	assert_int_equal(read_progress_answer(&progress, 4096, &counter), READ_STEP_MORE);
	assert_int_equal(read_progress_answer(&progress, 4096, &counter), READ_STEP_MORE);
	assert_int_equal(read_progress_answer(&progress, 1808, &counter), READ_STEP_DONE);
	assert_int_equal(progress.got, 10000);
	assert_int_equal(atomic_load(&counter.short_reads), 2);
	read_progress_start(&progress, 10000, 12288, false); /* shrunk */
	assert_int_equal(read_progress_answer(&progress, 700, &counter), READ_STEP_MORE);
	assert_int_equal(read_progress_answer(&progress, 0, &counter), READ_STEP_DONE);
	assert_int_equal(progress.got, 700);
	/* A direct read inside a block: the end of the file, or else it must go on without
	 * O_DIRECT. */
	read_progress_start(&progress, 10000, 12288, true);
	assert_int_equal(read_progress_answer(&progress, 700, &counter), READ_STEP_SIZE);
	assert_int_equal(read_progress_size(&progress, 700), READ_STEP_DONE);
	assert_int_equal(read_progress_size(&progress, 10000), READ_STEP_BUFFERED);
	assert_false(progress.direct);
	assert_int_equal(read_progress_answer(&progress, 9300, &counter), READ_STEP_DONE);
	assert_int_equal(progress.got, 10000);
}

static void test_grown_file(void **state)
{
	(void)state;
	reset();
	struct read_progress progress;
	read_progress_start(&progress, 1000, 16384, false);
	assert_int_equal(read_progress_answer(&progress, 4096, &counter), READ_STEP_MORE);
	assert_int_equal(progress.want, 16384);
	assert_int_equal(read_progress_answer(&progress, 904, &counter), READ_STEP_MORE);
	assert_int_equal(read_progress_answer(&progress, 0, &counter), READ_STEP_DONE);
	assert_int_equal(progress.got, 5000);
}

static void test_errors(void **state)
{
	(void)state;
	reset();
	struct read_progress progress;
	read_progress_start(&progress, 5000, 8192, true);
	assert_int_equal(
		read_progress_open_failed(&progress, -EINVAL, &counter), READ_STEP_BUFFERED);
	assert_false(progress.direct);
	assert_int_equal(read_progress_open_failed(&progress, -EINVAL, &counter), READ_STEP_FAILED);
	assert_int_equal(progress.status, -EINVAL);
	read_progress_start(&progress, 5000, 8192, false);
	assert_int_equal(read_progress_answer(&progress, -EINTR, &counter), READ_STEP_MORE);
	assert_int_equal(read_progress_answer(&progress, -ECANCELED, &counter), READ_STEP_MORE);
	assert_int_equal(read_progress_answer(&progress, -EIO, &counter), READ_STEP_FAILED);
	assert_int_equal(progress.status, -EIO);
	assert_int_equal(atomic_load(&counter.retries), 3);
	/* Patience ends. */
	read_progress_start(&progress, 5000, 8192, false);
	for (int i = 0; i < READ_RETRIES_MAX; i++)
		assert_int_equal(
			read_progress_answer(&progress, -EAGAIN, &counter), READ_STEP_MORE);
	assert_int_equal(read_progress_answer(&progress, -EAGAIN, &counter), READ_STEP_FAILED);
	assert_int_equal(progress.status, -EAGAIN);
}

/* A part asks for what it has, and for whole blocks where it is read directly. */
static void test_parts(void **state)
{
	(void)state;
	reset();
	struct read_progress progress;
	read_progress_start_part(&progress, 700, 5000, 8192, true);
	assert_false(progress.direct); /* it begins within a block */
	assert_int_equal(progress.want, 5000);
	assert_int_equal(read_progress_answer(&progress, 3000, &counter), READ_STEP_MORE);
	assert_int_equal(read_progress_answer(&progress, 2000, &counter), READ_STEP_DONE);
	assert_int_equal(progress.got, 5000);
	assert_int_equal(atomic_load(&counter.short_reads), 1);
	read_progress_start_part(&progress, 8192, 5000, 8192, true);
	assert_true(progress.direct);
	assert_int_equal(progress.want, 8192);
	assert_int_equal(read_progress_answer(&progress, 8192, &counter), READ_STEP_DONE);
	assert_int_equal(progress.got, 5000); /* the rest is the next sample's */
	read_progress_start_part(
		&progress, 8192, 5000, 8192, true); /* direct, and short in a block */
	assert_int_equal(read_progress_answer(&progress, 700, &counter), READ_STEP_SIZE);
	assert_int_equal(read_progress_size(&progress, 8192 + 5000), READ_STEP_BUFFERED);
	assert_int_equal(read_progress_answer(&progress, 4300, &counter), READ_STEP_DONE);
	read_progress_start_part(&progress, 8192, 5000, 8192, true);
	assert_int_equal(read_progress_answer(&progress, 700, &counter), READ_STEP_SIZE);
	assert_int_equal(read_progress_size(&progress, 8192 + 700), READ_STEP_FAILED);
	assert_int_equal(progress.status, -ENODATA);
	read_progress_start_part(&progress, 100, 5000, 8192, false);
	assert_int_equal(read_progress_answer(&progress, 0, &counter), READ_STEP_FAILED);
	assert_int_equal(progress.status, -ENODATA);
	read_progress_start_part(&progress, 100, 0, 0, false);
	assert_int_equal(read_progress_answer(&progress, 0, &counter), READ_STEP_DONE);
	read_progress_start_part(&progress, 100, 5000, 4096, false); /* no room */
	assert_int_equal(read_progress_answer(&progress, 4096, &counter), READ_STEP_FAILED);
	assert_int_equal(progress.status, -EFBIG);
	const struct read_request part = {.offset = 64, .length = 9, .part = true, .room = 4096};
	read_progress_request(&progress, &part, false);
	assert_int_equal(progress.offset, 64);
	assert_int_equal(progress.want, 9);
	const struct read_request whole = {.length = 9, .room = 4096};
	read_progress_request(&progress, &whole, false);
	assert_int_equal(progress.want, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_want),
		cmocka_unit_test(test_whole_file),
		cmocka_unit_test(test_short_reads),
		cmocka_unit_test(test_grown_file),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
