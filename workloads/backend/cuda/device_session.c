/* Opening and closing one device's session: streams, events, memory, the model.  Everything is allocated here; what a launch needs
 * is there when it comes. */
#include "workloads/backend/cuda/device_session.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "workloads/backend/cuda/device_group.h"
#include "workloads/backend/cuda/runtime.h"
#include "workloads/model/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum {
	TIMER_SLACK_NS = 1,
	MAJOR_FACTOR = 1000,
	MINOR_FACTOR = 10,
};

/* A device that is still busy by then hangs: the memory that it may write to is left allocated. */
#define DRAIN_NS (10 * NS_PER_S)
enum { DRAIN_PAUSE_NS = 1000000 };

/* --- memory ----------------------------------------------------------------------------------- */

static uint64_t session_samples_bytes(const struct cuda_options *options)
{
	return options->augments ? (uint64_t)options->batch_size * staging_sample_bytes(options)
				 : 0;
}

uint64_t session_device_bytes(const struct cuda_options *options)
{
	const uint64_t train = train_bytes(options);
	return train == 0 ? 0 : train + staging_bytes(options) + session_samples_bytes(options);
}

static int session_check_memory(const struct cuda_options *options, struct error *err)
{
	const uint64_t needed = session_device_bytes(options);
	size_t available = 0;
	size_t total = 0;
	CUDA_OR_RETURN(err, cudaMemGetInfo(&available, &total));
	if (needed <= available)
		return 0;
	char sizes[3][UNITS_BYTES];
	return error_set(err, -ENOMEM,
		"cuda: %s with batches of %u needs %s of device memory, but %s of %s are free: reduce batch.size or upload.depth",
		options->model, options->batch_size, units_format_size((double)needed, sizes[0]),
		units_format_size((double)available, sizes[1]),
		units_format_size((double)total, sizes[2]));
}

static int session_allocate(struct cuda_session *session, struct error *err)
{
	const uint64_t samples = session_samples_bytes(&session->options);
	CUDA_OR_RETURN(err, cudaMalloc((void **)&session->statistics,
				    STATISTICS * sizeof *session->statistics));
	if (samples > 0) {
		CUDA_OR_RETURN(err, cudaMalloc(&session->augmented, samples));
		/* The part that a smaller batch leaves unwritten is computed too, though its results are ignored. */
		CUDA_OR_RETURN(err, cudaMemset(session->augmented, 0, samples));
	}
	return CUDA_TRY(
		err, cudaHostAlloc((void **)&session->readbacks,
			     session->room * sizeof *session->readbacks, cudaHostAllocDefault));
}

/* --- streams and events ----------------------------------------------------------------------- */

static int session_open_streams(struct cuda_session *session, struct error *err)
{
	for (unsigned i = 0; i < session->options.streams; i++)
		CUDA_OR_RETURN(err,
			cudaStreamCreateWithFlags(&session->streams[i], cudaStreamNonBlocking));
	return 0;
}

static int session_open_flight(struct flight *flight, struct error *err)
{
	cudaEvent_t *const timed[] = {&flight->begin, &flight->copied, &flight->exchange_begin,
		&flight->sync_begin, &flight->sync_end, &flight->end};
	for (size_t i = 0; i < sizeof timed / sizeof timed[0]; i++)
		CUDA_OR_RETURN(err, cudaEventCreate(timed[i]));
	return CUDA_TRY(err, cudaEventCreateWithFlags(&flight->done, cudaEventDisableTiming));
}

static int session_open_flights(struct cuda_session *session, struct error *err)
{
	session->flights = calloc(session->room, sizeof *session->flights);
	if (!session->flights)
		return error_set(err, -ENOMEM, "cuda: out of memory");
	for (unsigned i = 0; i < session->room; i++) {
		session->flights[i].readback = &session->readbacks[i];
		OR_RETURN(session_open_flight(&session->flights[i], err));
	}
	return 0;
}

static void session_close_flight(struct flight *flight)
{
	const cudaEvent_t events[] = {flight->begin, flight->copied, flight->exchange_begin,
		flight->sync_begin, flight->sync_end, flight->end, flight->done};
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
		release_event(events[i]);
}

static int summation_open(struct cuda_session *session, struct error *err)
{
	struct summation *const sum = &session->summation;
	size_t values;
	if (!session->options.group)
		return 0;
	CUDA_OR_RETURN(err, cudaStreamCreateWithFlags(&sum->stream, cudaStreamNonBlocking));
	CUDA_OR_RETURN(err, cudaEventCreateWithFlags(&sum->turn, cudaEventDisableTiming));
	sum->gradients = train_gradient_array(session->train, &values);
	sum->count = train_buckets(session->train,
		session->options.bucket_bytes / sizeof *sum->gradients, &sum->buckets);
	return sum->count > 0 ? 0 : error_set(err, -ENOMEM, "cuda: out of memory for buckets");
}

static void summation_close(struct summation *sum)
{
	release_event(sum->turn);
	release_stream(sum->stream);
	free(sum->buckets);
}

/* Joins options.group, and exchanges once what a step will, so that no timed step is the first; all its sessions at the same time,
 * their gradients zeros. */
int session_join(struct cuda_session *session, struct error *err)
{
	const struct cuda_options *options = &session->options;
	const struct summation *const sum = &session->summation;
	OR_RETURN(group_join(
		options->group, options->rank, (int)options->device, options->stop, err));
	session->joined = true;
	for (size_t i = 0; i < sum->count; i++)
		OR_RETURN(group_warm_up(options->group, options->rank,
			sum->gradients + sum->buckets[i].begin, sum->buckets[i].count, sum->stream,
			err));
	group_connected(options->group);
	return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int session_check_options(const struct cuda_options *options, struct error *err)
{
	if (options->streams < 1 || options->streams > DEVICE_STREAMS_MAX)
		return error_set(err, -EINVAL, "step.streams: must be 1 to %d", DEVICE_STREAMS_MAX);
	if (!model_find(options->model))
		return error_set(err, -EINVAL, "cuda: unknown model '%s'", options->model);
	if (options->batch_size == 0 || options->accumulate == 0 || options->batch_room == 0)
		return error_set(err, -EINVAL, "cuda: batches cannot be empty");
	return 0;
}

static int session_name_device(struct cuda_session *session, struct error *err)
{
	struct cudaDeviceProp properties;
	const int code =
		CUDA_TRY(err, cudaGetDeviceProperties(&properties, (int)session->options.device));
	if (!code)
		(void)snprintf(session->device_name, sizeof session->device_name, "%.63s",
			properties.name);
	return code;
}

static int session_open_parts(struct cuda_session *session, struct error *err)
{
	const struct cuda_options *options = &session->options;
	CUDA_OR_RETURN(err, cudaSetDevice((int)options->device));
	OR_RETURN(session_name_device(session, err));
	OR_RETURN(session_check_memory(options, err));
	OR_RETURN(session_open_streams(session, err));
	OR_RETURN(session_allocate(session, err));
	OR_RETURN(session_open_flights(session, err));
	OR_RETURN(device_clock_open(&session->clock, err));
	OR_RETURN(staging_open(session, err));
	OR_RETURN(records_open(session, err));
	OR_RETURN(train_open(&session->train, options, session->streams, err));
	return summation_open(session, err);
}

int session_open(struct cuda_session **out, const struct cuda_options *options, struct error *err)
{
	*out = NULL;
	int code = session_check_options(options, err);
	if (code)
		return code;
	struct cuda_session *session = calloc(1, sizeof *session);
	if (!session)
		return error_set(err, -ENOMEM, "cuda: out of memory");
	session->options = *options;
	session->room = 1 + options->ahead;
	session->devices = options->group && options->devices > 1 ? options->devices : 1;
	session->timer_slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	code = session_open_parts(session, err);
	/* What open enqueued, on any stream, has ended before the first exchange and the first launch, and its errors are found
	 * here. */
	if (!code)
		code = CUDA_TRY(err, cudaDeviceSynchronize());
	if (code && options->group)
		group_fail(options->group);
	else if (!code && options->group && !group_has_peers(options->group))
		code = session_join(session, err);
	if (code) {
		session_close(session);
		// NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what a device still uses stays
		return code;
	}
	*out = session;
	return 0;
}

/* --- closing ---------------------------------------------------------------------------------- */

/* False: the device still runs after a long time. */
static bool session_drain_stream(cudaStream_t stream, uint64_t until_ns)
{
	cudaError_t code = cudaSuccess;
	while (stream && (code = cudaStreamQuery(stream)) == cudaErrorNotReady) {
		const uint64_t now = clock_now_ns();
		if (now >= until_ns)
			break;
		clock_sleep_until_ns(now + DRAIN_PAUSE_NS);
	}
	(void)cudaGetLastError();
	/* A lost device fails: nothing runs there any more. */
	return code != cudaErrorNotReady;
}

static bool session_drain(const struct cuda_session *session)
{
	const uint64_t until_ns = clock_now_ns() + DRAIN_NS;
	bool ended = session_drain_stream(session->staging.stream, until_ns) &&
		     session_drain_stream(session->summation.stream, until_ns);
	for (size_t i = 0; i < DEVICE_STREAMS_MAX; i++)
		ended = session_drain_stream(session->streams[i], until_ns) && ended;
	return ended;
}

static void session_free_all(struct cuda_session *session)
{
	records_close(&session->records);
	summation_close(&session->summation);
	train_close(session->train);
	staging_close(&session->staging);
	device_clock_close(&session->clock);
	for (unsigned i = 0; session->flights && i < session->room; i++)
		session_close_flight(&session->flights[i]);
	for (size_t i = 0; i < DEVICE_STREAMS_MAX; i++)
		release_stream(session->streams[i]);
	release_device(session->statistics);
	release_device(session->augmented);
	release_host(session->readbacks);
	pins_release(&session->pins);
	free(session->flights);
	free(session);
	(void)cudaGetLastError();
}

void session_close(struct cuda_session *session)
{
	if (!session)
		return;
	if (session->timer_slack_ns > 0)
		(void)prctl(PR_SET_TIMERSLACK, session->timer_slack_ns, 0, 0, 0);
	(void)cudaSetDevice((int)session->options.device);
	/* Not earlier: by now the step has reported what went wrong, so the others' "another device failed" comes after it. */
	if (session->broken && session->options.group)
		group_fail(session->options.group);
	if (session->joined)
		group_leave(session->options.group, session->options.rank);
	/* Freeing waits for the device: a hanging one keeps its memory. */
	if (session_drain(session))
		session_free_all(session);
}

/* --- the rest --------------------------------------------------------------------------------- */

void session_describe(const struct cuda_session *session, struct cuda_description *out)
{
	const struct cuda_options *options = &session->options;
	int runtime = 0;
	char extras[64] = "";
	(void)cudaRuntimeGetVersion(&runtime);
	if (options->streams > 1)
		(void)snprintf(extras, sizeof extras, ", %u streams", options->streams);
	const char *note = train_note(session->train);
	*out = (struct cuda_description){
		.flops_per_sample = train_flops_per_sample(session->train),
		.device_bytes = session_device_bytes(options),
		.deterministic = train_deterministic(session->train) &&
				 (!session->joined || group_is_deterministic(options->group)),
		.clock_map_error_ns = device_clock_error_ns((struct device_clock *)&session->clock),
	};
	(void)snprintf(out->text, sizeof out->text,
		"%s (cuda %d.%d), %s: %s with %s in %s%s%s%s%.56s", session->device_name,
		runtime / MAJOR_FACTOR, runtime % MAJOR_FACTOR / MINOR_FACTOR, options->model,
		model_find(options->model)->complete ? "training step" : "GEMMs of a training step",
		options->rule == STEP_OPTIMIZER_ADAM ? "adam" : "sgd",
		gemm_precision_name(options->precision), options->graph ? ", graph" : "", extras,
		*note ? "; " : "", note);
}

int session_pin(struct cuda_session *session, void *memory, size_t bytes, struct error *err)
{
	CUDA_OR_RETURN(err, cudaSetDevice((int)session->options.device));
	return pins_add(&session->pins, memory, bytes, err);
}
