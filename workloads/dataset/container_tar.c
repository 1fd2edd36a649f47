/* Tar archives in WebDataset's layout: members whose names agree up to the first dot of the last part
 * are one sample, of which "KEY.jpg" is what a file of its own would be, and "KEY.cls" its class, a
 * number as text, below 0 where it has none.  Where no sample of a data set has one, the class is the
 * folder right above it; where some have, the others are left out.  Other members ("KEY.json") are passed
 * over, and so are those whose names begin with a dot ("._KEY.jpg" of macOS), as WebDataset does.  ustar
 * (POSIX.1-1988), GNU and pax (POSIX.1-2001) names are read; links, devices, sparse files and names that
 * lead out of a folder are counted with their reason.  Nothing is ever unpacked. */
#include "harness/base/files.h"
#include "workloads/dataset/container.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	TAR_BLOCK = 512,
	TAR_NAME_MAX = 1023,
	TAR_EXTENDED_MAX = 1 << 20, /* bytes of a pax header or a long name */
	TAR_LABEL_BYTES = 32,
	TAR_END_LOOKED_AT = 64 * 1024, /* bytes behind the end mark that have to be zeros */
	TAR_MODE = 0644,
};

/* Where fields lie in a header block (POSIX.1-1988, ustar). */
struct tar_field {
	size_t at, size;
};
static const struct tar_field TAR_NAME = {0, 100}, TAR_FILE_MODE = {100, 8}, TAR_OWNER = {108, 8},
			      TAR_GROUP = {116, 8}, TAR_SIZE = {124, 12}, TAR_TIME = {136, 12},
			      TAR_SUM = {148, 8}, TAR_MAGIC = {257, 6}, TAR_PREFIX = {345, 155};
enum { TAR_TYPE_AT = 156, TAR_VERSION_AT = 263, TAR_MORE_AT = 482, TAR_STILL_MORE_AT = 504 };

/* A sample whose members are still being met. */
struct tar_sample {
	char key[TAR_NAME_MAX + 1];  /* "" : none */
	char name[TAR_NAME_MAX + 1]; /* of the member that holds its bytes; "": none yet */
	struct container_part part;
	bool good; /* it is what the kind takes */
};

struct tar_reader {
	struct container_file *file;
	struct error *err;
	struct tar_sample sample;
	/* For the next member, by the headers before it. */
	char long_name[TAR_NAME_MAX + 1];
	bool has_name, too_long, has_size, sparse;
	uint64_t size;
	uint64_t folders, hidden;
};

/* ---- numbers and names --------------------------------------------------------------------- */

static bool tar_is_zero(const uint8_t *block, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (block[i])
			return false;
	return true;
}

/* Octal digits between spaces, or with the first bit set a number of base 256 (GNU). */
static bool tar_number(const uint8_t *header, struct tar_field field, uint64_t *out)
{
	const uint8_t *at = header + field.at;
	const uint8_t *const end = at + field.size;
	uint64_t value = 0;
	if (*at == 0x80) {
		for (at++; at < end; at++) {
			if (value >> 56)
				return false;
			value = value << 8 | *at;
		}
		*out = value;
		return true;
	}
	while (at < end && *at == ' ')
		at++;
	const uint8_t *const first = at;
	for (; at < end && *at >= '0' && *at <= '7'; at++) {
		if (value >> 60)
			return false;
		value = value << 3 | (uint64_t)(*at - '0');
	}
	*out = value;
	return at > first && (at == end || *at == ' ' || *at == '\0');
}

/* Some old writers summed signed bytes. */
static bool tar_sum_is_right(const uint8_t *header)
{
	uint64_t there;
	uint64_t sum = 0;
	int64_t signed_sum = 0;
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		const bool own = i >= TAR_SUM.at && i < TAR_SUM.at + TAR_SUM.size;
		const uint8_t byte = own ? ' ' : header[i];
		sum += byte;
		signed_sum += (int8_t)byte;
	}
	return tar_number(header, TAR_SUM, &there) &&
	       (there == sum || (int64_t)there == signed_sum);
}

static size_t tar_field_length(const uint8_t *header, struct tar_field field)
{
	return strnlen((const char *)header + field.at, field.size);
}

/* The name of a ustar header: prefix, slash, name. */
static void tar_plain_name(const uint8_t *header, char out[TAR_NAME_MAX + 1])
{
	const bool ustar = memcmp(header + TAR_MAGIC.at, "ustar", 6) == 0;
	const size_t before = ustar ? tar_field_length(header, TAR_PREFIX) : 0;
	(void)snprintf(out, TAR_NAME_MAX + 1, "%.*s%s%.*s", (int)before,
		(const char *)header + TAR_PREFIX.at, before ? "/" : "",
		(int)tar_field_length(header, TAR_NAME), (const char *)header + TAR_NAME.at);
}

/* NULL, or why a member of that name is left out. */
static const char *tar_refuse_name(const char *name)
{
	if (!*name)
		return "it has no name";
	if (*name == '/')
		return "its name is an absolute path";
	for (const char *at = name; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == '\0'))
			return "its name leads out of the folder ('..')";
	}
	return NULL;
}

/* ---- samples -------------------------------------------------------------------------------- */

/* The folder right above a member: its class. */
static const char *tar_folder(const char *name, size_t *size)
{
	const char *const last = strrchr(name, '/');
	const char *first = last;
	if (!last)
		return NULL;
	while (first > name && first[-1] != '/')
		first--;
	*size = (size_t)(last - first);
	return *size > 0 && !(*size == 1 && *first == '.') ? first : NULL;
}

/* What has been met of a sample is all there is. */
static int tar_end_sample(struct tar_reader *reader)
{
	struct tar_sample *const sample = &reader->sample;
	int code = 0;
	sample->part.class_name = tar_folder(sample->name, &sample->part.class_size);
	if (sample->good)
		code = container_add(reader->file, &sample->part, reader->err);
	else if (!sample->name[0] && sample->part.numbered)
		code = container_note_bad(reader->file, reader->err,
			"'%.100s' has a class and no sample beside it", sample->key);
	*sample = (struct tar_sample){0};
	return code;
}

static bool tar_is_blank(uint8_t byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* A class: a whole number between blanks, as int() of Python takes it. */
static int tar_take_label(
	struct tar_reader *reader, const char *name, uint64_t offset, uint64_t length)
{
	const uint8_t *text;
	const size_t size = length < TAR_LABEL_BYTES ? (size_t)length : TAR_LABEL_BYTES;
	int code = container_view(reader->file, offset, size, &text, reader->err);
	int64_t value = 0;
	size_t i = 0;
	if (code)
		return code;
	while (i < size && tar_is_blank(text[i]))
		i++;
	const bool negative = i < size && text[i] == '-';
	i += i < size && (text[i] == '-' || text[i] == '+');
	const size_t first = i;
	for (; i < size && text[i] >= '0' && text[i] <= '9' && value <= UINT32_MAX; i++)
		value = value * 10 + (text[i] - '0');
	const size_t digits = i - first;
	while (i < size && tar_is_blank(text[i]))
		i++;
	if (digits == 0 || i < length)
		return container_note_bad(
			reader->file, reader->err, "'%.100s' is no number of a class", name);
	reader->sample.part.numbered = true;
	reader->sample.part.label = negative ? -value : value;
	return 0;
}

static bool tar_takes_member(const struct container_file *file, const char *base)
{
	static const char *const beside[] = {"json", "txt", "cls", "id"};
	const char *const dot = strrchr(base, '.');
	for (size_t i = 0; dot && !file->kind->files && i < sizeof beside / sizeof *beside; i++)
		if (strcasecmp(dot + 1, beside[i]) == 0)
			return false;
	return sample_takes_name(file->kind, base);
}

/* A regular member with bytes. */
static int tar_take_member(
	struct tar_reader *reader, const char *name, uint64_t offset, uint64_t length)
{
	const char *const slash = strrchr(name, '/');
	const char *const base = slash ? slash + 1 : name;
	const char *const dot = strchr(base, '.');
	const size_t key = dot ? (size_t)(dot - name) : strlen(name);
	struct tar_sample *const sample = &reader->sample;
	int code = 0;
	if (*base == '.') {
		reader->hidden++;
		return 0;
	}
	if (strncmp(sample->key, name, key) != 0 || sample->key[key]) {
		code = tar_end_sample(reader);
		(void)snprintf(sample->key, sizeof sample->key, "%.*s", (int)key, name);
	}
	if (code)
		return code;
	if (dot && strcasecmp(dot, ".cls") == 0)
		return tar_take_label(reader, name, offset, length);
	if (!tar_takes_member(reader->file, base))
		return 0;
	if (sample->name[0])
		return container_note_bad(reader->file, reader->err,
			"'%.100s' is one more of the sample '%.60s'", name, sample->key);
	(void)snprintf(sample->name, sizeof sample->name, "%s", name);
	sample->part.offset = offset;
	sample->part.length = length;
	/* Now, and not when its class is known: a compressed archive only goes forward. */
	return container_look(
		reader->file, sample->name, &sample->part, &sample->good, reader->err);
}

/* ---- headers that are about the next member -------------------------------------------------- */

static void tar_keep_name(struct tar_reader *reader, const char *name, size_t size)
{
	reader->has_name = true;
	reader->too_long = size > TAR_NAME_MAX;
	(void)snprintf(reader->long_name, sizeof reader->long_name, "%.*s",
		(int)(reader->too_long ? TAR_NAME_MAX : size), name);
}

/* A record of a pax header, "key=value". */
static bool tar_take_record(struct tar_reader *reader, const char *text, size_t size)
{
	const char *const equals = memchr(text, '=', size);
	if (!equals)
		return false;
	const size_t key = (size_t)(equals - text);
	const char *const value = equals + 1;
	const size_t length = size - key - 1;
	if (key == 4 && memcmp(text, "path", key) == 0)
		tar_keep_name(reader, value, length);
	if (key >= 10 && memcmp(text, "GNU.sparse", 10) == 0)
		reader->sparse = true;
	if (key != 4 || memcmp(text, "size", key) != 0)
		return true;
	reader->size = 0;
	for (size_t i = 0; i < length; i++) {
		if (value[i] < '0' || value[i] > '9' || reader->size > UINT64_MAX / 16)
			return false;
		reader->size = reader->size * 10 + (uint64_t)(value[i] - '0');
	}
	reader->has_size = length > 0;
	return length > 0;
}

/* "LENGTH key=value\n" (POSIX.1-2001), the length of all of it. */
static bool tar_take_pax(struct tar_reader *reader, const char *text, size_t size)
{
	for (size_t at = 0; at < size;) {
		uint64_t length = 0;
		size_t digits = at;
		for (; digits < size && text[digits] >= '0' && text[digits] <= '9' &&
			length <= size;
			digits++)
			length = length * 10 + (uint64_t)(text[digits] - '0');
		if (digits == size || text[digits] != ' ' || length > size - at ||
			length < digits + 2 - at || text[at + length - 1] != '\n')
			return false;
		if (!tar_take_record(reader, text + digits + 1, (size_t)length - (digits + 2 - at)))
			return false;
		at += length;
	}
	return true;
}

/* A pax header, or a long name as GNU has it. */
static int tar_take_extended(
	struct tar_reader *reader, uint8_t type, uint64_t offset, uint64_t length)
{
	const uint8_t *bytes;
	if (length > TAR_EXTENDED_MAX)
		return error_set(reader->err, -EINVAL,
			"the header at byte %" PRIu64 " has an extension of %" PRIu64 " bytes",
			offset, length);
	const int code = container_view(reader->file, offset, (size_t)length, &bytes, reader->err);
	if (code || length == 0)
		return code;
	if (type == 'L')
		tar_keep_name(reader, (const char *)bytes, strnlen((const char *)bytes, length));
	else if (!tar_take_pax(reader, (const char *)bytes, (size_t)length))
		return error_set(reader->err, -EINVAL,
			"the pax header at byte %" PRIu64 " is damaged", offset);
	return 0;
}

/* ---- members -------------------------------------------------------------------------------- */

static const char *tar_refuse_type(uint8_t type)
{
	switch (type) {
	case '1':
	case '2':
		return "it is a link";
	case '3':
	case '4':
	case '6':
		return "it is a device or a pipe";
	case 'S':
		return "it is a sparse file";
	default:
		return "it is of a kind that is not known here";
	}
}

static bool tar_is_regular(uint8_t type)
{
	return type == '0' || type == '\0' || type == '7';
}

static int tar_take_entry(
	struct tar_reader *reader, const uint8_t *header, uint64_t offset, uint64_t length)
{
	char name[TAR_NAME_MAX + 1];
	const uint8_t type = header[TAR_TYPE_AT];
	const char *refused = NULL;
	tar_plain_name(header, name);
	if (reader->has_name)
		memcpy(name, reader->long_name, sizeof name);
	const char *at = name;
	while (at[0] == '.' && at[1] == '/')
		at += 2;
	if (type == '5') {
		reader->folders++;
		return 0;
	}
	if (!tar_is_regular(type))
		refused = tar_refuse_type(type);
	else if (reader->too_long)
		refused = "its name is too long";
	else if (reader->sparse)
		refused = tar_refuse_type('S');
	else
		refused = tar_refuse_name(at);
	if (refused)
		return container_note_bad(reader->file, reader->err, "'%.100s': %s", at, refused);
	return tar_take_member(reader, at, offset, length);
}

/* Of a sparse file as GNU has it: the blocks with more of its map, which its size does not count. */
static int tar_pass_map(struct tar_reader *reader, const uint8_t *header, uint64_t *at)
{
	const uint8_t *block = header;
	bool more = header[TAR_MORE_AT];
	int code = 0;
	while (more && !code) {
		code = container_view(reader->file, *at, TAR_BLOCK, &block, reader->err);
		more = !code && block[TAR_STILL_MORE_AT];
		*at += TAR_BLOCK;
	}
	return code;
}

/* Links, devices, folders and pipes have a size and no bytes; what is not known has both. */
static bool tar_holds_bytes(uint8_t type)
{
	return type < '1' || type > '6';
}

/* The header at `at`; *next: where the one behind it lies. */
static int tar_take_header(
	struct tar_reader *reader, const uint8_t *view, uint64_t at, uint64_t *next)
{
	uint8_t header[TAR_BLOCK]; /* the view does not last */
	const uint64_t bytes = reader->file->bytes;
	uint64_t length;
	memcpy(header, view, sizeof header);
	const uint8_t type = header[TAR_TYPE_AT];
	const bool own = type == 'x' || type == 'X' || type == 'L'; /* X: as Solaris wrote it */
	const bool extended = own || type == 'K' || type == 'g';
	if (!tar_sum_is_right(header))
		return error_set(reader->err, -EINVAL,
			"the header at byte %" PRIu64 " has a wrong checksum", at);
	if (!tar_number(header, TAR_SIZE, &length))
		return error_set(
			reader->err, -EINVAL, "the header at byte %" PRIu64 " has no size", at);
	if (!extended && reader->has_size)
		length = reader->size;
	const uint64_t held = tar_holds_bytes(type) ? length : 0;
	uint64_t begin = at + TAR_BLOCK;
	const int torn = type == 'S' ? tar_pass_map(reader, header, &begin) : 0;
	if (torn)
		return torn;
	if (held > bytes - begin)
		return error_set(reader->err, -ENODATA,
			"it is cut short: the member at byte %" PRIu64 " has %" PRIu64 " bytes", at,
			held);
	*next = begin + (held + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	if (own)
		return tar_take_extended(reader, type, begin, length);
	if (extended)
		return 0; /* defaults for all members, or the name of a link's target */
	const int code = tar_take_entry(reader, header, begin, length);
	reader->has_name = reader->too_long = reader->has_size = reader->sparse = false;
	return code;
}

/* The end mark is met at `at`: what is behind it is nothing. */
static int tar_take_end(struct tar_reader *reader, uint64_t at)
{
	const uint64_t left = reader->file->bytes - at;
	const size_t size = left < TAR_END_LOOKED_AT ? (size_t)left : TAR_END_LOOKED_AT;
	const uint8_t *rest;
	const int code = container_view(reader->file, at, size, &rest, reader->err);
	if (code || tar_is_zero(rest, size))
		return code;
	return container_note_bad(reader->file, reader->err,
		"there is more behind its end at byte %" PRIu64 ", as of several archives in one",
		at);
}

static int tar_take_all(struct tar_reader *reader)
{
	struct container_file *const file = reader->file;
	uint64_t at = 0;
	while (at < file->bytes) {
		const uint8_t *header;
		if (file->bytes - at < TAR_BLOCK)
			return error_set(reader->err, -ENODATA,
				"it is cut short within the header at byte %" PRIu64, at);
		int code = container_view(file, at, TAR_BLOCK, &header, reader->err);
		if (!code && tar_is_zero(header, TAR_BLOCK))
			return tar_take_end(reader, at);
		if (!code)
			code = tar_take_header(reader, header, at, &at);
		if (code)
			return code;
	}
	return container_note_bad(
		reader->file, reader->err, "it has no end mark: it may be cut short");
}

static bool container_tgz_takes(const char *name)
{
	return files_name_ends(name, ".tar.gz") || files_name_ends(name, ".tgz");
}

static int tar_split(struct container_file *file, struct error *err)
{
	struct error later = {""};
	struct tar_reader *const reader = calloc(1, sizeof *reader);
	if (!reader)
		return error_set(err, -ENOMEM, "no memory to read an archive");
	*reader = (struct tar_reader){.file = file, .err = err};
	const int code = tar_take_all(reader);
	reader->err = &later; /* the first failure is what is told */
	int ended = tar_end_sample(reader);
	if (!ended && reader->folders > 0)
		ended = container_note_bad(file, &later,
			"%" PRIu64 " folders in it, which hold nothing", reader->folders);
	if (!ended && reader->hidden > 0)
		ended = container_note_bad(file, &later,
			"%" PRIu64 " members whose names begin with a dot, as '._' of macOS",
			reader->hidden);
	free(reader);
	if (!code && ended)
		*err = later;
	return code ? code : ended;
}

static bool container_tar_takes(const char *name)
{
	return files_name_ends(name, ".tar");
}

/* ---- writing --------------------------------------------------------------------------------- */

static void tar_put_octal(uint8_t *header, struct tar_field field, uint64_t value)
{
	for (size_t i = field.size - 1; i-- > 0; value >>= 3)
		header[field.at + i] = (uint8_t)('0' + (value & 7));
}

/* Of a member with names that a ustar header holds, and sizes below 8 GiB: what is generated.  Owner
 * and time are 0, so that the same samples make the same bytes. */
static void tar_put_header(struct buffer *out, const char *key, const char *ending, size_t size)
{
	uint8_t header[TAR_BLOCK] = {0};
	uint64_t sum = 0;
	(void)snprintf((char *)header + TAR_NAME.at, TAR_NAME.size, "%s.%s", key, ending);
	tar_put_octal(header, TAR_FILE_MODE, TAR_MODE);
	tar_put_octal(header, TAR_OWNER, 0);
	tar_put_octal(header, TAR_GROUP, 0);
	tar_put_octal(header, TAR_SIZE, size);
	tar_put_octal(header, TAR_TIME, 0);
	header[TAR_TYPE_AT] = '0';
	memcpy(header + TAR_MAGIC.at, "ustar", 6);
	memcpy(header + TAR_VERSION_AT, "00", 2);
	memset(header + TAR_SUM.at, ' ', TAR_SUM.size);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += header[i];
	tar_put_octal(header, (struct tar_field){TAR_SUM.at, TAR_SUM.size - 1}, sum);
	header[TAR_SUM.at + TAR_SUM.size - 2] = '\0';
	buffer_add(out, header, sizeof header);
}

static void tar_put_padding(struct buffer *out, size_t size)
{
	static const uint8_t zeros[TAR_BLOCK];
	buffer_add(out, zeros, (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

static void container_tar_wrap(
	const struct container_entry *entry, struct buffer *before, struct buffer *behind)
{
	char label[16];
	const int size = snprintf(label, sizeof label, "%" PRIu32, entry->label);
	tar_put_header(before, entry->key, entry->extension, entry->size);
	tar_put_padding(behind, entry->size);
	tar_put_header(behind, entry->key, "cls", (size_t)size);
	buffer_add(behind, label, (size_t)size);
	tar_put_padding(behind, (size_t)size);
}

static void container_tar_finish(struct buffer *end)
{
	static const uint8_t zeros[2 * TAR_BLOCK];
	buffer_add(end, zeros, sizeof zeros);
}

const struct container_ops container_tgz = {
	.name = "tgz",
	.summary =
		"tar archives packed by gzip, inflated while they are read in order; gzip's CRC-32 is checked",
	.endings = ".tar.gz or .tgz",
	.extension = "tar.gz",
	.takes = container_tgz_takes,
	.inflates = true,
	.split = tar_split,
	.wrap = container_tar_wrap,
	.finish = container_tar_finish,
};

const struct container_ops container_tar = {
	.name = "tar",
	.summary =
		"tar archives in WebDataset's layout: KEY.jpg and its class in KEY.cls; headers' checksums are checked, the format has no others",
	.endings = ".tar",
	.extension = "tar",
	.takes = container_tar_takes,
	.packed = &container_tgz,
	.split = tar_split,
	.wrap = container_tar_wrap,
	.finish = container_tar_finish,
};
