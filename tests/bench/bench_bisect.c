/* How well delta debugging finds planted differences among harmless ones on virtual nodes (tests/virtual_node.h), and how many
 * runs it takes: 20 plants among 30 harmless differences, single and in pairs, under each kind of noise.
 *
 *	build/release/bench/bench_bisect [REPEATS]
 *
 * Suspicion: none; right, as where the replay knows the stage; wrong, as where it blames a harmless one. */
#include "tests/virtual_node.h"

#include <stdio.h>

enum { PLANTS = 20, HARMLESS = 30, SETTINGS = 3 };

struct tally {
	size_t plants, found, falsely, explained, runs, questions, most;
};

static void bisect_one(
	enum virtual_noise noise, uint64_t plant, uint64_t seed, int setting, struct tally *tally)
{
	static const enum virtual_plant kinds[] = {
		PLANT_SINGLE, PLANT_SINGLE, PLANT_BOTH, PLANT_SUM, PLANT_MASKED};
	const enum virtual_plant kind = kinds[plant % 5];
	const size_t count = HARMLESS + (kind == PLANT_SINGLE ? 1 : 2);
	double suspicion[DELTA_ITEMS_MAX] = {0};
	struct virtual_node node;
	struct delta_result result;
	virtual_open(&node, count, kind, noise, seed * PLANTS + plant);
	if (plant % 5 == 1) /* beside a single one: something that makes up for a part of it */
		node.speed_up = rng_below(&node.rng, count);
	if (setting == 1)
		suspicion[node.culprits[0]] = suspicion[node.culprits[1]] = node.loss;
	if (setting == 2)
		suspicion[rng_below(&node.rng, count)] = node.loss;
	const struct delta_task task = {.count = count,
		.suspicion = suspicion,
		.margin = 0.03,
		.ask = virtual_ask,
		.context = &node};
	delta_debug(&task, &result);
	const struct virtual_score score = virtual_score_of(&node, &result);
	tally->plants++;
	tally->found += score.found;
	tally->falsely += score.blamed_falsely > 0;
	tally->explained += result.status == DELTA_EXPLAINED;
	tally->runs += node.runs;
	tally->questions += result.questions;
	tally->most = node.runs > tally->most ? node.runs : tally->most;
	virtual_close(&node);
}

int main(int argc, char **argv)
{
	static const char *const noises[] = {"normal", "stalls", "real", "drift"};
	static const char *const settings[] = {"none", "right", "wrong"};
	const unsigned long repeats = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	printf("noise   suspicion  plants  found  false  explained  questions  runs  most\n");
	for (int noise = 0; noise < VIRTUAL_NOISES; noise++)
		for (int setting = 0; setting < SETTINGS; setting++) {
			struct tally tally = {0};
			for (unsigned long seed = 0; seed < repeats; seed++)
				for (uint64_t plant = 0; plant < PLANTS; plant++)
					bisect_one((enum virtual_noise)noise, plant, seed, setting,
						&tally);
			printf("%-7s %-9s  %6zu %6zu %6zu %10zu %10.1f %5.0f %5zu\n", noises[noise],
				settings[setting], tally.plants, tally.found, tally.falsely,
				tally.explained, (double)tally.questions / (double)tally.plants,
				(double)tally.runs / (double)tally.plants, tally.most);
		}
	return 0;
}
