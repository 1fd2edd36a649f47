/* Which sockets of this node are two ends of one: the kernel tells it of Unix sockets and of TCP connections in this network
 * namespace (sock_diag(7)), to everybody. */
#ifndef MLBENCH_MEASURE_SOCKET_PEERS_H
#define MLBENCH_MEASURE_SOCKET_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct socket_peer {
	uint64_t number; /* of a socket, as /proc/PID/fd has it: "socket:[NUMBER]" */
	uint64_t
		peer; /* of the other end; 0: not known, or, of TCP, none of those that are asked for */
	bool found; /* it is a Unix socket */
	/* Its own: of a TCP connection, both its ends. */
	bool connected;
	uint16_t ports[2];
	uint32_t addresses[2][4];
};

/* Fills in the peers of those that have one.  At most some ms; false: the kernel did not tell it all. */
bool socket_peers_find(struct socket_peer *sockets, size_t count);

#endif
