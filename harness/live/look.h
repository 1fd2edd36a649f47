/* What the kernel says of a process and its threads, from /proc alone: nothing is sent to it, traced or stopped. */
#ifndef MLBENCH_LIVE_LOOK_H
#define MLBENCH_LIVE_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOOK_NAME_BYTES = 48, LOOK_FILE_BYTES = 160, LOOK_WORDS_BYTES = 256 };

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
