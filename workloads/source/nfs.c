/* The nfs engine: a client (nfs_client.h) per reader, read.depth files in flight on its connections.  A
 * file that fits into one READ takes one round trip: the compound looks it up and reads it. */
#include "workloads/source/nfs_client.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
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

struct nfs_file {
	struct nfs_call call;
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
	struct request_list waiting, done;
};

static struct nfs_options nfs_options_of(const struct config *config, unsigned depth)
{
	return (struct nfs_options){
		.connections = (unsigned)config_integer(config, KEY_READ_CONNECTIONS),
		.depth = depth,
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
	const struct nfs_options options =
		nfs_options_of(config, 2 * (unsigned)config_integer(config, KEY_READ_DEPTH));
	return (uint64_t)config_integer(config, KEY_READ_THREADS) *
	       (nfs_client_bytes(&options) + options.depth * (sizeof(struct nfs_file) + 8));
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
	if (source->counters && source->arrivals)
		return 0;
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
	reader->files = calloc(options.depth, sizeof *reader->files);
	reader->idle = calloc(options.depth, sizeof *reader->idle);
	const int code =
		reader->files && reader->idle
			? nfs_client_open(&reader->client, &options, err)
			: error_set(err, -ENOMEM, "out of memory for reader %u", base->index);
	if (code) {
		free(reader->files);
		free(reader->idle);
		return code;
	}
	for (unsigned i = 0; i < options.depth; i++)
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

/* Asks for what is missing of a file: by its path at first, then by its handle. */
static void nfs_ask(struct nfs_reader *reader, struct nfs_file *file)
{
	const struct read_progress *const progress = &file->progress;
	const size_t left = progress->want - progress->got;
	const uint32_t most = nfs_client_request_bytes(reader->client);
	const bool known = file->handle.size > 0;
	file->call = (struct nfs_call){
		.kind = NFS_READ,
		.from = known ? &file->handle : nfs_client_root(reader->client),
		.path = known ? ""
			      : reader->base.source->dataset->samples[file->request->sample].path,
		.offset = progress->offset + progress->got,
		.count = left < most ? (uint32_t)left : most,
		.data = file->request->buffer + progress->got,
		.context = file,
	};
	nfs_client_submit(reader->client, &file->call);
}

/* What a READ that was cut to the server's size has to be followed by is no short read. */
static enum read_step nfs_answered(struct nfs_reader *reader, struct nfs_file *file)
{
	const struct nfs_call *const call = &file->call;
	struct read_progress *const progress = &file->progress;
	struct source_counter *const counter = &reader->base.source->counters[reader->base.index];
	if (call->status == -ESTALE && !file->renewed) {
		file->renewed = true;
		file->handle.size = 0;
		source_count(&counter->retries, 1);
		return READ_STEP_MORE;
	}
	if (call->status)
		return read_progress_answer(progress, call->status, counter);
	file->handle = call->handle;
	if (call->got > 0 && call->got == call->count && !call->end &&
		progress->got + call->got < progress->want) {
		progress->got += call->got;
		return READ_STEP_MORE;
	}
	const enum read_step step = read_progress_answer(progress, call->got, counter);
	return step == READ_STEP_SIZE
		       ? read_progress_size(progress, progress->offset + progress->got + !call->end)
		       : step;
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

static void nfs_collect(struct nfs_reader *reader)
{
	struct nfs_call *call;
	while ((call = nfs_client_take(reader->client)) != NULL) {
		struct nfs_file *const file = call->context;
		const enum read_step step = nfs_answered(reader, file);
		if (step == READ_STEP_MORE || step == READ_STEP_BUFFERED) {
			nfs_ask(reader, file);
			continue;
		}
		if (step == READ_STEP_DONE)
			file->request->size = file->progress.got;
		else
			file->request->status = file->progress.status;
		request_list_push(&reader->done, file->request);
		reader->idle[reader->idle_count++] = file;
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
