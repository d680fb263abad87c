#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "recipes/bert/encoder.h"

namespace trireme::recipes::bert {

// Dims: B batch, K classes.

/// The encoder BERT with a head for one class a sequence: the pooler of the pre-trained model, then a
/// linear layer. Its other tensors have the names that they have in `Bert`.
///
/// Source   Devlin et al., NAACL 2019, section 4.1.
class ClassifierImpl : public BertEncoder {
 public:
  /// Errors   those of `check`.
  ClassifierImpl(const BertConfig& config, std::int64_t num_classes);

  torch::Tensor logits(const Sequences& sequences);  ///< [B, K].

 private:
  torch::nn::Linear pooler_{nullptr}, classifier_{nullptr};
};
TORCH_MODULE(Classifier);

}  // namespace trireme::recipes::bert
