/* Diagnoses to and from their file. */
#include "harness/report/saved_diagnoses.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/part.h"
#include "harness/report/trials.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIAGNOSES_FILE "diagnoses.json"
#define DIAGNOSES_SCHEMA "mlbench.diagnoses/1"

enum { CHECKSUM_BYTES = 17, EXACT_DIGITS = 17 };
static const size_t FILE_LIMIT_BYTES = (size_t)8 << 30; /* as record.c reads */

/* The linker's own checksum of what it linked, a note of the program: two programs of one version need not say the
 * same.  The program itself is the first object. */
static int hash_build(struct dl_phdr_info *object, size_t size, void *context)
{
	(void)size;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		if (segment->p_type != PT_NOTE)
			continue;
		const char *at = (const char *)(object->dlpi_addr + segment->p_vaddr);
		const char *end = at + segment->p_memsz;
		while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)at;
			const size_t name = ((size_t)note->n_namesz + 3) & ~(size_t)3;
			const size_t bytes = ((size_t)note->n_descsz + 3) & ~(size_t)3;
			const char *text = at + sizeof *note;
			if ((size_t)(end - text) < name + bytes)
				break;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
				memcmp(text, "GNU", 4) == 0) {
				hash_add(context, text + name, note->n_descsz);
				return 1;
			}
			at = text + name + bytes;
		}
	}
	return -ENODATA;
}

/* Takes path.  That a file is not there counts as a content of its own. */
static int hash_file(struct hash_pieces *pieces, char *path)
{
	char *text = NULL;
	size_t size = 0;
	const int code = path ? files_read(path, FILE_LIMIT_BYTES, &text, &size, NULL) : -ENOMEM;
	hash_add(pieces, &code, sizeof code);
	hash_add(pieces, &size, sizeof size);
	if (!code)
		hash_add(pieces, text, size);
	free(text);
	free(path);
	return code == -ENOENT ? 0 : code;
}

/* The verdict of a job is of all its ranks. */
static int hash_rank(struct hash_pieces *pieces, const struct record *record, unsigned rank)
{
	char *const folder = record_rank_folder(record, rank);
	const int code = folder ? hash_file(pieces, files_join(folder, "points.jsonl")) : -ENOMEM;
	free(folder);
	return code;
}

/* Of the program and of all that a diagnosis reads.  -ENODATA: the program has no build ID. */
static int checksum_of(const struct record *record, char out[CHECKSUM_BYTES])
{
	struct hash_pieces *pieces = hash_begin(0);
	if (!pieces)
		return -ENOMEM;
	int code = dl_iterate_phdr(hash_build, pieces) == 1 ? 0 : -ENODATA;
	if (!code)
		code = hash_file(pieces, files_join(record->folder, "points.jsonl"));
	if (!code)
		code = hash_file(pieces, files_join(record->folder, TRIALS_FILE));
	const int64_t ranks = config_integer(&record->config, KEY_RUN_RANKS);
	for (int64_t rank = 1; rank < ranks && !code; rank++)
		code = hash_rank(pieces, record, (unsigned)rank);
	for (size_t i = 0; i < record->entry_count && !code; i++)
		code = hash_file(pieces, record_traces_path(record, record->entries[i].point,
						 record->entries[i].repeat));
	(void)snprintf(out, CHECKSUM_BYTES, "%016" PRIx64, hash_end(pieces));
	return code;
}

/* --- writing -------------------------------------------------------------------------------------- */

static json_t *list_of(const struct report *report)
{
	json_t *list = json_array();
	int bad = 0;
	for (size_t i = 0; i < report->record->grid.points; i++)
		bad |= json_array_append_new(list, report->diagnoses[i]
							   ? diagnosis_to_json(report->diagnoses[i])
							   : json_null());
	return part_list(list, bad);
}

/* Where a file cannot be read, so that no checksum can hold, nothing is kept: it is a cache. */
int saved_diagnoses_write(const struct report *report, struct error *err)
{
	char checksum[CHECKSUM_BYTES];
	if (!report->diagnoses || checksum_of(report->record, checksum))
		return 0;
	struct part part = part_open();
	part_put(&part, "schema", json_string(DIAGNOSES_SCHEMA));
	part_put(&part, "checksum", json_string(checksum));
	part_put(&part, "points", list_of(report));
	json_t *json = part_close(&part);
	char *text =
		json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(EXACT_DIGITS)) : NULL;
	char *path = files_join(report->record->folder, DIAGNOSES_FILE);
	const int code =
		text && path ? files_write_atomic(path, text, strlen(text), err)
			     : error_set(err, -ENOMEM, "out of memory for '%s'", DIAGNOSES_FILE);
	free(path);
	free(text);
	json_decref(json);
	return code;
}

/* --- reading -------------------------------------------------------------------------------------- */

/* NULL: there are none that hold. */
static json_t *read_diagnoses(const struct record *record)
{
	char *path = files_join(record->folder, DIAGNOSES_FILE);
	char *text = NULL;
	size_t size = 0;
	char now[CHECKSUM_BYTES];
	json_t *json = NULL;
	if (path && files_read(path, FILE_LIMIT_BYTES, &text, &size, NULL) == 0)
		json = json_loadb(text, size, 0, NULL);
	free(text);
	free(path);
	const char *then = json_string_value(json_object_get(json, "checksum"));
	if (then && checksum_of(record, now) == 0 && strcmp(then, now) == 0)
		return json;
	json_decref(json);
	return NULL;
}

static int take_diagnosis(struct report *report, size_t i, const json_t *value)
{
	if (!report_has_figures(report, i))
		return 0;
	report->diagnoses[i] = calloc(1, sizeof *report->diagnoses[i]);
	return report->diagnoses[i] ? diagnosis_from_json(report->diagnoses[i], value, NULL)
				    : -ENOMEM;
}

bool saved_diagnoses_take(struct report *report)
{
	const size_t points = report->record->grid.points;
	json_t *json = read_diagnoses(report->record);
	if (!json)
		return false;
	report->diagnoses = calloc(points, sizeof(struct diagnosis *));
	int code = report->diagnoses ? 0 : -ENOMEM;
	for (size_t i = 0; i < points && !code; i++)
		code = take_diagnosis(
			report, i, json_array_get(json_object_get(json, "points"), i));
	json_decref(json);
	if (code)
		report_drop_diagnoses(report);
	for (size_t i = 0; i < points && !code; i++)
		if (report->diagnoses[i])
			report->points[i]->verdict = report->diagnoses[i]->verdict;
	return code == 0;
}

void saved_diagnoses_forget(const struct record *record)
{
	char *path = files_join(record->folder, DIAGNOSES_FILE);
	if (path)
		(void)unlink(path);
	free(path);
}
