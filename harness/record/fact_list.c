/* The list of facts: a growing array whose entries own their texts. */
#include "harness/record/fact_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTS_ROOM_FIRST = 64 };

static bool grow_facts(struct fact_list *list)
{
	if (list->count < list->room)
		return true;
	const size_t room = list->room ? list->room * 2 : FACTS_ROOM_FIRST;
	struct fact *facts = realloc(list->facts, room * sizeof *facts);
	if (!facts) {
		list->failed = true;
		return false;
	}
	list->facts = facts;
	list->room = room;
	return true;
}

/* Takes `text`; a failed allocation of any part drops the fact and marks the list. */
static void append_fact(
	struct fact_list *list, const char *group, const char *name, struct fact fact)
{
	fact.group = strdup(group);
	fact.name = strdup(name);
	if (!fact.group || !fact.name || !fact.text || !grow_facts(list)) {
		free(fact.group);
		free(fact.name);
		free(fact.text);
		list->failed = true;
		return;
	}
	list->facts[list->count++] = fact;
}

__attribute__((format(printf, 1, 0))) static char *format_text(const char *format, va_list args)
{
	char *text;
	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

void fact_text(struct fact_list *list, const char *group, const char *name, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	append_fact(list, group, name,
		(struct fact){.kind = FACT_TEXT, .text = format_text(format, args)});
	va_end(args);
}

void fact_number(
	struct fact_list *list, const char *group, const char *name, double value, const char *unit)
{
	char text[64];
	(void)snprintf(text, sizeof text, "%.15g", value);
	append_fact(list, group, name,
		(struct fact){
			.kind = FACT_NUMBER, .text = strdup(text), .number = value, .unit = unit});
}

void fact_missing(struct fact_list *list, const char *group, const char *name, const char *why, ...)
{
	va_list args;
	va_start(args, why);
	append_fact(list, group, name,
		(struct fact){.kind = FACT_MISSING, .text = format_text(why, args)});
	va_end(args);
}

const struct fact *fact_find(const struct fact_list *list, const char *group, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->facts[i].group, group) == 0 &&
			strcmp(list->facts[i].name, name) == 0)
			return &list->facts[i];
	return NULL;
}

void fact_list_release(struct fact_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->facts[i].group);
		free(list->facts[i].name);
		free(list->facts[i].text);
	}
	free(list->facts);
	*list = (struct fact_list){0};
}

/* --- the node --------------------------------------------------------------------------------------- */

static const char *known_text(const struct fact_list *facts, const char *group, const char *name)
{
	const struct fact *fact = fact_find(facts, group, name);
	return fact && fact->kind == FACT_TEXT ? fact->text : NULL;
}

const char *fact_node_name(const struct fact_list *facts)
{
	const char *name = known_text(facts, "node", "name");
	return name ? name : known_text(facts, "kernel", "nodename");
}

static bool consists_of(const char *text, size_t count, const char *accepted)
{
	return strlen(text) == count && strspn(text, accepted) == count;
}

/* docker and podman: 12 hexadecimal digits.  A pod of a Job or a Deployment: "name-x7k2p". */
static bool is_made_up_name(const char *name, const char *container)
{
	enum { ID_DIGITS = 12, POD_DIGITS = 5 };
	const char *dash = strrchr(name, '-');
	if (strcmp(container, "kubernetes") == 0)
		return dash &&
		       consists_of(dash + 1, POD_DIGITS, "abcdefghijklmnopqrstuvwxyz0123456789");
	return (strcmp(container, "docker") == 0 || strcmp(container, "podman") == 0) &&
	       consists_of(name, ID_DIGITS, "0123456789abcdef");
}

bool fact_node_name_lasts(const struct fact_list *facts)
{
	const char *name = fact_node_name(facts);
	const char *from = known_text(facts, "node", "name_from");
	const char *container = known_text(facts, "cgroup", "container");
	if (!name)
		return false;
	return (from && strcmp(from, FACT_NODE_HOST) != 0) || !container ||
	       !is_made_up_name(name, container);
}
