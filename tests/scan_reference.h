/* The plain scan that the one at depth is held to: fts in the order of names, one file at a time
 * where `threads` is 1.  Tests compare what both find, tests/bench/bench_scan.c what they take. */
#ifndef MLBENCH_TESTS_SCAN_REFERENCE_H
#define MLBENCH_TESTS_SCAN_REFERENCE_H

#include "workloads/dataset/scan.h"
#include "workloads/dataset/threads.h"
#include "workloads/image/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct reference_file {
	char *path;
	uint64_t bytes;
	int64_t modified_ns;
	struct image_info info;
	bool bad;
	char reason[ERROR_TEXT_BYTES];
};

struct reference {
	const char *root;
	struct reference_file *files; /* sorted as samples are */
	size_t count, room;
};

static inline int reference_by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static inline int reference_by_class(const void *a, const void *b)
{
	const struct reference_file *const x = a, *const y = b;
	size_t x_length, y_length;
	const char *const x_class = walk_class(x->path, &x_length), *const y_class = walk_class(
									    y->path, &y_length);
	const int order = memcmp(x_class, y_class, x_length < y_length ? x_length : y_length);
	if (order)
		return order;
	return x_length != y_length ? (x_length < y_length ? -1 : 1) : strcmp(x->path, y->path);
}

static inline const char *reference_reason(const FTSENT *entry)
{
	switch (entry->fts_info) {
	case FTS_DNR:
		return "the folder cannot be read";
	case FTS_DC:
		return "a link back to a folder above it";
	case FTS_SLNONE:
	case FTS_SL:
		return "a broken link";
	case FTS_ERR:
	case FTS_NS:
		return "its size and type cannot be read";
	case FTS_F:
		return entry->fts_statp->st_size == 0 ? "an empty file" : NULL;
	default:
		return "not a regular file";
	}
}

static inline void reference_list(struct reference *reference)
{
	char *const roots[] = {(char *)(uintptr_t)reference->root, NULL};
	FTS *const tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, reference_by_name);
	FTSENT *entry;
	while ((entry = fts_read(tree))) {
		if (entry->fts_level > 0 && entry->fts_name[0] == '.') {
			(void)fts_set(tree, entry, FTS_SKIP);
			continue;
		}
		const int info = entry->fts_info;
		const bool folder = info == FTS_DNR || info == FTS_DC;
		if (info == FTS_D || info == FTS_DP || info == FTS_DOT ||
			(!folder && image_format_of_name(entry->fts_name) == IMAGE_FORMAT_UNKNOWN))
			continue;
		if (reference->count == reference->room) {
			reference->room = 2 * reference->room + 1024;
			reference->files = realloc(
				reference->files, reference->room * sizeof *reference->files);
		}
		struct reference_file *const file = &reference->files[reference->count++];
		const char *const reason = reference_reason(entry);
		*file = (struct reference_file){
			.path = strdup(entry->fts_path + strlen(reference->root) + 1),
			.bytes = info == FTS_F ? (uint64_t)entry->fts_statp->st_size : 0,
			.modified_ns = info == FTS_F
					       ? entry->fts_statp->st_mtim.tv_sec * 1000000000LL +
							 entry->fts_statp->st_mtim.tv_nsec
					       : 0,
			.bad = reason != NULL,
		};
		(void)snprintf(file->reason, sizeof file->reason, "%s", reason ? reason : "");
	}
	(void)fts_close(tree);
	if (reference->count)
		qsort(reference->files, reference->count, sizeof *reference->files,
			reference_by_class);
}

static inline int reference_probe(void *context, unsigned worker, uint64_t index, struct error *err)
{
	struct reference *const reference = context;
	struct reference_file *const file = &reference->files[index];
	struct error why;
	char path[4096];
	(void)worker;
	(void)err;
	if (file->bad)
		return 0;
	(void)snprintf(path, sizeof path, "%s/%s", reference->root, file->path);
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		(void)error_set_errno(&why, errno, "cannot be opened");
		file->bad = true;
	}
	size_t room = 64 * 1024;
	while (fd >= 0) {
		char *const head = malloc(room);
		const ssize_t got = pread(fd, head, room, 0);
		int code = got < 0 ? error_set_errno(&why, errno, "cannot be read")
				   : image_read_info(head, (size_t)got, &file->info, &why);
		if (!code)
			code = image_check_bytes(&file->info, file->bytes, &why);
		free(head);
		if (code == -EAGAIN && (size_t)got == room && (uint64_t)got < file->bytes) {
			room *= 8;
			continue;
		}
		if (code == -EAGAIN)
			(void)error_set(&why, -EINVAL, "cut short within its header");
		file->bad = code != 0;
		(void)close(fd);
		break;
	}
	if (file->bad)
		(void)snprintf(file->reason, sizeof file->reason, "%s", why.text);
	return 0;
}

static inline void reference_scan(struct reference *reference, const char *root, unsigned threads)
{
	struct error err;
	*reference = (struct reference){.root = root};
	reference_list(reference);
	const struct team_job job = {.count = reference->count,
		.item = reference_probe,
		.context = reference,
		.threads = threads};
	(void)team_run(&job, &err);
}

static inline void reference_release(struct reference *reference)
{
	for (size_t i = 0; i < reference->count; i++)
		free(reference->files[i].path);
	free(reference->files);
}

#endif
