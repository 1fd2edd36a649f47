/* Splitting the files of a folder, a few at a time, and putting together what was found: in the order of
 * files and offsets, whichever thread was first. */
#include "workloads/dataset/container.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/config/shape.h"
#include "harness/config/tables.h"
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/scan.h"
#include "workloads/dataset/threads.h"
#include "workloads/sample/sample.h"
#include "workloads/source/engines.h"
#include "workloads/source/gzip_view.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTAINER_DECLARE(ID, name) extern const struct container_ops container_##name;
DATASET_CONTAINERS(CONTAINER_DECLARE)
#undef CONTAINER_DECLARE

#define CONTAINER_ENTRY(ID, name) &container_##name,
const struct container_ops *const container_list[] = {DATASET_CONTAINERS(CONTAINER_ENTRY) NULL};

const char *container_lacks(const struct container_ops *container)
{
	if (!container->name || !container->endings || !container->takes || !container->split)
		return "not all of .name, .endings, .takes and .split";
	return container->wrap && !container->extension ? ".wrap without .extension" : NULL;
}

/* What packs files, by their beginnings; and what unpacks them. */
static const struct packing {
	const char *name, *ending, *magic, *unpack;
} packings[] = {
	{"gzip", ".gz", "\x1f\x8b\x08", "gunzip"},
	{"zstd", ".zst", "\x28\xb5\x2f\xfd", "zstd -d"},
	{"xz", ".xz", "\xfd\x37zXZ", "unxz"},
	{"bzip2", ".bz2", "BZh", "bunzip2"},
	{"lz4", ".lz4", "\x04\x22\x4d\x18", "lz4 -d"},
};
enum { PACKING_MAGIC_MAX = 5, PACKINGS = sizeof packings / sizeof *packings };

bool container_takes(const struct container_ops *container, const char *name)
{
	char stem[CONTAINER_NAME_MAX + 1];
	if (container->takes(name))
		return true;
	for (size_t i = 0; i < PACKINGS; i++) {
		const size_t size = strlen(name), ending = strlen(packings[i].ending);
		if (!files_name_ends(name, packings[i].ending) || size - ending >= sizeof stem)
			continue;
		(void)snprintf(stem, sizeof stem, "%.*s", (int)(size - ending), name);
		return container->takes(stem);
	}
	return false;
}

const struct container_ops *container_of_config(const struct config *config)
{
	const int64_t choice = config_integer(config, KEY_DATASET_CONTAINER);
	return choice == DATASET_CONTAINER_FILES ? NULL : container_list[choice - 1];
}

/* Those that read any part of a file cannot read what is inflated from its beginning on. */
static bool container_is_read_by(int64_t engine)
{
	return engine == READ_ENGINE_AUTO || source_list[engine - 1]->inflates;
}

static int container_check_inflated(
	const struct container_ops *container, const struct config *config, struct error *err)
{
	const int64_t engine = config_integer(config, KEY_READ_ENGINE);
	if (config_integer(config, KEY_READ_ORDER) == READ_ORDER_SHUFFLE)
		return error_set(err, -EINVAL,
			"'dataset.container' = %s can be read only from the beginning of each shard on, and 'read.order' = shuffle asks for samples in any order: set it to shards or sequential, or unpack the shards with gunzip and set 'dataset.container' to tar",
			container->name);
	if (!container_is_read_by(engine))
		return error_set(err, -EINVAL,
			"'read.engine' = %s reads any part of a file, and 'dataset.container' = %s is inflated from the beginning of each shard on: set it to pread, or unpack the shards with gunzip and set 'dataset.container' to tar",
			source_list[engine - 1]->name, container->name);
	if (config_integer(config, KEY_READ_THREADS) > 1)
		return error_set(err, -EINVAL,
			"'dataset.container' = %s takes one reader thread, which inflates: set 'read.threads' to 1",
			container->name);
	if (shape_by_workers(config))
		return error_set(err, -EINVAL,
			"'dataset.container' = %s takes one reader thread, which inflates: set 'read.by' to readers",
			container->name);
	if (config_integer(config, KEY_PREFETCH_DEPTH) == 0)
		return error_set(err, -EINVAL,
			"'prefetch.depth' = 0 does not go with 'dataset.container' = %s, which is inflated ahead",
			container->name);
	return config_real(config, KEY_INJECT_READ_CACHE) > 0
		       ? error_set(err, -EINVAL,
				 "'inject.read_cache' holds samples, and 'dataset.container' = %s reads many at once: leave one out",
				 container->name)
		       : 0;
}

int container_validate(const struct config *config, bool reads, struct error *err)
{
	const struct container_ops *const container = container_of_config(config);
	const struct sample_ops *const kind = sample_kind_of(config);
	if (!container)
		return 0;
	if (kind->container)
		return error_set(err, -EINVAL,
			"'dataset.container' packs files that are a sample each, and those of sample.kind = %s hold many: leave it out",
			kind->name);
	if (!container->wrap && config_integer(config, KEY_DATASET_RECIPE) != DATASET_RECIPE_NONE)
		return error_set(err, -EINVAL,
			"'dataset.container' = %s is read and not generated: set 'dataset.recipe' to none and 'dataset.samples' to 0",
			container->name);
	return reads && container->inflates ? container_check_inflated(container, config, err) : 0;
}

enum {
	SPLIT_THREADS_MAX = 16,
	SPLIT_READ_BYTES =
		8 * 1024, /* read at least, where the file has them: heads of small samples */
	SPLIT_LOOK_BYTES =
		4 * 1024, /* what a kind sees first of a sample, and eight times as much then */
	SPLIT_LOOK_GROWTH = 8,
	SPLIT_HASH_BYTES = 256 * 1024,
	SPLIT_INFLATE_BYTES = 64 * 1024,
	SPLIT_REASON_BYTES = 240,
	SPLIT_BAD_MORE =
		3, /* beside them: why the file is no good, how many more there are, those without a class */
};

/* A read request names a sample by 32 bits. */
static const uint64_t SPLIT_SAMPLES_MAX = UINT32_MAX;

enum { CLASS_OF_FOLDER = -1, CLASS_NUMBERED = -2, CLASS_NONE = -3 }; /* else the index of a name */

struct split_part {
	uint64_t offset, length, checksum;
	int64_t class_index;
	uint32_t label; /* of a numbered one */
	uint32_t width, height;
	uint8_t format;
};

/* What was found in a file. */
struct split_found {
	struct split_part *parts;
	size_t count, room;
	const char **bad; /* reasons, the arena's */
	size_t bad_count;
	uint64_t bad_untold;
	bool passing; /* it could not be read this time */
};

/* A window on the file that a thread splits. */
struct split_window {
	union store_file opened;
	struct gzip_view *view; /* in place of it, where the file is compressed; else NULL */
	uint8_t *bytes;
	size_t room, size;
	uint64_t offset;
};

struct split_work {
	struct folder_scan *scan;
	const struct found *files;
	size_t count;
	struct split_found *found;    /* (count) */
	struct split_window *windows; /* of each thread */
	atomic_uint_fast64_t samples;
	pthread_mutex_t lock; /* of the arena and the names */
	json_t *names;        /* of classes, each with its index in the order of finding */
};

static struct split_found *split_of(const struct container_file *file)
{
	return &file->work->found[file->index];
}

/* ---- what a splitting function calls -------------------------------------------------------- */

static int split_stopped(const struct container_file *file, struct error *err)
{
	return scan_stopped(file->work->scan) ? error_set(err, -EINTR, "stopped") : 0;
}

static int window_grow(struct split_window *window, size_t room, struct error *err)
{
	if (room <= window->room)
		return 0;
	uint8_t *const larger = realloc(window->bytes, room);
	if (!larger)
		return error_set(err, -ENOMEM, "no memory for %zu bytes of a file", room);
	window->bytes = larger;
	window->room = room;
	return 0;
}

/* What is there from this offset on is kept: nothing is read twice, and a compressed file goes forward. */
static void window_move(struct split_window *window, uint64_t offset)
{
	const uint64_t end = window->offset + window->size;
	const bool inside = offset >= window->offset && offset < end;
	const size_t kept = inside ? (size_t)(end - offset) : 0;
	if (kept > 0)
		memmove(window->bytes, window->bytes + (window->size - kept), kept);
	window->offset = offset;
	window->size = kept;
}

static int split_fail_read(struct container_file *file, int code, struct error *err)
{
	const struct gzip_view *const view = file->work->windows[file->worker].view;
	if (view && code == -EBADMSG)
		return error_set(err, code, "%s", gzip_view_why(view));
	split_of(file)->passing = true;
	return error_set_errno(err, -code, "cannot be read");
}

static ssize_t window_read(struct container_file *file, struct split_window *window,
	uint64_t offset, void *to, size_t size)
{
	struct store *const store = file->work->scan->store;
	return window->view ? gzip_view_read(window->view, offset, to, size)
			    : store->ops->read(store, window->opened, offset, to, size);
}

/* Reads until `least` bytes are there, of the room that there is. */
static int window_fill(struct container_file *file, struct split_window *window, uint64_t offset,
	size_t least, size_t most, struct error *err)
{
	window_move(window, offset);
	while (window->size < least) {
		const ssize_t n = window_read(file, window, offset + window->size,
			window->bytes + window->size, most - window->size);
		if (store_repeats(n) && !scan_stopped(file->work->scan))
			continue;
		if (n < 0)
			return split_fail_read(file, (int)n, err);
		if (n == 0)
			return error_set(err, -ENODATA, "it became shorter while it was read");
		window->size += (size_t)n;
	}
	return 0;
}

int container_view(struct container_file *file, uint64_t offset, size_t size, const uint8_t **out,
	struct error *err)
{
	struct split_window *const window = &file->work->windows[file->worker];
	int code = split_stopped(file, err);
	if (code)
		return code;
	if (size > CONTAINER_VIEW_MAX)
		return error_set(err, -EINVAL, "an entry of it needs %zu bytes at once", size);
	if (offset > file->bytes || size > file->bytes - offset)
		return error_set(
			err, -ENODATA, "it ends at byte %" PRIu64 ", within an entry", file->bytes);
	if (offset < window->offset || offset + size > window->offset + window->size) {
		const uint64_t left = file->bytes - offset;
		const size_t ahead = left < SPLIT_READ_BYTES ? (size_t)left : SPLIT_READ_BYTES;
		const size_t most = size > ahead ? size : ahead;
		code = window_grow(window, most > SPLIT_READ_BYTES ? most : SPLIT_READ_BYTES, err);
		if (!code && most > 0)
			code = window_fill(file, window, offset, size, most, err);
	}
	*out = code || !window->bytes ? NULL : window->bytes + (offset - window->offset);
	return code;
}

/* The index of a class by its name. */
static int split_intern(struct split_work *work, const char *name, size_t size, int64_t *out)
{
	(void)pthread_mutex_lock(&work->lock);
	json_t *there = json_object_getn(work->names, name, size);
	if (!there) {
		there = json_integer((json_int_t)json_object_size(work->names));
		if (json_object_setn_new_nocheck(work->names, name, size, there))
			there = NULL;
	}
	*out = there ? (int64_t)json_integer_value(there) : 0;
	(void)pthread_mutex_unlock(&work->lock);
	return there ? 0 : -ENOMEM;
}

static bool split_add_room(struct split_found *found)
{
	enum { FIRST_ROOM = 64 };
	if (found->count < found->room)
		return true;
	const size_t larger = found->room ? 2 * found->room : FIRST_ROOM;
	struct split_part *const parts = realloc(found->parts, larger * sizeof *parts);
	if (!parts)
		return false;
	found->parts = parts;
	found->room = larger;
	return true;
}

/* Of a sample's bytes, a piece at a time. */
static int split_hash(struct container_file *file, struct split_part *part, struct error *err)
{
	struct hash_pieces *const pieces = hash_begin(0);
	int code = pieces ? 0 : error_set(err, -ENOMEM, "no memory for a checksum");
	for (uint64_t done = 0; done < part->length && !code;) {
		const uint64_t left = part->length - done;
		const size_t size = left < SPLIT_HASH_BYTES ? (size_t)left : SPLIT_HASH_BYTES;
		const uint8_t *bytes;
		code = container_view(file, part->offset + done, size, &bytes, err);
		if (!code)
			hash_add(pieces, bytes, size);
		done += size;
	}
	part->checksum = pieces ? hash_end(pieces) : 0;
	return code;
}

int container_add(struct container_file *file, const struct container_part *part, struct error *err)
{
	struct split_found *const found = split_of(file);
	int64_t class_index = !part->numbered   ? CLASS_OF_FOLDER
			      : part->label < 0 ? CLASS_NONE
						: CLASS_NUMBERED;
	int code = split_stopped(file, err);
	if (code)
		return code;
	if (part->offset > file->bytes || part->length > file->bytes - part->offset)
		return container_note_bad(file, err,
			"a sample of %" PRIu64 " bytes at byte %" PRIu64
			", behind the end of the file",
			part->length, part->offset);
	if (part->numbered && part->label >= CONTAINER_LABEL_MAX)
		return container_note_bad(file, err,
			"the sample at byte %" PRIu64 " is of class %" PRId64
			": %d at most are read",
			part->offset, part->label, CONTAINER_LABEL_MAX - 1);
	if (part->length == 0)
		return container_note_bad(
			file, err, "the sample at byte %" PRIu64 " is empty", part->offset);
	if (!part->numbered && part->class_name)
		code = split_intern(file->work, part->class_name,
			part->class_size < CONTAINER_CLASS_MAX ? part->class_size
							       : CONTAINER_CLASS_MAX,
			&class_index);
	if (code || !split_add_room(found))
		return error_set(err, -ENOMEM, "no memory for the samples of '%s'", file->path);
	found->parts[found->count++] = (struct split_part){
		.offset = part->offset,
		.length = part->length,
		.checksum = part->checksum,
		.class_index = class_index,
		.label = class_index == CLASS_NUMBERED ? (uint32_t)part->label : 0,
		.width = part->width,
		.height = part->height,
		.format = part->format,
	};
	const struct folder_scan *const scan = file->work->scan;
	return (scan->checksums || scan->container->summed) && !part->checksum
		       ? split_hash(file, &found->parts[found->count - 1], err)
		       : 0;
}

int container_look(struct container_file *file, const char *what, struct container_part *part,
	bool *good, struct error *err)
{
	struct sample said;
	struct error why = {"unreadable"};
	size_t most = SPLIT_LOOK_BYTES;
	int code = -EAGAIN;
	*good = false;
	if (part->offset > file->bytes || part->length > file->bytes - part->offset)
		return container_note_bad(file, err, "'%.100s' is cut short", what);
	while (code == -EAGAIN) {
		const uint8_t *head = NULL;
		const size_t size = part->length < most ? (size_t)part->length : most;
		code = container_view(file, part->offset, size, &head, err);
		if (code)
			return code;
		code = scan_look(file->work->scan, head, size, part->length, &said, &why);
		if (code == -EAGAIN &&
			(size == part->length || most > CONTAINER_VIEW_MAX / SPLIT_LOOK_GROWTH))
			code = error_set(
				&why, -EINVAL, "cut short within its header, or that is too long");
		most *= SPLIT_LOOK_GROWTH;
	}
	if (code == -ENOMEM)
		return error_set(err, code, "no memory to look at '%.100s'", what);
	if (code)
		return container_note_bad(file, err, "'%.100s': %.120s", what, why.text);
	part->width = said.width;
	part->height = said.height;
	part->format = said.format;
	*good = true;
	return 0;
}

int container_add_sample(struct container_file *file, const char *what,
	const struct container_part *part, struct error *err)
{
	struct container_part seen = *part;
	bool good;
	const int code = container_look(file, what, &seen, &good, err);
	return code || !good ? code : container_add(file, &seen, err);
}

static int split_keep_reason(struct split_work *work, struct split_found *found, const char *text)
{
	if (!found->bad)
		found->bad = calloc(CONTAINER_BAD_MAX + SPLIT_BAD_MORE, sizeof *found->bad);
	if (!found->bad)
		return -ENOMEM;
	(void)pthread_mutex_lock(&work->lock);
	const char *const kept = arena_text(work->scan->arena, text, strlen(text));
	(void)pthread_mutex_unlock(&work->lock);
	found->bad[found->bad_count] = kept;
	found->bad_count += kept != NULL;
	return kept ? 0 : -ENOMEM;
}

int container_note_bad(struct container_file *file, struct error *err, const char *format, ...)
{
	struct split_found *const found = split_of(file);
	char text[SPLIT_REASON_BYTES];
	if (found->bad_count >= CONTAINER_BAD_MAX) {
		found->bad_untold++;
		return split_stopped(file, err);
	}
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return split_keep_reason(file->work, found, text)
		       ? error_set(err, -ENOMEM, "no memory for a list of bad samples")
		       : split_stopped(file, err);
}

/* ---- one file ------------------------------------------------------------------------------- */

/* A file of which nothing was found: says so where it begins as one that is packed. */
static void split_explain_packed(struct container_file *file, struct error *why)
{
	const struct container_ops *const container = file->work->scan->container;
	const char *const slash = strrchr(file->path, '/');
	const char *const name = slash ? slash + 1 : file->path;
	const uint8_t *head;
	struct error ignored;
	size_t i = 0;
	if (file->bytes < PACKING_MAGIC_MAX || container->inflates ||
		container_view(file, 0, PACKING_MAGIC_MAX, &head, &ignored))
		return;
	while (i < PACKINGS && memcmp(head, packings[i].magic, strlen(packings[i].magic)) != 0)
		i++;
	const struct container_ops *const reads = i == 0 ? container->packed : NULL;
	if (reads)
		(void)error_set(why, -EINVAL, "packed by gzip: %s%s%sset dataset.container = %s",
			reads->takes(name) ? "" : "name it .",
			reads->takes(name) ? "" : reads->extension,
			reads->takes(name) ? "" : " and ", reads->name);
	else if (i < PACKINGS)
		(void)error_set(why, -EINVAL, "packed by %s: unpack it with %s", packings[i].name,
			packings[i].unpack);
}

static int split_one_opened(struct container_file *file, struct error *err)
{
	struct split_found *const found = split_of(file);
	struct error why = {"unreadable"};
	char text[SPLIT_REASON_BYTES];
	int code = file->work->scan->container->split(file, &why);
	if (code == -ENOMEM || code == -EINTR) {
		*err = why;
		return code;
	}
	if (!code && found->count == 0 && found->bad_count == 0)
		code = error_set(&why, -EINVAL, "it holds no sample");
	if (code && found->count == 0 && !found->passing)
		split_explain_packed(file, &why);
	if (code)
		code = split_keep_reason(file->work, found, why.text);
	if (!code && found->bad_untold > 0) {
		(void)snprintf(
			text, sizeof text, "%" PRIu64 " more of its entries", found->bad_untold);
		code = split_keep_reason(file->work, found, text);
	}
	return code ? error_set(err, code, "no memory for a list of bad samples") : 0;
}

/* How many bytes a compressed file inflates to, which nothing before its end tells; of one that is damaged,
 * how many stand, and the reason is kept. */
static int split_inflate(struct container_file *file, struct error *err)
{
	struct split_window *const window = &file->work->windows[file->worker];
	struct error why;
	ssize_t n = 1;
	int code = window_grow(window, SPLIT_INFLATE_BYTES, err);
	file->bytes = 0;
	while (!code && n != 0) {
		n = gzip_view_read(window->view, file->bytes, window->bytes, SPLIT_INFLATE_BYTES);
		if (n < 0 && !store_repeats(n))
			break;
		file->bytes += n > 0 ? (uint64_t)n : 0;
		code = split_stopped(file, err);
	}
	if (code || n == 0)
		return code;
	file->bytes = n == -EBADMSG ? gzip_view_good(window->view) : 0;
	(void)split_fail_read(file, (int)n, &why);
	return split_keep_reason(file->work, split_of(file), why.text)
		       ? error_set(err, -ENOMEM, "no memory for a list of bad files")
		       : 0;
}

static int split_one_inflated(struct container_file *file, struct error *err)
{
	const int code = split_inflate(file, err);
	const bool nothing = file->bytes == 0 && split_of(file)->bad_count > 0;
	return code || nothing ? code : split_one_opened(file, err);
}

static int split_open(const struct folder_scan *scan, const char *path, struct split_window *window)
{
	struct store *const store = scan->store;
	window->view = NULL;
	window->offset = window->size = 0;
	return scan->container->inflates
		       ? gzip_view_open(&window->view, store, path)
		       : store->ops->file_open(store, path, false, &window->opened);
}

static void split_close(struct store *store, struct split_window *window)
{
	if (window->view)
		gzip_view_close(window->view);
	else
		store->ops->file_close(store, window->opened);
	window->view = NULL;
}

static int split_one(void *context, unsigned worker, uint64_t index, struct error *err)
{
	struct split_work *const work = context;
	const struct found *const found = &work->files[index];
	struct split_window *const window = &work->windows[worker];
	struct container_file file = {
		.path = found->path,
		.bytes = found->bytes,
		.kind = work->scan->kind,
		.work = work,
		.index = (size_t)index,
		.worker = worker,
	};
	if (found->reason || found->kind != STORE_FILE)
		return 0;
	int code = split_open(work->scan, found->path, window);
	if (code) {
		struct error why;
		(void)split_fail_read(&file, code, &why);
		return split_keep_reason(work, &work->found[index], why.text)
			       ? error_set(err, -ENOMEM, "no memory for a list of bad files")
			       : 0;
	}
	code = window->view ? split_one_inflated(&file, err) : split_one_opened(&file, err);
	split_close(work->scan->store, window);
	if (!code && atomic_fetch_add(&work->samples, work->found[index].count) +
				     work->found[index].count >
			     SPLIT_SAMPLES_MAX)
		code = error_set(err, -EOVERFLOW, "'%s' has more than %" PRIu64 " samples",
			work->scan->root, SPLIT_SAMPLES_MAX);
	return code;
}

static int split_tick(void *context, uint64_t done, struct error *err)
{
	const struct split_work *const work = context;
	const struct dataset_control *const control = work->scan->control;
	(void)err;
	if (control->progress)
		control->progress(control->context, done, work->count, 0);
	return 0;
}

/* ---- what they come to ----------------------------------------------------------------------- */

struct split_class {
	const char *name;
	int64_t index; /* of finding */
};

static int split_by_name(const void *a, const void *b)
{
	const struct split_class *const x = a, *const y = b;
	return strcmp(x->name, y->name);
}

static bool split_is_numbered(const struct split_work *work)
{
	for (size_t i = 0; i < work->count; i++)
		for (size_t k = 0; k < work->found[i].count; k++)
			if (work->found[i].parts[k].class_index == CLASS_NUMBERED)
				return true;
	return false;
}

/* Where classes have numbers: a sample of which nothing says whether it has one would be of class 0. */
static int split_drop_unnumbered(struct split_work *work)
{
	int code = 0;
	for (size_t i = 0; i < work->count && !code; i++) {
		struct split_found *const found = &work->found[i];
		char text[SPLIT_REASON_BYTES];
		size_t kept = 0;
		for (size_t k = 0; k < found->count; k++)
			if (found->parts[k].class_index == CLASS_NUMBERED ||
				found->parts[k].class_index == CLASS_NONE)
				found->parts[kept++] = found->parts[k];
		(void)snprintf(text, sizeof text,
			"%zu sample%s without a class, which others of the data set have",
			found->count - kept, found->count - kept == 1 ? "" : "s");
		if (kept < found->count)
			code = split_keep_reason(work, found, text);
		found->count = kept;
	}
	return code;
}

/* Where they have none: folders get an index each. */
static int split_classes_of_folders(struct split_work *work)
{
	int code = 0;
	for (size_t i = 0; i < work->count && !code; i++)
		for (size_t k = 0; k < work->found[i].count && !code; k++) {
			size_t length;
			const char *const class_name = walk_class(work->files[i].path, &length);
			struct split_part *const part = &work->found[i].parts[k];
			if (part->class_index == CLASS_OF_FOLDER)
				code = split_intern(work, class_name, length, &part->class_index);
		}
	return code;
}

/* Names in their order, and which place each index has there. */
static int split_order_classes(struct split_work *work, struct dataset *dataset, uint32_t **place)
{
	struct arena *const arena = work->scan->arena;
	const size_t count = json_object_size(work->names);
	struct split_class *const classes = calloc(count + 1, sizeof *classes);
	const char *name;
	json_t *index;
	size_t i = 0;
	*place = calloc(count + 1, sizeof **place);
	dataset->class_names = arena_take(arena, count * sizeof *dataset->class_names);
	bool got = classes && *place && dataset->class_names;
	json_object_foreach(work->names, name, index)
	{
		if (!got)
			break;
		classes[i++] = (struct split_class){
			.name = arena_text(arena, name, strlen(name)),
			.index = json_integer_value(index),
		};
		got = classes[i - 1].name != NULL;
	}
	if (got)
		qsort(classes, count, sizeof *classes, split_by_name);
	for (i = 0; got && i < count; i++) {
		dataset->class_names[i] = classes[i].name;
		(*place)[classes[i].index] = (uint32_t)i;
	}
	dataset->class_count = got ? count : 0;
	free(classes);
	return got ? 0 : -ENOMEM;
}

/* As many as the highest number says. */
static int split_number_classes(const struct split_work *work, struct dataset *dataset)
{
	uint32_t most = 0;
	for (size_t i = 0; i < work->count; i++)
		for (size_t k = 0; k < work->found[i].count; k++)
			if (work->found[i].parts[k].label > most)
				most = work->found[i].parts[k].label;
	const size_t count = (size_t)most + 1;
	dataset->class_names = arena_take(work->scan->arena, count * sizeof *dataset->class_names);
	if (!dataset->class_names)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		char text[24];
		const int size = snprintf(text, sizeof text, "%zu", i);
		dataset->class_names[i] = arena_text(work->scan->arena, text, (size_t)size);
		if (!dataset->class_names[i])
			return -ENOMEM;
	}
	dataset->class_count = count;
	return 0;
}

static void split_take_parts(const struct split_work *work, const uint32_t *place,
	struct dataset *dataset, uint64_t *offsets)
{
	for (size_t i = 0; i < work->count; i++) {
		const struct split_found *const found = &work->found[i];
		for (size_t k = 0; k < found->count; k++) {
			const struct split_part *const part = &found->parts[k];
			offsets[dataset->count] = part->offset;
			dataset->samples[dataset->count++] = (struct sample){
				.path = work->files[i].path,
				.bytes = part->length,
				.checksum = part->checksum,
				.width = part->width,
				.height = part->height,
				.label = part->class_index == CLASS_NONE ? DATASET_UNLABELLED
					 : place                         ? place[part->class_index]
									 : part->label,
				.format = part->format,
			};
		}
		dataset->files += found->count > 0;
		dataset->stored_bytes += found->count > 0 ? work->files[i].bytes : 0;
	}
}

static void split_take_bad(const struct split_work *work, struct dataset *dataset)
{
	for (size_t i = 0; i < work->count; i++) {
		const char *const path = work->files[i].path;
		if (work->files[i].reason)
			dataset->bad[dataset->bad_count++] =
				(struct dataset_bad){path, work->files[i].reason};
		for (size_t k = 0; k < work->found[i].bad_count; k++)
			dataset->bad[dataset->bad_count++] =
				(struct dataset_bad){path, work->found[i].bad[k]};
	}
}

static int split_fill(struct split_work *work, struct dataset *dataset, bool *passing)
{
	struct arena *const arena = work->scan->arena;
	size_t count = 0;
	size_t bad = 0;
	uint32_t *place = NULL;
	const bool numbered = split_is_numbered(work);
	int code = numbered ? split_drop_unnumbered(work) : split_classes_of_folders(work);
	if (code)
		return code;
	for (size_t i = 0; i < work->count; i++) {
		count += work->found[i].count;
		bad += work->found[i].bad_count + (work->files[i].reason != NULL);
		*passing = *passing || work->found[i].passing || work->files[i].passing;
	}
	uint64_t *const offsets = arena_take(arena, count * sizeof *offsets);
	dataset->samples = arena_take(arena, count * sizeof *dataset->samples);
	dataset->bad = arena_take(arena, bad * sizeof *dataset->bad);
	if (!offsets || !dataset->samples || !dataset->bad)
		return -ENOMEM;
	code = numbered ? split_number_classes(work, dataset)
			: split_order_classes(work, dataset, &place);
	if (!code) {
		split_take_parts(work, place, dataset, offsets);
		split_take_bad(work, dataset);
		dataset->offsets = offsets;
		manifest_total(dataset);
	}
	free(place);
	return code;
}

static void split_release(struct split_work *work, unsigned threads)
{
	for (size_t i = 0; work->found && i < work->count; i++) {
		free(work->found[i].parts);
		free(work->found[i].bad);
	}
	for (unsigned i = 0; work->windows && i < threads; i++)
		free(work->windows[i].bytes);
	free(work->found);
	free(work->windows);
	json_decref(work->names);
	(void)pthread_mutex_destroy(&work->lock);
}

static unsigned split_threads(const struct folder_scan *scan, size_t count)
{
	unsigned threads = team_threads(scan->control->threads);
	threads = threads < SPLIT_THREADS_MAX ? threads : SPLIT_THREADS_MAX;
	threads = threads < scan->depth ? threads : scan->depth;
	return count < threads ? (unsigned)count : threads;
}

int container_split_files(struct folder_scan *scan, const struct found *files, size_t count,
	struct dataset *dataset, bool *passing, struct error *err)
{
	struct split_work work = {.scan = scan, .files = files, .count = count};
	const unsigned threads = split_threads(scan, count);
	const struct team_job job = {
		.count = count,
		.item = split_one,
		.tick = split_tick,
		.context = &work,
		.stop = scan->control->stop,
		.threads = threads,
	};
	*passing = false;
	(void)pthread_mutex_init(&work.lock, NULL);
	work.found = calloc(count + 1, sizeof *work.found);
	work.windows = calloc(threads + 1, sizeof *work.windows);
	work.names = json_object();
	int code = work.found && work.windows && work.names
			   ? 0
			   : error_set(err, -ENOMEM, "no memory for %zu files", count);
	if (!code && count > 0)
		code = team_run(&job, err);
	if (!code && scan_stopped(scan))
		code = error_set(
			err, -EINTR, "stopped while the files of '%s' were split", scan->root);
	if (!code && split_fill(&work, dataset, passing))
		code = error_set(err, -ENOMEM, "no memory for the samples of '%s'", scan->root);
	split_release(&work, threads);
	return code;
}
