# Plan N of a search by any objective is its row N, at risk or not; the lines under the list say which search.
run='model=llama3-8b hardware=dgx-h100 gpus=16,8 gbs=128 seq=8192 tp=1,2 cp=1 --threads 1'
first_step='/"rank":/ { at = $2 + 0 } /"step_s":/ && (!rank || at == rank) { print $2 + 0; exit }'
for objective in step memory cost gpus; do
	mbsim search $run --objective $objective --format json --flat >"$TMP/rows"
	for rank in 1 2 7; do
		row=$(awk -F: -v rank=$rank "$first_step" "$TMP/rows")
		found=$(mbsim estimate $run --objective $objective --rank $rank --format json | awk -F: "$first_step")
		awk -v o="$objective $rank" -v a="$row" -v b="$found" 'BEGIN { print o ": " (a != "" && a == b ? "the same" : a " and " b) }'
	done
done
mbsim search $run --objective gpus --require 'step_s<=8' | grep -o 'mbsim .* --objective.* --rank'
mbsim search $run --objective gpus --require 'step_s<=1' >/dev/null 2>&1
