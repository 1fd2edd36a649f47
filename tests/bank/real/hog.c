/* hog: load from outside the job, one process each, until it is ended.
 *
 *   hog cpu                    computes
 *   hog memory                 streams through far more memory than any cache holds
 *   hog files FOLDER BLOCK     reads the files of FOLDER, BLOCK bytes at a time, past the page cache
 *   hog cache FOLDER           reads them through it, over and over */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { STREAM_BYTES = 256 << 20, ALIGNMENT = 4096, CACHED_BLOCK = 1 << 20 };

static void hog_cpu(void)
{
	for (volatile uint64_t count = 0;; count++)
		;
}

static void hog_memory(void)
{
	char *const from = malloc(STREAM_BYTES), *const to = malloc(STREAM_BYTES);
	if (!from || !to)
		return;
	memset(from, 1, STREAM_BYTES);
	for (unsigned turn = 0;; turn++) {
		from[turn % STREAM_BYTES]++; /* so that no turn can be left out */
		memcpy(to, from, STREAM_BYTES);
		__asm__ volatile("" : : "r"(to) : "memory");
	}
}

/* What a file system without O_DIRECT refuses is read without. */
static int hog_open(const char *path, int direct)
{
	int fd = open(path, O_RDONLY | direct);
	if (fd < 0 && errno == EINVAL)
		fd = open(path, O_RDONLY);
	return fd;
}

static void hog_pass(char *folder, char *buffer, size_t block, int direct)
{
	FTS *const files = fts_open((char *[]){folder, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	for (FTSENT *entry; files && (entry = fts_read(files));) {
		if (entry->fts_info != FTS_F)
			continue;
		const int fd = hog_open(entry->fts_accpath, direct);
		while (fd >= 0 && read(fd, buffer, block) > 0)
			;
		if (fd >= 0)
			close(fd);
	}
	if (files)
		fts_close(files);
}

static void hog_files(char *folder, size_t block, int direct)
{
	char *const buffer = aligned_alloc(ALIGNMENT, block);
	while (buffer)
		hog_pass(folder, buffer, block, direct);
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	const char *const kind = argc > 1 ? argv[1] : "";
	if (strcmp(kind, "cpu") == 0)
		hog_cpu();
	else if (strcmp(kind, "memory") == 0)
		hog_memory();
	else if (strcmp(kind, "files") == 0 && argc == 4)
		hog_files(argv[2], ((size_t)atol(argv[3]) / ALIGNMENT + 1) * ALIGNMENT, O_DIRECT);
	else if (strcmp(kind, "cache") == 0 && argc == 3)
		hog_files(argv[2], CACHED_BLOCK, 0);
	else
		fputs("usage: hog cpu | memory | files FOLDER BLOCK | cache FOLDER\n", stderr);
	return 2; /* a hog ends by being ended */
}
