/* The threads of a burn. */
#include "harness/checks/burn_loads.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/memory.h"
#include "harness/base/rng.h"
#include "harness/checks/votes.h"
#include "workloads/backend/cuda.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	JUDGED_EVERY = 8, /* of so many requests of the readers one is judged, block by block */
	FILES_PATIENCE_S =
		30, /* without a byte: a sync of what was written takes long on slow storage */
	END_PATIENCE_S = 10,       /* for a thread to end: on a busy node it may wait for a core */
	STOPPED_PATIENCE_MS = 700, /* of a user who has stopped it */
	FAILED_MOST = 100,         /* requests of a reader that fail one after the other */
	LOOP_ADDS = 20000,         /* dependent: a cycle each */
	LOOP_TRIES = 8,
	CLOCK_EVERY_MS = 100,
	THREAD_STACK_BYTES = 8 << 20, /* as the C library's own: OpenBLAS works on it */
};

const char *burn_load_name(enum burn_load load)
{
	static const char *const names[BURN_KINDS] = {[BURN_DECODE] = "decode",
		[BURN_GEMM] = "gemm",
		[BURN_READ] = "read",
		[BURN_WRITE] = "write",
		[BURN_DEVICE] = "device"};
	return names[load];
}

/* One thread. */
struct burn_hand {
	_Alignas(COUNTER_ALIGN_BYTES) atomic_uint_least64_t done;
	atomic_uint_least64_t wrong, checked;
	atomic_uint clock_khz;
	atomic_bool ended;
	struct burn_loads *loads;
	enum burn_load load;
	size_t core; /* index; of a reader its number */
	pthread_t thread;
	bool started;
};

struct burn_loads {
	struct burn_loads_plan plan;
	struct burn_hand *hands; /* (hand_count) */
	size_t hand_count;
	struct checked_file read_file, write_file;
	pthread_t files_thread;         /* that makes them */
	atomic_uint_least64_t prepared; /* bytes written by it */
	atomic_bool files_ended;
	bool files_hang;     /* it is given up, with all that it works on */
	struct votes *votes; /* of devices: an item is a name, a place a device */
	atomic_bool stop;
	pthread_mutex_t lock; /* of what follows */
	char why[BURN_KINDS][ERROR_TEXT_BYTES];
	struct burn_finding findings[BURN_FINDINGS_MAX];
	size_t finding_count;
};

static bool burn_over(const struct burn_hand *hand)
{
	return atomic_load_explicit(&hand->loads->stop, memory_order_relaxed);
}

static uint64_t burn_value(const atomic_uint_least64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void burn_count(atomic_uint_least64_t *counter, uint64_t more)
{
	(void)atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static void burn_find(struct burn_hand *hand, const char *name, const char *text)
{
	struct burn_loads *const loads = hand->loads;
	(void)pthread_mutex_lock(&loads->lock);
	if (loads->finding_count < BURN_FINDINGS_MAX) {
		struct burn_finding *const finding = &loads->findings[loads->finding_count++];
		finding->load = hand->load;
		finding->core = hand->load <= BURN_GEMM ? loads->plan.cores->cores[hand->core]
							: (unsigned)hand->core;
		finding->at_ns = clock_now_ns();
		(void)snprintf(finding->text, sizeof finding->text, "%s: %s", name, text);
	}
	(void)pthread_mutex_unlock(&loads->lock);
}

/* The first reason of a load is kept. */
static void burn_give_up(struct burn_loads *loads, enum burn_load load, const char *why)
{
	(void)pthread_mutex_lock(&loads->lock);
	if (!loads->why[load][0])
		(void)snprintf(loads->why[load], sizeof loads->why[load], "%s", why);
	(void)pthread_mutex_unlock(&loads->lock);
}

/* --- on cores ------------------------------------------------------------------------------------ */

/* Each addition waits for the one before, so a turn takes a cycle whatever the processor is; the shortest of some tries was
 * not interrupted. */
static unsigned burn_clock_khz(void)
{
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < LOOP_TRIES; i++) {
		const uint64_t begin = clock_now_ns();
		uint64_t sum = begin;
		for (int turn = 0; turn < LOOP_ADDS / 10; turn++)
			__asm__ volatile("add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\t"
					 "add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\t"
					 "add $1, %0\n\tadd $1, %0"
					 : "+r"(sum));
		const uint64_t took = clock_now_ns() - begin;
		least = took < least ? took : least;
	}
	return least > 0 ? (unsigned)((uint64_t)LOOP_ADDS * 1000000 / least) : 0;
}

static void burn_compare(struct burn_hand *hand, size_t at, const void *result)
{
	const struct fixed_item *const item = fixed_work_item(hand->loads->plan.work, at);
	const void *const right = hand->loads->plan.right[at];
	char where[FIXED_WHERE_BYTES];
	if (!right)
		return;
	burn_count(&hand->checked, 1);
	if (memcmp(result, right, item->bytes) == 0)
		return;
	burn_count(&hand->wrong, 1);
	burn_find(hand, item->name, fixed_work_where(item, result, right, where));
}

/* One item; 0 or what failed. */
static int burn_do_item(struct burn_hand *hand, struct fixed_hand *fixed, size_t at, uint64_t nth,
	struct error *err)
{
	const struct burn_loads_plan *const plan = &hand->loads->plan;
	const struct fixed_item *const item = fixed_work_item(plan->work, at);
	void *result;
	const int code = fixed_hand_do(fixed, at, &result, err);
	if (code)
		return code;
	corruptions_flip(plan->corruptions,
		hand->load == BURN_DECODE ? CORRUPT_DECODE : CORRUPT_GEMM,
		plan->cores->cores[hand->core], nth, result, item->bytes);
	burn_compare(hand, at, result);
	burn_count(&hand->done, hand->load == BURN_DECODE ? 1 : (uint64_t)item->flops);
	return 0;
}

static int burn_compute(struct burn_hand *hand, struct error *err)
{
	const struct fixed_work *const work = hand->loads->plan.work;
	const enum fixed_kind kind = hand->load == BURN_DECODE ? FIXED_PICTURE : FIXED_PRODUCT;
	struct fixed_hand *fixed = NULL;
	uint64_t nth = 0;
	uint64_t clock_at = 0;
	if (!core_pin(hand->loads->plan.cores->cores[hand->core]))
		return error_set(err, -EPERM,
			"the kernel lets this process have no thread on core %u",
			hand->loads->plan.cores->cores[hand->core]);
	int code = fixed_hand_open(&fixed, work, err);
	for (size_t at = 0; !code && !burn_over(hand); at = (at + 1) % fixed_work_count(work)) {
		if (fixed_work_item(work, at)->kind != kind)
			continue;
		code = burn_do_item(hand, fixed, at, ++nth, err);
		if (clock_now_ns() >= clock_at) {
			atomic_store_explicit(
				&hand->clock_khz, burn_clock_khz(), memory_order_relaxed);
			clock_at = clock_now_ns() + CLOCK_EVERY_MS * NS_PER_MS;
		}
	}
	fixed_hand_close(fixed);
	return code;
}

/* --- on storage ---------------------------------------------------------------------------------- */

/* What a report says, where it has anything new. */
static void burn_take_report(struct burn_hand *hand, const struct checked_report *report)
{
	burn_count(&hand->checked, report->checked);
	burn_count(&hand->wrong, checked_report_wrong(report));
	for (size_t i = 0; i < report->finding_count; i++) {
		const struct checked_finding *const finding = &report->findings[i];
		char name[64];
		(void)snprintf(name, sizeof name, "%s: block %llu",
			block_state_name(finding->state), (unsigned long long)finding->block);
		burn_find(hand, name, finding->text);
	}
}

static int burn_read(struct burn_hand *hand, struct error *err)
{
	const struct checked_file *const file = &hand->loads->read_file;
	const uint64_t requests = file->blocks / (BURN_REQUEST_BYTES / CHECKED_BLOCK_BYTES);
	void *const buffer = aligned_alloc(CHECKED_BLOCK_BYTES, BURN_REQUEST_BYTES);
	struct checked_report *const report = calloc(1, sizeof *report);
	struct rng rng;
	unsigned failed = 0;
	int code = 0;
	rng_init(&rng, file->id, hand->core);
	if (!buffer || !report)
		code = error_set(err, -ENOMEM, "out of memory");
	for (uint64_t n = 0; !code && !burn_over(hand) && failed < FAILED_MOST; n++) {
		const bool judged = n % JUDGED_EVERY == 0 || failed > 0;
		const uint64_t request = rng_below(&rng, requests);
		*report = (struct checked_report){0};
		const int failure = checked_file_read(file,
			request * (BURN_REQUEST_BYTES / CHECKED_BLOCK_BYTES),
			BURN_REQUEST_BYTES / CHECKED_BLOCK_BYTES, buffer, judged ? report : NULL);
		failed = failure ? failed + 1 : 0;
		burn_take_report(hand, report);
		if (!failure)
			burn_count(&hand->done, BURN_REQUEST_BYTES);
		if (failed == FAILED_MOST)
			code = error_set_errno(err, -failure,
				"reading '%s': %d requests failed, one "
				"after the other",
				file->path, FAILED_MOST);
	}
	free(buffer);
	free(report);
	return code;
}

static int burn_write(struct burn_hand *hand, struct error *err)
{
	struct checked_file *const file = &hand->loads->write_file;
	const atomic_bool *const stop = &hand->loads->stop;
	struct checked_report *const report = calloc(1, sizeof *report);
	int code = report ? 0 : error_set(err, -ENOMEM, "out of memory");
	while (!code && !burn_over(hand)) {
		*report = (struct checked_report){0};
		code = checked_file_write(file, stop, &hand->done, err);
		if (!code && file->generation == 2)
			code = checked_file_plant(file, hand->loads->plan.corruptions, err);
		if (!code)
			code = checked_file_verify(file, stop, &hand->done, report, err);
		burn_take_report(hand, report);
	}
	free(report);
	return code;
}

/* --- on devices ---------------------------------------------------------------------------------- */

/* Large enough to fill the device, and what is looked at is rare enough to keep it so; the test double computes on cores. */
enum { DEVICE_EDGE = 4096, DEVICE_BETWEEN = 1024, DOUBLE_EDGE = 64 };

static uint32_t burn_device_edge(const struct burn_loads *loads)
{
	return loads->plan.found->plugin->test_double ? DOUBLE_EDGE : DEVICE_EDGE;
}

/* In bf16, as most training is, which draws most power. */
static struct fixed_item burn_device_item(const struct burn_loads *loads, size_t element_bytes)
{
	const uint32_t edge = burn_device_edge(loads);
	struct fixed_item item = {.kind = FIXED_PRODUCT,
		.bytes = (size_t)edge * edge * element_bytes,
		.element_bytes = element_bytes,
		.rows = edge,
		.columns = edge,
		.flops = 2.0 * edge * edge * edge};
	(void)snprintf(
		item.name, sizeof item.name, "product of %u x %u x %u in bf16", edge, edge, edge);
	return item;
}

/* Devices of one name give the same bits: the first of them stands for all. */
static size_t burn_device_like(const struct burn_loads *loads, size_t device)
{
	const struct cuda_device_facts *const facts = loads->plan.found->node.devices;
	size_t like = 0;
	while (strcmp(facts[like].name, facts[device].name) != 0)
		like++;
	return like;
}

static void burn_take(
	void *context, enum step_precision precision, const void *result, size_t element_bytes)
{
	struct burn_hand *const hand = context;
	struct burn_loads *const loads = hand->loads;
	const struct fixed_item item = burn_device_item(loads, element_bytes);
	(void)precision;
	burn_count(&hand->checked, 1);
	/* The buffer is the plug-in's, which writes all of it before the next one is taken. */
	corruptions_flip(loads->plan.corruptions, CORRUPT_DEVICE, (unsigned)hand->core,
		burn_value(&hand->checked), (void *)(uintptr_t)result, item.bytes);
	votes_add(
		loads->votes, burn_device_like(loads, hand->core), hand->core, result, item.bytes);
}

static int burn_on_device(struct burn_hand *hand, struct error *err)
{
	const struct burn_loads_plan *const plan = &hand->loads->plan;
	const struct cuda_repeat_plan repeat = {.device = (unsigned)hand->core,
		.precisions = 1U << STEP_PRECISION_BF16,
		.times = UINT_MAX,
		.between = plan->found->plugin->test_double ? 1 : DEVICE_BETWEEN,
		.edge = burn_device_edge(hand->loads),
		.stop = &hand->loads->stop,
		.done = &hand->done,
		.take = burn_take,
		.context = hand};
	const int code = plan->found->plugin->repeat(&repeat, err);
	if (code)
		return error_prefix(err, code, "device %zu", hand->core);
	return burn_over(hand) ? 0
			       : error_set(err, -ENOTSUP, "device %zu does not compute in bf16",
					 hand->core);
}

/* --- threads ------------------------------------------------------------------------------------- */

static void *burn_hand_main(void *argument)
{
	struct burn_hand *const hand = argument;
	struct error err = {""};
	int code;
	if (hand->load <= BURN_GEMM)
		code = burn_compute(hand, &err);
	else if (hand->load == BURN_DEVICE)
		code = burn_on_device(hand, &err);
	else
		code = hand->load == BURN_READ ? burn_read(hand, &err) : burn_write(hand, &err);
	if (code && code != -EINTR)
		burn_give_up(hand->loads, hand->load, err.text);
	atomic_store(&hand->ended, true);
	return NULL;
}

static void burn_add_hands(struct burn_loads *loads, enum burn_load load, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct burn_hand *const hand = &loads->hands[loads->hand_count++];
		hand->loads = loads;
		hand->load = load;
		hand->core = i;
	}
}

static bool burn_has(const struct burn_loads *loads, enum burn_load load)
{
	return loads->plan.loads & BURN_BIT(load);
}

/* A load that cannot have its file has its reason. */
static int burn_open_file(struct burn_loads *loads, enum burn_load load, struct checked_file *file,
	uint64_t bytes, struct error *err)
{
	const uint64_t id = rng_mix(clock_now_ns(), (uint64_t)getpid() * BURN_LOADS + load);
	const uint64_t least = BURN_REQUEST_BYTES;
	char name[32];
	if (!burn_has(loads, load))
		return 0;
	(void)snprintf(name, sizeof name, "burn-%s", burn_load_name(load));
	char *const path = files_join(loads->plan.scratch, name);
	if (!path)
		return error_set(err, -ENOMEM, "out of memory");
	int code = checked_file_open(
		file, path, id, (bytes > least ? bytes : least) / CHECKED_BLOCK_BYTES, true, err);
	free(path);
	if (!code && load == BURN_READ && file->direct_fd < 0)
		code = error_set(err, -ENOTSUP, "the file system of '%s' has no direct reads",
			loads->plan.scratch);
	if (!code && load == BURN_READ)
		code = checked_file_write(file, &loads->stop, &loads->prepared, err);
	if (code && code != -EINTR && code != -ENOMEM) {
		burn_give_up(loads, load, err->text);
		checked_file_close(file); /* what it took of a full disk */
		return 0;
	}
	return code;
}

/* On a thread of its own: storage that does not answer must not hold up the other loads. */
static void *burn_files_main(void *argument)
{
	struct burn_loads *const loads = argument;
	struct error err;
	int code =
		burn_open_file(loads, BURN_READ, &loads->read_file, loads->plan.read_bytes, &err);
	if (!code)
		code = burn_open_file(
			loads, BURN_WRITE, &loads->write_file, loads->plan.write_bytes, &err);
	if (code)
		burn_give_up(loads, BURN_READ, err.text);
	if (code)
		burn_give_up(loads, BURN_WRITE, err.text);
	atomic_store(&loads->files_ended, true);
	return NULL;
}

/* Waits for the files; gives them up once nothing has moved for a while, or soon after a stop. */
static bool burn_wait_for_files(struct burn_loads *loads)
{
	uint64_t moved_ns = clock_now_ns();
	uint64_t seen = 0;
	while (!atomic_load(&loads->files_ended)) {
		const bool stopped = loads->plan.stop &&
				     atomic_load_explicit(loads->plan.stop, memory_order_relaxed);
		const uint64_t patience = stopped ? NS_PER_S / 2 : FILES_PATIENCE_S * NS_PER_S;
		const uint64_t now = burn_value(&loads->prepared) + stopped;
		if (now != seen)
			moved_ns = clock_now_ns();
		seen = now;
		if (stopped)
			atomic_store(&loads->stop, true);
		if (clock_now_ns() - moved_ns > patience)
			return false;
		clock_sleep_until_ns(clock_now_ns() + 10 * NS_PER_MS);
	}
	return true;
}

static int burn_prepare_files(struct burn_loads *loads, struct error *err)
{
	char why[ERROR_TEXT_BYTES];
	if (!burn_has(loads, BURN_READ) && !burn_has(loads, BURN_WRITE))
		return 0;
	const int failed = pthread_create(&loads->files_thread, NULL, burn_files_main, loads);
	if (failed)
		return error_set_errno(err, failed, "no thread could be had");
	loads->files_hang = !burn_wait_for_files(loads);
	if (!loads->files_hang) {
		(void)pthread_join(loads->files_thread, NULL);
		return 0;
	}
	(void)snprintf(why, sizeof why,
		"the storage under '%.300s' does not answer: what was written has not come back for %d s",
		loads->plan.scratch, FILES_PATIENCE_S);
	burn_give_up(loads, BURN_READ, why);
	burn_give_up(loads, BURN_WRITE, why);
	return 0;
}

int burn_loads_open(struct burn_loads **out, const struct burn_loads_plan *plan, struct error *err)
{
	const size_t cores = plan->cores->count;
	const size_t devices = plan->found ? plan->found->node.count : 0;
	const size_t hands = 2 * cores + BURN_READERS + 1 + devices;
	struct burn_loads *const loads = calloc(1, sizeof *loads);
	*out = NULL;
	if (!loads)
		return error_set(err, -ENOMEM, "out of memory");
	loads->plan = *plan;
	loads->read_file = loads->write_file = (struct checked_file){.fd = -1, .direct_fd = -1};
	(void)pthread_mutex_init(&loads->lock, NULL);
	loads->hands = aligned_alloc(COUNTER_ALIGN_BYTES, hands * sizeof *loads->hands);
	int code = loads->hands ? 0 : error_set(err, -ENOMEM, "out of memory");
	if (!code)
		memset((void *)loads->hands, 0, hands * sizeof *loads->hands);
	if (!code)
		code = votes_open(&loads->votes, devices, devices, err);
	if (!code)
		code = burn_prepare_files(loads, err);
	if (code) {
		burn_loads_close(loads);
		return code;
	}
	const size_t counts[BURN_KINDS] = {[BURN_DECODE] = cores,
		[BURN_GEMM] = cores,
		[BURN_READ] = BURN_READERS,
		[BURN_WRITE] = 1,
		[BURN_DEVICE] = devices};
	for (int load = 0; load < BURN_KINDS; load++)
		if (!loads->why[load][0] &&
			(load == BURN_DEVICE || burn_has(loads, (enum burn_load)load)))
			burn_add_hands(loads, (enum burn_load)load, counts[load]);
	*out = loads;
	return 0;
}

int burn_loads_go(struct burn_loads *loads, struct error *err)
{
	pthread_attr_t attributes;
	sigset_t all;
	sigset_t before;
	int code = 0;
	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
	(void)sigfillset(&all); /* signals are the main thread's */
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	for (size_t i = 0; i < loads->hand_count && !code; i++) {
		struct burn_hand *const hand = &loads->hands[i];
		const int failed = pthread_create(&hand->thread, &attributes, burn_hand_main, hand);
		hand->started = failed == 0;
		if (failed)
			code = error_set_errno(err, failed, "only %zu of %zu threads could be had",
				i, loads->hand_count);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attributes);
	return code;
}

static bool burn_has_patience(const struct burn_loads *loads, uint64_t since_ns)
{
	const bool stopped =
		loads->plan.stop && atomic_load_explicit(loads->plan.stop, memory_order_relaxed);
	return clock_now_ns() - since_ns <
	       (stopped ? STOPPED_PATIENCE_MS * NS_PER_MS : END_PATIENCE_S * NS_PER_S);
}

bool burn_loads_stop(struct burn_loads *loads)
{
	const uint64_t begun_ns = clock_now_ns();
	bool all = !loads->files_hang;
	atomic_store(&loads->stop, true);
	for (size_t i = 0; i < loads->hand_count; i++) {
		struct burn_hand *const hand = &loads->hands[i];
		if (!hand->started)
			continue;
		while (!atomic_load(&hand->ended) && burn_has_patience(loads, begun_ns))
			clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
		if (atomic_load(&hand->ended)) {
			(void)pthread_join(hand->thread, NULL);
			hand->started = false;
			continue;
		}
		all = false;
		burn_give_up(loads, hand->load,
			hand->load <= BURN_WRITE && hand->load >= BURN_READ
				? "the storage does not answer: a request has not come back"
				: "it did not end");
	}
	return all;
}

void burn_loads_close(struct burn_loads *loads)
{
	if (!loads || loads->files_hang)
		return;
	checked_file_close(&loads->read_file);
	checked_file_close(&loads->write_file);
	votes_close(loads->votes);
	(void)pthread_mutex_destroy(&loads->lock);
	free((void *)loads->hands);
	free(loads);
}

/* --- what they did ------------------------------------------------------------------------------- */

uint64_t burn_loads_done(const struct burn_loads *loads, enum burn_load load)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < loads->hand_count; i++)
		if (loads->hands[i].load == load)
			sum += burn_value(&loads->hands[i].done);
	/* Every byte was written and read back. */
	return load == BURN_WRITE ? sum / 2 : sum;
}

static const struct burn_hand *burn_hand_on(
	const struct burn_loads *loads, enum burn_load load, size_t core)
{
	for (size_t i = 0; i < loads->hand_count; i++)
		if (loads->hands[i].load == load && loads->hands[i].core == core)
			return &loads->hands[i];
	return NULL;
}

uint64_t burn_loads_done_on(const struct burn_loads *loads, enum burn_load load, size_t core)
{
	const struct burn_hand *const hand = burn_hand_on(loads, load, core);
	if (!hand || load != BURN_DEVICE)
		return hand ? burn_value(&hand->done) : 0;
	return burn_value(&hand->done) * (uint64_t)burn_device_item(loads, 2).flops;
}

double burn_loads_clock(const struct burn_loads *loads, size_t core)
{
	unsigned most = 0;
	for (size_t i = 0; i < loads->hand_count; i++) {
		const struct burn_hand *const hand = &loads->hands[i];
		const unsigned khz = atomic_load_explicit(&hand->clock_khz, memory_order_relaxed);
		if (hand->load <= BURN_GEMM && hand->core == core && khz > most)
			most = khz;
	}
	return most / 1000.0;
}

void burn_loads_why(const struct burn_loads *loads, enum burn_load load, char *out, size_t room)
{
	pthread_mutex_t *const lock = (pthread_mutex_t *)(uintptr_t)&loads->lock;
	(void)pthread_mutex_lock(lock);
	(void)snprintf(out, room, "%s", loads->why[load]);
	(void)pthread_mutex_unlock(lock);
}

uint64_t burn_loads_wrong_on(const struct burn_loads *loads, size_t core)
{
	uint64_t sum = 0;
	for (int load = BURN_DECODE; load <= BURN_GEMM; load++) {
		const struct burn_hand *const hand =
			burn_hand_on(loads, (enum burn_load)load, core);
		sum += hand ? burn_value(&hand->wrong) : 0;
	}
	return sum;
}

uint64_t burn_loads_wrong_on_device(struct burn_loads *loads, unsigned device, uint64_t *checked)
{
	const struct fixed_item item = burn_device_item(loads, 2);
	const size_t at = burn_device_like(loads, device);
	const struct votes *const votes = loads->votes;
	const int right = votes_right(votes, at, 0);
	const uint64_t wrong = votes_wrong(votes, at, device, right);
	const int variant = votes_next_wrong(votes, at, device, right, -1);
	char where[FIXED_WHERE_BYTES] = "its results differ, and nothing tells which are right";
	*checked = votes_count(votes, at, device);
	if (right >= 0 && variant >= 0 && votes_copy(votes, at, right) &&
		votes_copy(votes, at, variant))
		(void)fixed_work_where(
			&item, votes_copy(votes, at, variant), votes_copy(votes, at, right), where);
	for (size_t i = 0; wrong > 0 && i < loads->hand_count; i++)
		if (loads->hands[i].load == BURN_DEVICE && loads->hands[i].core == device)
			burn_find(&loads->hands[i], item.name, where);
	return wrong;
}

uint64_t burn_loads_wrong_blocks(const struct burn_loads *loads, enum burn_load load)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < loads->hand_count; i++)
		if (loads->hands[i].load == load)
			sum += burn_value(&loads->hands[i].wrong);
	return sum;
}

uint64_t burn_loads_checked(const struct burn_loads *loads, enum burn_load load)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < loads->hand_count; i++)
		if (loads->hands[i].load == load)
			sum += burn_value(&loads->hands[i].checked);
	return sum;
}

size_t burn_loads_findings(
	const struct burn_loads *loads, struct burn_finding out[BURN_FINDINGS_MAX])
{
	memcpy(out, loads->findings, loads->finding_count * sizeof *out);
	return loads->finding_count;
}
