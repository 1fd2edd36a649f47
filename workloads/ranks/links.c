/* Streams and round trips between pairs of ranks. */
#include "workloads/ranks/links.h"

#include "harness/base/clock.h"
#include "workloads/ranks/ranks.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
	TAG_HEAD = 11, /* of a stream */
	TAG_CHUNK,
	TAG_TOOK,
	TAG_PING,
	TAG_PONG,
	WINDOW = 4, /* chunks under way */
	PINGS_UNCOUNTED = 3,
	PINGS_MOST = 1000,
	STREAM_FIRST_BYTES = 256 << 10,
	SHRINK_SHARE = 8, /* longer than stream_ns: then the next one is shorter */
	WARM_SHARE = 4,   /* the part of a stream that goes ahead */
	GROWTH_MOST = 8,  /* from one stream to the next */
	STREAMS_MOST = 12,
	SPIN_NS = 20 * 1000,       /* without anything new; then others may have the core, ... */
	REST_NS = 5 * 1000 * 1000, /* ... and then it sleeps a little between looks */
	REST_LOOK_NS = 50 * 1000,
	NOBODY = -1,
};
static const uint64_t STREAM_MOST_BYTES = 1ULL << 34;

/* What the leader tells begins with it; no other message of the program does. */
static const char links_word[8] = "\1links\1";

struct links_order {
	char word[8];
	uint64_t mode, count; /* then so many pairs */
};

struct links_answer {
	int64_t code, peer; /* who is to blame for it */
	double in_rate, latency_ns, tail_ns;
};

struct links {
	struct links_options options;
	struct ranks *ranks;
	uint64_t *bytes; /* (ranks) of the next stream to each; owned */
	char *out;       /* a chunk; owned */
	char *in[WINDOW];
	/* Of messages of a few bytes; MPI may still write there after they were given up. */
	struct links_small {
		uint64_t head_out, head_in, took_out, took_in, ping, pong;
	} * small;
	unsigned peer; /* that is waited for */
	uint64_t trips[PINGS_MOST];
};

/* --- opening ---------------------------------------------------------------------------------- */

uint64_t links_memory(unsigned ranks)
{
	return (WINDOW + 1ULL) * LINKS_CHUNK_BYTES + ranks * sizeof(uint64_t);
}

int links_open(struct links **out, const struct links_options *options, struct error *err)
{
	struct links *const links = calloc(1, sizeof *links);
	*out = NULL;
	if (!links)
		return error_set(err, -ENOMEM, "out of memory for links");
	*links = (struct links){.options = *options,
		.ranks = options->ranks,
		.bytes = calloc(options->ranks->world.count, sizeof *links->bytes),
		.out = malloc(LINKS_CHUNK_BYTES),
		.small = calloc(1, sizeof *links->small)};
	bool whole = links->bytes && links->out && links->small;
	for (int i = 0; i < WINDOW; i++) {
		links->in[i] = malloc(LINKS_CHUNK_BYTES);
		whole = whole && links->in[i];
	}
	if (!whole) {
		links_close(links);
		return error_set(err, -ENOMEM, "out of memory for links");
	}
	memset(links->out, 0x5a, LINKS_CHUNK_BYTES);
	for (unsigned rank = 0; rank < options->ranks->world.count; rank++)
		links->bytes[rank] = STREAM_FIRST_BYTES;
	*out = links;
	return 0;
}

/* What MPI may still write to stays there. */
void links_close(struct links *links)
{
	if (!links)
		return;
	for (int i = 0; i < WINDOW && !links->ranks->lost; i++)
		free(links->in[i]);
	if (!links->ranks->lost) {
		free(links->out);
		free(links->small);
	}
	free(links->bytes);
	free(links);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static int links_lose(struct links *links, int code)
{
	links->ranks->lost = true;
	return code;
}

/* After a look that found nothing new (or something: `moved`).  *last_ns: when something came last. */
static int links_pause(struct links *links, uint64_t *last_ns, bool moved, struct error *err)
{
	char name[MPI_HOST_BYTES + 32];
	const uint64_t now_ns = clock_now_ns();
	const uint64_t idle_ns = now_ns - *last_ns;
	if (moved) {
		*last_ns = now_ns;
		return 0;
	}
	if (links->ranks->stop && atomic_load_explicit(links->ranks->stop, memory_order_relaxed))
		return links_lose(links, error_set(err, -EINTR, "stopped"));
	const int missing = ranks_missing(links->ranks, err);
	if (missing)
		return links_lose(links, missing);
	if (idle_ns > LINKS_PATIENCE_S * NS_PER_S)
		return links_lose(
			links, error_set(err, -ETIMEDOUT, "%s has not answered for %d s",
				       ranks_name(links->ranks, links->peer, name, sizeof name),
				       LINKS_PATIENCE_S));
	if (idle_ns > (links->options.crowded ? SPIN_NS : REST_NS))
		clock_sleep_until_ns(now_ns + REST_LOOK_NS);
	else if (links->options.crowded || idle_ns > SPIN_NS)
		(void)sched_yield();
	return 0;
}

/* 1: it is over, or there is none; then *request is NULL. */
static int links_test(struct links *links, struct mpi_request **request, struct error *err)
{
	const int code = *request ? links->ranks->plugin->test(request, err) : 1;
	return code < 0 ? links_lose(links, code) : code;
}

static int links_wait(struct links *links, struct mpi_request **request, struct error *err)
{
	uint64_t last_ns = clock_now_ns();
	for (;;) {
		int code = links_test(links, request, err);
		if (code)
			return code < 0 ? code : 0;
		code = links_pause(links, &last_ns, false, err);
		if (code)
			return code;
	}
}

static int links_send_small(
	struct links *links, unsigned to, int tag, const uint64_t *word, struct error *err)
{
	struct mpi_request *request;
	links->peer = to;
	const int code = links->ranks->plugin->send(&request, to, tag, word, sizeof *word, err);
	return code ? links_lose(links, code) : links_wait(links, &request, err);
}

static int links_receive_small(
	struct links *links, unsigned from, int tag, uint64_t *word, struct error *err)
{
	struct mpi_request *request;
	links->peer = from;
	const int code =
		links->ranks->plugin->receive(&request, from, tag, word, sizeof *word, err);
	return code ? links_lose(links, code) : links_wait(links, &request, err);
}

/* --- a stream --------------------------------------------------------------------------------- */

/* One to a rank, one from a rank, or both at the same time. */
struct stream {
	struct links *links;
	int64_t to, from; /* NOBODY: none */
	uint64_t out_bytes, out_begun;
	uint64_t in_bytes, in_begun, in_got;
	struct mpi_request *head_out, *head_in;
	struct mpi_request *sends[WINDOW], *receives[WINDOW];
	uint64_t receive_bytes[WINDOW];
	bool in_known;
	uint64_t in_begin_ns, in_end_ns;
};

static size_t stream_chunk(uint64_t bytes, uint64_t begun)
{
	return bytes - begun < LINKS_CHUNK_BYTES ? (size_t)(bytes - begun) : LINKS_CHUNK_BYTES;
}

static int stream_further_out(struct stream *s, bool *moved, struct error *err)
{
	struct links *const links = s->links;
	const bool headed = s->head_out != NULL;
	int code = links_test(links, &s->head_out, err);
	*moved |= headed && code > 0;
	for (int i = 0; i < WINDOW && code >= 0; i++) {
		const bool going = s->sends[i] != NULL;
		code = links_test(links, &s->sends[i], err);
		*moved |= going && code > 0;
		if (code <= 0 || s->out_begun == s->out_bytes)
			continue;
		const size_t chunk = stream_chunk(s->out_bytes, s->out_begun);
		code = links->ranks->plugin->send(
			&s->sends[i], (unsigned)s->to, TAG_CHUNK, links->out, chunk, err);
		s->out_begun += chunk;
	}
	return code < 0 ? links_lose(links, code) : 0;
}

static int stream_further_in(struct stream *s, bool *moved, struct error *err)
{
	struct links *const links = s->links;
	if (!s->in_known) {
		const int code = links_test(links, &s->head_in, err);
		if (code <= 0)
			return code;
		s->in_known = *moved = true;
		s->in_bytes = links->small->head_in;
		s->in_begin_ns = clock_now_ns();
	}
	int code = 0;
	for (int i = 0; i < WINDOW && code >= 0; i++) {
		const bool going = s->receives[i] != NULL;
		code = links_test(links, &s->receives[i], err);
		if (going && code > 0) {
			*moved = true;
			s->in_got += s->receive_bytes[i];
			if (s->in_got == s->in_bytes)
				s->in_end_ns = clock_now_ns();
		}
		if (code <= 0 || s->in_begun == s->in_bytes)
			continue;
		s->receive_bytes[i] = stream_chunk(s->in_bytes, s->in_begun);
		code = links->ranks->plugin->receive(&s->receives[i], (unsigned)s->from, TAG_CHUNK,
			links->in[i], s->receive_bytes[i], err);
		s->in_begun += s->receive_bytes[i];
	}
	return code < 0 ? links_lose(links, code) : 0;
}

static bool stream_is_sent(const struct stream *s)
{
	bool sent = !s->head_out && s->out_begun == s->out_bytes;
	for (int i = 0; i < WINDOW; i++)
		sent = sent && !s->sends[i];
	return sent;
}

static int stream_begin(struct stream *s, struct error *err)
{
	struct links *const links = s->links;
	int code = 0;
	if (s->from != NOBODY)
		code = links->ranks->plugin->receive(&s->head_in, (unsigned)s->from, TAG_HEAD,
			&links->small->head_in, sizeof links->small->head_in, err);
	links->small->head_out = s->out_bytes;
	if (!code && s->to != NOBODY)
		code = links->ranks->plugin->send(&s->head_out, (unsigned)s->to, TAG_HEAD,
			&links->small->head_out, sizeof links->small->head_out, err);
	return code ? links_lose(links, code) : 0;
}

/* Streams out_bytes to a rank, and what another one says from it; *in_bytes and *in_ns of that. */
static int links_stream(struct links *links, int64_t to, uint64_t out_bytes, int64_t from,
	uint64_t *in_bytes, uint64_t *in_ns, struct error *err)
{
	struct stream s = {
		.links = links, .to = to, .from = from, .out_bytes = to == NOBODY ? 0 : out_bytes};
	uint64_t last_ns = clock_now_ns();
	int code = stream_begin(&s, err);
	while (!code) {
		bool moved = false;
		const bool in = from == NOBODY || (s.in_known && s.in_got == s.in_bytes);
		const bool out = to == NOBODY || stream_is_sent(&s);
		if (in && out)
			break;
		links->peer = (unsigned)(in ? to : from);
		if (!out)
			code = stream_further_out(&s, &moved, err);
		if (!code && !in)
			code = stream_further_in(&s, &moved, err);
		if (!code)
			code = links_pause(links, &last_ns, moved, err);
	}
	*in_bytes = s.in_bytes;
	*in_ns = s.in_end_ns > s.in_begin_ns ? s.in_end_ns - s.in_begin_ns : 1;
	return code;
}

/* What a stream has to be to last stream_ns, by one that took so long. */
static uint64_t links_next_bytes(const struct links *links, uint64_t bytes, uint64_t took_ns)
{
	double growth = (double)links->options.stream_ns / (double)took_ns;
	/* What paces a link lets some bytes pass at once: a short stream would be nothing else. */
	if (growth < 1 && growth > 1.0 / SHRINK_SHARE)
		return bytes;
	growth = growth > GROWTH_MOST ? GROWTH_MOST : growth;
	const double next = growth * (double)bytes;
	return next < STREAM_FIRST_BYTES          ? STREAM_FIRST_BYTES
	       : next > (double)STREAM_MOST_BYTES ? STREAM_MOST_BYTES
						  : (uint64_t)next;
}

static bool links_is_short(const struct links *links, uint64_t bytes, uint64_t took_ns)
{
	return took_ns < links->options.stream_ns / 2 && bytes < STREAM_MOST_BYTES;
}

/* From a rank to another, as often as it takes for one to be long enough: both come to the same end. */
static int links_send_stream(struct links *links, unsigned to, struct error *err)
{
	uint64_t nothing;
	uint64_t *const bytes = &links->bytes[to];
	int code = links_stream(links, to, *bytes / WARM_SHARE, NOBODY, &nothing, &nothing, err);
	for (int i = 0; i < STREAMS_MOST && !code; i++) {
		const uint64_t sent = *bytes;
		code = links_stream(links, to, sent, NOBODY, &nothing, &nothing, err);
		if (!code)
			code = links_receive_small(
				links, to, TAG_TOOK, &links->small->took_in, err);
		if (code)
			break;
		const uint64_t took_ns = links->small->took_in > 0 ? links->small->took_in : 1;
		*bytes = links_next_bytes(links, sent, took_ns);
		if (!links_is_short(links, sent, took_ns))
			break;
	}
	return code;
}

static int links_receive_stream(
	struct links *links, unsigned from, struct links_answer *answer, struct error *err)
{
	uint64_t bytes;
	uint64_t took_ns;
	int code = links_stream(links, NOBODY, 0, from, &bytes, &took_ns, err);
	for (int i = 0; i < STREAMS_MOST && !code; i++) {
		code = links_stream(links, NOBODY, 0, from, &bytes, &took_ns, err);
		if (code)
			break;
		answer->in_rate = (double)bytes * (double)NS_PER_S / (double)took_ns;
		links->small->took_out = took_ns;
		code = links_send_small(links, from, TAG_TOOK, &links->small->took_out, err);
		if (!links_is_short(links, bytes, took_ns))
			break;
	}
	return code;
}

/* To one rank and from one, which may be the same, at the same time. */
static int links_both_ways(struct links *links, unsigned to, unsigned from,
	struct links_answer *answer, struct error *err)
{
	uint64_t bytes;
	uint64_t took_ns;
	int code =
		links_stream(links, to, links->bytes[to] / WARM_SHARE, from, &bytes, &took_ns, err);
	if (!code)
		code = links_stream(links, to, links->bytes[to], from, &bytes, &took_ns, err);
	answer->in_rate = (double)bytes * (double)NS_PER_S / (double)took_ns;
	return code;
}

/* --- round trips ------------------------------------------------------------------------------ */

/* A ping that is answered says whether another one follows. */
enum { PING_LAST, PING_MORE };

static int links_compare(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left;
	const uint64_t b = *(const uint64_t *)right;
	return a < b ? -1 : a > b;
}

static int links_ping(
	struct links *links, unsigned peer, struct links_answer *answer, struct error *err)
{
	uint64_t *const trips = links->trips;
	size_t count = 0;
	const uint64_t begin_ns = clock_now_ns();
	int code = 0;
	for (bool last = false; !last && !code;) {
		const uint64_t before_ns = clock_now_ns();
		last = count + 1 >= PINGS_MOST + PINGS_UNCOUNTED ||
		       (count + 1 >= LINKS_PINGS_LEAST + PINGS_UNCOUNTED &&
			       before_ns - begin_ns > links->options.pings_ns);
		links->small->ping = last ? PING_LAST : PING_MORE;
		code = links_send_small(links, peer, TAG_PING, &links->small->ping, err);
		if (!code)
			code = links_receive_small(links, peer, TAG_PONG, &links->small->pong, err);
		if (count >= PINGS_UNCOUNTED)
			trips[count - PINGS_UNCOUNTED] = clock_now_ns() - before_ns;
		count++;
	}
	if (code)
		return code;
	count -= PINGS_UNCOUNTED;
	qsort(trips, count, sizeof *trips, links_compare);
	const size_t middle = count / 2;
	const size_t late = count * 99 / 100;
	answer->latency_ns = (double)trips[middle] / 2;
	answer->tail_ns = (double)trips[late] / 2;
	return 0;
}

static int links_pong(struct links *links, unsigned peer, struct error *err)
{
	int code = 0;
	for (bool last = false; !last && !code;) {
		code = links_receive_small(links, peer, TAG_PING, &links->small->ping, err);
		last = links->small->ping == PING_LAST;
		if (!code)
			code = links_send_small(links, peer, TAG_PONG, &links->small->ping, err);
	}
	return code;
}

/* --- a trial ---------------------------------------------------------------------------------- */

static int links_in_turn(struct links *links, unsigned peer, bool first,
	struct links_answer *answer, struct error *err)
{
	int code = first ? links_ping(links, peer, answer, err) : links_pong(links, peer, err);
	if (!code)
		code = first ? links_send_stream(links, peer, err)
			     : links_receive_stream(links, peer, answer, err);
	if (!code)
		code = first ? links_receive_stream(links, peer, answer, err)
			     : links_send_stream(links, peer, err);
	return code;
}

/* This rank's part. */
static struct links_answer links_take_part(struct links *links, enum links_mode mode,
	const struct links_pair *pairs, size_t count, struct error *err)
{
	const uint32_t me = links->ranks->world.rank;
	struct links_answer answer = {
		.in_rate = (double)NAN, .latency_ns = (double)NAN, .tail_ns = (double)NAN};
	int64_t next = NOBODY; /* of this rank as the first of a pair, ... */
	int64_t last = NOBODY; /* ... and as the second */
	for (size_t i = 0; i < count; i++) {
		next = pairs[i].first == me ? (int64_t)pairs[i].second : next;
		last = pairs[i].second == me ? (int64_t)pairs[i].first : last;
	}
	if (next == NOBODY && last == NOBODY)
		return answer;
	const unsigned peer = (unsigned)(next != NOBODY ? next : last);
	if (mode == LINKS_IN_TURN)
		answer.code = links_in_turn(links, peer, next != NOBODY, &answer, err);
	else if (mode == LINKS_AT_ONCE)
		answer.code = links_both_ways(links, peer, peer, &answer, err);
	else
		answer.code = links_both_ways(links, (unsigned)next, (unsigned)last, &answer, err);
	answer.peer = links->peer;
	return answer;
}

/* A rank's part as the others hear it. */
static int links_obey(struct links *links, const struct buffer *told, struct error *err)
{
	struct links_order order;
	struct error why = {""};
	memcpy(&order, told->data, sizeof order);
	const size_t room = (told->size - sizeof order) / sizeof(struct links_pair);
	struct links_pair *const pairs = calloc(room + 1, sizeof *pairs);
	if (!pairs || order.count > room || order.mode > LINKS_RING) {
		free(pairs);
		return error_set(err, -EPROTO,
			"the leader asks for links in a way that this "
			"program does not know");
	}
	memcpy(pairs, told->data + sizeof order, order.count * sizeof *pairs);
	const struct links_answer answer =
		links_take_part(links, (enum links_mode)order.mode, pairs, order.count, &why);
	free(pairs);
	const int code = ranks_answer(links->ranks, &answer, sizeof answer, err);
	return answer.code ? error_set(err, (int)answer.code, "%s", why.text) : code;
}

int links_hear(struct links *links, uint64_t limit_ns, struct buffer *out, struct error *err)
{
	for (;;) {
		int code = ranks_hear(links->ranks, limit_ns, out, err);
		if (code || out->size < sizeof(struct links_order) ||
			memcmp(out->data, links_word, sizeof links_word) != 0)
			return code;
		code = links_obey(links, out, err);
		if (code)
			return code;
	}
}

static int links_blame(
	struct links *links, unsigned rank, const struct links_answer *answer, struct error *err)
{
	char name[MPI_HOST_BYTES + 32];
	char peer[MPI_HOST_BYTES + 32];
	links->ranks->lost = true;
	return error_set(err, (int)answer->code, "%s %s %s",
		ranks_name(links->ranks, (unsigned)answer->peer, peer, sizeof peer),
		answer->code == -ETIMEDOUT ? "has not answered" : "cannot be reached by",
		ranks_name(links->ranks, rank, name, sizeof name));
}

/* The answer of a rank: the leader's own, or one that is taken. */
static int links_collect(struct links *links, unsigned rank, struct links_answer *own,
	struct links_answer *answer, struct error *err)
{
	struct buffer text = {0};
	int code = 0;
	*answer = *own;
	if (rank != links->ranks->world.rank)
		code = ranks_take(links->ranks, rank, &text, err);
	if (!code && rank != links->ranks->world.rank && text.size == sizeof *answer)
		memcpy(answer, text.data, sizeof *answer);
	else if (!code && rank != links->ranks->world.rank)
		code = error_set(err, -EPROTO, "rank %u does not tell what it saw", rank);
	buffer_release(&text);
	return code || !answer->code ? code : links_blame(links, rank, answer, err);
}

static int links_tell(struct links *links, enum links_mode mode, const struct links_pair *pairs,
	size_t count, struct error *err)
{
	struct links_order order = {.mode = mode, .count = count};
	struct buffer text = {0};
	int code = 0;
	memcpy(order.word, links_word, sizeof order.word);
	buffer_add(&text, &order, sizeof order);
	buffer_add(&text, pairs, count * sizeof *pairs);
	if (text.failed)
		code = error_set(err, -ENOMEM, "out of memory for links");
	for (size_t i = 0; i < count && !code; i++) {
		/* In a ring each rank is the first of a pair. */
		if (pairs[i].first != links->ranks->world.rank)
			code = ranks_tell_one(
				links->ranks, pairs[i].first, text.data, text.size, err);
		if (!code && mode != LINKS_RING && pairs[i].second != links->ranks->world.rank)
			code = ranks_tell_one(
				links->ranks, pairs[i].second, text.data, text.size, err);
	}
	buffer_release(&text);
	return code;
}

int links_try(struct links *links, enum links_mode mode, const struct links_pair *pairs,
	size_t count, struct links_seen *out, struct error *err)
{
	int code = links_tell(links, mode, pairs, count, err);
	if (code)
		return code;
	struct links_answer own = links_take_part(links, mode, pairs, count, err);
	if (own.code)
		return (int)own.code;
	for (size_t i = 0; i < count && !code; i++) {
		struct links_answer first = {.in_rate = (double)NAN};
		struct links_answer second;
		if (mode != LINKS_RING)
			code = links_collect(links, pairs[i].first, &own, &first, err);
		if (!code)
			code = links_collect(links, pairs[i].second, &own, &second, err);
		if (!code)
			out[i] = (struct links_seen){.there = second.in_rate,
				.back = first.in_rate,
				.latency_ns =
					mode == LINKS_IN_TURN ? first.latency_ns : (double)NAN,
				.tail_ns = mode == LINKS_IN_TURN ? first.tail_ns : (double)NAN};
	}
	return code;
}
