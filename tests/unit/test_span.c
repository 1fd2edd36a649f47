/* What a thread says once reaches everybody who keeps book of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/measure/span.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { SEGMENTS = 4, SEGMENT_NS = 1000000, BURN_MS = 300, HELD_BYTES = 1 << 20 };

static volatile uint64_t sink;

/* --- a device's profiler ----------------------------------------------------------------------------------------- */

static const char *marks[8];
static size_t mark_count;

static void keep_mark(const char *name)
{
	assert_true(mark_count < sizeof marks / sizeof *marks);
	marks[mark_count++] = name;
}

/* --- a timeline whose steps are all kept --------------------------------------------------------------------------- */

struct recorded {
	struct timeline *timeline;
	struct timeline_log *thread, *device;
};

static struct recorded open_timeline(void)
{
	const struct step_schedule all = {.active = 1000};
	struct recorded r;
	assert_int_equal(timeline_open(&r.timeline, &all, 1 << 10, 2), 0);
	r.thread = timeline_add_log(r.timeline, TIMELINE_THREAD, "decode", 0);
	r.device = timeline_add_log(r.timeline, TIMELINE_DEVICE, "upload", 0);
	r.thread->leads = true;
	timeline_start(r.timeline, clock_now_ns());
	return r;
}

/* The only entry of that kind in a log's first chunk. */
static struct timeline_entry only_entry(const struct timeline_log *log, enum timeline_kind kind)
{
	struct timeline_entry found = {0};
	unsigned count = 0;
	for (const struct timeline_entry *e = log->last - (TIMELINE_CHUNK - 1); e < log->next; e++)
		if (e->kind == kind) {
			found = *e;
			count++;
		}
	assert_int_equal(count, 1);
	return found;
}

/* --- threads ------------------------------------------------------------------------------------------------------- */

struct worker {
	struct thread_meter *meter; /* NULL: untimed */
	uint64_t start_ns;
};

__attribute__((noinline)) static void burn(void)
{
	const uint64_t end = clock_thread_cpu_ns() + BURN_MS * NS_PER_MS;
	while (clock_thread_cpu_ns() < end)
		sink++;
}

__attribute__((noinline)) static void *work(void *context)
{
	struct worker *w = context;
	span_thread_begin(STAGE_DECODE, w->meter);
	w->start_ns = clock_now_ns();
	span_thread_start(w->meter, THREAD_WORKING, w->start_ns, SEGMENT_NS);
	memory_account_add(HELD_BYTES);
	burn();
	span_thread_end(w->meter);
	memory_account_add(HELD_BYTES); /* nobody's */
	return NULL;
}

static void run(struct worker *w)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, work, w), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void threads_are_metered(void **state)
{
	(void)state;
	struct recorded r = open_timeline();
	struct worker w = {.meter = thread_meters_open(1, SEGMENTS)};
	assert_non_null(w.meter);
	w.meter->clock.timeline = r.thread;
	r.thread->clock = &w.meter->clock;
	run(&w);
	struct thread_times times;
	(void)thread_meter_read(w.meter, w.start_ns + 2 * BURN_MS * NS_PER_MS, &times);
	assert_true(times.state_ns[THREAD_WORKING] == 2 * BURN_MS * NS_PER_MS);
	assert_true(times.cpu_ns == 0 || times.cpu_ns > BURN_MS * NS_PER_MS * 9 / 10);
	assert_true(times.allocated_bytes == HELD_BYTES);
	assert_true(atomic_load(&w.meter->tid) > 0);
	assert_null(timeline_own); /* only that thread's was set, and it has ended */
	thread_meters_close(w.meter, 1);
	timeline_close(r.timeline);
}

static const char *name_of(const struct flame_profile *p, uint32_t frame)
{
	return p->names[p->frames[frame].name];
}

/* A sampled stack ends with the function that began the thread, not below it: that says nothing. */
static void sampled_stacks_end_in_the_thread(void **state)
{
	(void)state;
	struct error err = {""};
	struct flame *flame;
	const struct flame_options options = {0};
	if (flame_open(&flame, &options, &err))
		skip(); /* this kernel lets nothing be sampled */
	flame_count(true);
	struct worker w = {0};
	run(&w);
	flame_count(false);
	struct flame_profile p;
	assert_int_equal(flame_finish(flame, &p, &err), 0);
	flame_close(flame);
	uint64_t stage = 0;
	uint64_t right = 0;
	for (uint32_t i = 0; i < p.frame_count; i++) {
		const uint32_t parent = p.frames[i].parent;
		if (parent == FLAME_ROOT && strcmp(name_of(&p, i), "decode") == 0)
			stage = p.frames[i].total;
		if (parent != FLAME_ROOT && p.frames[parent].parent == FLAME_ROOT &&
			strcmp(name_of(&p, parent), "decode") == 0 &&
			strcmp(name_of(&p, i), "work") == 0)
			right += p.frames[i].total;
	}
	assert_true(stage > 0);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
	assert_true(right + right / 10 + 3 >= stage);
#endif
	flame_profile_release(&p);
}

/* --- spans, items, devices ----------------------------------------------------------------------------------------- */

static void spans_are_shown_and_marked(void **state)
{
	(void)state;
	struct recorded r = open_timeline();
	mark_count = 0;
	const struct span untimed = span_begin(STAGE_STEP, keep_mark);
	span_end(&untimed, TIMELINE_LAUNCH, 1, 2);
	assert_int_equal(untimed.begin_ns, 0);
	timeline_use(r.thread);
	const uint64_t before_ns = clock_now_ns();
	const struct span span = span_begin(STAGE_UPLOAD, keep_mark);
	span_end(&span, TIMELINE_COPY_LAUNCH, 7, 9);
	const struct span unmarked = span_begin(STAGE_UPLOAD, NULL);
	span_end(&unmarked, TIMELINE_COPY_WAIT, 8, 0);
	timeline_use(NULL);
	const struct timeline_entry shown = only_entry(r.thread, TIMELINE_COPY_LAUNCH);
	assert_true(shown.begin_ns >= before_ns && shown.end_ns >= shown.begin_ns);
	assert_int_equal(shown.number, 7);
	assert_int_equal(shown.value, 9);
	assert_int_equal(only_entry(r.thread, TIMELINE_COPY_WAIT).number, 8);
	assert_int_equal(mark_count, 4);
	assert_string_equal(marks[0], "step");
	assert_null(marks[1]);
	assert_string_equal(marks[2], "upload");
	assert_null(marks[3]);
	timeline_close(r.timeline);
}

static void items_are_counted_and_kept(void **state)
{
	(void)state;
	struct thread_meter *meter = thread_meters_open(1, SEGMENTS);
	assert_non_null(meter);
	service_log_start(&meter->service, 0, SEGMENT_NS);
	const struct trace_entry item = {
		.number = 3, .end_ns = 500, .service_ns = 40, .host_ns = 5};
	span_item(meter, 600, 40, &item);
	assert_int_equal(atomic_load(&meter->items), 1);
	struct histogram all = {0};
	service_log_merge(&meter->service, 0, UINT64_MAX, &all);
	assert_int_equal(all.count, 1);
	assert_int_equal(all.sum_ns, 40);
	assert_int_equal(meter->trace.count, 1);
	assert_memory_equal(&meter->trace.entries[0], &item, sizeof item);
	thread_meters_close(meter, 1);
}

static void devices_have_logs_of_their_own(void **state)
{
	(void)state;
	struct recorded r = open_timeline();
	struct thread_meter *meter = thread_meters_open(1, SEGMENTS);
	assert_non_null(meter);
	const uint64_t began_ns = clock_now_ns();
	const struct trace_entry item = {
		.number = 5, .end_ns = began_ns + 70, .service_ns = 70, .host_ns = NAN};
	/* Without logs of devices only the timeline has it. */
	span_device(meter, r.device, TIMELINE_DEVICE_COPY, began_ns, &item);
	assert_int_equal(meter->device.count, 0);
	assert_int_equal(thread_meters_add_devices(meter, 1), 0);
	span_device(meter, NULL, TIMELINE_DEVICE_COPY, began_ns, &item);
	span_device(NULL, NULL, TIMELINE_DEVICE_COPY, began_ns, &item);
	assert_int_equal(meter->device.count, 1);
	assert_int_equal(meter->device.entries[0].number, 5);
	assert_int_equal(meter->trace.count, 0);
	assert_int_equal(atomic_load(&meter->items), 0);
	const struct timeline_entry shown = only_entry(r.device, TIMELINE_DEVICE_COPY);
	assert_true(shown.begin_ns == began_ns && shown.end_ns == began_ns + 70);
	assert_int_equal(shown.number, 5);
	thread_meters_close(meter, 1);
	timeline_close(r.timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_metered),
		cmocka_unit_test(sampled_stacks_end_in_the_thread),
		cmocka_unit_test(spans_are_shown_and_marked),
		cmocka_unit_test(items_are_counted_and_kept),
		cmocka_unit_test(devices_have_logs_of_their_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
