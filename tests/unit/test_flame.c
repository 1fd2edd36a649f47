/* Sampling against work whose shares are known: what is asked for, and that nothing is lost
 * unsaid.  Bounds are six standard deviations of a binomial count, and the shares far enough apart to fall outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/measuring.h"

#include "harness/measure/flame.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CYCLE_MS = 17, CYCLES = 36, SPREADS = 6 };

/* It delivers signals late, so their stacks are not copied, and of two that come meanwhile it drops one. */
#if defined(__SANITIZE_THREAD__)
static const bool has_stacks = false;
#else
static const bool has_stacks = true;
#endif

/* --- work ------------------------------------------------------------------------------------------------------ */

static _Thread_local volatile uint64_t sink;

/* CPU time of this thread, by ns: it says itself what it took. */
__attribute__((noinline)) static void burn(uint64_t ns)
{
	const uint64_t end = clock_thread_cpu_ns() + ns;
	while (clock_thread_cpu_ns() < end)
		for (uint64_t i = 0; i < 20000; i++)
			sink = sink * 6364136223846793005ULL + i;
}

/* Callers keep a frame of their own: none of them ends with a jump. */
__attribute__((noinline)) static void burn_three(void)
{
	burn(3 * CYCLE_MS * NS_PER_MS / 4);
	sink++;
}

__attribute__((noinline)) static void burn_one(void)
{
	burn(CYCLE_MS * NS_PER_MS / 4);
	sink++;
}

__attribute__((noinline)) static void burn_cycles(int cycles)
{
	for (int i = 0; i < cycles; i++) {
		burn_three();
		burn_one();
	}
	sink++;
}

/* A frame that no small copy of a stack covers. */
__attribute__((noinline)) static void burn_deep(int cycles)
{
	volatile char room[64 << 10];
	room[0] = 1;
	room[sizeof room - 1] = 1;
	burn_cycles(cycles);
	sink += (uint64_t)room[0];
}

/* A function that has given its frame pointer back, with tables as gcc writes them: they go on to name its old place. */
void popped(uint64_t rounds);
__asm__(".text\n"
	".type popped, @function\n"
	"popped:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset 6, -16\n"
	"mov $1, %ebp\n"
	"pop %rbp\n"
	".cfi_def_cfa_offset 8\n"
	"1: sub $1, %rdi\n"
	"jne 1b\n"
	"ret\n"
	".cfi_endproc\n"
	".size popped, . - popped\n");

__attribute__((noinline)) static void burn_popped(int cycles)
{
	const uint64_t end = clock_thread_cpu_ns() + (uint64_t)cycles * CYCLE_MS * NS_PER_MS;
	while (clock_thread_cpu_ns() < end)
		popped(100000);
	sink++;
}

/* --- what was found ---------------------------------------------------------------------------------------------- */

static const char *name_of(const struct flame_profile *p, size_t frame)
{
	return p->names[p->frames[frame].name];
}

static const char *stage_of(const struct flame_profile *p, size_t frame)
{
	while (p->frames[frame].parent != FLAME_ROOT)
		frame = p->frames[frame].parent;
	return name_of(p, frame);
}

/* Samples below all frames of this name in a stage; a function that calls itself would count twice. */
static uint64_t below(const struct flame_profile *p, const char *stage, const char *name)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < p->frame_count; i++)
		if (strcmp(stage_of(p, i), stage) == 0 && strcmp(name_of(p, i), name) == 0)
			sum += p->frames[i].total;
	return sum;
}

static void check_sums(const struct flame_profile *p)
{
	uint64_t self = 0;
	uint64_t stages = 0;
	for (size_t i = 0; i < p->frame_count; i++) {
		const struct flame_frame *frame = &p->frames[i];
		self += frame->self;
		if (frame->parent == FLAME_ROOT)
			stages += frame->total;
		else
			assert_true(frame->parent < i &&
				    p->frames[frame->parent].total >= frame->total);
	}
	assert_int_equal(self, p->samples);
	assert_int_equal(stages, p->samples);
	assert_true(p->truncated <= p->samples);
}

/* A machine that its host holds up spends CPU time that nothing samples. */
static double sampled_seconds(const struct flame_profile *p)
{
	return (double)(p->samples + p->lost) * (double)p->period_ns * 1e-9;
}

static void check_share(
	const struct flame_profile *p, uint64_t part, uint64_t whole, double expected)
{
	const double share = (double)part / (double)whole;
	const double missed = fmax(1 - sampled_seconds(p) / p->cpu_s, 0); /* may be of either */
	const double bound = missed + SPREADS * sqrt(expected * (1 - expected) / (double)whole);
	if (fabs(share - expected) > bound)
		fail_msg("%llu of %llu is %.3f, not %.3f +- %.3f", (unsigned long long)part,
			(unsigned long long)whole, share, expected, bound);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static struct flame *open_flame(const struct flame_options *options)
{
	struct flame *flame = NULL;
	struct error err = {""};
	if (flame_open(&flame, options, &err))
		fail_msg("%s", err.text);
	return flame;
}

static struct flame_profile finish(struct flame *flame)
{
	struct flame_profile profile;
	struct error err = {""};
	if (flame_finish(flame, &profile, &err))
		fail_msg("%s", err.text);
	flame_close(flame);
	check_sums(&profile);
	return profile;
}

/* --- tests ---------------------------------------------------------------------------------------------------------- */

struct thread {
	const char *stage; /* NULL: says nothing */
	const char *name;  /* as the kernel has it; NULL: as it is */
	int cycles;
	bool deep, popped;
};

__attribute__((noinline)) static void *work(void *context)
{
	const struct thread *thread = context;
	if (thread->stage)
		flame_thread_begin(thread->stage);
	if (thread->deep)
		burn_deep(thread->cycles);
	else if (thread->popped)
		burn_popped(thread->cycles);
	else
		burn_cycles(thread->cycles);
	flame_thread_end();
	return NULL;
}

/* A thread's first function, which registers nothing. */
static void *enter(void *context)
{
	void *const result = work(context);
	sink++;
	return result;
}

static void run(struct thread *threads, size_t count)
{
	pthread_t handles[4];
	char own[16]; /* a name, as the kernel has it, which those that are made inherit */
	assert_int_equal(pthread_getname_np(pthread_self(), own, sizeof own), 0);
	for (size_t i = 0; i < count; i++) {
		(void)pthread_setname_np(pthread_self(), threads[i].name ? threads[i].name : own);
		assert_int_equal(pthread_create(&handles[i], NULL, enter, &threads[i]), 0);
	}
	(void)pthread_setname_np(pthread_self(), own);
	for (size_t i = 0; i < count; i++)
		(void)pthread_join(handles[i], NULL);
}

static struct flame_profile sample(
	const struct flame_options *options, struct thread *threads, size_t count)
{
	struct flame *flame = open_flame(options);
	flame_count(true);
	run(threads, count);
	flame_count(false);
	return finish(flame);
}

static void three_to_one(void **state)
{
	(void)state;
	struct thread threads[] = {{.stage = "alpha", .cycles = CYCLES}};
	const struct flame_options options = {0};
	struct flame_profile p = sample(&options, threads, 1);
	const uint64_t three = below(&p, "alpha", "burn_three");
	const uint64_t one = below(&p, "alpha", "burn_one");
	if (has_stacks) {
		check_share(&p, three, three + one, 0.75);
		assert_int_equal(below(&p, "alpha", "burn_cycles"), three + one);
	}
	/* The slices add up to the time that was asked for, and to the kernel's account of the process. */
	const uint64_t stage = below(&p, "alpha", "alpha");
	const double asked_s = CYCLES * CYCLE_MS * 1e-3;
	const double found_s = (double)(stage + p.lost) * (double)p.period_ns * 1e-9;
	assert_true(found_s > 0 && sampled_seconds(&p) / p.cpu_s < 1.15);
	if (has_stacks)
		assert_measured(found_s > 0.9 * asked_s && sampled_seconds(&p) / p.cpu_s > 0.85);
	flame_profile_release(&p);
}

static void stages_are_told_apart(void **state)
{
	(void)state;
	/* The third has the second's name, as libraries' threads have that of who made them; the last nobody's. */
	struct thread threads[] = {{.stage = "alpha", .cycles = 8},
		{.stage = "beta", .name = "beta's", .cycles = 24}, {.name = "beta's", .cycles = 8},
		{.name = "nobody's", .cycles = 8}};
	const struct flame_options options = {0};
	struct flame_profile p = sample(&options, threads, 4);
	const uint64_t alpha = below(&p, "alpha", "alpha");
	const uint64_t beta = below(&p, "beta", "beta");
	const uint64_t other = below(&p, FLAME_OTHER, FLAME_OTHER);
	const uint64_t all = alpha + beta + other;
	check_share(&p, alpha, all, 8. / 48);
	check_share(&p, beta, all, 32. / 48);
	assert_measured(below(&p, FLAME_SAMPLER, FLAME_SAMPLER) < all / 4);
	flame_profile_release(&p);
}

static void stacks_end_where_threads_registered(void **state)
{
	(void)state;
	struct thread threads[] = {{.stage = "alpha", .cycles = 8}};
	const struct flame_options options = {0};
	struct flame_profile p = sample(&options, threads, 1);
	if (!has_stacks) {
		flame_profile_release(&p);
		return;
	}
	uint64_t right = 0;
	for (size_t i = 0; i < p.frame_count; i++)
		if (p.frames[i].parent != FLAME_ROOT && strcmp(name_of(&p, i), "work") == 0 &&
			p.frames[p.frames[i].parent].parent == FLAME_ROOT)
			right += p.frames[i].total;
	/* But for a page of the stack that had to be touched first, and the thread's first and last moments. */
	assert_true(right + right / 10 + 3 >= below(&p, "alpha", "alpha"));
	flame_profile_release(&p);
}

static void popped_registers_are_followed(void **state)
{
	(void)state;
	struct thread threads[] = {{.stage = "alpha", .cycles = 8, .popped = true}};
	const struct flame_options options = {0};
	struct flame_profile p = sample(&options, threads, 1);
	if (has_stacks) {
		uint64_t whole = 0;
		for (size_t i = 0; i < p.frame_count; i++)
			if (strcmp(name_of(&p, i), "popped") == 0 &&
				strcmp(name_of(&p, p.frames[i].parent), "burn_popped") == 0)
				whole += p.frames[i].total;
		assert_true(whole > 0 && whole == below(&p, "alpha", "popped"));
	}
	flame_profile_release(&p);
}

static void short_copies_are_counted(void **state)
{
	(void)state;
	struct thread threads[] = {{.stage = "alpha", .cycles = 8, .deep = true}};
	const struct flame_options options = {.stack_bytes = 4 << 10};
	struct flame_profile p = sample(&options, threads, 1);
	const uint64_t stage = below(&p, "alpha", "alpha");
	const uint64_t cut = below(&p, "alpha", FLAME_TRUNCATED);
	assert_true(stage > 0 && cut >= stage * 9 / 10 && p.truncated >= cut);
	flame_profile_release(&p);
}

static void full_rings_are_counted(void **state)
{
	(void)state;
	struct thread threads[] = {{.stage = "alpha", .cycles = 12, .deep = true}};
	/* No room for even one of the thread's stacks. */
	const struct flame_options options = {.stack_bytes = 48 << 10, .ring_bytes = 16 << 10};
	struct flame_profile p = sample(&options, threads, 1);
	if (!has_stacks) {
		flame_profile_release(&p);
		return;
	}
	assert_true(p.lost > 0);
	const double asked_s = 12 * CYCLE_MS * 1e-3;
	assert_measured(sampled_seconds(&p) > 0.8 * asked_s);
	assert_int_equal(below(&p, "alpha", "alpha"), 0);
	flame_profile_release(&p);
}

static void only_windows_count(void **state)
{
	(void)state;
	const struct flame_options options = {0};
	struct flame *flame = open_flame(&options);
	burn(100 * NS_PER_MS);
	for (int i = 0; i < 2; i++) {
		flame_count(true);
		flame_count(true); /* once is enough */
		burn_one();
		flame_count(false);
		burn(50 * NS_PER_MS);
	}
	struct flame_profile p = finish(flame);
	assert_int_equal(p.windows, 2);
	assert_true(p.outside > p.samples);
	const double in_s = 2 * CYCLE_MS / 4 * 1e-3;
	assert_true(p.cpu_s >= in_s);
	assert_measured(p.cpu_s < 0.15);
	/* A signal brings the slices of a tick that came late, some from before its window; outside were 200 ms. */
	assert_measured((double)p.samples * (double)p.period_ns * 1e-9 < p.cpu_s + 0.05);
	flame_profile_release(&p);
}

static void one_at_a_time_and_none_is_nothing(void **state)
{
	(void)state;
	flame_thread_begin("alpha");
	flame_count(true);
	flame_count(false);
	flame_thread_end();
	flame_close(NULL);
	const struct flame_options options = {0};
	for (int i = 0; i < 3; i++) {
		struct flame *flame = open_flame(&options);
		struct flame *other = NULL;
		struct error err = {""};
		assert_int_equal(flame_open(&other, &options, &err), -EBUSY);
		assert_null(other);
		burn(20 * NS_PER_MS);
		flame_close(flame); /* without finishing: nothing may come after it */
		burn(20 * NS_PER_MS);
	}
}

/* Threads come and go under the sampler, as repetitions make them: slots and timers are used again. */
static void threads_come_and_go(void **state)
{
	(void)state;
	const struct flame_options options = {0};
	struct flame *flame = open_flame(&options);
	flame_count(true);
	for (int i = 0; i < 300; i++) {
		struct thread threads[] = {
			{.stage = "alpha"}, {.stage = "beta"}, {0}, {.stage = "alpha"}};
		run(threads, 4);
	}
	struct thread last[] = {{.stage = "alpha", .cycles = 8}};
	run(last, 1);
	flame_count(false);
	struct flame_profile p = finish(flame);
	assert_true(below(&p, "alpha", "alpha") > 0);
	assert_int_equal(p.unsampled_threads, 0);
	flame_profile_release(&p);
}

/* Sleeps and reads that a signal reaches go on, and signals come only from a thread's own CPU time. */
static void sleeps_are_not_cut_short(void **state)
{
	(void)state;
	const struct flame_options options = {0};
	struct flame *flame = open_flame(&options);
	flame_count(true);
	for (int i = 0; i < 20; i++) {
		burn(5 * NS_PER_MS);
		const uint64_t until_ns = clock_now_ns() + 3 * NS_PER_MS;
		clock_sleep_until_ns(until_ns);
		assert_true(clock_now_ns() >= until_ns);
	}
	flame_count(false);
	struct flame_profile p = finish(flame);
	assert_true(p.samples > 5);
	flame_profile_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_to_one),
		cmocka_unit_test(stages_are_told_apart),
		cmocka_unit_test(stacks_end_where_threads_registered),
		cmocka_unit_test(popped_registers_are_followed),
		cmocka_unit_test(short_copies_are_counted),
		cmocka_unit_test(full_rings_are_counted),
		cmocka_unit_test(only_windows_count),
		cmocka_unit_test(one_at_a_time_and_none_is_nothing),
		cmocka_unit_test(threads_come_and_go),
		cmocka_unit_test(sleeps_are_not_cut_short),
	};
	return cmocka_run_group_tests_name("flame", tests, NULL, NULL);
}
