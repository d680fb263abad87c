#include "benchmarks/kernels/greedy_cases.h"

#include <algorithm>
#include <array>
#include <random>

#include "packs/speech/kernels/greedy.h"

namespace trireme::kernels::bench {
namespace {

constexpr std::int64_t kSamples = 16;
constexpr std::int64_t kFrames = 150;  // T
constexpr std::int64_t kUnits = 32;    // H
constexpr std::int64_t kLabels = 32;   // V, 0 the blank
constexpr float kBound = 3;

/// An Elman network and a joint, of integers:
///
///     state = clamp(state W + E[label])        best = argmax(relu(f[t] + state) O + bias)
class IntegerModel final : public speech::GreedyModel {
 public:
  explicit IntegerModel(const Tensors& inputs)
      : frames_(inputs.get<float>("f")),
        embedding_(inputs.get<float>("embedding")),
        recurrent_(inputs.get<float>("recurrent")),
        out_(inputs.get<float>("out")),
        bias_(inputs.get<float>("bias")) {}

  void best_labels(const speech::GreedyRound& round, std::span<std::int32_t> best) override {
    for (std::size_t b = 0; b < best.size(); ++b) {
      if (round.is_done[b] != 0) continue;
      if (round.has_new_label[b] != 0) move(states_[b], round.last_labels[b]);
      best[b] = best_label(b, round.frames[b]);
    }
  }

 private:
  using State = std::array<float, kUnits>;

  /// sums += x row
  template <std::size_t N>
  static void add_row(float x, const float* row, std::array<float, N>& sums) {
    for (std::size_t i = 0; i < N; ++i) sums[i] += x * row[i];
  }

  void move(State& state, std::int32_t label) const {
    State next;
    std::ranges::copy(embedding_.subspan(label * kUnits, kUnits), next.begin());
    for (std::int64_t h = 0; h < kUnits; ++h) add_row(state[h], &recurrent_[h * kUnits], next);
    for (std::int64_t h = 0; h < kUnits; ++h) state[h] = std::clamp(next[h], -kBound, kBound);
  }

  std::int32_t best_label(std::size_t b, std::int64_t t) const {
    std::array<float, kLabels> scores;
    std::ranges::copy(bias_, scores.begin());
    const float* f = &frames_[(static_cast<std::int64_t>(b) * kFrames + t) * kUnits];
    for (std::int64_t h = 0; h < kUnits; ++h) {
      add_row(std::max(f[h] + states_[b][h], 0.0F), &out_[h * kLabels], scores);
    }
    return static_cast<std::int32_t>(std::ranges::max_element(scores) - scores.begin());
  }

  const std::span<const float> frames_;     ///< [B, T, H]
  const std::span<const float> embedding_;  ///< [V, H]
  const std::span<const float> recurrent_;  ///< [H, H]
  const std::span<const float> out_;        ///< [H, V]
  const std::span<const float> bias_;       ///< [V]
  std::array<State, kSamples> states_ = {};
};

class GreedyCase final : public Case {
 public:
  GreedyCase() {
    fill("f", {kSamples, kFrames, kUnits}, 4);
    fill("embedding", {kLabels, kUnits}, 2);
    fill("recurrent", {kUnits, kUnits}, 1);
    fill("out", {kUnits, kLabels}, 2);
    const auto bias = inputs_.add<float>("bias", {kLabels});  // no two scores are equal
    for (std::int64_t v = 0; v < kLabels; ++v) bias[v] = static_cast<float>(v) / kLabels;
    bias[0] = kBlankBias;
    for (std::int64_t b = 0; b < kSamples; ++b) num_frames_.push_back(kFrames - 50 * b / kSamples);
    std::ranges::copy(num_frames_, inputs_.add<std::int32_t>("num_frames", {kSamples}).begin());
    inputs_.options["max_symbols_per_frame"] = std::to_string(kOptions.max_symbols_per_frame);
    inputs_.options["max_symbols"] = std::to_string(kOptions.max_symbols);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    IntegerModel model(inputs_);
    labels_ = speech::decode_greedily(kOptions, num_frames_, model);
  }

  /// A row for each sample, filled up with -1.
  Tensors outputs() const override {
    std::int64_t most = 0;
    for (const auto& labels : labels_) most = std::max(most, std::ssize(labels));
    Tensors outputs;
    const auto rows = outputs.add<std::int32_t>("labels", {kSamples, most});
    std::ranges::fill(rows, -1);
    for (std::int64_t b = 0; b < kSamples; ++b) {
      std::ranges::copy(labels_[b], rows.subspan(b * most).begin());
    }
    return outputs;
  }

 private:
  static constexpr float kBlankBias = 45;  ///< The blank is best three times of four.
  static constexpr speech::GreedyOptions kOptions{};

  /// Integers from -most to most.
  void fill(const std::string& name, std::vector<std::int64_t> shape, int most) {
    for (float& value : inputs_.add<float>(name, std::move(shape))) {
      value = static_cast<float>(static_cast<int>(random_() % (2 * most + 1)) - most);
    }
  }

  Tensors inputs_;
  std::mt19937_64 random_{1};
  std::vector<std::int32_t> num_frames_;
  std::vector<std::vector<std::int32_t>> labels_;
};

}  // namespace

std::vector<CaseEntry> greedy_cases() {
  return {{.name = "greedy/16x150",
           .shape = "16 x 100-150 frames, 32 units, 32 labels",
           .peers = {"numpy", "torch"},
           .make = [](const CaseSetting&) { return std::make_unique<GreedyCase>(); }}};
}

}  // namespace trireme::kernels::bench
