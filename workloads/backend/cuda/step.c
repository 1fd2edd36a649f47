/* Launching and finishing steps: which batch goes how, the sequence of a step on the first stream, and what the device's events
 * say of it afterwards.
 *
 * Steps are kept as CUDA graphs: recorded once from the same calls that enqueue them, then launched as a whole.  With step.graph that
 * is how full batches run.  Without it, a few steps still do, now and then, because a step that was launched at once shows how long
 * its kernels take when the host is not in their way.
 *
 * The share of a step in which no kernel ran is 1 - (what its kernels take) / (the step's device time).  What they take is the time
 * of the step as a graph, less, for each node, the period of a graph of empty kernels: the shortest time from one kernel's begin to
 * the next one's.  An empty kernel's own run is in that period, so the share is an upper bound (with several streams, whose kernels'
 * pauses overlap, a looser one).  The share of steps whose kind never ran as a graph is unknown.
 *
 * A GPU works by itself. To launch a kernel or a copy is to put a note into a queue (a stream) that
 * the device empties in its own time; the call returns in microseconds, whatever the work takes:
 *
 *   host     |launch step 1|launch step 2|...wait...................|
 *   device       |------ step 1 ------|------ step 2 ------|
 *
 * A clock around the launch measures the writing of a note. A clock around launch and wait measures
 * everything else in the queue and the wake-up of the thread, and does not show where the device
 * stood still. Three times are therefore taken apart, and never one for another:
 * - Device time (step_ms, upload, sync). An event is a note in the same queue that makes the
 *   device write down its own clock when it comes to it. A step lies between two events on its
 *   stream, the copy of a batch between two on the upload's, the exchange of gradients between
 *   two more (here and in workloads/backend/cuda/staging.c). Only differences
 *   of two events are known, and they are free of the host. With sync.overlap, each bucket of
 *   gradients is summed on a stream of its own as soon as the backward pass has made it. The
 *   exchange is then what the step still waits for after the backward pass; an event in front of
 *   the first bucket shows how much of it passed before. A graph holds the whole backward pass, so
 *   all buckets of a step that runs as a graph follow it.
 * - Launch time (launch_us) is the host's: how long the thread was busy handing a step to the
 *   queue. A launch that takes longer than its step leaves the device idle however fast it is;
 *   step.graph = on hands over a whole step as one note.
 * - Idle inside a step (idle_share): between two kernels of a step the device may wait for the
 *   host. No event can tell that without slowing the step, so it is inferred: now and then a step
 *   runs as a graph, which the host cannot hold up, and what its kernels take is that time less,
 *   for each of them, the shortest pause between two kernels, measured with empty ones. The share
 *   is an upper bound; of a step that was never seen as a graph
 *   it is null.
 *
 * States. The step's thread is working while a step of its own is on the device, though it sleeps
 * then: its device is at work. It launches up to step.ahead steps beyond the one that computes,
 * and the uploader hands it a batch as soon as the copy is begun, since the device orders the
 * two; so a step may be launched whose batch is not there yet. While the device has nothing else
 * to do, that is no work: the step is starved until the copy has ended. The uploader is working
 * while any copy is under way, blocked while there is no place on the device. A stage whose
 * device is true counts the device's time as its work, and the kernel's accounting of its thread does not include it. */
#include "workloads/backend/cuda/device_session.h"

#include "harness/base/clock.h"
#include "workloads/backend/cuda/device_group.h"
#include "workloads/backend/cuda/runtime.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
	EMPTY_KERNELS = 128,
	EMPTY_REPEATS = 5,
	SAMPLE_EVERY = 256, /* of candidates, after the first ones: powers of two */
	PATIENCE_NS = 1000000000,
	LOOK_NS = 20 * 1000 * 1000, /* between looks at other processes */
};

static const double SMOOTHING = 0.25; /* weight of the newest */

/* Share of the shorter of the last two steps that is slept before the first look at the device. */
static const double STEP_EXPECTED_SHARE = 0.9;

/* What is taken of this batch. */
struct step_plan {
	struct staging_place *place;
	unsigned place_index;
	bool on_host;    /* the launch copies it */
	bool updates;    /* the weights change */
	bool statistics; /* are taken */
	float carry;     /* see train_gradients */
};

static int step_mark(cudaEvent_t event, const struct cuda_session *session, struct error *err)
{
	return CUDA_TRY(err, cudaEventRecord(event, session->streams[0]));
}

/* --- pieces that a graph may hold ------------------------------------------------------------- */

/* Up to the loss. */
static int enqueue_forward(struct cuda_session *session, const struct staging_place *place,
	uint32_t size, float carry, struct error *err)
{
	const struct cuda_options *options = &session->options;
	const struct augment_task task = {
		.bytes = place->data,
		.pictures = (const void *)(place->words + session->staging.pictures_at),
		.count = size,
		.size = options->picture_size,
		.antialias = options->antialias,
		.is_float = options->type == AUGMENT_TYPE_FLOAT32,
		.channels_last = options->channels_last,
		.out = session->augmented,
	};
	const struct train_batch batch = {
		.data = options->augments ? session->augmented : place->data,
		.labels = (const void *)place->words,
		.size = size,
	};
	const int code = options->augments ? kernel_augment(session->streams[0], &task) : 0;
	if (code)
		return fail_cuda(err, code, "augmentation");
	return train_begin(session->train, &batch, carry, err);
}

static int enqueue_update(struct cuda_session *session, struct error *err)
{
	return train_update(session->train, session->options.accumulate * session->devices, err);
}

/* --- steps as graphs: recording --------------------------------------------------------------- */

typedef int record_enqueuer(struct cuda_session *session, const void *what, struct error *err);

/* Whatever went wrong, the stream must not stay a recording one. */
static cudaError_t record_end_capture(cudaStream_t stream, cudaGraph_t *graph)
{
	const cudaError_t ended = cudaStreamEndCapture(stream, graph);
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	if (ended != cudaSuccess && cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
		status != cudaStreamCaptureStatusNone)
		(void)cudaStreamEndCapture(stream, graph);
	return ended;
}

/* Other threads upload meanwhile, so only this one's calls are held to what a recording allows. */
static int record_capture(struct cuda_session *session, struct record *record,
	record_enqueuer *enqueue, const void *what, struct error *err)
{
	cudaGraph_t graph = NULL;
	cudaStream_t stream = session->streams[0];
	CUDA_OR_RETURN(err, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	int code = enqueue(session, what, err);
	const cudaError_t ended = record_end_capture(stream, &graph);
	if (!code && ended != cudaSuccess)
		code = fail_cuda(err, (int)ended, "recording a step");
	if (!code)
		code = CUDA_TRY(err, cudaGraphGetNodes(graph, NULL, &record->nodes));
	if (!code)
		code = CUDA_TRY(err, cudaGraphInstantiate(&record->exec, graph, 0));
	if (graph)
		(void)cudaGraphDestroy(graph);
	(void)cudaGetLastError();
	return code;
}

static int record_run(struct cuda_session *session, struct record *record, record_enqueuer *enqueue,
	const void *what, struct error *err)
{
	if (!record->exec && record_capture(session, record, enqueue, what, err)) {
		session->records.refused = true;
		return error_prefix(err, -ENOTSUP, "a step cannot be recorded as a graph");
	}
	return CUDA_TRY(err, cudaGraphLaunch(record->exec, session->streams[0]));
}

struct record_part {
	enum record_kind kind;
	unsigned place;
};

static int record_enqueue_part(struct cuda_session *session, const void *what, struct error *err)
{
	const struct record_part *part = what;
	const float carry = part->kind & RECORD_ADDS ? 1.0F : 0.0F;
	OR_RETURN(enqueue_forward(session, &session->staging.places[part->place],
		session->options.batch_size, carry, err));
	OR_RETURN(train_backward(session->train, 0, err));
	return part->kind & RECORD_UPDATES ? enqueue_update(session, err) : 0;
}

static int record_enqueue_update(struct cuda_session *session, const void *what, struct error *err)
{
	(void)what;
	return enqueue_update(session, err);
}

/* Launches the gradients of a full batch at a place (and the update, where the kind has it), or the update alone; records it
 * first where that was not done.  -ENOTSUP: it cannot be recorded, and nothing was enqueued. */
static int records_run(
	struct cuda_session *session, enum record_kind kind, unsigned place, struct error *err)
{
	const struct record_part part = {kind, place};
	struct record *record = &session->records.list[place * RECORD_KINDS + (unsigned)kind];
	return record_run(session, record, record_enqueue_part, &part, err);
}

static int records_run_update(struct cuda_session *session, struct error *err)
{
	return record_run(session, &session->records.update, record_enqueue_update, NULL, err);
}

/* --- the period of empty kernels -------------------------------------------------------------- */

static int record_enqueue_empty(struct cuda_session *session, const void *what, struct error *err)
{
	const unsigned *count = what;
	for (unsigned i = 0; i < *count; i++)
		CUDA_OR_RETURN(err, kernel_nothing(session->streams[0]));
	return 0;
}

static int record_time_launch(
	struct cuda_session *session, const struct record *record, uint64_t *ns, struct error *err)
{
	const struct flight *flight = &session->flights[0];
	cudaStream_t stream = session->streams[0];
	CUDA_OR_RETURN(err, cudaEventRecord(flight->begin, stream));
	CUDA_OR_RETURN(err, cudaGraphLaunch(record->exec, stream));
	CUDA_OR_RETURN(err, cudaEventRecord(flight->end, stream));
	const cudaError_t came =
		wait_for(flight->end, 0, clock_now_ns() + PATIENCE_NS, session->options.stop);
	if (came != cudaSuccess)
		return fail_cuda(err, (int)came, "a graph of empty kernels");
	return device_clock_between(flight->begin, flight->end, ns, err);
}

/* The least of some runs of one record; a first kernel, alone, loads it. */
static int record_time_gap(struct cuda_session *session, struct record *record, struct error *err)
{
	static const unsigned one = 1;
	static const unsigned many = EMPTY_KERNELS;
	uint64_t least_ns = UINT64_MAX;
	OR_RETURN(record_enqueue_empty(session, &one, err));
	OR_RETURN(record_capture(session, record, record_enqueue_empty, &many, err));
	for (int i = 0; i < EMPTY_REPEATS; i++) {
		uint64_t ns = 0;
		OR_RETURN(record_time_launch(session, record, &ns, err));
		least_ns = ns < least_ns ? ns : least_ns;
	}
	session->records.gap_ns = (double)least_ns / EMPTY_KERNELS;
	return 0;
}

static void record_close(struct record *record)
{
	if (record->exec)
		(void)cudaGraphExecDestroy(record->exec);
}

int records_open(struct cuda_session *session, struct error *err)
{
	struct record empty = {0};
	struct records *records = &session->records;
	records->gap_ns = NAN;
	records->places = session->staging.count;
	records->list = calloc((size_t)records->places * RECORD_KINDS, sizeof *records->list);
	if (!records->list)
		return error_set(err, -ENOMEM, "cuda: out of memory");
	/* Without it the idle share is unknown; a lost device is found by what follows. */
	struct error why;
	(void)record_time_gap(session, &empty, &why);
	record_close(&empty);
	return 0;
}

void records_close(struct records *records)
{
	for (size_t i = 0; records->list && i < (size_t)records->places * RECORD_KINDS; i++)
		record_close(&records->list[i]);
	record_close(&records->update);
	free(records->list);
	*records = (struct records){0};
}

/* --- which steps run as graphs, and what follows from them ------------------------------------ */

static bool record_is_due(uint64_t candidate)
{
	return (candidate & (candidate - 1)) == 0 || candidate % SAMPLE_EVERY == 0;
}

/* Whether the next step, of a full batch, runs as a graph. */
static bool records_wanted(struct cuda_session *session, enum record_kind kind, unsigned place)
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
static size_t records_count_nodes(const struct cuda_session *session, enum record_kind kind)
{
	const struct records *records = &session->records;
	size_t nodes = 0;
	for (unsigned place = 0; place < records->places && nodes == 0; place++)
		nodes = records->list[place * RECORD_KINDS + (unsigned)kind].nodes;
	if (nodes > 0 || !(kind & RECORD_UPDATES))
		return nodes;
	/* The update is apart, behind the exchange. */
	nodes = records_count_nodes(session, (enum record_kind)(kind & ~(unsigned)RECORD_UPDATES));
	return nodes > 0 ? nodes + records->update.nodes : 0;
}

/* A step of a full batch was finished: work_ns of device time without copy and exchange.  The share of device_ns in which no
 * kernel ran, waiting for others in the exchange not counted; NAN: not known. */
static double records_idle_share(struct cuda_session *session, enum record_kind kind,
	bool was_recorded, double work_ns, double device_ns)
{
	struct records *records = &session->records;
	if (isnan(records->gap_ns) || device_ns <= 0)
		return NAN;
	if (was_recorded) {
		const double gaps_ns = (double)records_count_nodes(session, kind) * records->gap_ns;
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

/* --- the sequence of a step on the first stream; nothing here waits --------------------------- */

/* `behind` waits for all that was put on `ahead` so far. */
static int exchange_order(const struct cuda_session *session, cudaStream_t behind,
	cudaStream_t ahead, struct error *err)
{
	CUDA_OR_RETURN(err, cudaEventRecord(session->summation.turn, ahead));
	return CUDA_TRY(err, cudaStreamWaitEvent(behind, session->summation.turn, 0));
}

/* Enqueues the sums over all devices of the buckets that are made by what is on the step's streams so far: those of `layer` and
 * the layers behind it. */
static int exchange_begin(
	struct cuda_session *session, const struct flight *flight, size_t layer, struct error *err)
{
	struct summation *const sum = &session->summation;
	const struct cuda_options *options = &session->options;
	for (unsigned i = 0; i < options->streams; i++)
		OR_RETURN(exchange_order(session, sum->stream, session->streams[i], err));
	if (sum->begun == 0)
		CUDA_OR_RETURN(err, cudaEventRecord(flight->exchange_begin, sum->stream));
	for (; sum->begun < sum->count && sum->buckets[sum->begun].layer >= layer; sum->begun++) {
		const struct bucket *const bucket = &sum->buckets[sum->begun];
		OR_RETURN(group_all_reduce(options->group, options->rank,
			sum->gradients + bucket->begin, bucket->count, sum->stream, err));
	}
	return 0;
}

/* Behind the backward pass: enqueues the buckets that are left.  The first stream waits for all sums, between the flight's two
 * events. */
static int exchange_end(
	struct cuda_session *session, const struct flight *flight, struct error *err)
{
	cudaStream_t stream = session->streams[0];
	CUDA_OR_RETURN(err, cudaEventRecord(flight->sync_begin, stream));
	OR_RETURN(exchange_begin(session, flight, 0, err));
	OR_RETURN(exchange_order(session, stream, session->summation.stream, err));
	return CUDA_TRY(err, cudaEventRecord(flight->sync_end, stream));
}

static int enqueue_backward(
	struct cuda_session *session, const struct flight *flight, struct error *err)
{
	const struct summation *const sum = &session->summation;
	while (flight->syncs && session->options.overlap && sum->begun < sum->count &&
		sum->buckets[sum->begun].layer > 0) {
		const size_t layer = sum->buckets[sum->begun].layer;
		OR_RETURN(train_backward(session->train, layer, err));
		OR_RETURN(exchange_begin(session, flight, layer, err));
	}
	return train_backward(session->train, 0, err);
}

static int step_bring_batch(struct cuda_session *session, const struct flight *flight,
	const struct step_plan *plan, const struct batch_view *batch, struct error *err)
{
	/* Before the step begins: it is the upload's time, not the step's. */
	if (!plan->on_host)
		CUDA_OR_RETURN(err, cudaStreamWaitEvent(session->streams[0], plan->place->end, 0));
	OR_RETURN(step_mark(flight->begin, session, err));
	if (!plan->on_host)
		return 0;
	OR_RETURN(staging_copy(session, plan->place, batch, session->streams[0], err));
	return step_mark(flight->copied, session, err);
}

static int step_compute_directly(struct cuda_session *session, const struct flight *flight,
	const struct step_plan *plan, struct error *err)
{
	OR_RETURN(enqueue_forward(session, plan->place, flight->size, plan->carry, err));
	OR_RETURN(enqueue_backward(session, flight, err));
	if (flight->syncs)
		OR_RETURN(exchange_end(session, flight, err));
	if (plan->statistics)
		OR_RETURN(train_statistics(session->train,
			(session->accumulated + 1) * (flight->syncs ? session->devices : 1),
			session->statistics, err));
	return plan->updates ? enqueue_update(session, err) : 0;
}

/* A step that cannot be recorded runs kernel by kernel, unless graphs were asked for. */
static bool step_goes_without_graph(const struct cuda_session *session, int code)
{
	return code == -ENOTSUP && !session->options.graph;
}

static int step_compute_recorded(struct cuda_session *session, struct flight *flight,
	const struct step_plan *plan, struct error *err)
{
	const unsigned apart = flight->syncs ? RECORD_UPDATES : 0;
	int code = records_run(
		session, (enum record_kind)(flight->kind & ~apart), plan->place_index, err);
	if (step_goes_without_graph(session, code)) {
		flight->recorded = false;
		return step_compute_directly(session, flight, plan, err);
	}
	if (code || !flight->syncs)
		return code;
	code = exchange_end(session, flight, err);
	if (!code)
		code = records_run_update(session, err);
	if (!step_goes_without_graph(session, code))
		return code;
	flight->recorded = false;
	return enqueue_update(session, err);
}

static int step_read_back(struct cuda_session *session, const struct flight *flight,
	const struct step_plan *plan, struct error *err)
{
	cudaStream_t stream = session->streams[0];
	CUDA_OR_RETURN(err, cudaMemcpyAsync(&flight->readback->loss, train_loss(session->train),
				    sizeof flight->readback->loss, cudaMemcpyDeviceToHost, stream));
	if (plan->statistics)
		CUDA_OR_RETURN(
			err, cudaMemcpyAsync(flight->readback->statistics, session->statistics,
				     sizeof flight->readback->statistics, cudaMemcpyDeviceToHost,
				     stream));
	OR_RETURN(step_mark(flight->done, session, err));
	return step_mark(plan->place->used, session, err);
}

static int enqueue_step(struct cuda_session *session, struct flight *flight,
	const struct step_plan *plan, const struct batch_view *batch, struct error *err)
{
	OR_RETURN(step_bring_batch(session, flight, plan, batch, err));
	OR_RETURN(flight->recorded ? step_compute_recorded(session, flight, plan, err)
				   : step_compute_directly(session, flight, plan, err));
	OR_RETURN(step_mark(flight->end, session, err));
	return step_read_back(session, flight, plan, err);
}

/* What is on the device is unknown from now on. */
static int step_give_up(struct cuda_session *session, uint64_t batch, int code, struct error *err)
{
	session->broken = true;
	return error_prefix(err, code, "step of batch %llu", (unsigned long long)batch);
}

static int step_use_device(struct cuda_session *session, uint64_t batch, struct error *err)
{
	if (session->broken)
		return error_set(err, -EIO, "cuda: an earlier step failed");
	const int code = CUDA_TRY(err, cudaSetDevice((int)session->options.device));
	return code ? step_give_up(session, batch, code, err) : 0;
}

/* --- launching -------------------------------------------------------------------------------- */

static int step_check_place(
	const struct cuda_session *session, const struct batch_view *batch, struct error *err)
{
	const unsigned places = session->options.staging_places;
	if (places == 0 && batch->place == BATCH_ON_HOST)
		return 0;
	if (batch->place >= 0 && (unsigned)batch->place < places &&
		session->staging.places[batch->place].batch == batch->index &&
		session->staging.places[batch->place].size == batch->size)
		return 0;
	return error_set(err, -EINVAL,
		"cuda: batch %llu of %u samples was not uploaded to staging place %d of %u",
		(unsigned long long)batch->index, batch->size, batch->place, places);
}

static struct step_plan step_make_plan(
	const struct cuda_session *session, const struct batch_view *batch)
{
	const struct cuda_options *options = &session->options;
	const uint64_t number = session->launched + 1;
	struct step_plan plan = {
		.on_host = batch->place == BATCH_ON_HOST,
		.updates = session->accumulated + 1 >= options->accumulate,
		.statistics = options->statistics > 0 && number % options->statistics == 0,
		.carry = session->accumulated > 0 ? 1.0F : 0.0F,
	};
	plan.place_index = plan.on_host ? (unsigned)(session->launched % session->staging.count)
					: (unsigned)batch->place;
	plan.place = &session->staging.places[plan.place_index];
	return plan;
}

static void step_begin_flight(struct cuda_session *session, struct flight *flight,
	const struct step_plan *plan, const struct batch_view *batch)
{
	flight->batch = batch->index;
	flight->size = batch->size;
	flight->stamp = device_clock_stamp(&session->clock);
	session->summation.begun = 0;
	flight->copies = plan->on_host;
	flight->syncs = plan->updates && session->devices > 1;
	flight->has_statistics = plan->statistics;
	flight->whole = batch->size == session->options.batch_size && !plan->statistics;
	flight->kind = (enum record_kind)(
		(plan->carry > 0 ? RECORD_ADDS : 0) | (plan->updates ? RECORD_UPDATES : 0));
	flight->recorded =
		flight->whole && records_wanted(session, flight->kind, plan->place_index);
}

static int step_launch_kernels(
	struct cuda_session *session, const struct batch_view *batch, struct error *err)
{
	struct flight *flight = &session->flights[session->launched % session->room];
	flight->launched_ns = clock_now_ns();
	const struct step_plan plan = step_make_plan(session, batch);
	step_begin_flight(session, flight, &plan, batch);
	const int code = enqueue_step(session, flight, &plan, batch, err);
	if (code)
		return step_give_up(session, batch->index, code, err);
	session->accumulated = plan.updates ? 0 : session->accumulated + 1;
	session->launched++;
	flight->launch_ns = clock_now_ns() - flight->launched_ns;
	return 0;
}

int session_launch(struct cuda_session *session, const struct batch_view *batch, struct error *err)
{
	OR_RETURN(step_use_device(session, batch->index, err));
	if (session->options.group && !session->joined)
		return error_set(err, -EINVAL, "cuda: the group was not joined");
	/* What was uploaded was checked then; its host memory may hold another batch by now. */
	if (batch->place == BATCH_ON_HOST)
		OR_RETURN(staging_check(&session->options, batch, err));
	OR_RETURN(step_check_place(session, batch, err));
	if (session->launched - session->finished >= session->room)
		return error_set(
			err, -EINVAL, "cuda: %u steps are in flight already", session->room);
	return step_launch_kernels(session, batch, err);
}

/* --- finishing -------------------------------------------------------------------------------- */

static uint64_t step_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Until then the step is not expected to be done. */
static uint64_t step_expected_end(const struct cuda_session *session, const struct flight *flight)
{
	const uint64_t *last = session->last_ns;
	const double shorter = (double)(last[0] < last[1] ? last[0] : last[1]);
	const double share = (double)flight->size / session->options.batch_size;
	return step_later(flight->launched_ns, session->last_end_ns) +
	       (uint64_t)(STEP_EXPECTED_SHARE * share * shorter);
}

static void step_read_values(const struct flight *flight, struct step_result *out)
{
	out->loss = (double)flight->readback->loss;
	if (!flight->has_statistics)
		return;
	const double *statistics = flight->readback->statistics;
	out->gradient_norm = statistics[0];
	out->nonfinite_share = statistics[1];
	out->activation_mean = statistics[2];
	out->activation_deviation = statistics[3];
}

static int step_read_times(struct cuda_session *session, const struct flight *flight,
	struct step_result *out, struct error *err)
{
	struct device_clock *clock = &session->clock;
	struct device_span span;
	struct device_span sync = {0};
	OR_RETURN(device_clock_span(clock, flight->stamp, flight->begin, flight->end, &span, err));
	if (flight->copies)
		OR_RETURN(device_clock_between(flight->begin, flight->copied, &out->copy_ns, err));
	if (flight->syncs) {
		OR_RETURN(device_clock_span(
			clock, flight->stamp, flight->sync_begin, flight->sync_end, &sync, err));
		OR_RETURN(device_clock_between(
			flight->exchange_begin, flight->sync_end, &out->exchange_ns, err));
	}
	out->sync_ns = sync.device_ns;
	out->device_ns = span.device_ns;
	out->launch_ns = flight->launch_ns;
	/* Steps follow each other on one stream; a map that was made anew in between may say otherwise by its error. */
	out->begin_ns = span.begin_ns > 0 ? step_later(span.begin_ns, session->last_end_ns) : 0;
	out->end_ns = span.end_ns > 0 ? step_later(span.end_ns, out->begin_ns) : 0;
	out->sync_begin_ns = sync.begin_ns > 0 ? step_later(sync.begin_ns, out->begin_ns) : 0;
	if (out->sync_begin_ns > out->end_ns)
		out->sync_begin_ns = out->end_ns;
	return 0;
}

static int step_collect(struct cuda_session *session, const struct flight *flight,
	struct step_result *out, struct error *err)
{
	OR_RETURN(step_read_times(session, flight, out, err));
	step_read_values(flight, out);
	const uint64_t other_ns = out->copy_ns + out->sync_ns;
	const double work_ns = out->device_ns > other_ns ? (double)(out->device_ns - other_ns) : 0;
	if (flight->whole)
		out->idle_share = records_idle_share(
			session, flight->kind, flight->recorded, work_ns, (double)out->device_ns);
	session->last_end_ns = out->end_ns;
	session->last_ns[1] = session->last_ns[0];
	session->last_ns[0] =
		(uint64_t)((double)out->device_ns * session->options.batch_size / flight->size);
	return device_clock_keep(&session->clock, err);
}

/* An event of a step; what other processes do to it is looked at, too. */
static int step_await(struct cuda_session *session, const struct flight *flight, cudaEvent_t event,
	struct error *err)
{
	const struct cuda_options *options = &session->options;
	const bool peers = group_has_peers(options->group);
	for (;;) {
		const cudaError_t came = wait_for(event, step_expected_end(session, flight),
			peers ? clock_now_ns() + LOOK_NS : UINT64_MAX, options->stop);
		if (came != cudaErrorNotReady)
			return came == cudaSuccess ? 0 : fail_cuda(err, (int)came, "computing");
		if (!peers || (options->stop && atomic_load(options->stop)))
			return error_set(err, -ECANCELED, "cuda: stopped during a step");
		OR_RETURN(group_look(options->group, options->rank, err));
	}
}

int session_computed(struct cuda_session *session, uint64_t *at_ns, struct error *err)
{
	const struct flight *flight = &session->flights[session->finished % session->room];
	struct device_span span;
	*at_ns = 0;
	if (session->launched == session->finished || !flight->syncs)
		return 0;
	OR_RETURN(step_use_device(session, flight->batch, err));
	OR_RETURN(step_await(session, flight, flight->sync_begin, err));
	OR_RETURN(device_clock_span(
		&session->clock, flight->stamp, flight->begin, flight->sync_begin, &span, err));
	/* The device's clock is known with an error. */
	const uint64_t now_ns = clock_now_ns();
	*at_ns = span.end_ns > 0 && span.end_ns < now_ns ? span.end_ns : now_ns;
	return 0;
}

int session_finish(struct cuda_session *session, struct step_result *out, struct error *err)
{
	*out = (struct step_result){
		.loss = NAN,
		.idle_share = NAN,
		.gradient_norm = NAN,
		.nonfinite_share = NAN,
		.activation_mean = NAN,
		.activation_deviation = NAN,
	};
	if (session->launched == session->finished)
		return error_set(err, -EINVAL, "cuda: no step is in flight");
	const struct flight *flight = &session->flights[session->finished % session->room];
	int code = step_use_device(session, flight->batch, err);
	if (code)
		return code;
	code = step_await(session, flight, flight->done, err);
	if (code == -ECANCELED)
		return code;
	if (!code)
		code = step_collect(session, flight, out, err);
	if (code)
		return step_give_up(session, flight->batch, code, err);
	session->finished++;
	return 0;
}

bool session_finished(struct cuda_session *session)
{
	if (session->launched == session->finished)
		return false;
	return wait_look(session->flights[session->finished % session->room].done) !=
	       cudaErrorNotReady;
}

/* --- evaluations ------------------------------------------------------------------------------- */

/* Of no more samples than a step takes.  The place's host memory is free again at the end. */
static int evaluate_piece(
	struct cuda_session *session, const struct batch_view *piece, struct error *err)
{
	struct staging_place *const place = session->staging.evaluated;
	const struct train_batch batch = {
		.data = place->data, .labels = (const void *)place->words, .size = piece->size};
	OR_RETURN(staging_copy(session, place, piece, session->streams[0], err));
	OR_RETURN(train_evaluate(session->train, &batch, err));
	OR_RETURN(step_mark(place->used, session, err));
	const cudaError_t came = wait_for(place->used, 0, UINT64_MAX, session->options.stop);
	if (came == cudaErrorNotReady)
		return error_set(err, -ECANCELED, "cuda: stopped during an evaluation");
	return came == cudaSuccess ? 0 : fail_cuda(err, (int)came, "evaluating");
}

int session_evaluate(
	struct cuda_session *session, const struct batch_view *batch, struct error *err)
{
	const uint32_t most = session->options.batch_size;
	if (!session->staging.evaluated || session->launched != session->finished)
		return error_set(err, -EINVAL, "cuda: %s",
			session->staging.evaluated ? "a step is in flight"
						   : "the session was not opened to evaluate");
	OR_RETURN(step_use_device(session, batch->index, err));
	for (uint32_t first = 0; first < batch->size; first += most) {
		struct batch_view piece = *batch;
		piece.data = (const char *)batch->data + first * batch->sample_bytes;
		piece.labels = batch->labels + first;
		piece.size = batch->size - first < most ? batch->size - first : most;
		OR_RETURN(staging_check(&session->options, &piece, err));
		const int code = evaluate_piece(session, &piece, err);
		if (code)
			return code == -ECANCELED ? code
						  : step_give_up(session, batch->index, code, err);
	}
	return 0;
}
