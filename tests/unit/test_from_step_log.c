/* Logs of steps whose times are planted, in every form that is recognised; names and units; and what is no log, or a torn or
 * ambiguous one. */
#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/crc32c.h"
#include "harness/base/files.h"
#include "harness/fit/finding.h"
#include "harness/fit/step_names.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char work_folder[] = "/tmp/mlbench-steps-XXXXXX";

static void expect_near(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%.9g, not %.9g", value, expected);
}

static const char *log_path(const char *name)
{
	static char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", work_folder, name);
	return path;
}

static int log_of(struct findings *out, const void *bytes, size_t size, struct error *err)
{
	assert_int_equal(files_write_atomic(log_path("log"), bytes, size, err), 0);
	findings_open(out);
	*err = (struct error){0};
	const int code = findings_from_step_log(out, log_path("log"), err);
	if (code)
		assert_true(strlen(err->text) > 10 && !strchr(err->text, '\n'));
	assert_null(strstr(err->text, "SECRET"));
	for (size_t i = 0; i < out->note_count; i++)
		assert_null(strstr(out->notes[i], "SECRET"));
	return code;
}

static int log_of_text(struct findings *out, const char *text, struct error *err)
{
	return log_of(out, text, strlen(text), err);
}

static bool log_notes(const struct findings *findings, const char *words)
{
	for (size_t i = 0; i < findings->note_count; i++)
		if (strstr(findings->notes[i], words))
			return true;
	return false;
}

static void log_expect(
	const struct findings *findings, enum finding_id id, double value, enum finding_how how)
{
	expect_near(findings->known[id].value, value, fabs(value) * 1e-4);
	assert_int_equal(findings->known[id].how, how);
	assert_int_equal(findings->known[id].source, SOURCE_STEP_LOG);
}

/* --- names ------------------------------------------------------------------------------------ */

static void test_names(void **state)
{
	static const struct {
		const char *name;
		enum step_role role;
		double unit_ns;
	} cases[] = {
		{"step_time_ms", STEP_ROLE_TIME, 1e6},
		{"perf/step_time", STEP_ROLE_TIME, 0},
		{"Train/Step Time (s)", STEP_ROLE_TIME, 1e9},
		{"iter_time", STEP_ROLE_TIME, 0},
		{"train_step_timing in s", STEP_ROLE_TIME, 1e9},
		{"duration_us", STEP_ROLE_TIME, 1e3},
		{"duration[ms]", STEP_ROLE_TIME, 1e6},
		{"s/it", STEP_ROLE_TIME, 1e9},
		{"step_ms", STEP_ROLE_TIME, 1e6},
		{"step_time/ms", STEP_ROLE_TIME, 1e6},
		{"it/s", STEP_ROLE_RATE, 0},
		{"global_step/sec", STEP_ROLE_RATE, 0},
		{"train/steps_per_second", STEP_ROLE_RATE, 0},
		{"images/s", STEP_ROLE_SAMPLES, 0},
		{"samples_per_sec", STEP_ROLE_SAMPLES, 0},
		{"data_time_ms", STEP_ROLE_WAIT, 1e6},
		{"perf/data_time", STEP_ROLE_WAIT, 0},
		{"Wall time", STEP_ROLE_CLOCK, 0},
		{"timestamp_ms", STEP_ROLE_CLOCK, 1e6},
		{"elapsed_s", STEP_ROLE_CLOCK, 1e9},
		{"global_step", STEP_ROLE_NUMBER, 0},
		{"Step", STEP_ROLE_NUMBER, 0},
		{"time", STEP_ROLE_TIME, 0},
		{"val/step_time", STEP_ROLE_NONE, 0},
		{"eval_iter_time_ms", STEP_ROLE_NONE, 0},
		{"loss", STEP_ROLE_NONE, 0},
		{"", STEP_ROLE_NONE, 0},
		{"____", STEP_ROLE_NONE, 0},
		{"\xff\xff_ms", STEP_ROLE_NONE, 0},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct step_name name = step_name_of(cases[i].name, strlen(cases[i].name));
		if (name.role != cases[i].role ||
			(name.role != STEP_ROLE_NONE && name.unit_ns != cases[i].unit_ns))
			fail_msg("'%s' is %d in %g", cases[i].name, (int)name.role, name.unit_ns);
	}
	char long_name[4096];
	memset(long_name, '/', sizeof long_name);
	assert_int_equal(step_name_of(long_name, sizeof long_name).role, STEP_ROLE_NONE);
	memset(long_name, 'a', sizeof long_name);
	assert_int_equal(step_name_of(long_name, sizeof long_name).role, STEP_ROLE_NONE);
}

static void test_numbers(void **state)
{
	double value;
	double unit;
	(void)state;
	assert_true(step_number("31.5ms", 6, &value, &unit) && value == 31.5 && unit == 1e6);
	assert_true(step_number("3e-2 s", 6, &value, &unit) && value == 3e-2 && unit == 1e9);
	assert_true(step_number("-7", 2, &value, &unit) && value == -7 && unit == 0);
	assert_false(step_number("nan", 3, &value, &unit));
	assert_false(step_number("inf", 3, &value, &unit));
	assert_false(step_number("1e999", 5, &value, &unit));
	assert_false(step_number("0x10", 4, &value, &unit));
	assert_false(step_number("12 apples", 9, &value, &unit));
	assert_false(step_number("", 0, &value, &unit));
	assert_true(step_moment("2026-11-26 06:53:01.250", 23, &value));
	expect_near(value, 1795675981.25, 1e-6);
	assert_true(step_moment("2026-11-26T06:53:01,250Z", 24, &value));
	expect_near(value, 1795675981.25, 1e-6);
	assert_true(step_moment("2026-11-26T06:53:01+01:00", 25, &value));
	assert_false(step_moment("2026-11-26 noon o'clock", 23, &value));
	assert_true(step_epoch_unit_ns(1795675981.25) == 1e9);
	assert_true(step_epoch_unit_ns(1795675981250.0) == 1e6);
	assert_true(step_epoch_unit_ns(1795675981250000.0) == 1e3);
	assert_true(step_epoch_unit_ns(1795675981250000000.0) == 1);
	assert_true(step_epoch_unit_ns(12345) == 0);
}

/* --- CSV -------------------------------------------------------------------------------------- */

/* Thirty steps of 50 ms on average, of which 20 ms are waits; the first is warm-up. */
enum { PLANTED_STEPS = 31 };

static double planted_ms(int step)
{
	return step == 0 ? 3000 : 50 + (step % 3 - 1) * 6;
}

static void test_table(void **state)
{
	struct buffer text = {0};
	struct findings findings;
	struct error err;
	(void)state;
	buffer_text(&text, "# run of SECRET\nstep,step_time_ms,data_time_ms,loss,images_per_s\n");
	for (int i = 0; i < PLANTED_STEPS; i++)
		buffer_format(&text, "%d,%.4f,20.0,nan,%.2f\n", i + 1, planted_ms(i),
			64e3 / planted_ms(i));
	assert_int_equal(log_of(&findings, text.data, text.size, &err), 0);
	log_expect(&findings, FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
	log_expect(&findings, FINDING_STEP_WAIT, 20e6, FINDING_MEASURED);
	log_expect(&findings, FINDING_STEP_TIME, 30e6, FINDING_DERIVED);
	log_expect(&findings, FINDING_BATCH_SIZE, 64, FINDING_DERIVED);
	log_expect(&findings, FINDING_THROUGHPUT, 1280, FINDING_DERIVED);
	assert_int_equal(findings.step_count, PLANTED_STEPS - 1);
	assert_int_equal(findings.step_is, FINDING_STEP_TIME);
	assert_true(findings.step_series);
	expect_near(findings.step_ns[0], planted_ms(1) * 1e6 - 20e6, 1);
	assert_true(log_notes(&findings, "1 slow step"));
	assert_true(log_notes(&findings, "are taken to have"));
	findings_close(&findings);
	/* torn in the last line, which then does not count */
	text.size -= 12;
	assert_int_equal(log_of(&findings, text.data, text.size, &err), 0);
	assert_int_equal(findings.step_count, PLANTED_STEPS - 2);
	findings_close(&findings);
	buffer_release(&text);
}

/* Of two columns of one kind one counts, and the log's reader is told which.  "time" is a step time where nothing else is. */
static void test_rival_columns(void **state)
{
	static const struct {
		const char *names;
		double begin, each, period;
		const char *note;
	} logs[] = {
		{"step_time_ms,iter_time_s", 30, 0, 30e6,
			"2 columns of the log tell how long a step takes: column 1 counts"},
		{"time,step_time_ms", 1795675981, 0.05, 30e6, NULL},
		{"time_s,step_time_ms", 0.03, 0, 31e6, "takes: column 2 counts"},
	};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t k = 0; k < COUNT(logs); k++) {
		struct buffer text = {0};
		buffer_format(&text, "%s\n", logs[k].names);
		for (int i = 0; i < 20; i++)
			buffer_format(&text, "%.4f,%.4f\n", logs[k].begin + i * logs[k].each,
				k == 0 ? 0.09 : logs[k].period / 1e6);
		assert_int_equal(log_of(&findings, text.data, text.size, &err), 0);
		assert_int_equal(findings.step_count, 20);
		expect_near(findings.step_ns[7], logs[k].period, 1);
		assert_int_equal(log_notes(&findings, "columns of the log"), logs[k].note != NULL);
		assert_true(!logs[k].note || log_notes(&findings, logs[k].note));
		findings_close(&findings);
		buffer_release(&text);
	}
}

/* Moments beside the step times say whether waits are in them. */
static void test_moments_tell(void **state)
{
	struct findings findings;
	struct error err;
	(void)state;
	for (int inside = 0; inside < 2; inside++) {
		struct buffer text = {0};
		double now_s = 1795675981;
		buffer_text(&text, "timestamp;iteration;iter_time (s)\n");
		for (int i = 0; i < 20; i++, now_s += 0.05)
			buffer_format(&text, "%.6f;%d;%.4f\n", now_s, i, inside ? 0.0499 : 0.03);
		assert_int_equal(log_of(&findings, text.data, text.size, &err), 0);
		assert_false(log_notes(&findings, "are taken to have"));
		if (inside) {
			log_expect(&findings, FINDING_STEP_PERIOD, 49.9e6, FINDING_MEASURED);
			assert_int_equal(findings.known[FINDING_STEP_TIME].how, FINDING_UNKNOWN);
			assert_int_equal(findings.step_is, FINDING_STEP_PERIOD);
		} else {
			log_expect(&findings, FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
			log_expect(&findings, FINDING_STEP_TIME, 30e6, FINDING_MEASURED);
			assert_int_equal(findings.step_is, FINDING_STEP_TIME);
		}
		findings_close(&findings);
		buffer_release(&text);
	}
}

/* Moments and waits: the step is what is left between them. */
static void test_moments_and_waits(void **state)
{
	struct buffer text = {0};
	struct findings findings;
	struct error err;
	(void)state;
	buffer_text(&text, "step,wall_time,samples,data_time_ms\n");
	for (int i = 0; i < 40; i++)
		buffer_format(
			&text, "%d,%.6f,16,%.3f\n", i, 1795675981 + 0.025 * i, i % 2 ? 18.0 : 22.0);
	assert_int_equal(log_of_text(&findings, text.data, &err), 0);
	log_expect(&findings, FINDING_STEP_PERIOD, 25e6, FINDING_DERIVED);
	expect_near(findings.known[FINDING_STEP_WAIT].value, 20e6, 0.2e6);
	assert_int_equal(findings.known[FINDING_STEP_WAIT].how, FINDING_MEASURED);
	expect_near(findings.known[FINDING_STEP_TIME].value, 5e6, 0.2e6);
	assert_int_equal(findings.known[FINDING_STEP_TIME].how, FINDING_DERIVED);
	assert_int_equal(findings.step_is, FINDING_STEP_TIME);
	findings_close(&findings);
	buffer_release(&text);
}

/* A column of samples tells the batch, whether each row has its step's or all so far, and an epoch's
 * last batch may be smaller. */
static void test_samples_of_steps(void **state)
{
	static const double means[] = {8, 8, 7.5};
	(void)state;
	for (size_t kind = 0; kind < COUNT(means); kind++) {
		struct buffer text = {0};
		struct findings findings;
		struct error err;
		buffer_text(&text, "step,wall_time,samples,data_time_ms\n");
		for (int i = 0; i < 41; i++)
			buffer_format(&text, "%d,%.6f,%d,5.0\n", i, 1795675981 + 0.025 * i,
				kind == 1                 ? 8 * (i + 1)
				: kind == 2 && i % 4 == 0 ? 6
							  : 8);
		assert_int_equal(log_of_text(&findings, text.data, &err), 0);
		log_expect(&findings, FINDING_BATCH_SIZE, 8, FINDING_DERIVED);
		expect_near(findings.known[FINDING_THROUGHPUT].value, means[kind] / 0.025, 1);
		findings_close(&findings);
		buffer_release(&text);
	}
}

/* Long waits each 20 steps are epochs, and long steps each 15 steps stalls; at irregular distances they are neither, and shorter waits
 * behind the stalls are no epochs. */
static void test_stalls_that_come_back(void **state)
{
	(void)state;
	for (int regular = 0; regular < 3; regular++) {
		struct buffer text = {0};
		struct findings findings;
		struct error err;
		double now_s = 1795675981;
		double sum_s = 0;
		buffer_text(&text, "step,wall_time,samples,data_time_ms\n");
		for (int i = 0; i < 200; i++) {
			const bool waits = regular == 2 ? i % 15 == 5
					   : regular    ? i % 20 == 7
							: i == 20 || i == 30 || i == 170;
			const bool stalls = regular ? i % 15 == 4 : i == 50 || i == 54 || i == 180;
			/* Some that are longer than usual come at any time. */
			const double wait_s = waits                            ? 0.150
					      : i == 70 || i == 71 || i == 133 ? 0.03
									       : 0.005;
			const double step_s = stalls ? 0.520 : 0.020;
			now_s += wait_s + step_s;
			sum_s += i > 0 ? wait_s + step_s : 0;
			buffer_format(&text, "%d,%.6f,16,%.3f\n", i, now_s, 1000 * wait_s);
		}
		assert_int_equal(log_of_text(&findings, text.data, &err), 0);
		if (regular) {
			const double period = sum_s / 199 * 1e9;
			if (regular == 2) {
				assert_int_equal(
					findings.known[FINDING_EPOCH_TIME].how, FINDING_UNKNOWN);
			} else {
				expect_near(
					findings.known[FINDING_EPOCH_TIME].value, 20 * period, 1e4);
				expect_near(findings.known[FINDING_EPOCH_START].value, 150e6, 1);
			}
			expect_near(findings.known[FINDING_STALL_TIME].value, 15 * period, 1e4);
			expect_near(findings.known[FINDING_STALL].value, 500e6, 1e5);
		} else {
			assert_int_equal(findings.known[FINDING_EPOCH_TIME].how, FINDING_UNKNOWN);
			assert_int_equal(findings.known[FINDING_STALL].how, FINDING_UNKNOWN);
		}
		findings_close(&findings);
		buffer_release(&text);
	}
}

static void test_moments_alone(void **state)
{
	static const struct {
		const char *head, *form;
		double unit;
	} cases[] = {
		{"Wall time,Step,Value\n", "%.3f,%d,0.5\n", 1},
		{"time\tn\n", "%.0f\t%d\n", 1e3},
		{"ts step\n", "%.0f %d\n", 1e9},
		{"", "%.0f\n", 1e6},
		{"elapsed_s,step\n", "%.3f,%d\n", 1},
	};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t c = 0; c < COUNT(cases); c++) {
		struct buffer text = {0};
		double now_s = c == 4 ? 0 : 1795675981;
		buffer_text(&text, cases[c].head);
		for (int i = 0; i < 30; i++) {
			if (i == 20)
				now_s += 3600; /* a night */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			buffer_format(&text, cases[c].form, now_s * cases[c].unit, i);
#pragma GCC diagnostic pop
			now_s += 0.25;
		}
		assert_int_equal(log_of(&findings, text.data, text.size, &err), 0);
		log_expect(&findings, FINDING_STEP_PERIOD, 250e6, FINDING_DERIVED);
		assert_int_equal(findings.step_count, 28);
		assert_false(findings.step_series);
		assert_true(log_notes(&findings, "1 pause of"));
		findings_close(&findings);
		buffer_release(&text);
	}
}

static void test_other_tables(void **state)
{
	struct findings findings;
	struct error err;
	(void)state;
	/* one column of numbers with their units; units of cells win */
	assert_int_equal(log_of_text(&findings, "30ms\n0.031 s\n29000us\n30ms\n", &err), 0);
	log_expect(&findings, FINDING_STEP_PERIOD, 30e6, FINDING_MEASURED);
	findings_close(&findings);
	assert_int_equal(log_of_text(&findings, "it/s\n20\n20\n0\n20\n", &err), 0);
	log_expect(&findings, FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
	assert_false(log_notes(&findings, "are taken to have"));
	findings_close(&findings);
	/* waits longer than their steps cannot be in them */
	assert_int_equal(
		log_of_text(&findings, "step_time_ms,data_time_ms\n30,70\n30,70\n30,70\n", &err),
		0);
	log_expect(&findings, FINDING_STEP_TIME, 30e6, FINDING_MEASURED);
	log_expect(&findings, FINDING_STEP_PERIOD, 100e6, FINDING_DERIVED);
	findings_close(&findings);
	/* logged every tenth step: a sample, no series */
	assert_int_equal(
		log_of_text(&findings, "step,step_time_s\n10,0.1\n20,0.1\n30,0.1\n", &err), 0);
	assert_false(findings.step_series);
	findings_close(&findings);
	/* quotes, carriage returns, a mark of byte order, lines that cannot be read */
	assert_int_equal(
		log_of_text(&findings,
			"\xef\xbb\xbf\"step\",\"step_time_ms\"\r\n\"1\",\"10\"\r\n2,ten\r\n\r\n3\r\n4,-5\r\n5,10\r\n6,10\r\n",
			&err),
		0);
	log_expect(&findings, FINDING_STEP_PERIOD, 10e6, FINDING_MEASURED);
	assert_int_equal(findings.step_count, 3);
	assert_true(log_notes(&findings, "3 lines that could not be read"));
	findings_close(&findings);
}

static void test_no_logs(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} cases[] = {
		{"", -ENOMSG, "is empty"},
		{"{\"a\": 1}\n", -ENOMSG, "nothing in it has a name"},
		{"\n [1]\n", -ENOMSG, "nothing in it has a name"},
		{"\x01\x02", -ENOMSG, "neither text nor events"},
		{"31.5\n32.5\n31.1\n", -EINVAL, "without a unit"},
		{"1,31.5\n2,32.5\n", -EINVAL, "2 columns without names"},
		{"step,step_time\n1,31.5\n2,30\n3,30\n", -EINVAL, "name the column step_time_ms"},
		{"step_time_ms,data_time\n31.5,1\n", -EINVAL, "name the column data_time_ms"},
		{"time,loss\n31.5,1\n", -EINVAL, "name the column step_time_ms"},
		{"elapsed,loss\n31.5,1\n", -EINVAL, "elapsed_ms"},
		{"SECRET,loss\n1,2\n2,3\n3,4\n", -EINVAL, "no column of step times"},
		{"SECRET\n", -ENOMSG, "no column has a name"},
		{"SECRET/a.jpg\nSECRET/b.jpg\nSECRET/c.jpg\nSECRET/d.jpg\n", -ENOMSG,
			"is no log of steps"},
		{"step_time_ms\n30\n30\n", -EINVAL, "2 usable steps"},
		{"step_time_ms\n0\n0\n0\n0\n", -EINVAL, "is the unit right"},
		{"time,loss\n2026-11-26 12:00:00,1\n2026-11-26 12:00:00,1\n2026-11-26 12:00:00,1\n"
		 "2026-11-26 12:00:00,1\n2026-11-26 12:00:01,1\n",
			-EINVAL, "fractions of a second"},
		{"step,images/s\n1,600\n2,610\n3,590\n4,600\n", -EINVAL, "job.throughput"},
		{"step,wall_time\n1,0.1\n2,0.2\n3,0.3\n4,0.4\n", -EINVAL, "tells no unit of them"},
		{"step_time_s\n1e9\n1e9\n1e9\n1e9\n", -EINVAL, "is the unit right"},
		{"val_step_time_ms\n1\n1\n1\n1\n", -EINVAL, "no column of step times"},
	};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const int code = log_of_text(&findings, cases[i].text, &err);
		if (code != cases[i].code || !strstr(err.text, cases[i].says))
			fail_msg("%zu: %d: %s", i, code, err.text);
		findings_close(&findings);
	}
	struct buffer text = {0};
	while (text.size < 1 << 17)
		buffer_text(&text, "step_time_ms,");
	assert_int_equal(log_of(&findings, text.data, text.size, &err), -ENOMSG);
	findings_close(&findings);
	text.size = 0;
	while (text.size < 1 << 15) /* more columns than are looked at */
		buffer_text(&text, "step_time_ms,");
	buffer_text(&text, "\n1,1,1\n");
	assert_int_equal(log_of(&findings, text.data, text.size, &err), -ENOMSG);
	findings_close(&findings);
	buffer_release(&text);
}

/* --- events ----------------------------------------------------------------------------------- */

static void put_bits(struct buffer *out, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++) {
		const char byte = (char)(value >> (8 * i));
		buffer_add(out, &byte, 1);
	}
}

static void put_varint(struct buffer *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_bits(out, value | 0x80, 1);
	put_bits(out, value, 1);
}

static void put_bytes(struct buffer *out, int field, const void *bytes, size_t size)
{
	put_varint(out, (uint64_t)(field << 3 | 2));
	put_varint(out, size);
	buffer_add(out, bytes, size);
}

static void put_record(struct buffer *out, const void *bytes, size_t size)
{
	const size_t at = out->size;
	put_bits(out, size, 8);
	put_bits(out, crc32c_mask(crc32c_add(0, out->data + at, 8)), 4);
	buffer_add(out, bytes, size);
	put_bits(out, crc32c_mask(crc32c_add(0, bytes, size)), 4);
}

/* tensor: as TensorFlow 2 writes a scalar. */
static void put_scalar(
	struct buffer *out, double wall_s, int64_t step, const char *tag, double value, bool tensor)
{
	struct buffer event = {0};
	struct buffer summary = {0};
	struct buffer of = {0};
	const float narrow = (float)value;
	uint32_t low;
	uint64_t bits;
	memcpy(&low, &narrow, 4);
	memcpy(&bits, &wall_s, 8);
	put_bytes(&of, 1, tag, strlen(tag));
	if (tensor) {
		struct buffer content = {0};
		put_varint(&content, 1 << 3);
		put_varint(&content, 1); /* float */
		put_bytes(&content, 2, "", 0);
		put_bytes(&content, 4, &low, 4);
		put_bytes(&of, 8, content.data, content.size);
		buffer_release(&content);
	} else {
		put_varint(&of, 2 << 3 | 5);
		put_bits(&of, low, 4);
	}
	put_bytes(&summary, 1, of.data, of.size);
	put_varint(&event, 1 << 3 | 1);
	put_bits(&event, bits, 8);
	put_varint(&event, 2 << 3);
	put_varint(&event, (uint64_t)step);
	put_bytes(&event, 5, summary.data, summary.size);
	put_record(out, event.data, event.size);
	buffer_release(&event);
	buffer_release(&summary);
	buffer_release(&of);
}

static const char version_event[] = "\x09\0\0\0\0\0\0\0\0\x1a\x0d"
				    "brain.Event:2";

/* Steps of 50 ms whose scalar has `factor` per second; others between them; pictures, which are passed over. */
static void put_events(struct buffer *out, const char *tag, double factor, bool tensor)
{
	double now_s = 1795675981;
	char *picture = calloc(1, 3 << 20);
	put_record(out, version_event, sizeof version_event - 1);
	for (int i = 0; i < 40; i++, now_s += planted_ms(1 + i % 3) / 1e3) {
		put_scalar(out, now_s + 1e-4, i, "loss", 0.1 * i, tensor);
		if (tag)
			put_scalar(out, now_s + 2e-4, i, tag,
				planted_ms(1 + (i + 2) % 3) / 1e3 * factor, tensor);
		if (i % 10 == 0) {
			put_scalar(out, now_s + 3e-4, i / 10, "val/accuracy", 0.5, tensor);
			put_record(out, picture, 3 << 20);
		}
	}
	free(picture);
}

static void test_events(void **state)
{
	static const struct {
		const char *tag;
		double factor;
	} cases[] = {{"perf/step_time", 1}, {"perf/step_time", 1e3}, {"train/step_time_us", 1e6},
		{"iter_time", 1e3}};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t c = 0; c < 2 * COUNT(cases); c++) {
		struct buffer bytes = {0};
		put_events(&bytes, cases[c / 2].tag, cases[c / 2].factor, c % 2);
		assert_int_equal(log_of(&findings, bytes.data, bytes.size, &err), 0);
		expect_near(findings.known[FINDING_STEP_PERIOD].value, 50e6, 0.5e6);
		assert_int_equal(findings.known[FINDING_STEP_PERIOD].how, FINDING_MEASURED);
		assert_true(findings.step_series);
		assert_int_equal(findings.step_count, 40);
		findings_close(&findings);
		buffer_release(&bytes);
	}
}

static void test_events_without_times(void **state)
{
	struct buffer bytes = {0};
	struct findings findings;
	struct error err;
	(void)state;
	put_events(&bytes, NULL, 1, false);
	assert_int_equal(log_of(&findings, bytes.data, bytes.size, &err), 0);
	expect_near(findings.known[FINDING_STEP_PERIOD].value, 50e6, 0.5e6);
	assert_int_equal(findings.known[FINDING_STEP_PERIOD].how, FINDING_DERIVED);
	assert_int_equal(findings.step_count, 39);
	findings_close(&findings);
	/* the same in a folder */
	char folder[512];
	(void)snprintf(folder, sizeof folder, "%s/runs", work_folder);
	assert_int_equal(files_make_folder(folder, &err), 0);
	findings_open(&findings);
	assert_int_equal(findings_from_step_log(&findings, folder, &err), -ENOMSG);
	assert_int_equal(files_write_atomic(log_path("runs/events.out.tfevents.1.SECRET"),
				 bytes.data, bytes.size, &err),
		0);
	assert_int_equal(findings_from_step_log(&findings, folder, &err), 0);
	assert_int_equal(files_write_atomic(log_path("runs/events.out.tfevents.2.SECRET"),
				 bytes.data, bytes.size, &err),
		0);
	assert_int_equal(findings_from_step_log(&findings, folder, &err), -EINVAL);
	assert_non_null(strstr(err.text, "2 files"));
	findings_close(&findings);
	buffer_release(&bytes);
}

static void test_torn_events(void **state)
{
	struct buffer bytes = {0};
	struct findings findings;
	struct error err;
	double now_s = 1795675981;
	(void)state;
	put_record(&bytes, version_event, sizeof version_event - 1);
	for (int i = 0; i < 20; i++, now_s += 0.05)
		put_scalar(&bytes, now_s, i, "step_time", 0.03, false);
	for (size_t size = 0; size < bytes.size; size += 7) {
		const int code = log_of(&findings, bytes.data, size, &err);
		if (size > bytes.size / 2) {
			assert_int_equal(code, 0);
			log_expect(&findings, FINDING_STEP_TIME, 30e6, FINDING_MEASURED);
		}
		findings_close(&findings);
	}
	bytes.data[bytes.size / 2] ^= 1;
	assert_int_equal(log_of(&findings, bytes.data, bytes.size, &err), 0);
	assert_true(log_notes(&findings, "damaged") || log_notes(&findings, "is missing"));
	findings_close(&findings);
	for (size_t i = 12; i < bytes.size; i++) /* nonsense behind a good head */
		bytes.data[i] = (char)(i * 7919 >> 3);
	assert_true(log_of(&findings, bytes.data, bytes.size, &err) < 0);
	findings_close(&findings);
	buffer_release(&bytes);
}

static int steps_prepare(void **state)
{
	(void)state;
	return mkdtemp(work_folder) ? 0 : -1;
}

static int steps_remove(void **state)
{
	struct error err;
	(void)state;
	return files_remove_tree(work_folder, &err);
}

/* Of a log of headroom.py the steps with the real loader count: 50 ms each, of which 30 wait, and not the 20 ms of the others,
 * nor the moments between the blocks. */
static void test_sides(void **state)
{
	static const char *const sides[] = {"loader", "cached", "-", "busy"};
	struct findings found;
	struct error err;
	struct buffer text = {0};
	double s = 1.7e9;
	int step = 0;
	(void)state;
	buffer_text(&text, "step,wall_time,samples,data_time_ms,side\n");
	for (int block = 0; block < 8; block++) {
		const bool loader = block % 4 == 0;
		s += 100;
		buffer_format(&text, "%d,%.6f,,,-\n", step, s);
		for (int i = 0; i < 10; i++) {
			s += loader ? 0.05 : 0.02;
			buffer_format(&text, "%d,%.6f,8,%d,%s\n", ++step, s, loader ? 30 : 0,
				sides[block % 4]);
		}
	}
	assert_int_equal(log_of_text(&found, text.data, &err), 0);
	log_expect(&found, FINDING_STEP_PERIOD, 50e6, FINDING_DERIVED);
	log_expect(&found, FINDING_STEP_WAIT, 30e6, FINDING_MEASURED);
	log_expect(&found, FINDING_STEP_TIME, 20e6, FINDING_DERIVED);
	assert_true(
		log_notes(&found, "its steps with the real loader count, and 68 others do not"));
	findings_close(&found);
	buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_rival_columns),
		cmocka_unit_test(test_moments_tell),
		cmocka_unit_test(test_moments_and_waits),
		cmocka_unit_test(test_samples_of_steps),
		cmocka_unit_test(test_stalls_that_come_back),
		cmocka_unit_test(test_moments_alone),
		cmocka_unit_test(test_sides),
		cmocka_unit_test(test_other_tables),
		cmocka_unit_test(test_no_logs),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_events_without_times),
		cmocka_unit_test(test_torn_events),
	};
	return cmocka_run_group_tests(tests, steps_prepare, steps_remove);
}
