# Mistakes, and help.
mbsim explain
mbsim explain model=llama3-8b hardware=dgx-h100 gpus=8 gbs=64 seq=4096 --format csv
mbsim explain --help
mbsim advise --help
