/* Where CPU time went, as tables for people, as collapsed stacks, and as JSON. */
#include "harness/report/flame_report.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 2048 };

/* --- functions -------------------------------------------------------------------------------- */

/* The stage that a frame belongs to, by number. */
static uint32_t flame_stage_of(const struct flame_profile *profile, uint32_t frame)
{
	while (profile->frames[frame].parent != FLAME_ROOT)
		frame = profile->frames[frame].parent;
	return frame;
}

static int by_function(const void *a, const void *b)
{
	const struct flame_top *const x = a;
	const struct flame_top *const y = b;
	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static int by_self(const void *a, const void *b)
{
	const struct flame_top *const x = a;
	const struct flame_top *const y = b;
	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return by_function(a, b);
}

static size_t flame_merge(struct flame_top *list, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (kept > 0 && by_function(&list[kept - 1], &list[i]) == 0)
			list[kept - 1].self += list[i].self;
		else
			list[kept++] = list[i];
	}
	return kept;
}

size_t flame_top(const struct flame_profile *profile, struct flame_top *out, size_t room)
{
	struct flame_top *list = malloc((profile->frame_count + 1) * sizeof *list);
	size_t count = 0;
	for (uint32_t i = 0; list && i < profile->frame_count; i++) {
		const struct flame_frame *frame = &profile->frames[i];
		if (frame->self > 0)
			list[count++] = (struct flame_top){
				flame_stage_of(profile, i), frame->name, frame->self};
	}
	if (count > 0) {
		qsort(list, count, sizeof *list, by_function);
		count = flame_merge(list, count);
		qsort(list, count, sizeof *list, by_self);
	}
	count = count < room ? count : room;
	if (count > 0)
		memcpy(out, list, count * sizeof *list);
	free(list);
	return count;
}

/* --- folded ----------------------------------------------------------------------------------- */

/* Symbols are ASCII but for those that somebody made to be otherwise; a terminal obeys some of the rest. */
static void add_clean(const char *text, struct buffer *out)
{
	for (; *text; text++) {
		const unsigned char byte = (unsigned char)*text;
		buffer_add(out, byte < ' ' || byte == 0x7F ? " " : byte > 0x7F ? "?" : text, 1);
	}
}

/* ';' parts frames, a line break lines, and a frame without a name would be none. */
static void add_folded(const char *name, struct buffer *out)
{
	struct buffer clean = {0};
	add_clean(name[0] ? name : "[unnamed]", &clean);
	for (size_t i = 0; i < clean.size; i++)
		buffer_add(out, clean.data[i] == ';' ? ":" : &clean.data[i], 1);
	out->failed |= clean.failed;
	buffer_release(&clean);
}

static void add_stack(const struct flame_profile *profile, uint32_t frame, struct buffer *out)
{
	uint32_t stack[DEPTH_MAX];
	size_t depth = 0;
	const uint64_t self = profile->frames[frame].self;
	for (; frame != FLAME_ROOT && depth < DEPTH_MAX; frame = profile->frames[frame].parent)
		stack[depth++] = frame;
	for (size_t i = depth; i-- > 0;) {
		const struct flame_frame *at = &profile->frames[stack[i]];
		add_folded(profile->names[at->name], out);
		buffer_text(out, i > 0 ? ";" : "");
	}
	buffer_format(out, " %llu\n", (unsigned long long)self);
}

void flame_folded(const struct flame_profile *profile, struct buffer *out)
{
	for (uint32_t i = 0; i < profile->frame_count; i++)
		if (profile->frames[i].self > 0)
			add_stack(profile, i, out);
}

/* --- how -------------------------------------------------------------------------------------- */

static const char *flame_format_count(uint64_t count, char out[UNITS_BYTES])
{
	return units_format_count((double)count, out);
}

/* Its thread's; what a sample costs the thread that is sampled, bench_flame says. */
static double sampler_share(const struct flame_profile *profile)
{
	for (size_t i = 0; i < profile->frame_count && profile->samples > 0; i++) {
		const struct flame_frame *frame = &profile->frames[i];
		if (frame->parent == FLAME_ROOT &&
			strcmp(profile->names[frame->name], FLAME_SAMPLER) == 0)
			return (double)frame->total / (double)profile->samples;
	}
	return 0;
}

static void describe_coverage(const struct flame_profile *profile, struct buffer *out)
{
	char cpu[UNITS_BYTES];
	char share[UNITS_BYTES];
	if (!(profile->cpu_s > 0))
		return;
	const double sampled_s =
		(double)profile->samples * (double)profile->period_ns / (double)NS_PER_S;
	buffer_format(out, "; they stand for %s of the process' CPU time (%s)",
		units_format_share(sampled_s / profile->cpu_s, share),
		units_format_duration(profile->cpu_s * (double)NS_PER_S, cpu));
}

/* "clock signals, 247 Hz of CPU time, 12,345 samples, 3 lost, ..."; one paragraph, each fact with its reason. */
static void flame_describe(const struct flame_profile *profile, struct buffer *out)
{
	char count[UNITS_BYTES];
	char share[UNITS_BYTES];
	buffer_format(out, "clock signals, %.0f Hz of CPU time, %s samples",
		(double)NS_PER_S / (double)profile->period_ns,
		flame_format_count(profile->samples, count));
	if (profile->windows > 1)
		buffer_format(out, " of %u repetitions", profile->windows);
	buffer_text(out, " without warm-up");
	buffer_format(out, ", %s lost", flame_format_count(profile->lost, count));
	const double truncated =
		profile->samples > 0 ? (double)profile->truncated / (double)profile->samples : 0;
	buffer_format(out, ", stacks cut short %s", units_format_share(truncated, share));
	describe_coverage(profile, out);
	buffer_format(out, ", %s of it the sampler's own",
		units_format_share(sampler_share(profile), share));
	if (profile->unsampled_threads > 0)
		buffer_format(out, "; threads that could not be sampled: %s",
			flame_format_count(profile->unsampled_threads, count));
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{.head = "stage", .left = true},
	{.head = "function", .left = true},
	{.head = "CPU time"},
	{.head = "of all"},
	{.head = "of stage"},
};

static void flame_add_function(
	const struct flame_profile *profile, const struct flame_top *top, struct table *table)
{
	char text[UNITS_BYTES];
	const struct flame_frame *const stage = &profile->frames[top->stage];
	table_add(table, INK_PLAIN, "%s", profile->names[stage->name]);
	struct buffer name = {0};
	add_folded(profile->names[top->name], &name);
	table_add(table, INK_PLAIN, "%.60s", name.data ? name.data : "");
	buffer_release(&name);
	table_add(table, INK_PLAIN, "%s",
		units_format_duration((double)top->self * (double)profile->period_ns, text));
	table_add(table, INK_PLAIN, "%s",
		units_format_share((double)top->self / (double)profile->samples, text));
	table_add(table, INK_PLAIN, "%s",
		units_format_share((double)top->self / (double)stage->total, text));
}

void flame_table(const struct flame_profile *profile, const struct style *style, struct buffer *out)
{
	struct flame_top tops[FLAME_TOP];
	const size_t count = flame_top(profile, tops, FLAME_TOP);
	struct table table;
	table_open(&table, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < count; i++)
		flame_add_function(profile, &tops[i], &table);
	buffer_format(
		out, "\n%sCPU time by function%s\n", style_ink(style, INK_BOLD), style_end(style));
	if (count > 0)
		table_render(&table, style, 2, true, out);
	table_close(&table);
	struct buffer how = {0};
	flame_describe(profile, &how);
	buffer_text(out, "  ");
	style_wrap(style, how.data ? how.data : "", 2, 2, out);
	buffer_release(&how);
}

/* --- the files -------------------------------------------------------------------------------- */

static int write_one(
	const char *folder, const char *name, const struct buffer *text, struct error *err)
{
	char *const path = files_join(folder, name);
	if (!path || text->failed) {
		free(path);
		return error_set(err, -ENOMEM, "out of memory for %s", name);
	}
	const int code = files_write_atomic(path, text->data ? text->data : "", text->size, err);
	free(path);
	return code;
}

int flame_write_files(const struct flame_profile *profile, const char *name, const char *folder,
	struct error *err)
{
	struct buffer text = {0};
	flame_folded(profile, &text);
	int code = write_one(folder, "flame.folded", &text, err);
	buffer_release(&text);
	json_t *const json = flame_json(profile, name);
	char *const lines = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
	json_decref(json);
	if (lines)
		buffer_format(&text, "%s\n", lines);
	else
		text.failed = true;
	free(lines);
	if (!code)
		code = write_one(folder, "flame.json", &text, err);
	buffer_release(&text);
	return code;
}

/* --- JSON ------------------------------------------------------------------------------------- */

enum { TOP_KEPT = 50 };

static json_t *flame_stages_json(const struct flame_profile *profile)
{
	json_t *array = json_array();
	for (size_t i = 0; i < profile->frame_count; i++) {
		const struct flame_frame *frame = &profile->frames[i];
		if (frame->parent != FLAME_ROOT || frame->total == 0)
			continue;
		(void)json_array_append_new(array,
			json_pack("{s:o, s:I}", "name", fields_text(profile->names[frame->name]),
				"samples", (json_int_t)frame->total));
	}
	return array;
}

static json_t *functions_json(const struct flame_profile *profile)
{
	struct flame_top tops[TOP_KEPT];
	const size_t count = flame_top(profile, tops, TOP_KEPT);
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++) {
		const struct flame_frame *stage = &profile->frames[tops[i].stage];
		(void)json_array_append_new(
			array, json_pack("{s:o, s:o, s:I}", "stage",
				       fields_text(profile->names[stage->name]), "function",
				       fields_text(profile->names[tops[i].name]), "self",
				       (json_int_t)tops[i].self));
	}
	return array;
}

json_t *flame_json(const struct flame_profile *profile, const char *name)
{
	return json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:o}",
		"schema", "mlbench.flame/1", "name", fields_text(name), "method", "clock signals",
		"period_ns", (json_int_t)profile->period_ns, "samples",
		(json_int_t)profile->samples, "lost", (json_int_t)profile->lost, "truncated",
		(json_int_t)profile->truncated, "outside", (json_int_t)profile->outside,
		"unsampled_threads", (json_int_t)profile->unsampled_threads, "repetitions",
		(json_int_t)profile->windows, "cpu_s", profile->cpu_s, "seconds", profile->seconds,
		"stages", flame_stages_json(profile), "functions", functions_json(profile));
}
