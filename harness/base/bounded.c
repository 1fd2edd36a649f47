/* A process for each piece of work: started, listened to, and ended in time. */
#include "harness/base/bounded.h"

#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LISTEN_MS = 100,
	LATE_MOST = 64, /* pieces that are read after the time: what a pipe holds, and more */
	KILL_MS = 1000, /* for a killed one to be gone; then it is abandoned */
	BYTES_MAX = 1 << 20,
};

/* How long between looks for its end: most are over at once. */
static const uint64_t LOOK_FIRST_NS = 100 * NS_PER_US, LOOK_MOST_NS = 5 * NS_PER_MS;

int bounded_start(struct bounded_process *process, bounded_work *work, void *context)
{
	int ends[2];
	*process = (struct bounded_process){.fd = -1, .user_s = (double)NAN};
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	const pid_t parent = getpid();
	process->pid = fork();
	if (process->pid == 0) {
		/* Its own group, so that what it starts ends with it. */
		(void)setpgid(0, 0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
		(void)close(ends[0]);
		log_hush_interrupted();
		const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null >= 0)
			(void)dup2(null, STDOUT_FILENO);
		work(context, ends[1]);
		_exit(EXIT_SUCCESS);
	}
	const int saved = errno;
	(void)close(ends[1]);
	if (process->pid < 0) {
		(void)close(ends[0]);
		return -saved;
	}
	(void)setpgid(process->pid, process->pid);
	process->fd = ends[0];
	return 0;
}

bool bounded_wait(struct bounded_process *process, unsigned ms, int *status)
{
	const uint64_t until = clock_now_ns() + ms * NS_PER_MS;
	uint64_t look_ns = LOOK_FIRST_NS;
	for (;;) {
		struct rusage used;
		const pid_t ended = wait4(process->pid, status, WNOHANG, &used);
		if (ended == process->pid) {
			process->user_s =
				(double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec;
			return true;
		}
		if (ended < 0 && errno != EINTR)
			return true;
		if (clock_now_ns() >= until)
			return false;
		clock_sleep_until_ns(clock_now_ns() + look_ns);
		look_ns = 2 * look_ns < LOOK_MOST_NS ? 2 * look_ns : LOOK_MOST_NS;
	}
}

bool bounded_end(struct bounded_process *process, int *status)
{
	(void)kill(-process->pid, SIGKILL);
	return bounded_wait(process, KILL_MS, status);
}

int bounded_listen(const struct bounded_process *process, uint64_t until_ns,
	const atomic_bool *stop, bounded_take *take, void *context)
{
	char bytes[1 << 14];
	for (unsigned late = 0;;) {
		if (stop && atomic_load(stop))
			return -EINTR;
		/* What was said in time is still heard, if this process was stopped (Ctrl-Z) meanwhile. */
		late += until_ns && clock_now_ns() >= until_ns;
		struct pollfd ready = {.fd = process->fd, .events = POLLIN};
		const int events = poll(&ready, 1, late > 0 ? 0 : LISTEN_MS);
		if (late > LATE_MOST || (late > 0 && events == 0))
			return -ETIMEDOUT;
		if (events <= 0)
			continue;
		const ssize_t got = read(process->fd, bytes, sizeof bytes);
		if (got == 0)
			return 0;
		if (got > 0)
			take(context, bytes, (size_t)got);
		else if (errno != EINTR && errno != EAGAIN)
			return 0;
	}
}

static void bounded_take_text(void *context, const char *bytes, size_t size)
{
	struct buffer *buffer = context;
	if (buffer->size + size <= BYTES_MAX)
		buffer_add(buffer, bytes, size);
}

/* Of a process that was listened to with that result. */
static int bounded_finish(struct bounded_process *process, int code)
{
	int status = 0;
	(void)close(process->fd);
	const bool ended =
		(!code && bounded_wait(process, KILL_MS, &status)) || bounded_end(process, &status);
	const bool well = ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return code || well ? code : -EIO;
}

int run_bounded(
	bounded_work *work, void *context, uint64_t bound_ns, const atomic_bool *stop, char **out)
{
	struct bounded_process process;
	struct buffer text = {0};
	*out = NULL;
	int code = bounded_start(&process, work, context);
	if (code)
		return code;
	buffer_text(&text, "");
	code = bounded_listen(&process, clock_now_ns() + bound_ns, stop, bounded_take_text, &text);
	code = bounded_finish(&process, code);
	if (!code && text.failed)
		code = -EIO;
	if (code)
		buffer_release(&text);
	else
		*out = text.data;
	return code;
}

/* --- paths ------------------------------------------------------------------------------------ */

struct path_questions {
	const char *const *paths;
	size_t count;
	size_t answered; /* of the parent: how many the process is through with, ... */
	bool served;     /* ... and whether one of them was PATH_SERVED */
};

static const char PATH_SERVED = 's';

static bool path_is_asked(const char *path)
{
	return path && *path && !strstr(path, "://");
}

/* File systems that wait for a server, or for a process, on this node or another. */
static bool fs_is_served(const struct statfs *fs)
{
	static const unsigned types[] = {
		0x65735546,                         /* FUSE, virtiofs */
		0x6969,                             /* NFS */
		0x517B,                             /* SMB, and as cifs and smb3 */
		0xFF534D42, 0xFE534D42, 0x00C36400, /* Ceph */
		0x01021997,                         /* 9p */
		0x5346414F,                         /* AFS */
		0x0BD00BD0,                         /* Lustre */
		0x47504653,                         /* GPFS */
	};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if ((unsigned)fs->f_type == types[i])
			return true;
	return false;
}

/* Where the path is not there yet: of the folder that it would be in. */
static bool path_is_served(const char *path)
{
	char folder[PATH_MAX];
	struct statfs fs;
	(void)snprintf(folder, sizeof folder, "%s", path);
	int failed = statfs(folder, &fs);
	for (char *slash; failed && (slash = strrchr(folder, '/')) != NULL && slash > folder;) {
		*slash = '\0';
		failed = statfs(folder, &fs);
	}
	if (failed && *path != '/')
		failed = statfs(".", &fs);
	return !failed && fs_is_served(&fs);
}

bool path_touch(const char *path)
{
	struct stat status;
	char bytes[1024];
	const int missing = stat(path, &status);
	const bool served = path_is_served(path);
	const int fd = !missing && (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode))
			       ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
			       : -1;
	if (fd < 0)
		return served;
	/* What is wrong with it is met by its user, too. */
	if (S_ISDIR(status.st_mode))
		(void)syscall(SYS_getdents64, fd, bytes, sizeof bytes);
	else if (pread(fd, bytes, 1, 0) < 0)
		errno = 0;
	(void)close(fd);
	return served;
}

/* A process that is abandoned must not keep a pipe or a terminal open.  A file it may: closing one asks its server. */
static void stream_close(int fd)
{
	char link[64];
	char target[8];
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t size = readlink(link, target, sizeof target - 1);
	target[size > 0 ? size : 0] = '\0';
	if (target[0] != '/' || strncmp(target, "/dev/", 5) == 0)
		(void)close(fd);
}

static void paths_touch(void *context, int fd)
{
	const struct path_questions *questions = context;
	stream_close(STDIN_FILENO);
	stream_close(STDERR_FILENO);
	for (size_t i = 0; i < questions->count; i++) {
		const char *const path = questions->paths[i];
		const char answer = path_is_asked(path) && path_touch(path) ? PATH_SERVED : '\0';
		while (write(fd, &answer, 1) < 0 && errno == EINTR)
			;
	}
	(void)close(fd);
}

static void paths_count(void *context, const char *bytes, size_t size)
{
	struct path_questions *questions = context;
	questions->answered += size;
	questions->served = questions->served || memchr(bytes, PATH_SERVED, size);
}

/* Time is anew for each path that answers. */
static int paths_listen(
	struct bounded_process *process, struct path_questions *questions, const atomic_bool *stop)
{
	for (;;) {
		const size_t before = questions->answered;
		const int code = bounded_listen(process, clock_now_ns() + PATH_ANSWER_S * NS_PER_S,
			stop, paths_count, questions);
		if (code != -ETIMEDOUT || questions->answered == before)
			return code;
	}
}

int path_refuse_silent(const char *path, unsigned seconds, struct error *err)
{
	return error_set(err, -ETIMEDOUT,
		"'%.300s' does not answer: its file system said nothing for %u s. Is its server up, and its mount not stale?",
		path, seconds);
}

int paths_answer_and_tell(const char *const *paths, size_t count, const atomic_bool *stop,
	bool *served, struct error *err)
{
	struct path_questions questions = {.paths = paths, .count = count};
	struct bounded_process process;
	size_t asked = 0;
	for (size_t i = 0; i < count; i++)
		asked += path_is_asked(paths[i]);
	/* Where no process can be had, its user meets that, or needs none. */
	if (asked == 0 || bounded_start(&process, paths_touch, &questions))
		return 0;
	const int code = bounded_finish(&process, paths_listen(&process, &questions, stop));
	*served = *served || questions.served;
	if (code == -EINTR)
		return error_set(err, code, "interrupted");
	if (code != -ETIMEDOUT || questions.answered >= count)
		return 0;
	return path_refuse_silent(paths[questions.answered], PATH_ANSWER_S, err);
}

int paths_answer(const char *const *paths, size_t count, const atomic_bool *stop, struct error *err)
{
	bool served = false;
	return paths_answer_and_tell(paths, count, stop, &served, err);
}

int path_answers(const char *path, const atomic_bool *stop, struct error *err)
{
	return paths_answer(&path, 1, stop, err);
}
