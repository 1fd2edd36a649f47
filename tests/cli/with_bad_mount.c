/* with_bad_mount KIND FOLDER COMMAND...: runs a command beside a FUSE mount whose server is bad:
 *   mute            never answers
 *   stopped         was stopped (SIGSTOP) once it was mounted
 *   late            ... after a folder was opened once; until then, as eio
 *   eio             answers every request but those about its root with EIO
 *   OPCODE:N        passes FOLDER.files on, and is stopped after the N-th request of that kind (the numbers of linux/fuse.h)
 *   OPCODE:N:taken  ... with that request in its hands, so that who waits for it cannot be killed
 *   OPCODE:N:slow   is not stopped, but answers what comes within 45 s of that request after 15 s each
 * The mount is in a namespace of its own and goes with the command.  Spoken to the kernel directly (linux/fuse.h), so that no
 * library is needed. */
#define _GNU_SOURCE /* unshare */
#include <dirent.h>
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
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
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

/* --- a folder that is passed on ------------------------------------------------------------------ */

enum { NODES_MAX = 4096, LATE_S = 15, SLOW_S = 45 };

static char *nodes[NODES_MAX] = {[FUSE_ROOT_ID] = "."}; /* paths below FOLDER.files, by node */
static size_t node_count = FUSE_ROOT_ID + 1;

static const char *child(unsigned long parent, const char *name)
{
	static char path[2][4096];
	static int turn;
	turn = !turn;
	(void)snprintf(path[turn], sizeof path[turn], "%s/%s", nodes[parent], name);
	return path[turn];
}

static void fill_attr(struct fuse_attr *out, const struct stat *st)
{
	*out = (struct fuse_attr){.ino = st->st_ino,
		.size = (__u64)st->st_size,
		.blocks = (__u64)st->st_blocks,
		.mtime = (__u64)st->st_mtime,
		.mode = st->st_mode,
		.nlink = (__u32)st->st_nlink,
		.blksize = 4096};
}

static int find(const char *path, struct fuse_entry_out *out)
{
	struct stat st;
	size_t node = FUSE_ROOT_ID;
	if (lstat(path, &st) != 0)
		return errno;
	while (node < node_count && strcmp(nodes[node], path) != 0)
		node++;
	if (node == NODES_MAX)
		return ENOMEM;
	if (node == node_count)
		nodes[node_count++] = strdup(path);
	*out = (struct fuse_entry_out){.nodeid = node};
	fill_attr(&out->attr, &st);
	return 0;
}

static int attributes(const char *path, struct fuse_attr_out *out)
{
	struct stat st;
	*out = (struct fuse_attr_out){0};
	if (lstat(path, &st) != 0)
		return errno;
	fill_attr(&out->attr, &st);
	return 0;
}

static size_t list(const char *path, const struct fuse_read_in *in, char *out, size_t room)
{
	DIR *folder = opendir(path);
	size_t used = 0;
	unsigned long at = 0;
	for (const struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder)) {
		const size_t length = strlen(e->d_name);
		const struct fuse_dirent entry = {.ino = e->d_ino,
			.off = at + 1,
			.namelen = (__u32)length,
			.type = e->d_type};
		const size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
		if (at++ < in->offset)
			continue;
		if (used + size > room || used + size > in->size)
			break;
		memcpy(out + used, &entry, FUSE_NAME_OFFSET);
		memcpy(out + used + FUSE_NAME_OFFSET, e->d_name, length);
		used += size;
	}
	if (folder)
		(void)closedir(folder);
	return used;
}

static int move(const char *from, const char *to)
{
	const size_t size = strlen(from);
	if (rename(from, to) != 0)
		return errno;
	for (size_t i = FUSE_ROOT_ID + 1; i < node_count; i++) {
		char *moved;
		if (strncmp(nodes[i], from, size) != 0 || (nodes[i][size] && nodes[i][size] != '/'))
			continue;
		if (asprintf(&moved, "%s%s", to, nodes[i] + size) > 0)
			nodes[i] = moved;
	}
	return 0;
}

/* On a file by its path, each time anew.  The bytes, or -errno. */
static ssize_t on_file(const char *path, bool writes, void *bytes, size_t size, off_t offset)
{
	const int file = open(path, writes ? O_WRONLY : O_RDONLY);
	const ssize_t n = file < 0 ? -1
			  : writes ? pwrite(file, bytes, size, offset)
				   : pread(file, bytes, size, offset);
	const int code = errno;
	if (file >= 0)
		(void)close(file);
	return n < 0 ? -code : n;
}

/* Fills out with the body of the reply; returns an errno.  ENOSYS for what is not needed. */
static int pass_on(const struct fuse_in_header *h, void *body, char *out, size_t room, size_t *size)
{
	const char *path = h->nodeid > 0 && h->nodeid < node_count ? nodes[h->nodeid] : ".";
	struct fuse_entry_out *entry = (struct fuse_entry_out *)out;
	int code = 0;
	*size = 0;
	switch (h->opcode) {
	case FUSE_LOOKUP:
		*size = sizeof *entry;
		return find(child(h->nodeid, body), entry);
	case FUSE_GETATTR:
		*size = sizeof(struct fuse_attr_out);
		return attributes(path, (struct fuse_attr_out *)out);
	case FUSE_SETATTR: {
		const struct fuse_setattr_in *in = body;
		if (in->valid & FATTR_SIZE && truncate(path, (off_t)in->size) != 0)
			return errno;
		*size = sizeof(struct fuse_attr_out);
		return attributes(path, (struct fuse_attr_out *)out);
	}
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		*size = sizeof(struct fuse_open_out);
		memset(out, 0, *size);
		return 0;
	case FUSE_READDIR:
		*size = list(path, body, out, room);
		return 0;
	case FUSE_READ: {
		const struct fuse_read_in *in = body;
		const ssize_t n = on_file(
			path, false, out, in->size < room ? in->size : room, (off_t)in->offset);
		*size = n > 0 ? (size_t)n : 0;
		return n < 0 ? (int)-n : 0;
	}
	case FUSE_WRITE: {
		const struct fuse_write_in *in = body;
		const ssize_t n =
			on_file(path, true, (char *)body + sizeof *in, in->size, (off_t)in->offset);
		*(struct fuse_write_out *)out =
			(struct fuse_write_out){.size = n > 0 ? (__u32)n : 0};
		*size = sizeof(struct fuse_write_out);
		return n < 0 ? (int)-n : 0;
	}
	case FUSE_CREATE: {
		const struct fuse_create_in *in = body;
		const char *made = child(h->nodeid, (char *)body + sizeof *in);
		const int file = open(made, O_CREAT | O_WRONLY, in->mode & 07777);
		if (file < 0)
			return errno;
		(void)close(file);
		*size = sizeof *entry + sizeof(struct fuse_open_out);
		memset(out, 0, *size);
		return find(made, entry);
	}
	case FUSE_MKDIR: {
		const struct fuse_mkdir_in *in = body;
		const char *made = child(h->nodeid, (char *)body + sizeof *in);
		*size = sizeof *entry;
		return mkdir(made, in->mode & 07777) != 0 ? errno : find(made, entry);
	}
	case FUSE_SYMLINK: {
		const char *made = child(h->nodeid, body);
		const char *target = (char *)body + strlen(body) + 1;
		*size = sizeof *entry;
		return symlink(target, made) != 0 ? errno : find(made, entry);
	}
	case FUSE_READLINK: {
		const ssize_t n = readlink(path, out, room);
		*size = n > 0 ? (size_t)n : 0;
		return n < 0 ? errno : 0;
	}
	case FUSE_UNLINK:
		return unlink(child(h->nodeid, body)) != 0 ? errno : 0;
	case FUSE_RMDIR:
		return rmdir(child(h->nodeid, body)) != 0 ? errno : 0;
	case FUSE_RENAME:
	case FUSE_RENAME2: {
		const __u64 to = *(const __u64 *)body; /* newdir, the first of both */
		const char *name =
			(char *)body + (h->opcode == FUSE_RENAME ? sizeof(struct fuse_rename_in)
								 : sizeof(struct fuse_rename2_in));
		return move(child(h->nodeid, name), child(to, name + strlen(name) + 1));
	}
	case FUSE_STATFS: {
		struct statfs fs;
		struct fuse_statfs_out *reply = (struct fuse_statfs_out *)out;
		code = statfs(path, &fs) != 0 ? errno : 0;
		*reply = (struct fuse_statfs_out){.st = {.blocks = fs.f_blocks,
							  .bfree = fs.f_bfree,
							  .bavail = fs.f_bavail,
							  .files = fs.f_files,
							  .ffree = fs.f_ffree,
							  .bsize = (__u32)fs.f_bsize,
							  .frsize = (__u32)fs.f_frsize,
							  .namelen = 255}};
		*size = sizeof *reply;
		return code;
	}
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
	case FUSE_ACCESS:
		return 0;
	default:
		return ENOSYS;
	}
}

/* Several at once. */
static void answer_late(int fd, const char *reply, size_t size)
{
	if (fork() != 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sleep(LATE_S);
	_exit(write(fd, reply, size) < 0);
}

static void serve_folder(int fd, unsigned opcode, unsigned long number, const char *how)
{
	static char request[REQUEST_BYTES];
	static char reply[REQUEST_BYTES + 4096];
	const struct fuse_in_header *header = (const struct fuse_in_header *)request;
	const bool taken = strcmp(how, "taken") == 0;
	const bool slow = strcmp(how, "slow") == 0;
	time_t late_until = 0;
	(void)signal(SIGCHLD, SIG_IGN);
	for (;;) {
		const ssize_t got = read(fd, request, sizeof request);
		struct fuse_out_header out = {.unique = header->unique};
		size_t size = 0;
		if (got < 0 && errno != ENODEV)
			continue; /* interrupted, or given up before it was taken */
		if (got < (ssize_t)sizeof *header)
			_exit(0);
		if (header->opcode == FUSE_FORGET || header->opcode == FUSE_BATCH_FORGET ||
			header->opcode == FUSE_INTERRUPT)
			continue;
		const bool last = header->opcode == opcode && --number == 0;
		if (last && taken)
			(void)raise(SIGSTOP);
		if (last && slow)
			late_until = time(NULL) + SLOW_S;
		if (header->opcode == FUSE_INIT) {
			const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				.minor = 31,
				.max_write = 1 << 16,
				.max_background = 64,
				.congestion_threshold = 48};
			memcpy(reply + sizeof out, &init, size = sizeof init);
		} else {
			out.error = -pass_on(header, request + sizeof *header, reply + sizeof out,
				sizeof reply - sizeof out, &size);
		}
		size = out.error ? 0 : size;
		out.unique = header->unique;
		out.len = (__u32)(sizeof out + size);
		memcpy(reply, &out, sizeof out);
		if (late_until > 0 && time(NULL) < late_until)
			answer_late(fd, reply, out.len);
		else if (write(fd, reply, out.len) < 0 && errno != ENOENT)
			_exit(1);
		if (last && !taken && !slow)
			(void)raise(SIGSTOP);
	}
}

static void serve_kind(int fd, const char *kind, const char *folder)
{
	char files[4096];
	unsigned opcode = 0;
	unsigned long number = 0;
	char how[8] = "";
	if (strcmp(kind, "mute") == 0)
		return;
	if (sscanf(kind, "%u:%lu:%7s", &opcode, &number, how) < 2) {
		serve(fd, kind);
		return;
	}
	(void)snprintf(files, sizeof files, "%s.files", folder);
	if (chdir(files) != 0) {
		perror(files);
		_exit(1);
	}
	serve_folder(fd, opcode, number, how);
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
		serve_kind(fd, argv[1], argv[2]);
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
