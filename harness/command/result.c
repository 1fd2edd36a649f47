/* Opening a saved result. */
#include "harness/command/result.h"

#include "harness/base/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int result_open(struct record *record, const char *name, struct error *err)
{
	if (access(name, F_OK) == 0 || strchr(name, '/'))
		return record_open(record, name, err);
	char *path = files_join("results", name);
	const int code = path && access(path, F_OK) == 0
				 ? record_open(record, path, err)
				 : error_set(err, -ENOENT,
					   "no such result: '%s' (nor 'results/%s')", name, name);
	free(path);
	return code;
}
