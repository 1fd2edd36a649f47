/* Sealing: secret boxes, sealed boxes and keyed hashes of libsodium. */
#include "harness/lab/seal.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEAL_KEY_BYTES = 32 };
_Static_assert(crypto_secretbox_KEYBYTES == SEAL_KEY_BYTES &&
		       crypto_box_PUBLICKEYBYTES == SEAL_KEY_BYTES &&
		       crypto_box_SECRETKEYBYTES == SEAL_KEY_BYTES,
	"all keys have 32 bytes");

#define SEAL_BASE64 sodium_base64_VARIANT_URLSAFE_NO_PADDING

int seal_begin(struct error *err)
{
	return sodium_init() < 0 ? error_set(err, -ENOSYS, "libsodium cannot get random numbers")
				 : 0;
}

static bool seal_read_key(const char *text, unsigned char key[SEAL_KEY_BYTES])
{
	size_t size = 0;
	const char *end = NULL;
	const size_t length = strnlen(text, SEAL_SECRET_TEXT);
	return sodium_base642bin(
		       key, SEAL_KEY_BYTES, text, length, NULL, &size, &end, SEAL_BASE64) == 0 &&
	       size == SEAL_KEY_BYTES && end == text + length;
}

bool seal_is_key(const char *text)
{
	unsigned char key[SEAL_KEY_BYTES];
	const bool is = seal_read_key(text, key);
	sodium_memzero(key, sizeof key);
	return is;
}

static void seal_write_key(const unsigned char key[SEAL_KEY_BYTES], char out[SEAL_SECRET_TEXT])
{
	(void)sodium_bin2base64(out, SEAL_SECRET_TEXT, key, SEAL_KEY_BYTES, SEAL_BASE64);
}

void seal_make_secret(char out[SEAL_SECRET_TEXT])
{
	unsigned char key[SEAL_KEY_BYTES];
	randombytes_buf(key, sizeof key);
	seal_write_key(key, out);
	sodium_memzero(key, sizeof key);
}

void seal_make_pair(char public_text[SEAL_SECRET_TEXT], char secret_text[SEAL_SECRET_TEXT])
{
	unsigned char open_key[SEAL_KEY_BYTES];
	unsigned char secret_key[SEAL_KEY_BYTES];
	(void)crypto_box_keypair(open_key, secret_key);
	seal_write_key(open_key, public_text);
	seal_write_key(secret_key, secret_text);
	sodium_memzero(secret_key, sizeof secret_key);
}

/* A key for one purpose out of a student's secret. */
static int seal_derive(const char *secret, const char *purpose, unsigned char out[SEAL_KEY_BYTES],
	struct error *err)
{
	unsigned char key[SEAL_KEY_BYTES];
	if (!seal_read_key(secret, key))
		return error_set(err, -EBADMSG, "the student's secret is damaged");
	(void)crypto_generichash(out, SEAL_KEY_BYTES, (const unsigned char *)purpose,
		strlen(purpose), key, sizeof key);
	sodium_memzero(key, sizeof key);
	return 0;
}

int seal_number(const char *secret, const char *words, uint64_t *number, struct error *err)
{
	unsigned char hash[SEAL_KEY_BYTES];
	const int code = seal_derive(secret, words, hash, err);
	if (!code)
		memcpy(number, hash, sizeof *number);
	return code;
}

/* Bytes as base64 in fresh memory; NULL without memory. */
static char *seal_encode(const unsigned char *bytes, size_t size)
{
	const size_t room = sodium_base64_ENCODED_LEN(size, SEAL_BASE64);
	char *text = malloc(room);
	return text ? sodium_bin2base64(text, room, bytes, size, SEAL_BASE64) : NULL;
}

/* And back; NULL: it is no base64, or there is no memory. */
static unsigned char *seal_decode(const char *text, size_t *size)
{
	const size_t length = strnlen(text, SEAL_TEXT_MAX + 1);
	unsigned char *bytes = length <= SEAL_TEXT_MAX ? malloc(length + 1) : NULL;
	const char *end = NULL;
	if (bytes && (sodium_base642bin(bytes, length + 1, text, length, NULL, size, &end,
			      SEAL_BASE64) != 0 ||
			     end != text + length)) {
		free(bytes);
		bytes = NULL;
	}
	return bytes;
}

int seal_close(const char *secret, const char *text, char **sealed, struct error *err)
{
	unsigned char key[SEAL_KEY_BYTES];
	const size_t size = strlen(text);
	const size_t head = crypto_secretbox_NONCEBYTES;
	*sealed = NULL;
	int code = seal_derive(secret, "mlbench.lab plant", key, err);
	if (code)
		return code;
	unsigned char *box = malloc(head + crypto_secretbox_MACBYTES + size);
	if (box) {
		randombytes_buf(box, head);
		(void)crypto_secretbox_easy(
			box + head, (const unsigned char *)text, size, box, key);
		*sealed = seal_encode(box, head + crypto_secretbox_MACBYTES + size);
	}
	free(box);
	sodium_memzero(key, sizeof key);
	return *sealed ? 0 : error_set(err, -ENOMEM, "out of memory");
}

int seal_open(const char *secret, const char *sealed, char **text, struct error *err)
{
	unsigned char key[SEAL_KEY_BYTES];
	const size_t head = crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES;
	size_t size = 0;
	*text = NULL;
	int code = seal_derive(secret, "mlbench.lab plant", key, err);
	if (code)
		return code;
	unsigned char *box = seal_decode(sealed, &size);
	char *out = box && size >= head ? malloc(size - head + 1) : NULL;
	if (!out ||
		crypto_secretbox_open_easy((unsigned char *)out, box + crypto_secretbox_NONCEBYTES,
			size - crypto_secretbox_NONCEBYTES, box, key) != 0) {
		free(out);
		code = error_set(err, -EBADMSG,
			"what is sealed cannot be opened: it was changed, or belongs to another student");
	} else {
		out[size - head] = '\0';
		*text = out;
	}
	free(box);
	sodium_memzero(key, sizeof key);
	return code;
}

int seal_close_for(const char *public_key, const char *text, char **sealed, struct error *err)
{
	unsigned char key[SEAL_KEY_BYTES];
	const size_t size = strlen(text);
	*sealed = NULL;
	if (!seal_read_key(public_key, key))
		return error_set(err, -EINVAL, "'%.60s' is no public key of a teacher", public_key);
	unsigned char *box = malloc(crypto_box_SEALBYTES + size);
	if (box && crypto_box_seal(box, (const unsigned char *)text, size, key) == 0)
		*sealed = seal_encode(box, crypto_box_SEALBYTES + size);
	free(box);
	return *sealed ? 0 : error_set(err, -EINVAL, "cannot seal for the teacher's key");
}

int seal_open_box(const char *secret_key, const char *sealed, char **text, struct error *err)
{
	unsigned char secret[SEAL_KEY_BYTES];
	unsigned char open_key[SEAL_KEY_BYTES];
	size_t size = 0;
	int code = 0;
	*text = NULL;
	if (!seal_read_key(secret_key, secret))
		return error_set(err, -EINVAL, "this is no secret key of a teacher");
	(void)crypto_scalarmult_base(open_key, secret);
	unsigned char *box = seal_decode(sealed, &size);
	char *out = box && size >= crypto_box_SEALBYTES ? malloc(size - crypto_box_SEALBYTES + 1)
							: NULL;
	if (!out || crypto_box_seal_open((unsigned char *)out, box, size, open_key, secret) != 0) {
		free(out);
		code = error_set(
			err, -EBADMSG, "it was sealed for another teacher's key, or changed");
	} else {
		out[size - crypto_box_SEALBYTES] = '\0';
		*text = out;
	}
	free(box);
	sodium_memzero(secret, sizeof secret);
	return code;
}

int seal_code(const char *secret, const char *text, char out[SEAL_CODE_TEXT], struct error *err)
{
	unsigned char key[SEAL_KEY_BYTES];
	unsigned char hash[SEAL_KEY_BYTES];
	const int code = seal_derive(secret, "mlbench.lab state", key, err);
	if (code)
		return code;
	(void)crypto_generichash(
		hash, sizeof hash, (const unsigned char *)text, strlen(text), key, sizeof key);
	(void)sodium_bin2hex(out, SEAL_CODE_TEXT, hash, sizeof hash);
	sodium_memzero(key, sizeof key);
	return 0;
}

bool seal_code_equal(const char *a, const char *b)
{
	return strlen(a) == strlen(b) && sodium_memcmp(a, b, strlen(a)) == 0;
}
