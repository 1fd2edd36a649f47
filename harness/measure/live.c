/* The picture in its file.  It is copied word by word through atomics between two increments of a counter, so that a
 * reader that saw the same even counter before and after has seen one picture; the order comes from release stores and
 * acquire loads, as in state_clock.c.  The file is fully allocated before it is mapped: a full file system is an error
 * message and not a signal. */
#include "harness/measure/live.h"

#include "harness/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- a folder of this user's alone, with a file for each process ------------------------------ */

enum {
	LIVE_BASES = 3,
	LIVE_NAME_ROOM = 32,
	FOLDER_ROOM = 512,      /* of the folder's path */
	FILES_LOOKED_AT = 4096, /* of a folder, at most */
	NAMESPACE_ROOM = 24,
};

#define SUFFIX ".live"

uint64_t live_process_start(int32_t pid)
{
	enum { START_FIELD = 22, FIRST_AFTER_NAME = 3 };
	char path[LIVE_NAME_ROOM];
	char text[1024];
	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	const ssize_t size = read(fd, text, sizeof text - 1);
	(void)close(fd);
	if (size <= 0)
		return 0;
	text[size] = '\0';
	/* The name is in parentheses and may have any character. */
	const char *at = strrchr(text, ')');
	for (int field = FIRST_AFTER_NAME - 1; at && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

/* Folders that the folder may be in, in the order of trying; NULL: not set. */
static void live_bases(const char *bases[LIVE_BASES])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	bases[0] = runtime && runtime[0] == '/' ? runtime : NULL;
	bases[1] = "/dev/shm";
	bases[2] = "/tmp";
}

/* "-4026532201" in a namespace of process numbers of its own, such as a container's, where the same number is another process, and
 * who is outside seems to be gone; "" in the first one. */
static void live_namespace(char out[NAMESPACE_ROOM])
{
	static const ino_t FIRST =
		0xEFFFFFFC; /* PROC_PID_INIT_INO of the kernel's linux/proc_ns.h */
	struct stat st;
	out[0] = '\0';
	if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != FIRST)
		(void)snprintf(out, NAMESPACE_ROOM, "-%ju", (uintmax_t)st.st_ino);
}

/* An open folder that belongs to uid and to nobody else, or -errno with the reason: one that somebody else made
 * beforehand, or a link in its place, is refused. */
static int live_folder_open(const char *base, uid_t uid, bool make, struct error *err)
{
	char path[FOLDER_ROOM];
	char namespace[NAMESPACE_ROOM];
	live_namespace(namespace);
	if ((size_t)snprintf(path, sizeof path, "%s/mlbench-%u%s", base, (unsigned)uid,
		    namespace) >= sizeof path)
		return error_set(err, -ENAMETOOLONG, "the name '%.100s...' is too long", base);
	if (make && mkdir(path, 0700) && errno != EEXIST)
		return error_set_errno(err, errno, "cannot make '%s'", path);
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, errno, "cannot open '%s'", path);
	struct stat st;
	if (fstat(fd, &st) == 0 && st.st_uid == uid && (st.st_mode & 077) == 0)
		return fd;
	(void)close(fd);
	return error_set(err, -EPERM, "'%s' is not private to this user", path);
}

/* The first that this user can have, made where it is not there. */
static int live_folder_own(struct error *err)
{
	const char *bases[LIVE_BASES];
	int fd = -ENOENT;
	live_bases(bases);
	for (size_t i = 0; i < LIVE_BASES && fd < 0; i++)
		if (bases[i])
			fd = live_folder_open(bases[i], geteuid(), true, err);
	return fd;
}

/* "4711.live" */
static void live_file_name(int32_t pid, char out[LIVE_NAME_ROOM])
{
	(void)snprintf(out, LIVE_NAME_ROOM, "%d" SUFFIX, pid);
}

/* The process whose picture has this name; 0: it is no such name. */
static int32_t live_file_pid(const char *name)
{
	char *end;
	const long pid = strtol(name, &end, 10);
	return name[0] >= '1' && name[0] <= '9' && strcmp(end, SUFFIX) == 0 && pid <= INT32_MAX
		       ? (int32_t)pid
		       : 0;
}

/* Calls take for every picture of a folder, so many at most; false from it ends the walk. */
typedef bool live_take(void *context, int folder, const char *name, int32_t pid);
static void live_folder_each(int folder, live_take *take, void *context)
{
	const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again >= 0 ? fdopendir(again) : NULL;
	if (!dir) {
		if (again >= 0)
			(void)close(again);
		return;
	}
	bool more = true;
	for (int seen = 0; more && seen < FILES_LOOKED_AT; seen++) {
		const struct dirent *entry = readdir(dir);
		const int32_t pid = entry ? live_file_pid(entry->d_name) : 0;
		more = entry && (pid == 0 || take(context, folder, entry->d_name, pid));
	}
	(void)closedir(dir);
}

enum {
	WORDS = (sizeof(struct live_view) + sizeof(uint64_t) - 1) / sizeof(uint64_t),
	RETRY_NS = 50000, /* between two looks at a picture that is being written, ... */
	RETRIES = 1000,   /* ... which takes microseconds */
};

static const char MAGIC[8] = "mlblive";

struct live_head {
	char magic[sizeof MAGIC];
	uint32_t version, words;
	uint64_t process_start;
	char program[NAME_BYTES];
};

struct live_file {
	struct live_head head;
	_Alignas(64) atomic_uint sequence; /* odd: being written; 0: nothing was yet */
	_Alignas(64) atomic_uint_least64_t picture[WORDS];
};

struct live_board {
	struct live_file *file; /* mapped by the creator; a copy of one that is attached */
	int attached;           /* the file that is copied at each look; -1: the creator's own */
	int folder;             /* of the creator's, open; -1: none */
	char name[LIVE_NAME_ROOM];
	char hidden[ERROR_TEXT_BYTES]; /* "": others can see it */
};

const char *live_phase_name(enum live_phase phase)
{
	static const char *const names[LIVE_PHASES] = {
		[LIVE_SETTING_UP] = "setting up",
		[LIVE_WARMUP] = "warm-up",
		[LIVE_MEASURING] = "measuring",
		[LIVE_DRAINING] = "draining",
		[LIVE_BETWEEN] = "between repetitions",
		[LIVE_LIMITS] = "limits",
		[LIVE_REPORTING] = "reporting",
		[LIVE_CHOOSING] = "choosing kernels",
	};
	return phase < LIVE_PHASES ? names[phase] : "unknown";
}

static bool proc_is_there(void)
{
	return live_process_start(getpid()) > 0;
}

/* --- files ------------------------------------------------------------------------------------ */

static struct live_file *map_file(int fd)
{
	void *data =
		mmap(NULL, sizeof(struct live_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return data == MAP_FAILED ? NULL : data;
}

static void unmap(struct live_file *file)
{
	(void)munmap(file, sizeof *file);
}

/* Of the process that runs now under that number? */
static bool is_process_of(const struct live_head *head, int32_t pid)
{
	return head->process_start == live_process_start(pid);
}

/* -EPROTO where the head is none that this version reads the picture of. */
static int check_live_head(const struct live_head *head, bool whole, off_t bytes, struct error *err)
{
	if (!whole || memcmp(head->magic, MAGIC, sizeof MAGIC) != 0)
		return error_set(err, -EPROTO, "what it shows is not a picture of a run");
	if (bytes != (off_t)sizeof(struct live_file))
		return error_set(err, -EPROTO,
			"its picture is of another version of mlbench (%.*s), and this one reads its own: %s",
			NAME_BYTES - 1, head->program, MLBENCH_VERSION);
	if (head->version != LIVE_VERSION || head->words != WORDS)
		return error_set(err, -EPROTO,
			"its picture is of layout %u (mlbench %.*s), and this mlbench %s reads %d",
			head->version, NAME_BYTES - 1, head->program, MLBENCH_VERSION,
			LIVE_VERSION);
	return 0;
}

/* A picture in a folder, opened for reading, and its head; -ENOENT, -EPROTO or another errno.  It is read and never
 * mapped: whoever cuts the file short would end this process by a signal. */
static int open_picture(int folder, const char *name, struct live_head *head, struct error *err)
{
	const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, errno, "cannot open its picture");
	struct stat st;
	const bool whole = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
			   pread(fd, head, sizeof *head, 0) == (ssize_t)sizeof *head;
	const int code = check_live_head(head, whole, whole ? st.st_size : 0, err);
	if (code)
		(void)close(fd);
	return code ? code : fd;
}

/* No process of that number runs, or another one than made it. */
static bool is_stale(int folder, const char *name, int32_t pid)
{
	if (live_process_start(pid) == 0)
		return true;
	struct live_head head = {0};
	const int fd = open_picture(folder, name, &head, NULL);
	if (fd < 0)
		return false; /* of another version, maybe: its process is alive */
	(void)close(fd);
	return !is_process_of(&head, pid);
}

static bool remove_stale(void *context, int folder, const char *name, int32_t pid)
{
	(void)context;
	if (is_stale(folder, name, pid))
		(void)unlinkat(folder, name, 0);
	return true;
}

/* Writes the head, under a name that is free because a process of this number is no other than this one. */
static struct live_file *make_live_file(int folder, const char *name, struct error *err)
{
	(void)unlinkat(folder, name, 0);
	const int fd =
		openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		(void)error_set_errno(err, errno, "cannot make '%s'", name);
		return NULL;
	}
	const int code = posix_fallocate(fd, 0, sizeof(struct live_file));
	struct live_file *file = code ? NULL : map_file(fd);
	if (!file) {
		(void)error_set_errno(err, code ? code : errno, "cannot map '%s'", name);
		(void)unlinkat(folder, name, 0);
	}
	(void)close(fd);
	return file;
}

/* --- boards ----------------------------------------------------------------------------------- */

static struct live_file *make_private(void)
{
	void *data = mmap(NULL, sizeof(struct live_file), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return data == MAP_FAILED ? NULL : data;
}

/* The magic at last: another run that starts at this moment looks for stale files, and one without it is not judged. */
static void write_live_head(struct live_file *file)
{
	file->head.version = LIVE_VERSION;
	file->head.words = WORDS;
	file->head.process_start = live_process_start(getpid());
	(void)snprintf(file->head.program, sizeof file->head.program, "%s", MLBENCH_VERSION);
	atomic_thread_fence(memory_order_release);
	memcpy(file->head.magic, MAGIC, sizeof MAGIC);
}

static void show_to_others(struct live_board *board)
{
	struct error err = {0};
	board->folder = live_folder_own(&err);
	if (board->folder >= 0) {
		if (proc_is_there())
			live_folder_each(board->folder, remove_stale, NULL);
		live_file_name(getpid(), board->name);
		board->file = make_live_file(board->folder, board->name, &err);
	}
	if (!board->file)
		(void)snprintf(board->hidden, sizeof board->hidden, "%s", err.text);
}

int live_board_create(struct live_board **out, struct error *err)
{
	struct live_board *board = calloc(1, sizeof *board);
	*out = NULL;
	if (!board)
		return error_set(err, -ENOMEM, "out of memory");
	board->folder = board->attached = -1;
	show_to_others(board);
	if (!board->file)
		board->file = make_private();
	if (!board->file) {
		live_board_close(board);
		return error_set(err, -ENOMEM, "out of memory");
	}
	write_live_head(board->file);
	*out = board;
	return 0;
}

const char *live_board_hidden(const struct live_board *board)
{
	return board->hidden[0] ? board->hidden : NULL;
}

/* Whose process it is; false: there is none. */
static bool find_owner(int32_t pid, uid_t *uid)
{
	char path[LIVE_NAME_ROOM];
	struct stat st;
	(void)snprintf(path, sizeof path, "/proc/%d", pid);
	if (pid <= 0 || stat(path, &st))
		return false;
	*uid = st.st_uid;
	return true;
}

/* The file, opened, or a negative errno. */
static int find_picture(int32_t pid, uid_t uid, struct live_head *head, struct error *err)
{
	const char *bases[LIVE_BASES];
	char name[LIVE_NAME_ROOM];
	struct error why = {0};
	int found = -ENOENT;
	live_file_name(pid, name);
	live_bases(bases);
	for (size_t i = 0; i < LIVE_BASES; i++) {
		const int folder = bases[i] ? live_folder_open(bases[i], uid, false, NULL) : -1;
		if (folder < 0)
			continue;
		struct error reason = {0};
		const int here = open_picture(folder, name, head, &reason);
		(void)close(folder);
		if (here >= 0)
			return here;
		if (here != -ENOENT) {
			found = here;
			why = reason;
		}
	}
	if (found == -ENOENT)
		return error_set(err, -ESRCH,
			"process %d shows no picture: it is not a run of mlbench, or it found no folder to show it in",
			pid);
	return error_set(err, found, "process %d: %.400s", pid, why.text);
}

/* Takes fd. */
static int attach(struct live_board **out, int fd, struct error *err)
{
	struct live_board *board = calloc(1, sizeof *board);
	if (board) {
		board->folder = -1;
		board->attached = fd;
		board->file = aligned_alloc(_Alignof(struct live_file), sizeof *board->file);
	}
	if (!board || !board->file) {
		free(board);
		(void)close(fd);
		return error_set(err, -ENOMEM, "out of memory");
	}
	*out = board;
	return 0;
}

int live_board_attach(struct live_board **out, int32_t pid, struct error *err)
{
	uid_t owner;
	struct live_head head = {0};
	*out = NULL;
	if (!find_owner(pid, &owner))
		return error_set(err, -ESRCH, "there is no process %d", pid);
	if (owner != geteuid() && geteuid() != 0)
		return error_set(err, -EACCES,
			"process %d belongs to another user, who alone can look at it", pid);
	const int fd = find_picture(pid, owner, &head, err);
	if (fd < 0)
		return fd;
	if (is_process_of(&head, pid))
		return attach(out, fd, err);
	(void)close(fd);
	return error_set(err, -ESRCH,
		"process %d is not a run of mlbench; an earlier process with that number was", pid);
}

void live_board_close(struct live_board *board)
{
	if (!board)
		return;
	if (board->name[0] && board->folder >= 0)
		(void)unlinkat(board->folder, board->name, 0);
	if (board->folder >= 0)
		(void)close(board->folder);
	if (board->attached >= 0) {
		(void)close(board->attached);
		free(board->file);
	} else if (board->file) {
		unmap(board->file);
	}
	free(board);
}

/* --- pictures --------------------------------------------------------------------------------- */

/* The view's bytes as words; the last one may be of fewer. */
static uint64_t live_word(const struct live_view *view, size_t i)
{
	const size_t at = i * sizeof(uint64_t);
	const size_t left = sizeof *view - at;
	uint64_t word = 0;
	memcpy(&word, (const char *)view + at, left < sizeof word ? left : sizeof word);
	return word;
}

static void set_word(struct live_view *view, size_t i, uint64_t word)
{
	const size_t at = i * sizeof(uint64_t);
	const size_t left = sizeof *view - at;
	memcpy((char *)view + at, &word, left < sizeof word ? left : sizeof word);
}

void live_board_publish(struct live_board *board, const struct live_view *view)
{
	struct live_file *file = board->file;
	const unsigned sequence = atomic_load_explicit(&file->sequence, memory_order_relaxed);
	atomic_store_explicit(&file->sequence, sequence + 1, memory_order_relaxed);
	for (size_t i = 0; i < WORDS; i++)
		atomic_store_explicit(&file->picture[i], live_word(view, i), memory_order_release);
	/* 0 is kept for "nothing was published". */
	atomic_store_explicit(
		&file->sequence, sequence + 2 ? sequence + 2 : 2, memory_order_release);
}

/* Counts that a reader uses as bounds are held to them, whoever wrote the file; texts end. */
static void sanitise(struct live_view *view)
{
#define AT_MOST(count, most)              \
	do {                              \
		if ((count) > (most))     \
			(count) = (most); \
	} while (0)
	AT_MOST(view->stage_count, STAGES_MAX);
	AT_MOST(view->queue_count, QUEUES_MAX);
	AT_MOST(view->thread_count, LIVE_THREADS_MAX);
	AT_MOST(view->result_count, LIVE_RESULTS_MAX);
#undef AT_MOST
	for (uint32_t i = 0; i < view->thread_count; i++) {
		if (view->threads[i].stage >= STAGES_MAX)
			view->threads[i].stage = STAGES_MAX - 1;
		if (view->threads[i].state >= THREAD_STATES)
			view->threads[i].state = THREAD_STARVED;
	}
	for (size_t i = 0; i < STAGES_MAX; i++)
		view->stages[i].name[NAME_BYTES - 1] = '\0';
	for (size_t i = 0; i < QUEUES_MAX; i++)
		view->queues[i].name[NAME_BYTES - 1] = '\0';
	for (size_t i = 0; i < LIVE_RESULTS_MAX; i++)
		view->results[i].label[LIVE_LABEL_BYTES - 1] = '\0';
	view->version[NAME_BYTES - 1] = view->command[NAME_BYTES - 1] = '\0';
	view->name[LIVE_LABEL_BYTES - 1] = view->label[LIVE_LABEL_BYTES - 1] = '\0';
	view->folder[LIVE_PATH_BYTES - 1] = '\0';
}

/* Bytes of an attached file into the copy of it.  -EPROTO: it ends before them. */
static int copy_bytes(const struct live_board *board, size_t at, size_t size)
{
	if (board->attached < 0)
		return 0;
	const ssize_t n = pread(board->attached, (char *)board->file + at, size, (off_t)at);
	atomic_thread_fence(memory_order_acquire); /* as the loads that it stands for */
	return n == (ssize_t)size ? 0 : -EPROTO;
}

static int read_sequence(const struct live_board *board, unsigned *sequence)
{
	const int code = copy_bytes(
		board, offsetof(struct live_file, sequence), sizeof board->file->sequence);
	*sequence = atomic_load_explicit(&board->file->sequence, memory_order_acquire);
	return code;
}

/* 0; -EAGAIN: it was being written; -EPROTO. */
static int read_once(const struct live_board *board, unsigned before, struct live_view *view)
{
	unsigned after;
	int code =
		copy_bytes(board, offsetof(struct live_file, picture), sizeof board->file->picture);
	for (size_t i = 0; i < WORDS; i++)
		set_word(view, i,
			atomic_load_explicit(&board->file->picture[i], memory_order_acquire));
	if (!code)
		code = read_sequence(board, &after);
	return code ? code : before == after ? 0 : -EAGAIN;
}

int live_board_read(const struct live_board *board, struct live_view *view)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	for (int i = 0; i < RETRIES; i++) {
		unsigned sequence;
		int code = read_sequence(board, &sequence);
		if (!code && sequence == 0)
			return -EAGAIN;
		if (!code)
			code = sequence % 2 == 0 ? read_once(board, sequence, view) : -EAGAIN;
		if (!code)
			sanitise(view);
		if (code != -EAGAIN)
			return code;
		(void)nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

void live_sums_of(const struct live_view *view, struct live_sums *sums)
{
	*sums = (struct live_sums){.t_ns = view->updated_ns,
		.samples = view->samples,
		.batches = view->batches,
		.bad_samples = view->bad_samples,
		.bytes_read = view->bytes_read};
	memcpy(sums->stages, view->stages, sizeof sums->stages);
}

/* --- a list of them --------------------------------------------------------------------------- */

struct listing {
	int32_t *pids;
	size_t count, room;
};

static bool add_live(void *context, int folder, const char *name, int32_t pid)
{
	struct listing *list = context;
	bool known = is_stale(folder, name, pid);
	for (size_t i = 0; i < list->count && !known; i++)
		known = list->pids[i] == pid;
	if (!known && list->count < list->room)
		list->pids[list->count++] = pid;
	return list->count < list->room;
}

static int by_process(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a;
	const int32_t y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

size_t live_board_list(int32_t *pids, size_t room)
{
	const char *bases[LIVE_BASES];
	struct listing list = {.pids = pids, .room = room};
	live_bases(bases);
	for (size_t i = 0; i < LIVE_BASES && room > 0; i++) {
		const int folder =
			bases[i] ? live_folder_open(bases[i], geteuid(), false, NULL) : -1;
		if (folder < 0)
			continue;
		live_folder_each(folder, add_live, &list);
		(void)close(folder);
	}
	qsort(pids, list.count, sizeof *pids, by_process);
	return list.count;
}
