# Prepared transactions, of which the server keeps the locks: each holds back the watermark until
# it has ended, in whatever order they end, and none after it.  What a watermark knows of the
# locks from the one before is right for the next.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Examples;
use Feed;
use FeedWriters;
use RawSession;

my $node = start_node('prepared');
$node->safe_psql('postgres', table('t') . table('u'));
my ($writer, $reader, $other) = map { RawSession->start($node) } 1 .. 3;

# The last number before those of each that is prepared, and what readers must be told.
my %open;

sub prepare
{
	my ($name, @statements) = @_;
	$open{$name} = $other->query_safe('SELECT last_value FROM t_id_seq');
	$writer->query_safe($_) foreach 'BEGIN', @statements, "PREPARE TRANSACTION '$name'";
	return;
}

sub check
{
	my ($name) = @_;
	my $last = $other->query_safe('SELECT last_value FROM t_id_seq');
	my ($least) = sort { $a <=> $b } $last, values %open;
	is_deeply([ map { $_->query_safe("SELECT fast_feed.watermark('t')") } $reader, $reader, $other ],
		[ ($least + 1) x 3 ], $name);
	is($reader->query_safe(q{SELECT string_agg(gid, ' ' ORDER BY gid) FROM fast_feed.holders() WHERE sequence = 't_id_seq'::regclass}),
		join(' ', sort keys %open), "$name: holders()");
	return;
}

sub end
{
	my ($name, $how) = @_;
	delete $open{$name};
	$other->query_safe("$how PREPARED '$name'");
	return;
}

# Three of them, in each order, also where a further one comes in between.  The second and the
# third hold back the same numbers.
my $insert = "INSERT INTO t (way) VALUES ('x')";
$other->query_safe($insert);
my $ways = 0;
foreach my $order (map { [ split // ] } qw(abc acb bac bca cab cba))
{
	foreach my $with_another (0, 1)
	{
		my $name = "ended in the order @$order" . ($with_another ? ', and another one' : '');
		prepare('a', $insert, 'INSERT INTO u (way) VALUES (NULL)', $insert);
		check("$name: one");
		prepare('b', 'INSERT INTO t (way) SELECT NULL WHERE false');
		prepare('c', $insert);
		check("$name: three");
		foreach my $which (@$order)
		{
			end($which, $ways++ % 3 ? 'COMMIT' : 'ROLLBACK');
			prepare("d$which", $insert) if $with_another;
			check("$name: $which has ended");
		}
		end($_, 'COMMIT') foreach sort keys %open;
		check("$name: all have ended");
	}
}

# A lock that is no prepared transaction's yet, as of an eighth sequence: its own session, too,
# is told what holds it back.
$node->safe_psql('postgres', table("many_$_")) foreach 1 .. 8;
$writer->query_safe('BEGIN');
$writer->query_safe("INSERT INTO many_$_ (way) VALUES ('x')") foreach 1 .. 8;
$writer->query_safe('SAVEPOINT a');
$writer->query_safe($insert);
my $last = $other->query_safe('SELECT last_value FROM t_id_seq');
is($_->query_safe("SELECT fast_feed.watermark('t')"), $last, 'a lock of an open transaction') foreach $writer, $reader, $writer, $reader;
$writer->query_safe('ROLLBACK');
check('rolled back');

# The guide's alerts, of nothing and of what is old enough; and of another sequence and database.
my ($alerts) = map { $_->{sql} } grep { $_->{sql} =~ /holders/ } examples('doc/operations.md');
my @alerts = map { s/\d+ min/0 min/r } split /\n/, $alerts;
is(scalar(@alerts), 2, 'the guide has two alerts');
is($other->query_safe($_), '', "nothing: $_") foreach @alerts;
prepare('a', $insert);
isnt($other->query_safe($_), '', "a prepared transaction: $_") foreach @alerts;
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql('elsewhere', 'CREATE EXTENSION fast_feed; ' . table('t') . $insert);
is($node->safe_psql('elsewhere', "SELECT fast_feed.watermark('t')"), 2, 'another database is not held back');
is($reader->query_safe("SELECT fast_feed.watermark('u')"), $other->query_safe('SELECT last_value + 1 FROM u_id_seq'),
	'nor is another sequence');
end('a', 'COMMIT');
check('all have ended');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
