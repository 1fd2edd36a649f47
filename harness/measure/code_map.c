/* Finding and reading a perf map. */
#include "harness/measure/code_map.h"

#include "harness/base/bounded.h"
#include "harness/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	CODE_MAP_PIECE = 1 << 20,   /* of one refresh */
	CODE_MAP_LINE_BYTES = 1024, /* longer names are cut off */
};

struct code_map {
	int fd;
	uint64_t offset; /* read until here */
	char line[CODE_MAP_LINE_BYTES];
	size_t used;
	struct code_entry *entries; /* (count) */
	size_t count, room;
	bool sorted;
};

/* The number that the process has for itself: the last of NSpid, where the kernel tells. */
static int32_t code_map_own_number(const char *root, int32_t pid)
{
	char path[320];
	char line[256];
	int32_t number = pid;
	(void)snprintf(path, sizeof path, "%.256s/proc/%d/status", root, pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		for (char *at = line + 6, *end;; at = end) {
			const long one = strtol(at, &end, 10);
			if (end == at)
				break;
			if (one > 0 && one <= INT32_MAX)
				number = (int32_t)one;
		}
	}
	if (file)
		(void)fclose(file);
	return number;
}

/* Below the process's root, whatever links there are on the way: none leads out. */
static int code_map_open_file(const char *root, int32_t pid, struct stat *owner)
{
	char path[320];
	char name[64];
	const struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	(void)snprintf(path, sizeof path, "%.256s/proc/%d", root, pid);
	if (stat(path, owner) != 0)
		return -errno;
	(void)snprintf(path, sizeof path, "%.256s/proc/%d/root", root, pid);
	const int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	(void)snprintf(name, sizeof name, "tmp/perf-%d.map", code_map_own_number(root, pid));
	const long fd = syscall(SYS_openat2, folder, name, &how, sizeof how);
	const int code = fd < 0 ? -errno : (int)fd;
	(void)close(folder);
	return code;
}

int code_map_open(struct code_map **out, const char *root, int32_t pid, struct error *err)
{
	struct stat owner;
	struct stat status;
	char path[320];
	*out = NULL;
	(void)snprintf(path, sizeof path, "%.256s/proc/%d/root/tmp", root, pid);
	if (path_answers(path, NULL, err))
		return -ETIMEDOUT;
	const int fd = code_map_open_file(root, pid, &owner);
	if (fd == -ELOOP)
		return error_set(err, -EPERM, "its perf map is a link");
	if (fd < 0)
		return error_set(err, fd, "it has no perf map: %s", strerror(-fd));
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != owner.st_uid) {
		(void)close(fd);
		return error_set(
			err, -EPERM, "its perf map is no plain file of the process's own user");
	}
	struct code_map *map = calloc(1, sizeof *map);
	if (!map) {
		(void)close(fd);
		return error_set(err, -ENOMEM, "out of memory");
	}
	map->fd = fd;
	*out = map;
	return 0;
}

void code_map_close(struct code_map *map)
{
	if (!map)
		return;
	(void)close(map->fd);
	free(map->entries);
	free(map);
}

/* --- lines -------------------------------------------------------------------------------------- */

static bool code_map_grow(struct code_map *map)
{
	if (map->count < map->room)
		return true;
	const size_t room = map->room ? 2 * map->room : 256;
	if (map->room >= CODE_MAP_ENTRIES_MAX)
		return false;
	struct code_entry *entries = realloc(map->entries, room * sizeof *entries);
	if (!entries)
		return false;
	map->entries = entries;
	map->room = room;
	return true;
}

/* "py::function:/path/to/file.py": the path is nobody's business. */
static void code_map_name(struct code_entry *entry, const char *name)
{
	entry->python = strncmp(name, "py::", 4) == 0;
	const char *from = entry->python ? name + 4 : name;
	const size_t length = entry->python ? strcspn(from, ":") : strlen(from);
	(void)snprintf(entry->name, sizeof entry->name, "%.*s",
		(int)(length < sizeof entry->name ? length : sizeof entry->name - 1), from);
	utf8_make_plain(entry->name, '?');
}

static void code_map_take_line(struct code_map *map)
{
	char *end;
	map->line[map->used] = '\0';
	map->used = 0;
	const uint64_t begin = strtoull(map->line, &end, 16);
	if (end == map->line || *end != ' ')
		return;
	const char *at = end + 1;
	const uint64_t size = strtoull(at, &end, 16);
	if (end == at || *end != ' ' || !end[1] || size == 0 || begin + size < begin ||
		!code_map_grow(map))
		return;
	struct code_entry *entry = &map->entries[map->count++];
	*entry = (struct code_entry){.begin = begin, .size = size, .order = (uint32_t)map->count};
	code_map_name(entry, end + 1);
	map->sorted = false;
}

void code_map_refresh(struct code_map *map)
{
	char bytes[1 << 14];
	for (size_t taken = 0; taken < CODE_MAP_PIECE && map->offset < CODE_MAP_BYTES_MAX;) {
		const ssize_t got = pread(map->fd, bytes, sizeof bytes, (off_t)map->offset);
		if (got <= 0)
			return;
		for (ssize_t i = 0; i < got; i++)
			if (bytes[i] == '\n')
				code_map_take_line(map);
			else if (map->used < sizeof map->line - 1)
				map->line[map->used++] = bytes[i];
		map->offset += (uint64_t)got;
		taken += (size_t)got;
	}
}

/* --- addresses ---------------------------------------------------------------------------------- */

/* The later one of two at one place behind the other, where the search finds it. */
static int code_map_by_address(const void *a, const void *b)
{
	const struct code_entry *x = a;
	const struct code_entry *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

const struct code_entry *code_map_find(struct code_map *map, uint64_t address)
{
	size_t low = 0;
	size_t high = map->count;
	if (!map->sorted && map->count)
		qsort(map->entries, map->count, sizeof *map->entries, code_map_by_address);
	map->sorted = true;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (map->entries[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	const struct code_entry *entry = &map->entries[low - 1];
	return address - entry->begin < entry->size ? entry : NULL;
}

size_t code_map_count(const struct code_map *map)
{
	return map->count;
}
