/* The program itself: what lies beside it, and which of its optional parts it was built with. */
#ifndef MLBENCH_BASE_PROGRAM_H
#define MLBENCH_BASE_PROGRAM_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- its place -------------------------------------------------------------------------------- */

/* The folder of the program's file; "." when the kernel does not say.  Any thread. */
void program_folder(char *out, size_t room);

/* The path of `relative` ("../lib/x") seen from there; false, with "", when there is nothing or no room.  Any thread. */
bool program_beside(const char *relative, char *out, size_t room);

/* --- its limits ------------------------------------------------------------------------------- */

/* As many open files as may be had without asking anybody: the usual 1024 are few for deep queues.  Before threads start. */
void program_raise_limits(void);
/* What they were before, for a command of the user's: between fork and exec. */
void program_restore_limits(void);

/* --- which one it is -------------------------------------------------------------------------- */

/* A launcher started several: which one this is, set once, by main. */
void program_be_rank(unsigned rank);
/* Which of the first `ranks` ranks this process is; 0 of one that is alone, or is none of them.  Any thread. */
unsigned program_rank_of(int64_t ranks);

/* --- its optional parts ----------------------------------------------------------------------- */

/* Parts that the program does without where their library was missing when it was built.  Whoever asks for one is told which
 * library that is; `mlbench list parts` lists them all. */

enum part {
	PART_LIVE_VIEW,
	PART_METRICS_SERVER,
	PART_FLAME,
	PART_TENSORBOARD,
	PART_TRACES,
	PARTS,
};

const char *part_name(enum part part);
const char *part_summary(enum part part);
/* Why this program does not have it, with Debian's name of the library's package; NULL: it has it. */
const char *part_missing(enum part part);
/* -ENOTSUP with that reason; 0: the program has it. */
int part_require(enum part part, struct error *err);

#endif
