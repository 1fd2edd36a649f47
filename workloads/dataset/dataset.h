/* What is read: a folder of files in ImageFolder layout (class/name.jpg), known through a manifest.
 * Generated folders (recipe) carry theirs; a folder of the user's is scanned once and its manifest
 * cached outside it.  After dataset_open the structure is read-only and any thread may use it. */
#ifndef MLBENCH_WORKLOADS_DATASET_DATASET_H
#define MLBENCH_WORKLOADS_DATASET_DATASET_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/image/formats.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sample {
	const char *path;       /* relative to the root: "class/name.jpg"; memory of the dataset */
	uint64_t bytes;         /* file size */
	uint64_t checksum;      /* XXH3 of the file; 0 when not known (a scanned folder) */
	uint32_t width, height; /* pixels; of other kinds of samples than images what they like */
	uint32_t label;         /* index of its class, or DATASET_UNLABELLED */
	uint8_t format;         /* enum image_format */
};

/* A sample whose class is given as -1, as those of test sets are: it has no loss (BATCH_LABEL_MASKED). */
static const uint32_t DATASET_UNLABELLED = UINT32_MAX;

/* A file that was left out, and why. */
struct dataset_bad {
	const char *path;
	const char *reason;
};

enum { DATASET_SKIPPED_BYTES = 256 };

struct dataset {
	char *root; /* as given in dataset.path */
	struct sample *samples;
	size_t count;
	/* (count) Of a packed set, or of one that was cut (sample_cut_files), whose files hold several
	 * samples each, next to each other in the list: where in its file each begins.  NULL: a sample is
	 * a whole file. */
	const uint64_t *offsets;
	const char **class_names;
	size_t class_count;
	struct dataset_bad *bad;
	size_t bad_count;
	uint64_t
		beside; /* files of a user's folder that belong to others (sample_file_ops.beside) */
	/* What of a user's folder is passed over by its name: "12 .bmp, 3 .gif, 2 hidden files or folders". */
	char skipped[DATASET_SKIPPED_BYTES];
	/* What a user's folder looks like, and the key for that; empty: nothing is strange. */
	char advice[DATASET_SKIPPED_BYTES];
	uint64_t total_bytes, max_bytes; /* of samples */
	/* Files that hold the samples, and their sizes: more than total_bytes where they are packed. */
	uint64_t files, stored_bytes;
	struct image_extents extents; /* by format */
	bool generated;               /* by a recipe of ours */
	bool scanned_now;             /* false: from a manifest */
	bool cut;                     /* into the samples of one configuration (sample_cut_files) */
	void *arena;                  /* owns the strings */
	struct dataset
		*evaluated; /* that evaluations read; NULL: this one, or there are none; owned */
};

/* Whether a sample is the first one of its file, or all of it. */
bool dataset_begins_file(const struct dataset *dataset, size_t sample);

/* A sample's name for messages: "'a.jpg'", "'shard.tar' at byte 512".  Returns out. */
enum { DATASET_NAME_BYTES = 192 };
const char *dataset_name_sample(
	const struct dataset *dataset, size_t sample, char out[DATASET_NAME_BYTES]);

/* Told of progress about ten times a second, from the calling thread; done and total are
 * samples, or files that may become some. total is 0 while a folder is listed: nobody knows yet. */
typedef void dataset_progress(void *context, uint64_t done, uint64_t total, uint64_t bytes);

/* How the files of a user's folder are looked at.  What is found is the same. */
enum dataset_way {
	DATASET_WAY_AUTO,    /* io_uring; threads where it cannot be had */
	DATASET_WAY_THREADS, /* a thread for each request in flight */
};

/* What looking at a user's folder took. */
struct dataset_effort {
	uint64_t folders;        /* listed */
	uint64_t pictures;       /* by name */
	uint64_t sized;          /* files whose size and time were asked for */
	uint64_t headers;        /* files that were opened for their header */
	unsigned most_in_flight; /* requests at once */
	bool ring;               /* some of them went through io_uring */
};

enum { DATASET_DEPTH = 64 };

struct storage_calls;
struct sample_ops;
struct container_ops;

struct dataset_control {
	dataset_progress *progress; /* may be NULL */
	void *context;
	const atomic_bool *stop; /* may be NULL; true: give up soon with -EINTR */
	unsigned threads;        /* 0: as many as cores */
	/* Of a user's folder only. */
	const struct sample_ops *kind; /* of its samples (sample.h); NULL: image; dataset_open: the
					* configuration's */
	/* What splits files into samples (container.h); NULL: the kind's own, or nothing.  dataset_open:
	 * the configuration's. */
	const struct container_ops *container;
	/* Requests in flight at most; 0: DATASET_DEPTH.  Fewer where few files may be open. */
	unsigned depth;
	enum dataset_way way;
	const char
		*exclude; /* as dataset.exclude; NULL: nothing; dataset_open: the configuration's */
	bool undecoded; /* files count as samples by their names: none will be decoded; likewise */
	struct dataset_effort *effort;     /* may be NULL */
	const struct storage_calls *calls; /* NULL: the system's; with others no io_uring is used */
};

/* Opens dataset.path.  With a recipe: needs a complete generated set that matches the recipe,
 * else -ENODATA (missing or incomplete), -EDOM (another recipe's) or -ENOTEMPTY (a folder of
 * something else).  Without: scans, or takes the cached manifest where no file's size or time
 * changed.  -EINVAL/-ENOENT/-ENOTDIR/-EACCES: bad input.  Opens evaluate.path beside it, where there are
 * evaluations, always as a folder that was found. */
int dataset_open(const struct config *config, const struct dataset_control *control,
	struct dataset *dataset, struct error *err);
void dataset_close(struct dataset *dataset); /* safe on {0} */

struct dataset_generated {
	uint64_t made, kept; /* samples written now, and found done from an earlier try */
	uint64_t bytes;      /* of the whole set */
	double seconds;
	double encode_share; /* of the CPU time of the generating threads, inside the encoder */
};

/* Generates the set of the recipe at dataset.path: deterministic in (dataset.seed, id) whatever the
 * thread count, resumable, and complete only when its manifest has been renamed into place.
 * -EINTR: stopped, what was made is kept for the next try. -ENOSPC: disk full, likewise. */
int dataset_generate(const struct config *config, const struct dataset_control *control,
	struct dataset_generated *out, struct error *err);

/* -EINVAL with the reason where nothing can be generated at dataset.path. */
int dataset_check_writable(const struct config *config, struct error *err);

struct dataset_verified {
	uint64_t good;
	uint64_t bad; /* missing, wrong size, wrong checksum: each logged with log_warn, 20 at most
		       */
};

/* Reads every file and compares it with the manifest. */
int dataset_verify(const struct config *config, const struct dataset_control *control,
	struct dataset_verified *out, struct error *err);

#endif
