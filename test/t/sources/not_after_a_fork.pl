# Backends never share random bits: the postmaster, whose children would, does not
# generate, and what many of them generate at once is distinct.

use strict;
use warnings;

use Cwd qw(getcwd);
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;
use Watchdog;

my $module = getcwd() . '/test/modules/draw_in_postmaster';
die "$module.so is not built: make test-modules" unless -e "$module.so";

my $node = PostgreSQL::Test::Cluster->new('preloaded');
$node->init;
$node->append_conf('postgresql.conf', qq{
shared_preload_libraries = 'fast_uuid,$module'
log_line_prefix = '%e '
restart_after_crash = on
});

# Errors of the postmaster since it was started.
my $refused = qr/^0A000 ERROR:  cannot generate UUIDs in the postmaster$/m;

sub count_refused
{
	my @refused = slurp_file($node->logfile) =~ /$refused/g;
	return scalar @refused;
}

$node->start;
is(count_refused(), 4, 'at the start the postmaster generates nothing, in four ways');
my $session = RawSession->start($node);
is(kill('KILL', $session->{pid}), 1, 'a backend is killed');
$node->wait_for_log(qr/all server processes terminated/);
wait_until_up($node);
is(count_refused(), 8, 'nor after a crash');

$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
is($node->safe_psql('postgres', 'SELECT sum(bytes) FROM fast_uuid_sources()'),
	'0', 'its children have nothing of it');

# Backends that are at work at the same time
my $backends = 8;
my @sources  = split /\n/,
  $node->safe_psql('postgres', 'SELECT name FROM fast_uuid_sources() WHERE available');
my $per_source = 6000;
$node->safe_psql('postgres', 'CREATE TABLE made (backend int, source text, n int, id uuid)');
my @running;
foreach my $backend (1 .. $backends)
{
	my @command = ('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'));
	push @command, '-c',
	  "INSERT INTO made SELECT $backend, '$_', n, uuidv7_fast('$_')"
	  . " FROM generate_series(1, $per_source) AS n"
	  foreach @sources;
	push @running, IPC::Run::start(\@command, '<', '/dev/null');
}
is(scalar(grep { !IPC::Run::finish($_) } @running), 0, "$backends backends insert UUIDs");

my $made = $backends * $per_source * @sources;
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM made'),
	"$made|$made", 'no UUID twice');

# Of 52 random bits of each UUID two are equal by chance once in 240,000 runs, and two
# pairs once in 10^11; of the few at the beginning once in 10^12.
my $bits = 'right(id::text, 14)';
is( $node->safe_psql('postgres', "SELECT count(*) - count(DISTINCT $bits) FROM made WHERE n <= 3"),
	'0', 'no two backends start with the same random bits');
cmp_ok($node->safe_psql('postgres', "SELECT count(*) - count(DISTINCT $bits) FROM made"),
	'<=', 1, 'no random bits shared between backends later');

$node->stop;
done_testing();
