/* Whether this process may use io_uring, and if not, which of the known obstacles it is. */
#include "workloads/source/uring.h"

#include "harness/base/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PROBE_ENTRIES = 4 };

static const char disabled_path[] = "/proc/sys/kernel/io_uring_disabled";

static const char *refusal(uint64_t disabled)
{
	if (disabled >= 2)
		return "disabled on this node (sysctl kernel.io_uring_disabled = 2)";
	if (disabled == 1)
		return "only members of kernel.io_uring_group may use it (sysctl kernel.io_uring_disabled = 1)";
	return "io_uring_setup is forbidden to this process: a seccomp filter or security module, as "
	       "containers have (EPERM)";
}

void uring_explain(int code, uint64_t disabled, char *why, size_t room)
{
	switch (code) {
	case -ENOSYS:
		(void)snprintf(why, room,
			"the kernel has no io_uring, or a seccomp filter hides it (ENOSYS)");
		break;
	case -EPERM:
	case -EACCES:
		(void)snprintf(why, room, "%s", refusal(disabled));
		break;
	case -ENOMEM:
		(void)snprintf(why, room,
			"no memory for a ring; on old kernels the memlock limit counts (ENOMEM)");
		break;
	default:
		(void)snprintf(why, room, "io_uring_setup: %s", strerror(-code));
	}
}

static const char *missing_operation(struct io_uring *ring)
{
	static const struct {
		int op;
		const char *name;
	} needed[] = {
		{IORING_OP_OPENAT, "openat"}, {IORING_OP_READ, "read"}, {IORING_OP_CLOSE, "close"}};
	struct io_uring_probe *const probe = io_uring_get_probe_ring(ring);
	const char *missing = NULL;
	for (size_t i = 0; i < sizeof needed / sizeof *needed && !missing; i++)
		if (!probe || !io_uring_opcode_supported(probe, needed[i].op))
			missing = needed[i].name;
	if (probe)
		io_uring_free_probe(probe);
	return missing;
}

const char *uring_unavailable(char *why, size_t room)
{
	struct io_uring_params params = {0};
	struct io_uring ring;
	const int code = io_uring_queue_init_params(PROBE_ENTRIES, &ring, &params);
	if (code) {
		uint64_t disabled = 0;
		if (files_number(disabled_path, &disabled) != 0)
			disabled = 0; /* before Linux 6.6 there is no such switch */
		uring_explain(code, disabled, why, room);
		return why;
	}
	const char *const missing = missing_operation(&ring);
	const bool timed_waits = params.features & IORING_FEAT_EXT_ARG;
	io_uring_queue_exit(&ring);
	if (missing)
		(void)snprintf(
			why, room, "the kernel's io_uring has no %s (needs Linux 5.11)", missing);
	else if (!timed_waits)
		(void)snprintf(
			why, room, "the kernel's io_uring has no timed waits (needs Linux 5.11)");
	return missing || !timed_waits ? why : NULL;
}
