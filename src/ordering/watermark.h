/*
 * watermark.h
 *	  The bound below which a statement sees every row that it ever could.
 */
#ifndef FUUID_WATERMARK_H
#define FUUID_WATERMARK_H

#include "utils/snapshot.h"

/* A watermark that was computed, and the snapshot that was taken after it. */
typedef struct Watermark
{
	uint64		ns;				/* 0: none */
	uint64		since_us;		/* since when it is the newest, or is not any more */
	Oid			database;
	bool		newest;			/* is it the newest one of its database? */
	TransactionId xmax;
	uint32		xcnt;			/* how many below xmax were running */
} Watermark;

/* How many are kept: the newest of each database, and others if they fit. */
#define FUUID_WATERMARKS	128

typedef struct WatermarkHistory
{
	uint32		last;			/* index of the one that was kept last */
	Watermark	kept[FUUID_WATERMARKS];
} WatermarkHistory;

extern uint64 fuuid_watermark_for(Snapshot snapshot);
extern bool fuuid_watermark_is_given(void);
extern void fuuid_watermark_after_wait(void);
extern void fuuid_watermark_forget(void);

#endif							/* FUUID_WATERMARK_H */
