# A reset is alone: it is refused while another session has joined the order, in whatever
# way and database; a call that is refused does not join.  A session that joins at that
# very moment is forced.pl's; what a reset does is as_predicted.pl's.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('reset');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql($_, "CREATE EXTENSION fast_uuid") foreach 'postgres', 'elsewhere';

sub session
{
	my ($order, $database, @statements) = @_;
	my $session = RawSession->connect($node, user => scalar getpwuid($>), database => $database);
	$session->query_safe($_) foreach "SET fast_uuid.ordering = '$order'", @statements;
	return $session;
}

my $reset   = 'SELECT fast_uuid_reset_ordering()';
my $state   = q{SELECT string_agg(concat_ws(' ', name, largest_clock_lead, upper_bound), ', ') FROM fast_uuid_stats()};
my $observe = 'SELECT fast_uuid_observe(uuidv7_fast_min(now()))';

# In a session of whatever order
my @refused = (
	'SELECT uuidv7_fast_wait(NULL)', 'SELECT uuidv7_fast_wait(0, NULL)', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT uuidv7_fast_wait(0)',
	"SELECT uuidv7_fast('typo')", 'SELECT uuidv7_fast_array(-1)', "SELECT uuidv7_fast_at('infinity')", 'SELECT uuidv7_fast_at(NULL)',
	'SELECT fast_uuid_observe(gen_random_uuid())', 'SELECT fast_uuid_benchmark(0)');

foreach my $order ('instance', $node->pg_version >= 17 ? 'durable' : ())
{
	my $dba = session($order, 'postgres', 'SELECT uuidv7_fast()');

	# All at once, because the reset gives those who are about to leave some seconds.
	my @ways = (
		[ 'postgres', 'session', 'SELECT 1' ], [ 'postgres', 'session', 'SELECT uuidv7_fast()' ],
		[ 'postgres', 'session', $observe ], [ 'postgres', $order, 'SELECT count(*) FROM fast_uuid_stats()' ],
		[ 'postgres', $order, 'SELECT uuidv7_fast()' ], [ 'elsewhere', 'instance', 'SELECT uuidv7_fast_array(3)' ],
		[ 'postgres', $order, $observe ], [ 'elsewhere', 'session', 'SELECT uuidv7_fast_watermark()' ],
		[ 'postgres', 'session', 'SELECT uuidv7_fast_wait(0)' ],
		[ 'postgres', $order, 'BEGIN; SELECT uuidv7_fast(); ROLLBACK; SET fast_uuid.ordering = session; DISCARD ALL' ]);
	my @sessions = map { my ($database, $its_order, $sql) = @$_; session($its_order, $database, split /; /, $sql) } @ways;
	my @joined   = map { $_->query_safe('SELECT pg_backend_pid()') } @sessions[ 4 .. $#sessions ];
	foreach my $its_order ('session', $order)
	{
		my $session = session($its_order, 'postgres');
		foreach my $sql (@refused)
		{
			like((map { $session->outcome($_) } split /; /, $sql)[-1], qr/^[0-9A-Z]{5}$/, "$its_order: refused: $sql");
			$session->outcome('ROLLBACK');
		}
		push @sessions, $session;
	}
	my $before = $dba->query_safe($state);
	is($dba->outcome($reset), '55006', "$order: refused beside sessions that have joined");
	my ($message, $detail, $hint) = $dba->{error} =~ /^55006 (.*)\|(.*)\|(.*)$/;
	is($message, 'order of UUIDs is being used by other sessions', "$order: ... said");
	like($detail, qr/^6 other sessions have /, "$order: ... how many");
	is(join(' ', sort { $a <=> $b } $detail =~ /\d{2,}/g), join(' ', sort { $a <=> $b } @joined), "$order: ... and which");
	like($hint, qr/^End these sessions/, "$order: ... and what helps");
	is($dba->query_safe($state), $before, "$order: ... and nothing has changed");
	$_->quit foreach @sessions[ 5 .. $#sessions ];
	is($dba->outcome($reset), '55006', "$order: beside one");
	like($dba->{error}, qr/\|1 other session has .*: process ID $joined[0]\.\|/, "$order: ... said");
	$sessions[4]->quit;
	is($dba->outcome($reset), 'value ', "$order: beside those that have not joined it works");
	$_->quit foreach @sessions[ 0 .. 3 ], $dba;
}
$node->stop;
done_testing();
