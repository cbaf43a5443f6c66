/*
 * sequence.c
 *	  PostgreSQL's sequences, and what they have given.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xloginsert.h"
#include "catalog/pg_sequence.h"
#include "commands/sequence.h"
#include "compat.h"
#include "feed.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* How a sequence is defined.  Who has waited for its lock can find that it was dropped. */
static FormData_pg_sequence
definition_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(relid));
	FormData_pg_sequence form;

	if (!HeapTupleIsValid(tuple))
	{
		const char *name = get_rel_name(relid);

		if (name == NULL)
			FEED_STATE_ERROR(errmsg("sequence with OID %u was dropped", relid),
							 errhint("Retry the transaction."));
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a sequence", name)));
	}
	form = *(Form_pg_sequence) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	return form;
}

/* Why the numbers of a sequence do not ascend from 1 on; NULL if they do. */
static const char *
why_not_ascending(Relation relation, FormData_pg_sequence form)
{
	if (relation->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return "The sequence is temporary.";
	if (relation->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		return "The sequence is unlogged, and starts anew after a crash.";
	if (form.seqincrement < 1)
		return "The sequence is descending.";
	if (form.seqcycle)
		return "The sequence is defined with CYCLE.";
	if (form.seqcache != 1)
		return "Its CACHE is greater than 1, so sessions may use numbers long after reserving them.";
	return form.seqmin < 1 ? "Its MINVALUE is less than 1." : NULL;
}

/*
 * Open a sequence of which this transaction holds the lock of nextval(), so that
 * nobody else has altered it.
 */
void
feed_sequence_open_again(FeedOpen *open, Oid relid)
{
	open->relation = relation_open(relid, NoLock);
	open->sequence.database = MyDatabaseId;
	open->sequence.relid = relid;
	open->sequence.file = FEED_FILE(open->relation);
	open->is_logged = false;
	open->lock = NoLock;
}

/*
 * Open a sequence, without reading it.  Raises an error unless its numbers
 * ascend in the order of calls, and survive a crash; that can be altered, so
 * every call asks.  The lock is that of nextval(), so that nobody alters it
 * meanwhile, after which its file would be empty.
 */
void
feed_sequence_open(FeedOpen *open, Oid relid)
{
	FormData_pg_sequence form;
	const char *why_not;

	LockRelationOid(relid, RowExclusiveLock);
	form = definition_of(relid);
	feed_sequence_open_again(open, relid);
	open->lock = RowExclusiveLock;
	FEED_TEST_POINT("sequence_opened");
	why_not = why_not_ascending(open->relation, form);
	if (why_not != NULL)
		FEED_STATE_ERROR(errmsg("sequence \"%s\" cannot be followed",
								RelationGetRelationName(open->relation)),
						 errdetail_internal("%s", why_not));
}

/*
 * The same with the lock until the transaction ends, not only a savepoint's: what
 * gives the sequence another file then waits for us.
 */
void
feed_sequence_open_to_draw(FeedOpen *open, Oid relid)
{
	ResourceOwner owner = CurrentResourceOwner;

	CurrentResourceOwner = TopTransactionResourceOwner;
	LockRelationOid(relid, RowExclusiveLock);
	CurrentResourceOwner = owner;
	feed_sequence_open(open, relid);
}

/* A sequence's only tuple. */
static Form_pg_sequence_data
data_of(Page page)
{
	HeapTupleHeader tuple = (HeapTupleHeader)
		PageGetItem(page, PageGetItemId(page, FirstOffsetNumber));

	return (Form_pg_sequence_data) ((char *) tuple + tuple->t_hoff);
}

/* The last number that a sequence has given, by its page; 0 or more. */
static int64
last_of(Page page)
{
	Form_pg_sequence_data data = data_of(page);

	return data->is_called ? data->last_value : data->last_value - 1;
}

/*
 * Read the last number that an open sequence has given.  What with_page, which
 * may be NULL, does before the page is unlocked comes before every later draw.
 * It must not fail or wait.
 */
void
feed_sequence_read(FeedOpen *open, void (*with_page) (FeedOpen *, void *),
				   void *arg)
{
	Buffer		buffer = ReadBuffer(open->relation, 0);
	Page		page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	open->last = last_of(page);
	open->lsn = PageGetLSN(page);
	if (with_page != NULL)
		with_page(open, arg);
	UnlockReleaseBuffer(buffer);
}

/*
 * Read the last number that a sequence has given, which this transaction has
 * locked, and whose file was looked at: without opening it, if its page is still
 * in the buffer where it was the last time.
 */
int64
feed_sequence_last(FeedLocation *location, Oid relid)
{
	FeedOpen	open;
	int64		last;

	if (!BufferIsValid(location->buffer) ||
		!ReadRecentBuffer(location->file, MAIN_FORKNUM, 0, location->buffer))
	{
		feed_sequence_open_again(&open, relid);
		location->file = FEED_LOCATOR(open.relation);
		location->buffer = ReadBuffer(open.relation, 0);
		feed_sequence_close(&open);
	}
	LockBuffer(location->buffer, BUFFER_LOCK_SHARE);
	last = last_of(BufferGetPage(location->buffer));
	UnlockReleaseBuffer(location->buffer);
	return last;
}

/*
 * Write the page of an open sequence to the WAL, and set open->lsn to where that
 * ends.  nextval() logs only once in 33 numbers, counted on the page; ALTER
 * SEQUENCE ... START WITH, SET LOGGED and CREATE DATABASE ... TEMPLATE copy that
 * count into files that were not logged so, and after a crash the sequence would
 * give those numbers again.
 */
void
feed_sequence_log(FeedOpen *open)
{
	static FeedSequence logged[1024];
	FeedSequence *known = &logged[open->sequence.relid % lengthof(logged)];
	Buffer		buffer;

	/* By this backend, if no place remembers it. */
	open->is_logged = memcmp(known, &open->sequence, sizeof(FeedSequence)) == 0;
	if (open->is_logged)
		return;

	/* With wal_level = minimal, a new file is flushed as its transaction commits. */
	if (!RelationNeedsWAL(open->relation))
		return;
	buffer = ReadBuffer(open->relation, 0);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	data_of(BufferGetPage(buffer))->log_cnt = 0;
	MarkBufferDirty(buffer);
	open->lsn = log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
	open->is_logged = true;
	*known = open->sequence;
}

/* Close a sequence. */
void
feed_sequence_close(FeedOpen *open)
{
	relation_close(open->relation, open->lock);
}
