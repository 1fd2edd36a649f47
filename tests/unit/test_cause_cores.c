/* What keeps threads off the cores: a quota, the host, other processes, the job's own threads; and what only looks so, as
 * a step's work before its device begins. */
#include "harness/analyze/diagnose.h"
#include "harness/analyze/model_costs.h"
#include "harness/analyze/verdict.h"
#include "tests/unit/verdict_fixture.h"

enum { STEPS = 200 };

/* Four workers on two cores, which work all the time: shares of it. */
static void decode_waits(struct measurement *m, double cpu, double run_queue)
{
	decode_bound(m);
	m->stages[1].workers = 4;
	for (int s = 0; s < THREAD_STATES; s++)
		m->stages[1].seconds[s] *= 2;
	const double working = m->stages[1].seconds[THREAD_WORKING];
	struct histogram *service = &m->stages[1].service;
	const uint64_t items = service->count;
	*service = (struct histogram){0};
	histogram_add(service, (uint64_t)(working / (double)items * 1e9), (uint32_t)items);
	m->stages[1].cpu_seconds = cpu * working;
	m->stages[1].run_queue_seconds = run_queue * working;
	m->stages[1].io_wait_seconds = m->stages[1].lock_wait_seconds = 0;
	m->cpu_seconds = m->stages[1].cpu_seconds + 0.2;
	m->quota_cores = m->throttled_share = m->throttled_seconds = NAN;
	m->steal_share = m->cores_busy_outside = 0;
}

static void set_quota(struct measurement *m, const char *group, double cores, double throttled)
{
	(void)snprintf(m->quota_group, sizeof m->quota_group, "%s", group);
	m->quota_cores = cores;
	m->throttled_share = throttled;
}

static struct point_facts four_workers(void)
{
	struct point_facts facts = hand_facts();
	facts.decode_workers = 4;
	return facts;
}

static void a_quota_is_named(void **state)
{
	(void)state;
	static struct measurement m;
	const struct point_facts facts = four_workers();
	decode_waits(&m, 0.25, 0.74);
	set_quota(&m, "/slurm/job_7", 1, 0.98);
	m.cores_busy_outside = 1; /* what others do is of no matter then */
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "quota");
	assert_true(v.confidence >= 0.7);
	assert_true(says(&v, "The quota of cgroup /slurm/job_7 (1 core) throttled in 98 %"));
	assert_true(says(&v, "waits for a core 74 %") && !says(&v, "other processes of the group"));
	assert_true(says(&v, "raise the quota of cgroup /slurm/job_7 (1 core) to 2 cores"));
	assert_true(says(&v, "decode.workers = 1"));
	/* Half of it is used here: who used the rest is said where it was seen. */
	m.cpu_seconds = 0.5 * m.measured_seconds;
	m.quota_used = NAN;
	v = judge(&m, &facts);
	assert_true(says(&v, "0.50 cores were used.") && !says(&v, "processes of the group"));
	m.quota_used = 0.55;
	v = judge(&m, &facts);
	assert_true(!says(&v, "processes of the group"));
	m.quota_used = 0.99;
	v = judge(&m, &facts);
	assert_true(says(&v, "0.50 cores were used and 0.49 by other processes of the group"));
	/* A lock that everybody waits for comes first, with or without a quota. */
	m.stages[1].lock_wait_seconds = 0.6 * m.stages[1].seconds[THREAD_WORKING];
	m.stages[1].run_queue_seconds = 0.1 * m.stages[1].seconds[THREAD_WORKING];
	v = judge(&m, &facts);
	expect(&v, "decode", "lock");
}

/* A quota is raised to more than it is, and to no more cores than there are. */
static void a_quota_is_raised_to_more(void **state)
{
	(void)state;
	static struct measurement m;
	struct point_facts facts = four_workers();
	decode_waits(&m, 0.25, 0.249);
	facts.cores = m.cores_allowed = 8;
	m.stages[1].io_wait_seconds = 0;
	m.stages[1].run_queue_seconds = 0.74 * m.stages[1].seconds[THREAD_WORKING];
	m.quota_used = NAN;
	set_quota(&m, "/a", 2, 0.98);
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "quota");
	assert_true(strstr(v.advice, "(2 cores) to 4 cores"));
	m.quota_used = 5 + m.cpu_seconds / m.measured_seconds;
	v = judge(&m, &facts);
	assert_true(strstr(v.advice, "(2 cores) to 8 cores"));
	facts.cores = m.cores_allowed = 2;
	v = judge(&m, &facts);
	expect(&v, "decode", "quota");
	assert_true(strstr(v.advice, "lift the quota of cgroup /a (2 cores)"));
	set_quota(&m, "/a", 1.9, 0.98);
	v = judge(&m, &facts);
	assert_true(strstr(v.advice, "(1.9 cores) to 2 cores"));
}

/* A mask is named where it leaves cores idle that the process could use, and not where others use these. */
static void a_mask_is_named(void **state)
{
	(void)state;
	static struct measurement m;
	const struct point_facts facts = four_workers();
	decode_waits(&m, 0.25, 0.74);
	m.cores_allowed = 1;
	m.cores_reachable = 16;
	m.stages[1].cores = 1;
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "affinity");
	assert_true(v.confidence >= 0.7);
	assert_true(says(&v, "holds the 4 threads of decode on 1 of the 16 cores"));
	assert_non_null(strstr(v.advice, "widen it to the 16 cores"));
	/* Others beside it, while the rest of the node is idle or not. */
	m.cores_busy_outside = 0.5;
	m.cores_busy_elsewhere = 3;
	v = judge(&m, &facts);
	expect(&v, "decode", "affinity");
	m.cores_busy_elsewhere = 14.9;
	v = judge(&m, &facts);
	expect(&v, "decode", "external");
	m.cores_busy_outside = m.cores_busy_elsewhere = 0;
	/* The loader alone is held. */
	m.cores_allowed = 16;
	v = judge(&m, &facts);
	expect(&v, "decode", "affinity");
	/* A quota that throttles stops it wherever it is. */
	set_quota(&m, "/a", 1, 0.98);
	v = judge(&m, &facts);
	expect(&v, "decode", "quota");
	m.quota_cores = m.throttled_share = NAN;
	/* No mask, as many cores as are wanted, or an older result. */
	m.cores_allowed = m.cores_reachable = m.stages[1].cores = 2;
	v = judge(&m, &facts);
	expect(&v, "decode", "cores");
	m.cores_reachable = 16;
	m.stages[1].cores = 4;
	v = judge(&m, &facts);
	expect(&v, "decode", "cores");
	m.cores_reachable = m.stages[1].cores = 0;
	v = judge(&m, &facts);
	expect(&v, "decode", "cores");
}

/* Threads within the workers are named where they are far more than cores and lose them again and again: else it is the workers
 * that are too many. */
static void threads_of_workers_are_named(void **state)
{
	(void)state;
	static struct measurement m;
	struct point_facts facts = four_workers();
	decode_waits(&m, 0.25, 0.74);
	m.stages[0].cpu_seconds = 0; /* else what reading takes is no switching */
	m.cores_allowed = 2;
	m.switches = 40000 * m.cpu_seconds;
	m.system_seconds = 0.48 * m.cpu_seconds;
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "cores");
	facts.worker_threads = 16;
	v = judge(&m, &facts);
	expect(&v, "decode", "threads");
	assert_true(v.confidence >= 0.7);
	assert_true(says(&v, "4 workers of 16 threads each are 64 threads on 2 cores"));
	assert_true(
		says(&v, "40000 times in each second of CPU time, 48 % of which is in the kernel"));
	assert_non_null(strstr(v.advice, "decode.threads = 1"));
	/* Others beside it do not hide it, and are said. */
	m.cores_busy_outside = 1;
	v = judge(&m, &facts);
	expect(&v, "decode", "threads");
	assert_true(v.confidence <= 0.55 && says(&v, "other processes kept"));
	m.cores_busy_outside = 0;
	/* Threads that sleep take nothing: there, fewer of them would gain nothing. */
	m.switches = 1500 * m.cpu_seconds;
	v = judge(&m, &facts);
	expect(&v, "decode", "cores");
	m.switches = 40000 * m.cpu_seconds;
	m.system_seconds = 0.12 * m.cpu_seconds;
	v = judge(&m, &facts);
	expect(&v, "decode", "cores");
	m.system_seconds = 0.3 * m.cpu_seconds;
	v = judge(&m, &facts);
	expect(&v, "decode", "threads");
	m.stages[0].cpu_seconds = 0.2 * m.cpu_seconds;
	v = judge(&m, &facts);
	expect(&v, "decode", "cores");
	m.switches = m.system_seconds = NAN;
	v = judge(&m, &facts);
	expect(&v, "decode", "cores");
}

static void a_quota_that_hardly_throttles(void **state)
{
	(void)state;
	static struct measurement m;
	const struct point_facts facts = four_workers();
	decode_waits(&m, 0.45, 0.54);
	set_quota(&m, "/a", 1.9, 0.05);
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "cores");
	m.throttled_share = 0.3;
	v = judge(&m, &facts);
	expect(&v, "decode", "quota");
	const double unsure = v.confidence;
	m.throttled_share = 0.9;
	v = judge(&m, &facts);
	assert_true(v.confidence > unsure);
	/* Now and then only, while others take the cores: they are what can be seen. */
	m.throttled_share = 0.3;
	m.cores_busy_outside = 1;
	v = judge(&m, &facts);
	expect(&v, "decode", "external");
	/* Not known: no quota is blamed. */
	m.throttled_share = NAN;
	m.cores_busy_outside = 0;
	v = judge(&m, &facts);
	expect(&v, "decode", "cores");
}

static void long_names_keep_their_ends(void **state)
{
	(void)state;
	static struct measurement m;
	char group[QUOTA_GROUP_BYTES];
	const struct point_facts facts = four_workers();
	memset(group, 'k', sizeof group);
	(void)snprintf(group + sizeof group - 9, 9, "/pod.end");
	decode_waits(&m, 0.25, 0.74);
	set_quota(&m, group, 12.5, 0.98);
	const struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "quota");
	assert_true(says(&v, "kk/pod.end (12.5 cores) throttled") && says(&v, "cgroup ...kk"));
	assert_non_null(strstr(v.advice, "/pod.end"));
}

static void stolen_time_is_the_hosts(void **state)
{
	(void)state;
	static struct measurement m;
	const struct point_facts facts = hand_facts();
	/* Two workers on two cores: what is stolen is in no account of the thread. */
	decode_bound(&m);
	m.cpu_seconds = 0.7 * 2 * m.measured_seconds;
	m.stages[1].cpu_seconds = 0.7 * m.stages[1].seconds[THREAD_WORKING];
	m.stages[1].lock_wait_seconds = m.stages[1].io_wait_seconds = 0;
	m.quota_cores = m.throttled_share = NAN;
	m.steal_share = 0.29;
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "steal");
	assert_true(v.confidence >= 0.7);
	assert_true(says(&v, "The host took 0.6 of 2 cores' time away (steal)"));
	assert_true(says(&v, "ask for dedicated cores"));
	/* Without the kernel's account of locks, sleeping is taken for one: not this. */
	m.stages[1].lock_wait_seconds = NAN;
	v = judge(&m, &facts);
	expect(&v, "decode", "steal");
	/* Asleep for more than what was stolen, or hardly anything was. */
	m.stages[1].lock_wait_seconds = 0;
	m.steal_share = 0.05;
	v = judge(&m, &facts);
	expect(&v, "decode", "wait");
	/* A thread's CPU time that has what was stolen in it. */
	m.stages[1].cpu_seconds = 0.98 * m.stages[1].seconds[THREAD_WORKING];
	m.steal_share = 0.3;
	v = judge(&m, &facts);
	expect(&v, "decode", "steal");
	/* Other processes here take more than the host. */
	decode_waits(&m, 0.3, 0.68);
	m.steal_share = 0.1;
	m.cores_busy_outside = 1;
	const struct point_facts four = four_workers();
	v = judge(&m, &four);
	expect(&v, "decode", "external");
	m.steal_share = NAN;
	v = judge(&m, &four);
	expect(&v, "decode", "external");
}

/* A hog has one of two cores: threads are woken and wait for a core, which counts as starved or blocked.  That is no queue that
 * is too short. */
static void threads_that_are_woken_late(void **state)
{
	(void)state;
	static struct measurement m;
	const struct point_facts facts = hand_facts();
	hand_made(&m, (struct shares){0.03, 0, 0.97}, (struct shares){0.5, 0.5, 0},
		(struct shares){0.3, 0.7, 0});
	m.quota_cores = m.throttled_share = NAN;
	m.steal_share = m.cores_busy_outside = 0;
	for (size_t i = 0; i < m.stage_count; i++)
		m.stages[i].lock_wait_seconds = m.stages[i].io_wait_seconds = 0;
	struct verdict v = judge(&m, &facts);
	expect(&v, "read", "depth");
	struct stage_measurement *const decode = &m.stages[1];
	const double all = decode->workers * m.measured_seconds;
	decode->cpu_seconds = 0.46 * all;
	decode->run_queue_seconds = 0.52 * all;
	m.cores_busy_outside = 1;
	v = judge(&m, &facts);
	expect(&v, "decode", "external");
	assert_true(says(&v, "wait for a core 52 % of all their time"));
	/* Nobody else wants the cores: it is not theirs. */
	m.cores_busy_outside = 0;
	v = judge(&m, &facts);
	assert_string_not_equal(v.resource, "external");
}

/* --- the step ---------------------------------------------------------------------------------- */

struct steps {
	struct trace_item items[STEPS];
	struct traces traces;
};

/* An emulated device that is busy all the time: ns of its thread and of its own a step. */
static void make_steps(struct steps *steps, double host_ns, double device_ns)
{
	*steps = (struct steps){.traces = {.stage_count = 1}};
	for (size_t i = 0; i < STEPS; i++)
		steps->items[i] = (struct trace_item){
			.number = i, .service_ns = (float)device_ns, .host_ns = (float)host_ns};
	struct trace *trace = &steps->traces.stages[0];
	*trace = (struct trace){.items = steps->items, .count = STEPS, .block = STEPS};
	(void)snprintf(trace->stage, NAME_BYTES, "step");
}

static void step_bound(struct measurement *m, double device_share)
{
	hand_made(m, (struct shares){0.2, 0, 0.8}, (struct shares){0.5, 0.01, 0.49},
		(struct shares){0.995, 0.005, 0});
	m->stages[2].capacity = m->throughput / device_share;
	m->step_utilisation = device_share;
	m->quota_cores = m->throttled_share = NAN;
}

static void judge_step(struct measurement *m, struct steps *steps, const struct point_facts *facts,
	struct verdict *out)
{
	static struct point_summary point;
	const struct measurement *repeats[] = {m, m, m};
	const struct traces *traces[] = {&steps->traces, &steps->traces, &steps->traces};
	const struct model_source source = {.repeats = repeats, .traces = traces, .count = 3};
	struct error err;
	assert_int_equal(summary_of_point(repeats, 3, facts, &point, &err), 0);
	const struct evidence_base base = {
		.point = &point, .repeats = repeats, .count = 3, .facts = facts, .source = &source};
	verdict_judge(&base, out);
	point_summary_release(&point);
}

static void launching_is_not_being_late(void **state)
{
	(void)state;
	static struct measurement m;
	static struct steps steps;
	struct verdict v;
	const struct point_facts facts = hand_facts();
	step_bound(&m, 0.54);
	make_steps(&steps, 0.46e6, 0.54e6);
	judge_step(&m, &steps, &facts, &v);
	expect(&v, "step", "launch");
	assert_true(v.confidence >= 0.7 && says(&v, "works 45 % of the step time"));
	assert_false(says(&v, "leave it a core"));
	/* The thread waited for a core meanwhile: that is no work. */
	m.stages[2].run_queue_seconds = 0.44 * m.stages[2].seconds[THREAD_WORKING];
	judge_step(&m, &steps, &facts, &v);
	expect(&v, "step", "compute");
	assert_true(says(&v, "its thread was late") && says(&v, "leave it a core"));
	/* A little of it is neither. */
	step_bound(&m, 0.88);
	make_steps(&steps, 0.12e6, 0.88e6);
	judge_step(&m, &steps, &facts, &v);
	expect(&v, "step", "compute");
	assert_true(says(&v, "computes 88.0 %") && !says(&v, "its thread was late"));
}

static void a_quota_makes_the_step_late(void **state)
{
	(void)state;
	static struct measurement m;
	static struct steps steps;
	struct verdict v;
	const struct point_facts facts = hand_facts();
	step_bound(&m, 0.6);
	make_steps(&steps, 1e3, 1e6);
	set_quota(&m, "/a", 0.5, 0.9);
	judge_step(&m, &steps, &facts, &v);
	expect(&v, "step", "quota");
	assert_true(says(&v, "39 % of the time") && says(&v, "raise the quota of cgroup /a"));
	m.throttled_share = 0;
	judge_step(&m, &steps, &facts, &v);
	expect(&v, "step", "compute");
}

static void too_many_threads_compute(void **state)
{
	(void)state;
	static struct measurement m;
	struct point_facts facts = four_workers();
	step_bound(&m, 0.99);
	facts.step_emulated = false;
	facts.step_threads = 8;
	struct stage_measurement *step = &m.stages[2];
	step->device = false;
	step->cpu_seconds = 0.25 * step->seconds[THREAD_WORKING];
	step->run_queue_seconds = 0.74 * step->seconds[THREAD_WORKING];
	m.stages[1].cpu_seconds = 0.3 * m.stages[1].seconds[THREAD_WORKING];
	const struct verdict v = judge(&m, &facts);
	expect(&v, "step", "cores");
	assert_true(v.confidence >= 0.7 && says(&v, "8 step threads on 2 cores"));
	assert_non_null(strstr(v.advice, "step.threads = 2 and decode.workers = 1"));
}

/* --- phases ------------------------------------------------------------------------------------ */

/* In the second of three parts others take a core, the host half a core, and the quota throttles. */
static void phases_have_a_load_of_their_own(void **state)
{
	(void)state;
	enum { WINDOWS = 30 };
	static struct measurement m;
	static struct measurement part;
	static struct window windows[WINDOWS];
	decode_waits(&m, 0.5, 0.4);
	m.measured_seconds = 3;
	m.cpu_seconds = 3;
	m.windows = windows;
	m.window_count = WINDOWS;
	m.cores_busy_outside = 1.0 / 3;
	m.steal_share = 1.0 / 12;
	set_quota(&m, "/a", 1, 1.0 / 3);
	struct window w = {0};
	for (size_t i = 0; i < WINDOWS; i++) {
		const bool middle = i >= WINDOWS / 3 && i < 2 * WINDOWS / 3;
		w.t += 0.1;
		w.samples += 100;
		w.own_cpu += 0.1;
		w.machine_cpu += middle ? 0.2 : 0.1;
		w.machine_steal += middle ? 0.05 : 0;
		w.machine_time += 0.2;
		w.quota_cores = middle ? 0.5 : 1;
		w.quota_used += 0.15;
		w.quota_periods += 1;
		w.quota_throttled += middle ? 1 : 0;
		w.throttled_seconds += middle ? 0.15 : 0;
		w.stage_seconds[1][THREAD_WORKING] += 0.4;
		w.stage_cpu[1] += 0.1;
		w.stage_run_queue[1] += middle ? 0.3 : 0.05;
		windows[i] = w;
	}
	phase_slice(&m, NULL, 1, 2, &part);
	assert_true(fabs(part.cores_busy_outside - 1) < 1e-9 && fabs(part.cpu_seconds - 1) < 1e-9);
	assert_true(fabs(part.steal_share - 0.25) < 1e-9);
	assert_true(fabs(part.throttled_share - 1) < 1e-9);
	assert_true(fabs(part.throttled_seconds - 1.5) < 1e-9);
	assert_true(part.quota_cores == 0.5 && fabs(part.quota_used - 1.5) < 1e-9);
	assert_true(fabs(part.stages[1].run_queue_seconds - 3) < 1e-9);
	phase_slice(&m, NULL, 2, 3, &part);
	assert_true(fabs(part.cores_busy_outside) < 1e-9 && fabs(part.steal_share) < 1e-9);
	assert_true(fabs(part.throttled_share) < 1e-9 && part.quota_cores == 1);
	assert_true(fabs(part.stages[1].run_queue_seconds - 0.5) < 1e-9);
	/* Windows of an older result tell nothing of it: the whole run stands for each part. */
	for (size_t i = 0; i < WINDOWS; i++)
		windows[i].own_cpu = windows[i].machine_cpu = windows[i].machine_steal =
			windows[i].machine_time = windows[i].quota_cores = windows[i].quota_used =
				windows[i].quota_periods = windows[i].stage_run_queue[1] = NAN;
	phase_slice(&m, NULL, 2, 3, &part);
	assert_true(part.cores_busy_outside == m.cores_busy_outside);
	assert_true(part.steal_share == m.steal_share && fabs(part.cpu_seconds - 1) < 1e-9);
	assert_true(part.throttled_share == m.throttled_share);
	assert_true(part.stages[1].run_queue_seconds > 0);
}

/* In the second of two parts a quota is cut, and the rate with it, which it makes as uneven as that. */
static void a_quota_changes(void **state)
{
	(void)state;
	enum { WINDOWS = 40, CUT_AT = 25 };
	static struct measurement repeats[2];
	static struct window windows[2][WINDOWS];
	const struct measurement *const list[] = {&repeats[0], &repeats[1]};
	for (size_t r = 0; r < 2; r++) {
		struct measurement *const m = &repeats[r];
		struct window w = {0};
		decode_waits(m, 0.5, 0.4);
		m->measured_seconds = 4;
		m->cut_seconds = 0;
		m->windows = windows[r];
		m->window_count = WINDOWS;
		m->window_seconds = 0.1;
		set_quota(m, "/a", 0.5, 1);
		for (size_t i = 0; i < WINDOWS; i++) {
			const bool cut = r == 1 || i >= CUT_AT;
			const bool uneven = i % 7 == 3;
			w.t += 0.1;
			w.samples += (cut ? 50U : 200U) * (uneven ? 4U : 1U);
			w.quota_cores = cut ? 0.5 : 0;
			w.quota_periods += 1;
			w.quota_throttled += cut ? 1 : 0;
			windows[r][i] = w;
		}
		m->samples = w.samples;
		m->throughput = (double)w.samples / 4;
	}
	struct phase_cut cut;
	struct measurement part;
	phases_cut(list, 2, &cut);
	assert_true(cut.known && cut.count == 2 && cut.repeat == 0 && cut.after == 1);
	assert_true(fabs(cut.edges[1] - 2.5) < 0.11);
	phase_slice(&repeats[0], NULL, cut.edges[0], cut.edges[1], &part);
	assert_true(isnan(part.quota_cores));
	phase_slice(&repeats[0], NULL, cut.edges[1], cut.edges[2], &part);
	assert_true(part.quota_cores == 0.5);
	/* One that is changed and limits nothing is no other phase. */
	for (size_t i = 0; i < WINDOWS; i++) {
		windows[0][i].samples = 50 * (i + 1);
		windows[1][i].samples = 50 * (i + 1);
	}
	phases_cut(list, 2, &cut);
	assert_true(!cut.known && cut.count == 1);
}

/* What others got beside a quota is what they would have to share, once: not more for what the quota kept us waiting. */
static void others_take_what_a_quota_leaves(void **state)
{
	(void)state;
	static struct measurement m;
	decode_waits(&m, 0.12, 0.87);
	m.cpu_seconds = m.stages[1].cpu_seconds;
	for (size_t i = 0; i < m.stage_count; i++)
		if (i != 1)
			m.stages[i].cpu_seconds = m.stages[i].run_queue_seconds = 0;
	m.cores_busy_outside = 1;
	m.throttled_seconds = 1.5 * m.measured_seconds;
	set_quota(&m, "/a", 0.5, 1);
	struct outside outside = outside_threads(&m, 2, true);
	assert_true(fabs(outside.got - 1) < 1e-9 && fabs(outside.wanted - 1) < 1e-9);
	/* They fill the node: whole threads do. */
	m.cores_busy_outside = 1.5;
	outside = outside_threads(&m, 2, true);
	assert_true(outside.got == 2 && fabs(outside.wanted - 2) < 1e-9);
	/* Without a quota they are who is waited for. */
	set_quota(&m, "", NAN, 0);
	outside = outside_threads(&m, 2, true);
	assert_true(fabs(outside.got - 1.5) < 1e-9 && outside.wanted > 4);
	/* One that throttles now and then: the rest of the wait is for others. */
	set_quota(&m, "/a", 0.5, 0.2);
	const double all = outside.wanted;
	m.throttled_seconds = 0.3 * m.measured_seconds;
	outside = outside_threads(&m, 2, true);
	assert_true(outside.wanted > 2 && outside.wanted <= all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quota_is_named),
		cmocka_unit_test(a_quota_is_raised_to_more),
		cmocka_unit_test(a_quota_that_hardly_throttles),
		cmocka_unit_test(a_mask_is_named),
		cmocka_unit_test(threads_of_workers_are_named),
		cmocka_unit_test(a_quota_changes),
		cmocka_unit_test(others_take_what_a_quota_leaves),
		cmocka_unit_test(long_names_keep_their_ends),
		cmocka_unit_test(stolen_time_is_the_hosts),
		cmocka_unit_test(threads_that_are_woken_late),
		cmocka_unit_test(launching_is_not_being_late),
		cmocka_unit_test(a_quota_makes_the_step_late),
		cmocka_unit_test(too_many_threads_compute),
		cmocka_unit_test(phases_have_a_load_of_their_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
