/* What the whole process and the machine have used so far, from /proc. */
#ifndef MLBENCH_MEASURE_PROCESS_USAGE_H
#define MLBENCH_MEASURE_PROCESS_USAGE_H

#include <stdint.h>

/* Cumulative; NAN: this node does not tell. */
struct process_usage {
	double cpu_seconds;     /* of this process */
	double disk_bytes;      /* fetched from storage for it (/proc/self/io read_bytes) */
	double machine_seconds; /* CPU time of everybody on the machine (/proc/stat) */
	double steal_seconds;   /* of all its cores: taken by the hypervisor */
	double core_seconds;    /* of all its cores: whatever they did */
	double resident_bytes;
	double file_bytes; /* of resident_bytes: mapped files and shared memory */
	/* malloc's: in use, and free inside its arenas; NAN where another allocator is in its place */
	double heap_used_bytes, heap_free_bytes;
};

/* Any thread; some 100 us. */
void process_usage_read(struct process_usage *usage);

/* The least limit on memory that this process is under: of its cgroups, else the machine's. */
uint64_t process_memory_limit(void);

#endif
