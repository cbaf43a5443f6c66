# A table that is followed becomes a feed, by the statements of doc/change-feeds.md, while
# sessions write: with partitions, a stored bound, and a reader whose position is ahead of
# the clock; and another one by number.  Each row that comes after the conversion is
# delivered once, in order, to the readers that go on from their positions.  Without
# observing the greatest id rows are missed, and come below the bound.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FeedWriters;
use Watchdog;

my $node = start_feed('conversion', "max_connections = 40\nmax_prepared_transactions = 20");
my @recipe = map { $_->{sql} } examples('doc/change-feeds.md');
my ($create) = grep { /CREATE TABLE message \(/ } @recipe;
my ($convert) = grep { /ALTER TABLE message ALTER/ } @recipe;

# In the transaction that converts them, what the tables have.
my $keep = 'CREATE TABLE message_before AS SELECT id FROM message; CREATE TABLE journal_before AS SELECT position FROM journal;';
$convert =~ s/^COMMIT/$keep COMMIT/m or die;

my $without = $convert =~ s/^SELECT uuidv7_feed_observe.*?;\n//msr;
my %case = (
	'1, without observing' => [ $create, $without, 1 ],
	'2, as the page says' => [ $create, $convert, 0 ],
	$node->pg_version >= 18 ? ('3, ids of uuidv7()' => [ $create =~ s/uuidv7_fast\(\)/uuidv7()/gr, $convert, 0 ]) : ());

# The columns that are followed, as text of one length, and their watermarks.
my %followed = (
	message => { column => 'id', shown => 'id', watermark => 'uuidv7_feed_watermark()' },
	journal => { column => 'position', shown => "lpad(position::text, 19, '0')", watermark => 'uuidv7_feed_position_watermark()' });

sub reader
{
	my ($dir, $name, $table, $from, $stop, $below) = @_;
	my ($column, $shown) = @{ $followed{$table} }{qw(column shown)};
	return follow($node, $name, "$dir/$name", $stop, sub {
		my $last = $_[1] =~ /^0{8}-/ ? $from : $_[1];
		run_in($_[0], "SELECT $shown FROM $table WHERE $column > '$last' $below ORDER BY $column");
	});
}

# One of the writers passes ids of its own until these are refused.
sub write_until
{
	my ($enough, $name, $refused) = @_;
	my $session = connect_to($node, $name);
	for (my $number = 0; !-e $enough; $number++)
	{
		my $gid = "$name $number";
		next if eval {
			run_in($session, 'BEGIN');
			foreach (0 .. rand 2)
			{
				my $id = defined $refused && !-e $refused ? "'" . run_in($session, 'SELECT uuidv7_fast()') . "'" : 'DEFAULT';
				pause(10);
				run_in($session, "INSERT INTO message VALUES ($id)");
				run_in($session, 'INSERT INTO journal DEFAULT VALUES');
				pause(30);
			}
			my $end = rand();
			run_in($session, $end < 0.8 ? 'COMMIT' : $end < 0.9 ? 'ROLLBACK' : "PREPARE TRANSACTION '$gid'");
			finish_prepared($session, $gid) if $end >= 0.9;
			1;
		};
		die $@ unless $@ =~ /^23514/ && defined $refused;
		run_in($session, 'ROLLBACK');
		append_to_file($refused, '.');
	}
	$session->quit;
	return;
}

foreach my $name (sort keys %case)
{
	my ($tables, $conversion, $loses) = @{ $case{$name} };
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my ($old, $enough, $stop, $refused) = map { "$dir/$_" } qw(old enough stop refused);
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS message, message_reader, message_bound, message_before, journal, journal_before;\n"
		  . "$tables\nCREATE TABLE message_rest PARTITION OF message DEFAULT");

	my @writers = map { my $n = $_; in_background("writer $n", sub { write_until($enough, "writer $n", $n == 1 ? $refused : undef) }) } 1 .. 5;
	my @readers = map { reader($dir, "$_, naively", $_, $_ eq 'journal' ? 0 : '00000000-0000-0000-0000-000000000000', $old, '') } sort keys %followed;
	wait_until('rows are read', sub { !grep { passes("$dir/$_, naively") < 5 } keys %followed });

	# The clock was wrong for a moment: a row, a position and a bound of half a minute ahead.
	my $dba = connect_to($node, 'dba');
	my $ahead = run_in($dba, "INSERT INTO message VALUES (uuidv7_fast(interval '30 s')) RETURNING id");
	my $bound = run_in($dba, "INSERT INTO message_bound VALUES (uuidv7_fast(), uuidv7_fast(interval '40 s')) RETURNING upto");
	wait_until('the row ahead is read', sub { last_seen("$dir/message, naively") eq $ahead });
	append_to_file($old, '');
	is(join("\n", map { $_->() } @readers), '', "$name: the readers have stopped");
	my %position = map { $_ => last_seen("$dir/$_, naively") } keys %followed;
	run_in($dba, "INSERT INTO message_reader VALUES ('old', '$position{message}')");

	# Where it does not get the locks in time, it is tried again.
	run_in($dba, 'ROLLBACK') while $dba->outcome($conversion) eq '55P03';
	is($dba->{error}, '', "$name: the conversion");
	is(run_in($dba, q{SELECT DISTINCT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid IN ('message'::regclass, 'message_rest'::regclass, 'message_bound'::regclass)}),
		'uuidv7_feed_id()', "$name: all ids have the feed's default");
	@readers = map { reader($dir, $_, $_, $position{$_}, $stop, "AND $followed{$_}{column} < $followed{$_}{watermark}") } sort keys %followed;
	wait_until('rows are read again', sub { passes("$dir/journal") >= 20 && -e $refused });
	append_to_file($enough, '');
	is(join("\n", map { $_->() } @writers), '', "$name: the sessions have gone on writing");
	run_in($dba, 'UPDATE message_bound SET id = DEFAULT, upto = uuidv7_feed_watermark()');
	append_to_file($stop, '');
	is(join("\n", map { $_->() } @readers), '', "$name: the readers have read on to the end");

	foreach my $table (sort keys %followed)
	{
		my ($column, $shown) = @{ $followed{$table} }{qw(column shown)};
		my %after = map { $_ => 1 } split /\n/,
		  run_in($dba, "SELECT $shown FROM $table WHERE $column > '$position{$table}' OR $column NOT IN (SELECT $column FROM ${table}_before)");
		check_readers(\%after, $dir, $table => $table eq 'message' ? $loses : 0);
	}
	is(run_in($dba, "SELECT count(*) > 0 FROM message WHERE id NOT IN (SELECT id FROM message_before) AND id < '$bound'"), $loses ? 't' : 'f',
		"$name: " . ($loses ? 'rows have' : 'no row has') . ' come below the bound');
	is(run_in($dba, 'SELECT upto <= id FROM message_bound'), 't', "$name: the next bound is one of the feed");
	$dba->quit;
}
$node->stop;
done_testing();
