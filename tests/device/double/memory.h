/* Whose memory is what: every range that the CUDA functions gave out or registered. */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_MEMORY_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_MEMORY_H

#include <cstddef>

namespace twin
{

enum class place { pageable, pinned, device };

struct location {
	place where;
	int device;   /* of device memory */
	size_t room;  /* bytes from the pointer to the end of its range */
	size_t index; /* of the pointer in it */
};
location locate(const void *pointer);

/* Whether the `bytes` there are on the device; if not, complains in the name of `who`, `what`. */
bool on_device(const char *who, const char *what, const void *pointer, size_t bytes, int device);
/* Likewise for memory that a kernel may reach: the device's, or pinned. */
bool reachable(const char *who, const void *pointer, int device);

} // namespace twin

#endif
