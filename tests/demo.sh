#!/usr/bin/env bash
# The story of a policy, told by the programs themselves: demo.sh BUILD_DIRECTORY
set -euo pipefail
build=$(cd "$1" && pwd)
PATH=$build/policyc:$PATH
corpus=$(cd "$(dirname "$0")/../corpus/policies" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cp "$corpus/ok_sample.toml" exec-acl.toml

bold='' dim='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' dim=$'\033[2m' plain=$'\033[0m'; fi
tell() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# Shows a command, runs it, and insists on the exit status the story needs.
run() {
  local expected=$1 status=0
  shift
  printf '%s$ %s%s\n' "$dim" "$*" "$plain"
  "$@" 2>&1 || status=$?
  [ "$status" = "$expected" ] || { echo "demo: expected exit status $expected, got $status" >&2; exit 1; }
}

# The first entry of the sample.
agent=$(sed -n 's/^agent_id *= *"\(.*\)"/\1/p' exec-acl.toml | head -1)
machine=$(sed -n 's/^machine_id *= *"\(.*\)"/\1/p' exec-acl.toml | head -1)

tell "1. An author writes down who may run what, and checks it."
run 0 x0x-policyc check exec-acl.toml

tell "2. A key pair, in minisign's own format."
run 0 x0x-policyc keygen -p policy.pub -s policy.key --no-password

tell "3. The policy becomes a signed, canonical table. The same input gives the same bytes."
run 0 x0x-policyc compile exec-acl.toml -o exec-policy.x0xp --key policy.key

tell "4. A node trusts only a signature over bytes. This is what it would see."
run 0 x0x-policyc verify exec-policy.x0xp --trust policy.pub

tell "5. An allowed request: the rule that matched, and its limits."
run 0 x0x-policyc explain exec-policy.x0xp --agent "$agent" --machine "$machine" -- systemctl status x0xd

tell "6. A denied one: the nearest rule, and the first token that failed."
run 1 x0x-policyc explain exec-acl.toml --agent "$agent" --machine "$machine" -- systemctl stop x0xd

tell "7. Somebody changes one byte of the table."
cp exec-policy.x0xp tampered.x0xp
printf '\377' | dd of=tampered.x0xp bs=1 seek=200 conv=notrunc status=none
run 1 x0x-policyc verify tampered.x0xp --trust policy.pub

tell "8. A broken policy: every mistake, where it is, and what to do."
cat > broken.toml <<'TOML'
[exec]
enabled = true
max_duration_sec = 30

[[exec.allow]]
agent_id   = "abababababababababababababababababababababababababababababababab"
machine_id = "cdcd"

[[exec.allow.commands]]
argv = ["journalctl", "-n", "<INTEGER>"]

[[exec.allow.commands]]
argv = ["./deploy.sh", "a;b"]
TOML
run 1 x0x-policyc check broken.toml

tell "That is the compiler. \`./dev test\` runs everything that holds it to its word."
