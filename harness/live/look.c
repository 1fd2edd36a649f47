/* Reading /proc.  A thread may end between two reads: whatever is missing is left out. */
#include "harness/live/look.h"

#include "harness/base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
	PATH_ROOM = 64,
	LOOK_THREADS = 1024,
	STILL_NS = 250000000,
	STILL_SHARE = 100, /* of it, that those take who only look now and then */
};

/* Where a call says which file it is on. */
enum call_file {
	CALL_NO_FILE,
	CALL_FD,   /* its first argument is an open file */
	CALL_PATH, /* ... a path */
	CALL_AT,   /* its first is an open folder, the second a path */
};

/* Calls in which a thread may be found for long. */
static const struct call {
	long number;
	const char *name;
	enum call_file file;
} calls[] = {
	{SYS_read, "read", CALL_FD},
	{SYS_write, "write", CALL_FD},
	{SYS_pread64, "pread64", CALL_FD},
	{SYS_pwrite64, "pwrite64", CALL_FD},
	{SYS_preadv, "preadv", CALL_FD},
	{SYS_pwritev, "pwritev", CALL_FD},
	{SYS_fsync, "fsync", CALL_FD},
	{SYS_fdatasync, "fdatasync", CALL_FD},
	{SYS_ftruncate, "ftruncate", CALL_FD},
	{SYS_fallocate, "fallocate", CALL_FD},
	{SYS_fadvise64, "fadvise64", CALL_FD},
	{SYS_fstatfs, "fstatfs", CALL_FD},
	{SYS_fstat, "fstat", CALL_FD},
	{SYS_getdents64, "getdents64", CALL_FD},
	{SYS_close, "close", CALL_FD},
	{SYS_ioctl, "ioctl", CALL_FD},
	{SYS_openat, "openat", CALL_AT},
	{SYS_newfstatat, "newfstatat", CALL_AT},
	{SYS_statx, "statx", CALL_AT},
	{SYS_faccessat, "faccessat", CALL_AT},
	{SYS_readlinkat, "readlinkat", CALL_AT},
	{SYS_mkdirat, "mkdirat", CALL_AT},
	{SYS_unlinkat, "unlinkat", CALL_AT},
	{SYS_renameat, "renameat", CALL_AT},
	{SYS_statfs, "statfs", CALL_PATH},
	{SYS_truncate, "truncate", CALL_PATH},
	{SYS_mmap, "mmap", CALL_NO_FILE},
	{SYS_munmap, "munmap", CALL_NO_FILE},
	{SYS_madvise, "madvise", CALL_NO_FILE},
	{SYS_futex, "futex", CALL_NO_FILE},
	{SYS_ppoll, "ppoll", CALL_NO_FILE},
	{SYS_nanosleep, "nanosleep", CALL_NO_FILE},
	{SYS_clock_nanosleep, "clock_nanosleep", CALL_NO_FILE},
	{SYS_sched_yield, "sched_yield", CALL_NO_FILE},
	{SYS_io_uring_enter, "io_uring_enter", CALL_NO_FILE}, /* on rings, which are no files */
	{SYS_wait4, "wait4", CALL_NO_FILE},
#ifdef SYS_open /* the calls that newer machines lack */
	{SYS_poll, "poll", CALL_NO_FILE},
	{SYS_epoll_wait, "epoll_wait", CALL_NO_FILE},
	{SYS_open, "open", CALL_PATH},
	{SYS_stat, "stat", CALL_PATH},
	{SYS_lstat, "lstat", CALL_PATH},
	{SYS_access, "access", CALL_PATH},
	{SYS_readlink, "readlink", CALL_PATH},
	{SYS_mkdir, "mkdir", CALL_PATH},
	{SYS_rmdir, "rmdir", CALL_PATH},
	{SYS_unlink, "unlink", CALL_PATH},
	{SYS_rename, "rename", CALL_PATH},
#endif
};

static void task_path(int32_t pid, int32_t tid, const char *name, char out[PATH_ROOM])
{
	(void)snprintf(out, PATH_ROOM, "/proc/%d/task/%d/%s", pid, tid, name);
}

/* "PID (NAME) S ...": the name may have any character. */
static bool parse_stat(const char *text, char *state, char name[LOOK_NAME_BYTES])
{
	const char *open = strchr(text, '(');
	const char *close = strrchr(text, ')');
	if (!open || !close || close < open || close[1] != ' ')
		return false;
	(void)snprintf(name, LOOK_NAME_BYTES, "%.*s", (int)(close - open - 1), open + 1);
	*state = close[2];
	return true;
}

static bool read_stat(const char *path, char *state, char name[LOOK_NAME_BYTES])
{
	char line[1024];
	return files_first_line(path, line, sizeof line) == 0 && parse_stat(line, state, name);
}

void look_at_process(int32_t pid, struct process_look *out)
{
	char path[PATH_ROOM];
	*out = (struct process_look){0};
	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	out->there = read_stat(path, &out->state, out->name);
	int32_t tids[1];
	out->threads = out->there ? (uint32_t)look_list_threads(pid, tids, 0) : 0;
}

static void look_refuse(struct thread_look *out, int code)
{
	if (code && code != -ENOENT && code != -ESRCH)
		(void)snprintf(out->unknown, sizeof out->unknown, "%s", strerror(-code));
}

static void read_place(int32_t pid, struct thread_look *out)
{
	char path[PATH_ROOM];
	task_path(pid, out->tid, "wchan", path);
	look_refuse(out, files_first_line(path, out->place, sizeof out->place));
	if (strcmp(out->place, "0") == 0)
		out->place[0] = '\0'; /* running, or the kernel hides it */
}

static void read_link(const char *path, char out[LOOK_FILE_BYTES])
{
	const ssize_t size = readlink(path, out, LOOK_FILE_BYTES - 1);
	out[size > 0 ? size : 0] = '\0';
}

/* Of a folder that a path may begin at. */
static void read_folder(int32_t pid, unsigned long fd, char out[LOOK_FILE_BYTES])
{
	char path[PATH_ROOM];
	if ((int)fd == AT_FDCWD)
		(void)snprintf(path, sizeof path, "/proc/%d/cwd", pid);
	else
		(void)snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, (int)fd);
	read_link(path, out);
}

/* A text in the memory of the process; cut where it does not fit.  In two pieces, since the second page may not be there. */
static void read_memory(int32_t pid, unsigned long address, char out[LOOK_FILE_BYTES])
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t first = page - address % page;
	const size_t most = LOOK_FILE_BYTES - 1;
	const size_t sizes[] = {first < most ? first : most, first < most ? most - first : 0};
	const struct iovec to = {.iov_base = out, .iov_len = most};
	const struct iovec from[] = {
		{.iov_base = (void *)address,
			.iov_len = sizes[0]},              // NOLINT(performance-no-int-to-ptr)
		{.iov_base = (void *)(address + sizes[0]), // NOLINT(performance-no-int-to-ptr)
			.iov_len = sizes[1]}};
	const ssize_t got = process_vm_readv(pid, &to, 1, from, sizes[1] > 0 ? 2 : 1, 0);
	out[got > 0 ? got : 0] = '\0';
}

/* arguments: the call's. */
static void read_call_file(
	int32_t pid, enum call_file kind, const unsigned long *arguments, char out[LOOK_FILE_BYTES])
{
	char path[LOOK_FILE_BYTES];
	const unsigned long at = kind == CALL_PATH ? (unsigned long)AT_FDCWD : arguments[0];
	read_folder(pid, at, out);
	if (kind == CALL_FD)
		return;
	read_memory(pid, arguments[kind == CALL_AT], path);
	if (path[0] == '/')
		out[0] = '\0';
	if (path[0] != '/' && out[0] != '/')
		return;
	const size_t folder = strlen(out);
	const size_t slash = folder > 0 && path[0] && folder + 1 < LOOK_FILE_BYTES;
	const size_t room = LOOK_FILE_BYTES - 1 - folder - slash;
	const size_t size = strnlen(path, room);
	memset(out + folder, '/', slash);
	memcpy(out + folder + slash, path, size);
	out[folder + slash + size] = '\0';
}

/* "running", or "NUMBER 0xARGUMENT ..." in hexadecimal; -1: the kernel holds it without a call, for a page. */
static void read_call(int32_t pid, struct thread_look *out)
{
	char path[PATH_ROOM];
	char line[256];
	char *end;
	unsigned long arguments[2];
	task_path(pid, out->tid, "syscall", path);
	const int code = files_first_line(path, line, sizeof line);
	look_refuse(out, code);
	const long number = strtol(line, &end, 10);
	if (code || end == line || number < 0)
		return;
	(void)snprintf(out->call, sizeof out->call, "system call %ld", number);
	for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
		arguments[i] = strtoul(end, &end, 16);
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		if (calls[i].number != number)
			continue;
		(void)snprintf(out->call, sizeof out->call, "%s", calls[i].name);
		if (calls[i].file != CALL_NO_FILE)
			read_call_file(pid, calls[i].file, arguments, out->file);
	}
}

void look_at_thread(int32_t pid, int32_t tid, struct thread_look *out)
{
	char path[PATH_ROOM];
	*out = (struct thread_look){.tid = tid};
	task_path(pid, tid, "stat", path);
	if (!read_stat(path, &out->state, out->name))
		return;
	read_place(pid, out);
	read_call(pid, out);
}

static int by_number(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a;
	const int32_t y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

size_t look_list_threads(int32_t pid, int32_t *tids, size_t room)
{
	char path[PATH_ROOM];
	(void)snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	size_t count = 0;
	for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		const int32_t tid = (int32_t)strtol(e->d_name, NULL, 10);
		if (tid <= 0)
			continue;
		if (count < room)
			tids[count] = tid;
		count++;
	}
	if (dir)
		(void)closedir(dir);
	if (room > 0)
		qsort(tids, count < room ? count : room, sizeof *tids, by_number);
	return count;
}

/* --- a process that stands still ---------------------------------------------------------------- */

struct activity {
	unsigned long long first_ns, others_ns; /* on a core so far */
	bool computes;                          /* some thread does, or would */
};

/* "NS_ON_CORE NS_WAITED SLICES" */
static unsigned long long ran_ns(int32_t pid, int32_t tid)
{
	char path[PATH_ROOM];
	char line[128];
	task_path(pid, tid, "schedstat", path);
	return files_first_line(path, line, sizeof line) == 0 ? strtoull(line, NULL, 10) : 0;
}

static void look_at_activity(int32_t pid, struct activity *out)
{
	int32_t tids[LOOK_THREADS];
	const size_t all = look_list_threads(pid, tids, LOOK_THREADS);
	const int32_t own = (int32_t)gettid();
	*out = (struct activity){.first_ns = ran_ns(pid, pid)};
	for (size_t i = 0; i < all && i < LOOK_THREADS; i++) {
		struct thread_look look = {.tid = tids[i]};
		char path[PATH_ROOM];
		task_path(pid, tids[i], "stat", path);
		if (tids[i] == own || !read_stat(path, &look.state, look.name))
			continue;
		out->computes = out->computes || look.state == 'R';
		if (tids[i] != pid)
			out->others_ns += ran_ns(pid, tids[i]);
	}
}

/* A thread in a futex waits for another of the process. */
static bool waits_for_kernel(const struct thread_look *look)
{
	return look->state == 'D' || look->file[0] ||
	       (look->call[0] && strcmp(look->call, "futex") != 0);
}

/* How much a thread has to say: one that the kernel holds, one in a call on a file, one that waits for a ring. */
static int rank_of(const struct thread_look *look)
{
	return look->state == 'D'                          ? 3
	       : look->file[0]                             ? 2
	       : strcmp(look->call, "io_uring_enter") == 0 ? 1
							   : 0;
}

static void find_waiting(int32_t pid, struct thread_look *out)
{
	int32_t tids[LOOK_THREADS];
	const size_t all = look_list_threads(pid, tids, LOOK_THREADS);
	int best = 0;
	look_at_thread(pid, pid, out);
	if (waits_for_kernel(out))
		return;
	for (size_t i = 0; i < all && i < LOOK_THREADS; i++) {
		struct thread_look look;
		look_at_thread(pid, tids[i], &look);
		if (tids[i] == (int32_t)gettid() || rank_of(&look) <= best)
			continue;
		best = rank_of(&look);
		*out = look;
	}
}

bool look_stands_still(int32_t pid, struct thread_look *waits)
{
	struct activity before;
	struct activity after;
	look_at_activity(pid, &before);
	(void)nanosleep(&(struct timespec){.tv_nsec = STILL_NS}, NULL);
	look_at_activity(pid, &after);
	if ((before.computes && after.computes) || after.first_ns != before.first_ns ||
		after.others_ns < before.others_ns ||
		after.others_ns - before.others_ns > STILL_NS / STILL_SHARE)
		return false;
	find_waiting(pid, waits);
	return true;
}

static const char *state_words(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "in uninterruptible sleep (D)";
	case 'T':
		return "stopped (T)";
	case 't':
		return "stopped by a debugger (t)";
	case 'Z':
		return "ended, not yet waited for (Z)";
	case 'X':
		return "ended";
	case 'I':
		return "idle";
	default:
		return "gone";
	}
}

/* Where it is in the kernel is of interest for one that sleeps. */
const char *look_words(const struct thread_look *look, char out[LOOK_WORDS_BYTES])
{
	size_t used = (size_t)snprintf(out, LOOK_WORDS_BYTES, "%s", state_words(look->state));
	const bool sleeps = look->state == 'S' || look->state == 'D';
	const char *where = look->call[0] ? look->call : look->place;
	if (sleeps && where[0])
		used += (size_t)snprintf(out + used, LOOK_WORDS_BYTES - used, " in %s", where);
	if (sleeps && look->file[0])
		used += (size_t)snprintf(
			out + used, LOOK_WORDS_BYTES - used, " of '%s'", look->file);
	/* The call is the thread's own; the place is what it waits for there. */
	if (look->state == 'D' && look->call[0] && look->place[0])
		used += (size_t)snprintf(
			out + used, LOOK_WORDS_BYTES - used, ", at %s", look->place);
	if (sleeps && !where[0] && look->unknown[0])
		(void)snprintf(out + used, LOOK_WORDS_BYTES - used, " (where: unknown, %s)",
			look->unknown);
	return out;
}
