/* The models' tables, for model.c's list. */
#ifndef MLBENCH_WORKLOADS_MODEL_MODELS_H
#define MLBENCH_WORKLOADS_MODEL_MODELS_H

#include "workloads/model/model.h"

extern const struct model model_mlp;
extern const struct model model_resnet50;
extern const struct model model_vit_b16;
extern const struct model model_gpt2_small;

enum { MODEL_IMAGE_ELEMENTS = 3 * 224 * 224 };

#define MODEL_GEMM_COUNT(gemms) (sizeof(gemms) / sizeof((gemms)[0]))

#endif
