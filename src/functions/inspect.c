/*
 * inspect.c
 *	  Functions for the DBA: the sources, the statistics, the reset of the order.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "clock.h"
#include "entropy/entropy.h"
#include "fmgr.h"
#include "funcapi.h"
#include "functions/arguments.h"
#include "ordering/durable.h"
#include "ordering/in_flight.h"
#include "ordering/instance.h"
#include "ordering/ordering.h"
#include "require_session.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(fast_uuid_sources);
PG_FUNCTION_INFO_V1(fast_uuid_stats);
PG_FUNCTION_INFO_V1(fast_uuid_reset_ordering);

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
		const char *reason;
		bool		available = fuuid_entropy_available(source, &reason);
		bool		allowed = fuuid_allowed_sources >> i & 1;
		const char *implementation = available ? source->describe() : NULL;
		Datum		values[7] = {0};
		bool		nulls[7] = {false};

		if (available)
			reason = allowed ? NULL : "\"fast_uuid.allowed_sources\" does not contain it.";

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
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * An interval of this many microseconds.
 */
static Datum
interval_of_us(int64 us)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = us;
	return IntervalPGetDatum(interval);
}

/*
 * Fill the columns of fast_uuid_stats() for a scope of the order: how far its latest UUID
 * is ahead of the clock now, and the largest lead so far.
 */
static void
fill_ordering(Datum *values, bool *nulls, const OrderingStats *stats)
{
	uint64		now_ns = fuuid_clock_read();
	uint64		lead_ns = stats->last_ns > now_ns ? stats->last_ns - now_ns : 0;

	values[4] = interval_of_us(lead_ns / FUUID_NS_PER_US);
	values[5] = interval_of_us(Max(stats->largest_clock_lead_ns, lead_ns) / FUUID_NS_PER_US);
	nulls[4] = nulls[5] = false;
}

#define STATS_COLUMNS 8

static void
put_stats(ReturnSetInfo *result, const char *kind, const char *name, Datum *values, bool *nulls)
{
	values[0] = CStringGetTextDatum(kind);
	values[1] = CStringGetTextDatum(name);
	nulls[0] = nulls[1] = false;
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	memset(nulls, true, STATS_COLUMNS);
}

/*
 * fast_uuid_stats() returns table (kind text, name text, refills bigint,
 *		bytes bigint, clock_lead interval, largest_clock_lead interval,
 *		held_back_by integer, upper_bound timestamptz)
 *
 * Return a row for each source, then one for each scope of the order.  Of a transaction
 * that holds the watermark back (see in_flight.c) only the process ID is shown, as in
 * pg_locks; pg_stat_activity decides who sees what it does.  0 stands for a prepared
 * transaction.
 */
Datum
fast_uuid_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	OrderingStats stats;
	int64		upper_bound_us = fuuid_durable_upper_bound();
	int			held_back_by = FUUID_HELD_BACK_BY_NONE;
	Datum		values[STATS_COLUMNS] = {0};
	bool		nulls[STATS_COLUMNS];

	memset(nulls, true, sizeof(nulls));
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < FUUID_ENTROPY_COUNT; i++)
	{
		EntropyStats fetched = fuuid_entropy.stats[i];

		values[2] = Int64GetDatum(fetched.refills);
		values[3] = Int64GetDatum(fetched.bytes);
		nulls[2] = nulls[3] = false;
		put_stats(result, "source", fuuid_entropy_sources[i]->name, values, nulls);
	}

	fuuid_session_stats(&stats);
	fill_ordering(values, nulls, &stats);
	put_stats(result, "ordering", "session", values, nulls);

	if (fuuid_instance_stats(&stats))
	{
		fill_ordering(values, nulls, &stats);
		if (!RecoveryInProgress())
			(void) fuuid_in_flight_first(PG_UINT64_MAX, &held_back_by);
		values[6] = Int32GetDatum(held_back_by);
		nulls[6] = held_back_by == FUUID_HELD_BACK_BY_NONE;
	}
	put_stats(result, "ordering", "instance", values, nulls);

	if (upper_bound_us != 0)
	{
		values[7] = TimestampTzGetDatum((TimestampTz) upper_bound_us - FUUID_UNIX_TO_POSTGRES_US);
		nulls[7] = false;
	}
	put_stats(result, "ordering", "durable", values, nulls);
	return (Datum) 0;
}

/*
 * fast_uuid_reset_ordering() returns void
 *
 * Forget the latest UUID of this backend, and under instance and durable order that of
 * the instance, so that the next one takes the clock's time.  Under durable order also
 * return the upper bound of this database to the clock.
 */
Datum
fast_uuid_reset_ordering(PG_FUNCTION_ARGS pg_attribute_unused())
{
	fuuid_require_session("execute fast_uuid_reset_ordering()");
	fuuid_ordering_reset();
	PG_RETURN_VOID();
}
