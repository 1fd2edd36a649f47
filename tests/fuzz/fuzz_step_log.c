/* libFuzzer target: logs of step times, as CSV and as TensorBoard's events. */
#include "tests/fuzz/findings_fuzz.h"

static void check_step_log(const struct findings *findings)
{
	require(findings->known[FINDING_STEP_PERIOD].how || findings->known[FINDING_STEP_TIME].how,
		"nothing was found");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_findings(data, size, findings_from_step_log, check_step_log);
	return 0;
}
