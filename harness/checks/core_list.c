/* Cores by their numbers. */
#include "harness/checks/core_list.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CORES_SPARE = 1024 };

static size_t core_list_most(void)
{
	const long configured = sysconf(_SC_NPROCESSORS_CONF);
	return (size_t)(configured > 0 ? configured : 1) + CORES_SPARE;
}

int core_list_open(struct core_list *list, struct error *err)
{
	const size_t most = core_list_most();
	const size_t size = CPU_ALLOC_SIZE(most);
	cpu_set_t *const allowed = CPU_ALLOC(most);
	*list = (struct core_list){0};
	if (allowed && sched_getaffinity(0, size, allowed) == 0)
		list->cores = calloc((size_t)CPU_COUNT_S(size, allowed) + 1, sizeof *list->cores);
	for (size_t core = 0; list->cores && core < most; core++)
		if (CPU_ISSET_S(core, size, allowed))
			list->cores[list->count++] = (unsigned)core;
	CPU_FREE(allowed);
	if (list->count > 0)
		return 0;
	core_list_close(list);
	return error_set(err, -ENOMEM, "the cores that this process may use are not known");
}

void core_list_close(struct core_list *list)
{
	free(list->cores);
	*list = (struct core_list){0};
}

bool core_pin(unsigned core)
{
	const size_t most = core_list_most();
	const size_t size = CPU_ALLOC_SIZE(most);
	cpu_set_t *const one = core < most ? CPU_ALLOC(most) : NULL;
	if (!one)
		return false;
	CPU_ZERO_S(size, one);
	CPU_SET_S(core, size, one);
	const bool pinned = sched_setaffinity(0, size, one) == 0;
	CPU_FREE(one);
	return pinned && sched_getcpu() == (int)core;
}

const char *core_place(unsigned core, char out[CORE_PLACE_BYTES])
{
	(void)snprintf(out, CORE_PLACE_BYTES, "core %u", core);
	return out;
}
