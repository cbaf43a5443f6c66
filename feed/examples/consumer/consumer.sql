CREATE EXTENSION IF NOT EXISTS fast_feed;
CREATE TABLE event (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL);
SELECT fast_feed.enable('event', 'id');

-- A watermark can be 0, which is no place to begin at.
CREATE TABLE event_consumer
  (name text PRIMARY KEY, position bigint NOT NULL DEFAULT 0 CHECK (position >= 0));

-- Called at the beginning of each connection.  Returns the place that the numbers belong to: the
-- server, its timeline, and the sequence's file.
CREATE FUNCTION event_consume(consumer text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  -- No limit ends a wait, or the session during a delivery.  That a connection is lost, the server
  -- notices within a minute, and lets another consumer of this name begin.
  PERFORM set_config(s.name, s.value, false) FROM pg_settings JOIN (VALUES
    ('default_transaction_isolation', 'read committed'), ('statement_timeout', '0'),
    ('transaction_timeout', '0'), ('idle_session_timeout', '0'), ('tcp_keepalives_idle', '30'),
    ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '3')
  ) AS s (name, value) USING (name);
  IF NOT EXISTS (SELECT FROM event_consumer WHERE name = consumer) THEN
    RAISE 'event_consumer has no row for this name';
  END IF;
  -- The session's, so that no transaction is open during a delivery
  IF NOT pg_try_advisory_lock('event_consumer'::regclass::oid::int, hashtext(consumer)) THEN
    RAISE 'another consumer of this name is at work';
  END IF;
  RETURN (SELECT concat_ws(' ', system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8),
                           pg_relation_filenode(pg_get_serial_sequence('event', 'id')::regclass))
            FROM pg_control_system());
END $$;
