/* The plug-in over a real MPI: this program again, as ranks that mpirun starts.  Skipped where there is no Open MPI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/clock.h"
#include "workloads/ranks/ranks.h"
#include "workloads/ranks/ranks_look.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, TAG = 100, VALUES = 1000 };

#define MUST(what)                                                                           \
	do {                                                                                 \
		if (!(what)) {                                                               \
			fprintf(stderr, "test_mpi: line %d: not so: %s\n", __LINE__, #what); \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

static const struct mpi_plugin *mpi;
static struct mpi_world world;
static struct error err;

static void wait_for(struct mpi_request *request)
{
	int code;
	while ((code = mpi->test(&request, &err)) == 0)
		clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
	MUST(code == 1 && !request);
}

static void *train(void *count)
{
	struct error why;
	MUST(mpi->train(*(unsigned *)count, 0, &why) == 0);
	return NULL;
}

/* Who waits in `train` for the others still talks to them: the others come when that has told them to. */
static void messages_pass_while_ranks_gather(void)
{
	struct mpi_request *request;
	unsigned count = RANKS;
	char word = 'x';
	pthread_t thread;
	if (world.rank > 0) {
		MUST(mpi->receive(&request, 0, TAG, &word, 1, &err) == 0);
		wait_for(request);
		MUST(word == 'g');
		(void)train(&count);
		return;
	}
	MUST(pthread_create(&thread, NULL, train, &count) == 0);
	clock_sleep_until_ns(clock_now_ns() +
			     300 * NS_PER_MS); /* it is in there by then, or this shows nothing */
	for (unsigned rank = 1; rank < RANKS; rank++) {
		word = 'g';
		MUST(mpi->send(&request, rank, TAG, &word, 1, &err) == 0);
		wait_for(request);
	}
	MUST(pthread_join(thread, NULL) == 0);
}

/* Of the first `count` ranks but `without`. */
static void sums_and_rounds_are_right(unsigned count, unsigned without)
{
	const unsigned late = without == 1 ? 2 : 1;
	const unsigned sum = count * (count - 1) / 2 + (without > 0 ? count - without : 0);
	struct mpi_request *request;
	float values[VALUES];
	for (unsigned i = 0; i < VALUES; i++)
		values[i] = (float)(world.rank * i);
	MUST(mpi->train(count, without, &err) == 0);
	MUST(mpi->sum(&request, values, VALUES, &err) == 0);
	wait_for(request);
	for (unsigned i = 0; i < VALUES; i++)
		MUST(values[i] == (float)(sum * i));
	/* Rank 0 is early; of the others, which are late at the same time, the lower one is the last. */
	struct mpi_round round = {.latest_ns = world.rank > 0 ? 700 : 300,
		.second_ns = -HUGE_VAL,
		.last = (int)world.rank,
		.leaves = world.rank == late ? 2 : 0};
	MUST(mpi->meet(&request, &round, &err) == 0);
	wait_for(request);
	MUST(round.latest_ns == 700 && round.last == (int)late && round.leaves == 2);
	MUST(round.second_ns == (count > 2 ? 700 : 300));
}

static int play(void)
{
	char path[PATH_MAX];
	void *library;
	MUST(ranks_open_plugin(&mpi, path, &library, &err) == 0);
	MUST(mpi->open(&world, &err) == 0);
	MUST(world.count == RANKS && world.rank < RANKS && world.local_count == RANKS);
	messages_pass_while_ranks_gather();
	sums_and_rounds_are_right(RANKS, 0);
	if (world.rank < 2)
		sums_and_rounds_are_right(2, 0);
	if (world.rank != 1)
		sums_and_rounds_are_right(2, 1);
	sums_and_rounds_are_right(RANKS, 0); /* of those that trained before */
	mpi->close();
	return 0;
}

static const char *self;

static void the_plugin_does_what_it_says(void **state)
{
	(void)state;
	char plugin[PATH_MAX];
	char command[2 * PATH_MAX];
#ifdef __SANITIZE_THREAD__
	skip(); /* MPI is not instrumented */
#endif
	(void)snprintf(plugin, sizeof plugin, "%.*s/../" MPI_PLUGIN_FILE,
		(int)(strrchr(self, '/') - self), self);
	if (access(plugin, R_OK) != 0 ||
		system("mpirun --version 2>/dev/null | grep -q 'Open MPI'") != 0)
		skip();
	(void)setenv(MPI_PLUGIN_VARIABLE, plugin, 1);
	(void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* MPI's own */
	(void)setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	(void)setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	(void)snprintf(command, sizeof command,
		"timeout -k 5 300 mpirun --oversubscribe -n %d '%s' again", RANKS, self);
	assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_plugin_does_what_it_says)};
	self = argv[0];
	return argc > 1 ? play() : cmocka_run_group_tests(tests, NULL, NULL);
}
