/* What NVML says now, asked on a thread of its own: its answer is waited for so long and no longer.  What
 * the thread writes to belongs to both sides, and goes with the last of them. */
#include "harness/base/clock.h"
#include "harness/measure/nvml_library.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inquiry {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned holders;
	bool done, left; /* left: nobody waits any more */
	int code;        /* as nvml_node_read returns */
	struct error err;
	struct nvml_node node;
};

static void release(struct inquiry *q)
{
	(void)pthread_mutex_lock(&q->lock);
	const bool last = --q->holders == 0;
	(void)pthread_mutex_unlock(&q->lock);
	if (!last)
		return;
	(void)pthread_cond_destroy(&q->changed);
	(void)pthread_mutex_destroy(&q->lock);
	free(q);
}

static void read_device(
	const struct nvml_library *l, unsigned index, struct nvml_device_facts *facts)
{
	struct nvml_handle *device = NULL;
	struct nvml_pci_info info = {0};
	const int code = l->handle(index, &device);
	if (code == NVML_OK && l->pci_info && l->pci_info(device, &info) == NVML_OK)
		(void)snprintf(facts->bus, sizeof facts->bus, "%.*s", (int)sizeof info.text - 1,
			info.text);
	if (code || !l->name || l->name(device, facts->name, sizeof facts->name))
		(void)snprintf(facts->name, sizeof facts->name, "unknown device");
	facts->name[sizeof facts->name - 1] = '\0';
	for (int i = 0; i < NVML_QUANTITIES; i++) {
		struct nvml_value *value = &facts->values[i];
		const bool slow = i == NVML_PCIE_TO_DEVICE || i == NVML_PCIE_FROM_DEVICE;
		*value = (struct nvml_value){.number = NAN, .code = slow ? NVML_NOT_ASKED : code};
		if (!code && !slow)
			value->code = nvml_ask(l, device, (enum nvml_quantity)i, &value->number);
	}
}

static int read_node(const struct nvml_library *l, struct nvml_node *node, struct error *err)
{
	unsigned count = 0;
	int code = l->init();
	if (code)
		return error_set(err, -ENODEV, "NVML does not start: %s", nvml_code_words(code));
	if (l->driver_version && l->driver_version(node->driver, sizeof node->driver))
		node->driver[0] = '\0';
	code = l->count(&count);
	node->count = count < DEVICES_MAX ? count : DEVICES_MAX;
	for (unsigned i = 0; i < node->count && !code; i++)
		read_device(l, i, &node->devices[i]);
	(void)l->shutdown();
	if (code)
		return error_set(
			err, -ENODEV, "NVML cannot count devices: %s", nvml_code_words(code));
	return count > 0 ? 0 : error_set(err, -ENODEV, "NVML sees no device");
}

static void *inquire(void *context)
{
	struct inquiry *q = context;
	struct error err = {0};
	char why[ERROR_TEXT_BYTES / 2];
	struct nvml_node node = {0};
	const struct nvml_library *l = nvml_library_open(why, sizeof why);
	const int code = l ? read_node(l, &node, &err) : error_set(&err, -ENODEV, "%s", why);
	(void)pthread_mutex_lock(&q->lock);
	q->node = node;
	q->err = err;
	q->code = code;
	q->done = true;
	const bool left = q->left;
	(void)pthread_cond_broadcast(&q->changed);
	(void)pthread_mutex_unlock(&q->lock);
	if (left)
		nvml_come_back();
	release(q);
	return NULL;
}

static struct inquiry *open_inquiry(void)
{
	struct inquiry *q = calloc(1, sizeof *q);
	pthread_condattr_t attributes;
	if (!q || pthread_mutex_init(&q->lock, NULL) || pthread_condattr_init(&attributes)) {
		free(q);
		return NULL;
	}
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&q->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	q->holders = 2;
	return q;
}

static int await(struct inquiry *q, uint64_t patience_ns, struct nvml_node *out, struct error *err)
{
	const uint64_t until = clock_now_ns() + patience_ns;
	const struct timespec at = {
		.tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S)};
	int late = 0;
	(void)pthread_mutex_lock(&q->lock);
	while (!q->done && !late)
		late = pthread_cond_timedwait(&q->changed, &q->lock, &at);
	q->left = !q->done;
	if (q->left)
		nvml_abandon();
	int code = q->code;
	if (!q->left) {
		*out = q->node;
		if (code)
			(void)error_set(err, code, "%s", q->err.text);
	}
	const bool left = q->left;
	(void)pthread_mutex_unlock(&q->lock);
	if (left)
		code = error_set(err, -ETIMEDOUT, "NVML does not answer within %.3g s",
			(double)patience_ns / (double)NS_PER_S);
	return code;
}

int nvml_node_read(struct nvml_node *out, uint64_t patience_ns, struct error *err)
{
	pthread_t thread;
	*out = (struct nvml_node){0};
	if (nvml_hangs())
		return error_set(err, -ETIMEDOUT, NVML_HANGS);
	struct inquiry *q = open_inquiry();
	if (!q)
		return error_set(err, -ENOMEM, "out of memory");
	const int code = pthread_create(&thread, NULL, inquire, q);
	if (code) {
		q->holders = 1;
		release(q);
		return error_set_errno(err, code, "cannot start a thread to ask NVML");
	}
	(void)pthread_detach(thread);
	const int result = await(q, patience_ns, out, err);
	release(q);
	return result;
}
