/* Each rank says what it may use; the leader says who shares; each takes its part. */
#include "workloads/ranks/binding.h"

#include "harness/base/files.h"
#include "workloads/ranks/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 1024, LISTED_MOST = 4 };

/* --- dividing --------------------------------------------------------------------------------- */

static unsigned binding_weight(hwloc_const_bitmap_t cores)
{
	const int weight = hwloc_bitmap_weight(cores);
	return weight > 0 ? (unsigned)weight : 0;
}

static bool binding_divides(unsigned cores, unsigned sharers)
{
	return sharers > 1 && cores >= sharers;
}

unsigned binding_size(const struct binding_rank *rank)
{
	const unsigned cores = binding_weight(rank->cores);
	return binding_divides(cores, rank->sharers) ? cores / rank->sharers + cores % rank->sharers
						     : cores;
}

void binding_share(hwloc_topology_t topology, hwloc_const_bitmap_t cores, unsigned sharers,
	unsigned index, hwloc_bitmap_t out)
{
	const unsigned each = binding_weight(cores) / sharers;
	hwloc_obj_t pu = NULL;
	hwloc_bitmap_zero(out);
	/* Neighbours in this order have caches in common. */
	for (unsigned at = 0; (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu));) {
		if (!hwloc_bitmap_isset(cores, pu->os_index))
			continue;
		if (at >= each * sharers || at / each == index)
			(void)hwloc_bitmap_set(out, pu->os_index);
		at++;
	}
}

void binding_group(struct ranks_binding *b)
{
	for (unsigned i = 0; i < b->rank_count; i++) {
		struct binding_rank *const rank = &b->ranks[i];
		b->nodes[rank->node].ranks++;
		rank->sharers = rank->index = 0;
		for (unsigned j = 0; j < b->rank_count; j++) {
			const bool shares = b->ranks[j].node == rank->node &&
					    hwloc_bitmap_isequal(b->ranks[j].cores, rank->cores);
			rank->sharers += shares;
			rank->index += shares && j < i;
		}
	}
}

bool binding_meet(const struct ranks_binding *b, unsigned one, unsigned other)
{
	const struct binding_rank *const own = &b->ranks[one];
	const struct binding_rank *const theirs = &b->ranks[other];
	const bool divided = one != other && hwloc_bitmap_isequal(own->cores, theirs->cores) &&
			     binding_divides(binding_weight(own->cores), own->sharers);
	return own->node == theirs->node && !divided &&
	       hwloc_bitmap_intersects(own->cores, theirs->cores);
}

/* --- in words --------------------------------------------------------------------------------- */

/* Nodes with the same in it are told together. */
struct binding_kind {
	unsigned ranks, least, most; /* cores of a rank */
	unsigned crowded;            /* cores that more ranks share; 0: none */
};

/* Of each node; NULL without memory. */
static struct binding_kind *binding_kinds(const struct ranks_binding *b)
{
	struct binding_kind *const kinds = calloc(b->node_count, sizeof *kinds);
	for (unsigned i = 0; kinds && i < b->rank_count; i++) {
		const struct binding_rank *const rank = &b->ranks[i];
		struct binding_kind *const kind = &kinds[rank->node];
		const unsigned size = binding_size(rank);
		kind->least = kind->ranks == 0 || size < kind->least ? size : kind->least;
		kind->most = size > kind->most ? size : kind->most;
		kind->ranks++;
		if (rank->sharers > binding_weight(rank->cores))
			kind->crowded = size;
	}
	return kinds;
}

static void binding_describe_kind(const struct ranks_binding *b, unsigned first, unsigned nodes,
	const struct binding_kind *kind, struct buffer *out)
{
	if (nodes > 1)
		buffer_format(out, "%u on each of %u nodes from %s on, ", kind->ranks, nodes,
			b->nodes[first].host);
	else
		buffer_format(out, "%u on %s, ", kind->ranks, b->nodes[first].host);
	if (kind->most == 0)
		buffer_text(out, "cores unknown");
	else if (kind->crowded > 0)
		buffer_format(
			out, "which share %u core%s", kind->crowded, kind->crowded == 1 ? "" : "s");
	else if (kind->least < kind->most)
		buffer_format(out, "%u to %u cores each", kind->least, kind->most);
	else
		buffer_format(out, "%u core%s each", kind->least, kind->least == 1 ? "" : "s");
}

void binding_describe(const struct ranks_binding *b, struct buffer *out)
{
	struct binding_kind *const kinds = binding_kinds(b);
	unsigned listed = 0;
	for (unsigned node = 0; kinds && node < b->node_count && listed <= LISTED_MOST; node++) {
		unsigned nodes = 0;
		bool before = false;
		for (unsigned other = 0; other < b->node_count; other++) {
			const bool same = memcmp(&kinds[other], &kinds[node], sizeof *kinds) == 0;
			before = before || (same && other < node);
			nodes += same;
		}
		if (before)
			continue;
		buffer_text(out, listed > 0 ? "; " : "");
		if (listed++ == LISTED_MOST)
			buffer_text(out, "others on further nodes");
		else
			binding_describe_kind(b, node, nodes, &kinds[node], out);
	}
	if (b->rank_count > 0 && b->ranks[0].device[0])
		buffer_text(out, "; one device each");
	free(kinds);
}

/* Cores of a rank's node that no rank is bound to. */
static unsigned binding_free(const struct ranks_binding *b, unsigned node)
{
	hwloc_bitmap_t left = hwloc_bitmap_dup(b->nodes[node].cores);
	for (unsigned i = 0; left && i < b->rank_count; i++)
		if (b->ranks[i].node == node)
			(void)hwloc_bitmap_andnot(left, left, b->ranks[i].cores);
	const unsigned count = left ? binding_weight(left) : 0;
	hwloc_bitmap_free(left);
	return count;
}

bool binding_judge(const struct ranks_binding *b, unsigned threads, const struct launcher *launcher,
	char out[BINDING_WARNING_BYTES])
{
	unsigned tight = 0;
	unsigned first = 0;
	for (unsigned i = b->rank_count; i-- > 0;) {
		const unsigned cores = binding_size(&b->ranks[i]);
		if (cores == 0 || cores >= threads || binding_free(b, b->ranks[i].node) == 0)
			continue;
		tight++;
		first = i;
	}
	out[0] = '\0';
	if (tight == 0)
		return true;
	const struct binding_node *const node = &b->nodes[b->ranks[first].node];
	const unsigned cores = binding_size(&b->ranks[first]);
	const unsigned all = binding_weight(node->cores);
	const unsigned fair = all / node->ranks;
	const int used = snprintf(out, BINDING_WARNING_BYTES,
		"%s bound rank %u on %.40s%s to %u core%s, fewer than its %u threads, and no rank has %u "
		"of the node's %u: start them with '%s'",
		launcher->name, first, node->host, tight > 1 ? " (and others)" : "", cores,
		cores == 1 ? "" : "s", threads, binding_free(b, b->ranks[first].node), all,
		launcher->unbind);
	if (fair > cores && used > 0 && used < BINDING_WARNING_BYTES)
		(void)snprintf(out + used, (size_t)(BINDING_WARNING_BYTES - used), " or '%s%u'",
			launcher->widen, fair < threads ? fair : threads);
	return false;
}

/* --- devices ---------------------------------------------------------------------------------- */

/* Whether a rank before it on its node has the same one. */
static bool binding_takes_again(const struct ranks_binding *b, unsigned rank)
{
	for (unsigned i = 0; i < rank; i++)
		if (b->ranks[i].node == b->ranks[rank].node && b->ranks[i].device[0] &&
			strcmp(b->ranks[i].device, b->ranks[rank].device) == 0)
			return true;
	return false;
}

int binding_check_devices(const struct ranks_binding *b, unsigned count, struct error *err)
{
	unsigned first = 0;
	unsigned ranks = 0;
	unsigned devices = 0;
	while (first < count && first < b->rank_count && !binding_takes_again(b, first))
		first++;
	if (first >= count || first >= b->rank_count)
		return 0;
	const unsigned node = b->ranks[first].node;
	for (unsigned i = 0; i < count && i < b->rank_count; i++) {
		ranks += b->ranks[i].node == node;
		devices += b->ranks[i].node == node && !binding_takes_again(b, i);
	}
	return error_set(err, -EINVAL,
		"%u ranks on %.40s share %u device%s (rank %u has %s, as an earlier one does): start one rank for "
		"each device, and leave CUDA_VISIBLE_DEVICES unset, or set it to another device for each rank",
		ranks, b->nodes[node].host, devices, devices == 1 ? "" : "s", first,
		b->ranks[first].device);
}

/* --- between the ranks ------------------------------------------------------------------------ */

int binding_open(struct ranks_binding *b, unsigned ranks, unsigned nodes)
{
	b->ranks = calloc(ranks, sizeof *b->ranks);
	b->nodes = calloc(nodes, sizeof *b->nodes);
	bool made = b->ranks && b->nodes;
	for (unsigned i = 0; made && i < ranks; i++, b->rank_count++)
		made = (b->ranks[i].cores = hwloc_bitmap_alloc()) != NULL;
	for (unsigned i = 0; made && i < nodes; i++, b->node_count++)
		made = (b->nodes[i].cores = hwloc_bitmap_alloc()) != NULL;
	return made ? 0 : -ENOMEM;
}

void binding_release(struct ranks_binding *b)
{
	for (unsigned i = 0; i < b->rank_count; i++)
		hwloc_bitmap_free(b->ranks[i].cores);
	for (unsigned i = 0; i < b->node_count; i++)
		hwloc_bitmap_free(b->nodes[i].cores);
	free(b->ranks);
	free(b->nodes);
	b->ranks = NULL;
	b->nodes = NULL;
	b->rank_count = b->node_count = 0;
}

/* As the kernel lists them, of however many there are; "": it does not say. */
static void binding_own_list(char out[LIST_BYTES])
{
	static const char name[] = "\nCpus_allowed_list:";
	char *text = NULL;
	size_t size = 0;
	out[0] = '\0';
	if (files_read("/proc/self/status", 1 << 20, &text, &size, NULL))
		return;
	const char *at = strstr(text, name);
	if (at) {
		at += strlen(name);
		at += strspn(at, " \t");
		const size_t length = strcspn(at, "\n");
		if (length < LIST_BYTES)
			(void)snprintf(out, LIST_BYTES, "%.*s", (int)length, at);
	}
	free(text);
}

static hwloc_topology_t binding_topology(void)
{
	hwloc_topology_t topology;
	if (hwloc_topology_init(&topology) != 0)
		return NULL;
	if (hwloc_topology_load(topology) == 0)
		return topology;
	hwloc_topology_destroy(topology);
	return NULL;
}

/* What a control group leaves of the node; "": not known. */
static void binding_node_list(char out[LIST_BYTES])
{
	hwloc_topology_t topology = binding_topology();
	out[0] = '\0';
	if (!topology)
		return;
	const int length = hwloc_bitmap_list_snprintf(
		out, LIST_BYTES, hwloc_topology_get_allowed_cpuset(topology));
	if (length < 0 || length >= LIST_BYTES)
		out[0] = '\0';
	hwloc_topology_destroy(topology);
}

/* "0-3" and a line end, and of one rank of each node what there is. */
static int binding_say(struct ranks *ranks, struct buffer *out)
{
	char list[LIST_BYTES];
	binding_own_list(list);
	buffer_format(out, "%s\n", list);
	if (ranks->world.local_rank == 0) {
		binding_node_list(list);
		buffer_text(out, list);
	}
	return out->failed ? -ENOMEM : 0;
}

static unsigned binding_find_node(struct ranks_binding *b, const struct ranks *ranks, unsigned rank)
{
	const struct rank_place *const places = ranks->places;
	unsigned nodes = 0;
	for (unsigned i = 0; i < rank; i++) {
		const bool known = places[i].clock[0] && places[rank].clock[0];
		if (strcmp(known ? places[i].clock : places[i].host,
			    known ? places[rank].clock : places[rank].host) == 0)
			return b->ranks[i].node;
		nodes = b->ranks[i].node + 1 > nodes ? b->ranks[i].node + 1 : nodes;
	}
	return nodes;
}

static void binding_keep(struct ranks_binding *b, const struct ranks *ranks, unsigned rank,
	const struct buffer *text)
{
	hwloc_bitmap_t more = hwloc_bitmap_alloc();
	char *const lists = strndup(text->data ? text->data : "", text->size);
	struct binding_rank *const of = &b->ranks[rank];
	of->node = binding_find_node(b, ranks, rank);
	struct binding_node *const node = &b->nodes[of->node];
	if (!node->host[0])
		(void)snprintf(node->host, sizeof node->host, "%s", ranks->places[rank].host);
	char *const end = lists ? strchr(lists, '\n') : NULL;
	if (end) {
		*end = '\0';
		if (hwloc_bitmap_list_sscanf(of->cores, lists))
			hwloc_bitmap_zero(of->cores);
		if (more && end[1] && hwloc_bitmap_list_sscanf(more, end + 1) == 0)
			(void)hwloc_bitmap_or(node->cores, node->cores, more);
	}
	free(lists);
	hwloc_bitmap_free(more);
}

static int binding_learn(struct ranks_binding *b, struct ranks *ranks, struct error *err)
{
	const unsigned count = ranks->world.count;
	struct buffer text = {0};
	int code = binding_open(b, count, count);
	if (!code)
		code = binding_say(ranks, &text);
	if (code)
		(void)error_set(err, code, "out of memory for the cores of %u ranks", count);
	for (unsigned rank = 0; rank < count && !code; rank++) {
		if (rank > 0)
			code = ranks_take(ranks, rank, &text, err);
		if (!code)
			binding_keep(b, ranks, rank, &text);
	}
	buffer_release(&text);
	if (code)
		return code;
	binding_group(b);
	while (b->node_count > 0 && b->nodes[b->node_count - 1].ranks == 0)
		hwloc_bitmap_free(b->nodes[--b->node_count].cores);
	return 0;
}

static void binding_bind(struct ranks_binding *b, unsigned sharers, unsigned index)
{
	char list[LIST_BYTES];
	char given[64] = "";
	hwloc_topology_t topology = binding_topology();
	hwloc_bitmap_t cores = hwloc_bitmap_alloc();
	hwloc_bitmap_t own = hwloc_bitmap_alloc();
	binding_own_list(list);
	bool bound = topology && cores && own && hwloc_bitmap_list_sscanf(cores, list) == 0;
	if (bound) {
		binding_share(topology, cores, sharers, index, own);
		(void)hwloc_bitmap_list_snprintf(given, sizeof given, own);
		bound = hwloc_set_cpubind(topology, own, HWLOC_CPUBIND_PROCESS) == 0;
	}
	if (bound)
		(void)snprintf(b->note, sizeof b->note,
			"cores: %u ranks of this node were left the same %u; this one took %s",
			sharers, binding_weight(cores), given);
	else
		(void)snprintf(b->note, sizeof b->note,
			"cores: %u ranks of this node share theirs, which could not be divided",
			sharers);
	hwloc_bitmap_free(own);
	hwloc_bitmap_free(cores);
	if (topology)
		hwloc_topology_destroy(topology);
}

/* As the leader says it: how many share this rank's cores, which of these it is, and how many cores that are. */
static void binding_obey(struct ranks_binding *b, const unsigned told[3])
{
	if (binding_divides(told[2], told[0]))
		binding_bind(b, told[0], told[1]);
	else if (told[0] > 1 && told[2] > 0)
		(void)snprintf(b->note, sizeof b->note,
			"cores: %u ranks share %u of this node, too few to divide", told[0],
			told[2]);
}

static int binding_tell(struct ranks_binding *b, struct ranks *ranks, struct error *err)
{
	int code = 0;
	for (unsigned rank = ranks->world.count; rank-- > 0 && !code;) {
		const struct binding_rank *const of = &b->ranks[rank];
		const unsigned told[] = {of->sharers, of->index, binding_weight(of->cores)};
		if (rank > 0)
			code = ranks_tell_one(ranks, rank, told, sizeof told, err);
		else
			binding_obey(b, told);
	}
	return code;
}

static int binding_follow(struct ranks_binding *b, struct ranks *ranks, struct error *err)
{
	struct buffer text = {0};
	unsigned told[3];
	int code = binding_say(ranks, &text);
	code = code ? error_set(err, code, "out of memory for this rank's cores")
		    : ranks_answer(ranks, text.data, text.size, err);
	if (!code)
		code = ranks_hear(ranks, 0, &text, err);
	if (!code && text.size == sizeof told) {
		memcpy(told, text.data, sizeof told);
		binding_obey(b, told);
	}
	buffer_release(&text);
	return code;
}

int binding_settle(struct ranks_binding *b, struct ranks *ranks, struct error *err)
{
	*b = (struct ranks_binding){.note = ""};
	if (!ranks_leads(ranks))
		return binding_follow(b, ranks, err);
	const int code = binding_learn(b, ranks, err);
	return code ? code : binding_tell(b, ranks, err);
}
