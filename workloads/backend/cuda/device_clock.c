/* Stamps: the host brackets an event on an idle stream, several times, and keeps the narrowest bracket. */
#include "workloads/backend/cuda/device_clock.h"

#include "harness/base/clock.h"
#include "workloads/backend/cuda/runtime.h"

#include <errno.h>
#include <math.h>

struct effort {
	int tries;
	uint64_t trying_ns;   /* after the first one has come */
	uint64_t patience_ns; /* for one try */
};
static const struct effort between_steps = {8, 150000, 2000000};
static const struct effort at_the_beginning = {64, 3000000, 1000000000};

static const double NS_PER_MILLISECOND = 1e6; /* cudaEventElapsedTime gives ms */

int device_clock_between(cudaEvent_t begin, cudaEvent_t end, uint64_t *device_ns, struct error *err)
{
	float ms = 0;
	CUDA_OR_RETURN(err, cudaEventElapsedTime(&ms, begin, end));
	*device_ns = ms > 0 ? (uint64_t)llround((double)ms * NS_PER_MILLISECOND) : 0;
	return 0;
}

/* --- taking a stamp: the step thread ---------------------------------------------------------- */

struct bracket {
	uint64_t begin_ns, end_ns;
};

static uint64_t clock_bracket_width(const struct bracket *bracket)
{
	return bracket->end_ns - bracket->begin_ns;
}

/* 0; -EAGAIN: the device did not answer in time. */
static int clock_bracket_event(const struct device_clock *clock, cudaEvent_t event,
	uint64_t patience_ns, struct bracket *out, struct error *err)
{
	out->begin_ns = clock_now_ns();
	CUDA_OR_RETURN(err, cudaEventRecord(event, clock->stream));
	const uint64_t until_ns = out->begin_ns + patience_ns;
	for (;;) {
		const cudaError_t look = wait_look(event);
		out->end_ns = clock_now_ns();
		if (look == cudaSuccess)
			return 0;
		if (look != cudaErrorNotReady)
			return fail_cuda(err, (int)look, "reading the device's clock");
		if (out->end_ns > until_ns)
			return -EAGAIN;
	}
}

/* The narrowest of several brackets, its event in tries[0]; -EAGAIN: none came in time. */
static int clock_take_bracket(struct device_clock *clock, const struct effort *effort,
	struct bracket *best, struct error *err)
{
	int code = clock_bracket_event(clock, clock->tries[0], effort->patience_ns, best, err);
	const uint64_t until_ns = best->end_ns + effort->trying_ns;
	for (int i = 1; i < effort->tries && !code && clock_now_ns() < until_ns; i++) {
		struct bracket next;
		code = clock_bracket_event(clock, clock->tries[1], effort->patience_ns, &next, err);
		if (code == -EAGAIN)
			return 0;
		if (code || clock_bracket_width(&next) >= clock_bracket_width(best))
			continue;
		cudaEvent_t better = clock->tries[1];
		clock->tries[1] = clock->tries[0];
		clock->tries[0] = better;
		*best = next;
	}
	return code;
}

/* Since the first stamp, by the last one. */
static int clock_chain(const struct device_clock *clock, double *device_ns, struct error *err)
{
	const size_t last = clock->newest % DEVICE_CLOCK_STAMPS;
	float ms = 0;
	*device_ns = 0;
	if (clock->newest == 0)
		return 0;
	CUDA_OR_RETURN(err, cudaEventElapsedTime(&ms, clock->stamps[last].event, clock->tries[0]));
	*device_ns = clock->stamps[last].device_ns + (double)ms * NS_PER_MILLISECOND;
	return 0;
}

static void clock_publish(
	struct device_clock *clock, const struct bracket *bracket, double device_ns)
{
	const struct clock_anchor anchor = {
		.device_ns = device_ns,
		.host_ns = bracket->begin_ns + clock_bracket_width(bracket) / 2,
		.error_ns = (double)clock_bracket_width(bracket) / 2,
	};
	(void)pthread_mutex_lock(&clock->lock);
	const uint64_t number = ++clock->newest;
	const size_t slot = number % DEVICE_CLOCK_STAMPS;
	cudaEvent_t old = clock->stamps[slot].event;
	clock->stamps[slot].event = clock->tries[0];
	clock->stamps[slot].device_ns = device_ns;
	clock->stamps[slot].number = number;
	clock->tries[0] = old;
	clock_map_add(&clock->map, &anchor);
	(void)pthread_mutex_unlock(&clock->lock);
}

static int clock_take_stamp(
	struct device_clock *clock, const struct effort *effort, struct error *err)
{
	struct bracket bracket = {0};
	double device_ns;
	int code = clock_take_bracket(clock, effort, &bracket, err);
	if (!code)
		code = clock_chain(clock, &device_ns, err);
	if (!code)
		clock_publish(clock, &bracket, device_ns);
	clock->next_ns = clock_now_ns() + NS_PER_S;
	return code == -EAGAIN ? 0 : code;
}

int device_clock_keep(struct device_clock *clock, struct error *err)
{
	return clock_now_ns() < clock->next_ns ? 0 : clock_take_stamp(clock, &between_steps, err);
}

int device_clock_open(struct device_clock *clock, struct error *err)
{
	clock->error_ns = NAN;
	const int no_lock = pthread_mutex_init(&clock->lock, NULL);
	if (no_lock)
		return error_set_errno(err, no_lock, "cuda: cannot create a lock");
	clock->has_lock = true;
	CUDA_OR_RETURN(err, cudaStreamCreateWithFlags(&clock->stream, cudaStreamNonBlocking));
	for (size_t i = 0; i < DEVICE_CLOCK_STAMPS; i++)
		CUDA_OR_RETURN(err, cudaEventCreate(&clock->stamps[i].event));
	for (size_t i = 0; i < 2; i++)
		CUDA_OR_RETURN(err, cudaEventCreate(&clock->tries[i]));
	return clock_take_stamp(clock, &at_the_beginning, err);
}

void device_clock_close(struct device_clock *clock)
{
	for (size_t i = 0; i < DEVICE_CLOCK_STAMPS; i++)
		release_event(clock->stamps[i].event);
	for (size_t i = 0; i < 2; i++)
		release_event(clock->tries[i]);
	release_stream(clock->stream);
	if (clock->has_lock)
		(void)pthread_mutex_destroy(&clock->lock);
	*clock = (struct device_clock){0};
}

/* --- using them: any thread ------------------------------------------------------------------- */

uint64_t device_clock_stamp(struct device_clock *clock)
{
	(void)pthread_mutex_lock(&clock->lock);
	const uint64_t newest = clock->newest;
	(void)pthread_mutex_unlock(&clock->lock);
	return newest;
}

static void clock_map_span(struct device_clock *clock, double begin_ns, struct device_span *out)
{
	double begin_error;
	double end_error;
	const double end_ns = begin_ns + (double)out->device_ns;
	out->begin_ns = clock_map_host_ns(&clock->map, begin_ns, &begin_error);
	out->end_ns = clock_map_host_ns(&clock->map, end_ns, &end_error);
	/* fmax ignores a NAN. */
	clock->error_ns = fmax(clock->error_ns, fmax(begin_error, end_error));
}

int device_clock_span(struct device_clock *clock, uint64_t stamp, cudaEvent_t begin,
	cudaEvent_t end, struct device_span *out, struct error *err)
{
	*out = (struct device_span){0};
	int code = device_clock_between(begin, end, &out->device_ns, err);
	if (code || stamp == 0)
		return code;
	float ms = 0;
	(void)pthread_mutex_lock(&clock->lock);
	const size_t slot = stamp % DEVICE_CLOCK_STAMPS;
	const bool kept = clock->stamps[slot].number == stamp;
	if (kept)
		code = CUDA_TRY(err, cudaEventElapsedTime(&ms, clock->stamps[slot].event, begin));
	if (kept && !code)
		clock_map_span(clock,
			clock->stamps[slot].device_ns + (double)ms * NS_PER_MILLISECOND, out);
	(void)pthread_mutex_unlock(&clock->lock);
	return code;
}

double device_clock_error_ns(struct device_clock *clock)
{
	(void)pthread_mutex_lock(&clock->lock);
	const double error_ns = clock->error_ns;
	(void)pthread_mutex_unlock(&clock->lock);
	return error_ns;
}
