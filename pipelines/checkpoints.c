/* The stalls of checkpoints, the writer's thread, and what is told of both. */
#include "pipelines/checkpoints.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/program.h"
#include "harness/base/units.h"
#include "harness/measure/span.h"
#include "pipelines/repetition.h"
#include "workloads/backend/backend.h"
#include "workloads/checkpoint/checkpoint_file.h"
#include "workloads/model/emulated_steps.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an optimizer keeps beside the weights, of their size: momentum; both moments. */
enum { STATE_OF_SGD = 2, STATE_OF_ADAM = 3 };
/* The one before stays until the new one has its name. */
enum { CHECKPOINTS_ON_DISK = 2 };

/* What was in a stall. */
struct checkpoint_stall {
	uint64_t wait_ns, copy_ns;
	uint64_t store_ns; /* all of it, as planted */
	struct checkpoint_times times;
	bool stored; /* the writer has ended it */
};

struct checkpoints {
	struct run *run;
	struct checkpoint_file *file;
	uint32_t every;
	bool async;
	struct thread_meter *meter; /* NULL: not timed */
	struct stall_log log;
	struct checkpoint_stall *stalls; /* (STALLS_MAX), those of the log; owned */
	atomic_uint_least64_t longest_ns;

	/* Async.  busy: the buffer is the writer's, who has the checkpoint `written` in it. */
	pthread_t writer;
	bool lock_is_open, started;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy;
	uint64_t step;
	size_t written;
};

static const struct checkpoint_calls *replaced_calls;

void checkpoints_replace_calls(const struct checkpoint_calls *calls)
{
	replaced_calls = calls;
}

/* --- the plan ---------------------------------------------------------------------------------- */

static void checkpoints_folder(
	const struct config *config, const struct dataset *dataset, char out[CHECKPOINT_PATH_BYTES])
{
	const char *const given = config_text(config, KEY_CHECKPOINT_PATH);
	size_t length = strlen(dataset->root);
	while (length > 1 && dataset->root[length - 1] == '/')
		length--;
	if (*given)
		(void)snprintf(out, CHECKPOINT_PATH_BYTES, "%s", given);
	else
		(void)snprintf(
			out, CHECKPOINT_PATH_BYTES, "%.*s.checkpoint", (int)length, dataset->root);
}

static int checkpoints_check_space(
	const struct config *config, const struct pipeline_plan *plan, struct error *err)
{
	uint64_t room;
	char needed[UNITS_BYTES];
	char each[UNITS_BYTES];
	char there[UNITS_BYTES];
	const int code = checkpoint_look(plan->checkpoint_folder, &room, err);
	if (code || room / CHECKPOINTS_ON_DISK >= plan->checkpoint_bytes)
		return code;
	return error_set(err, -EINVAL,
		"checkpoints need %s on the disk of %s, two of %s at once, and %s are free: lower checkpoint.bytes%s, or set checkpoint.path to another disk",
		units_format_size(CHECKPOINTS_ON_DISK * (double)plan->checkpoint_bytes, needed),
		plan->checkpoint_folder, units_format_size((double)plan->checkpoint_bytes, each),
		units_format_size((double)room, there),
		config_integer(config, KEY_CHECKPOINT_BYTES) == 0 ? " (now that of step.model)"
								  : "");
}

int checkpoints_plan(const struct config *config, const struct dataset *dataset,
	struct pipeline_plan *plan, struct error *err)
{
	/* Of ranks, the first one saves for all, and they wait for it. */
	if (config_integer(config, KEY_CHECKPOINT_EVERY) == 0 ||
		program_rank_of(config_integer(config, KEY_RUN_RANKS)) > 0)
		return 0;
	const bool adam = config_integer(config, KEY_STEP_OPTIMIZER) == STEP_OPTIMIZER_ADAM;
	plan->checkpoint_bytes = (uint64_t)config_integer(config, KEY_CHECKPOINT_BYTES);
	if (plan->checkpoint_bytes == 0)
		plan->checkpoint_bytes = (uint64_t)model_gradient_bytes(config) *
					 (adam ? STATE_OF_ADAM : STATE_OF_SGD);
	if (plan->checkpoint_bytes == 0)
		return error_set(err, -EINVAL,
			"checkpoint.every is set, and how large the state of step.model = %s is is not known: set checkpoint.bytes",
			config_text(config, KEY_STEP_MODEL));
	if (!*config_text(config, KEY_CHECKPOINT_PATH) && strstr(dataset->root, "://"))
		return error_set(err, -EINVAL,
			"checkpoint.every is set, and beside the data set '%s' no checkpoint can be written: set checkpoint.path to a folder of this machine",
			dataset->root);
	checkpoints_folder(config, dataset, plan->checkpoint_folder);
	if (strstr(plan->checkpoint_folder, "://"))
		return error_set(err, -EINVAL,
			"checkpoint.path = %s is no folder of this machine: checkpoints are written to one, or to a mount",
			plan->checkpoint_folder);
	plan->checkpoint_async =
		config_integer(config, KEY_CHECKPOINT_MODE) == CHECKPOINT_MODE_ASYNC;
	plan->checkpoint_memory =
		checkpoint_memory_bytes(plan->checkpoint_bytes, plan->checkpoint_async) +
		STALLS_MAX * (sizeof(struct checkpoint_stall) + sizeof(struct stall));
	return checkpoints_check_space(config, plan, err);
}

/* --- opening ----------------------------------------------------------------------------------- */

static void checkpoints_note(const struct checkpoints *c, struct measurement *m)
{
	const struct checkpoint_file *const f = c->file;
	char size[UNITS_BYTES];
	measurement_note(m, "checkpoints of %s %s, %s, in %.120s%s%.60s",
		units_format_size((double)f->bytes, size), c->async ? "async" : "sync",
		f->direct ? "past the page cache" : "buffered (no O_DIRECT there)", f->folder,
		f->has_ring ? "" : ", without io_uring: ", f->why_no_ring);
}

int checkpoints_open(struct run *run, struct error *err)
{
	const struct config *const config = run->config;
	const struct pipeline_plan *const plan = &run->plan;
	if (plan->checkpoint_bytes == 0)
		return 0;
	struct checkpoints *const c = calloc(1, sizeof *c);
	if (!c)
		return error_set(err, -ENOMEM, "out of memory for checkpoints");
	run->checkpoints = c;
	c->run = run;
	c->every = (uint32_t)config_integer(config, KEY_CHECKPOINT_EVERY);
	c->async = plan->checkpoint_async;
	c->meter = run_meter(run, STAGE_CHECKPOINT, 0);
	c->stalls = memory_touched(STALLS_MAX, sizeof *c->stalls);
	c->lock_is_open = pthread_mutex_init(&c->lock, NULL) == 0;
	if (stalls_open(&c->log) || !c->stalls || !c->lock_is_open ||
		pthread_cond_init(&c->changed, NULL))
		return error_set(err, -ENOMEM, "out of memory for checkpoints");
	const int code = checkpoint_file_open(&c->file,
		&(const struct checkpoint_options){
			.folder = plan->checkpoint_folder,
			.bytes = plan->checkpoint_bytes,
			.seed = (uint64_t)config_integer(config, KEY_RUN_SEED),
			.own_folder = !*config_text(config, KEY_CHECKPOINT_PATH),
			.verify = config_on(config, KEY_CHECKPOINT_VERIFY),
			.staged = c->async,
			.calls = replaced_calls,
		},
		err);
	if (!code)
		checkpoints_note(c, run->m);
	return code;
}

void checkpoints_close(struct run *run)
{
	struct checkpoints *const c = run->checkpoints;
	if (!c)
		return;
	checkpoint_file_close(c->file, config_on(run->config, KEY_CHECKPOINT_KEEP));
	if (c->lock_is_open) {
		(void)pthread_cond_destroy(&c->changed);
		(void)pthread_mutex_destroy(&c->lock);
	}
	stalls_close(&c->log);
	free(c->stalls);
	free(c);
	run->checkpoints = NULL;
}

/* --- storing one ------------------------------------------------------------------------------- */

static struct checkpoint_stall *checkpoints_kept(struct checkpoints *c, size_t number)
{
	return number < STALLS_MAX ? &c->stalls[number] : NULL;
}

/* By the thread whose meter the stage's is.  Of what was cut short by the end of the run nothing is told. */
static bool checkpoints_store(struct checkpoints *c, uint64_t step, size_t number)
{
	struct run *const run = c->run;
	struct checkpoint_times times;
	struct error err = {0};
	const uint64_t shown_ns = timeline_mark();
	const uint64_t began_ns = clock_now_ns();
	if (c->meter)
		state_clock_enter(&c->meter->clock, THREAD_WORKING, began_ns);
	const int code = checkpoint_store(c->file, step, &run->crew.stopping, &times, &err);
	const uint64_t least_ns = injection_checkpoint_ns(
		&run->injection, began_ns, clock_now_ns() - began_ns, c->file->bytes);
	if (!code)
		injection_hold(began_ns + least_ns, &run->crew.stopping);
	const uint64_t ended_ns = clock_now_ns();
	if (c->meter)
		state_clock_enter(&c->meter->clock, THREAD_STARVED, ended_ns);
	(void)timeline_end(TIMELINE_CHECKPOINT, shown_ns, step);
	if (code && !crew_stopping(&run->crew))
		crew_fail(&run->crew, code, &err);
	if (code || crew_stopping(&run->crew))
		return false;
	const struct trace_entry item = {.number = number,
		.end_ns = ended_ns,
		.service_ns = (float)(ended_ns - began_ns),
		.host_ns = NAN};
	if (c->meter)
		span_item(c->meter, ended_ns, ended_ns - began_ns, &item);
	struct checkpoint_stall *const kept = checkpoints_kept(c, number);
	if (kept) {
		kept->times = times;
		kept->store_ns = ended_ns - began_ns;
		kept->stored = true;
	}
	if (ended_ns - began_ns > atomic_load_explicit(&c->longest_ns, memory_order_relaxed))
		atomic_store_explicit(&c->longest_ns, ended_ns - began_ns, memory_order_relaxed);
	return true;
}

/* --- the writer -------------------------------------------------------------------------------- */

/* False: the repetition is over. */
static bool checkpoints_await(struct checkpoints *c, bool busy)
{
	(void)pthread_mutex_lock(&c->lock);
	while (c->busy != busy && !crew_stopping(&c->run->crew))
		(void)pthread_cond_wait(&c->changed, &c->lock);
	(void)pthread_mutex_unlock(&c->lock);
	return !crew_stopping(&c->run->crew);
}

static void checkpoints_set_busy(struct checkpoints *c, bool busy)
{
	(void)pthread_mutex_lock(&c->lock);
	c->busy = busy;
	(void)pthread_cond_broadcast(&c->changed);
	(void)pthread_mutex_unlock(&c->lock);
}

static void *checkpoints_write(void *context)
{
	struct checkpoints *const c = context;
	struct run *const run = c->run;
	uint64_t start_ns;
	span_thread_begin(STAGE_CHECKPOINT, c->meter);
	if (crew_arrive(&run->crew, &start_ns)) {
		span_thread_start(c->meter, THREAD_STARVED, start_ns, run->segment_ns);
		while (checkpoints_await(c, true) && checkpoints_store(c, c->step, c->written))
			checkpoints_set_busy(c, false);
	}
	span_thread_end(c->meter);
	return NULL;
}

int checkpoints_start(struct run *run, struct error *err)
{
	struct checkpoints *const c = run->checkpoints;
	if (!c || !c->async)
		return 0;
	const int code = pthread_create(&c->writer, NULL, checkpoints_write, c);
	if (code)
		return error_set_errno(err, code, "cannot start the writer of checkpoints");
	c->started = true;
	(void)pthread_setname_np(c->writer, "mlb-checkpoint");
	return 0;
}

void checkpoints_wake(struct run *run)
{
	struct checkpoints *const c = run->checkpoints;
	if (!c)
		return;
	(void)pthread_mutex_lock(&c->lock);
	(void)pthread_cond_broadcast(&c->changed);
	(void)pthread_mutex_unlock(&c->lock);
}

bool checkpoints_join(struct run *run, uint64_t deadline_ns)
{
	struct checkpoints *const c = run->checkpoints;
	if (c && c->started && crew_join(c->writer, deadline_ns))
		c->started = false;
	return !c || !c->started;
}

/* --- the step's thread ------------------------------------------------------------------------- */

void checkpoints_begin(struct checkpoints *c, uint64_t start_ns)
{
	if (!c)
		return;
	c->log.start_ns = start_ns;
	if (!c->meter || c->async)
		return;
	service_log_start(&c->meter->service, start_ns, c->run->segment_ns);
	state_clock_start(&c->meter->clock, THREAD_STARVED, start_ns);
}

bool checkpoints_follow(const struct checkpoints *c, uint64_t step)
{
	return c && step > 0 && step % c->every == 0;
}

/* Hands the state to the writer. */
static bool checkpoints_hand_over(
	struct checkpoints *c, uint64_t step, size_t number, struct checkpoint_stall *kept)
{
	const uint64_t began_ns = clock_now_ns();
	if (!checkpoints_await(c, false))
		return false;
	const uint64_t waited_ns = clock_now_ns();
	checkpoint_stage(c->file, step);
	if (kept) {
		kept->wait_ns = waited_ns - began_ns;
		kept->copy_ns = clock_now_ns() - waited_ns;
	}
	c->step = step;
	c->written = number;
	checkpoints_set_busy(c, true);
	return true;
}

bool checkpoints_stall(struct checkpoints *c, struct thread_meter *step_meter, uint64_t step,
	uint64_t stepped_ns, uint64_t *now_ns)
{
	const size_t number = c->log.count;
	stalls_begin(&c->log, step_meter, stepped_ns);
	const bool goes_on =
		c->async ? checkpoints_hand_over(c, step, number, checkpoints_kept(c, number))
			 : checkpoints_store(c, step, number);
	stalls_end(&c->log, step_meter, now_ns);
	return goes_on;
}

/* --- what came of them ------------------------------------------------------------------------- */

uint64_t checkpoints_moved(const struct checkpoints *c)
{
	return c ? atomic_load_explicit(&c->file->moved, memory_order_relaxed) : 0;
}

uint64_t checkpoints_longest_ns(const struct checkpoints *c)
{
	return c ? atomic_load_explicit(&c->longest_ns, memory_order_relaxed) : 0;
}

const struct stall_log *checkpoints_log(const struct checkpoints *c)
{
	return c ? &c->log : NULL;
}

static double checkpoints_seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

/* Planted waiting is writing's. */
static void checkpoints_add(
	const struct checkpoints *c, size_t number, struct checkpoint_measurement *out)
{
	const struct checkpoint_stall *const s = &c->stalls[number];
	const struct stall *const stall = &c->log.list[number];
	const struct checkpoint_times *const t = &s->times;
	const uint64_t rest_ns = t->sync_ns + t->rename_ns + t->verify_ns;
	out->count++;
	out->stall_seconds += checkpoints_seconds(stall->end_ns - stall->begin_ns);
	out->stall_max_ns = fmax(out->stall_max_ns, (double)(stall->end_ns - stall->begin_ns));
	out->wait_seconds += checkpoints_seconds(s->wait_ns);
	out->copy_seconds += checkpoints_seconds(s->copy_ns);
	out->write_seconds +=
		checkpoints_seconds(s->store_ns > rest_ns ? s->store_ns - rest_ns : 0);
	out->sync_seconds += checkpoints_seconds(t->sync_ns);
	out->rename_seconds += checkpoints_seconds(t->rename_ns);
	out->verify_seconds += checkpoints_seconds(t->verify_ns);
}

void checkpoints_fill(
	const struct run *run, uint64_t from_ns, uint64_t to_ns, struct measurement *m)
{
	const struct checkpoints *const c = run->checkpoints;
	if (!c)
		return;
	struct checkpoint_measurement *const out = &m->checkpoint[0];
	m->checkpoint_count = 1;
	*out = (struct checkpoint_measurement){.every = c->every,
		.async = c->async,
		.direct = c->file->direct,
		.verified = c->file->verify,
		.bytes = c->file->bytes,
		.copy_bytes_per_s = c->file->copy_bytes_per_s};
	(void)snprintf(out->path, sizeof out->path, "%.120s", c->file->folder);
	const size_t kept = stalls_kept(&c->log);
	for (size_t i = 0; i < kept; i++)
		if (c->stalls[i].stored && stalls_is_in(&c->log, i, from_ns, to_ns))
			checkpoints_add(c, i, out);
	out->outside = out->count == 0;
	for (size_t i = 0; i < kept && out->outside; i++)
		if (c->stalls[i].stored)
			checkpoints_add(c, i, out);
	if (c->async && out->copy_seconds > 0)
		out->copy_bytes_per_s = (double)out->bytes * (double)out->count / out->copy_seconds;
	stalls_note(&c->log,
		&(const struct stalls_told){
			"checkpoint", "checkpoint", out->count, out->stall_max_ns, out->outside},
		to_ns - from_ns, m);
}
