# Tests of durable order: a server of which the next incarnation begins with an earlier
# clock, SQL under durable order there, and the greatest UUID of each database, which
# all that follow must exceed.

package DurableNode;

use strict;
use warnings;

use Exporter qw(import);
use FakeClock;
use PostgreSQL::Test::Cluster;
use Test::More;

our @EXPORT = qw(*node *database *behind *greatest $durable
  new_durable_node run refused ids stats session exceed next_incarnation observe);

# What chooses it, and where the following work.
our $durable = "SET fast_uuid.ordering = 'durable'";
our ($node, $database) = (undef, 'postgres');

# Run some SQL under durable order; its output, and the errors that it got.
sub run
{
	my ($sql) = @_;
	my ($code, $out, $err) = $node->psql($database, "\\set VERBOSITY verbose\n$durable;\n$sql", on_error_stop => 0);
	return ($out, $err);
}

sub refused
{
	my ($sql, $error, $name) = @_;
	my ($out, $err) = run($sql);
	like($err, $error, "$name: refused");
	unlike($out, qr/-/, "$name: no UUID");
	return;
}

# UUIDs that some SQL returns, in ascending order.
sub ids
{
	my ($out) = run(@_);
	my @ids = sort grep { /^[0-9a-f]{8}-/ } split(/\n/, $out);
	return @ids;
}

sub stats
{
	my ($columns, $name) = @_;
	return $node->safe_psql($database, "SELECT $columns FROM fast_uuid_stats() WHERE name = '" . ($name // 'durable') . "'");
}

sub session
{
	my $session = $node->background_psql($database, on_error_stop => 0);
	$session->query_safe($durable);
	return $session;
}

# The greatest UUID that any session got in each database, and whether these
# exceed it; they count from then on.
our %greatest;

sub exceed
{
	my ($name, @ids) = @_;
	@ids = ('') unless @ids;
	cmp_ok($ids[0], 'gt', $greatest{$database} // '', "$name: beyond all before");
	$greatest{$database} = $ids[-1];
	return;
}

# The server's next incarnation begins with a clock that is further behind by so many
# seconds.
our $behind = 0;

sub next_incarnation
{
	my ($way, $seconds) = @_;
	$behind += $seconds;
	end_incarnation($node, $way);
	set_clock_offset($node, sprintf('%+d', -$behind));
	begin_incarnation($node);
	return;
}

# Everything is greater than a time from now.
sub observe
{
	my ($time) = @_;
	return "SET fast_uuid.max_clock_lead = '20 d'; SELECT fast_uuid_observe(uuidv7_fast_at($time)) FROM fast_uuid_stats() WHERE name = 'durable'";
}

# The server "durable", started, with the extension in the database postgres.
sub new_durable_node
{
	$node = PostgreSQL::Test::Cluster->new('durable');
	$node->init(allows_streaming => 1);

	# What is not flushed for the upper bound's sake is not flushed by chance.
	$node->append_conf('postgresql.conf', "wal_writer_delay = '10 s'\nautovacuum = off\nmax_prepared_transactions = 5\n");
	start_with_fake_clock($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
	return $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
}

1;
