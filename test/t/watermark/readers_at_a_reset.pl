# Readers that follow a table by the watermark, when the feed is reset: by the statements of
# the documents none misses a row, in any database; one whose position is not lowered does,
# which is why they are there.  The same for bounds that are stored.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FeedWriters;

my $node = start_feed('readers', '');

# The block of a page that resets it.
my @blocks = slurp_file('doc/operations.md') =~ /^```\w*\n(.*?)^```$/msg;
my ($reset, @others) = grep { /^SELECT uuidv7_feed_reset\(\);$/m } @blocks;
is("@others", '', 'one block of the page resets the feed');

my @examples = map { $_->{sql} } examples('doc/change-feeds.md', 'doc/feed-recipes.md');
my @recipes = grep { /CREATE \w+ (?:outbox|event)/ } @examples;
foreach my $database ('here', 'there', 'forgotten')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, join "\n", 'CREATE EXTENSION fast_uuid;', @recipes);
}

# Add a row, and ask until the watermark has passed it.  Returns its id, and what a reader
# is given.
sub add
{
	my ($database, $name) = @_;
	my $id = $node->safe_psql($database,
		qq{INSERT INTO outbox (payload) VALUES ('"$name"') RETURNING id});
	$node->poll_query_until($database, "SELECT '$id' < uuidv7_feed_watermark()")
	  or die 'the watermark stands still';
	my $given = $node->safe_psql($database,
		q{SELECT string_agg(payload #>> '{}', ' ' ORDER BY id) FROM outbox_next('mail')});
	return ($id, $given);
}

# A time that the clock reaches in an hour.
$node->safe_psql('here', q{
SET fast_uuid.max_clock_lead = '2 h';
SELECT uuidv7_feed_observe(uuidv7_fast_max(now() + interval '1 h'))});
foreach my $database ('here', 'there', 'forgotten')
{
	my (undef, $given) = add($database, 'ahead');
	is($given, 'ahead', "$database, before the reset: a row is read");
}
my $ahead = q{SELECT clock_lead > interval '50 min' FROM fast_uuid_stats() WHERE name = 'feed'};
is($node->safe_psql('here', $ahead), 't', 'and its id is ahead of the clock');
$node->safe_psql('here', q{INSERT INTO outbox (payload) VALUES ('"not read"')});

# Bounds that are stored: of windows, here of a minute, and for a standby.
my ($close) = map { /^(INSERT INTO outbox_hours \(begins.*)/ms } @recipes;
my ($for_standby) = grep { /CREATE TABLE feed_watermark/ } @examples;
$node->safe_psql('here', join "\n", $close =~ s/'hour'/'minute'/r, $for_standby);
my $stored = 'SELECT count(*) FROM'
  . ' (SELECT ends FROM outbox_hours UNION ALL SELECT upto FROM feed_watermark) AS b (bound)';

# As the page says, after an attempt that failed, and in the other database.
$node->safe_psql('here', $reset =~ s/^COMMIT/ROLLBACK/mr);
is($node->safe_psql('here', $ahead), 'f', 'a rollback does not undo the reset');
$node->safe_psql('here', $reset);
is($node->safe_psql('here', "$stored WHERE bound > uuidv7_feed_id()"), '2',
	'stored bounds are above new ids');
$node->safe_psql('here', q{
DELETE FROM outbox_hours WHERE ends > uuidv7_fast_min(now());
UPDATE feed_watermark SET upto = least(upto, uuidv7_fast_min(now()))});
$node->safe_psql('there',
	'UPDATE outbox_reader SET read_up_to = least(read_up_to, uuidv7_fast_min(now()))');
is($node->safe_psql('here', $ahead), 'f', 'after the reset: the clock again');

my ($id, $given) = add('here', 'after');
is($given, 'after', 'a position was lowered: the new row, and none that is ahead of the clock');
is($node->safe_psql('here', "$stored WHERE bound > '$id'"), '0', 'lowered bounds are below it');
(undef, $given) = add('there', 'after');
is($given, 'after', 'the same in another database');
(undef, $given) = add('forgotten', 'after');
is($given, '', 'a reader whose position was forgotten misses it');
$node->stop;
done_testing();
