/* A saved result as a command names it: a run's folder, a file in it, or a benchmark's name in results/. */
#ifndef MLBENCH_COMMAND_SAVED_H
#define MLBENCH_COMMAND_SAVED_H

#include "harness/base/error.h"
#include "harness/report/record.h"

#include <stdbool.h>

int saved_open(struct record *record, const char *name, struct error *err);

/* A folder, a file of a result, or a name in results/: not a configuration. */
bool saved_is_meant(const char *name);

#endif
