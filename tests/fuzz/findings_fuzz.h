/* For fuzzers of readers of sources: any bytes are refused with a reason, or give findings that are possible. */
#ifndef MLBENCH_TESTS_FINDINGS_FUZZ_H
#define MLBENCH_TESTS_FINDINGS_FUZZ_H

#include "harness/fit/finding.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz: %s\n", what);
	abort();
}

static inline void require_possible(const struct findings *findings)
{
	for (int id = 0; id < FINDING_COUNT; id++) {
		const struct finding *known = &findings->known[id];
		require(known->how == FINDING_UNKNOWN ||
				(isfinite(known->value) && known->value >= 0),
			"a finding that is no number, or below 0");
	}
	for (size_t i = 0; i < findings->step_count; i++)
		require(isfinite(findings->step_ns[i]) && findings->step_ns[i] >= 0,
			"a step that takes less than no time");
	for (size_t i = 0; i < findings->note_count; i++)
		for (const char *c = findings->notes[i]; *c; c++)
			require(*c >= ' ' && *c <= '~', "a note that is no plain text");
}

/* Reads the bytes as a file; check: what else holds of what was found. */
static inline void fuzz_findings(const uint8_t *data, size_t size,
	int (*read)(struct findings *out, const char *path, struct error *err),
	void (*check)(const struct findings *findings))
{
	static int fd = -1;
	static char path[64];
	struct findings findings;
	struct error err = {0};
	if (fd < 0) {
		fd = memfd_create("source", 0);
		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	}
	require(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size, "no memory");
	findings_open(&findings);
	const int code = read(&findings, path, &err);
	if (code) {
		require(code < 0 && *err.text, "refused without a reason");
	} else {
		require_possible(&findings);
		check(&findings);
	}
	findings_close(&findings);
}

#endif
