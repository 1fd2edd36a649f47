/* A user's own folder: walked, probed, remembered. */
#ifndef MLBENCH_WORKLOADS_DATASET_SCAN_H
#define MLBENCH_WORKLOADS_DATASET_SCAN_H

#include "harness/base/error.h"
#include "workloads/dataset/dataset.h"
#include "workloads/dataset/storage.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;

/* What the scan of one folder shares. */
struct folder_scan {
	const char *root;
	int root_fd;
	struct arena *arena;                   /* for paths and reasons; one thread at a time */
	const struct dataset_control *control; /* never NULL */
	const struct storage_calls *calls;
	unsigned depth; /* requests in flight at most, which is also files open at once */
	bool ring;      /* io_uring may be used, and can be had */
	struct dataset_effort effort;
};

bool scan_stopped(const struct folder_scan *scan);

enum found_kind {
	FOUND_UNKNOWN, /* a link, or a file system that does not say: to be asked */
	FOUND_FILE,
	FOUND_FOLDER,
	FOUND_OTHER,
};

/* One file or thing with a picture's extension, as the walk found it: 48 bytes and its path,
 * which is what a scan keeps of each file in the folder. */
struct found {
	char *path; /* relative to the root; the arena's */
	uint64_t bytes;
	int64_t modified_ns;
	const char *reason; /* why it cannot be used, or NULL; a constant or the arena's */
	uint32_t width, height;
	uint8_t kind;     /* enum found_kind */
	uint8_t format;   /* enum image_format, by its bytes */
	bool sized : 1;   /* size and time are known */
	bool probed : 1;  /* what is in its header, or why it has none, is known */
	bool passing : 1; /* the reason is an errno, another one the next time perhaps: not kept */
	bool cut : 1;     /* more of its beginning has to be read */
	bool known : 1;   /* the cached manifest has it */
	bool chosen : 1;  /* a sample */
};
_Static_assert(sizeof(struct found) == 48, "what a scan keeps of each file");

struct walk {
	struct found *files; /* sorted by class, then path; owned */
	size_t count, room;
	/* "12 .bmp, 3 .gif": pictures by name that nothing here decodes; empty: none. */
	char skipped[DATASET_SKIPPED_BYTES];
};

/* Lists the folder, following links (a link back up is listed as bad), many folders at once.
 * Takes files with an ending of a codec, in any case.  Whether a name is
 * a file is asked only where the listing does not say it: sizes and times of files are not known
 * afterwards.  -EINTR: stopped. */
int walk_folder(struct folder_scan *scan, struct walk *walk, struct error *err);
void walk_release(struct walk *walk);

/* The first-level folder of a path: its class; "." (length 1) for files in the root. Not
 * terminated. */
const char *walk_class(const char *path, size_t *length);

/* Fills *dataset (root excepted) from the folder.  wanted: so many samples, evenly strided
 * through the order of classes, so that each class keeps its share; 0: all.  Only what may
 * become one is looked at: bad files among them are replaced, by the same stride over those that
 * were not looked at, until there are enough.  What the cached manifest knows of unchanged files
 * is not read again. -ENODATA: no usable picture. */
int scan_folder(const char *root, uint64_t wanted, const struct dataset_control *control,
	struct dataset *dataset, struct error *err);

#endif
