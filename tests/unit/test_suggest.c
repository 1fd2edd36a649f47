/* "did you mean": near names are found, far ones are not. */
#include "harness/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const keys[] = {
	"decode.workers", "decode.queue", "batch.size", "read.depth", "read.direct"};
static const char *const engines[] = {"auto", "memory", "pread", "io_uring"};

enum { KEYS = sizeof keys / sizeof keys[0], ENGINES = sizeof engines / sizeof engines[0] };

static void near_names(void **state)
{
	(void)state;
	assert_string_equal(suggest_nearest("decode.worker", keys, KEYS), "decode.workers");
	assert_string_equal(suggest_nearest("decdoe.workers", keys, KEYS), "decode.workers");
	assert_string_equal(suggest_nearest("read.deep", keys, KEYS), "read.depth");
	assert_string_equal(suggest_nearest("iouring", engines, ENGINES), "io_uring");
	assert_string_equal(suggest_nearest("IO_URING", engines, ENGINES), "io_uring");
	assert_string_equal(suggest_nearest("raed", engines, ENGINES), "pread");
	assert_string_equal(suggest_nearest("pread", engines, ENGINES), "pread");
}

static void far_names(void **state)
{
	(void)state;
	assert_null(suggest_nearest("completely.else", keys, KEYS));
	assert_null(suggest_nearest("zz", engines, ENGINES));
	static const char *const short_ones[] = {"job", "gen"};
	assert_null(suggest_nearest("foo", short_ones, 2));
	assert_string_equal(suggest_nearest("jop", short_ones, 2), "job");
	assert_null(suggest_nearest("", engines, ENGINES));
	assert_null(suggest_nearest("x", NULL, 0));
	static const char *const one[] = {"ab"};
	assert_null(suggest_nearest("x", one, 1));
}

/* A swap of neighbours costs one, not two: it wins over a name two letters away. */
static void swap_is_one_edit(void **state)
{
	(void)state;
	static const char *const names[] = {"wxyzab", "bacdef"};
	assert_string_equal(suggest_nearest("abcdef", names, 2), "bacdef");
	static const char *const both[] = {"xycdef", "bacdef"};
	assert_string_equal(suggest_nearest("abcdef", both, 2), "bacdef");
}

static void first_of_equals(void **state)
{
	(void)state;
	static const char *const names[] = {"cat", "bat"};
	assert_string_equal(suggest_nearest("hat", names, 2), "cat");
}

static void long_words(void **state)
{
	(void)state;
	char word[4096];
	memset(word, 'a', sizeof word - 1);
	word[sizeof word - 1] = '\0';
	const char *const names[] = {word, "auto"};
	assert_null(suggest_nearest(word, names, 2));
	assert_string_equal(suggest_nearest("atuo", names, 2), "auto");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_names),
		cmocka_unit_test(far_names),
		cmocka_unit_test(swap_is_one_edit),
		cmocka_unit_test(first_of_equals),
		cmocka_unit_test(long_words),
	};
	return cmocka_run_group_tests_name("suggest", tests, NULL, NULL);
}
