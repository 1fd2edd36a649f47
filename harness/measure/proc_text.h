/* Texts of /proc and /sys: reading them, and the pure functions that take facts out of them. */
#ifndef MLBENCH_MEASURE_PROC_TEXT_H
#define MLBENCH_MEASURE_PROC_TEXT_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- texts of the kernel ---------------------------------------------------------------------- */

/* A whole text, NUL-terminated, NULL when it cannot be read; free it. */
char *proc_text(const char *path);

/* What a file below a folder's descriptor has, as far as there is room; format: its path.  0, or -errno: of a process that has ended
 * -ESRCH or -ENOENT. */
int proc_text_at(int folder, char *text, size_t room, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The line behind this one; NULL: none follows. */
const char *text_next_line(const char *line);
/* Undoes \040 and the like, in place. */
void text_unescape(char *text);

enum { MOUNT_TEXT_BYTES = 512 };

/* One line of /proc/self/mountinfo (proc(5)), its octal escapes undone. */
struct mount_entry {
	unsigned major, minor;
	char root[MOUNT_TEXT_BYTES], point[MOUNT_TEXT_BYTES], options[MOUNT_TEXT_BYTES];
	char type[64], source[MOUNT_TEXT_BYTES], super_options[MOUNT_TEXT_BYTES];
};
bool parse_mount(const char *line, struct mount_entry *entry);
/* Of "rw,vers=4.2,addr=10.0.0.2"; false: it has none of that name, or no room for it. */
bool parse_mount_option(const char *options, const char *name, char *out, size_t room);
/* The mount that an absolute path lies on: the longest mount point above it, the last of equals. */
bool parse_mount_of(const char *mountinfo, const char *path, struct mount_entry *entry);

/* Value after "Key:" at the start of a line ("MemTotal:  24 kB" -> "24 kB"); false when there is none. */
bool parse_field(const char *text, const char *key, char *out, size_t room);
/* Such a value as a number, "kB" counted in. */
bool parse_field_number(const char *text, const char *key, double *value);
/* The number behind a word at the start of a line ("nr_periods 12"); NAN: there is none. */
double parse_number_after(const char *text, const char *word);
/* Whether a space-separated list has the word. */
bool parse_has_word(const char *list, const char *word);

/* cgroup v2 "max 100000" or "150000 100000": cores; INFINITY when there is no limit; NAN: malformed. */
double parse_cpu_max(const char *text);
/* cgroup v2 "max" or bytes; v1 has a huge number for none: INFINITY then; NAN: malformed. */
double parse_memory_max(const char *text);
/* The path of a controller in /proc/self/cgroup; controller "" is the v2 line. */
bool parse_cgroup_path(const char *text, const char *controller, char *out, size_t room);

/* "none [mq-deadline] kyber" -> "mq-deadline". */
void parse_bracketed(const char *text, char *out, size_t room);

/* CPU numbers below `most` as ranges, "0-3,8"; of a set of `size` bytes (CPU_ALLOC_SIZE). */
void format_cpu_set(const cpu_set_t *set, size_t size, size_t most, char *text, size_t room);

/* Totals of /proc/stat's "cpu" line, in ticks. */
struct cpu_ticks {
	double busy, idle, steal; /* busy: user, nice, system, irq, softirq */
};
bool parse_cpu_ticks(const char *text, struct cpu_ticks *ticks);
/* The same of the text of /proc/stat for these cores alone; false: it has none of them. */
bool parse_core_ticks(const char *text, const cpu_set_t *cores, struct cpu_ticks *ticks);
/* Of the node since it started; root: in front of /proc, "" but in tests.  False: /proc/stat does not say. */
bool proc_cpu_ticks(const char *root, struct cpu_ticks *ticks);

/* The mount of path, or of its nearest existing parent; 0 or -errno.  -EREMOTE: of a server's address there is none. */
int proc_mount_of(const char *path, struct mount_entry *entry);
/* What its failure means. */
const char *proc_mount_why(int code);

/* --- the process and the machine -------------------------------------------------------------- */

/* What both have used so far, from /proc.  Cumulative; NAN: this node does not tell. */
struct process_usage {
	double cpu_seconds;    /* of this process */
	double system_seconds; /* of those, in the kernel */
	double switches; /* times that one of its threads lost or gave up its core and wanted to go on */
	double disk_bytes; /* fetched from storage for it (/proc/self/io read_bytes) */
	/* Of the cores that were asked about (/proc/stat): CPU time of everybody, what the hypervisor took, and all there was. */
	double machine_seconds, steal_seconds, core_seconds;
	double elsewhere_seconds; /* CPU time of everybody on the node's other cores */
	double resident_bytes;
	double file_bytes; /* of resident_bytes: mapped files and shared memory */
	/* malloc's: in use, and free inside its arenas; NAN where another allocator is in its place */
	double heap_used_bytes, heap_free_bytes;
};

/* CPUs that this process could run on if no affinity mask held it: those of the node that its cpusets allow.  0: not known.
 * While a smaller node is emulated by a mask (`emulated` CPUs; 0: no longer), that has no more. */
unsigned cpus_reachable(void);
void cpus_emulate(unsigned emulated);

/* Any thread; some 100 us.  cores: that the machine's times are of; NULL: all of the node. */
void process_usage_read(struct process_usage *usage, const cpu_set_t *cores);

/* The least limit on memory that this process is under: of its cgroups, else the machine's. */
uint64_t process_memory_limit(void);

/* --- delay accounting of a thread ------------------------------------------------------------- */

/* Time that a thread was blocked for block I/O, by the kernel's delay accounting (/proc/PID/task/TID/stat,
 * field 42, in clock ticks), which is off by default since Linux 5.14.
 *
 * A trap: since Linux 6.6 a thread that waits at an io_uring with requests pending counts as blocked for
 * I/O, whatever the requests are and whoever they wait for.  Of a reader on io_uring this is no evidence
 * of a slow disk; of threads that call the kernel for their own pages or files it is. */

/* NULL when this node accounts for it, else why not: a static string. */
const char *io_delay_unavailable(void);

/* Of the calling thread: a file for io_delay_read, or -1. */
int io_delay_open(void);
/* Any thread; up to now, in ns.  False when the thread has ended. */
bool io_delay_read(int file, uint64_t *ns);

/* The field of such a line, in ticks; false when it has none. */
bool io_delay_parse(const char *line, uint64_t *ticks);

#endif
