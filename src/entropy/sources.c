/*
 * sources.c
 *	  For the DBA: the sources, and what this session has fetched from them.
 */
#include "postgres.h"

#include "entropy/entropy.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(fast_uuid_sources);

/*
 * fast_uuid_sources() returns table (name text, cryptographic boolean,
 *		available boolean, allowed boolean, current boolean,
 *		implementation text, reason text, refills bigint, bytes bigint)
 */
Datum
fast_uuid_sources(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < FUUID_ENTROPY_COUNT; i++)
	{
		const EntropySource *source = fuuid_entropy_sources[i];
		const char *reason;
		bool		available = fuuid_entropy_available(source, &reason);
		bool		allowed = fuuid_allowed_sources >> i & 1;
		const char *implementation = available ? source->describe() : NULL;
		Datum		values[9] = {0};
		bool		nulls[9] = {false};

		if (available)
			reason = allowed ? NULL :
				"\"fast_uuid.allowed_sources\" does not contain it.";

		values[0] = CStringGetTextDatum(source->name);
		values[1] = BoolGetDatum(source->cryptographic);
		values[2] = BoolGetDatum(available);
		values[3] = BoolGetDatum(allowed);
		values[4] = BoolGetDatum(i == fuuid_source);
		nulls[5] = implementation == NULL;
		if (implementation != NULL)
			values[5] = CStringGetTextDatum(implementation);
		nulls[6] = reason == NULL;
		if (reason != NULL)
			values[6] = CStringGetTextDatum(reason);
		values[7] = Int64GetDatum(fuuid_entropy.buffer[i].refills);
		values[8] = Int64GetDatum(fuuid_entropy.buffer[i].bytes);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
