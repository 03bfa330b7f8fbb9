# A log that shows fragmentation, a run too large, one that fits; and mistakes.
mbsim advise oom tests/cases/a/a17-llama3-70b-sft-0.yaml <tests/cases/train.log
mbsim advise oom tests/cases/a/a17-llama3-70b-sft-0.yaml --emit <tests/cases/train.log
mbsim advise oom model=llama3-70b hardware=dgx-h100 gpus=64 gbs=256 seq=8192 tp=4 pp=4 sp=true --quiet
mbsim advise oom model=llama3-8b hardware=dgx-h100 gpus=8 gbs=64 seq=4096 tp=2 sp=true
mbsim advise recompte model=llama3-8b
mbsim advise overlap model=llama3-8b --allocated 5
mbsim advise oom model=llama3-8b --allocated many
