/*
 * benchmark.c
 *	  What randomness costs on this machine, measured in the server.
 */
#include "postgres.h"

#include <math.h>

#include "entropy/entropy.h"
#include "entropy/seed.h"
#include "funcapi.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(fast_uuid_benchmark);

/*
 * The sizes of requests, in bytes: what a UUID takes, those for which others
 * publish figures, and what the default buffer fetches.
 */
static const int request_sizes[] = {8, 16, 64, 256, 1024, 4096};

#define REQUEST_SIZE_MAX	4096
#define MILLISECONDS_MAX	10000

/* Requests between two readings of the clock, which costs as much as a few. */
#define REQUESTS_A_BATCH	16

/* Not on the stack, so that it is wiped if the measuring is cancelled. */
static uint8 buf[REQUEST_SIZE_MAX];

/* The nanoseconds per request, as a mean over this many milliseconds. */
static double
measure_requests(const EntropySource *source, size_t size, int milliseconds)
{
	instr_time	start;
	instr_time	elapsed;
	uint64		requests = 0;

	INSTR_TIME_SET_CURRENT(start);
	do
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < REQUESTS_A_BATCH; i++, requests++)
			fuuid_entropy_fill(source, buf, size);
		INSTR_TIME_SET_CURRENT(elapsed);
		INSTR_TIME_SUBTRACT(elapsed, start);
	} while (INSTR_TIME_GET_DOUBLE(elapsed) * 1000 < milliseconds);

	return INSTR_TIME_GET_DOUBLE(elapsed) * 1e9 / requests;
}

/* Add a row for each size of request to a source, as it is implemented now. */
static void
measure_source(ReturnSetInfo *result, const EntropySource *source,
			   int milliseconds)
{
	for (int i = 0; i < (int) lengthof(request_sizes); i++)
	{
		int			size = request_sizes[i];
		double		ns = measure_requests(source, size, milliseconds);
		Datum		values[5];
		bool		nulls[5] = {false};

		values[0] = CStringGetTextDatum(source->name);
		values[1] = CStringGetTextDatum(source->describe());
		values[2] = Int32GetDatum(size);
		values[3] = Float8GetDatum(rint(ns * 10) / 10);
		values[4] = Float8GetDatum(rint(size * 1e4 / ns) / 10);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
}

/*
 * fast_uuid_benchmark(milliseconds integer DEFAULT 20)
 *		returns table (source text, implementation text, bytes integer,
 *		ns_per_request double precision, mb_per_second double precision)
 *
 * Measure each available source, without buffering, with fast_uuid.vdso on
 * and, if that makes a difference, off.
 */
Datum
fast_uuid_benchmark(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			milliseconds = PG_GETARG_INT32(0);
	bool		vdso = fuuid_vdso;
	XorshiftGenerator *seeded = fuuid_seeded_generator;

	if (milliseconds < 1 || milliseconds > MILLISECONDS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"milliseconds\" must be between 1 and %d",
						MILLISECONDS_MAX)));

	InitMaterializedSRF(fcinfo, 0);
	PG_TRY();
	{
		fuuid_seeded_generator = NULL;	/* its numbers must not be used up */
		for (int i = 0; i < FUUID_ENTROPY_COUNT; i++)
		{
			const EntropySource *source = fuuid_entropy_sources[i];
			const char *why;
			char	   *implementation;

			fuuid_vdso = true;
			if (!fuuid_entropy_available(source, &why))
				continue;
			implementation = pstrdup(source->describe());
			measure_source(result, source, milliseconds);
			fuuid_vdso = false;
			if (strcmp(source->describe(), implementation) != 0)
				measure_source(result, source, milliseconds);
		}
	}
	PG_FINALLY();
	{
		explicit_bzero(buf, sizeof(buf));
		fuuid_vdso = vdso;
		fuuid_seeded_generator = seeded;
	}
	PG_END_TRY();
	return (Datum) 0;
}
