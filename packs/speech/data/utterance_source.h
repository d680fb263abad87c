#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "packs/speech/data/spec_augment.h"
#include "packs/speech/data/text_encoder.h"
#include "packs/speech/data/utterances.h"
#include "packs/speech/kernels/frames.h"
#include "packs/speech/kernels/log_mel.h"
#include "trireme/data.h"

namespace trireme::speech {

/// What a sample is. All of it changes results.
struct UtteranceOptions {
  MelOptions features = {.n_fft = 512, .win_length = 320, .hop_length = 160, .n_mels = 80};
  bool is_normalized = true;  ///< Each feature over the utterance (normalize_per_feature).
  std::optional<SpecAugmentOptions>
      masks;  ///< Training: other ones on each visit. None: evaluation.
  FrameStacking stacking;
  double max_seconds = 16.7;  ///< Longer utterances are left out.
  int num_lengths = 1;  ///< To so many lengths samples are padded (data::Source::padded_lengths).
  std::uint64_t seed = 0;  ///< Of all that chance decides.
};

/// Utterances as samples: decoded, resampled to features.sample_rate, log-mel features, normalised, masked, stacked;
/// and their text.
///
/// Utterances that are longer than `max_seconds`, or too short for a frame, are left out; damaged ones stay and are
/// errors when they are read. The lengths that are padded to divide the utterances, sorted by frames, into
/// `num_lengths` equal parts; tokens are padded to the most that one of them, or a shorter one, has.
///
/// Lengths  `frames`, `tokens`.
/// Fields   `features` f32 [frames, stack * n_mels]; `num_frames` i32 []; `tokens` i32 [tokens]; `num_tokens` i32 [].
///          Behind the numbers that count all are 0.
/// Errors   of read: kCorruptData and kIo, naming file and record.
/// Order    masks are functions of (seed, sample, visit): not of ranks, threads or order.
/// Threads  immutable, as far as the encoder is.
class UtteranceSource : public data::Source {
 public:
  /// Errors   kInvalidArgument, naming it, for an option out of range, or where every utterance is left out;
  ///          kCorruptData, naming the record, for a text that the encoder refuses.
  UtteranceSource(Utterances utterances, const TextEncoder& encoder,
                  const UtteranceOptions& options);

  std::int64_t num_samples() const override { return std::ssize(samples_); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::vector<data::Lengths> padded_lengths() const override { return padded_; }
  data::Lengths lengths_of(data::Sample sample) const override;
  void read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const override;
  std::string identity() const override;

  std::int64_t num_left_out() const { return utterances_.size() - num_samples(); }

 private:
  struct Kept {
    std::int64_t utterance = 0;
    std::int64_t frames = 0;  ///< Once stacked.
    std::vector<std::int32_t> tokens;
    bool is_damaged = false;
  };

  void keep(std::int64_t utterance, const TextEncoder& encoder);
  void choose_lengths();
  const Kept& kept(std::int64_t index) const;
  std::int64_t resampled(const AudioInfo& info) const;
  std::vector<float> features_of(data::Sample sample) const;

  Utterances utterances_;
  std::string encoder_;
  UtteranceOptions options_;
  LogMel log_mel_;
  std::vector<Kept> samples_;
  std::vector<data::Field> fields_;
  std::vector<data::Lengths> padded_;
};

}  // namespace trireme::speech
