/* What may make a GPU slower than its name: a narrow link, memory errors, clocks held down, a driver that goes
 * to sleep.  One finding per question, whatever the number of devices; the first device that fails is told. */
#include "harness/measure/doctor_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_ROOM = 48, DEVICES_LOOKED_AT = 16 };

/* Facts are by device: "pcie_lanes_0". */
static const char *device_name(const char *name, unsigned device, char out[NAME_ROOM])
{
	(void)snprintf(out, NAME_ROOM, "%s_%u", name, device);
	return out;
}

static double number(const struct doctor *doctor, const char *name, unsigned device)
{
	char full[NAME_ROOM];
	return doctor_number(doctor, "gpu", device_name(name, device, full));
}

static const char *text(const struct doctor *doctor, const char *name, unsigned device)
{
	char full[NAME_ROOM];
	return doctor_text(doctor, "gpu", device_name(name, device, full));
}

static const char *why(const struct doctor *doctor, const char *name, unsigned device)
{
	char full[NAME_ROOM];
	return doctor_why(doctor, "gpu", device_name(name, device, full));
}

static void check_link(struct doctor *doctor, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++) {
		const double lanes = number(doctor, "pcie_lanes", i);
		const double most = number(doctor, "pcie_lanes_max", i);
		if (isnan(lanes) || isnan(most)) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU link",
				"a narrow link would go unseen", "", "device %u: lanes unknown: %s",
				i, why(doctor, isnan(lanes) ? "pcie_lanes" : "pcie_lanes_max", i));
			return;
		}
		if (lanes < most) {
			doctor_find(doctor, DOCTOR_LACKS, "GPU link",
				"batches are copied to it at a part of the link's bandwidth",
				"reseat the card or riser, or another slot; check the slot's bifurcation in the firmware",
				"device %u: %.0f of %.0f PCIe lanes", i, lanes, most);
			return;
		}
	}
	doctor_find(doctor, DOCTOR_OK, "GPU link", "", "",
		"%.0f PCIe lanes of generation %.0f now (at most %.0f; less while idle is normal)",
		number(doctor, "pcie_lanes", 0), number(doctor, "pcie_generation", 0),
		number(doctor, "pcie_generation_max", 0));
}

static void check_errors(struct doctor *doctor, unsigned devices)
{
	double corrected = 0;
	for (unsigned i = 0; i < devices; i++) {
		const double lost = number(doctor, "ecc_uncorrected", i);
		if (isnan(lost)) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU memory",
				"errors of its memory go unseen", "", "device %u: %s", i,
				why(doctor, "ecc_uncorrected", i));
			return;
		}
		if (lost > 0) {
			doctor_find(doctor, DOCTOR_LACKS, "GPU memory",
				"results of this device cannot be trusted",
				"reset the device, and replace it if they come back",
				"device %u: %.0f uncorrected errors since the driver was loaded", i,
				lost);
			return;
		}
		corrected += fmax(0, number(doctor, "ecc_corrected", i));
	}
	if (corrected > 0)
		doctor_find(doctor, DOCTOR_NOTE, "GPU memory",
			"none is lost; many of them herald worse", "",
			"%.0f corrected errors since the driver was loaded", corrected);
	else
		doctor_find(doctor, DOCTOR_OK, "GPU memory", "", "",
			"no errors since the driver was loaded");
}

static void check_throttles(struct doctor *doctor, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++) {
		const char *reasons = text(doctor, "throttles_now", i);
		if (!reasons[0]) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU clocks",
				"clocks that are held down go unseen", "", "device %u: %s", i,
				why(doctor, "throttles_now", i));
			return;
		}
		if (strcmp(reasons, "none") != 0) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU clocks",
				"steps are slower than this device's name promises",
				"cooling, power supply, or nvidia-smi --reset-gpu-clocks, by the reason",
				"device %u is held down now: %s", i, reasons);
			return;
		}
	}
	doctor_find(doctor, DOCTOR_OK, "GPU clocks", "", "",
		"not held down (%.0f MHz now, at most %.0f)", number(doctor, "sm_clock_now", 0),
		number(doctor, "sm_clock_max", 0));
}

static void check_persistence(struct doctor *doctor, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++)
		if (strcmp(text(doctor, "persistence", i), "off") == 0) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU driver",
				"the driver is loaded anew for every program: seconds before each run",
				"nvidia-smi -pm 1, or the nvidia-persistenced service",
				"device %u: persistence mode is off", i);
			return;
		}
	doctor_find(doctor, DOCTOR_OK, "GPU driver", "", "", "%s%s",
		doctor_text(doctor, "gpu", "driver_version"),
		strcmp(text(doctor, "persistence", 0), "on") == 0 ? ", stays loaded" : "");
}

static void check_split(struct doctor *doctor, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++)
		if (strcmp(text(doctor, "mig_mode", i), "on") == 0) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU parts",
				"a part has no published peak, and the driver tells less of it", "",
				"device %u is split (MIG)", i);
			return;
		}
}

void doctor_check_device(struct doctor *doctor)
{
	const double count = doctor_number(doctor, "gpu", "nvml");
	const unsigned devices = count > 0 ? (unsigned)fmin(count, DEVICES_LOOKED_AT) : 0;
	if (devices == 0) {
		/* Without a GPU, that there is none has been said. */
		if (doctor_number(doctor, "gpu", "devices") > 0)
			doctor_find(doctor, DOCTOR_LACKS, "GPU state",
				"clocks, power, throttling and memory errors of a run stay unknown",
				"install the driver's libnvidia-ml.so.1, or pass it into the container",
				"%s", doctor_why(doctor, "gpu", "nvml"));
		return;
	}
	check_link(doctor, devices);
	check_errors(doctor, devices);
	check_throttles(doctor, devices);
	check_persistence(doctor, devices);
	check_split(doctor, devices);
}
