/* The kernel's delay accounting of a thread. */
#include "harness/measure/io_delay.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FIELD_STATE = 3, /* the first after the name in brackets, which may hold anything */
	FIELD_IO_DELAY = 42,
	LINE_BYTES = 1024,
};

const char *io_delay_unavailable(void)
{
	uint64_t on = 0;
	if (files_number("/proc/sys/kernel/task_delayacct", &on))
		return "no delay accounting: this kernel has no kernel.task_delayacct";
	return on ? NULL : "no delay accounting: kernel.task_delayacct is 0";
}

int io_delay_open(void)
{
	return open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
}

bool io_delay_parse(const char *line, uint64_t *ticks)
{
	const char *at = strrchr(line, ')');
	for (int field = FIELD_STATE; at && field <= FIELD_IO_DELAY; field++)
		at = strchr(at + 1, ' ');
	if (!at || at[1] < '0' || at[1] > '9')
		return false;
	*ticks = strtoull(at + 1, NULL, 10);
	return true;
}

bool io_delay_read(int file, uint64_t *ns)
{
	char line[LINE_BYTES];
	const ssize_t size = pread(file, line, sizeof line - 1, 0);
	if (size <= 0)
		return false;
	line[size] = '\0';
	uint64_t ticks;
	if (!io_delay_parse(line, &ticks))
		return false;
	*ns = ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	return true;
}
