/* Folders and processes.  A folder that somebody else made beforehand, or a link in its place, is refused. */
#include "harness/measure/live_folder.h"

#include "harness/measure/live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FOLDER_ROOM = 512,      /* of the folder's path */
	FILES_LOOKED_AT = 4096, /* of a folder, at most */
};

#define SUFFIX ".live"

uint64_t live_process_start(int32_t pid)
{
	enum { START_FIELD = 22, FIRST_AFTER_NAME = 3 };
	char path[LIVE_NAME_ROOM];
	char text[1024];
	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	const ssize_t size = read(fd, text, sizeof text - 1);
	(void)close(fd);
	if (size <= 0)
		return 0;
	text[size] = '\0';
	/* The name is in parentheses and may have any character. */
	const char *at = strrchr(text, ')');
	for (int field = FIRST_AFTER_NAME - 1; at && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

void live_bases(const char *bases[LIVE_BASES])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	bases[0] = runtime && runtime[0] == '/' ? runtime : NULL;
	bases[1] = "/dev/shm";
	bases[2] = "/tmp";
}

int live_folder_open(const char *base, uid_t uid, bool make, struct error *err)
{
	char path[FOLDER_ROOM];
	if ((size_t)snprintf(path, sizeof path, "%s/mlbench-%u", base, (unsigned)uid) >=
		sizeof path)
		return error_set(err, -ENAMETOOLONG, "'%.100s...' is too long a name", base);
	if (make && mkdir(path, 0700) && errno != EEXIST)
		return error_set_errno(err, errno, "cannot make '%s'", path);
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, errno, "cannot open '%s'", path);
	struct stat st;
	if (fstat(fd, &st) == 0 && st.st_uid == uid && (st.st_mode & 077) == 0)
		return fd;
	(void)close(fd);
	return error_set(err, -EPERM, "'%s' is not this user's alone", path);
}

int live_folder_own(struct error *err)
{
	const char *bases[LIVE_BASES];
	int fd = -ENOENT;
	live_bases(bases);
	for (size_t i = 0; i < LIVE_BASES && fd < 0; i++)
		if (bases[i])
			fd = live_folder_open(bases[i], geteuid(), true, err);
	return fd;
}

void live_file_name(int32_t pid, char out[LIVE_NAME_ROOM])
{
	(void)snprintf(out, LIVE_NAME_ROOM, "%d" SUFFIX, pid);
}

int32_t live_file_pid(const char *name)
{
	char *end;
	const long pid = strtol(name, &end, 10);
	return name[0] >= '1' && name[0] <= '9' && strcmp(end, SUFFIX) == 0 && pid <= INT32_MAX
		       ? (int32_t)pid
		       : 0;
}

void live_folder_each(int folder, live_take *take, void *context)
{
	const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again >= 0 ? fdopendir(again) : NULL;
	if (!dir) {
		if (again >= 0)
			(void)close(again);
		return;
	}
	bool more = true;
	for (int seen = 0; more && seen < FILES_LOOKED_AT; seen++) {
		const struct dirent *entry = readdir(dir);
		const int32_t pid = entry ? live_file_pid(entry->d_name) : 0;
		more = entry && (pid == 0 || take(context, folder, entry->d_name, pid));
	}
	(void)closedir(dir);
}
