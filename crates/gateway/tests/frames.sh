# Raw frames from one host to the other: $FRAMES says how they are sent, those to send are in the file
# $SENT, those that come are written to $CAME.
. ./hosts.sh
nsenter -t $right -n python3 frames.py receive > "$CAME" & receiver=$!
sleep 0.7
nsenter -t $left -n python3 frames.py $FRAMES < "$SENT"
sleep 0.7
kill $receiver
finish
