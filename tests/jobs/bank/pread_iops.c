//: cause = read/iops or read/device
//: why = the store serves 800 reads a second, whatever the number of threads that wait for them
//: needs = program:cc
//: build = cc -lpthread
//: data = records
//: around = iops:800
//: options = --threads 8 --step-us 4000
//: relieved = iops:0
//: fix = --threads 16
//: fix_twin = decode.workers=16
//: owner = batch.size=64
/* A loader in C: threads that read records at random (pread), and a step on a device. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "common.h"

enum { RECORD = 4096, ROOM = 256, BATCH = 64 };
static int file, ready;
static long records;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *read_records(void *number)
{
	unsigned seed = (unsigned)(long)number + 1;
	char record[RECORD];
	for (;;) {
		if (pread(file, record, RECORD, rand_r(&seed) % records * RECORD) != RECORD)
			exit(1);
		pthread_mutex_lock(&lock);
		while (ready >= ROOM)
			pthread_cond_wait(&changed, &lock);
		ready++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int count, char **words)
{
	struct job job = job_begin(count, words, 1);
	const int threads = atoi(job_option(count, words, "--threads", "8"));
	char path[4096];
	snprintf(path, sizeof path, "%s/records.bin", job.data);
	file = open(path, O_RDONLY);
	records = file < 0 ? 0 : lseek(file, 0, SEEK_END) / RECORD;
	if (records < 1)
		return 2;
	for (long i = 0; i < threads; i++)
		pthread_create(&(pthread_t){0}, NULL, read_records, (void *)i);
	while (job_runs(&job)) {
		const double asked = job_now(CLOCK_MONOTONIC);
		pthread_mutex_lock(&lock);
		while (ready < BATCH)
			pthread_cond_wait(&changed, &lock);
		ready -= BATCH;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		const double waited = job_now(CLOCK_MONOTONIC) - asked;
		usleep((useconds_t)atoi(job_option(count, words, "--step-us", "4000")));
		job_batch(&job, BATCH, waited);
	}
	return 0;
}
