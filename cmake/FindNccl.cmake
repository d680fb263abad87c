# NCCL's header, from the CUDA toolkit or from the package that torch brings. The library itself is
# loaded when it is asked for, so nothing is linked.
#
# Defines    Nccl_INCLUDE, Nccl::header

file(GLOB _nccl_hints "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/nccl/include"
     "${TRIREME_TORCH_DIR}/../nvidia/nccl/include")
find_path(Nccl_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${_nccl_hints})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Nccl REQUIRED_VARS Nccl_INCLUDE)

if(Nccl_FOUND AND NOT TARGET Nccl::header)
  add_library(Nccl::header INTERFACE IMPORTED)
  target_include_directories(Nccl::header INTERFACE "${Nccl_INCLUDE}" ${CUDAToolkit_INCLUDE_DIRS})
endif()
