/* Where the data lies: mount, file system, and the disk under it as far as it shows. */
#include "harness/base/files.h"
#include "harness/measure/data_store.h"
#include "harness/measure/environment_parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The path itself, or its nearest parent that exists, absolute. */
static int resolve(const char *path, char out[PATH_MAX])
{
	char at[PATH_MAX];
	if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
		return -ENAMETOOLONG;
	while (!realpath(at, out)) {
		if (errno != ENOENT && errno != ENOTDIR)
			return -errno;
		char *slash = strrchr(at, '/');
		if (slash == at && at[1] != '\0')
			at[1] = '\0';
		else if (slash && slash != at)
			*slash = '\0';
		else if (strcmp(at, ".") != 0)
			(void)snprintf(at, sizeof at, ".");
		else
			return -ENOENT;
	}
	return 0;
}

int environment_mount_of(const char *path, struct mount_entry *entry)
{
	char resolved[PATH_MAX];
	const int code = resolve(path, resolved);
	if (code)
		return code;
	char *mountinfo = environment_text("/proc/self/mountinfo");
	if (!mountinfo)
		return -ENOSYS;
	const bool found = parse_mount_of(mountinfo, resolved, entry);
	free(mountinfo);
	return found ? 0 : -ENOENT;
}

static const char *const device_facts[] = {
	"disk", "scheduler", "rotational", "disk_model", "read_ahead"};

static void no_device(struct fact_list *list, const char *why)
{
	for (size_t i = 0; i < sizeof device_facts / sizeof *device_facts; i++)
		fact_missing(list, "data", device_facts[i], "%s", why);
}

static void add_scheduler(struct fact_list *list, const char *folder)
{
	char path[PATH_MAX + 64];
	char line[128];
	char chosen[128];
	(void)snprintf(path, sizeof path, "%s/queue/scheduler", folder);
	if (files_first_line(path, line, sizeof line)) {
		fact_missing(list, "data", "scheduler", "'%s' cannot be read", path);
		return;
	}
	parse_bracketed(line, chosen, sizeof chosen);
	fact_text(list, "data", "scheduler", "%s", chosen);
}

static void add_queue(struct fact_list *list, const char *folder)
{
	char path[PATH_MAX + 64];
	uint64_t value;
	(void)snprintf(path, sizeof path, "%s/queue/rotational", folder);
	if (files_number(path, &value) == 0)
		fact_text(list, "data", "rotational", "%s", value ? "yes" : "no");
	else
		fact_missing(list, "data", "rotational", "'%s' cannot be read", path);
	(void)snprintf(path, sizeof path, "%s/queue/read_ahead_kb", folder);
	if (files_number(path, &value) == 0)
		fact_number(list, "data", "read_ahead", (double)value * 1024, "B");
	else
		fact_missing(list, "data", "read_ahead", "'%s' cannot be read", path);
	(void)snprintf(path, sizeof path, "%s/device/model", folder);
	environment_line(list, "data", "disk_model", path);
}

static void add_device(struct fact_list *list, const struct mount_entry *mount)
{
	struct block_disk disk;
	block_disk_find(mount, &disk);
	if (!disk.name[0]) {
		no_device(list, disk.why);
		return;
	}
	fact_text(list, "data", "disk", "%s", disk.name);
	add_scheduler(list, disk.folder);
	add_queue(list, disk.folder);
}

static void add_free_space(struct fact_list *list, const char *point)
{
	struct statvfs fs;
	if (statvfs(point, &fs) == 0)
		fact_number(list, "data", "free", (double)fs.f_bavail * (double)fs.f_frsize, "B");
	else
		fact_missing(list, "data", "free", "statvfs '%s': %s", point, strerror(errno));
}

void environment_storage(struct fact_list *list, const char *data_path)
{
	static const char *const names[] = {
		"path", "mount", "file_system", "options", "super_options", "device", "free"};
	struct mount_entry mount;
	const int code = data_path ? environment_mount_of(data_path, &mount) : 0;
	if (!data_path || code) {
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			fact_missing(list, "data", names[i], "%s",
				data_path ? strerror(-code) : "no data set is configured");
		no_device(list, data_path ? "the data's mount is unknown"
					  : "the data's mount is not configured");
		return;
	}
	fact_text(list, "data", "path", "%s", data_path);
	fact_text(list, "data", "mount", "%s", mount.point);
	fact_text(list, "data", "file_system", "%s", mount.type);
	fact_text(list, "data", "options", "%s", mount.options);
	fact_text(list, "data", "super_options", "%s", mount.super_options);
	fact_text(list, "data", "device", "%s", mount.source);
	add_free_space(list, mount.point);
	add_device(list, &mount);
}
