# The words that were given up for the terms of the field, and the turns of phrase that
# are not English as PostgreSQL's manual has it, do not come back where users see them:
# documents, the report and its plots, messages, descriptions, SQL.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

# What was said before, and what is said now.  A term is found as whole words, in
# any case; a blank in it can be the end of a line.
my @terms = (
	[ 'set(s|ting)? back|set[_-]backs?', 'a backward step; the clock stepped backwards' ],
	[ 'fences?|fenced', 'allowlist; restrict the sources' ],
	[ 'ma(ke|kes|king|de) (\w+ ){0,2}values?', 'generate a UUID' ],
	[ 'values? (of|for) now', 'a UUID for the current time' ],
	[ 'values? (that )?(is|are|was|were) made|values? made', 'a UUID that was generated' ],
	[ 'ticks?', 'clock resolution' ],
	[ 'first values? of (a|each|every|the|new) sessions?|sessions?\'s? first values?', 'first-call cost' ],
	[ '(living|alive) (sessions?|transactions?|servers?|processe?s?|connections?|backends?|workers?)', 'an existing session' ],
	[ 'strict(ly)?[ -]order(ed)?', 'monotonic' ]);

# Words with which a sentence, a message or the cell of a table begins.
sub opening
{
	my @words = @_;
	return '(?:(?-i:' . join('|', map { ucfirst } @words) . q{)|(?<=["':|])(?:} . join('|', @words) . ')|(?<=[:|]\s)(?:' . join('|', @words) . '))';
}
my $no_question = '(?![^.?|]*\?)';
my $count = '(\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|twelve|(half|quarter of) an?|thousand|million|few|some|about)';
my $unit  = '(ns|us|µs|ms|s|nanoseconds?|microseconds?|milliseconds?|seconds?|minutes?|hours?|bytes?|kB|MB|GB|instructions?|times|lines?)';

# Turns of phrase, in the same way.
my @phrases = (
	[ opening('who', 'whom') . " \\w$no_question", 'anyone who; a subject' ],
	[ opening('whose') . " \\w$no_question|whose (it|they|this|these) (is|are|was|were)", 'a noun with its verb: "Breakdown:"' ],
	[ '(?<!one\s)who (sees?|knows?|has seen) (an?|one|some|the) (few|others?|values?|UUIDs?)', 'anyone who has seen a few values' ],
	[ 'and whom|whom (they|it|he|she|one|you|superusers)', 'superusers by default; can be granted' ],
	[ opening(qw(allowed refused required measured shown needed missing meant counted excluded included described expected declared wanted known tried new possible))
		  . ' (is|are|was|were)', 'the subject first: "the limit is"' ],
	[ 'shall|shan\'t', 'must; is to; you require' ],
	[ '(has|have|had) not got|(has|have|had)n\'t got', 'does not have; lacks; requires' ],
	[ 'cases? in \d+(\^\d+)?|in one case in', 'with probability 2^-54' ],
	[ '(empty|everywhere|nowhere|all|none|nothing|everything|differ|same|equal|nobody),? but for', 'except for' ],
	[ 'but for (one|an?|its|the) (\w+ ){0,2}(cases?|exceptions?|lines?|bits?)', 'except for' ],
	[ '(is|are|was|were|be|been) spared|spares? (it|that|this|them|you|us|(the|each|every|a) (sessions?|servers?|users?|readers?|calls?|clients?))', 'avoids that cost' ],
	[ "$count $unit an? (calls?|UUIDs?|values?|rows?|seconds?|minutes?|sessions?|transactions?|fetch|refills?|sources?|versions?|requests?|inserts?|lines?)", 'per, not "a", for rates' ],
	[ '(one|once|twice) a (line|row|call|transaction|UUID|value|refill|fetch)', 'per, not "a", for rates' ]);

# Only documents about the code speak of backends; users have sessions.
my $script = qr{^(?:script/|test/mutants/run$)};
my $about_code = qr{^doc/internals/};
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
		# String literals only.
		return join "\n", map { join ',', /"(?:\\.|[^"\\])*"/g } grep { !/^\s*#\s*include/ } split /\n/, $text;
	}
	$text =~ s/--[^\n]*//g if $file =~ /\.sql$/;

	# A value in pg_stat_activity.
	$text =~ s/('client backend')/$blank->($1)/ge;
	# What --help prints is the comment at the head of a script.
	$text =~ s/^# ?/  /mg if $file =~ $script;
	return $text;
}

my %kinds = (
	'documents' => [ glob('*.md doc/*.md doc/*/*.md') ],
	'the report, plots and pictures' => [ glob('bench/results/*.md bench/results/*.svg bench/results/*.csv doc/pictures/*.svg') ],
	'messages and descriptions in the library' => [ glob('src/*.[ch] src/*/*.[ch]') ],
	'names and comments in SQL' => [ glob('sql/*.sql') ],
	'descriptions of the packages' => [ glob('*.control META.json packaging/* debian/control* .github/*/*') ],
	'the scripts, their help and their messages' => [ glob('script/* test/mutants/run') ]);

foreach my $kind (sort keys %kinds)
{
	my @found;
	foreach my $file (@{ $kinds{$kind} })
	{
		my @looked_for = (@terms, @phrases, $file =~ $about_code || $file =~ $script ? () : @terms_for_users);
		push @found, map { "$file, $_" } found(seen($file), @looked_for);
	}
	cmp_ok(scalar(@{ $kinds{$kind} }), '>', 0, "$kind are there");
	is(join("\n", @found), '', "$kind: no word or phrase that was given up");
}

# The search finds what it is for, and nothing else.
is(scalar found("The clock was set\nback, by a tick: a FENCE.", @terms), 3, 'a term is found in any case and across lines');
is(scalar found('Offsets back up sticky defences.', @terms), 0, 'parts of words are not');
foreach my $pair (
	[ 'Who sees a few values can calculate the others.', 'The owner, who can grant it, sees a few of them.' ],
	[ 'A living session goes on from its latest value.', 'An existing session continues from its latest value.' ],
	[ 'The script is then empty but for the first line.', 'It disables the limit, but for observed UUIDs it means one second.' ],
	[ 'errdetail("allowed are %d ms")', 'errdetail("the limit is %d ms; what is allowed is refused here")' ],
	[ 'Whose they are: two of three.', 'Breakdown: two of three, whose times are known. Whose are they?' ],
	[ "It takes 18 ns a call.", "It takes 18 ns per call. Names, one per line. | setting | who | default |" ])
{
	my ($foreign, $english) = @$pair;
	cmp_ok(scalar found($foreign, @phrases, @terms), '>', 0, "found: $foreign");
	is(join("\n", found($english, @phrases)), '', "not found: $english");
}

# Where the promise is made it has its name.
foreach my $file ('README.md', 'doc/ordering.md')
{
	like(slurp_file($file), qr/monotonic\s+\(RFC\s+9562,\s+section\s+6\.2\)/, "$file calls the promise by its name");
}

done_testing();
