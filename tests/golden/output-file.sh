# --output: the file appears only when it is complete; a failed run leaves the earlier one alone.
run='model=llama3-8b hardware=dgx-h100 gpus=8 gbs=8 seq=4096'
echo earlier >"$TMP/out"
mbsim estimate $run seq=4k --output "$TMP/out"
echo "exit $?"
cat "$TMP/out"
mbsim check $run --format json --output "$TMP/out"
echo "exit $?"
grep -c '"verdict":	"legal"' "$TMP/out"
mbsim check $run tp=3 --format json --output "$TMP/out"
echo "exit $?"
grep -c '"verdict":	"illegal"' "$TMP/out"
ls "$TMP"
mbsim list keys tp --output /dev/null
echo "exit $?"
