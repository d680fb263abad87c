# Everything that can be checked on one machine: ./dev check. Sourced by dev; uses $root.

# Parts in order: cheap and likely to fail first.
check_parts=(lint test demo benches slow sanitize fuzz release clang judges tensorflow cuda)

# One command each, so that its exit code is the part's.
check_part() {
  case $1 in
    lint) "$root/dev" lint --full ;;
    test | demo | sanitize) "$root/dev" "$1" ;;
    benches) mapfile -t benches < <(bench_targets) && "$root/dev" build "${benches[@]}" ;;
    slow | judges | tensorflow) "$root/dev" test "--$1" ;;
    fuzz) TRIREME_PRESET=fuzz "$root/dev" test fuzz ;;
    release) TRIREME_PRESET=release "$root/dev" test ;;
    clang) TRIREME_PRESET=clang "$root/dev" build ;;
    cuda) "$root/.ci/cuda" ;;
    *) misuse "check: which part of ${check_parts[*]}? not $1" ;;
  esac
}

# Programs of benchmarks, which nothing else builds all of.
bench_targets() {
  ninja -C "$build" -t targets all | sed -n 's/^\(bench_[a-z_]*\): phony$/\1/p'
}

# Goes on after a part that fails; fails at the end, and for every part says how long it took.
dev_check() {
  local part parts=("${@:-${check_parts[@]}}") rows=() status=0 result start
  for part in "${parts[@]}"; do
    [[ " ${check_parts[*]} " == *" $part "* ]] || check_part "$part"
  done
  for part in "${parts[@]}"; do
    printf '\n== check %s\n' "$part"
    start=$SECONDS result=ok
    (check_part "$part") || result=FAILED status=1
    rows+=("$(printf '%-10s %5d min %02d s  %s' "$part" $(((SECONDS - start) / 60)) $(((SECONDS - start) % 60)) "$result")")
  done
  printf '\n'
  printf '%s\n' "${rows[@]}"
  return "$status"
}
