/* The nfs engine: a client (nfs_client.h) per reader, read.depth files in flight on its connections.  A
 * file that fits into one READ takes one round trip: the compound looks it up and reads it.  Of a larger
 * one several READs are on the way once its handle is known, always as many of each file, so that what is
 * in flight follows read.depth.  They are looked at in their order: what comes behind a short answer, an
 * error or the end of the file is of no use, and is waited for before the file goes on. */
#include "workloads/source/nfs_client.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/config/shape.h"
#include "workloads/source/engines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct nfs_source {
	struct source base;
	struct nfs_options options;
	struct nfs_counters *counters; /* (threads) */
	struct arrivals *arrivals;
	char server[300];
};

enum {
	NFS_READS_MOST = 4, /* of a file, on the way */
	NFS_SLOW_PART =
		8, /* of the time limit: READs that take this part of it are not to queue, too */
};

struct nfs_part {
	struct nfs_call call;
	struct nfs_file *file;
	bool done;
};

struct nfs_file {
	struct nfs_part parts[NFS_READS_MOST]; /* a ring, in the order of offsets */
	unsigned first, count;                 /* of them that were asked for and not looked at */
	size_t asked;                          /* up to here, from progress->got on */
	bool broken;                           /* what is still on the way is of no use */
	bool stale;                            /* then: so is the handle */
	enum read_step step;                   /* then: how it goes on */
	struct read_request *request;
	struct read_progress progress;
	struct nfs_handle handle; /* after its first READ */
	bool renewed;             /* the handle went stale, and the file was looked up again */
};

struct nfs_reader {
	struct reader base;
	struct nfs_client *client;
	struct nfs_file *files; /* (depth_most) */
	struct nfs_file **idle; /* a stack */
	unsigned idle_count;
	bool slow; /* a READ took so long that no second one of its file is to wait behind it */
	struct request_list waiting, done;
};

static struct nfs_options nfs_options_of(const struct config *config, unsigned files)
{
	const unsigned depth = files * NFS_READS_MOST;
	return (struct nfs_options){
		.connections = (unsigned)config_integer(config, KEY_READ_CONNECTIONS),
		.depth = depth < NFS_DEPTH_MAX ? depth : NFS_DEPTH_MAX,
		.timeout_ns = (uint64_t)config_integer(config, KEY_READ_TIMEOUT),
		.stop = store_patience.stop,
		.probes = true,  /* of one reader */
		.patient = true, /* the store found it */
	};
}

/* Twice the depth: the warm-up tries that, too. */
static uint64_t nfs_bytes(const struct config *config, const struct dataset *dataset)
{
	(void)dataset;
	const unsigned files = 2 * shape_read_depth(config);
	const struct nfs_options options = nfs_options_of(config, files);
	return (uint64_t)shape_readers(config) *
	       (nfs_client_bytes(&options) + files * (sizeof(struct nfs_file) + 8));
}

static int nfs_open(struct source *base, struct error *err)
{
	struct nfs_source *const source = (struct nfs_source *)base;
	source->options = nfs_options_of(base->config, base->depth_most);
	const int code = nfs_address_read(base->store->address, &source->options.address, err);
	if (code)
		return code;
	(void)snprintf(source->server, sizeof source->server, "%s:%s", source->options.address.host,
		source->options.address.port);
	source->counters = calloc(base->threads, sizeof *source->counters);
	source->arrivals = arrivals_new();
	if (source->counters && source->arrivals) {
		if (config_on(base->config, KEY_READ_DIRECT))
			source_note(base, "direct reads: off: no cache of this node lies between");
		return 0;
	}
	free(source->counters);
	arrivals_free(source->arrivals);
	return error_set(err, -ENOMEM, "out of memory for the nfs source");
}

static void nfs_close(struct source *base)
{
	const struct nfs_source *const source = (const struct nfs_source *)base;
	free(source->counters);
	arrivals_free(source->arrivals);
}

static int nfs_reader_open(struct reader *base, struct error *err)
{
	struct nfs_reader *const reader = (struct nfs_reader *)base;
	struct nfs_source *const source = (struct nfs_source *)base->source;
	struct nfs_options options = source->options;
	options.counters = &source->counters[base->index];
	options.arrivals = source->arrivals;
	options.probes = base->index == 0;
	const unsigned files = base->source->depth_most;
	reader->files = calloc(files, sizeof *reader->files);
	reader->idle = calloc(files, sizeof *reader->idle);
	const int code =
		reader->files && reader->idle
			? nfs_client_open(&reader->client, &options, err)
			: error_set(err, -ENOMEM, "out of memory for reader %u", base->index);
	if (code) {
		free(reader->files);
		free(reader->idle);
		return code;
	}
	for (unsigned i = 0; i < files; i++)
		reader->idle[reader->idle_count++] = &reader->files[i];
	return 0;
}

static void nfs_reader_close(struct reader *base)
{
	struct nfs_reader *const reader = (struct nfs_reader *)base;
	nfs_client_close(reader->client);
	free(reader->files);
	free(reader->idle);
}

/* Asks for the next part of a file: by its path at first, then by its handle. */
static void nfs_ask_part(struct nfs_reader *reader, struct nfs_file *file)
{
	const struct read_progress *const progress = &file->progress;
	const size_t left = progress->want - file->asked;
	const uint32_t most = nfs_client_request_bytes(reader->client);
	const bool known = file->handle.size > 0;
	struct nfs_part *const part = &file->parts[(file->first + file->count++) % NFS_READS_MOST];
	*part = (struct nfs_part){.file = file};
	part->call = (struct nfs_call){
		.kind = NFS_READ,
		.from = known ? &file->handle : nfs_client_root(reader->client),
		.path = known ? ""
			      : reader->base.source->dataset->samples[file->request->sample].path,
		.offset = progress->offset + file->asked,
		.count = left < most ? (uint32_t)left : most,
		.data = file->request->buffer + file->asked,
		.context = part,
	};
	file->asked += part->call.count;
	nfs_client_submit(reader->client, &part->call);
}

static void nfs_ask(struct nfs_reader *reader, struct nfs_file *file)
{
	const bool alone = file->handle.size == 0 || reader->slow;
	const unsigned most = alone ? 1 : NFS_READS_MOST;
	while (file->count == 0 || (file->count < most && file->asked < file->progress.want))
		nfs_ask_part(reader, file);
}

/* All that was asked for came, and there is more: what a READ that was cut to the server's size has to be
 * followed by is no short read. */
static bool nfs_part_is_whole(const struct nfs_file *file, const struct nfs_call *call)
{
	return !call->status && call->got > 0 && call->got == call->count && !call->end &&
	       file->progress.got + call->got < file->progress.want;
}

static enum read_step nfs_answered(
	struct nfs_reader *reader, struct nfs_file *file, const struct nfs_call *call)
{
	struct read_progress *const progress = &file->progress;
	struct source_counter *const counter = &reader->base.source->counters[reader->base.index];
	if (call->status == -ESTALE && !file->renewed) {
		file->renewed = true;
		source_count(&counter->retries, 1);
		return READ_STEP_MORE;
	}
	const int64_t answer = call->status ? call->status : (int64_t)call->got;
	const enum read_step step = read_progress_answer(progress, answer, counter);
	return step == READ_STEP_SIZE
		       ? read_progress_size(progress, progress->offset + progress->got + !call->end)
		       : step;
}

/* The parts that are there, in their order. */
static void nfs_look_at_parts(struct nfs_reader *reader, struct nfs_file *file)
{
	for (; file->count > 0 && file->parts[file->first].done; file->count--) {
		const struct nfs_call *const call = &file->parts[file->first].call;
		file->first = (file->first + 1) % NFS_READS_MOST;
		if (file->broken)
			continue;
		if (!call->status && file->handle.size == 0)
			file->handle = call->handle;
		if (nfs_part_is_whole(file, call)) {
			file->progress.got += call->got;
			continue;
		}
		file->step = nfs_answered(reader, file, call);
		file->stale = call->status == -ESTALE;
		file->broken = true;
	}
}

static void nfs_start(struct nfs_reader *reader)
{
	while (reader->idle_count > 0 && reader->waiting.head) {
		struct nfs_file *const file = reader->idle[--reader->idle_count];
		*file = (struct nfs_file){.request = request_list_pop(&reader->waiting)};
		read_progress_request(&file->progress, file->request, false);
		nfs_ask(reader, file);
	}
}

/* A part was answered. */
static void nfs_go_on(struct nfs_reader *reader, struct nfs_file *file)
{
	nfs_look_at_parts(reader, file);
	if (file->broken && file->count > 0)
		return;
	const bool ends =
		file->broken && (file->step == READ_STEP_DONE || file->step == READ_STEP_FAILED);
	if (!ends) {
		file->asked = file->broken ? file->progress.got : file->asked;
		file->handle.size = file->broken && file->stale ? 0 : file->handle.size;
		file->broken = false;
		nfs_ask(reader, file);
		return;
	}
	if (file->step == READ_STEP_DONE)
		file->request->size = file->progress.got;
	else
		file->request->status = file->progress.status;
	request_list_push(&reader->done, file->request);
	reader->idle[reader->idle_count++] = file;
}

static void nfs_collect(struct nfs_reader *reader)
{
	const struct nfs_source *const source = (const struct nfs_source *)reader->base.source;
	const uint64_t slow_ns = source->options.timeout_ns / NFS_SLOW_PART;
	struct nfs_call *call;
	while ((call = nfs_client_take(reader->client)) != NULL) {
		struct nfs_part *const part = call->context;
		reader->slow = reader->slow || clock_now_ns() - call->asked_ns > slow_ns;
		part->done = true;
		nfs_go_on(reader, part->file);
	}
	nfs_start(reader);
}

static void nfs_submit(struct reader *base, struct read_request *request)
{
	struct nfs_reader *const reader = (struct nfs_reader *)base;
	request_list_push(&reader->waiting, request);
	nfs_start(reader);
}

static size_t nfs_reap(
	struct reader *base, struct read_request **done, size_t room, uint64_t wait_ns)
{
	struct nfs_reader *const reader = (struct nfs_reader *)base;
	nfs_client_step(reader->client, reader->done.head ? 0 : wait_ns);
	nfs_collect(reader);
	return request_list_take(&reader->done, done, room);
}

static void nfs_abandon(struct reader *base)
{
	struct nfs_reader *const reader = (struct nfs_reader *)base;
	nfs_client_abandon(reader->client, -ESHUTDOWN); /* which is not tried again */
}

static int nfs_dead(const struct reader *base, struct error *err)
{
	return nfs_client_dead(((const struct nfs_reader *)base)->client, err);
}

static uint64_t nfs_sum(const atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void nfs_network(const struct source *base, struct network_counts *out)
{
	const struct nfs_source *const source = (const struct nfs_source *)base;
	*out = (struct network_counts){
		.protocol = atomic_load(&source->counters[0].version) == 3 ? "NFSv3" : "NFSv4.0",
		.server = source->server,
		.connections = base->threads * source->options.connections,
		.request_bytes = nfs_sum(&source->counters[0].request_bytes),
		.wire_ns = nfs_sum(&source->counters[0].wire_ns),
		.receiving_ns = arrivals_ns(source->arrivals, clock_now_ns()),
		.packet_bytes = nfs_sum(&source->counters[0].packet_bytes),
		.kind_count = NFS_PING};
	for (unsigned i = 0; i < base->threads; i++) {
		const struct nfs_counter *const probes = &source->counters[i].kinds[NFS_PING];
		out->probes += nfs_sum(&probes->calls);
		out->probe_ns += nfs_sum(&probes->round_trip_ns);
		for (unsigned k = 0; k < NFS_PING; k++) {
			const struct nfs_counter *const kind = &source->counters[i].kinds[k];
			out->kinds[k].name = nfs_kind_name((enum nfs_kind)k);
			out->kinds[k].calls += nfs_sum(&kind->calls);
			out->kinds[k].repeats += nfs_sum(&kind->repeats);
			out->kinds[k].queue_ns += nfs_sum(&kind->queue_ns);
			out->kinds[k].round_trip_ns += nfs_sum(&kind->round_trip_ns);
			out->kinds[k].execute_ns += nfs_sum(&kind->execute_ns);
			out->kinds[k].sent_bytes += nfs_sum(&kind->sent_bytes);
			out->kinds[k].received_bytes += nfs_sum(&kind->received_bytes);
		}
	}
}

const struct source_ops source_nfs = {
	.name = "nfs",
	.summary = "NFSv4.0 or NFSv3 without a mount, read.depth files in flight per reader thread",
	.automatic = true,
	.only = &store_nfs,
	.waits_as_io = true, /* at a ring, since Linux 6.6 */
	.source_size = sizeof(struct nfs_source),
	.reader_size = sizeof(struct nfs_reader),
	.bytes = nfs_bytes,
	.open = nfs_open,
	.close = nfs_close,
	.reader_open = nfs_reader_open,
	.reader_close = nfs_reader_close,
	.abandon = nfs_abandon,
	.dead = nfs_dead,
	.network = nfs_network,
	.submit = nfs_submit,
	.reap = nfs_reap,
};
