/* What a configuration plants, declares or needs beside the job itself, in words. */
#ifndef MLBENCH_CONFIG_CONDITIONS_H
#define MLBENCH_CONFIG_CONDITIONS_H

#include "harness/base/buffer.h"
#include "harness/config/config.h"

/* The faults that it injects, a separator between each two; nothing where nothing is planted. */
void conditions_injected(const struct config *config, const char *separator, struct buffer *out);

/* "overhead.sample 3100us, overhead.step 2ms: CPU time of a loader, emulated by spinning"; nothing where none is declared. */
void conditions_declared(const struct config *config, struct buffer *out);

/* What makes an emulated sweep's comparison void, in a sentence; NULL: nothing does. */
const char *conditions_warning(const struct config *config, bool emulated);

/* The largest number of ranks that is set or swept; 0: none is. */
int64_t conditions_most_ranks(const struct config *config);

/* What starts mlbench for it: "mpirun -n 4 "; nothing where one process does. */
void conditions_launcher(const struct config *config, struct buffer *out);

#endif
