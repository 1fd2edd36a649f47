/* A table of fixed size behind a mutex: it is asked at open alone. */
#include "workloads/backend/cuda/gemm_choice.h"

#include <pthread.h>

enum { CHOICES_MAX = 1024 };

static struct {
	pthread_mutex_t mutex;
	size_t count;
	struct gemm_choice_key keys[CHOICES_MAX];
	struct gemm_choice choices[CHOICES_MAX];
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool same_shape(const struct gemm_problem *a, const struct gemm_problem *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k && a->a_transposed == b->a_transposed &&
	       a->b_transposed == b->b_transposed && a->lda == b->lda && a->ldb == b->ldb &&
	       a->ldd == b->ldd && a->batch == b->batch && a->stride_a == b->stride_a &&
	       a->stride_b == b->stride_b && a->stride_d == b->stride_d;
}

bool gemm_problem_equal(const struct gemm_problem *a, const struct gemm_problem *b)
{
	return same_shape(a, b) && a->a_type == b->a_type && a->b_type == b->b_type &&
	       a->d_type == b->d_type && a->precision == b->precision &&
	       a->epilogue == b->epilogue && a->aux_ld == b->aux_ld && a->adds == b->adds &&
	       a->fast_sums == b->fast_sums;
}

/* Called with the mutex held; count: none. */
static size_t place_of(const struct gemm_choice_key *key)
{
	for (size_t i = 0; i < table.count; i++) {
		const struct gemm_choice_key *other = &table.keys[i];
		if (key->device == other->device && key->candidates == other->candidates &&
			key->workspace_limit == other->workspace_limit &&
			gemm_problem_equal(&key->problem, &other->problem))
			return i;
	}
	return table.count;
}

bool gemm_choice_find(const struct gemm_choice_key *key, struct gemm_choice *out)
{
	pthread_mutex_lock(&table.mutex);
	const size_t place = place_of(key);
	const bool found = place < table.count;
	if (found)
		*out = table.choices[place];
	pthread_mutex_unlock(&table.mutex);
	return found;
}

void gemm_choice_keep(const struct gemm_choice_key *key, const struct gemm_choice *choice)
{
	pthread_mutex_lock(&table.mutex);
	const size_t place = place_of(key);
	if (place == table.count && table.count < CHOICES_MAX) {
		table.keys[place] = *key;
		table.choices[place] = *choice;
		table.count++;
	}
	pthread_mutex_unlock(&table.mutex);
}
