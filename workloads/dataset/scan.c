/* Probing a user's folder: headers of all files in parallel, and the cached manifest that saves it.
 */
#include "workloads/dataset/scan.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/team.h"
#include "workloads/image/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Not "listing": manifests of earlier versions kept reasons that pass. */
#define LISTING_KEY "listing_of_all"

enum { PROBE_BYTES = 64 * 1024 };

/* A header that is still not whole after so many bytes is no header. */
static const uint64_t PROBE_MAX = 64 << 20;

struct probe {
	const char *root;
	struct walk *walk;
	struct arena *arena; /* for reasons, under lock */
	pthread_mutex_t lock;
	const struct dataset_control *control;
};

static ssize_t read_some(int file, char *bytes, size_t size)
{
	size_t used = 0;
	while (used < size) {
		const ssize_t n = read(file, bytes + used, size - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

/* Reads the header, from a larger and larger beginning of the file while it asks for more.  passing: it failed for a reason
 * that is not the file's contents. */
static int probe_open_file(
	int file, uint64_t bytes, struct image_info *info, bool *passing, struct error *err)
{
	size_t room = PROBE_BYTES;
	for (;;) {
		char *head = malloc(room);
		*passing = true;
		if (!head)
			return error_set(err, -ENOMEM, "no memory for its header");
		ssize_t got = lseek(file, 0, SEEK_SET) == 0 ? read_some(file, head, room) : -errno;
		int code = got < 0 ? error_set_errno(err, (int)-got, "cannot be read")
				   : image_read_info(head, (size_t)got, info, err);
		if (!code)
			code = image_check_bytes(info, bytes, err);
		free(head);
		*passing = got < 0 || code == -ENOMEM;
		if (code != -EAGAIN)
			return code;
		if ((uint64_t)got >= bytes || (size_t)got < room)
			return error_set(err, -EINVAL, "cut short within its header");
		if (room >= PROBE_MAX)
			return error_set(err, -EINVAL, "its header is longer than %" PRIu64 " MiB",
				PROBE_MAX >> 20);
		room *= 8;
	}
}

static int keep_reason(
	struct probe *probe, struct found *found, const char *reason, struct error *err)
{
	(void)pthread_mutex_lock(&probe->lock);
	found->reason = arena_text(probe->arena, reason, strlen(reason));
	(void)pthread_mutex_unlock(&probe->lock);
	return found->reason ? 0 : error_set(err, -ENOMEM, "no memory for a list of bad files");
}

/* A bad file is a finding, not a failure. */
static int probe_one(void *context, unsigned worker, uint64_t index, struct error *err)
{
	(void)worker;
	struct probe *probe = context;
	struct found *found = &probe->walk->files[index];
	struct image_info info = {0};
	struct error why = {"unreadable"};
	if (found->reason || found->probed)
		return 0;
	char *path = files_join(probe->root, found->path);
	if (!path)
		return error_set(err, -ENOMEM, "no memory for a path");
	const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	free(path);
	found->probed = true;
	found->passing = file < 0;
	int code = file < 0 ? error_set_errno(&why, errno, "cannot be opened")
			    : probe_open_file(file, found->bytes, &info, &found->passing, &why);
	if (file >= 0)
		(void)close(file);
	found->width = info.width;
	found->height = info.height;
	found->format = (uint8_t)info.format;
	return code ? keep_reason(probe, found, why.text, err) : 0;
}

static int tick(void *context, uint64_t done, struct error *err)
{
	(void)err;
	const struct probe *probe = context;
	const struct dataset_control *control = probe->control;
	if (control && control->progress)
		control->progress(control->context, done, probe->walk->count, 0);
	return 0;
}

static int probe_all(const char *root, const struct dataset_control *control, struct arena *arena,
	struct walk *walk, struct error *err)
{
	struct probe probe = {.root = root, .walk = walk, .arena = arena, .control = control};
	(void)pthread_mutex_init(&probe.lock, NULL);
	const struct team_job job = {
		.count = walk->count,
		.item = probe_one,
		.tick = tick,
		.context = &probe,
		.stop = control ? control->stop : NULL,
		.threads = team_threads(control ? control->threads : 0),
	};
	const int code = team_run(&job, err);
	(void)pthread_mutex_destroy(&probe.lock);
	return code;
}

static bool same_class(const char *name, const char *path)
{
	size_t length;
	const char *class = walk_class(path, &length);
	return strlen(name) == length && memcmp(name, class, length) == 0;
}

/* Samples, classes and bad files from the walk, which is in their order. */
static int fill(
	const struct walk *walk, struct arena *arena, struct dataset *dataset, struct error *err)
{
	const size_t count = walk->count;
	dataset->samples = arena_take(arena, count * sizeof(*dataset->samples));
	dataset->bad = arena_take(arena, count * sizeof(*dataset->bad));
	dataset->class_names = arena_take(arena, count * sizeof(*dataset->class_names));
	if (!dataset->samples || !dataset->bad || !dataset->class_names)
		return error_set(err, -ENOMEM, "no memory for %zu samples", count);
	for (size_t i = 0; i < count; i++) {
		const struct found *file = &walk->files[i];
		if (file->reason) {
			dataset->bad[dataset->bad_count++] =
				(struct dataset_bad){.path = file->path, .reason = file->reason};
			continue;
		}
		const size_t classes = dataset->class_count;
		if (!classes || !same_class(dataset->class_names[classes - 1], file->path)) {
			size_t length;
			const char *class = walk_class(file->path, &length);
			const char *name = arena_text(arena, class, length);
			if (!name)
				return error_set(err, -ENOMEM, "no memory for classes");
			dataset->class_names[dataset->class_count++] = name;
		}
		dataset->samples[dataset->count++] = (struct sample){
			.path = file->path,
			.bytes = file->bytes,
			.width = file->width,
			.height = file->height,
			.label = (uint32_t)(dataset->class_count - 1),
			.format = file->format,
		};
	}
	return 0;
}

/* ${XDG_CACHE_HOME:-~/.cache}/mlbench/<hash of the folder's real path>.jsonl; NULL: no place for
 * it. */
static char *cache_path(const char *root, bool make)
{
	const char *cache = getenv("XDG_CACHE_HOME");
	const bool given = cache && cache[0] == '/';
	const char *home = given ? cache : getenv("HOME");
	char *real = realpath(root, NULL);
	char *path = NULL;
	char *folder = NULL;
	if (real && home && home[0] == '/')
		folder = files_join(home, given ? "mlbench" : ".cache/mlbench");
	struct error err;
	if (folder && make && files_make_folder(folder, &err))
		log_detail("no cached manifest: %s", err.text);
	if (folder && asprintf(&path, "%s/%016" PRIx64 ".jsonl", folder,
			      hash_bytes(real, strlen(real), 0)) < 0)
		path = NULL;
	free(folder);
	free(real);
	return path;
}

static void format_listing(const struct walk *walk, char out[17])
{
	(void)snprintf(out, 17, "%016" PRIx64, walk->listing);
}

/* True when a cached manifest is of the folder as the walk found it; files that could not be read then are not in it. */
static bool read_cache(const char *root, const struct walk *walk, struct dataset *dataset)
{
	struct dataset cached = {0};
	json_t *header;
	struct error err;
	char listing[17];
	char *path = cache_path(root, false);
	const int code = path ? manifest_read(path, &cached, &header, &err) : -ENOENT;
	free(path);
	if (code && code != -ENOENT)
		log_detail("scanning again: %s", err.text);
	if (code)
		return false;
	format_listing(walk, listing);
	const char *there = json_string_value(json_object_get(header, LISTING_KEY));
	const bool same = there && strcmp(there, listing) == 0 && cached.count > 0;
	json_decref(header);
	if (!same) {
		arena_close(cached.arena);
		return false;
	}
	*dataset = cached;
	return true;
}

static bool is_whole(const struct dataset *cached, const struct walk *walk)
{
	return cached->count + cached->bad_count == walk->count;
}

/* Marks what the cache knows of the walk's files, which are in the same order. */
static int take_known(
	const struct dataset *cached, struct arena *arena, struct walk *walk, struct error *err)
{
	size_t sample = 0;
	size_t bad = 0;
	for (size_t i = 0; i < walk->count; i++) {
		struct found *file = &walk->files[i];
		if (sample < cached->count &&
			strcmp(file->path, cached->samples[sample].path) == 0) {
			const struct sample *known = &cached->samples[sample++];
			file->width = known->width;
			file->height = known->height;
			file->format = known->format;
			file->probed = true;
		} else if (bad < cached->bad_count &&
			   strcmp(file->path, cached->bad[bad].path) == 0) {
			const char *reason = cached->bad[bad++].reason;
			file->reason = arena_text(arena, reason, strlen(reason));
			if (!file->reason)
				return error_set(err, -ENOMEM, "no memory for a list of bad files");
		}
	}
	walk->known = sample + bad;
	return 0;
}

/* All but the files whose reason passes; bad is as long as the list of them. */
static struct dataset lasting(
	const struct dataset *dataset, const struct walk *walk, struct dataset_bad *bad)
{
	struct dataset kept = *dataset;
	kept.bad = bad;
	kept.bad_count = 0;
	for (size_t i = 0; i < walk->count; i++)
		if (walk->files[i].reason && !walk->files[i].passing)
			bad[kept.bad_count++] = (struct dataset_bad){
				.path = walk->files[i].path, .reason = walk->files[i].reason};
	return kept;
}

static void write_cache(const char *root, const struct walk *walk, const struct dataset *dataset)
{
	struct error err;
	char listing[17];
	char *path = cache_path(root, true);
	format_listing(walk, listing);
	json_t *header = json_object();
	(void)json_object_set_new(header, LISTING_KEY, json_string(listing));
	if (!path)
		log_detail(
			"no cached manifest of '%s': neither XDG_CACHE_HOME nor HOME is set", root);
	else if (manifest_write(path, header, dataset, &err))
		log_detail("no cached manifest: %s", err.text);
	json_decref(header);
	free(path);
}

/* Where anything of it is new. */
static void keep_lasting(const char *root, const struct walk *walk, const struct dataset *dataset)
{
	struct dataset_bad *bad = calloc(dataset->bad_count + 1, sizeof *bad);
	if (!bad)
		return;
	const struct dataset kept = lasting(dataset, walk, bad);
	if (kept.count + kept.bad_count > walk->known)
		write_cache(root, walk, &kept);
	free(bad);
}

static int no_pictures(
	const char *root, const struct dataset *dataset, const char *skipped, struct error *err)
{
	if (dataset->bad_count == 0)
		return error_set(err, -ENODATA,
			"no .jpg, .jpeg, .png, .ppm, .webp, .tif or .tiff file in '%s'%s%s", root,
			*skipped ? "; not decoded: " : "", skipped);
	return error_set(err, -ENODATA, "none of the %zu pictures in '%s' can be used; '%s': %s",
		dataset->bad_count, root, dataset->bad[0].path, dataset->bad[0].reason);
}

static int scan(const char *root, const struct dataset_control *control, struct arena *arena,
	struct walk *walk, struct dataset *dataset, struct error *err)
{
	int code = probe_all(root, control, arena, walk, err);
	if (!code)
		code = fill(walk, arena, dataset, err);
	if (code)
		return code;
	if (dataset->count == 0)
		return no_pictures(root, dataset, walk->skipped, err);
	dataset->scanned_now = true;
	manifest_total(dataset);
	keep_lasting(root, walk, dataset);
	return 0;
}

int scan_folder(const char *root, const struct dataset_control *control, struct dataset *dataset,
	struct error *err)
{
	struct walk walk = {0};
	struct arena *arena = arena_open();
	if (!arena)
		return error_set(err, -ENOMEM, "no memory to scan '%s'", root);
	int code = walk_folder(root, control ? control->stop : NULL, arena, &walk, err);
	char skipped[sizeof walk.skipped];
	memcpy(skipped, walk.skipped, sizeof skipped);
	if (!code && read_cache(root, &walk, dataset)) {
		if (is_whole(dataset, &walk)) {
			arena_close(arena);
			walk_release(&walk);
			memcpy(dataset->skipped, skipped, sizeof skipped);
			return 0;
		}
		code = take_known(dataset, arena, &walk, err);
		arena_close(dataset->arena);
		*dataset = (struct dataset){0};
	}
	if (!code)
		code = scan(root, control, arena, &walk, dataset, err);
	walk_release(&walk);
	if (code) {
		arena_close(arena);
		*dataset = (struct dataset){0};
		return code;
	}
	dataset->arena = arena;
	memcpy(dataset->skipped, skipped, sizeof skipped);
	return 0;
}
