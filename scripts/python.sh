#!/usr/bin/env bash
# Prints which Python the environments are made with: PYTHON where it is set, else python3. One that was compiled without
# --enable-optimizations, as pyenv does unless it is told to, takes half as long again for everything: it gives way to
# the system's, which distributions compile with them, where that has the same version and can make environments.
set -euo pipefail
system=/usr/bin/python3
chosen=${PYTHON:-python3}

if ! "$chosen" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "Quartermaster needs Python 3.11 or newer. Set PYTHON=/path/to/python3.11 and run make again." >&2
    exit 1
fi
version_of() { "$1" -c 'import ensurepip, sys, venv; print(*sys.version_info[:2])' 2>/dev/null; }
is_quick() { "$1" -c 'import sys, sysconfig; sys.exit("--enable-optimizations" not in str(sysconfig.get_config_var("CONFIG_ARGS")))'; }

if [ -z "${PYTHON:-}" ] && [ -x "$system" ] && ! is_quick "$chosen" &&
    [ "$(version_of "$system" || true)" = "$(version_of "$chosen")" ]; then
    chosen=$system
fi
echo "$chosen"
