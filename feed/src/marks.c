/*
 * marks.c
 *	  The bounds that were computed lately, with their snapshots.
 *
 *	  Often a transaction ends between a statement's snapshot and its call of
 *	  watermark().  Then what this computes is not right for the snapshot, but
 *	  what an earlier call has computed often is, in whichever backend.  So
 *	  shared memory keeps some, at intervals that grow with their age: a snapshot
 *	  that is half a minute old, too, finds one that is not much older.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "feed.h"

/* Older marks make room first. */
#define OLD_US	(UINT64CONST(600) * USECS_PER_SEC)

/* The transactions that were running for a mark of a place. */
static TransactionId *
running_for(const FeedPlace *place, int mark)
{
	return (TransactionId *)
		((char *) feed_shared +
		 FEED_RUNNING_OFFSET((place - feed_shared->places) * FEED_MARKS + mark));
}

/*
 * Is a mark right for a snapshot?  It is if the snapshot knows of the end of
 * each transaction that had ended for the mark's own snapshot, that is, was
 * below its xmax and not running.  This holds for all snapshots, also for that
 * of a logical slot, which xmax does not order.
 *
 * The server lists transactions by process.  So two snapshots mostly list the same
 * ones in the same order, and what is looked for comes next.
 */
static bool
is_right_for(const FeedMark *mark, const TransactionId *running,
			 Snapshot snapshot)
{
	uint32		next = 0;

	if (TransactionIdFollows(mark->xmax, snapshot->xmax))
		return false;
	if (snapshot->xcnt == 0 ||
		(snapshot->xcnt <= mark->xcnt &&
		 memcmp(snapshot->xip, running, snapshot->xcnt * sizeof(TransactionId)) == 0))
		return true;
	for (uint32 i = 0; i < snapshot->xcnt; i++)
	{
		uint32		passed = 0;

		if (!TransactionIdPrecedes(snapshot->xip[i], mark->xmax))
			continue;
		for (; passed < mark->xcnt && running[next] != snapshot->xip[i]; passed++)
			next = next + 1 < mark->xcnt ? next + 1 : 0;
		if (passed == mark->xcnt)
			return false;
	}
	return true;
}

/*
 * The place of a sequence, or NULL.  The caller holds the lock.  Where a place was
 * found last is looked at first.
 */
static FeedPlace *
find_place(const FeedSequence *sequence)
{
	static uint16 found_last[64];
	uint16	   *found = &found_last[sequence->relid % lengthof(found_last)];

	for (int i = -1; i < FEED_PLACES; i++)
	{
		int			place = i < 0 ? *found : i;

		if (memcmp(&feed_shared->sequences[place], sequence,
				   sizeof(FeedSequence)) == 0)
		{
			*found = place;
			return &feed_shared->places[place];
		}
	}
	return NULL;
}

/* How many places an owner of sequences has in a database; InvalidOid: all do. */
typedef struct Share
{
	Oid			database;
	Oid			owner;
	uint32		places;
} Share;

/* A hash table that is never more than half full. */
#define SHARES	(4 * FEED_PLACES + 4)

static uint32 *
share_of(Share *shares, Oid database, Oid owner)
{
	uint32		i = hash_combine(murmurhash32(database), murmurhash32(owner)) % SHARES;

	while (shares[i].places != 0 &&
		   (shares[i].database != database || shares[i].owner != owner))
		i = (i + 1) % SHARES;
	shares[i].database = database;
	shares[i].owner = owner;
	return &shares[i].places;
}

/*
 * Take a place for another sequence: one that is free, or was not asked for as
 * long as marks are kept; or that which was not asked for the longest time, of
 * the owner who has most in the database that has most, this one counted.  So who
 * has many sequences displaces his own, unless another one has more.
 */
static FeedPlace *
take_place(const FeedOpen *open)
{
	Oid			owner = open->relation->rd_rel->relowner;
	uint64		now_us = feed_monotonic_us();
	FeedPlace  *taken = NULL;
	uint64		most = 0;
	Share		shares[SHARES] = {0};

	(*share_of(shares, MyDatabaseId, InvalidOid))++;
	(*share_of(shares, MyDatabaseId, owner))++;
	for (int i = 0; i < FEED_PLACES; i++)
	{
		(*share_of(shares, feed_shared->sequences[i].database, InvalidOid))++;
		(*share_of(shares, feed_shared->sequences[i].database, feed_shared->places[i].owner))++;
	}
	for (int i = 0; i < FEED_PLACES; i++)
	{
		FeedPlace  *place = &feed_shared->places[i];
		Oid			database = feed_shared->sequences[i].database;
		bool		is_idle = now_us - place->asked_us > OLD_US;
		uint64		share = place->asked_us == 0 || is_idle ? PG_UINT64_MAX :
			(uint64) *share_of(shares, database, InvalidOid) << 32 |
			*share_of(shares, database, place->owner);

		if (share > most ||
			(share == most && place->asked_us < taken->asked_us))
		{
			taken = place;
			most = share;
		}
	}
	feed_shared->sequences[taken - feed_shared->places] = open->sequence;
	taken->owner = owner;
	taken->is_logged = false;
	taken->count = 0;

	/*
	 * There may be locks of before, so they have to be looked for once.  The count
	 * begins at a number that was never used, so that a backend which has read an
	 * old one cannot keep here what it has found.
	 */
	taken->locks_read = 0;
	pg_atomic_write_u64(&taken->locks, ++feed_shared->places_taken << 32);
	return taken;
}

/*
 * The mark that makes room, as an index of "order": that without which the gap
 * between its neighbours is the smallest, in proportion to their age.  So the
 * ages of those that stay grow by a factor.
 */
static int
least_useful(const FeedPlace *place, uint64 now_us)
{
	int			least = FEED_MARKS - 1;
	double		least_gap = 2;
	uint64		later_us = now_us;

	if (now_us - place->marks[place->order[least]].kept_us > OLD_US)
		return least;
	for (int i = 0; i < FEED_MARKS - 1; i++)
	{
		uint64		earlier_us = place->marks[place->order[i + 1]].kept_us;
		double		gap = (later_us - earlier_us) / (now_us - earlier_us + 1.0);

		if (gap < least_gap)
		{
			least_gap = gap;
			least = i;
		}
		later_us = place->marks[place->order[i]].kept_us;
	}
	return least;
}

/*
 * Keep a mark as the latest one, unless that says the same, or another backend
 * has computed a higher one and was faster to keep it.
 */
static void
keep(FeedPlace *place, const FeedMark *mark, const TransactionId *running)
{
	Size		size = mark->xcnt * sizeof(TransactionId);
	const FeedMark *latest = &place->marks[place->order[0]];
	int			i = place->count;
	uint8		free;

	place->asked_us = feed_monotonic_us();
	if (place->count > 0 &&
		(latest->bound > mark->bound ||
		 (latest->bound == mark->bound && latest->xmax == mark->xmax &&
		  latest->xcnt == mark->xcnt &&
		  memcmp(running_for(place, place->order[0]), running, size) == 0)))
		return;
	if (i < FEED_MARKS)
		free = place->count++;
	else
	{
		i = least_useful(place, place->asked_us);
		free = place->order[i];
	}
	memmove(&place->order[1], &place->order[0], i);
	place->order[0] = free;
	place->marks[free] = *mark;
	place->marks[free].kept_us = place->asked_us;
	Assert(size <= FEED_RUNNING_SIZE);
	memcpy(running_for(place, free), running, size);
}

/*
 * The greatest bound of a kept mark, not above upto, that is right for a
 * snapshot; 0 if none is.  The later ones come first, and are not smaller.
 */
static int64
find_right(const FeedPlace *place, int64 upto, Snapshot snapshot)
{
	for (int i = 0; i < place->count; i++)
	{
		const FeedMark *mark = &place->marks[place->order[i]];

		if (mark->bound <= upto &&
			is_right_for(mark, running_for(place, place->order[i]), snapshot))
			return mark->bound;
	}
	return 0;
}

/*
 * Keep a mark that was just computed, and return the greatest bound, of this or
 * another one of the sequence, that is right for a snapshot; 0 if none is.
 * What is above this one's is from before the sequence went back.
 */
int64
feed_marks_exchange(const FeedOpen *open, const FeedMark *mark,
					const TransactionId *running, Snapshot snapshot)
{
	int64		found = is_right_for(mark, running, snapshot) ? mark->bound : 0;
	FeedPlace  *place;

	FEED_TEST_POINT("exchanging");
	LWLockAcquire(&feed_shared->lock, LW_EXCLUSIVE);
	FEED_TEST_POINT("exchange_locked");
	place = find_place(&open->sequence);
	if (place == NULL)
		place = take_place(open);
	place->is_logged |= open->is_logged;
	if (found == 0)
		found = find_right(place, mark->bound, snapshot);
	keep(place, mark, running);
	LWLockRelease(&feed_shared->lock);
	return found;
}

/* The highest bound that is kept for a sequence; 0 if none is. */
int64
feed_marks_highest(const FeedSequence *sequence)
{
	const FeedPlace *place;
	int64		highest = 0;

	LWLockAcquire(&feed_shared->lock, LW_SHARED);
	place = find_place(sequence);
	if (place != NULL && place->count > 0)
		highest = place->marks[place->order[0]].bound;
	LWLockRelease(&feed_shared->lock);
	return highest;
}

/* A lock of a sequence was taken, in whichever file: see in_flight.c. */
void
feed_marks_add_lock(Oid relid)
{
	LWLockAcquire(&feed_shared->lock, LW_SHARED);
	for (int i = 0; i < FEED_PLACES; i++)
		if (feed_shared->sequences[i].database == MyDatabaseId &&
			feed_shared->sequences[i].relid == relid)
			pg_atomic_fetch_add_u64(&feed_shared->places[i].locks, 1);
	LWLockRelease(&feed_shared->lock);
}

/*
 * Is it known which locks of an open sequence there are?  *count becomes how many
 * were taken, and *least the least v0 of those that were found.  Sets
 * open->is_logged as well.
 */
bool
feed_marks_know_locks(FeedOpen *open, uint64 *count, int64 *least)
{
	FeedPlace  *place;
	bool		result = false;

	LWLockAcquire(&feed_shared->lock, LW_SHARED);
	place = find_place(&open->sequence);
	if (place != NULL)
	{
		open->is_logged = place->is_logged;
		*count = pg_atomic_read_u64(&place->locks);
		*least = place->least_lock;
		result = *count == place->locks_read;
	}
	LWLockRelease(&feed_shared->lock);
	return result;
}

/* Of so many locks that were taken this is the least; PG_INT64_MAX if none. */
void
feed_marks_keep_locks(const FeedSequence *sequence, uint64 count, int64 least)
{
	FeedPlace  *place;

	LWLockAcquire(&feed_shared->lock, LW_EXCLUSIVE);
	place = find_place(sequence);
	if (place != NULL)
	{
		place->locks_read = count;
		place->least_lock = least;
	}
	LWLockRelease(&feed_shared->lock);
}
