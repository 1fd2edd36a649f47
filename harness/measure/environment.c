/* The environment as a whole, and what its parts share. */
#include "harness/measure/environment.h"

#include "harness/base/files.h"
#include "harness/measure/environment_parts.h"

#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>

enum { PROC_TEXT_MOST = 4 << 20, LINE_BYTES = 512 };

char *environment_text(const char *path)
{
	char *text = NULL;
	size_t size;
	struct error err;
	return files_read(path, PROC_TEXT_MOST, &text, &size, &err) == 0 ? text : NULL;
}

void environment_line(struct fact_list *list, const char *group, const char *name, const char *path)
{
	char line[LINE_BYTES];
	const int code = files_first_line(path, line, sizeof line);
	if (code)
		fact_missing(list, group, name, "'%s': %s", path, strerror(-code));
	else
		fact_text(list, group, name, "%s", line);
}

void environment_build(struct fact_list *list)
{
	fact_text(list, "build", "mlbench", "%s", MLBENCH_VERSION);
#if defined(__clang__)
	fact_text(list, "build", "compiler", "clang %s", __clang_version__);
#else
	fact_text(list, "build", "compiler", "gcc %s", __VERSION__);
#endif
	fact_text(list, "build", "libc", "glibc %s", gnu_get_libc_version());
}

void environment_capture(struct fact_list *list, const char *data_path)
{
	environment_build(list);
	environment_node(list);
	environment_cpu(list);
	environment_memory(list);
	environment_cgroup(list);
	environment_kernel(list);
	environment_storage(list, data_path);
	environment_gpu(list);
	environment_nvml(list);
	environment_load(list);
}
