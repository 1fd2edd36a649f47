/* NVTX is a header: it looks for a profiler at the first call and else does nothing. */
#include "workloads/backend/cuda/nvtx.h"

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stddef.h>

static nvtxDomainHandle_t domain;

static void create_domain(void)
{
	domain = nvtxDomainCreateA("mlbench");
}

void nvtx_mark(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, create_domain);
	if (!name) {
		(void)nvtxDomainRangePop(domain);
		return;
	}
	const nvtxEventAttributes_t attributes = {
		.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_ASCII,
		.message.ascii = name,
	};
	(void)nvtxDomainRangePushEx(domain, &attributes);
}
