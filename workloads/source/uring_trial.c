/* Finding out on the data set what the kernel does not tell of a ring: direct descriptors, the linked
 * chain on them, and whether submissions may wait. */
#include "workloads/source/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

enum { TRIAL_ENTRIES = 4, TRIAL_READ_BYTES = 64, STEPS = 3, UNSET = 1 };

enum { STEP_OPEN, STEP_READ, STEP_CLOSE };

struct trial {
	struct io_uring ring;
	int results[STEPS]; /* UNSET where no completion came */
	uint8_t buffer[TRIAL_READ_BYTES];
};

static int trial_open(struct trial *trial)
{
	*trial = (struct trial){.results = {UNSET, UNSET, UNSET}};
	const int code = io_uring_queue_init(TRIAL_ENTRIES, &trial->ring, 0);
	if (code)
		return code;
	const int empty = -1;
	const int registered = io_uring_register_files(&trial->ring, &empty, 1);
	if (registered)
		io_uring_queue_exit(&trial->ring);
	return registered;
}

/* Submits what is prepared and collects so many completions, for a second each at most. */
static void trial_run(struct trial *trial, unsigned completions)
{
	struct __kernel_timespec second = {.tv_sec = 1};
	for (unsigned seen = 0; seen < completions; seen++) {
		struct io_uring_cqe *cqe = NULL;
		const int code =
			io_uring_submit_and_wait_timeout(&trial->ring, &cqe, 1, &second, NULL);
		if (code < 0 || !cqe)
			return;
		trial->results[cqe->user_data] = cqe->res;
		io_uring_cqe_seen(&trial->ring, cqe);
	}
}

/* The queue of a fresh ring has room for every step. */
static bool prepare(struct trial *trial, int root_fd, bool chain)
{
	struct io_uring_sqe *const opening = io_uring_get_sqe(&trial->ring);
	struct io_uring_sqe *const reading = chain ? io_uring_get_sqe(&trial->ring) : NULL;
	struct io_uring_sqe *const closing = chain ? io_uring_get_sqe(&trial->ring) : NULL;
	if (!opening || (chain && (!reading || !closing)))
		return false;
	io_uring_prep_openat_direct(opening, root_fd, ".", O_RDONLY, 0, 0);
	opening->user_data = STEP_OPEN;
	if (!chain)
		return true;
	opening->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
	io_uring_prep_read(reading, 0, trial->buffer, TRIAL_READ_BYTES, 0);
	reading->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
	reading->user_data = STEP_READ;
	io_uring_prep_close_direct(closing, 0);
	closing->user_data = STEP_CLOSE;
	return true;
}

bool uring_direct_open_works(int root_fd)
{
	struct trial trial;
	if (trial_open(&trial))
		return false;
	if (prepare(&trial, root_fd, false))
		trial_run(&trial, 1);
	io_uring_queue_exit(&trial.ring);
	return trial.results[STEP_OPEN] == 0;
}

/* The read of a folder fails with EISDIR, but by that it has found the descriptor, and the close
 * shows that a hard link outlives a failure. */
bool uring_chain_works(int root_fd)
{
	struct trial trial;
	if (trial_open(&trial))
		return false;
	if ((trial.ring.features & IORING_FEAT_CQE_SKIP) && prepare(&trial, root_fd, true))
		trial_run(&trial, 2);
	io_uring_queue_exit(&trial.ring);
	return trial.results[STEP_OPEN] == UNSET && trial.results[STEP_READ] == -EISDIR &&
	       trial.results[STEP_CLOSE] == 0;
}

/* A ring first tries everything without waiting.  But of an open it asks that of the path alone: what
 * the file system then does, a round trip on FUSE or NFSv4, happens inside the submission.  So do reads
 * from a FUSE server that did not ask for asynchronous ones.  On a local file system the inode of a
 * cached path is in memory. */
bool uring_may_wait(int fd)
{
	static const uint32_t local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, OVERLAYFS_SUPER_MAGIC, SQUASHFS_MAGIC,
		EROFS_SUPER_MAGIC_V1, ISOFS_SUPER_MAGIC, EXFAT_SUPER_MAGIC, MSDOS_SUPER_MAGIC};
	struct statfs found;
	if (fstatfs(fd, &found) != 0)
		return true;
	for (size_t i = 0; i < sizeof local / sizeof *local; i++)
		if ((uint32_t)found.f_type == local[i])
			return false;
	return true;
}
