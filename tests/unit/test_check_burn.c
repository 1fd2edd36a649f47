/* A burn that is short: what it hands over, what is planted in it, counters that rise and sensors of a fake root, a file that
 * cannot grow, and a stop.  How fast it is matters nowhere. */
#include "check_fixture.h"
#include "fake_root.h"

#include "harness/base/clock.h"
#include "harness/checks/core_list.h"
#include "harness/checks/corruption.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static struct check_fixture fixture;

enum { TRIES = 20 };

/* All of its figures: what is not asked for is handed over all the same. */
#define SHORT "for = 2s\nsize = 2MiB\nburn.wrong = <= 0\n"

static int set_up(void **state)
{
	(void)state;
	fake_root_make();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fake_root_remove();
	check_fixture_close(&fixture);
	return unsetenv(CORRUPTION_VARIABLE);
}

static void run_it(void)
{
	check_fixture_run(&fixture);
	if (getenv("MLBENCH_TEST_VERBOSE"))
		check_fixture_print(&fixture);
}

/* A burn ends by the clock: where the machine stood still meanwhile its loads have done too little, and it is run again. */
static void run_until(const char *criteria, bool enough(void))
{
	for (int left = TRIES; left > 0; left--) {
		check_fixture_open(&fixture, "burn", criteria);
		run_it();
		assert_int_equal(fixture.code, 0);
		if (enough() || left == 1)
			return;
		check_fixture_close(&fixture);
	}
}

/* In some part of it: on a busy machine a load may rest for a part. */
static bool has_values(const char *figure)
{
	return check_fixture_best(&fixture, figure, "") > 0;
}

static const json_t *series_of(const char *name)
{
	size_t i;
	json_t *series;
	json_array_foreach(json_object_get(fixture.gather.check, "series"), i, series)
	{
		if (strcmp(json_string_value(json_object_get(series, "series")), name) == 0)
			return json_object_get(series, "points");
	}
	return NULL;
}

static bool all_have_values(void)
{
	return has_values("burn.decode") && has_values("burn.gemm") && has_values("burn.read") &&
	       has_values("burn.write");
}

static void all_loads_run_and_nothing_is_wrong(void **state)
{
	(void)state;
	static const char *const loads[] = {
		[0] = "decode", [1] = "gemm", [2] = "read", [3] = "write"};
	run_until(SHORT, all_have_values);
	assert_true(all_have_values());
	for (size_t i = 0; i < 4; i++) {
		assert_true(json_array_size(series_of(loads[i])) >= 10);
		assert_true(check_fixture_number(&fixture, "burn.accounted", loads[i]) >= 0);
		assert_true(check_fixture_number(&fixture, "burn.drift", loads[i]) >= 0);
	}
	assert_true(check_fixture_sum(&fixture, "burn.wrong") == 0);
	assert_true(check_fixture_number(&fixture, "burn.wrong", "write") == 0);
	assert_true(check_fixture_number(&fixture, "burn.wrong", "read") == 0);
	assert_true(check_fixture_notes(&fixture, "compared: "));
	/* One core is compared with the others where there are enough of them. */
	struct core_list cores;
	char place[CORE_PLACE_BYTES];
	assert_int_equal(core_list_open(&cores, &fixture.err), 0);
	(void)core_place(cores.cores[cores.count - 1], place);
	assert_true(check_fixture_number(&fixture, "burn.clock", place) > 0);
	if (cores.count >= 3)
		assert_true(check_fixture_number(&fixture, "burn.drift.core", place) >= 0);
	else
		assert_string_not_equal(check_fixture_missing(&fixture, "burn.drift.core", ""), "");
	core_list_close(&cores);
}

static bool one_is_wrong(void)
{
	return check_fixture_sum(&fixture, "burn.wrong") == 1;
}

static void a_wrong_product_names_its_core(void **state)
{
	(void)state;
	struct core_list cores;
	char place[CORE_PLACE_BYTES];
	char planted[64];
	assert_int_equal(core_list_open(&cores, &fixture.err), 0);
	const unsigned last = cores.cores[cores.count - 1];
	(void)core_place(last, place);
	core_list_close(&cores);
	(void)snprintf(planted, sizeof planted, "gemm:core=%u:nth=3:bit=4", last);
	assert_int_equal(setenv(CORRUPTION_VARIABLE, planted, 1), 0);
	run_until(SHORT "loads = gemm\n", one_is_wrong);
	assert_true(check_fixture_number(&fixture, "burn.wrong", place) == 1);
	assert_true(check_fixture_sum(&fixture, "burn.wrong") == 1);
	assert_true(check_fixture_tells(
		&fixture, "burn.wrong", place, "sgemm of 384 x 384 x 384: row 0, column 0 is 0x"));
	assert_true(check_fixture_tells(&fixture, "burn.wrong", place, "(bit 4)"));
	assert_true(check_fixture_notes(&fixture, "corruption was planted"));
}

static void a_torn_block_is_found(void **state)
{
	(void)state;
	assert_int_equal(setenv(CORRUPTION_VARIABLE, "storage:block=3:kind=torn", 1), 0);
	run_until("for = 3s\nsize = 1MiB\nloads = write\nburn.wrong = <= 0\n", one_is_wrong);
	assert_true(check_fixture_number(&fixture, "burn.wrong", "write") == 1);
	assert_true(check_fixture_tells(&fixture, "burn.wrong", "write", "torn: block 3: 4 of 8"));
	assert_true(check_fixture_number(&fixture, "burn.wrong", "read") < 0);
}

/* --- what the node says of itself ---------------------------------------------------------------- */

static void fake_node(void)
{
	fake_file("/sys/devices/system/edac/mc/mc0/ce_count", "5\n");
	fake_file("/sys/devices/system/edac/mc/mc0/ue_count", "0\n");
	fake_file("/sys/devices/system/edac/mc/mc0/dimm0/dimm_label", "DIMM_A1\n");
	fake_file("/sys/devices/system/edac/mc/mc0/dimm0/dimm_ce_count", "5\n");
	fake_file("/sys/devices/system/edac/mc/mc0/dimm0/dimm_ue_count", "0\n");
	fake_file("/sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "7\n");
	fake_file("/sys/devices/system/cpu/cpu4/thermal_throttle/core_throttle_count", "7\n");
	fake_file("/sys/class/hwmon/hwmon0/name", "coretemp\n");
	fake_file("/sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n");
	fake_file("/sys/class/hwmon/hwmon0/temp1_input", "41000\n");
	fake_file("/sys/class/thermal/thermal_zone0/type", "acpitz\n");
	fake_file("/sys/class/thermal/thermal_zone0/temp", "30500\n");
}

/* What was handed over so far has this text. */
static bool hands_over(const char *text)
{
	char lines[1 << 16] = "";
	return pread(fileno(fixture.lines), lines, sizeof lines - 1, 0) > 0 && strstr(lines, text);
}

/* Once the sensors were looked at for the first time; too_late: the loads have ended before all of it was changed. */
static void *change_the_node(void *context)
{
	bool *const too_late = context;
	for (int looks = 0; looks < 3000 && !hands_over("\"temperature\""); looks++)
		clock_sleep_until_ns(clock_now_ns() + 20 * NS_PER_MS);
	fake_file("/sys/devices/system/edac/mc/mc0/ce_count", "8\n");
	fake_file("/sys/devices/system/edac/mc/mc0/dimm0/dimm_ce_count", "8\n");
	fake_file("/sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "9\n");
	fake_file("/sys/class/hwmon/hwmon0/temp1_input", "87000\n");
	*too_late = hands_over("ending the loads");
	return NULL;
}

static void what_rises_during_a_burn_is_told(void **state)
{
	(void)state;
	bool too_late = true;
	for (int tries = 0; too_late && tries < TRIES; tries++) {
		pthread_t thread;
		if (tries > 0)
			check_fixture_close(&fixture);
		fake_node();
		check_fixture_open(&fixture, "burn",
			"for = 3s\nsize = 1MiB\nloads = write\nburn.wrong = <= 0\n");
		fixture.context.root = fake_root;
		assert_int_equal(pthread_create(&thread, NULL, change_the_node, &too_late), 0);
		run_it();
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(fixture.code, 0);
		/* The sensors are not looked at while the machine stands still. */
		too_late = too_late || json_array_size(series_of("temperature")) < 10;
	}
	const char *const memory = "memory (EDAC)";
	assert_true(check_fixture_number(&fixture, "burn.errors.corrected", memory) == 3);
	assert_true(check_fixture_number(&fixture, "burn.errors.uncorrected", memory) == 0);
	assert_true(check_fixture_tells(&fixture, "burn.errors.corrected", memory,
		"corrected memory errors of DIMM_A1 (mc0): 3 since the burn began"));
	assert_true(
		check_fixture_number(&fixture, "burn.temperature", "coretemp Package id 0") == 87);
	assert_true(check_fixture_number(&fixture, "burn.temperature", "acpitz") == 30.5);
	assert_true(check_fixture_number(&fixture, "burn.throttled", "core 3") > 0);
	assert_true(check_fixture_number(&fixture, "burn.throttled", "core 4") == 0);
	assert_true(
		check_fixture_tells(&fixture, "burn.throttled", "core 3", "throttled in 1 of "));
	assert_true(json_array_size(series_of("temperature")) >= 10);
}

/* A node that says nothing of itself is not one without errors. */
static void what_is_not_counted_is_missing(void **state)
{
	(void)state;
	check_fixture_open(
		&fixture, "burn", "for = 1s\nsize = 1MiB\nloads = write\nburn.wrong = <= 0\n");
	fixture.context.root = fake_root;
	run_it();
	assert_int_equal(fixture.code, 0);
	assert_string_not_equal(check_fixture_missing(&fixture, "burn.temperature", ""), "");
	assert_string_not_equal(check_fixture_missing(&fixture, "burn.errors.corrected", ""), "");
	assert_string_not_equal(check_fixture_missing(&fixture, "burn.errors.uncorrected", ""), "");
	assert_true(
		check_fixture_notes(&fixture, "errors that are not counted here: memory (EDAC)"));
}

/* --- ends ------------------------------------------------------------------------------------------ */

static bool loads_have_ended(void)
{
	return strstr(check_fixture_missing(&fixture, "burn.write", ""), "at byte 1048576") &&
	       strstr(check_fixture_missing(&fixture, "burn.read", ""), "at byte 1048576") &&
	       has_values("burn.gemm");
}

/* A file that may not grow stands for a full disk: the reason is another word, the way is the same. */
static void a_disk_that_fills_stops_the_write_load(void **state)
{
	(void)state;
	struct rlimit before;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 1 << 20,
							 .rlim_max = before.rlim_max}),
		0);
	run_until("for = 1s\nsize = 16MiB\nloads = gemm, read, write\nburn.wrong = <= 0\n",
		loads_have_ended);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(loads_have_ended());
	assert_string_not_equal(check_fixture_missing(&fixture, "burn.drift", "write"), "");
	assert_true(
		check_fixture_tells(&fixture, "burn.write", "", "the write load ended: writing '"));
}

static atomic_bool stop;

static void *stop_soon(void *context)
{
	(void)context;
	clock_sleep_until_ns(clock_now_ns() + 300 * NS_PER_MS);
	atomic_store(&stop, true);
	return NULL;
}

static void a_stop_ends_it(void **state)
{
	(void)state;
	pthread_t thread;
	check_fixture_open(&fixture, "burn", "for = 1h\nsize = 1MiB\nburn.wrong = <= 0\n");
	fixture.context.stop = &stop;
	assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
	run_it();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(fixture.code, -EINTR);
}

static void what_is_no_load_is_refused(void **state)
{
	(void)state;
	check_fixture_open(&fixture, "burn", "loads = decode, gemms\nburn.wrong = <= 0\n");
	assert_int_equal(
		check_burn.validate(&fixture.plan, fixture.context.check, &fixture.err), -EINVAL);
	assert_non_null(
		strstr(fixture.err.text, "unknown load 'gemms'; use decode, gemm, read, write"));
	check_fixture_close(&fixture);
	check_fixture_open(&fixture, "burn", "loads = write,gemm\nburn.read = known\n");
	assert_int_equal(
		check_burn.validate(&fixture.plan, fixture.context.check, &fixture.err), -EINVAL);
	assert_non_null(strstr(fixture.err.text, "burn.read is asked for"));
	check_fixture_close(&fixture);
	check_fixture_open(&fixture, "burn", "loads = write,gemm\nburn.wrong = <= 0\n");
	assert_int_equal(
		check_burn.validate(&fixture.plan, fixture.context.check, &fixture.err), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_loads_run_and_nothing_is_wrong),
		TEST(a_wrong_product_names_its_core),
		TEST(a_torn_block_is_found),
		TEST(what_rises_during_a_burn_is_told),
		TEST(what_is_not_counted_is_missing),
		TEST(a_disk_that_fills_stops_the_write_load),
		TEST(a_stop_ends_it),
		TEST(what_is_no_load_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
