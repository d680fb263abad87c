#include "trireme/engine/parameters/parameter_store.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/models/models.h"
#include "trireme/engine/record/recording.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::parameters {
namespace {

struct Fixture {
  models::TestModel test;
  record::Recording recording;
  std::vector<at::Tensor> before;

  explicit Fixture(const std::string& name)
      : test(models::make(name)),
        recording(record::record(test.model, test.make_batch, graph::Mode::kTrain)) {
    for (const NamedTensor& item : test.model.parameters) {
      before.push_back(item.tensor.detach().clone());
    }
  }

  ParameterStore store(const ParameterStore::Options& options = {}) const {
    const layout::Plan plan = layout::make_manual_plan(
        recording.graph, graph::graph_sha256(recording.graph), {}, {4, 2, 1});
    return {layout::make_parameter_map(recording.graph, plan), recording.graph, recording.tensors,
            options};
  }
};

TEST(Store, KeepsValuesAndStridesAndShowsThemInTheModel) {
  for (const std::string& name : models::names()) {
    const Fixture fixture(name);
    const ParameterStore store = fixture.store();
    for (std::size_t i = 0; i < fixture.before.size(); ++i) {
      const NamedTensor& item = fixture.test.model.parameters[i];
      const at::Tensor& value = store.value(item.name);
      EXPECT_TRUE(torch::equal(value, fixture.before[i])) << item.name;
      EXPECT_EQ(value.strides(), fixture.before[i].strides()) << item.name;
      EXPECT_EQ(value.data_ptr(), item.tensor.data_ptr()) << item.name;
      EXPECT_TRUE(item.tensor.is_leaf() && item.tensor.requires_grad());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(value.data_ptr()) % 64, 0U);
    }
  }
}

TEST(Store, TheModelCanStillBeRecorded) {
  const Fixture fixture("transformer");
  const ParameterStore store = fixture.store();
  record::check_drift(fixture.recording.graph, fixture.test.model, fixture.test.make_batch, 1);
}

TEST(Store, SitesOfATiedParameterHaveGradientsOfTheirOwn) {
  const Fixture fixture("transformer");
  const ParameterStore store = fixture.store();
  const GradientBuffers gradients = store.make_gradients();
  ASSERT_EQ(store.sites("embedding.weight").size(), 2U);
  const at::Tensor first = store.gradient_view(gradients, "embedding.weight", 0);
  const at::Tensor second = store.gradient_view(gradients, "embedding.weight", 1);
  first.fill_(1);
  EXPECT_EQ(second.abs().sum().item<float>(), 0);
  EXPECT_EQ(first.sizes(), store.value("embedding.weight").sizes());
}

TEST(Store, MemoryCanBeHandedIn) {
  const Fixture fixture("mlp");
  std::vector<at::Tensor> handed;
  const ParameterStore store = fixture.store({.memory = [&](std::int64_t bytes) {
    handed.push_back(make_flat_memory(bytes));
    return handed.back();
  }});
  ASSERT_FALSE(handed.empty());
  const auto* begin = static_cast<std::byte*>(handed[0].data_ptr());
  const auto* value = static_cast<std::byte*>(store.value("first.weight").data_ptr());
  EXPECT_TRUE(begin <= value && value < begin + handed[0].nbytes());
}

TEST(Store, NamesWhatItDoesNotHave) {
  const Fixture fixture("mlp");
  const ParameterStore store = fixture.store();
  EXPECT_THROW(store.value("third.weight"), Error);
}

}  // namespace
}  // namespace trireme::parameters
