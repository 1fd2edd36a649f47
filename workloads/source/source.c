/* The layer in front of every engine: choice, counters, time stamps and injected conditions. */
#include "workloads/source/source.h"

#include "harness/base/clock.h"
#include "harness/config/shape.h"
#include "harness/measure/timeline.h"
#include "workloads/source/chunks.h"
#include "workloads/source/engines.h"
#include "workloads/source/gzip_view.h"
#include "workloads/source/limiter.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	CLOSE_BATCH = 64,
	REASON_BYTES = 256,
	DIRECT_TRIES = 16,
	OPEN_FILES_SPARE = 8, /* opened later: results, traces, what the run shows to others */
};

#define ENGINE_ENTRY(ID, name) &source_##name,
const struct source_ops *const source_list[] = {READ_ENGINES(ENGINE_ENTRY) NULL};

enum { ENGINES = sizeof source_list / sizeof *source_list - 1 };

/* NULL, or why an engine cannot read here. */
static const char *source_why_not(const struct source_ops *ops, const struct config *config,
	const struct store_ops *store, char *reason, size_t room)
{
	if (!ops->inflates && gzip_view_wanted(config))
		return "it reads any part of a file, and those that gzip packed are inflated from their beginning on";
	if (ops->needs_local && !store->local) {
		(void)snprintf(reason, room, "it reads only files of this node, not from %s",
			store->summary);
		return reason;
	}
	if (ops->only && ops->only != store) {
		(void)snprintf(reason, room, "it reads from %s, not from %s", ops->only->summary,
			store->summary);
		return reason;
	}
	return ops->unavailable ? ops->unavailable(reason, room) : NULL;
}

/* What auto takes instead has one file in flight per thread, whatever read.depth is.  What gzip packed has
 * one reader thread in any case. */
static void source_note_depth(const struct config *config, char *why_not, size_t room)
{
	const size_t used = strlen(why_not);
	if (shape_read_depth(config) > 1 && !gzip_view_wanted(config))
		(void)snprintf(why_not + used, room - used,
			"; one file in flight per reader thread: raise read.threads instead of read.depth");
}

static const struct source_ops *source_choose_for(const struct config *config,
	const struct store_ops *store, char *why_not, size_t room, struct error *err)
{
	const int64_t choice = config_integer(config, KEY_READ_ENGINE);
	const bool one_by_one = shape_by_workers(config);
	char reason[REASON_BYTES];
	if (room > 0)
		why_not[0] = '\0';
	if (choice != READ_ENGINE_AUTO) {
		const struct source_ops *const ops = source_list[choice - 1];
		const char *const why = source_why_not(ops, config, store, reason, sizeof reason);
		if (!why)
			return ops;
		(void)error_set(err, -ENOTSUP,
			"read.engine = %s cannot be used here: %s; set read.engine = auto, which takes an engine that can",
			ops->name, why);
		return NULL;
	}
	for (size_t i = ENGINES; i-- > 0;) {
		const struct source_ops *const ops = source_list[i];
		/* One file at a time is what plain calls are for. */
		if (ops->only ? ops->only != store : one_by_one && !ops->blocking)
			continue;
		const char *const why =
			ops->automatic ? source_why_not(ops, config, store, reason, sizeof reason)
				       : "";
		if (!why && ops->blocking && room > 0 && why_not[0])
			source_note_depth(config, why_not, room);
		if (!why)
			return ops;
		if (*why && room > 0 && !why_not[0])
			(void)snprintf(why_not, room, "%s: %s", ops->name, why);
	}
	(void)error_set(err, -ENOTSUP, "no read engine works here");
	return NULL;
}

const struct source_ops *source_choose(
	const struct config *config, char *why_not, size_t room, struct error *err)
{
	return source_choose_for(
		config, store_find(config_text(config, KEY_DATASET_PATH)), why_not, room, err);
}

/* Takes what source_open made; ops->open has succeeded or was not called yet. */
static void source_release(struct source *source)
{
	if (source->limiter)
		limiter_release(source->limiter);
	free(source->limiter);
	free(source->counters);
	free(source);
}

/* calloc does not promise the padding's alignment. */
static void *source_allocate(size_t size)
{
	void *data = NULL;
	if (posix_memalign(&data, COUNTER_ALIGN_BYTES, size) != 0)
		return NULL;
	memset(data, 0, size);
	return data;
}

static int source_prepare(struct source *source)
{
	source->counters = source_allocate(source->threads * sizeof *source->counters);
	if (!source->counters)
		return -ENOMEM;
	if (limiter_wanted(source->config)) {
		source->limiter = source_allocate(sizeof *source->limiter);
		if (!source->limiter ||
			limiter_init(source->limiter, source->config, source->dataset))
			return -ENOMEM;
	}
	source->stamped = source->limiter || (source->timed && !source->ops->immediate);
	return 0;
}

int source_open_in(struct source **out, struct store *store, const struct config *config,
	const struct dataset *dataset, uint8_t *blob_memory, size_t blob_bytes, unsigned depth_most,
	struct error *err)
{
	*out = NULL;
	char why_not[REASON_BYTES];
	const struct source_ops *const ops =
		source_choose_for(config, store->ops, why_not, sizeof why_not, err);
	if (!ops)
		return -ENOTSUP;
	struct source *source = source_allocate(ops->source_size);
	if (!source)
		return error_set(err, -ENOMEM, "out of memory for the %s source", ops->name);
	source->ops = ops;
	source->config = config;
	source->dataset = dataset;
	source->store = store;
	source->blob_memory = blob_memory;
	source->blob_bytes = blob_bytes;
	source->threads = shape_readers(config);
	source->depth = ops->blocking ? 1 : shape_read_depth(config);
	source->depth_most = source->depth;
	if (depth_most > source->depth && !ops->blocking)
		source->depth_most = depth_most;
	source->timed = config_on(config, KEY_MEASURE_PROFILER);
	if (why_not[0])
		source_note(source, "%s", why_not);
	if (gzip_view_wanted(config))
		source_note(source, "inflated by the %s",
			ops->immediate ? "loading of the data set" : "reader");
	if (chunks_wanted(config, dataset, ops))
		source_note(source,
			"large requests: on, so that read times are theirs and not those of samples");
	else if (config_integer(config, KEY_READ_REQUEST) > 0)
		source_note(source, "large requests: off: %s",
			ops->immediate ? "the data set is in memory"
				       : "each sample is a file of its own");
	if (gzip_view_wanted(config) && limiter_wanted(config))
		source_note(source, "injected conditions count compressed bytes");
	int code = source_prepare(source);
	if (code)
		(void)error_set(err, code, "out of memory for the %s source", ops->name);
	else if (ops->open)
		code = ops->open(source, err);
	if (code) {
		source_release(source);
		return code;
	}
	*out = source;
	return 0;
}

int source_open(struct source **out, const struct config *config, const struct dataset *dataset,
	uint8_t *blob_memory, size_t blob_bytes, unsigned depth_most, struct error *err)
{
	*out = NULL;
	struct store *store;
	int code = store_open(&store, dataset->root, err);
	if (code)
		return code;
	code = source_open_in(
		out, store, config, dataset, blob_memory, blob_bytes, depth_most, err);
	if (code)
		store_close(store);
	else
		(*out)->owns_store = true;
	return code;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	struct store *const store = source->owns_store ? source->store : NULL;
	chunks_close(source->chunks);
	if (source->ops->close)
		source->ops->close(source);
	source_release(source);
	store_close(store);
}

const char *source_status_text(int status, char out[ERROR_REASON_BYTES])
{
	if (status != -ENODATA && status != -EBADMSG)
		return error_reason(-status, out);
	(void)snprintf(out, ERROR_REASON_BYTES, "%s",
		status == -ENODATA ? "its file ends before the sample does"
				   : "its compressed file is damaged");
	return out;
}

/* dup's number says about how many are open now. */
int source_check_open_files(const struct source *source, unsigned at_once, struct error *err)
{
	if (!source->store->ops->local)
		return 0;
	struct rlimit limit;
	const int next = dup(source->store->root_fd);
	if (next < 0)
		return error_set_errno(err, errno, "cannot open the files of the data set");
	(void)close(next);
	const unsigned needed = (unsigned)next + at_once + OPEN_FILES_SPARE;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
		return 0;
	const char *const key =
		shape_by_workers(source->config) ? "decode.workers" : "read.threads";
	return error_set(err, -EMFILE,
		"%s = %u keeps %u files open at once and needs %u descriptors, but the limit is %ju: raise ulimit -n, or reduce %s",
		key, source->threads, at_once, needed, (uintmax_t)limit.rlim_cur, key);
}

bool source_direct_works(struct source *source)
{
	const struct dataset *const dataset = source->dataset;
	struct store *const store = source->store;
	source->past_cache = true;
	for (size_t i = 0; i < dataset->count && i < DIRECT_TRIES; i++) {
		const char *const path = dataset->samples[i].path;
		union store_file file;
		const int code = store->ops->file_open(store, path, true, &file);
		if (code == 0) {
			store->ops->file_close(store, file);
			return true;
		}
		if (code == -EINVAL) {
			source->past_cache = false;
			source_note(source,
				"direct reads: off: the file system of '%s' refuses O_DIRECT",
				path);
			return false;
		}
	}
	return true;
}

/* ---- what the answers to opens and reads of one sample mean --------------------------------- */

/* One byte more than expected, to whole blocks: what O_DIRECT needs, and the end of file shows. */
static size_t progress_first_want(uint64_t expected, size_t room)
{
	if (expected >= room)
		return room;
	const size_t want = ((size_t)expected / READ_ALIGN_BYTES + 1) * READ_ALIGN_BYTES;
	return want < room ? want : room;
}

void read_progress_start(
	struct read_progress *progress, uint64_t expected, size_t room, bool direct)
{
	*progress = (struct read_progress){
		.expected = expected,
		.room = room,
		.want = progress_first_want(expected, room),
		.direct = direct,
	};
}

void read_progress_start_part(
	struct read_progress *progress, uint64_t offset, uint64_t length, size_t room, bool direct)
{
	const bool blocks = direct && offset % READ_ALIGN_BYTES == 0;
	const uint64_t want =
		blocks ? (length + READ_ALIGN_BYTES - 1) / READ_ALIGN_BYTES * READ_ALIGN_BYTES
		       : length;
	*progress = (struct read_progress){
		.offset = offset,
		.expected = length,
		.part = true,
		.room = room,
		.want = want < room ? (size_t)want : room,
		.direct = blocks,
	};
}

void read_progress_request(
	struct read_progress *progress, const struct read_request *request, bool direct)
{
	if (request->part)
		read_progress_start_part(
			progress, request->offset, request->length, request->room, direct);
	else
		read_progress_start(progress, request->length, request->room, direct);
}

static enum read_step progress_failed(struct read_progress *progress, int status)
{
	progress->status = status;
	return READ_STEP_FAILED;
}

static enum read_step progress_retry(struct read_progress *progress, int code, enum read_step step,
	struct source_counter *counter)
{
	if (progress->retries >= READ_RETRIES_MAX)
		return progress_failed(progress, code);
	progress->retries++;
	source_count(&counter->retries, 1);
	return step;
}

/* File systems refuse O_DIRECT with EINVAL, some at open, some at the read. */
static enum read_step progress_error(
	struct read_progress *progress, int code, struct source_counter *counter)
{
	if (code == -EINVAL && progress->direct) {
		progress->direct = false;
		return progress_retry(progress, code, READ_STEP_BUFFERED, counter);
	}
	if (code == -EINTR || code == -EAGAIN || code == -ECANCELED)
		return progress_retry(progress, code, READ_STEP_MORE, counter);
	return progress_failed(progress, code);
}

enum read_step read_progress_open_failed(
	struct read_progress *progress, int code, struct source_counter *counter)
{
	return progress_error(progress, code, counter);
}

/* A direct read cannot go on inside a block, and stops there only at the end of the file. */
static enum read_step progress_short(
	const struct read_progress *progress, struct source_counter *counter)
{
	source_count(&counter->short_reads, 1);
	return progress->direct && progress->got % READ_ALIGN_BYTES ? READ_STEP_SIZE
								    : READ_STEP_MORE;
}

/* Of a part, the rest of its last block is another sample's. */
static enum read_step progress_part_answer(
	struct read_progress *progress, int64_t answer, struct source_counter *counter)
{
	progress->got += (size_t)answer;
	if (progress->got >= progress->expected) {
		progress->got = (size_t)progress->expected;
		return READ_STEP_DONE;
	}
	if (answer == 0)
		return progress_failed(
			progress, progress->got < progress->want ? -ENODATA : -EFBIG);
	return progress->got < progress->want ? progress_short(progress, counter)
					      : progress_failed(progress, -EFBIG);
}

/* All that was asked for came: the file is larger than expected, or fills the room exactly. */
static enum read_step progress_filled(struct read_progress *progress)
{
	if (progress->got == progress->room)
		return READ_STEP_SIZE;
	progress->want = progress->room;
	return READ_STEP_MORE;
}

enum read_step read_progress_answer(
	struct read_progress *progress, int64_t answer, struct source_counter *counter)
{
	if (answer < 0)
		return progress_error(progress, (int)answer, counter);
	if (progress->part)
		return progress_part_answer(progress, answer, counter);
	if (answer == 0)
		return progress->want == progress->got ? READ_STEP_SIZE : READ_STEP_DONE;
	progress->got += (size_t)answer;
	if (progress->got >= progress->want)
		return progress_filled(progress);
	if (progress->got == progress->expected)
		return READ_STEP_DONE;
	return progress_short(progress, counter);
}

enum read_step read_progress_size(struct read_progress *progress, uint64_t file_bytes)
{
	if (file_bytes <= progress->offset + progress->got)
		return progress->part ? progress_failed(progress, -ENODATA) : READ_STEP_DONE;
	if (progress->got == progress->room)
		return progress_failed(progress, -EFBIG);
	progress->direct = false;
	return READ_STEP_BUFFERED;
}

/* Reads on an open file until something else has to be done than reading. */
static enum read_step source_read_open(struct store *store, const char *path, union store_file file,
	uint8_t *buffer, struct read_progress *progress, struct source_counter *counter)
{
	enum read_step step;
	do {
		const ssize_t n = store->ops->read(store, file, progress->offset + progress->got,
			buffer + progress->got, progress->want - progress->got);
		step = read_progress_answer(progress, n, counter);
	} while (step == READ_STEP_MORE);
	if (step == READ_STEP_SIZE)
		step = read_progress_size(progress, store_file_bytes(store, path, &file));
	return step;
}

enum read_step source_read_now(struct store *store, const char *path, uint8_t *buffer,
	struct read_progress *progress, struct source_counter *counter)
{
	enum read_step step;
	do {
		union store_file file;
		const uint64_t open_ns = timeline_mark();
		const int code = store->ops->file_open(store, path, progress->direct, &file);
		if (code) {
			step = read_progress_open_failed(progress, code, counter);
			continue;
		}
		const uint64_t read_ns = timeline_end(TIMELINE_OPEN, open_ns, 0);
		if (progress->timed)
			progress->opened_ns = clock_now_ns();
		step = source_read_open(store, path, file, buffer, progress, counter);
		const uint64_t close_ns = timeline_end(TIMELINE_READ, read_ns, 0);
		store->ops->file_close(store, file);
		(void)timeline_end(TIMELINE_CLOSE, close_ns, 0);
	} while (step != READ_STEP_DONE && step != READ_STEP_FAILED);
	return step;
}

int source_load_sample(struct store *store, struct gzip_views *views, const struct dataset *dataset,
	uint32_t sample, uint8_t *data, size_t room, size_t *size)
{
	const char *const path = dataset->samples[sample].path;
	struct read_request request = {.sample = sample, .room = room};
	struct read_progress progress;
	struct source_counter uncounted = {0};
	source_locate(dataset, &request);
	*size = 0;
	if (views) {
		const int code = gzip_views_read(
			views, store, path, request.offset, data, (size_t)request.length);
		*size = code ? 0 : (size_t)request.length;
		return code;
	}
	read_progress_request(&progress, &request, false);
	if (source_read_now(store, path, data, &progress, &uncounted) != READ_STEP_DONE)
		return progress.status;
	*size = progress.got;
	return 0;
}

enum { OPEN_FILES_ALL = 256, OPEN_FILES_EACH = 32 };

unsigned source_open_files(struct source *source, unsigned at_once)
{
	const unsigned most = OPEN_FILES_ALL / source->threads;
	const unsigned each = most < OPEN_FILES_EACH ? most : OPEN_FILES_EACH;
	struct error ignored;
	if (!source->dataset->offsets || each == 0 ||
		source_check_open_files(source, source->threads * (at_once + each), &ignored))
		return 0;
	source_note(source, "files stay open, %u for each reader", each);
	return each;
}

bool open_files_open(struct open_files *files, size_t room)
{
	*files = (struct open_files){.list = room > 0 ? calloc(room, sizeof *files->list) : NULL};
	files->room = files->list ? room : 0;
	return files->list;
}

static void open_file_close(struct open_file *open, struct store *store)
{
	if (open->path)
		store->ops->file_close(store, open->file);
	open->path = NULL;
}

void open_files_close(struct open_files *files, struct store *store)
{
	for (size_t i = 0; i < files->room; i++)
		open_file_close(&files->list[i], store);
	free(files->list);
	*files = (struct open_files){0};
}

/* One that no read needs, closed; NULL: there is none. */
static struct open_file *open_files_free(struct open_files *files, struct store *store)
{
	for (size_t i = 0; i < files->room; i++) {
		struct open_file *const open = &files->list[files->next];
		files->next = (files->next + 1) % files->room;
		if (open->users == 0) {
			open_file_close(open, store);
			return open;
		}
	}
	return NULL;
}

/* Names are told apart by where they are: all parts of a file have the same. */
struct open_file *open_files_find(
	struct open_files *files, struct store *store, const char *path, bool direct, int *code)
{
	*code = 0;
	for (size_t i = 0; i < files->room; i++)
		if (files->list[i].path == path && files->list[i].direct == direct)
			return &files->list[i];
	struct open_file *const open = open_files_free(files, store);
	if (!open)
		return NULL;
	const uint64_t open_ns = timeline_mark();
	*code = store->ops->file_open(store, path, direct, &open->file);
	(void)timeline_end(TIMELINE_OPEN, open_ns, 0);
	if (*code)
		return NULL;
	open->path = path;
	open->direct = direct;
	return open;
}

enum read_step source_read_part(struct open_files *files, struct store *store, const char *path,
	uint8_t *buffer, struct read_progress *progress, struct source_counter *counter)
{
	int code;
	struct open_file *const open = open_files_find(files, store, path, progress->direct, &code);
	if (!open) /* which says what is wrong */
		return source_read_now(store, path, buffer, progress, counter);
	const uint64_t read_ns = timeline_mark();
	const enum read_step step =
		source_read_open(store, path, open->file, buffer, progress, counter);
	(void)timeline_end(TIMELINE_READ, read_ns, 0);
	if (step == READ_STEP_DONE)
		return step;
	/* Whatever is wrong with it, it is not kept. */
	open_file_close(open, store);
	return step == READ_STEP_FAILED ? step
					: source_read_now(store, path, buffer, progress, counter);
}

void source_note(struct source *source, const char *format, ...)
{
	const size_t used = strlen(source->notes);
	const char *const separator = used > 0 ? "; " : "";
	int length = snprintf(source->notes + used, sizeof source->notes - used, "%s", separator);
	if (length < 0 || used + (size_t)length >= sizeof source->notes)
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(source->notes + used + (size_t)length,
		sizeof source->notes - used - (size_t)length, format, args);
	va_end(args);
}

static uint64_t source_sum(const struct source *source, size_t offset)
{
	uint64_t total = 0;
	for (unsigned i = 0; i < source->threads; i++) {
		const char *const counter = (const char *)&source->counters[i];
		total += atomic_load_explicit(
			(const atomic_uint_fast64_t *)(const void *)(counter + offset),
			memory_order_relaxed);
	}
	return total;
}

void source_read_counts(const struct source *source, struct source_counts *counts)
{
	*counts = (struct source_counts){
		.files = source_sum(source, offsetof(struct source_counter, files)),
		.bytes = source_sum(source, offsetof(struct source_counter, bytes)),
		.requests = source_sum(source, offsetof(struct source_counter, requests)),
		.stored_bytes = source_sum(source, offsetof(struct source_counter, stored_bytes)),
		.packed_bytes = source_sum(source, offsetof(struct source_counter, packed_bytes)),
		.errors = source_sum(source, offsetof(struct source_counter, errors)),
		.short_reads = source_sum(source, offsetof(struct source_counter, short_reads)),
		.retries = source_sum(source, offsetof(struct source_counter, retries)),
	};
}

bool source_read_network(const struct source *source, struct network_counts *counts)
{
	*counts = (struct network_counts){0};
	if (source->ops->network)
		source->ops->network(source, counts);
	return source->ops->network != NULL;
}

void source_start(struct source *source, uint64_t start_ns)
{
	if (source->limiter)
		source->limiter->start_ns = start_ns;
}

bool source_reads_large(const struct config *config, const struct dataset *dataset)
{
	const struct source_ops *const ops = source_choose(config, NULL, 0, NULL);
	return ops && chunks_wanted(config, dataset, ops);
}

uint32_t source_lookahead(const struct config *config, const struct dataset *dataset)
{
	const struct source_ops *const ops = source_choose(config, NULL, 0, NULL);
	return ops ? chunks_lookahead(config, dataset, ops) : 0;
}

bool source_emulates_storage(const struct source *source)
{
	return source->limiter && limiter_is_storage(source->limiter);
}

uint64_t source_bytes(const struct config *config, const struct dataset *dataset)
{
	const struct source_ops *const ops = source_choose(config, NULL, 0, NULL);
	if (!ops)
		return 0;
	return (ops->bytes ? ops->bytes(config, dataset) : 0) +
	       chunks_bytes(config, dataset, ops, 0);
}

uint64_t source_spare_bytes(
	const struct config *config, const struct dataset *dataset, unsigned depth_most)
{
	const struct source_ops *const ops = source_choose(config, NULL, 0, NULL);
	if (!ops || ops->blocking || depth_most == 0)
		return 0;
	const uint64_t set = chunks_bytes(config, dataset, ops, 0);
	const uint64_t most = chunks_bytes(config, dataset, ops, depth_most);
	return most > set ? most - set : 0;
}

int source_reader_open(
	struct reader **out, struct source *source, unsigned index, struct error *err)
{
	*out = NULL;
	const struct source_ops *const ops = source->ops;
	if (index >= source->threads)
		return error_set(err, -EINVAL, "reader %u of %u", index, source->threads);
	struct reader *reader = source_allocate(ops->reader_size);
	if (!reader)
		return error_set(err, -ENOMEM, "out of memory for reader %u", index);
	reader->source = source;
	reader->index = index;
	if (source->limiter) {
		reader->limiter = limiter_queue_open(source->limiter, source->depth_most);
		if (!reader->limiter) {
			free(reader);
			return error_set(err, -ENOMEM, "out of memory for reader %u", index);
		}
	}
	int code = chunks_wanted(source->config, source->dataset, ops)
			   ? chunks_open(&reader->chunks, source, err)
			   : 0;
	if (!code && ops->reader_open)
		code = ops->reader_open(reader, err);
	if (code) {
		chunks_close(reader->chunks);
		limiter_queue_close(reader->limiter);
		free(reader);
		return code;
	}
	*out = reader;
	return 0;
}

/* Lets the engine finish, past the limiter: only the engine knows what it still holds. */
static void source_drain(struct reader *reader)
{
	size_t left = reader->in_flight;
	if (reader->limiter)
		left -= limiter_queue_held(reader->limiter);
	while (left > 0) {
		struct read_request *done[CLOSE_BATCH];
		left -= reader->source->ops->reap(reader, done, CLOSE_BATCH, NS_PER_S);
	}
}

void source_reader_close(struct reader *reader)
{
	if (!reader)
		return;
	if (reader->source->ops->abandon)
		reader->source->ops->abandon(reader);
	source_drain(reader);
	if (reader->source->ops->reader_close)
		reader->source->ops->reader_close(reader);
	limiter_queue_close(reader->limiter);
	if (reader->chunks)
		chunks_retire(reader->chunks, &reader->source->chunks);
	free(reader);
}

int source_reader_dead(const struct reader *reader, struct error *err)
{
	return reader->source->ops->dead ? reader->source->ops->dead(reader, err) : 0;
}

unsigned source_reader_depth_most(const struct reader *reader)
{
	return reader->source->depth_most;
}

void source_reader_allow(struct reader *reader, unsigned depth, uint32_t tag)
{
	if (reader->chunks)
		chunks_allow(reader->chunks, depth, tag);
}

void source_reader_large(const struct reader *reader, struct large_reads *out)
{
	*out = (struct large_reads){0};
	if (reader->chunks)
		chunks_completed(reader->chunks, out);
}

static void source_begin(const struct reader *reader, struct read_request *request)
{
	request->data = request->buffer;
	request->size = 0;
	request->status = 0;
	request->done_ns = 0;
	request->opened_ns = 0;
	request->packed = UINT64_MAX;
	request->cached = false;
	request->lent = NULL;
	request->submitted_ns = reader->source->stamped ? clock_now_ns() : 0;
}

void source_pass(struct reader *reader, struct read_request *request)
{
	source_begin(reader, request);
	reader->submitted_ns = request->submitted_ns;
	reader->in_flight++;
	source_count(&reader->source->counters[reader->index].requests, 1);
	reader->source->ops->submit(reader, request);
}

void source_submit(struct reader *reader, struct read_request *request)
{
	if (!reader->source->ops->immediate) /* which has it already */
		source_locate(reader->source->dataset, request);
	if (!reader->chunks) {
		source_pass(reader, request);
		return;
	}
	source_begin(reader, request);
	chunks_submit(reader->chunks, reader, request);
}

size_t source_collect(
	struct reader *reader, struct read_request **done, size_t room, uint64_t wait_ns)
{
	if (reader->in_flight == 0)
		return 0;
	const size_t count = reader->limiter
				     ? limiter_reap(reader, done, room, wait_ns)
				     : reader->source->ops->reap(reader, done, room, wait_ns);
	reader->in_flight -= (unsigned)count;
	return count;
}

/* One clock read serves the batch: its requests became visible together. */
static void source_stamp(const struct source *source, struct read_request **done, size_t count)
{
	if (!source->timed && !source->stamped)
		return;
	const uint64_t now_ns = source->timed ? clock_now_ns() : 0;
	for (size_t i = 0; i < count; i++) {
		struct read_request *const request = done[i];
		if (!source->timed) {
			request->submitted_ns = 0;
			request->done_ns = 0;
			continue;
		}
		if (request->done_ns == 0)
			request->done_ns = now_ns;
		if (request->submitted_ns == 0)
			request->submitted_ns = request->done_ns;
	}
}

static void source_count_done(
	struct source_counter *counter, struct read_request **done, size_t count)
{
	uint64_t bytes = 0;
	uint64_t stored = 0;
	uint64_t errors = 0;
	for (size_t i = 0; i < count; i++) {
		bytes += done[i]->size;
		stored += done[i]->cached ? 0 : done[i]->size;
		errors += done[i]->status != 0;
	}
	source_count(&counter->files, count);
	source_count(&counter->bytes, bytes);
	source_count(&counter->stored_bytes, stored);
	if (errors > 0)
		source_count(&counter->errors, errors);
}

size_t source_reap(struct reader *reader, struct read_request **done, size_t room, uint64_t wait_ns)
{
	struct source *const source = reader->source;
	if (room == 0)
		return 0;
	const size_t count = reader->chunks
				     ? chunks_reap(reader->chunks, reader, done, room, wait_ns)
				     : source_collect(reader, done, room, wait_ns);
	if (count == 0)
		return 0;
	source_stamp(source, done, count);
	source_count_done(&source->counters[reader->index], done, count);
	return count;
}
