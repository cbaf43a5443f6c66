/*
 * entropy_openssl.c
 *	  The random generator of OpenSSL's libcrypto, RAND_bytes(3).
 *
 *	  It notices a fork by itself and reseeds from the kernel.
 */
#include "postgres.h"

#include "entropy.h"

#ifdef FU_WITH_OPENSSL
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

static bool
openssl_available(const char **why pg_attribute_unused())
{
	return true;
}

static bool
openssl_fill(uint8 *buf, size_t len, const char **why)
{
	static char reason[256];
	unsigned long code;
	const char *text;

	if (RAND_bytes(buf, (int) len) == 1)
		return true;

	/* Leave no error queued for the server's own use of OpenSSL. */
	code = ERR_get_error();
	ERR_clear_error();
	text = ERR_reason_error_string(code);
	if (text != NULL)
		snprintf(reason, sizeof(reason), "RAND_bytes failed: %s.", text);
	else
		snprintf(reason, sizeof(reason), "RAND_bytes failed with OpenSSL error code %lu.", code);
	*why = reason;
	return false;
}

static const char *
openssl_describe(void)
{
	static char text[128];
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
	bool		fips = EVP_default_properties_is_fips_enabled(NULL);
#else
	bool		fips = FIPS_mode();
#endif

	snprintf(text, sizeof(text), "%s, FIPS mode %s",
			 OpenSSL_version(OPENSSL_VERSION), fips ? "on" : "off");
	return text;
}

#else

static bool
openssl_available(const char **why)
{
	*why = "This build of fast_uuid is without OpenSSL.";
	return false;
}

#define openssl_fill NULL
#define openssl_describe NULL
#endif							/* FU_WITH_OPENSSL */

const EntropySource fu_entropy_openssl = {
	.name = "openssl",
	.cryptographic = true,
	.available = openssl_available,
	.fill = openssl_fill,
	.describe = openssl_describe,
};
