# A bigint key and its foreign key are replaced as doc/guide.md has it, beside eight
# sessions that write all the time: no writer gets an error, and each line keeps its order.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FeedWriters;
use Watchdog;

# Of the application before the swap and after it: the names of columns are the same.
my $any   = 'FROM orders OFFSET floor(random() * 100) LIMIT 1';
my %write = (
	'single statements' => sub {
		my ($session) = @_;
		my @statements = (
			'INSERT INTO orders DEFAULT VALUES',
			"WITH o AS (INSERT INTO orders DEFAULT VALUES RETURNING id) INSERT INTO order_line (order_id, article) SELECT id, 'saw' FROM o",
			"INSERT INTO order_line (order_id, article) SELECT id, 'nail' $any",
			"UPDATE order_line SET article = 'file' WHERE order_id = (SELECT id $any)",
			"UPDATE order_line SET order_id = order_id WHERE order_id = (SELECT id $any)",
			'UPDATE orders SET created_at = now() WHERE id = (SELECT id FROM orders LIMIT 1)');
		run_in($session, $statements[ rand @statements ]);
	},
	'transactions' => sub {
		my ($session) = @_;
		run_in($session, 'BEGIN');
		my $order = run_in($session, 'INSERT INTO orders DEFAULT VALUES RETURNING id');
		run_in($session, "INSERT INTO order_line (order_id, article) VALUES ('$order', 'screw')") foreach 0 .. rand 3;
		run_in($session, 'COMMIT');
	});

my ($text) = map { $_->{sql} } grep { $_->{sql} =~ /-- 4\. The swap/ } examples('doc/guide.md');
my ($first, @steps) = split /^-- \d\. .*\n/m, $text;
is(scalar(@steps), 5, 'the page has five steps');
my ($make, $validate) = $steps[2] =~ /^(.*?)(^ALTER TABLE \w+ VALIDATE .*)/ms;

my $node = PostgreSQL::Test::Cluster->new('key_swap');
$node->init;
$node->start;

# What the page says of statements that were prepared before.
$node->safe_psql('postgres', "CREATE EXTENSION fast_uuid;\n$first");
my ($code, $out, $err) = $node->psql('postgres', join("\n", 'PREPARE orders AS SELECT id FROM orders;', @steps[ 0 .. 3 ], 'EXECUTE orders;'));
like($err, qr/^\S+ ERROR:  cached plan must not change result type$/m, 'a statement that was prepared before the swap');

# What went wrong, if anything.
sub attempt
{
	my ($sql) = @_;
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", on_error_stop => 1);
	return $code ? $err : '';
}

foreach my $writers (sort keys %write)
{
	$node->safe_psql('postgres', qq{
DROP TABLE IF EXISTS order_line, orders; DROP FUNCTION IF EXISTS order_line_uid; CREATE EXTENSION IF NOT EXISTS fast_uuid;
$first
INSERT INTO orders (created_at) SELECT now() - n * interval '1 minute' FROM generate_series(1, 25000) AS n;
INSERT INTO order_line SELECT id, 'nut' FROM orders});
	my $stop = PostgreSQL::Test::Utils::tempdir() . '/stop';
	my $rows = sub { $node->safe_psql('postgres', 'SELECT count(*) FROM orders') };
	my @running = map { my $name = "writer $_"; in_background($name, sub {
		my $session = connect_to($node, $name);
		$write{$writers}->($session) until -e $stop;
	}) } 1 .. 8;

	is(attempt($steps[0]), '', "beside $writers: new columns");
	is(attempt($steps[1]), '', "beside $writers: old rows");
	is(attempt($make), '', "beside $writers: indexes and constraints");
	my $error;
	attempt($steps[1]) while ($error = attempt($validate)) =~ / 23514: /;
	is($error, '', "beside $writers: valid");
	my $tries = 1;
	$tries++ while ($error = attempt($steps[3])) =~ / 55P03: /;
	is($error, '', "beside $writers: swapped");
	note "in attempt number $tries";
	my $before = $rows->();
	wait_until('the writers go on', sub { $rows->() > $before + 1000 });
	is($node->safe_psql('postgres', 'SELECT count(*) FROM order_line LEFT JOIN orders ON id = order_id WHERE id IS NULL OR old_id <> old_order_id'),
		'0', "beside $writers: each line has its order");
	is(attempt($steps[4]), '', "beside $writers: without the numbers");
	append_to_file($stop, '');
	is(join('', map { $_->() } @running), '', "beside $writers: no writer has got an error");
	cmp_ok($node->safe_psql('postgres', 'SELECT count(DISTINCT id) FROM orders'), '>', 26000, "beside $writers: all have a key");
}
$node->stop;
done_testing();
