# A source that is broken before it is first asked: before the library is
# loaded in the session, before the session begins, before the server starts,
# with the library preloaded and not.  However the source is named, the answer
# is an error that names it and the reason, and no other source is drawn from;
# once the fault is lifted it works.

use strict;
use warnings;

use Cwd qw(getcwd);
use Errno qw(EACCES EAGAIN ENOENT EPERM);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Faults;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = start_faulty_node('before', preload => 1);
my ($code, $out, $err) = $node->psql('postgres', 'SELECT getrandom_fault(0)');
if ($code != 0)
{
	$node->stop;
	plan skip_all => "no seccomp filter can be installed here: $err";
}
$node->safe_psql('postgres', qq{CREATE ROLE "role $_" LOGIN SUPERUSER; ALTER ROLE "role $_" SET fast_uuid.source = '$_'})
  foreach sources();
$node->stop;

my $device     = '"/dev/urandom"';
my $not_seeded = "The kernel's random number generator is not seeded yet.";
my $fault_file = $node->basedir . '/fault';
my $missing    = $node->basedir . '/missing';

# Of each source: the faults, and the reason that the error gives.
my %faults = (
	'openssl' => {
		'own rand 2'       => 'RAND_bytes failed: error retrieving entropy.',
		'own rand none'    => 'RAND_bytes failed: unable to fetch drbg.',
		getrandom(EAGAIN)  => $not_seeded,
	},
	'getrandom' => {
		getrandom(EPERM)  => 'getrandom failed: ' . reason(EPERM) . '.',
		getrandom(EAGAIN) => $not_seeded,
	},
	'urandom' => {
		'path /dev/zero'  => "$device is not the kernel's random device.",
		"path $missing"   => "Opening $device failed: " . reason(ENOENT) . '.',
		'open ' . EACCES, => "Opening $device failed: " . reason(EACCES) . '.',
		getrandom(EAGAIN) => $not_seeded,
	},
	'xorshift128+' => { getrandom(EAGAIN) => $not_seeded },
);

sub getrandom
{
	return "getrandom $_[0]";
}

# Bring a fault to all processes that have not looked for one yet; none: lift it.
sub set_fault
{
	my ($fault) = @_;
	unlink $fault_file;
	append_to_file($fault_file, $fault) if defined $fault;
	return;
}

# A session that names the source in one of these ways: in each call, or by
# the setting in the file, of the role, as an option of the connection.
sub session_by
{
	my ($way, $source) = @_;
	local $ENV{PGOPTIONS} = '-c client_min_messages=error -c fast_uuid.buffer_size=0';
	$ENV{PGOPTIONS} .= " -c fast_uuid.source=$source" if $way eq 'option';
	my $session = eval {
		$node->background_psql('postgres',
			on_error_stop => 0,
			extra_params  => $way eq 'role' ? [ '-U', "role $source" ] : []);
	};
	return $session;
}

sub check
{
	my ($name, $way, $source, $fault, $fault_in_session) = @_;
	$name = "$name, $source by $way, $fault";
	my $why     = $faults{$source}{$fault};
	my $failed  = qr/^(0A000|58000)\|[^|]*entropy source "\Q$source\E"[^|]*\|\Q$why\E$/;
	my $with    = $way eq 'argument' ? "'$source'" : '';
	my $and     = $way eq 'argument' ? ", '$source'" : '';
	my $session = session_by($way, $source);

	ok(defined $session, "$name: the session begins") or return;
	$session->query_safe("SELECT inject_fault('$fault'), drop_vdso_state()") if $fault_in_session;
	like(outcome($session, "SELECT uuidv7_fast($with)"), $failed, "$name: a call is an error") foreach 1 .. 2;
	like(outcome($session, "SELECT $_"), $failed, "$name: $_ is an error")
	  foreach "uuidv7_fast_array(3$and)", "count(id) FROM uuidv7_fast_set(3$and) AS id";
	is(outcome($session, 'SELECT sum(refills) FROM fast_uuid_stats()'), 'value 0', "$name: nothing is drawn");

	# All but a seed are lost where the kernel is not ready.
	if ($why ne $not_seeded)
	{
		check_working($session, $_, "$name: $_ works") foreach grep { $_ ne $source } sources();
		like(outcome($session, "SELECT uuidv7_fast($with)"), $failed, "$name: and it is still an error");
	}
	my $others = "SELECT sum(refills) FROM fast_uuid_stats() WHERE name <> '$source'";
	my $drawn  = outcome($session, $others);
	$session->query_safe("SELECT inject_fault('')");
	is(outcome($session, "SELECT count(uuidv7_fast($with)) FROM generate_series(1, 10)"), 'value 10', "$name: once lifted it works");
	is(outcome($session, "SELECT refills FROM fast_uuid_stats() WHERE name = '$source'"), 'value 10', "$name: from that source");
	is(outcome($session, $others), $drawn, "$name: and no other");
	$session->quit;
	return;
}

my $seccomp = getcwd() . '/test/modules/seccomp_getrandom';
my $conf    = $node->basedir . '/before.conf';
$node->append_conf('postgresql.conf', "include '$conf'");

foreach my $preloaded (0, 1)
{
	foreach my $source (sources())
	{
		foreach my $ways ([ 'argument', 'role', 'option' ], ['file'])
		{
			unlink $conf;
			append_to_file($conf, "shared_preload_libraries = '$seccomp" . ($preloaded ? ',fast_uuid' : '') . "'\n");
			append_to_file($conf, "fast_uuid.source = '$source'\n") if $ways->[0] eq 'file';

			my $name   = $preloaded ? 'preloaded' : 'not preloaded';
			my @faults = sort keys %{ $faults{$source} };
			set_fault();
			start_server($node, 1, $fault_file);
			# A kernel that a preloaded library has seen seeded stays so.
			foreach my $fault (grep { !$preloaded || $source eq 'getrandom' || $faults{$source}{$_} ne $not_seeded } @faults)
			{
				check("$name, broken before the first use", $_, $source, $fault, 1) foreach @$ways;
				set_fault($fault);
				check("$name, broken before the session", $_, $source, $fault) foreach @$ways;
				set_fault();
			}
			$node->stop;
			foreach my $fault (@faults)
			{
				set_fault($fault);
				start_server($node, 1, $fault_file);
				check("$name, broken before the server", $_, $source, $fault) foreach @$ways;
				$node->stop;
			}
		}
	}
}

# No fault: a kernel without getrandom in its vDSO.
set_fault('no vdso');
start_server($node, 1, $fault_file);
is( $node->safe_psql('postgres',
		"SELECT count(DISTINCT uuidv7_fast('getrandom')) FROM generate_series(1, 1000); SELECT implementation FROM fast_uuid_sources() WHERE name = 'getrandom'"),
	"1000\nsystem call", 'no getrandom in the vDSO: by a system call');
$node->stop;

unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'the server went on all the time');
done_testing();
