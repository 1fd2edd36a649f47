# What-if on a result of two ranks: what was measured of them stands beside what is predicted, and mends it.
. "$CLI/lib.sh"
need_ranks
write_config
# Large batches: on a busy machine ranks that meet often measure little.
predictable job step.time=12ms ranks 2 "$MLBENCH" run tiny.ini $ONE --set batch.size=24 --set step.time=6ms --set sync.gradients=64k --set step.jitter=0.2
expect 0 "$MLBENCH" what-if job --fleet 64 --json --force
[ "$(json '[(p["nodes"], p["measured"] is not None) for p in d["fleet"]["points"]]')" = "[(2, True), (64, False)]" ] || fail "the measured ranks have no row"
[ "$(json 'd["fleet"]["measured"]["nodes"], abs(d["fleet"]["points"][0]["throughput"] / d["fleet"]["measured"]["throughput"] - 1) < 1e-6')" = "(2, True)" ] || fail "the model was not mended by what was measured"
[ "$(json '0 < d["fleet"]["measured"]["exposed_seconds"] < d["fleet"]["measured"]["round_seconds"] and d["fleet"]["network_bytes_per_s"] > 0 and d["fleet"]["gradient_bytes"] == 65536')" = True ] || fail "no network by the exchanges that were measured"
# A rank alone is faster than among others: it waits for nobody.
[ "$(json 'd["fleet"]["node_samples_per_s"] >= 0.999 * d["fleet"]["points"][0]["throughput"] / 2 and d["fleet"]["points"][1]["efficiency"] <= d["fleet"]["points"][0]["efficiency"] * 1.02')" = True ] || fail "more ranks wait less"
expect 0 "$MLBENCH" what-if job --fleet 64 --force
prints "measured 2 ranks: "
grep -qE '^ *measured .* samples/s a rank \(' out || fail "it does not say that the measured rate is of one rank"
prints "predicted: each is a rank"
reads "before they corrected it"
reads "by the exchanges of 2 ranks; --network-bandwidth overrides it"
# Where others take the cores, a rank may have waited for all of its time.
tr -s ' \n' ' ' <out | grep -qE 'as the 2 measured ranks do|equally fast on average' || fail "how ranks differ is not told"
# Its case is a job of as many ranks, which one process cannot reproduce.
expect 0 "$MLBENCH" fit job --out job.case
grep -qF 'mpirun -n 2 mlbench run FILE' job.case && ! grep -qF 'mlbench reproduce FILE' job.case || fail "the case names commands that cannot run it"
prints "mpirun -n 2 mlbench run job.case measures the twin"
! grep -qF 'mlbench reproduce' out || fail "it says to reproduce what cannot be"
grep -qE '^job\.ranks = 2, ' job.case && ! grep -q '^step\.devices' job.case || fail "two ranks are taken for something else"
expect 0 "$MLBENCH" show job --json
rate=$(json 'd["points"][0]["ranks"]["samples_per_s"]')
fitted=$(sed -nE 's/^job\.throughput = ([0-9.]+) .*/\1/p' job.case)
python3 -c "import sys; sys.exit(not abs($fitted / $rate - 1) < 0.25)" || fail "$fitted samples/s for $rate of both ranks"
expect_measured ranks 2 "$MLBENCH" run job.case --set measure.duration=100ms --out twin
# A change was not measured: only how ranks differ and what they exchange stays.
expect 0 "$MLBENCH" what-if job --set step.time=12ms --fleet 2,64 --network-bandwidth 1GB/s --json --force
[ "$(json 'd["fleet"]["measured"], d["fleet"]["network_bytes_per_s"]')" = "(None, 1000000000.0)" ] || fail "measured with a change that was not"
# What is not there of a rank is not made up.
cp -r job torn && rm -r torn/ranks/0001
expect 0 "$MLBENCH" what-if torn --fleet 2 --json --force
[ "$(json 'd["fleet"]["measured"], d["fleet"]["spread"]')" = "(None, 0.0)" ] || fail "half of the ranks stand for all"
grep -qF "not all ranks' measurements are there" out || fail "missing ranks are not told"
