//: cause = sync/imbalance
//: why = rank 1 prepares four times as many rows as rank 0 before each sum of gradients
//: needs = program:mpirun program:mpicc
//: build = mpicc
//: launch = mpirun -n 2
//: data = records
//: options = --rows 400 --slow-rows 1600
//: relieved = --slow-rows 400
//: owner = batch.size=800
/* Ranks of MPI that train on records of one file and sum their gradients after each batch. */
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include "common.h"

enum { RECORD = 4096, GRADIENTS = 65536 };

int main(int count, char **words)
{
	static float gradient[GRADIENTS], sum[GRADIENTS];
	static unsigned char record[RECORD];
	int rank, ranks;
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	struct job job = job_begin(count, words, rank == 0);
	const int rows = atoi(job_option(count, words, "--rows", "400"));
	const int mine = rank == 1 ? atoi(job_option(count, words, "--slow-rows", "400")) : rows;
	char path[4096];
	snprintf(path, sizeof path, "%s/records.bin", job.data);
	const int file = open(path, O_RDONLY);
	const long records = lseek(file, 0, SEEK_END) / RECORD;
	if (file < 0 || records < 1)
		MPI_Abort(MPI_COMM_WORLD, 1);
	srand((unsigned)rank + 1);
	for (int stop = 0; !stop;) {
		const double asked = job_now(CLOCK_MONOTONIC);
		for (int row = 0; row < mine; row++) {
			if (pread(file, record, RECORD, rand() % records * RECORD) != RECORD)
				MPI_Abort(MPI_COMM_WORLD, 1);
			for (int turn = 0; turn < 8; turn++)
				for (int i = 0; i < RECORD; i++)
					gradient[(i * 16 + turn) % GRADIENTS] += (float)record[i] * 1e-3f;
		}
		const double waited = job_now(CLOCK_MONOTONIC) - asked;
		const int over = !job_runs(&job);
		MPI_Allreduce(gradient, sum, GRADIENTS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Allreduce(&over, &stop, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		job_batch(&job, rows * ranks, waited);
	}
	return MPI_Finalize();
}
