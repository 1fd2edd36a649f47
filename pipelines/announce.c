/* What was planted, in words, for the notes of every result. */
#include "pipelines/injection.h"

#include "harness/base/units.h"

static void announce_reading(const struct config *config, struct measurement *m)
{
	char text[UNITS_BYTES];
	const int64_t bandwidth = config_integer(config, KEY_INJECT_READ_BANDWIDTH);
	const int64_t latency = config_integer(config, KEY_INJECT_READ_LATENCY);
	const double cached = config_real(config, KEY_INJECT_READ_CACHE);
	const double factor = config_real(config, KEY_INJECT_READ_FACTOR);
	if (bandwidth > 0)
		measurement_note(m, "injected: reads capped at %s (inject.read_bandwidth)",
			units_format_rate((double)bandwidth, text));
	if (latency > 0)
		measurement_note(m, "injected: %s more for each file read (inject.read_latency)",
			units_format_duration((double)latency, text));
	if (cached > 0)
		measurement_note(m,
			"injected: a cache for %.3g %% of the data in front of that storage (inject.read_cache)",
			cached * 100);
	if (factor > 1)
		measurement_note(
			m, "injected: storage is %.3g times as slow (inject.read_factor)", factor);
}

static void announce_decoding(const struct config *config, struct measurement *m)
{
	char text[UNITS_BYTES];
	const double decode_factor = config_real(config, KEY_INJECT_DECODE_FACTOR);
	const double slow_worker = config_real(config, KEY_INJECT_SLOW_WORKER);
	const double lock_share = config_real(config, KEY_INJECT_LOCK_SHARE);
	const double slow_share = config_real(config, KEY_INJECT_SLOW_SHARE);
	const int64_t wait = config_integer(config, KEY_INJECT_DECODE_WAIT);
	if (decode_factor > 1)
		measurement_note(m,
			"injected: decoding takes %.3g times as long (inject.decode_factor)",
			decode_factor);
	if (wait > 0)
		measurement_note(m,
			"injected: each sample waits %s in the decode stage (inject.decode_wait)",
			units_format_duration((double)wait, text));
	if (slow_worker > 1)
		measurement_note(m,
			"injected: decode worker 0 takes %.3g times as long (inject.slow_worker)",
			slow_worker);
	if (lock_share > 0)
		measurement_note(m,
			"injected: %.3g %% of samples are decoded under one lock (inject.lock_share)",
			lock_share * 100);
	if (slow_share > 0)
		measurement_note(m,
			"injected: %.3g %% of samples take %.3g times as long (inject.slow_share)",
			slow_share * 100, config_real(config, KEY_INJECT_SLOW_FACTOR));
}

static void announce_upload_and_step(const struct config *config, struct measurement *m)
{
	char text[UNITS_BYTES];
	const double upload_factor = config_real(config, KEY_INJECT_UPLOAD_FACTOR);
	const int64_t bandwidth = config_integer(config, KEY_INJECT_UPLOAD_BANDWIDTH);
	const double step_factor = config_real(config, KEY_INJECT_STEP_FACTOR);
	const int64_t launch = config_integer(config, KEY_INJECT_STEP_LAUNCH);
	if (bandwidth > 0)
		measurement_note(m,
			"injected: batches are copied at %s at most (inject.upload_bandwidth)",
			units_format_rate((double)bandwidth, text));
	if (upload_factor > 1)
		measurement_note(m,
			"injected: the copy of a batch takes %.3g times as long (inject.upload_factor)",
			upload_factor);
	if (step_factor > 1)
		measurement_note(m,
			"injected: a step takes its device %.3g times as long (inject.step_factor)",
			step_factor);
	if (config_real(config, KEY_INJECT_SLOW_DEVICE) > 1)
		measurement_note(m,
			"injected: device 0 takes %.3g times as long to compute a step (inject.slow_device)",
			config_real(config, KEY_INJECT_SLOW_DEVICE));
	if (config_real(config, KEY_INJECT_SYNC_FACTOR) > 1)
		measurement_note(m,
			"injected: the exchange of gradients takes %.3g times as long (inject.sync_factor)",
			config_real(config, KEY_INJECT_SYNC_FACTOR));
	if (launch > 0)
		measurement_note(m,
			"injected: %s of CPU time before the device begins a step (inject.step_launch)",
			units_format_duration((double)launch, text));
}

static void announce_machine(const struct config *config, struct measurement *m)
{
	char text[UNITS_BYTES];
	const int64_t leak_per_s = config_integer(config, KEY_INJECT_LEAK);
	const int64_t burning = config_integer(config, KEY_INJECT_CPU_HOG);
	const int64_t streaming = config_integer(config, KEY_INJECT_MEMORY_HOG);
	if (leak_per_s > 0)
		measurement_note(m, "injected: decoding leaks %s (inject.leak)",
			units_format_rate((double)leak_per_s, text));
	if (burning > 0)
		measurement_note(m,
			"injected: %lld busy processes outside the job (inject.cpu_hog)",
			(long long)burning);
	if (streaming > 0)
		measurement_note(m,
			"injected: %lld processes outside the job stream through memory (inject.memory_hog)",
			(long long)streaming);
}

static void announce_span(const struct config *config, struct measurement *m)
{
	const double begin = config_real(config, KEY_INJECT_BEGIN);
	const double end = config_real(config, KEY_INJECT_END);
	if (begin > 0)
		measurement_note(m,
			"injected: slow-downs begin after %.3g %% of the planned time (inject.begin)",
			begin * 100);
	if (end < 1)
		measurement_note(m,
			"injected: slow-downs end after %.3g %% of the planned time (inject.end)",
			end * 100);
}

void injection_announce(const struct config *config, struct measurement *m)
{
	announce_reading(config, m);
	announce_decoding(config, m);
	announce_upload_and_step(config, m);
	announce_machine(config, m);
	announce_span(config, m);
}
