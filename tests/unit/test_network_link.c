/* The speed of an interface: as files say it, and of a way that the node has or has not. */
#include "harness/measure/network_link.h"

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

static char root[] = "/tmp/mlbench-links-XXXXXX";

static void put_link(const char *name, const char *speed, int has_device)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof path, "%s/%s/device", root, name);
	assert_true(!has_device || mkdir(path, 0755) == 0);
	(void)snprintf(path, sizeof path, "%s/%s/speed", root, name);
	FILE *const file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(speed, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void a_speed_is_of_a_device(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(root));
	put_link("eth0", "25000\n", 1);
	put_link("veth0", "10000\n", 0);
	put_link("down0", "-1\n", 1);
	put_link("old0", "4294967295\n", 1);
	put_link("odd0", "fast\n", 1);
	assert_true(network_interface_bytes_per_s(root, "eth0") == 25e9 / 8);
	static const char *const none[] = {"veth0", "down0", "old0", "odd0", "missing0"};
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
		assert_true(isnan(network_interface_bytes_per_s(root, none[i])));
	char command[128];
	(void)snprintf(command, sizeof command, "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

/* Names are not looked up: a name server that is dead would hold the run. */
static void no_way_no_speed(void **state)
{
	static const char *const none[] = {"127.0.0.1", "[::1]", "localhost", "", "[", "]", "1.2.3",
		"filer.example.com", "::::", "0.0.0.0.0"};
	(void)state;
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
		assert_true(isnan(network_link_bytes_per_s(none[i])));
	/* Of what else is here, whatever it is, a speed is one, with a port and without. */
	const double speed = network_link_bytes_per_s("192.0.2.1");
	const double with_port = network_link_bytes_per_s("192.0.2.1:2049");
	assert_true(isnan(speed) ? isnan(with_port) : speed > 0 && speed == with_port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_speed_is_of_a_device),
		cmocka_unit_test(no_way_no_speed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
