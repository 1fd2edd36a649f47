/* Running a kernel: block after block, and within a block thread after thread.  A thread that comes to a barrier is left
 * there on its stack, and the next one runs on another; a kernel without barriers needs one stack and no switch. */
#include "tests/device/double/fiber.h"
#include "tests/device/double/launch_double.h"
#include "tests/device/double/memory.h"
#include "tests/device/double/state.h"
#include "tests/device/double/stream.h"

#include <climits>
#include <cstdlib>
#include <memory>

/* ThreadSanitizer shall see what kernels do, not the bookkeeping around them: it runs on every thread's stack. */
#define UNSEEN __attribute__((no_sanitize("thread")))

namespace twin
{

__thread kernel_place here;

namespace
{

enum {
	SHARED_BYTES = 48 * 1024,
	SHARED_ROOM = 64 * 1024, /* with guards */
	SHARED_MAX = 32,
	GUARD = 64,
	GUARD_BYTE = 0xa5,
	FRESH_BYTE = 0xff,
	THREADS_MAX = 1024,
	BLOCK_Z_MAX = 64,
	GRID_YZ_MAX = 65535
};

struct shared_entry {
	const void *key;
	char *data;
	size_t bytes;
};

/* The shared memory of the block that runs. */
struct arena {
	char *memory = (char *)aligned_alloc(GUARD, SHARED_ROOM);
	shared_entry entries[SHARED_MAX];
	size_t count = 0, used = 0, bytes = 0;
	~arena()
	{
		free(memory);
	}
};

struct crew {
	const std::function<void()> *once = nullptr;
	const char *kernel = nullptr;
	unsigned next = 0, count = 0, finished = 0;
	unsigned round = 0;                     /* barriers passed */
	char begun = 0, met[2] = {}, ended = 0; /* points that order threads for ThreadSanitizer */
	fiber *running = nullptr;
	bool failed = false;
	std::vector<std::unique_ptr<fiber>> idle;
	std::vector<std::unique_ptr<fiber>> lost; /* left in the middle of a kernel that failed */
	arena shared;
};
thread_local crew *crew_of_thread;

struct crew_owner {
	crew all;
	crew_owner()
	{
		crew_of_thread = &all;
	}
	~crew_owner()
	{
		crew_of_thread = nullptr;
	}
};

crew &team()
{
	static thread_local crew_owner owner;
	return owner.all;
}

UNSEEN void place_thread(unsigned index)
{
	const unsigned x = here.block_size.x, y = here.block_size.y;
	here.thread.x = index % x;
	here.thread.y = index / x % y;
	here.thread.z = index / x / y;
}

UNSEEN bool next_thread(crew *all, fiber *on)
{
	if (all->next >= all->count)
		return false;
	on->thread = all->next++;
	place_thread(on->thread);
	return true;
}

UNSEEN void thread_finished(crew *all)
{
	all->finished++;
}

UNSEEN const std::function<void()> *body_of(crew *all)
{
	return all->once;
}

/* A fiber's life: threads, one after the other, as long as there are any. */
void fiber_body(fiber *self)
{
	for (;;) {
		crew *const all = crew_of_thread;
		while (next_thread(all, self)) {
			order_after(&all->begun);
			(*body_of(all))();
			order_before(&all->ended);
			thread_finished(all);
		}
		self->pause();
	}
}

UNSEEN void resume(crew *all, fiber *one)
{
	all->running = one;
	one->waiting = false;
	one->resume();
}

using fibers = std::vector<std::unique_ptr<fiber>>;

void put_away(crew *all, std::unique_ptr<fiber> one, fibers &waiting)
{
	if (one->waiting)
		waiting.push_back(std::move(one));
	else
		all->idle.push_back(std::move(one));
}

/* Whether all threads of the block came to one barrier. */
bool together(const crew *all, const fibers &waiting)
{
	const fiber &first = *waiting.front();
	if (waiting.size() != all->count) {
		complain("%s: %s:%d: __syncthreads is reached by %zu of %u threads", all->kernel,
			first.file, first.line, waiting.size(), all->count);
		return false;
	}
	for (const std::unique_ptr<fiber> &one : waiting) {
		if (one->line == first.line && one->file == first.file)
			continue;
		complain("%s: threads wait at different barriers, lines %d and %d", all->kernel,
			first.line, one->line);
		return false;
	}
	return true;
}

void run_threads(crew *all)
{
	fibers waiting;
	while (all->next < all->count) {
		std::unique_ptr<fiber> one;
		if (all->idle.empty()) {
			one = std::make_unique<fiber>(fiber_body);
		} else {
			one = std::move(all->idle.back());
			all->idle.pop_back();
		}
		resume(all, one.get());
		put_away(all, std::move(one), waiting);
	}
	while (!waiting.empty() && !all->failed) {
		if (!together(all, waiting)) {
			all->failed = true;
			break;
		}
		fibers come;
		come.swap(waiting);
		all->round++;
		for (std::unique_ptr<fiber> &one : come) {
			place_thread(one->thread);
			resume(all, one.get());
			put_away(all, std::move(one), waiting);
		}
	}
	for (char &point : all->met) /* those that never go on */
		order_after(&point);
	for (std::unique_ptr<fiber> &one : waiting)
		all->lost.push_back(std::move(one));
}

void check_guards(crew *all)
{
	arena &shared = all->shared;
	for (size_t i = 0; i < shared.count; i++)
		for (size_t byte = 0; byte < GUARD; byte++)
			if ((unsigned char)shared.entries[i].data[shared.entries[i].bytes + byte] !=
				GUARD_BYTE) {
				complain("%s: written beyond shared memory of %zu bytes",
					all->kernel, shared.entries[i].bytes);
				all->failed = true;
				return;
			}
}

void run_block(crew *all, const std::function<void()> &once, unsigned threads)
{
	arena &shared = all->shared;
	memset(shared.memory, FRESH_BYTE, shared.used);
	shared.count = shared.used = shared.bytes = 0;
	all->once = &once;
	all->next = all->finished = 0;
	all->count = threads;
	order_before(&all->begun);
	run_threads(all);
	order_after(&all->ended);
	check_guards(all);
}

void run_grid(const launch_shape &shape, const std::function<void()> &once)
{
	crew *const all = &team();
	all->kernel = shape.kernel;
	all->failed = false;
	if (all->shared.used == 0)
		memset(all->shared.memory, FRESH_BYTE, SHARED_ROOM);
	here.block_size = shape.block;
	here.grid_size = shape.grid;
	const unsigned threads = shape.block.x * shape.block.y * shape.block.z;
	for (unsigned z = 0; z < shape.grid.z && !all->failed; z++)
		for (unsigned y = 0; y < shape.grid.y && !all->failed; y++)
			for (unsigned x = 0; x < shape.grid.x && !all->failed; x++) {
				here.block = {x, y, z};
				run_block(all, once, threads);
			}
	if (all->failed)
		fault(current_device(), cudaErrorLaunchFailure);
}

bool fits(const launch_shape &shape)
{
	const dim3 &grid = shape.grid, &block = shape.block;
	const unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
	const bool good = threads > 0 && threads <= THREADS_MAX && block.x <= THREADS_MAX &&
			  block.y <= THREADS_MAX && block.z <= BLOCK_Z_MAX && grid.x > 0 &&
			  grid.y > 0 && grid.z > 0 && grid.x <= (unsigned)INT_MAX &&
			  grid.y <= GRID_YZ_MAX && grid.z <= GRID_YZ_MAX;
	if (!good)
		complain("%s: grid (%u, %u, %u) of blocks (%u, %u, %u) cannot be launched",
			shape.kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z);
	return good;
}

void run(const launch_shape &shape, const std::function<void()> &once,
	const std::vector<const void *> &pointers)
{
	const int device = current_device();
	const uint64_t begin = now_ns();
	if (injected("kernel")) {
		fault(device, cudaErrorLaunchFailure);
		return;
	}
	for (const void *pointer : pointers) {
		if (reachable(shape.kernel, pointer, device))
			continue;
		fault(device, cudaErrorIllegalAddress);
		return;
	}
	run_grid(shape, once);
	until_ns(begin + set.kernel_ns);
}

} // namespace

dim3 extent_of(const char *kernel, unsigned long long count)
{
	if (count <= UINT_MAX)
		return dim3((unsigned)count);
	complain("%s: %llu blocks or threads do not fit 32 bits", kernel, count);
	return dim3(0);
}

int launch(const launch_shape &shape, cudaStream_t stream, std::function<void()> once,
	std::vector<const void *> pointers)
{
	api("cudaLaunchKernel", frame::safe, [&]() -> cudaError_t {
		const stream_ref on = stream_find(stream);
		if (!fits(shape))
			return cudaErrorInvalidConfiguration;
		if (on && on->device != current_device()) {
			complain("%s: on a stream of device %d while %d is current", shape.kernel,
				on->device, current_device());
			return cudaErrorInvalidResourceHandle;
		}
		busy_ns(set.launch_ns);
		return submit("cudaLaunchKernel", stream,
			[shape, once = std::move(once), pointers = std::move(pointers)] {
				run(shape, once, pointers);
			});
	});
	return (int)cudaGetLastError();
}

UNSEEN void barrier(const char *file, int line)
{
	crew *const all = crew_of_thread;
	fiber *const self = all->running;
	void *const point = &all->met[all->round % 2];
	self->file = file;
	self->line = line;
	self->waiting = true;
	order_before(point);
	self->pause();
	order_after(point);
}

UNSEEN void *shared_memory(const void *key, size_t bytes, size_t alignment)
{
	arena &shared = crew_of_thread->shared;
	for (size_t i = 0; i < shared.count; i++)
		if (shared.entries[i].key == key)
			return shared.entries[i].data;
	const size_t at = (shared.used + alignment - 1) / alignment * alignment;
	shared.bytes += bytes;
	if (shared.count == SHARED_MAX || shared.bytes > SHARED_BYTES ||
		at + bytes + GUARD > SHARED_ROOM) {
		complain("%s: more than 48 KiB of shared memory", crew_of_thread->kernel);
		abort();
	}
	shared.entries[shared.count++] = {key, shared.memory + at, bytes};
	for (size_t i = 0; i < GUARD; i++)
		((volatile char *)shared.memory)[at + bytes + i] = (char)GUARD_BYTE;
	shared.used = at + bytes + GUARD;
	return shared.memory + at;
}

} // namespace twin
