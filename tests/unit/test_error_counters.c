/* The hardware's own error counters, on fake roots: what other machines show, and what none should. */
#include "harness/measure/error_counters.h"

#include "fake_root.h"
#include "nvml_fixture.h"

#include "harness/base/array.h"

#include <errno.h>
#include <sys/stat.h>

static int set_up(void **state)
{
	(void)state;
	fake_root_make();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fake_root_remove();
	return 0;
}

/* Counts of all counters together, of one class or of ERROR_CLASSES for all. */
static uint64_t error_counters_sum(
	const struct error_counters *counters, enum error_class class, bool corrected)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < counters->count; i++) {
		const struct error_counter *counter = &counters->list[i];
		if ((class == ERROR_CLASSES || counter->class == class) &&
			counter->corrected == corrected)
			sum = counter->count > UINT64_MAX - sum ? UINT64_MAX : sum + counter->count;
	}
	return sum;
}

static struct error_counters counters_of(unsigned classes, const struct error_counters *before)
{
	struct error_counters counters;
	assert_int_equal(error_counters_read(fake_root, classes, before, &counters), 0);
	return counters;
}

static struct error_counters counters_of_class(enum error_class class)
{
	return counters_of(ERROR_CLASS_BIT(class), NULL);
}

/* The counter of that place and name; fails without. */
static const struct error_counter *counter_at(
	const struct error_counters *counters, const char *place, const char *name)
{
	for (size_t i = 0; i < counters->count; i++)
		if (strcmp(counters->list[i].place, place) == 0 &&
			strcmp(counters->list[i].name, name) == 0)
			return &counters->list[i];
	for (size_t i = 0; i < counters->count; i++)
		print_message("'%s' at '%s': %llu\n", counters->list[i].name,
			counters->list[i].place, (unsigned long long)counters->list[i].count);
	fail_msg("no counter '%s' at '%s'", name, place);
	return NULL;
}

#define MC "/sys/devices/system/edac/mc/mc0"

static void memory_errors_are_told_by_module(void **state)
{
	(void)state;
	fake_file(MC "/ce_count", "12\n");
	fake_file(MC "/ue_count", "1\n");
	fake_file(MC "/dimm0/dimm_label", "CPU_SrcID#0_MC#0_Chan#1_DIMM#0\n");
	fake_file(MC "/dimm0/dimm_ce_count", "10\n");
	fake_file(MC "/dimm0/dimm_ue_count", "1\n");
	fake_file(MC "/dimm1/dimm_label", "DIMM_B1\n");
	fake_file(MC "/dimm1/dimm_ce_count", "0\n");
	fake_file(MC "/dimm1/dimm_ue_count", "0\n");
	struct error_counters now = counters_of_class(ERRORS_MEMORY);
	const struct error_counter *dimm =
		counter_at(&now, "CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (mc0)", "corrected memory errors");
	assert_int_equal(dimm->count, 10);
	assert_true(dimm->corrected);
	/* What no module is known of stays with the controller, and nothing counts twice. */
	assert_int_equal(counter_at(&now, "mc0", "corrected memory errors")->count, 2);
	assert_int_equal(error_counters_sum(&now, ERRORS_MEMORY, true), 12);
	assert_int_equal(error_counters_sum(&now, ERROR_CLASSES, false), 1);
	assert_string_equal(now.why[ERRORS_MEMORY], "");
	error_counters_release(&now);
}

static void memory_errors_of_older_kernels_are_told_by_row(void **state)
{
	(void)state;
	fake_file(MC "/ce_count", "3\n");
	fake_file(MC "/ue_count", "0\n");
	fake_file(MC "/csrow2/ce_count", "3\n");
	fake_file(MC "/csrow2/ue_count", "0\n");
	struct error_counters now = counters_of_class(ERRORS_MEMORY);
	assert_int_equal(counter_at(&now, "csrow2 (mc0)", "corrected memory errors")->count, 3);
	assert_int_equal(error_counters_sum(&now, ERRORS_MEMORY, true), 3);
	error_counters_release(&now);
}

static void a_rising_counter_grows(void **state)
{
	(void)state;
	fake_file(MC "/ce_count", "5\n");
	fake_file(MC "/ue_count", "0\n");
	fake_file(MC "/dimm0/dimm_label", "A1\n");
	fake_file(MC "/dimm0/dimm_ce_count", "5\n");
	struct error_counters before = counters_of_class(ERRORS_MEMORY);
	fake_file(MC "/ce_count", "9\n");
	fake_file(MC "/ue_count", "1\n");
	fake_file(MC "/dimm0/dimm_ce_count", "8\n");
	fake_file(MC "/dimm0/dimm_ue_count", "1\n");
	struct error_counters after = counters_of(ERROR_CLASS_BIT(ERRORS_MEMORY), &before);
	assert_int_equal(error_counter_growth(&before,
				 counter_at(&after, "A1 (mc0)", "corrected memory errors")),
		3);
	assert_int_equal(error_counter_growth(&before,
				 counter_at(&after, "A1 (mc0)", "uncorrected memory errors")),
		1);
	assert_int_equal(
		error_counter_growth(&before, counter_at(&after, "mc0", "corrected memory errors")),
		1);
	/* One that was reset shows what came since. */
	fake_file(MC "/dimm0/dimm_ce_count", "2\n");
	struct error_counters reset = counters_of(ERROR_CLASS_BIT(ERRORS_MEMORY), &before);
	assert_int_equal(error_counter_growth(&before,
				 counter_at(&reset, "A1 (mc0)", "corrected memory errors")),
		2);
	error_counters_release(&reset);
	error_counters_release(&after);
	error_counters_release(&before);
}

static void a_class_that_is_not_counted_says_why(void **state)
{
	(void)state;
	struct error_counters none = counters_of(ERRORS_QUICK, NULL);
	assert_int_equal(none.count, 0);
	assert_non_null(strstr(none.why[ERRORS_MEMORY], "EDAC"));
	assert_non_null(strstr(none.why[ERRORS_MACHINE_CHECK], "/proc/interrupts"));
	assert_non_null(strstr(none.why[ERRORS_PCIE], "AER"));
	assert_non_null(strstr(none.why[ERRORS_DISK], "NVMe"));
	assert_true(none.why[ERRORS_LINK][0]);
	assert_non_null(strstr(none.why[ERRORS_KERNEL_LOG], "No such file"));
	assert_string_equal(none.why[ERRORS_GPU], ""); /* not asked for */
	/* What appears afterwards was not known before: it is no growth. */
	fake_file(MC "/ce_count", "5\n");
	fake_file(MC "/ue_count", "0\n");
	struct error_counters after = counters_of(ERRORS_QUICK, &none);
	assert_int_equal(
		error_counter_growth(&none, counter_at(&after, "mc0", "corrected memory errors")),
		0);
	error_counters_release(&after);
	error_counters_release(&none);
}

static void machine_checks_name_the_cpu(void **state)
{
	(void)state;
	fake_file("/proc/interrupts",
		"           CPU0       CPU3       \n"
		"  0:         10          0   IO-APIC   2-edge      timer\n"
		"THR:          0          0   Threshold APIC interrupts\n"
		"DFR:          0          4   Deferred Error APIC interrupts\n"
		"MCE:          0          2   Machine check exceptions\n"
		"MCP:         99         99   Machine check polls\n"
		"ERR:          7\n");
	struct error_counters now = counters_of_class(ERRORS_MACHINE_CHECK);
	assert_int_equal(counter_at(&now, "CPU 3", "machine check exceptions")->count, 2);
	assert_int_equal(counter_at(&now, "CPU 3", "deferred errors")->count, 4);
	assert_int_equal(
		counter_at(&now, "", "threshold interrupts of corrected errors")->count, 0);
	assert_int_equal(error_counters_sum(&now, ERROR_CLASSES, false), 6);
	error_counters_release(&now);
}

static void pcie_errors_are_counted_once(void **state)
{
	(void)state;
#define PCI "/sys/bus/pci/devices/0000:3b:00.0"
	fake_file(PCI "/aer_dev_correctable", "RxErr 3\nBadTLP 0\nTOTAL_ERR_COR 3\n");
	fake_file(PCI "/aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 0\n");
	fake_file(PCI "/aer_dev_nonfatal", "CmpltTO 2\nTOTAL_ERR_NONFATAL 2\n");
	struct error_counters now = counters_of_class(ERRORS_PCIE);
	assert_int_equal(counter_at(&now, "PCI 0000:3b:00.0", "RxErr")->count, 3);
	assert_false(counter_at(&now, "PCI 0000:3b:00.0", "CmpltTO")->corrected);
	assert_int_equal(counter_at(&now, "PCI 0000:3b:00.0", "fatal")->count, 0);
	assert_int_equal(error_counters_sum(&now, ERRORS_PCIE, true), 3);
	assert_int_equal(error_counters_sum(&now, ERRORS_PCIE, false), 2);
	error_counters_release(&now);
}

static void disks_and_links(void **state)
{
	(void)state;
	fake_file("/sys/block/sda/device/ioerr_cnt", "0x1f\n");
	fake_file("/sys/fs/ext4/sda1/errors_count", "2\n");
	fake_file("/sys/block/md0/md/dev-sdb/errors", "4\n");
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "5\n");
	fake_file("/sys/class/net/eth0/statistics/rx_crc_errors", "6\n");
	fake_file("/sys/class/net/eth0/device/vendor", "0x15b3\n");
	fake_file("/sys/class/net/veth1/statistics/rx_crc_errors", "7\n");
	struct error_counters now =
		counters_of(ERROR_CLASS_BIT(ERRORS_DISK) | ERROR_CLASS_BIT(ERRORS_LINK), NULL);
	assert_int_equal(counter_at(&now, "sda", "failed requests")->count, 31);
	assert_int_equal(counter_at(&now, "sda1", "file system errors")->count, 2);
	assert_int_equal(counter_at(&now, "dev-sdb", "read errors mended by the array")->count, 4);
	assert_int_equal(counter_at(&now, "mlx5_0 port 1", "symbol errors")->count, 5);
	assert_int_equal(counter_at(&now, "eth0", "CRC errors")->count, 6);
	assert_int_equal(now.count, 5);
	error_counters_release(&now);
}

static const char log_text[] =
	"6,10,1000,-;Linux version 6.1\n"
	"4,11,2000,-;nvme nvme0: I/O 12 QID 3 timeout, aborting\n"
	" SUBSYSTEM=nvme\n"
	" DEVICE=c241:0\n"
	"3,12,3000,-;blk_update_request: I/O error, dev sda, sector 5 op 0x0:(READ)\n"
	"3,13,3001,-;blk_update_request: I/O error, dev sda, sector 9 op 0x0:(READ)\n"
	"3,14,4000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
	"3,15,4001,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=7, MMU Fault\n"
	"3,14,4002,-;I/O error, dev fd0, sector 0\n"
	"11,16,5000,-;a program says: I/O error, dev sdz, sector 1\n"
	"1,17,6000,-;mce: [Hardware Error]: Machine check events logged\n"
	"0,18,6001,-;EDAC MC0: 1 UE memory read error on A1\n"
	"0,19,6002,-;EDAC MC0: 2 CE memory read error on A1\n";

static void the_kernels_log_is_searched(void **state)
{
	(void)state;
	fake_file("/dev/kmsg", log_text);
	struct error_counters now = counters_of_class(ERRORS_KERNEL_LOG);
	const struct error_counter *disk = counter_at(&now, "sda", "disk: I/O error");
	assert_int_equal(disk->count, 2);
	assert_false(disk->corrected);
	assert_non_null(strstr(disk->evidence, "sector 9"));
	assert_int_equal(counter_at(&now, "PCI 0000:3b:00", "Xid 79")->count, 1);
	assert_true(counter_at(&now, "", "NVMe: time-out")->corrected);
	assert_true(counter_at(&now, "", "machine check logged")->corrected);
	assert_false(counter_at(&now, "", "EDAC: uncorrected memory error")->corrected);
	assert_true(counter_at(&now, "", "EDAC: corrected memory error")->corrected);
	/* Neither what a program wrote there, nor the fault of a program on the GPU. */
	assert_int_equal(now.count, 6);
	assert_int_equal(now.log_next, 20);
	assert_true(now.log_lost); /* its first record is not the first of all */
	error_counters_release(&now);
}

static void of_the_log_only_later_records_grow(void **state)
{
	(void)state;
	char longer[sizeof log_text + 256];
	fake_file("/dev/kmsg", log_text);
	struct error_counters before = counters_of_class(ERRORS_KERNEL_LOG);
	(void)snprintf(longer, sizeof longer,
		"%s3,20,7000,-;I/O error, dev sda, sector 7\n3,21,7001,-;nothing\n", log_text);
	fake_file("/dev/kmsg", longer);
	struct error_counters after = counters_of(ERROR_CLASS_BIT(ERRORS_KERNEL_LOG), &before);
	assert_int_equal(after.count, 1);
	assert_int_equal(
		error_counter_growth(&before, counter_at(&after, "sda", "disk: I/O error")), 1);
	assert_false(after.log_lost);
	error_counters_release(&after);
	/* Records that were overwritten are said to be lost. */
	fake_file("/dev/kmsg", "3,30,9000,-;I/O error, dev sdb, sector 7\n");
	after = counters_of(ERROR_CLASS_BIT(ERRORS_KERNEL_LOG), &before);
	assert_true(after.log_lost);
	assert_int_equal(error_counters_sum(&after, ERRORS_KERNEL_LOG, false), 1);
	error_counters_release(&after);
	error_counters_release(&before);
}

static void a_quiet_log_is_counted_and_empty(void **state)
{
	(void)state;
	fake_file("/dev/kmsg", "");
	struct error_counters before = counters_of_class(ERRORS_KERNEL_LOG);
	assert_string_equal(before.why[ERRORS_KERNEL_LOG], "");
	assert_int_equal(before.count, 1);
	assert_int_equal(before.list[0].count, 0);
	fake_file("/dev/kmsg", "3,0,1,-;EXT4-fs error (device sda1): bad block\n");
	struct error_counters after = counters_of(ERROR_CLASS_BIT(ERRORS_KERNEL_LOG), &before);
	assert_int_equal(error_counter_growth(&before, &after.list[0]), 1);
	error_counters_release(&after);
	error_counters_release(&before);
}

static void hostile_files_neither_crash_nor_lie(void **state)
{
	(void)state;
	static const char binary[] = "\xff\xfe\0\x01\x1b[2J9999999999999999999999\n";
	fake_bytes(MC "/ce_count", binary, sizeof binary);
	fake_file(MC "/ue_count", "-3\n");
	fake_file("/sys/devices/system/edac/mc/mc1/ce_count", "99999999999999999999999999\n");
	fake_file("/sys/devices/system/edac/mc/mc1/ue_count", "18446744073709551615\n");
	fake_bytes("/sys/devices/system/edac/mc/mc1/dimm0/dimm_label", binary, sizeof binary);
	fake_file("/sys/devices/system/edac/mc/mc1/dimm0/dimm_ce_count", "1\n");
	fake_file("/sys/block/sda/device/ioerr_cnt", "0xzz\n");
	fake_bytes("/proc/interrupts", binary, sizeof binary);
	fake_file("/sys/bus/pci/devices/x/aer_dev_fatal",
		"nonsense\nA 1e400\nB -4\nC nan\n\n\n12345678901234567890123456789012345678901234 2\n");
	char *log = malloc(300000);
	assert_non_null(log);
	memset(log, 'x', 300000);
	memcpy(log, "3,5,1,-;I/O error, dev ", 23);
	memcpy(log + 200000, "\n3;\n,,;\n99999999999999999999,1,;EDAC  UE \n", 41);
	fake_bytes("/dev/kmsg", log, 300000);
	free(log);
	struct error_counters now = counters_of(ERRORS_QUICK, NULL);
	for (size_t i = 0; i < now.count; i++) {
		assert_null(strchr(now.list[i].place, '\x1b'));
		assert_true(strlen(now.list[i].name) > 0);
	}
	assert_int_equal(
		counter_at(&now, "mc1", "uncorrected memory errors")->count, UINT64_MAX / 2);
	/* A sum never wraps round. */
	assert_true(error_counters_sum(&now, ERROR_CLASSES, false) >= UINT64_MAX / 2);
	assert_true(now.why[ERRORS_DISK][0]);
	error_counters_release(&now);
}

static void an_unreadable_file_is_not_a_zero(void **state)
{
	(void)state;
	char path[128];
	fake_file(MC "/ce_count", "1\n");
	fake_file(MC "/ue_count", "1\n");
	/* A folder in the place of a file cannot be read, by root neither. */
	fake_drop(MC "/ce_count");
	fake_drop(MC "/ue_count");
	(void)snprintf(path, sizeof path, "%s" MC "/ce_count", fake_root);
	assert_int_equal(mkdir(path, 0700), 0);
	struct error_counters now = counters_of_class(ERRORS_MEMORY);
	assert_int_equal(now.count, 0);
	assert_true(now.why[ERRORS_MEMORY][0]);
	error_counters_release(&now);
}

static void devices_memory_and_links(void **state)
{
	(void)state;
	fake_nvml_script("devices=2 corrected=7 uncorrected=0 rows=1 links=2 replays=3");
	struct error_counters now = counters_of_class(ERRORS_GPU);
	assert_string_equal(now.why[ERRORS_GPU], "");
	assert_int_equal(counter_at(&now, "device 1", "corrected memory errors")->count, 7);
	assert_int_equal(counter_at(&now, "device 0 NVLink 0", "NVLink replays")->count, 3);
	assert_int_equal(counter_at(&now, "device 0 NVLink 1", "NVLink replays")->count, 0);
	assert_int_equal(error_counters_sum(&now, ERRORS_GPU, false), 2); /* rows */
	error_counters_release(&now);
	fake_nvml_script("devices=1 init=9");
	now = counters_of_class(ERRORS_GPU);
	assert_non_null(strstr(now.why[ERRORS_GPU], "driver is not loaded"));
	error_counters_release(&now);
	fake_nvml_script("devices=1 deny=ecc:3 deny=rows:3");
	now = counters_of_class(ERRORS_GPU);
	assert_non_null(strstr(now.why[ERRORS_GPU], "not supported"));
	error_counters_release(&now);
}

static void this_node_can_be_read(void **state)
{
	struct error_counters now;
	(void)state;
	assert_int_equal(error_counters_read("", ERRORS_QUICK, NULL, &now), 0);
	for (int class = 0; class < ERROR_CLASSES; class ++) {
		bool any = now.why[class][0] || class == ERRORS_GPU;
		for (size_t i = 0; i < now.count && !any; i++)
			any = (int)now.list[i].class == class;
		assert_true(any); /* a counter or a reason */
		assert_true(error_class_name((enum error_class) class)[0]);
	}
	error_counters_release(&now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define ON_ROOT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		ON_ROOT(memory_errors_are_told_by_module),
		ON_ROOT(memory_errors_of_older_kernels_are_told_by_row),
		ON_ROOT(a_rising_counter_grows),
		ON_ROOT(a_class_that_is_not_counted_says_why),
		ON_ROOT(machine_checks_name_the_cpu),
		ON_ROOT(pcie_errors_are_counted_once),
		ON_ROOT(disks_and_links),
		ON_ROOT(the_kernels_log_is_searched),
		ON_ROOT(of_the_log_only_later_records_grow),
		ON_ROOT(a_quiet_log_is_counted_and_empty),
		ON_ROOT(hostile_files_neither_crash_nor_lie),
		ON_ROOT(an_unreadable_file_is_not_a_zero),
		ON_ROOT(devices_memory_and_links),
		cmocka_unit_test(this_node_can_be_read),
	};
	if (!fake_nvml_load("new"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
