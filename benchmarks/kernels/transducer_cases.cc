#include "benchmarks/kernels/transducer_cases.h"

#include <algorithm>
#include <random>
#include <type_traits>

#include "benchmarks/kernels/dropout_checks.h"
#include "benchmarks/kernels/random_values.h"
#include "packs/speech/kernels/joint.h"
#include "packs/speech/kernels/loss.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels::bench {
namespace {

constexpr std::int64_t kSamples = 16;
constexpr std::int64_t kFrames = 150;

template <typename T>
T from_f32_as(float x) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return to_bf16(x);
  } else {
    return x;
  }
}

/// As torch has it.
template <typename T>
const char* name_of() {
  return std::is_same_v<T, float> ? "float32" : "bfloat16";
}

struct LossForm {
  bool has_lengths = false;  ///< Random ones, and packed: peers get the padded form.
};

/// Frames and labels of each sample: all of them, or random numbers of them but for the first.
struct SampleLengths {
  SampleLengths(std::int64_t most_labels, bool are_random) {
    std::mt19937 random(1);
    for (std::int64_t b = 0; b < kSamples; ++b) {
      const bool is_shorter = are_random && b > 0;
      frames.push_back(kFrames - (is_shorter ? random() % 100 : 0));
      labels.push_back(static_cast<std::int32_t>(most_labels) -
                       (is_shorter ? static_cast<std::int32_t>(random() % 15) : 0));
    }
    if (are_random) offsets = speech::packed_offsets(frames, labels);
  }

  std::vector<std::int32_t> frames, labels;
  std::vector<std::int64_t> offsets;  ///< Where rows are packed.
};

/// As T from f32.
template <typename T>
std::vector<T> converted(std::span<const float> values) {
  std::vector<T> made;
  made.reserve(values.size());
  for (const float value : values) made.push_back(from_f32_as<T>(value));
  return made;
}

template <typename T>
class LossCase final : public Case {
 public:
  LossCase(int num_threads, const LossForm& form)
      : lengths_(kLabels, form.has_lengths), spread_(on_threads(num_threads)) {
    const std::vector<std::int64_t> shape = {kSamples, kFrames, kLabels + 1, kVocabulary};
    const auto logits = inputs_.add<float>("logits", shape);
    fill_normal(logits, 1);
    for (float& logit : logits) logit = to_f32(from_f32_as<T>(logit));
    std::mt19937 random(2);
    for (std::int32_t& label : inputs_.add<std::int32_t>("labels", {kSamples, kLabels})) {
      label = static_cast<std::int32_t>(1 + random() % (kVocabulary - 1));  // 0 is the blank
    }
    std::ranges::copy(lengths_.frames, inputs_.add<std::int32_t>("frames", {kSamples}).begin());
    std::ranges::copy(lengths_.labels, inputs_.add<std::int32_t>("lengths", {kSamples}).begin());
    inputs_.options["dtype"] = name_of<T>();
    lattices_ = {lengths_.frames, lengths_.labels, kFrames, kLabels, lengths_.offsets};
    for_each_row([&](std::int64_t, std::int64_t padded) {
      const auto own = converted<T>(logits.subspan(padded, kVocabulary));
      logits_.insert(logits_.end(), own.begin(), own.end());
    });
    workspace_.resize(speech::transducer_workspace_bytes(lattices_));
    gradient_.resize(logits_.size());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const speech::TransducerTargets targets{inputs_.get<std::int32_t>("labels"), kVocabulary, 0};
    speech::transducer_loss_and_gradient(lattices_, targets, logits_.data(), workspace_,
                                         scale_.data(), loss_.data(), gradient_.data(), spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(loss_, outputs.add<float>("loss", {kSamples}).begin());
    const auto gradient = outputs.add<float>("gradient", inputs_.at("logits").shape);
    for_each_row([&](std::int64_t own, std::int64_t padded) {
      for (std::int64_t k = 0; k < kVocabulary; ++k) {
        gradient[padded + k] = to_f32(gradient_[own + k]);
      }
    });
    return outputs;
  }

  static constexpr std::int64_t kLabels = 19;
  static constexpr std::int64_t kVocabulary = 1024;

 private:
  /// Calls body(own, padded) with where a row begins in our form and in the padded one.
  template <typename Body>
  void for_each_row(const Body& body) const {
    const bool is_packed = !lengths_.offsets.empty();
    std::int64_t own = 0;
    for (std::int64_t b = 0; b < kSamples; ++b) {
      for (std::int64_t t = 0; t < (is_packed ? lengths_.frames[b] : kFrames); ++t) {
        for (std::int64_t u = 0; u <= (is_packed ? lengths_.labels[b] : kLabels); ++u) {
          body(own, ((b * kFrames + t) * (kLabels + 1) + u) * kVocabulary);
          own += kVocabulary;
        }
      }
    }
  }

  const SampleLengths lengths_;
  const Spread spread_;
  speech::Lattices lattices_;
  const std::vector<float> scale_ = std::vector<float>(kSamples, 1.0F);
  Tensors inputs_;
  std::vector<std::byte> workspace_;
  std::vector<float> loss_ = std::vector<float>(kSamples);
  std::vector<T> logits_, gradient_;
};

template <typename T>
CaseEntry loss_entry(const std::string& variant, const std::string& shape, const LossForm& form) {
  constexpr double kLogits = 16.0 * 150 * 20 * 1024;
  return {.name = "transducer_loss/16x150x20x1024" + variant,
          .shape = shape,
          .bytes = form.has_lengths ? 0 : kLogits * 3 * sizeof(T),
          .tolerance = std::is_same_v<T, float> ? 5e-3 : 3e-2,  // most of a gradient is small
          .tolerances = {{"loss", 1e-4}},
          .peers = form.has_lengths || !std::is_same_v<T, float>
                       ? std::vector<std::string>{"torch"}
                       : std::vector<std::string>{"torch", "torch_autograd"},
          .make = [form](const CaseSetting& setting) {
            return std::make_unique<LossCase<T>>(setting.num_threads, form);
          }};
}

struct JointForm {
  double drop_probability = 0;
  bool has_lengths = false;  ///< Random ones, and packed: peers get the padded form.
};

template <typename T>
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
    if (form.has_lengths) offsets_ = speech::packed_offsets(num_frames_, num_labels_);
    lattices_ = {num_frames_, num_labels_, kFrames, kLabels, offsets_};
    inputs_.options["drop_probability"] = std::to_string(form.drop_probability);
    inputs_.options["dtype"] = name_of<T>();
    f_ = converted<T>(fill("f", {kSamples, kFrames, kWidth}, 1));
    g_ = converted<T>(fill("g", {kSamples, kLabels + 1, kWidth}, 2));
    fill("dout", {kSamples, kFrames, kLabels + 1, kWidth}, 3);
    pack();
    out_.resize(lattices_.num_rows() * kWidth);
    mask_.resize(lattices_.num_rows() * speech::joint_mask_bytes(kWidth));
    df_.resize(kSamples * kFrames * kWidth);
    dg_.resize(kSamples * (kLabels + 1) * kWidth);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override { make(form_.drop_probability); }

  /// With dropout only what does not depend on which elements are dropped.
  void check() override {
    make(form_.drop_probability);
    Tensors made = results();
    if (form_.drop_probability == 0) {
      checked_ = std::move(made);
      return;
    }
    make(0);
    const Tensors plain = results();
    const auto with = [&](const char* one, const char* other) {
      return product(made.get<float>(one), inputs_.get<float>(other));
    };
    for (const char* name : {"out", "df", "dg"}) {
      add_statistics(name, made.get<float>(name), plain.get<float>(name), checked_);
    }
    add_identity("out_of_inputs", with("df", "f") + with("dg", "g"), with("out", "dout"), checked_);
  }

  Tensors outputs() const override { return checked_; }

  static constexpr std::int64_t kLabels = 20;
  static constexpr std::int64_t kWidth = 512;

 private:
  /// Normal numbers that are of T as well.
  std::span<const float> fill(const char* name, const std::vector<std::int64_t>& shape,
                              std::uint64_t seed) {
    const auto values = inputs_.add<float>(name, shape);
    fill_normal(values, seed);
    for (float& value : values) value = to_f32(from_f32_as<T>(value));
    return values;
  }

  void make(double drop_probability) {
    const speech::JointSettings options{kWidth, drop_probability, ++seed_};
    speech::joint(lattices_, options, f_.data(), g_.data(), out_.data(), mask_.data(), spread_);
    speech::joint_backward(lattices_, options, dout_.data(), mask_.data(), df_.data(), dg_.data(),
                           spread_);
  }

  Tensors results() const {
    Tensors outputs;
    const auto shape = inputs_.at("dout").shape;
    if (!form_.has_lengths) {
      std::ranges::transform(out_, outputs.add<float>("out", shape).begin(),
                             [](T x) { return to_f32(x); });
    }
    std::ranges::copy(df_, outputs.add<float>("df", inputs_.at("f").shape).begin());
    std::ranges::copy(dg_, outputs.add<float>("dg", inputs_.at("g").shape).begin());
    return outputs;
  }

  /// dout as its form has it; where that is packed, the padding that peers read is 0.
  void pack() {
    const auto padded = inputs_.get<float>("dout");
    std::vector<float> cleared(padded.size());
    for (std::int64_t b = 0; b < kSamples; ++b) {
      for (std::int64_t t = 0; t < num_frames_[b]; ++t) {
        const std::int64_t begin = (b * kFrames + t) * (kLabels + 1) * kWidth;
        const auto rows = padded.subspan(begin, (num_labels_[b] + 1) * kWidth);
        std::ranges::copy(rows, cleared.begin() + begin);
        const auto own = converted<T>(rows);
        dout_.insert(dout_.end(), own.begin(), own.end());
      }
    }
    const auto shape = inputs_.at("dout").shape;
    std::ranges::copy(cleared, inputs_.add<float>("dout", shape).begin());
  }

  const JointForm form_;
  const Spread spread_;
  std::vector<std::int32_t> num_frames_, num_labels_;
  std::vector<std::int64_t> offsets_;
  speech::Lattices lattices_;
  Tensors inputs_, checked_;
  std::uint64_t seed_ = 0;
  std::vector<T> f_, g_, dout_, out_;
  std::vector<float> df_, dg_;
  std::vector<std::uint8_t> mask_;
};

/// In bf16 torch rounds the gradients' sums, ours are f32: up to 2^-8 of them, 3.9e-3. `out` is one
/// sum, rounded once: equal.
template <typename T>
CaseEntry joint_entry(const std::string& variant, const std::string& shape, const JointForm& form) {
  constexpr double kElements = 16 * 150 * 21 * 512;
  constexpr bool kIsF32 = std::is_same_v<T, float>;
  const bool has_dropout = form.drop_probability > 0;
  CaseEntry entry{.name = "joint/16x150x21x512" + variant,
                  .shape = shape,
                  .bytes = form.has_lengths ? 0 : kElements * 2 * sizeof(T),
                  .tolerance = has_dropout ? kStatisticsTolerance
                               : kIsF32    ? 1e-4
                                           : 5e-3,
                  .tolerances = {{"out_of_inputs", kIdentityTolerance}},
                  .peers = {"torch"},
                  .make = [form](const CaseSetting& setting) {
                    return std::make_unique<JointCase<T>>(setting.num_threads, form);
                  }};
  if (!kIsF32) entry.tolerances["out"] = 0;
  return entry;
}

}  // namespace

std::vector<CaseEntry> transducer_cases() {
  return {
      loss_entry<float>("", "f32, forward and backward", {}),
      loss_entry<float>("_packed", "f32, lengths 51-150 x 6-20, packed", {.has_lengths = true}),
      loss_entry<Bf16>("_bf16", "bf16, forward and backward", {}),
      joint_entry<float>("", "f32, no dropout", {}),
      joint_entry<float>("_dropout", "f32, dropout 0.2", {.drop_probability = 0.2}),
      joint_entry<float>("_packed", "f32, lengths 51-150 x 7-21, packed", {.has_lengths = true}),
      joint_entry<Bf16>("_bf16", "bf16, no dropout", {})};
}

}  // namespace trireme::kernels::bench
