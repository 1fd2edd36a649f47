/* The doctor on the data: a file system may make a measurement mean something else than it seems. */
#include "harness/measure/doctor_parts.h"
#include "harness/measure/doctor_probe.h"
#include "harness/measure/environment_parts.h"

#include <string.h>
#include <unistd.h>

/* File systems on which a measurement means something else than it seems. */
static const struct {
	const char *type, *consequence, *remedy;
} file_systems[] = {
	{"tmpfs", "reads come from memory: there is no cold run, and no storage is measured",
		"put the data set on a disk"},
	{"ramfs", "reads come from memory: there is no cold run, and no storage is measured",
		"put the data set on a disk"},
	{"overlay", "reads pass the container's overlay, and the disk under it does not show",
		"mount a volume for the data set"},
	{"nfs", "the server's cache and the network are measured; eviction here does not make it cold there",
		""},
	{"nfs4",
		"the server's cache and the network are measured; eviction here does not make it cold there",
		""},
	{"9p", "the host's cache serves the reads, and does not show",
		"put the data set on a disk of this node"},
	{"virtiofs", "the host's cache serves the reads, and does not show",
		"put the data set on a disk of this node"},
	{"cifs", "the server's cache and the network are measured", ""},
	{"ceph", "the servers' caches and the network are measured", ""},
	{"lustre", "the servers' caches and the network are measured", ""},
};

void doctor_check_file_system(struct doctor *doctor)
{
	const char *type = doctor_text(doctor, "data", "file_system");
	const char *consequence = "";
	const char *remedy = "";
	if (!type[0]) {
		doctor_find(doctor, DOCTOR_NOTE, "data", "where it lies is not checked", "", "%s",
			doctor_why(doctor, "data", "file_system"));
		return;
	}
	for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
		if (strcmp(type, file_systems[i].type) == 0) {
			consequence = file_systems[i].consequence;
			remedy = file_systems[i].remedy;
		}
	if (strncmp(type, "fuse", 4) == 0)
		consequence =
			"a user program serves the reads: its CPU and its cache are measured too";
	doctor_find(doctor, consequence[0] ? DOCTOR_NOTE : DOCTOR_OK, "data", consequence, remedy,
		"%.40s on %.80s (%.30s)", type, doctor_text(doctor, "data", "device"),
		doctor_text(doctor, "data", "options"));
}

void doctor_check_direct_io(struct doctor *doctor)
{
	struct mount_entry mount;
	if (!doctor->data_path || environment_mount_of(doctor->data_path, &mount))
		return;
	const int code = probe_direct_io(
		access(doctor->data_path, W_OK) == 0 ? doctor->data_path : mount.point);
	if (code == 0)
		doctor_find(doctor, DOCTOR_OK, "direct reads", "", "",
			"O_DIRECT works where the data lies");
	else
		doctor_find(doctor, DOCTOR_NOTE, "direct reads",
			"read.direct may be refused for this data set", "",
			"could not be tried: %s", strerror(-code));
}

void doctor_check_disk(struct doctor *doctor)
{
	const char *disk = doctor_text(doctor, "data", "disk");
	if (!doctor_text(doctor, "data", "file_system")[0])
		return;
	const bool rotates = strcmp(doctor_text(doctor, "data", "rotational"), "yes") == 0;
	if (!disk[0])
		doctor_find(doctor, DOCTOR_NOTE, "disk", "queue depth and scheduler are not known",
			"", "%s", doctor_why(doctor, "data", "disk"));
	else
		doctor_find(doctor, rotates ? DOCTOR_NOTE : DOCTOR_OK, "disk",
			rotates ? "shuffled reads seek; virtual disks often say so wrongly" : "",
			"", "%.60s, scheduler %.30s%s", disk,
			doctor_text(doctor, "data", "scheduler"),
			rotates ? ", says that it rotates" : "");
}
