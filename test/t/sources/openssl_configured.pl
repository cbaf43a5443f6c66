# Under each configuration of OpenSSL, fast_uuid_sources() and the calls say what OpenSSL's
# own program says: whether there are random bytes, or why not; and by which generator of which
# provider.  The other sources work.
#
# In single-user mode, because a server whose OpenSSL has no generator begins no session.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $version = eval { (run_command([ 'openssl', 'version' ]))[0] } // '';
plan skip_all => "needs OpenSSL's program, 3.0 or later" unless $version =~ /^OpenSSL [3-9]/;
my ($library) = $version =~ /\(Library: (.*)\)$/;
my ($modules) = (run_command([ 'openssl', 'version', '-m' ]))[0] =~ /"(.*)"/;
$modules = $ENV{OPENSSL_MODULES} // $modules;

my $node = PostgreSQL::Test::Cluster->new('openssl_says');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my @sources = split /\n/,
  $node->safe_psql('postgres', 'SELECT name FROM fast_uuid_sources() WHERE available');
$node->stop;
plan skip_all => 'this build is without OpenSSL' unless grep { $_ eq 'openssl' } @sources;

# A file with a configuration that activates these providers; its name.
sub configuration
{
	my ($providers, @more) = @_;
	my $file  = $node->basedir . '/openssl' . int(rand 1e9) . '.cnf';
	my @lines = ('openssl_conf = start', '[start]', 'providers = providers');
	push @lines, 'alg_section = algorithms' if grep { $_ eq '[algorithms]' } @more;
	push @lines, 'random = random'          if grep { $_ eq '[random]' } @more;
	push @lines, '[providers]', map { "$_ = ${_}_sect" } @$providers;
	push @lines, "[${_}_sect]", 'activate = 1' foreach grep { $_ ne 'fips' } @$providers;
	append_to_file($file, join("\n", @lines, @more, ''));
	return $file;
}

# "works", or the reason that the program gives last.
sub openssl_says
{
	my ($out, $err);
	IPC::Run::run([ 'openssl', 'rand', '-hex', '8' ], '<', \undef, '>', \$out, '2>', \$err)
	  and return 'works';
	my @reasons = $err =~ /^[0-9A-F:]*:?error:[0-9A-F]*:[^:]*:[^:]*:([^:]*)/mg;
	return $reasons[-1];
}

sub check
{
	my ($name, $file, $expected) = @_;
	my $works = $expected eq 'fails' ? 'fails' : 'works';
	local $ENV{OPENSSL_CONF} = $file;
	my $says = openssl_says();
	is($says eq 'works' ? 'works' : 'fails', $works, "$name: OpenSSL's own word");

	# A server that starts now
	my $statements = "SELECT concat_ws('|', 'said', available, implementation, reason)"
	  . " FROM fast_uuid_sources() WHERE name = 'openssl'\n";
	$statements .= "SELECT '$_ generates' FROM uuidv7_fast('$_')\n" foreach @sources;
	my ($out, $err);
	IPC::Run::run(
		[
			'postgres', '--single', '-D', $node->data_dir, '-c', 'log_error_verbosity=verbose',
			'postgres'
		],
		'<', \$statements, '>', \$out, '2>', \$err);
	my ($said) = $out =~ /"said\|(.*?)"\t\(typeid/s;
	is( $said,
		$works eq 'works' ? "t|$library, $expected" : "f|OpenSSL could not generate random bytes: $says.",
		"$name: fast_uuid_sources() says the same");
	my $error = 'ERROR:  58000: could not get random bytes from entropy source "openssl"';
	$works eq 'works' ? unlike($err, qr/$error/, "$name: no error") : like($err, qr/$error/, $name);
	my @generating = grep { $works eq 'works' || $_ ne 'openssl' } @sources;
	is_deeply([ $out =~ /"(\S+) generates"/g ], \@generating, "$name: the sources that generate");
	return;
}

my $default = 'CTR-DRBG of provider "default"';
my $fips    = 'CTR-DRBG of provider "fips"';
check('no configuration', '/dev/null', $default);
check('default and base', configuration([ 'base', 'default' ]), $default);
check('another generator',
	configuration(['default'], '[random]', 'random = HASH-DRBG', 'digest = SHA2-256'),
	'HASH-DRBG of provider "default"');
check('base alone',       configuration(['base']),              'fails');
check('null',             configuration(['null']),              'fails');

my @fips_required = ('[algorithms]', 'default_properties = fips=yes');
check('fips required, of nobody', configuration(['default'], @fips_required), 'fails');

SKIP:
{
	skip 'there is no provider "fips" here', 1 unless -e "$modules/fips.so";
	my $installed = $node->basedir . '/fips_sect.cnf';
	my @install = ('openssl', 'fipsinstall', '-module', "$modules/fips.so", '-out', $installed);
	my $output;
	skip 'the provider "fips" does not pass its own tests', 1
	  unless IPC::Run::run(\@install, '<', \undef, '>&', \$output);
	my $include = ".include $installed";
	check('fips and base', configuration([ 'base', 'fips' ], $include), $fips);
	check('fips required, default too',
		configuration([ 'default', 'fips' ], $include, @fips_required), $fips);

	# Its file was changed since it was installed.
	append_to_file($installed, "module-mac = 00\n");
	check('a broken fips', configuration([ 'base', 'fips' ], $include), 'fails');
}

done_testing();
