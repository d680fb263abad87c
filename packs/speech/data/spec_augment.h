#pragma once

#include <cstdint>

#include "packs/speech/kernels/frames.h"

namespace trireme::speech {

/// Masks of SpecAugment, by torchaudio's names. All of it changes results.
struct SpecAugmentOptions {
  std::int64_t n_time_masks = 10;
  std::int64_t time_mask_param = 0;  ///< Frames of a mask, at most; 0: as `p` says alone.
  std::int64_t n_freq_masks = 2;
  std::int64_t freq_mask_param = 20;  ///< Features of a mask, at most.
  double p = 0.03;  ///< Part of the utterance's frames that a time mask takes, at most.
};

/// kInvalidArgument, naming the option, where one is out of range.
void check(const SpecAugmentOptions& options);

/// Sets features to 0, their mean once they are normalised: n_freq_masks bands of neighbouring features in all frames,
/// n_time_masks spans of frames in all features. A mask's width is drawn from 0 to its most, each as likely, then where
/// it begins, from 0 to the last place where it fits. Masks may overlap.
///
/// stream   of all draws; the same one gives the same masks.
/// Source   Park et al., "SpecAugment", Interspeech 2019, section 2; no time warping.
void mask_frames(const SpecAugmentOptions& options, std::uint64_t stream, FrameShape shape,
                 float* x);

}  // namespace trireme::speech
