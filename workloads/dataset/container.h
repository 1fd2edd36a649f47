/* Files that hold several samples each, and how one is split into them.
 *
 * A container says where in a file its samples lie; a kind of samples makes a sample of the bytes there.
 * dataset.container chooses a container whose samples are what files are without it; a kind whose own
 * files hold many names theirs (sample_ops.container in workloads/sample/sample.h).
 *
 * Samples come from files in two steps, which are two because they are asked at different times:
 *   - split, here, reads a file's bytes.  A scan does it once, and keeps what was found for as long as the
 *     files are as they were, whatever the configuration says.
 *   - cut (sample_ops.cut) reads nothing: it says by the configuration what is taken of each of those
 *     places, or of each file.  Every point of a sweep has it done anew, over tokens.length say, and
 *     does not read the files again.
 *
 * A container's split walks through the file by container_view and says what it finds:
 *   - container_add_sample: bytes that a file of their own could be.  The kind looks at the first of
 *     them, as it looks at a file, and one that is no sample is counted as bad;
 *   - container_add: a sample that needs no look, since the function knows all of it;
 *   - container_note_bad: an entry that is left out, and why.
 * 0: the file's end was met.  A negative errno with the reason: the file is no good from there on;
 * what was added before stands, and the reason is counted as a bad entry.  Only -ENOMEM and -EINTR,
 * which all of these functions may return, end the scan: they are passed on as they are.
 *
 * To add a container: workloads/dataset/container_NAME.c that ends with such a table, container_NAME, and
 * its line at the end of DATASET_CONTAINERS (harness/config/tables.h).  dataset.container has the choice
 * from then on, for all kinds whose files are a sample each; with .wrap, `mlbench gen` writes it.
 * tests/recipes/container.patch is a whole example.  The last of the list is what tests/fuzz/fuzz_container.c
 * fuzzes beside tar, TFRecord and gzip. */
#ifndef MLBENCH_WORKLOADS_DATASET_CONTAINER_H
#define MLBENCH_WORKLOADS_DATASET_CONTAINER_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sample_ops;
struct split_work;
struct folder_scan;
struct found;
struct dataset;

enum {
	CONTAINER_VIEW_MAX = 16 << 20, /* bytes of a file in memory at once, for each thread */
	CONTAINER_LABEL_MAX = 1 << 20, /* classes that have numbers and no names */
	CONTAINER_BAD_MAX = 100,       /* bad entries of a file that are told one by one */
	CONTAINER_CLASS_MAX = 255,     /* bytes of a class's name */
	CONTAINER_NAME_MAX = 255,      /* bytes of a file's name */
};

/* A sample in a file. */
struct container_part {
	uint64_t offset, length;
	uint64_t checksum; /* XXH3 of its bytes; 0: not known */
	/* Its class: a number, below 0 where it has none, as test sets say it; or a name, of class_size bytes;
	 * or that of the folder its file is in. */
	bool numbered;
	int64_t label;
	const char *class_name; /* NULL: it has none of its own */
	size_t class_size;
	uint32_t width, height; /* container_add_sample fills in these */
	uint8_t format;
};

/* A file that is being split, by one thread. */
struct container_file {
	const char *path; /* relative to the root */
	uint64_t bytes;
	const struct sample_ops *kind;

	/* container.c's own. */
	struct split_work *work;
	size_t index;
	unsigned worker;
};

/* Bytes [offset, offset + size) of the file, until any of these is called again; size <= CONTAINER_VIEW_MAX.
 * -ENODATA: the file ends before (a torn file); another errno: it cannot be read. */
int container_view(struct container_file *file, uint64_t offset, size_t size, const uint8_t **out,
	struct error *err);

int container_add(
	struct container_file *file, const struct container_part *part, struct error *err);

/* what: the entry's name for messages, cut where it is long. */
int container_add_sample(struct container_file *file, const char *what,
	const struct container_part *part, struct error *err);

/* The first half of that, for a function that is at the sample's bytes now and knows its class later: fills
 * in width, height and format.  *good: it is a sample; else that it is none was noted. */
int container_look(struct container_file *file, const char *what, struct container_part *part,
	bool *good, struct error *err);

int container_note_bad(struct container_file *file, struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A sample to be written. */
struct container_entry {
	const char *key;       /* "00000012" */
	const char *extension; /* of what its bytes are, without a dot: "jpg" */
	const uint8_t *bytes;
	size_t size;
	uint32_t label;
};

struct container_ops {
	const char *name, *summary;
	const char *endings;             /* of its files, for messages: ".tar" */
	const char *extension;           /* of those that are written, without a dot */
	bool (*takes)(const char *name); /* is a file one, by its name? */
	/* Files are compressed by gzip, written and read: `bytes`, and where samples lie, are of what they
	 * inflate to. */
	bool inflates;
	/* Its own readers hold each sample against a checksum whenever they read it, and so does a run: by one
	 * that the split keeps. */
	bool summed;
	/* What reads its files where gzip packed them; NULL: they have to be unpacked. */
	const struct container_ops *packed;
	int (*split)(struct container_file *file, struct error *err);
	/* What stands before and behind an entry's bytes in a file (buffers fail as buffers do); NULL: it is
	 * only read.  At the file's end: NULL, nothing. */
	void (*wrap)(
		const struct container_entry *entry, struct buffer *before, struct buffer *behind);
	void (*finish)(struct buffer *end);
};

/* Is a file one, by its name?  Packed files are, too (".tfrecord.gz", ".tar.zst"), so that a split can say
 * what is to be done with them. */
bool container_takes(const struct container_ops *container, const char *name);

/* By enum dataset_container, less files, which comes first there; NULL-terminated. */
extern const struct container_ops *const container_list[];

/* NULL, or what a container's table lacks that every one has; sample_kinds_check asks for all of them. */
const char *container_lacks(const struct container_ops *container);

/* What dataset.container asks for; NULL: files, whose own container is the kind's to name. */
const struct container_ops *container_of_config(const struct config *config);

/* -EINVAL: what it asks for cannot be, with the other keys; reads: those of reading, too. */
int container_validate(const struct config *config, bool reads, struct error *err);

/* Splits files (which are regular and sized, or have a reason and are listed as bad), by the scan's
 * container: fills *dataset (but root and arena) with samples in the order of files and offsets.
 * *passing: a reason may be another one the next time.  -EINTR, -ENOMEM, -EOVERFLOW: too many. */
int container_split_files(struct folder_scan *scan, const struct found *files, size_t count,
	struct dataset *dataset, bool *passing, struct error *err);

#endif
