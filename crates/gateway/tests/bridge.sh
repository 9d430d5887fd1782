# TCP over IPv4 and IPv6 between two hosts.
. ./hosts.sh
bulk 10.9.0.2 2s
bulk fd09::2 2s
finish
