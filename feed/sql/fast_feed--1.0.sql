-- fast_feed 1.0

\echo Use "CREATE EXTENSION fast_feed" to load this file. \quit

-- A trusted extension's objects belong to a superuser.  If there is a schema of this name,
-- it is somebody's, and this fails.
CREATE SCHEMA fast_feed;
GRANT USAGE ON SCHEMA fast_feed TO PUBLIC;

-- For writers

CREATE FUNCTION fast_feed.follow()
RETURNS trigger
AS 'MODULE_PATHNAME', 'feed_follow'
LANGUAGE C;

COMMENT ON FUNCTION fast_feed.follow() IS
'trigger that lets readers know that a statement is about to draw numbers';

CREATE FUNCTION fast_feed.guard()
RETURNS trigger
AS 'MODULE_PATHNAME', 'feed_guard'
LANGUAGE C;

COMMENT ON FUNCTION fast_feed.guard() IS
'trigger that refuses a row which readers could miss';

CREATE FUNCTION fast_feed.stamp()
RETURNS trigger
AS 'MODULE_PATHNAME', 'feed_stamp'
LANGUAGE C;

COMMENT ON FUNCTION fast_feed.stamp() IS
'trigger that gives a row a new number with each INSERT and UPDATE';

CREATE FUNCTION fast_feed.next(sequence regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'feed_next'
LANGUAGE C STRICT;

COMMENT ON FUNCTION fast_feed.next(regclass) IS
'nextval() that lets readers know: for defaults, and for code that draws numbers before it inserts';

-- For readers

CREATE FUNCTION fast_feed.watermark(relation regclass, column_name name DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'feed_watermark'
LANGUAGE C STABLE PARALLEL RESTRICTED;

COMMENT ON FUNCTION fast_feed.watermark(regclass, name) IS
'bound for the calling statement, which misses no row of the table with a smaller number';

CREATE FUNCTION fast_feed.wait(seen bigint, timeout interval DEFAULT '1 s')
RETURNS bigint
AS 'MODULE_PATHNAME', 'feed_wait'
LANGUAGE C;

COMMENT ON FUNCTION fast_feed.wait(bigint, interval) IS
'wait for the end of a transaction that has written to a followed table, and return how many have ended';

-- For owners of tables.  What ends in _as_owner is executed as the owner: see as_owner.c.

CREATE FUNCTION fast_feed.check_as_owner(relation regclass, column_name name)
RETURNS void
AS 'MODULE_PATHNAME', 'feed_check'
LANGUAGE C STRICT;

CREATE FUNCTION fast_feed.disable_as_owner(relation regclass)
RETURNS void
LANGUAGE plpgsql STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  command text;
BEGIN
  -- A partition can have been enabled before it was attached.
  FOR command IN
    SELECT format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass)
      FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
     WHERE (t.tgrelid = disable_as_owner.relation OR t.tgrelid IN (SELECT relid FROM pg_partition_tree(disable_as_owner.relation)))
       AND t.tgparentid = 0 AND p.pronamespace = 'fast_feed'::regnamespace
  LOOP
    EXECUTE command;
  END LOOP;
END $$;

CREATE FUNCTION fast_feed.enable_as_owner(relation regclass, column_name name, updates boolean, sequence regclass)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $$
DECLARE
  class pg_class;
  attribute pg_attribute;
  -- Among BEFORE triggers the last one has the last word.
  triggers name[] := CASE WHEN updates THEN '{zzz_fast_feed_stamp}'
                          ELSE '{fast_feed_follow,zzz_fast_feed_guard}' END::name[];
  arguments text := concat_ws(', ', quote_literal(column_name), quote_literal(sequence));
  trigger name;
  last bigint;
  least bigint;
  greatest bigint;
  number bigint;
  other_partition regclass;
  notes text := CASE WHEN updates THEN ', anew with each UPDATE' ELSE '' END;
BEGIN
  IF column_name IS NULL THEN
    RAISE EXCEPTION 'column_name must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'fast_feed.enable() requires the isolation level READ COMMITTED'
      USING ERRCODE = 'active_sql_transaction',
            DETAIL = 'Its snapshot would not know of the transactions for which it waits.';
  END IF;
  SELECT * INTO class FROM pg_class WHERE oid = relation;
  IF class.relkind NOT IN ('r', 'p') OR class.relispartition THEN
    RAISE EXCEPTION 'relation % cannot be followed', relation
      USING ERRCODE = 'wrong_object_type', DETAIL = CASE WHEN class.relispartition
        THEN 'It is a partition. Enable the table that it is a partition of.' ELSE 'It is not a table.' END;
  END IF;

  -- This waits for writers, of whose numbers nobody knows; and for readers, who may write next: ALTER
  -- TRIGGER will take this lock, and with a weaker one before they could only be in a deadlock.
  EXECUTE format('LOCK TABLE %s', relation);
  -- Otherwise this could not change their triggers, or would run what another role has put into indexes.
  SELECT c.oid INTO other_partition FROM pg_partition_tree(relation) AS t JOIN pg_class AS c ON c.oid = t.relid
   WHERE c.relowner <> class.relowner LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'partition % has another owner than relation %', other_partition, relation
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Use ALTER TABLE ... OWNER TO.';
  END IF;
  SELECT * INTO attribute FROM pg_attribute
   WHERE attrelid = relation AND attname = column_name AND attnum > 0 AND NOT attisdropped;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'column "%" of relation % does not exist', column_name, relation
      USING ERRCODE = 'undefined_column',
            HINT = 'To add a number while others write, see "A table without a number" in the guide of fast_feed.';
  END IF;
  -- Columns of a partition key, or of an expression in it, depend on their table.
  IF updates AND EXISTS (
       SELECT FROM pg_partition_tree(relation) AS t JOIN pg_attribute AS a ON a.attrelid = t.relid AND a.attname = column_name
         JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = t.relid AND d.objsubid = a.attnum
          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = t.relid AND d.deptype = 'i') THEN
    RAISE EXCEPTION 'relation % cannot be followed by column "%" with updates', relation, column_name
      USING ERRCODE = 'wrong_object_type', DETAIL = 'It is partitioned by that, so a new number could be another partition''s.';
  END IF;
  PERFORM fast_feed.disable_as_owner(relation);
  FOREACH trigger IN ARRAY triggers LOOP
    EXECUTE format('CREATE TRIGGER %I BEFORE INSERT %s EXECUTE FUNCTION fast_feed.%I(%s)', trigger,
      format(CASE trigger WHEN 'fast_feed_follow' THEN 'ON %s' ELSE 'OR UPDATE ON %s FOR EACH ROW' END, relation),
      substring(trigger from '[a-z]+$'), arguments);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', relation, trigger);
    EXECUTE format('ALTER TRIGGER %I ON %s DEPENDS ON EXTENSION fast_feed', trigger, relation);
  END LOOP;

  -- This has all reasons to refuse the table, its sequence, or the server.
  PERFORM fast_feed.check_as_owner(relation, column_name);
  sequence := coalesce(sequence, pg_get_serial_sequence(relation::text, column_name)::regclass);
  IF has_sequence_privilege(sequence, 'SELECT') THEN
    EXECUTE format('SELECT last_value - (NOT is_called)::int FROM %s', sequence) INTO last;
  ELSE
    last := coalesce(pg_sequence_last_value(sequence), 0);
  END IF;
  EXECUTE format('SELECT min(%1$I), max(%1$I) FROM %2$s', column_name, relation) INTO least, greatest;
  IF least < 1 THEN
    RAISE EXCEPTION 'relation % contains numbers below 1', relation
      USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'Readers that begin at 0 would miss them.';
  END IF;
  IF greatest > last THEN
    RAISE EXCEPTION 'relation % contains numbers that its sequence has not given', relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The greatest is %s, and the last number of %s is %s.', greatest, sequence, last),
            HINT = format('Use SELECT setval(%L, %s).', sequence, greatest);
  END IF;
  IF NOT EXISTS (SELECT FROM pg_index WHERE indrelid = relation AND indkey[0] = attribute.attnum
                    AND indisunique AND indnkeyatts = 1 AND indisvalid AND indpred IS NULL) THEN
    EXECUTE format('SELECT %1$I FROM %2$s WHERE %1$I IS NOT NULL GROUP BY 1 HAVING count(*) > 1 LIMIT 1', column_name, relation)
       INTO number;
    IF number IS NOT NULL THEN
      RAISE EXCEPTION 'relation % contains number % more than once', relation, number
        USING ERRCODE = 'object_not_in_prerequisite_state',
              DETAIL = 'A LIMIT could fall between such rows, and readers miss one.';
    END IF;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_index WHERE indrelid = relation AND indkey[0] = attribute.attnum) THEN
    notes := notes || '; readers need an index that begins with it';
  END IF;
  IF updates THEN
    EXECUTE format('SELECT 1 FROM %2$s WHERE %1$I IS NULL LIMIT 1', column_name, relation) INTO number;
    IF number IS NOT NULL THEN
      notes := notes || '; rows without a number are read when they have changed';
    END IF;
  ELSIF NOT attribute.attnotnull THEN
    RAISE EXCEPTION 'column "%" of relation % can be null', column_name, relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Readers would miss rows without a number.', HINT = 'Use ALTER TABLE ... SET NOT NULL.';
  ELSIF attribute.attidentity = '' AND NOT EXISTS (
          SELECT FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
           WHERE d.classid = 'pg_attrdef'::regclass AND a.adrelid = relation AND a.adnum = attribute.attnum
             AND d.refclassid = 'pg_class'::regclass AND d.refobjid = sequence) THEN
    notes := notes || '; its default does not draw from that, so rows need numbers from fast_feed.next()';
  END IF;
  RETURN format('%s is followed by column "%s", with numbers from %s%s', relation, column_name, sequence, notes);
END $$;

CREATE FUNCTION fast_feed.skip_as_owner(sequence regclass, number bigint)
RETURNS bigint
LANGUAGE plpgsql STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  last bigint;
  greatest bigint := (SELECT seqmax FROM pg_sequence WHERE seqrelid = sequence);
BEGIN
  IF number < 1 OR number >= greatest THEN
    RAISE EXCEPTION 'number must be between 1 and %', greatest - 1
      USING ERRCODE = 'invalid_parameter_value', DETAIL = format('Sequence %s ends at %s.', sequence, greatest);
  END IF;

  -- This gives the sequence another file, as it was, waits for those who have drawn, and lets
  -- nobody draw until the transaction ends: else it could go back behind what others draw
  -- between the next two statements.
  EXECUTE format('ALTER SEQUENCE %s %s', sequence,
    CASE WHEN (SELECT seqcycle FROM pg_sequence WHERE seqrelid = sequence) THEN 'CYCLE' ELSE 'NO CYCLE' END);
  EXECUTE format('SELECT last_value - (NOT is_called)::int FROM %s', sequence) INTO last;
  IF number > last THEN
    last := setval(sequence, number);
  END IF;
  RETURN last;
END $$;

CREATE FUNCTION fast_feed.enable(
  relation regclass, column_name name, updates boolean DEFAULT false, sequence regclass DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'feed_as_owner'
LANGUAGE C;

COMMENT ON FUNCTION fast_feed.enable(regclass, name, boolean, regclass) IS
'let readers follow a table by a column that a sequence numbers; with updates, each UPDATE numbers a row anew';

CREATE FUNCTION fast_feed.disable(relation regclass)
RETURNS void
AS 'MODULE_PATHNAME', 'feed_as_owner'
LANGUAGE C STRICT;

COMMENT ON FUNCTION fast_feed.disable(regclass) IS
'take from a table what enable() has added';

CREATE FUNCTION fast_feed.skip(sequence regclass, number bigint)
RETURNS bigint
AS 'MODULE_PATHNAME', 'feed_as_owner'
LANGUAGE C STRICT;

COMMENT ON FUNCTION fast_feed.skip(regclass, bigint) IS
'let a sequence go on above a number that readers have passed, after a fail-over or restore that has lost rows';

-- For the DBA

CREATE FUNCTION fast_feed.in_flight(OUT pid integer, OUT sequence regclass, OUT last bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'feed_in_flight'
LANGUAGE C;

COMMENT ON FUNCTION fast_feed.in_flight() IS
'what sessions of this database have published; holders() says more';

-- A prepared transaction has locks instead: see in_flight.c for what their tags hold.
CREATE FUNCTION fast_feed.holders(
  OUT sequence regclass, OUT last bigint, OUT pid integer, OUT gid text, OUT role name,
  OUT since timestamptz, OUT state text)
RETURNS SETOF record
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
  WITH locks AS (
    SELECT l.classid, l.pid, l.virtualtransaction, l.objid::bigint << 16 | (l.objsubid::integer & 65535) AS last
      FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.classid AND c.relkind = 'S'
     WHERE l.locktype = 'userlock'
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  ), prepared AS (
    -- A prepared transaction has the same one as its locks.
    SELECT p.gid, p.owner, p.prepared, x.virtualtransaction
      FROM pg_prepared_xacts AS p JOIN pg_locks AS x ON x.transactionid = p.transaction AND x.pid IS NULL
  ), pairs AS (
    SELECT f.sequence, f.last, f.pid, NULL AS virtualtransaction FROM fast_feed.in_flight() AS f
    UNION
    SELECT l.classid, CASE WHEN has_sequence_privilege(l.classid, 'SELECT, USAGE') THEN l.last END,
           l.pid, CASE WHEN l.pid IS NULL THEN l.virtualtransaction END
      FROM locks AS l
  )
  SELECT a.sequence, a.last, a.pid, p.gid, coalesce(s.usename, p.owner),
         coalesce(s.xact_start, p.prepared), CASE WHEN a.pid IS NULL THEN 'prepared' ELSE s.state END
    FROM pairs AS a
    LEFT JOIN pg_stat_activity AS s ON s.pid = a.pid
    LEFT JOIN prepared AS p ON p.virtualtransaction = a.virtualtransaction
   ORDER BY a.sequence::oid, a.last
$$;

COMMENT ON FUNCTION fast_feed.holders() IS
'sessions and prepared transactions that hold watermarks back, by sequence; the first one of each decides';
