/*
 * feed.h
 *	  Functions shared among the source files.  Each file calls only those that
 *	  are declared above its own.
 */
#ifndef FEED_H
#define FEED_H

#include "access/xlogdefs.h"
#include "commands/trigger.h"
#include "compat.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "portability/instr_time.h"
#include "shared.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/*
 * Points at which a test build ("make TEST_POINTS=yes") can be held up, to force
 * an interleaving, by test/modules/test_points.c, which is loaded before.
 */
#ifdef FEED_TEST_POINTS
extern void feed_test_point(const char *name);
#define FEED_TEST_POINT(name)	feed_test_point(name)
#else
#define FEED_TEST_POINT(name)	((void) 0)
#endif

/* Raise ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, with errmsg() and so on. */
#define FEED_STATE_ERROR(...) \
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), \
					__VA_ARGS__))

/* memory.c: shared memory, NULL until attached, and this backend's part of it. */
extern FeedShared *feed_shared;
extern int	feed_my_number;
extern FeedDatabase *feed_my_database;

extern void feed_memory_init(void);
extern void feed_join(void);
extern void feed_leave(void);

/* Microseconds of the clock that nobody can set. */
static inline uint64
feed_monotonic_us(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_MICROSEC(now);
}

/* sequence.c: PostgreSQL's sequences, and what they have given. */

/* A sequence that is open. */
typedef struct FeedOpen
{
	Relation	relation;
	FeedSequence sequence;
	int64		last;			/* the last number given; 0 or more */
	XLogRecPtr	lsn;			/* of its page */
	bool		is_logged;		/* was the page written to the WAL by us? */
	LOCKMODE	lock;			/* which closing it releases */
} FeedOpen;

/* Where the page of a sequence was the last time. */
typedef struct FeedLocation
{
	FeedLocator file;
	int			buffer;			/* InvalidBuffer if that is not known */
} FeedLocation;

extern void feed_sequence_open_again(FeedOpen *open, Oid relid);
extern void feed_sequence_open(FeedOpen *open, Oid relid);
extern void feed_sequence_open_to_draw(FeedOpen *open, Oid relid);
extern void feed_sequence_read(FeedOpen *open,
							   void (*with_page) (FeedOpen *, void *),
							   void *arg);
extern int64 feed_sequence_last(FeedLocation *location, Oid relid);
extern void feed_sequence_log(FeedOpen *open);
extern void feed_sequence_close(FeedOpen *open);

/* marks.c: bounds that were computed lately, with their snapshots. */
extern int64 feed_marks_highest(const FeedSequence *sequence);
extern void feed_marks_add_lock(Oid relid);
extern bool feed_marks_know_locks(FeedOpen *open, uint64 *count, int64 *least);
extern void feed_marks_keep_locks(const FeedSequence *sequence, uint64 count,
								  int64 least);
extern int64 feed_marks_exchange(const FeedOpen *open, const FeedMark *mark,
								 const TransactionId *running,
								 Snapshot snapshot);

/* locks.c: the locks that stand for what a transaction has published. */
extern void feed_locks_take(Oid relid, int64 v0);
extern int64 feed_locks_least(FeedOpen *open, int64 least);

/* in_flight.c: transactions that have drawn numbers, or are about to. */

/* What this transaction has published. */
typedef struct FeedPublished
{
	Oid			relid;
	Oid			file;
	int64		v0;				/* its numbers are above */
	int64		highest;		/* bound that was kept when this was published */
	int64		passed;			/* the greatest that a guard let pass */
	uint64		changes;		/* feed_column_changes, when its file was looked at */
	FeedLocation location;
	Oid			drawer;			/* the role that was allowed to draw then */
	bool		is_locked;		/* is there a lock that stands for it? */
} FeedPublished;

extern void feed_in_flight_init(void);
extern void feed_in_flight_join(void);
extern bool feed_in_flight_has_published(void);
extern FeedPublished *feed_in_flight_find(Oid relid, uint64 changes);
extern FeedPublished *feed_in_flight_open(FeedOpen *open, Oid relid);
extern FeedPublished *feed_in_flight_publish(FeedOpen *open);
extern int64 feed_in_flight_least(FeedOpen *open);

/* column.c: columns that are followed, and their sequences. */

/* What a trigger of ours is about. */
typedef struct FeedColumn
{
	Oid			trigger;		/* the key */
	Oid			relation;		/* of the trigger, perhaps a partition */
	Oid			followed;		/* the table that was enabled */
	Oid			owner;			/* of the table on which it was created */
	Oid			sequence;
	Oid			sequence_owner;
	Oid			type;			/* int8 or int4 */
	AttrNumber	attnum;			/* in "relation" */
	uint64		created;		/* the trigger was, by this full transaction ID;
								 * 0 if that is known to every snapshot */
	CommandId	command;		/* and by this one of it */
	uint32		sequence_hash;	/* in SEQRELID's cache */
	uint64		tree_changes;	/* when the partitions were right */
	List	   *partitions;		/* their columns */
	uint64		latest;			/* the greatest "created" of theirs */
	bool		owned;			/* does the sequence belong to the column? */
	bool		unique;			/* does an index exclude equal numbers? */
	bool		valid;
} FeedColumn;

extern uint64 feed_column_changes;
extern uint64 feed_column_own_changes;

extern void feed_column_init(void);
extern FeedColumn *feed_column_of(Relation relation, const Trigger *trigger);
extern const FeedColumn *feed_column_of_call(FunctionCallInfo fcinfo,
											 bool for_each_row);
extern void feed_column_require_privilege(const FeedColumn *column);

/* followed.c: tables that readers can follow. */
extern Oid	feed_followed(Oid table, const char *name, Oid namespace,
						  Snapshot snapshot);

/* watermark.c: the bound below which a statement sees all that it ever could. */
extern bool feed_watermark_is_given(void);
extern void feed_require_primary(const char *what);

#endif							/* FEED_H */
