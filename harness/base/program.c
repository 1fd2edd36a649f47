/* The program's own place. */
#include "harness/base/program.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void program_folder(char *out, size_t room)
{
	const ssize_t length = readlink("/proc/self/exe", out, room - 1);
	if (length <= 0) {
		(void)snprintf(out, room, ".");
		return;
	}
	out[length] = '\0';
	char *slash = strrchr(out, '/');
	if (slash)
		*slash = '\0';
}

bool program_beside(const char *relative, char *out, size_t room)
{
	char folder[PATH_MAX];
	program_folder(folder, sizeof folder);
	const int length = snprintf(out, room, "%s/%s", folder, relative);
	if (length > 0 && (size_t)length < room && access(out, F_OK) == 0)
		return true;
	out[0] = '\0';
	return false;
}
