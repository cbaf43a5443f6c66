\echo Use "CREATE EXTENSION fast_uuid" to load this file. \quit

CREATE FUNCTION uuidv7_fast(source text DEFAULT NULL)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast(text) IS
'generate a version 7 UUID, greater than all earlier ones of this session';
