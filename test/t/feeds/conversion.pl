# A table that is followed becomes a feed, by the statements of doc/feed-recipes.md, while
# sessions write: with partitions, a stored bound, and a reader whose position is ahead of the
# clock; and another one by number.  Each row that comes after the conversion is delivered
# once, in order, to the readers that go on from their positions.  Without observing the
# greatest id rows are missed, and come below the bound.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FeedWriters;

my $node = start_feed('conversion', "max_connections = 40\nmax_prepared_transactions = 20");
my @recipe = map { $_->{sql} } examples('doc/feed-recipes.md');
my ($create) = grep { /CREATE TABLE message \(/ } @recipe;
my ($convert) = grep { /ALTER TABLE message ALTER/ } @recipe;

# In the transaction that converts them, what the tables have.
$convert =~ s/^COMMIT/CREATE TABLE message_before AS SELECT id FROM message;
CREATE TABLE journal_before AS SELECT position FROM journal;
COMMIT/m or die;
my $without = $convert =~ s/^SELECT uuidv7_feed_observe.*?;\n//msr;

# Followed by these columns, shown as text of one length.
my %message = (table => 'message', column => 'id', shown => 'id',
	from => '00000000-0000-0000-0000-000000000000', watermark => 'uuidv7_feed_watermark()');
my %journal = (table => 'journal', column => 'position', shown => "lpad(position::text, 19, '0')",
	from => 0, watermark => 'uuidv7_feed_position_watermark()');

# The clock was wrong for a moment: a row, a position and a bound are ahead by so much.
sub convert
{
	my ($name, $tables, $conversion, $lead) = @_;
	$node->safe_psql('postgres', qq{
DROP TABLE IF EXISTS message, message_reader, message_bound, message_before;
DROP TABLE IF EXISTS journal, journal_before;
$tables
CREATE TABLE message_rest PARTITION OF message DEFAULT});
	my $load = FeedWriters->new_load;
	my $insert = 'INSERT INTO message DEFAULT VALUES; INSERT INTO journal DEFAULT VALUES';
	$load->writer('others', $node, sub { write_transaction($_[0], "$$ $_[1]", $insert) })
	  foreach 1 .. 5;
	foreach my $feed (\%message, \%journal)
	{
		my ($table, $column, $shown) = @$feed{qw(table column shown)};
		$load->reader("$table before", $node,
			"SELECT $shown FROM $table WHERE $column > \$1 ORDER BY $column",
			from => $feed->{from});
		$load->wait_for_passes("$table before", 5);
	}
	my $dba = connect_to($node, 'dba');
	my $ahead = run_in($dba,
		"INSERT INTO message VALUES (uuidv7_fast(interval '$lead')) RETURNING id");
	my $bound = run_in($dba, 'INSERT INTO message_bound VALUES'
		  . " (uuidv7_fast(), uuidv7_fast(interval '$lead' + interval '10 s')) RETURNING upto");
	$load->wait_for_reader('message before', $ahead);
	my %position = map { $_ => $load->last_seen("$_ before") } 'message', 'journal';
	run_in($dba, "INSERT INTO message_reader VALUES ('old', '$position{message}')");

	# A prepared transaction can keep it from getting the locks in time.
	while ($dba->outcome($conversion) eq '55P03')
	{
		run_in($dba, 'ROLLBACK');
		finish_prepared($dba);
	}
	is($dba->{error}, '', "$name: the conversion");
	is($dba->outcome('INSERT INTO message VALUES (uuidv7_fast())'), '23514', "$name: the guard");

	foreach my $feed (\%message, \%journal)
	{
		my ($table, $column, $shown, $watermark) = @$feed{qw(table column shown watermark)};
		$load->reader($table, $node, "SELECT $shown FROM $table"
			  . " WHERE $column > \$1 AND $column < $watermark ORDER BY $column",
			from => $position{$table});
	}
	$load->wait_for_passes('journal', 20);
	$load->end_writers;
	finish_prepared($dba) while run_in($dba, 'SELECT count(*) FROM pg_prepared_xacts') > 0;
	run_in($dba, 'UPDATE message_bound SET id = DEFAULT, upto = uuidv7_feed_watermark()');
	$load->end_readers;

	my $misses = $conversion eq $without;
	foreach my $feed (\%message, \%journal)
	{
		my ($table, $column, $shown) = @$feed{qw(table column shown)};
		$load->check($table, run_in($dba, qq{
SELECT $shown FROM $table
 WHERE $column > '$position{$table}' OR $column NOT IN (SELECT $column FROM ${table}_before)}),
			$misses && $table eq 'message');
	}
	is(run_in($dba, qq{
SELECT count(*) > 0 FROM message
 WHERE id NOT IN (SELECT id FROM message_before) AND id < '$bound'}),
		$misses ? 't' : 'f', "$name: do rows come below the bound?");
	is(run_in($dba, 'SELECT upto <= id FROM message_bound'),
		't', "$name: the next bound is one of the feed");
	return;
}

convert('without observing', $create, $without, '12 h');
convert('as the page says', $create, $convert, '30 s');
convert('ids of uuidv7()', $create =~ s/uuidv7_fast\(\)/uuidv7()/gr, $convert, '30 s')
  if $node->pg_version >= 18;
$node->stop;
done_testing();
