/* Rendering and encoding one picture. */
#include "workloads/dataset/maker.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <stdlib.h>

int maker_open(struct maker *maker, const struct recipe *recipe, struct error *err)
{
	*maker = (struct maker){0};
	return encoder_open(&maker->encoder, &recipe->encode, err);
}

void maker_close(struct maker *maker)
{
	encoder_close(maker->encoder);
	free(maker->planes);
	free(maker->rgb);
	*maker = (struct maker){0};
}

static int grow(uint8_t **memory, size_t *room, size_t wanted, struct error *err)
{
	if (wanted <= *room)
		return 0;
	free(*memory);
	*room = 0;
	*memory = malloc(wanted);
	if (!*memory)
		return error_set(err, -ENOMEM, "no memory for a picture of %zu bytes", wanted);
	*room = wanted;
	return 0;
}

int maker_make(struct maker *maker, const struct recipe *recipe, const struct picture_atlas *atlas,
	uint64_t id, uint32_t detail, const uint8_t **bytes, size_t *size, struct error *err)
{
	const uint64_t start = clock_thread_cpu_ns();
	const struct picture_size pixels = recipe_size(recipe, id);
	const bool direct = encoder_takes_planes(&recipe->encode);
	int code = grow(&maker->planes, &maker->planes_room, picture_planes_bytes(pixels), err);
	if (!code && !direct)
		code = grow(&maker->rgb, &maker->rgb_room, (size_t)pixels.width * pixels.height * 3,
			err);
	if (code)
		return code;
	const struct picture_planes planes = picture_planes_place(pixels, maker->planes);
	picture_render(atlas, id, pixels, detail, &planes);
	if (!direct)
		picture_to_rgb(&planes, pixels, maker->rgb);
	const uint64_t encoding = clock_thread_cpu_ns();
	code = direct ? encoder_encode_planes(maker->encoder, &planes, pixels.width, pixels.height,
				bytes, size, err)
		      : encoder_encode(maker->encoder, maker->rgb, pixels.width, pixels.height,
				bytes, size, err);
	const uint64_t end = clock_thread_cpu_ns();
	maker->encode_cpu_ns += end - encoding;
	maker->cpu_ns += end - start;
	return code;
}
