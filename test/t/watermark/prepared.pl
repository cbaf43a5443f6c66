# The watermark and prepared transactions: they hold it back until they are
# finished, whoever finishes them, and after a restart, a crash and a promotion too.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use WatermarkNode;

$node = PostgreSQL::Test::Cluster->new('prepared');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "autovacuum = off\nmax_prepared_transactions = 5\n");
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n") if $node->pg_version < 17;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid; CREATE TABLE made (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), name text)');

# Prepared transactions, finished by another session, before and after a restart.
foreach my $restart ('no restart', 'fast', 'immediate')
{
	foreach my $end ('COMMIT', 'ROLLBACK')
	{
		my $session = session();
		my $before  = $node->safe_psql('postgres', "$instance; SELECT uuidv7_fast()");
		my $id      = in_transaction($session);
		my $held    = watermark();
		$session->query_safe("PREPARE TRANSACTION 'it'");
		is(watermark(), $held, "prepared, $restart, $end: holds the watermark back");
		is(stats('held_back_by'), '0', "prepared, $restart, $end: shown as process 0, while the session does nothing more");
		my $later = $session->query_safe('INSERT INTO made DEFAULT VALUES RETURNING id');
		$session->quit;
		if ($restart ne 'no restart')
		{
			$node->stop($restart);
			$node->start;
		}
		is(stats('held_back_by'), '0', "prepared, $restart, $end: shown, also before a watermark was asked for");
		cmp_ok(watermark(), 'le', $id, "prepared, $restart, $end: it still does");
		cmp_ok(watermark(), 'ge', $before, "prepared, $restart, $end: from its first value on");
		$node->safe_psql('postgres', "$end PREPARED 'it'");
		cmp_ok(watermark(), 'gt', $later, "prepared, $restart, $end: until it has ended");
		is($node->safe_psql('postgres', "SELECT count(*) FROM made WHERE id = '$id'"), $end eq 'COMMIT' ? 1 : 0,
			"prepared, $restart, $end: as it did");
	}
}
# One of another database does not, and the look for it there forgets none of here.
{
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	$node->safe_psql('other', 'CREATE EXTENSION fast_uuid');
	my $session = session();
	my $id      = in_transaction($session);
	$session->query_safe("PREPARE TRANSACTION 'it'");
	$session->quit;
	cmp_ok($node->safe_psql('other', 'SELECT uuidv7_fast_watermark()'), 'gt', $id, 'prepared: does not hold the watermark of another database back');
	is($node->safe_psql('other', "SELECT held_back_by IS NULL FROM fast_uuid_stats() WHERE name = 'instance'"), 't', 'prepared: nor is it shown there');
	cmp_ok(watermark(), 'le', $id, 'prepared: but its own, after that');
	$node->safe_psql('postgres', "ROLLBACK PREPARED 'it'");
}

{
	my $session = session();
	my $latest = $session->query_safe('SELECT uuidv7_fast()');
	$session->query_safe("BEGIN; INSERT INTO made VALUES (gen_random_uuid()); PREPARE TRANSACTION 'without'");
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), '0', 'prepared without values: no lock');
	is(stats('held_back_by IS NULL'), 't', 'prepared without values: nobody holds the watermark back');
	cmp_ok(watermark(), 'gt', $latest, 'prepared without values: it goes on');
	$session->query_safe("ROLLBACK PREPARED 'without'");
	is($session->query('BEGIN; SELECT uuidv7_fast() IS NULL; CREATE TEMP TABLE t (); PREPARE TRANSACTION \'fails\''), 'f', 'a PREPARE that fails');
	$session->{stderr} = '';
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), '0', 'leaves no lock');
	$session->quit;
}

# A standby that takes one over.
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
{
	my $session = session();
	my $id      = in_transaction($session);
	$session->query_safe("PREPARE TRANSACTION 'taken over'");
	$session->quit;
	$node->wait_for_catchup($standby);
	$node->stop;
	$standby->promote;
	cmp_ok($standby->safe_psql('postgres', 'SELECT uuidv7_fast_watermark()'), 'le', $id, 'promoted: a prepared transaction holds the watermark back');
	$standby->safe_psql('postgres', "COMMIT PREPARED 'taken over'");
	cmp_ok($standby->safe_psql('postgres', 'SELECT uuidv7_fast_watermark()'), 'gt', $id, 'until it has ended');
}
$standby->stop;
done_testing();
