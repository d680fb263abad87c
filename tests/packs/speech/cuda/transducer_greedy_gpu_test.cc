// Greedy decoding on a GPU: the rounds and labels of the processors' decoder.

#include <gtest/gtest.h>

#include <vector>

#include "packs/speech/cuda/transducer_greedy.h"
#include "tests/kernels/cuda/device_array.h"
#include "tests/packs/speech/cuda/transducer_greedy_problem.h"

namespace trireme::speech::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

template <typename T>
void expect_rounds(const GreedyProblem<T>& p, Stream& stream) {
  const auto on_device = [&](const auto& values) { return DeviceArray(values, stream); };
  CUstream_st* const handle = trireme::cuda::handle_of(stream);
  GreedyArrays arrays(p);
  const auto num_frames = on_device(p.num_frames), frames = on_device(arrays.frames);
  const auto last_labels = on_device(arrays.last_labels), labels = on_device(arrays.labels);
  const auto num_labels = on_device(arrays.num_labels), here = on_device(arrays.symbols_here);
  const auto num_running = on_device(arrays.num_running);
  const auto has_new_label = on_device(arrays.has_new_label), is_done = on_device(arrays.is_done);
  const DeviceGreedyBatch batch{.num_samples = std::ssize(p.num_frames),
                                .num_frames = num_frames.data(),
                                .frames = frames.data(),
                                .last_labels = last_labels.data(),
                                .has_new_label = has_new_label.data(),
                                .is_done = is_done.data(),
                                .labels = labels.data(),
                                .num_labels = num_labels.data(),
                                .symbols_here = here.data(),
                                .num_running = num_running.data()};
  const trireme::cuda::DeviceMemory workspace(0, greedy_workspace_bytes(batch.num_samples));
  MadeUpScores<T> model = p.scores();
  start_greedy(p.options, batch, handle);
  for (const AskedRound& round : p.rounds) {
    arrays.frames = frames.values();
    arrays.last_labels = last_labels.values();
    arrays.has_new_label = has_new_label.values();
    arrays.is_done = is_done.values();
    ASSERT_TRUE(AskedRound(arrays.round()) == round) << p.vocabulary;
    const auto scores = on_device(model.answer(arrays.round()));
    greedy_step(p.options, batch, DeviceScores<T>{scores.data(), p.vocabulary}, workspace.bytes(),
                handle);
    stream.wait();
  }
  arrays.labels = labels.values();
  arrays.num_labels = num_labels.values();
  EXPECT_EQ(arrays.emitted(), p.labels) << p.vocabulary;
  EXPECT_EQ(num_running.values()[0], 0);
}

TEST(CudaGreedy, RoundsAreThoseOfAProcessor) {
  if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
  const auto stream = trireme::cuda::make_stream(0);
  for (const std::int64_t vocabulary : {1, 29, 257, 1030}) {
    expect_rounds(GreedyProblem<float>(9, vocabulary, 0), *stream);
    expect_rounds(GreedyProblem<kernels::Bf16>(300, vocabulary, 0), *stream);
  }
}

}  // namespace
}  // namespace trireme::speech::cuda
