/* A stack of its own for a thread of a kernel that waits at a barrier.  All fibers of one OS thread; not thread-safe. */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_FIBER_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_FIBER_H

#include <cstddef>

namespace twin
{

class fiber
{
      public:
	explicit fiber(void (*body)(fiber *)); /* body never returns: it pauses */
	~fiber();
	fiber(const fiber &) = delete;
	fiber &operator=(const fiber &) = delete;
	void resume(); /* by the owner: until the fiber pauses */
	void pause();  /* by the fiber itself */

	unsigned thread = 0; /* of the block: for the user */
	const char *file = nullptr;
	int line = 0; /* of the barrier where it waits */
	bool waiting = false;

      private:
	static void begin();
	void to_fiber();
	void to_owner();

	void (*const body)(fiber *);
	char *stack;
	void *own_sp = nullptr, *owner_sp = nullptr; /* saved stack pointers, or contexts */
	[[maybe_unused]] void *own_fake = nullptr, *owner_fake = nullptr; /* AddressSanitizer's */
	[[maybe_unused]] const void *owner_stack = nullptr;
	[[maybe_unused]] size_t owner_stack_bytes = 0;
	[[maybe_unused]] void *own_tsan = nullptr, *owner_tsan = nullptr; /* ThreadSanitizer's */
};

/* ThreadSanitizer sees the threads of a block as threads: what one does before these, another does after the other. */
void order_before(void *point);
void order_after(void *point);

} // namespace twin

#endif
