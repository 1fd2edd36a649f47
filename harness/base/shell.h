/* Words as a POSIX shell reads them back. */
#ifndef MLBENCH_BASE_SHELL_H
#define MLBENCH_BASE_SHELL_H

#include "harness/base/buffer.h"

/* text as one word: as it is where that is safe, else quoted.  Control characters and bytes above ASCII are written as
 * $'\x1b', which bash, zsh and ksh read, so that the word is plain text whatever it holds. */
void shell_word(const char *text, struct buffer *out);

#endif
