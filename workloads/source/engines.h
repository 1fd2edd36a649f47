/* What the source's own files share: the engines, and helpers that only they use. */
#ifndef MLBENCH_WORKLOADS_SOURCE_ENGINES_H
#define MLBENCH_WORKLOADS_SOURCE_ENGINES_H

#include "workloads/source/source.h"

extern const struct source_ops source_memory;
extern const struct source_ops source_pread;
extern const struct source_ops source_io_uring;

/* Appends to source->notes, "; " between notes; cut where they are full.  Not while readers run,
 * but under the engine's own lock. */
void source_note(struct source *source, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Bytes of the memory engine's copy of a data set. */
uint64_t source_memory_bytes(const struct dataset *dataset);

/* The data set's root folder, opened; -errno with the reason. */
int source_root_open(const struct dataset *dataset, struct error *err);

/* -EMFILE with the numbers, when this process may not open at_once files more.  root_fd: any that is open. */
int source_check_open_files(
	const struct source *source, int root_fd, unsigned at_once, struct error *err);

/* Whether files under root open with O_DIRECT: tries the first that is there.  Notes it if not. */
bool source_direct_works(struct source *source, int root_fd);

/* The size of an open file, or of one by path under root_fd; 0 when it cannot be known. */
uint64_t source_file_bytes(int fd);
uint64_t source_path_bytes(int root_fd, const char *path);

#endif
