/* Blocks that say which they are: every fault is told apart, wherever in the block it is, and files that end, fill the disk or
 * cannot be read say so. */
#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "harness/checks/checked_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCKS = 600, FLIPS = 10000 }; /* more than two requests, and a part of one */

static const struct checked_id wanted = {.file = 0x1234, .block = 77, .generation = 5};
static uint8_t block[CHECKED_BLOCK_BYTES];
static char text[CHECKED_TEXT_BYTES];
static char folder[] = "/var/tmp/mlbench-checked-XXXXXX";
static char path[sizeof folder + 8];
static struct checked_file file;
static struct checked_report report;
static struct error err;

static enum block_state judge(void)
{
	return checked_block_judge(block, sizeof block, &wanted, text);
}

static void fill(uint64_t of_file, uint64_t number, uint32_t generation, size_t begin, size_t end)
{
	uint8_t other[CHECKED_BLOCK_BYTES];
	checked_block_fill(other,
		&(struct checked_id){.file = of_file, .block = number, .generation = generation});
	memcpy(block + begin, other + begin, end - begin);
}

static void whole(uint64_t of_file, uint64_t number, uint32_t generation)
{
	fill(of_file, number, generation, 0, sizeof block);
}

static void right_blocks_are_right(void **state)
{
	(void)state;
	whole(wanted.file, wanted.block, wanted.generation);
	assert_int_equal(judge(), BLOCK_RIGHT);
	assert_string_equal(text, "");
}

/* Any bit of a block, that of its checksum and its name, too. */
static void every_flipped_bit_is_found(void **state)
{
	(void)state;
	struct rng rng;
	char where[32];
	rng_init(&rng, 1, 0);
	for (unsigned i = 0; i < FLIPS; i++) {
		const size_t at = (size_t)rng_below(&rng, sizeof block);
		whole(wanted.file, wanted.block, wanted.generation);
		block[at] ^= (uint8_t)(1U << rng_below(&rng, 8));
		assert_int_equal(judge(), BLOCK_BITS);
		(void)snprintf(where, sizeof where, "the first at byte %zu:", at);
		assert_non_null(strstr(text, where));
		assert_non_null(strstr(text, "1 bit differs"));
	}
}

static void kinds_are_told_apart(void **state)
{
	(void)state;
	whole(wanted.file, wanted.block, 4);
	assert_int_equal(judge(), BLOCK_STALE);
	assert_string_equal(text, "it is of generation 4, not 5");
	whole(wanted.file, 78, wanted.generation);
	assert_int_equal(judge(), BLOCK_MISPLACED);
	assert_string_equal(text, "it holds block 78 of the same file, generation 5");
	whole(0xabc, wanted.block, wanted.generation);
	assert_int_equal(judge(), BLOCK_MISPLACED);
	assert_string_equal(text, "it holds block 77 of file abc, generation 5");
	memset(block, 0, sizeof block);
	assert_int_equal(judge(), BLOCK_MISSING);
	assert_string_equal(text, "it is zeros");
	memset(block, 0x5a, sizeof block);
	assert_int_equal(judge(), BLOCK_BITS);
	assert_int_equal(checked_block_judge(block, 100, &wanted, text), BLOCK_MISSING);
	assert_string_equal(text, "the file ends after 100 bytes of it");
}

/* Wherever writing was cut off: between sectors or within one, behind old content or behind none. */
static void torn_blocks_are_torn(void **state)
{
	(void)state;
	for (size_t cut = 16; cut < sizeof block; cut += 16) {
		whole(wanted.file, wanted.block, 4);
		fill(wanted.file, wanted.block, wanted.generation, 0, cut);
		/* Within the last sector there is nothing that is whole and old. */
		const bool last = cut > sizeof block - CHECKED_SECTOR_BYTES;
		assert_int_equal(judge(), last ? BLOCK_BITS : BLOCK_TORN);
		whole(wanted.file, wanted.block, wanted.generation);
		memset(block + cut, 0, sizeof block - cut);
		assert_int_equal(judge(), last ? BLOCK_BITS : BLOCK_TORN);
	}
}

/* --- files ------------------------------------------------------------------------------------ */

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(path, sizeof path, "%s/file", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return files_remove_tree(folder, NULL);
}

static int close_file(void **state)
{
	(void)state;
	checked_file_close(&file);
	assert_int_not_equal(access(path, F_OK), 0);
	return 0;
}

static void open_and_write(bool direct)
{
	report = (struct checked_report){0};
	assert_int_equal(checked_file_open(&file, path, 9, BLOCKS, direct, &err), 0);
	assert_int_equal(checked_file_write(&file, NULL, NULL, &err), 0);
	assert_int_equal(checked_file_write(&file, NULL, NULL, &err), 0);
}

static void verify(void)
{
	report = (struct checked_report){0};
	assert_int_equal(checked_file_verify(&file, NULL, NULL, &report, &err), 0);
	assert_int_equal(report.checked, BLOCKS);
}

static void what_was_written_comes_back(void **state)
{
	(void)state;
	for (int direct = 0; direct < 2; direct++) {
		open_and_write(direct != 0);
		verify();
		assert_int_equal(checked_report_wrong(&report), 0);
		assert_int_equal(report.counts[BLOCK_RIGHT], BLOCKS);
		checked_file_close(&file);
	}
}

/* As where a file system knows no direct reads. */
static void what_is_evicted_comes_back(void **state)
{
	(void)state;
	open_and_write(false);
	(void)close(file.direct_fd);
	file.direct_fd = -1;
	verify();
	assert_int_equal(checked_report_wrong(&report), 0);
}

static void all_planted_faults_are_found(void **state)
{
	(void)state;
	struct corruptions planted;
	assert_int_equal(
		corruptions_parse("storage:block=0:kind=bits,storage:block=255:kind=stale,"
				  "storage:block=256:kind=torn,storage:block=300:kind=misplaced,"
				  "storage:block=599:kind=missing",
			&planted, &err),
		0);
	static const uint64_t at[] = {0, 255, 256, 300, 599};
	open_and_write(false);
	assert_int_equal(checked_file_plant(&file, &planted, &err), 0);
	verify();
	assert_int_equal(checked_report_wrong(&report), 5);
	assert_int_equal(report.finding_count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(report.findings[i].block, at[i]);
		assert_int_equal(report.findings[i].state, planted.list[i].kind);
	}
	/* What is written anew is right again. */
	assert_int_equal(checked_file_write(&file, NULL, NULL, &err), 0);
	verify();
	assert_int_equal(checked_report_wrong(&report), 0);
}

static void a_file_that_lost_its_end_misses_blocks(void **state)
{
	(void)state;
	open_and_write(false);
	assert_int_equal(truncate(path, 500 * CHECKED_BLOCK_BYTES + 512), 0);
	verify();
	assert_int_equal(report.counts[BLOCK_MISSING], BLOCKS - 500);
	assert_int_equal(report.findings[0].block, 500);
}

static void what_cannot_be_read_is_unreadable(void **state)
{
	(void)state;
	open_and_write(false);
	(void)close(file.direct_fd);
	file.direct_fd = open(path, O_WRONLY | O_CLOEXEC);
	verify();
	assert_int_equal(report.counts[BLOCK_UNREADABLE], BLOCKS);
	assert_non_null(strstr(report.findings[0].text, "it cannot be read: "));
	assert_int_equal(report.finding_count, CHECKED_FINDINGS_MAX);
}

static void a_full_disk_says_where(void **state)
{
	(void)state;
	struct rlimit before;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 1 << 20,
							 .rlim_max = before.rlim_max}),
		0);
	assert_int_equal(checked_file_open(&file, path, 9, BLOCKS, false, &err), 0);
	assert_int_equal(checked_file_write(&file, NULL, NULL, &err), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(strstr(err.text, "at byte 1048576"));
	assert_int_equal(file.generation, 0);
}

static void nothing_of_others_is_touched(void **state)
{
	(void)state;
	assert_int_equal(files_write_atomic(path, "mine", 4, &err), 0);
	assert_int_equal(checked_file_open(&file, path, 9, BLOCKS, false, &err), -EEXIST);
	checked_file_close(&file);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);
}

static void a_stop_ends_it(void **state)
{
	(void)state;
	atomic_bool stop = true;
	open_and_write(false);
	assert_int_equal(checked_file_write(&file, &stop, NULL, &err), -EINTR);
	assert_int_equal(checked_file_verify(&file, &stop, NULL, &report, &err), -EINTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_blocks_are_right),
		cmocka_unit_test(every_flipped_bit_is_found),
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(torn_blocks_are_torn),
		cmocka_unit_test_teardown(what_was_written_comes_back, close_file),
		cmocka_unit_test_teardown(what_is_evicted_comes_back, close_file),
		cmocka_unit_test_teardown(all_planted_faults_are_found, close_file),
		cmocka_unit_test_teardown(a_file_that_lost_its_end_misses_blocks, close_file),
		cmocka_unit_test_teardown(what_cannot_be_read_is_unreadable, close_file),
		cmocka_unit_test_teardown(a_full_disk_says_where, close_file),
		cmocka_unit_test(nothing_of_others_is_touched),
		cmocka_unit_test_teardown(a_stop_ends_it, close_file),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
