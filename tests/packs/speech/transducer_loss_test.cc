#include "tests/packs/speech/reference/transducer_loss.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "packs/speech/kernels/loss.h"
#include "packs/speech/kernels/rows.h"
#include "tests/kernels/random_numbers.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::speech {
namespace {

using namespace kernels;

constexpr std::array<std::int32_t, 4> kLossFrames = {7, 1, 4, 20};
constexpr std::array<std::int32_t, 4> kLossLabels = {3, 5, 0, 18};

const std::vector<std::int64_t>& loss_offsets() {
  static const std::vector<std::int64_t> kOffsets = packed_offsets(kLossFrames, kLossLabels);
  return kOffsets;
}

/// A batch, with room for what the functions make of it.
template <typename T>
struct Problem {
  Problem(std::int64_t vocabulary, std::int64_t blank, bool is_packed)
      : lattices{kLossFrames, kLossLabels, 21, 19,
                 is_packed ? std::span(loss_offsets()) : std::span<std::int64_t>()},
        labels(4 * 19, -5),
        targets{labels, vocabulary, blank},
        logits(random_numbers<T>(lattices.num_rows() * vocabulary, 1, 1)),
        scale{1, 0.5F, -2, 3},
        workspace(transducer_workspace_bytes(lattices)),
        loss(4, 77),
        gradient(logits.size(), T{}) {
    for (std::size_t b = 0; b < kLossLabels.size(); ++b) {
      for (std::int64_t u = 0; u < kLossLabels[b]; ++u) {
        const std::int64_t label = (3 * u + b) % (vocabulary - 1);
        labels[b * 19 + u] = static_cast<std::int32_t>(label + (label >= blank ? 1 : 0));
      }
    }
    for (T& element : gradient) std::memset(&element, 0x55, sizeof(T));
  }

  void run(const kernels::Spread& spread = kernels::on_caller) {
    transducer_loss_and_gradient(lattices, targets, logits.data(), workspace, scale.data(),
                                 loss.data(), gradient.data(), spread);
  }

  Lattices lattices;
  std::vector<std::int32_t> labels;
  TransducerTargets targets;
  std::vector<T> logits;
  std::vector<float> scale;
  std::vector<std::byte> workspace;
  std::vector<float> loss;
  std::vector<T> gradient;
};

template <typename T>
std::vector<float> narrowed(const std::vector<T>& x) {
  std::vector<float> all;
  for (const T element : x) all.push_back(kernels::to_f32(element));
  return all;
}

template <typename T>
void expect_loss_of_reference(std::int64_t vocabulary, std::int64_t blank, double tolerance) {
  for (const bool is_packed : {false, true}) {
    SCOPED_TRACE(testing::Message() << "V " << vocabulary << " packed " << is_packed);
    Problem<T> p(vocabulary, blank, is_packed);
    p.run();
    const auto logits = kernels::widened(p.logits);
    const auto scale = kernels::widened(p.scale);
    std::vector<double> loss(4), gradient(logits.size());
    reference::transducer_loss(p.lattices, p.targets, logits.data(), scale.data(), loss.data(),
                               gradient.data());
    for (int b = 0; b < 4; ++b) EXPECT_NEAR(p.loss[b], loss[b], 1e-6 * std::max(1.0, loss[b]));
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      ASSERT_NEAR(kernels::to_f32(p.gradient[i]), gradient[i],
                  tolerance * std::max(1.0, std::abs(gradient[i])))
          << i;
    }
  }
}

TEST(TransducerLossTest, EqualsTheReference) {
  for (const std::int64_t vocabulary : {2, 15, 16, 17, 28, 63, 64, 65, 1029}) {
    expect_loss_of_reference<float>(vocabulary, vocabulary / 2, 4e-6);
    expect_loss_of_reference<kernels::Bf16>(vocabulary, 0, 0x1p-8);
  }
}

TEST(TransducerLossTest, ReferenceGradientIsThatOfFiniteDifferences) {
  const std::vector<std::int32_t> frames = {3, 2}, lengths = {2, 3};
  const std::vector<std::int32_t> labels = {1, 2, 0, 3, 3, 1};
  const Lattices lattices{frames, lengths, 3, 3, {}};
  const TransducerTargets targets{labels, 4, 0};
  auto x = random_numbers<double>(lattices.num_rows() * 4, 5, 1);
  const double scale[] = {1, -0.5};
  double loss[2];
  std::vector<double> gradient(x.size()), unused(x.size());
  reference::transducer_loss(lattices, targets, x.data(), scale, loss, gradient.data());
  const auto objective = [&] {
    reference::transducer_loss(lattices, targets, x.data(), scale, loss, unused.data());
    return scale[0] * loss[0] + scale[1] * loss[1];
  };
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + kStep;
    const double above = objective();
    x[i] = at - kStep;
    const double below = objective();
    x[i] = at;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-8) << i;
  }
}

template <typename T>
void expect_one_result() {
  for (const std::int64_t vocabulary : {2, 31, 64, 1025}) {
    for (const bool is_packed : {false, true}) {
      Problem<T> best(vocabulary, 1, is_packed);
      best.run();
      const auto expect_same = [&](const Problem<T>& other, const std::vector<T>& gradient) {
        EXPECT_EQ(best.loss, other.loss);
        EXPECT_EQ(narrowed(best.gradient), narrowed(gradient));
      };
      for (const Isa limit : {Isa::kPortable, Isa::kAvx2}) {
        const kernels::IsaLimit limited(limit);
        Problem<T> other(vocabulary, 1, is_packed);
        other.run();
        expect_same(other, other.gradient);
      }
      Problem<T> threaded(vocabulary, 1, is_packed);
      threaded.run(kernels::on_threads(3));
      expect_same(threaded, threaded.gradient);
      Problem<T> apart(vocabulary, 1, is_packed);
      transducer_loss(apart.lattices, apart.targets, apart.logits.data(), apart.workspace,
                      apart.loss.data());
      transducer_loss_backward(apart.lattices, apart.targets, apart.logits.data(), apart.workspace,
                               apart.scale.data(), apart.logits.data());
      expect_same(apart, apart.logits);
    }
  }
}

TEST(TransducerLossTest, GivesTheSameBitsOnAllInstructionSetsThreadsAndInPlace) {
  expect_one_result<float>();
  expect_one_result<kernels::Bf16>();
}

TEST(TransducerLossTest, LeavesNothingToCellsThatNoAlignmentMeets) {
  Problem<float> p(8, 0, true);
  for (float& x : p.logits) x *= 100;  // most cells are met less often than e^-87
  p.run();
  const auto logits = kernels::widened(p.logits);
  const auto scale = kernels::widened(p.scale);
  std::vector<double> loss(4), gradient(logits.size());
  reference::transducer_loss(p.lattices, p.targets, logits.data(), scale.data(), loss.data(),
                             gradient.data());
  for (int b = 0; b < 4; ++b) EXPECT_NEAR(p.loss[b], loss[b], 1e-6 * loss[b]);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_NEAR(p.gradient[i], gradient[i], 1e-3) << i;  // f32 logits of some 100 are this coarse
  }
}

TEST(TransducerLossTest, KeepsNanToItsSample) {
  Problem<float> p(8, 0, true);
  p.logits[loss_offsets()[1] * 8 + 3] = std::nanf("");
  p.run();
  EXPECT_TRUE(std::isnan(p.loss[1]));
  EXPECT_TRUE(std::isnan(p.gradient[loss_offsets()[1] * 8]));
  for (const int b : {0, 2, 3}) EXPECT_TRUE(std::isfinite(p.loss[b]));
  EXPECT_TRUE(std::isfinite(p.gradient[0]));
}

/// A NaN on one of two ways to a cell, where the other is impossible. Any label stands for all
/// simd lanes: sample 3 has 18 of them.
TEST(TransducerLossTest, ANanBesideAMaskedLabelIsNotLost) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::int64_t kFrame = 9, kPositions = 19, kVocabulary = 8;
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    const kernels::IsaLimit limit(isa);
    for (std::int64_t u = 1; u < kPositions; ++u) {
      for (const bool is_label_masked : {true, false}) {
        Problem<float> p(kVocabulary, 0, true);
        const auto row = [&](std::int64_t t, std::int64_t position) {
          return &p.logits[(loss_offsets()[3] + t * kPositions + position) * kVocabulary];
        };
        float* const by_blank = row(kFrame - 1, u);
        float* const by_label = row(kFrame, u - 1);
        if (is_label_masked) {
          by_blank[0] = std::nanf("");
          by_label[p.labels[3 * 19 + u - 1]] = -kInfinity;
        } else {
          by_blank[0] = -kInfinity;
          by_label[0] = std::nanf("");
        }
        p.run();
        EXPECT_TRUE(std::isnan(p.loss[3])) << to_string(isa) << ", label " << u;
        for (const int b : {0, 1, 2}) EXPECT_TRUE(std::isfinite(p.loss[b]));
      }
    }
  }
}

TEST(TransducerLossTest, TakesLogitsOfMinusInfinity) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Problem<float> p(8, 0, true);
  for (std::int64_t row = 0; row < loss_offsets().back(); ++row) p.logits[row * 8 + 7] = -kInfinity;
  std::ranges::replace(p.labels, 7, 6);
  for (std::int64_t row = loss_offsets()[2]; row < loss_offsets()[3]; ++row)
    p.logits[row * 8] = -kInfinity;
  p.run();
  EXPECT_TRUE(std::isfinite(p.loss[0]));
  EXPECT_EQ(p.gradient[7], 0.0F);
  EXPECT_EQ(p.loss[2], kInfinity);  // no blank, no end
}

void expect_refused(const Problem<float>& p, const std::string& with) {
  std::vector<float> loss(4);
  try {
    transducer_loss(p.lattices, p.targets, p.logits.data(),
                    const_cast<std::vector<std::byte>&>(p.workspace), loss.data());
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(error.message().find(with), std::string::npos) << error.message();
  }
}

TEST(TransducerLossTest, RefusesBadInput) {
  const auto with_label = [&](std::int32_t label) {
    Problem<float> p(8, 2, true);
    p.labels[19 + 4] = label;
    p.targets.labels = p.labels;
    expect_refused(p, "label 4 of sample 1");
  };
  with_label(2);
  with_label(8);
  with_label(-1);
  Problem<float> p(8, 2, true);
  p.targets.blank = 8;
  expect_refused(p, "blank 8");
  p.targets.blank = 2;
  p.targets.labels = std::span(p.labels).first(5);
  expect_refused(p, "5 labels, expected 76");
  p.targets.labels = p.labels;
  p.lattices.max_frames = 19;
  expect_refused(p, "sample 3 has 20 frames, expected 1 to 19");
  p.lattices.max_frames = 20;
  p.lattices.max_labels = 17;
  expect_refused(p, "sample 3 has 18 labels, expected 0 to 17");
  p.lattices.max_labels = 19;
  const std::vector<std::int32_t> no_frames = {7, 0, 4, 20};
  p.lattices.num_frames = no_frames;
  expect_refused(p, "sample 1 has 0 frames");
  const std::vector<std::int32_t> fewer = {7};
  p.lattices.num_frames = fewer;
  expect_refused(p, "1 samples' frames");
  p.lattices.num_frames = kLossFrames;
  const std::vector<std::int64_t> wrong = {0, 28, 34, 39, 418};
  p.lattices.offsets = wrong;
  expect_refused(p, "offset 3 is 39, expected 38");
  p.lattices.offsets = std::span(wrong).first(4);
  expect_refused(p, "4 offsets");
  p.lattices.offsets = loss_offsets();
  p.workspace.pop_back();
  expect_refused(p, "workspace");
}

}  // namespace
}  // namespace trireme::speech
