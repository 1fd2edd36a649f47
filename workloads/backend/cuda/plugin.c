/* The plug-in's table, and what is there: versions and devices. */
#include "workloads/backend/cuda/plugin.h"

#include "workloads/backend/cuda/device_group.h"
#include "workloads/backend/cuda/device_probe.h"
#include "workloads/backend/cuda/device_session.h"
#include "workloads/backend/cuda/runtime.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>

enum {
	MAJOR_FACTOR = 1000, /* 13020 is CUDA 13.2 */
	MINOR_FACTOR = 10,
	CUBLAS_MAJOR_FACTOR = 10000, /* 130102 is cuBLAS 13.1.2 */
	CUBLAS_MINOR_FACTOR = 100,
	CAPABILITY_LEAST = 80, /* sm_80: what the kernels are built for */
	CAPABILITY_FP8 = 89,
	CAPABILITY_FACTOR = 10,
};

#ifdef MLBENCH_CUDA_DOUBLE
#define IS_TEST_DOUBLE true
#else
#define IS_TEST_DOUBLE false
#endif

/* --- versions --------------------------------------------------------------------------------- */

struct version {
	int major, minor;
};

static struct version plugin_version_of(int number)
{
	return (struct version){number / MAJOR_FACTOR, number % MAJOR_FACTOR / MINOR_FACTOR};
}

static void plugin_add_cublas(struct cuda_node *node)
{
	const size_t version = cublasLtGetVersion();
	(void)snprintf(node->cublas, sizeof node->cublas, "%zu.%zu.%zu",
		version / CUBLAS_MAJOR_FACTOR, version % CUBLAS_MAJOR_FACTOR / CUBLAS_MINOR_FACTOR,
		version % CUBLAS_MINOR_FACTOR);
}

/* --- devices ---------------------------------------------------------------------------------- */

static unsigned plugin_capability(const struct cuda_device_facts *facts)
{
	return facts->major * CAPABILITY_FACTOR + facts->minor;
}

static void plugin_set_precisions(struct cuda_device_facts *facts)
{
	const bool usable = plugin_capability(facts) >= CAPABILITY_LEAST;
	for (size_t i = 0; i <= STEP_PRECISION_FP8; i++)
		facts->precisions[i] = usable;
	facts->precisions[STEP_PRECISION_FP8] = plugin_capability(facts) >= CAPABILITY_FP8;
}

static int plugin_describe_device(struct cuda_device_facts *facts, int device, struct error *err)
{
	struct cudaDeviceProp properties;
	int code = CUDA_TRY(err, cudaGetDeviceProperties(&properties, device));
	if (code)
		return code;
	*facts = (struct cuda_device_facts){
		.major = (unsigned)properties.major,
		.minor = (unsigned)properties.minor,
		.multiprocessors = (unsigned)properties.multiProcessorCount,
		.memory_bytes = properties.totalGlobalMem,
		.l2_bytes = (uint64_t)properties.l2CacheSize,
	};
	(void)snprintf(facts->name, sizeof facts->name, "%.63s", properties.name);
	if (cudaDeviceGetPCIBusId(facts->bus, (int)sizeof facts->bus, device) != cudaSuccess) {
		(void)cudaGetLastError();
		facts->bus[0] = '\0';
	}
	plugin_set_precisions(facts);
	return 0;
}

static int plugin_refuse_old_devices(const struct cuda_node *node, struct error *err)
{
	for (size_t i = 0; i < node->count; i++)
		if (plugin_capability(&node->devices[i]) >= CAPABILITY_LEAST)
			return 0;
	return error_set(err, -ENODEV,
		"no usable device: %s is sm_%u, but the plug-in needs sm_%d or newer",
		node->devices[0].name, plugin_capability(&node->devices[0]), CAPABILITY_LEAST);
}

/* Why there is no device, with both versions where they are the reason. */
static int plugin_refuse_node(const struct cuda_node *node, cudaError_t code, struct error *err)
{
	const struct version driver = plugin_version_of(node->driver);
	const struct version runtime = plugin_version_of(node->runtime);
	(void)cudaGetLastError();
	if (node->driver == 0)
		return error_set(err, -ENOTSUP,
			"no NVIDIA driver (libcuda.so.1 is missing, or the kernel module is not loaded)");
	if (code == cudaErrorInsufficientDriver)
		return error_set(err, -ENOTSUP,
			"the NVIDIA driver is too old: it supports CUDA %d.%d, but the plug-in needs %d.%d",
			driver.major, driver.minor, runtime.major, runtime.minor);
	if (code == cudaErrorNoDevice || code == cudaSuccess)
		return error_set(err, -ENODEV, "no device: the driver (CUDA %d.%d) finds none",
			driver.major, driver.minor);
	return error_set(err, -ENODEV, "no device: %s (%s)", cudaGetErrorString(code),
		cudaGetErrorName(code));
}

static int plugin_read_node(struct cuda_node *out, struct error *err)
{
	*out = (struct cuda_node){0};
	/* Where they fail, what they were to fill stays 0: not known. */
	(void)cudaDriverGetVersion(&out->driver);
	(void)cudaRuntimeGetVersion(&out->runtime);
	plugin_add_cublas(out);
	nccl_version(out->nccl, sizeof out->nccl);
	int count = 0;
	const cudaError_t counted = cudaGetDeviceCount(&count);
	if (counted != cudaSuccess || count <= 0)
		return plugin_refuse_node(out, counted, err);
	int code = 0;
	for (int i = 0; i < count && i < CUDA_DEVICES_MAX && !code; i++) {
		code = plugin_describe_device(&out->devices[i], i, err);
		out->count = code ? 0 : (size_t)i + 1;
	}
	return code ? code : plugin_refuse_old_devices(out, err);
}

/* --- ranges for Nsight Systems, in a domain of our own -------------------------------------------
 *
 * NVTX is a header: it looks for a profiler at the first call; without one a mark is one look at a pointer. */

static nvtxDomainHandle_t nvtx_domain;

static void nvtx_create_domain(void)
{
	nvtx_domain = nvtxDomainCreateA("mlbench");
}

/* Any thread: opens a range of the calling thread; NULL ends the one that was opened last. */
static void plugin_mark(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, nvtx_create_domain);
	if (!name) {
		(void)nvtxDomainRangePop(nvtx_domain);
		return;
	}
	const nvtxEventAttributes_t attributes = {
		.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_ASCII,
		.message.ascii = name,
	};
	(void)nvtxDomainRangePushEx(nvtx_domain, &attributes);
}

/* --- the table -------------------------------------------------------------------------------- */

static char built[96];

static struct cuda_plugin plugin = {
	.abi = CUDA_PLUGIN_ABI,
	.version = MLBENCH_VERSION,
	.built = built,
	.test_double = IS_TEST_DOUBLE,
	.node = plugin_read_node,
	.open = session_open,
	.close = session_close,
	.describe = session_describe,
	.pin = session_pin,
	.launch = session_launch,
	.finish = session_finish,
	.finished = session_finished,
	.evaluate = session_evaluate,
	.upload = session_upload,
	.upload_finish = session_upload_finish,
	.upload_finished = session_upload_finished,
	.device_bytes = session_device_bytes,
	.group_open = group_open,
	.group_id = group_id,
	.join = session_join,
	.computed = session_computed,
	.group_close = group_close,
	.probe = probing_run,
	.repeat = probing_repeat,
	.mark = plugin_mark,
};

const struct cuda_plugin *mlbench_cuda_plugin(void)
{
	const struct version toolkit = plugin_version_of(CUDART_VERSION);
	(void)snprintf(built, sizeof built, "CUDA %d.%d; %s", toolkit.major, toolkit.minor,
		MLBENCH_CUDA_TARGETS);
	return &plugin;
}
