/* A file in memory that cannot grow takes the place of stderr: writing to it never waits, and ends where it is full. */
#include "harness/live/chatter.h"

#include "harness/base/files.h"
#include "harness/live/terminal_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

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
static void write_rest(void)
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

/* All of its size, and no more ever. */
static int make_file(void)
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
	const int file = make_file();
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
	terminal_guard_on_restore(write_rest);
	return 0;
}

void chatter_end(void)
{
	if (!chatter.bytes)
		return;
	write_rest();
	terminal_guard_on_restore(NULL);
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
