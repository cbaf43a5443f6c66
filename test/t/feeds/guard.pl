# The guard under load.  Sessions insert ids and positions of every origin into two tables,
# in every way, in random order, some in transactions that are prepared.  What is covered
# by the transaction passes, all else is refused (23514), as a model of it says; what has
# passed is delivered once, in order, to a reader below the watermark.
#
#   TEST_SEED=n    what each session did in an earlier run again (it printed its seed)

use strict;
use warnings;

use List::Util qw(shuffle);
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;
use RandomSeed;

my $writers = 6;
my $dir  = PostgreSQL::Test::Utils::tempdir();
my $stop = "$dir/stop";
chmod 0755, $dir;

my $node = start_feed('guard', "max_connections = 40\nmax_prepared_transactions = 20\nsynchronous_commit = off\nlog_statement = none");

# Of each table its column; what generates for it; a key of it; and its watermark.
my %table = (
	outbox => { type => 'uuid', feed => 'uuidv7_feed_id()', key => '%s', watermark => 'uuidv7_feed_watermark()' },
	event => { type => 'bigint', feed => 'uuidv7_feed_position()', key => 'uuidv7_fast_ns(%s)', watermark => 'uuidv7_feed_position_watermark()' });
foreach my $name (keys %table)
{
	my ($type, $feed, $key) = @{ $table{$name} }{qw(type feed key)};
	$key = sprintf $key, 'uuidv7_fast()';
	$node->safe_psql('postgres', qq{
CREATE TABLE $name (id $type DEFAULT $feed, part int DEFAULT 0, way text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE ${name}_0 PARTITION OF $name FOR VALUES IN (0);
CREATE TABLE ${name}_1 PARTITION OF $name FOR VALUES IN (1);
ALTER TABLE ${name}_1 ALTER id SET DEFAULT $key;
${\ guard($name)}});
}

# The session of a writer, another one, and how often these have generated: of the feed in
# this transaction first and latest.
my ($number, $session, $other, $first, $latest);
my $now = 0;

sub generated
{
	$latest = ++$now;
	$first //= $now;
	return $now;
}

# Where an id comes from: it, and when the feed generated it, or what it is instead.
my %origin = (
	'of this transaction' => sub { (run_in($session, "SELECT $_[0]{feed}"), generated()) },
	'of a savepoint that is rolled back' => sub { (run_in($session, "SAVEPOINT a; SELECT $_[0]{feed}; ROLLBACK TO a"), generated()) },
	'of an earlier transaction' => sub { @{ $_[0]{earlier} } },
	'of another session' => sub { (run_in($other, "SELECT $_[0]{feed}"), ++$now) },
	'a key' => sub { (run_in($session, 'SELECT ' . sprintf($_[0]{key}, 'uuidv7_fast()')), 'a key', ++$now) },
	'of an array' => sub { (run_in($session, 'SELECT ' . sprintf($_[0]{key}, '(uuidv7_fast_array(5))[3]')), 'a key', ++$now) },
	'of a client' => sub { (run_in($other, 'SELECT ' . sprintf($_[0]{key}, 'uuidv7_fast_at(clock_timestamp())')), 'near') },
	'of the past' => sub { (run_in($other, 'SELECT ' . sprintf($_[0]{key}, "uuidv7_fast(interval '-1 h')")), 'far') },
	'of the future' => sub { (run_in($other, 'SELECT ' . sprintf($_[0]{key}, "uuidv7_fast(interval '1 h')")), 'far') },
	'NULL' => sub { ('', 'far') });

# What the guard must say to it.  A key is later than what its session has generated, and can
# be earlier than what it generates next.
sub expected
{
	my ($when, $made) = @_;
	return 'refused' if !defined $first || $when eq 'far' || $when eq 'a key' && $made > $latest;
	return 'either' if $when =~ /near|key/;
	return $first <= $when && $when <= $latest ? 'passes' : 'refused';
}

# How it is inserted; %t stands for the table, %i for the id, %f for a file with it, %n for
# the session.
my $new_row = 'DO $$ DECLARE new %t; BEGIN INSERT INTO %t DEFAULT VALUES RETURNING * INTO new; UPDATE %t SET';
my %insert = (
	'a row' => 'INSERT INTO %t VALUES (%i)',
	'the second row' => 'INSERT INTO %t VALUES (DEFAULT), (%i)',
	'by SELECT' => 'INSERT INTO %t SELECT %i',
	'into a partition' => 'INSERT INTO %t_1 VALUES (%i, 1)',
	'ON CONFLICT' => "INSERT INTO %t VALUES (%i) ON CONFLICT (id, part) DO UPDATE SET way = 'conflict'",
	'by MERGE' => 'MERGE INTO %t AS t USING (SELECT %i AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id)',
	'by COPY' => "COPY %t (id) FROM '%f' WITH (NULL '')",
	'in a block' => 'DO $$ BEGIN INSERT INTO %t VALUES (%i); EXCEPTION WHEN division_by_zero THEN END $$',
	'by UPDATE' => "$new_row id = %i WHERE id = new.id; END \$\$");
my $generates = qr/DEFAULT/;

# Without an id in the statement; and does it generate one?
my %default = (
	'the default' => [ 'INSERT INTO %t DEFAULT VALUES', 'passes', 1 ],
	'many rows' => [ "INSERT INTO %t (way) SELECT 'many' FROM generate_series(1, 20)", 'passes', 1 ],
	'by COPY' => [ "COPY %t (way) FROM '%f'", 'passes', 1 ],
	'another partition' => [ 'INSERT INTO %t (part) VALUES (1)', 'passes', 1 ],
	'a partition with another default' => [ 'INSERT INTO %t_1 (part) VALUES (1)', 'refused' ],
	'UPDATE that leaves it' => [ "UPDATE %t SET id = id WHERE way = 'old %n'", 'passes' ],
	'an old row moves' => [ "UPDATE %t SET part = 1 - part WHERE way = 'old %n'", 'refused' ],
	'a new row moves' => [ "$new_row part = 1 WHERE id = new.id; END \$\$", 'passes', 1 ]);

# Run a statement, and note what came of it.
sub try
{
	my ($name, $expected, $table, $statement, $id) = @_;
	my $file = "$dir/copied $$";
	unlink $file;
	append_to_file($file, "$id\n");
	my %with = (t => $table, n => $number, f => $file, i => ($id eq '' ? 'NULL' : "'$id'") . "::$table{$table}{type}");
	$statement =~ s/%([tfin])/$with{$1}/g;
	run_in($session, 'SAVEPOINT s');
	my $outcome = $session->outcome($statement);
	$outcome = $outcome =~ /^value/ ? 'passes' : $outcome eq '23514' ? 'refused' : $session->{error};
	run_in($session, 'ROLLBACK TO s') if $outcome ne 'passes';
	append_to_file("$dir/tried", "$name, $outcome\n");
	append_to_file("$dir/wrong", "$table, $name: $outcome, not $expected: $statement\n") if $outcome ne $expected && ($expected ne 'either' || $outcome =~ /\d/);
	return;
}

sub write_all
{
	my @to_do = shuffle map { my $table = $_; (map { [ $table, $_ ] } sort keys %default),
		map { my $origin = $_; map { [ $table, $_, $origin ] } sort keys %insert } sort keys %origin } sort keys %table;
	($session, $other) = map { connect_to($node, "writer $number") } 1, 2;
	run_in($session, 'SET client_min_messages = error');
	while (@to_do)
	{
		($first, $latest) = ();
		$_->{earlier} = [ run_in($session, "SELECT $_->{feed}"), ++$now ] foreach values %table;
		run_in($session, 'BEGIN');
		foreach my $do (splice @to_do, 0, 1 + rand 4)
		{
			my ($table, $way, $from) = @$do;
			my ($feed) = $table{$table}{feed};
			pause(5) if rand() < 0.2;
			generated(run_in($session, "SELECT $feed")) if rand() < 0.3;
			if (!defined $from)
			{
				my ($statement, $expected, $has_generated) = @{ $default{$way} };
				try("by default, $way", $expected, $table, $statement, 'copied');
				generated() if $has_generated;
				next;
			}
			my ($id, @when) = $origin{$from}->($table{$table});
			generated(run_in($session, "SELECT $feed")) if rand() < 0.4;
			generated() if $insert{$way} =~ $generates;
			try("$from, $way", expected(@when), $table, $insert{$way}, $id);
		}
		my $end = rand();
		my $gid = "$number $now";
		run_in($session, $end < 0.7 ? 'COMMIT' : $end < 0.8 ? 'ROLLBACK' : "PREPARE TRANSACTION '$gid'");
		next if $end < 0.8;
		pause(20);
		finish_prepared($other, $gid);
	}
	return;
}

# Which an UPDATE moves in vain.
$node->safe_psql('postgres', "INSERT INTO $_ (way) SELECT 'old ' || n FROM generate_series(1, $writers) AS n") foreach keys %table;
my $seed = seed_random();
my @readers = map {
	my ($name, $watermark) = ($_, $table{$_}{watermark});
	my $read = sub { my ($below) = @_; sub { run_in($_[0], "SELECT id FROM $name WHERE id > '" . ($_[1] =~ /-/ && $name eq 'event' ? 0 : $_[1]) . "' $below ORDER BY id") } };
	(follow($node, "reader of $name", "$dir/$name", $stop, $read->("AND id < $watermark")),
		follow($node, "naive reader of $name", "$dir/$name, naively", $stop, $read->('')))
} sort keys %table;
my @sessions = map { my $n = $_; in_background("writer $n", sub { srand($seed + ($number = $n)); write_all() }) } 1 .. $writers;
is(join("\n", map { $_->() } @sessions), '', "$writers sessions have written");
commit_late($node, "$dir/$_, naively", "INSERT INTO $_ DEFAULT VALUES", "INSERT INTO $_ DEFAULT VALUES RETURNING id") foreach sort keys %table;
append_to_file($stop, '');
is(join("\n", map { $_->() } @readers), '', 'the readers have read on to the end');

is(-e "$dir/wrong" ? slurp_file("$dir/wrong") : '', '', 'the guard has let pass what is covered, and nothing else');
my %tried;
$tried{$_}++ foreach split /\n/, slurp_file("$dir/tried");
note "$_: $tried{$_}" foreach sort keys %tried;
my %outcomes = map { s/, .*, /, /r => 1 } keys %tried;
ok($outcomes{"of another session, $_"}, "an id of another session, generated in between or not: $_") foreach 'passes', 'refused';
foreach my $name (sort keys %table)
{
	my %committed = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', "SELECT id FROM $name");
	check_readers(\%committed, $dir, $name => 0, "$name, naively" => 1);
}

# What a session reserves and is not given is not covered: between two calls that fail, and
# below the upper bound that its first id is beyond.
my $dba = connect_to($node, 'dba');
my $key = 'SELECT uuidv7_fast_ns(uuidv7_fast())';
my $insert = 'INSERT INTO event (id) VALUES (%s)';
$session = connect_to($node, 'fails');
run_in($dba, 'ALTER SEQUENCE fast_uuid_upper_bound SET UNLOGGED');
run_in($session, 'BEGIN; SAVEPOINT a');
my @keys = map { is($session->outcome('SELECT uuidv7_feed_position()'), '55000', 'a position fails'); run_in($session, "ROLLBACK TO a; $key") } 1, 2;
is($session->outcome(sprintf $insert, $keys[0]), '23514', '... what lies between two of these is refused');
run_in($session, 'ROLLBACK');
run_in($dba, 'ALTER SEQUENCE fast_uuid_upper_bound SET LOGGED');

my $bound = run_in($dba, "SELECT setval('fast_uuid_upper_bound', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 4000000)");
run_in($session, 'BEGIN');
my $position = run_in($session, 'SELECT uuidv7_feed_position()');
cmp_ok($position, '>', $bound * 1000, 'a position is beyond an upper bound of four seconds ahead');
is($session->outcome(sprintf($insert, $position) . '; SAVEPOINT a; ' . sprintf($insert, $bound * 1000 - 2_000_000_000)), '23514', '... one of two seconds earlier is refused');
run_in($session, 'ROLLBACK');
$_->quit foreach $session, $dba;
$node->stop;
done_testing();
