/* Meters of threads. */
#include "harness/measure/thread_meter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct thread_meter *thread_meters_open(unsigned count, unsigned segments)
{
	struct thread_meter *meters =
		aligned_alloc(_Alignof(struct thread_meter), count * sizeof *meters);
	if (!meters)
		return NULL;
	memset(meters, 0, count * sizeof *meters);
	for (unsigned i = 0; i < count; i++)
		atomic_init(&meters[i].schedstat, -1);
	for (unsigned i = 0; i < count; i++) {
		if (service_log_open(&meters[i].service, segments) ||
			trace_log_open(&meters[i].trace, trace_log_room(count))) {
			thread_meters_close(meters, count);
			return NULL;
		}
	}
	return meters;
}

void thread_meters_close(struct thread_meter *meters, unsigned count)
{
	if (!meters)
		return;
	for (unsigned i = 0; i < count; i++) {
		const int fd = atomic_load(&meters[i].schedstat);
		if (fd >= 0)
			(void)close(fd);
		service_log_close(&meters[i].service);
		trace_log_close(&meters[i].trace);
	}
	free(meters);
}

void thread_meter_attach(struct thread_meter *meter)
{
	atomic_store(&meter->schedstat, open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
}

void thread_meter_start(
	struct thread_meter *meter, enum thread_state state, uint64_t start_ns, uint64_t segment_ns)
{
	service_log_start(&meter->service, start_ns, segment_ns);
	state_clock_start(&meter->clock, state, start_ns);
}

static bool read_schedstat(struct thread_meter *meter)
{
	const int fd = atomic_load(&meter->schedstat);
	if (fd < 0)
		return false;
	char text[96];
	const ssize_t size = pread(fd, text, sizeof text - 1, 0);
	if (size <= 0)
		return atomic_load(&meter->cpu_ns) > 0; /* it has ended: what was read last holds */
	text[size] = '\0';
	char *end;
	const uint64_t cpu_ns = strtoull(text, &end, 10);
	const uint64_t run_queue_ns = strtoull(end, NULL, 10);
	atomic_store(&meter->cpu_ns, cpu_ns);
	atomic_store(&meter->run_queue_ns, run_queue_ns);
	return true;
}

void thread_meter_detach(struct thread_meter *meter)
{
	(void)read_schedstat(meter);
}

bool thread_meter_read(struct thread_meter *meter, uint64_t now_ns, struct thread_times *out)
{
	state_clock_read(&meter->clock, now_ns, out->state_ns);
	out->items = atomic_load_explicit(&meter->items, memory_order_relaxed);
	const bool accounted = read_schedstat(meter);
	out->cpu_ns = atomic_load(&meter->cpu_ns);
	out->run_queue_ns = atomic_load(&meter->run_queue_ns);
	return accounted;
}
