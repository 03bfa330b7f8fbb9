# A log that shows fragmentation, a run too large, one that fits; and mistakes.
cat >"$TMP/train.log" <<'LOG'
 iteration        1/      50 | consumed samples:           32 |
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 522.56 MiB is free. Including non-PyTorch memory, this process has 78.59 GiB memory in use. Of the allocated memory 54.76 GiB is allocated by PyTorch, and 19.52 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.
LOG
mbsim advise oom tests/cases/a/a17-llama3-70b-sft-0.yaml <"$TMP/train.log"
mbsim advise oom tests/cases/a/a17-llama3-70b-sft-0.yaml --emit <"$TMP/train.log"
mbsim advise oom model=llama3-70b hardware=dgx-h100 gpus=64 gbs=256 seq=8192 tp=4 pp=4 sp=true --quiet
mbsim advise oom model=llama3-8b hardware=dgx-h100 gpus=8 gbs=64 seq=4096 tp=2 sp=true
mbsim advise recompte model=llama3-8b
mbsim advise overlap model=llama3-8b --allocated 5
mbsim advise oom model=llama3-8b --allocated many
