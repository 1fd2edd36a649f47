/* A saved result as people name it. */
#ifndef MLBENCH_COMMAND_RESULT_H
#define MLBENCH_COMMAND_RESULT_H

#include "harness/report/record.h"

/* name: a path (record_open), or the name of a benchmark in results/. */
int result_open(struct record *record, const char *name, struct error *err);

#endif
