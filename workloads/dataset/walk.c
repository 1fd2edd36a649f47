/* Walking a user's folder in a fixed order. */
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/scan.h"
#include "workloads/image/codec.h"

#include "harness/base/buffer.h"
#include "harness/base/hash.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Goes up when scanning says something else of a file than before: manifests that were cached
 * by then are not believed. */
enum { PROBE_VERSION = 2 };

enum { KINDS_MAX = 8 };

const char *walk_class(const char *path, size_t *length)
{
	const char *slash = strchr(path, '/');
	*length = slash ? (size_t)(slash - path) : 1;
	return slash ? path : ".";
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* By class and then by path, bytes compared: the order of samples and labels. */
static int by_class(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	size_t x_length, y_length;
	const char *x_class = walk_class(x->path, &x_length),
		   *y_class = walk_class(y->path, &y_length);
	const int order = memcmp(x_class, y_class, x_length < y_length ? x_length : y_length);
	if (order)
		return order;
	if (x_length != y_length)
		return x_length < y_length ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* What is wrong with an entry before it is opened; NULL: nothing, or it is no picture at all. */
static const char *entry_reason(const FTSENT *entry)
{
	switch (entry->fts_info) {
	case FTS_DNR:
		return "the folder cannot be read";
	case FTS_DC:
		return "a link back to a folder above it";
	case FTS_SLNONE:
	case FTS_SL:
		return "a broken link";
	case FTS_ERR:
	case FTS_NS:
		return "its size and type cannot be read";
	case FTS_F:
		return entry->fts_statp->st_size == 0 ? "an empty file" : NULL;
	default:
		return "not a regular file";
	}
}

/* Whether an entry is listed at all: pictures by name, and folders that cannot be entered. */
static bool is_listed(const FTSENT *entry)
{
	switch (entry->fts_info) {
	case FTS_D:
	case FTS_DP:
	case FTS_DOT:
		return false;
	case FTS_DNR:
	case FTS_DC:
		return true;
	default:
		return image_format_of_name(entry->fts_name) != IMAGE_FORMAT_UNKNOWN;
	}
}

static bool add_entry(struct walk *walk, size_t *room, struct arena *arena, const FTSENT *entry,
	size_t root_length)
{
	if (walk->count == *room) {
		enum { FIRST_ROOM = 1024 };
		const size_t larger = *room ? *room * 2 : FIRST_ROOM;
		struct found *files = realloc(walk->files, larger * sizeof(*files));
		if (!files)
			return false;
		walk->files = files;
		*room = larger;
	}
	const char *path = entry->fts_path + root_length;
	while (*path == '/')
		path++;
	const struct stat *st = entry->fts_statp;
	const bool known = entry->fts_info == FTS_F;
	walk->files[walk->count++] = (struct found){
		.path = arena_text(arena, path, strlen(path)),
		.bytes = known ? (uint64_t)st->st_size : 0,
		.modified_ns = known ? st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec : 0,
		.reason = entry_reason(entry),
	};
	return walk->files[walk->count - 1].path;
}

/* Of how many kinds, and how many of each: in the order in which they were met. */
struct skipped {
	struct {
		const char *ending;
		uint64_t count;
	} kinds[KINDS_MAX];
};

static void count_skipped(struct skipped *skipped, const FTSENT *entry)
{
	const char *const ending =
		entry->fts_info == FTS_F ? image_ending_without_codec(entry->fts_name) : NULL;
	size_t i = 0;
	if (!ending)
		return;
	while (i + 1 < KINDS_MAX && skipped->kinds[i].ending && skipped->kinds[i].ending != ending)
		i++;
	skipped->kinds[i].ending = ending;
	skipped->kinds[i].count++;
}

static void describe_skipped(const struct skipped *skipped, char *out, size_t room)
{
	size_t used = 0;
	for (size_t i = 0; i < KINDS_MAX && skipped->kinds[i].ending && used < room; i++)
		used += (size_t)snprintf(out + used, room - used, "%s%" PRIu64 " .%s",
			i > 0 ? ", " : "", skipped->kinds[i].count, skipped->kinds[i].ending);
}

static int read_tree(FTS *tree, const atomic_bool *stop, struct arena *arena, struct walk *walk,
	const char *root, struct error *err)
{
	size_t room = 0;
	struct skipped skipped = {0};
	for (;;) {
		errno = 0;
		const FTSENT *entry = fts_read(tree);
		if (!entry) {
			describe_skipped(&skipped, walk->skipped, sizeof walk->skipped);
			return errno ? error_set_errno(err, errno, "cannot walk '%s'", root) : 0;
		}
		/* Not before the first one: fts_close leaks then. */
		if (stop && atomic_load_explicit(stop, memory_order_relaxed))
			return error_set(err, -EINTR, "stopped while '%s' was listed", root);
		count_skipped(&skipped, entry);
		if (entry->fts_level == FTS_ROOTLEVEL &&
			(entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS ||
				entry->fts_info == FTS_ERR))
			return error_set_errno(
				err, entry->fts_errno, "cannot read the folder '%s'", root);
		if (is_listed(entry) && !add_entry(walk, &room, arena, entry, strlen(root)))
			return error_set(err, -ENOMEM, "no memory to list '%s'", root);
	}
}

static int hash_listing(struct walk *walk, struct error *err)
{
	struct buffer text = {0};
	for (size_t i = 0; i < walk->count; i++) {
		const struct found *file = &walk->files[i];
		buffer_add(&text, file->path, strlen(file->path) + 1);
		buffer_format(&text, "%" PRIu64 " %" PRId64 " %s\n", file->bytes, file->modified_ns,
			file->reason ? file->reason : "");
	}
	walk->listing = hash_bytes(text.data, text.size, PROBE_VERSION);
	const bool failed = text.failed;
	buffer_release(&text);
	return failed ? error_set(err, -ENOMEM, "no memory to list the folder") : 0;
}

int walk_folder(const char *root, const atomic_bool *stop, struct arena *arena, struct walk *walk,
	struct error *err)
{
	*walk = (struct walk){0};
	char *const roots[] = {(char *)(uintptr_t)root, NULL};
	FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	if (!tree)
		return error_set_errno(err, errno, "cannot walk '%s'", root);
	int code = read_tree(tree, stop, arena, walk, root, err);
	(void)fts_close(tree);
	if (!code && walk->count)
		qsort(walk->files, walk->count, sizeof(*walk->files), by_class);
	return code ? code : hash_listing(walk, err);
}

void walk_release(struct walk *walk)
{
	free(walk->files);
	*walk = (struct walk){0};
}
