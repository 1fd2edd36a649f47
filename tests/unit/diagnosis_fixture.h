/* A diagnosis filled by hand: the one of the story in README's words. */
#ifndef MLBENCH_TESTS_DIAGNOSIS_FIXTURE_H
#define MLBENCH_TESTS_DIAGNOSIS_FIXTURE_H

#include "harness/report/diagnosis_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct told {
	struct point_summary point;
	struct diagnosis diagnosis;
	struct verification verification;
	struct follow follow;
	struct diagnosis_view view;
};

static inline void told_recommend(struct diagnosis *d)
{
	struct recommendation *r = &d->recommendations[d->recommendation_count++];
	*r = (struct recommendation){.settings = {"decode.workers=8", "read.depth=16"},
		.setting_count = 2,
		.predicted = 1190,
		.interval = {1120, 1240},
		.next_stage = "read",
		.next_resource = "latency",
		.words = "4 workers are busy all the time and cores are free"};
}

static inline void told_experiment(struct verification *v, enum experiment_kind kind,
	const char *stage, double factor, const char *what, double predicted, double measured)
{
	struct experiment *e = &v->experiments[v->count++];
	*e = (struct experiment){.kind = kind,
		.factor = factor,
		.predicted = predicted,
		.predicted_90 = {predicted * 0.97, predicted * 1.03},
		.baseline = NAN};
	(void)snprintf(e->stage, sizeof e->stage, "%s", stage);
	(void)snprintf(e->what, sizeof e->what, "%s", what);
	for (int i = 0; i < 3; i++)
		experiment_add(e, log(measured) + 0.001 * (i - 1), (double[]){610, 610});
}

static inline void told_verify(struct verification *v)
{
	*v = (struct verification){.seed = 4,
		.throughput = 612,
		.budget_s = 180,
		.spent_s = 95.5,
		.warmup_s = 0.3,
		.duration_s = 1.1};
	told_experiment(
		v, EXPERIMENT_KNOB, "decode", 1, "decode.workers=8 read.depth=16", 1.94, 1.95);
	told_experiment(
		v, EXPERIMENT_SUBSTITUTE, "decode", 1, "decode: ready-made samples", 2.4, 2.42);
	told_experiment(v, EXPERIMENT_SUBSTITUTE, "read", 1, "read: files from memory", 1.0, 1.2);
	told_experiment(v, EXPERIMENT_SLOW, "decode", 1.05, "decode 5 % slower", 0.953, 0.953);
	told_experiment(v, EXPERIMENT_SLOW, "decode", 1.1, "decode 10 % slower", 0.911, 0.91);
	told_experiment(v, EXPERIMENT_SLOW, "step", 1.1, "step 10 % slower", 0.998, 0.998);
	v->experiments[5].broken = true;
	(void)snprintf(v->experiments[5].why, sizeof v->experiments[5].why, "could not run: test");
	verification_weigh(v);
}

static inline void told_step(
	struct follow *follow, const char *set, double predicted, double measured)
{
	struct follow_step *step = &follow->steps[follow->count++];
	*step = (struct follow_step){.measured = measured,
		.measured_95 = {measured * 0.98, measured * 1.01},
		.trial = {.before = 612,
			.before_half = 0.01,
			.rate = measured,
			.half = 0.01,
			.predicted = predicted,
			.predicted_90 = {predicted * 0.95, predicted * 1.04}}};
	(void)snprintf(step->trial.set, sizeof step->trial.set, "%s", set);
	trial_judge(&step->trial);
	follow->failed += step->trial.outcome == EXPERIMENT_FAILED;
	follow->came_true += step->trial.outcome == EXPERIMENT_CONFIRMED;
}

static inline void told_follow(struct follow *follow)
{
	*follow = (struct follow){.set = "--set decode.workers=8 --set read.depth=16",
		.end = "no setting is predicted to help: the bottleneck is step / compute"};
	told_step(follow, "", NAN, 612);
	follow->steps[0].trial.kept = true;
	told_step(follow, "decode.workers=8 read.depth=16", 1190, 1195);
	told_step(follow, "prefetch.depth=4", 1300, NAN);
	told_step(follow, "read.depth=32", 3198, 640);
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(follow->steps[i].stage, NAME_BYTES, "%s", i ? "read" : "decode");
		(void)snprintf(follow->steps[i].resource, NAME_BYTES, "%s", i ? "latency" : "cpu");
		follow->steps[i].confidence = 0.9 * (double)i;
	}
}

static inline void told_diagnose(struct diagnosis *d)
{
	*d = (struct diagnosis){.verdict = {.stage = "decode",
					.resource = "cpu",
					.confidence = 0.97,
					.evidence = {"decode works 99.8 % of its threads' time",
						"the next limit is read, at 1,240 samples/s"},
					.evidence_count = 2,
					.advice = "give it more workers: cores are free"},
		.modelled = true,
		.replayed = 615,
		.elasticities = {.sum = 1.004, .unmodelled = 0.006},
		.knee = {.workers = 10, .throughput = 1450, .doubled = 1500},
		.memory = {.bytes_per_s = 1200,
			.interval = {-500, 2900},
			.seconds_to_full = HUGE_VAL,
			.words = "does not grow beyond its pools"},
		.phase_count = 2};
	for (int c = 0; c < COSTS; c++)
		d->elasticities.costs[c] = (struct elasticity){.cost = (enum replay_cost)c};
	d->elasticities.costs[COST_DECODE_CPU] = (struct elasticity){
		.cost = COST_DECODE_CPU, .value = 0.94, .interval = {0.91, 0.97}};
	d->elasticities.costs[COST_READ_LATENCY] = (struct elasticity){
		.cost = COST_READ_LATENCY, .value = 0.064, .interval = {0.03, 0.09}};
	d->ladder = (struct ladder){.rungs = {{"decode", "cpu", 612}, {"read", "latency", 1240},
					    {"step", "compute", 1786}},
		.count = 3};
	d->phases[0] = (struct phase){.begin_s = 0.5,
		.end_s = 2.1,
		.throughput = 640,
		.stage = "decode",
		.resource = "cpu",
		.confidence = 0.95};
	d->phases[1] = (struct phase){.begin_s = 2.1,
		.end_s = 3.5,
		.throughput = 420,
		.stage = "read",
		.resource = "device",
		.confidence = 0.9};
	told_recommend(d);
}

static inline void told_open(struct told *told)
{
	memset(told, 0, sizeof *told);
	told->point = (struct point_summary){.median = 612, .ci95 = {600, 620}, .stage_count = 2};
	told->point.stages[0] =
		(struct stage_summary){.name = "decode", .workers = 4, .capacity = 613};
	told->point.stages[1] =
		(struct stage_summary){.name = "step", .workers = 1, .capacity = 1786};
	told_diagnose(&told->diagnosis);
	told_verify(&told->verification);
	told_follow(&told->follow);
	told->view = (struct diagnosis_view){.name = "story",
		.folder = "results/story/20261121T000000Z",
		.point = 3,
		.settings = "decode.workers=4 batch.size=64",
		.is_best = true,
		.points = 12,
		.samples = 5000,
		.summary = &told->point,
		.diagnosis = &told->diagnosis,
		.verification = &told->verification,
		.follow = &told->follow};
}

#endif
