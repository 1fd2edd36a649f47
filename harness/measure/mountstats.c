/* What the kernel's NFS client counts of a mount, from the text of /proc/self/mountstats. */
#include "harness/measure/mountstats.h"

#include "harness/base/text.h"
#include "harness/measure/proc_text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a line ----------------------------------------------------------------------------------- */

/* A part of the text: of a line, or all lines of a mount. */
struct piece {
	const char *at, *end;
};

static void mountstats_miss(struct mountstats *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void mountstats_miss(struct mountstats *out, const char *format, ...)
{
	va_list args;
	*out = (struct mountstats){0};
	va_start(args, format);
	(void)vsnprintf(out->why, sizeof out->why, format, args);
	va_end(args);
	utf8_make_plain(out->why, '?');
}

/* A line without its end, which it must have: a torn one may end within a number. */
static bool piece_take_line(struct piece *lines, struct piece *line)
{
	const char *end = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
	if (!end)
		return false;
	*line = (struct piece){lines->at, end};
	lines->at = end + 1;
	while (line->at < line->end && (*line->at == ' ' || *line->at == '\t'))
		line->at++;
	return true;
}

static bool piece_take_word(struct piece *line, struct piece *word)
{
	while (line->at < line->end && isspace((unsigned char)*line->at))
		line->at++;
	word->at = line->at;
	while (line->at < line->end && !isspace((unsigned char)*line->at))
		line->at++;
	word->end = line->at;
	return word->end > word->at;
}

static bool piece_begins(const struct piece *piece, const char *text)
{
	const size_t length = strlen(text);
	return (size_t)(piece->end - piece->at) >= length && memcmp(piece->at, text, length) == 0;
}

static bool piece_is(const struct piece *piece, const char *text)
{
	return piece_begins(piece, text) && (size_t)(piece->end - piece->at) == strlen(text);
}

/* False: it has no room, or holds a byte 0. */
static bool piece_copy(const struct piece *piece, char *out, size_t room)
{
	const size_t length = (size_t)(piece->end - piece->at);
	if (length >= room || memchr(piece->at, '\0', length))
		return false;
	memcpy(out, piece->at, length);
	out[length] = '\0';
	return true;
}

/* Decimal digits alone, below 2^63: more would be a count that went below 0. */
static bool piece_number(const struct piece *piece, uint64_t *value)
{
	*value = 0;
	for (const char *at = piece->at; at < piece->end; at++) {
		if (!isdigit((unsigned char)*at) || *value > (INT64_MAX - 9) / 10)
			return false;
		*value = *value * 10 + (uint64_t)(*at - '0');
	}
	return piece->end > piece->at;
}

/* Of "rw,vers=4.2,rsize=1048576". */
static bool piece_option(const struct piece *options, const char *name, struct piece *value)
{
	const size_t length = strlen(name);
	struct piece option = *options;
	for (const char *at = options->at; at < options->end; at = option.end + 1) {
		const char *comma = memchr(at, ',', (size_t)(options->end - at));
		option = (struct piece){at, comma ? comma : options->end};
		if (piece_begins(&option, name) && at + length < option.end && at[length] == '=') {
			*value = (struct piece){at + length + 1, option.end};
			return true;
		}
	}
	return false;
}

/* --- the lines of a mount --------------------------------------------------------------------- */

/* "device SERVER:/EXPORT mounted on POINT with fstype TYPE statvers=1.1" */
struct mountstats_head {
	char server[MOUNT_TEXT_BYTES], point[MOUNT_TEXT_BYTES], type[NAME_BYTES];
	char version[NAME_BYTES]; /* "statvers=1.1"; "": it has none */
};

static bool mountstats_parse_head(const struct piece *line, struct mountstats_head *head)
{
	static const char *const between[] = {
		"device", NULL, "mounted", "on", NULL, "with", "fstype", NULL};
	char *const texts[] = {head->server, head->point, head->type};
	static const size_t rooms[] = {sizeof head->server, sizeof head->point, sizeof head->type};
	struct piece rest = *line;
	struct piece word;
	size_t text = 0;
	for (size_t i = 0; i < sizeof between / sizeof between[0]; i++) {
		if (!piece_take_word(&rest, &word))
			return false;
		if (between[i] ? !piece_is(&word, between[i])
			       : !piece_copy(&word, texts[text], rooms[text]))
			return false;
		text += !between[i];
	}
	head->version[0] = '\0';
	if (piece_take_word(&rest, &word) &&
		!piece_copy(&word, head->version, sizeof head->version))
		return false;
	text_unescape(head->server);
	text_unescape(head->point);
	return true;
}

static bool mountstats_is_head(const struct piece *line, const struct piece *lines)
{
	/* The lines of a mount are indented. */
	return (line->at == lines->at || line->at[-1] == '\n') &&
	       (piece_begins(line, "device ") || piece_begins(line, "no device "));
}

/* The lines behind a head, up to the next one. */
static struct piece mountstats_body(const struct piece *rest)
{
	struct piece lines = *rest;
	struct piece line;
	struct piece body = *rest; /* with a torn line, if one is the last */
	while (piece_take_line(&lines, &line))
		if (mountstats_is_head(&line, rest)) {
			body.end = line.at;
			break;
		}
	return body;
}

/* The last mount of that point; false: there is none. */
static bool mountstats_find(
	const char *text, const char *point, struct mountstats_head *head, struct piece *body)
{
	const struct piece all = {text, text + strlen(text)};
	struct piece lines = all;
	struct piece line;
	bool found = false;
	while (piece_take_line(&lines, &line)) {
		struct mountstats_head one;
		if (!mountstats_is_head(&line, &all) || !mountstats_parse_head(&line, &one) ||
			strcmp(one.point, point) != 0)
			continue;
		*head = one;
		*body = mountstats_body(&lines);
		found = true;
	}
	return found;
}

/* "READ: 12 12 0 1536 49152 3 10 14 0"; the ninth number came with statvers 1.1 and is of errors.
 * What was never called is left out. */
static bool mountstats_add_kind(const struct piece *line, struct mountstats *out)
{
	struct piece rest = *line;
	struct piece word;
	uint64_t numbers[MOUNTSTATS_COUNTS + 1] = {0};
	size_t count = 0;
	struct mountstats_kind kind = {0};
	if (!piece_take_word(&rest, &word) || word.end[-1] != ':')
		return false;
	word.end--;
	if (word.end == word.at || !piece_copy(&word, kind.name, sizeof kind.name))
		return false;
	for (; piece_take_word(&rest, &word); count++)
		if (count > MOUNTSTATS_COUNTS || !piece_number(&word, &numbers[count]))
			return false;
	if (count < MOUNTSTATS_COUNTS)
		return false;
	memcpy(kind.counts, numbers, sizeof kind.counts);
	for (size_t i = 0; i < out->kind_count; i++)
		if (strcmp(out->kinds[i].name, kind.name) == 0)
			return false;
	if (kind.counts[MOUNTSTATS_CALLS] == 0 && kind.counts[MOUNTSTATS_SENT] == 0)
		return true;
	if (out->kind_count == MOUNTSTATS_KINDS_MAX)
		return false;
	out->kinds[out->kind_count++] = kind;
	return true;
}

/* "p/v: 100003/4": of the program that NFS is, the version; 0: of another. */
static uint64_t mountstats_rpc_version(const struct piece *line)
{
	static const char program[] = "100003/";
	struct piece rest = *line;
	struct piece word;
	uint64_t version = 0;
	while (piece_take_word(&rest, &word))
		if (piece_is(&word, "p/v:") && piece_take_word(&rest, &word) &&
			piece_begins(&word, program)) {
			const struct piece number = {word.at + strlen(program), word.end};
			return piece_number(&number, &version) ? version : 0;
		}
	return 0;
}

/* What the lines say, as far as it was read. */
struct mountstats_seen {
	struct piece options;
	uint64_t rpc_version;
	bool age, calls;
	bool pnfs; /* files are read from data servers, whose calls are counted elsewhere */
};

/* False: it is not as expected. */
static bool mountstats_take(
	const struct piece *line, struct mountstats_seen *seen, struct mountstats *out)
{
	struct piece rest = *line;
	struct piece word;
	if (!piece_take_word(&rest, &word))
		return true; /* one ends each mount */
	if (seen->calls)
		return mountstats_add_kind(line, out);
	if (piece_is(&word, "opts:")) {
		(void)piece_take_word(&rest, &seen->options);
	} else if (piece_is(&word, "nfsv4:")) {
		/* "...,sessions,pnfs=not configured,..." */
		struct piece layout;
		seen->pnfs = piece_take_word(&rest, &word) &&
			     piece_option(&word, "pnfs", &layout) && !piece_is(&layout, "not");
	} else if (piece_is(&word, "age:")) {
		seen->age = piece_take_word(&rest, &word) && piece_number(&word, &out->age_s);
		return seen->age;
	} else if (piece_is(&word, "RPC")) {
		seen->rpc_version = mountstats_rpc_version(line);
		return seen->rpc_version > 0;
	} else if (piece_is(&word, "xprt:")) {
		out->connections++;
		return piece_take_word(&rest, &word);
	} else if (piece_is(&word, "per-op")) {
		seen->calls = true;
	}
	return true; /* others, events: and bytes: among them, do not count here */
}

/* From "vers=4.2" of the options, which must be of the version of the calls. */
static bool mountstats_name_protocol(const struct mountstats_seen *seen, struct mountstats *out)
{
	struct piece value;
	char version[8];
	if (!piece_option(&seen->options, "vers", &value))
		(void)snprintf(version, sizeof version, "%u", (unsigned)(seen->rpc_version % 10));
	else if (!piece_copy(&value, version, sizeof version))
		return false;
	(void)snprintf(out->protocol, sizeof out->protocol, "NFSv%s", version);
	return strtoul(version, NULL, 10) == seen->rpc_version;
}

static void mountstats_parse_body(struct piece body, struct mountstats *out)
{
	struct mountstats_seen seen = {.options = {"", ""}};
	struct piece value;
	struct piece line;
	while (piece_take_line(&body, &line))
		if (!mountstats_take(&line, &seen, out)) {
			mountstats_miss(out,
				MOUNTSTATS_PATH " has a line that cannot be read: '%.*s'",
				(int)(line.end - line.at > 48 ? 48 : line.end - line.at), line.at);
			return;
		}
	if (body.at < body.end || !seen.age || !seen.calls || seen.rpc_version == 0 ||
		out->connections == 0)
		mountstats_miss(out, MOUNTSTATS_PATH " has not all of the mount's counts");
	else if (seen.pnfs)
		mountstats_miss(out, "the mount uses pNFS: calls to data servers are not counted "
				     "with its own");
	else if (!mountstats_name_protocol(&seen, out))
		mountstats_miss(out, MOUNTSTATS_PATH " contradicts itself on the version of NFS");
	else if (piece_option(&seen.options, "rsize", &value) &&
		 !piece_number(&value, &out->request_bytes))
		mountstats_miss(out, MOUNTSTATS_PATH " has an rsize that is no number");
}

void mountstats_parse(const char *text, const char *point, struct mountstats *out)
{
	struct mountstats_head head;
	struct piece body;
	*out = (struct mountstats){0};
	if (!mountstats_find(text, point, &head, &body)) {
		mountstats_miss(out, MOUNTSTATS_PATH " has no mount at '%.64s'", point);
	} else if (strcmp(head.type, "nfs") != 0 && strcmp(head.type, "nfs4") != 0) {
		mountstats_miss(out, "%s is no NFS", head.type);
	} else if (strcmp(head.version, "statvers=1.0") != 0 &&
		   strcmp(head.version, "statvers=1.1") != 0) {
		mountstats_miss(out, MOUNTSTATS_PATH " has another format: '%s'", head.version);
	} else {
		const char *const path = strstr(head.server, ":/");
		(void)snprintf(out->server, sizeof out->server, "%.*s",
			(int)(path ? path - head.server : (long)strlen(head.server)), head.server);
		utf8_make_plain(out->server, '?');
		mountstats_parse_body(body, out);
	}
}

void mountstats_read(const char *path, const char *point, struct mountstats *out)
{
	char *text = proc_text(path);
	if (text)
		mountstats_parse(text, point, out);
	else
		mountstats_miss(out, "'%.64s' cannot be read", path);
	free(text);
}

/* --- between two looks ------------------------------------------------------------------------ */

enum { AGE_IS_WITHIN_S = 2, GETATTRS_TELL = 16 };
static const double NS_PER_MS_OF_MOUNT = 1e6;

/* NULL: it was not called until then. */
static const struct mountstats_kind *mountstats_kind_of(
	const struct mountstats *stats, const char *name)
{
	for (size_t i = 0; i < stats->kind_count; i++)
		if (strcmp(stats->kinds[i].name, name) == 0)
			return &stats->kinds[i];
	return NULL;
}

/* Why the two cannot be compared; NULL: they can. */
static const char *mountstats_break(
	const struct mountstats *from, const struct mountstats *to, double seconds)
{
	if (from->why[0] || to->why[0])
		return from->why[0] ? from->why : to->why;
	if (strcmp(from->protocol, to->protocol) != 0 || strcmp(from->server, to->server) != 0 ||
		from->request_bytes != to->request_bytes || to->age_s < from->age_s ||
		(double)(to->age_s - from->age_s) + AGE_IS_WITHIN_S < seconds)
		return "the file system was mounted anew during the run";
	for (size_t i = 0; i < from->kind_count; i++) {
		const struct mountstats_kind *const before = &from->kinds[i];
		const struct mountstats_kind *const after = mountstats_kind_of(to, before->name);
		for (size_t k = 0; k < MOUNTSTATS_COUNTS; k++)
			if (!after || after->counts[k] < before->counts[k])
				return "the kernel's counts of the mount went back during the run";
	}
	return NULL;
}

static double mountstats_grown(const struct mountstats_kind *before,
	const struct mountstats_kind *after, enum mountstats_count which)
{
	return (double)(after->counts[which] - (before ? before->counts[which] : 0));
}

static struct network_call mountstats_call(
	const struct mountstats_kind *before, const struct mountstats_kind *after)
{
	struct network_call call = {.calls = mountstats_grown(before, after, MOUNTSTATS_CALLS)};
	const double each = NS_PER_MS_OF_MOUNT / call.calls;
	memcpy(call.name, after->name, sizeof call.name);
	/* A call that is given up before it is sent counts as a call only. */
	call.retransmits = fmax(mountstats_grown(before, after, MOUNTSTATS_SENT) - call.calls, 0);
	call.queue_ns = mountstats_grown(before, after, MOUNTSTATS_QUEUE_MS) * each;
	call.round_trip_ns = mountstats_grown(before, after, MOUNTSTATS_ROUND_TRIP_MS) * each;
	call.execute_ns = mountstats_grown(before, after, MOUNTSTATS_EXECUTE_MS) * each;
	call.bytes_sent = mountstats_grown(before, after, MOUNTSTATS_BYTES_SENT);
	call.bytes_received = mountstats_grown(before, after, MOUNTSTATS_BYTES_RECEIVED);
	return call;
}

static int mountstats_compare_calls(const void *a, const void *b)
{
	const double left = ((const struct network_call *)a)->calls;
	const double right = ((const struct network_call *)b)->calls;
	return left < right ? 1 : left > right ? -1 : 0;
}

void mountstats_between(const struct mountstats *from, const struct mountstats *to, double seconds,
	struct network_measurement *out)
{
	const char *const broken = mountstats_break(from, to, seconds);
	const struct mountstats *const known = to->why[0] ? from : to;
	struct network_call calls[MOUNTSTATS_KINDS_MAX];
	size_t count = 0;
	network_measurement_init(out, broken ? broken : "");
	/* A mount that cannot be counted is a network file system all the same. */
	(void)snprintf(out->protocol, sizeof out->protocol, "%s",
		known->protocol[0] ? known->protocol : "NFS");
	(void)snprintf(out->client, sizeof out->client, "kernel");
	memcpy(out->server, known->server, sizeof out->server);
	out->connections = known->connections;
	out->request_bytes = known->request_bytes > 0 ? (double)known->request_bytes : NAN;
	if (broken)
		return;
	out->seconds = seconds;
	for (size_t i = 0; i < to->kind_count; i++) {
		const struct network_call call =
			mountstats_call(mountstats_kind_of(from, to->kinds[i].name), &to->kinds[i]);
		if (call.calls > 0)
			calls[count++] = call;
	}
	qsort(calls, count, sizeof calls[0], mountstats_compare_calls);
	for (size_t i = 0; i < count; i++) {
		network_add_call(out, &calls[i]);
		if (strcmp(calls[i].name, "GETATTR") == 0 && calls[i].calls >= GETATTRS_TELL)
			out->idle_round_trip_ns = calls[i].round_trip_ns;
	}
}
