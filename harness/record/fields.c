/* JSON objects from tables of members. */
#include "harness/record/fields.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

json_t *fields_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

const char *fields_text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

double fields_real(const json_t *value)
{
	return json_is_number(value) ? json_number_value(value) : NAN;
}

json_t *fields_text(const char *text)
{
	json_t *value = json_string(text);
	if (value)
		return value;
	char plain[ERROR_TEXT_BYTES];
	size_t used = 0;
	for (; text[used] && used + 1 < sizeof plain; used++)
		plain[used] = (unsigned char)text[used] < 0x80 ? text[used] : '?';
	plain[used] = '\0';
	return json_string(plain);
}

json_t *fields_range(double low, double high)
{
	return isfinite(low) && isfinite(high) ? json_pack("[f,f]", low, high) : json_null();
}

json_t *fields_whole(json_t *value, int bad)
{
	if (!bad)
		return value;
	json_decref(value);
	return NULL;
}

/* --- writing ---------------------------------------------------------------------------------- */

static json_t *encode_reals(const struct field *field, const double *values)
{
	json_t *array = json_array();
	int bad = 0;
	bool finite = true;
	for (size_t i = 0; i < field->size / sizeof *values; i++) {
		finite = finite && isfinite(values[i]);
		bad |= json_array_append_new(array, fields_number(values[i]));
	}
	if (finite || field->kind == FIELD_REALS)
		return fields_whole(array, bad);
	json_decref(array);
	return json_null();
}

static json_t *encode_sparse(const struct field *field, const uint32_t *counts)
{
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; i < field->size / sizeof *counts; i++)
		if (counts[i] > 0)
			bad |= json_array_append_new(
				array, json_pack("[I,I]", (json_int_t)i, (json_int_t)counts[i]));
	return fields_whole(array, bad);
}

static json_t *encode_entry(const struct field *list, const char *entry)
{
	if (list->kind == FIELD_LINES)
		return fields_text(entry);
	if (list->kind != FIELD_ROWS)
		return fields_object(list->fields, list->field_count, entry);
	json_t *row = json_array();
	int bad = 0;
	for (size_t i = 0; i < list->field_count; i++)
		bad |= json_array_append_new(row, fields_value(&list->fields[i], entry));
	return fields_whole(row, bad);
}

static size_t list_count(const struct field *list, const void *owner)
{
	return *(const size_t *)(const void *)((const char *)owner + list->count_offset);
}

static json_t *encode_list(const struct field *list, const void *owner)
{
	const char *entries = (const char *)owner + list->offset;
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; i < list_count(list, owner) && !bad; i++)
		bad = json_array_append_new(array, encode_entry(list, entries + i * list->size));
	return fields_whole(array, bad);
}

json_t *fields_value(const struct field *field, const void *from)
{
	const char *text = (const char *)from + field->offset;
	const void *at = text;
	switch (field->kind) {
	case FIELD_REAL:
		return fields_number(*(const double *)at);
	case FIELD_FLOAT:
		return fields_number(*(const float *)at);
	case FIELD_UINT64:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case FIELD_UINT32:
		return json_integer(*(const uint32_t *)at);
	case FIELD_BOOLEAN:
		return json_boolean(*(const bool *)at);
	case FIELD_NAME:
		return text[0] ? fields_text(text) : json_null();
	case FIELD_TEXT:
	case FIELD_ALIAS:
		return fields_text(text);
	case FIELD_RANGE:
	case FIELD_REALS:
		return encode_reals(field, at);
	case FIELD_SPARSE:
		return encode_sparse(field, at);
	case FIELD_OBJECT:
	case FIELD_MEMBERS:
		return fields_object(field->fields, field->field_count, at);
	case FIELD_LIST:
	case FIELD_LIST_IF_ANY:
	case FIELD_ROWS:
	case FIELD_LINES:
		return encode_list(field, from);
	}
	return NULL;
}

json_t *fields_object(const struct field *fields, size_t count, const void *from)
{
	json_t *object = json_object();
	return fields_whole(object, fields_encode(object, fields, count, from));
}

int fields_encode(json_t *object, const struct field *fields, size_t count, const void *from)
{
	int bad = 0;
	for (size_t i = 0; i < count && !bad; i++) {
		const struct field *field = &fields[i];
		if (field->kind == FIELD_MEMBERS)
			bad = fields_encode(object, field->fields, field->field_count, from);
		else if (field->kind != FIELD_LIST_IF_ANY || list_count(field, from) > 0)
			bad = json_object_set_new(object, field->name, fields_value(field, from));
	}
	return bad ? -ENOMEM : 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool decode_integer(const struct field *field, const json_t *value, void *at)
{
	const json_int_t number = value ? json_integer_value(value) : 0;
	if ((value && !json_is_integer(value)) || number < 0 ||
		(field->kind == FIELD_UINT32 && number > UINT32_MAX))
		return false;
	if (field->kind == FIELD_UINT64)
		*(uint64_t *)at = (uint64_t)number;
	else
		*(uint32_t *)at = (uint32_t)number;
	return true;
}

static bool decode_reals(const struct field *field, const json_t *value, double *values)
{
	const size_t count = field->size / sizeof *values;
	for (size_t i = 0; i < count; i++)
		values[i] = fields_real(json_array_get(value, i));
	return field->kind == FIELD_REALS || !value || json_is_null(value) ||
	       json_array_size(value) == count;
}

static bool decode_sparse(const struct field *field, const json_t *value, uint32_t *counts)
{
	size_t i;
	const json_t *pair;
	json_array_foreach(value, i, pair)
	{
		const json_int_t index = json_integer_value(json_array_get(pair, 0));
		const json_int_t count = json_integer_value(json_array_get(pair, 1));
		if (index < 0 || (size_t)index >= field->size / sizeof *counts || count < 0 ||
			count > UINT32_MAX)
			return false;
		counts[index] = (uint32_t)count;
	}
	return true;
}

static bool decode_member(const struct field *field, const json_t *value, void *at)
{
	const char *text = json_string_value(value);
	switch (field->kind) {
	case FIELD_REAL:
		*(double *)at = fields_real(value);
		return !value || json_is_number(value) || json_is_null(value);
	case FIELD_FLOAT:
		*(float *)at = (float)fields_real(value);
		return !value || json_is_number(value) || json_is_null(value);
	case FIELD_BOOLEAN:
		*(bool *)at = json_is_true(value);
		return !value || json_is_boolean(value);
	case FIELD_TEXT:
	case FIELD_NAME:
		(void)snprintf(at, field->size, "%s", text ? text : "");
		return !value || text || (field->kind == FIELD_NAME && json_is_null(value));
	case FIELD_ALIAS:
		if (text)
			(void)snprintf(at, field->size, "%s", text);
		return true;
	case FIELD_RANGE:
	case FIELD_REALS:
		return decode_reals(field, value, at);
	case FIELD_SPARSE:
		return decode_sparse(field, value, at);
	default:
		return decode_integer(field, value, at);
	}
}

static int decode_entry(
	const struct field *list, const json_t *value, void *entry, struct error *err)
{
	if (list->kind == FIELD_LINES) {
		const char *text = json_string_value(value);
		(void)snprintf(entry, list->size, "%s", text ? text : "");
		return 0;
	}
	if (list->kind != FIELD_ROWS)
		return json_is_object(value)
			       ? fields_decode(value, list->fields, list->field_count, entry, err)
			       : error_set(err, -EINVAL, "an entry is not an object");
	int code = 0;
	if (json_array_size(value) != list->field_count)
		code = error_set(err, -EINVAL, "an entry is not a list of %zu", list->field_count);
	for (size_t i = 0; i < list->field_count && !code; i++)
		code = fields_set(&list->fields[i], json_array_get(value, i), entry, err);
	return code;
}

static int decode_list(
	const struct field *list, const json_t *array, void *owner, struct error *err)
{
	char *entries = (char *)owner + list->offset;
	const size_t count = json_array_size(array);
	int code = 0;
	if ((array && !json_is_array(array)) || count > list->most)
		return error_set(err, -EINVAL, "'%s' is not a list of at most %zu entries",
			list->name, list->most);
	for (size_t i = 0; i < count && !code; i++)
		code = decode_entry(list, json_array_get(array, i), entries + i * list->size, err);
	*(size_t *)(void *)((char *)owner + list->count_offset) = code ? 0 : count;
	return code ? error_prefix(err, code, "%s", list->name) : 0;
}

static int decode_inside(
	const struct field *field, const json_t *object, void *to, struct error *err)
{
	if (!object || json_is_null(object))
		return 0;
	if (!json_is_object(object))
		return error_set(err, -EINVAL, "'%s' is not an object", field->name);
	const int code = fields_decode(object, field->fields, field->field_count, to, err);
	return code ? error_prefix(err, code, "%s", field->name) : 0;
}

int fields_set(const struct field *field, const json_t *value, void *to, struct error *err)
{
	void *at = (char *)to + field->offset;
	if (field->kind >= FIELD_LIST)
		return decode_list(field, value, to, err);
	if (field->kind == FIELD_OBJECT)
		return decode_inside(field, value, at, err);
	return decode_member(field, value, at)
		       ? 0
		       : error_set(err, -EINVAL, "'%s' has a wrong type or value", field->name);
}

int fields_decode(
	const json_t *object, const struct field *fields, size_t count, void *to, struct error *err)
{
	int code = 0;
	for (size_t i = 0; i < count && !code; i++) {
		const struct field *field = &fields[i];
		code = field->kind == FIELD_MEMBERS
			       ? fields_decode(object, field->fields, field->field_count, to, err)
			       : fields_set(field, json_object_get(object, field->name), to, err);
	}
	return code;
}
