/* Disks in /sys, and rates from two looks at their counts. */
#include "harness/measure/data_store.h"

#include "harness/base/files.h"
#include "harness/measure/proc_text.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAT_LINE_BYTES = 512, SECTOR_BYTES = 512, LAYERS_MAX = 8 };

static const char dev_block_folder[] = "/sys/dev/block";

/* --- the disk ------------------------------------------------------------------------------------- */

static bool has_number(const struct block_disk *disk, const struct block_number *number)
{
	for (size_t i = 0; i < disk->count; i++)
		if (disk->numbers[i].major == number->major &&
			disk->numbers[i].minor == number->minor)
			return true;
	return false;
}

/* A partition's folder is in that of its disk. */
static void go_to_whole_disk(char folder[PATH_MAX])
{
	char inside[PATH_MAX + 16];
	(void)snprintf(inside, sizeof inside, "%s/partition", folder);
	char *slash = strrchr(folder, '/');
	if (slash && access(inside, F_OK) == 0)
		*slash = '\0';
}

static void add_disks(const char *folder, int layer, struct block_disk *disk);

static void add_disks_below(const char *folder, int layer, struct block_disk *disk)
{
	char path[PATH_MAX + 16];
	(void)snprintf(path, sizeof path, "%s/slaves", folder);
	DIR *slaves = opendir(path);
	if (!slaves)
		return;
	const struct dirent *entry;
	while ((entry = readdir(slaves))) {
		char link[PATH_MAX + 16 + NAME_MAX + 2];
		char below[PATH_MAX];
		(void)snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
		if (entry->d_name[0] == '.' || !realpath(link, below))
			continue;
		go_to_whole_disk(below);
		add_disks(below, layer + 1, disk);
	}
	(void)closedir(slaves);
}

static void add_disks(const char *folder, int layer, struct block_disk *disk)
{
	char path[PATH_MAX + 16];
	char line[STAT_LINE_BYTES];
	struct block_number number;
	(void)snprintf(path, sizeof path, "%s/dev", folder);
	if (layer == LAYERS_MAX || disk->count == BLOCK_DEVICES_MAX ||
		files_first_line(path, line, sizeof line) ||
		sscanf(line, "%u:%u", &number.major, &number.minor) != 2 ||
		has_number(disk, &number))
		return;
	disk->numbers[disk->count++] = number;
	add_disks_below(folder, layer, disk);
}

void block_disk_find_in(
	const char *dev_block, const struct mount_entry *mount, struct block_disk *out)
{
	char link[PATH_MAX];
	char folder[PATH_MAX];
	*out = (struct block_disk){0};
	(void)snprintf(link, sizeof link, "%s/%u:%u", dev_block, mount->major, mount->minor);
	if (mount->major == 0) {
		(void)snprintf(out->why, sizeof out->why,
			"%s is no file system on a block device of this node", mount->type);
		return;
	}
	if (!realpath(link, folder)) {
		(void)snprintf(out->why, sizeof out->why, "%u:%u is not shown in /sys/dev/block",
			mount->major, mount->minor);
		return;
	}
	go_to_whole_disk(folder);
	const char *slash = strrchr(folder, '/');
	(void)snprintf(out->name, sizeof out->name, "%.*s", NAME_BYTES - 1, slash + 1);
	(void)snprintf(out->folder, sizeof out->folder, "%.*s", BLOCK_FOLDER_BYTES - 1, folder);
	add_disks(folder, 0, out);
}

void block_disk_find(const struct mount_entry *mount, struct block_disk *out)
{
	block_disk_find_in(dev_block_folder, mount, out);
}

void data_store_find(const char *path, struct data_store *out)
{
	struct mount_entry mount;
	*out = (struct data_store){0};
	const int code = proc_mount_of(path, &mount);
	if (code)
		(void)snprintf(out->disk.why, sizeof out->disk.why,
			"the data's mount is not known: %s", strerror(-code));
	else
		block_disk_find(&mount, &out->disk);
	(void)snprintf(out->type, sizeof out->type, "%.*s", NAME_BYTES - 1, code ? "" : mount.type);
	cgroup_read_limits(out->disk.numbers, out->disk.count, &out->limits);
}

bool data_store_counts_fetches(const struct data_store *store)
{
	static const char *const count_nothing[] = {"fuse", "virtiofs", "9p"};
	for (size_t i = 0; i < sizeof count_nothing / sizeof *count_nothing; i++)
		if (strncmp(store->type, count_nothing[i], strlen(count_nothing[i])) == 0)
			return false;
	return true;
}

/* --- its counts ----------------------------------------------------------------------------------- */

/* block/stat.rst of the kernel: requests, merges, sectors and ms of reads, the same of writes, in flight, ms busy. */
static void read_disk(const struct block_disk *disk, struct data_store_use *out)
{
	char path[BLOCK_FOLDER_BYTES + 8];
	char line[STAT_LINE_BYTES];
	double requests;
	double sectors;
	double read_ms;
	double busy_ms;
	(void)snprintf(path, sizeof path, "%s/stat", disk->folder);
	if (!disk->name[0] || files_first_line(path, line, sizeof line) ||
		sscanf(line, "%lf %*s %lf %lf %*s %*s %*s %*s %*s %lf", &requests, &sectors,
			&read_ms, &busy_ms) != 4)
		return;
	out->reads = requests;
	out->bytes = sectors * SECTOR_BYTES;
	out->read_seconds = read_ms / 1e3;
	out->busy_seconds = busy_ms / 1e3;
}

void data_store_read(const struct data_store *store, struct data_store_use *out)
{
	struct cgroup_read_use use;
	*out = (struct data_store_use){NAN, NAN, NAN, NAN, NAN, NAN};
	read_disk(&store->disk, out);
	cgroup_read_use(&store->limits.bytes, &use);
	out->limited_bytes = use.bytes;
	cgroup_read_use(&store->limits.requests, &use);
	out->limited_requests = use.requests;
}

/* --- what came of it ------------------------------------------------------------------------------ */

/* v2 has no line of a device that nothing was read from yet: its count was 0. */
static double used(double from, double to, double seconds)
{
	return (to - (isnan(from) ? 0 : from)) / seconds;
}

static void fill_limit(const struct cgroup_read_limit *before,
	const struct cgroup_read_limit *after, double rate, char *group, double *limit,
	double *used_per_s)
{
	if (isinf(before->per_s) || after->per_s != before->per_s ||
		strcmp(after->group, before->group) != 0)
		return;
	*limit = before->per_s;
	*used_per_s = rate;
	(void)snprintf(group, QUOTA_GROUP_BYTES, "%s", before->group);
}

void data_store_between(const struct data_store *store, const struct cgroup_read_limits *now,
	const struct data_store_use *from, const struct data_store_use *to, double seconds,
	struct store_measurement *out)
{
	const double reads = to->reads - from->reads;
	store_measurement_init(out, store->disk.why);
	memcpy(out->device, store->disk.name, sizeof out->device);
	out->reads_per_s = reads / seconds;
	out->bytes_per_s = (to->bytes - from->bytes) / seconds;
	out->read_ns = reads > 0 ? (to->read_seconds - from->read_seconds) / reads * 1e9 : NAN;
	/* The kernel counts busy time in ticks: one more than there were is possible. */
	const double busy = (to->busy_seconds - from->busy_seconds) / seconds;
	out->busy_share = busy > 1 ? 1 : busy;
	if (!out->why[0] && isnan(reads))
		(void)snprintf(out->why, sizeof out->why, "'/sys/block/%s/stat' cannot be read",
			store->disk.name);
	fill_limit(&store->limits.bytes, &now->bytes,
		used(from->limited_bytes, to->limited_bytes, seconds), out->bytes_group,
		&out->bytes_limit, &out->bytes_used);
	fill_limit(&store->limits.requests, &now->requests,
		used(from->limited_requests, to->limited_requests, seconds), out->requests_group,
		&out->requests_limit, &out->requests_used);
}
