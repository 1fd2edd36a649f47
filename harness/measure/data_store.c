/* The store: what control groups allow and count, and what the disk under the data counts. */
#include "harness/measure/data_store.h"

#include "harness/base/files.h"
#include "harness/base/units.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- control groups --------------------------------------------------------------------------- */

/* Where the groups are, and what their files say.
 *
 * /proc/self/cgroup gives the path of the process's group in each hierarchy, /proc/self/mountinfo where hierarchies
 * are mounted and which part of them a mount shows.  Seen from a container both are relative to the root of its
 * namespace: "/" is the container's own group, "/.." what lies above it. */

enum {
	LINE_BYTES = 128,
	FILE_BYTES = CGROUP_FOLDER_BYTES + 64,
	STAT_BYTES = 4096,
	DEVICES_BYTES = 65536, /* a line or four a disk */
	LEVELS_MAX = 64
};

/* A group: where its files are, and what it is called. */
struct group_place {
	char folder[CGROUP_FOLDER_BYTES], path[MOUNT_TEXT_BYTES];
	size_t root; /* bytes of folder that are the mount point: no group is above it */
};

/* --- finding it ------------------------------------------------------------------------------- */

static bool is_wanted_mount(const struct mount_entry *mount, const char *controller)
{
	if (controller[0] == '\0')
		return strcmp(mount->type, "cgroup2") == 0;
	if (strcmp(mount->type, "cgroup") != 0)
		return false;
	char options[MOUNT_TEXT_BYTES];
	memcpy(options, mount->super_options, sizeof options);
	for (char *at = options; *at; at++)
		if (*at == ',')
			*at = ' ';
	return parse_has_word(options, controller);
}

/* What is left of a path below a root; NULL: it is elsewhere. */
static const char *below_root(const char *path, const char *root)
{
	const size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
		return NULL;
	return strcmp(path + length, "/") == 0 ? "" : path + length;
}

static bool begins_above(const char *path)
{
	return strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0');
}

typedef bool place_on(const struct mount_entry *mount, const char *path, struct group_place *place);

/* The mount shows the group itself. */
static bool place_own(const struct mount_entry *mount, const char *path, struct group_place *place)
{
	const char *below = below_root(path, mount->root);
	if (!below || begins_above(below))
		return false;
	*place = (struct group_place){.root = strlen(mount->point)};
	(void)snprintf(place->path, sizeof place->path, "%s", path);
	(void)snprintf(place->folder, sizeof place->folder, "%s%s", mount->point, below);
	return access(place->folder, F_OK) == 0;
}

/* The root of the mount is above the group, or all that a container sees of it.  A group above the namespace is in no
 * such relation to what is mounted. */
static bool place_root(const struct mount_entry *mount, const char *path, struct group_place *place)
{
	if (begins_above(path))
		return false;
	*place = (struct group_place){.root = strlen(mount->point)};
	(void)snprintf(place->path, sizeof place->path, "%s", mount->root);
	(void)snprintf(place->folder, sizeof place->folder, "%s", mount->point);
	return access(place->folder, F_OK) == 0;
}

static bool find_place(const char *mountinfo, const char *controller, const char *path,
	place_on *on, struct group_place *place)
{
	for (const char *line = mountinfo; line && *line; line = text_next_line(line)) {
		struct mount_entry mount;
		if (parse_mount(line, &mount) && is_wanted_mount(&mount, controller) &&
			on(&mount, path, place))
			return true;
	}
	return false;
}

/* controller: "" is the hierarchy of v2. */
static bool find_group(const char *mountinfo, const char *cgroup, const char *controller,
	struct group_place *place)
{
	char path[MOUNT_TEXT_BYTES];
	return parse_cgroup_path(cgroup, controller, path, sizeof path) &&
	       (find_place(mountinfo, controller, path, place_own, place) ||
		       find_place(mountinfo, controller, path, place_root, place));
}

/* False: there is none above, or the mount does not show it. */
static bool go_up(struct group_place *place)
{
	char *slash = strrchr(place->folder, '/');
	char *name = strrchr(place->path, '/');
	if (!slash || (size_t)(slash - place->folder) < place->root)
		return false;
	*slash = '\0';
	if (name)
		*name = '\0';
	return true;
}

/* --- what its files say ----------------------------------------------------------------------- */

static bool first_line(const char *folder, const char *name, char line[LINE_BYTES])
{
	char path[FILE_BYTES];
	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	return files_first_line(path, line, LINE_BYTES) == 0;
}

static double number_in(const char *folder, const char *name, double (*parse)(const char *))
{
	char line[LINE_BYTES];
	return first_line(folder, name, line) ? parse(line) : NAN;
}

static double parse_signed(const char *text)
{
	return strtod(text, NULL);
}

/* False: the group can have no quota. */
static bool read_quota_v2(struct cpu_quota *quota)
{
	char line[LINE_BYTES];
	if (!first_line(quota->folder, "cpu.max", line))
		return false;
	const double cores = parse_cpu_max(line);
	const char *period = strchr(line, ' ');
	quota->cores = cores > 0 ? cores : INFINITY;
	quota->period_s = isfinite(cores) && period ? strtod(period, NULL) / 1e6 : NAN;
	return true;
}

static bool read_quota_v1(struct cpu_quota *quota)
{
	const double us = number_in(quota->folder, "cpu.cfs_quota_us", parse_signed);
	const double period = number_in(quota->folder, "cpu.cfs_period_us", parse_signed);
	const bool limits = us > 0 && period > 0;
	quota->cores = limits ? us / period : INFINITY;
	quota->period_s = limits ? period / 1e6 : NAN;
	return !isnan(us);
}

static bool read_quota(struct cpu_quota *quota)
{
	return quota->version == 2 ? read_quota_v2(quota) : read_quota_v1(quota);
}

static void name_group(const char *path, char out[CGROUP_GROUP_BYTES])
{
	const size_t length = strlen(path);
	const size_t most = CGROUP_GROUP_BYTES - 1 - strlen("...");
	if (length < CGROUP_GROUP_BYTES)
		(void)snprintf(out, CGROUP_GROUP_BYTES, "%s", length > 0 ? path : "/");
	else
		(void)snprintf(out, CGROUP_GROUP_BYTES, "...%s", path + length - most);
}

static void add_quotas(int version, const struct group_place *own, struct cpu_quotas *out)
{
	struct group_place place = *own;
	bool more = true;
	for (int level = 0; level < LEVELS_MAX && more && out->count < CPU_QUOTAS_MAX; level++) {
		struct cpu_quota *quota = &out->of[out->count];
		quota->version = version;
		name_group(place.path, quota->group);
		memcpy(quota->folder, place.folder, sizeof quota->folder);
		out->count += read_quota(quota);
		more = go_up(&place);
	}
}

void cgroup_cpu_quotas_of(const char *mountinfo, const char *cgroup, struct cpu_quotas *out)
{
	struct group_place place;
	char path[MOUNT_TEXT_BYTES];
	*out = (struct cpu_quotas){0};
	if (!mountinfo || !cgroup) {
		(void)snprintf(out->unknown, sizeof out->unknown,
			"/proc/self/mountinfo or /proc/self/cgroup cannot be read");
		return;
	}
	const bool v2 = find_group(mountinfo, cgroup, "", &place);
	if (v2)
		add_quotas(2, &place, out);
	/* A controller is in one of the hierarchies: where v1 has it, v2 has not. */
	const bool has_v1 = parse_cgroup_path(cgroup, "cpu", path, sizeof path);
	const bool v1 = has_v1 && find_group(mountinfo, cgroup, "cpu", &place);
	if (v1)
		add_quotas(1, &place, out);
	if (has_v1 ? !v1 : !v2)
		(void)snprintf(out->unknown, sizeof out->unknown,
			"this process's CPU control group is not mounted here");
}

void cgroup_cpu_quotas(struct cpu_quotas *out)
{
	char *mountinfo = proc_text("/proc/self/mountinfo");
	char *cgroup = proc_text("/proc/self/cgroup");
	cgroup_cpu_quotas_of(mountinfo, cgroup, out);
	free(mountinfo);
	free(cgroup);
}

const struct cpu_quota *cgroup_tightest(const struct cpu_quotas *quotas)
{
	const struct cpu_quota *least = NULL;
	for (size_t i = 0; i < quotas->count; i++)
		if (isfinite(quotas->of[i].cores) && (!least || quotas->of[i].cores < least->cores))
			least = &quotas->of[i];
	return least;
}

void cgroup_cpu_use(const struct cpu_quota *quota, struct cpu_quota_use *out)
{
	char path[FILE_BYTES];
	char *text = NULL;
	size_t size;
	struct cpu_quota now = *quota;
	*out = (struct cpu_quota_use){NAN, NAN, NAN, NAN, NAN};
	if (read_quota(&now))
		out->cores = now.cores;
	(void)snprintf(path, sizeof path, "%s/cpu.stat", quota->folder);
	if (files_read(path, STAT_BYTES, &text, &size, NULL) != 0)
		return;
	out->periods = parse_number_after(text, "nr_periods");
	out->throttled = parse_number_after(text, "nr_throttled");
	out->throttled_seconds = quota->version == 2
					 ? parse_number_after(text, "throttled_usec") / 1e6
					 : parse_number_after(text, "throttled_time") / 1e9;
	out->seconds = quota->version == 2
			       ? parse_number_after(text, "usage_usec") / 1e6
			       : number_in(quota->folder, "cpuacct.usage", parse_signed) / 1e9;
	free(text);
}

/* --- the limits ------------------------------------------------------------------------------- */

/* Least of the limits from the group up to its root, and the group that sets it. */
static double least_memory(
	const struct group_place *own, const char *file, char group[CGROUP_GROUP_BYTES])
{
	struct group_place place = *own;
	double least = INFINITY;
	bool more = true;
	for (int level = 0; level < LEVELS_MAX && more; level++) {
		const double bytes = number_in(place.folder, file, parse_memory_max);
		if (bytes < least) { /* false for NAN: no such file here */
			least = bytes;
			name_group(place.path, group);
		}
		more = go_up(&place);
	}
	return least;
}

struct cgroup_limits cgroup_limits_of(const char *mountinfo, const char *cgroup)
{
	struct cgroup_limits limits = {
		.cores = INFINITY, .memory_bytes = INFINITY, .memory_high_bytes = INFINITY};
	struct group_place place;
	struct cpu_quotas quotas;
	if (!mountinfo || !cgroup)
		return limits;
	if (find_group(mountinfo, cgroup, "", &place)) {
		limits.version = 2;
		limits.memory_bytes = least_memory(&place, "memory.max", limits.memory_group);
		limits.memory_high_bytes =
			least_memory(&place, "memory.high", limits.memory_high_group);
	}
	if (find_group(mountinfo, cgroup, "cpu", &place))
		limits.version = 1;
	if (find_group(mountinfo, cgroup, "memory", &place)) {
		/* A controller is in one of the hierarchies. */
		limits.version = 1;
		limits.memory_bytes =
			least_memory(&place, "memory.limit_in_bytes", limits.memory_group);
	}
	cgroup_cpu_quotas_of(mountinfo, cgroup, &quotas);
	const struct cpu_quota *least = cgroup_tightest(&quotas);
	limits.cores = least ? least->cores : (double)INFINITY;
	return limits;
}

struct cgroup_limits cgroup_limits_now(void)
{
	char *mountinfo = proc_text("/proc/self/mountinfo");
	char *cgroup = proc_text("/proc/self/cgroup");
	const struct cgroup_limits limits = cgroup_limits_of(mountinfo, cgroup);
	free(mountinfo);
	free(cgroup);
	return limits;
}

int cgroup_memory_folder_of(
	const char *mountinfo, const char *cgroup, char out[CGROUP_FOLDER_BYTES])
{
	struct group_place place;
	char line[LINE_BYTES];
	int version = 0;
	if (!mountinfo || !cgroup)
		return 0;
	if (find_group(mountinfo, cgroup, "memory", &place) &&
		first_line(place.folder, "memory.limit_in_bytes", line))
		version = 1;
	else if (find_group(mountinfo, cgroup, "", &place) && access(place.folder, F_OK) == 0)
		version = 2;
	if (version > 0)
		(void)snprintf(out, CGROUP_FOLDER_BYTES, "%s", place.folder);
	return version;
}

int cgroup_memory_folder(char out[CGROUP_FOLDER_BYTES])
{
	char *mountinfo = proc_text("/proc/self/mountinfo");
	char *cgroup = proc_text("/proc/self/cgroup");
	const int version = cgroup_memory_folder_of(mountinfo, cgroup, out);
	free(mountinfo);
	free(cgroup);
	return version;
}

/* --- reads ------------------------------------------------------------------------------------ */

/* The text behind a word on a device's line ("8:0 rbps=1048576 wbps=max ..."); NULL: no line has both. */
static const char *after_word(const char *text, const struct block_number *device, const char *word)
{
	char number[LINE_BYTES];
	const size_t length =
		(size_t)snprintf(number, sizeof number, "%u:%u ", device->major, device->minor);
	for (const char *line = text; line && *line;) {
		const char *end = strchr(line, '\n');
		const char *at = strncmp(line, number, length) == 0 ? strstr(line, word) : NULL;
		if (at && (!end || at < end))
			return at + strlen(word);
		line = end ? end + 1 : NULL;
	}
	return NULL;
}

/* NAN: the file or the device's line is not there, or has no number. */
static double limited_device(
	const char *folder, const char *file, const struct block_number *device, const char *word)
{
	char path[FILE_BYTES];
	char *text = NULL;
	size_t size;
	(void)snprintf(path, sizeof path, "%s/%s", folder, file);
	if (files_read(path, DEVICES_BYTES, &text, &size, NULL) != 0)
		return NAN;
	const char *at = after_word(text, device, word);
	char *end = NULL;
	const double value = at ? strtod(at, &end) : NAN;
	const bool is_number = at && end > at;
	free(text);
	return is_number ? value : NAN;
}

/* Where a version keeps them: the word is in front of the number, on the device's line. */
static const struct {
	const char *limits[2], *limit_words[2]; /* bytes, requests */
	const char *counts[2], *count_words[2];
} read_files[] = {
	[1] = {{"blkio.throttle.read_bps_device", "blkio.throttle.read_iops_device"}, {" ", " "},
		{"blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"},
		{" Read ", " Read "}},
	[2] = {{"io.max", "io.max"}, {" rbps=", " riops="}, {"io.stat", "io.stat"},
		{" rbytes=", " rios="}},
};

static void add_read_limit(int version, int kind, const struct group_place *place,
	const struct block_number *device, struct cgroup_read_limit *out)
{
	const double per_s = limited_device(place->folder, read_files[version].limits[kind], device,
		read_files[version].limit_words[kind]);
	if (!(per_s > 0) || per_s >= out->per_s)
		return;
	out->version = version;
	out->per_s = per_s;
	out->device = *device;
	name_group(place->path, out->group);
	memcpy(out->folder, place->folder, sizeof out->folder);
}

static void add_read_limits(int version, const struct group_place *own,
	const struct block_number *devices, size_t count, struct cgroup_read_limits *out)
{
	struct group_place place = *own;
	bool more = true;
	for (int level = 0; level < LEVELS_MAX && more; level++) {
		for (size_t i = 0; i < count; i++) {
			add_read_limit(version, 0, &place, &devices[i], &out->bytes);
			add_read_limit(version, 1, &place, &devices[i], &out->requests);
		}
		more = version == 2 && go_up(&place);
	}
}

void cgroup_read_limits_of(const char *mountinfo, const char *cgroup,
	const struct block_number *devices, size_t count, struct cgroup_read_limits *out)
{
	struct group_place place;
	*out = (struct cgroup_read_limits){.bytes.per_s = INFINITY, .requests.per_s = INFINITY};
	if (!mountinfo || !cgroup)
		return;
	if (find_group(mountinfo, cgroup, "", &place))
		add_read_limits(2, &place, devices, count, out);
	if (find_group(mountinfo, cgroup, "blkio", &place))
		add_read_limits(1, &place, devices, count, out);
}

void cgroup_read_limits(
	const struct block_number *devices, size_t count, struct cgroup_read_limits *out)
{
	char *mountinfo = proc_text("/proc/self/mountinfo");
	char *cgroup = proc_text("/proc/self/cgroup");
	cgroup_read_limits_of(mountinfo, cgroup, devices, count, out);
	free(mountinfo);
	free(cgroup);
}

/* Lines of "major minor #blocks name" behind a head. */
static size_t disk_numbers(struct block_number *out, size_t room)
{
	char *const text = proc_text("/proc/partitions");
	size_t count = 0;
	for (const char *at = text; at && count < room; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (sscanf(at, "%u %u", &out[count].major, &out[count].minor) == 2)
			count++;
	}
	free(text);
	return count;
}

bool cgroup_limits_reads(void)
{
	enum { DISKS_MOST = 256 };
	struct block_number disks[DISKS_MOST];
	struct cgroup_read_limits limits;
	cgroup_read_limits(disks, disk_numbers(disks, DISKS_MOST), &limits);
	return isfinite(limits.bytes.per_s) || isfinite(limits.requests.per_s);
}

const char *cgroup_read_limit_words(
	const struct cgroup_read_limits *limits, char out[READ_LIMIT_WORDS_BYTES])
{
	const bool bytes = isfinite(limits->bytes.per_s);
	const bool requests = isfinite(limits->requests.per_s);
	char rate[UNITS_BYTES] = "";
	char count[UNITS_BYTES] = "";
	if (bytes)
		(void)units_format_rate(limits->bytes.per_s, rate);
	if (requests)
		(void)snprintf(count, sizeof count, "%.0f requests/s", limits->requests.per_s);
	(void)snprintf(out, READ_LIMIT_WORDS_BYTES, "%s%s%s", rate,
		bytes && requests ? " and " : "", count);
	return out;
}

void cgroup_read_use(const struct cgroup_read_limit *limit, struct cgroup_read_use *out)
{
	*out = (struct cgroup_read_use){NAN, NAN};
	if (isinf(limit->per_s))
		return;
	const int v = limit->version;
	out->bytes = limited_device(limit->folder, read_files[v].counts[0], &limit->device,
		read_files[v].count_words[0]);
	out->requests = limited_device(limit->folder, read_files[v].counts[1], &limit->device,
		read_files[v].count_words[1]);
}

/* --- the disk under the data ------------------------------------------------------------------ */

enum { STAT_LINE_BYTES = 512, SECTOR_BYTES = 512, LAYERS_MAX = 8 };

static const char dev_block_folder[] = "/sys/dev/block";

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

static void find_server(const struct mount_entry *mount, struct data_store *out)
{
	enum { NFS_PORT = 2049 };
	char port[8];
	const bool has_port = parse_mount_option(mount->super_options, "port", port, sizeof port);
	out->server_port = has_port ? (unsigned)strtoul(port, NULL, 10) : NFS_PORT;
	if (!parse_mount_option(mount->super_options, "addr", out->server, sizeof out->server))
		out->server[0] = '\0';
}

void data_store_find(const char *path, struct data_store *out)
{
	struct mount_entry mount;
	*out = (struct data_store){0};
	const int code = proc_mount_of(path, &mount);
	if (code)
		(void)snprintf(out->disk.why, sizeof out->disk.why,
			"the data's mount is not known: %s", proc_mount_why(code));
	else
		block_disk_find(&mount, &out->disk);
	(void)snprintf(out->type, sizeof out->type, "%.*s", NAME_BYTES - 1, code ? "" : mount.type);
	(void)snprintf(out->point, sizeof out->point, "%s", code ? "" : mount.point);
	if (data_store_is_nfs(out))
		find_server(&mount, out);
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

bool data_store_is_nfs(const struct data_store *store)
{
	return strcmp(store->type, "nfs") == 0 || strcmp(store->type, "nfs4") == 0;
}

/* --- its counts ------------------------------------------------------------------------------- */

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

/* --- what came of it -------------------------------------------------------------------------- */

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
