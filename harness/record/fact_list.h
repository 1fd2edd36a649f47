/* Facts about a node, each with its value or the reason why it is not known; what a result keeps of where it was measured. */
#ifndef MLBENCH_RECORD_FACT_LIST_H
#define MLBENCH_RECORD_FACT_LIST_H

#include <stdbool.h>
#include <stddef.h>

enum fact_kind { FACT_TEXT, FACT_NUMBER, FACT_MISSING };

struct fact {
	char *group, *name; /* "cpu", "model"; owned */
	enum fact_kind kind;
	char *text; /* the value, or why it is missing; owned */
	double number;
	const char *unit; /* of a number; static, may be NULL */
};

struct fact_list {
	struct fact *facts;
	size_t count, room;
	bool failed; /* out of memory on the way: the list is incomplete */
};

void fact_text(struct fact_list *list, const char *group, const char *name, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void fact_number(struct fact_list *list, const char *group, const char *name, double value,
	const char *unit);
void fact_missing(struct fact_list *list, const char *group, const char *name, const char *why, ...)
	__attribute__((format(printf, 4, 5)));
const struct fact *fact_find(const struct fact_list *list, const char *group, const char *name);
void fact_list_release(struct fact_list *list); /* safe on {0} */

/* The node that a result is of, older ones too; NULL: not known. */
const char *fact_node_name(const struct fact_list *facts);
/* Whether it is the node's, so that results of one name are of one node: no name that a container's engine made up. */
bool fact_node_name_lasts(const struct fact_list *facts);
/* "name_from" of a name that nobody gave. */
#define FACT_NODE_HOST "host name"

#endif
