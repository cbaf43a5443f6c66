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
#include "utils/guc_tables.h"

/* Up to 15 postgres.h itself defines the macros for values of type text. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* Since 18 a module can state its name and version (pg_get_loaded_modules). */
#if PG_VERSION_NUM >= 180000
#define FUUID_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "fast_uuid", .version = FUUID_VERSION)
#else
#define FUUID_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/* A setting that is defined in a parallel operation takes its earlier value. */
#ifndef GUC_ALLOW_IN_PARALLEL
#error "fast_uuid needs PostgreSQL 15.9, 16.5, 17.1 or later"
#endif

/* Before 16 a setting's "extra" comes from malloc(). */
#if PG_VERSION_NUM < 160000
#define guc_malloc(elevel, size) malloc(size)
#define guc_free(extra) free(extra)
#endif

/* Since 16 more is told of a time that is wrong. */
#if PG_VERSION_NUM >= 160000
#define FUUID_DECODE_DATE_TIME(fields, types, count, type, tm, us, zone) \
	DecodeDateTime(fields, types, count, type, tm, us, zone, \
				   &(DateTimeErrorExtra) {0})
#else
#define FUUID_DECODE_DATE_TIME DecodeDateTime
#endif

/* The record of a setting, or NULL; up to 15 only all are to be had. */
static inline struct config_generic *
fuuid_find_setting(const char *name)
{
#if PG_VERSION_NUM >= 160000
	return find_option(name, false, true, LOG);
#else
	struct config_generic **settings = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
		if (pg_strcasecmp(settings[i]->name, name) == 0)
			return settings[i];
	return NULL;
#endif
}

/* The members of that record for a text, which 19 moved. */
#if PG_VERSION_NUM >= 190000
#define FUUID_STRING_SETTING(setting)	(&(setting)->_string)
#else
#define FUUID_STRING_SETTING(setting)	((struct config_string *) (setting))
#endif

#endif							/* FUUID_COMPAT_H */
