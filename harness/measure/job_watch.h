/* A job of somebody else, watched from outside: the processes below one, their threads, and what they wait for, from
 * /proc alone.  Nothing is stopped, traced, signalled or written to.
 *
 * Five kinds of looks, each at its own pace: who is there (CENSUS), who has a child that is new (BIRTHS), what the kernel has
 * counted (COUNTS), what each thread does at this moment (STATES) and which files are open (FILES).  States and files are samples: their shares are estimates
 * with as many looks as are told.  CPU time, run-queue wait, bytes and faults are the kernel's own counts.
 *
 * The watch has a share of a core.  A job of many processes is looked at in slices: in each those that have several children,
 * which trainers and launchers are, and as many of the others as the time allows, in turn.  Threads that did not run between
 * two looks at the counts are taken to wait where they waited.
 *
 * Each process is a descriptor of its /proc folder, which stays that process's when its number is used again.  All tables
 * have fixed bounds; what finds no room is counted.  Where workers come and go until a table is full, ended ones of one parent
 * and name become one.  Of files there is only what kind they are, how large and how deep in
 * folders: no name is kept.  Files are never opened, and their sizes are asked for without asking a server, so that
 * a dead mount holds nothing up.
 *
 * One thread at a time. */
#ifndef MLBENCH_MEASURE_JOB_WATCH_H
#define MLBENCH_MEASURE_JOB_WATCH_H

#include "harness/base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JOB_PROCESSES_MAX = 256,
	JOB_THREADS_MAX = 4096,
	JOB_FUTEXES_MAX = 16,       /* of one process */
	JOB_CPUS_MAX = 1024,        /* that affinity is known of */
	JOB_PIPES_MAX = 1024,       /* of one process: pipes and sockets that it holds */
	JOB_DESCRIPTORS_MAX = 2048, /* of one process: looked at */
	JOB_FILES_MAX = 4096,       /* told apart */
	JOB_GROUPS_MAX = 32,        /* kinds of files */
	JOB_SERIES_MAX = 1024, /* looks at counts; where there are more every second is dropped */
	JOB_LIVES_MAX = 4096,  /* processes that came and went */
	JOB_TRACKS_MAX = 9, /* processes that have a track of their own, and one for the others */
	JOB_BINS_MAX = 512, /* of a track; where the watch lasts for longer two become one */
	JOB_NAME_BYTES = 32,
	JOB_WHY_BYTES = 128,
};

/* What a thread does at a moment: by the call that it is in and, of a lock, by that call's arguments. */
enum job_act {
	JOB_RUNS,        /* on a core, or waiting for one */
	JOB_WAITS_READ,  /* in a call that reads a file or looks one up */
	JOB_WAITS_WRITE, /* in one that writes a file or changes a folder */
	JOB_WAITS_SYNC,  /* until written bytes are on the device: fsync */
	JOB_WAITS_FAULT, /* in no call, and held (D): a page of a mapped file, of swap, or memory that is short */
	JOB_WAITS_HELD,      /* held (D) in another call */
	JOB_WAITS_INPUT,     /* reads a pipe, or a socket of this node */
	JOB_WAITS_OUTPUT,    /* writes to one */
	JOB_WAITS_NETWORK,   /* reads or writes any other socket */
	JOB_WAITS_POLL,      /* for any of several descriptors */
	JOB_WAITS_LOCK,      /* a mutex that another thread holds */
	JOB_WAITS_FILE_LOCK, /* flock, fcntl */
	JOB_WAITS_SEMAPHORE, /* one that processes share, as locks and queues of Python's multiprocessing have */
	JOB_WAITS_CONDITION, /* until a thread of its process wakes it: conditions, and Python's locks */
	JOB_WAITS_TURN, /* at one with a time-out where others of its process wait as well: Python's GIL */
	JOB_WAITS_TIME, /* sleeps for a time of its own choice */
	JOB_WAITS_CHILD,
	JOB_WAITS_RING,   /* io_uring_enter, io_getevents */
	JOB_WAITS_DEVICE, /* ioctl */
	JOB_STOPPED,
	JOB_WAITS_OTHER, /* elsewhere, or it may not be seen */
	JOB_ACTS
};
const char *job_act_name(enum job_act act); /* "runs", "read", "input", ... */

struct job_wait {
	enum job_act act;
	uint64_t futex; /* where it waits in its memory, in steps of 8 bytes; 0: at no futex */
	bool timed;     /* with a time-out, after which it looks again */
};

/* Since the process or the thread began; NAN: not told. */
enum job_count {
	JOB_CPU_S,
	JOB_USER_S,   /* of a process; of threads NAN */
	JOB_QUEUE_S,  /* ready to run, and no core free */
	JOB_BLKIO_S,  /* blocked for block I/O, by delay accounting */
	JOB_MINOR,    /* page faults without I/O */
	JOB_MAJOR,    /* with I/O */
	JOB_RESIDENT, /* bytes, now */
	JOB_READ,     /* bytes through read calls: files, pipes, sockets */
	JOB_WRITTEN,
	JOB_READ_CALLS,
	JOB_WRITE_CALLS,
	JOB_DISK_READ, /* bytes that came from a block device or a network file system's server */
	JOB_DISK_WRITTEN,
	JOB_CHILD_CPU_S, /* of children that ended, and of theirs; of threads their process's */
	JOB_YIELDED,     /* of a thread: times that it left its core to wait */
	JOB_PREEMPTED,   /* that its core was taken from it */
	JOB_COUNTS
};

struct job_thread {
	int32_t tid;
	uint32_t process; /* index */
	char name[JOB_NAME_BYTES];
	double start_ticks;
	double first_s, last_s; /* of the watch: when it was seen */
	double first[JOB_COUNTS],
		last[JOB_COUNTS]; /* as of then; a thread that began meanwhile has 0 as its first */
	uint32_t looks[JOB_ACTS];
	uint32_t held; /* of these: in uninterruptible sleep (D) */
	bool gone;
	bool sampled; /* job_sampler.h's own: it has an event of it */
	/* The futex that it waited at most often, if it was at one in more than half of its waits there; see job_futexes. */
	uint64_t futex;
	uint32_t futex_votes;
	/* The watch's own: the next thread of its process, index + 1; what it did when it was last looked at; and that it has not
	 * run since. */
	uint32_t next;
	struct job_wait wait;
	bool act_known, dormant;
	bool quiet; /* it runs so seldom that it is not asked in each look */
};

/* A pipe or a socket that a process holds, by the kernel's number. */
struct job_pipe {
	uint64_t number; /* ascending in a process */
	uint64_t
		peer; /* of a socket: the number of the other end, if the job has it; 0: not known */
	bool socket, reads, writes; /* what it was opened for */
	bool network;               /* a socket that is not of this node's alone */
	uint32_t read_looks,
		write_looks; /* looks that found a thread waiting in a read, a write of it */
};

/* A place in a process's memory where its threads wait: the rarest give way where there are more. */
struct job_futex {
	uint64_t address;      /* in steps of 8 bytes: a condition uses two words in turn */
	uint32_t waits, timed; /* threads that looks found there; of these with a time-out */
	uint32_t looks;        /* looks that found any there */
	uint32_t ran;          /* threads of the process that ran in these looks, in all */
	uint32_t most, now;    /* threads at once; the watch's own: in this look */
	double squares;        /* of the threads at once, summed over the looks */
	int32_t tid;           /* of a thread that waited there, the first seen */
	bool several;          /* others did, too */
};

struct job_process {
	int32_t pid, parent;
	char name[JOB_NAME_BYTES];
	double start_ticks;
	double stack; /* address where its stack begins: a fork has that of its parent, and its code too; 0: not told */
	double first_s, last_s;
	double first[JOB_COUNTS], last[JOB_COUNTS];
	double peak_resident;
	/* Looks at all threads at once: what the process does, by the busiest of its threads, or by its first where all wait. */
	uint32_t looks[JOB_ACTS];
	uint32_t look_count;
	uint32_t timed_semaphores; /* waits at semaphores that were with a time-out */
	uint32_t runnable;         /* threads that ran or were ready to, in all these looks */
	struct job_futex futexes[JOB_FUTEXES_MAX];
	uint64_t cpus[JOB_CPUS_MAX / 64]; /* bits: where it may run by affinity; none: not known */
	bool vague; /* its threads' calls may not be seen: which kind of wait is told by the kernel's function (wchan) */
	uint32_t file_looks; /* in FILES looks: it had a data file open for reading */
	uint32_t open_looks; /* FILES looks */
	uint32_t threads_most;
	struct job_pipe pipes[JOB_PIPES_MAX];
	size_t pipe_count;
	bool device;        /* it has a GPU's device file open */
	uint64_t devices;   /* bits: which of /dev/nvidia0 to 63 */
	bool shared_memory; /* a file in /dev/shm, or a memfd */
	bool gone, zombie;
	char unknown
		[JOB_WHY_BYTES]; /* why what follows is not known: counts of bytes, open files, waits; "" */
	uint32_t
		stands_for; /* ended processes that this one stands for, itself among them; 0: it is one */
	double begun_s,
		ended_s; /* of the watch; begun_s < 0: before it.  ended_s: where it is gone */
	int32_t rank,
		world; /* by its launcher's environment: 1 + its rank, and how many; 0: not told */
	uint32_t life; /* index among the lives + 1; 0: no room */
	/* The watch's own: descriptor of /proc/PID, -1; its first thread, index + 1; children that were found; descriptors that
	 * were found to be no files, and are not asked again while they stay. */
	int folder;
	uint32_t first_thread;
	uint32_t children;
	uint8_t settled[JOB_DESCRIPTORS_MAX / 8];
};

/* Files that processes had open, of one kind. */
struct job_group {
	char system[JOB_NAME_BYTES]; /* file system: "ext4", "nfs4", "fuse.sshfs" */
	char kind[8];                /* "jpg", "tar"; "other" */
	unsigned depth;              /* folders below the root of the name space */
	bool written;                /* opened for writing */
	uint32_t files;              /* told apart */
	uint32_t looks;              /* found open, each process and look */
	double bytes, least, most;   /* sum of sizes, smallest, largest */
	double inverse;              /* sum of 1 / size, of those of 1 byte or more */
};

struct job_moment {
	double t_s, cpu_s, read_bytes, disk_bytes,
		resident; /* of all processes; sums since the watch began, but for resident */
};

/* A process from its begin to its end.  It is kept when another has its place in the table of processes. */
struct job_lifespan {
	int32_t pid, parent;
	char name[JOB_NAME_BYTES];
	double begun_s, ended_s; /* as of a process; ended_s NAN: it lives */
	bool forked;             /* it runs its parent's program */
};

/* What a process was found in, over time. */
struct job_track {
	uint32_t process; /* index; of the first track: none, it is of all others */
	int32_t pid;
	uint16_t looks[JOB_BINS_MAX][JOB_ACTS];
};

struct job_record {
	int32_t pid;
	double begun_utc; /* seconds since the epoch */
	double watched_s;
	double ended_s; /* of the watch: when the process that was asked for ended; NAN: it goes on */
	double own_cpu_s;                       /* of the watching process */
	uint32_t census, counts, states, files; /* looks, at all processes or at a slice of them */
	struct job_process *processes;
	size_t process_count;
	struct job_thread *threads;
	size_t thread_count;
	struct job_group groups[JOB_GROUPS_MAX];
	size_t group_count;
	struct job_moment *moments;
	size_t moment_count;
	struct job_lifespan *lives; /* in the order in which they were found */
	size_t life_count;
	struct job_track *tracks;
	size_t track_count;
	double bin_s;     /* of the tracks: how long a bin is; 0: there are none */
	uint64_t no_room; /* processes, threads, files and pipes that found no room in the tables */
	/* The node meanwhile, everybody's; NAN: not told. */
	double node_cores, node_busy_cores;
	/* What the process that was asked for may use: CPUs by affinity, cores by the tightest CPU quota of its control groups
	 * (INFINITY: none), and the share of the quota's periods in which it was used up.  NAN: not told. */
	double allowed_cpus, quota_cores, throttled;
	/* Bytes that came back from a device though they had been in memory (refaults): of files, of swap.  Of its control group
	 * where that has a limit of memory, else of the node; memory_limit: that limit, INFINITY: none.  NAN: not told. */
	double refault_file, refault_swap, memory_limit;
	double memory_left;   /* bytes, at the end; NAN: not told */
	const char *no_blkio; /* why JOB_BLKIO_S is not known; NULL: it is */
};

struct job_sampler;

struct job_watch_options {
	const char *root; /* in front of /proc; "" but in tests */
	int32_t pid;
	double most_share;           /* of a core, that the watching may use */
	struct job_sampler *sampler; /* that follows its threads (job_sampler.h); NULL: none */
};

struct job_watch;

/* -ESRCH: there is no such process, it is a zombie, or a thread of the kernel. */
int job_watch_open(
	struct job_watch **out, const struct job_watch_options *options, struct error *err);
void job_watch_close(struct job_watch *watch); /* NULL is fine */

enum job_look { JOB_CENSUS = 1, JOB_COUNT = 2, JOB_STATES = 4, JOB_FILES = 8, JOB_BIRTHS = 16 };
/* Looks, at a moment of the watch: seconds since it began. */
void job_watch_look(struct job_watch *watch, unsigned looks, double t_s);

/* Looks at all of them and, within a bound, at what they have open, before the watch goes on at its own pace. */
void job_watch_begin(struct job_watch *watch);

/* Looks for so long, at its own pace.  Ends early when the process ends, or *stop (may be NULL). */
void job_watch_for(struct job_watch *watch, double seconds, const atomic_bool *stop);

/* The same for a caller that has other things to wait for: the looks that are due by now.  When to call again, in seconds
 * of the watch; INFINITY: the process has ended. */
double job_watch_turn(struct job_watch *watch);
double job_watch_now(const struct job_watch *watch); /* s since it began */
/* The last look at the counts, now. */
void job_watch_finish(struct job_watch *watch);

/* Bytes that its processes have resident now; pages that several share count in parts (PSS), or whole where that is not to be
 * had.  Some ms a process, in which that one maps no memory: not for a job of somebody else.  NAN: not known. */
double job_watch_memory(const struct job_watch *watch);

/* Until the watch is closed. */
const struct job_record *job_watch_record(const struct job_watch *watch);

/* --- of a record ------------------------------------------------------------------------------ */

/* What a count grew by; NAN: not known. */
double job_grown(
	const double first[JOB_COUNTS], const double last[JOB_COUNTS], enum job_count count);
/* Seconds that it was seen for. */
double job_process_seconds(const struct job_process *process);
/* Run-queue wait, s: of a thread, at most the time in which it was not on a core; of a process's threads together; of the one of
 * them that waited longest, which is what a share of the process's time can be told of.  NAN: not known.  process: an index. */
double job_thread_queue_s(const struct job_thread *thread);
double job_process_queue_s(const struct job_record *record, size_t process);
double job_process_longest_queue_s(const struct job_record *record, size_t process);
/* Looks that found it in a call on a file, its pages and io_uring included; at a lock or a condition of any kind. */
uint32_t job_looks_at_files(const uint32_t looks[JOB_ACTS]);
uint32_t job_looks_at_locks(const uint32_t looks[JOB_ACTS]);
/* CPUs that its affinity leaves; NAN: not known. */
double job_allowed_cpus(const struct job_process *process);
/* Share of the looks; NAN: none. */
double job_share(const struct job_process *process, enum job_act act);

#endif
