#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>
#include <c10/core/Device.h>

#include <cstdint>

#include "trireme/plan/graph/graph.h"

namespace trireme::program {

/// Where and at what size a program runs.
struct Place {
  std::int64_t batch;
  at::Device device;  ///< Takes the place of every recorded device.
};

/// A constant argument as the operator's schema wants it. Inverse of record::to_constant.
///
/// argument   holds no value reference.
/// Errors     kInvalidArgument where it does not fit the declared type.
c10::IValue to_ivalue(const graph::Argument& argument, const c10::Type& type, const Place& place);

/// A wrapped number as the 0-dim tensor that torch makes of it.
at::Tensor to_wrapped_tensor(const graph::WrappedNumber& number, std::int64_t batch);

}  // namespace trireme::program
