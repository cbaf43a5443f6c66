/*
 * compat.h
 *	  Every difference between server versions that fast_uuid has to know,
 *	  so that PG_VERSION_NUM is tested in this file only.
 */
#ifndef FUUID_COMPAT_H
#define FUUID_COMPAT_H

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "utils/guc.h"

/* Until 15 postgres.h brings the macros for text values itself. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 18 lets a module name itself and its version (pg_get_loaded_modules). */
#if PG_VERSION_NUM >= 180000
#define FUUID_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "fast_uuid", .version = FUUID_VERSION)
#else
#define FUUID_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/*
 * Since 17 shared memory can be had by its name whenever it is wanted; since 19
 * its initialiser takes one argument more.
 */
#if PG_VERSION_NUM >= 170000
#define FUUID_HAVE_NAMED_SEGMENTS
#include "storage/dsm_registry.h"
#if PG_VERSION_NUM >= 190000
#define FUUID_SEGMENT_INIT_ARGS	void *segment, void *arg pg_attribute_unused()
#define FUUID_GET_NAMED_SEGMENT(name, size, init, found) \
	GetNamedDSMSegment(name, size, init, found, NULL)
#else
#define FUUID_SEGMENT_INIT_ARGS	void *segment
#define FUUID_GET_NAMED_SEGMENT(name, size, init, found) \
	GetNamedDSMSegment(name, size, init, found)
#endif
#else
#define FUUID_SEGMENT_INIT_ARGS	void *segment
#endif

/* Schema of an extension; durable order needs 17. */
#if PG_VERSION_NUM >= 170000
#define FUUID_EXTENSION_SCHEMA(extension) get_extension_schema(extension)
#else
#define FUUID_EXTENSION_SCHEMA(extension) InvalidOid
#endif

/* Number of this process; moved in 17. */
#if PG_VERSION_NUM >= 170000
#define FUUID_MY_PROC_NUMBER	((uint32) MyProcNumber)
#else
#define FUUID_MY_PROC_NUMBER	((uint32) MyProc->pgprocno)
#endif

/* A lock of our own: its name, by which wait events show it, is shared since 19. */
#define FUUID_LWLOCK_NAME "FastUuidWatermark"
#if PG_VERSION_NUM >= 190000
#define FUUID_INIT_LWLOCK(lock) LWLockInitialize(lock, LWLockNewTrancheId(FUUID_LWLOCK_NAME))
#define FUUID_NAME_LWLOCK(lock) ((void) 0)
#else
#define FUUID_INIT_LWLOCK(lock) LWLockInitialize(lock, LWLockNewTrancheId())
#define FUUID_NAME_LWLOCK(lock) LWLockRegisterTranche((lock)->tranche, FUUID_LWLOCK_NAME)
#endif

/*
 * Lets a setting that is defined in a parallel operation take over what was set
 * before.
 */
#ifndef GUC_ALLOW_IN_PARALLEL
#error "fast_uuid needs PostgreSQL 15.9, 16.5, 17.1 or later"
#endif

/* Before 16 the "extra" of a setting comes from malloc; NULL means out of memory. */
#if PG_VERSION_NUM < 160000
#define guc_malloc(elevel, size) malloc(size)
#endif

/* The server's record of a setting; before 16 no function finds it. */
#if PG_VERSION_NUM >= 160000
#define FUUID_FIND_SETTING(name) find_option(name, false, true, LOG)
#endif

#endif							/* FUUID_COMPAT_H */
