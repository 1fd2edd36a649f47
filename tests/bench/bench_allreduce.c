/* Gradients summed as a training step sums them (workloads/ranks/gradients.h), against a bare loop over the same call: MPI_Iallreduce
 * of the same buckets, tested without a pause until all are over.  In turn, in one job; rank 0 tells.  bench_ranks.sh starts it.
 *
 *   mpirun -n 2 bench_allreduce [MIB [ROUNDS]] */
#include "harness/base/clock.h"
#include "workloads/ranks/gradients.h"
#include "workloads/ranks/ranks.h"

#include "tests/bench_pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 64, ROUNDS = 40, BUCKET_MIB = 25, BUCKETS_MAX = 64 };

static void die(const char *what, const struct error *err)
{
	fprintf(stderr, "bench_allreduce: %s: %s\n", what, err->text);
	exit(1);
}

static double sum_bare(struct ranks *ranks, float *values, size_t count)
{
	struct mpi_request *requests[BUCKETS_MAX];
	const size_t most = (size_t)BUCKET_MIB << 18;
	struct mpi_round round = {.last = (int)ranks->world.rank};
	struct mpi_request *meeting;
	struct error err;
	size_t buckets = 0;
	const uint64_t begin_ns = clock_now_ns();
	for (size_t at = 0; at < count; at += most)
		if (ranks->plugin->sum(&requests[buckets++], values + at,
			    count - at < most ? count - at : most, &err))
			die("sum", &err);
	if (ranks->plugin->meet(&meeting, &round, &err))
		die("meet", &err);
	for (size_t i = 0; i < buckets; i++)
		while (ranks->plugin->test(&requests[i], &err) == 0)
			;
	while (ranks->plugin->test(&meeting, &err) == 0)
		;
	return (double)(clock_now_ns() - begin_ns);
}

static double sum_ours(struct gradients *gradients)
{
	struct gradients_round round;
	struct error err;
	const uint64_t begin_ns = clock_now_ns();
	gradients_begin(gradients, begin_ns, begin_ns);
	if (gradients_finish(gradients, begin_ns, &round, &err))
		die("round", &err);
	return (double)(clock_now_ns() - begin_ns);
}

int main(int argc, char **argv)
{
	const size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : MIB;
	const size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : ROUNDS;
	struct ranks *ranks;
	struct gradients *gradients;
	struct error err = {""};
	if (ranks_open(&ranks, NULL, &err))
		die("ranks", &err);
	if (!ranks) {
		fprintf(stderr, "bench_allreduce: start it with mpirun -n 2\n");
		return 77;
	}
	const struct gradients_options options = {.ranks = ranks,
		.count = ranks->world.count,
		.bytes = mib << 20,
		.bucket_bytes = (uint64_t)BUCKET_MIB << 20};
	float *const values = calloc(mib << 18, sizeof *values);
	double *const ratios = calloc(rounds, sizeof *ratios);
	if (ranks_train(ranks, ranks->world.count, &err))
		die("train", &err);
	if (!values || !ratios || gradients_open(&gradients, &options, &err))
		die("gradients", &err);
	memset(values, 0, mib << 20);
	double ours = 0;
	double bare = 0;
	for (size_t i = 0; i < rounds + 2; i++) {
		const double a = i % 2 ? sum_bare(ranks, values, mib << 18) : sum_ours(gradients);
		const double b = i % 2 ? sum_ours(gradients) : sum_bare(ranks, values, mib << 18);
		if (i < 2)
			continue;
		ratios[i - 2] = i % 2 ? a / b : b / a; /* bare over ours: a rate's ratio */
		ours += i % 2 ? b : a;
		bare += i % 2 ? a : b;
	}
	const struct bench_interval middle = bench_middle(ratios, rounds);
	if (ranks->world.rank == 0)
		printf("all-reduce of %zu MiB, %u ranks: %.1f ms, a bare loop %.1f ms; rate over the bare loop's "
		       "%.3f (%.3f to %.3f)\n",
			mib, ranks->world.count, ours / (double)rounds * 1e-6,
			bare / (double)rounds * 1e-6, middle.middle, middle.low, middle.high);
	gradients_close(gradients);
	free(values);
	free(ratios);
	ranks_close(ranks, 0);
	return 0;
}
