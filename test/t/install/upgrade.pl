# An upgrade from any earlier version leaves what a fresh installation makes;
# released scripts never change; every file that repeats the version is right.

use strict;
use warnings;

use Cwd qw(getcwd);
use Digest::SHA;
use File::Copy qw(copy);
use File::Path qw(make_path);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $control = slurp_file('fast_uuid.control');
my ($default) = $control =~ /^default_version = '(.+)'$/m or BAIL_OUT('no default_version');
my %scripts = map { s|^sql/||r => slurp_file($_) } glob('sql/fast_uuid--*.sql');
my @earlier = sort grep { $_ ne $default } map { /^fast_uuid--((?:(?!--).)+)\.sql$/ ? $1 : () } keys %scripts;
my $newest = $scripts{"fast_uuid--$default.sql"};
ok($newest, "the default version, $default, has an install script of its own");

# Released scripts.

# released(LIST, CHANGELOG, SCRIPTS): what is wrong, a sentence each
sub released
{
	my ($list, $changelog, $of) = @_;
	my %sum = map { /^([0-9a-f]{64})  sql\/(\S+)$/ ? ($2 => $1) : die "not a checksum: $_" } grep { !/^#/ } split(/\n/, $list);
	my @wrong;
	foreach my $name (sort keys %sum)
	{
		push @wrong, "$name is released and missing" unless exists $of->{$name};
		push @wrong, "$name is released and has changed"
		  if exists $of->{$name} && Digest::SHA::sha256_hex($of->{$name}) ne $sum{$name};
	}

	# What leads to the default version is free to change until the changelog
	# gives that version a date.
	my $in_work = $changelog =~ /^## \Q$default\E \(not yet released\)$/m;
	foreach my $name (sort keys %$of)
	{
		my ($to) = $name =~ /--((?:(?!--).)+)\.sql$/;
		next if $in_work && $to eq $default;
		push @wrong, "$name belongs to a release and is not in test/upgrade/released" unless exists $sum{$name};
	}
	return join("\n", @wrong);
}

my $list      = slurp_file('test/upgrade/released');
my $changelog = slurp_file('CHANGELOG.md');
is(released($list, $changelog, \%scripts), '', 'every released script is as it was released');

my $sum   = Digest::SHA::sha256_hex($newest);
my $dated = $changelog =~ s/^(## \Q$default\E) \(.*\)$/$1 (2030-01-01)/mr;
my $all   = join('', map { Digest::SHA::sha256_hex($scripts{$_}) . "  sql/$_\n" } keys %scripts);
is(released($all, $dated, \%scripts), '', 'with a date and all checksums: a release');
like(released($list =~ s/^.*--\Q$default\E\.sql\n//mr, $dated, \%scripts),
	qr/--\Q$default\E\.sql belongs to a release/, 'with a date and no checksum: noticed');
like(released($all, $dated, { %scripts, "fast_uuid--$default.sql" => "$newest " }), qr/is released and has changed/, 'a space more: noticed');
like(released("$sum  sql/fast_uuid--0.1.sql\n", $changelog, {}),
	qr/0\.1\.sql is released and missing/, 'a released script that is gone: noticed');

# The version in other files.
command_ok([ 'script/release', '--check' ], 'every file that repeats the version has that of fast_uuid.control');
my $copy = PostgreSQL::Test::Utils::tempdir();
mkdir "$copy/script" or die "could not create a folder: $!";
copy($_, "$copy/$_") or die "could not copy $_: $!" foreach 'fast_uuid.control', 'script/release', glob('script/*.sh');
append_to_file("$copy/CHANGELOG.md", $changelog =~ s/^## \Q$default\E /## 99 /mr);
command_fails_like([ 'bash', "$copy/script/release", '--check' ],
	qr/CHANGELOG\.md has version "99", fast_uuid\.control has "\Q$default\E"/, 'another version: noticed');

# Upgrades.  For pg_upgrade, pg_dump writes down all of an extension's members:
# definitions, owners, comments, privileges and what these were at installation.

# Its entries, one for each object, comment and privilege, without their numbers.
sub entries
{
	my ($node) = @_;
	my $dump = $node->basedir . '/dump.sql';
	$node->run_log([ 'pg_dump', '--binary-upgrade', '--schema-only', '--file', $dump, '-d', $node->connstr('postgres') ])
	  or die 'pg_dump failed';
	my ($head, @entries) = split(/^--\n-- Name: /m, slurp_file($dump));
	return map {
		s/^(--.*|\\.*|SELECT pg_catalog\.binary_upgrade_set_next_.*|)\n//mgr =~
		  s/(binary_upgrade_create_empty_extension.*?'\{)(\d+)(?=\}')/$1the sequence/r
	} @entries;
}

# differences(NODE, VERSION): what an upgrade from there to the default version
# makes different from a fresh installation
sub differences
{
	my ($node, $version) = @_;
	my %count;

	$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
	$count{$_}++ foreach entries($node);
	$node->safe_psql('postgres',
		"DROP EXTENSION fast_uuid; CREATE EXTENSION fast_uuid VERSION '$version'; ALTER EXTENSION fast_uuid UPDATE");
	$count{$_}-- foreach entries($node);
	$node->safe_psql('postgres', 'DROP EXTENSION fast_uuid');
	return join('', map { ($count{$_} > 0 ? 'missing: ' : 'too much: ') . $_ } grep { $count{$_} } sort keys %count);
}

my $node = PostgreSQL::Test::Cluster->new('upgrade');
$node->init;
$node->start;

is(differences($node, $_), '', "from $_ to $default: as freshly installed") foreach @earlier;

# What that comparison is worth is tried with a version that never was: the
# default version's install script with changes, and an upgrade that makes up for
# them, or does not.

# The statement of the install script that begins so.
sub statement
{
	my ($start) = @_;
	my ($found) = $newest =~ /^(\Q$start\E.*?;\n)/ms or die "the install script has no $start";
	return $found;
}

my $max     = statement('CREATE FUNCTION uuidv7_fast_max(') . "\n" . statement('COMMENT ON FUNCTION uuidv7_fast_max(');
my $comment = statement('COMMENT ON FUNCTION uuidv7_fast_min(');
my $time    = statement('CREATE FUNCTION uuidv7_fast_timestamp(');
my $revoke  = statement('REVOKE ALL ON FUNCTION fast_uuid_reset_ordering(');
my $array   = statement('CREATE FUNCTION uuidv7_fast_array(');
my $first   = statement('CREATE FUNCTION uuidv7_fast(source');

# Each change: its name, what stands in the install script, what stood there,
# what the upgrade does, what is found when it does not.
my @changes = (
	[ 'a new function', $max, '', $max, qr/missing: uuidv7_fast_max/ ],
	[ 'a changed comment', $comment, $comment =~ s/ IS\n'/ IS\n'the /r, $comment, qr/too much: FUNCTION uuidv7_fast_min.*COMMENT/ ],
	[ 'a withdrawn privilege', $revoke, '', $revoke, qr/missing: FUNCTION fast_uuid_reset_ordering\(\); Type: ACL/ ],
	[ 'another volatility', $time, $time =~ s/IMMUTABLE/STABLE/r,
		'ALTER FUNCTION uuidv7_fast_timestamp IMMUTABLE;', qr/too much: uuidv7_fast_timestamp.*\bSTABLE/s ],
	[ 'another C function', $array, $array =~ s/'uuidv7_fast_array'/'uuidv7_fast'/r,
		$array =~ s/CREATE/CREATE OR REPLACE/r, qr/too much: uuidv7_fast_array.*'uuidv7_fast'/s ],
	[ 'a function that is no more', $first, $first . $first =~ s/FUNCTION uuidv7_fast/FUNCTION uuidv7_old/r,
		'DROP FUNCTION uuidv7_old;', qr/too much: uuidv7_old/ ],
);

my $before = $newest;
foreach my $change (@changes)
{
	my ($name, $now, $then) = @$change;
	my $at = index($before, $now);
	die "$name: two changes of one statement" if $at < 0;
	substr($before, $at, length($now), $then);
}

# Its two scripts, as version 0.0.0, and as 0.0.1 with an upgrade that forgets all.
my %made = map { ("fast_uuid--0.0.$_.sql" => $before) } 0, 1;
$made{"fast_uuid--0.0.0--$default.sql"} = join("\n", map { $_->[3] } @changes);
$made{"fast_uuid--0.0.1--$default.sql"} = '';

# The server shall look into a folder of ours first.
my $setting = $node->safe_psql('postgres',
	q{SELECT name FROM pg_settings WHERE name IN ('extension_destdir', 'extension_control_path') ORDER BY name DESC LIMIT 1});
SKIP:
{
	skip "this server finds extensions in one folder alone", 1 + @changes unless $setting;

	my $folder = PostgreSQL::Test::Utils::tempdir();
	my $share  = $node->config_data('--sharedir');
	my $lib    = $node->config_data('--pkglibdir');
	my $before = $node->safe_psql('postgres', "SHOW $setting");
	make_path("$folder$share/extension", "$folder$lib");
	append_to_file("$folder$share/extension/fast_uuid.control", $control);
	append_to_file("$folder$share/extension/fast_uuid--$default.sql", $newest);
	append_to_file("$folder$share/extension/$_", $made{$_}) foreach keys %made;
	if ($setting eq 'extension_destdir')
	{
		# It is also where the library is looked for.
		symlink("$before$lib/fast_uuid.so", "$folder$lib/fast_uuid.so") if -e "$before$lib/fast_uuid.so";
		$node->append_conf('postgresql.conf', "$setting = '$folder'");
	}
	else
	{
		$node->append_conf('postgresql.conf', "$setting = '$folder$share:$before'");
	}
	$node->restart;

	is(differences($node, '0.0.0'), '', 'an upgrade that forgets nothing: as freshly installed');
	my $found = differences($node, '0.0.1');
	like($found, $_->[4], "an upgrade that forgets $_->[0]: noticed") foreach @changes;
}

$node->stop;
done_testing();
