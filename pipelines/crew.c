/* The gate, the first failure, the end; and parking on a futex word. */
#include "pipelines/crew.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { GATHER_POLL_NS = 50000000 };

int crew_open(struct crew *crew, unsigned expected, void (*wake)(void *context), void *context)
{
	*crew = (struct crew){
		.expected = expected, .stepping = 1, .wake = wake, .wake_context = context};
	pthread_condattr_t attributes;
	int code = pthread_condattr_init(&attributes);
	if (code)
		return -code;
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	code = pthread_cond_init(&crew->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	if (code)
		return -code;
	code = pthread_mutex_init(&crew->lock, NULL);
	if (code)
		(void)pthread_cond_destroy(&crew->changed);
	return -code;
}

void crew_close(struct crew *crew)
{
	(void)pthread_mutex_destroy(&crew->lock);
	(void)pthread_cond_destroy(&crew->changed);
}

bool crew_arrive(struct crew *crew, uint64_t *start_ns)
{
	(void)pthread_mutex_lock(&crew->lock);
	crew->arrived++;
	(void)pthread_cond_broadcast(&crew->changed);
	while (crew->phase == CREW_GATHERING)
		(void)pthread_cond_wait(&crew->changed, &crew->lock);
	const bool go = crew->phase == CREW_RUNNING;
	*start_ns = crew->start_ns;
	(void)pthread_mutex_unlock(&crew->lock);
	return go;
}

static void crew_end(struct crew *crew)
{
	crew->phase = CREW_ENDING;
	atomic_store(&crew->stopping, true);
	(void)pthread_cond_broadcast(&crew->changed);
}

void crew_fail(struct crew *crew, int code, const struct error *err)
{
	(void)pthread_mutex_lock(&crew->lock);
	/* Who gave up because another one failed does not hide why that one did. */
	if (crew->code == 0 || (crew->code == -ECANCELED && code != -ECANCELED)) {
		crew->code = code;
		crew->error = *err;
	}
	crew_end(crew);
	(void)pthread_mutex_unlock(&crew->lock);
	crew->wake(crew->wake_context);
}

void crew_finish(struct crew *crew)
{
	(void)pthread_mutex_lock(&crew->lock);
	if (crew->stepping > 0)
		crew->stepping--;
	crew->finished = crew->stepping == 0;
	(void)pthread_cond_broadcast(&crew->changed);
	(void)pthread_mutex_unlock(&crew->lock);
}

static void crew_wait_until(struct crew *crew, uint64_t deadline_ns)
{
	const struct timespec deadline = {
		.tv_sec = (time_t)(deadline_ns / NS_PER_S),
		.tv_nsec = (long)(deadline_ns % NS_PER_S),
	};
	(void)pthread_cond_timedwait(&crew->changed, &crew->lock, &deadline);
}

/* The lock is held, and given up meanwhile: who is told may write. */
static void tell_choosing(struct crew *crew, unsigned *told, crew_choosing *choosing, void *context)
{
	const unsigned chosen = atomic_load(&crew->choosing.chosen);
	const unsigned products = atomic_load(&crew->choosing.products);
	if (!choosing || chosen >= products || chosen == *told)
		return;
	*told = chosen;
	(void)pthread_mutex_unlock(&crew->lock);
	choosing(context, chosen, products);
	(void)pthread_mutex_lock(&crew->lock);
}

bool crew_gather(struct crew *crew, const atomic_bool *stop, crew_choosing *choosing, void *context)
{
	unsigned told = UINT_MAX;
	(void)pthread_mutex_lock(&crew->lock);
	while (crew->arrived < crew->expected && crew->phase == CREW_GATHERING &&
		!(stop && atomic_load(stop))) {
		tell_choosing(crew, &told, choosing, context);
		crew_wait_until(crew, clock_now_ns() + GATHER_POLL_NS);
	}
	const bool complete = crew->arrived >= crew->expected && crew->phase == CREW_GATHERING;
	(void)pthread_mutex_unlock(&crew->lock);
	return complete;
}

void crew_start(struct crew *crew, uint64_t start_ns)
{
	(void)pthread_mutex_lock(&crew->lock);
	if (crew->phase == CREW_GATHERING)
		crew->phase = CREW_RUNNING;
	crew->start_ns = start_ns;
	(void)pthread_cond_broadcast(&crew->changed);
	(void)pthread_mutex_unlock(&crew->lock);
}

bool crew_wait(struct crew *crew, uint64_t deadline_ns)
{
	(void)pthread_mutex_lock(&crew->lock);
	while (!crew->finished && crew->phase == CREW_RUNNING && clock_now_ns() < deadline_ns)
		crew_wait_until(crew, deadline_ns);
	const bool over = crew->finished || crew->phase == CREW_ENDING;
	(void)pthread_mutex_unlock(&crew->lock);
	return over;
}

void crew_stop(struct crew *crew)
{
	(void)pthread_mutex_lock(&crew->lock);
	crew_end(crew);
	(void)pthread_mutex_unlock(&crew->lock);
	crew->wake(crew->wake_context);
}

/* A join that waits by the monotonic clock is unknown to ThreadSanitizer: there one looks, with pauses. */
bool crew_join(pthread_t thread, uint64_t deadline_ns)
{
#ifdef __SANITIZE_THREAD__
	enum { PAUSE_LEAST_NS = 50000, PAUSE_MOST_NS = 2000000 };
	uint64_t pause_ns = PAUSE_LEAST_NS;
	int code;
	while ((code = pthread_tryjoin_np(thread, NULL)) == EBUSY && clock_now_ns() < deadline_ns) {
		clock_sleep_until_ns(clock_now_ns() + pause_ns);
		pause_ns = pause_ns < PAUSE_MOST_NS ? 2 * pause_ns : pause_ns;
	}
	return code == 0;
#else
	const struct timespec deadline = {
		.tv_sec = (time_t)(deadline_ns / NS_PER_S),
		.tv_nsec = (long)(deadline_ns % NS_PER_S),
	};
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &deadline) == 0;
#endif
}

/* --- parking --------------------------------------------------------------------------------- */

enum { TOKEN_SLEEPING = -1, TOKEN_NONE = 0, TOKEN_GIVEN = 1 };

static void parker_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

void parker_wait(struct parker *parker, unsigned spins)
{
	for (unsigned i = 0; i < spins; i++) {
		if (atomic_load_explicit(&parker->token, memory_order_acquire) == TOKEN_GIVEN)
			break;
		parker_relax();
	}
	int expected = TOKEN_NONE;
	if (atomic_compare_exchange_strong(&parker->token, &expected, TOKEN_SLEEPING))
		while (atomic_load_explicit(&parker->token, memory_order_acquire) == TOKEN_SLEEPING)
			(void)syscall(SYS_futex, &parker->token, FUTEX_WAIT_PRIVATE, TOKEN_SLEEPING,
				NULL, NULL, 0);
	atomic_store_explicit(&parker->token, TOKEN_NONE, memory_order_relaxed);
}

/* The futex's own deadline: a relative wait would begin anew after each false alarm. */
static void parker_sleep_until(struct parker *parker, uint64_t until_ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / NS_PER_S),
		.tv_nsec = (long)(until_ns % NS_PER_S),
	};
	(void)syscall(SYS_futex, &parker->token, FUTEX_WAIT_BITSET_PRIVATE, TOKEN_SLEEPING, &until,
		NULL, FUTEX_BITSET_MATCH_ANY);
}

bool parker_wait_until(struct parker *parker, uint64_t until_ns)
{
	int expected = TOKEN_NONE;
	if (atomic_compare_exchange_strong(&parker->token, &expected, TOKEN_SLEEPING)) {
		while (atomic_load_explicit(&parker->token, memory_order_acquire) ==
				TOKEN_SLEEPING &&
			clock_now_ns() < until_ns)
			parker_sleep_until(parker, until_ns);
		expected = TOKEN_SLEEPING;
		if (atomic_compare_exchange_strong(&parker->token, &expected, TOKEN_NONE))
			return false;
	}
	atomic_store_explicit(&parker->token, TOKEN_NONE, memory_order_relaxed);
	return true;
}

void parker_wake(struct parker *parker)
{
	if (atomic_exchange_explicit(&parker->token, TOKEN_GIVEN, memory_order_acq_rel) ==
		TOKEN_SLEEPING)
		(void)syscall(SYS_futex, &parker->token, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
