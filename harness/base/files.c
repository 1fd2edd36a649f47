/* Files and folders. */
#include "harness/base/files.h"

#include "harness/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TREE_FILES_OPEN = 32, READ_STEP_BYTES = 65536 };

/* Reads to the end; sizes of /proc files are not known beforehand. */
static int read_all(int fd, size_t limit, char **data, size_t *size)
{
	size_t room = READ_STEP_BYTES;
	size_t used = 0;
	char *bytes = malloc(room + 1);
	if (!bytes)
		return -ENOMEM;
	for (;;) {
		const ssize_t n = read(fd, bytes + used, room - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			const int code = -errno;
			free(bytes);
			return code;
		}
		if (n == 0)
			break;
		used += (size_t)n;
		if (used > limit) {
			free(bytes);
			return -EFBIG;
		}
		if (used == room) {
			char *larger = realloc(bytes, room * 2 + 1);
			if (!larger) {
				free(bytes);
				return -ENOMEM;
			}
			bytes = larger;
			room *= 2;
		}
	}
	bytes[used] = '\0';
	*data = bytes;
	*size = used;
	return 0;
}

int files_read(const char *path, size_t limit, char **data, size_t *size, struct error *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, errno, "cannot open '%s'", path);
	const int code = read_all(fd, limit, data, size);
	(void)close(fd);
	if (code == -EFBIG)
		return error_set(err, code, "'%s' is larger than %zu bytes", path, limit);
	if (code)
		return error_set_errno(err, -code, "cannot read '%s'", path);
	return 0;
}

static int write_all(int fd, const void *data, size_t size)
{
	const char *bytes = data;
	while (size > 0) {
		const ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Writes, syncs, closes: a full disk shows in any of the three. */
static int write_sync_close(int fd, const void *data, size_t size)
{
	int code = write_all(fd, data, size);
	if (!code && fdatasync(fd) != 0 && errno != EINVAL && errno != EROFS)
		code = -errno;
	if (close(fd) != 0 && !code)
		code = -errno;
	return code;
}

int files_write_atomic(const char *path, const void *data, size_t size, struct error *err)
{
	char temporary[4096];
	if (snprintf(temporary, sizeof temporary, "%s.tmp-%d", path, (int)getpid()) >=
		(int)sizeof temporary)
		return error_set(err, -ENAMETOOLONG, "path too long: '%s'", path);
	const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return error_set_errno(err, errno, "cannot create '%s'", temporary);
	int code = write_sync_close(fd, data, size);
	if (!code && rename(temporary, path) != 0)
		code = -errno;
	if (code) {
		(void)unlink(temporary);
		return error_set_errno(err, -code, "cannot write '%s'", path);
	}
	return 0;
}

int files_append(const char *path, const void *data, size_t size, struct error *err)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return error_set_errno(err, errno, "cannot open '%s' for appending", path);
	const int code = write_sync_close(fd, data, size);
	return code ? error_set_errno(err, -code, "cannot append to '%s'", path) : 0;
}

int files_lock(int fd, const char *folder)
{
	int code;
	do
		code = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;
	while (code == -EINTR);
	if (code == -EWOULDBLOCK)
		return -EBUSY;
	if (code)
		log_warn("'%s' cannot be locked (%s): make sure that no other mlbench writes there",
			folder, strerror(-code));
	return 0;
}

static int make_one_folder(const char *path, struct error *err)
{
	if (mkdir(path, 0777) == 0)
		return 0;
	const int saved = errno;
	struct stat st;
	if (saved == EEXIST && stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return 0;
		return error_set(err, -ENOTDIR, "'%s' is there and is not a folder", path);
	}
	return error_set_errno(err, saved, "cannot create folder '%s'", path);
}

int files_make_folder(const char *path, struct error *err)
{
	char *copy = strdup(path);
	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	int code = 0;
	for (char *at = copy + 1; *copy && *at && !code; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		code = make_one_folder(copy, err);
		*at = '/';
	}
	if (!code)
		code = make_one_folder(copy, err);
	free(copy);
	return code;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

int files_remove_tree(const char *path, struct error *err)
{
	if (nftw(path, remove_entry, TREE_FILES_OPEN, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0 &&
		errno != ENOENT)
		return error_set_errno(err, errno, "cannot remove '%s'", path);
	return 0;
}

char *files_join(const char *folder, const char *name)
{
	const size_t length = strlen(folder);
	const bool slash = length > 0 && folder[length - 1] != '/';
	const size_t room = length + (slash ? 1U : 0U) + strlen(name) + 1;
	char *path = malloc(room);
	if (path)
		(void)snprintf(path, room, "%s%s%s", folder, slash ? "/" : "", name);
	return path;
}

int files_first_line(const char *path, char *out, size_t room)
{
	out[0] = '\0';
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	const ssize_t n = read(fd, out, room - 1);
	const int code = n < 0 ? -errno : 0;
	(void)close(fd);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return code;
}

int files_number(const char *path, uint64_t *value)
{
	char line[64];
	const int code = files_first_line(path, line, sizeof line);
	if (code)
		return code;
	char *end;
	errno = 0;
	const unsigned long long number = strtoull(line, &end, 10);
	if (errno || end == line)
		return -EINVAL;
	*value = number;
	return 0;
}
