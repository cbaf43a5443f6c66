/*
 * in_flight.c
 *	  The transactions in flight that have drawn numbers, or are about to.
 *
 *	  Before a transaction draws its first number of a sequence, it "publishes"
 *	  the last one that the sequence has given, in shared memory.  It clears that
 *	  after the server has made the transaction's end visible, and after the
 *	  callbacks of other libraries: one that commits on other servers does so
 *	  there.  Until then the transaction "holds back" the watermark.
 */
#include "postgres.h"

#include "compat.h"
#include "feed.h"
#include "funcapi.h"
#include "storage/ipc.h"
#include "utils/resowner.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(feed_in_flight);

static FeedPublished *published = NULL;
static int	published_count = 0;
static int	in_memory = 0;		/* how many are in shared memory; others are locks */

#define MY_STATE (&feed_shared->states[feed_my_number])
#define MY_BACKEND (&FEED_BACKENDS(feed_shared)[feed_my_number])
#define MY_ENTRY (feed_my_database - FEED_DATABASE(feed_shared, 0))

static bool preparing = false;	/* has keep_for_prepared() been called? */

/* Let a lock stand for a pair, until the transaction ends. */
static void
lock_pair(FeedPublished *entry)
{
	feed_locks_take(entry->relid, entry->v0);
	entry->is_locked = true;
}

/* Keep what the transaction, which is about to be prepared, has published. */
static void
keep_for_prepared(XactEvent event, void *arg pg_attribute_unused())
{
	preparing = event == XACT_EVENT_PRE_PREPARE;
	if (preparing)
		FEED_TEST_POINT("preparing");
	for (int i = 0; preparing && i < published_count; i++)
		if (!published[i].is_locked)
			lock_pair(&published[i]);
}

/*
 * Clear what the transaction has published: its end is visible, or it can only
 * abort.  Then count that, and wake who waits for it.
 */
static void
clear_published(void)
{
	if (published_count == 0)
		return;
	FEED_TEST_POINT("clearing");
	pg_memory_barrier();
	pg_atomic_write_u64(MY_STATE, 0);

	/* Who sees the new count, and then the state, sees this or a later one. */
	pg_write_barrier();
	pg_atomic_write_u32(&MY_BACKEND->ended,
						pg_atomic_read_u32(&MY_BACKEND->ended) + 1);
	published_count = in_memory = 0;
	FEED_TEST_POINT("cleared");

	/* Increment before waking: who joins the list later sees the new count. */
	pg_atomic_fetch_add_u64(&feed_my_database->ended, 1);
	FEED_TEST_POINT("waking");
	ConditionVariableBroadcast(&feed_my_database->ended_cv);
	FEED_TEST_POINT("woken");
}

/*
 * The resources of a transaction are released after every callback of
 * XACT_EVENT_COMMIT, ABORT and PREPARE.  Owners that belong to no transaction,
 * such as those of auxiliary processes, come by here as well.
 */
static void
clear_at_end(ResourceReleasePhase phase, bool isCommit pg_attribute_unused(),
			 bool isTopLevel, void *arg pg_attribute_unused())
{
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS && isTopLevel &&
		!IsTransactionState())
		clear_published();
}

/* At load time, because a transaction may begin to publish in a callback. */
void
feed_in_flight_init(void)
{
	RegisterXactCallback(keep_for_prepared, NULL);
	RegisterResourceReleaseCallback(clear_at_end, NULL);
}

/* At exit a transaction can only abort, perhaps without clear_at_end(). */
static void
leave(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	clear_published();
	FEED_TEST_POINT("leaving");
	feed_leave();
	FEED_TEST_POINT("left");
}

/* Join, before this backend publishes, waits, or asks for a watermark. */
void
feed_in_flight_join(void)
{
	if (feed_my_number >= 0)
		return;
	feed_join();
	before_shmem_exit(leave, 0);
}

bool
feed_in_flight_has_published(void)
{
	return published_count > 0;
}

/* What this transaction has published of a sequence's file, or NULL. */
static FeedPublished *
find(const FeedOpen *open)
{
	for (int i = published_count - 1; i >= 0; i--)
		if (published[i].relid == open->sequence.relid &&
			published[i].file == open->sequence.file)
			return &published[i];
	return NULL;
}

/*
 * Open a sequence that this transaction has published in the file that it has
 * now.  Else returns NULL, and nothing is open.
 */
FeedPublished *
feed_in_flight_open(FeedOpen *open, Oid relid)
{
	FeedPublished *entry = NULL;

	for (int i = 0; i < published_count; i++)
		if (published[i].relid == relid)
		{
			feed_sequence_open_again(open, relid);
			entry = find(open);
			if (entry == NULL)
				feed_sequence_close(open);
			break;
		}
	return entry;
}

/*
 * What this transaction has published of a sequence, if its file was looked at
 * when feed_column_changes was this, and so is the one that it has now; else NULL.
 */
FeedPublished *
feed_in_flight_find(Oid relid, uint64 changes)
{
	for (int i = published_count - 1; i >= 0; i--)
		if (published[i].relid == relid && published[i].changes == changes)
			return &published[i];
	return NULL;
}

/* Enter the pair, while no number is drawn. */
static void
enter(FeedOpen *open, void *arg)
{
	FeedPublished *entry = arg;
	Oid			relid = open->sequence.relid;
	uint64		state;

	entry->v0 = open->last;
	if (in_memory == 0)
	{
		pg_atomic_write_u64(&MY_BACKEND->first_v0, (uint64) open->last);
		state = FEED_STATE(relid, MY_ENTRY, 1);
	}
	else
	{
		FeedPair   *pair = &FEED_FURTHER(feed_shared)[feed_my_number].pairs[in_memory - 1];

		/* Who is reading what was here before must not take one for the other. */
		pair->relid = InvalidOid;
		pg_write_barrier();
		FEED_TEST_POINT("replacing");
		pg_atomic_write_u64(&pair->v0, (uint64) open->last);
		pg_write_barrier();
		pair->relid = relid;
		state = pg_atomic_read_u64(MY_STATE) + 1;
	}
	FEED_TEST_POINT("publishing");
	pg_write_barrier();
	pg_atomic_write_u64(MY_STATE, state);
	in_memory++;
}

/* Make room for a pair: the last one becomes a lock. */
static void
make_room(void)
{
	if (in_memory < FEED_PAIRS)
		return;
	if (!published[published_count - 1].is_locked)
		lock_pair(&published[published_count - 1]);
	pg_memory_barrier();
	pg_atomic_write_u64(MY_STATE,
						pg_atomic_read_u64(MY_STATE) - 1);
	in_memory--;
	FEED_TEST_POINT("made_room");
}

/* An entry for what a transaction will publish; it does not count yet. */
static FeedPublished *
new_entry(const FeedOpen *open)
{
	static int	room = 0;

	if (published_count == room)
	{
		Size		size = (room + FEED_PAIRS) * sizeof(FeedPublished);

		published = room == 0 ? MemoryContextAlloc(TopMemoryContext, size) :
			repalloc(published, size);
		room += FEED_PAIRS;
	}
	published[published_count] = (FeedPublished) {
		.relid = open->sequence.relid, .file = open->sequence.file
	};
	return &published[published_count];
}

/* The error for a sequence that has gone back to what readers may be past. */
static void
gone_back(const FeedOpen *open, const FeedPublished *entry)
{
	FEED_STATE_ERROR(errmsg("sequence \"%s\" has gone back to numbers that readers may have passed",
							RelationGetRelationName(open->relation)),
					 pg_class_aclcheck(entry->relid, GetUserId(),
									   ACL_SELECT | ACL_USAGE) != ACLCHECK_OK ? 0 :
					 errdetail("Its last number was " INT64_FORMAT ", and readers have had the watermark " INT64_FORMAT ".",
							   entry->v0, entry->highest),
					 errhint("Use fast_feed.skip() to move it above that or, if readers begin anew, ALTER SEQUENCE ... RESTART."));
}

/*
 * Publish an open sequence, unless this transaction has already, and return
 * what it has published.  The caller draws numbers only after this.  Raises an
 * error if the sequence has gone back.
 */
FeedPublished *
feed_in_flight_publish(FeedOpen *open)
{
	FeedPublished *entry = find(open);

	if (entry == NULL)
	{
		feed_in_flight_join();
		make_room();
		entry = new_entry(open);
		FEED_TEST_POINT("before_publishing");
		feed_sequence_read(open, enter, entry);
		published_count++;
		FEED_TEST_POINT("published");

		/*
		 * From now on no bound is computed that is above v0 + 1.  One that was
		 * computed before setval(), and kept after this, goes unnoticed.
		 */
		entry->highest = feed_marks_highest(&open->sequence);

		/* In a callback of another library that comes after ours. */
		if (preparing)
			lock_pair(entry);
	}

	/* A savepoint that is rolled back keeps the entry, and so the error. */
	if (entry->v0 < entry->highest - 1)
		gone_back(open, entry);
	return entry;
}

/*
 * Call with_pair for each pair that a backend of this database has published.  If
 * its transaction ends meanwhile, it no longer counts, and neither does the next
 * one: that draws later than the caller has read the sequence.  Nor does a pair
 * that is replaced: there is a lock for it already, and locks are read later.
 */
static pg_noinline void
for_each_pair(int number,
			  void (*with_pair) (const FeedBackend *, Oid, int64, void *),
			  void *arg)
{
	FeedBackend *backend = &FEED_BACKENDS(feed_shared)[number];
	FeedPair   *further = FEED_FURTHER(feed_shared)[number].pairs;
	uint32		ended = pg_atomic_read_u32(&backend->ended);
	uint64		state;

	pg_read_barrier();
	state = pg_atomic_read_u64(&feed_shared->states[number]);
	if (FEED_STATE_ENTRY(state) != MY_ENTRY)
		return;
	pg_read_barrier();
	for (int i = 0; i < FEED_STATE_PAIRS(state); i++)
	{
		Oid			relid = i == 0 ? FEED_STATE_RELID(state) : further[i - 1].relid;
		int64		v0;

		FEED_TEST_POINT("relid_read");
		pg_read_barrier();
		v0 = (int64) pg_atomic_read_u64(i == 0 ? &backend->first_v0 :
										&further[i - 1].v0);
		FEED_TEST_POINT("pair_read");
		pg_read_barrier();
		if (pg_atomic_read_u32(&backend->ended) != ended)
			break;
		if (i == 0 || further[i - 1].relid == relid)
			with_pair(backend, relid, v0, arg);
	}
}

/* Of a sequence, the least of what was published and of this. */
typedef struct Least
{
	Oid			relid;
	int64		v0;
} Least;

static inline void
take_least(const FeedBackend *backend pg_attribute_unused(), Oid relid,
		   int64 v0, void *arg)
{
	Least	   *least = arg;

	if (relid == least->relid && v0 < least->v0)
		least->v0 = v0;
}

/*
 * The least number that an open sequence had given when a transaction in flight
 * published it, but at most what it has given now, which has been read.  For
 * each number that was drawn before that, its transaction is found, or has
 * ended.
 *
 * The file does not matter: who has made a new one, and not committed, holds
 * back the watermark, and so does who counts in it while we know only the old.
 */
int64
feed_in_flight_least(FeedOpen *open)
{
	Least		least = {.relid = open->sequence.relid,.v0 = open->last};
	uint64		alone = FEED_STATE(least.relid, MY_ENTRY, 1);
	pg_atomic_uint64 *states = feed_shared->states;
	FeedBackend *backends = FEED_BACKENDS(feed_shared);

	pg_memory_barrier();
	for (int number = 0, used = feed_shared->backends_used; number < used; number++)
	{
		uint64		state = pg_atomic_read_u64(&states[number]);

		/*
		 * Mostly this is all: there is no pair of this sequence, or none that is
		 * lower.  Without a barrier between the two: whoever has drawn what was
		 * read of the sequence published before its page was locked, so neither
		 * is older than that; if one is newer, that transaction has ended.
		 */
		if (state == alone)
		{
			if ((int64) pg_atomic_read_u64(&backends[number].first_v0) >= least.v0)
				continue;
		}
		else if (likely(FEED_STATE_PAIRS(state) < 2))
			continue;
		for_each_pair(number, take_least, &least);
	}
	FEED_TEST_POINT("states_read");
	pg_memory_barrier();
	least.v0 = feed_locks_least(open, least.v0);
	pg_memory_barrier();
	return least.v0;
}

/* A row of in_flight(); the number is shown to who may see the sequence. */
static void
put_row(const FeedBackend *backend, Oid relid, int64 v0, void *arg)
{
	ReturnSetInfo *result = arg;
	bool		is_missing = false; /* not committed yet */
	Datum		values[] = {Int32GetDatum(backend->pid),
	ObjectIdGetDatum(relid), Int64GetDatum(v0)};
	bool		nulls[] = {false, false,
		pg_class_aclcheck_ext(relid, GetUserId(), ACL_SELECT | ACL_USAGE,
							  &is_missing) != ACLCHECK_OK};

	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * For holders() in SQL, a row for each session and sequence: process ID,
 * sequence, and the last number before its own.
 */
Datum
feed_in_flight(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	feed_in_flight_join();
	for (int number = 0; number < feed_shared->backends_used; number++)
		for_each_pair(number, put_row, fcinfo->resultinfo);
	return (Datum) 0;
}
