/* Memory that is said to be touched is: a compiler that sees malloc and memset may put it off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/memory.h"
#include "harness/measure/steady.h"
#include "harness/measure/thread_meter.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 8 << 20, PAGES_MAX = 16384 };

/* Share of the whole pages of the range that are in memory. */
static double resident(const void *data, size_t size)
{
	static unsigned char pages[PAGES_MAX];
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t first = ((uintptr_t)data + page - 1) / page * page;
	const size_t count = ((uintptr_t)data + size - first) / page;
	assert_true(count > 0 && count <= PAGES_MAX);
	assert_int_equal(mincore((void *)first, count * page, pages), 0);
	size_t there = 0;
	for (size_t i = 0; i < count; i++)
		there += pages[i] & 1;
	return (double)there / (double)count;
}

static void what_is_touched_is_resident(void **state)
{
	(void)state;
	uint8_t *const data = memory_touched(BYTES / 16, 16);
	assert_non_null(data);
	assert_true(resident(data, BYTES) == 1);
	for (size_t i = 0; i < BYTES; i += 511)
		assert_int_equal(data[i], 0);
	free(data);
	free(memory_touched(0, 8)); /* whatever malloc says to none */
}

static void logs_are_touched_when_they_are_opened(void **state)
{
	(void)state;
	struct service_log log;
	assert_int_equal(service_log_open(&log, 64), 0);
	assert_true(resident(log.histograms, 64 * sizeof *log.histograms) == 1);
	service_log_close(&log);
	struct completions completions;
	assert_int_equal(completions_open(&completions, 16384), 0);
	assert_true(resident(completions.entries, 16384 * sizeof *completions.entries) == 1);
	completions_close(&completions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_touched_is_resident),
		cmocka_unit_test(logs_are_touched_when_they_are_opened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
