/* Facts about a node, of a run's page and of an acceptance's. */
#include "harness/record/fields.h"
#include "harness/report/html/page.h"
#include "harness/report/html/sections.h"
#include "harness/report/part.h"

#include <string.h>

static const struct page_column fact_columns[] = {
	{"group", "group", PAGE_TEXT},
	{"name", "fact", PAGE_TEXT},
	{"value", "value", PAGE_TEXT},
};

static void environment_text(const struct fact *fact, struct buffer *out)
{
	char number[PAGE_NUMBER_BYTES];
	const bool bytes = fact->unit && strcmp(fact->unit, "bytes") == 0;
	if (fact->kind == FACT_NUMBER)
		buffer_format(out, "%s%s%s",
			page_number(bytes ? PAGE_BYTES : PAGE_REAL, fact->number, number),
			fact->unit && !bytes ? " " : "", fact->unit && !bytes ? fact->unit : "");
	else
		buffer_format(out, "%s%s", fact->kind == FACT_MISSING ? "not available: " : "",
			fact->text ? fact->text : "");
}

static void environment_add_fact(json_t *rows, const struct fact *fact)
{
	struct buffer text = {0};
	struct part part = part_open();
	environment_text(fact, &text);
	part_put(&part, "group", fields_text(fact->group));
	part_put(&part, "name", fields_text(fact->name));
	part_put(&part, "value", fields_text(text.data ? text.data : ""));
	(void)json_array_append_new(rows, part_close(&part));
	buffer_release(&text);
}

static bool is_first_of_group(const struct fact_list *list, size_t fact)
{
	for (size_t i = 0; i < fact; i++)
		if (strcmp(list->facts[i].group, list->facts[fact].group) == 0)
			return false;
	return true;
}

/* Group by group: saved, facts are so; as they are captured, they need not be. */
static void environment_add_facts(json_t *rows, const struct fact_list *list)
{
	for (size_t first = 0; first < list->count; first++)
		for (size_t i = first; i < list->count && is_first_of_group(list, first); i++)
			if (strcmp(list->facts[i].group, list->facts[first].group) == 0)
				environment_add_fact(rows, &list->facts[i]);
}

void section_environment(const struct fact_list *facts, struct page *page)
{
	struct page_table table = {
		.columns = fact_columns, .column_count = 3, .rows = json_array()};
	environment_add_facts(table.rows, facts);
	page_table(page, &table, "Facts about the node and the data");
	json_decref(table.rows);
}
