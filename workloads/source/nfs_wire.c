/* Writing NFS calls and reading replies. */
#include "workloads/source/nfs_wire.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Numbers of RFC 5531 and RFC 7530. */
enum {
	RPC_VERSION = 2,
	RPC_CALL = 0,
	RPC_REPLY = 1,
	RPC_AUTH_SYS = 1,
	NFS_PROGRAM = 100003,
	NFS_COMPOUND = 1,
	MOUNT_PROGRAM = 100005,
	MOUNT_VERSION = 3,
	MOUNT_MNT = 1,
	PORT_PROGRAM = 100000,
	PORT_VERSION = 2,
	PORT_GET = 3,
	PORT_TCP = 6,
	V3_GETATTR = 1,
	V3_LOOKUP = 3,
	V3_READ = 6,
	V3_READDIR = 16,
	V3_READDIRPLUS = 17,
	V3_FSINFO = 19,
	V3_HANDLE_BYTES = 64,
	OP_GETATTR = 9,
	OP_GETFH = 10,
	OP_LOOKUP = 15,
	OP_PUTFH = 22,
	OP_PUTROOTFH = 24,
	OP_READ = 25,
	OP_READDIR = 26,
	ATTR_TYPE = 1,
	ATTR_SIZE = 4,
	ATTR_FSID = 8,
	ATTR_ERROR = 11,
	ATTR_FILEID = 20,
	ATTR_MAXREAD = 30,
	ATTR_MODIFIED = 53,
	TYPE_FILE = 1,
	TYPE_FOLDER = 2,
	TYPE_LINK = 5,
	NAME_BYTES_MAX = 255,
	VERIFIER_BYTES_MAX = 400, /* of an RPC reply */
};

static const uint32_t last_fragment = 0x80000000;

const char *nfs_kind_name(enum nfs_kind kind)
{
	static const char *const names[NFS_KINDS] = {
		"LOOKUP", "READ", "READDIR", "GETATTR", "FSINFO", "MNT", "GETPORT"};
	return names[kind];
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* Calls are written into NFS_CALL_BYTES, which their bounds fit into. */
static uint8_t *wire_put(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 24);
	at[1] = (uint8_t)(value >> 16);
	at[2] = (uint8_t)(value >> 8);
	at[3] = (uint8_t)value;
	return at + 4;
}

static uint8_t *wire_put_long(uint8_t *at, uint64_t value)
{
	return wire_put(wire_put(at, (uint32_t)(value >> 32)), (uint32_t)value);
}

static uint8_t *wire_put_bytes(uint8_t *at, const void *bytes, uint32_t size)
{
	at = wire_put(at, size);
	memcpy(at, bytes, size);
	memset(at + size, 0, -size & 3);
	return at + size + (-size & 3);
}

/* What has been read of a reply.  After a read past its end, lost is set and everything reads as 0. */
struct wire {
	const uint8_t *start, *at;
	const uint8_t *end; /* of what is there */
	bool lost;
};

static const uint8_t *wire_take(struct wire *wire, size_t size)
{
	if (wire->lost || (size_t)(wire->end - wire->at) < size) {
		wire->lost = true;
		return NULL;
	}
	const uint8_t *const at = wire->at;
	wire->at += size;
	return at;
}

static uint32_t wire_get(struct wire *wire)
{
	const uint8_t *const at = wire_take(wire, 4);
	return at ? nfs_reply_xid(at) : 0;
}

static uint64_t wire_get_long(struct wire *wire)
{
	const uint64_t high = wire_get(wire);
	return high << 32 | wire_get(wire);
}

/* NULL where it is longer than most, or than what is there. */
static const uint8_t *wire_get_bytes(struct wire *wire, uint32_t most, uint32_t *size)
{
	*size = wire_get(wire);
	if (*size > most)
		wire->lost = true;
	const uint8_t *const at = wire_take(wire, *size);
	(void)wire_take(wire, -*size & 3);
	return wire->lost ? NULL : at;
}

uint32_t nfs_reply_xid(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

/* ---- calls -------------------------------------------------------------------------------- */

void nfs_identity_of_process(struct nfs_identity *out)
{
	gid_t groups[256];
	*out = (struct nfs_identity){.user = geteuid(), .group = getegid()};
	if (gethostname(out->host, sizeof out->host - 1) != 0)
		out->host[0] = '\0';
	const int count = getgroups((int)(sizeof groups / sizeof *groups), groups);
	for (int i = 0; i < count && out->group_count < 16; i++)
		out->groups[out->group_count++] = groups[i];
}

struct call_number {
	uint32_t program, version, procedure;
};

static struct call_number call_number_of(const struct nfs_call *call)
{
	static const uint32_t procedures[NFS_KINDS] = {
		V3_GETATTR, V3_READ, V3_READDIRPLUS, V3_GETATTR, V3_FSINFO};
	if (call->kind == NFS_MOUNT)
		return (struct call_number){MOUNT_PROGRAM, MOUNT_VERSION, MOUNT_MNT};
	if (call->kind == NFS_FIND)
		return (struct call_number){PORT_PROGRAM, PORT_VERSION, PORT_GET};
	if (call->version != 3)
		return (struct call_number){NFS_PROGRAM, 4, NFS_COMPOUND};
	if (call->part_bytes > 0)
		return (struct call_number){NFS_PROGRAM, 3, V3_LOOKUP};
	const bool plain = call->kind == NFS_LIST && call->plain;
	return (struct call_number){
		NFS_PROGRAM, 3, plain ? V3_READDIR : (uint32_t)procedures[call->kind]};
}

static uint8_t *call_put_header(
	uint8_t *at, const struct nfs_call *call, const struct nfs_identity *who, uint32_t xid)
{
	const struct call_number number = call_number_of(call);
	const uint32_t host_bytes = (uint32_t)strlen(who->host);
	at = wire_put(wire_put(wire_put(at, xid), RPC_CALL), RPC_VERSION);
	at = wire_put(wire_put(wire_put(at, number.program), number.version), number.procedure);
	at = wire_put(at, RPC_AUTH_SYS);
	at = wire_put(at, 4 + 4 + host_bytes + (-host_bytes & 3) + 12 + 4 * who->group_count);
	at = wire_put_bytes(wire_put(at, 0), who->host, host_bytes);
	at = wire_put(wire_put(wire_put(at, who->user), who->group), who->group_count);
	for (uint32_t i = 0; i < who->group_count; i++)
		at = wire_put(at, who->groups[i]);
	return wire_put(wire_put(at, 0), 0); /* no verifier */
}

static uint8_t *call_put_attributes(uint8_t *at, bool listing)
{
	at = wire_put(at, 2);
	if (listing)
		at = wire_put(at, 1U << ATTR_TYPE | 1U << ATTR_SIZE | 1U << ATTR_ERROR);
	else
		at = wire_put(at, 1U << ATTR_TYPE | 1U << ATTR_SIZE | 1U << ATTR_FSID |
					  1U << ATTR_FILEID | 1U << ATTR_MAXREAD);
	return wire_put(at, 1U << (ATTR_MODIFIED - 32));
}

bool nfs_path_next(const char **path, uint32_t *size)
{
	*path += strspn(*path, "/");
	*size = (uint32_t)strcspn(*path, "/");
	return *size > 0;
}

/* How many parts a path has; "a//b/" has two.  -ENAMETOOLONG: too many, or of too many bytes. */
static int path_parts(const char *path)
{
	uint32_t size;
	int parts = 0;
	if (strlen(path) > NFS_PATH_BYTES)
		return -ENAMETOOLONG;
	for (; nfs_path_next(&path, &size); path += size)
		if (size > NAME_BYTES_MAX || ++parts > NFS_PATH_PARTS)
			return -ENAMETOOLONG;
	return parts;
}

static uint8_t *call_put_way(uint8_t *at, const struct nfs_call *call)
{
	const char *path = call->path;
	uint32_t size;
	if (call->from->size > 0)
		at = wire_put_bytes(wire_put(at, OP_PUTFH), call->from->bytes, call->from->size);
	else
		at = wire_put(at, OP_PUTROOTFH);
	for (; nfs_path_next(&path, &size); path += size)
		at = wire_put_bytes(wire_put(at, OP_LOOKUP), path, size);
	return at;
}

static uint8_t *call_put_deed(uint8_t *at, const struct nfs_call *call)
{
	switch (call->kind) {
	case NFS_READ:
		at = wire_put(wire_put(at, OP_GETFH), OP_READ);
		memset(at, 0, 16); /* the anonymous stateid */
		return wire_put(wire_put_long(at + 16, call->offset), call->count);
	case NFS_LIST:
		at = wire_put_long(wire_put(at, OP_READDIR), call->cookie);
		memcpy(at, call->verifier, sizeof call->verifier);
		at = wire_put(at + sizeof call->verifier, NFS_LIST_BYTES);
		return call_put_attributes(wire_put(at, NFS_LIST_BYTES), true);
	case NFS_LOOK:
		at = wire_put(at, OP_GETFH);
		break;
	default:
		break;
	}
	return call_put_attributes(wire_put(at, OP_GETATTR), false);
}

static uint8_t *call_put_step(uint8_t *at, const struct nfs_call *call)
{
	if (call->kind == NFS_MOUNT)
		return wire_put_bytes(at, call->path, (uint32_t)strlen(call->path));
	if (call->kind == NFS_FIND) {
		at = wire_put(wire_put(at, MOUNT_PROGRAM), MOUNT_VERSION);
		return wire_put(wire_put(at, PORT_TCP), 0);
	}
	at = wire_put_bytes(at, call->here.bytes, call->here.size);
	if (call->part_bytes > 0)
		return wire_put_bytes(at, call->rest, call->part_bytes);
	if (call->kind == NFS_READ)
		return wire_put(wire_put_long(at, call->offset), call->count);
	if (call->kind != NFS_LIST)
		return at;
	at = wire_put_long(at, call->cookie);
	memcpy(at, call->verifier, sizeof call->verifier);
	at = wire_put(at + sizeof call->verifier, NFS_LIST_BYTES);
	return call->plain ? at : wire_put(at, NFS_LIST_BYTES);
}

static uint8_t *call_put_compound(uint8_t *at, const struct nfs_call *call, int parts)
{
	static const uint32_t deeds[NFS_KINDS] = {2, 2, 1, 1};
	at = wire_put(wire_put(at, 0), 0); /* no tag, minor version 0 */
	at = wire_put(at, 1 + (uint32_t)parts + deeds[call->kind]);
	return call_put_deed(call_put_way(at, call), call);
}

int nfs_call_write(
	const struct nfs_call *call, const struct nfs_identity *who, uint32_t xid, uint8_t *out)
{
	const int parts = path_parts(call->path);
	if (parts < 0)
		return parts;
	uint8_t *at = call_put_header(out + 4, call, who, xid);
	at = call->version == 3 ? call_put_step(at, call) : call_put_compound(at, call, parts);
	(void)wire_put(out, last_fragment | (uint32_t)(at - out - 4));
	return (int)(at - out);
}

/* ---- replies ------------------------------------------------------------------------------ */

static int nfs_status_errno(uint32_t status)
{
	static const struct {
		uint32_t status;
		int code;
	} known[] = {
		{0, 0}, {1, -EPERM}, {2, -ENOENT}, {5, -EIO}, {6, -ENXIO}, {13, -EACCES},
		{20, -ENOTDIR}, {21, -EISDIR}, {22, -EINVAL}, {63, -ENAMETOOLONG}, {70, -ESTALE},
		{10001, -ESTALE},          /* BADHANDLE */
		{10004, -EOPNOTSUPP},      /* NOTSUPP */
		{10008, -EAGAIN},          /* DELAY: it fetches the file from somewhere slow */
		{10013, -EAGAIN},          /* GRACE: it has just started */
		{10014, -ESTALE},          /* FHEXPIRED */
		{10016, -EACCES},          /* WRONGSEC: it wants Kerberos */
		{10018, -EAGAIN},          /* RESOURCE */
		{10021, -EPROTONOSUPPORT}, /* MINOR_VERS_MISMATCH */
		{10029, -ELOOP},           /* SYMLINK */
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].status == status)
			return known[i].code;
	return -EREMOTEIO;
}

/* True where the compound's result comes; else call->status says why the server took none. */
static bool reply_read_header(struct wire *wire, struct nfs_call *call, const char **why)
{
	uint32_t size;
	(void)wire_get(wire); /* xid: the call was found by it */
	if (wire_get(wire) != RPC_REPLY) {
		*why = "it is no reply";
		return false;
	}
	if (wire_get(wire) != 0) {
		call->status =
			-EACCES; /* denied: another RPC version, or other credentials wanted */
		return false;
	}
	(void)wire_get(wire);
	(void)wire_get_bytes(wire, VERIFIER_BYTES_MAX, &size);
	const uint32_t accepted = wire_get(wire);
	if (accepted != 0)
		call->status = accepted <= 2 ? -EPROTONOSUPPORT : -EREMOTEIO;
	return accepted == 0;
}

/* Attributes come in the order of their numbers; one that was not asked for cannot be passed over. */
static bool reply_read_attributes(struct wire *wire, struct nfs_call *call)
{
	uint32_t size;
	uint32_t mask[2] = {0, 0};
	const uint32_t words = wire_get(wire);
	for (uint32_t i = 0; i < words && !wire->lost; i++) {
		const uint32_t word = wire_get(wire);
		if (i < 2)
			mask[i] = word;
		else if (word != 0)
			wire->lost = true;
	}
	const uint8_t *const values = wire_get_bytes(wire, NFS_LIST_BYTES, &size);
	if (!values)
		return false;
	struct wire in = {values, values, values + size, false};
	struct store_stat *const what = &call->what;
	*what = (struct store_stat){.kind = STORE_UNKNOWN};
	for (unsigned bit = 0; bit < 64 && !in.lost; bit++) {
		if (!(mask[bit / 32] >> bit % 32 & 1))
			continue;
		switch (bit) {
		case ATTR_TYPE: {
			const uint32_t type = wire_get(&in);
			what->kind = type == TYPE_FILE     ? STORE_FILE
				     : type == TYPE_FOLDER ? STORE_FOLDER
							   : STORE_OTHER;
			break;
		}
		case ATTR_SIZE:
			what->bytes = wire_get_long(&in);
			break;
		case ATTR_FSID:
			what->device = wire_get_long(&in) << 32;
			what->device ^= wire_get_long(&in);
			break;
		case ATTR_ERROR:
			(void)wire_get(&in);
			break;
		case ATTR_FILEID:
			what->inode = wire_get_long(&in);
			break;
		case ATTR_MAXREAD:
			call->most_bytes = wire_get_long(&in);
			break;
		case ATTR_MODIFIED: {
			const uint64_t seconds = wire_get_long(&in);
			const uint32_t ns = wire_get(&in);
			what->modified_ns = (int64_t)(seconds * NS_PER_S + ns);
			break;
		}
		default:
			in.lost = true;
		}
	}
	/* What is told without its size has to be asked for both. */
	if (!(mask[0] >> ATTR_SIZE & 1))
		what->modified_ns = 0;
	wire->lost = wire->lost || in.lost;
	return !wire->lost;
}

/* A name that is no part of a path leads elsewhere or nowhere: it is told with '?' in place of what is wrong. */
static void reply_add_name(
	struct nfs_call *call, const struct store_stat *what, const uint8_t *name, uint32_t size)
{
	const bool plain = !memchr(name, '/', size) && !memchr(name, '\0', size);
	const struct store_stat bad = {.kind = STORE_BAD_NAME};
	if (size == 0)
		return;
	buffer_add(call->names, (const char *)(plain ? what : &bad), sizeof *what);
	const size_t begin = call->names->size;
	buffer_add(call->names, (const char *)name, size);
	for (uint32_t i = 0; i < size && !plain && !call->names->failed; i++)
		if (name[i] == '/' || name[i] == '\0')
			call->names->data[begin + i] = '?';
	buffer_add(call->names, "", 1);
}

static void reply_read_listing(struct wire *wire, struct nfs_call *call)
{
	const uint8_t *const verifier = wire_take(wire, sizeof call->verifier);
	if (verifier)
		memcpy(call->verifier, verifier, sizeof call->verifier);
	while (wire_get(wire) == 1) {
		uint32_t size;
		const uint64_t cookie = wire_get_long(wire);
		const uint8_t *const name = wire_get_bytes(wire, NAME_BYTES_MAX, &size);
		if (!name || !reply_read_attributes(wire, call)) {
			wire->lost = true;
			return;
		}
		call->cookie = cookie;
		reply_add_name(call, &call->what, name, size);
	}
	call->end = wire_get(wire) != 0;
}

static void reply_read_handle(struct wire *wire, uint32_t most, struct nfs_handle *out)
{
	uint32_t size;
	const uint8_t *const bytes = wire_get_bytes(wire, most, &size);
	if (!bytes || size == 0) {
		wire->lost = true;
		return;
	}
	memcpy(out->bytes, bytes, size);
	out->size = size;
}

/* Of a READ, up to where its data begin. */
static void reply_read_result(struct wire *wire, uint32_t op, struct nfs_call *call)
{
	switch (op) {
	case OP_PUTFH:
	case OP_PUTROOTFH:
	case OP_LOOKUP:
		break;
	case OP_GETFH:
		reply_read_handle(wire, NFS_HANDLE_BYTES, &call->handle);
		break;
	case OP_GETATTR:
		(void)reply_read_attributes(wire, call);
		break;
	case OP_READ:
		call->end = wire_get(wire) != 0;
		call->got = wire_get(wire);
		break;
	case OP_READDIR:
		reply_read_listing(wire, call);
		break;
	default:
		wire->lost = true;
	}
}

static bool reply_op_was_asked(enum nfs_kind kind, uint32_t op)
{
	switch (op) {
	case OP_PUTFH:
	case OP_PUTROOTFH:
	case OP_LOOKUP:
		return true;
	case OP_GETFH:
		return kind == NFS_LOOK || kind == NFS_READ;
	case OP_GETATTR:
		return kind == NFS_LOOK || kind == NFS_PING;
	case OP_READ:
		return kind == NFS_READ;
	case OP_READDIR:
		return kind == NFS_LIST;
	default:
		return false;
	}
}

static void reply_read_compound(struct wire *wire, struct nfs_call *call)
{
	static const uint32_t last[NFS_KINDS] = {OP_GETATTR, OP_READ, OP_READDIR, OP_GETATTR};
	uint32_t size;
	const uint32_t status = wire_get(wire);
	(void)wire_get_bytes(wire, NFS_HEAD_BYTES, &size);
	const uint32_t count = wire_get(wire);
	uint32_t op = 0;
	for (uint32_t i = 0; i < count && !wire->lost; i++) {
		op = wire_get(wire);
		if (!reply_op_was_asked(call->kind, op)) {
			wire->lost = true;
			return;
		}
		const uint32_t result = wire_get(wire);
		if (result != 0) {
			call->status = nfs_status_errno(result);
			return;
		}
		reply_read_result(wire, op, call);
		if (op == OP_READ)
			break;
	}
	if (status != 0)
		call->status = nfs_status_errno(status);
	else if (op != last[call->kind])
		wire->lost = true;
}

/* ---- replies of NFSv3 --------------------------------------------------------------------- */

static void reply3_read_attributes(struct wire *wire, struct store_stat *what)
{
	const uint32_t type = wire_get(wire);
	(void)wire_take(wire, 16); /* mode, links, user, group */
	const uint64_t bytes = wire_get_long(wire);
	(void)wire_take(wire, 16); /* used, device */
	const uint64_t system = wire_get_long(wire);
	const uint64_t inode = wire_get_long(wire);
	(void)wire_take(wire, 8); /* read at */
	const uint64_t seconds = wire_get(wire);
	const uint32_t ns = wire_get(wire);
	(void)wire_take(wire, 8); /* changed at */
	*what = (struct store_stat){.kind = type == TYPE_FILE     ? STORE_FILE
					    : type == TYPE_FOLDER ? STORE_FOLDER
								  : STORE_OTHER,
		.bytes = bytes,
		.modified_ns = (int64_t)(seconds * NS_PER_S + ns),
		.device = system,
		.inode = inode};
}

/* Those that a server may leave out: STORE_UNKNOWN. */
static void reply3_read_optional(struct wire *wire, struct store_stat *what)
{
	*what = (struct store_stat){.kind = STORE_UNKNOWN};
	if (wire_get(wire) != 0)
		reply3_read_attributes(wire, what);
}

static void reply3_read_listing(struct wire *wire, struct nfs_call *call)
{
	struct store_stat what;
	reply3_read_optional(wire, &what);
	const uint8_t *const verifier = wire_take(wire, sizeof call->verifier);
	if (verifier)
		memcpy(call->verifier, verifier, sizeof call->verifier);
	while (wire_get(wire) == 1) {
		uint32_t size;
		struct nfs_handle handle;
		(void)wire_get_long(wire); /* inode */
		const uint8_t *const name = wire_get_bytes(wire, NAME_BYTES_MAX, &size);
		const uint64_t cookie = wire_get_long(wire);
		what.kind = STORE_UNKNOWN;
		if (!call->plain)
			reply3_read_optional(wire, &what);
		if (!call->plain && wire_get(wire) != 0)
			reply_read_handle(wire, V3_HANDLE_BYTES, &handle);
		if (wire->lost)
			return;
		call->cookie = cookie;
		reply_add_name(call, &what, name, size);
	}
	call->end = wire_get(wire) != 0;
}

static void reply3_read_step(struct wire *wire, struct nfs_call *call)
{
	struct store_stat what;
	if (call->kind == NFS_FIND) {
		call->most_bytes = wire_get(wire);
		return;
	}
	const uint32_t status = wire_get(wire);
	if (status != 0) {
		call->status = nfs_status_errno(status);
		return;
	}
	if (call->part_bytes > 0) {
		reply_read_handle(wire, V3_HANDLE_BYTES, &call->handle);
		reply3_read_optional(wire, &call->what);
		return;
	}
	switch (call->kind) {
	case NFS_MOUNT:
		reply_read_handle(wire, V3_HANDLE_BYTES, &call->handle);
		break;
	case NFS_LIMITS:
		reply3_read_optional(wire, &call->what);
		call->most_bytes = wire_get(wire);
		break;
	case NFS_READ:
		reply3_read_optional(wire, &what);
		(void)wire_get(wire); /* count, and once more as the data's length */
		call->end = wire_get(wire) != 0;
		call->got = wire_get(wire);
		break;
	case NFS_LIST:
		reply3_read_listing(wire, call);
		break;
	default:
		reply3_read_attributes(wire, &call->what);
	}
}

int nfs_reply_read(struct nfs_call *call, const uint8_t *bytes, size_t have, size_t size,
	size_t *data_at, const char **why)
{
	struct wire wire = {bytes, bytes, bytes + have, false};
	*why = NULL;
	*data_at = 0;
	call->status = 0;
	call->got = 0;
	call->end = false;
	if (reply_read_header(&wire, call, why)) {
		if (call->version == 3)
			reply3_read_step(&wire, call);
		else
			reply_read_compound(&wire, call);
	}
	if (!*why && wire.lost)
		*why = "it ends early, or says more than was asked for";
	else if (!*why && (call->got > call->count || call->got > size - (size_t)(wire.at - bytes)))
		*why = "it has more data than were asked for";
	else if (call->names && call->names->failed)
		call->status = -ENOMEM;
	*data_at = (size_t)(wire.at - bytes);
	return *why ? -EBADMSG : 0;
}
