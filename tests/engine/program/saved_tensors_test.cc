#include "trireme/engine/program/saved_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <optional>

#include "tests/engine/program/weak_storage.h"
#include "trireme/error.h"

namespace trireme::program {
namespace {

const std::filesystem::path kFolder = testing::TempDir();

TEST(OffloadedTensors, GivesBytesStridesAndSharingBack) {
  at::Tensor whole = torch::randn({4, 6});
  at::Tensor turned = whole.t().narrow(0, 1, 3), halves = torch::arange(7).to(at::kBFloat16);
  at::Tensor none = torch::empty({0, 3});
  const at::Tensor expected_whole = whole.clone(), expected_halves = halves.clone();
  const WeakStorage storage = weak(whole);
  const std::vector tensors = {&turned, &whole, &halves, &none};
  OffloadedTensors file(kFolder, tensors);
  EXPECT_FALSE(whole.defined());
  EXPECT_EQ(storage.use_count(), 0U);
  file.prefetch();
  file.read(tensors);
  EXPECT_TRUE(torch::equal(whole, expected_whole));
  EXPECT_TRUE(torch::equal(turned, expected_whole.t().narrow(0, 1, 3)));
  EXPECT_EQ(turned.strides(), whole.t().strides());
  EXPECT_TRUE(torch::equal(halves, expected_halves));
  EXPECT_EQ(none.sizes(), (std::vector<std::int64_t>{0, 3}));
  whole.fill_(5);
  EXPECT_TRUE((turned == 5).all().item<bool>());
}

TEST(OffloadedTensors, AFolderThatIsNotThereLosesNothing) {
  at::Tensor tensor = torch::ones({3});
  try {
    const OffloadedTensors file("/no/such/folder", {&tensor});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_THAT(error.message(), testing::HasSubstr("/no/such/folder"));
  }
  EXPECT_TRUE(tensor.defined());
}

/// y = sum(tanh(x w) x w), which saves tanh's result, products and the parameter.
struct Forward {
  explicit Forward(SavedTensors* saved) {
    x.set_requires_grad(true);
    const CollectSaved collect(saved);
    const at::Tensor product = torch::mm(x, w);
    const at::Tensor bent = torch::tanh(product);
    of_bent = weak(bent);
    y = (bent * product).sum();
  }

  at::Tensor gradient() {
    y.backward();
    return x.grad();
  }

  at::Tensor x = torch::arange(6, at::kFloat).view({2, 3}) / 6;
  at::Tensor w = torch::arange(12, at::kFloat).view({3, 4}) / 12;
  at::Tensor y;
  std::optional<WeakStorage> of_bent;
};

TEST(SavedTensors, ABackwardAfterAFileHasTheSameBits) {
  Forward plain(nullptr);
  const at::Tensor expected = plain.gradient();
  SavedTensors saved({});
  Forward moved(&saved);
  EXPECT_GT(moved.of_bent->use_count(), 0U);
  saved.offload(kFolder);
  EXPECT_EQ(moved.of_bent->use_count(), 0U) << "its memory is still held";
  saved.prefetch();
  saved.fetch();
  EXPECT_TRUE(torch::equal(moved.gradient(), expected));
}

TEST(SavedTensors, CollectedOnesThatAreNeverMovedServeToo) {
  Forward plain(nullptr);
  SavedTensors saved({});
  Forward collected(&saved);
  EXPECT_TRUE(torch::equal(collected.gradient(), plain.gradient()));
  saved.offload(kFolder);  // All are gone with the backward.
  saved.fetch();
}

TEST(SavedTensors, ParametersStay) {
  at::Tensor x = torch::ones({2, 3}).set_requires_grad(true), w = torch::ones({3, 4});
  SavedTensors saved({w.storage().unsafeGetStorageImpl()});
  at::Tensor y;
  {
    const CollectSaved collect(&saved);
    y = torch::mm(x, w).sum();
  }
  saved.offload(kFolder);
  y.backward();  // Without anything fetched.
  EXPECT_TRUE((x.grad() == 4).all().item<bool>());
}

// Torch's own check does not see tensors that a hook keeps.
TEST(SavedTensors, OnesThatWereWrittenToAreRefused) {
  const auto written = [](SavedTensors& saved) {
    at::Tensor x = torch::ones({3}).set_requires_grad(true);
    const CollectSaved collect(&saved);
    at::Tensor bent = torch::tanh(x);
    bent.mul_(2);
    return bent.sum();
  };
  SavedTensors offloaded({}), kept({});
  const at::Tensor first = written(offloaded), second = written(kept);
  EXPECT_THROW(offloaded.offload(kFolder), Error);
  EXPECT_ANY_THROW(second.backward());
}

TEST(SavedTensors, OtherThreadsAndForwardsAreLeftAlone) {
  SavedTensors saved({});
  at::Tensor inner;
  {
    const CollectSaved collect(&saved);
    const CollectSaved none(nullptr);  // Does not end the outer one.
  }
  at::Tensor x = torch::ones({3}).set_requires_grad(true);
  const at::Tensor bent = torch::tanh(x);
  const WeakStorage of_bent = weak(bent);
  saved.offload(kFolder);
  bent.sum().backward();
  EXPECT_TRUE(x.grad().defined());
}

}  // namespace
}  // namespace trireme::program
