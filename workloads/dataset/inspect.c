/* Many at once: a few threads with a ring each, or, where io_uring cannot be had, a thread for
 * each request in flight. */
#include "workloads/dataset/inspect.h"

#include "workloads/dataset/inspect_file.h"
#include "workloads/dataset/inspect_ring.h"
#include "workloads/dataset/threads.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* The first 64 KiB of a file are nearly always enough; what they are not enough for is
	 * read again, with eight times as much of each. */
	HEAD_BYTES = 64 * 1024,
	HEAD_GROWTH = 8,
	/* More threads than read headers at the speed of memory bring nothing: rings are for
	 * depth. */
	RING_THREADS_MAX = 16,
};

/* Of all beginnings in memory at once. */
static const size_t HEADS_BYTES_MAX = 256 << 20;

static int inspect_by_calls(struct inspect_job *job, struct error *err)
{
	struct inspection inspection = {
		.job = job, .head = job->headers ? malloc(job->room) : NULL};
	int code = 0;
	if (job->headers && !inspection.head) {
		atomic_store(&job->failed, true);
		return error_set(err, -ENOMEM, "no memory for the beginning of a file");
	}
	while (!code && inspect_begin(&inspection))
		code = inspect_plainly(&inspection, err);
	free(inspection.head);
	return code;
}

/* Each thread has one item: as many files as there are for it. */
static int inspect_work(void *context, unsigned worker, uint64_t index, struct error *err)
{
	struct inspect_job *const job = context;
	(void)worker;
	(void)index;
	int code = 0;
	return job->ring && inspect_by_ring(job, &code, err) ? code : inspect_by_calls(job, err);
}

static int inspect_tick(void *context, uint64_t done, struct error *err)
{
	struct inspect_job *const job = context;
	const struct dataset_control *const control = job->scan->control;
	(void)done;
	(void)err;
	if (control->progress)
		control->progress(control->context, atomic_load(&job->done), job->count, 0);
	return 0;
}

static unsigned inspect_least(size_t a, size_t b)
{
	return (unsigned)(a < b ? a : b);
}

static unsigned inspect_threads(const struct inspect_job *job)
{
	unsigned threads = job->depth;
	if (job->ring)
		threads = inspect_least(team_threads(job->scan->control->threads),
			inspect_least(RING_THREADS_MAX, job->depth));
	return inspect_least(threads, job->count);
}

static void count_effort(struct inspect_job *job)
{
	struct dataset_effort *const effort = &job->scan->effort;
	const unsigned most = atomic_load(&job->most_in_flight);
	effort->sized += atomic_load(&job->sized);
	effort->headers += atomic_load(&job->read);
	effort->ring = effort->ring || atomic_load(&job->ringed);
	if (most > effort->most_in_flight)
		effort->most_in_flight = most;
}

/* All files of the job, with so much of each one's beginning. */
static int inspect_round(struct inspect_job *job, size_t room, struct error *err)
{
	const size_t heads = HEADS_BYTES_MAX / room;
	job->room = room;
	job->depth = inspect_least(job->scan->depth, job->headers ? heads : job->scan->depth);
	job->ring = job->scan->ring;
	job->threads = inspect_threads(job);
	job->lanes = job->depth;
	job->lane = (job->count + job->lanes - 1) / job->lanes;
	atomic_store(&job->next, 0);
	atomic_store(&job->done, 0);
	const struct team_job team = {
		.count = job->threads,
		.item = inspect_work,
		.tick = inspect_tick,
		.context = job,
		.stop = job->scan->control->stop,
		.threads = job->threads,
	};
	const int code = job->count ? team_run(&team, err) : 0;
	return !code && scan_stopped(job->scan) ? error_set(err, -EINTR, "stopped") : code;
}

/* Those whose beginning was too short: how many, and where there is room for them, which. */
static size_t find_cut(const struct inspect_job *job, size_t *cut)
{
	size_t count = 0;
	for (size_t i = 0; i < job->count; i++) {
		const size_t at = job->which ? job->which[i] : i;
		if (!job->files[at].cut)
			continue;
		if (cut)
			cut[count] = at;
		count++;
	}
	return count;
}

/* Rounds until no beginning is too short.  The list of each lies where that of the one before
 * did, which was no shorter. */
static int inspect_cut(struct inspect_job *job, struct error *err)
{
	const size_t first = find_cut(job, NULL);
	size_t *const cut = calloc(first + 1, sizeof *cut);
	int code = cut ? 0 : error_set(err, -ENOMEM, "no memory for a list of files");
	for (size_t room = HEAD_BYTES * HEAD_GROWTH; !code; room *= HEAD_GROWTH) {
		job->count = find_cut(job, cut);
		job->which = cut;
		if (job->count == 0)
			break;
		for (size_t i = 0; i < job->count; i++)
			job->files[cut[i]].cut = false;
		code = inspect_round(job, room, err);
	}
	free(cut);
	return code;
}

int inspect_files(struct folder_scan *scan, struct found *files, const size_t *which, size_t count,
	bool headers, struct error *err)
{
	struct inspect_job job = {
		.scan = scan, .files = files, .which = which, .count = count, .headers = headers};
	(void)pthread_mutex_init(&job.lock, NULL);
	int code = inspect_round(&job, HEAD_BYTES, err);
	if (!code && headers)
		code = inspect_cut(&job, err);
	(void)pthread_mutex_destroy(&job.lock);
	count_effort(&job);
	if (code == -EINTR)
		(void)error_set(
			err, code, "stopped while the files of '%s' were looked at", scan->root);
	return code;
}
