#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trireme/engine/record/recording.h"

namespace trireme::train {

/// While it lives, parameters that are on other ranks, or in shards, are zeros of their shape, so that the model can be
/// run, to record it. Memory: none for what is only read (pages of zeros).
class WholeModel {
 public:
  /// recording   of the session; outlives this.
  explicit WholeModel(const record::Recording& recording);
  ~WholeModel();
  WholeModel(const WholeModel&) = delete;
  WholeModel& operator=(const WholeModel&) = delete;

 private:
  struct Lent {
    at::Tensor parameter;
    at::Tensor before;  ///< As it was.
  };
  std::vector<Lent> lent_;
};

}  // namespace trireme::train
