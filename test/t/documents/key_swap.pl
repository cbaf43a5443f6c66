# A bigint key and its foreign key are replaced as doc/guide.md has it, beside eight
# sessions that write all the time: no writer gets an error, and each line keeps its order.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use Sessions;

my ($page) = grep { /-- 4\. The swap/ } map { $_->{sql} } examples('doc/guide.md');
my ($tables, $columns, $old_rows, $third, $swap, $drop) = split /^-- \d\. .*\n/m, $page;
my ($constraints, $validate) = $third =~ /^(.*?)(^ALTER TABLE \w+ VALIDATE .*)/ms;

# The page's lock_timeout is to be below deadlock_timeout, however late timers are.
my $node = PostgreSQL::Test::Cluster->new('key_swap');
$node->init;
$node->append_conf('postgresql.conf', "deadlock_timeout = '60 s'");
$node->start;

# What an application does before the swap and after it: the columns have the same names.
my $any = 'FROM orders OFFSET floor(random() * 100) LIMIT 1';
my @statements = (
	"WITH o AS (INSERT INTO orders DEFAULT VALUES RETURNING id)
	 INSERT INTO order_line (order_id, article) SELECT id, 'saw' FROM o",
	"INSERT INTO order_line (order_id, article) SELECT id, 'nail' $any",
	"UPDATE order_line SET article = 'file' WHERE order_id = (SELECT id $any)",
	"UPDATE order_line SET order_id = order_id WHERE order_id = (SELECT id $any)",
	'UPDATE orders SET created_at = now() WHERE id = (SELECT id FROM orders LIMIT 1)');

sub write_some
{
	my ($session) = @_;
	run_in($session, $statements[ rand @statements ]);
	run_in($session, 'BEGIN');
	my $id = run_in($session, 'INSERT INTO orders DEFAULT VALUES RETURNING id');
	run_in($session, "INSERT INTO order_line (order_id, article) VALUES ('$id', 'screw')");
	run_in($session, 'COMMIT');
	return;
}

# Runs a step, and returns what went wrong, if anything.
sub run_step
{
	my ($sql) = @_;
	my ($code, $out, $err) =
	  $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", on_error_stop => 1);
	return $code ? $err : '';
}

$node->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid;
$tables
INSERT INTO orders (created_at)
  SELECT now() - n * interval '1 minute' FROM generate_series(1, 25000) AS n;
INSERT INTO order_line SELECT id, 'nut' FROM orders});
my $stop = PostgreSQL::Test::Utils::tempdir() . '/stop';
my @writers = map { in_background($_, sub {
	my $session = connect_to($node, $_);
	write_some($session) until -e $stop;
}) } 1 .. 8;

is(run_step($columns), '', 'new columns');
is(run_step($old_rows), '', 'old rows');
is(run_step($constraints), '', 'indexes and constraints');

# As the page says: if a NULL is found, step 2 again; if there is no lock, later.
my $error;
run_step($old_rows) while ($error = run_step($validate)) =~ / 23514: /;
is($error, '', 'valid');
1 while ($error = run_step($swap)) =~ / 55P03: /;
is($error, '', 'swapped');

my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM orders');
$node->poll_query_until('postgres', "SELECT count(*) > $rows + 1000 FROM orders")
  or die 'the writers have stopped';
is($node->safe_psql('postgres', q{
SELECT count(*) FROM order_line LEFT JOIN orders ON id = order_id
 WHERE id IS NULL OR old_id <> old_order_id}), '0', 'each line has its order');
is(run_step($drop), '', 'without the numbers');
append_to_file($stop, '');
is(join('', map { $_->() } @writers), '', 'no writer has got an error');

$node->stop;
done_testing();
