/* Dumps of all Unix sockets and of all TCP connections. */
#include "harness/measure/socket_peers.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PEERS_ANSWER_BYTES = 1 << 15, PEERS_ANSWERS_MAX = 256 };

static int socket_peer_order(const void *a, const void *b)
{
	const struct socket_peer *x = a;
	const struct socket_peer *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

static void socket_peer_take(
	const struct nlmsghdr *header, struct socket_peer *sockets, size_t count)
{
	const struct unix_diag_msg *message = NLMSG_DATA(header);
	if (header->nlmsg_len < NLMSG_LENGTH(sizeof *message))
		return;
	const struct socket_peer wanted = {.number = message->udiag_ino};
	struct socket_peer *found =
		bsearch(&wanted, sockets, count, sizeof *sockets, socket_peer_order);
	size_t left = header->nlmsg_len - NLMSG_LENGTH(sizeof *message);
	const char *at = (const char *)(message + 1);
	if (found)
		found->found = true;
	while (found && left >= sizeof(struct rtattr)) {
		struct rtattr attribute;
		memcpy(&attribute, at, sizeof attribute);
		if (attribute.rta_len < sizeof attribute || attribute.rta_len > left)
			return;
		uint32_t peer;
		if (attribute.rta_type == UNIX_DIAG_PEER &&
			attribute.rta_len >= RTA_LENGTH(sizeof peer)) {
			memcpy(&peer, at + RTA_LENGTH(0), sizeof peer);
			found->peer = peer;
		}
		const size_t step = RTA_ALIGN(attribute.rta_len);
		if (step >= left)
			return;
		at += step;
		left -= step;
	}
}

static void socket_peer_take_connection(
	const struct nlmsghdr *header, struct socket_peer *sockets, size_t count)
{
	const struct inet_diag_msg *message = NLMSG_DATA(header);
	if (header->nlmsg_len < NLMSG_LENGTH(sizeof *message))
		return;
	const struct socket_peer wanted = {.number = message->idiag_inode};
	struct socket_peer *found =
		bsearch(&wanted, sockets, count, sizeof *sockets, socket_peer_order);
	if (!found)
		return;
	found->connected = true;
	found->ports[0] = message->id.idiag_sport;
	found->ports[1] = message->id.idiag_dport;
	memcpy(found->addresses[0], message->id.idiag_src, sizeof found->addresses[0]);
	memcpy(found->addresses[1], message->id.idiag_dst, sizeof found->addresses[1]);
}

/* Two are one connection if each has the other's end. */
static void socket_peers_join(struct socket_peer *sockets, size_t count)
{
	enum { ADDRESS = sizeof sockets->addresses[0] };
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; sockets[i].connected && k < count; k++)
			if (k != i && sockets[k].connected &&
				sockets[i].ports[0] == sockets[k].ports[1] &&
				sockets[i].ports[1] == sockets[k].ports[0] &&
				memcmp(sockets[i].addresses[0], sockets[k].addresses[1], ADDRESS) ==
					0 &&
				memcmp(sockets[i].addresses[1], sockets[k].addresses[0], ADDRESS) ==
					0)
				sockets[i].peer = sockets[k].number;
}

/* Of one kind: Unix sockets, or TCP connections over IPv4 or IPv6. */
static bool socket_peers_ask(int fd, int family)
{
	struct {
		struct nlmsghdr header;
		union {
			struct unix_diag_req unix_sockets;
			struct inet_diag_req_v2 connections;
		} of;
	} ask = {.header = {.nlmsg_len = sizeof ask,
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	if (family == AF_UNIX)
		ask.of.unix_sockets = (struct unix_diag_req){.sdiag_family = AF_UNIX,
			.udiag_states = UINT32_MAX,
			.udiag_show = UDIAG_SHOW_PEER};
	else
		ask.of.connections = (struct inet_diag_req_v2){.sdiag_family = (uint8_t)family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = 1U << TCP_ESTABLISHED};
	return send(fd, &ask, sizeof ask, 0) == (ssize_t)sizeof ask;
}

/* Whether more is to come; *done: that was all. */
static bool socket_peers_read(
	int fd, int family, void *bytes, struct socket_peer *sockets, size_t count, bool *done)
{
	const ssize_t got = recv(fd, bytes, PEERS_ANSWER_BYTES, 0);
	unsigned left = got > 0 ? (unsigned)got : 0;
	for (struct nlmsghdr *header = bytes; NLMSG_OK(header, left);
		header = NLMSG_NEXT(header, left)) {
		*done = header->nlmsg_type == NLMSG_DONE;
		if (*done || header->nlmsg_type == NLMSG_ERROR)
			return false;
		if (header->nlmsg_type == SOCK_DIAG_BY_FAMILY && family == AF_UNIX)
			socket_peer_take(header, sockets, count);
		else if (header->nlmsg_type == SOCK_DIAG_BY_FAMILY)
			socket_peer_take_connection(header, sockets, count);
	}
	return got > 0;
}

static bool socket_peers_dump(
	int fd, int family, void *bytes, struct socket_peer *sockets, size_t count)
{
	bool done = false;
	for (int i = 0; i < PEERS_ANSWERS_MAX && (i > 0 || socket_peers_ask(fd, family)); i++)
		if (!socket_peers_read(fd, family, bytes, sockets, count, &done))
			break;
	return done;
}

bool socket_peers_find(struct socket_peer *sockets, size_t count)
{
	const struct timeval wait = {.tv_usec = 20000};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	void *bytes = malloc(PEERS_ANSWER_BYTES);
	bool done = false;
	if (fd >= 0 && bytes && count > 0 &&
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0) {
		qsort(sockets, count, sizeof *sockets, socket_peer_order);
		done = socket_peers_dump(fd, AF_UNIX, bytes, sockets, count);
		/* A kernel may tell of no connections. */
		(void)(done && socket_peers_dump(fd, AF_INET, bytes, sockets, count) &&
			socket_peers_dump(fd, AF_INET6, bytes, sockets, count));
		socket_peers_join(sockets, count);
	}
	free(bytes);
	if (fd >= 0)
		(void)close(fd);
	return done;
}
