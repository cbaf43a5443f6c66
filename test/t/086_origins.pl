# Each place where a setting can be made is told apart in the error that a wrong value
# causes.  From the weakest place to the strongest, so that each overrides those
# before it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('origins');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $user = $node->safe_psql('postgres', 'SELECT quote_ident(current_user)');

# Of the connection, and before the call.
my ($option, $before) = ('', '');

sub error
{
	my ($stdout, $stderr);
	local $ENV{PGOPTIONS} = $option;
	$node->psql('postgres', "$before SELECT uuidv7_fast()", stdout => \$stdout, stderr => \$stderr);
	return $stdout . $stderr;
}

sub wrong
{
	my ($number, $place) = @_;
	my $error = error();
	like($error, qr/ERROR:  unrecognized entropy source "wrong_$number"\n/, "$place: that value is in force");
	like($error, qr/\nDETAIL:  "fast_uuid\.source" was set $place\.\n/, "$place: said so");
	return;
}

like(error(), qr/^[0-9a-f-]{36}$/, 'a value, where nothing is wrong');

$node->append_conf('postgresql.conf', "fast_uuid.source = 'wrong_1'\n");
$node->reload;
wrong(1, 'in the configuration file');

$node->stop;
system_or_bail('pg_ctl', '-s', '-w', '-D', $node->data_dir, '-l', $node->logfile, '-o', '-c fast_uuid.source=wrong_2', 'start');
$node->_update_pid(1);
wrong(2, "on the server's command line");

my $number = 2;
foreach my $case (
	[ 'ROLE ALL', 'by ALTER ROLE ALL' ],
	[ 'DATABASE postgres', 'by ALTER DATABASE' ],
	[ "ROLE $user", 'by ALTER ROLE' ],
	[ "ROLE $user IN DATABASE postgres", 'by ALTER ROLE IN DATABASE' ])
{
	my ($what, $place) = @$case;
	$number++;
	$node->safe_psql('postgres', "ALTER $what SET fast_uuid.source = 'wrong_$number'");
	wrong($number, $place);
}

$option = '-c fast_uuid.source=wrong_7';
wrong(7, 'by a connection option');

$before = "SET fast_uuid.source = 'wrong_8';";
wrong(8, 'by SET, in this session or for a function');

$before = "SET fast_uuid.source = 'getrandom';";
like(error(), qr/^[0-9a-f-]{36}$/, 'a value, once it is right');
# A value of the wrong form.
($option, $before) = ('-c fast_uuid.buffer_size=wrong', '');
like(error(), qr/ERROR:  invalid value for parameter "fast_uuid\.buffer_size": "wrong"\nDETAIL:  It was set by a connection option, before fast_uuid was loaded\.\nHINT:  Correct the value there and reconnect\.$/,
	'a number that is none: so is its place');
($option, $before) = ('', "SET fast_uuid.buffer_size = 'wrong';");
like(error(), qr/DETAIL:  It was set by SET, in this session or for a function, before fast_uuid was loaded\.\nHINT:  Use RESET fast_uuid\.buffer_size in a transaction of its own, or correct the function's SET clause\.$/,
	'a number that is none: by SET, with another hint');
$node->stop;
done_testing();
