#!/usr/bin/env bash
# Finds the safe-run program and replaces itself with it. Contract: M0-v0.1.0
#
# Passes arguments, streams, environment and exit code through unchanged.
# Uses the first of these that exists:
#   1. $SAFE_RUN_BIN, without a check
#   2. <root>/rust/target/release/safe-run, <root>/target/release/safe-run
#   3. <root>/dist/<linux|macos|windows>/<x86_64|aarch64>/safe-run
#   4. safe-run on the PATH
# <root> is the nearest folder above this file that contains .git or RFC-Shared-Agent-Scaffolding-v0.1.0.md.
# Exit codes: 127 if none exists; 126 if the one in $SAFE_RUN_BIN cannot be executed.

if [[ -n "${SAFE_RUN_BIN:-}" ]]; then
  exec "$SAFE_RUN_BIN" "$@"
fi

source_file="${BASH_SOURCE[0]}"
here="$(cd -- "${source_file%/*}" 2>/dev/null && pwd -P)" || here="$PWD"
root="$here"
while [[ "$root" != / && ! -e "$root/.git" && ! -e "$root/RFC-Shared-Agent-Scaffolding-v0.1.0.md" ]]; do
  root="${root%/*}"
  root="${root:-/}"
done

case "$OSTYPE" in
  linux*) os=linux ;;
  darwin*) os=macos ;;
  msys* | cygwin*) os=windows ;;
  *) os="$OSTYPE" ;;
esac
case "$HOSTTYPE" in
  arm64) arch=aarch64 ;;
  *) arch="$HOSTTYPE" ;;
esac

end=""
[[ "$os" == windows ]] && end=.exe
places=(
  "$root/rust/target/release/safe-run$end"
  "$root/target/release/safe-run$end"
  "$root/dist/$os/$arch/safe-run$end"
)
for place in "${places[@]}"; do
  [[ -f "$place" && -x "$place" ]] && exec "$place" "$@"
done

# Searches the PATH itself, because `exec safe-run` could find this file.
IFS=: read -r -a folders <<<"$PATH"
for folder in "${folders[@]}"; do
  place="${folder:-.}/safe-run$end"
  [[ -f "$place" && -x "$place" && ! "$place" -ef "$source_file" ]] && exec "$place" "$@"
done

{
  echo "ERROR: Rust canonical tool not found."
  echo "Searched, in this order:"
  echo "  1. SAFE_RUN_BIN (not set)"
  number=2
  for place in "${places[@]}"; do
    echo "  $number. $place"
    number=$((number + 1))
  done
  echo "  $number. safe-run on the PATH"
  echo "Hint: build it with 'cargo build --release', or set SAFE_RUN_BIN to where it is"
} >&2
exit 127
