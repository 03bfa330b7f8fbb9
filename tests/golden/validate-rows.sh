# Rows that cannot be compared: named by place beside those that can, an error alone.
set -- '{"id": "a", "run": {"model": "qwen3-8b", "hardware": "dgx-h100", "gpus": 8, "gbs": 64, "sequence_len": 4096}, "measured": {"step_s": 3}}' \
	'{"id": "b", "run": {"model": "qwen3-8b", "hardware": "dgx-h100", "gpus": 8, "gbs": 64, "seq_length": 4096}, "step_s": 3}'
printf '%s\n' "$@" >"$TMP/rows.jsonl"
cd "$TMP" || exit 1
mbsim validate rows.jsonl
echo "exit $?"
printf '%s\n' '{"id": "c", "run": {"model": "qwen3-8b", "hardware": "dgx-h100", "gpus": 8, "tp": 4, "gbs": 64, "seq_length": 4096}, "measured": {"step_s": 4.5}}' >>rows.jsonl
mbsim validate rows.jsonl
