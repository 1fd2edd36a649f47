/* The live line of a sweep: how far, what runs now, how fast it is, and when it will be done. */
#ifndef MLBENCH_COMMAND_PROGRESS_LINE_H
#define MLBENCH_COMMAND_PROGRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRESS_LABEL_BYTES = 160 };

struct progress {
	size_t done, total;   /* repetitions and limits */
	bool at_most;         /* total is a bound: it may be over before */
	double each_seconds;  /* planned time of one; replaced by what they really took */
	double spent_seconds; /* in those that are done */
	uint64_t begun_ns;    /* of the one that runs */
	uint64_t told_ns;     /* into a pipe, last */
	char label[PROGRESS_LABEL_BYTES];
	bool hidden; /* nothing is written: a view of the whole screen shows more */
};

void progress_begin(struct progress *progress, const char *label);
void progress_end(struct progress *progress); /* of the one that runs */

/* What is to come is bounded by a time: as many as fit into `seconds`, by `together` at once. */
void progress_expect_within(struct progress *progress, double seconds, size_t together);

/* Of everything that is to come, the one that runs included, as it was when that began; NAN: not known. */
double progress_rest_seconds(const struct progress *progress);

/* A pipeline_progress; context is the struct progress. */
void progress_tell(void *context, double seconds, double planned_seconds, double samples_per_s);

/* For pipeline_control's choosing, likewise: in the place of the label; what is to come stays as it was foreseen. */
void progress_choosing(void *context, unsigned chosen, unsigned products);

#endif
