/* The folder of a generated data set while it is worked on: whose it is, what is done there, the
 * journal.
 *
 * Durability: samples are written beside their name and renamed, so a name means a whole file for
 * every reader; they are not synced one by one.  The journal names files that were whole when it
 * was written. Before the manifest is renamed into place the file system is synced once (syncfs),
 * so a manifest that survives a crash names files that survived it.  A crash of the machine before
 * that may lose files that the journal names: the next try checks every one of them. */
#ifndef MLBENCH_WORKLOADS_DATASET_SITE_H
#define MLBENCH_WORKLOADS_DATASET_SITE_H

#include "harness/base/error.h"
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/recipe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum record_state {
	RECORD_MISSING, /* to be made */
	RECORD_CLAIMED, /* a journal or manifest says it is there: to be checked */
	RECORD_DONE,    /* there */
};

/* Of a file. */
struct record {
	uint64_t bytes, checksum;
	uint32_t width, height;
	atomic_uchar state; /* enum record_state: released by the thread that made the rest */
};

struct site {
	const struct recipe *recipe;
	const char *root;
	int folder;    /* descriptor, locked while open */
	int journal;   /* -1: none */
	bool complete; /* a manifest of this recipe is there */
	bool has_detail;
	uint32_t detail; /* as recorded */
	json_t *recipe_json;
	struct record *records; /* (recipe_files) */
	pthread_mutex_t lock;
	struct buffer pending; /* lines for the journal, under lock */
};

/* Makes or opens the folder and reads what an earlier try left: records that it claims are
 * RECORD_CLAIMED.  -EDOM: another recipe's; -ENOTEMPTY: not ours; -EBUSY: another process is at
 * it; -ENOTDIR, -EACCES, -EROFS, … */
int site_open(struct site *site, const struct recipe *recipe, const char *root, struct error *err);
void site_close(struct site *site); /* safe after a failed open */

/* Starts the journal (unless a complete set is only being mended) and makes the class folders. */
int site_begin(struct site *site, uint32_t detail, struct error *err);

/* Appends what was stored since the last call to the journal. */
int site_note(struct site *site, struct error *err);

/* A file that is being written, by one thread.  add keeps what is small for a while, and has it compressed
 * where the recipe's container is; the same bytes then come to the same file, by the same zlib. */
enum { SITE_NAME_BYTES = RECIPE_PATH_BYTES + 8 };
struct site_file {
	uint64_t id, bytes;
	int fd;
	char name[RECIPE_PATH_BYTES];
	struct hash_pieces *sum; /* of what is written, as bytes are */
	struct buffer waiting;
	struct z_stream_s *gzip; /* NULL: it is not compressed */
};
int site_file_begin(struct site *site, uint64_t id, struct site_file *out, struct error *err);
int site_file_add(struct site *site, struct site_file *file, const void *bytes, size_t size,
	struct error *err);
/* Puts it under its name, fills its record, and has it noted; or (also after a failure) drops it. */
int site_file_end(struct site *site, struct site_file *file, struct error *err);
void site_file_drop(struct site *site, struct site_file *file);

/* Writes one file under its name, fills its record, and has it noted. Any thread. */
int site_store(
	struct site *site, uint64_t id, const uint8_t *bytes, size_t size, struct error *err);

/* Syncs, puts the manifest in place, removes the journal. bytes: of the whole set.  Files that hold
 * several samples are read once more, as a scan would read them: -EIO where that finds others. */
int site_finish(struct site *site, const struct config *config,
	const struct dataset_control *control, uint64_t *bytes, struct error *err);

/* -ENOSPC with what is needed and free, when `bytes` more in `files` files do not fit. */
int site_check_room(const struct site *site, double bytes, uint64_t files, struct error *err);

/* 0 when `root` holds a complete set of this recipe, read into *dataset; -ENODATA: missing or
 * incomplete; -EDOM: another recipe's; -ENOTEMPTY: something else.  look: at a few of its files, too, and
 * at their sizes. */
int site_load(const struct recipe *recipe, const char *root, bool look, struct dataset *dataset,
	struct error *err);

#endif
