/* Giving the terminal back does only what is safe in a signal's handler.  Meanwhile a file in memory that cannot grow takes
 * the place of stderr: writing to it never waits, and ends where it is full. */
#include "harness/live/terminal_guard.h"

#include "harness/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
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
} guard;

static struct {
	atomic_bool on;
	int file, real; /* in place of stderr; what stderr was */
	const char *bytes;
} chatter;

static size_t size_now(void)
{
	const off_t end = lseek(chatter.file, 0, SEEK_CUR);
	return end < 0 ? 0 : end > CHATTER_BYTES ? CHATTER_BYTES : (size_t)end;
}

/* Safe in a signal's handler.  The file and its mapping stay: somebody may be writing to them. */
static void chatter_write_rest(void)
{
	static const char full[] =
		"mlbench: more was written while the view was open; the rest is lost\n";
	if (!atomic_exchange(&chatter.on, false))
		return;
	const size_t size = size_now();
	(void)dup2(chatter.real, STDERR_FILENO);
	(void)files_write_all(chatter.real, chatter.bytes, size);
	if (size == CHATTER_BYTES)
		(void)files_write_all(chatter.real, full, sizeof full - 1);
}

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
	chatter_write_rest();
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

/* --- stderr --------------------------------------------------------------------------------------- */

/* All of its size, and no more ever. */
static int chatter_make_file(void)
{
	const int fd = memfd_create("mlbench-stderr", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, CHATTER_BYTES) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0)
		return fd;
	const int code = -errno;
	(void)close(fd);
	return code;
}

int chatter_begin(void)
{
	const int file = chatter_make_file();
	if (file < 0)
		return file;
	void *bytes = mmap(NULL, CHATTER_BYTES, PROT_READ, MAP_SHARED, file, 0);
	const int real = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (bytes == MAP_FAILED || real < 0 || dup2(file, STDERR_FILENO) < 0) {
		const int code = -errno;
		if (bytes != MAP_FAILED)
			(void)munmap(bytes, CHATTER_BYTES);
		if (real >= 0)
			(void)close(real);
		(void)close(file);
		return code;
	}
	chatter.file = file;
	chatter.real = real;
	chatter.bytes = bytes;
	atomic_store(&chatter.on, true);
	return 0;
}

void chatter_end(void)
{
	if (!chatter.bytes)
		return;
	chatter_write_rest();
	(void)munmap((void *)(uintptr_t)chatter.bytes, CHATTER_BYTES);
	(void)close(chatter.file);
	(void)close(chatter.real);
	chatter.bytes = NULL;
}

size_t chatter_tail(char *out, size_t room)
{
	out[0] = '\0';
	if (!atomic_load(&chatter.on) || room == 0)
		return 0;
	const size_t size = size_now();
	const size_t wanted = size < room - 1 ? size : room - 1;
	memcpy(out, chatter.bytes + size - wanted, wanted);
	out[wanted] = '\0';
	/* It began in the middle of a line. */
	const char *first = wanted < size ? memchr(out, '\n', wanted) : NULL;
	if (!first)
		return wanted;
	const size_t rest = wanted - (size_t)(first + 1 - out);
	memmove(out, first + 1, rest + 1);
	return rest;
}
