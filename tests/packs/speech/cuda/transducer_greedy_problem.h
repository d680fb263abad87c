#pragma once

// A batch to decode greedily with made-up scores, and its decoding by a processor, for tests.

#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "packs/speech/kernels/greedy.h"
#include "trireme/base/random.h"
#include "trireme/kernels/half.h"

namespace trireme::speech::cuda {

/// A round that is kept.
struct AskedRound {
  explicit AskedRound(const GreedyRound& round)
      : frames(round.frames.begin(), round.frames.end()),
        last_labels(round.last_labels.begin(), round.last_labels.end()),
        has_new_label(round.has_new_label.begin(), round.has_new_label.end()),
        is_done(round.is_done.begin(), round.is_done.end()) {}

  bool operator==(const AskedRound&) const = default;

  std::vector<std::int32_t> frames, last_labels;
  std::vector<std::uint8_t> has_new_label, is_done;
};

/// A model whose scores depend on the sample, its frame and all labels before. They take few
/// values, so labels tie; some are NaN or -infinity, in some rows all. The blank leads in about
/// half.
template <typename T>
class MadeUpScores {
 public:
  MadeUpScores(std::int64_t num_samples, std::int64_t vocabulary, std::int32_t blank)
      : vocabulary_(vocabulary), blank_(blank), states_(num_samples) {}

  /// [B, V]
  std::vector<T> answer(const GreedyRound& round) {
    std::vector<T> scores;
    for (std::size_t b = 0; b < states_.size(); ++b) {
      if (round.has_new_label[b] != 0) {
        states_[b] = stream_seed(states_[b], {static_cast<std::uint64_t>(round.last_labels[b])});
      }
      const std::uint64_t row =
          stream_seed(states_[b], {b, static_cast<std::uint64_t>(round.frames[b])});
      for (std::int64_t label = 0; label < vocabulary_; ++label) {
        const float score = round.is_done[b] != 0 ? 1000 : score_of(row, label);
        if constexpr (std::is_same_v<T, kernels::Bf16>) {
          scores.push_back(kernels::to_bf16(score));
        } else {
          scores.push_back(score);
        }
      }
    }
    return scores;
  }

 private:
  float score_of(std::uint64_t row, std::int64_t label) const {
    if (row % 16 == 0) return std::numeric_limits<float>::quiet_NaN();
    if (row % 16 == 1) return -std::numeric_limits<float>::infinity();
    if (label == blank_ && row % 2 == 0) return 9;
    const std::uint64_t random = stream_seed(row, {static_cast<std::uint64_t>(label)});
    if (random % 8 == 0) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(random % 8) - 4;
  }

  std::int64_t vocabulary_;
  std::int32_t blank_;
  std::vector<std::uint64_t> states_;
};

/// What a processor's decoder asks; its rounds are kept.
template <typename T>
class AskedModel final : public GreedyModel {
 public:
  AskedModel(const MadeUpScores<T>& scores, std::vector<AskedRound>& rounds)
      : scores_(scores), rounds_(rounds) {}

  void best_labels(const GreedyRound& round, std::span<std::int32_t> best) override {
    rounds_.emplace_back(round);
    const std::vector<T> scores = scores_.answer(round);
    const std::size_t vocabulary = scores.size() / best.size();
    for (std::size_t b = 0; b < best.size(); ++b) {
      best[b] = best_of(std::span(scores).subspan(b * vocabulary, vocabulary));
    }
  }

 private:
  /// The first of the largest; NaN is the least.
  static std::int32_t best_of(std::span<const T> row) {
    std::size_t best = 0;
    float most = -std::numeric_limits<float>::infinity();
    for (std::size_t label = 0; label < row.size(); ++label) {
      if (!(kernels::to_f32(row[label]) > most)) continue;
      most = kernels::to_f32(row[label]);
      best = label;
    }
    return static_cast<std::int32_t>(best);
  }

  MadeUpScores<T> scores_;
  std::vector<AskedRound>& rounds_;
};

template <typename T>
struct GreedyProblem {
  GreedyProblem(std::int64_t num_samples, std::int64_t vocabulary, std::int32_t blank)
      : options{.blank = blank, .max_symbols_per_frame = 3, .max_symbols = 25},
        vocabulary(vocabulary) {
    for (std::int64_t b = 0; b < num_samples; ++b) {
      num_frames.push_back(static_cast<std::int32_t>(b * 7 % 40));  // the first has none
    }
    AskedModel<T> model(scores(), rounds);
    labels = decode_greedily(options, num_frames, model);
  }

  MadeUpScores<T> scores() const { return {std::ssize(num_frames), vocabulary, options.blank}; }

  GreedyOptions options;
  std::int64_t vocabulary;
  std::vector<std::int32_t> num_frames;
  std::vector<AskedRound> rounds;                 ///< That the processor asked for.
  std::vector<std::vector<std::int32_t>> labels;  ///< That it found.
};

/// What a GPU keeps of a batch, before start_greedy.
struct GreedyArrays {
  template <typename T>
  explicit GreedyArrays(const GreedyProblem<T>& problem)
      : frames(problem.num_frames.size(), -7),
        last_labels(frames),
        labels(frames.size() * problem.options.max_symbols, -7),
        num_labels(frames),
        symbols_here(frames),
        num_running(1, -7),
        has_new_label(frames.size(), 7),
        is_done(has_new_label) {}

  GreedyRound round() const { return {frames, last_labels, has_new_label, is_done}; }

  std::vector<std::vector<std::int32_t>> emitted() const {
    std::vector<std::vector<std::int32_t>> all;
    for (std::size_t b = 0; b < frames.size(); ++b) {
      const auto begin =
          labels.begin() + static_cast<std::int64_t>(b * labels.size() / frames.size());
      all.emplace_back(begin, begin + num_labels[b]);
    }
    return all;
  }

  std::vector<std::int32_t> frames, last_labels, labels, num_labels, symbols_here, num_running;
  std::vector<std::uint8_t> has_new_label, is_done;
};

}  // namespace trireme::speech::cuda
