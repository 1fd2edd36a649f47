/* A user's own folder: walked, probed, remembered. */
#ifndef MLBENCH_WORKLOADS_DATASET_SCAN_H
#define MLBENCH_WORKLOADS_DATASET_SCAN_H

#include "harness/base/error.h"
#include "workloads/dataset/dataset.h"

#include <stdbool.h>
#include <stdint.h>

/* One file or thing with a picture's extension, as the walk found it. */
struct found {
	char *path; /* relative to the root; the arena's */
	uint64_t bytes;
	int64_t modified_ns;
	const char *reason; /* why it cannot be used, or NULL; a constant or the arena's */
	uint32_t width, height;
	bool probed; /* what is in its header, or why it has none, is known */
	bool passing; /* the reason is an errno, which may be another one the next time: never kept */
	uint8_t format; /* enum image_format, by its bytes */
};

struct walk {
	struct found *files; /* sorted by class, then path; owned */
	size_t count;
	size_t known; /* of them, from the cache */
	/* "12 .bmp, 3 .gif": pictures by name that nothing here decodes; empty: none. */
	char skipped[DATASET_SKIPPED_BYTES];
	uint64_t listing; /* XXH3 over every path, size and time: changes when anything does */
};

struct arena;

/* Walks the folder, following links (a link back up is listed as bad).  Takes files ending in jpg,
 * jpeg, png, ppm, webp, tif or tiff, in any case.  Empty files and what is no regular file get their reason here.
 * -EINTR: *stop (may be NULL) became true. */
int walk_folder(const char *root, const atomic_bool *stop, struct arena *arena, struct walk *walk,
	struct error *err);
void walk_release(struct walk *walk);

/* The first-level folder of a path: its class; "." (length 1) for files in the root. Not
 * terminated. */
const char *walk_class(const char *path, size_t *length);

/* Fills *dataset (root excepted) from the folder: through the cached manifest where nothing
 * changed, else by reading every file's header.  -ENODATA: no usable picture. */
int scan_folder(const char *root, const struct dataset_control *control, struct dataset *dataset,
	struct error *err);

#endif
