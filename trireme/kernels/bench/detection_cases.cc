#include "trireme/kernels/bench/detection_cases.h"

#include <algorithm>
#include <random>

#include "trireme/kernels/bench/random_values.h"
#include "trireme/kernels/detection/nms.h"

namespace trireme::kernels::bench {
namespace {

/// Boxes of 8 to `largest` pixels in an image of 300.
Tensors make_boxes(std::int64_t n, std::int64_t num_classes, float largest) {
  Tensors inputs;
  std::vector<float> place(n * 2), extent(n * 2);
  fill_even(place, 1, 0, 300);
  fill_even(extent, 2, 8, largest);
  const auto boxes = inputs.add<float>("boxes", {n, 4});
  const auto classes = inputs.add<std::int64_t>("classes", {n});
  for (std::int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < 2; ++k) {
      boxes[i * 4 + k] = place[i * 2 + k];
      boxes[i * 4 + 2 + k] = place[i * 2 + k] + extent[i * 2 + k];
    }
    classes[i] = i % num_classes;
  }
  // All different: libraries order equal ones in their own ways.
  const auto scores = inputs.add<float>("scores", {n});
  for (std::int64_t i = 0; i < n; ++i)
    scores[i] = static_cast<float>(i + 1) / static_cast<float>(n);
  std::ranges::shuffle(scores, std::mt19937_64(3));
  return inputs;
}

class NmsCase final : public Case {
 public:
  explicit NmsCase(Tensors inputs) : inputs_(std::move(inputs)) {}

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    kept_ = batched_nms(inputs_.get<float>("boxes"), inputs_.get<float>("scores"),
                        inputs_.get<std::int64_t>("classes"));
  }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(kept_, outputs.add<std::int64_t>("kept", {std::ssize(kept_)}).begin());
    return outputs;
  }

 private:
  const Tensors inputs_;
  std::vector<std::int64_t> kept_;
};

CaseEntry nms_entry(const std::string& name, const std::string& shape, std::int64_t n,
                    std::int64_t num_classes, float largest) {
  return {.name = name, .shape = shape, .peers = {"torchvision"}, .make = [=](const CaseSetting&) {
            return std::make_unique<NmsCase>(make_boxes(n, num_classes, largest));
          }};
}

}  // namespace

std::vector<CaseEntry> detection_cases() {
  return {nms_entry("nms/8732", "8,732 boxes", 8732, 1, 60),
          nms_entry("nms/8732-small", "8,732 small boxes", 8732, 1, 30),
          nms_entry("nms/80x1000", "80 classes of 1,000 boxes", 80'000, 80, 60)};
}

}  // namespace trireme::kernels::bench
