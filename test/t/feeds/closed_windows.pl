# The recipe of doc/change-feeds.md for closed windows, with windows of 100 ms, under load
# with rollbacks and delays, also over SIGKILL with a clock that is behind then.  No row comes to a window that was closed; rows come to those that a job
# closes by the clock.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use DurableNode;
use Examples;
use FakeClock;
use FeedWriters;

my $dir = PostgreSQL::Test::Utils::tempdir();
my $enough = "$dir/enough";
my $windows = 10;

my @recipe = map { $_->{sql} } examples('doc/change-feeds.md');
my ($outbox) = grep { /CREATE TABLE outbox \(/ } @recipe;
my ($table, $job) = map { /(.*?)(INSERT INTO outbox_hours \(begins.*);/s } grep { /outbox_hours/ } @recipe;
$job =~ s/date_trunc\('hour', (.*?), 'UTC'\)\) AS ends/date_bin('100 ms', $1, 'epoch')) AS ends/ or die $job;
my $naive = $job =~ s/uuidv7_fast_timestamp\(uuidv7_feed_watermark\(\)\)/now()/r =~ s/outbox_hours/naive_hours/gr;

$node = new_feed_node('windows', '');
fake_clock_installed() ? start_with_fake_clock($node) : $node->start;
$node->safe_psql('postgres', "CREATE EXTENSION fast_uuid;\n$outbox\n$table\n" . $table =~ s/outbox_hours/naive_hours/gr);

# They outlive the server.
sub write_until_enough
{
	my ($name) = @_;
	my $session;
	until (-e $enough)
	{
		eval {
			$session = connect_to($node, "writer $name") if !$session || $session->{closed};
			run_in($session, 'BEGIN');
			run_in($session, 'INSERT INTO outbox SELECT FROM generate_series(1, 3)');
			pause(rand() < 0.1 ? 300 : 10);
			run_in($session, 'INSERT INTO outbox DEFAULT VALUES');
			run_in($session, rand() < 0.2 ? 'ROLLBACK' : 'COMMIT');
			1;
		} or do
		{
			die $@ unless $@ =~ /closed|could not connect|57P0[123]/;
			$session = undef;
			pause(20);
		};
	}
	return;
}

my @writers = map { my $n = $_; in_background("writer $n", sub { srand($n); write_until_enough($n) }) } 1 .. 6;
my @ends = fake_clock_installed() ? ('SIGKILL', 'SIGKILL', '') : ('');
foreach my $end (@ends)
{
	my $session = connect_to($node, 'job');
	my $count = sub { run_in($session, 'SELECT count(*) FROM outbox_hours WHERE messages > 0') };
	my $before = $count->();
	while ($count->() < $before + $windows)
	{
		run_in($session, $_) foreach $naive, $job;
		pause(10);
	}
	$session->quit;
	next_incarnation($end, 1.5) if $end;
}
append_to_file($enough, '');
is(join("\n", map { $_->() } @writers), '', 'six sessions have written');

my $late = q{SELECT count(*) FROM %s AS w WHERE messages <> (SELECT count(*) FROM outbox WHERE id >= begins AND id < ends)};
is($node->safe_psql('postgres', sprintf($late, 'outbox_hours')), '0', 'no row has come to a window that was closed');
cmp_ok($node->safe_psql('postgres', sprintf($late, 'naive_hours')), '>', 0, 'rows have come to windows that were closed by the clock');
is( $node->safe_psql('postgres', q{
SELECT (SELECT sum(messages) FROM outbox_hours) + count(*) = (SELECT count(*) FROM outbox)
  FROM outbox WHERE id >= (SELECT ends FROM outbox_hours ORDER BY ends DESC LIMIT 1)}),
	't', 'the windows and the rows after them have each row once');
note $node->safe_psql('postgres', q{SELECT count(*) || ' windows, ' || sum(messages) || ' of ' || (SELECT count(*) FROM outbox) || ' rows' FROM outbox_hours});
$node->stop;
done_testing();
