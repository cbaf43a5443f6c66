/*
 * compat.h
 *	  Every difference between server versions that fast_feed has to know, so
 *	  that PG_VERSION_NUM is tested in this file only.
 */
#ifndef FEED_COMPAT_H
#define FEED_COMPAT_H

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

/* Since 18 a module can state its name and version (pg_get_loaded_modules). */
#if PG_VERSION_NUM >= 180000
#define FEED_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "fast_feed", .version = FEED_VERSION)
#else
#define FEED_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/*
 * Since 17 a named segment of shared memory can be created at any time; since
 * 19 its initialization callback takes one more argument.
 */
#if PG_VERSION_NUM >= 170000
#define FEED_HAVE_NAMED_SEGMENTS
#include "storage/dsm_registry.h"
#endif
#if PG_VERSION_NUM >= 190000
#define FEED_SEGMENT_INIT_ARGS \
	void *segment, void *arg pg_attribute_unused()
#define FEED_GET_NAMED_SEGMENT(name, size, init, found) \
	GetNamedDSMSegment(name, size, init, found, NULL)
#else
#define FEED_SEGMENT_INIT_ARGS	void *segment
#define FEED_GET_NAMED_SEGMENT	GetNamedDSMSegment
#endif

/*
 * The name of our lock in wait events.  Before 19 each process must register
 * it, and shows "extension" until it knows the number, by attaching.
 */
#define FEED_LWLOCK_NAME	"FastFeed"
#if PG_VERSION_NUM >= 190000
#define FEED_INIT_LWLOCK(lock) \
	LWLockInitialize(lock, LWLockNewTrancheId(FEED_LWLOCK_NAME))
#define FEED_NAME_LWLOCK(lock)	((void) 0)
#else
#define FEED_INIT_LWLOCK(lock)	LWLockInitialize(lock, LWLockNewTrancheId())
#define FEED_NAME_LWLOCK(lock) \
	LWLockRegisterTranche((lock)->tranche, FEED_LWLOCK_NAME)
#endif

/* Before 17 a wait event of ours is "Extension". */
#if PG_VERSION_NUM >= 170000
#define FEED_WAIT_EVENT(name)	WaitEventExtensionNew(name)
#else
#define FEED_WAIT_EVENT(name)	PG_WAIT_EXTENSION
#endif

/* The number of a relation's file, which 16 renamed. */
#if PG_VERSION_NUM >= 160000
#define FEED_FILE(relation)		((Oid) (relation)->rd_locator.relNumber)
#define FEED_LOCATOR(relation)	((relation)->rd_locator)
typedef RelFileLocator FeedLocator;
#else
typedef RelFileNode FeedLocator;
#define FEED_LOCATOR(relation)	((relation)->rd_node)
#define FEED_FILE(relation)		((relation)->rd_node.relNode)
#endif

#endif							/* FEED_COMPAT_H */
