/* GPUs as the kernel and the driver's files show them; nothing is initialised. */
#include "harness/base/files.h"
#include "harness/measure/environment_parts.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_models(struct fact_list *list)
{
	glob_t found;
	size_t count = 0;
	if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0) {
		for (; count < found.gl_pathc; count++) {
			char name[32];
			char model[128] = "unknown";
			char *text = environment_text(found.gl_pathv[count]);
			if (text)
				(void)parse_field(text, "Model", model, sizeof model);
			free(text);
			(void)snprintf(name, sizeof name, "model_%zu", count);
			fact_text(list, "gpu", name, "%s", model);
		}
		globfree(&found);
	}
	if (count > 0)
		fact_number(list, "gpu", "devices", (double)count, NULL);
	else
		fact_missing(list, "gpu", "devices",
			"no NVIDIA device: /proc/driver/nvidia/gpus is not there");
}

static void add_library(struct fact_list *list, const char *name, const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	if (!handle) {
		fact_missing(list, "gpu", name, "%s", dlerror());
		return;
	}
	fact_text(list, "gpu", name, "%s opens", library);
	(void)dlclose(handle);
}

void environment_gpu(struct fact_list *list)
{
	add_models(list);
	environment_line(list, "gpu", "driver", "/proc/driver/nvidia/version");
	add_library(list, "libcuda", "libcuda.so.1");
	add_library(list, "libnvidia_ml", "libnvidia-ml.so.1");
}
