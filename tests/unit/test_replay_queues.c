/* The replay against closed forms of queueing theory.  Each truth must lie in the replay's own interval:
 * the mean of 20 independent replications +- 3.58 standard errors (Student's t, 99.8 %), no wider than
 * 1 to 3 %. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/replay_fixture.h"

enum { BATCHES = 40000, STATES_MAX = 1024 };

/* Two exponential servers in a circle with n customers; the second is an M/M/1/K queue, K = n, whose
 * arrivals stop instead of being lost. */
static double circle(double first_per_s, double second_per_s, unsigned n)
{
	const double rho = first_per_s / second_per_s;
	if (fabs(rho - 1) < 1e-9)
		return first_per_s * n / (n + 1);
	return first_per_s * (1 - pow(rho, n)) / (1 - pow(rho, n + 1));
}

/* Mean of those that wait, not in service, at the second server. */
static double circle_waiting(double first_per_s, double second_per_s, unsigned n)
{
	const double rho = first_per_s / second_per_s;
	double sum = 0;
	double waiting = 0;
	for (unsigned i = 0; i <= n; i++) {
		sum += pow(rho, i);
		waiting += i > 1 ? (i - 1) * pow(rho, i) : 0;
	}
	return waiting / sum;
}

static void mm1k_between_reading_and_decoding(void **state)
{
	(void)state;
	static const struct {
		double read_ms, decode_ms;
		uint32_t blobs;
	} cases[] = {{1, 1, 1}, {1, 1, 4}, {2, 1, 3}, {1, 2, 5}, {1, 1.1, 16}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct case_model c = case_plain();
		c.model.shape.blobs = cases[i].blobs;
		case_set(&c, COST_READ_CPU, EXPONENTIAL, cases[i].read_ms * MS);
		case_set(&c, COST_DECODE_CPU, EXPONENTIAL, cases[i].decode_ms * MS);
		const struct estimates e = case_estimate(&c, BATCHES);
		const double read = 1e3 / cases[i].read_ms;
		const double decode = 1e3 / cases[i].decode_ms;
		assert_estimates(e.throughput, circle(read, decode, cases[i].blobs), 0.01);
		if (cases[i].blobs > 1)
			assert_estimates(e.samples_waiting,
				circle_waiting(read, decode, cases[i].blobs), 0.05);
	}
}

static void mm1k_between_decoding_and_step(void **state)
{
	(void)state;
	for (uint32_t slots = 1; slots <= 5; slots += 2) {
		struct case_model c = case_plain();
		c.model.shape.slots = slots;
		case_set(&c, COST_DECODE_CPU, EXPONENTIAL, 1 * MS);
		case_set(&c, COST_STEP_DEVICE, EXPONENTIAL, 1.5 * MS);
		const struct estimates e = case_estimate(&c, BATCHES);
		assert_estimates(e.throughput, circle(1e3, 1e3 / 1.5, slots), 0.01);
	}
}

static void mm1k_between_upload_and_step(void **state)
{
	(void)state;
	for (uint32_t staging = 1; staging <= 4; staging++) {
		struct case_model c = case_plain();
		c.model.shape.staging_slots = staging;
		case_set(&c, COST_UPLOAD, EXPONENTIAL, 2 * MS);
		case_set(&c, COST_STEP_DEVICE, EXPONENTIAL, 1 * MS);
		const struct estimates e = case_estimate(&c, BATCHES);
		assert_estimates(e.throughput, circle(500, 1e3, staging), 0.01);
	}
}

/* Pollaczek and Khinchine; reading is the arrivals, with blobs enough never to stop them. */
static void md1_and_mg1(void **state)
{
	(void)state;
	static const struct {
		enum law law;
		double squared_variation, rho;
	} cases[] = {{CONSTANT, 0, 0.5}, {CONSTANT, 0, 0.7}, {EXPONENTIAL, 1, 0.5},
		{HYPEREXPONENTIAL, 2 * (0.1 * 5.5 * 5.5 + 0.9 * 0.25) - 1, 0.3}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct case_model c = case_plain();
		const double rho = cases[i].rho;
		c.model.shape.blobs = 2000;
		case_set(&c, COST_READ_CPU, EXPONENTIAL, 1 * MS);
		case_set(&c, COST_DECODE_CPU, cases[i].law, rho * MS);
		const struct estimates e = case_estimate(&c, BATCHES);
		const double waiting = rho * rho * (1 + cases[i].squared_variation) / 2 / (1 - rho);
		assert_estimates(e.samples_waiting, waiting, 0.08);
		assert_estimates(e.throughput, 1e3, 0.01);
	}
}

/* Erlang's C. */
static void mmc(void **state)
{
	(void)state;
	const unsigned servers = 3;
	const double load = 2.1;
	double terms = 0;
	double term = 1;
	for (unsigned n = 0; n < servers; n++, term *= load / n)
		terms += term;
	const double last = term * servers / (servers - load);
	const double waiting = last / (terms + last) * load / (servers - load);
	struct case_model c = case_plain();
	c.model.shape.blobs = 2000;
	c.model.shape.decode_workers = servers;
	c.model.shape.slots = 200;
	case_set(&c, COST_READ_CPU, EXPONENTIAL, 1 * MS);
	case_set(&c, COST_DECODE_CPU, EXPONENTIAL, load * MS);
	const struct estimates e = case_estimate(&c, BATCHES);
	assert_estimates(e.samples_waiting, waiting, 0.1);
}

/* --- a line with blocking, by its Markov chain ----------------------------------------------------- */

struct chain {
	unsigned blobs, slots, workers;
	double read, decode, step; /* rates */
};

/* Read but not decoded x; decoded but not through the step y.  A worker needs a slot to begin. */
static double chain_rate(const struct chain *c, unsigned x, unsigned y, int what)
{
	const unsigned room = c->slots - y;
	const unsigned busy = x < room ? x : room;
	if (what == 0)
		return x < c->blobs ? c->read : 0;
	if (what == 1)
		return c->decode * (busy < c->workers ? busy : c->workers);
	return y > 0 ? c->step : 0;
}

/* Stationary distribution by relaxation of the balance equations; returns the step's throughput. */
static double chain_throughput(const struct chain *c)
{
	const unsigned width = c->slots + 1;
	const unsigned states = (c->blobs + 1) * width;
	double p[STATES_MAX];
	assert_true(states <= STATES_MAX);
	for (unsigned i = 0; i < states; i++)
		p[i] = 1.0 / states;
	for (int sweep = 0; sweep < 20000; sweep++) {
		double sum = 0;
		for (unsigned x = 0; x <= c->blobs; x++)
			for (unsigned y = 0; y <= c->slots; y++) {
				double in = 0;
				if (x > 0)
					in += p[(x - 1) * width + y] * chain_rate(c, x - 1, y, 0);
				if (x < c->blobs && y > 0)
					in += p[(x + 1) * width + y - 1] *
					      chain_rate(c, x + 1, y - 1, 1);
				if (y < c->slots)
					in += p[x * width + y + 1] * chain_rate(c, x, y + 1, 2);
				const double out = chain_rate(c, x, y, 0) + chain_rate(c, x, y, 1) +
						   chain_rate(c, x, y, 2);
				p[x * width + y] = (p[x * width + y] + in / out) /
						   2; /* damped: else it may go in circles */
				sum += p[x * width + y];
			}
		for (unsigned i = 0; i < states; i++)
			p[i] /= sum;
	}
	double idle = 0;
	for (unsigned x = 0; x <= c->blobs; x++)
		idle += p[x * width];
	return c->step * (1 - idle);
}

static void tandem_with_blocking(void **state)
{
	(void)state;
	static const struct chain chains[] = {
		{1, 1, 1, 1000, 1000, 1000},
		{3, 2, 1, 1000, 1000, 1000},
		{2, 4, 1, 1200, 900, 1000},
		{6, 3, 1, 700, 1000, 800},
		{5, 4, 2, 1000, 600, 1000},
		{8, 6, 3, 1500, 400, 1100},
	};
	for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
		const struct chain *chain = &chains[i];
		struct case_model c = case_plain();
		c.model.shape.blobs = chain->blobs;
		c.model.shape.slots = chain->slots;
		c.model.shape.decode_workers = chain->workers;
		c.model.shape.in_order = false;
		case_set(&c, COST_READ_CPU, EXPONENTIAL, 1e9 / chain->read);
		case_set(&c, COST_DECODE_CPU, EXPONENTIAL, 1e9 / chain->decode);
		case_set(&c, COST_STEP_DEVICE, EXPONENTIAL, 1e9 / chain->step);
		const struct estimates e = case_estimate(&c, BATCHES);
		assert_estimates(e.throughput, chain_throughput(chain), 0.01);
	}
}

/* --- closed networks --------------------------------------------------------------------------------- */

/* Customers that think and are then served at a rate that depends on how many are there: product form,
 * whatever the law of thinking, and of the service when it is shared among all (processor sharing). */
struct closed {
	unsigned customers;
	double think_s, service_s;
	double cores, outside, contention;
};

static double service_rate(const struct closed *c, unsigned n)
{
	const double threads = n + c->outside;
	const double busy = fmin(threads, c->cores);
	const double each = fmin(1, c->cores / threads) / (1 + c->contention * fmax(busy - 1, 0));
	return n * each / c->service_s;
}

static double closed_throughput(const struct closed *c)
{
	double weight = 1;
	double sum = 1;
	double flow = 0;
	for (unsigned n = 1; n <= c->customers; n++) {
		weight *= (c->customers - n + 1) / c->think_s / service_rate(c, n);
		sum += weight;
		flow += weight * service_rate(c, n);
	}
	return flow / sum;
}

/* The exact mean-value analysis of the same, with one server: an independent way to the number. */
static double mean_value_analysis(unsigned customers, double think_s, double service_s)
{
	double queue = 0;
	double flow = 0;
	for (unsigned n = 1; n <= customers; n++) {
		const double response = service_s * (1 + queue);
		flow = n / (think_s + response);
		queue = flow * response;
	}
	return flow;
}

/* Files in flight think, workers serve them: machine repair.  A reader for each, since one with several
 * in flight only looks for a free blob now and then. */
static void machine_repair(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= 3; workers++) {
		struct case_model c = case_plain();
		c.model.shape.blobs = 6;
		c.model.shape.reader_threads = 6;
		c.model.shape.decode_workers = workers;
		case_set(&c, COST_READ_LATENCY, EXPONENTIAL, 3 * MS);
		case_set(&c, COST_DECODE_CPU, EXPONENTIAL, 1 * MS);
		const struct estimates e = case_estimate(&c, BATCHES);
		const struct closed closed = {6, 3e-3, 1e-3, workers, 0, 0};
		assert_estimates(e.throughput, closed_throughput(&closed), 0.015);
		if (workers == 1)
			assert_close(closed_throughput(&closed), mean_value_analysis(6, 3e-3, 1e-3),
				1e-12);
	}
}

/* Workers that wait off the cores and compute on them. */
static void processor_sharing_is_insensitive(void **state)
{
	(void)state;
	static const struct closed cases[] = {
		{5, 0.003, 0.001, 1, 0, 0},
		{8, 0.003, 0.001, 2, 0, 0},
		{8, 0.002, 0.001, 3, 0, 0.1},
		{6, 0.002, 0.001, 2, 1.5, 0},
		{4, 0.001, 0.001, 2.5, 0.5, 0.2},
	};
	static const enum law laws[] = {CONSTANT, EXPONENTIAL, HYPEREXPONENTIAL};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (size_t k = 0; k < sizeof laws / sizeof *laws; k++) {
			struct case_model c = case_plain();
			c.model.shape.decode_workers = cases[i].customers;
			c.model.shape.blobs = 100;
			c.model.shape.in_order = false;
			c.model.cores = cases[i].cores;
			c.model.outside = cases[i].outside;
			c.model.contention = cases[i].contention;
			case_set(&c, COST_DECODE_WAIT, EXPONENTIAL, cases[i].think_s * 1e9);
			case_set(&c, COST_DECODE_CPU, laws[k], cases[i].service_s * 1e9);
			const struct estimates e = case_estimate(&c, BATCHES);
			assert_estimates(e.throughput, closed_throughput(&cases[i]), 0.015);
		}
}

/* The team's lock is one server, first come first served. */
static void lock_as_machine_repair(void **state)
{
	(void)state;
	struct case_model c = case_plain();
	c.model.shape.decode_workers = 5;
	c.model.shape.in_order = false;
	case_set(&c, COST_DECODE_WAIT, EXPONENTIAL, 3 * MS);
	case_set(&c, COST_DECODE_LOCK, EXPONENTIAL, 1 * MS);
	const struct estimates e = case_estimate(&c, BATCHES);
	assert_estimates(e.throughput, 1e3 * mean_value_analysis(5, 3, 1), 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mm1k_between_reading_and_decoding),
		cmocka_unit_test(mm1k_between_decoding_and_step),
		cmocka_unit_test(mm1k_between_upload_and_step),
		cmocka_unit_test(md1_and_mg1),
		cmocka_unit_test(mmc),
		cmocka_unit_test(tandem_with_blocking),
		cmocka_unit_test(machine_repair),
		cmocka_unit_test(processor_sharing_is_insensitive),
		cmocka_unit_test(lock_as_machine_repair),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
