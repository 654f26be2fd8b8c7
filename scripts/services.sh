#!/usr/bin/env bash
# Installs what is missing of PostgreSQL, Redis, Chromium and libfaketime from the system's packages. Starts none of them.
set -euo pipefail

missing=()
if ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && ! command -v initdb >/dev/null; then
    missing+=(postgresql)
fi
command -v redis-server >/dev/null || missing+=(redis-server)
command -v chromium >/dev/null || missing+=(chromium)
compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || missing+=(faketime)
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
        echo "The tests need ${missing[*]}. Install them with your package manager, or run make test where" >&2
        echo "sudo asks for no password." >&2
        exit 1
    fi
    as_root=(sudo -n)
fi
if ! command -v apt-get >/dev/null; then
    echo "The tests need ${missing[*]}, and only apt-get is known here. Install them and run make test again." >&2
    exit 1
fi

echo "services: installing ${missing[*]}"
# RUNLEVEL=1 keeps the packages from starting servers of their own: every test run starts its own.
quietly=(env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1)
"${as_root[@]}" "${quietly[@]}" apt-get -qq update
"${as_root[@]}" "${quietly[@]}" apt-get -qq -y --no-install-recommends install "${missing[@]}" </dev/null >/dev/null
