/* How bytes are read: the engines behind read.engine.  A source is opened once per repetition, on a
 * store (store.h: where the files are), and shared; each reader thread opens a struct reader of its own
 * on it, submits requests and reaps them as they complete.
 *
 * The generic layer (source.c) adds the injected conditions (bandwidth cap, latency) in front of every
 * implementation, counts, and chooses the engine for `auto`.
 *
 * To add an engine (pread.c is the smallest that reads):
 *   1. workloads/source/NAME.c: structs that begin with struct source and struct reader, the functions
 *      that it needs of struct source_ops (submit and reap are the least), and at the end
 *      `const struct source_ops source_NAME`, with .name, .summary, the two sizes, and the facts that
 *      are true of it: .blocking if submit comes back when the sample is read, .immediate if it is in
 *      memory already, .waits_as_io, .needs_local, .automatic.  engines.h has what engines share:
 *      read_progress_request and source_read_now read a sample by plain calls of the store.
 *   2. harness/config/tables.h: `X(ID, NAME)` in READ_ENGINES.  read.engine has the choice NAME from then
 *      on, and `mlbench list sources`, help and the man pages show it.
 * It needs no more; tests/recipes/source.patch is a whole example.
 * Each run records the facts (harness/base/workload_facts.h), and prediction, diagnosis
 * and advice know an engine by these alone: nothing compares names (tests/layering.sh).  To try the
 * recipe, copy pread.c, put usleep(4000) into its submit, and diagnose a run with it: the verdict is
 * read, bound by latency, and the advice read.threads. */
#ifndef MLBENCH_WORKLOADS_SOURCE_SOURCE_H
#define MLBENCH_WORKLOADS_SOURCE_SOURCE_H

#include "harness/base/error.h"
#include "harness/base/memory.h"
#include "harness/config/config.h"
#include "workloads/source/store.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of blob buffers and their sizes: enough for O_DIRECT anywhere. */
enum { READ_ALIGN_BYTES = 4096 };

/* One sample to read.  The caller fills the first part and keeps the request alive until it is reaped. */
struct read_request {
	uint32_t sample; /* index into the data set */
	uint8_t *buffer; /* READ_ALIGN_BYTES-aligned, inside the source's blob memory */
	size_t room;     /* its size: >= the sample's bytes rounded up to READ_ALIGN_BYTES */
	uint64_t ticket; /* the caller's own, not touched */
	/* A sample that comes source_lookahead tickets later; none with as many as there are, or more. */
	uint32_t ahead;

	/* Filled by source_submit from the data set (not for an immediate engine, which needs it when it
	 * opens): which bytes of the sample's file.  part: exactly
	 * these, of a file that holds several samples.  Else the file is read whole, and length is what
	 * the manifest says of it. */
	uint64_t offset, length;
	bool part;

	/* Result. */
	const uint8_t *data; /* where the bytes are: buffer, or the memory source's own */
	size_t size;
	int status; /* 0, or a negative errno: it could not be read (source_status_text) */
	/* done includes injected latency; 0 with the profiler off */
	uint64_t submitted_ns, done_ns;
	/* When its file was open, where that was timed (io_uring: of a share of the files); else 0. */
	uint64_t opened_ns;
	uint64_t
		packed; /* bytes of a compressed file that were read for it; UINT64_MAX: it is not compressed */
	bool cached;       /* an emulated storage had it in its cache */
	atomic_uint *lent; /* not NULL: data is in memory that others share; see source_let_go */
	struct read_request *next; /* the source's own while in flight */
};

/* A request that holds many samples (read.request): what a file is where each sample has its own. */
struct large_read {
	uint64_t number; /* in the order of submission, from 0 */
	uint64_t submitted_ns, done_ns;
	uint32_t bytes;     /* 0: it could not be read */
	uint32_t in_flight; /* such requests of the reader when it was submitted, itself included */
	uint32_t tag;       /* source_reader_allow's at that time; 0 before the first */
};

/* Those that the last source_reap completed, and what is in flight of them. */
struct large_reads {
	const struct large_read *done; /* (count), the reader's, until the next source_reap */
	size_t count;
	uint32_t in_flight, earlier; /* earlier: of in_flight, those with another tag than */
	uint32_t tag;                /* the present one */
};

/* What an engine that is a client of a network file system has counted since it was opened. */
enum { NETWORK_KINDS_MAX = 4 };
struct network_counts {
	const char *protocol; /* "NFSv4.0"; it and server are the source's */
	const char *server;
	unsigned connections;
	uint64_t request_bytes;    /* 0: not known yet, like the next */
	uint64_t wire_ns;          /* TCP's smoothed round trip, of now */
	uint64_t receiving_ns;     /* some reply had come in part (arrivals.h) */
	uint64_t packet_bytes;     /* of TCP, from the server; 0: not known yet */
	uint64_t probes, probe_ns; /* round trips of calls beside the load, and their sum */
	size_t kind_count;
	struct {
		const char *name; /* "READ" */
		uint64_t calls, repeats, queue_ns, round_trip_ns, execute_ns, sent_bytes,
			received_bytes;
	} kinds[NETWORK_KINDS_MAX];
};

struct source;
struct reader;

/* What an implementation provides.  The flags are facts: they go into each run's record. */
struct source_ops {
	const char *name, *summary;
	bool immediate; /* submit completes without I/O: not worth a time stamp each (one per reaped batch) */
	bool blocking; /* submit returns when the file is read: one at a time per reader, for any read.depth */
	bool automatic; /* read.engine = auto may take it: the last of the list that can be had here */
	bool needs_local; /* opens files itself, by paths under store->root_fd: no other store will do */
	const struct store_ops *only; /* the one store that it reads; NULL: any (needs_local) */
	bool inflates;                /* it reads compressed files (gzip_view.h) */
	bool maps; /* files are mapped while it reads: their pages are the page cache's, and resident */
	bool waits_as_io; /* the kernel counts any wait of a reader as I/O wait: it is no evidence of a slow disk */
	/* Of the implementation's structs; allocated zeroed by source.c. */
	size_t source_size, reader_size;
	/* NULL, or why this node cannot: a static string or text in why.  Optional: any node can. */
	const char *(*unavailable)(char *why, size_t room);
	/* Memory that open allocates, for the printed bound.  Optional: nothing to speak of. */
	uint64_t (*bytes)(const struct config *config, const struct dataset *dataset);
	int (*open)(struct source *source, struct error *err);        /* optional */
	void (*close)(struct source *source);                         /* optional */
	int (*reader_open)(struct reader *reader, struct error *err); /* optional */
	void (*reader_close)(struct reader *reader); /* optional; after all is reaped */
	/* Ends at once, with some failure, what waits for others; called before the reader is closed.
	 * Optional: what is in flight ends soon by itself. */
	void (*abandon)(struct reader *reader);
	/* 0, or why no read of it will succeed any more: the repetition ends.  Optional. */
	int (*dead)(const struct reader *reader, struct error *err);
	/* What it has counted of its calls; any thread.  Optional: it makes none. */
	void (*network)(const struct source *source, struct network_counts *out);
	/* Starts one read; it may complete at once.  Never fails: failures are in request->status. */
	void (*submit)(struct reader *reader, struct read_request *request);
	/* Up to room completed requests into done, done_ns 0 or set.  wait_ns: 0 polls, else blocks so long
	 * at most; it may return 0 earlier (a signal). */
	size_t (*reap)(
		struct reader *reader, struct read_request **done, size_t room, uint64_t wait_ns);
};

struct source {
	const struct source_ops *ops;
	const struct config *config;
	const struct dataset *dataset;
	struct store *store;
	bool owns_store;
	uint8_t *blob_memory; /* request buffers lie in it; NULL for memory */
	size_t blob_bytes;
	unsigned threads, depth;
	unsigned depth_most; /* requests of a reader that there must be room for: depth or more */
	bool timed;          /* fill submitted_ns and done_ns */
	bool past_cache; /* reads go past the page cache: read.direct, where the file system takes it */
	/* What it got and did not get: "registered buffers: on; linked open-read-close: off". */
	char notes[512];
	struct source_limiter *limiter; /* injected conditions, or NULL; source.c's */
	/* Those of readers that are closed: samples lie in them until the last worker is done.  source.c's. */
	struct chunks *_Atomic chunks;
	bool stamped; /* submitted_ns is wanted (timed, or limited); source.c's */
	/* One per reader; the engine adds its short reads and retries. */
	struct source_counter *counters;
};

struct reader {
	struct source *source;
	unsigned index;        /* of the reader thread */
	unsigned in_flight;    /* with the engine or held by the limiter; source.c keeps it */
	uint64_t submitted_ns; /* the last one, where it is stamped; source.c keeps it */
	struct limiter_queue *limiter; /* source.c's */
	struct chunks *chunks;         /* source.c's; NULL: each sample is read by itself */
};

/* Counters of one reader: only its thread writes, any thread reads. */
struct source_counter {
	_Alignas(COUNTER_ALIGN_BYTES) atomic_uint_fast64_t files;
	atomic_uint_fast64_t requests; /* handed to the engine: files, or parts of them */
	atomic_uint_fast64_t bytes, stored_bytes, packed_bytes, errors, short_reads, retries;
};

static inline void source_count(atomic_uint_fast64_t *counter, uint64_t more)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
		memory_order_relaxed);
}

/* Counters of a source, summed over its readers; relaxed reads, any thread, any time. */
struct source_counts {
	uint64_t files, bytes;
	uint64_t
		requests; /* handed to the engine: fewer than files where they are cut out of large ones */
	uint64_t stored_bytes; /* of bytes, those that an emulated storage's cache did not have */
	uint64_t
		packed_bytes; /* of compressed files that were read for them; 0: they are not compressed */
	uint64_t errors, short_reads, retries;
};

extern const struct source_ops *const source_list[]; /* NULL-terminated, as READ_ENGINES has them */

/* Which engine `config` means (resolving auto).  NULL with -ENOTSUP and the reason when one was asked
 * for by name that this node lacks; why_not says, for auto, what was passed over ("" if nothing). */
const struct source_ops *source_choose(
	const struct config *config, char *why_not, size_t room, struct error *err);

/* blob_memory: where all request buffers will be (may be NULL with the memory engine), but for a few that are used now
 * and then.  depth_most: how many requests a reader will have in flight at most, 0: read.depth of them; less is got where
 * that many files cannot be open at once (source_reader_depth_most). */
int source_open(struct source **out, const struct config *config, const struct dataset *dataset,
	uint8_t *blob_memory, size_t blob_bytes, unsigned depth_most, struct error *err);
/* The same on a store that is open, and stays so until after source_close. */
int source_open_in(struct source **out, struct store *store, const struct config *config,
	const struct dataset *dataset, uint8_t *blob_memory, size_t blob_bytes, unsigned depth_most,
	struct error *err);
void source_close(struct source *source); /* NULL is fine */

/* Whether samples are cut out of large requests. */
bool source_reads_large(const struct config *config, const struct dataset *dataset);
/* How far ahead the caller says what comes (read_request.ahead); 0: nobody looks at it. */
uint32_t source_lookahead(const struct config *config, const struct dataset *dataset);

/* A request's status in words. */
const char *source_status_text(int status, char out[ERROR_REASON_BYTES]);
/* When the repetition starts, before any reader submits: inject.begin and inject.end count from it. */
void source_start(struct source *source, uint64_t start_ns);
/* Injected bandwidth or latency: the storage is emulated, and so is its cache. */
bool source_emulates_storage(const struct source *source);
void source_read_counts(const struct source *source, struct source_counts *counts);
/* False: it is no client of a network file system. */
bool source_read_network(const struct source *source, struct network_counts *counts);

/* Bytes that a source of this configuration allocates itself (source_ops.bytes, chunks.h). */
uint64_t source_bytes(const struct config *config, const struct dataset *dataset);
/* Beside them, if it is opened with depth_most. */
uint64_t source_spare_bytes(
	const struct config *config, const struct dataset *dataset, unsigned depth_most);

/* All of a reader's functions are called by one thread, the one that opens it; index < read.threads, and
 * a reader of that index is open once at a time. */
int source_reader_open(
	struct reader **out, struct source *source, unsigned index, struct error *err);
/* Waits for what the kernel still writes to, not for injected delays; what was not reaped is lost to
 * the caller's sight.  NULL is fine. */
void source_reader_close(struct reader *reader);
/* 0, or why none of its reads will succeed any more. */
int source_reader_dead(const struct reader *reader, struct error *err);
unsigned source_reader_depth_most(const struct reader *reader); /* requests that may be in flight */
/* Large requests: from now on so many are in flight at most, up to depth_most, and have this tag; those
 * beyond it are finished first.  Nothing where each sample is read by itself. */
void source_reader_allow(struct reader *reader, unsigned depth, uint32_t tag);
/* Likewise: what the last source_reap completed of them; all zeros. */
void source_reader_large(const struct reader *reader, struct large_reads *out);
/* May delay the system call until the next reap, so that one serves many requests. */
void source_submit(struct reader *reader, struct read_request *request);
/* The bytes of a request that was reaped are not looked at any more.  Any thread, once a request; without
 * it what they lie in is not used again before the source is closed. */
static inline void source_let_go(struct read_request *request)
{
	if (request->lent)
		atomic_fetch_sub_explicit(request->lent, 1, memory_order_release);
	request->lent = NULL;
}
/* Up to room completed requests, in the order of completion; 0 at once when none is in flight.  wait_ns:
 * 0 polls, else waits so long at most for the first (it may return 0 earlier: a signal). */
size_t source_reap(
	struct reader *reader, struct read_request **done, size_t room, uint64_t wait_ns);

#endif
