/* Within harness/config: what the two writers of documents share. */
#ifndef MLBENCH_CONFIG_DOCUMENT_KEY_H
#define MLBENCH_CONFIG_DOCUMENT_KEY_H

#include "harness/base/buffer.h"
#include "harness/config/config.h"

/* "1 to 1024", "on or off", "auto, memory, pread, io_uring". */
void document_values(enum key_id key, struct buffer *out);

#endif
