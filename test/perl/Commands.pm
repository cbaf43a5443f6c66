# The shell commands of the documents: which there are, and what is wrong with one,
# asked of the scripts, of make and of the programs themselves.

package Commands;

use strict;
use warnings;

use Exporter qw(import);
use IPC::Run;
use Markdown;
use PostgreSQL::Test::Utils;
use Scripts;

our @EXPORT = qw(documented_commands split_commands wrong_with lone_options wrong_with_option wrong_with_variable);

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
my ($bindir)  = run_command([ $pg_config, '--bindir' ]);
my ($pgxs)    = run_command([ $pg_config, '--pgxs' ]);
my ($major)   = (run_command([ $pg_config, '--version' ]))[0] =~ /(\d+)/;

# A script that begins, instead of answering, gets no further than these.
my $commands = PostgreSQL::Test::Utils::tempdir();
instead($commands, $_, 'exit 99') foreach qw(apt-get sudo runuser debootstrap unshare mktemp make);

# Read by no rule, and why.
my @unlooked_at = (
	[ qr/^git clone /,         'needs a network' ],
	[ qr/^docker run /,        "docker's; packaging/Dockerfile says what was run" ],
	[ qr/^dch /,               "devscripts', which no test installs" ],
	[ qr/^pgxn install(?: fast_uuid)?$/, "PGXN's client, which no test installs; script/release makes what it takes" ]);

# A program's name and its rule; the rule is given the words after the name.  It
# returns what is wrong, or nothing.
my @rules = (
	[ qr{^(?:script/|test/mutants/run$)},  \&script ],
	[ qr/^make$/,                          \&make ],
	[ qr/^(?:apt|apt-get)$/,               \&apt ],
	[ qr/^dnf$/,                           \&dnf ],
	[ qr/^pg_\w*cluster$/,                 \&cluster_program ],
	[ qr/^(?:psql|postgres|pg_\w+|pgbench|initdb|createdb|dropdb|createuser|vacuumdb|reindexdb)$/, \&server_program ],
	[ qr/^(?:pip|python3?|npm|node|mvn|go|ruby|django-admin)$/, \&client ],
	[ qr/^docker$/,                        \&docker ],
	[ qr/^git$/,                           sub { !on_path('git') || known_to('git', 'help', '-a') =~ /^\s+\Q$_[1]\E\s/m ? () : 'no such command of git' } ],
	[ qr/^openssl$/,                       sub { !on_path('openssl') || known_to('openssl', 'help', $_[1]) =~ /^Usage: \Q$_[1]\E /m ? () : 'no such command of openssl' } ],
	[ qr/^rpmbuild$/,                      sub { my @files = grep { !/^-/ } @_[1 .. $#_]; map { -e ? () : "no file $_" } @files } ],
	[ qr/^pgxn$/,                          \&pgxn ],
	[ qr/^(?:cp|sha256sum)$/,              \&files ],
	[ qr/^cd$/,                            sub { $_[1] eq 'fast_uuid' || -d $_[1] ? () : "no folder $_[1]" } ],
	[ qr/^systemctl$/,                     sub { "@_[1 .. $#_]" =~ /^(?:restart|reload) postgresql(?:\@[\w-]+)?$/ ? () : 'no such service' } ]);

sub on_path
{
	my ($program) = @_;
	return (grep { -x } map { "$_/$program" } split(/:/, $ENV{PATH}), '/usr/bin')[0];
}

# What a command prints, to either.
sub known_to
{
	my @command = @_;
	my $said = '';
	eval { IPC::Run::run(\@command, '<', '/dev/null', '>&', \$said, IPC::Run::timeout(60)); 1 } or return '';
	return $said;
}

# The commands of a line: their words, without quotes, comments, sudo and redirections;
# of each also the variables before it.
sub split_commands
{
	my ($line) = @_;
	my @commands = ({ words => [] });
	$line =~ s/\\\n/ /g;
	while ($line =~ /\G[ \t]*(?:(#[^\n]*)|(&&|\|\||[;|\n])|(?:\d?>>?&?|<)[ \t]*\S+|((?:"(?:\\.|[^"])*"|'[^']*'|\\.|[^\s;&|<>"'\\])+))/g)
	{
		my ($comment, $operator, $word) = ($1, $2, $3);
		push @commands, { words => [] } if defined $operator;
		next unless defined $word;
		$word =~ s/"((?:\\.|[^"])*)"|'([^']*)'/$1 \/\/ $2/ge;
		push @{ $commands[-1]{words} }, $word;
	}
	foreach my $command (@commands)
	{
		my $words = $command->{words};
		$command->{variables} = {};
		while (@$words)
		{
			if ($words->[0] =~ /^([A-Za-z_]\w*)=(.*)$/s) { $command->{variables}{$1} = $2; shift @$words; }
			elsif ($words->[0] eq 'sudo') { shift @$words; splice @$words, 0, 2 if @$words && $words->[0] eq '-u'; }
			else { last; }
		}
	}
	return grep { @{ $_->{words} } || %{ $_->{variables} } } @commands;
}

# Is a piece of `code` a command?  More than a word, of which the first is a program
# with a rule, or on this machine; or a script or make alone.
sub is_command
{
	my ($code) = @_;
	return 0 if $code =~ /^id .*[>=(]/;    # the column, in SQL
	my ($first) = split_commands($code);
	my @words = @{ $first ? $first->{words} : [] } or return 0;
	return 1 if $words[0] =~ m{^(?:\./)?(?:script/|test/mutants/run$)} && $words[0] !~ m{\.(?:sh|sql)$} && $words[0] ne 'script/' || $words[0] eq 'make';
	return 0 if @words < 2 || $words[0] !~ /^[a-z][a-z0-9.+_-]*$/ || $words[1] =~ /^[:=]/;
	return 1 if grep { $words[0] =~ $_->[0] } @rules;
	return -x "$bindir/$words[0]" || on_path($words[0]) ? 1 : 0;
}

# The commands of a page: the line, and the text, of which ```sh has one per line.
sub documented_commands
{
	my ($text) = @_;
	my @found;
	foreach my $block (code_blocks($text))
	{
		my $is_shell = $block->{language} =~ /^(?:sh|bash|shell|console)$/;
		next unless $is_shell || $block->{language} eq '';
		my $line = $block->{line};
		foreach my $command (split /(?<!\\)\n/, $block->{text})
		{
			my $prompt = $block->{language} eq q{console} ? qr{[\$#] } : qr{\$ };
			my $typed = $command =~ s/^\s*$prompt//r;
			push @found, { line => $line, text => $typed, block => $block->{line} }
			  if $is_shell ? split_commands($typed) : $typed =~ /^(?:sudo|make|apt|script\/\S+)\b/ && is_command($typed);
			$line += 1 + $command =~ tr/\n//;
		}
	}
	foreach my $span (code_spans($text))
	{
		my @words = split ' ', $span->{text};

		# Packages, quoted without what installs them.
		my ($headers) = $span->{text} =~ /-(dev|devel)(?:-(?:NN|\d+))?(?= |$)/;
		$span->{text} = ($headers eq 'dev' ? 'apt' : 'dnf') . " install $span->{text}"
		  if $headers && !grep { !/^[a-z0-9][\w.+-]+$/ } @words and $words[0] !~ /^(?:apt|apt-get|dnf)$/;
		push @found, $span if is_command($span->{text});
	}
	return @found;
}

# What is wrong with a line of commands: a list of sentences.
sub wrong_with
{
	my ($text) = @_;
	my @wrong;
	foreach my $command (split_commands($text))
	{
		my ($program, @arguments) = @{ $command->{words} };
		next if grep { join(' ', @{ $command->{words} }) =~ $_->[0] } @unlooked_at;
		my ($rule) = defined $program ? grep { $program =~ $_->[0] } @rules : ();
		push @wrong, !defined $program ? map { wrong_with_variable($_, $command->{variables}{$_}) } keys %{ $command->{variables} }
		  : !$rule ? 'no rule looks at this command'
		  : $rule->[1]->($program, @arguments),
		  defined $program ? variables_of($program, %{ $command->{variables} }) : ();
	}
	return @wrong;
}

# Scripts say what they take, whatever else is asked, once --help comes after it.
sub script
{
	my ($script, @arguments) = @_;
	$script =~ s{^\./}{};
	return "no script $script" unless -x $script;
	s/^(?:NN|VERSION)$/$major/ foreach @arguments;
	my ($status, $out, $err) = run_script($commands, {}, $script, @arguments, '--help');

	# An option can be named without its value.
	($status, $out, $err) = run_script($commands, {}, $script, @arguments, '1', '--help')
	  if $status && @arguments && $arguments[-1] =~ /^--/ && $err =~ /needs a/;
	return $status == 0 ? () : (split /\n/, $err)[0];
}

sub variables_of
{
	my ($program, %variables) = @_;
	my ($help) = $program =~ m{^(?:\./)?(script/\S+|test/mutants/run)$} && -x $1 ? (run_script($commands, {}, $1, '--help'))[1] : ();
	return map {
		my $name = $_;
		defined $help && $name ne 'PG_VERSION' && $help !~ /\b$name\b/ ? "$program knows no variable $name"
		  : wrong_with_variable($name, $variables{$name})
	} sort keys %variables;
}

# A variable that is set must be read by something.
sub wrong_with_variable
{
	my ($name, $value) = @_;
	my @readers = ('Makefile', $pgxs, $pgxs =~ s{makefiles/pgxs\.mk$}{Makefile.global}r, glob('script/* test/mutants/run test/t/*/*.pl test/perl/*.pm'));
	return "nothing reads $name" unless grep { !/Commands\.pm$/ && slurp_file($_) =~ /(?:\$[({]|\$ENV\{|^)$name\b/m } grep { -f } @readers;
	return "no such version: $value" if $name eq 'PG_VERSION' && $value !~ /^(?:NN|\d\d)$/;
	return "no such test: $value" if $name eq 'PROVE_TESTS' && grep { !-e } map { glob } split ' ', $value;
	return "no such test: $value" if $name eq 'REGRESS'     && grep { !-e "test/sql/$_.sql" } split ' ', $value;
	return "no such server: $value" if $name eq 'PG_CONFIG' && $value !~ m{^(?:\.\.\.|/(?:[\w.-]+/)*pg_config)$};
	return "yes or no, not $value" if $name eq 'WITH_OPENSSL' && $value !~ /^(?:yes|no)$/;
	return ();
}

# make would do it: nothing is run.  A file of the target's name is no target.
sub make
{
	my ($program, @arguments) = @_;
	my @options = grep { /^-/ && !/^-(?:s|j\d*|B)$/ } @arguments;
	return "make has no rule here for @options" if @options;
	my %variables = map { /^(\w+)=(.*)$/s ? ($1 => $2) : () } @arguments;
	my @targets   = grep { !/=/ && !/^-/ } @arguments;

	# make -n runs what these would have it run.
	return 'make has no rule here for $ and `' if grep { /[\$`]/ } @arguments;
	my @wrong     = map { wrong_with_variable($_, $variables{$_}) } sort keys %variables;
	delete $variables{PG_CONFIG};
	local %ENV = %ENV;
	delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);
	foreach my $target (@targets ? @targets : 'all')
	{
		my @make = ('make', '-n', "PG_CONFIG=$pg_config", 'MAKE=true', 'PROVE=true', map { "$_=$variables{$_}" } sort keys %variables);
		my ($out, $err) = ('', '');
		push @wrong, "$target is no target, but a file" if -e $target;
		push @wrong, "make $target: " . (split /\n/, $err || $out)[-1] unless IPC::Run::run([ @make, $target ], '>', \$out, '2>', \$err);
	}
	return @wrong;
}

# Packages are offered, where apt has lists.
sub apt
{
	my ($program, $action, @packages) = @_;
	return () if ($action // '') eq 'update' && !@packages;
	return "no rule looks at $program $action" unless $action =~ /^(?:install|remove|autoremove|purge|satisfy)$/;
	my ($own) = slurp_file('debian/control') =~ /^Package: postgresql-\d+(-\S+)/m;
	my $lists = known_to('apt-cache', 'pkgnames', 'libssl-dev');
	my @wrong;
	foreach my $package (grep { !/^-/ } @packages)
	{
		my $name = $package =~ s{.*/}{}r =~ s/_.*//r =~ s/-NN\b|-1\d\b/-$major/r;
		next if $name eq "postgresql-$major$own" || $lists eq '';
		push @wrong, "apt knows no package $name" unless known_to('apt-cache', 'show', $name) =~ /^Package: \Q$name\E$/m;
	}
	return @wrong;
}

# Fedora's packages are those that the spec or make names.
sub dnf
{
	my ($program, $action, @packages) = @_;
	my $known = join "\n", map { slurp_file($_) } 'packaging/fast_uuid.spec', 'Makefile';
	return "no rule looks at dnf $action" unless $action eq 'install';
	return map { $known =~ /(?<![\w-])\Q$_\E(?![\w-])/ ? () : "neither the spec nor make names $_" } grep { !/^-/ } @packages;
}

# A program and its options, by its own help.
sub knows_options
{
	my ($name, $help, @arguments) = @_;
	my @options = map { /^(--[a-z-]+|-[A-Za-z])/ ? $1 : () } @arguments;
	return map { $help =~ /(?<![\w-])\Q$_\E(?![\w-])/ ? () : "$name has no option $_" } @options;
}

sub server_program
{
	my ($program, @arguments) = @_;
	return "no program $program" unless -x "$bindir/$program";
	my $help = known_to("$bindir/$program", '--help');
	my @wrong = knows_options($program, $help, @arguments);
	if ($program eq 'pg_ctl')
	{
		my ($action) = grep { !/^-/ } @arguments;
		push @wrong, "pg_ctl cannot $action" unless $help =~ /^  pg_ctl $action\b/m;
	}
	return @wrong;
}

# Debian's; their help is their manual, so the program's text is asked.
sub cluster_program
{
	my ($program, @arguments) = @_;
	return () unless -e '/etc/debian_version';
	my $file = on_path($program) // return "no program $program";
	my $text = slurp_file($file);
	return map { $text =~ /['"|]\Q$_\E\b/ ? () : "$program has no option --$_" } map { /^--([a-z-]+)/ ? $1 : () } @arguments;
}

# Programs of the examples' languages: script/clients runs the same.
sub client
{
	my ($program, @arguments) = @_;
	my $clients = slurp_file('script/clients');
	if ("$program @arguments" =~ /^go get (\S+)\@/)
	{
		return slurp_file('doc/clients/pgx/go.mod') =~ /\Q$1\E / ? () : "go.mod does not name $1";
	}
	my @words = grep { !/^-/ } @arguments;
	return "script/clients does not run $program @words"
	  unless $clients =~ /\b\Q$program\E\b"?\h[^\n]*?@{[ join '[^\n]*?', map { "\Q$_\E" } @words ]}/;
	return map { my $file = $_; glob("doc/clients/*/$file") ? () : "no example has $file" } grep { /\.\w+$/ } @words;
}

sub docker
{
	my ($program, $action, @arguments) = @_;
	return "no rule looks at docker $action" unless $action eq 'build';
	my %given = map { $arguments[$_] =~ /^-/ ? ($arguments[$_] => $arguments[ $_ + 1 ]) : () } 0 .. $#arguments;
	my $file = $given{'-f'} // 'Dockerfile';
	return "no file $file" unless -f $file;
	my $target = $given{'--target'} // return ();
	return slurp_file($file) =~ /^FROM .* AS \Q$target\E$/m ? () : "no target $target in $file";
}

# The archive has the name that script/release gives it, whatever the version.
sub pgxn
{
	my ($program, $action, @archives) = @_;
	return map { m{^(?:\./)?fast_uuid-\d+\.\d+\.\d+\.zip$} ? () : "script/release does not make $_" } grep { !/^-/ } @archives;
}

# Files are there, of this version where one of the next is an example; or their folder is.
sub files
{
	my ($program, @arguments) = @_;
	my ($version) = slurp_file('fast_uuid.control') =~ /^default_version = '(.*)'$/m;
	my @names = grep { !/^-/ } @arguments;
	my $target = $program eq 'cp' ? pop @names : '.';
	return ((map { my $name = s/--1\.1(?=\.sql)/--$version/r; (grep { -e } glob($name)) ? () : "no file $name" } @names),
		-d ($target =~ s{/?[^/]*$}{}r || '.') ? () : "no folder for $target");
}

# Options that are quoted alone, each with what the same paragraph quotes or names.
sub lone_options
{
	my ($text) = @_;
	my @options;
	foreach my $paragraph (paragraphs($text))
	{
		my @spans = map { $_->{text} } code_spans($paragraph);
		push @options, map { { text => $_, beside => $paragraph } } grep { /^--[a-z]/ } @spans;
	}
	return @options;
}

# Someone named beside it takes it: a script, a program of PostgreSQL, or, where nobody
# is named, every script.
sub wrong_with_option
{
	my ($option) = @_;
	my @words    = split ' ', $option->{text};
	my @scripts  = $option->{beside} =~ m{(script/[\w-]+|test/mutants/run)(?![\w.])}g;
	my @programs = grep { -x "$bindir/$_" } $option->{beside} =~ /\b(psql|initdb|pg_\w+)\b/g;
	push @programs, 'pg_dump' if $option->{beside} =~ /\bdump\b/i;
	return map { script($_, @words) } grep { -x } glob('script/* test/mutants/run') unless @scripts || @programs;
	return () if grep { !server_program($_, @words) } @programs;
	my @said = map { [ script($_, @words) ] } @scripts;
	return () if grep { !@$_ } @said;
	return @scripts ? $said[0][0] : "@programs: no option $option->{text}";
}

1;
