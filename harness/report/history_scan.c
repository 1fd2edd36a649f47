/* Walking the folders of results. */
#include "harness/report/history_scan.h"

#include "harness/base/files.h"
#include "harness/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { DEPTH_MAX = 8, RESULTS_MAX = 1000000, LINE_BYTES = 256, LOCKS_MAX = 256 };

/* Files that somebody holds locked (flock), by /proc/locks: to try the lock would disturb who wants it. */
struct locks {
	struct {
		unsigned major, minor;
		uint64_t inode;
	} files[LOCKS_MAX];
	size_t count;
};

struct walk {
	const char *root;
	struct found_results *found;
	struct locks locks;
	struct error *err;
};

static void read_locks(struct locks *locks)
{
	char line[LINE_BYTES];
	FILE *file = fopen("/proc/locks", "re");
	while (file && locks->count < LOCKS_MAX && fgets(line, sizeof line, file)) {
		const char *flock = strstr(line, "FLOCK");
		unsigned major;
		unsigned minor;
		uint64_t inode;
		if (flock && sscanf(flock, "FLOCK %*s %*s %*s %x:%x:%" SCNu64, &major, &minor,
				     &inode) == 3) {
			locks->files[locks->count].major = major;
			locks->files[locks->count].minor = minor;
			locks->files[locks->count++].inode = inode;
		}
	}
	if (file)
		(void)fclose(file);
}

static bool is_locked(const struct locks *locks, const struct stat *st)
{
	for (size_t i = 0; i < locks->count; i++)
		if (locks->files[i].inode == st->st_ino &&
			locks->files[i].major == major(st->st_dev) &&
			locks->files[i].minor == minor(st->st_dev))
			return true;
	return false;
}

static int add_found(struct walk *walk, const char *folder, const struct stat *st)
{
	struct found_results *found = walk->found;
	if (found->count == RESULTS_MAX)
		return error_set(
			walk->err, -E2BIG, "more than %d results in '%s'", RESULTS_MAX, walk->root);
	if (found->count == found->room) {
		const size_t room = found->room ? 2 * found->room : 64;
		struct found_result *larger = realloc(found->results, room * sizeof *larger);
		if (!larger)
			return error_set(walk->err, -ENOMEM, "out of memory for the history");
		found->results = larger;
		found->room = room;
	}
	char *copy = strdup(*folder ? folder : ".");
	if (!copy)
		return error_set(walk->err, -ENOMEM, "out of memory for the history");
	found->results[found->count++] = (struct found_result){.folder = copy,
		.mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
		.size = (int64_t)st->st_size,
		.running = is_locked(&walk->locks, st)};
	return 0;
}

static bool holds_points(const char *path, struct stat *st)
{
	char *points = files_join(path, "points.jsonl");
	const bool there = points && stat(points, st) == 0 && S_ISREG(st->st_mode);
	free(points);
	return there;
}

static bool is_plain_folder(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int walk_folder(struct walk *walk, const char *path, const char *folder, int depth);

static int walk_entry(
	struct walk *walk, const char *path, const char *folder, const char *name, int depth)
{
	if (name[0] == '.')
		return 0;
	char *below = files_join(path, name);
	char *relative = *folder ? files_join(folder, name) : strdup(name);
	int code = below && relative
			   ? 0
			   : error_set(walk->err, -ENOMEM, "out of memory for the history");
	if (!code && is_plain_folder(below))
		code = walk_folder(walk, below, relative, depth + 1);
	free(relative);
	free(below);
	return code;
}

static int walk_folder(struct walk *walk, const char *path, const char *folder, int depth)
{
	struct stat st;
	if (holds_points(path, &st))
		return add_found(walk, folder, &st);
	if (depth == DEPTH_MAX)
		return 0;
	DIR *dir = opendir(path);
	if (!dir && depth == 0)
		return error_set_errno(walk->err, errno, "cannot open '%s'", path);
	if (!dir) {
		log_warn("cannot open '%s': %s", path, strerror(errno));
		return 0;
	}
	int code = 0;
	for (const struct dirent *entry = readdir(dir); entry && !code; entry = readdir(dir))
		code = walk_entry(walk, path, folder, entry->d_name, depth);
	(void)closedir(dir);
	return code;
}

static int by_folder(const void *a, const void *b)
{
	const struct found_result *left = a;
	const struct found_result *right = b;
	return strcmp(left->folder, right->folder);
}

int history_scan(const char *root, struct found_results *out, struct error *err)
{
	struct walk walk = {.root = root, .found = out, .err = err};
	*out = (struct found_results){0};
	read_locks(&walk.locks);
	const int code = walk_folder(&walk, root, "", 0);
	if (!code && out->count > 0)
		qsort(out->results, out->count, sizeof *out->results, by_folder);
	return code;
}

void history_scan_release(struct found_results *found)
{
	for (size_t i = 0; i < found->count; i++)
		free(found->results[i].folder);
	free(found->results);
	*found = (struct found_results){0};
}
