/* Asking the system who this node is. */
#include "harness/measure/ceilings_node.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/measure/probe.h"
#include "harness/measure/proc_text.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

static void read_node_cpu(struct node_identity *node)
{
	char flags[8192];
	char *cpuinfo = proc_text("/proc/cpuinfo");
	(void)snprintf(node->cpu, sizeof node->cpu, "unknown CPU");
	if (!cpuinfo)
		return;
	if (!parse_field(cpuinfo, "model name", node->cpu, sizeof node->cpu))
		(void)snprintf(node->cpu, sizeof node->cpu, "unknown CPU");
	node->is_virtual = parse_field(cpuinfo, "flags", flags, sizeof flags) &&
			   parse_has_word(flags, "hypervisor");
	free(cpuinfo);
}

static void read_node_names(struct node_identity *node)
{
	struct utsname name;
	if (uname(&name) != 0)
		return;
	(void)snprintf(node->kernel, sizeof node->kernel, "%s", name.release);
	(void)snprintf(node->host, sizeof node->host, "%s", name.nodename);
	if (files_first_line("/etc/machine-id", node->machine, sizeof node->machine) != 0 ||
		node->machine[0] == '\0')
		(void)snprintf(node->machine, sizeof node->machine, "%s", name.nodename);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul ..." -> "580.65.06"; "unknown". */
static void driver_version(char *out, size_t room)
{
	char *text = proc_text("/proc/driver/nvidia/version");
	(void)snprintf(out, room, "unknown");
	for (const char *at = text; at && *at && *at != '\n'; at++) {
		const size_t length = strspn(at, "0123456789.");
		const bool begins = at == text || isspace((unsigned char)at[-1]);
		if (begins && length >= 4 && isspace((unsigned char)at[length]) &&
			memchr(at, '.', length)) {
			(void)snprintf(out, room, "%.*s", (int)length, at);
			break;
		}
	}
	free(text);
}

/* The driver's files say which GPUs there are, without starting anything on them. */
static void read_gpus(char gpu[CEILINGS_NAME_BYTES])
{
	char model[48] = "";
	char version[24];
	glob_t found;
	size_t count = 0;
	if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0) {
		count = found.gl_pathc;
		char *text = proc_text(found.gl_pathv[0]);
		if (!text || !parse_field(text, "Model", model, sizeof model))
			(void)snprintf(model, sizeof model, "unknown GPU");
		free(text);
		globfree(&found);
	}
	driver_version(version, sizeof version);
	if (count == 1)
		(void)snprintf(gpu, CEILINGS_NAME_BYTES, "%s, driver %s", model, version);
	else if (count > 1)
		(void)snprintf(
			gpu, CEILINGS_NAME_BYTES, "%zu x %.38s, driver %s", count, model, version);
}

/* The end of a long path tells two of them apart. */
static void add_plugin(char gpu[CEILINGS_NAME_BYTES])
{
	const char *path = getenv("MLBENCH_CUDA_PLUGIN");
	if (!path || !*path)
		return;
	const size_t used = strlen(gpu);
	const size_t room = CEILINGS_NAME_BYTES - used;
	const char *const head = used ? ", plug-in " : "plug-in ";
	const size_t length = strlen(path);
	const size_t fits = room > strlen(head) + 1 ? room - strlen(head) - 1 : 0;
	(void)snprintf(gpu + used, room, "%s%s", head, path + (length > fits ? length - fits : 0));
}

void node_gpus(char gpu[CEILINGS_NAME_BYTES])
{
	gpu[0] = '\0';
	read_gpus(gpu);
	add_plugin(gpu);
}

int node_identify(const char *data_path, struct node_identity *node, struct error *err)
{
	*node = (struct node_identity){.cores = probe_cores()};
	struct mount_entry *mount = malloc(sizeof *mount);
	if (!mount)
		return error_set(err, -ENOMEM, "out of memory");
	const int code = proc_mount_of(data_path, mount);
	/* Below a changed root no mount need be listed that holds the path. */
	if (!code)
		(void)snprintf(node->storage, sizeof node->storage, "%.40s on %.200s", mount->type,
			mount->source);
	else if (code == -ENOENT)
		(void)snprintf(node->storage, sizeof node->storage, "unknown file system");
	free(mount);
	if (code && code != -ENOENT)
		return error_set_errno(
			err, -code, "cannot find the file system of '%s'", data_path);
	read_node_cpu(node);
	read_node_names(node);
	node_gpus(node->gpu);
	return 0;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(text, strlen(text) + 1, hash);
}

void node_key(const struct node_identity *node, char out[CEILINGS_NODE_BYTES])
{
	char cores[16];
	(void)snprintf(cores, sizeof cores, "%u", node->cores);
	const uint64_t hardware =
		hash_text(hash_text(hash_text(0, node->machine), node->cpu), node->storage);
	uint64_t state = hash_text(hash_text(0, cores), node->kernel);
	if (node->gpu[0])
		state = hash_text(state, node->gpu);
	(void)snprintf(out, CEILINGS_NODE_BYTES, "%016" PRIx64 "-%016" PRIx64, hardware, state);
}

void node_describe(const struct node_identity *node, struct ceilings *ceilings)
{
	node_key(node, ceilings->node);
	ceilings->cores = node->cores;
	(void)snprintf(ceilings->host, sizeof ceilings->host, "%s", node->host);
	(void)snprintf(ceilings->cpu, sizeof ceilings->cpu, "%s", node->cpu);
	(void)snprintf(ceilings->kernel, sizeof ceilings->kernel, "%s", node->kernel);
	(void)snprintf(ceilings->gpu, sizeof ceilings->gpu, "%s", node->gpu);
	(void)snprintf(ceilings->storage, sizeof ceilings->storage, "%s", node->storage);
}
