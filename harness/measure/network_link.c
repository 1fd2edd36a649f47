/* The link towards a server: its speed, and its round trip. */
#include "harness/measure/network_link.h"

#include "harness/base/files.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <math.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { LINK_ADDRESS_BYTES = 64, LINK_PATH_BYTES = 512, ANY_PORT = 2049 };
static const double BYTES_PER_MBIT = 1e6 / 8;

double network_interface_bytes_per_s(const char *folder, const char *name)
{
	char path[LINK_PATH_BYTES];
	char line[LINK_ADDRESS_BYTES];
	/* What has no device behind it makes its speed up: a veth says 10 Gbit/s. */
	(void)snprintf(path, sizeof path, "%s/%s/device", folder, name);
	if (access(path, F_OK) != 0)
		return NAN;
	(void)snprintf(path, sizeof path, "%s/%s/speed", folder, name);
	if (files_first_line(path, line, sizeof line) != 0)
		return NAN;
	const double mbit = strtod(line, NULL); /* -1, or 2^32 - 1 of older kernels: not known */
	return mbit > 0 && mbit < UINT32_MAX ? mbit * BYTES_PER_MBIT : NAN;
}

/* The address in digits that packets to another one leave from; a datagram socket sends nothing
 * when it is connected. */
static bool link_own_address(const char *to, char own[LINK_ADDRESS_BYTES])
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM};
	struct addrinfo *found = NULL;
	struct sockaddr_storage from;
	socklen_t size = sizeof from;
	char port[8];
	(void)snprintf(port, sizeof port, "%d", ANY_PORT);
	if (getaddrinfo(to, port, &hints, &found) != 0)
		return false;
	const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const bool told = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
			  getsockname(fd, (struct sockaddr *)&from, &size) == 0 &&
			  getnameinfo((struct sockaddr *)&from, size, own, LINK_ADDRESS_BYTES, NULL,
				  0, NI_NUMERICHOST) == 0;
	if (fd >= 0)
		(void)close(fd);
	freeaddrinfo(found);
	return told;
}

/* Of the interface that has the address. */
static bool link_interface_of(const char *own, char name[IF_NAMESIZE])
{
	struct ifaddrs *all = NULL;
	char address[LINK_ADDRESS_BYTES];
	bool found = false;
	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *at = all; at && !found; at = at->ifa_next) {
		const int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
		if (family != AF_INET && family != AF_INET6)
			continue;
		const socklen_t size = family == AF_INET ? sizeof(struct sockaddr_in)
							 : sizeof(struct sockaddr_in6);
		found = getnameinfo(at->ifa_addr, size, address, sizeof address, NULL, 0,
				NI_NUMERICHOST) == 0 &&
			strcmp(address, own) == 0;
		(void)snprintf(name, IF_NAMESIZE, "%.*s", IF_NAMESIZE - 1, at->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

/* The digits alone, without brackets and port. */
static void link_take_address(const char *address, char out[LINK_ADDRESS_BYTES])
{
	const size_t bracket = address[0] == '[';
	const char *const colon = strchr(address, ':');
	const bool has_port = colon && colon == strrchr(address, ':');
	const size_t length = strcspn(address + bracket, has_port ? ":" : "]");
	(void)snprintf(out, LINK_ADDRESS_BYTES, "%.*s", (int)length, address + bracket);
}

double network_link_bytes_per_s(const char *address)
{
	char to[LINK_ADDRESS_BYTES];
	char own[LINK_ADDRESS_BYTES];
	char name[IF_NAMESIZE];
	link_take_address(address, to);
	return link_own_address(to, own) && link_interface_of(own, name)
		       ? network_interface_bytes_per_s("/sys/class/net", name)
		       : NAN;
}

/* --- its round trip --------------------------------------------------------------------------- */

enum { DIAG_BYTES = 32768, DIAG_WAIT_S = 1, DIAG_MESSAGES_MOST = 4096, US_NS = 1000 };

struct wire_sums {
	double round_trip_us, connections;
};

static void wire_add(
	const struct nlmsghdr *message, const uint8_t *address, size_t size, struct wire_sums *sums)
{
	const struct inet_diag_msg *const found = NLMSG_DATA(message);
	size_t left = message->nlmsg_len - NLMSG_LENGTH(sizeof *found);
	if (message->nlmsg_len < NLMSG_LENGTH(sizeof *found) ||
		memcmp(found->id.idiag_dst, address, size) != 0)
		return;
	const struct rtattr *attribute = (const struct rtattr *)(const void *)(found + 1);
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		struct tcp_info info = {0};
		const size_t bytes = RTA_PAYLOAD(attribute);
		if (attribute->rta_type != INET_DIAG_INFO)
			continue;
		memcpy(&info, RTA_DATA(attribute), bytes < sizeof info ? bytes : sizeof info);
		sums->round_trip_us += info.tcpi_rtt;
		sums->connections += info.tcpi_rtt > 0;
	}
}

/* False: that was the last message, or it makes no sense. */
static bool wire_take(int fd, const uint8_t *address, size_t size, struct wire_sums *sums)
{
	static _Thread_local _Alignas(struct nlmsghdr) char bytes[DIAG_BYTES];
	const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
	size_t left = got > 0 ? (size_t)got : 0;
	const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)bytes;
	bool more = left > 0;
	for (; more && NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
		more = message->nlmsg_type == SOCK_DIAG_BY_FAMILY;
		if (more)
			wire_add(message, address, size, sums);
	}
	return more;
}

static int wire_ask(int family, unsigned port)
{
	const struct timeval patience = {.tv_sec = DIAG_WAIT_S};
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 request;
	} ask = {.head = {.nlmsg_len = sizeof ask,
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.request = {.sdiag_family = (uint8_t)family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_ext = 1 << (INET_DIAG_INFO - 1),
			.idiag_states = 1 << TCP_ESTABLISHED,
			.id = {.idiag_dport = htons((uint16_t)port)}}};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
		send(fd, &ask, sizeof ask, 0) == (ssize_t)sizeof ask)
		return fd;
	(void)close(fd);
	return -1;
}

double network_wire_round_trip_ns(const char *address, unsigned port)
{
	char to[LINK_ADDRESS_BYTES];
	uint8_t bytes[sizeof(struct in6_addr)];
	struct wire_sums sums = {0, 0};
	link_take_address(address, to);
	const int family = strchr(to, ':') ? AF_INET6 : AF_INET;
	const size_t size = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	if (inet_pton(family, to, bytes) != 1)
		return NAN;
	const int fd = wire_ask(family, port);
	for (int i = 0; fd >= 0 && i < DIAG_MESSAGES_MOST && wire_take(fd, bytes, size, &sums);)
		i++;
	if (fd >= 0)
		(void)close(fd);
	return sums.connections > 0 ? sums.round_trip_us / sums.connections * US_NS : NAN;
}
