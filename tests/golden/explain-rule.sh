# A rule, and what mends it.
mbsim explain model=llama3-8b hardware=dgx-h100 gpus=8 gbs=64 seq=8192 tp=2 pp=2 vp=5 sp=true --threads 1
