/* Corruption that is planted in results, memory and storage: each is found, located and counted, and nothing else is. */
#include "harness/checks/core_list.h"
#include "harness/checks/corruption.h"
#include "tests/unit/check_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static struct check_fixture fixture;

#define COMPUTE                      \
	"passes = 3\n"               \
	"repeatable.decode = <= 0\n" \
	"repeatable.gemm = <= 0\n"   \
	"repeatable.golden = <= 0\n"

static void open_check(const char *criteria)
{
	check_fixture_open(&fixture, "repeatable", criteria);
}

static void run_with(const char *criteria, const char *planted)
{
	if (planted)
		assert_int_equal(setenv(CORRUPTION_VARIABLE, planted, 1), 0);
	open_check(criteria);
	check_fixture_run(&fixture);
	assert_int_equal(unsetenv(CORRUPTION_VARIABLE), 0);
	if (getenv("MLBENCH_TEST_VERBOSE"))
		check_fixture_print(&fixture);
	if (fixture.code != -EINVAL)
		assert_int_equal(
			check_fixture_notes(&fixture, "corruption was planted"), planted != NULL);
}

static int close_fixture(void **state)
{
	(void)state;
	check_fixture_close(&fixture);
	return 0;
}

static double sum_of(const char *figure)
{
	return check_fixture_sum(&fixture, figure);
}

static bool is_missing(const char *figure, const char *place)
{
	return check_fixture_missing(&fixture, figure, place)[0] != '\0';
}

static bool has_events(void)
{
	return json_array_size(json_object_get(fixture.gather.check, "events")) > 0;
}

static unsigned last_core(char place[CORE_PLACE_BYTES])
{
	struct core_list cores;
	assert_int_equal(core_list_open(&cores, &fixture.err), 0);
	const unsigned last = cores.cores[cores.count - 1];
	(void)core_place(last, place);
	core_list_close(&cores);
	return last;
}

static void a_sound_node_has_no_wrong_result(void **state)
{
	(void)state;
	char place[CORE_PLACE_BYTES];
	run_with(COMPUTE, NULL);
	assert_int_equal(fixture.code, 0);
	(void)last_core(place);
	assert_true(check_fixture_number(&fixture, "repeatable.decode", place) == 0);
	assert_true(check_fixture_number(&fixture, "repeatable.gemm", place) == 0);
	assert_true(sum_of("repeatable.decode") == 0 && sum_of("repeatable.gemm") == 0);
	assert_true(check_fixture_notes(&fixture, "code path: libjpeg-turbo"));
	/* Pictures have a golden checksum, or the reason why not. */
	assert_true(check_fixture_number(&fixture, "repeatable.golden", "pictures") == 0 ||
		    is_missing("repeatable.golden", "pictures"));
}

static void a_flipped_bit_is_found(
	const char *target, const char *figure, const char *name, const char *where)
{
	char place[CORE_PLACE_BYTES];
	char planted[96];
	(void)snprintf(planted, sizeof planted, "%s:core=%u:nth=3:at=1025:bit=6", target,
		last_core(place));
	run_with(COMPUTE, planted);
	assert_int_equal(fixture.code, 0);
	assert_true(check_fixture_number(&fixture, figure, place) == 1);
	assert_true(sum_of("repeatable.decode") + sum_of("repeatable.gemm") == 1);
	assert_true(check_fixture_tells(&fixture, figure, place, name));
	assert_true(check_fixture_tells(&fixture, figure, place, where));
	assert_true(
		check_fixture_tells(&fixture, figure, place, "computed again there: 0 of 8 wrong"));
}

/* Byte 1,025 is in element 256 of 4 bytes, or 128 of 8; and its bit 6 is 8 + 6. */
static void a_bit_of_a_product_is_found(void **state)
{
	(void)state;
	a_flipped_bit_is_found("gemm", "repeatable.gemm", "sgemm of 384 x 384 x 384: 1 of ",
		"row 0, column 256 is 0x");
	char place[CORE_PLACE_BYTES];
	(void)last_core(place);
	assert_true(check_fixture_tells(&fixture, "repeatable.gemm", place, "(bit 14); 1 of "));
}

static void a_bit_of_a_picture_is_found(void **state)
{
	(void)state;
	a_flipped_bit_is_found(
		"decode", "repeatable.decode", "jpeg picture 2 of ", "row 1, column 32 is 0x");
}

static void a_core_that_is_always_wrong_is_found(void **state)
{
	(void)state;
	char place[CORE_PLACE_BYTES];
	char planted[64];
	struct core_list cores;
	assert_int_equal(core_list_open(&cores, &fixture.err), 0);
	const size_t count = cores.count;
	core_list_close(&cores);
	(void)snprintf(planted, sizeof planted, "gemm:core=%u:nth=0", last_core(place));
	run_with(COMPUTE, planted);
	const double results = check_fixture_number(&fixture, "repeatable.gemm", place);
	assert_true(results > 0);
	/* Of two cores it is known by golden checksums alone, of one by nothing else. */
	const bool told = count > 2 || !is_missing("repeatable.golden", "products");
	if (told) {
		assert_true(sum_of("repeatable.gemm") == results);
		assert_true(check_fixture_tells(
			&fixture, "repeatable.gemm", place, "computed again there: 8 of 8 wrong"));
	} else if (count == 2) {
		assert_true(check_fixture_tells(
			&fixture, "repeatable.gemm", place, "different results equally often"));
	}
}

#define MEMORY          \
	"passes = 1\n"  \
	"size = 8MiB\n" \
	"repeatable.memory = <= 0\n"

static void sound_memory_has_no_wrong_word(void **state)
{
	(void)state;
	run_with(MEMORY, NULL);
	assert_int_equal(fixture.code, 0);
	assert_true(check_fixture_number(&fixture, "repeatable.memory", "NUMA node 0") == 0);
	assert_true(check_fixture_notes(&fixture, "1 whole passes of 4 patterns"));
	assert_false(has_events());
}

/* The nth filling is the nth pattern. */
static void a_bit_of_memory_is_found(void **state)
{
	(void)state;
	static const char *const patterns[] = {"address", "walking", "random", "inversions"};
	for (unsigned i = 0; i < 4; i++) {
		char planted[64];
		char name[32];
		(void)snprintf(
			planted, sizeof planted, "memory:node=0:nth=%u:at=12345:bit=3", i + 1);
		(void)snprintf(name, sizeof name, "pattern '%s'", patterns[i]);
		run_with(MEMORY, planted);
		assert_int_equal(fixture.code, 0);
		assert_true(
			check_fixture_number(&fixture, "repeatable.memory", "NUMA node 0") == 1);
		assert_true(
			check_fixture_tells(&fixture, "repeatable.memory", "NUMA node 0", name));
		/* Byte 12,345 is the second of the word at 0x3038. */
		assert_true(check_fixture_tells(
			&fixture, "repeatable.memory", "NUMA node 0", "(bit 11) at offset 0x3038"));
		assert_true(check_fixture_tells(
			&fixture, "repeatable.memory", "NUMA node 0", ": 8 of 8 wrong"));
		if (i < 3)
			check_fixture_close(&fixture);
	}
}

#define STORAGE         \
	"size = 4MiB\n" \
	"repeatable.storage = <= 0\n"

static void sound_storage_has_no_wrong_block(void **state)
{
	(void)state;
	run_with(STORAGE, NULL);
	assert_int_equal(fixture.code, 0);
	assert_true(check_fixture_number(&fixture, "repeatable.storage", "") == 0);
	assert_true(check_fixture_notes(&fixture, "storage: 2,048 blocks of 4 KiB in 2 files"));
}

static void each_fault_of_storage_is_told_apart(void **state)
{
	(void)state;
	static const struct {
		const char *planted, *said;
	} faults[] = {
		{"storage:block=7:kind=bits:at=100:bit=2",
			"bits: block 7 (byte 28672) of scratch file 0: 1 bit differs, the first at byte 100"},
		{"storage:block=7:kind=stale",
			"stale: block 7 (byte 28672) of scratch file 0: it is of generation 1, not 2"},
		{"storage:block=7:kind=torn",
			"torn: block 7 (byte 28672) of scratch file 0: 4 of 8 sectors are of generation 2, 4 of"},
		{"storage:block=7:kind=misplaced",
			"misplaced: block 7 (byte 28672) of scratch file 0: it holds block 8 of the same file"},
		{"storage:block=7:kind=missing",
			"missing: block 7 (byte 28672) of scratch file 0: it is zeros"},
	};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		run_with(STORAGE, faults[i].planted);
		assert_int_equal(fixture.code, 0);
		assert_true(check_fixture_number(&fixture, "repeatable.storage", "") == 1);
		assert_true(
			check_fixture_tells(&fixture, "repeatable.storage", "", faults[i].said));
		if (i + 1 < sizeof faults / sizeof *faults)
			check_fixture_close(&fixture);
	}
}

/* What a file may not grow beyond stands for a full disk: the reason is another word, the way is the same. */
static void a_full_disk_is_an_error_in_words(void **state)
{
	(void)state;
	struct rlimit before;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	const struct rlimit small = {.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	run_with(STORAGE, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(fixture.code, -EFBIG);
	assert_non_null(strstr(fixture.err.text, "at byte 1048576"));
	assert_true(is_missing("repeatable.storage", ""));
	assert_true(check_fixture_number(&fixture, "repeatable.storage", "") < 0);
}

static void what_cannot_be_planted_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {"gemms:core=1", "gemm:nodes=1", "gemm:core",
		"gemm:core=-1", "gemm:bit=8", "gemm:kind=torn", "storage:kind=unreadable",
		"storage:kind=wrong", "memory:core=1", "gemm:nth=1x",
		"gemm,gemm,gemm,gemm,gemm,gemm,gemm,gemm,gemm"};
	struct corruptions corruptions;
	struct error err;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_int_equal(corruptions_parse(texts[i], &corruptions, &err), -EINVAL);
	assert_int_equal(corruptions_parse("gemm:core=1:nth=3,storage:block=7:kind=stale",
				 &corruptions, &err),
		0);
	assert_int_equal(corruptions.count, 2);
	assert_true(corruptions.list[0].target == CORRUPT_GEMM && corruptions.list[0].place == 1 &&
		    corruptions.list[0].nth == 3);
	assert_true(corruptions.list[1].block == 7 && corruptions.list[1].kind == BLOCK_STALE);
	run_with(STORAGE, "nonsense");
	assert_int_equal(fixture.code, -EINVAL);
}

static void a_stop_ends_it(void **state)
{
	(void)state;
	const atomic_bool stop = true;
	open_check(COMPUTE "repeatable.memory = <= 0\nrepeatable.storage = <= 0\n");
	fixture.context.stop = &stop;
	check_fixture_run(&fixture);
	assert_int_equal(fixture.code, -EINTR);
}

/* A deadline is no stop: what was not reached is missing, with the reason. */
static void a_deadline_leaves_what_was_not_reached(void **state)
{
	(void)state;
	open_check(MEMORY);
	fixture.context.deadline_ns = 1;
	check_fixture_run(&fixture);
	assert_int_equal(fixture.code, 0);
	assert_non_null(is_missing("repeatable.memory", "NUMA node 0"));
}

static void what_was_not_computed_is_not_wrong(void **state)
{
	(void)state;
	char place[CORE_PLACE_BYTES];
	open_check(COMPUTE);
	fixture.context.deadline_ns = 1;
	check_fixture_run(&fixture);
	assert_int_equal(fixture.code, 0);
	(void)last_core(place);
	assert_true(is_missing("repeatable.gemm", place));
	assert_true(is_missing("repeatable.decode", place));
	assert_true(is_missing("repeatable.golden", "pictures"));
	assert_int_equal(json_array_size(json_object_get(fixture.gather.check, "facts")), 0);
}

static void only_what_is_asked_for_is_done(void **state)
{
	(void)state;
	run_with("size = 1MiB\nrepeatable.storage = <= 0\n", NULL);
	assert_int_equal(json_array_size(json_object_get(fixture.gather.check, "facts")), 1);
	assert_int_equal(json_array_size(json_object_get(fixture.gather.check, "missing")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_sound_node_has_no_wrong_result, close_fixture),
		cmocka_unit_test_teardown(a_bit_of_a_product_is_found, close_fixture),
		cmocka_unit_test_teardown(a_bit_of_a_picture_is_found, close_fixture),
		cmocka_unit_test_teardown(a_core_that_is_always_wrong_is_found, close_fixture),
		cmocka_unit_test_teardown(sound_memory_has_no_wrong_word, close_fixture),
		cmocka_unit_test_teardown(a_bit_of_memory_is_found, close_fixture),
		cmocka_unit_test_teardown(sound_storage_has_no_wrong_block, close_fixture),
		cmocka_unit_test_teardown(each_fault_of_storage_is_told_apart, close_fixture),
		cmocka_unit_test_teardown(a_full_disk_is_an_error_in_words, close_fixture),
		cmocka_unit_test_teardown(what_cannot_be_planted_is_refused, close_fixture),
		cmocka_unit_test_teardown(a_stop_ends_it, close_fixture),
		cmocka_unit_test_teardown(a_deadline_leaves_what_was_not_reached, close_fixture),
		cmocka_unit_test_teardown(what_was_not_computed_is_not_wrong, close_fixture),
		cmocka_unit_test_teardown(only_what_is_asked_for_is_done, close_fixture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
