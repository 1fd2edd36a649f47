/* One node, multiplied: the formulas of fleet.h. */
#include "harness/analyze/fleet.h"

#include "harness/config/shape.h"

#include <errno.h>
#include <math.h>

/* A network that costs less than this is not the bottleneck. */
static const double NETWORK_MATTERS = 1.05;

int fleet_check(const struct fleet *fleet, struct error *err)
{
	const struct {
		const char *name;
		bool good;
	} rules[] = {
		{"the node's throughput",
			fleet->node_samples_per_s > 0 && isfinite(fleet->node_samples_per_s)},
		{"the throughput of its input", fleet->input_samples_per_s > 0},
		{"the step's time", fleet->step_seconds >= 0 && isfinite(fleet->step_seconds)},
		{"the batch", fleet->batch > 0},
		{"the bytes of a sample", fleet->bytes_per_sample >= 0},
		{"the file server's rate", fleet->storage_bytes_per_s > 0},
		{"the bytes of the gradients",
			fleet->gradient_bytes >= 0 && isfinite(fleet->gradient_bytes)},
		{"the network's rate",
			fleet->gradient_bytes <= 0 || fleet->network_bytes_per_s > 0},
		{"the network's latency",
			fleet->gradient_bytes <= 0 || fleet->network_latency_s >= 0},
		{"the overlap", fleet->overlap >= 0 && fleet->overlap <= 1},
	};
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		if (!rules[i].good)
			return error_set(err, -EINVAL, "fleet: %s is unknown or makes no sense",
				rules[i].name);
	return 0;
}

static void exchange_at(const struct fleet *fleet, struct fleet_point *point)
{
	if (fleet->gradient_bytes <= 0 || point->nodes < 2)
		return;
	const double ring = all_reduce_ring_seconds(fleet->gradient_bytes, point->nodes,
		fleet->network_bytes_per_s, fleet->network_latency_s);
	const double tree = all_reduce_tree_seconds(fleet->gradient_bytes, point->nodes,
		fleet->network_bytes_per_s, fleet->network_latency_s);
	const bool takes_ring = fleet->exchange == FLEET_EXCHANGE_RING ||
				(fleet->exchange == FLEET_EXCHANGE_CHEAPER && ring <= tree);
	point->exchange = takes_ring ? FLEET_EXCHANGE_RING : FLEET_EXCHANGE_TREE;
	point->exchange_seconds = takes_ring ? ring : tree;
	point->exposed_seconds =
		fmax(0, point->exchange_seconds - fleet->overlap * fleet->step_seconds);
}

/* The share of the ideal rate of its slower half that one node reaches: 1 with endless queues. */
static double queue_factor(const struct fleet *fleet, double input_seconds)
{
	const double ideal = fmax(input_seconds, fleet->step_seconds);
	return ideal > 0 ? fleet->batch / ideal / fleet->node_samples_per_s : 1;
}

static enum fleet_limit fleet_limit_of(
	double input, double step, double exposed, double storage, double *longest)
{
	*longest = fmax(fmax(input, step + exposed), storage);
	if (storage >= *longest && storage > 0)
		return FLEET_LIMIT_STORAGE;
	const double without = fmax(fmax(input, step), storage);
	if (exposed > 0 && *longest > NETWORK_MATTERS * without)
		return FLEET_LIMIT_NETWORK;
	return input >= step ? FLEET_LIMIT_INPUT : FLEET_LIMIT_STEP;
}

struct fleet_point fleet_at(const struct fleet *fleet, unsigned nodes)
{
	struct fleet_point point = {.nodes = nodes, .exchange = fleet->exchange};
	exchange_at(fleet, &point);
	const double ideal_input = fleet->batch / fleet->input_samples_per_s;
	const double factor = queue_factor(fleet, ideal_input);
	/* A step of no time and an endless input leave only the node's own figure. */
	const double input = ideal_input <= 0 && fleet->step_seconds <= 0
				     ? fleet->batch / fleet->node_samples_per_s
				     : ideal_input * factor;
	const double storage =
		nodes * fleet->batch * fleet->bytes_per_sample / fleet->storage_bytes_per_s;
	double seconds;
	point.limit = fleet_limit_of(input, fleet->step_seconds * factor,
		point.exposed_seconds * factor, storage, &seconds);
	point.samples_per_s = nodes * fleet->batch / seconds;
	point.efficiency = point.samples_per_s / (nodes * fleet->node_samples_per_s);
	point.storage_share = storage / seconds;
	return point;
}

unsigned fleet_first(const struct fleet *fleet, enum fleet_limit limit)
{
	for (unsigned nodes = 1; nodes <= FLEET_NODES_MAX; nodes++)
		if (fleet_at(fleet, nodes).limit == limit)
			return nodes;
	return 0;
}

const char *fleet_exchange_name(enum fleet_exchange exchange)
{
	return exchange == FLEET_EXCHANGE_TREE ? "tree" : "ring";
}
