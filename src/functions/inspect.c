/*
 * inspect.c
 *	  For the DBA: the sources, and the statistics of the feed.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "clock.h"
#include "funcapi.h"
#include "functions/arguments.h"
#include "feed/feed.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(fast_uuid_sources);
PG_FUNCTION_INFO_V1(fast_uuid_stats);

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

/* An interval of this many microseconds. */
static Datum
interval_of_us(int64 us)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = us;
	return IntervalPGetDatum(interval);
}

/*
 * fast_uuid_stats() returns table (name text, clock_lead interval,
 *		largest_clock_lead interval, held_back_by integer,
 *		upper_bound timestamptz)
 *
 * Return a row for the feed, with the leads if there is shared memory.  Of a
 * transaction that holds the watermark back (see in_flight.c) only the process
 * ID is shown, as in pg_locks; pg_stat_activity decides who sees what it does.
 * 0: it is prepared.
 */
Datum
fast_uuid_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int64		upper_bound_us = fuuid_feed_upper_bound();
	int			held_back_by = FUUID_HELD_BACK_BY_NONE;
	bool		shared = fuuid_shared_attach();
	Datum		values[5] = {0};
	bool		nulls[5] = {false};

	InitMaterializedSRF(fcinfo, 0);

	/* A standby does not hold the locks of prepared transactions. */
	if (shared && !RecoveryInProgress())
		(void) fuuid_in_flight_first(PG_UINT64_MAX, &held_back_by);

	values[0] = CStringGetTextDatum("feed");
	nulls[1] = nulls[2] = !shared;
	if (shared)
	{
		uint64		last_ns = pg_atomic_read_u64(&fuuid_shared->last_ns);
		uint64		largest_ns = pg_atomic_read_u64(&fuuid_shared->largest_clock_lead_ns);
		uint64		now_ns = fuuid_clock_read();
		uint64		lead_ns = Max(last_ns, now_ns) - now_ns;

		values[1] = interval_of_us(lead_ns / FUUID_NS_PER_US);
		values[2] = interval_of_us(Max(largest_ns, lead_ns) / FUUID_NS_PER_US);
	}
	nulls[3] = held_back_by == FUUID_HELD_BACK_BY_NONE;
	values[3] = Int32GetDatum(held_back_by);
	nulls[4] = upper_bound_us == 0;
	values[4] = TimestampTzGetDatum(upper_bound_us - FUUID_UNIX_TO_POSTGRES_US);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	return (Datum) 0;
}
