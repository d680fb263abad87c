#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "python/backend/collectives.h"
#include "trireme/error.h"

namespace trireme::backend {

/// What torch gives with a call, as the collectives here take it. Errors are kInvalidArgument.

Timeout timeout_of(std::chrono::milliseconds timeout);

collectives::Reduce reduce_of(const c10d::ReduceOp& op);

/// As many of both.
void check_pairs(const Tensors& outputs, const Tensors& inputs, const char* what);

/// torch gives lists, of one tensor for each device of this rank.
template <typename T>
const T& only(const std::vector<T>& list, const char* what) {
  if (list.size() == 1) return list.front();
  throw Error(ErrorKind::kInvalidArgument,
              std::string(what) + ": expected one, got " + std::to_string(list.size()));
}

template <typename Options>
void check_root_tensor(const Options& opts) {
  if (opts.rootTensor != 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "the root tensor is " + std::to_string(opts.rootTensor) + ", expected 0: a rank has one");
  }
}

/// The list of a gather or scatter, which the root alone gives.
template <typename Options>
Tensors list_of_root(const std::vector<Tensors>& lists, const Options& opts, const char* what) {
  if (lists.empty()) return {};
  if (lists.size() > 1) {
    throw Error(ErrorKind::kInvalidArgument,
                std::string(what) + " with root " + std::to_string(opts.rootRank) + ": " +
                    std::to_string(lists.size()) +
                    " lists of tensors, expected one, of the root alone");
  }
  return lists.front();
}

}  // namespace trireme::backend
