/* OpenBLAS, opened when the first step or probe needs it: opening takes 300 MB of address space and starts threads, which a
 * command that multiplies nothing does without. */
#ifndef MLBENCH_WORKLOADS_BACKEND_OPENBLAS_H
#define MLBENCH_WORKLOADS_BACKEND_OPENBLAS_H

#include "harness/base/error.h"

#include <cblas.h>
#include <stddef.h>

struct blas {
	__typeof__(cblas_sgemm) *sgemm;
	__typeof__(cblas_dgemm) *dgemm; /* no step uses it: mlbench accept does */
	__typeof__(cblas_sdot) *sdot;
	__typeof__(openblas_set_num_threads) *set_num_threads;
	__typeof__(openblas_get_num_threads) *get_num_threads;
	__typeof__(openblas_get_num_procs) *get_num_procs;
	__typeof__(openblas_get_config) *get_config;
	__typeof__(openblas_get_corename) *get_corename;
	__typeof__(openblas_get_parallel) *get_parallel;
};

/* The library, opened once for the process and never closed; NULL: why (room bytes) says what is missing.  Any thread.
 * Looked for: ../lib beside the program, the folder that it was built with, then the linker's own places; only the OpenMP
 * flavour, whose threads are the program's own. */
const struct blas *blas_find(char *why, size_t room);

/* The same, once blas_find has found it: for what runs between open and close of a step. */
extern const struct blas *blas;

/* For the products of the calling thread (the count is OpenMP's, a property of it).  -ENOMEM as above; -ENOTSUP: the library
 * was built for fewer. */
int blas_set_threads(int threads, struct error *err);

/* For tests, which look at the calls; NULL: the library's own again. */
void blas_replace(const struct blas *functions);

#endif
