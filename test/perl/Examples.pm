# The SQL examples of the documents.

package Examples;

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Utils;

our @EXPORT = qw(examples);

# examples(PAGE, ...): each ```sql of these pages.  A word after that says what the example
# requires: "18+" that version of PostgreSQL or a later one, "pgcrypto" that extension.
sub examples
{
	my $text = join '', map { slurp_file($_) } @_;
	my @examples;
	while ($text =~ /^```sql(?: (\S+))?\n(.*?)^```$/msg)
	{
		my ($requires, $sql) = ($1 // '', $2);
		my $version = $requires =~ /^(\d+)\+$/ ? $1 : 0;
		my $extension = $version ? '' : $requires;
		push @examples, { sql => $sql, version => $version, extension => $extension };
	}
	return @examples;
}

1;
