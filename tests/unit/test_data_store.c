/* Disks as trees of files: partitions, disks made of others, what is no disk; and rates from two looks. */
#include "harness/measure/data_store.h"
#include "harness/measure/proc_text.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATH_BYTES = 4096 };

static char root[] = "/tmp/mlbench-disks-XXXXXX";

static void path_of(const char *path, char whole[PATH_BYTES])
{
	(void)snprintf(whole, PATH_BYTES, "%s/%s", root, path);
	for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdir(whole, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
}

static void put(const char *path, const char *text)
{
	char whole[PATH_BYTES];
	path_of(path, whole);
	FILE *file = fopen(whole, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void lead(const char *from, const char *to)
{
	char whole[PATH_BYTES];
	char target[PATH_BYTES];
	path_of(from, whole);
	path_of(to, target);
	assert_int_equal(symlink(target, whole), 0);
}

/* sda with a partition, nvme0n1 whole, dm-0 made of both, and a loop of dm-1 in itself. */
static int make_disks(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	put("devices/sda/dev", "8:0\n");
	put("devices/sda/stat", "  100 5 2000 400 7 8 9 10 0 900 11 0 0 0 0 0 0\n");
	put("devices/sda/sda2/dev", "8:2\n");
	put("devices/sda/sda2/partition", "2\n");
	put("devices/sda/sda2/stat", "1 1 1 1 1 1 1 1 1 1 1\n");
	put("devices/nvme0n1/dev", "259:0\n");
	put("devices/dm-0/dev", "253:0\n");
	lead("devices/dm-0/slaves/sda2", "devices/sda/sda2");
	lead("devices/dm-0/slaves/nvme0n1", "devices/nvme0n1");
	put("devices/dm-1/dev", "253:1\n");
	lead("devices/dm-1/slaves/dm-1", "devices/dm-1");
	lead("block/8:2", "devices/sda/sda2");
	lead("block/253:0", "devices/dm-0");
	lead("block/253:1", "devices/dm-1");
	return 0;
}

static int remove_disks(void **state)
{
	char command[PATH_BYTES];
	(void)state;
	(void)snprintf(command, sizeof command, "rm -rf '%s'", root);
	return system(command);
}

static struct block_disk find(unsigned major, unsigned minor, const char *type)
{
	char folder[PATH_BYTES];
	struct block_disk disk;
	struct mount_entry mount = {.major = major, .minor = minor};
	(void)snprintf(mount.type, sizeof mount.type, "%s", type);
	(void)snprintf(folder, sizeof folder, "%s/block", root);
	block_disk_find_in(folder, &mount, &disk);
	return disk;
}

static bool has(const struct block_disk *disk, unsigned major, unsigned minor)
{
	for (size_t i = 0; i < disk->count; i++)
		if (disk->numbers[i].major == major && disk->numbers[i].minor == minor)
			return true;
	return false;
}

static void a_partition_is_its_disk(void **state)
{
	(void)state;
	const struct block_disk disk = find(8, 2, "ext4");
	assert_string_equal(disk.name, "sda");
	assert_string_equal(disk.why, "");
	assert_true(disk.count == 1 && has(&disk, 8, 0));
}

static void disks_made_of_others(void **state)
{
	(void)state;
	const struct block_disk disk = find(253, 0, "xfs");
	assert_string_equal(disk.name, "dm-0");
	assert_int_equal(disk.count, 3);
	assert_true(has(&disk, 253, 0) && has(&disk, 8, 0) && has(&disk, 259, 0));
	assert_int_equal(find(253, 1, "xfs").count, 1);
}

static void what_is_no_disk_says_so(void **state)
{
	(void)state;
	const struct block_disk nfs = find(0, 51, "nfs4");
	assert_string_equal(nfs.name, "");
	assert_string_equal(nfs.why, "nfs4 is no file system on a block device of this node");
	const struct block_disk hidden = find(9, 9, "ext4");
	assert_string_equal(hidden.why, "9:9 is not shown in /sys/dev/block");
	const struct data_store store = {
		.disk = nfs, .limits.bytes.per_s = INFINITY, .limits.requests.per_s = INFINITY};
	struct data_store_use use;
	struct store_measurement m;
	data_store_read(&store, &use);
	data_store_between(&store, &store.limits, &use, &use, 2, &m);
	assert_true(isnan(m.reads_per_s) && isnan(m.busy_share) && isnan(m.bytes_limit));
	assert_string_equal(m.why, nfs.why);
}

static void some_count_nothing(void **state)
{
	(void)state;
	static const char *const nothing[] = {"fuse.sshfs", "fuse", "virtiofs", "9p"};
	static const char *const counted[] = {"ext4", "xfs", "nfs4", "overlay", ""};
	struct data_store store = {0};
	for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
		(void)snprintf(store.type, sizeof store.type, "%s", nothing[i]);
		assert_false(data_store_counts_fetches(&store));
	}
	for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
		(void)snprintf(store.type, sizeof store.type, "%s", counted[i]);
		assert_true(data_store_counts_fetches(&store));
	}
}

static void rates_of_two_looks(void **state)
{
	(void)state;
	struct data_store store = {.disk = find(8, 2, "ext4"),
		.limits.bytes = {.per_s = 5000, .version = 2, .group = "/job", .device = {8, 0}},
		.limits.requests.per_s = INFINITY};
	struct data_store_use from;
	struct data_store_use to;
	struct store_measurement m;
	(void)snprintf(store.limits.bytes.folder, sizeof store.limits.bytes.folder, "%s/job", root);
	put("job/io.stat", "");
	data_store_read(&store, &from);
	put("devices/sda/stat", "  300 5 2800 1000 7 8 9 10 0 1900 11 0 0 0 0 0 0\n");
	put("job/io.stat", "8:0 rbytes=9800 wbytes=1 rios=2 wios=1\n");
	data_store_read(&store, &to);
	data_store_between(&store, &store.limits, &from, &to, 2, &m);
	assert_string_equal(m.device, "sda");
	assert_string_equal(m.why, "");
	assert_true(m.reads_per_s == 100 && m.bytes_per_s == 800 * 512 / 2.0);
	assert_true(fabs(m.read_ns - 3e6) < 1 && fabs(m.busy_share - 0.5) < 1e-9);
	/* The group had read nothing before. */
	assert_true(m.bytes_limit == 5000 && m.bytes_used == 4900);
	assert_string_equal(m.bytes_group, "/job");
	assert_true(isnan(m.requests_limit) && isnan(m.requests_used));
	/* A limit that is another at the end is none of the whole time. */
	struct cgroup_read_limits now = store.limits;
	now.bytes.per_s = 6000;
	data_store_between(&store, &now, &from, &to, 2, &m);
	assert_true(isnan(m.bytes_limit) && isnan(m.bytes_used));
	assert_string_equal(m.bytes_group, "");
	/* Nothing was read: no time of a request. */
	data_store_between(&store, &store.limits, &to, &to, 2, &m);
	assert_true(m.reads_per_s == 0 && isnan(m.read_ns) && m.busy_share == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_partition_is_its_disk),
		cmocka_unit_test(disks_made_of_others),
		cmocka_unit_test(what_is_no_disk_says_so),
		cmocka_unit_test(some_count_nothing),
		cmocka_unit_test(rates_of_two_looks),
	};
	return cmocka_run_group_tests(tests, make_disks, remove_disks);
}
