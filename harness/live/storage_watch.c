/* The thread that looks after the others. */
#include "harness/live/storage_watch.h"

#include "harness/base/bounded.h"
#include "harness/base/clock.h"
#include "harness/live/front.h"
#include "harness/live/look.h"
#include "harness/measure/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	LOOK_MS = 500,
	LOOKS_TAKE = 4,    /* that a signal may wait for the main thread */
	LOOKS_END = 20,    /* that the main thread may take to heed it */
	LOOKS_THREADS = 4, /* from one look at all threads to the next */
	SILENT_S =
		30, /* in the middle there is more to lose than at the start, and servers fail over */
	THREADS_MAX = 1024,
	PATHS_MAX = 32,
	FILES_MAX = 8,
	SPEAK_MS = 2000,
	SPEAK_LOOK_MS = 10,
};

/* A thread that has not run since. */
struct watched {
	int32_t tid;
	double switches;
	uint64_t since_ns;
};

static const struct storage_watch_calls *calls;
static pthread_mutex_t paths_lock = PTHREAD_MUTEX_INITIALIZER;
static char *paths[PATHS_MAX]; /* that the command is about */
static size_t path_count;
static size_t threads_begun = 1; /* with those of the watch */

/* How often a thread gave up its core; NAN: not known. */
static double watch_switches(int32_t tid)
{
	char path[64];
	char text[4096];
	double voluntary = (double)NAN;
	(void)snprintf(path, sizeof path, "/proc/self/task/%d", (int)tid);
	const int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0 && proc_text_at(folder, text, sizeof text, "status") == 0)
		(void)parse_field_number(text, "voluntary_ctxt_switches", &voluntary);
	if (folder >= 0)
		(void)close(folder);
	return voluntary;
}

/* --- what is done beside ------------------------------------------------------------------------ */

static struct {
	sem_t wanted;
	const char *paths[FILES_MAX + PATHS_MAX];
	size_t count;
	atomic_size_t answered;
	atomic_int tid;
} asker;

static struct {
	sem_t wanted;
	int status;
	const char *why;
	atomic_bool done;
} speaker;

static void watch_wait(sem_t *wanted)
{
	while (sem_wait(wanted) != 0)
		;
}

static void *watch_ask_all(void *unused)
{
	atomic_store(&asker.tid, gettid());
	(void)path_touch("/"); /* its stack is there from now on */
	for (;;) {
		watch_wait(&asker.wanted);
		const size_t count = asker.count;
		for (size_t i = 0; i < count; i++) {
			(void)path_touch(asker.paths[i]);
			atomic_fetch_add(&asker.answered, 1);
		}
	}
	return unused;
}

static void *watch_speak(void *unused)
{
	watch_wait(&speaker.wanted);
	calls->say(speaker.status, speaker.why);
	atomic_store(&speaker.done, true);
	return unused;
}

static void watch_end(int status, const char *why)
{
	speaker.status = status;
	speaker.why = why;
	(void)sem_post(&speaker.wanted);
	for (int ms = 0; ms < SPEAK_MS && !atomic_load(&speaker.done); ms += SPEAK_LOOK_MS)
		clock_sleep_until_ns(clock_now_ns() + SPEAK_LOOK_MS * NS_PER_MS);
	calls->end(status);
}

/* A thread that no signal comes to; it ends with the process. */
static void watch_start_thread(void *(*work)(void *))
{
	pthread_t thread;
	pthread_attr_t attributes;
	sigset_t all;
	sigset_t before;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	if (pthread_attr_init(&attributes) == 0) {
		(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		(void)pthread_create(&thread, &attributes, work, NULL);
		(void)pthread_attr_destroy(&attributes);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- signals that wait -------------------------------------------------------------------------- */

struct watched_signals {
	int pending; /* looks at which one waited */
	int stuck;   /* looks since one was taken, at which the main thread had not run */
	double before;
};

/* Takes one of them, if the main thread has not. */
static void watch_take(void)
{
	const struct timespec none = {0};
	siginfo_t info;
	sigset_t ends;
	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGTERM);
	if (sigtimedwait(&ends, &info, &none) > 0)
		calls->take(&info);
}

static bool watch_sees_signal(void)
{
	sigset_t pending;
	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM));
}

static void watch_signals(struct watched_signals *w)
{
	w->pending = watch_sees_signal() ? w->pending + 1 : 0;
	if (w->pending >= LOOKS_TAKE || (w->pending > 0 && w->stuck > 0)) {
		watch_take();
		w->before = watch_switches(getpid());
		w->stuck = 1;
	} else if (w->stuck > 0) {
		w->stuck = watch_switches(getpid()) == w->before ? w->stuck + 1 : 0;
	}
	if (w->stuck > LOOKS_END)
		watch_end(EXIT_STATUS_INTERRUPTED,
			"a call into the kernel does not return, as of storage that does not answer: "
			"ended without it");
}

/* --- threads that hang -------------------------------------------------------------------------- */

/* Files that threads hang on. */
struct watched_files {
	char names[FILES_MAX][LOOK_FILE_BYTES];
	size_t count;
};

/* Whether a thread may be waiting for storage; files, if given: adds its file, where the kernel says which. */
static bool watch_is_storage(int32_t tid, struct watched_files *files)
{
	/* Of a ring or a page it does not say it, and a file is out of the table when close asks its server. */
	static const char *const silent[] = {"io_uring_enter", "close", "mmap", "munmap"};
	struct thread_look look;
	look_at_thread(getpid(), tid, &look);
	if ((look.state != 'D' && look.state != 'S') || strncmp(look.file, "/dev/", 5) == 0)
		return false;
	if (files && look.file[0] == '/' && files->count < FILES_MAX) {
		char *name = files->names[files->count++];
		(void)snprintf(name, LOOK_FILE_BYTES, "%s", look.file);
		if (strlen(name) + 1 == LOOK_FILE_BYTES)
			*strrchr(name, '/') = '\0'; /* its folder is on the same storage */
	}
	bool storage = look.file[0] == '/' || (!look.call[0] && !look.unknown[0]);
	for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
		storage = storage || strcmp(look.call, silent[i]) == 0;
	return storage;
}

/* What is known of a thread from the look before; NULL: nothing. */
static struct watched *watch_find(struct watched *list, size_t count, int32_t tid)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].tid == tid)
			return &list[i];
	return NULL;
}

struct watched_threads {
	struct watched list[THREADS_MAX];
	size_t count;
	uint64_t hung_ns; /* since when the first of those hangs that storage may hold; 0: none */
	bool asking;
	uint64_t asked_ns; /* the last time */
	size_t answered;   /* the asker's progress, ... */
	double switches;
	uint64_t since_ns; /* ... and when there was some */
};

/* Asks the files, and what the command is about. */
static void watch_ask(struct watched_threads *w, const struct watched_files *files)
{
	asker.count = 0;
	for (size_t i = 0; i < files->count; i++)
		asker.paths[asker.count++] = files->names[i];
	(void)pthread_mutex_lock(&paths_lock);
	for (size_t i = 0; i < path_count; i++)
		asker.paths[asker.count++] = paths[i];
	(void)pthread_mutex_unlock(&paths_lock);
	atomic_store(&asker.answered, 0);
	w->asking = true;
	w->answered = 0;
	w->switches = (double)NAN;
	w->asked_ns = w->since_ns = clock_now_ns();
	(void)sem_post(&asker.wanted);
}

/* Time is anew whenever the asker gets on.  Storage is slow, not silent, if those that hung when it was asked do. */
static void watch_answers(struct watched_threads *w)
{
	const uint64_t now_ns = clock_now_ns();
	const size_t answered = atomic_load(&asker.answered);
	const double switches = watch_switches(atomic_load(&asker.tid));
	const bool stopped = atomic_load(calls->stop);
	const unsigned silent_s = stopped ? PATH_ANSWER_S : SILENT_S;
	struct error err;
	w->asking = answered < asker.count;
	if (answered > w->answered || switches != w->switches) {
		w->answered = answered;
		w->switches = switches;
		w->since_ns = now_ns;
	}
	if (!w->asking || w->hung_ns == 0 || w->hung_ns > w->asked_ns ||
		now_ns - w->since_ns < silent_s * NS_PER_S)
		return;
	(void)path_refuse_silent(asker.paths[answered], silent_s, &err);
	watch_end(stopped ? EXIT_STATUS_INTERRUPTED : EXIT_STATUS_CANNOT, err.text);
}

static void watch_threads(struct watched_threads *w)
{
	static int32_t tids[THREADS_MAX];
	static struct watched now[THREADS_MAX];
	static struct watched_files files;
	const uint64_t now_ns = clock_now_ns();
	size_t all = look_list_threads(getpid(), tids, THREADS_MAX);
	if (!w->asking)
		files.count = 0;
	w->hung_ns = 0;
	all = all < THREADS_MAX ? all : THREADS_MAX;
	for (size_t i = 0; i < all; i++) {
		const struct watched *before = watch_find(w->list, w->count, tids[i]);
		now[i] = (struct watched){
			.tid = tids[i], .switches = watch_switches(tids[i]), .since_ns = now_ns};
		if (before && before->switches == now[i].switches)
			now[i].since_ns = before->since_ns;
		if (tids[i] != atomic_load(&asker.tid) &&
			now_ns - now[i].since_ns >= PATH_ANSWER_S * NS_PER_S &&
			watch_is_storage(tids[i], w->asking ? NULL : &files) &&
			(w->hung_ns == 0 || now[i].since_ns < w->hung_ns))
			w->hung_ns = now[i].since_ns;
	}
	memcpy(w->list, now, all * sizeof *now);
	w->count = all;
	if (w->hung_ns > 0 && !w->asking && now_ns - w->asked_ns >= PATH_ANSWER_S * NS_PER_S)
		watch_ask(w, &files);
}

static void *watch_all(void *unused)
{
	static struct watched_threads threads;
	struct watched_signals signals = {.before = (double)NAN};
	for (unsigned looks = 1;; looks++) {
		clock_sleep_until_ns(clock_now_ns() + LOOK_MS * NS_PER_MS);
		watch_signals(&signals);
		if (looks % LOOKS_THREADS == 0)
			watch_threads(&threads);
		if (threads.asking)
			watch_answers(&threads);
	}
	return unused;
}

void storage_watch_begin(const struct storage_watch_calls *given)
{
	calls = given;
	if (sem_init(&asker.wanted, 0, 0) != 0 || sem_init(&speaker.wanted, 0, 0) != 0)
		return;
	watch_start_thread(watch_ask_all);
	watch_start_thread(watch_speak);
	watch_start_thread(watch_all);
	threads_begun = look_list_threads(getpid(), NULL, 0);
}

/* --- paths -------------------------------------------------------------------------------------- */

static void watch_keep(const char *path)
{
	char *copy = path && *path && !strstr(path, "://") ? strdup(path) : NULL;
	(void)pthread_mutex_lock(&paths_lock);
	if (copy && path_count < PATHS_MAX)
		paths[path_count++] = copy;
	else
		free(copy);
	(void)pthread_mutex_unlock(&paths_lock);
}

int storage_watch_paths(
	const char *const *asked, size_t count, const atomic_bool *stop, struct error *err)
{
	bool served = false;
	const int code = paths_answer_and_tell(asked, count, stop, &served, err);
	if (code)
		return code;
	for (size_t i = 0; i < count; i++)
		watch_keep(asked[i]);
	if (served && front_begin(threads_begun) && calls)
		storage_watch_begin(calls);
	return 0;
}
