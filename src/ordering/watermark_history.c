/*
 * watermark_history.c
 *	  Recent watermarks, and the snapshots for which they are right (is_right_for()).
 *
 *	  A transaction often ends between a statement's snapshot and its call of
 *	  uuidv7_fast_watermark().  Then the watermark that this call computes is not right
 *	  for the snapshot, but that of an earlier call often is, whichever backend made it.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "ordering/instance.h"
#include "ordering/shared.h"
#include "ordering/watermark_history.h"
#include "utils/builtins.h"

/*
 * Is a watermark right for a snapshot?  It is if the snapshot knows of the end of each
 * transaction that had ended for the watermark's own snapshot, that is, was below its
 * xmax and not running.  This holds for all snapshots, also for that of a logical slot,
 * which xmax does not order.
 */
static bool
is_right_for(const Watermark *watermark, const TransactionId *running, Snapshot snapshot)
{
	if (TransactionIdFollows(watermark->xmax, snapshot->xmax))
		return false;
	for (uint32 i = 0; i < snapshot->xcnt; i++)
	{
		if (TransactionIdPrecedes(snapshot->xip[i], watermark->xmax) &&
			bsearch(&snapshot->xip[i], running, watermark->xcnt, sizeof(TransactionId), xidComparator) == NULL)
			return false;
	}
	return true;
}

/*
 * Describe in a watermark the snapshot that was taken after it.  Returns the transactions
 * that were running, sorted, palloc'd.  This backend's own transaction is among them,
 * because for other backends it is running.
 */
static TransactionId *
describe_snapshot(Watermark *watermark, Snapshot taken)
{
	TransactionId *running = palloc((taken->xcnt + 1) * sizeof(TransactionId));
	TransactionId own = GetTopTransactionIdIfAny();

	watermark->database = MyDatabaseId;
	watermark->newest = true;
	watermark->xmax = taken->xmax;
	watermark->xcnt = taken->xcnt;
	if (taken->xcnt > 0)
		memcpy(running, taken->xip, taken->xcnt * sizeof(TransactionId));
	if (TransactionIdIsValid(own) && TransactionIdPrecedes(own, taken->xmax))
		running[watermark->xcnt++] = own;
	qsort(running, watermark->xcnt, sizeof(TransactionId), xidComparator);
	return running;
}

static bool
has_last_snapshot(const WatermarkHistory *history, const Watermark *watermark, const TransactionId *running)
{
	const Watermark *last = &history->kept[history->last];

	return last->epoch == watermark->epoch && last->database == watermark->database &&
		last->xmax == watermark->xmax && last->xcnt == watermark->xcnt &&
		memcmp(fuuid_shared_running(history->last), running, last->xcnt * sizeof(TransactionId)) == 0;
}

/*
 * Keep a watermark in the place of the oldest that is not the newest of its database: a
 * reader that seldom asks must find one of its database, however often others ask.  If
 * the last one has the same snapshot, keep the greater of the two in its place.
 */
static void
keep_watermark(WatermarkHistory *history, const Watermark *watermark, const TransactionId *running)
{
	Watermark  *last = &history->kept[history->last];
	Watermark  *place = &history->kept[0];

	if (has_last_snapshot(history, watermark, running))
	{
		last->ns = Max(last->ns, watermark->ns);
		return;
	}
	for (Watermark *other = place; other < history->kept + FUUID_WATERMARKS; other++)
	{
		if (other->database == watermark->database)
			other->newest = false;
		if (other->newest == place->newest ? other->number < place->number : place->newest)
			place = other;
	}
	*place = *watermark;
	place->number = ++history->added;
	history->last = place - history->kept;
	if (watermark->xcnt > 0)
		memcpy(fuuid_shared_running(history->last), running, watermark->xcnt * sizeof(TransactionId));
}

/*
 * The greatest kept watermark above found_ns, of this database and epoch, that is right
 * for a snapshot; found_ns if none is.  One from before a reset does not bound what is
 * generated after it.  The last ones come first: mostly they are the greatest, and those
 * below one that is right need not be compared.
 */
static uint64
find_watermark(const WatermarkHistory *history, uint64 epoch, Snapshot snapshot, uint64 found_ns)
{
	for (uint32 n = 0; n < FUUID_WATERMARKS; n++)
	{
		uint32		i = (history->last + FUUID_WATERMARKS - n) % FUUID_WATERMARKS;
		const Watermark *other = &history->kept[i];

		if (other->ns > found_ns && other->epoch == epoch && other->database == MyDatabaseId &&
			is_right_for(other, fuuid_shared_running(i), snapshot))
			found_ns = other->ns;
	}
	return found_ns;
}

/*
 * Keep *watermark_ns, a watermark of this database that was computed in that epoch,
 * before "taken" was taken.  Replace it by the greatest that is right for "snapshot", or
 * by 0 if none is.  Returns false, and does nothing, if the instance was reset since that
 * epoch.
 */
bool
fuuid_watermark_history_add(uint64 *watermark_ns, Snapshot taken, uint64 epoch, Snapshot snapshot)
{
	WatermarkHistory *history = &fuuid_shared->watermarks;
	Watermark	added = {.ns = *watermark_ns, .epoch = epoch};
	TransactionId *running = describe_snapshot(&added, taken);
	bool		right = is_right_for(&added, running, snapshot);
	bool		counts;

	LWLockAcquire(&history->lock, LW_EXCLUSIVE);
	counts = fuuid_instance_epoch() == epoch;
	if (counts)
	{
		/* Before the oldest one is replaced. */
		*watermark_ns = find_watermark(history, epoch, snapshot, right ? added.ns : 0);
		keep_watermark(history, &added, running);
	}
	LWLockRelease(&history->lock);
	pfree(running);
	return counts;
}
