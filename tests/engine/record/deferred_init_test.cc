#include "trireme/engine/record/deferred_init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "trireme/engine/record/recording.h"
#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::record {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSide = 256;  // of a matrix that is large enough to wait

/// Physical memory of the process now.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

/// What `make` makes, by itself and put off.
void expect_same(const std::function<at::Tensor()>& make, bool waits = true) {
  torch::manual_seed(7);
  const at::Tensor expected = make();
  torch::manual_seed(7);
  DeferredInit deferred;
  at::Tensor found;
  deferred.making([&] { found = make(); });
  EXPECT_EQ(deferred.bytes() > 0, waits);
  if (waits) {
    EXPECT_EQ(found.detach().count_nonzero().item<std::int64_t>(), 0) << "not put off";
  }
  deferred.fill(found);
  EXPECT_EQ(deferred.bytes(), 0);
  EXPECT_TRUE(torch::equal(found, expected));
  deferred.fill(found);  // again does nothing
  EXPECT_TRUE(torch::equal(found, expected));
}

at::Tensor matrix() { return torch::empty({kSide, kSide}); }

TEST(DeferredInit, GivesTheValuesThatOperatorsWouldHaveGiven) {
  expect_same([] { return matrix().normal_(0.5, 2); });
  expect_same([] { return torch::randn({kSide, kSide}); });
  expect_same([] { return torch::ones({kSide, kSide}); });
  expect_same([] { return torch::full({kSide, kSide}, 3.0); });
  expect_same([] { return torch::nn::Linear(kSide, kSide)->weight; });
  expect_same([] {  // as trunc_normal_ does it
    return matrix().uniform_(-0.9, 0.9).erfinv_().mul_(0.02).add_(1).clamp_(0.97, 1.03);
  });
  expect_same([] {
    torch::nn::Embedding embedding(torch::nn::EmbeddingOptions(kSide, kSide).padding_idx(3));
    return embedding->weight;
  });
  expect_same(
      [] {
        torch::nn::Linear layer(kSide, kSide);
        const at::NoGradGuard no_grad;
        layer->weight.t().select(0, 1).fill_(9);
        layer->weight.data().mul_(torch::scalar_tensor(0.5));
        return layer->weight;
      },
      /*waits=*/false);  // a number of its own is a tensor that is read
}

TEST(DeferredInit, AnOverwrittenValueIsNeverMade) {
  expect_same([] { return matrix().fill_(1).zero_().fill_(4).mul_(2); });
}

TEST(DeferredInit, WhatIsReadHasItsValues) {
  expect_same([] { return matrix().normal_().mul(0.02); }, false);
  expect_same([] { return torch::eye(kSide) + matrix().fill_(2); }, false);
  expect_same(
      [] {
        const at::Tensor first = matrix().normal_();
        return matrix().fill_(1).copy_(first.t());
      },
      false);
  expect_same([] {
    const at::Tensor half = matrix().normal_();
    const float sum = half.sum().item<float>();
    return torch::full({kSide, kSide}, sum);
  });
  expect_same(
      [] {
        at::Tensor weight = matrix();
        torch::nn::init::orthogonal_(weight);
        return weight;
      },
      false);
}

TEST(DeferredInit, ErrorsOfAutogradAreNotPutOff) {
  DeferredInit deferred;
  const auto make = [] {
    at::Tensor leaf = matrix().fill_(1).requires_grad_(true);
    leaf.fill_(2);
  };
  EXPECT_THROW(deferred.making(make), c10::Error);
}

TEST(DeferredInit, SmallTensorsAndOthersMemoryAreWrittenAtOnce) {
  DeferredInit deferred;
  std::vector<float> own(kSide * kSide);
  at::Tensor small;
  deferred.making([&] {
    small = torch::empty({8}).fill_(3);
    torch::from_blob(own.data(), {kSide, kSide}).fill_(3);
  });
  EXPECT_EQ(deferred.bytes(), 0);
  EXPECT_EQ(small.sum().item<float>(), 24);
  EXPECT_EQ(own.back(), 3);
}

// It would have been overwritten, or zeros would have been read, in silence.
TEST(DeferredInit, RefusesMemoryThatIsUsedByOtherMeans) {
  const auto expect_refused = [](const std::function<void(at::Tensor&)>& use) {
    DeferredInit deferred;
    at::Tensor weight;
    const auto make = [&] {
      weight = matrix().fill_(1);
      use(weight);
    };
    try {
      deferred.making(make);
      FAIL() << "was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.message(), HasSubstr("by other means than torch's operators"));
    }
  };
  volatile float first = 0;
  expect_refused([](at::Tensor& weight) { weight.data_ptr<float>()[kSide] = 5; });
  expect_refused([&](at::Tensor& weight) { first = weight.accessor<float, 2>()[1][2]; });
  expect_refused([&](at::Tensor& weight) {
    first = weight.data_ptr<float>()[0];
    weight = weight.clone();
  });
  DeferredInit deferred;
  at::Tensor weight;
  deferred.making([&] { weight = matrix().fill_(1); });
  first = weight.data_ptr<float>()[0];  // as a recording does
  weight.data_ptr<float>()[kSide] = 5;
  EXPECT_THROW(deferred.fill(weight), Error);
}

TEST(DeferredInit, WaitingTensorsTakeNoMemory) {
  constexpr std::int64_t kElements = std::int64_t{64} << 20;
  const std::int64_t before = resident_bytes();
  DeferredInit deferred;
  std::vector<at::Tensor> large;
  deferred.making([&] {
    for (int i = 0; i < 8; ++i) large.push_back(torch::empty({kElements}).normal_());
  });
  EXPECT_EQ(deferred.bytes(), 8 * 4 * kElements);
  EXPECT_LT(resident_bytes() - before, std::int64_t{64} << 20);
  deferred.fill_all_but({large.begin() + 1, large.end()});
  EXPECT_EQ(deferred.bytes(), 7 * 4 * kElements);
  EXPECT_GT(large[0].abs().max().item<float>(), 3);
  EXPECT_GT(resident_bytes() - before, 4 * kElements);
}

/// A chain of `kLength` sums of 8 MiB each for a recording's ten samples; how much memory the largest recording took.
struct Chain {
  static constexpr int kLength = 24;
  std::shared_ptr<std::int64_t> most = std::make_shared<std::int64_t>(0);

  Model model() const {
    const auto layer = std::make_shared<torch::nn::LinearImpl>(16, 200 << 10);
    return make_model(layer, [layer, most = most](const Batch& batch) {
      const std::int64_t before = resident_bytes();
      torch::Tensor x = layer->forward(batch["x"]);
      for (int i = 0; i < kLength; ++i) x = i % 3 == 2 ? x.relu_() : x + 1;
      *most = std::max(*most, resident_bytes() - before);
      return x.mean();
    });
  }
};

TEST(DeferredInit, ARecordingKeepsNoActivations) {
  const BatchMaker make_batch = [](std::int64_t size, std::uint64_t) {
    Batch batch;
    batch.set("x", torch::randn({size, 16}));
    return batch;
  };
  const Chain plain, waiting;
  const Recording expected = record(plain.model(), make_batch, graph::Mode::kTrain);
  Model model = waiting.model();
  model.fill = [](const at::Tensor&) {};
  const Recording found = record(model, make_batch, graph::Mode::kTrain);
  EXPECT_TRUE(found.graph == expected.graph);
  EXPECT_GT(*plain.most, std::int64_t{100} << 20);
  EXPECT_LT(*waiting.most, std::int64_t{30} << 20);
}

}  // namespace
}  // namespace trireme::record
