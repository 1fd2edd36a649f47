/* A user's folder scanned at depth: what is found is what a plain scan finds, whichever way and
 * however much at once; no more is looked at than is needed, no more is in flight than may be; a
 * stop, a failure or a folder without an end is met midway. */
#include "tests/unit/child.h"
#include "tests/unit/dataset_fixture.h"

#include "harness/base/rng.h"
#include "tests/scan_reference.h"
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/scan.h"
#include "workloads/image/encode.h"
#include "workloads/source/store.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

enum { GUARD_SECONDS = 300 }; /* against a hang, however slow the machine */

/* ---- folders --------------------------------------------------------------------------------- */

static void put_raw(const char *name, uint32_t width, uint32_t height)
{
	char text[64];
	const int head = snprintf(text, sizeof text, "P6 %u %u 255\n", width, height);
	const size_t size = (size_t)head + (size_t)3 * width * height;
	char *const bytes = calloc(1, size);
	memcpy(bytes, text, (size_t)head);
	fixture_write(name, bytes, size);
	free(bytes);
}

/* A JPEG with so many segments of 64 KiB before its size. */
static void put_long_header(const char *name, int segments)
{
	enum { SEGMENT = 65537, START = 2 };
	const struct encode_options options = {.format = DATASET_FORMAT_JPEG, .quality = 80};
	static const uint8_t rgb[16 * 16 * 3];
	struct encoder *encoder;
	struct error err;
	const uint8_t *bytes;
	size_t size;
	assert_int_equal(encoder_open(&encoder, &options, &err), 0);
	assert_int_equal(encoder_encode(encoder, rgb, 16, 16, &bytes, &size, &err), 0);
	const size_t added = (size_t)segments * SEGMENT;
	uint8_t *const longer = calloc(1, size + added);
	memcpy(longer, bytes, START);
	for (int i = 0; i < segments; i++)
		memcpy(longer + START + i * SEGMENT, "\xff\xe1\xff\xff", 4);
	memcpy(longer + START + added, bytes + START, size - START);
	fixture_write(name, longer, size + added);
	free(longer);
	encoder_close(encoder);
}

static void put_link(const char *target, const char *name)
{
	char path[FIXTURE_PATH];
	assert_int_equal(symlink(target, fixture_path(name, path)), 0);
}

static void put_anything(struct rng *rng, const char *folder, int depth, int *number)
{
	static const char *const endings[] = {
		".jpg", ".PNG", ".ppm", ".bmp", ".txt", "", "-x.tiff", ".webp"};
	char name[FIXTURE_PATH], path[FIXTURE_PATH];
	fixture_folder(folder);
	for (uint64_t left = 3 + rng_below(rng, 12); left > 0; left--) {
		(void)snprintf(name, sizeof name, "%.1000s/%c%d%s", folder,
			"aB.-zZ0\xc3"[rng_below(rng, 8)], (*number)++,
			endings[rng_below(rng, sizeof endings / sizeof *endings)]);
		switch (rng_below(rng, depth > 0 ? 14 : 10)) {
		case 0:
			fixture_write(name, NULL, 0);
			break;
		case 1:
			fixture_write(name, "this is no picture", 18);
			break;
		case 2:
			assert_int_equal(mkfifo(fixture_path(name, path), 0600), 0);
			break;
		case 3:
			put_link(rng_below(rng, 2) ? ".." : ".", name);
			break;
		case 4:
			put_link("nowhere", name);
			break;
		case 5: {
			char to[64];
			(void)snprintf(
				to, sizeof to, "../%s", rng_below(rng, 2) ? "top" : "a0.jpg");
			put_link(to, name);
			break;
		}
		case 6:
			put_long_header(name, 1 + (int)rng_below(rng, 12));
			break;
		case 10:
		case 11:
		case 12:
		case 13:
			put_anything(rng, name, depth - 1, number);
			break;
		default:
			put_raw(name, 8 + (uint32_t)rng_below(rng, 20), 9);
		}
	}
}

/* COUNT pictures in CLASSES classes; the width is the number, so that a sample tells which file
 * it is. */
static void put_many(const char *folder, int count, int classes)
{
	char name[FIXTURE_PATH];
	for (int i = 0; i < count; i++) {
		const int class = i * classes / count;
		(void)snprintf(name, sizeof name, "%s/c%d", folder, class);
		fixture_folder(name);
		(void)snprintf(name, sizeof name, "%s/c%d/%05d.ppm", folder, class, i);
		put_raw(name, (uint32_t)i + 1, 1);
	}
}

static void use_cache(const char *name)
{
	char path[FIXTURE_PATH];
	assert_int_equal(
		setenv("XDG_CACHE_HOME", name ? fixture_path(name, path) : "/proc/none", 1), 0);
}

/* ---- scans ----------------------------------------------------------------------------------- */

static int scan_with(const char *name, uint64_t wanted, const struct dataset_control *control,
	struct dataset *dataset, struct dataset_effort *effort, struct error *err)
{
	struct dataset_control mine = *control;
	char path[FIXTURE_PATH];
	mine.effort = effort;
	return scan_folder(fixture_path(name, path), wanted, &mine, dataset, err);
}

static void expect_scan(const char *name, uint64_t wanted, const struct dataset_control *control,
	struct dataset *dataset, struct dataset_effort *effort)
{
	struct error err = {""};
	if (scan_with(name, wanted, control, dataset, effort, &err))
		fail_msg("%s", err.text);
	assert_true(effort->most_in_flight <= (control->depth ? control->depth : DATASET_DEPTH));
}

static void expect_same(const struct dataset *a, const struct dataset *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->bad_count, b->bad_count);
	assert_int_equal(a->class_count, b->class_count);
	for (size_t i = 0; i < a->count; i++) {
		assert_string_equal(a->samples[i].path, b->samples[i].path);
		assert_int_equal(a->samples[i].bytes, b->samples[i].bytes);
		assert_int_equal(a->samples[i].width, b->samples[i].width);
		assert_int_equal(a->samples[i].height, b->samples[i].height);
		assert_int_equal(a->samples[i].format, b->samples[i].format);
		assert_int_equal(a->samples[i].label, b->samples[i].label);
	}
	for (size_t i = 0; i < a->bad_count; i++) {
		assert_string_equal(a->bad[i].path, b->bad[i].path);
		assert_string_equal(a->bad[i].reason, b->bad[i].reason);
	}
	for (size_t i = 0; i < a->class_count; i++)
		assert_string_equal(a->class_names[i], b->class_names[i]);
}

static void expect_reference(const struct dataset *dataset, const struct reference *reference)
{
	size_t sample = 0, bad = 0;
	for (size_t i = 0; i < reference->count; i++) {
		const struct reference_file *const file = &reference->files[i];
		if (file->bad) {
			assert_true(bad < dataset->bad_count);
			assert_string_equal(dataset->bad[bad].path, file->path);
			assert_string_equal(dataset->bad[bad++].reason, file->reason);
			continue;
		}
		assert_true(sample < dataset->count);
		const struct sample *const found = &dataset->samples[sample++];
		size_t length;
		const char *const class = walk_class(file->path, &length);
		assert_string_equal(found->path, file->path);
		assert_int_equal(found->bytes, file->bytes);
		assert_int_equal(found->width, file->info.width);
		assert_int_equal(found->height, file->info.height);
		assert_int_equal(found->format, file->info.format);
		assert_int_equal(strlen(dataset->class_names[found->label]), length);
		assert_memory_equal(dataset->class_names[found->label], class, length);
	}
	assert_int_equal(sample, dataset->count);
	assert_int_equal(bad, dataset->bad_count);
}

/* The only manifest in a cache. */
static uint64_t manifest_hash(const char *cache)
{
	char path[FIXTURE_PATH], name[FIXTURE_PATH] = "";
	(void)snprintf(name, sizeof name, "%s/mlbench", cache);
	DIR *const folder = opendir(fixture_path(name, path));
	const struct dirent *entry;
	uint64_t hash = 0;
	assert_non_null(folder);
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.') {
			assert_int_equal(hash, 0);
			(void)snprintf(name, sizeof name, "%s/mlbench/%s", cache, entry->d_name);
			hash = fixture_hash(name);
		}
	(void)closedir(folder);
	return hash;
}

/* A file system that does not say what its names are. */
static struct dirent *typeless_readdir(DIR *folder)
{
	struct dirent *const entry = readdir(folder);
	if (entry)
		entry->d_type = DT_UNKNOWN;
	return entry;
}

static struct storage_calls with_readdir(struct dirent *(*call)(DIR *))
{
	struct storage_calls calls = storage_system;
	calls.readdir = call;
	return calls;
}

static void names_that_are_passed_over_are_counted(void **state)
{
	(void)state;
	static const char *const others[] = {"over/c/.x.ppm", "over/c/._1.ppm", "over/.h/1.ppm",
		"over/a.BMP", "over/c/b.bmp", "over/c/e.tar.gz", "over/none", "over/c/2_y.ppm",
		"over/masks/1.ppm", "over/mlbench-manifest.jsonl"};
	static const char *const excludes[] = {NULL, "*_y.ppm, masks", "c/*_y.ppm,masks"};
	fixture_folder("over/c");
	fixture_folder("over/.h");
	fixture_folder("over/masks");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		put_raw(others[i], 2, 1);
	put_raw("over/c/1.ppm", 1, 1);
	put_raw("over/c/2.ppm", 2, 1);
	for (size_t i = 0; i < sizeof excludes / sizeof *excludes; i++) {
		const struct dataset_control control = {.exclude = excludes[i]};
		struct dataset dataset;
		struct dataset_effort effort;
		use_cache(NULL);
		expect_scan("over", 0, &control, &dataset, &effort);
		assert_int_equal(dataset.count, i ? 2 : 4);
		assert_int_equal(dataset.class_count, i ? 1 : 2);
		assert_int_equal(dataset.bad_count, 0);
		assert_string_equal(dataset.skipped,
			i ? "1 without an ending, 2 .bmp, 1 .tar.gz, 3 hidden files or folders, 2 by dataset.exclude"
			  : "1 without an ending, 2 .bmp, 1 .tar.gz, 3 hidden files or folders");
		if (i)
			assert_string_equal(dataset.advice, "");
		else
			assert_string_equal(dataset.advice,
				"1 of 4 files look like labels of others ('c/2_y.ppm' beside 'c/2.ppm'): dataset.exclude = *_y.* leaves them out");
		arena_close(dataset.arena);
	}
}

/* What no decoder will see is a sample by its name. */
static void files_that_nothing_decodes_are_not_judged(void **state)
{
	(void)state;
	const struct dataset_control control = {.undecoded = true};
	struct dataset dataset;
	struct dataset_effort effort;
	fixture_folder("raw/c");
	fixture_write("raw/c/1.jpg", "no picture", 10);
	use_cache(NULL);
	expect_scan("raw", 0, &control, &dataset, &effort);
	assert_int_equal(dataset.count, 1);
	assert_int_equal(dataset.bad_count, 0);
	assert_int_equal(dataset.total_bytes, 10);
	arena_close(dataset.arena);
}

/* ---- what is found --------------------------------------------------------------------------- */

static void what_is_found_does_not_depend_on_the_way(void **state)
{
	(void)state;
	const struct storage_calls typeless = with_readdir(typeless_readdir);
	const struct dataset_control ways[] = {
		{.depth = 1, .way = DATASET_WAY_THREADS},
		{.depth = 64, .way = DATASET_WAY_THREADS},
		{.depth = 1},
		{.depth = 64},
		{.depth = 64, .threads = 5},
		{.depth = 64, .calls = &typeless},
	};
	enum { WAYS = sizeof ways / sizeof *ways, TREES = 6 };
	const char *const seed = getenv("SEED");
	struct rng rng;
	rng_init(&rng, seed ? strtoull(seed, NULL, 10) : 1, 0);
	size_t samples = 0, bad = 0;
	for (int tree = 0; tree < TREES; tree++) {
		char name[32], path[FIXTURE_PATH];
		int number = 0;
		(void)snprintf(name, sizeof name, "tree%d", tree);
		put_anything(&rng, name, 3, &number);
		(void)snprintf(path, sizeof path, "%s/c/sure.ppm", name);
		char folder[64];
		(void)snprintf(folder, sizeof folder, "%s/c", name);
		fixture_folder(folder);
		put_raw(path, 3, 3);
		struct reference reference;
		reference_scan(&reference, fixture_path(name, path), 1);
		struct dataset first;
		uint64_t manifest = 0;
		for (int i = 0; i < WAYS; i++) {
			struct dataset dataset, again;
			struct dataset_effort effort;
			char cache[32];
			(void)snprintf(cache, sizeof cache, "kept%d-%d", tree, i);
			use_cache(cache);
			expect_scan(name, 0, &ways[i], &dataset, &effort);
			assert_true(dataset.scanned_now);
			assert_int_equal(effort.pictures, reference.count);
			expect_reference(&dataset, &reference);
			if (i == 0) {
				first = dataset;
				manifest = manifest_hash(cache);
				samples += dataset.count;
				bad += dataset.bad_count;
			}
			expect_same(&dataset, &first);
			assert_true(manifest_hash(cache) == manifest);
			expect_scan(name, 0, &ways[(i + 1) % WAYS], &again, &effort);
			assert_false(again.scanned_now);
			assert_int_equal(effort.headers, 0);
			expect_same(&again, &first);
			arena_close(again.arena);
			if (i > 0)
				arena_close(dataset.arena);
		}
		arena_close(first.arena);
		reference_release(&reference);
	}
	print_message("%zu samples, %zu bad ones\n", samples, bad);
	assert_true(samples > 20 && bad > 20);
}

/* A path that the kernel takes for too long ends there, in words. */
/* Of more files than are tried first, in folders below each other, in none, and behind a link: each is
 * asked for its size by the right name, and the manifest is the data set only while all are the same. */
static void a_change_among_many_is_seen_wherever_it_is(void **state)
{
	(void)state;
	static const char *const places[] = {"near/c0/00000.ppm", "near/c3/00399.ppm",
		"near/c6/00699.ppm", "near/top0.ppm", "near/c3/below/far/0.ppm",
		"near/c3/below/0.ppm"};
	static const char *const folders[] = {"near/", "near/c3/below/", "near/c3/below/far/"};
	const struct dataset_control plain = {.way = DATASET_WAY_THREADS}, fast = {0};
	char name[FIXTURE_PATH];
	char path[FIXTURE_PATH];
	struct dataset before;
	struct dataset dataset;
	struct dataset_effort effort;
	put_many("near", 700, 7);
	fixture_folder("near/c3/below/far");
	for (size_t i = 0; i < 3; i++)
		for (int k = 0; k < 50; k++) {
			(void)snprintf(name, sizeof name, "%s%s%d.ppm", folders[i],
				i == 0 ? "top" : "", k);
			put_raw(name, 1, 1);
		}
	for (unsigned i = 0; i < 7; i++) { /* of one name, each of its own size */
		(void)snprintf(name, sizeof name, "near/c%u/same.ppm", i);
		put_raw(name, i + 1, 1);
	}
	put_link("c3/below", "near/linked");
	put_link("nowhere", "near/c3/broken.ppm");
	use_cache("near-kept");
	expect_scan("near", 0, &fast, &before, &effort);
	assert_int_equal(before.count, 707 + 50 + 2 * 100);
	assert_int_equal(before.bad_count, 1);
	for (size_t i = 0; i <= sizeof places / sizeof *places; i++) {
		expect_scan("near", 0, &fast, &dataset, &effort);
		assert_false(dataset.scanned_now);
		assert_int_equal(effort.sized, before.count + 1); /* and the link to a folder */
		expect_same(&dataset, &before);
		arena_close(dataset.arena);
		arena_close(before.arena);
		if (i == sizeof places / sizeof *places)
			break;
		put_raw(places[i], 1000, 2);
		expect_scan("near", 0, &fast, &dataset, &effort);
		assert_true(dataset.scanned_now);
		use_cache(NULL);
		expect_scan("near", 0, &plain, &before, &effort);
		expect_same(&dataset, &before);
		arena_close(dataset.arena);
		use_cache("near-kept");
	}
	assert_int_equal(unlink(fixture_path("near/c3/below/far/1.ppm", path)), 0);
	expect_scan("near", 0, &fast, &dataset, &effort);
	assert_true(dataset.scanned_now);
	assert_int_equal(dataset.count, 707 + 50 + 2 * 99);
	arena_close(dataset.arena);
}

static void deeper_than_a_path_may_be(void **state)
{
	(void)state;
	enum { NAME = 200, LEVELS = 25 };
	struct dataset dataset;
	struct dataset_effort effort;
	const struct dataset_control control = {0};
	char name[NAME + 1], path[FIXTURE_PATH];
	int folders[LEVELS + 1];
	memset(name, 'd', NAME);
	name[NAME] = '\0';
	use_cache(NULL);
	put_many("deep", 3, 1);
	folders[0] = open(fixture_path("deep", path), O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < LEVELS; i++) {
		assert_int_equal(mkdirat(folders[i], name, 0755), 0);
		folders[i + 1] = openat(folders[i], name, O_RDONLY | O_DIRECTORY);
		assert_true(folders[i + 1] >= 0);
	}
	expect_scan("deep", 0, &control, &dataset, &effort);
	assert_int_equal(dataset.count, 3);
	assert_int_equal(dataset.bad_count, 1);
	assert_string_equal(dataset.bad[0].reason, "the folder cannot be read");
	arena_close(dataset.arena);
	for (int i = LEVELS; i > 0; i--) {
		(void)close(folders[i]);
		assert_int_equal(unlinkat(folders[i - 1], name, AT_REMOVEDIR), 0);
	}
	(void)close(folders[0]);
}

/* ---- how much is looked at ------------------------------------------------------------------- */

static void only_what_is_wanted_is_looked_at(void **state)
{
	(void)state;
	enum { ALL = 2400, SOME = 100 };
	const struct dataset_control control = {0};
	struct dataset all, some, again;
	struct dataset_effort effort;
	char path[FIXTURE_PATH];
	put_many("wanted", ALL, 20);
	use_cache("wanted-all");
	expect_scan("wanted", 0, &control, &all, &effort);
	assert_int_equal(effort.sized, ALL);
	assert_int_equal(effort.headers, ALL);
	use_cache("wanted-some");
	expect_scan("wanted", SOME, &control, &some, &effort);
	assert_int_equal(effort.pictures, ALL);
	assert_int_equal(effort.sized, SOME);
	assert_int_equal(effort.headers, SOME);
	assert_int_equal(some.count, SOME);
	assert_int_equal(some.class_count, all.class_count);
	for (size_t i = 0; i < SOME; i++) {
		const struct sample *const sample = &all.samples[i * ALL / SOME];
		assert_string_equal(some.samples[i].path, sample->path);
		assert_int_equal(some.samples[i].label, sample->label);
	}
	expect_scan("wanted", SOME, &control, &again, &effort);
	assert_false(again.scanned_now);
	assert_int_equal(effort.sized, SOME);
	assert_int_equal(effort.headers, 0);
	expect_same(&again, &some);
	arena_close(again.arena);
	/* One that is not wanted changes nothing; one that is does, and so does a new name. */
	put_raw("wanted/c0/00001.ppm", 7000, 1);
	expect_scan("wanted", SOME, &control, &again, &effort);
	assert_false(again.scanned_now);
	expect_same(&again, &some);
	arena_close(again.arena);
	put_raw("wanted/c0/00024.ppm", 7000, 1);
	expect_scan("wanted", SOME, &control, &again, &effort);
	assert_true(again.scanned_now);
	assert_int_equal(again.samples[1].width, 7000);
	arena_close(again.arena);
	put_raw("wanted/c19/zz.ppm", 7000, 1);
	expect_scan("wanted", SOME, &control, &again, &effort);
	assert_true(again.scanned_now);
	arena_close(again.arena);
	assert_int_equal(unlink(fixture_path("wanted/c19/zz.ppm", path)), 0);
	arena_close(all.arena);
	arena_close(some.arena);
}

/* Bad ones are replaced, by as many as it takes; the choice is a function of the folder. */
static void bad_ones_are_replaced(void **state)
{
	(void)state;
	enum { ALL = 600, SOME = 60, BAD_FROM = 100, BAD_TO = 250 };
	const struct dataset_control ways[] = {
		{.depth = 1, .way = DATASET_WAY_THREADS}, {.depth = 64}};
	struct dataset first, second, all;
	struct dataset_effort effort;
	char name[64];
	put_many("replaced", ALL, 3);
	for (int i = BAD_FROM; i < BAD_TO; i++) {
		(void)snprintf(name, sizeof name, "replaced/c%d/%05d.ppm", i * 3 / ALL, i);
		fixture_write(name, "bad", i % 2 ? 3 : 0);
	}
	use_cache("replaced-all");
	expect_scan("replaced", 0, &ways[0], &all, &effort);
	use_cache("replaced-1");
	expect_scan("replaced", SOME, &ways[0], &first, &effort);
	assert_int_equal(first.count, SOME);
	/* Each file that was sized is a sample or bad. */
	assert_int_equal(effort.sized, SOME + first.bad_count);
	assert_true(first.bad_count >= (BAD_TO - BAD_FROM) * SOME / ALL);
	assert_true(first.bad_count < 2 * (BAD_TO - BAD_FROM) * SOME / ALL);
	for (size_t i = 1; i < first.count; i++)
		assert_true(first.samples[i].width > first.samples[i - 1].width);
	use_cache("replaced-2");
	for (int round = 0; round < 2; round++) {
		expect_scan("replaced", SOME, &ways[1], &second, &effort);
		assert_int_equal(second.scanned_now, round == 0);
		expect_same(&first, &second);
		arena_close(second.arena);
	}
	/* The one good one of many, whatever that takes. */
	put_many("rare", ALL, 3);
	for (int i = 0; i < ALL - 1; i++) {
		(void)snprintf(name, sizeof name, "rare/c%d/%05d.ppm", i * 3 / ALL, i);
		fixture_write(name, "bad", 3);
	}
	expect_scan("rare", 1, &ways[1], &second, &effort);
	assert_int_equal(second.count, 1);
	assert_int_equal(effort.sized, 1 + second.bad_count);
	arena_close(second.arena);
	/* More than there are: all that are good, and every file is looked at once. */
	expect_scan("replaced", ALL - 1, &ways[1], &second, &effort);
	assert_int_equal(second.count, ALL - (BAD_TO - BAD_FROM));
	assert_int_equal(effort.sized, ALL);
	expect_same(&second, &all);
	arena_close(second.arena);
	arena_close(first.arena);
	arena_close(all.arena);
}

/* ---- how much is in flight ------------------------------------------------------------------- */

/* A meeting that ends when all are there who may come. */
static struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t change;
	unsigned wanted, inside, most;
	bool over;
} meeting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, false};

static void meet(void)
{
	struct timespec until;
	int late = 0;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += GUARD_SECONDS;
	(void)pthread_mutex_lock(&meeting.lock);
	if (++meeting.inside > meeting.most)
		meeting.most = meeting.inside;
	if (meeting.inside == meeting.wanted)
		meeting.over = true;
	(void)pthread_cond_broadcast(&meeting.change);
	while (!meeting.over && !late)
		late = pthread_cond_timedwait(&meeting.change, &meeting.lock, &until);
	meeting.over = true; /* one hang is enough */
	meeting.inside--;
	(void)pthread_mutex_unlock(&meeting.lock);
}

static void begin_meeting(unsigned wanted)
{
	meeting.wanted = wanted;
	meeting.inside = meeting.most = 0;
	meeting.over = false;
}

static int meeting_statx(int folder, const char *path, int flags, unsigned mask, struct statx *out)
{
	if (*path)
		meet();
	return statx(folder, path, flags, mask, out);
}

static int meeting_openat(int folder, const char *path, int flags, ...)
{
	if ((flags & O_DIRECTORY) && strcmp(path, ".") != 0)
		meet();
	return openat(folder, path, flags);
}

/* Calls that do not come back before all that may be in flight are. */
static void as_many_are_in_flight_as_may_be(void **state)
{
	(void)state;
	static const unsigned depths[] = {1, 3, 64};
	struct storage_calls files = storage_system, folders = storage_system;
	files.statx = meeting_statx;
	folders.openat = meeting_openat;
	use_cache(NULL);
	put_many("flight", 300, 100);
	for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
		const struct dataset_control controls[] = {{.depth = depths[i], .calls = &files},
			{.depth = depths[i], .calls = &folders}};
		for (int k = 0; k < 2; k++) {
			struct dataset dataset;
			struct dataset_effort effort;
			begin_meeting(depths[i]);
			expect_scan("flight", 0, &controls[k], &dataset, &effort);
			assert_int_equal(meeting.most, depths[i]);
			assert_int_equal(effort.folders, 101);
			assert_false(effort.ring);
			arena_close(dataset.arena);
		}
	}
}

static atomic_uint asked_of[20]; /* by class, before all that may be in flight were */

static int counting_statx(int folder, const char *path, int flags, unsigned mask, struct statx *out)
{
	unsigned class;
	(void)pthread_mutex_lock(&meeting.lock);
	if (!meeting.over && sscanf(path, "c%u/", &class) == 1)
		asked_of[class]++;
	(void)pthread_mutex_unlock(&meeting.lock);
	return meeting_statx(folder, path, flags, mask, out);
}

/* A folder that answers one request after another holds up few others. */
static void neighbours_are_not_asked_together(void **state)
{
	(void)state;
	enum { FOLDERS = 20, EACH = 120, DEPTH = 64, MOST = 2 * DEPTH / FOLDERS };
	struct storage_calls calls = storage_system;
	calls.statx = counting_statx;
	const struct dataset_control control = {.depth = DEPTH, .calls = &calls};
	struct dataset dataset;
	struct dataset_effort effort;
	use_cache(NULL);
	put_many("neighbours", FOLDERS * EACH, FOLDERS);
	begin_meeting(DEPTH);
	expect_scan("neighbours", 0, &control, &dataset, &effort);
	assert_int_equal(dataset.count, FOLDERS * EACH);
	unsigned asked = 0;
	for (int i = 0; i < FOLDERS; i++) {
		asked += asked_of[i];
		assert_true(asked_of[i] > 0 && asked_of[i] <= MOST);
	}
	assert_int_equal(asked, DEPTH);
	arena_close(dataset.arena);
}

/* A ring's requests are begun before the first is waited for. */
static void a_ring_is_filled(void **state)
{
	(void)state;
	const struct dataset_control control = {.depth = 64, .threads = 2};
	struct dataset dataset;
	struct dataset_effort effort;
	if (!inspect_ring_works())
		skip();
	use_cache(NULL);
	expect_scan("flight", 0, &control, &dataset, &effort);
	assert_true(effort.ring);
	assert_true(effort.most_in_flight >= 32 && effort.most_in_flight <= 64);
	arena_close(dataset.arena);
}

static bool scan_forbidden(const void *context, char *report, size_t room)
{
	const struct dataset *const wanted = context;
	const struct dataset_control control = {0};
	struct dataset dataset;
	struct dataset_effort effort;
	struct error err = {""};
	const bool scanned = child_forbid(SYS_io_uring_setup, EPERM) &&
			     scan_with("flight", 0, &control, &dataset, &effort, &err) == 0;
	(void)snprintf(report, room, "%s", err.text);
	return scanned && !effort.ring && dataset.count == wanted->count;
}

static bool scan_with_few_files(const void *context, char *report, size_t room)
{
	enum { FILES = 40 };
	const struct dataset *const wanted = context;
	const struct rlimit limit = {FILES, FILES};
	for (int way = 0; way < 2; way++) {
		const struct dataset_control control = {
			.way = way ? DATASET_WAY_THREADS : DATASET_WAY_AUTO};
		struct dataset dataset;
		struct dataset_effort effort;
		struct error err = {""};
		if (setrlimit(RLIMIT_NOFILE, &limit) != 0 ||
			scan_with("flight", 0, &control, &dataset, &effort, &err) ||
			dataset.count != wanted->count || effort.most_in_flight >= FILES) {
			(void)snprintf(report, room, "%s", err.text);
			return false;
		}
	}
	return true;
}

/* io_uring forbidden; few open files. */
static void with_less_it_works_as_well(void **state)
{
	(void)state;
	const struct dataset_control control = {0};
	struct dataset dataset;
	struct dataset_effort effort;
	char report[CHILD_REPORT_BYTES];
	use_cache(NULL);
	expect_scan("flight", 0, &control, &dataset, &effort);
	if (!child_run(scan_forbidden, &dataset, report, sizeof report))
		fail_msg("io_uring forbidden: %s", report);
	if (!child_run(scan_with_few_files, &dataset, report, sizeof report))
		fail_msg("few open files: %s", report);
	arena_close(dataset.arena);
}

/* ---- failures and stops ---------------------------------------------------------------------- */

static _Thread_local int broken_file = -1;

static int broken_openat(int folder, const char *path, int flags, ...)
{
	if (strstr(path, "00013")) {
		errno = EMFILE;
		return -1;
	}
	const int file = openat(folder, path, flags);
	if (strstr(path, "00077"))
		broken_file = file;
	return file;
}

static ssize_t broken_pread(int file, void *to, size_t size, off_t offset)
{
	if (file == broken_file) {
		broken_file = -1;
		errno = EIO;
		return -1;
	}
	/* short, and interrupted now and then */
	static atomic_uint calls;
	if (atomic_fetch_add(&calls, 1) % 3 == 0) {
		errno = EINTR;
		return -1;
	}
	return pread(file, to, size > 7 ? 7 : size, offset);
}

static int broken_statx(int folder, const char *path, int flags, unsigned mask, struct statx *out)
{
	if (strstr(path, "00111")) {
		errno = EIO;
		return -1;
	}
	return statx(folder, path, flags, mask, out);
}

static const char *const broken_names[] = {"00013.ppm", "00077.ppm", "00111.ppm"};

static const char *reason_of(const struct dataset *dataset, const char *name)
{
	for (size_t i = 0; i < dataset->bad_count; i++)
		if (strstr(dataset->bad[i].path, name))
			return dataset->bad[i].reason;
	return "";
}

/* What fails in the middle costs that file alone, this time alone. */
static void errors_in_the_middle(void **state)
{
	(void)state;
	struct storage_calls broken = storage_system;
	broken.openat = broken_openat;
	broken.pread = broken_pread;
	broken.statx = broken_statx;
	const struct dataset_control failing = {.calls = &broken}, whole = {0};
	struct dataset dataset;
	struct dataset_effort effort;
	put_many("broken", 200, 4);
	use_cache("broken-kept");
	expect_scan("broken", 0, &failing, &dataset, &effort);
	assert_int_equal(dataset.count, 197);
	assert_int_equal(dataset.bad_count, 3);
	assert_non_null(strstr(
		reason_of(&dataset, broken_names[0]), "cannot be opened: Too many open files"));
	assert_non_null(
		strstr(reason_of(&dataset, broken_names[1]), "cannot be read: Input/output error"));
	assert_string_equal(
		reason_of(&dataset, broken_names[2]), "its size and type cannot be read");
	arena_close(dataset.arena);
	expect_scan("broken", 0, &whole, &dataset, &effort);
	assert_int_equal(dataset.count, 200);
	assert_int_equal(dataset.bad_count, 0);
	arena_close(dataset.arena);
}

static atomic_uint_fast64_t names_read;
static atomic_bool stop_now;

/* A folder fails after its first names. */
static struct dirent *failing_readdir(DIR *folder)
{
	if (atomic_fetch_add(&names_read, 1) >= 40) {
		errno = EIO;
		return NULL;
	}
	return readdir(folder);
}

/* What was read of a folder that then failed is left out with it. */
static void a_listing_that_breaks_off(void **state)
{
	(void)state;
	const struct storage_calls calls = with_readdir(failing_readdir);
	const struct dataset_control control = {.calls = &calls, .depth = 1};
	struct dataset dataset;
	struct dataset_effort effort;
	struct error err = {""};
	use_cache("breaks-off");
	put_many("breaks", 60, 2);
	atomic_store(&names_read, 0);
	expect_scan("breaks", 0, &control, &dataset, &effort);
	assert_int_equal(dataset.count, 30);
	assert_int_equal(dataset.bad_count, 1);
	assert_string_equal(dataset.bad[0].reason, "the folder cannot be read");
	arena_close(dataset.arena);
	assert_int_equal(scan_with("breaks", 0, &control, &dataset, &effort, &err), -EIO);
	assert_non_null(strstr(err.text, "cannot read the folder"));
	const struct dataset_control whole = {0};
	expect_scan("breaks", 0, &whole, &dataset, &effort);
	assert_int_equal(dataset.count, 60);
	arena_close(dataset.arena);
}

enum { STOP_AT = 10000 };

static struct dirent *endless_readdir(DIR *folder)
{
	static struct dirent entry = {.d_type = DT_REG};
	const uint64_t number = atomic_fetch_add(&names_read, 1);
	(void)folder;
	(void)snprintf(entry.d_name, sizeof entry.d_name, "%08llu.jpg", (unsigned long long)number);
	if (number + 1 == STOP_AT)
		atomic_store(&stop_now, true);
	return &entry;
}

static void an_endless_folder_can_be_stopped(void **state)
{
	(void)state;
	const struct storage_calls calls = with_readdir(endless_readdir);
	const struct dataset_control control = {.calls = &calls, .stop = &stop_now};
	struct dataset dataset;
	struct dataset_effort effort;
	struct error err = {""};
	atomic_store(&names_read, 0);
	atomic_store(&stop_now, false);
	assert_int_equal(scan_with("flight", 0, &control, &dataset, &effort, &err), -EINTR);
	assert_non_null(strstr(err.text, "was listed"));
	assert_int_equal(atomic_load(&names_read), STOP_AT);
}

static atomic_uint files_begun, files_opened, files_closed;

static int stopping_statx(int folder, const char *path, int flags, unsigned mask, struct statx *out)
{
	if (*path && atomic_fetch_add(&files_begun, 1) + 1 == 100)
		atomic_store(&stop_now, true);
	return statx(folder, path, flags, mask, out);
}

static int counting_openat(int folder, const char *path, int flags, ...)
{
	if (!(flags & O_DIRECTORY))
		(void)atomic_fetch_add(&files_opened, 1);
	return openat(folder, path, flags);
}

static int counting_close(int file)
{
	(void)atomic_fetch_add(&files_closed, 1);
	return close(file);
}

/* No request is begun any more but those that close what is open. */
static void a_stop_in_the_middle(void **state)
{
	(void)state;
	static const unsigned depths[] = {1, 64};
	struct storage_calls calls = storage_system;
	calls.statx = stopping_statx;
	calls.openat = counting_openat;
	calls.close = counting_close;
	use_cache("stopped");
	for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
		const struct dataset_control control = {
			.calls = &calls, .depth = depths[i], .stop = &stop_now};
		struct dataset dataset;
		struct dataset_effort effort;
		struct error err = {""};
		atomic_store(&files_begun, 0);
		atomic_store(&files_opened, 0);
		atomic_store(&files_closed, 0);
		atomic_store(&stop_now, false);
		assert_int_equal(scan_with("flight", 0, &control, &dataset, &effort, &err), -EINTR);
		assert_non_null(strstr(err.text, "were looked at"));
		assert_true(atomic_load(&files_begun) < 100 + depths[i]);
		assert_int_equal(atomic_load(&files_opened), atomic_load(&files_closed));
		assert_null(dataset.samples);
	}
}

/* Told with the number of files: they are being looked at. */
static void stop_at_progress(void *context, uint64_t done, uint64_t total, uint64_t bytes)
{
	(void)context;
	(void)done;
	(void)bytes;
	if (total > 0)
		atomic_store(&stop_now, true);
}

static unsigned open_files(void)
{
	unsigned count = 0;
	DIR *const folder = opendir("/proc/self/fd");
	while (readdir(folder))
		count++;
	(void)closedir(folder);
	return count;
}

/* The same through rings, as far as it can be seen from outside: it ends, in words, and nothing
 * stays open. */
static void a_stop_whichever_way(void **state)
{
	(void)state;
	use_cache("stopped");
	for (int way = 0; way < 2; way++)
		for (unsigned depth = 1; depth <= 64; depth += 63) {
			const struct dataset_control control = {
				.way = way ? DATASET_WAY_THREADS : DATASET_WAY_AUTO,
				.depth = depth,
				.progress = stop_at_progress,
				.stop = &stop_now};
			struct dataset dataset;
			struct dataset_effort effort;
			struct error err = {""};
			const unsigned before = open_files();
			atomic_store(&stop_now, false);
			assert_int_equal(
				scan_with("wanted", 0, &control, &dataset, &effort, &err), -EINTR);
			assert_int_equal(open_files(), before);
		}
}

/* ---- a store that is no folder ---------------------------------------------------------------- */

enum { HELD_MOST = 200 };

/* The files of a folder, held in memory. */
struct held_file {
	char *path, *bytes;
	size_t size;
};

struct held_store {
	struct store base;
	struct held_file files[HELD_MOST]; /* by path */
	size_t count;
	bool unkind;               /* listings do not say what a name is */
	bool sizes;                /* they say how large files are as well */
	const char *broken, *gone; /* files that cannot be read, and opened */
	atomic_uint listings, asked, opened, open;
};

static const struct held_file *held_find(const struct held_store *store, const char *path)
{
	for (size_t i = 0; i < store->count; i++)
		if (strcmp(store->files[i].path, path) == 0)
			return &store->files[i];
	return NULL;
}

/* What of a path comes behind a folder; NULL where it lies elsewhere. */
static const char *held_below(const char *path, const char *folder)
{
	const size_t length = strlen(folder);
	if (length == 0)
		return path;
	return strncmp(path, folder, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

static int held_list(struct store *base, const char *folder, const struct store_visit *visit)
{
	struct held_store *const store = (struct held_store *)base;
	const struct store_stat self = {.kind = STORE_FOLDER}; /* it has no inodes */
	char before[FIXTURE_PATH] = "", name[FIXTURE_PATH];
	int code = visit->folder ? visit->folder(visit->context, &self) : 0;
	bool found = false;
	atomic_fetch_add(&store->listings, 1);
	for (size_t i = 0; i < store->count && !code; i++) {
		const char *const below = held_below(store->files[i].path, folder);
		if (!below)
			continue;
		found = true;
		const size_t length = strcspn(below, "/");
		(void)snprintf(name, sizeof name, "%.*s", (int)length, below);
		const struct store_stat what = {
			.kind = STORE_FILE, .bytes = store->files[i].size, .modified_ns = 1};
		if (strcmp(name, before) != 0)
			code = visit->name(visit->context, name,
				store->unkind   ? STORE_UNKNOWN
				: below[length] ? STORE_FOLDER
						: STORE_FILE,
				store->sizes && !below[length] ? &what : NULL);
		(void)snprintf(before, sizeof before, "%s", name);
	}
	return code || found ? code : -ENOENT;
}

static int held_stat(
	struct store *base, const char *path, const union store_file *file, struct store_stat *out)
{
	struct held_store *const store = (struct held_store *)base;
	const struct held_file *const held = held_find(store, path);
	(void)file;
	atomic_fetch_add(&store->asked, 1);
	*out = (struct store_stat){.kind = held ? STORE_FILE : STORE_FOLDER,
		.bytes = held ? held->size : 0,
		.modified_ns = 1};
	for (size_t i = 0; i < store->count && !held; i++)
		if (held_below(store->files[i].path, path))
			return 0;
	return held ? 0 : -ENOENT;
}

static int held_file_open(struct store *base, const char *path, bool direct, union store_file *out)
{
	struct held_store *const store = (struct held_store *)base;
	(void)direct;
	if (store->gone && strcmp(path, store->gone) == 0)
		return -EACCES;
	out->handle = (void *)(uintptr_t)held_find(store, path);
	atomic_fetch_add(&store->open, 1);
	atomic_fetch_add(&store->opened, 1);
	return out->handle ? 0 : -ENOENT;
}

/* Short reads, as of a network. */
static ssize_t held_read(
	struct store *base, union store_file file, uint64_t offset, void *buffer, size_t size)
{
	enum { PACKET = 1500 };
	const struct held_store *const store = (const struct held_store *)base;
	const struct held_file *const held = file.handle;
	if (store->broken && strcmp(held->path, store->broken) == 0)
		return -EIO;
	if (offset >= held->size)
		return 0;
	const size_t left = held->size - (size_t)offset;
	const size_t most = size < PACKET ? size : PACKET;
	const size_t count = left < most ? left : most;
	memcpy(buffer, held->bytes + offset, count);
	return (ssize_t)count;
}

static void held_file_close(struct store *base, union store_file file)
{
	(void)file;
	atomic_fetch_sub(&((struct held_store *)base)->open, 1);
}

static const struct store_ops held_ops = {
	.name = "held",
	.summary = "files in memory",
	.prefix = "held:",
	.size = sizeof(struct held_store),
	.list = held_list,
	.stat = held_stat,
	.file_open = held_file_open,
	.read = held_read,
	.file_close = held_file_close,
};

static int held_by_path(const void *a, const void *b)
{
	return strcmp(((const struct held_file *)a)->path, ((const struct held_file *)b)->path);
}

static void held_take(struct held_store *store, const char *name)
{
	char root[FIXTURE_PATH];
	char *const roots[] = {root, NULL};
	struct error err;
	(void)fixture_path(name, root);
	FTS *const tree = fts_open(roots, FTS_PHYSICAL, NULL);
	assert_non_null(tree);
	for (FTSENT *entry; (entry = fts_read(tree));) {
		if (entry->fts_info != FTS_F)
			continue;
		assert_true(store->count < HELD_MOST);
		struct held_file *const held = &store->files[store->count++];
		held->path = strdup(entry->fts_path + strlen(root) + 1);
		assert_int_equal(
			files_read(entry->fts_path, 1 << 24, &held->bytes, &held->size, &err), 0);
	}
	(void)fts_close(tree);
	qsort(store->files, store->count, sizeof *store->files, held_by_path);
	store->base = (struct store){.ops = &held_ops, .address = "held:set", .root_fd = -1};
}

static void expect_held(struct held_store *store, const struct dataset *folder, uint64_t wanted)
{
	for (int round = 0; round < 2; round++) {
		const struct dataset_control control = {.depth = round ? 1 : 0};
		struct dataset dataset;
		struct error err = {""};
		if (scan_store(&store->base, wanted, &control, &dataset, &err))
			fail_msg("%s", err.text);
		expect_same(folder, &dataset);
		assert_int_equal(store->open, 0);
		arena_close(dataset.arena);
	}
}

/* What a store lists, asks and reads comes to what the folder of the same files comes to. */
static void a_store_that_is_no_folder(void **state)
{
	(void)state;
	static struct held_store store;
	struct dataset folder;
	struct dataset_effort effort;
	const struct dataset_control control = {0};
	use_cache(NULL);
	put_many("held", 60, 4);
	fixture_folder("held/c1/deep/er");
	put_raw("held/c1/deep/er/x.ppm", 5, 7);
	put_raw("held/top.PPM", 3, 3);
	put_long_header("held/c2/long.jpg", 2);
	fixture_write("held/c2/empty.png", NULL, 0);
	fixture_write("held/c2/text.jpg", "no picture", 10);
	fixture_write("held/c3/a.gif", "GIF", 3);
	fixture_write("held/c3/notes.txt", "no", 2);
	held_take(&store, "held");
	expect_scan("held", 0, &control, &folder, &effort);
	assert_int_equal(folder.count, 63);
	assert_int_equal(folder.bad_count, 2);
	expect_held(&store, &folder, 0);
	store.unkind = true;
	expect_held(&store, &folder, 0);
	assert_int_equal(store.listings, 4 * 7);
	/* Nothing is asked of a file that was listed with its size. */
	store.unkind = false;
	store.sizes = true;
	store.asked = 0;
	expect_held(&store, &folder, 0);
	assert_int_equal(store.asked, 0);
	store.sizes = false;
	arena_close(folder.arena);

	expect_scan("held", 7, &control, &folder, &effort);
	store.unkind = false;
	store.opened = 0;
	expect_held(&store, &folder, 7);
	assert_int_equal(store.opened, 2 * effort.headers);
	arena_close(folder.arena);

	/* What cannot be read is told, and does not end the scan. */
	store.broken = "c0/00003.ppm";
	store.gone = "c0/00004.ppm";
	struct dataset dataset;
	struct error err = {""};
	assert_int_equal(scan_store(&store.base, 0, &control, &dataset, &err), 0);
	assert_int_equal(dataset.count, 61);
	assert_non_null(strstr(reason_of(&dataset, "c0/00003.ppm"), "Input/output error"));
	assert_non_null(strstr(reason_of(&dataset, "c0/00004.ppm"), "Permission denied"));
	assert_int_equal(store.open, 0);
	arena_close(dataset.arena);

	atomic_bool stop = true;
	const struct dataset_control stopped = {.stop = &stop};
	assert_int_equal(scan_store(&store.base, 0, &stopped, &dataset, &err), -EINTR);
	for (size_t i = 0; i < store.count; i++) {
		free(store.files[i].path);
		free(store.files[i].bytes);
	}
	store.count = 0;
	assert_int_equal(scan_store(&store.base, 0, &control, &dataset, &err), -ENOENT);
	assert_string_equal(
		err.text, "cannot read the folder 'held:set': No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_are_passed_over_are_counted),
		cmocka_unit_test(files_that_nothing_decodes_are_not_judged),
		cmocka_unit_test(what_is_found_does_not_depend_on_the_way),
		cmocka_unit_test(a_change_among_many_is_seen_wherever_it_is),
		cmocka_unit_test(deeper_than_a_path_may_be),
		cmocka_unit_test(only_what_is_wanted_is_looked_at),
		cmocka_unit_test(bad_ones_are_replaced),
		cmocka_unit_test(as_many_are_in_flight_as_may_be),
		cmocka_unit_test(neighbours_are_not_asked_together),
		cmocka_unit_test(a_ring_is_filled),
		cmocka_unit_test(with_less_it_works_as_well),
		cmocka_unit_test(errors_in_the_middle),
		cmocka_unit_test(a_listing_that_breaks_off),
		cmocka_unit_test(an_endless_folder_can_be_stopped),
		cmocka_unit_test(a_stop_in_the_middle),
		cmocka_unit_test(a_stop_whichever_way),
		cmocka_unit_test(a_store_that_is_no_folder),
	};
	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
