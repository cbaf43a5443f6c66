/*
 * faults.c
 *	  SQL-callable functions that bring faults upon the session that calls
 *	  them, and lift them.  All return true, so that they can be called in the
 *	  middle of a statement, in a WHERE clause.
 */
#include "postgres.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

/* Of OpenSSL's headers, which a build without it has not got. */
#define OPENSSL_LIB_RAND		36
#define OPENSSL_OUT_OF_RANGE	105

PG_FUNCTION_INFO_V1(inject_fault);
PG_FUNCTION_INFO_V1(openssl_error_queued);
PG_FUNCTION_INFO_V1(queue_openssl_error);
PG_FUNCTION_INFO_V1(limit_descriptors);
PG_FUNCTION_INFO_V1(take_descriptors);
PG_FUNCTION_INFO_V1(limit_memory);
PG_FUNCTION_INFO_V1(load_cancelled);

/*
 * inject_fault(fault text): see preload_faults.c; '' lifts it.
 */
Datum
inject_fault(PG_FUNCTION_ARGS)
{
	void		(*inject) (const char *) = (void (*) (const char *)) dlsym(RTLD_DEFAULT, "inject");

	if (inject == NULL)
		ereport(ERROR, (errmsg("the server runs without preload_faults.so")));
	inject(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_BOOL(true);
}

/*
 * Has OpenSSL an error queued in this session?
 */
Datum
openssl_error_queued(PG_FUNCTION_ARGS pg_attribute_unused())
{
	unsigned long (*peek) (void) = (unsigned long (*) (void)) dlsym(RTLD_DEFAULT, "ERR_peek_error");

	PG_RETURN_BOOL(peek() != 0);
}

/*
 * Queue an error ("argument out of range") as another user of OpenSSL would.
 */
Datum
queue_openssl_error(PG_FUNCTION_ARGS pg_attribute_unused())
{
	void		(*err_new) (void) = (void (*) (void)) dlsym(RTLD_DEFAULT, "ERR_new");
	void		(*err_set_error) (int, int, const char *,...) =
		(void (*) (int, int, const char *,...)) dlsym(RTLD_DEFAULT, "ERR_set_error");

	err_new();
	err_set_error(OPENSSL_LIB_RAND, OPENSSL_OUT_OF_RANGE, NULL);
	PG_RETURN_BOOL(true);
}

/*
 * Set a limit; 0: as high as it may be.
 */
static void
set_limit(int resource, rlim_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) != 0)
		ereport(ERROR, (errmsg("getrlimit: %m")));
	limit.rlim_cur = value > 0 ? value : limit.rlim_max;
	if (setrlimit(resource, &limit) != 0)
		ereport(ERROR, (errmsg("setrlimit: %m")));
}

/*
 * limit_descriptors(count integer): this many may be open; 0 lifts the limit.
 * Those that are open already stay so.
 */
Datum
limit_descriptors(PG_FUNCTION_ARGS)
{
	set_limit(RLIMIT_NOFILE, PG_GETARG_INT32(0));
	PG_RETURN_BOOL(true);
}

/*
 * take_descriptors(take boolean): open files until there is no descriptor
 * left, under a limit just above those in use; false: give them back.
 */
Datum
take_descriptors(PG_FUNCTION_ARGS)
{
	static int	taken[4096];
	static int	count = 0;

	if (PG_GETARG_BOOL(0))
	{
		int			fd = open("/dev/null", O_RDONLY);

		set_limit(RLIMIT_NOFILE, Max(fd, 64) + 1);
		while (fd >= 0 && count < (int) lengthof(taken))
		{
			taken[count++] = fd;
			fd = open("/dev/null", O_RDONLY);
		}
	}
	else
	{
		while (count > 0)
			close(taken[--count]);
		set_limit(RLIMIT_NOFILE, 0);
	}
	PG_RETURN_BOOL(true);
}

/*
 * limit_memory(headroom integer): the address space may grow by this many
 * kB; NULL lifts the limit.
 */
Datum
limit_memory(PG_FUNCTION_ARGS)
{
	FILE	   *statm;
	unsigned long pages;

	if (PG_ARGISNULL(0))
	{
		set_limit(RLIMIT_AS, 0);
		PG_RETURN_BOOL(true);
	}
	statm = fopen("/proc/self/statm", "r");
	if (statm == NULL || fscanf(statm, "%lu", &pages) != 1)
		ereport(ERROR, (errmsg("could not read /proc/self/statm")));
	fclose(statm);
	set_limit(RLIMIT_AS, (rlim_t) pages * sysconf(_SC_PAGESIZE) + PG_GETARG_INT32(0) * 1024L);
	PG_RETURN_BOOL(true);
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
