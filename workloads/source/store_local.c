/* The local store: a folder of a mounted file system. */
#include "workloads/source/residency.h"
#include "workloads/source/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int local_open(struct store *store, struct error *err)
{
	store->root_fd = open(store->address, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return store->root_fd >= 0
		       ? 0
		       : error_set_errno(err, errno, "cannot open folder '%s'", store->address);
}

static void local_close(struct store *store)
{
	(void)close(store->root_fd);
}

static void local_fill(const struct stat *st, struct store_stat *out)
{
	*out = (struct store_stat){.bytes = st->st_size > 0 ? (uint64_t)st->st_size : 0,
		.folder = S_ISDIR(st->st_mode)};
}

/* Names that vanish meanwhile, and links that lead nowhere, are passed over. */
static int local_visit_all(DIR *entries, store_visit *visit, void *context)
{
	for (;;) {
		errno = 0;
		const struct dirent *const entry = readdir(entries);
		if (!entry)
			return -errno;
		struct stat st;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			fstatat(dirfd(entries), entry->d_name, &st, 0) != 0)
			continue;
		struct store_stat what;
		local_fill(&st, &what);
		const int code = visit(context, entry->d_name, &what);
		if (code)
			return code;
	}
}

static int local_list(struct store *store, const char *folder, store_visit *visit, void *context)
{
	const int fd = openat(store->root_fd, *folder ? folder : ".",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	DIR *const entries = fdopendir(fd);
	if (!entries) {
		const int code = -errno;
		(void)close(fd);
		return code;
	}
	const int code = local_visit_all(entries, visit, context);
	(void)closedir(entries);
	return code;
}

static int local_stat(
	struct store *store, const char *path, const union store_file *file, struct store_stat *out)
{
	struct stat st;
	if ((file ? fstat(file->fd, &st) : fstatat(store->root_fd, path, &st, 0)) != 0)
		return -errno;
	local_fill(&st, out);
	return 0;
}

static int local_file_open(
	struct store *store, const char *path, bool direct, union store_file *out)
{
	out->fd = openat(store->root_fd, path, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
	return out->fd >= 0 ? 0 : -errno;
}

static ssize_t local_read(
	struct store *store, union store_file file, uint64_t offset, void *buffer, size_t size)
{
	(void)store;
	const ssize_t n = pread(file.fd, buffer, size, (off_t)offset);
	return n >= 0 ? n : -errno;
}

static void local_file_close(struct store *store, union store_file file)
{
	(void)store;
	(void)close(file.fd);
}

static int local_evict(struct store *store, const char *path, bool flush)
{
	union store_file file;
	const int code = local_file_open(store, path, false, &file);
	if (code)
		return code;
	residency_drop(file.fd, flush);
	local_file_close(store, file);
	return 0;
}

static const char *local_describe(const struct store *store, char *out, size_t room)
{
	(void)snprintf(out, room, "the folder '%s'", store->address);
	return out;
}

const struct store_ops store_local = {
	.name = "local",
	.summary = "a folder of a mounted file system",
	.local = true,
	.size = sizeof(struct store),
	.open = local_open,
	.close = local_close,
	.list = local_list,
	.stat = local_stat,
	.file_open = local_file_open,
	.read = local_read,
	.file_close = local_file_close,
	.evict = local_evict,
	.describe = local_describe,
};
