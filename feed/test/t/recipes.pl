# Every SQL example of the pages runs as it is written.  Then those that workers and tools use run
# beside writers that commit late: each row is delivered exactly once, and in order.  Consumers that
# come, retention and partitions are in retention.pl, changes in changes.pl.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Examples;
use Feed;
use FeedWriters;
use Watchdog;

my $node = start_node('recipes', 'max_connections = 80');
$node->safe_psql('postgres', 'CREATE ROLE app');

# These pages go on with the README's table.
my $outbox = table('outbox', 'id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text');
my $monitoring = 'examples/monitoring/README.md';
my %before = ('doc/guide.md' => $outbox, 'doc/servers.md' => $outbox, $monitoring => $outbox . q{
CREATE TABLE consumers (name text PRIMARY KEY, position bigint NOT NULL);
INSERT INTO consumers VALUES ('mail', 3);
INSERT INTO outbox (body) SELECT n FROM generate_series(1, 10) AS n});

# Each page has a database.
sub database_of { return lc($_[0] =~ s/\W/_/gr) }

# A word after ```sql is a version, or an extension or a store, which can be missing here.
my $available = $node->safe_psql('postgres', q{SELECT name FROM pg_available_extensions WHERE name <> 'citus'});
foreach my $page ('README.md', glob('doc/*.md'), $monitoring)
{
	my $sql = join '', map { $_->{sql} } grep {
		$node->pg_version >= $_->{version} && ($_->{extension} eq '' || $available =~ /^$_->{extension}$/m)
	} examples($page) or next;
	my $database = database_of($page);
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION fast_feed') unless $sql =~ /CREATE EXTENSION fast_feed/;
	$node->safe_psql($database, $before{$page}) if $before{$page};

	# In one session, as a reader would type them.
	my ($code, $out, $err) = $node->psql($database, $sql, on_error_stop => 1);
	is($code, 0, "examples of $page") or diag($err);
}

# What monitors: a consumer at 3 of 10 rows, and a writer that holds back its readers, at 11.
{
	my $database = database_of($monitoring);
	my $writer = connect_to($node, 'writer', $database);
	run_in($writer, q{BEGIN; INSERT INTO outbox (body) VALUES ('late')});
	my (undef, $followed, $behind, $holders, $waiters, $left) = map { $_->{sql} } examples($monitoring);
	$holders =~ s/interval '1 min'/interval '0'/ or die $holders;
	my $seen = sub { $node->safe_psql($database, 'SET ROLE monitor; ' . $_[0]) };
	is($seen->($followed), 'outbox|id|f|t', 'monitoring: what is followed');
	is($seen->($behind), 'mail|8|7', '... how far a consumer is behind');
	like($seen->($holders), qr/^outbox_id_seq\|10\|$writer->{pid}\|.*INSERT INTO outbox/, '... who holds it back');
	is($seen->($left), 100, '... how many numbers are left');
	run_in($writer, 'COMMIT');
	$writer->send(q{SELECT fast_feed.wait(fast_feed.wait(0), '1 min')});
	wait_for($node, "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $writer->{pid}");
	like($seen->($waiters), qr/^$writer->{pid}\|writer\|/, '... who waits');
	cancel($node, 'monitoring', $writer, $writer->{pid});
	foreach my $change ('DISABLE TRIGGER fast_feed_follow', 'ENABLE TRIGGER ALL')
	{
		$node->safe_psql($database, "ALTER TABLE outbox $change");
		is($seen->($followed), 'outbox|id|f|f', "... and what $change does");
	}
}

# The one example that has this, and its part.
my @recipes = map { $_->{sql} } examples('doc/recipes.md'), examples('doc/guide.md');

sub recipe
{
	my ($pattern, $part) = @_;
	my @found = grep { /$pattern/ } @recipes;
	is(scalar(@found), 1, "the pages have $pattern");
	return $part ? ($found[0] =~ /($part)/ms)[0] : $found[0];
}

my $worker = recipe(qr/FUNCTION outbox_next/, '.*?(?=^BEGIN;)');
my $by_key = recipe(qr/'index 2'/, '^SELECT .*?(?=;)');
my $withdraw = recipe(qr/CREATE TABLE account/, '^UPDATE .*(?=^COMMIT)');
my $by_xid = recipe(qr/CREATE TABLE letter/, '^SELECT .*?;');
$node->safe_psql('postgres', join "\n", $worker, recipe(qr/PROCEDURE outbox_follow/),
	recipe(qr/CREATE VIEW outbox_feed/),
	(map { recipe(qr/CREATE TABLE $_/, '^CREATE .*?;') } 'account', 'letter'), q{
INSERT INTO account VALUES ('a', 1000000);
INSERT INTO consumers SELECT unnest('{shared,limit,index 0,index 1,index 2,index 3}'::text[]);
CREATE TABLE delivered (n bigserial, id bigint);
CREATE TABLE fails ();
CREATE FUNCTION by_definer() RETURNS void SECURITY DEFINER SET search_path = pg_catalog LANGUAGE sql AS
	$$ INSERT INTO public.outbox (tenant) VALUES ('definer') $$;
CREATE FUNCTION as_app() RETURNS void SET role = app LANGUAGE sql AS 'SELECT by_definer()';
CREATE FUNCTION by_event() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO outbox (tenant) VALUES ('event'); END $$;
CREATE EVENT TRIGGER at_command ON ddl_command_end WHEN TAG IN ('COMMENT') EXECUTE FUNCTION by_event();
CREATE FUNCTION deliver(message outbox) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO delivered (id) VALUES (message.id);
	IF message.id % 10 = 0 AND EXISTS (SELECT FROM fails) THEN RAISE 'provoked'; END IF;
END $$});

# The limit: of the function, and of what calls it.
my $dba = connect_to($node, 'dba');
run_in($dba, 'INSERT INTO outbox (tenant) SELECT n FROM generate_series(1, 200) AS n');
my $position = q{SELECT position FROM consumers WHERE name = 'limit'};
run_in($dba, q{SELECT * FROM outbox_next('limit', 5)});
is(run_in($dba, $position), 5, 'max_rows limits what is passed');
run_in($dba, q{SELECT * FROM outbox_next('limit') LIMIT 5});
is(run_in($dba, $position), 105, '... LIMIT does not');

# An error in what is called ends the procedure, and the rows come again.
my $procedure = connect_to($node, 'procedure');
my $follow = q{CALL outbox_follow('mail', 'deliver')};
run_in($dba, 'INSERT INTO fails DEFAULT VALUES');
refused($procedure, $follow, 'P0001', 'provoked', 'an error ends the procedure');
is(run_in($dba, 'SELECT count(*) FROM delivered'), 0, '... and nothing is delivered');
run_in($dba, 'DELETE FROM fails');
$procedure->send($follow);

# With its number drawn before the lock, the later change has the smaller number.
my ($early, $other) = map { connect_to($node, $_) } 'early', 'other';
my $insert = q{INSERT INTO outbox (tenant, body) SELECT 'a', to_jsonb(balance) FROM account RETURNING id};
$withdraw =~ s/^INSERT.*?(?=;)/$insert/ms or die $withdraw;
$withdraw =~ s/ +--.*//;
run_in($early, q{BEGIN; SELECT fast_feed.next('outbox_id_seq')});
my $number = run_in($early, q{SELECT currval('outbox_id_seq')});
cmp_ok(run_in($other, "BEGIN; $withdraw COMMIT"), '>', $number, 'a number drawn before the lock is smaller');
cmp_ok(run_in($early, "$withdraw ROLLBACK"), '>', $number + 1, '... than one that is drawn after it');

# Beside writers
sub padded
{
	return join "\n", map { sprintf '%019d', $_ } split /\n/, $_[0];
}

my $load = FeedWriters->new_load;
my @statements = (
	q{INSERT INTO outbox (tenant) VALUES ('t' || trunc(40 * random()))},
	q{INSERT INTO outbox (tenant, body) SELECT 't' || n % 7, '{}' FROM generate_series(1, 20) AS n},
	in_savepoints(q{INSERT INTO outbox (tenant) VALUES ('savepoint')}), 'SELECT as_app()',
	q{INSERT INTO letter (body) SELECT 'x' FROM generate_series(1, 5)});
$load->writer("writer $_", $node, sub { write_transaction($_[0], "$$ $_[1]", @statements) }) foreach 1 .. 5;
$load->writer("account $_", $node, sub {
	run_in($_[0], "BEGIN; COMMENT ON TABLE fails IS ''; $withdraw");
	pause(5);
	run_in($_[0], 'COMMIT');
}) foreach 1 .. 3;

# Two workers of one name.  Until they are told to stop, some of their transactions are lost.
foreach my $name ('shared 1', 'shared 2')
{
	$load->reader($name, $node, sub {
		my ($session) = @_;
		my $rows = run_in($session, q{BEGIN; SELECT * FROM outbox_next('shared')});
		pause(10);
		my $lost = rand() < 0.2 && !-e $load->file('stop');
		run_in($session, $lost ? 'ROLLBACK' : 'COMMIT');
		return $lost ? '' : padded($rows);
	}, from => 0);
}

# Workers by key: until their position stands still, as what they read can be of others.
foreach my $number (0 .. 3)
{
	my $next = $by_key =~ s/'index 2'/'index $number'/r =~ s/= 2$/= $number/r;
	$load->reader("index $number", $node, sub {
		my ($session) = @_;
		my $before = '';
		my $rows = '';
		my $at = "SELECT position FROM consumers WHERE name = 'index $number'";
		until ((my $now = run_in($session, $at)) eq $before)
		{
			$before = $now;
			$rows .= run_in($session, "SELECT lpad(id::text, 19, '0') || ' ' || tenant FROM ($next) AS n") . "\n";
		}
		return $rows =~ s/\A\n+|\n+\z//gr =~ s/\n+/\n/gr;
	}, from => 0);
}

# What tools send; dlt and Singer, which read the latest row again, drop it.  dlt remembers the
# greatest number of rows in any order.
my %tools = (
	'Kafka Connect' => 'SELECT * FROM "public"."outbox_feed" WHERE "public"."outbox_feed"."id" > $1'
	  . ' ORDER BY "public"."outbox_feed"."id" ASC',
	'Airbyte' => 'SELECT "id","tenant","body" FROM "public"."outbox_feed" WHERE "id" > $1 ORDER BY "id" ASC',
	'Singer' => 'SELECT "id", "tenant" FROM "public"."outbox_feed" WHERE "id" >= \'$1\'::bigint ORDER BY "id" ASC',
	'dlt' => 'SELECT outbox_feed.id, outbox_feed.tenant FROM outbox_feed WHERE outbox_feed.id >= $1');
foreach my $tool (sort keys %tools)
{
	$load->reader($tool, $node, sub {
		my ($session, $last) = @_;
		my $rows = padded(run_in($session, $tools{$tool} =~ s/\$1/$last/r));
		$rows = join "\n", sort split /\n/, $rows if $tool eq 'dlt';
		return $rows =~ s/\A$last(?:\n|\z)//r;
	}, from => '0' x 19);
}
$load->reader('Logstash', $node, sub {
	my ($session, $last) = @_;
	my $statement = "SELECT * FROM outbox_feed WHERE id > $last ORDER BY id";
	my @all;
	while ((my $rows = run_in($session, "SELECT * FROM ($statement) AS t1 LIMIT 100 OFFSET " . @all)) ne '')
	{
		push @all, split /\n/, $rows;
	}
	return padded(join "\n", @all);
}, from => 0);
$load->reader('naive', $node, sub {
	padded(run_in($_[0], $tools{'Kafka Connect'} =~ s/outbox_feed/outbox/gr =~ s/\$1/$_[1]/r)) }, from => 0);

# By transaction IDs the position has two columns.
$load->reader('xid8', $node, sub {
	my ($session, $last) = @_;
	my ($xid, $id) = map { $_ + 0 } split /-/, $last;
	my $read = $by_xid =~ s/\('0', 0\)/('$xid', $id)/r =~ s/;//r;
	return run_in($session, "SELECT lpad(xid::text, 19, '0') || '-' || lpad(id::text, 19, '0') FROM ($read) AS l");
}, from => '0-0');

# Until there are rows enough, and everybody has read them in many passes.
$load->wait_for_passes($_, 10) foreach 'shared 1', 'shared 2', sort(keys %tools), 'xid8';
wait_until('rows', sub { run_in($dba, 'SELECT count(*) FROM outbox') > 5000 });
$load->end_writers;
finish_prepared($dba) while run_in($dba, 'SELECT count(*) FROM pg_prepared_xacts') > 0;

# Readers without the watermark pass a row of an open transaction, which then commits.
my $row = q{INSERT INTO outbox (tenant) VALUES ('late') RETURNING id};
run_in($early, "BEGIN; $row");
$load->wait_for_reader('naive', padded(run_in($other, $row)));
run_in($early, 'COMMIT');
$load->end_readers;

my $committed = $node->safe_psql('postgres', q{SELECT lpad(id::text, 19, '0') FROM outbox});
$load->check($_, $committed) foreach sort(keys %tools), 'Logstash';
$load->check('naive', $committed, 1);
$load->check('xid8', $node->safe_psql('postgres',
	q{SELECT lpad(xid::text, 19, '0') || '-' || lpad(id::text, 19, '0') FROM letter}));

# What several workers have been given in all.
sub check_shared
{
	my ($name, $rows, @workers) = @_;
	my @seen = map { split /\n+/, $load->seen($_) } @workers;
	is(join("\n", sort @seen), join("\n", sort split /\n/, $rows), "$name: each row exactly once, to one of @workers");
	return;
}
check_shared('two of one name', $committed, 'shared 1', 'shared 2');
check_shared('by key', $node->safe_psql('postgres', q{SELECT lpad(id::text, 19, '0') || ' ' || tenant FROM outbox}),
	map { "index $_" } 0 .. 3);

foreach my $number (0 .. 3)
{
	my @numbers = map { /^(\d+)/ } split /\n+/, $load->seen("index $number");
	is_deeply(\@numbers, [ sort @numbers ], "index $number: in order");
}
my $owners = q{SELECT count(*) FROM %s WHERE %s NOT BETWEEN 0 AND 3};
is($node->safe_psql('postgres', sprintf $owners, 'generate_series(-500, 500) AS n', 'abs(n % 4)'), 0,
	'by key: a negative number belongs to somebody');
cmp_ok($node->safe_psql('postgres', sprintf $owners, 'outbox', 'hashtextextended(tenant, 0) % 4'), '>', 0,
	'... and without abs() there are hashes that do not');

# The procedure goes on until it is cancelled.
wait_for($node, 'SELECT (SELECT array_agg(id ORDER BY n) FROM delivered) = (SELECT array_agg(id ORDER BY id) FROM outbox)');
pass('the procedure has delivered each row once, in order');
cancel($node, 'the procedure', $procedure, $procedure->{pid});

# The balances of the account descend.
is($node->safe_psql('postgres', q{
SELECT count(*) FROM (SELECT (body #>> '{}')::numeric >= lag((body #>> '{}')::numeric) OVER (ORDER BY id) AS ascends
                        FROM outbox WHERE tenant = 'a') AS pairs WHERE ascends}), 0,
	'numbers that are drawn after the lock are in the order of an account\'s changes');

# The view is read by an index condition alone.
my $from = $node->safe_psql('postgres', 'SELECT max(id) FROM outbox');
like($node->safe_psql('postgres', 'SET enable_sort = off; EXPLAIN (COSTS OFF)'
	  . " SELECT * FROM outbox_feed WHERE id > $from ORDER BY id LIMIT 9"),
	qr/\ALimit\n +InitPlan [^\n]*\n +->  Result\n[^\n]*Index Scan [^\n]*\n +Index Cond: \(\(id < [^\n]*id > $from[^\n]*\z/,
	'outbox_feed: an index scan, bounded at both ends, without a filter or a sort');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
