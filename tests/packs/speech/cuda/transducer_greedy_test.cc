// The passes of GPUs' greedy decoding, run on the host: the rounds and labels of the processors'
// decoder.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "packs/speech/cuda/transducer_greedy_passes.h"
#include "tests/kernels/cuda/orders.h"
#include "tests/packs/speech/cuda/transducer_greedy_problem.h"
#include "trireme/error.h"

namespace trireme::speech::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

DeviceGreedyBatch on_host(const std::vector<std::int32_t>& num_frames, GreedyArrays& arrays) {
  return {.num_samples = std::ssize(num_frames),
          .num_frames = num_frames.data(),
          .frames = arrays.frames.data(),
          .last_labels = arrays.last_labels.data(),
          .has_new_label = arrays.has_new_label.data(),
          .is_done = arrays.is_done.data(),
          .labels = arrays.labels.data(),
          .num_labels = arrays.num_labels.data(),
          .symbols_here = arrays.symbols_here.data(),
          .num_running = arrays.num_running.data()};
}

std::vector<std::byte> greedy_workspace(std::int64_t num_samples) {
  return std::vector<std::byte>(internal::GreedySpace(internal::Cutter(), num_samples).bytes,
                                std::byte{0xFF});
}

template <typename T, typename Each>
void expect_rounds(const GreedyProblem<T>& p, const Each& each) {
  GreedyArrays arrays(p);
  const DeviceGreedyBatch batch = on_host(p.num_frames, arrays);
  MadeUpScores<T> model = p.scores();
  auto workspace = greedy_workspace(batch.num_samples);
  const auto step = [&] {
    const std::vector<T> scores = model.answer(arrays.round());
    internal::greedy_step_passes(p.options, batch, DeviceScores<T>{scores.data(), p.vocabulary},
                                 workspace, each);
  };
  internal::start_greedy_passes(p.options, batch, each);
  for (const AskedRound& round : p.rounds) {
    ASSERT_TRUE(AskedRound(arrays.round()) == round);
    EXPECT_EQ(arrays.num_running[0], std::ranges::count(round.is_done, 0));
    step();
  }
  EXPECT_EQ(arrays.num_running[0], 0);
  for (int late = 0; late < 3; ++late) step();
  EXPECT_EQ(arrays.num_running[0], 0);
  EXPECT_EQ(std::ranges::count(arrays.has_new_label, 0), batch.num_samples);
  EXPECT_EQ(arrays.emitted(), p.labels);
}

template <typename T>
void expect_rounds_in_every_order(const GreedyProblem<T>& p) {
  for (const Order order : kOrders) expect_rounds(p, InOrder(order));
}

TEST(CudaGreedyPasses, RoundsAreThoseOfAProcessor) {
  for (const std::int64_t vocabulary : {1, 2, 29, 255, 256, 257, 1030}) {
    const auto last = static_cast<std::int32_t>(vocabulary - 1);
    expect_rounds_in_every_order(GreedyProblem<float>(9, vocabulary, last));
    expect_rounds_in_every_order(GreedyProblem<kernels::Bf16>(9, vocabulary, last / 2));
  }
  expect_rounds_in_every_order(GreedyProblem<float>(0, 29, 0));
  expect_rounds_in_every_order(GreedyProblem<float>(1, 29, 0));
  expect_rounds_in_every_order(GreedyProblem<float>(300, 5, 1));
  expect_rounds(GreedyProblem<float>(5, 29, 3), OnThreads());
}

TEST(CudaGreedyPasses, StopAtTheirLimits) {
  const std::vector<std::int32_t> num_frames = {0, 1, 4, -3};
  const std::vector<float> scores = {0, 1, 0, 1, 0, 1, 0, 1};
  const GreedyProblem<float> sizes(4, 2, 0);
  GreedyArrays arrays(sizes);
  const DeviceGreedyBatch batch = on_host(num_frames, arrays);
  const GreedyOptions options{.max_symbols_per_frame = 3, .max_symbols = 10};
  auto workspace = greedy_workspace(4);
  internal::start_greedy_passes(options, batch, InOrder());
  EXPECT_EQ(arrays.num_running[0], 2);
  for (int round = 0; round < 12; ++round) {
    internal::greedy_step_passes(options, batch, DeviceScores<float>{scores.data(), 2}, workspace,
                                 InOrder());
  }
  EXPECT_EQ(arrays.num_running[0], 0);
  EXPECT_EQ(arrays.num_labels, (std::vector<std::int32_t>{0, 3, 10, 0}));
}

TEST(CudaGreedyPasses, BadArgumentsAreRefused) {
  const GreedyProblem<float> p(2, 2, 0);
  GreedyArrays arrays(p);
  const DeviceGreedyBatch batch = on_host(p.num_frames, arrays);
  const std::vector<float> scores(4);
  auto enough = greedy_workspace(2);
  std::vector<std::byte> small(64);
  const auto step = [&](const GreedyOptions& options, std::int64_t vocabulary,
                        std::span<std::byte> workspace) {
    internal::greedy_step_passes(options, batch, DeviceScores<float>{scores.data(), vocabulary},
                                 workspace, InOrder());
  };
  EXPECT_THROW(step({.max_symbols = 0}, 2, enough), Error);
  EXPECT_THROW(step({.max_symbols_per_frame = 0}, 2, enough), Error);
  EXPECT_THROW(step({}, 0, enough), Error);
  EXPECT_THROW(step({}, 2, small), Error);
  EXPECT_THROW(internal::start_greedy_passes({.max_symbols = 0}, batch, InOrder()), Error);
}

}  // namespace
}  // namespace trireme::speech::cuda
