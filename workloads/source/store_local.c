/* The local store: a folder of a mounted file system. */
#include "workloads/dataset/storage.h"
#include "workloads/source/residency.h"
#include "workloads/source/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int local_open(struct store *store, struct error *err)
{
	store->calls = &storage_system;
	store->root_fd = open(store->address, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return store->root_fd >= 0
		       ? 0
		       : error_set_errno(err, errno, "cannot open folder '%s'", store->address);
}

static void local_close(struct store *store)
{
	(void)close(store->root_fd);
}

static enum store_kind local_kind(mode_t mode)
{
	return S_ISREG(mode) ? STORE_FILE : S_ISDIR(mode) ? STORE_FOLDER : STORE_OTHER;
}

/* The kind that a listing says; links are followed, so they are to be asked. */
static enum store_kind local_kind_listed(unsigned char type)
{
	switch (type) {
	case DT_REG:
		return STORE_FILE;
	case DT_DIR:
		return STORE_FOLDER;
	case DT_LNK:
	case DT_UNKNOWN:
		return STORE_UNKNOWN;
	default:
		return STORE_OTHER;
	}
}

static int local_visit_all(struct store *store, DIR *entries, const struct store_visit *visit)
{
	for (;;) {
		errno = 0;
		const struct dirent *const entry = store->calls->readdir(entries);
		if (!entry)
			return -errno;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		const int code = visit->name(
			visit->context, entry->d_name, local_kind_listed(entry->d_type));
		if (code)
			return code;
	}
}

static int local_visit_folder(struct store *store, int fd, const struct store_visit *visit)
{
	struct statx st;
	if (!visit->folder)
		return 0;
	if (store->calls->statx(fd, "", AT_EMPTY_PATH, STATX_INO, &st) != 0)
		return -errno;
	const struct store_stat what = {.kind = STORE_FOLDER,
		.device = makedev(st.stx_dev_major, st.stx_dev_minor),
		.inode = st.stx_ino};
	return visit->folder(visit->context, &what);
}

static int local_list(struct store *store, const char *folder, const struct store_visit *visit)
{
	const int fd = store->calls->openat(store->root_fd, *folder ? folder : ".",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	int code = local_visit_folder(store, fd, visit);
	DIR *const entries = code ? NULL : fdopendir(fd);
	if (!code && !entries)
		code = -errno;
	if (!entries) {
		(void)store->calls->close(fd);
		return code;
	}
	code = local_visit_all(store, entries, visit);
	(void)closedir(entries);
	return code;
}

static int local_stat(
	struct store *store, const char *path, const union store_file *file, struct store_stat *out)
{
	struct stat st;
	if ((file ? fstat(file->fd, &st) : fstatat(store->root_fd, path, &st, 0)) != 0)
		return -errno;
	*out = (struct store_stat){.kind = local_kind(st.st_mode),
		.bytes = st.st_size > 0 ? (uint64_t)st.st_size : 0,
		.modified_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec,
		.device = st.st_dev,
		.inode = st.st_ino};
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
