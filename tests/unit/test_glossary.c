/* The glossary: what is in the program is docs/GLOSSARY.md; it is in order, no name leads to two entries,
 * and everything that an entry refers to exists. */
#include "harness/command/glossary.h"

#include "harness/analyze/verdict.h"
#include "harness/command/command.h"
#include "harness/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

enum { ENTRIES_LEAST = 60, MEANING_LEAST = 20 };

static void the_program_has_the_file(void **state)
{
	(void)state;
	FILE *file = fopen("docs/GLOSSARY.md", "r");
	if (!file)
		skip();
	const struct runbook_text whole = glossary_whole();
	char *text = calloc(1, whole.size + 2);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, whole.size + 1, file), whole.size);
	assert_memory_equal(text, whole.text, whole.size);
	free(text);
	(void)fclose(file);
}

/* An entry that the reader of entries does not understand would be left out, and end the list. */
static void every_paragraph_is_an_entry(void **state)
{
	(void)state;
	const struct runbook_text whole = glossary_whole();
	struct glossary_entry entry;
	size_t paragraphs = 0;
	size_t entries = 0;
	for (const char *at = whole.text;
		(at = memmem(at, (size_t)(whole.text + whole.size - at), "\n\n", 2)) != NULL; at++)
		paragraphs++;
	for (const char *at = NULL; glossary_next(&at, &entry);)
		entries++;
	assert_true(entries >= ENTRIES_LEAST);
	assert_int_equal(entries, paragraphs - 1); /* less the introduction */
}

static void terms_are_in_order_and_explained(void **state)
{
	(void)state;
	char before[GLOSSARY_NAME_BYTES] = "";
	char term[GLOSSARY_NAME_BYTES];
	struct glossary_entry entry;
	for (const char *at = NULL; glossary_next(&at, &entry);) {
		assert_true(glossary_name(&entry, 0, term));
		if (strcasecmp(before, term) >= 0)
			fail_msg("'%s' does not come after '%s'", term, before);
		assert_true(entry.meaning.size >= MEANING_LEAST);
		(void)snprintf(before, sizeof before, "%s", term);
	}
}

static void every_name_leads_to_its_own_entry(void **state)
{
	(void)state;
	char name[GLOSSARY_NAME_BYTES];
	struct glossary_entry entry;
	struct glossary_entry found;
	for (const char *at = NULL; glossary_next(&at, &entry);)
		for (size_t i = 0; glossary_name(&entry, i, name); i++) {
			assert_true(glossary_find(name, &found));
			if (found.term.text != entry.term.text)
				fail_msg("'%s' is of '%.*s' and of '%.*s'", name,
					(int)found.term.size, found.term.text, (int)entry.term.size,
					entry.term.text);
			/* Such a name of its own would hide the entry. */
			if (i > 0 && config_find_key(name) != KEY_COUNT)
				fail_msg("'%s' is a key", name);
		}
}

static bool exists(const char *name)
{
	static const struct command *const commands[] = {&command_run, &command_sweep,
		&command_diagnose, &command_what_if, &command_show, &command_report, &command_top,
		&command_compare, &command_history, &command_export, &command_status_of_run,
		&command_gen, &command_check, &command_list, &command_doctor, &command_probe,
		&command_accept, &command_baseline, &command_fleet, &command_observe,
		&command_reproduce, &command_explain, &command_help};
	char stage[GLOSSARY_NAME_BYTES];
	struct glossary_entry entry;
	const char *slash = strchr(name, '/');
	if (slash) {
		(void)snprintf(stage, sizeof stage, "%.*s", (int)(slash - name), name);
		return limit_kind_find(stage, slash + 1) != NULL;
	}
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return true;
	return config_find_key(name) != KEY_COUNT || glossary_find(name, &entry);
}

static void no_reference_dangles(void **state)
{
	(void)state;
	char name[GLOSSARY_NAME_BYTES];
	struct glossary_entry entry;
	size_t references = 0;
	for (const char *at = NULL; glossary_next(&at, &entry);)
		for (size_t i = 0; glossary_reference(&entry, i, name); i++, references++)
			if (!exists(name))
				fail_msg("'%.*s' refers to '%s', which is nothing",
					(int)entry.term.size, entry.term.text, name);
	assert_true(references > ENTRIES_LEAST);
}

/* Every name with a dot between back quotes is a key. */
static void its_keys_are_keys(void **state)
{
	(void)state;
	const struct runbook_text whole = glossary_whole();
	size_t keys = 0;
	for (const char *c = whole.text; c < whole.text + whole.size; c++) {
		char name[64];
		int used = 0;
		if (*c != '`' || sscanf(c, "`%63[a-z_.]%n", name, &used) != 1)
			continue;
		if (name[0] == '.' || !strchr(name, '.') || (c[used] != '`' && c[used] != ' '))
			continue;
		if (config_find_key(name) == KEY_COUNT)
			fail_msg("'%s' is no key", name);
		keys++;
	}
	assert_true(keys > 30);
}

/* What users of other tools call it, and what the tables print. */
static void well_known_names_lead_home(void **state)
{
	(void)state;
	static const struct pair {
		const char *name, *term;
	} known[] = {
		{"num_workers", "decode.workers"},
		{"prefetch_factor", "prefetch.depth"},
		{"pin_memory", "upload.memory"},
		{"dataloader", "data loader"},
		{"DataLoader", "data loader"},
		{"gil", "GIL-like lock"},
		{"GIL", "GIL-like lock"},
		{"iops", "IOPS"},
		{"straggler", "straggler"},
		{"gpu", "device"},
		{"utilization", "device utilisation"},
		{"oom", "out of memory"},
		{"nfs", "network storage"},
		{"pcie", "PCIe"},
		{"AU", "accelerator utilisation"},
		{"accelerator utilization", "accelerator utilisation"},
		{"goodput", "goodput"},
		{"badput", "goodput"},
		{"object storage", "network storage"},
		{"oversubscription", "core oversubscription"},
		{"zstd", "container"},
		{"GDS", "GPUDirect Storage"},
		{"mpirun", "rank"},
		{"queue_depth", "queue depth"},
		{"warm up", "warm-up"},
		{"samples/s", "images/s"},
		{"step busy", "busy"},
		{"capacity/s", "capacity"},
		{"limited by", "bottleneck"},
		{"on CPU", "on CPU"},
		{"confidence", "confidence"},
		{"starved", "starved"},
		{"blocked", "blocked"},
		{"p99", "percentile"},
		{"unsteady", "steady state"},
		{"cannot tell", "inconclusive"},
	};
	struct glossary_entry entry;
	char term[GLOSSARY_NAME_BYTES];
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (!glossary_find(known[i].name, &entry))
			fail_msg("nothing is called '%s'", known[i].name);
		assert_true(glossary_name(&entry, 0, term));
		assert_string_equal(term, known[i].term);
	}
	assert_false(glossary_find("frobnicate", &entry));
	assert_false(glossary_find("", &entry));
}

static void entries_are_printed_without_marks(void **state)
{
	(void)state;
	const struct style style = {.width = 80};
	struct glossary_entry entry;
	struct buffer out = {0};
	assert_true(glossary_find("straggler", &entry));
	glossary_render(&entry, &style, 2, &out);
	assert_false(out.failed);
	assert_null(strstr(out.data, "**"));
	assert_null(strchr(out.data, '`'));
	assert_non_null(strstr(out.data, "\n  also  stragglers, "));
	assert_non_null(strstr(out.data, "\n        mlbench explain decode/imbalance, "));
	for (const char *line = out.data; line && *line; line = strchr(line + 1, '\n')) {
		const char *stop = strchr(line + 1, '\n');
		assert_true(!stop || stop - line <= 81);
	}
	buffer_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_has_the_file),
		cmocka_unit_test(every_paragraph_is_an_entry),
		cmocka_unit_test(terms_are_in_order_and_explained),
		cmocka_unit_test(every_name_leads_to_its_own_entry),
		cmocka_unit_test(no_reference_dangles),
		cmocka_unit_test(its_keys_are_keys),
		cmocka_unit_test(well_known_names_lead_home),
		cmocka_unit_test(entries_are_printed_without_marks),
	};
	return cmocka_run_group_tests_name("glossary", tests, NULL, NULL);
}
