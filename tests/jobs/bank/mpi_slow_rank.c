//: cause = sync/imbalance
//: why = rank 1 prepares twice as much as the others before each sum of gradients
//: needs = program:mpirun program:mpicc
//: build = mpicc
//: launch = mpirun -n 2
//: data = records
//: options = --rows 400 --slow-rows 1600
//: relieved = --slow-rows 400
//: fix = --slow-rows 800
//: fix_twin = inject.decode_factor=0.5
//: owner = batch.size=800
/* Ranks of MPI that train on records of one file and sum their gradients after each batch. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RECORD = 4096, GRADIENTS = 65536 };
static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static double now_s(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int count, char **words)
{
	const char *data = ".", *log_path = NULL;
	double seconds = 0;
	int rows = 400, slow_rows = 1600, rank, ranks;
	for (int i = 1; i + 1 < count; i += 2) {
		if (!strcmp(words[i], "--data"))
			data = words[i + 1];
		else if (!strcmp(words[i], "--log"))
			log_path = words[i + 1];
		else if (!strcmp(words[i], "--seconds"))
			seconds = atof(words[i + 1]);
		else if (!strcmp(words[i], "--rows"))
			rows = atoi(words[i + 1]);
		else if (!strcmp(words[i], "--slow-rows"))
			slow_rows = atoi(words[i + 1]);
	}
	signal(SIGTERM, on_signal);
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	char path[4096];
	snprintf(path, sizeof path, "%s/records.bin", data);
	const int file = open(path, O_RDONLY);
	const long records = lseek(file, 0, SEEK_END) / RECORD;
	FILE *const log = rank == 0 && log_path ? fopen(log_path, "w") : NULL;
	static float gradient[GRADIENTS], sum[GRADIENTS];
	static unsigned char record[RECORD];
	if (file < 0 || records < 1)
		MPI_Abort(MPI_COMM_WORLD, 1);
	if (log)
		fprintf(log, "step,wall_time,samples,data_time_ms\n");
	const double begun = now_s(CLOCK_MONOTONIC);
	srand((unsigned)rank + 1);
	for (int step = 1, stop = 0; !stop; step++) {
		const double asked = now_s(CLOCK_MONOTONIC);
		for (int row = 0; row < (rank == 1 ? slow_rows : rows); row++) {
			if (pread(file, record, RECORD, rand() % records * RECORD) != RECORD)
				MPI_Abort(MPI_COMM_WORLD, 1);
			for (int turn = 0; turn < 8; turn++)
				for (int i = 0; i < RECORD; i++)
					gradient[(i * 16 + turn) % GRADIENTS] += (float)record[i] * 1e-3f;
		}
		const double waited = now_s(CLOCK_MONOTONIC) - asked;
		const int mine = ended || (seconds > 0 && now_s(CLOCK_MONOTONIC) - begun > seconds);
		MPI_Allreduce(gradient, sum, GRADIENTS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Allreduce(&mine, &stop, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		if (log) {
			fprintf(log, "%d,%.6f,%d,%.3f\n", step, now_s(CLOCK_REALTIME), rows * ranks, 1e3 * waited);
			fflush(log);
			printf("batch %d\n", rows * ranks);
			fflush(stdout);
		}
	}
	return MPI_Finalize();
}
