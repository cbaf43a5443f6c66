# Order and uniqueness when the server's clock is set back by an hour while
# sessions are at work, and returned.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($faketime) = glob('/usr/lib/*/faketime/libfaketime.so.1 /usr/lib*/faketime/libfaketime.so.1');
plan skip_all => 'libfaketime is not installed' unless defined $faketime;

my $node = PostgreSQL::Test::Cluster->new('faketime');
$node->init;

my $offset_file = $node->basedir . '/faketime';

sub set_clock_offset
{
	my ($seconds) = @_;
	# The server must never read a file half written.
	append_to_file("$offset_file.new", "$seconds\n");
	rename("$offset_file.new", $offset_file) or die "could not rename: $!";
	return;
}

set_clock_offset('+0');
{
	local $ENV{LD_PRELOAD}                  = $faketime;
	local $ENV{FAKETIME_TIMESTAMP_FILE}     = $offset_file;
	local $ENV{FAKETIME_NO_CACHE}           = 1;
	local $ENV{FAKETIME_DONT_FAKE_MONOTONIC} = 1;
	$node->start;
}

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE made (n bigserial, session text, step text, id uuid, at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION embedded(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE
  RETURN to_timestamp(('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0);
});

my $living = $node->background_psql('postgres');

sub make
{
	my ($session, $step) = @_;
	my $sql = join ';', map {
		"INSERT INTO made (session, step, id) SELECT '$session', '$step', uuidv7_fast('$_')"
		  . ' FROM generate_series(1, 20000)'
	} ('openssl', 'getrandom', 'urandom', 'xorshift128+');
	if ($session eq 'living')
	{
		$living->query_safe($sql);
	}
	else
	{
		$node->safe_psql('postgres', $sql);
	}
	return;
}

make('living', 'before');
make('new 1',  'before');
set_clock_offset('-3600');
make('living', 'set back');
make('new 2',  'set back');
set_clock_offset('+0');
make('living', 'returned');
make('new 3',  'returned');
$living->quit;

sub is_true
{
	my ($sql, $name) = @_;
	is($node->safe_psql('postgres', $sql), 't', $name);
	return;
}

is_true(
	q{SELECT max(at) FILTER (WHERE step = 'set back') < min(at) FILTER (WHERE step = 'before') - interval '50 min'
	    FROM made}, 'the clock was set back by about an hour');
is_true(
	q{SELECT bool_and(id > previous) FROM
	    (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY n) AS previous FROM made) AS pairs},
	'order is strict in every session');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM made'),
	'480000|480000', 'no value twice');
is_true(
	q{SELECT bool_and(embedded(id) BETWEEN last AND last + interval '1 s') FROM made,
	    (SELECT max(embedded(id)) AS last FROM made WHERE session = 'living' AND step = 'before') AS latest
	   WHERE session = 'living' AND step = 'set back'},
	'a living session goes on from its latest value while the clock is behind');
is_true(
	q{SELECT bool_and(abs(extract(epoch FROM embedded(id) - at)) < 60) FROM made
	   WHERE session <> 'living' OR step = 'returned'},
	'new sessions, and the living one after the return, embed the time of the clock');

$node->stop;
done_testing();
