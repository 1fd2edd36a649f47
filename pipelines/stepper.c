/* The step threads, and what came through all devices together.  A backend is opened, used and closed by its
 * step thread, since threads of a BLAS library belong to the thread that first called it. */
#include "pipelines/repetition.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"
#include "workloads/backend/backend.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMPLETIONS = 16384, /* that are remembered one by one */
	LOOKS_PER_STEP = 16, /* at a device that is at a step */
	LOOK_LEAST_NS = 50000,
	LOOK_MOST_NS = 1000000,
};

struct stepper {
	struct run *run;
	unsigned lane;                           /* at the exchange, and which of the devices */
	struct upload *upload;                   /* NULL: batches come from the exchange */
	struct thread_meter *meter, *sync_meter; /* NULL: not timed, or no such stage */
	struct timeline_log *device_timeline;    /* what the device does; NULL: no timeline */
	uint64_t warmup_ns;                      /* configured */
	pthread_t thread;
	bool started;
	struct seat seat;
	struct backend *backend;
	struct step_account account;
	struct completion sum;
	struct group_watch watch;
	uint64_t start_ns;
	atomic_uint_least64_t samples, batches, last_step_ns;
};

/* A step that is over.  Times are monotonic. */
struct step_record {
	uint64_t seen_ns; /* the thread saw that it was */
	uint64_t ended_ns;
	uint64_t service_ns; /* as a trace has it */
	uint64_t host_ns;    /* that delayed the device */
	uint64_t took_ns;    /* from the batch to the end, as the thread saw it */
	uint64_t copy_bytes; /* that the step itself copied to a device */
};

/* --- rounds ---------------------------------------------------------------------------------- */

int rounds_open(struct rounds *r, unsigned devices, struct thread_meter *meters)
{
	*r = (struct rounds){.devices = devices, .meters = meters};
	const int code = completions_open(&r->completions, COMPLETIONS);
	if (code)
		return code;
	if (pthread_mutex_init(&r->lock, NULL)) {
		completions_close(&r->completions);
		return -ENOMEM;
	}
	r->is_open = true;
	return 0;
}

void rounds_close(struct rounds *r)
{
	if (!r->is_open)
		return;
	(void)pthread_mutex_destroy(&r->lock);
	completions_close(&r->completions);
	lateness_close(&r->lateness);
	*r = (struct rounds){0};
}

static uint64_t rounds_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t rounds_beyond(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* host_ns: of ranks, what was waited for the others before the exchange. */
static void rounds_meter(const struct rounds *r, unsigned device, const struct round_step *step,
	uint64_t exchange_ns)
{
	struct thread_meter *const m = &r->meters[device];
	const uint64_t ended_ns = step->sync_begin_ns + step->sync_ns;
	const struct trace_entry item = {
		.number = step->batch,
		.end_ns = ended_ns,
		.service_ns = (float)exchange_ns,
		.host_ns = step->ranks.met_ns > 0 ? (float)(step->sync_ns - exchange_ns) : NAN,
	};
	span_item(m, ended_ns, exchange_ns, &item);
	if (r->late) {
		state_clock_move(
			&m->clock, THREAD_STARVED, THREAD_WORKING, exchange_ns, clock_now_ns());
	} else if (step->ranks.met_ns > 0) {
		state_clock_enter(&m->clock, THREAD_WORKING, ended_ns - exchange_ns);
		state_clock_enter(&m->clock, THREAD_STARVED, ended_ns);
	}
}

static void rounds_count_ranks(struct rounds *r, const struct round_step *step)
{
	struct round_sums *const sums = &r->sums[0];
	const struct gradients_round *const ranks = &step->ranks;
	lateness_add(&r->lateness, ranks->ended_ns,
		&(const struct late_round){
			.step = sums->count, .rank = ranks->last, .late_ns = ranks->late_ns});
	sums->count++;
	sums->passed_ns = rounds_beyond(step->sync_begin_ns + step->sync_ns, r->start_ns);
	if (ranks->last != r->rank)
		return;
	sums->last++;
	sums->late_ns += ranks->late_ns;
	sums->own_ns += ranks->ended_ns - ranks->first_ns;
	sums->own_hidden_ns += rounds_beyond(step->sync_begin_ns, ranks->first_ns);
}

/* Of the device that was the last to have its gradients. */
static void rounds_count_hidden(struct rounds *r, const struct round *round)
{
	unsigned last = 0;
	for (unsigned i = 1; i < r->devices; i++)
		if (round->steps[i].sync_begin_ns > round->steps[last].sync_begin_ns)
			last = i;
	const struct round_step *const step = &round->steps[last];
	r->sums[last].own_ns += step->exchange_ns;
	r->sums[last].own_hidden_ns += rounds_beyond(step->exchange_ns, step->sync_ns);
}

static void rounds_count_exchange(struct rounds *r, const struct round *round)
{
	uint64_t began_ns = round->steps[0].ranks.met_ns;
	if (began_ns > 0)
		rounds_count_ranks(r, &round->steps[0]);
	else
		rounds_count_hidden(r, round);
	for (unsigned i = 0; i < r->devices; i++)
		began_ns = rounds_later(began_ns, round->steps[i].sync_begin_ns);
	for (unsigned i = 0; i < r->devices && began_ns > 0; i++) {
		const struct round_step *step = &round->steps[i];
		const uint64_t ended_ns = step->sync_begin_ns + step->sync_ns;
		const uint64_t exchange_ns = rounds_beyond(ended_ns, began_ns);
		r->sums[i].exchange_ns += exchange_ns;
		r->sums[i].waiting_ns += rounds_beyond(step->sync_ns, exchange_ns);
		if (r->meters)
			rounds_meter(r, i, step, exchange_ns);
	}
}

static void rounds_complete(struct rounds *r, const struct round *round)
{
	uint64_t ended_ns = 0;
	for (unsigned i = 0; i < r->devices; i++) {
		const struct round_step *step = &round->steps[i];
		ended_ns = rounds_later(ended_ns, step->ended_ns);
		r->sum.samples += step->samples;
		r->sum.stepped += step->stepped;
		r->sum.device_ns += step->compute_ns;
		r->sum.oversleep_ns += step->oversleep_ns;
	}
	r->sum.batches += r->devices;
	r->sum.t_ns = rounds_later(r->sum.t_ns, rounds_beyond(ended_ns, r->start_ns));
	completions_add(&r->completions, &r->sum);
	if (r->devices > 1 || round->steps[0].ranks.met_ns > 0)
		rounds_count_exchange(r, round);
}

/* A device's thread, its steps in their order; rounds->start_ns was set before the first. */
static void rounds_add(struct rounds *r, unsigned device, const struct round_step *step)
{
	(void)pthread_mutex_lock(&r->lock);
	struct round *const round = &r->open[r->steps[device]++ % ROUNDS_OPEN_MAX];
	round->steps[device] = *step;
	if (++round->arrived == r->devices) {
		rounds_complete(r, round);
		round->arrived = 0;
	}
	(void)pthread_mutex_unlock(&r->lock);
}

void rounds_read(struct rounds *r, struct round_sums *out)
{
	(void)pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < r->devices; i++)
		out[i] = r->sums[i];
	(void)pthread_mutex_unlock(&r->lock);
}

/* --- the account of what came through -------------------------------------------------------- */

static struct batch_view stepper_view(const struct stepper *s, const struct slot *slot)
{
	struct run *const run = s->run;
	const bool uploaded = s->upload && backend_is_device(s->backend->ops);
	return slot_view(slot, &run->plan.sample, uploaded ? (int)slot->index : BATCH_ON_HOST);
}

static void stepper_meter(
	struct thread_meter *meter, const struct slot *slot, const struct step_record *r)
{
	const struct trace_entry item = {
		.number = slot->batch,
		.end_ns = r->ended_ns,
		.service_ns = (float)r->service_ns,
		.host_ns = (float)r->host_ns,
	};
	span_item(meter, r->ended_ns, r->service_ns, &item);
}

/* A device may not tell it of every step. */
static void stepper_keep_loss(struct step_account *account, double loss)
{
	if (account->on_device && isnan(loss))
		return;
	if (isnan(account->loss_first))
		account->loss_first = loss;
	account->loss_last = loss;
}

static void stepper_add_device_times(struct completion *sum, const struct step_result *result)
{
	sum->launch_ns += result->launch_ns;
	sum->copy_ns += result->copy_ns;
	if (isnan(result->idle_share))
		return;
	sum->idle_ns += (uint64_t)(result->idle_share * (double)result->device_ns);
	sum->idle_of_ns += result->device_ns;
}

/* The newest that was sampled. */
static void stepper_keep_statistics(
	struct device_measurement *device, const struct step_result *result)
{
	if (isnan(result->gradient_norm) && isnan(result->nonfinite_share))
		return;
	device->gradient_norm = result->gradient_norm;
	device->nonfinite_share = result->nonfinite_share;
	device->activation_mean = result->activation_mean;
	device->activation_deviation = result->activation_deviation;
}

static void stepper_show(struct timeline_log *log, enum timeline_kind kind, uint64_t begin_ns,
	uint64_t end_ns, uint64_t number)
{
	if (end_ns > begin_ns)
		timeline_put(log, &(const struct timeline_entry){.begin_ns = begin_ns,
					  .end_ns = end_ns,
					  .number = number,
					  .kind = (uint16_t)kind});
}

/* An emulated device is a clock: its times are nominal ones. */
static void stepper_show_device(
	const struct stepper *s, uint64_t batch, const struct step_result *result)
{
	struct timeline_log *const log = s->device_timeline;
	if (!log || result->end_ns == 0)
		return;
	const uint64_t computed_ns = result->end_ns - result->sync_ns;
	const uint64_t met_ns = rounds_later(result->round.met_ns, computed_ns);
	stepper_show(log, TIMELINE_DEVICE_STEP, result->begin_ns, computed_ns, batch);
	stepper_show(log, TIMELINE_DEVICE_WAIT, computed_ns, met_ns, batch);
	stepper_show(log, TIMELINE_DEVICE_SYNC, met_ns, result->end_ns, batch);
}

/* The thread was blocked meanwhile. */
static void stepper_show_ranks(
	const struct stepper *s, uint64_t batch, const struct step_result *result)
{
	struct timeline_log *const log = s->meter ? s->meter->clock.timeline : NULL;
	const struct gradients_round *const round = &result->round;
	if (!log || round->met_ns == 0)
		return;
	stepper_show(log, TIMELINE_RANKS_WAIT, result->sync_begin_ns, round->met_ns, batch);
	stepper_show(log, TIMELINE_RANKS_EXCHANGE, round->met_ns, round->ended_ns, batch);
	if (s->run->gradients->options.bytes > 0)
		stepper_show(
			log, TIMELINE_GRADIENTS, round->first_ns, round->ended_ns, s->sum.batches);
	if (round->last == s->run->rounds.rank)
		timeline_put(log,
			&(const struct timeline_entry){.begin_ns = round->met_ns - round->late_ns,
				.end_ns = round->met_ns,
				.number = s->sum.batches,
				.kind = TIMELINE_LAST_RANK});
}

/* The step's thread has seen its end: the next one begins. */
static void stepper_show_end(const struct stepper *s, const struct slot *slot, uint64_t seen_ns)
{
	struct timeline_log *const log = s->meter ? s->meter->clock.timeline : NULL;
	if (log)
		timeline_step(log, slot->batch, seen_ns);
}

static void stepper_fail(const struct stepper *s, int code, struct error *err)
{
	if (s->run->plan.devices > 1)
		(void)error_prefix(err, code, "device %u", s->lane);
	crew_fail(&s->run->crew, code, err);
}

/* What of the step the device spent with others is known only now: its thread was counted as working. */
static void stepper_move_sync(const struct stepper *s, const struct step_result *result)
{
	if (s->meter && s->account.on_device && result->sync_ns > 0)
		state_clock_move(&s->meter->clock, THREAD_WORKING, THREAD_BLOCKED, result->sync_ns,
			clock_now_ns());
}

static void stepper_add_round(struct stepper *s, const struct slot *slot,
	const struct step_result *result, const struct step_record *record)
{
	const struct round_step step = {
		.batch = slot->batch,
		.ended_ns = record->ended_ns,
		.samples = slot->size - slot->bad,
		.stepped = slot->size,
		.compute_ns = result->device_ns - result->sync_ns,
		.oversleep_ns = result->oversleep_ns,
		.sync_begin_ns = result->sync_begin_ns,
		.sync_ns = result->sync_ns,
		.exchange_ns = result->exchange_ns,
		.ranks = result->round,
	};
	rounds_add(&s->run->rounds, s->lane, &step);
}

static bool stepper_count(struct stepper *s, const struct slot *slot,
	const struct step_result *result, const struct step_record *record)
{
	s->sum.t_ns = record->ended_ns - s->start_ns;
	s->sum.samples += slot->size - slot->bad;
	s->sum.batches++;
	s->sum.device_ns += result->device_ns;
	s->sum.oversleep_ns += result->oversleep_ns;
	s->sum.stepped += slot->size;
	s->sum.sync_ns += result->sync_ns;
	s->sum.copy_bytes += record->copy_bytes;
	if (s->account.on_device) {
		stepper_add_device_times(&s->sum, result);
		stepper_keep_statistics(&s->account.device, result);
	}
	completions_add(&s->account.completions, &s->sum);
	stepper_move_sync(s, result);
	stepper_add_round(s, slot, result, record);
	if (s->sum.t_ns >= s->warmup_ns && result->oversleep_ns > s->account.oversleep_max_ns)
		s->account.oversleep_max_ns = result->oversleep_ns;
	stepper_keep_loss(&s->account, result->loss);
	if (s->meter)
		stepper_meter(s->meter, slot, record);
	stepper_show_end(s, slot, record->seen_ns);
	atomic_store_explicit(&s->samples, s->sum.samples, memory_order_relaxed);
	atomic_store_explicit(&s->batches, s->sum.batches, memory_order_relaxed);
	atomic_store_explicit(&s->last_step_ns, record->took_ns, memory_order_relaxed);
	if (first_epoch_step(&s->run->first_epoch, slot))
		return true;
	struct error err;
	crew_fail(&s->run->crew,
		error_set(&err, -EBADMSG,
			"not one sample of the first epoch could be read and decoded"),
		&err);
	return false;
}

/* Whether the device stands still after this step of it, counted from 1. */
static bool stepper_stalls(const struct stepper *s, uint64_t step)
{
	return s->lane == 0 && (checkpoints_follow(s->run->checkpoints, step) ||
				       evaluations_follow(s->run->evaluations, step));
}

static bool stepper_evaluate(struct stepper *s, uint64_t *now_ns)
{
	const struct evaluation_caller caller = {.backend = s->backend,
		.step_meter = s->meter,
		.step = s->sum.batches,
		.stepped_ns = s->sum.t_ns,
		.sample_ns = (double)(s->sum.device_ns - s->sum.sync_ns) / (double)s->sum.stepped};
	return evaluations_stall(s->run->evaluations, &caller, now_ns);
}

/* After each of its steps.  What was evaluated is what is saved.  False: the repetition is over. */
static bool stepper_stand_still(struct stepper *s, uint64_t *now_ns)
{
	struct checkpoints *const c = s->run->checkpoints;
	const uint64_t step = s->sum.batches;
	if (!stepper_stalls(s, step))
		return true;
	if (evaluations_follow(s->run->evaluations, step) && !stepper_evaluate(s, now_ns))
		return false;
	return !checkpoints_follow(c, step) ||
	       checkpoints_stall(c, s->meter, step, s->sum.t_ns, now_ns);
}

/* --- one step after another, by the thread itself -------------------------------------------- */

static struct slot *stepper_next_batch(struct stepper *s, struct slot *used, uint64_t *now_ns)
{
	struct run *const run = s->run;
	return s->upload ? upload_next_batch(s->upload, &s->seat, used, now_ns)
			 : exchange_next_batch(&run->exchange, s->lane, &s->seat, used, now_ns);
}

/* The backend's step, planted to take `factor` times as long. */
static int stepper_compute(struct stepper *s, const struct batch_view *view, double factor,
	uint64_t began_ns, struct step_result *result, struct error *err)
{
	s->backend->slowdown = factor;
	s->backend->exchange_slowdown = injection_exchange_factor(&s->run->injection);
	const int code = backend_step(s->backend, view, result, err);
	if (s->backend->emulated || factor <= 1)
		return code;
	injection_end_step(factor, began_ns, &s->run->crew.stopping);
	result->device_ns = (uint64_t)(factor * (double)result->device_ns);
	return code;
}

/* False: another rank ends with this round, and so do all. */
static bool stepper_goes_on(const struct stepper *s, const struct step_result *result)
{
	struct error err;
	if (result->round.leaves == GRADIENTS_FAILED)
		crew_fail(&s->run->crew, error_set(&err, -ECANCELED, "another rank failed"), &err);
	return result->round.leaves == GRADIENTS_STAY;
}

/* False: the repetition is over. */
static bool stepper_step(struct stepper *s, const struct slot *slot, uint64_t *now_ns)
{
	struct run *const run = s->run;
	const struct batch_view view = stepper_view(s, slot);
	first_epoch_hash(&run->first_epoch, slot);
	struct step_result result = {.loss = NAN};
	struct error err = {0};
	const uint64_t began_ns = *now_ns;
	(void)clock_spin_cpu(run->overhead.step_ns, &run->crew.stopping);
	const double factor = injection_begin_step(&run->injection, s->lane, &run->crew.stopping);
	const bool shown = timeline_is_on();
	const uint64_t called_ns = clock_now_ns();
	const int code = stepper_compute(s, &view, factor, called_ns, &result, &err);
	const uint64_t ended_ns = clock_now_ns();
	/* What follows is the exchange with other devices, in which the thread is blocked. */
	const uint64_t computed_ns = result.sync_begin_ns > 0 ? result.sync_begin_ns : ended_ns;
	timeline_span(
		TIMELINE_COMPUTE, shown ? called_ns : 0, computed_ns, slot->batch, slot->size);
	stepper_show_device(s, slot->batch, &result);
	stepper_show_ranks(s, slot->batch, &result);
	/* A step that was cut short by the end of the run does not count. */
	if (crew_stopping(&run->crew))
		return false;
	if (code) {
		stepper_fail(s, code, &err);
		return false;
	}
	*now_ns = ended_ns;
	const struct step_record record = {
		.seen_ns = ended_ns,
		/* An emulated device has ended when its time is over, however late its thread wakes up. */
		.ended_ns = s->account.emulated ? result.end_ns : ended_ns,
		.service_ns = s->account.emulated ? result.device_ns - result.sync_ns
						  : ended_ns - began_ns,
		.host_ns = called_ns - began_ns,
		.took_ns = ended_ns - began_ns,
	};
	return stepper_count(s, slot, &result, &record) && stepper_goes_on(s, &result) &&
	       stepper_stand_still(s, now_ns);
}

static void stepper_step_in_turn(struct stepper *s)
{
	uint64_t now_ns = s->start_ns;
	/* Untimed, the time is kept here alone: the exchange then keeps none. */
	uint64_t untimed_ns = 0;
	uint64_t *const visit_ns = s->meter ? &now_ns : &untimed_ns;
	struct slot *slot = NULL;
	while ((slot = stepper_next_batch(s, slot, visit_ns)) && stepper_step(s, slot, &now_ns))
		continue;
}

/* --- steps launched on a device -------------------------------------------------------------- */

/* On a device that works by itself the thread launches the next steps while the device is at
 * one, at most 1 + step.ahead of them, and finishes them in their order.
 *
 * While any is in flight it waits for whichever comes first, a batch or the end of the oldest step: for
 * the batch in the queue where it would be woken, with a look at the device now and then.  That the end
 * is seen a little late costs nothing, since there is no batch to launch, and no truth, since the end is
 * what the device's clock says.
 *
 * A checkpoint or an evaluation is of the state after one step: nothing is launched behind that step until it is done, and the
 * slots of the steps before it are given back afterwards.
 *
 * A planted slow-down keeps a clock of the steps as they should have been: each begins when the device
 * began it, or when the one before it ended, and is counted, and its slot given back, when it ends. */

/* A step that was launched. */
struct flight {
	struct slot *slot;
	uint64_t had_ns;    /* the thread had the batch */
	uint64_t launch_ns; /* host time of launching it, overhead.step included */
	uint64_t overhead_ns;
	double factor;       /* planted */
	uint64_t copy_bytes; /* of a batch that was not uploaded before */
};

struct flights {
	struct stepper *stepper;
	struct flight *list; /* ring of (room) */
	unsigned room;
	uint64_t launched, finished;
	uint64_t last_end_ns; /* of the newest that was finished, as planted */
	uint64_t look_ns;     /* between looks at the device */
	bool over;            /* no batch will come */
	struct slot **used;   /* (room) finished, and not given back yet */
	unsigned used_count;
};

static bool flights_report(const struct stepper *s, int code, const struct error *err)
{
	struct error named = *err;
	if (code && !crew_stopping(&s->run->crew))
		stepper_fail(s, code, &named);
	return code == 0;
}

static bool flights_launch(struct flights *f, struct slot *slot)
{
	struct stepper *s = f->stepper;
	struct run *const run = s->run;
	const struct batch_view view = stepper_view(s, slot);
	struct flight *const flight = &f->list[f->launched % f->room];
	if (view.place == BATCH_ON_HOST)
		first_epoch_hash(&run->first_epoch, slot);
	*flight = (struct flight){
		.slot = slot,
		.had_ns = clock_now_ns(),
		.copy_bytes = view.place == BATCH_ON_HOST ? view.bytes : 0,
	};
	const struct span span = span_begin(STAGE_STEP, s->backend->ops->mark);
	(void)clock_spin_cpu(run->overhead.step_ns, &run->crew.stopping);
	flight->overhead_ns = run->overhead.step_ns > 0 ? clock_now_ns() - flight->had_ns : 0;
	flight->factor = injection_begin_step(&run->injection, s->lane, &run->crew.stopping);
	struct error err = {0};
	const int code = s->backend->ops->launch(s->backend, &view, &err);
	flight->launch_ns = clock_now_ns() - flight->had_ns;
	span_end(&span, TIMELINE_LAUNCH, slot->batch, slot->size);
	f->launched++;
	return flights_report(s, code, &err);
}

static uint64_t flights_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* When the device was at it, by its own clock where that is known, never after now; as planted. */
static struct step_record flights_judge(
	struct flights *f, const struct flight *flight, struct step_result *result, uint64_t now_ns)
{
	const bool known = result->end_ns > 0 && result->end_ns < now_ns;
	const uint64_t real_end_ns = known ? result->end_ns : now_ns;
	const uint64_t free_ns = flights_later(f->last_end_ns, flight->had_ns);
	uint64_t began_ns =
		result->begin_ns > 0 ? result->begin_ns : real_end_ns - result->device_ns;
	began_ns = flights_later(began_ns, f->last_end_ns);
	/* Nothing is planted in what it spends with other devices. */
	const uint64_t own_ns = result->device_ns - result->sync_ns;
	const uint64_t took_ns = (uint64_t)(flight->factor * (double)own_ns) + result->sync_ns;
	/* The rest of a gap is waiting for the copy of the batch. */
	const uint64_t gap_ns = began_ns > free_ns ? began_ns - free_ns : 0;
	const bool planted = flight->factor > 1 || f->last_end_ns > real_end_ns;
	const uint64_t end_ns = planted ? began_ns + took_ns : real_end_ns;
	result->device_ns = took_ns;
	result->launch_ns = flight->launch_ns - flight->overhead_ns;
	const struct step_record record = {
		.seen_ns = now_ns,
		.ended_ns = flights_later(end_ns, f->last_end_ns),
		.service_ns = took_ns - result->sync_ns,
		.host_ns = gap_ns < flight->launch_ns ? gap_ns : flight->launch_ns,
		.took_ns = now_ns - flight->had_ns,
		.copy_bytes = flight->copy_bytes,
	};
	f->last_end_ns = record.ended_ns;
	return record;
}

static void flights_choose_look(struct flights *f, uint64_t service_ns)
{
	const uint64_t share_ns = service_ns / LOOKS_PER_STEP;
	f->look_ns = share_ns < LOOK_LEAST_NS  ? LOOK_LEAST_NS
		     : share_ns < LOOK_MOST_NS ? share_ns
					       : LOOK_MOST_NS;
}

static void flights_trace(const struct stepper *s, uint64_t batch, const struct step_result *result)
{
	const struct trace_entry item = {
		.number = batch,
		.end_ns = result->end_ns,
		.service_ns = (float)(result->end_ns - result->begin_ns),
		.host_ns = (float)result->launch_ns,
	};
	if (result->end_ns > 0)
		span_device(s->meter, NULL, TIMELINE_DEVICE_STEP, result->begin_ns, &item);
}

/* Waits for the oldest step; its slot is free again.  NULL: the run is over. */
static struct slot *flights_finish(struct flights *f, uint64_t *now_ns)
{
	struct stepper *s = f->stepper;
	struct run *const run = s->run;
	if (s->upload)
		upload_wait_copy(s->upload, &s->seat, f->finished, now_ns);
	if (crew_stopping(&run->crew))
		return NULL;
	const struct flight *const flight = &f->list[f->finished % f->room];
	struct step_result result = {.loss = NAN,
		.idle_share = NAN,
		.gradient_norm = NAN,
		.nonfinite_share = NAN,
		.activation_mean = NAN,
		.activation_deviation = NAN};
	struct error err = {0};
	const uint64_t shown_ns = timeline_mark();
	const int code = s->backend->ops->finish(s->backend, &result, &err);
	(void)timeline_end(TIMELINE_STEP_WAIT, shown_ns, flight->slot->batch);
	/* A step that was cut short by the end of the run does not count, nor one whose gradients could not be summed any more. */
	if (!flights_report(s, code, &err) || crew_stopping(&run->crew) ||
		!stepper_goes_on(s, &result))
		return NULL;
	struct step_record record = flights_judge(f, flight, &result, clock_now_ns());
	flights_trace(s, flight->slot->batch, &result);
	stepper_show_device(s, flight->slot->batch, &result);
	stepper_show_ranks(s, flight->slot->batch, &result);
	injection_hold(record.ended_ns, &run->crew.stopping);
	if (crew_stopping(&run->crew))
		return NULL;
	flights_choose_look(f, record.service_ns);
	f->finished++;
	if (s->meter)
		record.seen_ns = clock_now_ns();
	return stepper_count(s, flight->slot, &result, &record) ? flight->slot : NULL;
}

/* The next batch, giving a slot back (or NULL) on the way. */
static struct slot *flights_next_batch(struct flights *f, struct slot *used, uint64_t *now_ns)
{
	struct stepper *s = f->stepper;
	struct run *const run = s->run;
	struct slot *slot;
	if (f->launched == f->finished) {
		slot = stepper_next_batch(s, used, now_ns);
		f->over = !slot;
		return slot;
	}
	const uint64_t until_ns =
		s->backend->ops->finished(s->backend) ? 0 : clock_now_ns() + f->look_ns;
	return s->upload ? upload_try_batch(s->upload, &s->seat, used, f->finished, until_ns,
				   &f->over, now_ns)
			 : exchange_try_batch(&run->exchange, s->lane, &s->seat, used, until_ns,
				   &f->over, now_ns);
}

/* Whether what is in flight ends with the step that a checkpoint or an evaluation is of. */
static bool flights_drains(const struct flights *f)
{
	return f->launched > f->finished && stepper_stalls(f->stepper, f->launched);
}

static bool flights_end_oldest(struct flights *f, uint64_t *now_ns)
{
	struct slot *const slot = flights_finish(f, now_ns);
	if (!slot)
		return false;
	f->used[f->used_count++] = slot;
	return stepper_stand_still(f->stepper, now_ns);
}

static void flights_go_on(struct flights *f)
{
	struct stepper *s = f->stepper;
	const struct backend_ops *const ops = s->backend->ops;
	uint64_t now_ns = s->meter ? s->start_ns : 0;
	bool going = true;
	while (going && !crew_stopping(&s->run->crew)) {
		const uint64_t in_flight = f->launched - f->finished;
		const bool drains = flights_drains(f);
		struct slot *slot = NULL;
		if (!drains && (f->used_count > 0 || (!f->over && in_flight < f->room)))
			slot = flights_next_batch(
				f, f->used_count > 0 ? f->used[--f->used_count] : NULL, &now_ns);
		if (slot)
			going = flights_launch(f, slot);
		else if (in_flight > 0 &&
			 (f->over || drains || in_flight == f->room || ops->finished(s->backend)))
			going = flights_end_oldest(f, &now_ns);
		else if (f->over && f->used_count == 0)
			going = false;
		if (s->meter)
			now_ns = clock_now_ns();
	}
}

static void flights_run(struct stepper *s)
{
	struct flights f = {
		.stepper = s,
		.room = 1 + (unsigned)config_integer(s->run->config, KEY_STEP_AHEAD),
		.last_end_ns = s->start_ns,
		.look_ns = LOOK_LEAST_NS,
	};
	f.list = calloc(f.room, sizeof *f.list);
	f.used = calloc(f.room, sizeof(struct slot *));
	if (f.list && f.used) {
		flights_go_on(&f);
	} else {
		struct error err;
		crew_fail(&s->run->crew, error_set(&err, -ENOMEM, "out of memory"), &err);
	}
	free(f.used);
	free(f.list);
}

/* --- the thread ------------------------------------------------------------------------------ */

/* A refusal is no failure: copies are then those from pageable memory, and the run says so. */
static void stepper_pin(struct stepper *s)
{
	struct run *const run = s->run;
	if (config_integer(run->config, KEY_UPLOAD_MEMORY) != UPLOAD_MEMORY_PINNED)
		return;
	struct error err = {0};
	if (s->backend->ops->pin(s->backend, run->slot_block.data, run->slot_block.size, &err))
		(void)snprintf(
			s->account.not_pinned, sizeof s->account.not_pinned, "%.250s", err.text);
}

/* The device's thread, as its step goes on. */
static void stepper_enter_phase(void *context, enum group_phase phase, uint64_t at_ns)
{
	const struct stepper *s = context;
	const bool computes = phase == GROUP_COMPUTES;
	if (s->sync_meter)
		state_clock_enter(&s->sync_meter->clock,
			phase == GROUP_EXCHANGES ? THREAD_WORKING : THREAD_STARVED, at_ns);
	state_clock_enter(&s->meter->clock, computes ? THREAD_WORKING : THREAD_BLOCKED, at_ns);
}

static int stepper_open_backend(struct stepper *s, struct error *err)
{
	struct run *const run = s->run;
	const int code = backend_open(&s->backend,
		&(const struct backend_options){.config = run->config,
			.sample_elements = run->plan.sample.values,
			.class_count = run->plan.sample.classes,
			.stop = &run->crew.stopping,
			.choosing = &run->crew.choosing,
			.device_index = s->lane,
			.device_count = run->plan.devices,
			.group = run->group,
			.gradients = run->gradients,
			.watch = (run->group || run->gradients) && s->meter ? &s->watch : NULL,
			.staging_places = run->plan.staging_slots,
			.batch_room = run->plan.batch_bytes},
		err);
	if (code)
		return code;
	s->account.emulated = s->backend->emulated;
	s->account.on_device = backend_is_device(s->backend->ops);
	s->account.flops_per_sample = s->backend->flops_per_sample;
	(void)snprintf(s->account.description, sizeof s->account.description, "%s",
		s->backend->description);
	atomic_store(&s->last_step_ns, (uint64_t)s->backend->nominal_step_ns);
	if (s->account.on_device)
		stepper_pin(s);
	if (s->upload)
		upload_use(s->upload, s->backend);
	return 0;
}

/* All ranks end after the same round: what this one has no batch for, or was stopped in, it takes part in all the same. */
static void stepper_leave_ranks(struct stepper *s)
{
	struct run *const run = s->run;
	struct error err = {0};
	if (!run->gradients)
		return;
	const int code = gradients_leave(
		run->gradients, run->crew.code ? GRADIENTS_FAILED : GRADIENTS_ENDED, &err);
	if (code && code != -EINTR)
		crew_fail(&run->crew, code, &err);
}

static void stepper_run_steps(struct stepper *s)
{
	if (s->account.on_device)
		flights_run(s);
	else
		stepper_step_in_turn(s);
	stepper_leave_ranks(s);
	if (s->meter)
		state_clock_enter(&s->meter->clock, THREAD_STARVED, clock_now_ns());
	crew_finish(&s->run->crew);
}

/* What the backend says of its device, beside what was sampled of the steps. */
static void stepper_describe_device(struct stepper *s)
{
	struct device_measurement told;
	device_measurement_init(&told);
	s->backend->ops->describe(s->backend, &told);
	const struct device_measurement *const sampled = &s->account.device;
	if (!isnan(sampled->gradient_norm) || !isnan(sampled->nonfinite_share)) {
		told.gradient_norm = sampled->gradient_norm;
		told.nonfinite_share = sampled->nonfinite_share;
		told.activation_mean = sampled->activation_mean;
		told.activation_deviation = sampled->activation_deviation;
	}
	s->account.device = told;
	s->account.described = true;
}

/* The uploader uses the backend, too. */
static void stepper_close_backend(struct stepper *s)
{
	struct backend *const backend = s->backend;
	if (s->upload)
		upload_wait_end(s->upload, &s->seat);
	if (backend && backend->ops->describe)
		stepper_describe_device(s);
	backend_close(backend);
}

/* It has no thread of its own: what this one allocates is the step's. */
static void stepper_start_sync(const struct stepper *s)
{
	struct thread_meter *const meter = s->sync_meter;
	service_log_start(&meter->service, s->start_ns, s->run->segment_ns);
	state_clock_start(&meter->clock, THREAD_STARVED, s->start_ns);
}

static void *stepper_run(void *context)
{
	struct stepper *s = context;
	struct run *const run = s->run;
	struct error err = {0};
	(void)placement_bind(&run->placement,
		run->plan.decode_workers + run->plan.reader_threads +
			s->lane * run->plan.step_threads,
		run->plan.step_threads);
	span_thread_begin(STAGE_STEP, s->meter);
	const int code = stepper_open_backend(s, &err);
	if (code)
		stepper_fail(s, code, &err);
	else if (s->backend->ops->describe)
		stepper_describe_device(
			s); /* which one it is; again at the end, with what came of it */
	if (crew_arrive(&run->crew, &s->start_ns)) {
		span_thread_start(s->meter, THREAD_STARVED, s->start_ns, run->segment_ns);
		if (s->sync_meter)
			stepper_start_sync(s);
		if (s->lane == 0) {
			checkpoints_begin(run->checkpoints, s->start_ns);
			evaluations_begin(run->evaluations, s->start_ns);
		}
		stepper_run_steps(s);
	}
	stepper_close_backend(s);
	span_thread_end(s->meter);
	return NULL;
}

int stepper_start(struct run *run, unsigned device, struct error *err)
{
	struct stepper *s = aligned_alloc(_Alignof(struct stepper), sizeof *s);
	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	*s = (struct stepper){
		.run = run,
		.lane = device,
		.upload = run->devices.uploads[device],
		.meter = run_meter(run, STAGE_STEP, device),
		.sync_meter = run_meter(run, STAGE_SYNC, device),
		.device_timeline = run_timeline_log(run, TIMELINE_DEVICE, "device step", device),
		.warmup_ns = run->warmup_ns,
		.account = {.loss_first = NAN, .loss_last = NAN},
	};
	run->devices.steppers[device] = s;
	s->watch = (struct group_watch){stepper_enter_phase, s};
	seat_open(&s->seat, s->meter);
	device_measurement_init(&s->account.device);
	int code = completions_open(&s->account.completions, COMPLETIONS);
	if (code)
		return error_set(err, code, "out of memory");
	code = pthread_create(&s->thread, NULL, stepper_run, s);
	if (code)
		return error_set_errno(err, code, "cannot start the step thread");
	s->started = true;
	char name[16] = "mlb-step";
	if (run->plan.devices > 1)
		(void)snprintf(name, sizeof name, "mlb-step-%u", device % 100);
	(void)pthread_setname_np(s->thread, name);
	return 0;
}

const struct step_account *stepper_account(const struct stepper *s)
{
	return &s->account;
}

/* --- sums over devices ----------------------------------------------------------------------- */

struct step_progress devices_progress(const struct devices *d)
{
	struct step_progress all = {0};
	for (unsigned i = 0; i < d->count; i++) {
		const struct stepper *const s = d->steppers[i];
		if (!s)
			continue;
		all.samples += atomic_load_explicit(&s->samples, memory_order_relaxed);
		all.batches += atomic_load_explicit(&s->batches, memory_order_relaxed);
		const uint64_t last_ns =
			atomic_load_explicit(&s->last_step_ns, memory_order_relaxed);
		all.last_step_ns = last_ns > all.last_step_ns ? last_ns : all.last_step_ns;
	}
	return all;
}

bool devices_do_stage(const struct devices *d, enum stage_id id)
{
	const struct step_account *const step = stepper_account(d->steppers[0]);
	return ((id == STAGE_STEP || id == STAGE_SYNC) && (step->emulated || step->on_device)) ||
	       (id == STAGE_UPLOAD && step->on_device);
}

uint32_t devices_read_queues(const struct devices *d, uint64_t now_ns, struct queue_integrals *out)
{
	uint32_t depth = 0;
	*out = (struct queue_integrals){0};
	for (unsigned i = 0; i < d->count; i++) {
		struct queue_integrals one;
		if (!d->uploads[i])
			continue;
		depth += upload_read_queue(d->uploads[i], now_ns, &one);
		out->depth_ns += one.depth_ns;
		out->empty_ns += one.empty_ns / d->count;
		out->full_ns += one.full_ns / d->count;
		out->total_ns += one.total_ns / d->count;
	}
	return depth;
}

bool devices_join(const struct devices *d, uint64_t deadline_ns)
{
	bool all = true;
	for (unsigned i = 0; i < d->count; i++)
		all = upload_join(d->uploads[i], deadline_ns) && all;
	for (unsigned i = 0; i < d->count; i++) {
		struct stepper *const s = d->steppers[i];
		if (s && s->started && crew_join(s->thread, deadline_ns))
			s->started = false;
		all = all && !(s && s->started);
	}
	return all;
}

void devices_free(struct devices *d)
{
	for (unsigned i = 0; i < d->count; i++) {
		if (d->steppers[i])
			completions_close(&d->steppers[i]->account.completions);
		free(d->steppers[i]);
		upload_free(d->uploads[i]);
	}
	*d = (struct devices){0};
}
