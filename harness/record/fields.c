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

static json_t *encode_member(const struct field *field, const char *at)
{
	switch (field->kind) {
	case FIELD_REAL:
		return fields_number(*(const double *)(const void *)at);
	case FIELD_FLOAT:
		return fields_number(*(const float *)(const void *)at);
	case FIELD_UINT64:
		return json_integer((json_int_t) * (const uint64_t *)(const void *)at);
	case FIELD_UINT32:
		return json_integer(*(const uint32_t *)(const void *)at);
	case FIELD_BOOLEAN:
		return json_boolean(*(const bool *)(const void *)at);
	case FIELD_NAME:
		return at[0] ? fields_text(at) : json_null();
	case FIELD_TEXT:
		return fields_text(at);
	case FIELD_RANGE:
		return fields_range(((const double *)(const void *)at)[0],
			((const double *)(const void *)at)[1]);
	}
	return NULL;
}

int fields_encode(json_t *object, const struct field *fields, size_t count, const void *from)
{
	for (size_t i = 0; i < count; i++) {
		json_t *value = encode_member(&fields[i], (const char *)from + fields[i].offset);
		if (json_object_set_new(object, fields[i].name, value) != 0)
			return -ENOMEM;
	}
	return 0;
}

static bool decode_number(const struct field *field, const json_t *value, char *at)
{
	if (field->kind == FIELD_REAL) {
		*(double *)(void *)at = fields_real(value);
		return !value || json_is_number(value) || json_is_null(value);
	}
	if (field->kind == FIELD_FLOAT) {
		*(float *)(void *)at = (float)fields_real(value);
		return !value || json_is_number(value) || json_is_null(value);
	}
	if (value && !json_is_integer(value))
		return false;
	const json_int_t number = value ? json_integer_value(value) : 0;
	if (number < 0 || (field->kind == FIELD_UINT32 && number > UINT32_MAX))
		return false;
	if (field->kind == FIELD_UINT64)
		*(uint64_t *)(void *)at = (uint64_t)number;
	else
		*(uint32_t *)(void *)at = (uint32_t)number;
	return true;
}

static bool decode_member(const struct field *field, const json_t *value, char *at)
{
	if (field->kind == FIELD_TEXT || field->kind == FIELD_NAME) {
		const char *text = json_string_value(value);
		(void)snprintf(at, field->size, "%s", text ? text : "");
		return !value || text || (field->kind == FIELD_NAME && json_is_null(value));
	}
	if (field->kind == FIELD_RANGE) {
		double *range = (double *)(void *)at;
		range[0] = fields_real(json_array_get(value, 0));
		range[1] = fields_real(json_array_get(value, 1));
		return !value || json_is_null(value) || json_array_size(value) == 2;
	}
	if (field->kind == FIELD_BOOLEAN) {
		*(bool *)(void *)at = json_is_true(value);
		return !value || json_is_boolean(value);
	}
	return decode_number(field, value, at);
}

int fields_decode(
	const json_t *object, const struct field *fields, size_t count, void *to, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_object_get(object, fields[i].name);
		if (!decode_member(&fields[i], value, (char *)to + fields[i].offset))
			return error_set(
				err, -EINVAL, "'%s' has a wrong type or value", fields[i].name);
	}
	return 0;
}
