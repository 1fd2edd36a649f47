/* Metrics as text: both dialects, hostile labels, absent values, and the promises of the names' table. */
#include "harness/base/text.h"
#include "harness/report/openmetrics_names.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct openmetrics_family seconds = {
	"t_stage_seconds_total", OPENMETRICS_COUNTER, "seconds", "Time."};
static const struct openmetrics_family info = {"t_info", OPENMETRICS_INFO, "", "What it is."};
static const struct openmetrics_family depth = {"t_depth", OPENMETRICS_GAUGE, "", "Items."};

static void write_all(struct buffer *out, enum openmetrics_dialect dialect)
{
	const struct openmetrics_label stage[] = {{"stage", "read"}, {"state", "working"}};
	const struct openmetrics_label other[] = {{"stage", "read"}, {"state", "blocked"}};
	struct openmetrics metrics = {.out = out, .dialect = dialect};
	openmetrics_add(&metrics, &info, (struct openmetrics_label[]){{"name", "a"}}, 1, 1);
	openmetrics_add(&metrics, &seconds, stage, 2, 1.5);
	openmetrics_add(&metrics, &seconds, other, 2, 0);
	openmetrics_add(&metrics, &depth, NULL, 0, NAN);
	openmetrics_end(&metrics);
}

static void test_openmetrics(void **state)
{
	(void)state;
	struct buffer out = {0};
	write_all(&out, OPENMETRICS_1_0);
	assert_string_equal(out.data,
		"# HELP t What it is.\n"
		"# TYPE t info\n"
		"t_info{name=\"a\"} 1\n"
		"# HELP t_stage_seconds Time.\n"
		"# TYPE t_stage_seconds counter\n"
		"# UNIT t_stage_seconds seconds\n"
		"t_stage_seconds_total{stage=\"read\",state=\"working\"} 1.5\n"
		"t_stage_seconds_total{stage=\"read\",state=\"blocked\"} 0\n"
		"# EOF\n");
	buffer_release(&out);
}

static void test_prometheus(void **state)
{
	(void)state;
	struct buffer out = {0};
	write_all(&out, OPENMETRICS_PROMETHEUS);
	assert_string_equal(out.data,
		"# HELP t_info What it is.\n"
		"# TYPE t_info gauge\n"
		"t_info{name=\"a\"} 1\n"
		"# HELP t_stage_seconds_total Time.\n"
		"# TYPE t_stage_seconds_total counter\n"
		"t_stage_seconds_total{stage=\"read\",state=\"working\"} 1.5\n"
		"t_stage_seconds_total{stage=\"read\",state=\"blocked\"} 0\n"
		"# EOF\n");
	buffer_release(&out);
}

static const char *label(struct buffer *out, const char *value)
{
	struct openmetrics metrics = {.out = out, .open = &depth};
	buffer_release(out);
	openmetrics_add(&metrics, &depth, (struct openmetrics_label[]){{"l", value}}, 1, 2);
	return out->data;
}

static void test_hostile_labels(void **state)
{
	(void)state;
	struct buffer out = {0};
	assert_string_equal(label(&out, "a\"b\\c\nd"), "t_depth{l=\"a\\\"b\\\\c\\nd\"} 2\n");
	assert_string_equal(label(&out, "x\"} 1\nevil 2"), "t_depth{l=\"x\\\"} 1\\nevil 2\"} 2\n");
	assert_string_equal(label(&out, "\033[31m\r\x7f\xc2\x9b"),
		"t_depth{l=\"" UTF8_REPLACEMENT
		"[31m" UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT "\"} 2\n");
	assert_string_equal(label(&out, "\xff\xc0\xaf\xed\xa0\x80 \xe2\x82"),
		"t_depth{l=\"" UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT
			UTF8_REPLACEMENT UTF8_REPLACEMENT " " UTF8_REPLACEMENT UTF8_REPLACEMENT
		"\"} 2\n");
	assert_string_equal(label(&out, "sch\xc3\xb6n \xf0\x9f\x98\x80"),
		"t_depth{l=\"sch\xc3\xb6n \xf0\x9f\x98\x80\"} 2\n");
	char longer[4 * OPENMETRICS_LABEL_BYTES];
	memset(longer, 'a', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	assert_true(strlen(label(&out, longer)) < OPENMETRICS_LABEL_BYTES + 32);
	buffer_release(&out);
}

static const char *value(struct buffer *out, double number)
{
	struct openmetrics metrics = {.out = out, .open = &depth};
	buffer_release(out);
	openmetrics_add(&metrics, &depth, NULL, 0, number);
	return out->data;
}

static void test_values(void **state)
{
	(void)state;
	struct buffer out = {0};
	assert_string_equal(value(&out, 1763808000.123), "t_depth 1763808000.123\n");
	assert_string_equal(value(&out, INFINITY), "t_depth +Inf\n");
	assert_string_equal(value(&out, -INFINITY), "t_depth -Inf\n");
	assert_null(value(&out, NAN));
	buffer_release(&out);
}

static void check_family(const struct openmetrics_family *family)
{
	const char *name = family->name;
	const size_t length = strlen(name);
	assert_true(strspn(name, "abcdefghijklmnopqrstuvwxyz_") == length);
	assert_true(strncmp(name, "mlbench_", 8) == 0);
	const bool total = length > 6 && strcmp(name + length - 6, "_total") == 0;
	assert_int_equal(total, family->type == OPENMETRICS_COUNTER);
	const bool is_info = length > 5 && strcmp(name + length - 5, "_info") == 0;
	assert_int_equal(is_info, family->type == OPENMETRICS_INFO);
	char suffix[64];
	(void)snprintf(suffix, sizeof suffix, "_%s%s", family->unit, total ? "_total" : "");
	if (family->unit[0])
		assert_string_equal(name + length - strlen(suffix), suffix);
	assert_null(strpbrk(family->help, "\n\\\""));
	assert_int_equal(family->help[strlen(family->help) - 1], '.');
}

static void test_names(void **state)
{
	(void)state;
	static const struct {
		const struct openmetrics_family *families;
		size_t count;
	} tables[] = {{run_metrics, RUN_METRICS}, {result_metrics, RESULT_METRICS},
		{accept_metrics, ACCEPT_METRICS}};
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (size_t i = 0; i < tables[t].count; i++) {
			check_family(&tables[t].families[i]);
			for (size_t j = 0; j < i; j++)
				assert_string_not_equal(
					tables[t].families[i].name, tables[t].families[j].name);
		}
}

static void test_plain(void **state)
{
	(void)state;
	struct buffer out = {0};
	utf8_add_plain(&out, "a\033]0;x\007\tb\xffz\xc3\xa9", "?");
	assert_string_equal(out.data, "a?]0;x??b?z\xc3\xa9");
	buffer_release(&out);
	char text[] = "a\033]0;x\007\tb\xffz\xc3\xa9\xc2\x9b\xe2\x82";
	utf8_make_plain(text, '?');
	assert_string_equal(text, "a?]0;x??b?z\xc3\xa9???");
	assert_int_equal(utf8_character(""), 0);
	assert_int_equal(utf8_character("\xf4\x90\x80\x80"), 0); /* above U+10FFFF */
	assert_int_equal(utf8_character("\xf4\x8f\xbf\xbf"), 4);
	assert_int_equal(utf8_character("\xe0\x9f\xbf"), 0); /* over-long */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_openmetrics),
		cmocka_unit_test(test_prometheus),
		cmocka_unit_test(test_hostile_labels),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_plain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
