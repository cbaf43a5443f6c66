# The words that were given up for the terms of the field do not come back where
# users see them: documents, the report and its plots, messages, descriptions, SQL.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

# What was said before, and what is said now.  A term is found as whole words, in
# any case; a blank in it can be the end of a line.
my @terms = (
	[ 'set(s|ting)? back|set[_-]backs?', 'a backward step; the clock stepped backwards' ],
	[ 'largest_lead|lead interval|`lead`', 'clock_lead, largest_clock_lead; ahead of the clock' ],
	[ 'why_not', 'reason' ],
	[ 'fences?|fenced', 'allowlist; restrict the sources' ],
	[ 'stages?|(un)?staged|staging', 'buffer, buffered, unbuffered' ],
	[ 'pieces?', '64-bit word' ],
	[ 'ma(ke|kes|king|de) (\w+ ){0,2}values?', 'generate a UUID' ],
	[ 'values? (of|for) now', 'a UUID for the current time' ],
	[ 'values? (that )?(is|are|was|were) made|values? made', 'a UUID that was generated' ],
	[ 'floor', 'baseline' ],
	[ 'ticks?', 'clock resolution' ],
	[ 'sets? aside|setting aside', 'reserve' ],
	[ 'weakness(es)?', 'vulnerability' ],
	[ 'throwaway roots?', 'chroot' ],
	[ 'first values? of (a|each|every|the|new) sessions?|sessions?\'s? first values?', 'first-call cost' ],
	[ 'living sessions?', 'an existing session' ],
	[ 'strict(ly)?[ -]order(ed)?', 'monotonic' ],
	[ 'clusters?|cluster-wide', 'instance' ],
	[ 'fu_\w*', 'fuuid_' ],
	[ 'take_moment|\w+_(follow|fill_tick)|ordering_step|ordering_cluster', 'names that say what comes out' ]);

# Where a term is right, and why.
my @exceptions = (
	[ 'database clusters?', "PostgreSQL's own term for what initdb creates" ],
	[ '--second-stage', "debootstrap's option" ]);

# Only documents about the code speak of backends; users have sessions.
my $about_code = qr{^doc/(internals|reliability)\.md$};
my @terms_for_users = ([ 'backends?', 'session' ]);

sub pattern
{
	my $term = shift;
	$term =~ s/ /(?:\\h+|\\h*\\n\\h*)/g;
	return qr/(?<!\w)(?:$term)(?!\w)/i;
}

# The terms that a text has, each with the line it is in.
sub found
{
	my ($text, @looked_for) = @_;
	my @found;

	foreach my $exception (@exceptions)
	{
		my $right = pattern($exception->[0]);
		$text =~ s/($right)/$1 =~ s{\S}{-}gr/ge;
	}
	foreach my $term (@looked_for)
	{
		my ($old, $new) = @$term;
		my $pattern = pattern($old);
		while ($text =~ /($pattern)/g)
		{
			my $line = 1 + substr($text, 0, $-[0]) =~ tr/\n//;
			push @found, "line $line: \"$1\", instead of: $new";
		}
	}
	return @found;
}

# What a reader of the file sees of it; the lines stay where they are.
sub seen
{
	my $file = shift;
	my $text = slurp_file($file);
	my $blank = sub { $_[0] =~ s/[^\n]/ /gr };

	if ($file =~ /\.[ch]$/)
	{
		# String literals only; two with nothing but a comment between them are one.
		my $literals = '';
		$text =~ s/^\s*#\s*include.*//mg;
		while ($text =~ m{\G(?:(\s+|/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\])*")|'(?:\\.|[^'\\])*'|.)}gs)
		{
			$literals .= defined $1 ? $blank->($1) : defined $2 ? $2 =~ s/\\./  /gsr : ',';
		}
		return $literals =~ s/"(\s*)"/$1/gr;
	}
	$text =~ s/--[^\n]*//g if $file =~ /\.sql$/;
	if ($file =~ /\.svg$/)
	{
		# Matplotlib draws its text, and says in a comment what it is.
		$text =~ s/(.*?)(<!--.*?-->|$)/$blank->($1) . $2/ges;
	}
	# A value in pg_stat_activity.
	$text =~ s/('client backend')/$blank->($1)/ge;
	# What --help prints is the comment at the head of a script.
	$text =~ s/^# ?/  /mg if $file =~ m{^script/};
	return $text;
}

my %kinds = (
	'documents' => [ glob('*.md doc/*.md') ],
	'the report and its plots' => [ glob('bench/results/*.md bench/results/*.svg bench/results/*.csv') ],
	'messages and descriptions in the library' => [ glob('src/*.[ch]') ],
	'names and comments in SQL' => [ glob('sql/*.sql') ],
	'descriptions of the packages' => [ glob('*.control META.json packaging/* debian/control* .github/*/*') ],
	'the scripts, their help and their messages' => [ glob('script/*') ]);

foreach my $kind (sort keys %kinds)
{
	my @found;
	foreach my $file (@{ $kinds{$kind} })
	{
		my @looked_for = (@terms, $file =~ $about_code || $file =~ m{^script/} ? () : @terms_for_users);
		push @found, map { "$file, $_" } found(seen($file), @looked_for);
	}
	cmp_ok(scalar(@{ $kinds{$kind} }), '>', 0, "$kind are there");
	is(join("\n", @found), '', "$kind: no word that was given up");
}

# The search finds what it is for, and nothing else.
is(scalar found("The clock was set\nback, at the floor: a FENCE.", @terms), 3, 'a term is found in any case and across lines');
is(scalar found('Buffers back up the baseline of a database cluster, misstaged.', @terms), 0,
	'parts of words and exceptions are not');

# Where the promise is made it has its name.
foreach my $file ('README.md', 'doc/ordering.md')
{
	like(slurp_file($file), qr/monotonic\s+\(RFC\s+9562,\s+section\s+6\.2\)/, "$file calls the promise by its name");
}

done_testing();
