/* Recording a stream's work instead of doing it, and what the recorded steps tell of the time between kernels. */
#include "workloads/backend/cuda/step_graph.h"

#include "harness/base/clock.h"
#include "workloads/backend/cuda/device_session.h"
#include "workloads/backend/cuda/fail.h"
#include "workloads/backend/cuda/wait.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
	EMPTY_KERNELS = 128,
	EMPTY_REPEATS = 5,
	SAMPLE_EVERY = 256, /* of candidates, after the first ones: powers of two */
	PATIENCE_NS = 1000000000,
};

static const double SMOOTHING = 0.25; /* weight of the newest */

typedef int enqueuer(struct cuda_session *session, const void *what, struct error *err);

/* --- recording ---------------------------------------------------------------------------------------------------- */

static int instantiate(struct record *record, cudaGraph_t graph, struct error *err)
{
	const int code = CUDA_TRY(err, cudaGraphGetNodes(graph, NULL, &record->nodes));
	return code ? code : CUDA_TRY(err, cudaGraphInstantiate(&record->exec, graph, 0));
}

/* Whatever went wrong, the stream must not stay a recording one. */
static cudaError_t end_capture(cudaStream_t stream, cudaGraph_t *graph)
{
	const cudaError_t ended = cudaStreamEndCapture(stream, graph);
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	if (ended != cudaSuccess && cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
		status != cudaStreamCaptureStatusNone)
		(void)cudaStreamEndCapture(stream, graph);
	return ended;
}

/* Other threads upload meanwhile, so only this one's calls are held to what a recording allows. */
static int capture(struct cuda_session *session, struct record *record, enqueuer *enqueue,
	const void *what, struct error *err)
{
	cudaGraph_t graph = NULL;
	cudaStream_t stream = session->streams[0];
	int code = CUDA_TRY(err, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	if (code)
		return code;
	code = enqueue(session, what, err);
	const cudaError_t ended = end_capture(stream, &graph);
	if (!code && ended != cudaSuccess)
		code = fail_cuda(err, (int)ended, "recording a step");
	if (!code)
		code = instantiate(record, graph, err);
	if (graph)
		(void)cudaGraphDestroy(graph);
	(void)cudaGetLastError();
	return code;
}

static int record_run(struct cuda_session *session, struct record *record, enqueuer *enqueue,
	const void *what, struct error *err)
{
	if (!record->exec && capture(session, record, enqueue, what, err)) {
		session->records.refused = true;
		return error_prefix(err, -ENOTSUP, "a step cannot be recorded as a graph");
	}
	return CUDA_TRY(err, cudaGraphLaunch(record->exec, session->streams[0]));
}

struct part {
	enum record_kind kind;
	unsigned place;
};

static int enqueue_part(struct cuda_session *session, const void *what, struct error *err)
{
	const struct part *part = what;
	const float carry = part->kind & RECORD_ADDS ? 1.0F : 0.0F;
	const int code = enqueue_gradients(session, &session->staging.places[part->place],
		session->options.batch_size, carry, err);
	return code || !(part->kind & RECORD_UPDATES) ? code : enqueue_update(session, err);
}

static int enqueue_update_alone(struct cuda_session *session, const void *what, struct error *err)
{
	(void)what;
	return enqueue_update(session, err);
}

int records_run(
	struct cuda_session *session, enum record_kind kind, unsigned place, struct error *err)
{
	const struct part part = {kind, place};
	struct record *record = &session->records.list[place * RECORD_KINDS + (unsigned)kind];
	return record_run(session, record, enqueue_part, &part, err);
}

int records_run_update(struct cuda_session *session, struct error *err)
{
	return record_run(session, &session->records.update, enqueue_update_alone, NULL, err);
}

/* --- the period of empty kernels ------------------------------------------------------------------------------------ */

static int enqueue_empty(struct cuda_session *session, const void *what, struct error *err)
{
	const unsigned *count = what;
	for (unsigned i = 0; i < *count; i++) {
		const int code = kernel_nothing(session->streams[0]);
		if (code)
			return fail_cuda(err, code, "an empty kernel");
	}
	return 0;
}

static int time_launch(
	struct cuda_session *session, const struct record *record, uint64_t *ns, struct error *err)
{
	const struct flight *flight = &session->flights[0];
	cudaStream_t stream = session->streams[0];
	int code = CUDA_TRY(err, cudaEventRecord(flight->begin, stream));
	if (!code)
		code = CUDA_TRY(err, cudaGraphLaunch(record->exec, stream));
	if (!code)
		code = CUDA_TRY(err, cudaEventRecord(flight->end, stream));
	if (code)
		return code;
	const cudaError_t came =
		wait_for(flight->end, 0, clock_now_ns() + PATIENCE_NS, session->options.stop);
	if (came != cudaSuccess)
		return fail_cuda(err, (int)came, "a graph of empty kernels");
	return device_clock_between(flight->begin, flight->end, ns, err);
}

static int measure_gap(struct cuda_session *session, struct error *err)
{
	static const unsigned one = 1;
	static const unsigned many = EMPTY_KERNELS;
	struct record record = {0};
	uint64_t least_ns = UINT64_MAX;
	int code = enqueue_empty(session, &one, err);
	if (!code)
		code = capture(session, &record, enqueue_empty, &many, err);
	for (int i = 0; i < EMPTY_REPEATS && !code; i++) {
		uint64_t ns = 0;
		code = time_launch(session, &record, &ns, err);
		if (!code && ns < least_ns)
			least_ns = ns;
	}
	if (!code)
		session->records.gap_ns = (double)least_ns / EMPTY_KERNELS;
	if (record.exec)
		(void)cudaGraphExecDestroy(record.exec);
	return code;
}

int records_open(struct cuda_session *session, struct error *err)
{
	struct records *records = &session->records;
	records->gap_ns = NAN;
	records->places = session->staging.count;
	records->list = calloc((size_t)records->places * RECORD_KINDS, sizeof *records->list);
	if (!records->list)
		return error_set(err, -ENOMEM, "cuda: out of memory");
	/* Without it, times between kernels are not told; a device that is lost is found by what follows. */
	struct error why;
	if (measure_gap(session, &why))
		records->gap_ns = NAN;
	return 0;
}

static void close_record(struct record *record)
{
	if (record->exec)
		(void)cudaGraphExecDestroy(record->exec);
}

void records_close(struct records *records)
{
	for (size_t i = 0; records->list && i < (size_t)records->places * RECORD_KINDS; i++)
		close_record(&records->list[i]);
	close_record(&records->update);
	free(records->list);
	*records = (struct records){0};
}

/* --- which steps, and what they tell --------------------------------------------------------------------------------- */

static bool record_is_due(uint64_t candidate)
{
	return (candidate & (candidate - 1)) == 0 || candidate % SAMPLE_EVERY == 0;
}

bool records_wanted(struct cuda_session *session, enum record_kind kind, unsigned place)
{
	struct records *records = &session->records;
	/* The first one loads the kernels, which a recording may not. */
	if (!records->seen[kind]) {
		records->seen[kind] = true;
		return false;
	}
	if (session->options.graph)
		return true;
	if (records->refused || place != 0 || isnan(records->gap_ns))
		return false;
	return record_is_due(++records->candidates[kind]);
}

/* Nodes of all that a step of this kind launches. */
static size_t count_nodes(const struct cuda_session *session, enum record_kind kind)
{
	const struct records *records = &session->records;
	size_t nodes = 0;
	for (unsigned place = 0; place < records->places && nodes == 0; place++)
		nodes = records->list[place * RECORD_KINDS + (unsigned)kind].nodes;
	if (nodes > 0 || !(kind & RECORD_UPDATES))
		return nodes;
	/* The update is apart, behind the exchange. */
	nodes = count_nodes(session, (enum record_kind)(kind & ~(unsigned)RECORD_UPDATES));
	return nodes > 0 ? nodes + records->update.nodes : 0;
}

double records_idle_share(struct cuda_session *session, enum record_kind kind, bool was_recorded,
	double work_ns, double device_ns)
{
	struct records *records = &session->records;
	if (isnan(records->gap_ns) || device_ns <= 0)
		return NAN;
	if (was_recorded) {
		const double gaps_ns = (double)count_nodes(session, kind) * records->gap_ns;
		const double busy_ns = fmax(work_ns - gaps_ns, 0);
		const double before = records->busy_ns[kind];
		records->busy_ns[kind] =
			before > 0 ? before + SMOOTHING * (busy_ns - before) : busy_ns;
		return fmin(gaps_ns, work_ns) / device_ns;
	}
	if (records->busy_ns[kind] <= 0)
		return NAN;
	return fmax(work_ns - records->busy_ns[kind], 0) / device_ns;
}
