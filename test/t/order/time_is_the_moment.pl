# The time in a UUID is that of its own moment: never ahead of the clock because
# of speed, whatever is generated beside and between, and not that of the row
# before, however long that is ago.  A reset holds for all sessions, and nothing wraps
# at the end of time.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

use lib 'test/perl';
use FakeClock;

my $node = PostgreSQL::Test::Cluster->new('moment');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

# Generators side by side in one target list, under a limit that allows no lead.
my %call = (
	set    => 'uuidv7_fast_set(2000)',
	array  => 'cardinality(uuidv7_fast_array(3))',
	single => 'uuidv7_fast()',
	shift  => "uuidv7_fast(interval '0')");
my @kinds = sort keys %call;
my (@lists, %seen);
foreach my $one (@kinds)
{
	foreach my $two (@kinds)
	{
		push @lists, [ $one, $two ], map { [ $one, $two, $_ ] } @kinds;
	}
}
@lists = grep { !$seen{ join ' ', sort @$_ }++ } @lists;

my $not_ahead = 'SELECT uuidv7_fast_timestamp(uuidv7_fast(), true) <= clock_timestamp()';
my $no_lead   = "SELECT largest_clock_lead, clock_lead FROM fast_uuid_stats() WHERE name = '%s'";
foreach my $ordering ('session', 'instance')
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe("SET fast_uuid.ordering = '$ordering'; SET fast_uuid.max_clock_lead = 0");
	foreach my $list (@lists)
	{
		my $columns = join ', ', map { "$call{$list->[$_]} AS c$_" } 0 .. $#$list;
		my $from    = grep({ $_ eq 'set' } @$list) ? '' : 'FROM generate_series(1, 2000)';
		my $rows    = eval { $session->query_safe("SELECT count(*) FROM (SELECT $columns $from OFFSET 0) AS made; $not_ahead") }
		  // $@;
		is($rows, "2000\nt", "$ordering: @$list: 2000 rows, and the next value not ahead of the clock");
	}

	# Sets that are left after their first rows.
	$session->query_safe(
		q{DO $$ DECLARE got int; BEGIN FOR i IN 1..3000 LOOP
			IF EXISTS (SELECT uuidv7_fast_set(1000000)) THEN got := i; END IF;
			PERFORM uuidv7_fast_set(1000000) LIMIT 2;
			PERFORM uuidv7_fast_set(i) LIMIT i % 300;
		END LOOP; END $$});
	is($session->query_safe($not_ahead), 't', "$ordering: sets cut short: the next value not ahead of the clock");
	is($session->query_safe(sprintf $no_lead, $ordering), '00:00:00|00:00:00', "$ordering: no lead");

	# Each row after a wait: younger than the row before, which ended before it.
	is($session->query_safe(
			q{SELECT count(*) FILTER (WHERE id_time > previous) || ' of ' || count(previous) FROM (
				SELECT uuidv7_fast_timestamp(id, true) AS id_time, lag(at) OVER (ORDER BY id) AS previous FROM (
					SELECT uuidv7_fast_set(10) AS id, clock_timestamp() AS at, pg_sleep(0.03)) AS waited) AS pairs}),
		'9 of 9', "$ordering: a set's rows do not keep the time of the first");
	$session->quit;
}
$node->stop;

SKIP:
{
	skip 'libfaketime is not installed', 1 unless fake_clock_installed();
	test_steps();
}
done_testing();

sub test_steps
{
	my $node = PostgreSQL::Test::Cluster->new('steps');
	$node->init;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
	start_with_fake_clock($node);
	$node->safe_psql(
		'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE FUNCTION in_instance_order() RETURNS uuid LANGUAGE plpgsql SET fast_uuid.ordering = 'instance' AS
	'BEGIN RETURN uuidv7_fast(); END';
-- Seconds that the time of a UUID leads the clock.
CREATE FUNCTION ahead(id uuid) RETURNS int LANGUAGE sql VOLATILE AS
	$$SELECT round(extract(epoch FROM uuidv7_fast_timestamp(id, true) - clock_timestamp()))$$;
});
	my $session_of = sub {
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		$session->query_safe($_[0] // '');
		return $session;
	};
	my $error_of = sub {
		my ($session, $statement) = @_;
		$session->{stderr} = '';
		my $answer = $session->query("\\set VERBOSITY verbose\n$statement");
		my ($state) = $session->{stderr} =~ /ERROR:  (\w+)/;
		$session->{stderr} = '';
		return $state // "value $answer";
	};

	# A resting cursor.
	my $session = $session_of->('BEGIN; DECLARE c CURSOR FOR SELECT uuidv7_fast_set(1000)');
	my $first   = $session->query_safe('FETCH c');
	set_clock_offset($node, '+86400');
	my $second = $session->query_safe('FETCH c');
	is($session->query_safe("SELECT ahead('$second')"), '0', 'a cursor over a set follows a clock that went forward a day');
	set_clock_offset($node, '+79200');
	my $third = $session->query_safe('FETCH c');
	is($session->query_safe("SELECT '$third' > '$second', ahead('$third')"), 't|7200', 'and goes on when that stepped back two hours');
	$session->query_safe("SAVEPOINT a; SET fast_uuid.max_clock_lead = '1h'");
	is($error_of->($session, 'FETCH c'), '55000', 'but not beyond the limit, which each row is held against');
	$session->quit;

	# The largest lead, whatever the order is set to meanwhile.
	my $largest = sub {
		my ($session, $name) = @_;
		return $session->query_safe(
			"SELECT round(extract(epoch FROM largest_clock_lead)) FROM fast_uuid_stats() WHERE name = '$name'");
	};
	$node->stop;
	start_with_fake_clock($node);
	$session = $session_of->('SELECT uuidv7_fast()');
	set_clock_offset($node, '-3600');
	foreach my $ordering ('session', 'instance', 'session', 'instance', 'session', 'instance')
	{
		$session->query_safe("SET fast_uuid.ordering = '$ordering'; SELECT uuidv7_fast(), uuidv7_fast_set(3); SELECT in_instance_order()");
	}
	is($largest->($session, $_), '3600', "$_: the largest lead, although the order changes") foreach 'session', 'instance';
	my $other = $session_of->("SET fast_uuid.ordering = 'instance'; SELECT uuidv7_fast()");
	is($largest->($other, 'instance'), '3600', 'instance: for another session too');
	$_->quit foreach $session, $other;

	# ... also where the call fails because of it.
	$node->stop;
	start_with_fake_clock($node);
	foreach my $ordering ('session', 'instance')
	{
		set_clock_offset($node, '+0');
		$session = $session_of->("SET fast_uuid.ordering = '$ordering'; SET fast_uuid.max_clock_lead = '1min'; SELECT uuidv7_fast()");
		set_clock_offset($node, '-7200');
		is($error_of->($session, 'SELECT uuidv7_fast()'), '55000', "$ordering: beyond the limit") foreach 1 .. 3;
		set_clock_offset($node, '+0');
		is($largest->($session, $ordering), '7200', "$ordering: the lead is noted, although the calls fail");
		$session->quit;
	}

	my $script = $node->basedir . '/generate.sql';
	append_to_file($script, "SELECT count(uuidv7_fast()) FROM generate_series(1, 2000);\n");
	my $traffic = sub {
		my ($clients) = @_;
		local $ENV{PGOPTIONS} = '-c fast_uuid.ordering=instance';
		return IPC::Run::start(
			[ 'pgbench', '-n', '-c', $clients, '-j', 2, '-T', 600, '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
			'>', \my $out, '2>', \my $err);
	};
	my $transactions = sub {
		return $node->safe_psql('postgres', "SELECT pg_stat_clear_snapshot(); SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'");
	};
	my $await_traffic = sub {
		$node->poll_query_until('postgres', "SELECT xact_commit > $_[0] FROM pg_stat_database WHERE datname = 'postgres'")
		  or BAIL_OUT('pgbench stands still');
	};
	# A session that fails because of its own lead says nothing of the instance.
	$node->stop;
	start_with_fake_clock($node);
	set_clock_offset($node, '+3600');
	$session = $session_of->("SET fast_uuid.max_clock_lead = '1min'; SELECT uuidv7_fast()");
	set_clock_offset($node, '+0');
	$other = $session_of->("SET fast_uuid.ordering = 'instance'");
	foreach (1 .. 3)
	{
		is($error_of->($session, 'SELECT in_instance_order()'), '55000', 'a session with a lead of its own comes to the instance');
		$other->query_safe('SELECT uuidv7_fast()');
	}
	is($largest->($other, 'instance'), '0', 'instance: it has none from there');
	is($largest->($session, 'session'), '3600', 'session: but the session has');
	$_->quit foreach $session, $other;

	# A lead seen under the order of the instance is one of the session as well.
	$node->stop;
	start_with_fake_clock($node);
	$session = $session_of->("SET fast_uuid.ordering = 'instance'; SELECT uuidv7_fast()");
	set_clock_offset($node, '-3600');
	$session->query_safe('SELECT uuidv7_fast()');
	set_clock_offset($node, '+0');
	is($largest->($session, 'session'), '3600', 'session: a lead seen under the order of the instance');
	$session->quit;

	# A reset in the middle of traffic: readings of the clock from before do not come in after it.
	$node->stop;
	start_with_fake_clock($node);
	my $pgbench = $traffic->(16);
	my $resetter = $session_of->("SET fast_uuid.ordering = 'instance'");
	my $undone   = 0;
	foreach (1 .. 6)
	{
		set_clock_offset($node, '+86400');
		$resetter->query_safe('SELECT 1') while $resetter->query_safe('SELECT ahead(uuidv7_fast()) + extract(epoch FROM clock_timestamp())::int')
		  < time + 86000;
		set_clock_offset($node, '+0');
		$resetter->query_safe('SELECT fast_uuid_reset_ordering()');
		$undone++ if $resetter->query_safe('SELECT ahead(uuidv7_fast())') > 60;
		$await_traffic->($transactions->() =~ /(\d+)/ ? $1 + 20 : 0);
		$undone++ if $resetter->query_safe('SELECT ahead(uuidv7_fast())') > 60;
	}
	is($undone, 0, 'a reset in the middle of traffic is not undone by it');
	$pgbench->kill_kill;
	$resetter->quit;

	# Once there was a reset, what a session has generated before its first entry does not count.
	$session = $session_of->('SELECT uuidv7_fast()');
	set_clock_offset($node, '+3600');
	my ($own, $mine);
	$mine = $session->query_safe('SELECT uuidv7_fast()');
	set_clock_offset($node, '+0');
	is($session->query_safe("SELECT in_instance_order() > '$mine'"), 'f', 'after a reset a session enters by the clock');
	$session->quit;

	# A reset holds: a pooled session that used the order of the instance before,
	# and one that comes to it only now, do not bring the time back.
	$node->stop;
	start_with_fake_clock($node);
	set_clock_offset($node, '+600');
	my $entering = $session_of->('SELECT uuidv7_fast()');
	$own = $entering->query_safe('SELECT uuidv7_fast()');
	set_clock_offset($node, '+0');
	is($entering->query_safe("SELECT in_instance_order() > '$own'"), 't', 'without a reset what a session has generated counts at its first entry');
	$entering->quit;
	set_clock_offset($node, '+86400');
	my $pooled = $session_of->('SELECT in_instance_order()');
	my $late   = $session_of->('SELECT uuidv7_fast()');
	my $both   = $session_of->('SELECT in_instance_order(); SELECT uuidv7_fast()');
	set_clock_offset($node, '+0');
	my $dba = $session_of->("SET fast_uuid.ordering = 'instance'");
	is($dba->query_safe('SELECT ahead(uuidv7_fast())'), '86400', 'the instance is a day ahead');
	$dba->query_safe('SELECT fast_uuid_reset_ordering()');
	is($dba->query_safe('SELECT ahead(uuidv7_fast())'), '0', 'after a reset it is not');
	is($pooled->query_safe('SELECT ahead(in_instance_order())'), '0', 'a session that used the order before does not bring that back');
	is($late->query_safe('SELECT ahead(in_instance_order())'), '0', 'nor one that used its own order before');
	is($both->query_safe('SELECT ahead(uuidv7_fast())'), '0', 'and one that used both is free in its own as well');
	is($both->query_safe('SELECT ahead(in_instance_order())'), '0', 'and then in that of the instance');
	is($dba->query_safe('SELECT ahead(uuidv7_fast())'), '0', 'nor has the instance gone ahead since');

	# ... nor a set that rests in a session which has used that order.
	freeze_clock($node, '2031-02-03 04:05:06');
	my $resting = $session_of->('SELECT in_instance_order(); BEGIN; DECLARE c CURSOR FOR SELECT uuidv7_fast_set(1000)');
	freeze_clock($node, '2031-02-03 05:05:06');
	$resting->query_safe('FETCH 2 FROM c');
	$dba->query_safe('SELECT fast_uuid_reset_ordering()');
	set_clock_offset($node, '+0');
	my $row = $resting->query_safe('FETCH c');
	is($resting->query_safe("SELECT ahead('$row')"), '0', 'nor a set that rests in a session which has used that order');
	$resting->quit;

	# Without a reset a session's own order is kept when it comes to that of the instance.
	set_clock_offset($node, '+600');
	my $kept = $session_of->('SELECT in_instance_order()');
	$own = $kept->query_safe('SELECT uuidv7_fast()');
	set_clock_offset($node, '+0');
	is($kept->query_safe("SELECT in_instance_order() > '$own'"), 't', 'without another reset the order of a session is kept');
	is($kept->query_safe("SELECT uuidv7_fast() > '$own'"), 't', 'in both orders');
	$_->quit foreach $pooled, $late, $both, $dba, $kept;

	# A clock that stands still, and a cursor that rests while its latest
	# nanosecond is generated again after a reset.
	$node->stop;
	start_with_fake_clock($node);
	freeze_clock($node, '2031-02-03 04:05:06');
	$session = $session_of->('BEGIN; DECLARE c CURSOR FOR SELECT uuidv7_fast_set(1000)');
	$session->query_safe('FETCH 2 FROM c');
	my $latest = $session->query_safe('SELECT fast_uuid_reset_ordering(); SELECT uuidv7_fast_set(1000) LIMIT 5');
	($latest) = $latest =~ /(\S+)\s*\z/;
	is($session->query_safe("SELECT '$latest' < uuidv7_fast()"), 't', 'on a clock that stands still values ascend');
	($latest) = $session->query_safe('SELECT fast_uuid_reset_ordering(); SELECT uuidv7_fast_set(1000) LIMIT 5') =~ /(\S+)\s*\z/;
	cmp_ok($session->query_safe('FETCH c'), 'gt', $latest, 'a resting cursor goes on after the latest value, whatever it is');
	foreach my $ordering ('session', 'instance')
	{
		is($node->safe_psql('postgres', "SET fast_uuid.ordering = '$ordering'; SET fast_uuid.max_clock_lead = 0;"
				  . ' SELECT count(DISTINCT uuidv7_fast()) FROM generate_series(1, 1000)'),
			'1000', "$ordering: which the strictest limit permits below a millisecond");
	}

	# The limit is for each row, also while the clock shows the same.
	$session->query_safe('COMMIT; BEGIN; DECLARE c CURSOR FOR SELECT uuidv7_fast_set(1000)');
	freeze_clock($node, '2031-02-03 02:05:06');
	$session->query_safe("FETCH c; SET fast_uuid.max_clock_lead = '1h'");
	is($error_of->($session, 'FETCH c'), '55000', 'a limit that is set between two rows holds for the second');
	$session->quit;

	# The limit is for the last value of an array as well.
	foreach my $ordering ('session', 'instance')
	{
		freeze_clock($node, '2031-02-03 04:05:06');
		$session = $session_of->("SET fast_uuid.ordering = '$ordering'; SELECT fast_uuid_reset_ordering(); SELECT uuidv7_fast()");
		freeze_clock($node, '2031-02-03 03:05:06');
		$session->query_safe("SET fast_uuid.max_clock_lead = '1h'");
		is($error_of->($session, 'SELECT cardinality(uuidv7_fast_array(256))'), '55000', "$ordering: an array beyond the limit by nanoseconds");
		$session->quit;
	}

	# The last second of the 64-bit nanosecond, then today.
	my $end = 18446744073;
	foreach my $ordering ('session', 'instance')
	{
		$node->stop;
		start_with_fake_clock($node);
		$session = $session_of->("SET fast_uuid.ordering = '$ordering'");
		my $outcome = '';
		foreach my $early (0.05, 0.1, 0.2, 0.4, 0.8)
		{
			set_clock_offset($node, sprintf('%+.6f', $end - $early - time));
			$outcome = $error_of->($session, 'SELECT uuidv7_fast()');
			last if $outcome =~ /value/;
		}
		like($outcome, qr/value/, "$ordering: a value shortly before the end of time");
		my ($last) = $outcome =~ /value (.*)/;
		set_clock_offset($node, '+0');
		my $ended = '';
		foreach (1 .. 400)
		{
			my $next = $error_of->($session, 'SELECT (uuidv7_fast_array(5000000))[5000000]');
			($ended) = $next =~ /^(22\w+)/ or $next =~ s/^value //;
			last if $ended || $next le $last;
			$last = $next;
		}
		is($ended, '22008', "$ordering: an error where the nanoseconds end, and order until then");

		# The last chunk of an array did not fit; single values have what is left.
		my $calls = 0;
		foreach my $call (('uuidv7_fast()', 'uuidv7_fast_set(1)') x 200)
		{
			my $next = $error_of->($session, "SELECT $call");
			last if $next eq '22008' || $next le "value $last";
			($last) = $next =~ /value (.*)/;
			$calls++;
		}
		cmp_ok($calls, '<', 256, "$ordering: single values end soon after");
		is($error_of->($session, "SELECT $_"), '22008', "$ordering: $_ is an error then")
		  foreach 'uuidv7_fast()', 'uuidv7_fast_set(2)', 'uuidv7_fast_array(1)', "uuidv7_fast(interval '0')";
		$session->query_safe('SELECT fast_uuid_reset_ordering()');
		is($session->query_safe('SELECT ahead(uuidv7_fast())'), '0', "$ordering: and a reset leads back to the clock");
		$session->quit;
	}
	$node->stop;
	return;
}
