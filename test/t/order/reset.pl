# The reset of the feed is alone: it is refused while another session has joined its order,
# in whatever way and database, and in a transaction with feed ids; a call that is refused
# does not join, nor do keys.  That of a session's keys works anywhere.  A session that joins
# at that very moment is gaps.pl's; what a reset does is as_predicted.pl's.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

# Keys follow what was observed, until a reset.
sub check_keys
{
	my ($session, $where) = @_;
	my $ahead = $session->query_safe("SELECT uuidv7_fast_at(clock_timestamp() + '900 ms')");
	$session->query_safe("SELECT fast_uuid_observe('$ahead')");
	is($session->query_safe("SELECT uuidv7_fast() > '$ahead'"), 't', "$where, keys follow what was observed");
	is($session->query_safe("SELECT uuidv7_fast() < '$ahead' FROM fast_uuid_reset_ordering()"), 't', "$where, not after a reset");
	return;
}

my $node = PostgreSQL::Test::Cluster->new('reset');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "jit = off\nmax_connections = 30");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql($_, 'CREATE EXTENSION fast_uuid') foreach 'postgres', 'elsewhere';
check_keys(RawSession->start($node), 'without preloading');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
$node->restart;

sub session
{
	my ($database, @statements) = @_;
	my $session = RawSession->connect($node, user => scalar getpwuid($>), database => $database);
	$session->query_safe($_) foreach @statements;
	return $session;
}

my $reset = 'SELECT uuidv7_feed_reset()';
my $state = q{SELECT concat_ws(' ', largest_clock_lead, upper_bound) FROM fast_uuid_stats() WHERE name = 'feed'};
my $dba = session('postgres', 'SELECT uuidv7_feed_id()');

# All at once, because the reset gives those who are about to leave some seconds.
my @apart = map { session('postgres', split /; /, $_) }
  'SELECT 1', 'SELECT uuidv7_fast_array(3)', 'SELECT fast_uuid_observe(uuidv7_fast()); SELECT fast_uuid_reset_ordering()',
  'SELECT count(*) FROM fast_uuid_stats()';
my @joined = (
	session('postgres', 'SELECT uuidv7_feed_id()'), session('elsewhere', 'SELECT uuidv7_feed_position()'),
	session('postgres', 'SELECT uuidv7_feed_observe(uuidv7_fast_min(now()))'), session('postgres', 'SELECT uuidv7_feed_position_observe(0)'),
	session('elsewhere', 'SELECT uuidv7_feed_watermark()'), session('postgres', 'SELECT uuidv7_feed_position_watermark()'),
	session('postgres', 'SELECT uuidv7_feed_wait(0)'), session('postgres', 'BEGIN', 'SELECT uuidv7_feed_id()', 'ROLLBACK', 'DISCARD ALL'));
my $refused = session('postgres');
foreach my $sql (
	'SELECT uuidv7_feed_wait(NULL)', 'SELECT uuidv7_feed_wait(0, NULL)', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT uuidv7_feed_wait(0)',
	"SELECT uuidv7_feed_id('typo')", 'SELECT uuidv7_feed_observe(gen_random_uuid())', 'SELECT uuidv7_feed_position_observe(-1)')
{
	like((map { $refused->outcome($_) } split /; /, $sql)[-1], qr/^[0-9A-Z]{5}$/, "refused: $sql");
	$refused->outcome('ROLLBACK');
}
my $before = $dba->query_safe($state);
is($dba->outcome($reset), '55006', 'refused beside sessions that have joined');
my ($message, $detail, $hint) = $dba->{error} =~ /^55006 (.*)\|(.*)\|(.*)$/;
is($message, 'order of feed ids is being used by other sessions', '... said');
like($detail, qr/^${\scalar @joined} other sessions have /, '... how many');
is(join(' ', sort $detail =~ /\d{2,}/g), join(' ', sort map { $_->{pid} } @joined), '... and which');
like($hint, qr/^End these sessions/, '... and what helps');
is($dba->query_safe($state), $before, '... and nothing has changed');
check_keys($dba, 'beside others that have joined');
$_->quit foreach @joined[ 1 .. $#joined ];
is($dba->outcome($reset), '55006', 'beside one');
like($dba->{error}, qr/\|1 other session has .*: process ID $joined[0]{pid}\.\|/, '... said');
$joined[0]->quit;
is($dba->outcome($reset), 'value ', 'beside those that have not joined it works');
$dba->query_safe($_) foreach 'BEGIN', 'SELECT uuidv7_feed_position()';
check_keys($dba, 'in a transaction with feed ids');
is($dba->outcome($reset), '25001', 'in one the feed is not reset');
$dba->query_safe($_) foreach 'ROLLBACK', 'BEGIN';
$dba->query_safe('SELECT uuidv7_fast()');
is($dba->outcome($reset), 'value ', 'in one with keys it is');
$_->quit foreach $dba, $refused, @apart;

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
my $session = RawSession->start($standby);
check_keys($session, 'on a standby');
is($session->outcome($reset), '55000', 'on a standby the feed is not reset');
$session->quit;
$standby->stop;
$node->stop;
done_testing();
