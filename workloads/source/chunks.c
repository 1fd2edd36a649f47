/* Chunks: which samples make one, which are in memory, and who waits for them. */
#include "workloads/source/chunks.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "workloads/source/engines.h"
#include "workloads/source/gzip_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHUNK_BUFFERS_MORE = 2, /* than are in flight and in the window of the shuffle */
	CHUNK_BUFFERS_LENT = 4, /* at least, whose samples wait for workers or are with them */
	CHUNK_BUFFERS_MAX = 4096,
	CHUNK_EXPECTED_MORE = 16, /* than are in flight */
	CHUNK_STALE_ROUNDS = 2,   /* loads of all buffers, without a sample cut out */
	CHUNK_REAP_BATCH = 64,
	CHUNK_INFLATE_BYTES = 1 << 20, /* of compressed files, where read.request is 0 */
};

static const uint32_t CHUNK_NONE = UINT32_MAX;
static const uint16_t CHUNK_ABSENT = 0,
		      CHUNK_GIVEN_UP = UINT16_MAX; /* of where, else a place + 1 */

struct chunk_buffer {
	uint32_t chunk; /* CHUNK_NONE: free */
	uint32_t left;  /* samples that were not cut out yet */
	bool loading;
	bool begun;              /* a sample was cut out */
	bool lends;              /* samples are handed out where they lie, and not copied */
	atomic_uint lent;        /* samples handed out so, and not given back */
	uint64_t start;          /* where in the file its bytes begin */
	uint64_t used;           /* by the count of loads: when a sample was cut out last */
	uint32_t in_flight, tag; /* of struct large_read */
	uint64_t number;
	struct request_list waiting;
	struct read_request request;
};

struct chunks {
	const struct dataset *dataset;
	uint32_t count;  /* chunks */
	uint32_t *first; /* (count + 1) the first sample of each */
	uint32_t *of;    /* (samples) the chunk of each */
	uint16_t *where; /* (count) */
	struct chunk_buffer *buffers;
	uint32_t buffer_count, lending_max, in_flight;
	uint32_t depth, depth_most; /* that may be in flight, now and at any time */
	uint32_t tag, earlier;      /* of in_flight, those with another tag */
	uint64_t loads;
	/* Chunks that the caller said will be wanted, while depth or buffers were taken; a ring. */
	uint32_t *expected; /* (expected_room) */
	uint32_t expected_room, expected_at, expected_count;
	uint8_t *is_expected;                          /* (count) */
	struct large_read completed[CHUNK_REAP_BATCH]; /* at the last reap */
	size_t completed_count;
	/* Of compressed files, else NULL. */
	uint32_t *begin; /* (count) the first chunk of its file */
	uint32_t *turn;  /* (count) by that: the one that is to be inflated next */
	uint8_t *asked;  /* (samples) 1: asked for since the file was begun the last time */
	struct request_list done, pending; /* pending: no buffer was free, or no depth */
	struct chunks *next;               /* in the list of those that are retired */
	struct memory_block block;
};

/* ---- which samples make a chunk --------------------------------------------------------------- */

struct chunk_shape {
	uint32_t count;
	uint64_t largest; /* bytes, with what is before the first sample in its block */
};

static uint64_t chunk_floor(uint64_t offset)
{
	return offset / READ_ALIGN_BYTES * READ_ALIGN_BYTES;
}

/* Where the chunk that begins with a sample begins: what is inflated has no blocks, and does not go back. */
static uint64_t chunk_start(const struct dataset *dataset, uint32_t first, bool inflates)
{
	return inflates ? dataset->offsets[first] : chunk_floor(dataset->offsets[first]);
}

static uint32_t chunks_expected(unsigned depth)
{
	return depth + CHUNK_EXPECTED_MORE;
}

static uint64_t chunks_request(const struct config *config)
{
	const uint64_t asked = (uint64_t)config_integer(config, KEY_READ_REQUEST);
	return asked == 0 && gzip_view_wanted(config) ? CHUNK_INFLATE_BYTES : asked;
}

/* The end of the chunk that begins with a sample: what follows it in the same file, as far as one request
 * reaches. */
static uint32_t chunk_end(
	const struct dataset *dataset, uint32_t first, const struct config *config, uint64_t *bytes)
{
	const uint64_t request = chunks_request(config);
	const uint64_t start = chunk_start(dataset, first, gzip_view_wanted(config));
	uint64_t end = dataset->offsets[first] + dataset->samples[first].bytes;
	uint32_t i = first + 1;
	for (; i < dataset->count && !dataset_begins_file(dataset, i); i++) {
		const uint64_t next = dataset->offsets[i] + dataset->samples[i].bytes;
		/* Sequences of tokens overlap: the last token of one is the first of the next. */
		if (dataset->offsets[i] < dataset->offsets[i - 1] || next < end ||
			next - start > request)
			break;
		end = next;
	}
	*bytes = end - start;
	return i;
}

/* first, of: filled in where they are not NULL. */
static struct chunk_shape chunks_shape(
	const struct dataset *dataset, const struct config *config, uint32_t *first, uint32_t *of)
{
	struct chunk_shape shape = {0};
	for (uint32_t i = 0; i < dataset->count;) {
		uint64_t bytes;
		const uint32_t end = chunk_end(dataset, i, config, &bytes);
		shape.largest = bytes > shape.largest ? bytes : shape.largest;
		if (first)
			first[shape.count] = i;
		for (; i < end; i++)
			if (of)
				of[i] = shape.count;
		shape.count++;
	}
	if (first)
		first[shape.count] = (uint32_t)dataset->count;
	return shape;
}

bool chunks_wanted(
	const struct config *config, const struct dataset *dataset, const struct source_ops *ops)
{
	return chunks_request(config) > 0 && dataset->offsets && !ops->immediate;
}

/* Those in flight, and those that the shuffle buffer's samples lie in. */
static uint32_t chunks_buffers(
	const struct config *config, const struct dataset *dataset, uint32_t count, unsigned depth)
{
	const bool windowed = config_integer(config, KEY_READ_ORDER) == READ_ORDER_SHARDS;
	const uint64_t window =
		windowed ? (uint64_t)config_integer(config, KEY_READ_SHUFFLE_BUFFER) : 0;
	/* One that is taken again too early costs more than a read where its file is inflated again. */
	const uint64_t spare = gzip_view_wanted(config) ? 2 : 1;
	/* There are devices that complete all that is in flight at once, and idle until the next request:
	 * as many buffers again take the next ones before the samples of those are cut out. */
	const uint64_t lent = depth > CHUNK_BUFFERS_LENT ? depth : CHUNK_BUFFERS_LENT;
	const uint64_t most =
		spare * (window * count / dataset->count) + depth + CHUNK_BUFFERS_MORE + lent;
	const uint64_t all = count < most ? count : most;
	return all < CHUNK_BUFFERS_MAX ? (uint32_t)all : CHUNK_BUFFERS_MAX;
}

static size_t chunks_room(const struct chunk_shape *shape)
{
	return (size_t)(chunk_floor(shape->largest + READ_ALIGN_BYTES - 1) + READ_ALIGN_BYTES);
}

static unsigned chunks_depth(const struct config *config, const struct source_ops *ops)
{
	return ops->blocking ? 1 : (unsigned)config_integer(config, KEY_READ_DEPTH);
}

uint64_t chunks_bytes(const struct config *config, const struct dataset *dataset,
	const struct source_ops *ops, unsigned depth)
{
	if (!chunks_wanted(config, dataset, ops))
		return 0;
	const struct chunk_shape shape = chunks_shape(dataset, config, NULL, NULL);
	const unsigned most = depth > 0 ? depth : chunks_depth(config, ops);
	const uint32_t buffers = chunks_buffers(config, dataset, shape.count, most);
	const uint64_t turns =
		gzip_view_wanted(config) ? dataset->count + 2 * shape.count * sizeof(uint32_t) : 0;
	return buffers * (uint64_t)chunks_room(&shape) + dataset->count * sizeof(uint32_t) +
	       (shape.count + 1) * (sizeof(uint32_t) + sizeof(uint16_t) + sizeof(uint8_t)) +
	       chunks_expected(most) * sizeof(uint32_t) + turns;
}

/* ---- opening and closing ---------------------------------------------------------------------- */

static int chunks_allocate(struct chunks *chunks, const struct source *source)
{
	const struct config *const config = source->config;
	struct chunk_shape shape = chunks_shape(chunks->dataset, config, NULL, NULL);
	chunks->count = shape.count;
	chunks->buffer_count =
		chunks_buffers(config, chunks->dataset, shape.count, chunks->depth_most);
	if (gzip_view_wanted(config)) {
		chunks->begin = calloc(shape.count, sizeof *chunks->begin);
		chunks->turn = calloc(shape.count, sizeof *chunks->turn);
		chunks->asked = calloc(chunks->dataset->count, sizeof *chunks->asked);
		if (!chunks->begin || !chunks->turn || !chunks->asked)
			return -ENOMEM;
	}
	/* So many are left that a chunk which is asked for finds a place, whatever workers hold.  Inflated
	 * ones are wanted for what comes next, and copying is little beside inflating. */
	const uint32_t kept = chunks->depth_most + CHUNK_BUFFERS_MORE;
	if (chunks->buffer_count > kept && !chunks->turn)
		chunks->lending_max = chunks->buffer_count - kept;
	chunks->expected_room = chunks_expected(chunks->depth_most);
	chunks->expected = calloc(chunks->expected_room, sizeof *chunks->expected);
	chunks->is_expected = calloc(shape.count, sizeof *chunks->is_expected);
	if (!chunks->expected || !chunks->is_expected)
		return -ENOMEM;
	chunks->first = calloc(shape.count + 1U, sizeof *chunks->first);
	chunks->of = calloc(chunks->dataset->count, sizeof *chunks->of);
	chunks->where = calloc(shape.count, sizeof *chunks->where);
	chunks->buffers = calloc(chunks->buffer_count, sizeof *chunks->buffers);
	const size_t room = chunks_room(&shape);
	if (!chunks->first || !chunks->of || !chunks->where || !chunks->buffers ||
		memory_map(&chunks->block, room * chunks->buffer_count,
			config_on(config, KEY_READ_HUGE_PAGES)))
		return -ENOMEM;
	(void)chunks_shape(chunks->dataset, config, chunks->first, chunks->of);
	for (uint32_t i = 0; chunks->turn && i < chunks->count; i++) {
		const bool begins = dataset_begins_file(chunks->dataset, chunks->first[i]);
		chunks->begin[i] = begins ? i : chunks->begin[i - 1];
		chunks->turn[i] = i;
	}
	for (uint32_t i = 0; i < chunks->buffer_count; i++) {
		chunks->buffers[i].chunk = CHUNK_NONE;
		chunks->buffers[i].request.buffer = (uint8_t *)chunks->block.data + i * room;
		chunks->buffers[i].request.room = room;
	}
	return 0;
}

int chunks_open(struct chunks **out, const struct source *source, struct error *err)
{
	struct chunks *const chunks = calloc(1, sizeof *chunks);
	*out = chunks;
	if (!chunks)
		return error_set(err, -ENOMEM, "out of memory for large reads");
	chunks->dataset = source->dataset;
	chunks->depth = source->depth;
	chunks->depth_most = source->depth_most;
	if (chunks_allocate(chunks, source) == 0)
		return 0;
	chunks_close(chunks);
	*out = NULL;
	return error_set(err, -ENOMEM, "out of memory for large reads");
}

void chunks_retire(struct chunks *chunks, struct chunks *_Atomic *list)
{
	chunks->next = atomic_load(list);
	while (!atomic_compare_exchange_weak(list, &chunks->next, chunks))
		;
}

void chunks_close(struct chunks *chunks)
{
	while (chunks) {
		struct chunks *const next = chunks->next;
		memory_unmap(&chunks->block);
		free(chunks->begin);
		free(chunks->turn);
		free(chunks->asked);
		free(chunks->expected);
		free(chunks->is_expected);
		free(chunks->buffers);
		free(chunks->where);
		free(chunks->of);
		free(chunks->first);
		free(chunks);
		chunks = next;
	}
}

uint32_t chunks_lookahead(
	const struct config *config, const struct dataset *dataset, const struct source_ops *ops)
{
	if (!chunks_wanted(config, dataset, ops))
		return 0;
	const struct chunk_shape shape = chunks_shape(dataset, config, NULL, NULL);
	/* Twice as many as are in flight, since the order of a shuffle buffer comes to new ones unevenly; but
	 * nothing is known beyond the end of an epoch. */
	const uint64_t least =
		(uint64_t)chunks_depth(config, ops) * dataset->count / (shape.count + 1U);
	const uint64_t half = dataset->count / 2;
	const uint64_t most = half > least ? half : least;
	const uint64_t ahead = 2 * least < most ? 2 * least : most;
	return ahead < dataset->count ? (uint32_t)ahead : 0;
}

/* ---- reading them ---------------------------------------------------------------------------- */

/* What is lent stays where it is.  Whoever gave it back has read it before. */
static bool chunk_is_lent(struct chunk_buffer *buffer)
{
	return atomic_load_explicit(&buffer->lent, memory_order_acquire) > 0;
}

/* Whether a buffer may lend its samples: so many do at most that there are others left. */
static bool chunks_may_lend(struct chunks *chunks)
{
	uint32_t lending = 0;
	for (uint32_t i = 0; i < chunks->buffer_count; i++) {
		struct chunk_buffer *const one = &chunks->buffers[i];
		lending += chunk_is_lent(one) || (one->lends && one->chunk != CHUNK_NONE);
	}
	return lending < chunks->lending_max;
}

/* Nobody came for it in all that time. */
static bool chunk_is_stale(const struct chunks *chunks, const struct chunk_buffer *buffer)
{
	return buffer->used + CHUNK_STALE_ROUNDS * (uint64_t)chunks->buffer_count < chunks->loads;
}

/* The chunk that will be wanted last: of those that were read ahead and not looked at, the latest. */
static bool chunk_can_wait(const struct chunk_buffer *one, const struct chunk_buffer *best)
{
	if (!best || one->begun != best->begun)
		return !best || !one->begun;
	return one->begun ? one->used < best->used : one->used > best->used;
}

/* A buffer for a chunk that is demanded, or only expected; NULL: there is none now. */
static struct chunk_buffer *chunks_find_buffer(struct chunks *chunks, bool demanded)
{
	struct chunk_buffer *oldest = NULL;
	struct chunk_buffer *last = NULL;
	for (uint32_t i = 0; i < chunks->buffer_count; i++) {
		struct chunk_buffer *const one = &chunks->buffers[i];
		if (chunk_is_lent(one))
			continue;
		if (one->chunk == CHUNK_NONE)
			return one;
		if (one->loading)
			continue;
		if (!oldest || one->used < oldest->used)
			oldest = one;
		if (chunk_can_wait(one, last))
			last = one;
	}
	if (oldest && chunk_is_stale(chunks, oldest))
		return oldest;
	return demanded ? last : NULL;
}

/* Its buffer is taken: it is read again when it is wanted, before all that is expected after it. */
static void chunk_give_up_buffer(struct chunks *chunks, const struct chunk_buffer *buffer)
{
	const uint32_t room = chunks->expected_room;
	if (buffer->chunk == CHUNK_NONE)
		return;
	chunks->where[buffer->chunk] = CHUNK_ABSENT;
	if (buffer->begun || chunk_is_stale(chunks, buffer) || chunks->turn ||
		chunks->expected_count == room)
		return;
	chunks->expected_at = (chunks->expected_at + room - 1) % room;
	chunks->expected[chunks->expected_at] = buffer->chunk;
	chunks->is_expected[buffer->chunk] = 1;
	chunks->expected_count++;
}

/* Begins to read a chunk that is not there; false: not now. */
static bool chunks_start(
	struct chunks *chunks, struct reader *reader, uint32_t chunk, bool demanded)
{
	struct chunk_buffer *const to =
		chunks->in_flight < chunks->depth ? chunks_find_buffer(chunks, demanded) : NULL;
	if (!to)
		return false;
	const struct dataset *const dataset = chunks->dataset;
	const uint32_t first = chunks->first[chunk];
	const uint32_t last = chunks->first[chunk + 1] - 1;
	chunk_give_up_buffer(chunks, to);
	chunks->where[chunk] = (uint16_t)(to - chunks->buffers + 1);
	chunks->is_expected[chunk] = 0;
	to->chunk = chunk;
	to->left = last - first + 1;
	to->loading = true;
	to->begun = to->lends = false;
	to->start = chunk_start(dataset, first, chunks->turn != NULL);
	to->number = chunks->loads;
	to->used = ++chunks->loads;
	to->request.sample = first;
	to->request.offset = to->start;
	to->request.length = dataset->offsets[last] + dataset->samples[last].bytes - to->start;
	to->request.part = true;
	if (chunks->turn)
		chunks->turn[chunks->begin[chunk]] = chunk + 1;
	to->in_flight = ++chunks->in_flight;
	to->tag = chunks->tag;
	source_pass(reader, &to->request);
	return true;
}

/* Begins with what has to be read for a chunk that is not there; true: that is the chunk itself.  Of a
 * compressed file, first those before it that were not inflated since the file was begun: what is passed
 * over now would have to be inflated again. */
static bool chunks_start_for(
	struct chunks *chunks, struct reader *reader, uint32_t chunk, bool demanded)
{
	uint32_t next = chunks->turn ? chunks->turn[chunks->begin[chunk]] : chunk;
	if (next > chunk && !demanded)
		return false; /* the file is not begun again yet */
	while (next < chunk && chunks->where[next] != CHUNK_ABSENT)
		next++;
	next = next < chunk ? next : chunk; /* passed, and its buffer taken: once more */
	return chunks_start(chunks, reader, next, demanded) && next == chunk;
}

/* A compressed file is begun again when a sample of it is asked for that was asked for before: epochs
 * ask for each once, and may end before all were. */
static void chunks_note_asked(struct chunks *chunks, uint32_t sample)
{
	const uint32_t chunk = chunks->begin[chunks->of[sample]];
	if (chunks->asked[sample]) {
		uint32_t i = chunks->first[chunk];
		do
			chunks->asked[i] = 0;
		while (++i < chunks->dataset->count && !dataset_begins_file(chunks->dataset, i));
		chunks->turn[chunk] = chunk;
	}
	chunks->asked[sample] = 1;
}

static void chunks_cut(
	struct chunks *chunks, struct chunk_buffer *from, struct read_request *request)
{
	const uint8_t *const bytes = from->request.buffer + (request->offset - from->start);
	/* Not before: those that are read ahead are not in use yet. */
	if (!from->begun)
		from->lends = chunks_may_lend(chunks);
	from->begun = true;
	if (request->length > request->room) {
		request->status = -EFBIG;
	} else {
		if (from->lends) {
			request->data = bytes;
			request->lent = &from->lent;
			atomic_fetch_add_explicit(&from->lent, 1, memory_order_relaxed);
		} else {
			memcpy(request->buffer, bytes, (size_t)request->length);
		}
		request->size = (size_t)request->length;
		request->cached = from->request.cached;
	}
	from->left -= from->left > 0;
	from->used = chunks->loads;
	request_list_push(&chunks->done, request);
	/* Buffers are no cache: the next epoch reads it again. */
	if (from->left == 0 && !from->waiting.head) {
		chunks->where[from->chunk] = CHUNK_ABSENT;
		from->chunk = CHUNK_NONE;
	}
}

/* Reads on, in the file of a chunk that was not there. */
static void chunks_read_on(struct chunks *chunks, struct reader *reader, uint32_t chunk)
{
	for (uint32_t next = chunk + 1;
		next < chunks->count &&
		!dataset_begins_file(chunks->dataset, chunks->first[next]) &&
		next < chunk + chunks->depth;
		next++)
		if (chunks->where[next] == CHUNK_ABSENT &&
			!chunks_start(chunks, reader, next, false))
			return;
}

/* Cuts a sample out, or has it wait for its chunk; false: that cannot be read now. */
static bool chunks_ask(struct chunks *chunks, struct reader *reader, struct read_request *request)
{
	const uint32_t chunk = chunks->of[request->sample];
	if (chunks->where[chunk] == CHUNK_GIVEN_UP) {
		source_pass(reader, request);
		return true;
	}
	const bool absent = chunks->where[chunk] == CHUNK_ABSENT;
	if (absent && !chunks_start_for(chunks, reader, chunk, true))
		return false;
	struct chunk_buffer *const there = &chunks->buffers[chunks->where[chunk] - 1];
	if (there->loading)
		request_list_push(&there->waiting, request);
	else
		chunks_cut(chunks, there, request);
	if (absent)
		chunks_read_on(chunks, reader, chunk);
	return true;
}

/* It will be wanted: it begins now, or once others are done and a buffer is free. */
static void chunks_expect(struct chunks *chunks, uint32_t chunk)
{
	const bool full = chunks->expected_count == chunks->expected_room;
	if (chunks->where[chunk] != CHUNK_ABSENT || chunks->is_expected[chunk] || full)
		return;
	const uint32_t at =
		(chunks->expected_at + chunks->expected_count++) % chunks->expected_room;
	chunks->expected[at] = chunk;
	chunks->is_expected[chunk] = 1;
}

static void chunks_start_expected(struct chunks *chunks, struct reader *reader)
{
	while (chunks->expected_count > 0) {
		const uint32_t chunk = chunks->expected[chunks->expected_at];
		/* Else it was wanted meanwhile. */
		if (chunks->is_expected[chunk] && !chunks_start(chunks, reader, chunk, false))
			return;
		chunks->expected_at = (chunks->expected_at + 1) % chunks->expected_room;
		chunks->expected_count--;
	}
}

void chunks_submit(struct chunks *chunks, struct reader *reader, struct read_request *request)
{
	if (chunks->asked)
		chunks_note_asked(chunks, request->sample);
	if (chunks->pending.head || !chunks_ask(chunks, reader, request))
		request_list_push(&chunks->pending, request);
	/* A compressed file is read in its own order. */
	const uint32_t ahead =
		request->ahead < chunks->dataset->count ? chunks->of[request->ahead] : CHUNK_NONE;
	if (ahead != CHUNK_NONE && !chunks->turn)
		chunks_expect(chunks, ahead);
	else if (ahead != CHUNK_NONE && chunks->where[ahead] == CHUNK_ABSENT)
		(void)chunks_start_for(chunks, reader, ahead, false);
}

static void chunks_retry_pending(struct chunks *chunks, struct reader *reader)
{
	while (chunks->pending.head) {
		struct read_request *const request = request_list_pop(&chunks->pending);
		if (chunks_ask(chunks, reader, request))
			continue;
		/* Back to the front. */
		request->next = chunks->pending.head;
		if (!chunks->pending.head)
			chunks->pending.tail = request;
		chunks->pending.head = request;
		return;
	}
}

/* NULL: the request is a sample's own. */
static struct chunk_buffer *chunks_buffer_of(
	struct chunks *chunks, const struct read_request *request)
{
	for (uint32_t i = 0; i < chunks->buffer_count; i++)
		if (&chunks->buffers[i].request == request)
			return &chunks->buffers[i];
	return NULL;
}

static void chunks_note_completed(struct chunks *chunks, const struct chunk_buffer *buffer)
{
	const struct read_request *const request = &buffer->request;
	chunks->completed[chunks->completed_count++] = (struct large_read){
		.number = buffer->number,
		.submitted_ns = request->submitted_ns,
		.done_ns = request->done_ns,
		.bytes = request->status ? 0 : (uint32_t)request->size,
		.in_flight = buffer->in_flight,
		.tag = buffer->tag,
	};
	chunks->earlier -= buffer->tag != chunks->tag;
}

static void chunks_take_answer(
	struct chunks *chunks, struct reader *reader, struct read_request *answered)
{
	struct chunk_buffer *const buffer = chunks_buffer_of(chunks, answered);
	struct read_request *request;
	if (!buffer) {
		request_list_push(&chunks->done, answered);
		return;
	}
	chunks->in_flight--;
	buffer->loading = false;
	chunks_note_completed(chunks, buffer);
	if (answered->status) {
		chunks->where[buffer->chunk] = CHUNK_GIVEN_UP;
		buffer->chunk = CHUNK_NONE;
	}
	while ((request = request_list_pop(&buffer->waiting)) != NULL) {
		/* It may have been asked for when its chunk was there already, and nobody had looked. */
		request->done_ns = answered->done_ns;
		if (answered->done_ns > 0 && answered->done_ns < request->submitted_ns)
			request->done_ns = request->submitted_ns;
		if (answered->status)
			source_pass(reader, request);
		else
			chunks_cut(chunks, buffer, request);
	}
}

size_t chunks_reap(struct chunks *chunks, struct reader *reader, struct read_request **done,
	size_t room, uint64_t wait_ns)
{
	struct read_request *answered[CHUNK_REAP_BATCH];
	/* Once a visit, not for each sample: to look for a buffer is to look at what workers have lent. */
	chunks_start_expected(chunks, reader);
	const size_t count =
		source_collect(reader, answered, CHUNK_REAP_BATCH, chunks->done.head ? 0 : wait_ns);
	const uint64_t now_ns = count > 0 && reader->source->timed ? clock_now_ns() : 0;
	chunks->completed_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (answered[i]->done_ns == 0)
			answered[i]->done_ns = now_ns;
		chunks_take_answer(chunks, reader, answered[i]);
	}
	if (count > 0) {
		chunks_retry_pending(chunks, reader);
		chunks_start_expected(chunks, reader);
	}
	return request_list_take(&chunks->done, done, room);
}

void chunks_allow(struct chunks *chunks, unsigned depth, uint32_t tag)
{
	chunks->depth = depth < chunks->depth_most ? depth : chunks->depth_most;
	if (tag == chunks->tag)
		return;
	chunks->tag = tag;
	chunks->earlier = chunks->in_flight;
}

void chunks_completed(const struct chunks *chunks, struct large_reads *out)
{
	*out = (struct large_reads){
		.done = chunks->completed,
		.count = chunks->completed_count,
		.in_flight = chunks->in_flight,
		.earlier = chunks->earlier,
		.tag = chunks->tag,
	};
}
