# Every shell command that a document gives to its reader is one that works: scripts and
# programs take its options, make has its targets, apt its packages, and what builds and
# installs is run.

use strict;
use warnings;

use lib 'test/perl';
use Commands;
use Markdown;
use PostgreSQL::Test::Utils;
use Scripts;
use Test::More;

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
my @pages     = ('README.md', 'CONTRIBUTING.md', glob('doc/*.md'));
my (%looked_at, %installs);

foreach my $page (@pages)
{
	my $text = read_page($page);
	my (@wrong, %block);
	foreach my $command (documented_commands($text))
	{
		my $typed = $command->{text};
		$looked_at{$typed} //= [ wrong_with($typed) ];
		push @wrong, map { "$page, line $command->{line}: $typed: $_" } @{ $looked_at{$typed} };
		next unless $typed =~ /\bmake\b/;
		if ($command->{block}) { push @{ $block{ $command->{block} } }, $typed; }
		elsif ($typed =~ /install\b/) { $installs{$typed} = 1; }
	}
	$installs{$_} = 1 foreach grep { /make.*install\b/ } map { join "\n", @$_ } values %block;
	foreach my $option (lone_options($text))
	{
		push @wrong, map { "$page: $option->{text}: $_" } wrong_with_option($option);
	}
	foreach my $span (grep { $_->{text} =~ /^[A-Z_]{4,}=\S*$/ } code_spans($text))
	{
		push @wrong, map { "$page, line $span->{line}: $span->{text}: $_" } wrong_with_variable(split /=/, $span->{text}, 2);
	}
	is(join("\n", @wrong), '', "$page: the commands work");
}
cmp_ok(scalar(keys %looked_at), '>', 30, 'commands: ' . keys %looked_at);

# What builds, installs and removes is typed as it stands, by somebody for whom sudo is
# there, on this server, into a place of its own.  Nothing else is run, whatever a
# document says: of a line only these commands are taken.
my $make = qr{(?:sudo )?make(?: (?:install|uninstall))?(?: (?:PG_CONFIG|WITH_OPENSSL|datadir|pkglibdir)=[\w./-]+)*};
sub to_run
{
	return join ' && ', grep { /\A$make\z/ } map { s/^\s+|\s+(?:#.*)?$//gr } split /&&|\n/, $_[0];
}

my $commands = PostgreSQL::Test::Utils::tempdir();
my $build    = PostgreSQL::Test::Utils::tempdir();
instead($commands, 'sudo', '"$@"');
system_or_bail('cp', '-Rp', 'Makefile', 'fast_uuid.control', 'src', 'sql', grep { -e } '.built_for', '.built_with', $build);

sub type_in
{
	my ($text, $root) = @_;
	my %variables = (MAKEFLAGS => " -- with_llvm=no DESTDIR=$root", MAKELEVEL => '', PG_CONFIG => $pg_config);
	return run_script($commands, \%variables, 'bash', '-ec', "cd '$build'\n$text");
}

sub installed
{
	my ($root) = @_;
	return sort map { s{^\Q$root\E}{}r } grep { -f } split /\n/, (run_command([ 'find', $root, '-type', 'f' ]))[0];
}

my ($sharedir)  = run_command([ $pg_config, '--sharedir' ]);
my ($pkglibdir) = run_command([ $pg_config, '--pkglibdir' ]);
my ($installs, $removals) = (0, 0);
my %run;
foreach my $typed (sort keys %installs)
{
	# This server stands for the one that a path names.
	my $here = to_run($typed) =~ s{PG_CONFIG=\S+}{PG_CONFIG=$pg_config}gr;
	next if $here !~ /install\b/ || $run{$here}++;
	my $root = PostgreSQL::Test::Utils::tempdir();
	my ($share) = $here =~ /\bdatadir=(\S+)/   ? $1 : $sharedir;
	my ($lib)   = $here =~ /\bpkglibdir=(\S+)/ ? $1 : $pkglibdir;
	type_in('make install', $root) if $here =~ /uninstall/;
	my ($status, $out, $err) = type_in($here, $root);
	is($status, 0, "$here: run") or diag("$out\n$err");
	my @files = $here =~ /uninstall/ ? () : sort "$lib/fast_uuid.so", map { "$share/extension/" . s{.*/}{}r } 'fast_uuid.control', glob('sql/fast_uuid--*.sql');
	is(join("\n", installed($root)), join("\n", @files), "$here: the files are where they belong");
	$here =~ /uninstall/ ? $removals++ : $installs++;
}
cmp_ok($installs, '>', 1, "installed as documented: $installs");
cmp_ok($removals, '>', 0, "removed as documented: $removals");

is( join("\n", map { to_run($_) } 'make && sudo make install && make installcheck', "apt install gcc make\nmake # x\nsudo make install datadir=/a/b",
		'sudo dnf install make; make install', 'make install DESTDIR=/', 'make install $(touch x)', 'sudo apt install make'),
	"make && sudo make install\nmake && sudo make install datadir=/a/b\n\n\n\n", 'of what a document says, nothing but make is run');

# What is wrong would be noticed.
foreach my $case (
	[ 'script/test --packages',                  undef ],
	[ 'PG_VERSION=17 script/test order/units && script/demo # a look', undef ],
	[ 'test/mutants/run --regression clock',       undef ],
	[ 'script/test --package',                   'unknown: "--package"' ],
	[ 'script/test order/unit',                  'unknown: "order/unit"' ],
	[ 'test/mutants/run --count many',             '--count needs a whole number' ],
	[ 'script/tests',                            'no script script/tests' ],
	[ 'PG_VERSION=1.7 script/test',              'no such version: 1.7' ],
	[ 'SECONDS_PER_SOURCE=9 script/demo',        'script/demo knows no variable SECONDS_PER_SOURCE' ],
	[ 'make -s WITH_OPENSSL=no && sudo make install', undef ],
	[ q{make all WITH_OPENSSL='$(shell touch x)'}, 'no rule here for $' ],
	[ 'make units',                              q{No rule to make target 'units'} ],
	[ 'make && sudo make src',                   'src is no target, but a file' ],
	[ 'make WITHOUT_OPENSSL=yes',                'nothing reads WITHOUT_OPENSSL' ],
	[ 'make installcheck REGRESS=orders',        'no such test: orders' ],
	[ 'make installcheck PROVE_TESTS=test/t/order/*.pl', undef ],
	[ 'make installcheck PROVE_TESTS=test/t/order/clocks.pl', 'no such test: test/t/order/clocks.pl' ],
	[ 'pg_dump --schema-only --table item',      undef ],
	[ 'pg_dump --schemas-only',                  'pg_dump has no option --schemas-only' ],
	[ 'pg_ctl -D data beginn',                   'pg_ctl cannot' ],
	[ 'pg_begin',                                'no program pg_begin' ],
	[ 'dnf install postgresql-server-devel',     undef ],
	[ 'dnf install postgresql-devel-server',     'neither the spec nor make names postgresql-devel-server' ],
	[ 'mvn -q compile exec:jar',                 'script/clients does not run mvn compile exec:jar' ],
	[ 'cp sql/fast_uuid--1.1.sql none/x',        'no folder for none/x' ],
	[ 'docker build -f packaging/Dockerfile --target extensions .', 'no target extensions in packaging/Dockerfile' ],
	[ 'pgxn install ./fast-uuid-1.1.0.zip',      'does not make ./fast-uuid-1.1.0.zip' ],
	[ 'git clone https://example.org/fast_uuid && cd fast_uuid && make', undef ],
	[ 'git clone https://example.org/fast_uuid && cd fast-uuid && make', 'no folder fast-uuid' ],
	[ 'sudo -u postgres psql -d item -c "SELECT 1; SELECT 2" | tail -n 1', 'no rule looks at this command' ],
	[ 'sudo -u postgres psql -d item -c "SELECT 1; SELECT 2"', undef ],
	[ 'sudo systemctl restart postgresql@15-main', undef ],
	[ 'frobnicate "a b"; make',                  'no rule looks at this command' ])
{
	my ($typed, $complaint) = @$case;
	my @wrong = wrong_with($typed);
	defined $complaint
	  ? like($wrong[0], qr/\Q$complaint\E/, "noticed: $typed")
	  : is(join("\n", @wrong), '', "no false alarm: $typed");
}
SKIP:
{
	my $lists = `apt-cache pkgnames libssl-dev 2>/dev/null`;
	skip 'apt has no lists here', 2 if $lists !~ /^libssl-dev$/m;
	is(join("\n", wrong_with('sudo apt install -y make libssl-dev')), '', 'no false alarm: packages that are offered');
	like(join("\n", wrong_with('apt install libssl-devel')), qr/apt knows no package libssl-devel/, 'noticed: a package of another name');
}
is(join('|', map { "$_->{line} $_->{text}" } documented_commands("`libx-dev` `gcc x-devel` `make x` or `SELECT 1`, `script/a b` `make`\n```sh\n# no\na \\\n b\nc\n```\n```sql\nmake\n```")),
	"4 a \\\n b|6 c|1 apt install libx-dev|1 dnf install gcc x-devel|1 make x|1 script/a b|1 make", 'commands are found, and nothing else');
like(join('', map { wrong_with_option($_) } lone_options('`script/package`, with `--outputs packages`')), qr/unknown: "--outputs"/, 'noticed: an option quoted alone');
is(join('', map { wrong_with_option($_) } lone_options('`script/package`, with `--output packages`. All answer `--help`.')), '', '... and no other');
done_testing();
