/*
 * compat.h
 *	  Every difference between server versions that fast_uuid has to know,
 *	  so that PG_VERSION_NUM is tested in this file only.
 */
#ifndef FU_COMPAT_H
#define FU_COMPAT_H

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "utils/guc.h"

/* Until 15 postgres.h brings the macros for text values itself. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 18 lets a module name itself and its version (pg_get_loaded_modules). */
#if PG_VERSION_NUM >= 180000
#define FU_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "fast_uuid", .version = FU_VERSION)
#else
#define FU_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/* Intervals can be infinite since 17. */
#ifdef INTERVAL_NOT_FINITE
#define FU_INTERVAL_NOT_FINITE(i) INTERVAL_NOT_FINITE(i)
#else
#define FU_INTERVAL_NOT_FINITE(i) false
#endif

/*
 * Since 17 shared memory can be had by its name whenever it is wanted; since 19
 * its initialiser takes one argument more.
 */
#if PG_VERSION_NUM >= 170000
#define FU_HAVE_NAMED_SEGMENTS
#include "storage/dsm_registry.h"
#if PG_VERSION_NUM >= 190000
#define FU_SEGMENT_INIT_ARGS	void *segment, void *arg pg_attribute_unused()
#define FU_GET_NAMED_SEGMENT(name, size, init, found) \
	GetNamedDSMSegment(name, size, init, found, NULL)
#else
#define FU_SEGMENT_INIT_ARGS	void *segment
#define FU_GET_NAMED_SEGMENT(name, size, init, found) \
	GetNamedDSMSegment(name, size, init, found)
#endif
#else
#define FU_SEGMENT_INIT_ARGS	void *segment
#endif

/* Before 16 the "extra" of a setting comes from malloc; NULL means out of memory. */
#if PG_VERSION_NUM < 160000
#define guc_malloc(elevel, size) malloc(size)
#endif

#endif							/* FU_COMPAT_H */
