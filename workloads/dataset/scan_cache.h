/* The manifest of a user's folder, kept outside it, which saves reading headers again. */
#ifndef MLBENCH_WORKLOADS_DATASET_SCAN_CACHE_H
#define MLBENCH_WORKLOADS_DATASET_SCAN_CACHE_H

#include "workloads/dataset/scan.h"

/* A scan of all files and each number of samples have a manifest of their own (some: that
 * number; 0: all).  It counts as long as the folder's names, and sizes and times of the files
 * that are in it, are as they were. */

/* Marks what is known of the walk's files, and asks for the sizes and times that it depends on.
 * Nothing is known where there is no manifest, or another folder's.  -EINTR, -ENOMEM. */
int scan_cache_take(struct folder_scan *scan, uint64_t some, struct walk *walk, struct error *err);

/* Keeps what the scan found where anything of it is new, unless its reason passes.  That it
 * cannot be kept is no failure. */
void scan_cache_keep(
	struct folder_scan *scan, uint64_t some, struct walk *walk, const struct dataset *dataset);

#endif
