/* The plug-in's file and what PATH has. */
#include "workloads/ranks/ranks_look.h"

#include "harness/base/array.h"
#include "harness/base/launcher.h"
#include "harness/base/plugin.h"
#include "harness/base/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ranks_open_plugin(const struct mpi_plugin **out, char *path, void **library, struct error *err)
{
	char folder[PATH_MAX];
	plugin_entry *entry;
	program_folder(folder, sizeof folder);
	(void)plugin_find(MPI_PLUGIN_VARIABLE, MPI_PLUGIN_FILE, folder, path, PATH_MAX);
	if (!path[0])
		return error_set(err, -ENOTSUP,
			"this build has no MPI plug-in (%s is not in '%.200s', ../lib/mlbench or ../lib): "
			"build it where libopenmpi-dev is installed",
			MPI_PLUGIN_FILE, folder);
	int code = plugin_open(library, &entry, path, MPI_PLUGIN_ENTRY, "MPI", err);
	if (code)
		return code;
	*out = ((mpi_plugin_entry *)entry)();
	code = plugin_check(path, "MPI",
		*out ? &(struct plugin_of){(*out)->abi, (*out)->version} : NULL, MPI_PLUGIN_ABI,
		err);
	if (code)
		(void)dlclose(*library);
	return code;
}

static bool ranks_on_path(const char *name)
{
	const char *at = getenv("PATH");
	while (at && *at) {
		char path[PATH_MAX];
		const size_t length = strcspn(at, ":");
		const int size = snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
		if (length > 0 && (size_t)size < sizeof path && access(path, X_OK) == 0)
			return true;
		at += length + (at[length] == ':');
	}
	return false;
}

void ranks_look(struct ranks_found *found)
{
	static const char *const launchers[] = {"mpirun", "srun"};
	const struct mpi_plugin *plugin;
	void *library = NULL;
	struct error err = {""};
	*found = (struct ranks_found){.path = ""};
	for (size_t i = 0; i < COUNT(launchers); i++) {
		const size_t used = strlen(found->launchers);
		if (ranks_on_path(launchers[i]))
			(void)snprintf(found->launchers + used, sizeof found->launchers - used,
				"%s%s", used > 0 ? " and " : "", launchers[i]);
	}
	if (ranks_open_plugin(&plugin, found->path, &library, &err)) {
		(void)snprintf(found->why, sizeof found->why, "%s", err.text);
		return;
	}
	plugin->library(found->library);
	(void)dlclose(library);
}

void ranks_describe(const struct ranks_found *found, char out[RANKS_SENTENCE_BYTES])
{
	struct launcher launcher;
	char started[64] = "alone";
	if (launcher_find(&launcher))
		(void)snprintf(started, sizeof started, "by %s as rank %u of %u", launcher.name,
			launcher.rank, launcher.count);
	(void)snprintf(out, RANKS_SENTENCE_BYTES, "%s; %s %s on PATH; this process was started %s",
		found->why[0] ? found->why : found->library,
		found->launchers[0] ? found->launchers : "no launcher (mpirun, srun)",
		strchr(found->launchers, ' ') ? "are" : "is", started);
}
