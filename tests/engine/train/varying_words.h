#pragma once

#include <torch/torch.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "trireme/base/check.h"
#include "trireme/model.h"

namespace trireme::train {

/// Sentences of 1 to 16 words with a label for each; 0 pads words, -100 labels.
class Sentences : public data::Source {
 public:
  explicit Sentences(std::int64_t num_samples, std::vector<std::int64_t> padded = {4, 8, 16})
      : num_samples_(num_samples) {
    for (const std::int64_t length : padded) padded_.push_back({{"words", length}});
    const std::int64_t longest = padded.back();
    fields_ = {{"words", Dtype::kI64, {longest}, {{0, "words"}}},
               {"labels", Dtype::kI64, {longest}, {{0, "words"}}, -100},
               {"topic", Dtype::kI64, {}}};
  }

  std::int64_t num_samples() const override { return num_samples_; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::vector<data::Lengths> padded_lengths() const override { return padded_; }
  data::Lengths lengths_of(data::Sample sample) const override {
    return {{"words", length_of(sample.index)}};
  }

  void read(data::Sample sample, std::span<const std::span<std::byte>> places) const override {
    const std::int64_t length = length_of(sample.index);
    std::vector<std::int64_t> words, labels;
    for (std::int64_t i = 0; i < length; ++i) {
      words.push_back(1 + (sample.index * 31 + i * 17) % 49);
      labels.push_back(words.back() % 5);
    }
    const std::int64_t topic = sample.index % 3;
    TRIREME_CHECK(places[0].size() == words.size() * sizeof(std::int64_t),
                  "a sentence's own length");
    std::memcpy(places[0].data(), words.data(), places[0].size());
    std::memcpy(places[1].data(), labels.data(), places[1].size());
    std::memcpy(places[2].data(), &topic, sizeof topic);
  }

  static std::int64_t length_of(std::int64_t index) { return 1 + index * 7 % 16; }

 private:
  std::int64_t num_samples_;
  std::vector<data::Lengths> padded_;
  std::vector<data::Field> fields_;
};

/// Attention over the words of a sentence, dropout, a norm of the batch, a label for each word and a topic.
class Tagger : public torch::nn::Module {
 public:
  Tagger() {
    words_ = register_module("words", torch::nn::Embedding(50, 16));
    project_ = register_module("project", torch::nn::Linear(16, 48));
    mix_ = register_module("mix", torch::nn::Linear(16, 16));
    norm_ = register_module("norm", torch::nn::BatchNorm1d(16));
    recurrent_ = register_module("recurrent",
                                 torch::nn::GRU(torch::nn::GRUOptions(16, 16).batch_first(true)));
    labels_ = register_module("labels", torch::nn::Linear(16, 5));
    topics_ = register_module("topics", torch::nn::Linear(16, 3));
  }

  Losses forward(const Batch& batch) {
    const at::Tensor words_BT = batch["words"], labels_BT = batch["labels"];
    const at::Tensor is_word_BT = words_BT.ne(0);
    at::Tensor x_BTC = words_(words_BT);
    const auto parts = project_(x_BTC).view({x_BTC.size(0), x_BTC.size(1), 3, 2, 8}).unbind(2);
    at::Tensor mixed = at::scaled_dot_product_attention(
        parts[0].transpose(1, 2), parts[1].transpose(1, 2), parts[2].transpose(1, 2),
        is_word_BT.unsqueeze(1).unsqueeze(1));
    mixed = mixed.transpose(1, 2).reshape({x_BTC.size(0), -1, 16});
    x_BTC = torch::dropout(x_BTC + mix_(mixed), 0.1, is_training());
    x_BTC = norm_(x_BTC.transpose(1, 2)).transpose(1, 2);
    x_BTC = std::get<0>(recurrent_(x_BTC));
    const at::Tensor sum = at::cross_entropy_loss(labels_(x_BTC).flatten(0, 1), labels_BT.flatten(),
                                                  {}, at::Reduction::Sum, -100);
    const at::Tensor mean_BC =
        (x_BTC * is_word_BT.unsqueeze(2)).sum(1) / is_word_BT.sum(1, /*keepdim=*/true);
    return {sum_loss(sum, labels_BT.ne(-100).sum(), "labels"),
            mean_loss(at::cross_entropy_loss(topics_(mean_BC), batch["topic"]), "topic")};
  }

 private:
  torch::nn::Embedding words_ = nullptr;
  torch::nn::Linear project_ = nullptr, mix_ = nullptr;
  torch::nn::BatchNorm1d norm_ = nullptr;
  torch::nn::GRU recurrent_ = nullptr;
  torch::nn::Linear labels_ = nullptr, topics_ = nullptr;
};

inline Workload tagger_workload() {
  return {make_model(std::make_shared<Tagger>()), std::make_shared<Sentences>(60),
          std::make_shared<Sentences>(15)};
}

}  // namespace trireme::train
