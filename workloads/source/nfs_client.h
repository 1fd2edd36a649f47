/* A client of an NFS server: connections, calls in flight, time limits, repeats.  One thread drives a
 * client of its own: it submits calls, steps, and takes what has ended.  The sockets are polled through
 * io_uring, together with every time limit; by poll(2) where io_uring is forbidden.
 *
 * It speaks RPC itself instead of through libnfs: that library (4.0) trusts the lengths in a reply, which
 * a broken server can crash it with, copies what it reads once more, and has no sessions to gain.
 *
 * A server that says nothing while calls are in flight: after half of the time limit its connections are
 * made anew and the calls repeated; after all of it the client is dead, and every call fails.  One whose
 * connections break is tried again until then. */
#ifndef MLBENCH_WORKLOADS_SOURCE_NFS_CLIENT_H
#define MLBENCH_WORKLOADS_SOURCE_NFS_CLIENT_H

#include "harness/base/error.h"
#include "workloads/source/arrivals.h"
#include "workloads/source/nfs_wire.h"

#include <stdatomic.h>

struct nfs_client;

/* nfs://host[:port]/export/folder */
struct nfs_address {
	char host[256];
	char port[8];
	const char *path; /* into the address it was read of */
};
int nfs_address_read(const char *address, struct nfs_address *out, struct error *err);

/* What a client has done, by kind of call: its thread writes, any thread reads. */
struct nfs_counter {
	atomic_uint_fast64_t calls;   /* answered */
	atomic_uint_fast64_t repeats; /* sent once more */
	atomic_uint_fast64_t queue_ns, round_trip_ns,
		execute_ns; /* sums: waited, on the way, both */
	atomic_uint_fast64_t sent_bytes, received_bytes;
};

struct nfs_counters {
	struct nfs_counter
		kinds[NFS_KINDS];     /* of NFS_PING the probes beside the load, see nfs_options */
	atomic_uint_fast64_t wire_ns; /* TCP's smoothed round trip; 0: not known yet */
	atomic_uint_fast64_t request_bytes; /* of a READ at most */
	atomic_uint_fast64_t packet_bytes;  /* of TCP, as they come; 0: not known yet */
	atomic_uint version;                /* of NFS, 3 or 4; 0: not known yet */
};

struct nfs_options {
	struct nfs_address address;
	unsigned connections; /* 1 to NFS_CONNECTIONS_MAX */
	unsigned depth;       /* calls in flight at most, 1 to NFS_DEPTH_MAX */
	uint64_t timeout_ns;
	const atomic_bool *stop;       /* may be NULL; true: waiting ends with -EINTR */
	struct nfs_counters *counters; /* or NULL */
	struct arrivals *arrivals;     /* of READs and whatever else but probes; or NULL */
	/* Some times a second, while calls are in flight, one that gives the server hardly anything to do goes
	 * over a connection of its own: its round trip is the way's, and what a server with this load adds. */
	bool probes;
	/* The server was there a moment ago: one that refuses connections is tried again, too, at first. */
	bool patient;
};

enum { NFS_CONNECTIONS_MAX = 16, NFS_DEPTH_MAX = 65536, NFS_REQUEST_MAX = 1 << 20 };

/* Memory of a client with these options. */
uint64_t nfs_client_bytes(const struct nfs_options *options);

/* Connects, and looks the address's folder up.  -errno with the reason in words. */
int nfs_client_open(struct nfs_client **out, const struct nfs_options *options, struct error *err);
void nfs_client_close(struct nfs_client *client); /* calls in flight are forgotten; NULL is fine */

const struct nfs_handle *nfs_client_root(const struct nfs_client *client);
uint32_t nfs_client_request_bytes(const struct nfs_client *client); /* of a READ at most */

void nfs_client_submit(struct nfs_client *client, struct nfs_call *call);
/* Sends, waits so long at most for the first call to end (0: not at all; less after a signal). */
void nfs_client_step(struct nfs_client *client, uint64_t wait_ns);
/* A call that has ended, or NULL. */
struct nfs_call *nfs_client_take(struct nfs_client *client);
/* Ends every call with that status at once. */
void nfs_client_abandon(struct nfs_client *client, int status);

/* Submits the call and waits for its end; no other is in flight.  Its status. */
int nfs_client_do(struct nfs_client *client, struct nfs_call *call);

/* 0, or why all calls fail from now on, in words. */
int nfs_client_dead(const struct nfs_client *client, struct error *err);

#endif
