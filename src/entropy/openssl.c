/*
 * openssl.c
 *	  The random generator of OpenSSL's libcrypto, RAND_bytes(3).
 *
 *	  It notices a fork by itself, and reseeds from the kernel.  It would wait until the
 *	  kernel's generator is seeded.
 */
#include "postgres.h"

#include "entropy/entropy.h"

#ifdef FUUID_WITH_OPENSSL
#define OPENSSL_SUPPRESS_DEPRECATED /* nothing replaces RAND_get_rand_method() */
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
#include <openssl/provider.h>
#endif

/* The block size of AES in counter mode, the default generator, in bytes. */
#define BLOCK_SIZE	16

/*
 * Return OpenSSL's newest error as a sentence, in a static buffer.  It says what failed
 * ("unable to fetch drbg"); older ones are of the layers below ("unsupported").
 */
static const char *
newest_error(void)
{
	static char reason[256];
	unsigned long code = ERR_peek_last_error();
	const char *text = ERR_reason_error_string(code);

	if (text != NULL)
		snprintf(reason, sizeof(reason), "RAND_bytes failed: %s.", text);
	else
		snprintf(reason, sizeof(reason), "RAND_bytes failed with OpenSSL error code %lu.", code);
	return reason;
}

/*
 * Empty OpenSSL's error queue.  ERR_clear_error() takes 150 ns even for an empty one.
 */
static void
clear_errors(void)
{
	if (ERR_peek_error() != 0)
		ERR_clear_error();
}

/*
 * Fill len bytes, or return false.  Only whole blocks are requested, because OpenSSL
 * keeps a copy of a block that is requested in part in its memory.
 */
static bool
rand_bytes(uint8 *buf, size_t len)
{
	static uint8 block[BLOCK_SIZE];
	size_t		rest = len % BLOCK_SIZE;
	bool		filled = len == rest || RAND_bytes(buf, (int) (len - rest)) == 1;

	if (filled && rest > 0)
	{
		filled = RAND_bytes(block, BLOCK_SIZE) == 1;
		memcpy(buf + len - rest, block, rest);
		explicit_bzero(block, BLOCK_SIZE);
	}
	return filled;
}

/*
 * The error queue is emptied before the request, so that we do not report an error of
 * other code, and after it, so that the server's own use of OpenSSL does not find ours.
 */
static bool
openssl_fill(uint8 *buf, size_t len, const char **why)
{
	bool		filled;

	if (!fuuid_entropy_kernel_seeded(why))
		return false;

	clear_errors();
	filled = rand_bytes(buf, len);
	if (!filled)
		*why = newest_error();
	clear_errors();
	return filled;
}

/*
 * Say which generator RAND_bytes uses, and who provides it, in a static buffer.  The
 * property "fips" would not tell, because it can be set while no FIPS provider is loaded.
 */
static const char *
openssl_describe(void)
{
	static char text[256];
	const char *version = OpenSSL_version(OPENSSL_VERSION);

	if (RAND_get_rand_method() != RAND_OpenSSL())
		snprintf(text, sizeof(text), "%s, another generator in place of its own", version);
	else
	{
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
		EVP_RAND   *generator = EVP_RAND_CTX_get0_rand(RAND_get0_public(NULL));

		snprintf(text, sizeof(text), "%s, %s from provider \"%s\"",
				 version, EVP_RAND_get0_name(generator),
				 OSSL_PROVIDER_get0_name(EVP_RAND_get0_provider(generator)));
#else
		snprintf(text, sizeof(text), "%s, FIPS mode %s", version, FIPS_mode() ? "on" : "off");
#endif
	}
	return text;
}
#endif							/* FUUID_WITH_OPENSSL */

const EntropySource fuuid_entropy_openssl = {
	.name = "openssl",
	.cryptographic = true,
#ifdef FUUID_WITH_OPENSSL
	.fill = openssl_fill,
	.describe = openssl_describe,
#else
	.absent = "fast_uuid was built without OpenSSL.",
#endif
};
