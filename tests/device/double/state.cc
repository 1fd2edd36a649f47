/* Settings, injected faults, complaints and errors of the test double. */
#include "tests/device/double/state.h"

#include "tests/device/double/double.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <vector>

namespace twin
{

enum { SPIN_NS = 60 * 1000, DEFAULT_DRIVER = 13000, DEFAULT_CAPABILITY = 90, DEFAULT_KERNELS = 4 };

settings set;
std::atomic<long> live;

namespace
{

struct injection {
	std::string name;
	unsigned call;
};

/* Never destroyed: streams' threads may outlive main. */
struct shared {
	std::mutex lock;
	std::vector<injection> injections;
	std::map<std::string, unsigned> calls;
	std::string complaint;
	unsigned complaints = 0;
};
shared &state()
{
	static shared *const instance = new shared;
	return *instance;
}

std::atomic<int> sticky_errors[DEVICES_MAX];
thread_local int device_of_thread;
thread_local cudaError_t last_error;

double number(const char *name, double otherwise)
{
	const char *text = getenv(name);
	return text && *text ? strtod(text, nullptr) : otherwise;
}

void read_injections(const char *text)
{
	state().injections.clear();
	while (text && *text) {
		const char *end = strchr(text, ',');
		const std::string one = end ? std::string(text, end) : std::string(text);
		const size_t colon = one.find(':');
		const unsigned call =
			colon == std::string::npos
				? 1
				: (unsigned)strtoul(one.c_str() + colon + 1, nullptr, 10);
		state().injections.push_back({one.substr(0, colon), call});
		text = end ? end + 1 : nullptr;
	}
}

/* "2,0": two of the node's devices, in this order; what follows one that is not there is not seen, as documented. */
void show_devices(const char *list)
{
	const int all = set.devices;
	for (int i = 0; i < all; i++)
		set.seen[i] = i;
	if (!list)
		return;
	for (set.devices = 0; set.devices < all && *list >= '0' && *list <= '9';) {
		char *end;
		const long one = strtol(list, &end, 10);
		if (one >= all)
			return;
		set.seen[set.devices++] = (int)one;
		list = *end == ',' ? end + 1 : end;
	}
}

void configure()
{
	const double gibibyte = 1024.0 * 1024 * 1024;
	const std::lock_guard<std::mutex> guard(state().lock);
	set.devices = (int)number("MLBENCH_DOUBLE_DEVICES", 1);
	if (set.devices > DEVICES_MAX)
		set.devices = DEVICES_MAX;
	show_devices(getenv("CUDA_VISIBLE_DEVICES"));
	set.driver = (int)number("MLBENCH_DOUBLE_DRIVER", DEFAULT_DRIVER);
	set.capability = (int)number("MLBENCH_DOUBLE_CAPABILITY", DEFAULT_CAPABILITY);
	set.memory = (size_t)number("MLBENCH_DOUBLE_MEMORY", 4 * gibibyte);
	set.h2d = number("MLBENCH_DOUBLE_H2D", 0);
	set.d2h = number("MLBENCH_DOUBLE_D2H", 0);
	set.pageable = number("MLBENCH_DOUBLE_PAGEABLE", 0);
	set.kernel_ns = (uint64_t)number("MLBENCH_DOUBLE_KERNEL_NS", 0);
	set.launch_ns = (uint64_t)number("MLBENCH_DOUBLE_LAUNCH_NS", 0);
	set.no_epilogue = number("MLBENCH_DOUBLE_NO_EPILOGUE", 0) != 0;
	set.aligned = number("MLBENCH_DOUBLE_ALIGNED", 0) != 0;
	set.kernels = (int)number("MLBENCH_DOUBLE_KERNELS", DEFAULT_KERNELS);
	set.forbidden =
		(cudaError_t)number("MLBENCH_DOUBLE_CAPTURE", cudaErrorStreamCaptureUnsupported);
	read_injections(getenv("MLBENCH_DOUBLE_FAIL"));
	state().calls.clear();
	state().complaint.clear();
	state().complaints = 0;
	for (std::atomic<int> &error : sticky_errors)
		error = cudaSuccess;
}

__attribute__((constructor)) void begin()
{
	configure();
}

} // namespace

uint64_t now_ns()
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void until_ns(uint64_t deadline)
{
	const uint64_t now = now_ns();
	if (now + SPIN_NS < deadline) {
		const uint64_t wake = deadline - SPIN_NS;
		const struct timespec then = {
			(time_t)(wake / 1000000000), (long)(wake % 1000000000)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, nullptr);
	}
	while (now_ns() < deadline)
		;
}

void busy_ns(uint64_t duration)
{
	const uint64_t end = now_ns() + duration;
	while (duration && now_ns() < end)
		;
}

void complain(const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	(void)fprintf(stderr, "test double: %s\n", text);
	const std::lock_guard<std::mutex> guard(state().lock);
	state().complaint = text;
	state().complaints++;
}

bool injected(const char *name)
{
	const std::lock_guard<std::mutex> guard(state().lock);
	const unsigned call = ++state().calls[name];
	for (const injection &one : state().injections)
		if (one.name == name && one.call == call)
			return true;
	return false;
}

int &current_device()
{
	return device_of_thread;
}

cudaError_t sticky(int device)
{
	return (cudaError_t)sticky_errors[device].load();
}

void fault(int device, cudaError_t error)
{
	int none = cudaSuccess;
	sticky_errors[device].compare_exchange_strong(none, error);
}

cudaError_t keep_last(cudaError_t error)
{
	if (error != cudaSuccess)
		last_error = error;
	return error;
}

cudaError_t injected_error(const char *name)
{
	if (strstr(name, "Malloc") || strstr(name, "Alloc"))
		return cudaErrorMemoryAllocation;
	if (strstr(name, "Launch"))
		return cudaErrorLaunchOutOfResources;
	if (strstr(name, "Count"))
		return cudaErrorNoDevice;
	return cudaErrorUnknown;
}

cudaError_t enter(const char *name, frame kind)
{
	if (injected(name))
		return injected_error(name);
	if (kind == frame::always)
		return cudaSuccess;
	if (set.driver < CUDART_VERSION / 1000 * 1000)
		return cudaErrorInsufficientDriver;
	if (set.devices == 0)
		return cudaErrorNoDevice;
	if (kind == frame::any && capture_forbids(name))
		return set.forbidden;
	return sticky(current_device());
}

} // namespace twin

void double_configure(void)
{
	twin::configure();
	twin::last_error = cudaSuccess;
}

const char *double_complaint(void)
{
	static thread_local std::string copy;
	const std::lock_guard<std::mutex> guard(twin::state().lock);
	copy = twin::state().complaint;
	return copy.c_str();
}

unsigned double_complaints(void)
{
	const std::lock_guard<std::mutex> guard(twin::state().lock);
	return twin::state().complaints;
}

unsigned double_calls(const char *function)
{
	const std::lock_guard<std::mutex> guard(twin::state().lock);
	return twin::state().calls[function];
}

size_t double_live(void)
{
	return (size_t)twin::live.load();
}

extern "C" cudaError_t cudaGetLastError(void)
{
	const cudaError_t error = twin::last_error;
	twin::last_error = twin::sticky(twin::current_device()); /* a fault of the device stays */
	return error != cudaSuccess ? error : twin::last_error;
}

extern "C" cudaError_t cudaPeekAtLastError(void)
{
	return twin::last_error != cudaSuccess ? twin::last_error
					       : twin::sticky(twin::current_device());
}
