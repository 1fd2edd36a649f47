/* Scratch files: created, unlinked, then filled, so that no exit can leave one behind. */
#include "workloads/source/probe_read_parts.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
	CHUNK_BYTES = 1 << 20,
	SYNC_CHUNKS = 8, /* written between two looks at the disk's pace */
	FREE_SHARE = 10, /* one part in so many of the free space is taken */
	NAME_TRIES = 100,
	PATH_BYTES = 4096,
};

static uint64_t room_in(const char *folder)
{
	struct statvfs fs;
	struct rlimit limit;
	uint64_t room = UINT64_MAX;
	/* One that has no blocks does not count them. */
	if (statvfs(folder, &fs) == 0 && fs.f_blocks > 0)
		room = (uint64_t)fs.f_bavail * fs.f_frsize / FREE_SHARE;
	/* Beyond it writes fail. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < room)
		room = limit.rlim_cur;
	return room;
}

static int create(struct scratch_file *file, const char *folder, struct error *err)
{
	char path[PATH_BYTES];
	for (int i = 0; i < NAME_TRIES; i++) {
		if (snprintf(path, sizeof path, "%s/.mlbench-probe-%d-%d", folder, (int)getpid(),
			    i) >= (int)sizeof path)
			return error_set(err, -ENAMETOOLONG, "path too long: '%s'", folder);
		file->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (file->fd >= 0 || errno != EEXIST)
			break;
	}
	if (file->fd < 0)
		return error_set_errno(err, errno, "no scratch file in '%s'", folder);
	file->direct_fd = open(path, O_RDONLY | O_DIRECT | O_NOFOLLOW | O_CLOEXEC);
	if (file->direct_fd < 0)
		file->direct_fd = -errno;
	if (unlink(path) != 0)
		return error_set_errno(err, errno, "cannot remove '%s'", path);
	return 0;
}

/* Random, so that neither compression nor deduplication makes it smaller. */
static int write_chunk(int fd, uint64_t *chunk, struct rng *rng, uint64_t at)
{
	for (size_t i = 0; i < CHUNK_BYTES / sizeof *chunk; i++)
		chunk[i] = rng_next(rng);
	for (size_t done = 0; done < CHUNK_BYTES;) {
		const ssize_t n = pwrite(
			fd, (const char *)chunk + done, CHUNK_BYTES - done, (off_t)(at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* Until all is written, the disk is full, or the time is over. */
static int fill(struct scratch_file *file, uint64_t bytes, uint64_t end_ns,
	const struct probe_control *control)
{
	uint64_t *chunk = malloc(CHUNK_BYTES);
	struct rng rng;
	rng_init(&rng, (uint64_t)getpid(), bytes);
	int code = chunk ? 0 : -ENOMEM;
	for (unsigned i = 1; !code && file->bytes < bytes && clock_now_ns() < end_ns; i++) {
		if (probe_stopped(control))
			code = -EINTR;
		if (!code)
			code = write_chunk(file->fd, chunk, &rng, file->bytes);
		if (!code)
			file->bytes += CHUNK_BYTES;
		if (!code && i % SYNC_CHUNKS == 0 && fdatasync(file->fd) != 0)
			code = -errno;
	}
	free(chunk);
	if (!code && fdatasync(file->fd) != 0)
		code = -errno;
	return code;
}

static int refuse(const struct scratch_file *file, const char *folder, int code, struct error *err)
{
	char size[UNITS_BYTES];
	(void)units_format_size((double)file->bytes, size);
	if (code == -EINTR)
		return error_set(err, code, "stopped");
	if (code == 0)
		return error_set(err, -ETIMEDOUT,
			"only %s of a scratch file could be written to '%s' in the time allowed",
			size, folder);
	return error_set_errno(
		err, -code, "cannot write a scratch file to '%s' beyond %s", folder, size);
}

int scratch_open(struct scratch_file *file, const char *folder, uint64_t bytes, uint64_t least,
	uint64_t write_end_ns, const struct probe_control *control, struct error *err)
{
	const uint64_t room = room_in(folder);
	char size[UNITS_BYTES];
	*file = (struct scratch_file){.fd = -1, .direct_fd = -EBADF};
	if (room < least)
		return error_set(err, -ENOSPC,
			"no room for a scratch file in '%s': %s may be taken, a tenth of what is free",
			folder, units_format_size((double)room, size));
	int code = create(file, folder, err);
	if (!code) {
		const uint64_t wanted = bytes < room ? bytes : room;
		code = fill(file, wanted / CHUNK_BYTES * CHUNK_BYTES, write_end_ns, control);
		/* A disk that fills up meanwhile has given what there was. */
		const bool enough = file->bytes >= least && code != -EINTR && code != -EIO;
		code = enough ? 0 : refuse(file, folder, code, err);
	}
	if (code)
		scratch_close(file);
	return code;
}

void scratch_close(struct scratch_file *file)
{
	if (file->fd >= 0)
		(void)close(file->fd);
	if (file->direct_fd >= 0)
		(void)close(file->direct_fd);
	*file = (struct scratch_file){.fd = -1, .direct_fd = -EBADF};
}
