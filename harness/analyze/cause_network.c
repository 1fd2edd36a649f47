/* Why reading from a network file system is slow: the round trip, the link, the server, or calls
 * that are not READ.
 *
 * That files wait, and whether more in flight would help, is told by other depths alone
 * (storage_capacity.h); without another depth none of this is said, but of a link on which bytes
 * come all the time.  If more in flight help, it is latency, whatever the calls are: deeper reads
 * hide many small calls, too.  If they do not, the calls that the client counted say where the time
 * goes.
 *
 * How the bytes of replies come tells a full link from a full server (view_pace): a link paces
 * them, so that some reply has come in part nearly all the time; a server sends a reply at once
 * when it has it.  What cannot be told: a server that itself sends piece by piece, or a long way
 * for which TCP's window is too small, paces them, too.  Replies of a few packets show nothing,
 * nor does a thread of ours that sleeps through the difference; and a virtual link that lets a
 * whole reply pass at once paces them only where others follow closely.  Only the nfs engine sees
 * when bytes come; without that, and between the two, there are the probes:
 *
 *   network    the link paces the bytes; or they come near its speed; or a call with hardly
 *              anything to do (NULL, GETATTR) and TCP's round trip are long beside the load, and
 *              time is in proportion to bytes.  TCP's round trip alone shows nothing:
 *              acknowledgements that wait for the reply make the server's time part of it.  Nor
 *              does the call alone: a server that makes it wait makes it longer than TCP's round
 *              trip.
 *   metadata   most of the time of a sample is spent in other calls than READ, and bytes do not
 *              count.
 *   server     replies come in bursts although more in flight give no more; or READ takes longer
 *              the more are in flight, bytes do not count, and such a call stays quick or all calls
 *              wait.
 *
 * Where none of this is so, it stays read/bandwidth, which is true of a link and of a server. */
#include "harness/analyze/verdict.h"

#include "harness/analyze/storage_capacity.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bytes received over the link's speed: full (headers take some of it), and more than can be. */
static const double LINK_FULL = 0.85, LINK_MOST = 1.10;
/* Of a READ's round trip: a call takes so little that it met no queue, or so much that it did. */
static const double PROBE_QUICK = 0.15, PROBE_WAITS = 0.35;
/* Of a file's time on an idle store. */
static const double QUICK_OF_IDLE = 0.5, BEYOND_A_REPLY = 1.3;
/* A call with nothing to do over TCP's round trip: as long as a queue on the way makes both. */
static const double ON_THE_WAY = 1.7;
static const double PROBE_AS_LONG = 0.5; /* a round trip is most of what a READ takes */
static const double GROWN = 1.5;         /* of a file's time, over that on an idle store */
static const double SLOTS_HOLD = 0.5;    /* of a READ's time, in the client's queue */
static const double MOSTLY_OTHER = 0.5;
static const double SMALL_SAMPLE = 131072; /* bytes, where bytes and calls cannot be told apart */
static const double ATTRIBUTES = 0.5; /* of the calls that are not READ: attributes looked up */
/* Of the time, some reply has come in part: next to 1 where a link is full, and else as much as it
 * is used (docs/ACCURACY.md).  A link that lets some packets pass at once shows less than it is used,
 * until much is asked over each connection: so many READs and bytes of them in flight. */
static const double SHARE_PACED = 0.8, SHARE_BURSTS = 0.1, SHARE_FREE = 0.6;
static const double SHARE_ALL = 0.9; /* more in flight gain no more than the rest */
/* With one in flight the server's time and the link's add up.  Two gain nothing only where one of
 * them is nearly all, and it is the link's; what it lets pass at once is missing. */
static const double SHARE_OF_ONE = 0.6, ONE_IN_FLIGHT = 1.5;
static const double READS_ENOUGH = 3, BYTES_ENOUGH = 48 * 1024, BYTES_PLENTY = 256 * 1024;
static const double PACKETS_SHOW = 4; /* of a reply */
/* Of the reader's time: it may not have seen what came; it is what is full itself. */
static const double SHARE_UNSEEN = 0.5, READER_FULL = 0.7;
static const double CERTAIN_BOTH = 0.95, CERTAIN_ONE_WITNESS = 0.9, CERTAIN_PART = 0.8,
		    CERTAIN_HALF = 0.7;
static const double CERTAIN_PACED =
	0.85; /* that witness alone: some servers pace bytes as a link does */

/* --- what was counted ------------------------------------------------------------------------- */

enum pace { PACE_UNKNOWN, PACE_OF_LINK, PACE_OF_SERVER };

struct network_view {
	struct network_call read;  /* all that read files; calls 0: none */
	double calls, other_calls; /* all, and those that are not READ */
	double attributes;         /* of these, that look attributes up */
	double other_share;        /* of the time of all calls (NAN: not known), else of calls */
	double bytes_per_s;        /* received; NAN */
	double link;               /* share of the link's speed; NAN */
	double idle, wire;         /* round trips over a READ's; NAN */
	double asked, asked_bytes; /* READs in flight, and their bytes, of each connection; NAN */
	enum pace pace;
};

static bool call_reads(const char *name)
{
	return strcmp(name, "READ") == 0 || strcmp(name, "READ_PLUS") == 0;
}

static bool call_looks_up(const char *name)
{
	return strcmp(name, "GETATTR") == 0 || strcmp(name, "ACCESS") == 0 ||
	       strcmp(name, "LOOKUP") == 0;
}

/* False: no network file system, or one whose calls were not counted. */
static bool network_view_of(const struct point_summary *point, struct network_view *v)
{
	const struct network_measurement *n = &point->network;
	struct network_measurement reads;
	double seconds = 0;
	double other_seconds = 0;
	double bytes = 0;
	*v = (struct network_view){.read = {.round_trip_ns = NAN, .execute_ns = NAN}};
	if (!n->protocol[0] || n->why[0] || n->call_count == 0 || !(n->seconds > 0))
		return false;
	network_measurement_init(&reads, "");
	for (size_t i = 0; i < n->call_count; i++) {
		struct network_call call = n->calls[i];
		const bool reading = call_reads(call.name);
		if (!(call.calls > 0))
			continue;
		v->calls += call.calls;
		v->other_calls += reading ? 0 : call.calls;
		v->attributes += call_looks_up(call.name) ? call.calls : 0;
		seconds += call.calls * call.execute_ns;
		other_seconds += reading ? 0 : call.calls * call.execute_ns;
		bytes += isnan(call.bytes_received) ? 0 : call.bytes_received;
		(void)snprintf(call.name, sizeof call.name, "READ");
		if (reading)
			network_add_call(&reads, &call);
	}
	if (reads.call_count > 0)
		v->read = reads.calls[0];
	v->other_share = seconds > 0 ? other_seconds / seconds : v->other_calls / v->calls;
	v->bytes_per_s = bytes > 0 ? bytes / n->seconds : NAN;
	v->link = v->bytes_per_s / n->link_bytes_per_s;
	const double trip = v->read.round_trip_ns > 0 ? v->read.round_trip_ns : NAN;
	v->asked = v->read.calls / n->seconds * trip * 1e-9 / n->connections;
	v->asked_bytes = v->asked * v->read.bytes_received / v->read.calls;
	v->idle = n->idle_round_trip_ns / trip;
	v->wire = n->wire_round_trip_ns / trip;
	return true;
}

static double calls_per_sample(const struct point_summary *point, const struct network_view *v)
{
	return v->calls / point->network.seconds / point->median;
}

/* --- the rules -------------------------------------------------------------------------------- */

/* What a file takes on an idle store; never less than the time between two files. */
static double alone_ns(const struct storage *s)
{
	return fmax(s->latency_ns, 1e9 / s->rate);
}

/* A round trip of a call with hardly anything to do, or of TCP.  A NAN is none of these. */
static bool probe_is_quick(const struct storage *s, const struct network_view *v, double probe_ns)
{
	return probe_ns < PROBE_QUICK * v->read.round_trip_ns &&
	       probe_ns < QUICK_OF_IDLE * alone_ns(s);
}

/* As long as most of what a READ waits. */
static bool probe_waits_long(const struct network_view *v, double probe_ns)
{
	return probe_ns >= PROBE_WAITS * v->read.round_trip_ns;
}

/* Longer than a whole file takes on an idle store: it met others.  What the server holds back in
 * its buffers for a connection that is full is before READ alone. */
static bool call_waits(const struct storage *s, const struct network_view *v, double idle_ns)
{
	return probe_waits_long(v, idle_ns) || idle_ns >= alone_ns(s);
}

/* Acknowledgements that go with the next reply come up to that time later without any queue. */
static bool wire_waits(const struct storage *s, const struct network_view *v, double wire_ns)
{
	return probe_waits_long(v, wire_ns) || wire_ns >= BEYOND_A_REPLY * alone_ns(s);
}

/* Longer than TCP's own round trip, by which a queue on the way would show, too: the server makes
 * it wait. */
static bool server_makes_wait(const struct network_measurement *n)
{
	return n->idle_round_trip_ns > ON_THE_WAY * n->wire_round_trip_ns;
}

static bool depths_say_full(const struct storage *s)
{
	return s->known && s->compared > 0 && s->full > 0.5 + STORAGE_TOLD;
}

/* Without another depth, or where those do not tell. */
static bool pace_says_full(
	const struct network_measurement *n, const struct storage *s, const struct network_view *v)
{
	const bool against = s->known && s->compared > 0 && s->full < 0.5 - STORAGE_TOLD;
	return v->pace == PACE_OF_LINK && n->receiving_share >= SHARE_ALL && !against;
}

static bool files_wait(const struct storage *s)
{
	return s->response_ns >= GROWN * s->latency_ns;
}

static bool bytes_count(const struct storage *s)
{
	return s->kind == STORAGE_BYTES;
}

/* Files of one size do not tell, unless they come back in groups: no link does that. */
static bool bytes_do_not_count(const struct storage *s)
{
	return (s->kind == STORAGE_REQUESTS || s->kind == STORAGE_SLOTS) &&
	       (!isnan(s->bytes_share) || s->group > 1);
}

static bool link_is_full(const struct network_view *v)
{
	return v->link >= LINK_FULL && v->link <= LINK_MOST;
}

/* Bytes that lie in a socket until our thread gets there seem to come at once: it was on a core or
 * waited for one.  NAN: not known. */
static double share_unseen(const struct stage_summary *read)
{
	return read->busy * (read->cpu + read->run_queue);
}

static bool enough_is_asked(const struct network_view *v)
{
	return v->asked >= READS_ENOUGH && v->asked_bytes >= BYTES_ENOUGH;
}

static bool replies_are_long(const struct network_measurement *n, const struct network_view *v)
{
	return v->read.bytes_received >= PACKETS_SHOW * n->packet_bytes * v->read.calls;
}

static enum pace view_pace(const struct evidence_base *base, const struct stage_summary *read,
	const struct storage *s, const struct network_view *v)
{
	const struct network_measurement *n = &base->point->network;
	const double share = n->receiving_share;
	const double at_most = share + share_unseen(read);
	const bool one = s->in_flight < ONE_IN_FLIGHT && depths_say_full(s);
	if (share >= (one ? SHARE_OF_ONE : SHARE_PACED))
		return read->busy * read->cpu > READER_FULL ? PACE_UNKNOWN : PACE_OF_LINK;
	if (!replies_are_long(n, v))
		return PACE_UNKNOWN;
	if (at_most <= SHARE_FREE && v->asked >= READS_ENOUGH && v->asked_bytes >= BYTES_PLENTY)
		return PACE_OF_SERVER;
	return share <= SHARE_BURSTS && at_most <= SHARE_UNSEEN &&
			       (enough_is_asked(v) || probe_is_quick(s, v, n->idle_round_trip_ns))
		       ? PACE_OF_SERVER
		       : PACE_UNKNOWN;
}

/* The probes agree, say nothing, or that the server makes them wait. */
static double paced_certainty(
	const struct network_measurement *n, const struct storage *s, const struct network_view *v)
{
	if (server_makes_wait(n) || bytes_do_not_count(s))
		return CERTAIN_PART;
	return call_waits(s, v, n->idle_round_trip_ns) && wire_waits(s, v, n->wire_round_trip_ns)
		       ? CERTAIN_BOTH
		       : CERTAIN_PACED;
}

static bool network_is_full(const struct evidence_base *base, const struct storage *s,
	const struct network_view *v, struct cause *out)
{
	const struct network_measurement *n = &base->point->network;
	char rate[UNITS_BYTES];
	char link[UNITS_BYTES];
	char idle[UNITS_BYTES];
	char wire[UNITS_BYTES];
	char each[UNITS_BYTES];
	if (link_is_full(v))
		return cause_is(out, "network", fmin(s->full, CERTAIN_BOTH),
			"the link to %s is full: %s arrive, %.0f %% of its %s, and more files in "
			"flight give no more",
			n->server[0] ? n->server : "the server",
			units_format_rate(v->bytes_per_s, rate), v->link * 100,
			units_format_rate(n->link_bytes_per_s, link));
	if (v->pace == PACE_OF_LINK)
		return cause_is(out, "network",
			depths_say_full(s) ? s->full * paced_certainty(n, s, v) : CERTAIN_PART,
			"the link to %s is full: it paces the %s that arrive, and more files in "
			"flight %s (a server that sends piece by piece would look the same)",
			n->server[0] ? n->server : "the server",
			units_format_rate(v->bytes_per_s, rate),
			depths_say_full(s) ? "give no more" : "have no more room on it");
	if (v->pace == PACE_OF_SERVER)
		return false;
	/* Neither of the two shows it alone. */
	if (!files_wait(s) || !call_waits(s, v, n->idle_round_trip_ns) ||
		!wire_waits(s, v, n->wire_round_trip_ns) || server_makes_wait(n) ||
		bytes_do_not_count(s))
		return false;
	const bool long_waits = probe_waits_long(v, n->idle_round_trip_ns) &&
				probe_waits_long(v, n->wire_round_trip_ns);
	const double most = n->receiving_share < SHARE_PACED || !bytes_count(s) ? CERTAIN_HALF
			    : long_waits ? CERTAIN_ONE_WITNESS
					 : CERTAIN_PART;
	(void)units_format_duration(n->idle_round_trip_ns, idle);
	return cause_is(out, "network", s->full * most,
		"the network is saturated: a call with nothing to do waits %s beside the load, and "
		"TCP's round trip is %s; a READ takes %s, and more files in flight give no more%s",
		idle, units_format_duration(n->wire_round_trip_ns, wire),
		units_format_duration(v->read.round_trip_ns, each),
		bytes_count(s) ? "; time is proportional to bytes" : "");
}

static bool metadata_limits(const struct evidence_base *base, const struct storage *s,
	const struct network_view *v, struct cause *out)
{
	const double sample = base->count > 0 ? base->repeats[0]->file_bytes_mean : NAN;
	if (!(v->other_share > MOSTLY_OTHER) || bytes_count(s) ||
		(!bytes_do_not_count(s) && !(sample <= SMALL_SAMPLE)))
		return false;
	const bool attributes = v->attributes > ATTRIBUTES * v->other_calls;
	return cause_is(out, "metadata",
		fmin(s->full, CERTAIN_ONE_WITNESS) * certainty_above(v->other_share, MOSTLY_OTHER),
		"%.0f %% of the time of all calls is not READ (%.1f calls per sample, %.1f of them "
		"other than READ%s), and more files in flight give no more",
		v->other_share * 100, calls_per_sample(base->point, v),
		calls_per_sample(base->point, v) * v->other_calls / v->calls,
		attributes ? ", mostly attributes" : "");
}

/* How sure it is that the time passes in the server; 0: not at all.  Where bytes count, and nobody
 * sees how they come, its storage looks like a link with a short queue, and that this node's own
 * interface is free says nothing of the links behind it. */
static double server_certainty(
	const struct network_measurement *n, const struct storage *s, const struct network_view *v)
{
	const bool idle = probe_is_quick(s, v, n->idle_round_trip_ns);
	const bool wire = probe_is_quick(s, v, n->wire_round_trip_ns);
	if (v->pace == PACE_OF_SERVER && !enough_is_asked(v))
		return CERTAIN_PART;
	if (v->pace == PACE_OF_SERVER)
		return idle || bytes_do_not_count(s) ? CERTAIN_BOTH : CERTAIN_ONE_WITNESS;
	if (!files_wait(s) || !bytes_do_not_count(s))
		return 0;
	if (idle || wire)
		return idle && wire ? CERTAIN_BOTH : CERTAIN_ONE_WITNESS;
	if (!call_waits(s, v, n->idle_round_trip_ns))
		return 0;
	return server_makes_wait(n) ? CERTAIN_PART : CERTAIN_HALF;
}

static bool server_is_full(const struct evidence_base *base, const struct storage *s,
	const struct network_view *v, struct cause *out)
{
	const struct network_measurement *n = &base->point->network;
	const double sure = server_certainty(n, s, v);
	char loaded[UNITS_BYTES];
	char alone[UNITS_BYTES];
	char probe[UNITS_BYTES];
	char quick[80] = "";
	const bool seen = v->pace == PACE_OF_SERVER;
	if (sure <= 0 || v->read.queue_ns >= SLOTS_HOLD * v->read.execute_ns)
		return false;
	if (probe_is_quick(s, v, n->idle_round_trip_ns))
		(void)snprintf(quick, sizeof quick, ", while a call with nothing to do takes %s",
			units_format_duration(n->idle_round_trip_ns, probe));
	else if (probe_is_quick(s, v, n->wire_round_trip_ns))
		(void)snprintf(quick, sizeof quick, ", while TCP's round trip is %s",
			units_format_duration(n->wire_round_trip_ns, probe));
	return cause_is(out, "server",
		seen ? s->full * sure : fmin(s->full, sure) * s->kind_certainty,
		"the server is saturated: a file takes %s with %.1f in flight and %s on an idle "
		"server%s; more files in flight give no more, and %s",
		units_format_duration(s->response_ns, loaded), s->in_flight,
		units_format_duration(s->latency_ns, alone), quick,
		seen ? "replies come in bursts" : "bytes do not count");
}

bool cause_network(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	struct network_view view;
	struct storage s;
	if (base->facts->reads_memory || !network_view_of(base->point, &view))
		return false;
	model_storage(base->source, base->repeats, base->count, cause_let_through(base->facts), &s);
	view.pace = view_pace(base, stage, &s, &view);
	if (s.others > 0 ||
		!(depths_say_full(&s) || pace_says_full(&base->point->network, &s, &view)))
		return false;
	return network_is_full(base, &s, &view, out) || metadata_limits(base, &s, &view, out) ||
	       server_is_full(base, &s, &view, out);
}

bool cause_is_network(const struct evidence_base *base)
{
	return base->point->network.protocol[0] && !base->facts->reads_memory;
}

double cause_network_latency(const struct evidence_base *base, double certainty)
{
	struct network_view view;
	const bool agree = network_view_of(base->point, &view) &&
			   (view.idle >= PROBE_AS_LONG || view.wire >= PROBE_AS_LONG);
	return cause_is_network(base) && !agree ? fmin(certainty, CERTAIN_ONE_WITNESS) : certainty;
}

/* --- words ------------------------------------------------------------------------------------ */

unsigned network_depth_wanted(const struct evidence_base *base)
{
	const struct point_summary *point = base->point;
	const struct stage_summary *read = summary_stage(point, STAGE_READ_NAME);
	if (!cause_is_network(base) || !read)
		return 0;
	const size_t next = binding_next_capacity(point, (size_t)(read - point->stages));
	const double each_s = histogram_mean(&read->service) * 1e-9 * point->reads_per_sample;
	const double wanted =
		next < point->stage_count ? ceil(point->stages[next].capacity * each_s) : 0;
	return wanted >= 1 && wanted < 1e6 ? (unsigned)wanted : 0;
}

static void evidence_add_calls(const struct evidence_base *base, struct verdict *out)
{
	const struct network_measurement *n = &base->point->network;
	struct network_view v;
	char queue[UNITS_BYTES];
	char trip[UNITS_BYTES];
	char waits[64] = "";
	char again[64] = "";
	double repeated = 0;
	if (!network_view_of(base->point, &v) || !(v.read.calls > 0)) {
		evidence_add(out, "the calls of %s to %s were not counted: %s", n->protocol,
			n->server[0] ? n->server : "the server",
			n->why[0] ? n->why : "there was no READ");
		return;
	}
	for (size_t i = 0; i < n->call_count; i++)
		repeated += isnan(n->calls[i].retransmits) ? 0 : n->calls[i].retransmits;
	if (v.read.queue_ns > 0)
		(void)snprintf(waits, sizeof waits, "waits %s in the client and ",
			units_format_duration(v.read.queue_ns, queue));
	if (repeated > 0)
		(void)snprintf(again, sizeof again, "; %.0f calls were sent again", repeated);
	evidence_add(out,
		"over %s to %s (%u connection%s) a READ %stakes %s until its reply; %.1f calls per "
		"sample, %.1f of them other than READ%s",
		n->protocol, n->server[0] ? n->server : "the server", n->connections,
		n->connections == 1 ? "" : "s", waits,
		units_format_duration(v.read.round_trip_ns, trip),
		calls_per_sample(base->point, &v),
		calls_per_sample(base->point, &v) * v.other_calls / v.calls, again);
	if (isnan(n->receiving_share))
		evidence_add(out,
			"how the bytes of a reply come is not known: only the nfs engine sees it");
	else
		evidence_add(out, "%.0f %% of the time some reply has come in part",
			n->receiving_share * 100);
}

/* Why the way that bytes come does not tell a link from a server. */
static const char *why_no_pace(const struct evidence_base *base, const struct stage_summary *read)
{
	const struct network_measurement *n = &base->point->network;
	const double share = n->receiving_share;
	struct network_view v;
	if (!read || !network_view_of(base->point, &v) || !(share < SHARE_PACED))
		return "";
	if (!replies_are_long(n, &v))
		return ": replies of so few packets do not show it";
	if (share < SHARE_FREE && !(share + share_unseen(read) <= SHARE_FREE))
		return ": the reader's threads come too late to see it";
	return enough_is_asked(&v) ? "" : ": so little is in flight that it does not show";
}

void evidence_add_network(
	const struct evidence_base *base, const char *resource, struct verdict *out)
{
	const struct stage_summary *read = summary_stage(base->point, STAGE_READ_NAME);
	const unsigned wanted = network_depth_wanted(base);
	char each[UNITS_BYTES];
	if (!cause_is_network(base))
		return;
	evidence_add_calls(base, out);
	/* A limit on a disk is another matter. */
	const bool disk = base->point->store.device[0] != '\0';
	if (!disk && (strcmp(resource, "bandwidth") == 0 || strcmp(resource, "full") == 0))
		evidence_add(out,
			"nothing tells whether the link or the server's storage is full%s",
			why_no_pace(base, read));
	if (!disk && (strcmp(resource, "iops") == 0 || strcmp(resource, "concurrency") == 0))
		evidence_add(
			out, "nothing tells whether the server or the client's slots are full");
	if (strcmp(resource, "latency") == 0 && read && wanted > 0)
		evidence_add(out,
			"a %s takes %s, all its round trips together: by Little's law %u in flight "
			"would keep up with the next stage, as long as the server and the link "
			"keep up",
			cause_read_unit(base),
			units_format_duration(histogram_mean(&read->service), each), wanted);
}
