/* What this node can give at best, as `mlbench probe` measured it: a node's data sheet.  Plain data,
 * cached per node.  NAN: not measured, and a line of `missing` says why.
 *
 * mlbench probe measures what the node can give at best (harness/record/ceilings.h: plain data).
 * Each subject has its probe where its work lives: harness/measure/node_probes.c,
 * workloads/source/probe_read.c, workloads/dataset/probe_decode.c, workloads/backend/probe_compute.c
 * (for a device with what the plug-in's workloads/backend/cuda/device_probe.c measures);
 * harness/command/probe_node.c has their bounds of time and size. All of them work in rounds that
 * visit every quantity once, and report medians with the least and the largest.
 *
 * - Reads go to scratch files that lose their name when they are opened, at random offsets, each
 *   block once between two evictions that residency has proved. The read-ahead is off, so that
 *   what is counted is what was fetched. The first burst of completions starts the count, and the
 *   one that is under way when the slot ends still counts, with its time: a throttle lets through
 *   some requests at once and then none for up to a tenth of a second, and a slot of 20 ms that
 *   left that pause out measured 100 times the limit. Where a control group limits reads, slots
 *   take half a second, after a burst that is not counted; bursts of 1 GB/s then end in them, too.
 *   One thread keeps the ring filled: a buffered ceiling is that of one reader thread.
 * - Reads go into huge pages where the kernel gives them, unless read.huge_pages is off; direct reads into 4 KiB pages
 *   gave a fifth of that on a virtual disk. The sheet names the pages, /proc/self/smaps says what was given, and
 *   ceilings of the other kind are compared with nothing: not with a run, nor with a baseline or fleet of accept,
 *   where 4 KiB pages are a place of their own.
 * - Before anything else reads the data set, some of its files are evicted and read, and that once more. Where a host or
 *   an array had not cached them, the first time shows what the scratch file, which was just written, does not.
 * - Decode threads are left to the kernel, as a run's are; the streams of the memory probe are
 *   pinned, because each works on the memory it touched first. cpu_scaling is by their own CPU time:
 *   what other programs or a quota take from them is no slowness of cores.
 * - A GPU's probe is part of the plug-in, which gives series; medians are made in the program.
 *   Copies from pinned memory are timed by events. Those from pageable memory happen in part
 *   inside the call, where no event sees them: the host's clock is read around the calls and the
 *   wait. A kernel's own time counts only where the device was still behind an earlier copy when
 *   all launches were done; else it would be the host's. Operands of products are random, because
 *   zeros draw less power and flatter, and results are held to sums in double. It takes a quarter
 *   of the device's free memory at most.
 * - The triad counts 3 streams with non-temporal stores; copy counts the bytes copied once.
 *
 * The data sheet is kept in $XDG_CACHE_HOME/mlbench/ceilings-HARDWARE-STATE.json
 * (harness/report/ceilings_cache.h): HARDWARE hashes machine, CPU and storage under the data (with
 * the limit of a control group, if it has one),
 * STATE hashes usable cores, kernel, and GPUs with their driver. run and sweep copy it into the
 * header of points.jsonl, so that a result is whole in itself; analysis sees that copy
 * (record.ceilings), never the cache. One that is older than 30 days, or of another STATE, is
 * taken with a warning. A verdict's storage ceiling is the best cold read of the data set's mean
 * file size, at any depth: below it with every place in flight taken, latency binds and not
 * bandwidth. */
#ifndef MLBENCH_RECORD_CEILINGS_H
#define MLBENCH_RECORD_CEILINGS_H

#include "harness/base/error.h"
#include "harness/record/measurement.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CEILING_READS_MAX = 64,
	CEILING_GEMMS_MAX = 32,
	CEILING_CORES_MAX = 16,
	CEILING_COPIES_MAX = 64,
	CEILINGS_NODE_BYTES = 64,
	CEILINGS_NAME_BYTES = 96,
};

/* Least and largest of the repeats that a median is of; NAN: not measured. */
struct ceiling_range {
	double low, high;
	uint32_t repeats;
};

struct read_ceiling {
	bool direct, cold; /* cold: evicted from the page cache before; neither: buffered, warm */
	unsigned depth;    /* requests in flight */
	double request_bytes;
	double bytes_per_s, requests_per_s; /* medians */
	double latency_ns;                  /* mean of a request */
	struct ceiling_range range;         /* of bytes_per_s */
};

struct gemm_ceiling {
	long long m, n, k;
	unsigned threads;
	double flops; /* per second */
	bool is_best; /* of the shapes tried; else a shape of the configured model */
	struct ceiling_range range;
	double efficiency;     /* flops / those of the best shape with as many threads */
	double share;          /* of the model's forward FLOPs; NAN where is_best */
	char name[NAME_BYTES]; /* layer of the model; "square" where is_best */
};

/* Decoding on so many cores at once. */
struct core_ceiling {
	unsigned cores;
	double samples_per_s;
	struct ceiling_range range;
};

/* Copies between the host's memory and a device's, one after the other on one stream. */
struct copy_ceiling {
	bool to_device;
	bool pinned; /* page-locked host memory, timed by the device; pageable: by the host, see the note */
	double bytes; /* of one copy */
	double bytes_per_s;
	struct ceiling_range range;
};

struct device_gemm_ceiling {
	char precision[NAME_BYTES]; /* "bf16" */
	long long m, n, k;
	double flops; /* per second */
	bool is_best; /* of the square shapes tried at this precision; else a shape of the configured model */
	struct ceiling_range range;
	double efficiency; /* flops / those of the best shape at this precision; NAN: there is none */
	char name[NAME_BYTES]; /* layer of the model; "square" where is_best */
};

/* An accelerator, as the CUDA plug-in probed it: operands are random, because zeros draw less power and flatter. */
struct device_ceiling {
	unsigned index, count; /* the one that was probed, of so many in the node */
	char name[64], capability[8];
	char versions[NOTE_BYTES];        /* driver, runtime, libraries */
	bool test_double;                 /* computed on the CPU: no figure here means anything */
	double memory_bytes, cache_bytes; /* its memory, its L2 */
	double seconds;                   /* that probing it took */
	struct copy_ceiling copies[CEILING_COPIES_MAX];
	size_t copy_count;
	struct device_gemm_ceiling gemms[CEILING_GEMMS_MAX];
	size_t gemm_count;
	double memory_bytes_per_s; /* read + written by a copy of several times its L2 */
	double launch_ns;          /* host time to launch an empty kernel, back to back */
	double kernel_ns; /* the device's own, from one empty kernel to the next, all launched before */
	double graph_kernel_ns; /* the same inside a recorded graph */
	double round_trip_ns;   /* launch, run, and the host sees the end */
	struct ceiling_range memory_range, launch_range, kernel_range, graph_kernel_range,
		round_trip_range;
};

struct ceilings {
	double measured_at;             /* seconds since the epoch */
	char node[CEILINGS_NODE_BYTES]; /* what the cache is keyed by */
	unsigned cores;
	char storage[NOTE_BYTES]; /* device and file system that was read from */
	struct read_ceiling reads[CEILING_READS_MAX];
	size_t read_count;
	double decode_one_core, decode_all_cores; /* samples/s of the reference samples */
	char decode_what[NOTE_BYTES];             /* those: how many, of what, their size */
	double cpu_scaling; /* samples of a second of CPU time, with all cores at work / with one: 1 is perfect */
	double memory_bytes_per_s_one, memory_bytes_per_s_all; /* triad, counted as 3 streams */
	double copy_bytes_per_s; /* memcpy on one thread: bytes copied, each read once and written once */
	struct gemm_ceiling gemms[CEILING_GEMMS_MAX];
	size_t gemm_count;
	double lock_handoff_ns; /* a contended mutex, from one thread to another that sleeps on it */
	double clock_read_ns, cpu_clock_read_ns;
	double oversleep_ns; /* mean of an absolute sleep beyond its end */
	char missing[NOTES_MAX][NOTE_BYTES];
	size_t missing_count;

	/* How it was measured. */
	char host[CEILINGS_NAME_BYTES], cpu[CEILINGS_NAME_BYTES], kernel[CEILINGS_NAME_BYTES];
	bool quick;              /* fewer depths, shorter repeats */
	bool interrupted;        /* stopped on the way: never cached */
	double seconds;          /* that it took */
	char engine[NAME_BYTES]; /* that read, to be shown */
	bool reads_block;        /* a thread for each request in flight */
	double scratch_bytes;    /* of the file that was read */
	char read_pages
		[NAME_BYTES]; /* that it was read into (memory_pages_name); "": an older sheet */
	/* Files of the data set, evicted from this node: read for the first time by this probe, and again.  Where the first is
	 * slower, a cache below this node has what was read or written lately. */
	double first_read_bytes_per_s, reread_bytes_per_s, first_read_bytes;
	double file_bytes; /* mean of the data set, one of the request sizes; NAN: no data set */
	struct core_ceiling decode[CEILING_CORES_MAX]; /* cores ascending: 1, 2, 4 ... all */
	size_t decode_count;
	struct ceiling_range memory_range_one, memory_range_all, copy_range;
	double memory_array_bytes; /* of each of the three arrays, at all cores */
	double cache_bytes;        /* last-level caches of the node together */
	char model[NAME_BYTES];    /* whose shapes are in gemms */
	uint32_t batch;            /* samples: rows of those shapes */
	struct ceiling_range lock_range, clock_range, cpu_clock_range, oversleep_range;
	double oversleep_p99_ns; /* over all sleeps of all repeats */
	char notes[NOTES_MAX][NOTE_BYTES];
	size_t note_count;

	char gpu[CEILINGS_NAME_BYTES]; /* GPUs of the node and their driver; "": none */
	bool has_device;
	struct device_ceiling device; /* where has_device */
};

/* Nothing measured: every number NAN, no lines. */
void ceilings_init(struct ceilings *ceilings);

/* Adds a line to `missing` or to `notes`; dropped when full. */
void ceilings_lack(struct ceilings *ceilings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void ceilings_note(struct ceilings *ceilings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The best that reads of about request_bytes gave at a depth of at most `depth` (0: any), bytes/s;
 * NAN when none was measured.  "About" is the nearest size measured, within a factor of 4; at any
 * depth, requests larger than 64 KiB or more that was measured may be further away. */
double ceilings_read_bytes_per_s(
	const struct ceilings *ceilings, double request_bytes, unsigned depth, bool cold);

/* Best GEMM rate (FLOP/s) with so many threads; NAN: not measured. */
double ceilings_best_flops(const struct ceilings *ceilings, unsigned threads);

/* Best rate of a square product on the device, FLOP/s, at a precision as step.precision names it; NAN: not probed. */
double ceilings_device_flops(const struct ceilings *ceilings, const char *precision);

/* "probed 3 h ago": at `moment` (seconds since the epoch), of which `word` says how it lies to the reader:
 * "ago", or "before" when it is that of an earlier run.  Returns out. */
const char *ceilings_age(
	const struct ceilings *ceilings, double moment, const char *word, char *out, size_t room);

/* Why they should be measured again: older than 30 days, measured with other cores, under another
 * kernel, or with other GPUs (as in `gpu`); false: they hold. */
bool ceilings_stale(const struct ceilings *ceilings, double now, unsigned cores, const char *kernel,
	const char *gpu, char *why, size_t room);

/* --- as JSON ---------------------------------------------------------------------------------- */

/* A node's data sheet as JSON and back: the document of `mlbench probe --json`, the cached file, and a
 * member of every record's header. */

#define CEILINGS_SCHEMA "mlbench.ceilings/1"

/* now: seconds since the epoch, for "age_s".  NULL without memory. */
json_t *ceilings_to_json(const struct ceilings *ceilings, double now);

/* -EINVAL: another schema, or members of wrong types or counts. */
int ceilings_from_json(struct ceilings *ceilings, const json_t *object, struct error *err);

#endif
