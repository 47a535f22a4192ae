#!/usr/bin/env bash
# The whole story, told by the programs themselves: demo.sh BUILD_DIRECTORY
#
# Every command is shown and then run. Each must end with the status, and say the words, that the story needs; otherwise
# the demo stops and says so. Nothing needs root, and nothing is left behind.
set -euo pipefail
build=$(cd "$1" && pwd)
PATH=$build/policyc:$build/enforcer:$build/client:$PATH
scratch=$(mktemp -d)
enforcer='' client=''
clean_up() {
  [ -z "$client" ] || kill "$client" 2>/dev/null || true
  [ -z "$enforcer" ] || { kill "$enforcer" 2>/dev/null && wait "$enforcer"; } || true
  rm -rf "$scratch"
}
trap clean_up EXIT
cd "$scratch"
export HOME=$scratch XDG_RUNTIME_DIR=$scratch
unset XDG_CONFIG_HOME X0X_SOCKET

bold='' cyan='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' cyan=$'\033[36m' red=$'\033[1;31m' plain=$'\033[0m'; fi
tell() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$cyan" "$*" "$plain"; }
# As one would type it.
quoted() {
  local word line=''
  for word; do
    case $word in *[!A-Za-z0-9_./=:,-]*) word="'$word'" ;; esac
    line+=" $word"
  done
  echo "${line# }"
}
differs() {
  printf '%sdemo: not as the story says: %s%s\n' "$red" "$*" "$plain" >&2
  exit 1
}
trap 'differs "line $LINENO failed"' ERR

# run STATUS WORDS COMMAND…: shows the command, runs it, and insists on its status and on some words of what it says.
run() {
  local expected=$1 words=$2 status=0
  shift 2
  show "$(quoted "$@")"
  output=$("$@" 2>&1) || status=$?
  [ -z "$output" ] || printf '%s\n' "$output"
  [ "$status" = "$expected" ] || differs "\`$*\` ended with $status instead of $expected"
  [[ $output == *"$words"* ]] || differs "\`$*\` did not say \`$words\`"
}

# What is left of the runaway command, wherever it hides: every bash that runs its script from this directory.
runaways() {
  local line process
  { grep -lsz '^runaway\.sh$' /proc/[0-9]*/cmdline || true; } | while read -r line; do
    process=${line%/cmdline}
    [ "$(cat "$process/comm") in $(readlink "$process/cwd")" = "bash in $scratch" ] || continue
    printf '%s: %s\n' "${process#/proc/}" "$(tr '\0' ' ' <"$line" | sed 's/ $//')"
  done 2>/dev/null
}

tell "1. An author writes down who may run what. Two templates, no wildcards, no shell."
agent=$(printf 'ab%.0s' {1..32}) machine=$(printf 'cd%.0s' {1..32})
cat >exec-acl.toml <<TOML
[policy]
name    = "demo"
version = 1

[exec]
enabled        = true
audit_log_path = "$scratch/exec.log"

[[exec.allow]]
description = "ops laptop"
agent_id    = "$agent"
machine_id  = "$machine"

[[exec.allow.commands]]
argv = ["seq", "<INT>"]
max_stdout_bytes = 16                     # the rest is counted and dropped
deny = [["seq", "0"], ["seq", "1", "9"]]  # examples, decided by every compile

[[exec.allow.commands]]
argv = ["printenv"]

[[exec.allow.commands]]
argv   = ["bash", "runaway.sh"]
reason = "the demo needs something that will not end"
max_duration_secs = 3
TOML
run 0 'argv = ["seq", "<INT>"]' cat exec-acl.toml
run 0 'ok, 3 commands in 1 entry' x0x-policyc check exec-acl.toml

tell "2. A mistake is pointed at, and nothing is compiled."
sed 's/<INT>/<INTEGER>/; s/max_stdout_bytes/max_stdot_bytes/; s/"printenv"/"printenv", "A;B"/' exec-acl.toml >broken.toml
run 1 'error[E021]: unknown template' x0x-policyc check broken.toml

tell "3. It becomes a small binary table, signed with a minisign key. A node trusts that signature and nothing else."
run 0 '' x0x-policyc keygen -p policy.pub -s policy.key --no-password
run 0 'demo version 1, 3 commands' x0x-policyc compile exec-acl.toml -o policy.x0xp --key policy.key --expires-in 30d

tell "4. The enforcer checks the table and starts. It has no configuration file and needs no root."
mkdir state
start=(x0x-enforcer --policy policy.x0xp --trust policy.pub --state state --socket enforcer.sock)
run 0 'exec: enabled' "${start[@]}" --doctor
show "SECRET=hunter2 LD_LIBRARY_PATH=/nowhere ${start[*]} &"
SECRET=hunter2 LD_LIBRARY_PATH=/nowhere "${start[@]}" &
enforcer=$!
mkdir -p .config/x0x
printf '%s\n' "agent   = \"$agent\"" "machine = \"$machine\"" "socket  = \"enforcer.sock\"" >.config/x0x/exec.toml
for _ in {1..100}; do
  ! x0x-exec diagnostics >/dev/null 2>&1 || break
  sleep 0.05
done

tell "5. An agent asks. Who it is comes from a small file, so that the commands stay short."
run 0 'agent ' cat .config/x0x/exec.toml
run 0 $'1\n2\n3' x0x-exec -- seq 3

tell "6. The command's environment is built from nothing: the enforcer's own secret is not in it."
run 0 'LANG=C.UTF-8' x0x-exec -- printenv
[ "$(wc -l <<<"$output")" = 4 ] || differs 'there is more in the environment'

tell "7. What the policy does not allow does not run: another argument, a shell's character, another machine, too much time."
run 255 'denied: argv_not_allowed' x0x-exec -- seq 0
run 255 'denied: shell_metachar_in_argv' x0x-exec -- seq '3; id'
run 255 'denied: agent_machine_not_in_acl' x0x-exec --machine "${machine//cd/ef}" -- seq 3
run 255 'denied: timeout_too_large' x0x-exec --timeout 600 -- seq 3

tell "8. Why not? The compiler answers with the very code that decides on the node."
run 1 'nearest' x0x-policyc explain policy.x0xp --agent "$agent" --machine "$machine" -- seq 0

tell "9. A million lines meet the cap of 16 bytes. The command is not disturbed; the rest is counted and dropped."
run 0 'StdoutCapHit' x0x-exec -- seq 999999

tell "10. A command that will not end: it ignores SIGTERM, forks twice and starts sessions of its own. It may take 3 seconds."
cat >runaway.sh <<'RUNAWAY'
trap '' TERM
[ "${1-}" = hidden ] || for i in 1 2 3; do (setsid bash runaway.sh hidden &); done
while :; do sleep 0.1; done
RUNAWAY
run 0 setsid cat runaway.sh
show 'x0x-exec -- bash runaway.sh &'
x0x-exec -- bash runaway.sh >said 2>&1 &
client=$!
for _ in {1..100}; do
  [ "$(runaways | wc -l)" -lt 4 ] || break
  sleep 0.05
done
run 0 'bash runaway.sh' x0x-exec sessions
show "# its processes:"
tree=$(runaways)
echo "$tree"
[ "$(wc -l <<<"$tree")" = 4 ] || differs 'it should have four processes'
status=0
wait "$client" || status=$?
client=''
show "# three seconds later:"
cat said
[[ $status = 255 && $(<said) = *'killed: its time was up'* ]] || differs "the client ended with $status"
left=$(runaways)
[ -z "$left" ] || differs "still running: $left"
echo 'None of them is left.'

tell "11. The audit log: every request was on disk before its command started. Digests and ids are shortened here."
show "kill $enforcer"
kill "$enforcer"
wait "$enforcer" || differs "the enforcer ended with $?"
enforcer=''
run 0 'event:stopped' sed -E 's/([0-9a-f]{4})[0-9a-f-]{28,60}/\1…/g; s/"ts":"[^T]*T//; s/["{}]//g; s/,/ /g' exec.log

tell "12. Each record names the digest of the one before. Somebody tidies up a denial, and it shows."
run 0 intact x0x-policyc audit verify exec.log
run 0 '' sed -i 's/"seq","0"/"seq","1"/' exec.log
run 1 'exec.log:8: line_changed' x0x-policyc audit verify exec.log

tell "13. One byte of the table is changed: the enforcer does not start."
printf '\377' | dd of=policy.x0xp bs=1 seek=200 conv=notrunc status=none
run 1 bad_signature "${start[@]}"

tell "That is all of it. \`./dev test\` runs what holds it to its word."
