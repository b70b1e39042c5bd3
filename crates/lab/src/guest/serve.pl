# Runs commands for the lab; one connection is one command.
#
# request   "<bytes of words> <bytes of input>\n", the words joined by NUL, the standard input
# answer    "P <pid>\n", then any number of "O <bytes>\n…" and "E <bytes>\n…", at last "X <status>\n"
# meanwhile a line with a number sends that signal to the command's process group; hanging up kills it
use strict;
use warnings;
use Socket;
use POSIX ();

$SIG{CHLD} = 'IGNORE';
socket(my $door, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
setsockopt($door, SOL_SOCKET, SO_REUSEADDR, 1);
bind($door, sockaddr_in($ARGV[0], INADDR_ANY)) or die "bind: $!";
listen($door, 64) or die "listen: $!";
print "serving\n";
while (1) {
    accept(my $peer, $door) or next;
    next if fork;
    close $door;
    serve($peer);
    POSIX::_exit(0);
}

sub take {
    my ($from, $count) = @_;
    my $text = '';
    while (length $text < $count) {
        sysread($from, $text, $count - length $text, length $text) or POSIX::_exit(0);
    }
    return $text;
}

sub say_all {
    my ($to, $text) = @_;
    my $done = 0;
    while ($done < length $text) {
        $done += syswrite($to, $text, length($text) - $done, $done) // return;
    }
}

sub serve {
    my ($peer) = @_;
    my $head = '';
    $head .= take($peer, 1) until $head =~ /\n/;
    my ($words, $input) = split ' ', $head;
    my @words = split /\0/, take($peer, $words), -1;
    open(my $stdin, '+>', undef) or die "temporary file: $!";
    say_all($stdin, take($peer, $input)) if $input;
    sysseek($stdin, 0, 0);

    pipe(my $out, my $out_end);
    pipe(my $err, my $err_end);
    pipe(my $ended, my $ended_end);
    $SIG{CHLD} = sub { syswrite($ended_end, '.') };
    my $pid = fork;
    if (!$pid) {
        setpgrp(0, 0);
        $SIG{CHLD} = 'DEFAULT';
        open(STDIN, '<&', $stdin);
        open(STDOUT, '>&', $out_end);
        open(STDERR, '>&', $err_end);
        exec { $words[0] } @words or print STDERR "$words[0]: $!\n";
        POSIX::_exit(127);
    }
    close $out_end;
    close $err_end;
    say_all($peer, "P $pid\n");
    my %label = (fileno $out => 'O', fileno $err => 'E');
    my $status;
    while (1) {
        my $set = '';
        vec($set, $_, 1) = 1 for keys %label, fileno $peer, fileno $ended;
        # Once the command has ended, only what it left in the pipes is still wanted.
        my $ready = select($set, undef, undef, defined $status ? 0 : undef);
        next if $ready < 0;
        last if defined $status && !grep { vec($set, $_, 1) } keys %label;
        for my $pipe ($out, $err) {
            my $number = fileno $pipe;
            next unless $label{$number} && vec($set, $number, 1);
            my $count = sysread($pipe, my $text, 65536);
            if ($count) { say_all($peer, "$label{$number} $count\n$text") }
            elsif (defined $count) { delete $label{$number} }
        }
        if (vec($set, fileno $ended, 1)) {
            sysread($ended, my $dots, 64);
            if (waitpid($pid, POSIX::WNOHANG()) == $pid) {
                $status = POSIX::WIFEXITED($?) ? POSIX::WEXITSTATUS($?) : 128 + POSIX::WTERMSIG($?);
            }
        }
        if (!defined $status && vec($set, fileno $peer, 1)) {
            my $count = sysread($peer, my $line, 64);
            if ($count && $line =~ /(\d+)/) { kill $1, -$pid }
            else { kill 9, -$pid; POSIX::_exit(0) }
        }
    }
    say_all($peer, "X $status\n");
}
