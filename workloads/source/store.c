/* The table of stores, and what is the same for all of them. */
#include "workloads/source/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WALK_TAKES = 16 }; /* samples at a time */

static const struct store_ops *const store_list[] = {
	&store_local, /* takes any address: the last */
};

const struct store_ops *store_find(const char *address)
{
	const size_t last = sizeof store_list / sizeof *store_list - 1;
	for (size_t i = 0; i < last; i++)
		if (strncmp(address, store_list[i]->prefix, strlen(store_list[i]->prefix)) == 0)
			return store_list[i];
	return store_list[last];
}

int store_open(struct store **out, const char *address, struct error *err)
{
	*out = NULL;
	const struct store_ops *const ops = store_find(address);
	struct store *const store = calloc(1, ops->size);
	if (!store)
		return error_set(err, -ENOMEM, "out of memory for '%s'", address);
	*store = (struct store){.ops = ops, .address = address, .root_fd = -1};
	const int code = ops->open(store, err);
	if (code) {
		free(store);
		return code;
	}
	*out = store;
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store->ops->close(store);
	free(store);
}

uint64_t store_file_bytes(struct store *store, const char *path, const union store_file *file)
{
	struct store_stat what;
	return store->ops->stat(store, path, file, &what) == 0 ? what.bytes : 0;
}

/* A team of threads over the samples: each takes the next few from one counter. */
struct walk {
	sample_visit *visit;
	void *context;
	size_t count;
	atomic_size_t next;
};

struct walker {
	struct walk *walk;
	unsigned thread;
	pthread_t handle;
};

static void *walker_run(void *argument)
{
	const struct walker *const walker = argument;
	struct walk *const walk = walker->walk;
	for (;;) {
		const size_t first =
			atomic_fetch_add_explicit(&walk->next, WALK_TAKES, memory_order_relaxed);
		if (first >= walk->count)
			return NULL;
		for (size_t i = first; i < first + WALK_TAKES && i < walk->count; i++)
			walk->visit(walk->context, walker->thread, (uint32_t)i);
	}
}

void sample_walk(
	const struct dataset *dataset, unsigned threads, sample_visit *visit, void *context)
{
	struct walk walk = {.visit = visit, .context = context, .count = dataset->count};
	struct walker walkers[SAMPLE_WALK_THREADS_MAX];
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t wanted = threads ? threads : (size_t)(cores > 0 ? cores : 1);
	if (wanted > SAMPLE_WALK_THREADS_MAX)
		wanted = SAMPLE_WALK_THREADS_MAX;
	if (wanted > dataset->count / WALK_TAKES + 1)
		wanted = dataset->count / WALK_TAKES + 1;
	for (unsigned i = 0; i < wanted; i++)
		walkers[i] = (struct walker){.walk = &walk, .thread = i};
	unsigned started = 1;
	while (started < wanted &&
		pthread_create(&walkers[started].handle, NULL, walker_run, &walkers[started]) == 0)
		started++;
	(void)walker_run(&walkers[0]);
	for (unsigned i = 1; i < started; i++)
		(void)pthread_join(walkers[i].handle, NULL);
}
