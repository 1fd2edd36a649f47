/* What the plug-in expects of stream capture and graphs, of a real device and of the test double alike. */
#include "tests/device/double/double.h"
#include "tests/device/fixture.h"
#include "tests/device/launches.h"

#include <pthread.h>
#include <stdlib.h>

enum { COUNT = 256, SLOW_ROUNDS = 10 * 1000 * 1000 };

struct streams {
	cudaStream_t main, side;
	cudaEvent_t fork, join;
	float *data;
};

static struct streams open_streams(void)
{
	struct streams s;
	OK(cudaStreamCreateWithFlags(&s.main, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&s.side, cudaStreamNonBlocking));
	OK(cudaEventCreateWithFlags(&s.fork, cudaEventDisableTiming));
	OK(cudaEventCreateWithFlags(&s.join, cudaEventDisableTiming));
	s.data = on_device(COUNT * sizeof(float));
	OK(cudaMemset(s.data, 0, COUNT * sizeof(float)));
	OK(cudaDeviceSynchronize());
	return s;
}

static void close_streams(const struct streams *s)
{
	OK(cudaStreamDestroy(s->main));
	OK(cudaStreamDestroy(s->side));
	OK(cudaEventDestroy(s->fork));
	OK(cudaEventDestroy(s->join));
	OK(cudaFree(s->data));
}

static float value_at(const struct streams *s, size_t index)
{
	float value;
	OK(cudaMemcpy(&value, s->data + index, sizeof value, cudaMemcpyDeviceToHost));
	return value;
}

/* main: +1 to the first half, then (after side) +10; side: +2 to the second half, slowly. */
static cudaGraphExec_t capture(const struct streams *s, enum cudaStreamCaptureMode mode)
{
	cudaGraph_t graph;
	cudaGraphExec_t executable;
	enum cudaStreamCaptureStatus status;
	OK(cudaStreamBeginCapture(s->main, mode));
	OK(cudaEventRecord(s->fork, s->main));
	OK(cudaStreamWaitEvent(s->side, s->fork, 0));
	OK(cudaStreamIsCapturing(s->side, &status));
	assert_int_equal(status, cudaStreamCaptureStatusActive);
	OK(launch_slow(s->side, s->data + 255, SLOW_ROUNDS));
	OK(launch_add(s->side, s->data + COUNT / 2, 2, COUNT / 2));
	OK(cudaEventRecord(s->join, s->side));
	OK(launch_add(s->main, s->data, 1, COUNT / 2));
	OK(cudaStreamWaitEvent(s->main, s->join, 0));
	OK(launch_add(s->main, s->data, 10, COUNT));
	OK(cudaStreamEndCapture(s->main, &graph));
	OK(cudaStreamIsCapturing(s->side, &status));
	assert_int_equal(status, cudaStreamCaptureStatusNone);
	size_t nodes = 0;
	OK(cudaGraphGetNodes(graph, NULL, &nodes));
	assert_int_equal(nodes, 4);
	OK(cudaGraphInstantiate(&executable, graph, 0));
	OK(cudaGraphDestroy(graph));
	return executable;
}

static void capture_and_replay(void **state)
{
	(void)state;
	need_device();
	const struct streams s = open_streams();
	const enum cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal,
		cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};
	float first = 0, second = 0;
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		const cudaGraphExec_t graph = capture(&s, modes[i]);
		OK(cudaDeviceSynchronize());
		assert_true(value_at(&s, 0) == first); /* capture runs nothing */
		OK(cudaGraphUpload(graph, s.main));
		for (unsigned round = 0; round < 3; round++) {
			OK(cudaGraphLaunch(graph, s.main));
			first += 11;
			second += 12;
		}
		OK(cudaStreamSynchronize(s.main)); /* of all its streams' work */
		assert_true(value_at(&s, 0) == first && value_at(&s, COUNT / 2) == second);
		OK(cudaGraphExecDestroy(graph));
	}
	close_streams(&s);
}

/* Events outside a graph that its nodes record: how a step's time is measured when it is a graph. */
static void external_events(void **state)
{
	(void)state;
	need_device();
	const struct streams s = open_streams();
	cudaEvent_t begin, end;
	cudaGraph_t graph;
	cudaGraphExec_t executable;
	float ms = 0;
	OK(cudaEventCreate(&begin));
	OK(cudaEventCreate(&end));
	OK(cudaStreamBeginCapture(s.main, cudaStreamCaptureModeThreadLocal));
	OK(cudaEventRecordWithFlags(begin, s.main, cudaEventRecordExternal));
	OK(launch_slow(s.main, s.data, SLOW_ROUNDS));
	OK(cudaEventRecordWithFlags(end, s.main, cudaEventRecordExternal));
	OK(cudaStreamEndCapture(s.main, &graph));
	OK(cudaGraphInstantiate(&executable, graph, 0));
	for (unsigned round = 0; round < 2; round++) {
		OK(cudaGraphLaunch(executable, s.main));
		OK(cudaStreamSynchronize(s.main));
		OK(cudaEventElapsedTime(&ms, begin, end));
		assert_true(ms > 0.5f);
	}
	OK(cudaGraphExecDestroy(executable));
	OK(cudaGraphDestroy(graph));
	OK(cudaEventDestroy(begin));
	OK(cudaEventDestroy(end));
	close_streams(&s);
}

static cudaError_t end_capture(cudaStream_t stream)
{
	cudaGraph_t graph = NULL;
	const cudaError_t error = cudaStreamEndCapture(stream, &graph);
	if (error == cudaSuccess)
		OK(cudaGraphDestroy(graph));
	(void)cudaGetLastError();
	return error;
}

/* Which error of the family it is differs from driver to driver; the program takes them alike. */
static bool breaks_capture(cudaError_t error)
{
	(void)cudaGetLastError();
	return error >= cudaErrorStreamCaptureUnsupported &&
	       error <= cudaErrorStreamCaptureWrongThread;
}

/* Nothing that a capture cannot hold goes unnoticed. */
static void break_captures(void)
{
	const struct streams s = open_streams();
	void *memory = NULL;

	OK(cudaStreamBeginCapture(s.main, cudaStreamCaptureModeGlobal)); /* a stream not joined */
	OK(cudaEventRecord(s.fork, s.main));
	OK(cudaStreamWaitEvent(s.side, s.fork, 0));
	OK(launch_add(s.side, s.data, 1, COUNT));
	assert_true(breaks_capture(end_capture(s.main)));

	OK(cudaStreamBeginCapture(s.main, cudaStreamCaptureModeGlobal)); /* waiting in it */
	assert_true(breaks_capture(cudaStreamSynchronize(s.main)));
	assert_true(breaks_capture(end_capture(s.main)));

	OK(cudaStreamBeginCapture(s.main, cudaStreamCaptureModeGlobal)); /* allocating in it */
	assert_true(breaks_capture(cudaMalloc(&memory, 16)));
	assert_true(breaks_capture(end_capture(s.main)));

	OK(cudaEventRecord(s.join, s.side)); /* an event of before */
	OK(cudaStreamBeginCapture(s.main, cudaStreamCaptureModeGlobal));
	assert_true(breaks_capture(cudaStreamWaitEvent(s.main, s.join, 0)));
	assert_true(breaks_capture(end_capture(s.main)));

	OK(cudaStreamBeginCapture(s.main, cudaStreamCaptureModeGlobal)); /* an event of it */
	OK(launch_add(s.main, s.data, 1, COUNT));
	OK(cudaEventRecord(s.fork, s.main));
	assert_true(breaks_capture(cudaEventQuery(s.fork)));
	(void)end_capture(s.main);

	assert_true(breaks_capture(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal)));
	OK(launch_add(s.main, s.data, 1, COUNT)); /* all of it leaves the streams usable */
	OK(cudaDeviceSynchronize());
	assert_true(value_at(&s, 0) == 1);
	close_streams(&s);
}

static void broken_captures(void **state)
{
	(void)state;
	need_device();
	break_captures();
#ifdef MLBENCH_CUDA_DOUBLE
	for (const char *const *code = (const char *const[]){"907", "906", NULL}; *code; code++) {
		assert_int_equal(setenv("MLBENCH_DOUBLE_CAPTURE", *code, 1), 0);
		double_configure();
		break_captures();
	}
	assert_int_equal(unsetenv("MLBENCH_DOUBLE_CAPTURE"), 0);
	double_configure();
#endif
}

static void *allocate_elsewhere(void *result)
{
	void *memory = NULL;
	*(cudaError_t *)result = cudaMalloc(&memory, 16);
	(void)cudaGetLastError();
	(void)cudaFree(memory);
	return NULL;
}

/* A capture of the thread's own lets other threads work as ever. */
static void other_threads_go_on(void **state)
{
	(void)state;
	need_device();
	const struct streams s = open_streams();
	cudaError_t error = cudaErrorUnknown;
	pthread_t thread;
	OK(cudaStreamBeginCapture(s.main, cudaStreamCaptureModeThreadLocal));
	OK(launch_add(s.main, s.data, 1, COUNT));
	assert_int_equal(pthread_create(&thread, NULL, allocate_elsewhere, &error), 0);
	pthread_join(thread, NULL);
	assert_int_equal(error, cudaSuccess);
	assert_int_equal(end_capture(s.main), cudaSuccess);
	close_streams(&s);
}

/* Copies from pinned memory are read when the graph runs, not when it was captured. */
static void copies_in_a_graph(void **state)
{
	(void)state;
	need_device();
	const struct streams s = open_streams();
	cudaGraph_t graph;
	cudaGraphExec_t executable;
	float *pinned = NULL;
	OK(cudaMallocHost((void **)&pinned, 256));
	OK(cudaStreamBeginCapture(s.main, cudaStreamCaptureModeThreadLocal));
	OK(cudaMemcpyAsync(s.data, pinned, 256, cudaMemcpyHostToDevice, s.main));
	OK(cudaMemsetAsync(s.data + 1, 0, sizeof(float), s.main));
	OK(cudaStreamEndCapture(s.main, &graph));
	OK(cudaGraphInstantiate(&executable, graph, 0));
	for (unsigned round = 1; round < 4; round++) {
		for (unsigned i = 0; i < 64; i++)
			pinned[i] = (float)round;
		OK(cudaGraphLaunch(executable, s.main));
		OK(cudaStreamSynchronize(s.main));
		assert_true(value_at(&s, 0) == (float)round && value_at(&s, 1) == 0);
	}
	OK(cudaGraphExecDestroy(executable));
	OK(cudaGraphDestroy(graph));
	OK(cudaFreeHost(pinned));
	close_streams(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capture_and_replay),
		cmocka_unit_test(external_events),
		cmocka_unit_test(broken_captures),
		cmocka_unit_test(other_threads_go_on),
		cmocka_unit_test(copies_in_a_graph),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
