# Sourced by the run-* scripts: one TAP line per case on standard output, the details of a
# failure on standard error, where meson does not hide them.

count=0
failed=0

# pass NAME
pass() {
	count=$((count + 1))
	echo "ok $count - $1"
}

# fail NAME [FILE]: FILE says why
fail() {
	count=$((count + 1))
	failed=$((failed + 1))
	echo "not ok $count - $1"
	{
		echo "$1:"
		[ -z "${2-}" ] || sed 's/^/  /' "$2"
	} >&2
}

# finish: the plan, and the exit status. No case at all is a failure: a moved folder must not look like a green test.
finish() {
	echo "1..$count"
	if [ "$count" -eq 0 ]; then
		echo "Bail out! no cases in ${0##*/}"
		exit 1
	fi
	[ "$failed" -eq 0 ]
	exit
}

# The user's settings must not reach a test.
unset MBSIM_DATA NO_COLOR COLUMNS CLICOLOR CLICOLOR_FORCE
TERM=dumb
LC_ALL=C.UTF-8
export TERM LC_ALL

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
