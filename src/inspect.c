/*
 * inspect.c
 *	  What a DBA can see: the sources, and what this session has done.
 */
#include "postgres.h"

#include "clock.h"
#include "entropy.h"
#include "fmgr.h"
#include "funcapi.h"
#include "ordering.h"
#include "ordering_instance.h"
#include "settings.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(fast_uuid_sources);
PG_FUNCTION_INFO_V1(fast_uuid_stats);
PG_FUNCTION_INFO_V1(fast_uuid_reset_ordering);

static void
put_row(ReturnSetInfo *result, Datum *values, bool *nulls)
{
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * fast_uuid_sources() returns table (name text, cryptographic boolean,
 *		available boolean, allowed boolean, current boolean,
 *		implementation text, reason text)
 */
Datum
fast_uuid_sources(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < FUUID_ENTROPY_COUNT; i++)
	{
		const EntropySource *source = fuuid_entropy_sources[i];
		const char *reason = NULL;
		bool		available = source->available(&reason);
		bool		allowed = fuuid_allowed_sources >> i & 1;
		const char *implementation = available ? source->describe() : NULL;
		Datum		values[7] = {0};
		bool		nulls[7] = {false};

		if (available && !allowed)
			reason = "Not in fast_uuid.allowed_sources.";

		values[0] = CStringGetTextDatum(source->name);
		values[1] = BoolGetDatum(source->cryptographic);
		values[2] = BoolGetDatum(available);
		values[3] = BoolGetDatum(allowed);
		values[4] = BoolGetDatum(i == fuuid_source);
		if (implementation != NULL)
			values[5] = CStringGetTextDatum(implementation);
		else
			nulls[5] = true;
		if (reason != NULL)
			values[6] = CStringGetTextDatum(reason);
		else
			nulls[6] = true;
		put_row(result, values, nulls);
	}
	return (Datum) 0;
}

static Datum
interval_of_ns(uint64 ns)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = ns / 1000;
	return IntervalPGetDatum(interval);
}

/*
 * A row of fast_uuid_stats() for a scope of the order; what there is nothing to
 * say of (NULL) is null.
 */
static void
put_ordering(ReturnSetInfo *result, const char *name, const OrderingStats *stats)
{
	Datum		values[7] = {0};
	bool		nulls[7] = {false, false, true, true, true, true, true};

	values[0] = CStringGetTextDatum("ordering");
	values[1] = CStringGetTextDatum(name);
	if (stats != NULL)
	{
		struct timespec now;
		uint64		now_ns;
		uint64		lead;

		fuuid_clock_read(&now);
		now_ns = fuuid_ns_of_time(&now);
		values[4] = Int64GetDatum(stats->backward_steps);
		lead = stats->last_ns > now_ns ? stats->last_ns - now_ns : 0;
		values[5] = interval_of_ns(lead);
		values[6] = interval_of_ns(Max(stats->largest_clock_lead_ns, lead));
		nulls[4] = nulls[5] = nulls[6] = false;
	}
	put_row(result, values, nulls);
}

/*
 * fast_uuid_stats() returns table (kind text, name text, refills bigint,
 *		bytes bigint, backward_steps bigint, clock_lead interval, largest_clock_lead interval)
 *
 * A row for each source, then one for each scope of the order.
 */
Datum
fast_uuid_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	OrderingStats stats;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < FUUID_ENTROPY_COUNT; i++)
	{
		Datum		values[7] = {0};
		bool		nulls[7] = {false, false, false, false, true, true, true};

		values[0] = CStringGetTextDatum("source");
		values[1] = CStringGetTextDatum(fuuid_entropy_sources[i]->name);
		values[2] = Int64GetDatum(fuuid_entropy.stats[i].refills);
		values[3] = Int64GetDatum(fuuid_entropy.stats[i].bytes);
		put_row(result, values, nulls);
	}

	fuuid_session_stats(&stats);
	put_ordering(result, "session", &stats);
	put_ordering(result, "instance", fuuid_instance_stats(&stats) ? &stats : NULL);
	return (Datum) 0;
}

/*
 * fast_uuid_reset_ordering() returns void
 *
 * Forget the latest value, so that the next takes the clock's time: of this
 * session, and under instance order of the instance.
 */
Datum
fast_uuid_reset_ordering(PG_FUNCTION_ARGS pg_attribute_unused())
{
	fuuid_ordering_reset();
	PG_RETURN_VOID();
}
