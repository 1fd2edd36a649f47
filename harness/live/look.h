/* What the kernel says of a process and its threads, from /proc alone: nothing is sent to it, traced or stopped.
 *
 * The control thread publishes a picture of the run at the edges of windows
 * (harness/measure/live.h: ten a second at most, one a second at least; pipelines/live_feed.c
 * fills it from the same snapshot that the window gets). It lies in a mapped file,
 * $XDG_RUNTIME_DIR (or /dev/shm, /tmp) /mlbench-UID/PID.live (mlbench-UID-NAMESPACE where
 * processes have numbers of their own, as in a container), behind a sequence lock in atomics, so
 * that readers wait for nothing and hold up nothing. A folder that is not this user's alone is
 * not used; a run goes on without a file, with its picture in its own memory. Another process
 * reads the file and never maps it: cutting it short would end the reader with SIGBUS. Files that
 * a killed process left are cleared away by the next run; a picture carries its process's start
 * time, so that a number that was used again is found out.
 *
 * Three readers share it. mlbench status looks from another process, at the picture and at /proc
 * alone: no signal, no tracing. harness/live/stall.c says whether the run goes on, and else what
 * everything waits for: from the step up, as long as all threads of a stage are starved, to the
 * one with a thread at work that finishes nothing. Between repetitions' pictures (opening data,
 * draining, saving, the report) only the kernel can tell: a process of which nothing has run for
 * a quarter of a second, seconds into a phase, is stuck, and the thread that waits for a file
 * or a device is named. --listen serves it as OpenMetrics on loopback (libmicrohttpd, 8
 * connections, 5 s). --watch draws it from a thread of its own (harness/live/watch.c): draw.c
 * fills a canvas of any size, terminal.c shows it through ncurses. The run never waits for a
 * terminal: it is opened, written and left by that thread, which is left behind when it does not
 * come back; stderr goes into memory that cannot grow. terminal_guard.c has that, and keeps the
 * bytes and modes that give the terminal back where a signal's handler can use them.
 *
 * The verdict as it forms (harness/analyze/bottleneck.c) is the difference of two pictures,
 * made into a measurement and judged by the rules of verdict_of_point, without a replay. */
#ifndef MLBENCH_LIVE_LOOK_H
#define MLBENCH_LIVE_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOOK_NAME_BYTES = 48, LOOK_FILE_BYTES = 512, LOOK_WORDS_BYTES = 256 };

struct thread_look {
	int32_t tid;
	char state; /* 'R', 'S', 'D', 'T', 't', 'Z', 'X', 'I'; 0: it is gone, or cannot be seen */
	char name[LOOK_NAME_BYTES];    /* of the thread */
	char place[LOOK_NAME_BYTES];   /* where it sleeps in the kernel (wchan); "": not told */
	char call[LOOK_NAME_BYTES];    /* the system call that it is in; "": none, or not told */
	char file[LOOK_FILE_BYTES];    /* that the call is on; "" */
	char unknown[LOOK_NAME_BYTES]; /* why place or call are not told; "" */
};

struct process_look {
	bool there;
	char state; /* of its first thread */
	char name[LOOK_NAME_BYTES];
	uint32_t threads;
};

void look_at_process(int32_t pid, struct process_look *out);
void look_at_thread(int32_t pid, int32_t tid, struct thread_look *out);

/* Numbers of its threads, ascending, at most room; how many. */
size_t look_list_threads(int32_t pid, int32_t *tids, size_t room);

/* Whether nothing of the process runs: neither its first thread nor, but for a little, any other did so while this took, a quarter of
 * a second.  Then waits is the thread to look at: the first where that waits for the kernel, else one that does.  The caller does not
 * count where it is of that process. */
bool look_stands_still(int32_t pid, struct thread_look *waits);

/* "running", "sleeping in io_uring_enter", "in uninterruptible sleep (D) in nfs_wait_bit_killable, read of '/mnt/a.jpg'" */
const char *look_words(const struct thread_look *look, char out[LOOK_WORDS_BYTES]);

#endif
