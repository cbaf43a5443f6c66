"""The recorders of eventsourcing on a feed of fast_uuid: PERSISTENCE_MODULE=fast_uuid_eventsourcing

Notification ids are positions of the feed. Readers stop below its watermark, so that writers
need no LOCK TABLE. Subscriptions wait for transactions of the feed to end, in place of LISTEN.
"""

# Not the class PostgresFactory: the library wants one factory in a PERSISTENCE_MODULE.
from eventsourcing import postgres
from psycopg.sql import SQL, Identifier, Literal

# The conversion in README.md, of a table that has no events yet
MAKE_FEED = SQL("""; DO $make_feed$
BEGIN
    PERFORM uuidv7_feed_position_watermark();    -- fails where it is not preloaded
    FOR try IN 1..2 LOOP    -- first without the lock, for which all others would wait
        EXIT WHEN to_regclass({feed_name}) IS NOT NULL;    -- perhaps by another process
        IF EXISTS (SELECT FROM {table}) THEN
            RAISE 'table % has events with ids from a sequence', {table_name}
                USING ERRCODE = 'object_not_in_prerequisite_state',
                      HINT = 'Convert it, as README.md of the adapter says.';
        END IF;
        SET LOCAL lock_timeout = '2 s';
        LOCK TABLE {table};
    END LOOP;
    IF to_regclass({feed_name}) IS NULL THEN
        ALTER TABLE {table} ALTER notification_id SET DEFAULT uuidv7_feed_position();
        CREATE TRIGGER zz_guard BEFORE INSERT OR UPDATE ON {table}
            FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('notification_id');
        CREATE VIEW {feed} WITH (security_invoker) AS
            SELECT * FROM {table} WHERE notification_id < uuidv7_feed_position_watermark();
    END IF;
END $make_feed$""")


class LockingApplicationRecorder(postgres.PostgresApplicationRecorder):
    """Reads the feed; locks and notifies for processes that use the library's own recorder."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.feed = postgres.PostgresApplicationRecorder(
            self.datastore, events_table_name=self.events_table_name + "_feed"
        )
        # Events go through the view as well: a table without it is no feed, and is refused. The
        # database function, which can be the library's, is called only where there is the view.
        self.insert_events_statement = self.feed.insert_events_statement
        table = Identifier(self.datastore.schema, self.events_table_name)
        feed = Identifier(self.datastore.schema, self.feed.events_table_name)
        self.sql_invoke_pg_function_insert_events += SQL(
            " WHERE NOT EXISTS (SELECT FROM {} WHERE false)"
        ).format(feed)
        self.sql_create_statements[self.create_table_statement_index] += MAKE_FEED.format(
            table=table,
            table_name=Literal(table.as_string()),
            feed=feed,
            feed_name=Literal(feed.as_string()),
        )

    def select_notifications(self, *args, **kwargs):
        return self.feed.select_notifications(*args, **kwargs)

    def max_notification_id(self):
        return self.feed.max_notification_id()

    def subscribe(self, gt=None, topics=()):
        return FeedSubscription(recorder=self, gt=gt, topics=topics)


class FeedApplicationRecorder(LockingApplicationRecorder):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # The first statement sets lock_timeout.
        locks = [statement.as_string()[:10] for statement in self.lock_table_statements[1:]]
        # The function of POSTGRES_ENABLE_DB_FUNCTIONS locks nothing, but notifies.
        i = self.create_insert_function_statement_index
        notify = SQL("NOTIFY {};").format(Identifier(self.channel_name)).as_string()
        function = self.sql_create_statements[i].as_string()
        if locks != ["LOCK TABLE"] or notify not in function:
            raise postgres.ProgrammingError("the adapter is for another version of eventsourcing")
        del self.lock_table_statements[1:]
        self.sql_create_statements[i] = SQL(function.replace(notify, ""))

    def _notify_channel(self, curs):
        pass


class FeedSubscription(postgres.PostgresSubscription):
    # stop() takes no longer, nor does what wakes nobody, such as COMMIT PREPARED.
    timeout = "0.5 s"

    def _listen(self):
        seen = 0
        try:
            with self._recorder.datastore.get_connection() as conn:
                # uuidv7_feed_wait() refuses a higher level, and a timeout would end it.
                conn.execute("SET default_transaction_isolation = 'read committed'")
                conn.execute("SET statement_timeout = 0")
                try:
                    while not self._has_been_stopped:
                        waited = conn.execute(
                            "SELECT uuidv7_feed_wait(%s, %s) AS seen", (seen, self.timeout)
                        )
                        seen = waited.fetchone()["seen"]
                        self._has_been_notified.set()
                finally:
                    conn.execute("RESET default_transaction_isolation")
                    conn.execute("RESET statement_timeout")
        except BaseException as error:
            self._thread_error = self._thread_error or error
            self.stop()


class LockingProcessRecorder(postgres.PostgresProcessRecorder, LockingApplicationRecorder):
    pass


class FeedProcessRecorder(postgres.PostgresProcessRecorder, FeedApplicationRecorder):
    pass


class Factory(postgres.PostgresFactory):
    application_recorder_class = FeedApplicationRecorder
    process_recorder_class = FeedProcessRecorder
