/* What the engines need to know about the files of a data set. */
#include "workloads/source/engines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DIRECT_TRIES = 16,
	OPEN_FILES_SPARE = 8, /* opened later: results, traces, what the run shows to others */
};

int source_root_open(const struct dataset *dataset, struct error *err)
{
	const int fd = open(dataset->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : error_set_errno(err, errno, "cannot open folder '%s'", dataset->root);
}

/* dup's number says about how many are open now. */
int source_check_open_files(
	const struct source *source, int root_fd, unsigned at_once, struct error *err)
{
	struct rlimit limit;
	const int next = dup(root_fd);
	if (next < 0)
		return error_set_errno(err, errno, "no file of the data set can be opened");
	(void)close(next);
	const unsigned needed = (unsigned)next + at_once + OPEN_FILES_SPARE;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
		return 0;
	return error_set(err, -EMFILE,
		"%u files are read at once (read.threads = %u): that needs %u open files, and the limit is %ju (ulimit -n)",
		at_once, source->threads, needed, (uintmax_t)limit.rlim_cur);
}

/* 1 yes, 0 no, -1 cannot say: it does not open at all. */
static int file_direct_works(int root_fd, const char *path)
{
	const int fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	if (fd < 0)
		return errno == EINVAL ? 0 : -1;
	(void)close(fd);
	return 1;
}

bool source_direct_works(struct source *source, int root_fd)
{
	const struct dataset *const dataset = source->dataset;
	for (size_t i = 0; i < dataset->count && i < DIRECT_TRIES; i++) {
		const int works = file_direct_works(root_fd, dataset->samples[i].path);
		if (works == 0)
			source_note(source, "direct: no: the file system of '%s' refuses O_DIRECT",
				dataset->samples[i].path);
		if (works >= 0)
			return works == 1;
	}
	return true;
}

uint64_t source_file_bytes(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

uint64_t source_path_bytes(int root_fd, const char *path)
{
	struct stat st;
	return fstatat(root_fd, path, &st, 0) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}
