#include "harness/fit/scrub.h"

#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/config/config.h"

#include <ctype.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { ESCAPE = 0x1b, BELL = 0x07, SECRET_LEAST = 20, NAME_LEAST = 3, QUOTED_MOST = 512 };

/* --- names of here ------------------------------------------------------------------------------ */

/* A word of the language says nothing of anybody: "root cause", "test data". */
static bool scrub_is_common(const char *name)
{
	static const char *const common[] = {"root", "user", "admin", "nobody", "ubuntu", "debian",
		"data", "test", "guest", "localhost", "local", "home", "train", "train", "work"};
	for (size_t i = 0; i < COUNT(common); i++)
		if (strcasecmp(common[i], name) == 0)
			return true;
	return strlen(name) < NAME_LEAST;
}

static void scrub_add_name(struct scrub_names *out, enum scrub_kind kind, const char *name)
{
	if (!name || scrub_is_common(name) || out->count == SCRUB_NAMES_MAX ||
		strlen(name) >= SCRUB_NAME_BYTES)
		return;
	(void)snprintf(out->of[out->count].text, SCRUB_NAME_BYTES, "%s", name);
	out->of[out->count++].kind = kind;
}

static void scrub_add_words(struct scrub_names *out, const char *text)
{
	char word[SCRUB_NAME_BYTES];
	while (*text && *text != ',') {
		const size_t length = strcspn(text, " ,");
		(void)snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), text);
		scrub_add_name(out, SCRUB_USER, word);
		text += length + (text[length] == ' ');
	}
}

static void scrub_add_host(struct scrub_names *out, const char *name)
{
	char first[SCRUB_NAME_BYTES];
	if (!name)
		return;
	(void)snprintf(first, sizeof first, "%.63s", name);
	scrub_add_name(out, SCRUB_HOST, first);
	first[strcspn(first, ".")] = '\0';
	scrub_add_name(out, SCRUB_HOST, first);
}

void scrub_names_here(struct scrub_names *out)
{
	char room[4096];
	char host[256] = "";
	struct passwd entry;
	struct passwd *found = NULL;
	*out = (struct scrub_names){0};
	scrub_add_name(out, SCRUB_USER, getenv("USER"));
	scrub_add_name(out, SCRUB_USER, getenv("LOGNAME"));
	if (getpwuid_r(getuid(), &entry, room, sizeof room, &found) == 0 && found) {
		scrub_add_name(out, SCRUB_USER, found->pw_name);
		scrub_add_words(out, found->pw_gecos);
	}
	if (gethostname(host, sizeof host - 1) == 0)
		scrub_add_host(out, host);
	scrub_add_host(out, getenv("SLURMD_NODENAME"));
	scrub_add_host(out, getenv("NODE_NAME"));
}

/* --- plain text --------------------------------------------------------------------------------- */

static uint32_t scrub_code_point(const char *at, size_t bytes)
{
	static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code = (unsigned char)at[0] & first[bytes];
	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | ((unsigned char)at[i] & 0x3f);
	return code;
}

/* Marks of direction, joiners, blanks of no width: they show one text and are another. */
static bool scrub_is_invisible(uint32_t code)
{
	return code == 0xad || code == 0x61c || code == 0x180e ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
	       (code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xfff9 && code <= 0xfffb) ||
	       (code >= 0xe0000 && code <= 0xe0fff);
}

/* The ASCII character that it looks like; 0: none. */
static char scrub_ascii_of(uint32_t code)
{
	if (code >= 0xff01 && code <= 0xff5e)
		return (char)(code - 0xfee0);
	if (code == 0x2044 || code == 0x2215 || code == 0x29f8)
		return '/';
	if (code == 0x2024 || code == 0x3002)
		return '.';
	return code == 0xa0 || code == 0x3000 || (code >= 0x2000 && code <= 0x200a) ? ' ' : 0;
}

/* Behind a terminal's escape sequence that begins at `at`. */
static const char *scrub_skip_escape(const char *at, const char *end)
{
	at++;
	if (at == end)
		return at;
	const char kind = *at++;
	if (kind == '[') {
		while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x40)
			at++;
		return at < end ? at + 1 : at;
	}
	if (kind == ']' || kind == 'P' || kind == '^' || kind == '_') {
		while (at < end && *at != BELL && *at != ESCAPE && *at != '\n')
			at++;
		return at < end && *at == BELL ? at + 1 : at;
	}
	return at;
}

/* text: NUL-terminated behind end. */
static void scrub_make_plain(const char *text, const char *end, struct buffer *out)
{
	for (const char *at = text; at < end;) {
		const size_t bytes = utf8_character(at);
		const uint32_t code = bytes ? scrub_code_point(at, bytes) : 0;
		if (*at == ESCAPE) {
			at = scrub_skip_escape(at, end);
			continue;
		}
		const char ascii = bytes > 1 ? scrub_ascii_of(code) : 0;
		if (*at == '\n')
			buffer_text(out, "\n");
		else if (bytes == 0 || utf8_is_control(at))
			buffer_text(out, " ");
		else if (ascii)
			buffer_add(out, &ascii, 1);
		else if (!scrub_is_invisible(code))
			buffer_add(out, at, bytes);
		at += bytes ? bytes : 1;
	}
}

/* --- words -------------------------------------------------------------------------------------- */

struct span {
	const char *at;
	size_t size;
};

static bool scrub_is(struct span word, const char *name)
{
	return strlen(name) == word.size && strncasecmp(word.at, name, word.size) == 0;
}

static bool scrub_is_any(struct span word, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (scrub_is(word, names[i]))
			return true;
	return false;
}

static bool scrub_has(struct span word, char c)
{
	return memchr(word.at, c, word.size) != NULL;
}

static size_t scrub_count_of(struct span word, const char *set)
{
	size_t count = 0;
	for (size_t i = 0; i < word.size; i++)
		count += strchr(set, word.at[i]) != NULL && word.at[i] != '\0';
	return count;
}

static bool scrub_only(struct span word, const char *set)
{
	return scrub_count_of(word, set) == word.size;
}

static size_t scrub_letters(struct span word)
{
	size_t count = 0;
	for (size_t i = 0; i < word.size; i++)
		count += isalpha((unsigned char)word.at[i]) || (unsigned char)word.at[i] >= 0x80;
	return count;
}

static struct span scrub_first(struct span word, char end)
{
	const char *stop = memchr(word.at, end, word.size);
	return (struct span){word.at, stop ? (size_t)(stop - word.at) : word.size};
}

static struct span scrub_last(struct span word, char begin)
{
	const char *start = memrchr(word.at, begin, word.size);
	return start ? (struct span){start + 1, (size_t)(word.at + word.size - start - 1)} : word;
}

#define DIGITS "0123456789"

/* "images/s", "I/O", "1/2", "26/11/2026" */
static bool scrub_slash_is_harmless(struct span word)
{
	static const char *const rights[] = {"s", "sec", "second", "ms", "min", "minute", "h",
		"hour", "step", "batch", "epoch", "worker", "gpu", "node", "rank", "sample",
		"image", "core", "file", "iteration", "it", "day"};
	static const char *const words[] = {"i/o", "and/or", "n/a", "w/o", "read/write", "on/off",
		"tcp/ip", "in/out", "yes/no", "true/false", "input/output", "cpu/gpu",
		"client/server", "w/", "before/after", "p50/p99", "read/latency", "decode/cpu"};
	if (scrub_only(word, DIGITS "/.,%") || scrub_is_any(word, words, COUNT(words)))
		return true;
	const struct span right = scrub_last(word, '/');
	return scrub_count_of(word, "/") == 1 && word.at[0] != '/' && word.at[0] != '~' &&
	       word.at[0] != '.' && scrub_is_any(right, rights, COUNT(rights));
}

static bool scrub_is_path(struct span word)
{
	if (scrub_has(word, '\\'))
		return true;
	if (word.at[0] == '~' && word.size > 1)
		return scrub_letters(word) > 0;
	return scrub_has(word, '/') && word.size > 1 && !scrub_slash_is_harmless(word);
}

/* "192.168.0.1", "fe80::1", "00:1b:44:11:3a:b7"; a port may follow the first. */
static bool scrub_is_ip(struct span word)
{
	const struct span host = scrub_first(word, ':');
	if (scrub_only(host, DIGITS ".") && scrub_count_of(host, ".") == 3)
		return true;
	if (scrub_count_of(word, ":") < 2 || !scrub_only(word, DIGITS "abcdefABCDEF:.%"))
		return false;
	/* The time of day. */
	return !(scrub_only(word, DIGITS ":.") && scrub_count_of(word, ":") == 2 &&
		 word.size <= 12 && !memmem(word.at, word.size, "::", 2));
}

/* "1.5GiB", "v1.13.1", "2.1+cu117", "3.5x" */
static bool scrub_is_number(struct span word)
{
	size_t at = word.size > 1 && (word.at[0] == 'v' || word.at[0] == 'V') ? 1 : 0;
	if (at < word.size && strchr("+-", word.at[at]))
		at++;
	const size_t begin = at;
	while (at < word.size && strchr(DIGITS "._,:", word.at[at]))
		at++;
	if (at == begin || !isdigit((unsigned char)word.at[begin]))
		return false;
	const struct span rest = {word.at + at, word.size - at};
	return rest.size == 0 || rest.at[0] == '+' ||
	       (rest.size <= 9 && scrub_only(rest, "abcdefghijklmnopqrstuvwxyz/"
						   "ABCDEFGHIJKLMNOPQRSTUVWXYZ%"));
}

static bool scrub_is_file_ending(struct span ending)
{
	static const char *const endings[] = {"py", "ipynb", "sh", "json", "jsonl", "yaml", "yml",
		"toml", "ini", "cfg", "conf", "txt", "log", "csv", "tsv", "parquet", "h5", "hdf5",
		"npy", "npz", "pt", "pth", "ckpt", "safetensors", "pkl", "onnx", "jpg", "jpeg",
		"png", "tif", "tiff", "webp", "bmp", "ppm", "gif", "tar", "tgz", "gz", "zip", "zst",
		"xz", "bz2", "tfrecord", "tfrecords", "rec", "lmdb", "db", "sqlite", "md", "pdf",
		"doc", "docx", "xls", "xlsx", "c", "cc", "cpp", "cu", "h", "hpp", "rs", "go", "js",
		"ts", "html", "so", "o", "a", "bin", "dat", "idx", "mp4", "wav", "flac", "mp3",
		"nii", "dcm", "out", "err", "service", "slurm", "sbatch", "bak", "tmp"};
	return scrub_is_any(ending, endings, COUNT(endings));
}

/* Names of code and keys of ours have dots, too. */
static bool scrub_is_code(struct span word)
{
	static const char *const heads[] = {"torch", "torchvision", "torchdata", "numpy", "np",
		"pil", "cv2", "tf", "tensorflow", "keras", "jax", "nvidia", "dali", "webdataset",
		"os", "sys", "io", "time", "multiprocessing", "python", "python3", "self", "cuda",
		"nn", "datasets", "transforms", "functional", "albumentations", "pandas", "pd",
		"dataloader"};
	char copy[SCRUB_NAME_BYTES];
	if (word.size < sizeof copy) {
		(void)snprintf(copy, sizeof copy, "%.*s", (int)word.size, word.at);
		if (config_find_key(copy) != KEY_COUNT)
			return true;
	}
	return scrub_is_any(scrub_first(word, '.'), heads, COUNT(heads));
}

/* "e.g", "U.S", "p.m" */
static bool scrub_is_abbreviation(struct span word)
{
	for (size_t i = 0; i < word.size; i++)
		if ((i % 2 == 1) != (word.at[i] == '.'))
			return false;
	return true;
}

/* "node17", "dgx-a03", "cluster-login-2", "gpu-node-17" */
static bool scrub_is_node(struct span word)
{
	static const char *const hosts[] = {"node", "host", "dgx", "hgx", "server", "srv", "login",
		"compute", "nid", "cn", "gn", "rack", "gpunode", "nas", "nfs-", "storage", "vm",
		"ip"};
	static const char *const others[] = {"resnet", "efficientnet", "vit", "vgg", "densenet",
		"mobilenet", "inception", "convnext", "bert", "gpt", "llama", "clip", "imagenet",
		"coco", "laion", "cifar", "mnist", "unet", "yolo", "epoch", "step", "batch",
		"worker", "rank", "gpu", "cpu", "utf", "sha", "pre", "post", "mid"};
	size_t stem = 0;
	while (stem < word.size && isalpha((unsigned char)word.at[stem]))
		stem++;
	if (stem == 0 || stem == word.size || scrub_count_of(word, DIGITS) == 0 ||
		!scrub_only(word, DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"))
		return false;
	const struct span head = {word.at, stem};
	for (size_t at = 0; at < word.size; at++) { /* each part of letters */
		size_t end = at;
		while (end < word.size && isalpha((unsigned char)word.at[end]))
			end++;
		if (scrub_is_any((struct span){&word.at[at], end - at}, hosts, COUNT(hosts)))
			return true;
		at = end;
	}
	return scrub_has(word, '-') && isdigit((unsigned char)word.at[word.size - 1]) &&
	       !scrub_is_any(head, others, COUNT(others));
}

static bool scrub_is_secret(struct span word)
{
	return word.size >= SECRET_LEAST && scrub_count_of(word, DIGITS) > 0 &&
	       scrub_letters(word) > 0 && !scrub_has(word, '.');
}

static bool scrub_is_dotted(struct span word)
{
	if (!scrub_has(word, '.') || word.at[0] == '.' || scrub_letters(word) == 0)
		return false;
	return !scrub_is_number(word) && !scrub_is_code(word) && !scrub_is_abbreviation(word);
}

static enum scrub_kind scrub_kind_of(struct span word, const struct scrub_names *names)
{
	const char *const mark = memchr(word.at, '@', word.size);
	if (memmem(word.at, word.size, "://", 3))
		return SCRUB_URL;
	if (mark && word.size > 1)
		return mark == word.at ? SCRUB_USER
		       : scrub_only((struct span){word.at, (size_t)(mark - word.at)}, DIGITS ".ums")
			       ? SCRUB_KINDS /* "106ms@64" */
			       : SCRUB_ADDRESS;
	const struct span bare = scrub_first(word, ':');
	for (size_t i = 0; i < names->count; i++)
		if (scrub_is(word, names->of[i].text) || scrub_is(bare, names->of[i].text))
			return names->of[i].kind;
	if (scrub_is_path(word))
		return SCRUB_PATH;
	if (scrub_is_ip(word) || scrub_is_node(bare))
		return SCRUB_HOST;
	if (scrub_is_dotted(bare))
		return scrub_is_file_ending(scrub_last(bare, '.')) ? SCRUB_FILE : SCRUB_HOST;
	return scrub_is_secret(word) ? SCRUB_SECRET : SCRUB_KINDS;
}

/* --- the whole ---------------------------------------------------------------------------------- */

static const char *const scrub_marks[SCRUB_KINDS] = {
	"<path>", "<file>", "<host>", "<user>", "<address>", "<url>", "<secret>"};

static bool scrub_in_word(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80 ||
	       (c != '\0' && strchr("-_./\\~@:+%#$&*?!^", c) != NULL);
}

static size_t scrub_word_length(const char *at)
{
	size_t length = 0;
	while (scrub_in_word(at[length]) ||
		(length > 0 && at[length] == ' ' && at[length - 1] == '\\')) /* an escaped blank */
		length++;
	return length;
}

/* A URL has signs that end other words. */
static size_t scrub_url_length(const char *at)
{
	return strcspn(at, " \t\n\"'<>");
}

/* Sentences end in what is no part of a word. */
static size_t scrub_trim(const char *at, size_t length)
{
	while (length > 0 && strchr(".:!?,;)", at[length - 1]))
		length--;
	return length;
}

/* "password=hunter2" */
static bool scrub_names_secret(struct span word)
{
	static const char *const names[] = {
		"password", "passwd", "pwd", "token", "secret", "apikey", "api_key", "access_key"};
	while (word.size > 0 && strchr("-$", word.at[0])) {
		word.at++;
		word.size--;
	}
	return scrub_is_any(word, names, COUNT(names));
}

static void scrub_put(enum scrub_kind kind, struct buffer *out, struct scrubbed *did)
{
	buffer_text(out, scrub_marks[kind]);
	did->replaced[kind]++;
}

/* A path with blanks in quotes: how long it is up to the closing one; 0: it is none. */
static size_t scrub_quoted_path(const char *text, const char *at)
{
	if (at == text || !strchr("\"'`", at[-1]))
		return 0;
	const char mark[] = {at[-1], '\n', '\0'};
	const size_t length = strcspn(at, mark);
	const struct span inside = {at, length};
	const bool closed = at[length] == mark[0] && length <= QUOTED_MOST;
	return closed && length > 1 && memchr(at, ' ', length) &&
			       (at[0] == '/' || at[0] == '~' || memchr(at, '\\', length)) &&
			       scrub_is_path(inside)
		       ? length
		       : 0;
}

/* One word from `at` on; returns how long it was. */
static size_t scrub_word(const char *text, const char *at, bool after_secret,
	const struct scrub_names *names, struct buffer *out, struct scrubbed *did)
{
	size_t length = scrub_quoted_path(text, at);
	if (length > 0) {
		scrub_put(SCRUB_PATH, out, did);
		return length;
	}
	length = scrub_word_length(at);
	if (memmem(at, length, "://", 3))
		length = scrub_url_length(at);
	length = scrub_trim(at, length);
	const struct span word = {at, length};
	const enum scrub_kind kind = length == 0    ? SCRUB_KINDS
				     : after_secret ? SCRUB_SECRET
						    : scrub_kind_of(word, names);
	if (kind == SCRUB_KINDS)
		buffer_add(out, at, length);
	else
		scrub_put(kind, out, did);
	return length;
}

static void scrub_plain(
	const char *text, const struct scrub_names *names, struct buffer *out, struct scrubbed *did)
{
	struct span before = {text, 0}; /* the last word */
	bool secret = false;            /* it is followed by its value */
	for (const char *at = text; *at;) {
		size_t length = 0;
		if (scrub_in_word(*at)) {
			length = scrub_word(text, at, secret, names, out, did);
			before = (struct span){at, length};
			secret = false;
		}
		at += length;
		if (length > 0 && *at == ':')
			secret = scrub_names_secret(before);
		if (!*at || (length > 0 && scrub_in_word(*at) && !strchr(".:!?", *at)))
			continue;
		if (*at == '=')
			secret = scrub_names_secret(before);
		else if (*at == '\n')
			secret = false;
		buffer_add(out, at++, 1);
	}
}

void scrub_text(const char *text, size_t size, const struct scrub_names *names, struct buffer *out,
	struct scrubbed *did)
{
	const size_t taken = size < SCRUB_INPUT_BYTES_MAX ? size : SCRUB_INPUT_BYTES_MAX;
	struct buffer plain = {0};
	*did = (struct scrubbed){.shortened = taken < size};
	char *copy = strndup(text, taken); /* ends at a NUL, and is terminated */
	if (copy)
		scrub_make_plain(copy, copy + strlen(copy), &plain);
	out->failed = out->failed || !copy || plain.failed;
	if (plain.data && !plain.failed)
		scrub_plain(plain.data, names, out, did);
	free(copy);
	buffer_release(&plain);
}

void scrub_words(const struct scrubbed *did, struct buffer *out)
{
	static const char *const words[SCRUB_KINDS] = {
		"path", "file name", "host name", "user name", "mail address", "URL", "secret"};
	static const char *const several[SCRUB_KINDS] = {"paths", "file names", "host names",
		"user names", "mail addresses", "URLs", "secrets"};
	const char *between = "";
	for (int kind = 0; kind < SCRUB_KINDS; kind++) {
		const size_t count = did->replaced[kind];
		if (count == 0)
			continue;
		buffer_format(
			out, "%s%zu %s", between, count, count == 1 ? words[kind] : several[kind]);
		between = ", ";
	}
	if (did->shortened)
		buffer_format(out, "%sshortened", between);
}
