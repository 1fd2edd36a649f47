/* A case: somebody's slow job in one small INI file.  `mlbench fit` writes it, `mlbench run case.ini` runs the synthetic twin
 * of the job as it runs any configuration, `mlbench check` tells it in words, `mlbench reproduce` tests it.
 *
 * Its ordinary sections hold the twin: only the keys that differ from the defaults.  Sections of its own, which only this file
 * reads (case_owner), hold the rest: [case] who says what, [observed] each finding with how it is known, [verdict] the
 * bottleneck as it was held to be then, [environment] the node's fingerprint, [assumed] which keys of the twin are guesses,
 * [reported] what emulates the reported node elsewhere.  Cases of public reports (configs/cases/) also say in [case] what the
 * report tried: decoys and fixes (struct case_change), which `mlbench list cases` prints.
 *
 * A case is passed on, so it has nothing of the user's but what the complaint says, and that is scrubbed (harness/fit/scrub.h).
 * It may have been written by hand: mistakes are refused with file and line.  The same case is always the same bytes. */
#ifndef MLBENCH_FIT_CASE_H
#define MLBENCH_FIT_CASE_H

#include "harness/base/buffer.h"
#include "harness/config/config.h"
#include "harness/config/section_owner.h"
#include "harness/fit/finding.h"
#include "harness/record/fact_list.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	CASE_VERSION = 1,
	CASE_FILE_BYTES_MAX = 1 << 20,
	CASE_COMPLAINT_BYTES_MAX = 2048, /* as it is kept, scrubbed */
	CASE_CHANGES_MAX = 8,
	CASE_WORD_BYTES = 64,
	CASE_DAY_BYTES = 11 /* "2026-11-26" */
};

enum case_environment_id {
#define ENVIRONMENT(id, name, kind, doc) CASE_ENVIRONMENT_##id,
#include "harness/fit/case_environment.def"
#undef ENVIRONMENT
	CASE_ENVIRONMENT_COUNT
};

/* One row of the fingerprint: text "" and number NAN where it is not known.  A quota of INFINITY: there is none. */
struct case_fact {
	char text[CASE_WORD_BYTES];
	double number;
};

struct case_environment {
	struct case_fact of[CASE_ENVIRONMENT_COUNT];
};

/* A key and its text as a file has it ("dataset.path", "${MLBENCH_DATA:-data}/case-1f"), or why it is assumed; owned. */
struct case_line {
	enum key_id key;
	char *text;
};

struct case_lines {
	struct case_line *of; /* in the order of keys.def; owned */
	size_t count;
};

/* Keys that somebody changed, or would change first, and what came of it.  Of several fixes each stands on those before it. */
struct case_change {
	bool helps;             /* "fix"; false: "decoy", which gains nothing */
	double gained;          /* throughput became this many times as much; NAN: nobody said */
	struct case_lines keys; /* as written */
	char *text;             /* owned */
};

/* What running the twin where the case was made said of it. */
enum case_check {
	CASE_CHECK_UNSAID,
	CASE_CHECK_FAITHFUL,
	CASE_CHECK_UNCHECKED,
	CASE_CHECK_UNFAITHFUL, /* nothing is concluded from it */
	CASE_CHECKS
};

struct case_file {
	char created[CASE_DAY_BYTES]; /* day; "" unknown */
	char *complaint;              /* lines, separated by '\n'; owned; NULL: there is none */
	char *scrubbed; /* what was replaced in it: "2 paths, 1 host name"; owned; NULL: nothing */
	char *source;   /* where it was reported ("geti #5958"); owned; NULL: not said */
	struct case_change changes[CASE_CHANGES_MAX];
	size_t change_count;
	enum case_check check;
	char *check_why; /* a sentence of ours; owned; NULL where it is CASE_CHECK_UNSAID */
	char *compared;  /* lines: what was compared, with both figures; owned; NULL: nothing */
	struct case_lines keys;    /* of the twin, as written */
	struct config twin;        /* the same, read */
	struct findings observed;  /* its step times and strata are in keys of the twin */
	char *why[FINDING_COUNT];  /* owned: what `observed` points to after reading */
	enum finding_source judge; /* who held observed.stage and .resource to be the bottleneck */
	struct case_environment environment;
	struct case_lines assumed;  /* keys of the twin that are guesses, and why */
	struct case_lines reported; /* keys that emulate the reported node's storage */
	double reported_cores;      /* cores to run on in its place; NAN: not known */
	double reported_quota;      /* CPU quota, in cores; NAN: none */
};

/* An empty case: every key at its default. */
void case_open(struct case_file *out);
void case_release(struct case_file *file); /* safe after case_open, and on {0} */

/* Whether it is a regular file with a [case] section; false also where it cannot be read. */
bool case_is(const char *path);
extern const struct section_owner case_owner; /* for section_owners_register */

/* Reads a case; opens out first.  -EINVAL: file, line and what is wrong; after a failure there is nothing to release.
 * out->twin.path is the file's. */
int case_read(struct case_file *out, const char *path, struct error *err);
/* From memory; name stands for the file in messages. */
int case_read_text(
	struct case_file *out, const char *name, const char *text, size_t size, struct error *err);

/* Appends the file's text, with comments for people. */
void case_print(const struct case_file *file, struct buffer *out);
/* Replaces path at once when all is written. */
int case_write(const struct case_file *file, const char *path, struct error *err);

/* --- filling it in ---------------------------------------------------------------------------- */

/* Sets a key of the twin, checked as a case's line is. */
int case_set(struct case_file *file, const char *dotted, const char *text, struct error *err);
/* As a case has it that others may have written: a key that the twin has already, so that it is printed. */
int case_keep_key(struct case_file *file, const char *dotted, const char *text, struct error *err);
/* Says that the key is a guess.  -EINVAL: no such key.  An earlier reason gives way. */
int case_assume(struct case_file *file, const char *dotted, const char *why, struct error *err);
/* Replaces what was said before. */
int case_say_check(
	struct case_file *file, enum case_check check, const char *why, struct error *err);
/* Adds a line to file->compared. */
int case_compare(struct case_file *file, const char *line, struct error *err);
const char *case_check_name(enum case_check check); /* "faithful": its key in [case] */
/* "4.3x, KEY=VALUE, ...: TEXT"; the factor may be missing.  -EINVAL: the twin would not run with these keys. */
int case_change(struct case_file *file, bool helps, const char *text, struct error *err);
/* A key of [inject] that emulates the reported node ("inject.read_latency"). */
int case_report_as(struct case_file *file, const char *dotted, const char *text, struct error *err);
/* Text of the user's, scrubbed and cut to fit. */
int case_complain(struct case_file *file, const char *text, size_t size, struct error *err);

/* Appends "KEY=VALUE", with `between` between them. */
void case_change_keys(const struct case_change *change, const char *between, struct buffer *out);

/* The reason why a key is a guess; NULL: it is none. */
const char *case_why_assumed(const struct case_file *file, enum key_id key);

/* --- using it --------------------------------------------------------------------------------- */

/* The twin as a configuration, and, as_reported, with the emulation of the reported node's storage.  Its cores and its quota
 * (reported_cores, reported_quota) are the caller's to arrange.  On failure there is nothing to release. */
int case_config(
	const struct case_file *file, bool as_reported, struct config *out, struct error *err);

/* The fingerprint of a node, of the facts that a result has or environment_capture finds. */
void case_environment_of(const struct fact_list *facts, struct case_environment *out);
/* What lies below data on a file system of this type ("fuse.sshfs"), as far as the type tells. */
void case_environment_of_data(const char *type, struct case_environment *out);
/* A text of a row, without what could do harm in a terminal or a file. */
void case_environment_word(char out[CASE_WORD_BYTES], const char *text);
const char *case_environment_name(enum case_environment_id id); /* "cpu_quota" */
bool case_environment_is_text(enum case_environment_id id);
/* A row as words: "251 GiB", "none", "unknown".  Returns out. */
const char *case_environment_words(const struct case_environment *environment,
	enum case_environment_id id, char out[CASE_WORD_BYTES]);

#endif
