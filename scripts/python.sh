#!/bin/sh
# Runs its arguments with a Python that is new enough: the one named by PYTHON, or else the first that fits.
# This much has to be shell, because it is what looks for Python; everything after it is Python.

oldest="3.11"

version() { "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null; }
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
can_make_venvs() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

refused=""
for python in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
    found=$(version "$python") || continue
    if ! new_enough "$python"; then
        refused="$refused
  $python is Python $found, which is too old."
    elif ! can_make_venvs "$python"; then
        refused="$refused
  $python (Python $found) cannot make virtual environments; on Debian and Ubuntu: apt install python${found%.*}-venv"
    else
        exec "$python" "$@"
    fi
done

echo "attention_viz needs Python $oldest or newer, with its venv module.${refused:-
  No ${PYTHON:-python3.11, python3.12, python3.13 or python3} that runs was found.}
Install one (https://www.python.org/downloads/), or name one: make ... PYTHON=/path/to/python" >&2
exit 1
