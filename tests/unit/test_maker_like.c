/* The recipe like: what is generated is found again by what looks at folders, kind by kind, and is the same on any number of
 * threads. */
#include "tests/unit/dataset_fixture.h"

#include "harness/base/buffer.h"
#include "harness/fit/from_folder.h"
#include "workloads/dataset/recipe.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <math.h>

static struct error err;

static const struct folder_bounds patient = {
	.seed = 1,
	.entries = 1 << 20,
	.folders = 1,
	.files = 4096,
	.list_ns = UINT64_MAX / 4,
	.open_ns = UINT64_MAX / 4,
};

static void generate_like(const char *name, const char *like, const char *more, unsigned threads)
{
	struct config config;
	struct dataset_generated made;
	struct buffer text = {0};
	const struct dataset_control control = {.threads = threads};
	buffer_format(&text, "dataset.like=%s", like);
	fixture_config(
		&config, name, "dataset.recipe=like", "dataset.samples=120", text.data, more, NULL);
	if (dataset_generate(&config, &control, &made, &err))
		fail_msg("%s", err.text);
	config_release(&config);
	buffer_release(&text);
}

static void find(const char *name, struct findings *out)
{
	char path[FIXTURE_PATH];
	struct folder_seen seen;
	findings_open(out);
	if (folder_look(out, fixture_path(name, path), &patient, &seen, &err))
		fail_msg("%s", err.text);
}

/* The one with the layout; NULL: there is none. */
static const struct like_stratum *find_layout(
	const struct like_stratum *strata, size_t count, const struct like_stratum *like)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(strata[i].format, like->format) == 0 &&
			strcmp(strata[i].subsampling, like->subsampling) == 0)
			return &strata[i];
	return NULL;
}

/* Every layout that can be encoded, once; pictures are small, so that -O0 and half a core suffice. */
static const char mixture[] =
	"jpeg 160x120~0.15 420 q90 6KB~0.3 50%, jpeg 120x160 444 progressive q75 9KB~0.2+3KB 10%, "
	"jpeg 100x100 422 q95 5KB 10%, jpeg 90x60~0.1 gray q80 1.8KB~0.3 10%, png 64x48 rgb 6KB~0.2 5%, "
	"png 64x48 palette 2KB 5%, png 64x48~0.1 gray 2.2KB 5%, raw 40x30 3.612KB 5%";

static void what_is_asked_for_is_found_again(void **state)
{
	struct like_stratum asked[LIKE_STRATA_MAX];
	struct findings findings;
	size_t count;
	double bytes = 0;
	(void)state;
	generate_like("mixed", mixture, NULL, 2);
	find("mixed", &findings);
	assert_int_equal(like_parse(mixture, asked, &count, &err), 0);
	assert_int_equal(findings.like_count, count);
	for (size_t i = 0; i < count; i++) {
		const struct like_stratum *const found =
			find_layout(findings.like, findings.like_count, &asked[i]);
		const double miss = found ? found->bytes / asked[i].bytes - 1 : 1;
		const double pixels = (double)asked[i].width * asked[i].height *
				      like_mean_exp(2 * asked[i].edge_sigma);
		if (!found || !(fabs(miss) < 0.02))
			fail_msg("%s %s: bytes off by %.1f %%", asked[i].format,
				asked[i].subsampling, 100 * miss);
		assert_float_equal(found->share, (float)asked[i].share, 1e-6F);
		assert_int_equal(found->progressive, asked[i].progressive);
		if (asked[i].quality)
			assert_int_equal(found->quality, asked[i].quality);
		assert_true(fabs((double)found->width * found->height *
					    like_mean_exp(2 * found->edge_sigma) / pixels -
				    1) < 0.03);
		assert_true(fabs(found->edge_sigma - asked[i].edge_sigma) < 0.02);
		assert_true(fabs(found->bytes_sigma - asked[i].bytes_sigma) < 0.05);
		assert_true(fabs(found->header - asked[i].header) < 200);
		bytes += asked[i].share * asked[i].bytes;
	}
	assert_true(fabs(findings.known[FINDING_FILE_BYTES].value / bytes - 1) < 0.02);
	findings_close(&findings);
}

/* The second generation, from what was found of the first, is like it. */
static void a_twin_of_a_twin_is_like_it(void **state)
{
	struct findings first, second;
	struct buffer text = {0};
	(void)state;
	find("mixed", &first);
	(void)like_write(first.like, first.like_count, &text);
	generate_like("again", text.data, NULL, 2);
	find("again", &second);
	assert_int_equal(second.like_count, first.like_count);
	assert_true(fabs(second.known[FINDING_FILE_BYTES].value /
				    first.known[FINDING_FILE_BYTES].value -
			    1) < 0.02);
	buffer_release(&text);
}

static char *read_manifest(const char *folder, size_t *size)
{
	char name[64], path[FIXTURE_PATH];
	char *data;
	(void)snprintf(name, sizeof name, "%s/mlbench-manifest.jsonl", folder);
	assert_int_equal(files_read(fixture_path(name, path), 1 << 20, &data, size, &err), 0);
	return data;
}

/* A manifest has the checksum of every file. */
static void files_do_not_depend_on_threads(void **state)
{
	size_t size, other_size;
	(void)state;
	generate_like("one", mixture, NULL, 1);
	generate_like("three", mixture, NULL, 3);
	generate_like("other", mixture, "dataset.seed=2", 3);
	char *const one = read_manifest("one", &size), *const three =
							       read_manifest("three", &other_size);
	assert_int_equal(size, other_size);
	assert_memory_equal(one, three, size);
	char *const other = read_manifest("other", &other_size);
	assert_false(size == other_size && memcmp(one, other, size) == 0);
	free(one);
	free(three);
	free(other);
}

/* Fewer files than kinds, kinds without a file, sizes at the edge of what can be: files are good pictures all the same. */
static void odd_mixtures_make_good_files(void **state)
{
	static const char *const odd[] = {
		"jpeg 1x1 q90 400 100%",
		"jpeg 1x4000 gray q1 2KB 50%, png 4000x1 gray16 9KB 50%",
		("jpeg 100x100~0.9 440 q90 2KB~1.9 60%, png 30x30~0.5 graya 800 20%, jpeg 50x50 cmyk 2KB 10%, "
		 "jpeg 50x50 other 2KB 9.999%, raw 3x3 40 0.001%"),
		"png 200x100 rgba 90KB 100%",
		"jpeg 64x64 420 q30 progressive 14KB 50%, jpeg 64x64 q100 100 50%",
	};
	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		struct findings findings;
		char name[32];
		if (strstr(odd[i], "q30 progressive")) { /* the words have an order */
			struct like_stratum strata[LIKE_STRATA_MAX];
			size_t count;
			assert_int_equal(like_parse(odd[i], strata, &count, &err), -EINVAL);
			continue;
		}
		(void)snprintf(name, sizeof name, "odd%zu", i);
		generate_like(name, odd[i], "dataset.samples=23", 2);
		find(name, &findings);
		assert_float_equal(findings.known[FINDING_FILES].value, 23, 0);
		assert_float_equal(findings.known[FINDING_FILES_UNKNOWN].value, 0, 0);
	}
}

static void what_is_not_said_is_refused(void **state)
{
	struct config config;
	struct recipe recipe;
	(void)state;
	fixture_config(&config, "none", "dataset.recipe=like", "dataset.samples=3", NULL);
	assert_int_equal(recipe_read(&config, &recipe, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'dataset.like' is not set"));
	assert_true(config_set(&config, "dataset.like=jpeg 5x5 1KB 50%", &err) < 0);
	assert_non_null(strstr(err.text, "'dataset.like'"));
	fixture_set(&config, "dataset.like=jpeg 5x5 1KB 100%");
	fixture_set(&config, "sample.kind=volume");
	assert_int_equal(recipe_read(&config, &recipe, &err), -EINVAL);
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_is_found_again),
		cmocka_unit_test(a_twin_of_a_twin_is_like_it),
		cmocka_unit_test(files_do_not_depend_on_threads),
		cmocka_unit_test(odd_mixtures_make_good_files),
		cmocka_unit_test(what_is_not_said_is_refused),
	};
	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
