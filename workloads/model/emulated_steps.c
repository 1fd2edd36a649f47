/* Published step times, and what follows from them and from step.time. */
#include "workloads/model/emulated_steps.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/config/shape.h"
#include "workloads/model/model.h"

#include <math.h>
#include <string.h>

enum { PARAMETER_BYTES = 4 };

/* Seconds per batch on one accelerator, computation_time of the MLPerf Storage
 * benchmark's workload files (mlcommons/storage, configs/dlio/workload). */
const struct emulated_step emulated_steps[] = {
	{"v100", "unet3d", 4, 1.3604},
	{"a100", "unet3d", 7, 0.636},
	{"h100", "unet3d", 7, 0.323},
	{"b200", "unet3d", 7, 0.162},
	{"v100", "resnet50", 64, 0.195},
	{"a100", "resnet50", 400, 0.435},
	{"h100", "resnet50", 400, 0.224},
	{"v100", "cosmoflow", 1, 0.00936},
	{"a100", "cosmoflow", 1, 0.00551},
	{"h100", "cosmoflow", 1, 0.00350},
	{"b200", "retinanet", 24, 0.04755},
	{"mi355", "retinanet", 32, 0.0634},
	{"b200", "flux", 48, 1.35},
	{"mi355", "flux", 72, 2.025},
	{"b200", "dlrm", 16384, 0.000375},
	{"mi355", "dlrm", 16384, 0.0005625},
	{"v100", "bert", 48, 0.968},
};

const size_t emulated_step_count = COUNT(emulated_steps);

const struct emulated_step *emulated_step_find(const char *device, const char *model)
{
	for (size_t i = 0; i < emulated_step_count; i++)
		if ((!device || strcmp(emulated_steps[i].device, device) == 0) &&
			(!model || strcmp(emulated_steps[i].model, model) == 0))
			return &emulated_steps[i];
	return NULL;
}

double emulated_step_ns(const struct config *config, uint32_t batch_size)
{
	const double own = config_step_time(config, batch_size);
	if (own > 0)
		return own;
	const struct emulated_step *step = emulated_step_find(
		config_text(config, KEY_STEP_DEVICE), config_text(config, KEY_STEP_MODEL));
	return step ? step->seconds * (double)NS_PER_S / step->batch * batch_size : (double)NAN;
}

double model_gradient_bytes(const struct config *config)
{
	const struct model *model = model_find(config_text(config, KEY_STEP_MODEL));
	const double given = config_real(config, KEY_SYNC_GRADIENTS);
	if (given > 0)
		return given;
	return model ? (double)model_parameters(model) * PARAMETER_BYTES : 0;
}

double emulated_exchange_ns(const struct config *config)
{
	const double bytes_per_s = config_real(config, KEY_SYNC_BANDWIDTH);
	const double latency_s = config_real(config, KEY_SYNC_LATENCY) / (double)NS_PER_S;
	return (double)NS_PER_S * all_reduce_ring_seconds(model_gradient_bytes(config),
					  (unsigned)config_integer(config, KEY_STEP_DEVICES),
					  bytes_per_s > 0 ? bytes_per_s : HUGE_VAL, latency_s);
}
