/* Waiting for a node to come to rest, on a fake /proc and /sys that change while it waits. */
#include "harness/checks/settle.h"

#include "harness/base/clock.h"
#include "tests/unit/fake_root.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/stat.h>

/* Thousandths of a degree; the last one stays. */
static const char *const cooling[] = {"90000\n", "85000\n", "80000\n", "75000\n", "75000\n"};
enum { LOOKS = sizeof cooling / sizeof *cooling };

/* A pipe in the place of a sensor gives each reader the next value, however late it comes. */
static char sensor[128];
static int closings; /* of inotify: a reader is through */

static void *cool(void *context)
{
	(void)context;
	for (size_t i = 0; i < LOOKS; i++) {
		char event[512];
		const int fd = open(sensor, O_WRONLY);
		const size_t size = strlen(cooling[i]);
		if (fd < 0 || write(fd, cooling[i], size) != (ssize_t)size || close(fd) != 0 ||
			read(closings, event, sizeof event) <= 0)
			return (void *)"the pipe is no sensor";
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
	pthread_t thread;
	void *fault = NULL;
	fake_root_make();
	fake_file("/sys/class/thermal/thermal_zone0/type", "x\n");
	(void)snprintf(sensor, sizeof sensor, "%s/sys/class/thermal/thermal_zone0/temp", fake_root);
	assert_int_equal(mkfifo(sensor, 0600), 0);
	closings = inotify_init1(IN_CLOEXEC);
	assert_true(inotify_add_watch(closings, sensor, IN_CLOSE_NOWRITE) >= 0);
	assert_int_equal(pthread_create(&thread, NULL, cool, NULL), 0);
	const uint64_t waited = settle_wait(fake_root, 10 * NS_PER_MS, 3600 * NS_PER_S, NULL, why);
	assert_string_equal(why, "");
	assert_true(waited >= (LOOKS - 1) * 10 * NS_PER_MS);
	assert_int_equal(pthread_join(thread, &fault), 0); /* all values were read */
	assert_null(fault);
	(void)close(closings);
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
