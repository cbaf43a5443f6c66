# A backend's memory does not grow with the number of values it makes, nor
# with errors and changes of settings.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'needs /proc' unless -r "/proc/$$/status";

my $node = PostgreSQL::Test::Cluster->new('memory');
$node->init;
# The just-in-time compiler's own memory is not what is measured.
$node->append_conf('postgresql.conf', 'jit = off');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

my $session = $node->background_psql('postgres');
my $pid     = $session->query_safe('SELECT pg_backend_pid()');

# Anonymous memory of the backend, in kB.
sub memory
{
	my ($kb) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m
	  or BAIL_OUT('no RssAnon in /proc');
	return $kb;
}

# In a target list generate_series() streams, so that nothing is stored.
sub make
{
	my ($count, $argument) = @_;
	return $session->query_safe("SELECT count(uuidv7_fast($argument))"
		  . " FROM (SELECT generate_series(1, $count)) AS numbers");
}

sub check_flat
{
	my ($name, $work) = @_;
	$work->(1);
	my $before = memory();
	$work->(100);
	my $growth = memory() - $before;
	cmp_ok($growth, '<', 512, "$name: memory stays (grew by $growth kB)");
	return;
}

check_flat('ten million values', sub { is(make($_[0] * 100_000, ''), $_[0] * 100_000, 'made') });
foreach my $source ('openssl', 'getrandom', 'urandom', 'xorshift128+')
{
	check_flat("a million values of $source, named in the call",
		sub { is(make($_[0] * 10_000, "'$source'"), $_[0] * 10_000, 'made') });
}
check_flat(
	'a hundred thousand errors',
	sub {
		my ($hundreds) = @_;
		$session->query_safe(
			qq{DO \$\$ BEGIN FOR i IN 1..$hundreds * 1000 LOOP
			     BEGIN PERFORM uuidv7_fast('typo'); EXCEPTION WHEN invalid_parameter_value THEN END;
			   END LOOP; END \$\$});
	});
check_flat(
	'ten thousand seeds',
	sub {
		my ($hundreds) = @_;
		$session->query_safe(
			qq{DO \$\$ BEGIN FOR i IN 1..$hundreds * 100 LOOP
			     PERFORM set_config('fast_uuid.seed', i::text, false), uuidv7_fast('xorshift128+');
			   END LOOP; END \$\$});
	});

$session->quit;
$node->stop;
done_testing();
