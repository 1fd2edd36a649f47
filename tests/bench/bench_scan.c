/* Scanning a user's folder, at depth, against the plain scan (tests/scan_reference.h) on as many
 * threads as cores.
 *
 *   bench_scan make FOLDER [FILES [BYTES]]   20,000 pictures of 24 KiB in 20 classes
 *   bench_scan memory FOLDER                 in the page cache, against the plain scan
 *   bench_scan calls FOLDER MS               each call sleeps so long
 *   bench_scan slow FOLDER                   as it lies on slow storage, each way once
 *   bench_scan again FOLDER                  whose manifest is cached: nothing but names, sizes and times is asked
 *   bench_scan manifest FOLDER [SAMPLES]     writing and reading a manifest, of 1,000,000 samples without files */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/config/config.h"
#include "tests/scan_reference.h"
#include "workloads/dataset/manifest.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ROUNDS = 9, FILES = 20000, BYTES = 24 * 1024, CLASSES = 20, SOME = 100, WIDTH = 64 };

static uint64_t call_ns;

/* Storage that is fast is scanned no slower than before. */
static const double MEMORY_BAR = 1.0;

/* Of a file, and of two levels of folders.  What goes beyond so many times all calls, as many at
 * once as may be, is overhead. */
enum { CALLS = 4, LISTING_CALLS = 6, CALLS_BAR = 2 };

static void die(const char *what)
{
	(void)fprintf(stderr, "bench_scan: %s\n", what);
	exit(EXIT_FAILURE);
}

/* ---- calls that take long -------------------------------------------------------------------- */

static void take_long(void)
{
	clock_sleep_until_ns(clock_now_ns() + call_ns);
}

static int slow_openat(int folder, const char *path, int flags, ...)
{
	take_long();
	return openat(folder, path, flags);
}

static int slow_statx(int folder, const char *path, int flags, unsigned mask, struct statx *out)
{
	take_long();
	return statx(folder, path, flags, mask, out);
}

static ssize_t slow_pread(int file, void *to, size_t size, off_t offset)
{
	take_long();
	return pread(file, to, size, offset);
}

static int slow_close(int file)
{
	take_long();
	return close(file);
}

static const struct storage_calls slow_calls = {
	.openat = slow_openat,
	.readdir = readdir,
	.statx = slow_statx,
	.pread = slow_pread,
	.close = slow_close,
};

/* ---- what is timed --------------------------------------------------------------------------- */

struct scanning {
	const char *name;
	const struct storage_calls *calls;
	enum dataset_way way;
	unsigned depth;
	bool some; /* SOME samples, or all */
};

static double scan_seconds(
	const char *folder, const struct scanning *how, struct dataset_effort *effort)
{
	const struct dataset_control control = {
		.way = how->way, .depth = how->depth, .calls = how->calls, .effort = effort};
	struct dataset dataset;
	struct error err;
	const uint64_t begun_ns = clock_now_ns();
	if (scan_folder(folder, how->some ? SOME : 0, &control, &dataset, &err))
		die(err.text);
	const double seconds = (double)(clock_now_ns() - begun_ns) / (double)NS_PER_S;
	arena_close(dataset.arena);
	return seconds;
}

static double reference_seconds(const char *folder, unsigned threads)
{
	struct reference reference;
	const uint64_t begun_ns = clock_now_ns();
	reference_scan(&reference, folder, threads);
	const double seconds = (double)(clock_now_ns() - begun_ns) / (double)NS_PER_S;
	reference_release(&reference);
	return seconds;
}

static void make_files(const char *folder, int files, size_t bytes)
{
	char path[FILES_PATH_BYTES];
	struct error err;
	char *const picture = calloc(1, bytes);
	const size_t rows = (bytes - 64) / (3 * WIDTH);
	(void)snprintf(picture, bytes, "P6 %d %zu 255\n", WIDTH, rows);
	for (int i = 0; i < files; i++) {
		(void)snprintf(path, sizeof path, "%s/class_%02d", folder, i % CLASSES);
		if (i < CLASSES && files_make_folder(path, &err))
			die(err.text);
		(void)snprintf(path, sizeof path, "%s/class_%02d/%06d.ppm", folder, i % CLASSES, i);
		FILE *const file = fopen(path, "wb");
		if (!file || fwrite(picture, 1, bytes, file) != bytes || fclose(file))
			die("cannot write a picture");
	}
	free(picture);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Prints and gives the median. */
static double print_spread(const char *name, double *values, const char *unit)
{
	qsort(values, ROUNDS, sizeof *values, by_value);
	printf("  %-34s %7.3f [%.3f-%.3f] %s\n", name, values[ROUNDS / 2], values[0],
		values[ROUNDS - 1], unit);
	return values[ROUNDS / 2];
}

/* The first round warms up. */
static bool compare_in_memory(const char *folder)
{
	static const struct scanning ways[] = {{.name = "io_uring"},
		{.name = "a thread for each in flight", .way = DATASET_WAY_THREADS}};
	enum { WAYS = sizeof ways / sizeof *ways };
	double plain[ROUNDS + 1], ratio[WAYS][ROUNDS + 1], plain_again[ROUNDS + 1];
	struct dataset_effort effort;
	const unsigned cores = team_threads(0);
	for (int round = ROUNDS; round >= 0; round--) {
		plain[round] = reference_seconds(folder, cores);
		for (int i = 0; i < WAYS; i++)
			ratio[i][round] = scan_seconds(folder, &ways[i], &effort) / plain[round];
		plain_again[round] = reference_seconds(folder, cores) / plain[round];
	}
	printf("%" PRIu64
	       " pictures in the page cache, no manifest kept, %u cores, %d rounds, medians [least-most]\n",
		effort.pictures, cores, ROUNDS);
	(void)print_spread("plain scan", plain, "s");
	(void)print_spread("plain scan again", plain_again, "of it");
	bool met = true;
	for (int i = 0; i < WAYS; i++)
		met = print_spread(ways[i].name, ratio[i], "of it") <= MEMORY_BAR && met;
	printf("  bar <= %.2f: %s\n", MEMORY_BAR, met ? "met" : "MISSED");
	return met;
}

static double show(const char *folder, const struct scanning *how, uint64_t *files)
{
	struct dataset_effort effort;
	const double seconds = scan_seconds(folder, how, &effort);
	printf("  %-34s %-11s %7.2f s   in flight %2u, sized %" PRIu64 ", opened %" PRIu64
	       " of %" PRIu64 "%s\n",
		how->name, how->some ? "100 samples" : "all", seconds, effort.most_in_flight,
		effort.sized, effort.headers, effort.pictures, effort.ring ? ", io_uring" : "");
	(void)fflush(stdout);
	*files = effort.sized;
	return seconds;
}

static bool show_slow_calls(const char *folder)
{
	static const struct scanning ways[] = {
		{"a thread for each in flight", &slow_calls, DATASET_WAY_THREADS, 0, false},
		{"a thread for each in flight", &slow_calls, DATASET_WAY_THREADS, 0, true}};
	bool met = true;
	printf("each call takes %.0f ms\n", (double)call_ns / (double)NS_PER_MS);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		uint64_t files;
		const double seconds = show(folder, &ways[i], &files);
		const double calls = CALLS * ceil((double)files / DATASET_DEPTH) + LISTING_CALLS;
		met = seconds <= CALLS_BAR * calls * (double)call_ns / (double)NS_PER_S && met;
	}
	printf("  bar <= %d times the calls, %d at once: %s\n", CALLS_BAR, DATASET_DEPTH,
		met ? "met" : "MISSED");
	return met;
}

static void show_slow_folder(const char *folder)
{
	static const struct scanning ways[] = {{"io_uring", NULL, DATASET_WAY_AUTO, 0, false},
		{"a thread for each in flight", NULL, DATASET_WAY_THREADS, 0, false},
		{"io_uring", NULL, DATASET_WAY_AUTO, 0, true},
		{"one at a time", NULL, DATASET_WAY_THREADS, 1, true}};
	uint64_t files;
	printf("'%s', as it lies there\n", folder);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		(void)show(folder, &ways[i], &files);
	printf("  %-34s %-11s %7.2f s\n", "plain scan, a thread a core", "all",
		reference_seconds(folder, team_threads(0)));
}

/* ---- manifests ------------------------------------------------------------------------------- */

enum { MANIFEST_SAMPLES = 1000000, MANIFEST_CLASSES = 1000 };

/* Aimed at: 200 ns of CPU time for a sample, and 1.5 times the bytes of what is asked for. */
static const double MANIFEST_SAMPLE_S = 200e-9, MANIFEST_MEMORY_BAR = 1.5;

static void make_manifest(const char *path, size_t count)
{
	struct dataset dataset = {.count = count, .class_count = MANIFEST_CLASSES};
	struct error err;
	struct arena *const arena = dataset.arena = arena_open();
	char name[64];
	dataset.samples = arena_take(arena, count * sizeof *dataset.samples);
	dataset.class_names = arena_take(arena, MANIFEST_CLASSES * sizeof *dataset.class_names);
	for (int i = 0; i < MANIFEST_CLASSES; i++)
		dataset.class_names[i] = arena_text(
			arena, name, (size_t)snprintf(name, sizeof name, "class_%04d", i));
	for (size_t i = 0; i < count; i++) {
		const int length = snprintf(
			name, sizeof name, "class_%04zu/%08zu.jpg", i % MANIFEST_CLASSES, i);
		dataset.samples[i] = (struct sample){
			.path = arena_text(arena, name, (size_t)length),
			.bytes = 100000 + i % 9999,
			.checksum = i * 0x9e3779b97f4a7c15,
			.width = 500,
			.height = 375,
			.label = (uint32_t)(i % MANIFEST_CLASSES),
			.format = (uint8_t)image_format_of_name(name),
		};
	}
	manifest_total(&dataset);
	json_t *const header = json_object();
	if (manifest_write(path, header, &dataset, &err))
		die(err.text);
	json_decref(header);
	arena_close(arena);
}

/* In a process of its own, so that its memory can be told. */
static void read_manifest(const char *path, double *cpu_ms, double *mib, double *needed_mib)
{
	struct {
		double cpu_ms, mib, needed_mib;
	} told;
	int ends[2];
	if (pipe(ends))
		die("no pipe");
	(void)fflush(stdout);
	if (fork() == 0) {
		struct rusage before, after;
		struct dataset dataset = {0};
		struct error err;
		json_t *header;
		(void)getrusage(RUSAGE_SELF, &before);
		const uint64_t begun_ns = clock_thread_cpu_ns();
		if (manifest_read(path, &dataset, &header, &err))
			die(err.text);
		told.cpu_ms = (double)(clock_thread_cpu_ns() - begun_ns) / (double)NS_PER_MS;
		(void)getrusage(RUSAGE_SELF, &after);
		told.mib = (double)(after.ru_maxrss - before.ru_maxrss) / 1024;
		size_t needed = dataset.count * sizeof *dataset.samples;
		for (size_t i = 0; i < dataset.count; i++)
			needed += strlen(dataset.samples[i].path) + 1;
		told.needed_mib = (double)needed / (1024 * 1024);
		_exit(write(ends[1], &told, sizeof told) == sizeof told ? 0 : 1);
	}
	if (read(ends[0], &told, sizeof told) != sizeof told)
		die("the manifest could not be read");
	(void)wait(NULL);
	(void)close(ends[0]);
	(void)close(ends[1]);
	*cpu_ms = told.cpu_ms;
	*mib = told.mib;
	*needed_mib = told.needed_mib;
}

static bool show_manifest(const char *folder, size_t count)
{
	char *const path = files_join(folder, MANIFEST_NAME);
	struct stat st;
	double cpu[ROUNDS], memory[ROUNDS], needed = 0;
	const uint64_t begun_ns = clock_now_ns();
	make_manifest(path, count);
	const double made_s = (double)(clock_now_ns() - begun_ns) / (double)NS_PER_S;
	if (stat(path, &st))
		die("no manifest");
	printf("a manifest of %zu samples: %.1f MB, made in %.2f s; read %d times, medians [least-most]\n",
		count, (double)st.st_size / 1e6, made_s, ROUNDS);
	for (int i = 0; i < ROUNDS; i++)
		read_manifest(path, &cpu[i], &memory[i], &needed);
	const double ms = print_spread("CPU time", cpu, "ms");
	const double mib = print_spread("memory at most", memory, "MiB");
	printf("  %-34s %7.3f MiB\n", "samples and their names", needed);
	const bool met = ms * 1e-3 <= MANIFEST_SAMPLE_S * (double)count &&
			 mib <= MANIFEST_MEMORY_BAR * needed;
	printf("  bar <= %.0f ns a sample, <= %.1f times that memory: %s\n",
		MANIFEST_SAMPLE_S * 1e9, MANIFEST_MEMORY_BAR, met ? "met" : "MISSED");
	(void)unlink(path);
	free(path);
	return met;
}

/* Of a file, on two cores. */
static const double AGAIN_FILE_BAR_S = 1e-6;

static bool show_again(const char *folder)
{
	char cache[] = "/tmp/mlbench-scan-XXXXXX";
	char *command = NULL;
	double wall[ROUNDS];
	double cpu[ROUNDS];
	struct dataset dataset;
	struct dataset_effort effort = {0};
	struct error err;
	const struct dataset_control control = {.effort = &effort};
	if (!mkdtemp(cache) || setenv("XDG_CACHE_HOME", cache, 1))
		die("no folder for the manifest");
	for (int i = -1; i < ROUNDS; i++) {
		struct rusage before;
		struct rusage after;
		const uint64_t begun_ns = clock_now_ns();
		(void)getrusage(RUSAGE_SELF, &before);
		if (scan_folder(folder, 0, &control, &dataset, &err))
			die(err.text);
		(void)getrusage(RUSAGE_SELF, &after);
		if (i >= 0) {
			wall[i] = (double)(clock_now_ns() - begun_ns) / (double)NS_PER_S;
			cpu[i] = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec +
					  after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
				 1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec +
						 after.ru_stime.tv_usec - before.ru_stime.tv_usec);
			if (effort.headers > 0 || effort.sized < dataset.count)
				die("headers were read again, or sizes were not asked");
		}
		if (i + 1 == ROUNDS)
			printf("%zu files, looked at again\n", dataset.count);
		arena_close(dataset.arena);
	}
	const double bar = AGAIN_FILE_BAR_S * (double)effort.sized;
	const bool met = print_spread("a scan", wall, "s") <= bar;
	(void)print_spread("its CPU time", cpu, "s");
	printf("  bar <= %.2f s: %s\n", bar, met ? "met" : "MISSED");
	if (asprintf(&command, "rm -r '%s'", cache) > 0)
		(void)!system(command);
	free(command);
	return met;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		die("which folder?");
	(void)setenv("XDG_CACHE_HOME", "/proc/none", 1); /* no scan knows of another */
	bool met = true;
	if (strcmp(argv[1], "make") == 0) {
		make_files(argv[2], argc > 3 ? atoi(argv[3]) : FILES,
			argc > 4 ? strtoull(argv[4], NULL, 10) : BYTES);
	} else if (strcmp(argv[1], "memory") == 0) {
		met = compare_in_memory(argv[2]);
	} else if (strcmp(argv[1], "slow") == 0) {
		show_slow_folder(argv[2]);
	} else if (strcmp(argv[1], "calls") == 0 && argc > 3) {
		call_ns = strtoull(argv[3], NULL, 10) * NS_PER_MS;
		met = show_slow_calls(argv[2]);
	} else if (strcmp(argv[1], "again") == 0) {
		met = show_again(argv[2]);
	} else if (strcmp(argv[1], "manifest") == 0) {
		met = show_manifest(
			argv[2], argc > 3 ? strtoull(argv[3], NULL, 10) : MANIFEST_SAMPLES);
	} else {
		die("make, memory, calls, slow, again or manifest?");
	}
	return met ? EXIT_SUCCESS : EXIT_FAILURE;
}
