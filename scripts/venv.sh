#!/usr/bin/env bash
# Makes .venv hold exactly the hashed packages of requirements/$1.txt; does nothing when it already does.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1
python=${PYTHON:-python3}

wanted=$(sha256sum <"requirements/$name.txt" | cut -d' ' -f1)
stamp=.venv/.installed-$name
if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "Quartermaster needs Python 3.11 or newer. Set PYTHON=/path/to/python3.11 and run make again." >&2
    exit 1
fi

# Two makes at once must not install into one environment.
exec 9>.venv.lock
flock 9
if [ ! -x .venv/bin/python ]; then
    echo "venv: creating .venv with $("$python" --version)"
    "$python" -m venv .venv
fi
echo "venv: installing requirements/$name.txt (about a minute the first time)"
.venv/bin/python -m pip install -qq --disable-pip-version-check --no-input --require-hashes -r "requirements/$name.txt"
# The project's own packages are importable from everywhere, as after an editable installation.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
pwd >"$site/quartermaster.pth"
echo "$wanted" >"$stamp"
# The development set holds the demo's set; the demo's set alone says nothing of the development set.
if [ "$name" = dev ]; then
    sha256sum <requirements/sandbox.txt | cut -d' ' -f1 >.venv/.installed-sandbox
fi
