/* What a killed run leaves beside its record: files half written, and recordings of a repetition that has no line. */
#include "harness/record/record.h"

#include "harness/base/files.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_ROOM = 48 };

static bool has_line(const struct record *record, uint32_t point, uint32_t repeat)
{
	for (size_t i = 0; i < record->entry_count; i++)
		if (record->entries[i].point == point && record->entries[i].repeat == repeat)
			return true;
	return false;
}

static bool is_lone_trace(const struct record *record, const char *name)
{
	char same[NAME_ROOM];
	uint32_t point;
	uint32_t repeat;
	if (sscanf(name, "p%9" SCNu32 "-r%9" SCNu32 ".json", &point, &repeat) != 2)
		return false;
	(void)snprintf(same, sizeof same, "p%05" PRIu32 "-r%" PRIu32 ".json", point, repeat);
	return strcmp(name, same) == 0 && !has_line(record, point, repeat);
}

/* A timeline is of the point's first repetition. */
static bool is_lone_timeline(const struct record *record, const char *name)
{
	char same[NAME_ROOM];
	uint32_t point = 0;
	const size_t length = strlen(name);
	const bool packed = length > 3 && strcmp(name + length - 3, ".gz") == 0;
	if (sscanf(name, "trace-p%9" SCNu32 ".json", &point) == 1)
		(void)snprintf(same, sizeof same, "trace-p%05" PRIu32 ".json%s", point,
			packed ? ".gz" : "");
	else
		(void)snprintf(same, sizeof same, "trace.json%s", packed ? ".gz" : "");
	return strcmp(name, same) == 0 && !has_line(record, point, 0);
}

static void remove_lone(const struct record *record, const char *folder,
	bool (*is_lone)(const struct record *record, const char *name))
{
	DIR *dir = opendir(folder);
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		if (is_lone(record, entry->d_name))
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		(void)closedir(dir);
}

void record_remove_litter(const struct record *record)
{
	char *traces = files_join(record->folder, "traces");
	files_remove_left(record->folder);
	remove_lone(record, record->folder, is_lone_timeline);
	if (traces) {
		files_remove_left(traces);
		remove_lone(record, traces, is_lone_trace);
	}
	free(traces);
}
