/* The variables of launchers, the most telling first: Open MPI's own stand beside PMIx's and, under
 * srun, beside Slurm's. */
#include "harness/base/launcher.h"

#include "harness/base/array.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

/* Variables; NULL: it has no such one.  `only_with`: of a step, which a batch script is not. */
struct launcher_variables {
	const char *name;
	const char *rank, *count, *local_rank, *local_count, *only_with, *hint;
	const char *unbind, *widen;
	bool ends_all;
};

static const struct launcher_variables launcher_list[] = {
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
		"OMPI_COMM_WORLD_LOCAL_SIZE", NULL, NULL, "mpirun --bind-to none",
		"mpirun --map-by slot:PE=", true},
	{"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL, NULL,
		"mpiexec -bind-to none", "mpiexec -bind-to core:", true},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, "SLURM_STEP_ID",
		", or srun --mpi=pmix", "srun --cpu-bind=none", "srun --cpus-per-task=", false},
};

/* False: it is not set, or is no number of ranks. */
static bool launcher_number(const char *variable, unsigned *out)
{
	enum { RANKS_MAX = 1 << 24 };
	const char *const text = variable ? getenv(variable) : NULL;
	char *end = NULL;
	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	const unsigned long value = strtoul(text, &end, 10);
	*out = (unsigned)value;
	return errno == 0 && *end == '\0' && value <= RANKS_MAX;
}

bool launcher_find(struct launcher *out)
{
	for (size_t i = 0; i < COUNT(launcher_list); i++) {
		const struct launcher_variables *const v = &launcher_list[i];
		*out = (struct launcher){.name = v->name,
			.hint = v->hint,
			.unbind = v->unbind,
			.widen = v->widen,
			.ends_all = v->ends_all};
		if (v->only_with && !getenv(v->only_with))
			continue;
		if (!launcher_number(v->rank, &out->rank) ||
			!launcher_number(v->count, &out->count) || out->rank >= out->count)
			continue;
		(void)launcher_number(v->local_rank, &out->local_rank);
		if (!launcher_number(v->local_count, &out->local_count) ||
			out->local_rank >= out->local_count)
			out->local_count = 0;
		out->without_pmix = getenv("SLURM_STEP_ID") && !getenv("PMIX_RANK");
		return true;
	}
	*out = (struct launcher){0};
	return false;
}
