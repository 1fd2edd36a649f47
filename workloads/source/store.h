/* Where the files of a data set lie: a folder of this node, or anything else that has names and bytes.
 * Engines read through a store and know nothing of where it is, except those that hand the kernel paths
 * and descriptors themselves (io_uring): they ask for a local one.
 *
 * To add a store (see the local one in store.c, tests/unit/test_store.c for a store in memory):
 *   1. workloads/source/store_NAME.c: a struct that begins with struct store, the functions below, and at
 *      the end `const struct store_ops store_NAME`.  prefix says which addresses are its own ("nfs://").
 *   2. store.c: `&store_NAME,` in store_list, before the local folder, which takes any address.
 * All engines but those with needs_local then read it, and a scan (workloads/dataset/scan.h) finds what is
 * in it. */
#ifndef MLBENCH_WORKLOADS_SOURCE_STORE_H
#define MLBENCH_WORKLOADS_SOURCE_STORE_H

#include "harness/base/error.h"
#include "workloads/dataset/dataset.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct store;

/* An open file, in the store's own terms: a descriptor where the store is local. */
union store_file {
	int fd;
	void *handle;
};

enum store_kind {
	STORE_UNKNOWN, /* of a name in a listing: ask stat */
	STORE_FILE,
	STORE_FOLDER,
	STORE_OTHER,
	STORE_BAD_NAME, /* of a name in a listing that is no part of a path: nothing can be asked of it */
};

struct store_stat {
	enum store_kind kind;
	uint64_t bytes;
	int64_t modified_ns;    /* since 1970; 0: not known */
	uint64_t device, inode; /* which it is, for links that lead back up; 0, 0: there are none */
};

/* What a listing tells.  Nonzero: the listing ends with it. */
struct store_visit {
	int (*folder)(void *context,
		const struct store_stat *what); /* the folder itself, first; may be NULL */
	/* Each name in it, which is the store's until the call returns; "." and ".." are none.
	 * what: of a file whose size and time come with the listing; else NULL. */
	int (*name)(void *context, const char *name, enum store_kind kind,
		const struct store_stat *what);
	void *context;
};

/* Paths are relative to the store's address.  Any thread may call anything but open and close, at the
 * same time.  Functions return 0 or a negative errno. */
struct store_ops {
	const char *name, *summary;
	const char *prefix; /* of its addresses; NULL: takes any */
	bool local;  /* its files are this node's: root_fd, and store_file.fd, are descriptors */
	size_t size; /* of the implementation's struct, which begins with struct store */
	int (*open)(struct store *store, struct error *err);
	void (*close)(struct store *store);
	/* folder: "" is the root.  Names come with their kind where that costs no request of its own. */
	int (*list)(struct store *store, const char *folder, const struct store_visit *visit);
	/* file: that path, open; NULL: it is not (a store may be faster with it). */
	int (*stat)(struct store *store, const char *path, const union store_file *file,
		struct store_stat *out);
	/* direct: past the page cache (O_DIRECT); -EINVAL where there is no such thing. */
	int (*file_open)(struct store *store, const char *path, bool direct, union store_file *out);
	/* Bytes read, fewer at the end of the file, 0 behind it; or a negative errno. */
	ssize_t (*read)(struct store *store, union store_file file, uint64_t offset, void *buffer,
		size_t size);
	void (*file_close)(struct store *store, union store_file file);
	/* 0, or why every call fails from now on.  NULL: that does not happen. */
	int (*dead)(struct store *store, struct error *err);
	/* "the folder '/data'", for messages; returns out. */
	const char *(*describe)(const struct store *store, char *out, size_t room);
};

struct store {
	const struct store_ops *ops;
	const char *address;               /* dataset.path; not owned */
	int root_fd;                       /* of a local store: its folder; else -1 */
	const struct storage_calls *calls; /* of a local store */
};

/* The system calls that a local store is made of.  Tests put others in their place: slow ones, ones
 * that fail, folders without an end. */
struct storage_calls {
	int (*openat)(int folder, const char *path, int flags, ...);
	struct dirent *(*readdir)(DIR *folder);
	int (*statx)(int folder, const char *path, int flags, unsigned mask, struct statx *out);
	ssize_t (*pread)(int file, void *to, size_t size, off_t offset);
	int (*close)(int file);
};

extern const struct storage_calls storage_system;

/* What a store that waits for others goes by.  Set before a store is opened. */
struct store_patience {
	const atomic_bool *stop; /* may be NULL; true: its calls end with -EINTR */
	uint64_t timeout_ns;     /* of a server that says nothing */
};
extern struct store_patience store_patience;

/* Whether a call that gave this is made again: a signal interrupted it (-EINTR), and the program is not to stop. */
bool store_repeats(ssize_t code);

/* Which store an address belongs to. */
const struct store_ops *store_find(const char *address);

/* address outlives the store.  -errno with the reason. */
int store_open(struct store **out, const char *address, struct error *err);
/* All of [offset, offset + size).  -ENODATA: the file ends before. */
int store_read_exactly(
	struct store *store, union store_file file, uint64_t offset, void *to, size_t size);
void store_close(struct store *store); /* NULL is fine */

/* The size of a file, 0 when it cannot be known.  file: as in store_ops.stat. */
uint64_t store_file_bytes(struct store *store, const char *path, const union store_file *file);

extern const struct store_ops store_nfs; /* an NFS server, without a mount */

/* --- of the local store --- */

extern const struct store_ops store_local;

/* What a statx says, asked with this mask. */
enum { STORE_STATX_MASK = STATX_TYPE | STATX_SIZE | STATX_MTIME | STATX_INO };
struct store_stat store_stat_of(const struct statx *st);

/* 0: there is a name, and be it a link that leads nowhere; else a negative errno. */
int store_local_link(struct store *store, const char *path);

#endif
