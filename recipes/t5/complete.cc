#include "recipes/t5/complete.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

namespace trireme::recipes::t5 {
namespace {

/// Evaluation mode while it lives.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& module)
      : module_(module), was_training_(module.is_training()) {
    module.eval();
  }
  ~EvaluationMode() { module_.train(was_training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& module_;
  bool was_training_;
};

/// The most likely token below `vocabulary` of the last position, [B, 1] i32.
torch::Tensor likeliest(const torch::Tensor& logits_BTV, std::int64_t vocabulary) {
  static_assert(kPad == 0);  // left out below
  return (logits_BTV.select(1, -1).slice(1, 1, vocabulary).argmax(1, true) + 1).to(torch::kInt);
}

}  // namespace

std::vector<std::vector<data::Token>> complete(T5 model, const torch::Tensor& inputs_BS,
                                               const CompletionLimits& limits) {
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(*model);
  const auto memory_BSC = model->encode(inputs_BS);
  const std::int64_t B = inputs_BS.size(0);
  auto tokens_BT = torch::full({B, 1}, kPad, torch::kInt);
  auto has_ended = torch::zeros({B, 1}, torch::kBool);
  for (std::int64_t t = 0; t < limits.max_tokens && !has_ended.all().item<bool>(); ++t) {
    const auto next = likeliest(model->decode(tokens_BT, memory_BSC, inputs_BS), limits.vocabulary);
    has_ended |= next == limits.end;
    tokens_BT = torch::cat({tokens_BT, next}, 1);
  }
  std::vector<std::vector<data::Token>> result;
  for (std::int64_t b = 0; b < B; ++b) {
    const auto row = tokens_BT[b].slice(0, 1).contiguous();
    const auto* begin = row.const_data_ptr<data::Token>();
    result.emplace_back(begin, std::find(begin, begin + row.numel(), limits.end));
  }
  return result;
}

}  // namespace trireme::recipes::t5
