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
like(released($all, $dated, { %scripts, "fast_uuid--$default.sql" => "$newest " }),
	qr/--\Q$default\E\.sql is released and has changed/, 'a space more in a released script: noticed');
like(released("$sum  sql/fast_uuid--0.1.sql\n", $changelog, {}),
	qr/0\.1\.sql is released and missing/, 'a released script that is gone: noticed');

# What an upgrade may replace.  Somebody may own an object of the name that a
# version brings: CREATE then fails.  OR REPLACE and IF NOT EXISTS leave that to the
# server to refuse.

# The object that a statement makes, from the words after CREATE [OR REPLACE]: its
# kind and name, and for a function the arguments that are its identity.
sub object
{
	my ($kind, $name, $arguments) = @_;
	my @inputs = grep { !/^out\b/ } split(/\s*,\s*/, lc($arguments // '') =~ s/^\(\s*|\s*\)$//gr);
	s/\s+(default\b|=).*//s, s/^in\s+//, s/\s+/ /g foreach @inputs;
	return lc("$kind $name") =~ s/\s+/ /gr . (defined $arguments ? '(' . join(', ', @inputs) . ')' : '');
}

# takeovers(SCRIPTS): the statements of upgrade scripts that may replace an object
# that the earlier version lacks, a sentence each
sub takeovers
{
	my ($of) = @_;
	my $made = qr/((?:FUNCTION|PROCEDURE|AGGREGATE)\s+[\w."]+)\s*(\((?:[^()]|\([^()]*\))*\))|(\w+\s+[\w."]+)/i;
	my $named = sub { my ($routine, $arguments, $other) = @_; return object(split(/\s+/, $routine // $other), $arguments) };
	my @wrong;
	foreach my $script (sort grep { /^fast_uuid--.+--.+\.sql$/ } keys %$of)
	{
		my ($from) = $script =~ /^fast_uuid--(.+?)--/;
		my ($before, $upgrade) = map { s/--.*//gr } $of->{"fast_uuid--$from.sql"} // '', $of->{$script};
		my %had;
		$had{ $named->($1, $2, $3) } = 1 while $before =~ /\bCREATE\s+(?:OR\s+REPLACE\s+)?$made/gi;
		while ($upgrade =~ /\bCREATE\s+OR\s+REPLACE\s+$made/gi)
		{
			my $object = $named->($1, $2, $3);
			push @wrong, "$script replaces $object, which $from lacks: use CREATE" unless $had{$object};
		}
		push @wrong, "$script has IF NOT EXISTS: use CREATE" if $upgrade =~ /\bIF\s+NOT\s+EXISTS\b/i;
	}
	return join("\n", @wrong);
}

is(takeovers(\%scripts), '', 'no upgrade script takes over an object of somebody else');

# The version in other files.

my @places = grep { -e $_->[0] } (
	[ 'CHANGELOG.md',             qr/^## /m,               'newest version' ],
	[ 'META.json',                qr/^  "version": "/m,     'version of the distribution' ],
	[ 'META.json',                qr/^      "version": "/m, 'version of the extension' ],
	[ 'META.json',                qr/sql\/fast_uuid--/,     'install script' ],
	[ 'packaging/fast_uuid.spec', qr/^Version: */m,         'version' ],
	[ 'debian/changelog',         qr/^fast-uuid \(/m,       'newest version' ]);
my $copy = PostgreSQL::Test::Utils::tempdir();
my $other = $default =~ s/\d+$/99/r;
make_path(map { "$copy/$_" } qw(packaging debian script));
copy($_, "$copy/$_") or die "could not copy $_: $!" foreach 'fast_uuid.control', 'script/release', glob('script/*.sh'), map { $_->[0] } @places;
my @check = ('bash', "$copy/script/release", '--check');
command_ok(\@check, 'every file that repeats the version has that of fast_uuid.control');
foreach my $place (@places)
{
	my ($file, $start, $what) = @$place;
	my $text = slurp_file($file);
	$text =~ s/($start)\Q$default\E/$1$other/ or die "$file has no $what";
	unlink "$copy/$file";
	append_to_file("$copy/$file", $text);
	command_fails_like(\@check,
		qr/\Q$file\E has version "\Q$other\E\S*", fast_uuid.control has "\Q$default\E"/m,
		"another $what in $file: a sentence that names the file");
	copy($file, "$copy/$file") or die "could not copy $file: $!";
}

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
# them, or forgets one.

# The statement of the install script that begins so.
sub statement
{
	my ($start) = @_;
	my ($found) = $newest =~ /^(\Q$start\E.*?;\n)/ms or die "the install script has no $start";
	return $found;
}

my $max     = statement('CREATE FUNCTION uuidv7_fast_max(') . "\n" . statement('COMMENT ON FUNCTION uuidv7_fast_max(');
my $comment = statement('COMMENT ON FUNCTION uuidv7_fast_min(');
my $support = 'SUPPORT uuidv7_fast_set_support';
my $stats   = statement('CREATE FUNCTION fast_uuid_stats(');
my $at      = statement('CREATE FUNCTION uuidv7_fast_at(');
my $min     = statement('CREATE FUNCTION uuidv7_fast_min(');
my $time    = statement('CREATE FUNCTION uuidv7_fast_timestamp(');
my $revoke  = statement('REVOKE ALL ON FUNCTION fast_uuid_reset_ordering(');
my $labels  = statement('COMMENT ON FUNCTION fast_uuid_stats(');
my $array   = statement('CREATE FUNCTION uuidv7_fast_array(');
my $first   = statement('CREATE FUNCTION uuidv7_fast(source');

# Each change: its name, what stands in the install script, what stood there,
# what the upgrade does, what is found when it does not.
my @changes = (
	[ 'a new function', $max, '', $max, qr/missing: uuidv7_fast_max/ ],
	[ 'a new comment', $labels, '', $labels, qr/missing: FUNCTION fast_uuid_stats.*COMMENT/ ],
	[ 'a changed comment', $comment, $comment =~ s/ IS\n'/ IS\n'the /r, $comment, qr/too much: FUNCTION uuidv7_fast_min.*COMMENT/ ],
	[ 'a withdrawn privilege', $revoke, '', $revoke, qr/missing: FUNCTION fast_uuid_reset_ordering\(\); Type: ACL/ ],
	[ 'another volatility', $time, $time =~ s/IMMUTABLE/STABLE/r,
		'ALTER FUNCTION uuidv7_fast_timestamp IMMUTABLE;', qr/too much: uuidv7_fast_timestamp.*\bSTABLE/s ],
	[ 'other parallel safety', $at, $at =~ s/PARALLEL RESTRICTED//r,
		'ALTER FUNCTION uuidv7_fast_at PARALLEL RESTRICTED;', qr/missing: uuidv7_fast_at.*PARALLEL RESTRICTED/s ],
	[ 'strictness', $min, $min =~ s/STRICT//r, 'ALTER FUNCTION uuidv7_fast_min STRICT;', qr/missing: uuidv7_fast_min.*STRICT/s ],
	[ 'an estimate of rows', $stats, $stats =~ s/ROWS/COST 2 ROWS/r,
		'ALTER FUNCTION fast_uuid_stats COST 1;', qr/too much: fast_uuid_stats.*COST 2/s ],
	[ 'a support function', $support, '', "ALTER FUNCTION uuidv7_fast_set $support;", qr/missing: uuidv7_fast_set.*SUPPORT \S*uuidv7_fast_set_support/s ],
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

# made(FORGOTTEN): the earlier version's two scripts, as version 0.0.FORGOTTEN
my %made;
foreach my $forgotten (-1 .. $#changes)
{
	my $version = '0.0.' . ($forgotten + 1);
	$made{"fast_uuid--$version.sql"} = $before;
	$made{"fast_uuid--$version--$default.sql"} = join("\n", map { $changes[$_][3] } grep { $_ != $forgotten } 0 .. $#changes);
}

# That check, with an upgrade that replaces what there was, and some that replace
# more.  Two of these differ from what there was by an argument alone.
is(takeovers(\%made), '', 'an upgrade that replaces what the earlier version has: allowed');
foreach my $case (
	[ 'a new function', $max =~ s/CREATE/CREATE OR REPLACE/r, qr/replaces function uuidv7_fast_max\(ts timestamptz\)/ ],
	[ 'the same in other letters and lines', lc($max =~ s/CREATE FUNCTION/CREATE\n OR REPLACE\tFUNCTION/r), qr/replaces function uuidv7_fast_max/ ],
	[ 'a further argument', $array =~ s/CREATE(.*)\)/CREATE OR REPLACE$1, more text)/r, qr/replaces function uuidv7_fast_array\(.*more text\)/ ],
	[ 'another type of argument', $array =~ s/CREATE(.*?)integer/CREATE OR REPLACE$1bigint/r, qr/replaces function uuidv7_fast_array\(count bigint/ ],
	[ 'a view', 'CREATE OR REPLACE VIEW fast_uuid_view AS SELECT 1;', qr/replaces view fast_uuid_view/ ],
	[ 'IF NOT EXISTS', 'CREATE TABLE IF NOT EXISTS fast_uuid_table (n int);', qr/has IF NOT EXISTS/ ])
{
	my ($name, $statement, $found) = @$case;
	my $script = "fast_uuid--0.0.0--$default.sql";
	like(takeovers({ %made, $script => $made{$script} . "\n$statement" }), qr/^\Q$script\E $found/, "$name: noticed");
}

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
	foreach my $i (0 .. $#changes)
	{
		like(differences($node, '0.0.' . ($i + 1)), $changes[$i][4], "an upgrade that forgets $changes[$i][0]: noticed");
	}
}

$node->stop;
done_testing();
