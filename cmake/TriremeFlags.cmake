# How every target of ours is compiled. Flags are carried by one interface library, never global.
# Those of the host's compilers are not nvcc's.
set(_host_only COMPILE_LANGUAGE:C,CXX)

include(CheckLinkerFlag)

add_library(trireme_flags INTERFACE)
target_compile_features(trireme_flags INTERFACE cxx_std_20)
target_include_directories(trireme_flags INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
# NDEBUG always: torch is built with it, and its inline asserts differ without.
target_compile_definitions(trireme_flags INTERFACE NDEBUG)
# No contraction of a*b+c: results must not depend on which instruction set a function is built for.
# Fields left out of a designated initialiser have their defaults: no warning.
target_compile_options(
  trireme_flags INTERFACE
    "$<$<${_host_only}>:-fPIC;-Wall;-Wextra;-Wno-missing-field-initializers;-ffp-contract=off>"
    "$<$<COMPILE_LANGUAGE:CUDA>:${TRIREME_NVCC_FLAGS}>")
if(TRIREME_WERROR)
  target_compile_options(trireme_flags INTERFACE "$<$<${_host_only}>:-Werror>")
endif()

if(TRIREME_SANITIZE)
  set(_sanitize -fsanitize=${TRIREME_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(trireme_flags INTERFACE "$<$<${_host_only}>:${_sanitize}>")
  # dlopen is called by the sanitizer's library, for which a program's folders count only in the old tag.
  target_link_options(trireme_flags INTERFACE ${_sanitize} "LINKER:--disable-new-dtags")
endif()
if(TRIREME_FUZZ)
  target_compile_options(trireme_flags INTERFACE "$<$<${_host_only}>:-fsanitize=fuzzer-no-link>")
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
    target_compile_options(trireme_flags INTERFACE "$<$<${_host_only}>:-fpch-preprocess>")
  endif()
endif()

# Libraries are compiled as asked; programs (tests, examples, mains) only call them, and compile in
# two thirds of the time with -O1. Benchmarks are compiled like libraries.
separate_arguments(TRIREME_LIBRARY_FLAGS UNIX_COMMAND "${TRIREME_OPTIMIZATION}")
set(TRIREME_PROGRAM_FLAGS ${TRIREME_LIBRARY_FLAGS} -O1)

# A set of torch's headers, compiled once. Sources still include what they use: the headers alone
# are checked without this (./dev lint).
function(_trireme_precompile name flags)
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/cmake/torch_pch.cc")
  target_link_libraries(${name} PRIVATE trireme_flags Torch::cpu)
  target_compile_options(${name} PRIVATE ${flags})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

if(TRIREME_TORCH)
  # What most sources of the library include: 30 s, saves 5 s each, where options are parsed 15 s.
  _trireme_precompile(
    trireme_library_pch "${TRIREME_LIBRARY_FLAGS}"
    <ATen/core/Tensor.h> <ATen/core/dispatch/Dispatcher.h> <ATen/record_function.h>
    <torch/csrc/autograd/function.h> <torch/csrc/autograd/variable.h>
    <CLI/CLI.hpp> <nlohmann/json.hpp>
    <algorithm> <functional> <map> <memory> <optional> <set> <string> <vector>)
  # What a model is written with: 36 s, saves 10 s each.
  _trireme_precompile(trireme_program_pch "${TRIREME_PROGRAM_FLAGS}" <torch/torch.h>)
endif()

# Gives `target` what every target has. kind: library, program or benchmark.
function(trireme_compile target kind)
  target_link_libraries(${target} PRIVATE trireme_flags ${ARGN})
  if(kind STREQUAL "program")
    target_compile_options(${target} PRIVATE ${TRIREME_PROGRAM_FLAGS})
  else()
    target_compile_options(${target} PRIVATE ${TRIREME_LIBRARY_FLAGS})
  endif()
  if("Torch::cpu" IN_LIST ARGN AND NOT kind STREQUAL "benchmark")
    target_precompile_headers(${target} REUSE_FROM trireme_${kind}_pch)
  endif()
endfunction()

# How ./dev lint compiles a header alone, one line each: without torch, with it, with the headers of CUDA and NCCL where they
# are, and with Arrow's.
set(_lint_command "${CMAKE_CXX_COMPILER} -std=c++20 -Wall -Wextra -Werror -DNDEBUG"
                  "-I${PROJECT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/include")
list(JOIN _lint_command " " _lint_command)
set(_lint_torch "")
if(TRIREME_TORCH)
  set(_lint_torch "-isystem ${TorchWheel_ROOT}/include -DFMT_HEADER_ONLY"
                  "-isystem ${TorchWheel_ROOT}/include/torch/csrc/api/include")
  list(JOIN _lint_torch " " _lint_torch)
endif()
set(_lint_cuda "")
if(TARGET Nccl::header)
  set(_lint_cuda "${_lint_command} -isystem ${Nccl_INCLUDE} -isystem ${CUDAToolkit_INCLUDE_DIRS}")
endif()
set(_lint_arrow "")
if(ArrowWheel_FOUND)
  set(_lint_arrow "${_lint_command} -isystem ${ArrowWheel_ROOT}/include")
endif()
file(WRITE "${PROJECT_BINARY_DIR}/lint_commands.txt"
     "${_lint_command}\n${_lint_command} ${_lint_torch}\n${_lint_cuda}\n${_lint_arrow}\n")
