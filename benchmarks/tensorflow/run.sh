#!/usr/bin/env bash
# ./dev bench tensorflow [OPTION..]: options of gradients.py. $1: the folder of the build.
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shift
export PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1 TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-2}
exec "$here/../../build/tensorflow/venv/bin/python" "$here/gradients.py" "$@"
