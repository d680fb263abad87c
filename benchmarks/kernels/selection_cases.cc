#include "benchmarks/kernels/selection_cases.h"

#include <algorithm>
#include <random>
#include <string>

#include "benchmarks/kernels/random_values.h"
#include "packs/vision/kernels/permutation.h"
#include "packs/vision/kernels/selection.h"

namespace trireme::kernels::bench {
namespace {

/// Losses of 32 images, some 30 anchors of each matched.
class HardNegativesCase final : public Case {
 public:
  HardNegativesCase() {
    const auto losses = inputs_.add<float>("losses", {kImages, kAnchors});
    const auto is_matched = inputs_.add<std::uint8_t>("matched", {kImages, kAnchors});
    std::mt19937_64 random(1);
    for (std::int64_t image = 0; image < kImages; ++image) {
      // All different: libraries order equal ones in their own ways.
      const auto row = losses.subspan(image * kAnchors, kAnchors);
      for (std::int64_t i = 0; i < kAnchors; ++i) row[i] = 1e-3F * static_cast<float>(i);
      std::ranges::shuffle(row, random);
    }
    for (std::uint8_t& matched : is_matched) matched = random() % (kAnchors / 30) == 0 ? 1 : 0;
    inputs_.options["ratio"] = std::to_string(kRatio);
    is_chosen_.resize(is_matched.size());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const auto losses = inputs_.get<float>("losses");
    const auto is_matched = inputs_.get<std::uint8_t>("matched");
    for (std::int64_t begin = 0; begin < kImages * kAnchors; begin += kAnchors) {
      vision::mine_hard_negatives(losses.subspan(begin, kAnchors),
                                  is_matched.subspan(begin, kAnchors), kRatio,
                                  std::span(is_chosen_).subspan(begin, kAnchors));
    }
  }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(is_chosen_, outputs.add<std::uint8_t>("chosen", {kImages, kAnchors}).begin());
    return outputs;
  }

  static constexpr std::int64_t kImages = 32, kAnchors = 8732;

 private:
  static constexpr int kRatio = 3;

  Tensors inputs_;
  std::vector<std::uint8_t> is_chosen_;
};

class NonzeroCase final : public Case {
 public:
  /// Of `n` values one of `one_of` is not zero.
  NonzeroCase(std::int64_t n, unsigned one_of) : places_(n / one_of * 5 / 4) {
    std::mt19937_64 random(1);
    for (std::uint8_t& value : inputs_.add<std::uint8_t>("values", {n})) {
      value = random() % one_of == 0 ? 1 : 0;
    }
    inputs_.options["num_places"] = std::to_string(places_.size());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override { vision::fixed_nonzero(inputs_.get<std::uint8_t>("values"), places_); }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(places_, outputs.add<std::int64_t>("places", {std::ssize(places_)}).begin());
    return outputs;
  }

 private:
  Tensors inputs_;
  std::vector<std::int64_t> places_;
};

class PermutationCase final : public Case {
 public:
  explicit PermutationCase(std::int64_t n) : order_(n) { inputs_.options["n"] = std::to_string(n); }

  const Tensors& inputs() const override { return inputs_; }

  void run() override { vision::random_permutation(++seed_, order_); }

  /// Sorted: each library draws its own, and all of them hold each index once.
  Tensors outputs() const override {
    Tensors outputs;
    const auto sorted = outputs.add<std::int64_t>("sorted", {std::ssize(order_)});
    std::ranges::copy(order_, sorted.begin());
    std::ranges::sort(sorted);
    return outputs;
  }

 private:
  Tensors inputs_;
  std::uint64_t seed_ = 0;
  std::vector<std::int64_t> order_;
};

CaseEntry nonzero_entry(const std::string& variant, const std::string& shape, std::int64_t n,
                        unsigned one_of) {
  return {.name = "nonzero/" + variant,
          .shape = shape,
          .bytes = static_cast<double>(n) * (1 + 10.0 / one_of),
          .peers = {"numpy", "torch"},
          .make = [=](const CaseSetting&) { return std::make_unique<NonzeroCase>(n, one_of); }};
}

CaseEntry permutation_entry(const std::string& variant, const std::string& shape, std::int64_t n) {
  return {.name = "permutation/" + variant,
          .shape = shape,
          .peers = {"torch", "numpy"},
          .make = [=](const CaseSetting&) { return std::make_unique<PermutationCase>(n); }};
}

}  // namespace

std::vector<CaseEntry> selection_cases() {
  return {{.name = "hard_negatives/32x8732",
           .shape = "32 images of 8,732 anchors, ratio 3",
           .bytes = 32.0 * 8732 * 6,
           .peers = {"torch_topk", "torch"},
           .make = [](const CaseSetting&) { return std::make_unique<HardNegativesCase>(); }},
          nonzero_entry("120k", "120,000 values, one of 64", 120'000, 64),
          nonzero_entry("120k-half", "120,000 values, one of 2", 120'000, 2),
          permutation_entry("120k", "120,000 indices", 120'000),
          permutation_entry("1m", "1,000,000 indices", 1'000'000)};
}

}  // namespace trireme::kernels::bench
