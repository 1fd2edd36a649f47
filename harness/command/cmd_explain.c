/* mlbench explain: the runbook's entry for a verdict, or a list of verdicts. */
#include "harness/analyze/limit_kinds.h"
#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/command/command.h"
#include "harness/command/glossary.h"
#include "harness/record/fields.h"
#include "harness/report/layout.h"
#include "harness/report/runbook.h"
#include "harness/report/table.h"

#include <errno.h>
#include <string.h>

enum { INDENT_COLUMNS = 2, EXPLAINED_MAX = LIMIT_KINDS_MAX + JOB_ENTRIES_MAX };

/* An entry of the runbook: verdicts of `diagnose`, then those of `observe`. */
static const char *explain_stage(size_t at)
{
	return at < limit_kind_count ? limit_kinds[at].stage
				     : job_entries[at - limit_kind_count].entry_stage;
}

static const char *explain_resource(size_t at)
{
	return at < limit_kind_count ? limit_kinds[at].resource
				     : job_entries[at - limit_kind_count].entry_resource;
}

static size_t explain_count(void)
{
	return limit_kind_count + job_entry_count;
}

static const char *explain_pair(size_t at, char pair[PAIR_BYTES])
{
	return limit_kind_pair(explain_stage(at), explain_resource(at), pair);
}

/* Whether the word names this pair, its stage or its resource. */
static bool word_matches(const char *word, size_t at)
{
	char pair[PAIR_BYTES];
	return strcmp(word, explain_stage(at)) == 0 || strcmp(word, explain_resource(at)) == 0 ||
	       strcmp(word, explain_pair(at, pair)) == 0;
}

/* The pairs that are meant: all without a word. */
struct selection {
	size_t of[EXPLAINED_MAX];
	size_t count;
};

void explain_names(struct buffer *out)
{
	char pair[PAIR_BYTES];
	for (size_t i = 0; i < explain_count(); i++)
		buffer_format(out, " %s", explain_pair(i, pair));
}

static int refuse_word(const char *word, struct error *err)
{
	char pairs[EXPLAINED_MAX][PAIR_BYTES];
	const char *names[3 * EXPLAINED_MAX];
	struct glossary_entry entry;
	size_t count = 0;
	if (glossary_find(word, &entry))
		return error_set(err, -EINVAL,
			"'%s' is not a verdict; 'mlbench help %s' explains the term", word, word);
	for (size_t i = 0; i < explain_count(); i++) {
		names[count++] = explain_pair(i, pairs[i]);
		names[count++] = explain_stage(i);
		names[count++] = explain_resource(i);
	}
	const char *near = suggest_nearest(word, names, count);
	if (near)
		return error_set(
			err, -EINVAL, "'%s' is not a verdict; did you mean '%s'?", word, near);
	return error_set(err, -EINVAL, "'%s' is not a verdict; 'mlbench explain' lists them", word);
}

static int select_kinds(const char *word, struct selection *selection, struct error *err)
{
	selection->count = 0;
	for (size_t i = 0; i < explain_count(); i++)
		if (!word || word_matches(word, i))
			selection->of[selection->count++] = i;
	return selection->count ? 0 : refuse_word(word, err);
}

static int entry_of(size_t at, struct runbook_text *entry, struct error *err)
{
	if (runbook_find(explain_stage(at), explain_resource(at), entry))
		return 0;
	return error_set(err, -ENOENT, "the runbook has no entry '%s/%s'", explain_stage(at),
		explain_resource(at));
}

static int explain_render_list(const struct selection *selection, const struct style *style,
	struct buffer *out, struct error *err)
{
	static const struct table_column columns[] = {
		{.head = "", .left = true}, {.head = "", .left = true, .wraps = true}};
	struct table table;
	int code = 0;
	table_open(&table, columns, COUNT(columns));
	for (size_t i = 0; i < selection->count && !code; i++) {
		struct runbook_text entry;
		code = entry_of(selection->of[i], &entry, err);
		if (code)
			break;
		const struct runbook_text meaning = runbook_meaning(&entry);
		char pair[PAIR_BYTES];
		struct buffer text = {0};
		for (size_t c = 0; c < meaning.size; c++)
			buffer_add(&text, meaning.text[c] == '\n' ? " " : &meaning.text[c], 1);
		table_add(&table, INK_BOLD, "%s", explain_pair(selection->of[i], pair));
		table_add(&table, INK_PLAIN, "%s", text.data ? text.data : "");
		buffer_release(&text);
	}
	layout_title(
		style, INK_ACCENT, "verdicts; 'mlbench explain STAGE/RESOURCE' explains one", out);
	table_render(&table, style, INDENT_COLUMNS, false, out);
	table_close(&table);
	return code;
}

static int explain_print_json(
	const struct invocation *invocation, const struct selection *selection, struct error *err)
{
	json_t *entries = json_array();
	int code = entries ? 0 : error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < selection->count && !code; i++) {
		struct runbook_text entry;
		code = entry_of(selection->of[i], &entry, err);
		if (!code && json_array_append_new(
				     entries, json_pack("{s:s, s:s, s:s%}", "stage",
						      explain_stage(selection->of[i]), "resource",
						      explain_resource(selection->of[i]), "text",
						      entry.text, entry.size)) != 0)
			code = error_set(err, -ENOMEM, "out of memory");
	}
	if (code) {
		json_decref(entries);
		return command_status(code);
	}
	return command_print_json(invocation,
		json_pack("{s:s, s:o}", "schema", "mlbench.explain/1", "entries", entries), err);
}

static int explain_run(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	const char *word = options->argument_count > 0 ? options->arguments[0] : NULL;
	struct selection selection;
	int code = select_kinds(word, &selection, err);
	if (code)
		return command_status(code);
	if (command_wants_json(invocation))
		return explain_print_json(invocation, &selection, err);
	const struct style style = command_style(invocation);
	struct runbook_text entry;
	struct buffer text = {0};
	if (!word || selection.count > 1) {
		code = explain_render_list(&selection, &style, &text, err);
	} else if (!(code = entry_of(selection.of[0], &entry, err))) {
		char pair[PAIR_BYTES];
		buffer_format(&text, "%s%s%s\n\n", style_ink(&style, INK_ACCENT),
			explain_pair(selection.of[0], pair), style_end(&style));
		runbook_render(&entry, &style, INDENT_COLUMNS, &text);
	}
	const int status = code ? command_status(code) : command_print(&text, err);
	buffer_release(&text);
	return status;
}

const struct command command_explain = {
	.name = "explain",
	.summary = "explain a verdict: what it means and what to do",
	.arguments = "[STAGE/RESOURCE | STAGE | RESOURCE]",
	.description =
		"Prints the runbook's entry for a verdict such as decode/lock: what it means, how it shows in the "
		"measurements, how to confirm it, how to fix it, and what it is easily confused with. A stage "
		"('decode') or a resource ('cpu') lists its verdicts; without an argument all are listed. The "
		"same text is docs/runbook.md.",
	.example = "mlbench explain read/latency",
	.options = OPTION_BIT(OPTION_JSON),
	.arguments_max = 1,
	.run = explain_run,
};
