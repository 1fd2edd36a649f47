/* mlbench explain: the runbook's entry for a verdict. */
#include "harness/analyze/limit_kind.h"
#include "harness/base/suggest.h"
#include "harness/command/command.h"
#include "harness/record/fields.h"
#include "harness/report/runbook.h"
#include "harness/report/table.h"

#include <errno.h>
#include <string.h>

enum { INDENT_COLUMNS = 2 };

static int find_kind(const char *pair, size_t *kind, struct error *err)
{
	char names[LIMIT_KINDS_MAX][PAIR_BYTES];
	const char *list[LIMIT_KINDS_MAX];
	for (size_t i = 0; i < limit_kind_count; i++) {
		list[i] = limit_kind_pair(limit_kinds[i].stage, limit_kinds[i].resource, names[i]);
		if (strcmp(pair, list[i]) == 0) {
			*kind = i;
			return 0;
		}
	}
	const char *near = suggest_nearest(pair, list, limit_kind_count);
	if (near)
		return error_set(
			err, -EINVAL, "no verdict is '%s' (did you mean '%s'?)", pair, near);
	return error_set(
		err, -EINVAL, "no verdict is '%s': 'mlbench explain' lists them all", pair);
}

static int entry_of(size_t kind, struct runbook_text *entry, struct error *err)
{
	if (runbook_find(limit_kinds[kind].stage, limit_kinds[kind].resource, entry))
		return 0;
	return error_set(err, -ENOENT, "the runbook has no entry '%s/%s'", limit_kinds[kind].stage,
		limit_kinds[kind].resource);
}

static int add_json(size_t kind, json_t *entries, struct error *err)
{
	struct runbook_text entry;
	const int code = entry_of(kind, &entry, err);
	if (code)
		return code;
	json_t *row = json_pack("{s:s, s:s, s:s%}", "stage", limit_kinds[kind].stage, "resource",
		limit_kinds[kind].resource, "text", entry.text, entry.size);
	if (json_array_append_new(entries, row) != 0)
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static void render_entry(size_t kind, const struct runbook_text *entry, const struct style *style,
	struct buffer *out)
{
	char pair[PAIR_BYTES];
	buffer_format(out, "%s%s%s\n\n", style_ink(style, INK_ACCENT),
		limit_kind_pair(limit_kinds[kind].stage, limit_kinds[kind].resource, pair),
		style_end(style));
	runbook_render(entry, style, INDENT_COLUMNS, out);
}

static void add_row(size_t kind, const struct runbook_text *entry, struct table *table)
{
	char pair[PAIR_BYTES];
	const struct runbook_text meaning = runbook_meaning(entry);
	struct buffer text = {0};
	for (size_t i = 0; i < meaning.size; i++)
		buffer_add(&text, meaning.text[i] == '\n' ? " " : &meaning.text[i], 1);
	table_add(table, INK_BOLD, "%s",
		limit_kind_pair(limit_kinds[kind].stage, limit_kinds[kind].resource, pair));
	table_add(table, INK_PLAIN, "%s", text.data ? text.data : "");
	buffer_release(&text);
}

static int render_list(const struct style *style, struct buffer *out, struct error *err)
{
	static const struct table_column columns[] = {
		{.head = "", .left = true}, {.head = "", .left = true, .wraps = true}};
	struct table table;
	int code = 0;
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < limit_kind_count && !code; i++) {
		struct runbook_text entry;
		code = entry_of(i, &entry, err);
		if (!code)
			add_row(i, &entry, &table);
	}
	buffer_format(out,
		"%swhat a verdict can name; 'mlbench explain STAGE/RESOURCE' says more%s\n",
		style_ink(style, INK_ACCENT), style_end(style));
	table_render(&table, style, INDENT_COLUMNS, false, out);
	table_close(&table);
	return code;
}

static int print_json(
	const struct invocation *invocation, size_t first, size_t count, struct error *err)
{
	json_t *entries = json_array();
	int code = entries ? 0 : error_set(err, -ENOMEM, "out of memory");
	for (size_t i = first; i < first + count && !code; i++)
		code = add_json(i, entries, err);
	if (code) {
		json_decref(entries);
		return command_status(code);
	}
	return command_print_json(invocation,
		json_pack("{s:s, s:o}", "schema", "mlbench.explain/1", "entries", entries), err);
}

static int run(const struct invocation *invocation, struct error *err)
{
	const bool one = invocation->options.argument_count > 0;
	size_t kind = 0;
	int code = one ? find_kind(invocation->options.arguments[0], &kind, err) : 0;
	if (code)
		return command_status(code);
	if (command_wants_json(invocation))
		return print_json(invocation, kind, one ? 1 : limit_kind_count, err);
	const struct style style = command_style(invocation);
	struct runbook_text entry;
	struct buffer text = {0};
	if (!one)
		code = render_list(&style, &text, err);
	else if (!(code = entry_of(kind, &entry, err)))
		render_entry(kind, &entry, &style, &text);
	const int status = code ? command_status(code) : command_print(&text, err);
	buffer_release(&text);
	return status;
}

const struct command command_explain = {
	.name = "explain",
	.summary = "say what a verdict means and what to do about it",
	.arguments = "[STAGE/RESOURCE]",
	.description =
		"Prints the runbook's entry for a verdict, as 'decode/lock': what it means, how it shows, how to "
		"confirm it, what to do, and what else looks like it. Without an argument: every pair that a "
		"verdict can name. The same text is docs/runbook.md.",
	.example = "mlbench explain read/latency",
	.options = OPTION_BIT(OPTION_JSON),
	.arguments_max = 1,
	.run = run,
};
