/*
 * as_owner.c
 *	  The SQL-callable functions for owners of tables, which are SQL themselves,
 *	  are executed as the owner, as REINDEX is: SQL names tables, whose owners can
 *	  give the name to another one meanwhile, and evaluates what they define, such
 *	  as expressions of indexes.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "feed.h"
#include "miscadmin.h"
#include "parser/parse_func.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(feed_as_owner);

/* The owner of a relation, with whose rights the current role may act. */
static Oid
owner_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	FormData_pg_class form;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	form = *(Form_pg_class) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	if (!has_privs_of_role(GetUserId(), form.relowner))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(form.relkind),
					   NameStr(form.relname));
	return form.relowner;
}

/*
 * Execute the function whose name ends in _as_owner, with the same arguments, as
 * the owner of the relation that is the first one.
 */
Datum
feed_as_owner(PG_FUNCTION_ARGS)
{
	LOCAL_FCINFO(call, FUNC_MAX_ARGS);
	Oid			function = fcinfo->flinfo->fn_oid;
	char	   *schema = get_namespace_name(get_func_namespace(function));
	char	   *name = psprintf("%s_as_owner", get_func_name(function));
	FmgrInfo	called;
	Oid		   *types;
	int			count;
	Oid			owner;
	Oid			role;
	int			context;
	int			level;
	Datum		result;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("relation must not be null")));
	owner = owner_of(PG_GETARG_OID(0));
	(void) get_func_signature(function, &types, &count);
	fmgr_info(LookupFuncName(list_make2(makeString(schema), makeString(name)),
							 count, types, false), &called);
	InitFunctionCallInfoData(*call, &called, count, InvalidOid, NULL, NULL);
	memcpy(call->args, fcinfo->args, count * sizeof(NullableDatum));

	/* After an error the end of the transaction, or savepoint, does the rest. */
	GetUserIdAndSecContext(&role, &context);
	SetUserIdAndSecContext(owner, context | SECURITY_RESTRICTED_OPERATION);
	level = NewGUCNestLevel();
	result = FunctionCallInvoke(call);
	AtEOXact_GUC(false, level);
	SetUserIdAndSecContext(role, context);
	fcinfo->isnull = call->isnull;
	return result;
}
