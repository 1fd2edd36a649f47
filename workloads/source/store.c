/* The table of stores, what is the same for all of them, and the local store: a folder of a mounted
 * file system. */
#include "workloads/source/store.h"

#include "harness/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const struct store_ops *const store_list[] = {
	&store_nfs, &store_local, /* takes any address: the last */
};

struct store_patience store_patience = {.timeout_ns = 30 * NS_PER_S};

bool store_repeats(ssize_t code)
{
	const atomic_bool *const stop = store_patience.stop;
	return code == -EINTR && !(stop && atomic_load_explicit(stop, memory_order_relaxed));
}

const struct store_ops *store_find(const char *address)
{
	const size_t last = sizeof store_list / sizeof *store_list - 1;
	for (size_t i = 0; i < last; i++)
		if (strncmp(address, store_list[i]->prefix, strlen(store_list[i]->prefix)) == 0)
			return store_list[i];
	return store_list[last];
}

int store_open(struct store **out, const char *address, struct error *err)
{
	*out = NULL;
	const struct store_ops *const ops = store_find(address);
	struct store *const store = calloc(1, ops->size);
	if (!store)
		return error_set(err, -ENOMEM, "out of memory for '%s'", address);
	*store = (struct store){.ops = ops, .address = address, .root_fd = -1};
	const int code = ops->open(store, err);
	if (code) {
		free(store);
		return code;
	}
	*out = store;
	return 0;
}

int store_read_exactly(
	struct store *store, union store_file file, uint64_t offset, void *to, size_t size)
{
	for (size_t got = 0; got < size;) {
		const ssize_t n = store->ops->read(
			store, file, offset + got, (uint8_t *)to + got, size - got);
		if (n < 0 && !store_repeats(n))
			return (int)n;
		if (n == 0)
			return -ENODATA;
		got += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store->ops->close(store);
	free(store);
}

uint64_t store_file_bytes(struct store *store, const char *path, const union store_file *file)
{
	struct store_stat what;
	return store->ops->stat(store, path, file, &what) == 0 ? what.bytes : 0;
}

/* ---- the local store ---------------------------------------------------------------------- */

const struct storage_calls storage_system = {
	.openat = openat,
	.readdir = readdir,
	.statx = statx,
	.pread = pread,
	.close = close,
};

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

struct store_stat store_stat_of(const struct statx *st)
{
	return (struct store_stat){
		.kind = S_ISREG(st->stx_mode)   ? STORE_FILE
			: S_ISDIR(st->stx_mode) ? STORE_FOLDER
						: STORE_OTHER,
		.bytes = st->stx_size,
		.modified_ns = st->stx_mtime.tv_sec * 1000000000LL + st->stx_mtime.tv_nsec,
		.device = makedev(st->stx_dev_major, st->stx_dev_minor),
		.inode = st->stx_ino,
	};
}

static int local_stat(
	struct store *store, const char *path, const union store_file *file, struct store_stat *out)
{
	struct statx st;
	if (store->calls->statx(file ? file->fd : store->root_fd, file ? "" : path,
		    file ? AT_EMPTY_PATH : 0, STORE_STATX_MASK, &st) != 0)
		return -errno;
	*out = store_stat_of(&st);
	return 0;
}

int store_local_link(struct store *store, const char *path)
{
	struct statx st;
	return store->calls->statx(store->root_fd, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st) == 0
		       ? 0
		       : -errno;
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
			visit->context, entry->d_name, local_kind_listed(entry->d_type), NULL);
		if (code)
			return code;
	}
}

static int local_list(struct store *store, const char *folder, const struct store_visit *visit)
{
	const int fd = store->calls->openat(store->root_fd, *folder ? folder : ".",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	const union store_file file = {.fd = fd};
	struct store_stat what;
	if (fd < 0)
		return -errno;
	int code = visit->folder ? local_stat(store, folder, &file, &what) : 0;
	if (!code && visit->folder)
		code = visit->folder(visit->context, &what);
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

static int local_file_open(
	struct store *store, const char *path, bool direct, union store_file *out)
{
	out->fd = store->calls->openat(
		store->root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (direct ? O_DIRECT : 0));
	return out->fd >= 0 ? 0 : -errno;
}

static ssize_t local_read(
	struct store *store, union store_file file, uint64_t offset, void *buffer, size_t size)
{
	const ssize_t n = store->calls->pread(file.fd, buffer, size, (off_t)offset);
	return n >= 0 ? n : -errno;
}

static void local_file_close(struct store *store, union store_file file)
{
	(void)store->calls->close(file.fd);
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
	.describe = local_describe,
};
