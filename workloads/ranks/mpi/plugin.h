/* The interface between the program and libmlbench-mpi.so, which it opens at run time where a
 * launcher started it: one function table.  The plug-in knows nothing of configurations, pipelines or
 * records; the program knows nothing of MPI.  Both sides are built from one tree: a plug-in of another
 * version is refused.
 *
 * Any thread may call anything but open, close, abort and train, which one thread calls; these wait for
 * other ranks, and no other call does.  Requests are progressed by `test` alone. */
#ifndef MLBENCH_WORKLOADS_RANKS_MPI_PLUGIN_H
#define MLBENCH_WORKLOADS_RANKS_MPI_PLUGIN_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { MPI_PLUGIN_ABI = 2, MPI_LIBRARY_BYTES = 128, MPI_HOST_BYTES = 64 };

/* The only symbol that is looked up, and the file's name. */
#define MPI_PLUGIN_ENTRY "mlbench_mpi_plugin"
#define MPI_PLUGIN_FILE "libmlbench-mpi.so"

struct mpi_world {
	unsigned rank, count;
	unsigned local_rank, local_count; /* of those on this node */
	char library[MPI_LIBRARY_BYTES];  /* "Open MPI 4.1.4"; its first line */
	char host[MPI_HOST_BYTES];        /* this node's name, as MPI has it */
};

/* A message or a sum under way. */
struct mpi_request;

/* How a round of steps ended, over all ranks: of two of them, the later one. */
struct mpi_round {
	double latest_ns,
		second_ns; /* when the last rank had its gradients, and the one before it */
	int last;          /* which rank that was */
	int leaves;        /* the largest of what they said: 0 if all go on */
};

struct mpi_plugin {
	unsigned abi;
	const char *version; /* the program's */

	/* MPI's name and version, before it is opened, too. */
	void (*library)(char out[MPI_LIBRARY_BYTES]);
	/* Once in a process, on the thread that closes: waits for the other ranks. */
	int (*open)(struct mpi_world *out, struct error *err);
	/* With no request open; waits for the other ranks. */
	void (*close)(void);
	/* Ends all ranks at once, this one too. */
	void (*abort)(int status);

	/* Begin a message to or from a rank, of `bytes` exactly; data stays the caller's until the request is
	 * over.  *out is NULL where this fails. */
	int (*send)(struct mpi_request **out, unsigned rank, int tag, const void *data,
		size_t bytes, struct error *err);
	int (*receive)(struct mpi_request **out, unsigned rank, int tag, void *data, size_t bytes,
		struct error *err);
	/* Which ranks train, before the first sum and whenever that changes: the first `count`, not counting `without` (0: none is
	 * left out), each of which calls this; the first time with these it waits there for the others. */
	int (*train)(unsigned count, unsigned without, struct error *err);
	/* Begin a sum, or a round's end, over the ranks that train, in place; each of them begins the same ones in the same order. */
	int (*sum)(struct mpi_request **out, float *values, size_t count, struct error *err);
	int (*meet)(struct mpi_request **out, struct mpi_round *round, struct error *err);

	/* 1: it is over, and *request is NULL; 0: it is not; negative errno: it failed, and *request is NULL. */
	int (*test)(struct mpi_request **request, struct error *err);
	/* Gives a request up, where the other side will not answer: its memory is never given back. */
	void (*forget)(struct mpi_request **request);
};

typedef const struct mpi_plugin *mpi_plugin_entry(void);

#endif
