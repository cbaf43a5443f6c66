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
 * Index of the source that an argument names.  Kept out of the way of calls
 * that name none.
 */
static pg_noinline int
source_argument(Datum argument)
{
	text	   *name = DatumGetTextPP(argument);
	int			source = fu_entropy_lookup(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));

	if (source < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized entropy source \"%s\"", text_to_cstring(name)),
				 errhint("Available values: %s.", fu_entropy_names())));
	return source;
}

/*
 * uuidv7_fast(source text DEFAULT NULL) returns uuid
 *
 * A version 7 UUID of this moment, greater than all that this backend has
 * returned before.  NULL: from the source in fast_uuid.source.
 *
 * The clock comes first: while it is read, the processor gets on with what
 * does not depend on it.
 */
Datum
uuidv7_fast(PG_FUNCTION_ARGS)
{
	int			source = PG_ARGISNULL(0) ? fu_source : source_argument(PG_GETARG_DATUM(0));
	struct timespec now;
	uint64		random;
	pg_uuid_t  *uuid;

	fu_clock_read(&now);
	random = fu_entropy_draw(source);
	fu_clock_fill_tick(&now, random >> FU_RANDOM_BITS);
	fu_ordering_advance(&now);

	uuid = palloc(sizeof(pg_uuid_t));
	fu_uuid_encode(uuid->data, now.tv_sec, now.tv_nsec, random);
	PG_RETURN_UUID_P(uuid);
}
