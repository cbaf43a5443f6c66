# Under each configuration of OpenSSL, fast_uuid_sources() and the calls say what
# OpenSSL's own program says: whether there are random bytes, or why not.
#
# In single-user mode, because a server whose OpenSSL has no generator begins no
# session.

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
my $built = $node->safe_psql('postgres', "SELECT implementation LIKE 'OpenSSL %' OR reason NOT LIKE '%without OpenSSL%' FROM fast_uuid_sources() WHERE name = 'openssl'");
$node->stop;
plan skip_all => 'this build is without OpenSSL' unless $built eq 't';

# A file in the temporary folder; its name.
sub file
{
	my ($name, $content) = @_;
	my $file = $node->basedir . "/$name";
	append_to_file($file, $content);
	return $file;
}

# A configuration that activates these providers, with more lines.
sub configuration
{
	my ($name, $providers, $more) = @_;
	$more //= '';
	return file("$name.cnf", join("\n", 'openssl_conf = start', '[start]', 'providers = providers',
			$more =~ /\[generator\]/ ? 'random = generator' : (), $more =~ /\[algorithms\]/ ? 'alg_section = algorithms' : (),
			'[providers]', (map { "$_ = ${_}_sect" } @$providers),
			(map { ("[${_}_sect]", 'activate = 1') } grep { $_ ne 'fips' } @$providers),
			$more, ''));
}

sub program
{
	my ($out, $err);
	IPC::Run::run([ 'openssl', @_ ], '<', \undef, '>', \$out, '2>', \$err);
	return ($? == 0, $out, $err);
}

# The program's word, as we put it; the reason is the last that it gives.
sub openssl_says
{
	my ($works, undef, $err) = program('rand', '-hex', '8');
	return "t|$library|" if $works;
	my @reasons = $err =~ /^[0-9A-F:]*:?error:[0-9A-F]*:[^:]*:[^:]*:([^:]*)/mg;
	return "f||$reasons[-1]";
}

# What a server says that starts now, and the SQLSTATE of a call of each source.
sub server_says
{
	my ($out, $err) = ('', '');
	my $in = join "\n",
	  "SELECT concat('said: ', available, '|', implementation, '|', regexp_replace(reason, '^OpenSSL could not generate random bytes: (.*)\\.\$', '\\1')) FROM fast_uuid_sources() WHERE name = 'openssl'",
	  map { "SELECT concat('$_: ', count(DISTINCT id)) FROM unnest(uuidv7_fast_array(100, '$_')) AS id" } qw(openssl getrandom urandom xorshift128+);
	IPC::Run::run(
		[ 'postgres', '--single', '-D', $node->data_dir, '-c', 'log_error_verbosity=verbose', 'postgres' ],
		'<', \"$in\n", '>', \$out, '2>', \$err);
	my ($said) = $out =~ /"said: (.*?)"\t\(typeid/s;
	my $made = join ' ', $out =~ /"([a-z]\S*: 100)"/g;
	return ($said // $err, $made, $err);
}

my $others = 'getrandom: 100 urandom: 100 xorshift128+: 100';

sub check
{
	my ($name, $file, $works) = @_;
	local $ENV{OPENSSL_CONF} = $file;
	my $own = openssl_says();
	my ($said, $made, $err) = server_says();
	is($own =~ /^t/ ? 'works' : 'fails', $works, "$name: OpenSSL's own word");
	is($said, $own, "$name: ours is the same");
	is($made, ($own =~ /^t/ ? 'openssl: 100 ' : '') . $others, "$name: by which there are values, or none");
	like($err, qr/ERROR:  58000: could not get random bytes from entropy source "openssl"/, "$name: but an error") if $own =~ /^f/;
	return;
}

check('no configuration',    '/dev/null',                                                  'works');
check('default, activated',  configuration('default', ['default']),                        'works');
check('default and base',    configuration('base_too', [ 'base', 'default' ]),             'works');
check('base alone',          configuration('base', ['base']),                              'fails');
check('null',                configuration('null', ['null']),                              'fails');
check('another generator',   configuration('hmac', ['default'], "[generator]\nrandom = HMAC-DRBG\nmac = HMAC\ndigest = SHA256"), 'works');
check('another cipher',      configuration('cipher', ['default'], "[generator]\ncipher = AES-128-CTR"), 'works');
check('one that there is not', configuration('unknown', ['default'], "[generator]\nrandom = NO-DRBG"), 'fails');
check('a property that nobody has', configuration('strict', ['default'], "[algorithms]\ndefault_properties = provider=nobody"), 'fails');
check('fips required, of nobody', configuration('fips_of_nobody', ['default'], "[algorithms]\ndefault_properties = fips=yes"), 'fails');
check('fips preferred, of nobody', configuration('fips_preferred', ['default'], "[algorithms]\ndefault_properties = ?fips=yes"), 'works');

SKIP:
{
	skip 'there is no provider "legacy" here', 1 unless -e "$modules/legacy.so";
	check('default and legacy', configuration('legacy', [ 'legacy', 'default' ]), 'works');
	check('legacy alone', configuration('legacy_alone', ['legacy']), 'fails');
}

SKIP:
{
	skip 'there is no provider "fips" here', 1 unless -e "$modules/fips.so";
	my $installed = $node->basedir . '/fips_sect.cnf';
	my ($works, undef, $err) = program('fipsinstall', '-module', "$modules/fips.so", '-out', $installed);
	skip "the provider \"fips\" does not pass its own tests: $err", 1 unless $works;
	my $include = ".include $installed";
	check('fips and base', configuration('fips', [ 'base', 'fips' ], $include), 'works');
	check('fips required, default too',
		configuration('fips_required', [ 'default', 'fips' ], "$include\n[algorithms]\ndefault_properties = fips=yes"), 'works');
	check('fips there, default required',
		configuration('fips_idle', [ 'default', 'fips' ], "$include\n[algorithms]\ndefault_properties = fips=no"), 'works');

	check('fips there, refused', configuration('fips_refused', [ 'base', 'fips' ], "$include\n[algorithms]\ndefault_properties = fips=no"), $library =~ /^OpenSSL 3\.[0-4]\./ ? 'fails' : 'works');

	# Its file was changed since it was installed.
	append_to_file($installed, "module-mac = 00\n");
	check('a broken fips', configuration('fips_broken', [ 'base', 'fips' ], $include), 'fails');
}

done_testing();
