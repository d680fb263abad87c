#include "tests/packs/speech/reference/transducer_greedy.h"

#include <gtest/gtest.h>

#include <random>

#include "packs/speech/kernels/greedy.h"
#include "trireme/base/random.h"
#include "trireme/error.h"

namespace trireme::speech {
namespace {

constexpr std::int32_t kBlank = 3;

/// A label that depends on the frame and on all labels before; the blank for about half of them.
std::int32_t toy_label(std::int64_t sample, std::int32_t frame, std::uint64_t state) {
  const std::uint64_t random =
      stream_seed(state, {static_cast<std::uint64_t>(sample), static_cast<std::uint64_t>(frame)});
  return random % 2 == 0 ? kBlank : static_cast<std::int32_t>(random / 2 % 10);
}

/// Keeps a state for each sample, as a prediction network does.
class ToyModel final : public GreedyModel {
 public:
  explicit ToyModel(std::span<const std::int32_t> num_frames)
      : num_frames_(num_frames), states_(num_frames.size()) {}

  void best_labels(const GreedyRound& round, std::span<std::int32_t> best) override {
    ++num_calls_;
    for (std::size_t b = 0; b < best.size(); ++b) {
      if (round.has_new_label[b] != 0) {
        states_[b] = stream_seed(states_[b], {static_cast<std::uint64_t>(round.last_labels[b])});
      }
      EXPECT_LT(round.frames[b], std::max(num_frames_[b], 1));
      best[b] = round.is_done[b] != 0 ? -7 : toy_label(b, round.frames[b], states_[b]);
    }
  }

  int num_calls() const { return num_calls_; }

 private:
  std::span<const std::int32_t> num_frames_;
  std::vector<std::uint64_t> states_;
  int num_calls_ = 0;
};

std::vector<std::int32_t> sequential(const GreedyOptions& options, std::int64_t sample,
                                     std::int32_t num_frames) {
  return reference::decode_greedily(
      options, num_frames, [&](std::int32_t frame, const std::vector<std::int32_t>& labels) {
        std::uint64_t state = 0;
        for (const std::int32_t label : labels) {
          state = stream_seed(state, {static_cast<std::uint64_t>(label)});
        }
        return toy_label(sample, frame, state);
      });
}

TEST(TransducerGreedyTest, EqualsTheSequentialDecoder) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::int32_t> num_frames(random() % 20);
    for (auto& frames : num_frames) frames = static_cast<std::int32_t>(random() % 40);
    const GreedyOptions options{.blank = kBlank,
                                .max_symbols_per_frame = 1 + static_cast<int>(random() % 5),
                                .max_symbols = 1 + static_cast<int>(random() % 40)};
    ToyModel model(num_frames);
    const auto labels = decode_greedily(options, num_frames, model);
    ASSERT_EQ(labels.size(), num_frames.size());
    std::size_t most = 0;
    for (std::size_t b = 0; b < labels.size(); ++b) {
      EXPECT_EQ(labels[b], sequential(options, b, num_frames[b])) << "sample " << b;
      most = std::max(most, labels[b].size() + num_frames[b]);
    }
    EXPECT_LE(model.num_calls(), most);
  }
}

TEST(TransducerGreedyTest, StopsAtItsLimits) {
  class Stubborn final : public GreedyModel {
    void best_labels(const GreedyRound&, std::span<std::int32_t> best) override {
      std::ranges::fill(best, 5);
    }
  } model;
  const std::vector<std::int32_t> num_frames = {0, 1, 4};
  const auto labels =
      decode_greedily({.max_symbols_per_frame = 3, .max_symbols = 10}, num_frames, model);
  EXPECT_EQ(labels[0].size(), 0);
  EXPECT_EQ(labels[1].size(), 3);
  EXPECT_EQ(labels[2].size(), 10);
}

TEST(TransducerGreedyTest, RefusesBadInput) {
  class Negative final : public GreedyModel {
    void best_labels(const GreedyRound&, std::span<std::int32_t> best) override {
      std::ranges::fill(best, -2);
    }
  } model;
  const std::vector<std::int32_t> good = {1}, bad = {1, -1};
  EXPECT_THROW(decode_greedily({}, good, model), Error);
  EXPECT_THROW(decode_greedily({}, bad, model), Error);
  EXPECT_THROW(decode_greedily({.max_symbols_per_frame = 0}, good, model), Error);
  EXPECT_THROW(decode_greedily({.max_symbols = 0}, good, model), Error);
}

}  // namespace
}  // namespace trireme::speech
