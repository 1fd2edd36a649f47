/* The runbook: what is in the program is docs/runbook.md, every pair that a verdict can give has an entry of
 * all its parts, and no entry is of a pair that cannot be. */
#include "harness/report/runbook.h"

#include "harness/analyze/job_verdict.h"
#include "harness/analyze/verdict.h"
#include "harness/base/files.h"
#include "harness/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_program_has_the_file(void **state)
{
	(void)state;
	FILE *file = fopen("docs/runbook.md", "r");
	if (!file)
		skip();
	const struct runbook_text whole = runbook_whole();
	char *text = calloc(1, whole.size + 2);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, whole.size + 1, file), whole.size);
	assert_memory_equal(text, whole.text, whole.size);
	free(text);
	(void)fclose(file);
}

/* Of `diagnose`, then of `observe`. */
static bool pair_of(size_t i, const char **stage, const char **resource)
{
	const bool own = i < limit_kind_count;
	if (i >= limit_kind_count + job_entry_count)
		return false;
	*stage = own ? limit_kinds[i].stage : job_entries[i - limit_kind_count].entry_stage;
	*resource =
		own ? limit_kinds[i].resource : job_entries[i - limit_kind_count].entry_resource;
	return true;
}

static bool contains(const struct runbook_text *entry, const char *what)
{
	return memmem(entry->text, entry->size, what, strlen(what)) != NULL;
}

static void every_pair_has_an_entry(void **state)
{
	(void)state;
	static const char *const parts[] = {
		"**Means.** ", "**Shows.** ", "**Confirm.** ", "**Do.** ", "**Looks alike.** "};
	assert_true(limit_kind_count <= LIMIT_KINDS_MAX);
	const char *stage;
	const char *resource;
	for (size_t i = 0; pair_of(i, &stage, &resource); i++) {
		struct runbook_text entry;
		const char *other;
		const char *of;
		if (!runbook_find(stage, resource, &entry))
			fail_msg("the runbook lacks %s/%s", stage, resource);
		for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
			if (!contains(&entry, parts[p]))
				fail_msg("%s/%s lacks %s", stage, resource, parts[p]);
		assert_true(runbook_meaning(&entry).size > 20);
		for (size_t k = 0; k < i && pair_of(k, &other, &of); k++)
			assert_false(strcmp(other, stage) == 0 && strcmp(of, resource) == 0);
	}
}

static void every_entry_has_a_pair(void **state)
{
	(void)state;
	const struct runbook_text whole = runbook_whole();
	const char *end = whole.text + whole.size;
	const char *at = whole.text;
	size_t entries = 0;
	while ((at = memmem(at, (size_t)(end - at), "\n## ", 4)) != NULL) {
		char stage[NAME_BYTES];
		char resource[NAME_BYTES];
		at += 4;
		assert_int_equal(sscanf(at, "%23[a-z]/%23[a-z-]", stage, resource), 2);
		const char *of;
		const char *limit;
		size_t i = 0;
		while (pair_of(i, &of, &limit) &&
			(strcmp(of, stage) != 0 || strcmp(limit, resource) != 0))
			i++;
		if (i == limit_kind_count + job_entry_count)
			fail_msg("no verdict is %s/%s", stage, resource);
		entries++;
	}
	assert_int_equal(entries, limit_kind_count + job_entry_count);
}

/* Every key that it names between back quotes is one. */
static void its_keys_are_keys(void **state)
{
	(void)state;
	const struct runbook_text whole = runbook_whole();
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

static void entries_are_printed_without_marks(void **state)
{
	(void)state;
	const struct style style = {.width = 80};
	struct runbook_text entry;
	struct buffer out = {0};
	assert_true(runbook_find("decode", "lock", &entry));
	runbook_render(&entry, &style, 2, &out);
	assert_false(out.failed);
	assert_null(strstr(out.data, "**"));
	assert_null(strchr(out.data, '`'));
	assert_true(strncmp(out.data, "  Means. Workers wait for each other at a", 40) == 0);
	for (const char *line = out.data; line && *line; line = strchr(line + 1, '\n')) {
		const char *stop = strchr(line + 1, '\n');
		assert_true(!stop || stop - line <= 81);
	}
	buffer_release(&out);
	assert_false(runbook_find("decode", "nothing", &entry));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_has_the_file),
		cmocka_unit_test(every_pair_has_an_entry),
		cmocka_unit_test(every_entry_has_a_pair),
		cmocka_unit_test(its_keys_are_keys),
		cmocka_unit_test(entries_are_printed_without_marks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
