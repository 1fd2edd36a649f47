/* Results of `mlbench accept` of nodes that are made up: healthy ones differ from each other by a deviation, and their
 * repetitions by another. */
#ifndef MLBENCH_TESTS_NODES_FIXTURE_H
#define MLBENCH_TESTS_NODES_FIXTURE_H

#include "harness/accept/node_results.h"
#include "harness/base/rng.h"
#include <stdbool.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>

enum { FIXTURE_CORES = 4, FIXTURE_REPEATS = 7 };

struct fixture_node {
	const char *name, *started, *verdict; /* NULL: "2026-11-26T03:10:00Z", "PASS" */
	uint64_t seed;
	double slow;      /* loss of all rates */
	double slow_core; /* of core 2 alone */
	double nodes,
		repeats; /* relative deviations between healthy nodes, and between repetitions */
	double memory;   /* GiB; 0: 512 */
	const char *microcode, *kernel; /* NULL: those of all */
	double slow_read; /* the read stage's capacity, and so the pipeline's throughput */
	bool busy;        /* other work ran beside the check of the cores */
};

static inline json_t *fixture_values(struct rng *rng, const struct fixture_node *node, double level,
	const char *figure, const char *place)
{
	json_t *values = json_array();
	for (int i = 0; i < FIXTURE_REPEATS; i++)
		(void)json_array_append_new(
			values, json_real(level * (1 + node->repeats * rng_normal(rng))));
	return json_pack("{s:s, s:s, s:o, s:n, s:n}", "figure", figure, "place", place, "values",
		values, "peak", "source");
}

static inline json_t *fixture_check(
	const char *name, const char *kind, json_t *values, json_t *notes)
{
	return json_pack("{s:s, s:s, s:s, s:n, s:o, s:[], s:[], s:[], s:[], s:o}", "check", name,
		"kind", kind, "state", "done", "why", "values", values, "facts", "missing",
		"events", "series", "notes", notes ? notes : json_array());
}

static inline json_t *fixture_environment(const struct fixture_node *node)
{
	return json_pack(
		"{s:{s:s, s:s}, s:{s:s, s:s, s:i, s:i}, s:{s:f}, s:{s:s}, s:{s:s, s:s, s:s, s:s}}",
		"node", "name", node->name, "name_from", "--node", "cpu", "model", "A CPU",
		"microcode", node->microcode ? node->microcode : "0x2b", "sockets", 1, "cores",
		FIXTURE_CORES, "memory", "total",
		(node->memory > 0 ? node->memory : 512) * 0.98 * 1073741824.0, "kernel", "release",
		node->kernel ? node->kernel : "6.1.0-18", "data", "file_system", "ext4", "disk",
		"nvme0n1", "rotational", "no", "options", "rw,noatime");
}

/* accept.json as far as fleets and baselines look at it. */
static inline json_t *fixture_document(const struct fixture_node *node)
{
	struct rng rng;
	rng_init(&rng, node->seed, 77);
	const double level = (1 - node->slow) * (1 + node->nodes * rng_normal(&rng));
	const double read = (1 - node->slow_read) * (1 + node->nodes * rng_normal(&rng));
	const double decode = (1 - node->slow) * (1 + node->nodes * rng_normal(&rng));
	const char *verdict = node->verdict ? node->verdict : "PASS";
	json_t *cores = json_array();
	json_t *rates = json_array();
	for (int i = 0; i < FIXTURE_CORES; i++) {
		char place[32];
		(void)snprintf(place, sizeof place, "core %d", i);
		(void)json_array_append_new(cores,
			fixture_values(&rng, node, 410 * level * (i == 2 ? 1 - node->slow_core : 1),
				"decode.core", place));
	}
	(void)json_array_append_new(rates,
		fixture_values(&rng, node, fmin(1500 * read, 1200 * decode), "throughput", ""));
	(void)json_array_append_new(
		rates, fixture_values(&rng, node, 1500 * read, "read.capacity", ""));
	(void)json_array_append_new(
		rates, fixture_values(&rng, node, 1200 * decode, "decode.capacity", ""));
	json_t *notes = json_pack(
		"[s]", 1500 * read < 1200 * decode ? "Bottleneck: read." : "Bottleneck: decode.");
	json_t *findings = json_array();
	if (accept_verdict_of(verdict) != VERDICT_PASS)
		(void)json_array_append_new(findings,
			json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:s, s:s}", "figure",
				"decode.core", "place", "core 1", "verdict", verdict, "asked",
				">= 400 samples/s", "action", "isolate", "by", -0.2, "sentence",
				"decode.core of core 1 is 328 samples/s, 20 % below the limit",
				"level", "fail"));
	json_t *checked = fixture_check("slow core", "ceiling", cores, NULL);
	if (node->busy)
		(void)json_object_set_new(checked, "conditions",
			json_pack("[{s:s, s:s, s:s, s:s}]", "figure", "decode.core", "place",
				"core 3", "is", "busy", "text",
				"other work took 40 % of its time"));
	return json_pack(
		"{s:s, s:s, s:{s:s, s:s}, s:o, s:s, s:s, s:{s:n}, s:s, s:b, s:s, s:s, s:[{s:s, s:s, s:o}], s:[o, o]}",
		"schema", ACCEPT_SCHEMA, "program", "test", "node", "name", node->name, "name_from",
		"--node", "environment", fixture_environment(node), "tier", "quick", "started",
		node->started ? node->started : "2026-11-26T03:10:00Z", "judged_by", "baseline",
		"verdict", verdict, "complete", 1, "sentence", verdict, "action",
		accept_verdict_of(verdict) == VERDICT_PASS ? "none" : "isolate", "checks", "check",
		"slow core", "verdict", verdict, "findings", findings, "measured", checked,
		fixture_check("training", "pipeline", rates, notes));
}

static inline void fixture_add(struct node_results *results, const struct fixture_node *node)
{
	struct error err = {0};
	char path[128];
	json_t *document = fixture_document(node);
	(void)snprintf(path, sizeof path, "results/%.40s/%.30s/accept.json", node->name,
		node->started ? node->started : "now");
	assert_non_null(document);
	if (node_results_add(results, document, path, &err))
		fail_msg("%s", err.text);
	json_decref(document);
}

#endif
