/* What glibc 2.28 lacks of what this program and the libraries that travel with it use, for the program of `make dist` alone:
 * old_glibc.py makes all of them ask for these by bare name, and they are found here first. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NS = 1000000000 };

/* Before 2.33 these were inline, on top of __xstat; the kernel's structure is the same. */
int fstatat(int folder, const char *restrict path, struct stat *restrict out, int flags)
{
	return (int)syscall(SYS_newfstatat, folder, path, out, flags);
}

int stat(const char *restrict path, struct stat *restrict out)
{
	return fstatat(AT_FDCWD, path, out, 0);
}

int lstat(const char *restrict path, struct stat *restrict out)
{
	return fstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

int fstat(int file, struct stat *out)
{
	return fstatat(file, "", out, AT_EMPTY_PATH);
}

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one structure for both names");
int fstatat64(int folder, const char *restrict path, struct stat64 *restrict out, int flags)
{
	return (int)syscall(SYS_newfstatat, folder, path, out, flags);
}

int stat64(const char *restrict path, struct stat64 *restrict out)
{
	return fstatat64(AT_FDCWD, path, out, 0);
}

int lstat64(const char *restrict path, struct stat64 *restrict out)
{
	return fstatat64(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

int fstat64(int file, struct stat64 *out)
{
	return fstatat64(file, "", out, AT_EMPTY_PATH);
}

pid_t gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* libstdc++ asks for it, which libtiff brings along. */
uint32_t arc4random(void)
{
	uint32_t value;
	while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value)
		;
	return value;
}

/* Only an optimisation for those who ask. */
char __libc_single_threaded = 0;

/* The node's own where there is one; before 2.33 its counters have 32 bits. */
struct mallinfo2 mallinfo2(void)
{
	struct mallinfo2 (*own)(void);
	void *const symbol = dlsym(RTLD_NEXT, "mallinfo2");
	memcpy(&own, &symbol, sizeof own);
	if (own)
		return own();
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	const struct mallinfo old = mallinfo();
	return (struct mallinfo2){
		.arena = (unsigned)old.arena,
		.ordblks = (unsigned)old.ordblks,
		.hblks = (unsigned)old.hblks,
		.hblkhd = (unsigned)old.hblkhd,
		.uordblks = (unsigned)old.uordblks,
		.fordblks = (unsigned)old.fordblks,
		.keepcost = (unsigned)old.keepcost,
	};
}

/* Looks every few milliseconds; only a thread that ends late is waited for so. */
int pthread_clockjoin_np(
	pthread_t thread, void **result, clockid_t clock, const struct timespec *until)
{
	struct timespec now;
	int code;
	while ((code = pthread_tryjoin_np(thread, result)) == EBUSY) {
		if (clock_gettime(clock, &now) != 0)
			return errno;
		if (now.tv_sec > until->tv_sec ||
			(now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
			return ETIMEDOUT;
		(void)nanosleep(&(struct timespec){.tv_nsec = NS / 500}, NULL);
	}
	return code;
}

/* On a condition that waits by CLOCK_REALTIME: a step of that clock ends the wait early or late, and callers look again. */
int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock,
	clockid_t clock, const struct timespec *restrict until)
{
	struct timespec now, wall;
	if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &wall) != 0)
		return errno;
	const int64_t left =
		(int64_t)(until->tv_sec - now.tv_sec) * NS + (until->tv_nsec - now.tv_nsec);
	const int64_t end = wall.tv_nsec + (left > 0 ? left : 0);
	wall.tv_sec += (time_t)(end / NS);
	wall.tv_nsec = (long)(end % NS);
	return pthread_cond_timedwait(condition, lock, &wall);
}
