#include "harness/fit/kineto.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/program.h"
#include "harness/base/units.h"
#include "harness/fit/json_mend.h"
#include "harness/fit/source.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Whether JSON begins there; *skip: how long the mark of byte order before it is. */
static bool kineto_is_json(const unsigned char *text, size_t size, size_t *skip)
{
	static const unsigned char mark[] = {0xef, 0xbb, 0xbf};
	size_t at = size >= sizeof mark && memcmp(text, mark, sizeof mark) == 0 ? sizeof mark : 0;

	*skip = at;
	while (at < size && text[at] && strchr(" \t\r\n", text[at]))
		at++;
	return at < size && (text[at] == '{' || text[at] == '[');
}

#if !defined(MLBENCH_WITH_yajl)

/* Whether the beginning of JSON has the keys of a trace: other JSON may be a log of steps. */
static bool kineto_seems_trace(const char *head)
{
	static const char *const keys[] = {"\"traceEvents\"", "\"schemaVersion\"", "\"ph\"",
		"\"deviceProperties\"", "\"distributedInfo\""};
	bool seems = false;

	for (size_t i = 0; i < COUNT(keys); i++)
		seems = seems || strstr(head, keys[i]);
	return seems;
}

/* What is no JSON is no trace; of what is, the beginning tells. */
int kineto_read(const char *path, kineto_take *take, void *context, struct kineto_file *file,
	struct error *err)
{
	unsigned char head[512] = "";
	size_t skip;
	(void)take;
	(void)context;
	*file = (struct kineto_file){.rank = -1, .world_size = -1};
	const int fd = files_open_stream(path, err);
	if (fd < 0)
		return fd;
	gzFile in = gzdopen(fd, "rb");
	const int n = in ? gzread(in, head, sizeof head - 1) : 0;
	if (in)
		(void)gzclose(in);
	else
		(void)close(fd);
	if (n <= 0 || !kineto_is_json(head, (size_t)n, &skip))
		return error_set(err, -ENOMSG, "'%s' is no trace: no JSON begins there", path);
	if (!kineto_seems_trace((const char *)head))
		return error_set(err, -ENOMSG, "'%s' is no trace: it has no list of events", path);
	return part_require(PART_TRACES, err);
}

#else
#include <yajl/yajl_parse.h>

enum {
	KINETO_PIECE_BYTES = 256 * 1024,
	KINETO_SLICE_BYTES = 16 * 1024, /* parsed at once; a break costs no more of them than one */
	KINETO_PROCESSES_MAX = 1024,    /* lower process ids of a device's events are its number */
	KINETO_BEGINNING_BYTES = 48,    /* how much of an event tells that it is one */
};

/* What the last key says of the value behind it. */
enum kineto_key {
	KEY_OTHER,
	/* of the head */
	KEY_EVENTS,
	KEY_DISTRIBUTED,
	KEY_DEVICES,
	KEY_SCHEMA,
	KEY_RANK,
	KEY_WORLD_SIZE,
	/* of an event */
	KEY_PH,
	KEY_CAT,
	KEY_NAME,
	KEY_TS,
	KEY_DUR,
	KEY_PID,
	KEY_TID,
	KEY_ARGS,
	/* of its args */
	KEY_DEVICE,
	KEY_BYTES,
	KEY_DIMS,
};

struct kineto_word {
	const char *word;
	int means;
};

static const struct kineto_word kineto_head_keys[] = {
	{"traceEvents", KEY_EVENTS},
	{"distributedInfo", KEY_DISTRIBUTED},
	{"deviceProperties", KEY_DEVICES},
	{"schema", KEY_SCHEMA},
};
static const struct kineto_word kineto_distributed_keys[] = {
	{"rank", KEY_RANK},
	{"world_size", KEY_WORLD_SIZE},
};
static const struct kineto_word kineto_event_keys[] = {
	{"ph", KEY_PH},
	{"cat", KEY_CAT},
	{"name", KEY_NAME},
	{"pid", KEY_PID},
	{"tid", KEY_TID},
	{"ts", KEY_TS},
	{"dur", KEY_DUR},
	{"args", KEY_ARGS},
};
static const struct kineto_word kineto_args_keys[] = {
	{"device", KEY_DEVICE},
	{"bytes", KEY_BYTES},
	{"Input Dims", KEY_DIMS},
	{"Input dims", KEY_DIMS},
};
/* Categories of torch 1.8 to 1.11 begin with a capital; "gpu_user_annotation" repeats those of threads, and is left out. */
static const struct kineto_word kineto_categories[] = {
	{"", KINETO_HOST},
	{"cpu_op", KINETO_HOST},
	{"user_annotation", KINETO_HOST},
	{"Operator", KINETO_HOST},
	{"kernel", KINETO_KERNEL},
	{"Kernel", KINETO_KERNEL},
	{"gpu_memcpy", KINETO_COPY},
	{"Memcpy", KINETO_COPY},
	{"gpu_memset", KINETO_SET},
	{"Memset", KINETO_SET},
};

struct kineto {
	kineto_take *take;
	void *context;
	struct kineto_file *file;
	struct error *err;
	yajl_handle parser;
	int code;              /* what take said */
	unsigned depth;        /* containers that are open */
	unsigned events_depth; /* that of the array of events; 0: not in it */
	bool has_events, complete;
	bool has_phases; /* events say what they are */
	enum kineto_key head, key, arg;
	bool in_args;
	uint64_t since_event;  /* bytes */
	struct json_mend text; /* where mending is */
	unsigned char mended[KINETO_SLICE_BYTES];
	/* the event that is being read */
	struct kineto_event event;
	char ph;
	bool has_begin, has_length;
	int64_t length_ns;
	uint64_t pid, tid;
	int64_t process; /* pid, where it is the number of a device; -1 */
	int input;       /* which of "Input Dims" */
	unsigned size;   /* which of its sizes comes next */
};

static int kineto_meaning(
	const struct kineto_word *words, size_t count, const unsigned char *text, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(words[i].word, (const char *)text, length) == 0 &&
			words[i].word[length] == '\0')
			return words[i].means;
	return 0;
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* NAN: none, or more than a number. */
static double kineto_real(const char *text, size_t length)
{
	char copy[64];
	char *end;

	if (length == 0 || length >= sizeof copy)
		return NAN;
	memcpy(copy, text, length);
	copy[length] = '\0';
	const double value = strtod(copy, &end);
	return end == copy + length && isfinite(value) ? value : (double)NAN;
}

#define KINETO_NS_MOST (INT64_C(1) << 61)

/* Microseconds with their fraction as whole nanoseconds: exact, which a double is not for those since 1970. */
static bool kineto_time(const char *text, size_t length, int64_t *ns)
{
	enum { DIGITS_MOST = 15, FRACTION_DIGITS = 3 };
	size_t at = length > 0 && text[0] == '-';
	const size_t first = at;
	int64_t value = 0;
	int fraction = 0;

	for (; at < length && text[at] >= '0' && text[at] <= '9' && at - first < DIGITS_MOST; at++)
		value = value * 10 + (text[at] - '0');
	if (at == first)
		return false;
	if (at < length && text[at] == '.')
		for (at++; at < length && text[at] >= '0' && text[at] <= '9'; at++)
			if (fraction < FRACTION_DIGITS) {
				value = value * 10 + (text[at] - '0');
				fraction++;
			}
	if (at < length) { /* an exponent, or too many digits */
		const double us = kineto_real(text, length);
		if (!(fabs(us) < (double)KINETO_NS_MOST / 1000))
			return false;
		*ns = (int64_t)(us * 1000);
		return true;
	}
	for (; fraction < FRACTION_DIGITS; fraction++)
		value *= 10;
	*ns = first ? -value : value;
	return value <= KINETO_NS_MOST;
}

static uint64_t kineto_mix(const void *text, size_t length)
{
	const unsigned char *bytes = text;
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* --- an event --------------------------------------------------------------------------------- */

static void kineto_begin_event(struct kineto *k)
{
	k->event = (struct kineto_event){.kind = KINETO_HOST, .device = -1, .bytes = NAN};
	k->key = KEY_OTHER;
	k->ph = 0;
	k->has_begin = k->has_length = k->in_args = false;
	k->pid = k->tid = 0;
	k->process = -1;
}

static int kineto_end_event(struct kineto *k)
{
	struct kineto_event *e = &k->event;

	k->file->events++;
	k->since_event = 0;
	if (k->ph != 'X' || e->kind == KINETO_OTHER)
		return 1;
	if (!k->has_begin || !k->has_length || k->length_ns < 0) {
		k->file->unusable++;
		return 1;
	}
	e->end_ns = e->begin_ns + k->length_ns;
	if (e->device < 0 && e->kind != KINETO_HOST) /* each device is a process, too */
		e->device = k->process >= 0 ? k->process : (int64_t)(k->pid >> 1);
	e->process = k->pid;
	e->thread = k->pid * UINT64_C(0x9e3779b97f4a7c15) + k->tid;
	k->code = k->take(k->context, e);
	return k->code == 0;
}

/* A value of the event itself, a number or text. */
static void kineto_event_value(struct kineto *k, const char *text, size_t length)
{
	double number;

	switch (k->key) {
	case KEY_TS:
		k->has_begin = kineto_time(text, length, &k->event.begin_ns);
		break;
	case KEY_DUR:
		k->has_length = kineto_time(text, length, &k->length_ns);
		break;
	case KEY_PID:
		k->pid = kineto_mix(text, length);
		number = kineto_real(text, length);
		if (number >= 0 && number < KINETO_PROCESSES_MAX)
			k->process = (int64_t)number;
		break;
	case KEY_TID:
		k->tid = kineto_mix(text, length);
		break;
	case KEY_PH:
		k->has_phases = true;
		k->ph = '\0';
		if (length == 1)
			k->ph = text[0];
		break;
	case KEY_CAT:
		k->event.kind = (enum kineto_kind)kineto_meaning(kineto_categories,
			COUNT(kineto_categories), (const unsigned char *)text, length);
		break;
	case KEY_NAME:
		if (length >= KINETO_NAME_BYTES)
			length = KINETO_NAME_BYTES - 1;
		memcpy(k->event.name, text, length);
		k->event.name[length] = '\0';
		break;
	default:
		break;
	}
}

static void kineto_args_value(struct kineto *k, const char *text, size_t length)
{
	const double value =
		k->arg == KEY_DEVICE || k->arg == KEY_BYTES ? kineto_real(text, length) : NAN;

	if (k->arg == KEY_BYTES && value >= 0)
		k->event.bytes = value;
	else if (k->arg == KEY_DEVICE && value >= 0 && value < 1 << 30)
		k->event.device = (int64_t)value;
}

static void kineto_size_value(struct kineto *k, const char *text, size_t length)
{
	if (k->input < 0 || k->input >= KINETO_DIMS_MAX || k->size > 1)
		return;
	if (k->size++ == 1) {
		k->event.whole[k->input] = true;
		return;
	}
	const double value = kineto_real(text, length);
	k->event.dims[k->input] = value >= 1 && value < 1 << 30 ? (int64_t)value : 0;
}

/* --- what yajl calls -------------------------------------------------------------------------- */

/* How far inside the array of events: 1 in an event, 2 in what it has, ...; 0: outside. */
static unsigned kineto_level(const struct kineto *k)
{
	return k->events_depth ? k->depth - k->events_depth : 0;
}

static void kineto_head_value(struct kineto *k, const char *text, size_t length)
{
	static const char ours[] = "mlbench.timeline/";

	if (k->depth == 2 && k->head == KEY_DISTRIBUTED) {
		const double value = kineto_real(text, length);
		int64_t *out = k->key == KEY_RANK         ? &k->file->rank
			       : k->key == KEY_WORLD_SIZE ? &k->file->world_size
							  : NULL;
		if (out && value >= 0 && value < 1 << 30)
			*out = (int64_t)value;
	}
	if (k->depth == 1 && k->head == KEY_SCHEMA && length > sizeof ours - 1 &&
		memcmp(text, ours, sizeof ours - 1) == 0)
		k->file->of_mlbench = true;
}

static int kineto_value(struct kineto *k, const char *text, size_t length)
{
	switch (kineto_level(k)) {
	case 0:
		if (!k->events_depth)
			kineto_head_value(k, text, length);
		break;
	case 1:
		kineto_event_value(k, text, length);
		break;
	case 2:
		if (k->in_args)
			kineto_args_value(k, text, length);
		break;
	case 4:
		if (k->in_args && k->arg == KEY_DIMS)
			kineto_size_value(k, text, length);
		break;
	default:
		break;
	}
	return 1;
}

static int kineto_on_number(void *context, const char *text, size_t length)
{
	return kineto_value(context, text, length);
}

static int kineto_on_string(void *context, const unsigned char *text, size_t length)
{
	return kineto_value(context, (const char *)text, length);
}

static int kineto_on_key(void *context, const unsigned char *text, size_t length)
{
	struct kineto *k = context;
	const unsigned level = kineto_level(k);

	if (level == 1)
		k->key = (enum kineto_key)kineto_meaning(
			kineto_event_keys, COUNT(kineto_event_keys), text, length);
	else if (level == 2 && k->in_args)
		k->arg = (enum kineto_key)kineto_meaning(
			kineto_args_keys, COUNT(kineto_args_keys), text, length);
	else if (!k->events_depth && k->depth == 1)
		k->head = (enum kineto_key)kineto_meaning(
			kineto_head_keys, COUNT(kineto_head_keys), text, length);
	else if (!k->events_depth && k->depth == 2)
		k->key = (enum kineto_key)kineto_meaning(
			kineto_distributed_keys, COUNT(kineto_distributed_keys), text, length);
	return 1;
}

static int kineto_on_map(void *context)
{
	struct kineto *k = context;

	if (++k->depth > KINETO_DEPTH_MAX)
		return 0;
	const unsigned level = kineto_level(k);
	if (level == 1)
		kineto_begin_event(k);
	if (level == 2 && k->key == KEY_ARGS) {
		k->in_args = true;
		k->arg = KEY_OTHER;
	}
	if (!k->events_depth && k->depth == 3 && k->head == KEY_DEVICES &&
		k->file->devices < KINETO_DEVICES_MAX)
		k->file->devices++;
	return 1;
}

static int kineto_on_map_end(void *context)
{
	struct kineto *k = context;
	const unsigned level = kineto_level(k);

	k->depth--;
	if (k->depth == 0)
		k->complete = true;
	if (level == 2)
		k->in_args = false;
	return level == 1 ? kineto_end_event(k) : 1;
}

static int kineto_on_array(void *context)
{
	struct kineto *k = context;

	if (++k->depth > KINETO_DEPTH_MAX)
		return 0;
	if (k->depth == 1 || (k->depth == 2 && k->head == KEY_EVENTS && !k->events_depth)) {
		k->events_depth = k->depth;
		k->has_events = k->has_events || k->depth == 2;
	}
	const unsigned level = kineto_level(k);
	if (level == 3)
		k->input = -1;
	if (level == 4) {
		k->input++;
		k->size = 0;
	}
	return 1;
}

static int kineto_on_array_end(void *context)
{
	struct kineto *k = context;

	if (k->depth == k->events_depth)
		k->events_depth = 0;
	k->depth--;
	if (k->depth == 0)
		k->complete = true;
	return 1;
}

/* --- the stream ------------------------------------------------------------------------------- */

static int kineto_open_parser(struct kineto *k)
{
	static const yajl_callbacks calls = {
		.yajl_number = kineto_on_number,
		.yajl_string = kineto_on_string,
		.yajl_map_key = kineto_on_key,
		.yajl_start_map = kineto_on_map,
		.yajl_end_map = kineto_on_map_end,
		.yajl_start_array = kineto_on_array,
		.yajl_end_array = kineto_on_array_end,
	};

	if (k->parser)
		yajl_free(k->parser);
	k->parser = yajl_alloc(&calls, NULL, k);
	if (!k->parser)
		return error_set_errno(k->err, ENOMEM, "cannot read a trace");
	(void)yajl_config(k->parser, yajl_dont_validate_strings, 1);
	k->depth = k->events_depth = 0;
	k->head = k->key = KEY_OTHER;
	k->in_args = false;
	k->since_event = 0;
	k->text = (struct json_mend){0};
	return 0;
}

/* Whether an event seems to begin here: a brace, blanks, and a key that events begin with. */
static bool kineto_is_beginning(const unsigned char *text, size_t size)
{
	static const char *const keys[] = {"\"ph\"", "\"name\"", "\"cat\""};
	size_t at = 1;

	while (at < size && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	for (size_t i = 0; i < COUNT(keys); i++)
		if (size - at >= strlen(keys[i]) &&
			memcmp(text + at, keys[i], strlen(keys[i])) == 0)
			return true;
	return false;
}

/* Looks for the next event.  Where there is none, *at is what has to be looked at again with what follows. */
static bool kineto_seek(const unsigned char *text, size_t *at, size_t size)
{
	for (;;) {
		const unsigned char *brace = memchr(text + *at, '{', size - *at);
		*at = brace ? (size_t)(brace - text) : size;
		if (size - *at < KINETO_BEGINNING_BYTES)
			return false;
		if (kineto_is_beginning(brace, KINETO_BEGINNING_BYTES))
			return true;
		++*at;
	}
}

/* Reading begins anew where the next event is; of an array, whatever was around it. */
static int kineto_begin_anew(struct kineto *k)
{
	const int code = kineto_open_parser(k);

	if (!code)
		(void)yajl_parse(k->parser, (const unsigned char *)"[", 1);
	return code;
}

struct kineto_piece {
	unsigned char *text; /* KINETO_PIECE_BYTES; owned */
	size_t kept, size;   /* what is looked at again, of all that is there */
	bool seeking;
};

/* Parses a piece; what is left of it for the next one is at its beginning. */
static int kineto_take_piece(struct kineto *k, struct kineto_piece *piece)
{
	size_t at = 0;

	while (at < piece->size && !k->complete && !k->file->cut) {
		if (piece->seeking) {
			if (!kineto_seek(piece->text, &at, piece->size))
				break;
			const int code = kineto_begin_anew(k);
			if (code)
				return code;
			piece->seeking = false;
		}
		const size_t rest = piece->size - at;
		const size_t size = rest < KINETO_SLICE_BYTES ? rest : KINETO_SLICE_BYTES;
		json_mend(&k->text, (const char *)piece->text + at, (char *)k->mended, size, rest);
		const yajl_status status = yajl_parse(k->parser, k->mended, size);
		if (k->code)
			return k->code;
		k->since_event += size;
		const bool stalled = k->since_event > KINETO_STALL_BYTES;
		if (k->complete) {
			at += yajl_get_bytes_consumed(k->parser);
			k->file->more = at < piece->size &&
					(memchr(piece->text + at, '{', piece->size - at) ||
						memchr(piece->text + at, '[', piece->size - at));
			break;
		}
		if (status == yajl_status_ok && !stalled) {
			at += size;
			continue;
		}
		const size_t consumed =
			status == yajl_status_ok ? size : yajl_get_bytes_consumed(k->parser);
		at += consumed > 0 ? consumed : 1;
		piece->seeking = true;
		k->file->cut = ++k->file->breaks >= KINETO_BREAKS_MAX;
	}
	piece->kept = at < piece->size ? piece->size - at : 0;
	memmove(piece->text, piece->text + (piece->size - piece->kept), piece->kept);
	return 0;
}

static void kineto_tell(const struct kineto *k, gzFile in, double size)
{
	const z_off_t at = gzoffset(in);
	char all[UNITS_BYTES];
	if (size > 0 && at >= 0)
		source_progress("reading the trace: %.0f %% of %s, %llu events",
			100 * fmin((double)at / size, 1), units_format_size(size, all),
			(unsigned long long)k->file->events);
}

/* size: of the file, as it lies there; 0: not known. */
static int kineto_read_stream(
	struct kineto *k, gzFile in, struct kineto_piece *piece, double size, const char *path)
{
	for (;;) {
		const size_t room = KINETO_PIECE_BYTES - piece->kept;
		const int n = gzread(in, piece->text + piece->kept, (unsigned)room);
		int status;
		(void)gzerror(in, &status);
		if (n < 0 && status == Z_ERRNO)
			return error_set_errno(k->err, errno, "cannot read '%s'", path);
		if (n <= 0)
			return 0; /* a torn stream of gzip ends here, too */
		const bool first = k->file->bytes == 0;
		size_t skip = 0;
		k->file->bytes += (uint64_t)n;
		piece->size = piece->kept + (size_t)n;
		if (first && !kineto_is_json(piece->text, piece->size, &skip))
			return error_set(
				k->err, -ENOMSG, "'%s' is no trace: no JSON begins there", path);
		if (skip > 0)
			memset(piece->text, ' ', skip);
		kineto_tell(k, in, size);
		int code = source_check_stop(k->err);
		if (!code)
			code = kineto_take_piece(k, piece);
		if (code || k->complete || k->file->cut)
			return code;
		k->file->cut = k->file->bytes >= KINETO_BYTES_MAX;
	}
}

static int kineto_read_file(struct kineto *k, int fd, const char *path)
{
	struct stat st;
	const double size = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (double)st.st_size : 0;
	gzFile in = gzdopen(fd, "rb");
	if (!in) {
		(void)close(fd);
		return error_set_errno(k->err, ENOMEM, "cannot read '%s'", path);
	}
	struct kineto_piece piece = {.text = malloc(KINETO_PIECE_BYTES)};
	int code = kineto_open_parser(k);
	if (!piece.text)
		code = error_set_errno(k->err, ENOMEM, "cannot read '%s'", path);
	(void)gzbuffer(in, KINETO_PIECE_BYTES);
	if (!code)
		code = kineto_read_stream(k, in, &piece, size, path);
	(void)gzclose(in);
	free(piece.text);
	if (k->parser)
		yajl_free(k->parser);
	return code;
}

int kineto_read(const char *path, kineto_take *take, void *context, struct kineto_file *file,
	struct error *err)
{
	struct kineto k = {.take = take, .context = context, .file = file, .err = err};

	*file = (struct kineto_file){.rank = -1, .world_size = -1};
	const int fd = files_open_stream(path, err);
	if (fd < 0)
		return fd;
	const int code = kineto_read_file(&k, fd, path);
	if (code)
		return code;
	file->torn = !k.complete && !file->cut;
	if (file->bytes == 0)
		return error_set(err, -ENOMSG, "'%s' is empty", path);
	if (!k.has_events && !k.has_phases)
		return error_set(err, -ENOMSG, "'%s' is no trace: it has no list of events%s", path,
			file->torn ? ", and its end is missing" : "");
	return 0;
}
#endif
