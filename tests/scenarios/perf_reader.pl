#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Reads the text of perf script by the rules of two programs, and prints what each makes of it, a function each:
#   RULES|name|samples or weight of its own|the same with all above it
# flamescope: a sample is worth 1, whatever its period; names are cut at "+" and split at "->". collapse (stackcollapse-perf.pl): the
# period is the weight; names are cut at "(", what begins with it is no frame. Lines that one of them does not know end it with an error.
use strict;
use warnings;

my (%own, %all, @frames, %weight, $event, $began, $ended);

sub count {
    my ($rules, $worth, @stack) = @_;    # the innermost first
    my %seen;
    $own{"$rules|$stack[0]"} += $worth;
    $all{"$rules|$_"} += $worth for grep { !$seen{$_}++ } @stack;
}

sub end_sample {
    return unless %weight;
    die "line $.: a sample without frames\n" unless @frames;
    my (@flamescope, @collapse);
    for my $frame (@frames) {
        $frame =~ /^[\t ]*[0-9a-fA-F]+ (.+) \((.*?)\)$/ or die "line $.: no frame for FlameScope: $frame\n";
        (my $name = $1) =~ s/\+.*//;
        push @flamescope, reverse split /->/, $name;
        $frame =~ /^\s*(\w+)\s*(.+) \((\S*)\)/ or die "line $.: no frame for stackcollapse: $frame\n";
        ($name = $2) =~ s/\(.*//;
        push @collapse, $name if $name ne '';
    }
    count('flamescope', $weight{flamescope}, @flamescope);
    count('collapse', $weight{collapse}, @collapse);
    @frames = %weight = ();
}

while (my $line = <STDIN>) {
    chomp $line;
    if ($line eq '') {
        end_sample();
    } elsif ($line =~ /^\S/) {
        $line =~ / +([0-9.]+): .+?:/ or die "line $.: no event for FlameScope: $line\n";
        my $time = $1;
        die "line $.: a digit in the command cuts it\n" if $line =~ /^[^ ]*[0-9]/;
        $line =~ /^(\S.+?)\s+(\d+)\/*(\d+)*\s+/ or die "line $.: no process for stackcollapse: $line\n";
        $line =~ /:\s*(\d+)*\s+(\S+):\s*$/ or die "line $.: no event for stackcollapse: $line\n";
        my ($period, $name) = ($1, $2);
        die "line $.: another event, which stackcollapse leaves out\n" if defined $event && $name ne $event;
        die "line $.: time goes back\n" if defined $ended && $time < $ended;
        ($event, $ended) = ($name, $time);
        $began //= $time;
        %weight = (flamescope => 1, collapse => $period);
    } else {
        push @frames, $line;
    }
}
die "the last sample has no end\n" if %weight;
printf "%s|%d|%d\n", $_, $own{$_} // 0, $all{$_} for sort keys %all;
printf "seconds||%.6f|%.6f\n", $ended - $began, $ended - $began;
