/* The seam between engines and stores: samples that are parts of files, and a store that is no folder. */
#include "tests/unit/source_fixture.h"
#include "workloads/source/engines.h"
#include "workloads/source/residency.h"

#include <fcntl.h>

enum { SAMPLES = 90, PACKS = 3, PER_PACK = SAMPLES / PACKS };

/* --- packed files --------------------------------------------------------------------------------- */

/* Samples of a pack one behind the other; every third begins on a block, the others anywhere. */
struct packed {
	struct fixture fixture;
	uint64_t offsets[SAMPLES];
	uint8_t *packs[PACKS];
	size_t bytes[PACKS];
};

static size_t place_sample(size_t at, uint32_t sample)
{
	return sample % 3 == 0 ? fixture_round_up(at) : at + sample;
}

static void write_file(
	const struct fixture *fixture, const char *name, const void *data, size_t size)
{
	char path[128];
	struct error err = {""};
	(void)snprintf(path, sizeof path, "%s/%s", fixture->root, name);
	if (files_write_atomic(path, data, size, &err) != 0)
		fail_msg("%s", err.text);
}

static void packed_open(struct packed *packed)
{
	size_t sizes[SAMPLES];
	struct rng rng;
	rng_init(&rng, 3, 0);
	for (size_t i = 0; i < SAMPLES; i++)
		sizes[i] = i % 30 < 6 ? (size_t[]){0, 1, 511, 4095, 4096, 8192}[i % 30]
				      : rng_below(&rng, 40000);
	*packed = (struct packed){0};
	fixture_open(&packed->fixture, sizes, SAMPLES);
	struct dataset *const dataset = &packed->fixture.dataset;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		const unsigned pack = i / PER_PACK;
		packed->offsets[i] = place_sample(packed->bytes[pack], i);
		packed->bytes[pack] = (size_t)packed->offsets[i] + sizes[i];
		free((void *)(uintptr_t)dataset->samples[i].path);
		char *const name = malloc(32);
		assert_non_null(name);
		(void)snprintf(name, 32, "pack%u.bin", pack);
		dataset->samples[i].path = name;
	}
	for (uint32_t i = 0; i < SAMPLES; i++) {
		const unsigned pack = i / PER_PACK;
		if (!packed->packs[pack])
			packed->packs[pack] = calloc(1, packed->bytes[pack] + 1);
		assert_non_null(packed->packs[pack]);
		fixture_bytes(i, packed->packs[pack] + packed->offsets[i], sizes[i]);
	}
	for (unsigned p = 0; p < PACKS; p++)
		write_file(&packed->fixture, dataset->samples[p * PER_PACK].path, packed->packs[p],
			packed->bytes[p]);
	dataset->offsets = packed->offsets;
}

static void packed_close(struct packed *packed)
{
	for (unsigned p = 0; p < PACKS; p++)
		free(packed->packs[p]);
	fixture_close(&packed->fixture);
}

/* Sizes of requests that samples are cut out of; 0: each is read by itself. */
static const char *const requests[] = {"0", "1", "50000", "1MiB"};

/* All engines read the same parts of the same files, however large their requests are. */
static void test_parts(void **state)
{
	struct packed packed;
	packed_open(&packed);
	fixture_set(&packed.fixture, KEY_READ_REQUEST, *state);
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		if (!fixture_can_read(variants[i].engine))
			continue;
		fixture_apply(&packed.fixture, &variants[i]);
		struct fixture_loop loop = {0};
		fixture_loop(&packed.fixture, &loop);
		assert_int_equal(loop.counts.files, SAMPLES);
		assert_int_equal(loop.counts.bytes, packed.fixture.dataset.total_bytes);
		assert_int_equal(loop.counts.errors, 0);
		assert_int_equal(loop.counts.retries, 0);
	}
	packed_close(&packed);
}

/* The same where the parts of a file have one name, as the data set's own have: readers know it again. */
static void test_parts_of_files_that_stay_open(void **state)
{
	static const char *const names[PACKS] = {"pack0.bin", "pack1.bin", "pack2.bin"};
	(void)state;
	struct packed packed;
	packed_open(&packed);
	struct dataset *const dataset = &packed.fixture.dataset;
	struct sample *const own = dataset->samples;
	struct sample samples[SAMPLES];
	memcpy(samples, own, sizeof samples);
	for (uint32_t i = 0; i < SAMPLES; i++)
		samples[i].path = names[i / PER_PACK];
	dataset->samples = samples;
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		if (!fixture_can_read(variants[i].engine))
			continue;
		fixture_apply(&packed.fixture, &variants[i]);
		struct fixture_loop loop = {0};
		fixture_loop(&packed.fixture, &loop);
		assert_int_equal(loop.counts.files, SAMPLES);
		assert_int_equal(loop.counts.bytes, dataset->total_bytes);
		assert_int_equal(loop.counts.errors, 0);
	}
	dataset->samples = own;
	packed_close(&packed);
}

/* Pack 0 ends within its sample 20, so that those after it are behind its end; pack 1 is gone; pack 2 is
 * a folder. */
static void test_parts_that_are_not_there(void **state)
{
	struct packed packed;
	packed_open(&packed);
	struct fixture *const fixture = &packed.fixture;
	fixture_set(fixture, KEY_READ_REQUEST, *state);
	struct expectation expected[SAMPLES];
	/* Whether nothing can be read from a folder is a matter of the kernel's. */
	fixture->dataset.samples[2 * PER_PACK].bytes = 1;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		const size_t bytes = (size_t)fixture->dataset.samples[i].bytes;
		const int lost[PACKS] = {i > 20 && bytes > 0 ? -ENODATA : 0, -ENOENT, -EISDIR};
		expected[i].status = i == 20 ? -ENODATA : lost[i / PER_PACK];
		expected[i].size = expected[i].status ? 0 : bytes;
	}
	assert_true(fixture->dataset.samples[20].bytes > 2);
	write_file(fixture, "pack0.bin", packed.packs[0],
		(size_t)(packed.offsets[20] + fixture->dataset.samples[20].bytes / 2));
	char path[128];
	fixture_path(fixture, PER_PACK, path);
	assert_int_equal(unlink(path), 0);
	fixture_path(fixture, 2 * PER_PACK, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		if (!fixture_can_read(variants[i].engine))
			continue;
		fixture_apply(fixture, &variants[i]);
		struct fixture_loop loop = {.expected = expected};
		fixture_loop(fixture, &loop);
		assert_int_equal(loop.counts.files, SAMPLES);
	}
	char text[ERROR_REASON_BYTES];
	assert_string_equal(
		source_status_text(-ENODATA, text), "its file ends before the sample does");
	assert_string_equal(source_status_text(-EIO, text), "Input/output error");
	packed_close(&packed);
}

/* Samples in an order that no chunk is made for, and hints that are wrong: every one is right, however few
 * buffers there are, and stays so while it is held. */
static void test_large_requests_in_any_order(void **state)
{
	(void)state;
	enum { AT_ONCE = 5, PASSES = 3, KEPT = 7 };
	struct packed packed;
	struct source *source;
	struct reader *reader;
	struct error err = {""};
	packed_open(&packed);
	struct fixture *const fixture = &packed.fixture;
	const size_t room = fixture_round_up((size_t)fixture->dataset.max_bytes + 1);
	struct memory_block blobs;
	assert_int_equal(memory_map(&blobs, AT_ONCE * room, false), 0);
	fixture_set(fixture, KEY_READ_REQUEST, "50000");
	fixture_set(fixture, KEY_READ_DEPTH, "2");
	assert_true(source_lookahead(&fixture->config, &fixture->dataset) > 0);
	assert_true(source_bytes(&fixture->config, &fixture->dataset) > 4UL * 50000);
	if (source_open(&source, &fixture->config, &fixture->dataset, blobs.data, blobs.size, 0,
		    &err) ||
		source_reader_open(&reader, source, 0, &err))
		fail_msg("%s", err.text);
	struct fixture_reader self = {.fixture = fixture};
	struct read_request all[AT_ONCE];
	struct read_request kept[KEPT] = {{0}};
	size_t lent = 0;
	size_t seen = 0;
	for (unsigned pass = 0; pass < PASSES * SAMPLES / AT_ONCE; pass++) {
		struct read_request *done[AT_ONCE];
		for (uint32_t i = 0; i < AT_ONCE; i++) {
			const uint32_t at = pass * AT_ONCE + i;
			all[i] = (struct read_request){.sample = at * 37 % SAMPLES,
				.buffer = (uint8_t *)blobs.data + i * room,
				.room = room,
				.ahead = at * 53 % (SAMPLES + 1)};
			source_submit(reader, &all[i]);
		}
		for (size_t got = 0; got < AT_ONCE;) {
			const size_t count = source_reap(reader, done, AT_ONCE, NS_PER_S);
			for (size_t i = 0; i < count; i++) {
				fixture_check(&self, done[i]);
				struct read_request *const oldest = &kept[seen++ % KEPT];
				if (oldest->lent)
					fixture_check(&self, oldest);
				source_let_go(oldest);
				*oldest = *done[i];
				lent += oldest->lent != NULL;
			}
			got += count;
		}
	}
	assert_in_range(lent, 1, PASSES * SAMPLES - 1); /* the others were copied */
	struct source_counts counts;
	source_read_counts(source, &counts);
	assert_true(counts.requests >= PASSES * (fixture->dataset.total_bytes / 50000));
	assert_string_equal(self.first, "");
	assert_int_equal(self.failures, 0);
	source_reader_close(reader);
	source_close(source);
	memory_unmap(&blobs);
	packed_close(&packed);
}

/* A pack is counted once, however many samples it holds. */
static void test_residency_of_packs(void **state)
{
	(void)state;
	struct packed packed;
	packed_open(&packed);
	struct residency residency;
	struct error err = {""};
	if (residency_measure(&packed.fixture.dataset, 0, &residency, &err) != 0) {
		print_message("skipped: %s\n", err.text);
		packed_close(&packed);
		skip();
	}
	uint64_t pages = 0;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	for (unsigned p = 0; p < PACKS; p++)
		pages += (packed.bytes[p] + page - 1) / page;
	assert_int_equal(residency.total_pages, pages);
	packed_close(&packed);
}

/* --- a store in memory ---------------------------------------------------------------------------- */

/* Its files are ranges of one blob, which is what an archive is. */
struct blob_store {
	struct store base;
	const uint8_t *blob;
	uint64_t begin[PACKS + 1];      /* file p is [begin[p], begin[p + 1]) */
	size_t read_most;               /* bytes of a read at most; 0: any */
	bool broken;                    /* every read fails */
	atomic_uint open_files, opened; /* now, and ever */
};

static int blob_find(const char *path)
{
	int pack = 0;
	return sscanf(path, "pack%d.bin", &pack) == 1 && pack < PACKS ? pack : -ENOENT;
}

static int blob_open(struct store *store, struct error *err)
{
	(void)store;
	return error_set(err, -ENOTSUP, "made by hand");
}

static void blob_close(struct store *store)
{
	(void)store;
}

static int blob_stat(
	struct store *base, const char *path, const union store_file *file, struct store_stat *out)
{
	(void)file;
	const struct blob_store *const store = (const struct blob_store *)base;
	const int pack = blob_find(path);
	if (pack < 0)
		return pack;
	*out = (struct store_stat){
		.kind = STORE_FILE, .bytes = store->begin[pack + 1] - store->begin[pack]};
	return 0;
}

static int blob_list(struct store *store, const char *folder, const struct store_visit *visit)
{
	(void)store;
	int code = *folder ? -ENOENT : 0;
	for (int p = 0; p < PACKS && !code; p++) {
		char name[32];
		(void)snprintf(name, sizeof name, "pack%d.bin", p);
		code = visit->name(visit->context, name, STORE_UNKNOWN, NULL);
	}
	return code;
}

static int blob_file_open(struct store *base, const char *path, bool direct, union store_file *out)
{
	struct blob_store *const store = (struct blob_store *)base;
	const int pack = blob_find(path);
	if (direct || pack < 0)
		return direct ? -EINVAL : pack;
	out->handle = &store->begin[pack];
	atomic_fetch_add(&store->open_files, 1);
	atomic_fetch_add(&store->opened, 1);
	return 0;
}

static ssize_t blob_read(
	struct store *base, union store_file file, uint64_t offset, void *buffer, size_t size)
{
	const struct blob_store *const store = (const struct blob_store *)base;
	const uint64_t *const begin = file.handle;
	const uint64_t bytes = begin[1] - begin[0];
	if (store->broken)
		return -EIO;
	if (offset >= bytes)
		return 0;
	if (size > bytes - offset)
		size = (size_t)(bytes - offset);
	if (store->read_most && size > store->read_most)
		size = store->read_most;
	memcpy(buffer, store->blob + begin[0] + offset, size);
	return (ssize_t)size;
}

static void blob_file_close(struct store *base, union store_file file)
{
	(void)file;
	atomic_fetch_sub(&((struct blob_store *)base)->open_files, 1);
}

static const char *blob_describe(const struct store *store, char *out, size_t room)
{
	(void)snprintf(out, room, "the blob '%s'", store->address);
	return out;
}

static const struct store_ops blob_ops = {
	.name = "blob",
	.summary = "a blob in memory",
	.prefix = "blob:",
	.size = sizeof(struct blob_store),
	.open = blob_open,
	.close = blob_close,
	.list = blob_list,
	.stat = blob_stat,
	.file_open = blob_file_open,
	.read = blob_read,
	.file_close = blob_file_close,
	.describe = blob_describe,
};

/* All packs in one piece of memory; returns it, to be freed. */
static uint8_t *blob_make(struct blob_store *store, const struct packed *packed)
{
	*store = (struct blob_store){
		.base = {.ops = &blob_ops, .address = "blob:test", .root_fd = -1}};
	for (unsigned p = 0; p < PACKS; p++)
		store->begin[p + 1] = store->begin[p] + packed->bytes[p];
	uint8_t *const blob = malloc(store->begin[PACKS]);
	assert_non_null(blob);
	for (unsigned p = 0; p < PACKS; p++)
		memcpy(blob + store->begin[p], packed->packs[p], packed->bytes[p]);
	store->blob = blob;
	return blob;
}

/* Every engine that a store like this one serves, chosen by name or by auto, reads from it what it reads
 * from the folder, in short reads, too. */
static void test_blob(void **state)
{
	(void)state;
	struct packed packed;
	struct blob_store store;
	packed_open(&packed);
	uint8_t *const blob = blob_make(&store, &packed);
	struct fixture *const fixture = &packed.fixture;
	struct error err;
	assert_int_equal(files_remove_tree(fixture->root, &err), 0); /* it is not read */
	assert_int_equal(files_make_folder(fixture->root, &err), 0);
	static const char *const engines[] = {"pread", "memory", "auto"};
	for (size_t e = 0; e < sizeof engines / sizeof *engines; e++)
		for (unsigned way = 0; way < 4; way++) {
			fixture_set(fixture, KEY_READ_ENGINE, engines[e]);
			fixture_set(fixture, KEY_READ_DIRECT, way & 1 ? "on" : "off");
			fixture_set(fixture, KEY_READ_THREADS, way & 1 ? "3" : "1");
			store.read_most = way & 2 ? 1000 : 0;
			struct fixture_loop loop = {.store = &store.base};
			fixture_loop(fixture, &loop);
			assert_int_equal(loop.counts.files, SAMPLES);
			assert_int_equal(loop.counts.bytes, fixture->dataset.total_bytes);
			assert_int_equal(loop.counts.errors, 0);
			assert_int_equal(store.open_files, 0);
			if (e == 2 && source_list[2]->needs_local)
				assert_non_null(strstr(loop.notes,
					"io_uring: it reads only files of this node, not from a blob in memory"));
		}
	free(blob);
	packed_close(&packed);
}

static void test_blob_that_fails(void **state)
{
	(void)state;
	struct packed packed;
	struct blob_store store;
	packed_open(&packed);
	uint8_t *const blob = blob_make(&store, &packed);
	struct expectation expected[SAMPLES];
	for (size_t i = 0; i < SAMPLES; i++)
		expected[i] = (struct expectation){-EIO, 0};
	store.broken = true;
	fixture_set(&packed.fixture, KEY_READ_ENGINE, "pread");
	struct fixture_loop loop = {.store = &store.base, .expected = expected};
	fixture_loop(&packed.fixture, &loop);
	assert_int_equal(loop.counts.errors, SAMPLES);
	store.broken = false;
	store.begin[1] = store.begin[2] = store.begin[3] = 0; /* empty files */
	for (size_t i = 0; i < SAMPLES; i++)
		if (packed.fixture.dataset.samples[i].bytes > 0)
			expected[i].status = -ENODATA;
		else
			expected[i].status = 0;
	fixture_loop(&packed.fixture, &loop);
	free(blob);
	packed_close(&packed);
}

/* A reader of parts opens each file once, where it knows it by its name; and where there are more files than
 * it leaves open, the others. */
static void test_files_stay_open(void **state)
{
	static const char *const names[PACKS] = {"pack0.bin", "pack1.bin", "pack2.bin"};
	(void)state;
	struct packed packed;
	struct blob_store store;
	packed_open(&packed);
	uint8_t *const blob = blob_make(&store, &packed);
	struct dataset *const dataset = &packed.fixture.dataset;
	struct sample *const own = dataset->samples;
	struct sample samples[SAMPLES];
	memcpy(samples, own, sizeof samples);
	for (uint32_t i = 0; i < SAMPLES; i++)
		samples[i].path = names[i / PER_PACK];
	dataset->samples = samples;
	fixture_set(&packed.fixture, KEY_READ_ENGINE, "pread");
	fixture_set(&packed.fixture, KEY_READ_DIRECT, "off");
	for (unsigned threads = 1; threads <= 256; threads *= 16) {
		char text[16];
		(void)snprintf(text, sizeof text, "%u", threads);
		fixture_set(&packed.fixture, KEY_READ_THREADS, text);
		store.opened = 0;
		struct fixture_loop loop = {.store = &store.base};
		fixture_loop(&packed.fixture, &loop);
		assert_int_equal(loop.counts.files, SAMPLES);
		assert_int_equal(loop.counts.errors, 0);
		assert_int_equal(store.open_files, 0);
		assert_true(store.opened >= PACKS);
		if (threads == 1)
			assert_int_equal(store.opened, PACKS);
	}
	dataset->samples = own;
	free(blob);
	packed_close(&packed);
}

/* What needs paths and descriptors of this node says so. */
static void test_blob_refused(void **state)
{
	(void)state;
	struct packed packed;
	struct blob_store store;
	packed_open(&packed);
	uint8_t *const blob = blob_make(&store, &packed);
	fixture_set(&packed.fixture, KEY_READ_ENGINE, "io_uring");
	struct source *source;
	struct error err = {""};
	assert_int_equal(source_open_in(&source, &store.base, &packed.fixture.config,
				 &packed.fixture.dataset, NULL, 0, 0, &err),
		-ENOTSUP);
	assert_null(source);
	assert_string_equal(err.text,
		"read.engine = io_uring cannot be used here: it reads only files of this node, not from a blob in memory; set read.engine = auto, which takes an engine that can");
	free(blob);
	packed_close(&packed);
}

/* --- listing and asking --------------------------------------------------------------------------- */

struct seen {
	struct store *store;
	unsigned files, folders, selves;
	uint64_t bytes;
	unsigned most;
};

static int see_self(void *context, const struct store_stat *what)
{
	struct seen *const seen = context;
	assert_int_equal(what->kind, STORE_FOLDER);
	assert_int_equal(seen->files + seen->folders, 0);
	seen->selves++;
	return seen->most ? 0 : -EBUSY;
}

static int see(
	void *context, const char *name, enum store_kind kind, const struct store_stat *listed)
{
	struct seen *const seen = context;
	struct store_stat what;
	assert_true(name[0] != '.');
	assert_int_equal(seen->store->ops->stat(seen->store, name, NULL, &what), 0);
	assert_true(kind == STORE_UNKNOWN || kind == what.kind);
	assert_true(!listed || (listed->kind == STORE_FILE && listed->bytes == what.bytes &&
				       listed->modified_ns == what.modified_ns));
	seen->folders += what.kind == STORE_FOLDER;
	seen->files += what.kind == STORE_FILE;
	seen->bytes += what.kind == STORE_FILE ? what.bytes : 0;
	return seen->most && seen->files == seen->most ? -ECANCELED : 0;
}

static void check_store(struct store *store, const struct packed *packed)
{
	struct seen seen = {.store = store};
	const struct store_visit all = {.name = see, .context = &seen};
	assert_int_equal(store->ops->list(store, "", &all), 0);
	assert_int_equal(seen.files, PACKS);
	assert_int_equal(seen.bytes, packed->bytes[0] + packed->bytes[1] + packed->bytes[2]);
	struct seen one = {.store = store, .most = 1};
	const struct store_visit first = {.name = see, .context = &one};
	assert_int_equal(store->ops->list(store, "", &first), -ECANCELED);
	assert_int_equal(one.files, 1);
	assert_true(store->ops->list(store, "none", &all) < 0);
	union store_file file;
	struct store_stat what;
	assert_int_equal(store->ops->file_open(store, "pack1.bin", false, &file), 0);
	assert_int_equal(store->ops->stat(store, "pack1.bin", &file, &what), 0);
	assert_int_equal(what.bytes, packed->bytes[1]);
	assert_int_equal(what.kind, STORE_FILE);
	uint8_t bytes[64];
	assert_int_equal(store->ops->read(store, file, packed->bytes[1] - 10, bytes, 64), 10);
	assert_memory_equal(bytes, packed->packs[1] + packed->bytes[1] - 10, 10);
	assert_int_equal(store->ops->read(store, file, packed->bytes[1], bytes, 64), 0);
	store->ops->file_close(store, file);
	assert_int_equal(store_file_bytes(store, "pack2.bin", NULL), packed->bytes[2]);
	assert_int_equal(store->ops->stat(store, "missing", NULL, &what), -ENOENT);
	assert_int_equal(store_file_bytes(store, "missing", NULL), 0);
	assert_int_equal(store->ops->file_open(store, "missing", false, &file), -ENOENT);
	char text[256];
	assert_non_null(strstr(store->ops->describe(store, text, sizeof text), store->address));
}

static void test_both_stores_answer_alike(void **state)
{
	(void)state;
	struct packed packed;
	struct blob_store store;
	packed_open(&packed);
	uint8_t *const blob = blob_make(&store, &packed);
	check_store(&store.base, &packed);
	struct store *local;
	struct error err = {""};
	assert_ptr_equal(store_find(packed.fixture.root), &store_local);
	assert_int_equal(store_open(&local, packed.fixture.root, &err), 0);
	check_store(local, &packed);
	struct store_stat what;
	assert_int_equal(local->ops->stat(local, "c1", NULL, &what), 0);
	assert_int_equal(what.kind, STORE_FOLDER);
	struct seen self = {.store = local};
	const struct store_visit refused = {.folder = see_self, .name = see, .context = &self};
	assert_int_equal(local->ops->list(local, "", &refused), -EBUSY);
	assert_int_equal(self.selves, 1);
	assert_int_equal(self.files, 0);
	store_close(local);
	assert_int_equal(store_open(&local, "/nonexistent/mlbench", &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot open folder '/nonexistent/mlbench'"));
	store_close(NULL);
	free(blob);
	packed_close(&packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_parts, (void *)(uintptr_t)requests[0]),
		cmocka_unit_test_prestate(test_parts, (void *)(uintptr_t)requests[1]),
		cmocka_unit_test_prestate(test_parts, (void *)(uintptr_t)requests[2]),
		cmocka_unit_test_prestate(test_parts, (void *)(uintptr_t)requests[3]),
		cmocka_unit_test_prestate(
			test_parts_that_are_not_there, (void *)(uintptr_t)requests[0]),
		cmocka_unit_test_prestate(
			test_parts_that_are_not_there, (void *)(uintptr_t)requests[3]),
		cmocka_unit_test(test_large_requests_in_any_order),
		cmocka_unit_test(test_residency_of_packs),
		cmocka_unit_test(test_blob),
		cmocka_unit_test(test_blob_that_fails),
		cmocka_unit_test(test_files_stay_open),
		cmocka_unit_test(test_parts_of_files_that_stay_open),
		cmocka_unit_test(test_blob_refused),
		cmocka_unit_test(test_both_stores_answer_alike),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
