//: cause = read/latency
//: why = each read takes 2 ms and the ring holds one at a time
//: needs = library:liburing
//: build = cc -luring -lpthread
//: data = records
//: around = latency:2000
//: options = --depth 1 --step-us 5000
//: relieved = latency:0
//: fix = --depth 8
//: fix_twin = read.depth=8
//: owner = batch.size=32
/* A trainer in C with one thread that reads records at random through io_uring, and a step on a device. */
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <unistd.h>

#include "common.h"

enum { RECORD = 4096, ROOM = 128, BATCH = 32, DEPTH_MOST = 64 };
static int file, ready, depth;
static long records;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *read_records(void *unused)
{
	static char buffers[DEPTH_MOST][RECORD];
	struct io_uring ring;
	struct io_uring_cqe *done;
	int flying = 0;
	if (io_uring_queue_init((unsigned)depth, &ring, 0) < 0)
		exit(1);
	for (unsigned next = 0;;) {
		for (; flying < depth; flying++, next++)
			io_uring_prep_read(io_uring_get_sqe(&ring), file, buffers[next % (unsigned)depth], RECORD, (unsigned)(rand() % records * RECORD));
		io_uring_submit(&ring);
		if (io_uring_wait_cqe(&ring, &done) < 0)
			continue;
		if (done->res != RECORD)
			exit(1);
		io_uring_cqe_seen(&ring, done);
		flying--;
		pthread_mutex_lock(&lock);
		while (ready >= ROOM)
			pthread_cond_wait(&changed, &lock);
		ready++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int count, char **words)
{
	struct job job = job_begin(count, words, 1);
	char path[4096];
	snprintf(path, sizeof path, "%s/records.bin", job.data);
	file = open(path, O_RDONLY);
	records = file < 0 ? 0 : lseek(file, 0, SEEK_END) / RECORD;
	depth = atoi(job_option(count, words, "--depth", "1"));
	if (records < 1 || depth < 1 || depth > DEPTH_MOST)
		return 2;
	pthread_create(&(pthread_t){0}, NULL, read_records, NULL);
	while (job_runs(&job)) {
		const double asked = job_now(CLOCK_MONOTONIC);
		pthread_mutex_lock(&lock);
		while (ready < BATCH)
			pthread_cond_wait(&changed, &lock);
		ready -= BATCH;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		const double waited = job_now(CLOCK_MONOTONIC) - asked;
		usleep((useconds_t)atoi(job_option(count, words, "--step-us", "5000")));
		job_batch(&job, BATCH, waited);
	}
	return 0;
}
