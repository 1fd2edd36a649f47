/* Streams: each is a thread with a queue of work that it does in order.  A moment is when something on a stream
 * happened: what events record, and what threads wait for. */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_STREAM_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_STREAM_H

#include <condition_variable>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace twin
{

using work = std::function<void()>;

class moment
{
      public:
	void happen();
	void wait();
	bool happened();
	uint64_t ns();

      private:
	std::mutex lock;
	std::condition_variable changed;
	bool done = false;
	uint64_t at_ns = 0;
};
using moment_ref = std::shared_ptr<moment>;

class capture;

class stream
{
      public:
	stream(int device, unsigned flags, int priority);
	void push(work item);                 /* waits while the queue is full, as a driver does */
	void note(const moment_ref &reached); /* it happens after all that was pushed so far */
	moment_ref mark();                    /* likewise, a new one */
	bool idle();
	void finish(); /* no more pushes: the thread ends when the queue is empty */

	const int device;
	const unsigned flags;
	const int priority;
	std::shared_ptr<capture> captured; /* under the lock of all streams; NULL: none */

      private:
	static void run(std::shared_ptr<stream> self);
	void start(std::shared_ptr<stream> self);
	friend std::shared_ptr<stream> stream_open(int device, unsigned flags, int priority);

	std::mutex lock;
	std::condition_variable changed;
	struct entry {
		work item;
		bool counts; /* as work that is not done yet: all but moments */
	};
	void append(work item, bool counts);
	std::deque<entry> queue;
	uint64_t pushed = 0, done = 0;
	bool closing = false;
};
using stream_ref = std::shared_ptr<stream>;

stream_ref stream_open(int device, unsigned flags, int priority);

/* The stream of a handle (NULL: the current device's default); empty: there is none such. */
stream_ref stream_find(cudaStream_t handle);
std::recursive_mutex &streams_lock(); /* guards handles and captures */

/* Puts work on a stream, or into the graph that it captures; with the rules of the default stream. */
cudaError_t submit(const char *name, cudaStream_t handle, work item);
/* All work of a device so far, on all its streams. */
std::vector<moment_ref> marks_of_device(int device);
void wait_for_device(int device);

} // namespace twin

#endif
