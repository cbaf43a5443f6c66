# Sixteen clients on few processors insert rows with the default as their key, and generate in
# bulk, from every source and under both orders: no error, and no key twice.  Under instance
# order neither is there a lead, nor an error under the strictest limit: a session that is
# preempted between reading the clock and taking its place has an old reading, not a wrong
# clock.
#
#   SECONDS_PER_SOURCE=n   half of it under each order; without it a second per
#                          source, each under one of the orders

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $clients = 16;
my $long    = $ENV{SECONDS_PER_SOURCE};
my $seconds = $long ? int(($long + 1) / 2) : 1;    # of a run
my @orders  = ('session', 'instance');
my @sources = ('openssl', 'getrandom', 'urandom', 'xorshift128+');

my $node = PostgreSQL::Test::Cluster->new('load');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'fast_uuid'
max_connections = 40
jit = off
synchronous_commit = off
max_wal_size = 4GB
});
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE item (
  id      uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  backend integer NOT NULL DEFAULT pg_backend_pid(),
  run     text NOT NULL DEFAULT current_setting('application_name'))});
my $script = $node->basedir . '/insert.sql';
append_to_file($script, q{
INSERT INTO item DEFAULT VALUES;
SELECT count(uuidv7_fast()) FROM generate_series(1, 1000);
SELECT cardinality(uuidv7_fast_array(1000));
SELECT count(id) FROM (SELECT uuidv7_fast_set(1000) AS id) AS made;
});

foreach my $i (0 .. $#sources)
{
	my $source = $sources[$i];
	foreach my $ordering ($long ? @orders : $orders[ $i % 2 ])
	{
		my $run = "$source $ordering";
		local $ENV{PGAPPNAME} = $run;
		local $ENV{PGOPTIONS} = join ' ', map { "-c fast_uuid.$_" } "source=$source",
		  "ordering=$ordering", 'max_clock_lead=0';
		my ($out, $err) = run_command([ 'pgbench', '-n', '-M', 'prepared', '-c', $clients, '-j', 2,
				'-T', $seconds, '-f', $script, $node->connstr('postgres') ]);
		my ($transactions) = $out =~ /transactions actually processed: (\d+)/;
		unlike($err, qr/error|aborted/i, "$run: no error");
		is( $node->safe_psql('postgres', "SELECT count(*), count(DISTINCT backend) FROM item WHERE run = '$run'"),
			"$transactions|$clients", "$run: a row for each transaction");
	}
}
my $no_lead = "SELECT largest_clock_lead < '1 ms' FROM fast_uuid_stats() WHERE name = 'instance'";
is($node->safe_psql('postgres', $no_lead), 't', 'no lead of the instance');
is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM item'), '0', 'no key twice');
unlike(slurp_file($node->logfile), qr/ERROR|FATAL|PANIC|was terminated/, 'the log has no error');

$node->stop;
done_testing();
