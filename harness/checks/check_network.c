/* network: bandwidth and latency of the links between the nodes of a job, a ring, all-to-all, and which link or node is slow.
 * It needs the ranks that a launcher started (harness/checks/node_ranks.h), which measure it together. */
#include "harness/accept/judge.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/launcher.h"
#include "harness/base/units.h"
#include "harness/checks/check.h"
#include "harness/checks/network.h"
#include "harness/checks/slow_links.h"
#include "workloads/ranks/links.h"
#include "workloads/ranks/ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	REPEATS_MOST = 48,
	PLACE_BYTES = 2 * NETWORK_NAME_BYTES + 8,
	OVERHEAD_MS = 8, /* of a trial, to tell and to take */
};

static const char *const slow_figures[LINK_QUANTITIES] = {
	[LINK_BANDWIDTH] = "network.slow.bandwidth", [LINK_LATENCY] = "network.slow.latency"};

struct network_times network_times(enum accept_tier tier)
{
	return tier == TIER_QUICK      ? (struct network_times){10 * NS_PER_MS, 5 * NS_PER_MS}
	       : tier == TIER_STANDARD ? (struct network_times){40 * NS_PER_MS, 20 * NS_PER_MS}
				       : (struct network_times){200 * NS_PER_MS, 50 * NS_PER_MS};
}

/* So many that the median of each link can be shown to be on either side of a limit: places and limits share the rate of wrong
 * fails (harness/accept/judge.h), and there is one look. */
static unsigned network_repeats(
	const struct accept_plan *plan, enum accept_tier tier, unsigned parties)
{
	size_t limits = 1;
	for (size_t i = 0; i < plan->check_count; i++)
		if (check_in_tier(&plan->checks[i], tier))
			limits += plan->checks[i].limit_count;
	const double tests = 2.0 * parties * (double)limits;
	const unsigned repeats = judge_repeats(plan_share(plan, PLAN_ERROR) / tests) + 1;
	return repeats < REPEATS_MOST ? repeats : REPEATS_MOST;
}

/* Nodes as the launcher tells, about: the more the longer. */
static unsigned network_parties_about(void)
{
	struct launcher launcher;
	if (!launcher_find(&launcher) || launcher.count < 2)
		return 2;
	const unsigned nodes =
		launcher.local_count > 0 ? launcher.count / launcher.local_count : launcher.count;
	return nodes > 1 ? nodes : launcher.count;
}

static void network_estimate(const struct check_context *context, struct check_cost *cost)
{
	enum { START_S = 5, AGAIN = 8 };
	const unsigned parties = network_parties_about();
	const struct network_times times = network_times(context->tier);
	const unsigned rounds = slow_links_round_count(parties);
	const unsigned trials = parties <= SLOW_LINKS_ALONE ? parties * (parties - 1) / 2 : rounds;
	const double trial_s =
		(double)(times.pings_ns + 4 * times.stream_ns + OVERHEAD_MS * NS_PER_MS) /
		(double)NS_PER_S;
	const double at_once_s =
		(double)(2 * times.stream_ns + OVERHEAD_MS * NS_PER_MS) / (double)NS_PER_S;
	const unsigned repeats = network_repeats(context->plan, context->tier, parties);
	*cost = (struct check_cost){
		.seconds =
			START_S + repeats * ((trials + AGAIN) * trial_s + (rounds + 1) * at_once_s),
		.memory_bytes = (double)links_memory(parties) +
				2.0 * parties * parties * repeats * (double)sizeof(double)};
}

/* Alone: node_ranks.h runs it otherwise. */
static int network_run(const struct check_context *context, struct error *err)
{
	(void)context;
	return error_set(err, -ENOTSUP,
		"it needs a launcher that starts a rank on each node: mpirun -n 2 --host A,B mlbench "
		"accept ..., or srun -N 2 --ntasks-per-node=1 mlbench accept ...");
}

/* --- measuring -------------------------------------------------------------------------------- */

/* All that each pair gave at the same time as others, in one mode. */
struct together {
	const char *figure;
	double *values; /* (parties x parties x repeats) by from, to; NAN: none; owned */
};

struct network {
	const struct network_request *request;
	struct links *links;
	unsigned repeats;
	struct slow_links slow;
	struct together all_to_all, ring;
	struct links_pair *pairs; /* (parties); owned */
	struct links_seen *seen;  /* (parties); owned */
};

static double *together_at(
	const struct network *n, const struct together *t, size_t from, size_t to)
{
	return t->values + (from * n->request->count + to) * n->repeats;
}

static int network_try(struct network *n, enum links_mode mode, const struct link_of *links,
	size_t count, struct error *err)
{
	const struct network_party *const parties = n->request->parties;
	for (size_t i = 0; i < count; i++)
		n->pairs[i] =
			(struct links_pair){parties[links[i].from].rank, parties[links[i].to].rank};
	return links_try(n->links, mode, n->pairs, count, n->seen, err);
}

/* A links_trial. */
static int network_trial(void *context, const struct link_of *links, size_t count,
	struct link_values *out, struct error *err)
{
	struct network *const n = context;
	const int code = network_try(n, LINKS_IN_TURN, links, count, err);
	for (size_t i = 0; !code && i < count; i++)
		out[i] = (struct link_values){.there = n->seen[i].there,
			.back = n->seen[i].back,
			.latency_ns = n->seen[i].latency_ns,
			.tail_ns = n->seen[i].tail_ns};
	return code;
}

static int network_try_together(struct network *n, enum links_mode mode, struct together *t,
	const struct link_of *links, size_t count, unsigned repeat, struct error *err)
{
	const int code = network_try(n, mode, links, count, err);
	for (size_t i = 0; !code && i < count; i++) {
		together_at(n, t, links[i].from, links[i].to)[repeat] = n->seen[i].there;
		if (mode == LINKS_AT_ONCE)
			together_at(n, t, links[i].to, links[i].from)[repeat] = n->seen[i].back;
	}
	return code;
}

/* A ring and all rounds of a tournament, by turns. */
static int network_all_together(struct network *n, struct error *err)
{
	const unsigned count = (unsigned)n->request->count;
	struct link_of *const links = calloc(count, sizeof *links);
	int code = links ? 0 : error_set(err, -ENOMEM, "out of memory for %u nodes", count);
	for (unsigned repeat = 0; repeat < n->repeats && !code; repeat++) {
		for (unsigned i = 0; i < count; i++)
			links[i] = (struct link_of){i, (i + 1) % count};
		code = network_try_together(n, LINKS_RING, &n->ring, links, count, repeat, err);
		for (unsigned round = 0; round < slow_links_round_count(count) && !code; round++)
			code = network_try_together(n, LINKS_AT_ONCE, &n->all_to_all, links,
				slow_links_round(count, round, links), repeat, err);
	}
	free(links);
	return code;
}

/* --- handing over ----------------------------------------------------------------------------- */

static const char *network_place(
	const struct network *n, size_t from, size_t to, bool directed, char out[PLACE_BYTES])
{
	const struct network_party *const parties = n->request->parties;
	const bool turned = !directed && to < from;
	(void)snprintf(out, PLACE_BYTES, "%s %s %s", parties[turned ? to : from].name,
		directed ? "to" : "and", parties[turned ? from : to].name);
	return out;
}

static bool network_node_is_slow(
	const struct network *n, enum link_quantity of, size_t node, bool sends)
{
	const struct slow_link *const slow = slow_links_of_node(&n->slow, of, (unsigned)node);
	return slow && (sends ? slow->there : slow->back);
}

/* Whether a judge answers for that link in that direction: it is an end of it, and not the end that is well of a link to a slow
 * node. */
static bool network_is_of(const struct network *n, size_t judge, enum link_quantity of, size_t from,
	size_t to, bool both_ways)
{
	const struct network_party *const parties = n->request->parties;
	const bool ours = parties[from].judge == judge;
	const bool theirs = parties[to].judge == judge;
	if (ours == theirs)
		return ours;
	const size_t other = ours ? to : from;
	const size_t own = ours ? from : to;
	const bool other_slow = network_node_is_slow(n, of, other, other == from) ||
				(both_ways && network_node_is_slow(n, of, other, other == to));
	const bool own_slow = network_node_is_slow(n, of, own, own == from) ||
			      (both_ways && network_node_is_slow(n, of, own, own == to));
	return !other_slow || own_slow;
}

static bool network_asks(const struct network *n, const char *figure)
{
	return check_asks(n->request->check, figure);
}

static void hand_over_record(struct network *n, size_t judge, const struct link_record *record)
{
	char place[PLACE_BYTES];
	struct check_sink *const sink = &n->request->parties[judge].sink;
	const unsigned from = record->link.from;
	const unsigned to = record->link.to;
	const bool there = network_is_of(n, judge, LINK_BANDWIDTH, from, to, false);
	const bool back = network_is_of(n, judge, LINK_BANDWIDTH, to, from, false);
	const bool trip = network_is_of(n, judge, LINK_LATENCY, from, to, true);
	for (size_t i = 0; i < record->count && (there || back || trip); i++) {
		const struct link_values *const v = &record->values[i];
		if (there)
			sink_value(sink, "network.bandwidth",
				network_place(n, from, to, true, place), v->there);
		if (back)
			sink_value(sink, "network.bandwidth",
				network_place(n, to, from, true, place), v->back);
		if (!trip)
			continue;
		(void)network_place(n, from, to, false, place);
		sink_value(sink, "network.latency", place, v->latency_ns);
		sink_value(sink, "network.tail", place, v->tail_ns);
	}
}

static void hand_over_together(struct network *n, size_t judge, const struct together *t)
{
	char place[PLACE_BYTES];
	const size_t count = n->request->count;
	for (size_t at = 0; at < count * count; at++) {
		const size_t from = at / count;
		const size_t to = at % count;
		if (!network_is_of(n, judge, LINK_BANDWIDTH, from, to, true))
			continue;
		for (unsigned i = 0; i < n->repeats; i++) {
			const double value = together_at(n, t, from, to)[i];
			if (isfinite(value))
				sink_value(&n->request->parties[judge].sink, t->figure,
					network_place(n, from, to, true, place), value);
		}
	}
}

static const char *network_value(enum link_quantity of, double value, char *out)
{
	return figure_value_text(of == LINK_BANDWIDTH ? FIGURE_BYTES_PER_S : FIGURE_NS, value, out);
}

/* What is slow, in words, as evidence. */
static void hand_over_event(
	struct network *n, size_t judge, const struct slow_link *slow, const char *place)
{
	char text[4][FIGURE_VALUE_BYTES];
	(void)network_value(slow->of, slow->is.low, text[0]);
	(void)network_value(slow->of, slow->is.high, text[1]);
	(void)network_value(slow->of, slow->other.low, text[2]);
	(void)network_value(slow->of, slow->other.high, text[3]);
	sink_event(&n->request->parties[judge].sink, slow_figures[slow->of], place, (double)NAN,
		"%s%s%s %s: %s to %s, where the other links give %s to %s%s",
		slow->is_node ? "every link of " : "the link ",
		slow->is_node ? n->request->parties[slow->link.from].name : place,
		!slow->is_node || slow->of == LINK_LATENCY || (slow->there && slow->back) ? ""
		: slow->there ? ", which it sends on,"
			      : ", which it receives on,",
		slow->of == LINK_BANDWIDTH ? "has little bandwidth" : "has a long latency", text[0],
		text[1], text[2], text[3],
		slow->again ? "; tried again alone, it is as slow" : "; it was not tried again");
}

static void hand_over_slow_at(struct network *n, size_t judge, enum link_quantity of,
	const struct link_record *record, enum link_way way, unsigned from, unsigned to)
{
	char place[PLACE_BYTES];
	char text[UNITS_BYTES];
	struct check_sink *const sink = &n->request->parties[judge].sink;
	const struct slow_link *const slow = slow_links_of_link(&n->slow, of, from, to);
	if (!network_is_of(n, judge, of, from, to, of == LINK_LATENCY))
		return;
	(void)network_place(n, from, to, of == LINK_BANDWIDTH, place);
	const bool of_slow_node =
		network_node_is_slow(n, of, from, true) || network_node_is_slow(n, of, to, false);
	if (slow) {
		sink_number(sink, slow_figures[of], place, slow->loss);
		hand_over_event(n, judge, slow, place);
	} else if (!of_slow_node && slow_links_is_unclear(record, way)) {
		sink_missing(sink, slow_figures[of], place,
			"its median is %s worse than that of the other links, but it cannot be shown to be "
			"slow: its repetitions scatter, or it was not when tried again",
			units_format_share(record->loss[way], text));
	} else if (!of_slow_node) {
		sink_number(sink, slow_figures[of], place, 0);
	}
}

/* Of the node; of ranks of one node, of each. */
static void hand_over_slow_node(
	struct network *n, size_t judge, size_t party, enum link_quantity of)
{
	const struct slow_link *const slow = slow_links_of_node(&n->slow, of, (unsigned)party);
	const char *const place = n->request->one_node ? n->request->parties[party].name : "";
	struct check_sink *const sink = &n->request->parties[judge].sink;
	if (n->request->parties[party].judge != judge)
		return;
	sink_number(sink, slow_figures[of], place, slow ? slow->loss : 0);
	if (slow)
		hand_over_event(n, judge, slow, place);
}

static void hand_over_slow(struct network *n, size_t judge)
{
	struct check_sink *const sink = &n->request->parties[judge].sink;
	for (int i = 0; i < LINK_QUANTITIES; i++) {
		const enum link_quantity of = (enum link_quantity)i;
		if (n->request->count == 2) {
			sink_lack(sink, slow_figures[of], "",
				"two nodes have one link, and nothing to compare it with: use three");
			continue;
		}
		if (of == LINK_LATENCY && n->request->crowded) {
			sink_lack(sink, slow_figures[of], "",
				"all ranks are on one machine with fewer cores than ranks, where a latency is that of "
				"its scheduler");
			continue;
		}
		for (size_t party = 0; party < n->request->count; party++)
			hand_over_slow_node(n, judge, party, of);
		for (size_t at = 0; at < n->slow.count; at++) {
			const struct link_record *const record = &n->slow.records[at];
			const unsigned from = record->link.from;
			const unsigned to = record->link.to;
			if (of == LINK_LATENCY) {
				hand_over_slow_at(n, judge, of, record, LINK_ROUND_TRIP, from, to);
				continue;
			}
			hand_over_slow_at(n, judge, of, record, LINK_THERE, from, to);
			hand_over_slow_at(n, judge, of, record, LINK_BACK, to, from);
		}
	}
}

/* How it was measured. */
static void hand_over_notes(struct network *n, size_t judge)
{
	struct check_sink *const sink = &n->request->parties[judge].sink;
	const size_t count = n->request->count;
	const char *const library = n->request->ranks->world.library;
	if (n->request->one_node)
		sink_note(sink,
			"%zu ranks of one node (%s): what was measured is the memory of this node, and no "
			"network",
			count, library);
	else
		sink_note(sink, "%zu nodes, by the first rank of each (%s)", count, library);
	sink_note(sink, "%zu of %zu links, %u times each, %s, in %u trials", n->slow.count,
		count * (count - 1) / 2, n->repeats,
		count <= SLOW_LINKS_ALONE ? "one at a time"
					  : "as many at once as there are pairs of nodes",
		n->slow.rounds);
	if (n->slow.only_once > 0)
		sink_note(sink, "%zu looked slow at first, and not when tried again alone%s",
			n->slow.only_once,
			count > SLOW_LINKS_ALONE ? ": slow only while other links were used" : "");
	if (n->slow.not_tried > 0)
		sink_note(sink,
			"more than %d links are slow beside the others, so that none was tried again: this "
			"network has links of several kinds, or a shared part of it is full",
			SLOW_LINKS_FOUND_MAX);
}

/* What no link of this node gave, because each is of a slow node. */
static void hand_over_lacks(struct network *n, size_t judge)
{
	static const struct {
		const char *figure;
		enum link_quantity of;
		bool directed, ring;
	} kinds[] = {{"network.bandwidth", LINK_BANDWIDTH, true, false},
		{"network.latency", LINK_LATENCY, false, false},
		{"network.tail", LINK_LATENCY, false, false},
		{"network.ring", LINK_BANDWIDTH, false, true},
		{"network.all_to_all", LINK_BANDWIDTH, false, false}};
	const size_t count = n->request->count;
	for (size_t kind = 0; kind < COUNT(kinds); kind++) {
		bool any = false;
		for (size_t i = 0; i < count && !any; i++) {
			const bool next = i == (judge + 1) % count || judge == (i + 1) % count ||
					  !kinds[kind].ring;
			any = i != judge && next &&
			      (network_is_of(
				       n, judge, kinds[kind].of, judge, i, !kinds[kind].directed) ||
				      network_is_of(n, judge, kinds[kind].of, i, judge,
					      !kinds[kind].directed));
		}
		if (!any)
			sink_lack(&n->request->parties[judge].sink, kinds[kind].figure, "",
				"each of its links is to a slow node, and says nothing of this one");
	}
}

static void network_hand_over(struct network *n)
{
	for (size_t judge = 0; judge < n->request->count; judge++) {
		if (n->request->parties[judge].judge != judge)
			continue;
		for (size_t i = 0; i < n->slow.count; i++)
			hand_over_record(n, judge, &n->slow.records[i]);
		hand_over_together(n, judge, &n->ring);
		hand_over_together(n, judge, &n->all_to_all);
		hand_over_slow(n, judge);
		hand_over_lacks(n, judge);
		hand_over_notes(n, judge);
	}
}

/* --- the whole -------------------------------------------------------------------------------- */

static int together_open(
	const struct network *n, struct together *t, const char *figure, struct error *err)
{
	const size_t count = n->request->count * n->request->count * n->repeats;
	*t = (struct together){.figure = figure, .values = calloc(count, sizeof *t->values)};
	for (size_t i = 0; t->values && i < count; i++)
		t->values[i] = (double)NAN;
	return t->values
		       ? 0
		       : error_set(err, -ENOMEM, "out of memory for %zu nodes", n->request->count);
}

static int network_open(struct network *n, struct error *err)
{
	const struct network_request *const request = n->request;
	const struct network_times times = network_times(request->tier);
	n->repeats = network_repeats(request->plan, request->tier, (unsigned)request->count);
	n->pairs = calloc(request->count, sizeof *n->pairs);
	n->seen = calloc(request->count, sizeof *n->seen);
	int code = n->pairs && n->seen
			   ? together_open(n, &n->all_to_all, "network.all_to_all", err)
			   : error_set(err, -ENOMEM, "out of memory for %zu nodes", request->count);
	if (!code)
		code = together_open(n, &n->ring, "network.ring", err);
	return code ? code
		    : links_open(&n->links,
			      &(struct links_options){.ranks = request->ranks,
				      .stream_ns = times.stream_ns,
				      .pings_ns = times.pings_ns,
				      .crowded = request->crowded},
			      err);
}

int network_measure(const struct network_request *request, struct error *err)
{
	struct network n = {.request = request};
	int code = network_open(&n, err);
	if (!code)
		code = slow_links_search(
			&(struct slow_links_request){.nodes = (unsigned)request->count,
				.repeats = n.repeats,
				.rate = plan_share(request->plan, PLAN_ERROR),
				.seed = request->count,
				.trial = network_trial,
				.context = &n},
			&n.slow, err);
	if (!code && (network_asks(&n, n.ring.figure) || network_asks(&n, n.all_to_all.figure)))
		code = network_all_together(&n, err);
	if (!code)
		network_hand_over(&n);
	slow_links_release(&n.slow);
	links_close(n.links);
	free(n.all_to_all.values);
	free(n.ring.values);
	free(n.pairs);
	free(n.seen);
	return code;
}

const struct check_ops check_network = {
	.kind = ACCEPT_NETWORK,
	.estimate = network_estimate,
	.run = network_run,
};
