#include "harness/config/active.h"

struct active_span active_span_of(const struct config *config)
{
	const double begin = config_real(config, KEY_INJECT_BEGIN);
	const double end = config_real(config, KEY_INJECT_END);
	if (config_integer(config, KEY_MEASURE_EPOCHS) > 0 || (begin <= 0 && end >= 1))
		return (struct active_span){0};
	const double planned_ns =
		config_real(config, KEY_MEASURE_WARMUP) + config_real(config, KEY_MEASURE_DURATION);
	return (struct active_span){
		.begin_ns = (uint64_t)(begin * planned_ns),
		.end_ns = end >= 1 ? UINT64_MAX : (uint64_t)(end * planned_ns),
	};
}
