#pragma once

// The part of TensorFlow's C interface (its headers tensorflow/c/kernels.h, ops.h, tf_tensor.h,
// tf_status.h) that the operators use. It is declared here and looked up when the operators are
// loaded: compiling needs no TensorFlow, and one library serves all versions that have these
// functions.

#include <cstddef>
#include <cstdint>
#include <string>

namespace trireme::tensorflow {

// Opaque, TensorFlow's.
struct Status;
struct Tensor;
struct OpBuilder;
struct KernelBuilder;
struct Construction;
struct Context;
struct ShapeContext;
struct ShapeHandle;

enum class Code : int {
  kOk = 0,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kInternal = 13,
  kDataLoss = 15,
};

enum class DataType : int {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kHalf = 19,
};

using ShapeFunction = void (*)(ShapeContext*, Status*);
using ComputeFunction = void (*)(void* kernel, Context*);

/// TensorFlow's functions, one member each. Immutable once loaded.
struct Api {
  Status* (*new_status)();
  void (*delete_status)(Status*);
  void (*set_status)(Status*, Code, const char* text);
  Code (*get_code)(const Status*);
  const char* (*message)(const Status*);

  void* (*tensor_data)(const Tensor*);
  std::size_t (*tensor_bytes)(const Tensor*);
  DataType (*tensor_type)(const Tensor*);
  int (*num_dims)(const Tensor*);
  std::int64_t (*dim)(const Tensor*, int);
  void (*delete_tensor)(Tensor*);

  OpBuilder* (*new_op)(const char* name);
  void (*add_attr)(OpBuilder*, const char*);
  void (*add_input)(OpBuilder*, const char*);
  void (*add_output)(OpBuilder*, const char*);
  void (*set_stateful)(OpBuilder*, bool);
  void (*set_shapes)(OpBuilder*, ShapeFunction);
  void (*register_op)(OpBuilder*, Status*);
  std::int64_t (*num_shapes)(ShapeContext*);
  ShapeHandle* (*new_shape)();
  void (*delete_shape)(ShapeHandle*);
  void (*get_shape)(ShapeContext*, int, ShapeHandle*, Status*);
  void (*set_shape)(ShapeContext*, int, ShapeHandle*, Status*);
  void (*set_unknown_shape)(ShapeContext*, Status*);

  KernelBuilder* (*new_kernel)(const char* op, const char* device, void* (*create)(Construction*),
                               ComputeFunction, void (*destroy)(void*));
  void (*register_kernel)(const char* name, KernelBuilder*, Status*);
  void (*get_int)(Construction*, const char* name, std::int32_t*, Status*);
  void (*get_string)(Construction*, const char* name, char*, std::size_t max_length, Status*);
  void (*construction_failure)(Construction*, Status*);

  int (*num_inputs)(Context*);
  void (*get_input)(Context*, int, Tensor**, Status*);
  Tensor* (*allocate_output)(Context*, int index, DataType, const std::int64_t* dims, int num_dims,
                             std::size_t bytes, Status*);
  void (*fail)(Context*, Status*);
};

/// Looks all of them up in the TensorFlow that this process has loaded.
///
/// Returns  what is missing, in words; empty where nothing is.
std::string load(Api& api);

}  // namespace trireme::tensorflow
