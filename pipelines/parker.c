/* Parking on a futex word. */
#include "pipelines/parker.h"

#include "harness/base/clock.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TOKEN_SLEEPING = -1, TOKEN_NONE = 0, TOKEN_GIVEN = 1 };

static void relax(void)
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
		relax();
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
