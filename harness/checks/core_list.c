/* Cores by their numbers. */
#include "harness/checks/core_list.h"

#include "harness/measure/node_probes.h"

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
	list->count = probe_core_list(&list->cores);
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
