/* Reading, judging and writing the cached manifest. */
#include "workloads/dataset/scan_cache.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "workloads/dataset/inspect.h"
#include "workloads/dataset/manifest.h"
#include "workloads/sample/sample.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not "listing": manifests of earlier versions kept reasons that pass. */
#define LISTING_KEY "listing_of_all"

/* Goes up when scanning says something else of a file than before: manifests that were cached
 * by then are not believed. */
enum { PROBE_VERSION = 2, LISTING_BYTES = 17 };

/* Of another kind than image the same folder has another manifest. */
static uint64_t kind_seed(const struct sample_ops *kind, uint64_t some)
{
	return kind == sample_kinds[0] ? some : hash_bytes(kind->name, strlen(kind->name), some);
}

/* ${XDG_CACHE_HOME:-~/.cache}/mlbench/<hash of the folder's real path>.jsonl; NULL: no place for
 * it. */
static char *cache_path(const struct folder_scan *scan, uint64_t some, bool make)
{
	const char *cache = getenv("XDG_CACHE_HOME");
	const bool given = cache && cache[0] == '/';
	const char *home = given ? cache : getenv("HOME");
	char *real =
		store_find(scan->root)->local ? realpath(scan->root, NULL) : strdup(scan->root);
	char *path = NULL;
	char *folder = NULL;
	if (real && home && home[0] == '/')
		folder = files_join(home, given ? "mlbench" : ".cache/mlbench");
	struct error err;
	if (folder && make && files_make_folder(folder, &err))
		log_detail("no cached manifest: %s", err.text);
	if (folder && asprintf(&path, "%s/%016" PRIx64 ".jsonl", folder,
			      hash_bytes(real, strlen(real), kind_seed(scan->kind, some))) < 0)
		path = NULL;
	free(folder);
	free(real);
	return path;
}

/* XXH3 over all names, and over sizes, times and what is wrong without a look inside of the
 * files that the manifest has. */
static int hash_listing(const struct folder_scan *scan, const struct walk *walk, bool some,
	char out[LISTING_BYTES], struct error *err)
{
	struct hash_pieces *const pieces = hash_begin(PROBE_VERSION);
	if (!pieces)
		return error_set(err, -ENOMEM, "no memory to list the folder");
	for (size_t i = 0; i < walk->count && !scan_stopped(scan); i++) {
		const struct found *const file = &walk->files[i];
		const bool has = !some || file->known;
		const char *const reason = has && file->reason && !file->probed ? file->reason : "";
		char text[64];
		const int size = snprintf(text, sizeof text, "%" PRIu64 " %" PRId64 " ",
			has ? file->bytes : 0, has ? file->modified_ns : 0);
		hash_add(pieces, file->path, strlen(file->path) + 1);
		hash_add(pieces, text, (size_t)size);
		hash_add(pieces, reason, strlen(reason));
		hash_add(pieces, "\n", 1);
	}
	(void)snprintf(out, LISTING_BYTES, "%016" PRIx64, hash_end(pieces));
	return scan_stopped(scan) ? error_set(err, -EINTR, "stopped") : 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A manifest's entries beside the walk's files, which are in the same order. */
struct beside {
	const struct dataset *cached;
	size_t sample, bad;
};

/* True when the manifest has the file: as a sample, or as a bad one, for this reason. */
static bool find_beside(
	struct beside *beside, const char *path, const struct sample **sample, const char **reason)
{
	const struct dataset *const cached = beside->cached;
	*sample = NULL;
	*reason = NULL;
	if (beside->sample < cached->count &&
		strcmp(path, cached->samples[beside->sample].path) == 0)
		*sample = &cached->samples[beside->sample++];
	else if (beside->bad < cached->bad_count &&
		 strcmp(path, cached->bad[beside->bad].path) == 0)
		*reason = cached->bad[beside->bad++].reason;
	return *sample || *reason;
}

static void mark_known(const struct dataset *cached, struct walk *walk)
{
	struct beside beside = {.cached = cached};
	const struct sample *sample;
	const char *reason;
	for (size_t i = 0; i < walk->count; i++)
		walk->files[i].known = find_beside(&beside, walk->files[i].path, &sample, &reason);
}

static int take_known(
	const struct dataset *cached, struct arena *arena, struct walk *walk, struct error *err)
{
	struct beside beside = {.cached = cached};
	const struct sample *sample;
	const char *reason;
	for (size_t i = 0; i < walk->count; i++) {
		struct found *const file = &walk->files[i];
		(void)find_beside(&beside, file->path, &sample, &reason);
		if (sample) {
			file->width = sample->width;
			file->height = sample->height;
			file->format = sample->format;
			file->probed = true;
		} else if (reason && !file->reason) {
			file->reason = arena_text(arena, reason, strlen(reason));
			file->probed = true;
			if (!file->reason)
				return error_set(err, -ENOMEM, "no memory for a list of bad files");
		}
	}
	return 0;
}

/* Sizes and times of the files that the manifest has. */
static int size_known(struct folder_scan *scan, struct walk *walk, struct error *err)
{
	size_t *const which = calloc(walk->count + 1, sizeof *which);
	size_t count = 0;
	if (!which)
		return error_set(err, -ENOMEM, "no memory for a list of files");
	for (size_t i = 0; i < walk->count; i++)
		if (walk->files[i].known)
			which[count++] = i;
	const int code = inspect_files(scan, walk->files, which, count, false, err);
	free(which);
	return code;
}

static bool scan_cache_read_manifest(const struct folder_scan *scan, uint64_t some,
	struct dataset *cached, char listing[LISTING_BYTES])
{
	struct error err;
	json_t *header;
	char *const path = cache_path(scan, some, false);
	const int code = path ? manifest_read(path, cached, &header, &err) : -ENOENT;
	free(path);
	if (code && code != -ENOENT)
		log_detail("scanning again: %s", err.text);
	if (code)
		return false;
	const char *const there = json_string_value(json_object_get(header, LISTING_KEY));
	(void)snprintf(listing, LISTING_BYTES, "%s", there ? there : "");
	json_decref(header);
	if (there && cached->count > 0)
		return true;
	arena_close(cached->arena);
	return false;
}

int scan_cache_take(struct folder_scan *scan, uint64_t some, struct walk *walk, struct error *err)
{
	struct dataset cached = {0};
	char there[LISTING_BYTES];
	char here[LISTING_BYTES];
	if (!scan_cache_read_manifest(scan, some, &cached, there))
		return 0;
	mark_known(&cached, walk);
	int code = some ? size_known(scan, walk, err)
			: inspect_files(scan, walk->files, NULL, walk->count, false, err);
	if (!code)
		code = hash_listing(scan, walk, some, here, err);
	const bool same = !code && strcmp(here, there) == 0;
	if (same)
		code = take_known(&cached, scan->arena, walk, err);
	for (size_t i = 0; i < walk->count && !same; i++)
		walk->files[i].known = false;
	arena_close(cached.arena);
	return code;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool is_lasting(const struct found *file)
{
	return file->chosen || (file->reason && !file->passing);
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

static void write_manifest(const struct folder_scan *scan, uint64_t some, const char *listing,
	const struct dataset *dataset)
{
	struct error err;
	char *const path = cache_path(scan, some, true);
	json_t *const header = json_object();
	(void)json_object_set_new(header, LISTING_KEY, json_string(listing));
	if (!path)
		log_detail("no cached manifest of '%s': neither XDG_CACHE_HOME nor HOME is set",
			scan->root);
	else if (manifest_write(path, header, dataset, &err))
		log_detail("no cached manifest: %s", err.text);
	json_decref(header);
	free(path);
}

void scan_cache_keep(
	struct folder_scan *scan, uint64_t some, struct walk *walk, const struct dataset *dataset)
{
	struct error err;
	char listing[LISTING_BYTES];
	bool new = false;
	for (size_t i = 0; i < walk->count; i++) {
		struct found *const file = &walk->files[i];
		new = new || (is_lasting(file) && !file->known);
		file->known = is_lasting(file);
	}
	struct dataset_bad *const bad = new ? calloc(dataset->bad_count + 1, sizeof *bad) : NULL;
	if (!bad || hash_listing(scan, walk, some, listing, &err))
		return;
	const struct dataset kept = lasting(dataset, walk, bad);
	write_manifest(scan, some, listing, &kept);
	free(bad);
}
