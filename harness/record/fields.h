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
	FIELD_NAME,   /* text; "" is null */
	FIELD_ALIAS,  /* text of a member with a row of its own, which holds where this is absent */
	FIELD_RANGE,  /* doubles, from low to high: an array, or null where one of them is none */
	FIELD_REALS,  /* doubles: an array */
	FIELD_SPARSE, /* counts, uint32_t: [index, count] of each that is not 0 */
	/* Structures inside, with a table of their own. */
	FIELD_OBJECT,
	FIELD_MEMBERS,     /* no structure: more members of this one, in the same object */
	FIELD_LIST,        /* an array of structures: of objects */
	FIELD_LIST_IF_ANY, /* the same, left out where it is empty */
	FIELD_ROWS,        /* an array of structures: of arrays */
	FIELD_LINES,       /* an array of texts */
};

struct field {
	const char *name;
	enum field_kind kind;
	size_t offset, size; /* of the member; of a list: of an entry */
	/* Of structures. */
	const struct field *fields;
	size_t field_count;
	/* Of lists: where the owner has its count (a size_t), and how many entries fit. */
	size_t count_offset, most;
};

#define FIELDS(array) (sizeof(array) / sizeof((array)[0]))

/* A member under another name, and under its own. */
#define FIELD_AS(type, member, as, of_kind)                                               \
	{                                                                                 \
		.name = (as), .kind = (of_kind), .offset = offsetof(struct type, member), \
		.size = sizeof(((struct type *)0)->member)                                \
	}
#define FIELD(type, member, of_kind) FIELD_AS(type, member, #member, of_kind)
/* A member that is a structure with that table. */
#define FIELD_INSIDE(type, member, table)                                                       \
	{                                                                                       \
		.name = #member, .kind = FIELD_OBJECT, .offset = offsetof(struct type, member), \
		.size = sizeof(((struct type *)0)->member), .fields = (table),                  \
		.field_count = FIELDS(table)                                                    \
	}
/* A member that is an array of structures with that table, of which `count` are in use. */
#define FIELD_ENTRIES(type, member, count, of_kind, table)                                   \
	{                                                                                    \
		.name = #member, .kind = (of_kind), .offset = offsetof(struct type, member), \
		.size = sizeof(((struct type *)0)->member[0]), .fields = (table),            \
		.field_count = FIELDS(table), .count_offset = offsetof(struct type, count),  \
		.most = FIELDS(((struct type *)0)->member)                                   \
	}
/* A member that is an array of texts, of which `count` are in use. */
#define FIELD_TEXTS(type, member, count)                                                       \
	{                                                                                      \
		.name = #member, .kind = FIELD_LINES, .offset = offsetof(struct type, member), \
		.size = sizeof(((struct type *)0)->member[0]),                                 \
		.count_offset = offsetof(struct type, count),                                  \
		.most = FIELDS(((struct type *)0)->member)                                     \
	}

/* The members of another table. */
#define FIELD_MORE(table)                                                              \
	{                                                                              \
		.kind = FIELD_MEMBERS, .fields = (table), .field_count = FIELDS(table) \
	}

/* A number, or null where there is none (NAN, infinite). */
json_t *fields_number(double value);
/* The text of a member; "" where there is none. */
const char *fields_text_of(const json_t *object, const char *name);
/* The number, or NAN for null and anything else. */
double fields_real(const json_t *value);
/* [low, high], or null where one of them is none. */
json_t *fields_range(double low, double high);
/* Text that may hold bytes which are no UTF-8 (file names): those become '?'. */
json_t *fields_text(const char *text);

/* value, or NULL, and released, after a failure. */
json_t *fields_whole(json_t *value, int bad);

/* Of one member of `from`; NULL without memory. */
json_t *fields_value(const struct field *field, const void *from);
/* An object of them all; NULL without memory. */
json_t *fields_object(const struct field *fields, size_t count, const void *from);
/* Adds each member to object; -ENOMEM. */
int fields_encode(json_t *object, const struct field *fields, size_t count, const void *from);

/* Sets one member from what stands for it; NULL: it is missing. */
int fields_set(const struct field *field, const json_t *value, void *to, struct error *err);
/* Sets each member that object has.  A missing one becomes NAN, 0, false or "", a missing list empty,
 * and a missing structure stays as it is.  object NULL: it has none.  -EINVAL when one has another
 * type, with its name. */
int fields_decode(const json_t *object, const struct field *fields, size_t count, void *to,
	struct error *err);

#endif
