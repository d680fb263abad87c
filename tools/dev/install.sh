# Installs what ./dev needs and the machine lacks. Sourced by dev; uses $root.
# Everything present: no network, no package manager, no message.

# Debian packages; after = the program that stands for one.
build_packages=(
  g++=g++ cmake=cmake ninja-build=ninja ccache=ccache mold=mold git=git
  pkgconf=pkg-config libssl-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev
  libgtest-dev libgmock-dev libbenchmark-dev libsentencepiece-dev libutfcpp-dev
  libutf8proc-dev libfabric-dev libxxhash-dev libnifti2-dev libniftiio-dev zlib1g-dev
  libjpeg62-turbo-dev libpng-dev libarchive-dev libzstd-dev libcsv-dev
  libisal-dev libcurl4-openssl-dev libpugixml-dev libsndfile1-dev libsoxr-dev liburing-dev
  libcpp-httplib-dev libhwloc-dev
  ca-certificates
)
clang_packages=(clang-16=clang++-16 libclang-rt-16-dev)

# Which of the packages are not installed, one a line. A program that is found counts, wherever it
# comes from.
missing_packages() {
  local entry package program
  for entry in "$@"; do
    package=${entry%%=*}
    program=${entry#"$package"}
    program=${program#=}
    if [[ -n $program ]] && command -v "$program" >/dev/null; then continue; fi
    if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      echo "$package"
    fi
  done
}

# install_packages WHY PACKAGE[=PROGRAM]..
install_packages() {
  local why=$1 packages as_root=()
  shift
  mapfile -t packages < <(missing_packages "$@")
  ((${#packages[@]})) || return 0
  if ! command -v apt-get >/dev/null; then
    echo "dev: no apt-get here; install what these Debian packages hold: ${packages[*]}" >&2
    exit 1
  fi
  if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "dev: as root, run: apt-get install --no-install-recommends ${packages[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "dev: installing ${packages[*]} ($why)" >&2
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
}

install_build_tools() { install_packages "to compile" "${build_packages[@]}"; }

# For tests only. Where it cannot be installed, what needs it is skipped, and says so.
install_browser() {
  local program
  for program in chromium-headless-shell chromium chromium-browser google-chrome; do
    if command -v "$program" >/dev/null; then return 0; fi
  done
  (install_packages "a browser, to test the page of a run" chromium-headless-shell) ||
    echo "dev: no browser: the test report/browser will be skipped" >&2
}

# What `bench wire` and `bench network` compare with. Whether something was installed; where nothing
# can be, those peers are left out.
install_peers() {
  local packages=(openmpi-bin=mpirun libopenmpi-dev libgloo-dev iproute2=ip)
  [[ -n $(missing_packages "${packages[@]}") ]] || return 1
  (install_packages "Open MPI and Gloo's headers, to compare with" "${packages[@]}") && return 0
  echo "dev: without them there are fewer peers to compare with" >&2
  return 1
}

install_clang() { install_packages "clang, with libFuzzer" "${clang_packages[@]}"; }

install_python_packages() {
  fill_venv requirements.txt "torch's libraries to link, what draws reports, what checks C++ and Python"
}

# For the package's tests. Where they cannot be installed, those are skipped, and say so.
install_python_tools() {
  (install_packages "to compile the Python package" python3-dev &&
    fill_venv requirements-python.txt "torch for Python, which needs CUDA's libraries (4 GB), and what users bring") ||
    echo "dev: no torch for Python: the tests python/* will be skipped" >&2
}

# Whether the venv holds what FILE pins: fill_venv FILE would do nothing.
is_filled() {
  local file=$1 stamp=${2:-$root/.venv}/${1%.txt}.sha256
  [[ -f $stamp && $(<"$stamp") == "$(sha256sum <"$root/$file")" ]]
}

# Where they cannot be installed, the tests that need them are skipped, and say so.
install_judges() {
  (fill_venv requirements-judges.txt "reference implementations of kernels and metrics" &&
    fill_venv requirements-torchaudio.txt "torchaudio, which other packages must not find" build/torchaudio/venv) ||
    echo "dev: no reference implementations: the tests judges/* will be skipped" >&2
}

# A venv of its own: TensorFlow wants neither torch nor its versions of other packages.
install_tensorflow() {
  (fill_venv requirements-tensorflow.txt "TensorFlow, for trireme.tensorflow" build/tensorflow/venv) ||
    echo "dev: no TensorFlow: the tests tensorflow/* will be skipped" >&2
}

# A venv of its own, since it is large. Without it the benchmark leaves those peers out, and says so.
install_data_peers() {
  (fill_venv requirements-data.txt "DALI and WebDataset, to compare with" build/data/venv) ||
    echo "dev: no DALI and no WebDataset: ./dev bench data leaves them out" >&2
}

# A venv of its own, for other versions of what judges need.
install_docs_tools() {
  install_packages "to read the public headers" doxygen=doxygen
  fill_venv requirements-docs.txt "what builds the site of docs/" build/docs/venv
}

# fill_venv FILE WHY [VENV]: fills VENV, .venv, with what FILE pins. A stamp holds the hash of that file.
fill_venv() {
  local file=$1 why=$2 venv=$root/${3:-.venv}
  ! is_filled "$file" "$venv" || return 0
  echo "dev: filling ${3:-.venv} from $file: $why" >&2
  install_packages "for Python packages" python3=python3
  python3 -c 'import ensurepip' 2>/dev/null || install_packages "for Python packages" python3-venv
  [[ -x $venv/bin/pip ]] || python3 -m venv --clear "$venv"
  if [[ ! -x $venv/bin/uv ]]; then  # fetches and unpacks side by side: a third of pip's time
    "$venv/bin/pip" install -q --disable-pip-version-check uv==0.13.9 >&2 || return 1
  fi
  "$venv/bin/uv" pip install -q --python "$venv/bin/python" --no-deps -r "$root/$file" >&2 || return 1
  sha256sum <"$root/$file" >"$venv/${file%.txt}.sha256"
}
