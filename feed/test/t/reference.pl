# The reference has every function that users call, as the catalog has it, and each column of those
# that return rows; and each message that operations.md explains is in the sources.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;

my $node = start_node('reference');
my $reference = slurp_file('doc/reference.md');

my @functions = split /\n/, $node->safe_psql('postgres', q{
SELECT proname || '(' || regexp_replace(regexp_replace(pg_get_function_arguments(oid), ',? ?OUT .*', ''), '::\w+', '', 'g')
         || ') → ' || CASE WHEN proretset THEN 'table' ELSE pg_get_function_result(oid) END
  FROM pg_proc WHERE pronamespace = 'fast_feed'::regnamespace AND proname !~ '_as_owner$'
   AND prorettype <> 'trigger'::regtype});
cmp_ok(@functions, '>', 5, 'functions');
foreach my $function (@functions)
{
	$function =~ s/00:00:01/1 s/;
	$function =~ s/ +DEFAULT NULL,/ DEFAULT NULL,/;
	like($reference, qr/^\| `\Q$function\E` \|/m, $function);
}
my @documented = $reference =~ /^\| `\w+\(.* → \w+` \|/mg;
is(@documented, @functions, 'no other functions');

my @columns = split /\n/, $node->safe_psql('postgres', q{
SELECT DISTINCT name FROM pg_proc, unnest(proargnames, proargmodes) AS argument (name, mode)
 WHERE pronamespace = 'fast_feed'::regnamespace AND mode = 'o'});
like($reference, qr/`$_`/, "column $_") foreach @columns;

my $sources = join '', map { slurp_file($_) } glob 'src/*.c sql/*.sql';
$sources =~ s/\\"/"/g;
$sources =~ s/"%s"|%s?/.../g;
my @messages = slurp_file('doc/operations.md') =~ /^\| ([a-z].*? \((?:\d{5})\)) \|/mg;
cmp_ok(@messages, '>', 4, 'messages');
foreach my $message (@messages)
{
	my ($words) = $message =~ /(.*) \(/;
	like($sources, qr/["']\Q$words\E["']/, $message);
}
$node->stop;
done_testing();
