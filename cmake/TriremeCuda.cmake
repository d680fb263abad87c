# Code for GPUs, with TRIREME_CUDA. Else what the rest calls says that it is absent.
#
# Defines    TRIREME_NVCC: the compiler, or empty; TRIREME_NVCC_FLAGS; CUDA::cudart_static;
#            Nccl_FOUND, Nccl_INCLUDE.
#
# The runtime is linked statically and looks for a driver when it is first called: what is built here
# runs on machines without a GPU too.

set(TRIREME_NVCC "")
set(TRIREME_NVCC_FLAGS "")
if(NOT TRIREME_CUDA)
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
find_package(CUDAToolkit QUIET)
if(NOT CMAKE_CUDA_COMPILER OR NOT TARGET CUDA::cudart_static)
  message(FATAL_ERROR "TRIREME_CUDA is ON and there is no CUDA toolkit: install one and put its nvcc \
into PATH")
endif()

# A100, H100 and B200; later GPUs compile the last one's intermediate form when they load it.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
endif()
enable_language(CUDA)
set(TRIREME_NVCC "${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}")
# -std by hand, since CMake 3.25 gives none for C++20. No contraction of a*b+c, as on the host: both
# combine elements by the same functions, and with the same bits.
set(TRIREME_NVCC_FLAGS -std=c++20 --fmad=false --expt-relaxed-constexpr -Xcompiler=-fPIC,-Wall)
find_package(Nccl QUIET)
