# Settings hold through every door: however they were made, for each function, with
# the source left out, NULL or named, by cursor, by default, in a function or a
# prepared statement.  The source is drawn from that was chosen, without a buffer; the
# order is that of the instance; and the limit on the lead is kept.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('doors');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\ninclude_if_exists 'more.conf'\n");
my $clock = KnownClock->new($node);
my $ms    = 1_000_000;
my $now   = 1_800_000_000_000_000_000;
$clock->put($now);

my %settings = (source => 'urandom', buffer_size => '0', ordering => 'instance', max_clock_lead => '5ms');
my $in_function = join ' ', map { "SET fast_uuid.$_ = '$settings{$_}'" } sort keys %settings;
$node->safe_psql(
	'postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE TABLE item (n int, id uuid DEFAULT uuidv7_fast());
CREATE TABLE filled (n int, id uuid);
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := uuidv7_fast(); RETURN NEW; END';
CREATE TRIGGER fill BEFORE INSERT ON filled FOR EACH ROW EXECUTE FUNCTION fill();
CREATE VIEW made AS SELECT uuidv7_fast() AS id FROM generate_series(1, 2);
CREATE FUNCTION by_sql() RETURNS uuid LANGUAGE sql RETURN uuidv7_fast();
CREATE FUNCTION by_plpgsql() RETURNS uuid LANGUAGE plpgsql AS 'BEGIN RETURN uuidv7_fast(); END';
CREATE FUNCTION by_default() RETURNS SETOF uuid LANGUAGE sql AS
	'INSERT INTO item (n) VALUES (1), (2) RETURNING id';
CREATE FUNCTION by_trigger() RETURNS SETOF uuid LANGUAGE sql AS
	'INSERT INTO filled (n) VALUES (1), (2) RETURNING id';
CREATE FUNCTION by_cursor(query text) RETURNS SETOF uuid LANGUAGE plpgsql AS \$\$
DECLARE
	c refcursor;
	id uuid;
BEGIN
	OPEN c FOR EXECUTE query;
	FOR i IN 1..2 LOOP
		FETCH c INTO id;
		RETURN NEXT id;
	END LOOP;
END \$\$;
CREATE FUNCTION in_function(query text) RETURNS SETOF uuid LANGUAGE plpgsql $in_function AS
	'BEGIN RETURN QUERY EXECUTE query; END';
CREATE ROLE by_role LOGIN SUPERUSER;
CREATE ROLE by_role_in_database LOGIN SUPERUSER;
});
my $user = $node->safe_psql('postgres', 'SELECT current_user');
$node->safe_psql('postgres', 'CREATE DATABASE by_database TEMPLATE postgres');

# Each generates two UUIDs.
my $two   = 'FROM generate_series(1, 2)';
my @doors = (
	"SELECT uuidv7_fast() $two",
	"SELECT uuidv7_fast(NULL) $two",
	"SELECT uuidv7_fast(source => NULL) $two",
	"SELECT uuidv7_fast(interval '0') $two",
	"SELECT uuidv7_fast(interval '0', NULL) $two",
	"SELECT uuidv7_fast(source => NULL, shift => interval '0') $two",
	'SELECT unnest(uuidv7_fast_array(2))',
	'SELECT unnest(uuidv7_fast_array(2, NULL))',
	'SELECT unnest(uuidv7_fast_array(source => NULL, count => 2))',
	'SELECT uuidv7_fast_set(2)',
	'SELECT * FROM uuidv7_fast_set(2, NULL)',
	'SELECT id FROM uuidv7_fast_set(source => NULL, count => 2) AS id',
	'SELECT id FROM made',
	'SELECT by_sql() UNION ALL SELECT by_sql()',
	'SELECT by_plpgsql() UNION ALL SELECT by_plpgsql()',
	'SELECT by_default()',
	'SELECT by_trigger()',
	"SELECT by_cursor('SELECT uuidv7_fast_set(9)')",
	"SELECT by_cursor('SELECT uuidv7_fast() FROM generate_series(1, 9)')",
	"SELECT by_cursor('SELECT uuidv7_fast(interval \$\$0\$\$) FROM generate_series(1, 9)')");

# Of a given time: no order, and no limit.
my @given = (
	"SELECT uuidv7_fast_at(now()) $two",
	"SELECT uuidv7_fast_at(now(), NULL) $two",
	"SELECT uuidv7_fast_at(source => NULL, ts => now()) $two");

sub connected
{
	my (%parameters) = @_;
	return RawSession->connect($node, user => $user, database => 'postgres', %parameters);
}

# Ways to make the settings: a session that has them, and how a statement is run in it.
my $plain = sub { return $_[0] };

sub altered
{
	my ($object) = @_;
	$node->safe_psql('postgres', "ALTER $object SET fast_uuid.$_ = '$settings{$_}'") foreach sort keys %settings;
	return;
}
my %ways = (
	'SET' => sub {
		my $session = connected();
		$session->query("SET fast_uuid.$_ = '$settings{$_}'") foreach sort keys %settings;
		return ($session, $plain);
	},
	'SET LOCAL' => sub {
		my $set = join '', map { "SET LOCAL fast_uuid.$_ = '$settings{$_}';" } sort keys %settings;
		return (connected(), sub { return "BEGIN; $set $_[0]; COMMIT" });
	},
	'a function' => sub {
		return (connected(), sub { return 'SELECT in_function(' . "'" . $_[0] =~ s/'/''/gr . "')" });
	},
	'a prepared statement' => sub {
		my $session = connected(options => join ' ', map { "-c fast_uuid.$_=$settings{$_}" } sort keys %settings);
		return ($session, sub { return "PREPARE p AS $_[0]; EXECUTE p; DEALLOCATE p" });
	},
	'a cursor that is held' => sub {
		my $session = connected(options => join ' ', map { "-c fast_uuid.$_=$settings{$_}" } sort keys %settings);
		return ($session, sub { return "DECLARE h CURSOR WITH HOLD FOR $_[0]; FETCH ALL FROM h; CLOSE h" });
	},
	'the connection' => sub { return (connected(map { ("fast_uuid.$_" => $settings{$_}) } keys %settings), $plain) },
	'the role'       => sub { altered('ROLE by_role'); return (connected(user => 'by_role'), $plain) },
	'the database'   => sub { altered('DATABASE by_database'); return (connected(database => 'by_database'), $plain) },
	'the role in the database' => sub {
		altered('ROLE by_role_in_database IN DATABASE postgres');
		return (connected(user => 'by_role_in_database'), $plain);
	},
	# The last one: it holds for all.
	'~ the file' => sub {
		append_to_file($node->data_dir . '/more.conf', join '', map { "fast_uuid.$_ = '$settings{$_}'\n" } sort keys %settings);
		$node->reload;
		$node->poll_query_until('postgres', "SELECT current_setting('fast_uuid.source') = 'urandom'") or BAIL_OUT('the file is not read');
		return (connected(), $plain);
	});

# The other session of the instance.
my $other = connected();
$other->query("SET fast_uuid.ordering = 'instance'");
my $drawn = "SELECT string_agg(name || ' ' || refills, ', ') FROM fast_uuid_stats() WHERE refills > 0";

foreach my $way (sort keys %ways)
{
	my ($session, $wrapped) = $ways{$way}->();
	is($session->{error}, '', "by $way: a session");
	my $made = 0;
	foreach my $door (@doors, @given)
	{
		my $statement = $wrapped->($door);
		$now += 100 * $ms;

		# A session that was 3 ms ahead of the clock is followed, though that is behind.
		$clock->put($now + 3 * $ms);
		my $latest = $other->query('SELECT uuidv7_fast()');
		$clock->put($now);
		my @ids = split /\n/, $session->query($statement);
		is($session->{error} . @ids, 2, "by $way: $door: two UUIDs");
		is(scalar(grep { $_ gt $latest } @ids), 2, "by $way: $door: beyond those of the instance") unless $door =~ /_at\(/;
		$made += 2;
		is($session->query($drawn), "urandom $made", "by $way: $door: each fetched from the chosen source, alone");

		# Beyond the limit there is none.
		next if $door =~ /_at\(/;
		$clock->put($now + 50 * $ms);
		$other->query('SELECT uuidv7_fast()');
		$clock->put($now + 40 * $ms);
		is($session->outcome($statement), '55000', "by $way: $door: not beyond the limit");
		$session->query('ROLLBACK; DEALLOCATE ALL; CLOSE ALL');
		my ($refills) = $session->query($drawn) =~ /^urandom (\d+)$/;
		cmp_ok(($refills // 0) - $made, '<=', 2, "by $way: $door: nor from another source");
		$made = $refills;
	}
	$session->quit;
}

$other->quit;
$node->stop;
done_testing();
