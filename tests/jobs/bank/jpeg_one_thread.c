//: cause = loader/cpu
//: why = one thread decodes all files for a step that takes a fifth of that time
//: needs = library:libjpeg
//: build = cc -ljpeg -lpthread
//: data = photos
//: options = --threads 1 --step-us 2000
//: relieved = --scale 8
//: fix = --threads 2
//: fix_twin = decode.workers=2
//: owner = batch.size=32
/* A loader in C: threads that read and decode with libjpeg-turbo, a bounded queue, a step on a device. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#include "common.h"
#include <jpeglib.h>

enum { FILES = 4096, ROOM = 64, BATCH = 32 };
static char *files[FILES];
static int file_count, next_file, ready, scale;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void decode(const char *path)
{
	static __thread unsigned char row[3 * 8192];
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	FILE *const file = fopen(path, "rb");
	if (!file)
		exit(1);
	jpeg.err = jpeg_std_error(&errors);
	jpeg_create_decompress(&jpeg);
	jpeg_stdio_src(&jpeg, file);
	jpeg_read_header(&jpeg, TRUE);
	jpeg.scale_num = 1, jpeg.scale_denom = (unsigned)scale;
	jpeg_start_decompress(&jpeg);
	while (jpeg.output_scanline < jpeg.output_height)
		jpeg_read_scanlines(&jpeg, &(JSAMPROW){row}, 1);
	jpeg_finish_decompress(&jpeg);
	jpeg_destroy_decompress(&jpeg);
	fclose(file);
}

static void *work(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		const char *const path = files[next_file++ % file_count];
		pthread_mutex_unlock(&lock);
		decode(path);
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
	struct dirent **entries;
	const int found = scandir(job.data, &entries, NULL, alphasort);
	for (int i = 0; i < found && file_count < FILES; i++)
		if (strstr(entries[i]->d_name, ".jpg") && asprintf(&files[file_count], "%s/%s", job.data, entries[i]->d_name) > 0)
			file_count++;
	if (file_count == 0)
		return 2;
	scale = atoi(job_option(count, words, "--scale", "1"));
	const int threads = atoi(job_option(count, words, "--threads", "1"));
	for (int i = 0; i < threads; i++)
		pthread_create(&(pthread_t){0}, NULL, work, NULL);
	while (job_runs(&job)) {
		const double asked = job_now(CLOCK_MONOTONIC);
		for (int sample = 0; sample < BATCH; sample++) {
			pthread_mutex_lock(&lock);
			while (ready == 0)
				pthread_cond_wait(&changed, &lock);
			ready--;
			pthread_cond_broadcast(&changed);
			pthread_mutex_unlock(&lock);
		}
		const double waited = job_now(CLOCK_MONOTONIC) - asked;
		usleep((useconds_t)atoi(job_option(count, words, "--step-us", "2000")));
		job_batch(&job, BATCH, waited);
	}
	return 0;
}
