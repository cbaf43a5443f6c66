# script/mutants --regression: makes each mutant that test/mutants/list names, in a
# copy of this checkout, runs the test that must notice it, and fails if one does not.

for word; do
	grep -v '^#' "$top/test/mutants/list" | grep -F -- "$word" >/dev/null || die "no mutant in test/mutants/list has \"$word\""
done
install_server libipc-run-perl faketime strace
build_copy
prepare_server_tests
as_user make -s test-modules

build_for()
{
	case $1 in
		unit:*) as_user make -s "test/unit/${1#*:}" ;;
		*) as_user make -s install DESTDIR="$work/install" ;;
	esac
}

run_test()
{
	local name=${1#*:}
	case $1 in
		unit:*) as_user "test/unit/$name" ;;
		sql:*) with_server make -s installcheck TAP_TESTS= REGRESS="$name" ;;
		t:*)
			as_user timeout 300 make -s installcheck REGRESS= PROVE_TESTS="test/t/$name.pl"
			;;
	esac
}

killed=0 survived=0 skipped=0
say "Mutants"
while IFS= read -r line; do
	case $line in '' | '#'*) continue ;; esac
	if [ $# -gt 0 ] && ! grep -qF "$(printf '%s\n' "$@")" <<<"$line"; then
		continue
	fi
	file=${line%% :: *}
	rest=${line#* :: }
	change=${rest% :: *}
	read -r test since <<<"${rest##* :: }"
	if [ "$version" -lt "${since:-0}" ]; then
		echo "skipped   $test (PostgreSQL $since)  $file: $change"
		skipped=$((skipped + 1))
		continue
	fi
	as_user cp "$file" "$work/tmp/original"
	as_user perl -0pi -e "$change" "$file"
	if cmp -s "$file" "$work/tmp/original"; then
		die "no longer applies: $line"
	fi
	if ! build_for "$test" >"$work/mutant.log" 2>&1; then
		tail -n 20 "$work/mutant.log"
		die "does not compile: $line"
	fi
	if run_test "$test" >"$work/mutant.log" 2>&1; then
		echo "SURVIVED  $test  $file: $change"
		survived=$((survived + 1))
	else
		echo "killed    $test  $file: $change"
		killed=$((killed + 1))
	fi
	as_user cp "$work/tmp/original" "$file"
done <test/mutants/list
say "Mutants: $killed killed, $survived survived, $skipped skipped"
[ "$survived" = 0 ]
