/* Plans and criteria: what is understood, and that every mistake is refused with its line. */
#include "harness/accept/plan.h"

#include "harness/analyze/verdict.h"
#include "harness/base/array.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct accept_plan plan;
static struct error err;

static int read_plan(const char *text)
{
	err.text[0] = '\0';
	return plan_read_text(&plan, "p.ini", text, strlen(text), &err);
}

static void a_plan_is_understood(void **state)
{
	(void)state;
	const char *text = "[plan]\n"
			   "name = node ; a comment\n"
			   "error_rate = 0.1%\n"
			   "[slow core]\n"
			   "decode.core = within 15 % of median\n"
			   "warn.decode.core >= 2,000 samples/s and spread <= 3 %\n"
			   "kind = ceiling\n"
			   "tier = quick\n"
			   "budget = 90s\n"
			   "[bought]\n"
			   "kind = expect\n"
			   "cpu.model = is one of AMD*, Intel*\n"
			   "cpu.cores = 64\n"
			   "[job]\n"
			   "kind = pipeline\n"
			   "config = x.ini\n"
			   "set.decode.workers = 4\n"
			   "decode.p99 <= 5 ms\n"
			   "throughput >= 95 % of baseline\n";
	assert_int_equal(read_plan(text), 0);
	assert_string_equal(plan_text(&plan, PLAN_NAME), "node");
	assert_float_equal(plan_share(&plan, PLAN_ERROR), 0.001, 1e-12);
	assert_int_equal(plan.check_count, 3);
	const struct accept_check *core = &plan.checks[0];
	assert_string_equal(core->name, "slow core");
	assert_int_equal(core->kind, ACCEPT_CEILING);
	assert_int_equal(check_integer(core, PLAN_BUDGET), 90000000000LL);
	assert_int_equal(core->limit_count, 2);
	assert_false(core->limits[0].warns);
	assert_int_equal(core->limits[0].criterion.clauses[0].kind, CLAUSE_WITHIN);
	assert_int_equal(core->limits[0].criterion.clauses[0].of, OF_MEDIAN);
	assert_true(core->limits[1].warns);
	assert_int_equal(core->limits[1].criterion.clause_count, 2);
	assert_float_equal(core->limits[1].criterion.clauses[0].value, 2000, 0);
	assert_float_equal(core->limits[1].criterion.clauses[1].value, 0.03, 1e-12);
	assert_int_equal(plan.checks[1].limits[0].criterion.clauses[0].word_count, 2);
	assert_int_equal(plan.checks[1].limits[1].criterion.clauses[0].op, CLAUSE_SAME);
	assert_string_equal(plan.checks[2].sets[0], "decode.workers=4");
	assert_float_equal(plan.checks[2].limits[0].criterion.clauses[0].value, 5e6, 0);
	assert_true(check_in_tier(core, TIER_QUICK));
	assert_false(check_in_tier(&plan.checks[1], TIER_QUICK));
	assert_true(check_in_tier(&plan.checks[1], TIER_BURN));

	/* Its dump reads back to the same plan. */
	char first[17];
	char second[17];
	plan_hash(&plan, first);
	char *dump = plan_dump(&plan);
	plan_release(&plan);
	assert_non_null(dump);
	assert_int_equal(read_plan(dump), 0);
	plan_hash(&plan, second);
	assert_string_equal(first, second);
	free(dump);
	plan_release(&plan);
}

static void bounds(void **state)
{
	(void)state;
	static const struct {
		const char *figure, *text;
		double reference, low, high;
	} cases[] = {
		{"decode.core", ">= 2,000 samples/s", 0, 2000, INFINITY},
		{"read.latency", "< 10 ns", 0, -INFINITY, 10},
		{"decode.core", ">= 90 % of best", 200, 180, INFINITY},
		{"decode.core", "within 5 % of baseline", 100, 95, INFINITY},
		{"decode.core", "within 5 % either side of baseline", 100, 95, 105},
		{"decode.core", "within 10 % of 50 images/s", 0, 45, INFINITY},
		{"decode.core", "= 7 samples/s", 0, 7, 7},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct criterion criterion;
		const struct figure *figure = figure_find(ACCEPT_CEILING, cases[i].figure);
		double low;
		double high;
		bool open;
		assert_non_null(figure);
		assert_int_equal(criterion_parse(figure, cases[i].text, &criterion, &err), 0);
		clause_bounds(
			&criterion.clauses[0], figure, cases[i].reference, &low, &high, &open);
		assert_float_equal(low, cases[i].low, 1e-9);
		assert_float_equal(high, cases[i].high, 1e-9);
		criterion_release(&criterion);
	}
}

static void numbers(void **state)
{
	(void)state;
	static const struct {
		enum figure_unit unit;
		const char *text;
		double value; /* NAN: refused */
	} cases[] = {
		{FIGURE_PER_S, "2,000 samples/s", 2000},
		{FIGURE_PER_S, "1,234,567.5 /s", 1234567.5},
		{FIGURE_PER_S, "1,23 samples/s", NAN},
		{FIGURE_PER_S, "1,2345 samples/s", NAN},
		{FIGURE_PER_S, "2000", NAN},
		{FIGURE_PER_S, "2000 GiB/s", NAN},
		{FIGURE_PER_S, "1e3 samples/s", 1000},
		{FIGURE_PER_S, "nan samples/s", NAN},
		{FIGURE_PER_S, "1e999 samples/s", NAN},
		{FIGURE_PER_S, "", NAN},
		{FIGURE_BYTES_PER_S, "1.5GiB/s", 1.5 * 1073741824},
		{FIGURE_BYTES_PER_S, "10 Gbit/s", 1.25e9},
		{FIGURE_BYTES_PER_S, "10 Gb/s", 1.25e9},
		{FIGURE_BYTES_PER_S, "10 GB/s", 1e10},
		{FIGURE_BYTES_PER_S, "10 Gb", NAN},
		{FIGURE_BYTES, "10 Gb", NAN},
		{FIGURE_SHARE, "90%", 0.9},
		{FIGURE_SHARE, "0.95", 0.95},
		{FIGURE_NS, "5 ms", 5e6},
		{FIGURE_NS, "5", NAN},
		{FIGURE_MHZ, "2.6 GHz", 2600},
		{FIGURE_COUNT, "64", 64},
		{FIGURE_COUNT, "64 sheep", NAN},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		double value = NAN;
		const int code = figure_value_parse(cases[i].unit, cases[i].text, &value, &err);
		assert_int_equal(code, isnan(cases[i].value) ? -EINVAL : 0);
		if (!code)
			assert_float_equal(value, cases[i].value, 1e-6);
	}
}

/* Each mistake, and what its message says: the file, the line, and the nearest right choice. */
static void mistakes(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "p.ini: the plan has no check"},
		{"[plan]\nname = x\n", "the plan has no check"},
		{"kind = expect\n", "p.ini:1: 'kind' stands outside any section"},
		{"[a]\ncpu.cores >= 2\n", "p.ini:1: [a] has no kind"},
		{"[a]\nkind = expekt\ncpu.cores >= 2\n", "p.ini:2: kind: 'expekt' is none of"},
		{"[a]\nkind = expekt\ncpu.cores >= 2\n", "did you mean 'expect'?"},
		{"[a]\nkind = expect\n", "p.ini:1: [a] asks for nothing"},
		{"[a]\nkind = expect\ncpu.corse >= 2\n",
			"p.ini:3: unknown key or figure 'cpu.corse'"},
		{"[a]\nkind = expect\ncpu.corse >= 2\n", "did you mean 'cpu.cores'?"},
		{"[a]\nkind = expect\ndecode.core >= 2 samples/s\n",
			"p.ini:3: 'decode.core' is a figure of kind = ceiling, not of kind = expect"},
		{"[a]\nkind = ceiling\ndecode.core >= 2\n",
			"p.ini:3: decode.core: '2' has no unit"},
		{"[a]\nkind = ceiling\ndecode.core >= 2 GiB/s\n",
			"p.ini:3: decode.core: 'GiB/s' is not a unit of this figure"},
		{"[a]\nkind = ceiling\ndecode.core >= 2 smaples/s\n",
			"p.ini:3: decode.core: unknown unit 'smaples/s'"},
		{"[a]\nkind = ceiling\ndecode.core >= lots\n",
			"p.ini:3: decode.core: 'lots' is no number"},
		{"[a]\nkind = ceiling\ndecode.core = within 5 %\n",
			"p.ini:3: decode.core: 'within 5 %' does not say of what"},
		{"[a]\nkind = ceiling\ndecode.core = within 150 % of median\n",
			"is not between 0 % and 100 %"},
		{"[a]\nkind = ceiling\ndecode.core = spread >= 3 %\n",
			"p.ini:3: decode.core: write it as 'spread <= 3 %'"},
		{"[a]\nkind = ceiling\ndecode.core = similarity <= 0.9\n",
			"write it as 'similarity >= 0.95'"},
		{"[a]\nkind = ceiling\ndecode.core = is fast\n", "'decode.core' is a number"},
		{"[a]\nkind = expect\ncpu.cores = >= 2 and \n", "p.ini:3: cpu.cores: "},
		{"[a]\nkind = expect\ncpu.cores >= 90 % of median\n",
			"there are no others whose median it could be compared with"},
		{"[a]\nkind = expect\ncpu.model = is one of a,,b\n", "the list has an empty place"},
		{"[a]\nkind = expect\ntier = fast\ncpu.cores >= 2\n",
			"p.ini:3: tier: 'fast' is none of quick|standard|burn|never"},
		{"[a]\nkind = expect\nbudget = soon\ncpu.cores >= 2\n",
			"p.ini:3: budget: 'soon' is no duration"},
		{"[a]\nkind = expect\nconfig = x.ini\ncpu.cores >= 2\n",
			"p.ini:3: 'config' is no key of kind = expect"},
		{"[a]\nkind = expect\nteir = quick\ncpu.cores >= 2\n", "did you mean 'tier'?"},
		{"[a]\nkind = expect\ncpu.cores >= 2\ncpu.cores >= 3\n",
			"p.ini:4: 'cpu.cores' is set in line 3, too"},
		{"[a]\nkind = expect\ncpu.cores >= 2\n[a]\n", "p.ini:4: [a] stands in line 1, too"},
		{"[plan]\nbaselin = x\n[a]\nkind = expect\ncpu.cores >= 2\n",
			"p.ini:2: unknown key 'baselin' of [plan]; did you mean 'baseline'?"},
		{"[plan]\nerror_rate = 50%\n[a]\nkind = expect\ncpu.cores >= 2\n",
			"p.ini:2: error_rate: 50% is too large"},
		{"[a\nkind = expect\n", "p.ini:1: expected '[section]'"},
		/* What cannot be a folder in results/, a text in a document, or a criterion that may fail. */
		{"[plan]\nname = ../x\n[a]\nkind = expect\ncpu.cores >= 2\n",
			"p.ini:2: name: the plan's name '../x' cannot be a folder's"},
		{"[plan]\nname = ..\n[a]\nkind = expect\ncpu.cores >= 2\n", "cannot be a folder's"},
		{"[plan]\nname =\n[a]\nkind = expect\ncpu.cores >= 2\n", "cannot be a folder's"},
		{"[a\xff]\nkind = expect\ncpu.cores >= 2\n", "must be UTF-8"},
		{"[a\xc2\x85]\nkind = expect\ncpu.cores >= 2\n", "without control characters"},
		{"[a]\nkind = expect\ncpu.model = is not \xff*\n", "must be UTF-8"},
		{"[a]\nkind = expect\ncpu.cores >= 0\n", "holds for every value"},
		{"[a]\nkind = ceiling\ndecode.core >= 0 % of best\n", "holds for every value"},
		{"[a]\nkind = expect\ncpu.model = is not x\\\n", "which no text matches"},
		{"[a]\nkind = repeatable\nsize = 1 B\nrepeatable.memory = 0\n",
			"p.ini:3: size: 1 B is too small: 1.00 MiB is the least"},
		{"[a]\nkind = expect\ncpu.model = is\n", "the text is missing"},
		{"[a]\nkind expect\n", "p.ini:2: expected 'key = value'"},
		{"[a]\nkind = pipeline\nthroughputt >= 2 samples/s\n", "p.ini:3: unknown"},
		/* What means the opposite, holds for no value, or never warns. */
		{"[a]\nkind = ceiling\nread.direct <= 50 MB/s\n",
			"p.ini:3: read.direct: 'read.direct' is better when it is more, so '<= 50 MB/s' fails good values"},
		{"[a]\nkind = ceiling\nread.direct = < 50 MB/s and spread <= 3 %\n",
			"is better when it is more"},
		{"[a]\nkind = ceiling\nwarn.gemm.core <= 110 % of median\n",
			"warn.gemm.core: 'gemm.core' is better when it is more"},
		{"[a]\nkind = ceiling\nread.latency >= 50 ms\n",
			"'read.latency' is better when it is less, so '>= 50 ms' fails good values"},
		{"[a]\nkind = pipeline\nthroughput <= 5 samples/s\n", "is better when it is more"},
		{"[a]\nkind = ceiling\nread.latency >= 50 ms and <= 1 ms\n",
			"p.ini:3: read.latency: no value is '>= 50 ms and <= 1 ms'"},
		{"[a]\nkind = expect\nnuma.nodes = > 2 and <= 2\n", "limits exclude each other"},
		{"[a]\nkind = ceiling\ngemm.core = >= 95 % of best and <= 90 % of best\n",
			"limits exclude each other"},
		{"[a]\nkind = expect\ncpu.model = is AMD and is Intel\n", "exclude each other"},
		{"[a]\nkind = expect\ncpu.model = is AMD and is not one of Intel, AMD\n",
			"exclude each other"},
		{"[a]\nkind = pipeline\nbottleneck = stepp\n",
			"p.ini:3: bottleneck: 'bottleneck' is never 'stepp'; did you mean 'step'?"},
		{"[a]\nkind = pipeline\nbottleneck = is not one of raed, decode\n",
			"did you mean 'read'?"},
		{"[a]\nkind = pipeline\nbottleneck.resource = bandwith\n",
			"did you mean 'bandwidth'?"},
		{"[a]\nkind = expect\ncpu.turbo = enabled\n",
			"'cpu.turbo' is never 'enabled' (on|off)"},
		{"[a]\nkind = ceiling\nread.direct >= 100 MB/s\nwarn.read.direct >= 50 MB/s\n",
			"p.ini:4: warn.read.direct: '>= 50 MB/s' is laxer than '>= 100 MB/s' in line 3"},
		{"[a]\nkind = ceiling\nwarn.read.latency <= 5 ms\nread.latency <= 1 ms\n",
			"p.ini:3: warn.read.latency: '<= 5 ms' is laxer than '<= 1 ms' in line 4"},
		{"[a]\nkind = ceiling\ngemm.core >= 90 % of median\nwarn.gemm.core = within 12 % of median\n",
			"is laxer than '>= 90 % of median'"},
		{"[a]\nkind = ceiling\nread.cold = spread <= 3 %\nwarn.read.cold = spread <= 9 %\n",
			"is laxer than 'spread <= 3 %'"},
		{"[a]\nkind = expect\ncpu.model = is A\nwarn.cpu.model = is one of B, A\n",
			"warn.cpu.model: 'is one of B, A' is laxer than 'is A'"},
		{"[a]\nkind = burn\nburn.drift <= 100 %\n", "holds for every share"},
		{"[a]\nkind = expect\ncpu.model = ${NOT_SET_ANYWHERE}\n", "p.ini:3: "},
	};
	assert_true(COUNT(cases) >= 25);
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(read_plan(cases[i].text), -EINVAL);
		if (!strstr(err.text, cases[i].message))
			fail_msg("'%s': said '%s', not '%s'", cases[i].text, err.text,
				cases[i].message);
	}
}

/* What looks like one of them and is none. */
static void not_mistakes(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"kind = ceiling\nread.direct >= 50 MB/s and <= 9 GB/s\n",
		"kind = ceiling\nread.direct = 50 MB/s\n",
		"kind = ceiling\nread.latency = within 5 % either side of 1 ms and >= 10 us\n",
		"kind = ceiling\nread.direct >= 50 MB/s\nwarn.read.direct >= 100 MB/s and <= 9 GB/s\n",
		"kind = ceiling\nread.direct >= 50 MB/s\nwarn.read.direct >= 40 % of baseline\n",
		"kind = expect\nsysctl.vm.swappiness <= 10\n",
		"kind = expect\nmemory.transparent = is one of always, m*\n",
		"kind = expect\ncpu.model = is one of A, B\nwarn.cpu.model = is A\n",
		"kind = burn\nburn.drift <= 99 %\n",
		"kind = expect\ncpu.model = is AMD* and is not *7551*\n",
		"kind = pipeline\nbottleneck = is not read\nbottleneck.resource = is one of cpu, compute\n",
	};
	for (size_t i = 0; i < COUNT(lines); i++) {
		char text[256];
		(void)snprintf(text, sizeof text, "[a]\n%s", lines[i]);
		if (read_plan(text))
			fail_msg("%s: %s", lines[i], err.text);
		plan_release(&plan);
	}
}

/* Whether text is one of "a|b". */
static bool is_one_of(const char *texts, const char *text)
{
	const size_t length = strlen(text);
	for (const char *at = texts; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
		if (strncmp(at, text, length) == 0 && (at[length] == '|' || !at[length]))
			return true;
	return false;
}

/* Every stage and resource that a verdict can name is a text of its figure, and the texts are as many. */
static void bottlenecks_are_known(void **state)
{
	(void)state;
	const char *of[] = {figure_texts(figure_find(ACCEPT_PIPELINE, "bottleneck")),
		figure_texts(figure_find(ACCEPT_PIPELINE, "bottleneck.resource"))};
	size_t names[2] = {1, 1};
	size_t distinct[2] = {0, 0};
	for (int which = 0; which < 2; which++) {
		for (const char *at = of[which]; *at; at++)
			names[which] += *at == '|';
		for (size_t i = 0; i < limit_kind_count; i++) {
			const struct limit_kind *kind = &limit_kinds[i];
			const char *its = which ? kind->resource : kind->stage;
			size_t before = 0;
			if (strcmp(kind->stage, "none") == 0) /* no verdict */
				continue;
			assert_true(is_one_of(of[which], its));
			while (strcmp(which ? limit_kinds[before].resource
					    : limit_kinds[before].stage,
				       its) != 0)
				before++;
			distinct[which] += before == i;
		}
		assert_int_equal(names[which], distinct[which]);
	}
	for (const struct figure *figure = figure_list; figure->name; figure++)
		assert_true(!figure_texts(figure) || figure->unit == FIGURE_TEXT);
}

/* The shipped plans are right, and the checks that go into a health check say so in their tier. */
static void shipped_plans(void **state)
{
	(void)state;
	static const char *const names[] = {"node", "gpu_node", "cpu_only", "storage"};
	for (size_t i = 0; i < COUNT(names); i++) {
		char path[64];
		size_t quick = 0;
		(void)snprintf(path, sizeof path, "configs/accept/%s.ini", names[i]);
		if (plan_read_file(&plan, path, &err))
			fail_msg("%s", err.text);
		for (size_t check = 0; check < plan.check_count; check++)
			quick += check_in_tier(&plan.checks[check], TIER_QUICK);
		assert_true(quick >= 3);
		assert_true(plan.check_count > quick);
		plan_release(&plan);
	}
}

/* As many checks as there may be, with [plan] and without. */
static void at_most_so_many_checks(void **state)
{
	(void)state;
	for (int own = 0; own < 2; own++)
		for (int more = 0; more < 2; more++) {
			struct buffer text = {0};
			buffer_text(&text, own ? "[plan]\nname = x\n" : "");
			for (int i = 0; i < ACCEPT_CHECKS_MAX + more; i++)
				buffer_format(&text, "[c%d]\nkind = expect\ncpu.cores >= 1\n", i);
			assert_int_equal(read_plan(text.data), more ? -EINVAL : 0);
			if (!more)
				assert_int_equal(plan.check_count, ACCEPT_CHECKS_MAX);
			if (!more)
				plan_release(&plan);
			buffer_release(&text);
		}
}

/* A stricter limit of one's own takes the warning of the included plan away; a laxer warning of one's own is a mistake. */
static void included_warnings(void **state)
{
	(void)state;
	static const struct {
		const char *lines;
		size_t limits;
		const char *message;
	} cases[] = {
		{"decode.core = within 10 % of median\n", 1, NULL},
		{"decode.core = within 30 % of median\n", 2, NULL},
		{"warn.decode.core = within 40 % of median\n", 0, "own.ini:4: warn.decode.core: "},
	};
	char base[] = "/tmp/test_accept_plan.XXXXXX";
	char own[64];
	const int fd = mkstemp(base);
	static const char text[] =
		"[cores]\nkind = ceiling\nwarn.decode.core = within 12 % of median\ndecode.core = within 20 % of median\n";
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
	assert_int_equal(close(fd), 0);
	(void)snprintf(own, sizeof own, "%s.own.ini", base);
	for (size_t i = 0; i < COUNT(cases); i++) {
		FILE *file = fopen(own, "we");
		assert_non_null(file);
		(void)fprintf(file, "include = %s\n\n[cores]\n%s", base, cases[i].lines);
		assert_int_equal(fclose(file), 0);
		const int code = plan_read_file(&plan, own, &err);
		assert_int_equal(code, cases[i].message ? -EINVAL : 0);
		if (cases[i].message)
			assert_non_null(strstr(err.text, cases[i].message));
		else
			assert_int_equal(plan.checks[0].limit_count, cases[i].limits);
		plan_release(&plan);
	}
	assert_int_equal(unlink(base), 0);
	assert_int_equal(unlink(own), 0);
}

static void criteria_are_taken_away(void **state)
{
	(void)state;
	assert_int_equal(read_plan("[a]\nkind = expect\ncpu.cores = none\ncpu.model = *\n"), 0);
	assert_int_equal(plan.checks[0].limit_count, 1);
	assert_true(check_asks(&plan.checks[0], "cpu.model"));
	assert_false(check_asks(&plan.checks[0], "cpu.cores"));
	plan_release(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_is_understood),
		cmocka_unit_test(bounds),
		cmocka_unit_test(numbers),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(not_mistakes),
		cmocka_unit_test(bottlenecks_are_known),
		cmocka_unit_test(shipped_plans),
		cmocka_unit_test(at_most_so_many_checks),
		cmocka_unit_test(criteria_are_taken_away),
		cmocka_unit_test(included_warnings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
