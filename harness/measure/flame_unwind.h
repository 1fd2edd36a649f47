/* The modules (program and libraries) that stacks are unwound and named by. */
#ifndef MLBENCH_MEASURE_FLAME_UNWIND_H
#define MLBENCH_MEASURE_FLAME_UNWIND_H

#include "harness/measure/flame_parts.h"

#if defined(MLBENCH_WITH_libdw)
#include <elfutils/libdwfl.h>

/* The module with pc, NULL: none; one that was opened meanwhile is found within a second. */
Dwfl_Module *flame_module(struct flame_unwinder *unwinder, uint64_t pc);
#endif

#endif
