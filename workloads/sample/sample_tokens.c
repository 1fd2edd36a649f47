/* The kind tokens: flat files of token ids (.bin, uint16 or uint32, little-endian), of which sequences of
 * tokens.length become samples (T) int32.  Labels are the tokens that follow each, (T) int32: sequence i
 * of a file has its tokens [i T, i T + T], so that it is read with one token more than it has.
 *
 * With tokens.packing = documents a label of another document than its token's is -1 (BATCH_LABEL_MASKED):
 * the labels are the mask.  A document ends behind its token tokens.end_of_document; and where
 * Megatron's index lies beside the file (token_index.h), where that says.  What an index or a header in
 * the file says of the type of ids is never passed over: another tokens.type is refused. */
#include "harness/base/files.h"
#include "workloads/sample/sample.h"
#include "workloads/sample/token_index.h"
#include "workloads/source/store.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Bytes of an index that is read, at most: 134 million documents of one sequence each. */
static const uint64_t TOKEN_INDEX_BYTES_MAX = 1ULL << 31;
static const char TOKENS_ENDING[] = ".bin";
static const char TOKENS_INDEX_ENDING[] = ".idx";

static bool sample_tokens_takes(const char *name)
{
	return files_name_ends(name, TOKENS_ENDING);
}

static uint32_t sample_tokens_length(const struct config *config)
{
	return (uint32_t)config_integer(config, KEY_TOKENS_LENGTH);
}

static size_t sample_tokens_id_bytes(const struct config *config)
{
	return config_integer(config, KEY_TOKENS_TYPE) == TOKENS_TYPE_UINT16 ? 2 : 4;
}

static int sample_tokens_validate(const struct config *config, struct error *err)
{
	const int64_t vocabulary = config_integer(config, KEY_TOKENS_VOCABULARY);
	const int64_t end = config_integer(config, KEY_TOKENS_END_OF_DOCUMENT);
	if (vocabulary > UINT16_MAX + 1 && sample_tokens_id_bytes(config) == 2)
		return error_set(err, -EINVAL,
			"'tokens.vocabulary' = %" PRId64
			" has ids that uint16 does not hold: set tokens.type = uint32",
			vocabulary);
	if (end >= vocabulary)
		return error_set(err, -EINVAL,
			"'tokens.end_of_document' = %" PRId64
			" is not below 'tokens.vocabulary' = %" PRId64,
			end, vocabulary);
	/* Indexes are files of this machine; that one is not found there must not mean that there is none. */
	if (config_integer(config, KEY_TOKENS_PACKING) == TOKENS_PACKING_DOCUMENTS &&
		strstr(config_text(config, KEY_DATASET_PATH), "://"))
		return error_set(err, -EINVAL,
			"'tokens.packing' = documents looks for an index beside each file, and none is read from '%.200s': mount the server, or set tokens.packing to stream",
			config_text(config, KEY_DATASET_PATH));
	return 0;
}

static void sample_tokens_shape(const struct config *config, struct sample_shape *out)
{
	const uint32_t length = sample_tokens_length(config);
	*out = (struct sample_shape){
		.type = BATCH_INT32, .dimensions = 1, .of = {length}, .tokens = length};
}

static size_t sample_tokens_labels(const struct config *config)
{
	return sample_tokens_length(config) * sizeof(int32_t);
}

static uint32_t sample_tokens_classes(const struct config *config, const struct dataset *dataset)
{
	(void)dataset;
	return (uint32_t)config_integer(config, KEY_TOKENS_VOCABULARY);
}

static int sample_tokens_cut(const struct config *config, const struct sample *file,
	struct sample_cut *out, struct error *err)
{
	const size_t id_bytes = sample_tokens_id_bytes(config);
	const uint64_t length = sample_tokens_length(config);
	const uint64_t header = file->width; /* as sample_tokens_look found them */
	if (file->height && file->height != id_bytes)
		return error_set(err, -EINVAL,
			"its header says that ids have %" PRIu32 " bytes: set tokens.type = %s",
			file->height, file->height == 2 ? "uint16" : "uint32");
	if ((file->bytes - header) % id_bytes != 0)
		return error_set(err, -EINVAL,
			"%" PRIu64 " bytes are no whole number of ids of %zu bytes (tokens.type)",
			file->bytes - header, id_bytes);
	const uint64_t tokens = (file->bytes - header) / id_bytes;
	*out = (struct sample_cut){
		.first = header,
		.stride = length * id_bytes,
		.bytes = (length + 1) * id_bytes,
		.count = tokens > 0 ? (tokens - 1) / length : 0,
	};
	return 0;
}

/* ---- indexes, which all workers of the program share ------------------------------------------ */

/* Of one file: read by the worker that needs it first, and kept while there are workers. */
struct token_index_entry {
	char *path;
	size_t id_bytes;
	struct token_index index; /* {0}: there is none */
	struct error why;         /* code != 0 */
	int code;
	struct token_index_entry *next;
};

static struct {
	pthread_mutex_t lock;
	unsigned workers;
	struct token_index_entry *list;
} token_indexes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void token_indexes_join(void)
{
	(void)pthread_mutex_lock(&token_indexes.lock);
	token_indexes.workers++;
	(void)pthread_mutex_unlock(&token_indexes.lock);
}

static void token_indexes_leave(void)
{
	(void)pthread_mutex_lock(&token_indexes.lock);
	struct token_index_entry *entry = --token_indexes.workers == 0 ? token_indexes.list : NULL;
	if (entry)
		token_indexes.list = NULL;
	(void)pthread_mutex_unlock(&token_indexes.lock);
	while (entry) {
		struct token_index_entry *const gone = entry;
		entry = entry->next;
		token_index_release(&gone->index);
		free(gone->path);
		free(gone);
	}
}

/* "…/NAME.idx" of "…/NAME.bin"; NULL without memory. */
static char *token_index_path(const char *root, const char *path)
{
	char *const whole = files_join(root, path);
	char *const dot = whole ? strrchr(whole, '.') : NULL;
	if (dot)
		memcpy(dot, TOKENS_INDEX_ENDING, sizeof TOKENS_INDEX_ENDING);
	return whole;
}

/* Of a file of that many tokens (0: not known): one that is torn, or another's, is not to be believed. */
static int token_index_load(struct token_index_entry *entry, uint64_t tokens)
{
	char *bytes;
	size_t size;
	struct stat st;
	if (stat(entry->path, &st) != 0)
		return errno == ENOENT ? 0
				       : error_set_errno(&entry->why, errno, "index: unreadable");
	int code = files_read(entry->path, TOKEN_INDEX_BYTES_MAX, &bytes, &size, &entry->why);
	if (code)
		return error_prefix(&entry->why, code, "index");
	code = token_index_parse(bytes, size, entry->id_bytes, &entry->index, &entry->why);
	free(bytes);
	if (!code && tokens > 0 && entry->index.tokens != tokens)
		code = error_set(&entry->why, -EINVAL,
			"index: it has %" PRIu64 " tokens, and the file %" PRIu64
			" (index and data disagree)",
			entry->index.tokens, tokens);
	return code;
}

static uint64_t token_file_tokens(const char *root, const char *path, size_t id_bytes)
{
	struct stat st;
	char *const whole = files_join(root, path);
	const bool known = whole && stat(whole, &st) == 0;
	free(whole);
	return known ? (uint64_t)st.st_size / id_bytes : 0;
}

/* Of the file at root/path; NULL without memory.  Lasts as long as the worker. */
static const struct token_index_entry *token_indexes_find(
	const char *root, const char *path, size_t id_bytes)
{
	char *const wanted = token_index_path(root, path);
	if (!wanted)
		return NULL;
	(void)pthread_mutex_lock(&token_indexes.lock);
	struct token_index_entry *entry = token_indexes.list;
	while (entry && (entry->id_bytes != id_bytes || strcmp(entry->path, wanted) != 0))
		entry = entry->next;
	const bool known = entry;
	if (!known && (entry = calloc(1, sizeof *entry))) {
		entry->path = wanted;
		entry->id_bytes = id_bytes;
		entry->code = token_index_load(entry, token_file_tokens(root, path, id_bytes));
		entry->next = token_indexes.list;
		token_indexes.list = entry;
	}
	(void)pthread_mutex_unlock(&token_indexes.lock);
	if (known || !entry)
		free(wanted);
	return entry;
}

/* ---- a worker ---------------------------------------------------------------------------------- */

enum { TOKENS_KNOWN = 1024 };

/* A file whose index is at hand; path: the data set's own. */
struct tokens_known {
	const char *path;
	const struct token_index_entry *entry;
};

struct tokens_worker {
	const struct dataset *dataset;
	struct tokens_known
		known[TOKENS_KNOWN]; /* by path, each at one place: no lock for most samples */
	size_t id_bytes;
	uint32_t length, vocabulary, end;
	bool documents;
};

static int sample_tokens_open(void **out, const struct sample_options *options, struct error *err)
{
	const struct config *const config = options->config;
	struct tokens_worker *const worker = calloc(1, sizeof *worker);
	*out = worker;
	if (!worker)
		return error_set(err, -ENOMEM, "no memory for a worker");
	worker->dataset = options->dataset;
	worker->id_bytes = sample_tokens_id_bytes(config);
	worker->length = sample_tokens_length(config);
	worker->vocabulary = (uint32_t)config_integer(config, KEY_TOKENS_VOCABULARY);
	worker->end = (uint32_t)config_integer(config, KEY_TOKENS_END_OF_DOCUMENT);
	worker->documents = config_integer(config, KEY_TOKENS_PACKING) == TOKENS_PACKING_DOCUMENTS;
	token_indexes_join();
	return 0;
}

static void sample_tokens_close(void *worker)
{
	if (worker)
		token_indexes_leave();
	free(worker);
}

/* A begin takes 8 bytes in memory and in the index.  Said of each worker, although they share it. */
static uint64_t sample_tokens_scratch(const struct config *config, const struct dataset *dataset)
{
	uint64_t bytes = sizeof(struct tokens_worker);
	const bool documents =
		config_integer(config, KEY_TOKENS_PACKING) == TOKENS_PACKING_DOCUMENTS;
	const char *before = NULL;
	for (size_t i = 0; documents && i < dataset->count; i++) {
		struct stat st;
		if (before && strcmp(before, dataset->samples[i].path) == 0)
			continue;
		before = dataset->samples[i].path;
		char *const path = token_index_path(dataset->root, before);
		bytes += path && stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
		free(path);
	}
	return bytes;
}

/* Ids to int32, and the largest of them. */
#define TOKENS_WIDEN(bits)                                                        \
	static uint32_t tokens_widen_##bits(                                      \
		const uint8_t *restrict from, size_t count, int32_t *restrict to) \
	{                                                                         \
		uint32_t most = 0;                                                \
		for (size_t i = 0; i < count; i++) {                              \
			uint##bits##_t raw;                                       \
			memcpy(&raw, from + i * sizeof raw, sizeof raw);          \
			const uint32_t id = le##bits##toh(raw);                   \
			to[i] = (int32_t)id;                                      \
			most = id > most ? id : most;                             \
		}                                                                 \
		return most;                                                      \
	}
TOKENS_WIDEN(16)
TOKENS_WIDEN(32)

static uint32_t tokens_widen(
	const struct tokens_worker *worker, const uint8_t *from, size_t count, int32_t *to)
{
	return worker->id_bytes == 2 ? tokens_widen_16(from, count, to)
				     : tokens_widen_32(from, count, to);
}

static int tokens_refuse_id(
	const struct tokens_worker *worker, const int32_t *ids, struct error *err)
{
	size_t at = 0;
	while (at + 1 < worker->length && (uint32_t)ids[at] < worker->vocabulary)
		at++;
	return error_set(err, -EINVAL,
		"id %" PRIu32 " is not in the vocabulary of %" PRIu32 " (tokens.vocabulary)",
		(uint32_t)ids[at], worker->vocabulary);
}

/* The token of the file that the sample begins with. */
static uint64_t tokens_first(const struct tokens_worker *worker, const struct sample *sample)
{
	const struct dataset *const dataset = worker->dataset;
	return dataset->offsets ? (dataset->offsets[sample - dataset->samples] - sample->width) /
					  worker->id_bytes
				: 0;
}

/* NULL without memory.  Nothing is beside a file that is packed in another. */
static const struct token_index_entry *tokens_entry(struct tokens_worker *worker, const char *path)
{
	static const struct token_index_entry none;
	const uintptr_t place = (uintptr_t)path;
	struct tokens_known *const known =
		&worker->known[(place >> 4 ^ place >> 14) % TOKENS_KNOWN];
	if (known->path == path)
		return known->entry;
	const struct token_index_entry *const entry =
		sample_tokens_takes(path)
			? token_indexes_find(worker->dataset->root, path, worker->id_bytes)
			: &none;
	if (entry)
		*known = (struct tokens_known){path, entry};
	return entry;
}

/* All bits of a masked label are set. */
static void tokens_mask_ends(
	const int32_t *restrict ids, size_t count, int32_t end, int32_t *restrict labels)
{
	for (size_t i = 0; i < count; i++)
		labels[i] |= -(int32_t)(ids[i] == end);
}
_Static_assert((int32_t)UINT32_MAX == -1, "a masked label is -1");

/* Labels at which another document begins. */
static int tokens_mask(struct tokens_worker *worker, const struct sample_task *task,
	int32_t *labels, struct error *err)
{
	const int32_t masked = (int32_t)BATCH_LABEL_MASKED;
	tokens_mask_ends((const int32_t *)(const void *)task->out, worker->length,
		(int32_t)worker->end, labels);
	const struct token_index_entry *const entry = tokens_entry(worker, task->sample->path);
	if (!entry)
		return error_set(err, -ENOMEM, "no memory for an index");
	const struct token_index *const index = &entry->index;
	const uint64_t first = tokens_first(worker, task->sample);
	if (entry->code)
		return error_set(err, entry->code, "%s", entry->why.text);
	for (size_t i = token_index_find(index, first + 1);
		i < index->count && index->begins[i] <= first + worker->length; i++)
		labels[index->begins[i] - first - 1] = masked;
	return 0;
}

static int sample_tokens_make(void *context, const struct sample_task *task, struct error *err)
{
	struct tokens_worker *const worker = context;
	const size_t length = worker->length;
	int32_t *const ids = (int32_t *)(void *)task->out;
	int32_t *const labels = (int32_t *)(void *)task->labels;
	const uint8_t *const bytes = task->bytes;
	if (task->size != (length + 1) * worker->id_bytes)
		return error_set(err, -EINVAL, "%zu bytes; a sequence has %zu", task->size,
			(length + 1) * worker->id_bytes);
	const uint32_t most = tokens_widen(worker, bytes, length, ids);
	memcpy(labels, ids + 1, (length - 1) * sizeof *labels);
	const uint32_t last =
		tokens_widen(worker, bytes + length * worker->id_bytes, 1, labels + length - 1);
	if (most >= worker->vocabulary)
		return tokens_refuse_id(worker, ids, err);
	if (last >= worker->vocabulary)
		return tokens_refuse_id(worker, labels, err);
	return worker->documents ? tokens_mask(worker, task, labels, err) : 0;
}

/* ---- files ------------------------------------------------------------------------------------- */

static const char *sample_tokens_endings(char out[SAMPLE_ENDINGS_BYTES])
{
	(void)snprintf(out, SAMPLE_ENDINGS_BYTES, "%s", TOKENS_ENDING);
	return out;
}

/* A header is the sample's width, and the bytes of an id that it promises are its height; 0: there is none.
 * Without one, whether ids have two bytes or four is the configuration's to say (.cut). */
static int sample_tokens_look(
	const void *head, size_t size, uint64_t file_bytes, struct sample *out, struct error *err)
{
	struct token_header header;
	const int code = token_header_read(head, size, file_bytes, &header, err);
	if (code)
		return code;
	out->width = header.bytes;
	out->height = header.id_bytes;
	return file_bytes % 2 == 0
		       ? 0
		       : error_set(err, -EINVAL,
				 "%" PRIu64 " bytes, an odd number: no token ids of 2 or 4 bytes",
				 file_bytes);
}

/* Of an index that is open: its type is that of the ids, and its last sequence ends where the file does.
 * Workers that need documents read all of it, and find what is wrong with it alone (stream: false). */
static int tokens_check_index(struct store *store, union store_file index, size_t id_bytes,
	bool stream, uint64_t file_bytes, struct error *err)
{
	uint8_t bytes[TOKEN_INDEX_HEAD_BYTES] = {0};
	uint8_t last[4 + 8];
	struct token_index_head head;
	int code = store_read_exactly(store, index, 0, bytes, sizeof bytes);
	if (code == -ENODATA || (!code && !token_index_read_head(bytes, sizeof bytes, &head)))
		return 0; /* something else that is called so */
	if (!code && !head.id_bytes)
		return error_set(err, -EINVAL,
			"index: its ids are %s, which is not read (uint16 and int32 are)",
			head.type ? head.type : "of an unknown type");
	if (!code && head.id_bytes != id_bytes)
		return error_set(err, -EINVAL, "index: its ids are %s: set tokens.type = %s",
			head.type, head.id_bytes == 2 ? "uint16" : "uint32");
	if (!stream)
		return 0;
	if (code || head.sequences == 0 || head.sequences > UINT32_MAX)
		return code ? error_set_errno(err, -code, "index: unreadable") : 0;
	code = store_read_exactly(store, index, sizeof bytes + 4 * (head.sequences - 1), last, 4);
	if (!code)
		code = store_read_exactly(store, index,
			sizeof bytes + 4 * head.sequences + 8 * (head.sequences - 1), last + 4, 8);
	if (code)
		return error_set_errno(err, -code, "index: cut short, or unreadable");
	uint32_t length;
	uint64_t place;
	memcpy(&length, last, sizeof length);
	memcpy(&place, last + 4, sizeof place);
	const uint64_t end = le64toh(place) + (uint64_t)le32toh(length) * id_bytes;
	return end == file_bytes
		       ? 0
		       : error_set(err, -EINVAL,
				 "index: its last sequence ends at byte %" PRIu64
				 ", and the file has %" PRIu64
				 " (index and data disagree): mend them, or leave the file out by dataset.exclude",
				 end, file_bytes);
}

static int sample_tokens_check(const struct config *config, struct store *store,
	const struct dataset *files, struct error *err)
{
	const bool stream = config_integer(config, KEY_TOKENS_PACKING) == TOKENS_PACKING_STREAM;
	int code = 0;
	for (size_t i = 0; i < files->count && !code; i++) {
		const struct sample *const file = &files->samples[i];
		union store_file opened;
		char *const path = token_index_path("", file->path);
		if (!path)
			return error_set(err, -ENOMEM, "no memory for the name of an index");
		const int there = store->ops->file_open(store, path, false, &opened);
		if (there == 0) {
			code = tokens_check_index(store, opened, sample_tokens_id_bytes(config),
				stream, file->bytes, err);
			store->ops->file_close(store, opened);
		} else if (stream && there != -ENOENT) {
			code = error_set_errno(err, -there, "index: cannot be opened");
		}
		if (code)
			(void)error_prefix(err, code, "'%.200s'", path);
		free(path);
	}
	return code;
}

static const struct sample_file_ops tokens_files = {
	.called = "files of tokens",
	.takes = sample_tokens_takes,
	.endings = sample_tokens_endings,
	.beside = TOKENS_INDEX_ENDING,
	.look = sample_tokens_look,
};

static const enum key_id tokens_keys[] = {KEY_TOKENS_LENGTH, KEY_TOKENS_TYPE, KEY_TOKENS_VOCABULARY,
	KEY_TOKENS_PACKING, KEY_TOKENS_END_OF_DOCUMENT};

const struct sample_ops sample_tokens = {
	.name = "tokens",
	.summary =
		"sequences of token ids from flat files (.bin); labels are the tokens that follow",
	.shape = sample_tokens_shape,
	.label_bytes = sample_tokens_labels,
	.make = sample_tokens_make,
	.scratch_bytes = sample_tokens_scratch,
	.open = sample_tokens_open,
	.close = sample_tokens_close,
	.classes = sample_tokens_classes,
	.cut = sample_tokens_cut,
	.check = sample_tokens_check,
	.validate = sample_tokens_validate,
	.keys = tokens_keys,
	.key_count = sizeof tokens_keys / sizeof *tokens_keys,
	.size_key = "tokens.length",
	.files = &tokens_files,
};
