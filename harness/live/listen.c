/* The server: libmicrohttpd on sockets of our own, so that a port that is taken is told by its name. */
#include "harness/live/listen.h"

#include "harness/base/clock.h"
#include "harness/base/program.h"
#include "harness/live/stall.h"
#include "harness/report/openmetrics_names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int listener_parse_port(const char *text, uint16_t *port, struct error *err)
{
	char *end;
	*port = LISTEN_PORT_DEFAULT;
	if (!text)
		return 0;
	errno = 0;
	const long number = strtol(text, &end, 10);
	if (errno || end == text || *end || number < 0 || number > UINT16_MAX)
		return error_set(err, -EINVAL,
			"--listen: '%.40s' is not a port; give 0 (any free port) to %u", text,
			UINT16_MAX);
	*port = (uint16_t)number;
	return 0;
}

/* --- which member is which metric ----------------------------------------------------------------- */

static const double HERTZ_PER_MHZ = 1e6;

struct metrics_time metrics_now(void)
{
	return (struct metrics_time){.now_ns = clock_now_ns(), .now = clock_utc_seconds()};
}

static void metrics_add_value(struct openmetrics *m, enum run_metric metric, double value)
{
	openmetrics_add(m, &run_metrics[metric], NULL, 0, value);
}

static void add_one(struct openmetrics *m, enum run_metric metric, const char *label,
	const char *of, double value)
{
	const struct openmetrics_label labels[] = {{label, of}};
	openmetrics_add(m, &run_metrics[metric], labels, 1, value);
}

static void add_command(
	const struct live_view *v, struct metrics_time time, double stuck, struct openmetrics *m)
{
	const struct openmetrics_label info[] = {{"name", v->name}, {"version", v->version},
		{"command", v->command}, {"node", v->node}};
	const double age_s = time.now_ns > v->updated_ns
				     ? (double)(time.now_ns - v->updated_ns) / (double)NS_PER_S
				     : 0;
	openmetrics_add(m, &run_metrics[RUN_INFO], info, sizeof info / sizeof info[0], 1);
	for (unsigned p = 0; p < LIVE_PHASES; p++)
		add_one(m, RUN_PHASE, "phase", live_phase_name((enum live_phase)p),
			p == (unsigned)v->phase);
	metrics_add_value(m, RUN_STUCK, stuck);
	metrics_add_value(m, RUN_STARTED, v->started);
	metrics_add_value(m, RUN_UPDATED, time.now - age_s);
	metrics_add_value(m, RUN_REPETITIONS, v->total);
	metrics_add_value(m, RUN_REPETITIONS_DONE, v->done);
	metrics_add_value(m, RUN_RANKS, v->ranks > 0 ? v->ranks : (double)NAN);
}

static void metrics_add_counts(const struct live_view *v, struct openmetrics *m)
{
	metrics_add_value(m, RUN_SAMPLES, (double)v->samples);
	metrics_add_value(m, RUN_BATCHES, (double)v->batches);
	metrics_add_value(m, RUN_EPOCHS, (double)v->epochs);
	metrics_add_value(m, RUN_BAD_SAMPLES, (double)v->bad_samples);
}

/* Of what goes on now. */
static void add_gauges(const struct live_view *v, struct openmetrics *m)
{
	metrics_add_value(m, RUN_THROUGHPUT, v->throughput_window);
	metrics_add_value(m, RUN_STEP_UTILISATION, v->step_utilisation_window);
	metrics_add_value(m, RUN_READ_BYTES, v->bytes_read_per_s);
	metrics_add_value(
		m, RUN_RESIDENT, v->resident_bytes > 0 ? (double)v->resident_bytes : (double)NAN);
	metrics_add_value(m, RUN_POOL, (double)v->pool_bytes);
}

static void add_stages(const struct live_view *v, struct openmetrics *m)
{
	static const char *const states[THREAD_STATES] = {"starved", "working", "blocked"};
	for (uint32_t i = 0; v->timed && i < v->stage_count; i++)
		for (unsigned k = 0; k < THREAD_STATES; k++) {
			const struct openmetrics_label labels[] = {
				{"stage", v->stages[i].name}, {"state", states[k]}};
			openmetrics_add(m, &run_metrics[RUN_STAGE_SECONDS], labels, 2,
				v->stages[i].seconds[k]);
		}
	for (uint32_t i = 0; v->timed && i < v->stage_count; i++)
		add_one(m, RUN_STAGE_CPU, "stage", v->stages[i].name, v->stages[i].cpu_seconds);
	for (uint32_t i = 0; v->timed && i < v->stage_count; i++)
		add_one(m, RUN_STAGE_ITEMS, "stage", v->stages[i].name, (double)v->stages[i].items);
	for (uint32_t i = 0; i < v->stage_count; i++)
		add_one(m, RUN_STAGE_WORKERS, "stage", v->stages[i].name, v->stages[i].workers);
}

static void metrics_add_queues(const struct live_view *v, struct openmetrics *m)
{
	for (uint32_t i = 0; v->timed && i < v->queue_count; i++)
		add_one(m, RUN_QUEUE_DEPTH, "queue", v->queues[i].name, v->queues[i].depth);
	for (uint32_t i = 0; v->timed && i < v->queue_count; i++)
		add_one(m, RUN_QUEUE_CAPACITY, "queue", v->queues[i].name, v->queues[i].capacity);
}

static void add_device(const struct live_view *v, struct openmetrics *m)
{
	metrics_add_value(m, RUN_DEVICE_CLOCK, v->device_clock_mhz * HERTZ_PER_MHZ);
	metrics_add_value(m, RUN_DEVICE_POWER, v->device_power_w);
	metrics_add_value(m, RUN_DEVICE_TEMPERATURE, v->device_temperature_c);
}

void metrics_write(const struct live_view *v, struct metrics_time time, double stuck,
	enum openmetrics_dialect dialect, struct buffer *out)
{
	struct openmetrics m = {.out = out, .dialect = dialect};
	const bool runs = !isnan(v->period_s);
	add_command(v, time, stuck, &m);
	if (v->begun_ns > 0)
		metrics_add_counts(v, &m);
	if (runs)
		add_gauges(v, &m);
	if (v->begun_ns > 0)
		add_stages(v, &m);
	if (runs)
		metrics_add_queues(v, &m);
	if (runs)
		add_device(v, &m);
	if (dialect == OPENMETRICS_1_0)
		openmetrics_end(&m);
}

#if defined(MLBENCH_WITH_libmicrohttpd)
#include <microhttpd.h>

enum { ADDRESSES = 2, CONNECTIONS = 8, TIMEOUT_S = 5, CONNECTION_BYTES = 16 << 10, BACKLOG = 8 };

struct listener {
	const struct live_board *board;
	struct MHD_Daemon *daemons[ADDRESSES];
	uint16_t port;
};

/* --- answers ---------------------------------------------------------------------------------- */

static enum MHD_Result listen_answer(
	struct MHD_Connection *connection, unsigned status, const char *type, struct buffer *text)
{
	struct MHD_Response *response = NULL;
	if (!text->failed && text->data)
		response = MHD_create_response_from_buffer(
			text->size, text->data, MHD_RESPMEM_MUST_COPY);
	buffer_release(text);
	if (!response)
		return MHD_NO;
	enum MHD_Result result = MHD_add_response_header(response, "Content-Type", type);
	if (result == MHD_YES)
		result = MHD_add_response_header(response, "Cache-Control", "no-store");
	if (result == MHD_YES && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		result = MHD_add_response_header(response, "Allow", "GET, HEAD");
	if (result == MHD_YES)
		result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_text(
	struct MHD_Connection *connection, unsigned status, const char *words)
{
	struct buffer text = {0};
	buffer_text(&text, words);
	return listen_answer(connection, status, "text/plain; charset=utf-8", &text);
}

/* The format that everything reads (promtool, too), unless OpenMetrics is asked for, as Prometheus does. */
static enum openmetrics_dialect dialect_for(struct MHD_Connection *connection)
{
	const char *accepted = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
	const bool open = accepted && strstr(accepted, "application/openmetrics-text");
	return open ? OPENMETRICS_1_0 : OPENMETRICS_PROMETHEUS;
}

static enum MHD_Result answer_metrics(
	const struct live_board *board, struct MHD_Connection *connection)
{
	const enum openmetrics_dialect dialect = dialect_for(connection);
	struct live_view *view = malloc(sizeof *view);
	struct buffer text = {.failed = !view};
	if (view && live_board_read(board, view)) {
		free(view);
		return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			"the run has published nothing yet\n");
	}
	if (view) {
		struct stall stall;
		stall_look(view->pid, view, NULL, 0, clock_now_ns(), &stall);
		metrics_write(view, metrics_now(), stall_is_stuck(&stall), dialect, &text);
	}
	free(view);
	return listen_answer(connection, MHD_HTTP_OK,
		dialect == OPENMETRICS_1_0 ? OPENMETRICS_CONTENT_TYPE
					   : OPENMETRICS_PROMETHEUS_CONTENT_TYPE,
		&text);
}

/* A page in a browser could reach this port under a name of its own; nobody else would use one. */
static bool host_is_loopback(struct MHD_Connection *connection)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
	if (!host)
		return true;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const size_t length = strlen(names[i]);
		if (strncmp(host, names[i], length) == 0 &&
			(host[length] == '\0' || host[length] == ':'))
			return true;
	}
	return false;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **own)
{
	const struct listener *listener = context;
	(void)version;
	(void)data;
	*size = 0; /* what comes with a request is not read */
	(void)own;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n");
	if (!host_is_loopback(connection))
		return answer_text(connection, MHD_HTTP_FORBIDDEN,
			"only this node may read it, as 'localhost'\n");
	if (strcmp(url, "/metrics") == 0)
		return answer_metrics(listener->board, connection);
	if (strcmp(url, "/") == 0)
		return answer_text(connection, MHD_HTTP_OK,
			"mlbench " MLBENCH_VERSION
			": a run in progress. Its metrics (Prometheus, OpenMetrics) are at /metrics.\n");
	return answer_text(connection, MHD_HTTP_NOT_FOUND, "there are / and /metrics\n");
}

/* --- sockets ---------------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static socklen_t loopback(int family, uint16_t port, union address *out)
{
	*out = (union address){0};
	if (family == AF_INET6) {
		out->six = (struct sockaddr_in6){.sin6_family = AF_INET6,
			.sin6_port = htons(port),
			.sin6_addr = IN6ADDR_LOOPBACK_INIT};
		return sizeof out->six;
	}
	out->four = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return sizeof out->four;
}

/* A listening socket, or -errno; *port is what it has. */
static int open_socket(int family, uint16_t *port)
{
	const int on = 1;
	union address address;
	socklen_t size = loopback(family, *port, &address);
	const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	if (bind(fd, &address.any, size) || listen(fd, BACKLOG) ||
		getsockname(fd, &address.any, &size)) {
		const int code = -errno;
		(void)close(fd);
		return code;
	}
	*port = ntohs(family == AF_INET6 ? address.six.sin6_port : address.four.sin_port);
	return fd;
}

/* Its thread leaves all signals to the others. */
static struct MHD_Daemon *listen_start(struct listener *listener, int fd)
{
	sigset_t all;
	sigset_t before;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	struct MHD_Daemon *daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL,
		0, NULL, NULL, handle, listener, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_END);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!daemon)
		(void)close(fd);
	return daemon;
}

int listener_open(
	struct listener **out, const struct live_board *board, uint16_t port, struct error *err)
{
	struct listener *listener = calloc(1, sizeof *listener);
	*out = NULL;
	if (!listener)
		return error_set(err, -ENOMEM, "out of memory");
	*listener = (struct listener){.board = board, .port = port};
	const int four = open_socket(AF_INET, &listener->port);
	if (four >= 0)
		listener->daemons[0] = listen_start(listener, four);
	if (!listener->daemons[0]) {
		free(listener);
		return error_set(err, -EINVAL,
			"--listen: cannot serve port %u of 127.0.0.1: %s; --listen=0 takes a free one",
			port, four < 0 ? strerror(-four) : "the server does not start");
	}
	/* A node without IPv6, or with that port taken there, is served by the one. */
	const int six = open_socket(AF_INET6, &listener->port);
	if (six >= 0)
		listener->daemons[1] = listen_start(listener, six);
	*out = listener;
	return 0;
}

void listener_close(struct listener *listener)
{
	if (!listener)
		return;
	for (size_t i = 0; i < ADDRESSES; i++)
		if (listener->daemons[i])
			MHD_stop_daemon(listener->daemons[i]);
	free(listener);
}

uint16_t listener_port(const struct listener *listener)
{
	return listener->port;
}

#else

int listener_open(
	struct listener **out, const struct live_board *board, uint16_t port, struct error *err)
{
	(void)board;
	(void)port;
	*out = NULL;
	return part_require(PART_METRICS_SERVER, err);
}

void listener_close(struct listener *listener)
{
	(void)listener;
}

uint16_t listener_port(const struct listener *listener)
{
	(void)listener;
	return 0;
}

#endif
