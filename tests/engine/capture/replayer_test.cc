#include "trireme/engine/capture/replayer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <functional>

#include "trireme/engine/capture/tape_recorder.h"

namespace trireme::capture {
namespace {

using Function = std::function<at::Tensor(const at::Tensor&)>;

/// The calls of `function` as a forward; no backward.
struct Heard {
  explicit Heard(const Function& function, bool is_seeded = false) {
    const at::Tensor input = torch::randn({4, 6});
    recorder.set_cause([=] { return Cause{0, is_seeded}; });
    recorder.add_input(input);
    at::Tensor output;
    {
      const Listening listening(recorder);
      output = function(input);
    }
    recorder.add_output(output);
    recorder.begin_phase();
  }

  TapeRecorder recorder;
};

std::string refusal(const Function& function) { return Heard(function).recorder.refusal(); }

at::Tensor replayed(Replayer& replayer, const at::Tensor& input) {
  ReplayedRun run;
  return replayer.forward({input}, run, [](int, const auto& part) { part(); }, Fresh::kMarked)[0];
}

void expect_replayed(const Function& function) {
  Heard heard(function);
  ASSERT_EQ(heard.recorder.refusal(), "");
  Replayer replayer(heard.recorder.take());
  std::vector<at::Tensor> inputs, outputs;
  for (int i = 0; i < 3; ++i) {
    inputs.push_back(torch::randn({4, 6}));
    outputs.push_back(replayed(replayer, inputs.back()));
  }
  // Outputs are the caller's: later replays leave them.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(torch::equal(outputs[i], function(inputs[i])));
}

TEST(Replayer, CallsWhatWasHeard) {
  expect_replayed([](const at::Tensor& x) { return (x * 2 + 1).relu().matmul(x.t()); });
}

TEST(Replayer, MemoryOfAPhaseIsLetGoAfterItsLastUse) {
  Heard heard([](const at::Tensor& x) { return (x.exp() + x).sigmoid(); });
  Replayer replayer(heard.recorder.take());
  ReplayedRun run;
  const auto outputs = replayer.forward({torch::randn({4, 6})}, run, {});
  for (const c10::Storage& memory : run.owned) EXPECT_FALSE(static_cast<bool>(memory));
}

// y and u of x | z of both | z and y leave: y is kept for both later phases, u for the first of them, z for the second.
TEST(Replayer, MemoryBetweenTwoPhasesIsThatOfTheseTwo) {
  const at::Tensor x = torch::randn({4, 6});
  at::Tensor y, u, z, given, gradient;
  TapeRecorder recorder;
  recorder.set_cause([] { return Cause{0, false}; });
  recorder.add_input(x);
  const auto listen = [&](const std::function<void()>& phase) {
    const Listening listening(recorder);
    phase();
  };
  listen([&] { y = x.exp(), u = x.sigmoid(); });
  recorder.begin_phase();
  listen([&] { z = y + u, given = z.tanh(); });
  recorder.add_output(given);
  recorder.begin_phase();
  listen([&] { gradient = z + y; });
  recorder.add_site(0, gradient);
  ASSERT_EQ(recorder.refusal(), "");
  Replayer replayer(recorder.take());
  ReplayedRun run;
  const auto regions = [&] {
    std::vector<bool> there;
    for (const at::DataPtr& region : run.kept) there.push_back(region.get() != nullptr);
    return there;
  };
  replayer.forward({x}, run, {}, Fresh::kMarked);
  EXPECT_EQ(regions(), (std::vector{true, true, false}));
  const auto outputs = replayer.backward({}, run, {}, Fresh::kMarked);
  EXPECT_EQ(regions(), (std::vector{false, true, true}));
  EXPECT_TRUE(torch::equal(outputs[0], given));
  const auto is_right = [&](int, const at::Tensor& taken) {
    EXPECT_TRUE(torch::equal(taken, gradient));
  };
  replayer.weights(run, is_right, Fresh::kMarked);
  EXPECT_EQ(regions(), (std::vector{false, false, false}));
}

// As code above the dispatcher may, which nobody listens to.
TEST(Replayer, WhatNoCallWritesIsMarked) {
  const auto filled = [](const at::Tensor& x) {
    at::Tensor made = at::empty_like(x);
    std::memcpy(made.mutable_data_ptr(), x.const_data_ptr(), x.nbytes());
    return made;
  };
  const std::vector<Function> functions = {filled,
                                           [&](const at::Tensor& x) { return filled(x) * 2; }};
  for (const Function& function : functions) {
    Heard heard(function);
    ASSERT_EQ(heard.recorder.refusal(), "");
    Replayer replayer(heard.recorder.take());
    EXPECT_TRUE(replayed(replayer, torch::randn({4, 6})).isnan().all().item<bool>());
  }
}

TEST(Replayer, ViewsAreNotCalled) {
  Heard heard([](const at::Tensor& x) { return x.t().reshape({3, 8}).select(0, 1).exp(); });
  ASSERT_EQ(heard.recorder.refusal(), "");
  EXPECT_EQ(Replayer(heard.recorder.take()).num_calls(), 2U);  // the copy of the reshape, exp
}

TEST(Replayer, WritesInPlaceReachEveryView) {
  expect_replayed([](const at::Tensor& x) {
    at::Tensor y = x.clone();
    y.select(1, 2).mul_(3);
    y.t().add_(1);
    return y.sum(0);
  });
}

TEST(Replayer, OperatorsWithoutAFormThatWritesBringTheirMemory) {
  expect_replayed([](const at::Tensor& x) {
    return std::get<0>(at::native_layer_norm(x, {6}, {}, {}, 1e-5)) * x.sum();
  });
}

TEST(Replayer, AnInputMayComeOutAgain) {
  expect_replayed([](const at::Tensor& x) { return x.t(); });
}

TEST(Replayer, TakesWhatLiesInMemoryAsHeard) {
  Heard heard([](const at::Tensor& x) { return x * 2; });
  const Replayer replayer(heard.recorder.take());
  const auto takes = [&](const at::Tensor& input) {
    return replayer.takes(Phase::kForward, std::vector{input});
  };
  EXPECT_TRUE(takes(torch::randn({4, 6})));
  EXPECT_TRUE(takes(torch::randn({8, 6}).narrow(0, 2, 4)));
  EXPECT_FALSE(takes(torch::randn({3, 6})));
  EXPECT_FALSE(takes(torch::randn({6, 4}).t()));
  EXPECT_FALSE(takes(torch::randn({4, 6}, torch::kDouble)));
}

TEST(Replayer, AFailedCallSaysWhichItWas) {
  const at::Tensor table = torch::randn({4, 6});
  TapeRecorder recorder;
  recorder.add_fixed(table);
  const at::Tensor index = torch::zeros({2}, torch::kLong);
  recorder.add_input(index);
  recorder.set_cause([] { return Cause{17, false}; });
  {
    const Listening listening(recorder);
    recorder.add_output(table.index_select(0, index) * 2);
  }
  recorder.begin_phase();
  ASSERT_EQ(recorder.refusal(), "");
  Replayer replayer(recorder.take());
  try {
    replayed(replayer, torch::full({2}, 9, torch::kLong));
    FAIL() << "an index beyond the table was taken";
  } catch (const FailedCall& failed) {
    EXPECT_EQ(failed.origin, 17);
  }
  EXPECT_TRUE(torch::equal(replayed(replayer, index), table.index_select(0, index) * 2));
}

TEST(TapeRecorder, RefusesNumbersReadFromTensors) {
  EXPECT_NE(refusal([](const at::Tensor& x) {
              return x * x.sum().item<float>();
            }).find("_local_scalar_dense"),
            std::string::npos);
}

TEST(TapeRecorder, RefusesShapesThatDependOnData) {
  EXPECT_NE(refusal([](const at::Tensor& x) { return at::nonzero(x); }).find("depend on data"),
            std::string::npos);
}

TEST(TapeRecorder, TakesIndicesAndRefusesMasks) {
  EXPECT_NE(refusal([](const at::Tensor& x) { return x.index({x > 0}); }).find("depend on data"),
            std::string::npos);
  expect_replayed([](const at::Tensor& x) { return x.index({x.argmax(0)}); });
}

TEST(TapeRecorder, RefusesWritesToWhatItIsGiven) {
  EXPECT_NE(refusal([](const at::Tensor& x) { return at::Tensor(x).mul_(2); }).find("was given"),
            std::string::npos);
}

TEST(TapeRecorder, RefusesRandomNumbersOutsideOfAStream) {
  const Function draw = [](const at::Tensor& x) { return at::bernoulli(x.sigmoid()); };
  EXPECT_NE(refusal(draw).find("draws random numbers"), std::string::npos);
  EXPECT_EQ(Heard(draw, /*is_seeded=*/true).recorder.refusal(), "");
}

TEST(TapeRecorder, RefusesTensorsFromOutside) {
  const at::Tensor other = torch::randn({4, 6});
  EXPECT_NE(refusal([&](const at::Tensor& x) { return x + other; }).find("from outside"),
            std::string::npos);
}

TEST(TapeRecorder, RefusesChangesOfATensorItself) {
  EXPECT_NE(
      refusal([](const at::Tensor& x) { return x.clone().t_().add_(1); }).find("changes what"),
      std::string::npos);
}

TEST(TapeRecorder, RefusesSparseTensors) {
  EXPECT_NE(refusal([](const at::Tensor& x) { return x.to_sparse().to_dense(); }), "");
}

TEST(TapeRecorder, HoldsNoMemoryOfTheRun) {
  c10::weak_intrusive_ptr<c10::StorageImpl> seen(c10::intrusive_ptr<c10::StorageImpl>{});
  const Heard heard([&](const at::Tensor& x) {
    const at::Tensor y = x * 2;
    seen = y.storage().getWeakStorageImpl();
    return y + 1;
  });
  EXPECT_EQ(heard.recorder.refusal(), "");
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace trireme::capture
