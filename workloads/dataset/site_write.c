/* Writing a generated set: samples, journal, manifest. */
#include "workloads/dataset/site.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int site_write_write_all(int file, const void *data, size_t size)
{
	const char *bytes = data;
	while (size > 0) {
		const ssize_t n = write(file, bytes, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

/* "class_0007/00001234.jpg" -> "class_0007/.00001234.jpg.tmp": no tool takes that for a picture. */
static void temporary_name(const char *name, char out[RECIPE_PATH_BYTES + 8])
{
	const char *slash = strchr(name, '/');
	(void)snprintf(
		out, RECIPE_PATH_BYTES + 8, "%.*s/.%s.tmp", (int)(slash - name), name, slash + 1);
}

static int write_file(const struct site *site, const char *name, const uint8_t *bytes, size_t size,
	struct error *err)
{
	char temporary[RECIPE_PATH_BYTES + 8];
	temporary_name(name, temporary);
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int file = openat(site->folder, temporary, flags, 0666);
	/* Left by a kill, since the folder is locked. */
	if (file < 0 && errno == EEXIST && unlinkat(site->folder, temporary, 0) == 0)
		file = openat(site->folder, temporary, flags, 0666);
	if (file < 0)
		return error_set_errno(err, errno, "cannot create '%s/%s'", site->root, temporary);
	int code = site_write_write_all(file, bytes, size);
	if (close(file) != 0 && !code)
		code = -errno;
	if (!code && renameat(site->folder, temporary, site->folder, name) != 0)
		code = -errno;
	if (!code)
		return 0;
	(void)unlinkat(site->folder, temporary, 0);
	return error_set_errno(err, -code, "cannot write '%s/%s'", site->root, name);
}

int site_store(struct site *site, uint64_t id, const uint8_t *bytes, size_t size, struct error *err)
{
	char name[RECIPE_PATH_BYTES];
	recipe_sample_path(site->recipe, id, name);
	const int code = write_file(site, name, bytes, size, err);
	if (code)
		return code;
	const struct picture_size pixels = recipe_size(site->recipe, id);
	const struct journal_entry entry = {.id = id,
		.bytes = size,
		.checksum = hash_bytes(bytes, size, 0),
		.width = pixels.width,
		.height = pixels.height};
	struct record *record = &site->records[id];
	record->bytes = entry.bytes;
	record->checksum = entry.checksum;
	record->width = entry.width;
	record->height = entry.height;
	atomic_store(&record->state, RECORD_DONE);
	(void)pthread_mutex_lock(&site->lock);
	journal_format(&site->pending, &entry);
	(void)pthread_mutex_unlock(&site->lock);
	return 0;
}

/* A header's first keys; a new reference. */
static json_t *make_header(const struct site *site)
{
	json_t *header = json_object();
	(void)json_object_set(header, "recipe", site->recipe_json);
	(void)json_object_set_new(header, "detail", json_integer((json_int_t)site->detail));
	return header;
}

static int start_journal(struct site *site, const char *path, struct error *err)
{
	struct buffer line = {0};
	json_t *header = make_header(site);
	(void)json_object_set_new(header, "schema", json_string(MANIFEST_JOURNAL_SCHEMA));
	char *text = json_dumps(header, JSON_COMPACT);
	json_decref(header);
	if (text)
		buffer_format(&line, "%s\n", text);
	free(text);
	const int code = line.data && !line.failed
				 ? files_write_atomic(path, line.data, line.size, err)
				 : error_set(err, -ENOMEM, "no memory for the journal");
	buffer_release(&line);
	return code;
}

/* Ends a line that a kill tore, so that the next one stands alone. */
static int open_journal(struct site *site, struct error *err)
{
	char *path = files_join(site->root, MANIFEST_JOURNAL);
	if (!path)
		return error_set(err, -ENOMEM, "no memory for the journal's name");
	int code = access(path, F_OK) == 0 ? 0 : start_journal(site, path, err);
	if (!code) {
		site->journal = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		code = site->journal < 0 ? -errno : site_write_write_all(site->journal, "\n", 1);
		if (code)
			code = error_set_errno(err, -code, "cannot append to '%s'", path);
	}
	free(path);
	return code;
}

static int make_classes(const struct site *site, struct error *err)
{
	const uint64_t count = recipe_class_count(site->recipe);
	for (uint64_t label = 0; label < count; label++) {
		char name[RECIPE_PATH_BYTES];
		recipe_class_name(site->recipe, label, name);
		if (mkdirat(site->folder, name, 0777) != 0 && errno != EEXIST)
			return error_set_errno(
				err, errno, "cannot create '%s/%s'", site->root, name);
	}
	return 0;
}

int site_begin(struct site *site, uint32_t detail, struct error *err)
{
	site->detail = detail;
	const int code = site->complete ? 0 : open_journal(site, err);
	return code ? code : make_classes(site, err);
}

int site_note(struct site *site, struct error *err)
{
	(void)pthread_mutex_lock(&site->lock);
	struct buffer lines = site->pending;
	site->pending = (struct buffer){0};
	(void)pthread_mutex_unlock(&site->lock);
	int code = lines.failed ? -ENOMEM : 0;
	if (!code && site->journal >= 0)
		code = site_write_write_all(site->journal, lines.data, lines.size);
	buffer_release(&lines);
	return code ? error_set_errno(
			      err, -code, "cannot append to the journal in '%s'", site->root)
		    : 0;
}

/* The data set that the records describe, for its manifest. */
static int describe(const struct site *site, struct dataset *dataset, struct error *err)
{
	const struct recipe *recipe = site->recipe;
	struct arena *arena = arena_open();
	if (!arena)
		return error_set(err, -ENOMEM, "no memory for the manifest");
	dataset->arena = arena;
	dataset->count = recipe->samples;
	dataset->class_count = recipe_class_count(recipe);
	dataset->samples = arena_take(arena, dataset->count * sizeof(*dataset->samples));
	dataset->class_names =
		arena_take(arena, dataset->class_count * sizeof(*dataset->class_names));
	bool good = dataset->samples && dataset->class_names;
	char name[RECIPE_PATH_BYTES];
	for (uint64_t i = 0; good && i < dataset->class_count; i++) {
		recipe_class_name(recipe, i, name);
		good = (dataset->class_names[i] = arena_text(arena, name, strlen(name)));
	}
	for (uint64_t id = 0; good && id < dataset->count; id++) {
		const struct record *record = &site->records[id];
		recipe_sample_path(recipe, id, name);
		dataset->samples[id] = (struct sample){
			.path = arena_text(arena, name, strlen(name)),
			.bytes = record->bytes,
			.checksum = record->checksum,
			.width = record->width,
			.height = record->height,
			.label = (uint32_t)(id % recipe->classes),
			.format = (uint8_t)image_format_of_name(name),
		};
		good = dataset->samples[id].path;
	}
	manifest_total(dataset);
	return good ? 0 : error_set(err, -ENOMEM, "no memory for the manifest");
}

int site_finish(struct site *site, uint64_t *bytes, struct error *err)
{
	struct dataset dataset = {0};
	char *path = files_join(site->root, MANIFEST_NAME);
	int code = path ? describe(site, &dataset, err) : error_set(err, -ENOMEM, "no memory");
	*bytes = dataset.total_bytes;
	if (!code && syncfs(site->folder) != 0)
		code = error_set_errno(err, errno, "cannot sync '%s'", site->root);
	if (!code) {
		json_t *header = make_header(site);
		code = manifest_write(path, header, &dataset, err);
		json_decref(header);
	}
	if (!code) {
		(void)unlinkat(site->folder, MANIFEST_JOURNAL, 0);
		if (fsync(site->folder) != 0 && errno != EINVAL)
			code = error_set_errno(err, errno, "cannot sync '%s'", site->root);
	}
	arena_close(dataset.arena);
	free(path);
	return code;
}

int site_check_room(const struct site *site, double bytes, uint64_t files, struct error *err)
{
	struct statvfs fs;
	char need[UNITS_BYTES], room[UNITS_BYTES];
	if (fstatvfs(site->folder, &fs) != 0)
		return 0; /* then a full disk will show when it is full */
	const double block = (double)fs.f_frsize;
	const double needed = bytes + (double)files * block / 2; /* half a block is lost per file */
	const double free_bytes = (double)fs.f_bavail * block;
	if (needed > free_bytes)
		return error_set(err, -ENOSPC, "'%s' has %s free, and about %s are needed",
			site->root, units_format_size(free_bytes, room),
			units_format_size(needed, need));
	if (fs.f_files > 0 && fs.f_favail < files)
		return error_set(err, -ENOSPC,
			"'%s' has room for %" PRIu64 " more files, not for %" PRIu64, site->root,
			(uint64_t)fs.f_favail, files);
	return 0;
}
