# The feed's order and what can be done to its upper bound: databases and their copies, the
# extension moved, dropped and created again, a sequence that is missing or not
# logged, transactions that do not commit, WAL that leaves things out.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use DurableNode;
use FakeClock;
use FeedWriters;

require_fake_clock();

sub write_page
{
	my ($file, $page) = @_;
	open my $out, '>:raw', $file or die "could not write $file: $!";
	print $out $page;
	close $out or die "could not write $file: $!";
	return;
}

new_durable_node();
exceed('the first incarnation', ids($generate));

# A database has an upper bound of its own, its copy that of the other.
exceed('a database', ids($generate));
{
	local $database = 'other';
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	$node->safe_psql('other', 'CREATE SCHEMA ids; CREATE EXTENSION fast_uuid SCHEMA ids; ALTER DATABASE other SET search_path = ids, public');
	is(stats('upper_bound IS NULL'), 't', 'another database has an upper bound of its own');
	exceed('another database', ids($generate));
}
exceed('a database', ids(observe("upper_bound + interval '1 day'") . "; $generate"));
next_incarnation('immediate', 3600);
{
	local $database = 'other';
	exceed('another database, in the next incarnation', ids($generate));
	is(stats("clock_lead < '2 h'"), 't', 'the first one\'s UUIDs do not count there');
}
exceed('a database, in the next incarnation', ids($generate));
foreach my $strategy ('file_copy', 'wal_log')
{
	$node->safe_psql('postgres', "CREATE DATABASE $strategy TEMPLATE other STRATEGY $strategy; ALTER DATABASE $strategy SET search_path = ids, public");
	$greatest{$strategy} = $greatest{other};
}
foreach my $databases ([ 'other', 'file_copy', 'wal_log' ], [ 'wal_log', 'file_copy', 'other' ])
{
	next_incarnation('immediate', 3600);
	foreach my $name (@$databases)
	{
		local $database = $name;
		exceed("in the next incarnation, the database $name", ids($generate));
	}
}

# The extension moves to another schema while a session goes on.
{
	local $database = 'other';
	my $session = session();
	exceed('in a schema', $session->query_safe($generate));
	$node->safe_psql('other', 'ALTER EXTENSION fast_uuid SET SCHEMA public');
	exceed('in another schema, the same session', $session->query_safe($generate));
	exceed('in another schema', ids($generate));
	$session->quit;
	next_incarnation('immediate', 3600);
	exceed('in another schema, in the next incarnation', ids($generate));
}

# Without its sequence, and created again.
my $missing = qr/ERROR:  (?:55000: )?feed ids require sequence "fast_uuid_upper_bound" of extension "fast_uuid"\n.*HINT:  Restore the sequence, or drop and re-create the extension/s;
{
	local $database = 'other';
	my $session = session();
	exceed('an existing session', $session->query_safe($generate));
	$node->safe_psql('other', 'ALTER EXTENSION fast_uuid DROP SEQUENCE fast_uuid_upper_bound; DROP SEQUENCE fast_uuid_upper_bound');
	refused("SELECT $_", $missing, "without the sequence, $_")
	  foreach 'uuidv7_feed_id()', 'uuidv7_feed_position()', 'uuidv7_feed_observe(uuidv7_fast_min(now()))',
	  'uuidv7_feed_position_observe(uuidv7_fast_ns(uuidv7_fast()))', 'uuidv7_feed_reset()';
	is($session->query('SELECT uuidv7_feed_id()'), '', 'without the sequence, an existing session: no UUID');
	like($session->{stderr}, $missing, 'without the sequence, an existing session: the error');
	$session->{stderr} = '';
	is(stats('upper_bound IS NULL'), 't', 'without the sequence: there is no upper bound');
	my ($others) = run('SELECT uuidv7_feed_watermark() IS NOT NULL, uuidv7_fast() IS NOT NULL');
	is($others, 't|t', 'without the sequence: the rest works');
	$node->safe_psql('other', 'CREATE SEQUENCE public.fast_uuid_upper_bound');
	refused('SELECT uuidv7_feed_id()', $missing, 'with a sequence of that name that is not the extension\'s');
	$node->safe_psql('other', 'DROP SEQUENCE public.fast_uuid_upper_bound');
	foreach my $before ('', 'BEGIN; SELECT uuidv7_feed_id()')
	{
		exceed('an existing session, in a transaction', $session->query_safe($before)) if $before;
		$node->safe_psql('other', 'DROP EXTENSION fast_uuid; CREATE EXTENSION fast_uuid');
		exceed('created again, an existing session', $session->query_safe('SELECT uuidv7_feed_id() FROM generate_series(1, 10)'));
		exceed('created again', ids($generate));
	}
	$session->quit;
	next_incarnation('immediate', 3600);
	exceed('created again, in the next incarnation', ids($generate));
}

# A sequence that a crash would empty.
{
	local $database = 'other';
	my $unlogged = qr/ERROR:  55000: sequence "fast_uuid_upper_bound" is unlogged\n.*HINT:  Use ALTER SEQUENCE ... SET LOGGED/s;
	$node->safe_psql('other', 'ALTER SEQUENCE fast_uuid_upper_bound SET UNLOGGED');
	refused('SELECT uuidv7_feed_reset()', $unlogged, 'an unlogged sequence');
	next_incarnation('immediate', 3600);
	refused("SELECT $_", $unlogged, "an unlogged sequence, $_")
	  foreach 'uuidv7_feed_id()', 'uuidv7_feed_position()';
	$node->safe_psql('other', 'ALTER SEQUENCE fast_uuid_upper_bound SET LOGGED');
	exceed('logged again', ids($generate));
}

# A transaction that has altered the sequence: its rollback would take back what is written.
{
	local $database = 'other';
	my $alter = 'ALTER SEQUENCE fast_uuid_upper_bound CACHE 1';
	my $altered = qr/ERROR:  55000: sequence "fast_uuid_upper_bound" was altered in this transaction\n.*HINT:  Commit/s;
	refused("BEGIN; $alter; SELECT $_", $altered, "after ALTER SEQUENCE, $_") foreach 'uuidv7_feed_id()', 'uuidv7_feed_reset()';
	refused("BEGIN; $alter; SAVEPOINT a; $alter; ROLLBACK TO a; SELECT uuidv7_feed_id()", $altered, 'after two, one of which is rolled back');
	exceed('after ALTER SEQUENCE, rolled back to a savepoint', ids("BEGIN; SAVEPOINT a; $alter; ROLLBACK TO a; $generate; COMMIT"));
}

# A sequence whose page is damaged.
{
	local $database = 'other';
	my $magic = qr/ERROR:  XX001: bad magic number in sequence "fast_uuid_upper_bound"/;
	my $file  = $node->data_dir . '/' . $node->safe_psql('other', "SELECT pg_relation_filepath('fast_uuid_upper_bound')");
	$node->safe_psql('postgres', 'ALTER SYSTEM SET ignore_checksum_failure = on');
	end_incarnation($node, 'fast');
	my $page = slurp_file($file);
	write_page($file, substr($page, 0, length($page) - 8) . pack('Q', 0));
	begin_incarnation($node);
	refused("SELECT $_", $magic, "a damaged page, $_") foreach 'uuidv7_feed_id()', 'uuidv7_feed_reset()', 'name FROM fast_uuid_stats()';
	end_incarnation($node, 'immediate');
	write_page($file, $page);
	begin_incarnation($node);
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ignore_checksum_failure');
	exceed('mended', ids($generate));
}

# Transactions that create the extension.
{
	local $database = 'fresh';
	$node->safe_psql('postgres', 'CREATE DATABASE fresh');
	exceed('created, and rolled back', ids('BEGIN; CREATE EXTENSION fast_uuid; SELECT uuidv7_feed_id() FROM generate_series(1, 10); ROLLBACK'));
	refused('SELECT uuidv7_feed_id()', qr/ERROR:  42883: /, 'created, and rolled back');
	exceed('created, and prepared', ids("BEGIN; CREATE EXTENSION fast_uuid; SELECT uuidv7_feed_id() FROM generate_series(1, 10); PREPARE TRANSACTION 'a'"));
	next_incarnation('immediate', 3600);
	$node->safe_psql('fresh', "COMMIT PREPARED 'a'");
	exceed('prepared, and committed in the next incarnation', ids($generate));
	exceed('dropped, and rolled back', ids('BEGIN; DROP EXTENSION fast_uuid; ROLLBACK; SELECT uuidv7_feed_id()'));
	next_incarnation('immediate', 3600);
	exceed('dropped, and rolled back, in the next incarnation', ids($generate));
}

$node->stop;

# Where a transaction that creates the sequence writes nothing about it to the WAL.
{
	local $node   = new_feed_node('minimal', "wal_level = minimal\nmax_wal_senders = 0\nwal_writer_delay = '10 s'\nautovacuum = off");
	local $behind = 0;
	set_clock_offset($node, '+0');
	begin_incarnation($node);
	foreach my $threshold ('0', '2 MB')
	{
		$database = 'threshold_' . substr($threshold, 0, 1);
		$node->safe_psql('postgres', "CREATE DATABASE $database; ALTER DATABASE $database SET wal_skip_threshold = '$threshold'");
		exceed("wal_level = minimal, skip $threshold: created", ids('BEGIN; CREATE EXTENSION fast_uuid; SELECT uuidv7_feed_id() FROM generate_series(1, 10); COMMIT'));
		next_incarnation('immediate', 3600);
		exceed("wal_level = minimal, skip $threshold: in the next incarnation", ids($generate));
	}
	$node->stop;
}

done_testing();
