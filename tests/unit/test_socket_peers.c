/* The two ends of a socket, as far as this kernel tells. */
#include "harness/measure/socket_peers.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t number_of(int fd)
{
	struct stat status;
	assert_int_equal(fstat(fd, &status), 0);
	return status.st_ino;
}

static void test_pairs(void **state)
{
	int one[2];
	int other[2];
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, one), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, other), 0);
	const int lonely = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_true(lonely >= 0);
	const uint64_t pairs[][2] = {{number_of(one[0]), number_of(one[1])},
		{number_of(one[1]), number_of(one[0])}, {number_of(other[0]), number_of(other[1])},
		{number_of(other[1]), number_of(other[0])}, {number_of(lonely), 0}, {1, 0}};
	enum { COUNT_OF = sizeof pairs / sizeof pairs[0] };
	struct socket_peer peers[COUNT_OF];
	bool told = false;
	for (int i = 0; i < COUNT_OF; i++)
		peers[i] = (struct socket_peer){.number = pairs[i][0]};
	socket_peers_find(peers, COUNT_OF);
	socket_peers_find(peers, 0);
	for (int i = 0; i < COUNT_OF; i++)
		told = told || peers[i].peer;
	for (int i = 0; i < COUNT_OF && told;
		i++) /* else this kernel, or a container, does not tell */
		for (int k = 0; k < COUNT_OF; k++)
			if (peers[k].number == pairs[i][0])
				assert_int_equal(peers[k].peer, pairs[i][1]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(close(one[i]), 0);
		assert_int_equal(close(other[i]), 0);
	}
	assert_int_equal(close(lonely), 0);
	print_message("peers of sockets: %s\n", told ? "told" : "not told here");
}

/* A TCP connection of this node with itself. */
static void test_connections(void **state)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	(void)state;
	const int listening = socket(AF_INET, SOCK_STREAM, 0);
	const int one = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(connect(one, (struct sockaddr *)&address, size), 0);
	const int other = accept(listening, NULL, NULL);
	assert_true(other >= 0);
	struct socket_peer peers[] = {{.number = number_of(one)}, {.number = number_of(other)},
		{.number = number_of(listening)}};
	enum { COUNT_OF = sizeof peers / sizeof peers[0] };
	const uint64_t ends[][2] = {{number_of(one), number_of(other)},
		{number_of(other), number_of(one)}, {number_of(listening), 0}};
	socket_peers_find(peers, COUNT_OF);
	bool told = false;
	for (int i = 0; i < COUNT_OF; i++)
		told = told || peers[i].connected;
	for (int i = 0; i < COUNT_OF && told; i++)
		for (int k = 0; k < COUNT_OF; k++)
			if (peers[k].number == ends[i][0]) {
				assert_int_equal(peers[k].peer, ends[i][1]);
				assert_false(peers[k].found);
			}
	assert_int_equal(close(one) | close(other) | close(listening), 0);
	print_message("connections: %s\n", told ? "told" : "not told here");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs), cmocka_unit_test(test_connections)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
