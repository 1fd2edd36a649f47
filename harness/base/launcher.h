/* Who started this process, as its environment says: mpirun, srun and the like start one program as
 * many ranks, and each learns from variables which one it is.  Nothing is opened or asked. */
#ifndef MLBENCH_BASE_LAUNCHER_H
#define MLBENCH_BASE_LAUNCHER_H

#include <stdbool.h>

struct launcher {
	const char *name; /* "Open MPI", "Slurm"; a constant */
	const char *
		hint; /* what helps where its ranks do not see each other; NULL: nothing; a constant */
	/* How its ranks are bound to no cores, and, with a number behind it, to so many each; constants. */
	const char *unbind, *widen;
	bool ends_all; /* when a rank ends with another exit status than 0, all of them */
	unsigned rank, count;
	unsigned local_rank, local_count; /* on this node; count 0: not said */
	bool without_pmix; /* srun did: Open MPI may end the process in its first call */
};

/* False: this process was started alone, or the variables make no sense together. */
bool launcher_find(struct launcher *out);

#endif
