/* with_bad_mount mute|stopped|late|eio FOLDER COMMAND...: runs a command beside a FUSE mount that never answers, whose server was
 * stopped (SIGSTOP) once it was mounted, or after a folder was opened once, or that answers every request but those about its root with EIO.  The mount is in a namespace of its own and goes with the command.  Spoken to
 * the kernel directly (linux/fuse.h), so that no library is needed. */
#define _GNU_SOURCE /* unshare */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUEST_BYTES = 1 << 18 };

static void answer(
	int fd, const struct fuse_in_header *request, int code, const void *body, size_t size)
{
	char reply[512];
	const struct fuse_out_header header = {
		.len = (__u32)(sizeof header + size), .error = -code, .unique = request->unique};
	memcpy(reply, &header, sizeof header);
	if (size > 0)
		memcpy(reply + sizeof header, body, size);
	if (write(fd, reply, header.len) < 0 && errno != ENOENT)
		_exit(1);
}

/* Everything but INIT and the root's attributes is EIO. */
static void serve(int fd, const char *kind)
{
	static char request[REQUEST_BYTES];
	const struct fuse_in_header *header = (const struct fuse_in_header *)request;
	for (;;) {
		const ssize_t got = read(fd, request, sizeof request);
		if (got < (ssize_t)sizeof *header) {
			if (got < 0 && errno == EINTR)
				continue;
			_exit(0);
		}
		if (header->opcode == FUSE_INIT) {
			const struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
				.minor = 31,
				.max_write = 4096,
				.max_background = 4,
				.congestion_threshold = 3};
			answer(fd, header, 0, &out, sizeof out);
			if (strcmp(kind, "stopped") == 0)
				(void)raise(SIGSTOP);
		} else if (header->opcode == FUSE_GETATTR && header->nodeid == FUSE_ROOT_ID) {
			const struct fuse_attr_out out = {.attr = {.ino = 1,
								  .mode = S_IFDIR | 0755,
								  .nlink = 2,
								  .blksize = 4096}};
			answer(fd, header, 0, &out, sizeof out);
		} else if (header->opcode != FUSE_FORGET && header->opcode != FUSE_BATCH_FORGET &&
			   header->opcode != FUSE_INTERRUPT) {
			/* A request that a stopped server has taken cannot even be killed: it stops between two. */
			const bool last =
				header->opcode == FUSE_OPENDIR && strcmp(kind, "late") == 0;
			answer(fd, header, EIO, NULL, 0);
			if (last)
				(void)raise(SIGSTOP);
		}
	}
}

int main(int argc, char **argv)
{
	char options[128];
	if (argc < 4)
		return 2;
	const int fd = open("/dev/fuse", O_RDWR);
	if (fd < 0 || unshare(CLONE_NEWNS) != 0 ||
		mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
		perror("no FUSE mount can be made here");
		return 77;
	}
	(void)snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("bad", argv[2], "fuse.bad", MS_NOSUID | MS_NODEV, options) != 0) {
		perror("no FUSE mount can be made here");
		return 77;
	}
	const pid_t server = fork();
	if (server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (strcmp(argv[1], "mute") != 0)
			serve(fd, argv[1]);
		for (;;)
			(void)pause();
	}
	const pid_t command = fork();
	if (command == 0) {
		(void)close(fd);
		execvp(argv[3], argv + 3);
		perror(argv[3]);
		_exit(127);
	}
	int status = 0;
	(void)close(fd);
	(void)waitpid(command, &status, 0);
	/* The connection goes with its last descriptor, and frees whatever still waits. */
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
