/* The sources of a case: which kind one is of, by its content, and what it knows beside findings. */
#ifndef MLBENCH_FIT_SOURCE_H
#define MLBENCH_FIT_SOURCE_H

#include "harness/fit/case.h"

#include <stdatomic.h>
#include <stdbool.h>

struct source_more {
	struct case_environment environment; /* rows that are not known: NAN, "" */
	char format
		[8]; /* of the files that the job had open: a format of dataset.format; "" not known */
	bool loaders;    /* of an observed job: other processes load for its trainers */
	double rate;     /* samples/s by which what an observed job took was divided; NAN */
	bool per_second; /* what an observed job takes for a sample was taken for a second: rate is 1, and no sample is known */
	bool shards;     /* of an observed job: each of its files holds many samples */
	bool has_config; /* of a result: */
	struct config config; /* the setting that was measured; released with the rest */
};

void source_more_open(struct source_more *more);
void source_more_release(struct source_more *more);

/* Finds the kind of a source and reads it; out was opened by the caller.  -EINVAL, -ENOENT, ...: err names the source.  -EINTR: *stop. */
int source_read(const char *path, struct findings *out, struct source_more *more,
	enum finding_source *kind, const atomic_bool *stop, struct error *err);

/* For readers of sources without a limit of time, in source_read's thread: -EINTR once the user has asked to stop. */
int source_check_stop(struct error *err);

/* For readers of sources, as often as they like, in source_read's thread: how far one is, on the progress line.  Nothing is shown
 * before source_read has taken a second. */
void source_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether the text of a file begins as a document of this schema does: {"schema": "mlbench.observe/1", ... */
bool source_is_document(const char *text, const char *schema);

/* As findings_from_observed, and of a result folder, with what else these know. */
int source_observed(
	const char *path, struct findings *out, struct source_more *more, struct error *err);
int source_result(
	const char *path, struct findings *out, struct source_more *more, struct error *err);

/* Takes away what an observed job is held to take for one sample. */
void source_forget_samples(struct findings *findings);

/* The findings that are of one sample, of an observed job; FINDING_COUNT ends them. */
extern const enum finding_id source_of_sample[];

#endif
