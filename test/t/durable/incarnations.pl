# The feed's order, over crashes with a clock that is an hour behind each time, and what can be
# done to its upper bound: databases and their copies, the extension moved, dropped and created
# again, a sequence that is missing, not logged, altered or damaged, transactions that do not
# commit, WAL that leaves things out, a standby that is promoted.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use DurableNode;
use FakeClock;
use FeedWriters;
use RawSession;

sub sql { return $node->safe_psql($database, $_[0]) }

sub check_next_incarnation
{
	my ($name) = @_;
	next_incarnation('immediate', 3600);
	exceed("$name, in the next incarnation", ids($generate));
	return;
}

new_durable_node();
exceed('the first incarnation', ids($generate));

# A database has an upper bound of its own, its copy that of the other.
sql('CREATE DATABASE other');
$database = 'other';
sql('CREATE EXTENSION fast_uuid');
is(stats('upper_bound IS NULL'), 't', 'another database has an upper bound of its own');
exceed('another database', ids($generate));
$database = 'postgres';
exceed('a database', ids(observe("upper_bound + interval '1 day'") . "; $generate"));
$database = 'other';
check_next_incarnation('another database');
is(stats("clock_lead < '2 h'"), 't', '... in which ids of the first one do not count');
$database = 'postgres';
exceed('a database, in the next incarnation', ids($generate));
foreach my $strategy ('file_copy', 'wal_log')
{
	sql("CREATE DATABASE $strategy TEMPLATE other STRATEGY $strategy");
	$greatest{$strategy} = $greatest{other};
}
next_incarnation('immediate', 3600);
foreach my $name ('wal_log', 'file_copy', 'other')
{
	$database = $name;
	exceed("after copies, in the next incarnation, the database $name", ids($generate));
}

# The extension moves to another schema while a session goes on.
my $session = session();
exceed('in a schema', $session->query_safe($generate));
sql('CREATE SCHEMA ids; ALTER EXTENSION fast_uuid SET SCHEMA ids');
sql('ALTER DATABASE other SET search_path = ids, public');
$session->query_safe('SET search_path = ids, public');
exceed('in another schema, the same session', $session->query_safe($generate));
check_next_incarnation('in another schema');
$session->quit;

# Without its sequence, and created again.
my $missing = qr/ERROR:  55000: feed ids require sequence "fast_uuid_upper.*HINT:  Restore/s;
$session = session();
exceed('a session', $session->query_safe($generate));
sql('ALTER EXTENSION fast_uuid DROP SEQUENCE fast_uuid_upper_bound');
sql('DROP SEQUENCE fast_uuid_upper_bound');
foreach my $call ('id()', 'position()', 'observe(uuidv7_fast_min(now()))',
	'position_observe(1)', 'reset()')
{
	refused("SELECT uuidv7_feed_$call", $missing, "without the sequence, $call");
}
is($session->outcome('SELECT uuidv7_feed_id()'), '55000', 'without the sequence, the session');
is(stats('upper_bound IS NULL'), 't', 'without the sequence: there is no upper bound');
is(sql('SELECT uuidv7_feed_watermark() IS NOT NULL, uuidv7_fast() IS NOT NULL'),
	't|t', 'without the sequence: the rest works');
sql('CREATE SEQUENCE public.fast_uuid_upper_bound');
refused('SELECT uuidv7_feed_id()', $missing, 'with a sequence that is not the extension\'s');
sql('DROP SEQUENCE public.fast_uuid_upper_bound');
foreach my $begin ('', 'BEGIN')
{
	exceed('the session', $session->query_safe("$begin; $generate")) if $begin;
	sql('DROP EXTENSION fast_uuid; CREATE EXTENSION fast_uuid');
	exceed('created again, the session', $session->query_safe($generate));
	exceed('created again', ids($generate));
}
$session->quit;
check_next_incarnation('created again');

# A sequence that a crash would empty.
my $unlogged = qr/ERROR:  55000: sequence "fast_uuid_upper_bound" is unlogged\n.*HINT:  Use ALTER/s;
sql('ALTER SEQUENCE fast_uuid_upper_bound SET UNLOGGED');
refused('SELECT uuidv7_feed_reset()', $unlogged, 'an unlogged sequence, a reset');
next_incarnation('immediate', 3600);
refused('SELECT uuidv7_feed_id()', $unlogged, 'an unlogged sequence');
sql('ALTER SEQUENCE fast_uuid_upper_bound SET LOGGED');
exceed('logged again', ids($generate));

# A transaction that has altered the sequence: its rollback would take back what is written.
my $alter = 'ALTER SEQUENCE fast_uuid_upper_bound CACHE 1';
my $altered = qr/ERROR:  55000: sequence "fast_uuid_upper_bound" was alt.*HINT:  Commit/s;
foreach my $call ('id()', 'position()', 'reset()')
{
	refused("BEGIN; $alter; SELECT uuidv7_feed_$call", $altered, "after ALTER SEQUENCE, $call");
}
refused("BEGIN; $alter; SAVEPOINT a; $alter; ROLLBACK TO a; SELECT uuidv7_feed_id()",
	$altered, 'after two, one of which is rolled back');
exceed('after one that is rolled back',
	ids("BEGIN; SAVEPOINT a; $alter; ROLLBACK TO a; $generate; COMMIT"));

# Transactions that create the extension.
$database = 'fresh';
$node->safe_psql('postgres', 'CREATE DATABASE fresh');
exceed('created, and rolled back', ids("BEGIN; CREATE EXTENSION fast_uuid; $generate; ROLLBACK"));
refused('SELECT uuidv7_feed_id()', qr/ERROR:  42883: /, 'created, and rolled back');
exceed('created, and prepared',
	ids("BEGIN; CREATE EXTENSION fast_uuid; $generate; PREPARE TRANSACTION 'a'"));
next_incarnation('immediate', 3600);
sql("COMMIT PREPARED 'a'");
exceed('prepared, and committed in the next incarnation', ids($generate));
exceed('dropped, and rolled back', ids("BEGIN; DROP EXTENSION fast_uuid; ROLLBACK; $generate"));
check_next_incarnation('dropped, and rolled back');

# A standby, and one behind it, each with a clock that is an hour behind, and each promoted
# while sessions of the one before write.
$database = 'fresh';
sql('ALTER SEQUENCE fast_uuid_upper_bound SET UNLOGGED');
$database = 'postgres';
sql('CREATE TABLE made (id uuid DEFAULT uuidv7_feed_id())');
my $primary = $node;
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
my $cascaded = PostgreSQL::Test::Cluster->new('cascaded');
$cascaded->init_from_backup($primary, 'copy');
$cascaded->enable_streaming($standby);
foreach my $follower ($standby, $cascaded)
{
	$behind += 3600;
	set_clock_offset($follower, -$behind);
	begin_incarnation($follower);
}

sub begin_writing
{
	my ($on) = @_;
	my $session = RawSession->start($on);
	$session->send(q{
DO $$ BEGIN
	LOOP
		INSERT INTO made SELECT FROM generate_series(1, 20);
		COMMIT;
	END LOOP;
END $$});
	return $session;
}

# The primary's greatest row that has come, of which the standby's own must be greater.
my $last_row = 'SELECT id FROM made ORDER BY id DESC LIMIT 1';
my @writers = map { begin_writing($primary) } 1 .. 3;
$node = $standby;
my $recovery = qr/ERROR:  55000: cannot use the order of feed ids during recovery\n.*DETAIL:  A/s;
foreach my $call ('id()', "id('getrandom')", 'position()', 'reset()', 'position_observe(1)',
	'observe(uuidv7_fast_min(now()))')
{
	refused("SELECT uuidv7_feed_$call", $recovery, "on a standby, $call");
}
is(ids('SELECT uuidv7_fast()'), 1, 'on a standby: a key');
$database = 'fresh';
is(stats('upper_bound IS NULL'), 't', 'an upper bound of an unlogged sequence is not shown');
$database = 'postgres';
$session = session();
is($session->outcome('SELECT uuidv7_feed_id()'), '55000', 'a session that stays');
$standby->poll_query_until('postgres', 'SELECT count(*) > 1000 FROM made') or die 'no rows';
is(stats('upper_bound > now()'), 't', 'an upper bound is shown, which is ahead of the clock');

$standby->promote;
exceed('the primary', ids($last_row));
exceed('promoted, the session that stayed', $session->query_safe('SELECT uuidv7_feed_id()'));
exceed('promoted', ids('SELECT uuidv7_feed_id() FROM generate_series(1, 1000)'));
$session->quit;

# And at once the next one.
my $writer = begin_writing($standby);
my ($last_id) = $standby->safe_psql('postgres', 'SELECT uuidv7_feed_id()');
$cascaded->poll_query_until('postgres', "SELECT count(*) > 0 FROM made WHERE id > '$last_id'")
  or die 'no rows';
end_incarnation($standby, 'immediate');
$node = $cascaded;
refused('SELECT uuidv7_feed_id()', $recovery, 'on a cascaded standby');
$cascaded->promote;
exceed('promoted before', ids($last_row));
exceed('promoted in turn', ids($generate));
next_incarnation('SIGKILL', 3600);
exceed('promoted in turn, in the next incarnation', ids($generate));
$cascaded->stop;
ok(!$_->has_answer, 'the old primary writes all the time') foreach @writers;
$primary->stop('immediate');

# Where a transaction that creates the sequence writes nothing about it to the WAL.
$node = new_feed_node('minimal', "wal_level = minimal\nmax_wal_senders = 0\n");
($database, $behind) = ('postgres', 0);
set_clock_offset($node, '+0');
begin_incarnation($node);
%greatest = ();
exceed('minimal WAL', ids("BEGIN; CREATE EXTENSION fast_uuid; $generate; COMMIT"));
check_next_incarnation('minimal WAL');

# A sequence whose page is damaged: its last bytes say that it is one.
my $file = $node->data_dir . '/' . sql("SELECT pg_relation_filepath('fast_uuid_upper_bound')");
end_incarnation($node, 'fast');
$node->append_conf('postgresql.conf', 'ignore_checksum_failure = on');
open my $page, '+<:raw', $file or die "could not open $file: $!";
seek $page, -8, 2;
print $page pack 'Q', 0;
close $page or die "could not write $file: $!";
begin_incarnation($node);
foreach my $call ('uuidv7_feed_id()', 'uuidv7_feed_reset()', 'name FROM fast_uuid_stats()')
{
	refused("SELECT $call", qr/ERROR:  XX001: bad magic number in seq/, "a damaged page, $call");
}
end_incarnation($node, 'immediate');
done_testing();
