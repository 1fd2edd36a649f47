/* NFS: calls and replies as bytes, and a client against a scripted server, whose replies come late, in pieces, in another
 * order, twice, or not at all. */
#include "harness/base/clock.h"
#include "tests/measuring.h"
#include "workloads/source/nfs_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* --- addresses ------------------------------------------------------------------------------------- */

static void test_addresses(void **state)
{
	(void)state;
	struct nfs_address address;
	struct error err;
	assert_int_equal(nfs_address_read("nfs://server/export/a b", &address, &err), 0);
	assert_string_equal(address.host, "server");
	assert_string_equal(address.port, "2049");
	assert_string_equal(address.path, "/export/a b");
	assert_int_equal(nfs_address_read("nfs://[fe80::1]:20490/x", &address, &err), 0);
	assert_string_equal(address.host, "fe80::1");
	assert_string_equal(address.port, "20490");
	assert_int_equal(nfs_address_read("nfs://10.0.0.1", &address, &err), 0);
	assert_string_equal(address.path, "");
	static const char *const wrong[] = {"nfs://", "nfs:///a", "nfs://a:/b", "nfs://a:0/b",
		"nfs://a:65536/b", "nfs://a:1x/b", "nfs://[::1/b", "nfs://[::1]x/b"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(nfs_address_read(wrong[i], &address, &err), -EINVAL);
}

/* --- bytes ------------------------------------------------------------------------------------------ */

/* A reply in the making. */
struct reply {
	uint8_t bytes[512];
	size_t size;
};

static void reply_put(struct reply *reply, uint32_t value)
{
	const uint32_t swapped = htonl(value);
	memcpy(reply->bytes + reply->size, &swapped, sizeof swapped);
	reply->size += sizeof swapped;
}

static void reply_put_all(struct reply *reply, const uint32_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		reply_put(reply, values[i]);
}

#define PUT(reply, ...)                                       \
	reply_put_all(reply, (const uint32_t[]){__VA_ARGS__}, \
		sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static const uint32_t header[] = {77, 1, 0, 0, 0, 0, /* compound: */ 0, 0};

static void reply_begin(struct reply *reply, uint32_t results)
{
	*reply = (struct reply){0};
	reply_put_all(reply, header, sizeof header / sizeof *header);
	PUT(reply, results, 24, 0, 15, 0); /* PUTROOTFH, LOOKUP */
}

static const struct nfs_handle root = {4, "root"};

static int read_reply(struct nfs_call *call, const struct reply *reply, size_t *data_at)
{
	const char *why;
	return nfs_reply_read(call, reply->bytes, reply->size, reply->size, data_at, &why);
}

/* Every cut of a reply is refused: nothing is read behind its end (the sanitizers look), and no part of it is taken for all. */
static void refuse_cuts(const struct nfs_call *model, const struct reply *reply, size_t least)
{
	for (size_t size = 0; size < least; size++) {
		struct nfs_call call = *model;
		size_t data_at;
		const char *why;
		uint8_t *const own = malloc(size + 1);
		assert_non_null(own);
		memcpy(own, reply->bytes, size);
		assert_int_equal(nfs_reply_read(&call, own, size, size, &data_at, &why), -EBADMSG);
		assert_non_null(why);
		free(own);
		if (call.names)
			call.names->size = 0;
	}
}

static void test_look(void **state)
{
	(void)state;
	struct reply reply;
	struct nfs_call call = {.kind = NFS_LOOK, .from = &root, .path = "a/b"};
	const struct nfs_call model = call;
	size_t data_at;
	reply_begin(&reply, 4);
	PUT(&reply, 10, 0, 5, 0x68616e64, 0x6c000000);
	/* type, size, fsid, fileid, maxread; time of modification */
	PUT(&reply, 9, 0, 2, 1U << 1 | 1U << 4 | 1U << 8 | 1U << 20 | 1U << 30, 1U << 21,
		4 + 8 * 5 + 12);
	PUT(&reply, 1, 1, 2, 0, 3, 0, 4, 0, 5, 0, 65536, 0, 7, 8);
	assert_int_equal(read_reply(&call, &reply, &data_at), 0);
	assert_int_equal(call.status, 0);
	assert_int_equal(call.handle.size, 5);
	assert_memory_equal(call.handle.bytes, "handl", 5);
	assert_int_equal(call.what.kind, STORE_FILE);
	assert_true(call.what.bytes == (1ULL << 32) + 2);
	assert_int_equal(call.what.inode, 5);
	assert_int_equal(call.most_bytes, 65536);
	assert_true(call.what.modified_ns == 7000000008);
	refuse_cuts(&model, &reply, reply.size);
}

static void test_refusals(void **state)
{
	(void)state;
	static const struct {
		uint32_t status;
		int code;
	} known[] = {{2, -ENOENT}, {13, -EACCES}, {70, -ESTALE}, {10001, -ESTALE}, {10008, -EAGAIN},
		{10029, -ELOOP}, {10099, -EREMOTEIO}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct reply reply = {0};
		struct nfs_call call = {.kind = NFS_LOOK, .from = &root, .path = "a"};
		size_t data_at;
		PUT(&reply, 77, 1, 0, 0, 0, 0, known[i].status, 0, 2, 24, 0, 15, known[i].status);
		assert_int_equal(read_reply(&call, &reply, &data_at), 0);
		assert_int_equal(call.status, known[i].code);
	}
	/* No such version; denied. */
	struct reply reply = {0};
	struct nfs_call call = {.kind = NFS_LOOK, .from = &root, .path = "a"};
	size_t data_at;
	PUT(&reply, 77, 1, 0, 0, 0, 2, 3, 3);
	assert_int_equal(read_reply(&call, &reply, &data_at), 0);
	assert_int_equal(call.status, -EPROTONOSUPPORT);
	reply.size = 0;
	PUT(&reply, 77, 1, 1, 1, 1);
	assert_int_equal(read_reply(&call, &reply, &data_at), 0);
	assert_int_equal(call.status, -EACCES);
	/* All went well, but nothing was done. */
	reply.size = 0;
	reply_put_all(&reply, header, sizeof header / sizeof *header);
	PUT(&reply, 0);
	assert_int_equal(read_reply(&call, &reply, &data_at), -EBADMSG);
}

static void test_read(void **state)
{
	(void)state;
	struct reply reply;
	uint8_t room[8];
	struct nfs_call call = {
		.kind = NFS_READ, .from = &root, .path = "a", .count = 8, .data = room};
	const struct nfs_call model = call;
	size_t data_at;
	reply_begin(&reply, 4);
	PUT(&reply, 10, 0, 4, 0x61626364, 25, 0, 1, 6, 0x31323334, 0x35360000);
	assert_int_equal(read_reply(&call, &reply, &data_at), 0);
	assert_int_equal(call.status, 0);
	assert_int_equal(call.got, 6);
	assert_true(call.end);
	assert_memory_equal(reply.bytes + data_at, "123456", 6);
	refuse_cuts(&model, &reply, data_at + 6);
	/* More than was asked for, or than comes. */
	const size_t length_at = data_at - 4;
	reply.bytes[length_at + 3] = 9;
	assert_int_equal(read_reply(&call, &reply, &data_at), -EBADMSG);
	reply.bytes[length_at] = 0xff;
	assert_int_equal(read_reply(&call, &reply, &data_at), -EBADMSG);
}

/* NFSv3: a step down the path, and what is at its end. */
static void test_version_3(void **state)
{
	(void)state;
	struct reply reply = {0};
	struct nfs_call call = {.kind = NFS_LOOK, .version = 3, .part_bytes = 1};
	const struct nfs_call model = call;
	size_t data_at;
	PUT(&reply, 77, 1, 0, 0, 0, 0, 0, 4, 0x68616e64, 1);
	/* type, mode, links, user, group, size, used, device, system, inode, and three times */
	PUT(&reply, 1, 0, 1, 0, 0, 1, 2, 0, 0, 0, 0, 0, 4, 0, 5, 0, 0, 7, 8, 0, 0, 0);
	assert_int_equal(read_reply(&call, &reply, &data_at), 0);
	assert_int_equal(call.status, 0);
	assert_memory_equal(call.handle.bytes, "hand", 4);
	assert_int_equal(call.what.kind, STORE_FILE);
	assert_true(call.what.bytes == (1ULL << 32) + 2);
	assert_int_equal(call.what.inode, 5);
	assert_true(call.what.modified_ns == 7000000008);
	refuse_cuts(&model, &reply, reply.size - 4);

	uint8_t room[8];
	struct nfs_call read = {.kind = NFS_READ, .version = 3, .count = 8, .data = room};
	const struct nfs_call read_model = read;
	reply.size = 0;
	PUT(&reply, 77, 1, 0, 0, 0, 0, 0, 0, 6, 1, 6, 0x31323334, 0x35360000);
	assert_int_equal(read_reply(&read, &reply, &data_at), 0);
	assert_int_equal(read.got, 6);
	assert_true(read.end);
	assert_memory_equal(reply.bytes + data_at, "123456", 6);
	refuse_cuts(&read_model, &reply, data_at + 6);
	/* A handle of NFSv3 has 64 bytes at most. */
	reply.size = 0;
	PUT(&reply, 77, 1, 0, 0, 0, 0, 0, 65);
	reply.size += 68;
	call = model;
	assert_int_equal(read_reply(&call, &reply, &data_at), -EBADMSG);
}

static void expect_name(const struct buffer *names, size_t *at, enum store_kind kind,
	const char *name, uint64_t bytes, int64_t modified_ns)
{
	struct store_stat what;
	assert_true(names->size >= *at + sizeof what + strlen(name) + 1);
	memcpy(&what, names->data + *at, sizeof what);
	assert_int_equal(what.kind, kind);
	assert_int_equal(what.bytes, bytes);
	assert_int_equal(what.modified_ns, modified_ns);
	assert_string_equal(names->data + *at + sizeof what, name);
	*at += sizeof what + strlen(name) + 1;
}

static void test_list(void **state)
{
	(void)state;
	struct reply reply;
	struct buffer names = {0};
	struct nfs_call call = {.kind = NFS_LIST, .from = &root, .path = "", .names = &names};
	const struct nfs_call model = call;
	size_t data_at;
	reply_begin(&reply, 3);
	PUT(&reply, 26, 0, 1, 2); /* verifier */
	PUT(&reply, 1, 0, 3, 2, 0x61620000, 1, 1U << 1, 4, 2);
	const size_t name_at = reply.size - 5 * 4;
	PUT(&reply, 1, 0, 4, 1, 0x63000000, 2, 1U << 1 | 1U << 4 | 1U << 11, 1U << 21, 28, 1, 0, 77,
		0, 0, 3, 5);
	/* A time without a size. */
	PUT(&reply, 1, 0, 5, 1, 0x64000000, 2, 1U << 1, 1U << 21, 16, 1, 0, 3, 5);
	PUT(&reply, 0, 1);
	refuse_cuts(&model, &reply, reply.size);
	assert_int_equal(read_reply(&call, &reply, &data_at), 0);
	assert_int_equal(call.status, 0);
	assert_true(call.end);
	assert_int_equal(call.cookie, 5);
	size_t at = 0;
	expect_name(&names, &at, STORE_FOLDER, "ab", 0, 0);
	expect_name(&names, &at, STORE_FILE, "c", 77, 3000000005);
	expect_name(&names, &at, STORE_FILE, "d", 0, 0);
	assert_int_equal(names.size, at);
	/* Of a call that asked for no names. */
	struct nfs_call other = {.kind = NFS_LOOK, .from = &root, .path = "a"};
	assert_int_equal(read_reply(&other, &reply, &data_at), -EBADMSG);
	/* A name that leads elsewhere is told as bad, and costs the others nothing. */
	for (int i = 0; i < 2; i++) {
		names.size = 0;
		reply.bytes[name_at] = i ? '\0' : '/';
		assert_int_equal(read_reply(&call, &reply, &data_at), 0);
		assert_int_equal(call.status, 0);
		at = 0;
		expect_name(&names, &at, STORE_BAD_NAME, "?b", 0, 0);
		expect_name(&names, &at, STORE_FILE, "c", 77, 3000000005);
	}
	buffer_release(&names);
}

static void test_call(void **state)
{
	(void)state;
	uint8_t out[NFS_CALL_BYTES];
	struct nfs_identity who = {.host = "h", .user = 1, .group = 2};
	char path[NFS_PATH_BYTES + 2];
	memset(path, 'a', sizeof path);
	path[sizeof path - 1] = '\0';
	struct nfs_call call = {
		.kind = NFS_READ, .from = &root, .path = "b//c/", .offset = 5, .count = 6};
	const int size = nfs_call_write(&call, &who, 9, out);
	assert_int_equal(
		size, 4 + 4 * 6 + 4 * 2 + 4 * 6 + 4 * 2 + 4 * 3 + 12 + 12 * 2 + 4 + 4 + 28);
	assert_int_equal(nfs_reply_xid(out), 0x80000000U | (uint32_t)(size - 4));
	assert_int_equal(nfs_reply_xid(out + 4), 9);
	assert_int_equal(nfs_reply_xid(out + size - 4), 6);
	call.path = path; /* of one part, which is too long, too */
	assert_int_equal(nfs_call_write(&call, &who, 9, out), -ENAMETOOLONG);
	path[NFS_PATH_BYTES] = '\0';
	for (size_t i = 1; i < sizeof path - 1; i += 2)
		path[i] = '/';
	assert_int_equal(nfs_call_write(&call, &who, 9, out), -ENAMETOOLONG);
	path[2 * NFS_PATH_PARTS] = '\0';
	assert_true(nfs_call_write(&call, &who, 9, out) > 0);
	for (size_t i = 0; i < NFS_PATH_BYTES; i++)
		path[i] = i % 256 == 255 ? '/' : 'a';
	path[NFS_PATH_BYTES - 1] = '\0';
	who.group_count = 16;
	memset(who.host, 'h', sizeof who.host - 1);
	assert_in_range(nfs_call_write(&call, &who, 9, out), NFS_PATH_BYTES, NFS_CALL_BYTES);
}

/* --- a client and a scripted server ------------------------------------------------------------------ */

enum {
	READS = 16,
	READ_BYTES = 100000, /* more than the client takes in at once */
};

enum manner {
	IN_ORDER,
	BACKWARDS,   /* the last that was asked first */
	IN_PIECES,   /* a few bytes at a time */
	WITH_OTHERS, /* between replies to calls that nobody made */
	BROKEN_ONCE, /* the first connection ends in the middle of a reply */
	SILENT,
	HALF_FIRST, /* the second half of a reply is sent when the test says so */
};

struct script {
	enum manner manner;
	int listener;
	char address[64];
	atomic_uint connections;
	atomic_bool goes_on;
	pthread_t thread;
};

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 7 + at / 251);
}

static bool receive(int fd, void *to, size_t size)
{
	return recv(fd, to, size, MSG_WAITALL) == (ssize_t)size;
}

static void send_bytes(const struct script *script, int fd, const uint8_t *bytes, size_t size)
{
	const size_t piece = script->manner == IN_PIECES    ? 3001
			     : script->manner == HALF_FIRST ? size / 2
							    : size;
	for (size_t at = 0; at < size; at += piece) {
		while (script->manner == HALF_FIRST && size > READ_BYTES / 2 && at > 0 &&
			!atomic_load(&script->goes_on))
			(void)usleep(1000);
		const size_t n = size - at < piece ? size - at : piece;
		if (send(fd, bytes + at, n, MSG_NOSIGNAL) != (ssize_t)n)
			return;
	}
}

static void answer_look(const struct script *script, int fd, uint32_t xid)
{
	struct reply reply = {0};
	PUT(&reply, 0, xid, 1, 0, 0, 0, 0, 0, 0, 3, 24, 0, 10, 0, 4, 0x72000000);
	PUT(&reply, 9, 0, 1, 1U << 1, 4, 2);
	const uint32_t marker = htonl(0x80000000U | (uint32_t)(reply.size - 4));
	memcpy(reply.bytes, &marker, 4);
	send_bytes(script, fd, reply.bytes, reply.size);
}

/* cut: ends in the middle. */
static void answer_read(const struct script *script, int fd, uint32_t xid, uint64_t offset,
	uint32_t count, bool cut)
{
	static uint8_t record[READ_BYTES + 512];
	struct reply reply = {0};
	PUT(&reply, 0, xid, 1, 0, 0, 0, 0, 0, 0, 3, 22, 0, 10, 0, 4, 0x66000000, 25, 0, 0, count);
	const size_t size = reply.size + count + (-count & 3);
	const uint32_t marker = htonl(0x80000000U | (uint32_t)(size - 4));
	memcpy(record, reply.bytes, reply.size);
	memcpy(record, &marker, 4);
	for (uint32_t i = 0; i < count; i++)
		record[reply.size + i] = pattern(offset + i);
	send_bytes(script, fd, record, cut ? size / 2 : size);
}

struct asked {
	uint32_t xid, count;
	uint64_t offset;
};

/* True: a call, which is a READ where its count is not 0. */
static bool receive_call(int fd, struct asked *out)
{
	uint8_t call[1024];
	uint32_t marker;
	if (!receive(fd, &marker, sizeof marker))
		return false;
	const uint32_t size = ntohl(marker) & 0x7fffffff;
	if (size > sizeof call || !receive(fd, call, size))
		return false;
	const bool looks =
		nfs_reply_xid(call + size - 16) == 9; /* GETATTR, which a LOOK ends with */
	*out = (struct asked){nfs_reply_xid(call), looks ? 0 : nfs_reply_xid(call + size - 4),
		nfs_reply_xid(call + size - 8)};
	return true;
}

/* True: goes on. */
static bool answer(struct script *script, int fd, const struct asked *asked)
{
	const bool cut = script->manner == BROKEN_ONCE && script->connections == 1;
	if (script->manner == WITH_OTHERS)
		answer_read(script, fd, 0xffff0000U | asked->xid, 5, 100, false);
	answer_read(script, fd, asked->xid, asked->offset, asked->count, cut);
	return !cut;
}

static void serve_connection(struct script *script, int fd)
{
	struct asked held[READS];
	unsigned count = 0;
	while (receive_call(fd, &held[count])) {
		if (held[count].count == 0) {
			answer_look(script, fd, held[count].xid);
			continue;
		}
		if (script->manner == SILENT)
			continue;
		if (++count < (script->manner == BACKWARDS ? READS : 1))
			continue;
		while (count > 0)
			if (!answer(script, fd, &held[--count]))
				return;
	}
}

static void *serve_all(void *context)
{
	struct script *const script = context;
	for (;;) {
		const int fd = accept(script->listener, NULL, NULL);
		if (fd < 0)
			return NULL;
		atomic_fetch_add(&script->connections, 1);
		serve_connection(script, fd);
		(void)close(fd);
	}
}

static void script_open(struct script *script, enum manner manner)
{
	struct sockaddr_in where = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof where;
	script->manner = manner;
	script->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(script->listener >= 0);
	assert_int_equal(bind(script->listener, (struct sockaddr *)&where, sizeof where), 0);
	assert_int_equal(listen(script->listener, 8), 0);
	assert_int_equal(getsockname(script->listener, (struct sockaddr *)&where, &size), 0);
	(void)snprintf(script->address, sizeof script->address, "nfs://127.0.0.1:%u/",
		(unsigned)ntohs(where.sin_port));
	assert_int_equal(pthread_create(&script->thread, NULL, serve_all, script), 0);
}

static void script_close(struct script *script)
{
	(void)shutdown(script->listener, SHUT_RDWR);
	(void)pthread_join(script->thread, NULL);
	(void)close(script->listener);
}

struct session {
	struct script script;
	struct nfs_client *client;
	struct nfs_counters counters;
	struct arrivals *arrivals;
	struct nfs_call calls[READS];
	uint8_t *data;
};

static void session_open(struct session *session, enum manner manner, uint64_t timeout_ns)
{
	struct error err = {""};
	*session = (struct session){.data = calloc(READS, READ_BYTES), .arrivals = arrivals_new()};
	assert_true(session->data && session->arrivals);
	script_open(&session->script, manner);
	struct nfs_options options = {.connections = 1,
		.depth = READS,
		.timeout_ns = timeout_ns,
		.counters = &session->counters,
		.arrivals = session->arrivals};
	assert_int_equal(nfs_address_read(session->script.address, &options.address, &err), 0);
	if (nfs_client_open(&session->client, &options, &err) != 0)
		fail_msg("%s", err.text);
	for (unsigned i = 0; i < READS; i++) {
		session->calls[i] = (struct nfs_call){.kind = NFS_READ,
			.from = nfs_client_root(session->client),
			.path = "",
			.offset = i * 1000U,
			.count = READ_BYTES - i,
			.data = session->data + (size_t)i * READ_BYTES};
		nfs_client_submit(session->client, &session->calls[i]);
	}
}

static unsigned session_run(struct session *session)
{
	unsigned ended = 0;
	while (ended < READS) {
		nfs_client_step(session->client, NS_PER_S);
		while (nfs_client_take(session->client))
			ended++;
	}
	return ended;
}

static void session_close(struct session *session)
{
	nfs_client_close(session->client);
	script_close(&session->script);
	arrivals_free(session->arrivals);
	free(session->data);
}

static void test_manners(void **state)
{
	(void)state;
	static const enum manner manners[] = {
		IN_ORDER, BACKWARDS, IN_PIECES, WITH_OTHERS, BROKEN_ONCE};
	for (size_t m = 0; m < sizeof manners / sizeof *manners; m++) {
		struct session session;
		session_open(&session, manners[m], 3600 * NS_PER_S);
		assert_int_equal(session_run(&session), READS);
		for (unsigned i = 0; i < READS; i++) {
			const struct nfs_call *const call = &session.calls[i];
			assert_int_equal(call->status, 0);
			assert_int_equal(call->got, call->count);
			for (uint32_t at = 0; at < call->got; at++)
				assert_int_equal(call->data[at], pattern(call->offset + at));
		}
		const struct nfs_counter *const reads = &session.counters.kinds[NFS_READ];
		assert_int_equal(atomic_load(&reads->calls), READS);
		assert_int_equal(atomic_load(&reads->repeats) > 0, manners[m] == BROKEN_ONCE);
		assert_true(atomic_load(&reads->received_bytes) > READS * (READ_BYTES - READS));
		assert_true(atomic_load(&reads->execute_ns) >= atomic_load(&reads->round_trip_ns));
		session_close(&session);
	}
}

/* A reply that has come in part is on its way until the rest has come, and none is afterwards. */
static void test_half_a_reply(void **state)
{
	(void)state;
	struct session session;
	session_open(&session, HALF_FIRST, 3600 * NS_PER_S);
	while (arrivals_ns(session.arrivals, clock_now_ns()) == 0)
		nfs_client_step(session.client, NS_PER_S);
	assert_null(nfs_client_take(session.client));
	atomic_store(&session.script.goes_on, true);
	assert_int_equal(session_run(&session), READS);
	const uint64_t all_ns = arrivals_ns(session.arrivals, clock_now_ns());
	assert_true(all_ns > 0 && arrivals_ns(session.arrivals, UINT64_MAX) == all_ns);
	session_close(&session);
}

/* A connection that ends in the middle of a reply leaves none on its way. */
static void test_half_a_reply_for_ever(void **state)
{
	(void)state;
	struct session session;
	session_open(&session, BROKEN_ONCE, 3600 * NS_PER_S);
	assert_int_equal(session_run(&session), READS);
	const uint64_t all_ns = arrivals_ns(session.arrivals, clock_now_ns());
	assert_true(arrivals_ns(session.arrivals, UINT64_MAX) == all_ns);
	session_close(&session);
}

static void test_silence(void **state)
{
	(void)state;
	struct session session;
	struct error err;
	session_open(&session, SILENT, 200 * NS_PER_MS);
	assert_int_equal(nfs_client_dead(session.client, &err), 0);
	assert_int_equal(session_run(&session), READS);
	assert_int_equal(session.calls[0].status, -ETIMEDOUT);
	assert_int_equal(nfs_client_dead(session.client, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "has not answered for 200 ms (read.timeout)"));
	/* It tried anew, where the machine gave it time to. */
	assert_measured(atomic_load(&session.script.connections) > 1);
	nfs_client_submit(session.client, &session.calls[1]);
	assert_ptr_equal(nfs_client_take(session.client), &session.calls[1]);
	session_close(&session);
}

/* What is on the way ends at once, and what comes of it afterwards disturbs nothing. */
static void test_abandoned(void **state)
{
	(void)state;
	struct session session;
	session_open(&session, IN_ORDER, 3600 * NS_PER_S);
	for (unsigned i = 0; i < 3; i++)
		nfs_client_step(session.client, 0);
	nfs_client_abandon(session.client, -ECANCELED);
	unsigned ended = 0;
	while (nfs_client_take(session.client))
		ended++;
	assert_int_equal(ended, READS);
	for (unsigned i = 0; i < READS; i++)
		nfs_client_submit(session.client, &session.calls[i]);
	assert_int_equal(session_run(&session), READS);
	for (unsigned i = 0; i < READS; i++)
		assert_int_equal(session.calls[i].status, 0);
	session_close(&session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_look),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_version_3),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_manners),
		cmocka_unit_test(test_half_a_reply),
		cmocka_unit_test(test_half_a_reply_for_ever),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_abandoned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
