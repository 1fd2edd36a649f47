/* The speed of an interface: as files say it, and of a way that the node has or has not. */
#include "harness/measure/network_link.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <math.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

/* Of a connection of our own, once something has gone both ways. */
static void a_round_trip_is_of_its_connections(void **state)
{
	(void)state;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	char byte = 1;
	const int asks = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
	if (asks < 0)
		skip(); /* nobody may ask here */
	assert_int_equal(close(asks), 0);
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	const unsigned port = ntohs(at.sin_port);
	assert_true(isnan(network_wire_round_trip_ns("127.0.0.1", port))); /* nobody is there yet */
	const int client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
	const int server = accept(listener, NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(write(client, &byte, 1), 1);
	assert_int_equal(read(server, &byte, 1), 1);
	assert_int_equal(write(server, &byte, 1), 1);
	assert_int_equal(read(client, &byte, 1), 1);
	const double ns = network_wire_round_trip_ns("127.0.0.1", port);
	assert_true(ns > 0 && ns < 60e9);
	assert_true(network_wire_round_trip_ns("127.0.0.1:1", port) > 0);
	assert_true(isnan(network_wire_round_trip_ns("127.0.0.2", port)));
	assert_true(isnan(network_wire_round_trip_ns("localhost", port)));
	assert_true(isnan(network_wire_round_trip_ns("::1", port)));
	assert_int_equal(close(client), 0);
	assert_int_equal(close(server), 0);
	assert_int_equal(close(listener), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_speed_is_of_a_device),
		cmocka_unit_test(no_way_no_speed),
		cmocka_unit_test(a_round_trip_is_of_its_connections),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
