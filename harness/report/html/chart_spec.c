/* Specifications from text. */
#include "harness/report/html/chart_spec.h"

#include "harness/base/buffer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BASE = 10 };

static json_t *read_buffer(struct buffer *text)
{
	json_t *spec = text->failed ? NULL : json_loadb(text->data, text->size, 0, NULL);
	buffer_release(text);
	return spec;
}

json_t *chart_spec_with(const char *text, const char *const *values, size_t count)
{
	struct buffer out = {0};
	for (; *text; text++) {
		const size_t place = *text == '$' ? (size_t)(text[1] - '1') : count;
		if (values && place < count) {
			buffer_text(&out, values[place]);
			text++;
		} else {
			const char c = *text == '\'' ? '"' : *text == '`' ? '\'' : *text;
			buffer_add(&out, &c, 1);
		}
	}
	return read_buffer(&out);
}

json_t *chart_spec(const char *text)
{
	return chart_spec_with(text, NULL, 0);
}

static json_t *member_of(const json_t *at, const char *name)
{
	return json_is_array(at) ? json_array_get(at, strtoul(name, NULL, NUMBER_BASE))
				 : json_object_get(at, name);
}

int chart_spec_set(json_t *root, const char *path, json_t *value)
{
	json_t *at = root;
	char name[64];
	for (;;) {
		const size_t size = strcspn(path, ".");
		const bool last = path[size] == '\0';
		if (!at || !value || size >= sizeof name) {
			json_decref(value);
			return -ENOMEM;
		}
		memcpy(name, path, size);
		name[size] = '\0';
		if (last)
			return json_is_array(at) ? json_array_set_new(at,
							   strtoul(name, NULL, NUMBER_BASE), value)
						 : json_object_set_new(at, name, value);
		at = member_of(at, name);
		path += size + 1;
	}
}
