/* A process for each piece of work: started, listened to, and ended in time. */
#include "harness/base/bounded.h"

#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LISTEN_MS = 100,
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
	for (;;) {
		if (stop && atomic_load(stop))
			return -EINTR;
		if (until_ns && clock_now_ns() >= until_ns)
			return -ETIMEDOUT;
		struct pollfd ready = {.fd = process->fd, .events = POLLIN};
		const int events = poll(&ready, 1, LISTEN_MS);
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
	size_t answered; /* of the parent: how many the process is through with */
};

static bool path_is_asked(const char *path)
{
	return path && *path && !strstr(path, "://");
}

/* What the name, its folder and its first bytes need of whoever serves them. */
static void path_touch(const char *path)
{
	struct stat status;
	struct statvfs fs;
	char byte;
	if (stat(path, &status) != 0)
		return;
	(void)statvfs(path, &fs);
	if (S_ISDIR(status.st_mode)) {
		DIR *folder = opendir(path);
		if (folder) {
			(void)readdir(folder);
			(void)closedir(folder);
		}
	} else if (S_ISREG(status.st_mode)) {
		const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0) {
			if (pread(fd, &byte, 1, 0) < 0)
				errno = 0; /* its user meets the same */
			(void)close(fd);
		}
	}
}

static void paths_touch(void *context, int fd)
{
	const struct path_questions *questions = context;
	for (size_t i = 0; i < questions->count; i++) {
		if (path_is_asked(questions->paths[i]))
			path_touch(questions->paths[i]);
		while (write(fd, "", 1) < 0 && errno == EINTR)
			;
	}
	(void)close(fd);
}

static void paths_count(void *context, const char *bytes, size_t size)
{
	struct path_questions *questions = context;
	(void)bytes;
	questions->answered += size;
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

int paths_answer(const char *const *paths, size_t count, const atomic_bool *stop, struct error *err)
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
	if (code == -EINTR)
		return error_set(err, code, "interrupted");
	if (code != -ETIMEDOUT || questions.answered >= count)
		return 0;
	return error_set(err, code,
		"'%.300s' does not answer: its file system said nothing for %d s. Is its server up, and its mount not stale?",
		paths[questions.answered], PATH_ANSWER_S);
}

int path_answers(const char *path, const atomic_bool *stop, struct error *err)
{
	return paths_answer(&path, 1, stop, err);
}
