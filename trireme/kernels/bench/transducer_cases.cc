#include "trireme/kernels/bench/transducer_cases.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "trireme/kernels/bench/random_values.h"
#include "trireme/kernels/spread.h"
#include "trireme/kernels/transducer/joint.h"
#include "trireme/kernels/transducer/loss.h"

namespace trireme::kernels::bench {
namespace {

constexpr std::int64_t kSamples = 16;
constexpr std::int64_t kFrames = 150;

class LossCase final : public Case {
 public:
  explicit LossCase(int num_threads) : spread_(on_threads(num_threads)) {
    fill_normal(inputs_.add<float>("logits", {kSamples, kFrames, kLabels + 1, kVocabulary}), 1);
    std::mt19937 random(2);
    for (std::int32_t& label : inputs_.add<std::int32_t>("labels", {kSamples, kLabels})) {
      label = static_cast<std::int32_t>(1 + random() % (kVocabulary - 1));  // 0 is the blank
    }
    workspace_.resize(transducer_workspace_bytes(lattices_));
    gradient_.resize(inputs_.get<float>("logits").size());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const TransducerTargets targets{inputs_.get<std::int32_t>("labels"), kVocabulary, 0};
    transducer_loss_and_gradient(lattices_, targets, inputs_.get<float>("logits").data(),
                                 workspace_, scale_.data(), loss_.data(), gradient_.data(),
                                 spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(loss_, outputs.add<float>("loss", {kSamples}).begin());
    const auto shape = inputs_.at("logits").shape;
    std::ranges::copy(gradient_, outputs.add<float>("gradient", shape).begin());
    return outputs;
  }

  static constexpr std::int64_t kLabels = 19;
  static constexpr std::int64_t kVocabulary = 1024;

 private:
  const Spread spread_;
  const std::vector<std::int32_t> num_frames_ = std::vector<std::int32_t>(kSamples, kFrames);
  const std::vector<std::int32_t> num_labels_ = std::vector<std::int32_t>(kSamples, kLabels);
  const Lattices lattices_{num_frames_, num_labels_, kFrames, kLabels, {}};
  const std::vector<float> scale_ = std::vector<float>(kSamples, 1.0F);
  Tensors inputs_;
  std::vector<std::byte> workspace_;
  std::vector<float> loss_ = std::vector<float>(kSamples);
  std::vector<float> gradient_;
};

struct JointForm {
  double drop_probability = 0;
  bool has_lengths = false;  ///< Random ones, and packed: peers get the padded form.
};

class JointCase final : public Case {
 public:
  JointCase(int num_threads, const JointForm& form)
      : form_(form), spread_(on_threads(num_threads)) {
    std::mt19937 random(1);
    for (std::int64_t b = 0; b < kSamples; ++b) {
      const bool is_shorter = form.has_lengths && b > 0;
      num_frames_.push_back(kFrames - (is_shorter ? random() % 100 : 0));
      num_labels_.push_back(kLabels - (is_shorter ? random() % 15 : 0));
    }
    if (form.has_lengths) offsets_ = packed_offsets(num_frames_, num_labels_);
    lattices_ = {num_frames_, num_labels_, kFrames, kLabels, offsets_};
    inputs_.options["drop_probability"] = std::to_string(form.drop_probability);
    fill_normal(inputs_.add<float>("f", {kSamples, kFrames, kWidth}), 1);
    fill_normal(inputs_.add<float>("g", {kSamples, kLabels + 1, kWidth}), 2);
    fill_normal(inputs_.add<float>("dout", {kSamples, kFrames, kLabels + 1, kWidth}), 3);
    pack();
    out_.resize(lattices_.num_rows() * kWidth);
    mask_.resize(lattices_.num_rows() * joint_mask_bytes(kWidth));
    df_.resize(kSamples * kFrames * kWidth);
    dg_.resize(kSamples * (kLabels + 1) * kWidth);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const JointOptions options{kWidth, form_.drop_probability, ++seed_};
    joint(lattices_, options, inputs_.get<float>("f").data(), inputs_.get<float>("g").data(),
          out_.data(), mask_.data(), spread_);
    joint_backward(lattices_, options, dout_.data(), mask_.data(), df_.data(), dg_.data(), spread_);
  }

  /// With dropout only what does not depend on which elements are dropped: the mean of `out`.
  Tensors outputs() const override {
    Tensors outputs;
    if (form_.drop_probability > 0) {
      outputs.add<double>("mean", {1})[0] =
          std::accumulate(out_.begin(), out_.end(), 0.0) / static_cast<double>(out_.size());
      return outputs;
    }
    const auto shape = inputs_.at("dout").shape;
    if (!form_.has_lengths) std::ranges::copy(out_, outputs.add<float>("out", shape).begin());
    std::ranges::copy(df_, outputs.add<float>("df", inputs_.at("f").shape).begin());
    std::ranges::copy(dg_, outputs.add<float>("dg", inputs_.at("g").shape).begin());
    return outputs;
  }

  static constexpr std::int64_t kLabels = 20;
  static constexpr std::int64_t kWidth = 512;

 private:
  /// dout as its form has it; where that is packed, the padding that peers read is 0.
  void pack() {
    const auto padded = inputs_.get<float>("dout");
    std::vector<float> cleared(padded.size());
    for (std::int64_t b = 0; b < kSamples; ++b) {
      for (std::int64_t t = 0; t < num_frames_[b]; ++t) {
        const std::int64_t begin = (b * kFrames + t) * (kLabels + 1) * kWidth;
        const auto rows = padded.subspan(begin, (num_labels_[b] + 1) * kWidth);
        std::ranges::copy(rows, cleared.begin() + begin);
        dout_.insert(dout_.end(), rows.begin(), rows.end());
      }
    }
    const auto shape = inputs_.at("dout").shape;
    std::ranges::copy(cleared, inputs_.add<float>("dout", shape).begin());
  }

  const JointForm form_;
  const Spread spread_;
  std::vector<std::int32_t> num_frames_, num_labels_;
  std::vector<std::int64_t> offsets_;
  Lattices lattices_;
  Tensors inputs_;
  std::uint64_t seed_ = 0;
  std::vector<float> dout_, out_, df_, dg_;
  std::vector<std::uint8_t> mask_;
};

CaseEntry joint_entry(const std::string& variant, const JointForm& form) {
  constexpr double kElements = 16 * 150 * 21 * 512;
  const bool has_dropout = form.drop_probability > 0;
  return {.name = "joint/" + variant,
          .shape = has_dropout        ? "f32, dropout 0.2"
                   : form.has_lengths ? "f32, lengths 51-150 x 7-21, packed"
                                      : "f32, no dropout",
          .bytes = form.has_lengths ? 0 : kElements * 8,
          .tolerance = has_dropout ? 1e-3 : 1e-5,
          .peers = {"torch"},
          .make = [form](const CaseSetting& setting) {
            return std::make_unique<JointCase>(setting.num_threads, form);
          }};
}

}  // namespace

std::vector<CaseEntry> transducer_cases() {
  return {{.name = "transducer_loss/16x150x20x1024",
           .shape = "f32, forward and backward",
           .bytes = 16.0 * 150 * 20 * 1024 * 12,
           .tolerance = 5e-6,
           .peers = {"torch", "torch_autograd"},
           .make =
               [](const CaseSetting& setting) {
                 return std::make_unique<LossCase>(setting.num_threads);
               }},
          joint_entry("16x150x21x512", {}),
          joint_entry("16x150x21x512_dropout", {.drop_probability = 0.2}),
          joint_entry("16x150x21x512_packed", {.has_lengths = true})};
}

}  // namespace trireme::kernels::bench
