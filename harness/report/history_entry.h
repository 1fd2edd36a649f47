/* One result as it goes into the index. */
#ifndef MLBENCH_REPORT_HISTORY_ENTRY_H
#define MLBENCH_REPORT_HISTORY_ENTRY_H

#include "harness/report/history.h"

/* Reads the result in found->folder below root and puts it into the index, in place of what was there of it.  A result
 * that cannot be read is kept as such, with the reason. */
int history_entry_add(struct history_database *db, const char *root,
	const struct found_result *found, bool *readable, struct error *err);
int history_entry_remove(struct history_database *db, const char *folder, struct error *err);

#endif
