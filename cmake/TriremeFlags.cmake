# How every target of ours is compiled. Flags are carried by one interface library, never global.

include(CheckLinkerFlag)

add_library(trireme_flags INTERFACE)
target_compile_features(trireme_flags INTERFACE cxx_std_20)
target_include_directories(trireme_flags INTERFACE "${PROJECT_SOURCE_DIR}")
# NDEBUG always: torch is built with it, and its inline asserts differ without.
target_compile_definitions(trireme_flags INTERFACE NDEBUG)
separate_arguments(_optimization UNIX_COMMAND "${TRIREME_OPTIMIZATION}")
# No contraction of a*b+c: results must not depend on which instruction set a function is built for.
# Fields left out of a designated initialiser have their defaults: no warning.
target_compile_options(
  trireme_flags INTERFACE -fPIC -Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off
                          ${_optimization})
if(TRIREME_WERROR)
  target_compile_options(trireme_flags INTERFACE -Werror)
endif()

if(TRIREME_SANITIZE)
  set(_sanitize -fsanitize=${TRIREME_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(trireme_flags INTERFACE ${_sanitize})
  target_link_options(trireme_flags INTERFACE ${_sanitize})
endif()
if(TRIREME_FUZZ)
  target_compile_options(trireme_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

set(TRIREME_LINKER "default")
foreach(_linker mold lld)
  check_linker_flag(CXX "-fuse-ld=${_linker}" TRIREME_HAS_${_linker})
  if(TRIREME_HAS_${_linker})
    target_link_options(trireme_flags INTERFACE "-fuse-ld=${_linker}")
    set(TRIREME_LINKER ${_linker})
    break()
  endif()
endforeach()

# ccache accepts a precompiled header only where it may ignore times and definitions (gcc notes the
# header's content with -fpch-preprocess).
find_program(TRIREME_CCACHE ccache)
if(TRIREME_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env
      "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
      "${TRIREME_CCACHE}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(trireme_flags INTERFACE -fpch-preprocess)
  endif()
endif()

# <torch/torch.h>, compiled once for tests, examples and programs. Library rooms include the narrow
# headers that they need.
if(TRIREME_TORCH)
  add_library(trireme_torch_pch OBJECT EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/cmake/torch_pch.cc")
  target_link_libraries(trireme_torch_pch PRIVATE trireme_flags Torch::cpu)
  target_precompile_headers(trireme_torch_pch PRIVATE <torch/torch.h>)
endif()

# Links `target` with what every target has. With Torch::cpu in the list of libraries it also gets
# the precompiled header if `pch` is ON.
function(trireme_compile target pch)
  target_link_libraries(${target} PRIVATE trireme_flags)
  if(pch AND "Torch::cpu" IN_LIST ARGN)
    target_precompile_headers(${target} REUSE_FROM trireme_torch_pch)
  endif()
  target_link_libraries(${target} PRIVATE ${ARGN})
endfunction()

# How ./dev lint compiles a header alone: without and with torch, one line each.
set(_lint_command "${CMAKE_CXX_COMPILER} -std=c++20 -Wall -Wextra -Werror -DNDEBUG"
                  "-I${PROJECT_SOURCE_DIR}")
list(JOIN _lint_command " " _lint_command)
set(_lint_torch "")
if(TRIREME_TORCH)
  set(_lint_torch "-isystem ${TorchWheel_ROOT}/include -DFMT_HEADER_ONLY"
                  "-isystem ${TorchWheel_ROOT}/include/torch/csrc/api/include")
  list(JOIN _lint_torch " " _lint_torch)
endif()
file(WRITE "${PROJECT_BINARY_DIR}/lint_commands.txt"
     "${_lint_command}\n${_lint_command} ${_lint_torch}\n")
