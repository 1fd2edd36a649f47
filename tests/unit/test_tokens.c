/* The kind tokens: sequences against the ids that the files were made of, documents by their end and by
 * Megatron's index, files and indexes that lie, and generated files. */
#include "tests/unit/dataset_fixture.h"

#include "harness/config/tables.h"
#include "workloads/backend/batch.h"
#include "workloads/sample/sample.h"
#include "workloads/sample/token_index.h"
#include "workloads/source/chunks.h"
#include "workloads/source/engines.h"

#include <errno.h>
#include <math.h>

enum { TOKENS = 61, LENGTH = 8, PARTS = (TOKENS - 1) / LENGTH, END = 50, VOCABULARY = 100 };

/* ---- files --------------------------------------------------------------------------------- */

struct bytes {
	uint8_t data[8192];
	size_t size;
};

static void put_le(struct bytes *bytes, uint64_t value, size_t size)
{
	assert_true(bytes->size + size <= sizeof bytes->data);
	for (size_t i = 0; i < size; i++)
		bytes->data[bytes->size++] = (uint8_t)(value >> 8 * i);
}

static uint32_t id_at(size_t i)
{
	return (uint32_t)(i * 7 % END);
}

static void make_tokens(struct bytes *file, size_t id_bytes)
{
	file->size = 0;
	for (size_t i = 0; i < TOKENS; i++)
		put_le(file, id_at(i), id_bytes);
}

/* Of so many sequences, each with its length; a document begins with each of `marks`. */
static void make_index(struct bytes *index, unsigned type, const uint32_t *lengths,
	size_t sequences, const uint64_t *marks, size_t mark_count)
{
	uint64_t at = 0;
	index->size = 0;
	memcpy(index->data, "MMIDIDX\0", 9);
	index->size = 9;
	put_le(index, 1, 8);
	put_le(index, type, 1);
	put_le(index, sequences, 8);
	put_le(index, mark_count, 8);
	for (size_t i = 0; i < sequences; i++)
		put_le(index, lengths[i], 4);
	for (size_t i = 0; i < sequences; i++, at += lengths[i - 1] * (type == 8 ? 2 : 4))
		put_le(index, at, 8);
	for (size_t i = 0; i < mark_count; i++)
		put_le(index, marks[i], 8);
}

/* ---- making samples of them ------------------------------------------------------------------- */

struct sequences {
	struct config config;
	struct dataset files, samples;
	struct sample file;
	struct sample_sizes sizes;
	struct sample_maker maker;
	int32_t ids[LENGTH];
	uint32_t labels[LENGTH];
	struct error err;
};

static void sequences_open(struct sequences *s, const char *name, uint64_t bytes, const char *type,
	const char *packing)
{
	*s = (struct sequences){.file = {.path = name, .bytes = bytes}};
	config_init(&s->config);
	fixture_set(&s->config, "sample.kind=tokens");
	fixture_set(&s->config, "tokens.length=8");
	fixture_set(&s->config, "tokens.vocabulary=100");
	fixture_set(&s->config, "tokens.end_of_document=50");
	fixture_set(&s->config, type);
	fixture_set(&s->config, packing);
	assert_int_equal(sample_validate(&s->config, &s->err), 0);
	s->files = (struct dataset){
		.root = fixture_root, .samples = &s->file, .count = 1, .total_bytes = bytes};
	if (sample_cut_files(&s->config, &s->files, &s->samples, &s->err))
		fail_msg("%s", s->err.text);
	sample_sizes_of(&s->config, &s->samples, &s->sizes);
	const struct sample_options options = {.config = &s->config, .dataset = &s->samples};
	assert_int_equal(sample_maker_open(&s->maker, &options, &s->sizes, &s->err), 0);
}

static void sequences_close(struct sequences *s)
{
	sample_maker_close(&s->maker);
	sample_cut_release(&s->samples, &s->files);
	config_release(&s->config);
}

/* Of sample `index`; its bytes lie at the end of their memory, and on odd addresses. */
static int sequences_make(struct sequences *s, const struct bytes *file, size_t index)
{
	const size_t size = s->samples.samples[index].bytes;
	assert_true(s->samples.offsets[index] + size <= file->size);
	uint8_t *const own = malloc(size + 1);
	assert_non_null(own);
	memcpy(own + 1, file->data + s->samples.offsets[index], size);
	const struct sample_task task = {.bytes = own + 1,
		.size = size,
		.sample = &s->samples.samples[index],
		.labels = (uint8_t *)s->labels,
		.sizes = &s->sizes,
		.out = (uint8_t *)s->ids};
	s->err.text[0] = '\0';
	const int code = s->maker.make(s->maker.worker, &task, &s->err);
	free(own);
	return code;
}

static void sequences_follow_each_other(void **state)
{
	(void)state;
	for (size_t id_bytes = 2; id_bytes <= 4; id_bytes += 2) {
		struct bytes file;
		struct sequences s;
		make_tokens(&file, id_bytes);
		sequences_open(&s, "plain.bin", file.size,
			id_bytes == 2 ? "tokens.type=uint16" : "tokens.type=uint32",
			"tokens.packing=stream");
		assert_int_equal(s.samples.count, PARTS);
		assert_int_equal(s.sizes.bytes, LENGTH * 4);
		assert_int_equal(s.sizes.label_bytes, LENGTH * 4);
		assert_int_equal(s.sizes.shape.tokens, LENGTH);
		assert_int_equal(s.sizes.classes, VOCABULARY);
		for (size_t i = 0; i < PARTS; i++) {
			if (sequences_make(&s, &file, i))
				fail_msg("%s", s.err.text);
			for (size_t t = 0; t < LENGTH; t++) {
				assert_int_equal(s.ids[t], id_at(i * LENGTH + t));
				assert_int_equal(s.labels[t], id_at(i * LENGTH + t + 1));
			}
		}
		sequences_close(&s);
	}
}

/* They overlap by a token, and are read in one request all the same. */
static void sequences_are_cut_out_of_large_requests(void **state)
{
	struct sequences s;
	(void)state;
	sequences_open(&s, "plain.bin", TOKENS * 2, "tokens.type=uint16", "tokens.packing=stream");
	fixture_set(&s.config, "read.request=4096");
	/* One chunk of all of them: half as many ahead as there are. */
	assert_int_equal(chunks_lookahead(&s.config, &s.samples, &source_pread), PARTS / 2);
	/* Requests of 40 bytes have room for two sequences of 18, 16 apart. */
	fixture_set(&s.config, "read.request=40");
	assert_true(chunks_lookahead(&s.config, &s.samples, &source_pread) < PARTS / 2);
	sequences_close(&s);
}

/* Behind the token that ends a document, and nowhere else. */
static void labels_of_the_next_document_are_masked(void **state)
{
	static const size_t ends[] = {0, 7, 8, 20, 39};
	struct bytes file;
	struct sequences s;
	(void)state;
	make_tokens(&file, 2);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		file.data[2 * ends[i]] = END;
	for (int packed = 0; packed < 2; packed++) {
		sequences_open(&s, "plain.bin", file.size, "tokens.type=uint16",
			packed ? "tokens.packing=documents" : "tokens.packing=stream");
		for (size_t i = 0; i < PARTS; i++) {
			assert_int_equal(sequences_make(&s, &file, i), 0);
			for (size_t t = 0; t < LENGTH; t++) {
				const uint32_t next = file.data[2 * (i * LENGTH + t + 1)];
				const bool ended = file.data[2 * (i * LENGTH + t)] == END;
				assert_int_equal(
					s.labels[t], packed && ended ? BATCH_LABEL_MASKED : next);
			}
		}
		sequences_close(&s);
	}
}

static void an_index_says_where_documents_begin(void **state)
{
	/* Documents of 7, 9, 0, 24 and 21 tokens; the second has two sequences. */
	static const uint32_t lengths[] = {7, 4, 5, 0, 24, 21};
	static const uint64_t marks[] = {0, 1, 3, 4, 5, 6};
	static const size_t begins[] = {7, 16, 40};
	struct bytes file;
	struct bytes index;
	struct sequences s;
	(void)state;
	make_tokens(&file, 4);
	make_index(&index, 4, lengths, 6, marks, 6);
	fixture_write("indexed.idx", index.data, index.size);
	fixture_write("indexed.bin", file.data, file.size);
	sequences_open(
		&s, "indexed.bin", file.size, "tokens.type=uint32", "tokens.packing=documents");
	/* A second worker sees the same, whoever read the index. */
	struct sample_maker other = {0};
	const struct sample_options options = {.config = &s.config, .dataset = &s.samples};
	assert_int_equal(sample_maker_open(&other, &options, &s.sizes, &s.err), 0);
	for (int worker = 0; worker < 2; worker++) {
		for (size_t i = 0; i < PARTS; i++) {
			if (sequences_make(&s, &file, i))
				fail_msg("%s", s.err.text);
			for (size_t t = 0; t < LENGTH; t++) {
				bool begin = false;
				for (size_t b = 0; b < sizeof begins / sizeof *begins; b++)
					begin = begin || begins[b] == i * LENGTH + t + 1;
				assert_int_equal(s.labels[t],
					begin ? BATCH_LABEL_MASKED : id_at(i * LENGTH + t + 1));
			}
		}
		const struct sample_maker first = s.maker;
		s.maker = other;
		other = first;
	}
	sample_maker_close(&other);
	sequences_close(&s);
}

/* ---- what lies --------------------------------------------------------------------------------- */

static void refused(int code, const struct error *err, const char *why)
{
	if (code != -EINVAL || !strstr(err->text, why))
		fail_msg("%d '%s' instead of '%s'", code, err->text, why);
}

static void ids_beyond_the_vocabulary_are_refused(void **state)
{
	struct bytes file;
	struct sequences s;
	(void)state;
	make_tokens(&file, 4);
	sequences_open(&s, "plain.bin", file.size, "tokens.type=uint32", "tokens.packing=stream");
	for (size_t at = 0; at <= 2 * LENGTH; at++) {
		static const uint32_t wrong[] = {VOCABULARY, 0x7fffffff, 0x80000000, UINT32_MAX};
		for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
			char why[64];
			make_tokens(&file, 4);
			memcpy(file.data + 4 * at, &wrong[i], 4);
			(void)snprintf(
				why, sizeof why, "id %u is not in the vocabulary of 100", wrong[i]);
			const int code = sequences_make(&s, &file, 0);
			if (at <= LENGTH)
				refused(code, &s.err, why);
			else
				assert_int_equal(code, 0);
		}
	}
	sequences_close(&s);
}

static void files_that_are_no_tokens_are_refused(void **state)
{
	struct config config;
	struct dataset samples;
	struct error err = {""};
	struct sample found;
	struct sample list[2] = {{.path = "a.bin", .bytes = 16}, {.path = "b.bin", .bytes = 18}};
	const struct dataset files = {.root = fixture_root, .samples = list, .count = 2};
	(void)state;
	refused(sample_look(sample_kinds[SAMPLE_KIND_TOKENS], "", 0, 17, &found, &err), &err,
		"17 bytes, an odd number");
	config_init(&config);
	fixture_set(&config, "sample.kind=tokens");
	fixture_set(&config, "tokens.length=8");
	fixture_set(&config, "tokens.type=uint32");
	refused(sample_cut_files(&config, &files, &samples, &err), &err,
		"'b.bin': 18 bytes are no whole number of ids of 4 bytes");
	/* Nine tokens are one sequence of eight with its labels; eight are none. */
	fixture_set(&config, "tokens.type=uint16");
	assert_int_equal(sample_cut_files(&config, &files, &samples, &err), 0);
	assert_int_equal(samples.count, 1);
	assert_string_equal(samples.samples[0].path, "b.bin");
	assert_int_equal(samples.max_bytes, 18);
	/* A list that was split already is taken as it is. */
	struct dataset again;
	assert_int_equal(sample_cut_files(&config, &samples, &again, &err), 0);
	assert_ptr_equal(again.samples, samples.samples);
	sample_cut_release(&again, &samples);
	sample_cut_release(&samples, &files);
	list[1].bytes = 16;
	assert_int_equal(sample_cut_files(&config, &files, &samples, &err), -ENODATA);
	assert_non_null(strstr(err.text, "as long as one sample"));
	config_release(&config);
}

/* What a header declares is used, or the difference is an error. */
static void headers_are_no_ids(void **state)
{
	enum { HEADER = 1024, IDS = 40, NPY = 128 };
	static const char npy[] =
		"\x93NUMPY\1\0v\0{'descr': '<u4', 'fortran_order': False, 'shape': (40,), }";
	const struct sample_ops *const kind = sample_kinds[SAMPLE_KIND_TOKENS];
	struct bytes file = {.size = 0};
	struct sample found;
	struct error err = {""};
	struct config config;
	struct dataset samples;
	(void)state;
	put_le(&file, 20240520, 4);
	put_le(&file, 1, 4);
	put_le(&file, IDS, 4);
	memset(file.data + file.size, 0, HEADER - file.size);
	file.size = HEADER;
	for (uint64_t i = 0; i < IDS; i++)
		put_le(&file, i, 2);
	assert_int_equal(sample_look(kind, file.data, HEADER, file.size, &found, &err), 0);
	assert_int_equal(found.width, HEADER);
	assert_int_equal(found.height, 2);
	refused(sample_look(kind, file.data, HEADER, file.size + 2, &found, &err), &err,
		"says 40 tokens of 2 bytes");
	config_init(&config);
	fixture_set(&config, "sample.kind=tokens");
	fixture_set(&config, "tokens.length=8");
	assert_int_equal(sample_look(kind, file.data, HEADER, file.size, &found, &err), 0);
	found.path = "a.bin";
	const struct dataset files = {.root = fixture_root, .samples = &found, .count = 1};
	assert_int_equal(sample_cut_files(&config, &files, &samples, &err), 0);
	assert_int_equal(samples.count, (IDS - 1) / 8);
	assert_int_equal(samples.offsets[1], HEADER + 16);
	sample_cut_release(&samples, &files);
	fixture_set(&config, "tokens.type=uint32");
	refused(sample_cut_files(&config, &files, &samples, &err), &err,
		"set tokens.type = uint16");
	file.size = NPY + 4 * IDS;
	memset(file.data, ' ', NPY);
	memcpy(file.data, npy, sizeof npy - 1);
	assert_int_equal(sample_look(kind, file.data, NPY, file.size, &found, &err), 0);
	assert_int_equal(found.width, NPY);
	assert_int_equal(found.height, 4);
	memcpy(strchr((char *)file.data + 10, '<'), "<f4", 3);
	refused(sample_look(kind, file.data, NPY, file.size, &found, &err), &err, "elements 'f4'");
	config_release(&config);
}

static void indexes_that_lie_are_refused(void **state)
{
	static const uint32_t lengths[] = {3, 4};
	static const uint64_t good[] = {0, 1, 2};
	static const uint64_t behind[] = {0, 3};
	static const uint64_t back[] = {0, 1, 0};
	struct bytes index;
	struct token_index parsed;
	struct error err = {""};
	(void)state;
	make_index(&index, 8, lengths, 2, good, 3);
	assert_int_equal(token_index_parse(index.data, index.size, 2, &parsed, &err), 0);
	assert_int_equal(parsed.tokens, 7);
	assert_int_equal(parsed.count, 2);
	assert_int_equal(parsed.begins[1], 3);
	assert_int_equal(token_index_find(&parsed, 0), 0);
	assert_int_equal(token_index_find(&parsed, 1), 1);
	assert_int_equal(token_index_find(&parsed, 4), 2);
	token_index_release(&parsed);
	refused(token_index_parse(index.data, index.size, 4, &parsed, &err), &err,
		"its ids are uint16, and tokens.type asks for ids of 4 bytes");
	for (size_t size = 0; size < index.size; size++) {
		uint8_t *const own = malloc(size + 1);
		memcpy(own, index.data, size);
		refused(token_index_parse(own, size, 2, &parsed, &err), &err, "index: ");
		free(own);
	}
	index.data[8] = 1;
	refused(token_index_parse(index.data, index.size, 2, &parsed, &err), &err,
		"none of Megatron's");
	make_index(&index, 8, lengths, 2, behind, 2);
	refused(token_index_parse(index.data, index.size, 2, &parsed, &err), &err,
		"begins behind its 2 sequences");
	make_index(&index, 8, lengths, 2, back, 3);
	refused(token_index_parse(index.data, index.size, 2, &parsed, &err), &err, "index: ");
	make_index(&index, 8, lengths, 2, good, 3);
	index.data[TOKEN_INDEX_HEAD_BYTES + 8 + 8] = 8; /* where the second sequence begins */
	refused(token_index_parse(index.data, index.size, 2, &parsed, &err), &err,
		"sequence 1 does not begin where");
	make_index(&index, 8, lengths, 2, good, 3);
	index.data[TOKEN_INDEX_HEAD_BYTES + 3] = 0x80;
	refused(token_index_parse(index.data, index.size, 2, &parsed, &err), &err,
		"sequence 0 has a negative length");
	make_index(&index, 8, lengths, 2, good, 3);
	memset(index.data + 18, 0xff, 8); /* how many sequences */
	refused(token_index_parse(index.data, index.size, 2, &parsed, &err), &err, "cut short");
}

/* Fewer tokens than the data has: the sequences that it knows are good, the others are bad. */
/* Of files that are longer, as a foreign one, and shorter, as a torn one. */
static void an_index_of_other_data_is_refused(void **state)
{
	static const uint32_t lengths[] = {20, 10};
	static const uint64_t marks[] = {0, 1, 2};
	static const size_t tokens[] = {31, 29};
	struct bytes file;
	struct bytes index;
	struct sequences s;
	(void)state;
	make_tokens(&file, 2);
	make_index(&index, 8, lengths, 2, marks, 3);
	fixture_write("short.idx", index.data, index.size);
	for (size_t i = 0; i < 2; i++) {
		fixture_write("short.bin", file.data, 2 * tokens[i]);
		sequences_open(&s, "short.bin", 2 * tokens[i], "tokens.type=uint16",
			"tokens.packing=documents");
		refused(sequences_make(&s, &file, 0), &s.err, "index and data disagree");
		sequences_close(&s);
	}
	fixture_write("short.bin", file.data, 60);
	sequences_open(&s, "short.bin", 60, "tokens.type=uint16", "tokens.packing=documents");
	assert_int_equal(sequences_make(&s, &file, 0), 0);
	sequences_close(&s);
	fixture_write("short.idx", "MMIDIDX", 7);
	sequences_open(
		&s, "short.bin", file.size, "tokens.type=uint16", "tokens.packing=documents");
	refused(sequences_make(&s, &file, 0), &s.err, "none of Megatron's");
	sequences_close(&s);
}

static void settings_that_cannot_be_are_refused(void **state)
{
	static const struct {
		const char *key, *why;
	} bad[] = {
		{"tokens.vocabulary=50256", "'tokens.end_of_document' = 50256 is not below"},
		{"tokens.vocabulary=65537", "set tokens.type = uint32"},
		{"volume.flip=0", "about sample.kind = volume"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct config config;
		struct error err = {""};
		config_init(&config);
		fixture_set(&config, "sample.kind=tokens");
		fixture_set(&config, bad[i].key);
		refused(sample_validate(&config, &err), &err, bad[i].why);
		config_release(&config);
	}
}

/* ---- the recipe -------------------------------------------------------------------------------- */

/* The same bytes for any number of threads; ids by Zipf's law, documents as long as was asked for. */
static void generated_tokens_are_as_promised(void **state)
{
	uint64_t first = 0;
	(void)state;
	for (unsigned threads = 1; threads <= 3; threads += 2) {
		char name[32];
		struct config config;
		struct dataset dataset;
		struct dataset_generated made;
		struct error err = {""};
		(void)snprintf(name, sizeof name, "texts-%u", threads);
		fixture_config(&config, name, "dataset.recipe=tokens", "sample.kind=tokens",
			"dataset.samples=5", "dataset.classes=1", "dataset.file_tokens=20000",
			"dataset.document_tokens=100", "dataset.size_sigma=0.5",
			"tokens.vocabulary=1000", "tokens.end_of_document=3", NULL);
		const struct dataset_control control = {.threads = threads};
		if (dataset_generate(&config, &control, &made, &err) ||
			dataset_open(&config, NULL, &dataset, &err))
			fail_msg("%s", err.text);
		assert_int_equal(dataset.count, 5);
		uint64_t all = 0;
		for (size_t i = 0; i < dataset.count; i++)
			all = all * 31 + dataset.samples[i].checksum;
		if (threads == 1)
			first = all;
		assert_true(all == first);
		assert_int_equal(dataset.samples[0].bytes, 40000);
		dataset_close(&dataset);
		config_release(&config);
	}
	char path[FIXTURE_PATH];
	char *bytes;
	size_t size;
	struct error err = {""};
	size_t counts[1000] = {0};
	assert_int_equal(files_read(fixture_path("texts-1/class_0000/00000002.bin", path), 1 << 20,
				 &bytes, &size, &err),
		0);
	for (size_t i = 0; i + 1 < size; i += 2) {
		const size_t id = (uint8_t)bytes[i] | (size_t)(uint8_t)bytes[i + 1] << 8;
		assert_true(id < 1000);
		counts[id]++;
	}
	free(bytes);
	/* The mean of a log-normal length is its median times exp(sigma^2 / 2), here 113. */
	assert_true(counts[3] > 20000 / 180 && counts[3] < 20000 / 80);
	/* ln 2 / ln 1000 of the others are the most frequent, half as many the next but one. */
	assert_true(fabs((double)counts[0] / 20000 - log(2) / log(1000)) < 0.02);
	assert_true(counts[0] > counts[1] && counts[1] > counts[9] && counts[9] > 5);
	size_t rare = 0;
	for (size_t id = 500; id < 1000; id++)
		rare += counts[id];
	assert_true(fabs((double)rare / 20000 - log(2) / log(1000)) < 0.02);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequences_follow_each_other),
		cmocka_unit_test(sequences_are_cut_out_of_large_requests),
		cmocka_unit_test(labels_of_the_next_document_are_masked),
		cmocka_unit_test(an_index_says_where_documents_begin),
		cmocka_unit_test(ids_beyond_the_vocabulary_are_refused),
		cmocka_unit_test(files_that_are_no_tokens_are_refused),
		cmocka_unit_test(headers_are_no_ids),
		cmocka_unit_test(indexes_that_lie_are_refused),
		cmocka_unit_test(an_index_of_other_data_is_refused),
		cmocka_unit_test(settings_that_cannot_be_are_refused),
		cmocka_unit_test(generated_tokens_are_as_promised),
	};
	return cmocka_run_group_tests_name("tokens", tests, fixture_setup, fixture_teardown);
}
