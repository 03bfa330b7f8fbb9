# A document for each line; an error object in the place of a bad one, with its line in the file; exit 2 at the end.
cat >"$TMP/runs.jsonl" <<'EOF'
{"model": "llama3-8b", "hardware": "dgx-h100", "gpus": 8, "gbs": 8, "seq": 4096, "tp": 8, "sp": true}
{"model": "llama3-8b", "hardware": "dgx-h100", "gpus": 8, "gbs": 8, "seq": 4096, "tpp": 2}

{"model": "llama3-8b", "hardware": "dgx-h100", "gpus": 8, "gbs": 8, "seq": 4096, "tp": 3}
not a run
EOF
cd "$TMP" || exit 1
mbsim estimate --batch runs.jsonl >out
echo "exit $?"
sed 's/^\({"schema":"mbsim.estimate\/1"\).*"verdict":\("[a-z_]*"\).*/\1 ... \2/' out
# What is printed can be read back, and means the same; only the places of warnings are others.
sed -n '1s/.*"run":\({.*}\),"verdict".*/\1/p' out >again.jsonl
mbsim estimate --batch again.jsonl >out2
echo "exit $?"
for file in out out2; do
	head -1 $file | sed 's/"violations":.*,"memory":/"memory":/' >$file.bare
done
cmp out.bare out2.bare && echo same
