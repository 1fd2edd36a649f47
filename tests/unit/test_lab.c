/* Labs without measuring: the file, expressions, the draw, the seal, the judge on virtual repetitions, the state's order, and
 * the student's folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "harness/config/config.h"
#include "harness/lab/cause_words.h"
#include "harness/lab/expression.h"
#include "harness/lab/lab_book.h"
#include "harness/lab/lab_scores.h"
#include "harness/lab/lab_state.h"
#include "harness/lab/seal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAB_SECTION                                                                           \
	"[lab]\nnumber = 7\ntitle = A lab\nminutes = 10\npage = docs/x.md\ngoal = Gain it.\n" \
	"scale = step.time = 8ms / cores\n"                                                   \
	"plant = inject.read_latency = 3ms..8ms\n"                                            \
	"plant = inject.decode_factor = 2 | 3\n"                                              \
	"knob = read.depth = 1..16*cores\nknob = read.order = shuffle | sequential\n"         \
	"best = read.depth = 8*cores\n"                                                       \
	"wrong = workers, decode.workers=max(2,cores), prefetch.depth=4: No.\n"               \
	"ask = now, rate: How many?\nask = deep, rate, read.depth=8: And deep?\n"             \
	"ask = most, best: At best?\nask = stage, stage: Which?\n"                            \
	"cause = read/latency | read/depth\n"                                                 \
	"evidence = depth: One read.\nevidence = cpu: Idle.\nright = depth\n"                 \
	"answer = ms, inject.read_latency*1000, 10%: How long?\n"                             \
	"hint1 = 5: one\nhint2 = 10: two\nhint3 = 20: three\n"                                \
	"explain = It takes {inject.read_latency}.\n"

#define LAB_FILE "[dataset]\nsamples = 64\n[read]\ndepth = 1\n" LAB_SECTION

static char state_home[] = "/tmp/mlbench-state-XXXXXX";

static const struct lab_laptop laptop = {.cores = 4, .decode_s = 0.001, .sleep_s = 0.0001};

static struct lab *read_lab(const char *text)
{
	struct error err = {0};
	struct lab *lab = NULL;
	if (lab_read_text(&lab, "07_lab.ini", text, &err))
		fail_msg("%s", err.text);
	return lab;
}

/* One whose configuration lies in a file, as measuring needs it. */
static struct lab *read_lab_file(char path[64])
{
	struct error err = {0};
	struct lab *lab = NULL;
	(void)snprintf(path, 64, "/tmp/mlbench-lab-XXXXXX");
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, LAB_FILE, strlen(LAB_FILE)), strlen(LAB_FILE));
	(void)close(fd);
	if (lab_read(&lab, path, &err))
		fail_msg("%s", err.text);
	return lab;
}

static void expressions_are_computed(void **state)
{
	static const struct {
		const char *text;
		double value;
	} right[] = {{"1+2*3", 7}, {"(1+2)*3", 9}, {"4ms", 0.004}, {"16KiB", 16384},
		{"2MiB/s", 2097152}, {"2*cores", 8}, {"min(2, cores, 3)", 2}, {"max(1,cores)/2", 2},
		{"-3+cores", 1}, {"90%", 0.9}, {"16 * 4ms / cores", 0.016}, {"1.5", 1.5},
		{"a.b_c*2", 5}, {"8/4/2", 1}, {"5-2-1", 2}};
	static const char *const wrong[] = {"", "1+", "(1", "cores cores", "nothing", "1/0",
		"4parsecs", "min(1", "1..2", "unknown", "((((((((((((((((((1))))))))))))))))))"};
	struct expression_scope scope = {0};
	struct error err;
	double value;
	(void)state;
	assert_int_equal(expression_define(&scope, "cores", 4), 0);
	assert_int_equal(expression_define(&scope, "a.b_c", 2.5), 0);
	assert_int_equal(expression_define(&scope, "unknown", NAN), 0);
	for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
		if (expression_evaluate(right[i].text, &scope, &value, &err))
			fail_msg("%s: %s", right[i].text, err.text);
		assert_true(fabs(value - right[i].value) < 1e-9);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(expression_evaluate(wrong[i], &scope, &value, &err), -EINVAL);
}

/* One line of the section replaced: refused, with its place and the word that matters. */
static void bad_files_are_refused(void **state)
{
	static const struct {
		const char *line, *instead, *says;
	} bad[] = {{"number = 7\n", "number = x\n", "number"},
		{"number = 7\n", "numbre = 7\n", "did you mean 'number'"},
		{"cause = read/latency | read/depth\n", "cause = read/tiredness\n",
			"read/tiredness"},
		{"plant = inject.read_latency = 3ms..8ms\n", "plant = inject.read_latencyy = 3ms\n",
			"did you mean"},
		{"plant = inject.read_latency = 3ms..8ms\n",
			"plant = dataset.path = nfs://host/x\n", "a lab sets no paths"},
		{"plant = inject.read_latency = 3ms..8ms\n", "include = x.ini\n", "'include'"},
		{"right = depth\n", "right = nobody\n", "evidence"},
		{"hint2 = 10: two\n", "hint2 = 5: two\n", "dearer"},
		{"hint3 = 20: three\n", "", "hint3"},
		{"ask = most, best: At best?\n", "ask = most, bets: At best?\n",
			"did you mean 'best'"},
		{"answer = ms, inject.read_latency*1000, 10%: How long?\n",
			"answer = ms, 3: How long?\n", "3 words"},
		{"title = A lab\n", "title = A lab\ntitle = B\n", "twice"},
		{"best = read.depth = 8*cores\n", "best = 8*cores\n", "KEY=VALUE"},
		{"wrong = workers", "wrong = 9workers", "no name"},
		{"[lab]\n", "[lab.9]\nnumber = 1\n[lab]\n", "variant"},
		{"explain = It takes {inject.read_latency}.\n", "explain =\n", "explain"}};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char text[4096];
		struct error err = {0};
		struct lab *lab = NULL;
		const char *at = strstr(LAB_SECTION, bad[i].line);
		assert_non_null(at);
		(void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - LAB_SECTION), LAB_SECTION,
			bad[i].instead, at + strlen(bad[i].line));
		assert_int_equal(lab_read_text(&lab, "07_lab.ini", text, &err), -EINVAL);
		assert_null(lab);
		if (!strstr(err.text, bad[i].says) || !strstr(err.text, "07_lab.ini"))
			fail_msg("'%s' does not say '%s'", err.text, bad[i].says);
	}
	struct error err;
	struct lab *lab;
	assert_int_equal(lab_read_text(&lab, "x.ini", "[read]\ndepth = 1\n", &err), -ENODATA);
}

static void configurations_pass_over_labs(void **state)
{
	struct config config;
	struct error err = {0};
	(void)state;
	config_init(&config);
	if (config_read_text(&config, "07_lab.ini", LAB_FILE, strlen(LAB_FILE), &err))
		fail_msg("%s", err.text);
	assert_int_equal(config_integer(&config, KEY_READ_DEPTH), 1);
	assert_int_equal(config_integer(&config, KEY_INJECT_READ_LATENCY), 0);
	assert_int_equal(config_read_text(&config, "x", "[labs]\na = 1\n", 13, &err), -EINVAL);
	static const char secret[] = "[dataset]\npath = nfs://h/${HOME}\n[lab]\nnumber = 1\n";
	assert_int_equal(config_read_text(&config, "x", secret, sizeof secret - 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "expands no variables"));
	config_release(&config);
}

static void draws_differ_and_repeat(void **state)
{
	enum { DRAWS = 40 };
	struct lab *lab = read_lab(LAB_SECTION);
	struct error err;
	bool factors[4] = {false};
	double least = 1;
	double most = 0;
	(void)state;
	for (uint64_t seed = 0; seed < DRAWS; seed++) {
		struct lab_drawn drawn;
		struct lab_drawn again;
		double latency;
		double factor;
		assert_int_equal(lab_draw(lab, &laptop, seed, &drawn, &err), 0);
		assert_int_equal(lab_draw(lab, &laptop, seed, &again, &err), 0);
		assert_memory_equal(&drawn.plants, &again.plants, sizeof drawn.plants);
		assert_string_equal(drawn.scales.of[0].value, "2ms");
		assert_int_equal(
			expression_evaluate("inject.read_latency", &drawn.scope, &latency, &err),
			0);
		assert_int_equal(
			expression_evaluate("inject.decode_factor", &drawn.scope, &factor, &err),
			0);
		assert_true(latency >= 0.003 && latency <= 0.008);
		factors[(int)factor] = true;
		least = fmin(least, latency);
		most = fmax(most, latency);
		/* Through JSON, as it is sealed. */
		json_t *json = lab_drawn_to_json(lab, &drawn);
		assert_int_equal(lab_drawn_from_json(lab, json, &again, &err), 0);
		assert_memory_equal(&drawn.plants, &again.plants, sizeof drawn.plants);
		json_decref(json);
	}
	assert_true(factors[2] && factors[3]);
	assert_true(most > 1.5 * least);
	lab_free(lab);
}

static void variants_are_drawn(void **state)
{
	static const char text[] =
		LAB_SECTION "[lab.slow]\nplant = inject.decode_wait = 2ms\ncause = decode/wait\n"
			    "[lab.locked]\nplant = inject.lock_share = 100%\ncause = decode/lock\n";
	struct error err;
	bool seen[3] = {false};
	(void)state;
	struct lab *lab = read_lab(text);
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct lab_drawn drawn;
		assert_int_equal(lab_draw(lab, &laptop, seed, &drawn, &err), 0);
		assert_in_range(drawn.variant, 1, 2);
		seen[drawn.variant] = true;
		assert_int_equal(drawn.plants.count, 3);
		assert_string_equal(lab_text(lab, drawn.variant, LAB_CAUSE),
			drawn.variant == 1 ? "decode/wait" : "decode/lock");
	}
	assert_true(seen[1] && seen[2]);
	lab_free(lab);
}

static void settings_are_held_to_their_bounds(void **state)
{
	static const struct {
		const char *word, *says;
	} bad[] = {{"read.depth=65", "1..64"}, {"read.depth=0", ""}, {"read.depth=x", "read.depth"},
		{"inject.read_latency=0", "cannot be changed"}, {"raed.depth=2", "did you mean"},
		{"read.depth", "KEY=VALUE"}, {"read.order=shards", "shuffle | sequential"}};
	char path[64];
	struct lab *lab = read_lab_file(path);
	struct lab_drawn drawn;
	struct lab_setting setting = {0};
	struct error err;
	(void)state;
	assert_int_equal(lab_draw(lab, &laptop, 1, &drawn, &err), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(
			lab_setting_take(lab, &drawn, bad[i].word, &setting, &err), -EINVAL);
		if (!strstr(err.text, bad[i].says))
			fail_msg("'%s' does not say '%s'", err.text, bad[i].says);
	}
	assert_int_equal(lab_setting_take(lab, &drawn, "read.order=sequential", &setting, &err), 0);
	assert_int_equal(lab_setting_take(lab, &drawn, "read.depth=64", &setting, &err), 0);
	assert_int_equal(lab_setting_take(lab, &drawn, "read.depth=1", &setting, &err), 0);
	assert_int_equal(setting.count, 2);
	assert_int_equal(lab_setting_normalise(lab, &drawn, &setting, &err), 0);
	assert_int_equal(setting.count, 1); /* depth 1 is what the file says */
	struct lab_run run;
	assert_int_equal(lab_setting_best(lab, &drawn, &setting, &err), 0);
	assert_int_equal(lab_configure(lab, &drawn, &setting, false, &run, &err), 0);
	assert_int_equal(config_integer(&run.config, KEY_READ_DEPTH), 32);
	assert_int_equal(config_integer(&run.config, KEY_INJECT_READ_LATENCY), 0);
	config_release(&run.config);
	lab_free(lab);
	(void)unlink(path);
}

static void seals_open_with_their_keys_alone(void **state)
{
	char secret[2][SEAL_SECRET_TEXT];
	char public_key[SEAL_SECRET_TEXT];
	char secret_key[SEAL_SECRET_TEXT];
	char *sealed;
	char *text;
	struct error err;
	(void)state;
	assert_int_equal(seal_begin(&err), 0);
	seal_make_secret(secret[0]);
	seal_make_secret(secret[1]);
	seal_make_pair(public_key, secret_key);
	assert_string_not_equal(secret[0], secret[1]);
	assert_true(seal_is_key(secret[0]) && !seal_is_key("short") && !seal_is_key(""));
	assert_int_equal(seal_close(secret[0], "{\"plant\": 5}", &sealed, &err), 0);
	assert_null(strstr(sealed, "plant"));
	assert_int_equal(seal_open(secret[0], sealed, &text, &err), 0);
	assert_string_equal(text, "{\"plant\": 5}");
	free(text);
	assert_int_equal(seal_open(secret[1], sealed, &text, &err), -EBADMSG);
	sealed[strlen(sealed) / 2] = sealed[strlen(sealed) / 2] == 'A' ? 'B' : 'A';
	assert_int_equal(seal_open(secret[0], sealed, &text, &err), -EBADMSG);
	assert_int_equal(seal_open(secret[0], "", &text, &err), -EBADMSG);
	assert_int_equal(seal_open(secret[0], "%%%", &text, &err), -EBADMSG);
	free(sealed);
	assert_int_equal(seal_close_for(public_key, "for the teacher", &sealed, &err), 0);
	assert_int_equal(seal_open_box(secret_key, sealed, &text, &err), 0);
	assert_string_equal(text, "for the teacher");
	free(text);
	assert_int_equal(seal_open_box(secret[0], sealed, &text, &err), -EBADMSG);
	assert_int_equal(seal_close_for("no key", "x", &text, &err), -EINVAL);
	free(sealed);
	char code[2][SEAL_CODE_TEXT];
	uint64_t numbers[2];
	assert_int_equal(seal_code(secret[0], "a", code[0], &err), 0);
	assert_int_equal(seal_code(secret[0], "b", code[1], &err), 0);
	assert_false(seal_code_equal(code[0], code[1]));
	assert_int_equal(seal_number(secret[0], "lab 1", &numbers[0], &err), 0);
	assert_int_equal(seal_number(secret[0], "lab 2", &numbers[1], &err), 0);
	assert_true(numbers[0] != numbers[1]);
}

static void causes_have_synonyms(void **state)
{
	static const struct {
		const char *named;
		bool stage, resource;
	} claims[] = {{"read/latency", true, true}, {"storage/RTT", true, true},
		{"I/O/depth", true, true}, {"read/cpu", true, false},
		{"decode/latency", false, false}, {"gpu/compute", false, false}};
	struct cause_right right;
	struct error err;
	(void)state;
	for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
		if (cause_judge("read/latency | read/depth", claims[i].named, &right, &err))
			fail_msg("%s: %s", claims[i].named, err.text);
		assert_int_equal(right.stage, claims[i].stage);
		assert_int_equal(right.resource, claims[i].resource);
	}
	assert_int_equal(cause_judge("decode/cpu", "workers/compute", &right, &err), 0);
	assert_true(right.stage && right.resource);
	assert_int_equal(
		cause_judge("checkpoint/storage", "checkpoints/bandwidth", &right, &err), 0);
	assert_true(right.stage && right.resource);
	assert_int_equal(cause_judge("upload/copy", "h2d/bandwidth", &right, &err), 0);
	assert_true(right.stage && right.resource);
	assert_int_equal(cause_judge("checkpoint/storage", "saving/disk", &right, &err), 0);
	assert_true(right.stage && right.resource);
	assert_int_equal(cause_judge("memory/leak", "decode/leak", &right, &err), 0);
	assert_true(right.stage && right.resource);
	assert_int_equal(cause_judge("decode/cpu", "decode/xyzzy", &right, &err), -EINVAL);
	assert_non_null(strstr(err.text, "there are: latency, "));
	assert_int_equal(cause_judge("decode/cpu", "decode", &right, &err), -EINVAL);
	assert_int_equal(cause_judge("decode/cpu", "decdoe/cpu", &right, &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'decode'"));
	assert_int_equal(cause_judge("decode/cpu", "decode/", &right, &err), -EINVAL);
	assert_int_equal(cause_judge("decode/cpu", "/ /", &right, &err), -EINVAL);
}

/* A judge that looks after each block, on repetitions with noise: how often it errs. */
static enum lab_gain judged(double yours, double best, double cv, uint64_t seed)
{
	struct lab_block blocks[LAB_BLOCKS_MOST];
	struct lab_judgement j = {.gain = LAB_GAIN_OPEN};
	struct rng rng;
	rng_init(&rng, seed, 1);
	for (size_t i = 0; i < LAB_BLOCKS_MOST && j.gain == LAB_GAIN_OPEN; i++) {
		const double drift = exp(0.2 * rng_normal(&rng)); /* other jobs: on all three */
		blocks[i] = (struct lab_block){100 * drift * exp(cv * rng_normal(&rng)),
			yours * drift * exp(cv * rng_normal(&rng)),
			best * drift * exp(cv * rng_normal(&rng))};
		j = lab_judge(blocks, i + 1, 0.7, 0.05);
	}
	return j.gain;
}

static void the_judge_is_seldom_wrong(void **state)
{
	enum { TRIALS = 200 };
	size_t right = 0;
	size_t wrong = 0;
	size_t no_gain = 0;
	(void)state;
	for (uint64_t i = 0; i < TRIALS; i++) {
		/* All of it, with a spread of 10 %; half of it; nothing, and no room. */
		right += judged(400, 400, 0.1, i) == LAB_GAIN_YES;
		wrong += judged(250, 400, 0.05, TRIALS + i) == LAB_GAIN_YES;
		no_gain += judged(100, 100, 0.02, 2 * TRIALS + i) == LAB_GAIN_NONE;
	}
	assert_true(right >= TRIALS * 95 / 100);
	assert_true(wrong <= TRIALS * 5 / 100);
	assert_true(no_gain >= TRIALS * 90 / 100);
	/* Repetitions that failed do not count, and two blocks decide nothing. */
	const struct lab_block few[] = {{100, 400, 400}, {NAN, 400, 400}, {100, 400, 400}};
	struct lab_judgement j = lab_judge(few, 3, 0.7, 0.05);
	assert_int_equal(j.blocks, 2);
	assert_int_equal(j.gain, LAB_GAIN_OPEN);
	assert_true(fabs(j.share - 1) < 1e-6);
	j = lab_judge(few, 0, 0.7, 0.05);
	assert_true(isnan(j.share) && j.gain == LAB_GAIN_OPEN);
}

static void set_gain(struct lab_check *check, enum lab_gain gain)
{
	check->judgement = (struct lab_judgement){.gain = gain,
		.median = {100, 390, 400},
		.share = 0.97,
		.interval = {0.9, 1.05},
		.blocks = 3};
}

/* A lab from its beginning to its end: what comes too early is refused. */
static void the_order_is_kept(void **state)
{
	char path[64];
	struct lab *lab = read_lab_file(path);
	struct lab_drawn drawn;
	struct lab_check check;
	struct error err = {0};
	const char *hint;
	double price;
	double latency;
	char answer[32];
	(void)state;
	assert_int_equal(lab_draw(lab, &laptop, 1, &drawn, &err), 0);
	json_t *json = lab_state_new(lab, "anna", 1, NULL, "sealed", NULL, 1000);
	assert_int_equal(lab_state_check(json, &err), 0);
	struct lab_claim claim = {.cause = "storage/rtt", .evidence = "depth"};
	assert_int_equal(lab_state_may_measure(lab, &drawn, json, &err), -EINVAL);
	assert_non_null(strstr(err.text, "now, deep, most, stage"));
	assert_int_equal(lab_check_claims(lab, &drawn, json, &claim, &check, &err), -EINVAL);
	static const char *const wrong[] = {"now", "now=", "now=x", "now=3..2", "now=3@0%",
		"now=3@200%", "now=3@4", "now=-1", "never=3", "stage=nonsense", "now=1..2..3@"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (lab_state_predict(lab, &drawn, json, wrong[i], 1001, &err) != -EINVAL)
			fail_msg("'%s' is taken", wrong[i]);
	static const char *const words[] = {
		"now=80", "now=100..150@60%", "deep=1k", "most=390", "stage=io@90%"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (lab_state_predict(lab, &drawn, json, words[i], 1001, &err))
			fail_msg("%s", err.text);
	assert_int_equal(lab_state_stage(json), LAB_PREDICTED);
	assert_int_equal(lab_state_may_measure(lab, &drawn, json, &err), 0);
	lab_state_note_measured(
		json, json_object(), &(struct lab_measured){120, 118, 122, 40}, "07/m001", 1100);
	assert_int_equal(lab_state_stage(json), LAB_MEASURED);
	struct lab_predicted p = lab_state_predicted(json);
	assert_int_equal(p.count, 4); /* the second 'now' took the place of the first */
	assert_int_equal(p.scored, 1);
	assert_int_equal(p.hits, 1);
	assert_true(fabs(p.brier - 0.16) < 1e-9);
	assert_true(fabs(p.factor - sqrt(100 * 150) / 120) < 1e-3);
	assert_int_equal(lab_state_predict(lab, &drawn, json, "now=120", 1101, &err), -EINVAL);

	assert_int_equal(lab_state_take_hint(lab, 0, json, 1102, &hint, &price, &err), 0);
	assert_string_equal(hint, "one");
	claim.evidence = "nothing";
	assert_int_equal(lab_check_claims(lab, &drawn, json, &claim, &check, &err), -EINVAL);
	claim.evidence = "cpu";
	assert_int_equal(lab_check_claims(lab, &drawn, json, &claim, &check, &err), -EINVAL);
	assert_non_null(strstr(err.text, "ms=NUMBER"));
	assert_int_equal(
		expression_evaluate("inject.read_latency*1000", &drawn.scope, &latency, &err), 0);
	(void)snprintf(answer, sizeof answer, "ms=%.2f", latency * 1.05);
	claim.answers[claim.answer_count++] = answer;

	/* The gain with the wrong evidence does not pass, nor the right words without the gain; noise costs nothing. */
	assert_int_equal(lab_check_claims(lab, &drawn, json, &claim, &check, &err), 0);
	set_gain(&check, LAB_GAIN_YES);
	lab_state_note_check(lab, &drawn, json, json_object(), &claim, &check, 1200);
	assert_true(!check.passed && !check.open && check.cause_right && check.answers_right);
	assert_true(fabs(lab_state_points(json) - 90) < 1e-9);
	claim.evidence = "depth";
	assert_int_equal(lab_check_claims(lab, &drawn, json, &claim, &check, &err), 0);
	set_gain(&check, LAB_GAIN_OPEN);
	lab_state_note_check(lab, &drawn, json, json_object(), &claim, &check, 1300);
	assert_true(!check.passed && check.open);
	assert_true(fabs(lab_state_points(json) - 90) < 1e-9);
	set_gain(&check, LAB_GAIN_NO);
	lab_state_note_check(lab, &drawn, json, json_object(), &claim, &check, 1400);
	assert_true(!check.passed && !check.open);
	claim.cause = "decode/cpu";
	assert_int_equal(lab_check_claims(lab, &drawn, json, &claim, &check, &err), 0);
	set_gain(&check, LAB_GAIN_YES);
	lab_state_note_check(lab, &drawn, json, json_object(), &claim, &check, 1500);
	assert_false(check.passed);
	claim.cause = "read/depth";
	assert_int_equal(lab_check_claims(lab, &drawn, json, &claim, &check, &err), 0);
	set_gain(&check, LAB_GAIN_YES);
	lab_state_note_check(lab, &drawn, json, json_object(), &claim, &check, 1600);
	assert_true(check.passed);
	assert_int_equal(lab_state_stage(json), LAB_PASSED);
	assert_true(fabs(json_number_value(json_object_get(json, "points")) - 80) < 1e-9);
	p = lab_state_predicted(json);
	assert_int_equal(p.scored, 3); /* the best one's rate, and the stage */
	assert_int_equal(p.hits, 3);
	assert_int_equal(lab_check_claims(lab, &drawn, json, &claim, &check, &err), -EINVAL);
	assert_int_equal(lab_state_give_up(lab, &drawn, json, 1700, &err), -EINVAL);
	assert_int_equal(lab_state_take_hint(lab, 0, json, 1700, &hint, &price, &err), -EINVAL);
	assert_int_equal(lab_state_check(json, &err), 0);
	json_decref(json);
	lab_free(lab);
	(void)unlink(path);
}

static int lab_is_authentic(const struct lab_book *book, const json_t *json, unsigned number)
{
	const struct lab_student student = {
		.json = book->student, .secret = book->secret, .authentic = true};
	return lab_book_is_authentic(json, number, &student, NULL);
}

/* Writes a file as it was, and opens the folder; the lab is loaded where that can be done. */
static int open_with(const char *folder, const char *name, const char *text, struct error *err)
{
	char file[128];
	struct lab_book book;
	json_t *json = NULL;
	(void)snprintf(file, sizeof file, "%s/%s", folder, name);
	assert_int_equal(files_write_atomic(file, text, strlen(text), err), 0);
	int code = lab_book_open(&book, folder, false, NULL, err);
	if (!code)
		code = lab_book_load(&book, 7, false, &json, err);
	json_decref(json);
	lab_book_close(&book);
	return code;
}

static char *text_of(const char *folder, const char *name)
{
	char file[128];
	char *text;
	size_t size;
	struct error err = {0};
	(void)snprintf(file, sizeof file, "%s/%s", folder, name);
	assert_int_equal(files_read(file, 1 << 20, &text, &size, &err), 0);
	return text;
}

/* Neither file can be put back alone, nor both, nor be read without what lies outside of the folder. */
static void copies_count_as_nothing(void **state)
{
	char path[64];
	char folder[64] = "/tmp/mlbench-labs-XXXXXX";
	struct lab *lab = read_lab_file(path);
	struct lab_drawn drawn;
	struct lab_book book;
	struct error err = {0};
	json_t *json;
	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(lab_book_open(&book, folder, true, "anna", &err), 0);
	assert_int_equal(lab_book_begin(&book, lab, &laptop, NULL, 1000, &json, &drawn, &err), 0);
	assert_int_equal(lab_book_save(&book, json, &err), 0);
	char *old_student = text_of(folder, "student.json");
	char *old_state = text_of(folder, "07.json");
	assert_null(strstr(old_student, book.secret));
	(void)json_object_set_new(json, "ended", json_real(5));
	assert_int_equal(lab_book_save(&book, json, &err), 0);
	assert_int_equal(lab_is_authentic(&book, json, 7), 1);
	assert_int_equal(lab_is_authentic(&book, json, 8), 0); /* a copy in another lab's file */
	json_decref(json);
	lab_book_close(&book);
	char *student = text_of(folder, "student.json");
	char *state_text = text_of(folder, "07.json");

	assert_int_equal(open_with(folder, "07.json", old_state, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "put back from a copy"));
	assert_int_equal(open_with(folder, "student.json", old_student, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "put back from a copy"));
	assert_int_equal(open_with(folder, "07.json", state_text, &err), -EBADMSG);
	assert_int_equal(open_with(folder, "student.json", student, &err), 0);
	char *changed = strdup(student);
	assert_non_null(changed);
	char *name = strstr(changed, "anna");
	assert_non_null(name);
	name[0] = 'h';
	assert_int_equal(open_with(folder, "student.json", changed, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "changed by hand"));
	free(changed);
	assert_int_equal(setenv("XDG_STATE_HOME", folder, 1), 0);
	assert_int_equal(open_with(folder, "student.json", student, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not on this account"));
	assert_int_equal(setenv("XDG_STATE_HOME", state_home, 1), 0);
	free(old_student);
	free(old_state);
	free(student);
	free(state_text);
	assert_int_equal(files_remove_tree(folder, &err), 0);
	lab_free(lab);
	(void)unlink(path);
}

static void folders_survive_and_tell(void **state)
{
	char path[64];
	char folder[64] = "/tmp/mlbench-labs-XXXXXX";
	char file[128];
	struct lab *lab = read_lab_file(path);
	struct lab_drawn drawn;
	struct lab_drawn again;
	struct lab_book book;
	struct lab_book other;
	struct error err = {0};
	json_t *json;
	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(lab_book_open(&book, folder, false, NULL, &err), -ENOENT);
	assert_int_equal(lab_book_open(&book, folder, true, "anna", &err), 0);
	assert_int_equal(lab_book_open(&other, folder, true, NULL, &err), -EBUSY);
	assert_int_equal(lab_book_load(&book, 7, false, &json, &err), 0);
	assert_null(json);
	assert_int_equal(lab_book_begin(&book, lab, &laptop, NULL, 1000, &json, &drawn, &err), 0);
	assert_int_equal(lab_book_save(&book, json, &err), 0);
	json_decref(json);
	lab_book_close(&book);

	/* Opened again, it is the same draw, and no file names it. */
	assert_int_equal(lab_book_open(&book, folder, false, NULL, &err), 0);
	assert_int_equal(lab_book_load(&book, 7, false, &json, &err), 0);
	assert_non_null(json);
	assert_int_equal(lab_is_authentic(&book, json, 7), 1);
	assert_int_equal(lab_book_drawn(&book, lab, json, &again, &err), 0);
	assert_memory_equal(&drawn.plants, &again.plants, sizeof drawn.plants);
	(void)snprintf(file, sizeof file, "%s/07.json", folder);
	char *text;
	size_t size;
	assert_int_equal(files_read(file, 1 << 20, &text, &size, &err), 0);
	assert_null(strstr(text, "read_latency"));
	assert_null(strstr(text, drawn.plants.of[0].value));

	/* Another attempt draws anew and remembers. */
	json_t *next;
	assert_int_equal(lab_book_begin(&book, lab, &laptop, json, 2000, &next, &again, &err), 0);
	assert_int_equal(json_array_size(json_object_get(next, "earlier")), 1);
	assert_int_equal(json_integer_value(json_object_get(next, "attempt")), 2);
	assert_memory_not_equal(&drawn.plants, &again.plants, sizeof drawn.plants);
	json_decref(next);
	/* A state that was deleted gives its draw to nobody. */
	assert_int_equal(lab_book_begin(&book, lab, &laptop, NULL, 2000, &next, &again, &err), 0);
	assert_int_equal(json_integer_value(json_object_get(next, "attempt")), 3);
	assert_memory_not_equal(&drawn.plants, &again.plants, sizeof drawn.plants);
	json_decref(next);
	json_decref(json);

	/* What is edited is refused; begun anew, it says so from then on, and scores count nothing of it. */
	char *points = strstr(text, "\"points\": null");
	assert_non_null(points);
	memcpy(points, "\"points\": 9999", strlen("\"points\": null"));
	assert_int_equal(files_write_atomic(file, text, size, &err), 0);
	free(text);
	assert_int_equal(lab_book_load(&book, 7, false, &json, &err), -EBADMSG);
	assert_null(json);
	assert_non_null(strstr(err.text, "counts as nothing"));
	assert_int_equal(lab_book_load(&book, 7, true, &json, &err), 0);
	assert_int_equal(lab_book_save(&book, json, &err), 0);
	json_decref(json);
	assert_int_equal(lab_book_load(&book, 7, false, &json, &err), 0);
	assert_int_equal(lab_is_authentic(&book, json, 7), 0);
	json_decref(json);
	lab_book_close(&book);
	const char *const folders[] = {folder};
	assert_int_equal(lab_scores(folders, 1, NULL, &json, &err), 0);
	const json_t *entry = json_array_get(
		json_object_get(json_array_get(json_object_get(json, "students"), 0), "labs"), 0);
	assert_true(json_is_false(json_object_get(entry, "authentic")));
	assert_true(json_is_null(json_object_get(entry, "points")));
	assert_string_equal(json_string_value(json_object_get(entry, "state")), LAB_UNVERIFIED);
	assert_int_equal(json_array_size(json_object_get(json, "labs")), 1);
	json_decref(json);

	/* A torn file is refused in one line, and left out of a class. */
	assert_int_equal(files_write_atomic(file, "{\"schema\": ", 11, &err), 0);
	assert_int_equal(lab_book_open(&book, folder, false, NULL, &err), 0);
	assert_int_equal(lab_book_load(&book, 7, true, &json, &err), -EINVAL);
	lab_book_close(&book);
	assert_int_equal(lab_scores(folders, 1, NULL, &json, &err), 0);
	assert_int_equal(json_array_size(json_object_get(json, "skipped")), 1);
	json_decref(json);
	assert_int_equal(files_remove_tree(folder, &err), 0);
	assert_int_equal(lab_scores(folders, 1, NULL, &json, &err), -ENOENT);
	lab_free(lab);
	(void)unlink(path);
}

int main(void)
{
	section_owners_register((const struct section_owner *const[]){&lab_owner, NULL});
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_are_computed),
		cmocka_unit_test(bad_files_are_refused),
		cmocka_unit_test(configurations_pass_over_labs),
		cmocka_unit_test(draws_differ_and_repeat),
		cmocka_unit_test(variants_are_drawn),
		cmocka_unit_test(settings_are_held_to_their_bounds),
		cmocka_unit_test(seals_open_with_their_keys_alone),
		cmocka_unit_test(causes_have_synonyms),
		cmocka_unit_test(the_judge_is_seldom_wrong),
		cmocka_unit_test(the_order_is_kept),
		cmocka_unit_test(folders_survive_and_tell),
		cmocka_unit_test(copies_count_as_nothing),
	};
	struct error err;
	if (!mkdtemp(state_home) || setenv("XDG_STATE_HOME", state_home, 1) != 0)
		return 1;
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)files_remove_tree(state_home, &err);
	return failed;
}
