# A server of which the next incarnation begins with an earlier clock, and the greatest
# nanosecond of a feed id or position of each database, which all that follow must exceed.

package DurableNode;

use strict;
use warnings;

use Exporter qw(import);
use FakeClock;
use FeedWriters;
use KnownClock;
use PostgreSQL::Test::Cluster;
use Test::More;

our @EXPORT = qw(*node *database *behind *greatest $generate
  new_durable_node run refused ids nanoseconds stats session exceed next_incarnation observe);

# Where the following work; and a feed id and a position.
our ($node, $database) = (undef, 'postgres');
our $generate = 'SELECT uuidv7_feed_id(); SELECT uuidv7_feed_position()';

# Run some SQL; its output, and the errors that it got.
sub run
{
	my ($sql) = @_;
	my ($code, $out, $err) = $node->psql($database, "\\set VERBOSITY verbose\n$sql", on_error_stop => 0);
	return ($out, $err);
}

sub refused
{
	my ($sql, $error, $name) = @_;
	my ($out, $err) = run($sql);
	like($err, $error, "$name: refused");
	is($out, '', "$name: no value");
	return;
}

# The nanoseconds of feed ids and positions, in ascending order; those that some SQL returns.
sub nanoseconds
{
	my @values = map { split /\n/ } @_;
	my @ns = sort { $a <=> $b } map { /^[0-9a-f]{8}-/ ? KnownClock::ns_of($_) : /^\d{18,}$/ ? $_ : () } @values;
	return @ns;
}

sub ids
{
	my ($out) = run(@_);
	return nanoseconds($out);
}

sub stats
{
	my ($columns) = @_;
	return $node->safe_psql($database, "SELECT $columns FROM fast_uuid_stats() WHERE name = 'feed'");
}

sub session
{
	return $node->background_psql($database, on_error_stop => 0);
}

# The greatest that any session got in each database, and whether these exceed it; they
# count from then on.
our %greatest;

sub exceed
{
	my ($name, @values) = @_;
	my @ns = nanoseconds(@values);
	cmp_ok($ns[0] // 0, '>', $greatest{$database} // 0, "$name: beyond all before");
	$greatest{$database} = $ns[-1] if @ns;
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
	return "SET fast_uuid.max_clock_lead = '20 d'; SELECT uuidv7_feed_observe(uuidv7_fast_at($time)) FROM fast_uuid_stats() WHERE name = 'feed'";
}

# The server "durable", started, with the extension in the database postgres.
sub new_durable_node
{
	# What is not flushed for the upper bound's sake is not flushed by chance.
	$node = new_feed_node('durable', "wal_writer_delay = '10 s'\nautovacuum = off\nmax_prepared_transactions = 5\n", allows_streaming => 1);
	start_with_fake_clock($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
	return;
}

1;
