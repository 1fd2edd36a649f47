/* A parent that waits. */
#include "harness/live/front.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/live/look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FRONT_LOOK_MS = 200, CONTINUE_MS = 10, CONTINUES = 20 };

/* What the worker says before it ends. */
struct front_word {
	uint8_t status, patience_s;
};

static int word_fd = -1; /* of the worker */
static pid_t front_pid;
static volatile sig_atomic_t went_on; /* the worker was stopped, and continued */

static void front_signals(sigset_t *set)
{
	static const int numbers[] = {
		SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT};
	(void)sigemptyset(set);
	for (size_t i = 0; i < COUNT(numbers); i++)
		(void)sigaddset(set, numbers[i]);
}

/* Ends as the worker did. */
static _Noreturn void front_end_as(int status)
{
	if (WIFSIGNALED(status)) {
		const struct rlimit no_core = {0};
		sigset_t none;
		(void)sigemptyset(&none);
		(void)setrlimit(RLIMIT_CORE, &no_core);
		(void)signal(WTERMSIG(status), SIG_DFL);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)raise(WTERMSIG(status));
		_exit(128 + WTERMSIG(status));
	}
	_exit(WEXITSTATUS(status));
}

/* Of a terminal the worker gets signals itself (si_code > 0). */
static void front_hand_on(pid_t worker, const sigset_t *set)
{
	const struct timespec look = {.tv_nsec = FRONT_LOOK_MS * (long)NS_PER_MS};
	siginfo_t info;
	const int number = sigtimedwait(set, &info, &look);
	if (number > 0 && number != SIGCHLD && info.si_code <= 0 && info.si_pid != worker)
		(void)kill(worker, number);
}

/* Somebody may stop and continue the worker alone, or both in any order: then nobody would continue the front. So it stops only
 * while the worker is stopped, and the worker continues it when it goes on itself, and at its end. */
static void front_stop(pid_t worker)
{
	siginfo_t info = {.si_pid = 0};
	if (waitid(P_PID, (id_t)worker, &info, WCONTINUED | WNOHANG) != 0 || info.si_pid == 0)
		(void)kill(getpid(), SIGSTOP);
}

static void front_continue(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	went_on = 1;
	if (info->si_pid != front_pid)
		(void)kill(front_pid, SIGCONT);
}

static _Noreturn void front_wait(pid_t worker, int fd, const sigset_t *set)
{
	uint64_t leave_ns = 0;
	struct front_word word = {0};
	for (;;) {
		int status;
		front_hand_on(worker, set);
		if (waitpid(worker, &status, WNOHANG | WUNTRACED) == worker) {
			if (!WIFSTOPPED(status))
				front_end_as(status);
			/* After the worker, which gives the terminal back first. */
			front_stop(worker);
		}
		if (leave_ns == 0 && read(fd, &word, sizeof word) == sizeof word)
			leave_ns = clock_now_ns() + word.patience_s * NS_PER_S;
		if (leave_ns > 0 && clock_now_ns() >= leave_ns)
			_exit(word.status);
	}
}

bool front_begin(size_t threads)
{
	int ends[2];
	sigset_t set;
	sigset_t before;
	if (word_fd >= 0 || look_list_threads(getpid(), NULL, 0) > threads ||
		pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return false;
	const pid_t self = getpid();
	front_signals(&set);
	(void)pthread_sigmask(SIG_BLOCK, &set, &before);
	const pid_t worker = fork();
	if (worker > 0) {
		(void)close(ends[1]);
		front_wait(worker, ends[0], &set);
	}
	(void)close(ends[0]);
	if (worker == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(EXIT_FAILURE);
		const struct sigaction go_on = {
			.sa_sigaction = front_continue, .sa_flags = SA_SIGINFO | SA_RESTART};
		word_fd = ends[1];
		front_pid = self;
		(void)sigaction(SIGCONT, &go_on, NULL);
	} else {
		(void)close(ends[1]);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return worker == 0;
}

int32_t front_find_worker(int32_t pid)
{
	char path[64];
	char line[64];
	char *end;
	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	if (files_first_line(path, line, sizeof line) != 0)
		return 0;
	const long worker = strtol(line, &end, 10);
	return end[strspn(end, " ")] == '\0' ? (int32_t)worker : 0;
}

bool front_sent(const siginfo_t *info)
{
	return word_fd >= 0 && info && info->si_code <= 0 && info->si_pid == front_pid;
}

void front_leave(int status, unsigned patience_s)
{
	const struct front_word word = {
		.status = (uint8_t)status, .patience_s = (uint8_t)patience_s};
	if (word_fd < 0 || write(word_fd, &word, sizeof word) != sizeof word)
		return;
	(void)kill(front_pid, SIGCONT);
	/* It may be about to stop, having seen the worker stopped, and nobody else would continue it. */
	for (int i = 0; went_on && i < CONTINUES; i++) {
		clock_sleep_until_ns(clock_now_ns() + CONTINUE_MS * NS_PER_MS);
		(void)kill(front_pid, SIGCONT);
	}
	/* Not merely closed: the next file that another thread opens would be its stderr. */
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null >= 0; fd++)
		(void)dup2(null, fd);
}
