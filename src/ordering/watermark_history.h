/*
 * watermark_history.h
 *	  Recent watermarks, and the snapshots for which they are right (is_right_for()).
 */
#ifndef FUUID_WATERMARK_HISTORY_H
#define FUUID_WATERMARK_HISTORY_H

#include "storage/lwlock.h"
#include "utils/snapshot.h"

typedef struct Watermark
{
	uint64		ns;				/* 0: none */
	uint64		epoch;			/* in which it was computed */
	uint64		number;			/* ascends in the order in which they were added */
	Oid			database;
	bool		newest;			/* is it the newest one of its database? */

	/* The snapshot taken after it: its xmax, and how many below that were running. */
	TransactionId xmax;
	uint32		xcnt;
} Watermark;

/* How many are kept: the newest of each database, and others, as there is room. */
#define FUUID_WATERMARKS	128

typedef struct WatermarkHistory
{
	LWLock		lock;
	uint32		last;			/* index of the one that was added last */
	uint64		added;			/* number of watermarks added so far */
	Watermark	kept[FUUID_WATERMARKS];
} WatermarkHistory;

extern bool fuuid_watermark_history_add(uint64 *watermark_ns, Snapshot taken, uint64 epoch, Snapshot snapshot);

#endif							/* FUUID_WATERMARK_HISTORY_H */
