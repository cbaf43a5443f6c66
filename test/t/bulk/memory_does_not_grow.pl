# A backend's memory does not grow with the number of UUIDs it generates, nor
# with errors and changes of settings; and the largest array can be made.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;

plan skip_all => 'needs /proc' unless -r "/proc/$$/status";

# The just-in-time compiler's own memory is not what is measured.
my $node = start_feed('memory', 'jit = off');

my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid     = $session->query_safe('SELECT pg_backend_pid()');

# Anonymous memory of the backend, in kB.
sub memory
{
	my ($kb) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m
	  or BAIL_OUT('no RssAnon in /proc');
	return $kb;
}

# In a target list a set streams, so that nothing is stored.  Of loops each turn is of $n
# hundreds.
my @sources = ('openssl', 'getrandom', 'urandom', 'xorshift128+');
my $loop    = 'DO $$ BEGIN FOR i IN 1..%d LOOP %s END LOOP; END $$';
my %work    = (
	'values' => sub { sprintf 'SELECT count(uuidv7_fast()) FROM (SELECT generate_series(1, %d)) AS numbers', $_[0] * 50_000 },
	'feed ids' => sub { sprintf 'SELECT count(uuidv7_feed_id()), count(uuidv7_feed_position()) FROM (SELECT generate_series(1, %d)) AS numbers', $_[0] * 20_000 },
	'a set'  => sub { sprintf 'SELECT count(id) FROM (SELECT uuidv7_fast_set(%d) AS id) AS made', $_[0] * 50_000 },
	'errors' => sub {
		sprintf $loop, $_[0] * 200,
		  "BEGIN PERFORM uuidv7_fast('typo'); EXCEPTION WHEN invalid_parameter_value THEN END;";
	},
	'seeds' => sub { sprintf $loop, $_[0] * 100, "PERFORM set_config('fast_uuid.seed', i::text, false), uuidv7_fast('xorshift128+');" },
	map {
		my $source = $_;
		("values of $source, named in the call" =>
			  sub { sprintf "SELECT count(uuidv7_fast('$source')) FROM (SELECT generate_series(1, %d)) AS numbers", $_[0] * 10_000 })
	} @sources);
foreach my $what (sort keys %work)
{
	$session->query_safe($work{$what}->(1));
	my $before = memory();
	$session->query_safe($work{$what}->(100));
	my $growth = memory() - $before;
	cmp_ok($growth, '<', 512, "$what: memory stays (grew by $growth kB)");
}

SKIP:
{
	my ($free) = slurp_file('/proc/meminfo') =~ /^MemAvailable:\s+(\d+) kB/m;
	skip 'the largest array takes 1 GB of memory', 1 if $free < 4 * 1024 * 1024;
	is($session->query_safe(
			"SELECT cardinality(ids), ids[1] < ids[2] AND ids[67108861] < ids[67108862]"
			  . " FROM (SELECT uuidv7_fast_array(67108862, 'xorshift128+') AS ids OFFSET 0) AS made"),
		'67108862|t', 'the largest array');
}

$session->quit;
$node->stop;
done_testing();
