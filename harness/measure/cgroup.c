/* Where the groups are, and what their files say.
 *
 * /proc/self/cgroup gives the path of the process's group in each hierarchy, /proc/self/mountinfo where hierarchies
 * are mounted and which part of them a mount shows.  Seen from a container both are relative to the root of its
 * namespace: "/" is the container's own group, "/.." what lies above it. */
#include "harness/measure/cgroup.h"

#include "harness/base/files.h"
#include "harness/measure/proc_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	for (const char *line = mountinfo; line && *line;) {
		struct mount_entry mount;
		if (parse_mount(line, &mount) && is_wanted_mount(&mount, controller) &&
			on(&mount, path, place))
			return true;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
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

/* --- what its files say ------------------------------------------------------------------------ */

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

bool cgroup_quota_again(struct cpu_quota *quota)
{
	struct cpu_quota now = *quota;
	if (!read_quota(&now) || isinf(now.cores))
		return false;
	*quota = now;
	return true;
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

/* The number behind a name at the start of a line. */
static double stat_number(const char *text, const char *name)
{
	const size_t length = strlen(name);
	for (const char *line = text; line && *line;) {
		if (strncmp(line, name, length) == 0 && line[length] == ' ')
			return strtod(line + length, NULL);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return NAN;
}

void cgroup_cpu_use(const struct cpu_quota *quota, struct cpu_quota_use *out)
{
	char path[FILE_BYTES];
	char *text = NULL;
	size_t size;
	*out = (struct cpu_quota_use){NAN, NAN, NAN};
	(void)snprintf(path, sizeof path, "%s/cpu.stat", quota->folder);
	if (files_read(path, STAT_BYTES, &text, &size, NULL) != 0)
		return;
	out->periods = stat_number(text, "nr_periods");
	out->throttled = stat_number(text, "nr_throttled");
	out->throttled_seconds = quota->version == 2 ? stat_number(text, "throttled_usec") / 1e6
						     : stat_number(text, "throttled_time") / 1e9;
	free(text);
}

/* --- the limits -------------------------------------------------------------------------------- */

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

/* --- reads ------------------------------------------------------------------------------------- */

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
