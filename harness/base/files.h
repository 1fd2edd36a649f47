/* Files and folders: whole reads, atomic writes, and folders made on the way. */
#ifndef MLBENCH_BASE_FILES_H
#define MLBENCH_BASE_FILES_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a whole file, NUL-terminated, at most `limit` bytes (-EOVERFLOW above it); free *data.
 * A pipe is read to its end; one that nobody opens for writing is refused after three seconds. */
int files_read(const char *path, size_t limit, char **data, size_t *size, struct error *err);

/* Opens what is read as a stream, of any size: a file, or a pipe, which is refused where nothing comes from it in ten seconds
 * after its name was opened.  The descriptor, or a negative errno. */
int files_open_stream(const char *path, struct error *err);

/* Writes all of it to an open file, whatever signals come; 0 or -errno.  Safe in a signal's handler. */
int files_write_all(int fd, const void *data, size_t size);

/* Makes a new file beside path, in which path's new contents are written before it is renamed over path.
 * Never through a link, nor into a file that is there.  The descriptor, or a negative errno. */
#define FILES_BESIDE ".tmp-" /* PATH.tmp-PID or PATH.tmp-PID-N */
enum { FILES_PATH_BYTES = 4096 };
int files_create_beside(const char *path, char beside[FILES_PATH_BYTES], struct error *err);

/* Removes such files from a folder, of processes that do not run any more: a kill leaves them. */
void files_remove_left(const char *folder);

/* Writes path.tmp-PID, syncs, renames: readers see the old file or the whole new one. */
int files_write_atomic(const char *path, const void *data, size_t size, struct error *err);

/* Appends and fdatasyncs. */
int files_append(const char *path, const void *data, size_t size, struct error *err);

/* Takes the lock of an open file or folder until it is closed, without waiting.  -EBUSY: another process
 * has it.  0 where the file system has no locks, too (Lustre without flock, NFS without lockd): then a
 * warning names `folder`, which is what the lock would have protected. */
int files_lock(int fd, const char *folder);

/* mkdir -p; 0 when it is there already. */
int files_make_folder(const char *path, struct error *err);

/* Makes FOLDER/NAME as one that was not there, with -001, -002, ... where another process, maybe on another node, made it first.
 * *path is fresh memory. */
int files_make_new_folder(const char *folder, const char *name, char **path, struct error *err);

/* Removes a folder and all below it; never crosses a mount or follows a link. */
int files_remove_tree(const char *path, struct error *err);

/* "a" + "b" -> "a/b" in fresh memory (free it), NULL without memory. */
char *files_join(const char *folder, const char *name);

/* Whether a name ends so, in any case, and has something before it; not one that a dot hides. */
bool files_name_ends(const char *name, const char *ending);

/* Whether the file has a complete line: what a kill left before the first one holds nothing. */
bool files_has_line(const char *path);

/* Whether there is something of that name: 1, 0; or -errno, with err, where that cannot be told, which is no 0. */
int files_is_there(const char *path, struct error *err);

/* First line of a small file such as /proc or /sys entries, without the newline; out is "" and the
 * result -errno when it cannot be read. */
int files_first_line(const char *path, char *out, size_t room);

/* A single unsigned number in such a file. */
int files_number(const char *path, uint64_t *value);

#endif
