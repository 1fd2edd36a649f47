/* Schedules of recorded steps. */
#include "harness/base/step_schedule.h"

#include <ctype.h>
#include <stddef.h>

static const char *skip_schedule_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

/* One number; NULL, or what is wrong. */
static const char *read_schedule_number(const char **at, uint64_t *number)
{
	*at = skip_schedule_blanks(*at);
	if (!isdigit((unsigned char)**at))
		return "is not five whole numbers";
	*number = 0;
	for (; isdigit((unsigned char)**at); (*at)++) {
		*number = *number * 10 + (uint64_t)(**at - '0');
		if (*number > STEP_SCHEDULE_MOST)
			return "has a number above 1000000000";
	}
	*at = skip_schedule_blanks(*at);
	return NULL;
}

static const char *read_numbers(const char *text, uint64_t numbers[STEP_SCHEDULE_NUMBERS])
{
	for (int i = 0; i < STEP_SCHEDULE_NUMBERS; i++) {
		if (i > 0 && *text++ != ',')
			return "is not five whole numbers";
		const char *wrong = read_schedule_number(&text, &numbers[i]);
		if (wrong)
			return wrong;
	}
	return *text ? "is not five whole numbers" : NULL;
}

const char *step_schedule_parse(const char *text, struct step_schedule *out)
{
	uint64_t numbers[STEP_SCHEDULE_NUMBERS];
	const char *wrong = read_numbers(text, numbers);
	*out = (struct step_schedule){0};
	if (wrong)
		return wrong;
	if (numbers[3] == 0)
		return "keeps no step: 'active', the fourth number, is 0";
	*out = (struct step_schedule){numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
	return NULL;
}

enum step_phase step_schedule_phase(const struct step_schedule *s, uint64_t step)
{
	if (s->active == 0 || step < s->skip)
		return STEP_PHASE_IDLE;
	const uint64_t cycle = s->wait + s->warmup + s->active;
	const uint64_t since = step - s->skip;
	if (s->repeat > 0 && since / cycle >= s->repeat)
		return STEP_PHASE_IDLE;
	const uint64_t place = since % cycle;
	if (place < s->wait)
		return STEP_PHASE_IDLE;
	return place < s->wait + s->warmup ? STEP_PHASE_WARMUP : STEP_PHASE_ACTIVE;
}

uint64_t step_schedule_kept(const struct step_schedule *s)
{
	return s->repeat > 0 ? s->active * s->repeat : s->active > 0 ? UINT64_MAX : 0;
}
