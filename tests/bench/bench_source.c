/* The sources alone, driven through their own interface: whole files, each opened and closed.  One
 * measurement a call, so that a script can put others in between (bench_source.sh).
 *
 *   bench_source make DIR FILES BYTES
 *   bench_source read DIR FILES BYTES SECONDS [workers=on|off] key=value …   (keys of the configuration)
 *   bench_source memory DIR FILES BYTES SECONDS
 *   bench_source probe DIR DEPTH BYTES SECONDS           (reads of `mlbench probe`: random, direct, of a scratch file in DIR)
 */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/memory.h"
#include "harness/base/rng.h"
#include "harness/config/config.h"
#include "workloads/source/probe_read.h"
#include "workloads/source/uring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
	FOLDERS = 10,
	PATH_ROOM = 32,
	BATCH = 32,
	THREADS_MAX = 64,
	DEPTH_MAX = 256,
	HUGE_PAGE_BYTES = 2 << 20
};

static const char WORKERS[] = "workers=";

struct set {
	struct dataset dataset;
	char (*paths)[PATH_ROOM];
};

static void set_open(struct set *set, char *root, size_t files, size_t bytes)
{
	*set = (struct set){.paths = calloc(files, PATH_ROOM)};
	set->dataset = (struct dataset){.root = root,
		.count = files,
		.max_bytes = bytes,
		.total_bytes = files * bytes,
		.samples = calloc(files, sizeof(struct sample))};
	if (!set->paths || !set->dataset.samples) {
		fprintf(stderr, "bench_source: out of memory\n");
		exit(1);
	}
	for (size_t i = 0; i < files; i++) {
		(void)snprintf(set->paths[i], PATH_ROOM, "c%zu/%zu.bin", i % FOLDERS, i);
		set->dataset.samples[i] = (struct sample){.path = set->paths[i], .bytes = bytes};
	}
}

static void set_close(struct set *set)
{
	free(set->paths);
	free(set->dataset.samples);
}

static int make(const struct set *set)
{
	struct error err;
	const size_t bytes = (size_t)set->dataset.max_bytes;
	uint64_t *const data = malloc(bytes + sizeof *data);
	if (!data)
		return 1;
	struct rng rng;
	rng_init(&rng, 1, 0);
	for (size_t i = 0; i <= bytes / sizeof *data; i++)
		data[i] = rng_next(&rng);
	int code = 0;
	for (size_t i = 0; i < set->dataset.count && !code; i++) {
		char path[4096];
		(void)snprintf(path, sizeof path, "%s/c%zu", set->dataset.root, i % FOLDERS);
		if (i < FOLDERS)
			code = files_make_folder(path, &err);
		(void)snprintf(path, sizeof path, "%s/%s", set->dataset.root, set->paths[i]);
		if (!code)
			code = files_write_atomic(path, data, bytes, &err);
	}
	free(data);
	if (code)
		fprintf(stderr, "bench_source: %s\n", err.text);
	return code ? 1 : 0;
}

struct job {
	struct source *source;
	const struct dataset *dataset;
	uint8_t *blobs;
	size_t room;
	unsigned index, threads, depth;
	uint64_t until_ns, files, bytes;
	bool failed;
	pthread_t thread;
	pthread_barrier_t *start;
};

/* Keeps depth files in flight, in a new random order each epoch, until a time. */
static void read_on(struct job *job, struct reader *reader)
{
	struct read_request requests[DEPTH_MAX];
	struct read_request *idle[DEPTH_MAX];
	const uint32_t share = (uint32_t)(job->dataset->count / job->threads);
	uint32_t *const order = malloc(share * sizeof *order);
	struct rng rng;
	rng_init(&rng, 5, job->index);
	size_t idle_count = job->depth;
	for (unsigned i = 0; i < job->depth; i++) {
		requests[i] = (struct read_request){
			.buffer = job->blobs + i * job->room, .room = job->room};
		idle[i] = &requests[i];
	}
	uint32_t next = share;
	bool more = order != NULL;
	while (more || idle_count < job->depth) {
		while (more && idle_count > 0) {
			if (next == share) {
				rng_permutation(&rng, order, share);
				next = 0;
			}
			struct read_request *const request = idle[--idle_count];
			request->sample = job->index * share + order[next++];
			source_submit(reader, request);
		}
		const size_t done =
			source_reap(reader, idle + idle_count, job->depth - idle_count, NS_PER_S);
		for (size_t i = 0; i < done; i++) {
			job->failed |= idle[idle_count + i]->status != 0;
			job->bytes += idle[idle_count + i]->size;
		}
		job->files += done;
		idle_count += done;
		more = more && clock_now_ns() < job->until_ns;
	}
	free(order);
}

static void *read_job(void *argument)
{
	struct job *const job = argument;
	struct reader *reader;
	struct error err;
	job->failed = source_reader_open(&reader, job->source, job->index, &err) != 0;
	(void)pthread_barrier_wait(job->start); /* opened */
	(void)pthread_barrier_wait(job->start); /* the clock runs */
	if (!job->failed)
		read_on(job, reader);
	(void)pthread_barrier_wait(job->start); /* measured */
	if (!job->failed)
		source_reader_close(reader);
	return NULL;
}

static double cpu_us(void)
{
	struct rusage usage;
	(void)getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static bool run_jobs(struct job *jobs, unsigned threads, double seconds, const char *notes)
{
	pthread_barrier_t start;
	(void)pthread_barrier_init(&start, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		jobs[i].start = &start;
		if (pthread_create(&jobs[i].thread, NULL, read_job, &jobs[i]) != 0)
			exit(1);
	}
	(void)pthread_barrier_wait(&start);
	const uint64_t start_ns = clock_now_ns();
	const double start_cpu = cpu_us();
	for (unsigned i = 0; i < threads; i++)
		jobs[i].until_ns = start_ns + (uint64_t)(seconds * 1e9);
	(void)pthread_barrier_wait(&start);
	(void)pthread_barrier_wait(&start);
	const double cpu = cpu_us() - start_cpu;
	const double wall = (double)(clock_now_ns() - start_ns) / 1e9;
	uint64_t files = 0;
	uint64_t bytes = 0;
	bool failed = false;
	for (unsigned i = 0; i < threads; i++) {
		(void)pthread_join(jobs[i].thread, NULL);
		files += jobs[i].files;
		bytes += jobs[i].bytes;
		failed |= jobs[i].failed;
	}
	(void)pthread_barrier_destroy(&start);
	printf("MB/s %.1f cpu_us/file %.2f files %llu notes %s\n", (double)bytes / wall / 1e6,
		cpu / (double)(files ? files : 1), (unsigned long long)files, notes);
	return !failed && files > 0;
}

/* workers: "on" or "off" for io_uring, or NULL for the engine's own choice. */
static int read_set(
	const struct set *set, const struct config *config, double seconds, const char *workers)
{
	const unsigned threads = (unsigned)config_integer(config, KEY_READ_THREADS);
	const unsigned depth = (unsigned)config_integer(config, KEY_READ_DEPTH);
	const size_t room =
		(size_t)(set->dataset.max_bytes / READ_ALIGN_BYTES + 1) * READ_ALIGN_BYTES;
	const bool huge = config_on(config, KEY_READ_HUGE_PAGES);
	size_t blob_bytes = room * threads * depth;
	if (huge && blob_bytes < HUGE_PAGE_BYTES) /* memory_map has none for less */
		blob_bytes = HUGE_PAGE_BYTES;
	struct memory_block blobs;
	struct source *source;
	struct error err = {""};
	if (threads > THREADS_MAX || depth > DEPTH_MAX || memory_map(&blobs, blob_bytes, huge) != 0)
		return 1;
	if (source_open(&source, config, &set->dataset, blobs.data, blobs.size, 0, &err) != 0) {
		fprintf(stderr, "bench_source: %s\n", err.text);
		return 1;
	}
	if (workers)
		((struct uring_source *)source)->options.async = strcmp(workers, "on") == 0;
	struct job jobs[THREADS_MAX];
	for (unsigned i = 0; i < threads; i++)
		jobs[i] = (struct job){.source = source,
			.dataset = &set->dataset,
			.room = room,
			.index = i,
			.threads = threads,
			.depth = source->depth < depth ? source->depth : depth,
			.blobs = (uint8_t *)blobs.data + (size_t)i * depth * room};
	const bool good = run_jobs(jobs, threads, seconds, source->notes);
	source_close(source);
	memory_unmap(&blobs);
	return good ? 0 : 1;
}

/* submit and reap in batches: the source's share of the harness's own ceiling. */
static int memory_cost(const struct set *set, struct config *config, double seconds)
{
	struct source *source;
	struct reader *reader;
	struct error err = {""};
	if (config_set_key(config, KEY_READ_ENGINE, "memory", &err) != 0 ||
		source_open(&source, config, &set->dataset, NULL, 0, 0, &err) != 0 ||
		source_reader_open(&reader, source, 0, &err) != 0) {
		fprintf(stderr, "bench_source: %s\n", err.text);
		return 1;
	}
	struct read_request requests[BATCH] = {0};
	struct read_request *done[BATCH];
	uint32_t *const order = malloc(set->dataset.count * sizeof *order);
	if (!order)
		return 1;
	struct rng rng;
	rng_init(&rng, 5, 0);
	rng_permutation(&rng, order, (uint32_t)set->dataset.count);
	const uint64_t start_ns = clock_now_ns();
	uint64_t samples = 0;
	uint64_t bytes = 0;
	size_t next = 0;
	while ((double)(clock_now_ns() - start_ns) < seconds * 1e9) {
		for (size_t i = 0; i < BATCH; i++) {
			requests[i].sample = order[next];
			next = next + 1 < set->dataset.count ? next + 1 : 0;
			source_submit(reader, &requests[i]);
		}
		const size_t count = source_reap(reader, done, BATCH, 0);
		for (size_t i = 0; i < count; i++)
			bytes += done[i]->size;
		samples += count;
	}
	const double ns = (double)(clock_now_ns() - start_ns) / (double)samples;
	printf("ns/sample %.2f\n", ns);
	source_reader_close(reader);
	source_close(source);
	free(order);
	return bytes == samples * set->dataset.max_bytes ? 0 : 1;
}

/* Slots as long as the probe's, one after the other. */
static int probe(const char *folder, unsigned depth, uint64_t bytes, double seconds)
{
	static struct ceilings sheet;
	struct probe_values rates = {0};
	const struct probe_read_plan plan = {.folder = folder,
		.cold_bytes = 256 << 20,
		.write_ns = 10 * NS_PER_S,
		.depths = {depth},
		.depth_count = 1,
		.sizes = {bytes},
		.size_count = 1,
		.seed = 1};
	const struct probe_control control = {.rounds = 1, .slot_ns = 70 * NS_PER_MS};
	struct probe_reads *reads;
	struct error err = {""};
	if (probe_reads_open(&reads, &plan, &control, &sheet, &err) != 0) {
		fprintf(stderr, "bench_source: %s\n", err.text);
		return 1;
	}
	const double start_cpu = cpu_us();
	const uint64_t until_ns = clock_now_ns() + (uint64_t)(seconds * 1e9);
	double rate;
	double latency_ns;
	double requests = 0;
	int code = 0;
	while (!code && rates.count < PROBE_ROUNDS_MAX && clock_now_ns() < until_ns) {
		code = probe_reads_slot(reads, PROBE_DIRECT, 0, depth, &rate, &latency_ns, &err);
		probe_add(&rates, rate);
		requests += rate * (double)control.slot_ns / (double)NS_PER_S;
	}
	const double cpu = cpu_us() - start_cpu;
	if (code)
		fprintf(stderr, "bench_source: %s\n", err.text);
	else
		printf("requests/s %.0f cpu_us/request %.2f pages %s\n", probe_median(&rates, NULL),
			cpu / requests, probe_reads_pages(reads));
	probe_reads_close(reads);
	return code ? 1 : 0;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: bench_source make DIR FILES BYTES\n"
		"       bench_source read|memory DIR FILES BYTES SECONDS [section.key=value …]\n"
		"       bench_source probe DIR DEPTH BYTES SECONDS\n");
	return 2;
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return usage();
	if (argc == 6 && strcmp(argv[1], "probe") == 0)
		return probe(argv[2], (unsigned)strtoul(argv[3], NULL, 10),
			strtoull(argv[4], NULL, 10), strtod(argv[5], NULL));
	struct set set;
	set_open(&set, argv[2], strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
	struct config config;
	config_init(&config);
	const double seconds = argc > 5 ? strtod(argv[5], NULL) : 0;
	int status = 0;
	const char *workers = NULL;
	int first_key = 6;
	if (argc > first_key && strncmp(argv[first_key], WORKERS, strlen(WORKERS)) == 0)
		workers = argv[first_key++] + strlen(WORKERS);
	for (int i = first_key; i < argc && !status; i++) {
		struct error err;
		if (config_set(&config, argv[i], &err) != 0) {
			fprintf(stderr, "bench_source: %s\n", err.text);
			status = 2;
		}
	}
	if (status)
		;
	else if (strcmp(argv[1], "make") == 0)
		status = make(&set);
	else if (strcmp(argv[1], "read") == 0)
		status = read_set(&set, &config, seconds, workers);
	else if (strcmp(argv[1], "memory") == 0)
		status = memory_cost(&set, &config, seconds);
	else
		status = usage();
	config_release(&config);
	set_close(&set);
	return status;
}
