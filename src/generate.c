/*
 * generate.c
 *	  The SQL-callable generators.
 */
#include "postgres.h"

#include "clock.h"
#include "compat.h"
#include "entropy.h"
#include "lib/stringinfo.h"
#include "ordering.h"
#include "settings.h"
#include "utils/builtins.h"
#include "utils/uuid.h"
#include "uuid_layout.h"

PG_FUNCTION_INFO_V1(uuidv7_fast);

/*
 * Raise the error for an argument that names no source.
 */
static void
unknown_source(const char *name, int len)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < FU_ENTROPY_COUNT; i++)
		appendStringInfo(&names, "%s%s", i > 0 ? ", " : "", fu_entropy_sources[i]->name);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized entropy source \"%.*s\"", len, name),
			 errhint("Available values: %s.", names.data)));
}

/*
 * Index of the source that an argument names.
 */
static int
source_argument(text *name)
{
	int			source = fu_entropy_lookup(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));

	if (source < 0)
		unknown_source(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
	return source;
}

/*
 * uuidv7_fast(source text DEFAULT NULL) returns uuid
 *
 * A version 7 UUID of this moment, greater than all that this backend has
 * returned before.  NULL: from the source in fast_uuid.source.
 */
Datum
uuidv7_fast(PG_FUNCTION_ARGS)
{
	int			source = PG_ARGISNULL(0) ? fu_source : source_argument(PG_GETARG_TEXT_PP(0));
	uint64		random = fu_entropy_draw(source);
	uint64		ns = fu_ordering_next(fu_clock_now(random >> FU_RANDOM_BITS));
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	fu_uuid_encode(uuid->data, ns / FU_NS_PER_MS, ns % FU_NS_PER_MS, random);
	PG_RETURN_UUID_P(uuid);
}
