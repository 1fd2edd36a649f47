/* A job in one process and without an interpreter, as tf.data and DALI build theirs: threads that read, threads that decode, a
 * trainer, queues with a bound between them, and a pool of threads that never have anything to do.
 *
 *   pool_job FOLDER READERS DECODERS DECODE_US STEP_US IDLE
 *
 * Times are CPU times; other load does not shorten the work. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_ROOM = 8, FILES_MAX = 4096 };

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int count;
};

static struct queue blobs = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static struct queue samples = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static char *files[FILES_MAX];
static int file_count;
static long decode_us;

static void queue_change(struct queue *queue, int by)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->count + by < 0 || queue->count + by > QUEUE_ROOM)
		pthread_cond_wait(&queue->changed, &queue->lock);
	queue->count += by;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

static long spent_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void spend(long us)
{
	const long end = spent_us() + us;
	while (spent_us() < end)
		for (volatile int i = 0; i < 2000; i++)
			;
}

static void *read_files(void *first)
{
	static __thread char text[1 << 16];
	for (int i = (int)(long)first;; i = (i + 7) % file_count) {
		const int fd = open(files[i], O_RDONLY);
		while (read(fd, text, sizeof text) > 0)
			;
		close(fd);
		queue_change(&blobs, 1);
	}
	return NULL;
}

static void *decode(void *unused)
{
	(void)unused;
	for (;;) {
		queue_change(&blobs, -1);
		spend(decode_us);
		queue_change(&samples, 1);
	}
	return NULL;
}

static void *wait_for_nothing(void *unused)
{
	static struct queue none = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
	(void)unused;
	queue_change(&none, -1);
	return NULL;
}

static void begin(int count, void *(*work)(void *))
{
	pthread_t thread;
	for (long i = 0; i < count; i++)
		if (pthread_create(&thread, NULL, work, (void *)(i * 31 % file_count)))
			exit(1);
}

int main(int argc, char **argv)
{
	DIR *folder = argc == 7 ? opendir(argv[1]) : NULL;
	const struct dirent *e;
	if (!folder)
		return 2;
	while ((e = readdir(folder)) && file_count < FILES_MAX) {
		char path[4096];
		snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
		if (e->d_name[0] != '.')
			files[file_count++] = strdup(path);
	}
	if (file_count == 0)
		return 2;
	decode_us = atol(argv[4]);
	begin(atoi(argv[2]), read_files);
	begin(atoi(argv[3]), decode);
	begin(atoi(argv[6]), wait_for_nothing);
	puts("started");
	fflush(stdout);
	for (;;) {
		queue_change(&samples, -1);
		spend(atol(argv[5]));
	}
}
