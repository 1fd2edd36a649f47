/* Trying, comparing, and trying again. */
#include "harness/checks/slow_links.h"

#include "harness/accept/judge.h"
#include "harness/base/array.h"
#include "harness/base/rng.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	NODE_LINKS_AGAIN = 4,
	CONTROLS_LEAST = 4,
	AGAIN_UNCLEAR_MAX = 16,
	REPEATS_MAX = 256, /* of one link, that are compared */
	FEW = 512,         /* of more edges those of one link or node hardly change the median */
};

static const double slow_least[LINK_QUANTITIES] = {
	[LINK_BANDWIDTH] = SLOW_LINKS_BANDWIDTH, [LINK_LATENCY] = SLOW_LINKS_LATENCY};

/* --- records ---------------------------------------------------------------------------------- */

static int record_compare(const void *left, const void *right)
{
	const struct link_record *const a = left;
	const struct link_record *const b = right;
	if (a->link.from != b->link.from)
		return a->link.from < b->link.from ? -1 : 1;
	return a->link.to < b->link.to ? -1 : a->link.to > b->link.to;
}

static struct link_record *record_of(struct link_record *records, size_t count, struct link_of link)
{
	const struct link_record key = {.link = link};
	return bsearch(&key, records, count, sizeof *records, record_compare);
}

static void records_release(struct link_record *records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(records[i].values);
	free(records);
}

/* Room for `repeats` values of each of those links, which are sorted by it. */
static struct link_record *records_make(
	const struct link_of *links, size_t count, unsigned repeats, struct error *err)
{
	struct link_record *const records = calloc(count + 1, sizeof *records);
	bool whole = records != NULL;
	for (size_t i = 0; whole && i < count; i++) {
		records[i].link = links[i];
		records[i].values = calloc(repeats, sizeof *records[i].values);
		whole = records[i].values != NULL;
	}
	if (!whole) {
		if (records)
			records_release(records, count);
		(void)error_set(err, -ENOMEM, "out of memory for %zu links", count);
		return NULL;
	}
	qsort(records, count, sizeof *records, record_compare);
	return records;
}

/* --- rounds ----------------------------------------------------------------------------------- */

static unsigned rounds_room(unsigned nodes)
{
	unsigned room = 1;
	while (room < nodes)
		room *= 2;
	return room;
}

unsigned slow_links_round_count(unsigned nodes)
{
	const unsigned all = rounds_room(nodes) - 1;
	return all < SLOW_LINKS_ROUNDS ? all : SLOW_LINKS_ROUNDS;
}

/* What the nodes' numbers are changed by in that round.  Where not all rounds are tried, each level (a bit) has as many as it
 * can of what is left, the smallest first, spread over it. */
static unsigned round_mask(unsigned nodes, unsigned round)
{
	const unsigned room = rounds_room(nodes);
	if (room - 1 <= SLOW_LINKS_ROUNDS)
		return round + 1;
	unsigned levels = 0;
	while ((1U << levels) < room)
		levels++;
	unsigned left = SLOW_LINKS_ROUNDS;
	for (unsigned level = 0; level < levels; level++) {
		const unsigned all = 1U << level;
		const unsigned share = left / (levels - level);
		const unsigned its = all < share ? all : share;
		if (round < its)
			return all + (unsigned)((uint64_t)round * all / its);
		round -= its;
		left -= its;
	}
	return 1;
}

size_t slow_links_round(unsigned nodes, unsigned round, struct link_of *out)
{
	const unsigned mask = round_mask(nodes, round);
	size_t count = 0;
	for (unsigned i = 0; i < nodes; i++) {
		const unsigned other = i ^ mask;
		if (i < other && other < nodes)
			out[count++] = (struct link_of){i, other};
	}
	return count;
}

/* --- trying ----------------------------------------------------------------------------------- */

struct searching {
	const struct slow_links_request *request;
	struct rng rng;
	struct link_of *links;      /* of a trial; owned, nodes / 2 */
	struct link_values *values; /* owned */
	unsigned rounds;
};

static int search_try(struct searching *s, size_t count, struct link_record *records,
	size_t record_count, struct error *err)
{
	const int code = s->request->trial(s->request->context, s->links, count, s->values, err);
	s->rounds++;
	for (size_t i = 0; !code && i < count; i++) {
		struct link_record *const record = record_of(records, record_count, s->links[i]);
		if (record)
			record->values[record->count++] = s->values[i];
	}
	return code;
}

/* Each of the links, so many times, one at a time and each time in another order. */
static int search_alone(
	struct searching *s, struct link_record *records, size_t count, struct error *err)
{
	uint32_t *const order = calloc(count + 1, sizeof *order);
	int code = order ? 0 : error_set(err, -ENOMEM, "out of memory for %zu links", count);
	for (unsigned repeat = 0; repeat < s->request->repeats && !code; repeat++) {
		rng_permutation(&s->rng, order, (uint32_t)count);
		for (size_t i = 0; i < count && !code; i++) {
			s->links[0] = records[order[i]].link;
			code = search_try(s, 1, records, count, err);
		}
	}
	free(order);
	return code;
}

static int search_at_once(
	struct searching *s, struct link_record *records, size_t count, struct error *err)
{
	const unsigned nodes = s->request->nodes;
	const unsigned rounds = slow_links_round_count(nodes);
	uint32_t order[SLOW_LINKS_ROUNDS];
	int code = 0;
	for (unsigned repeat = 0; repeat < s->request->repeats && !code; repeat++) {
		rng_permutation(&s->rng, order, rounds);
		for (unsigned i = 0; i < rounds && !code; i++)
			code = search_try(s, slow_links_round(nodes, order[i], s->links), records,
				count, err);
	}
	return code;
}

/* The links that are tried, each once; owned by the caller. */
static struct link_of *search_links(unsigned nodes, size_t *count, struct error *err)
{
	const unsigned rounds = slow_links_round_count(nodes);
	struct link_of *const links = calloc((size_t)rounds * (nodes / 2) + 1, sizeof *links);
	*count = 0;
	if (!links)
		(void)error_set(err, -ENOMEM, "out of memory for the links of %u nodes", nodes);
	for (unsigned round = 0; links && round < rounds; round++)
		*count += slow_links_round(nodes, round, links + *count);
	return links;
}

/* --- comparing -------------------------------------------------------------------------------- */

/* A link in one direction, or of a latency in both.  `speed`: more is better, whatever the quantity. */
struct edge {
	struct link_of link;
	struct link_record *record;
	enum link_way way;
	struct interval speed;
	double median;
	bool control;   /* others are compared with it */
	bool explained; /* by what was found already */
};

struct comparing {
	enum link_quantity of;
	unsigned nodes;
	struct edge *edges; /* owned */
	size_t count;
	double *room; /* (count) */
	struct slow_link *found;
	size_t found_count, more; /* beyond the room of `found` */
};

static double speed_of(enum link_way way, const struct link_values *values)
{
	return way == LINK_THERE  ? values->there
	       : way == LINK_BACK ? values->back
				  : 1 / values->latency_ns;
}

static void edge_fill(
	struct edge *edge, struct link_record *record, enum link_way way, bool control, double rate)
{
	double speeds[REPEATS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < record->count && count < COUNT(speeds); i++)
		speeds[count++] = speed_of(way, &record->values[i]);
	*edge = (struct edge){
		.link = record->link, .record = record, .way = way, .control = control};
	if (way == LINK_BACK)
		edge->link = (struct link_of){record->link.to, record->link.from};
	edge->speed = judge_interval(speeds, count, rate);
	edge->median = statistics_median(speeds, count);
}

static bool edge_touches(const struct edge *edge, unsigned node)
{
	return edge->link.from == node || edge->link.to == node;
}

/* The others' interval and median: medians over the edges that are not the suspect's. */
struct reference {
	struct interval speed;
	double median;
};

enum reference_part { REFERENCE_LOW, REFERENCE_MEDIAN, REFERENCE_HIGH, REFERENCE_PARTS };

static double reference_part(
	const struct comparing *c, enum reference_part part, struct link_of suspect)
{
	size_t count = 0;
	for (size_t i = 0; i < c->count; i++) {
		const struct edge *const edge = &c->edges[i];
		if (edge->explained || !edge->control ||
			(edge_touches(edge, suspect.from) && edge_touches(edge, suspect.to)))
			continue;
		c->room[count++] = part == REFERENCE_LOW    ? edge->speed.low
				   : part == REFERENCE_HIGH ? edge->speed.high
							    : edge->median;
	}
	return statistics_median(c->room, count);
}

/* Of the edges but those between two nodes, or, where they are the same, but all of that node. */
static struct reference reference_of(const struct comparing *c, struct link_of suspect)
{
	return (struct reference){.speed = {reference_part(c, REFERENCE_LOW, suspect),
					  reference_part(c, REFERENCE_HIGH, suspect)},
		.median = reference_part(c, REFERENCE_MEDIAN, suspect)};
}

/* NAN, where there is nothing to compare with, is not apart. */
static bool edge_is_apart(
	const struct comparing *c, const struct edge *edge, const struct reference *reference)
{
	const double most =
		c->of == LINK_LATENCY ? 1 / (1 + SLOW_LINKS_LATENCY) : 1 - SLOW_LINKS_BANDWIDTH;
	return edge->speed.high < most * reference->speed.low;
}

static double edge_loss(const struct edge *edge, const struct reference *reference)
{
	return 1 - edge->median / reference->median;
}

/* In the unit of the quantity, low first. */
static struct interval interval_of(const struct comparing *c, struct interval speed)
{
	return c->of == LINK_LATENCY ? (struct interval){1 / speed.high, 1 / speed.low} : speed;
}

static void compare_keep(struct comparing *c, const struct slow_link *slow)
{
	if (c->found_count < SLOW_LINKS_FOUND_MAX)
		c->found[c->found_count++] = *slow;
	else
		c->more++;
}

/* Whether all edges that the node sends on (or receives on) are apart, two at least; the slowest's loss. */
static bool node_is_slow(const struct comparing *c, unsigned node, bool receives,
	const struct reference *reference, const struct edge **slowest)
{
	size_t its = 0;
	*slowest = NULL;
	for (size_t i = 0; i < c->count; i++) {
		const struct edge *const edge = &c->edges[i];
		const bool mine = c->of == LINK_LATENCY ? edge_touches(edge, node)
				  : receives            ? edge->link.to == node
							: edge->link.from == node;
		if (!mine || edge->explained)
			continue;
		if (!edge_is_apart(c, edge, reference))
			return false;
		if (!*slowest || edge->median < (*slowest)->median)
			*slowest = edge;
		its++;
	}
	return its >= 2;
}

static void node_explains(struct comparing *c, const struct slow_link *slow)
{
	const unsigned node = slow->link.from;
	for (size_t i = 0; i < c->count; i++)
		if (c->of == LINK_LATENCY ? edge_touches(&c->edges[i], node)
					  : (slow->there && c->edges[i].link.from == node) ||
						    (slow->back && c->edges[i].link.to == node))
			c->edges[i].explained = true;
}

/* The slowest node of those that are slow; false: none is. */
static bool compare_next_node(struct comparing *c, struct slow_link *out)
{
	struct reference reference = {.median = (double)NAN};
	*out = (struct slow_link){.of = c->of, .is_node = true, .loss = -1};
	for (unsigned node = 0; node < c->nodes; node++) {
		if (node == 0 || c->count <= FEW)
			reference = reference_of(c, (struct link_of){node, node});
		const struct edge *sends;
		const struct edge *receives;
		const bool there = node_is_slow(c, node, false, &reference, &sends);
		const bool back = node_is_slow(c, node, true, &reference, &receives);
		if (!there && !back)
			continue;
		const struct edge *const worst =
			!there || (back && receives->median < sends->median) ? receives : sends;
		const double loss = edge_loss(worst, &reference);
		if (loss > out->loss)
			*out = (struct slow_link){.of = c->of,
				.is_node = true,
				.link = {node, node},
				.there = there,
				.back = back,
				.loss = loss,
				.is = interval_of(c, worst->speed),
				.other = interval_of(c, reference.speed)};
	}
	return out->there || out->back;
}

/* The same link the other way: both stand together. */
static struct edge *edge_back(const struct comparing *c, const struct edge *edge)
{
	const size_t at = (size_t)(edge - c->edges);
	return c->of == LINK_BANDWIDTH ? &c->edges[at ^ 1] : NULL;
}

/* All against what no node explains.  False without memory. */
static bool compare_links(struct comparing *c)
{
	bool *const slow = calloc(c->count + 1, sizeof *slow);
	struct reference *const references = calloc(c->count + 1, sizeof *references);
	const bool whole = slow && references;
	for (size_t i = 0; whole && i < c->count; i++) {
		references[i] =
			i > 0 && c->count > FEW ? references[0] : reference_of(c, c->edges[i].link);
		c->edges[i].record->loss[c->edges[i].way] = edge_loss(&c->edges[i], &references[i]);
		slow[i] = !c->edges[i].explained && edge_is_apart(c, &c->edges[i], &references[i]);
	}
	for (size_t i = 0; whole && i < c->count; i++) {
		const struct edge *const edge = &c->edges[i];
		const struct edge *const back = edge_back(c, edge);
		const bool both = c->of == LINK_LATENCY || (back && slow[back - c->edges]);
		if (!slow[i])
			continue;
		if (back)
			slow[back - c->edges] = false;
		const struct edge *const worst =
			back && both && back->median < edge->median ? back : edge;
		compare_keep(c, &(struct slow_link){.of = c->of,
					.link = edge->link,
					.there = true,
					.back = both,
					.loss = edge_loss(worst, &references[i]),
					.is = interval_of(c, worst->speed),
					.other = interval_of(c, references[i].speed)});
	}
	free(slow);
	free(references);
	return whole;
}

/* controls: which of the records others are compared with; NULL: all. */
static int compare(enum link_quantity of, unsigned nodes, struct link_record *records, size_t count,
	const bool *controls, double rate, struct slow_links *out, struct error *err)
{
	const unsigned ways = of == LINK_LATENCY ? 1 : 2;
	const enum link_way first = of == LINK_LATENCY ? LINK_ROUND_TRIP : LINK_THERE;
	struct comparing c = {.of = of,
		.nodes = nodes,
		.edges = calloc(ways * count + 1, sizeof *c.edges),
		.room = calloc(ways * count + 1, sizeof *c.room),
		.found = calloc(SLOW_LINKS_FOUND_MAX, sizeof *c.found)};
	struct slow_link next;
	bool whole = c.edges && c.room && c.found;
	for (size_t i = 0; whole && i < count; i++)
		for (unsigned way = 0; way < ways; way++) {
			records[i].loss[first + way] = (double)NAN;
			edge_fill(&c.edges[c.count++], &records[i], first + way,
				!controls || controls[i], rate);
		}
	/* Two nodes have one link: nothing to compare it with. */
	while (whole && nodes > 2 && compare_next_node(&c, &next)) {
		node_explains(&c, &next);
		compare_keep(&c, &next);
	}
	if (whole && nodes > 2)
		whole = compare_links(&c);
	for (size_t i = 0; whole && i < c.found_count; i++) {
		if (out->found_count < SLOW_LINKS_FOUND_MAX)
			out->found[out->found_count++] = c.found[i];
		else
			c.more++;
	}
	out->not_tried += c.more;
	free(c.edges);
	free(c.room);
	free(c.found);
	return whole ? 0 : error_set(err, -ENOMEM, "out of memory for %zu links", count);
}

static int compare_all(unsigned nodes, struct link_record *records, size_t count,
	const bool *controls, double rate, struct slow_links *out, struct error *err)
{
	int code = 0;
	for (int of = 0; of < LINK_QUANTITIES && !code; of++)
		code = compare(
			(enum link_quantity)of, nodes, records, count, controls, rate, out, err);
	return code;
}

/* --- trying again ----------------------------------------------------------------------------- */

static bool slow_has(const struct slow_link *slow, struct link_of link)
{
	if (slow->is_node)
		return link.from == slow->link.from || link.to == slow->link.from;
	return (link.from == slow->link.from && link.to == slow->link.to) ||
	       (link.from == slow->link.to && link.to == slow->link.from);
}

static bool again_adds(struct link_of *chosen, size_t *count, struct link_of link)
{
	for (size_t i = 0; i < *count; i++)
		if (chosen[i].from == link.from && chosen[i].to == link.to)
			return false;
	chosen[(*count)++] = link;
	return true;
}

static bool record_is_unclear(const struct link_record *record)
{
	bool is = false;
	for (int way = 0; way < LINK_WAYS; way++)
		is |= slow_links_is_unclear(record, (enum link_way)way);
	return is;
}

/* Whether a link is one to be tried again, and none that others are compared with. */
static bool again_is_suspect(const struct slow_links *links, const struct link_record *record)
{
	bool is = record_is_unclear(record);
	for (size_t i = 0; i < links->found_count; i++)
		is |= slow_has(&links->found[i], record->link);
	return is;
}

/* The links of what was found, those of which nothing can be told, and as many others.  chosen has room for all. */
static size_t again_choose(
	struct searching *s, const struct slow_links *links, struct link_of *chosen)
{
	size_t count = 0;
	size_t unclear = 0;
	uint32_t *const order = calloc(links->count + 1, sizeof *order);
	if (!order)
		return 0;
	rng_permutation(&s->rng, order, (uint32_t)links->count);
	for (size_t f = 0; f < links->found_count; f++) {
		const struct slow_link *const slow = &links->found[f];
		size_t its = 0;
		for (size_t i = 0; i < links->count; i++) {
			const struct link_of link = links->records[order[i]].link;
			if (slow_has(slow, link) && (!slow->is_node || its < NODE_LINKS_AGAIN))
				its += again_adds(chosen, &count, link);
		}
	}
	for (size_t i = 0; i < links->count && unclear < AGAIN_UNCLEAR_MAX; i++)
		if (record_is_unclear(&links->records[order[i]]))
			unclear += again_adds(chosen, &count, links->records[order[i]].link);
	const size_t controls = count > CONTROLS_LEAST ? count : CONTROLS_LEAST;
	for (size_t i = 0, added = 0; i < links->count && added < controls && count > 0; i++)
		if (!again_is_suspect(links, &links->records[order[i]]))
			added += again_adds(chosen, &count, links->records[order[i]].link);
	free(order);
	return count;
}

static bool slow_is_same(const struct slow_link *a, const struct slow_link *b)
{
	if (a->of != b->of || a->is_node != b->is_node)
		return false;
	if (a->is_node)
		return a->link.from == b->link.from &&
		       ((a->there && b->there) || (a->back && b->back));
	return slow_has(a, b->link) &&
	       ((a->there && a->back) || (b->there && b->back) || a->link.from == b->link.from);
}

/* Whether it is about links that were tried again for a reason, and not to compare them with. */
static bool again_was_suspect(
	const struct slow_links *again, const bool *controls, const struct slow_link *slow)
{
	bool control = false;
	for (size_t i = 0; i < again->count; i++)
		control |= controls[i] && slow_has(slow, again->records[i].link);
	return !control;
}

/* What is found now counts, and what was found before and is not now is counted. */
static void again_keep(
	struct slow_links *links, const struct slow_links *again, const bool *controls)
{
	const struct slow_links before = *links;
	links->found_count = 0;
	for (size_t i = 0; i < again->found_count; i++) {
		if (!again_was_suspect(again, controls, &again->found[i]))
			continue;
		links->found[links->found_count] = again->found[i];
		links->found[links->found_count++].again = true;
	}
	for (size_t i = 0; i < before.found_count; i++) {
		bool same = false;
		for (size_t at = 0; at < links->found_count; at++)
			same |= slow_is_same(&before.found[i], &links->found[at]);
		links->only_once += !same;
	}
	for (size_t i = 0; i < again->count; i++) {
		struct link_record *const record =
			record_of(links->records, links->count, again->records[i].link);
		bool was_found = false;
		for (size_t at = 0; at < before.found_count; at++)
			was_found |= slow_has(&before.found[at], record->link);
		/* Alone is how a link is judged.  What was found alone, and is not found again, is unclear. */
		if (!controls[i] && (!was_found || links->nodes > SLOW_LINKS_ALONE))
			memcpy(record->loss, again->records[i].loss, sizeof record->loss);
	}
}

static int search_again(struct searching *s, struct slow_links *links, struct error *err)
{
	struct slow_links again = {.nodes = links->nodes};
	struct link_of *const chosen = calloc(links->count + 1, sizeof *chosen);
	bool *const controls = calloc(links->count + 1, sizeof *controls);
	int code = chosen && controls ? 0 : error_set(err, -ENOMEM, "out of memory for links");
	if (!code) {
		again.count = again_choose(s, links, chosen);
		again.records = records_make(chosen, again.count, s->request->repeats, err);
		code = again.records ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !code && i < again.count; i++)
		controls[i] = !again_is_suspect(
			links, record_of(links->records, links->count, again.records[i].link));
	if (!code)
		code = search_alone(s, again.records, again.count, err);
	if (!code)
		code = compare_all(links->nodes, again.records, again.count, controls,
			s->request->rate, &again, err);
	if (!code)
		again_keep(links, &again, controls);
	slow_links_release(&again);
	free(chosen);
	free(controls);
	return code;
}

/* --- the search ------------------------------------------------------------------------------- */

static int search_all(struct searching *s, struct slow_links *out, struct error *err)
{
	const unsigned nodes = s->request->nodes;
	struct link_of *const links = search_links(nodes, &out->count, err);
	if (!links)
		return -ENOMEM;
	out->records = records_make(links, out->count, s->request->repeats, err);
	free(links);
	if (!out->records)
		return -ENOMEM;
	int code = nodes <= SLOW_LINKS_ALONE ? search_alone(s, out->records, out->count, err)
					     : search_at_once(s, out->records, out->count, err);
	if (!code)
		code = compare_all(
			nodes, out->records, out->count, NULL, s->request->rate, out, err);
	/* So many are no single faults: they stand as they were found. */
	if (!code && out->not_tried == 0)
		code = search_again(s, out, err);
	else
		out->not_tried += out->found_count;
	out->rounds = s->rounds;
	return code;
}

int slow_links_search(
	const struct slow_links_request *request, struct slow_links *out, struct error *err)
{
	struct searching s = {.request = request,
		.links = calloc(request->nodes / 2 + 1, sizeof *s.links),
		.values = calloc(request->nodes / 2 + 1, sizeof *s.values)};
	*out = (struct slow_links){.nodes = request->nodes};
	rng_init(&s.rng, request->seed, request->nodes);
	const int code = s.links && s.values ? search_all(&s, out, err)
					     : error_set(err, -ENOMEM, "out of memory for %u nodes",
						       request->nodes);
	free(s.links);
	free(s.values);
	if (code)
		slow_links_release(out);
	return code;
}

void slow_links_release(struct slow_links *links)
{
	records_release(links->records, links->count);
	*links = (struct slow_links){0};
}

bool slow_links_is_unclear(const struct link_record *record, enum link_way way)
{
	return record->loss[way] >
	       slow_least[way == LINK_ROUND_TRIP ? LINK_LATENCY : LINK_BANDWIDTH];
}

const struct slow_link *slow_links_of_node(
	const struct slow_links *links, enum link_quantity of, unsigned node)
{
	for (size_t i = 0; i < links->found_count; i++)
		if (links->found[i].of == of && links->found[i].is_node &&
			links->found[i].link.from == node)
			return &links->found[i];
	return NULL;
}

const struct slow_link *slow_links_of_link(
	const struct slow_links *links, enum link_quantity of, unsigned from, unsigned to)
{
	for (size_t i = 0; i < links->found_count; i++) {
		const struct slow_link *const slow = &links->found[i];
		if (slow->of != of || slow->is_node)
			continue;
		if ((slow->there && slow->link.from == from && slow->link.to == to) ||
			(slow->back && slow->link.from == to && slow->link.to == from))
			return slow;
	}
	return NULL;
}
