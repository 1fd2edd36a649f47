/* What is known of somebody's training job, by whatever told it: a trace, a log of step times, a folder of data, a job that
 * was observed, a result of mlbench.  `mlbench fit` collects findings from all its sources and makes a case of them
 * (harness/fit/case.h).  Each says how it is known; what nobody knows has no finding, and the case says which value was
 * assumed in its place.
 *
 * Sources are not trusted.  A finding holds numbers and words of ours; no name, path or text of the user's gets in, but for
 * the complaint, which the user writes for this purpose. */
#ifndef MLBENCH_FIT_FINDING_H
#define MLBENCH_FIT_FINDING_H

#include "harness/base/error.h"
#include "harness/config/like.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum finding_id {
#define FINDING(id, name, key, unit, doc) FINDING_##id,
#include "harness/fit/findings.def"
#undef FINDING
	FINDING_COUNT
};

/* From the strongest down: where two sources know the same thing, the stronger one counts. */
enum finding_how {
	FINDING_UNKNOWN,
	FINDING_ASSUMED,  /* a usual value, or what the user's words say */
	FINDING_DERIVED,  /* computed from what was measured, by a rule that `why` names */
	FINDING_MEASURED, /* the source recorded it */
};

/* The kinds of sources, as a case names them; never by file. */
enum finding_source {
	SOURCE_NONE,
	SOURCE_FOLDER,   /* headers of the data set's files */
	SOURCE_TRACE,    /* Kineto */
	SOURCE_STEP_LOG, /* CSV, JSON, lines of programs, TensorBoard */
	SOURCE_OBSERVED, /* mlbench observe --json */
	SOURCE_RESULT,   /* a result folder of mlbench */
	SOURCE_USER,     /* --set, --complaint */
};

/* What the data's files are, by their names. */
enum finding_data {
	DATA_UNKNOWN,
	DATA_PICTURES,
	DATA_SAMPLES, /* each is a sample that is no picture: text, sound, an array */
	DATA_ARRAYS,  /* flat arrays, of which a sample is a part: token ids */
	DATA_SHARDS,  /* each holds many samples, of any kind: tar, TFRecord */
};

struct finding {
	enum finding_how how;
	enum finding_source source;
	double value; /* in the base unit of findings.def */
	double low,
		high; /* 95 % interval of the mean, or the range of a guess; NAN: none is known */
	const char *why; /* a constant sentence of ours: by what rule; NULL where measured */
};

enum {
	FINDINGS_STEPS_MAX = 1 << 20,
	FINDINGS_LIKE_MAX = LIKE_STRATA_MAX,
	FINDINGS_NOTES_MAX = 24,
	FINDINGS_NOTE_BYTES = 240,
	FINDINGS_RESOURCE_BYTES = 64,
	FINDINGS_RANKS_MAX = 64, /* ranks that can be told apart */
};

struct findings {
	struct finding known[FINDING_COUNT];
	/* Times of steps in the order in which they were taken, in ns; owned.  step_series: consecutive ones of one rank, so that
	 * autocorrelation means something; else a sample. */
	double *step_ns;
	size_t step_count;
	bool step_series;
	/* What they are: FINDING_STEP_TIME, or FINDING_STEP_PERIOD, where waits for batches are in them, too. */
	enum finding_id step_is;
	/* Which ranks the source was of, a bit each; 0: it does not say. */
	uint64_t ranks;
	/* What was left out, cut off or not to be had: sentences of ours with numbers, never text of the source's. */
	char notes[FINDINGS_NOTES_MAX][FINDINGS_NOTE_BYTES];
	size_t note_count;
	struct like_stratum like[FINDINGS_LIKE_MAX]; /* kinds of files, with their shares */
	size_t like_count;
	enum finding_data data;
	/* What the source held to be the bottleneck, in the words of a diagnosis ("read", "latency"); "" unknown.  Resources that the
	 * source cannot tell apart are all named ("latency or full"); so are stages ("decode or step"), which have no resource then. */
	char stage[24], resource[FINDINGS_RESOURCE_BYTES];
	double confidence; /* 0..1 of that; NAN */
};

void findings_open(struct findings *findings); /* all unknown */
void findings_close(struct findings *findings);

/* Puts in a value where nothing at least as strong is known. */
void findings_add(struct findings *findings, enum finding_id id, enum finding_source source,
	enum finding_how how, double value, double low, double high, const char *why);
/* A note for whoever reads the case: a whole sentence without its full stop.  The same one is kept once; above
 * FINDINGS_NOTES_MAX they are lost. */
void findings_note(struct findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Whether one says more of a fact than the other, which was there first: the stronger one does, and of two equal ones a step log
 * does before a trace, because a profiler slows the steps that it records. */
bool finding_counts_before(const struct finding *one, const struct finding *other);
/* Takes over what `from` knows better, its strata where there are none yet, and its series where it is the better one (step
 * times rather than periods, then the longer one).
 * Where both are traces of different ranks of one job, a value becomes the mean over ranks, and its interval holds those of
 * all: how far ranks are apart; of their notes, those that differ in more than numbers are kept. */
int findings_merge(struct findings *findings, struct findings *from, struct error *err);

/* Why a trace has one rank of many: the others may run beside it.  Of several such traces, each is
 * a rank. */
extern const char finding_one_rank[];

/* By the ending of a file's name, without its dot, and its bytes; DATA_UNKNOWN: by neither. */
enum finding_data finding_data_of(const char *ending, double bytes);

const char *finding_name(enum finding_id id);
const char *finding_source_name(enum finding_source source); /* "trace" */
const char *finding_how_name(enum finding_how how);          /* "measured" */

/* Readers of sources, each in harness/fit/from_NAME.c.  All return 0 or a negative errno with err (one line, what and where);
 * -ENOMSG: the file is no such source.  Memory and time are bounded whatever the file's size. */
int findings_from_folder(
	struct findings *out, const char *path, struct error *err); /* folder or manifest */
int findings_from_trace(
	struct findings *out, const char *path, struct error *err); /* .json, .json.gz */
int findings_from_step_log(
	struct findings *out, const char *path, struct error *err); /* text, tfevents */
int findings_from_observed(struct findings *out, const char *path, struct error *err);

#endif
