/* Files and folders. */
#include "harness/base/files.h"

#include "harness/base/clock.h"
#include "harness/base/log.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	TREE_FILES_OPEN = 32,
	READ_STEP_BYTES = 65536,
	BESIDE_TRIES = 100,
	NEW_FOLDER_TRIES = 9999,
	PIPE_POLL_MS = 20,
	PIPE_STREAM_MS = 10 * 1000,
};
static const uint64_t PIPE_OPEN_NS = 3 * NS_PER_S;

/* What is read so far, and of a pipe whether somebody has it open for writing. */
struct reading {
	int fd;
	const char *path;
	char *bytes;
	size_t used, room;
	uint64_t begun_ns;
	bool has_writer, told;
};

/* Of a pipe or a terminal that gives nothing at the moment: waits a little for more, with a word about it after a second.
 * -EPIPE: nobody opened the pipe for writing in PIPE_OPEN_NS. */
static int wait_for_more(struct reading *r)
{
	struct pollfd ready = {.fd = r->fd, .events = POLLIN};
	const uint64_t waited_ns = clock_now_ns() - r->begun_ns;
	if (!r->has_writer && waited_ns > PIPE_OPEN_NS)
		return -EPIPE;
	if (r->has_writer && !r->told && waited_ns > NS_PER_S) {
		log_info("waiting for what is written to '%s'", r->path);
		r->told = true;
	}
	if (poll(&ready, 1, PIPE_POLL_MS) < 0)
		return -errno;
	r->has_writer = r->has_writer || (ready.revents & POLLHUP); /* it is gone already */
	return 0;
}

/* 1: there may be more, 0: the end. */
static int read_some(struct reading *r, bool pipe)
{
	const ssize_t n = read(r->fd, r->bytes + r->used, r->room - r->used);
	if (n > 0) {
		r->used += (size_t)n;
		r->has_writer = true;
		return 1;
	}
	const bool unopened = n == 0 && pipe && !r->has_writer;
	if (n == 0 && !unopened)
		return 0;
	if (n < 0 && errno != EAGAIN)
		return errno == EINTR ? 1 : -errno;
	r->has_writer = r->has_writer || n < 0;
	const int code = wait_for_more(r);
	return code ? code : 1;
}

static int grow_text(struct reading *r)
{
	if (r->used < r->room)
		return 0;
	const size_t room = r->room ? r->room * 2 : READ_STEP_BYTES;
	char *larger = realloc(r->bytes, room + 1);
	if (!larger)
		return -ENOMEM;
	r->bytes = larger;
	r->room = room;
	return 0;
}

/* Reads to the end; sizes of /proc files are not known beforehand. */
static int read_all(struct reading *r, size_t limit)
{
	struct stat st;
	const bool pipe = fstat(r->fd, &st) == 0 && S_ISFIFO(st.st_mode);
	int code;
	do {
		code = grow_text(r);
		code = code ? code : read_some(r, pipe);
		if (r->used > limit)
			code = -EOVERFLOW;
	} while (code > 0);
	return code;
}

int files_read(const char *path, size_t limit, char **data, size_t *size, struct error *err)
{
	/* To open a pipe that nobody writes to would wait without a word. */
	struct reading r = {.fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
		.path = path,
		.begun_ns = clock_now_ns()};
	if (r.fd < 0)
		return error_set_errno(err, errno, "cannot open '%s'", path);
	const int code = read_all(&r, limit);
	(void)close(r.fd);
	if (code) {
		free(r.bytes);
	} else {
		r.bytes[r.used] = '\0';
		*data = r.bytes;
		*size = r.used;
	}
	if (code == -EOVERFLOW)
		return error_set(err, code, "'%s' is larger than %zu bytes", path, limit);
	if (code == -EPIPE)
		return error_set(err, -EINVAL, "'%s' is a pipe that nobody writes to", path);
	if (code)
		return error_set_errno(err, -code, "cannot read '%s'", path);
	return 0;
}

static int files_await_pipe(int fd, const char *path, struct error *err)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	struct statfs fs;

	/* A pipe without a name has its writer already. */
	if (fstatfs(fd, &fs) == 0 && fs.f_type != PIPEFS_MAGIC &&
		poll(&ready, 1, PIPE_STREAM_MS) <= 0)
		return error_set(err, -EINVAL, "'%s' is a pipe that nobody writes to", path);
	return 0;
}

int files_open_stream(const char *path, struct error *err)
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int code = 0;

	if (fd < 0)
		return error_set_errno(err, errno, "cannot open '%s'", path);
	if (fstat(fd, &st) != 0)
		code = error_set_errno(err, errno, "cannot open '%s'", path);
	else if (S_ISDIR(st.st_mode))
		code = error_set(err, -EISDIR, "'%s' is a folder", path);
	else if (S_ISFIFO(st.st_mode))
		code = files_await_pipe(fd, path, err);
	if (!code && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) < 0)
		code = error_set_errno(err, errno, "cannot open '%s'", path);
	if (code)
		(void)close(fd);
	return code ? code : fd;
}

int files_write_all(int fd, const void *data, size_t size)
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
	int code = files_write_all(fd, data, size);
	if (!code && fdatasync(fd) != 0 && errno != EINVAL && errno != EROFS)
		code = -errno;
	if (close(fd) != 0 && !code)
		code = -errno;
	return code;
}

/* The name may be taken: by a process of this number on another node, or left by one that was killed. */
int files_create_beside(const char *path, char beside[FILES_PATH_BYTES], struct error *err)
{
	int fd = -1;
	for (int n = 0; n < BESIDE_TRIES && fd < 0; n++) {
		char number[16] = "";
		if (n > 0)
			(void)snprintf(number, sizeof number, "-%d", n);
		if (snprintf(beside, FILES_PATH_BYTES, "%s" FILES_BESIDE "%d%s", path,
			    (int)getpid(), number) >= FILES_PATH_BYTES)
			return error_set(err, -ENAMETOOLONG, "path too long: '%s'", path);
		fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd >= 0 ? fd : error_set_errno(err, errno, "cannot create '%s'", beside);
}

/* Whose it was, from PATH.tmp-PID or PATH.tmp-PID-N; 0: no file of ours. */
static pid_t maker_of(const char *name)
{
	const char *at = NULL;
	for (const char *next = name; (next = strstr(next, FILES_BESIDE)); at = next)
		next += sizeof FILES_BESIDE - 1;
	char *end = NULL;
	const long pid = at && isdigit((unsigned char)*at) ? strtol(at, &end, 10) : 0;
	if (pid > 0 && *end == '-' && isdigit((unsigned char)end[1]))
		(void)strtol(end + 1, &end, 10);
	return pid > 0 && pid <= INT32_MAX && *end == '\0' ? (pid_t)pid : 0;
}

void files_remove_left(const char *folder)
{
	DIR *dir = opendir(folder);
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		const pid_t maker = maker_of(entry->d_name);
		/* One of this number is an earlier process's, as in a container that was started again. */
		if (maker > 0 && (maker == getpid() || (kill(maker, 0) != 0 && errno == ESRCH)))
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		(void)closedir(dir);
}

int files_write_atomic(const char *path, const void *data, size_t size, struct error *err)
{
	char temporary[FILES_PATH_BYTES];
	const int fd = files_create_beside(path, temporary, err);
	if (fd < 0)
		return fd;
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

int files_make_new_folder(const char *folder, const char *name, char **path, struct error *err)
{
	const size_t room = strlen(folder) + strlen(name) + sizeof "/-9999";
	int code = files_make_folder(folder, err);
	*path = code ? NULL : malloc(room);
	if (!*path)
		return code ? code : error_set(err, -ENOMEM, "out of memory");
	(void)snprintf(*path, room, "%s/%s", folder, name);
	code = -EEXIST;
	for (int n = 1; code == -EEXIST && n <= NEW_FOLDER_TRIES; n++) {
		code = mkdir(*path, 0777) == 0 ? 0 : -errno;
		if (code == -EEXIST)
			(void)snprintf(*path, room, "%s/%s-%03d", folder, name, n);
	}
	if (code) {
		(void)error_set_errno(err, -code, "cannot create folder '%s'", *path);
		free(*path);
		*path = NULL;
	}
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

bool files_name_ends(const char *name, const char *ending)
{
	const size_t length = strlen(name);
	const size_t size = strlen(ending);
	return name[0] != '.' && length > size && strcasecmp(name + length - size, ending) == 0;
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

bool files_has_line(const char *path)
{
	char part[4096];
	bool has = false;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : 1;
	while (!has && n > 0) {
		n = read(fd, part, sizeof part);
		has = n > 0 && memchr(part, '\n', (size_t)n);
	}
	if (fd >= 0)
		(void)close(fd);
	return has;
}

int files_is_there(const char *path, struct error *err)
{
	if (access(path, F_OK) == 0)
		return 1;
	return errno == ENOENT || errno == ENOTDIR
		       ? 0
		       : error_set_errno(err, errno, "cannot look for '%s'", path);
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
