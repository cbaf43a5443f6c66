# A feed over two servers, each of which has some of the rows.  Sessions insert on both by
# two-phase commit, in Citus' order of steps: the one where a transaction began commits
# between the phases, its log says what the second one is to be, and that may come late.
# Servers are killed between the phases, with their clocks stepped back.
#
# The protocol: 1. the least watermark of all servers, or an error; 2. wait until what is
# prepared on any of them now is not any more; 3. read below it, in new statements.  It
# misses no row; without its second step rows are missed.  A server that was asked in step
# 1 generates nothing below the bound, ever.  There is no guard, which would refuse the
# rows whose ids come from the other server.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;
use FeedWriters;
use Watchdog;

require_fake_clock();

my $files = PostgreSQL::Test::Utils::tempdir();
my ($enough, $stop) = ("$files/enough", "$files/stop");
my @nodes   = map { new_feed_node($_, 'max_prepared_transactions = 20') } 'east', 'west';
my $insert  = 'INSERT INTO outbox DEFAULT VALUES';
foreach my $node (@nodes)
{
	start_with_fake_clock($node);
	$node->safe_psql('postgres', "CREATE EXTENSION fast_uuid; CREATE TABLE outbox (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id());"
		  . "CREATE TABLE log (gid text PRIMARY KEY); $insert");
}

sub sessions
{
	my ($name, @of) = @_;
	return map { connect_to($_, $name) } @of ? @of : @nodes;
}

# How a session notices that its server was killed.
my $down = qr/^(?:.*: )?(?:closed|57P0[123]|could not connect)/;

my $ask = 'SELECT uuidv7_feed_watermark()';
my $ask_durably = 'SELECT least(w, id) FROM (SELECT uuidv7_feed_id() AS id, uuidv7_feed_watermark() AS w OFFSET 0) AS x';

sub least_watermark
{
	my ($asks, @sessions) = @_;
	my @watermarks = sort map { run_in($_, $asks) } @sessions;
	return $watermarks[0];
}

sub wait_for_prepared
{
	foreach my $session (@_)
	{
		my $gids = run_in($session, "SELECT string_agg(quote_literal(gid), ',') FROM pg_prepared_xacts WHERE gid LIKE 'shards %'") || "''";
		wait_until('the second phases', sub { run_in($session, "SELECT count(*) = 0 FROM pg_prepared_xacts WHERE gid IN ($gids)") eq 't' });
	}
	return;
}

sub reader
{
	my ($name, $second_step) = @_;
	my @sessions;
	return follow($nodes[0], $name, "$files/$name", $stop, sub {
		my ($unused, $last) = @_;
		my $rows = eval {
			@sessions = sessions($name) unless @sessions;
			my $bound = least_watermark($ask_durably, @sessions);
			wait_for_prepared(@sessions) if $second_step;
			join "\n", sort map { split /\n/ } map { run_in($_, "SELECT id FROM outbox WHERE id > '$last' AND id < '$bound'") } @sessions;
		};
		die $@ unless defined $rows || $@ =~ $down;
		@sessions = () unless defined $rows;
		return $rows // '';
	});
}

# Returns the id of the first row that is elsewhere; it was generated at home.
sub first_phase
{
	my ($home, $other, $gid, $rows, $end) = @_;
	run_in($_, 'BEGIN') foreach $home, $other;
	my $id = run_in($home, "$insert; SELECT uuidv7_feed_id()");
	run_in($other, "INSERT INTO outbox VALUES ('$id')");
	foreach (2 .. $rows)
	{
		pause(10);
		run_in($_, $insert) foreach $home, $other;
	}
	run_in($other, "PREPARE TRANSACTION '$gid'");
	run_in($home,  "INSERT INTO log VALUES ('$gid')");
	run_in($home,  $end);
	return $id;
}

sub second_phase
{
	my ($home, $other, $gid) = @_;
	my $end = run_in($home, "SELECT count(*) FROM log WHERE gid = '$gid'") ? 'COMMIT' : 'ROLLBACK';
	eval { run_in($other, "$end PREPARED '$gid'"); 1 } or $@ =~ /^42704/ or die $@;
	return;
}

# Where a server is killed, the transaction is ended by what its log says.
sub write_until_enough
{
	my ($name, @of) = @_;
	my ($gid, @sessions);
	for (my $number = 0; defined $gid || !-e $enough;)
	{
		next if eval {
			@sessions = sessions($name, @of) unless @sessions;
			first_phase(@sessions, $gid = "shards $name " . $number++, 1 + rand 3, rand() < 0.85 ? 'COMMIT' : 'ROLLBACK') unless defined $gid;
			pause(rand() < 0.2 ? 100 : 2);
			second_phase(@sessions, $gid);
			undef $gid;
			1;
		};
		die $@ unless $@ =~ $down;
		$_->quit foreach @sessions;
		@sessions = ();
		pause(20);
	}
	return;
}

my %offset = map { $_->name => 0 } @nodes;
sub start
{
	my ($node) = @_;
	set_clock_offset($node, sprintf('%+d', $offset{ $node->name }));
	return begin_incarnation($node);
}

# One server generates, and the row is read; the other has only been asked for the bound.
foreach my $asks ($ask, $ask_durably)
{
	my $ahead = $offset{east} += 20;
	set_clock_offset($_, "+$ahead") foreach @nodes;
	my $position = $nodes[0]->safe_psql('postgres', "$insert RETURNING id");
	cmp_ok(least_watermark($asks, sessions('asks')), 'gt', $position, "$asks: the row is below the bound");
	end_incarnation($nodes[1], 'SIGKILL');
	start($nodes[1]);
	my $id = $nodes[1]->safe_psql('postgres', "$insert RETURNING id");
	is($id gt $position, $asks eq $ask_durably, "$asks: the other server goes on " . ($asks eq $ask ? 'below' : 'above') . ' it after a crash');
	set_clock_offset($nodes[1], '+' . ($offset{west} = $ahead)) if $asks eq $ask_durably;
}
$_->safe_psql('postgres', 'TRUNCATE outbox') foreach @nodes;

my %reader = ('protocol' => 1, 'without its second step' => 0);
my @readers = map { reader($_, $reader{$_}) } sort keys %reader;
my @writers = map { my $n = $_; in_background("writer $n", sub { write_until_enough($n, $n % 2 ? @nodes : reverse @nodes) }) } 1 .. 6;

# A second phase that comes long after one of the servers was killed, and after rows of
# other transactions have passed it.
my $rounds = 0;
foreach my $victim (@nodes, @nodes)
{
	my ($home, $other) = $rounds++ < 2 ? @nodes : reverse @nodes;
	my $name = $victim->name . ($victim == $home ? ', which has committed,' : ', which has prepared,') . ' is killed';
	my $passes = passes("$files/protocol");
	wait_until("$name: before that, rows are read", sub { passes("$files/protocol") > $passes + 20 });
	my @held = sessions('held', $home, $other);
	my $id = first_phase(@held, my $gid = "shards $name", 1, 'COMMIT');
	$_->quit foreach @held;

	end_incarnation($victim, 'SIGKILL');
	like(eval { least_watermark($ask, sessions('asks')) } // $@, $down, "$name: no bound while it is down");
	$offset{ $victim->name }--;
	start($victim);
	my ($later) = reverse sort map { $_->safe_psql('postgres', "$insert RETURNING id") } @nodes;
	wait_until("$name: others pass", sub { last_seen("$files/without its second step") gt $later });
	cmp_ok(last_seen("$files/protocol"), 'lt', $id, "$name: nothing passes the row that is prepared");
	second_phase(sessions('held', $home, $other), $gid);
	wait_until("$name: it is read", sub { last_seen("$files/protocol") gt $later });
}
append_to_file($enough, '');
is(join("\n", map { $_->() } @writers), '', 'the writers have gone on');
my %committed = map { $_ => 1 } map { split /\n/ } map { $_->safe_psql('postgres', 'SELECT id FROM outbox') } @nodes;
my ($greatest) = reverse sort keys %committed;
wait_until('the last row is below the bound', sub { least_watermark($ask, sessions('asks')) gt $greatest });
append_to_file($stop, '');
is(join("\n", map { $_->() } @readers), '', 'the readers have read on');

check_readers(\%committed, $files, 'protocol' => 0, 'without its second step' => $rounds);
$_->stop foreach @nodes;
done_testing();
