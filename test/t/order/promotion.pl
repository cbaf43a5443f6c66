# On a standby, which has the extension by replication alone, there are keys; those of a session
# go on in order through the promotion.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use Test::More;

use lib 'test/perl';
use RawSession;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->start;
$primary->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast())});
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my $session = RawSession->start($standby);
my $last = $session->query_safe('SELECT (uuidv7_fast_array(1000))[1000]');
cmp_ok($session->query_safe('SELECT uuidv7_fast()'), 'gt', $last, 'keys on a standby, in order');
$last = $session->query_safe('SELECT (uuidv7_fast_array(1000))[1000]');
$primary->stop('immediate');
$standby->promote;
cmp_ok($session->query_safe('INSERT INTO item DEFAULT VALUES RETURNING id'), 'gt', $last,
	'they go on in order through the promotion');
$standby->stop;
done_testing();
