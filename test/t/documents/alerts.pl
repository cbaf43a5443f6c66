# The alerts of doc/operations.md, asked by a role that has pg_monitor alone.  A prepared
# transaction is named if it holds the watermark back, and only then: a DBA is told to end
# it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;

my $node = PostgreSQL::Test::Cluster->new('alerts');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'fast_uuid'
max_prepared_transactions = 10
autovacuum = off
});
$node->start;

my @alerts = map { $_->{sql} } examples('doc/operations.md');
my ($monitor, $clock) = map { /(CREATE ROLE monitor.*?;)(.*)/s } @alerts;
my ($held_back) = grep { /held_back_for/ } @alerts;
$node->safe_psql('postgres', "$monitor; CREATE DATABASE other");
$node->safe_psql($_, 'CREATE EXTENSION fast_uuid; CREATE TABLE made (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id()); CREATE TABLE plain (n int)')
  foreach 'postgres', 'other';

sub ask
{
	my ($sql, $role) = @_;
	return $node->safe_psql('postgres', $sql, extra_params => [ '-U', $role // 'monitor' ]);
}

is(ask($clock), '00:00:00|00:00:00', 'the clock leads nobody');

# What is named: of a session its number, of a prepared transaction its name.
sub named
{
	return join ', ', sort map { /^0\|.*\|prepared: (.*)\|/ ? $1 : /^(\d+)/ } split /\n/, ask($held_back);
}

sub held_back_by
{
	return $node->safe_psql('postgres', q{SELECT held_back_by FROM fast_uuid_stats() WHERE name = 'feed'});
}

my %prepared = (
	'a row' => 'INSERT INTO made DEFAULT VALUES',
	'a position without a row' => 'SELECT uuidv7_feed_position()',
	'no id' => 'INSERT INTO plain VALUES (1)',
	'nothing' => 'SELECT 1',
	'a key' => 'INSERT INTO made VALUES (uuidv7_fast())',
	'locks' => 'SELECT pg_advisory_xact_lock(30069), pg_advisory_xact_lock(1, 30069)');

sub prepare
{
	my ($name, $database) = @_;
	$node->safe_psql($database // 'postgres', "BEGIN; $prepared{$name}; PREPARE TRANSACTION '$name'");
	return;
}

is(named(), '', 'nobody is named');
my @hold_back;
foreach my $name (sort keys %prepared)
{
	prepare($name);
	push @hold_back, $name if held_back_by() eq '0';
	is(named(), held_back_by() eq '0' ? $name : '', "prepared with $name: named if it holds the watermark back");
	$node->safe_psql('postgres', "ROLLBACK PREPARED '$name'");
}
is(join(', ', @hold_back), 'a position without a row, a row', 'two of them do');
prepare('a row', 'other');
is(named(), '', 'one of another database is not named');
$node->safe_psql('other', q{ROLLBACK PREPARED 'a row'});

# All at once, beside sessions.
prepare($_) foreach sort keys %prepared;
is(named(), join(', ', @hold_back), 'all at once: the same ones');
$node->restart;
is(named(), join(', ', @hold_back), 'and after a restart');
my ($writer, $idle) = map { $node->background_psql('postgres') } 1 .. 2;
$idle->query_safe('BEGIN; INSERT INTO plain VALUES (1)');
$writer->query_safe('BEGIN; INSERT INTO made DEFAULT VALUES');
$node->safe_psql('postgres', "COMMIT PREPARED '$_'") foreach @hold_back;
is(named(), $writer->query_safe('SELECT pg_backend_pid()'), 'these have ended: the session that wrote, and not the one without ids');
$writer->query_safe('COMMIT');
is(held_back_by(), '', 'it has ended too: nothing holds the watermark back');
is(named(), '', 'and nobody is named, beside the prepared ones that do not');
$_->quit foreach $writer, $idle;
$node->safe_psql('postgres', "ROLLBACK PREPARED '$_'") foreach grep { my $name = $_; !grep { $name eq $_ } @hold_back } keys %prepared;

$node->stop;
done_testing();
