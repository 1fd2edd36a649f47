/* What a verdict says of a network file system: latency, the link, the server, calls that are not
 * READ; and that each is not said where it must not be. */
#include "harness/analyze/diagnose.h"
#include "harness/analyze/verdict.h"
#include "tests/unit/storage_fixture.h"

#define MS 1e6

/* What the client counted, per sample and in ms; NAN: not known. */
struct calls {
	double read_ms, idle_ms, wire_ms;
	double link_share; /* of the link's speed, that arrives */
	double others;     /* calls per sample that are not READ, each as long as other_ms */
	double other_ms;
	const char *other; /* their name */
	double slot_ms;    /* waited in the client, of read_ms more */
	double receiving;  /* of the time, a reply had come in part; 0: not known */
	double late;       /* of the reader's time, on a core or waiting for one; 0: as it is */
	double packets;    /* of a reply; 0: 20 */
};

static void count_calls(struct store_run *run, const struct calls *c)
{
	for (size_t r = 0; r < STORE_REPEATS; r++) {
		struct measurement *m = &run->measurements[r];
		struct network_measurement *n = &m->network;
		const double samples = (double)m->samples;
		const struct network_call read = {"READ", samples, 0, c->slot_ms * MS,
			c->read_ms * MS, (c->read_ms + c->slot_ms) * MS, 200 * samples,
			(double)m->bytes_read};
		struct network_call other = {"OPEN", c->others * samples, 0, 0, c->other_ms * MS,
			c->other_ms * MS, 200 * c->others * samples, 200 * c->others * samples};
		network_measurement_init(n, "");
		(void)snprintf(n->protocol, sizeof n->protocol, "NFSv4.1");
		(void)snprintf(n->client, sizeof n->client, "kernel");
		(void)snprintf(n->server, sizeof n->server, "filer");
		n->seconds = m->measured_seconds;
		n->connections = 2;
		n->idle_round_trip_ns = c->idle_ms * MS;
		n->wire_round_trip_ns = c->wire_ms * MS;
		if (c->receiving > 0) {
			n->receiving_share = c->receiving;
			n->packet_bytes = (double)m->bytes_read / samples /
					  (c->packets > 0 ? c->packets : 20);
		}
		if (c->late != 0) { /* or NAN */
			m->stages[0].cpu_seconds =
				c->late * m->stages[0].seconds[THREAD_WORKING] / 2;
			m->stages[0].run_queue_seconds = m->stages[0].cpu_seconds;
		}
		if (c->link_share > 0)
			n->link_bytes_per_s = ((double)m->bytes_read + other.bytes_received) /
					      n->seconds / c->link_share;
		network_add_call(n, &read);
		if (c->other)
			(void)snprintf(other.name, sizeof other.name, "%s", c->other);
		if (c->others > 0)
			network_add_call(n, &other);
	}
}

static struct verdict judge_again(struct store_run *run)
{
	struct error err = {""};
	point_summary_release(&run->summary);
	assert_int_equal(
		summary_of_point(run->repeats, STORE_REPEATS, &run->facts, &run->summary, &err), 0);
	struct verdict out = {.confidence = 0};
	const struct evidence_base base = {.point = &run->summary,
		.repeats = run->repeats,
		.count = STORE_REPEATS,
		.facts = &run->facts,
		.source = &run->input.source};
	verdict_judge(&base, &out);
	return out;
}

/* calls NULL: no network file system. */
static struct verdict verdict_of(const struct store *store, const struct calls *calls)
{
	struct store_run *run = store_open(store);
	if (calls)
		count_calls(run, calls);
	const struct verdict v = judge_again(run);
	store_close(run);
	return v;
}

static void expect_read(const struct verdict *v, const char *resource)
{
	if (strcmp(v->stage, "read") != 0 || strcmp(v->resource, resource) != 0)
		fail_msg("got %s/%s (%s), expected read/%s", v->stage, v->resource, v->evidence[0],
			resource);
	assert_true(v->confidence > 0 && v->confidence < 1);
}

static bool tells(const struct verdict *v, const char *text)
{
	for (size_t i = 0; i < v->evidence_count; i++)
		if (strstr(v->evidence[i], text))
			return true;
	return strstr(v->advice, text) != NULL;
}

static const struct store far_away = {.latency_ms = 4, .latency_cv = 0.2, .depth = 4};
static const struct store thin_link = {
	.latency_ms = 1, .bytes_per_s = 2e7, .depth = 8, .bytes_cv = 0.5};
static const struct store one_at_a_time = {
	.latency_ms = 5, .latency_cv = 0.05, .slots = 1, .depth = 8, .bytes_cv = 0.5};

static void a_round_trip_with_too_few_in_flight(void **state)
{
	(void)state;
	const struct calls calls = {.read_ms = 4, .idle_ms = 3.8, .wire_ms = NAN};
	const struct verdict v = verdict_of(&far_away, &calls);
	expect_read(&v, "latency");
	assert_true(tells(&v, "Over NFSv4.1 to filer (2 connections) a READ takes 4.00 ms"));
	assert_true(tells(&v, "Little's law"));
	/* Without a second witness it is no more than likely. */
	const struct calls alone = {.read_ms = 4, .idle_ms = NAN, .wire_ms = NAN};
	const struct verdict w = verdict_of(&far_away, &alone);
	expect_read(&w, "latency");
	assert_true(w.confidence <= 0.9);
}

/* Above 0.9 only where two witnesses agree. */
static void a_second_witness_makes_it_surer(void **state)
{
	static const struct {
		double idle_ms, wire_ms, certainty;
	} rows[] = {{3.8, NAN, 0.97}, {NAN, 3.8, 0.97}, {NAN, NAN, 0.9}, {0.2, 0.1, 0.9}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct store_run *run = store_open(&far_away);
		const struct calls calls = {
			.read_ms = 4, .idle_ms = rows[i].idle_ms, .wire_ms = rows[i].wire_ms};
		const struct evidence_base base = {.point = &run->summary, .facts = &run->facts};
		assert_true(cause_network_latency(&base, 0.97) == 0.97); /* no network */
		count_calls(run, &calls);
		(void)judge_again(run);
		assert_true(cause_network_latency(&base, 0.97) == rows[i].certainty);
		assert_true(cause_network_latency(&base, 0.5) == 0.5);
		store_close(run);
	}
}

/* By Little's law so many as the next stage's rate takes: 40,000 files/s of decode. */
static void the_depth_that_would_do(void **state)
{
	(void)state;
	struct store_run *run = store_open(&far_away);
	const struct calls calls = {.read_ms = 4, .idle_ms = 3.8, .wire_ms = NAN};
	count_calls(run, &calls);
	const struct verdict v = judge_again(run);
	const struct evidence_base base = {.point = &run->summary, .facts = &run->facts};
	const size_t next = binding_next_capacity(&run->summary, 0);
	const double each_s = histogram_mean(&run->summary.stages[0].service) * 1e-9;
	const double wanted = ceil(run->summary.stages[next].capacity * each_s);
	char words[32];
	(void)snprintf(words, sizeof words, "%.0f files in flight", wanted);
	assert_true(network_depth_wanted(&base) == (unsigned)wanted && wanted > 16);
	assert_true(tells(&v, words));
	store_close(run);
}

static void a_full_link(void **state)
{
	(void)state;
	/* Its speed is known. */
	const struct calls known = {
		.read_ms = 40, .idle_ms = NAN, .wire_ms = NAN, .link_share = 0.93};
	const struct verdict v = verdict_of(&thin_link, &known);
	expect_read(&v, "network");
	assert_true(tells(&v, "The link to filer is full") && tells(&v, "93 %"));
	/* It is not, but a call with nothing to do waits, and TCP's round trip is long. */
	const struct calls probed = {.read_ms = 40, .idle_ms = 30, .wire_ms = 25};
	const struct verdict w = verdict_of(&thin_link, &probed);
	expect_read(&w, "network");
	assert_true(w.confidence <= 0.9);
	/* Longer than a whole file on an idle store; most of READ's wait is before its connection. */
	const struct calls shorter = {.read_ms = 40, .idle_ms = 10, .wire_ms = 9};
	const struct verdict s = verdict_of(&thin_link, &shorter);
	expect_read(&s, "network");
	assert_true(s.confidence <= 0.8);
	/* The server makes both wait, and TCP's round trip less: bytes/s of one call at a time. */
	const struct calls turns = {.read_ms = 40, .idle_ms = 30, .wire_ms = 15};
	const struct verdict t = verdict_of(&thin_link, &turns);
	expect_read(&t, "bandwidth");
	/* No longer than the replies are apart: acknowledgements wait for the next one (5 ms). */
	const struct calls replies = {.read_ms = 40, .idle_ms = 6.5, .wire_ms = 5.2};
	const struct verdict r = verdict_of(&thin_link, &replies);
	expect_read(&r, "bandwidth");
	/* One of the two is not. */
	const struct calls half = {.read_ms = 40, .idle_ms = 10, .wire_ms = 2};
	const struct verdict h = verdict_of(&thin_link, &half);
	expect_read(&h, "bandwidth");
}

/* Acknowledgements that wait for the reply make it as long as the server takes. */
static void no_network_by_one_probe_alone(void **state)
{
	(void)state;
	const struct calls tcp = {.read_ms = 40, .idle_ms = NAN, .wire_ms = 38};
	const struct calls quick = {.read_ms = 40, .idle_ms = 0.2, .wire_ms = 38};
	const struct calls one_call = {.read_ms = 40, .idle_ms = 38, .wire_ms = NAN};
	const struct calls too_much = {
		.read_ms = 40, .idle_ms = NAN, .wire_ms = NAN, .link_share = 3};
	const struct verdict alone = verdict_of(&thin_link, &tcp);
	expect_read(&alone, "bandwidth");
	assert_true(alone.confidence <= 0.8);
	assert_true(
		tells(&alone, "Nothing tells whether the link or the server's storage is full"));
	const struct verdict call = verdict_of(&thin_link, &one_call);
	expect_read(&call, "bandwidth");
	const struct verdict against = verdict_of(&thin_link, &quick);
	expect_read(&against, "bandwidth");
	const struct verdict other_link = verdict_of(&thin_link, &too_much);
	expect_read(&other_link, "bandwidth");
}

/* Whatever the probes say. */
static void a_link_that_paces(void **state)
{
	const struct calls rows[] = {
		{.read_ms = 40, .idle_ms = 0.2, .wire_ms = 9, .receiving = 0.97},
		{.read_ms = 40, .idle_ms = NAN, .wire_ms = NAN, .receiving = 0.85, .late = 0.6},
	};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct verdict v = verdict_of(&thin_link, &rows[i]);
		expect_read(&v, "network");
		assert_true(v.confidence < 0.9);
		assert_true(tells(&v, "of the time some reply has come in part") &&
			    tells(&v, "a server that sends piece by piece"));
	}
	/* The probes agree. */
	const struct calls probed = {
		.read_ms = 40, .idle_ms = 30, .wire_ms = 25, .receiving = 0.97};
	const struct verdict w = verdict_of(&thin_link, &probed);
	expect_read(&w, "network");
	/* One in flight, and more give nothing: its first bytes came at once. */
	struct store one = thin_link;
	one.depth = 1;
	one.latency_ms = 0.1;
	const struct calls alone = {.read_ms = 5, .idle_ms = 0.2, .wire_ms = 9, .receiving = 0.65};
	const struct verdict o = verdict_of(&one, &alone);
	expect_read(&o, "network");
	assert_true(o.confidence <= 0.85);
	/* They alone: the link is used, but not all the time. */
	struct calls by_probes = probed;
	by_probes.receiving = 0.7;
	const struct verdict p = verdict_of(&thin_link, &by_probes);
	expect_read(&p, "network");
	assert_true(p.confidence <= 0.7);
	/* The server makes a call with nothing to do wait, too. */
	struct calls server = probed;
	server.wire_ms = 5;
	const struct verdict x = verdict_of(&thin_link, &server);
	expect_read(&x, "network");
	assert_true(x.confidence < w.confidence && x.confidence <= 0.8);
	/* Files take their turns, as far as that can be seen. */
	const struct verdict y = verdict_of(&one_at_a_time, &probed);
	expect_read(&y, "network");
	assert_true(y.confidence <= 0.8);
	/* Our own thread does not keep up with what comes. */
	const struct calls slow_reader = {
		.read_ms = 40, .idle_ms = 0.2, .wire_ms = 9, .receiving = 0.97, .late = 1.8};
	const struct verdict z = verdict_of(&thin_link, &slow_reader);
	assert_string_not_equal(z.resource, "network");
	assert_string_not_equal(z.resource, "server");
}

static void a_server_that_sends_in_bursts(void **state)
{
	(void)state;
	/* It has so many bytes a second, as a link would; and a call with nothing to do may wait. */
	const struct calls quick = {
		.read_ms = 40, .idle_ms = 0.2, .wire_ms = 30, .receiving = 0.01, .late = 0.1};
	const struct verdict v = verdict_of(&thin_link, &quick);
	expect_read(&v, "server");
	assert_true(tells(&v, "replies come in bursts") && !tells(&v, "bytes do not count"));
	struct calls waits = quick;
	waits.idle_ms = 30;
	const struct verdict w = verdict_of(&thin_link, &waits);
	expect_read(&w, "server");
	assert_true(w.confidence < v.confidence && w.confidence < 0.9);
	/* Much is asked: a link that was full would show more, so that it is used by half. */
	struct calls used = quick;
	used.receiving = 0.45;
	const struct verdict u = verdict_of(&thin_link, &used);
	expect_read(&u, "server");
	assert_true(tells(&u, "45 % of the time some reply has come in part"));
	/* So little in flight that a link might let it pass at once: a quick call alone speaks against it. */
	const struct calls one = {
		.read_ms = 1, .idle_ms = 0.1, .wire_ms = 1, .receiving = 0.01, .late = 0.1};
	const struct verdict o = verdict_of(&thin_link, &one);
	expect_read(&o, "server");
	assert_true(o.confidence <= 0.8);
	/* What lies in a socket until we come seems to come at once; or nobody knows when we came. */
	struct calls late = quick;
	late.late = 0.8;
	struct calls unknown = quick;
	unknown.late = NAN;
	/* Replies of a few packets come at once over any link. */
	struct calls small = quick;
	small.packets = 3;
	struct calls much = quick;
	much.receiving = 0.7;
	struct calls between = quick;
	between.receiving = 0.25;
	between.read_ms = 20;
	/* Too little is asked at once to tell, and a call with nothing to do waits as well. */
	struct calls little = waits;
	little.read_ms = 1;
	little.wire_ms = 0.5;
	const struct {
		const struct calls *calls;
		const char *why;
	} untold[] = {
		{&late, "is full: the reader's threads come too late"},
		{&unknown, "is full: the reader's threads come too late"},
		{&small, "is full: replies of so few packets"},
		{&much, "Nothing tells whether the link or the server's storage is full."},
		{&between, "is full: so little is in flight"},
		{&little, "is full: so little is in flight"},
	};
	for (size_t i = 0; i < sizeof untold / sizeof untold[0]; i++) {
		const struct verdict n = verdict_of(&thin_link, untold[i].calls);
		expect_read(&n, "bandwidth");
		assert_true(n.confidence <= 0.5);
		assert_true(tells(&n, untold[i].why));
	}
}

static void a_server_that_is_full(void **state)
{
	(void)state;
	const struct calls both = {.read_ms = 40, .idle_ms = 0.3, .wire_ms = 0.2};
	const struct verdict v = verdict_of(&one_at_a_time, &both);
	expect_read(&v, "server");
	assert_true(tells(&v, "while a call with nothing to do takes"));
	/* All calls wait for their turn, and TCP's round trip with them: bytes do not count. */
	const struct calls in_turn = {.read_ms = 40, .idle_ms = 39, .wire_ms = 38};
	const struct verdict w = verdict_of(&one_at_a_time, &in_turn);
	expect_read(&w, "server");
	assert_true(w.confidence < v.confidence && w.confidence <= 0.7);
	/* Longer than TCP's round trip: surer. */
	const struct calls in_server = {.read_ms = 40, .idle_ms = 39, .wire_ms = 9};
	const struct verdict x = verdict_of(&one_at_a_time, &in_server);
	expect_read(&x, "server");
	assert_true(x.confidence > w.confidence && x.confidence <= 0.8);
	/* Where bytes count, a link elsewhere may be as narrow, however free this node's is. */
	const struct calls bytes = {
		.read_ms = 40, .idle_ms = 0.3, .wire_ms = NAN, .link_share = 0.1};
	const struct verdict b = verdict_of(&thin_link, &bytes);
	expect_read(&b, "bandwidth");
	/* Nothing tells the server from the way to it. */
	const struct calls nothing = {.read_ms = 40, .idle_ms = NAN, .wire_ms = NAN};
	const struct verdict n = verdict_of(&one_at_a_time, &nothing);
	assert_string_not_equal(n.resource, "server");
	assert_string_not_equal(n.resource, "network");
}

/* Bytes and calls are the same then: a link whose first files pass at once looks like servers. */
static void files_of_one_size_are_no_server(void **state)
{
	(void)state;
	const struct store equal = {.latency_ms = 12, .exponential = true, .slots = 4, .depth = 16};
	const struct calls calls = {.read_ms = 48, .idle_ms = 40, .wire_ms = 10};
	for (uint64_t seed = 0; seed < 6; seed++) {
		struct store store = equal;
		store.seed = seed;
		const struct verdict v = verdict_of(&store, &calls);
		assert_string_not_equal(v.resource, "server");
		assert_false(tells(&v, "bytes do not count"));
		store.bytes_cv = 0.5;
		const struct verdict w = verdict_of(&store, &calls);
		expect_read(&w, "server");
	}
}

/* READ waits in the client for a slot: more of them would help, not another server. */
static void slots_of_the_client_are_no_server(void **state)
{
	(void)state;
	const struct calls calls = {.read_ms = 5, .slot_ms = 35, .idle_ms = 0.3, .wire_ms = 0.2};
	const struct verdict v = verdict_of(&one_at_a_time, &calls);
	assert_string_not_equal(v.resource, "server");
	assert_true(tells(&v, "waits 35.0 ms in the client"));
}

static void calls_that_are_not_read(void **state)
{
	(void)state;
	struct store tiny = one_at_a_time;
	tiny.bytes_mean = 4000;
	const struct calls opens = {.read_ms = 10,
		.idle_ms = 0.3,
		.wire_ms = 0.2,
		.others = 3,
		.other_ms = 10,
		.other = "OPEN"};
	const struct verdict v = verdict_of(&tiny, &opens);
	expect_read(&v, "metadata");
	assert_true(v.confidence <= 0.9);
	assert_true(tells(&v, "75 % of the time of all calls is not READ"));
	struct calls attributes = opens;
	attributes.other = "GETATTR";
	const struct verdict a = verdict_of(&tiny, &attributes);
	expect_read(&a, "metadata");
	assert_true(tells(&a, "mostly attributes") && tells(&a, "actimeo"));
	/* Many quick calls beside a READ that takes the time. */
	struct calls quick = opens;
	quick.other_ms = 0.3;
	quick.read_ms = 40;
	const struct verdict q = verdict_of(&tiny, &quick);
	expect_read(&q, "server");
	/* Bytes count: the calls wait for the link like READ. */
	const struct verdict b = verdict_of(&thin_link, &opens);
	assert_string_not_equal(b.resource, "metadata");
}

/* Already with one in flight: a file takes no longer than on an idle server, and more give no more. */
static void metadata_of_one_in_flight(void **state)
{
	(void)state;
	struct store tiny = one_at_a_time;
	tiny.bytes_mean = 4000;
	tiny.depth = 1;
	const struct calls calls = {.read_ms = 0.3,
		.idle_ms = 5,
		.wire_ms = 3,
		.others = 1,
		.other_ms = 4.7,
		.other = "LOOKUP",
		.receiving = 0.001,
		.packets = 2};
	const struct verdict v = verdict_of(&tiny, &calls);
	expect_read(&v, "metadata");
	assert_true(
		tells(&v, "2.0 calls per sample, 1.0 of them other than READ, mostly attributes"));
}

/* Small files at depth 1: deeper reads hide all their calls. */
static void latency_comes_before_metadata(void **state)
{
	(void)state;
	const struct store store = {
		.latency_ms = 4, .latency_cv = 0.1, .depth = 1, .bytes_mean = 4000};
	const struct calls calls = {.read_ms = 1,
		.idle_ms = 0.9,
		.wire_ms = 0.9,
		.others = 3,
		.other_ms = 1,
		.other = "LOOKUP"};
	const struct verdict v = verdict_of(&store, &calls);
	expect_read(&v, "latency");
	assert_true(tells(&v, "4.0 calls per sample, 3.0 of them other than READ"));
}

/* One depth, whatever the calls look like. */
static void one_depth_names_nothing(void **state)
{
	static const struct store *const stores[] = {&far_away, &thin_link, &one_at_a_time};
	const struct calls rows[] = {
		{.read_ms = 40, .idle_ms = 39, .wire_ms = 39, .link_share = 0.95},
		{.read_ms = 40, .idle_ms = 0.1, .wire_ms = 0.1},
		{.read_ms = 4, .idle_ms = 3.9, .wire_ms = 3.9, .others = 9, .other_ms = 4},
	};
	(void)state;
	for (size_t s = 0; s < sizeof stores / sizeof stores[0]; s++)
		for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
			struct store store = *stores[s];
			store.one_point = true;
			const struct verdict v = verdict_of(&store, &rows[i]);
			expect_read(&v, "unknown");
			assert_true(tells(&v, "a sweep of read.depth="));
		}
}

/* But a link on which bytes come all the time, unless the depths say that it is not full. */
static void one_depth_on_a_full_link(void **state)
{
	(void)state;
	struct calls calls = {
		.read_ms = 40, .idle_ms = 0.2, .wire_ms = 9, .receiving = 0.97, .late = 0.1};
	struct store store = thin_link;
	store.one_point = true;
	const struct verdict v = verdict_of(&store, &calls);
	expect_read(&v, "network");
	assert_true(v.confidence <= 0.8 && tells(&v, "have no more room on it"));
	const struct verdict w = verdict_of(&far_away, &calls);
	expect_read(&w, "latency");
	calls.receiving = 0.85;
	const struct verdict x = verdict_of(&store, &calls);
	expect_read(&x, "unknown");
	calls.receiving = 0.01;
	const struct verdict y = verdict_of(&store, &calls);
	expect_read(&y, "unknown");
}

/* First files alone tell a local store's latency, but no network's. */
static void first_files_alone_are_one_depth(void **state)
{
	(void)state;
	const struct calls calls = {.read_ms = 4, .idle_ms = 3.9, .wire_ms = 3.9};
	struct store_run *run = store_open(&far_away);
	for (size_t r = 0; r < STORE_REPEATS; r++)
		run->measurements[r].read_point_count = 0;
	const struct verdict local = judge_again(run);
	expect_read(&local, "latency");
	count_calls(run, &calls);
	const struct verdict remote = judge_again(run);
	expect_read(&remote, "unknown");
	store_close(run);
}

/* Two depths that do not agree with either: nothing is told. */
static void depths_that_do_not_tell(void **state)
{
	(void)state;
	const struct calls calls = {
		.read_ms = 40, .idle_ms = 39, .wire_ms = 39, .link_share = 0.95};
	struct store_run *run = store_open(&thin_link);
	for (size_t r = 0; r < STORE_REPEATS; r++) {
		struct measurement *m = &run->measurements[r];
		for (size_t k = 0; k < m->read_point_count; k++)
			m->read_points[k].rate_error = 5; /* any slope fits it */
		run->traces[r].stages[0].count = 0;       /* no first files */
	}
	count_calls(run, &calls);
	const struct verdict v = judge_again(run);
	assert_string_not_equal(v.resource, "network");
	assert_string_not_equal(v.resource, "latency");
	store_close(run);
}

/* The same stores without a network file system; and its counts missing, or of another server. */
static void no_calls_no_network(void **state)
{
	(void)state;
	const struct calls calls = {.read_ms = 40, .idle_ms = 0.3, .wire_ms = 0.2};
	const struct verdict fuse = verdict_of(&one_at_a_time, NULL);
	assert_true(
		strcmp(fuse.resource, "iops") == 0 || strcmp(fuse.resource, "concurrency") == 0);
	assert_false(tells(&fuse, "READ"));
	struct store_run *run = store_open(&one_at_a_time);
	count_calls(run, &calls);
	for (size_t r = 0; r < STORE_REPEATS; r++)
		(void)snprintf(run->measurements[r].network.why, STORE_WHY_BYTES, "it is torn");
	const struct verdict v = judge_again(run);
	assert_string_not_equal(v.resource, "server");
	assert_true(tells(&v, "were not counted: it is torn"));
	store_close(run);
}

/* A limit of the job's own control group is a fact, and comes first. */
static void a_cgroup_comes_first(void **state)
{
	(void)state;
	const struct calls calls = {
		.read_ms = 40, .idle_ms = 39, .wire_ms = 39, .link_share = 0.95};
	struct store_run *run = store_open(&thin_link);
	count_calls(run, &calls);
	for (size_t r = 0; r < STORE_REPEATS; r++) {
		struct store_measurement *store = &run->measurements[r].store;
		store_measurement_init(store, "");
		(void)snprintf(store->device, sizeof store->device, "sda");
		(void)snprintf(store->bytes_group, sizeof store->bytes_group, "/pod");
		store->bytes_limit = store->bytes_used = 2e7;
	}
	const struct verdict v = judge_again(run);
	expect_read(&v, "bandwidth");
	assert_true(tells(&v, "cgroup /pod") && !tells(&v, "Nothing tells"));
	store_close(run);
}

/* A repetition without counts adds neither calls nor seconds; another server leaves none. */
static void repetitions_are_merged(void **state)
{
	(void)state;
	const struct calls calls = {.read_ms = 40, .idle_ms = 0.3, .wire_ms = NAN};
	struct store_run *run = store_open(&one_at_a_time);
	count_calls(run, &calls);
	struct network_measurement *first = &run->measurements[0].network;
	const double seconds = run->measurements[1].network.seconds;
	const double reads = run->measurements[1].network.calls[0].calls;
	(void)snprintf(first->why, sizeof first->why, "went back");
	first->seconds = 1000;
	(void)judge_again(run);
	assert_string_equal(run->summary.network.why, "");
	assert_true(run->summary.network.seconds == seconds);
	assert_true(run->summary.network.calls[0].calls == reads);
	first->why[0] = '\0';
	first->seconds = seconds;
	first->calls[0].queue_ns = NAN;
	(void)judge_again(run);
	assert_true(run->summary.network.seconds == 2 * seconds);
	assert_true(run->summary.network.calls[0].round_trip_ns == 40 * MS);
	assert_true(run->summary.network.calls[0].queue_ns == 0);
	(void)snprintf(first->server, sizeof first->server, "another");
	(void)judge_again(run);
	assert_string_not_equal(run->summary.network.why, "");
	assert_int_equal(run->summary.network.call_count, 0);
	store_close(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_round_trip_with_too_few_in_flight),
		cmocka_unit_test(a_second_witness_makes_it_surer),
		cmocka_unit_test(the_depth_that_would_do),
		cmocka_unit_test(a_full_link),
		cmocka_unit_test(no_network_by_one_probe_alone),
		cmocka_unit_test(a_link_that_paces),
		cmocka_unit_test(a_server_that_sends_in_bursts),
		cmocka_unit_test(a_server_that_is_full),
		cmocka_unit_test(files_of_one_size_are_no_server),
		cmocka_unit_test(slots_of_the_client_are_no_server),
		cmocka_unit_test(calls_that_are_not_read),
		cmocka_unit_test(metadata_of_one_in_flight),
		cmocka_unit_test(latency_comes_before_metadata),
		cmocka_unit_test(one_depth_names_nothing),
		cmocka_unit_test(one_depth_on_a_full_link),
		cmocka_unit_test(first_files_alone_are_one_depth),
		cmocka_unit_test(depths_that_do_not_tell),
		cmocka_unit_test(no_calls_no_network),
		cmocka_unit_test(a_cgroup_comes_first),
		cmocka_unit_test(repetitions_are_merged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
