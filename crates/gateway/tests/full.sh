# TCP between two hosts through a gateway that writes to a disk of 64 kB: the folder $DISK, in a mount
# namespace of our own. What is there at the end is copied beside it.
mount -t tmpfs -o size=64k disk "$DISK"
. ./hosts.sh
bulk 10.9.0.2 2s
finish
cp "$DISK"/* "$DISK.copy"
