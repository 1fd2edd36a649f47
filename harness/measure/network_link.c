/* The link towards a server. */
#include "harness/measure/network_link.h"

#include "harness/base/files.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

double network_link_bytes_per_s(const char *address)
{
	char to[LINK_ADDRESS_BYTES];
	char own[LINK_ADDRESS_BYTES];
	char name[IF_NAMESIZE];
	const size_t bracket = address[0] == '[';
	const char *const colon = strchr(address, ':');
	const bool has_port = colon && colon == strrchr(address, ':');
	const size_t length = strcspn(address + bracket, has_port ? ":" : "]");
	(void)snprintf(to, sizeof to, "%.*s", (int)length, address + bracket);
	return link_own_address(to, own) && link_interface_of(own, name)
		       ? network_interface_bytes_per_s("/sys/class/net", name)
		       : NAN;
}
