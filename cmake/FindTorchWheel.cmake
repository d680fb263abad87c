# Imports torch's libraries from an installed Python package, without find_package(Torch) (which
# wants a CUDA toolkit) and without starting Python. docs/decisions/0002 says why.
#
# Looks in   TRIREME_TORCH_DIR, else .venv of this repository.
# Defines    TRIREME_TORCH_RPATH, where libraries that are installed look for torch's; Torch::cpu; Torch::openmp, the runtime of torch's threads; with
#            TRIREME_TORCH_CUDA also Torch::cuda; TorchWheel_VERSION.
#
# The package's libraries find each other by their own rpath; ours is set by CMake to torch/lib.

set(_torch_hints ${TRIREME_TORCH_DIR})
if(SKBUILD AND NOT _torch_hints)  # a wheel: the torch of the Python that builds it
  find_package(Python REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE _torch_hints OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
if(NOT _torch_hints)
  file(GLOB _torch_hints "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
endif()

find_path(TorchWheel_ROOT NAMES version.py PATHS ${_torch_hints} NO_DEFAULT_PATH NO_CACHE)
find_library(TorchWheel_C10 c10 PATHS "${TorchWheel_ROOT}/lib" NO_DEFAULT_PATH NO_CACHE)
find_library(TorchWheel_CPU torch_cpu PATHS "${TorchWheel_ROOT}/lib" NO_DEFAULT_PATH NO_CACHE)
file(GLOB TorchWheel_OPENMP "${TorchWheel_ROOT}/lib/libgomp*.so*")
if(TorchWheel_ROOT)
  file(STRINGS "${TorchWheel_ROOT}/version.py" TorchWheel_VERSION REGEX "^__version__")
  string(REGEX REPLACE ".*'(.*)'.*" "\\1" TorchWheel_VERSION "${TorchWheel_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  TorchWheel
  REQUIRED_VARS TorchWheel_ROOT TorchWheel_C10 TorchWheel_CPU TorchWheel_OPENMP
  VERSION_VAR TorchWheel_VERSION
  REASON_FAILURE_MESSAGE "no torch package: run ./dev build, or pass -DTRIREME_TORCH=OFF or \
-DTRIREME_TORCH_DIR=.../site-packages/torch")

set(TRIREME_TORCH_RPATH "${TorchWheel_ROOT}/lib")
if(SKBUILD)
  set(TRIREME_TORCH_RPATH "$ORIGIN/../../torch/lib")  # from trireme/lib and trireme/bin
endif()

# Declares the imported library torch_<name> of the file `location`.
function(_torch_import name location)
  add_library(torch_${name} SHARED IMPORTED GLOBAL)
  set_target_properties(torch_${name} PROPERTIES IMPORTED_LOCATION "${location}")
endfunction()

if(TorchWheel_FOUND AND NOT TARGET Torch::cpu)
  _torch_import(c10 "${TorchWheel_C10}")
  _torch_import(cpu "${TorchWheel_CPU}")
  add_library(torch_wheel INTERFACE)
  target_include_directories(
    torch_wheel SYSTEM INTERFACE "${TorchWheel_ROOT}/include"
                                 "${TorchWheel_ROOT}/include/torch/csrc/api/include")
  # The package ships its own fmt headers, which hide the system's: use them without a library.
  target_compile_definitions(torch_wheel INTERFACE USE_DISTRIBUTED FMT_HEADER_ONLY)
  target_link_libraries(torch_wheel INTERFACE torch_cpu torch_c10 Threads::Threads)
  add_library(Torch::cpu ALIAS torch_wheel)
  _torch_import(openmp "${TorchWheel_OPENMP}")
  add_library(Torch::openmp ALIAS torch_openmp)
endif()

if(TorchWheel_FOUND AND TRIREME_TORCH_CUDA AND NOT TARGET Torch::cuda)
  file(GLOB _cuda_lib "${TorchWheel_ROOT}/../nvidia/cu*/lib"
       "${TorchWheel_ROOT}/../nvidia/cuda_runtime/lib")
  file(GLOB _cuda_include "${TorchWheel_ROOT}/../nvidia/cu*/include"
       "${TorchWheel_ROOT}/../nvidia/cuda_runtime/include")
  find_library(TorchWheel_CUDA torch_cuda PATHS "${TorchWheel_ROOT}/lib" NO_DEFAULT_PATH NO_CACHE
               REQUIRED)
  find_library(TorchWheel_C10_CUDA c10_cuda PATHS "${TorchWheel_ROOT}/lib" NO_DEFAULT_PATH NO_CACHE
               REQUIRED)
  find_library(TorchWheel_CUDART NAMES cudart libcudart.so.13 libcudart.so.12 PATHS ${_cuda_lib}
               NO_DEFAULT_PATH NO_CACHE REQUIRED)
  _torch_import(cuda "${TorchWheel_CUDA}")
  _torch_import(c10_cuda "${TorchWheel_C10_CUDA}")
  _torch_import(cudart "${TorchWheel_CUDART}")
  add_library(torch_wheel_cuda INTERFACE)
  target_include_directories(torch_wheel_cuda SYSTEM INTERFACE ${_cuda_include})
  # Nothing refers to libtorch_cuda by name; without this the linker drops it.
  target_link_libraries(
    torch_wheel_cuda INTERFACE torch_wheel "LINKER:--push-state,--no-as-needed" torch_cuda
                               "LINKER:--pop-state" torch_c10_cuda torch_cudart)
  add_library(Torch::cuda ALIAS torch_wheel_cuda)
endif()
