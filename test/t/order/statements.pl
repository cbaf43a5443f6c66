# The random statements of test/sql/statements.sql, after each of which the UUIDs of the
# session ascend, under clocks that hide nothing: one that stands still, those that move
# by less than a UUID at each reading, and those that go backwards.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('statements');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\nlog_statement = none\n");
my $clock = KnownClock->new($node);
$clock->put(1_800_000_000_000_000_000);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

my $statements = slurp_file('test/sql/statements.sql');
my ($expected) = slurp_file('expected/statements.out') =~ /^ +(\d+) \| *$/m;
foreach my $step (0, 3, 10, 20, 40, 80, -1, -1000)
{
	$clock->move($step);
	is($node->safe_psql('postgres', $statements), "$expected|", "a clock that moves by $step ns at each reading");
}

$node->stop;
done_testing();
