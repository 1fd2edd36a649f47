/* What is found in folders: known mixtures, hostile entries, trees too large to be listed, lists of files. */
#include "tests/unit/dataset_fixture.h"
#include "tests/unit/jpeg_fixture.h"

#include "harness/fit/from_folder.h"

#include <errno.h>
#include <math.h>
#include <sys/sysmacros.h>

/* No clock ends anything, so that what is found is the same on any machine. */
static const struct folder_bounds patient = {
	.seed = 1,
	.entries = 1 << 20,
	.drawn_entries = 1 << 20,
	.folders = 64,
	.files = 4096,
	.list_ns = UINT64_MAX / 4,
	.draw_ns = UINT64_MAX / 4,
	.open_ns = UINT64_MAX / 4,
};

static struct findings findings;
static struct folder_seen seen;
static struct error err;

static int look(const char *name, const struct folder_bounds *bounds)
{
	char path[FIXTURE_PATH];
	findings_open(&findings);
	err.text[0] = '\0';
	return folder_look(&findings, fixture_path(name, path), bounds, &seen, &err);
}

static void look_well(const char *name, const struct folder_bounds *bounds)
{
	if (look(name, bounds))
		fail_msg("%s: %s", name, err.text);
}

static double value(enum finding_id id)
{
	return findings.known[id].value;
}

static void make_folder(const char *name)
{
	char path[FIXTURE_PATH];
	assert_int_equal(files_make_folder(fixture_path(name, path), &err), 0);
}

static const struct jpeg_recipe plain = {
	.width = 64,
	.height = 48,
	.in = JCS_RGB,
	.stored = JCS_YCbCr,
	.horizontal = 2,
	.vertical = 2,
	.quality = 85,
};

/* A picture of the recipe at fixture_root/name; its size. */
static size_t put_jpeg(const char *name, const struct jpeg_recipe *recipe)
{
	struct rng rng;
	rng_init(&rng, 7, 0);
	const struct test_file file = jpeg_fixture(&rng, recipe);
	fixture_write(name, file.bytes, file.size);
	free(file.bytes);
	return file.size;
}

/* `front` bytes of application data in segments behind the first two bytes. */
static size_t put_jpeg_with_front(const char *name, size_t front)
{
	enum { SEGMENT = 60000, HEAD = 4 };
	struct rng rng;
	rng_init(&rng, 7, 0);
	const struct test_file file = jpeg_fixture(&rng, &plain);
	uint8_t *const bytes = calloc(1, file.size + front + front / SEGMENT * HEAD + HEAD);
	assert_non_null(bytes);
	size_t size = 2;
	memcpy(bytes, file.bytes, 2);
	while (front > 0) {
		const size_t part = front < SEGMENT ? front : SEGMENT;
		const uint8_t head[HEAD] = {
			0xff, 0xe1, (uint8_t)((part + 2) >> 8), (uint8_t)((part + 2) & 255)};
		memcpy(bytes + size, head, HEAD);
		size += HEAD + part;
		front -= part;
	}
	memcpy(bytes + size, file.bytes + 2, file.size - 2);
	size += file.size - 2;
	fixture_write(name, bytes, size);
	free(bytes);
	free(file.bytes);
	return size;
}

static const struct like_stratum *stratum_of(const char *format, const char *layout)
{
	for (size_t i = 0; i < findings.like_count; i++)
		if (strcmp(findings.like[i].format, format) == 0 &&
			strcmp(findings.like[i].subsampling, layout) == 0)
			return &findings.like[i];
	fail_msg("no %s %s", format, layout);
	return findings.like; /* fail_msg does not return; the compiler does not know */
}

/* ---- what is in headers ---------------------------------------------------------------------- */

static void a_known_mixture_is_found_exactly(void **state)
{
	enum { SMALL = 60, WIDE = 30, LONG = 9, ALL = SMALL + WIDE + LONG };
	struct jpeg_recipe wide = plain;
	double bytes = 0, small = 0, wides = 0, longs = 0;
	char name[64];
	(void)state;
	wide.width = 120;
	wide.height = 40;
	wide.horizontal = wide.vertical = 1;
	wide.is_progressive = true;
	wide.quality = 92;
	make_folder("mix/a/b");
	for (int i = 0; i < SMALL; i++) {
		(void)snprintf(name, sizeof name, "mix/a/%d.jpg", i);
		small += (double)put_jpeg(name, &plain);
	}
	for (int i = 0; i < WIDE; i++) { /* of any name */
		(void)snprintf(name, sizeof name, "mix/a/b/%d", i);
		wides += (double)put_jpeg(name, &wide);
	}
	wide.stored = JCS_GRAYSCALE;
	wide.is_progressive = false;
	for (int i = 0; i < LONG; i++) {
		(void)snprintf(name, sizeof name, "mix/%d.JPEG", i);
		longs += (double)put_jpeg(name, &wide);
	}
	fixture_write("mix/notes.txt", "words", 5);
	fixture_write("mix/mlbench-manifest.jsonl", "ours", 4);
	bytes = small + wides + longs;
	look_well("mix", &patient);
	assert_float_equal(value(FINDING_FILES), ALL, 0);
	assert_float_equal(findings.known[FINDING_FILES].low, ALL, 0);
	assert_float_equal(findings.known[FINDING_FILES].high, ALL, 0);
	assert_int_equal(findings.known[FINDING_FILES].how, FINDING_MEASURED);
	assert_float_equal(value(FINDING_FILE_BYTES), (float)(bytes / ALL), 0.01F);
	assert_float_equal(value(FINDING_FILES_OPENED), ALL, 0);
	assert_float_equal(value(FINDING_FILES_UNKNOWN), 1.0F / (ALL + 1), 1e-6F);
	assert_int_equal(findings.like_count, 3);
	const struct like_stratum *const s = stratum_of("jpeg", "420");
	assert_int_equal(s->width, 64);
	assert_int_equal(s->height, 48);
	assert_int_equal(s->quality, 85);
	assert_false(s->progressive);
	assert_float_equal(s->share, (float)SMALL / ALL, 1e-6F);
	assert_float_equal(s->bytes, (float)(small / SMALL), 0.01F);
	assert_float_equal(s->edge_sigma, 0, 0);
	const struct like_stratum *const w = stratum_of("jpeg", "444");
	assert_true(w->progressive);
	assert_int_equal(w->width, 120);
	assert_int_equal(w->height, 40);
	assert_int_equal(w->quality, 92);
	assert_float_equal(w->bytes, (float)(wides / WIDE), 0.01F);
	assert_false(stratum_of("jpeg", "gray")->progressive);
	/* The text of it is what a configuration takes. */
	struct buffer text = {0};
	struct like_stratum again[LIKE_STRATA_MAX];
	size_t count;
	assert_float_equal(like_write(findings.like, findings.like_count, &text), 0, 0);
	assert_int_equal(like_parse(text.data, again, &count, &err), 0);
	assert_int_equal(count, 3);
	buffer_release(&text);
}

/* Sampling factors, scans and qualities of every kind are told as they were written. */
static void headers_say_how_they_were_encoded(void **state)
{
	static const struct {
		int horizontal, vertical;
		const char *layout;
	} ways[] = {{2, 2, "420"}, {2, 1, "422"}, {1, 1, "444"}, {1, 2, "440"}, {4, 1, "411"},
		{4, 2, "410"}};
	(void)state;
	for (int i = 0; i < 48; i++) {
		struct rng rng;
		struct image_info info;
		struct jpeg_recipe recipe = plain;
		rng_init(&rng, 3, (uint64_t)i);
		recipe.horizontal = ways[i % 6].horizontal;
		recipe.vertical = ways[i % 6].vertical;
		recipe.is_progressive = i % 2;
		recipe.is_arithmetic = i % 4 >= 2;
		recipe.quality = 2 * i + 6;
		const struct test_file file = jpeg_fixture(&rng, &recipe);
		assert_int_equal(image_read_info(file.bytes, file.size, &info, &err), 0);
		assert_string_equal(info.layout, ways[i % 6].layout);
		assert_int_equal(info.progressive, recipe.is_progressive);
		assert_int_equal(image_quality(info.quantisation), recipe.quality);
		free(file.bytes);
	}
	assert_int_equal(image_quality(0), 0);
}

static void long_headers_are_read_to_a_limit(void **state)
{
	(void)state;
	make_folder("front");
	const size_t some = put_jpeg_with_front("front/exif.jpg", 100000);
	const size_t much = put_jpeg_with_front("front/profile.jpg", 3 << 20);
	(void)put_jpeg_with_front("front/vandal.jpg", 5 << 20);
	look_well("front", &patient);
	assert_float_equal(value(FINDING_FILES), 2, 0);
	assert_float_equal(value(FINDING_FILE_BYTES), (float)(some + much) / 2, 0.51F);
	assert_in_range(findings.like[0].header, 100000 / 2, (3 << 20) / 2 + 60000);
}

/* ---- hostile entries -------------------------------------------------------------------------- */

static void put_special(const char *name, mode_t kind)
{
	char path[FIXTURE_PATH];
	(void)fixture_path(name, path);
	if (mknod(path, kind | 0644, makedev(5, 0)) != 0 && kind == S_IFIFO)
		fail_msg("no pipe: %s", strerror(errno));
}

static void put_link(const char *to, const char *name)
{
	char path[FIXTURE_PATH];
	assert_int_equal(symlink(to, fixture_path(name, path)), 0);
}

static void hostile_entries_do_no_harm(void **state)
{
	(void)state;
	make_folder("bad/sub/deep");
	const size_t size = put_jpeg("bad/sub/good.jpg", &plain);
	(void)put_jpeg("bad/sub/\x1b]0;owned\a\n.jpg", &plain);
	fixture_write("bad/empty.jpg", "", 0);
	fixture_write("bad/torn.jpg", "\xff\xd8\xff\xe1\xff", 5);
	fixture_write(
		"bad/lies.png", "\x89PNG\r\n\x1a\n and no more of it, but words, and words", 48);
	put_special("bad/pipe.jpg", S_IFIFO);
	put_special("bad/tty.jpg", S_IFCHR);
	put_link("../nowhere.jpg", "bad/sub/dead.jpg");
	put_link("self.jpg", "bad/self.jpg");
	put_link("..", "bad/sub/deep/up");
	put_link("../../../bad", "bad/sub/deep/round");
	put_link("good.jpg", "bad/sub/link.jpg");
	look_well("bad", &patient);
	assert_float_equal(value(FINDING_FILES), 3, 0); /* good, the escaping one, and the link */
	assert_float_equal(value(FINDING_FILE_BYTES), (float)size, 0.01F);
	assert_float_equal(value(FINDING_FILES_UNKNOWN), 3.0F / 6, 1e-6F);
	assert_float_equal(seen.empty, 1.0F / 6, 1e-6F);
	assert_int_equal(seen.dead_links, 2);
	assert_int_equal(seen.loops, 2);
	assert_in_range(seen.others, 1, 2);
	assert_int_equal(seen.opened, 6);
	assert_int_equal(seen.folders_unread, 0);
}

/* Two links in each of many folders to the next: more paths than could ever be followed. */
static void paths_that_multiply_come_to_an_end(void **state)
{
	char name[64], to[64];
	struct folder_bounds bounds = patient;
	(void)state;
	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof name, "many/%d", i);
		make_folder(name);
		(void)snprintf(to, sizeof to, "../%d", i + 1);
		(void)snprintf(name, sizeof name, "many/%d/a", i);
		put_link(to, name);
		(void)snprintf(name, sizeof name, "many/%d/b", i);
		put_link(to, name);
	}
	make_folder("many/40");
	(void)put_jpeg("many/40/0.jpg", &plain);
	bounds.entries = bounds.drawn_entries = 20000;
	look_well("many", &bounds);
	assert_true(seen.drawn);
	assert_in_range(seen.entries, 40, 20001);
}

/* Root may read everything: nobody looks. */
static void what_may_not_be_read_is_counted(void **state)
{
	enum { NOBODY = 65534 };
	char path[FIXTURE_PATH];
	(void)state;
	make_folder("shut/closed");
	(void)put_jpeg("shut/open.jpg", &plain);
	(void)put_jpeg("shut/closed/in.jpg", &plain);
	(void)put_jpeg("shut/no.jpg", &plain);
	assert_int_equal(chmod(fixture_root, 0755), 0);
	assert_int_equal(chmod(fixture_path("shut/no.jpg", path), 0), 0);
	assert_int_equal(chmod(fixture_path("shut/closed", path), 0), 0);
	const bool root = geteuid() == 0;
	if (root && seteuid(NOBODY) != 0)
		skip();
	const int code = look("shut", &patient);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(code, 0);
	assert_float_equal(value(FINDING_FILES), 1, 0);
	assert_float_equal(value(FINDING_FILES_UNREAD), 0.5F, 1e-6F);
	assert_int_equal(seen.folders_unread, 1);
}

static void what_is_no_data_set_is_refused(void **state)
{
	char path[FIXTURE_PATH];
	(void)state;
	make_folder("none/empty");
	fixture_write("none/trace.json", "{\"traceEvents\": [\n", 18);
	fixture_write("none/steps.csv", "step,time\n1,0.5\n", 16);
	fixture_write("none/binary", "\0\1\2\3\0\0\0", 7);
	fixture_write("none/nothing", "", 0);
	put_special("none/pipe", S_IFIFO);
	assert_int_equal(look("none/empty", &patient), -ENODATA);
	assert_int_equal(look("none", &patient), -ENODATA);
	assert_non_null(strstr(err.text, "is a picture"));
	assert_int_equal(look("none/missing", &patient), -ENOENT);
	assert_int_equal(look("none/trace.json", &patient), -ENOMSG);
	assert_int_equal(look("none/steps.csv", &patient), -ENOMSG);
	assert_int_equal(look("none/binary", &patient), -ENOMSG);
	assert_int_equal(look("none/nothing", &patient), -ENOMSG);
	assert_int_equal(look("none/pipe", &patient), -ENOMSG);
	assert_int_equal(unlink(fixture_path("none/pipe", path)), 0);
}

/* Texts are samples, and a large array holds many. */
static void files_that_are_no_pictures_are_told_by_their_names(void **state)
{
	enum { ARRAY = 1 << 20 };
	(void)state;
	make_folder("texts");
	fixture_write("texts/a.txt", "one", 3);
	fixture_write("texts/b.txt", "seven b", 7);
	fixture_write("texts/log.xyz", "x", 1);
	assert_int_equal(look("texts", &patient), 0);
	assert_int_equal(findings.data, DATA_SAMPLES);
	assert_float_equal(value(FINDING_FILES), 2, 0);
	assert_float_equal(value(FINDING_FILE_BYTES), 5, 0);
	make_folder("arrays");
	char *const zeros = calloc(1, ARRAY);
	assert_non_null(zeros);
	fixture_write("arrays/train.bin", zeros, ARRAY);
	free(zeros);
	assert_int_equal(look("arrays", &patient), 0);
	assert_int_equal(findings.data, DATA_ARRAYS);
	assert_int_equal(findings.known[FINDING_FILES].how, FINDING_UNKNOWN);
}

/* ---- samples ----------------------------------------------------------------------------------- */

/* Folders of uneven size and depth: folder i has i files, and every third lies below the one before. */
enum { UNEVEN = 30, UNEVEN_FILES = UNEVEN * (UNEVEN - 1) / 2 };

static void make_uneven(void)
{
	char name[256], file[300], first[FIXTURE_PATH], other[FIXTURE_PATH];
	struct jpeg_recipe sizes[4];
	make_folder("uneven");
	make_folder("kept");
	for (int i = 0; i < 4; i++) {
		sizes[i] = plain;
		sizes[i].width = 40 + 60 * (unsigned)i;
		(void)snprintf(name, sizeof name, "kept/%d", i);
		(void)put_jpeg(name, &sizes[i]);
	}
	for (int i = 0; i < UNEVEN; i++) {
		if (i % 3 == 0)
			(void)snprintf(name, sizeof name, "uneven/%02d", i);
		else
			(void)snprintf(name + strlen(name), sizeof name - strlen(name), "/%02d", i);
		make_folder(name);
		for (int k = 0; k < i; k++) {
			(void)snprintf(file, sizeof file, "kept/%d", (i + k * k) % 4);
			(void)fixture_path(file, first);
			(void)snprintf(file, sizeof file, "%s/%d.jpg", name, k);
			assert_int_equal(link(first, fixture_path(file, other)), 0);
		}
	}
}

/* Over many draws the estimates come to the truth in the mean, and their intervals hold it about as often as they say. */
static void estimates_are_without_bias(void **state)
{
	enum { DRAWS = 120 };
	struct folder_bounds bounds = patient;
	double files = 0, squares = 0, bytes = 0, truth_bytes;
	int held = 0, bytes_held = 0;
	(void)state;
	make_uneven();
	look_well("uneven", &patient);
	assert_float_equal(value(FINDING_FILES), UNEVEN_FILES, 0);
	assert_false(seen.drawn);
	truth_bytes = value(FINDING_FILE_BYTES);
	bounds.entries = 20;
	bounds.folders = 3;
	for (int i = 0; i < DRAWS; i++) {
		bounds.seed = (uint64_t)i;
		look_well("uneven", &bounds);
		assert_true(seen.drawn);
		assert_int_equal(findings.known[FINDING_FILES].how, FINDING_DERIVED);
		files += seen.files / DRAWS;
		squares += seen.files * seen.files / DRAWS;
		held += seen.files_low <= UNEVEN_FILES && UNEVEN_FILES <= seen.files_high;
		bytes += value(FINDING_FILE_BYTES) / DRAWS;
		bytes_held += findings.known[FINDING_FILE_BYTES].low <= truth_bytes &&
			      truth_bytes <= findings.known[FINDING_FILE_BYTES].high;
	}
	const double error = sqrt((squares - files * files) / DRAWS);
	assert_true(error > 0 && error < UNEVEN_FILES / 20.0);
	assert_true(fabs(files - UNEVEN_FILES) < 4 * error);
	assert_true(fabs(bytes / truth_bytes - 1) < 0.01);
	assert_in_range(held, DRAWS * 85 / 100, DRAWS);
	assert_in_range(bytes_held, DRAWS * 85 / 100, DRAWS);
}

/* So do samples of a tree that was listed. */
static void a_sample_stands_for_all(void **state)
{
	enum { DRAWS = 120 };
	struct folder_bounds bounds = patient;
	double bytes = 0, truth;
	int held = 0;
	(void)state;
	look_well("uneven", &patient);
	truth = value(FINDING_FILE_BYTES);
	bounds.files = 100;
	for (int i = 0; i < DRAWS; i++) {
		bounds.seed = (uint64_t)i;
		look_well("uneven", &bounds);
		assert_float_equal(value(FINDING_FILES), UNEVEN_FILES, 0);
		assert_float_equal(value(FINDING_FILES_OPENED), 100, 0);
		bytes += value(FINDING_FILE_BYTES) / DRAWS;
		held += findings.known[FINDING_FILE_BYTES].low <= truth &&
			truth <= findings.known[FINDING_FILE_BYTES].high;
	}
	assert_true(fabs(bytes / truth - 1) < 0.01);
	assert_in_range(held, DRAWS * 85 / 100, DRAWS);
}

static void a_folder_too_large_for_that_is_said_to_be(void **state)
{
	struct folder_bounds bounds = patient;
	(void)state;
	bounds.entries = bounds.drawn_entries = 12;
	look_well("uneven", &bounds);
	assert_true(seen.cut);
	assert_true(isnan(findings.known[FINDING_FILES].high));
	assert_non_null(strstr(findings.known[FINDING_FILES].why, "at least"));
	assert_in_range(value(FINDING_FILES), 1, 13);
}

/* ---- lists -------------------------------------------------------------------------------------- */

static void a_list_is_read_with_and_without_sizes(void **state)
{
	char text[3 * FIXTURE_PATH], path[FIXTURE_PATH];
	(void)state;
	make_folder("list/x y");
	const size_t size = put_jpeg("list/x y/0 1", &plain);
	(void)put_jpeg("list/1.jpg", &plain);
	const int length = snprintf(text, sizeof text,
		"1.jpg\r\n%s 77\nx y/0 1 123\n\nmissing.jpg 500\nmissing too.jpg\t700",
		fixture_path("list/x y/0 1", path));
	fixture_write("list/files.txt", text, (size_t)length);
	look_well("list/files.txt", &patient);
	assert_float_equal(value(FINDING_FILES), 3, 0);
	assert_float_equal(value(FINDING_FILE_BYTES), (float)size, 0.01F);
	assert_float_equal(value(FINDING_FILES_UNREAD), 2.0F / 5, 1e-6F);
}

/* A manifest of ours says what files are like that are not here, and where packed ones begin. */
static void a_manifest_is_read(void **state)
{
	struct config config;
	char path[FIXTURE_PATH];
	(void)state;
	fixture_config(&config, "made", "dataset.recipe=photo", "dataset.samples=20",
		"dataset.width=60", "dataset.height=40", "dataset.container=tar",
		"dataset.shard_samples=7", NULL);
	struct dataset_generated made;
	assert_int_equal(dataset_generate(&config, NULL, &made, &err), 0);
	look_well("made/mlbench-manifest.jsonl", &patient);
	const double bytes = value(FINDING_FILE_BYTES);
	assert_float_equal(value(FINDING_FILES), 20, 0);
	assert_string_equal(findings.like[0].subsampling, "420");
	assert_int_equal(findings.like[0].quality, 90);
	make_folder("apart");
	char to[FIXTURE_PATH];
	assert_int_equal(rename(fixture_path("made/mlbench-manifest.jsonl", path),
				 fixture_path("apart/m.jsonl", to)),
		0);
	look_well("apart/m.jsonl", &patient);
	assert_float_equal(value(FINDING_FILES), 20, 0);
	assert_float_equal(value(FINDING_FILE_BYTES), (float)bytes, 0.01F);
	assert_string_equal(findings.like[0].subsampling, "");
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_known_mixture_is_found_exactly),
		cmocka_unit_test(headers_say_how_they_were_encoded),
		cmocka_unit_test(long_headers_are_read_to_a_limit),
		cmocka_unit_test(hostile_entries_do_no_harm),
		cmocka_unit_test(paths_that_multiply_come_to_an_end),
		cmocka_unit_test(what_may_not_be_read_is_counted),
		cmocka_unit_test(what_is_no_data_set_is_refused),
		cmocka_unit_test(files_that_are_no_pictures_are_told_by_their_names),
		cmocka_unit_test(estimates_are_without_bias),
		cmocka_unit_test(a_sample_stands_for_all),
		cmocka_unit_test(a_folder_too_large_for_that_is_said_to_be),
		cmocka_unit_test(a_list_is_read_with_and_without_sizes),
		cmocka_unit_test(a_manifest_is_read),
	};
	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
