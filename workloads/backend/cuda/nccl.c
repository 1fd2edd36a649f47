/* Finding NCCL.  The library stays open: its threads and those of the driver that it starts do not end with a repetition. */
#include "workloads/backend/cuda/nccl.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WHY_BYTES = 192, WHAT_BYTES = 192 };

static const char library[] = "libnccl.so.2";

static struct {
	pthread_once_t once;
	struct nccl functions;
	const struct nccl *found; /* NULL: why */
	char why[WHY_BYTES];
} state = {.once = PTHREAD_ONCE_INIT};

/* A pointer to a function is not one to data in C: it is copied byte by byte. */
static bool look_up(void *handle, const char *name, void *function, size_t size)
{
	void *const symbol = dlsym(handle, name);
	memcpy(function, &symbol, size);
	if (symbol)
		return true;
	(void)snprintf(state.why, sizeof state.why, "%s is too old: it has no %s", library, name);
	return false;
}

static bool look_up_all(void *handle)
{
	struct nccl *f = &state.functions;
	const struct {
		const char *name;
		void *function;
	} wanted[] = {
		{"ncclGetVersion", &f->get_version},
		{"ncclGetUniqueId", &f->get_unique_id},
		{"ncclCommInitRankConfig", &f->comm_init_rank_config},
		{"ncclCommGetAsyncError", &f->comm_get_async_error},
		{"ncclCommAbort", &f->comm_abort},
		{"ncclAllReduce", &f->all_reduce},
		{"ncclGetErrorString", &f->get_error_string},
	};
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		if (!look_up(handle, wanted[i].name, wanted[i].function, sizeof(void *)))
			return false;
	return true;
}

static void nccl_open_library(void)
{
	void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		const char *const reason = dlerror();
		(void)snprintf(
			state.why, sizeof state.why, "no NCCL: %.160s", reason ? reason : library);
		return;
	}
	if (look_up_all(handle))
		state.found = &state.functions;
}

const struct nccl *nccl_find(char *why, size_t room)
{
	(void)pthread_once(&state.once, nccl_open_library);
	if (!state.found && room > 0)
		(void)snprintf(why, room, "%s", state.why);
	return state.found;
}

void nccl_version(char *out, size_t room)
{
	enum { NEW_FROM = 10000, NEW_MAJOR = 10000, OLD_MAJOR = 1000, MINOR = 100 };
	const struct nccl *nccl = nccl_find(out, room);
	int version = 0;
	if (!nccl)
		return;
	if (nccl->get_version(&version) != ncclSuccess) {
		(void)snprintf(out, room, "unknown");
		return;
	}
	/* As NCCL_VERSION of nccl.h, which counts otherwise from 2.9 on. */
	const int major = version < NEW_FROM ? OLD_MAJOR : NEW_MAJOR;
	(void)snprintf(
		out, room, "%d.%d.%d", version / major, version % major / MINOR, version % MINOR);
}

int nccl_fail(
	struct error *err, const struct nccl *nccl, ncclResult_t result, const char *format, ...)
{
	char what[WHAT_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(what, sizeof what, format, args);
	va_end(args);
	const char *const text = nccl->get_error_string(result);
	return error_set(err, -EIO, "cuda: %s: %s (NCCL)", what, text ? text : "unknown error");
}
