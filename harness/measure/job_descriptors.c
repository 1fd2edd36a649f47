/* What is open: links in /proc/PID/fd, of which those that are no files are asked once. */
#include "harness/measure/job_descriptors.h"

#include "harness/base/rng.h"
#include "harness/base/text.h"
#include "harness/measure/proc_text.h"
#include "harness/measure/socket_peers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	DESCRIPTORS_TEXT_BYTES = 4096,
	DESCRIPTORS_PATH_BYTES = 320,
	DESCRIPTORS_LINK_BYTES = 512,
	DESCRIPTORS_LINKS_MAX = 96,    /* of one process in one look: descriptors that are asked */
	DESCRIPTORS_LIST_BYTES = 2048, /* entries of a folder at a time */
	DESCRIPTORS_FORGET = 32,       /* looks, after which descriptors are asked again */
	DESCRIPTORS_MOUNTS_MAX = 256,
	DESCRIPTORS_DEVICES = 64,
	DESCRIPTORS_SOCKETS_MAX = 1024,
	DESCRIPTORS_PEERS_ASKED =
		8, /* times in a watch: sockets that have no peer by then have none */
};

struct descriptors_mount {
	int id;
	char system[JOB_NAME_BYTES];
};

struct descriptors_file {
	uint64_t device, number;
	uint32_t group; /* index + 1; 0: free */
};

struct job_descriptors {
	struct job_record *record;
	char root[DESCRIPTORS_PATH_BYTES];
	struct descriptors_mount mounts[DESCRIPTORS_MOUNTS_MAX];
	size_t mount_count;
	struct descriptors_file *files; /* (2 * JOB_FILES_MAX), by hash */
	size_t file_count;
	unsigned peers_asked;
};

/* --- pipes and sockets -------------------------------------------------------------------------- */

/* Where it is, or would be. */
static size_t job_pipe_place(const struct job_process *process, uint64_t number)
{
	size_t low = 0;
	size_t high = process->pipe_count;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (process->pipes[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct job_pipe *job_find_pipe(const struct job_process *process, uint64_t number)
{
	const size_t at = job_pipe_place(process, number);
	return at < process->pipe_count && process->pipes[at].number == number ? &process->pipes[at]
									       : NULL;
}

static struct job_pipe *descriptors_pipe(
	struct job_descriptors *all, struct job_process *process, const char *link)
{
	const bool socket = strncmp(link, "socket:[", 8) == 0;
	if (!socket && strncmp(link, "pipe:[", 6) != 0)
		return NULL;
	const uint64_t number = strtoull(strchr(link, '[') + 1, NULL, 10);
	const size_t at = job_pipe_place(process, number);
	struct job_pipe *pipe = &process->pipes[at];
	if (at < process->pipe_count && pipe->number == number)
		return pipe;
	if (process->pipe_count == JOB_PIPES_MAX) {
		all->record->no_room++;
		return NULL;
	}
	memmove(pipe + 1, pipe, (process->pipe_count - at) * sizeof *pipe);
	process->pipe_count++;
	*pipe = (struct job_pipe){.number = number, .socket = socket};
	return pipe;
}

static bool descriptors_link(const struct job_descriptors *all, int folder, unsigned long fd,
	char link[DESCRIPTORS_LINK_BYTES])
{
	char path[DESCRIPTORS_PATH_BYTES];
	const size_t below = strlen(all->root);
	(void)snprintf(path, sizeof path, "fd/%lu", fd);
	const ssize_t size = readlinkat(folder, path, link, DESCRIPTORS_LINK_BYTES - 1);
	link[size > 0 ? size : 0] = '\0';
	if (below > 0 && strncmp(link, all->root, below) == 0)
		memmove(link, link + below, strlen(link + below) + 1);
	return size > 0;
}

static void descriptors_take_called(struct job_descriptors *all, struct job_process *process,
	unsigned long fd, const char *link);

/* A call with a descriptor: whether it is a file, and of pipes and sockets which end is waited at. */
enum job_act job_descriptors_call(
	struct job_descriptors *all, struct job_process *process, unsigned long fd, bool write)
{
	char link[DESCRIPTORS_LINK_BYTES];
	if (!descriptors_link(all, process->folder, fd, link))
		return JOB_WAITS_OTHER;
	struct job_pipe *pipe = descriptors_pipe(all, process, link);
	if (pipe) {
		if (write)
			pipe->write_looks++;
		else
			pipe->read_looks++;
	}
	if (pipe && pipe->network)
		return JOB_WAITS_NETWORK;
	if (pipe || strncmp(link, "socket:", 7) == 0 || strncmp(link, "pipe:", 5) == 0)
		return write ? JOB_WAITS_OUTPUT : JOB_WAITS_INPUT;
	if (strncmp(link, "/dev/nvidia", 11) == 0)
		return JOB_WAITS_DEVICE;
	if (strncmp(link, "/dev/", 5) == 0 && strncmp(link, "/dev/shm/", 9) != 0)
		return JOB_WAITS_INPUT; /* a terminal, a FUSE server's device */
	if (link[0] != '/')
		return JOB_WAITS_POLL; /* anon_inode: eventfd, epoll */
	descriptors_take_called(all, process, fd, link);
	return write ? JOB_WAITS_WRITE : JOB_WAITS_READ;
}

/* --- files -------------------------------------------------------------------------------------- */

/* Of the mounts as the process sees them: the first that is asked for stands for all. */
void job_descriptors_read_mounts(struct job_descriptors *all, int folder)
{
	char path[] = "mountinfo";
	const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[DESCRIPTORS_TEXT_BYTES];
	if (fd >= 0 && !file)
		(void)close(fd);
	while (file && all->mount_count < DESCRIPTORS_MOUNTS_MAX &&
		fgets(line, sizeof line, file)) {
		struct descriptors_mount *mount = &all->mounts[all->mount_count];
		struct mount_entry entry;
		if (!parse_mount(line, &entry))
			continue;
		mount->id = (int)strtol(line, NULL, 10);
		(void)snprintf(mount->system, sizeof mount->system, "%.31s", entry.type);
		utf8_make_plain(mount->system, '?');
		all->mount_count++;
	}
	if (file)
		(void)fclose(file);
}

static const char *descriptors_system_of(const struct job_descriptors *all, int mount)
{
	for (size_t i = 0; i < all->mount_count; i++)
		if (all->mounts[i].id == mount)
			return all->mounts[i].system;
	return "unknown";
}

/* Endings that say what data is in a file; any other could be a part of somebody's name. */
static const char *descriptors_kind_of(const char *name)
{
	static const char *const kinds[] = {"jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff",
		"gif", "tar", "gz", "zst", "zip", "bin", "idx", "npy", "npz", "pt", "pth", "h5",
		"hdf5", "arrow", "parquet", "lmdb", "mdb", "rec", "csv", "json", "jsonl", "txt",
		"mp4", "wav", "flac", "dcm", "nii", "raw", "dat", "beton"};
	const char *dot = strrchr(name, '.');
	for (size_t i = 0; dot && i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcasecmp(dot + 1, kinds[i]) == 0)
			return kinds[i];
	return strstr(name, "tfrecord") ? "tfrec" : "other";
}

static size_t descriptors_group(struct job_descriptors *all, const struct job_group *like)
{
	struct job_record *record = all->record;
	for (size_t i = 0; i < record->group_count; i++) {
		const struct job_group *group = &record->groups[i];
		if (group->depth == like->depth && group->written == like->written &&
			strcmp(group->kind, like->kind) == 0 &&
			strcmp(group->system, like->system) == 0)
			return i;
	}
	if (record->group_count == JOB_GROUPS_MAX)
		return JOB_GROUPS_MAX;
	record->groups[record->group_count] = *like;
	return record->group_count++;
}

static struct descriptors_file *descriptors_file_slot(
	struct job_descriptors *all, uint64_t device, uint64_t number)
{
	const size_t room = 2 * (size_t)JOB_FILES_MAX;
	size_t at = rng_mix(device, number) % room;
	while (all->files[at].group &&
		(all->files[at].device != device || all->files[at].number != number))
		at = (at + 1) % room;
	return &all->files[at];
}

/* AT_STATX_DONT_SYNC: what the kernel knows of it, without asking a server that may not answer. */
static bool descriptors_stat_file(int folder, unsigned long fd, struct statx *out)
{
	char path[DESCRIPTORS_PATH_BYTES];
	(void)snprintf(path, sizeof path, "fd/%lu", fd);
	return statx(folder, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE | STATX_INO, out) ==
	       0;
}

static unsigned descriptors_depth_of(const char *path)
{
	unsigned depth = 0;
	for (const char *at = path; (at = strchr(at, '/')); at++)
		depth++;
	return depth > 0 ? depth - 1 : 0;
}

/* Whether it is data, opened for reading. */
static bool descriptors_take_file(struct job_descriptors *all, const struct job_process *process,
	unsigned long fd, const char *link, bool written, int mount)
{
	struct statx st;
	if (!descriptors_stat_file(process->folder, fd, &st) || !S_ISREG(st.stx_mode))
		return false;
	struct job_group like = {.depth = descriptors_depth_of(link),
		.written = written,
		.least = (double)st.stx_size,
		.most = (double)st.stx_size};
	(void)snprintf(like.system, sizeof like.system, "%s", descriptors_system_of(all, mount));
	(void)snprintf(like.kind, sizeof like.kind, "%s", descriptors_kind_of(link));
	struct descriptors_file *file =
		descriptors_file_slot(all, makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino);
	const bool known = file->group > 0;
	const size_t at = known ? file->group - 1 : descriptors_group(all, &like);
	if (at == JOB_GROUPS_MAX || (!known && all->file_count == JOB_FILES_MAX)) {
		all->record->no_room++;
		return !written;
	}
	struct job_group *group = &all->record->groups[at];
	group->looks++;
	if (!known) {
		*file = (struct descriptors_file){
			makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino, (uint32_t)at + 1};
		all->file_count++;
		group->files++;
		group->bytes += (double)st.stx_size;
		group->inverse += st.stx_size > 0 ? 1 / (double)st.stx_size : 0;
		group->least = fmin(group->least, (double)st.stx_size);
		group->most = fmax(group->most, (double)st.stx_size);
	}
	return !written;
}

/* How a descriptor was opened, and on which mount. */
static bool descriptors_mode(int folder, unsigned long fd, unsigned long *mode, int *mount)
{
	char text[DESCRIPTORS_TEXT_BYTES];
	char flags[32] = "0";
	if (proc_text_at(folder, text, sizeof text, "fdinfo/%lu", fd))
		return false;
	(void)parse_field(text, "flags", flags, sizeof flags);
	*mode = strtoul(flags, NULL, 8) & O_ACCMODE;
	double number;
	*mount = parse_field_number(text, "mnt_id", &number) ? (int)number : -1;
	return true;
}

/* The file that a thread is found in a call on: those that are open for a moment alone are seen in no other way. */
static void descriptors_take_called(struct job_descriptors *all, struct job_process *process,
	unsigned long fd, const char *link)
{
	unsigned long mode;
	int mount;
	if (strncmp(link, "/dev/shm/", 9) != 0 &&
		descriptors_mode(process->folder, fd, &mode, &mount))
		(void)descriptors_take_file(all, process, fd, link, mode != O_RDONLY, mount);
}

static void descriptors_take_device(struct job_process *process, const char *link)
{
	char *end;
	const unsigned long number = strtoul(link + strlen("/dev/nvidia"), &end, 10);
	if (end == link + strlen("/dev/nvidia") || *end)
		return; /* nvidiactl, nvidia-uvm */
	process->device = true;
	if (number < DESCRIPTORS_DEVICES)
		process->devices |= UINT64_C(1) << number;
}

/* What a pipe was opened for: the kernel's links have the mode as their permission. */
static bool descriptors_direction(int folder, unsigned long fd, bool *reads, bool *writes)
{
	char path[DESCRIPTORS_PATH_BYTES];
	struct stat st;
	unsigned long mode;
	int mount;
	(void)snprintf(path, sizeof path, "fd/%lu", fd);
	if (fstatat(folder, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !(st.st_mode & S_IRWXO)) {
		*reads = st.st_mode & S_IRUSR;
		*writes = st.st_mode & S_IWUSR;
		return true;
	}
	if (!descriptors_mode(folder, fd, &mode, &mount))
		return false;
	*reads = mode != O_WRONLY;
	*writes = mode != O_RDONLY;
	return true;
}

static void descriptors_take_pipe(
	const struct job_process *process, unsigned long fd, struct job_pipe *pipe)
{
	bool reads = false;
	bool writes = false;
	if ((pipe->reads && pipe->writes) ||
		!descriptors_direction(process->folder, fd, &reads, &writes))
		return;
	pipe->reads = pipe->reads || reads;
	pipe->writes = pipe->writes || writes;
}

/* One descriptor; whether it is a data file that is open for reading.  *settled: it is no file. */
static bool descriptors_take_descriptor(
	struct job_descriptors *all, struct job_process *process, unsigned long fd, bool *settled)
{
	char link[DESCRIPTORS_LINK_BYTES];
	if (!descriptors_link(all, process->folder, fd, link))
		return false;
	if (strncmp(link, "/dev/nvidia", 11) == 0)
		descriptors_take_device(process, link);
	if (strncmp(link, "/dev/shm/", 9) == 0 || strncmp(link, "/memfd:", 7) == 0) {
		process->shared_memory = true;
		return false;
	}
	struct job_pipe *pipe = descriptors_pipe(all, process, link);
	const bool plain = link[0] == '/' && strncmp(link, "/dev/", 5) != 0 &&
			   strncmp(link, "/proc/", 6) != 0 && strncmp(link, "/sys/", 5) != 0;
	unsigned long mode;
	int mount;
	*settled = link[0] != '/';
	if (pipe)
		descriptors_take_pipe(process, fd, pipe);
	return plain && descriptors_mode(process->folder, fd, &mode, &mount) &&
	       descriptors_take_file(all, process, fd, link, mode != O_RDONLY, mount);
}

struct descriptors_listing {
	uint8_t present[JOB_DESCRIPTORS_MAX / 8];
	unsigned asked;
	bool reads; /* a data file is open for reading */
};

/* Those that it lists next; false: there are no more. */
static bool descriptors_list(struct job_descriptors *all, struct job_process *process, int folder,
	struct descriptors_listing *listing)
{
	char list[DESCRIPTORS_LIST_BYTES] __attribute__((aligned(8)));
	/* glibc has a name for it since 2.30. */
	const long size = syscall(SYS_getdents64, folder, list, sizeof list);
	for (ssize_t at = 0; at < size;) {
		const struct dirent64 *e = (const struct dirent64 *)(const void *)(list + at);
		at += e->d_reclen;
		char *end;
		const unsigned long fd = strtoul(e->d_name, &end, 10);
		const uint8_t bit = (uint8_t)(1U << (fd % 8));
		bool settled = false;
		if (*end || end == e->d_name || fd >= JOB_DESCRIPTORS_MAX)
			continue;
		listing->present[fd / 8] |= bit;
		if ((process->settled[fd / 8] & bit) || listing->asked == DESCRIPTORS_LINKS_MAX)
			continue;
		listing->asked++;
		listing->reads =
			descriptors_take_descriptor(all, process, fd, &settled) || listing->reads;
		process->settled[fd / 8] |= settled ? bit : 0;
	}
	return size > 0;
}

/* The first look at a process asks for its first descriptors alone: those of pipes to the one that began it are among them, and a
 * forked one has all that were open then. */
int job_descriptors_look(struct job_descriptors *all, struct job_process *process)
{
	struct descriptors_listing listing = {.asked = 0};
	const int fd = openat(process->folder, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (process->open_looks % DESCRIPTORS_FORGET == DESCRIPTORS_FORGET - 1)
		memset(process->settled, 0, sizeof process->settled);
	while (descriptors_list(all, process, fd, &listing) && process->open_looks > 0)
		;
	(void)close(fd);
	for (size_t i = 0; i < sizeof process->settled && process->open_looks > 0; i++)
		process->settled[i] &= listing.present[i];
	process->open_looks++;
	process->file_looks += listing.reads;
	return 0;
}

/* Sockets whose other end is not known yet, of all processes; how many. */
static size_t descriptors_lonely_sockets(const struct job_record *record, struct job_pipe **out)
{
	size_t count = 0;
	for (size_t i = 0; i < record->process_count; i++)
		for (size_t k = 0; k < record->processes[i].pipe_count; k++) {
			struct job_pipe *pipe = &record->processes[i].pipes[k];
			if (pipe->socket && !pipe->peer && count < DESCRIPTORS_SOCKETS_MAX)
				out[count++] = pipe;
		}
	return count;
}

/* The kernel tells of sockets in this network namespace alone. */
static bool descriptors_share_network(const struct job_record *record)
{
	char path[] = "ns/net";
	struct stat own;
	struct stat theirs;
	return record->processes[0].folder >= 0 && stat("/proc/self/ns/net", &own) == 0 &&
	       fstatat(record->processes[0].folder, path, &theirs, 0) == 0 &&
	       own.st_ino == theirs.st_ino;
}

/* Two ends of a socket have two numbers, unlike those of a pipe. */
void job_descriptors_find_peers(struct job_descriptors *all)
{
	if (all->peers_asked >= DESCRIPTORS_PEERS_ASKED || all->root[0])
		return;
	struct job_pipe **pipes = calloc(DESCRIPTORS_SOCKETS_MAX, sizeof(*pipes));
	struct socket_peer *peers = calloc(DESCRIPTORS_SOCKETS_MAX, sizeof *peers);
	const size_t count = pipes && peers ? descriptors_lonely_sockets(all->record, pipes) : 0;
	if (count > 0) {
		all->peers_asked++;
		for (size_t i = 0; i < count; i++)
			peers[i].number = pipes[i]->number;
		const bool all_told =
			socket_peers_find(peers, count) && descriptors_share_network(all->record);
		for (size_t i = 0; i < count; i++) {
			bool found =
				false; /* one of those that several have by inheritance is told */
			for (size_t k = 0; k < count; k++)
				if (peers[k].number == pipes[i]->number) {
					if (peers[k].peer)
						pipes[i]->peer = peers[k].peer;
					found = found || peers[k].found;
				}
			pipes[i]->network = all_told && !found;
		}
	}
	free(pipes);
	free(peers);
}

/* --- all ---------------------------------------------------------------------------------------- */

struct job_descriptors *job_descriptors_open(struct job_record *record, const char *root)
{
	struct job_descriptors *all = calloc(1, sizeof *all);
	if (!all)
		return NULL;
	all->record = record;
	(void)snprintf(all->root, sizeof all->root, "%.256s", root);
	all->files = calloc(2 * (size_t)JOB_FILES_MAX, sizeof *all->files);
	if (all->files)
		return all;
	free(all);
	return NULL;
}

void job_descriptors_close(struct job_descriptors *all)
{
	if (!all)
		return;
	free(all->files);
	free(all);
}
