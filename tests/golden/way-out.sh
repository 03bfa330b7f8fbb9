# Where nothing is legal or fits, the lines under it are commands that take this run: none is wrong usage.
follow() {
	echo "\$ mbsim $*"
	mbsim "$@" >"$TMP/answer"
	echo "exit $?"
	sed -n '/^next /,$ { s/^next //; s/^ *//; p; }' "$TMP/answer" >"$TMP/next"
	while read -r line; do
		eval "$line" >/dev/null 2>&1 </dev/null
		echo "  $line: exit $?"
	done <"$TMP/next"
}

large='model=llama3.1-405b hardware=a100-pcie gbs=16 seq=8192'
follow search $large gpus=8
follow search $large gpus=16,8
follow search $large gpus=8 tp=8,4
follow search $large gpus=8 tp=auto
# A layout alone cannot mend full recompute beside the overlap: what errors point at is opened too.
follow check model=qwen3-30b-a3b hardware=aws-p5en gpus=96 gbs=288 seq=32768 mbs=2 tp=3 pp=4 ep=5 \
	recompute_granularity=full overlap_moe_expert_parallel_comm=true
