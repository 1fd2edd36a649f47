/* The calls by which a user's folder is looked at.  Tests put others in their place: slow ones,
 * ones that fail, folders without an end. */
#ifndef MLBENCH_WORKLOADS_DATASET_STORAGE_H
#define MLBENCH_WORKLOADS_DATASET_STORAGE_H

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

struct storage_calls {
	int (*openat)(int folder, const char *path, int flags, ...);
	struct dirent *(*readdir)(DIR *folder);
	int (*statx)(int folder, const char *path, int flags, unsigned mask, struct statx *out);
	ssize_t (*pread)(int file, void *to, size_t size, off_t offset);
	int (*close)(int file);
};

extern const struct storage_calls storage_system;

#endif
