# Programs: benchmarks, examples, the executable `trireme`.

# One benchmark program, built by `./dev bench THEME` only.
#
#   trireme_benchmark(reduce/tree_bench.cc USES kernels LIBRARIES ...)   relative to benchmarks/
function(trireme_benchmark source)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "USES;LIBRARIES")
  get_filename_component(theme "${source}" DIRECTORY)
  get_filename_component(unit "${source}" NAME_WE)
  set(name "${theme}_${unit}")
  trireme_room_targets(uses base ${arg_USES})
  add_executable(${name} EXCLUDE_FROM_ALL "${source}")
  trireme_compile(${name} benchmark ${uses} ${arg_LIBRARIES} benchmark::benchmark)
  set_target_properties(${name} PROPERTIES OUTPUT_NAME ${unit} RUNTIME_OUTPUT_DIRECTORY
                                           "${PROJECT_BINARY_DIR}/benchmarks/${theme}")
  if(NOT TARGET bench_${theme})
    add_custom_target(bench_${theme})
  endif()
  add_dependencies(bench_${theme} ${name})
endfunction()

# A program from sources in the current folder, written to the same folder of the build.
#
#   trireme_program(own_model SOURCES main.cc USES command LIBRARIES Torch::cpu)
function(trireme_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES;LIBRARIES")
  if(NOT arg_SOURCES)
    return()
  endif()
  trireme_room_targets(uses base ${arg_USES})
  add_executable(${name} ${arg_SOURCES})
  trireme_compile(${name} program ${uses} ${arg_LIBRARIES})
endfunction()
