/* What the driver says of a node's GPUs, as facts and as the doctor's findings; the driver follows a script. */
#include "harness/measure/environment.h"
#include "harness/measure/node_checks.h"

#include "tests/unit/nvml_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the others */
#include <cmocka.h>

static struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
static size_t finding_count;

static const struct doctor_finding *examine(const char *script, const char *subject)
{
	fake_nvml_script(script);
	finding_count = node_checks(findings, DOCTOR_FINDINGS_MAX, ".");
	for (size_t i = 0; i < finding_count; i++) {
		assert_true(strlen(findings[i].state) + 1 < sizeof findings[i].state);
		assert_true(strlen(findings[i].remedy) + 1 < sizeof findings[i].remedy);
		assert_int_equal(
			findings[i].level == DOCTOR_OK, findings[i].consequence[0] == '\0');
	}
	for (size_t i = 0; i < finding_count; i++)
		if (strcmp(findings[i].subject, subject) == 0)
			return &findings[i];
	return NULL;
}

static void expect(
	const char *script, const char *subject, enum doctor_level level, const char *state)
{
	const struct doctor_finding *finding = examine(script, subject);
	if (!finding)
		fail_msg("nothing is said of '%s'", subject);
	if (finding->level != level || !strstr(finding->state, state))
		fail_msg("%s: level %d, '%s'", subject, (int)finding->level, finding->state);
}

/* Before a library is loaded. */
static void a_node_without_a_device_is_spared(void **state)
{
	(void)state;
	if (dlopen("libnvidia-ml.so.1", RTLD_NOW))
		skip();
	assert_null(examine("", "GPU state"));
	assert_null(examine("", "GPU link"));
	struct fact_list list = {0};
	environment_nvml(&list);
	const struct fact *fact = fact_find(&list, "gpu", "nvml");
	assert_non_null(fact);
	assert_int_equal(fact->kind, FACT_MISSING);
	assert_non_null(strstr(fact->text, "libnvidia-ml.so.1"));
	fact_list_release(&list);
	assert_true(fake_nvml_load("new"));
}

static void facts_of_each_device(void **state)
{
	(void)state;
	struct fact_list list = {0};
	fake_nvml_script("devices=2 name=NVIDIA_H200 deny=mig:3 persistence=0 span=100000");
	environment_nvml(&list);
	assert_true(fact_find(&list, "gpu", "nvml")->number == 2);
	assert_string_equal(fact_find(&list, "gpu", "driver_version")->text, "999.0 (fake)");
	assert_string_equal(fact_find(&list, "gpu", "name_1")->text, "NVIDIA H200");
	assert_string_equal(fact_find(&list, "gpu", "bus_1")->text, "00000000:02:00.0");
	assert_true(fact_find(&list, "gpu", "power_limit_0")->number == 700);
	assert_string_equal(fact_find(&list, "gpu", "power_limit_0")->unit, "W");
	assert_string_equal(fact_find(&list, "gpu", "persistence_0")->text, "off");
	assert_string_equal(fact_find(&list, "gpu", "throttles_now_0")->text, "none");
	assert_int_equal(fact_find(&list, "gpu", "mig_mode_0")->kind, FACT_MISSING);
	assert_string_equal(
		fact_find(&list, "gpu", "mig_mode_0")->text, "not supported by this device");
	fact_list_release(&list);
}

static void a_healthy_device(void **state)
{
	(void)state;
	const char *script = "span=100000 devices=8 name=NVIDIA_H200";
	expect(script, "GPU link", DOCTOR_OK, "16 PCIe lanes of generation 5");
	expect(script, "GPU memory", DOCTOR_OK, "no errors");
	expect(script, "GPU clocks", DOCTOR_OK, "1980 MHz now");
	expect(script, "GPU driver", DOCTOR_OK, "stays loaded");
	assert_null(examine(script, "GPU state"));
	/* As in a container without /proc/driver/nvidia: the driver's own count is taken. */
	const struct doctor_finding *gpu = examine(script, "GPU");
	assert_non_null(gpu);
	assert_non_null(strstr(gpu->state, "8 x NVIDIA H200"));
}

static void what_ails_a_device(void **state)
{
	(void)state;
	expect("width=8", "GPU link", DOCTOR_LACKS, "device 0: 8 of 16 PCIe lanes");
	expect("deny=link:3", "GPU link", DOCTOR_NOTE, "not supported");
	expect("uncorrected=2", "GPU memory", DOCTOR_LACKS, "2 uncorrected errors");
	expect("corrected=9", "GPU memory", DOCTOR_NOTE, "9 corrected errors");
	expect("deny=ecc:3", "GPU memory", DOCTOR_NOTE, "not supported");
	expect("span=100000 persistence=0", "GPU driver", DOCTOR_NOTE, "persistence mode is off");
	expect("deny=throttle:4", "GPU clocks", DOCTOR_NOTE, "no permission");
	expect("throttle=0x60 always=1", "GPU clocks", DOCTOR_NOTE,
		"held down now: thermal, thermal by hardware");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_without_a_device_is_spared),
		cmocka_unit_test(facts_of_each_device),
		cmocka_unit_test(a_healthy_device),
		cmocka_unit_test(what_ails_a_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
