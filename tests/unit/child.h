/* Runs a check in a child process that may forbid itself system calls or become another user. */
#ifndef MLBENCH_TESTS_CHILD_H
#define MLBENCH_TESTS_CHILD_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_NOBODY = 65534, CHILD_REPORT_BYTES = 512 };

/* In the child: true if all is well; report is handed to the parent either way. */
typedef bool child_check(const void *context, char *report, size_t room);

/* True when the check returned true. */
static inline bool child_run(child_check *check, const void *context, char *report, size_t room)
{
	int ends[2];
	report[0] = '\0';
	if (pipe(ends) != 0)
		return false;
	(void)fflush(NULL);
	const pid_t child = fork();
	if (child < 0)
		return false;
	if (child == 0) {
		char text[CHILD_REPORT_BYTES] = "";
		const bool good = check(context, text, sizeof text);
		const ssize_t written = write(ends[1], text, strlen(text));
		_exit(written >= 0 && good ? 0 : 1);
	}
	(void)close(ends[1]);
	const ssize_t n = read(ends[0], report, room - 1);
	report[n > 0 ? n : 0] = '\0';
	(void)close(ends[0]);
	int status = 0;
	if (waitpid(child, &status, 0) != child)
		return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* From now on this system call fails with `code` in this process, as under a container's filter. */
static inline bool child_forbid(unsigned number, unsigned code)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Computes until the kernel has counted that many seconds more in user mode for this process. */
static inline void child_use_user_time(double seconds)
{
	double begun = -1;
	for (double now = 0; begun < 0 || now - begun < seconds;) {
		struct rusage used = {0};
		(void)getrusage(RUSAGE_SELF, &used);
		now = (double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec;
		if (begun < 0)
			begun = now;
		for (volatile unsigned i = 0; i < 1000000; i++)
			;
	}
}

/* Drops root's privileges where there are any. */
static inline bool child_become_nobody(void)
{
	return geteuid() != 0 || setuid(CHILD_NOBODY) == 0;
}

#endif
