/* What `mlbench accept` leaves in results/PLAN/UTC/: measured.jsonl, the truth, to which each check is appended as it ends,
 * and accept.json, which is computed from it, a plan and perhaps a baseline, again at any time (the same bytes).
 *
 * measured.jsonl: a header line, then one line per check:
 *
 *	{"schema": "mlbench.measured/1", "program": "1.4.0", "node": {...}, "fingerprint": {...}, "tier": "quick",
 *	 "started": "2026-11-26T03:10:00Z", "plan": {"name", "file", "hash", "text"}, "environment": {GROUP: {NAME: VALUE}},
 *	 "environment_units": {"GROUP.NAME": "bytes"},
 *	 "left_out": 7,                                  checks that --check took away; left out where none
 *	 "shortened": "1s",                              of burns, by --for; likewise
 *	 "test": "..."}                                  what tests of mlbench planted, in words; likewise
 *	{"check": "slow core", "kind": "ceiling", "state": "done", "why": null, "activity": "decoding on core 3",
 *	 "started_s": 1.2, "seconds": 4.1, "rounds": 1,
 *	 "values":  [{"figure": "decode.core", "place": "core 0", "values": [412.1, 409.9], "peak": null, "source": null}],
 *	 "facts":   [{"figure": "cpu.model", "place": "", "value": "..." or 64}],
 *	 "missing": [{"figure": "memory.speed", "place": "", "why": "no DMI table: ...", "lack": true}],
 *	 "conditions": [{"figure": "decode.core", "place": "core 3", "is": "busy", "text": "other work took 89 % of its time"}],
 *	 "events":  [{"figure": "burn.throttled", "place": "core 3", "at_s": 12.0 or null, "text": "..."}],
 *	 "series":  [{"series": "decode rate", "place": "", "unit": "samples/s", "points": [[0.0, 410.0]]}],
 *	 "notes":   ["..."]}
 *
 * conditions, under which it was measured (figure "": all of the check): busy, other work took cores; limited, a control
 * group's limit was met.  What other work may have caused is not judged.
 * state: done, failed (why: what it could not do), died (a signal or an exit status), timed out, interrupted, skipped.
 *
 * accept.json, schema mlbench.accept/1: the header's members and
 *
 *	{"left_out": 7, "shortened": "1s", "test": "...", of the header, where they are there
 *	 "caveats": ["Only 2 of 9 checks of the plan were asked for (--check)"],   what a reader has to know beside the verdict
 *	 "judged_by": {"plan": {...}, "baseline": {"file", "nodes", "repetitions", "fingerprint", "made"} or null},
 *	 "verdict": "FAIL", "exit_status": 1, "complete": true, "sentence": "FAIL: 1 of 9 checks failed: ...",
 *	 "action": "isolate", "seconds": 48.2,
 *	 "counts": {"PASS": 7, "WARN": 1, "FAIL": 1, "SKIP": 0, "ERROR": 0},
 *	 "errors": {"false_fail": 0.01, "false_pass": 0.01}     at a figure exactly at its limit, by the plan
 *	 "checks": [{"check", "kind", "verdict", "sentence", "seconds", "findings": [
 *	    {"figure", "place", "level": "fail" or "warn", "verdict", "asked": ">= 200 samples/s", "unit": "samples/s",
 *	     "sense": "more", "measured": 123.4 or text, "low", "high", "limit_low", "limit_high", "repetitions": 7,
 *	     "by": -0.38, "sentence", "action", "remedy", "runbook": "mlbench help decode.core", "repeat": "mlbench accept ..."}]}],
 *	 "measured": [the lines of the checks]}
 *
 * Every criterion at every place has a finding, those that hold too (verdict PASS). */
#ifndef MLBENCH_ACCEPT_RESULT_H
#define MLBENCH_ACCEPT_RESULT_H

#include "harness/accept/plan.h"
#include "harness/base/error.h"

#include <jansson.h>
#include <stdbool.h>

#define ACCEPT_SCHEMA "mlbench.accept/1"
#define MEASURED_SCHEMA "mlbench.measured/1"
#define CONDITION_BUSY "busy"
#define CONDITION_LIMITED "limited"
#define BASELINE_SCHEMA "mlbench.baseline/1"

enum accept_verdict {
	VERDICT_PASS,
	VERDICT_SKIP,
	VERDICT_WARN,
	VERDICT_ERROR,
	VERDICT_FAIL
};                                                            /* the worst is last */
const char *accept_verdict_name(enum accept_verdict verdict); /* "PASS" */
/* Of "PASS" ...; VERDICT_ERROR of anything else. */
enum accept_verdict accept_verdict_of(const char *name);

/* The exit status of `mlbench accept` for it. */
int accept_verdict_status(enum accept_verdict verdict);

/* Reads accept.json or measured.jsonl, or the folder that has them: a document of MEASURED_SCHEMA with "measured".
 * -EINVAL: it is none, of another schema, or its verdict is better than what it says of its checks. */
int result_read(const char *path, json_t **document, struct error *err);

/* Judges: a fresh document of ACCEPT_SCHEMA; NULL with err without memory.  measured: as result_read gives it.  baseline:
 * NULL or a document of BASELINE_SCHEMA, whose fingerprint has been compared.  A function of its arguments alone. */
json_t *result_judge(const json_t *measured, const struct accept_plan *plan, enum accept_tier tier,
	const json_t *baseline, struct error *err);

/* What of a check is open still: fills fresh strings "figure @ place" ("figure" of the whole node), which the caller frees;
 * returns how many, 0: everything can be told. */
size_t result_open(const json_t *measured_check_line, const struct accept_check *check,
	const struct accept_plan *plan, enum accept_tier tier, const json_t *baseline, char **open,
	size_t room);

/* -EINVAL: a document of ACCEPT_SCHEMA whose verdict is better than that of a check, of a finding, or than how a check ended, or
 * one with a figure that passed beyond its limit: it was changed. */
int result_consistent(const json_t *document, struct error *err);

/* Whether it shows that a node is fit, if its verdict is good: the whole plan was run to its end, and nothing was planted. */
bool result_is_whole(const json_t *document);

/* {"name", "file", "hash", "text"} of a plan; NULL without memory. */
json_t *result_plan(const struct accept_plan *plan);

#endif
