#pragma once

/// Before a function that GPUs run too: nvcc compiles it for both.
#if defined(__CUDACC__)
#define TRIREME_HOST_DEVICE __host__ __device__
#else
#define TRIREME_HOST_DEVICE
#endif
