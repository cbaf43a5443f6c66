# Random statements in sessions of two databases, one after the other: transactions with and
# without feed ids, positions, keys and transaction ids, at two isolation levels, with
# savepoints, prepared and not.  The watermark is held back by the transaction that it should be.  Below each that a
# statement was given are only rows that the statement saw, as the end shows; above one that
# a transaction asks for first is no row that it could have been given.
# uuidv7_feed_wait() counts each transaction with ids once, in its database.  Transaction ids wrap around.
#
#   TEST_SEED=n    the statements of an earlier run again (it printed its seed)

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;
use RandomSeed;
use RawSession;

my ($rounds, $steps) = (120, 40);

my $node = new_feed_node('random', q{
max_connections = 20
max_prepared_transactions = 40
max_worker_processes = 2
max_wal_senders = 0
autovacuum = off
jit = off
log_statement = none
});
$node->start;
my @databases = ('here', 'there');
foreach my $database (@databases)
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION fast_uuid; CREATE TABLE item (position bigint DEFAULT uuidv7_feed_position()); CREATE TABLE noise ()');
}

# Some hundred transaction ids before they wrap around.
$node->safe_psql($_, 'VACUUM FREEZE') foreach 'postgres', 'template1', @databases;
$node->stop;
my $next = 2**32 - 40;
command_ok([ 'pg_resetwal', '-x', $next, '-u', $next - 1_000_000, $node->data_dir ], 'transaction ids are about to wrap around');
my $segment = $node->data_dir . '/pg_xact/' . sprintf '%04X', $next / (32 * 32768);
append_to_file($segment, "\0" x 262144);
$node->start;

my ($insert, $noise) = ('INSERT INTO item DEFAULT VALUES RETURNING position', 'INSERT INTO noise DEFAULT VALUES');
my (@sessions, %polls, %prepared, @published, %ended, $number, @wrong);

sub session
{
	my ($database) = @_;
	my $session = RawSession->connect($node, user => scalar(getpwuid $>), database => $database);
	$session->{pid} = $session->query_safe('SELECT pg_backend_pid()');
	$session->{database} = $database;
	return $session;
}

# Generate; the transaction has ids from now on, if one is open.
sub generate
{
	my ($session, $sql) = @_;
	my $position = $session->query_safe($sql);
	$ended{ $session->{database} }++ unless $session->{open};
	push @published, [ $session->{database}, $session->{pid}, $position ] if $session->{open} && !$session->{published}++;
	return;
}

sub ends
{
	my ($session) = @_;
	$ended{ $session->{database} }++ if $session->{published};
	@published = grep { $_->[1] ne $session->{pid} } @published;
	delete @$session{ 'open', 'published', 'asked' };
	return;
}

# The bound, and how many rows there are below it; how many there are from it up to the
# first position that holds it back.
sub ask
{
	my ($session) = @_;
	my $first = (map { $_->[2] } grep { $_->[0] eq $session->{database} } @published)[0] // '9223372036854775807';
	my ($bound, $below, $above, $of_id) = split / /, $session->query_safe(qq{
SELECT concat_ws(' ', b, (SELECT count(*) FROM item WHERE position < b), (SELECT count(*) FROM item WHERE position >= b AND position < $first), of_id)
  FROM (SELECT uuidv7_feed_position_watermark() AS b, uuidv7_fast_ns(uuidv7_feed_watermark()) AS of_id) AS w});
	push @{ $polls{ $session->{database} } }, [ $bound, $below ];
	push @wrong, "$bound of positions, $of_id of ids" if $bound != $of_id;
	push @wrong, "$above rows were not given" if $above && !$session->{asked};
	$session->{asked} = 1 if $session->{open};
	return;
}

sub end_prepared
{
	my ($name) = @_;
	my $database = delete $prepared{$name};
	my ($session) = grep { $_->{database} eq $database && !$_->{open} } @sessions;
	return $prepared{$name} = $database unless $session;
	$session->query_safe((rand() < 0.8 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$name'");
	@published = grep { $_->[1] ne $name } @published;
	return;
}

# What a session does with a transaction open, and with none.
my %within = (
	insert => sub { generate($_[0], $insert) },
	id => sub { generate($_[0], 'SELECT uuidv7_fast_ns(uuidv7_feed_id())') },
	key => sub { $_[0]->query_safe('SELECT uuidv7_fast()') },
	noise => sub { $_[0]->query_safe($noise) },
	ask => \&ask,
	savepoint => sub {
		$_[0]->query_safe('SAVEPOINT a');
		generate($_[0], $insert);
		$_[0]->query_safe(rand() < 0.5 ? 'RELEASE a' : 'ROLLBACK TO a');
	},
	prepare => sub {
		my ($session) = @_;
		return if keys %prepared == 40;
		my $name = 'prepared ' . ++$number;
		$session->query_safe("PREPARE TRANSACTION '$name'");
		$prepared{$name} = $session->{database};
		$_->[1] eq $session->{pid} && ($_->[1] = $name) foreach @published;
		ends($session);
	},
	end => sub { $_[0]->query_safe(rand() < 0.8 ? 'COMMIT' : 'ROLLBACK'); ends($_[0]) });
my %alone = (
	(map { $_ => $within{$_} } 'insert', 'key', 'noise', 'ask'),
	prepared => sub { end_prepared((sort keys %prepared)[ rand keys %prepared ]) if %prepared },
	begin => sub { $_[0]->query_safe('BEGIN'); $_[0]->{open} = 1 },
	# What it is given belongs to this snapshot.
	snapshot => sub { $_[0]->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT'); $_[0]->{open} = $_[0]->{asked} = 1 });

# Some of them.
sub some
{
	my ($ways) = @_;
	return map { $ways->{$_} } 'ask', grep { rand() < 0.5 } sort keys %$ways;
}

@sessions = map { session($databases[ $_ % 2 ]) } 1 .. 10;
my %watches = map { $_ => session($_) } @databases;
my %first = map { $_ => $watches{$_}->query_safe('SELECT uuidv7_feed_wait(0)') } @databases;
%ended = map { $_ => 0 } @databases;

# A transaction that is older than the wrap has ended for the watermark, and not for the
# snapshot of a reader; an earlier snapshot knows of neither.
my ($writer, $reader, $early, $watch) = (@sessions[ 0, 2, 4 ], $watches{ $sessions[0]{database} });
$alone{snapshot}->($early);
$alone{begin}->($writer);
generate($writer, $insert);
$watch->query_safe($noise) foreach 1 .. 60;
$alone{snapshot}->($reader);
ask($watch);
$writer->query_safe('COMMIT');
ends($writer);
ask($_) foreach $watch, $reader, $early;
cmp_ok($watches{here}->query_safe('SELECT pg_current_xact_id()::xid::text'), '<', $next, 'transaction ids have wrapped around');

seed_random();
foreach my $round (1 .. $rounds)
{
	my ($few, $watched) = (2 + int(9 * rand()**2), rand);
	my @within = (some(\%within), $within{end});
	my @alone = (some(\%alone), $alone{begin});
	foreach (1 .. $steps)
	{
		my $session = $sessions[ rand $few ];
		my @ways = $session->{open} ? @within : @alone;
		$ways[ rand @ways ]->($session);
		my $database = $databases[ rand 2 ];
		my ($holder) = map { $_->[1] =~ /prepared/ ? 0 : $_->[1] } grep { $_->[0] eq $database } @published;
		my $told = $watches{$database}->query_safe(q{SELECT coalesce(held_back_by::text, '') FROM fast_uuid_stats() WHERE name = 'feed'});
		push @wrong, "held back by $told in $database" if $told ne ($holder // '');
		ask($watches{$database}) if rand() < $watched;
	}
	foreach my $session (grep { $_->{open} } @sessions)
	{
		$session->query_safe('COMMIT');
		ends($session);
	}
	end_prepared($_) foreach sort keys %prepared;
	ask($_) foreach @sessions;
	foreach my $database (@databases)
	{
		my $counted = $watches{$database}->query_safe('SELECT uuidv7_feed_wait(0)') - $first{$database};
		push @wrong, "$database: $counted ends were counted of $ended{$database}" if $counted != $ended{$database};
	}
}
my %rows = map { $_ => [ split /\n/, $watches{$_}->query_safe('SELECT position FROM item') ] } @databases;
foreach my $database (@databases)
{
	foreach my $poll (@{ $polls{$database} })
	{
		my $below = grep { $_ < $poll->[0] } @{ $rows{$database} };
		push @wrong, "$database: $poll->[1] rows were given of $below below $poll->[0]" if $below != $poll->[1];
	}
}
is(join("\n", @wrong[ 0 .. ($#wrong > 9 ? 9 : $#wrong) ]), '', ($rounds * $steps) . ' statements');
note scalar(map { @$_ } values %polls) . ' watermarks, ' . scalar(map { @$_ } values %rows) . ' rows';
$node->stop;
done_testing();
