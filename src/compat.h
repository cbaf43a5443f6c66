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

/* Before 16 the "extra" of a setting comes from malloc; NULL means out of memory. */
#if PG_VERSION_NUM < 160000
#define guc_malloc(elevel, size) malloc(size)
#endif

#endif							/* FU_COMPAT_H */
