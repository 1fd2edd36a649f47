/* Parking on a futex word. */
#include "pipelines/parker.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
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

void parker_wake(struct parker *parker)
{
	if (atomic_exchange_explicit(&parker->token, TOKEN_GIVEN, memory_order_acq_rel) ==
		TOKEN_SLEEPING)
		(void)syscall(SYS_futex, &parker->token, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
