#!/usr/bin/env perl
# Finds the safe-run program and replaces itself with it. Contract: M0-v0.1.0
#
# Passes arguments, streams, environment and exit code through unchanged.
# Uses the first of these that exists:
#   1. $SAFE_RUN_BIN, without a check
#   2. <root>/rust/target/release/safe-run, <root>/target/release/safe-run
#   3. <root>/dist/<linux|macos|windows>/<x86_64|aarch64>/safe-run
#   4. safe-run on the PATH
# <root> is the nearest folder above this file that contains .git or RFC-Shared-Agent-Scaffolding-v0.1.0.md.
# Exit codes: 127 if none exists; 126 if the one in $SAFE_RUN_BIN cannot be executed.

use strict;
use warnings;
use Cwd qw(realpath);
use Errno qw(ENOENT);
use File::Basename qw(dirname);
use File::Spec::Functions qw(catfile path);
use POSIX ();

sub become {
    my ($program) = @_;
    if ($^O eq 'MSWin32') {
        my $code = system {$program} $program, @ARGV;
        exit($code == -1 ? 126 : $code >> 8);
    }
    no warnings 'exec';
    exec {$program} $program, @ARGV;
    return $!;
}

if (defined $ENV{SAFE_RUN_BIN} && $ENV{SAFE_RUN_BIN} ne '') {
    my $error = become($ENV{SAFE_RUN_BIN});
    print STDERR "ERROR: SAFE_RUN_BIN: $ENV{SAFE_RUN_BIN}: $error\n";
    exit($error == ENOENT ? 127 : 126);
}

my $this = realpath(__FILE__);
my $root = dirname($this);
until (-e catfile($root, '.git') || -e catfile($root, 'RFC-Shared-Agent-Scaffolding-v0.1.0.md') || dirname($root) eq $root) {
    $root = dirname($root);
}

my %systems = (linux => 'linux', darwin => 'macos', MSWin32 => 'windows', cygwin => 'windows', msys => 'windows');
my $system  = $systems{$^O} // $^O;
my $machine = (POSIX::uname())[4];
$machine = { arm64 => 'aarch64', AMD64 => 'x86_64' }->{$machine} // $machine;
my $name = $system eq 'windows' ? 'safe-run.exe' : 'safe-run';

my @places = (
    catfile($root, 'rust', 'target', 'release', $name),
    catfile($root, 'target', 'release', $name),
    catfile($root, 'dist', $system, $machine, $name),
);
for my $place (@places, map { catfile($_, $name) } path()) {
    # Skips this file, which can have the name of the program.
    next unless -f $place && -x _ && realpath($place) ne $this;
    become($place);
}

my $number = 2;
print STDERR "ERROR: Rust canonical tool not found.\nSearched, in this order:\n  1. SAFE_RUN_BIN (not set)\n";
print STDERR "  ", $number++, ". $_\n" for @places;
print STDERR "  $number. safe-run on the PATH\n";
print STDERR "Hint: build it with 'cargo build --release', or set SAFE_RUN_BIN to where it is\n";
exit 127;
