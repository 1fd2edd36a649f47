/* Manifests: what is written is read again; those of the earlier version are read; what is torn, changed or made up is
 * refused with a reason. */
#include "tests/unit/dataset_fixture.h"

#include "harness/base/hash.h"
#include "workloads/dataset/manifest.h"

#include <endian.h>
#include <errno.h>
#include <sys/stat.h>

/* As mlbench wrote them before the rows: a recipe's, and a scan's with names and reasons of all kinds. */
static const char lines_of_recipe[] =
	"{\"schema\":\"mlbench.manifest/1\",\"recipe\":{\"generator\":1,\"samples\":2},\"detail\":1024,\"count\":2,"
	"\"bad\":0,\"bytes\":19248,\"body\":\"%016llx\",\"classes\":[\"class_0000\",\"class_0001\"]}\n";
static const char lines_of_samples[] =
	"[\"class_0000/00000000.jpg\",13313,195,125,0,\"1d6989bd870c140a\"]\n"
	"[\"class_0001/00000001.jpg\",5935,133,108,1,\"a8e78aa4862d31ec\"]\n";
static const char lines_of_scan[] =
	"{\"schema\":\"mlbench.manifest/1\",\"listing_of_all\":\"0123456789abcdef\",\"count\":1,\"bad\":1,"
	"\"bytes\":9,\"body\":\"%016llx\",\"classes\":[\"a %%25 %%22q%%22%%0A\"]}\n";
static const char lines_of_files[] = "[\"a %25 %22q%22%0A/%FF.jpg\",9,8,7,0,\"\",2]\n"
				     "[\"b%5C.png\",\"an empty file\"]\n";

static int read_back(const char *name, struct dataset *dataset, json_t **header, struct error *err)
{
	char path[FIXTURE_PATH];
	*dataset = (struct dataset){0};
	*err = (struct error){""};
	return manifest_read(fixture_path(name, path), dataset, header, err);
}

static void expect_refused(const char *name, const char *part)
{
	struct dataset dataset;
	struct error err;
	json_t *header;
	const int code = read_back(name, &dataset, &header, &err);
	if (code != -EBADMSG || !strstr(err.text, part) || strchr(err.text, '\n'))
		fail_msg("%d '%s' instead of '%s'", code, err.text, part);
	assert_null(header);
	assert_null(dataset.arena);
	assert_null(dataset.samples);
}

static void write_lines(const char *name, const char *header, const char *body)
{
	struct buffer text = {0};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	buffer_format(&text, header, (unsigned long long)hash_bytes(body, strlen(body), 0));
#pragma GCC diagnostic pop
	buffer_text(&text, body);
	fixture_write(name, text.data, text.size);
	buffer_release(&text);
}

static void test_lines_of_before(void **state)
{
	(void)state;
	struct dataset dataset;
	struct error err;
	json_t *header;
	write_lines("recipe.jsonl", lines_of_recipe, lines_of_samples);
	if (read_back("recipe.jsonl", &dataset, &header, &err))
		fail_msg("%s", err.text);
	assert_int_equal(dataset.count, 2);
	assert_int_equal(dataset.class_count, 2);
	assert_int_equal(dataset.total_bytes, 13313 + 5935);
	assert_int_equal(dataset.max_bytes, 13313);
	assert_string_equal(dataset.samples[1].path, "class_0001/00000001.jpg");
	assert_true(dataset.samples[1].checksum == 0xa8e78aa4862d31ec);
	assert_int_equal(dataset.samples[1].width, 133);
	assert_int_equal(dataset.samples[1].label, 1);
	assert_int_equal(dataset.samples[1].format, IMAGE_FORMAT_JPEG);
	assert_int_equal(json_integer_value(json_object_get(header, "detail")), 1024);
	json_decref(header);
	arena_close(dataset.arena);

	write_lines("scan.jsonl", lines_of_scan, lines_of_files);
	if (read_back("scan.jsonl", &dataset, &header, &err))
		fail_msg("%s", err.text);
	assert_int_equal(dataset.count, 1);
	assert_string_equal(dataset.class_names[0], "a % \"q\"\n");
	assert_string_equal(dataset.samples[0].path, "a % \"q\"\n/\xff.jpg");
	assert_true(dataset.samples[0].checksum == 0);
	assert_int_equal(dataset.samples[0].format, 2);
	assert_int_equal(dataset.bad_count, 1);
	assert_string_equal(dataset.bad[0].path, "b\\.png");
	assert_string_equal(dataset.bad[0].reason, "an empty file");
	json_decref(header);
	arena_close(dataset.arena);

	/* The number of a format that there is not, in one digit. */
	write_lines("scan.jsonl", lines_of_scan, "[\"a.jpg\",9,8,7,0,\"\",9]\n[\"b\",\"c\"]\n");
	expect_refused("scan.jsonl", "a line is not as mlbench writes it");
	write_lines("recipe.jsonl", lines_of_recipe, lines_of_files);
	expect_refused("recipe.jsonl", "a line is not as mlbench writes it");
}

enum { SAMPLES = 3000 }; /* more than are read in one piece */

static void make_set(struct dataset *dataset)
{
	static struct sample samples[SAMPLES];
	static char names[SAMPLES][32];
	static const char *classes[] = {"a b", "\xff\"\\%\n"};
	static struct dataset_bad bad[] = {{"c/x\n.jpg", "an empty file"}, {"d.png", "\xc3\xa4"}};
	for (size_t i = 0; i < SAMPLES; i++) {
		(void)snprintf(names[i], sizeof names[i], "%s/%zu%s", classes[i % 2], i,
			i % 3 ? ".jpg" : ".\xfe");
		samples[i] = (struct sample){.path = names[i],
			.bytes = i == 7 ? UINT64_MAX / SAMPLES : i,
			.checksum = i * 0x9e3779b97f4a7c15,
			.width = (uint32_t)i + 1,
			.height = 3,
			.label = i % 2,
			.format = (uint8_t)(i % IMAGE_FORMATS)};
	}
	*dataset = (struct dataset){.samples = samples,
		.count = SAMPLES,
		.class_names = classes,
		.class_count = 2,
		.bad = bad,
		.bad_count = 2};
	manifest_total(dataset);
}

static void write_set(const char *name, const struct dataset *dataset)
{
	char path[FIXTURE_PATH];
	struct error err;
	json_t *header = json_pack("{s:s}", "listing", "x");
	assert_int_equal(manifest_write(fixture_path(name, path), header, dataset, &err), 0);
	json_decref(header);
}

static void test_round_trip(void **state)
{
	(void)state;
	struct dataset set, back;
	struct error err;
	json_t *header;
	make_set(&set);
	write_set("set", &set);
	if (read_back("set", &back, &header, &err))
		fail_msg("%s", err.text);
	assert_string_equal(json_string_value(json_object_get(header, "listing")), "x");
	assert_int_equal(back.count, SAMPLES);
	for (size_t i = 0; i < SAMPLES; i++) {
		const struct sample *a = &set.samples[i], *b = &back.samples[i];
		assert_string_equal(a->path, b->path);
		assert_true(a->bytes == b->bytes && a->checksum == b->checksum);
		assert_true(a->width == b->width && a->height == b->height);
		assert_true(a->label == b->label && a->format == b->format);
	}
	assert_true(back.total_bytes == set.total_bytes && back.max_bytes == set.max_bytes);
	assert_memory_equal(&back.extents, &set.extents, sizeof set.extents);
	assert_string_equal(back.class_names[1], set.class_names[1]);
	assert_int_equal(back.bad_count, 2);
	assert_string_equal(back.bad[0].path, "c/x\n.jpg");
	assert_string_equal(back.bad[1].reason, "\xc3\xa4");
	json_decref(header);
	arena_close(back.arena);

	set.count = set.bad_count = 0;
	write_set("empty", &set);
	assert_int_equal(read_back("empty", &back, &header, &err), 0);
	assert_int_equal(back.count, 0);
	json_decref(header);
	arena_close(back.arena);
}

/* Every cut, and a change of any byte behind the header. */
static void test_torn_and_changed(void **state)
{
	(void)state;
	struct dataset set;
	char path[FIXTURE_PATH], *good;
	size_t size;
	struct error err;
	make_set(&set);
	set.count = 3;
	write_set("torn", &set);
	assert_int_equal(files_read(fixture_path("torn", path), 1 << 20, &good, &size, &err), 0);
	const size_t body = strcspn(good, "\n") + 1;
	for (size_t i = 0; i < size; i++) {
		fixture_write("torn", good, i);
		expect_refused("torn", "damaged manifest");
	}
	for (size_t i = body - 1; i < size; i++) {
		good[i] = (char)(good[i] ^ 1);
		fixture_write("torn", good, size);
		expect_refused("torn", "damaged manifest");
		good[i] = (char)(good[i] ^ 1);
	}
	good = realloc(good, size + 1);
	good[size] = 'x';
	fixture_write("torn", good, size + 1);
	expect_refused("torn", "it is cut short or changed");
	free(good);
}

struct claims {
	json_int_t count, bad, text;
	const void *body;
	size_t size;
};

/* Whose checksum is right. */
static void expect_no_claim(const struct claims *claims, const char *part)
{
	char hex[17];
	struct buffer text = {0};
	(void)snprintf(hex, sizeof hex, "%016llx",
		(unsigned long long)hash_bytes(claims->body, claims->size, 0));
	json_t *header = json_pack("{s:s, s:I, s:I, s:I, s:s, s:[s]}", "schema", MANIFEST_SCHEMA,
		"count", claims->count, "bad", claims->bad, "text", claims->text, "body", hex,
		"classes", "c");
	char *line = json_dumps(header, JSON_COMPACT);
	buffer_format(&text, "%s\n", line);
	buffer_add(&text, claims->body, claims->size);
	fixture_write("claims", text.data, text.size);
	free(line);
	json_decref(header);
	buffer_release(&text);
	expect_refused("claims", part);
}

static void test_hostile(void **state)
{
	(void)state;
	struct {
		uint64_t bytes, checksum;
		uint32_t width, height, label, format;
		char text[8];
	} file = {.text = "c/a.jpg"};
	const size_t size = sizeof file;
	char path[FIXTURE_PATH];
	for (json_int_t most = INT64_MAX; most > 1; most /= 3) {
		if (most < 100)
			continue;
		expect_no_claim(&(struct claims){most, 0, 8, &file, size}, "its counts are wrong");
		expect_no_claim(&(struct claims){1, most, 8, &file, size}, "its counts are wrong");
		expect_no_claim(&(struct claims){1, 0, most, &file, size}, "cut short or changed");
	}
	expect_no_claim(&(struct claims){-1, 0, 8, &file, size}, "cut short or changed");
	expect_no_claim(&(struct claims){1, 1, 8, &file, size}, "its names are not");
	file.label = htole32(1);
	expect_no_claim(&(struct claims){1, 0, 8, &file, size}, "a class or a format");
	file.label = 0;
	file.format = htole32(IMAGE_FORMATS);
	expect_no_claim(&(struct claims){1, 0, 8, &file, size}, "a class or a format");
	file.format = htole32(256); /* whose last byte is a format's */
	expect_no_claim(&(struct claims){1, 0, 8, &file, size}, "a class or a format");
	file.format = 0;
	file.text[7] = 'x';
	expect_no_claim(&(struct claims){1, 0, 8, &file, size}, "its names are not");
	file.text[7] = file.text[6] = 0; /* one string too many */
	expect_no_claim(&(struct claims){1, 0, 8, &file, size}, "its names are not");
	file.text[0] = 0;
	expect_no_claim(&(struct claims){1, 0, 8, &file, size}, "its names are not");
	fixture_write("claims", "{\"schema\":\"mlbench.manifest/4\"}\n", 33);
	expect_refused("claims", "not a header");
	assert_int_equal(mkfifo(fixture_path("pipe", path), 0600), 0);
	struct dataset dataset;
	struct error err;
	json_t *header;
	assert_int_equal(read_back("pipe", &dataset, &header, &err), -EBADMSG);
	assert_int_equal(read_back(".", &dataset, &header, &err), -EISDIR);
	assert_int_equal(read_back("nothing", &dataset, &header, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_of_before),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_torn_and_changed),
		cmocka_unit_test(test_hostile),
	};
	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
