#!/usr/bin/env bash
# Installs a build into an empty prefix and uses it as others would, outside the tree: the examples by
# find_package, C by pkg-config, operators by torch.ops.load_library, the program and its report.
#
#   outside.sh BUILD SOURCE COMPILER PYTHON
set -euo pipefail
build=$1 source=$2 compiler=$3 python=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CMAKE_GENERATOR=Ninja # what ./dev installs; make need not be there
say() { echo "outside: $1 ($SECONDS s)"; }

cmake --install "$build" --prefix "$folder/first" >"$folder/install.log"
mv "$folder/first" "$folder/prefix" # what is installed may be moved
prefix=$folder/prefix
say installed

! grep -rnE '#include "?<?trireme/[a-z_]+/' "$prefix/include" || exit 1
cp -r "$source/examples/01_own_model" "$folder/own"
cmake -S "$folder/own" -B "$folder/own/build" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" >"$folder/cmake.log" || { cat "$folder/cmake.log" && exit 1; }
cmake --build "$folder/own/build" >"$folder/build.log" || { cat "$folder/build.log" && exit 1; }
say "README's program compiled"

cd "$folder"
unset TRIREME_PYTHON
own_model=$folder/own/build/own_model own_loop=$build/examples/04_own_loop/own_loop
"$own_model" train --run run --ranks 2 --batch 64 --lanes 2 --steps 20 --checkpoint-every 10 >train.log
"$own_model" report run >report.log
[[ -s run/report.html ]]
say "trained and reported"

"$own_loop" 1 one.safetensors | tee one.log
"$own_loop" 2 two.safetensors >two.log
"$own_loop" 4 four.safetensors >four.log
cmp one.safetensors two.safetensors
cmp one.safetensors four.safetensors
say "a loop of its own has the same bits on 1, 2 and 4 ranks"

[[ $("$prefix/bin/trireme" --version) == trireme\ * ]]
"$prefix/bin/trireme" show run >show.log
"$prefix/bin/trireme" evaluate --help >help.log

# The part for C alone, in a prefix of its own, needs neither the rest nor torch.
cmake --install "$build" --component wire --prefix "$folder/wire" >"$folder/wire.log"
cmake --install "$build" --component Unspecified --prefix "$folder/wire" >>"$folder/wire.log"
mkdir sum && cat >sum/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(sum LANGUAGES C CXX)
find_package(Trireme REQUIRED COMPONENTS wire)
add_executable(sum "$source/examples/02_wire_in_c/sum.c")
target_link_libraries(sum PRIVATE Trireme::wire)
CMAKE
cmake -S sum -B sum/build -DCMAKE_PREFIX_PATH="$folder/wire" -DTrireme_TORCH_DIR=/nowhere >sum.log
cmake --build sum/build >>sum.log || { cat sum.log && exit 1; }
sum/build/sum >>sum.log
cmake -S "$folder/own" -B "$folder/refused" -DCMAKE_PREFIX_PATH="$prefix" \
  -DTrireme_TORCH_DIR=/nowhere >refused.log 2>&1 && exit 1
grep -q "Trireme was built with torch" refused.log
say "C by find_package; another torch is refused"

libdir=$(dirname "$(find "$prefix" -name pkgconfig)")
export PKG_CONFIG_PATH=$libdir/pkgconfig
cc "$source/examples/02_wire_in_c/sum.c" -o sum/by_pkg_config $(pkg-config --cflags --libs trireme-wire)
sum/by_pkg_config >>sum.log
say "C by pkg-config"

if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "[  SKIPPED ] install/outside: operators in Python: $python cannot import torch"
  exit
fi
"$python" - "$libdir" <<'PYTHON'
import sys

import torch

for pack in ("vision", "text", "speech"):
    torch.ops.load_library(f"{sys.argv[1]}/libtrireme_{pack}.so")
values = torch.tensor([[False, True, True, False]])
places, counts = torch.ops.trireme.fixed_nonzero(values, 2)
assert places.tolist() == [[1, 2]] and counts.tolist() == [2], (places, counts)
PYTHON
say "operators in Python"
