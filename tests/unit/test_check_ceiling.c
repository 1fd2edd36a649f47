/* The `ceiling` kind: each place has as many values as asked for, what is not asked is not measured, a slow core is the
 * slowest, and what cannot be had is said to be missing. */
#include "harness/base/clock.h"
#include "harness/checks/ceiling.h"
#include "tests/unit/check_fixture.h"
#include "tests/unit/child.h"
#include "workloads/backend/openblas.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { REPEATS = 3, SECONDS = 600, SLOW = 20 };

static unsigned *cores;
static unsigned core_count;

static int find_cores(void **state)
{
	(void)state;
	core_count = probe_core_list(&cores);
	return core_count > 0 ? 0 : -1;
}

static int forget_cores(void **state)
{
	(void)state;
	free(cores);
	return 0;
}

static const char *core_place(unsigned i, char out[CEILING_PLACE_BYTES])
{
	(void)snprintf(out, CEILING_PLACE_BYTES, "core %u", cores[i]);
	return out;
}

static void begin(struct check_fixture *f, const char *criteria)
{
	check_fixture_open(f, "ceiling", criteria);
	f->context.repeats = REPEATS;
	f->context.deadline_ns = clock_now_ns() + SECONDS * NS_PER_S;
}

static void done(struct check_fixture *f)
{
	check_fixture_run(f);
	if (f->code)
		check_fixture_print(f);
	assert_int_equal(f->code, 0);
}

/* --- places and rounds ------------------------------------------------------------------------ */

static void each_core_as_often_as_asked(void **state)
{
	(void)state;
	struct check_fixture f;
	char place[CEILING_PLACE_BYTES];
	begin(&f,
		"decode.core = known\nmemory.core = known\nmemory.all = known\ngemm.all = known\n");
	done(&f);
	for (unsigned i = 0; i < core_count; i++) {
		assert_int_equal(
			check_fixture_values(&f, "decode.core", core_place(i, place)), REPEATS);
		assert_int_equal(
			check_fixture_values(&f, "memory.core", core_place(i, place)), REPEATS);
		assert_null(check_fixture_entry(&f, "values", "gemm.core", core_place(i, place)));
	}
	assert_int_equal(check_fixture_values(&f, "memory.all", ""), REPEATS);
	assert_int_equal(check_fixture_values(&f, "gemm.all", ""), REPEATS);
	assert_null(check_fixture_entry(&f, "values", "decode.all", ""));
	assert_true(check_fixture_notes(&f, "decoding: "));
	check_fixture_close(&f);
}

/* A second call measures what is open; all places, where they are compared with each other. */
static void what_is_open_alone(void **state)
{
	(void)state;
	struct check_fixture f;
	char open_core[CEILING_PLACE_BYTES + 16];
	char place[CEILING_PLACE_BYTES];
	(void)snprintf(open_core, sizeof open_core, "memory.core @ core %u", cores[0]);
	const char *open[] = {open_core, "clock.read"};
	begin(&f, "memory.core = within 20 % of median\ngemm.core = known\nclock.read = known\n"
		  "lock.handoff = known\n");
	f.context.open = open;
	f.context.open_count = 2;
	f.context.round = 1;
	done(&f);
	for (unsigned i = 0; i < core_count; i++)
		assert_int_equal(
			check_fixture_values(&f, "memory.core", core_place(i, place)), REPEATS);
	assert_int_equal(check_fixture_values(&f, "clock.read", ""), REPEATS);
	assert_null(check_fixture_entry(&f, "values", "gemm.core", core_place(0, place)));
	assert_null(check_fixture_entry(&f, "values", "lock.handoff", ""));
	check_fixture_close(&f);
	begin(&f, "memory.core = known\n");
	f.context.open = open;
	f.context.open_count = 1;
	done(&f);
	assert_int_equal(json_array_size(json_object_get(f.gather.check, "values")), 1);
	check_fixture_close(&f);
}

static void waiting(void **state)
{
	(void)state;
	struct check_fixture f;
	begin(&f, "wake.latency = known\nwake.tail = known\nclock.read = known\n"
		  "lock.handoff = known\n");
	done(&f);
	assert_int_equal(check_fixture_values(&f, "wake.latency", ""), REPEATS);
	assert_int_equal(check_fixture_values(&f, "wake.tail", ""), REPEATS);
	assert_int_equal(check_fixture_values(&f, "clock.read", ""), REPEATS);
	check_fixture_close(&f);
}

/* Two nodes are told to hwloc; what the kernel does is this machine's own. */
static bool nodes_of_two(const void *context, char *report, size_t room)
{
	struct check_fixture f;
	(void)context;
	(void)setenv("HWLOC_SYNTHETIC", "node:2 core:1 pu:1", 1);
	begin(&f, "memory.node = known\nmemory.across = known\n");
	check_fixture_run(&f);
	const bool right = f.code == 0 &&
			   check_fixture_values(&f, "memory.node", "NUMA node 0") == REPEATS &&
			   check_fixture_values(&f, "memory.node", "NUMA node 1") == REPEATS &&
			   check_fixture_values(&f, "memory.across", "0 to 1") == REPEATS &&
			   check_fixture_values(&f, "memory.across", "1 to 0") == REPEATS &&
			   check_fixture_notes(&f, "first touch was relied on");
	(void)snprintf(report, room, "%d %.400s", f.code, f.err.text);
	check_fixture_close(&f);
	return right;
}

static void nodes_and_ways(void **state)
{
	(void)state;
	char report[CHILD_REPORT_BYTES];
	if (core_count < 2 || cores[1] != 1)
		skip();
	if (!child_run(nodes_of_two, NULL, report, sizeof report))
		fail_msg("%s", report);
}

/* --- a slow core, a wrong one ----------------------------------------------------------------- */

static struct blas planted;
static __typeof__(cblas_sgemm) *library_sgemm;

static void slow_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans_a,
	enum CBLAS_TRANSPOSE trans_b, blasint m, blasint n, blasint k, float alpha, const float *a,
	blasint lda, const float *b, blasint ldb, float beta, float *c, blasint ldc)
{
	const int times = sched_getcpu() == (int)cores[0] ? SLOW : 1;
	for (int i = 0; i < times; i++)
		library_sgemm(
			order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void wrong_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans_a,
	enum CBLAS_TRANSPOSE trans_b, blasint m, blasint n, blasint k, float alpha, const float *a,
	blasint lda, const float *b, blasint ldb, float beta, float *c, blasint ldc)
{
	library_sgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
	if (sched_getcpu() == (int)cores[0])
		c[0] += 1;
}

static void plant(__typeof__(cblas_sgemm) *sgemm)
{
	char why[ERROR_TEXT_BYTES];
	if (!blas_find(why, sizeof why))
		skip();
	planted = *blas;
	library_sgemm = blas->sgemm;
	planted.sgemm = sgemm;
	blas_replace(&planted);
}

static void a_slow_core_is_the_slowest(void **state)
{
	(void)state;
	struct check_fixture f;
	char place[CEILING_PLACE_BYTES];
	plant(slow_sgemm);
	begin(&f, "gemm.core = within 20 % of median\n");
	done(&f);
	blas_replace(NULL);
	const double slow = check_fixture_best(&f, "gemm.core", core_place(0, place));
	for (unsigned i = 1; i < core_count; i++)
		assert_true(
			check_fixture_best(&f, "gemm.core", core_place(i, place)) > 1.25 * slow);
	assert_int_equal(check_fixture_values(&f, "gemm.core", core_place(0, place)), REPEATS);
	check_fixture_close(&f);
}

/* The check fails, the core gives no value, and the others do. */
static void a_wrong_core_gives_no_value(void **state)
{
	(void)state;
	struct check_fixture f;
	char place[CEILING_PLACE_BYTES];
	plant(wrong_sgemm);
	begin(&f, "gemm.core = known\n");
	check_fixture_run(&f);
	blas_replace(NULL);
	assert_int_equal(f.code, -EIO);
	assert_non_null(strstr(f.err.text, "wrong result"));
	assert_true(check_fixture_notes(&f, core_place(0, place)));
	assert_int_equal(check_fixture_values(&f, "gemm.core", core_place(0, place)), 0);
	assert_string_equal(check_fixture_missing(&f, "gemm.core", core_place(0, place)), "");
	for (unsigned i = 1; i < core_count; i++)
		assert_int_equal(
			check_fixture_values(&f, "gemm.core", core_place(i, place)), REPEATS);
	check_fixture_close(&f);
}

/* --- what the node lacks ---------------------------------------------------------------------- */

static void put(const char *root, const char *path, const char *text)
{
	char full[256];
	char *slash;
	struct error err;
	(void)snprintf(full, sizeof full, "%s%s", root, path);
	slash = strrchr(full, '/');
	*slash = '\0';
	assert_int_equal(files_make_folder(full, &err), 0);
	*slash = '/';
	assert_int_equal(files_write_atomic(full, text, strlen(text), &err), 0);
}

/* A core that is offline is missing by its name, unless the siblings are switched off; clocks and peaks are cpufreq's. */
static void cores_of_a_system(void **state)
{
	(void)state;
	struct check_fixture f;
	char path[128];
	char place[CEILING_PLACE_BYTES];
	begin(&f, "gemm.core = >= 10 % of peak\ncpu.clock = known\n");
	f.context.root = f.folder;
	f.context.repeats = 1;
	put(f.folder, "/sys/devices/system/cpu/present", "0-4000\n");
	put(f.folder, "/sys/devices/system/cpu/online", "0-3998,4000\n");
	put(f.folder, "/proc/cpuinfo",
		"vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
		"model name\t: AMD EPYC\nflags\t\t: fpu avx2 fma avx512f\n");
	for (unsigned i = 0; i < core_count; i++) {
		(void)snprintf(path, sizeof path,
			"/sys/devices/system/cpu/cpu%u/cpufreq/cpuinfo_max_freq", cores[i]);
		put(f.folder, path, "3700000\n");
		(void)snprintf(path, sizeof path,
			"/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", cores[i]);
		put(f.folder, path, "3512345\n");
	}
	done(&f);
	assert_string_equal(
		check_fixture_missing(&f, "gemm.core", "core 3999"), "core 3999 is offline");
	assert_false(check_fixture_lacks(&f, "gemm.core", "core 3999"));
	const json_t *clock = check_fixture_entry(&f, "values", "cpu.clock", core_place(0, place));
	assert_true(
		json_number_value(json_array_get(json_object_get(clock, "values"), 0)) == 3512.345);
	const json_t *gemm = check_fixture_entry(&f, "values", "gemm.core", core_place(0, place));
	assert_true(json_number_value(json_object_get(gemm, "peak")) == 3.7e9 * 32);
	assert_string_equal(
		json_string_value(json_object_get(gemm, "source")), "3.70 GHz x 32 FLOP per cycle");
	put(f.folder, "/sys/devices/system/cpu/smt/control", "off\n");
	rewind(f.lines);
	assert_int_equal(ftruncate(f.sink.fd, 0), 0);
	done(&f);
	assert_string_equal(check_fixture_missing(&f, "gemm.core", "core 3999"), "");
	check_fixture_close(&f);
}

static void no_clock_no_peak(void **state)
{
	(void)state;
	struct check_fixture f;
	begin(&f, "gemm.core = >= 90 % of peak\ncpu.clock = known\n");
	f.context.root = f.folder;
	f.context.repeats = 1;
	done(&f);
	assert_non_null(strstr(check_fixture_missing(&f, "cpu.clock", ""), "no cpufreq"));
	assert_true(check_fixture_lacks(&f, "cpu.clock", ""));
	assert_true(check_fixture_notes(&f, "the peak of gemm.core and gemm.all is not available"));
	check_fixture_close(&f);
}

/* Two modules of 4,800 MT/s and an empty slot, as DSP0134 lays out structures of type 17. */
static void peak_of_memory(void **state)
{
	(void)state;
	enum { LENGTH = 0x22, SIZE_AT = 0x0c, RATED_AT = 0x15, SPEED_AT = 0x20, GIB_16 = 0x4000 };
	struct check_fixture f;
	unsigned char table[3 * (LENGTH + 2) + 6] = {0};
	char path[FILES_PATH_BYTES];
	for (size_t i = 0; i < 3; i++) {
		unsigned char *module = table + i * (LENGTH + 2);
		const unsigned size = i == 1 ? 0 : GIB_16;
		module[0] = 17;
		module[1] = LENGTH;
		module[SIZE_AT + 1] = (unsigned char)(size >> 8);
		module[RATED_AT] = module[SPEED_AT] = 4800 & 0xff;
		module[RATED_AT + 1] = module[SPEED_AT + 1] = 4800 >> 8;
	}
	table[3 * (LENGTH + 2)] = 127;
	table[3 * (LENGTH + 2) + 1] = 4;
	begin(&f, "memory.all = >= 1 % of peak\nmemory.node = >= 1 % of peak\n");
	f.context.root = f.folder;
	f.context.repeats = 1;
	put(f.folder, "/sys/firmware/dmi/tables/DMI", "");
	(void)snprintf(path, sizeof path, "%s/sys/firmware/dmi/tables/DMI", f.folder);
	assert_int_equal(files_write_atomic(path, table, sizeof table, &f.err), 0);
	done(&f);
	const json_t *all = check_fixture_entry(&f, "values", "memory.all", "");
	assert_true(json_number_value(json_object_get(all, "peak")) == 2 * 4800e6 * 8);
	assert_non_null(strstr(json_string_value(json_object_get(all, "source")),
		"2 memory modules, 9600 MT/s together, x 8 bytes"));
	check_fixture_close(&f);
	begin(&f, "memory.all = >= 1 % of peak\n");
	f.context.root = f.folder;
	f.context.repeats = 1;
	done(&f);
	assert_true(check_fixture_notes(&f, "the peak of memory.* is not available"));
	check_fixture_close(&f);
}

static void flop_per_cycle(void **state)
{
	(void)state;
	char why[PROBE_WHY_BYTES] = "";
	static const struct {
		const char *cpuinfo;
		unsigned flop;
	} known[] = {
		{"vendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 1\n", 16},
		{"vendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\n", 32},
		{"vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n", 64},
		{"vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 36\n", 0},
		{"vendor_id\t: GenuineIntel\nmodel\t\t: 143\nflags\t: avx2 fma avx512f\n", 64},
		{"vendor_id\t: GenuineIntel\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) Gold 6148\n"
		 "flags\t: avx2 fma avx512f\n",
			64},
		{"vendor_id\t: GenuineIntel\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) Silver 4110\n"
		 "flags\t: avx2 fma avx512f\n",
			0},
		{"vendor_id\t: GenuineIntel\nmodel\t\t: 60\nflags\t: fpu avx2 fma\n", 32},
		{"", 0},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		assert_int_equal(
			ceiling_flop_per_cycle(known[i].cpuinfo, why, sizeof why), known[i].flop);
	assert_non_null(strstr(why, "this CPU"));
	assert_true(ceiling_list_has("0-3,8,10-11", 8) && ceiling_list_has("0-3,8,10-11", 2));
	assert_false(ceiling_list_has("0-3,8,10-11", 9) || ceiling_list_has("", 0));
	assert_false(ceiling_list_has("none", 0));
}

static bool no_device_named(const void *context, char *report, size_t room)
{
	struct check_fixture f;
	const bool named = *(const bool *)context;
	if (named)
		(void)setenv("MLBENCH_CUDA_PLUGIN", "/nowhere/plugin.so", 1);
	else
		(void)unsetenv("MLBENCH_CUDA_PLUGIN");
	begin(&f, "gemm.device = known\n");
	f.context.root = f.folder;
	check_fixture_run(&f);
	(void)snprintf(report, room, "%s", check_fixture_missing(&f, "gemm.device", ""));
	const bool right = f.code == 0 && *report &&
			   check_fixture_lacks(&f, "gemm.device", "") == !named &&
			   (!named || strstr(report, "/nowhere/plugin.so"));
	check_fixture_close(&f);
	return right;
}

/* A node without a GPU lacks it; a plug-in that was named and is not there does not mean that. */
static void no_device(void **state)
{
	(void)state;
	char report[CHILD_REPORT_BYTES];
	if (access("/proc/driver/nvidia/version", F_OK) == 0)
		skip();
	for (int named = 0; named < 2; named++) {
		const bool is_named = named == 1;
		if (!child_run(no_device_named, &is_named, report, sizeof report))
			fail_msg("%d: %s", named, report);
	}
}

/* --- other work --------------------------------------------------------------------------------- */

/* A node on whose first core others work for as long as the check rests, and never while it measures. */
struct restless {
	const struct check_fixture *f;
	atomic_bool ends;
};

static void *work_at_rest(void *context)
{
	struct restless *node = context;
	unsigned long ticks = 0;
	while (!atomic_load(&node->ends)) {
		char text[1024] = "";
		size_t length = 0;
		struct stat lines;
		if (fstat(node->f->sink.fd, &lines) == 0 && lines.st_size == 0)
			ticks += 100;
		for (unsigned i = 0; i < core_count && length < sizeof text; i++)
			length += (size_t)snprintf(text + length, sizeof text - length,
				"cpu%u %lu 0 0 0 0 0 0 0 0 0\n", cores[i], i == 0 ? ticks : 0);
		put(node->f->folder, "/proc/stat", text);
		clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
	}
	return NULL;
}

static bool core_is_busy(struct check_fixture *f, unsigned i)
{
	char place[CEILING_PLACE_BYTES];
	const json_t *condition =
		check_fixture_entry(f, "conditions", "decode.core", core_place(i, place));
	return condition &&
	       strcmp(json_string_value(json_object_get(condition, "is")), "busy") == 0;
}

/* A visit may see nothing of others, whose turn on the core comes when it is over: then the rest before it tells. */
static void a_core_that_others_use_is_busy(void **state)
{
	(void)state;
	bool found = false;
	for (unsigned tries = 0; tries < 100 && !found; tries++) {
		struct check_fixture f;
		struct restless node = {.f = &f};
		pthread_t thread;
		begin(&f, "decode.core = known\n");
		f.context.root = f.folder;
		f.context.repeats = 1;
		assert_int_equal(pthread_create(&thread, NULL, work_at_rest, &node), 0);
		done(&f);
		atomic_store(&node.ends, true);
		assert_int_equal(pthread_join(thread, NULL), 0);
		found = core_is_busy(&f, 0);
		for (unsigned i = 1; i < core_count; i++)
			assert_false(core_is_busy(&f, i));
		check_fixture_close(&f);
	}
	assert_true(found);
}

/* --- storage ---------------------------------------------------------------------------------- */

static size_t entries_in(const char *folder)
{
	size_t count = 0;
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count - 2;
}

static void storage(void **state)
{
	(void)state;
	struct check_fixture f;
	begin(&f, "size = 16MiB\nread.direct = known\nread.cold = known\nread.latency = known\n"
		  "read.iops = known\nwrite.synced = known\n");
	done(&f);
	static const char *const figures[] = {
		"read.direct", "read.cold", "read.latency", "read.iops", "write.synced"};
	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
		if (check_fixture_missing(&f, figures[i], "")[0] == '\0')
			assert_in_range(check_fixture_values(&f, figures[i], ""), 1, REPEATS);
	assert_int_equal(check_fixture_values(&f, "write.synced", ""), REPEATS);
	assert_true(check_fixture_notes(&f, "a scratch file of 16.0 MiB"));
	assert_int_equal(entries_in(f.scratch), 0);
	check_fixture_close(&f);
}

/* That nothing can be written is no lack of the node's that a plan may pass over. */
static bool no_room(const void *context, char *report, size_t room)
{
	const struct rlimit limit = {1 << 20, 1 << 20};
	struct check_fixture f;
	(void)context;
	begin(&f, "size = 16MiB\nread.direct = known\n");
	const bool set = setrlimit(RLIMIT_FSIZE, &limit) == 0;
	check_fixture_run(&f);
	(void)snprintf(report, room, "%d %.300s", f.code, f.err.text);
	const bool right =
		f.code == -ENOSPC && !check_fixture_entry(&f, "missing", "read.direct", "");
	check_fixture_close(&f);
	return set && right;
}

static void a_folder_without_room(void **state)
{
	(void)state;
	char report[CHILD_REPORT_BYTES];
	if (!child_run(no_room, NULL, report, sizeof report))
		fail_msg("%s", report);
	assert_non_null(strstr(report, "not enough space"));
}

/* --- the end ---------------------------------------------------------------------------------- */

static void stops(void **state)
{
	(void)state;
	struct check_fixture f;
	atomic_bool stop = true;
	begin(&f, "memory.core = known\ndecode.core = known\nread.direct = known\n");
	f.context.stop = &stop;
	check_fixture_run(&f);
	assert_int_equal(f.code, -EINTR);
	assert_string_equal(
		json_string_value(json_object_get(f.gather.check, "state")), "interrupted");
	check_fixture_close(&f);
}

static void the_time_is_over(void **state)
{
	(void)state;
	struct check_fixture f;
	begin(&f, "clock.read = known\nwake.latency = known\n");
	f.context.repeats = 100000;
	f.context.deadline_ns = clock_now_ns() + NS_PER_S / 2;
	done(&f);
	assert_true(check_fixture_notes(&f, "time was over after "));
	check_fixture_close(&f);
}

static void estimates(void **state)
{
	(void)state;
	struct check_fixture f;
	struct check_cost cost;
	begin(&f, "size = 16MiB\nread.direct = known\nmemory.node = known\n");
	check_ceiling.estimate(&f.context, &cost);
	assert_true(cost.seconds > 0.1 && cost.disk_bytes == 16 << 20 && cost.memory_bytes > 0);
	check_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_core_as_often_as_asked),
		cmocka_unit_test(what_is_open_alone),
		cmocka_unit_test(waiting),
		cmocka_unit_test(nodes_and_ways),
		cmocka_unit_test(a_slow_core_is_the_slowest),
		cmocka_unit_test(a_wrong_core_gives_no_value),
		cmocka_unit_test(a_core_that_others_use_is_busy),
		cmocka_unit_test(cores_of_a_system),
		cmocka_unit_test(no_clock_no_peak),
		cmocka_unit_test(peak_of_memory),
		cmocka_unit_test(flop_per_cycle),
		cmocka_unit_test(no_device),
		cmocka_unit_test(storage),
		cmocka_unit_test(a_folder_without_room),
		cmocka_unit_test(stops),
		cmocka_unit_test(the_time_is_over),
		cmocka_unit_test(estimates),
	};
	return cmocka_run_group_tests(tests, find_cores, forget_cores);
}
