/* Opening a generated set's folder: is it ours, whose recipe, what is done. */
#include "workloads/dataset/site.h"

#include "harness/base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	json_decref(header);
	if (!code && dataset.count == site->recipe->samples && site->has_detail) {
		site->complete = true;
		for (size_t i = 0; i < dataset.count; i++)
			claim(&site->records[i], dataset.samples[i].bytes,
				dataset.samples[i].checksum, dataset.samples[i].width,
				dataset.samples[i].height);
	}
	arena_close(dataset.arena);
	return code;
}

/* Lines of the journal. The last may be torn, and is then no line. */
static void read_entries(struct site *site, const char *at, const char *end)
{
	const char *stop;
	while (at < end && (stop = memchr(at, '\n', (size_t)(end - at)))) {
		struct journal_entry entry;
		if (journal_parse(at, stop, &entry) && entry.id < site->recipe->samples)
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
	site->records = calloc(recipe->samples, sizeof(*site->records));
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
	if (code == -ESTALE || code == -EACCES)
		return code;
	if (code == -ENOENT && find_foreign(site->root, foreign, err) == 0 && foreign[0])
		return refuse_foreign(site, foreign, err);
	return error_set(err, -ENODATA,
		code ? "there is no data set in '%s' yet: make it with `mlbench gen`"
		     : "the data set in '%s' is incomplete: finish it with `mlbench gen`",
		site->root);
}

/* Some of the files, evenly spread: enough to notice a folder that was emptied. */
static int look_at_some(const struct dataset *dataset, const char *root, struct error *err)
{
	enum { LOOKS = 32 };
	const size_t step = dataset->count / LOOKS + 1;
	for (size_t i = 0; i < dataset->count; i += step) {
		struct stat st;
		const struct sample *sample = &dataset->samples[i];
		char *path = files_join(root, sample->path);
		const bool good =
			path && stat(path, &st) == 0 && (uint64_t)st.st_size == sample->bytes;
		free(path);
		if (!good)
			return error_set(err, -ENODATA,
				"'%s/%s' is missing or has changed: mend the data set with `mlbench gen`",
				root, sample->path);
	}
	return 0;
}

static int site_take_manifest(struct site *site, struct dataset *dataset, struct error *err)
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
	json_decref(header);
	return code;
}

int site_load_manifest(
	const struct recipe *recipe, const char *root, struct dataset *dataset, struct error *err)
{
	struct site site = {.recipe = recipe, .root = root, .folder = -1, .journal = -1};
	(void)pthread_mutex_init(&site.lock, NULL);
	site.recipe_json = recipe_to_json(recipe);
	site.records = calloc(recipe->samples, sizeof(*site.records));
	const int code = site.recipe_json && site.records
				 ? site_take_manifest(&site, dataset, err)
				 : error_set(err, -ENOMEM, "no memory for %" PRIu64 " samples",
					   recipe->samples);
	site_close(&site);
	return code;
}

int site_load(
	const struct recipe *recipe, const char *root, struct dataset *dataset, struct error *err)
{
	const int code = site_load_manifest(recipe, root, dataset, err);
	return code ? code : look_at_some(dataset, root, err);
}
