/* Files that hold several samples: a toy container and a toy kind that splits its own files are scanned,
 * remembered, verified, read by every engine, and survive whatever is wrong in them. */
#include "tests/unit/dataset_fixture.h"

#include "workloads/dataset/container.h"
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/scan.h"
#include "workloads/sample/sample.h"
#include "workloads/source/residency.h"
#include "workloads/source/source.h"

#include <errno.h>

/* ---- a container: (u32 length, u8 what, u8 label, bytes)* --------------------------------------- */

enum { HEAD = 6, NUMBERED = 0, NAMED = 1, OF_FOLDER = 2 };

static atomic_int splits;

static bool toy_takes(const char *name)
{
	const size_t length = strlen(name);
	return length > 4 && strcmp(name + length - 4, ".toy") == 0;
}

static int toy_split(struct container_file *file, struct error *err)
{
	uint64_t at = 0;
	atomic_fetch_add(&splits, 1);
	for (int code = 0; at < file->bytes;) {
		const uint8_t *head;
		uint32_t length;
		char what[32], class_name[2] = {0};
		code = container_view(file, at, HEAD, &head, err);
		if (code)
			return code;
		memcpy(&length, head, sizeof length);
		class_name[0] = (char)head[5];
		const struct container_part part = {
			.offset = at + HEAD,
			.length = length,
			.numbered = head[4] == NUMBERED,
			.label = head[5],
			.class_name = head[4] == NAMED ? class_name : NULL,
			.class_size = 1,
		};
		(void)snprintf(what, sizeof what, "at %llu", (unsigned long long)at);
		code = container_add_sample(file, what, &part, err);
		if (code)
			return code;
		at += HEAD + length;
	}
	return 0;
}

static const struct container_ops toy = {
	.name = "toy",
	.summary = "of this test",
	.endings = ".toy",
	.takes = toy_takes,
	.split = toy_split,
};

struct toy_file {
	uint8_t bytes[64 * 1024];
	size_t size;
};

static void toy_put(struct toy_file *file, int what, int label, const void *bytes, uint32_t length)
{
	uint8_t *const at = file->bytes + file->size;
	assert_true(file->size + HEAD + length <= sizeof file->bytes);
	memcpy(at, &length, sizeof length);
	at[4] = (uint8_t)what;
	at[5] = (uint8_t)label;
	memcpy(at + HEAD, bytes, length);
	file->size += HEAD + length;
}

/* A picture whose width is its number, so that a sample tells which it is. */
static void toy_put_picture(struct toy_file *file, int what, int label, uint32_t width)
{
	char text[4096] = "";
	const int head = snprintf(text, sizeof text, "P6 %u 1 255\n", width);
	assert_true((size_t)head + (size_t)3 * width <= sizeof text);
	toy_put(file, what, label, text, (uint32_t)head + 3 * width);
}

/* SHARDS files of EACH pictures. */
enum { SHARDS = 3, EACH = 40 };

static void put_shards(const char *folder)
{
	for (int shard = 0; shard < SHARDS; shard++) {
		static struct toy_file file;
		char name[64];
		file.size = 0;
		for (int i = 0; i < EACH; i++)
			toy_put_picture(&file, NUMBERED, i % 7, (uint32_t)(shard * EACH + i + 1));
		(void)snprintf(name, sizeof name, "%s/shard-%d.toy", folder, shard);
		fixture_write(name, file.bytes, file.size);
	}
}

static int scan_toys(const char *name, uint64_t wanted, struct dataset *dataset, struct error *err)
{
	const struct dataset_control control = {.container = &toy, .threads = 4};
	char path[FIXTURE_PATH];
	return scan_folder(fixture_path(name, path), wanted, &control, dataset, err);
}

static void expect_toys(const char *name, uint64_t wanted, struct dataset *dataset)
{
	struct error err = {""};
	if (scan_toys(name, wanted, dataset, &err))
		fail_msg("%s", err.text);
}

static void finds_and_remembers(void **state)
{
	(void)state;
	struct dataset first, second, some;
	fixture_folder("shards");
	put_shards("shards");
	fixture_write("shards/readme.jpg", "left alone", 10);
	expect_toys("shards", 0, &first);
	assert_int_equal(first.count, SHARDS * EACH);
	assert_int_equal(first.bad_count, 0);
	assert_int_equal(first.class_count, 7);
	assert_string_equal(first.class_names[6], "6");
	assert_int_equal(first.files, SHARDS);
	assert_true(first.scanned_now);
	assert_int_equal(first.stored_bytes, first.total_bytes + SHARDS * EACH * HEAD);
	for (size_t i = 0; i < first.count; i++) {
		assert_int_equal(first.samples[i].width, i + 1);
		assert_int_equal(first.samples[i].label, i % EACH % 7);
		assert_true(i % EACH == 0 || first.samples[i].path == first.samples[i - 1].path);
		assert_true(i % EACH == 0 ? first.offsets[i] == HEAD
					  : first.offsets[i] == first.offsets[i - 1] +
									first.samples[i - 1].bytes +
									HEAD);
	}
	const int done = splits;
	expect_toys("shards", 0, &second);
	assert_false(second.scanned_now);
	assert_int_equal(splits, done);
	assert_int_equal(second.count, first.count);
	assert_int_equal(second.files, SHARDS);
	assert_int_equal(second.stored_bytes, first.stored_bytes);
	assert_int_equal(second.total_bytes, first.total_bytes);
	assert_int_equal(second.max_bytes, first.max_bytes);
	for (size_t i = 0; i < first.count; i++) {
		assert_string_equal(second.samples[i].path, first.samples[i].path);
		assert_int_equal(second.offsets[i], first.offsets[i]);
		assert_int_equal(second.samples[i].bytes, first.samples[i].bytes);
		assert_int_equal(second.samples[i].label, first.samples[i].label);
	}
	/* Of the same manifest, evenly. */
	expect_toys("shards", 12, &some);
	assert_int_equal(splits, done);
	assert_int_equal(some.count, 12);
	for (size_t i = 0; i < some.count; i++)
		assert_int_equal(some.samples[i].width, i * 10 + 1);
	/* Another file: all are split again. */
	fixture_write("shards/shard-3.toy", "", 0);
	dataset_close(&second);
	expect_toys("shards", 0, &second);
	assert_true(splits > done);
	assert_int_equal(second.count, first.count);
	assert_int_equal(second.bad_count, 1);
	dataset_close(&first);
	dataset_close(&second);
	dataset_close(&some);
}

static void names_classes(void **state)
{
	(void)state;
	static struct toy_file file;
	struct dataset dataset;
	fixture_folder("named/b");
	toy_put_picture(&file, NAMED, 'z', 1);
	toy_put_picture(&file, NAMED, 'a', 2);
	toy_put_picture(&file, OF_FOLDER, 0, 3);
	fixture_write("named/b/x.toy", file.bytes, file.size);
	expect_toys("named", 0, &dataset);
	assert_int_equal(dataset.class_count, 3);
	assert_string_equal(dataset.class_names[0], "a");
	assert_string_equal(dataset.class_names[1], "b");
	assert_string_equal(dataset.class_names[2], "z");
	assert_int_equal(dataset.samples[0].label, 2);
	assert_int_equal(dataset.samples[1].label, 0);
	assert_int_equal(dataset.samples[2].label, 1);
	dataset_close(&dataset);
}

static void counts_what_is_bad(void **state)
{
	(void)state;
	static struct toy_file file;
	struct dataset dataset;
	struct error err;
	fixture_folder("bad");
	file.size = 0;
	for (int i = 0; i < 3 * CONTAINER_BAD_MAX; i++)
		toy_put(&file, NUMBERED, 1, "this is no picture", 18);
	fixture_write("bad/a.toy", file.bytes, file.size);
	assert_int_equal(scan_toys("bad", 0, &dataset, &err), -ENODATA);
	assert_non_null(strstr(err.text, "'a.toy'"));
	file.size = 0;
	toy_put_picture(&file, NUMBERED, 2, 9);
	toy_put_picture(&file, NUMBERED, 2, 5);
	fixture_write("bad/b.toy", file.bytes, file.size - 4); /* torn in its second */
	fixture_write("bad/c.toy", file.bytes, 3);             /* within a head */
	expect_toys("bad", 0, &dataset);
	assert_int_equal(dataset.count, 1);
	assert_int_equal(dataset.bad_count, CONTAINER_BAD_MAX + 1 + 2);
	assert_string_equal(dataset.bad[CONTAINER_BAD_MAX].reason, "200 more of its entries");
	assert_non_null(strstr(dataset.bad[CONTAINER_BAD_MAX + 1].reason, "is cut short"));
	assert_string_equal(dataset.bad[CONTAINER_BAD_MAX + 2].path, "c.toy");
	dataset_close(&dataset);
}

/* No sample is of class 0 because nobody said of which it is. */
static void drops_what_has_no_class(void **state)
{
	(void)state;
	static struct toy_file file;
	struct dataset dataset;
	fixture_folder("classless");
	for (uint32_t i = 0; i < 6; i++)
		toy_put_picture(&file, i % 3 ? NUMBERED : OF_FOLDER, 4, i + 1);
	fixture_write("classless/a.toy", file.bytes, file.size);
	file.size = 0;
	toy_put_picture(&file, NAMED, 'z', 9);
	fixture_write("classless/b.toy", file.bytes, file.size);
	expect_toys("classless", 0, &dataset);
	assert_int_equal(dataset.count, 4);
	assert_int_equal(dataset.files, 1);
	for (size_t i = 0; i < dataset.count; i++)
		assert_int_equal(dataset.samples[i].label, 4);
	assert_int_equal(dataset.samples[3].width, 6);
	assert_int_equal(dataset.bad_count, 2);
	assert_string_equal(dataset.bad[0].reason,
		"2 samples without a class, which others of the data set have");
	assert_string_equal(dataset.bad[1].reason,
		"1 sample without a class, which others of the data set have");
	dataset_close(&dataset);
}

static void stops(void **state)
{
	(void)state;
	const atomic_bool stop = true;
	const struct dataset_control control = {.container = &toy, .stop = &stop};
	struct dataset dataset;
	struct error err;
	char path[FIXTURE_PATH];
	fixture_folder("stopped");
	put_shards("stopped");
	assert_int_equal(
		scan_folder(fixture_path("stopped", path), 0, &control, &dataset, &err), -EINTR);
}

/* ---- the containers that there are -------------------------------------------------------------- */

enum { WRITTEN = 5 };

/* What generating writes; offsets of the pictures in it. */
static void write_shard(
	const struct container_ops *container, struct buffer *shard, uint64_t offsets[WRITTEN])
{
	for (uint32_t i = 0; i < WRITTEN; i++) {
		char key[32], bytes[64] = "";
		const int size = snprintf(bytes, sizeof bytes, "P6 %u 1 255\n", i + 1);
		const struct container_entry entry = {.key = key,
			.extension = "ppm",
			.bytes = (const uint8_t *)bytes,
			.size = (size_t)size + 3 * (i + 1),
			.label = 300 * i};
		struct buffer before = {0}, behind = {0};
		(void)snprintf(key, sizeof key, "%08u", i);
		container->wrap(&entry, &before, &behind);
		buffer_add(shard, before.data, before.size);
		offsets[i] = shard->size;
		buffer_add(shard, bytes, entry.size);
		buffer_add(shard, behind.data, behind.size);
		buffer_release(&before);
		buffer_release(&behind);
	}
	if (container->finish)
		container->finish(shard);
	assert_false(shard->failed);
}

/* Any part or change of a shard: samples lie inside it, or there is a reason. */
static size_t scan_damaged(
	const struct container_ops *container, const char *name, const char *bytes, size_t size)
{
	const struct dataset_control control = {.container = container, .threads = 1};
	char file[64], path[FIXTURE_PATH];
	struct dataset dataset;
	struct error err = {""};
	(void)snprintf(file, sizeof file, "%s/shard.%s", name, container->extension);
	fixture_write(file, bytes, size);
	const int code = scan_folder(fixture_path(name, path), 0, &control, &dataset, &err);
	if (code)
		assert_true(code == -ENODATA && err.text[0]);
	const size_t count = code ? 0 : dataset.count;
	for (size_t i = 0; i < count; i++)
		assert_true(dataset.offsets[i] + dataset.samples[i].bytes <= size);
	/* None of these cuts lies between two records, which would look like a whole file. */
	if (!code && count < WRITTEN)
		assert_true(dataset.bad_count > 0);
	if (!code)
		dataset_close(&dataset);
	return count;
}

static void damaged_shards_have_reasons(void **state)
{
	enum { STEP = 61 };
	(void)state;
	for (size_t c = 0; container_list[c]; c++) {
		const struct container_ops *const container = container_list[c];
		const struct dataset_control control = {.container = container};
		struct buffer shard = {0};
		struct dataset dataset;
		struct error err = {""};
		uint64_t offsets[WRITTEN];
		char path[FIXTURE_PATH];
		if (container->inflates) /* test_gzip.c */
			continue;
		fixture_folder(container->name);
		write_shard(container, &shard, offsets);
		assert_int_equal(
			scan_damaged(container, container->name, shard.data, shard.size), WRITTEN);
		assert_int_equal(scan_folder(fixture_path(container->name, path), 0, &control,
					 &dataset, &err),
			0);
		assert_int_equal(dataset.bad_count, 0);
		assert_int_equal(dataset.class_count, 300 * (WRITTEN - 1) + 1);
		for (uint32_t i = 0; i < WRITTEN; i++) {
			assert_int_equal(dataset.offsets[i], offsets[i]);
			assert_int_equal(dataset.samples[i].width, i + 1);
			assert_int_equal(dataset.samples[i].label, 300 * i);
		}
		dataset_close(&dataset);
		for (size_t at = 1; at < shard.size; at += STEP) {
			(void)scan_damaged(container, container->name, shard.data, at);
			shard.data[at] ^= 0x55;
			(void)scan_damaged(container, container->name, shard.data, shard.size);
			shard.data[at] ^= 0x55;
		}
		buffer_release(&shard);
	}
}

/* ---- a kind whose files hold many samples ------------------------------------------------------ */

enum { PIECE = 1000 };

static bool piece_takes(const char *name)
{
	return strstr(name, ".jpg") != NULL;
}

static int piece_split(struct container_file *file, struct error *err)
{
	int code = 0;
	for (uint64_t at = 0; at + PIECE <= file->bytes && !code; at += PIECE) {
		const struct container_part part = {.offset = at, .length = PIECE};
		code = container_add(file, &part, err);
	}
	return code;
}

static void piece_shape(const struct config *config, struct sample_shape *out)
{
	(void)config;
	*out = (struct sample_shape){.type = BATCH_UINT8, .dimensions = 1, .of = {PIECE}};
}

static size_t piece_labels(const struct config *config)
{
	(void)config;
	return 0;
}

static int piece_make(void *worker, const struct sample_task *task, struct error *err)
{
	(void)worker;
	(void)err;
	memcpy(task->out, task->bytes, PIECE);
	return 0;
}

static const struct container_ops piece_container = {
	.name = "pieces",
	.endings = ".jpg",
	.takes = piece_takes,
	.split = piece_split,
};

static const struct sample_ops pieces = {
	.name = "pieces",
	.summary = "of this test",
	.shape = piece_shape,
	.label_bytes = piece_labels,
	.make = piece_make,
	.container = &piece_container,
};

static void open_pieces(const struct config *config, struct dataset *dataset)
{
	struct error err = {""};
	if (dataset_open(config, NULL, dataset, &err))
		fail_msg("%s", err.text);
	assert_non_null(dataset->offsets);
}

static void splits_what_is_generated(void **state)
{
	(void)state;
	struct config config;
	struct dataset dataset, scanned;
	struct dataset_generated made;
	struct dataset_verified verified;
	struct error err = {""};
	assert_int_equal(sample_kind_check(&pieces, &err), 0);
	fixture_config(&config, "made", "dataset.recipe=photo", "dataset.samples=9",
		"dataset.classes=2", "dataset.width=64", "dataset.height=64", NULL);
	sample_replace_kind(&pieces);
	if (dataset_generate(&config, NULL, &made, &err))
		fail_msg("%s", err.text);
	open_pieces(&config, &dataset);
	fixture_set(&config, "dataset.recipe=none");
	fixture_set(&config, "dataset.samples=0");
	open_pieces(&config, &scanned);
	assert_true(dataset.count > 9);
	assert_int_equal(dataset.files, 9);
	assert_int_equal(dataset.count, scanned.count);
	assert_int_equal(dataset.class_count, 2);
	assert_string_equal(dataset.class_names[1], "class_0001");
	assert_int_equal(dataset_verify(&config, NULL, &verified, &err), 0);
	assert_int_equal(verified.good, scanned.count);
	/* Cut under it: the scan's manifest no longer holds, what is left is found. */
	char path[FIXTURE_PATH];
	assert_int_equal(
		truncate(fixture_path("made/class_0000/00000000.jpg", path), PIECE + 1), 0);
	dataset_close(&scanned);
	open_pieces(&config, &scanned);
	assert_true(scanned.count < dataset.count);
	fixture_set(&config, "dataset.recipe=photo");
	fixture_set(&config, "dataset.samples=9");
	dataset_close(&dataset);
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -ENODATA);
	sample_replace_kind(NULL);
	dataset_close(&scanned);
	config_release(&config);
}

/* ---- reading ---------------------------------------------------------------------------------- */

static void read_all_by(const char *engine)
{
	char path[FIXTURE_PATH], setting[64];
	struct config config;
	struct dataset dataset;
	struct source *source;
	struct reader *reader;
	struct error err = {""};
	static _Alignas(READ_ALIGN_BYTES) uint8_t room[2 * READ_ALIGN_BYTES];
	(void)snprintf(setting, sizeof setting, "read.engine=%s", engine);
	fixture_config(&config, "shards", setting, "read.threads=1", NULL);
	expect_toys("shards", 0, &dataset);
	dataset.root = strdup(fixture_path("shards", path));
	if (source_open(&source, &config, &dataset, room, sizeof room, 1, &err))
		fail_msg("%s", err.text);
	assert_int_equal(source_reader_open(&reader, source, 0, &err), 0);
	for (uint32_t i = 0; i < dataset.count; i++) {
		struct read_request request = {.sample = i, .buffer = room, .room = sizeof room};
		struct read_request *done;
		char head[32];
		source_submit(reader, &request);
		while (source_reap(reader, &done, 1, 1000000000) == 0)
			;
		assert_int_equal(done->status, 0);
		assert_int_equal(done->size, dataset.samples[i].bytes);
		const int size = snprintf(head, sizeof head, "P6 %u 1 255\n", i + 1);
		assert_memory_equal(done->data, head, (size_t)size);
	}
	source_reader_close(reader);
	source_close(source);
	dataset_close(&dataset);
	config_release(&config);
}

static void every_engine_reads_parts(void **state)
{
	(void)state;
	struct error err = {""};
	struct dataset dataset;
	struct residency residency;
	char path[FIXTURE_PATH];
	read_all_by("memory");
	read_all_by("pread");
	read_all_by("auto");
	expect_toys("shards", 0, &dataset);
	dataset.root = strdup(fixture_path("shards", path));
	if (residency_warm(&dataset, &residency, &err) == 0) /* each file once */
		assert_true(residency.total_pages <= SHARDS * (dataset.stored_bytes / 4096 + 1));
	dataset_close(&dataset);
}

/* ---- the manifest ------------------------------------------------------------------------------ */

static void manifest_keeps_parts(void **state)
{
	(void)state;
	const uint64_t offsets[] = {0, 10, 7};
	struct sample samples[] = {{.path = "a", .bytes = 10},
		{.path = "a", .bytes = 5, .label = 1}, {.path = "b", .bytes = 3}};
	const char *classes[] = {"x", "y"};
	struct dataset_bad bad[] = {{"a", "why"}, {"b", "because"}};
	struct dataset set = {.samples = samples,
		.count = 3,
		.offsets = offsets,
		.class_names = classes,
		.class_count = 2,
		.bad = bad,
		.bad_count = 2,
		.stored_bytes = 99};
	struct dataset again;
	struct error err = {""};
	json_t *header = json_object(), *read;
	char path[FIXTURE_PATH], *text;
	size_t size;
	assert_int_equal(manifest_write(fixture_path("m", path), header, &set, &err), 0);
	assert_int_equal(manifest_read(path, &again, &read, &err), 0);
	assert_int_equal(again.count, 3);
	assert_int_equal(again.files, 2);
	assert_int_equal(again.stored_bytes, 99);
	assert_int_equal(again.bad_count, 2);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(again.samples[i].path, samples[i].path);
		assert_int_equal(again.offsets[i], offsets[i]);
		assert_int_equal(again.samples[i].label, samples[i].label);
	}
	json_decref(read);
	arena_close(again.arena);
	/* Cut short anywhere, or with any byte changed, it is refused. */
	assert_int_equal(files_read(path, 1 << 20, &text, &size, &err), 0);
	for (size_t i = 0; i < size; i++) {
		char *const other = malloc(size);
		memcpy(other, text, size);
		other[i] ^= 1;
		fixture_write("n", other, size);
		if (manifest_read(fixture_path("n", path), &again, &read, &err) == 0) {
			json_decref(read); /* a header's key that nobody reads */
			arena_close(again.arena);
			assert_true(i < size - 3 * 40 - 16 - 2);
		}
		fixture_write("n", text, i);
		assert_int_not_equal(manifest_read(path, &again, &read, &err), 0);
		free(other);
	}
	free(text);
	json_decref(header);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_and_remembers),
		cmocka_unit_test(names_classes),
		cmocka_unit_test(counts_what_is_bad),
		cmocka_unit_test(drops_what_has_no_class),
		cmocka_unit_test(stops),
		cmocka_unit_test(damaged_shards_have_reasons),
		cmocka_unit_test(splits_what_is_generated),
		cmocka_unit_test(every_engine_reads_parts),
		cmocka_unit_test(manifest_keeps_parts),
	};
	return cmocka_run_group_tests_name("container", tests, fixture_setup, fixture_teardown);
}
