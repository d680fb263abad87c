#include "tests/packs/speech/reference/transducer_joint.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "packs/speech/kernels/joint.h"
#include "tests/kernels/random_numbers.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::speech {
namespace {

using namespace kernels;

constexpr std::array<std::int32_t, 3> kJointFrames = {3, 1, 5};
constexpr std::array<std::int32_t, 3> kJointLabels = {2, 4, 0};

const std::vector<std::int64_t>& joint_offsets() {
  static const std::vector<std::int64_t> kOffsets = packed_offsets(kJointFrames, kJointLabels);
  return kOffsets;
}

Lattices lattices_of(bool is_packed) {
  return {kJointFrames, kJointLabels, 6, 4,
          is_packed ? std::span(joint_offsets()) : std::span<std::int64_t>()};
}

template <typename T>
struct Results {
  std::vector<T> out;
  std::vector<std::uint8_t> mask;
  std::vector<float> df, dg;
};

template <typename T>
std::vector<T> inputs_of(std::int64_t n, unsigned seed) {
  return random_numbers<T>(n, seed, 1);
}

template <typename T>
Results<T> run(const Lattices& lattices, const JointSettings& options,
               const kernels::Spread& spread = kernels::on_caller) {
  const std::int64_t H = options.width;
  const std::int64_t B = lattices.num_samples();
  const auto f = inputs_of<T>(B * lattices.max_frames * H, 1);
  const auto g = inputs_of<T>(B * (lattices.max_labels + 1) * H, 2);
  const auto dout = inputs_of<T>(lattices.num_rows() * H, 3);
  Results<T> made{std::vector<T>(lattices.num_rows() * H),
                  std::vector<std::uint8_t>(lattices.num_rows() * joint_mask_bytes(H)),
                  std::vector<float>(f.size(), 9), std::vector<float>(g.size(), 9)};
  joint(lattices, options, f.data(), g.data(), made.out.data(), made.mask.data(), spread);
  joint_backward(lattices, options, dout.data(), made.mask.data(), made.df.data(), made.dg.data(),
                 spread);
  return made;
}

template <typename T>
void expect_near(const std::vector<T>& ours, const std::vector<double>& exact, double tolerance) {
  ASSERT_EQ(ours.size(), exact.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_NEAR(kernels::to_f32(ours[i]), exact[i], tolerance * std::max(1.0, std::abs(exact[i])))
        << i;
  }
}

template <typename T>
void expect_joint_of_reference(const Lattices& lattices, const JointSettings& options,
                               double tolerance) {
  const Results<T> ours = run<T>(lattices, options);
  const std::int64_t H = options.width;
  const auto f = kernels::widened(inputs_of<T>(ours.df.size(), 1));
  const auto g = kernels::widened(inputs_of<T>(ours.dg.size(), 2));
  const auto dout = kernels::widened(inputs_of<T>(lattices.num_rows() * H, 3));
  std::vector<double> out(dout.size()), df(f.size()), dg(g.size());
  reference::joint(lattices, options, f.data(), g.data(), dout.data(), out.data(), df.data(),
                   dg.data());
  expect_near(ours.out, out, tolerance);
  expect_near(ours.df, df, 1e-6);
  expect_near(ours.dg, dg, 1e-6);
}

TEST(TransducerJointTest, EqualsTheReference) {
  for (const std::int64_t width : {1, 15, 16, 17, 127, 128, 129, 300, 512}) {
    for (const double p : {0.0, 0.2, 0.9}) {
      for (const bool is_packed : {false, true}) {
        SCOPED_TRACE(testing::Message() << width << " " << p << " " << is_packed);
        const JointSettings options{width, p, 0x123456789ABCDEF};
        expect_joint_of_reference<float>(lattices_of(is_packed), options, 1e-6);
        expect_joint_of_reference<kernels::Bf16>(lattices_of(is_packed), options, 0x1p-8);
      }
    }
  }
}

TEST(TransducerJointTest, GivesTheSameBitsOnAllInstructionSetsAndThreads) {
  for (const std::int64_t width : {1, 31, 128, 130}) {
    const Lattices lattices = lattices_of(true);
    const JointSettings options{width, 0.3, 5};
    const Results<float> best = run<float>(lattices, options);
    const auto expect_same = [&](const Results<float>& other) {
      EXPECT_EQ(best.out, other.out);
      EXPECT_EQ(best.mask, other.mask);
      EXPECT_EQ(best.df, other.df);
      EXPECT_EQ(best.dg, other.dg);
    };
    expect_same(run<float>(lattices, options, kernels::on_threads(3)));
    for (const Isa limit : {Isa::kPortable, Isa::kAvx2}) {
      const kernels::IsaLimit limited(limit);
      expect_same(run<float>(lattices, options));
    }
  }
}

TEST(TransducerJointTest, DropsTheShareThatWasAskedFor) {
  const std::vector<std::int32_t> frames = {100}, labels = {9};
  const Lattices lattices{frames, labels, 100, 9, {}};
  const JointSettings options{256, 0.2, 11};
  const std::vector<float> f(100 * 256, 1), g(10 * 256, 1);
  std::vector<float> out(1000 * 256);
  std::vector<std::uint8_t> mask(1000 * joint_mask_bytes(256));
  joint(lattices, options, f.data(), g.data(), out.data(), mask.data());
  const double kept = std::ranges::count_if(out, [](float x) { return x > 0; });
  EXPECT_NEAR(kept / out.size(), 0.8, 0.004);  // 5 standard deviations
  EXPECT_NEAR(std::accumulate(out.begin(), out.end(), 0.0) / out.size(), 2, 0.01);
}

TEST(TransducerJointTest, LetsNanThrough) {
  const std::vector<std::int32_t> frames = {1}, labels = {0};
  const Lattices lattices{frames, labels, 1, 0, {}};
  const float f[] = {std::nanf(""), -1.0F}, g[] = {1.0F, 0.0F};
  float out[2];
  std::uint8_t mask[16];
  joint(lattices, {.width = 2}, f, g, out, mask);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 0.0F);
}

TEST(TransducerJointTest, RefusesBadInput) {
  const Lattices lattices = lattices_of(false);
  float* none = nullptr;
  const auto call = [&](const Lattices& l, const JointSettings& options) {
    joint(l, options, none, none, none, nullptr);
  };
  EXPECT_THROW(call(lattices, {.width = 0}), Error);
  EXPECT_THROW(call(lattices, {.width = 1, .drop_probability = 1}), Error);
  EXPECT_THROW(call(lattices, {.width = 1, .drop_probability = -0.1}), Error);
  EXPECT_THROW(call(lattices, {.width = 1, .drop_probability = std::nan("")}), Error);
  Lattices short_of_frames = lattices;
  short_of_frames.max_frames = 4;
  EXPECT_THROW(call(short_of_frames, {.width = 1}), Error);
}

}  // namespace
}  // namespace trireme::speech
