/* The protocol of checkpoint_file.h.  Everything that may fail before the rename leaves the checkpoint before in its place;
 * what fails after it is told as what it is: a checkpoint that may not survive a crash. */
#include "workloads/checkpoint/checkpoint_file.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "workloads/source/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Separates the bytes from other uses of the seed. */
#define CHECKPOINT_STREAM 0x636865636b70ULL
/* How a file of ours begins. */
#define CHECKPOINT_MAGIC 0x6b636863626c6dULL

enum {
	CHUNK_OF_ALL =
		CHECKPOINT_DEPTH, /* the bytes that all chunks share; those before it are written from */
	CHUNK_READ_BACK,
	CHECKPOINT_CHUNKS,
	PATH_MODE = 0644,
	PATH_BYTES = 512,
};

/* At the head of each block. */
struct checkpoint_stamp {
	uint64_t magic, seed, step, block;
};

struct checkpoint_ring {
	struct io_uring ring;
};

/* --- the kernel -------------------------------------------------------------------------------- */

static int checkpoint_kernel_open(const char *path, int flags, mode_t mode)
{
	const int fd = open(path, flags | O_CLOEXEC, mode);
	return fd < 0 ? -errno : fd;
}

static int checkpoint_kernel_wrote(int result, uint64_t offset)
{
	(void)offset;
	return result;
}

static int checkpoint_kernel_sync(int fd)
{
	return fsync(fd) ? -errno : 0;
}

static int checkpoint_kernel_rename(const char *from, const char *to)
{
	return rename(from, to) ? -errno : 0;
}

static int checkpoint_kernel_unlink(const char *path)
{
	return unlink(path) ? -errno : 0;
}

const struct checkpoint_calls checkpoint_kernel = {
	.open = checkpoint_kernel_open,
	.wrote = checkpoint_kernel_wrote,
	.sync = checkpoint_kernel_sync,
	.rename = checkpoint_kernel_rename,
	.unlink = checkpoint_kernel_unlink,
};

static int checkpoint_fail(
	const struct checkpoint_file *f, int code, const char *what, struct error *err)
{
	char size[UNITS_BYTES];
	if (code == -ENOSPC || code == -EDQUOT)
		return error_set(err, code,
			"the checkpoint of %s does not fit on the disk of %s: %s (%s); two of them must fit at once",
			units_format_size((double)f->bytes, size), f->folder, strerror(-code),
			what);
	return error_set(err, code, "cannot write a checkpoint in %s: %s: %s", f->folder, what,
		strerror(-code));
}

/* --- contents ---------------------------------------------------------------------------------- */

static uint8_t *checkpoint_chunk(const struct checkpoint_file *f, unsigned i)
{
	return (uint8_t *)f->chunks.data + (size_t)i * CHECKPOINT_CHUNK;
}

static void checkpoint_stamp_blocks(
	const struct checkpoint_file *f, uint64_t step, uint64_t offset, uint8_t *to, uint64_t size)
{
	struct checkpoint_stamp stamp = {CHECKPOINT_MAGIC, f->seed, step, 0};
	for (uint64_t at = 0; at < size; at += CHECKPOINT_BLOCK) {
		stamp.block = (offset + at) / CHECKPOINT_BLOCK;
		memcpy(to + at, &stamp, sizeof stamp);
	}
}

void checkpoint_fill(
	const struct checkpoint_file *f, uint64_t step, uint64_t offset, void *to, uint64_t size)
{
	const uint8_t *const base = checkpoint_chunk(f, CHUNK_OF_ALL);
	uint8_t *const out = to;
	for (uint64_t at = 0; at < size;) {
		/* The random bytes repeat with every chunk of the file. */
		const uint64_t within = (offset + at) % CHECKPOINT_CHUNK;
		const uint64_t room = CHECKPOINT_CHUNK - within;
		const uint64_t n = size - at < room ? size - at : room;
		memcpy(out + at, base + within, n);
		at += n;
	}
	checkpoint_stamp_blocks(f, step, offset, out, size);
}

void checkpoint_stage(struct checkpoint_file *f, uint64_t step)
{
	checkpoint_fill(f, step, 0, f->staging.data, f->bytes);
}

/* --- memory ------------------------------------------------------------------------------------ */

static uint64_t checkpoint_whole_blocks(uint64_t bytes)
{
	const uint64_t blocks = (bytes + CHECKPOINT_BLOCK - 1) / CHECKPOINT_BLOCK;
	return (blocks > 0 ? blocks : 1) * CHECKPOINT_BLOCK;
}

uint64_t checkpoint_memory_bytes(uint64_t bytes, bool staged)
{
	return CHECKPOINT_CHUNKS * (uint64_t)CHECKPOINT_CHUNK +
	       (staged ? checkpoint_whole_blocks(bytes) : 0);
}

/* Buffers with the bytes of all in them, and how fast such a copy is. */
static int checkpoint_open_memory(struct checkpoint_file *f, bool staged, struct error *err)
{
	if (memory_map(&f->chunks, CHECKPOINT_CHUNKS * (size_t)CHECKPOINT_CHUNK, false) ||
		(staged && memory_map(&f->staging, f->bytes, true)))
		return error_set(err, -ENOMEM, "out of memory for checkpoints");
	struct rng rng;
	rng_init(&rng, f->seed, CHECKPOINT_STREAM);
	uint64_t *const words = (uint64_t *)(void *)checkpoint_chunk(f, CHUNK_OF_ALL);
	for (size_t i = 0; i < CHECKPOINT_CHUNK / sizeof *words; i++)
		words[i] = rng_next(&rng);
	uint64_t best_ns = UINT64_MAX;
	for (unsigned i = 0; i < CHECKPOINT_DEPTH; i++) {
		const uint64_t began_ns = clock_now_ns();
		checkpoint_fill(f, 0, (uint64_t)i * CHECKPOINT_CHUNK, checkpoint_chunk(f, i),
			CHECKPOINT_CHUNK);
		const uint64_t ns = clock_now_ns() - began_ns;
		best_ns = ns < best_ns ? ns : best_ns;
	}
	f->copy_bytes_per_s =
		(double)CHECKPOINT_CHUNK / (double)(best_ns > 0 ? best_ns : 1) * (double)NS_PER_S;
	return 0;
}

/* --- the folder -------------------------------------------------------------------------------- */

/* Whether what is there was written by us, and may be replaced.  *exists: there is one. */
static int checkpoint_check_before(const char *path, bool *exists, struct error *err)
{
	struct checkpoint_stamp stamp = {0};
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	*exists = fd >= 0 || errno != ENOENT;
	const ssize_t n = fd < 0 ? -1 : read(fd, &stamp, sizeof stamp);
	if (fd >= 0)
		(void)close(fd);
	if (!*exists || (n == (ssize_t)sizeof stamp && stamp.magic == CHECKPOINT_MAGIC))
		return 0;
	return error_set(err, -EEXIST,
		"%s is there and was not written by mlbench: choose another folder with checkpoint.path",
		path);
}

int checkpoint_look(const char *folder, uint64_t *free_bytes, struct error *err)
{
	char path[PATH_BYTES];
	struct statvfs fs;
	bool exists;
	(void)snprintf(path, sizeof path, "%s", folder);
	/* The nearest that is there. */
	while (statvfs(path, &fs)) {
		char *const slash = strrchr(path, '/');
		if (errno != ENOENT)
			return error_set_errno(
				err, errno, "checkpoints: cannot look at '%s'", path);
		if (!slash || slash == path)
			(void)snprintf(path, sizeof path, "%s", slash ? "/" : ".");
		else
			*slash = '\0';
	}
	*free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	struct stat st;
	const bool other = stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
	if (other || access(path, W_OK | X_OK))
		return error_set_errno(err, other ? ENOTDIR : errno,
			"checkpoints cannot be written in '%s' (checkpoint.path)", path);
	(void)snprintf(path, sizeof path, "%.450s/" CHECKPOINT_NAME, folder);
	return checkpoint_check_before(path, &exists, err);
}

/* A kill leaves the folder and what is in it; then it is ours still. */
static int checkpoint_open_folder(struct checkpoint_file *f, const char *folder, struct error *err)
{
	const size_t room = sizeof f->folder;
	if (strlen(folder) + sizeof "/" CHECKPOINT_NAME FILES_BESIDE + 16 > room)
		return error_set(err, -ENAMETOOLONG,
			"the path of checkpoints is longer than %zu bytes: %.80s…", room, folder);
	(void)snprintf(f->folder, room, "%s", folder);
	(void)snprintf(f->path, sizeof f->path, "%.450s/" CHECKPOINT_NAME, folder);
	(void)snprintf(
		f->beside, sizeof f->beside, "%.470s" FILES_BESIDE "%d", f->path, (int)getpid());
	f->made_folder = f->made_folder || access(folder, F_OK) != 0;
	int code = files_make_folder(folder, err);
	if (code)
		return error_prefix(err, code, "the folder of checkpoints");
	f->folder_fd = f->calls->open(folder, O_RDONLY | O_DIRECTORY, 0);
	if (f->folder_fd < 0)
		return checkpoint_fail(f, f->folder_fd, "open the folder", err);
	if (files_lock(f->folder_fd, folder) == -EBUSY)
		return error_set(err, -EBUSY,
			"another run writes its checkpoints in %s: choose another folder with checkpoint.path",
			folder);
	files_remove_left(folder);
	return checkpoint_check_before(f->path, &f->exists, err);
}

static int checkpoint_create(struct checkpoint_file *f, bool direct)
{
	return f->calls->open(f->beside,
		O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | (direct ? O_DIRECT : 0), PATH_MODE);
}

/* Some file systems refuse to open for direct writes, others to write. */
static int checkpoint_try_write(struct checkpoint_file *f, struct error *err)
{
	int code = -EINVAL;
	for (int direct = 1; direct >= 0 && code == -EINVAL; direct--) {
		const int fd = checkpoint_create(f, direct);
		code = fd;
		if (fd < 0)
			continue;
		const ssize_t n = pwrite(fd, checkpoint_chunk(f, 0), CHECKPOINT_BLOCK, 0);
		code = f->calls->wrote(n < 0 ? -errno : (int)n, 0);
		(void)close(fd);
		(void)f->calls->unlink(f->beside);
		f->direct = direct;
	}
	if (code < 0)
		return checkpoint_fail(f, code, "try a write", err);
	return 0;
}

static void checkpoint_open_ring(struct checkpoint_file *f)
{
	struct checkpoint_ring *const ring = malloc(sizeof *ring);
	const int code = ring ? io_uring_queue_init(CHECKPOINT_DEPTH, &ring->ring, 0) : -ENOMEM;
	f->has_ring = code == 0;
	if (code) {
		uring_explain(code, 0, f->why_no_ring, sizeof f->why_no_ring);
		free(ring);
		return;
	}
	f->ring = ring;
}

int checkpoint_file_open(
	struct checkpoint_file **out, const struct checkpoint_options *options, struct error *err)
{
	struct checkpoint_file *const f = calloc(1, sizeof *f);
	*out = NULL;
	if (!f)
		return error_set(err, -ENOMEM, "out of memory for checkpoints");
	f->calls = options->calls ? options->calls : &checkpoint_kernel;
	f->bytes = checkpoint_whole_blocks(options->bytes);
	f->seed = options->seed;
	f->verify = options->verify;
	f->made_folder = options->own_folder;
	f->folder_fd = -1;
	int code = checkpoint_open_folder(f, options->folder, err);
	if (!code)
		code = checkpoint_open_memory(f, options->staged, err);
	if (!code)
		code = checkpoint_try_write(f, err);
	if (code) {
		checkpoint_file_close(f, true);
		return code;
	}
	checkpoint_open_ring(f);
	*out = f;
	return 0;
}

void checkpoint_file_close(struct checkpoint_file *f, bool keep)
{
	if (!f)
		return;
	if (f->ring) {
		io_uring_queue_exit(&f->ring->ring);
		free(f->ring);
	}
	if (!keep && f->exists)
		(void)f->calls->unlink(f->path);
	if (f->folder_fd >= 0)
		(void)close(f->folder_fd);
	/* Of others' files it is not empty, and stays. */
	if (f->made_folder && !(keep && f->exists))
		(void)rmdir(f->folder);
	memory_unmap(&f->chunks);
	memory_unmap(&f->staging);
	free(f);
}

/* --- writing ----------------------------------------------------------------------------------- */

/* A write on its way. */
struct checkpoint_write {
	uint64_t offset;
	const uint8_t *data;
	unsigned size, buffer;
};

struct checkpoint_writing {
	struct checkpoint_file *file;
	int fd;
	uint64_t step, next; /* next: offset that is not being written yet */
	unsigned in_flight;
	unsigned free_count, free_buffers[CHECKPOINT_DEPTH];
	struct checkpoint_write writes[CHECKPOINT_DEPTH]; /* by buffer */
	struct hash_pieces *hash;                         /* NULL: not verified */
};

/* The next piece of the file, in a buffer of its own or in the staging buffer. */
static void checkpoint_next_write(struct checkpoint_writing *w, struct checkpoint_write *out)
{
	struct checkpoint_file *const f = w->file;
	const uint64_t left = f->bytes - w->next;
	*out = (struct checkpoint_write){.offset = w->next,
		.size = (unsigned)(left < CHECKPOINT_CHUNK ? left : CHECKPOINT_CHUNK),
		.buffer = w->free_buffers[--w->free_count]};
	if (f->staging.data) {
		out->data = (const uint8_t *)f->staging.data + w->next;
	} else {
		/* The random bytes are there already. */
		uint8_t *const to = checkpoint_chunk(f, out->buffer);
		checkpoint_stamp_blocks(f, w->step, w->next, to, out->size);
		out->data = to;
	}
	if (w->hash)
		hash_add(w->hash, out->data, out->size);
	w->next += out->size;
}

/* There is an entry for each buffer. */
static int checkpoint_submit(struct checkpoint_writing *w, const struct checkpoint_write *write)
{
	struct io_uring_sqe *const sqe = io_uring_get_sqe(&w->file->ring->ring);
	if (!sqe)
		return -EBUSY;
	w->writes[write->buffer] = *write;
	io_uring_prep_write(sqe, w->fd, write->data, write->size, write->offset);
	io_uring_sqe_set_data64(sqe, write->buffer);
	w->in_flight++;
	return 0;
}

/* The rest of what the kernel wrote only a part of; 0 or -errno. */
static int checkpoint_complete(struct checkpoint_writing *w, unsigned buffer, int result)
{
	struct checkpoint_write write = w->writes[buffer];
	int n = w->file->calls->wrote(result, write.offset);
	for (;;) {
		if (n == 0)
			return -EIO;
		if (n < 0 && n != -EINTR && n != -EAGAIN)
			return n;
		const unsigned done = n > 0 ? (unsigned)n : 0;
		atomic_fetch_add_explicit(&w->file->moved, done, memory_order_relaxed);
		write.offset += done;
		write.data += done;
		write.size -= done < write.size ? done : write.size;
		if (write.size == 0)
			return 0;
		const ssize_t more = pwrite(w->fd, write.data, write.size, (off_t)write.offset);
		n = w->file->calls->wrote(more < 0 ? -errno : (int)more, write.offset);
	}
}

/* Waits for one that is in flight.  *broken: the ring itself failed. */
static int checkpoint_reap(struct checkpoint_writing *w, bool *broken)
{
	struct io_uring *const ring = &w->file->ring->ring;
	struct io_uring_cqe *cqe;
	int code;
	do
		code = io_uring_submit_and_wait(ring, 1);
	while (code == -EINTR);
	if (code >= 0)
		code = io_uring_peek_cqe(ring, &cqe);
	*broken = code < 0;
	if (code < 0)
		return code;
	const unsigned buffer = (unsigned)io_uring_cqe_get_data64(cqe);
	const int result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	w->in_flight--;
	w->free_buffers[w->free_count++] = buffer;
	return checkpoint_complete(w, buffer, result);
}

static int checkpoint_write_by_ring(struct checkpoint_writing *w, const atomic_bool *stop)
{
	const struct checkpoint_file *const f = w->file;
	int code = 0;
	bool broken = false;
	while (!broken && (w->in_flight > 0 || (!code && w->next < f->bytes))) {
		if (!code && stop && atomic_load_explicit(stop, memory_order_relaxed))
			code = -ECANCELED;
		while (!code && w->next < f->bytes && w->free_count > 0) {
			struct checkpoint_write write;
			checkpoint_next_write(w, &write);
			code = checkpoint_submit(w, &write);
		}
		if (w->in_flight == 0)
			break;
		/* After a failure, too, what is in flight must end: the kernel reads from its buffers. */
		const int ended = checkpoint_reap(w, &broken);
		code = code ? code : ended;
	}
	return code;
}

static int checkpoint_write_in_turn(struct checkpoint_writing *w, const atomic_bool *stop)
{
	int code = 0;
	while (!code && w->next < w->file->bytes) {
		struct checkpoint_write write;
		if (stop && atomic_load_explicit(stop, memory_order_relaxed))
			return -ECANCELED;
		checkpoint_next_write(w, &write);
		w->writes[write.buffer] = write;
		w->free_buffers[w->free_count++] = write.buffer;
		const ssize_t n = pwrite(w->fd, write.data, write.size, (off_t)write.offset);
		code = checkpoint_complete(w, write.buffer, n < 0 ? -errno : (int)n);
	}
	return code;
}

/* The checksum of what was written goes to *hash, with verify. */
static int checkpoint_write_all(struct checkpoint_file *f, int fd, uint64_t step,
	const atomic_bool *stop, uint64_t *hash, struct error *err)
{
	struct checkpoint_writing w = {.file = f, .fd = fd, .step = step};
	for (unsigned i = 0; i < CHECKPOINT_DEPTH; i++)
		w.free_buffers[w.free_count++] = i;
	w.hash = f->verify ? hash_begin(f->seed) : NULL;
	if (f->verify && !w.hash)
		return error_set(err, -ENOMEM, "out of memory for a checkpoint's checksum");
	/* A disk that is too full says so at once; where the file system cannot say, the writes will. */
	int code = fallocate(fd, 0, 0, (off_t)f->bytes) ? errno : 0;
	code = code == ENOSPC || code == EDQUOT || code == EFBIG ? -code : 0;
	if (!code)
		code = f->has_ring ? checkpoint_write_by_ring(&w, stop)
				   : checkpoint_write_in_turn(&w, stop);
	if (w.hash)
		*hash = hash_end(w.hash);
	if (code == -ECANCELED)
		return error_set(err, code, "the run ended while a checkpoint was being written");
	return code ? checkpoint_fail(f, code, "write", err) : 0;
}

/* --- reading back ------------------------------------------------------------------------------ */

/* From the disk, not from the page cache: past it, or after its pages were dropped. */
static int checkpoint_read_back(struct checkpoint_file *f, int fd, uint64_t wrote,
	const atomic_bool *stop, struct error *err)
{
	struct hash_pieces *const hash = hash_begin(f->seed);
	if (!hash)
		return error_set(err, -ENOMEM, "out of memory for a checkpoint's checksum");
	if (!f->direct)
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	uint8_t *const room = checkpoint_chunk(f, CHUNK_READ_BACK);
	int code = 0;
	for (uint64_t at = 0; !code && at < f->bytes;) {
		const uint64_t left = f->bytes - at;
		const ssize_t n = pread(
			fd, room, left < CHECKPOINT_CHUNK ? left : CHECKPOINT_CHUNK, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		code = n < 0 ? -errno : n == 0 ? -EIO : 0;
		if (stop && atomic_load_explicit(stop, memory_order_relaxed))
			code = -ECANCELED;
		if (code)
			break;
		hash_add(hash, room, (size_t)n);
		at += (uint64_t)n;
		atomic_fetch_add_explicit(&f->moved, (uint64_t)n, memory_order_relaxed);
	}
	const uint64_t read = hash_end(hash);
	if (code)
		return checkpoint_fail(f, code, "read it back", err);
	if (read != wrote)
		return error_set(err, -EBADMSG,
			"the checkpoint in %s is not what was written: its checksum is %016llx, that of what was written %016llx; it was thrown away",
			f->folder, (unsigned long long)read, (unsigned long long)wrote);
	return 0;
}

/* --- all of it --------------------------------------------------------------------------------- */

static uint64_t checkpoint_lap(uint64_t *since_ns)
{
	const uint64_t now_ns = clock_now_ns();
	const uint64_t took_ns = now_ns - *since_ns;
	*since_ns = now_ns;
	return took_ns;
}

/* The file itself, up to the moment when it may take its name. */
static int checkpoint_store_beside(struct checkpoint_file *f, int fd, uint64_t step,
	const atomic_bool *stop, struct checkpoint_times *times, struct error *err)
{
	uint64_t since_ns = clock_now_ns();
	uint64_t hash = 0;
	int code = checkpoint_write_all(f, fd, step, stop, &hash, err);
	times->write_ns = checkpoint_lap(&since_ns);
	if (!code) {
		code = f->calls->sync(fd);
		if (code)
			(void)checkpoint_fail(f, code, "fsync", err);
		times->sync_ns = checkpoint_lap(&since_ns);
	}
	if (!code && f->verify) {
		code = checkpoint_read_back(f, fd, hash, stop, err);
		times->verify_ns = checkpoint_lap(&since_ns);
	}
	return code;
}

int checkpoint_store(struct checkpoint_file *f, uint64_t step, const atomic_bool *stop,
	struct checkpoint_times *times, struct error *err)
{
	*times = (struct checkpoint_times){0};
	const int fd = checkpoint_create(f, f->direct);
	if (fd < 0)
		return checkpoint_fail(f, fd, "create the file", err);
	int code = checkpoint_store_beside(f, fd, step, stop, times, err);
	(void)close(fd);
	uint64_t since_ns = clock_now_ns();
	if (!code) {
		code = f->calls->rename(f->beside, f->path);
		if (code)
			(void)checkpoint_fail(f, code, "rename it into place", err);
	}
	if (code) {
		(void)f->calls->unlink(f->beside);
		return code;
	}
	f->exists = true;
	code = f->calls->sync(f->folder_fd);
	times->rename_ns = checkpoint_lap(&since_ns);
	if (code)
		return error_set(err, code,
			"the checkpoint in %s may not survive a crash: its bytes are on the disk, but fsync of the folder failed: %s",
			f->folder, strerror(-code));
	return 0;
}
