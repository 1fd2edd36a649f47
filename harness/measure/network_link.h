/* The link towards a server: the speed of the interface of this node that packets to it leave by.
 * Links behind that one may be slower. */
#ifndef MLBENCH_MEASURE_NETWORK_LINK_H
#define MLBENCH_MEASURE_NETWORK_LINK_H

/* Bytes/s in one direction, to an IPv4 or IPv6 address in digits, maybe with a port ("10.0.0.2:2049",
 * "[fd00::2]:2049"); NAN: it is a name, there is no way to it, or the interface has no speed of its own (loopback, bridges, pairs
 * of virtual interfaces).  Sends nothing, and looks no name up; some 100 us. */
double network_link_bytes_per_s(const char *address);

/* The same of an interface, below another folder than /sys/class/net, for tests. */
double network_interface_bytes_per_s(const char *folder, const char *name);

/* TCP's smoothed round trip of the connections of this network namespace to such an address and
 * port, whoever made them, the kernel's NFS client too: their mean, by the kernel's sock_diag.  NAN:
 * there are none, or it cannot be asked. */
double network_wire_round_trip_ns(const char *address, unsigned port);

#endif
