/* The program's side of the plug-in: dlopen, so that one build runs on nodes with and without CUDA, and what is missing is
 * said by name instead of failing at start. */
#include "workloads/backend/cuda_load.h"

#include "harness/base/program.h"
#include "harness/base/units.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef const struct cuda_plugin *plugin_entry(void);

static int check_versions(const struct cuda_plugin *plugin, const char *path, struct error *err)
{
	if (!plugin)
		return error_set(err, -ENOTSUP, "'%s' gives no table of functions", path);
	if (plugin->abi != CUDA_PLUGIN_ABI)
		return error_set(err, -ENOTSUP,
			"'%s' has interface %u, this program needs %d: both must come from one build",
			path, plugin->abi, CUDA_PLUGIN_ABI);
	if (strcmp(plugin->version, MLBENCH_VERSION) != 0)
		return error_set(err, -ENOTSUP,
			"'%s' is of version %.32s, this program of %s: both must come from one build",
			path, plugin->version, MLBENCH_VERSION);
	return 0;
}

int cuda_open_plugin(const struct cuda_plugin **out, const char *path, struct error *err)
{
	*out = NULL;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *reason = dlerror();
		return error_set(err, -ENOENT, "the CUDA plug-in cannot be opened: %s",
			reason ? reason : path);
	}
	plugin_entry *entry;
	/* The way from an object's address to a function's that POSIX describes for dlsym. */
	*(void **)&entry = dlsym(library, CUDA_PLUGIN_ENTRY);
	int code = 0;
	if (!entry)
		code = error_set(err, -ENOTSUP, "'%s' is no plug-in of this program: it has no %s",
			path, CUDA_PLUGIN_ENTRY);
	const struct cuda_plugin *plugin = entry ? entry() : NULL;
	if (!code)
		code = check_versions(plugin, path, err);
	if (code) {
		(void)dlclose(library);
		return code;
	}
	*out = plugin;
	return 0;
}

/* The kernel's side of a driver: there is something that a plug-in could use. */
static const char *visible_device(void)
{
	static const char *const files[] = {"/dev/nvidiactl", "/dev/nvidia0"};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (access(files[i], F_OK) != 0)
			return i == 0 ? "and no device is visible (no /dev/nvidiactl)"
				      : "and no device is visible (no /dev/nvidia0)";
	return "though a device is visible";
}

/* The first of the places that has the file; false: none. */
static bool find_file(struct cuda_found *found, const char *folder)
{
	static const char *const places[] = {"", "/../lib/mlbench", "/../lib"};
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		const int length = snprintf(found->path, sizeof found->path,
			"%s%s/" CUDA_PLUGIN_FILE, folder, places[i]);
		if (length > 0 && (size_t)length < sizeof found->path &&
			access(found->path, F_OK) == 0)
			return true;
	}
	found->path[0] = '\0';
	return false;
}

/* The CUDA libraries are 200 MiB of resident memory, which a run on a node without a driver need not carry.  Only opened here:
 * the runtime opens it again by the same name. */
static bool has_driver(struct cuda_found *found)
{
	if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL))
		return true;
	const char *reason = dlerror();
	(void)snprintf(found->why, sizeof found->why, "no NVIDIA driver: %s",
		reason ? reason : "libcuda.so.1 cannot be opened");
	return false;
}

static bool choose_file(struct cuda_found *found, const char *folder)
{
	const char *named = getenv(CUDA_PLUGIN_VARIABLE);
	if (named && *named) {
		/* Without a slash the linker would look in its own places. */
		(void)snprintf(found->path, sizeof found->path, "%s%s",
			strchr(named, '/') ? "" : "./", named);
		return true;
	}
	if (find_file(found, folder))
		return has_driver(found);
	(void)snprintf(found->why, sizeof found->why,
		"this build has no CUDA plug-in (%s is not in '%.200s', nor in ../lib/mlbench or ../lib), %s",
		CUDA_PLUGIN_FILE, folder, visible_device());
	return false;
}

void cuda_look(struct cuda_found *found, const char *folder)
{
	*found = (struct cuda_found){0};
	if (!choose_file(found, folder))
		return;
	struct error err = {0};
	int code = cuda_open_plugin(&found->plugin, found->path, &err);
	if (!code)
		code = found->plugin->node(&found->node, &err);
	if (!code && found->node.count == 0)
		code = error_set(&err, -ENODEV, "no device");
	found->ready = code == 0;
	if (code)
		(void)snprintf(found->why, sizeof found->why, "%s", err.text);
}

static struct cuda_found found_once;

static void find_once(void)
{
	char folder[PATH_MAX];
	program_folder(folder, sizeof folder);
	cuda_look(&found_once, folder);
}

const struct cuda_found *cuda_find(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, find_once);
	return &found_once;
}

/* --- in words ----------------------------------------------------------------------------------------------- */

enum { MAJOR_FACTOR = 1000, MINOR_FACTOR = 10 };

static void add(char *out, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void add(char *out, size_t room, const char *format, ...)
{
	const size_t used = strlen(out);
	va_list args;
	va_start(args, format);
	(void)vsnprintf(out + used, room - used, format, args);
	va_end(args);
}

/* 13020 is 13.2. */
static void add_version(char *out, size_t room, const char *name, int version)
{
	if (version > 0)
		add(out, room, "%s%s %d.%d", *out ? ", " : "", name, version / MAJOR_FACTOR,
			version % MAJOR_FACTOR / MINOR_FACTOR);
}

static void add_devices(char *out, size_t room, const struct cuda_node *node)
{
	if (node->count == 0)
		return;
	add(out, room, "; %zu device%s:", node->count, node->count == 1 ? "" : "s");
	for (size_t i = 0; i < node->count && i < CUDA_DEVICES_MAX; i++) {
		const struct cuda_device_facts *device = &node->devices[i];
		char size[UNITS_BYTES];
		add(out, room, "%s %s (sm_%u%u, %s)", i > 0 ? "," : "", device->name, device->major,
			device->minor, units_format_size((double)device->memory_bytes, size));
	}
}

const char *cuda_describe_node(const struct cuda_found *found, char *out, size_t room)
{
	const struct cuda_node *node = &found->node;
	const struct cuda_plugin *plugin = found->plugin;
	out[0] = '\0';
	/* Not opened for want of a driver: it can say at least what it is. */
	if (!plugin && (!found->path[0] || cuda_open_plugin(&plugin, found->path, NULL) != 0))
		return out;
	add_version(out, room, "driver", node->driver);
	add_version(out, room, "runtime", node->runtime);
	if (node->cublas[0])
		add(out, room, ", cuBLAS %s", node->cublas);
	if (node->nccl[0])
		add(out, room,
			isdigit((unsigned char)node->nccl[0]) ? ", NCCL %s" : ", no NCCL (%s)",
			node->nccl);
	add(out, room, "%splug-in built with %s", *out ? ", " : "", plugin->built);
	add_devices(out, room, node);
	return out;
}
