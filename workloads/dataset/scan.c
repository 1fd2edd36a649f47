/* Scanning a user's folder: names, then the files that may become samples, then what they come
 * to. */
#include "workloads/dataset/scan.h"

#include "workloads/dataset/inspect.h"
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/scan_cache.h"
#include "workloads/sample/sample.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
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

/* ---- which files become samples ------------------------------------------------------------- */

/* Files whose header can say that they are samples, or has said so: how many, and where there
 * is room, which. */
static size_t find_candidates(const struct walk *walk, size_t *which)
{
	size_t count = 0;
	for (size_t i = 0; i < walk->count; i++) {
		if (walk->files[i].kind != FOUND_FILE)
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
	return file->kind == FOUND_FILE && !file->reason;
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
	const char *skipped, struct error *err)
{
	const struct sample_file_ops *const files = scan->kind->files;
	char endings[SAMPLE_ENDINGS_BYTES] = "";
	if (dataset->bad_count == 0)
		return error_set(err, -ENODATA, "no %s%sfile in '%s'%s%s",
			files ? files->endings(endings) : "", files ? " " : "", scan->root,
			*skipped ? "; not decoded: " : "", skipped);
	return error_set(err, -ENODATA, "none of the %zu %s in '%s' can be used; '%s': %s",
		dataset->bad_count, files ? files->called : "files", scan->root,
		dataset->bad[0].path, dataset->bad[0].reason);
}

/* ---- the scan -------------------------------------------------------------------------------- */

static int scan_walk(struct folder_scan *scan, uint64_t wanted, struct walk *walk,
	struct dataset *dataset, struct error *err)
{
	int code = walk_folder(scan, walk, err);
	const size_t candidates = find_candidates(walk, NULL);
	const uint64_t some = wanted < candidates ? wanted : 0;
	if (!code)
		code = scan_cache_take(scan, some, walk, err);
	const uint64_t headers = scan->effort.headers;
	if (!code)
		code = choose_samples(scan, walk, candidates, some ? some : candidates, err);
	if (!code)
		code = scan_fill(walk, scan->arena, dataset, err);
	if (!code && dataset->count == 0)
		code = no_samples(scan, dataset, walk->skipped, err);
	if (code)
		return code;
	dataset->scanned_now = scan->effort.headers > headers;
	memcpy(dataset->skipped, walk->skipped, sizeof dataset->skipped);
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
	struct folder_scan scan = {.root = store->address,
		.store = store,
		.root_fd = store->root_fd,
		.control = control ? control : &none};
	struct walk walk = {0};
	*dataset = (struct dataset){0};
	scan.kind = scan.control->kind ? scan.control->kind : sample_kinds[0];
	scan.calls = scan.control->calls ? scan.control->calls : &storage_system;
	store->calls = scan.calls;
	scan.depth = scan.control->depth ? scan.control->depth : DATASET_DEPTH;
	if (store->ops->local)
		scan.depth = depth_allowed(scan.root_fd, scan.depth);
	scan.ring = store->ops->local && !scan.control->calls &&
		    scan.control->way != DATASET_WAY_THREADS && inspect_ring_works();
	scan.arena = arena_open();
	int code = scan.arena ? scan_walk(&scan, wanted, &walk, dataset, err)
			      : error_set(err, -ENOMEM, "no memory to scan '%s'", scan.root);
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
