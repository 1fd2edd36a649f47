/* A hog lives in its own process, so that the job's CPU time and memory do not contain it, as those of
 * another job on the node would not. */
#include "pipelines/hogs.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Beyond any cache of a socket that a process gets to itself. */
enum { STREAM_BYTES = 192 << 20, LINE_WORDS = 8 };

/* Ends the hog when its parent does. */
static void follow(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NAME, "mlbench-hog");
	if (getppid() != parent)
		_exit(0);
}

static _Noreturn void burn(void)
{
	for (volatile uint64_t turns = 0;; turns++)
		continue;
}

/* Reads and writes a word of every cache line, over and over: each line moves both ways. */
static _Noreturn void stream(void)
{
	volatile uint64_t *const words = mmap(
		NULL, STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (words == MAP_FAILED)
		_exit(1);
	for (;;)
		for (size_t i = 0; i < STREAM_BYTES / sizeof *words; i += LINE_WORDS)
			words[i]++;
}

static int hogs_start(
	struct hogs *hogs, unsigned wanted, const char *key, void (*work)(void), struct error *err)
{
	const pid_t parent = getpid();
	for (unsigned i = 0; i < wanted; i++) {
		const pid_t child = fork();
		if (child == 0) {
			follow(parent);
			work();
		}
		if (child < 0)
			return error_set_errno(
				err, errno, "cannot start process %u of inject.%s", i + 1, key);
		hogs->pids[hogs->count++] = child;
	}
	return 0;
}

int hogs_open(struct hogs *hogs, const struct config *config, struct error *err)
{
	const unsigned burning = (unsigned)config_integer(config, KEY_INJECT_CPU_HOG);
	const unsigned streaming = (unsigned)config_integer(config, KEY_INJECT_MEMORY_HOG);
	*hogs = (struct hogs){0};
	if (burning + streaming == 0)
		return 0;
	hogs->pids = calloc(burning + streaming, sizeof *hogs->pids);
	if (!hogs->pids)
		return error_set(err, -ENOMEM, "out of memory");
	const int code = hogs_start(hogs, burning, "cpu_hog", burn, err);
	return code ? code : hogs_start(hogs, streaming, "memory_hog", stream, err);
}

void hogs_close(struct hogs *hogs)
{
	for (unsigned i = 0; i < hogs->count; i++)
		(void)kill(hogs->pids[i], SIGKILL);
	for (unsigned i = 0; i < hogs->count; i++)
		while (waitpid(hogs->pids[i], NULL, 0) < 0 && errno == EINTR)
			continue;
	free(hogs->pids);
	*hogs = (struct hogs){0};
}
