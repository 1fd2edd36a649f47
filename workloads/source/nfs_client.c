/* Connections to an NFS server, and the calls on them. */
#include "workloads/source/nfs_client.h"

#include "harness/base/clock.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/units.h"

#include <errno.h>
#include <liburing.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	CLIENT_IN_BYTES = 64 * 1024,
	CLIENT_OUT_BYTES = 64 * 1024,
	CLIENT_RING_ENTRIES = 4 * (NFS_CONNECTIONS_MAX + 1),
	CLIENT_TRIES_MAX = 8, /* a call is sent so often */
	CLIENT_TRIES_BAD = 2, /* where the server answers nonsense */
	RETRY_FIRST_MS = 20,  /* between attempts to connect, doubled */
	RETRY_MOST_MS = 1000,
	FOLDERS_KNOWN = 256,
	FOLDER_PATH_BYTES = 128,
	PROBE_MS = 250,
	PROBE_LATE_US = 20,
	LATER_MS = 100, /* before a call is repeated that the server put off */
	SAY_QUIET_S = 5,
	XID_SLOT_BITS = 16,
	EVENT_INDEX_BITS = 8,
	PORT_MAPPER = 111,
};

static const char nfs_prefix[] = "nfs://";

/* What the program has said, on behalf of all its clients: many threads wait for the same server. */
static struct {
	atomic_bool quiet, trouble;
} nfs_said;

struct call_list {
	struct nfs_call *head, *tail;
	size_t count;
};

enum connection_state { CONNECTION_DOWN, CONNECTION_OPENING, CONNECTION_UP };

struct nfs_connection {
	enum connection_state state;
	int fd;
	uint32_t generation; /* of its socket, in events */
	bool watches_in, watches_out;
	bool ready_in, ready_out;
	unsigned in_flight;
	uint64_t heard_ns; /* a reply, or when there came to be something to be heard of */
	uint64_t retry_at_ns, retry_pause_ns;
	size_t out_size, out_sent, in_size;
	struct nfs_call *filling; /* a READ whose data are on the way */
	uint32_t filled;
	size_t passing;         /* bytes of a record that are of no use */
	struct buffer gathered; /* of a reply in several fragments */
	size_t fragment_left;
	bool fragment_is_last;
	bool under_way; /* a reply has come in part, as the arrivals have it */
	uint8_t in[CLIENT_IN_BYTES], out[CLIENT_OUT_BYTES];
};

struct nfs_client {
	struct nfs_options options;
	struct sockaddr_storage where;
	socklen_t where_bytes;
	struct nfs_identity who;
	struct nfs_handle root;
	uint32_t request_bytes;
	unsigned version; /* of NFS */
	/* NFSv3: folders below the root that have been looked up, each at the place that its path's hash says. */
	struct known_folder {
		char path[FOLDER_PATH_BYTES];
		struct nfs_handle handle;
	} * folders;                        /* (FOLDERS_KNOWN); NULL: not this version */
	struct nfs_connection *connections; /* (connection_count); the one for probes is the last */
	unsigned connection_count;
	unsigned slot_count;
	struct nfs_call **slots; /* (slot_count) on the way, by the xid's low bits */
	uint16_t *generations;   /* (slot_count) the xid's high bits */
	uint16_t *free_slots;    /* a stack */
	unsigned free_count;
	struct call_list waiting, later, done;
	struct nfs_call probe;
	bool probing; /* it is on the way */
	uint64_t probe_at_ns;
	uint64_t left_at_ns, away_ns; /* the last step's end, and how long until this one */
	uint64_t heard_ns;            /* as a connection's, of all */
	bool said_quiet;
	int dead;
	struct error why_dead, trouble; /* trouble: the last that befell a connection */
	bool has_ring;
	struct io_uring ring;
};

/* ---- addresses ---------------------------------------------------------------------------- */

int nfs_address_read(const char *address, struct nfs_address *out, struct error *err)
{
	*out = (struct nfs_address){.port = "2049"};
	const char *at = address;
	if (strncmp(at, nfs_prefix, sizeof nfs_prefix - 1) == 0)
		at += sizeof nfs_prefix - 1;
	const bool bracket = *at == '[';
	at += bracket;
	const size_t host_bytes = strcspn(at, bracket ? "]/" : ":/");
	if (host_bytes == 0 || host_bytes >= sizeof out->host)
		return error_set(err, -EINVAL,
			"'%.200s' names no server: an address looks like nfs://server/export/folder",
			address);
	memcpy(out->host, at, host_bytes);
	at += host_bytes;
	if (bracket && *at++ != ']')
		return error_set(err, -EINVAL, "'%.200s': the server's ']' is missing", address);
	if (*at == ':') {
		char *end;
		const unsigned long port = strtoul(at + 1, &end, 10);
		if (at[1] < '0' || at[1] > '9' || port == 0 || port > 65535 ||
			(*end && *end != '/'))
			return error_set(err, -EINVAL,
				"'%.200s': the port behind the ':' is a number from 1 to 65535",
				address);
		(void)snprintf(out->port, sizeof out->port, "%lu", port);
		at = end;
	}
	if (*at && *at != '/')
		return error_set(err, -EINVAL,
			"'%.200s': a '/' and the export's path follow the server", address);
	out->path = at;
	return 0;
}

/* "127.0.0.1:2049" */
static const char *client_name(const struct nfs_client *client, char out[300])
{
	(void)snprintf(
		out, 300, "%s:%s", client->options.address.host, client->options.address.port);
	return out;
}

/* ---- lists of calls ----------------------------------------------------------------------- */

static void call_list_push(struct call_list *list, struct nfs_call *call)
{
	call->next = NULL;
	if (list->tail)
		list->tail->next = call;
	else
		list->head = call;
	list->tail = call;
	list->count++;
}

static void call_list_push_front(struct call_list *list, struct nfs_call *call)
{
	call->next = list->head;
	list->head = call;
	if (!list->tail)
		list->tail = call;
	list->count++;
}

static struct nfs_call *call_list_pop(struct call_list *list)
{
	struct nfs_call *const call = list->head;
	if (!call)
		return NULL;
	list->head = call->next;
	if (!list->head)
		list->tail = NULL;
	list->count--;
	return call;
}

static unsigned client_sent(const struct nfs_client *client)
{
	return client->slot_count - client->free_count - client->probing;
}

static bool client_is_busy(const struct nfs_client *client)
{
	return client_sent(client) + client->waiting.count + client->later.count > 0;
}

/* ---- NFSv3: down a path, part by part ----------------------------------------------------- */

static struct known_folder *client_folder(
	const struct nfs_client *client, const struct nfs_call *call, size_t bytes)
{
	const bool fits = client->folders && call->from == &client->root && bytes > 0 &&
			  bytes < FOLDER_PATH_BYTES;
	return fits ? &client->folders[hash_bytes(call->path, bytes, 0) % FOLDERS_KNOWN] : NULL;
}

/* Where the last part of its path begins. */
static size_t call_folder_bytes(const struct nfs_call *call)
{
	const char *const slash = strrchr(call->path, '/');
	return slash ? (size_t)(slash - call->path) : 0;
}

/* From the folder that the file is in, where that is known. */
static void client_begin(struct nfs_client *client, struct nfs_call *call)
{
	const size_t bytes = call_folder_bytes(call);
	const struct known_folder *const folder = client_folder(client, call, bytes);
	call->version = client->version;
	call->rest = call->path;
	if (call->from)
		call->here = *call->from;
	if (folder && strncmp(folder->path, call->path, bytes) == 0 && !folder->path[bytes]) {
		call->here = folder->handle;
		call->rest += bytes;
	}
	call->part_bytes = 0;
	if (call->version == 3 && call->kind != NFS_MOUNT)
		(void)nfs_path_next(&call->rest, &call->part_bytes);
}

/* A reply has come; true: another step is to be taken. */
static bool client_goes_on(struct nfs_client *client, struct nfs_call *call)
{
	if (call->version != 3 || call->kind == NFS_MOUNT || call->kind == NFS_FIND)
		return false;
	if (call->status == -ESTALE && client->folders)
		memset(client->folders, 0, FOLDERS_KNOWN * sizeof *client->folders);
	if (call->part_bytes == 0) {
		call->handle = call->here;
		return false;
	}
	if (call->status)
		return false;
	call->here = call->handle;
	call->rest += call->part_bytes;
	const size_t bytes = call_folder_bytes(call);
	struct known_folder *const folder = client_folder(client, call, bytes);
	if (folder && call->rest == call->path + bytes) {
		folder->handle = call->here;
		memcpy(folder->path, call->path, bytes);
		folder->path[bytes] = '\0';
	}
	return nfs_path_next(&call->rest, &call->part_bytes) || call->kind != NFS_LOOK ||
	       call->what.kind == STORE_UNKNOWN;
}

/* ---- the end of a call -------------------------------------------------------------------- */

static void counter_add(atomic_uint_fast64_t *counter, uint64_t more)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
		memory_order_relaxed);
}

/* A step down a path of NFSv3 is a LOOKUP, whatever it is for. */
static struct nfs_counter *client_counter(
	const struct nfs_client *client, const struct nfs_call *call)
{
	return &client->options.counters->kinds[call->part_bytes > 0 ? NFS_LOOK : call->kind];
}

static void client_count(struct nfs_client *client, const struct nfs_call *call, uint64_t now_ns)
{
	if (!client->options.counters)
		return;
	struct nfs_counter *const counter = client_counter(client, call);
	counter_add(&counter->calls, 1);
	counter_add(&counter->queue_ns, call->sent_ns - call->step_ns);
	counter_add(&counter->round_trip_ns, now_ns - call->sent_ns);
	counter_add(&counter->execute_ns, now_ns - call->step_ns);
	counter_add(&counter->sent_bytes, call->sent_bytes);
	counter_add(&counter->received_bytes, call->reply_bytes);
}

/* Nobody waits for a probe. */
static void client_finish(struct nfs_client *client, struct nfs_call *call)
{
	if (call == &client->probe)
		client->probing = false;
	else
		call_list_push(&client->done, call);
}

static void client_end(struct nfs_client *client, struct nfs_call *call, int status)
{
	call->status = status;
	client_finish(client, call);
}

/* Takes it off the wire. */
static void client_free_slot(struct nfs_client *client, struct nfs_call *call)
{
	const uint16_t slot = call->slot;
	client->connections[call->connection].in_flight--;
	client->slots[slot] = NULL;
	client->generations[slot]++;
	client->free_slots[client->free_count++] = slot;
}

/* A reply that lay about until its thread came back would seem to have come from afar. */
static bool client_came_late(const struct nfs_client *client, uint64_t round_trip_ns)
{
	return client->away_ns > PROBE_LATE_US * NS_PER_US && client->away_ns > round_trip_ns / 8;
}

static void client_answered(struct nfs_client *client, struct nfs_call *call)
{
	const uint64_t now_ns = clock_now_ns();
	if (call != &client->probe || !client_came_late(client, now_ns - call->sent_ns))
		client_count(client, call, now_ns);
	if (client_goes_on(client, call)) {
		call->step_ns = now_ns;
		call->tries = 0;
		call_list_push_front(&client->waiting, call);
	} else if (call->status != -EAGAIN || call == &client->probe) {
		client_finish(client, call);
	} else if (now_ns - call->asked_ns > client->options.timeout_ns) {
		client_end(client, call, -ETIMEDOUT);
	} else {
		call->not_before_ns = now_ns + LATER_MS * NS_PER_MS;
		call_list_push(&client->later, call);
	}
}

void nfs_client_abandon(struct nfs_client *client, int status)
{
	struct nfs_call *call;
	for (unsigned i = 0; i < client->slot_count; i++) {
		call = client->slots[i];
		if (!call)
			continue;
		client_free_slot(client, call);
		client_end(client, call, status);
	}
	while ((call = call_list_pop(&client->waiting)) || (call = call_list_pop(&client->later)))
		client_end(client, call, status);
	for (unsigned i = 0; i < client->connection_count; i++) {
		struct nfs_connection *const connection = &client->connections[i];
		if (connection->filling) { /* what comes of it has no place any more */
			connection->passing += connection->filling->got - connection->filled;
			connection->filling = NULL;
		}
	}
}

static void client_die(struct nfs_client *client, int code)
{
	client->dead = code;
	nfs_client_abandon(client, code);
}

int nfs_client_dead(const struct nfs_client *client, struct error *err)
{
	if (client->dead && err)
		*err = client->why_dead;
	return client->dead;
}

/* ---- events ------------------------------------------------------------------------------- */

static uint64_t event_of(const struct nfs_connection *connection, unsigned index, bool out)
{
	return (uint64_t)connection->generation << EVENT_INDEX_BITS | index << 1 | out;
}

static struct io_uring_sqe *client_sqe(struct nfs_client *client)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&client->ring);
	if (!sqe && io_uring_submit(&client->ring) >= 0)
		sqe = io_uring_get_sqe(&client->ring);
	return sqe;
}

static void client_watch_one(struct nfs_client *client, unsigned index, bool out, bool *watches)
{
	struct io_uring_sqe *const sqe = *watches ? NULL : client_sqe(client);
	if (!sqe)
		return;
	io_uring_prep_poll_add(sqe, client->connections[index].fd, out ? POLLOUT : POLLIN);
	sqe->user_data = event_of(&client->connections[index], index, out);
	*watches = true;
}

static bool connection_has_output(const struct nfs_connection *connection)
{
	return connection->state == CONNECTION_OPENING ||
	       connection->out_sent < connection->out_size;
}

static void client_watch(struct nfs_client *client)
{
	for (unsigned i = 0; i < client->connection_count; i++) {
		struct nfs_connection *const connection = &client->connections[i];
		if (connection->state == CONNECTION_UP)
			client_watch_one(client, i, false, &connection->watches_in);
		if (connection->state != CONNECTION_DOWN && connection_has_output(connection))
			client_watch_one(client, i, true, &connection->watches_out);
	}
}

static void client_event(struct nfs_client *client, uint64_t event)
{
	const unsigned index = (unsigned)(event >> 1) & ((1U << (EVENT_INDEX_BITS - 1)) - 1);
	if (event == UINT64_MAX || index >= client->connection_count)
		return; /* of no watch */
	struct nfs_connection *const connection = &client->connections[index];
	if (event != event_of(connection, index, event & 1))
		return; /* of a socket that is gone */
	if (event & 1) {
		connection->watches_out = false;
		connection->ready_out = true;
	} else {
		connection->watches_in = false;
		connection->ready_in = true;
	}
}

static void client_wait_ring(struct nfs_client *client, uint64_t wait_ns)
{
	struct __kernel_timespec wait = {
		.tv_sec = (int64_t)(wait_ns / NS_PER_S), .tv_nsec = (int64_t)(wait_ns % NS_PER_S)};
	struct io_uring_cqe *cqe = NULL;
	client_watch(client);
	if (wait_ns > 0)
		(void)io_uring_submit_and_wait_timeout(&client->ring, &cqe, 1, &wait, NULL);
	else
		(void)io_uring_submit_and_get_events(&client->ring);
	while (io_uring_peek_cqe(&client->ring, &cqe) == 0) {
		client_event(client, cqe->user_data);
		io_uring_cqe_seen(&client->ring, cqe);
	}
}

static void client_wait_poll(struct nfs_client *client, uint64_t wait_ns)
{
	struct pollfd polled[NFS_CONNECTIONS_MAX + 1];
	const unsigned count = client->connection_count;
	const struct timespec wait = {
		.tv_sec = (time_t)(wait_ns / NS_PER_S), .tv_nsec = (long)(wait_ns % NS_PER_S)};
	for (unsigned i = 0; i < count; i++) {
		const struct nfs_connection *const connection = &client->connections[i];
		const bool down = connection->state == CONNECTION_DOWN;
		polled[i] = (struct pollfd){.fd = down ? -1 : connection->fd,
			.events = (short)(POLLIN |
					  (connection_has_output(connection) ? POLLOUT : 0))};
	}
	if (ppoll(polled, count, &wait, NULL) <= 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		client->connections[i].ready_in = polled[i].revents & (POLLIN | POLLHUP | POLLERR);
		client->connections[i].ready_out = polled[i].revents & (POLLOUT | POLLERR);
	}
}

/* ---- connections -------------------------------------------------------------------------- */

/* After all that has come was taken. */
static void connection_tell_arrivals(struct nfs_client *client, struct nfs_connection *connection)
{
	struct arrivals *const arrivals = client->options.arrivals;
	const bool under_way = connection->state == CONNECTION_UP &&
			       (connection->in_size > 0 || connection->filling ||
				       connection->passing > 0 || connection->fragment_left > 0);
	if (!arrivals || under_way == connection->under_way ||
		connection >= client->connections + client->options.connections)
		return;
	connection->under_way = under_way;
	if (under_way)
		arrivals_begin(arrivals, clock_now_ns());
	else
		arrivals_end(arrivals, clock_now_ns());
}

static void connection_close(struct nfs_client *client, struct nfs_connection *connection)
{
	const unsigned index = (unsigned)(connection - client->connections);
	for (unsigned out = 0; out < 2 && client->has_ring; out++) {
		bool *const watches = out ? &connection->watches_out : &connection->watches_in;
		struct io_uring_sqe *const sqe = *watches ? client_sqe(client) : NULL;
		*watches = false;
		if (!sqe)
			continue;
		io_uring_prep_poll_remove(sqe, event_of(connection, index, out));
		sqe->user_data = UINT64_MAX;
	}
	if (connection->state != CONNECTION_DOWN) {
		(void)shutdown(connection->fd, SHUT_RDWR); /* a watch may hold it a moment longer */
		(void)close(connection->fd);
	}
	connection->state = CONNECTION_DOWN;
	connection->generation++;
	connection->ready_in = connection->ready_out = false;
	connection->out_size = connection->out_sent = connection->in_size = 0;
	connection->filling = NULL;
	connection->passing = connection->fragment_left = connection->gathered.size = 0;
	connection_tell_arrivals(client, connection);
}

/* Its calls are repeated: on another connection, or on this one when it is up again. */
static void connection_lost(
	struct nfs_client *client, struct nfs_connection *connection, int code, const char *what)
{
	const unsigned index = (unsigned)(connection - client->connections);
	const unsigned tries_max = code == -EBADMSG ? CLIENT_TRIES_BAD : CLIENT_TRIES_MAX;
	char name[300];
	(void)error_set_errno(
		&client->trouble, -code, "the NFS server %s: %s", client_name(client, name), what);
	connection_close(client, connection);
	for (unsigned i = 0; i < client->slot_count; i++) {
		struct nfs_call *const call = client->slots[i];
		if (!call || call->connection != index)
			continue;
		client_free_slot(client, call);
		if (call == &client->probe) {
			client_end(client, call, code);
			continue;
		}
		if (call->tries < tries_max) {
			call_list_push_front(&client->waiting, call);
			continue;
		}
		client_end(client, call, code);
		if (!atomic_exchange(&nfs_said.trouble, true))
			log_warn("%s; reads fail that were tried %u times", client->trouble.text,
				tries_max);
	}
	const uint64_t pause_ns = connection->retry_pause_ns;
	connection->retry_at_ns = clock_now_ns() + pause_ns;
	connection->retry_pause_ns =
		2 * pause_ns < RETRY_MOST_MS * NS_PER_MS ? 2 * pause_ns : RETRY_MOST_MS * NS_PER_MS;
}

/* Many servers answer only ports that root alone can have; for root it costs nothing to have one. */
static int connection_socket(const struct nfs_client *client)
{
	const int on = 1;
	const int fd = socket(
		client->where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (client->who.user == 0 && client->where.ss_family == AF_INET)
		(void)bindresvport(fd, NULL);
	return fd;
}

static void connection_open(
	struct nfs_client *client, struct nfs_connection *connection, uint64_t now_ns)
{
	const int fd = connection_socket(client);
	if (fd < 0) {
		connection_lost(client, connection, fd, "no socket");
		return;
	}
	connection->fd = fd;
	connection->state = CONNECTION_OPENING;
	connection->heard_ns = now_ns;
	if (connect(fd, (const struct sockaddr *)&client->where, client->where_bytes) != 0 &&
		errno != EINPROGRESS)
		connection_lost(client, connection, -errno, "cannot connect");
}

static void connection_opened(struct nfs_client *client, struct nfs_connection *connection)
{
	int code = 0;
	socklen_t size = sizeof code;
	if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
		code = errno;
	if (code)
		connection_lost(client, connection, -code, "cannot connect");
	else
		connection->state = CONNECTION_UP;
}

static void connection_flush(struct nfs_client *client, struct nfs_connection *connection)
{
	while (connection->state == CONNECTION_UP && connection->out_sent < connection->out_size) {
		const ssize_t n = send(connection->fd, connection->out + connection->out_sent,
			connection->out_size - connection->out_sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 && errno != EINTR)
			connection_lost(client, connection, -errno, "the connection broke");
		else if (n > 0)
			connection->out_sent += (size_t)n;
	}
	connection->out_size = connection->out_sent = 0;
}

/* ---- sending ------------------------------------------------------------------------------ */

/* The one with the fewest calls of those that are up and have room; NULL: none. */
static struct nfs_connection *client_connection(const struct nfs_client *client)
{
	struct nfs_connection *best = NULL;
	for (unsigned i = 0; i < client->options.connections; i++) {
		struct nfs_connection *const connection = &client->connections[i];
		if (connection->state == CONNECTION_UP &&
			connection->out_size + NFS_CALL_BYTES <= CLIENT_OUT_BYTES &&
			(!best || connection->in_flight < best->in_flight))
			best = connection;
	}
	return best;
}

static void client_send_one(struct nfs_client *client, struct nfs_connection *connection,
	struct nfs_call *call, uint64_t now_ns)
{
	const uint16_t slot = client->free_slots[client->free_count - 1];
	const uint32_t xid = (uint32_t)client->generations[slot] << XID_SLOT_BITS | slot;
	const int size =
		nfs_call_write(call, &client->who, xid, connection->out + connection->out_size);
	if (size < 0) {
		client_end(client, call, size);
		return;
	}
	client->free_count--;
	client->slots[slot] = call;
	connection->out_size += (size_t)size;
	if (connection->in_flight++ == 0)
		connection->heard_ns = now_ns;
	call->slot = slot;
	call->connection = (unsigned)(connection - client->connections);
	call->sent_ns = now_ns;
	call->sent_bytes = (uint32_t)size;
	if (call->tries++ > 0 && client->options.counters)
		counter_add(&client_counter(client, call)->repeats, 1);
}

/* What TCP knows of the way. */
static void client_count_wire(const struct nfs_client *client)
{
	struct nfs_counters *const counters = client->options.counters;
	struct tcp_info info = {0};
	socklen_t size = sizeof info;
	const struct nfs_connection *const connection = &client->connections[0];
	if (!counters || connection->state != CONNECTION_UP ||
		getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
		return;
	atomic_store_explicit(&counters->wire_ns, info.tcpi_rtt * NS_PER_US, memory_order_relaxed);
	atomic_store_explicit(&counters->packet_bytes, info.tcpi_rcv_mss, memory_order_relaxed);
}

static void client_send_probe(struct nfs_client *client, uint64_t now_ns)
{
	struct nfs_connection *const connection =
		&client->connections[client->connection_count - 1];
	if (!client->options.probes || client->probing || client->root.size == 0 ||
		now_ns < client->probe_at_ns || connection->state != CONNECTION_UP ||
		!client_is_busy(client) || client->free_count == 0)
		return;
	client->probe_at_ns = now_ns + PROBE_MS * NS_PER_MS;
	client->probe = (struct nfs_call){.kind = NFS_PING,
		.from = &client->root,
		.path = "",
		.asked_ns = now_ns,
		.step_ns = now_ns};
	client_begin(client, &client->probe);
	client->probing = true;
	client_send_one(client, connection, &client->probe, now_ns);
	client_count_wire(client);
}

static void client_send(struct nfs_client *client, uint64_t now_ns)
{
	while (client->later.head && client->later.head->not_before_ns <= now_ns)
		call_list_push(&client->waiting, call_list_pop(&client->later));
	while (client->waiting.head && client->free_count > 0) {
		struct nfs_connection *const connection = client_connection(client);
		if (!connection)
			break;
		client_send_one(client, connection, call_list_pop(&client->waiting), now_ns);
	}
	client_send_probe(client, now_ns);
	for (unsigned i = 0; i < client->connection_count; i++)
		connection_flush(client, &client->connections[i]);
}

void nfs_client_submit(struct nfs_client *client, struct nfs_call *call)
{
	call->asked_ns = clock_now_ns();
	call->step_ns = call->asked_ns;
	call->tries = 0;
	client_begin(client, call);
	if (!client_is_busy(client))
		client->heard_ns = call->asked_ns;
	if (client->dead)
		client_end(client, call, client->dead);
	else
		call_list_push(&client->waiting, call);
}

/* ---- receiving ---------------------------------------------------------------------------- */

static struct nfs_call *client_find(const struct nfs_client *client, uint32_t xid, unsigned index)
{
	const uint32_t slot = xid & ((1U << XID_SLOT_BITS) - 1);
	if (slot >= client->slot_count || client->generations[slot] != xid >> XID_SLOT_BITS)
		return NULL;
	struct nfs_call *const call = client->slots[slot];
	return call && call->connection == index ? call : NULL;
}

static void client_heard(
	struct nfs_client *client, struct nfs_connection *connection, const struct nfs_call *call)
{
	char name[300];
	char span[CLOCK_UTC_BYTES];
	const uint64_t now_ns = clock_now_ns();
	connection->heard_ns = now_ns;
	connection->retry_pause_ns = RETRY_FIRST_MS * NS_PER_MS;
	if (call == &client->probe) /* a server that answers these alone is of no use */
		return;
	if (client->said_quiet && atomic_exchange(&nfs_said.quiet, false))
		log_info("the NFS server %s answers again, after %s", client_name(client, name),
			clock_format_span((double)(now_ns - client->heard_ns) / (double)NS_PER_S,
				span, sizeof span));
	client->said_quiet = false;
	client->heard_ns = now_ns;
}

/* A reply that begins at `bytes`, of which `have` are there and `size` will be.  False: more of it
 * must come first, or the connection is lost; else *used says how much of it is done with. */
static bool connection_take(struct nfs_client *client, struct nfs_connection *connection,
	const uint8_t *bytes, size_t have, size_t size, size_t *used)
{
	const unsigned index = (unsigned)(connection - client->connections);
	struct nfs_call *const call = client_find(client, nfs_reply_xid(bytes), index);
	*used = have < size ? have : size;
	connection->passing = size - *used;
	if (!call) /* given up meanwhile */
		return true;
	if (have < size && (call->kind != NFS_READ || have < NFS_HEAD_BYTES)) {
		connection->passing = 0;
		return false;
	}
	size_t data_at;
	const char *why;
	if (nfs_reply_read(call, bytes, *used, size, &data_at, &why)) {
		connection_lost(client, connection, -EBADMSG, why);
		return false;
	}
	client_heard(client, connection, call);
	call->reply_bytes = (uint32_t)size + 4;
	if (call->got > 0) {
		const size_t there = *used - data_at;
		connection->filled = there < call->got ? (uint32_t)there : call->got;
		memcpy(call->data, bytes + data_at, connection->filled);
		if (connection->filled < call->got) {
			connection->filling = call;
			connection->passing -= call->got - connection->filled;
			return true;
		}
	}
	client_free_slot(client, call);
	client_answered(client, call);
	return true;
}

/* A reply in several fragments is gathered before it is taken.  How much of `have` bytes are the fragment's. */
static size_t connection_gather(struct nfs_client *client, struct nfs_connection *connection,
	const uint8_t *bytes, size_t have)
{
	const size_t more = have < connection->fragment_left ? have : connection->fragment_left;
	struct buffer *const gathered = &connection->gathered;
	buffer_add(gathered, bytes, more);
	connection->fragment_left -= more;
	if (gathered->failed || gathered->size > NFS_REQUEST_MAX + NFS_RECORD_EXTRA) {
		connection_lost(
			client, connection, -EBADMSG, "a reply is longer than was asked for");
	} else if (connection->fragment_left == 0 && connection->fragment_is_last) {
		const size_t size = gathered->size;
		size_t used;
		gathered->size = 0;
		if (size < NFS_RECORD_LEAST)
			connection_lost(client, connection, -EBADMSG, "it sends no replies of NFS");
		else
			(void)connection_take(client, connection, (const uint8_t *)gathered->data,
				size, size, &used);
	}
	return more;
}

/* Takes what has come: replies behind markers, which tell their size and whether that is all. */
static void connection_take_all(struct nfs_client *client, struct nfs_connection *connection)
{
	size_t at = 0;
	while (connection->state == CONNECTION_UP && !connection->filling) {
		const uint8_t *const bytes = connection->in + at;
		const size_t have = connection->in_size - at;
		if (have > 0 && connection->passing > 0) {
			const size_t pass = have < connection->passing ? have : connection->passing;
			connection->passing -= pass;
			at += pass;
			continue;
		}
		if (have > 0 && connection->fragment_left > 0) {
			at += connection_gather(client, connection, bytes, have);
			continue;
		}
		if (have < 4)
			break;
		const uint32_t marker = nfs_reply_xid(bytes);
		const size_t size = marker & 0x7fffffff;
		if (marker == size || connection->gathered.size > 0) {
			connection->fragment_left = size;
			connection->fragment_is_last = marker != size;
			at += 4;
			if (size == 0) /* nothing follows that would end the reply */
				(void)connection_gather(client, connection, bytes, 0);
			continue;
		}
		if (have < 4 + NFS_RECORD_LEAST)
			break;
		if (size < NFS_RECORD_LEAST || size > NFS_REQUEST_MAX + NFS_RECORD_EXTRA) {
			connection_lost(client, connection, -EBADMSG, "it sends no replies of NFS");
			return;
		}
		size_t used;
		if (!connection_take(client, connection, bytes + 4, have - 4, size, &used))
			break;
		at += 4 + used;
	}
	if (connection->state != CONNECTION_UP)
		return;
	connection->in_size -= at;
	memmove(connection->in, connection->in + at, connection->in_size);
	if (connection->in_size == CLIENT_IN_BYTES)
		connection_lost(
			client, connection, -EBADMSG, "a reply is longer than was asked for");
}

static void connection_filled(
	struct nfs_client *client, struct nfs_connection *connection, size_t more)
{
	struct nfs_call *const call = connection->filling;
	connection->filled += (uint32_t)more;
	if (connection->filled < call->got)
		return;
	connection->filling = NULL;
	client_free_slot(client, call);
	client_heard(client, connection, call);
	client_answered(client, call);
}

static void connection_receive(struct nfs_client *client, struct nfs_connection *connection)
{
	while (connection->state == CONNECTION_UP) {
		struct nfs_call *const call = connection->filling;
		uint8_t *const to = call ? call->data + connection->filled
					 : connection->in + connection->in_size;
		const size_t room = call ? call->got - connection->filled
					 : CLIENT_IN_BYTES - connection->in_size;
		const ssize_t n = recv(connection->fd, to, room, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			connection_lost(client, connection, n < 0 ? -errno : -ECONNRESET,
				n < 0 ? "the connection broke" : "it closed the connection");
			return;
		}
		if (call) {
			connection_filled(client, connection, (size_t)n);
		} else {
			connection->in_size += (size_t)n;
			connection_take_all(client, connection);
		}
		if ((size_t)n < room) /* all there was: the next poll says when there is more */
			return;
	}
}

/* ---- time --------------------------------------------------------------------------------- */

static void client_say_quiet(struct nfs_client *client, uint64_t quiet_ns)
{
	char name[300];
	char limit[UNITS_BYTES];
	if (client->said_quiet || quiet_ns < SAY_QUIET_S * NS_PER_S)
		return;
	client->said_quiet = true;
	if (atomic_exchange(&nfs_said.quiet, true))
		return;
	log_warn("the NFS server %s has not answered for %d s; it has until read.timeout = %s",
		client_name(client, name), SAY_QUIET_S,
		units_format_duration((double)client->options.timeout_ns, limit));
}

/* Calls that a server forgets while it answers others. */
static void client_end_forgotten(struct nfs_client *client, uint64_t now_ns)
{
	for (unsigned i = 0; i < client->slot_count; i++) {
		struct nfs_call *const call = client->slots[i];
		if (!call || now_ns - call->asked_ns <= client->options.timeout_ns ||
			now_ns - call->sent_ns <= client->options.timeout_ns / 2)
			continue;
		if (client->connections[call->connection].filling == call)
			continue;
		client_free_slot(client, call);
		client_end(client, call, -ETIMEDOUT);
	}
}

static void client_check_time(struct nfs_client *client)
{
	const uint64_t now_ns = clock_now_ns();
	const uint64_t limit_ns = client->options.timeout_ns;
	char name[300];
	char limit[UNITS_BYTES];
	if (!client_is_busy(client))
		return;
	for (unsigned i = 0; i < client->connection_count; i++) {
		struct nfs_connection *const connection = &client->connections[i];
		if (connection->state != CONNECTION_DOWN &&
			(connection->in_flight > 0 || connection->state == CONNECTION_OPENING) &&
			now_ns - connection->heard_ns > limit_ns / 2)
			connection_lost(client, connection, -ETIMEDOUT, "it says nothing");
	}
	client_end_forgotten(client, now_ns);
	client_say_quiet(client, now_ns - client->heard_ns);
	if (now_ns - client->heard_ns <= limit_ns)
		return;
	(void)error_set(&client->why_dead, -ETIMEDOUT,
		"the NFS server %s has not answered for %s (read.timeout)%s%s",
		client_name(client, name), units_format_duration((double)limit_ns, limit),
		client->trouble.text[0] ? "; the last trouble: " : "", client->trouble.text);
	client_die(client, -ETIMEDOUT);
}

/* How long nothing has to be done but to listen. */
static uint64_t client_patience(const struct nfs_client *client, uint64_t now_ns, uint64_t wait_ns)
{
	uint64_t until_ns = now_ns + wait_ns;
	if (client->done.head)
		return 0;
	if (client->later.head && client->later.head->not_before_ns < until_ns)
		until_ns = client->later.head->not_before_ns;
	for (unsigned i = 0; i < client->connection_count; i++) {
		const struct nfs_connection *const connection = &client->connections[i];
		if (connection->state == CONNECTION_DOWN && connection->retry_at_ns < until_ns)
			until_ns = connection->retry_at_ns;
	}
	const uint64_t look_ns = now_ns + client->options.timeout_ns / 8;
	if (look_ns < until_ns)
		until_ns = look_ns;
	return until_ns > now_ns ? until_ns - now_ns : 0;
}

void nfs_client_step(struct nfs_client *client, uint64_t wait_ns)
{
	const uint64_t now_ns = clock_now_ns();
	client->away_ns = now_ns - client->left_at_ns;
	for (unsigned i = 0; i < client->connection_count && !client->dead; i++) {
		struct nfs_connection *const connection = &client->connections[i];
		if (connection->state == CONNECTION_DOWN && connection->retry_at_ns <= now_ns)
			connection_open(client, connection, now_ns);
	}
	client_send(client, now_ns);
	wait_ns = client_patience(client, now_ns, wait_ns);
	if (client->has_ring)
		client_wait_ring(client, wait_ns);
	else
		client_wait_poll(client, wait_ns);
	for (unsigned i = client->connection_count; i-- > 0;) { /* the probe's first */
		struct nfs_connection *const connection = &client->connections[i];
		if (connection->ready_out && connection->state == CONNECTION_OPENING)
			connection_opened(client, connection);
		if (connection->ready_in) {
			connection_receive(client, connection);
			connection_tell_arrivals(client, connection);
		}
		connection->ready_in = connection->ready_out = false;
	}
	client_check_time(client);
	client->left_at_ns = clock_now_ns();
}

struct nfs_call *nfs_client_take(struct nfs_client *client)
{
	return call_list_pop(&client->done);
}

int nfs_client_do(struct nfs_client *client, struct nfs_call *call)
{
	const atomic_bool *const stop = client->options.stop;
	nfs_client_submit(client, call);
	while (!client->done.head) {
		if (stop && atomic_load_explicit(stop, memory_order_relaxed))
			nfs_client_abandon(client, -EINTR);
		else
			nfs_client_step(client, 100 * NS_PER_MS);
	}
	(void)nfs_client_take(client);
	return call->status;
}

/* ---- the client --------------------------------------------------------------------------- */

static int client_resolve(struct nfs_client *client, struct error *err)
{
	const struct nfs_address *const address = &client->options.address;
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	const int code = getaddrinfo(address->host, address->port, &hints, &found);
	if (code)
		return error_set(err, -ENOENT, "cannot find the NFS server '%s': %s", address->host,
			gai_strerror(code));
	memcpy(&client->where, found->ai_addr, found->ai_addrlen);
	client->where_bytes = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

uint64_t nfs_client_bytes(const struct nfs_options *options)
{
	return sizeof(struct nfs_client) + FOLDERS_KNOWN * sizeof(struct known_folder) +
	       (options->connections + options->probes) * sizeof(struct nfs_connection) +
	       (options->depth + options->probes) *
		       (sizeof(struct nfs_call *) + 2 * sizeof(uint16_t));
}

static int client_allocate(struct nfs_client *client)
{
	const unsigned depth = client->options.depth + client->options.probes;
	client->connection_count = client->options.connections + client->options.probes;
	client->slot_count = depth;
	client->connections = calloc(client->connection_count, sizeof *client->connections);
	client->slots = calloc(depth, sizeof *client->slots);
	client->generations = calloc(depth, sizeof *client->generations);
	client->free_slots = calloc(depth, sizeof *client->free_slots);
	if (!client->connections || !client->slots || !client->generations || !client->free_slots)
		return -ENOMEM;
	for (unsigned i = 0; i < depth; i++)
		client->free_slots[i] = (uint16_t)(depth - 1 - i);
	client->free_count = depth;
	for (unsigned i = 0; i < client->connection_count; i++)
		client->connections[i].retry_pause_ns = RETRY_FIRST_MS * NS_PER_MS;
	return 0;
}

/* A port that nobody listens on is told at once: mostly the server was never started. */
static int client_connect(struct nfs_client *client, struct error *err)
{
	const atomic_bool *const stop = client->options.stop;
	const uint64_t start_ns = clock_now_ns();
	connection_open(client, client->connections, start_ns);
	while (client->connections[0].state != CONNECTION_UP) {
		if (stop && atomic_load_explicit(stop, memory_order_relaxed))
			return error_set(err, -EINTR, "interrupted");
		if (client->connections[0].state == CONNECTION_DOWN && !client->options.patient) {
			*err = client->trouble;
			return -ECONNREFUSED;
		}
		if (clock_now_ns() - start_ns > client->options.timeout_ns) {
			char name[300];
			return error_set(err, -ETIMEDOUT,
				"the NFS server %s does not answer within read.timeout",
				client_name(client, name));
		}
		nfs_client_step(client, 100 * NS_PER_MS);
	}
	return 0;
}

/* Connected, and nothing asked yet. */
static int client_start(
	struct nfs_client **out, const struct nfs_options *options, struct error *err)
{
	*out = NULL;
	struct nfs_client *const client = calloc(1, sizeof *client);
	if (!client)
		return error_set(err, -ENOMEM, "no memory for a client of NFS");
	client->options = *options;
	nfs_identity_of_process(&client->who);
	client->has_ring = io_uring_queue_init(CLIENT_RING_ENTRIES, &client->ring, 0) == 0;
	int code = client_allocate(client);
	if (code)
		(void)error_set(err, code, "no memory for a client of NFS");
	else
		code = client_resolve(client, err);
	if (!code)
		code = client_connect(client, err);
	if (code)
		nfs_client_close(client);
	else
		*out = client;
	return code;
}

/* Why the first calls of all failed, in words. */
static int client_refused(struct nfs_client *client, int code, struct error *err)
{
	char name[300];
	if (client->dead)
		return nfs_client_dead(client, err);
	if (code == -EINTR)
		return error_set(err, code, "interrupted while the NFS server %s was asked",
			client_name(client, name));
	if (code == -EBADMSG || code == -ECONNRESET)
		return error_set(err, code, "%s", client->trouble.text);
	if (code == -EPROTONOSUPPORT)
		return error_set(err, code, "the NFS server %s speaks neither NFSv4.0 nor NFSv3",
			client_name(client, name));
	return error_set_errno(err, -code, "the NFS server %s, '%.200s'", client_name(client, name),
		client->options.address.path);
}

/* One call to a program of the server that listens on another port. */
static int client_ask_beside(struct nfs_client *client, uint64_t port, struct nfs_call *call)
{
	struct nfs_client *beside;
	struct nfs_options options = client->options;
	options.connections = options.depth = 1;
	options.probes = false;
	options.counters = NULL;
	options.arrivals = NULL;
	(void)snprintf(options.address.port, sizeof options.address.port, "%u", (unsigned)port);
	int code = client_start(&beside, &options, &client->trouble);
	if (code)
		return code;
	beside->version = 3;
	code = nfs_client_do(beside, call);
	nfs_client_close(beside);
	return code;
}

/* The mount program is asked for at the port of NFS itself, where some servers have it, then where the
 * port mapper says. */
static int client_mount(struct nfs_client *client, struct nfs_call *mount)
{
	struct nfs_call find = {.kind = NFS_FIND, .path = ""};
	int code = nfs_client_do(client, mount);
	if (code != -EPROTONOSUPPORT)
		return code;
	code = client_ask_beside(client, PORT_MAPPER, &find);
	if (code || find.most_bytes == 0 || find.most_bytes > UINT16_MAX)
		return -EPROTONOSUPPORT;
	return client_ask_beside(client, find.most_bytes, mount);
}

static int client_find_root3(struct nfs_client *client, struct nfs_call *look)
{
	struct nfs_call mount = {.kind = NFS_MOUNT, .path = client->options.address.path};
	client->version = 3;
	int code = client_mount(client, &mount);
	if (code)
		return code;
	*look = (struct nfs_call){.kind = NFS_LIMITS, .from = &mount.handle, .path = ""};
	code = nfs_client_do(client, look);
	if (!code && look->what.kind == STORE_UNKNOWN)
		look->what.kind = STORE_FOLDER;
	client->folders = calloc(FOLDERS_KNOWN, sizeof *client->folders);
	return code || client->folders ? code : -ENOMEM;
}

static int client_find_root(struct nfs_client *client, struct error *err)
{
	static const struct nfs_handle none = {0};
	char name[300];
	struct nfs_counters *const counters = client->options.counters;
	struct nfs_call look = {
		.kind = NFS_LOOK, .from = &none, .path = client->options.address.path};
	client->version = 4;
	int code = nfs_client_do(client, &look);
	if (code == -EPROTONOSUPPORT)
		code = client_find_root3(client, &look);
	if (code)
		return client_refused(client, code, err);
	client->root = look.handle;
	client->request_bytes = look.most_bytes > 0 && look.most_bytes < NFS_REQUEST_MAX
					? (uint32_t)look.most_bytes
					: NFS_REQUEST_MAX;
	if (counters) {
		atomic_store(&counters->request_bytes, client->request_bytes);
		atomic_store(&counters->version, client->version);
	}
	return look.what.kind == STORE_FOLDER
		       ? 0
		       : error_set(err, -ENOTDIR, "the NFS server %s: '%.200s' is no folder",
				 client_name(client, name), client->options.address.path);
}

int nfs_client_open(struct nfs_client **out, const struct nfs_options *options, struct error *err)
{
	int code = client_start(out, options, err);
	if (code)
		return code;
	code = client_find_root(*out, err);
	if (code) {
		nfs_client_close(*out);
		*out = NULL;
	}
	return code;
}

void nfs_client_close(struct nfs_client *client)
{
	if (!client)
		return;
	for (unsigned i = 0; client->connections && i < client->connection_count; i++) {
		connection_close(client, &client->connections[i]);
		buffer_release(&client->connections[i].gathered);
	}
	if (client->has_ring)
		io_uring_queue_exit(&client->ring);
	free(client->folders);
	free(client->connections);
	free(client->slots);
	free(client->generations);
	free(client->free_slots);
	free(client);
}

const struct nfs_handle *nfs_client_root(const struct nfs_client *client)
{
	return &client->root;
}

uint32_t nfs_client_request_bytes(const struct nfs_client *client)
{
	return client->request_bytes;
}
