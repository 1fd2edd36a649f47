/* Listing a user's folder, many of its folders at once.  Threads read names only, up to
 * ROUND_FOLDERS folders in a round, and one thread puts together what they found: what comes out
 * depends on the tree alone, and so does its order. */
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/scan.h"
#include "workloads/dataset/threads.h"
#include "workloads/sample/sample.h"
#include "workloads/source/store.h"

#include "harness/base/buffer.h"
#include "harness/base/files.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	KINDS_MAX = 8,       /* endings that are told apart; the last one stands for all others */
	SKIPPED_ENDING = 12, /* bytes of an ending */
	SKIPPED_NAME = 64,
	/* Listed before their subfolders are: threads are started once for so many.  The last
	 * found come first, so that what waits is bounded by the depth of the tree and not by
	 * its size. */
	ROUND_FOLDERS = 1024,
	LISTED_SIZED = STORE_BAD_NAME + 1, /* a STORE_FILE whose size came with its name */
};

/* A folder that is to be listed, or was and has subfolders that are to be. */
struct folder {
	struct folder *above;
	size_t users; /* itself until it is listed, and folders below */
	uint64_t device, inode;
	char *path;          /* "" for the root */
	struct buffer names; /* an enum store_kind before each, a NUL behind; or LISTED_SIZED before
				it and a store_stat behind */
	size_t asked;        /* of them, for what they are */
	int code;            /* -errno of the listing; -ELOOP: it is above itself */
};

/* Files that are passed over, by the ending of their names. */
struct skipped_kind {
	char ending[SKIPPED_ENDING + 1]; /* in small letters; "": none */
	uint64_t count;                  /* 0: the place is free */
	char example[SKIPPED_NAME];      /* one of the names, cut where it is long */
};

struct listing {
	struct folder_scan *scan;
	struct walk *walk;
	struct folder **waiting; /* a stack */
	size_t waiting_count, waiting_room;
	struct folder *round[ROUND_FOLDERS];
	size_t round_count;
	struct walk
		asked; /* names of this round that are asked what they are; paths are malloc's */
	struct buffer path;
	struct skipped_kind skipped[KINDS_MAX];
	uint64_t hidden,
		excluded; /* files and folders: some file systems do not say which of them a name is */
};

const char *walk_class(const char *path, size_t *length)
{
	const char *slash = strchr(path, '/');
	*length = slash ? (size_t)(slash - path) : 1;
	return slash ? path : ".";
}

/* By class and then by path, bytes compared: the order of samples and labels.  Once stopped
 * nothing is compared any more, which ends the sorting of millions of names soon. */
static int by_class(const void *a, const void *b, void *scan)
{
	const struct found *x = a, *y = b;
	size_t x_length, y_length;
	size_t same = 0;
	bool one_class = false;
	if (scan_stopped(scan))
		return 0;
	for (; x->path[same] && x->path[same] == y->path[same]; same++)
		one_class = one_class || x->path[same] == '/';
	if (one_class)
		return (unsigned char)x->path[same] - (unsigned char)y->path[same];
	const char *x_class = walk_class(x->path, &x_length),
		   *y_class = walk_class(y->path, &y_length);
	const int order = memcmp(x_class, y_class, x_length < y_length ? x_length : y_length);
	if (order)
		return order;
	if (x_length != y_length)
		return x_length < y_length ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* ---- folders ------------------------------------------------------------------------------ */

static bool add_folder(struct listing *listing, struct folder *above, const char *path)
{
	struct folder *const folder = calloc(1, sizeof *folder);
	char *const own = strdup(path);
	if (listing->waiting_count == listing->waiting_room) {
		const size_t larger = 2 * listing->waiting_room + ROUND_FOLDERS;
		struct folder **const waiting =
			realloc(listing->waiting, larger * sizeof(struct folder *));
		if (waiting) {
			listing->waiting = waiting;
			listing->waiting_room = larger;
		}
	}
	if (!folder || !own || listing->waiting_count == listing->waiting_room) {
		free(folder);
		free(own);
		return false;
	}
	*folder = (struct folder){.above = above, .users = 1, .path = own};
	if (above)
		above->users++;
	listing->waiting[listing->waiting_count++] = folder;
	return true;
}

/* Folders above it go with the last one below them. */
static void leave_folder(struct folder *folder)
{
	while (folder && --folder->users == 0) {
		struct folder *const above = folder->above;
		buffer_release(&folder->names);
		free(folder->path);
		free(folder);
		folder = above;
	}
}

static bool is_above_itself(const struct folder *folder)
{
	for (const struct folder *above = folder->above; above; above = above->above)
		if (above->inode == folder->inode && above->device == folder->device)
			return true;
	return false;
}

/* A folder that is being listed. */
struct listing_visit {
	const struct folder_scan *scan;
	struct folder *folder;
};

static int walk_see_folder(void *context, const struct store_stat *what)
{
	struct folder *const folder = ((const struct listing_visit *)context)->folder;
	folder->device = what->device;
	folder->inode = what->inode;
	return (what->device || what->inode) && is_above_itself(folder) ? -ELOOP : 0;
}

/* Once stopped, what was listed is not looked at. */
static int walk_see_name(
	void *context, const char *name, enum store_kind kind, const struct store_stat *what)
{
	const struct listing_visit *const visit = context;
	struct buffer *const names = &visit->folder->names;
	const char byte = (char)(what ? LISTED_SIZED : kind);
	if (scan_stopped(visit->scan))
		return -EINTR;
	buffer_add(names, &byte, 1);
	buffer_add(names, name, strlen(name) + 1);
	if (what)
		buffer_add(names, (const char *)what, sizeof *what);
	return 0;
}

static size_t listed_bytes(const char *entry)
{
	return 1 + strlen(entry + 1) + 1 +
	       (entry[0] == LISTED_SIZED ? sizeof(struct store_stat) : 0);
}

static int by_listed_name(const void *a, const void *b, void *scan)
{
	const char *const *const x = a, *const *const y = b;
	return scan_stopped(scan) ? 0 : strcmp(*x + 1, *y + 1);
}

/* Sorts the names of a folder while other threads list: the walk then finds most trees in order and
 * sorts nothing.  Without memory they stay as they are. */
static void walk_sort_names(struct folder_scan *scan, struct buffer *names)
{
	const char *const end = names->data + names->size;
	struct buffer sorted = {0};
	const char **entries = NULL;
	size_t count = 0;
	for (const char *at = names->data; at < end; at += listed_bytes(at))
		count++;
	if (count > 1)
		entries = calloc(count, sizeof *entries);
	if (!entries)
		return;
	count = 0;
	for (const char *at = names->data; at < end; at += listed_bytes(at))
		entries[count++] = at;
	qsort_r(entries, count, sizeof *entries, by_listed_name, scan);
	for (size_t i = 0; i < count; i++)
		buffer_add(&sorted, entries[i], listed_bytes(entries[i]));
	free(entries);
	if (sorted.failed) {
		buffer_release(&sorted);
		return;
	}
	buffer_release(names);
	*names = sorted;
}

static int walk_list_folder(void *context, unsigned worker, uint64_t index, struct error *err)
{
	const struct listing *const listing = context;
	struct folder *const folder = listing->round[index];
	(void)worker;
	struct listing_visit seen = {.scan = listing->scan, .folder = folder};
	const struct store_visit visit = {
		.folder = walk_see_folder, .name = walk_see_name, .context = &seen};
	folder->code = listing->scan->store->ops->list(listing->scan->store, folder->path, &visit);
	if (folder->code == -EINTR && scan_stopped(listing->scan))
		folder->code = 0;
	walk_sort_names(listing->scan, &folder->names);
	return folder->names.failed ? error_set(err, -ENOMEM, "no memory for the names in a folder")
				    : 0;
}

static int list_tick(void *context, uint64_t done, struct error *err)
{
	const struct listing *const listing = context;
	const struct dataset_control *const control = listing->scan->control;
	(void)done;
	(void)err;
	if (control->progress)
		control->progress(control->context, listing->walk->count, 0, 0);
	return 0;
}

/* ---- what is in them ----------------------------------------------------------------------- */

/* The path of a name in a folder, until the next one is made; NULL without memory. */
static char *join_path(struct listing *listing, const struct folder *folder, const char *name)
{
	struct buffer *const path = &listing->path;
	path->size = 0;
	buffer_text(path, folder->path);
	if (*folder->path)
		buffer_add(path, "/", 1);
	buffer_text(path, name);
	return path->failed ? NULL : path->data;
}

static struct found *add_found(struct walk *walk)
{
	if (walk->count == walk->room) {
		enum { FIRST_ROOM = 1024 };
		const size_t larger = walk->room ? walk->room * 2 : FIRST_ROOM;
		struct found *const files = realloc(walk->files, larger * sizeof *files);
		if (!files)
			return NULL;
		walk->files = files;
		walk->room = larger;
	}
	return &walk->files[walk->count++];
}

static bool keep_found(struct listing *listing, const struct found *found)
{
	struct found *const kept = add_found(listing->walk);
	if (!kept)
		return false;
	*kept = *found;
	kept->path = arena_text(listing->scan->arena, found->path, strlen(found->path));
	return kept->path;
}

/* "jpg" of "a.JPG", "tar.zst" of "a.tar.zst", "tfrecord" of "a.tfrecord-00000-of-00001". */
static void skipped_ending(const char *name, char out[SKIPPED_ENDING + 1])
{
	static const char *const packed[] = {".gz", ".zst", ".xz", ".bz2", ".lz4"};
	const char *dot = strrchr(name, '.');
	size_t used = 0;
	for (size_t i = 0; dot && i < sizeof packed / sizeof *packed; i++)
		if (strcasecmp(dot, packed[i]) == 0) {
			const char *const before = memrchr(name, '.', (size_t)(dot - name));
			dot = before && strlen(before) <= SKIPPED_ENDING ? before : dot;
			break;
		}
	for (const char *at = dot ? dot + 1 : ""; used < SKIPPED_ENDING; at++) {
		if (!isalnum((unsigned char)*at) && *at != '.')
			break;
		out[used++] = (char)tolower((unsigned char)*at);
	}
	out[used] = '\0';
}

static void count_skipped(struct skipped_kind *skipped, const char *name)
{
	char ending[SKIPPED_ENDING + 1];
	size_t i = 0;
	skipped_ending(name, ending);
	while (i + 1 < KINDS_MAX && skipped[i].count > 0 && strcmp(skipped[i].ending, ending) != 0)
		i++;
	if (skipped[i].count++ > 0)
		return;
	(void)snprintf(skipped[i].ending, sizeof skipped[i].ending, "%s", ending);
	(void)snprintf(skipped[i].example, sizeof skipped[i].example, "%s", name);
}

/* What is no folder: a sample by name is kept, any other file is counted.  Its path is copied. */
static bool take_found(struct listing *listing, const struct found *found)
{
	const char *const slash = strrchr(found->path, '/');
	const char *const name = slash ? slash + 1 : found->path;
	if (scan_takes_name(listing->scan, name))
		return keep_found(listing, found);
	const struct sample_file_ops *const files = listing->scan->kind->files;
	const bool beside = files && files->beside && files_name_ends(name, files->beside);
	listing->walk->beside += beside;
	if (found->kind == STORE_FILE && !beside)
		count_skipped(listing->skipped, name);
	return true;
}

/* By dataset.exclude: a pattern with a slash is of the path, another of its last part. */
static bool walk_excludes(const struct folder_scan *scan, const char *path, const char *name)
{
	const char *at = scan->control->exclude;
	while (at && *at) {
		char pattern[256];
		const size_t size = strcspn(at, ",");
		const size_t blanks = strspn(at, " ");
		(void)snprintf(pattern, sizeof pattern, "%.*s",
			(int)(size > blanks ? size - blanks : 0), at + blanks);
		for (size_t end = strlen(pattern); end > 0 && pattern[end - 1] == ' ';)
			pattern[--end] = '\0';
		if (*pattern && fnmatch(pattern, strchr(pattern, '/') ? path : name, 0) == 0)
			return true;
		at += size + (at[size] == ',');
	}
	return false;
}

/* A manifest of ours is no part of the data set. */
static bool walk_is_ours(const struct folder *folder, const char *name)
{
	return !folder->above && strncmp(name, MANIFEST_PREFIX, strlen(MANIFEST_PREFIX)) == 0 &&
	       files_name_ends(name, ".jsonl");
}

/* A name that is asked what it is, together with the others of the round. */
static bool ask_name(struct listing *listing, struct folder *folder, const char *path)
{
	struct found *const found = add_found(&listing->asked);
	if (!found)
		return false;
	*found = (struct found){.path = strdup(path)};
	folder->asked++;
	return found->path;
}

static bool walk_take_name(struct listing *listing, struct folder *folder, const char *entry)
{
	const char *const name = entry + 1;
	const bool sized = entry[0] == LISTED_SIZED;
	const enum store_kind kind = sized ? STORE_FILE : (enum store_kind)entry[0];
	char *const path = join_path(listing, folder, name);
	if (!path)
		return false;
	if (walk_is_ours(folder, name))
		return true;
	if (name[0] == '.') {
		listing->hidden++;
		return true;
	}
	if (walk_excludes(listing->scan, path, name)) {
		listing->excluded++;
		return true;
	}
	if (kind == STORE_FOLDER)
		return add_folder(listing, folder, path);
	if (kind == STORE_UNKNOWN)
		return ask_name(listing, folder, path);
	const bool file = kind == STORE_FILE;
	struct found found = {.path = path,
		.kind = file ? STORE_FILE : STORE_OTHER,
		.reason = file                     ? NULL
			  : kind == STORE_BAD_NAME ? "the server gives it a name with a '/' in it"
						   : "not a regular file"};
	if (sized) {
		struct store_stat what;
		memcpy(&what, name + strlen(name) + 1, sizeof what);
		found_take_size(&found, &what);
	}
	return take_found(listing, &found);
}

static const char *folder_reason(const struct folder *folder)
{
	return folder->code == -ELOOP ? "a link back to a folder above it"
				      : "the folder cannot be read";
}

/* A folder that was listed.  What was read of one that then failed does not count: where it
 * broke off is chance. */
static int walk_take_folder(struct listing *listing, struct folder *folder, struct error *err)
{
	const struct found bad = {
		.path = folder->path, .kind = STORE_OTHER, .reason = folder_reason(folder)};
	const char *at = folder->names.data;
	const char *const end = at + folder->names.size;
	bool taken = true;
	if (folder->code && !folder->above)
		return error_set_errno(
			err, -folder->code, "cannot read the folder '%s'", listing->scan->root);
	if (folder->code)
		taken = keep_found(listing, &bad);
	while (!folder->code && taken && at < end && !scan_stopped(listing->scan)) {
		taken = walk_take_name(listing, folder, at);
		at += listed_bytes(at);
	}
	buffer_release(&folder->names);
	return taken ? 0 : error_set(err, -ENOMEM, "no memory to list '%s'", listing->scan->root);
}

/* The names that were asked, which lie in the order of the folders that have them. */
static int take_asked(struct listing *listing, struct error *err)
{
	size_t at = 0;
	bool taken = true;
	for (size_t i = 0; i < listing->round_count; i++)
		for (size_t k = 0; k < listing->round[i]->asked && taken; k++) {
			const struct found *const found = &listing->asked.files[at++];
			const bool folder = found->kind == STORE_FOLDER && !found->reason;
			taken = folder ? add_folder(listing, listing->round[i], found->path)
				       : take_found(listing, found);
		}
	return taken ? 0 : error_set(err, -ENOMEM, "no memory to list '%s'", listing->scan->root);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void begin_round(struct listing *listing)
{
	size_t *const count = &listing->round_count;
	while (*count < ROUND_FOLDERS && listing->waiting_count > 0)
		listing->round[(*count)++] = listing->waiting[--listing->waiting_count];
	listing->scan->effort.folders += *count;
}

/* waiting_before: of the stack, below what this round found, which is taken in order from now on. */
static void end_round(struct listing *listing, size_t waiting_before)
{
	for (size_t low = waiting_before, high = listing->waiting_count; low + 1 < high; low++) {
		struct folder *const first = listing->waiting[low];
		listing->waiting[low] = listing->waiting[--high];
		listing->waiting[high] = first;
	}
	for (size_t i = 0; i < listing->asked.count; i++)
		free(listing->asked.files[i].path);
	listing->asked.count = 0;
	for (size_t i = 0; i < listing->round_count; i++)
		leave_folder(listing->round[i]);
	listing->round_count = 0;
}

static int list_round(struct listing *listing, struct error *err)
{
	struct folder_scan *const scan = listing->scan;
	const unsigned threads =
		listing->round_count < scan->depth ? (unsigned)listing->round_count : scan->depth;
	const struct team_job team = {
		.count = listing->round_count,
		.item = walk_list_folder,
		.tick = list_tick,
		.context = listing,
		.stop = scan->control->stop,
		.threads = threads,
	};
	int code = team_run(&team, err);
	for (size_t i = 0; i < listing->round_count && !code; i++)
		code = walk_take_folder(listing, listing->round[i], err);
	if (!code && listing->asked.count > 0)
		code = inspect_files(
			scan, listing->asked.files, NULL, listing->asked.count, false, err);
	return code ? code : take_asked(listing, err);
}

static int list_all(struct listing *listing, struct error *err)
{
	int code = add_folder(listing, NULL, "")
			   ? 0
			   : error_set(err, -ENOMEM, "no memory to list '%s'", listing->scan->root);
	while (!code && listing->waiting_count > 0) {
		begin_round(listing);
		const size_t waiting_before = listing->waiting_count;
		code = list_round(listing, err);
		end_round(listing, waiting_before);
	}
	while (listing->waiting_count > 0)
		leave_folder(listing->waiting[--listing->waiting_count]);
	return code;
}

static int by_ending(const void *a, const void *b)
{
	const struct skipped_kind *const x = a, *const y = b;
	return strcmp(x->ending, y->ending);
}

static void skipped_add(char *out, uint64_t count, const char *what, const char *more)
{
	const size_t used = strlen(out);
	if (count > 0)
		(void)snprintf(out + used, DATASET_SKIPPED_BYTES - used, "%s%" PRIu64 " %s%s",
			used > 0 ? ", " : "", count, what, more);
}

static void describe_skipped(struct listing *listing, char out[DATASET_SKIPPED_BYTES])
{
	struct skipped_kind *const skipped = listing->skipped;
	size_t count = 0;
	while (count < KINDS_MAX && skipped[count].count > 0)
		count++;
	const size_t named = count < KINDS_MAX ? count : KINDS_MAX - 1;
	qsort(skipped, named, sizeof *skipped, by_ending);
	for (size_t i = 0; i < count; i++)
		if (i == named)
			skipped_add(out, skipped[i].count, "others", "");
		else
			skipped_add(out, skipped[i].count,
				*skipped[i].ending ? "." : "without an ending", skipped[i].ending);
	skipped_add(out, listing->hidden,
		listing->hidden == 1 ? "hidden file or folder" : "hidden files or folders", "");
	skipped_add(out, listing->excluded, "by dataset.exclude", "");
}

/* The key that reads a name: what it is packed in, or the kind that it is.  One that has to be unpacked
 * first comes last: what takes it says so. */
static bool walk_advise(const struct folder_scan *scan, const char *name, char *out, size_t room)
{
	for (int packed = 0; packed < 2; packed++)
		for (size_t i = 0; container_list[i]; i++)
			if (container_list[i] != scan->container &&
				(packed ? container_takes(container_list[i], name)
					: container_list[i]->takes(name)))
				return snprintf(out, room, "dataset.container = %s",
					       container_list[i]->name) > 0;
	if (scan->container && sample_takes_name(scan->kind, name))
		return snprintf(out, room, "dataset.container = files") > 0;
	for (size_t i = 0; sample_kinds[i]; i++)
		if (sample_kinds[i] != scan->kind &&
			(sample_kinds[i]->files || sample_kinds[i]->container) &&
			sample_takes_name(sample_kinds[i], name))
			return snprintf(out, room, "sample.kind = %s", sample_kinds[i]->name) > 0;
	return false;
}

static bool walk_is_sorted(const struct walk *walk, struct folder_scan *scan)
{
	for (size_t i = 1; i < walk->count; i++)
		if (by_class(&walk->files[i - 1], &walk->files[i], scan) > 0)
			return false;
	return true;
}

int walk_folder(struct folder_scan *scan, struct walk *walk, struct error *err)
{
	struct listing listing = {.scan = scan, .walk = walk};
	*walk = (struct walk){0};
	int code = list_all(&listing, err);
	describe_skipped(&listing, walk->skipped);
	for (size_t i = 0; i < KINDS_MAX && listing.skipped[i].count > 0; i++)
		if (walk_advise(
			    scan, listing.skipped[i].example, walk->advice, sizeof walk->advice))
			break;
	if (!*walk->advice && listing.skipped[0].count > 0 && !scan->container)
		(void)snprintf(
			walk->advice, sizeof walk->advice, "sample.kind = bytes to read any file");
	if (!code && !walk_is_sorted(walk, scan))
		qsort_r(walk->files, walk->count, sizeof *walk->files, by_class, scan);
	if (scan_stopped(scan))
		code = error_set(err, -EINTR, "stopped while '%s' was listed", scan->root);
	scan->effort.pictures = walk->count;
	buffer_release(&listing.path);
	free(listing.waiting);
	walk_release(&listing.asked);
	return code;
}

void walk_release(struct walk *walk)
{
	free(walk->files);
	*walk = (struct walk){0};
}
