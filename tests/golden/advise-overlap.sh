# Qwen3-30B-A3B on 16 H100: HybridEP with overlap; delayed weight gradients tie. A dense model has nothing to overlap.
run='model=qwen3-30b-a3b hardware=dgx-h100 gpus=16 gbs=1024 seq=4096 ep=16 cross_entropy_fusion_impl=te'
mbsim advise overlap $run
mbsim advise overlap $run --emit
mbsim advise dispatcher $run --quiet
mbsim advise overlap model=llama3-8b hardware=dgx-h100 gpus=8 gbs=64 seq=4096 tp=2 sp=true
