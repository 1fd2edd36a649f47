/* A run in progress as another process sees it: its picture, what the kernel says of its threads, whether it goes on, and the
 * verdict as it forms; as text and as the document mlbench.status/1 (docs/status.schema.json). */
#ifndef MLBENCH_LIVE_STATUS_H
#define MLBENCH_LIVE_STATUS_H

#include "harness/analyze/verdict.h"
#include "harness/base/buffer.h"
#include "harness/live/stall.h"
#include "harness/report/style.h"

#include <jansson.h>

struct status {
	int32_t pid;
	bool seen;                  /* there is a picture */
	bool whole;                 /* and it could be read */
	char why[ERROR_TEXT_BYTES]; /* it has shown nothing yet */
	struct live_view view;
	struct thread_look threads[LIVE_THREADS_MAX]; /* those of the view, else of the process */
	size_t thread_count;
	bool by_stage; /* threads are those of the view */
	struct stall stall;
	struct live_verdict
		verdict; /* since the warm-up; for the caller to fill (live_verdict_of) */
	uint64_t now_ns;
	double now; /* seconds since the epoch */
};

/* Looks once.  threads false: only the picture (for lists).  -ESRCH, -EPROTO, -EACCES as live_board_attach. */
int status_look(int32_t pid, bool threads, struct status *out, struct error *err);

/* It needs attention: nothing comes through, or nothing can. */
bool status_is_stuck(const struct status *status);

void status_text(const struct status *status, const struct style *style, struct buffer *out);
/* One line a run. */
void status_list_text(
	const struct status *list, size_t count, const struct style *style, struct buffer *out);

/* NULL without memory. */
json_t *status_json(const struct status *list, size_t count);

#endif
