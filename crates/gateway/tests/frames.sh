# Raw frames from one host to the other: $FRAMES says how they are sent, those to send are in the file
# $SENT, those that come are written to $CAME.
. ./hosts.sh
nsenter -t $right -n python3 frames.py receive > "$CAME" & receiver=$!
# Until it has its socket, below the head of the list.
until [ "$(nsenter -t $right -n cat /proc/net/packet | wc -l)" -gt 1 ]; do sleep 0.05; done
nsenter -t $left -n python3 frames.py $FRAMES < "$SENT"
sleep 0.7
kill $receiver
finish
