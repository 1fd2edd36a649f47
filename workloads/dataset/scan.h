/* A user's own folder: walked, probed, remembered.
 *
 * A scan (workloads/dataset/scan.c) lists names, chooses which files become samples, looks at
 * those, and keeps a manifest outside the folder. What it finds is a function of the folder and
 * of dataset.samples alone: not of threads, of the way, or of how much is in flight.
 *
 * - Names (walk.c) come from the store (workloads/source/store.h). Threads list up to 64 folders
 *   at once; one thread puts together what they found. The kind of an entry comes with its name, so that only links, and names on file
 *   systems that do not say it, are asked with a statx. Order is by class, then by path, bytes
 *   compared. Links are followed; a folder that is above itself, by device and inode, is listed
 *   as bad, and so is one that cannot be read or whose path is longer than the kernel takes. A
 *   stack of waiting folders, the last found first, keeps what waits within the depth of the tree
 *   times the width of its folders.
 *   Names that begin with a dot are passed over, and so is what dataset.exclude says; they are counted, and
 *   so are files by the endings that the kind does not take.
 * - Choice (scan.c). dataset.samples = N takes N files at an even stride through that order, and
 *   looks at no others. Each bad one among them is replaced, by an even stride over the files
 *   that were not looked at, until there are N or none is left (from 64 bad ones on, more at once
 *   than are wanted). So with no bad file the samples are every n/N-th of a full scan; of bad
 *   files, only those that were looked at are told.
 * - Looking (inspect.c). A file takes four requests: statx, openat, read of 64 KiB, close. They go
 *   through io_uring, on as many threads as cores (16 at most), and where that is forbidden or
 *   lacks an operation a thread for each request in flight calls the store. 64 are in flight at most, fewer where few files may be open. Files are taken in turn
 *   from 64 stretches of the list: neighbours share a folder, and FUSE may have a folder answer
 *   one lookup after another.
 *   Sizes alone, of files that are no round trip away (the first 256 take less than 20 us each), are
 *   asked by a call each on as many threads as cores, folder by folder, relative to the open folder.
 * - Splitting (container.c).  Where files hold several samples each, their sizes are asked for, and
 *   as many threads as cores (16 at most) split a file each.  All files are split, whatever
 *   dataset.samples says: it takes an even stride through all samples.
 * - Memory. 48 bytes and the path for each picture by name, in an array that doubles; 16 bytes
 *   more while samples are chosen, then 40 for a sample or 16 for a bad file. Beginnings of
 *   files: 64 KiB each in flight, 4 MiB together; those whose header is longer are read again
 *   with eight times as much, 256 MiB together.
 *   Of files that are split: 48 bytes for a sample while they are, then 48 more; 16 MiB for each
 *   thread at most; 100 bad entries of each file.
 * - The manifest (scan.c) of all files, and of each N, is a file of its own; of split files there is
 *   one for all N. It counts
 *   while the names below the folder, and sizes and times of the files in it, are as they were, and is
 *   the data set where it has every file.
 *   What errno said of a file is not kept.
 * - Stopping. Every loop looks at the stop flag, sorting too. What is in flight is waited for,
 *   and files that are open are closed; nothing else is begun. */
#ifndef MLBENCH_WORKLOADS_DATASET_SCAN_H
#define MLBENCH_WORKLOADS_DATASET_SCAN_H

#include "harness/base/error.h"
#include "workloads/dataset/container.h"
#include "workloads/dataset/dataset.h"
#include "workloads/source/store.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;

/* What the scan of one folder shares. */
struct folder_scan {
	const char *root;
	struct store *store;
	struct arena *arena;                   /* for paths and reasons; one thread at a time */
	const struct dataset_control *control; /* never NULL */
	const struct sample_ops *kind;         /* of the samples; never NULL */
	const struct container_ops *container; /* that files are; NULL: each is a sample */
	unsigned depth; /* requests in flight at most, which is also files open at once */
	bool ring;      /* io_uring may be used, and can be had */
	bool checksums; /* of samples in files that are split: all of their bytes are read */
	struct dataset_effort effort;
};

bool scan_stopped(const struct folder_scan *scan);

/* Is a file looked at, by its name? */
bool scan_takes_name(const struct folder_scan *scan, const char *name);

/* What the beginning of a file or of a sample in one says of it, as sample_look (sample.h). */
int scan_look(const struct folder_scan *scan, const void *head, size_t size, uint64_t bytes,
	struct sample *out, struct error *err);

/* One file or thing with a sample's extension, as the walk found it: 48 bytes and its path,
 * which is what a scan keeps of each file in the folder. */
struct found {
	char *path; /* relative to the root; the arena's */
	uint64_t bytes;
	int64_t modified_ns;
	const char *reason; /* why it cannot be used, or NULL; a constant or the arena's */
	uint32_t width, height;
	uint8_t kind;     /* enum store_kind; STORE_UNKNOWN: to be asked */
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
	uint64_t beside; /* as the data set's, and this */
	char skipped[DATASET_SKIPPED_BYTES];
	char advice[64]; /* the key that would read what was passed over; empty: none would */
};

/* Lists the folder, following links (a link back up is listed as bad), many folders at once.
 * Takes files with an ending of the kind (of a codec, in any case), and counts the others.  Whether a name is
 * a file is asked only where the listing does not say it: sizes and times of files are not known
 * afterwards.  -EINTR: stopped. */
int walk_folder(struct folder_scan *scan, struct walk *walk, struct error *err);
void walk_release(struct walk *walk);

/* Fills in what is not known yet of files[which[i]], i < count, or of the first `count` files
 * where which is NULL: kind, size and time, and, with headers, what the picture's header says.
 * A file that cannot be read, or is no picture, gets its reason, which is a finding and no
 * failure; one that has a reason is left alone.  Requests in flight: scan->depth at most;
 * memory: 64 KiB each, 256 MiB in all where headers are longer.  -EINTR: stopped, when what was
 * in flight had come back. */
int inspect_files(struct folder_scan *scan, struct found *files, const size_t *which, size_t count,
	bool headers, struct error *err);

/* Of a regular file; an empty one is bad. */
void found_take_size(struct found *file, const struct store_stat *what);

/* Whether this process may look at files through io_uring. */
bool inspect_ring_works(void);

/* The first-level folder of a path: its class; "." (length 1) for files in the root. Not
 * terminated. */
const char *walk_class(const char *path, size_t *length);

/* Fills *dataset (root excepted) from the folder.  wanted: so many samples, evenly strided
 * through the order of classes, so that each class keeps its share; 0: all.  Only what may
 * become one is looked at: bad files among them are replaced, by the same stride over those that
 * were not looked at, until there are enough.  What the cached manifest knows of unchanged files
 * is not read again. -ENODATA: no usable file. */
int scan_folder(const char *root, uint64_t wanted, const struct dataset_control *control,
	struct dataset *dataset, struct error *err);

/* The same of a store that is open. */
int scan_store(struct store *store, uint64_t wanted, const struct dataset_control *control,
	struct dataset *dataset, struct error *err);

/* Splits the files of a generated set of dataset.path, which *dataset has, into samples.  -EIO: one of
 * them is not what its recipe makes. */
int scan_split_generated(const struct config *config, const struct dataset_control *control,
	struct dataset *dataset, struct error *err);

#endif
