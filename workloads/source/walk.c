/* A team of threads over the samples: each takes the next few from one counter. */
#include "workloads/source/walk.h"

#include <pthread.h>
#include <unistd.h>

enum { TAKE = 16 };

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

static void *walk_some(void *argument)
{
	const struct walker *const walker = argument;
	struct walk *const walk = walker->walk;
	for (;;) {
		const size_t first =
			atomic_fetch_add_explicit(&walk->next, TAKE, memory_order_relaxed);
		if (first >= walk->count)
			return NULL;
		for (size_t i = first; i < first + TAKE && i < walk->count; i++)
			walk->visit(walk->context, walker->thread, (uint32_t)i);
	}
}

static unsigned walk_threads(unsigned asked, size_t count)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t threads = asked ? asked : (size_t)(cores > 0 ? cores : 1);
	if (threads > WALK_THREADS_MAX)
		threads = WALK_THREADS_MAX;
	if (threads > count / TAKE + 1)
		threads = count / TAKE + 1;
	return (unsigned)threads;
}

void sample_walk(
	const struct dataset *dataset, unsigned threads, sample_visit *visit, void *context)
{
	struct walk walk = {.visit = visit, .context = context, .count = dataset->count};
	struct walker walkers[WALK_THREADS_MAX];
	threads = walk_threads(threads, dataset->count);
	unsigned started = 1;
	walkers[0] = (struct walker){.walk = &walk};
	for (unsigned i = 1; i < threads; i++)
		walkers[i] = (struct walker){.walk = &walk, .thread = i};
	while (started < threads &&
		pthread_create(&walkers[started].handle, NULL, walk_some, &walkers[started]) == 0)
		started++;
	(void)walk_some(&walkers[0]);
	for (unsigned i = 1; i < started; i++)
		(void)pthread_join(walkers[i].handle, NULL);
}
