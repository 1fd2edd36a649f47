/* Captured streams and graphs.  A capture collects the work of the streams that it reached, with what each piece waits
 * for; each stream becomes a lane of the graph, and lanes run at the same time. */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_GRAPH_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_GRAPH_H

#include "tests/device/double/stream.h"

#include <map>
#include <thread>

namespace twin
{

struct graph_node {
	work item;
	size_t lane;
	std::vector<size_t> needs; /* nodes, all before this one */
};

struct graph {
	std::vector<graph_node> nodes;
	size_t lanes = 0;
	int device = 0;
};

class capture
{
      public:
	capture(const stream_ref &first, cudaStreamCaptureMode how);
	cudaError_t add(const stream_ref &on, work item);
	std::vector<size_t> tail(const stream_ref &on) const;
	/* on goes on after these nodes, too; it joins the capture if it is not in it. */
	void join(const stream_ref &on, const std::vector<size_t> &after);
	/* Takes all streams out of it; cudaSuccess only when every one was joined to the first. */
	cudaError_t end();

	const stream_ref origin;
	const cudaStreamCaptureMode mode;
	const std::thread::id thread = std::this_thread::get_id();
	std::shared_ptr<graph> result = std::make_shared<graph>();
	bool invalid = false;

      private:
	struct lane {
		stream_ref on;
		std::vector<size_t> tail;
	};
	std::vector<lane> lanes;
	const lane *find(const stream_ref &on) const;
	std::vector<bool> before_end() const;
};

} // namespace twin

#endif
