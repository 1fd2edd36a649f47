/* What lies beside the running program: it is installed, unpacked or built as one tree. */
#ifndef MLBENCH_BASE_PROGRAM_H
#define MLBENCH_BASE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* The folder of the program's file; "." when the kernel does not say.  Any thread. */
void program_folder(char *out, size_t room);

/* The path of `relative` ("../lib/x") seen from there; false, with "", when there is nothing or no room.  Any thread. */
bool program_beside(const char *relative, char *out, size_t room);

#endif
