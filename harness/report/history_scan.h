/* Which results there are below a folder: every points.jsonl, without opening any. */
#ifndef MLBENCH_REPORT_HISTORY_SCAN_H
#define MLBENCH_REPORT_HISTORY_SCAN_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct found_result {
	char *folder; /* below the root, "." for the root itself; owned */
	int64_t mtime_ns, size;
	bool running; /* its run holds the file locked */
};

struct found_results {
	struct found_result *results; /* (count) by folder; owned */
	size_t count, room;
};

/* Folders below root, not through links; a result's own folder is not searched.  What cannot be read is warned of and
 * left out. */
int history_scan(const char *root, struct found_results *out, struct error *err);
void history_scan_release(struct found_results *found); /* safe on {0} */

#endif
