/* Rounds, medians and crews. */
#include "harness/measure/probe.h"

#include "harness/base/clock.h"
#include "harness/base/order.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CPUS_SPARE = 1024 };

bool probe_stopped(const struct probe_control *control)
{
	return control->stop && atomic_load_explicit(control->stop, memory_order_relaxed);
}

bool probe_time_over(const struct probe_control *control)
{
	return probe_stopped(control) ||
	       (control->deadline_ns && clock_now_ns() >= control->deadline_ns);
}

uint64_t probe_slot_end(const struct probe_control *control, uint64_t now)
{
	const uint64_t end = now + control->slot_ns;
	return control->deadline_ns && control->deadline_ns < end ? control->deadline_ns : end;
}

void probe_add(struct probe_values *values, double value)
{
	if (!isnan(value) && values->count < PROBE_ROUNDS_MAX)
		values->at[values->count++] = value;
}

double probe_median(const struct probe_values *values, struct ceiling_range *range)
{
	struct ceiling_range found = {.low = NAN, .high = NAN, .repeats = values->count};
	double sorted[PROBE_ROUNDS_MAX];
	double median = NAN;
	if (values->count > 0) {
		const unsigned n = values->count;
		memcpy(sorted, values->at, n * sizeof *sorted);
		sort_doubles(sorted, n);
		found.low = sorted[0];
		found.high = sorted[n - 1];
		median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
	}
	if (range)
		*range = found;
	return median;
}

/* --- crews ------------------------------------------------------------------------------------- */

/* The cores this process may use; free it with CPU_FREE.  NULL: not known. */
static cpu_set_t *allowed_cores(size_t *most)
{
	const long configured = sysconf(_SC_NPROCESSORS_CONF);
	*most = (size_t)(configured > 0 ? configured : 1) + CPUS_SPARE;
	cpu_set_t *set = CPU_ALLOC(*most);
	if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(*most), set) == 0)
		return set;
	CPU_FREE(set);
	return NULL;
}

unsigned probe_cores(void)
{
	size_t most;
	cpu_set_t *set = allowed_cores(&most);
	if (!set)
		return 1;
	const int count = CPU_COUNT_S(CPU_ALLOC_SIZE(most), set);
	CPU_FREE(set);
	return count > 0 ? (unsigned)count : 1;
}

struct crew {
	probe_work *work;
	void *context;
	const cpu_set_t *allowed; /* NULL: not pinned */
	size_t most;              /* CPUs that it may name */
	/* Threads wait here until it is known whether there are enough of them. */
	pthread_mutex_t lock;
	pthread_cond_t begin;
	enum { CREW_WAITS, CREW_WORKS, CREW_GIVES_UP } phase;
};

struct member {
	struct crew *crew;
	unsigned index;
	pthread_t thread;
};

static void pin(const struct crew *crew, unsigned index)
{
	const size_t size = CPU_ALLOC_SIZE(crew->most);
	const unsigned count = (unsigned)CPU_COUNT_S(size, crew->allowed);
	unsigned rank = count > 0 ? index % count : 0;
	cpu_set_t *one = CPU_ALLOC(crew->most);
	if (!one)
		return;
	CPU_ZERO_S(size, one);
	for (size_t cpu = 0; cpu < crew->most; cpu++)
		if (CPU_ISSET_S(cpu, size, crew->allowed) && rank-- == 0) {
			CPU_SET_S(cpu, size, one);
			(void)pthread_setaffinity_np(pthread_self(), size, one);
			break;
		}
	CPU_FREE(one);
}

static void *member_main(void *argument)
{
	const struct member *member = argument;
	struct crew *crew = member->crew;
	if (crew->allowed)
		pin(crew, member->index);
	(void)pthread_mutex_lock(&crew->lock);
	while (crew->phase == CREW_WAITS)
		(void)pthread_cond_wait(&crew->begin, &crew->lock);
	const bool works = crew->phase == CREW_WORKS;
	(void)pthread_mutex_unlock(&crew->lock);
	if (works)
		crew->work(crew->context, member->index);
	return NULL;
}

static unsigned start_members(struct crew *crew, struct member *members, unsigned threads)
{
	sigset_t all;
	sigset_t before;
	unsigned started = 0;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	for (; started < threads; started++) {
		members[started] = (struct member){.crew = crew, .index = started};
		if (pthread_create(
			    &members[started].thread, NULL, member_main, &members[started]) != 0)
			break;
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

static int run_crew(struct crew *crew, unsigned threads, struct error *err)
{
	struct member *members = calloc(threads, sizeof *members);
	if (!members)
		return error_set(err, -ENOMEM, "out of memory for %u threads", threads);
	const unsigned started = start_members(crew, members, threads);
	(void)pthread_mutex_lock(&crew->lock);
	crew->phase = started == threads ? CREW_WORKS : CREW_GIVES_UP;
	(void)pthread_cond_broadcast(&crew->begin);
	(void)pthread_mutex_unlock(&crew->lock);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(members[i].thread, NULL);
	free(members);
	return started == threads
		       ? 0
		       : error_set(err, -EAGAIN, "only %u of %u threads could be started", started,
				 threads);
}

int probe_crew(unsigned threads, bool pinned, probe_work *work, void *context, struct error *err)
{
	struct crew crew = {.work = work, .context = context};
	cpu_set_t *allowed = pinned ? allowed_cores(&crew.most) : NULL;
	crew.allowed = allowed;
	(void)pthread_mutex_init(&crew.lock, NULL);
	(void)pthread_cond_init(&crew.begin, NULL);
	const int code = run_crew(&crew, threads, err);
	(void)pthread_cond_destroy(&crew.begin);
	(void)pthread_mutex_destroy(&crew.lock);
	CPU_FREE(allowed);
	return code;
}
