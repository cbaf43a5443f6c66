/*
 * faults.c
 *	  SQL-callable functions by which a session gets faults, and sees what it has
 *	  requested: see preload_faults.c.  load_cancelled() loads a library while a cancel
 *	  waits.
 */
#include "postgres.h"

#include <dlfcn.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

/* Of OpenSSL's headers, which a build without it has not got. */
#define OPENSSL_LIB_RAND		36
#define OPENSSL_OUT_OF_RANGE	105

PG_FUNCTION_INFO_V1(inject_fault);
PG_FUNCTION_INFO_V1(requests_made);
PG_FUNCTION_INFO_V1(openssl_error);
PG_FUNCTION_INFO_V1(load_cancelled);

static void *
function(const char *name)
{
	void	   *found = dlsym(RTLD_DEFAULT, name);

	if (found == NULL)
		ereport(ERROR, (errmsg("the server runs without %s()", name)));
	return found;
}

/*
 * inject_fault(faults text): '' lifts them.  Returns true, so that it can be called in the
 * middle of a statement, in a WHERE clause.
 */
Datum
inject_fault(PG_FUNCTION_ARGS)
{
	void		(*inject) (const char *) = (void (*) (const char *)) function("inject");

	inject(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_BOOL(true);
}

/*
 * Requests for random bytes since the latest call of this function or the one above.
 */
Datum
requests_made(PG_FUNCTION_ARGS pg_attribute_unused())
{
	const char *(*requests) (void) = (const char *(*) (void)) function("requests");

	PG_RETURN_TEXT_P(cstring_to_text(requests()));
}

/*
 * openssl_error(queue boolean): has OpenSSL an error queued in this session?  With true one
 * is ("argument out of range"), as by another user of OpenSSL.
 */
Datum
openssl_error(PG_FUNCTION_ARGS)
{
	unsigned long (*peek) (void) = (unsigned long (*) (void)) function("ERR_peek_error");
	void		(*err_new) (void) = (void (*) (void)) function("ERR_new");
	void		(*err_set_error) (int, int, const char *,...) =
		(void (*) (int, int, const char *,...)) function("ERR_set_error");

	if (PG_GETARG_BOOL(0))
	{
		err_new();
		err_set_error(OPENSSL_LIB_RAND, OPENSSL_OUT_OF_RANGE, NULL);
	}
	PG_RETURN_BOOL(peek() != 0);
}

/*
 * load_cancelled(file text): load a library while a cancel of the query waits.
 */
Datum
load_cancelled(PG_FUNCTION_ARGS)
{
	char	   *file = text_to_cstring(PG_GETARG_TEXT_PP(0));

	QueryCancelPending = true;
	InterruptPending = true;
	load_file(file, false);
	CHECK_FOR_INTERRUPTS();
	PG_RETURN_BOOL(true);
}
