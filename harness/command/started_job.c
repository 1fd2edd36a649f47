/* One thread waits for the command, whatever the rest of the process does meanwhile. */
#include "harness/command/started_job.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2};

static struct {
	volatile sig_atomic_t pid; /* of its group, too; 0: there is none */
	pthread_t waits;
	int terminal; /* whose foreground it was given; -1: none */
	int status;   /* of wait, once it has ended */
} started = {.terminal = -1};

/* What the terminal sends to its foreground does not come here: that is the command's group. */
static void started_hand_on(int number)
{
	const int saved = errno;
	if (started.pid > 0)
		(void)kill(-(pid_t)started.pid, number);
	errno = saved;
}

static void started_take_signals(void)
{
	const struct sigaction action = {.sa_handler = started_hand_on, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < COUNT(handed_on); i++) {
		struct sigaction before;
		if (sigaction(handed_on[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			(void)sigaction(handed_on[i], &action, NULL);
	}
}

/* In the foreground of a terminal, whose process group is this one. */
static bool started_has_terminal(void)
{
	return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static _Noreturn void started_exec(char *const *command, bool foreground, int failure)
{
	sigset_t none;
	(void)setpgid(0, 0);
	(void)sigemptyset(&none);
	(void)sigaddset(&none, SIGTTOU); /* which this group gets until it has the terminal */
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (foreground)
		(void)tcsetpgrp(STDIN_FILENO, getpgrp());
	for (size_t i = 0; i < COUNT(handed_on); i++) {
		struct sigaction before;
		if (sigaction(handed_on[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			(void)signal(handed_on[i], SIG_DFL);
	}
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	program_restore_limits();
	(void)execvp(command[0], command);
	const int code = errno;
	(void)files_write_all(failure, &code, sizeof code);
	_exit(127);
}

/* It was stopped: the shell gets the terminal, and continues this process when the user says so. */
static void started_stop(pid_t pid)
{
	if (started.terminal >= 0)
		(void)tcsetpgrp(started.terminal, getpgrp());
	(void)raise(SIGSTOP); /* of this thread, which so does not go on before all are continued */
	/* In the background the terminal stays with whoever has it. */
	if (started_has_terminal() && tcsetpgrp(STDIN_FILENO, pid) == 0)
		started.terminal = STDIN_FILENO;
	(void)kill(-pid, SIGCONT);
}

static void *started_wait(void *unused)
{
	const pid_t pid = (pid_t)started.pid;
	(void)unused;
	for (;;) {
		const pid_t got = waitpid(pid, &started.status, WUNTRACED);
		if (got == pid && WIFSTOPPED(started.status))
			started_stop(pid);
		else if (got == pid || errno != EINTR)
			break;
	}
	started.pid = 0;
	if (started.terminal >= 0)
		(void)tcsetpgrp(started.terminal, getpgrp());
	return NULL;
}

/* The thread blocks all signals: SIGTTOU would stop the process where it takes the terminal back from the background. */
static int started_watch(void)
{
	sigset_t all;
	sigset_t before;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	const int code = pthread_create(&started.waits, NULL, started_wait, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

static int started_refused(const char *name, int code, struct error *err)
{
	return error_set(err, -EINVAL, "cannot start '%.200s': %s", name, strerror(code));
}

int started_job_begin(char *const *command, int32_t *out, struct error *err)
{
	const bool foreground = started_has_terminal();
	int failure[2];
	int refused = 0;
	sigset_t all;
	sigset_t before;
	if (pipe2(failure, O_CLOEXEC) != 0)
		return started_refused(command[0], errno, err);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* until there is whom to hand them to */
	const pid_t pid = fork();
	if (pid == 0)
		started_exec(command, foreground, failure[1]);
	const int code = errno;
	if (pid > 0) {
		(void)setpgid(pid, pid);
		started.pid = pid;
		started.terminal = foreground ? STDIN_FILENO : -1;
		started_take_signals();
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)close(failure[1]);
	if (pid < 0) {
		(void)close(failure[0]);
		return started_refused(command[0], code, err);
	}
	const bool failed = read(failure[0], &refused, sizeof refused) == (ssize_t)sizeof refused;
	(void)close(failure[0]);
	const int without_thread = started_watch();
	if (without_thread)
		(void)started_wait(NULL); /* it has begun, and goes on as it would alone */
	else if (failed)
		(void)pthread_join(started.waits, NULL);
	*out = pid;
	return failed           ? started_refused(command[0], refused, err)
	       : without_thread ? started_refused(command[0], without_thread, err)
				: 0;
}

int started_job_wait(void)
{
	(void)pthread_join(started.waits, NULL);
	return WIFSIGNALED(started.status) ? 128 + WTERMSIG(started.status)
					   : WEXITSTATUS(started.status);
}
