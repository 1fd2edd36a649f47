/* A first-in first-out list of requests, linked through the requests themselves: no allocation. */
#ifndef MLBENCH_WORKLOADS_SOURCE_REQUEST_LIST_H
#define MLBENCH_WORKLOADS_SOURCE_REQUEST_LIST_H

#include "workloads/source/source.h"

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
