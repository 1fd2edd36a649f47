/* Where a command's text goes: standard output, or a file that --out names. */
#ifndef MLBENCH_COMMAND_PRODUCT_H
#define MLBENCH_COMMAND_PRODUCT_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"

#include <stdbool.h>

bool product_is_folder(const char *path); /* or ends as one */

/* out: NULL or "-" is standard output; a folder gets the file `name` in it; a file is replaced at once when all is
 * written (through a link, the one it points to); a device or a pipe is written to.  Returns an exit status. */
int product_write(const char *out, const char *name, const struct buffer *text, struct error *err);

#endif
