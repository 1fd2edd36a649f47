/* Where the CPU time went, of flame.folded: a row for each depth of the stacks, callees below their callers, each as wide as
 * its samples, the larger first.  What is too narrow to be seen is drawn together behind its siblings. */
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/report/html/chart.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FLAME_FILE_BYTES_MAX = 64 << 20,
	FLAME_CALLS_MAX = 1 << 20, /* as the sampler; further ones count as their callers' own */
	FLAME_DEPTH_MOST = 60,     /* of calls; deeper ones, too */
	FLAME_DRAWN_MOST = 800,
	FLAME_SHARE_LEAST = 500, /* one in so many samples is drawn by itself */
	FLAME_ROW_PIXELS = 18,
	FLAME_NAME_BYTES = 2 * PARTS_TEXT_BYTES,
};
static const double FLAME_SHADE_STAGE = 0.6, FLAME_SHADE_SMALL = 0.3;

static const struct page_column flame_columns[] = {
	{"stage", "Stage", PAGE_TEXT},
	{"depth", "Depth", PAGE_COUNT},
	{"function", "Function", PAGE_TEXT},
	{"samples", "Samples", PAGE_COUNT},
	{"share", "Of all", PAGE_SHARE},
	{"of_stage", "Of its stage", PAGE_SHARE},
	{"self", "Itself, of all", PAGE_SHARE},
};

/* A line of the file: "stage;function;function;", each name with its semicolon. */
struct flame_stack {
	const char *names;
	uint64_t samples;
};

/* A function as it was called: by its parents.  The first call is that of all stages; it is its own parent. */
struct flame_call {
	const char *name; /* of `size` bytes */
	size_t size;
	size_t parent, last; /* last: callee that was added; 0: none yet */
	unsigned depth;      /* of a stage 1 */
	uint64_t self, total;
	uint64_t left, next;    /* where it begins, where its next callee does; in samples */
	uint64_t small_samples; /* of its callees that are not drawn by themselves */
	size_t small_count;
	bool drawn;
};

struct flame_tree {
	struct flame_call *calls; /* callers before their callees */
	size_t count, room;
	bool cut; /* calls were too many or too deep */
};

/* --- reading ---------------------------------------------------------------------------------- */

static int flame_by_names(const void *a, const void *b)
{
	return strcmp(
		((const struct flame_stack *)a)->names, ((const struct flame_stack *)b)->names);
}

/* A fresh array of *count; what is no line of such a file is left out.  text is cut into pieces. */
static struct flame_stack *flame_stacks(char *text, size_t *count)
{
	size_t lines = 1;
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	struct flame_stack *stacks = calloc(lines, sizeof *stacks);
	*count = 0;
	for (char *line = text, *end; stacks && *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		char *blank = strrchr(line, ' ');
		const uint64_t samples = blank ? strtoull(blank + 1, NULL, 10) : 0;
		if (samples == 0 || samples > UINT32_MAX || blank == line)
			continue;
		blank[0] =
			';'; /* after each name, so that stacks with the same callers sort together */
		blank[1] = '\0';
		stacks[(*count)++] = (struct flame_stack){line, samples};
	}
	if (stacks)
		qsort(stacks, *count, sizeof *stacks, flame_by_names);
	return stacks;
}

/* The callee of that name.  Stacks are sorted, so it is the one that was added last, or new. */
static size_t flame_callee(struct flame_tree *tree, size_t parent, const char *name, size_t size)
{
	const struct flame_call *last = &tree->calls[tree->calls[parent].last];
	if (last != tree->calls && last->size == size && memcmp(last->name, name, size) == 0)
		return tree->calls[parent].last;
	const size_t added = tree->count++;
	tree->calls[added] = (struct flame_call){.name = name,
		.size = size,
		.parent = parent,
		.depth = tree->calls[parent].depth + 1};
	tree->calls[parent].last = added;
	return added;
}

static void flame_add_stack(struct flame_tree *tree, const struct flame_stack *stack)
{
	size_t at = 0;
	tree->calls[0].total += stack->samples;
	for (const char *name = stack->names; *name;) {
		const size_t size = strcspn(name, ";");
		if (tree->calls[at].depth == FLAME_DEPTH_MOST || tree->count == tree->room) {
			tree->cut = true;
			break;
		}
		at = flame_callee(tree, at, name, size);
		tree->calls[at].total += stack->samples;
		name += size + 1;
	}
	tree->calls[at].self += stack->samples;
}

/* Names stay in text, which is cut into pieces. */
static int flame_read(char *text, struct flame_tree *tree)
{
	size_t count;
	size_t names = 2; /* that of all stages, and the last one */
	for (const char *c = text; *c; c++)
		names += *c == ';' || *c == '\n';
	struct flame_stack *stacks = flame_stacks(text, &count);
	*tree = (struct flame_tree){
		.count = 1, .room = names < FLAME_CALLS_MAX ? names : FLAME_CALLS_MAX};
	tree->calls = calloc(tree->room, sizeof *tree->calls);
	const int code = stacks && tree->calls ? 0 : -ENOMEM;
	for (size_t i = 0; i < count && !code; i++)
		flame_add_stack(tree, &stacks[i]);
	free(stacks);
	return code;
}

/* --- placing ---------------------------------------------------------------------------------- */

/* Callers before their callees, which cannot be larger. */
static int flame_largest_first(const void *a, const void *b)
{
	const struct flame_call *x = *(const struct flame_call *const *)a;
	const struct flame_call *y = *(const struct flame_call *const *)b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* Chooses what is drawn and where it begins. */
static int flame_place(struct flame_tree *tree)
{
	const uint64_t least = tree->calls[0].total / FLAME_SHARE_LEAST;
	struct flame_call **order = calloc(tree->count, sizeof(struct flame_call *));
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < tree->count; i++)
		order[i] = &tree->calls[i];
	qsort(order, tree->count, sizeof(struct flame_call *), flame_largest_first);
	for (size_t i = 1; i < tree->count; i++) {
		struct flame_call *call = order[i];
		struct flame_call *parent = &tree->calls[call->parent];
		call->drawn = call->total >= least && i <= FLAME_DRAWN_MOST;
		if (call->drawn) {
			call->left = call->next = parent->next;
			parent->next += call->total;
		} else {
			parent->small_samples += call->total;
			parent->small_count++;
		}
	}
	free(order);
	return 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Neighbours differ a little, always the same way for the same name. */
static double flame_shade(const struct flame_call *call)
{
	static const double shades[] = {0.28, 0.38, 0.48};
	unsigned hash = 2166136261U; /* FNV-1a */
	if (call->depth == 1)
		return FLAME_SHADE_STAGE;
	for (size_t i = 0; i < call->size; i++)
		hash = (hash ^ (unsigned char)call->name[i]) * 16777619U;
	return shades[(hash >> 8) % PARTS_COUNT(shades)];
}

static void flame_name(const struct flame_call *call, char out[FLAME_NAME_BYTES])
{
	const size_t size = call->size < FLAME_NAME_BYTES ? call->size : FLAME_NAME_BYTES - 1;
	memcpy(out, call->name, size);
	out[size] = '\0';
}

static const struct flame_call *flame_stage(
	const struct flame_tree *tree, const struct flame_call *call)
{
	while (call->depth > 1)
		call = &tree->calls[call->parent];
	return call;
}

/* call: itself, or the caller of the small ones that make one row. */
static void flame_add_row(const struct flame_tree *tree, const struct flame_call *call, bool small,
	struct chart *chart)
{
	char name[FLAME_NAME_BYTES];
	char stage_name[FLAME_NAME_BYTES];
	const double all = (double)tree->calls[0].total;
	const struct flame_call *stage = flame_stage(tree, call);
	const double left = (double)(small ? call->next : call->left);
	const double samples = (double)(small ? call->small_samples : call->total);
	struct part row = part_open();
	flame_name(call, name);
	if (small)
		(void)snprintf(name, sizeof name, "%zu smaller", call->small_count);
	flame_name(stage, stage_name);
	part_put(&row, "stage", parts_text(stage_name));
	part_put(&row, "depth", json_integer(small ? call->depth : call->depth - 1));
	part_put(&row, "function", parts_text(name));
	part_put(&row, "samples", json_integer((json_int_t)samples));
	part_put(&row, "share", parts_number(samples / all));
	part_put(&row, "of_stage", parts_number(samples / (double)stage->total));
	part_put(&row, "self", small ? json_null() : parts_number((double)call->self / all));
	part_put(&row, "left", parts_number(left / all));
	part_put(&row, "right", parts_number((left + samples) / all));
	part_put(&row, "shade", parts_number(small ? FLAME_SHADE_SMALL : flame_shade(call)));
	part_put(&row, "merged", json_boolean(small));
	parts_append(&chart->table.rows, part_close(&row));
}

static void flame_add_rows(const struct flame_tree *tree, struct chart *chart)
{
	const uint64_t least = tree->calls[0].total / FLAME_SHARE_LEAST;
	for (size_t i = 1; i < tree->count; i++) {
		const struct flame_call *call = &tree->calls[i];
		if (!call->drawn)
			continue;
		flame_add_row(tree, call, false, chart);
		if (call->small_count > 0 && call->small_samples >= least)
			flame_add_row(tree, call, true, chart);
	}
}

/* --- the picture ------------------------------------------------------------------------------ */

static json_int_t flame_depth(const json_t *rows)
{
	json_int_t most = 0;
	size_t i;
	const json_t *row;
	json_array_foreach(rows, i, row)
	{
		const json_int_t depth = json_integer_value(json_object_get(row, "depth"));
		most = depth > most ? depth : most;
	}
	return most + 1;
}

/* The bar of the stage; NULL: it has none. */
static const struct flame_call *flame_bar(const struct flame_tree *tree, const char *stage)
{
	char name[FLAME_NAME_BYTES];
	for (size_t i = 1; i < tree->count; i++) {
		if (!tree->calls[i].drawn || tree->calls[i].depth > 1)
			continue;
		flame_name(&tree->calls[i], name);
		if (strcmp(name, stage) == 0)
			return &tree->calls[i];
	}
	return NULL;
}

static bool flame_is_known(const struct point_summary *p, const char *stage)
{
	size_t i = 0;
	while (p && i < p->stage_count && strcmp(p->stages[i].name, stage) != 0)
		i++;
	return p && i < p->stage_count;
}

/* Stages look as in the other charts and are in the same order; those of other threads come after them. */
static void flame_draw(
	const struct chart_input *input, const struct flame_tree *tree, struct chart *chart)
{
	char name[FLAME_NAME_BYTES];
	const struct point_summary *p = parts_point(input);
	json_t *names = json_array();
	json_t *colours = json_array();
	size_t look = 0;
	for (; p && look < p->stage_count; look++)
		if (flame_bar(tree, p->stages[look].name)) {
			parts_append(&names, parts_text(p->stages[look].name));
			parts_append(&colours, parts_colour(look));
		}
	for (size_t i = 1; i < tree->count; i++) {
		if (!tree->calls[i].drawn || tree->calls[i].depth > 1)
			continue;
		flame_name(&tree->calls[i], name);
		if (flame_is_known(p, name) || flame_bar(tree, name) != &tree->calls[i])
			continue;
		parts_append(&names, parts_text(name));
		parts_append(&colours, parts_colour(look++));
	}
	chart_open(chart, "flame");
	chart_param(chart, "height",
		json_integer((json_int_t)FLAME_ROW_PIXELS * flame_depth(chart->table.rows)));
	chart_param(chart, "stages", names);
	chart_param(chart, "stage_colours", colours);
}

static void flame_find(const struct flame_tree *tree, struct buffer *out)
{
	char name[FLAME_NAME_BYTES];
	char text[UNITS_BYTES];
	const struct flame_call *most =
		&tree->calls[1]; /* of a stage, as the first one always is */
	for (size_t i = 2; i < tree->count; i++)
		if (tree->calls[i].depth == 1 && tree->calls[i].total > most->total)
			most = &tree->calls[i];
	flame_name(most, name);
	buffer_sentence(out, parts_stage(name));
	buffer_format(out, " uses %s of the CPU time",
		units_format_share((double)most->total / (double)tree->calls[0].total, text));
}

static void flame_say(const struct flame_tree *tree, struct buffer *out)
{
	char samples[UNITS_BYTES];
	buffer_format(out, "%s samples. Callees with less than %.1f%% of them",
		units_format_count((double)tree->calls[0].total, samples),
		100.0 / FLAME_SHARE_LEAST);
	if (tree->count > FLAME_DRAWN_MOST)
		buffer_format(out, ", and all after the %d largest,", FLAME_DRAWN_MOST);
	buffer_text(out, " are merged into one bar per caller.");
	if (tree->cut)
		buffer_format(out, " Stacks are cut below %d calls.", FLAME_DEPTH_MOST);
}

int chart_flame(const struct chart_input *input, struct chart *chart)
{
	struct flame_tree tree = {0};
	struct error why;
	char *text = NULL;
	size_t size;
	char *path = files_join(input->report->record->folder, "flame.folded");
	int code = path ? files_read(path, FLAME_FILE_BYTES_MAX, &text, &size, &why) : -ENOMEM;
	free(path);
	if (code == -ENOENT)
		return chart_why_not(
			chart, "CPU time was not sampled ('mlbench run --flame' does).");
	if (code && code != -ENOMEM)
		return chart_why_not(chart, "%s", why.text);
	if (!code)
		code = flame_read(text, &tree);
	if (!code)
		code = flame_place(&tree);
	if (!code && tree.calls[0].total == 0)
		code = chart_why_not(chart, "No CPU time was sampled.");
	else if (!code) {
		chart->table.rows = json_array();
		PARTS_COLUMNS(chart, flame_columns);
		flame_add_rows(&tree, chart);
		flame_find(&tree, &chart->finding);
		flame_say(&tree, &chart->text);
		flame_draw(input, &tree, chart);
		code = chart_done(chart);
	}
	free(tree.calls);
	free(text);
	return code;
}
