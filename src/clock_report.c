/*
 * clock_report.c
 *	  What the clock is worth: how fine it is, and how right by what the kernel
 *	  says.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "clock.h"
#include "fmgr.h"
#include "funcapi.h"
#include "inspect.h"
#include "ordering_instance.h"
#include "utils/builtins.h"

#ifdef __linux__
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/timex.h>
#include <unistd.h>

#include "mb/pg_wchar.h"
#include "storage/fd.h"

#define CLOCK_SOURCE_FILE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#endif

/* With the end of the line; the kernel's own limit is 32. */
#define CLOCK_SOURCE_SIZE 64

PG_FUNCTION_INFO_V1(fast_uuid_clock);

/* What the kernel knows of its clock, which is what the time daemon has told it. */
typedef struct KernelClock
{
	bool		synchronized;
	int64		estimated_error_us;
	int64		maximum_error_us;
} KernelClock;

#ifdef __linux__

/*
 * The kernel's name for where it takes the time from; CLOCK_SOURCE_SIZE bytes.
 * False where it cannot be told.
 */
static bool
read_clock_source(char *name)
{
	/* Unlike AllocateFile(), this raises no error when it runs out of descriptors. */
	int			fd = BasicOpenFile(CLOCK_SOURCE_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t		len;

	if (fd < 0)
		return false;
	len = read(fd, name, CLOCK_SOURCE_SIZE - 1);
	close(fd);
	if (len <= 0)
		return false;
	name[len] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return name[0] != '\0' && pg_verifymbstr(name, strlen(name), true);
}

/*
 * False where the kernel does not say.
 */
static bool
ask_kernel(KernelClock *clock)
{
	struct timex timex = {.modes = 0};	/* only look */
	int			state;

	/*
	 * A filter of system calls may answer this one by killing the backend, and
	 * then the server ends all others (systemd's @system-service does not list it).
	 */
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) > 0)
		return false;

	state = adjtimex(&timex);
	if (state < 0)
		return false;
	clock->synchronized = state != TIME_ERROR && (timex.status & STA_UNSYNC) == 0;
	clock->estimated_error_us = timex.esterror;
	clock->maximum_error_us = timex.maxerror;
	return true;
}

#else							/* other kernels have other words for it */

static bool
read_clock_source(char *name pg_attribute_unused())
{
	return false;
}

static bool
ask_kernel(KernelClock *clock pg_attribute_unused())
{
	return false;
}
#endif							/* __linux__ */

/*
 * Nanoseconds between two readings of the coarse clock, by which the rows of a set
 * can be behind.  False where there is none.
 */
static bool
coarse_resolution(int32 *ns pg_attribute_unused())
{
#ifdef CLOCK_REALTIME_COARSE
	struct timespec resolution;

	if (clock_getres(CLOCK_REALTIME_COARSE, &resolution) == 0 && resolution.tv_sec == 0)
	{
		*ns = resolution.tv_nsec;
		return true;
	}
#endif
	return false;
}

/*
 * fast_uuid_clock() returns record (resolution_ns integer,
 *		coarse_resolution_ns integer, clock_source text, synchronized boolean,
 *		estimated_error interval, maximum_error interval,
 *		session_lead interval, instance_lead interval)
 *
 * What cannot be told is null; the errors of fuuid_clock_read() are raised.
 */
Datum
fast_uuid_clock(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[8] = {0};
	bool		nulls[8] = {false, true, true, true, true, true, false, true};
	int32		coarse_ns;
	char		clock_source[CLOCK_SOURCE_SIZE];
	KernelClock kernel;
	OrderingStats stats;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	values[0] = Int32GetDatum(fuuid_clock_resolution);
	if (coarse_resolution(&coarse_ns))
	{
		values[1] = Int32GetDatum(coarse_ns);
		nulls[1] = false;
	}
	if (read_clock_source(clock_source))
	{
		values[2] = CStringGetTextDatum(clock_source);
		nulls[2] = false;
	}
	if (ask_kernel(&kernel))
	{
		values[3] = BoolGetDatum(kernel.synchronized);
		values[4] = fuuid_interval_of_us(kernel.estimated_error_us);
		values[5] = fuuid_interval_of_us(kernel.maximum_error_us);
		nulls[3] = nulls[4] = nulls[5] = false;
	}

	fuuid_session_stats(&stats);
	values[6] = fuuid_interval_of_us(fuuid_clock_lead_ns(&stats) / FUUID_NS_PER_US);
	if (fuuid_instance_stats(&stats))
	{
		values[7] = fuuid_interval_of_us(fuuid_clock_lead_ns(&stats) / FUUID_NS_PER_US);
		nulls[7] = false;
	}
	return HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
}
