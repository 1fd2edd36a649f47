/* The bytes of a gzip file (RFC 1952), inflated while they are read.  gzip has no index: what is at an
 * offset is known only when all before it was inflated.  A view goes forward from where it is, and from
 * the file's beginning again where it is asked for what it has passed.
 *
 * zlib inflates, and not ISA-L, which takes 0.9 of its time for shards of JPEG and 0.55 for raw pixels: a
 * shard comes from anywhere, and zlib refuses all code tables that are wrong.  A view keeps 64 KiB of the file, 64 KiB that it passes over, and zlib's window
 * of 32 KiB, whatever the file holds.
 *
 * Members that follow each other are one stream, zeros behind the last one are nothing.  The checksum and
 * the length at the end of a member are held against its bytes when its end is reached.  A file that
 * inflates to more than GZIP_RATIO_MOST times its size, from GZIP_RATIO_FROM bytes on, or to more than
 * GZIP_BYTES_MOST, is refused: nothing but a file that is made to fill a memory or a disk does. */
#ifndef MLBENCH_WORKLOADS_SOURCE_GZIP_VIEW_H
#define MLBENCH_WORKLOADS_SOURCE_GZIP_VIEW_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/source/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { GZIP_RATIO_MOST = 200, GZIP_RATIO_FROM = 64 << 20 };
#define GZIP_BYTES_MOST (UINT64_C(64) << 30)

struct gzip_view;

/* Whether the data set's files are compressed. */
bool gzip_view_wanted(const struct config *config);

/* store outlives the view.  One thread at a time uses it.  -ENOMEM, or why the file cannot be opened. */
int gzip_view_open(struct gzip_view **out, struct store *store, const char *path);
void gzip_view_close(struct gzip_view *view); /* NULL is fine */

/* Bytes of the inflated stream: `size` of them, fewer at its end or before what is wrong in it, 0 behind
 * its end.  -EBADMSG: the file is no good from there on (gzip_view_why); another negative errno: it cannot
 * be read. */
ssize_t gzip_view_read(struct gzip_view *view, uint64_t offset, void *buffer, size_t size);

/* After -EBADMSG: the reason, and how many bytes stand all the same.  None of a member with a wrong
 * checksum stands, since any of them may be wrong, and none of a file that is refused. */
const char *gzip_view_why(const struct gzip_view *view);
uint64_t gzip_view_good(const struct gzip_view *view);

/* Bytes that were inflated to come to where a read began, from the file's beginning on. */
uint64_t gzip_view_again(const struct gzip_view *view);

/* Views that a reader leaves open, since it comes back to their files. */
struct gzip_views {
	struct gzip_kept *list; /* (GZIP_VIEWS); owned */
	size_t next;            /* the one to be closed first */
	uint64_t again;         /* gzip_view_again of views that are closed */
	uint64_t packed;        /* bytes of files that were read */
};
enum { GZIP_VIEWS = 16, GZIP_VIEW_MEMORY = 192 * 1024 /* about, of each */ };

/* False: no memory. */
bool gzip_views_open(struct gzip_views *views);
/* Safe on {0}.  gzip_view_again of all of them. */
uint64_t gzip_views_close(struct gzip_views *views);

/* Reads all of [offset, offset + size).  path: the data set's own, which stays.  -ENODATA: the stream ends
 * before; others as above. */
int gzip_views_read(struct gzip_views *views, struct store *store, const char *path,
	uint64_t offset, void *buffer, size_t size);

#endif
