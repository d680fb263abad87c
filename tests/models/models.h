#pragma once

#include <string>
#include <vector>

#include "trireme/engine/record/recording.h"
#include "trireme/model.h"

namespace trireme::models {

/// A small model of each kind that a trainer meets, with random data for it.
struct TestModel {
  Model model;
  record::BatchMaker make_batch;

  /// Nothing in it is tied, so that one lane gives the bits of a plain loop.
  bool is_bitwise_plain = true;
};

/// `mlp`, `operators` (those of engine/operators), `resnet` (ResNet-18's shape, batch norm), `unet`
/// (skips over everything), `transformer` (tied embedding, shared position bias, dropout), `tagger`
/// (LSTM and an unrolled cell), `two_losses` (a mean, a weighted sum and a metric). `make` knows `wide` too (an MLP whose
/// matrices have several norm blocks).
const std::vector<std::string>& names();

/// The model `name`; the same weights at each call.
TestModel make(const std::string& name);

}  // namespace trireme::models
