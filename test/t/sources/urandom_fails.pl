# /dev/urandom fails in an existing session: missing, no device, not to be opened,
# ending, or failing while it is read.

use strict;
use warnings;

use Errno qw(EACCES EINTR EIO);
use POSIX qw(mkfifo);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Faults;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node       = start_faulty_node('urandom', preload => 1);
my $device     = '"/dev/urandom"';
my $no_device  = "$device is not a character device.";
my $plain_file = $node->basedir . '/plain_file';
my $pipe       = $node->basedir . '/pipe';
mkfifo($pipe, 0600) or BAIL_OUT("could not make a pipe: $!");
append_to_file($plain_file, join('', map { chr(32 + $_ % 95) } 1 .. 100_000));

check_fault($node, 'urandom', 'missing', "path $plain_file.missing", "Could not open file $device: No such file or directory.");
check_fault($node, 'urandom', 'a plain file', "path $plain_file", $no_device);
check_fault($node, 'urandom', 'a folder', 'path ' . $node->basedir, $no_device);
check_fault($node, 'urandom', 'a pipe', "path $pipe", $no_device);
check_fault($node, 'urandom', 'unreadable', 'open ' . EACCES, "Could not open file $device: Permission denied.");
check_fault($node, 'urandom', 'another device', 'path /dev/zero', "$device is not the kernel's random device.");
check_fault($node, 'urandom', 'an end', 'read end', "$device returned no data.");
check_fault($node, 'urandom', 'an input error', 'read ' . EIO, "Could not read file $device: Input/output error.");
check_fault($node, 'urandom', 'an input error after 3 bytes', 'read part', "Could not read file $device: Input/output error.");
check_fault($node, 'urandom', 'interrupted for ever', 'read ' . EINTR, "Could not read file $device: Interrupted system call.");
check_fault($node, 'urandom', 'no lookup of what was opened', 'fstat ' . EIO, "Could not stat file $device: Input/output error.");

# What is no fault.
my $session = session_of($node, "SET fast_uuid.buffer_size = 4096; SELECT inject_fault('read short')");
check_working($session, 'urandom', 'reads of 3 bytes, some of them interrupted, are continued');
$session->quit;

stop_faulty_node($node);
done_testing();
