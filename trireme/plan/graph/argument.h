#pragma once

#include <complex>
#include <string>
#include <variant>
#include <vector>

#include "trireme/dtype.h"
#include "trireme/plan/graph/size.h"

namespace trireme::graph {

/// Index of a value in `Graph::values`.
using ValueId = int;

/// Fixed at recording, before any pass; the key of random streams. Unique, not always the position.
using NodeId = int;

/// The tensor `value`.
struct ValueRef {
  ValueId value;
  bool operator==(const ValueRef&) const = default;
};

/// A 0-dim tensor that takes part in type promotion as a plain number does (`x / 4`).
struct WrappedNumber {
  std::variant<bool, Size, Real, std::complex<double>> number;
  Dtype dtype;
  bool operator==(const WrappedNumber&) const = default;
};

/// A device by name, `cpu` or `cuda:1`; a run replaces it by the device of the stage.
struct DeviceName {
  std::string name;
  bool operator==(const DeviceName&) const = default;
};

/// `strided`, `sparse`, ... as torch prints it.
struct LayoutName {
  std::string name;
  bool operator==(const LayoutName&) const = default;
};

/// `contiguous`, `preserve`, `channels_last` or `channels_last_3d`.
struct MemoryFormatName {
  std::string name;
  bool operator==(const MemoryFormatName&) const = default;
};

struct Argument;
using ArgumentList = std::vector<Argument>;

/// One argument of an operator: nothing, a tensor, a constant or a list of arguments.
///
/// Which of the operator's types a number or list stands for is told by the operator's schema.
struct Argument {
  using Content =
      std::variant<std::monostate, ValueRef, bool, Size, Real, std::complex<double>, std::string,
                   WrappedNumber, Dtype, DeviceName, LayoutName, MemoryFormatName, ArgumentList>;
  Content content;
  bool operator==(const Argument&) const = default;
};

}  // namespace trireme::graph
