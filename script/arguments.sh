# The arguments of scripts; sourced by common.sh.  A wrong one is
# refused in one sentence before anything is begun.

# For messages: its path in this checkout
this_script=$(readlink -f "$0")
this_script=${this_script#"$top/"}

# usage STATUS: print the comment at the head of the script, and exit
usage()
{
	sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
	exit "$1"
}

# refuse SENTENCE: about an argument or a variable
refuse()
{
	printf '%s: %s\n"%s --help" says what there is.\n' "$this_script" "$1" "$this_script" | complain
	told=yes
	exit 2
}

# check_value KIND NAME VALUE: a NUMBER, a COUNT (a number above 0), one of "this|that",
# or of any other kind, but not empty
check_value()
{
	case $1 in
		NUMBER) [[ $3 =~ ^[0-9]{1,9}$ ]] || refuse "$2 needs a whole number${3:+, not \"$3\"}" ;;
		COUNT) [[ $3 =~ ^0*[1-9][0-9]{0,8}$ ]] || refuse "$2 needs a whole number above 0${3:+, not \"$3\"}" ;;
		*\|*) [[ $3 && "|$1|" = *"|$3|"* ]] || refuse "$2 needs one of ${1//|/, }${3:+, not \"$3\"}" ;;
		*) [ -n "$3" ] || refuse "$2 needs a value: $1" ;;
	esac
}

# read_arguments [DECLARATION]... -- [ARGUMENT]...: sort the arguments of a script.
# A declaration is --OPTION; --OPTION=KIND, an option with a value; WORD; or "..." for
# any words.  Afterwards given[--OPTION] is the latest value ("yes" for an option without),
# options are all options with their values, and words the words.
declare -A given=()
options=() words=()
read_arguments()
{
	local declared=() known option value name
	while [ "$1" != -- ]; do
		declared+=("$1")
		shift
	done
	shift
	while [ $# -gt 0 ]; do
		option=${1%%=*} known=''
		for name in "${declared[@]}"; do
			case $1 in
				-*) [ "${name%%=*}" != "$option" ] || known=$name ;;
				?*) [ "$name" != "$1" ] && [ "$name" != ... ] || known=$name ;;
			esac
		done
		if [ "$1" = --help ] || [ "$1" = -h ]; then
			usage 0
		elif [ -z "$known" ]; then
			refuse "unknown: \"$1\""
		elif [[ $1 != -* ]]; then
			words+=("$1")
		elif [ "$known" = "$option" ]; then
			[ "$1" = "$option" ] || refuse "$option has no value"
			given[$option]=yes
			options+=("$option")
		else
			if [ "$1" = "$option" ]; then
				value=${2-}
				[[ $value != --* ]] || value=
				[ $# = 1 ] || shift
			else
				value=${1#*=}
			fi
			check_value "${known#*=}" "$option" "$value"
			given[$option]=$value
			options+=("$option" "$value")
		fi
		shift
	done
	check_version
}

# The oldest PostgreSQL that the extension works on.
oldest=15

check_version()
{
	[ -z "${PG_VERSION:-}" ] || [[ $PG_VERSION =~ ^[1-9][0-9]?$ ]] ||
		refuse "PG_VERSION=$PG_VERSION is no major version of PostgreSQL, such as 17"
	[ "${PG_VERSION:-$oldest}" -ge "$oldest" ] ||
		refuse "PG_VERSION=$PG_VERSION: fast_uuid requires PostgreSQL $oldest or later"
}
