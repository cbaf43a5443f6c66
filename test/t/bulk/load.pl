# Sixteen clients on few processors insert rows and generate in bulk, from every source: no
# error, and nothing twice.
#
#   TRANSACTIONS=n   of each client for each source

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $clients      = 16;
my $transactions = $ENV{TRANSACTIONS} // 20;

my $node = PostgreSQL::Test::Cluster->new('load');
$node->init;
$node->append_conf('postgresql.conf', q{
max_connections = 40
jit = off
synchronous_commit = off
max_wal_size = 4GB
});
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE item (
  id      uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  backend integer NOT NULL DEFAULT pg_backend_pid(),
  run     text NOT NULL DEFAULT current_setting('application_name'));
CREATE TABLE more (id uuid PRIMARY KEY)});
my $script = $node->basedir . '/insert.sql';
append_to_file($script, q{
INSERT INTO item DEFAULT VALUES;
INSERT INTO more SELECT uuidv7_fast() FROM generate_series(1, 100);
INSERT INTO more SELECT unnest(uuidv7_fast_array(1000));
});

my $sources = $node->safe_psql('postgres', 'SELECT name FROM fast_uuid_sources() WHERE available');
foreach my $source (split /\n/, $sources)
{
	local $ENV{PGAPPNAME} = $source;
	local $ENV{PGOPTIONS} = "-c fast_uuid.source=$source";
	my ($out, $err) = run_command([ 'pgbench', '-n', '-M', 'prepared', '-c', $clients, '-j', 2,
			'-t', $transactions, '-f', $script, $node->connstr('postgres') ]);
	unlike($err, qr/error|aborted/i, "$source: no error");
	my $count = "SELECT count(*), count(DISTINCT backend) FROM item WHERE run = '$source'";
	is($node->safe_psql('postgres', $count),
		$clients * $transactions . "|$clients", "$source: a row for each transaction");
}
unlike(slurp_file($node->logfile), qr/ERROR|FATAL|PANIC|was terminated/, 'the log has no error');

$node->stop;
done_testing();
