#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/habits/habits.h"
#include "trireme/model.h"

// What the habits are written with.

namespace trireme::habits {

namespace F = torch::nn::functional;
namespace nn = torch::nn;
using torch::Tensor;

/// A module to which a habit adds what it needs.
struct Net : nn::Module {
  template <typename Holder>
  Holder part(const std::string& name, Holder holder) {
    return register_module(name, holder);
  }
  nn::Linear linear(const std::string& name, std::int64_t in = 8, std::int64_t out = 8) {
    return part(name, nn::Linear(in, out));
  }
  Tensor weight(const std::string& name, const Tensor& data) {
    return register_parameter(name, data);
  }
  Tensor state(const std::string& name, const Tensor& data) { return register_buffer(name, data); }

  int calls = 0;
  std::mt19937 dice{7};
};

/// Fields of one sample: `x`, and what it is compared with.
enum class Data {
  kVectors,    ///< x [8], y [8], c: one of 4.
  kSequences,  ///< x [6, 8], y [8], t [6]: one of 20 each.
  kPictures,   ///< x [3, 16, 16], c: one of 4.
};

inline std::shared_ptr<const data::Source> source(Data data) {
  constexpr std::int64_t kSamples = 24;
  switch (data) {
    case Data::kVectors:
      return tensor_source({{"x", torch::randn({kSamples, 8})},
                            {"y", torch::randn({kSamples, 8})},
                            {"c", torch::randint(4, {kSamples})}});
    case Data::kSequences:
      return tensor_source({{"x", torch::randn({kSamples, 6, 8})},
                            {"y", torch::randn({kSamples, 8})},
                            {"t", torch::randint(20, {kSamples, 6})}});
    case Data::kPictures:
      return tensor_source(
          {{"x", torch::rand({kSamples, 3, 16, 16})}, {"c", torch::randint(4, {kSamples})}});
  }
  return nullptr;
}

using Forward = std::function<Losses(const Batch&)>;

/// make   registers in the net what the forward that it returns works with.
inline MakeWorkload workload(Data data, Forward (*make)(Net&)) {
  return [data, make] {
    const auto net = std::make_shared<Net>();
    Forward forward = make(*net);
    return Workload{make_model(net, std::move(forward)), source(data), nullptr};
  };
}

inline MakeWorkload vectors(Forward (*make)(Net&)) { return workload(Data::kVectors, make); }
inline MakeWorkload sequences(Forward (*make)(Net&)) { return workload(Data::kSequences, make); }
inline MakeWorkload pictures(Forward (*make)(Net&)) { return workload(Data::kPictures, make); }

inline Losses mean_of(Tensor loss) { return {mean_loss(std::move(loss))}; }
inline Losses square_error(const Tensor& a, const Tensor& b) { return mean_of(F::mse_loss(a, b)); }
inline Losses classify(const Tensor& scores, const Batch& batch) {
  return mean_of(F::cross_entropy(scores, batch["c"]));
}

}  // namespace trireme::habits
