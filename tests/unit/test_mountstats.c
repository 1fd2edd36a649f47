/* The counts of the kernel's NFS client.  The texts are written by hand after the format's
 * documentation: there is no such client where the tests run. */
#include "harness/measure/mountstats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define OTHER_MOUNTS                                      \
	"device rootfs mounted on / with fstype rootfs\n" \
	"device proc mounted on /proc with fstype proc\n" \
	"no device mounted on /run with fstype tmpfs\n"   \
	"device auto.home mounted on /home with fstype autofs\n"

#define EVENTS                                                                         \
	"\tevents:\t12 340 0 5 11 8 400 0 0 320 0 40 3 0 2 1 0 9 0 0 0 0 0 0 0 0 0 \n" \
	"\tbytes:\t1048576 0 0 0 1048576 0 256 0 \n"

/* NFSv4.2 with two connections: statvers 1.1, with nine numbers. */
#define V42_HEAD(age)                                                                         \
	"device 10.0.0.2:/data mounted on /mnt/train with fstype nfs4 statvers=1.1\n"         \
	"\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,acregmin=3,acregmax=60," \
	"acdirmin=30,acdirmax=60,hard,proto=tcp,nconnect=2,timeo=600,retrans=2,sec=sys,"      \
	"clientaddr=10.0.0.1,local_lock=none\n"                                               \
	"\tage:\t" age "\n"                                                                   \
	"\timpl_id:\tname='',domain='',date='0,0'\n"                                          \
	"\tcaps:\tcaps=0xffbffff,wtmult=512,dtsize=1048576,bsize=0,namlen=255\n"              \
	"\tnfsv4:\tbm0=0xfdffbfff,bm1=0x40f9be3e,bm2=0x60803,acl=0x3,sessions,pnfs=not "      \
	"configured,lease_time=90,lease_expired=0\n"                                          \
	"\tsec:\tflavor=1,pseudoflavor=1\n" EVENTS                                            \
	"\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"                                   \
	"\txprt:\ttcp 0 0 2 0 10 900 900 0 950 0 2 100 50\n"                                  \
	"\txprt:\ttcp 0 0 1 0 10 800 800 0 850 0 2 100 50\n"                                  \
	"\tper-op statistics\n"

#define V42_FIRST                                                 \
	V42_HEAD("100")                                           \
	"\t        NULL: 2 2 0 88 48 0 1 1 0\n"                   \
	"\t        READ: 100 100 0 22000 13107200 50 300 360 0\n" \
	"\t       WRITE: 0 0 0 0 0 0 0 0 0\n"                     \
	"\t        OPEN: 20 20 0 5000 8000 0 20 22 1\n"           \
	"\t     GETATTR: 30 30 0 6000 7200 0 6 7 0\n"             \
	"\n"

#define V42_SECOND                                                       \
	V42_HEAD("110")                                                  \
	"\t        NULL: 2 2 0 88 48 0 1 1 0\n"                          \
	"\t        READ: 1100 1105 1 242000 144179200 550 5300 5960 0\n" \
	"\t       WRITE: 0 0 0 0 0 0 0 0 0\n"                            \
	"\t        OPEN: 120 120 0 30000 48000 10 120 142 1\n"           \
	"\t     GETATTR: 50 50 0 10000 12000 0 16 18 0\n"                \
	"\t       CLOSE: 100 100 0 20000 18000 0 50 60 0\n"              \
	"\n"

static struct mountstats parsed(const char *text, const char *point)
{
	static struct mountstats stats;
	mountstats_parse(text, point, &stats);
	return stats;
}

static struct network_measurement between(const char *from, const char *to, const char *point)
{
	static struct mountstats first;
	static struct mountstats second;
	struct network_measurement out;
	first = parsed(from, point);
	second = parsed(to, point);
	mountstats_between(&first, &second, 10, &out);
	return out;
}

static void a_mount_is_read(void **state)
{
	(void)state;
	const struct mountstats stats = parsed(OTHER_MOUNTS V42_FIRST OTHER_MOUNTS, "/mnt/train");
	assert_string_equal(stats.why, "");
	assert_string_equal(stats.protocol, "NFSv4.2");
	assert_string_equal(stats.server, "10.0.0.2");
	assert_int_equal(stats.age_s, 100);
	assert_int_equal(stats.request_bytes, 1048576);
	assert_int_equal(stats.connections, 2);
	assert_int_equal(stats.kind_count, 4); /* WRITE was never called */
	assert_string_equal(stats.kinds[1].name, "READ");
	assert_int_equal(stats.kinds[1].counts[MOUNTSTATS_BYTES_RECEIVED], 13107200);
	assert_int_equal(stats.kinds[1].counts[MOUNTSTATS_EXECUTE_MS], 360);
}

static void two_looks_make_a_measurement(void **state)
{
	(void)state;
	const struct network_measurement n =
		between(OTHER_MOUNTS V42_FIRST, OTHER_MOUNTS V42_SECOND, "/mnt/train");
	assert_string_equal(n.why, "");
	assert_string_equal(n.client, "kernel");
	assert_string_equal(n.protocol, "NFSv4.2");
	assert_true(n.seconds == 10 && n.connections == 2 && n.request_bytes == 1048576);
	assert_int_equal(n.call_count, 4); /* NULL was not called meanwhile */
	assert_string_equal(n.calls[0].name, "READ");
	assert_true(n.calls[0].calls == 1000 && n.calls[0].retransmits == 5);
	assert_true(fabs(n.calls[0].queue_ns - 0.5e6) < 1);
	assert_true(fabs(n.calls[0].round_trip_ns - 5e6) < 1);
	assert_true(fabs(n.calls[0].execute_ns - 5.6e6) < 1);
	assert_true(n.calls[0].bytes_received == 144179200 - 13107200);
	/* What was called for the first time between the two. */
	size_t at = 0;
	while (at < n.call_count && strcmp(n.calls[at].name, "CLOSE") != 0)
		at++;
	assert_true(at < n.call_count && n.calls[at].calls == 100 && n.calls[at].retransmits == 0);
	/* 20 GETATTRs beside the load. */
	assert_true(fabs(n.idle_round_trip_ns - 0.5e6) < 1);
	assert_true(isnan(n.wire_round_trip_ns) && isnan(n.link_bytes_per_s));
}

/* statvers 1.0, NFSv3 over UDP, eight numbers, an IPv6 address, a point with a space. */
static void older_formats_are_read(void **state)
{
	(void)state;
	static const char text[] =
		"device [fd00::2]:/a\\040b mounted on /mnt/a\\040b with fstype nfs statvers=1.0\n"
		"\topts:\tro,vers=3,rsize=32768,proto=udp\n"
		"\tage:\t7\n"
		"\tcaps:\tcaps=0xf,wtmult=4096,dtsize=4096,bsize=0,namelen=255\n"
		"\tsec:\tflavor=1,pseudoflavor=1\n" EVENTS
		"\tRPC iostats version: 1.0  p/v: 100003/3 (nfs)\n"
		"\txprt:\tudp 797 1 12 12 0 12 0\n"
		"\tper-op statistics\n"
		"\t        NULL: 0 0 0 0 0 0 0 0\n"
		"\t        READ: 12 12 0 1536 49152 3 10 14\n";
	const struct mountstats stats = parsed(text, "/mnt/a b");
	assert_string_equal(stats.why, "");
	assert_string_equal(stats.protocol, "NFSv3");
	assert_string_equal(stats.server, "[fd00::2]");
	assert_int_equal(stats.connections, 1);
	assert_int_equal(stats.kind_count, 1);
	assert_int_equal(stats.kinds[0].counts[MOUNTSTATS_ROUND_TRIP_MS], 10);
}

static void other_versions_have_their_names(void **state)
{
	static const char *const rows[][3] = {{"vers=4.0,", "4", "NFSv4.0"},
		{"vers=4.1,", "4", "NFSv4.1"}, {"", "3", "NFSv3"}, {"vers=3,", "4", NULL},
		{"vers=4.12345678,", "4", NULL}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[1024];
		(void)snprintf(text, sizeof text,
			"device s:/e mounted on /m with fstype nfs4 statvers=1.1\n"
			"\topts:\trw,%srsize=4096\n\tage:\t7\n"
			"\tRPC iostats version: 1.1  p/v: 100003/%s (nfs)\n"
			"\txprt:\ttcp 0 0 1 0 10 900 900 0 950 0 2 100 50\n"
			"\tper-op statistics\n\tREAD: 1 1 0 1 1 1 1 1 0\n",
			rows[i][0], rows[i][1]);
		const struct mountstats stats = parsed(text, "/m");
		if (rows[i][2])
			assert_string_equal(stats.protocol, rows[i][2]);
		assert_int_equal(stats.why[0] != '\0', rows[i][2] == NULL);
	}
}

/* Reads from data servers are not among the mount's calls: all the others would seem to be most. */
static void parallel_nfs_is_not_counted(void **state)
{
	static const char *const rows[][2] = {{"not configured,lease_time=90", ""},
		{"LAYOUT_NFSV4_1_FILES,lease_time=90", "pNFS"}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[1024];
		(void)snprintf(text, sizeof text,
			"device s:/e mounted on /m with fstype nfs4 statvers=1.1\n"
			"\topts:\trw,vers=4.1,rsize=4096\n\tage:\t7\n"
			"\tnfsv4:\tbm0=0xfdffbfff,acl=0x3,sessions,pnfs=%s\n"
			"\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
			"\txprt:\ttcp 0 0 1 0 10 900 900 0 950 0 2 100 50\n"
			"\tper-op statistics\n\tREAD: 1 1 0 1 1 1 1 1 0\n",
			rows[i][0]);
		const struct mountstats stats = parsed(text, "/m");
		assert_true(rows[i][1][0] ? strstr(stats.why, rows[i][1]) != NULL : !stats.why[0]);
	}
}

/* Of two mounts at one point the last is what is seen there. */
static void the_upper_mount_counts(void **state)
{
	(void)state;
	assert_int_equal(parsed(V42_FIRST V42_SECOND, "/mnt/train").age_s, 110);
	assert_string_not_equal(
		parsed(V42_FIRST "device tmpfs mounted on /mnt/train with fstype tmpfs\n",
			"/mnt/train")
			.why,
		"");
}

static void what_is_odd_is_a_reason(void **state)
{
	static const char *const tails[] = {
		"\tREAD: 1 2 3\n",
		"\tREAD: 1 2 3 4 5 6 7\n",
		"\tREAD: 1 2 3 4 5 6 7 8 9 10\n",
		"\tREAD: 1 2 3 4 5 6 -7 8 9\n",
		"\tREAD: 1 2 3 4 5 6 7.5 8 9\n",
		"\tREAD: 1 2 3 4 5 6 18446744073709551615 8 9\n",
		"\tREAD: 1 2 3 4 5 6 99999999999999999999999 8 9\n",
		"\tREAD 1 2 3 4 5 6 7 8 9\n",
		"\t: 1 2 3 4 5 6 7 8 9\n",
		"\tA_KIND_OF_CALL_WITH_A_NAME: 1 2 3 4 5 6 7 8 9\n",
		"\tREAD: 1 1 3 4 5 6 7 8 9\n\tREAD: 1 1 3 4 5 6 7 8 9\n",
		"\tREAD: 1 1 3 4 5 6 7 8 9\nper-op\n",
		/* torn: maybe within a number */
		"\tREAD: 1 2 3 4 5 6 7 8 9",
	};
	(void)state;
	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
		char text[4096];
		(void)snprintf(text, sizeof text, "%s%s", V42_HEAD("5"), tails[i]);
		const struct mountstats stats = parsed(text, "/mnt/train");
		if (!stats.why[0] || stats.kind_count > 0 || stats.protocol[0])
			fail_msg("row %zu was taken", i);
	}
	static const char *const whole[] = {
		"",
		"device",
		OTHER_MOUNTS,
		"device s:/e mounted on /mnt/train with fstype nfs4 statvers=1.2\n",
		"device s:/e mounted on /mnt/train with fstype nfs4\n",
		"device s:/e mounted on /mnt/train with fstype nfs4 statvers=1.1\n",
		"device s:/e mounted on /mnt/train with fstype nfs4 statvers=1.1\n\tage:\tsoon\n",
		"device s:/e mounted on /mnt/train with fstype ext4\n",
		V42_HEAD("100") "\tREAD: 1 1 0 0 0 0 0 0",
	};
	for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
		assert_string_not_equal(parsed(whole[i], "/mnt/train").why, "");
}

/* An unreadable look is no look at zeros: all since the mount would count. */
static void looks_that_do_not_fit_have_no_counts(void **state)
{
	static const char *const rows[][2] = {
		{"", V42_SECOND},             /* nothing at first */
		{V42_FIRST, ""},              /* nothing at last */
		{V42_SECOND, V42_FIRST},      /* went back: mounted anew */
		{V42_FIRST, V42_HEAD("102")}, /* of an age that does not fit */
		{V42_FIRST, V42_HEAD("110")}, /* kinds are gone */
		{V42_FIRST, V42_HEAD("110") "\tREAD: 99 100 0 22000 13107200 50 300 360 0\n"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct network_measurement n = between(rows[i][0], rows[i][1], "/mnt/train");
		if (!n.why[0] || n.call_count > 0 || !isnan(n.seconds))
			fail_msg("row %zu was counted", i);
		assert_memory_equal(n.protocol, "NFS", 3);
	}
}

/* More kinds than a record has room for: those that were called least are one, and none is lost. */
static void kinds_without_room_are_others(void **state)
{
	enum { KINDS = 20 };
	char text[8192];
	struct network_measurement n;
	double calls = 0;
	double bytes = 0;
	(void)state;
	int used = snprintf(text, sizeof text, "%s", V42_HEAD("110"));
	for (int i = 0; i < KINDS; i++)
		used += snprintf(text + used, sizeof text - (size_t)used,
			"\tKIND_%d: %d %d 0 10 20 0 %d %d 0\n", i, i + 1, i + 1, i + 1, i + 1);
	n = between(V42_HEAD("100"), text, "/mnt/train");
	assert_string_equal(n.why, "");
	assert_int_equal(n.call_count, NETWORK_CALLS_MAX);
	assert_string_equal(n.calls[0].name, "KIND_19");
	assert_string_equal(n.calls[NETWORK_CALLS_MAX - 1].name, "others");
	for (size_t i = 0; i < n.call_count; i++) {
		calls += n.calls[i].calls;
		bytes += n.calls[i].bytes_received;
		assert_true(fabs(n.calls[i].round_trip_ns - 1e6) < 1);
	}
	assert_true(calls == KINDS * (KINDS + 1) / 2.0 && bytes == 20 * KINDS);
}

/* What is not known of a call leaves what is known of the others. */
static void unknown_members_do_not_spread(void **state)
{
	(void)state;
	struct network_measurement n;
	const struct network_call known = {"READ", 10, 1, 1e6, 2e6, 3e6, 100, 200};
	const struct network_call unknown = {"READ", 30, NAN, NAN, 4e6, NAN, NAN, NAN};
	network_measurement_init(&n, "");
	network_add_call(&n, &known);
	network_add_call(&n, &unknown);
	assert_int_equal(n.call_count, 1);
	assert_true(n.calls[0].calls == 40 && n.calls[0].retransmits == 1);
	assert_true(n.calls[0].queue_ns == 1e6 && n.calls[0].round_trip_ns == 3.5e6);
	assert_true(n.calls[0].bytes_sent == 100 && n.calls[0].bytes_received == 200);
}

static void a_file_is_read(void **state)
{
	(void)state;
	char path[] = "/tmp/mlbench-mountstats-XXXXXX";
	struct mountstats stats;
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, V42_FIRST, strlen(V42_FIRST)), (ssize_t)strlen(V42_FIRST));
	assert_int_equal(close(fd), 0);
	mountstats_read(path, "/mnt/train", &stats);
	assert_string_equal(stats.why, "");
	assert_int_equal(unlink(path), 0);
	mountstats_read(path, "/mnt/train", &stats);
	assert_non_null(strstr(stats.why, "cannot be read"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mount_is_read),
		cmocka_unit_test(two_looks_make_a_measurement),
		cmocka_unit_test(older_formats_are_read),
		cmocka_unit_test(other_versions_have_their_names),
		cmocka_unit_test(parallel_nfs_is_not_counted),
		cmocka_unit_test(the_upper_mount_counts),
		cmocka_unit_test(what_is_odd_is_a_reason),
		cmocka_unit_test(looks_that_do_not_fit_have_no_counts),
		cmocka_unit_test(kinds_without_room_are_others),
		cmocka_unit_test(unknown_members_do_not_spread),
		cmocka_unit_test(a_file_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
