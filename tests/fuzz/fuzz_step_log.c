/* libFuzzer target: any bytes are refused with a reason, or give findings that are possible. */
#include "harness/fit/finding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_step_log: %s\n", what);
	abort();
}

static void check_findings(const struct findings *findings)
{
	for (int id = 0; id < FINDING_COUNT; id++) {
		const struct finding *known = &findings->known[id];
		require(known->how == FINDING_UNKNOWN ||
				(isfinite(known->value) && known->value >= 0),
			"a finding that is no number, or below 0");
	}
	require(findings->known[FINDING_STEP_PERIOD].how || findings->known[FINDING_STEP_TIME].how,
		"nothing was found");
	for (size_t i = 0; i < findings->step_count; i++)
		require(isfinite(findings->step_ns[i]) && findings->step_ns[i] >= 0,
			"a step that takes less than no time");
	for (size_t i = 0; i < findings->note_count; i++)
		for (const char *c = findings->notes[i]; *c; c++)
			require(*c >= ' ' && *c <= '~', "a note that is no plain text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[64];
	struct findings findings;
	struct error err = {0};
	if (fd < 0) {
		fd = memfd_create("log", 0);
		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	}
	require(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size, "no memory");
	findings_open(&findings);
	const int code = findings_from_step_log(&findings, path, &err);
	if (code)
		require(code < 0 && *err.text, "refused without a reason");
	else
		check_findings(&findings);
	findings_close(&findings);
	return 0;
}
