# The alerts of doc/operations.md, asked by a role that has pg_monitor alone.  A prepared
# transaction is named if it holds the watermark back, and only then: a DBA is told to end it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use Test::More;

use lib 'test/perl';
use Examples;

my $node = PostgreSQL::Test::Cluster->new('alerts');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'fast_uuid'\nmax_prepared_transactions = 10");
$node->start;

my ($create_role, $clock, $held_back) = map { $_->{sql} } examples('doc/operations.md');
$node->safe_psql('postgres', "$create_role; CREATE DATABASE other");
$node->safe_psql($_, q{
CREATE EXTENSION fast_uuid;
CREATE TABLE made (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id());
CREATE TABLE plain (n int)}) foreach 'postgres', 'other';

sub ask
{
	my ($sql) = @_;
	return $node->safe_psql('postgres', $sql, extra_params => [ '-U', 'monitor' ]);
}

# What the second alert names: of a session its pid, of a prepared transaction its name.
sub named
{
	my @names;
	foreach my $row (split /\n/, ask($held_back))
	{
		my ($pid, $user, $state) = split /\|/, $row;
		push @names, $pid ? $pid : $state =~ s/^prepared: //r;
	}
	return join ', ', sort @names;
}

sub prepare
{
	my ($database, $name, $sql) = @_;
	$node->safe_psql($database, "BEGIN; $sql; PREPARE TRANSACTION '$name'");
	return;
}

is(ask($clock), '00:00:00|00:00:00|', 'the clock leads nobody');

prepare('postgres', 'nothing', 'SELECT 1');
prepare('postgres', 'no id', 'INSERT INTO plain VALUES (1)');
prepare('postgres', 'a key', 'INSERT INTO made VALUES (uuidv7_fast())');
prepare('postgres', 'locks', 'SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock(1, 30069)');
prepare('other', 'of another database', 'INSERT INTO made DEFAULT VALUES');
is(named(), '', 'without feed ids of this database nobody is named');

prepare('postgres', 'a position', 'SELECT uuidv7_feed_position()');
is(named(), 'a position', 'a position without a row');
prepare('postgres', 'a row', 'INSERT INTO made DEFAULT VALUES');
is(named(), 'a position, a row', 'a row too');
$node->restart;
is(named(), 'a position, a row', 'both, after a restart');

my $idle = $node->background_psql('postgres');
my $writer = $node->background_psql('postgres');
$idle->query_safe('BEGIN; INSERT INTO plain VALUES (1)');
$writer->query_safe('BEGIN; INSERT INTO made DEFAULT VALUES');
$node->safe_psql('postgres', q{COMMIT PREPARED 'a position'; COMMIT PREPARED 'a row'});
is(named(), $writer->query_safe('SELECT pg_backend_pid()'), 'then the session that has written');
$writer->query_safe('COMMIT');
is(named(), '', 'when it has ended, nobody');

# As after a restart with the clock behind
like(ask($clock), qr/\|f$/, 'the clock is not behind');
$node->safe_psql('postgres', q{SELECT setval('fast_uuid_upper_bound',
	(extract(epoch FROM clock_timestamp() + interval '1 h') * 1000000)::bigint)});
like(ask($clock), qr/\|t$/, '... and now it is');

$_->quit foreach $idle, $writer;
$node->stop;
done_testing();
