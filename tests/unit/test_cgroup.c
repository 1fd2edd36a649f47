/* Control groups as trees of files: v1, v2, both, containers, limits on a parent, and what is missing. */
#include "harness/measure/data_store.h"

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

enum { PATH_BYTES = 4096, TEXT_BYTES = 8192, QUOTAS_DEEP = 2 * CPU_QUOTAS_MAX };

static char root[] = "/tmp/mlbench-cgroup-XXXXXX";

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[PATH_BYTES];
	(void)state;
	(void)snprintf(command, sizeof command, "rm -rf '%s'", root);
	return system(command);
}

/* A file below the root, with the folders above it. */
static void put(const char *path, const char *text)
{
	char whole[PATH_BYTES];
	(void)snprintf(whole, sizeof whole, "%s/%s", root, path);
	for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdir(whole, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	FILE *file = fopen(whole, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* A line of mountinfo: what of a hierarchy is mounted at a folder below the root. */
static void mount_line(char text[TEXT_BYTES], const char *shows, const char *at, const char *type,
	const char *options)
{
	const size_t used = strlen(text);
	(void)snprintf(text + used, TEXT_BYTES - used,
		"31 22 0:27 %s %s/%s rw shared:9 - %s %s rw%s\n", shows, root, at, type, type,
		options);
}

static void quota_v1(const char *folder, const char *quota, const char *period)
{
	char path[PATH_BYTES];
	(void)snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
	put(path, quota);
	(void)snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
	put(path, period);
}

static void assert_quota(const struct cpu_quota *quota, const char *group, double cores)
{
	assert_string_equal(quota->group, group);
	assert_true(quota->cores == cores || fabs(quota->cores - cores) < 1e-9);
}

static void v2_from_the_group_up(void **state)
{
	(void)state;
	char mounts[TEXT_BYTES] = "";
	struct cpu_quotas quotas;
	struct cpu_quota_use use;
	mount_line(mounts, "/", "v2", "cgroup2", "");
	put("v2/pod/job/cpu.max", "max 100000\n");
	put("v2/pod/cpu.max", "150000 50000\n");
	put("v2/pod/cpu.stat",
		"usage_usec 1\nnr_periods 200\nnr_throttled 150\nthrottled_usec 2500000\n");
	put("v2/pod/memory.max", "1048576\n");
	cgroup_cpu_quotas_of(mounts, "0::/pod/job\n", &quotas);
	assert_string_equal(quotas.unknown, "");
	assert_int_equal(quotas.count, 2);
	assert_quota(&quotas.of[0], "/pod/job", INFINITY);
	assert_quota(&quotas.of[1], "/pod", 3);
	assert_true(quotas.of[1].period_s == 0.05 && isnan(quotas.of[0].period_s));
	assert_ptr_equal(cgroup_tightest(&quotas), &quotas.of[1]);
	cgroup_cpu_use(&quotas.of[1], &use);
	assert_true(use.periods == 200 && use.throttled == 150 && use.throttled_seconds == 2.5);
	assert_true(use.cores == 3 && use.seconds == 1e-6);
	/* One that is given later is seen, and so is that it is taken away. */
	cgroup_cpu_use(&quotas.of[0], &use);
	assert_true(isinf(use.cores) && isnan(use.seconds));
	put("v2/pod/job/cpu.max", "20000 100000\n");
	cgroup_cpu_use(&quotas.of[0], &use);
	assert_true(fabs(use.cores - 0.2) < 1e-9);
	put("v2/pod/job/cpu.max", "max 100000\n");
	cgroup_cpu_use(&quotas.of[0], &use);
	assert_true(isinf(use.cores));
	const struct cgroup_limits limits = cgroup_limits_of(mounts, "0::/pod/job\n");
	assert_int_equal(limits.version, 2);
	assert_true(limits.cores == 3 && limits.memory_bytes == 1048576);
}

/* As systemd mounts v1, where "cpuset" comes first and "cpu" shares its hierarchy. */
static void v1_is_not_cpuset(void **state)
{
	(void)state;
	static const char cgroup[] =
		"9:cpuset:/elsewhere\n5:cpu,cpuacct:/slurm/job_7/step_0\n0::/x\n";
	char mounts[TEXT_BYTES] = "";
	struct cpu_quotas quotas;
	struct cpu_quota_use use;
	mount_line(mounts, "/", "v1/cpuset", "cgroup", ",cpuset");
	mount_line(mounts, "/", "v1/cpu,cpuacct", "cgroup", ",cpu,cpuacct");
	mount_line(mounts, "/", "v1/unified", "cgroup2", "");
	quota_v1("v1/cpuset/elsewhere", "1000", "100000");
	quota_v1("v1/cpu,cpuacct", "-1", "100000");
	quota_v1("v1/cpu,cpuacct/slurm", "-1", "100000");
	quota_v1("v1/cpu,cpuacct/slurm/job_7", "150000", "100000");
	quota_v1("v1/cpu,cpuacct/slurm/job_7/step_0", "400000", "100000");
	put("v1/cpu,cpuacct/slurm/job_7/cpu.stat",
		"nr_periods 10\nnr_throttled 4\nthrottled_time 3500000000\nnr_bursts 0\n");
	put("v1/unified/x/cgroup.procs", "");
	cgroup_cpu_quotas_of(mounts, cgroup, &quotas);
	assert_string_equal(quotas.unknown, "");
	assert_int_equal(quotas.count, 4);
	assert_quota(&quotas.of[0], "/slurm/job_7/step_0", 4);
	assert_quota(&quotas.of[1], "/slurm/job_7", 1.5);
	assert_quota(&quotas.of[3], "/", INFINITY);
	assert_ptr_equal(cgroup_tightest(&quotas), &quotas.of[1]);
	put("v1/cpu,cpuacct/slurm/job_7/cpuacct.usage", "2500000000\n");
	cgroup_cpu_use(&quotas.of[1], &use);
	assert_true(use.periods == 10 && use.throttled == 4 && use.throttled_seconds == 3.5);
	assert_true(use.cores == 1.5 && use.seconds == 2.5);
	/* step_0 has no cpu.stat. */
	cgroup_cpu_use(&quotas.of[0], &use);
	assert_true(isnan(use.periods) && isnan(use.throttled) && isnan(use.throttled_seconds));
	assert_true(cgroup_limits_of(mounts, cgroup).cores == 1.5);
}

/* Controllers of v1 beside a v2 that has others: memory in the one, the quota in the other. */
static void hybrid(void **state)
{
	(void)state;
	static const char cgroup[] = "4:memory:/m\n1:cpu:/c\n0::/u\n";
	char mounts[TEXT_BYTES] = "";
	struct cpu_quotas quotas;
	mount_line(mounts, "/", "h/memory", "cgroup", ",memory");
	mount_line(mounts, "/", "h/cpu", "cgroup", ",cpu");
	mount_line(mounts, "/", "h/unified", "cgroup2", "");
	put("h/memory/m/memory.limit_in_bytes", "2097152\n");
	quota_v1("h/cpu/c", "50000", "100000");
	put("h/unified/u/cgroup.procs", "");
	cgroup_cpu_quotas_of(mounts, cgroup, &quotas);
	assert_int_equal(quotas.count, 1);
	assert_quota(&quotas.of[0], "/c", 0.5);
	const struct cgroup_limits limits = cgroup_limits_of(mounts, cgroup);
	assert_int_equal(limits.version, 1);
	assert_true(limits.cores == 0.5 && limits.memory_bytes == 2097152);
}

static void containers(void **state)
{
	(void)state;
	char mounts[TEXT_BYTES] = "";
	struct cpu_quotas quotas;
	/* A namespace of its own: its root is the container's group. */
	mount_line(mounts, "/", "ns", "cgroup2", "");
	put("ns/cpu.max", "200000 100000\n");
	put("ns/inner/cpu.max", "max 100000\n");
	cgroup_cpu_quotas_of(mounts, "0::/\n", &quotas);
	assert_int_equal(quotas.count, 1);
	assert_quota(&quotas.of[0], "/", 2);
	cgroup_cpu_quotas_of(mounts, "0::/inner\n", &quotas);
	assert_int_equal(quotas.count, 2);
	assert_quota(cgroup_tightest(&quotas), "/", 2);
	/* A process from elsewhere that looks in: what it sees is not above it. */
	cgroup_cpu_quotas_of(mounts, "0::/../other\n", &quotas);
	assert_int_equal(quotas.count, 0);
	assert_string_not_equal(quotas.unknown, "");
	/* None of its own: the mount shows the container's group, the path is that of the host. */
	mounts[0] = '\0';
	mount_line(mounts, "/docker/4f", "host", "cgroup", ",cpu");
	quota_v1("host", "70000", "100000");
	cgroup_cpu_quotas_of(mounts, "3:cpu:/docker/4f\n", &quotas);
	assert_int_equal(quotas.count, 1);
	assert_quota(&quotas.of[0], "/docker/4f", 0.7);
	/* A group whose name only begins alike is not below that root: it is hidden, and the mount is what there is. */
	cgroup_cpu_quotas_of(mounts, "3:cpu:/docker/4f5e\n", &quotas);
	assert_int_equal(quotas.count, 1);
	assert_quota(&quotas.of[0], "/docker/4f", 0.7);
	/* Mounted from above the namespace: a path from there is known. */
	mounts[0] = '\0';
	mount_line(mounts, "/..", "above", "cgroup2", "");
	put("above/other/cpu.max", "30000 100000\n");
	cgroup_cpu_quotas_of(mounts, "0::/../other\n", &quotas);
	assert_int_equal(quotas.count, 1);
	assert_quota(&quotas.of[0], "/../other", 0.3);
}

/* The same hierarchy may be mounted twice, and the first time not show the group. */
static void the_mount_that_shows_it(void **state)
{
	(void)state;
	char mounts[TEXT_BYTES] = "";
	struct cpu_quotas quotas;
	mount_line(mounts, "/other", "part", "cgroup", ",cpu");
	mount_line(mounts, "/", "all", "cgroup", ",cpu");
	quota_v1("part", "10000", "100000");
	quota_v1("all/mine", "90000", "100000");
	cgroup_cpu_quotas_of(mounts, "1:cpu:/mine\n", &quotas);
	assert_int_equal(quotas.count, 1);
	assert_quota(&quotas.of[0], "/mine", 0.9);
}

static void what_is_missing_is_said(void **state)
{
	(void)state;
	char mounts[TEXT_BYTES] = "";
	struct cpu_quotas quotas;
	cgroup_cpu_quotas_of(NULL, NULL, &quotas);
	assert_int_equal(quotas.count, 0);
	assert_string_not_equal(quotas.unknown, "");
	assert_null(cgroup_tightest(&quotas));
	assert_int_equal(cgroup_limits_of(NULL, NULL).version, 0);
	/* The hierarchy that has "cpu" is not mounted, another is. */
	mount_line(mounts, "/", "only", "cgroup2", "");
	put("only/cgroup.procs", "");
	cgroup_cpu_quotas_of(mounts, "2:cpu:/\n0::/\n", &quotas);
	assert_int_equal(quotas.count, 0);
	assert_string_not_equal(quotas.unknown, "");
	/* No quota anywhere is no secret. */
	cgroup_cpu_quotas_of(mounts, "0::/\n", &quotas);
	assert_int_equal(quotas.count, 0);
	assert_string_equal(quotas.unknown, "");
	assert_true(isinf(cgroup_limits_of(mounts, "0::/\n").cores));
	/* Nor is what makes no sense a quota. */
	put("only/cpu.max", "zero 100000\n");
	cgroup_cpu_quotas_of(mounts, "0::/\n", &quotas);
	assert_null(cgroup_tightest(&quotas));
	cgroup_cpu_quotas_of("garbage\n", "garbage\n", &quotas);
	assert_int_equal(quotas.count, 0);
}

/* More groups with a quota than there is room for, and names longer than are told. */
static void all_is_bounded(void **state)
{
	(void)state;
	char mounts[TEXT_BYTES] = "";
	char cgroup[TEXT_BYTES] = "0::";
	char folder[PATH_BYTES] = "deep";
	struct cpu_quotas quotas;
	mount_line(mounts, "/", "deep", "cgroup2", "");
	for (int i = 0; i < QUOTAS_DEEP; i++) {
		char path[PATH_BYTES + 16];
		char name[32];
		(void)snprintf(name, sizeof name, "/group-%02d-of-many", i);
		(void)strncat(folder, name, sizeof folder - strlen(folder) - 1);
		(void)strncat(cgroup, name, sizeof cgroup - strlen(cgroup) - 1);
		(void)snprintf(path, sizeof path, "%s/cpu.max", folder);
		put(path, "100000 100000\n");
	}
	cgroup_cpu_quotas_of(mounts, cgroup, &quotas);
	assert_int_equal(quotas.count, CPU_QUOTAS_MAX);
	assert_int_equal(strlen(quotas.of[0].group), CGROUP_GROUP_BYTES - 1);
	assert_memory_equal(quotas.of[0].group, "...", 3);
	assert_non_null(strstr(quotas.of[0].group, "/group-23-of-many"));
}

static const struct block_number disks[] = {{8, 16}, {8, 0}};

static void assert_read_limit(
	const struct cgroup_read_limit *limit, const char *group, double per_s)
{
	assert_true(limit->per_s == per_s);
	assert_string_equal(limit->group, group);
}

static void assert_no_limit(const struct cgroup_read_limit *limit)
{
	struct cgroup_read_use use;
	assert_true(isinf(limit->per_s));
	cgroup_read_use(limit, &use);
	assert_true(isnan(use.bytes) && isnan(use.requests));
}

static void reads_of_v2_from_the_group_up(void **state)
{
	(void)state;
	char mounts[TEXT_BYTES] = "";
	struct cgroup_read_limits limits;
	struct cgroup_read_use use;
	mount_line(mounts, "/", "io2", "cgroup2", "");
	put("io2/pod/job/io.max", "8:0 rbps=max wbps=1000 riops=500 wiops=max\n"
				  "8:160 rbps=1 wbps=1 riops=1 wiops=1\n");
	put("io2/pod/io.max", "8:16 rbps=2000000 wbps=max riops=900 wiops=max\n"
			      "8:0 rbps=1000000 wbps=max riops=max wiops=max\n");
	put("io2/pod/io.stat", "8:0 rbytes=4096 wbytes=1 rios=2 wios=1 dbytes=0 dios=0\n");
	cgroup_read_limits_of(mounts, "0::/pod/job\n", disks, 2, &limits);
	assert_read_limit(&limits.bytes, "/pod", 1000000);
	assert_read_limit(&limits.requests, "/pod/job", 500);
	assert_true(limits.bytes.device.minor == 0 && limits.bytes.version == 2);
	char words[READ_LIMIT_WORDS_BYTES];
	assert_string_equal(
		cgroup_read_limit_words(&limits, words), "977 KiB/s and 500 requests/s");
	cgroup_read_use(&limits.bytes, &use);
	assert_true(use.bytes == 4096 && use.requests == 2);
	/* The job's own group counts nothing yet. */
	cgroup_read_use(&limits.requests, &use);
	assert_true(isnan(use.bytes) && isnan(use.requests));
	/* Another disk's limits are not ours: 8:1 is no part of 8:16 nor of 8:160. */
	const struct block_number other = {8, 1};
	cgroup_read_limits_of(mounts, "0::/pod/job\n", &other, 1, &limits);
	assert_no_limit(&limits.bytes);
	assert_no_limit(&limits.requests);
	assert_string_equal(cgroup_read_limit_words(&limits, words), "");
	/* No disk, no limit. */
	cgroup_read_limits_of(mounts, "0::/pod/job\n", disks, 0, &limits);
	assert_no_limit(&limits.bytes);
	cgroup_read_limits_of(NULL, NULL, disks, 2, &limits);
	assert_no_limit(&limits.bytes);
}

/* A throttle of v1 holds the group that it is set on, and none below. */
static void reads_of_v1_are_the_groups_own(void **state)
{
	(void)state;
	char mounts[TEXT_BYTES] = "";
	struct cgroup_read_limits limits;
	struct cgroup_read_use use;
	mount_line(mounts, "/", "b1", "cgroup", ",blkio");
	put("b1/pod/blkio.throttle.read_bps_device", "8:0 1000\n");
	put("b1/pod/job/blkio.throttle.read_bps_device", "8:16 30000000\n8:0 20000000\n");
	put("b1/pod/job/blkio.throttle.read_iops_device", "");
	put("b1/pod/job/blkio.throttle.io_service_bytes",
		"8:16 Read 1\n8:16 Write 2\n8:0 Read 12345\n8:0 Write 9\n8:0 Total 12354\nTotal 12357\n");
	put("b1/pod/job/blkio.throttle.io_serviced", "8:0 Read 17\nTotal 17\n");
	cgroup_read_limits_of(mounts, "3:blkio:/pod/job\n", disks, 2, &limits);
	assert_read_limit(&limits.bytes, "/pod/job", 20000000);
	assert_no_limit(&limits.requests);
	cgroup_read_use(&limits.bytes, &use);
	assert_true(use.bytes == 12345 && use.requests == 17);
}

/* Which group it is that sets the memory's limit, and memory.high, which kills nobody. */
static void memory_limits_have_a_group(void **state)
{
	(void)state;
	char mounts[TEXT_BYTES] = "";
	mount_line(mounts, "/", "m2", "cgroup2", "");
	put("m2/pod/job/memory.max", "max\n");
	put("m2/pod/job/memory.high", "1000000\n");
	put("m2/pod/memory.max", "3000000\n");
	put("m2/pod/memory.high", "2000000\n");
	const struct cgroup_limits limits = cgroup_limits_of(mounts, "0::/pod/job\n");
	assert_true(limits.memory_bytes == 3000000 && limits.memory_high_bytes == 1000000);
	assert_string_equal(limits.memory_group, "/pod");
	assert_string_equal(limits.memory_high_group, "/pod/job");
	assert_true(isinf(cgroup_limits_of(mounts, "0::/\n").memory_high_bytes));
}

/* Where a group with less memory can be made. */
static void the_memory_group_has_a_folder(void **state)
{
	(void)state;
	char folder[CGROUP_FOLDER_BYTES];
	char wanted[PATH_BYTES];
	char mounts[TEXT_BYTES] = "";
	assert_int_equal(cgroup_memory_folder_of(NULL, NULL, folder), 0);
	assert_int_equal(cgroup_memory_folder_of(mounts, "4:memory:/job\n", folder), 0);
	mount_line(mounts, "/", "w2", "cgroup2", "");
	put("w2/job/cgroup.procs", "");
	assert_int_equal(cgroup_memory_folder_of(mounts, "0::/job\n", folder), 2);
	(void)snprintf(wanted, sizeof wanted, "%s/w2/job", root);
	assert_string_equal(folder, wanted);
	mount_line(mounts, "/", "w1", "cgroup", ",memory");
	put("w1/job/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(cgroup_memory_folder_of(mounts, "4:memory:/job\n0::/\n", folder), 1);
	(void)snprintf(wanted, sizeof wanted, "%s/w1/job", root);
	assert_string_equal(folder, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v2_from_the_group_up),
		cmocka_unit_test(v1_is_not_cpuset),
		cmocka_unit_test(hybrid),
		cmocka_unit_test(containers),
		cmocka_unit_test(the_mount_that_shows_it),
		cmocka_unit_test(what_is_missing_is_said),
		cmocka_unit_test(all_is_bounded),
		cmocka_unit_test(reads_of_v2_from_the_group_up),
		cmocka_unit_test(reads_of_v1_are_the_groups_own),
		cmocka_unit_test(memory_limits_have_a_group),
		cmocka_unit_test(the_memory_group_has_a_folder),
	};
	return cmocka_run_group_tests(tests, make_root, remove_root);
}
