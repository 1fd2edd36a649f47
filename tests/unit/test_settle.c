/* Waiting for a node to come to rest, on a fake /proc and /sys that change while it waits. */
#include "harness/checks/settle.h"

#include "harness/base/clock.h"
#include "tests/unit/fake_root.h"

#include <pthread.h>

static const char sensor[] = "/sys/class/thermal/thermal_zone0/temp";
static atomic_int looks;

/* A file that a thread writes anew: it falls for so many changes, then stays. */
struct cooling {
	int from, to, by; /* thousandths of a degree */
	atomic_bool stop;
};

/* Renamed into place, so that a reader never sees half of it. */
static void write_sensor(int value)
{
	char text[32];
	char beside[512];
	char path[512];
	(void)snprintf(text, sizeof text, "%d\n", value);
	fake_file("/beside", text);
	(void)snprintf(beside, sizeof beside, "%s/beside", fake_root);
	(void)snprintf(path, sizeof path, "%s%s", fake_root, sensor);
	(void)rename(beside, path);
}

static void *cool(void *context)
{
	struct cooling *cooling = context;
	for (int value = cooling->from; value > cooling->to && !atomic_load(&cooling->stop);
		value -= cooling->by) {
		write_sensor(value);
		atomic_fetch_add(&looks, 1);
		clock_sleep_until_ns(clock_now_ns() + 10 * NS_PER_MS);
	}
	return NULL;
}

static void nothing_to_wait_for(void **state)
{
	(void)state;
	char why[SETTLE_WHY_BYTES];
	fake_root_make();
	fake_file("/proc/meminfo", "MemTotal: 1 kB\nDirty: 5 kB\nWriteback: 12 kB\n");
	(void)settle_wait(
		fake_root, NS_PER_S, 3600 * NS_PER_S, NULL, why); /* an hour, if it waited */
	assert_string_equal(why, "");
	fake_root_remove();
}

static void it_waits_while_a_sensor_cools(void **state)
{
	(void)state;
	char why[SETTLE_WHY_BYTES];
	struct cooling cooling = {.from = 90000, .to = 60000, .by = 1000};
	pthread_t thread;
	fake_root_make();
	fake_file(sensor, "90000\n");
	atomic_store(&looks, 0);
	assert_int_equal(pthread_create(&thread, NULL, cool, &cooling), 0);
	/* A look takes long enough for many changes, on the slowest machine. */
	const uint64_t waited = settle_wait(fake_root, NS_PER_S, 3600 * NS_PER_S, NULL, why);
	assert_true(atomic_load(&looks) > 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(why, "");
	assert_true(waited >= 2 * NS_PER_S); /* the first look saw it fall, so that there was a second */
	fake_root_remove();
}

static void it_says_what_it_waited_for(void **state)
{
	(void)state;
	char why[SETTLE_WHY_BYTES];
	fake_root_make();
	fake_file("/proc/meminfo", "MemTotal: 1 kB\nDirty: 5 kB\nWriteback: 1048576 kB\n");
	const uint64_t waited = settle_wait(fake_root, NS_PER_MS, 50 * NS_PER_MS, NULL, why);
	assert_true(waited >= 50 * NS_PER_MS);
	assert_string_equal(why, "1.00 GiB are still being written to disks");
	const atomic_bool stop = true;
	(void)settle_wait(fake_root, NS_PER_S, 3600 * NS_PER_S, &stop, why);
	fake_root_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_wait_for),
		cmocka_unit_test(it_waits_while_a_sensor_cools),
		cmocka_unit_test(it_says_what_it_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
