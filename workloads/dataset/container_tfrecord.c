/* TFRecord files of tf.train.Example messages.  A record is u64 length, u32 checksum of it, the message,
 * u32 checksum of that, all little-endian, checksums masked CRC-32C (harness/base/crc32c.h); both are
 * checked, so that a scan reads every byte once, and a run checks each sample's bytes (.summed).  Of a message two features are read, "image/encoded"
 * (or "image"), which is what a file of its own would be, and "image/class/label" (or "label"), by a
 * reader of the wire format (protobuf.dev/programming-guides/encoding) that knows these messages:
 *   Example  { Features features = 1; }
 *   Features { map<string, Feature> feature = 1; }          an entry has key = 1 and value = 2
 *   Feature  { BytesList bytes_list = 1; Int64List int64_list = 3; }      each with values = 1 */
#include "harness/base/crc32c.h"
#include "harness/base/files.h"
#include "workloads/dataset/container.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	RECORD_HEAD = 12,
	RECORD_TAIL = 4,
	RECORD_PIECE_BYTES = 256 * 1024,
	FEATURE_NAME_MAX = 63,
};

/* ---- the wire format ------------------------------------------------------------------------ */

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_LENGTH = 2, WIRE_32 = 5 };

/* A stretch of the file that is one message. */
struct wire {
	struct container_file *file;
	struct error *err;
	uint64_t at, end;
};

/* The field that was met. */
struct wire_field {
	uint64_t number;
	enum wire_type type;
	uint64_t value;      /* of a varint */
	uint64_t at, length; /* of what has a length */
};

static int wire_damaged(const struct wire *wire)
{
	return error_set(wire->err, -EBADMSG, "the message is damaged at byte %" PRIu64, wire->at);
}

static int wire_varint(struct wire *wire, uint64_t *out)
{
	enum { LONGEST = 10, BITS = 7 };
	const uint64_t left = wire->end - wire->at;
	const size_t most = left < LONGEST ? (size_t)left : LONGEST;
	const uint8_t *bytes;
	const int code = container_view(wire->file, wire->at, most, &bytes, wire->err);
	*out = 0;
	if (code)
		return code;
	for (size_t i = 0; i < most; i++) {
		*out |= (uint64_t)(bytes[i] & 0x7f) << (BITS * i);
		if (!(bytes[i] & 0x80)) {
			wire->at += i + 1;
			return 0;
		}
	}
	return wire_damaged(wire);
}

static int wire_skip(struct wire *wire, uint64_t bytes)
{
	if (bytes > wire->end - wire->at)
		return wire_damaged(wire);
	wire->at += bytes;
	return 0;
}

/* The next field, and moves behind it. */
static int wire_next(struct wire *wire, struct wire_field *field)
{
	uint64_t tag = 0;
	int code = wire_varint(wire, &tag);
	*field = (struct wire_field){.number = tag >> 3, .type = (enum wire_type)(tag & 7)};
	if (code)
		return code;
	switch (field->type) {
	case WIRE_VARINT:
		return wire_varint(wire, &field->value);
	case WIRE_64:
		return wire_skip(wire, 8);
	case WIRE_32:
		return wire_skip(wire, 4);
	case WIRE_LENGTH:
		code = wire_varint(wire, &field->length);
		field->at = wire->at;
		return code ? code : wire_skip(wire, field->length);
	default:
		return wire_damaged(wire);
	}
}

static struct wire wire_inside(const struct wire *wire, const struct wire_field *field)
{
	return (struct wire){wire->file, wire->err, field->at, field->at + field->length};
}

/* ---- an example ----------------------------------------------------------------------------- */

struct example {
	bool has_bytes, has_label;
	uint64_t at, length; /* of the sample's bytes */
	int64_t label;
};

/* The first value of a list. */
static int example_take_value(
	const struct wire *feature, const struct wire_field *list, struct example *example)
{
	struct wire inside = wire_inside(feature, list);
	struct wire_field value;
	if (inside.at == inside.end)
		return 0;
	int code = wire_next(&inside, &value);
	if (code || value.number != 1)
		return code;
	if (list->number == 1 && value.type == WIRE_LENGTH) {
		example->has_bytes = true;
		example->at = value.at;
		example->length = value.length;
	} else if (list->number == 3 && value.type == WIRE_VARINT) {
		example->has_label = true;
		example->label = (int64_t)value.value;
	} else if (list->number == 3 && value.type == WIRE_LENGTH && value.length > 0) {
		struct wire packed = wire_inside(&inside, &value);
		uint64_t label;
		code = wire_varint(&packed, &label);
		example->label = (int64_t)label;
		example->has_label = !code;
	}
	return code;
}

static int example_name(
	const struct wire *entry, const struct wire_field *key, char out[FEATURE_NAME_MAX + 1])
{
	const uint8_t *bytes;
	out[0] = '\0';
	if (key->length > FEATURE_NAME_MAX)
		return 0; /* none that is looked for */
	const int code =
		container_view(entry->file, key->at, (size_t)key->length, &bytes, entry->err);
	if (code || key->length == 0)
		return code;
	memcpy(out, bytes, (size_t)key->length);
	out[key->length] = '\0';
	return 0;
}

/* What a feature of that name is for. */
static bool example_is_bytes(const char *name)
{
	return strcmp(name, "image/encoded") == 0 || strcmp(name, "image") == 0;
}

static bool example_is_label(const char *name)
{
	return strcmp(name, "image/class/label") == 0 || strcmp(name, "label") == 0;
}

/* The longer names stand above the shorter, in whatever order a map has them. */
static bool example_wants(const struct example *example, const char *name)
{
	return example_is_bytes(name)
		       ? name[5] == '/' || !example->has_bytes
		       : example_is_label(name) && (name[5] == '/' || !example->has_label);
}

/* An entry of the map: the key comes first or second. */
static int example_take_entry(struct wire entry, struct example *example)
{
	char name[FEATURE_NAME_MAX + 1] = "";
	struct wire_field field, feature = {0};
	int code = 0;
	while (!code && entry.at < entry.end) {
		code = wire_next(&entry, &field);
		if (!code && field.number == 1 && field.type == WIRE_LENGTH)
			code = example_name(&entry, &field, name);
		else if (!code && field.number == 2 && field.type == WIRE_LENGTH)
			feature = field;
	}
	if (code || feature.number == 0 || !example_wants(example, name))
		return code;
	struct wire inside = wire_inside(&entry, &feature);
	while (!code && inside.at < inside.end) {
		code = wire_next(&inside, &field);
		const bool wanted = field.number == (example_is_bytes(name) ? 1 : 3);
		if (!code && wanted && field.type == WIRE_LENGTH)
			code = example_take_value(&inside, &field, example);
	}
	return code;
}

static int example_read(struct wire wire, struct example *example)
{
	struct wire_field field;
	int code = 0;
	while (!code && wire.at < wire.end) {
		code = wire_next(&wire, &field);
		if (code || field.number != 1 || field.type != WIRE_LENGTH)
			continue;
		struct wire features = wire_inside(&wire, &field);
		while (!code && features.at < features.end) {
			code = wire_next(&features, &field);
			if (!code && field.number == 1 && field.type == WIRE_LENGTH)
				code = example_take_entry(wire_inside(&features, &field), example);
		}
	}
	return code;
}

/* ---- records -------------------------------------------------------------------------------- */

static uint64_t record_number(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;
	for (size_t i = size; i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

static int record_crc(
	struct container_file *file, uint64_t at, uint64_t length, uint32_t *crc, struct error *err)
{
	*crc = 0;
	for (uint64_t done = 0; done < length;) {
		const uint64_t left = length - done;
		const size_t size = left < RECORD_PIECE_BYTES ? (size_t)left : RECORD_PIECE_BYTES;
		const uint8_t *bytes;
		const int code = container_view(file, at + done, size, &bytes, err);
		if (code)
			return code;
		*crc = crc32c_add(*crc, bytes, size);
		done += size;
	}
	return 0;
}

static int record_take_message(
	struct container_file *file, uint64_t at, uint64_t length, struct error *err)
{
	struct example example = {0};
	struct error why = {"unreadable"};
	char what[64];
	const int code = example_read((struct wire){file, &why, at, at + length}, &example);
	if (code == -EBADMSG || (!code && !example.has_bytes))
		return container_note_bad(file, err, "the record at byte %" PRIu64 ": %.100s", at,
			code ? why.text : "it is no example with an 'image/encoded'");
	if (code) {
		*err = why;
		return code;
	}
	const struct container_part part = {
		.offset = example.at,
		.length = example.length,
		.numbered = example.has_label,
		.label = example.label,
	};
	(void)snprintf(what, sizeof what, "the record at byte %" PRIu64, at);
	return container_add_sample(file, what, &part, err);
}

static int record_take(struct container_file *file, uint64_t at, uint64_t length, struct error *err)
{
	const uint8_t *tail;
	uint32_t crc;
	int code = record_crc(file, at, length, &crc, err);
	if (!code)
		code = container_view(file, at + length, RECORD_TAIL, &tail, err);
	if (code)
		return code;
	if (record_number(tail, RECORD_TAIL) != crc32c_mask(crc))
		return container_note_bad(
			file, err, "the record at byte %" PRIu64 " has a wrong checksum", at);
	return record_take_message(file, at, length, err);
}

static int container_tfrecord_split(struct container_file *file, struct error *err)
{
	uint64_t at = 0;
	while (at < file->bytes) {
		const uint8_t *head;
		if (file->bytes - at < RECORD_HEAD)
			return error_set(err, -ENODATA, "it is cut short at byte %" PRIu64, at);
		int code = container_view(file, at, RECORD_HEAD, &head, err);
		if (code)
			return code;
		const uint64_t length = record_number(head, 8);
		if (record_number(head + 8, 4) != crc32c_mask(crc32c_add(0, head, 8)))
			return error_set(err, -EINVAL,
				"the length of the record at byte %" PRIu64
				" has a wrong checksum: what follows cannot be found",
				at);
		const uint64_t left = file->bytes - at - RECORD_HEAD;
		if (left < RECORD_TAIL || length > left - RECORD_TAIL)
			return error_set(err, -ENODATA,
				"it is cut short: the record at byte %" PRIu64 " has %" PRIu64
				" bytes",
				at, length);
		code = record_take(file, at + RECORD_HEAD, length, err);
		if (code)
			return code;
		at += RECORD_HEAD + length + RECORD_TAIL;
	}
	return 0;
}

/* "train.tfrecord" in its spellings, and "train-00000-of-01024" as TensorFlow's own scripts have it. */
static bool container_tfrecord_takes(const char *name)
{
	static const char *const endings[] = {
		".tfrecord", ".tfrecords", ".tfrec", ".tfr", ".record"};
	const char *const of = strstr(name, "-of-");
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		if (files_name_ends(name, endings[i]))
			return true;
	return name[0] != '.' && of && of[4] && strspn(of + 4, "0123456789") == strlen(of + 4);
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t wire_size(uint64_t value)
{
	size_t size = 1;
	while (value >>= 7)
		size++;
	return size;
}

static void wire_put(struct buffer *out, uint64_t value)
{
	for (;; value >>= 7) {
		const uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		buffer_add(out, &byte, 1);
		if (value <= 0x7f)
			return;
	}
}

/* The beginning of a field that has a length. */
static void wire_put_length(struct buffer *out, unsigned number, uint64_t length)
{
	wire_put(out, number << 3 | WIRE_LENGTH);
	wire_put(out, length);
}

static uint64_t wire_length_size(uint64_t length)
{
	return 1 + wire_size(length) + length;
}

/* An entry of the map up to its list's value: `length` bytes in a list of that number. */
static void wire_put_feature(struct buffer *out, const char *name, unsigned list, uint64_t length)
{
	const uint64_t values = wire_length_size(length);
	const uint64_t feature = wire_length_size(values);
	wire_put_length(out, 1, wire_length_size(strlen(name)) + wire_length_size(feature));
	wire_put_length(out, 1, strlen(name));
	buffer_text(out, name);
	wire_put_length(out, 2, feature);
	wire_put_length(out, list, values);
	wire_put_length(out, 1, length);
}

static void record_put_number(struct buffer *out, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++, value >>= 8) {
		const uint8_t byte = (uint8_t)value;
		buffer_add(out, &byte, 1);
	}
}

static void container_tfrecord_wrap(
	const struct container_entry *entry, struct buffer *before, struct buffer *behind)
{
	struct buffer label = {0}, head = {0};
	wire_put_feature(&label, "image/class/label", 3, wire_size(entry->label));
	wire_put(&label, entry->label);
	wire_put_feature(&head, "image/encoded", 1, entry->size);
	const uint64_t features = head.size + entry->size + label.size;
	const uint64_t length = wire_length_size(features);
	const size_t start = before->size;
	record_put_number(before, length, 8);
	if (before->failed || head.failed || label.failed) {
		before->failed = true;
	} else {
		record_put_number(before, crc32c_mask(crc32c_add(0, before->data + start, 8)), 4);
		const size_t message = before->size;
		wire_put_length(before, 1, features);
		buffer_add(before, head.data, head.size);
		uint32_t crc = before->failed ? 0
					      : crc32c_add(0, before->data + message,
							before->size - message);
		crc = crc32c_add(crc, entry->bytes, entry->size);
		crc = crc32c_add(crc, label.data, label.size);
		buffer_add(behind, label.data, label.size);
		record_put_number(behind, crc32c_mask(crc), 4);
	}
	buffer_release(&label);
	buffer_release(&head);
}

const struct container_ops container_tfrecord = {
	.name = "tfrecord",
	.summary =
		"TFRecord files of examples with image/encoded and image/class/label; each record's CRC-32C is checked by the scan, and each sample's bytes whenever they are read",
	.endings = ".tfrecord, .tfrec or NAME-00000-of-00001",
	.extension = "tfrecord",
	.summed = true,
	.takes = container_tfrecord_takes,
	.split = container_tfrecord_split,
	.wrap = container_tfrecord_wrap,
};
