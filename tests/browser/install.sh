#!/usr/bin/env bash
# Installs what the browser suite needs: its npm packages into this folder, and Debian's Chromium where no Chromium is found.
# The path of the browser goes to standard output and into node_modules/.browser. Anything that cannot be had is told on standard error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

browser() {
  local name
  for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
    [[ -n "$name" ]] && command -v "$name" && return 0
  done
  return 1
}

install() {
  command -v apt-get >/dev/null || { echo "no apt-get to install $* with" >&2; return 1; }
  [[ $EUID -eq 0 ]] || { echo "$* would be installed by: sudo apt-get install --yes $*" >&2; return 1; }
  echo "==> apt-get install $*" >&2
  apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends -qq "$@" >&2
}

# An npm of another place than Debian's comes with its own node.
command -v npm >/dev/null || install nodejs npm
browser >/dev/null || install chromium fonts-dejavu-core

# The packages that are there are kept while the list of them stays the same.
if ! cmp --silent package-lock.json node_modules/.installed; then
  echo "==> npm ci" >&2
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=30000 >&2
  cp package-lock.json node_modules/.installed
fi
browser | tee node_modules/.browser
