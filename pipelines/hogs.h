/* Load from outside the job, for experiments: processes that burn CPU time or stream through memory. */
#ifndef MLBENCH_PIPELINES_HOGS_H
#define MLBENCH_PIPELINES_HOGS_H

#include "harness/base/error.h"
#include "harness/config/config.h"

#include <sys/types.h>

struct hogs {
	pid_t *pids; /* owned */
	unsigned count;
};

/* Forks those that `config` asks for: before any thread starts.  They end with this process. */
int hogs_open(struct hogs *hogs, const struct config *config, struct error *err);
void hogs_close(struct hogs *hogs); /* safe on {0} */

#endif
