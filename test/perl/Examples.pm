# The SQL examples of the documents.

package Examples;

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Utils;

our @EXPORT = qw(pages examples offers);

# Those that may have any.
sub pages
{
	return ('README.md', glob('doc/*.md'));
}

# examples(PAGE): what the page says in ```sql, in its order.  A word after that says
# what the example requires: "18+" that version of PostgreSQL or a later one,
# "pgcrypto" that extension.
sub examples
{
	my ($page) = @_;
	my $text = slurp_file($page);
	my @examples;

	while ($text =~ /^```sql(?: (\S+))?\n(.*?)^```$/msg)
	{
		my ($requires, $sql) = ($1 // '', $2);
		my %example = (sql => $sql, version => 0, extension => '');
		$example{ $requires =~ s/^(\d+)\+$/$1/ ? 'version' : 'extension' } = $requires if $requires;
		push @examples, \%example;
	}
	return @examples;
}

# Is there an extension to create on this server, and of this version, "5, 2", or a
# later one?
sub offers
{
	my ($node, $extension, $least) = @_;
	return $node->safe_psql('postgres',
		"SELECT string_to_array(substring(default_version FROM '^\\d+\\.\\d+'), '.')::int[] >= '{$least}'"
		  . " FROM pg_available_extensions WHERE name = '$extension'") eq 't';
}

1;
