# Order and uniqueness when the server's clock steps backwards by an hour while
# sessions are at work, and returned.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;

require_fake_clock();

my $node = PostgreSQL::Test::Cluster->new('faketime');
$node->init;
start_with_fake_clock($node);

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
set_clock_offset($node, '-3600');
make('living', 'stepped backwards');
make('new 2',  'stepped backwards');
set_clock_offset($node, '+0');
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
	q{SELECT max(at) FILTER (WHERE step = 'stepped backwards') < min(at) FILTER (WHERE step = 'before') - interval '50 min'
	    FROM made}, 'the clock stepped backwards by about an hour');
is_true(
	q{SELECT bool_and(id > previous) FROM
	    (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY n) AS previous FROM made) AS pairs},
	'order is strict in every session');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM made'),
	'480000|480000', 'no value twice');
is_true(
	q{SELECT bool_and(embedded(id) BETWEEN last AND last + interval '1 s') FROM made,
	    (SELECT max(embedded(id)) AS last FROM made WHERE session = 'living' AND step = 'before') AS latest
	   WHERE session = 'living' AND step = 'stepped backwards'},
	'a living session goes on from its latest value while the clock is behind');
is_true(
	q{SELECT bool_and(abs(extract(epoch FROM embedded(id) - at)) < 60) FROM made
	   WHERE session <> 'living' OR step = 'returned'},
	'new sessions, and the living one after the return, embed the time of the clock');

$node->stop;
done_testing();
