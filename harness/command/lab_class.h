/* `mlbench lab key`, `scores` and `open`: for teachers.  Each returns an exit status. */
#ifndef MLBENCH_COMMAND_LAB_CLASS_H
#define MLBENCH_COMMAND_LAB_CLASS_H

#include "harness/command/command.h"

int lab_class_key(const struct invocation *invocation, struct error *err);
int lab_class_scores(const struct invocation *invocation, struct error *err);
int lab_class_open(const struct invocation *invocation, struct error *err);

#endif
