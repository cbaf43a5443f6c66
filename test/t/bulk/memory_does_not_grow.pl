# A backend's memory does not grow with the number of UUIDs it generates, nor
# with errors and changes of settings; and the largest array can be made.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

plan skip_all => 'needs /proc' unless -r "/proc/$$/status";

# The just-in-time compiler's own memory is not what is measured.
my $node = PostgreSQL::Test::Cluster->new('memory');
$node->init;
$node->append_conf('postgresql.conf', 'jit = off');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $session = RawSession->start($node);

# Queries that generate N hundreds of UUIDs, or errors; in a target list a series
# streams, so that nothing is stored.
my $rows = 'FROM (SELECT generate_series(1, N * 10000)) AS numbers';
my $loop = 'DO $$ BEGIN FOR i IN 1..N * 100 LOOP %s END LOOP; END $$';
my %work = (
	'UUIDs'  => "SELECT count(uuidv7_fast()) $rows",
	'arrays' => "SELECT count(uuidv7_fast_array(5)) $rows",
	'errors' => sprintf($loop,
		"BEGIN PERFORM uuidv7_fast('typo'); EXCEPTION WHEN invalid_parameter_value THEN END;"),
	'seeds' => sprintf($loop,
		"PERFORM set_config('fast_uuid.seed', i::text, false), uuidv7_fast('xorshift128+');"));
my $sources = $session->query_safe('SELECT name FROM fast_uuid_sources() WHERE available');
$work{"UUIDs of $_"} = "SELECT count(uuidv7_fast('$_')) $rows" foreach split /\n/, $sources;

foreach my $what (sort keys %work)
{
	$session->query_safe($work{$what} =~ s/\bN\b/1/r);
	my $before = $session->memory;
	$session->query_safe($work{$what} =~ s/\bN\b/100/r);
	my $growth = $session->memory - $before;
	cmp_ok($growth, '<', 512, "$what: memory stays (grew by $growth kB)");
}

SKIP:
{
	my ($free) = slurp_file('/proc/meminfo') =~ /^MemAvailable:\s+(\d+) kB/m;
	skip 'the largest array takes 1 GB of memory', 1 if $free < 4 * 1024 * 1024;
	is( $session->query_safe(
			'SELECT cardinality(ids) = 67108862 AND ids[1] < ids[2] AND ids[2] < ids[67108862]'
			  . " FROM (SELECT uuidv7_fast_array(67108862, 'urandom') OFFSET 0) AS made (ids)"),
		't', 'the largest array');
}

$session->quit;
$node->stop;
done_testing();
