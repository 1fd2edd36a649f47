/* cuBLASLt's handles, heuristics and products.  The heuristics propose several kernels that differ in the order of their
 * sums, in workspace and, with simulated speeds, in time; a product is checked like the real one's, and more. */
#include "tests/device/double/handles.h"
#include "tests/device/double/lt_compute.h"
#include "tests/device/double/memory.h"
#include "tests/device/double/stream.h"

#include <cstdlib>
#include <cstring>

namespace twin
{
namespace
{

enum { ALGORITHMS = 4, POINTER_BYTES = 16, WORKSPACE_ALIGNMENT = 256 };
enum : uint64_t { ALGORITHM_MAGIC = 0x616c676f };

/* What cublasLtMatmulAlgo_t holds. */
struct algorithm {
	uint64_t magic;
	uint32_t id, splits;
	uint64_t workspace, problem; /* a hash of what it was proposed for */
	uint32_t alignment[MATRICES];
	double slowness; /* of the simulated time */
};
static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t), "public size");

/* Best first by the library's guess; the second is the fastest, so that timing them is worth it. */
struct kind {
	uint32_t id, splits;
	bool workspace;
	double slowness;
};
const kind kinds[ALGORITHMS] = {
	{66, 1, false, 1.25}, {70, 2, true, 1.0}, {21, 1, true, 1.5}, {13, 3, true, 2.0}};

struct handle {
	int device;
};

handles<cublasLtHandle_t, handle> &table()
{
	static auto *const instance = new handles<cublasLtHandle_t, handle>(0x550000000000);
	return *instance;
}

std::shared_ptr<handle> find(cublasLtHandle_t which)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	return table().find(which);
}

bool verbose()
{
	return getenv("MLBENCH_DOUBLE_VERBOSE") != nullptr;
}

cublasStatus_t refuse(const char *who, cublasStatus_t status, const char *why)
{
	if (status == CUBLAS_STATUS_INVALID_VALUE)
		complain("%s: %s", who, why);
	else if (verbose())
		fprintf(stderr, "test double: %s: not supported: %s\n", who, why);
	return status;
}

cublasStatus_t ask(
	const char *who, cublasLtMatmulDesc_t how, const cublasLtMatrixLayout_t *of, product &out)
{
	const matmul *const wanted = matmul_of(how);
	if (!wanted)
		return refuse(who, CUBLAS_STATUS_INVALID_VALUE, "no such descriptor");
	out.how = *wanted;
	for (int i = A; i < MATRICES; i++) {
		const layout *const one = layout_of(of[i]);
		if (!one)
			return refuse(who, CUBLAS_STATUS_INVALID_VALUE, "no such layout");
		out.of[i] = *one;
	}
	out.m = out.of[D].rows;
	out.n = out.of[D].cols;
	out.k = wanted->transpose[A] == CUBLAS_OP_N ? out.of[A].cols : out.of[A].rows;
	const char *why = "";
	const cublasStatus_t status = check_product(out, &why);
	return status == CUBLAS_STATUS_SUCCESS ? status : refuse(who, status, why);
}

/* FNV-1a over what a kernel is chosen by: all but addresses. */
uint64_t hash_of(const product &asked)
{
	product plain = asked;
	plain.how.bias = plain.how.aux = plain.how.amax = plain.how.aux_amax = nullptr;
	plain.how.out_scale = nullptr;
	plain.how.aux_scale = nullptr;
	for (const void *&scale : plain.how.scales)
		scale = nullptr;
	uint64_t hash = 14695981039346656037U;
	for (size_t i = 0; i < sizeof plain; i++)
		hash = (hash ^ ((const unsigned char *)&plain)[i]) * 1099511628211U;
	return hash;
}

uint64_t workspace_of(const product &asked, const kind &one)
{
	const uint64_t bytes = asked.m * asked.n * sizeof(float) * one.splits;
	return one.workspace ? (bytes + WORKSPACE_ALIGNMENT - 1) / WORKSPACE_ALIGNMENT *
				       WORKSPACE_ALIGNMENT
			     : 0;
}

algorithm describe(const product &asked, const kind &one, const preference &wanted)
{
	algorithm out = {};
	out.magic = ALGORITHM_MAGIC;
	out.id = one.id;
	out.splits = one.splits;
	out.workspace = workspace_of(asked, one);
	out.problem = hash_of(asked);
	for (int i = A; i < MATRICES; i++) {
		const uint32_t least = (uint32_t)type_bytes(asked.of[i].type);
		out.alignment[i] = wanted.alignment[i] >= POINTER_BYTES ? (uint32_t)POINTER_BYTES
				   : wanted.alignment[i] > least        ? wanted.alignment[i]
									: least;
	}
	out.slowness = one.slowness;
	return out;
}

bool allowed(const product &asked, const kind &one, const preference &wanted)
{
	if (workspace_of(asked, one) > wanted.workspace)
		return false;
	return one.splits == 1 || (wanted.reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
}

int propose(const product &asked, const preference &wanted, int most,
	cublasLtMatmulHeuristicResult_t *out)
{
	int count = 0;
	if (is_fp8(asked.of[A].type))
		for (const uint32_t alignment : wanted.alignment)
			if (alignment < POINTER_BYTES)
				return 0; /* fp8 needs pointers of 16 bytes */
	for (const kind &one : kinds) {
		if (count == most || count == set.kernels || !allowed(asked, one, wanted))
			continue;
		const algorithm made = describe(asked, one, wanted);
		out[count] = {};
		memcpy(&out[count].algo, &made, sizeof made);
		out[count].workspaceSize = made.workspace;
		out[count].state = CUBLAS_STATUS_SUCCESS;
		out[count].wavesCount = 1.0f;
		count++;
	}
	return count;
}

/* Bytes from a matrix's first to its last element, all of the batch. */
size_t bytes_of(const layout &of)
{
	const uint64_t lines = of.order == CUBLASLT_ORDER_COL ? of.cols : of.rows,
		       length = of.order == CUBLASLT_ORDER_COL ? of.rows : of.cols;
	const uint64_t elements = (lines - 1) * (uint64_t)of.ld + length +
				  (uint64_t)(of.batch - 1) * (uint64_t)of.stride;
	return elements * type_bytes(of.type);
}

bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	return (const char *)a < (const char *)b + b_bytes &&
	       (const char *)b < (const char *)a + a_bytes;
}

const char who[] = "cublasLtMatmul";

bool matrices_fit(const product &asked, const operands &given, const algorithm &chosen, int device)
{
	static const char *const names[] = {"A", "B", "C", "D"};
	for (int i = A; i < MATRICES; i++) {
		if (!on_device(who, names[i], given.data[i], bytes_of(asked.of[i]), device))
			return false;
		if ((uintptr_t)given.data[i] % chosen.alignment[i] == 0)
			continue;
		complain("%s: %s is not aligned to the %u bytes that its kernel was chosen for",
			who, names[i], chosen.alignment[i]);
		return false;
	}
	for (int i = A; i <= B; i++)
		if (overlap(given.data[i], bytes_of(asked.of[i]), given.data[D],
			    bytes_of(asked.of[D]))) {
			complain("%s: D overlaps %s", who, names[i]);
			return false;
		}
	if (given.data[C] == given.data[D] &&
		memcmp(&asked.of[C], &asked.of[D], sizeof asked.of[C])) {
		complain("%s: C and D are in one place with two layouts", who);
		return false;
	}
	return true;
}

bool extras_fit(const product &asked, int device)
{
	const uint32_t epilogue = asked.how.epilogue;
	if ((adds_bias(epilogue) || sums_bias(epilogue)) &&
		!on_device(who, "the bias", asked.how.bias,
			bias_length(asked) * type_bytes(bias_type(asked)), device))
		return false;
	const size_t mask = (size_t)asked.how.aux_ld * asked.n / 8;
	if (uses_mask(epilogue) && !on_device(who, "the mask", asked.how.aux, mask, device))
		return false;
	if (uses_mask(epilogue) && (uintptr_t)asked.how.aux % POINTER_BYTES) {
		complain("%s: the mask is not aligned to 16 bytes", who);
		return false;
	}
	for (const void *scale : asked.how.scales) {
		if (scale && !on_device(who, "a scale", scale, sizeof(float), device))
			return false;
		if ((uintptr_t)scale % POINTER_BYTES) {
			complain("%s: a scale is not aligned to 16 bytes", who);
			return false;
		}
	}
	return !asked.how.amax || on_device(who, "amax", asked.how.amax, sizeof(float), device);
}

bool workspace_fits(const algorithm &chosen, void *workspace, size_t bytes, int device)
{
	if (chosen.workspace == 0)
		return true;
	if (bytes < chosen.workspace || (uintptr_t)workspace % WORKSPACE_ALIGNMENT) {
		complain("%s: %zu bytes of workspace, %zu are needed, aligned to 256", who, bytes,
			(size_t)chosen.workspace);
		return false;
	}
	return on_device(who, "the workspace", workspace, bytes, device);
}

/* Two products at the same time in one workspace spoil one another: each leaves a mark and looks for it at the end. */
class workspace_use
{
      public:
	workspace_use(void *at, size_t bytes)
	    : words((uint64_t *)at), count(bytes / sizeof(uint64_t))
	{
		static std::atomic<uint64_t> uses;
		mark = ++uses * 0x9e3779b97f4a7c15U;
		for (size_t i = 0; i < count; i++)
			words[i] = mark + i;
	}
	bool intact() const
	{
		for (size_t i = 0; i < count; i++)
			if (words[i] != mark + i)
				return false;
		return true;
	}

      private:
	uint64_t *const words;
	const size_t count;
	uint64_t mark;
};

void run(const product &asked, const operands &given, const algorithm &chosen, void *workspace)
{
	const uint64_t begin = now_ns();
	if (injected("product")) {
		fault(current_device(), cudaErrorLaunchFailure);
		return;
	}
	const workspace_use use(workspace, workspace ? chosen.workspace : 0);
	compute_product(asked, given, chosen.splits);
	until_ns(begin + (uint64_t)((double)set.kernel_ns * chosen.slowness));
	if (use.intact())
		return;
	complain("%s: another product used the same workspace at the same time", who);
	fault(current_device(), cudaErrorLaunchFailure);
}

cublasStatus_t choose(const product &asked, const cublasLtMatmulAlgo_t *algo, algorithm &out)
{
	if (!algo) {
		preference any = {};
		for (uint32_t &alignment : any.alignment)
			alignment = 1;
		out = describe(asked, kinds[0], any);
		return CUBLAS_STATUS_SUCCESS;
	}
	memcpy(&out, algo, sizeof out);
	if (out.magic == ALGORITHM_MAGIC && out.problem == hash_of(asked))
		return CUBLAS_STATUS_SUCCESS;
	return refuse(
		who, CUBLAS_STATUS_INVALID_VALUE, "the algorithm was proposed for another product");
}

} // namespace
} // namespace twin

using namespace twin;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
	if (!out)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (enter("cublasLtCreate", frame::any) != cudaSuccess)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	*out = table().add(std::make_shared<handle>(handle{current_device()}));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t which)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	return table().remove(which) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

size_t cublasLtGetVersion(void)
{
	return CUBLAS_VERSION;
}

size_t cublasLtGetCudartVersion(void)
{
	return CUDART_VERSION;
}

cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value)
{
	*value = type == MAJOR_VERSION   ? CUBLAS_VER_MAJOR
		 : type == MINOR_VERSION ? CUBLAS_VER_MINOR
					 : CUBLAS_VER_PATCH;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t which, cublasLtMatmulDesc_t how,
	cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preferences, int most,
	cublasLtMatmulHeuristicResult_t out[], int *count)
{
	const char name[] = "cublasLtMatmulAlgoGetHeuristic";
	const preference *const wanted = preference_of(preferences);
	const cublasLtMatrixLayout_t of[] = {a, b, c, d};
	product asked = {};
	if (injected(name))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	if (!find(which))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (most < 1 || !wanted || !out || !count)
		return refuse(name, CUBLAS_STATUS_INVALID_VALUE, "nothing is asked for");
	*count = 0;
	const cublasStatus_t status = ask(name, how, of, asked);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	*count = propose(asked, *wanted, most, out);
	return *count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t which, cublasLtMatmulDesc_t how,
	cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulHeuristicResult_t *out)
{
	const cublasLtMatrixLayout_t of[] = {a, b, c, d};
	product asked = {};
	algorithm chosen;
	if (!find(which) || !algo || !out)
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status = ask("cublasLtMatmulAlgoCheck", how, of, asked);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = choose(asked, algo, chosen);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	out->workspaceSize = chosen.workspace;
	out->state = CUBLAS_STATUS_SUCCESS;
	out->wavesCount = 1.0f;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoConfigAttributes_t name, void *to, size_t bytes, size_t *written)
{
	algorithm chosen;
	uint32_t value = 0;
	if (!algo || bytes != sizeof value || !to)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&chosen, algo, sizeof chosen);
	if (name == CUBLASLT_ALGO_CONFIG_ID)
		value = chosen.id;
	else if (name == CUBLASLT_ALGO_CONFIG_SPLITK_NUM)
		value = chosen.splits;
	else if (name == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)
		value = chosen.splits > 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
					  : CUBLASLT_REDUCTION_SCHEME_NONE;
	memcpy(to, &value, sizeof value);
	if (written)
		*written = sizeof value;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t which, cublasLtMatmulDesc_t how, const void *alpha,
	const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
	cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
	cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
	const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes,
	cudaStream_t stream)
{
	const cublasLtMatrixLayout_t of[] = {a_layout, b_layout, c_layout, d_layout};
	const std::shared_ptr<handle> context = find(which);
	const stream_ref on = stream_find(stream);
	product asked = {};
	algorithm chosen;
	if (!context)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (enter(who, frame::safe) != cudaSuccess)
		return CUBLAS_STATUS_EXECUTION_FAILED;
	cublasStatus_t status = ask(who, how, of, asked);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = choose(asked, algo, chosen);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (!alpha || !beta || !on || on->device != context->device)
		return refuse(who, CUBLAS_STATUS_INVALID_VALUE,
			"no alpha, no beta, or no stream of the handle's device");
	const operands given = {{a, b, c, d}, *(const float *)alpha, *(const float *)beta};
	if (!matrices_fit(asked, given, chosen, on->device) || !extras_fit(asked, on->device) ||
		!workspace_fits(chosen, workspace, workspace_bytes, on->device))
		return CUBLAS_STATUS_INVALID_VALUE;
	busy_ns(set.launch_ns);
	const cudaError_t error = submit(who, stream,
		[asked, given, chosen, workspace] { run(asked, given, chosen, workspace); });
	return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
	switch (status) {
	case CUBLAS_STATUS_SUCCESS:
		return "CUBLAS_STATUS_SUCCESS";
	case CUBLAS_STATUS_NOT_INITIALIZED:
		return "CUBLAS_STATUS_NOT_INITIALIZED";
	case CUBLAS_STATUS_ALLOC_FAILED:
		return "CUBLAS_STATUS_ALLOC_FAILED";
	case CUBLAS_STATUS_INVALID_VALUE:
		return "CUBLAS_STATUS_INVALID_VALUE";
	case CUBLAS_STATUS_ARCH_MISMATCH:
		return "CUBLAS_STATUS_ARCH_MISMATCH";
	case CUBLAS_STATUS_EXECUTION_FAILED:
		return "CUBLAS_STATUS_EXECUTION_FAILED";
	case CUBLAS_STATUS_INTERNAL_ERROR:
		return "CUBLAS_STATUS_INTERNAL_ERROR";
	case CUBLAS_STATUS_NOT_SUPPORTED:
		return "CUBLAS_STATUS_NOT_SUPPORTED";
	default:
		return "an unknown status";
	}
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
	return cublasLtGetStatusName(status);
}

} // extern "C"
