#include "recipes/bert/classifier.h"

#include <torch/types.h>

#include "packs/text/operators/drop.h"

namespace trireme::recipes::bert {

ClassifierImpl::ClassifierImpl(const BertConfig& config, std::int64_t num_classes)
    : BertEncoder(config) {
  pooler_ = register_module("pooler", make_linear(config.channels, config.channels));
  classifier_ = register_module("classifier", make_linear(config.channels, num_classes));
}

torch::Tensor ClassifierImpl::logits(const Sequences& sequences) {
  const auto pooled_BC = torch::tanh(pooler_(encode(sequences).select(1, 0)));
  return classifier_(text::drop(pooled_BC, config().dropout, is_training()));
}

}  // namespace trireme::recipes::bert
