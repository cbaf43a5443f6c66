# Sessions whose entropy sources fail, and what must hold of each fault.  The
# faults come from test/modules: nothing in the extension helps.

package Faults;

use strict;
use warnings;

use Cwd qw(getcwd);
use Exporter qw(import);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(check_fault start_faulty_node stop_faulty_node sources session_of outcome error_of reason
  descriptors check_failing check_working);

my $modules = getcwd() . '/test/modules';
my @sources;

# Two of 128 values share these 52 random bits by chance once in 5 * 10^11 checks;
# one of all the checks of the four files fails so once in 3 * 10^9 runs.
my $drawn          = 128;
my $count_distinct = "SELECT count(DISTINCT right(id::text, 14)) FROM"
  . " (SELECT %s AS id FROM generate_series(1, $drawn)) AS made";

# $options{preload}: with preload_faults.so.
sub start_faulty_node
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	# The just-in-time compiler's own memory is not what is measured.
	$node->append_conf('postgresql.conf', 'jit = off');
	{
		local $ENV{LD_PRELOAD} = "$modules/preload_faults.so" if $options{preload};
		$node->start;
	}
	$node->safe_psql(
		'postgres', qq[
CREATE EXTENSION fast_uuid;
CREATE TABLE made (n int, id uuid);
CREATE FUNCTION inject_fault(fault text) RETURNS bool AS '$modules/faults' LANGUAGE c;
CREATE FUNCTION openssl_error_queued() RETURNS bool AS '$modules/faults' LANGUAGE c;
CREATE FUNCTION queue_openssl_error() RETURNS bool AS '$modules/faults' LANGUAGE c;
CREATE FUNCTION limit_descriptors(count int) RETURNS bool AS '$modules/faults' LANGUAGE c;
CREATE FUNCTION take_descriptors(take bool) RETURNS bool AS '$modules/faults' LANGUAGE c;
CREATE FUNCTION limit_memory(headroom int) RETURNS bool AS '$modules/faults' LANGUAGE c;
CREATE FUNCTION getrandom_fault(error int, times int DEFAULT -1) RETURNS bool
	AS '$modules/seccomp_getrandom' LANGUAGE c;
CREATE FUNCTION getrandom_short(bytes int) RETURNS bool
	AS '$modules/seccomp_getrandom' LANGUAGE c;
CREATE FUNCTION drop_vdso_state() RETURNS bool
	AS '$modules/seccomp_getrandom' LANGUAGE c;
-- The value of a query, or else the error.
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	value text; state text; message text; detail text;
BEGIN
	EXECUTE query INTO value;
	RETURN 'value ' || value;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE,
		message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws('|', state, message, nullif(detail, ''));
END \$\$;
-- How many of so many calls fail.
CREATE FUNCTION failures(calls int, source text) RETURNS int LANGUAGE plpgsql AS \$\$
DECLARE
	failed int := 0;
BEGIN
	FOR i IN 1..calls LOOP
		BEGIN
			PERFORM uuidv7_fast(source);
		EXCEPTION WHEN OTHERS THEN
			failed := failed + 1;
		END;
	END LOOP;
	RETURN failed;
END \$\$;
-- Values made before the first failure, of ten thousand.
CREATE FUNCTION made_before_failure(source text) RETURNS int LANGUAGE plpgsql AS \$\$
DECLARE
	made int := 0;
BEGIN
	FOR i IN 1..10000 LOOP
		PERFORM uuidv7_fast(source);
		made := i;
	END LOOP;
	RETURN made;
EXCEPTION WHEN OTHERS THEN
	RETURN made;
END \$\$;
]);
	@sources = split /\n/,
	  $node->safe_psql('postgres', 'SELECT name FROM fast_uuid_sources() WHERE available');
	return $node;
}

# Those that this build has.
sub sources
{
	return @sources;
}

sub stop_faulty_node
{
	my ($node) = @_;
	unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'the server went on all the time');
	$node->stop;
	return;
}

# A session that fetches every value's randomness by itself, so that nothing
# buffered hides a fault.
sub session_of
{
	my ($node, $settings) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe("\\set VERBOSITY verbose\nSET fast_uuid.buffer_size = 0; " . ($settings // ''));
	return $session;
}

# Load what the session needs for its queries: under some faults the server
# itself could not.
sub warm_up
{
	my ($session) = @_;
	outcome($session, "SELECT $_") foreach calls('xorshift128+');
	$session->query_safe("SELECT failures(2, 'none such'), made_before_failure('none such'), pg_backend_pid()");
	outcome($session, "INSERT INTO made SELECT 1 / (n - n) FROM generate_series(1, 10) AS n");
	$session->query_safe('SELECT count(*) FROM made');
	outcome($session, sprintf($count_distinct, "uuidv7_fast('xorshift128+')"));
	return;
}

# Every way to ask a source for values.
sub calls
{
	my ($source) = @_;
	return ("uuidv7_fast('$source')", "uuidv7_fast_array(1000, '$source')",
		"count(id) FROM uuidv7_fast_set(1000, '$source') AS id",
		"uuidv7_fast(interval '1 hour', '$source')", "uuidv7_fast_at(now(), '$source')");
}

sub outcome
{
	my ($session, $query) = @_;
	my $answer = eval { $session->query_safe("SELECT outcome(\$query\$$query\$query\$)") };
	return $answer // "no answer: $@";
}

# The error of a statement of its own, in the words of outcome(); the session
# must answer nothing else.
sub error_of
{
	my ($session, $statement) = @_;
	my $answer = $session->query($statement);
	my $error  = join '|', grep { defined }
	  $session->{stderr} =~ /ERROR:  (\w+): ([^\n]*)\n(?:DETAIL:  ([^\n]*)\n)?/;
	$session->{stderr} = '';
	return $answer . $error;
}

# The system's words for an errno.
sub reason
{
	local $! = $_[0];
	return "$!";
}

# What has been fetched from these sources in the session; all: no names.
sub refills
{
	my ($session, @names) = @_;
	my $names = join ',', map { "'$_'" } @names ? @names : @sources;
	return $session->query_safe("SELECT string_agg(refills::text, ' ' ORDER BY name) FROM fast_uuid_sources()"
		  . " WHERE name IN ($names)");
}

sub bytes
{
	my ($session, $source) = @_;
	return $session->query_safe("SELECT bytes FROM fast_uuid_sources() WHERE name = '$source'");
}

sub descriptors
{
	my ($session) = @_;
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	return scalar(() = glob("/proc/$pid/fd/*"));
}

# Anonymous memory of a session, in kB.
sub memory
{
	my ($session) = @_;
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my ($kb) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m;
	return $kb;
}

# The source delivers, and bytes that differ in every value.
sub check_working
{
	my ($session, $source, $name) = @_;
	is(outcome($session, sprintf($count_distinct, "uuidv7_fast('$source')")), "value $drawn", $name);
	return;
}

# check_failing() with a fault that inject_fault() brings.
sub check_fault
{
	my ($node, $source, $name, $fault, $why) = @_;
	check_failing($node, $name, source => $source, start => "inject_fault('$fault')", stop => "inject_fault('')", why => $why);
	return;
}

# check_failing($node, NAME, source => ..., start => ..., stop => ..., why => ...)
#
# start and stop: SQL expressions that bring the fault and lift it; why: the
# detail of the error; settings: SQL for the session; more: errors during which memory
# must stay.
sub check_failing
{
	my ($node, $name, %fault) = @_;
	my ($source, $start, $stop) = @fault{ 'source', 'start', 'stop' };
	my @others = grep { $_ ne $source } @sources;
	my $call   = "uuidv7_fast('$source')";
	my $failed = "58000|could not get random bytes from entropy source \"$source\"|$fault{why}";

	# The fault strikes a source that has worked before.
	my $session = session_of($node, $fault{settings});
	warm_up($session);
	check_working($session, $source, "$name: before, the source works");
	my $before = refills($session);
	$session->query_safe("SELECT $start");
	is(outcome($session, "SELECT $_"), $failed, "$name: $_ is an error that names the source and the reason")
	  foreach calls($source);
	is(error_of($session, "SELECT $call"), $failed, "$name: and no value, in a transaction of its own");
	is($session->query_safe('SELECT 1'), 1, "$name: the session goes on");
	is(refills($session), $before, "$name: no source is drawn from in its place");
	is($node->safe_psql('postgres', "SELECT $call IS NOT NULL"), 't', "$name: another session has no fault");

	# Errors by the thousand; some at first, until caches are warm.
	$session->query_safe("SELECT failures(1000, '$source')");
	my ($open, $memory) = (descriptors($session), memory($session));
	is($session->query_safe("SELECT failures(1000, '$source')"), 1000, "$name: a thousand calls, a thousand errors");
	is(descriptors($session), $open, "$name: no descriptor is left open");
	my $more = $fault{more} // 10_000;
	is($session->query_safe("SELECT failures($more, '$source')"), $more, "$name: $more more");
	my $growth = memory($session) - $memory;
	cmp_ok($growth, '<', 512, "$name: memory stays (grew by $growth kB)");

	check_working($session, $_, "$name: $_ works meanwhile") foreach @others;
	is(outcome($session, "SELECT $call"), $failed, "$name: and the failing source still fails");
	$session->query_safe("SELECT $stop");
	check_working($session, $source, "$name: the source works again afterwards");

	# In the middle of a statement: 499 rows have been made.
	my $others = refills($session, @others);
	$before = refills($session, $source);
	is(error_of($session, "INSERT INTO made SELECT n, $call FROM generate_series(1, 1000) AS n WHERE n <> 500 OR $start"),
		$failed, "$name: an insert of many rows fails");
	is(refills($session, $source) - $before, 499, "$name: the fault came in the middle of it");
	is(refills($session, @others), $others, "$name: and no other source stepped in");
	$session->query_safe("SELECT $stop");
	is($session->query_safe('SELECT count(*) FROM made'), 0, "$name: none of its rows stays");

	# With values buffered, those that were fetched before the fault are good.
	$session->query_safe('SET fast_uuid.buffer_size = 4096');
	check_working($session, $source, "$name: with a buffer");
	$session->query_safe("SELECT $start");
	my $fetched = bytes($session, $source);
	my $made    = $session->query_safe("SELECT made_before_failure('$source')");
	ok($made > 0 && $made < 512, "$name: no more is handed out than what was buffered ($made)");
	is($session->query_safe("SELECT made_before_failure('$source')"), 0, "$name: nothing after that");
	is(bytes($session, $source), $fetched, "$name: nothing was fetched");
	$session->query_safe("SELECT $stop");
	check_working($session, $source, "$name: a buffer is filled again afterwards");
	$session->quit;

	# The fault is there when the source is first used.  fast_uuid_sources(), which asks
	# all of them, tells of a session like this one what it has drawn before.
	$session = session_of($node, $fault{settings});
	warm_up($session);
	my $alike = session_of($node, $fault{settings});
	warm_up($alike);
	$before = refills($alike);
	$alike->quit;
	$session->query_safe("SELECT $start");
	is(outcome($session, "SELECT $call"), $failed, "$name: at the first use, and at the next")
	  foreach 1 .. 2;
	$session->query_safe("SELECT $stop");
	is(refills($session), $before, "$name: at the first use no source is drawn from");
	check_working($session, $source, "$name: the same session uses it afterwards");
	$session->quit;
	return;
}

1;
