# Readers that follow a table by the watermark, when the feed's order is reset: by the
# statements of the documents none misses a row, in any database; one whose position
# is not lowered does, which is why they are there.  The same for bounds that are stored.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FeedWriters;

my $node = start_feed('readers', '');

# The blocks of a page, of any kind, that reset it.
sub resets
{
	my ($page) = @_;
	return grep { /^SELECT uuidv7_feed_reset\(\);$/m } slurp_file($page) =~ /^```\w*\n(.*?)^```$/msg;
}
my @of_positions = resets('doc/operations.md');
is(scalar @of_positions, 1, 'a statement for positions');

my @recipes = map { $_->{sql} } grep { $_->{sql} =~ /CREATE \w+ (?:outbox|event)/ } examples('doc/change-feeds.md');
foreach my $database ('here', 'there', 'forgotten')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, join "\n", 'CREATE EXTENSION fast_uuid;', @recipes);
}

sub add
{
	my ($database, $name) = @_;
	return $node->safe_psql($database, qq{INSERT INTO outbox (payload) VALUES ('"$name"') RETURNING id});
}

# What a reader is given that asks until the watermark has passed this id.
sub read_to
{
	my ($database, $id) = @_;
	$node->poll_query_until($database, "SELECT '$id' < uuidv7_feed_watermark()") or die 'the watermark stands still';
	return $node->safe_psql($database, q{SELECT string_agg(payload #>> '{}', ' ' ORDER BY id) FROM outbox_next('mail')});
}

# In seconds.
sub lead
{
	return $node->safe_psql('here', q{SELECT round(extract(epoch FROM clock_lead)) FROM fast_uuid_stats() WHERE name = 'feed'});
}

# A time that the clock reaches in an hour.
$node->safe_psql('here', q{SET fast_uuid.max_clock_lead = '2 h'; SELECT uuidv7_feed_observe(uuidv7_fast_max(now() + interval '1 h'))});
foreach my $database ('here', 'there', 'forgotten')
{
	is(read_to($database, add($database, 'ahead')), 'ahead', "$database, before the reset: a row is read");
}
cmp_ok(lead(), '>', 3000, 'and its id is ahead of the clock');
add('here', 'not read');

# Bounds that are stored: of windows, here of a minute, and for a standby.
my $bounds = 'SELECT ends AS bound FROM outbox_hours UNION ALL SELECT upto FROM feed_watermark';
my ($close) = map { /^(INSERT INTO outbox_hours \(begins.*)/ms } @recipes;
my ($for_standby) = grep { /CREATE TABLE feed_watermark/ } map { $_->{sql} } examples('doc/change-feeds.md');
$node->safe_psql('here', join "\n", $close =~ s/'hour'/'minute'/r, $for_standby, "CREATE TABLE not_lowered AS $bounds");

# As the page says, after an attempt that failed, and in the other database.
$node->safe_psql('here', $of_positions[0] =~ s/^COMMIT/ROLLBACK/mr);
is(lead(), 0, 'a rollback does not undo the reset');
$node->safe_psql('here', $of_positions[0]);
$node->safe_psql('here', q{
DELETE FROM outbox_hours WHERE ends > uuidv7_fast_min(now());
UPDATE feed_watermark SET upto = least(upto, uuidv7_fast_min(now()))});
$node->safe_psql('there', 'UPDATE outbox_reader SET read_up_to = least(read_up_to, uuidv7_fast_min(now()))');
is(lead(), 0, 'after the reset: the clock again');

my %added = map { $_ => add($_, 'after') } 'here', 'there', 'forgotten';
is(read_to('here',  $added{here}),  'after', 'a reader whose position was lowered: the new row, and none that is ahead of the clock');
is(read_to('there', $added{there}), 'after', 'the same in another database');
is(read_to('forgotten', $added{forgotten}), '', 'a reader that was forgotten misses it');
is($node->safe_psql('here', "SELECT count(*) FROM ($bounds) AS b WHERE bound > '$added{here}'"), 0, 'stored bounds that were lowered are below new rows');
is($node->safe_psql('here', "SELECT count(*) FROM not_lowered WHERE bound > '$added{here}'"), 2, 'those that were forgotten are above them');

$node->stop;
done_testing();
