/* Meters of threads. */
#include "harness/measure/thread_meter.h"

#include "harness/measure/io_delay.h"
#include "harness/measure/timeline.h"

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
	for (unsigned i = 0; i < count; i++) {
		atomic_init(&meters[i].schedstat, -1);
		atomic_init(&meters[i].io_delay, -1);
	}
	for (unsigned i = 0; i < count; i++) {
		if (service_log_open(&meters[i].service, segments) ||
			trace_log_open(&meters[i].trace, trace_log_room(count))) {
			thread_meters_close(meters, count);
			return NULL;
		}
	}
	return meters;
}

int thread_meters_add_devices(struct thread_meter *meters, unsigned count)
{
	int code = 0;
	for (unsigned i = 0; i < count && !code; i++)
		code = trace_log_open(&meters[i].device, trace_log_room(count));
	return code;
}

int thread_meters_add_ramps(struct thread_meter *meters, unsigned count)
{
	int code = 0;
	for (unsigned i = 0; i < count && !code; i++)
		code = trace_log_open(&meters[i].ramp, TRACE_RAMP_FILES_MAX);
	return code;
}

static void close_file(const atomic_int *file)
{
	const int fd = atomic_load(file);
	if (fd >= 0)
		(void)close(fd);
}

void thread_meters_close(struct thread_meter *meters, unsigned count)
{
	if (!meters)
		return;
	for (unsigned i = 0; i < count; i++) {
		close_file(&meters[i].schedstat);
		close_file(&meters[i].io_delay);
		service_log_close(&meters[i].service);
		trace_log_close(&meters[i].trace);
		trace_log_close(&meters[i].device);
		trace_log_close(&meters[i].ramp);
	}
	free(meters);
}

void thread_meter_attach(struct thread_meter *meter)
{
	atomic_store(&meter->tid, (int)gettid());
	atomic_store(&meter->schedstat, open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
	if (!io_delay_unavailable())
		atomic_store(&meter->io_delay, io_delay_open());
	timeline_use(meter->clock.timeline);
}

void thread_meter_start(
	struct thread_meter *meter, enum thread_state state, uint64_t start_ns, uint64_t segment_ns)
{
	service_log_start(&meter->service, start_ns, segment_ns);
	state_clock_start(&meter->clock, state, start_ns);
	memory_account_use(&meter->allocated);
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

static void read_io_delay(struct thread_meter *meter)
{
	const int fd = atomic_load(&meter->io_delay);
	uint64_t ns;
	if (fd >= 0 && io_delay_read(fd, &ns))
		atomic_store(&meter->io_wait_ns, ns);
}

void thread_meter_detach(struct thread_meter *meter)
{
	timeline_use(NULL);
	memory_account_use(NULL);
	(void)read_schedstat(meter);
	read_io_delay(meter);
}

bool thread_meter_read(struct thread_meter *meter, uint64_t now_ns, struct thread_times *out)
{
	state_clock_read(&meter->clock, now_ns, out->state_ns);
	out->items = atomic_load_explicit(&meter->items, memory_order_relaxed);
	const bool accounted = read_schedstat(meter);
	out->cpu_ns = atomic_load(&meter->cpu_ns);
	out->run_queue_ns = atomic_load(&meter->run_queue_ns);
	read_io_delay(meter);
	out->io_wait_ns = atomic_load(&meter->io_wait_ns);
	out->lock_wait_ns = lock_meter_wait_ns(&meter->lock, now_ns);
	out->lock_hold_ns = lock_meter_hold_ns(&meter->lock);
	out->allocated_bytes = memory_account_held(&meter->allocated);
	return accounted;
}
