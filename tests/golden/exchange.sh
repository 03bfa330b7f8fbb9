# A script becomes a run that estimate takes; a run becomes a script that import takes back.
cd "$TMP" || exit 1
cat >pretrain.sh <<'EOF'
#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=2
MODEL=(--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention
	--num-query-groups 8 --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope
	--untie-embeddings-and-output-weights --vocab-size 128256 --made-up-flag)
torchrun --nproc_per_node 8 pretrain_gpt.py "${MODEL[@]}" --seq-length 4096 --bf16 \
	--tensor-model-parallel-size $TP --sequence-parallel --micro-batch-size 1 --global-batch-size ${GBS} # no GBS
EOF
mbsim import pretrain.sh
echo "exit $?"
mbsim import pretrain.sh GBS=64 gpus=8 --output run.yaml
echo "exit $?"
cat run.yaml
mbsim export run.yaml --to sbatch --output run.sbatch
mbsim import run.sbatch --output again.yaml
for file in run again; do
	mbsim estimate $file.yaml --format json >$file.json 2>/dev/null
	grep -o '"step_s":[^,]*' $file.json | head -1 >$file.step
done
cmp run.step again.step && echo same
mbsim export run.yaml
echo "exit $?"
mbsim export run.yaml --to hydra
echo "exit $?"
mbsim import run.yaml two.yaml
echo "exit $?"
