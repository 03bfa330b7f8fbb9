# Activations of four long samples at once.
mbsim explain model=llama3-8b hardware=dgx-h100 gpus=8 gbs=64 seq=8192 mbs=4 cross_entropy_fusion_impl=te --threads 1
