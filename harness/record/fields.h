/* JSON objects from C structures and back, by one table of members per structure, so that what is
 * written and what is read cannot differ.  NAN is null. */
#ifndef MLBENCH_RECORD_FIELDS_H
#define MLBENCH_RECORD_FIELDS_H

#include "harness/base/error.h"

#include <jansson.h>
#include <stddef.h>

enum field_kind {
	FIELD_REAL,
	FIELD_FLOAT,
	FIELD_UINT64,
	FIELD_UINT32,
	FIELD_BOOLEAN,
	FIELD_TEXT,
	FIELD_NAME,  /* text; "" is null */
	FIELD_RANGE, /* two doubles, low and high: an array, or null where one of them is none */
};

struct field {
	const char *name;
	enum field_kind kind;
	size_t offset, size;
};

#define FIELD(type, member, kind)                                                                \
	{                                                                                        \
#member, kind, offsetof(struct type, member), sizeof(((struct type *)0)->member) \
	}

/* A number, or null where there is none (NAN, infinite). */
json_t *fields_number(double value);
/* The number, or NAN for null and anything else. */
double fields_real(const json_t *value);
/* [low, high], or null where one of them is none. */
json_t *fields_range(double low, double high);
/* Text that may hold bytes which are no UTF-8 (file names): those become '?'. */
json_t *fields_text(const char *text);

/* Adds each member to object; -ENOMEM. */
int fields_encode(json_t *object, const struct field *fields, size_t count, const void *from);

/* Sets each member that object has; a missing one becomes NAN, 0, false or "".  -EINVAL when one
 * has another type, with its name. */
int fields_decode(const json_t *object, const struct field *fields, size_t count, void *to,
	struct error *err);

#endif
