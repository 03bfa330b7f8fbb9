# Two rules about one key: the fix of either satisfies both.
mbsim check model=qwen3-30b-a3b hardware=dgx-h100 gpus=96 gbs=96 seq=4096 pp=4 ep=5
echo "exit $?"
mbsim check model=qwen3-30b-a3b hardware=dgx-h100 gpus=96 gbs=96 seq=4096 pp=4 ep=4 --quiet
