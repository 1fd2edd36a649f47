/* Whether this node can have ranks: the plug-in, the MPI library that it opens, and launchers that start several of us.  Apart from
 * ranks.h, so that what only asks links nothing that trains. */
#ifndef MLBENCH_WORKLOADS_RANKS_RANKS_LOOK_H
#define MLBENCH_WORKLOADS_RANKS_RANKS_LOOK_H

#include "harness/base/error.h"
#include "workloads/ranks/mpi/plugin.h"

#include <limits.h>
#include <stddef.h>

/* Names the plug-in's file; it is then looked for nowhere else. */
#define MPI_PLUGIN_VARIABLE "MLBENCH_MPI_PLUGIN"

enum { RANKS_SENTENCE_BYTES = ERROR_TEXT_BYTES + 160 };

struct ranks_found {
	char path[PATH_MAX];             /* of the plug-in; "": it is nowhere */
	char why[ERROR_TEXT_BYTES];      /* it cannot be opened; "": it can */
	char library[MPI_LIBRARY_BYTES]; /* "Open MPI v4.1.4" */
	char launchers[32];              /* on PATH: "mpirun and srun"; "": none */
};

/* For `list` and the doctor.  MPI is not started. */
void ranks_look(struct ranks_found *found);

/* "Open MPI v4.1.4; mpirun is on PATH; this process was started by Open MPI as rank 1 of 2".  Without a plug-in: why. */
void ranks_describe(const struct ranks_found *found, char out[RANKS_SENTENCE_BYTES]);

/* Opens it, to be used: *path (PATH_MAX) is where it was found, *library for dlclose.  -ENOTSUP, -ENOENT. */
int ranks_open_plugin(const struct mpi_plugin **out, char *path, void **library, struct error *err);

#endif
