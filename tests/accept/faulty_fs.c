/* faulty_fs FOLDER MOUNT KIND BLOCK: a folder once more, through a file system that treats one block of 4 KiB of every file
 * as broken storage does, and all others well:
 *
 *	bits       one bit of it is another when it is read
 *	stale      only its first write arrives
 *	torn       of its later writes only the first half arrives
 *	misplaced  its later writes go to the block after it
 *	missing    it reads as zeros
 *	eio        it cannot be read
 *	full       no file grows beyond it (ENOSPC)
 *	hang       its first write never ends
 *	hang_later its second one never does
 *	none       nothing
 *
 * Stays in the foreground until it is unmounted.  For tests/accept/faulty_storage.sh. */
#define _GNU_SOURCE /* O_DIRECT */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { BLOCK = 4096, FILES_MOST = 64, PATH_MOST = 4096 };

static const char *folder, *kind;
static off_t broken;             /* its first byte */
static bool written[FILES_MOST]; /* by descriptor: the block was written before */

static bool is(const char *name)
{
	return strcmp(kind, name) == 0;
}

static const char *below(const char *path, char out[PATH_MOST])
{
	(void)snprintf(out, PATH_MOST, "%s%s", folder, path);
	return out;
}

static int result(int code)
{
	return code < 0 ? -errno : 0;
}

static int fs_getattr(const char *path, struct stat *out, struct fuse_file_info *file)
{
	char full[PATH_MOST];
	(void)file;
	return result(lstat(below(path, full), out));
}

static int fs_mkdir(const char *path, mode_t mode)
{
	char full[PATH_MOST];
	return result(mkdir(below(path, full), mode));
}

static int fs_unlink(const char *path)
{
	char full[PATH_MOST];
	return result(unlink(below(path, full)));
}

static int fs_rmdir(const char *path)
{
	char full[PATH_MOST];
	return result(rmdir(below(path, full)));
}

static int fs_statfs(const char *path, struct statvfs *out)
{
	char full[PATH_MOST];
	return result(statvfs(below(path, full), out));
}

static int fs_open_flags(const char *path, int flags, mode_t mode, struct fuse_file_info *file)
{
	char full[PATH_MOST];
	const int fd = open(below(path, full), (flags & ~(O_DIRECT | O_ACCMODE)) | O_RDWR, mode);
	if (fd < 0)
		return -errno;
	file->fh = (uint64_t)fd;
	file->direct_io = 1;
	return 0;
}

static int fs_open(const char *path, struct fuse_file_info *file)
{
	return fs_open_flags(path, file->flags, 0, file);
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
	const int code = fs_open_flags(path, file->flags | O_CREAT, mode, file);
	if (code == 0 && file->fh < FILES_MOST)
		written[file->fh] = false;
	return code;
}

static int fs_release(const char *path, struct fuse_file_info *file)
{
	(void)path;
	(void)close((int)file->fh);
	return 0;
}

static int fs_fsync(const char *path, int data_only, struct fuse_file_info *file)
{
	(void)path;
	(void)data_only;
	return result(fsync((int)file->fh));
}

static int fs_read(
	const char *path, char *bytes, size_t size, off_t offset, struct fuse_file_info *file)
{
	(void)path;
	const ssize_t n = pread((int)file->fh, bytes, size, offset);
	if (n < 0)
		return -errno;
	if (broken < offset || broken + BLOCK > offset + n)
		return (int)n;
	if (is("eio"))
		return -EIO;
	if (is("bits"))
		bytes[broken - offset + 1000] ^= 0x10;
	if (is("missing"))
		memset(bytes + (broken - offset), 0, BLOCK);
	return (int)n;
}

/* Whether a later write of the broken block is another one's. */
static bool write_broken(int fd, const char *bytes)
{
	if (is("torn"))
		return pwrite(fd, bytes, BLOCK / 2, broken) == BLOCK / 2;
	if (is("misplaced"))
		return pwrite(fd, bytes, BLOCK, broken + BLOCK) == BLOCK;
	return is("stale");
}

static void hang(void)
{
	for (;;)
		(void)pause();
}

static int fs_write(
	const char *path, const char *bytes, size_t size, off_t offset, struct fuse_file_info *file)
{
	const int fd = (int)file->fh;
	const bool hit = broken >= offset && broken + BLOCK <= offset + (off_t)size;
	(void)path;
	if (is("full") && offset + (off_t)size > broken)
		return -ENOSPC;
	if (is("hang") && hit)
		hang();
	char kept[BLOCK];
	const bool later =
		hit && fd < FILES_MOST && written[fd] && pread(fd, kept, BLOCK, broken) == BLOCK;
	if (is("hang_later") && later)
		hang();
	const ssize_t n = pwrite(fd, bytes, size, offset);
	if (hit && fd < FILES_MOST)
		written[fd] = true;
	if (later && (is("torn") || is("misplaced") || is("stale"))) {
		if (pwrite(fd, kept, BLOCK, broken) != BLOCK ||
			!write_broken(fd, bytes + (broken - offset)))
			return -EIO;
	}
	return n < 0 ? -errno : (int)n;
}

static int fs_readdir(const char *path, void *out, fuse_fill_dir_t fill, off_t offset,
	struct fuse_file_info *file, enum fuse_readdir_flags flags)
{
	(void)path;
	(void)offset;
	(void)file;
	(void)flags;
	(void)fill(out, ".", NULL, 0, 0);
	(void)fill(out, "..", NULL, 0, 0);
	return 0;
}

static const struct fuse_operations operations = {
	.getattr = fs_getattr,
	.mkdir = fs_mkdir,
	.unlink = fs_unlink,
	.rmdir = fs_rmdir,
	.statfs = fs_statfs,
	.open = fs_open,
	.create = fs_create,
	.release = fs_release,
	.fsync = fs_fsync,
	.read = fs_read,
	.write = fs_write,
	.readdir = fs_readdir,
};

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	folder = argv[1];
	kind = argv[3];
	broken = (off_t)strtoll(argv[4], NULL, 10) * BLOCK;
	/* One thread: the order of writes is that of the requests. */
	char *arguments[] = {argv[0], "-f", "-s", "-o", "attr_timeout=0", argv[2], NULL};
	return fuse_main(6, arguments, &operations, NULL);
}
