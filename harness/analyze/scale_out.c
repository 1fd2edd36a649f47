/* Rounds of nodes that wait for the slowest, and what nodes share. */
#include "harness/analyze/scale_out.h"

#include "harness/analyze/student.h"
#include "harness/base/array.h"
#include "harness/base/rng.h"
#include "harness/config/shape.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	FLEETS = 8,     /* of the same kind: other nodes, other draws */
	PARTS = FLEETS, /* of a recording */
	FLEET_SEED = 52711,
	ROUNDS_LEAST = 32,
	SAMPLES_TIMES = 4,
	ROUNDS_MOST = 512,
	ROUNDS_KEPT = 4096,    /* of a node's input and step, to draw from */
	NODE_ROUNDS = 5000000, /* of all simulated nodes and fleets together, about */
	RECUR_LEAST = 64,      /* of each node */
	RECUR_MOST = 1024,
	DOUBT_TIMES = 4, /* as many fewer where only the interval depends on them */
};

static const double Z90 = 1.645;
static const double DEVIATION_TIMES = 3;
/* A ratio that is no higher cannot hide much that was not recorded. */
static const double BEYOND_MATTERS = 1.01;
/* Waiting of which less was predicted does not tell how much of it there is; nor is there more than this power of it. */
static const double MEND_FROM = 1.005, MEND_MOST = 2;
/* Share of what the recurrence misses that is still in doubt once it was corrected. */
static const double UNEXPLAINED = 0.5;
/* Waiting, as a share of a round, that is none. */
static const double WAITS_LEAST = 1e-6;

/* Streams of a fleet's random numbers beside those of its nodes. */
static const uint64_t STREAM_FACTORS = UINT64_MAX;

static uint64_t seed_of(size_t fleet)
{
	return rng_mix(FLEET_SEED, fleet);
}

/* --- the largest of many ---------------------------------------------------------------------- */

double fleet_maximum(const double *ascending, size_t count, unsigned draws)
{
	double mean = 0;
	double below = count > 0 && draws > 0; /* probability that no draw is above the k-th */
	if (below <= 0)
		return NAN;
	for (size_t k = count; k > 0 && below > 0; k--) {
		const double share = k > draws ? (double)draws / (double)k : 1;
		mean += ascending[k - 1] * below * share;
		below *= 1 - share;
	}
	return mean;
}

/* --- nodes that differ ------------------------------------------------------------------------ */

/* The deviation as it may be: of n nodes it is known by a chi-squared variable of n - 1 degrees of freedom.  Two nodes that are
 * alike by chance say nothing of a thousand others, but not that these have nothing in common. */
static double doubt_deviation(const struct fleet_spread *spread, struct rng *rng)
{
	double squares = 0;
	for (unsigned i = 1; i < spread->measured; i++) {
		const double z = rng_normal(rng);
		squares += z * z;
	}
	return squares > 0 ? spread->deviation *
				     fmin(sqrt((spread->measured - 1) / squares), DEVIATION_TIMES)
			   : spread->deviation;
}

/* ln(time over the modelled node's), mean over those that were measured. */
static double spread_centre(const struct fleet_spread *spread)
{
	double centre = 0;
	for (unsigned i = 0; spread->factors && i < spread->measured; i++)
		centre += log(spread->factors[i]) / spread->measured;
	return centre;
}

/* ln(time of all ranks together) in a repetition. */
static double measured_level(const struct fleet_measured *measured, size_t repeat)
{
	double sum = 0;
	for (unsigned i = 0; i < measured->ranks; i++)
		sum += log(measured->own_seconds[i * measured->repeats + repeat]);
	return sum / measured->ranks;
}

/* ln(time over that of all) of a rank: its mean over the repetitions, and the variance of that mean. */
static void measured_rank(
	const struct fleet_measured *measured, unsigned rank, double *mean, double *variance)
{
	const double n = (double)measured->repeats;
	double sum = 0;
	double squares = 0;
	for (size_t r = 0; r < measured->repeats; r++) {
		const double value = log(measured->own_seconds[rank * measured->repeats + r]) -
				     measured_level(measured, r);
		sum += value;
		squares += value * value;
	}
	*mean = sum / n;
	*variance = n > 1 ? fmax(squares - sum * sum / n, 0) / (n - 1) / n : (double)HUGE_VAL;
}

/* Each rank is drawn towards the mean of all by what may be noise. */
struct fleet_spread fleet_spread_of(const struct fleet_measured *measured, double *factors)
{
	const double ranks = measured->ranks;
	double noise = 0;
	double squares = 0;
	for (unsigned i = 0; i < measured->ranks; i++) {
		double variance;
		measured_rank(measured, i, &factors[i], &variance);
		noise += variance / ranks;
		squares += factors[i] * factors[i] / (ranks - 1); /* their mean is 0 */
	}
	const double true_squares = fmax(squares - noise, 0);
	const double keeps = squares > 0 ? sqrt(true_squares / squares) : 0;
	const double first = factors[0];
	for (unsigned i = 0; i < measured->ranks; i++)
		factors[i] = exp(keeps * (factors[i] - first));
	return (struct fleet_spread){
		.deviation = sqrt(true_squares), .measured = measured->ranks, .factors = factors};
}

double fleet_waiting_of(const struct fleet_measured *measured)
{
	const size_t count = measured->ranks * measured->repeats;
	const double own = statistics_mean(measured->own_seconds, count);
	return count > 0 && own > 0 ? (measured->round_seconds - measured->exposed_seconds) / own
				    : (double)NAN;
}

/* Times of `nodes` nodes over the modelled one's. */
static void draw_factors(
	const struct fleet_spread *spread, size_t fleet, double *factors, unsigned nodes)
{
	struct rng rng;
	double centre = spread_centre(spread);
	rng_init(&rng, seed_of(fleet), STREAM_FACTORS);
	const double deviation = doubt_deviation(spread, &rng);
	if (spread->factors)
		centre += deviation / sqrt(spread->measured) * rng_normal(&rng);
	for (unsigned i = 0; i < nodes; i++)
		factors[i] = spread->factors && spread->measured == nodes
				     ? spread->factors[i]
				     : exp(centre + deviation * rng_normal(&rng));
}

/* --- replays that meet after each round ------------------------------------------------------- */

struct fleet_replay {
	const struct model *model;
	struct fleet_spread spread;
	unsigned members;        /* nodes that are replayed together, at most */
	unsigned warmup, rounds; /* of each */
	double alone_ns
		[FLEETS]; /* mean rounds of a member by itself, as fast as the modelled node */
	double *alone;    /* all of these, ascending; owned */
	size_t alone_count;
	/* ns, in sequence: what a node's input needs for each round when nothing makes it wait, and its steps; owned. */
	double *input, *step;
	double *slower_input,
		*slower_step; /* as these, with what a longer recording would have; owned */
	size_t input_count, step_count;
	double stall_ns;         /* of checkpoints and evaluations, per round */
	double alike_ns[FLEETS]; /* as alone_ns, of the recurrence */
	double part_ns[FLEETS];  /* and of the parts of the recording */
	/* Of ln(ratio): what replays of all members had beyond the recurrence, and its deviation. */
	double correction, correction_doubt;
	double together;        /* power of what nodes wait: 1, or as measured */
	double recorded_rounds; /* of the slower of input and step, at least 1 */
};

/* Of a round, ns. */
struct fleet_mean {
	double round; /* all of it */
	double own;   /* what a node needs, before it waits for the others: mean over the nodes */
};

/* What is computed: by replay, nodes by themselves or together; by recurrence, a fleet, or equal nodes: as they are, as if only a
 * part had been recorded (each fleet has another one), or as if slower rounds had been.  A node by itself is as fast as the
 * modelled one. */
enum fleet_job { JOB_ALONE, JOB_TOGETHER, JOB_RECUR, JOB_ALIKE, JOB_PART, JOB_SLOWER };

struct members {
	struct replay_model models[FLEET_MEMBERS];
	struct replay_rounds *rounds[FLEET_MEMBERS];
	unsigned count;
};

static unsigned devices_of_node(const struct model *model)
{
	return model->replay.shape.devices > 1 ? model->replay.shape.devices : 1;
}

/* Members first .. first + count - 1 of a fleet. */
static int members_open(const struct fleet_replay *replay, size_t fleet, unsigned first,
	const double *factors, unsigned count, struct members *members, struct error *err)
{
	int code = 0;
	*members = (struct members){.count = count};
	for (unsigned i = 0; i < count && !code; i++) {
		struct replay_options options =
			model_resample(replay->model, 1, rng_mix(seed_of(fleet), first + i));
		options.batches = (uint64_t)(replay->warmup + replay->rounds) *
				  devices_of_node(replay->model);
		members->models[i] = replay->model->replay;
		for (int cost = 0; cost < COSTS; cost++)
			members->models[i].scale[cost] *= factors[i];
		code = replay_rounds_open(&members->rounds[i], &members->models[i], &options, err);
	}
	return code;
}

static void members_close(struct members *members)
{
	for (unsigned i = 0; i < members->count; i++)
		replay_rounds_close(members->rounds[i]);
}

/* *ready: when the slowest is done with the round that begins at `from`; adds to *own_sum what they take on average. */
static int members_step(
	struct members *members, double from, double *ready, double *own_sum, struct error *err)
{
	*ready = from;
	for (unsigned i = 0; i < members->count; i++) {
		double own;
		const int code = replay_rounds_next(members->rounds[i], from, &own, err);
		if (code)
			return code;
		*ready = fmax(*ready, own);
		*own_sum += (own - from) / members->count;
	}
	return 0;
}

/* *mean of a round; each: (rounds), or NULL. */
static int replay_members(const struct fleet_replay *replay, struct members *members,
	double pause_ns, struct fleet_mean *mean, double *each, struct error *err)
{
	double now = 0;
	double begin = 0;
	double own = 0;
	int code = 0;
	for (unsigned round = 0; round < replay->warmup + replay->rounds && !code; round++) {
		double ready;
		if (round == replay->warmup) {
			begin = now;
			own = 0;
		}
		code = members_step(members, now, &ready, &own, err);
		if (each && round >= replay->warmup)
			each[round - replay->warmup] = ready - now;
		now = ready + pause_ns;
	}
	*mean = (struct fleet_mean){(now - begin) / replay->rounds, own / replay->rounds};
	return code;
}

static int replay_together(const struct fleet_replay *replay, size_t fleet, unsigned nodes,
	double pause_ns, struct fleet_mean *mean, struct error *err)
{
	double factors[FLEET_MEMBERS];
	struct members members;
	draw_factors(&replay->spread, fleet, factors, nodes);
	int code = members_open(replay, fleet, 0, factors, nodes, &members, err);
	if (!code)
		code = replay_members(replay, &members, pause_ns, mean, NULL, err);
	members_close(&members);
	return code;
}

/* With the draws that the members have together. */
static int replay_alone(
	struct fleet_replay *replay, size_t fleet, struct fleet_mean *mean, struct error *err)
{
	static const double as_modelled = 1;
	int code = 0;
	for (unsigned i = 0; i < replay->members && !code; i++) {
		struct members one;
		struct fleet_mean of = {0};
		double *const each = replay->alone + (fleet * replay->members + i) * replay->rounds;
		code = members_open(replay, fleet, i, &as_modelled, 1, &one, err);
		if (!code)
			code = replay_members(replay, &one, 0, &of, each, err);
		members_close(&one);
		mean->round += of.round / replay->members;
		mean->own += of.own / replay->members;
	}
	return code;
}

/* --- many nodes: a recurrence over their rounds ----------------------------------------------- */

/* Rounds of a node with some of the costs taken away, and each batch of so many samples. */
static int keep_rounds(const struct fleet_replay *replay, bool step, uint32_t batch, size_t count,
	double **out, struct error *err)
{
	struct replay_model part = replay->model->replay;
	struct replay_rounds *rounds = NULL;
	struct replay_options options = model_resample(replay->model, 1, FLEET_SEED);
	double *const kept = calloc(count, sizeof *kept);
	double now = 0;
	double total = 0;
	*out = kept;
	if (!kept)
		return error_set(err, -ENOMEM, "out of memory");
	part.shape.batch_size = batch;
	options.batches = count * devices_of_node(replay->model);
	/* In sequence, where that has each item once. */
	if (step || options.batches * batch <= replay->model->recorded)
		options.block = 0;
	for (int cost = 0; cost < COSTS; cost++) {
		const bool of_step =
			cost == COST_STEP_HOST || cost == COST_STEP_DEVICE || cost == COST_SYNC;
		if (of_step != step || cost >= COST_CHECKPOINT)
			part.scale[cost] = 0;
		total += model_mean_cost(&part, (enum replay_cost)cost);
	}
	if (total <= 0) /* nothing takes time */
		return 0;
	int code = replay_rounds_open(&rounds, &part, &options, err);
	for (unsigned i = 0; i < replay->warmup + count && !code; i++) {
		double ready;
		code = replay_rounds_next(rounds, now, &ready, err);
		if (i >= replay->warmup)
			kept[i - replay->warmup] = ready - now;
		now = ready;
	}
	replay_rounds_close(rounds);
	return code;
}

/* Rounds that the nodes of a recurrence draw blocks from.  All begin a block in the same round, at distinct places, so that a
 * round's slowest node is the largest of N different rounds.  Places drawn with putting back hit some rounds twice and miss the
 * rare slow ones too often: N nodes would wait too little (fleet_maximum). */
struct draws {
	const double *ns; /* of all kept rounds, of which first .. first + count - 1 are drawn */
	size_t first, count;
	uint32_t *order; /* (count), the first of which are where the nodes begin; owned */
};

static int draws_open(struct draws *w, const double *ns, size_t first, size_t count)
{
	*w = (struct draws){.ns = ns, .first = first, .count = count};
	w->order = malloc(count * sizeof *w->order);
	for (size_t i = 0; w->order && i < count; i++)
		w->order[i] = (uint32_t)i;
	return w->order ? 0 : -ENOMEM;
}

/* A new block for each node: as much of a shuffle (Fisher and Yates) as is needed. */
static void draws_begin(struct draws *w, unsigned nodes, struct rng *rng)
{
	for (size_t i = 0; i < nodes && i + 1 < w->count; i++) {
		const size_t other = i + rng_below(rng, w->count - i);
		const uint32_t kept = w->order[i];
		w->order[i] = w->order[other];
		w->order[other] = kept;
	}
}

static size_t wrap_around(size_t at, size_t count)
{
	// NOLINTNEXTLINE(clang-analyzer-core.DivideZero): of each there is a round at least
	return at < count ? at : at % count;
}

/* round: since its block began.  More nodes than rounds share places. */
static double draws_at(const struct draws *w, unsigned node, unsigned round)
{
	const size_t begin = w->order[wrap_around(node, w->count)];
	return w->ns[w->first + wrap_around(begin + round, w->count)];
}

enum { BLOCK_ROUNDS = 16 };

/* Rounds that a node's input can be ahead of the one that its step ended last. */
static size_t rounds_ahead(const struct model *model)
{
	const struct pipeline_shape *const shape = &model->replay.shape;
	const size_t rounds = shape->slots / devices_of_node(model) + shape->staging_slots;
	return rounds > 0 ? rounds : 1;
}

/* A fleet of the recurrence. */
struct recurrence {
	struct draws input, step;
	struct rng rng;
	double *factors; /* (nodes); owned */
	double *made;    /* (nodes): when their inputs had made the batches of this round; owned */
	double *ends;    /* of the rounds that an input can be ahead of; owned */
	unsigned nodes;
};

static void recurrence_close(struct recurrence *r)
{
	free(r->input.order);
	free(r->step.order);
	free(r->factors);
	free(r->made);
	free(r->ends);
}

static int recurrence_open(struct recurrence *r, const struct fleet_replay *replay, size_t fleet,
	enum fleet_job job, unsigned nodes)
{
	const size_t recorded = (size_t)fmin(replay->recorded_rounds, (double)replay->input_count);
	const size_t part = recorded / PARTS > 0 ? recorded / PARTS : 1;
	const size_t first = job == JOB_PART ? fleet % PARTS * part % recorded : 0;
	*r = (struct recurrence){.nodes = nodes};
	rng_init(&r->rng, seed_of(fleet), 0);
	r->factors = calloc(nodes, sizeof *r->factors);
	r->made = calloc(nodes, sizeof *r->made);
	r->ends = calloc(rounds_ahead(replay->model), sizeof *r->ends);
	const bool slower = job == JOB_SLOWER;
	const bool parts = job == JOB_PART;
	if (!r->factors || !r->made || !r->ends ||
		draws_open(&r->input, slower ? replay->slower_input : replay->input, first,
			parts ? part : replay->input_count) ||
		draws_open(&r->step, slower ? replay->slower_step : replay->step, first,
			parts ? part : replay->step_count))
		return -ENOMEM;
	for (unsigned i = 0; i < nodes; i++)
		r->factors[i] = 1;
	if (nodes > 1 && job == JOB_RECUR)
		draw_factors(&replay->spread, fleet, r->factors, nodes);
	return 0;
}

/* made(r) = max(made(r - 1), end(r - ahead)) + input(r)
 * end(r) = max over nodes(max(made(r), end(r - 1)) + step(r)) + pause */
static struct fleet_mean recur(const struct fleet_replay *replay, struct recurrence *fleet,
	unsigned rounds, double pause_ns)
{
	const size_t ahead = rounds_ahead(replay->model);
	double begin = 0;
	double end = 0;
	double own = 0;
	const unsigned warmup = replay->warmup + rounds / 4;
	for (unsigned r = 0; r < warmup + rounds; r++) {
		const double room = fleet->ends[r % ahead];
		double latest = end;
		if (r % BLOCK_ROUNDS == 0) {
			draws_begin(&fleet->input, fleet->nodes, &fleet->rng);
			draws_begin(&fleet->step, fleet->nodes, &fleet->rng);
		}
		if (r == warmup) {
			begin = end;
			own = 0;
		}
		for (unsigned i = 0; i < fleet->nodes; i++) {
			const double factor = fleet->factors[i];
			fleet->made[i] = fmax(fleet->made[i], room) +
					 factor * draws_at(&fleet->input, i, r % BLOCK_ROUNDS);
			const double ready = fmax(fleet->made[i], end) +
					     factor * draws_at(&fleet->step, i, r % BLOCK_ROUNDS);
			latest = fmax(latest, ready);
			own += (ready - end) / fleet->nodes;
		}
		end = latest + pause_ns + replay->stall_ns;
		fleet->ends[r % ahead] = end;
	}
	return (struct fleet_mean){(end - begin) / rounds, own / rounds};
}

static int recur_fleet(const struct fleet_replay *replay, size_t fleet, enum fleet_job job,
	unsigned nodes, double pause_ns, struct fleet_mean *mean, struct error *err)
{
	const unsigned times = job == JOB_ALIKE || job == JOB_SLOWER ? DOUBT_TIMES : 1;
	const unsigned most = NODE_ROUNDS / FLEETS / nodes;
	const unsigned rounds = (most < RECUR_MOST ? most : RECUR_MOST) / times;
	struct recurrence r;
	const int code = recurrence_open(&r, replay, fleet, job, nodes);
	if (!code)
		*mean = recur(replay, &r, rounds > RECUR_LEAST ? rounds : RECUR_LEAST, pause_ns);
	recurrence_close(&r);
	return code ? error_set(err, code, "out of memory") : 0;
}

/* --- rounds of fleets ------------------------------------------------------------------------- */

static int do_fleet(struct fleet_replay *replay, enum fleet_job job, size_t fleet, unsigned nodes,
	double pause_ns, struct fleet_mean *mean, struct error *err)
{
	if (job == JOB_ALONE)
		return replay_alone(replay, fleet, mean, err);
	if (job == JOB_TOGETHER)
		return replay_together(replay, fleet, nodes, pause_ns, mean, err);
	return recur_fleet(replay, fleet, job, nodes, pause_ns, mean, err);
}

/* Each of FLEETS fleets is computed by itself, so the cores share them. */
static int do_fleets(struct fleet_replay *replay, enum fleet_job job, unsigned nodes,
	double pause_ns, struct fleet_mean means[FLEETS], struct error *err)
{
	int failed = 0;
#pragma omp parallel for schedule(dynamic) shared(failed)
	for (size_t f = 0; f < FLEETS; f++) {
		struct error why = {0};
		means[f] = (struct fleet_mean){0};
		const int code = do_fleet(replay, job, f, nodes, pause_ns, &means[f], &why);
#pragma omp critical(fleet_failed)
		if (code && !failed)
			failed = error_set(err, code, "%s", why.text);
	}
	return failed;
}

/* A node by itself. */
static int do_alone(
	struct fleet_replay *replay, enum fleet_job job, double alone_ns[FLEETS], struct error *err)
{
	struct fleet_mean means[FLEETS];
	const int code = do_fleets(replay, job, 1, 0, means, err);
	for (size_t f = 0; f < FLEETS && !code; f++)
		alone_ns[f] = means[f].round;
	return code;
}

/* ln of rounds over those of a node by itself, of each fleet. */
static void logs_of(
	const struct fleet_mean means[FLEETS], const double alone[FLEETS], double logs[FLEETS])
{
	for (size_t f = 0; f < FLEETS; f++)
		logs[f] = log(means[f].round / alone[f]);
}

/* As many members and rounds as these samples allow, or some times as many: else none are replayed together. */
static void choose_lengths(struct fleet_replay *replay, uint64_t samples, size_t *input_rounds)
{
	const unsigned devices = devices_of_node(replay->model);
	const uint64_t round = (uint64_t)replay->model->replay.shape.batch_size * devices;
	const struct replay_options options = model_options(replay->model, 1);
	replay->warmup = (unsigned)((options.warmup_batches + devices - 1) / devices);
	const uint64_t least = FLEETS * (replay->warmup + ROUNDS_LEAST) * round;
	replay->members = FLEET_MEMBERS;
	while (replay->members > 2 && replay->members * least > samples)
		replay->members /= 2;
	if (replay->members * least > SAMPLES_TIMES * samples)
		replay->members = 1;
	const uint64_t fitting = samples / (FLEETS * replay->members * round);
	const uint64_t rounds = fitting > replay->warmup ? fitting - replay->warmup : 0;
	replay->rounds = rounds < ROUNDS_LEAST  ? ROUNDS_LEAST
			 : rounds < ROUNDS_MOST ? (unsigned)rounds
						: ROUNDS_MOST;
	const uint64_t kept = samples / round;
	*input_rounds = kept < ROUNDS_LEAST  ? ROUNDS_LEAST
			: kept < ROUNDS_KEPT ? (size_t)kept
					     : ROUNDS_KEPT;
}

/* ns that a round stands still for on average. */
static double mean_stall(const struct model *model)
{
	const struct replay_model *const replay = &model->replay;
	const struct pipeline_shape *const shape = &replay->shape;
	double ns = 0;
	if (shape->checkpoint_every > 0)
		ns += model_mean_cost(replay,
			      shape->checkpoint_async ? COST_CHECKPOINT_COPY : COST_CHECKPOINT) /
		      shape->checkpoint_every;
	if (shape->evaluate_every > 0)
		ns += (model_mean_cost(replay, COST_EVALUATE_INPUT) +
			      model_mean_cost(replay, COST_EVALUATE_STEP)) /
		      shape->evaluate_every;
	return ns;
}

/* What the recurrence misses of the replays, where both can be had; less what noise may be. */
static int find_correction(struct fleet_replay *replay, struct error *err)
{
	struct fleet_mean means[FLEETS];
	double missed[FLEETS];
	double recurred[FLEETS];
	int code = do_fleets(replay, JOB_TOGETHER, replay->members, 0, means, err);
	if (code)
		return code;
	logs_of(means, replay->alone_ns, missed);
	code = do_fleets(replay, JOB_RECUR, replay->members, 0, means, err);
	if (code)
		return code;
	logs_of(means, replay->alike_ns, recurred);
	for (size_t f = 0; f < FLEETS; f++)
		missed[f] -= recurred[f];
	const double mean = statistics_mean(missed, FLEETS);
	const double noise = pow(statistics_deviation(missed, FLEETS), 2) / FLEETS;
	const double certain = mean * mean > noise ? 1 - noise / (mean * mean) : 0;
	replay->correction = certain * mean;
	replay->correction_doubt = sqrt(noise + pow(UNEXPLAINED * replay->correction, 2));
	return 0;
}

/* Of the slower of input and step, each of which was recorded item by item. */
static double recorded_rounds(const struct fleet_replay *replay)
{
	const struct replay_model *const node = &replay->model->replay;
	const double devices = devices_of_node(replay->model);
	const bool by_input = statistics_mean(replay->input, replay->input_count) >
			      statistics_mean(replay->step, replay->step_count);
	size_t items = 0;
	for (int cost = 0; cost < COSTS; cost++) {
		const bool of_samples = cost <= COST_DECODE_WAIT;
		const bool of_steps = cost == COST_STEP_HOST || cost == COST_STEP_DEVICE;
		if ((by_input ? of_samples : of_steps) && node->series[cost].count > items)
			items = node->series[cost].count;
	}
	return fmax((double)items / devices / (by_input ? node->shape.batch_size : 1), 1);
}

/* P^xi, by what is at places P-fold apart (scale_out.h). */
static double tail_stretch(double last, double before, double first)
{
	const double stretch = (last - before) / (before - first);
	return stretch > 1 ? fmin(stretch, sqrt(PARTS)) : 1;
}

/* As if P times as much had been recorded: the slowest rounds are as slow as the slowest of that would be. */
static int keep_slower(const struct fleet_replay *replay, const double *ns, size_t count,
	double **out, struct error *err)
{
	/* Each recorded round was kept so many times. */
	const size_t times = (size_t)fmax((double)count / replay->recorded_rounds, 1);
	double *const ascending = malloc(count * sizeof *ascending);
	*out = malloc(count * sizeof **out);
	if (ascending && *out) {
		memcpy(ascending, ns, count * sizeof *ns);
		sort_doubles(ascending, count);
		double of[3];
		size_t place = times;
		for (int i = 0; i < 3; i++, place *= PARTS)
			of[i] = ascending[place < count ? count - place : 0];
		const double more = tail_stretch(of[0], of[1], of[2]) * (of[0] - of[1]);
		for (size_t i = 0; i < count; i++)
			(*out)[i] = ns[i] + (ns[i] >= of[0] ? more : 0);
	}
	free(ascending);
	return ascending && *out ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* A node by itself, and nodes together, as the replays have it. */
static int compare_with_replays(struct fleet_replay *replay, struct error *err)
{
	replay->alone_count = (size_t)FLEETS * replay->members * replay->rounds;
	replay->alone = calloc(replay->alone_count, sizeof *replay->alone);
	if (!replay->alone)
		return error_set(err, -ENOMEM, "out of memory");
	const int code = do_alone(replay, JOB_ALONE, replay->alone_ns, err);
	sort_doubles(replay->alone, replay->alone_count);
	return code ? code : find_correction(replay, err);
}

int fleet_replay_open(struct fleet_replay **out, const struct model *model,
	const struct fleet_spread *spread, uint64_t samples, struct error *err)
{
	struct fleet_replay *const replay = calloc(1, sizeof *replay);
	*out = replay;
	if (!replay)
		return error_set(err, -ENOMEM, "out of memory");
	*replay = (struct fleet_replay){.model = model,
		.spread = *spread,
		.step_count = ROUNDS_KEPT,
		.together = 1,
		.stall_ns = mean_stall(model)};
	choose_lengths(replay, samples, &replay->input_count);
	int code = keep_rounds(replay, false, model->replay.shape.batch_size, replay->input_count,
		&replay->input, err);
	/* Steps are the same whatever they are fed with. */
	if (!code)
		code = keep_rounds(replay, true, 1, replay->step_count, &replay->step, err);
	if (!code)
		code = do_alone(replay, JOB_RECUR, replay->alike_ns, err);
	replay->recorded_rounds = recorded_rounds(replay);
	if (!code)
		code = keep_slower(
			replay, replay->input, replay->input_count, &replay->slower_input, err);
	if (!code)
		code = keep_slower(
			replay, replay->step, replay->step_count, &replay->slower_step, err);
	if (!code)
		code = do_alone(replay, JOB_PART, replay->part_ns, err);
	if (!code && !(replay->alike_ns[0] > 0))
		code = error_set(err, -EINVAL, "cannot replay what takes no time at all");
	if (code)
		return code;
	memcpy(replay->alone_ns, replay->alike_ns, sizeof replay->alone_ns);
	return replay->members > 1 ? compare_with_replays(replay, err) : 0;
}

void fleet_replay_close(struct fleet_replay *replay)
{
	if (replay) {
		free(replay->alone);
		free(replay->input);
		free(replay->step);
		free(replay->slower_input);
		free(replay->slower_step);
	}
	free(replay);
}

/* If every node took what it takes by itself, and no queue filled while it waits. */
static double bound_of(const struct fleet_replay *replay, unsigned nodes, double pause_ns)
{
	if (replay->spread.deviation > 0 || replay->spread.factors || replay->alone_count == 0)
		return NAN;
	return (fleet_maximum(replay->alone, replay->alone_count, nodes) + pause_ns) /
	       statistics_mean(replay->alone_ns, FLEETS);
}

/* What equal nodes wait, as a share of a node's round by itself, in each fleet. */
static int find_waits(struct fleet_replay *replay, enum fleet_job job, unsigned nodes,
	double pause_ns, double waits[FLEETS], struct error *err)
{
	const double *const alone = job == JOB_PART ? replay->part_ns : replay->alike_ns;
	struct fleet_mean means[FLEETS];
	const int code = do_fleets(replay, job, nodes, pause_ns, means, err);
	for (size_t f = 0; f < FLEETS; f++)
		waits[f] = fmax((means[f].round - pause_ns) / alone[f] - 1, 0);
	return code;
}

static int find_mean_wait(struct fleet_replay *replay, enum fleet_job job, unsigned nodes,
	double pause_ns, double *mean, struct error *err)
{
	double waits[FLEETS];
	const int code = find_waits(replay, job, nodes, pause_ns, waits, err);
	*mean = statistics_mean(waits, FLEETS);
	return code;
}

/* At 90 %, in logarithms: how many times less or more than predicted equal nodes may wait because of what was recorded. */
struct recording_doubt {
	double waits; /* that it is about, as a share of a round of a node by itself */
	double less, more;
};

/* As in scale_out.h. */
static int find_recording_doubt(struct fleet_replay *replay, unsigned nodes, double pause_ns,
	struct recording_doubt *doubt, struct error *err)
{
	const unsigned few = nodes / PARTS > 2 ? nodes / PARTS : 2;
	const unsigned fewer = few / PARTS;
	double waits[FLEETS];
	double of_all = 0;
	double of_few = 0;
	double of_fewer = 0;
	double of_slower = 0;
	double squares = 0;
	int code = find_mean_wait(replay, JOB_ALIKE, nodes, pause_ns, &of_all, err);
	if (!code)
		code = find_mean_wait(replay, JOB_ALIKE, few, pause_ns, &of_few, err);
	if (!code && fewer > 1) /* one waits for nobody */
		code = find_mean_wait(replay, JOB_ALIKE, fewer, pause_ns, &of_fewer, err);
	if (!code)
		code = find_mean_wait(replay, JOB_SLOWER, nodes, pause_ns, &of_slower, err);
	if (!code)
		code = find_waits(replay, JOB_PART, few, pause_ns, waits, err);
	*doubt = (struct recording_doubt){0};
	if (code || of_all <= WAITS_LEAST)
		return code;
	for (size_t f = 0; f < PARTS; f++)
		squares += (waits[f] - of_few) * (waits[f] - of_few) / PARTS;
	/* Of fewer than 2 P nodes a P-th is no fleet: two are more, whose variance is that many times as large. */
	const double variance = squares * nodes / ((double)few * PARTS);
	const double stretch = fewer > 0 ? tail_stretch(of_all, of_few, of_fewer) : 1;
	doubt->less = student_quantile(0.95, PARTS) * sqrt(variance) * stretch / of_all;
	doubt->more = fmax(doubt->less, log(of_slower / of_all));
	doubt->waits = of_all;
	return 0;
}

/* Half of the 90 % interval of ln(ratio), but for what was recorded; logs: of fleets. */
static double find_doubt(
	const struct fleet_replay *replay, unsigned nodes, const double logs[FLEETS])
{
	const double between =
		student_quantile(0.95, FLEETS - 1) * statistics_deviation(logs, FLEETS);
	/* The modelled node is one of those that differ, too. */
	const double own = replay->spread.factors ? 0 : replay->spread.deviation;
	const double corrected = nodes > replay->members ? replay->correction_doubt : 0;
	return hypot(Z90 * hypot(own, corrected), between);
}

int fleet_replay_at(struct fleet_replay *replay, unsigned nodes, double pause_seconds,
	struct fleet_round *out, struct error *err)
{
	const double pause_ns = pause_seconds * 1e9;
	const bool few = nodes <= replay->members;
	const double *const alone = few ? replay->alone_ns : replay->alike_ns;
	struct fleet_mean means[FLEETS];
	double logs[FLEETS];
	double own = 0;
	struct recording_doubt recorded;
	*out = (struct fleet_round){.ratio = 1, .interval = {1, 1}, .bound = 1, .waiting = 1};
	if (nodes < 2)
		return 0;
	int code = do_fleets(replay, few ? JOB_TOGETHER : JOB_RECUR, nodes, pause_ns, means, err);
	if (code)
		return code;
	logs_of(means, alone, logs);
	for (size_t f = 0; f < FLEETS; f++)
		own += means[f].own / alone[f] / FLEETS;
	code = find_recording_doubt(replay, nodes, pause_ns, &recorded, err);
	/* The nodes' part. */
	const double pause = pause_ns / statistics_mean(replay->alone_ns, FLEETS);
	const double found =
		exp(few ? 0 : replay->correction) * (exp(statistics_mean(logs, FLEETS)) - pause);
	out->bound = bound_of(replay, nodes, pause_ns);
	const double most = isnan(out->bound) ? (double)HUGE_VAL : out->bound - pause;
	out->waiting = fmin(found, most) / own;
	out->ratio = pause + own * pow(out->waiting, replay->together);
	/* The slowest node is no faster than the mean one. */
	const double own_doubt = replay->spread.factors ? 0 : Z90 * replay->spread.deviation;
	const double least = (pause + exp(spread_centre(&replay->spread))) * exp(-own_doubt);
	/* Only what nodes wait because their rounds vary is in doubt by what was recorded, not that some nodes are slower. */
	const double half = find_doubt(replay, nodes, logs);
	const double busy = out->ratio - pause;
	const double waits = fmax(fmin(busy - 1, recorded.waits * busy / (1 + recorded.waits)), 0);
	const double less = log(out->ratio / (out->ratio - waits * (1 - exp(-recorded.less))));
	const double more = log((out->ratio + waits * (exp(recorded.more) - 1)) / out->ratio);
	const double low = out->ratio * exp(-hypot(half, less));
	out->interval = (struct interval){
		fmin(fmax(low, least), out->ratio), out->ratio * exp(hypot(half, more))};
	out->beyond = nodes > replay->recorded_rounds && out->ratio > BEYOND_MATTERS;
	return code;
}

void fleet_replay_set_waiting(struct fleet_replay *replay, double times)
{
	replay->together = times;
}

double fleet_replay_mend(
	struct fleet_replay *replay, const struct fleet_round *predicted, double waiting)
{
	if (predicted->waiting > MEND_FROM && waiting > 0)
		replay->together = fmin(fmax(log(waiting) / log(predicted->waiting), 0), MEND_MOST);
	return replay->together;
}

/* --- what nodes share ------------------------------------------------------------------------- */

/* A network, or a slowest node, that costs less than this is not the bottleneck. */
static const double MATTERS = 1.05;

int fleet_check(const struct fleet *fleet, struct error *err)
{
	const struct {
		const char *name;
		bool good;
	} rules[] = {
		{"the node's throughput",
			fleet->node_samples_per_s > 0 && isfinite(fleet->node_samples_per_s)},
		{"the throughput of its input", fleet->input_samples_per_s > 0},
		{"the step's time", fleet->step_seconds >= 0 && isfinite(fleet->step_seconds)},
		{"the batch", fleet->batch > 0},
		{"the bytes of a sample", fleet->bytes_per_sample >= 0},
		{"the file server's rate", fleet->storage_bytes_per_s > 0},
		{"the bytes of the gradients",
			fleet->gradient_bytes >= 0 && isfinite(fleet->gradient_bytes)},
		{"the network's rate",
			fleet->gradient_bytes <= 0 || fleet->network_bytes_per_s > 0},
		{"the network's latency",
			fleet->gradient_bytes <= 0 || fleet->network_latency_s >= 0},
		{"the buckets of the gradients", fleet->bucket_bytes >= 0},
		{"the overlap", fleet->overlap >= 0 && fleet->overlap <= 1},
	};
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		if (!rules[i].good)
			return error_set(err, -EINVAL, "fleet: %s is unknown or makes no sense",
				rules[i].name);
	return 0;
}

static double buckets_of(const struct fleet *fleet)
{
	return fleet->bucket_bytes > 0 ? ceil(fleet->gradient_bytes / fleet->bucket_bytes) : 1;
}

static void exchange_at(const struct fleet *fleet, struct fleet_point *point)
{
	if (fleet->gradient_bytes <= 0 || point->nodes < 2)
		return;
	const double buckets = buckets_of(fleet);
	const double bytes = fleet->gradient_bytes / buckets;
	const double ring = all_reduce_ring_seconds(
		bytes, point->nodes, fleet->network_bytes_per_s, fleet->network_latency_s);
	const double tree = all_reduce_tree_seconds(
		bytes, point->nodes, fleet->network_bytes_per_s, fleet->network_latency_s);
	const bool takes_ring = fleet->exchange == FLEET_EXCHANGE_RING ||
				(fleet->exchange == FLEET_EXCHANGE_CHEAPER && ring <= tree);
	const double bucket = takes_ring ? ring : tree;
	const double backward = fleet->overlap * fleet->step_seconds;
	point->exchange = takes_ring ? FLEET_EXCHANGE_RING : FLEET_EXCHANGE_TREE;
	point->exchange_seconds = buckets * bucket;
	point->exposed_seconds =
		fmax(point->exchange_seconds - backward * (1 - 1 / buckets), bucket);
}

/* The inverse of what exchange_at does. */
double fleet_bandwidth_of(const struct fleet *fleet, unsigned nodes, double exposed_seconds)
{
	const double buckets = buckets_of(fleet);
	const double backward = fleet->overlap * fleet->step_seconds;
	const double all =
		fmin(exposed_seconds + backward * (1 - 1 / buckets), exposed_seconds * buckets);
	const double latency =
		buckets * all_reduce_ring_seconds(0, nodes, HUGE_VAL, fleet->network_latency_s);
	if (!(all > latency) || !(fleet->gradient_bytes > 0))
		return HUGE_VAL;
	return all_reduce_ring_seconds(fleet->gradient_bytes, nodes, 1, 0) / (all - latency);
}

/* Between the numbers of nodes that are known, by log(nodes). */
static double wait_factor(const struct fleet *fleet, unsigned nodes)
{
	const struct fleet_wait *const waits = fleet->waits;
	size_t at = 0;
	while (at < fleet->wait_count && waits[at].nodes < nodes)
		at++;
	if (fleet->wait_count == 0)
		return 1;
	if (at == fleet->wait_count || at == 0 || waits[at].nodes == nodes)
		return waits[at < fleet->wait_count ? at : at - 1].factor;
	const double low = log(waits[at - 1].nodes);
	const double share = (log(nodes) - low) / (log(waits[at].nodes) - low);
	return waits[at - 1].factor + share * (waits[at].factor - waits[at - 1].factor);
}

/* Seconds of a round of nodes, by what takes them. */
struct fleet_times {
	double input, step, exposed, storage, wait;
};

/* Without the exchange, or without waiting. */
static double round_seconds(const struct fleet_times *t, bool exchange, bool wait)
{
	return fmax(fmax(t->input, t->step + (exchange ? t->exposed : 0)) * (wait ? t->wait : 1),
		t->storage);
}

static enum fleet_limit fleet_limit_of(const struct fleet_times *t)
{
	const double longest = round_seconds(t, true, true);
	const double network = longest / round_seconds(t, false, true);
	const double slowest = longest / round_seconds(t, true, false);
	if (t->storage >= longest && t->storage > 0)
		return FLEET_LIMIT_STORAGE;
	if (fmax(network, slowest) > MATTERS)
		return network > slowest ? FLEET_LIMIT_NETWORK : FLEET_LIMIT_SLOWEST;
	return t->input >= t->step ? FLEET_LIMIT_INPUT : FLEET_LIMIT_STEP;
}

struct fleet_point fleet_at(const struct fleet *fleet, unsigned nodes)
{
	struct fleet_point point = {.nodes = nodes, .exchange = fleet->exchange};
	exchange_at(fleet, &point);
	const double ideal_input = fleet->batch / fleet->input_samples_per_s;
	/* The share of the ideal rate of its slower half that one node reaches: 1 with endless
	 * queues. */
	const double ideal = fmax(ideal_input, fleet->step_seconds);
	const double factor = ideal > 0 ? fleet->batch / ideal / fleet->node_samples_per_s : 1;
	const struct fleet_times times = {
		/* A step of no time and an endless input leave only the node's own figure. */
		.input = ideal_input <= 0 && fleet->step_seconds <= 0
				 ? fleet->batch / fleet->node_samples_per_s
				 : ideal_input * factor,
		.step = fleet->step_seconds * factor,
		.exposed = point.exposed_seconds * factor,
		.storage =
			nodes * fleet->batch * fleet->bytes_per_sample / fleet->storage_bytes_per_s,
		.wait = wait_factor(fleet, nodes),
	};
	const double seconds = round_seconds(&times, true, true);
	point.limit = fleet_limit_of(&times);
	point.samples_per_s = nodes * fleet->batch / seconds;
	point.efficiency = point.samples_per_s / (nodes * fleet->node_samples_per_s);
	point.waiting_share = fmax(1 - round_seconds(&times, true, false) / seconds, 0);
	point.storage_share = times.storage / seconds;
	return point;
}

int fleet_wait_for_slowest(struct fleet *fleet, struct fleet_replay *replay, const unsigned *nodes,
	size_t count, struct fleet_round *rounds, struct error *err)
{
	struct fleet alike = *fleet;
	int code = 0;
	/* As the replays, which know no file server. */
	alike.storage_bytes_per_s = HUGE_VAL;
	alike.wait_count = 0;
	fleet->waits[0] = (struct fleet_wait){.nodes = 1, .factor = 1};
	fleet->wait_count = 1;
	for (size_t i = 0; i < count && !code; i++) {
		const struct fleet_point point = fleet_at(&alike, nodes[i]);
		code = fleet_replay_at(replay, nodes[i], point.exposed_seconds, &rounds[i], err);
		if (!code && nodes[i] > 1)
			fleet->waits[fleet->wait_count++] = (struct fleet_wait){
				.nodes = nodes[i], .factor = rounds[i].ratio * point.efficiency};
	}
	return code;
}

struct interval fleet_interval(const struct fleet *fleet, unsigned nodes,
	const struct interval *node, const struct fleet_round *round)
{
	struct fleet free = *fleet;
	free.storage_bytes_per_s = HUGE_VAL;
	const double throughput = fleet_at(&free, nodes).samples_per_s;
	const double most =
		fleet->storage_bytes_per_s / fleet->bytes_per_sample; /* HUGE_VAL: any */
	const double slower = log(round->interval.high / round->ratio);
	const double faster = log(round->ratio / round->interval.low);
	const double low = throughput * exp(-hypot(log(node->low), slower));
	const double high = throughput * exp(hypot(log(node->high), faster));
	return (struct interval){fmin(low, most), fmin(high, most)};
}

unsigned fleet_first(const struct fleet *fleet, enum fleet_limit limit)
{
	for (unsigned nodes = 1; nodes <= FLEET_NODES_MAX; nodes++)
		if (fleet_at(fleet, nodes).limit == limit)
			return nodes;
	return 0;
}

const char *fleet_exchange_name(enum fleet_exchange exchange)
{
	return exchange == FLEET_EXCHANGE_TREE ? "tree" : "ring";
}
