/* Scanning a user's folder: names, then the files that may become samples, then what they come
 * to. */
#include "workloads/dataset/scan.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "workloads/dataset/manifest.h"
#include "workloads/sample/sample.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

/* Open files beside those that are looked at: a ring a thread, results, what the run shows to
 * others. */
enum { OPEN_FILES_SPARE = 24 };

/* From so many bad ones on, more are picked at once than are wanted. */
enum { FEW_BAD = 64 };

bool scan_stopped(const struct folder_scan *scan)
{
	const atomic_bool *const stop = scan->control->stop;
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

bool scan_takes_name(const struct folder_scan *scan, const char *name)
{
	return scan->container ? container_takes(scan->container, name)
			       : sample_takes_name(scan->kind, name);
}

int scan_look(const struct folder_scan *scan, const void *head, size_t size, uint64_t bytes,
	struct sample *out, struct error *err)
{
	*out = (struct sample){.bytes = bytes};
	return scan->control->undecoded ? 0 : sample_look(scan->kind, head, size, bytes, out, err);
}

/* ---- which files become samples ------------------------------------------------------------- */

/* Files whose header can say that they are samples, or has said so: how many, and where there
 * is room, which. */
static size_t find_candidates(const struct walk *walk, size_t *which)
{
	size_t count = 0;
	for (size_t i = 0; i < walk->count; i++) {
		if (walk->files[i].kind != STORE_FILE)
			continue;
		if (which)
			which[count] = i;
		count++;
	}
	return count;
}

/* Moves `many` of the `count` in rest to picked, evenly strided; how many are left. */
static size_t pick_evenly(size_t *rest, size_t count, size_t many, size_t *picked)
{
	size_t next = 0;
	size_t left = 0;
	for (size_t i = 0; i < count; i++) { /* at most 1e9 are wanted: no product overflows */
		if (next < many && i == (uint64_t)next * count / many)
			picked[next++] = rest[i];
		else
			rest[left++] = rest[i];
	}
	return left;
}

/* The first good ones, `wanted` at most. */
static size_t mark_chosen(struct walk *walk, const size_t *which, size_t count, size_t wanted)
{
	size_t chosen = 0;
	for (size_t i = 0; i < count; i++) {
		struct found *const file = &walk->files[which[i]];
		file->chosen = chosen < wanted && file->probed && !file->reason;
		chosen += file->chosen;
	}
	return chosen;
}

static size_t scan_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t scan_larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Bad ones among those that were picked are replaced by others, as evenly, until there are
 * enough or none is left; by more than are wanted where many are bad, so that the rounds are few. */
static int pick_until_enough(struct folder_scan *scan, struct walk *walk, size_t *rest, size_t left,
	size_t *picked, size_t wanted, struct error *err)
{
	int code = 0;
	size_t bad = 0;
	while (wanted > 0 && left > 0 && !code) {
		const size_t many =
			scan_least(bad < FEW_BAD ? wanted : scan_larger(wanted, bad / 2), left);
		left = pick_evenly(rest, left, many, picked);
		code = inspect_files(scan, walk->files, picked, many, true, err);
		const size_t chosen = mark_chosen(walk, picked, many, wanted);
		bad += many - chosen;
		wanted -= chosen;
	}
	return code;
}

/* wanted: of the candidates, which are at least as many. */
static int choose_samples(struct folder_scan *scan, struct walk *walk, size_t candidates,
	size_t wanted, struct error *err)
{
	size_t *const rest = calloc(candidates + 1, sizeof *rest);
	size_t *const picked = calloc(candidates + 1, sizeof *picked);
	int code = rest && picked ? 0 : error_set(err, -ENOMEM, "no memory for a list of files");
	if (!code)
		code = pick_until_enough(
			scan, walk, rest, find_candidates(walk, rest), picked, wanted, err);
	free(rest);
	free(picked);
	return code;
}

/* ---- what they come to ----------------------------------------------------------------------- */

static bool same_class(const char *name, const char *path)
{
	size_t length;
	const char *class = walk_class(path, &length);
	return strlen(name) == length && memcmp(name, class, length) == 0;
}

/* A class counts by a sample, or by a file that is or may be one and was not taken. */
static bool is_of_class(const struct found *file)
{
	return file->kind == STORE_FILE && !file->reason;
}

static int add_class(
	struct dataset *dataset, struct arena *arena, const char *path, struct error *err)
{
	const size_t classes = dataset->class_count;
	size_t length;
	const char *class = walk_class(path, &length);
	if (classes && same_class(dataset->class_names[classes - 1], path))
		return 0;
	dataset->class_names[classes] = arena_text(arena, class, length);
	dataset->class_count++;
	return dataset->class_names[classes] ? 0 : error_set(err, -ENOMEM, "no memory for classes");
}

/* Room for what the walk comes to; the class of each file may be one of its own. */
static bool make_room(const struct walk *walk, struct arena *arena, struct dataset *dataset)
{
	size_t chosen = 0;
	size_t bad = 0;
	size_t classes = 0;
	for (size_t i = 0; i < walk->count; i++) {
		const char *const before = i > 0 ? walk->files[i - 1].path : NULL;
		size_t length;
		chosen += walk->files[i].chosen;
		bad += walk->files[i].reason != NULL;
		const char *const class = walk_class(walk->files[i].path, &length);
		classes += !before || strncmp(before, class, length + 1) != 0;
	}
	dataset->samples = arena_take(arena, chosen * sizeof *dataset->samples);
	dataset->bad = arena_take(arena, bad * sizeof *dataset->bad);
	dataset->class_names = arena_take(arena, classes * sizeof *dataset->class_names);
	return dataset->samples && dataset->bad && dataset->class_names;
}

/* Samples, classes and bad files from the walk, which is in their order. */
static int scan_fill(
	const struct walk *walk, struct arena *arena, struct dataset *dataset, struct error *err)
{
	int code = 0;
	if (!make_room(walk, arena, dataset))
		return error_set(err, -ENOMEM, "no memory for %zu samples", walk->count);
	for (size_t i = 0; i < walk->count && !code; i++) {
		const struct found *const file = &walk->files[i];
		if (file->reason)
			dataset->bad[dataset->bad_count++] =
				(struct dataset_bad){.path = file->path, .reason = file->reason};
		if (is_of_class(file))
			code = add_class(dataset, arena, file->path, err);
		if (file->chosen && !code)
			dataset->samples[dataset->count++] = (struct sample){
				.path = file->path,
				.bytes = file->bytes,
				.width = file->width,
				.height = file->height,
				.label = (uint32_t)(dataset->class_count - 1),
				.format = file->format,
			};
	}
	manifest_total(dataset);
	return code;
}

static int no_samples(const struct folder_scan *scan, const struct dataset *dataset,
	const struct walk *walk, struct error *err)
{
	const struct sample_file_ops *const files = scan->container ? NULL : scan->kind->files;
	char room[SAMPLE_ENDINGS_BYTES];
	const char *const endings =
		scan->container ? scan->container->endings : sample_endings(scan->kind, room);
	if (dataset->bad_count == 0)
		return error_set(err, -ENODATA, "no %s%sfile in '%s'%s%s%s%s", endings,
			*endings ? " " : "", scan->root, *walk->skipped ? "; there: " : "",
			walk->skipped, *walk->advice ? ": set " : "", walk->advice);
	return error_set(err, -ENODATA, "none of the %zu %s in '%s' can be used; '%s': %s",
		dataset->bad_count, files ? files->called : "files", scan->root,
		dataset->bad[0].path, dataset->bad[0].reason);
}

/* ---- labels beside the samples -------------------------------------------------------------- */

/* The part of a name that says that a file is the label of another, "_y" of "case_1_y.npy"; NULL: none. */
static const char *companion_suffix(const char *name, size_t stem)
{
	static const char *const suffixes[] = {"_y", "_label", "_labels", "_mask", "_masks", "_seg",
		"_segmentation", "_gt", "_target"};
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		const size_t size = strlen(suffixes[i]);
		/* Few names end with a suffix's last letter, and names come by the million. */
		if (stem > size && ((name[stem - 1] ^ suffixes[i][size - 1]) & ~0x20) == 0 &&
			strncasecmp(name + stem - size, suffixes[i], size) == 0)
			return suffixes[i];
	}
	return NULL;
}

static size_t companion_stem(const char *path)
{
	const char *const dot = strrchr(path, '.');
	return dot ? (size_t)(dot - path) : strlen(path);
}

/* Where many files look like labels of the file before them, which has the same beginning ("case_1_x.npy"):
 * a job counts such a pair as one sample. */
static void advise_companions(struct dataset *dataset)
{
	enum { ONE_OF = 4 };
	const char *suffix = NULL;
	size_t count = 0;
	size_t first = 0;
	for (size_t i = 1; i < dataset->count; i++) {
		const char *const path = dataset->samples[i].path;
		const char *const before = dataset->samples[i - 1].path;
		const size_t stem = companion_stem(path);
		const char *const own = companion_suffix(path, stem);
		const size_t shared = own ? stem - strlen(own) : 0;
		if (!own || strncmp(path, before, shared) != 0 || !strchr("_-.", before[shared]) ||
			companion_suffix(before, companion_stem(before)))
			continue;
		first = count++ ? first : i;
		suffix = own;
	}
	if (count > 0 && count >= dataset->count / ONE_OF)
		(void)snprintf(dataset->advice, sizeof dataset->advice,
			"%zu of %zu files look like labels of others ('%.60s' beside '%.60s'): dataset.exclude = *%s.* leaves them out",
			count, dataset->count, dataset->samples[first].path,
			dataset->samples[first - 1].path, suffix);
}

/* ---- the cached manifest --------------------------------------------------------------------
 *
 * Kept outside the folder, it saves reading headers again.  A scan of all files and each number of
 * samples have one of their own (some: that number; 0: all).  It counts as long as the folder's
 * names, and sizes and times of the files that are in it, are as they were. */

/* Not "listing": manifests of earlier versions kept reasons that pass. */
#define LISTING_KEY "listing_of_all"

/* Goes up when scanning says something else of a file than before: manifests that were cached
 * by then are not believed. */
enum { PROBE_VERSION = 6, LISTING_BYTES = 17 };

static uint64_t seed_with(uint64_t seed, const char *text)
{
	return hash_bytes(text, strlen(text), seed);
}

/* Of another kind than image the same folder has another manifest; so has it of another container. */
static uint64_t scan_cache_seed(const struct folder_scan *scan, uint64_t some)
{
	const struct sample_ops *const kind = scan->kind;
	uint64_t seed = kind == sample_kinds[0] ? some : seed_with(some, kind->name);
	if (scan->control->undecoded)
		seed = seed_with(seed, "undecoded");
	return scan->container ? seed_with(seed, scan->container->name) : seed;
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
			      hash_bytes(real, strlen(real), scan_cache_seed(scan, some))) < 0)
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
		const uint64_t numbers[] = {
			has ? file->bytes : 0, has ? (uint64_t)file->modified_ns : 0};
		char rest[sizeof numbers + 1]; /* in few pieces: each costs as much as its bytes */
		memcpy(rest, numbers, sizeof numbers);
		rest[sizeof numbers] = '\n';
		hash_add(pieces, file->path, strlen(file->path) + 1);
		hash_add(pieces, rest, *reason ? sizeof numbers : sizeof rest);
		if (*reason) {
			hash_add(pieces, reason, strlen(reason));
			hash_add(pieces, "\n", 1);
		}
	}
	(void)snprintf(out, LISTING_BYTES, "%016" PRIx64, hash_end(pieces));
	return scan_stopped(scan) ? error_set(err, -EINTR, "stopped") : 0;
}

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
	if (there && cached->count > 0 && !cached->offsets == !scan->container)
		return true;
	arena_close(cached->arena);
	*cached = (struct dataset){0};
	return false;
}

static bool knows_all(const struct walk *walk)
{
	for (size_t i = 0; i < walk->count; i++)
		if (!walk->files[i].known)
			return false;
	return true;
}

/* Marks what is known of the walk's files, and asks for the sizes and times that it depends on.
 * Nothing is known where there is no manifest, or another folder's.  A manifest that has every file
 * is the data set: the walk's paths are gone then.  -EINTR, -ENOMEM. */
static int scan_cache_take(struct folder_scan *scan, uint64_t some, struct walk *walk,
	struct dataset *dataset, struct error *err)
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
	if (same && knows_all(walk)) {
		arena_close(scan->arena);
		scan->arena = cached.arena;
		*dataset = cached;
		return 0;
	}
	if (same)
		code = take_known(&cached, scan->arena, walk, err);
	for (size_t i = 0; i < walk->count && !same; i++)
		walk->files[i].known = false;
	arena_close(cached.arena);
	return code;
}

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

/* Keeps what the scan found where anything of it is new, unless its reason passes.  That it
 * cannot be kept is no failure. */
static void scan_cache_keep(
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

/* ---- files that are split ------------------------------------------------------------------- */

/* The whole data set from its manifest, where that is still true of the folder. */
static int scan_cache_take_split(
	struct folder_scan *scan, const char *listing, struct dataset *dataset)
{
	char there[LISTING_BYTES];
	struct dataset cached = {0};
	if (!scan_cache_read_manifest(scan, 0, &cached, there))
		return -ENOENT;
	if (strcmp(there, listing) != 0) {
		arena_close(cached.arena);
		return -EDOM;
	}
	arena_close(scan->arena);
	scan->arena = cached.arena;
	*dataset = cached;
	return 0;
}

/* wanted of the samples, evenly. */
static void pick_split_samples(struct dataset *dataset, uint64_t wanted)
{
	uint64_t *const offsets = (uint64_t *)(uintptr_t)dataset->offsets;
	if (wanted == 0 || wanted >= dataset->count)
		return;
	for (uint64_t i = 0; i < wanted; i++) { /* both below 2^32: no product overflows */
		const size_t from = (size_t)(i * dataset->count / wanted);
		dataset->samples[i] = dataset->samples[from];
		offsets[i] = offsets[from];
	}
	dataset->count = wanted;
	manifest_total(dataset);
}

static int scan_split(struct folder_scan *scan, uint64_t wanted, struct walk *walk,
	struct dataset *dataset, struct error *err)
{
	char listing[LISTING_BYTES];
	bool passing = false;
	int code = inspect_files(scan, walk->files, NULL, walk->count, false, err);
	if (!code)
		code = hash_listing(scan, walk, false, listing, err);
	if (code)
		return code;
	if (scan_cache_take_split(scan, listing, dataset)) {
		code = container_split_files(
			scan, walk->files, walk->count, dataset, &passing, err);
		if (!code && dataset->count == 0)
			code = no_samples(scan, dataset, walk, err);
		if (code)
			return code;
		dataset->scanned_now = true;
		if (!passing)
			write_manifest(scan, 0, listing, dataset);
	}
	pick_split_samples(dataset, wanted);
	memcpy(dataset->skipped, walk->skipped, sizeof dataset->skipped);
	return 0;
}

/* ---- the scan -------------------------------------------------------------------------------- */

static int scan_walk(struct folder_scan *scan, uint64_t wanted, struct walk *walk,
	struct dataset *dataset, struct error *err)
{
	int code = walk_folder(scan, walk, err);
	if (!code && scan->container)
		return scan_split(scan, wanted, walk, dataset, err);
	const size_t candidates = find_candidates(walk, NULL);
	const uint64_t some = wanted < candidates ? wanted : 0;
	if (!code)
		code = scan_cache_take(scan, some, walk, dataset, err);
	const uint64_t headers = scan->effort.headers;
	const bool cached = !code && dataset->count > 0;
	if (!code && !cached)
		code = choose_samples(scan, walk, candidates, some ? some : candidates, err);
	if (!code && !cached)
		code = scan_fill(walk, scan->arena, dataset, err);
	if (!code && dataset->count == 0)
		code = no_samples(scan, dataset, walk, err);
	if (code)
		return code;
	dataset->scanned_now = scan->effort.headers > headers;
	dataset->beside = walk->beside;
	memcpy(dataset->skipped, walk->skipped, sizeof dataset->skipped);
	advise_companions(dataset);
	if (!cached)
		scan_cache_keep(scan, some, walk, dataset);
	return 0;
}

/* dup's number says about how many files are open now. */
static unsigned depth_allowed(int root_fd, unsigned wanted)
{
	struct rlimit limit;
	const int next = dup(root_fd);
	if (next < 0)
		return 1;
	(void)close(next);
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return wanted;
	const rlim_t taken = (rlim_t)next + OPEN_FILES_SPARE;
	if (limit.rlim_cur <= taken + 1)
		return 1;
	return limit.rlim_cur - taken < wanted ? (unsigned)(limit.rlim_cur - taken) : wanted;
}

int scan_store(struct store *store, uint64_t wanted, const struct dataset_control *control,
	struct dataset *dataset, struct error *err)
{
	static const struct dataset_control none = {0};
	struct folder_scan scan = {
		.root = store->address, .store = store, .control = control ? control : &none};
	struct walk walk = {0};
	struct error why;
	*dataset = (struct dataset){0};
	scan.kind = scan.control->kind ? scan.control->kind : sample_kinds[0];
	scan.container = scan.control->container ? scan.control->container : scan.kind->container;
	if (scan.control->calls)
		store->calls = scan.control->calls;
	scan.depth = scan.control->depth ? scan.control->depth : DATASET_DEPTH;
	if (store->ops->local)
		scan.depth = depth_allowed(store->root_fd, scan.depth);
	scan.ring = store->ops->local && !scan.control->calls &&
		    scan.control->way != DATASET_WAY_THREADS && inspect_ring_works();
	scan.arena = arena_open();
	int code = scan.arena ? scan_walk(&scan, wanted, &walk, dataset, err)
			      : error_set(err, -ENOMEM, "no memory to scan '%s'", scan.root);
	/* What could not be looked at is no smaller data set. */
	const int dead = code != -EINTR && store->ops->dead ? store->ops->dead(store, &why) : 0;
	if (dead)
		code = error_set(err, dead, "%s", why.text);
	walk_release(&walk);
	if (scan.control->effort)
		*scan.control->effort = scan.effort;
	dataset->arena = scan.arena;
	if (!code)
		return 0;
	arena_close(scan.arena);
	*dataset = (struct dataset){0};
	return code;
}

int scan_folder(const char *root, uint64_t wanted, const struct dataset_control *control,
	struct dataset *dataset, struct error *err)
{
	struct store *store;
	*dataset = (struct dataset){0};
	int code = store_open(&store, root, err);
	if (!code)
		code = scan_store(store, wanted, control, dataset, err);
	store_close(store);
	return code;
}

int scan_split_generated(const struct config *config, const struct dataset_control *control,
	struct dataset *dataset, struct error *err)
{
	static const struct dataset_control none = {0};
	const struct sample_ops *const kind = sample_kind_of(config);
	struct folder_scan scan = {
		.root = config_text(config, KEY_DATASET_PATH),
		.control = control ? control : &none,
		.kind = kind,
		.container = kind->container,
		.depth = DATASET_DEPTH,
		.arena = dataset->arena,
	};
	struct dataset split = {.generated = true, .arena = dataset->arena};
	struct found *const files = calloc(dataset->count + 1, sizeof *files);
	bool passing;
	if (!files)
		return error_set(err, -ENOMEM, "no memory to split %zu files", dataset->count);
	for (size_t i = 0; i < dataset->count; i++)
		files[i] = (struct found){.path = (char *)(uintptr_t)dataset->samples[i].path,
			.bytes = dataset->samples[i].bytes,
			.kind = STORE_FILE,
			.sized = true};
	int code = store_open(&scan.store, scan.root, err);
	if (!code)
		code = container_split_files(&scan, files, dataset->count, &split, &passing, err);
	store_close(scan.store);
	free(files);
	if (!code && split.bad_count > 0)
		code = error_set(err, -EIO, "'%s/%s': %s: mend the data set with `mlbench gen`",
			scan.root, split.bad[0].path, split.bad[0].reason);
	if (!code)
		*dataset = split;
	return code;
}
