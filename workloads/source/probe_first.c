/* The read probe of the data set's own files: read for the first time, and again.  Reads go by plain calls on a few
 * threads, since what is asked is a ratio, and both rounds are made alike. */
#include "workloads/source/probe_read.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "workloads/source/residency.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_THREADS = 8, FIRST_BLOCK_BYTES = 128 * 1024, FIRST_FILES_MOST = 20000 };

static const uint64_t FIRST_BYTES_LEAST = 1 << 20; /* read in each round, for a rate */
/* A cache below shows where the first time takes so long, and is so much slower than the second. */
static const double FIRST_SECONDS = 0.1, FIRST_SLOWER = 0.5;

struct first_round {
	const struct probe_control *control;
	const char *root;
	const char *const *paths; /* (count) */
	size_t count;
	int root_fd;
	uint64_t bytes_most;
	uint64_t end_ns;
	atomic_size_t next;
	atomic_uint_fast64_t bytes;
	atomic_int status;
};

static bool first_is_over(const struct first_round *round)
{
	return probe_stopped(round->control) || clock_now_ns() >= round->end_ns ||
	       atomic_load(&round->bytes) >= round->bytes_most;
}

static void first_read_file(struct first_round *round, const char *path, uint8_t *block)
{
	const int fd = openat(round->root_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : 1;
	for (off_t at = 0; got > 0 && !first_is_over(round); at += got) {
		got = pread(fd, block, FIRST_BLOCK_BYTES, at);
		if (got > 0)
			atomic_fetch_add(&round->bytes, (uint64_t)got);
	}
	if (got < 0)
		atomic_store(&round->status, -errno);
	if (fd >= 0)
		(void)close(fd);
}

static void first_read_some(void *context, unsigned me)
{
	struct first_round *const round = context;
	uint8_t *const block = malloc(FIRST_BLOCK_BYTES);
	(void)me;
	if (!block)
		atomic_store(&round->status, -ENOMEM);
	while (block && !first_is_over(round)) {
		const size_t i = atomic_fetch_add(&round->next, 1);
		if (i >= round->count)
			break;
		first_read_file(round, round->paths[i], block);
	}
	free(block);
}

/* Bytes/s of the files from the first on, up to bytes_most of them. */
static int first_run(
	struct first_round *round, uint64_t most_ns, double *bytes_per_s, struct error *err)
{
	const uint64_t begin_ns = clock_now_ns();
	round->end_ns = begin_ns + most_ns;
	atomic_store(&round->next, 0);
	atomic_store(&round->bytes, 0);
	atomic_store(&round->status, 0);
	const int code = probe_crew(FIRST_THREADS, false, first_read_some, round, err);
	const int status = atomic_load(&round->status);
	const uint64_t bytes = atomic_load(&round->bytes);
	*bytes_per_s = NAN;
	if (code)
		return code;
	if (probe_stopped(round->control))
		return error_set(err, -EINTR, "stopped");
	if (status)
		return error_set_errno(err, -status, "cannot read the files of '%s'", round->root);
	if (bytes < FIRST_BYTES_LEAST)
		return error_set(err, -ENODATA, "too few bytes were read for a rate");
	*bytes_per_s = (double)bytes * (double)NS_PER_S / (double)(clock_now_ns() - begin_ns);
	return 0;
}

/* Files at random, so that another probe reads others: paths has room for FIRST_FILES_MOST.  How many, and in *chosen
 * a data set of them, whose samples are samples (likewise). */
static size_t first_choose(const struct dataset *dataset, uint64_t bytes_most, const char **paths,
	struct sample *samples, struct dataset *chosen)
{
	struct rng rng;
	size_t count = 0;
	uint64_t bytes = 0;
	rng_init(&rng, clock_now_ns(), (uint64_t)getpid());
	const uint64_t start = rng_next(&rng) % dataset->count;
	for (size_t i = 0; i < dataset->count && count < FIRST_FILES_MOST && bytes < bytes_most;
		i++) {
		const struct sample *const sample = &dataset->samples[(start + i) % dataset->count];
		/* Of files that hold several samples, each once. */
		if (count > 0 && strcmp(paths[count - 1], sample->path) == 0)
			continue;
		paths[count] = sample->path;
		samples[count++] = *sample;
		bytes += sample->bytes;
	}
	*chosen = (struct dataset){
		.root = dataset->root, .samples = samples, .count = count, .files = count};
	return count;
}

static int first_measure(struct first_round *round, const struct dataset *chosen, uint64_t most_ns,
	struct ceilings *out, struct error *err)
{
	struct residency after;
	int code = residency_evict(chosen, &after, err);
	if (!code)
		code = first_run(round, most_ns, &out->first_read_bytes_per_s, err);
	if (code)
		return code;
	/* The same files again, and no more of them. */
	round->bytes_most = atomic_load(&round->bytes);
	out->first_read_bytes = (double)round->bytes_most;
	code = residency_evict(chosen, &after, err);
	return code ? code : first_run(round, most_ns, &out->reread_bytes_per_s, err);
}

/* A short read is too uneven to conclude from. */
static void first_note(struct ceilings *out)
{
	const double seconds = out->first_read_bytes / out->first_read_bytes_per_s;
	char first[UNITS_BYTES];
	char again[UNITS_BYTES];
	if (seconds < FIRST_SECONDS ||
		out->first_read_bytes_per_s > FIRST_SLOWER * out->reread_bytes_per_s)
		return;
	ceilings_note(out,
		"reads: files came at %s the first time and at %s the second, evicted from this node between: a cache below it "
		"(host, array, server) has what was read or written lately, the scratch file included",
		units_format_rate(out->first_read_bytes_per_s, first),
		units_format_rate(out->reread_bytes_per_s, again));
}

int probe_first_reads(const struct dataset *dataset, uint64_t bytes_most,
	const struct probe_control *control, struct ceilings *out, struct error *err)
{
	const uint64_t now = clock_now_ns();
	const uint64_t most_ns =
		control->deadline_ns > now ? (control->deadline_ns - now) / 2 : control->slot_ns;
	if (!store_find(dataset->root)->local)
		return error_set(err, -ENOTSUP, "the data set is not on a mounted file system");
	const char **const paths = calloc(FIRST_FILES_MOST, sizeof *paths);
	struct sample *const samples = calloc(FIRST_FILES_MOST, sizeof *samples);
	struct first_round round = {.control = control,
		.root = dataset->root,
		.paths = paths,
		.root_fd = open(dataset->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.bytes_most = bytes_most};
	struct dataset chosen;
	int code = 0;
	if (!paths || !samples)
		code = error_set(err, -ENOMEM, "out of memory");
	else if (round.root_fd < 0)
		code = error_set_errno(err, errno, "cannot open '%s'", dataset->root);
	if (!code) {
		round.count = first_choose(dataset, bytes_most, paths, samples, &chosen);
		code = first_measure(&round, &chosen, most_ns, out, err);
	}
	if (!code)
		first_note(out);
	if (round.root_fd >= 0)
		(void)close(round.root_fd);
	free(samples);
	free(paths);
	return code;
}
