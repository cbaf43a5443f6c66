/*
 * openssl.c
 *	  The random generator of OpenSSL's libcrypto, RAND_bytes(3).
 *
 *	  It notices a fork by itself, and reseeds from the kernel.  It would wait
 *	  until the kernel's generator is seeded.
 */
#include "postgres.h"

#include "entropy/entropy.h"

#ifdef FUUID_WITH_OPENSSL

/* RAND_get_rand_method(), for which OpenSSL 3 has nothing else */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
#include <openssl/evp.h>
#include <openssl/provider.h>
#endif

/* The block size of AES in counter mode, the default generator, in bytes. */
#define BLOCK_SIZE	16

/*
 * OpenSSL's newest error as a sentence.  It says what failed ("unable to fetch
 * drbg"); older ones are of the layers below ("unsupported").
 */
static const char *
newest_error(void)
{
	unsigned long code = ERR_peek_last_error();
	const char *text = ERR_reason_error_string(code);

	if (text == NULL)
		return fuuid_entropy_reason("OpenSSL could not generate random bytes: error code %lu.", code);
	return fuuid_entropy_reason("OpenSSL could not generate random bytes: %s.", text);
}

/* ERR_clear_error() takes 150 ns even for an empty queue. */
static void
clear_errors(void)
{
	if (ERR_peek_error() != 0)
		ERR_clear_error();
}

/*
 * Fill len bytes, or return false.  Only whole blocks are requested, because
 * OpenSSL keeps a copy of one that is requested in part.
 */
static bool
rand_bytes(uint8 *buf, size_t len)
{
	static uint8 block[BLOCK_SIZE];
	int			rest = len % BLOCK_SIZE;
	int			whole = len - rest;
	bool		filled = whole == 0 || RAND_bytes(buf, whole) == 1;

	if (filled && rest > 0)
	{
		filled = RAND_bytes(block, BLOCK_SIZE) == 1;
		memcpy(buf + whole, block, rest);
		explicit_bzero(block, BLOCK_SIZE);
	}
	return filled;
}

/*
 * The error queue is emptied before the request, so that we do not report an
 * error of other code, and after it, so that the server does not find ours.
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
 * The version and, since OpenSSL 3, the generator behind RAND_bytes() and the
 * provider that it is from: "fips" where FIPS is in force.
 */
static const char *
openssl_describe(void)
{
	const char *version = OpenSSL_version(OPENSSL_VERSION);

#if OPENSSL_VERSION_NUMBER >= 0x30000000L
	EVP_RAND_CTX *generator = RAND_get0_public(NULL);

	/* An engine can have taken its place. */
	if (generator != NULL && RAND_get_rand_method() == RAND_OpenSSL())
	{
		EVP_RAND   *rand = EVP_RAND_CTX_get0_rand(generator);

		return fuuid_entropy_reason("%s, %s of provider \"%s\"", version,
									EVP_RAND_get0_name(rand),
									OSSL_PROVIDER_get0_name(EVP_RAND_get0_provider(rand)));
	}
#endif
	return version;
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
