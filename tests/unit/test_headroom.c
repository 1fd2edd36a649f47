/* One answer to "what could a faster input give": sentence, page and advice agree with the evidence. */
#include "charts_fixture.h"

#include "harness/analyze/diagnose.h"
#include "harness/report/html/sections.h"

static struct point_summary point_of(double decode_busy, double step_capacity)
{
	struct point_summary p = {.median = 1705, .stage_count = 3, .step_utilisation = 0.95};
	swept_stage(&p.stages[0], "read", 1, 0.1, 0);
	swept_stage(&p.stages[1], "decode", 8, decode_busy, 0);
	swept_stage(&p.stages[2], "step", 1, 0.95, 0.05);
	p.stages[2].capacity = step_capacity;
	return p;
}

static void expect_words(const struct point_summary *p, const struct verdict *v, const char *words)
{
	char out[HEADROOM_BYTES];
	const struct headroom headroom = headroom_of_input(p, v);
	assert_string_equal(headroom_words(&headroom, out), words);
}

static void words_follow_the_busy_shares(void **state)
{
	(void)state;
	const struct verdict step = {.stage = "step", .resource = "compute"};
	const struct verdict pair = {.stage = "decode", .also = "step", .resource = "cpu"};
	struct point_summary p = point_of(0.6, 1786);
	expect_words(&p, &step,
		"Healthy: the data loader keeps the step busy. Only a faster step raises throughput.");
	expect_words(&p, &pair, "A faster decode stage could gain at most 5 %.");
	/* A step that exchanges for a third of its time is busy with no data loader, and yet not healthy. */
	swept_stage(&p.stages[p.stage_count++], "sync", 1, 0.3, 0.7);
	p.stages[2].blocked = 0.42;
	expect_words(&p, &step,
		"The data loader keeps up, but the step stands still 42 % of the time for the exchange of "
		"gradients: a faster step or exchange raises throughput.");
	p = point_of(1, 1786);
	expect_words(&p, &step, "A faster decode stage could gain at most 5 %.");
	p = point_of(1, 1705);
	expect_words(&p, &step,
		"The decode stage is 100 % busy too: only making both it and the step faster raises throughput.");
}

static void lead_of(struct swept *swept, struct buffer *out)
{
	const struct chart_input input = swept_input(swept);
	buffer_release(out);
	section_lead(&input, out);
}

/* The page's first sentence beside decoding that is 100 % busy. */
static void the_headline_agrees_with_its_evidence(void **state)
{
	(void)state;
	struct swept swept;
	struct buffer text = {0};
	swept_open(&swept, swept_nothing);
	struct point_summary *p = swept.report.points[swept.report.best];
	double *repeats = p->repeats;
	*p = point_of(1, 1786);
	p->repeats = repeats;
	p->verdict = (struct verdict){
		.stage = "decode", .also = "step", .resource = "cpu", .confidence = 0.5};
	lead_of(&swept, &text);
	assert_string_equal(text.data,
		"Decode and the training step are probably nearly balanced (decode is CPU-bound): 1,705 "
		"samples/s, step 95 % busy. A faster decode stage could gain at most 5 %.");
	p->verdict = (struct verdict){.stage = "step", .resource = "compute", .confidence = 0.9};
	lead_of(&swept, &text);
	assert_null(strstr(text.data, "Healthy"));
	assert_non_null(strstr(text.data, "A faster decode stage could gain at most 5 %."));
	p->stages[1].busy = 0.5;
	lead_of(&swept, &text);
	assert_non_null(strstr(text.data, "Healthy: the data loader keeps the step busy."));
	buffer_release(&text);
	swept_close(&swept);
}

static void expect_advice(const struct point_facts *facts, const char *resource, const char *says,
	const char *not_says)
{
	struct diagnosis d = {0};
	char out[EVIDENCE_BYTES] = "";
	const struct point_summary p = point_of(1, 4000);
	(void)snprintf(d.verdict.stage, NAME_BYTES, "decode");
	(void)snprintf(d.verdict.resource, NAME_BYTES, "%s", resource);
	recommend_advise(&d, &p, facts, out, sizeof out);
	if (!strstr(out, says) || strstr(out, not_says))
		fail_msg("'%s' does not say '%s', or says '%s'", out, says, not_says);
}

/* Keys of the format that the data has; and how many workers would do. */
static void advice_names_what_can_be_set(void **state)
{
	(void)state;
	struct point_facts facts = {.cores = 2, .decode_workers = 2, .may_be_jpeg = true};
	expect_advice(&facts, "cpu", "codec.jpeg_scaled = on", "codec.png");
	facts.decode_workers = 8;
	expect_advice(
		&facts, "cores", "decode.workers=2 keeps all 2 cores busy", "no setting helps");
	expect_advice(&facts, "cpu", "decode.workers=2 keeps all 2 cores busy", "no setting helps");
	facts = (struct point_facts){
		.cores = 8, .decode_workers = 8, .pictures = true, .may_be_png = true};
	expect_advice(&facts, "cpu", "codec.png = fast", "codec.jpeg_scaled");
	facts.may_be_png = false;
	expect_advice(&facts, "cores", "(smaller pictures)", "codec.");
	facts.pictures = false;
	expect_advice(&facts, "cores", "(smaller samples)", "codec.");
}

/* What is negative or cannot be undone needs a node without other load; what can be set back does not. */
static void final_advice_needs_a_quiet_node(void **state)
{
	static const char *const pairs[][2] = {{"read", "latency"}, {"read", "bandwidth"},
		{"read", "iops"}, {"read", "full"}, {"read", "cache"}, {"read", "cpu"},
		{"read", "network"}, {"read", "server"}, {"decode", "cpu"}, {"decode", "cores"},
		{"decode", "wait"}, {"decode", "lock"}, {"upload", "copy"}, {"step", "launch"}};
	const struct point_facts facts = {.cores = 2, .decode_workers = 2};
	struct point_summary p = point_of(1, 4000);
	char quiet[EVIDENCE_BYTES];
	char busy[EVIDENCE_BYTES];
	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		struct diagnosis d = {0};
		(void)snprintf(d.verdict.stage, NAME_BYTES, "%s", pairs[i][0]);
		(void)snprintf(d.verdict.resource, NAME_BYTES, "%s", pairs[i][1]);
		quiet[0] = busy[0] = p.contaminated[0] = '\0';
		recommend_advise(&d, &p, &facts, quiet, sizeof quiet);
		assert_true(strstr(quiet, "no setting") || strstr(quiet, "will not help"));
		(void)snprintf(p.contaminated, sizeof p.contaminated,
			"other processes kept 1.8 of 2 cores busy");
		recommend_advise(&d, &p, &facts, busy, sizeof busy);
		assert_string_equal(busy,
			"cannot tell what would help while others use the cores (other processes kept "
			"1.8 of 2 cores busy): stop them, or keep cores for this job (run.affinity, "
			"cgroup cpuset), and measure again");
	}
	struct diagnosis d = {.recommendation_count = 1};
	(void)snprintf(d.verdict.stage, NAME_BYTES, "read");
	(void)snprintf(d.verdict.resource, NAME_BYTES, "latency");
	(void)snprintf(d.recommendations[0].settings[0], SETTING_BYTES, "read.depth=32");
	d.recommendations[0].setting_count = 1;
	recommend_advise(&d, &p, &facts, busy, sizeof busy);
	assert_non_null(strstr(busy, "set read.depth=32"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_follow_the_busy_shares),
		cmocka_unit_test(the_headline_agrees_with_its_evidence),
		cmocka_unit_test(advice_names_what_can_be_set),
		cmocka_unit_test(final_advice_needs_a_quiet_node),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
