/* Calls, locks and the kernel's functions, each to what a thread waits for. */
#include "harness/measure/job_acts.h"

#include "harness/base/array.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { CALL_ARGUMENTS = 6 };
static const uint64_t FUTEX_GRAIN = 8;

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

const char *job_act_name(enum job_act act)
{
	static const char *const names[JOB_ACTS] = {
		[JOB_RUNS] = "runs",
		[JOB_WAITS_READ] = "read",
		[JOB_WAITS_WRITE] = "write",
		[JOB_WAITS_SYNC] = "sync",
		[JOB_WAITS_FAULT] = "fault",
		[JOB_WAITS_HELD] = "held",
		[JOB_WAITS_INPUT] = "input",
		[JOB_WAITS_OUTPUT] = "output",
		[JOB_WAITS_NETWORK] = "network",
		[JOB_WAITS_POLL] = "poll",
		[JOB_WAITS_LOCK] = "lock",
		[JOB_WAITS_FILE_LOCK] = "file_lock",
		[JOB_WAITS_SEMAPHORE] = "semaphore",
		[JOB_WAITS_CONDITION] = "condition",
		[JOB_WAITS_TURN] = "turn",
		[JOB_WAITS_TIME] = "time",
		[JOB_WAITS_CHILD] = "child",
		[JOB_WAITS_RING] = "ring",
		[JOB_WAITS_DEVICE] = "device",
		[JOB_STOPPED] = "stopped",
		[JOB_WAITS_OTHER] = "other",
	};
	return names[act];
}

/* What a thread expects to find at a futex says what it is, in glibc and in Rust: 2, a mutex that is held and waited for (-1 in
 * libgomp); 0, a semaphore or a condition.  A thread that joins another expects that one's number. */
static struct job_wait job_wait_at_futex(const unsigned long arguments[CALL_ARGUMENTS])
{
	static const uint32_t HELD_AND_WAITED_FOR = 2, HELD_IN_LIBGOMP = UINT32_MAX;
	const unsigned long operation = arguments[1] & (unsigned)FUTEX_CMD_MASK;
	const bool private = arguments[1] & FUTEX_PRIVATE_FLAG;
	const uint32_t expected = (uint32_t)arguments[2];
	const bool owned = operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2 ||
			   expected == HELD_AND_WAITED_FOR || expected == HELD_IN_LIBGOMP;
	return (struct job_wait){.act = owned                       ? JOB_WAITS_LOCK
					: !private && expected == 0 ? JOB_WAITS_SEMAPHORE
								    : JOB_WAITS_CONDITION,
		.futex = arguments[0] / FUTEX_GRAIN * FUTEX_GRAIN,
		.timed = arguments[3] != 0};
}

/* The number of a system call is that of this machine's. */
static enum job_act job_act_of_call(struct job_descriptors *descriptors,
	struct job_process *process, long call, const unsigned long arguments[CALL_ARGUMENTS],
	bool held)
{
	switch (call) {
	case SYS_read:
	case SYS_readv:
	case SYS_pread64:
	case SYS_preadv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_accept4:
	case SYS_getdents64:
	case SYS_fstat:
		return job_descriptors_call(descriptors, process, arguments[0], false);
	case SYS_write:
	case SYS_writev:
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendfile:
	case SYS_ftruncate:
	case SYS_fallocate:
		return job_descriptors_call(descriptors, process, arguments[0], true);
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_sync_file_range:
	case SYS_syncfs:
	case SYS_msync:
	case SYS_sync:
		return JOB_WAITS_SYNC;
	case SYS_openat:
	case SYS_statx:
	case SYS_newfstatat:
	case SYS_close:
	case SYS_faccessat:
	case SYS_readlinkat:
	case SYS_lseek:
#ifdef SYS_open
	case SYS_open:
	case SYS_stat:
	case SYS_lstat:
	case SYS_access:
	case SYS_readlink:
#endif
		return JOB_WAITS_READ;
	case SYS_unlinkat:
	case SYS_renameat2:
	case SYS_mkdirat:
#ifdef SYS_unlink
	case SYS_unlink:
	case SYS_rename:
	case SYS_mkdir:
#endif
		return JOB_WAITS_WRITE;
	case SYS_connect:
		return JOB_WAITS_NETWORK;
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_epoll_pwait:
#ifdef SYS_poll
	case SYS_poll:
	case SYS_select:
	case SYS_epoll_wait:
#endif
		return JOB_WAITS_POLL;
	case SYS_flock:
		return JOB_WAITS_FILE_LOCK;
	case SYS_fcntl:
		return arguments[1] == F_SETLKW || arguments[1] == F_OFD_SETLKW
			       ? JOB_WAITS_FILE_LOCK
			       : JOB_WAITS_OTHER;
	case SYS_semtimedop:
#ifdef SYS_semop
	case SYS_semop:
#endif
		return JOB_WAITS_SEMAPHORE;
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return JOB_WAITS_TIME;
	case SYS_wait4:
	case SYS_waitid:
		return JOB_WAITS_CHILD;
	case SYS_io_uring_enter:
	case SYS_io_getevents:
		return JOB_WAITS_RING;
	case SYS_ioctl:
		return JOB_WAITS_DEVICE;
	default:
		return held ? JOB_WAITS_HELD : JOB_WAITS_OTHER;
	}
}

/* "running", "NUMBER 0xARGUMENT ...", or "-1 ..." outside of any call. */
struct job_wait job_wait_of_call(struct job_descriptors *descriptors, struct job_process *process,
	const char *text, bool held)
{
	char *end;
	unsigned long arguments[CALL_ARGUMENTS] = {0};
	const long call = strtol(text, &end, 10);
	/* "running": it woke up after its state was read, which counts. */
	if (end == text)
		return (struct job_wait){.act = held ? JOB_WAITS_HELD : JOB_WAITS_OTHER};
	if (call < 0)
		return (struct job_wait){.act = held ? JOB_WAITS_FAULT : JOB_WAITS_OTHER};
	for (int i = 0; i < CALL_ARGUMENTS; i++)
		arguments[i] = strtoul(end, &end, 16);
	if (call == SYS_futex)
		return job_wait_at_futex(arguments);
	return (struct job_wait){
		.act = job_act_of_call(descriptors, process, call, arguments, held)};
}

enum job_act job_act_of_function(const char *function, bool held)
{
	/* First match wins. */
	static const struct {
		const char *part;
		enum job_act act;
	} functions[] = {
		{"futex", JOB_WAITS_CONDITION},
		{"pipe_read", JOB_WAITS_INPUT},
		{"pipe_write", JOB_WAITS_OUTPUT},
		{"unix_stream_read", JOB_WAITS_INPUT},
		{"unix_stream_data_wait", JOB_WAITS_INPUT},
		{"sock_alloc_send", JOB_WAITS_OUTPUT},
		{"sk_wait_data", JOB_WAITS_NETWORK},
		{"sk_stream_wait", JOB_WAITS_NETWORK},
		{"tcp_", JOB_WAITS_NETWORK},
		{"inet_csk_", JOB_WAITS_NETWORK},
		{"ep_poll", JOB_WAITS_POLL},
		{"epoll_wait", JOB_WAITS_POLL},
		{"poll_schedule", JOB_WAITS_POLL},
		{"do_sys_poll", JOB_WAITS_POLL},
		{"do_select", JOB_WAITS_POLL},
		{"nanosleep", JOB_WAITS_TIME},
		{"do_wait", JOB_WAITS_CHILD},
		{"lock_inode_wait", JOB_WAITS_FILE_LOCK},
		{"fcntl_setlk", JOB_WAITS_FILE_LOCK},
		{"do_lock_file_wait", JOB_WAITS_FILE_LOCK},
		{"semtimedop", JOB_WAITS_SEMAPHORE},
		{"io_cqring_wait", JOB_WAITS_RING},
		{"log_wait_commit", JOB_WAITS_SYNC},
		{"log_force", JOB_WAITS_SYNC},
		{"fdatawait", JOB_WAITS_SYNC},
		{"issue_flush", JOB_WAITS_SYNC},
		{"balance_dirty_pages", JOB_WAITS_WRITE},
		{"reclaim", JOB_WAITS_FAULT},
		{"mem_cgroup_", JOB_WAITS_FAULT},
		{"folio_wait", JOB_WAITS_READ},
		{"io_schedule", JOB_WAITS_READ},
		{"request_wait_answer", JOB_WAITS_READ}, /* FUSE */
		{"rpc_wait", JOB_WAITS_READ},            /* NFS */
		{"nfs", JOB_WAITS_READ},
	};
	for (size_t i = 0; i < COUNT(functions); i++)
		if (strstr(function, functions[i].part))
			return functions[i].act;
	return held ? JOB_WAITS_HELD : JOB_WAITS_OTHER;
}
