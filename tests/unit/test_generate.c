/* Generating data sets: the same bytes whatever the threads, interruptions and kills; mean size;
 * refusals. */
#include "tests/unit/dataset_fixture.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "workloads/dataset/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { SAMPLES = 120 };

static const char *const small_recipe[] = {"dataset.recipe=photo", "dataset.samples=120",
	"dataset.classes=7", "dataset.width=160", "dataset.height=120", NULL};

static void configure(struct config *config, const char *name, const char *more)
{
	fixture_config(config, name, small_recipe[0], small_recipe[1], small_recipe[2],
		small_recipe[3], small_recipe[4], more, NULL);
}

static int generate_with(const struct config *config, unsigned threads, const atomic_bool *stop,
	struct dataset_generated *out, struct error *err)
{
	const struct dataset_control control = {.threads = threads, .stop = stop};
	*err = (struct error){""};
	return dataset_generate(config, &control, out, err);
}

static void must_generate(
	const struct config *config, unsigned threads, struct dataset_generated *out)
{
	struct error err;
	if (generate_with(config, threads, NULL, out, &err))
		fail_msg("%s", err.text);
}

static void expect_failure(const struct config *config, int code, const char *part)
{
	struct dataset_generated out;
	struct error err;
	const int got = generate_with(config, 2, NULL, &out, &err);
	if (got != code || !strstr(err.text, part))
		fail_msg("%d '%s' instead of %d '%s'", got, err.text, code, part);
}

static uint64_t reference_hash; /* of the manifest of small_recipe */

static uint64_t manifest_hash(const char *name)
{
	char path[FIXTURE_PATH];
	(void)snprintf(path, sizeof(path), "%s/%s", name, MANIFEST_NAME);
	return fixture_hash(path);
}

static bool exists(const char *name, const char *file)
{
	char relative[FIXTURE_PATH], path[FIXTURE_PATH];
	(void)snprintf(relative, sizeof(relative), "%s/%s", name, file);
	return access(fixture_path(relative, path), F_OK) == 0;
}

static void test_same_for_any_threads(void **state)
{
	(void)state;
	static const unsigned threads[] = {1, 2, 4};
	for (size_t i = 0; i < 3; i++) {
		struct config config;
		struct dataset_generated out;
		char name[32];
		(void)snprintf(name, sizeof(name), "threads-%u", threads[i]);
		configure(&config, name, NULL);
		must_generate(&config, threads[i], &out);
		assert_int_equal(out.made, SAMPLES);
		assert_int_equal(out.kept, 0);
		assert_true(out.encode_share > 0 && out.encode_share < 1);
		if (i == 0)
			reference_hash = manifest_hash(name);
		assert_int_equal(
			manifest_hash(name), reference_hash); /* holds every file's checksum */
		assert_false(exists(name, MANIFEST_JOURNAL));
		struct dataset_verified verified;
		struct error err;
		assert_int_equal(dataset_verify(&config, NULL, &verified, &err), 0);
		assert_int_equal(verified.good, SAMPLES);
		assert_int_equal(verified.bad, 0);
		config_release(&config);
	}
}

static void test_opens_as_generated(void **state)
{
	(void)state;
	struct config config;
	struct dataset_generated out;
	struct dataset dataset;
	struct error err = {""};
	configure(&config, "open", NULL);
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -ENODATA);
	assert_non_null(strstr(err.text, "mlbench gen"));
	must_generate(&config, 2, &out);
	if (dataset_open(&config, NULL, &dataset, &err))
		fail_msg("%s", err.text);
	assert_int_equal(dataset.count, SAMPLES);
	assert_int_equal(dataset.class_count, 7);
	assert_true(dataset.generated && !dataset.scanned_now);
	assert_int_equal(dataset.total_bytes, out.bytes);
	assert_string_equal(dataset.samples[10].path, "class_0003/00000010.jpg");
	assert_string_equal(dataset.class_names[6], "class_0006");
	for (size_t i = 0; i < dataset.count; i++) {
		const struct sample *sample = &dataset.samples[i];
		char path[FIXTURE_PATH];
		(void)snprintf(path, sizeof(path), "open/%s", sample->path);
		assert_int_equal(sample->label, i % 7);
		assert_int_equal(fixture_hash(path), sample->checksum);
		assert_true(sample->bytes <= dataset.max_bytes);
		assert_true(sample->width <= image_extents_all(&dataset.extents).width);
	}
	dataset_close(&dataset);
	dataset_close(&dataset);
	must_generate(&config, 2, &out); /* nothing to do */
	assert_int_equal(out.kept, SAMPLES);
	assert_int_equal(out.made, 0);
	config_release(&config);
}

/* The same folder read as a user's: the probe agrees with the manifest. */
static void test_scan_agrees_with_manifest(void **state)
{
	(void)state;
	static const char *const formats[] = {
		"dataset.format=jpeg", "dataset.format=png", "dataset.format=raw"};
	for (size_t f = 0; f < 3; f++) {
		struct config config;
		struct dataset_generated out;
		struct dataset made, scanned;
		struct error err = {""};
		configure(&config, formats[f] + 15, formats[f]);
		must_generate(&config, 2, &out);
		assert_int_equal(dataset_open(&config, NULL, &made, &err), 0);
		fixture_set(&config, "dataset.recipe=none");
		fixture_set(&config, "dataset.samples=0");
		if (dataset_open(&config, NULL, &scanned, &err))
			fail_msg("%s", err.text);
		assert_int_equal(scanned.count, made.count);
		assert_int_equal(scanned.bad_count, 0);
		assert_int_equal(scanned.class_count, made.class_count);
		assert_int_equal(scanned.total_bytes, made.total_bytes);
		for (size_t i = 0; i < scanned.count; i++) {
			const struct sample *sample = &scanned.samples[i];
			const unsigned long id = strtoul(strchr(sample->path, '/') + 1, NULL, 10);
			assert_string_equal(sample->path, made.samples[id].path);
			assert_int_equal(sample->width, made.samples[id].width);
			assert_int_equal(sample->height, made.samples[id].height);
			assert_int_equal(sample->bytes, made.samples[id].bytes);
			assert_int_equal(sample->label, made.samples[id].label);
		}
		dataset_close(&made);
		dataset_close(&scanned);
		config_release(&config);
	}
}

/* Whoever was to interrupt it came too late: nothing of it counts. */
static void begin_again(const char *name)
{
	char path[FIXTURE_PATH];
	assert_int_equal(files_remove_tree(fixture_path(name, path), NULL), 0);
}

/* The files below the class folders of a data set. */
static size_t files_of(const char *name)
{
	char relative[FIXTURE_PATH], path[FIXTURE_PATH];
	(void)snprintf(relative, sizeof(relative), "%s/*/*", name);
	glob_t found;
	const size_t count = glob(fixture_path(relative, path), GLOB_NOSORT, NULL, &found) == 0
				     ? found.gl_pathc
				     : 0;
	globfree(&found);
	return count;
}

/* Stops a generation once it has written that many files more; 0: as soon as it begins to write. */
struct stopper {
	atomic_bool stop, over; /* over: the generation has ended by itself */
	const char *name;
	size_t files;
};

static void *stop_later(void *argument)
{
	struct stopper *stopper = argument;
	const size_t before = files_of(stopper->name);
	while ((!exists(stopper->name, MANIFEST_JOURNAL) ||
		       files_of(stopper->name) < before + stopper->files) &&
		!atomic_load(&stopper->over))
		(void)usleep(1000);
	atomic_store(&stopper->stop, true);
	return NULL;
}

static int generate_and_stop(const struct config *config, const char *name, size_t files,
	struct dataset_generated *out, struct error *err)
{
	struct stopper stopper = {.name = name, .files = files};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, stop_later, &stopper), 0);
	const int code = generate_with(config, 2, &stopper.stop, out, err);
	atomic_store(&stopper.over, true);
	(void)pthread_join(thread, NULL);
	return code;
}

static uint64_t print_seed(const char *what)
{
	const char *given = getenv("MLBENCH_TEST_SEED");
	const uint64_t seed = given ? strtoull(given, NULL, 0) : clock_now_ns();
	print_message("%s: MLBENCH_TEST_SEED=%llu\n", what, (unsigned long long)seed);
	return seed;
}

static void check_like_undisturbed(const char *name, const char *samples)
{
	struct config config;
	struct dataset_generated out;
	char other[64];
	(void)snprintf(other, sizeof(other), "%s-undisturbed", name);
	configure(&config, other, samples);
	must_generate(&config, 2, &out);
	assert_int_equal(manifest_hash(other), manifest_hash(name));
	config_release(&config);
}

static void test_stop_and_resume(void **state)
{
	(void)state;
	enum { STOPS_MAX = 20, TRIES = 50 };
	static const char samples[] = "dataset.samples=1000";
	struct rng rng;
	rng_init(&rng, print_seed("stops"), 0);
	struct config config;
	configure(&config, "stopped", samples);
	int code = -EINTR, stops = 0;
	struct error err;
	struct dataset_generated out;
	uint64_t kept = 0;
	for (int tries = 0; code == -EINTR && stops < STOPS_MAX && tries < TRIES; tries++) {
		code = generate_and_stop(&config, "stopped", 1 + rng_below(&rng, 300), &out, &err);
		assert_true(code == 0 || code == -EINTR);
		if (code == 0 && stops == 0) {
			begin_again("stopped");
			code = -EINTR;
			continue;
		}
		if (out.kept + out.made > 0) {         /* it came past checking what is there */
			assert_true(out.kept >= kept); /* nothing that was stopped is lost */
			kept = out.kept + out.made;
		}
		if (code == -EINTR) {
			struct dataset dataset;
			stops++;
			assert_false(exists("stopped", MANIFEST_NAME));
			assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -ENODATA);
			assert_non_null(strstr(err.text, "incomplete"));
		}
	}
	if (code == -EINTR)
		must_generate(&config, 2, &out);
	print_message(
		"stopped %d times; kept %llu at the end\n", stops, (unsigned long long)out.kept);
	assert_true(stops > 0 && out.kept > 0);
	assert_int_equal(out.made + out.kept, 1000);
	config_release(&config);
	check_like_undisturbed("stopped", samples);
}

static off_t journal_size(const char *name)
{
	char relative[FIXTURE_PATH], path[FIXTURE_PATH];
	struct stat st;
	(void)snprintf(relative, sizeof(relative), "%s/" MANIFEST_JOURNAL, name);
	return stat(fixture_path(relative, path), &st) == 0 ? st.st_size : 0;
}

/* Kills a generating child a while after it has begun to write; false when it finished first. */
static bool generate_and_kill(const struct config *config, const char *name, uint64_t after_ns)
{
	struct dataset_generated out;
	struct error err;
	int status = 0;
	const off_t before = journal_size(name);
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(generate_with(config, 2, NULL, &out, &err) ? 1 : 0);
	while (journal_size(name) <= before && waitpid(child, &status, WNOHANG) == 0)
		(void)usleep(200);
	clock_sleep_until_ns(clock_now_ns() + after_ns);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, &status, 0);
	return WIFSIGNALED(status);
}

static void test_kill_and_resume(void **state)
{
	(void)state;
	enum { KILLS_MAX = 8, SPAN_MS = 300, TRIES = 50 };
	static const char samples[] = "dataset.samples=2000";
	struct rng rng;
	rng_init(&rng, print_seed("kills"), 1);
	struct config config;
	configure(&config, "killed", samples);
	struct error err;
	struct dataset_generated out;
	int kills = 0;
	bool killed = true;
	for (int tries = 0; killed && kills < KILLS_MAX && tries < TRIES; tries++) {
		killed = generate_and_kill(&config, "killed", rng_below(&rng, SPAN_MS * NS_PER_MS));
		/* Whole only if a manifest says so; a kill right after its rename leaves a whole
		 * set. */
		struct dataset dataset;
		const int code = dataset_open(&config, NULL, &dataset, &err);
		assert_true(exists("killed", MANIFEST_NAME) ? code == 0 : code == -ENODATA);
		assert_true(killed || code == 0);
		dataset_close(&dataset);
		kills += killed;
		if (!killed && kills == 0) {
			begin_again("killed");
			killed = true;
		}
	}
	must_generate(&config, 2, &out);
	print_message(
		"killed %d times; kept %llu at the end\n", kills, (unsigned long long)out.kept);
	assert_true(kills > 0 && out.kept > 0);
	struct dataset_verified verified;
	assert_int_equal(dataset_verify(&config, NULL, &verified, &err), 0);
	assert_int_equal(verified.good, 2000);
	config_release(&config);
	check_like_undisturbed("killed", samples);
}

/* A journal whose files are gone, torn or changed is not believed. */
static void test_journal_is_checked(void **state)
{
	(void)state;
	enum { CLAIMS = 50 };
	struct config config;
	struct dataset_generated out;
	char path[FIXTURE_PATH];
	configure(&config, "claims", NULL);
	must_generate(&config, 2, &out);
	/* Turn the finished set back into a journal: same header, entries from the manifest. */
	struct dataset dataset;
	struct error err;
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), 0);
	struct buffer journal = {0};
	char *text;
	size_t size;
	assert_int_equal(files_read(fixture_path("claims/" MANIFEST_NAME, path), 1 << 20, &text,
				 &size, &err),
		0);
	json_t *header = manifest_parse_header(text, strcspn(text, "\n"), MANIFEST_SCHEMA, &err);
	assert_non_null(header);
	(void)json_object_set_new(header, "schema", json_string(MANIFEST_JOURNAL_SCHEMA));
	char *line = json_dumps(header, JSON_COMPACT);
	buffer_format(&journal, "%s\n", line);
	for (uint64_t id = 0; id < CLAIMS; id++) {
		const struct sample *sample = &dataset.samples[id];
		journal_format(&journal, &(struct journal_entry){.id = id,
						 .bytes = sample->bytes,
						 .checksum = sample->checksum,
						 .width = sample->width,
						 .height = sample->height});
	}
	buffer_text(&journal, "[77,123"); /* torn */
	fixture_write("claims/" MANIFEST_JOURNAL, journal.data, journal.size);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(fixture_path("claims/class_0000/00000000.jpg", path)), 0);
	assert_int_equal(truncate(fixture_path("claims/class_0001/00000001.jpg", path), 100), 0);
	fixture_write("claims/class_0002/00000002.jpg", text, (size_t)dataset.samples[2].bytes);
	must_generate(&config, 2, &out);
	assert_int_equal(out.kept, CLAIMS - 3);
	assert_int_equal(manifest_hash("claims"), reference_hash);
	free(line);
	free(text);
	json_decref(header);
	buffer_release(&journal);
	dataset_close(&dataset);
	config_release(&config);
}

static void check_mean(const char *name, const char *const *recipe)
{
	struct config config;
	struct dataset_generated out;
	fixture_config(&config, name, "dataset.recipe=photo", NULL);
	for (; *recipe; recipe++)
		fixture_set(&config, *recipe);
	must_generate(&config, 2, &out);
	const double mean =
		(double)out.bytes / (double)config_integer(&config, KEY_DATASET_SAMPLES);
	const double wanted = (double)config_integer(&config, KEY_DATASET_BYTES);
	print_message(
		"%s: mean %.0f, %+.2f %% of the asked\n", name, mean, 100 * (mean / wanted - 1));
	assert_true(fabs(mean / wanted - 1) < 0.02);
	config_release(&config);
}

static void test_mean_size(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message(
		"takes minutes under ThreadSanitizer and says nothing on threads: not tried\n");
	skip();
#endif
	check_mean("imagenet",
		(const char *const[]){"dataset.samples=300", "dataset.bytes=110KB", NULL});
	check_mean("other-seed", (const char *const[]){"dataset.samples=600", "dataset.bytes=20KB",
					 "dataset.width=250", "dataset.height=188",
					 "dataset.seed=77", "dataset.size_sigma=0.3", NULL});
	check_mean("few", (const char *const[]){"dataset.samples=20", "dataset.bytes=60KB", NULL});
	check_mean("flat", (const char *const[]){"dataset.samples=350", "dataset.bytes=8KB", NULL});
	check_mean("natural",
		(const char *const[]){"dataset.samples=750", "dataset.bytes=45KB", NULL});
	check_mean(
		"medical", (const char *const[]){"dataset.samples=300", "dataset.bytes=20KB",
				   "dataset.width=200", "dataset.height=200", "dataset.format=png",
				   "dataset.png_color=gray", "dataset.png_level=1", NULL});
}

static void test_unreachable_size(void **state)
{
	(void)state;
	struct config config;
	configure(&config, "huge", "dataset.bytes=10MB");
	expect_failure(&config, -EINVAL, "cannot be met");
	fixture_set(&config, "dataset.bytes=20");
	expect_failure(&config, -EINVAL, "cannot be met");
	fixture_set(&config, "dataset.format=raw");
	expect_failure(&config, -EINVAL, "raw files");
	fixture_set(&config, "dataset.samples=0");
	expect_failure(&config, -EINVAL, "dataset.samples is 0");
	fixture_set(&config, "dataset.recipe=none");
	expect_failure(&config, -EINVAL, "nothing to generate");
	config_release(&config);
}

static void test_verify_finds(void **state)
{
	(void)state;
	struct config config;
	struct dataset_generated out;
	struct dataset_verified verified;
	struct error err;
	char path[FIXTURE_PATH], *data;
	size_t size;
	configure(&config, "verify", NULL);
	must_generate(&config, 2, &out);
	assert_int_equal(unlink(fixture_path("verify/class_0000/00000000.jpg", path)), 0);
	assert_int_equal(truncate(fixture_path("verify/class_0001/00000001.jpg", path), 1000), 0);
	assert_int_equal(files_read(fixture_path("verify/class_0002/00000002.jpg", path), 1 << 20,
				 &data, &size, &err),
		0);
	data[size / 2] = (char)(data[size / 2] ^ 4);
	fixture_write("verify/class_0002/00000002.jpg", data, size);
	free(data);
	assert_int_equal(files_read(fixture_path("verify/class_0003/00000003.jpg", path), 1 << 20,
				 &data, &size, &err),
		0);
	fixture_write(
		"verify/class_0003/00000003.jpg", data, size + 1); /* its NUL: one byte longer */
	assert_int_equal(dataset_verify(&config, NULL, &verified, &err), 0);
	assert_int_equal(verified.bad, 4);
	assert_int_equal(verified.good, SAMPLES - 4);
	/* Opening notices a file that is gone, and generating mends what differs in size. */
	struct dataset dataset;
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -ENODATA);
	must_generate(&config, 2, &out);
	assert_int_equal(out.made, 3);
	assert_int_equal(dataset_verify(&config, NULL, &verified, &err), 0);
	assert_int_equal(verified.bad, 1); /* the flipped byte: only checksums see it */
	assert_int_equal(manifest_hash("verify"), reference_hash);
	free(data);
	config_release(&config);
}

static void test_other_recipe_is_stale(void **state)
{
	(void)state;
	struct config config;
	struct dataset_generated out;
	struct dataset dataset;
	struct error err;
	configure(&config, "stale", NULL);
	must_generate(&config, 2, &out);
	fixture_set(&config, "dataset.quality=75");
	expect_failure(&config, -EDOM, "dataset.quality is 90 there and 75 here");
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -EDOM);
	fixture_set(&config, "dataset.format=png");
	expect_failure(&config, -EDOM, "dataset.format is \"jpeg\" there and \"png\" here");
	assert_int_equal(manifest_hash("stale"), reference_hash); /* untouched */
	config_release(&config);
}

/* A partial set of another recipe is as stale as a whole one. */
static void test_other_journal_is_stale(void **state)
{
	(void)state;
	struct config config;
	struct dataset_generated out;
	struct dataset dataset;
	struct error err;
	configure(&config, "partial", "dataset.samples=3000");
	assert_int_equal(generate_and_stop(&config, "partial", 0, &out, &err), -EINTR);
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -ENODATA);
	assert_non_null(strstr(err.text, "incomplete"));
	fixture_set(&config, "dataset.seed=5");
	expect_failure(&config, -EDOM, "dataset.seed is 1 there and 5 here");
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -EDOM);
	config_release(&config);
}

static void test_foreign_folder_is_refused(void **state)
{
	(void)state;
	struct config config;
	fixture_folder("mine/cats");
	fixture_write("mine/cats/tom.jpg", "x", 1);
	configure(&config, "mine", NULL);
	expect_failure(&config, -ENOTEMPTY, "'cats'");
	struct dataset dataset;
	struct error err;
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -ENOTEMPTY);
	assert_non_null(strstr(err.text, "dataset.recipe=none"));
	assert_int_equal(fixture_hash("mine/cats/tom.jpg"), hash_bytes("x", 1, 0));
	assert_false(exists("mine", MANIFEST_JOURNAL));
	config_release(&config);
	fixture_write("plain-file", "x", 1);
	configure(&config, "plain-file", NULL);
	expect_failure(&config, -ENOTDIR, "not a folder");
	config_release(&config);
	configure(&config, "plain-file/below", NULL);
	expect_failure(&config, -ENOTDIR, "not a folder");
	config_release(&config);
	fixture_folder("empty"); /* an empty one is fine */
	struct dataset_generated out;
	configure(&config, "empty", NULL);
	must_generate(&config, 1, &out);
	config_release(&config);
}

static void test_two_at_once(void **state)
{
	(void)state;
	struct config config;
	char path[FIXTURE_PATH];
	fixture_folder("busy");
	configure(&config, "busy", NULL);
	const int lock = open(fixture_path("busy", path), O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	expect_failure(&config, -EBUSY, "another mlbench");
	(void)close(lock);
	struct dataset_generated out;
	must_generate(&config, 1, &out);
	config_release(&config);
}

static void test_damaged_manifest(void **state)
{
	(void)state;
	struct config config;
	struct dataset dataset;
	struct error err;
	char path[FIXTURE_PATH];
	struct dataset_generated out;
	struct stat st;
	configure(&config, "damaged", NULL);
	must_generate(&config, 1, &out);
	assert_int_equal(stat(fixture_path("damaged/" MANIFEST_NAME, path), &st), 0);
	for (off_t cut = 0; cut < st.st_size; cut += st.st_size / 13 + 1) {
		char *text;
		size_t size;
		assert_int_equal(files_read(path, 1 << 20, &text, &size, &err), 0);
		assert_int_equal(truncate(path, cut), 0);
		assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -ENODATA);
		expect_failure(&config, -EBADMSG, "damaged");
		fixture_write("damaged/" MANIFEST_NAME, text, size);
		free(text);
	}
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), 0);
	dataset_close(&dataset);
	config_release(&config);
}

/* A set of an earlier version, whose manifest has lines, is as complete as it was. */
static void test_manifest_of_lines(void **state)
{
	(void)state;
	struct config config;
	struct dataset dataset;
	struct dataset_generated out;
	struct dataset_verified verified;
	struct error err;
	struct buffer lines = {0}, file = {0};
	char path[FIXTURE_PATH], hex[17];
	json_t *header;
	configure(&config, "lines", NULL);
	must_generate(&config, 1, &out);
	dataset = (struct dataset){0};
	assert_int_equal(
		manifest_read(fixture_path("lines/" MANIFEST_NAME, path), &dataset, &header, &err),
		0);
	for (size_t i = 0; i < dataset.count; i++) {
		const struct sample *sample = &dataset.samples[i];
		buffer_format(&lines, "[\"%s\",%llu,%u,%u,%u,\"%016llx\"]\n", sample->path,
			(unsigned long long)sample->bytes, sample->width, sample->height,
			sample->label, (unsigned long long)sample->checksum);
	}
	(void)snprintf(hex, sizeof hex, "%016llx",
		(unsigned long long)hash_bytes(lines.data, lines.size, 0));
	(void)json_object_set_new(header, "schema", json_string(MANIFEST_SCHEMA_LINES));
	(void)json_object_set_new(header, "body", json_string(hex));
	(void)json_object_del(header, "text");
	char *first = json_dumps(header, JSON_COMPACT);
	buffer_format(&file, "%s\n", first);
	buffer_add(&file, lines.data, lines.size);
	fixture_write("lines/" MANIFEST_NAME, file.data, file.size);
	arena_close(dataset.arena);
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), 0);
	assert_int_equal(dataset.count, SAMPLES);
	dataset_close(&dataset);
	assert_int_equal(dataset_verify(&config, NULL, &verified, &err), 0);
	assert_int_equal(verified.good, SAMPLES);
	must_generate(&config, 1, &out);
	assert_int_equal(out.made, 0);
	assert_int_equal(out.kept, SAMPLES);
	free(first);
	json_decref(header);
	buffer_release(&lines);
	buffer_release(&file);
	config_release(&config);
}

/* In a child: RLIMIT_FSIZE makes every write of a larger file fail. */
static void test_write_error(void **state)
{
	(void)state;
	struct config config;
	configure(&config, "limited", NULL);
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct dataset_generated out;
		struct error err;
		const struct rlimit limit = {1024, 1024};
		(void)signal(SIGXFSZ, SIG_IGN);
		(void)setrlimit(RLIMIT_FSIZE, &limit);
		const int code = generate_with(&config, 2, NULL, &out, &err);
		_exit(code == -EFBIG && strstr(err.text, "cannot write") ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_false(exists("limited", MANIFEST_NAME));
	struct dataset_generated out;
	must_generate(&config, 2, &out); /* what failed is made now */
	assert_int_equal(manifest_hash("limited"), reference_hash);
	config_release(&config);
}

static bool mount_small(const char *name, const char *size, char path[FIXTURE_PATH])
{
	fixture_folder(name);
	return mount("tmpfs", fixture_path(name, path), "tmpfs", 0, size) == 0;
}

static void test_disk_full(void **state)
{
	(void)state;
	struct config config;
	struct dataset_generated out;
	struct error err;
	char path[FIXTURE_PATH], class[FIXTURE_PATH];
	if (!mount_small("full", "size=1m", path)) {
		print_message(
			"cannot mount a tmpfs (%s): a full disk is not tried\n", strerror(errno));
		skip();
	}
	/* Known beforehand. */
	configure(&config, "full/set", NULL);
	const int before = generate_with(&config, 2, NULL, &out, &err);
	print_message("%s\n", err.text);
	assert_int_equal(before, -ENOSPC);
	assert_non_null(strstr(err.text, "are needed"));
	(void)umount(path);
	/* Known only on the way: one that was begun goes on with a class on a smaller file system than the one that is asked. */
	struct rlimit unlimited;
	assert_true(mount_small("full", "size=6m", path));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, unlimited.rlim_max});
	const int begun = generate_with(&config, 2, NULL, &out, &err);
	(void)setrlimit(RLIMIT_FSIZE, &unlimited);
	assert_int_equal(begun, -EFBIG);
	assert_true(mount_small("full/set/class_0003", "size=64k", class));
	const int code = generate_with(&config, 2, NULL, &out, &err);
	print_message("%s\n", err.text);
	const bool ended = exists("full/set", MANIFEST_NAME);
	(void)umount(class);
	(void)umount(path);
	assert_int_equal(code, -ENOSPC);
	assert_false(ended);
	assert_non_null(strstr(err.text, "class_0003"));
	config_release(&config);
}

static void test_no_permission(void **state)
{
	(void)state;
	struct config config;
	char path[FIXTURE_PATH];
	if (geteuid() == 0) {
		/* Root may write anywhere but on a read-only file system. */
		if (!mount_small("locked", "size=1m", path) ||
			mount(NULL, path, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0) {
			print_message(
				"root, and no read-only mount possible: permissions are not tried\n");
			skip();
		}
		configure(&config, "locked/set", NULL);
		expect_failure(&config, -EROFS, "cannot create");
		(void)umount(path);
	} else {
		fixture_folder("locked");
		assert_int_equal(chmod(fixture_path("locked", path), 0500), 0);
		configure(&config, "locked/set", NULL);
		expect_failure(&config, -EACCES, "cannot create");
	}
	config_release(&config);
}

struct seen {
	pthread_t caller;
	int calls;
	uint64_t last, total;
	bool monotonic;
};

static void watch(void *context, uint64_t done, uint64_t total, uint64_t bytes)
{
	struct seen *seen = context;
	assert_true(pthread_equal(seen->caller, pthread_self()));
	seen->monotonic =
		seen->monotonic && done >= seen->last && done <= total && (bytes > 0) == (done > 0);
	seen->last = done;
	seen->total = total;
	seen->calls++;
}

static void test_progress(void **state)
{
	(void)state;
	struct config config;
	struct dataset_generated out;
	struct error err;
	struct seen seen = {.caller = pthread_self(), .monotonic = true};
	const struct dataset_control control = {.progress = watch, .context = &seen, .threads = 3};
	configure(&config, "progress", "dataset.samples=900");
	assert_int_equal(dataset_generate(&config, &control, &out, &err), 0);
	assert_true(seen.calls >= 1 && seen.monotonic);
	assert_int_equal(seen.last, 900);
	assert_int_equal(seen.total, 900);
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_for_any_threads),
		cmocka_unit_test(test_opens_as_generated),
		cmocka_unit_test(test_scan_agrees_with_manifest),
		cmocka_unit_test(test_stop_and_resume),
		cmocka_unit_test(test_kill_and_resume),
		cmocka_unit_test(test_journal_is_checked),
		cmocka_unit_test(test_mean_size),
		cmocka_unit_test(test_unreachable_size),
		cmocka_unit_test(test_verify_finds),
		cmocka_unit_test(test_other_recipe_is_stale),
		cmocka_unit_test(test_other_journal_is_stale),
		cmocka_unit_test(test_foreign_folder_is_refused),
		cmocka_unit_test(test_two_at_once),
		cmocka_unit_test(test_damaged_manifest),
		cmocka_unit_test(test_manifest_of_lines),
		cmocka_unit_test(test_write_error),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_no_permission),
		cmocka_unit_test(test_progress),
	};
	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
