/* A generated set's folder: whose it is and what is done there, then writing what is missing. */
#include "workloads/dataset/site.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/units.h"
#include "workloads/dataset/container.h"
#include "workloads/dataset/scan.h"
#include "workloads/sample/sample.h"
#include "workloads/source/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>

/* Of a packed set's manifest: the sizes of its files, in order. */
#define FILES_KEY "files"

static const size_t JOURNAL_BYTES_MAX = (size_t)8 << 30;

/* The name of an entry that is not ours in a folder without manifest or journal; "" if there is
 * none. */
static int find_foreign(const char *root, char name[NAME_MAX + 1], struct error *err)
{
	name[0] = '\0';
	DIR *folder = opendir(root);
	if (!folder)
		return error_set_errno(err, errno, "cannot list '%s'", root);
	const struct dirent *entry;
	while (!name[0] && (entry = readdir(folder))) {
		const bool dots = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
		if (!dots && strncmp(entry->d_name, MANIFEST_PREFIX, strlen(MANIFEST_PREFIX)) != 0)
			(void)snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	}
	(void)closedir(folder);
	return 0;
}

/* A recipe's header, compared with the wanted one; takes the detail over. */
static int check_header(struct site *site, const json_t *header, struct error *err)
{
	const json_t *detail = json_object_get(header, "detail");
	const int code = recipe_compare(
		json_object_get(header, "recipe"), site->recipe_json, site->root, err);
	if (code)
		return code;
	const json_int_t value = json_integer_value(detail);
	site->has_detail = json_is_integer(detail) && value >= 0 && value <= PICTURE_DETAIL_MAX;
	site->detail = site->has_detail ? (uint32_t)value : 0;
	return 0;
}

static void claim(
	struct record *record, uint64_t bytes, uint64_t checksum, uint32_t width, uint32_t height)
{
	record->bytes = bytes;
	record->checksum = checksum;
	record->width = width;
	record->height = height;
	atomic_store(&record->state, RECORD_CLAIMED);
}

static bool site_claim_all(struct site *site, const struct dataset *dataset)
{
	for (size_t i = 0; i < dataset->count; i++)
		claim(&site->records[i], dataset->samples[i].bytes, dataset->samples[i].checksum,
			dataset->samples[i].width, dataset->samples[i].height);
	return true;
}

/* Of a packed set the samples say nothing of their files, but the header does. */
static bool site_claim_packed(struct site *site, const json_t *header)
{
	const json_t *const files = json_object_get(header, FILES_KEY);
	const uint64_t count = recipe_files(site->recipe);
	const json_t *size;
	size_t i;
	if (json_array_size(files) != count)
		return false;
	json_array_foreach((json_t *)(uintptr_t)files, i, size)
		claim(&site->records[i], (uint64_t)json_integer_value(size), 0, 0, 0);
	return true;
}

static int site_read_manifest(struct site *site, struct error *err)
{
	struct dataset dataset = {0};
	json_t *header;
	char *path = files_join(site->root, MANIFEST_NAME);
	int code = path ? manifest_read(path, &dataset, &header, err) : -ENOMEM;
	free(path);
	if (code == -EBADMSG)
		return 0; /* as good as none: every sample is made again */
	if (code)
		return code;
	code = check_header(site, header, err);
	const uint64_t wanted =
		recipe_is_packed(site->recipe) ? site->recipe->samples : recipe_files(site->recipe);
	if (!code && dataset.count == wanted && site->has_detail &&
		!dataset.offsets == !recipe_is_packed(site->recipe))
		site->complete = dataset.offsets ? site_claim_packed(site, header)
						 : site_claim_all(site, &dataset);
	json_decref(header);
	arena_close(dataset.arena);
	return code;
}

/* Lines of the journal. The last may be torn, and is then no line. */
static void read_entries(struct site *site, const char *at, const char *end)
{
	const char *stop;
	while (at < end && (stop = memchr(at, '\n', (size_t)(end - at)))) {
		struct journal_entry entry;
		if (journal_parse(at, stop, &entry) && entry.id < recipe_files(site->recipe))
			claim(&site->records[entry.id], entry.bytes, entry.checksum, entry.width,
				entry.height);
		at = stop + 1;
	}
}

static int read_journal(struct site *site, struct error *err)
{
	char *text;
	size_t size;
	char *path = files_join(site->root, MANIFEST_JOURNAL);
	int code = path ? files_read(path, JOURNAL_BYTES_MAX, &text, &size, err) : -ENOMEM;
	free(path);
	if (code)
		return code;
	const char *body = memchr(text, '\n', size);
	json_t *header = body ? manifest_parse_header(
					text, (size_t)(body - text), MANIFEST_JOURNAL_SCHEMA, err)
			      : NULL;
	if (header) {
		code = check_header(site, header, err);
		if (!code)
			read_entries(site, body + 1, text + size);
	} else {
		code = error_set(err, -EBADMSG,
			"'%s/" MANIFEST_JOURNAL
			"' is damaged: remove the folder, or choose another dataset.path",
			site->root);
	}
	json_decref(header);
	free(text);
	return code;
}

/* Nothing of ours: whatever is there stays as it is. */
static int refuse_foreign(const struct site *site, const char *foreign, struct error *err)
{
	return error_set(err, -ENOTEMPTY,
		"'%s' is not empty and not a data set of mlbench (it holds '%.80s'), so none is "
		"generated there: choose another dataset.path, or measure with what is there, with "
		"dataset.recipe=none (in short: --data DIR)",
		site->root, foreign);
}

/* What an earlier try left: a manifest, else a journal, else nothing at all. */
static int read_past(struct site *site, struct error *err)
{
	char foreign[NAME_MAX + 1];
	int code = site_read_manifest(site, err);
	if (code == 0 && site->complete)
		return 0;
	const bool damaged_manifest = code == 0;
	if (code && code != -ENOENT)
		return code;
	code = read_journal(site, err);
	if (code != -ENOENT)
		return code;
	code = find_foreign(site->root, foreign, err);
	if (code)
		return code;
	if (foreign[0] && damaged_manifest)
		return error_set(err, -EBADMSG,
			"'%s/" MANIFEST_NAME
			"' is damaged: remove the folder, or choose another dataset.path",
			site->root);
	return foreign[0] ? refuse_foreign(site, foreign, err) : 0;
}

static int lock_folder(struct site *site, struct error *err)
{
	site->folder = open(site->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (site->folder < 0)
		return error_set_errno(err, errno, "cannot open '%s'", site->root);
	if (files_lock(site->folder, site->root))
		return error_set(err, -EBUSY, "another mlbench is generating in '%s'", site->root);
	return 0;
}

int site_open(struct site *site, const struct recipe *recipe, const char *root, struct error *err)
{
	*site = (struct site){.recipe = recipe, .root = root, .folder = -1, .journal = -1};
	(void)pthread_mutex_init(&site->lock, NULL);
	site->recipe_json = recipe_to_json(recipe);
	site->records = calloc(recipe_files(recipe), sizeof(*site->records));
	if (!site->recipe_json || !site->records)
		return error_set(
			err, -ENOMEM, "no memory for %" PRIu64 " samples", recipe->samples);
	if (!root[0])
		return error_set(
			err, -EINVAL, "dataset.path is empty: where should the data set go?");
	int code = files_make_folder(root, err);
	if (!code)
		code = lock_folder(site, err);
	if (!code) {
		files_remove_left(root);
		code = read_past(site, err);
	}
	return code;
}

void site_close(struct site *site)
{
	if (site->journal >= 0)
		(void)close(site->journal);
	if (site->folder >= 0)
		(void)close(site->folder);
	json_decref(site->recipe_json);
	free(site->records);
	buffer_release(&site->pending);
	(void)pthread_mutex_destroy(&site->lock);
	*site = (struct site){.folder = -1, .journal = -1};
}

/* Compares a journal's recipe only: for the reason why there is no data set. */
static int explain_missing(struct site *site, struct error *err)
{
	char foreign[NAME_MAX + 1];
	struct stat st;
	if (stat(site->root, &st) != 0)
		return error_set(err, -ENODATA,
			"there is no data set at '%s' yet: make it with `mlbench gen`", site->root);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, -ENOTDIR, "'%s' is not a folder", site->root);
	const int code = read_journal(site, err);
	if (code == -EDOM || code == -EACCES)
		return code;
	if (code == -ENOENT && find_foreign(site->root, foreign, err) == 0 && foreign[0])
		return refuse_foreign(site, foreign, err);
	return error_set(err, -ENODATA,
		code ? "there is no data set in '%s' yet: make it with `mlbench gen`"
		     : "the data set in '%s' is incomplete: finish it with `mlbench gen`",
		site->root);
}

/* Some of the files, evenly spread: enough to notice a folder that was emptied. */
static int look_at_some(const struct site *site, const json_t *header,
	const struct dataset *dataset, struct error *err)
{
	enum { LOOKS = 32 };
	const json_t *const sizes = dataset->offsets ? json_object_get(header, FILES_KEY) : NULL;
	const size_t count = dataset->offsets ? json_array_size(sizes) : dataset->count;
	for (size_t i = 0; i < count; i += count / LOOKS + 1) {
		char name[RECIPE_PATH_BYTES];
		struct stat st;
		const uint64_t bytes =
			sizes ? (uint64_t)json_integer_value(json_array_get(sizes, i))
			      : dataset->samples[i].bytes;
		recipe_file_path(site->recipe, i, name);
		char *const path = files_join(site->root, name);
		const bool good = path && stat(path, &st) == 0 && (uint64_t)st.st_size == bytes;
		free(path);
		if (!good)
			return error_set(err, -ENODATA,
				"'%s/%s' is missing or has changed: mend the data set with `mlbench gen`",
				site->root, name);
	}
	return 0;
}

static int site_take_manifest(
	struct site *site, bool look, struct dataset *dataset, struct error *err)
{
	json_t *header;
	char *path = files_join(site->root, MANIFEST_NAME);
	int code = path ? manifest_read(path, dataset, &header, err) : -ENOMEM;
	free(path);
	if (code == -ENOENT || code == -ENOTDIR)
		return explain_missing(site, err);
	if (code == -EBADMSG)
		return error_prefix(
			err, -ENODATA, "remove the folder and make it again with `mlbench gen`");
	if (code)
		return code;
	code = check_header(site, header, err);
	if (!code && look)
		code = look_at_some(site, header, dataset, err);
	json_decref(header);
	return code;
}

int site_load(const struct recipe *recipe, const char *root, bool look, struct dataset *dataset,
	struct error *err)
{
	struct site site = {.recipe = recipe, .root = root, .folder = -1, .journal = -1};
	(void)pthread_mutex_init(&site.lock, NULL);
	site.recipe_json = recipe_to_json(recipe);
	site.records = calloc(recipe_files(recipe), sizeof(*site.records));
	const int code = site.recipe_json && site.records
				 ? site_take_manifest(&site, look, dataset, err)
				 : error_set(err, -ENOMEM, "no memory for %" PRIu64 " samples",
					   recipe->samples);
	site_close(&site);
	return code;
}

/* ---- writing: samples, journal, manifest ---------------------------------------------------- */

/* "class_0007/00001234.jpg" -> "class_0007/.00001234.jpg.tmp": no tool takes that for a picture. */
static void temporary_name(const char *name, char out[SITE_NAME_BYTES])
{
	const char *const slash = strchr(name, '/');
	const char *const own = slash ? slash + 1 : name;
	(void)snprintf(out, SITE_NAME_BYTES, "%.*s.%s.tmp", (int)(own - name), name, own);
}

/* A header without a time or a name, so that nothing but the bytes decides. */
static int site_gzip_open(struct site_file *file)
{
	enum { LEVEL = 6, WINDOW_BITS = 15 + 16 /* a gzip header and trailer */, MEMORY = 8 };
	z_stream *const gzip = calloc(1, sizeof *gzip);
	if (gzip && deflateInit2(gzip, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY,
			    Z_DEFAULT_STRATEGY) == Z_OK) {
		file->gzip = gzip;
		return 0;
	}
	free(gzip);
	return -ENOMEM;
}

int site_file_begin(struct site *site, uint64_t id, struct site_file *out, struct error *err)
{
	char temporary[SITE_NAME_BYTES];
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	*out = (struct site_file){.id = id, .fd = -1, .sum = hash_begin(0)};
	if (!out->sum)
		return error_set(err, -ENOMEM, "no memory for a checksum");
	recipe_file_path(site->recipe, id, out->name);
	temporary_name(out->name, temporary);
	out->fd = openat(site->folder, temporary, flags, 0666);
	/* Left by a kill, since the folder is locked. */
	if (out->fd < 0 && errno == EEXIST && unlinkat(site->folder, temporary, 0) == 0)
		out->fd = openat(site->folder, temporary, flags, 0666);
	const int saved_errno = errno;
	if (out->fd < 0) {
		site_file_drop(site, out);
		return error_set_errno(
			err, saved_errno, "cannot create '%s/%s'", site->root, temporary);
	}
	const bool packs = recipe_is_packed(site->recipe) && site->recipe->container->inflates;
	if (!packs || site_gzip_open(out) == 0)
		return 0;
	site_file_drop(site, out);
	return error_set(err, -ENOMEM, "no memory to compress a file");
}

static int site_file_flush(struct site_file *file)
{
	if (file->waiting.failed)
		return -ENOMEM;
	const int code = files_write_all(file->fd, file->waiting.data, file->waiting.size);
	file->waiting.size = 0;
	return code;
}

static int site_file_put(struct site_file *file, const void *bytes, size_t size)
{
	enum { WAITING = 1 << 20 };
	int code = 0;
	hash_add(file->sum, bytes, size);
	file->bytes += size;
	if (file->waiting.size + size > WAITING)
		code = site_file_flush(file);
	if (!code && size > WAITING)
		code = files_write_all(file->fd, bytes, size);
	else if (!code)
		buffer_add(&file->waiting, bytes, size);
	return code;
}

/* flush: Z_FINISH behind the last bytes. */
static int site_file_deflate(struct site_file *file, const uint8_t *bytes, size_t size, int flush)
{
	enum { PIECE = 64 * 1024, AT_ONCE = 1 << 30 /* zlib counts in 32 bits */ };
	uint8_t packed[PIECE];
	z_stream *const gzip = file->gzip;
	int code = 0;
	do {
		gzip->next_in = (Bytef *)(uintptr_t)bytes;
		gzip->avail_in = size < AT_ONCE ? (uInt)size : AT_ONCE;
		bytes += gzip->avail_in;
		size -= gzip->avail_in;
		do {
			gzip->next_out = packed;
			gzip->avail_out = sizeof packed;
			(void)deflate(gzip, size > 0 ? Z_NO_FLUSH : flush);
			code = site_file_put(file, packed, sizeof packed - gzip->avail_out);
		} while (gzip->avail_out == 0 && !code);
	} while (size > 0 && !code);
	return code;
}

int site_file_add(struct site *site, struct site_file *file, const void *bytes, size_t size,
	struct error *err)
{
	const int code = file->gzip ? site_file_deflate(file, bytes, size, Z_NO_FLUSH)
				    : site_file_put(file, bytes, size);
	return code ? error_set_errno(err, -code, "cannot write '%s/%s'", site->root, file->name)
		    : 0;
}

void site_file_drop(struct site *site, struct site_file *file)
{
	char temporary[SITE_NAME_BYTES];
	if (file->fd >= 0) {
		(void)close(file->fd);
		temporary_name(file->name, temporary);
		(void)unlinkat(site->folder, temporary, 0);
	}
	if (file->sum)
		(void)hash_end(file->sum);
	buffer_release(&file->waiting);
	if (file->gzip)
		(void)deflateEnd(file->gzip);
	free(file->gzip);
	*file = (struct site_file){.fd = -1};
}

static int site_file_rename(struct site *site, struct site_file *file)
{
	char temporary[SITE_NAME_BYTES];
	int code = site_file_flush(file);
	temporary_name(file->name, temporary);
	if (close(file->fd) != 0 && !code)
		code = -errno;
	if (!code && renameat(site->folder, temporary, site->folder, file->name) != 0)
		code = -errno;
	if (code)
		(void)unlinkat(site->folder, temporary, 0);
	file->fd = -1;
	return code;
}

int site_file_end(struct site *site, struct site_file *file, struct error *err)
{
	int code = file->gzip ? site_file_deflate(file, (const uint8_t *)"", 0, Z_FINISH) : 0;
	if (!code)
		code = site_file_rename(site, file);
	const struct picture_size pixels = recipe_is_packed(site->recipe)
						   ? (struct picture_size){0}
						   : recipe_size(site->recipe, file->id);
	const struct journal_entry entry = {.id = file->id,
		.bytes = file->bytes,
		.checksum = hash_end(file->sum),
		.width = pixels.width,
		.height = pixels.height};
	file->sum = NULL;
	if (code)
		(void)error_set_errno(err, -code, "cannot write '%s/%s'", site->root, file->name);
	site_file_drop(site, file);
	if (code)
		return code;
	struct record *record = &site->records[entry.id];
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

int site_store(struct site *site, uint64_t id, const uint8_t *bytes, size_t size, struct error *err)
{
	struct site_file file;
	int code = site_file_begin(site, id, &file, err);
	if (!code)
		code = site_file_add(site, &file, bytes, size, err);
	if (!code)
		return site_file_end(site, &file, err);
	site_file_drop(site, &file);
	return code;
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
		code = site->journal < 0 ? -errno : files_write_all(site->journal, "\n", 1);
		if (code)
			code = error_set_errno(err, -code, "cannot append to '%s'", path);
	}
	free(path);
	return code;
}

static int make_classes(const struct site *site, struct error *err)
{
	const uint64_t count =
		recipe_is_packed(site->recipe) ? 0 : recipe_class_count(site->recipe);
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
		code = files_write_all(site->journal, lines.data, lines.size);
	buffer_release(&lines);
	return code ? error_set_errno(
			      err, -code, "cannot append to the journal in '%s'", site->root)
		    : 0;
}

/* ---- the manifest --------------------------------------------------------------------------- */

/* The files that the records describe, as a scan would have found them. */
static struct found *site_list_files(const struct site *site, struct arena *arena)
{
	const uint64_t count = recipe_files(site->recipe);
	struct found *const files = calloc(count, sizeof *files);
	for (uint64_t i = 0; files && i < count; i++) {
		char name[RECIPE_PATH_BYTES];
		recipe_file_path(site->recipe, i, name);
		files[i] = (struct found){
			.path = arena_text(arena, name, strlen(name)),
			.bytes = site->records[i].bytes,
			.kind = STORE_FILE,
			.sized = true,
		};
		if (!files[i].path) {
			free(files);
			return NULL;
		}
	}
	return files;
}

static int site_check_split(
	const struct site *site, const struct dataset *dataset, struct error *err)
{
	if (dataset->bad_count > 0)
		return error_set(err, -EIO, "'%s/%s' does not read as it was written: %s",
			site->root, dataset->bad[0].path, dataset->bad[0].reason);
	if (dataset->count != site->recipe->samples)
		return error_set(err, -EIO, "'%s' has %zu samples where %" PRIu64 " were written",
			site->root, dataset->count, site->recipe->samples);
	return 0;
}

/* Numbers of classes are in the files; their names are the recipe's. */
static int site_name_classes(const struct site *site, struct dataset *dataset, struct error *err)
{
	for (size_t i = 0; i < dataset->class_count; i++) {
		char name[RECIPE_PATH_BYTES];
		recipe_class_name(site->recipe, i, name);
		dataset->class_names[i] = arena_text(dataset->arena, name, strlen(name));
		if (!dataset->class_names[i])
			return error_set(err, -ENOMEM, "no memory for the manifest");
	}
	return 0;
}

/* Of files that hold several samples: what splitting them finds.  Classes are called as the recipe does. */
static int site_describe_packed(const struct site *site, const struct config *config,
	const struct dataset_control *control, struct dataset *dataset, struct error *err)
{
	const struct dataset_control own = {
		.progress = control ? control->progress : NULL,
		.context = control ? control->context : NULL,
		.stop = control ? control->stop : NULL,
	};
	struct folder_scan scan = {
		.root = site->root,
		.control = &own,
		.kind = sample_kind_of(config),
		.container = site->recipe->container,
		.depth = DATASET_DEPTH,
		.checksums = true,
		.arena = arena_open(),
	};
	bool passing;
	dataset->arena = scan.arena;
	struct found *const files = scan.arena ? site_list_files(site, scan.arena) : NULL;
	if (!files)
		return error_set(err, -ENOMEM, "no memory for the manifest");
	int code = store_open(&scan.store, site->root, err);
	if (!code)
		code = container_split_files(
			&scan, files, (size_t)recipe_files(site->recipe), dataset, &passing, err);
	store_close(scan.store);
	free(files);
	if (!code)
		code = site_check_split(site, dataset, err);
	return code ? code : site_name_classes(site, dataset, err);
}

/* The data set that the records describe, for its manifest. */
static int describe(const struct site *site, struct dataset *dataset, struct error *err)
{
	const struct recipe *recipe = site->recipe;
	struct arena *arena = arena_open();
	if (!arena)
		return error_set(err, -ENOMEM, "no memory for the manifest");
	dataset->arena = arena;
	dataset->count = recipe_files(recipe);
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
		recipe_file_path(recipe, id, name);
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

static json_t *site_manifest_header(const struct site *site)
{
	json_t *const header = make_header(site);
	if (!recipe_is_packed(site->recipe))
		return header;
	json_t *const files = json_array();
	for (uint64_t i = 0; i < recipe_files(site->recipe); i++)
		(void)json_array_append_new(
			files, json_integer((json_int_t)site->records[i].bytes));
	(void)json_object_set_new(header, FILES_KEY, files);
	return header;
}

int site_finish(struct site *site, const struct config *config,
	const struct dataset_control *control, uint64_t *bytes, struct error *err)
{
	struct dataset dataset = {0};
	char *path = files_join(site->root, MANIFEST_NAME);
	int code = path ? 0 : error_set(err, -ENOMEM, "no memory");
	if (!code)
		code = recipe_is_packed(site->recipe)
			       ? site_describe_packed(site, config, control, &dataset, err)
			       : describe(site, &dataset, err);
	*bytes = dataset.stored_bytes;
	if (!code && syncfs(site->folder) != 0)
		code = error_set_errno(err, errno, "cannot sync '%s'", site->root);
	if (!code) {
		json_t *header = site_manifest_header(site);
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
