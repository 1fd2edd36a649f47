/* A data set made by hand in a temporary folder, for the tests of the sources: files of given sizes
 * whose bytes are a function of (seed, sample), and a loop that reads them all and compares. */
#ifndef MLBENCH_TESTS_SOURCE_FIXTURE_H
#define MLBENCH_TESTS_SOURCE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/memory.h"
#include "harness/base/rng.h"
#include "harness/config/config.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
	char root[64];
	struct dataset dataset;
	struct config config;
};

static inline void fixture_bytes(uint32_t sample, uint8_t *bytes, size_t size)
{
	struct rng rng;
	rng_init(&rng, 42, sample);
	for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
		const uint64_t word = rng_next(&rng);
		memcpy(bytes + i, &word, size - i < sizeof word ? size - i : sizeof word);
	}
}

static inline void fixture_path(const struct fixture *fixture, uint32_t sample, char path[128])
{
	(void)snprintf(path, 128, "%s/%s", fixture->root, fixture->dataset.samples[sample].path);
}

/* Writes a sample's file with so many bytes, whatever the manifest says. */
static inline void fixture_write(const struct fixture *fixture, uint32_t sample, size_t size)
{
	char path[128];
	fixture_path(fixture, sample, path);
	uint8_t *bytes = malloc(size + 1);
	assert_non_null(bytes);
	fixture_bytes(sample, bytes, size);
	struct error err;
	assert_int_equal(files_write_atomic(path, bytes, size, &err), 0);
	free(bytes);
}

static inline void fixture_open(struct fixture *fixture, const size_t *sizes, size_t count)
{
	*fixture = (struct fixture){0};
	const char *const folder = getenv("TMPDIR");
	(void)snprintf(fixture->root, sizeof fixture->root, "%.32s/mlbench-test-XXXXXX",
		folder ? folder : "/tmp");
	assert_non_null(mkdtemp(fixture->root));
	assert_int_equal(chmod(fixture->root, 0755), 0); /* some tests read as another user */
	fixture->dataset.root = fixture->root;
	fixture->dataset.count = count;
	fixture->dataset.samples = calloc(count, sizeof *fixture->dataset.samples);
	assert_non_null(fixture->dataset.samples);
	for (uint32_t i = 0; i < count; i++) {
		char *name = malloc(32);
		assert_non_null(name);
		(void)snprintf(name, 32, "c%u/%u.bin", i % 3, i);
		fixture->dataset.samples[i] = (struct sample){.path = name, .bytes = sizes[i]};
		fixture->dataset.total_bytes += sizes[i];
		if (sizes[i] > fixture->dataset.max_bytes)
			fixture->dataset.max_bytes = sizes[i];
		if (i < 3) {
			char path[128];
			(void)snprintf(path, sizeof path, "%s/c%u", fixture->root, i);
			struct error err;
			assert_int_equal(files_make_folder(path, &err), 0);
		}
		fixture_write(fixture, i, sizes[i]);
	}
	config_init(&fixture->config);
}

static inline void fixture_close(struct fixture *fixture)
{
	struct error err;
	assert_int_equal(files_remove_tree(fixture->root, &err), 0);
	for (size_t i = 0; i < fixture->dataset.count; i++)
		free((void *)(uintptr_t)fixture->dataset.samples[i].path);
	free(fixture->dataset.samples);
	config_release(&fixture->config);
}

static inline void fixture_set(struct fixture *fixture, enum key_id key, const char *value)
{
	struct error err = {""};
	if (config_set_key(&fixture->config, key, value, &err) != 0)
		fail_msg("%s", err.text);
}

static inline size_t fixture_round_up(size_t size)
{
	return (size + READ_ALIGN_BYTES - 1) / READ_ALIGN_BYTES * READ_ALIGN_BYTES;
}

/* What a read of a sample must give. */
struct expectation {
	int status;
	size_t size;
};

/* One reader of a loop over all samples. */
struct fixture_reader {
	struct fixture *fixture;
	struct source *source;
	const struct expectation *expected; /* (count); NULL: status 0 and the manifest's size */
	uint8_t *blobs;
	size_t room; /* of a blob */
	unsigned index, threads, in_flight;
	unsigned failures; /* differences found; cmocka's asserts are not for threads */
	char first[128];
	pthread_t thread;
};

__attribute__((format(printf, 2, 3))) static inline void fixture_complain(
	struct fixture_reader *self, const char *format, ...)
{
	if (self->failures++ > 0)
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(self->first, sizeof self->first, format, args);
	va_end(args);
}

static inline void fixture_check(struct fixture_reader *self, const struct read_request *request)
{
	const uint32_t i = request->sample;
	const struct expectation usual = {0, (size_t)self->fixture->dataset.samples[i].bytes};
	const struct expectation *const want = self->expected ? &self->expected[i] : &usual;
	if (request->status != want->status) {
		fixture_complain(
			self, "sample %u: status %d, not %d", i, request->status, want->status);
		return;
	}
	if (request->size != want->size) {
		fixture_complain(
			self, "sample %u: %zu bytes, not %zu", i, request->size, want->size);
		return;
	}
	if (request->done_ns == 0 || request->submitted_ns == 0 ||
		request->done_ns < request->submitted_ns)
		fixture_complain(self, "sample %u: times", i);
	uint8_t *bytes = malloc(request->size + 1);
	fixture_bytes(i, bytes, request->size);
	if (memcmp(bytes, request->data, request->size) != 0)
		fixture_complain(self, "sample %u: other bytes", i);
	free(bytes);
}

/* Reads samples index, index + threads, … with `in_flight` at a time.  Every other request has only
 * the room that its sample needs. */
static inline void *fixture_read(void *argument)
{
	struct fixture_reader *const self = argument;
	struct error err = {""};
	struct reader *reader;
	if (source_reader_open(&reader, self->source, self->index, &err) != 0) {
		fixture_complain(self, "%.100s", err.text);
		return NULL;
	}
	struct read_request *requests = calloc(self->in_flight, sizeof *requests);
	struct read_request **idle = calloc(self->in_flight, sizeof(struct read_request *));
	size_t idle_count = 0;
	for (unsigned i = 0; i < self->in_flight; i++) {
		requests[i].buffer = self->blobs + i * self->room;
		idle[idle_count++] = &requests[i];
	}
	size_t next = self->index;
	while (next < self->fixture->dataset.count || idle_count < self->in_flight) {
		while (idle_count > 0 && next < self->fixture->dataset.count) {
			struct read_request *const request = idle[--idle_count];
			const size_t bytes = (size_t)self->fixture->dataset.samples[next].bytes;
			request->sample = (uint32_t)next;
			request->ticket = next * 3;
			request->room = next % 2 ? fixture_round_up(bytes) : self->room;
			memset(request->buffer, 0xA5, self->room);
			source_submit(reader, request);
			next += self->threads;
		}
		const size_t done = source_reap(
			reader, idle + idle_count, self->in_flight - idle_count, NS_PER_S);
		for (size_t i = 0; i < done; i++) {
			fixture_check(self, idle[idle_count + i]);
			if (idle[idle_count + i]->ticket !=
				(uint64_t)idle[idle_count + i]->sample * 3)
				fixture_complain(self, "ticket");
		}
		idle_count += done;
	}
	if (reader->in_flight != 0 && !reader->chunks) /* which read ahead */
		fixture_complain(self, "in flight: %u", reader->in_flight);
	source_reader_close(reader);
	free((void *)idle);
	free(requests);
	return NULL;
}

/* Opens the source of fixture->config; tune (may be NULL) may change it before readers open. */
typedef void fixture_tune(struct source *source, const void *context);

struct fixture_loop {
	const struct expectation *expected;
	fixture_tune *tune;
	const void *context;
	struct store *store;         /* read through it; NULL: the folder's own */
	unsigned in_flight;          /* 0: read.depth */
	struct source_counts counts; /* out */
	char notes[512];             /* out */
};

/* Reads everything, with read.threads readers, and fails the test at the first difference. */
static inline void fixture_loop(struct fixture *fixture, struct fixture_loop *loop)
{
	const unsigned threads = (unsigned)config_integer(&fixture->config, KEY_READ_THREADS);
	const unsigned depth = loop->in_flight
				       ? loop->in_flight
				       : (unsigned)config_integer(&fixture->config, KEY_READ_DEPTH);
	const size_t room = fixture_round_up((size_t)fixture->dataset.max_bytes + 1);
	struct memory_block blobs;
	assert_int_equal(memory_map(&blobs, room * depth * threads, false), 0);
	struct source *source;
	struct error err = {""};
	const int code = loop->store ? source_open_in(&source, loop->store, &fixture->config,
					       &fixture->dataset, blobs.data, blobs.size, 0, &err)
				     : source_open(&source, &fixture->config, &fixture->dataset,
					       blobs.data, blobs.size, 0, &err);
	if (code != 0)
		fail_msg("%s", err.text);
	if (loop->tune)
		loop->tune(source, loop->context);
	struct fixture_reader *readers = calloc(threads, sizeof *readers);
	assert_non_null(readers);
	for (unsigned i = 0; i < threads; i++) {
		readers[i] = (struct fixture_reader){.fixture = fixture,
			.source = source,
			.expected = loop->expected,
			.room = room,
			.index = i,
			.threads = threads,
			.in_flight = depth,
			.blobs = (uint8_t *)blobs.data + i * depth * room};
		assert_int_equal(
			pthread_create(&readers[i].thread, NULL, fixture_read, &readers[i]), 0);
	}
	for (unsigned i = 0; i < threads; i++) {
		(void)pthread_join(readers[i].thread, NULL);
		if (readers[i].failures)
			fail_msg("reader %u: %u failures, first: %s (notes: %s)", i,
				readers[i].failures, readers[i].first, source->notes);
	}
	free(readers);
	source_read_counts(source, &loop->counts);
	memcpy(loop->notes, source->notes, sizeof loop->notes);
	source_close(source);
	memory_unmap(&blobs);
}

/* The engines with what they can be told. */
struct variant {
	const char *engine, *direct, *linked, *registered, *threads, *depth;
};

static const struct variant variants[] = {
	{"memory", "off", "off", "off", "1", "8"},
	{"memory", "off", "off", "off", "3", "32"},
	{"pread", "off", "off", "off", "1", "1"},
	{"pread", "on", "off", "off", "1", "1"},
	{"pread", "on", "off", "off", "4", "1"},
	{"mmap", "off", "off", "off", "1", "1"},
	{"mmap", "off", "off", "off", "3", "4"},
	{"io_uring", "off", "on", "on", "1", "1"},
	{"io_uring", "off", "on", "on", "1", "8"},
	{"io_uring", "on", "on", "on", "1", "16"},
	{"io_uring", "on", "on", "off", "1", "16"},
	{"io_uring", "on", "off", "on", "1", "16"},
	{"io_uring", "on", "off", "off", "1", "7"},
	{"io_uring", "off", "off", "off", "1", "64"},
	{"io_uring", "off", "off", "on", "2", "3"},
	{"io_uring", "on", "on", "on", "3", "64"},
	{"io_uring", "off", "on", "off", "4", "5"},
};

static inline bool fixture_can_read(const char *engine)
{
	char why[256];
	for (size_t i = 0; source_list[i]; i++)
		if (strcmp(source_list[i]->name, engine) == 0) {
			const char *const reason =
				source_list[i]->only ? "it reads from no folder"
				: source_list[i]->unavailable
					? source_list[i]->unavailable(why, sizeof why)
					: NULL;
			if (reason)
				print_message("skipped %s: %s\n", engine, reason);
			return reason == NULL;
		}
	fail_msg("no engine '%s'", engine);
	return false;
}

static inline void fixture_apply(struct fixture *fixture, const struct variant *variant)
{
	fixture_set(fixture, KEY_READ_ENGINE, variant->engine);
	fixture_set(fixture, KEY_READ_DIRECT, variant->direct);
	fixture_set(fixture, KEY_READ_LINKED, variant->linked);
	fixture_set(fixture, KEY_READ_REGISTERED, variant->registered);
	fixture_set(fixture, KEY_READ_THREADS, variant->threads);
	fixture_set(fixture, KEY_READ_DEPTH, variant->depth);
}

#endif
