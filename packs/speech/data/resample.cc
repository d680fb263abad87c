#include "packs/speech/data/resample.h"

#include <soxr.h>

#include <cmath>
#include <string>

#include "trireme/error.h"

namespace trireme::speech {

std::int64_t resampled_length(std::int64_t num_samples, const ResampleOptions& options) {
  constexpr double kMostRatio = 1024;
  const double ratio = options.to / options.from;
  if (!(options.from > 0 && options.to > 0 && ratio <= kMostRatio && ratio >= 1 / kMostRatio)) {
    throw Error(ErrorKind::kInvalidArgument,
                "resampling: rates are above 0 and less than 2^10 apart; got " +
                    std::to_string(options.from) + " and " + std::to_string(options.to) + " Hz");
  }
  // Exact for whole rates: so is the product, to 2^53, and the quotient becomes a whole number only if it is one.
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(num_samples) * options.to / options.from));
}

std::vector<float> resample(std::span<const float> samples, const ResampleOptions& options) {
  const auto length = static_cast<std::size_t>(resampled_length(std::ssize(samples), options));
  if (options.from == options.to || samples.empty()) return {samples.begin(), samples.end()};
  // libsoxr rounds to the nearest length, and takes what is beyond the end for silence: said, it makes our last one.
  std::vector<float> longer(samples.begin(), samples.end());
  longer.resize(samples.size() + static_cast<std::size_t>(std::ceil(options.from / options.to)));
  std::vector<float> out(static_cast<std::size_t>(resampled_length(std::ssize(longer), options)) +
                         1);
  const soxr_quality_spec_t quality =
      soxr_quality_spec(options.quality == ResampleQuality::kHigh ? SOXR_HQ : SOXR_VHQ, 0);
  const soxr_runtime_spec_t one_thread = soxr_runtime_spec(1);
  std::size_t taken = 0, made = 0;
  const soxr_error_t problem =
      soxr_oneshot(options.from, options.to, 1, longer.data(), longer.size(), &taken, out.data(),
                   out.size(), &made, nullptr, &quality, &one_thread);
  if (problem || made < length) {
    throw Error(ErrorKind::kInvalidArgument,
                "resampling " + std::to_string(samples.size()) + " samples from " +
                    std::to_string(options.from) + " to " + std::to_string(options.to) +
                    " Hz: " + (problem ? problem : "libsoxr made " + std::to_string(made)));
  }
  out.resize(length);
  return out;
}

}  // namespace trireme::speech
