/* The io_uring engine keeps its depth where a file system waits.  A FUSE server in this process answers no open, and no
 * read, before as many are there as the depth says: an engine that has one wait behind another is stuck.  No clock
 * decides but that of the guard, which gives up on an engine that is. */
#include "tests/unit/child.h"
#include "tests/unit/source_fixture.h"
#include "workloads/source/uring.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>

enum {
	/* More than the worker threads that a kernel gives a ring by itself, four for each core; at most so
	 * many, since a container may limit its threads. */
	DEPTH_PER_CORE = 4,
	DEPTH_MORE = 4,
	DEPTH_MOST = 256,
	FILE_BYTES = 1000,
	GUARD_MS = 20000,
	CACHED_S = 3600,
	BUFFER_BYTES = 1 << 18, /* the kernel wants room for a write of the largest size */
	IN_FLIGHT_MOST = 4096,
	PATH_BYTES = 64,
};

enum held { HELD_OPEN, HELD_READ, HELD_KINDS };

struct held_request {
	struct fuse_in_header header;
	struct fuse_read_in read;
};

struct server {
	int fd;
	unsigned depth;
	bool gave_up;
	struct held_request held[HELD_KINDS][DEPTH_MOST];
	unsigned count[HELD_KINDS];
	unsigned most[HELD_KINDS]; /* that were there at once */
	unsigned char buffer[BUFFER_BYTES] __attribute__((aligned(sizeof(uint64_t))));
	pthread_t thread;
};

static void reply(
	const struct server *server, const struct fuse_in_header *to, const void *data, size_t size)
{
	unsigned char out[sizeof(struct fuse_out_header) + FILE_BYTES];
	const struct fuse_out_header header = {
		.len = (uint32_t)(sizeof header + size), .unique = to->unique};
	memcpy(out, &header, sizeof header);
	if (size > 0)
		memcpy(out + sizeof header, data, size);
	/* Fails where nobody waits for it any more. */
	(void)!write(server->fd, out, header.len);
}

static void refuse(const struct server *server, const struct fuse_in_header *to, int code)
{
	const struct fuse_out_header header = {
		.len = sizeof header, .error = -code, .unique = to->unique};
	(void)!write(server->fd, &header, header.len);
}

/* The root is node 1, sample i node i + 2. */
static struct fuse_attr attributes(uint64_t node)
{
	const bool folder = node == FUSE_ROOT_ID;
	return (struct fuse_attr){.ino = node,
		.size = folder ? 0 : FILE_BYTES,
		.mode = folder ? S_IFDIR | 0755 : S_IFREG | 0444,
		.nlink = 1};
}

static void answer_init(const struct server *server, const struct fuse_in_header *header)
{
	const struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_background = IN_FLIGHT_MOST,
		.congestion_threshold = IN_FLIGHT_MOST,
		.max_write = READ_ALIGN_BYTES};
	reply(server, header, &out, sizeof out);
}

static void answer_lookup(
	const struct server *server, const struct fuse_in_header *header, const char *name)
{
	char *end;
	const unsigned long sample = strtoul(name, &end, 10);
	if (*end || sample >= server->depth) {
		refuse(server, header, ENOENT);
		return;
	}
	const uint64_t node = sample + 2;
	const struct fuse_entry_out out = {.nodeid = node,
		.entry_valid = CACHED_S,
		.attr_valid = CACHED_S,
		.attr = attributes(node)};
	reply(server, header, &out, sizeof out);
}

static void answer_held(
	const struct server *server, enum held kind, const struct held_request *request)
{
	if (kind == HELD_OPEN) {
		const struct fuse_open_out out = {0};
		reply(server, &request->header, &out, sizeof out);
		return;
	}
	uint8_t bytes[FILE_BYTES];
	fixture_bytes((uint32_t)request->header.nodeid - 2, bytes, sizeof bytes);
	const size_t offset =
		request->read.offset < FILE_BYTES ? (size_t)request->read.offset : FILE_BYTES;
	const size_t left = FILE_BYTES - offset;
	reply(server, &request->header, bytes + offset,
		left < request->read.size ? left : request->read.size);
}

static void let_go(struct server *server, enum held kind)
{
	for (unsigned i = 0; i < server->count[kind]; i++)
		answer_held(server, kind, &server->held[kind][i]);
	server->count[kind] = 0;
}

static void hold(struct server *server, enum held kind, const struct held_request *request)
{
	server->held[kind][server->count[kind]++] = *request;
	if (server->count[kind] > server->most[kind])
		server->most[kind] = server->count[kind];
	if (server->count[kind] == server->depth || server->gave_up)
		let_go(server, kind);
}

static void serve(struct server *server)
{
	struct held_request request = {0};
	const unsigned char *const rest = server->buffer + sizeof request.header;
	memcpy(&request.header, server->buffer, sizeof request.header);
	const struct fuse_attr_out attr = {
		.attr_valid = CACHED_S, .attr = attributes(request.header.nodeid)};
	const struct fuse_statfs_out statfs = {0};
	switch (request.header.opcode) {
	case FUSE_INIT:
		answer_init(server, &request.header);
		break;
	case FUSE_LOOKUP:
		answer_lookup(server, &request.header, (const char *)rest);
		break;
	case FUSE_GETATTR:
		reply(server, &request.header, &attr, sizeof attr);
		break;
	case FUSE_STATFS:
		reply(server, &request.header, &statfs, sizeof statfs);
		break;
	case FUSE_OPEN:
		hold(server, HELD_OPEN, &request);
		break;
	case FUSE_READ:
		memcpy(&request.read, rest, sizeof request.read);
		hold(server, HELD_READ, &request);
		break;
	case FUSE_RELEASE:
		reply(server, &request.header, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break; /* want no answer */
	default:
		refuse(server, &request.header, ENOSYS);
	}
}

static void *run_server(void *argument)
{
	struct server *const server = argument;
	for (;;) {
		struct pollfd ready = {.fd = server->fd, .events = POLLIN};
		const int polled = poll(&ready, 1, GUARD_MS);
		if (polled == 0 && server->count[HELD_OPEN] + server->count[HELD_READ] > 0) {
			server->gave_up = true;
			let_go(server, HELD_OPEN);
			let_go(server, HELD_READ);
		}
		if (polled <= 0)
			continue;
		const ssize_t got = read(server->fd, server->buffer, sizeof server->buffer);
		if (got >= (ssize_t)sizeof(struct fuse_in_header))
			serve(server);
		else if (got < 0 && errno == ENODEV)
			return NULL; /* unmounted */
	}
}

static bool write_line(const char *path, const char *line)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool good = fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line);
	if (fd >= 0)
		(void)close(fd);
	return good;
}

/* Mounts of this process alone, also without being root where the kernel allows that. */
static bool unshare_mounts(void)
{
	char users[PATH_BYTES];
	char groups[PATH_BYTES];
	(void)snprintf(users, sizeof users, "0 %u 1", geteuid());
	(void)snprintf(groups, sizeof groups, "0 %u 1", getegid());
	if (geteuid() == 0 ? unshare(CLONE_NEWNS) != 0
			   : unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
				     !write_line("/proc/self/setgroups", "deny") ||
				     !write_line("/proc/self/uid_map", users) ||
				     !write_line("/proc/self/gid_map", groups))
		return false;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static bool server_open(struct server *server, const char *folder)
{
	char options[PATH_BYTES];
	if (!unshare_mounts())
		return false;
	server->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	(void)snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u",
		server->fd, geteuid(), getegid());
	return server->fd >= 0 &&
	       mount("mlbench-test", folder, "fuse", MS_RDONLY | MS_NOSUID | MS_NODEV, options) ==
		       0 &&
	       pthread_create(&server->thread, NULL, run_server, server) == 0;
}

struct scene {
	const char *folder;
	unsigned depth;
};

/* The links of a path are looked up once, so that nothing but the open itself is left to wait for. */
static void look_up(const struct fixture *fixture)
{
	for (uint32_t i = 0; i < fixture->dataset.count; i++) {
		char path[128];
		struct stat st;
		fixture_path(fixture, i, path);
		(void)stat(path, &st);
	}
}

static void leave_out(struct source *source, const void *context)
{
	struct uring_options *const options = &((struct uring_source *)source)->options;
	const unsigned bits = *(const unsigned *)context;
	options->linked &= bits & 1;
	options->direct_descriptors &= bits & 1 || bits & 2;
}

static bool read_all(const struct scene *scene, struct server *server, char *report, size_t room)
{
	char names[DEPTH_MOST][8];
	struct sample samples[DEPTH_MOST];
	struct fixture fixture = {.dataset = {.samples = samples,
					  .count = scene->depth,
					  .max_bytes = FILE_BYTES,
					  .total_bytes = scene->depth * FILE_BYTES}};
	(void)snprintf(fixture.root, sizeof fixture.root, "%s", scene->folder);
	fixture.dataset.root = fixture.root;
	for (unsigned i = 0; i < scene->depth; i++) {
		(void)snprintf(names[i], sizeof names[i], "%u", i);
		samples[i] = (struct sample){.path = names[i], .bytes = FILE_BYTES};
	}
	config_init(&fixture.config);
	fixture_set(&fixture, KEY_READ_ENGINE, "io_uring");
	(void)snprintf(names[0], sizeof names[0], "%u", scene->depth);
	fixture_set(&fixture, KEY_READ_DEPTH, names[0]);
	(void)snprintf(names[0], sizeof names[0], "0");
	look_up(&fixture);
	bool good = true;
	/* Linked; staged with and without direct descriptors. */
	static const unsigned ways[] = {1, 2, 0};
	for (size_t i = 0; i < sizeof ways / sizeof *ways && good; i++) {
		struct fixture_loop loop = {.tune = leave_out, .context = &ways[i]};
		memset(server->most, 0, sizeof server->most);
		fixture_loop(&fixture, &loop);
		good = loop.counts.files == scene->depth && loop.counts.errors == 0 &&
		       server->most[HELD_OPEN] == scene->depth &&
		       server->most[HELD_READ] == scene->depth;
		(void)snprintf(report, room, "way %u: of %u at most %u opens and %u reads: %.300s",
			ways[i], scene->depth, server->most[HELD_OPEN], server->most[HELD_READ],
			loop.notes);
	}
	config_release(&fixture.config);
	return good;
}

static bool check_depth(const void *context, char *report, size_t room)
{
	const struct scene *const scene = context;
	struct server *const server = calloc(1, sizeof *server);
	if (!server)
		return false;
	server->depth = scene->depth;
	if (!server_open(server, scene->folder)) {
		(void)snprintf(
			report, room, "cannot mount a FUSE file system: %s", strerror(errno));
		free(server);
		return false;
	}
	const bool good = read_all(scene, server, report, room);
	if (umount2(scene->folder, MNT_DETACH) == 0)
		(void)pthread_join(server->thread, NULL);
	free(server);
	return good;
}

static void test_depth_where_files_wait(void **state)
{
	(void)state;
	char why[256];
	const char *const reason = uring_unavailable(why, sizeof why);
	if (reason) {
		print_message("skipped: %s\n", reason);
		skip();
	}
	char folder[PATH_BYTES];
	const char *const parent = getenv("TMPDIR");
	(void)snprintf(
		folder, sizeof folder, "%.32s/mlbench-fuse-XXXXXX", parent ? parent : "/tmp");
	assert_non_null(mkdtemp(folder));
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	const unsigned depth = (unsigned)cores * DEPTH_PER_CORE + DEPTH_MORE;
	const struct scene scene = {folder, depth < DEPTH_MOST ? depth : DEPTH_MOST};
	char report[CHILD_REPORT_BYTES];
	const bool good = child_run(check_depth, &scene, report, sizeof report);
	assert_int_equal(rmdir(folder), 0);
	print_message("%s\n", report);
	if (!good && strncmp(report, "cannot", 6) == 0) {
		print_message("skipped: %s\n", report);
		skip();
	}
	assert_true(good);
	assert_non_null(strstr(report, "opens and reads run on kernel threads"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_depth_where_files_wait)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
