/* Finding and opening plug-ins. */
#include "harness/base/plugin.h"

#include "harness/base/array.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool plugin_find(const char *variable, const char *file, const char *folder, char *out, size_t room)
{
	static const char *const places[] = {"", "/../lib/mlbench", "/../lib"};
	const char *const named = getenv(variable);
	if (named && *named) {
		/* Without a slash the linker would look in its own places. */
		(void)snprintf(out, room, "%s%s", strchr(named, '/') ? "" : "./", named);
		return true;
	}
	for (size_t i = 0; i < COUNT(places); i++) {
		const int length = snprintf(out, room, "%s%s/%s", folder, places[i], file);
		if (length > 0 && (size_t)length < room && access(out, F_OK) == 0)
			return false;
	}
	out[0] = '\0';
	return false;
}

int plugin_open(void **library, plugin_entry **out, const char *path, const char *entry,
	const char *what, struct error *err)
{
	*library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*library) {
		const char *const reason = dlerror();
		return error_set(err, -ENOENT, "the %s plug-in cannot be opened: %s", what,
			reason ? reason : path);
	}
	/* The way from an object's address to a function's that POSIX describes for dlsym. */
	*(void **)out = dlsym(*library, entry);
	if (*out)
		return 0;
	(void)dlclose(*library);
	return error_set(err, -ENOTSUP,
		"'%s' is not a plug-in of this program: it does not export %s", path, entry);
}

int plugin_check(const char *path, const char *what, const struct plugin_of *of, unsigned abi,
	struct error *err)
{
	if (!of)
		return error_set(err, -ENOTSUP,
			"'%s' is not a working %s plug-in: it returns no function table", path,
			what);
	if (of->abi != abi)
		return error_set(err, -ENOTSUP,
			"'%s' has plug-in interface %u, but this program needs %u: use the plug-in of this "
			"build",
			path, of->abi, abi);
	if (strcmp(of->version, MLBENCH_VERSION) != 0)
		return error_set(err, -ENOTSUP,
			"'%s' has version %.32s, but this program has %s: use the plug-in of this build",
			path, of->version, MLBENCH_VERSION);
	return 0;
}
