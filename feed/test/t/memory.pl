# Shared memory: before PostgreSQL 17 there is none without preloading; from then on that of the
# first library stays until the server ends, and another one is refused, as readers would not
# find in one what writers publish in the other.  Each error says what helps.  A session's own
# memory does not grow.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('memory');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_feed; CREATE TABLE t (id bigserial PRIMARY KEY)');
my @calls = ("SELECT fast_feed.enable('t', 'id')", 'SELECT fast_feed.wait(0)', "SELECT fast_feed.next('t_id_seq')",
	'SELECT * FROM fast_feed.holders()');

sub check_refused
{
	my ($name, $state, $error) = @_;
	my $session = RawSession->start($node);
	refused($session, $_, $state, $error, "$name: refused: $_") foreach @calls;
	$session->query_safe('INSERT INTO t DEFAULT VALUES');
	$session->quit;
	return;
}

if ($node->pg_version < 17)
{
	check_refused('without preloading', '55000', 'fast_feed must be loaded via "shared_preload_libraries".*\|Add ');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_feed'");
}
else
{
	my $module = getcwd() . '/test/modules/other_feed';
	my @layout = ('55000', 'shared memory was created by a different version of fast_feed.*\|Restart');
	my @size = ('XX000', 'requested DSM segment .*size');
	my %others = ('0, 8' => \@size, '-1, 8' => \@size, '-1, 0' => \@layout, '1, 0' => \@layout);
	$node->safe_psql('postgres',
		"CREATE FUNCTION make_layout(int, int) RETURNS bool AS '$module' LANGUAGE c");
	foreach my $numbers (sort keys %others)
	{
		$node->restart;
		is($node->safe_psql('postgres', "SELECT make_layout($numbers)"),
			't', "$numbers: another library comes first");
		check_refused($numbers, @{ $others{$numbers} });
	}
}
$node->restart;
my $session = RawSession->start($node);
$session->query_safe($_) foreach @calls;

# What remains of these statements, in a transaction and after it, in bytes.
sub check_memory
{
	my ($name, $statements) = @_;
	my $used = 'SELECT sum(used_bytes) FROM pg_backend_memory_contexts';
	my $repeat = "DO \$\$ BEGIN FOR i IN 1 .. 3000 LOOP $statements END LOOP; END \$\$";
	$session->query_safe($repeat);
	my $before = $session->query_safe($used);
	$session->query_safe($repeat) foreach 1 .. 3;
	return cmp_ok($session->query_safe($used) - $before, '<', 5000, "$name: memory does not grow");
}
check_memory('one transaction', "INSERT INTO t DEFAULT VALUES; PERFORM fast_feed.watermark('t');");
check_memory('a transaction each',
	"INSERT INTO t DEFAULT VALUES; PERFORM fast_feed.watermark('t'), fast_feed.next('t_id_seq'); COMMIT;");
check_memory('savepoints',
	'BEGIN INSERT INTO t DEFAULT VALUES; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END;');

# With a snapshot from before the sequence was restarted.
$session->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT';
$node->safe_psql('postgres', 'ALTER SEQUENCE t_id_seq RESTART');
check_memory('refused watermarks', "BEGIN PERFORM fast_feed.watermark('t'); RAISE division_by_zero;"
	  . ' EXCEPTION WHEN object_not_in_prerequisite_state THEN END;');
$node->stop;
done_testing();
