/* The files of a run: `results/<name>/<utc>/`.
 *
 *   points.jsonl   a header line (schema, resolved configuration, environment, grid), then a line
 *                  per repetition, appended and synced as it ends; limits and reads alone as lines of
 *                  their own, and a line that says when and how the run ended
 *   summary.json   schema mlbench.summary/1 (docs/summary.schema.json)
 *   points.csv     one row per point
 *   diagnoses.json a cache of what was diagnosed (harness/report/saved_diagnoses.h)
 *   traces/        service times in sequence, one file a repetition: p00012-r1.json (trace.h)
 *
 * A torn last line (a kill in the middle of a write) is dropped on reading, and cut off before the
 * next line is appended.  A repetition that failed may be measured again: the later line holds. */
#ifndef MLBENCH_RECORD_RECORD_H
#define MLBENCH_RECORD_RECORD_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/record/ceilings.h"
#include "harness/record/fact_list.h"
#include "harness/record/measurement.h"
#include "harness/record/trace.h"

#include <jansson.h>
#include <stdbool.h>

/* Results that were measured in turns lie in one folder (harness/command/paired.h), beside the list of their blocks.  Of a case,
 * the twin has this name among its variants. */
#define RECORD_BLOCKS_FILE "paired.jsonl"
#define RECORD_TRACES_FOLDER "traces"
#define RECORD_RANKS_FOLDER "ranks" /* of results of the other ranks, by number of four digits */
#define RECORD_TWIN "twin"

enum {
	RECORD_NAME_BYTES = 128,
	RECORD_LIMITS_MAX = 16,
	RECORD_READ_BLOCKS_MAX = 64,
	RECORD_HASH_BYTES = 17,
	STEP_PRODUCTS_MAX = 64
};

/* The matrix products of one shape in a model's forward pass of one sample: (m x k) by (k x n). */
struct step_product {
	char name[NAME_BYTES]; /* of the first layer that has it */
	uint32_t m, n, k;
	uint32_t count; /* so many in the model */
	bool weights; /* the right-hand side is weights, one for all samples of a batch: their rows are one product */
	bool first; /* one of them takes the data itself, of which nobody needs a gradient */
};

struct step_info {
	char backend[NAME_BYTES];
	bool emulated;
	char model[NAME_BYTES];
	char description[NOTE_BYTES];
	char reference[NOTE_BYTES]; /* a published figure of the device that computed; "": none */
	double flops_per_sample;    /* 0: no model */
	struct step_product
		products[STEP_PRODUCTS_MAX]; /* of the first point, in the model's order */
	size_t product_count;                /* 0: not known (no such model, or an older result) */
};

/* What was reported of the job whose twin was measured (harness/fit/case.h), so that a result tells it without the case's file. */
struct record_case {
	bool known;
	char created[16];       /* "2026-11-26"; "" unknown */
	char complaint[2049];   /* the user's words, which are not to be trusted; "" none */
	double rate, low, high; /* samples/s and their interval; NAN: not known */
	char stage[NAME_BYTES]; /* that limited the job then; "" unknown */
	char resource[64];      /* one or several ("latency or full"); "" unknown */
	double confidence;      /* NAN: not known */
	char changed
		[320]; /* "decode.workers (was 1, now 2)": keys of the twin that this result set otherwise; "" none */
};

/* One repetition, as its line of points.jsonl: a tenth of a struct measurement, so that a long sweep
 * takes no memory that would count against the measured pipeline. */
struct record_entry {
	uint32_t point, repeat;
	enum measurement_status status;
	double ended;           /* seconds since the epoch */
	double throughput;      /* samples/s; NAN: not known */
	double resident_before; /* share of the data in the page cache before it; NAN: not known */
	char *line;             /* without the newline; owned */
};

/* Repetitions of a point, by what they came to. */
struct record_tally {
	size_t with_status[MEASUREMENT_STATUSES];
};

/* A result as a whole: read from its folder, or being made.  One thread. */
struct record {
	char *folder; /* owned */
	char name[RECORD_NAME_BYTES];
	double started, finished; /* seconds since the epoch; finished 0: not yet */
	struct config config;     /* resolved, with the sweep's axes */
	char config_hash[RECORD_HASH_BYTES];
	char *command; /* that measured it, for a shell: configuration and --set; owned; NULL: not known */
	unsigned cores; /* that the process could use */
	struct fact_list environment;
	struct ceilings ceilings; /* of the node, as they were known when the run began */
	bool has_ceilings;
	struct step_info step;
	struct record_case of_case;
	struct config_grid grid;
	struct record_entry *entries; /* in the order they ended, one per (point, repeat); owned */
	size_t entry_count, entry_room;
	struct record_tally
		*tallies; /* (tally_count), by point: as far as any was measured; owned */
	size_t tally_count;
	struct stage_limit limits[RECORD_LIMITS_MAX];
	size_t limit_count;
	struct read_block read_blocks[RECORD_READ_BLOCKS_MAX]; /* in the order they ran */
	size_t read_block_count;
	bool interrupted; /* some (point, repeat) is missing */

	/* record.c's own. */
	size_t whole_bytes; /* of points.jsonl, up to its last whole line */
	bool torn;          /* something follows them */
	bool ended;         /* an end line stands behind the last repetition */
	bool locked;
	int lock;       /* of points.jsonl, while it is being written */
	json_t *header; /* owner of the facts' units; NULL when being made */
};

/* Makes the folder and writes the header line.  -EEXIST: the folder holds a run already. */
int record_create(struct record *record, struct error *err);
/* Takes a record that was opened for writing again: -EBUSY when another process writes to it. */
int record_continue(struct record *record, struct error *err);
/* Appends one repetition, synced.  It is kept in memory in any case: what cannot be saved can still
 * be printed. */
int record_append(struct record *record, const struct measurement *measurement, struct error *err);
/* The header line and a repetition's, as points.jsonl has them, for one that somebody else keeps; free it.  NULL without memory. */
char *record_header_text(const struct record *record);
char *record_repetition_text(const struct measurement *measurement);
/* An entry in full: fills m, which the caller releases in any case. */
int record_load(
	const struct record *record, size_t entry, struct measurement *m, struct error *err);
/* The traces of a repetition, before the line of it is appended: written beside and renamed, so that a
 * kill leaves at most a file without a line. */
int record_save_traces(const struct record *record, const struct traces *traces,
	const struct measurement *m, struct error *err);
/* Those of an entry; traces is initialised here, and {0} when this fails.  -ENOENT: there are none;
 * -EINVAL: the file is torn or no traces. */
int record_load_traces(
	const struct record *record, size_t entry, struct traces *traces, struct error *err);
/* Where those of a repetition are, if there are any; free it.  NULL without memory. */
char *record_traces_path(const struct record *record, uint32_t point, uint32_t repeat);
int record_append_limit(struct record *record, const struct stage_limit *limit, struct error *err);
int record_append_read_block(
	struct record *record, const struct read_block *block, struct error *err);
/* Reads points.jsonl; refuses another schema by name.  folder may be the results/NAME (the newest
 * run is taken), one run's folder, or a file in it.  Of results side by side the twin is taken; where there is none: -EINVAL. */
int record_open(struct record *record, const char *folder, struct error *err);
/* The same from the text of points.jsonl, into a record that is {0} but for its folder; path is for messages. */
int record_read(
	struct record *record, const char *path, const char *text, size_t size, struct error *err);
/* Writes the end line; sets finished (when it is 0) and interrupted. */
int record_end(struct record *record, struct error *err);
/* The line that it wrote; fresh memory, NULL without. */
char *record_end_line(const struct record *record);
/* So many repetitions of each point it was, not as many as were planned: the header line is written anew.  Before the
 * end line. */
int record_settle_repeats(struct record *record, uint32_t repeats, struct error *err);
void record_release(struct record *record); /* safe on {0} */

/* Whether (point, repeat) is measured and did not fail: what --resume skips. */
bool record_has(const struct record *record, uint32_t point, uint32_t repeat);
/* Whether points have as many repetitions as their answer needs (sweep.mode): then `interrupted` is
 * what the end line says, not whether a repetition is missing; whoever finishes such a record sets it. */
bool record_is_sequential(const struct config *config);
/* "12 points x 3 repetitions"; of a sequential sweep "12 points, 31 repetitions". */
void record_put_extent(const struct record *record, struct buffer *out);
/* By what its repetitions came to (summary_status); interrupted: it has none. */
enum point_status record_point_status(const struct record *record, size_t point);
/* Whether the entry counts for its point. */
bool record_counts(const struct record *record, const struct record_entry *entry);
/* How many repetitions failed, and would be tried again. */
size_t record_failed_count(const struct record *record);

/* The folder of the newest run in root ("results/NAME"), whose folders are named by time, or
 * -ENOENT; of results side by side as for record_open. */
int record_find_newest(const char *root, char **folder, struct error *err);
/* What each measurement of a lab says of itself: its verdict is what the student shall find (harness/lab/lab_book.h). */
#define RECORD_LAB_NOTE "a lab's measurement: conditions are planted that this result does not name"
bool record_is_of_lab(const struct record *record);

/* Of a point's timeline, packed or not; free it.  NULL without memory. */
char *record_timeline_path(const struct record *record, uint32_t point, bool compress);
/* Where the results of another rank are; free it.  NULL without memory. */
char *record_rank_folder(const struct record *record, unsigned rank);
/* A command for a shell on this result, with as many ranks as it has; of a rank's own result, on that of its job:
 * "mpirun -n 4 mlbench diagnose results/x"; appended.  words: "diagnose"; NULL: what measures the rest, "sweep --resume". */
void record_add_command(const struct record *record, const char *words, struct buffer *out);
bool record_is_run(const char *folder); /* it has a points.jsonl with a header */
/* All runs in root, the newest first; the caller frees them.  -ENOENT: there are none. */
int record_find_runs(const char *root, char ***folders, size_t *count, struct error *err);
void record_runs_free(char **folders, size_t count);
/* "results/x/20261122T155620Z: sweep, 12 points x 3 repeats, started 2026-11-22T15:56:20Z on gpu-07"; appended. */
void record_describe(const struct record *record, struct buffer *out);

/* --- parts of the header line, as JSON -------------------------------------------------------- */

/* {group: {name: value | {"missing": why}}} and {"group.name": unit}. */
json_t *record_environment_to_json(const struct fact_list *environment);
json_t *record_units_to_json(const struct fact_list *environment);
/* units may be NULL. */
void record_environment_from_json(struct fact_list *list, json_t *root, const json_t *units);
json_t *record_step_to_json(const struct step_info *step);
json_t *record_case_to_json(const struct record_case *of);

/* Results of before 2026-11-24 name the engine and the backend and do not say what these are like; those of before 2026-11-26 the
 * kind of samples.  Here alone is that told by their names. */

/* Of a repetition of the record that has none. */
struct workload_facts older_facts(const struct record *record, const struct measurement *m);
/* Of an engine that probed. */
bool older_reads_block(const char *engine);
/* A resolved configuration without the keys that are gone: sweep.error, and the sweep.mode that had it ("adaptive", of which
 * points that were not measured have no figure).  Free it; NULL without memory. */
char *older_config(const char *resolved);

#endif
