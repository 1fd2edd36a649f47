/* libFuzzer target: any bytes are a reply to each kind of call of NFS, whole or, of a READ, up to where
 * they have come, and are refused with a reason or taken within their bounds, twice the same.  What was
 * taken of a listing is names; what a path makes of a call fits. */
#include "workloads/source/nfs_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { READ_COUNT = 64 };

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_nfs: %s\n", what);
	abort();
}

static void check_names(const struct buffer *names)
{
	for (size_t at = 0; at < names->size;) {
		struct store_stat what;
		require(names->size - at > sizeof what, "what a name is");
		memcpy(&what, names->data + at, sizeof what);
		require(what.kind <= STORE_BAD_NAME, "a kind");
		at += sizeof what;
		const char *const name = names->data + at;
		const size_t length = strnlen(name, names->size - at);
		require(length > 0 && length < names->size - at, "a name without an end");
		require(strchr(name, '/') == NULL, "a name that leads elsewhere");
		at += length + 1;
	}
}

/* have: bytes that have come, of a reply of `size`. */
static int take(struct nfs_call *call, const uint8_t *bytes, size_t have, size_t size)
{
	/* Of its own size exactly: a read behind it is seen. */
	uint8_t *const own = malloc(have ? have : 1);
	size_t data_at;
	const char *why;
	require(own != NULL, "out of memory");
	memcpy(own, bytes, have);
	const int code = nfs_reply_read(call, own, have, size, &data_at, &why);
	free(own);
	require(code == 0 || (code == -EBADMSG && why), "refused without a reason");
	require(data_at <= have, "data before they have come");
	require(code || (call->got <= call->count && call->got <= size - data_at), "too much data");
	require(call->status <= 0 && call->handle.size <= NFS_HANDLE_BYTES, "results");
	return code;
}

static void try_kind(
	enum nfs_kind kind, unsigned version, bool walks, const uint8_t *data, size_t size)
{
	static const struct nfs_handle none = {0};
	struct buffer names = {0};
	const struct nfs_call model = {.kind = kind,
		.from = &none,
		.path = "a/b",
		.version = version,
		.rest = "b",
		.part_bytes = walks,
		.count = kind == NFS_READ ? READ_COUNT : 0,
		.names = kind == NFS_LIST ? &names : NULL};
	struct nfs_call first = model;
	struct nfs_call second = model;
	const int code = take(&first, data, size, size);
	check_names(&names);
	const size_t names_size = names.size;
	names.size = 0;
	require(take(&second, data, size, size) == code && second.status == first.status &&
			names.size == names_size,
		"not the same twice");
	if (kind == NFS_READ && size > 1)
		(void)take(&second, data, size / 2, size);
	buffer_release(&names);
}

static void try_path(const uint8_t *data, size_t size)
{
	static uint8_t out[NFS_CALL_BYTES];
	static const struct nfs_handle largest = {.size = NFS_HANDLE_BYTES};
	struct nfs_identity who = {.user = 1, .group_count = 16};
	struct error err;
	struct nfs_address address;
	char *const path = malloc(size + 1);
	require(path != NULL, "out of memory");
	memcpy(path, data, size);
	path[size] = '\0';
	memset(who.host, 'h', sizeof who.host - 1);
	for (int kind = 0; kind < NFS_KINDS; kind++) {
		const struct nfs_call call = {.kind = (enum nfs_kind)kind,
			.from = &largest,
			.version = kind < NFS_LIMITS && size % 2 ? 4 : 3,
			.here = largest,
			.path = path};
		const int bytes = nfs_call_write(&call, &who, 1, out);
		require(bytes == -ENAMETOOLONG || (bytes > 0 && bytes <= NFS_CALL_BYTES), "a call");
	}
	const int code = nfs_address_read(path, &address, &err);
	require(code == -EINVAL || (code == 0 && address.host[0] && address.port[0]), "an address");
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int kind = 0; kind < NFS_KINDS; kind++) {
		if (kind < NFS_LIMITS)
			try_kind((enum nfs_kind)kind, 4, false, data, size);
		try_kind((enum nfs_kind)kind, 3, false, data, size);
	}
	try_kind(NFS_READ, 3, true, data, size);
	try_path(data, size);
	return 0;
}
