/* NFS calls and replies as bytes: ONC RPC (RFC 5531), NFSv4.0 (RFC 7530), NFSv3 and what mounts it
 * (RFC 1813), port numbers (RFC 1833).  Pure functions: no socket, no clock.  Every length of a reply is checked against what has arrived, since a server may send anything.
 *
 * A call goes from a handle down a path, and does one thing there.  In NFSv4 that is one compound;
 * files are read with the anonymous stateid, so nothing is opened and the server keeps no state of
 * ours.  In NFSv3 it is a step for each part of the path and one at its end. */
#ifndef MLBENCH_WORKLOADS_SOURCE_NFS_WIRE_H
#define MLBENCH_WORKLOADS_SOURCE_NFS_WIRE_H

#include "harness/base/buffer.h"
#include "workloads/source/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NFS_HANDLE_BYTES = 128,
	NFS_PATH_BYTES = 4096, /* of a path below its handle */
	NFS_PATH_PARTS = 64,
	NFS_CALL_BYTES = 8192,        /* enough for any call */
	NFS_HEAD_BYTES = 2048,        /* what stands before the data of a READ is shorter */
	NFS_LIST_BYTES = 32 * 1024,   /* of a folder, asked for at once */
	NFS_RECORD_LEAST = 8,         /* any reply is longer */
	NFS_RECORD_EXTRA = 64 * 1024, /* a reply is shorter than the data asked for and this */
};

struct nfs_handle {
	uint32_t size; /* 0: the root of the server's exports */
	uint8_t bytes[NFS_HANDLE_BYTES];
};

enum nfs_kind {
	NFS_LOOK, /* handle and attributes */
	NFS_READ, /* bytes, and the handle */
	NFS_LIST, /* names of a folder, a part of them at a time */
	NFS_PING, /* attributes of the handle, as a probe: a server has hardly anything to do for it */
	NFS_LIMITS, /* NFSv3: the largest READ, as of a LOOK */
	NFS_MOUNT,  /* NFSv3: the handle of the path, which is the server's; of its mount program */
	NFS_FIND,   /* the port of that program, into most_bytes; of the port mapper */
	NFS_KINDS,
};

/* "LOOKUP", "READ", ...: the operation that a kind is for. */
const char *nfs_kind_name(enum nfs_kind kind);

struct nfs_call {
	/* The caller's; all of it stays until the call has ended. */
	enum nfs_kind kind;
	const struct nfs_handle *from; /* may be `handle` below */
	const char *path;              /* below it; "": itself */
	uint64_t offset;               /* of a READ */
	uint32_t count;                /* of a READ: bytes, and the room of data */
	uint8_t *data;
	uint64_t cookie; /* of a LIST: 0 first, then what the call before it has left here */
	uint8_t verifier[8];
	bool plain; /* NFSv3, of a LIST: READDIR, whose names come without kinds, and not READDIRPLUS */
	/* Of a LIST: each name is appended as a struct store_stat, not aligned, and a string, which is a part of a path.
	 * modified_ns 0: neither its size nor its time is known. */
	struct buffer *names;
	void *context;

	/* Whoever sends it. */
	unsigned version;       /* of NFS, 3 or 4 */
	struct nfs_handle here; /* NFSv3: how far it has come */
	const char *rest;       /* NFSv3: the part of the path that is looked up now */
	uint32_t part_bytes;    /* its length; 0: it is at the end */

	/* Results. */
	int status; /* 0 or a negative errno; -EAGAIN: the server asks to try again later */
	struct nfs_handle handle;
	struct store_stat what;
	uint64_t
		most_bytes; /* of a LOOK: the largest READ that the server answers; 0: it did not say */
	uint32_t got;       /* of a READ */
	bool end;           /* of a READ, a LIST: nothing comes after that */

	/* Whoever sends it: nfs_client.c. */
	uint64_t asked_ns, step_ns, sent_ns, not_before_ns;
	uint32_t sent_bytes, reply_bytes;
	unsigned tries, connection;
	uint16_t slot;
	struct nfs_call *next;
};

/* Who asks, as AUTH_SYS says it. */
struct nfs_identity {
	char host[64];
	uint32_t user, group, groups[16], group_count;
};
void nfs_identity_of_process(struct nfs_identity *out);

/* The next part of a path into *size, from its first letter on; false: there is none. */
bool nfs_path_next(const char **path, uint32_t *size);

/* The whole record, its marker included, into out (NFS_CALL_BYTES).  Bytes, or -ENAMETOOLONG. */
int nfs_call_write(
	const struct nfs_call *call, const struct nfs_identity *who, uint32_t xid, uint8_t *out);

/* The reply's identifier, of the first 4 bytes after its marker. */
uint32_t nfs_reply_xid(const uint8_t *bytes);

/* Takes a reply: `have` of its `size` bytes are there, all of them or, of a READ, NFS_HEAD_BYTES at
 * least.  Fills the results in.  Of a READ *data_at says where in the reply its call->got bytes
 * begin, which lie within size; they are left to the caller.
 * 0: the results are there.  -EBADMSG: it makes no sense, and why says what does not. */
int nfs_reply_read(struct nfs_call *call, const uint8_t *bytes, size_t have, size_t size,
	size_t *data_at, const char **why);

#endif
