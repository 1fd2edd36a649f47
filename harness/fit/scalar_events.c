#include "harness/fit/scalar_events.h"

#include "harness/base/crc32c.h"
#include "harness/base/files.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* --- messages --------------------------------------------------------------------------------- */

/* Protocol buffers' wire format: protobuf.dev/programming-guides/encoding. */
struct scalar_wire {
	const unsigned char *at, *end;
};

enum { SCALAR_VARINT = 0, SCALAR_64 = 1, SCALAR_BYTES = 2, SCALAR_32 = 5 };

struct scalar_field {
	uint64_t number;
	unsigned type;
	uint64_t value;           /* of a varint, or the bits of a fixed one */
	struct scalar_wire bytes; /* of what has a length */
};

static bool scalar_varint(struct scalar_wire *wire, uint64_t *out)
{
	*out = 0;
	for (unsigned bits = 0; bits < 70; bits += 7) {
		if (wire->at == wire->end)
			return false;
		const unsigned char byte = *wire->at++;
		if (bits < 64)
			*out |= (uint64_t)(byte & 0x7f) << bits;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static uint64_t scalar_bits(const unsigned char *bytes, size_t size)
{
	uint64_t value = 0;

	for (size_t i = size; i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

static bool scalar_fixed(struct scalar_wire *wire, size_t size, uint64_t *out)
{
	if ((size_t)(wire->end - wire->at) < size)
		return false;
	*out = scalar_bits(wire->at, size);
	wire->at += size;
	return true;
}

/* The next field; false at the end, and where the message is damaged, which *whole says. */
static bool scalar_next(struct scalar_wire *wire, struct scalar_field *field, bool *whole)
{
	uint64_t tag = 0;

	if (wire->at == wire->end)
		return false;
	*whole = scalar_varint(wire, &tag);
	field->number = tag >> 3;
	field->type = (unsigned)(tag & 7);
	if (*whole && field->type == SCALAR_VARINT)
		*whole = scalar_varint(wire, &field->value);
	else if (*whole && field->type == SCALAR_64)
		*whole = scalar_fixed(wire, 8, &field->value);
	else if (*whole && field->type == SCALAR_32)
		*whole = scalar_fixed(wire, 4, &field->value);
	else if (*whole && field->type == SCALAR_BYTES) {
		*whole = scalar_varint(wire, &field->value) &&
			 field->value <= (uint64_t)(wire->end - wire->at);
		if (*whole) {
			field->bytes = (struct scalar_wire){wire->at, wire->at + field->value};
			wire->at += field->value;
		}
	} else {
		*whole = false;
	}
	return *whole;
}

static double scalar_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

static double scalar_float(uint64_t bits)
{
	const uint32_t low = (uint32_t)bits;
	float value;

	memcpy(&value, &low, sizeof value);
	return value;
}

/* The number of that width that these bytes are; NAN: more or less than one. */
static double scalar_of_bytes(const struct scalar_wire *bytes, bool wide)
{
	const size_t size = wide ? 8 : 4;
	if ((size_t)(bytes->end - bytes->at) != size)
		return NAN;
	const uint64_t bits = scalar_bits(bytes->at, size);
	return wide ? scalar_double(bits) : scalar_float(bits);
}

/* TensorProto: dtype = 1, tensor_content = 4, float_val = 5, double_val = 6.  NAN: no single float or double. */
static double scalar_of_tensor(struct scalar_wire wire, bool *whole)
{
	enum { FLOAT = 1, DOUBLE = 2 };
	struct scalar_field field;
	uint64_t type = 0;
	double value = NAN;

	while (scalar_next(&wire, &field, whole)) {
		if (field.number == 1 && field.type == SCALAR_VARINT)
			type = field.value;
		else if (field.number == 4 && field.type == SCALAR_BYTES)
			value = scalar_of_bytes(&field.bytes, type == DOUBLE);
		else if (field.number == 5 && field.type == SCALAR_BYTES)
			value = scalar_of_bytes(&field.bytes, false);
		else if (field.number == 5 && field.type == SCALAR_32)
			value = scalar_float(field.value);
		else if (field.number == 6 && field.type == SCALAR_BYTES)
			value = scalar_of_bytes(&field.bytes, true);
		else if (field.number == 6 && field.type == SCALAR_64)
			value = scalar_double(field.value);
	}
	return type == FLOAT || type == DOUBLE ? value : (double)NAN;
}

/* Summary.Value: tag = 1, simple_value = 2, tensor = 8. */
static void scalar_of_value(struct scalar_wire wire, struct scalar_event *event, bool *whole)
{
	struct scalar_field field;

	event->tag = NULL;
	event->value = NAN;
	while (scalar_next(&wire, &field, whole)) {
		if (field.number == 1 && field.type == SCALAR_BYTES) {
			event->tag = (const char *)field.bytes.at;
			event->tag_length = (size_t)(field.bytes.end - field.bytes.at);
		} else if (field.number == 2 && field.type == SCALAR_32) {
			event->value = scalar_float(field.value);
		} else if (field.number == 8 && field.type == SCALAR_BYTES) {
			event->value = scalar_of_tensor(field.bytes, whole);
			if (!*whole)
				return;
		}
	}
}

/* Event: wall_time = 1, step = 2, summary = 5, in any order. */
static int scalar_of_event(struct scalar_wire wire, scalar_take *take, void *context, bool *whole)
{
	struct scalar_event event = {0};
	struct scalar_wire summary = {0};
	struct scalar_field field;
	int code = 0;

	while (scalar_next(&wire, &field, whole)) {
		if (field.number == 1 && field.type == SCALAR_64)
			event.wall_time_s = scalar_double(field.value);
		else if (field.number == 2 && field.type == SCALAR_VARINT)
			event.step = (int64_t)field.value;
		else if (field.number == 5 && field.type == SCALAR_BYTES)
			summary = field.bytes;
	}
	if (!*whole || !isfinite(event.wall_time_s))
		return 0;
	while (!code && *whole && scalar_next(&summary, &field, whole)) {
		if (field.number != 1 || field.type != SCALAR_BYTES)
			continue;
		scalar_of_value(field.bytes, &event, whole);
		if (*whole && event.tag && isfinite(event.value))
			code = take(context, &event);
	}
	return code;
}

/* --- records ---------------------------------------------------------------------------------- */

bool scalars_begin(const unsigned char *bytes, size_t size)
{
	return size >= SCALAR_HEAD_BYTES &&
	       scalar_bits(bytes + 8, 4) == crc32c_mask(crc32c_add(0, bytes, 8));
}

static bool scalar_read_exactly(gzFile in, void *bytes, size_t size)
{
	return gzread(in, bytes, (unsigned)size) == (int)size;
}

static bool scalar_pass_over(gzFile in, uint64_t size, unsigned char *room)
{
	while (size > 0) {
		const size_t piece =
			size < SCALAR_RECORD_BYTES ? (size_t)size : SCALAR_RECORD_BYTES;
		if (!scalar_read_exactly(in, room, piece))
			return false;
		size -= piece;
	}
	return true;
}

/* 1: there may be another one; 0: the end. */
static int scalar_read_record(
	gzFile in, unsigned char *room, scalar_take *take, void *context, struct scalar_file *file)
{
	unsigned char head[SCALAR_HEAD_BYTES];
	unsigned char sum[4];
	bool whole = true;
	const int n = gzread(in, head, sizeof head);

	if (n == 0)
		return 0;
	file->torn = true; /* unless it turns out to be whole */
	if (n != (int)sizeof head || !scalars_begin(head, sizeof head))
		return 0;
	const uint64_t size = scalar_bits(head, 8);
	const bool large = size > SCALAR_RECORD_BYTES;
	if (large ? !scalar_pass_over(in, size, room)
		  : !scalar_read_exactly(in, room, (size_t)size))
		return 0;
	if (!scalar_read_exactly(in, sum, sizeof sum))
		return 0;
	file->torn = false;
	file->records++;
	if (large)
		return 1;
	if (scalar_bits(sum, 4) != crc32c_mask(crc32c_add(0, room, (size_t)size))) {
		file->damaged++;
		return 1;
	}
	const struct scalar_wire wire = {room, room + size};
	const int code = scalar_of_event(wire, take, context, &whole);
	file->damaged += !whole;
	return code ? code : 1;
}

int scalars_read(const char *path, scalar_take *take, void *context, struct scalar_file *file,
	struct error *err)
{
	int code = 1;

	*file = (struct scalar_file){0};
	const int fd = files_open_stream(path, err);
	if (fd < 0)
		return fd;
	gzFile in = gzdopen(fd, "rb");
	unsigned char *room = malloc(SCALAR_RECORD_BYTES);
	if (!in || !room)
		code = error_set_errno(err, ENOMEM, "cannot read '%s'", path);
	while (code > 0)
		code = scalar_read_record(in, room, take, context, file);
	if (in)
		(void)gzclose(in);
	else
		(void)close(fd);
	free(room);
	if (!code && file->records == 0)
		return error_set(err, -ENOMSG, "'%s' is no file of TensorBoard's events", path);
	return code;
}
