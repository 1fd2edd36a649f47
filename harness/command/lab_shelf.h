/* Finding labs: configs/labs/ here, or beside the program (config_place.h). */
#ifndef MLBENCH_COMMAND_LAB_SHELF_H
#define MLBENCH_COMMAND_LAB_SHELF_H

#include "harness/command/command.h"
#include "harness/lab/lab_file.h"

/* "5", "05_latency" or a file.  The caller frees *lab (lab_free).  -ENOENT: there is none, err says which there are. */
int lab_shelf_find(const char *name, struct lab **lab, struct error *err);

/* `mlbench lab list`: returns an exit status. */
int lab_shelf_list(const struct invocation *invocation, struct error *err);

#endif
