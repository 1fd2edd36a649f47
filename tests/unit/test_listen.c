/* Metrics of a run over HTTP: scraped by several while the picture changes, on both loopback addresses; what is refused. */
#include "harness/base/clock.h"
#include "harness/live/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { ANSWER_BYTES = 64 << 10, SCRAPERS = 3, SCRAPES = 20 };

static struct live_view *view;
static struct live_board *board;

static int set_up(void **state)
{
	(void)state;
	(void)setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
	view = calloc(1, sizeof *view);
	if (!view || live_board_create(&board, NULL))
		return -1;
	*view = (struct live_view){.phase = LIVE_MEASURING,
		.timed = true,
		.period_s = 0.2,
		.begun_ns = clock_now_ns(),
		.updated_ns = clock_now_ns(),
		.throughput_window = 100,
		.step_utilisation_window = NAN,
		.device_clock_mhz = 1980,
		.device_power_w = NAN,
		.device_temperature_c = NAN,
		.total = 4,
		.stage_count = 1,
		.queue_count = 1};
	(void)snprintf(view->name, sizeof view->name, "a\"b\\c\nd\xff");
	(void)snprintf(view->stages[0].name, NAME_BYTES, "decode");
	(void)snprintf(view->queues[0].name, NAME_BYTES, "samples");
	view->stages[0].cpu_seconds = NAN;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	live_board_close(board);
	free(view);
	return 0;
}

static int connect_to(int family, uint16_t port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} address = {0};
	socklen_t size = sizeof address.four;
	if (family == AF_INET6) {
		address.six = (struct sockaddr_in6){.sin6_family = AF_INET6,
			.sin6_port = htons(port),
			.sin6_addr = IN6ADDR_LOOPBACK_INIT};
		size = sizeof address.six;
	} else {
		address.four = (struct sockaddr_in){.sin_family = AF_INET,
			.sin_port = htons(port),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	}
	const int fd = socket(family, SOCK_STREAM, 0);
	if (fd >= 0 && connect(fd, &address.any, size) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* The whole answer; "" when there was none. */
static void ask(int family, uint16_t port, const char *request, char answer[ANSWER_BYTES])
{
	const int fd = connect_to(family, port);
	size_t used = 0;
	answer[0] = '\0';
	if (fd < 0 || send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		return;
	for (ssize_t n = 1; n > 0 && used<ANSWER_BYTES - 1; used += n> 0 ? (size_t)n : 0)
		n = recv(fd, answer + used, ANSWER_BYTES - 1 - used, 0);
	answer[used] = '\0';
	(void)close(fd);
}

/* As Prometheus asks. */
#define OPEN "Accept: application/openmetrics-text;version=1.0.0,text/plain\r\n"
#define GET(path, more) \
	"GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" more "\r\n"

static void expect_answer(uint16_t port, const char *request, const char *status, const char *text)
{
	static char answer[ANSWER_BYTES];
	ask(AF_INET, port, request, answer);
	if (!strstr(answer, status) || !strstr(answer, text))
		fail_msg("to '%.40s': %.600s", request, answer);
}

static void test_answers(void **state)
{
	(void)state;
	struct listener *listener;
	struct error err;
	static char answer[ANSWER_BYTES];
	assert_int_equal(listener_open(&listener, board, 0, &err), 0);
	const uint16_t port = listener_port(listener);
	assert_true(port > 0);
	expect_answer(port, GET("/metrics", ""), " 503 ", "nothing yet");
	live_board_publish(board, view);
	expect_answer(port, GET("/metrics", ""), " 200 ", OPENMETRICS_PROMETHEUS_CONTENT_TYPE);
	expect_answer(port, GET("/metrics", ""), " 200 ", "name=\"a\\\"b\\\\c\\nd\xEF\xBF\xBD\"");
	expect_answer(
		port, GET("/metrics", ""), " 200 ", "mlbench_run_device_clock_hertz 1980000000\n");
	expect_answer(port, GET("/metrics", OPEN), " 200 ", "\n# EOF\n");
	expect_answer(port, GET("/metrics", "Accept: text/plain;version=0.0.4\r\n"), " 200 ",
		OPENMETRICS_PROMETHEUS_CONTENT_TYPE);
	expect_answer(port, GET("/metrics", OPEN), " 200 ", OPENMETRICS_CONTENT_TYPE);
	expect_answer(port, GET("/", ""), " 200 ", "/metrics");
	expect_answer(port, GET("/etc/passwd", ""), " 404 ", "");
	expect_answer(port,
		"POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		" 405 ", "Allow: GET, HEAD");
	expect_answer(port,
		"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", " 403 ",
		"");
	expect_answer(port,
		"GET /metrics HTTP/1.1\r\nHost: localhost.evil.example\r\nConnection: close\r\n\r\n",
		" 403 ", "");
	/* What is not known is not there. */
	ask(AF_INET, port, GET("/metrics", ""), answer);
	assert_null(strstr(answer, "power_watts"));
	assert_null(strstr(answer, "utilisation"));
	assert_null(strstr(answer, "cpu_seconds"));
	if (connect_to(AF_INET6, port) >= 0) {
		ask(AF_INET6, port,
			"GET /metrics HTTP/1.1\r\nHost: [::1]:9\r\nConnection: close\r\n\r\n",
			answer);
		assert_non_null(strstr(answer, " 200 "));
	}
	listener_close(listener);
	assert_int_equal(connect_to(AF_INET, port), -1);
	listener_close(NULL);
}

static void test_taken(void **state)
{
	(void)state;
	struct listener *one;
	struct listener *two;
	struct error err;
	assert_int_equal(listener_open(&one, board, 0, &err), 0);
	assert_int_equal(listener_open(&two, board, listener_port(one), &err), -EINVAL);
	assert_non_null(strstr(err.text, "in use"));
	const uint16_t port = listener_port(one);
	listener_close(one);
	/* At once again. */
	assert_int_equal(listener_open(&one, board, port, &err), 0);
	listener_close(one);
}

static void test_ports(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"", "x", "80x", "-1", "65536", "99999999999999999999", "1.5"};
	struct error err;
	uint16_t port;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(listener_parse_port(bad[i], &port, &err), -EINVAL);
	assert_int_equal(listener_parse_port(NULL, &port, &err), 0);
	assert_int_equal(port, LISTEN_PORT_DEFAULT);
	assert_int_equal(listener_parse_port("0", &port, &err), 0);
	assert_int_equal(port, 0);
	assert_int_equal(listener_parse_port("65535", &port, &err), 0);
	assert_int_equal(port, 65535);
}

/* --- many at once -------------------------------------------------------------------------------- */

struct scraping {
	uint16_t port;
	atomic_uint whole, torn, backwards;
};

static void *scrape(void *context)
{
	struct scraping *s = context;
	char *answer = malloc(ANSWER_BYTES);
	unsigned long long before = 0;
	for (int i = 0; answer && i < SCRAPES; i++) {
		unsigned long long samples = 0;
		unsigned long long batches = 0;
		ask(AF_INET, s->port, GET("/metrics", OPEN), answer);
		const char *a = strstr(answer, "\nmlbench_run_samples_total ");
		const char *b = strstr(answer, "\nmlbench_run_batches_total ");
		if (!a || !b || sscanf(a, "\nmlbench_run_samples_total %llu", &samples) != 1 ||
			sscanf(b, "\nmlbench_run_batches_total %llu", &batches) != 1 ||
			!strstr(answer, "\n# EOF\n"))
			continue; /* refused: too many connections */
		atomic_fetch_add(samples == batches ? &s->whole : &s->torn, 1);
		if (samples < before)
			atomic_fetch_add(&s->backwards, 1);
		before = samples;
	}
	free(answer);
	return NULL;
}

static void test_at_once(void **state)
{
	(void)state;
	struct scraping s = {0};
	struct listener *listener;
	pthread_t threads[SCRAPERS];
	view->samples = view->batches = 1;
	live_board_publish(board, view);
	assert_int_equal(listener_open(&listener, board, 0, NULL), 0);
	s.port = listener_port(listener);
	for (size_t i = 0; i < SCRAPERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, scrape, &s), 0);
	for (int i = 0; i < 2000; i++) {
		view->samples = ++view->batches;
		live_board_publish(board, view);
		(void)usleep(50);
	}
	for (size_t i = 0; i < SCRAPERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	listener_close(listener);
	assert_true(atomic_load(&s.whole) > 0);
	assert_int_equal(atomic_load(&s.torn), 0);
	assert_int_equal(atomic_load(&s.backwards), 0);
}

/* Between two repetitions nothing is said of rates and queues. */
static void test_between(void **state)
{
	(void)state;
	struct buffer text = {0};
	view->period_s = NAN;
	view->phase = LIVE_BETWEEN;
	metrics_write(view, metrics_now(), 1, OPENMETRICS_1_0, &text);
	assert_non_null(strstr(text.data, "mlbench_run_phase{phase=\"between repetitions\"} 1"));
	assert_null(strstr(text.data, "throughput"));
	assert_null(strstr(text.data, "queue_depth"));
	assert_non_null(strstr(text.data, "mlbench_run_samples_total"));
	buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_between),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
