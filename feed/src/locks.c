/*
 * locks.c
 *	  The locks that stand for what a transaction has published.
 *
 *	  A prepared transaction has no process, and outlives a restart.  It keeps
 *	  what was published as the tags of heavyweight locks, which the server
 *	  keeps, and recovers, until the transaction's end is visible.  So does one
 *	  that has used more sequences than shared memory has room for.
 */
#include "postgres.h"

#include "compat.h"
#include "feed.h"
#include "utils/resowner.h"

/*
 * The lock that stands for a published pair.  No SQL function can take one of
 * this type.  Its tag has room for 48 bits of v0; beyond them it holds back every
 * number of the sequence.
 */
#define V0_OF(tag) ((int64) (tag).locktag_field3 << 16 | (tag).locktag_field4)

static LOCKTAG
tag_of(Oid relid, int64 v0)
{
	uint64		coded = (uint64) v0 >> 48 == 0 ? (uint64) v0 : 0;

	return (LOCKTAG) {
		.locktag_field1 = MyDatabaseId,
		.locktag_field2 = relid,
		.locktag_field3 = (uint32) (coded >> 16),
		.locktag_field4 = (uint16) coded,
		.locktag_type = LOCKTAG_USERLOCK,
		.locktag_lockmethodid = USER_LOCKMETHOD
	};
}

/* Take the lock that stands for a published pair, until the transaction ends. */
void
feed_locks_take(Oid relid, int64 v0)
{
	ResourceOwner owner = CurrentResourceOwner;
	LOCKTAG		tag = tag_of(relid, v0);

	FEED_TEST_POINT("locking");
	CurrentResourceOwner = TopTransactionResourceOwner; /* not a savepoint's */
	(void) LockAcquire(&tag, ShareLock, false, false);
	CurrentResourceOwner = owner;
	FEED_TEST_POINT("locked");

	/*
	 * Count it only once it is held: a reader that does not find the pair any
	 * more must see that it has to look for a lock.
	 */
	feed_marks_add_lock(relid);
	FEED_TEST_POINT("lock_counted");
}

/* Does another transaction hold that lock?  A prepared one counts. */
static bool
is_locked(Oid relid, int64 v0)
{
	LOCKTAG		tag = tag_of(relid, v0);
	int			count;

	pfree(GetLockConflicts(&tag, ExclusiveLock, &count));
	return count > 0;
}

/*
 * The least of this and of all numbers for which a lock of an open sequence stands.
 * To copy all locks of the server takes long.  While none was added, the least is still
 * the one that was found the last time, if it is still there.
 */
int64
feed_locks_least(FeedOpen *open, int64 least)
{
	const FeedSequence *sequence = &open->sequence;
	uint64		count = 0;
	int64		found = PG_INT64_MAX;
	bool		known;
	LockData   *locks;

	known = feed_marks_know_locks(open, &count, &found);
	FEED_TEST_POINT("locks_known");
	if (known &&
		(found == PG_INT64_MAX || is_locked(sequence->relid, found)))
		return Min(least, found);
	locks = GetLockStatusData();
	FEED_TEST_POINT("locks_read");
	found = PG_INT64_MAX;
	for (int i = 0; i < locks->nelements; i++)
	{
		LOCKTAG		tag = locks->locks[i].locktag;

		if (tag.locktag_type == LOCKTAG_USERLOCK &&
			tag.locktag_field1 == MyDatabaseId &&
			tag.locktag_field2 == sequence->relid)
			found = Min(found, V0_OF(tag));
	}
	feed_marks_keep_locks(sequence, count, found);
	FEED_TEST_POINT("locks_kept");
	return Min(least, found);
}
