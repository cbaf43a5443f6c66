# Sixteen clients on few processors insert rows with a feed id, a position and a key, and
# generate in bulk, from every source: no error, and nothing twice.  The feed does not lead
# the clock, nor is there an error under the strictest limit: a session that is preempted
# between reading the clock and taking its place has an old reading, not a wrong clock.
#
#   TRANSACTIONS=n   of each client for each source

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;

my $clients      = 16;
my $transactions = $ENV{TRANSACTIONS} // 20;

my $node = start_feed('load', q{
max_connections = 40
jit = off
synchronous_commit = off
max_wal_size = 4GB
});
$node->safe_psql('postgres', qq{
CREATE TABLE item (
  id       uuid PRIMARY KEY DEFAULT uuidv7_feed_id(),
  position bigint UNIQUE DEFAULT uuidv7_feed_position(),
  key      uuid UNIQUE DEFAULT uuidv7_fast(),
  backend  integer NOT NULL DEFAULT pg_backend_pid(),
  run      text NOT NULL DEFAULT current_setting('application_name'));
${\ guard('item')}});
my $script = $node->basedir . '/insert.sql';
append_to_file($script, q{
INSERT INTO item DEFAULT VALUES;
SELECT count(uuidv7_feed_id()), count(uuidv7_feed_position()) FROM generate_series(1, 1000);
SELECT count(uuidv7_fast()) FROM generate_series(1, 1000);
SELECT cardinality(uuidv7_fast_array(1000));
});

my $sources = $node->safe_psql('postgres', 'SELECT name FROM fast_uuid_sources() WHERE available');
foreach my $source (split /\n/, $sources)
{
	local $ENV{PGAPPNAME} = $source;
	local $ENV{PGOPTIONS} = "-c fast_uuid.source=$source -c fast_uuid.max_clock_lead=0";
	my ($out, $err) = run_command([ 'pgbench', '-n', '-M', 'prepared', '-c', $clients, '-j', 2,
			'-t', $transactions, '-f', $script, $node->connstr('postgres') ]);
	unlike($err, qr/error|aborted/i, "$source: no error");
	my $count = "SELECT count(*), count(DISTINCT backend) FROM item WHERE run = '$source'";
	is($node->safe_psql('postgres', $count),
		$clients * $transactions . "|$clients", "$source: a row for each transaction");
}
my $no_lead = "SELECT largest_clock_lead < '1 ms' FROM fast_uuid_stats() WHERE name = 'feed'";
is($node->safe_psql('postgres', $no_lead), 't', 'no lead of the feed');
is( $node->safe_psql('postgres', q{
SELECT (SELECT 2 * count(*) FROM item) - count(*)
  FROM (SELECT uuidv7_fast_ns(id) FROM item UNION SELECT position FROM item) AS ns}),
	'0', 'no nanosecond of the feed twice');
unlike(slurp_file($node->logfile), qr/ERROR|FATAL|PANIC|was terminated/, 'the log has no error');

$node->stop;
done_testing();
