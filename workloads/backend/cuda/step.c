/* Launching and finishing steps: which batch goes how, and what the device's events say of it afterwards. */
#include "harness/base/clock.h"
#include "workloads/backend/cuda/device_session.h"
#include "workloads/backend/cuda/fail.h"
#include "workloads/backend/cuda/wait.h"

#include <errno.h>
#include <math.h>

/* Of the shorter of the last two steps, so much is slept before the first look at the device. */
static const double EXPECTED_SHARE = 0.9;

/* What is on the device is unknown from now on. */
static int step_give_up(struct cuda_session *session, uint64_t batch, int code, struct error *err)
{
	session->broken = true;
	return error_prefix(err, code, "step of batch %llu", (unsigned long long)batch);
}

static int use_device(struct cuda_session *session, uint64_t batch, struct error *err)
{
	if (session->broken)
		return error_set(err, -EIO, "cuda: an earlier step failed");
	const int code = CUDA_TRY(err, cudaSetDevice((int)session->options.device));
	return code ? step_give_up(session, batch, code, err) : 0;
}

/* --- launching -------------------------------------------------------------------------------------------------------- */

static int check_place(
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
		"cuda: batch %llu, of %u, was not uploaded to place %d of %u",
		(unsigned long long)batch->index, batch->size, batch->place, places);
}

static struct step_plan make_plan(
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

static void begin_flight(struct cuda_session *session, struct flight *flight,
	const struct step_plan *plan, const struct batch_view *batch)
{
	flight->batch = batch->index;
	flight->size = batch->size;
	flight->stamp = device_clock_stamp(&session->clock);
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
	const struct step_plan plan = make_plan(session, batch);
	begin_flight(session, flight, &plan, batch);
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
	int code = use_device(session, batch->index, err);
	/* What was uploaded was checked then; its host memory may hold another batch by now. */
	if (!code && batch->place == BATCH_ON_HOST)
		code = staging_check(&session->staging, batch, err);
	if (!code)
		code = check_place(session, batch, err);
	if (!code && session->launched - session->finished >= session->room)
		code = error_set(
			err, -EINVAL, "cuda: %u steps are in flight already", session->room);
	return code ? code : step_launch_kernels(session, batch, err);
}

/* --- finishing ----------------------------------------------------------------------------------------------------------- */

static uint64_t step_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* When the step will hardly be done yet. */
static uint64_t expected_end(const struct cuda_session *session, const struct flight *flight)
{
	const uint64_t *last = session->last_ns;
	const double shorter = (double)(last[0] < last[1] ? last[0] : last[1]);
	const double share = (double)flight->size / session->options.batch_size;
	return step_later(flight->launched_ns, session->last_end_ns) +
	       (uint64_t)(EXPECTED_SHARE * share * shorter);
}

static void read_values(const struct flight *flight, struct step_result *out)
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

static int read_sync(struct cuda_session *session, const struct flight *flight,
	struct step_result *out, struct error *err)
{
	struct device_span span;
	const int code = device_clock_span(
		&session->clock, flight->stamp, flight->sync_begin, flight->sync_end, &span, err);
	out->sync_ns = span.device_ns;
	out->sync_begin_ns = span.begin_ns;
	return code;
}

static int read_times(struct cuda_session *session, const struct flight *flight,
	struct step_result *out, struct error *err)
{
	struct device_span span;
	int code = device_clock_span(
		&session->clock, flight->stamp, flight->begin, flight->end, &span, err);
	if (!code && flight->copies)
		code = device_clock_between(flight->begin, flight->copied, &out->copy_ns, err);
	if (!code && flight->syncs)
		code = read_sync(session, flight, out, err);
	if (code)
		return code;
	out->device_ns = span.device_ns;
	out->launch_ns = flight->launch_ns;
	/* Steps follow each other on one stream; a map that was made anew in between may say otherwise by its error. */
	out->begin_ns = span.begin_ns > 0 ? step_later(span.begin_ns, session->last_end_ns) : 0;
	out->end_ns = span.end_ns > 0 ? step_later(span.end_ns, out->begin_ns) : 0;
	return 0;
}

static void judge_idle(
	struct cuda_session *session, const struct flight *flight, struct step_result *out)
{
	const uint64_t other_ns = out->copy_ns + out->sync_ns;
	const double work_ns = out->device_ns > other_ns ? (double)(out->device_ns - other_ns) : 0;
	if (flight->whole)
		out->idle_share = records_idle_share(
			session, flight->kind, flight->recorded, work_ns, (double)out->device_ns);
}

static int step_collect(struct cuda_session *session, const struct flight *flight,
	struct step_result *out, struct error *err)
{
	const int code = read_times(session, flight, out, err);
	if (code)
		return code;
	read_values(flight, out);
	judge_idle(session, flight, out);
	session->last_end_ns = out->end_ns;
	session->last_ns[1] = session->last_ns[0];
	session->last_ns[0] =
		(uint64_t)((double)out->device_ns * session->options.batch_size / flight->size);
	return device_clock_keep(&session->clock, err);
}

static int wait_and_collect(struct cuda_session *session, const struct flight *flight,
	struct step_result *out, struct error *err)
{
	const cudaError_t came = wait_for(
		flight->done, expected_end(session, flight), UINT64_MAX, session->options.stop);
	if (came == cudaErrorNotReady)
		return error_set(err, -ECANCELED, "cuda: stopped within a step");
	return came == cudaSuccess ? step_collect(session, flight, out, err)
				   : fail_cuda(err, (int)came, "computing");
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
	int code = use_device(session, flight->batch, err);
	if (code)
		return code;
	code = wait_and_collect(session, flight, out, err);
	if (code == -ECANCELED)
		return code;
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
