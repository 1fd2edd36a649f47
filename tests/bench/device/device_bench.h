/* What the benches of a real device share: options, sessions of the plug-in with random batches, and results as a table, as
 * JSON, and as bars that are met or missed.  On the test double everything runs in small, and no bar is judged.
 *
 *   bench_NAME [--quick] [--rounds N] [--device N] [--model NAME] [--batch N] [--json FILE] [--bars FILE]
 *
 * --bars: a line per bar as soon as it is known, for tests/device/run.sh: status, a tab, words.
 *
 * Exit status: 0 all bars are met (or not judged), 1 one is missed or could not be measured, 2 wrong use, 3 no device. */
#ifndef MLBENCH_TESTS_BENCH_DEVICE_DEVICE_BENCH_H
#define MLBENCH_TESTS_BENCH_DEVICE_DEVICE_BENCH_H

#include "workloads/backend/cuda/plugin.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_ROUNDS_MAX = 64, BENCH_CANNOT = 3 };

struct device_bench {
	const char *name, *json_path, *bars_path, *model; /* model: NULL: the bench's own choice */
	bool quick, small;                                /* small: test double */
	size_t rounds;
	unsigned device;
	uint32_t batch; /* 0: the bench's own choice */
	const struct cuda_plugin *plugin;
	struct cuda_node node;
	json_t *bars, *figures;
	bool missed;
};

/* 0: go on; else what main returns. */
int device_bench_open(
	struct device_bench *bench, const char *name, const char *about, int argc, char **argv);
/* Writes the JSON; returns what main returns. */
int device_bench_close(struct device_bench *bench);

/* Ends the program with 1: what went wrong is on stderr and in the JSON. */
__attribute__((noreturn)) void device_bench_die(
	struct device_bench *bench, const char *what, const struct error *err);

enum bench_sense { BENCH_AT_MOST, BENCH_AT_LEAST };
/* The median of a value per round, with the least and the largest, held to a bar. NAN among them: not measured, which is a
 * miss. */
void device_bench_bar(struct device_bench *bench, const char *what, const double *values,
	size_t count, enum bench_sense sense, double bar);
/* The same without a bar. */
void device_bench_figure(struct device_bench *bench, const char *what, const char *unit,
	const double *values, size_t count);

/* --- sessions ------------------------------------------------------------------------------------------- */

struct bench_batch {
	void *data;       /* owned */
	uint32_t *labels; /* owned */
	struct batch_view view;
};

/* A model on pictures of 224 x 224 (8 x 8 when small), batch samples a step, everything else at the program's defaults. */
struct cuda_options device_bench_options(
	const struct device_bench *bench, const char *model, uint32_t batch);
void device_bench_session(
	struct device_bench *bench, const struct cuda_options *options, struct cuda_session **out);
/* Random samples and labels; pinned: for the life of the session. */
void device_bench_batch(struct device_bench *bench, struct cuda_session *session,
	const struct cuda_options *options, bool pinned, struct bench_batch *out);
void device_bench_batch_free(struct bench_batch *batch); /* after its session, where it is pinned */

/* Steps on a batch until about `seconds` are over (at least `least`), launched ahead as far as the options say.  Host ns for
 * one; idle, device_ns: means of what the steps report (NAN: none did), may be NULL. */
double device_bench_steps(struct device_bench *bench, struct cuda_session *session,
	const struct cuda_options *options, const struct batch_view *batch, double seconds,
	double *idle, double *device_ns);

double device_bench_now_s(void);

#endif
