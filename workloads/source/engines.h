/* What the read engines share: the list of their tables, and helpers that only they use. */
#ifndef MLBENCH_WORKLOADS_SOURCE_ENGINES_H
#define MLBENCH_WORKLOADS_SOURCE_ENGINES_H

#include "harness/config/tables.h"
#include "workloads/source/progress.h"
#include "workloads/source/source.h"

#define ENGINE_DECLARE(ID, name) extern const struct source_ops source_##name;
READ_ENGINES(ENGINE_DECLARE)
#undef ENGINE_DECLARE

/* Appends to source->notes, "; " between notes; cut where they are full.  Not while readers run,
 * but under the engine's own lock. */
void source_note(struct source *source, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* -EMFILE with the numbers, when this process may not open at_once files more.  Nothing is asked of a
 * store that is not local. */
int source_check_open_files(const struct source *source, unsigned at_once, struct error *err);

/* Whether files of the store open with O_DIRECT: tries the first that is there.  Notes it if not. */
bool source_direct_works(struct source *source);

/* Reads by plain calls of the calling thread (open, read until it is whole, close) what progress was
 * started for, from that file, into buffer.  READ_STEP_DONE or READ_STEP_FAILED. */
enum read_step source_read_now(struct store *store, const char *path, uint8_t *buffer,
	struct read_progress *progress, struct source_counter *counter);

/* Fills in of a request where its sample lies (offset, length, part). */
static inline void source_locate(const struct dataset *dataset, struct read_request *request)
{
	request->offset = dataset->offsets ? dataset->offsets[request->sample] : 0;
	request->length = dataset->samples[request->sample].bytes;
	request->part = dataset->offsets != NULL;
}

/* A first-in first-out list of requests, linked through the requests themselves: no allocation. */
struct request_list {
	struct read_request *head, *tail; /* both NULL when empty */
};

static inline void request_list_push(struct request_list *list, struct read_request *request)
{
	request->next = NULL;
	if (list->tail)
		list->tail->next = request;
	else
		list->head = request;
	list->tail = request;
}

static inline struct read_request *request_list_pop(struct request_list *list)
{
	struct read_request *const request = list->head;
	if (!request)
		return NULL;
	list->head = request->next;
	if (!list->head)
		list->tail = NULL;
	return request;
}

/* Pops up to room of them into out; how many. */
static inline size_t request_list_take(
	struct request_list *list, struct read_request **out, size_t room)
{
	size_t count = 0;
	while (count < room && list->head)
		out[count++] = request_list_pop(list);
	return count;
}

#endif
