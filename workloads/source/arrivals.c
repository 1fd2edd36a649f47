#include "workloads/source/arrivals.h"

#include <pthread.h>
#include <stdlib.h>

struct arrivals {
	pthread_mutex_t lock;
	unsigned under_way; /* connections with a reply that has come in part */
	uint64_t since_ns;  /* there is one */
	uint64_t total_ns;
};

struct arrivals *arrivals_new(void)
{
	struct arrivals *const arrivals = calloc(1, sizeof *arrivals);
	if (arrivals)
		(void)pthread_mutex_init(&arrivals->lock, NULL);
	return arrivals;
}

void arrivals_free(struct arrivals *arrivals)
{
	if (arrivals)
		(void)pthread_mutex_destroy(&arrivals->lock);
	free(arrivals);
}

/* Another thread's clock may have been read a little later. */
static uint64_t arrivals_since(const struct arrivals *arrivals, uint64_t now_ns)
{
	return now_ns > arrivals->since_ns ? now_ns - arrivals->since_ns : 0;
}

void arrivals_begin(struct arrivals *arrivals, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&arrivals->lock);
	if (arrivals->under_way++ == 0)
		arrivals->since_ns = now_ns;
	(void)pthread_mutex_unlock(&arrivals->lock);
}

void arrivals_end(struct arrivals *arrivals, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&arrivals->lock);
	if (--arrivals->under_way == 0)
		arrivals->total_ns += arrivals_since(arrivals, now_ns);
	(void)pthread_mutex_unlock(&arrivals->lock);
}

uint64_t arrivals_ns(struct arrivals *arrivals, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&arrivals->lock);
	const uint64_t open_ns = arrivals->under_way > 0 ? arrivals_since(arrivals, now_ns) : 0;
	const uint64_t total_ns = arrivals->total_ns + open_ns;
	(void)pthread_mutex_unlock(&arrivals->lock);
	return total_ns;
}
