/* The dictionary of an .npy header, read by its grammar alone, and the directory of a zip. */
#include "workloads/sample/npy.h"

#include "workloads/image/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- the dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ------------------ */

struct npy_text {
	const char *at, *end;
};

static void npy_skip_blanks(struct npy_text *text)
{
	while (text->at < text->end && (*text->at == ' ' || *text->at == '\t' || *text->at == '\n'))
		text->at++;
}

/* The next character that is none of the blanks, taken if it is this one. */
static bool npy_take(struct npy_text *text, char wanted)
{
	npy_skip_blanks(text);
	if (text->at >= text->end || *text->at != wanted)
		return false;
	text->at++;
	return true;
}

static bool npy_take_word(struct npy_text *text, const char *word)
{
	const size_t size = strlen(word);
	npy_skip_blanks(text);
	if ((size_t)(text->end - text->at) < size || memcmp(text->at, word, size) != 0)
		return false;
	text->at += size;
	return true;
}

/* A string in quotes of one kind, without escapes. */
static bool npy_take_string(struct npy_text *text, const char **out, size_t *size)
{
	npy_skip_blanks(text);
	const char quote = text->at < text->end ? *text->at : '\0';
	if (quote != '\'' && quote != '"')
		return false;
	*out = text->at + 1;
	const char *const end = memchr(*out, quote, (size_t)(text->end - *out));
	if (!end || memchr(*out, '\\', (size_t)(end - *out)))
		return false;
	*size = (size_t)(end - *out);
	text->at = end + 1;
	return true;
}

static bool npy_take_number(struct npy_text *text, uint64_t *out)
{
	static const uint64_t most = UINT64_MAX / 16;
	const char *const begin = text->at;
	*out = 0;
	npy_skip_blanks(text);
	const char *const first = text->at;
	for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
		if (*out > most)
			return false;
		*out = *out * 10 + (uint64_t)(*text->at - '0');
	}
	if (text->at == first) {
		text->at = begin;
		return false;
	}
	if (text->at < text->end && *text->at == 'L') /* as Python 2 wrote long numbers */
		text->at++;
	return true;
}

static int npy_read_descr(struct npy_text *text, struct npy_array *out, struct error *err)
{
	const char *descr;
	size_t size;
	npy_skip_blanks(text);
	if (text->at < text->end && *text->at == '[')
		return error_set(err, -EINVAL, "npy: an array of structures, not of numbers");
	if (!npy_take_string(text, &descr, &size))
		return error_set(err, -EINVAL, "npy: 'descr' is no string");
	const char order = size == 3 ? descr[0] : '\0';
	const uint32_t bytes =
		size == 3 && descr[2] >= '1' && descr[2] <= '8' ? (uint32_t)(descr[2] - '0') : 0;
	const char kind = size == 3 ? descr[1] : '\0';
	const bool whole = kind == 'u' || kind == 'i';
	const bool known = (whole && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)) ||
			   (kind == 'f' && (bytes == 2 || bytes == 4 || bytes == 8)) ||
			   (kind == 'b' && bytes == 1);
	const bool ordered =
		order == '<' || order == '>' || order == '=' || (order == '|' && bytes == 1);
	if (!known || !ordered)
		return error_set(err, -EINVAL,
			"npy: elements of type '%.*s' are not read (b1, u1 to u8, i1 to i8, f2 to f8 are)",
			(int)(size < 24 ? size : 24), descr);
	out->kind = kind;
	out->size = bytes;
	out->big = order == '>' && bytes > 1;
	return 0;
}

static int npy_read_order(struct npy_text *text, struct npy_array *out, struct error *err)
{
	out->fortran = npy_take_word(text, "True");
	if (out->fortran || npy_take_word(text, "False"))
		return 0;
	return error_set(err, -EINVAL, "npy: 'fortran_order' is neither True nor False");
}

static int npy_read_shape(struct npy_text *text, struct npy_array *out, struct error *err)
{
	uint64_t elements = 1;
	bool more = true;
	if (!npy_take(text, '('))
		return error_set(err, -EINVAL, "npy: 'shape' is no tuple of numbers");
	out->dimensions = 0;
	while (!npy_take(text, ')')) {
		uint64_t length;
		if (!more || !npy_take_number(text, &length))
			return error_set(err, -EINVAL, "npy: 'shape' is no tuple of numbers");
		if (out->dimensions == NPY_DIMENSIONS_MAX)
			return error_set(
				err, -EINVAL, "npy: more than %d dimensions", NPY_DIMENSIONS_MAX);
		if (length == 0)
			return error_set(err, -EINVAL, "npy: an empty array");
		if (length > NPY_BYTES_MAX / elements)
			return error_set(err, -EINVAL, "npy: a shape of more than %" PRIu64 " GiB",
				NPY_BYTES_MAX >> 30);
		elements *= length;
		out->shape[out->dimensions++] = length;
		more = npy_take(text, ',');
	}
	out->bytes = elements; /* times their size, when that is known */
	return 0;
}

static int npy_read_dictionary(struct npy_text *text, struct npy_array *out, struct error *err)
{
	static const struct {
		const char *name;
		int (*read)(struct npy_text *text, struct npy_array *out, struct error *err);
	} keys[] = {{"descr", npy_read_descr}, {"fortran_order", npy_read_order},
		{"shape", npy_read_shape}};
	enum { KEYS = sizeof keys / sizeof *keys };
	bool seen[KEYS] = {false};
	bool more = true;
	if (!npy_take(text, '{'))
		return error_set(err, -EINVAL, "npy: its header is no dictionary");
	while (!npy_take(text, '}')) {
		const char *name;
		size_t size;
		size_t i = 0;
		if (!more || !npy_take_string(text, &name, &size) || !npy_take(text, ':'))
			return error_set(err, -EINVAL, "npy: its header is no dictionary");
		while (i < KEYS &&
			(strlen(keys[i].name) != size || memcmp(keys[i].name, name, size) != 0))
			i++;
		if (i == KEYS || seen[i])
			return error_set(err, -EINVAL, "npy: its header has the key '%.*s'%s",
				(int)(size < 24 ? size : 24), name, i < KEYS ? " twice" : "");
		seen[i] = true;
		const int code = keys[i].read(text, out, err);
		if (code)
			return code;
		more = npy_take(text, ',');
	}
	npy_skip_blanks(text);
	for (size_t i = 0; i < KEYS; i++)
		if (!seen[i])
			return error_set(err, -EINVAL, "npy: its header has no '%s'", keys[i].name);
	return text->at == text->end ? 0
				     : error_set(err, -EINVAL,
					       "npy: there is more behind its header's dictionary");
}

int npy_read_header(const void *bytes, size_t size, struct npy_array *out, struct error *err)
{
	static const char magic[6] = "\x93NUMPY";
	enum { VERSION_AT = sizeof magic, LENGTH_AT = VERSION_AT + 2 };
	const uint8_t *const at = bytes;
	*out = (struct npy_array){0};
	if (memcmp(at, magic, size < sizeof magic ? size : sizeof magic) != 0)
		return error_set(err, -EINVAL, "no npy file: it does not begin with \\x93NUMPY");
	if (size < NPY_HEAD_BYTES)
		return -EAGAIN;
	const uint8_t version = at[VERSION_AT];
	if (version < 1 || version > 3)
		return error_set(err, -EINVAL, "npy: version %u is not known", version);
	const size_t begin = version == 1 ? LENGTH_AT + 2 : LENGTH_AT + 4;
	const size_t length =
		version == 1 ? bytes_le16(at + LENGTH_AT) : bytes_le32(at + LENGTH_AT);
	if (length > NPY_HEADER_MAX)
		return error_set(err, -EINVAL, "npy: a header of %zu bytes, and %d are allowed",
			length, NPY_HEADER_MAX);
	if (size - begin < length)
		return -EAGAIN;
	struct npy_text text = {(const char *)at + begin, (const char *)at + begin + length};
	const int code = npy_read_dictionary(&text, out, err);
	if (code)
		return code;
	if (out->bytes > NPY_BYTES_MAX / out->size)
		return error_set(err, -EINVAL, "npy: an array of more than %" PRIu64 " GiB",
			NPY_BYTES_MAX >> 30);
	out->bytes *= out->size;
	out->header_bytes = begin + length;
	return 0;
}

int npy_check_bytes(const struct npy_array *array, uint64_t bytes, struct error *err)
{
	const uint64_t wanted = array->header_bytes + array->bytes;
	return bytes == wanted ? 0
			       : error_set(err, -EINVAL,
					 "npy: its header stands for %" PRIu64
					 " bytes, and there are %" PRIu64,
					 wanted, bytes);
}

/* ---- zip ------------------------------------------------------------------------------------ */

enum {
	ZIP_END_BYTES = 22, /* end of central directory, without its comment */
	ZIP_COMMENT_MAX = 65535,
	ZIP_LOCATOR_BYTES = 20, /* where the zip64 end is */
	ZIP_END64_BYTES = 56,
	ZIP_ENTRY_BYTES = 46,
	ZIP_LOCAL_BYTES = 30,
	ZIP_ENTRIES_MOST = 4096, /* looked at */
	ZIP_ENCRYPTED = 1,
	ZIP_EXTRA_64 = 1,
};
#define ZIP_LOCAL 0x04034b50U
#define ZIP_ENTRY 0x02014b50U
#define ZIP_END 0x06054b50U
#define ZIP_END64 0x06064b50U
#define ZIP_LOCATOR 0x07064b50U
#define ZIP_IN_EXTRA 0xffffffffU

static uint64_t zip_le64(const uint8_t *at)
{
	return bytes_le32(at) | (uint64_t)bytes_le32(at + 4) << 32;
}

bool npy_is_zip(const void *bytes, size_t size)
{
	return size >= 4 && bytes_le32(bytes) == ZIP_LOCAL;
}

static int zip_refuse(const char *why, struct error *err)
{
	return error_set(err, -EINVAL, "npz: %s", why);
}

/* The end of the directory: the last place that looks like one. */
static const uint8_t *zip_find_end(const uint8_t *file, size_t size)
{
	const size_t least =
		size > ZIP_END_BYTES + ZIP_COMMENT_MAX ? size - ZIP_END_BYTES - ZIP_COMMENT_MAX : 0;
	for (size_t at = size < ZIP_END_BYTES ? 0 : size - ZIP_END_BYTES + 1; at-- > least;)
		if (bytes_le32(file + at) == ZIP_END &&
			at + ZIP_END_BYTES + bytes_le16(file + at + 20) == size)
			return file + at;
	return NULL;
}

static int zip_find_directory(struct npz_directory *zip, struct error *err)
{
	const uint8_t *const end = zip_find_end(zip->file, zip->size);
	if (!end)
		return zip_refuse("it has no zip directory: cut short, or no zip", err);
	if (bytes_le16(end + 4) != 0 && bytes_le16(end + 4) != 0xffff)
		return zip_refuse("a zip of several disks", err);
	zip->entries = bytes_le16(end + 10);
	zip->bytes = bytes_le32(end + 12);
	zip->offset = bytes_le32(end + 16);
	const uint64_t end_at = (uint64_t)(end - zip->file);
	if (end_at >= ZIP_LOCATOR_BYTES && bytes_le32(end - ZIP_LOCATOR_BYTES) == ZIP_LOCATOR) {
		const uint64_t at = zip_le64(end - ZIP_LOCATOR_BYTES + 8);
		if (at > end_at - ZIP_LOCATOR_BYTES ||
			end_at - ZIP_LOCATOR_BYTES - at < ZIP_END64_BYTES ||
			bytes_le32(zip->file + at) != ZIP_END64)
			return zip_refuse("its zip64 directory is not where it says", err);
		zip->entries = zip_le64(zip->file + at + 32);
		zip->bytes = zip_le64(zip->file + at + 40);
		zip->offset = zip_le64(zip->file + at + 48);
	}
	if (zip->offset > end_at || zip->bytes > end_at - zip->offset)
		return zip_refuse("its zip directory is not within the file", err);
	return 0;
}

/* Sizes and place of an entry of 2^32 bytes or more stand in an extra field, those alone that do not fit. */
static int zip_take_extra(
	const uint8_t *extra, size_t size, uint64_t *const values[3], struct error *err)
{
	size_t at = 0;
	while (size - at >= 4) {
		const size_t length = bytes_le16(extra + at + 2);
		const uint8_t *field = extra + at + 4;
		if (length > size - at - 4)
			break;
		at += 4 + length;
		if (bytes_le16(field - 4) != ZIP_EXTRA_64)
			continue;
		for (size_t i = 0, left = length; i < 3; i++) {
			if (*values[i] != ZIP_IN_EXTRA)
				continue;
			if (left < sizeof(uint64_t))
				return zip_refuse("an entry's zip64 sizes are cut short", err);
			*values[i] = zip_le64(field);
			field += sizeof(uint64_t);
			left -= sizeof(uint64_t);
		}
	}
	return 0;
}

/* Where the bytes of an entry begin, by the header in front of them. */
static int zip_place(const struct npz_directory *zip, uint64_t local, uint64_t stored,
	struct npz_entry *out, struct error *err)
{
	if (local > zip->offset || zip->offset - local < ZIP_LOCAL_BYTES ||
		bytes_le32(zip->file + local) != ZIP_LOCAL)
		return zip_refuse("its directory and its entries disagree", err);
	const uint8_t *const header = zip->file + local;
	const uint64_t begin =
		local + ZIP_LOCAL_BYTES + bytes_le16(header + 26) + bytes_le16(header + 28);
	if (bytes_le16(header + 8) != out->method || begin > zip->offset ||
		stored > zip->offset - begin)
		return zip_refuse("its directory and its entries disagree", err);
	out->offset = (size_t)begin;
	out->stored = (size_t)stored;
	return 0;
}

static int zip_take_entry(const struct npz_directory *zip, const uint8_t *entry, size_t extra_size,
	struct npz_entry *out, struct error *err)
{
	uint64_t bytes = bytes_le32(entry + 24);
	uint64_t stored = bytes_le32(entry + 20);
	uint64_t local = bytes_le32(entry + 42);
	const uint8_t *const extra = entry + ZIP_ENTRY_BYTES + out->name_size;
	int code = zip_take_extra(
		extra, extra_size, (uint64_t *const[]){&bytes, &stored, &local}, err);
	if (code)
		return code;
	out->method = bytes_le16(entry + 10);
	out->bytes = bytes;
	out->crc = bytes_le32(entry + 16);
	if (bytes_le16(entry + 8) & ZIP_ENCRYPTED)
		return zip_refuse("its array is encrypted", err);
	if (out->method != NPZ_STORED && out->method != NPZ_DEFLATED)
		return error_set(err, -EINVAL,
			"npz: its array is packed by method %u; stored and deflated are read",
			out->method);
	code = zip_place(zip, local, stored, out, err);
	if (code)
		return code;
	const uint64_t most =
		stored > UINT64_MAX / NPZ_DEFLATE_MOST ? UINT64_MAX : stored * NPZ_DEFLATE_MOST;
	if (out->method == NPZ_STORED ? bytes != stored : bytes > most)
		return error_set(err, -EINVAL,
			"npz: its array claims %" PRIu64 " bytes, out of %" PRIu64, bytes, stored);
	return 0;
}

int npz_open(struct npz_directory *zip, const void *bytes, size_t size, struct error *err)
{
	*zip = (struct npz_directory){.file = bytes, .size = size};
	const int code = zip_find_directory(zip, err);
	zip->at = zip->offset;
	return code;
}

int npz_next_array(struct npz_directory *zip, struct npz_entry *out, struct error *err)
{
	static const char ending[] = ".npy";
	enum { ENDING = sizeof ending - 1 };
	const uint64_t end = zip->offset + zip->bytes;
	for (; zip->taken < zip->entries && zip->taken < ZIP_ENTRIES_MOST; zip->taken++) {
		const uint8_t *const entry = zip->file + zip->at;
		if (end - zip->at < ZIP_ENTRY_BYTES || bytes_le32(entry) != ZIP_ENTRY)
			return zip_refuse("its zip directory is damaged", err);
		const size_t name = bytes_le16(entry + 28);
		const size_t extra = bytes_le16(entry + 30);
		const uint64_t length = ZIP_ENTRY_BYTES + name + extra + bytes_le16(entry + 32);
		if (length > end - zip->at)
			return zip_refuse("its zip directory is damaged", err);
		zip->at += length;
		*out = (struct npz_entry){
			.name = (const char *)entry + ZIP_ENTRY_BYTES, .name_size = name};
		if (name <= ENDING || memcmp(out->name + name - ENDING, ending, ENDING) != 0)
			continue;
		const int code = zip_take_entry(zip, entry, extra, out, err);
		out->name_size -= ENDING;
		zip->taken++;
		return code ? code : 1;
	}
	return 0;
}
