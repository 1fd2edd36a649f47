/* Runs a command in which a system call always fails, as under a container's seccomp filter or on a file system that
 * does not have it:   failing_call CALL ERRNO COMMAND [ARGUMENT ...]
 * io_uring: all three of its calls, as the default profiles of Docker and containerd forbid them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct call {
	const char *name;
	long first, last; /* numbers, which follow one another */
} calls[] = {
	{"io_uring", SYS_io_uring_setup, SYS_io_uring_register},
	{"io_uring_enter", SYS_io_uring_enter, SYS_io_uring_enter},
	{"io_uring_register", SYS_io_uring_register, SYS_io_uring_register},
	{"flock", SYS_flock, SYS_flock},
	{"mbind", SYS_mbind, SYS_mbind},
	{"move_pages", SYS_move_pages, SYS_move_pages},
};

static const struct {
	const char *name;
	int number;
} errors[] = {
	{"EPERM", EPERM},
	{"ENOSYS", ENOSYS},
	{"ENOTSUP", ENOTSUP},
	{"ENOLCK", ENOLCK},
	{"EIO", EIO},
	{"EWOULDBLOCK", EWOULDBLOCK},
};

static int forbid(const struct call *call, int error)
{
	const unsigned failure = SECCOMP_RET_ERRNO | (unsigned)error;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)call->first, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (unsigned)call->last, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, failure),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
		.len = sizeof filter / sizeof filter[0], .filter = filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
		return 0;
	perror("seccomp");
	return 77;
}

int main(int argc, char **argv)
{
	const struct call *call = NULL;
	int error = 0;
	for (size_t i = 0; argc > 3 && i < sizeof calls / sizeof calls[0]; i++)
		if (strcmp(argv[1], calls[i].name) == 0)
			call = &calls[i];
	for (size_t i = 0; argc > 3 && i < sizeof errors / sizeof errors[0]; i++)
		if (strcmp(argv[2], errors[i].name) == 0)
			error = errors[i].number;
	if (!call || !error)
		return 2;
	const int status = forbid(call, error);
	if (status)
		return status;
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 127;
}
