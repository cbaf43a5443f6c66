# Backends never share random bits: the postmaster, whose children would, does not
# generate, and what many of them generate at once is distinct.

use strict;
use warnings;

use Cwd qw(getcwd);
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $backends = 8;
my @sources  = ('openssl', 'getrandom', 'urandom', 'xorshift128+');

# 52 random bits of a value as text.  Among so many draws two are equal by chance once in
# 220,000 runs, and two pairs once in 10^11.
my $draws          = 200_000;
my $tail           = "right(id::text, 14)";
my $chance_allowed = 1;

my $module = getcwd() . '/test/modules/draw_in_postmaster';
BAIL_OUT("$module.so is not built: make test-modules") unless -e "$module.so";

my $node = PostgreSQL::Test::Cluster->new('preloaded');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid,$module'\nlog_line_prefix = '%e '\nrestart_after_crash = on\n");
my $errors = 0;
foreach my $step ('a start', 'a crash')
{
	if ($step eq 'a crash')
	{
		my $session = $node->background_psql('postgres');
		my $pid     = $session->query_safe('SELECT pg_backend_pid()');
		is(kill('KILL', $pid), 1, 'a backend is killed');
		$node->wait_for_log(qr/all server processes terminated/);
		$node->poll_query_until('postgres', 'SELECT true') or BAIL_OUT('the server does not come back');
	}
	else
	{
		$node->start;
	}
	my @errors = (slurp_file($node->logfile) =~ /^0A000 ERROR:  cannot generate (?:UUIDs|feed ids) in the postmaster$/mg);
	is(@errors - $errors, 4 * @sources, "$step: the postmaster draws from no source, for one UUID, of now, a feed or a time, nor for an array");
	$errors = @errors;
}

$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
is($node->safe_psql('postgres', 'SELECT sum(bytes) FROM fast_uuid_sources()'), '0', 'and its children have nothing of it');

# Backends, all at work at the same time.
$node->safe_psql('postgres', 'CREATE TABLE made (backend int, source text, n int, id uuid)');
my $per_source = $draws / $backends / @sources;
my @running    = map {
	my $backend = $_;
	IPC::Run::start(
		[
			'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
			map {
				( '-c',
					"INSERT INTO made SELECT $backend, '$_', n, uuidv7_fast('$_')"
					  . " FROM generate_series(1, $per_source) AS n")
			} @sources
		],
		'<', '/dev/null');
} 1 .. $backends;
is(scalar(grep { !IPC::Run::finish($_) } @running), 0, "$backends backends made their values");

is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM made'),
	"$draws|$draws", 'values of concurrent backends, none twice');
is( $node->safe_psql(
		'postgres',
		"SELECT source, count(DISTINCT $tail) FROM made WHERE n <= 3 GROUP BY source ORDER BY source"),
	join("\n", map { "$_|" . 3 * $backends } sort @sources),
	'no two backends start with the same random bits');
cmp_ok($node->safe_psql('postgres', "SELECT count(*) - count(DISTINCT $tail) FROM made"),
	'<=', $chance_allowed, 'no random bits shared between backends later');
is( $node->safe_psql(
		'postgres', 'SELECT bool_and(id > previous) FROM'
		  . ' (SELECT id, lag(id) OVER (PARTITION BY backend, source ORDER BY n) AS previous FROM made) AS pairs'),
	't', 'each backend generated its UUIDs in ascending order');

$node->stop;
done_testing();
