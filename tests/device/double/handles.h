/* Handles that are given out once and never again, so that use after destruction is seen. */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_HANDLES_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_HANDLES_H

#include "tests/device/double/state.h"

#include <map>
#include <memory>

namespace twin
{

/* Handle: a pointer type of the API; the address is a number, and nothing lies there.  Locking is the caller's. */
template <typename Handle, typename Object> class handles
{
      public:
	explicit handles(uintptr_t base) : next(base)
	{
	}
	Handle add(std::shared_ptr<Object> object)
	{
		const Handle handle = (Handle)(next += STEP);
		objects[handle] = std::move(object);
		live++;
		return handle;
	}
	std::shared_ptr<Object> find(Handle handle) const
	{
		const auto found = objects.find(handle);
		return found == objects.end() ? nullptr : found->second;
	}
	bool remove(Handle handle)
	{
		if (objects.erase(handle) == 0)
			return false;
		live--;
		return true;
	}
	const std::map<Handle, std::shared_ptr<Object>> &all() const
	{
		return objects;
	}

      private:
	enum { STEP = 16 };
	uintptr_t next;
	std::map<Handle, std::shared_ptr<Object>> objects;
};

} // namespace twin

#endif
