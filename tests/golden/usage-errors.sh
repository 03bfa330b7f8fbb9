# Wrong usage: exit 2, a place, and the nearest valid choice.
try() {
	echo "\$ mbsim $*"
	mbsim "$@" 2>&1
	echo "exit $?"
}

try serch
try frobnicate run.yaml
try estimate
try estimate --tpo 3
try estimate model=llama3-8b --top 3
try search --top 0
try search --top
try estimate --top 3 model=llama3-8b
try search --top 0 model=llama3-8b
try search --objective speed
try search --quiet=yes
try estimate --format xml
try estimate --require 'stp_s<=3'
try estimate --require 'step_s<3'
try estimate --batch a.jsonl model=llama3-8b
try estimate --batch "nothing.jsonl"
try estimate nothing.yaml
try list
try list modls
try list models nothing-like-this
try list --format json modls
try check model=llama3-8b hardware=dgx-h100 gpus=8 gbs=8 --threads 2 seq=4k
try estimate model=llama3-8b hardware=dgx-h100 gpus=8 gbs=8 seq=4096 --output /nonexistent/out
printf 'model,hardware,gpus,gbs,seq,step_s\nllama3-8b,dgx-h1000,8,64,8192,3.2\n' >"$TMP/runs.csv"
cd "$TMP" && try calibrate runs.csv
