/* What it costs to start a kernel, for the host and for the device.
 *
 * The device's own time between two kernels can only be seen when all of them were launched before the first began: else it
 * waits for the host.  So a plug goes first, copies inside its memory that keep it at work, and a measurement counts only if
 * the event behind the plug has not come when the last launch is done. */
#include "workloads/backend/cuda/kernels.h"
#include "workloads/backend/cuda/probe_parts.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>

enum {
	BACK_TO_BACK =
		256, /* launches: fewer than a stream's queue holds, so that none has to wait */
	BEHIND_PLUG = 100,
	GRAPH_KERNELS = 100,
	PLUGS_MOST = 1024, /* copies */
	ROUND_TRIPS_MOST = 20000,
};

static const double PLUG_MOST_NS = 2e8;

static int probe_launches_launch(struct probing *probing, const void *what, struct error *err)
{
	(void)what;
	return CUDA_TRY(err, kernel_nothing(probing->stream));
}

static int launch_graph(struct probing *probing, const void *what, struct error *err)
{
	(void)what;
	return CUDA_TRY(err, cudaGraphLaunch(probing->graph, probing->stream));
}

static int launch_many(struct probing *probing, const void *what, struct error *err)
{
	int code = 0;
	for (unsigned i = 0; i < BACK_TO_BACK && code == 0; i++)
		code = probe_launches_launch(probing, what, err);
	return code;
}

/* The calls alone, on an idle stream. */
static int burst_ns(struct probing *probing, double *ns, struct error *err)
{
	int code = CUDA_TRY(err, cudaStreamSynchronize(probing->stream));
	const uint64_t begin = clock_now_ns();
	if (code == 0)
		code = launch_many(probing, NULL, err);
	*ns = (double)(clock_now_ns() - begin) / BACK_TO_BACK;
	return code ? code : CUDA_TRY(err, cudaStreamSynchronize(probing->stream));
}

static int visit_launch(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	(void)quantity;
	const uint64_t end = clock_now_ns() + (uint64_t)probing->slot_ns;
	double sum = 0;
	double ns = 0;
	unsigned bursts = 0;
	int code = burst_ns(probing, &ns, err); /* warms up */
	do {
		if (code == 0)
			code = burst_ns(probing, &ns, err);
		sum += ns;
		bursts++;
	} while (code == 0 && clock_now_ns() < end);
	*value = sum / bursts;
	return code;
}

static int plug(struct probing *probing, unsigned copies, struct error *err)
{
	int code = 0;
	for (unsigned i = 0; i < copies && code == 0; i++)
		code = CUDA_TRY(err,
			cudaMemcpyAsync(probing->device[1], probing->device[0],
				probing->memory_bytes, cudaMemcpyDeviceToDevice, probing->stream));
	return code;
}

/* valid: the device was still behind the plug when the host had launched everything. */
static int behind_plug_ns(struct probing *probing, unsigned copies, probing_work *work,
	unsigned count, bool *valid, double *ns, struct error *err)
{
	float ms = 0;
	cudaError_t begun = cudaSuccess;
	int code = plug(probing, copies, err);
	if (code == 0)
		code = CUDA_TRY(err, cudaEventRecord(probing->begin, probing->stream));
	for (unsigned i = 0; i < count && code == 0; i++)
		code = work(probing, NULL, err);
	if (code == 0)
		code = CUDA_TRY(err, cudaEventRecord(probing->end, probing->stream));
	if (code == 0)
		begun = cudaEventQuery(probing->begin);
	*valid = begun == cudaErrorNotReady;
	if (code == 0 && begun != cudaSuccess && !*valid)
		code = fail_cuda(err, (int)begun, "cudaEventQuery");
	if (*valid)
		(void)cudaGetLastError(); /* "not ready" is no failure */
	if (code == 0)
		code = CUDA_TRY(err, cudaEventSynchronize(probing->end));
	if (code == 0)
		code = CUDA_TRY(err, cudaEventElapsedTime(&ms, probing->begin, probing->end));
	*ns = (double)ms * (double)NS_PER_MS / count;
	return code;
}

/* NAN: the plug was too short, as far as it may grow. */
static int on_device_ns(struct probing *probing, probing_work *work, unsigned count, double *value,
	struct error *err)
{
	double ns = NAN;
	bool valid = false;
	int code = probing_host_ns(probing, work, NULL, 1, &ns, err); /* warms up */
	const uint64_t begun = clock_now_ns();
	for (unsigned copies = 1; code == 0 && !valid && copies <= PLUGS_MOST; copies *= 2) {
		code = behind_plug_ns(probing, copies, work, count, &valid, &ns, err);
		if ((double)(clock_now_ns() - begun) > PLUG_MOST_NS || probing_stopped(probing))
			break;
	}
	*value = valid ? ns : NAN;
	return code;
}

static int visit_kernel(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	(void)quantity;
	return on_device_ns(probing, probe_launches_launch, BEHIND_PLUG, value, err);
}

static int visit_graph(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	(void)quantity;
	const int code = on_device_ns(probing, launch_graph, 1, value, err);
	*value /= GRAPH_KERNELS;
	return code;
}

static int visit_round_trip(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	(void)quantity;
	double ns = 0;
	int code = probing_host_ns(probing, probe_launches_launch, NULL, 1, &ns, err);
	const uint64_t begin = clock_now_ns();
	uint64_t now = begin;
	unsigned trips = 0;
	while (code == 0 && trips < ROUND_TRIPS_MOST &&
		(trips == 0 || (double)(now - begin) < probing->slot_ns)) {
		code = probing_host_ns(probing, probe_launches_launch, NULL, 1, &ns, err);
		now = clock_now_ns();
		trips++;
	}
	*value = trips > 0 ? (double)(now - begin) / trips : NAN;
	return code;
}

static int record_graph(struct probing *probing, struct error *err)
{
	cudaGraph_t graph = NULL;
	int code = CUDA_TRY(
		err, cudaStreamBeginCapture(probing->stream, cudaStreamCaptureModeThreadLocal));
	if (code)
		return code;
	for (unsigned i = 0; i < GRAPH_KERNELS && code == 0; i++)
		code = probe_launches_launch(probing, NULL, err);
	struct error other = {0};
	const int ended = CUDA_TRY(&other, cudaStreamEndCapture(probing->stream, &graph));
	if (code == 0 && ended)
		code = error_set(err, ended, "%s", other.text);
	if (code == 0)
		code = CUDA_TRY(err, cudaGraphInstantiate(&probing->graph, graph, 0));
	if (graph)
		(void)cudaGraphDestroy(graph);
	return code;
}

void probing_close_launches(struct probing *probing)
{
	if (probing->graph)
		(void)cudaGraphExecDestroy(probing->graph);
	probing->graph = NULL;
}

int probing_add_launches(struct probing *probing, struct error *err)
{
	struct error why = {0};
	const bool recorded = record_graph(probing, &why) == 0;
	const struct {
		const char *name;
		int (*visit)(struct probing *, const struct quantity *, double *, struct error *);
		struct cuda_probe_series *series;
		bool wanted;
	} all[] = {
		{"launch", visit_launch, &probing->out->launch_ns, true},
		{"kernel", visit_kernel, &probing->out->kernel_ns, true},
		{"kernel in a graph", visit_graph, &probing->out->graph_launch_ns, recorded},
		{"round trip", visit_round_trip, &probing->out->round_trip_ns, true},
	};
	(void)err;
	if (!recorded)
		probing_lack(probing, "kernel in a graph: %.180s", why.text);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct quantity *quantity =
			all[i].wanted ? probing_add(probing, "%s", all[i].name) : NULL;
		if (!quantity)
			continue;
		quantity->visit = all[i].visit;
		quantity->series = all[i].series;
	}
	return 0;
}
