/* JSON objects, member by member. */
#include "harness/report/part.h"

#include "harness/record/fields.h"

#include <errno.h>
#include <math.h>

struct part part_open(void)
{
	struct part part = {.object = json_object()};
	part.bad = part.object ? 0 : -ENOMEM;
	return part;
}

void part_put(struct part *part, const char *name, json_t *value)
{
	part->bad |= json_object_set_new(part->object, name, value);
}

void part_number(struct part *part, const char *name, double value, const char *why)
{
	part_put(part, name, fields_number(value));
	if (isfinite(value))
		return;
	if (!part->missing)
		part->missing = json_object();
	part->bad |= json_object_set_new(part->missing, name, fields_text(why));
}

json_t *part_close(struct part *part)
{
	if (part->missing)
		part_put(part, "missing", part->missing);
	if (!part->bad)
		return part->object;
	json_decref(part->object);
	return NULL;
}

void part_append(json_t **array, json_t *value)
{
	if (json_array_append_new(*array, value) == 0)
		return;
	json_decref(*array);
	*array = NULL;
}

json_t *part_list(json_t *list, int bad)
{
	if (!bad)
		return list;
	json_decref(list);
	return NULL;
}
