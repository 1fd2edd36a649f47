/* A case: its life, filling it in, and writing it. */
#include "harness/fit/case.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/config/conditions.h"
#include "harness/config/value.h"
#include "harness/fit/amount.h"
#include "harness/fit/scrub.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- its life ----------------------------------------------------------------------------------- */

void case_open(struct case_file *out)
{
	*out = (struct case_file){.reported_cores = NAN, .reported_quota = NAN};
	config_init(&out->twin);
	findings_open(&out->observed);
	for (int id = 0; id < CASE_ENVIRONMENT_COUNT; id++)
		out->environment.of[id].number = NAN;
}

static void case_lines_release(struct case_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->of[i].text);
	free(lines->of);
	*lines = (struct case_lines){0};
}

void case_release(struct case_file *file)
{
	case_lines_release(&file->keys);
	case_lines_release(&file->assumed);
	case_lines_release(&file->reported);
	for (size_t i = 0; i < file->change_count; i++) {
		case_lines_release(&file->changes[i].keys);
		free(file->changes[i].text);
	}
	config_release(&file->twin);
	findings_close(&file->observed);
	for (int id = 0; id < FINDING_COUNT; id++)
		free(file->why[id]);
	free(file->complaint);
	free(file->scrubbed);
	free(file->source);
	free(file->check_why);
	free(file->compared);
	*file = (struct case_file){0};
}

/* --- filling it in ------------------------------------------------------------------------------ */

/* In the order of the keys; takes text over, also where it fails. */
static int case_put_line(struct case_lines *lines, enum key_id key, char *text, struct error *err)
{
	size_t at = 0;
	while (at < lines->count && lines->of[at].key < key)
		at++;
	if (at < lines->count && lines->of[at].key == key) {
		free(lines->of[at].text);
		lines->of[at].text = text;
		return 0;
	}
	struct case_line *grown = realloc(lines->of, (lines->count + 1) * sizeof *grown);
	if (!grown) {
		free(text);
		return error_set(err, -ENOMEM, "out of memory");
	}
	lines->of = grown;
	memmove(&grown[at + 1], &grown[at], (lines->count - at) * sizeof *grown);
	grown[at] = (struct case_line){key, text};
	lines->count++;
	return 0;
}

static int case_find_key(const char *dotted, enum key_id *key, struct error *err)
{
	*key = config_find_key(dotted);
	if (*key == KEY_COUNT)
		return keys_refuse_key(dotted, err);
	if (strcmp(config_keys[*key].section, "sweep") == 0)
		return error_set(
			err, -EINVAL, "'%s': a case is one setting and sweeps nothing", dotted);
	return 0;
}

/* What a file needs in front of a sign that would begin a comment there; NULL without memory. */
static char *case_escape(const char *text)
{
	struct buffer out = {0};
	buffer_text(&out, "");
	for (const char *at = text; *at; at++) {
		const bool opens = (*at == '#' || *at == ';') &&
				   (at == text || at[-1] == ' ' || at[-1] == '\t');
		if (opens)
			buffer_text(&out, "$");
		buffer_add(&out, at, 1);
	}
	if (out.failed)
		buffer_release(&out);
	return out.data;
}

static int case_put_key(
	struct case_lines *lines, const char *dotted, const char *text, struct error *err)
{
	enum key_id key;
	const int code = case_find_key(dotted, &key, err);
	char *escaped = code ? NULL : case_escape(text);
	if (code)
		return code;
	return escaped ? case_put_line(lines, key, escaped, err)
		       : error_set(err, -ENOMEM, "out of memory");
}

int case_keep_key(struct case_file *file, const char *dotted, const char *text, struct error *err)
{
	return case_put_key(&file->keys, dotted, text, err);
}

int case_set(struct case_file *file, const char *dotted, const char *text, struct error *err)
{
	struct assign_scope scope = {.foreign = true};
	enum key_id key;
	int code = case_find_key(dotted, &key, err);
	if (!code)
		code = assign(&file->twin, &scope, 0, dotted, text, err);
	return code ? code : case_keep_key(file, dotted, text, err);
}

int case_report_as(struct case_file *file, const char *dotted, const char *text, struct error *err)
{
	struct assign_scope scope = {.foreign = true};
	struct config scratch;
	enum key_id key;
	config_init(&scratch);
	int code = case_find_key(dotted, &key, err);
	if (!code && strcmp(config_keys[key].section, "inject") != 0)
		code = error_set(err, -EINVAL,
			"'%s' does not emulate a node: [reported] has cores, cpu_quota and keys of [inject]",
			dotted);
	if (!code)
		code = assign(&scratch, &scope, 0, dotted, text, err);
	config_release(&scratch);
	return code ? code : case_put_key(&file->reported, dotted, text, err);
}

int case_assume(struct case_file *file, const char *dotted, const char *why, struct error *err)
{
	enum key_id key;
	const int code = case_find_key(dotted, &key, err);
	if (code)
		return code;
	char *copy = strdup(why);
	return copy ? case_put_line(&file->assumed, key, copy, err)
		    : error_set(err, -ENOMEM, "out of memory");
}

/* One word of a change: "4.3x" in front of the others, or KEY=VALUE, which is cut up. */
static int case_change_word(
	struct case_change *change, struct config *changed, char *word, struct error *err)
{
	struct assign_scope scope = {.foreign = true};
	char *equals = strchr(word, '=');
	const size_t length = strlen(word);
	enum key_id key;
	if (!equals && length > 1 && word[length - 1] == 'x' && isnan(change->gained) &&
		change->keys.count == 0) {
		word[length - 1] = '\0';
		if (units_parse_real(word, &change->gained) || !(change->gained > 0))
			return error_set(
				err, -EINVAL, "'%.32sx' is no factor (example: 4.3x)", word);
		return 0;
	}
	if (!equals)
		return error_set(err, -EINVAL, "expected KEY=VALUE, not '%.60s'", word);
	*equals = '\0';
	const char *dotted = text_trim(word);
	const char *value = text_trim(equals + 1);
	int code = case_find_key(dotted, &key, err);
	if (!code && config_is_path(key))
		code = error_set(
			err, -EINVAL, "'%s' names a folder, which a case does not change", dotted);
	if (!code)
		code = assign(changed, &scope, 0, dotted, value, err);
	return code ? code : case_put_key(&change->keys, dotted, value, err);
}

static int case_change_words(
	const struct case_file *file, struct case_change *change, char *head, struct error *err)
{
	struct config changed;
	int code = config_copy(&changed, &file->twin, err);
	if (code)
		return code;
	for (size_t i = 0; change->helps && i < file->change_count && !code; i++)
		for (size_t j = 0;
			file->changes[i].helps && j < file->changes[i].keys.count && !code; j++) {
			const struct case_line *line = &file->changes[i].keys.of[j];
			code = config_set_key(&changed, line->key, line->text, err);
		}
	for (char *rest = head; rest && !code;) {
		char *word = strsep(&rest, ",");
		code = case_change_word(change, &changed, text_trim(word), err);
	}
	if (!code && change->keys.count == 0)
		code = error_set(
			err, -EINVAL, "it changes no key (example: decode.workers=8: TEXT)");
	if (!code)
		code = config_validate(&changed, err);
	config_release(&changed);
	return code;
}

int case_change(struct case_file *file, bool helps, const char *text, struct error *err)
{
	const char *colon = strchr(text, ':');
	if (file->change_count == CASE_CHANGES_MAX)
		return error_set(err, -EINVAL, "more than %d changes", CASE_CHANGES_MAX);
	if (!colon || !colon[1])
		return error_set(err, -EINVAL, "expected ': TEXT' behind the keys");
	struct case_change change = {.helps = helps, .gained = NAN};
	char *head = strndup(text, (size_t)(colon - text));
	change.text = strdup(colon + 1 + strspn(colon + 1, " "));
	int code = head && change.text ? case_change_words(file, &change, head, err)
				       : error_set(err, -ENOMEM, "out of memory");
	free(head);
	if (code) {
		case_lines_release(&change.keys);
		free(change.text);
		return code;
	}
	file->changes[file->change_count++] = change;
	return 0;
}

const char *case_check_name(enum case_check check)
{
	static const char *const names[CASE_CHECKS] = {"", "faithful", "unchecked", "unfaithful"};
	return names[check];
}

int case_say_check(
	struct case_file *file, enum case_check check, const char *why, struct error *err)
{
	char *copy = strdup(why);
	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	free(file->check_why);
	file->check_why = copy;
	file->check = check;
	return 0;
}

int case_compare(struct case_file *file, const char *line, struct error *err)
{
	char *lines = NULL;
	if (asprintf(&lines, "%s%s%s", file->compared ? file->compared : "",
		    file->compared ? "\n" : "", line) < 0)
		return error_set(err, -ENOMEM, "out of memory");
	free(file->compared);
	file->compared = lines;
	return 0;
}

const char *case_why_assumed(const struct case_file *file, enum key_id key)
{
	for (size_t i = 0; i < file->assumed.count; i++)
		if (file->assumed.of[i].key == key)
			return file->assumed.of[i].text;
	return NULL;
}

/* Bytes of the next line of text, at most `most`, which ends between words, or, of a longer word, between characters. */
static size_t case_line_length(const char *text, size_t most)
{
	size_t length = strcspn(text, "\n");
	if (length <= most)
		return length;
	for (size_t at = most; at > 0; at--)
		if (text[at] == ' ')
			return at;
	for (length = most; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;)
		length--;
	return length > 0 ? length : most;
}

/* Lines without blanks at their ends, of words with one blank between them. */
static void case_wrap(const char *text, struct buffer *out)
{
	enum { LINE_BYTES = 88 };
	struct buffer tidy = {0};
	bool blank = true;
	for (const char *at = text; *at; at++) {
		const bool is_blank = *at == ' ' || *at == '\t';
		if (!is_blank || !blank)
			buffer_add(&tidy, is_blank ? " " : at, 1);
		blank = is_blank || *at == '\n';
	}
	for (const char *at = tidy.data; at && *at;) {
		const size_t length = case_line_length(at, LINE_BYTES);
		size_t shown = length;
		while (shown > 0 && at[shown - 1] == ' ')
			shown--;
		if (shown > 0) {
			buffer_text(out, out->size ? "\n" : "");
			buffer_add(out, at, shown);
		}
		at += length;
		at += *at == '\n' || *at == ' ';
	}
	out->failed = out->failed || tidy.failed;
	buffer_release(&tidy);
}

/* Cuts between characters. */
static bool case_cut(struct buffer *text, size_t most)
{
	if (!text->data || text->size <= most)
		return false;
	size_t length = most;
	while (length > 0 && ((unsigned char)text->data[length] & 0xc0) == 0x80)
		length--;
	while (length > 0 && strchr(" \n", text->data[length - 1]))
		length--;
	text->data[length] = '\0';
	text->size = length;
	return true;
}

int case_complain(struct case_file *file, const char *text, size_t size, struct error *err)
{
	struct scrub_names names;
	struct scrubbed did;
	struct buffer scrubbed = {0};
	struct buffer lines = {0};
	struct buffer words = {0};
	scrub_names_here(&names);
	scrub_text(text, size, &names, &scrubbed, &did);
	case_wrap(scrubbed.data ? scrubbed.data : "", &lines);
	did.shortened = case_cut(&lines, CASE_COMPLAINT_BYTES_MAX) || did.shortened;
	scrub_words(&did, &words);
	const bool failed = scrubbed.failed || lines.failed || words.failed;
	buffer_release(&scrubbed);
	if (failed) {
		buffer_release(&lines);
		buffer_release(&words);
		return error_set(err, -ENOMEM, "out of memory");
	}
	free(file->complaint);
	free(file->scrubbed);
	file->complaint = lines.data;
	file->scrubbed = words.data;
	return 0;
}

/* --- the environment ---------------------------------------------------------------------------- */

enum case_environment_kind {
	ENVIRONMENT_TEXT,
	ENVIRONMENT_COUNT,
	ENVIRONMENT_BYTES,
};

static const struct {
	const char *name;
	enum case_environment_kind kind;
} case_environment_rows[CASE_ENVIRONMENT_COUNT] = {
#define ENVIRONMENT(id, name, kind, doc) [CASE_ENVIRONMENT_##id] = {name, ENVIRONMENT_##kind},
#include "harness/fit/case_environment.def"
#undef ENVIRONMENT
};

const char *case_environment_name(enum case_environment_id id)
{
	return case_environment_rows[id].name;
}

bool case_environment_is_text(enum case_environment_id id)
{
	return case_environment_rows[id].kind == ENVIRONMENT_TEXT;
}

const char *case_environment_words(const struct case_environment *environment,
	enum case_environment_id id, char out[CASE_WORD_BYTES])
{
	const struct case_fact *fact = &environment->of[id];
	if (case_environment_is_text(id))
		(void)snprintf(out, CASE_WORD_BYTES, "%s", fact->text[0] ? fact->text : "unknown");
	else if (isnan(fact->number))
		(void)snprintf(out, CASE_WORD_BYTES, "unknown");
	else
		(void)amount_format(case_environment_rows[id].kind == ENVIRONMENT_BYTES
					    ? AMOUNT_BYTES
					    : AMOUNT_COUNT,
			fact->number, out);
	return out;
}

static double case_fact_number(const struct fact_list *facts, const char *group, const char *name)
{
	const struct fact *fact = fact_find(facts, group, name);
	if (fact && fact->kind == FACT_TEXT && strcmp(fact->text, "none") == 0)
		return INFINITY;
	return fact && fact->kind == FACT_NUMBER ? fact->number : NAN;
}

static const char *case_fact_text(
	const struct fact_list *facts, const char *group, const char *name)
{
	const struct fact *fact = fact_find(facts, group, name);
	return fact && fact->kind == FACT_TEXT ? fact->text : "";
}

/* Words of a table of the kernel's or a vendor's: letters that cannot do harm, and no comment sign. */
void case_environment_word(char out[CASE_WORD_BYTES], const char *text)
{
	size_t used = 0;
	for (; *text && used + 1 < CASE_WORD_BYTES; text++)
		if (isalnum((unsigned char)*text) || strchr(" ._()@+-/", *text))
			out[used++] = *text;
	while (used > 0 && out[used - 1] == ' ')
		used--;
	out[used] = '\0';
}

/* "6.1.0-rc1-of-a-company" is 6.1.0: what follows the number may be anybody's name. */
static void case_kernel(char out[CASE_WORD_BYTES], const char *release)
{
	const size_t length = strspn(release, "0123456789.");
	(void)snprintf(out, CASE_WORD_BYTES, "%.*s", (int)(length < 32 ? length : 32), release);
}

/* Whoever mounts a FUSE file system names its kind. */
static void case_file_system(char out[CASE_WORD_BYTES], const char *type)
{
	static const char *const known[] = {"fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse",
		"fuse.goofys", "fuse.juicefs", "fuse.glusterfs", "fuse.ceph", "fuse.rclone",
		"fuse.mount-s3", "fuse.blobfuse2", "fuse.portal"};
	bool keep = strncmp(type, "fuse.", 5) != 0;
	for (size_t i = 0; i < COUNT(known) && !keep; i++)
		keep = strcmp(known[i], type) == 0;
	case_environment_word(out, keep ? type : "fuse");
}

static const char *case_device(const char *system, const char *disk, const char *rotational)
{
	static const char *const networks[] = {"nfs", "ceph", "lustre", "gpfs", "beegfs", "cifs",
		"smb", "glusterfs", "fuse.", "9p", "orangefs", "wekafs", "afs"};
	if (strcmp(system, "tmpfs") == 0 || strcmp(system, "ramfs") == 0)
		return "memory";
	for (size_t i = 0; i < COUNT(networks); i++)
		if (strncmp(system, networks[i], strlen(networks[i])) == 0)
			return "network";
	if (strncmp(disk, "nvme", 4) == 0)
		return "nvme";
	if (strncmp(disk, "vd", 2) == 0 || !disk[0]) /* a virtual disk hides what it is */
		return disk[0] ? "other" : "";
	return strcmp(rotational, "no") == 0    ? "ssd"
	       : strcmp(rotational, "yes") == 0 ? "disk"
						: "other";
}

void case_environment_of(const struct fact_list *facts, struct case_environment *out)
{
	const char *system = case_fact_text(facts, "data", "file_system");
	const char *gpu = case_fact_text(facts, "gpu", "name_0");
	for (int id = 0; id < CASE_ENVIRONMENT_COUNT; id++)
		out->of[id] = (struct case_fact){.number = NAN};
	case_environment_word(
		out->of[CASE_ENVIRONMENT_CPU].text, case_fact_text(facts, "cpu", "model"));
	out->of[CASE_ENVIRONMENT_CORES].number = case_fact_number(facts, "cpu", "allowed");
	out->of[CASE_ENVIRONMENT_CPU_QUOTA].number = case_fact_number(facts, "cgroup", "cpu_limit");
	out->of[CASE_ENVIRONMENT_MEMORY].number = case_fact_number(facts, "memory", "total");
	case_kernel(
		out->of[CASE_ENVIRONMENT_KERNEL].text, case_fact_text(facts, "kernel", "release"));
	case_file_system(out->of[CASE_ENVIRONMENT_FILE_SYSTEM].text, system);
	case_environment_word(out->of[CASE_ENVIRONMENT_DEVICE].text,
		case_device(system, case_fact_text(facts, "data", "disk"),
			case_fact_text(facts, "data", "rotational")));
	case_environment_word(out->of[CASE_ENVIRONMENT_GPU].text,
		gpu[0] ? gpu : case_fact_text(facts, "gpu", "model_0"));
	out->of[CASE_ENVIRONMENT_GPUS].number = case_fact_number(facts, "gpu", "devices");
}

void case_environment_of_data(const char *type, struct case_environment *out)
{
	case_file_system(out->of[CASE_ENVIRONMENT_FILE_SYSTEM].text, type);
	case_environment_word(out->of[CASE_ENVIRONMENT_DEVICE].text, case_device(type, "", ""));
}

/* --- the file ----------------------------------------------------------------------------------- */

/* A value of a section of ours: comment signs are escaped, and so is what escapes them. */
static void case_print_value(const char *text, size_t size, struct buffer *out)
{
	for (size_t i = 0; i < size; i++) {
		const bool opens = (text[i] == '#' || text[i] == ';') &&
				   (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t');
		if (opens || text[i] == '$')
			buffer_text(out, "$");
		buffer_add(out, &text[i], 1);
	}
	buffer_text(out, "\n");
}

static void case_print_words(const char *name, const char *text, struct buffer *out)
{
	buffer_format(out, "%s = ", name);
	case_print_value(text, strlen(text), out);
}

void case_change_keys(const struct case_change *change, const char *between, struct buffer *out)
{
	for (size_t i = 0; i < change->keys.count; i++) {
		const struct key *key = &config_keys[change->keys.of[i].key];
		buffer_format(out, "%s%s.%s=%s", i ? between : "", key->section, key->name,
			change->keys.of[i].text);
	}
}

static void case_print_change(const struct case_change *change, struct buffer *out)
{
	struct buffer line = {0};
	if (!isnan(change->gained))
		buffer_format(&line, "%gx, ", change->gained);
	case_change_keys(change, ", ", &line);
	buffer_format(&line, ": %s", change->text);
	out->failed = out->failed || line.failed;
	case_print_words(change->helps ? "fix" : "decoy", line.failed ? "" : line.data, out);
	buffer_release(&line);
}

static void case_print_lines(const char *name, const char *lines, struct buffer *out)
{
	for (const char *at = lines; at && *at;) {
		const size_t length = strcspn(at, "\n");
		buffer_format(out, "%s = ", name);
		case_print_value(at, length, out);
		at += length + (at[length] == '\n');
	}
}

static void case_print_about(const struct case_file *file, struct buffer *out)
{
	buffer_text(out,
		"# A case: a training job as somebody reported it, and its synthetic twin.\n"
		"#   mlbench check FILE      tells it in words\n");
	if (conditions_most_ranks(&file->twin) > 1) { /* which reproduce cannot start */
		buffer_text(out, "#   ");
		conditions_launcher(&file->twin, out);
		buffer_text(out, "mlbench run FILE  measures the twin\n");
	} else {
		buffer_text(out,
			"#   mlbench run FILE        measures the twin on this node\n"
			"#   mlbench reproduce FILE  says whether what was reported happens here\n");
	}
	buffer_text(out, "\n[case]\n");
	buffer_format(out, "version = %d\n", CASE_VERSION);
	if (file->created[0])
		buffer_format(out, "created = %s\n", file->created);
	case_print_lines("complaint", file->complaint, out);
	if (file->scrubbed && file->scrubbed[0])
		case_print_words("scrubbed", file->scrubbed, out);
	if (file->source)
		case_print_words("source", file->source, out);
	if (file->check != CASE_CHECK_UNSAID)
		case_print_words(case_check_name(file->check), file->check_why, out);
	case_print_lines("compared", file->compared, out);
	for (size_t i = 0; i < file->change_count; i++)
		case_print_change(&file->changes[i], out);
}

static void case_print_observed(const struct case_file *file, struct buffer *out)
{
	bool any = false;
	for (int id = 0; id < FINDING_COUNT; id++) {
		const struct finding *finding = &file->observed.known[id];
		struct buffer line = {0};
		if (finding->how == FINDING_UNKNOWN)
			continue;
		if (!any)
			buffer_text(out,
				"\n# What is known of the job: each value with its 95 % interval or range, and how it is known.\n"
				"[observed]\n");
		any = true;
		finding_print((enum finding_id)id, finding, &line);
		out->failed = out->failed || line.failed;
		case_print_words(
			finding_name((enum finding_id)id), line.data ? line.data : "", out);
		buffer_release(&line);
	}
	if (!any && file->observed.note_count > 0)
		buffer_text(out, "\n[observed]\n");
	for (size_t i = 0; i < file->observed.note_count; i++)
		case_print_words("note", file->observed.notes[i], out);
}

static void case_print_verdict(const struct case_file *file, struct buffer *out)
{
	const struct findings *observed = &file->observed;
	char share[AMOUNT_BYTES_OUT];
	if (!observed->stage[0])
		return;
	buffer_text(out, "\n# What seemed to limit the job then.\n[verdict]\n");
	buffer_format(out, "stage = %s\n", observed->stage);
	if (observed->resource[0])
		buffer_format(out, "resource = %s\n", observed->resource);
	if (!isnan(observed->confidence))
		buffer_format(out, "confidence = %s\n",
			amount_format(AMOUNT_SHARE, observed->confidence, share));
	if (file->judge != SOURCE_NONE)
		buffer_format(out, "by = %s\n", finding_source_name(file->judge));
}

static bool case_environment_known(const struct case_fact *fact)
{
	return fact->text[0] || !isnan(fact->number);
}

static void case_print_environment(const struct case_file *file, struct buffer *out)
{
	char words[CASE_WORD_BYTES];
	bool any = false;
	for (int id = 0; id < CASE_ENVIRONMENT_COUNT; id++) {
		if (!case_environment_known(&file->environment.of[id]))
			continue;
		if (!any)
			buffer_text(
				out, "\n# The node that it was reported from.\n[environment]\n");
		any = true;
		case_print_words(case_environment_name((enum case_environment_id)id),
			case_environment_words(
				&file->environment, (enum case_environment_id)id, words),
			out);
	}
}

static void case_print_dotted(
	const struct case_lines *lines, bool escape, const char *head, struct buffer *out)
{
	if (lines->count > 0)
		buffer_text(out, head);
	for (size_t i = 0; i < lines->count; i++) {
		const struct key *key = &config_keys[lines->of[i].key];
		char name[CASE_WORD_BYTES];
		(void)snprintf(name, sizeof name, "%s.%s", key->section, key->name);
		if (escape)
			case_print_words(name, lines->of[i].text, out);
		else
			buffer_format(out, "%s = %s\n", name, lines->of[i].text);
	}
}

static void case_print_reported(const struct case_file *file, struct buffer *out)
{
	const bool cores = !isnan(file->reported_cores);
	const bool quota = !isnan(file->reported_quota);
	if (!cores && !quota && file->reported.count == 0)
		return;
	buffer_text(out,
		"\n# What stands in for that node elsewhere (mlbench reproduce --as-reported).\n"
		"[reported]\n");
	if (cores)
		buffer_format(out, "cores = %g\n", file->reported_cores);
	if (quota)
		buffer_format(out, "cpu_quota = %g\n", file->reported_quota);
	case_print_dotted(&file->reported, false, "", out);
}

static void case_print_twin(const struct case_file *file, struct buffer *out)
{
	const char *section = "";
	if (file->keys.count > 0)
		buffer_text(out,
			"\n# The twin, as a configuration: the keys that differ from their defaults.\n");
	for (size_t i = 0; i < file->keys.count; i++) {
		const struct key *key = &config_keys[file->keys.of[i].key];
		if (strcmp(section, key->section) != 0)
			buffer_format(out, "%s[%s]\n", i ? "\n" : "", key->section);
		section = key->section;
		buffer_format(out, "%s = %s\n", key->name, file->keys.of[i].text);
	}
}

void case_print(const struct case_file *file, struct buffer *out)
{
	case_print_about(file, out);
	case_print_observed(file, out);
	case_print_verdict(file, out);
	case_print_environment(file, out);
	case_print_dotted(&file->assumed, true,
		"\n# Keys of the twin that are guesses, and why.\n[assumed]\n", out);
	case_print_reported(file, out);
	case_print_twin(file, out);
}

int case_write(const struct case_file *file, const char *path, struct error *err)
{
	struct buffer text = {0};
	case_print(file, &text);
	const int code = text.failed ? error_set(err, -ENOMEM, "out of memory")
				     : files_write_atomic(path, text.data, text.size, err);
	buffer_release(&text);
	return code;
}

int case_config(
	const struct case_file *file, bool as_reported, struct config *out, struct error *err)
{
	int code = config_copy(out, &file->twin, err);
	if (code)
		return code;
	for (size_t i = 0; as_reported && i < file->reported.count && !code; i++) {
		const struct key *key = &config_keys[file->reported.of[i].key];
		char name[CASE_WORD_BYTES];
		(void)snprintf(name, sizeof name, "%s.%s", key->section, key->name);
		code = assign(out, NULL, 0, name, file->reported.of[i].text, err);
	}
	if (code)
		config_release(out);
	return code;
}
