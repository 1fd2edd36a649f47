/* Who else uses the node. */
#include "harness/measure/node_users.h"

#include "harness/base/text.h"
#include "harness/measure/node_files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line of /proc/PID/stat: the name is in brackets and may hold anything, brackets and blanks too. */
static bool parse_process(const char *line, struct node_process *process, int *parent)
{
	const char *open = strchr(line, '(');
	const char *close = strrchr(line, ')');
	double user;
	double system;
	char *end;
	if (!open || !close || close < open)
		return false;
	*process = (struct node_process){.id = (int)strtol(line, &end, 10)};
	if (end == line || process->id <= 0)
		return false;
	(void)snprintf(
		process->name, sizeof process->name, "%.*s", (int)(close - open - 1), open + 1);
	utf8_make_plain(process->name, '?');
	/* Of the fields behind the name: 2 the parent, 12 and 13 the times, 20 the start. */
	if (sscanf(close + 1,
		    " %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %lf %lf %*s %*s %*s %*s %*s %*s %lf",
		    parent, &user, &system, &process->started) != 4)
		return false;
	process->ticks = user + system;
	return true;
}

struct process_gather {
	struct node_processes *out;
	int *parents; /* of each in the list */
	bool failed;
};

static bool grow_processes(struct process_gather *g)
{
	const size_t room = g->out->room ? 2 * g->out->room : 256;
	struct node_process *list = realloc(g->out->list, room * sizeof *list);
	if (list)
		g->out->list = list;
	int *parents = realloc(g->parents, room * sizeof *parents);
	if (parents)
		g->parents = parents;
	if (!list || !parents)
		return false;
	g->out->room = room;
	return true;
}

static void add_process(void *context, const char *path)
{
	struct process_gather *g = context;
	char line[NODE_LINE_BYTES];
	struct node_process process;
	int parent;
	if (g->failed || g->out->count == NODE_PROCESSES_MAX ||
		node_line(line, sizeof line, "%s", path) || !parse_process(line, &process, &parent))
		return;
	if (g->out->count == g->out->room && !grow_processes(g)) {
		g->failed = true;
		return;
	}
	g->parents[g->out->count] = parent;
	g->out->list[g->out->count++] = process;
}

static int by_process_id(const void *a, const void *b)
{
	const int one = ((const struct node_process *)a)->id;
	const int other = ((const struct node_process *)b)->id;
	return (one > other) - (one < other);
}

static const struct node_process *process_find(const struct node_processes *in, int id)
{
	const struct node_process key = {.id = id};
	return in->count ? bsearch(&key, in->list, in->count, sizeof *in->list, by_process_id)
			 : NULL;
}

/* Takes this process and those above it out: they wait for this one. */
static void drop_ancestors(struct process_gather *g, int id)
{
	for (size_t i = 0; i < g->out->count;) {
		if (g->out->list[i].id != id) {
			i++;
			continue;
		}
		const size_t behind = g->out->count - i - 1;
		id = g->parents[i];
		memmove(&g->out->list[i], &g->out->list[i + 1], behind * sizeof *g->out->list);
		memmove(&g->parents[i], &g->parents[i + 1], behind * sizeof *g->parents);
		g->out->count--;
		if (id <= 1)
			return;
		i = 0;
	}
}

int node_processes_read(const char *root, struct node_processes *out)
{
	*out = (struct node_processes){0};
	struct process_gather g = {.out = out};
	(void)node_each(add_process, &g, "%s/proc/[0-9]*/stat", root);
	if (!g.failed)
		drop_ancestors(&g, getpid());
	free(g.parents);
	if (g.failed) {
		node_processes_release(out);
		return -ENOMEM;
	}
	if (out->count)
		qsort(out->list, out->count, sizeof *out->list, by_process_id);
	return 0;
}

void node_processes_release(struct node_processes *processes)
{
	free(processes->list);
	*processes = (struct node_processes){0};
}

size_t node_busiest(const struct node_processes *before, const struct node_processes *after,
	struct node_user *out, size_t room)
{
	size_t count = 0;
	for (size_t i = 0; i < after->count; i++) {
		const struct node_process *now = &after->list[i];
		const struct node_process *old = process_find(before, now->id);
		const bool same = old && old->started == now->started;
		const double ticks = now->ticks - (same ? old->ticks : 0);
		size_t at = count;
		if (!(ticks > 0))
			continue;
		while (at > 0 && out[at - 1].ticks < ticks)
			at--;
		if (at == room)
			continue;
		const size_t kept = count < room ? count : room - 1;
		memmove(&out[at + 1], &out[at], (kept - at) * sizeof *out);
		out[at] = (struct node_user){.id = now->id, .ticks = ticks};
		memcpy(out[at].name, now->name, sizeof out[at].name);
		count = kept + 1;
	}
	return count;
}
