/* GPUs as their driver describes them (NVML): limits, links and modes, by device.  What they do at this moment
 * is the doctor's, and the sampler's over a run. */
#include "harness/base/clock.h"
#include "harness/measure/environment_parts.h"
#include "harness/measure/nvml.h"

#include <stdio.h>
#include <stdlib.h>

enum { FACT_NAME_BYTES = 48 };

static const struct gpu_fact {
	enum nvml_quantity quantity;
	const char *name;
} gpu_facts[] = {
	{NVML_MEMORY_TOTAL, "memory"},
	{NVML_SM_CLOCK_MAX, "sm_clock_max"},
	{NVML_MEMORY_CLOCK_MAX, "memory_clock_max"},
	{NVML_SM_CLOCK, "sm_clock_now"},
	{NVML_TEMPERATURE, "temperature_now"},
	{NVML_THROTTLES, "throttles_now"},
	{NVML_POWER_LIMIT, "power_limit"},
	{NVML_POWER_LIMIT_MAX, "power_limit_max"},
	{NVML_PCIE_GENERATION, "pcie_generation"},
	{NVML_PCIE_GENERATION_MAX, "pcie_generation_max"},
	{NVML_PCIE_WIDTH, "pcie_lanes"},
	{NVML_PCIE_WIDTH_MAX, "pcie_lanes_max"},
	{NVML_PERSISTENCE, "persistence"},
	{NVML_ECC_MODE, "ecc_mode"},
	{NVML_ECC_CORRECTED, "ecc_corrected"},
	{NVML_ECC_UNCORRECTED, "ecc_uncorrected"},
	{NVML_MIG_MODE, "mig_mode"},
};

static bool is_switch(enum nvml_quantity quantity)
{
	return quantity == NVML_PERSISTENCE || quantity == NVML_ECC_MODE ||
	       quantity == NVML_MIG_MODE;
}

static void add_value(struct fact_list *list, const char *name, enum nvml_quantity quantity,
	const struct nvml_value *value)
{
	char reasons[128];
	if (value->code) {
		fact_missing(list, "gpu", name, "%s", nvml_code_words(value->code));
	} else if (is_switch(quantity)) {
		fact_text(list, "gpu", name, "%s", value->number > 0 ? "on" : "off");
	} else if (quantity == NVML_THROTTLES) {
		nvml_throttle_names(value->number, reasons, sizeof reasons);
		fact_text(list, "gpu", name, "%s", reasons[0] ? reasons : "none");
	} else {
		const char *unit = nvml_quantity_unit(quantity);
		fact_number(list, "gpu", name, value->number, unit[0] ? unit : NULL);
	}
}

static void add_device(struct fact_list *list, const struct nvml_device_facts *device, size_t index)
{
	char name[FACT_NAME_BYTES];
	(void)snprintf(name, sizeof name, "name_%zu", index);
	fact_text(list, "gpu", name, "%s", device->name);
	(void)snprintf(name, sizeof name, "bus_%zu", index);
	fact_text(list, "gpu", name, "%s", device->bus);
	for (size_t i = 0; i < sizeof gpu_facts / sizeof gpu_facts[0]; i++) {
		const enum nvml_quantity quantity = gpu_facts[i].quantity;
		(void)snprintf(name, sizeof name, "%s_%zu", gpu_facts[i].name, index);
		add_value(list, name, quantity, &device->values[quantity]);
	}
}

void environment_nvml(struct fact_list *list)
{
	struct error err;
	struct nvml_node *node = calloc(1, sizeof *node);
	if (!node) {
		list->failed = true;
		return;
	}
	if (nvml_node_read(node, NVML_PATIENCE_S * NS_PER_S, &err)) {
		fact_missing(list, "gpu", "nvml", "%s", err.text);
	} else {
		fact_number(list, "gpu", "nvml", (double)node->count, NULL);
		if (node->driver[0])
			fact_text(list, "gpu", "driver_version", "%s", node->driver);
		for (size_t i = 0; i < node->count; i++)
			add_device(list, &node->devices[i], i);
	}
	free(node);
}
