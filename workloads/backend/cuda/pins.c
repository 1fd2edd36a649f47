/* A count of holders for each piece of registered memory, behind one lock. */
#include "workloads/backend/cuda/pins.h"

#include "harness/base/units.h"
#include "workloads/backend/cuda/fail.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct pinned {
	void *memory;
	size_t bytes;
	unsigned holders;
	struct pinned *next;
};

struct pin {
	struct pinned *pinned;
	struct pin *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pinned *all;

static struct pinned *pins_find(const void *memory, size_t bytes)
{
	for (struct pinned *pinned = all; pinned; pinned = pinned->next)
		if (pinned->memory == memory && pinned->bytes == bytes)
			return pinned;
	return NULL;
}

static int register_memory(struct pinned **out, void *memory, size_t bytes, struct error *err)
{
	struct pinned *pinned = malloc(sizeof *pinned);
	if (!pinned)
		return error_set(err, -ENOMEM, "cuda: out of memory");
	/* Portable: for all devices of the process. */
	const cudaError_t code = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
	if (code != cudaSuccess) {
		char size[UNITS_BYTES];
		free(pinned);
		return fail_cuda(err, (int)code, "cudaHostRegister of %s",
			units_format_size((double)bytes, size));
	}
	*pinned = (struct pinned){.memory = memory, .bytes = bytes, .next = all};
	all = pinned;
	*out = pinned;
	return 0;
}

int pins_add(struct pin **list, void *memory, size_t bytes, struct error *err)
{
	struct pin *pin = malloc(sizeof *pin);
	if (!pin)
		return error_set(err, -ENOMEM, "cuda: out of memory");
	(void)pthread_mutex_lock(&lock);
	struct pinned *pinned = pins_find(memory, bytes);
	const int code = pinned ? 0 : register_memory(&pinned, memory, bytes, err);
	if (pinned)
		pinned->holders++;
	(void)pthread_mutex_unlock(&lock);
	if (code) {
		free(pin);
		return code;
	}
	*pin = (struct pin){.pinned = pinned, .next = *list};
	*list = pin;
	return 0;
}

static void pins_leave(struct pinned *pinned)
{
	if (--pinned->holders > 0)
		return;
	struct pinned **at = &all;
	while (*at != pinned)
		at = &(*at)->next;
	*at = pinned->next;
	if (cudaHostUnregister(pinned->memory) != cudaSuccess)
		(void)cudaGetLastError();
	free(pinned);
}

void pins_release(struct pin **list)
{
	(void)pthread_mutex_lock(&lock);
	while (*list) {
		struct pin *pin = *list;
		*list = pin->next;
		pins_leave(pin->pinned);
		free(pin);
	}
	(void)pthread_mutex_unlock(&lock);
}
