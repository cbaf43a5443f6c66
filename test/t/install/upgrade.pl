# An upgrade from any earlier version leaves what a fresh installation makes; released
# scripts never change; every file that repeats the version is right.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $control = slurp_file('fast_uuid.control');
my ($default) = $control =~ /^default_version = '(.+)'$/m;
my $install = slurp_file("sql/fast_uuid--$default.sql");

command_ok([ 'script/release', '--check' ], 'every file that repeats the version has it');
# What leads to the version in work is free to change.  It is one of both extensions.
my $in_work = slurp_file('CHANGELOG.md') =~ /^## \Q$default\E \(not yet released\)$/m;
my $released = slurp_file('test/upgrade/released');
is(sha256_hex(slurp_file($2)), $1, "$2 is as it was released")
  while $released =~ m{^([0-9a-f]{64})  ((?:feed/)?sql/\S+)$}mg;
foreach my $file (glob('sql/fast_uuid--*.sql feed/sql/fast_feed--*.sql'))
{
	next if $in_work && $file =~ /--\Q$default\E\.sql$/;
	like($released, qr/  \Q$file\E$/m, "$file is in test/upgrade/released");
}

my $node = PostgreSQL::Test::Cluster->new('upgrade');
$node->init;
$node->start;

# All of an extension's members, as pg_upgrade takes them: definitions, owners, comments,
# privileges and what these were at installation; each without its numbers.
sub members
{
	my $dump = $node->basedir . '/dump.sql';
	system_or_bail('pg_dump', '--binary-upgrade', '--schema-only', '--file', $dump,
		'-d', $node->connstr('postgres'));
	my ($head, @members) = split(/^--\n-- Name: /m, slurp_file($dump));
	foreach my $member (@members)
	{
		$member =~ s/^(--.*|\\.*|SELECT pg_catalog\.binary_upgrade_set_next_.*|)\n//mg;
	}
	return @members;
}

# What an upgrade from a version makes different from a fresh installation
sub differences
{
	my ($version) = @_;
	my %count;
	$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
	$count{$_}++ foreach members();
	$node->safe_psql('postgres', "DROP EXTENSION fast_uuid;
		CREATE EXTENSION fast_uuid VERSION '$version'; ALTER EXTENSION fast_uuid UPDATE");
	$count{$_}-- foreach members();
	$node->safe_psql('postgres', 'DROP EXTENSION fast_uuid');

	my @missing  = grep { $count{$_} > 0 } keys %count;
	my @too_much = grep { $count{$_} < 0 } keys %count;
	return join('', sort(map({ "missing: $_" } @missing), map({ "too much: $_" } @too_much)));
}

foreach my $file (glob('sql/fast_uuid--*.sql'))
{
	my ($version) = $file =~ /fast_uuid--((?:(?!--).)+)\.sql$/;
	next if !$version || $version eq $default;
	is(differences($version), '', "from $version to $default: as freshly installed");
}

# What that comparison is worth is tried with a version that never was: the install script
# with some statements changed, and an upgrade that makes up for that, or does not.
my ($max)     = $install =~ /^(CREATE FUNCTION uuidv7_fast_max\(.*?;\n)/ms;
my ($comment) = $install =~ /^(COMMENT ON FUNCTION uuidv7_fast_max\(.*?;\n)/ms;
my ($time)    = $install =~ /^(CREATE FUNCTION uuidv7_fast_timestamp\(.*?;\n)/ms;
my $old       = $install;
$old =~ s/\Q$_\E// foreach $max, $comment;
$old =~ s/\Q$time\E/$time =~ s{IMMUTABLE}{STABLE}r/e;
$old .= $time =~ s/uuidv7_fast_timestamp/old/r;
my $revoke = 'REVOKE ALL ON FUNCTION uuidv7_fast_ns(uuid) FROM PUBLIC;';
my $upgrade = "$max $comment
	ALTER FUNCTION uuidv7_fast_timestamp IMMUTABLE; DROP FUNCTION old;";

my $setting = $node->safe_psql('postgres', q{
SELECT max(name) FROM pg_settings WHERE name IN ('extension_destdir', 'extension_control_path')});
SKIP:
{
	skip 'this server finds extensions in one folder alone', 1 unless $setting;
	# The server looks into a folder of ours first, with Debian's setting for the library too.
	my $folder = PostgreSQL::Test::Utils::tempdir();
	my $share  = $folder . $node->config_data('--sharedir');
	my $lib    = $node->config_data('--pkglibdir');
	my $before = $node->safe_psql('postgres', "SHOW $setting");
	system_or_bail('mkdir', '-p', "$share/extension", "$folder$lib");
	append_to_file("$share/extension/fast_uuid.control", $control);
	append_to_file("$share/extension/fast_uuid--$default.sql", $install);
	append_to_file("$share/extension/fast_uuid--0.0.0.sql", $old);
	append_to_file("$share/extension/fast_uuid--0.0.1.sql", "$old\n$revoke");
	append_to_file("$share/extension/fast_uuid--0.0.0--$default.sql", $upgrade);
	append_to_file("$share/extension/fast_uuid--0.0.1--$default.sql", '');
	symlink("$before$lib/fast_uuid.so", "$folder$lib/fast_uuid.so") or die "symlink: $!";
	my $value = $setting eq 'extension_destdir' ? $folder : "$share:$before";
	$node->append_conf('postgresql.conf', "$setting = '$value'");
	$node->restart;

	is(differences('0.0.0'), '', 'an upgrade that forgets nothing: as freshly installed');
	my $found = differences('0.0.1');
	like($found, qr/missing: uuidv7_fast_max/, 'a forgotten function is noticed');
	like($found, qr/too much: FUNCTION uuidv7_fast_ns\(id uuid\); Type: ACL/, '... a privilege');
	like($found, qr/too much: uuidv7_fast_timestamp.*\bSTABLE/s, '... a volatility');
	like($found, qr/too much: old/, '... a function that is no more');
}

$node->stop;
done_testing();
