# The view of doc/change-feeds.md for tools that follow a number: read by an index
# condition alone, and under load with rollbacks and delays by the statements that Kafka
# Connect's JDBC source, Airbyte and Logstash send, each committed row exactly once.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FeedWriters;

my $dir = PostgreSQL::Test::Utils::tempdir();
my $stop = "$dir/stop";

my $node = start_in_order('by_number', '');
my @recipe = map { $_->{sql} } examples('doc/change-feeds.md');
my ($outbox) = grep { /CREATE TABLE outbox \(/ } @recipe;
my ($view) = grep { /VIEW outbox_feed/ } @recipe;
$node->safe_psql('postgres', "$outbox\nINSERT INTO outbox SELECT FROM generate_series(1, 20000);\n$view");

my $position = $node->safe_psql('postgres', 'SELECT position FROM outbox_feed ORDER BY position OFFSET 10000 LIMIT 1');
my $plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) SELECT * FROM outbox_feed WHERE position > $position ORDER BY position LIMIT 100");
like($plan, qr/\ALimit\n.*Index Scan using outbox_uuidv7_fast_ns_idx.*\n +Index Cond: .*watermark\(\).*$position[^\n]*\z/, 'an index scan, bounded at both ends, without a filter or a sort');

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
foreach my $id ('uuidv7_fast_min(\'2024-01-01\') FROM generate_series(1, 2)', 'gen_random_uuid()')
{
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY sqlstate\nINSERT INTO outbox (id) SELECT $id");
	like($err, qr/23505|23514/, "refused: $id");
}
$node->safe_psql('postgres', 'DELETE FROM outbox');

# Each gets its session and the position, and returns the positions that come next.
my $kafka_connect = 'SELECT * FROM "public"."%s" WHERE "public"."%1$s"."position" > %s ORDER BY "public"."%1$s"."position" ASC';
my %tool = (
	'Kafka Connect' => sub { run_in($_[0], sprintf($kafka_connect, 'outbox_feed', $_[1])) },
	'Airbyte' => sub {
		my ($session, $last) = @_;
		my $from = 'FROM "public"."outbox_feed" WHERE "position"';
		my $count = run_in($session, "SELECT COUNT(*) AS record_count $from = $last");
		return run_in($session, qq{SELECT "position","id","payload" $from } . ($count <= 1 ? '>' : '>=') . qq{ $last ORDER BY "position" ASC});
	},
	'Logstash, with pages' => sub {
		my ($session, $last) = @_;
		my ($rows, @all) = ('');
		do
		{
			$rows = run_in($session, "SELECT * FROM (SELECT * FROM outbox_feed WHERE position > $last ORDER BY position) AS t1 LIMIT 10 OFFSET " . @all);
			push @all, split /\n/, $rows;
		} while ($rows ne '');
		return join "\n", @all;
	},
	'naive' => sub { run_in($_[0], sprintf($kafka_connect, 'outbox_naive', $_[1])) });
$node->safe_psql('postgres', 'CREATE VIEW outbox_naive AS SELECT uuidv7_fast_ns(id) AS position FROM outbox');

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
				run_in($session, 'INSERT INTO outbox SELECT FROM generate_series(1, 5)');
				pause(15);
			}
			run_in($session, rand() < 0.2 ? 'ROLLBACK' : 'COMMIT');
		}
	})
} 1 .. 6;
is(join("\n", map { $_->() } @writers), '', 'six sessions have written');
commit_late($node, "$dir/naive", 'INSERT INTO outbox DEFAULT VALUES', 'INSERT INTO outbox DEFAULT VALUES RETURNING uuidv7_fast_ns(id)');
append_to_file($stop, '');
is(join("\n", map { $_->() } @readers), '', 'the readers have read on to the end');

my %committed = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT uuidv7_fast_ns(id) FROM outbox');
check_readers(\%committed, $dir, map { $_ => $_ eq 'naive' } keys %tool);
$node->stop;
done_testing();
