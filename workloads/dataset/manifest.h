/* Manifests: what is in a data set.  The first line is a JSON object,
 *   {"schema": "mlbench.manifest/2", "recipe": {…}, "detail": …, "listing": "…", "count": N,
 *    "bad": M, "bytes": …, "text": T, "body": "16 hex digits of XXH3 over all below", "classes": ["…"]}
 * In names of classes, bytes outside printable ASCII, and " \ %, are written as %XX, so any file name
 * survives.  Behind its newline are N rows of 32 bytes, little-endian,
 *   u64 bytes, u64 XXH3 of the file or 0, u32 width, u32 height, u32 label, u32 enum image_format
 * and T bytes of text: N times "class/name.jpg\0", then M times "path\0reason\0".  So a million
 * samples cost a read and no parsing.
 *
 * Of a packed set, whose files hold several samples each, it is "mlbench.manifest/3", which has
 * "packed": F and "stored": bytes of the F files beside the other keys.  Behind the N rows, where a
 * checksum is of the sample's bytes alone, are N offsets, u64, and for each file the number of its
 * samples, u64, which lie next to each other; and the text has F names in place of N.
 *
 * "mlbench.manifest/1" had lines in place of the rows, ["class/name.jpg", bytes, width, height, label,
 * "16 hex digits of XXH3 or empty"], with the number of the format behind that where the name promises
 * another, and M lines ["path", "reason"].  It is read for ever: of a generated set nothing else says
 * what is complete.  A generated set's journal has the same header and lines [id, bytes, width, height,
 * "checksum"]. */
#ifndef MLBENCH_WORKLOADS_DATASET_MANIFEST_H
#define MLBENCH_WORKLOADS_DATASET_MANIFEST_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "workloads/dataset/dataset.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_NAME "mlbench-manifest.jsonl"
#define MANIFEST_JOURNAL "mlbench-partial.jsonl"
#define MANIFEST_PREFIX "mlbench-"
#define MANIFEST_SCHEMA "mlbench.manifest/2"
#define MANIFEST_SCHEMA_PACKED "mlbench.manifest/3"
#define MANIFEST_SCHEMA_LINES "mlbench.manifest/1" /* read, not written any more */
#define MANIFEST_JOURNAL_SCHEMA "mlbench.journal/1"

/* Memory that lives as long as a data set: blocks in a list. */
struct arena;
struct arena *arena_open(void);                     /* NULL without memory */
void arena_close(struct arena *arena);              /* NULL is fine */
void *arena_take(struct arena *arena, size_t size); /* NULL without memory; pointers are aligned */
char *arena_text(struct arena *arena, const char *text, size_t length); /* a copy, with a NUL */

/* Writes a data set's manifest atomically.  header: the keys to put in front of those that are
 * known from the data set (its reference stays the caller's). */
int manifest_write(
	const char *path, const json_t *header, const struct dataset *dataset, struct error *err);

/* Reads it: samples, classes, bad and the totals of *dataset (zeroed before; its arena is made).
 * header receives the first line, a new reference.  -ENOENT: there is none; -EBADMSG: damaged or
 * cut short. */
int manifest_read(const char *path, struct dataset *dataset, json_t **header, struct error *err);

/* The totals of a data set from its samples; of a packed one, not files and stored_bytes. */
void manifest_total(struct dataset *dataset);

struct journal_entry {
	uint64_t id, bytes, checksum;
	uint32_t width, height;
};

void journal_format(struct buffer *buffer, const struct journal_entry *entry);

/* One line, at [line, end); false when it is none (torn by a kill). */
bool journal_parse(const char *line, const char *end, struct journal_entry *entry);

/* Parses a header line: schema must be as given. NULL with -EBADMSG's message in err. */
json_t *manifest_parse_header(
	const char *line, size_t length, const char *schema, struct error *err);

#endif
