# A server with a test build of the library, whose sessions can be held up between two steps
# (src/feed.h), until others have done theirs.

package TestPoints;

use strict;
use warnings;

use Cwd;
use Exporter qw(import);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Watchdog;

our @EXPORT = qw(new_test_build hold_at let_go);

my $library = 'fast_feed';
my $points = getcwd() . '/test/modules/test_points';
my $node;

# new_test_build(NAME, LINE...): a server with these settings, not started.  Its functions
# are those of the build, which needs the points to be there; the library that is installed is
# not loaded any more.
sub new_test_build
{
	my ($name, @settings) = @_;
	my $build = PostgreSQL::Test::Utils::tempdir() . '/build';
	delete local @ENV{qw(MAKEFLAGS MAKELEVEL)};
	mkdir $build or die "could not create $build: $!";
	system_or_bail('cp', '-R', 'Makefile', "$library.control", 'src', 'sql', $build);
	my @make = ('make', '-s', '-C', $build, 'PG_CONFIG=pg_config');
	system_or_bail(@make, 'clean');
	system_or_bail(@make, "$library.so", 'TEST_POINTS=yes', 'ASSERTIONS=yes');
	$node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->start;
	$node->safe_psql('postgres', qq{
CREATE EXTENSION $library;
UPDATE pg_proc SET probin = '$build/$library' WHERE probin = '$library'});
	$node->append_conf('postgresql.conf', join "\n", 'autovacuum = off', @settings,
		"shared_preload_libraries = '$points, $build/$library'\n");
	$node->stop;
	return $node;
}

sub file
{
	my ($name) = @_;
	return $node->data_dir . "/test_point.$name";
}

# Let a session that has {pid} do something, and go no further than the point.
sub hold_at
{
	my ($session, $name, $work) = @_;
	my $reached = file("$name.reached");
	unlink $reached;
	append_to_file(file("$name.new"), $session->{pid});
	rename(file("$name.new"), file($name)) or die "could not rename: $!";
	$work->();
	wait_until("$name is reached", sub { -e $reached || $session->has_answer });
	die "$name is not reached\n" unless -e $reached;
	return;
}

sub let_go
{
	my ($name) = @_;
	unlink file($name) or die "could not remove: $!";
	return;
}

1;
