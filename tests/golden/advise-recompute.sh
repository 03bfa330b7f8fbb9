# Moonlight on 8 H100 with the settings of Bridge's recipe: nothing is needed, and the savings do not add up.
run=tests/cases/a/a05-moonlight-recompute-0.yaml
mbsim advise recompute $run
mbsim advise recompute $run --target 33.6 --emit
