# The run in a document is the whole run: given back it has the same memory and step, on a machine that was changed too.
again() {
	mbsim estimate "$@" --format json >"$TMP/first"
	awk '/^\t"run":/ { print "{"; inside = 1; next } inside { print } inside && /^\t}/ { exit }' "$TMP/first" | sed '$s/,$//' >"$TMP/run.json"
	mbsim estimate "$TMP/run.json" --format json >"$TMP/second"
	for file in first second; do
		awk '/^\t"memory":/ { found = 1 } found { print }' "$TMP/$file" >"$TMP/$file.numbers"
	done
	test -s "$TMP/first.numbers" && cmp "$TMP/first.numbers" "$TMP/second.numbers" && echo "$*: the same"
}

again model=llama3-8b hardware=dgx-h100 gpus=8 gbs=64 seq=8192 tp=2
again model=llama3-8b hardware=dgx-h100 gpus=8 gbs=64 seq=8192 tp=2 hardware.hbm=1.5x
again model=qwen3-30b-a3b hardware=dgx-h100 gpus=16 gbs=64 seq=4096 ep=16 hardware.hbm=2x hardware.scale_out=0.5x
again model=llama3-8b hardware=dgx-h100 gpus=8 gbs=64 seq=8192 hardware.hbm=1.5x hardware.hbm=2x

# A change that is said twice is the later one, not both.
usable() { mbsim estimate model=llama3-8b hardware=dgx-h100 gpus=8 gbs=64 seq=8192 "$@" --format json | grep usable_bytes; }
echo 'hardware.hbm: 1.5x' >"$TMP/larger.yaml"
usable hardware.hbm=2x
usable hardware.hbm=1.5x hardware.hbm=2x
usable hardware.hbm=2x "$TMP/larger.yaml"
