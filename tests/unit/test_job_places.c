/* Mounts and GPUs of a job on a fake root: what is counted between two looks, and what has a reason instead. */
#include "harness/measure/job_places.h"
#include "tests/unit/fake_root.h"

#define MOUNT "30 1 0:40 / /data rw - nfs4 server:/export rw\n"
#define STATS_ZEROS "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
#define STATS(age, reads, ms)                                                          \
	"device server:/export mounted on /data with fstype nfs4 statvers=1.1\n"       \
	"\topts:\trw,vers=4.2,rsize=1048576,namlen=255,hard,proto=tcp,addr=10.0.0.2\n" \
	"\tage:\t" age "\n"                                                            \
	"\tcaps:\tcaps=0x3fffbfbf,wtmult=512,dtsize=1048576,bsize=0,namlen=255\n"      \
	"\tevents:\t" STATS_ZEROS "\n"                                                 \
	"\tbytes:\t0 0 0 0 0 0 0 0\n"                                                  \
	"\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"                            \
	"\txprt:\ttcp 0 0 1 0 0 10 10 0 10 0 2 0 0\n"                                  \
	"\tper-op statistics\n"                                                        \
	"\t        READ: " reads " " reads " 0 1000 100000 0 " ms " " ms " 0\n"        \
	"\n"

static int places_up(void **state)
{
	(void)state;
	fake_root_make();
	fake_file("/proc/7/mountinfo", MOUNT "31 1 8:1 / / rw - ext4 /dev/a rw\n");
	return 0;
}

static int places_down(void **state)
{
	(void)state;
	fake_root_remove();
	return 0;
}

static void test_mounts(void **state)
{
	struct job_places_watch *watch;
	struct error err;
	(void)state;
	fake_file("/proc/7/mountstats", STATS("100", "100", "500"));
	assert_int_equal(job_places_begin(&watch, fake_root, 7, 0, &err), 0);
	fake_file("/proc/7/mountstats", STATS("110", "300", "1500"));
	const struct job_places *places = job_places_end(watch);
	assert_int_equal(places->mount_count, 1);
	assert_int_equal(places->gpu_count, 0);
	const struct network_measurement *n = &places->mounts[0].network;
	assert_string_equal(n->why, "");
	assert_string_equal(n->server, ""); /* nobody's business */
	assert_int_equal(n->call_count, 1);
	assert_string_equal(n->calls[0].name, "READ");
	assert_true(n->calls[0].calls == 200);
	assert_true(n->calls[0].round_trip_ns == 5e6);
	job_places_close(watch);
}

static void test_reasons(void **state)
{
	struct job_places_watch *watch;
	struct error err;
	(void)state;
	assert_int_equal(
		job_places_begin(&watch, fake_root, 7, 1, &err), 0); /* no mountstats, no driver */
	const struct job_places *places = job_places_end(watch);
	assert_int_equal(places->mount_count, 1);
	assert_true(places->mounts[0].network.why[0]);
	assert_true(places->gpu_why[0]);
	job_places_close(watch);
	assert_int_equal(job_places_begin(&watch, fake_root, 8, 0, &err), 0); /* no such process */
	assert_int_equal(job_places_end(watch)->mount_count, 0);
	job_places_close(watch);
	job_places_close(NULL);
}

/* A GPU that is open, and no driver that answers: the run goes on with the reason. */
static void test_gpu(void **state)
{
	struct job_places_watch *watch;
	struct error err;
	(void)state;
	fake_file("/proc/driver/nvidia/gpus/0000:3b:00.0/information",
		"Model: \t\t NVIDIA\nDevice Minor: \t 2\n");
	fake_file("/proc/driver/nvidia/gpus/0000:4b:00.0/information",
		"Model: \t\t NVIDIA\nDevice Minor: \t 3\n");
	assert_int_equal(job_places_begin(&watch, fake_root, 7, 4, &err), 0);
	const struct job_places *places = job_places_end(watch);
	assert_int_equal(places->gpu_count, 1);
	assert_string_equal(places->gpus[0].device.bus, "0000:3b:00.0");
	if (places->gpus[0].count == 0)
		assert_true(places->gpu_why[0]);
	job_places_close(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mounts, places_up, places_down),
		cmocka_unit_test_setup_teardown(test_reasons, places_up, places_down),
		cmocka_unit_test_setup_teardown(test_gpu, places_up, places_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
