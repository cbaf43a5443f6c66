# The guard: ids and positions of every origin are inserted in every way, by transactions that
# generate before, after, both or not at all.  What is covered by the transaction passes, all
# else is refused (23514).  That readers get what has passed is in watermark/under_load.pl.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;

my $node = start_feed('guard', '');
my ($session, $other) = map { connect_to($node, $_) } 'inserts', 'other';
my $copied = PostgreSQL::Test::Utils::tempdir() . '/copied';

# Where an id comes from: %f generates one of the feed, %k makes one of a key.
my %origin = (
	'of this transaction' => 'SELECT %f',
	'of a savepoint that is rolled back' => 'SAVEPOINT a; SELECT %f; ROLLBACK TO a',
	'of an earlier transaction' => undef,
	'of another session' => 'SELECT %f',
	'a key' => 'SELECT %k(uuidv7_fast())',
	'of a client' => 'SELECT %k(uuidv7_fast_at(clock_timestamp()))',
	'of the past' => q{SELECT %k(uuidv7_fast(interval '-1 h'))},
	'of the future' => q{SELECT %k(uuidv7_fast(interval '1 h'))},
	'NULL' => 'SELECT NULL');

# How it is inserted: %t is the table, %i the id.
my $new_row = 'DO $$ DECLARE new %t; BEGIN'
  . ' INSERT INTO %t DEFAULT VALUES RETURNING * INTO new; UPDATE %t SET';
my %way = (
	'a row' => 'INSERT INTO %t VALUES (%i)',
	'the second row' => 'INSERT INTO %t VALUES (DEFAULT), (%i)',
	'into a partition' => 'INSERT INTO %t_1 VALUES (%i, 1)',
	'ON CONFLICT' => 'INSERT INTO %t VALUES (%i) ON CONFLICT (id, part) DO UPDATE SET part = 0',
	'by MERGE' => 'MERGE INTO %t AS t USING (SELECT %i AS id) AS s ON t.id = s.id'
	  . ' WHEN NOT MATCHED THEN INSERT VALUES (s.id)',
	'by COPY' => "COPY %t (id) FROM '$copied' WITH (NULL '')",
	'by UPDATE' => "$new_row id = %i WHERE id = new.id; END \$\$");

# Without an id in the statement, and what comes of it.
my %by_default = (
	'INSERT INTO %t DEFAULT VALUES' => 'passes',
	'INSERT INTO %t (old) SELECT false FROM generate_series(1, 20)' => 'passes',
	"COPY %t (part) FROM '$copied'" => 'passes',
	'INSERT INTO %t (part) VALUES (1)' => 'passes',
	'INSERT INTO %t_1 (part) VALUES (1)' => 'refused',
	'UPDATE %t SET id = id WHERE old' => 'passes',
	'UPDATE %t SET part = 1 - part WHERE old' => 'refused',
	"$new_row part = 1 WHERE id = new.id; END \$\$" => 'passes');

# "either": the time of a key can lie between those of two feed ids, or not.
sub expected
{
	my ($origin, $before, $after) = @_;
	return 'passes' if $origin =~ /this transaction|savepoint/;
	return 'refused' if $origin =~ /earlier|past|future|NULL/ || !$before && !$after;
	return $before && $after ? 'passes' : 'refused' if $origin eq 'of another session';
	return $origin eq 'of a client' || $after ? 'either' : 'refused';
}

sub check_outcome
{
	my ($name, $expected, $statement) = @_;
	my $outcome = $session->outcome($statement);
	$outcome = 'passes' if $outcome =~ /^value/;
	$outcome = 'refused' if $outcome eq '23514';
	return ok($outcome =~ /passes|refused/, "$name: $outcome") if $expected eq 'either';
	return is($outcome, $expected, $name);
}

sub check_table
{
	my ($table, $type, $feed, $key) = @_;
	$node->safe_psql('postgres', qq{
CREATE TABLE $table (id $type DEFAULT $feed, part int DEFAULT 0, old bool, PRIMARY KEY (id, part))
	PARTITION BY LIST (part);
CREATE TABLE ${table}_0 PARTITION OF $table FOR VALUES IN (0);
CREATE TABLE ${table}_1 PARTITION OF $table FOR VALUES IN (1);
ALTER TABLE ${table}_1 ALTER id SET DEFAULT $key(uuidv7_fast());
${\ guard($table)};
INSERT INTO $table (old) VALUES (true)});

	unlink $copied;
	append_to_file($copied, "0\n");
	foreach my $statement (sort keys %by_default)
	{
		run_in($session, 'BEGIN');
		check_outcome($statement, $by_default{$statement}, $statement =~ s/%t/$table/gr);
		run_in($session, 'ROLLBACK');
	}
	foreach my $origin (sort keys %origin)
	{
		foreach my $way (sort keys %way)
		{
			foreach my $generates ('nothing', 'before', 'after', 'before and after')
			{
				my $id = run_in($session, "SELECT $feed");
				run_in($session, 'BEGIN');
				run_in($session, "SELECT $feed") if $generates =~ /before/;
				my $from = $origin eq 'of another session' ? $other : $session;
				my $makes = ($origin{$origin} // "SELECT '$id'") =~ s/%f/$feed/r =~ s/%k/$key/r;
				$id = run_in($from, $makes) =~ s/\n//gr;
				run_in($session, "SELECT $feed") if $generates =~ /after/;

				unlink $copied;
				append_to_file($copied, "$id\n");
				my $value = ($id eq '' ? 'NULL' : "'$id'") . "::$type";
				my $after = $generates =~ /after/ || $way{$way} =~ /DEFAULT/;
				check_outcome("$table: $origin, $way, generates $generates",
					expected($origin, $generates =~ /before/, $after),
					$way{$way} =~ s/%t/$table/gr =~ s/%i/$value/r);
				run_in($session, 'ROLLBACK');
			}
		}
	}
	return;
}

chmod 0755, $copied =~ s{/copied}{}r;
run_in($session, 'SET client_min_messages = error');
check_table('outbox', 'uuid', 'uuidv7_feed_id()', '');
check_table('event', 'bigint', 'uuidv7_feed_position()', 'uuidv7_fast_ns');

# What a session reserves and is not given is not covered: between two calls that fail, and
# below the upper bound that its first id is beyond.
my $position = 'SELECT uuidv7_feed_position()';
run_in($other, 'ALTER SEQUENCE fast_uuid_upper_bound SET UNLOGGED');
$session = connect_to($node, 'fails');
run_in($session, 'BEGIN; SAVEPOINT a');
is($session->outcome($position), '55000', 'a position fails');
my $key = run_in($session, 'ROLLBACK TO a; SELECT uuidv7_fast_ns(uuidv7_fast())');
is($session->outcome($position), '55000', 'another one fails');
run_in($session, 'ROLLBACK TO a');
is($session->outcome("INSERT INTO event (id) VALUES ($key)"), '23514', 'in between is refused');
run_in($session, 'ROLLBACK');
run_in($other, 'ALTER SEQUENCE fast_uuid_upper_bound SET LOGGED');

my $bound = 1000 * run_in($other, q{SELECT setval('fast_uuid_upper_bound',
	(extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 4000000)});
run_in($session, 'BEGIN');
my $beyond = run_in($session, $position);
cmp_ok($beyond, '>', $bound, 'a position is beyond an upper bound of four seconds ahead');
my ($id, $number) =
  map { run_in($other, "SELECT $_()") } 'uuidv7_feed_watermark', 'uuidv7_feed_position_watermark';
foreach my $value ("outbox (id) VALUES ('$id')", "event (id) VALUES ($number)",
	"event (id) VALUES ($beyond), ($bound - 2000000000)")
{
	run_in($session, 'SAVEPOINT a');
	is($session->outcome("INSERT INTO $value"), '23514', "refused, as it is below that: $value");
	run_in($session, 'ROLLBACK TO a');
}
$node->stop;
done_testing();
