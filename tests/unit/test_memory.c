/* Memory that is said to be touched is: a compiler that sees malloc and memset may put it off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/child.h"

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

static bool map_without_huge_pages(const void *context, char *report, size_t room)
{
	struct memory_block block;
	(void)context;
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0 || memory_map(&block, 8 << 20, true) != 0)
		return false;
	(void)snprintf(report, room, "%s", memory_pages_name(block.pages));
	memory_unmap(&block);
	return true;
}

/* Where huge pages are off the kernel accepts advice to use them all the same: what it gave counts. */
static void pages_are_those_that_the_kernel_gave(void **state)
{
	(void)state;
	char report[CHILD_REPORT_BYTES];
	assert_true(child_run(map_without_huge_pages, NULL, report, sizeof report));
	if (strcmp(report, "2 MiB huge pages") !=
		0) /* reserved on this node, and no transparent ones */
		assert_string_equal(report, "4 KiB pages");
	struct memory_block block;
	assert_int_equal(memory_map(&block, 8 << 20, false), 0);
	assert_int_equal(block.pages, MEMORY_PAGES_NORMAL);
	memory_unmap(&block);
}

static void kinds_of_pages(void **state)
{
	(void)state;
	assert_true(memory_pages_differ("4 KiB pages", "transparent huge pages"));
	assert_true(memory_pages_differ("2 MiB huge pages", "4 KiB pages"));
	assert_false(memory_pages_differ("2 MiB huge pages", "transparent huge pages"));
	assert_false(memory_pages_differ("4 KiB pages", ""));
	assert_false(memory_pages_differ("pages of unknown size", "4 KiB pages"));
}

/* Another size takes over the touched pages that it can use, and no more is mapped than it needs. */
static void a_block_keeps_its_pages(void **state)
{
	(void)state;
	enum { SMALL = 1 << 20, LARGE = 4 << 20 };
	struct memory_block block = {0};
	const uint64_t before = memory_mapped_bytes();
	assert_int_equal(memory_remap(&block, SMALL, false), 0);
	memset(block.data, 7, SMALL);
	memory_hide_from_forks(&block);
	assert_int_equal(memory_remap(&block, LARGE, false), 0);
	assert_true(memory_mapped_bytes() - before == LARGE);
	assert_int_equal(((uint8_t *)block.data)[SMALL - 1], 7);
	assert_int_equal(((uint8_t *)block.data)[LARGE - 1], 0);
	assert_true(resident(block.data, LARGE) == 1);
	void *const data = block.data;
	assert_int_equal(memory_remap(&block, SMALL - 100, false), 0);
	assert_true(block.data == data && memory_mapped_bytes() - before == SMALL);
	assert_int_equal(((uint8_t *)block.data)[SMALL - 1], 7);
	/* Pages of another kind are mapped anew. */
	assert_int_equal(memory_remap(&block, LARGE, true), 0);
	assert_int_equal(((uint8_t *)block.data)[0], 0);
	assert_true(memory_mapped_bytes() - before == LARGE);
	memory_unmap(&block);
	assert_true(memory_mapped_bytes() == before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_touched_is_resident),
		cmocka_unit_test(logs_are_touched_when_they_are_opened),
		cmocka_unit_test(pages_are_those_that_the_kernel_gave),
		cmocka_unit_test(kinds_of_pages),
		cmocka_unit_test(a_block_keeps_its_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
