/* A JSON object being filled: the first failure sticks, and a number that is none becomes null with its
 * reason in "missing". */
#ifndef MLBENCH_REPORT_PART_H
#define MLBENCH_REPORT_PART_H

#include <jansson.h>

struct part {
	json_t *object, *missing;
	int bad;
};

struct part part_open(void);
void part_put(struct part *part, const char *name, json_t *value); /* takes value */
/* A number, or null with its reason. */
void part_number(struct part *part, const char *name, double value, const char *why);
/* The object, or NULL after a failure. */
json_t *part_close(struct part *part);
/* Appends to *array; after a failure *array is NULL, and stays so.  Takes value. */
void part_append(json_t **array, json_t *value);
/* Of a list: itself, or NULL, and released, after a failure. */
json_t *part_list(json_t *list, int bad);

#endif
