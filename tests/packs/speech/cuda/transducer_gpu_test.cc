// The transducer's kernels on a GPU, against those of processors. The joint has their bits; the
// loss too, but for logarithms in f64.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "packs/speech/cuda/transducer_joint.h"
#include "packs/speech/cuda/transducer_loss.h"
#include "tests/kernels/cuda/device_array.h"
#include "tests/packs/speech/cuda/transducer_problem.h"

namespace trireme::speech::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

class CudaTransducer : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
    stream = trireme::cuda::make_stream(0);
    handle = trireme::cuda::handle_of(*stream);
  }

  template <typename T>
  void expect_bits_of_joint(const JointProblem<T>& p) {
    const auto on_device = [&](const auto& values) { return DeviceArray(values, *stream); };
    JointResult<T> made(p);
    const auto frames = on_device(p.batch.frames), labels = on_device(p.batch.labels);
    const auto offsets = on_device(p.batch.offsets);
    const auto f = on_device(p.f), g = on_device(p.g), dout = on_device(p.dout);
    const auto out = on_device(made.out);
    const auto mask = on_device(made.mask);
    const auto df = on_device(made.df), dg = on_device(made.dg);
    DeviceLattices lattices = p.batch.device_lattices();
    lattices.num_frames = frames.data();
    lattices.num_labels = labels.data();
    if (p.batch.is_packed) lattices.offsets = offsets.data();
    joint(lattices, p.options, f.data(), g.data(), out.data(), mask.data(), handle);
    joint_backward(lattices, p.options, dout.data(), mask.data(), df.data(), dg.data(), handle);
    made.out = out.values();
    made.mask = mask.values();
    made.df = df.values();
    made.dg = dg.values();
    EXPECT_TRUE(made == JointResult<T>::of_host(p)) << p.options.width;
  }

  template <typename T>
  void expect_loss(const LossProblem<T>& p) {
    const auto on_device = [&](const auto& values) { return DeviceArray(values, *stream); };
    std::vector<float> expected(p.scale.size());
    std::vector<T> expected_gradient(p.logits.size());
    p.solve(expected, expected_gradient);
    const auto frames = on_device(p.batch.frames), labels = on_device(p.batch.labels);
    const auto offsets = on_device(p.batch.offsets);
    const auto targets = on_device(p.labels);
    const auto logits = on_device(p.logits);
    const auto scale = on_device(p.scale);
    const auto gradient = on_device(std::vector<T>(p.logits.size(), unwritten<T>()));
    const auto loss = on_device(std::vector<float>(expected.size(), unwritten<float>()));
    DeviceLattices lattices = p.batch.device_lattices();
    lattices.num_frames = frames.data();
    lattices.num_labels = labels.data();
    if (p.batch.is_packed) lattices.offsets = offsets.data();
    const DeviceTargets device_targets{targets.data(), p.vocabulary, p.blank};
    const trireme::cuda::DeviceMemory workspace(
        0, transducer_workspace_bytes(lattices, device_targets));
    transducer_loss(lattices, device_targets, logits.data(), workspace.bytes(), loss.data(),
                    handle);
    transducer_loss_backward(lattices, device_targets, logits.data(), workspace.bytes(),
                             scale.data(), gradient.data(), handle);
    const std::vector<float> losses = loss.values();
    for (std::size_t b = 0; b < losses.size(); ++b) {
      EXPECT_NEAR(losses[b], expected[b], 1e-6 * std::abs(expected[b]));
    }
    const std::vector<float> ours = as_floats(gradient.values());
    const std::vector<float> its = as_floats(expected_gradient);
    for (std::size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], its[i], 1e-5) << i;
  }

  std::unique_ptr<Stream> stream;
  CUstream_st* handle = nullptr;
};

TEST_F(CudaTransducer, JointHasTheBitsOfAProcessor) {
  for (const bool is_packed : {false, true}) {
    expect_bits_of_joint(JointProblem<float>(130, 0.3, is_packed));
    expect_bits_of_joint(JointProblem<kernels::Bf16>(47, 0, is_packed));
  }
}

TEST_F(CudaTransducer, LossIsThatOfAProcessor) {
  for (const bool is_packed : {false, true}) {
    expect_loss(LossProblem<float>(29, 28, is_packed));
    expect_loss(LossProblem<float>(1030, 7, is_packed));
    expect_loss(LossProblem<kernels::Bf16>(29, 0, is_packed));
  }
}

}  // namespace
}  // namespace trireme::speech::cuda
