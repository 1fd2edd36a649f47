/* Where pictures of runs lie: a folder of this user's alone, with a file for each process.  Internal to live.c. */
#ifndef MLBENCH_MEASURE_LIVE_FOLDER_H
#define MLBENCH_MEASURE_LIVE_FOLDER_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { LIVE_BASES = 3, LIVE_NAME_ROOM = 32 };

/* Folders that the folder may be in, in the order of trying; NULL: not set. */
void live_bases(const char *bases[LIVE_BASES]);

/* An open folder that belongs to uid and to nobody else, or -errno with the reason. */
int live_folder_open(const char *base, uid_t uid, bool make, struct error *err);
/* The first that this user can have, made where it is not there. */
int live_folder_own(struct error *err);

/* "4711.live" */
void live_file_name(int32_t pid, char out[LIVE_NAME_ROOM]);
/* The process whose picture has this name; 0: it is no such name. */
int32_t live_file_pid(const char *name);

/* Calls take for every picture of a folder, so many at most; false from it ends the walk. */
typedef bool live_take(void *context, int folder, const char *name, int32_t pid);
void live_folder_each(int folder, live_take *take, void *context);

#endif
