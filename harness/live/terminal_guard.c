/* Only what is safe in a signal's handler. */
#include "harness/live/terminal_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LEAVE_BYTES = 256, TRIES = 50, PAUSE_NS = 10000000 };

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT, SIGTRAP, SIGSYS};
enum { CRASHES = sizeof crashes / sizeof crashes[0] };

static struct {
	atomic_bool armed;
	int fd;
	struct termios modes;
	char leave[LEAVE_BYTES];
	size_t leave_size;
	struct sigaction before[CRASHES];
	_Atomic(void (*)(void)) write_rest;
} guard;

/* A terminal that takes nothing is given up after half a second. */
static void write_patiently(int fd, const char *bytes, size_t size)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	for (int i = 0; i < TRIES && size > 0; i++) {
		const ssize_t n = write(fd, bytes, size);
		if (n > 0) {
			bytes += n;
			size -= (size_t)n;
		} else {
			(void)nanosleep(&pause, NULL);
		}
	}
}

/* From the background, setting anything would stop the process. */
static void hold_back(sigset_t *before)
{
	sigset_t blocked;
	(void)sigemptyset(&blocked);
	(void)sigaddset(&blocked, SIGTTOU);
	(void)pthread_sigmask(SIG_BLOCK, &blocked, before);
}

void terminal_guard_let_go(void)
{
	sigset_t before;
	if (!atomic_load(&guard.armed))
		return;
	hold_back(&before);
	/* What Ctrl-S stopped, only the end of another stop starts again. */
	(void)tcflow(guard.fd, TCOOFF);
	(void)tcflow(guard.fd, TCOON);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void terminal_guard_restore(void)
{
	const int saved = errno;
	sigset_t before;
	if (atomic_exchange(&guard.armed, false)) {
		hold_back(&before);
		write_patiently(guard.fd, guard.leave, guard.leave_size);
		(void)tcsetattr(guard.fd, TCSANOW, &guard.modes);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	void (*write_rest)(void) = atomic_exchange(&guard.write_rest, NULL);
	if (write_rest)
		write_rest();
	errno = saved;
}

static void on_crash(int number)
{
	terminal_guard_restore();
	for (size_t i = 0; i < CRASHES; i++)
		if (crashes[i] == number)
			(void)sigaction(number, &guard.before[i], NULL);
	/* It comes when this handler returns; a fault of our own comes again by itself. */
	(void)raise(number);
}

void terminal_guard_arm(int fd, const struct termios *modes, const char *leave, size_t leave_size)
{
	struct sigaction action = {.sa_handler = on_crash};
	(void)sigemptyset(&action.sa_mask);
	guard.fd = fd;
	guard.modes = *modes;
	guard.leave_size = leave_size < LEAVE_BYTES ? leave_size : LEAVE_BYTES;
	memcpy(guard.leave, leave, guard.leave_size);
	for (size_t i = 0; i < CRASHES; i++)
		(void)sigaction(crashes[i], &action, &guard.before[i]);
	atomic_store(&guard.armed, true);
}

bool terminal_guard_is_armed(void)
{
	return atomic_load(&guard.armed);
}

void terminal_guard_disarm(void)
{
	if (!atomic_exchange(&guard.armed, false))
		return;
	for (size_t i = 0; i < CRASHES; i++)
		(void)sigaction(crashes[i], &guard.before[i], NULL);
}

void terminal_guard_on_restore(void (*write_rest)(void))
{
	atomic_store(&guard.write_rest, write_rest);
}
