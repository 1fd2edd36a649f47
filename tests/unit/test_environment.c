/* Facts about the node: the parsers against texts captured from other machines, the lists complete on
 * this one, and nothing that a missing path can break. */
#include "harness/measure/environment.h"

#include "harness/measure/data_store.h"
#include "harness/measure/node_checks.h"
#include "harness/measure/proc_text.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* --- parsers --------------------------------------------------------------------------------- */

static const char mountinfo_text[] =
	"22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro\n"
	"23 22 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n"
	"31 22 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	"90 22 259:3 /data/my\\040sets /mnt/image\\040net\\134x rw,noatime - xfs /dev/nvme0n1p3 rw,attr2\n"
	"91 22 0:55 / /mnt/nfs rw,relatime shared:3 master:7 propagate_from:2 - nfs4 10.0.0.2:/export rw,vers=4.2\n"
	"92 22 0:60 / /mnt/nfs rw,relatime - tmpfs tmpfs rw,size=65536k\n"
	"93 22 0:61 / /broken rw\n";

static void mounts_with_escapes_and_optional_fields(void **state)
{
	(void)state;
	struct mount_entry m;
	assert_true(parse_mount_of(mountinfo_text, "/mnt/image net\\x/train/a.jpg", &m));
	assert_string_equal(m.point, "/mnt/image net\\x");
	assert_string_equal(m.root, "/data/my sets");
	assert_string_equal(m.type, "xfs");
	assert_string_equal(m.source, "/dev/nvme0n1p3");
	assert_string_equal(m.options, "rw,noatime");
	assert_string_equal(m.super_options, "rw,attr2");
	assert_int_equal(m.major, 259);
	assert_int_equal(m.minor, 3);
	assert_true(parse_mount(
		"91 22 0:55 / /n rw shared:3 master:7 - nfs4 10.0.0.2:/export rw,vers=4.2", &m));
	assert_string_equal(m.source, "10.0.0.2:/export");
}

static void options_are_found_by_their_whole_name(void **state)
{
	static const char nfs[] = "rw,mountaddr=1.1.1.1,clientaddr=2.2.2.2,addr=10.0.0.2,hard,x=";
	char value[16];
	(void)state;
	assert_true(parse_mount_option(nfs, "addr", value, sizeof value));
	assert_string_equal(value, "10.0.0.2");
	assert_true(parse_mount_option("vers=4.2", "vers", value, sizeof value));
	assert_string_equal(value, "4.2");
	assert_false(parse_mount_option(nfs, "ad", value, sizeof value));
	assert_false(parse_mount_option(nfs, "hard", value, sizeof value));
	assert_false(parse_mount_option("", "addr", value, sizeof value));
	assert_false(parse_mount_option(",,", "addr", value, sizeof value));
	assert_false(parse_mount_option(nfs, "addr", value, 8));
}

static void the_nearest_and_the_last_mount_win(void **state)
{
	(void)state;
	struct mount_entry m;
	assert_true(parse_mount_of(mountinfo_text, "/mnt/nfs/x", &m));
	assert_string_equal(m.type, "tmpfs"); /* mounted over the nfs4 */
	assert_true(parse_mount_of(mountinfo_text, "/mnt/nfsx", &m));
	assert_string_equal(m.point, "/");
	assert_true(parse_mount_of(mountinfo_text, "/", &m));
	assert_string_equal(m.type, "ext4");
	assert_false(parse_mount_of("", "/", &m));
	assert_false(parse_mount_of("nonsense\n\n - \n", "/", &m));
	assert_false(parse_mount_of(mountinfo_text, "relative", &m));
}

static void control_group_limits(void **state)
{
	(void)state;
	assert_true(isinf(parse_cpu_max("max 100000")));
	assert_true(parse_cpu_max("150000 100000") == 1.5);
	assert_true(isnan(parse_cpu_max("")));
	assert_true(isnan(parse_cpu_max("100000")));
	assert_true(isnan(parse_cpu_max("-1 100000")));
	assert_true(isinf(parse_memory_max("max")));
	assert_true(isinf(parse_memory_max("9223372036854771712"))); /* v1's "none" */
	assert_true(parse_memory_max("1073741824") == 1073741824.0);
	assert_true(isnan(parse_memory_max("")));
	assert_true(isnan(parse_memory_max("-5")));
}

static void control_group_paths(void **state)
{
	(void)state;
	static const char hybrid[] =
		"12:cpuset:/\n4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc/x\n0::/init.scope\n";
	char path[64];
	assert_true(parse_cgroup_path(hybrid, "cpu", path, sizeof path));
	assert_string_equal(path, "/docker/abc");
	assert_true(parse_cgroup_path(hybrid, "cpuset", path, sizeof path));
	assert_string_equal(path, "/");
	assert_true(parse_cgroup_path(hybrid, "memory", path, sizeof path));
	assert_string_equal(path, "/docker/abc/x");
	assert_true(parse_cgroup_path(hybrid, "", path, sizeof path));
	assert_string_equal(path, "/init.scope");
	assert_false(parse_cgroup_path(hybrid, "pids", path, sizeof path));
	assert_false(parse_cgroup_path("garbage", "cpu", path, sizeof path));
}

static void cpuinfo_variants(void **state)
{
	(void)state;
	static const char x86[] =
		"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 143\n"
		"model name\t: Intel(R) Xeon(R) Platinum 8480+\nflags\t\t: fpu avx avx2 avx512f\n\n"
		"processor\t: 1\nmodel name\t: second\n";
	static const char arm[] =
		"processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU part\t: 0xd40\n";
	char value[64];
	assert_true(parse_field(x86, "model name", value, sizeof value));
	assert_string_equal(value, "Intel(R) Xeon(R) Platinum 8480+");
	assert_true(parse_field(x86, "model", value, sizeof value));
	assert_string_equal(value, "143");
	assert_true(parse_field(x86, "flags", value, sizeof value));
	assert_true(parse_has_word(value, "avx"));
	assert_true(parse_has_word(value, "avx512f"));
	assert_false(parse_has_word(value, "avx512"));
	assert_false(parse_has_word(value, "vx2"));
	assert_false(parse_field(arm, "model name", value, sizeof value));
	assert_false(parse_field(arm, "flags", value, sizeof value));
	assert_false(parse_field("", "flags", value, sizeof value));
}

static void numbers_and_brackets(void **state)
{
	(void)state;
	static const char meminfo[] =
		"MemTotal:       24684084 kB\nMemFree:        1 kB\nHugePages_Total:      64\n";
	double value;
	assert_true(parse_field_number(meminfo, "MemTotal", &value));
	assert_true(value == 24684084.0 * 1024);
	assert_true(parse_field_number(meminfo, "HugePages_Total", &value));
	assert_true(value == 64);
	assert_false(parse_field_number(meminfo, "MemAvailable", &value));
	char text[32];
	parse_bracketed("none [mq-deadline] kyber", text, sizeof text);
	assert_string_equal(text, "mq-deadline");
	parse_bracketed("none", text, sizeof text);
	assert_string_equal(text, "none");
	parse_bracketed("broken [", text, sizeof text);
	assert_string_equal(text, "broken [");
	struct cpu_ticks ticks;
	assert_true(parse_cpu_ticks("cpu  100 5 20 800 30 1 2 7 0 0", &ticks));
	assert_true(ticks.busy == 128 && ticks.idle == 830 && ticks.steal == 7);
	assert_true(parse_cpu_ticks("cpu  1 2 3 4", &ticks)); /* an old kernel */
	assert_true(ticks.steal == 0);
	assert_false(parse_cpu_ticks("intr 1 2 3 4", &ticks));
	/* Of the cores that are asked about alone: a busy one beside them, and one that is offline, do not count. */
	static const char stat[] = "cpu  112 5 20 1640 30 1 2 7 0 0\n"
				   "cpu0 100 5 20 800 30 1 2 7 0 0\ncpu2 10 0 0 820 0 0 0 0 0 0\n"
				   "cpu12 2 0 0 20 0 0 0 1 0 0\nintr 9 8 7\ncpu3 1 1 1 1\n";
	cpu_set_t cores;
	CPU_ZERO(&cores);
	CPU_SET(2, &cores);
	assert_true(parse_core_ticks(stat, &cores, &ticks));
	assert_true(ticks.busy == 10 && ticks.idle == 820 && ticks.steal == 0);
	CPU_SET(12, &cores);
	CPU_SET(1, &cores);
	assert_true(parse_core_ticks(stat, &cores, &ticks));
	assert_true(ticks.busy == 12 && ticks.idle == 840 && ticks.steal == 1);
	CPU_ZERO(&cores);
	CPU_SET(3, &cores);
	assert_false(parse_core_ticks(stat, &cores, &ticks));
}

/* --- the list -------------------------------------------------------------------------------- */

static void facts_keep_what_they_are_given(void **state)
{
	(void)state;
	struct fact_list list = {0};
	for (int i = 0; i < 500; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "n%d", i);
		fact_number(&list, "many", name, i / 4.0, "B");
	}
	fact_text(&list, "one", "text", "%s-%d", "a", 7);
	fact_missing(&list, "one", "gone", "because of %s", "this");
	assert_int_equal(list.count, 502);
	assert_false(list.failed);
	assert_true(fact_find(&list, "many", "n499")->number == 499 / 4.0);
	assert_string_equal(fact_find(&list, "many", "n1")->text, "0.25");
	assert_string_equal(fact_find(&list, "one", "text")->text, "a-7");
	assert_int_equal(fact_find(&list, "one", "gone")->kind, FACT_MISSING);
	assert_string_equal(fact_find(&list, "one", "gone")->text, "because of this");
	assert_null(fact_find(&list, "one", "nothing"));
	fact_list_release(&list);
	fact_list_release(&list);
	assert_int_equal(list.count, 0);
}

static const char *const wanted[][2] = {
	{"build", "mlbench"},
	{"build", "compiler"},
	{"build", "libc"},
	{"cpu", "model"},
	{"cpu", "flags"},
	{"cpu", "hypervisor"},
	{"cpu", "sockets"},
	{"cpu", "cores"},
	{"cpu", "threads"},
	{"cpu", "numa_nodes"},
	{"cpu", "l3_cache"},
	{"cpu", "smt"},
	{"cpu", "governor"},
	{"cpu", "max_mhz"},
	{"cpu", "affinity"},
	{"cpu", "allowed"},
	{"memory", "total"},
	{"memory", "available"},
	{"memory", "huge_pages"},
	{"memory", "transparent_huge_pages"},
	{"memory", "memlock_limit"},
	{"cgroup", "version"},
	{"cgroup", "cpu_limit"},
	{"cgroup", "cpu_limit_group"},
	{"cgroup", "cpu_limit_period"},
	{"cgroup", "memory_limit"},
	{"cgroup", "container"},
	{"kernel", "release"},
	{"kernel", "clocksource"},
	{"kernel", "io_uring_disabled"},
	{"kernel", "perf_event_paranoid"},
	{"kernel", "pressure"},
	{"data", "mount"},
	{"data", "file_system"},
	{"data", "options"},
	{"data", "device"},
	{"data", "disk"},
	{"data", "scheduler"},
	{"data", "rotational"},
	{"gpu", "devices"},
	{"gpu", "driver"},
	{"gpu", "libcuda"},
	{"gpu", "nvml"},
	{"load", "average_1min"},
	{"load", "steal_since_boot"},
	{"load", "pressure_cpu"},
};

static void expect_complete(const char *data_path)
{
	struct fact_list list = {0};
	environment_capture(&list, data_path);
	assert_false(list.failed);
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		const struct fact *fact = fact_find(&list, wanted[i][0], wanted[i][1]);
		if (!fact)
			fail_msg("no fact %s.%s", wanted[i][0], wanted[i][1]);
		assert_true(fact->text[0] != '\0' || fact->kind == FACT_TEXT);
	}
	for (size_t i = 0; i < list.count; i++) {
		const struct fact *first =
			fact_find(&list, list.facts[i].group, list.facts[i].name);
		assert_ptr_equal(first, &list.facts[i]); /* no fact is there twice */
		if (list.facts[i].kind == FACT_NUMBER)
			assert_true(isfinite(list.facts[i].number));
	}
	fact_list_release(&list);
}

static void every_fact_is_there_or_says_why(void **state)
{
	(void)state;
	expect_complete(".");
	expect_complete(NULL);
	expect_complete("");
	expect_complete("/");
	expect_complete("/nowhere/at/all");
	expect_complete("no/such/relative/path");
	expect_complete("/proc/self/mountinfo/below/a/file");
	char long_path[6000];
	memset(long_path, 'x', sizeof long_path - 1);
	long_path[sizeof long_path - 1] = '\0';
	expect_complete(long_path);
}

static void facts_agree_with_the_system(void **state)
{
	(void)state;
	struct fact_list list = {0};
	environment_capture(&list, "/proc");
	assert_true(fact_find(&list, "cpu", "allowed")->number <=
		    (double)sysconf(_SC_NPROCESSORS_CONF));
	assert_true(fact_find(&list, "cpu", "allowed")->number >= 1);
	assert_true(
		fact_find(&list, "memory", "page_size")->number == (double)sysconf(_SC_PAGESIZE));
	const double total = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	assert_true(fabs(fact_find(&list, "memory", "total")->number / total - 1) < 0.01);
	assert_string_equal(fact_find(&list, "data", "file_system")->text, "proc");
	assert_int_equal(fact_find(&list, "data", "disk")->kind, FACT_MISSING);
	fact_list_release(&list);
}

static void limits_are_sane(void **state)
{
	(void)state;
	const struct cgroup_limits limits = cgroup_limits_now();
	assert_in_range(limits.version, 0, 2);
	assert_true(limits.cores > 0);
	assert_true(limits.memory_bytes > 0);
}

/* --- the doctor ------------------------------------------------------------------------------ */

static void the_doctor_is_complete(void **state)
{
	(void)state;
	static const char *const subjects[] = {"kernel", "io_uring", "locked memory", "huge pages",
		"page cache share", "cache eviction", "software counters", "hardware counters",
		"run-queue time", "I/O accounting", "pressure (PSI)", "CPU frequency", "SMT",
		"NUMA", "CPU limit", "library threads", "memory limit", "memory", "load now",
		"stolen time", "clock", "timer slack", "GPU", "data"};
	static struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
	const size_t count = node_checks(findings, DOCTOR_FINDINGS_MAX, ".");
	assert_in_range(count, sizeof subjects / sizeof *subjects, DOCTOR_FINDINGS_MAX - 1);
	for (size_t s = 0; s < sizeof subjects / sizeof *subjects; s++) {
		size_t found = 0;
		for (size_t i = 0; i < count; i++)
			found += strcmp(findings[i].subject, subjects[s]) == 0;
		if (found != 1)
			fail_msg("'%s' found %zu times", subjects[s], found);
	}
	for (size_t i = 0; i < count; i++) {
		assert_true(findings[i].state[0] != '\0');
		/* Texts are not cut short, and what is not well has a consequence. */
		assert_true(strlen(findings[i].state) + 1 < sizeof findings[i].state);
		assert_true(strlen(findings[i].consequence) + 1 < sizeof findings[i].consequence);
		assert_true(strlen(findings[i].remedy) + 1 < sizeof findings[i].remedy);
		assert_int_equal(
			findings[i].level == DOCTOR_OK, findings[i].consequence[0] == '\0');
	}
}

static void the_doctor_takes_little_room_and_no_path(void **state)
{
	(void)state;
	struct doctor_finding few[3];
	assert_int_equal(node_checks(few, 3, NULL), 3);
	assert_int_equal(node_checks(few, 0, "/nowhere"), 0);
}

static void probes_answer(void **state)
{
	(void)state;
	assert_true(probe_io_uring() <= 0);
	assert_true(probe_cachestat() == 0 || probe_mincore() == 0);
	assert_true(probe_direct_io("/nowhere/at/all") == -ENOENT);
	double busy;
	double steal;
	assert_true(probe_load("", 50, 1, &busy, &steal));
	assert_true(busy >= 0 && busy <= (double)sysconf(_SC_NPROCESSORS_ONLN) + 0.01);
	assert_true(steal >= 0 && steal <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts_with_escapes_and_optional_fields),
		cmocka_unit_test(options_are_found_by_their_whole_name),
		cmocka_unit_test(the_nearest_and_the_last_mount_win),
		cmocka_unit_test(control_group_limits),
		cmocka_unit_test(control_group_paths),
		cmocka_unit_test(cpuinfo_variants),
		cmocka_unit_test(numbers_and_brackets),
		cmocka_unit_test(facts_keep_what_they_are_given),
		cmocka_unit_test(every_fact_is_there_or_says_why),
		cmocka_unit_test(facts_agree_with_the_system),
		cmocka_unit_test(limits_are_sane),
		cmocka_unit_test(the_doctor_is_complete),
		cmocka_unit_test(the_doctor_takes_little_room_and_no_path),
		cmocka_unit_test(probes_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
