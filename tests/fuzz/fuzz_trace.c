/* libFuzzer target: traces of torch.profiler. */
#include "tests/fuzz/findings_fuzz.h"

static void check_trace(const struct findings *findings)
{
	require(findings->known[FINDING_DEVICE_BUSY].value <= 1,
		"a device that is busier than busy");
	require(findings->step_count > 0 && findings->step_ns, "steps without their times");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_findings(data, size, findings_from_trace, check_trace);
	return 0;
}
