# Feeds by number of doc/change-feeds.md: their views are read by an index condition alone;
# the page's statement and those that Kafka Connect's JDBC source, Airbyte and Logstash send
# get each committed row exactly once, under load with rollbacks and delays.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FeedWriters;

my $dir = PostgreSQL::Test::Utils::tempdir();
my $stop = "$dir/stop";

my $node = start_feed('by_number', '');
my @recipe = map { $_->{sql} } examples('doc/change-feeds.md');
my ($outbox) = grep { /CREATE TABLE outbox \(/ } @recipe;
my ($event) = grep { /CREATE TABLE event \(/ } @recipe;
my ($views) = grep { /VIEW outbox_feed/ } @recipe;
my ($next) = $event =~ /PREPARE next_events.*? AS\n(.*?) LIMIT/s;
$node->safe_psql('postgres', "$outbox\n$event\n"
	  . join('', map { "INSERT INTO $_ SELECT FROM generate_series(1, 20000);" } 'outbox', 'event') . 'ANALYZE event;' . $views);

my $position = $node->safe_psql('postgres', 'SELECT position FROM outbox_feed ORDER BY position OFFSET 10000 LIMIT 1');
my %index = (event_feed => 'event_pkey', outbox_feed => 'outbox_uuidv7_fast_ns_idx');
foreach my $view (sort keys %index)
{
	my $plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) SELECT * FROM $view WHERE position > $position ORDER BY position LIMIT 100");
	like($plan, qr/\ALimit\n.*Index Scan using $index{$view}.*\n +Index Cond: .*watermark\(\).*$position[^\n]*\z/, "$view: an index scan, bounded at both ends, without a filter or a sort");
}

# Row security, and a barrier between table and feed, keep the condition from the index; a
# feed that is a barrier itself does not.
my $feed = "SELECT * FROM outbox_feed WHERE position > $position ORDER BY position LIMIT 100";
my $guard = 'CREATE POLICY guard ON outbox USING (payload IS NULL); ALTER TABLE outbox ENABLE ROW LEVEL SECURITY;';
my $table = 'CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM outbox WHERE payload IS NULL;';
my $over = 'CREATE OR REPLACE VIEW outbox_feed AS ' . $node->safe_psql('postgres', q{SELECT replace(pg_get_viewdef('outbox_feed'), 'FROM outbox', 'FROM guarded AS outbox')});
foreach (
	[ 'a barrier feed', 'ALTER VIEW outbox_feed SET (security_barrier);', 1 ],
	[ 'the feed of an owner whom no policy concerns', $guard, 1 ],
	[ 'row security', "$guard ALTER VIEW outbox_feed SET (security_invoker); CREATE ROLE reader; GRANT SELECT ON outbox, outbox_feed TO reader; SET LOCAL ROLE reader;", 0 ],
	[ 'a table behind a barrier', "$table $over", 0 ])
{
	my ($what, $before, $by_index) = @$_;
	my $found = $node->safe_psql('postgres', "BEGIN; $before EXPLAIN (COSTS OFF) $feed; ROLLBACK") =~ /Index Cond: [^\n]*$position/;
	is(!!$found, !!$by_index, "$what: " . ($by_index ? 'an' : 'no') . ' index condition');
}
$node->safe_psql('postgres', 'DELETE FROM event');

# Each gets its session and the position, and returns the positions that come next.
my $kafka_connect = 'SELECT * FROM "public"."%s" WHERE "public"."%1$s"."position" > %s ORDER BY "public"."%1$s"."position" ASC';
my %tool = (
	'the page' => sub { run_in($_[0], $next =~ s/\$1/$_[1]/r) },
	'Kafka Connect' => sub { run_in($_[0], sprintf($kafka_connect, 'event_feed', $_[1])) },
	'Airbyte' => sub {
		my ($session, $last) = @_;
		my $from = 'FROM "public"."event_feed" WHERE "position"';
		my $count = run_in($session, "SELECT COUNT(*) AS record_count $from = $last");
		return run_in($session, qq{SELECT "position","payload" $from } . ($count <= 1 ? '>' : '>=') . qq{ $last ORDER BY "position" ASC});
	},
	'Logstash, with pages' => sub {
		my ($session, $last) = @_;
		my ($rows, @all) = ('');
		do
		{
			$rows = run_in($session, "SELECT * FROM (SELECT * FROM event_feed WHERE position > $last ORDER BY position) AS t1 LIMIT 10 OFFSET " . @all);
			push @all, split /\n/, $rows;
		} while ($rows ne '');
		return join "\n", @all;
	},
	'naive' => sub { run_in($_[0], sprintf($kafka_connect, 'event', $_[1])) });

my @readers = map {
	my $read = $tool{$_};
	follow($node, $_, "$dir/$_", $stop, sub { $read->($_[0], $_[1] =~ /-/ ? 0 : $_[1]) })
} sort keys %tool;
my @writers = map {
	my $name = "writer $_";
	in_background($name, sub {
		my $session = connect_to($node, $name);
		foreach (1 .. 150)
		{
			run_in($session, 'BEGIN');
			foreach (0 .. rand 3)
			{
				run_in($session, 'INSERT INTO event SELECT FROM generate_series(1, 5)');
				pause(15);
			}
			run_in($session, rand() < 0.2 ? 'ROLLBACK' : 'COMMIT');
		}
	})
} 1 .. 6;
is(join("\n", map { $_->() } @writers), '', 'six sessions have written');
commit_late($node, "$dir/naive", 'INSERT INTO event DEFAULT VALUES', 'INSERT INTO event DEFAULT VALUES RETURNING position');
append_to_file($stop, '');
is(join("\n", map { $_->() } @readers), '', 'the readers have read on to the end');

my %committed = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT position FROM event');
check_readers(\%committed, $dir, map { $_ => $_ eq 'naive' } keys %tool);
$node->stop;
done_testing();
