"""The recorders of eventsourcing on fast_feed: PERSISTENCE_MODULE=fast_feed_eventsourcing

The library's tables stay as they are. Readers stop below the watermark, so that writers need no
LOCK TABLE. Subscriptions wait for transactions with notification ids to end, in place of LISTEN.
"""

# Not the class PostgresFactory: the library wants one factory in a PERSISTENCE_MODULE.
from eventsourcing import postgres
from eventsourcing.utils import retry
from psycopg.sql import SQL, Identifier, Literal

# watermark() says what is wrong, and so does enable(), if it is not that.
ENABLE = SQL("""DO $enable$ BEGIN
    PERFORM fast_feed.watermark({table}, 'notification_id');
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    SET LOCAL lock_timeout = {lock_timeout};    -- others wait behind enable()
    PERFORM fast_feed.enable({table}, 'notification_id');
END $enable$""")


class LockingApplicationRecorder(postgres.PostgresApplicationRecorder):
    """Reads below the watermark; locks and notifies for processes with the library's recorder."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        table = Literal(Identifier(self.datastore.schema, self.events_table_name).as_string())
        seconds = Literal(f"{self.datastore.lock_timeout or 2}s")
        self.enable_statement = ENABLE.format(table=table, lock_timeout=seconds)
        watermark = SQL("fast_feed.watermark({}, 'notification_id')").format(table)
        self.watermark_statement = SQL("SELECT {} AS watermark").format(watermark)
        self.max_notification_id_statement += SQL(" WHERE notification_id < ") + watermark

    def create_table(self):
        # Before the library's own statements, which wait for writers without a timeout
        with self.datastore.transaction(commit=True) as curs:
            curs.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            curs.execute(self.sql_create_statements[self.create_table_statement_index])
            curs.execute(self.enable_statement)
        super().create_table()

    @retry((postgres.InterfaceError, postgres.OperationalError), max_attempts=10, wait=0.2)
    def watermark(self):
        with self.datastore.get_connection() as conn:
            return conn.execute(self.watermark_statement, prepare=True).fetchone()["watermark"]

    def select_notifications(self, start, limit, stop=None, *args, **kwargs):
        # It is right for the next statement too, as that has a later snapshot.
        last = self.watermark() - 1
        stop = last if stop is None else min(stop, last)
        return super().select_notifications(start, limit, stop, *args, **kwargs)

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
                # fast_feed.wait() refuses a higher level, and a timeout would end it.
                conn.execute("SET default_transaction_isolation = 'read committed'")
                conn.execute("SET statement_timeout = 0")
                try:
                    while not self._has_been_stopped:
                        waited = conn.execute(
                            "SELECT fast_feed.wait(%s, %s) AS seen", (seen, self.timeout)
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
