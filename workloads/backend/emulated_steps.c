/* Published step times of emulated devices: seconds per batch on one accelerator, computation_time
 * of the MLPerf Storage benchmark's workload files (mlcommons/storage, configs/dlio/workload). */
#include "workloads/backend/backend.h"

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

const size_t emulated_step_count = sizeof(emulated_steps) / sizeof(emulated_steps[0]);
