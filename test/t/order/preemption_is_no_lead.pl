# A session that is preempted between reading the clock and taking its place in
# the order of all sessions has an old reading, not a wrong clock: with many more
# clients than processors there is no error under the strictest limit, and no lead.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = 10;

my $node = PostgreSQL::Test::Cluster->new('preemption');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
ALTER DATABASE postgres SET fast_uuid.ordering = 'instance';
ALTER DATABASE postgres SET fast_uuid.max_clock_lead = 0;
});
my $script = $node->basedir . '/generate.sql';
append_to_file($script, <<'SQL');
SELECT count(uuidv7_fast()) FROM generate_series(1, 2000);
SELECT count(id) FROM (SELECT uuidv7_fast_set(2000) AS id) AS made;
SELECT cardinality(uuidv7_fast_array(2000));
SQL

foreach my $clients (32)
{
	my ($out, $err);
	IPC::Run::run(
		[ 'pgbench', '-n', '-c', $clients, '-j', 2, '-T', $seconds, '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
		'>', \$out, '2>', \$err);
	unlike($err, qr/ERROR|aborted/, "$clients clients: no error under a limit of 0");
	like($out, qr/number of transactions actually processed: [1-9]/, "$clients clients generate");
	is($node->safe_psql('postgres', "SELECT largest_clock_lead < '1 ms' FROM fast_uuid_stats() WHERE name = 'instance'"),
		't', "$clients clients: no lead");
}
$node->stop;
done_testing();
