# What a newcomer sees, and what a slip of the finger gives. A bare `mbsim` must fail: a script's variable was empty.
mbsim
echo "exit $?"
for command in --help 'search --help' 'estimate --help' 'check --help' 'list --help'; do
	echo "$ mbsim $command"
	mbsim $command
	echo "exit $?"
done
