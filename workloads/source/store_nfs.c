/* The store behind nfs:// addresses.  Any thread calls it; each takes a client of its own for the time of
 * a call, so that calls of several threads are on the way at once. */
#include "workloads/source/nfs_client.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORE_CLIENTS = 64 };

struct nfs_store {
	struct store base;
	struct nfs_options options;
	pthread_mutex_t lock;
	struct nfs_client *idle[STORE_CLIENTS]; /* a stack */
	unsigned idle_count;
	atomic_bool plain_lists; /* the server has no READDIRPLUS */
	int dead; /* of a client that died: the others would only wait as long again */
	struct error why_dead;
};

static struct nfs_store *store_nfs_of(struct store *base)
{
	return (struct nfs_store *)base;
}

static void store_nfs_bury(struct nfs_store *store, int code, const struct error *why)
{
	(void)pthread_mutex_lock(&store->lock);
	if (!store->dead)
		store->why_dead = *why;
	store->dead = code;
	(void)pthread_mutex_unlock(&store->lock);
}

static int store_nfs_borrow(struct nfs_store *store, struct nfs_client **out)
{
	(void)pthread_mutex_lock(&store->lock);
	const int dead = store->dead;
	*out = !dead && store->idle_count > 0 ? store->idle[--store->idle_count] : NULL;
	(void)pthread_mutex_unlock(&store->lock);
	if (dead || *out)
		return dead;
	struct error why;
	const int code = nfs_client_open(out, &store->options, &why);
	if (code)
		store_nfs_bury(store, code, &why);
	return code;
}

static void store_nfs_give_back(struct nfs_store *store, struct nfs_client *client)
{
	struct error why;
	const int dead = nfs_client_dead(client, &why);
	if (dead)
		store_nfs_bury(store, dead, &why);
	(void)pthread_mutex_lock(&store->lock);
	const bool kept = store->idle_count < STORE_CLIENTS && !dead;
	if (kept)
		store->idle[store->idle_count++] = client;
	(void)pthread_mutex_unlock(&store->lock);
	if (!kept)
		nfs_client_close(client);
}

/* A call from the store's folder, or from call->from where that is set. */
static int store_nfs_do(struct nfs_store *store, struct nfs_call *call)
{
	struct nfs_client *client;
	int code = store_nfs_borrow(store, &client);
	if (code)
		return code;
	if (!call->from)
		call->from = nfs_client_root(client);
	if (call->kind == NFS_READ && call->count > nfs_client_request_bytes(client))
		call->count = nfs_client_request_bytes(client);
	code = nfs_client_do(client, call);
	call->from = NULL; /* it may be the client's */
	store_nfs_give_back(store, client);
	return code;
}

static int store_nfs_open(struct store *base, struct error *err)
{
	struct nfs_store *const store = store_nfs_of(base);
	store->options = (struct nfs_options){.connections = 1,
		.depth = 1,
		.timeout_ns = store_patience.timeout_ns,
		.stop = store_patience.stop};
	int code = nfs_address_read(base->address, &store->options.address, err);
	if (!code)
		code = nfs_client_open(&store->idle[0], &store->options, err);
	if (code)
		return code;
	store->options.patient = true;
	store->idle_count = 1;
	(void)pthread_mutex_init(&store->lock, NULL);
	return 0;
}

static void store_nfs_close(struct store *base)
{
	struct nfs_store *const store = store_nfs_of(base);
	for (unsigned i = 0; i < store->idle_count; i++)
		nfs_client_close(store->idle[i]);
	(void)pthread_mutex_destroy(&store->lock);
}

/* Links are not followed: what they lead to is a matter of the one who mounts. */
static int store_nfs_stat(
	struct store *base, const char *path, const union store_file *file, struct store_stat *out)
{
	struct nfs_call call = {
		.kind = NFS_LOOK, .path = file ? "" : path, .from = file ? file->handle : NULL};
	const int code = store_nfs_do(store_nfs_of(base), &call);
	if (!code)
		*out = call.what;
	return code;
}

static int store_nfs_file_open(
	struct store *base, const char *path, bool direct, union store_file *out)
{
	struct nfs_call call = {.kind = NFS_LOOK, .path = path};
	int code = direct ? -EINVAL : store_nfs_do(store_nfs_of(base), &call);
	if (!code && call.what.kind != STORE_FILE)
		code = call.what.kind == STORE_FOLDER ? -EISDIR : -EINVAL;
	if (code)
		return code;
	out->handle = malloc(sizeof call.handle);
	if (!out->handle)
		return -ENOMEM;
	memcpy(out->handle, &call.handle, sizeof call.handle);
	return 0;
}

static void store_nfs_file_close(struct store *base, union store_file file)
{
	(void)base;
	free(file.handle);
}

static ssize_t store_nfs_read(
	struct store *base, union store_file file, uint64_t offset, void *buffer, size_t size)
{
	struct nfs_call call = {.kind = NFS_READ,
		.from = file.handle,
		.path = "",
		.offset = offset,
		.count = size < NFS_REQUEST_MAX ? (uint32_t)size : NFS_REQUEST_MAX,
		.data = buffer};
	const int code = store_nfs_do(store_nfs_of(base), &call);
	return code ? code : (ssize_t)call.got;
}

static int store_nfs_visit(const struct buffer *names, const struct store_visit *visit)
{
	for (size_t at = 0; at < names->size;) {
		struct store_stat what;
		const char *const name = names->data + at + sizeof what;
		memcpy(&what, names->data + at, sizeof what);
		const bool sized = what.kind == STORE_FILE && what.modified_ns != 0;
		const int code =
			strcmp(name, ".") != 0 && strcmp(name, "..") != 0
				? visit->name(visit->context, name, what.kind, sized ? &what : NULL)
				: 0;
		if (code)
			return code;
		at += sizeof what + strlen(name) + 1;
	}
	return 0;
}

/* A part is visited when it is here, and no client is held then: the visitor may ask for more. */
static int store_nfs_list(struct store *base, const char *folder, const struct store_visit *visit)
{
	struct store_stat what;
	struct buffer names = {0};
	atomic_bool *const plain = &store_nfs_of(base)->plain_lists;
	struct nfs_call call = {
		.kind = NFS_LIST, .path = folder, .names = &names, .plain = atomic_load(plain)};
	int code = visit->folder ? store_nfs_stat(base, folder, NULL, &what) : 0;
	if (!code && visit->folder)
		code = visit->folder(visit->context, &what);
	while (!code && !call.end) {
		const uint64_t cookie = call.cookie;
		names.size = 0;
		code = store_nfs_do(store_nfs_of(base), &call);
		if (code == -EOPNOTSUPP && call.version == 3 && !call.plain) {
			call.plain = true;
			atomic_store(plain, true);
			code = 0;
			continue;
		}
		if (!code && !call.end && call.cookie == cookie)
			code = -EBADMSG; /* it would never end */
		if (!code)
			code = store_nfs_visit(&names, visit);
	}
	buffer_release(&names);
	return code;
}

static int store_nfs_dead(struct store *base, struct error *err)
{
	struct nfs_store *const store = store_nfs_of(base);
	(void)pthread_mutex_lock(&store->lock);
	const int code = store->dead;
	if (code)
		*err = store->why_dead;
	(void)pthread_mutex_unlock(&store->lock);
	return code;
}

static const char *store_nfs_describe(const struct store *store, char *out, size_t room)
{
	(void)snprintf(out, room, "the NFS folder '%s'", store->address);
	return out;
}

const struct store_ops store_nfs = {
	.name = "nfs",
	.summary = "an NFS server, without a mount",
	.prefix = "nfs://",
	.size = sizeof(struct nfs_store),
	.open = store_nfs_open,
	.close = store_nfs_close,
	.list = store_nfs_list,
	.stat = store_nfs_stat,
	.file_open = store_nfs_file_open,
	.read = store_nfs_read,
	.file_close = store_nfs_file_close,
	.dead = store_nfs_dead,
	.describe = store_nfs_describe,
};
